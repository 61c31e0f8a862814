"""A query as one SQL statement that gives the measures, as integers.

    unit_rows, t, p1, j1, l1 ..., e, r  as in `rows.py` and `units.py`: r has the rows that count,
       with their unit, their keys and the integers of the measures
    pairs, k  (where a unit must choose its keys) every unit and key of r, with the number of such
       rows; and those of them that the unit has chosen. q: the same with the unit's shares, which
       are W where it has one key
    h  units with n > max_rows rows in r: their weight floor(max_rows W / n)
    s  the rows of r with weights, W where the unit is not in h
    then sums over s for every group, and for every group and bin; and units counted for every
    group: those of k, or of r where no choice is made
    z1, z2 ... the different values of a column that each unit names and keeps, which are counted
       for every group

The text is that of an engine (`dialect.py`). Where rows meet their unit's numbers by a window, s
has the number of the unit's rows beside each of them, and there is no h; and no `many`, the units
that must choose: all of them are ranked.

Measures are sums over all rows, of keys that were chosen or not: only the numbers of units, which
decide on undeclared keys, need the choice. `measures.py` has the theorem.

Theorem  what a unit adds to the sums depends on its own rows, on public tables and on the secret:
         e and r work row by row, and rows meet in `h`, `pairs`, `many` and in windows only if they
         have the same u, by which these are grouped, partitioned or joined; so do rows of two
         private tables, and those of a sub-query (`query/units.py`). So `measures.py` applies.
         Rows are counted (n) after joins, so a join that multiplies rows lowers weights
Theorem  where each row is a unit there is no u to count by; a join then keeps public rows only
         whose join columns occur once, so that a row meets at most one of them
Theorem  a unit keeps at most c keys: those at the first c places by hash, then by value, whatever
         the hashes are; all of them if it has no more. The same holds of the pairs of key and value
         that a unit keeps for a count of distinct ones
Checked  tests/stability/ (on the real engine, with mutants), tests/tables/test_compile.py

Law      the integer of a row is, for values, the one nearest to (x - centre)/step, from lowest to
         highest, missing if x is; for bins, the i with e_i <= x < e_i+1, decided exactly, where the
         last bin is closed above
Theorem  whatever the doubles do on the way, the integer of `values` is in [lowest, highest]: the
         last operation is a clamp of integers. It depends on x alone. Nothing can raise: a
         double beyond the range of the cast becomes the nearer bound; NaN is missing already
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
from functools import partial
from itertools import pairwise
from math import ceil, floor, inf, nextafter
from typing import TYPE_CHECKING

from lastbit.tables.card.schema import DataCard
from lastbit.tables.compile.dialect import Dialect, Grid, Part, Shown
from lastbit.tables.compile.rows import AS_ON_THE_CARD, CompiledRows
from lastbit.tables.compile.steps import Typed, least_double_from
from lastbit.tables.compile.units import unit_rows
from lastbit.tables.limits import refused
from lastbit.tables.measures import (
    WEIGHT_ONE,
    Measure,
    distinct_values,
    selection_keys,
    share_of,
    weight_one,
)
from lastbit.tables.query.expression import ColumnType
from lastbit.tables.query.scan import Scan

if TYPE_CHECKING:
    from lastbit.tables.compile.numbers import Numbers

UNITS = -1
"""The block of the numbers of units."""

COUNTED_UNITS = "lastbit_units"
"""Units with many rows, in the statement, where the backend has counted them."""

MOST_ROWS = 1 << 40
"""The most rows, after joins, that a statement is proved not to overflow for."""

_FEW_EDGES = 24
_EXACT = 1 << 62
_WIDEST = 1 << 126
_FURTHEST = 1 << 40
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


def statement(
    query: Scan,
    card: DataCard,
    measures: tuple[Measure, ...],
    *,
    secret: str | None,
    dialect: Dialect,
    actual: Mapping[str, Shown] = AS_ON_THE_CARD,
    indexed: bool = False,
    numbers: Numbers | None = None,
) -> Statement:
    """The statement with the meaning of its columns, in the text of this engine.

    `secret` decides which keys a unit keeps. `actual` is what the engine shows of the sources
    (`rows.CompiledRows`). `indexed` says that it shows what `duckdb/unit_index.py` counts as
    `COUNTED_UNITS`, so that units are not counted here. `numbers` are those that it shows beside
    rows; they are not used where a unit's own value is hashed.
    """
    compiled = partial(CompiledRows, query, secret=secret, dialect=dialect, actual=actual)
    rows = compiled(card)
    names, keys = rows.names, rows.key_types()
    groups = query.groups
    kinds = {measure.kind for measure in measures}
    counted = groups is None or bool(kinds & {"units", "shares"})
    chosen = selection_keys(card, measures, groups=groups)
    numbers = None if chosen is not None or "distinct" in kinds else numbers
    rows = rows if numbers is None else compiled(numbers.card_where(units_counted=counted))
    blocks = _Blocks(rows, measures, weight=weight_one(card))
    blocks.columns |= {} if numbers is None else numbers.columns(rows)
    choosing = chosen is not None or (blocks.distinct and card.unit is not None)
    unit_type = "integer" if card.unit is None else card.column(card.unit).type
    own = zip(["u", *names], [unit_type, *keys], strict=True)
    choice = _Choice(tuple(own), rows.drawn_secret if choosing else "", dialect)
    parts = [
        *unit_rows(rows.within, grid_integer),
        *bounded_rows(rows, blocks.columns),
        *(() if chosen is None else choice.of_keys(chosen)),
        *(() if chosen is None or "shares" not in kinds else choice.shares(chosen)),
        *weights(card, dialect, paired=chosen is not None, indexed=indexed, numbers=numbers),
        *_named_values(blocks, choice, card),
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


def bounded_rows(rows: CompiledRows, columns: dict[str, str]) -> Iterator[str]:
    """The parts up to `r`."""
    yield from rows.until_filtered()
    how: Part = "kept" if rows.card.source.kind == "csv" else "inline"
    yield rows.dialect.part("r", rows.integers(columns), how)


def weights(
    card: DataCard,
    dialect: Dialect,
    *,
    paired: bool,
    indexed: bool = False,
    numbers: Numbers | None = None,
) -> Iterator[str]:
    """The weights of units with many rows, and all rows with theirs."""
    one, most, part = weight_one(card), card.max_rows, dialect.part
    whole = dialect.literal(one)
    if card.unit is None:
        yield part("s", f"SELECT *, {whole} AS w FROM r")
        return
    beside = numbers is not None and numbers.rows is not None  # n is in r
    if dialect.bounding == "window" or beside:  # rows are read once, and meet once
        window = dialect.nested("SELECT r.*, count(*) OVER (PARTITION BY u) AS n FROM r")
        counted = "r" if beside else window
        share = dialect.share.format(total=most * one, count="n")
        weight = f"CASE WHEN n > {most} THEN {share} ELSE {whole} END AS w"
        yield part("s", f"SELECT *, {weight} FROM {counted}")
        return
    source, number = ("pairs", "CAST(sum(n) AS BIGINT)") if paired else ("r", "count(*)")
    many = f" GROUP BY u HAVING {number} > {most}"
    if indexed:
        source, number, many = COUNTED_UNITS, "n", ""
    share = dialect.share.format(total=most * one, count=number)
    yield part("h", f"SELECT u, {share} AS w FROM {source}{many}", "free")
    weight = f"coalesce(h.w, {whole}) AS w"
    yield part("s", f"SELECT r.*, {weight} FROM r LEFT JOIN h ON r.u = h.u")


@dataclass(frozen=True, slots=True)
class _Choice:
    """How a unit keeps few of its keys, or values: those of least hash.

    `own` is u and the keys, each with its type.
    """

    own: tuple[tuple[str, ColumnType], ...]
    secret: str = field(repr=False)
    dialect: Dialect

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.own[1:]]

    def hashed(self, table: str, *further: tuple[str, ColumnType], salt: str = "") -> str:
        columns = [(f"{table}.{name}", kind) for name, kind in (*self.own, *further)]
        return self.dialect.keyed_hash(columns, self.secret + salt)

    def of_keys(self, chosen: int) -> Iterator[str]:
        """Units with more than `chosen` keys keep those of least hash."""
        part, keys = self.dialect.part, ", ".join(["u", *self.names])
        yield part("pairs", f"SELECT {keys}, count(*) AS n FROM r GROUP BY {keys}", "kept")
        hashed = f"SELECT *, {self.hashed('pairs')} AS z FROM pairs"
        if self.dialect.bounding == "window":
            yield part("k", self.least(hashed, keys, chosen), "free")
            return
        yield part("many", f"SELECT u FROM pairs GROUP BY u HAVING count(*) > {chosen}", "free")
        own = f"{hashed} WHERE u IN (SELECT u FROM many)"
        others = "WHERE NOT EXISTS (SELECT 1 FROM many WHERE many.u = pairs.u)"
        those = self.least(own, keys, chosen, shown=f"{keys}, n")
        yield part("k", f"{those}\n  UNION ALL SELECT {keys}, n FROM pairs {others}", "free")

    def least(self, hashed: str, columns: str, most: int, *, shown: str = "*") -> str:
        """Of each unit's rows, which have a hash z, the first `most` by hash, then by value."""
        place = f"row_number() OVER (PARTITION BY u ORDER BY z, {columns}) AS place"
        ranked = f"SELECT *, {place} FROM {self.dialect.nested(hashed)}"
        return f"SELECT {shown} FROM {self.dialect.nested(ranked)} WHERE place <= {most}"

    def shares(self, chosen: int) -> Iterator[str]:
        """The chosen pairs, with the share that one of K of them has: floor(W/sqrt(K))."""
        listed = [str(share_of(number)) for number in range(1, chosen + 1)]
        item = self.dialect.item(listed, f"least(count(*), {chosen})")
        weight = self.dialect.widened(item, "integer", "integer")
        keys = f"SELECT u, {weight} AS w FROM pairs GROUP BY u"
        columns = ", ".join(f"k.{name}" for name in self.names)
        both = f"k JOIN ({keys}) AS z ON k.u = z.u"
        yield self.dialect.part("q", f"SELECT {columns}, z.w FROM {both}", "free")


