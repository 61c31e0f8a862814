"""`lastbit user`: the principals of a ledger, and what they may do."""

from __future__ import annotations

from pathlib import Path

import click

from lastbit.addresses import Address
from lastbit.cli.allowance import allowance_table, allowance_words, ledger_of, place_argument
from lastbit.cli.ledger import question_table, with_answers
from lastbit.cli.options import group, json_option, option, refusal
from lastbit.cli.output import Columns, Facts, Heading, Part, printable, show, show_json
from lastbit.ledger import ROLES, Ledger, Principal, Role
from lastbit.report import allowance_json

LAST = 5
FIRST = """\
From now on every charge in this ledger is by a principal. On the command line
that is the user of the operating system, in PostgreSQL that of the database."""


@group("user add visits.toml ana --role analyst")
def user() -> None:
    """Who may decide, ask and read: the principals of a ledger."""


@user.command(example="add visits.toml ana --role analyst")
@place_argument
@click.argument("name", required=False)
@option("--role", "What they may do.", ROLES, required=True)
def add(file: Path | Address, name: str | None, role: Role) -> None:
    """Give somebody a role; without a NAME, yourself.

    Stewards decide on roles, allowances and budgets, and may ask; analysts ask within an allowance;
    auditors read. The first principal is a steward. Those who have a role get the new one instead,
    and the allowances of the old one end. Stewards decide it, and the ledger records it.
    """
    books, _ = ledger_of(file, make=True)
    you = books.user
    first, whom = not books.principals(), name or you
    books.set_principal(whom, role, by=you)
    parts: list[Part] = [Facts((("principal", printable(whom, 40)), ("role", role)))]
    if first:
        parts.append(FIRST)
    if first and whom != you:
        words = f"You are {printable(you, 40)} here, and not one of them."
        parts.append(f"{words} From here on {printable(whom, 40)} decides.")
    if role == "analyst" and not books.allowances(principal=whom):
        called = printable(file.name, 40)
        parts.append(
            f"To ask, they need an allowance:\n"
            f"lastbit allowance set {called} {printable(whom, 40)} --epsilon 1 --per month"
        )
    show(*parts)


@user.command("list", example="list visits.toml")
@place_argument
@json_option
def list_users(file: Path | Address, as_json: bool) -> None:
    """All principals, and what is left of their allowances."""
    books, _ = ledger_of(file)
    found = books.principals()
    if as_json:
        show_json({"principals": [_json(books, one) for one in found]})
        return
    allowances = books.allowances()
    rows = []
    for one in found:
        lines = [
            f"{printable(a.account, 20)}: {allowance_words(a)}"
            for a in allowances
            if a.principal == one.name
        ]
        rows.append((printable(one.name, 24), one.role or "removed", "\n".join(lines)))
    table = Columns(("principal", "role", "allowances"), rows)
    show(table if rows else "This ledger has no principals: all who can write it may ask.")


@user.command("show", example="show visits.toml ana")
@place_argument
@click.argument("name")
@json_option
def show_user(file: Path | Address, name: str, as_json: bool) -> None:
    """One principal: role, allowances, and what they asked last."""
    books, _ = ledger_of(file)
    found = books.principal(name)
    if found is None:
        remedy = "lastbit user list shows those there are"
        raise refusal(printable(name, 40), "is not a principal of this ledger", remedy)
    if as_json:
        show_json(_json(books, found))
        return
    parts: list[Part] = [Heading(printable(name, 40), found.role or "removed")]
    allowances = books.allowances(principal=name)
    if allowances:
        parts.append(allowance_table(allowances))
    kinds = ("charge", "reserved")
    asked = [e for e in books.entries() if e.principal == name and e.kind in kinds]
    if asked:
        parts.append(question_table(with_answers(books, asked[-LAST:])))
    else:
        parts.append("Nothing has been asked in this name since it has a role.")
    show(*parts)


@user.command(example="remove visits.toml ana")
@place_argument
@click.argument("name")
def remove(file: Path | Address, name: str) -> None:
    """Take a role away, for good; what was spent stays spent, and the name stays taken."""
    books, _ = ledger_of(file)
    books.set_principal(name, None, by=books.user)
    show(Facts((("removed", printable(name, 40)),)))


def _json(books: Ledger, one: Principal) -> dict[str, object]:
    allowances = [allowance_json(a) for a in books.allowances(principal=one.name)]
    return {"name": one.name, "role": one.role, "active": one.active, "allowances": allowances}
