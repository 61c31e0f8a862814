"""`lastbit demo`: a hospital that does not exist, asked three questions, beside the truth."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import click

from lastbit.checker import problem_of
from lastbit.cli.demo_data import MARK, Truth, truth, write_card, write_visits
from lastbit.cli.ledger import account_json, budget_rows
from lastbit.cli.options import Command
from lastbit.cli.output import Columns, Facts, Heading, Part, Words, paragraphs, show, waiting
from lastbit.errors import BudgetExceeded, InvalidParameter
from lastbit.files import written_over
from lastbit.ledger import Ledger
from lastbit.release import Answer, released
from lastbit.report import page, price, shown_cell
from lastbit.tables import parsed, planned, read_card
from lastbit.verify import read

FILES = ("visits.parquet", "visits.toml", "visits.ledger", "report.html")
LEAST_ROWS, MOST_ROWS = 10_000, 20_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked, its price, and the statement that gives the truth in the same columns."""

    words: str
    sql: str
    epsilon: str
    truth: str
    keys: int
    delta: str | None = None


_EDGES = (0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 110)
_AGES = ", ".join(
    f"count(*) FILTER (age >= {low} AND age {'<=' if high == _EDGES[-1] else '<'} {high})"
    for low, high in pairwise(_EDGES)
)
QUESTIONS = (
    Question(
        words="How many visits, and what do they cost? The regions are declared on the card.",
        sql="SELECT region, COUNT(*) AS visits, AVG(cost) AS cost FROM visits GROUP BY region",
        epsilon="1",
        truth="SELECT region, count(*), avg(cost) FROM visits GROUP BY region",
        keys=1,
    ),
    Question(
        words="How long do patients wait? The wards are not declared: they are found privately.",
        sql="SELECT ward, COUNT(DISTINCT patient) AS patients, MEDIAN(wait) AS wait FROM visits "
        "GROUP BY ward ORDER BY patients DESC",
        epsilon="1",
        delta="1e-9",
        truth="SELECT ward, count(DISTINCT patient), median(wait) FROM visits GROUP BY ward",
        keys=1,
    ),
    Question(
        words="How old are they?",
        sql=f"SELECT HISTOGRAM(age, {', '.join(map(str, _EDGES))}) AS age FROM visits",
        epsilon="0.5",
        truth=f"SELECT {_AGES} FROM visits",
        keys=0,
    ),
)
TOO_MUCH = Question(
    words="One more, for which the budget does not suffice.",
    sql="SELECT ward, SUM(cost) AS cost FROM visits GROUP BY ward",
    epsilon="1",
    delta="1e-9",
    truth="",
    keys=1,
)


@click.command(cls=Command, epilog="Example: lastbit demo --dir /tmp/hospital")
@click.option(
    "--dir",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("lastbit-demo"),
    show_default=True,
    help="Where the files go. Those of an earlier demo are replaced.",
)
@click.option(
    "--rows",
    type=click.IntRange(LEAST_ROWS, MOST_ROWS),
    default=1_000_000,
    show_default=True,
    help="How many visits to make up.",
)
def demo(folder: Path, rows: int) -> None:
    """Ask a made-up hospital, and see the truth beside the answers.

    Makes a table of visits with its data card, asks about regions, wards and ages, asks the first
    question again (which is free) and one that the budget does not allow (which is refused), writes
    a report, and checks every certificate and the ledger.
    """
    start = time.monotonic()
    _make(folder, rows)
    answers = [_ask(folder, number, question) for number, question in enumerate(QUESTIONS, 1)]
    _ask_again(folder, answers[0])
    _ask_too_much(folder)
    _close(folder, answers, start)


# ---------------------------------------------------------------- the steps


