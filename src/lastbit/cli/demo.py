"""`lastbit demo`: a hospital that does not exist, asked three questions, beside the truth."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

import click
import duckdb

from lastbit.checker import problem_of
from lastbit.cli.ledger import budget_rows
from lastbit.cli.options import command, flag, option, refusal
from lastbit.cli.output import Columns, Facts, Heading, Part, show, waiting
from lastbit.cli.serve import check_extra, run
from lastbit.errors import BudgetExceeded
from lastbit.exact import exact_text
from lastbit.files import written_over
from lastbit.ledger import Ledger, Limit, Role
from lastbit.release import Answer, accept_data, released
from lastbit.report import account_json, page, price, shown_cell
from lastbit.serve import Settings
from lastbit.tables import parsed, planned, read_card
from lastbit.verify import read

if TYPE_CHECKING:  # needs the extra
    from lastbit.serve import Started

Truth: TypeAlias = Mapping[tuple[Any, ...], tuple[Any, ...]]

MARK = "# Made by lastbit demo, of a hospital that does not exist."
FILES = ("visits.parquet", "visits.toml", "visits.ledger", "report.html")
STATE = "visits.serve"
SLOT = 2.0  # seconds; a question about a million visits takes a fraction of one
USERS: Mapping[str, Role] = MappingProxyType(
    {"sofia": "steward", "ana": "analyst", "otto": "auditor"}
)
MONTHLY = Fraction(2)  # of epsilon
MANY_ROWS = click.IntRange(10_000, 20_000_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked, its price, and the statement that gives the truth in the same columns."""

    words: str
    sql: str
    epsilon: str
    truth: str = ""
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
    ),
    Question(
        words="How long do patients wait? The wards are not declared: they are found privately.",
        sql="SELECT ward, COUNT(DISTINCT patient) AS patients, MEDIAN(wait) AS wait FROM visits "
        "GROUP BY ward ORDER BY patients DESC",
        epsilon="1",
        delta="1e-9",
        truth="SELECT ward, count(DISTINCT patient), median(wait) FROM visits GROUP BY ward",
    ),
    Question(
        words="How old are they?",
        sql=f"SELECT HISTOGRAM(age, {', '.join(map(str, _EDGES))}) AS age FROM visits",
        epsilon="0.5",
        truth=f"SELECT {_AGES} FROM visits",
    ),
)
TOO_MUCH = Question(
    words="One more, for which the budget does not suffice.",
    sql="SELECT ward, SUM(cost) AS cost FROM visits GROUP BY ward",
    epsilon="1",
    delta="1e-9",
)


@command("demo --dir /tmp/hospital")
@option(
    "--dir",
    "Where the files go. Those of an earlier demo are replaced.",
    click.Path(file_okay=False, path_type=Path),
    dest="folder",
    default=Path("lastbit-demo"),
)
@option("--rows", "How many visits to make up.", MANY_ROWS, default=1_000_000)
@flag("--serve", "Serve it to three users in a browser instead, until Ctrl-C.", dest="serving")
@option("--port", "Where to serve it; 0 takes a free one.", click.IntRange(0, 65535), default=8000)
def demo(folder: Path, rows: int, serving: bool, port: int) -> None:
    """Ask a made-up hospital, and see the truth beside the answers.

    Makes a table of visits with its data card, and asks about regions, wards and ages. Asks the
    first question again, which is free, and one beyond the budget, which is refused. Writes a
    report, and checks every certificate and the ledger.

    With --serve, lastbit serve runs on the same hospital. A steward, an analyst with an allowance
    and an auditor each get a one-time link. It begins afresh each time.
    """
    start = time.monotonic()
    if serving:
        check_extra()
        from lastbit.serve import last_run  # needs the extra

        before = last_run(folder / STATE)  # which is cleared with all that it was about
        _make(folder, rows)
        _serve(folder, port, before)
        return
    _make(folder, rows)
    answers = [_ask(folder, number, question) for number, question in enumerate(QUESTIONS, 1)]
    _ask_more(folder, answers[0])
    _close(folder, answers, start)


