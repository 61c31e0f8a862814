"""`lastbit ledger`: check, read and copy the books; accounts and entries as lines and as JSON."""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import click

from lastbit.addresses import Address
from lastbit.cli.files import check_folder
from lastbit.cli.options import PATH, flag, group, json_option, option, refusal
from lastbit.cli.output import (
    WIDTH,
    Columns,
    Facts,
    Heading,
    Part,
    printable,
    show,
    show_json,
    waiting,
)
from lastbit.files import exists
from lastbit.ledger import (
    Account,
    Connections,
    Entry,
    Ledger,
    Limit,
    anchor_noted,
    anchored,
    exported,
    restored,
    user_name,
)
from lastbit.place_names import is_address
from lastbit.privacy import GaussianCost, MomentCost, MomentFilter
from lastbit.release import accept_data, record_problem
from lastbit.report import (
    amount,
    answers_left,
    epsilon_taken,
    register_csv,
    register_page,
    title_of,
    typical_price,
)
from lastbit.tables import Budget, Cost, DataCard, read_card

BAR = 32
DIGITS = 6
_amount = partial(amount, digits=DIGITS)
LEAST_ROOM = 20
MOST_OPEN = 8
FORMATS = ("jsonl", "csv", "html")
LETTERS: Mapping[str, str] = MappingProxyType({"epsilon": "ε", "delta": "δ", "rho": "ρ"})
HAPPENED: Mapping[str, str] = MappingProxyType(
    {
        "opened": "opened",
        "drawn": "numbers drawn; an earlier entry paid",
        "settled": "answered; an earlier entry paid",
        "voided": "void since a backup was restored; stays charged",
    }
)
REOPENED = re.compile(
    r"kept by the (?:moment|Gaussian) filter from here on; charges before it: (\d{1,18})"
)
OLDER_COPY = """\
Note the head elsewhere: without one, there is no telling this ledger from an
older copy of it."""


