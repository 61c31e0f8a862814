"""`lastbit ledger`: check, read and copy the books."""

from __future__ import annotations

import json
import stat
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lastbit.errors import InvalidParameter

if TYPE_CHECKING:
    from lastbit.cli.page import Part
    from lastbit.ledger import Ledger

ledger_argument = click.argument("file", type=click.Path(path_type=Path), metavar="LEDGER")
heads_option = click.option(
    "--head",
    "heads",
    multiple=True,
    metavar="HASH",
    help="The hash of an entry, as an answer quotes it (entry.hash): it must be there.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group(epilog="Example: lastbit ledger verify hospital.ledger")
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
    from lastbit.cli.page import Facts, Heading, Words, show, show_json
    from lastbit.cli.waiting import waiting
    from lastbit.ledger import Ledger

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
        first, last = books.entry(1), books.entries(last=1)[0]
        facts = (
            ("entries", f"{last.sequence}, from {first.when[:10]} to {last.when[:10]}"),
            ("accounts", str(len(books.accounts()))),
            ("head", books.head),
        )
        parts: list[Part] = [Heading(str(file), "every entry fits"), Facts(facts)]
        parts += _unanswered_heads(books, heads)
        if not heads:
            parts.append(
                Words(
                    "Note the head elsewhere: without one, nobody can tell this file from an\n"
                    "older copy of it."
                )
            )
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
    from lastbit.cli.ledger_view import entry_json, entry_table, with_answers
    from lastbit.cli.page import Heading, show, show_json
    from lastbit.ledger import Ledger

    books = Ledger.existing(file)
    entries = books.entries(account, last=last)
    if as_json:
        show_json({"entries": [entry_json(entry) for entry in entries]})
        return
    show(Heading(str(file), f"{len(entries)} entries"), entry_table(with_answers(books, entries)))


@ledger.command(epilog="Example: lastbit ledger export hospital.ledger --out entries.jsonl")
@ledger_argument
@click.option("--out", type=click.Path(path_type=Path), help="Write to this file.")
def export(file: Path, out: Path | None) -> None:
    """Every entry with its answer, one JSON a line.

    The ledger's secret stays inside. The hash of an entry is SHA-256 of its fields, written as JSON
    with sorted names and no blanks.
    """
    from lastbit.cli.files import check_folder
    from lastbit.ledger import Ledger, exported

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
@click.argument("copy", type=click.Path(path_type=Path))
def backup(file: Path, copy: Path) -> None:
    """Copy a ledger, also while it is in use."""
    from lastbit.cli.page import Facts, show
    from lastbit.ledger import Ledger

    Ledger.existing(file).backup(copy)
    show(Facts((("written", str(copy)), ("head", Ledger.existing(copy).head))))


@ledger.command(epilog="Example: lastbit ledger restore 2026-10-02.ledger hospital.ledger")
@click.argument("copy", type=click.Path(path_type=Path), metavar="BACKUP")
@ledger_argument
@heads_option
def restore(copy: Path, file: Path, heads: tuple[str, ...]) -> None:
    """Put a backup to use where there is no ledger.

    What was spent after the backup is not in it. Give entry.hash of the newest answer that anybody
    has (--head), and an older backup is refused. The restoring is recorded. What was charged and
    not answered in the backup stays charged and is void: to ask it again costs again.
    """
    from lastbit.cli.budget import user_name
    from lastbit.cli.page import Facts, Words, show
    from lastbit.ledger import restored

    _check_heads(heads)
    books = restored(copy, file, who=user_name(), heads=heads)
    entries = books.entries()
    void = 0
    while entries[-1 - void].kind == "voided":  # they follow the note of the restoring
        void += 1
    last = entries[-2 - void].when[:16].replace("T", " ")
    parts: list[Part] = [
        Facts((("restored", str(file)), ("its last entry", f"{last} UTC"))),
        Words("Whatever was answered after that is not in it, and its price is forgotten."),
    ]
    if void:
        parts.append(
            Words(
                f"Charged and not answered in it: {void}. They stay charged and are void, since\n"
                "somebody may have seen their answers; to ask the same again costs again."
            )
        )
    show(*parts, *_unanswered_heads(books, heads))


def _unanswered_heads(books: Ledger, heads: tuple[str, ...]) -> list[Part]:
    """Of hashes that are there: which prove that a price is, and not that its answer is."""
    from lastbit.cli.page import Words

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
                "--head", problem="is no hash", remedy="copy its 64 hexadecimal digits"
            )
