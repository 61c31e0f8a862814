"""Columns made of released ones: their value, their interval, and what the checker says of them."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import assume, example, given, settings, strategies as st

import lastbit as lb
from lastbit.checker import formulas as checked
from lastbit.checker.dispatch import problem_of
from lastbit.checker.numbers import digest
from lastbit.errors import InvalidParameter, QueryRefused
from lastbit.kernel.noise import Noisy
from lastbit.release.derived import derived_columns
from lastbit.release.enclosures import INTERVALS, for_intervals
from lastbit.release.formulas import DOUBLES, evaluate
from lastbit.release.intervals import columns_of
from lastbit.release.joint import Joint
from lastbit.release.reach import MeasureNoise, reach_of
from lastbit.release.taylor import NotSmooth
from lastbit.tables.plan.plan import planned
from lastbit.tables.query.derived import DERIVING, Derived
from lastbit.tables.query.expression import Call, ColumnName, Constant, Expression
from lastbit.tables.query.query import Query
from lastbit.tables.query.writing import to_json
from tests.release.pretend import ONE, card_of, part, query_of
from tests.release.sealing import sealed_rows

A, B = ColumnName("a"), ColumnName("b")
NUMBERS = (0, 1, -3, 100, Fraction(1, 3), Fraction(-5, 2), 10**30)


def calls(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    def of(names: str, count: int) -> st.SearchStrategy[Expression]:
        return st.builds(
            lambda name, parts: Call(name, tuple(parts)),
            st.sampled_from(names.split()),
            st.lists(inner, min_size=count, max_size=count),
        )

    tests = of("= <> < <= > >=", 2)
    return st.one_of(
        of("+ * - /", 2),
        of("negate abs floor ceil sqrt ln exp round to_number to_integer", 1),
        of("power log", 2),
        st.builds(lambda x, n: Call("power", (x, Constant(n))), inner, st.integers(-3, 4)),
        st.builds(lambda x: Call("log", (Constant(10), x)), inner),
        of("least greatest coalesce", 2),
        of("+ *", 3),
        st.builds(lambda x, n: Call("round", (x, Constant(n))), inner, st.integers(-2, 3)),
        st.builds(lambda x: Call("clamp", (x, Constant(-2), Constant(9))), inner),
        st.builds(lambda t, x, y: Call("case", (t, x, y)), tests, inner, inner),
        st.builds(lambda x, y: Call("case", (Call("not", (x,)), y)), tests, inner),
        st.builds(lambda x, y: Call("case", (Call("is_missing", (x,)), y, x)), inner, inner),
        st.builds(
            lambda t, u, x: Call("case", (Call("and", (t, u)), x, Constant(None))),
            tests, tests, inner,
        ),
    )  # fmt: skip


LEAVES = st.sampled_from([A, B, *(Constant(number) for number in NUMBERS), Constant(None)])
FORMULAS = st.recursive(LEAVES, calls, max_leaves=8)
RELEASED = st.one_of(st.none(), st.integers(-(10**6), 10**6), st.floats(-1e6, 1e6))


@settings(max_examples=400)
@given(FORMULAS, RELEASED, RELEASED)
def test_the_checker_computes_the_same_number(formula: Expression, a: Any, b: Any) -> None:
    row = {"a": a, "b": b}
    mine = evaluate(formula, row, DOUBLES)
    assert checked.evaluate(to_json(formula), row, checked.DOUBLES) == mine


def test_both_know_the_same_functions() -> None:
    assert set(checked._FORMULAS) == DERIVING


def exactly(formula: Expression, row: dict[str, Fraction]) -> Any:
    """The formula over true numbers, in rationals; `ArithmeticError` where it has no value."""
    match formula:
        case Constant(value):
            if value is None:
                raise ArithmeticError
            return value if isinstance(value, bool) else Fraction(value)  # type: ignore[arg-type]
        case ColumnName(name):
            return row[name]
    assert isinstance(formula, Call)
    if formula.function == "case":
        for test, then in zip(formula.arguments[0::2], formula.arguments[1::2], strict=False):
            if exactly(test, row) is True:
                return exactly(then, row)
        if len(formula.arguments) % 2:
            return exactly(formula.arguments[-1], row)
        raise ArithmeticError
    if formula.function == "is_missing":
        return _missing(formula.arguments[0], row)
    if formula.function in ("coalesce", "least", "greatest"):
        parts = [exactly(p, row) for p in formula.arguments if not _missing(p, row)]
        if not parts:
            raise ArithmeticError
        return {"coalesce": lambda: parts[0], "least": lambda: min(parts)}.get(
            formula.function, lambda: max(parts)
        )()
    values = [exactly(argument, row) for argument in formula.arguments]
    match formula.function:
        case "+":
            return sum(values, Fraction(0))
        case "*":
            return math.prod(values, start=Fraction(1))
        case "sqrt":
            if values[0] < 0:
                raise ArithmeticError
            return Fraction(math.isqrt(int(values[0] * 10**40)), 10**20)
        case "ln" | "exp" | "log" | "power":
            return transcendent(formula.function, *values)
        case "and":
            return all(values)
        case "round" | "to_integer":
            return Fraction(round(values[0], *(int(v) for v in values[1:])))
    return SIMPLE[formula.function](*values)


DIGITS = Context(prec=80, Emax=10**6, Emin=-(10**6))


def transcendent(function: str, *values: Fraction) -> Fraction:
    """The function by decimals of 80 digits; `ArithmeticError` where there is none."""
    x, y = (DIGITS.divide(Decimal(v.numerator), Decimal(v.denominator)) for v in (values * 2)[:2])
    assume(function not in ("exp", "power") or max(abs(x), abs(y)) <= 600)
    if (function == "ln" and x <= 0) or (function == "log" and (min(x, y) <= 0 or x == 1)):
        raise ArithmeticError
    if function == "power" and x <= 0:
        if (x and values[1].denominator != 1) or (not x and y < 0):
            raise ArithmeticError
        return values[0] ** int(values[1]) if x else Fraction(y == 0)
    found = {
        "ln": lambda: DIGITS.ln(x),
        "exp": lambda: DIGITS.exp(x),
        "log": lambda: DIGITS.divide(DIGITS.ln(y), DIGITS.ln(x)),
        "power": lambda: DIGITS.exp(DIGITS.multiply(y, DIGITS.ln(x))),
    }[function]()
    return Fraction(found)


def _missing(formula: Expression, row: dict[str, Fraction]) -> bool:
    try:
        exactly(formula, row)
    except ArithmeticError:
        return True
    return False


SIMPLE: dict[str, Callable[..., Any]] = {
    "-": lambda a, b: a - b,
    "/": lambda a, b: a / b,
    "negate": lambda a: -a,
    "abs": abs,
    "floor": lambda a: Fraction(math.floor(a)),
    "ceil": lambda a: Fraction(math.ceil(a)),
    "to_number": lambda a: a,
    "clamp": lambda a, low, high: min(max(a, low), high),
    "not": lambda a: not a,
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def enclosure(formula: Expression, box: dict[str, tuple[float, float]]) -> Any:
    """Where the formula lies, given where its columns do."""
    return evaluate(for_intervals(formula), box, INTERVALS)


POINTS = st.floats(-1e4, 1e4).map(Fraction)


NONE = Call("clamp", (Call("/", (B, Constant(0))), Constant(-2), Constant(9)))


@settings(max_examples=600)
@given(FORMULAS, POINTS, POINTS, st.lists(st.floats(0, 100), min_size=4, max_size=4))
@example(Call("least", (A, NONE)), Fraction(10), Fraction(1), [0.0] * 4)
@example(
    Call("greatest", (A, Call("sqrt", (B,)))), Fraction(-10), Fraction(-1), [0.0, 0.0, 0.0, 5.0]
)
@example(Call("greatest", (A, Call("ln", (B,)))), Fraction(-99), Fraction(0), [0.0, 0.0, 0.0, 5.0])
def test_what_is_true_lies_within(formula: Expression, a: Any, b: Any, widths: Any) -> None:
    box = {
        "a": (float(a) - widths[0], float(a) + widths[1]),
        "b": (float(b) - widths[2], float(b) + widths[3]),
    }
    found = enclosure(formula, box)
    assume(isinstance(found, tuple))
    assert isinstance(found, tuple)
    try:
        true = exactly(formula, {"a": a, "b": b})
    except ArithmeticError:
        return  # nothing is said of what has no value
    slack = Fraction(1, 10**19) * (1 + abs(true))
    assert found[0] <= true + slack and true - slack <= found[1]


ENDS = st.floats(-1e9, 1e9).filter(lambda x: not 0 < abs(x) < 1e-9) | st.integers(-99, 99)


@given(pairs=st.tuples(*[st.tuples(ENDS.map(float), ENDS.map(float)).map(sorted)] * 2))
def test_ends_move_outwards_where_they_were_rounded_and_only_there(pairs) -> None:
    """Against fractions: each end is the nearest double or the next one outwards of what is true.

    It is exactly the true end where that is a double.
    """
    a, b = (tuple(pair) for pair in pairs)
    exact = [[Fraction(x) for x in ends] for ends in (a, b)]
    true = {
        "+": [exact[0][0] + exact[1][0], exact[0][1] + exact[1][1]],
        "-": [exact[0][0] - exact[1][1], exact[0][1] - exact[1][0]],
        "*": [x * y for x in exact[0] for y in exact[1]],
    }
    if not b[0] <= 0 <= b[1]:
        true["/"] = [x / y for x in exact[0] for y in exact[1]]
    for function, ends in true.items():
        found = INTERVALS.functions[function](a, b)
        for end, wanted, way in zip(found, (min(ends), max(ends)), (-1, 1), strict=True):
            near = float(wanted)
            assert way * (Fraction(end) - wanted) >= 0
            assert end == near if Fraction(near) == wanted else abs(end - near) <= math.ulp(near)


def test_roots_and_percentages_that_are_exact_are_not_widened() -> None:
    for function, given_ends, wanted in (
        ("sqrt", [(4.0, 6.25)], (2.0, 2.5)),
        ("square", [(-3.0, 2.0)], (0.0, 9.0)),
        ("*", [(100.0, 100.0), (0.5, 1.0)], (50.0, 100.0)),
    ):
        assert INTERVALS.functions[function](*given_ends) == wanted
    low, high = INTERVALS.functions["sqrt"]((2.0, 2.0))
    assert Fraction(low) ** 2 < 2 < Fraction(high) ** 2


def test_a_divisor_that_may_be_0_gives_no_interval() -> None:
    half = Call("/", (A, B))
    assert enclosure(half, {"a": (1.0, 2.0), "b": (0.0, 1.0)}) is None
    assert isinstance(enclosure(half, {"a": (1.0, 2.0), "b": (1e-9, 1.0)}), tuple)
    safe = Call("/", (A, Call("case", (Call("=", (B, Constant(0))), Constant(None), B))))
    assert enclosure(safe, {"a": (1.0, 2.0), "b": (-1.0, 1.0)}) is None


# ---------------------------------------------------------------- intervals of whole columns

FUNCTIONS = ("count", "sum", "mean", "variance", "std")


def not_smooth(*_: Any) -> Any:
    raise NotSmooth


NOISE = st.integers(-1000, 1000)


def formula_query(first: str, second: str, formula: Expression) -> Query:
    return query_of(
        part(first, "a"), part(second, "b"),
        derived=(Derived(name="d", expression=formula),), shown=("d",),
    )  # fmt: skip


@settings(max_examples=300)
@given(
    st.sampled_from(FUNCTIONS),
    st.sampled_from(FUNCTIONS),
    st.sampled_from(["/", "-", "*"]),
    st.lists(st.integers(0, 16), min_size=1, max_size=80),
    st.lists(NOISE, min_size=6, max_size=6),
    st.sampled_from([None, "1e-6"]),
)
def test_a_box_holds_whenever_every_noise_is_within_its_share(
    first: str, second: str, sign: str, rows: list[int], noise: list[int], delta: Any
) -> None:
    """Every noise within accuracy(beta/j), the union bound's event: the truth is within."""
    query = formula_query(first, second, Call(sign, (A, B)))
    plan = planned(query, card_of(), epsilon=3, delta=delta)
    true: dict[str, int] = {}
    entries: dict[str, list[int]] = {}
    beta = Fraction(1, 20) / len(plan.measures)
    laws = {p.measure: MeasureNoise(p.law) for p in plan.parts}  # type: ignore[union-attr]
    for measure, off in zip(plan.measures, noise, strict=False):
        integers = [x - int(measure.centre) for x in rows]
        each = {"rows": [1] * len(rows), "values": integers, "squares": [x * x for x in integers]}
        true[measure.name] = sum(each[measure.kind])
        far = laws[measure.name].accuracy(beta)
        entries[measure.name] = [true[measure.name] + round(off * far / 1000)]
    noisy = Noisy(keys=[()], entries=entries)
    with pytest.MonkeyPatch.context() as patch:
        columns = columns_of(plan, noisy)
        patch.setattr(Joint, "intervals", not_smooth)
        (column,) = derived_columns(plan, noisy, columns)
    (cell,) = column.cells
    mean = Fraction(sum(rows), len(rows))
    spread = Fraction(sum(x * x for x in rows), len(rows)) - mean**2
    values = {"count": Fraction(len(rows)), "sum": Fraction(sum(rows)), "mean": mean,
              "variance": spread, "std": Fraction(math.sqrt(spread))}  # fmt: skip
    try:
        truth = SIMPLE.get(sign, lambda a, b: a * b)(values[first], values[second])
    except ZeroDivisionError:
        return
    if cell.low is not None and cell.high is not None:
        slack = Fraction(1, 10**9)  # of the root in double arithmetic, here
        assert cell.low - slack <= truth <= cell.high + slack
        assert cell.value is None or cell.low <= cell.value <= cell.high


