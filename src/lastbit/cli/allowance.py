"""`lastbit allowance`: how much of an account an analyst may spend; its words and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import click

from lastbit.addresses import Address
from lastbit.cli.ledger import PLACE, limit_words, money
from lastbit.cli.options import group, json_option, option, refusal
from lastbit.cli.output import Columns, Facts, Part, printable, show, show_json
from lastbit.ledger import (
    PERIODS,
    Allowance,
    Ledger,
    Limit,
    Period,
    check_charging,
    neighbours_of,
)
from lastbit.report import allowance_json
from lastbit.tables import Cost, DataCard, read_card

place_argument = click.argument("file", type=PLACE, metavar="CARD|LEDGER")
account_option = option(
    "--account", "Of which table; needed where a ledger is named and not a card.", "NAME"
)


@group("allowance set visits.toml ana --epsilon 1 --per month")
def allowance() -> None:
    """How much of an account an analyst may spend."""


@allowance.command("set", example="set visits.toml ana --epsilon 1 --per month")
@place_argument
@click.argument("name")
@option("--epsilon", "What all charges of the analyst may come to: 1, 0.5, 1/3 ...")
@option("--delta", "The same of delta; without it only the account limits that.")
@option("--rho", "The same, where the table is paid in concentrated privacy.")
@option("--per", "Whole again when a calendar period begins (UTC); else for good.", PERIODS)
@account_option
def set_allowance(
    file: Path | Address,
    name: str,
    per: Period | None,
    account: str | None,
    **limits: Fraction | None,
) -> None:
    """Let an analyst spend a part of an account.

    A charge must be within the allowance and within the account. Allowances may add up to more than
    the account has. Only allowances are renewed. What the analyst was charged in the period so far
    counts. Stewards decide it, and the ledger records it.
    """
    books, card = ledger_of(file)
    whose = _account(account, card)
    if card is not None and whose == card.account_name:
        # opens it before the first question
        books.account(whose, card.budget, neighbours_of(card))
    limit = Limit(period=per, **limits)
    books.set_allowance(whose, name, limit, by=books.user)
    found = books.allowances(whose, name)
    show(
        Facts([("analyst", printable(name, 40)), ("account", printable(whose, 40)), *_facts(found)])
    )


@allowance.command("list", example="list visits.toml")
@place_argument
@account_option
@json_option
def list_allowances(file: Path | Address, account: str | None, as_json: bool) -> None:
    """All allowances, and what is left of them."""
    books, card = ledger_of(file)
    whose = account if card is None or account is not None else card.account_name
    found = books.allowances(whose)
    if as_json:
        show_json({"allowances": [allowance_json(one) for one in found]})
    else:
        show(allowance_table(found) if found else "There are no allowances.")


@allowance.command("remove", example="remove visits.toml ana")
@place_argument
@click.argument("name")
@account_option
def remove(file: Path | Address, name: str, account: str | None) -> None:
    """Take an allowance away; what was spent stays spent."""
    books, card = ledger_of(file)
    whose = _account(account, card)
    if not books.allowances(whose, name):
        problem = f"has no allowance for {printable(whose, 40)}"
        raise refusal(printable(name, 40), problem, "lastbit allowance list shows those there are")
    books.set_allowance(whose, name, None, by=books.user)
    show(
        Facts((("removed", f"the allowance of {printable(name, 40)} for {printable(whose, 40)}"),))
    )


def _account(account: str | None, card: DataCard | None) -> str:
    if account is None and card is None:
        raise refusal("--account", "is missing", "name the table, or a card instead of the ledger")
    return account or (card.account_name if card is not None else "")


def ledger_of(file: Path | Address, *, make: bool = False) -> tuple[Ledger, DataCard | None]:
    """The ledger that is named, or that of the card; a card's is made where `make` says so."""
    if isinstance(file, Path) and file.suffix.lower() == ".toml":
        card = read_card(file)
        if card.ledger is None:
            raise refusal(str(file), "names no ledger", "add a ledger to the card")
        return (Ledger.open if make else Ledger.existing)(card.ledger), card
    return Ledger.existing(file), None


# ---------------------------------------------------------------- for other commands too


def own_allowance(books: Ledger | None, account: str, cost: Cost | None = None) -> Allowance | None:
    """The allowance of the user who runs this, if any; after a charge, if one is named.

    With a charge, those who may not ask are refused.
    """
    if books is None or not books.principals():
        return None
    name = books.user
    found = next(iter(books.allowances(account, name)), None)
    if cost is None:
        return found
    check_charging(books.principal(name), name, account, found)
    return None if found is None else found.charged(cost)


def allowance_words(one: Allowance) -> str:
    """What is left, of how much: ε 0.4 left of ε 1 a month."""
    return f"{money(one.left, one.limit)} left of {limit_words(one.limit)}"


def _facts(found: Sequence[Allowance]) -> list[tuple[str, str]]:
    facts = [("allowance", allowance_words(one)) for one in found]
    return facts + [("since", one.since) for one in found if one.since is not None]


def allowance_table(found: Sequence[Allowance]) -> Part:
    """A line for each."""
    headings = ("analyst", "account", "left", "of", "since")
    rows = [
        (
            printable(one.principal, 20),
            printable(one.account, 16),
            money(one.left, one.limit),
            limit_words(one.limit),
            one.since or "",
        )
        for one in found
    ]
    return Columns(headings, rows)
