"""Accounts and entries of a ledger as parts of a page, and as JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from lastbit.exact import exact_text, rounded_down, rounded_up

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lastbit.cli.page import Columns, Part
    from lastbit.ledger import Account, Entry, Ledger
    from lastbit.tables import Budget, Cost

BAR = 32
LEAST_ROOM = 20
MOST_OPEN = 8
LETTERS = (("epsilon", "ε"), ("delta", "δ"), ("rho", "ρ"))


def account_parts(account: Account) -> tuple[Part, ...]:
    """A heading with what is left, and a bar for each currency."""
    from lastbit.cli.page import Facts, Heading

    left = account.remaining
    verdict = "no limit" if left is None else f"{money(left, account.budget)} left"
    names = _currencies(account)
    bars = tuple((letter, _bar(account, name)) for name, letter in LETTERS if name in names)
    return Heading(printable(account.name, 40), verdict), Facts(bars)


def _currencies(account: Account) -> set[str]:
    """Those that the account has; with nothing spent and no limit, epsilon."""
    kept = account.budget if account.budget is not None else account.spent
    return {name for name, _ in LETTERS if getattr(kept, name)} or {"epsilon"}


def _bar(account: Account, name: str) -> str:
    spent: Fraction = getattr(account.spent, name)
    if account.budget is None:
        return f"{_up(spent)} spent, no limit"
    whole: Fraction = getattr(account.budget, name)
    cells = _cells(spent, whole)
    drawn = "█" * cells + "░" * (BAR - cells)
    return f"{drawn}  {_up(spent)} spent, {_down(whole - spent)} left of {_up(whole)}"


def _cells(spent: Fraction, whole: Fraction) -> int:
    """How much of a bar is full: none only if nothing is spent, all only if nothing is left."""
    if spent in (0, whole):
        return BAR if spent else 0
    return min(max(round(BAR * spent / whole), 1), BAR - 1)


def money(amount: Cost | Budget, like: Budget | None = None) -> str:
    """A price or a budget in short; with a budget, in its currencies, also where there is none.

    >>> from lastbit.tables import Cost
    >>> money(Cost(epsilon=Fraction(1, 2), delta=Fraction(1, 10**9)))
    'ε 0.5, δ 1e-9'
    """
    kept = amount if like is None else like
    parts = [
        f"{letter} {_down(getattr(amount, name)) if like else _up(getattr(amount, name))}"
        for name, letter in LETTERS
        if getattr(kept, name)
    ]
    return ", ".join(parts) or "nothing"


def _up(number: Fraction) -> str:
    text = exact_text(number)
    return rounded_up(number) if text.endswith("...") else text


def _down(number: Fraction) -> str:
    text = exact_text(number)
    return rounded_down(number) if text.endswith("...") else text


def with_answers(books: Ledger, entries: Sequence[Entry]) -> list[Entry]:
    """The entries, and beside those of questions without SQL their answers, to say what it was."""
    found = []
    for entry in entries:
        if entry.kind == "charge" and not entry.words:
            found.append(books.entry(entry.sequence))
        elif entry.kind == "reserved" and not entry.words:
            answer = books.answer_to(entry)
            found.append(entry if answer is None else replace(entry, record=answer.record))
        else:
            found.append(entry)
    return found


def unanswered_parts(reservations: Sequence[Entry]) -> tuple[Part, ...]:
    """Reservations that nobody has settled: said plainly, with the way to their answers."""
    from lastbit.cli.page import Words

    if not reservations:
        return ()
    count = len(reservations)
    which = "entry" if count == 1 else "entries"
    numbers = ", ".join(str(entry.sequence) for entry in reservations[:MOST_OPEN])
    more = ", ..." if count > MOST_OPEN else ""
    return (
        Words(
            f"Charged, not answered: {which} {numbers}{more}. Asked again on the same data, the\n"
            "same question is answered at no further charge. Nothing gives the price back."
        ),
    )


def question_table(entries: Sequence[Entry]) -> Columns:
    """What was asked, newest first."""
    from lastbit.cli.page import Columns

    cells = [
        (_when(entry), printable(entry.who or "", 10), _price(entry)) for entry in reversed(entries)
    ]
    room = _room(cells, ("when (UTC)", "who", "price"))
    rows = tuple(
        (*row, _asked(entry, room)) for row, entry in zip(cells, reversed(entries), strict=True)
    )
    return Columns(("when (UTC)", "who", "price", "question"), rows)


def entry_table(entries: Sequence[Entry]) -> Columns:
    """Entries of all kinds, in their order."""
    from lastbit.cli.page import Columns

    cells = [
        (
            str(entry.sequence),
            _when(entry),
            printable(entry.who or "", 8),
            printable(entry.account or "", 12),
        )
        for entry in entries
    ]
    room = _room(cells, ("#", "when (UTC)", "who", "account"))
    rows = tuple((*row, _what(entry, room)) for row, entry in zip(cells, entries, strict=True))
    return Columns(("#", "when (UTC)", "who", "account", "what"), rows, numbers=(0,))


def _room(cells: Sequence[tuple[str, ...]], headings: tuple[str, ...]) -> int:
    """How many letters of a line are left beside these columns and the gaps between them."""
    from lastbit.cli.page import WIDTH

    widths = (max(map(len, column)) + 2 for column in zip(headings, *cells, strict=True))
    return max(WIDTH - 4 - sum(widths), LEAST_ROOM)


def _what(entry: Entry, room: int) -> str:
    match entry.kind:
        case "opened":
            return "opened"
        case "budget":
            return f"budget {'without limit' if entry.budget is None else money(entry.budget)}"
        case "charge":
            price = f"{_price(entry)}: "
            return price + _asked(entry, max(room - len(price), LEAST_ROOM))
        case "reserved":
            price = f"reserved {_price(entry)}: "
            return price + _asked(entry, max(room - len(price), LEAST_ROOM))
        case "settled":
            return "answered, paid before"
        case "voided":
            return "void since a backup was restored; stays charged"
        case "note":
            return printable(entry.words or "", 60)


def _when(entry: Entry) -> str:
    return printable(entry.when[:16].replace("T", " "), 16)


def _price(entry: Entry) -> str:
    return "" if entry.cost is None else money(entry.cost)


def _asked(entry: Entry, most: int) -> str:
    """The SQL as it was written; of a question in Python what it asks for, else its digest."""
    return printable(entry.words or _titled(entry), most)


def _titled(entry: Entry) -> str:
    from lastbit.report import title_of

    try:
        return f"(Python) {title_of(entry.record or {})}"
    except (KeyError, TypeError):  # no answer beside it, or one of a stranger's making
        return f"(query {(entry.query or entry.question or '')[:8]})"


def printable(text: str, most: int) -> str:
    """Text of a stranger's file in one line: nothing in it may steer the terminal."""
    line = " ".join(text.split())
    safe = "".join(letter if letter.isprintable() else "?" for letter in line)
    return safe if len(safe) <= most else safe[: most - 3] + "..."


def account_json(account: Account) -> dict[str, Any]:
    """Exact fractions as text."""
    left = account.remaining
    kept = account.budget
    return {
        "account": account.name,
        "kind": None if kept is None else kept.kind,
        "budget": None if kept is None else {name: str(getattr(kept, name)) for name, _ in LETTERS},
        "spent": account.spent.to_json(),
        "left": None if left is None else left.to_json(),
    }


def entry_json(entry: Entry) -> dict[str, Any]:
    """An entry's fields and its hash, without its answer."""
    fields: dict[str, Any] = json.loads(entry.text)
    return {**fields, "hash": entry.hash}