class LedgerPlace(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.5 on
    """The path of a file, or the address of a database."""

    name = "ledger"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Path | Address:
        if isinstance(value, Path | Address):
            return value
        return Address.read(str(value), "schema") if is_address(value) else Path(str(value))


PLACE = LedgerPlace()
ledger_argument = click.argument("file", type=PLACE, metavar="LEDGER")


def _checked(_: click.Context, __: click.Parameter, heads: tuple[str, ...]) -> tuple[str, ...]:
    if any(len(head) != 64 or set(head) - set("0123456789abcdef") for head in heads):
        raise refusal("--head", "is not a hash", "copy its 64 hexadecimal digits")
    return heads


heads_option = option(
    "--head",
    "The hash of an entry, as an answer quotes it (entry.hash): it must be there.",
    "HASH",
    dest="heads",
    multiple=True,
    callback=_checked,
)


anchors_option = option(
    "--anchor",
    "A file or a ledger in which heads were noted by lastbit ledger anchor: they must be there.",
    PLACE,
    dest="anchors",
    multiple=True,
)


@group("ledger verify hospital.ledger")
def ledger() -> None:
    """Check, read and copy a ledger: who spent what."""


@ledger.command(example="verify hospital.ledger --head 3f9a...")
@ledger_argument
@heads_option
@anchors_option
@json_option
@click.pass_context
def verify(
    context: click.Context,
    file: Path | Address,
    heads: tuple[str, ...],
    anchors: tuple[Path | Address, ...],
    as_json: bool,
) -> None:
    """Work out every hash, sum and answer again.

    The exit status is 0 if all fits, 1 if something was changed, 2 if the ledger cannot be read. An
    older copy in its place fits too. Only the hash of a newer entry, noted elsewhere, tells:
    --head, or --anchor (several times). The entry.hash of its record proves that an answer is in
    the ledger. The body.ledger of its certificate is the price paid before it.
    """
    books = Ledger.existing(file)
    heads += tuple(head for anchor in anchors for head in anchored(books, anchor))
    with waiting("checking"):
        problems = books.problems(heads)
    if as_json:
        head = None if problems else books.head
        told = {str(number): why for number, why in books.no_answers().items()}
        show_json({"ledger": str(file), "problems": problems, "head": head, "no_answers": told})
    elif problems:
        show(Heading(str(file), "DOES NOT FIT"), *(f"- {words}." for words in problems))
    else:
        entries = books.entries()
        first, last = (entries[place].when[:10] for place in (0, -1))
        facts = (
            ("entries", f"{entries[-1].sequence}, from {first} to {last}"),
            ("accounts", str(len(books.accounts()))),
            ("head", entries[-1].hash),
        )
        parts = [Heading(str(file), "every entry fits"), Facts(facts), *_unanswered(books, heads)]
        parts += _no_answers(books)
        if not heads:
            parts.append(OLDER_COPY)
        if isinstance(file, Path) and file.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            parts.append("Others than its owner may read or write the file: chmod 600.")
        show(*parts)
    context.exit(1 if problems else 0)


@ledger.command(example="log hospital.ledger --last 50")
@ledger_argument
@option("--account", "Only this table's entries.", str)
@option("--last", "How many.", click.IntRange(1), default=20)
@json_option
def log(file: Path | Address, account: str | None, last: int, as_json: bool) -> None:
    """The last entries, oldest first."""
    books = Ledger.existing(file)
    entries = books.entries(account, last=last)
    if as_json:  # the fields of each and its hash, without its answer
        show_json({"entries": [{**json.loads(e.text), "hash": e.hash} for e in entries]})
        return
    cells = [
        (str(e.sequence), _when(e), printable(e.who or "", 8), printable(e.account or "", 12))
        for e in entries
    ]
    headings = ("#", "when (UTC)", "who", "account", "what")
    table = _entry_table(headings, cells, with_answers(books, entries), _what)
    show(Heading(str(file), f"{len(entries)} entries"), replace(table, numbers=(0,)))


@ledger.command(example="export hospital.ledger --format html --out register.html")
@ledger_argument
@option("--out", "Write to this file.", PATH)
@option("--format", "All entries, or the register of releases.", FORMATS, default="jsonl")
def export(file: Path | Address, out: Path | None, format: str) -> None:
    """Every entry with its answer, one JSON a line; or the register of releases.

    The ledger's secret stays inside. The hash of an entry is SHA-256 of its fields, written as JSON
    with sorted names and no blanks. The register (csv, html) has a line for each answer. It says
    when, the table, the question, its price, in whose name, the digest of its certificate, and the
    entry.
    """
    books = Ledger.existing(file)
    if out is not None:
        check_folder(out)
        if out.exists():  # it might be the ledger itself, under another name
            raise refusal("--out", "exists", "name a new file")
    try:
        with nullcontext(None) if out is None else out.open("x", encoding="utf-8") as target:
            if format == "jsonl":
                for entry in exported(books):
                    click.echo(json.dumps(entry, sort_keys=True), file=target)
            else:
                told = register_page if format == "html" else register_csv
                click.echo(str(told(books, record_problem)), file=target, nl=False)
    except OSError as error:
        raise refusal(
            "--out", f"cannot be written ({error.strerror})", "name another file"
        ) from error


@ledger.command(example="backup hospital.ledger 2026-10-02.ledger")
@ledger_argument
@click.argument("copy", type=PATH)
def backup(file: Path | Address, copy: Path) -> None:
    """Copy a ledger to a file, also while it is in use."""
    Ledger.existing(file).backup(copy)
    show(Facts((("written", str(copy)), ("head", Ledger.existing(copy).head))))


@ledger.command(example="init postgresql://admin@db.example.org/books")
@ledger_argument
def init(file: Path | Address) -> None:
    """Make a new ledger, where there is none.

    In PostgreSQL this makes a schema (lastbit, or ?schema=NAME of the address), its tables,
    functions and four roles. NAME_owner cannot sign in, NAME_steward may change budgets,
    NAME_analyst may ask, NAME_auditor may read. Sign in as a role that may create roles and
    schemas; people are then granted one of the other three.
    """
    books = Ledger.init(file)
    parts: list[Part] = [Facts((("made", str(file)), ("head", books.head)))]
    if isinstance(books.path, Address):
        schema = books.path.extra.get("schema", "lastbit")
        parts.append(
            f"Let people in, as an administrator: GRANT {schema}_analyst TO ada. A card that\n"
            "several people use names the address without a user."
        )
    show(*parts)


@ledger.command(example="upgrade postgresql://admin@db.example.org/books")
@ledger_argument
def upgrade(file: Path | Address) -> None:
    """Bring an older ledger to today's tables and functions.

    Needed in PostgreSQL alone, once, by somebody who may act as NAME_owner. Every entry stays as it
    is. A ledger whose tables, functions or rights were changed is refused, as always.
    """
    done = Ledger.upgrade(file)
    facts = (
        ("upgraded" if done else "needs nothing", str(file)),
        ("head", Ledger.existing(file).head),
    )
    show(Facts(facts))


@ledger.command(example="copy hospital.ledger postgresql://admin@db.example.org/books")
@click.argument("source", type=PLACE, metavar="FROM")
@click.argument("target", type=PLACE, metavar="TO")
@heads_option
def copy(source: Path | Address, target: Path | Address, heads: tuple[str, ...]) -> None:
    """Move the books to another place, with every entry and its hash.

    From a file to PostgreSQL, or back. All is checked on the way, and nothing is replaced. The copy
    ends with a note. What was charged and not answered stays charged. It is void in the copy, since
    the old ledger may still answer it. Both hold the whole budget then: put the old one away.
    """
    books = restored(source, target, who=user_name(), heads=heads, words="copied from a ledger")
    show(
        Facts((("copied to", str(target)), ("head", books.head))),
        "Two ledgers hold this budget now. Name the new one on every card, and put the old\n"
        "one away, where no one asks with it.",
    )


@ledger.command(example="accept visits.toml")
@click.argument("card", type=PATH)
def accept(card: Path) -> None:
    """Let the data of a card be asked about as they are now.

    For cards that say [ledger] data = "accepted". When the source changes, no question is answered
    until a steward accepts the new version. The acceptance is recorded for everybody to see.
    """
    read = read_card(card)
    entry = accept_data(read)
    note = "" if read.accepted_data else 'The card does not say [ledger] data = "accepted" yet.'
    facts = Facts((("accepted", printable(read.name, 40)), ("entry", str(entry.sequence))))
    show(*([facts, note] if note else [facts]))


@ledger.command(example='withdraw hospital.ledger 12 --why "not an answer of ours"')
@ledger_argument
@click.argument("entry", type=click.IntRange(1))
@option("--why", "The reason, for everybody to read.", str, required=True)
def withdraw(file: Path | Address, entry: int, why: str) -> None:
    """Use the answer of an entry no more; a steward decides it.

    For what somebody made up, or what cannot be read. Its price stays charged, since an answer may
    have been seen. To ask the same question again costs again.
    """
    books = Ledger.existing(file)
    done = books.withdraw(entry, words=why, who=books.user)
    show(Facts((("withdrawn", f"the answer of entry {entry}"), ("entry", str(done.sequence)))))


@ledger.command(example="anchor hospital.ledger /mnt/elsewhere/heads.txt")
@ledger_argument
@click.argument("anchor", type=PLACE)
@flag("--another", "The anchor has heads of other ledgers, and this is a further one.")
def anchor(file: Path | Address, anchor: Path | Address, another: bool) -> None:
    """Note the head of a ledger elsewhere, so that a chain that was rewritten is seen.

    ANCHOR is a file, to which a line is added, or another ledger, to which a note is added. It must
    be where those who could rewrite the ledger cannot write. What was noted there before must still
    be in the ledger. See lastbit ledger verify --anchor.
    """
    books = Ledger.existing(file)
    noted = anchor_noted(books, anchor, who=user_name(), another=another)
    show(Facts((("noted in", str(anchor)), ("entry", str(noted.sequence)), ("head", noted.hash))))


@ledger.command(example="restore 2026-10-02.ledger hospital.ledger")
@click.argument("copy", type=PLACE, metavar="BACKUP")
@ledger_argument
@heads_option
def restore(copy: Path | Address, file: Path | Address, heads: tuple[str, ...]) -> None:
    """Put a backup to use where there is no ledger.

    What was spent after the backup is not in it. Give entry.hash of the newest answer that anybody
    has (--head), and an older backup is refused. The restoring is recorded. What was charged and
    not answered in the backup stays charged and is void: to ask it again costs again.
    """
    books = restored(copy, file, who=user_name(), heads=heads)
    entries = books.entries()
    void = 0
    while entries[-1 - void].kind == "voided":  # they follow the note of the restoring
        void += 1
    parts: list[Part] = [
        Facts((("restored", str(file)), ("its last entry", f"{_when(entries[-2 - void])} UTC"))),
        "Whatever was answered after that is not in it, and its price is forgotten.",
    ]
    if void:
        parts.append(
            f"Charged and not answered in it: {void}. They stay charged and are void, since\n"
            "somebody may have seen their answers; to ask the same again costs again."
        )
    show(*parts, *_unanswered(books, heads))


def _no_answers(books: Ledger) -> list[Part]:
    """Entries that are charged as answers and hold none, and what a steward can do about them."""
    found = books.no_answers()
    if not found:
        return []
    lines = [f"- entry {number} {why}." for number, why in list(found.items())[:MOST_OPEN]]
    more = [f"- and {len(found) - MOST_OPEN:,} more."] if len(found) > MOST_OPEN else []
    return [
        "Charged, and no answer: somebody wrote a record of their own making. Nobody is\n"
        "shown it. A steward can close it for good: lastbit ledger withdraw.",
        "\n".join([*lines, *more]),
    ]


def _unanswered(books: Ledger, heads: tuple[str, ...]) -> list[Part]:
    """Of hashes that are there: which prove that a price is, and not that its answer is."""
    if not heads:
        return []
    paid = {entry.hash: entry for entry in books.entries() if entry.kind == "reserved"}
    return [
        (
            f"{head[:8]}... is a price whose answer is not in this ledger. If anybody has the\n"
            "answer, this file is older than it: look for a newer one."
        )
        for head in heads
        if head in paid and books.answer_to(paid[head]) is None
    ]


def ledger_of_card(card: DataCard, connections: Connections | None = None) -> Ledger | None:
    """The ledger of a table; one that is not there yet is not made."""
    if card.ledger is None or not (is_address(card.ledger) or exists(card.ledger)):
        return None
    return Ledger.existing(card.ledger, connections=connections)


def account_of(
    card: DataCard, connections: Connections | None = None
) -> tuple[Ledger | None, Account]:
    """The account of a table as it is now, and its ledger, if that is there."""
    new, books = (
        Account(name=card.account_name, budget=card.budget),
        ledger_of_card(card, connections),
    )
    if books is None:
        return None, new
    return books, next((one for one in books.accounts() if one.name == card.account_name), new)


def account_heading(account: Account) -> Heading:
    """Its name, and what is left."""
    left = account.remaining
    verdict = "no limit" if left is None else f"{money(left, account.budget)} left"
    if isinstance(left, MomentCost | GaussianCost):
        verdict = f"an answer of up to {money(left, account.budget)}"
    return Heading(printable(account.name, 40), verdict)


def budget_rows(account: Account, next_: Cost | None = None) -> list[tuple[str, str]]:
    """A bar for each currency; with nothing spent and no limit, for epsilon.

    With a price `next_` also how many answers of it still fit. Under a filter the plain sums too,
    the odometer, and what an answer of that price (else of a tenth of the budget) would take of
    epsilon.
    """
    if account.filter is not None:
        return _filter_rows(account, account.filter, next_ or typical_price(account, ()))
    kept = account.budget if account.budget is not None else account.spent
    names = [name for name in LETTERS if getattr(kept, name)] or ["epsilon"]
    bars = []
    for name in names:
        spent: Fraction = getattr(account.spent, name)
        bar = f"{_amount(spent, up=True)} spent, no limit"
        if account.budget is not None:
            bar = _drawn(spent, getattr(account.budget, name))
        bars.append((LETTERS[name], bar))
    if next_ is None or answers_left(account, next_) is None:
        return bars
    return [*bars, ("next", _next_words(account, next_))]


def _drawn(spent: Fraction, whole: Fraction) -> str:
    cells = BAR if spent else 0
    if spent not in (0, whole):  # empty only if nothing is spent, full only if nothing is left
        cells = min(max(round(BAR * spent / whole), 1), BAR - 1)
    drawn = "█" * cells + "░" * (BAR - cells)
    left, of = _amount(whole - spent, up=False), _amount(whole, up=True)
    return f"{drawn}  {_amount(spent, up=True)} spent, {left} left of {of}"


def _filter_rows(account: Account, kept: Any, next_: Cost) -> list[tuple[str, str]]:
    spent: Any = account.spent
    rows = [("ε", _drawn(kept.epsilon_spent(spent), kept.epsilon))]
    if kept.delta_kept:
        rows.append(("δ", _drawn(spent.delta, kept.delta_kept)))
    share = f"{_amount(kept.delta_kept, up=False)} of it for answers with a δ of their own"
    odometer = _amount(kept.odometer(spent), up=True)
    which = "Gaussian"
    if isinstance(kept, MomentFilter):
        which = f"order {_amount(kept.order, up=True)}"
    surely = f"except with probability {_amount(kept.delta, up=True)}"
    return [
        *rows,
        ("filter", f"δ {_amount(kept.delta, up=True)}, {share}; {which}"),
        ("plain sum", money(spent)),
        ("odometer", f"no loss above ε {odometer} so far, {surely}"),
        ("next", _next_words(account, next_)),
    ]


def _next_words(account: Account, price: Cost) -> str:
    more = answers_left(account, price)
    if not more:
        return f"{money(price)} does not fit any more"
    took = None if account.filter is None else epsilon_taken(account, price)
    if took is None:
        return f"{more:,} more at {money(price)} each"
    return f"{money(price)} would take ε {_amount(took, up=True)}; {more:,} more fit"


def reopened_after(entries: Sequence[Entry]) -> int:
    """How many answers an account had given by plain sums when the filter took over; 0 if none."""
    for entry in entries:
        found = REOPENED.fullmatch(entry.words or "") if entry.kind == "budget" else None
        if found is not None:
            return int(found[1])
    return 0


def reopened_words(answers: int) -> str:
    """The caution about an account that was reopened."""
    what = "1 answer was" if answers == 1 else f"{answers:,} answers were"
    return (
        f"Caution: {what} given by plain sums before the filter took over. Its promise\n"
        "covers them too if they did not decide whether and how to reopen the account."
    )


def money(
    paid: Cost | MomentCost | GaussianCost | Budget | Limit,
    like: Budget | Limit | None = None,
) -> str:
    """A price or a budget in short; with a budget, in its currencies, also where there is none.

    >>> money(Cost(epsilon=Fraction(1, 2), delta=Fraction(1, 10**9)))
    'ε 0.5, δ 1e-9'
    """
    kept = paid if like is None else like
    parts = [
        f"{letter} {amount(getattr(paid, name), up=like is None, digits=DIGITS)}"
        for name, letter in LETTERS.items()
        if getattr(kept, name)
    ]
    return ", ".join(parts) or "nothing"


def with_answers(books: Ledger, entries: Sequence[Entry]) -> list[Entry]:
    """The entries, and beside those of questions without SQL their answers, to say what it was."""
    found = []
    for entry in books.with_answers(entries):
        told = entry
        if entry.kind == "reserved" and not entry.words:
            answer = books.answer_to(entry)
            told = entry if answer is None else replace(entry, record=answer.record)
        if told.record is not None and record_problem(told.record) is not None:
            told = replace(told, record=None)
        found.append(told)
    return found


def unanswered_words(reservations: Sequence[Entry]) -> str:
    """Reservations that nobody has settled: said plainly, with the way to their answers."""
    which = "entry" if len(reservations) == 1 else "entries"
    numbers = ", ".join(str(entry.sequence) for entry in reservations[:MOST_OPEN])
    more = ", ..." if len(reservations) > MOST_OPEN else ""
    return (
        f"Charged, not answered: {which} {numbers}{more}. Asked again on the same data, the\n"
        "same question is answered at no further charge. Nothing gives the price back."
    )


def question_table(entries: Sequence[Entry]) -> Columns:
    """What was asked, newest first."""
    newest = list(reversed(entries))
    cells = [
        (_when(entry), printable(entry.principal or entry.who or "", 10), _price(entry))
        for entry in newest
    ]
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
        case "budget" if (entry.words or "").startswith("data of "):
            return printable(entry.words or "", 60)
        case "budget":
            whole = "without limit" if entry.budget is None else budget_words(entry.budget)
            return f"budget {whole}{', reopened' if entry.budget and entry.words else ''}"
        case "charge" | "settled" if entry.unreadable:
            return printable(f"unreadable entry, stays charged: {entry.unreadable}", 60)
        case "withdrawn":
            return printable(f"answer withdrawn, stays charged: {entry.words}", 60)
        case "charge" | "reserved":
            price = f"{'reserved ' if entry.kind == 'reserved' else ''}{_price(entry)}: "
            return price + _asked(entry, max(room - len(price), LEAST_ROOM))
        case "note":
            return printable(entry.words or "", 60)
        case "voided" if entry.words:
            return printable(f"not answered, stays charged: {entry.words}", 60)
        case "opened" | "drawn" | "settled" | "voided":
            return HAPPENED[entry.kind]
        case "principal":
            return printable(f"{entry.principal}: {entry.role or 'removed'}", 60)
        case "allowance":
            return printable(f"allowance of {entry.principal}: {limit_words(entry.limit)}", 60)


def limit_words(limit: Limit | None) -> str:
    """What an allowance allows, in short."""
    if limit is None:
        return "removed"
    return f"{money(limit)}{f' a {limit.period}' if limit.period else ''}"


def budget_words(budget: Budget) -> str:
    """A budget in short, and how it is kept."""
    return money(budget) + {
        "filter": ", by the filter",
        "gaussian": ", by the Gaussian filter",
    }.get(budget.kind, "")


def _when(entry: Entry) -> str:
    return printable(entry.when[:16].replace("T", " "), 16)


def _price(entry: Entry) -> str:
    return "" if entry.cost is None else money(entry.cost)


def _asked(entry: Entry, most: int) -> str:
    """The SQL as it was written; of a question in Python what it asks for, else its digest."""
    if entry.words:
        return printable(entry.words, most)
    if entry.record is not None:
        title = title_of(entry.record)
        return printable(title if title.startswith("profile: ") else f"(no SQL) {title}", most)
    return printable(f"(query {(entry.query or entry.question or '')[:8]})", most)