def _make(folder: Path, rows: int) -> None:
    _clear(folder)
    start = time.monotonic()
    with waiting("making up visits"):
        write_visits(folder / "visits.parquet", rows)
    (folder / "visits.toml").write_text(CARD, "utf-8")
    size = (folder / "visits.parquet").stat().st_size / 1e6
    card = read_card(folder / "visits.toml")
    facts = (
        ("data", f"{folder / 'visits.parquet'} ({size:.1f} MB, {_since(start)})"),
        ("card", f"{folder / 'visits.toml'}: what is public, and what answers may cost"),
        ("protects", f"each patient, with up to {card.max_rows} visits"),
    )
    show(
        Heading("A hospital that does not exist", f"{rows:,} visits"),
        "The rows are made up, so the truth may stand beside the private answers here. Of "
        "real people, nobody would see it.",
        Facts(facts),
    )


def _serve(folder: Path, port: int, before: str | None) -> None:
    """Serve the hospital until Ctrl-C: one user of each role, who come in by one-time links."""
    file = folder / "visits.toml"
    card = read_card(file)
    accept_data(card)  # before there are users: from then on a steward must
    books = _ledger(folder)
    steward, analyst, _ = USERS
    for name, role in USERS.items():
        books.set_principal(name, role, by=steward)
    limit = Limit(epsilon=MONTHLY, delta=Fraction(5, 10**9), period="month")
    books.set_allowance(card.account_name, analyst, limit, by=steward)

    def announce(started: Started) -> None:
        click.echo()
        show(
            Heading("Served", started.address),
            f"Three users, three links, each valid once, for an hour. A browser is one user at a "
            f"time: use private windows for the others. {analyst} may spend "
            f"ε = {exact_text(MONTHLY)} a month. Ctrl-C ends it.",
        )
        if before is not None:
            click.echo(f"\nThe demo before this one: {before}.")
        for name, role in USERS.items():
            click.echo(f"\n  {name}, {role}:\n  {started.links[name]}")  # not folded
        click.echo()

    settings = Settings(cards=(file,), state=folder / STATE, port=port, slot=SLOT)
    run(settings, announce, links_for=tuple(USERS))


def _clear(folder: Path) -> None:
    """Make the folder, or remove the files of an earlier demo from it, and nothing else."""
    names = [*FILES, *(_saved(number) for number in range(1, len(QUESTIONS) + 1))]
    found = [folder / name for name in names if (folder / name).exists()]
    card = folder / "visits.toml"
    ours = card.is_file() and card.read_bytes().startswith(MARK.encode())
    if found and not ours:
        problem = f"names {folder}, which holds files that no demo made"
        raise refusal("--dir", problem, "name another folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path in sorted(found, key=lambda path: path == card):  # the mark goes last
            path.unlink()
        if ours:
            shutil.rmtree(folder / STATE, ignore_errors=True)
    except OSError as error:
        problem = f"cannot be written at {folder} ({error.strerror})"
        raise refusal("--dir", problem, "name another folder") from None


def _ask(folder: Path, number: int, question: Question) -> Answer:
    start = time.monotonic()
    answer = _released(folder, question)
    took = _since(start)
    true = _truth(folder, question)
    answer.save(folder / _saved(number))
    click.echo()
    show(
        Heading(f"Question {number}", f"{price(answer.record['cost'])}   {took}"),
        question.words,
        _command(folder, question),
        beside_the_truth(answer.record, true),
        *unseen(answer.record, true),
        Facts(budget_rows(_ledger(folder).accounts()[0])),
    )
    return answer


def _ask_more(folder: Path, first: Answer) -> None:
    """The first question again, which is free, and one that the budget does not allow."""
    head = _ledger(folder).head
    again = _released(folder, QUESTIONS[0])
    if again.record != first.record or _ledger(folder).head != head:
        raise _failed("the recorded answer is another one, or was charged")
    click.echo()
    show(
        Heading("Question 1 again", "recorded, no charge"),
        "The ledger gives the answer it has. New noise can be had by --fresh, at its price; "
        "else anybody could ask until the noise averages out.",
    )
    try:
        _released(folder, TOO_MUCH)
    except BudgetExceeded as error:
        click.echo()
        words = (TOO_MUCH.words, _command(folder, TOO_MUCH), f"Error: {error}")
        show(Heading("Question 4", "refused"), *words)
    else:
        raise _failed("the budget was exceeded")


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
        ("noise", f"{held} of {cells} intervals hold the truth; they should in 95 % of releases"),
        ("certificates", f"{len(saved)} accepted by the independent checker (lastbit check)"),
        ("ledger", "every entry fits (lastbit ledger verify)"),
        ("report", str(folder / "report.html")),
    )
    click.echo()
    show(
        Heading("All of it, checked", _since(start)),
        Facts(facts),
        f"Next:  lastbit budget {folder / 'visits.toml'}\n"
        f"       lastbit query {folder / 'visits.toml'} \\\n"
        '         "SELECT region, MEDIAN(age) AS age FROM visits GROUP BY region" \\\n'
        "         --epsilon 0.25 --explain",
    )


