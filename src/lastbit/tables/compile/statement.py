"""A query as one SQL statement that gives the measures, as integers.

    unit_rows  (where there is a sub-query grouped by the unit) its rows, made of t in the same way
    t  the columns that the query mentions, cast to the types of the card; what does not fit is
       missing. p1, p2 ... the same of joined tables
    l  l1, l2 ...: the values of expressions, row by row, an operation at a time; j1, j2 ... joins
    e  the values that are asked for, of the rows that the filter leaves
    r  integers for the measures; rows without a unit or with a key that was not declared are gone
    pairs, k  (where a unit must choose its keys) every unit and key of r, with the number of such
       rows; and those of them that the unit has chosen. q: the same with the unit's shares, which
       are W where it has one key
    h  units with n > max_rows rows in r: their weight floor(max_rows W / n)
    s  the rows of r with weights, W where the unit is not in h
    then sums over s for every group, and for every group and bin; and units counted for every
    group: those of k, or of r where no choice is made
    y1, y2 ... the different values of a column that each unit names, and z1, z2 ... those that it
       keeps: different values of z are counted for every group

Measures are sums over all rows, of keys that were chosen or not: only the numbers of units, which
decide on undeclared keys, need the choice. `sensitivity.py` has the theorem.

Theorem  what a unit adds to the sums depends on its own rows, on public tables and on the secret:
         e and r work row by row, and rows meet in `h`, `pairs`, `many`, `own` and `bound` only if
         they have the same u, by which these are grouped, partitioned or joined; so do rows of two
         private tables, and those of a sub-query (`query/units.py`). So `sensitivity.py` applies.
         Rows are counted (n) after joins, so a join that multiplies rows lowers weights
Theorem  where each row is a unit there is no u to count by; a join then keeps public rows only
         whose join columns occur once, so that a row meets at most one of them
Theorem  a unit keeps at most c keys: those with hash below its (c+1)th least one. Were hashes of
         two keys equal, fewer would be kept, never more
         The same holds of the pairs of key and value that a unit keeps for a count of distinct ones
Checked  tests/stability/ (on the real engine, with mutants), tests/tables/test_compile.py

Law      the integer of a row is, for values, the one nearest to (x - centre)/step, from lowest to
         highest, missing if x is; for bins, the i with e_i <= x < e_i+1, decided exactly, where the
         last bin is closed above
Theorem  whatever the doubles do on the way, the integer of `values` is in [lowest, highest]: the
         last operation is a clamp of integers. It depends on x alone. Nothing can raise: the double
         is clamped to abs <= 2**44 before the cast, and NaN is missing already
Differs  nearness is that of doubles: (x - centre)/step is rounded twice, so that a value within
         2**-8 of a tie may go either way. With step 1, a whole centre and whole numbers it is exact

Bins. Few edges are compared with one after the other, by halving. Many equal ones: the quotient
(x - e_0)/width, rounded to doubles and clamped to a bin, is off by at most 1 if no edge is further
than 2**40 widths from 0; comparing x with both edges of that bin, exactly, settles it.

`r` is not materialised unless it comes from text: to read Parquet twice costs less than to keep it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from math import floor, inf, nextafter

from lastbit.errors import InvalidParameter
from lastbit.tables.card.schema import DataCard
from lastbit.tables.compile.expressions import SQL_TYPES, edge_literal
from lastbit.tables.compile.rows import CompiledRows, key_type, keyed_hash
from lastbit.tables.compile.steps import Typed, double, least_double_from
from lastbit.tables.compile.units import unit_rows
from lastbit.tables.limits import refused
from lastbit.tables.plan.sensitivity import (
    WEIGHT_ONE,
    Measure,
    distinct_values,
    selection_keys,
    share_of,
    weight_one,
)
from lastbit.tables.query.expression import ColumnType
from lastbit.tables.query.query import Query

UNITS = -1
"""The block of the numbers of units."""

MOST_ROWS = 1 << 40
"""The most rows, after joins, that a statement is proved not to overflow for."""

_FEW_EDGES = 24
_EXACT = 1 << 62
_WIDEST = 1 << 126
_FURTHEST = 1 << 40
_NOTHING = "CAST(NULL AS BIGINT)"
_MOST_BINS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """The text, and what its columns are: block, keys, bin, n, then the sums in order.

    Block 0 has the sums. In the blocks that `bins` names, n is the weight of each bin; in the block
    `UNITS`, it is the number of units, or of their shares (bin 1: of units with one key, where
    those are counted apart), and in those of `distinct` the number of different values.
    """

    sql: str = field(repr=False)  # holds the secret
    keys: tuple[ColumnType, ...]
    sums: tuple[str, ...]
    bins: Mapping[str, int]
    distinct: Mapping[str, int]


def compiled(
    query: Query, card: DataCard, measures: tuple[Measure, ...], *, secret: str | None
) -> str:
    """The text of the statement; `secret` decides which keys a unit keeps."""
    return statement(query, card, measures, secret=secret).sql


def statement(
    query: Query, card: DataCard, measures: tuple[Measure, ...], *, secret: str | None
) -> Statement:
    """The statement with the meaning of its columns."""
    rows = CompiledRows(query, card, secret=secret)
    keys = tuple(key_type(key, rows) for key in query.keys)
    groups = query.groups
    kinds = {measure.kind for measure in measures}
    counted = groups is None or bool(kinds & {"units", "shares"})
    chosen = selection_keys(card, measures, groups=groups)
    names = [f"g{number}" for number in range(1, len(keys) + 1)]
    blocks = _Blocks(rows, measures, weight=weight_one(card))
    choosing = chosen is not None or (blocks.distinct and card.unit is not None)
    if choosing and not secret:
        raise InvalidParameter(
            "secret", problem="is missing, and units must choose", remedy="draw one afresh"
        )
    kept = "MATERIALIZED" if card.source.kind == "csv" else "NOT MATERIALIZED"
    parts = [
        *unit_rows(query, card, secret=secret, on_grid=grid_integer),
        *rows.sources(),
        *rows.stages(),
        f"e AS NOT MATERIALIZED (\n  {rows.expressions(names)})",
        f"r AS {kept} (\n  {rows.integers(names, blocks.columns)})",
        *(() if chosen is None else _choice(names, chosen, secret or "")),
        *(() if chosen is None or "shares" not in kinds else _shares(names, chosen)),
        *_weights(card, paired=chosen is not None),
        *_named_values(blocks, names, card, secret or ""),
    ]
    weighed = "" if chosen is None else "q" if "shares" in kinds else "k"
    apart = any(measure.kind == "shares" and measure.lowest for measure in measures)
    final = _final(blocks, names, counted=counted, paired=weighed, apart=apart)
    columns = list(dict.fromkeys(blocks.bins.values()))
    return Statement(
        sql="WITH " + ",\n".join(parts) + "\n" + final,
        keys=keys,
        sums=tuple(blocks.sums),
        bins={name: columns.index(column) + 1 for name, column in blocks.bins.items()},
        distinct={name: UNITS - place for place, name in enumerate(blocks.distinct, start=1)},
    )


def _weights(card: DataCard, *, paired: bool) -> Iterator[str]:
    """The weights of units with many rows, and all rows with theirs."""
    one = weight_one(card)
    if card.unit is None:
        yield f"s AS NOT MATERIALIZED (\n  SELECT *, CAST({one} AS BIGINT) AS w FROM r)"
        return
    source, number = ("pairs", "CAST(sum(n) AS BIGINT)") if paired else ("r", "count(*)")
    share = f"CAST({card.max_rows * one} AS BIGINT) // {number}"
    many = f"HAVING {number} > {card.max_rows}"
    yield f"h AS (\n  SELECT u, {share} AS w FROM {source} GROUP BY u {many})"
    weight = f"coalesce(h.w, CAST({one} AS BIGINT)) AS w"
    yield f"s AS NOT MATERIALIZED (\n  SELECT r.*, {weight} FROM r LEFT JOIN h ON r.u = h.u)"


def _choice(names: list[str], chosen: int, secret: str) -> Iterator[str]:
    """Units with more than `chosen` keys keep those of least hash."""
    keys = ", ".join(["u", *names])
    yield f"pairs AS MATERIALIZED (\n  SELECT {keys}, count(*) AS n FROM r GROUP BY {keys})"
    yield f"many AS (\n  SELECT u FROM pairs GROUP BY u HAVING count(*) > {chosen})"
    yield "own AS (\n  SELECT * FROM pairs WHERE u IN (SELECT u FROM many))"
    hashed = _hash("own", names, secret)
    ranked = "u, z, row_number() OVER (PARTITION BY u ORDER BY z) AS place"
    places = f"SELECT {ranked} FROM (SELECT u, {hashed} AS z FROM own)"
    yield f"bound AS (\n  SELECT u, z FROM ({places}) WHERE place = {chosen + 1})"
    kept = f"CASE WHEN bound.z IS NULL THEN TRUE ELSE {_hash('pairs', names, secret)} < bound.z END"
    both = "pairs LEFT JOIN bound ON pairs.u = bound.u"
    yield f"k AS (\n  SELECT pairs.* FROM {both} WHERE {kept})"


def _shares(names: list[str], chosen: int) -> Iterator[str]:
    """The chosen pairs, with the share that one of K of them has: floor(W/sqrt(K))."""
    weights = ", ".join(str(share_of(number)) for number in range(1, chosen + 1))
    own = f"least(count(*), {chosen})"
    keys = f"SELECT u, CAST([{weights}][{own}] AS BIGINT) AS w FROM pairs GROUP BY u"
    columns = ", ".join(f"k.{name}" for name in names)
    yield f"q AS (\n  SELECT {columns}, z.w FROM k JOIN ({keys}) AS z ON k.u = z.u)"


def _named_values(blocks: _Blocks, names: list[str], card: DataCard, secret: str) -> Iterator[str]:
    """For each count of distinct values, the keys and values that units keep, each once a unit."""
    most = distinct_values(card)
    for place, column in enumerate(blocks.distinct.values(), start=1):
        listed = ", ".join([*names, column])
        if card.unit is None:
            yield f"z{place} AS (\n  SELECT {listed} FROM r WHERE {column} IS NOT NULL)"
            continue
        rows = f"SELECT DISTINCT u, {listed} FROM r WHERE {column} IS NOT NULL"
        hashed = _hash("d", [*names, column], f"{secret} {place}")
        yield f"y{place} AS MATERIALIZED (\n  SELECT *, {hashed} AS z FROM ({rows}) AS d)"
        ranked = f"u, z, row_number() OVER (PARTITION BY u ORDER BY z) AS place FROM y{place}"
        bound = f"SELECT u, z FROM (SELECT {ranked}) WHERE place = {most + 1}"
        yield (
            f"z{place} AS (\n  SELECT y{place}.* FROM y{place} LEFT JOIN ({bound}) AS bound"
            f" ON y{place}.u = bound.u WHERE bound.z IS NULL OR y{place}.z < bound.z)"
        )


def _hash(table: str, names: list[str], secret: str) -> str:
    """Of the secret, the unit and the keys."""
    return keyed_hash([f"{table}.{name}" for name in ("u", *names)], secret)


class _Blocks:
    """The integer columns of `r`, and the sums over them."""

    def __init__(self, rows: CompiledRows, measures: tuple[Measure, ...], *, weight: int) -> None:
        self.rows, self.weight = rows, weight
        self.columns: dict[str, str] = {}
        self.sums: dict[str, str] = {}
        self.bins: dict[str, str] = {}
        self.distinct: dict[str, str] = {}
        for measure in measures:
            match measure.kind:
                case "units" | "shares":
                    pass
                case "distinct":
                    self.distinct[measure.name] = self._value(measure)
                case "bins":
                    self.bins[measure.name] = self._integer(measure)
                case "rows" if measure.expression is None:
                    self.sums[measure.name] = "sum(w)"
                case _:
                    self.sums[measure.name] = self._sum(measure)
        if len(self.bins) > _MOST_BINS:
            raise refused("query", "asks for too many quantiles", "ask two questions")

    def _sum(self, measure: Measure) -> str:
        column = self._integer(measure)
        if measure.kind == "rows":
            return f"sum(w) FILTER (WHERE {column})"
        factors = [column] * (2 if measure.kind == "squares" else 1)
        kind = product_type(measure, self.weight)
        return f"sum({' * '.join([f'CAST(w AS {kind})', *factors])})"

    def _value(self, measure: Measure) -> str:
        """The value itself, of a type in which equal is equal."""
        assert measure.expression is not None
        value = self.rows.value(measure.expression)
        if value.type in ("number", None):
            raise refused("COUNT(DISTINCT ...)", "is of numbers with fractions", "CAST to BIGINT")
        return self.columns.setdefault(value.sql, f"v{len(self.columns) + 1}")

    def _integer(self, measure: Measure) -> str:
        assert measure.expression is not None
        value = self.rows.value(measure.expression)
        if measure.kind == "rows":
            sql = f"{value.sql} IS NOT NULL"
        else:
            if value.type not in ("integer", "number", "boolean", None):
                raise refused("an aggregate", "is over no number", "convert with CAST")
            if value.type != "number":
                value = Typed(f"CAST({value.sql} AS {SQL_TYPES['integer']})", "integer")
            sql = (bin_integer if measure.kind == "bins" else grid_integer)(measure, value)
        return self.columns.setdefault(sql, f"v{len(self.columns) + 1}")


def _final(blocks: _Blocks, names: list[str], *, counted: bool, paired: str, apart: bool) -> str:
    """Every block in the same columns: block, keys, bin, n, sums."""
    selects = [_sums(blocks, names)] if blocks.sums or blocks.bins else []
    if counted:
        if apart:
            rows = f"SELECT *, CAST(w // {WEIGHT_ONE} AS BIGINT) AS one FROM {paired}"
        elif paired:
            rows = f"SELECT * FROM {paired}"
        elif blocks.rows.unit is None:
            rows = f"SELECT {', '.join(names) or 'NULL AS x0'} FROM r"
        else:
            rows = f"SELECT DISTINCT {', '.join(['u', *names])} FROM r"
        number = "sum(w) AS n" if paired == "q" else "count(*) AS n"
        single = "one" if apart else _NOTHING
        wanted = [f"{UNITS} AS block", *names, f"{single} AS bin", number]
        wanted += [f"NULL AS a{number + 1}" for number in range(len(blocks.sums))]
        grouped = _grouped([*names, "one"] if apart else names)
        selects.append(f"SELECT {', '.join(wanted)} FROM ({rows}){grouped}")
    for place, column in enumerate(blocks.distinct.values(), start=1):
        pairs = f"SELECT DISTINCT {', '.join([*names, column])} FROM z{place}"
        wanted = [f"{UNITS - place} AS block", *names, f"{_NOTHING} AS bin", "count(*) AS n"]
        wanted += [f"NULL AS a{number + 1}" for number in range(len(blocks.sums))]
        selects.append(f"SELECT {', '.join(wanted)} FROM ({pairs}){_grouped(names)}")
    return "\nUNION ALL\n".join(selects)


def _sums(blocks: _Blocks, names: list[str]) -> str:
    """Sums for groups (block 0) and weights for groups and bins (blocks 1, 2 ...), in one pass."""
    sums = [f"{sql} AS a{number + 1}" for number, sql in enumerate(blocks.sums.values())]
    bins = list(dict.fromkeys(blocks.bins.values()))
    if not bins:
        wanted = ["0 AS block", *names, f"{_NOTHING} AS bin", f"{_NOTHING} AS n", *sums]
        return f"SELECT {', '.join(wanted)} FROM s{_grouped(names)}"
    everything = (1 << len(bins)) - 1  # a bit of GROUPING is 1 where its column is not grouped by
    sets = [(everything, 0, names)] if blocks.sums else []
    for place, column in enumerate(bins):
        mask = everything - (1 << (len(bins) - 1 - place))
        sets.append((mask, place + 1, [*names, column]))
    cases = " ".join(f"WHEN {mask} THEN {block}" for mask, block, _ in sets)
    block = f"CASE GROUPING({', '.join(bins)}) {cases} END AS block"
    wanted = [block, *names, f"coalesce({', '.join(bins)}) AS bin", "sum(w) AS n", *sums]
    grouped = ", ".join(f"({', '.join(columns)})" for _, _, columns in sets)
    return f"SELECT {', '.join(wanted)} FROM s GROUP BY GROUPING SETS ({grouped})"


def _grouped(names: list[str]) -> str:
    return f" GROUP BY {', '.join(names)}" if names else ""


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
    width = edges[1] - edges[0]
    near = max(abs(edges[0]), abs(edges[-1])) <= width * _FURTHEST
    if len(inner) > _FEW_EDGES and near and all(b - a == width for a, b in pairwise(edges)):
        found = _looked_up(value.sql, edges, whole=whole)
    else:
        found = _halved(value.sql, inner, 0, whole=whole)
    if measure.clamped:
        return _present(value.sql, found)
    if whole:
        last = str(floor(edges[-1]))
    else:
        least = least_double_from(edges[-1])
        last = double(least if Fraction(least) == edges[-1] else nextafter(least, -inf))
    inside = f"{value.sql} >= {edge_literal(edges[0], whole=whole)} AND {value.sql} <= {last}"
    return f"CASE WHEN {inside} THEN {found} END"


def product_type(measure: Measure, weight: int) -> str:
    """The SQL type that holds weight times the row's integer; their sum fits into 128 bits."""
    most = weight * measure.largest
    if most * MOST_ROWS >= _WIDEST:
        problem = "is so fine that sums could outgrow 128 bits"
        raise refused("step", problem, "declare a coarser step, or narrower bounds")
    return "BIGINT" if most < _EXACT else "HUGEINT"


