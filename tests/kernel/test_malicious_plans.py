"""Any JSON that a planner may write: a refusal, or a program whose true loss its price covers.

Genuine certificates are mutated, composed and resealed (`hostile_plans.py`). What the kernel takes
is judged by what will run (`true_loss.py`), and by how far neighbours really move its measures on
the real engine (`measured.py`): neither asks the planner or the checker.
"""

from __future__ import annotations

import copy
import json
import random
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest

from lastbit.checker import release
from lastbit.checker.numbers import number
from lastbit.checker.release import Loss
from lastbit.errors import LastbitError, NotCertified, QueryRefused, WrongType
from lastbit.kernel import Program, question_of_program
from lastbit.kernel.program import KeySelection, Noise, PairDraws, RankDraw, TreeNoise
from lastbit.tables.compile.duckdb import DUCKDB
from lastbit.tables.compile.marginals import marginals_statement
from lastbit.tables.compile.statement import statement
from tests.evidence import Extent
from tests.kernel import hostile_plans
from tests.kernel.genuine import certificates
from tests.kernel.measured import moved_too_far
from tests.kernel.true_loss import overspends


def program_of(text: str, card: Any) -> Program | None:
    """What the kernel makes of a text; anything but its own refusals is a finding."""
    try:
        return Program(text, card)
    except LastbitError:
        return None


def test_genuine_plans_are_taken_and_cost_what_they_say() -> None:
    kinds: Counter[str] = Counter()
    for one in certificates():
        program = Program(one.text, one.card)
        assert overspends(program) is None, one.name
        kinds.update(type(step).__name__ for step in program.steps)
    assert set(kinds) == {"Noise", "KeySelection", "RankDraw", "TreeNoise", "PairDraws"}


def less_noise(step: Any) -> Any:
    """The step with a little less noise than was paid for, or a lower threshold."""
    little = Fraction(9, 10)
    match step:
        case Noise():
            return replace(step, parameter=step.parameter * little)
        case TreeNoise():
            return replace(step, noise=less_noise(step.noise))
        case RankDraw() | PairDraws():
            return replace(step, rate=step.rate / little)
        case KeySelection(single=None):
            return replace(step, noise=less_noise(step.noise))
        case KeySelection(single=(single, _)):
            return replace(step, noise=less_noise(step.noise), single=(less_noise(single), 2))


def test_less_noise_than_was_paid_for_is_seen() -> None:
    """The mutants that the own computation must reject: every step of every genuine plan."""
    for one in certificates():
        program = Program(one.text, one.card)
        known = {name: getattr(program, name) for name in Program.__slots__ if name != "_sealed"}
        steps = tuple(map(less_noise, program.steps))
        mutant: Any = SimpleNamespace(**known | {"steps": steps})
        assert overspends(mutant) is not None, one.name
        if program.card.unit is not None:
            dearer = replace(program.card, max_rows=2 * program.card.max_rows)
            wide: Any = SimpleNamespace(**known | {"card": dearer})
            by_rows = any(m.kind in ("rows", "values", "bins") for m in program.measures)
            assert not by_rows or overspends(wide) is not None, one.name


@pytest.mark.apart  # minutes
def test_any_plan_is_refused_or_costs_no_more_than_its_price(extent: Extent) -> None:
    genuine, rng = certificates(), random.Random(20_261)
    seen: Counter[str] = Counter()
    for names, text, one in hostile_plans.hostile_texts(genuine, rng, extent.number(250, 20_000)):
        program = program_of(text, one.card)
        if program is None:
            seen["refused"] += 1
            continue
        seen["taken"] += 1
        seen["taken, changed"] += text != one.text
        why = overspends(program)
        assert why is None, (names, one.name, why)
        assert program.card.unit == one.card.unit
        assert program.card.neighbours == one.card.neighbours
        compiles(program)
        if seen["taken"] % extent.number(25, 12) == 0:
            try:
                found = moved_too_far(program)
            except LastbitError:
                seen["refused by the engine"] += 1
                continue
            assert found == [], (names, one.name, found)
            seen["measured"] += 1
    assert seen["refused"] > seen["taken"] > extent.number(30, 3_000), seen
    assert seen["measured"] >= extent.number(1, 200), seen
    print(dict(seen))