def test_a_total_is_within_too_and_found_counts_have_none() -> None:
    share = Call("/", (A, Call("total", (A,))))
    query = query_of(part("count", "a"), keys=[("region", tuple("abcdefgh"))],
                     derived=(Derived(name="d", expression=share),), shown=("d",))  # fmt: skip
    plan = planned(query, card_of(unit="person", max_rows=3), epsilon=1)
    (noise,) = plan.parts
    far = MeasureNoise(noise.law).accuracy(Fraction(1, 40))  # type: ignore[union-attr]
    counts = [ONE * 1000 * (i + 1) for i in range(8)]
    noisy = Noisy(keys=[(k,) for k in "abcdefgh"], entries={"m1": [c + far for c in counts]})
    (column,) = derived_columns(plan, noisy, columns_of(plan, noisy))
    for cell, count in zip(column.cells, counts, strict=True):
        assert cell.low is not None and cell.high is not None
        assert cell.low <= count / sum(counts) <= cell.high


@settings(max_examples=100)
@given(
    st.sampled_from(["sum", "count"]),
    st.lists(st.integers(0, 16), min_size=1, max_size=80),
    st.integers(-900, 900),
    st.integers(-900, 900),
    st.sampled_from([None, "1e-6"]),
)
def test_a_share_of_all_rows_is_tested_as_a_mean_is(
    function: str, rows: list[int], first: int, second: int, delta: Any
) -> None:
    """If abs(X - m Y) is within its reach, the interval holds the true share m; and is narrower."""
    percent = Call("/", (Call("*", (Constant(100), A)), B))
    top = part("sum", "a") if function == "sum" else part("count", "a", expression=ColumnName("x"))
    query = query_of(top, part("count", "b", nullable=False), shown=("d",),
                     derived=(Derived(name="d", expression=percent),))  # fmt: skip
    plan = planned(query, card_of(), epsilon=3, delta=delta)
    total = sum(rows) if function == "sum" else len(rows) // 2
    laws = [MeasureNoise(p.law) for p in plan.parts]  # type: ignore[union-attr]
    reach = reach_of(laws, Fraction(1, 20), ratios=[16 if function == "sum" else 1])
    true = Fraction(total, len(rows))
    far = reach.bound(Fraction(1), true)
    x, y = (round(off * far / 2000) for off in (first, second))
    y = round(y / max(float(true), 1.0))
    assert abs(x - true * y) <= far
    noisy = Noisy(keys=[()], entries={"m1": [total + x], "m2": [len(rows) + y]})
    (cell,) = derived_columns(plan, noisy, columns_of(plan, noisy))[0].cells
    assert cell.low is not None and cell.high is not None
    assert cell.low <= 100 * true <= cell.high


