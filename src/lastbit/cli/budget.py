"""`lastbit budget`: what is spent and what is left."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from lastbit.cli.ledger import (
    TYPICAL,
    account_heading,
    account_json,
    account_of,
    budget_rows,
    question_table,
    unanswered_words,
    user_name,
    with_answers,
)
from lastbit.cli.options import PATH, command, flag, json_option, refusal
from lastbit.cli.output import Facts, Part, show, show_json
from lastbit.ledger import Account, Ledger
from lastbit.tables import Cost, budgets_agree, read_card

LAST, RECENT = 5, 50


@command("budget visits.toml")
@click.argument("file", type=PATH, metavar="CARD|LEDGER")
@flag("--set", "Give the ledger the budget of the card.", dest="change")
@json_option
def budget(file: Path, change: bool, as_json: bool) -> None:
    """What is spent and what is left.

    Of the table that a data card (.toml) describes, or of every table in a ledger. Nothing here
    costs anything. With --set the budget of the card takes the place of the ledger's, which is
    recorded; what is spent stays spent, and a budget below it is refused. Of an account that is
    kept by the filter, the plain sums are shown too, and how many answers of the last price fit.
    """
    if file.suffix.lower() == ".toml":
        _of_card(file, change=change, as_json=as_json)
        return
    if change:
        raise refusal("--set", "needs a card to take the budget from", "name the card")
    ledger = Ledger.existing(file)
    _show(ledger, ledger.accounts(), as_json=as_json)


def _of_card(file: Path, *, change: bool, as_json: bool) -> None:
    card = read_card(file)
    if card.ledger is None:
        raise refusal(str(file), "names no ledger", "add a ledger to the card")
    if change:
        Ledger.open(card.ledger).set_budget(card.name, card.budget, who=user_name())
    ledger, account = account_of(card)
    agrees = budgets_agree(account.budget, card.budget)
    _show(ledger, (account,), as_json=as_json, agrees=agrees)
    if not agrees and not as_json:
        words = "The card names another budget than the ledger has. No question is answered"
        click.echo(f"{words}\nuntil they agree: lastbit budget {file} --set", err=True)


def _last_price(ledger: Ledger | None, account: Account) -> Cost:
    """Of the newest charge: what the next answer is likely to cost."""
    entries = () if ledger is None else ledger.entries(account.name, last=RECENT)
    return next((e.cost for e in reversed(entries) if e.cost is not None), TYPICAL)


def _show(
    ledger: Ledger | None, accounts: Sequence[Account], *, as_json: bool, agrees: bool | None = None
) -> None:
    last = {a.name: _last_price(ledger, a) for a in accounts}
    waiting = {a.name: () if ledger is None else ledger.unanswered(a.name) for a in accounts}
    if as_json:
        states = [
            {
                **account_json(a, last[a.name]),
                "unanswered": [entry.sequence for entry in waiting[a.name]],
            }
            for a in accounts
        ]
        place, head = (None, None) if ledger is None else (str(ledger.path), ledger.head)
        show_json({"ledger": place, "head": head, "card_agrees": agrees, "accounts": states})
        return
    parts: list[Part] = []
    for account in accounts:
        parts += [account_heading(account), Facts(budget_rows(account, last[account.name]))]
        asked = []
        if ledger is not None:
            recent = ledger.entries(account.name, last=RECENT)
            asked = [entry for entry in recent if entry.kind in ("charge", "reserved")]
            if asked:
                parts.append(question_table(with_answers(ledger, asked[-LAST:])))
            if asked and waiting[account.name]:
                parts.append(unanswered_words(waiting[account.name]))
            if len(asked) > LAST:
                parts.append(f"For what came before: lastbit ledger log {ledger.path.name}")
        if not asked and account.unused:
            parts.append("Nothing has been asked yet.")
    show(*(parts or ["This ledger has no account yet."]))
