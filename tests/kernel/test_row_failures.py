"""No row decides whether a question fails: an error would tell who is in the table.

Generated questions at the edges (`edge_questions.py`) are asked of tables without rows, with one,
with hostile ones, without one unit, of nothing, and of many. On all of them the caller sees the
same: the same error, or an answer of the same columns.
"""

from __future__ import annotations

import copy
import inspect
import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyarrow import parquet

from lastbit.errors import LastbitError
from lastbit.kernel import Noisy, Program, answering, noise
from lastbit.kernel.program import PairDraws
from lastbit.ledger import Ledger
from lastbit.release import Answer
from lastbit.release.certifying import program_of
from lastbit.tables import DataCard, MarginalsPlan, Session, open_session
from lastbit.tables.backends import rehearsal
from lastbit.tables.compile import statement
from tests.cli.running import lastbit
from tests.engines.edge_tables import make_tables, statement_outcomes
from tests.engines.running import DuckDB
from tests.evidence import Extent
from tests.kernel import hostile_plans, measured as neighbours
from tests.kernel.edge_questions import KINDS, Edge, frames, questions
from tests.kernel.genuine import Genuine, certificates

Outcome = tuple[Any, ...]


pytestmark = pytest.mark.apart  # a fifth of `make check` otherwise


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    edge = next(questions(0, 1))
    with open_session(edge.of("none").card) as engine:
        yield engine


def card_with(card: DataCard, name: str) -> DataCard:
    """The card, on another table of the same columns."""
    rows, labs = frames()[name]
    private = {
        own: replace(one, source=replace(one.source, frame=labs))
        for own, one in card.private.items()
    }
    return replace(card, source=replace(card.source, frame=rows), private=private)


def error_of(error: Exception) -> Outcome:
    """What a caller sees of a failure."""
    return type(error).__name__, str(error)


def kernel_outcomes(edge: Edge, session: Session) -> dict[str, Outcome] | None:
    """By table, what the kernel's caller sees; None where the plan alone is refused."""
    try:
        plan = edge.of("none").plan(**edge.price)
        program = program_of(plan, session)
        rehearse(plan, session)
    except LastbitError:
        return None
    known = {name: getattr(program, name) for name in Program.__slots__ if name != "_sealed"}
    found: dict[str, Outcome] = {}
    for name in frames():
        on_table: Any = SimpleNamespace(**known | {"card": card_with(program.card, name)})
        try:
            noisy = Noisy.from_text(answering._noisy(on_table, session).to_text())
        except Exception as error:
            found[name] = error_of(error)
        else:
            names = (noisy.entries, noisy.bins, noisy.ranks, noisy.trees)
            found[name] = tuple(sorted(map(str, one)) for one in names)
            if not any(isinstance(step, PairDraws) for step in program.steps):
                found[name] += (sorted(noisy.tables),)
    return found


def rehearse(plan: Any, session: Session) -> None:
    if isinstance(plan, MarginalsPlan):
        rehearsal.rehearse_marginals(session, plan.query, plan.card, plan.scanned)
    else:
        rehearsal.rehearse(session, plan.query, plan.card, plan.measures)