def test_an_empty_group_is_within_what_is_possible() -> None:
    """A count may be 0: then so is its opposite."""
    formula = Call("negate", (A,))
    derived = (Derived(name="d", expression=formula),)
    query = query_of(part("count", "a"), derived=derived, shown=("d",))
    plan = planned(query, card_of(), epsilon=1)
    noisy = Noisy(keys=[()], entries={"m1": [2]})
    (cell,) = derived_columns(plan, noisy, columns_of(plan, noisy))[0].cells
    assert cell.low is not None and cell.low < 0 == cell.high


def test_a_mean_alone_keeps_its_own_interval() -> None:
    less = Derived(name="d", expression=Call("-", (A, Constant(1))))
    query = query_of(part("mean", "a"), shown=("d",), derived=(less,))
    plan = planned(query, card_of(), epsilon=1)
    noisy = Noisy(keys=[()], entries={m.name: [500] for m in plan.measures})
    released = columns_of(plan, noisy)
    (mean,), (cell,) = released[0].cells, derived_columns(plan, noisy, released)[0].cells
    assert mean.low is not None and mean.high is not None
    assert cell.low == pytest.approx(mean.low - 1) and cell.high == pytest.approx(mean.high - 1)


def test_quantiles_have_one_interval_that_cannot_be_split() -> None:
    quarter = Derived(name="d", expression=Call("/", (A, Constant(4))))
    alone = query_of(part("quantile", "a"), shown=("d",), derived=(quarter,))
    ranks = {("a", role): [place] for role, place in (("value", 4), ("low", 2), ("high", 7))}
    noisy = Noisy(keys=[()], ranks=ranks | {("b", "value"): [9]})
    plan = planned(alone, card_of(), epsilon=1)
    (cell,) = derived_columns(plan, noisy, columns_of(plan, noisy))[0].cells
    assert cell.value == 1.0
    assert cell.low == pytest.approx(0.5) and cell.high == pytest.approx(2.0)
    both = formula_query("quantile", "max", Call("-", (B, A)))
    plan = planned(both, card_of(), epsilon=1)
    (cell,) = derived_columns(plan, noisy, columns_of(plan, noisy))[0].cells
    assert cell.value is not None and (cell.low, cell.high) == (None, None)