def _named_values(blocks: _Blocks, choice: _Choice, card: DataCard) -> Iterator[str]:
    """For each count of distinct values, the keys and values that units keep, each once a unit."""
    most, part = distinct_values(card), choice.dialect.part
    for place, (column, kind) in enumerate(blocks.distinct.values(), start=1):
        listed = ", ".join([*choice.names, column])
        if card.unit is None:
            body = f"SELECT {listed} FROM r WHERE {column} IS NOT NULL"
            yield part(f"z{place}", body, "free")
            continue
        rows = f"SELECT DISTINCT u, {listed} FROM r WHERE {column} IS NOT NULL"
        hashed = choice.hashed("d", (column, kind), salt=f" {place}")
        body = f"SELECT *, {hashed} AS z FROM ({rows}) AS d"
        yield part(f"z{place}", choice.least(body, listed, most), "free")


class _Blocks:
    """The integer columns of `r`, and the sums over them."""

    def __init__(self, rows: CompiledRows, measures: tuple[Measure, ...], *, weight: int) -> None:
        self.rows, self.weight = rows, weight
        self.columns: dict[str, str] = {}
        self.sums: dict[str, str] = {}
        self.bins: dict[str, str] = {}
        self.distinct: dict[str, tuple[str, ColumnType]] = {}
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
        whole = column if measure.nullable else f"coalesce({column}, {measure.highest // 2})"
        ends = {"above": [whole], "below": [f"({measure.highest} - {whole})"]}  # of one integer
        factors = {"squares": [column] * 2, **ends}.get(measure.kind, [column])
        return self.rows.dialect.total(["w", *factors], largest_product(measure, self.weight))

    def _value(self, measure: Measure) -> tuple[str, ColumnType]:
        """The value itself and its type, one in which equal is equal."""
        assert measure.expression is not None
        value = self.rows.value(measure.expression)
        if value.type is None or value.type == "number":
            raise refused("COUNT(DISTINCT ...)", "is of numbers with fractions", "CAST to BIGINT")
        return self.columns.setdefault(value.sql, f"v{len(self.columns) + 1}"), value.type

    def _integer(self, measure: Measure) -> str:
        assert measure.expression is not None
        value, dialect = self.rows.value(measure.expression), self.rows.dialect
        if measure.kind == "rows":
            sql = f"{value.sql} IS NOT NULL"
        else:
            if value.type not in ("integer", "number", "boolean", None):
                raise refused("an aggregate", "is over no number", "convert with CAST")
            if value.type != "number":
                value = Typed(dialect.widened(value.sql, "integer", value.type), "integer")
            sql = (bin_integer if measure.kind == "bins" else grid_integer)(measure, value, dialect)
        return self.columns.setdefault(sql, f"v{len(self.columns) + 1}")