def differing(found: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The outcomes, if rows decide which it is."""
    return {} if found is None or len(set(map(repr, found.values()))) == 1 else found


# ---------------------------------------------------------------- statements, on DuckDB


QUICK = ("none", "one", "hostile", "one unit less")


@pytest.fixture(scope="module")
def duck() -> Iterator[DuckDB]:
    runner = DuckDB()
    make_tables(runner)
    yield runner
    runner.close()


@pytest.mark.parametrize("kind", KINDS)
def test_no_row_stops_a_statement(kind: str, duck: DuckDB, extent: Extent) -> None:
    """Hundreds of questions; tests/engines/test_row_failures.py has the other engines."""
    seen: Counter[str] = Counter()
    names = None if extent.is_many else QUICK
    for edge in questions(5, extent.generated(28, 2_000), (kind,)):
        found = statement_outcomes(duck, edge, names)
        assert not differing(found), (edge.words, found)
        seen["refused" if found is None else next(iter(found.values()))] += 1
    print(kind, dict(seen))
    assert seen["runs"] >= extent.generated(8, 700)


# ---------------------------------------------------------------- the kernel, up to noisy integers


@pytest.mark.parametrize("kind", KINDS)
def test_no_row_decides_whether_the_kernel_fails(
    kind: str, session: Session, extent: Extent
) -> None:
    seen: Counter[str] = Counter()
    for edge in questions(7, extent.generated(3, 400), (kind,)):
        found = kernel_outcomes(edge, session)
        assert not differing(found), (edge.words, edge.price, found)
        seen["refused" if found is None else "asked"] += 1
    print(kind, dict(seen))
    assert not extent.is_many or seen["asked"] >= 40


def plan_outcomes(program: Program, session: Session) -> dict[str, Outcome]:
    """By table, what comes of a plan that the kernel has taken, whoever wrote it."""
    known = {name: getattr(program, name) for name in Program.__slots__ if name != "_sealed"}
    found: dict[str, Outcome] = {}
    for place, (rows, labs) in enumerate([([], []), *neighbours.tables(program)]):
        card = neighbours.card_of(program.card, rows, labs)
        on_table: Any = SimpleNamespace(**known | {"card": card})
        try:
            Noisy.from_text(answering._noisy(on_table, session).to_text())
            found[str(place)] = ("numbers",)
        except Exception as error:
            found[str(place)] = error_of(error)
    return found


def stretched(rng: random.Random, one: Genuine) -> str:
    """A certificate of which one number of noise is another by many powers of ten."""
    data = copy.deepcopy(one.data)
    part = rng.choice(data["body"]["plan"]["parts"])
    known = ("scale", "variance", "threshold", "rate", "shift", "ends", "penalty", "level")
    name = rng.choice([name for name in known if name in part])
    sizes = (1, 18, 38) if name == "threshold" else (1, 18, 38, 76, 154, 160, 308, 400)
    factor = Fraction(10) ** (rng.choice(sizes) * rng.choice((1, -1)))

    def changed(number: Any) -> Any:
        value = Fraction(number) * factor
        return int(value) if type(number) is int else str(value)

    old = part[name]
    part[name] = [changed(number) for number in old] if isinstance(old, list) else changed(old)
    hostile_plans.reseal(data)
    return json.dumps(data)


@pytest.mark.evidence
def test_no_row_decides_whether_a_hostile_plan_fails(session: Session) -> None:
    """Plans that no planner of ours writes: parameters of noise far out, queries mutated."""
    genuine, rng = certificates(), random.Random(3)
    texts = [(stretched(rng, one), one) for one in rng.choices(genuine, k=400)]
    hostile = hostile_plans.hostile_texts(genuine, rng, 1_600)
    seen: Counter[str] = Counter()
    for text, one in (*texts, *((text, one) for _, text, one in hostile)):
        try:
            program = Program(text, one.card)
        except LastbitError:
            seen["refused"] += 1
            continue
        found = plan_outcomes(program, session)
        assert not differing(found), (one.name, found, text)
        seen[found["0"][0]] += 1
    print(dict(seen))
    assert seen["numbers"] >= 200


# ---------------------------------------------------------------- all that a caller sees


def release_outcome(edge: Edge, name: str, folder: Path, *, files: bool) -> Outcome:
    """What comes of asking one table: what a caller sees, and what the books have afterwards."""
    books = Ledger.open(folder / "ledgers" / f"{name}.ledger")
    before = len(books.entries())
    try:
        asked = edge.of(name, folder if files else None)
        answer = asked.release(**edge.price, ledger=books)
        seen: Outcome = ("answer", answer.guarantee, answer.notes, str(answer.cost))
        if isinstance(answer, Answer):
            again = Answer.load(saved(answer, folder))
            seen += (again.columns, csv_head(answer), bool(str(answer)), bool(answer._repr_html_()))
    except Exception as error:
        seen = error_of(error)
    return *seen, [entry.kind for entry in books.entries()[before:]]


def saved(answer: Answer, folder: Path) -> Path:
    path = folder / "answer.json"
    path.unlink(missing_ok=True)
    answer.save(path)
    return path


def csv_head(answer: Answer) -> str:
    return answer.to_csv().partition("\n")[0]


@pytest.mark.parametrize("files", [False, True], ids=["frames", "files"])
def test_no_row_decides_what_a_caller_sees(files: bool, tmp_path: Path, extent: Extent) -> None:
    """Charge, draw, settlement, intervals, formulas, the answer: each ends alike on all tables."""
    (tmp_path / "ledgers").mkdir()
    seen: Counter[str] = Counter()
    names = list(frames()) if extent.is_many else ["none", "one hostile", "hostile"]
    for edge in questions(13, extent.generated(2, 200)):
        found = {name: release_outcome(edge, name, tmp_path, files=files) for name in names}
        assert not differing(found), (edge.words, edge.price, found)
        kind, *_, entries = found["none"]
        seen[kind] += 1
        charged = [one for one in entries if one not in ("account", "budget")]
        assert charged == (["reserved", "drawn", "settled"] if kind == "answer" else [])
    print(dict(seen))
    assert seen["answer"]


# ---------------------------------------------------------------- the command


CARD = """
[table]
name = "t"
source = "t.parquet"
neighbours = "add-remove"

[unit]
column = "who"
max_rows = 3

[budget]
epsilon = 1000
delta = 1e-3

[ledger]
path = "t.ledger"

[columns]
who = { type = "integer" }
cat = { type = "text" }
num = { type = "integer" }
x = { type = "number" }
day = { type = "date" }
"""
COLUMNS = ["who", "cat", "num", "x", "day"]
ENDS = {
    "SELECT quantile_cont(clamp(num, 0, 9), 0.1234567890123456789012345) AS q FROM t": 0,
    "SELECT median(clamp(num, 0, 1180591620717411303424)) AS q FROM t": 2,
    "SELECT cat, count(*) AS n FROM t GROUP BY cat": 0,
    "SELECT avg(clamp(x / (x - x), -1e17, 1e17)) AS m FROM t WHERE day > '9999-12-30'": 0,
    "SELECT sum(clamp(num * num * num, 0, 9)) AS s FROM t WHERE CAST(cat AS DATE) = day": 0,
}
"""Questions, with the exit code of each."""


def test_no_row_decides_how_the_command_ends(tmp_path: Path, extent: Extent) -> None:
    """Exit code, words of an error, and the columns of an answer."""
    names = tuple(frames()) if extent.is_many else ("none", "hostile")
    for sql, code in list(ENDS.items())[: extent.number(2, 5)]:
        found: dict[str, Outcome] = {}
        for name in names:
            place = tmp_path / name
            if not place.exists():
                place.mkdir()
                parquet.write_table(frames()[name][0].select(COLUMNS), place / "t.parquet")
                (place / "card.toml").write_text(CARD)
            asked = ("--epsilon", "1", "--delta", "1e-9", "--json")
            result = lastbit("query", str(place / "card.toml"), sql, *asked)
            words = result.stderr.replace(str(place), "")
            shown = json.loads(result.stdout)["answer"]["columns"] if result.stdout else None
            found[name] = result.exit_code, words, shown
        assert not differing(found), (sql, found)
        assert found["none"][0] == code, (sql, found)


# ---------------------------------------------------------------- the holes that there were


def without_the_least_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quantile of a level with a long denominator failed where no row was left."""
    own = inspect.getsource(noise.rank_distances)
    changed = own.replace("draw.shift + 1) >= _WIDE", "draw.shift) >= _WIDE")
    assert changed != own
    scope = dict(vars(noise))
    text = f"from __future__ import annotations\n{changed}"
    exec(compile(text, "mutant", "exec"), scope)  # noqa: S102
    monkeypatch.setattr(noise, "rank_distances", scope["rank_distances"])


def with_long_edges(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bins of whole numbers beyond 64 bits stopped the engine where a row came to them."""
    monkeypatch.setattr(statement, "_short_integer", str)


HOLES = (without_the_least_weight, with_long_edges)


@pytest.mark.evidence
@pytest.mark.parametrize("hole", HOLES, ids=lambda hole: hole.__name__)
def test_a_hole_is_found(hole: Any, session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """The questions are at the edges: each hole, opened again, shows in some of them."""
    hole(monkeypatch)
    for edge in questions(1, 400, ("edges",)):
        if differing(kernel_outcomes(edge, session)):
            return
    pytest.fail("no question shows it")
