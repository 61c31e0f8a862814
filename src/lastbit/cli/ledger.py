"""`lastbit ledger`: check, read and copy the books; accounts and entries as lines and as JSON."""

from __future__ import annotations

import getpass
import json
import os
import stat
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Any

import click

from lastbit.cli.files import check_folder
from lastbit.cli.options import PATH, Group, json_option
from lastbit.cli.output import (
    WIDTH,
    Columns,
    Facts,
    Heading,
    Part,
    Words,
    printable,
    show,
    show_json,
    waiting,
)
from lastbit.errors import InvalidParameter
from lastbit.exact import exact_text, rounded_down, rounded_up
from lastbit.files import exists
from lastbit.ledger import Account, Entry, Ledger, exported, restored
from lastbit.privacy import MomentCost, MomentFilter
from lastbit.report import title_of
from lastbit.tables import Budget, Cost, DataCard

try:
    import pwd
except ImportError:  # a system without one
    pwd = None  # type: ignore[assignment]

BAR = 32
LEAST_ROOM = 20
MOST_OPEN = 8
LETTERS: Mapping[str, str] = MappingProxyType({"epsilon": "ε", "delta": "δ", "rho": "ρ"})
TYPICAL = Cost(epsilon=Fraction(1, 10))
"""A price to count with where nothing was asked yet."""
OLDER_COPY = """\
Note the head elsewhere: without one, nobody can tell this file from an
older copy of it."""

ledger_argument = click.argument("file", type=PATH, metavar="LEDGER")
heads_option = click.option(
    "--head",
    "heads",
    multiple=True,
    metavar="HASH",
    help="The hash of an entry, as an answer quotes it (entry.hash): it must be there.",
)


@click.group(cls=Group, epilog="Example: lastbit ledger verify hospital.ledger")
def ledger() -> None:
    """Check, read and copy a ledger: who spent what."""


@ledger.command(epilog="Example: lastbit ledger verify hospital.ledger --head 3f9a...")
@ledger_argument
@heads_option
@json_option
@click.pass_context
def verify(context: click.Context, file: Path, heads: tuple[str, ...], as_json: bool) -> None:
    """Work out every hash, sum and answer again.

    The exit status is 0 if all fits, 1 if something was changed, 2 if the file cannot be read. A
    file that was replaced by an older copy fits: only the hash of a newer entry, noted elsewhere,
    tells (--head, which may be given several times). That an answer is in the ledger is proved by
    entry.hash of its record; body.ledger of its certificate is the price that was paid before it.
    """
    _check_heads(heads)
    books = Ledger.existing(file)
    with waiting("checking"):
        problems = books.problems(heads)
    if as_json:
        head = None if problems else books.head
        show_json({"ledger": str(file), "problems": problems, "head": head})
    elif problems:
        show(Heading(str(file), "DOES NOT FIT"), *(Words(f"- {words}.") for words in problems))
    else:
        entries = books.entries()
        first, last = (entries[place].when[:10] for place in (0, -1))
        facts = (
            ("entries", f"{entries[-1].sequence}, from {first} to {last}"),
            ("accounts", str(len(books.accounts()))),
            ("head", entries[-1].hash),
        )
        parts = [Heading(str(file), "every entry fits"), Facts(facts), *_unanswered(books, heads)]
        if not heads:
            parts.append(Words(OLDER_COPY))
        if file.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            parts.append(Words("Others than its owner may read or write the file: chmod 600."))
        show(*parts)
    context.exit(1 if problems else 0)


@ledger.command(epilog="Example: lastbit ledger log hospital.ledger --last 50")
@ledger_argument
@click.option("--account", help="Only this table's entries.")
@click.option("--last", type=click.IntRange(1), default=20, show_default=True, help="How many.")
@json_option
def log(file: Path, account: str | None, last: int, as_json: bool) -> None:
    """The last entries, oldest first."""
    books = Ledger.existing(file)
    entries = books.entries(account, last=last)
    if as_json:  # the fields of each and its hash, without its answer
        show_json({"entries": [{**json.loads(e.text), "hash": e.hash} for e in entries]})
        return
    cells = [
        (
            str(entry.sequence),
            _when(entry),
            printable(entry.who or "", 8),
            printable(entry.account or "", 12),
        )
        for entry in entries
    ]
    headings = ("#", "when (UTC)", "who", "account", "what")
    table = _entry_table(headings, cells, with_answers(books, entries), _what)
    show(Heading(str(file), f"{len(entries)} entries"), replace(table, numbers=(0,)))