# ---------------------------------------------------------------- questions and answers


@pytest.fixture(scope="module")
def visits(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("rows") / "visits.parquet"
    duckdb.sql(
        f"""COPY (SELECT range // 4 AS who, ['north', 'south'][1 + range % 2] AS region,
        range * 37 % 101 AS x, (range * 37 % 101) / 2 + range * 13 % 29 AS y,
        CASE WHEN range % 10 > 0 THEN range % 7 END AS z,
        TIMESTAMP '2024-02-27 22:30:00' + INTERVAL (range) MINUTE AS t
        FROM range(6000)) TO '{path}'"""
    )
    columns = [
        lb.Column(name="x", type="integer", bounds=(0, 100), nullable=False),
        lb.Column(name="y", type="number", bounds=(0, 80), nullable=False),
        lb.Column(name="z", type="integer", bounds=(0, 6)),
    ]
    keys = {"region": ["north", "south"]}
    return lb.table(path, unit="who", max_rows=4, keys=keys, columns=columns)


def truth(visits: Any, sql: str) -> list[tuple[Any, ...]]:
    (path,) = visits.card.source.paths
    return duckdb.execute(sql.replace("FROM visits", f"FROM '{path}'")).fetchall()


SAME = [
    "SELECT region, 100.0 * SUM(CASE WHEN x > 50 THEN 1 ELSE 0 END) / COUNT(*) AS p FROM visits"
    " GROUP BY region ORDER BY region",
    "SELECT SUM(x) / SUM(z) AS r, AVG(x) - AVG(y) AS d, ROUND(AVG(y), 1) AS m FROM visits",
    "SELECT COUNT(*) FILTER (WHERE z IS NULL) * 1.0 / COUNT(*) AS p FROM visits",
    "SELECT CORR(x, y), COVAR_POP(x, y), COVAR_SAMP(x, y) FROM visits",
    "SELECT REGR_SLOPE(y, x), REGR_INTERCEPT(y, x), REGR_R2(y, x), REGR_COUNT(y, x) FROM visits",
    "SELECT CORR(x, z), REGR_SLOPE(z, x), REGR_AVGX(z, x), REGR_AVGY(z, x) FROM visits",
    "SELECT region, COUNT(*) * 100.0 / SUM(COUNT(*)) OVER () AS s FROM visits GROUP BY region"
    " ORDER BY region",
    "SELECT AVG(CASE WHEN x > 50 THEN 1.0 ELSE 0.0 END) / NULLIF(COUNT(*), 0) AS p FROM visits",
    "SELECT COUNT(DISTINCT x) AS n, COUNT(DISTINCT z) * 2 AS twice FROM visits",
    "SELECT region, COUNT(DISTINCT z) FILTER (WHERE x > 50) AS n FROM visits GROUP BY region"
    " ORDER BY region",
    "SELECT x // 10 AS bin, AVG(y) / 2 AS half FROM visits GROUP BY bin ORDER BY bin",
    "SELECT FLOOR(x / 25) * 25 AS bin, COUNT(*) AS n FROM visits GROUP BY bin ORDER BY bin",
    "SELECT dayname(t) AS d, COUNT(*) AS n FROM visits WHERE dayname(t) <> 'Sunday' GROUP BY d"
    " HAVING COUNT(*) > 10 ORDER BY SUM(x) / COUNT(*)",
]


@pytest.mark.parametrize("sql", SAME)
def test_without_noise_to_speak_of_it_is_what_the_engine_says(visits: Any, sql: str) -> None:
    """A price so high that the noise is next to nothing."""
    answer = visits.sql(sql).release(epsilon=10**5, delta="1e-9" if "//" in sql else None)
    assert problem_of(answer.record) is None
    rows = truth(visits, sql)
    assert len(answer) == len(rows)
    for row, expected in zip(answer, rows, strict=True):
        for cell, true in zip(row.cells, expected[len(row.keys) :], strict=True):
            assert cell.value == pytest.approx(float(true), rel=1e-3, abs=1e-3)
            assert cell.low is None or cell.low - 1e-3 <= true <= cell.high + 1e-3


PARTS = (
    *("year", "quarter", "month", "week", "day", "hour", "minute", "second", "dow", "isodow"),
    *("doy", "isoyear", "decade"),
)


@pytest.mark.parametrize(
    "expression",
    [
        *(f"EXTRACT({part} FROM t)" for part in PARTS),
        *(f"date_part('{part}', t)" for part in PARTS),
        *(f"date_trunc('{p}', t)" for p in ("year", "quarter", "month", "week", "day", "hour")),
        *("week(t)", "dayofyear(t)", "isodow(t)", "monthname(t)", "CAST(t AS DATE)"),
        *(f"strftime(t, '{f}')" for f in ("%Y-%m", "%H", "%A", "%j/%V %G", "%b %d, 100%%")),
    ],
)
def test_every_part_of_a_time_is_the_engines(visits: Any, expression: str) -> None:
    if expression == "date_part('decade', t)" or "minute" in expression or "second" in expression:
        wanted = f"SELECT {expression} AS k, COUNT(*) AS n FROM visits GROUP BY k HAVING n > 0"
    else:
        wanted = f"SELECT {expression} AS k, COUNT(*) AS n FROM visits GROUP BY k HAVING n > 20"
    answer = visits.sql(wanted).release(epsilon=1000, delta="1e-9")
    assert problem_of(answer.record) is None
    expected = {str(key): n for key, n in truth(visits, wanted)}
    assert {str(row.keys[0]).removesuffix(" 00:00:00") for row in answer} <= {
        key.removesuffix(" 00:00:00") for key in expected
    }
    assert len(answer) >= 0.9 * len(expected)


def test_equal_parts_are_paid_for_once(visits: Any) -> None:
    sql = "SELECT COUNT(*) AS n, SUM(x) AS s, SUM(x) / COUNT(*) AS a, COUNT(*) - 1 AS b FROM visits"
    plan = planned(visits.sql(sql).query, visits.card, epsilon=1)
    assert len(plan.parts) == 2 and plan.query.shown == ("n", "s", "a", "b")
    assert plan.query.hidden == ()
    both = visits.sql("SELECT CORR(x, y), REGR_SLOPE(y, x), REGR_R2(y, x) FROM visits").query
    assert len(planned(both, visits.card, epsilon=1).parts) == 6


def test_both_languages_make_one_question(visits: Any) -> None:
    in_sql = visits.sql(
        "SELECT region, 100 * SUM(x) / COUNT(*) AS p, ROUND(AVG(x) - AVG(y), 1) AS d,"
        " CORR(x, y) AS c FROM visits GROUP BY region"
    )
    in_python = visits.group_by("region").agg(
        p=100 * lb.sum("x") / lb.count(),
        d=round(lb.mean("x") - lb.mean("y"), 1),
        c=lb.correlation("x", "y"),
    )
    assert in_sql.query == in_python.query
    line = visits.agg(**lb.regression("y", "x")).query
    assert line.shown == ("slope", "intercept", "r_squared")
    more = visits.agg(s=-lb.slope("y", "x"), i=abs(lb.intercept("y", "x")))
    assert "slope(y, x)" in repr(more.agg(c=lb.covariance("x", "y")))


def test_aliases_and_brackets_mean_the_aggregate(visits: Any) -> None:
    long = visits.sql("SELECT SUM(x) AS s, COUNT(*) AS n, SUM(x) / COUNT(*) AS r FROM visits")
    assert (
        visits.sql("SELECT SUM(x) AS s, COUNT(*) AS n, s / n AS r FROM visits").query == long.query
    )
    assert visits.sql("SELECT (SUM(x)) AS s FROM visits").query.shown is None
    with pytest.raises(QueryRefused, match="row by row"):  # a column of the table comes first
        visits.sql("SELECT SUM(y) AS x, x + 1 AS more FROM visits")


def test_having_and_order_by_may_ask_for_more_than_is_shown(visits: Any) -> None:
    sql = ("SELECT region, AVG(y) AS m FROM visits GROUP BY region"
           " HAVING COUNT(*) > 100 ORDER BY SUM(x) / COUNT(*) DESC")  # fmt: skip
    query = visits.sql(sql).query
    assert query.shown == ("m",)
    assert [one.name for one in query.hidden] == ["count", "sum_x"]
    answer = visits.sql(sql).release(epsilon=1000)
    assert answer.columns == ("m",) and len(answer) == 2
    assert len(answer.record["rows"][0]["parts"]) == 2
    assert "computed from released numbers" not in visits.sql(sql).explain(epsilon=1)


def test_explain_says_what_is_free_and_what_is_unseen(visits: Any) -> None:
    said = str(visits.sql("SELECT SUM(x) / SUM(y) AS r FROM visits").explain(epsilon=1))
    assert "r: computed from released numbers, at no further price" in said
    assert "sum_x, sum_y: released as a part of the question" in said


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda v: v.agg(n=lb.count() + True), "truth value"),
        (lambda v: v.agg(n=lb.histogram("x", [0, 5]) + 1), "many columns|single|not released"),
        (lambda v: v.agg(n=lb.mean("t") / 2), "needs numbers, not timestamp"),
        (lambda v: v.agg(n=lb.correlation("x", "region")), "two columns of numbers"),
        (lambda v: v.agg(n=lb.count_distinct("y")), "whole numbers"),
    ],
)
def test_formulas_that_are_refused(visits: Any, asked: Any, said: str) -> None:
    with pytest.raises((QueryRefused, InvalidParameter), match=said):
        asked(visits).query  # noqa: B018


