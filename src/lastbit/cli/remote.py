"""`lastbit query https://...` and `lastbit budget https://...`: tables that a server has."""

from __future__ import annotations

import stat
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lastbit.cli.ledger import LETTERS, limit_words, money
from lastbit.cli.options import PATH, option, refusal
from lastbit.cli.output import Facts, Heading, printable, show, show_json
from lastbit.errors import ServerFailed
from lastbit.files import content_of
from lastbit.ledger import Limit
from lastbit.report import budget_parts
from lastbit.servers import Secret, is_web_address
from lastbit.tables import exact_fraction

MOST_TOKEN = 4096  # bytes of its file

if TYPE_CHECKING:  # what speaks to servers is slow to load
    from lastbit.release import RemoteTable


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


def remote_table_at(address: str, token_file: Path | None) -> RemoteTable:
    """The table at this address."""
    from lastbit.release import remote_table  # late, as above

    return remote_table(address, None if token_file is None else _token(token_file))


def _token(path: Path) -> Secret:
    try:
        mode, content = path.stat().st_mode, content_of(path, most=MOST_TOKEN)
        text = content.decode("ascii").strip()
    except (OSError, ValueError):
        mode, text = 0, ""
    if not text:
        raise refusal("--token-file", "cannot be read, or is empty", "name a file with a token")
    secret, text = Secret(text), ""
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise refusal("--token-file", "can be read by others", "run chmod 600 on it")
    return secret


def budget_at(table: RemoteTable) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """What the server says of the account and of one's own allowance: JSON, and in words."""
    said = table.budget()
    try:
        (account,) = said["accounts"]
        parts = budget_parts(account)
        rows = [(row["letter"], row["words"]) for row in parts["rows"] or ()]
        rows += [] if rows else [("spent", f"{parts['spent']}, no limit")]
        rows += [("", note) for note in parts.get("notes", ())]
        for one in said["allowances"]:
            left, limit = (_limit(one[part]) for part in ("left", "limit"))
            rows.append(("allowance", f"{money(left, limit)} left of {limit_words(limit)}"))
        return said, [(name, printable(words)) for name, words in rows]
    except (LookupError, TypeError, ValueError, ArithmeticError):
        pass  # its message may quote what was sent
    raise ServerFailed(f"{table.server} does not say what is left; ask its steward")


def _limit(said: Mapping[str, Any]) -> Limit:
    texts = {name: said[name] for name in LETTERS}
    amounts = {name: None if text is None else exact_fraction(text) for name, text in texts.items()}
    return Limit(**amounts, period=said["period"])


def show_budget(address: str, token_file: Path | None, *, as_json: bool) -> None:
    """What is spent and what is left, of the account and of one's own allowance."""
    table = remote_table_at(address, token_file)
    said, rows = budget_at(table)
    if as_json:
        show_json(said)
    else:
        name = printable(table.card.account_name, 40)
        show(Heading(name, printable(str(table.server), 38)), Facts(rows))