@ledger.command(epilog="Example: lastbit ledger export hospital.ledger --out entries.jsonl")
@ledger_argument
@click.option("--out", type=PATH, help="Write to this file.")
def export(file: Path, out: Path | None) -> None:
    """Every entry with its answer, one JSON a line.

    The ledger's secret stays inside. The hash of an entry is SHA-256 of its fields, written as JSON
    with sorted names and no blanks.
    """
    books = Ledger.existing(file)
    if out is not None:
        check_folder(out)
        if out.exists():  # it might be the ledger itself, under another name
            raise InvalidParameter("--out", problem="exists", remedy="name a new file")
    try:
        with nullcontext(None) if out is None else out.open("x", encoding="ascii") as target:
            for entry in exported(books):
                click.echo(json.dumps(entry, sort_keys=True), file=target)
    except OSError as error:
        raise InvalidParameter(
            "--out", problem=f"cannot be written ({error.strerror})", remedy="name another file"
        ) from error


@ledger.command(epilog="Example: lastbit ledger backup hospital.ledger 2026-10-02.ledger")
@ledger_argument
@click.argument("copy", type=PATH)
def backup(file: Path, copy: Path) -> None:
    """Copy a ledger, also while it is in use."""
    Ledger.existing(file).backup(copy)
    show(Facts((("written", str(copy)), ("head", Ledger.existing(copy).head))))


@ledger.command(epilog="Example: lastbit ledger restore 2026-10-02.ledger hospital.ledger")
@click.argument("copy", type=PATH, metavar="BACKUP")
@ledger_argument
@heads_option
def restore(copy: Path, file: Path, heads: tuple[str, ...]) -> None:
    """Put a backup to use where there is no ledger.

    What was spent after the backup is not in it. Give entry.hash of the newest answer that anybody
    has (--head), and an older backup is refused. The restoring is recorded. What was charged and
    not answered in the backup stays charged and is void: to ask it again costs again.
    """
    _check_heads(heads)
    books = restored(copy, file, who=user_name(), heads=heads)
    entries = books.entries()
    void = 0
    while entries[-1 - void].kind == "voided":  # they follow the note of the restoring
        void += 1
    parts: list[Part] = [
        Facts((("restored", str(file)), ("its last entry", f"{_when(entries[-2 - void])} UTC"))),
        Words("Whatever was answered after that is not in it, and its price is forgotten."),
    ]
    if void:
        parts.append(
            Words(
                f"Charged and not answered in it: {void}. They stay charged and are void, since\n"
                "somebody may have seen their answers; to ask the same again costs again."
            )
        )
    show(*parts, *_unanswered(books, heads))


def _unanswered(books: Ledger, heads: tuple[str, ...]) -> list[Part]:
    """Of hashes that are there: which prove that a price is, and not that its answer is."""
    if not heads:
        return []
    paid = {entry.hash: entry for entry in books.entries() if entry.kind == "reserved"}
    return [
        Words(
            f"{head[:8]}... is a price whose answer is not in this ledger. If anybody has the\n"
            "answer, this file is older than it: look for a newer one."
        )
        for head in heads
        if head in paid and books.answer_to(paid[head]) is None
    ]


def _check_heads(heads: tuple[str, ...]) -> None:
    for head in heads:
        if len(head) != 64 or set(head) - set("0123456789abcdef"):
            raise InvalidParameter(
                "--head", problem="is not a hash", remedy="copy its 64 hexadecimal digits"
            )


def user_name() -> str:
    """Whom the operating system runs this for; the environment could say anything."""
    if pwd is None:
        return getpass.getuser()
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a user without a name, as in some containers
        return f"uid {os.getuid()}"