# ---------------------------------------------------------------- the checker


@pytest.fixture(scope="module")
def answer(visits: Any) -> Any:
    sql = ("SELECT region, COUNT(*) AS n, SUM(x) / COUNT(*) AS a, MAX(x) - MIN(x) AS span,"
           " COUNT(DISTINCT z) AS k, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS s"
           " FROM visits GROUP BY region")  # fmt: skip
    return visits.sql(sql).release(epsilon=5)


def resealed(record: dict[str, Any], change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    """The record changed, its digests made to fit again: only what follows is left to catch it."""
    found = copy.deepcopy(record)
    change(found)
    certificate = found["certificate"]
    body, claim = certificate["body"], certificate["claim"]
    body["query"] = found["asked"]["query"]
    body["plan"]["query"] = claim["query"] = digest(body["query"])
    body["plan_digest"] = digest(body["plan"])
    found["plan"] = body["plan"]
    claim["rows"] = digest(sealed_rows(found, found["rows"]))
    return found


def cell(record: dict[str, Any], place: int) -> dict[str, Any]:
    found: dict[str, Any] = record["rows"][0]["cells"][place]
    return found


def formula(record: dict[str, Any], place: int) -> dict[str, Any]:
    found: dict[str, Any] = record["asked"]["query"]["derived"][place]
    return found


CHANGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "another value": lambda r: cell(r, 1).update(value=cell(r, 1)["value"] + 0.5),
    "the last bit": lambda r: cell(r, 1).update(value=math.nextafter(cell(r, 1)["value"], 99)),
    "an integer": lambda r: cell(r, 1).update(value=int(cell(r, 1)["value"])),
    "no value": lambda r: cell(r, 1).update(value=None),
    "an interval elsewhere": lambda r: cell(r, 1).update(low=cell(r, 1)["value"] + 1),
    "half an interval": lambda r: cell(r, 1).update(low=None),
    "a standard error": lambda r: cell(r, 1).update(standard_error=0.1),
    "another part": lambda r: r["rows"][0]["parts"][0].update(value=7.0),
    "a part too few": lambda r: [row["parts"].pop() for row in r["rows"]],
    "no parts": lambda r: [row.pop("parts") for row in r["rows"]],
    "another share": lambda r: cell(r, 4).update(value=cell(r, 4)["value"] / 2),
    "a formula of a table": lambda r: formula(r, 0).update(expression={"column": "x"}),
    "a formula of a key": lambda r: formula(r, 0).update(expression={"column": "region"}),
    "an unknown function": lambda r: formula(r, 0).update(expression=["exp", {"column": "n"}]),
    "a formula of nothing": lambda r: formula(r, 0).update(
        expression={"type": "integer", "value": 731}
    ),
    "a text": lambda r: formula(r, 0).update(
        expression=["+", {"column": "n"}, {"type": "text", "value": "a"}]
    ),
    "a total of a formula": lambda r: formula(r, 0).update(
        expression=["total", ["+", {"column": "n"}, {"column": "n"}]]
    ),
    "shown twice": lambda r: r["asked"]["query"]["shown"].append("n"),
    "nothing shown": lambda r: r["asked"]["query"].update(shown=[]),
    "a stranger shown": lambda r: r["asked"]["query"]["shown"].append("who"),
    "one name twice": lambda r: formula(r, 0).update(name="N"),
    "a total of some": lambda r: r["asked"]["query"].update(limit=5),
    "without its note": lambda r: r["notes"].pop(),
    "other words of values": lambda r: r["notes"].__setitem__(-2, r["notes"][-2] + "!"),
}


