"""`lastbit budget`: what is spent and what is left."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from lastbit.addresses import Address
from lastbit.cli.allowance import allowance_table
from lastbit.cli.ledger import (
    PLACE,
    account_heading,
    account_of,
    budget_rows,
    question_table,
    reopened_after,
    reopened_words,
    unanswered_words,
    with_answers,
)
from lastbit.cli.options import command, flag, json_option, refusal
from lastbit.cli.output import Facts, Part, show, show_json
from lastbit.cli.remote import OrRemote, show_budget, token_option
from lastbit.ledger import Account, Allowance, Ledger, neighbours_of, opens_filter
from lastbit.report import account_json, allowance_json, typical_price
from lastbit.tables import budgets_agree, read_card

LAST = 5
REOPENING = r"""\ That reopens the account under the filter, for good. Decide on it for your own
reasons, not because of what was answered. The proof needs a filter that does not depend on the
answers."""


@command("budget visits.toml")
@click.argument("file", type=OrRemote(PLACE), metavar="CARD|LEDGER|ADDRESS")
@flag("--set", "Give the ledger the budget of the card.", dest="change")
@token_option
@json_option
def budget(
    file: Path | Address | str, change: bool, token_file: Path | None, as_json: bool
) -> None:
    """What is spent and what is left.

    Of the table that a data card (.toml) describes, or of every table in a ledger. Nothing here
    costs anything. With --set the card's budget replaces the ledger's, and the ledger records that.
    What is spent stays spent, and a budget below it is refused. For an account kept by the filter,
    it shows the plain sums too. It says what one more answer of a typical price (the median so far)
    would take, and how many fit. Of the table of a server (https://host/visits) its account is
    shown, and one's own allowance.
    """
    if isinstance(file, str) and not change:
        show_budget(file, token_file, as_json=as_json)
        return
    if isinstance(file, Path) and file.suffix.lower() == ".toml":
        _of_card(file, change=change, as_json=as_json)
        return
    if change:
        raise refusal("--set", "needs a card to take the budget from", "name the card")
    assert not isinstance(file, str)
    ledger = Ledger.existing(file)
    _show(ledger, ledger.accounts(), as_json=as_json)


def _of_card(file: Path, *, change: bool, as_json: bool) -> None:
    card = read_card(file)
    if card.ledger is None:
        raise refusal(str(file), "names no ledger", "add a ledger to the card")
    if change:
        kept = Ledger.open(card.ledger)
        neighbours = neighbours_of(card)
        kept.set_budget(card.account_name, card.budget, who=kept.user, neighbours=neighbours)
    ledger, account = account_of(card)
    agrees = budgets_agree(account.budget, card.budget)
    _show(ledger, (account,), as_json=as_json, agrees=agrees)
    if not agrees and not as_json:
        words = "The card names another budget than the ledger has. No question is answered"
        words += f"\nuntil they agree: lastbit budget {file} --set"
        if card.budget is not None and opens_filter(account, card.budget) and not account.unused:
            words += f"\n{REOPENING}"
        click.echo(words, err=True)


def _shares(found: Sequence[Allowance]) -> dict[str, Any]:
    """The allowances, where a ledger has any."""
    return {"allowances": [allowance_json(one) for one in found]} if found else {}


def _show(
    ledger: Ledger | None, accounts: Sequence[Account], *, as_json: bool, agrees: bool | None = None
) -> None:
    books = {a.name: () if ledger is None else ledger.entries(a.name) for a in accounts}
    typical = {a.name: typical_price(a, books[a.name]) for a in accounts}
    before = {a.name: reopened_after(books[a.name]) for a in accounts}
    shares = {a.name: () if ledger is None else ledger.allowances(a.name) for a in accounts}
    waiting = {a.name: () if ledger is None else ledger.unanswered(a.name) for a in accounts}
    if as_json:
        states = [
            {
                **account_json(a, typical[a.name]),
                **({"reopened_after": before[a.name]} if before[a.name] else {}),
                "unanswered": [entry.sequence for entry in waiting[a.name]],
                **_shares(shares[a.name]),
            }
            for a in accounts
        ]
        place, head = (None, None) if ledger is None else (str(ledger.path), ledger.head)
        show_json({"ledger": place, "head": head, "card_agrees": agrees, "accounts": states})
        return
    parts: list[Part] = []
    for account in accounts:
        parts += [account_heading(account), Facts(budget_rows(account, typical[account.name]))]
        if before[account.name]:
            parts.append(reopened_words(before[account.name]))
        if shares[account.name]:
            parts.append(allowance_table(shares[account.name]))
        asked = []
        if ledger is not None:
            asked = [e for e in books[account.name] if e.kind in ("charge", "reserved")]
            if asked:
                parts.append(question_table(with_answers(ledger, asked[-LAST:])))
            if asked and waiting[account.name]:
                parts.append(unanswered_words(waiting[account.name]))
            if len(asked) > LAST:
                parts.append(f"For what came before: lastbit ledger log {ledger.path.name}")
        if not asked and account.unused:
            parts.append("Nothing has been asked yet.")
    show(*(parts or ["This ledger has no account yet."]))