def _final(blocks: _Blocks, names: list[str], *, counted: bool, paired: str, apart: bool) -> str:
    """Every block in the same columns: block, keys, bin, n, sums."""
    selects = [_sums(blocks, names)] if blocks.sums or blocks.bins else []
    nested, nothing = blocks.rows.dialect.nested, blocks.rows.dialect.missing("integer")
    none = [f"NULL AS a{number + 1}" for number in range(len(blocks.sums))]
    if counted:
        if apart:
            rows = f"SELECT *, CASE WHEN w = {WEIGHT_ONE} THEN 1 ELSE 0 END AS one FROM {paired}"
        elif paired:
            rows = f"SELECT * FROM {paired}"
        elif blocks.rows.unit is None:
            rows = f"SELECT {', '.join(names) or 'NULL AS x0'} FROM r"
        else:
            rows = f"SELECT DISTINCT {', '.join(['u', *names])} FROM r"
        number = "sum(w) AS n" if paired == "q" else "count(*) AS n"
        single = "one" if apart else nothing
        wanted = [f"{UNITS} AS block", *names, f"{single} AS bin", number, *none]
        grouped = _grouped([*names, "one"] if apart else names)
        selects.append(f"SELECT {', '.join(wanted)} FROM {nested(rows)}{grouped}")
    for place, (column, _) in enumerate(blocks.distinct.values(), start=1):
        pairs = f"SELECT DISTINCT {', '.join([*names, column])} FROM z{place}"
        wanted = [f"{UNITS - place} AS block", *names, f"{nothing} AS bin", "count(*) AS n", *none]
        selects.append(f"SELECT {', '.join(wanted)} FROM {nested(pairs)}{_grouped(names)}")
    return "\nUNION ALL\n".join(selects)


