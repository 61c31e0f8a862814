"""`lastbit budget`: what is spent and what is left."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from lastbit.errors import InvalidParameter
from lastbit.places import exists

if TYPE_CHECKING:
    from lastbit.ledger import Account, Ledger
    from lastbit.tables import DataCard

LAST, RECENT = 5, 50


@click.command(epilog="Example: lastbit budget visits.toml")
@click.argument("file", type=click.Path(path_type=Path), metavar="CARD|LEDGER")
@click.option("--set", "change", is_flag=True, help="Give the ledger the budget of the card.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def budget(file: Path, change: bool, as_json: bool) -> None:
    """What is spent and what is left.

    Of the table that a data card (.toml) describes, or of every table in a ledger. Nothing here
    costs anything. With --set the budget of the card takes the place of the ledger's, which is
    recorded; what is spent stays spent, and a budget below it is refused.
    """
    from lastbit.ledger import Ledger

    if file.suffix.lower() == ".toml":
        _of_card(_card(file), file, change=change, as_json=as_json)
        return
    if change:
        raise InvalidParameter(
            "--set", problem="needs a card to take the budget from", remedy="name the card"
        )
    ledger = Ledger.existing(file)
    _show(ledger, ledger.accounts(), as_json=as_json)


def _card(file: Path) -> DataCard:
    from lastbit.tables import read_card

    return read_card(file)


def _of_card(card: DataCard, file: Path, *, change: bool, as_json: bool) -> None:
    from lastbit.ledger import Account, Ledger

    if card.ledger is None:
        raise InvalidParameter(
            str(file), problem="names no ledger", remedy="add a ledger to the card"
        )
    if change:
        Ledger.open(card.ledger).set_budget(card.name, card.budget, who=user_name())
    ledger = Ledger.existing(card.ledger) if exists(card.ledger) else None
    accounts = () if ledger is None else ledger.accounts()
    unopened = Account(name=card.name, budget=card.budget)
    found = next((account for account in accounts if account.name == card.name), unopened)
    agrees = found.budget == card.budget
    _show(ledger, (found,), as_json=as_json, agrees=agrees)
    if not agrees and not as_json:
        words = "The card names another budget than the ledger has. No question is answered"
        click.echo(f"{words}\nuntil they agree: lastbit budget {file} --set", err=True)


def _show(
    ledger: Ledger | None,
    accounts: tuple[Account, ...],
    *,
    as_json: bool,
    agrees: bool | None = None,
) -> None:
    from lastbit.cli.ledger_view import (
        account_json,
        account_parts,
        question_table,
        unanswered_parts,
        with_answers,
    )
    from lastbit.cli.page import Part, Words, show, show_json
    from lastbit.tables import Cost

    if as_json:
        show_json(
            {
                "ledger": None if ledger is None else str(ledger.path),
                "head": None if ledger is None else ledger.head,
                "card_agrees": agrees,
                "accounts": [
                    {**account_json(account), "unanswered": _unanswered(ledger, account)}
                    for account in accounts
                ],
            }
        )
        return
    parts: list[Part] = []
    for account in accounts:
        parts += account_parts(account)
        entries = () if ledger is None else ledger.entries(account.name, last=RECENT)
        asked = [entry for entry in entries if entry.kind in ("charge", "reserved")]
        if asked and ledger is not None:
            parts.append(question_table(with_answers(ledger, asked[-LAST:])))
            parts += unanswered_parts(ledger.unanswered(account.name))
        if ledger is not None and len(asked) > LAST:
            parts.append(Words(f"For what came before: lastbit ledger log {ledger.path.name}"))
        if not asked and account.spent == Cost():
            parts.append(Words("Nothing has been asked yet."))
    show(*(parts or [Words("This ledger has no account yet.")]))


def _unanswered(ledger: Ledger | None, account: Account) -> list[int]:
    """The numbers of entries that are charged and not answered."""
    if ledger is None:
        return []
    return [entry.sequence for entry in ledger.unanswered(account.name)]


def user_name() -> str:
    """Whom the operating system runs this for; the environment could say anything."""
    import getpass
    import os

    try:
        import pwd
    except ImportError:  # a system without one
        return getpass.getuser()
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a user without a name, as in some containers
        return f"uid {os.getuid()}"
