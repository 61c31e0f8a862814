"""`lastbit query https://...` and `lastbit budget https://...`: tables that a server has."""

from __future__ import annotations

import stat
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lastbit.addresses import Secret, is_web_address
from lastbit.cli.ledger import LETTERS, budget_rows
from lastbit.cli.options import PATH, option, refusal
from lastbit.cli.output import Facts, Heading, Part, printable, show, show_json, waiting
from lastbit.errors import InvalidParameter
from lastbit.ledger import Account
from lastbit.tables import Budget, Cost, progress

if TYPE_CHECKING:  # what speaks to servers is slow to load
    from lastbit.release import Answer, RemoteTable


class OrRemote(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.5 on
    """The address of a table of a server, as text, or what it would be otherwise."""

    name = "place"

    def __init__(self, otherwise: click.ParamType) -> None:  # type: ignore[type-arg]
        self.otherwise = otherwise

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        return value if is_web_address(value) else self.otherwise.convert(value, param, ctx)


token_option = option(
    "--token-file",
    "For https:// addresses: the file with the token, else LASTBIT_TOKEN of the environment.",
    PATH,
)


def opened(address: str, token_file: Path | None) -> RemoteTable:
    """The table at this address."""
    from lastbit.release import remote_table  # late, as above

    return remote_table(address, None if token_file is None else _token(token_file))


def _token(path: Path) -> Secret:
    try:
        mode, text = path.stat().st_mode, path.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        mode, text = 0, ""
    if not text:
        raise refusal("--token-file", "cannot be read, or is empty", "name a file with a token")
    secret, text = Secret(text), ""
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise refusal("--token-file", "can be read by others", "run chmod 600 on it")
    return secret


def released_remotely(
    table: RemoteTable, fresh: bool, within: Any, asked: Mapping[str, Any]
) -> Answer:
    """The answer, with a bar while slots go by."""
    with waiting("asking") as tell, progress(tell):
        return table.release(fresh=fresh, within=within, **asked)


def account_at(table: RemoteTable) -> tuple[dict[str, Any], Account | None]:
    """The table's account as its server tells it, and as a value where plain sums are kept."""
    said = table.budget()
    try:
        (state,) = said["accounts"]
        kept, spent = state["budget"], state["spent"]
        if "filter" in state:
            return said, None
        amounts = {name: Fraction(spent[name]) for name in LETTERS}
        budget = None
        if kept is not None:
            whole: dict[str, Any] = {name: Fraction(kept[name]) for name in LETTERS}
            budget = Budget(**whole)
        name = table.card.account_name
        return said, Account(name=name, budget=budget, spent=Cost(**amounts))
    except (LookupError, TypeError, ValueError, ArithmeticError):
        problem, remedy = "does not say what is left", "ask its steward"
        raise InvalidParameter("the server", problem=problem, remedy=remedy) from None


def show_budget(address: str, token_file: Path | None, *, as_json: bool) -> None:
    """What is spent and what is left, of the account and of one's own allowance."""
    table = opened(address, token_file)
    said, account = account_at(table)
    if as_json:
        show_json(said)
        return
    parts: list[Part] = [Heading(printable(table.card.account_name, 40), printable(address, 60))]
    parts.append(Facts(rows_of(said, account)))
    show(*parts)


def rows_of(said: Mapping[str, Any], account: Account | None) -> list[tuple[str, str]]:
    """A line for each currency, and for one's own allowances."""
    if account is not None:
        rows = budget_rows(account)
    else:
        kept = said["accounts"][0]["filter"]
        rows = [
            (name, printable(str(kept.get(name)), 60)) for name in ("epsilon_spent", "odometer")
        ]
    for one in said["allowances"]:
        rows.append(("yours", _allowance(one)))
    return rows


def _allowance(one: Mapping[str, Any]) -> str:
    """What of an allowance is used, in a line."""
    limit, used = one.get("limit") or {}, one.get("used") or {}
    parts = [
        f"{letter} {used.get(name)} used of {limit[name]}"
        for name, letter in LETTERS.items()
        if limit.get(name) is not None
    ]
    period = f" a {limit['period']}" if limit.get("period") else ""
    return printable((", ".join(parts) or "nothing may be spent") + period, 200)
