"""What can be asked of a column, in Python."""

from __future__ import annotations

from fractions import Fraction

import pytest

from lastbit.errors import InvalidParameter, QueryRefused, WrongType
from lastbit.tables.query import aggregates as lb
from lastbit.tables.query.expression import ColumnName, Constant
from lastbit.tables.query.query import Aggregate
from lastbit.tables.query.rules import call
from lastbit.tables.sql.rows import rows_of
from tests.tables.asked import CARD, card_with

ROWS = rows_of(CARD)
AGE, COST = ColumnName("age"), ColumnName("cost")


def made(wanted: lb.Wanted) -> Aggregate:
    return lb.aggregate_of("x", wanted, ROWS)


def test_bounds_of_the_question_win_over_those_of_the_card():
    assert made(lb.mean("cost")).bounds == (Fraction(0), Fraction(500))
    assert made(lb.mean("cost", 1, "2.5")).bounds == (Fraction(1), Fraction(5, 2))
    assert made(lb.sum("age", 0, 9)) == Aggregate(
        name="x",
        function="sum",
        expression=AGE,
        bounds=(Fraction(0), Fraction(9)),
        step=Fraction(1),
    )


def test_a_clamp_and_bounds_hold_in_turn():
    part = made(lb.mean("clamp(cost, 0, 10)", 5, 20))
    assert part.bounds == (Fraction(5), Fraction(20))
    assert part.expression == call("clamp", COST, Constant(0), Constant(10))


def test_missing_values_are_as_declared_or_as_said():
    assert not made(lb.mean("cost")).nullable
    assert made(lb.mean("age")).nullable
    assert not made(lb.mean("age", nullable=False)).nullable
    with pytest.raises(WrongType):
        made(lb.mean("age", nullable="no"))  # type: ignore[arg-type]


def test_counts_quantiles_and_histograms():
    assert made(lb.count()) == Aggregate(name="x", function="count", nullable=False)
    assert made(lb.count("age")).expression == AGE
    assert made(lb.count_units()).function == "count_units"
    assert made(lb.median("age")).level == Fraction(1, 2)
    assert made(lb.quantile("age", "0.9")).level == Fraction(9, 10)
    assert made(lb.histogram("age", range(0, 30, 10))).edges == tuple(map(Fraction, (0, 10, 20)))
    assert {made(f("age")).function for f in (lb.min, lb.max)} == {"min", "max"}
    assert {made(f("age")).function for f in (lb.variance, lb.std)} == {"variance", "std"}


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (lambda: lb.mean("free"), "no bounds"),
        (lambda: lb.mean("free", 3, 3), "do not rise"),
        (lambda: lb.mean("free", 0), "only one"),
        (lambda: lb.mean("free", 0, "1e400"), "1e300"),
        (lambda: lb.mean("free", 0, float("nan")), "low|high|finite|number"),
        (lambda: lb.mean("region", 0, 1), "needs numbers, not text"),
        (lambda: lb.mean("nothing", 0, 1), "No column"),
        (lambda: lb.mean("cost FROM visits", 0, 1), "leave it out|no SQL"),
        (lambda: lb.mean("cost) FROM visits WHERE (ok", 0, 1), "leave it out"),
        (lambda: lb.mean("cost AS c", 0, 1), "not known|no SQL|not one"),
        (lambda: lb.mean("cost, age", 0, 1), "not known|not one"),
        (lambda: lb.mean("cost -- no more", 0, 1), None),
        (lambda: lb.mean("SELECT 1", 0, 1), "sub-query"),
        (lambda: lb.mean("AVG(cost)", 0, 1), "over one row"),
        (lambda: lb.mean(7, 0, 1), "not text"),  # type: ignore[arg-type]
        (lambda: lb.count(""), "empty"),
        (lambda: lb.quantile("age", 1), "between 0 and 1"),
        (lambda: lb.quantile("age", 0), "between 0 and 1"),
        (lambda: lb.histogram("age", [3, 1]), "rising"),
        (lambda: lb.histogram("age", [3]), "rising"),
        (lambda: lb.histogram("age", 5), "list"),  # type: ignore[arg-type]
        (lambda: lb.histogram("age", "0, 5"), "list"),
        (lambda: "mean", "is not an aggregate"),
    ],
)
def test_refusals(wanted, message):
    if message is None:
        assert made(wanted()).expression == COST
        return
    with pytest.raises(InvalidParameter, match=message):
        made(wanted())


def test_rows_that_are_units_are_counted_as_rows():
    rows = rows_of(card_with(unit=None, max_rows=1, max_groups=None))
    with pytest.raises(InvalidParameter, match="count"):
        lb.aggregate_of("n", lb.count_units(), rows)


def test_shown_as_written():
    assert str(lb.mean("cost", 0, 500)) == "mean(cost, 0, 500)"
    assert str(lb.count()) == "count()"


def test_errors_name_the_column_and_the_remedy():
    with pytest.raises(QueryRefused, match=r"^x has no bounds: the column free .* clamp\(free"):
        made(lb.sum("free"))