# ---------------------------------------------------------------- accounts


def account_of(card: DataCard) -> tuple[Ledger | None, Account]:
    """The account of a table as it is now; a ledger that is not there yet is not made."""
    new = Account(name=card.name, budget=card.budget)
    if card.ledger is None or not exists(card.ledger):
        return None, new
    books = Ledger.existing(card.ledger)
    return books, next((one for one in books.accounts() if one.name == card.name), new)


def account_heading(account: Account) -> Heading:
    """Its name, and what is left."""
    left = account.remaining
    verdict = "no limit" if left is None else f"{money(left, account.budget)} left"
    if isinstance(left, MomentCost):
        verdict = f"an answer of up to {money(left, account.budget)}"
    return Heading(printable(account.name, 40), verdict)


def budget_rows(account: Account, next_: Cost = TYPICAL) -> list[tuple[str, str]]:
    """A bar for each currency; with nothing spent and no limit, for epsilon.

    Under a filter also the plain sums, and how many answers of the price `next_` still fit.
    """
    if account.filter is not None:
        return _filter_rows(account, account.filter, next_)
    kept = account.budget if account.budget is not None else account.spent
    names = [name for name in LETTERS if getattr(kept, name)] or ["epsilon"]
    return [(LETTERS[name], _bar(account, name)) for name in names]


def _bar(account: Account, name: str) -> str:
    spent: Fraction = getattr(account.spent, name)
    if account.budget is None:
        return f"{_up(spent)} spent, no limit"
    return _drawn(spent, getattr(account.budget, name))


def _drawn(spent: Fraction, whole: Fraction) -> str:
    cells = BAR if spent else 0
    if spent not in (0, whole):  # empty only if nothing is spent, full only if nothing is left
        cells = min(max(round(BAR * spent / whole), 1), BAR - 1)
    drawn = "█" * cells + "░" * (BAR - cells)
    return f"{drawn}  {_up(spent)} spent, {_down(whole - spent)} left of {_up(whole)}"


def _filter_rows(account: Account, kept: MomentFilter, next_: Cost) -> list[tuple[str, str]]:
    spent = account.spent
    assert isinstance(spent, MomentCost)  # under a filter
    rows = [("ε", _drawn(kept.epsilon_spent(spent), kept.epsilon))]
    if kept.delta_kept:
        rows.append(("δ", _drawn(spent.delta, kept.delta_kept)))
    share = f"{_down(kept.delta_kept)} of it for answers with a δ of their own"
    answers = answers_left(account, next_)
    return [
        *rows,
        ("filter", f"δ {_up(kept.delta)}, {share}; order {exact_text(kept.order)}"),
        ("plain sum", money(spent)),
        ("next", f"{answers:,} more at {money(next_)}"),
    ]


def answers_left(account: Account, price: Cost) -> int:
    """How many answers of this price the filter of an account still allows."""
    kept, spent = account.filter, account.spent
    assert kept is not None and isinstance(spent, MomentCost)
    each = kept.price(epsilon=price.epsilon, delta=price.delta, rho=price.rho)
    return kept.answers_left(spent, each) or 0


def money(amount: Cost | MomentCost | Budget, like: Budget | None = None) -> str:
    """A price or a budget in short; with a budget, in its currencies, also where there is none.

    >>> money(Cost(epsilon=Fraction(1, 2), delta=Fraction(1, 10**9)))
    'ε 0.5, δ 1e-9'
    """
    kept = amount if like is None else like
    parts = [
        f"{letter} {_down(getattr(amount, name)) if like else _up(getattr(amount, name))}"
        for name, letter in LETTERS.items()
        if getattr(kept, name)
    ]
    return ", ".join(parts) or "nothing"


def _up(number: Fraction) -> str:
    exact = exact_text(number)
    return rounded_up(number) if exact.endswith("...") else exact


def _down(number: Fraction) -> str:
    exact = exact_text(number)
    return rounded_down(number) if exact.endswith("...") else exact