def blind(*_: Any, **__: Any) -> None:
    """A check that finds nothing."""


FAULTS: dict[str, tuple[str, Any]] = {
    "a part may cost more than it says": ("stated", lambda text, proved: number(text)),
    "the sum is not compared": ("check_cost", blind),
    "a part is left out of the sum": ("total_loss", lambda plan, losses: Loss()),
    "keys of one unit alone are never shown": ("gaussian_tail", lambda *_: Fraction(0)),
    "a key of Laplace noise likewise": ("_appears", lambda *_: (Fraction(0), Fraction(1))),
    "of many keys none is shown": ("_some", lambda chance, keys: Fraction(0)),
    "a mu implies no delta": ("pair_delta", lambda mu, epsilon: Fraction(0)),
    "a rho implies no delta": ("_order_delta", lambda rho, epsilon, order: Fraction(0)),
    "any Gaussian pair will do": ("_pair", lambda part, moved, variance: Loss()),
}


@pytest.mark.thinned(one_in=3)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_the_checker_is_found_out(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plans are hostile enough: a checker with one hole lets some through, and it is seen."""
    name, wrong = FAULTS[fault]
    monkeypatch.setattr(release, name, wrong)
    rng = random.Random(9)
    for _, text, one in hostile_plans.hostile_texts(certificates(), rng, 20_000):
        program = program_of(text, one.card)
        if program is not None and overspends(program) is not None:
            return
    pytest.fail("nothing that it let through cost more than its price")


def compiles(program: Program) -> None:
    """What was taken has a digest, and becomes a statement, or is refused in our own words."""
    assert len(question_of_program(program, "data")) == 64
    try:
        if program.marginals is None:
            statement(program.scan, program.card, program.measures, secret="s", dialect=DUCKDB)
        else:
            marginals_statement(program.scan, program.card, program.marginals, dialect=DUCKDB)
    except LastbitError:
        pass


def test_neighbours_of_every_genuine_plan(extent: Extent) -> None:
    for one in extent.cases(certificates(), one_in=50):
        assert moved_too_far(Program(one.text, one.card)) == [], one.name


# ---------------------------------------------------------------- one lie at a time


def lie_of(*, of: str, **changes: Any) -> tuple[str, Any]:
    """The first genuine certificate of a kind, with changes at dotted places, resealed."""
    one = next(g for g in certificates() if of in g.name)
    data = copy.deepcopy(one.data)
    for path, value in changes.items():
        *places, last = path.split("__")
        where = data["body"]
        for place in places:
            where = where[int(place) if place.isdigit() else place]
        where[int(last) if last.isdigit() else last] = value
    hostile_plans.reseal(data)
    return json.dumps(data), one.card


COUNT = "SELECT COUNT(*) AS n FROM t | people | {'epsilon': '1'}"
FOUND = "SELECT g, COUNT(*) AS n FROM t GROUP BY g | people |"
JOINED = "JOIN labs"
LIES: dict[str, dict[str, Any]] = {
    "less noise": dict(of=COUNT, plan__parts__0__scale="1"),
    "a negative scale": dict(of=COUNT, plan__parts__0__scale="-3145728"),
    "no noise": dict(of=COUNT, plan__parts=[]),
    "noise of nothing": dict(of=COUNT, plan__parts__0__measure=None),
    "a smaller move": dict(of=COUNT, plan__parts__0__sensitivity={"l1": "1"}),
    "fewer rows": dict(of=COUNT, plan__max_rows=1),
    "rows as truth": dict(of=COUNT, plan__max_rows=True),
    "rows as a float": dict(of=COUNT, plan__max_rows=3.0),
    "each row a unit": dict(of=COUNT, plan__unit=None),
    "the unit in capitals": dict(of=COUNT, plan__unit="WHO"),
    "another table": dict(of=COUNT, plan__table="T"),
    "a price of nothing": dict(of=COUNT, plan__cost={"epsilon": "0", "delta": "0", "rho": "0"}),
    "a price that is written otherwise": dict(
        of=COUNT, plan__cost={"epsilon": "2/2", "delta": "0", "rho": "0"}
    ),
    "keys without a threshold": dict(of=FOUND, plan__parts=[]),
    "a threshold of one": dict(of=FOUND, plan__parts__0__threshold=1),
    "a private table as a public one": dict(
        of=JOINED,
        query__joins=[{"table": "labs", "on": [[{"column": "who"}, {"column": "who"}]]}],
    ),
    "a private table in capitals": dict(
        of=JOINED,
        query__joins=[{"table": "LABS", "on": [[{"column": "who"}, {"column": "who"}]]}],
    ),
    "units that are not compared": dict(
        of=JOINED,
        query__joins=[
            {"table": "labs", "on": [[{"column": "x"}, {"column": "dose"}]], "private": True}
        ],
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_is_refused(lie: str) -> None:
    with pytest.raises(LastbitError):
        Program(*lie_of(**LIES[lie]))


def renamed(data: Any) -> None:
    """The private table in capitals, as if it were a public one."""
    body = data["body"]
    for where in (data["claim"], body["plan"]):
        del where["private"]
    for join in body["query"]["joins"]:
        del join["private"]
    for name in ("query", "plan"):
        text = json.dumps(body[name]).replace('"table": "labs"', '"table": "LABS"')
        body[name] = json.loads(text)


def joined_with_itself(data: Any) -> None:
    """The table itself in the place of a public one: any row would meet any other."""
    for join in data["body"]["query"]["joins"]:
        join["table"] = "t"
        for _, other in join["on"]:
            other.pop("table", None)
    for key in data["body"]["query"]["keys"]:
        key["expression"] = {"column": "g"}


@pytest.mark.parametrize(
    ("kind", "change"), [("JOIN labs", renamed), ("JOIN places", joined_with_itself)]
)
def test_what_only_the_compiler_can_know_it_refuses(kind: str, change: Any) -> None:
    """Which tables there are is on the card alone: the checker takes these for public ones."""
    one = next(g for g in certificates() if kind in g.name)
    data = copy.deepcopy(one.data)
    change(data)
    hostile_plans.reseal(data)
    program = Program(json.dumps(data), one.card)
    with pytest.raises(QueryRefused, match="is not with one table of the card"):
        moved_too_far(program)


@pytest.mark.parametrize(
    "text",
    [
        "", "null", "[]", "{}", '"x"', "1", "{", "\ud800", "[" * 10**5, '{"kind": "release"}',
        '{"kind": ["release"]}', '{"kind": "marginals", "claim": {}, "body": {}}',
        '{"kind": "release", "claim": null, "body": null}',
        '{"kind": "law", "claim": {}, "body": {}}',
        '{"kind": "release", "claim": [1], "body": {"query": 1}}', "\ufeff{}", "NaN",
    ],
)  # fmt: skip
def test_what_is_no_certificate_is_refused(text: str) -> None:
    with pytest.raises(NotCertified):
        Program(text, certificates()[0].card)


def test_numbers_are_written_as_a_kernel_reads_them() -> None:
    """Failed before: Python's own ValueError, of a number as only certificates of code have it."""
    for one in certificates():
        for at, part in enumerate(json.loads(one.text)["body"]["plan"]["parts"]):
            for name in {"scale", "variance", "rate", "penalty"} & part.keys():
                data = json.loads(one.text)
                data["body"]["plan"]["parts"][at][name] = "1p9000"
                hostile_plans.reseal(data)
                with pytest.raises(NotCertified):
                    Program(json.dumps(data), one.card)


@pytest.mark.parametrize("text", [None, b"{}", 1, {}, certificates])
def test_what_is_no_text_is_refused(text: Any) -> None:
    with pytest.raises(WrongType):
        Program(text, certificates()[0].card)
    with pytest.raises(WrongType):
        Program("{}", text)