def beside_the_truth(record: Mapping[str, Any], truth: Truth) -> Part:
    """The answer with the true number right of every interval; only a made-up table may show it."""
    names = [column["name"] for column in record["columns"] if column["role"] == "value"]
    keys = [column["name"] for column in record["columns"] if column["role"] == "key"]

    def cells(row: Mapping[str, Any], true: tuple[Any, ...]) -> Iterator[tuple[str, str, str]]:
        for cell, number in zip(row["cells"], true, strict=True):
            shown = shown_cell(cell)
            # the true number with as many digits as the answer has
            yield shown.value, shown.noise, shown_cell({**cell, "value": number}).value

    groups = [(_group(row), list(cells(row, truth[_group(row)]))) for row in record["rows"]]
    if not keys:
        lines = [(name, *three) for name, three in zip(names, groups[0][1], strict=True)]
        return Columns(("what", "value", "noise", "truth"), lines, numbers=(1, 2, 3))
    headings = (*keys, *(word for name in names for word in (name, "noise", "truth")))
    rows = [(*map(str, group), *sum(threes, ())) for group, threes in groups]
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


def _released(folder: Path, question: Question) -> Answer:
    card = read_card(folder / "visits.toml")
    asked = parsed(question.sql, card)
    plan = planned(asked, card, epsilon=question.epsilon, delta=question.delta)
    with waiting("asking"):
        return released(asked, card, plan, sql=question.sql)


def _ledger(folder: Path) -> Ledger:
    return Ledger.existing(folder / "visits.ledger")


def _truth(folder: Path, question: Question) -> Truth:
    keys = int("GROUP BY" in question.truth)
    return truth(folder / "visits.parquet", question.truth, keys=keys)


def _command(folder: Path, question: Question) -> str:
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


# ---------------------------------------------------------------- the hospital
#
# The same rows on every machine. They come from a fixed scramble of the numbers 0, 1, 2 ... and
# from operations that IEEE 754 fixes to the last bit: nobody's data, and no noise. Most patients
# come about five times, a few every week. Two wards are so small that naming them would say
# something about the people in them.

REGIONS = ("North", "East", "South", "West", "Centre", "Coast", "Hills", "Islands")
ROWS_A_PATIENT = 50 / 9  # on average

CARD = f"""\
{MARK}
# A data card says what is publicly known of a table, and what its answers may cost in all.

[table]
name = "visits"
source = "visits.parquet"
neighbours = "add-remove"      # hides whether a patient is in the table at all

[unit]
column = "patient"             # Whose row it is.
max_rows = 30                  # Contribution bound. Of more visits, each counts for less.
max_groups = 8                 # Groups a patient may be in, where keys are not declared.

[budget]
epsilon = 3
delta = 1e-8

[ledger]
path = "visits.ledger"

[columns.patient]
type = "integer"

[columns.region]
type = "text"
keys = [{", ".join(f'"{region}"' for region in REGIONS)}]

[columns.ward]                 # keys are not declared: they are found privately
type = "text"

[columns.age]
type = "integer"
bounds = [0, 110]
nullable = false

[columns.cost]
type = "number"
bounds = [0, 2000]
nullable = false

[columns.wait]
type = "integer"
bounds = [0, 240]
nullable = false
"""

# Each scramble is a bijection of 32 bits; k tells the columns of one row apart.
_MACROS = (
    "CREATE MACRO folded(h, s) AS xor(h, h >> s)",
    "CREATE MACRO part(n, k) AS folded(folded(folded((n * 2654435769 + k * 2246822519)"
    " & 4294967295, 16) * 2146121005 & 4294967295, 15) * 2221713035 & 4294967295, 16)"
    "::DOUBLE / 4294967296",
)