def _sums(blocks: _Blocks, names: list[str]) -> str:
    """Sums for groups (block 0) and weights for groups and bins (blocks 1, 2 ...), in one pass."""
    sums = [f"{sql} AS a{number + 1}" for number, sql in enumerate(blocks.sums.values())]
    bins, dialect = list(dict.fromkeys(blocks.bins.values())), blocks.rows.dialect
    if not bins:
        nothing = dialect.missing("integer")
        wanted = ["0 AS block", *names, f"{nothing} AS bin", f"{nothing} AS n", *sums]
        return f"SELECT {', '.join(wanted)} FROM s{_grouped(names)}"
    everything = (1 << len(bins)) - 1  # a bit of GROUPING is 1 where its column is not grouped by
    sets = [(everything, 0, names)] if blocks.sums else []
    for place, column in enumerate(bins):
        mask = everything - (1 << (len(bins) - 1 - place))
        sets.append((mask, place + 1, [*names, column]))
    cases = [(mask, block) for mask, block, _ in sets]
    block = f"{dialect.block(bins, cases)} AS block"
    wanted = [block, *names, f"coalesce({', '.join(bins)}) AS bin", "sum(w) AS n", *sums]
    grouped = ", ".join(f"({', '.join(columns)})" for _, _, columns in sets)
    return f"SELECT {', '.join(wanted)} FROM s GROUP BY GROUPING SETS ({grouped})"


def _grouped(names: list[str]) -> str:
    return f" GROUP BY {', '.join(names)}" if names else ""


def grid_integer(measure: Measure, value: Typed, dialect: Dialect) -> str:
    """The value on the grid of the measure; `value.sql` is a column, and never NaN."""
    x, low, high = value.sql, measure.lowest, measure.highest
    shift, ends = measure.centre, (low + measure.centre, high + measure.centre)
    exact = value.type == "integer" and measure.step == 1 and shift.denominator == 1
    if exact and max(map(abs, ends)) < _EXACT:
        inner = f"least(greatest({x}, {ends[0]}), {ends[1]}) - {shift}"
        return _present(x, f"least(greatest({inner}, {low}), {high})")
    grid = Grid(shift, _normal(measure.step), low, high)
    return _present(x, dialect.on_grid(x, value.type or "number", grid, nearest=True))


