"""The integer that a row brings to a measure, as SQL text.

Law      values: the integer nearest to (x - centre)/step, from lowest to highest; missing if x is
         bins: the i with e_i <= x < e_i+1, decided exactly; the last bin is closed above
Theorem  whatever the doubles do on the way, the integer of `values` is in [lowest, highest]: the
         last operation is a clamp of integers. It depends on x alone. Nothing can raise: the double
         is clamped to abs <= 2**44 before the cast, and NaN is missing already
Differs  nearness is that of doubles: (x - centre)/step is rounded twice, so that a value within
         2**-8 of a tie may go either way. With step 1, a whole centre and whole numbers it is exact
Checked  tests/tables/test_compile.py, tests/stability/

Bins. Few edges are compared with one after the other, by halving. Many equal ones: the quotient
(x - e_0)/width, rounded to doubles and clamped to a bin, is off by at most 1 if no edge is further
than 2**40 widths from 0; comparing x with both edges of that bin, exactly, settles it.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import floor, inf, nextafter

from lastbit.errors import QueryRefused
from lastbit.tables.compile.expressions import edge_text
from lastbit.tables.compile.literals import double, least_double_from
from lastbit.tables.compile.steps import Typed
from lastbit.tables.plan.measures import Measure

MOST_ROWS = 1 << 40
"""The most rows, after joins, that a statement is proved not to overflow for."""

_FEW_EDGES = 24
_EXACT = 1 << 62
_WIDEST = 1 << 126
_FURTHEST = 1 << 40


def grid_integer(measure: Measure, value: Typed) -> str:
    """The value on the grid of the measure; `value.sql` is a column, and never NaN."""
    x, low, high = value.sql, measure.lowest, measure.highest
    shift, ends = measure.centre, (low + measure.centre, high + measure.centre)
    exact = value.type == "integer" and measure.step == 1 and shift.denominator == 1
    if exact and max(map(abs, ends)) < _EXACT:
        inner = f"least(greatest({x}, {ends[0]}), {ends[1]}) - {shift}"
        return _present(x, f"least(greatest({inner}, {low}), {high})")
    steps = f"round((CAST({x} AS DOUBLE) - {double(shift)}) / {double(_normal(measure.step))})"
    near = f"least(greatest({steps}, {double(low)}), {double(high)})"
    return _present(x, f"least(greatest(TRY_CAST({near} AS BIGINT), {low}), {high})")


def bin_integer(measure: Measure, value: Typed) -> str:
    """The number of the bin, from 0; missing where the value has none."""
    whole, edges = value.type == "integer", measure.edges
    inner = edges[1:-1]
    if len(inner) > _FEW_EDGES and _equal(edges):
        found = _looked_up(value.sql, edges, whole=whole)
    else:
        found = _halved(value.sql, inner, 0, whole=whole)
    if measure.clamped:
        return _present(value.sql, found)
    inside = f"{value.sql} >= {edge_text(edges[0], whole=whole)}"
    inside += f" AND {value.sql} <= {_last(edges[-1], whole=whole)}"
    return f"CASE WHEN {inside} THEN {found} END"


def product_type(measure: Measure, weight: int) -> str:
    """The SQL type that holds weight times the row's integer; their sum fits into 128 bits."""
    most = weight * measure.largest
    if most * MOST_ROWS >= _WIDEST:
        raise QueryRefused(
            "step",
            problem="is so fine that sums could outgrow 128 bits",
            remedy="declare a coarser step, or narrower bounds",
        )
    return "BIGINT" if most < _EXACT else "HUGEINT"


def _present(x: str, found: str) -> str:
    # least and greatest skip what is missing, so they must not see it
    return f"CASE WHEN {x} IS NOT NULL THEN {found} END"


def _normal(step: Fraction) -> Fraction:
    if not Fraction(1, 10**300) < step:
        raise QueryRefused("step", problem="is too near to 0", remedy="declare a coarser step")
    return step


def _equal(edges: tuple[Fraction, ...]) -> bool:
    width = edges[1] - edges[0]
    far = max(abs(edges[0]), abs(edges[-1])) > width * _FURTHEST
    return not far and all(b - a == width for a, b in pairwise(edges))


def _halved(x: str, edges: tuple[Fraction, ...], first: int, *, whole: bool) -> str:
    """The number of these edges that are <= x, plus `first`; by halving."""
    if not edges:
        return str(first)
    middle = len(edges) // 2
    low = _halved(x, edges[:middle], first, whole=whole)
    high = _halved(x, edges[middle + 1 :], first + middle + 1, whole=whole)
    return f"CASE WHEN {x} >= {edge_text(edges[middle], whole=whole)} THEN {high} ELSE {low} END"


def _looked_up(x: str, edges: tuple[Fraction, ...], *, whole: bool) -> str:
    """The same for many equal edges: a quotient that is off by at most 1, and two comparisons."""
    last, width = len(edges) - 2, edges[1] - edges[0]
    quotient = f"(CAST({x} AS DOUBLE) - {double(edges[0])}) / {double(_normal(width))}"
    near = f"least(greatest(floor({quotient}), {double(0)}), {double(last)})"
    guess = f"least(greatest(TRY_CAST({near} AS BIGINT), 0), {last})"
    kind = "BIGINT" if whole else "DOUBLE"
    inner = ", ".join(edge_text(edge, whole=whole) for edge in edges[1:-1])
    table = f"CAST([{inner}] AS {kind}[])"  # its i-th item is the lower edge of bin i
    step = f"CASE WHEN {x} < {table}[{guess}] THEN -1 WHEN {x} >= {table}[{guess} + 1] THEN 1"
    return f"({guess} + {step} ELSE 0 END)"


def _last(edge: Fraction, *, whole: bool) -> str:
    if whole:
        return str(floor(edge))
    least = least_double_from(edge)
    return double(least if Fraction(least) == edge else nextafter(least, -inf))