def account_json(account: Account, next_: Cost = TYPICAL) -> dict[str, Any]:
    """Exact fractions as text; "left" under a filter is what a single answer may cost."""
    left, kept, filter_ = account.remaining, account.budget, account.filter
    found: dict[str, Any] = {
        "account": account.name,
        "kind": None if kept is None else kept.kind,
        "budget": None if kept is None else {name: str(getattr(kept, name)) for name in LETTERS},
        "spent": account.spent.to_json(),
        "left": None if left is None else left.to_json(),
    }
    if filter_ is not None and isinstance(account.spent, MomentCost):
        found["filter"] = {
            "order": str(filter_.order),
            "delta_kept": str(filter_.delta_kept),
            "limit": str(filter_.limit),
            "epsilon_spent": str(filter_.epsilon_spent(account.spent)),
            "odometer": str(filter_.odometer(account.spent)),
            "next": {"cost": next_.to_json(), "answers": answers_left(account, next_)},
        }
    return found


# ---------------------------------------------------------------- entries


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


def unanswered_parts(reservations: Sequence[Entry]) -> list[Part]:
    """Reservations that nobody has settled: said plainly, with the way to their answers."""
    if not reservations:
        return []
    which = "entry" if len(reservations) == 1 else "entries"
    numbers = ", ".join(str(entry.sequence) for entry in reservations[:MOST_OPEN])
    more = ", ..." if len(reservations) > MOST_OPEN else ""
    return [
        Words(
            f"Charged, not answered: {which} {numbers}{more}. Asked again on the same data, the\n"
            "same question is answered at no further charge. Nothing gives the price back."
        )
    ]


def question_table(entries: Sequence[Entry]) -> Columns:
    """What was asked, newest first."""
    newest = list(reversed(entries))
    cells = [(_when(entry), printable(entry.who or "", 10), _price(entry)) for entry in newest]
    return _entry_table(("when (UTC)", "who", "price", "question"), cells, newest, _asked)


def _entry_table(
    headings: tuple[str, ...], cells: Sequence[tuple[str, ...]], entries: Sequence[Entry], last: Any
) -> Columns:
    """The last column has what is left of a line beside the others and the gaps between them."""
    widths = (max(map(len, column)) + 2 for column in zip(headings[:-1], *cells, strict=True))
    room = max(WIDTH - 4 - sum(widths), LEAST_ROOM)
    rows = [(*row, last(entry, room)) for row, entry in zip(cells, entries, strict=True)]
    return Columns(headings, rows)


def _what(entry: Entry, room: int) -> str:
    match entry.kind:
        case "opened":
            return "opened"
        case "budget":
            return _new_budget(entry.budget, entry.words)
        case "charge" | "reserved":
            price = f"{'reserved ' if entry.kind == 'reserved' else ''}{_price(entry)}: "
            return price + _asked(entry, max(room - len(price), LEAST_ROOM))
        case "settled":
            return "answered, paid before"
        case "voided":
            return "void since a backup was restored; stays charged"
        case "note":
            return printable(entry.words or "", 60)


def _new_budget(budget: Budget | None, words: str | None) -> str:
    if budget is None:
        return "budget without limit"
    return f"budget {budget_words(budget)}{', reopened' if words else ''}"


def budget_words(budget: Budget) -> str:
    """A budget in short, and how it is kept."""
    return money(budget) + (", by the filter" if budget.kind == "filter" else "")


def _when(entry: Entry) -> str:
    return printable(entry.when[:16].replace("T", " "), 16)


def _price(entry: Entry) -> str:
    return "" if entry.cost is None else money(entry.cost)


def _asked(entry: Entry, most: int) -> str:
    """The SQL as it was written; of a question in Python what it asks for, else its digest."""
    if entry.words:
        return printable(entry.words, most)
    try:
        return printable(f"(Python) {title_of(entry.record or {})}", most)
    except (KeyError, TypeError):  # no answer beside it, or one of a stranger's making
        return printable(f"(query {(entry.query or entry.question or '')[:8]})", most)