_VISITS = """
CREATE TABLE visits AS
WITH parts AS (
  SELECT part(i, 1) AS a, part(i, 2) AS b, part(i, 3) AS c, part(i, 4) AS d, part(i, 5) AS e
  FROM (SELECT range::UBIGINT AS i FROM range({rows}))
), seen AS (
  SELECT floor({patients} * a * sqrt(sqrt(a)))::UBIGINT AS patient, b, c, d, e FROM parts
), known AS (
  SELECT patient, part(patient, 11) AS home, part(patient, 12) AS young,
         part(patient, 13) AS x, part(patient, 14) AS y, b, c, d, e
  FROM seen
), placed AS (
  SELECT patient, b, c, d, e,
    CASE WHEN home < 0.19 THEN 'North' WHEN home < 0.35 THEN 'East' WHEN home < 0.56 THEN 'South'
      WHEN home < 0.68 THEN 'West' WHEN home < 0.86 THEN 'Centre' WHEN home < 0.93 THEN 'Coast'
      WHEN home < 0.985 THEN 'Hills' ELSE 'Islands' END AS region,
    CASE WHEN young < 0.16 THEN floor(16 * x)
      WHEN young < 0.55 THEN floor(16 + 50 * x) ELSE floor(45 + 28 * x + 26 * y) END::INTEGER AS age
  FROM known
), warded AS (
  SELECT *,
    CASE WHEN b < 0.000008 THEN 'Trial unit 7' WHEN b < 0.00006 THEN 'Tropical medicine'
      WHEN b < 0.24 THEN 'Emergency' WHEN age < 16 AND b < 0.9 THEN 'Paediatrics'
      WHEN b < 0.38 THEN 'Surgery' WHEN b < 0.51 THEN 'Orthopaedics'
      WHEN b < 0.63 THEN CASE WHEN age < 45 THEN 'Maternity' ELSE 'Cardiology' END
      WHEN b < 0.75 THEN 'Internal medicine' WHEN b < 0.83 THEN 'Oncology'
      WHEN b < 0.9 THEN 'Neurology' ELSE 'Psychiatry' END AS ward
  FROM placed
), priced AS (
  SELECT *,
    CASE ward WHEN 'Emergency' THEN 190 WHEN 'Paediatrics' THEN 150 WHEN 'Surgery' THEN 520
      WHEN 'Orthopaedics' THEN 310 WHEN 'Oncology' THEN 600 WHEN 'Cardiology' THEN 420
      ELSE 240 END AS base,
    CASE ward WHEN 'Emergency' THEN 95 WHEN 'Paediatrics' THEN 40 WHEN 'Surgery' THEN 30
      WHEN 'Orthopaedics' THEN 70 WHEN 'Psychiatry' THEN 55 ELSE 48 END AS slow,
    CASE region WHEN 'Islands' THEN 1.25 WHEN 'Hills' THEN 1.125 WHEN 'Centre' THEN 0.875
      ELSE 1 END::DOUBLE AS far
  FROM warded
)
SELECT patient::INTEGER AS patient, region, ward, age,
  floor(100 * base * far * 0.45 / (1.15 - c)) / 100 AS cost,
  floor(slow * far * (c + d + e) / 1.5)::INTEGER AS wait
FROM priced
"""


def write_visits(file: Path, rows: int) -> None:
    """Write this many visits as a Parquet file."""
    patients = max(round(rows / ROWS_A_PATIENT), 1)
    with duckdb.connect(":memory:") as connection:
        for macro in _MACROS:
            connection.execute(macro)
        connection.execute(_VISITS.format(rows=rows, patients=patients))
        connection.execute(f"COPY visits TO '{_quoted(file)}' (FORMAT parquet)")


def truth(file: Path, sql: str, *, keys: int) -> Truth:
    """What a statement gives without privacy, by its first columns; for made-up rows."""
    with duckdb.connect(":memory:") as connection:
        view = f"CREATE VIEW visits AS SELECT * FROM read_parquet('{_quoted(file)}')"
        connection.execute(view)
        rows = connection.execute(sql).fetchall()
    return {tuple(row[:keys]): tuple(row[keys:]) for row in rows}


def _quoted(file: Path) -> str:
    return str(file).replace("'", "''")