def test_the_checker_accepts_it(answer: Any) -> None:
    assert problem_of(answer.record) is None
    assert problem_of(resealed(answer.record, lambda record: None)) is None
    assert problem_of(answer.consistent().record) is None


@pytest.mark.parametrize("name", CHANGES)
def test_the_checker_rejects(answer: Any, name: str) -> None:
    assert problem_of(resealed(answer.record, CHANGES[name])) is not None


MUTANTS: dict[str, Callable[[dict[str, Any]], None]] = {
    "fewer values to name": lambda m: m.update(l1="1"),
    "a smaller square": lambda m: m.update(l2_squared="4"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_the_sensitivity_of_distinct_values_is_derived_again(answer: Any, name: str) -> None:
    record = copy.deepcopy(answer.record)
    plan = record["certificate"]["body"]["plan"]
    (measure,) = [m["name"] for m in plan["measures"] if m["kind"] == "distinct"]
    moves = record["certificate"]["body"]["moves"][measure]
    assert moves == {"l1": "4", "l2_squared": "16", "linf": "4"}
    MUTANTS[name](moves)
    assert problem_of(record["certificate"]) is not None


def test_a_saved_answer_comes_back_and_is_shown(answer: Any, tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    answer.save(path)
    again = lb.release.Answer.load(path)
    assert again.columns == ("n", "a", "span", "k", "s")
    assert "no interval" in str(again)
    again.report(tmp_path / "answer.html")
    assert "computed from these" in (tmp_path / "answer.html").read_text()
    assert len(again.to_dicts()[0]) == 1 + 6 * 5