def _make(folder: Path, rows: int) -> None:
    _clear(folder)
    start = time.monotonic()
    with waiting("making up visits"):
        write_visits(folder / "visits.parquet", rows)
    write_card(folder / "visits.toml")
    size = (folder / "visits.parquet").stat().st_size / 1e6
    card = read_card(folder / "visits.toml")
    facts = (
        ("data", f"{folder / 'visits.parquet'} ({size:.1f} MB, {_since(start)})"),
        ("card", f"{folder / 'visits.toml'}: what is public, and what answers may cost"),
        ("protects", f"each patient, with up to {card.max_rows} visits"),
    )
    show(
        Heading("A hospital that does not exist", f"{rows:,} visits"),
        Words(
            "The rows are made up, so the truth may stand beside the private answers here. Of "
            "real people, nobody would see it."
        ),
        Facts(facts),
    )


def _clear(folder: Path) -> None:
    """Make the folder, or remove the files of an earlier demo from it, and nothing else."""
    names = [*FILES, *(_saved(number) for number in range(1, len(QUESTIONS) + 1))]
    found = [folder / name for name in names if (folder / name).exists()]
    card = folder / "visits.toml"
    ours = card.is_file() and card.read_bytes().startswith(MARK.encode())
    if found and not ours:
        raise InvalidParameter(
            "--dir",
            problem=f"names {folder}, which holds files that no demo made",
            remedy="name another folder",
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path in sorted(found, key=lambda path: path == card):  # the mark goes last
            path.unlink()
    except OSError as error:
        raise InvalidParameter(
            "--dir",
            problem=f"cannot be written at {folder} ({error.strerror})",
            remedy="name another folder",
        ) from None


def _ask(folder: Path, number: int, question: Question) -> Answer:
    start = time.monotonic()
    answer = _released(folder, question)
    took = _since(start)
    true = _truth(folder, question)
    answer.save(folder / _saved(number))
    click.echo()
    show(
        Heading(f"Question {number}", f"{price(answer.record['cost'])}   {took}"),
        Words(question.words),
        Words(_command(folder, question)),
        beside_the_truth(answer.record, true),
        *paragraphs(unseen(answer.record, true)),
        Facts(budget_rows(_ledger(folder).accounts()[0])),
    )
    return answer


def _ask_again(folder: Path, first: Answer) -> None:
    head = _ledger(folder).head
    again = _released(folder, QUESTIONS[0])
    if again.record != first.record or _ledger(folder).head != head:
        raise _failed("the recorded answer is another one, or was charged")
    click.echo()
    show(
        Heading("Question 1 again", "recorded, no charge"),
        Words(
            "The ledger gives the answer it has. New noise can be had by --fresh, at its price; "
            "else anybody could ask until the noise averages out."
        ),
    )


def _ask_too_much(folder: Path) -> None:
    try:
        _released(folder, TOO_MUCH)
    except BudgetExceeded as error:
        refusal = f"Error: {error}"
    else:
        raise _failed("the budget was exceeded")
    click.echo()
    words = (TOO_MUCH.words, _command(folder, TOO_MUCH), refusal)
    show(Heading("Question 4", "refused"), *paragraphs(words))


def _close(folder: Path, answers: list[Answer], start: float) -> None:
    ledger = _ledger(folder)
    account = account_json(ledger.accounts()[0])
    records = [answer.record for answer in answers]
    title = "Three questions to a hospital that does not exist"
    written_over(folder / "report.html", page(*records, title=title, account=account))
    saved = [folder / _saved(number) for number in range(1, len(answers) + 1)]
    problems = [problem for file in saved if (problem := problem_of(read(file))) is not None]
    problems += ledger.problems()
    if problems:
        raise _failed("; ".join(problems))
    held, cells = coverage(records, [_truth(folder, question) for question in QUESTIONS])
    facts = (
        ("intervals", f"{held} of {cells} hold the truth; they are made to hold in 95 %"),
        ("certificates", f"{len(saved)} accepted by the independent checker (lastbit check)"),
        ("ledger", "every entry fits (lastbit ledger verify)"),
        ("report", str(folder / "report.html")),
    )
    click.echo()
    show(
        Heading("All of it, checked", _since(start)),
        Facts(facts),
        Words(
            f"Next:  lastbit budget {folder / 'visits.toml'}\n"
            f"       lastbit query {folder / 'visits.toml'} \\\n"
            '         "SELECT region, MEDIAN(age) AS age FROM visits GROUP BY region" \\\n'
            "         --epsilon 0.25 --explain"
        ),
    )


# ---------------------------------------------------------------- beside the truth


def beside_the_truth(record: Mapping[str, Any], truth: Truth) -> Part:
    """The answer with the true number right of every interval; only a made-up table may show it."""
    names = [column["name"] for column in record["columns"] if column["role"] == "value"]
    keys = [column["name"] for column in record["columns"] if column["role"] == "key"]

    def cells(row: Mapping[str, Any], true: tuple[Any, ...]) -> Iterator[tuple[str, str, str]]:
        for cell, number in zip(row["cells"], true, strict=True):
            shown = shown_cell(cell)
            # the true number with as many digits as the answer has
            yield shown.value, shown.interval, shown_cell({**cell, "value": number}).value

    if not keys:
        (row,), (true,) = record["rows"], truth.values()
        lines = [(name, *three) for name, three in zip(names, cells(row, true), strict=True)]
        return Columns(("what", "value", "± 95 %", "truth"), lines, numbers=(1, 2, 3))
    headings = (*keys, *(word for name in names for word in (name, "± 95 %", "truth")))
    groups = ((_group(row), row) for row in record["rows"])
    rows = [
        (*map(str, group), *(word for three in cells(row, truth[group]) for word in three))
        for group, row in groups
    ]
    return Columns(headings, rows, numbers=range(len(keys), len(headings)))


def unseen(record: Mapping[str, Any], truth: Truth) -> Iterator[str]:
    """Which groups are in the table and not in the answer."""
    hidden = sorted(set(truth) - {_group(row) for row in record["rows"]})
    if hidden:
        names = ", ".join(f"{' '.join(group)} ({truth[group][0]})" for group in hidden)
        yield (
            f"Not shown, since too few patients were there: {names}. The answer does not even say "
            "that they exist."
        )


def coverage(records: Sequence[Mapping[str, Any]], truths: Sequence[Truth]) -> tuple[int, int]:
    """How many intervals hold the true number, and how many there are."""
    held = [
        cell["low"] <= number <= cell["high"]
        for record, truth in zip(records, truths, strict=True)
        for row in record["rows"]
        for cell, number in zip(row["cells"], truth[_group(row)], strict=True)
    ]
    return sum(held), len(held)


def _group(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(key["value"] for key in row["keys"])


# ---------------------------------------------------------------- pieces


def _released(folder: Path, question: Question) -> Answer:
    card = read_card(folder / "visits.toml")
    asked = parsed(question.sql, card)
    plan = planned(asked, card, epsilon=question.epsilon, delta=question.delta)
    with waiting("asking"):
        return released(asked, card, plan, sql=question.sql)


def _ledger(folder: Path) -> Ledger:
    return Ledger.existing(folder / "visits.ledger")


def _truth(folder: Path, question: Question) -> Truth:
    return truth(folder / "visits.parquet", question.truth, keys=question.keys)


def _command(folder: Path, question: Question) -> str:
    """The question as somebody would type it."""
    price = f"--epsilon {question.epsilon}"
    price += f" --delta {question.delta}" if question.delta else ""
    inner = question.sql.replace(" FROM ", "\n   FROM ")
    return f'$ lastbit query {folder / "visits.toml"} {price} \\\n  "{inner}"'


def _failed(problem: str) -> click.ClickException:
    """What should never happen, and what a demo must not hide."""
    return click.ClickException(f"the demo failed its own check: {problem}")


def _saved(number: int) -> str:
    return f"answer-{number}.json"


def _since(start: float) -> str:
    return f"{time.monotonic() - start:.1f} s"