def bin_integer(measure: Measure, value: Typed, dialect: Dialect) -> str:
    """The number of the bin, from 0; missing where the value has none."""
    edges = _Edges(value.sql, measure.edges, whole=value.type == "integer", dialect=dialect)
    found = edges.looked_up() if edges.many else edges.halved(measure.edges[1:-1], 0)
    if measure.clamped:
        return _present(value.sql, found)
    return f"CASE WHEN {edges.inside()} THEN {found} END"


@dataclass(frozen=True, slots=True)
class _Edges:
    """Where a column is among edges; whole numbers and doubles are compared exactly."""

    x: str
    edges: tuple[Fraction, ...]
    whole: bool
    dialect: Dialect

    @property
    def many(self) -> bool:
        """Whether there are many, of which all are equally wide."""
        width = self.edges[1] - self.edges[0]
        near = max(abs(self.edges[0]), abs(self.edges[-1])) <= width * _FURTHEST
        equal = (b - a == width for a, b in pairwise(self.edges))
        return len(self.edges) - 2 > _FEW_EDGES and near and all(equal)

    def literal(self, edge: Fraction) -> str:
        """The least whole number, or double, from the edge on: >= it just if >= the edge."""
        if self.whole:
            return _short_integer(ceil(edge))
        return self.dialect.double(least_double_from(edge))

    def inside(self) -> str:
        last = self.edges[-1]
        if self.whole:
            highest = _short_integer(floor(last))
        else:
            least = least_double_from(last)
            near = least if Fraction(least) == last else nextafter(least, -inf)
            highest = self.dialect.double(near)
        return f"{self.x} >= {self.literal(self.edges[0])} AND {self.x} <= {highest}"

    def halved(self, edges: tuple[Fraction, ...], first: int) -> str:
        """The number of these edges that are <= x, plus `first`; by halving."""
        if not edges:
            return str(first)
        middle = len(edges) // 2
        low = self.halved(edges[:middle], first)
        high = self.halved(edges[middle + 1 :], first + middle + 1)
        return f"CASE WHEN {self.x} >= {self.literal(edges[middle])} THEN {high} ELSE {low} END"

    def looked_up(self) -> str:
        """The same for many equal edges: a quotient off by at most 1, and two comparisons."""
        x, edges, item = self.x, self.edges, self.dialect.item
        grid = Grid(edges[0], _normal(edges[1] - edges[0]), 0, len(edges) - 2)
        kind: ColumnType = "integer" if self.whole else "number"
        guess = self.dialect.on_grid(x, kind, grid, nearest=False)
        lower = [self.literal(edge) for edge in edges[1:-1]]  # the i-th is the lower edge of bin i
        below, above = item(lower, guess, kind), item(lower, f"{guess} + 1", kind)
        return f"({guess} + CASE WHEN {x} < {below} THEN -1 WHEN {x} >= {above} THEN 1 ELSE 0 END)"


def _short_integer(number: int) -> str:
    """A whole number that a column of 64 bits can be compared with.

    A longer one would stop some engines, and only where a row comes to be compared with it.
    """
    if not -(1 << 63) <= number < 1 << 63:
        problem = "is beyond the whole numbers of 64 bits, and the column has no others"
        raise refused("a bin", problem, "ask between narrower bounds, or CAST the column to DOUBLE")
    return str(number)


def largest_product(measure: Measure, weight: int) -> int:
    """The largest weight times the row's integer; their sum fits into 128 bits."""
    most = weight * measure.largest
    if most * MOST_ROWS >= _WIDEST:
        problem = "is so fine that sums could outgrow 128 bits"
        raise refused("step", problem, "declare a coarser step, or narrower bounds")
    return most


def _present(x: str, found: str) -> str:
    # least and greatest skip what is missing, so they must not see it
    return f"CASE WHEN {x} IS NOT NULL THEN {found} END"


def _normal(step: Fraction) -> Fraction:
    if not Fraction(1, 10**300) < step:
        raise refused("step", "is too near to 0", "declare a coarser step")
    return step