def _present(x: str, found: str) -> str:
    # least and greatest skip what is missing, so they must not see it
    return f"CASE WHEN {x} IS NOT NULL THEN {found} END"


def _normal(step: Fraction) -> Fraction:
    if not Fraction(1, 10**300) < step:
        raise refused("step", "is too near to 0", "declare a coarser step")
    return step


def _halved(x: str, edges: tuple[Fraction, ...], first: int, *, whole: bool) -> str:
    """The number of these edges that are <= x, plus `first`; by halving."""
    if not edges:
        return str(first)
    middle = len(edges) // 2
    low = _halved(x, edges[:middle], first, whole=whole)
    high = _halved(x, edges[middle + 1 :], first + middle + 1, whole=whole)
    return f"CASE WHEN {x} >= {edge_literal(edges[middle], whole=whole)} THEN {high} ELSE {low} END"


def _looked_up(x: str, edges: tuple[Fraction, ...], *, whole: bool) -> str:
    """The same for many equal edges: a quotient that is off by at most 1, and two comparisons."""
    last, width = len(edges) - 2, edges[1] - edges[0]
    quotient = f"(CAST({x} AS DOUBLE) - {double(edges[0])}) / {double(_normal(width))}"
    near = f"least(greatest(floor({quotient}), {double(0)}), {double(last)})"
    guess = f"least(greatest(TRY_CAST({near} AS BIGINT), 0), {last})"
    kind = "BIGINT" if whole else "DOUBLE"
    inner = ", ".join(edge_literal(edge, whole=whole) for edge in edges[1:-1])
    table = f"CAST([{inner}] AS {kind}[])"  # its i-th item is the lower edge of bin i
    step = f"CASE WHEN {x} < {table}[{guess}] THEN -1 WHEN {x} >= {table}[{guess} + 1] THEN 1"
    return f"({guess} + {step} ELSE 0 END)"
