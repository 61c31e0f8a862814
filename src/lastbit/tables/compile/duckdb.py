"""DuckDB's text of a statement.

Law      every method means what `dialect.py` says of it, to the last bit
Theorem  no value of any row stops the statement: whole numbers are computed in 128 bits, which two
         of 64 cannot outgrow, and brought back by TRY_CAST; doubles are IEEE 754's; arguments
         outside of a domain are missing before the function sees them. TRY_CAST from a number or a
         text raises nothing inside and evaluates nothing twice. There is no TRY(...), which
         evaluates its operand row by row, and again at each level, wherever one row raises
Theorem  LIKE takes time linear in the text: RE2 reads each character once, and its automaton has
         few states, as the pattern is a constant of at most LONGEST_PATTERN characters in which at
         most MOST_SINGLE_WILDCARDS signs _ stand beside a %. DuckDB's own LIKE goes back at every %
Source   Cox, Regular Expression Matching Can Be Simple And Fast (2007)
Checked  tests/tables/test_compile.py, tests/tables/test_values.py, tests/engines/
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import ClassVar, Literal

from lastbit.tables.compile import steps
from lastbit.tables.compile.dialect import (
    Dialect,
    Family,
    Grid,
    Part,
    materialized,
    regular_expression,
)
from lastbit.tables.limits import MOST_ELEMENTS
from lastbit.tables.query.expression import ColumnType

_FEW = 16
_DIGITS = 400
_FURTHEST = 1 << 32  # where DuckDB's substring would raise
_EXACT = 1 << 62
_PARTS: Mapping[str, str] = MappingProxyType(
    {
        "weekday": "dayofweek",
        "day_of_year": "dayofyear",
        "iso_weekday": "isodow",
        "iso_year": "isoyear",
    }
)


class DuckDBDialect(Dialect):
    """DuckDB's text; its settings are those of `backends/duckdb/engine.py`."""

    name: ClassVar[str] = "duckdb"
    title: ClassVar[str] = "DuckDB"
    version: ClassVar[int] = 1
    types: ClassVar[Mapping[ColumnType, str]] = MappingProxyType(
        {
            "integer": "BIGINT",
            "number": "DOUBLE",
            "text": "VARCHAR",
            "boolean": "BOOLEAN",
            "date": "DATE",
            "timestamp": "TIMESTAMP",
        }
    )
    evens: ClassVar[bool] = True
    bounding: ClassVar[Literal["join", "window"]] = "join"
    nested_terms: ClassVar[int] = 32
    unsupported: ClassVar[Mapping[str, str]] = MappingProxyType({})
    not_nan: ClassVar[str] = "CASE WHEN NOT isnan({x}) THEN {x} END"
    days_between: ClassVar[str] = "CAST(date_diff('day', {a}, {b}) AS BIGINT)"
    bytes_of: ClassVar[str] = "strlen({x})"
    condition: ClassVar[str] = "{tests}"
    computed_early: ClassVar[str] = "{body}"
    share: ClassVar[str] = "CAST({total} AS BIGINT) // {count}"
    unit_total: ClassVar[str] = "sum(CAST({x} AS HUGEINT))"
    mean_of: ClassVar[str] = "{total} / CAST({count} AS DOUBLE)"

    # names and values

    identifier = staticmethod(steps.identifier)
    double = staticmethod(steps.double)
    literal = staticmethod(steps.literal)

    # reading

    def read(self, sql: str, kind: ColumnType, actual: Family) -> str:
        """As the base says; TRY_CAST reads any.

        >>> DUCKDB.read('"age"', "integer", "text")
        'TRY_CAST("age" AS BIGINT)'
        """
        del actual
        return f"TRY_CAST({sql} AS {self.types[kind]})"

    def cast(self, sql: str, kind: ColumnType, origin: ColumnType) -> str:
        del origin
        return f"TRY_CAST({sql} AS {self.types[kind]})"

    def widened(self, sql: str, kind: ColumnType, origin: ColumnType | None) -> str:
        del origin
        return f"CAST({sql} AS {self.types[kind]})"

    # arithmetic

    def whole(self, function: str, a: str, b: str | None = None) -> str:
        if b is None:
            name = "-" if function == "negate" else function
            return f"TRY_CAST({name}(CAST({a} AS HUGEINT)) AS BIGINT)"
        if function == "%":
            b = f"CASE WHEN {b} <> 0 THEN {b} END"
        return f"TRY_CAST(CAST({a} AS HUGEINT) {function} CAST({b} AS HUGEINT) AS BIGINT)"

    def number(self, function: str, a: str, b: str | None = None) -> str:
        match function:
            case "+" | "-" | "*":
                return f"({a} {function} {b})"
            case "/" | "%":
                return f"({a} {function} CASE WHEN {b} <> {self.double(0)} THEN {b} END)"
            case "ln" | "sqrt":
                test = ">" if function == "ln" else ">="
                return f"{function}(CASE WHEN {a} {test} {self.double(0)} THEN {a} END)"
            case "round" if b is not None:
                inside = f"CAST(least(greatest({b}, -{_DIGITS}), {_DIGITS}) AS INTEGER)"
                return f"round({a}, CASE WHEN {b} IS NOT NULL THEN {inside} END)"
        name = "-" if function == "negate" else function
        return f"{name}({a})" if b is None else f"{name}({a}, {b})"

    def on_grid(self, x: str, kind: ColumnType, grid: Grid, *, nearest: bool) -> str:
        del kind
        quotient = f"(CAST({x} AS DOUBLE) - {self.double(grid.shift)}) / {self.double(grid.step)}"
        whole = f"TRY_CAST({'round' if nearest else 'floor'}({quotient}) AS BIGINT)"
        # missing if it is beyond 64 bits; to clamp doubles first takes longer than all the rest
        beyond = f"CASE WHEN {quotient} > 0.0e0 THEN {grid.high} ELSE {grid.low} END"
        return f"least(greatest(coalesce({whole}, {beyond}), {grid.low}), {grid.high})"

    def item(self, values: Sequence[str], index: str, kind: ColumnType | None = None) -> str:
        listed = f"[{', '.join(values)}]"
        return f"{listed if kind is None else f'CAST({listed} AS {self.types[kind]}[])'}[{index}]"

    # dates

    def date_part(self, function: str, x: str, kind: ColumnType) -> str:
        del kind
        return f"CAST({_PARTS.get(function, function)}({x}) AS BIGINT)"

    def start_of(self, part: str, x: str) -> str:
        kind: ColumnType = "timestamp" if part in ("hour", "minute") else "date"
        return f"CAST(date_trunc('{part}', {x}) AS {self.types[kind]})"

    def formatted(self, x: str, form: str) -> str:
        return f"strftime({x}, {steps.string(form)})"

    # texts

    def of_text(self, function: str, values: Sequence[str]) -> str:
        return f"{function}({', '.join(values)})"

    def like(self, x: str, pattern: str, *, lowered: bool = False) -> str:
        wanted = steps.string(regular_expression(pattern))
        return f"regexp_full_match({x}, {f'lower({wanted})' if lowered else wanted}, 's')"

    def substring(self, x: str, places: Sequence[str]) -> str:
        inside = f"BETWEEN {-_FURTHEST} AND {_FURTHEST - 1}"
        near = [f"CASE WHEN {place} {inside} THEN {place} END" for place in places]
        return f"substring({', '.join([x, *near])})"

    def concat(self, values: Sequence[str]) -> str:
        return self.concat_if_short(values)

    # rows

    def among(self, name: str, listed: Sequence[str]) -> str:
        inner = ", ".join(listed)
        return f"{name} IN ({f'SELECT unnest([{inner}])' if len(listed) > _FEW else inner})"

    def keyed_hash(self, columns: Sequence[tuple[str, ColumnType]], secret: str) -> str:
        parts = [steps.string(f"{secret}:")]
        for column, _ in columns:
            value = f"CAST({column} AS VARCHAR)"
            size = f"CAST({self.bytes_of.format(x=value)} AS VARCHAR)"
            parts.append(f"coalesce({size} || ':' || {value}, '-')")
        return f"md5(concat({', '.join(parts)}))"

    def part(self, name: str, body: str, how: Part = "inline") -> str:
        return materialized(name, body, how)

    def unrolled(self, column: str) -> str:
        return f"unnest({column}[1:{MOST_ELEMENTS}])"

    def nested(self, body: str) -> str:
        return f"({body})"

    # groups

    def total(self, factors: Sequence[str], most: int) -> str:
        kind = "BIGINT" if most < _EXACT else "HUGEINT"
        return f"sum({' * '.join([f'CAST({factors[0]} AS {kind})', *factors[1:]])})"

    def block(self, columns: Sequence[str], cases: Sequence[tuple[int, int]]) -> str:
        spelled = " ".join(f"WHEN {mask} THEN {number}" for mask, number in cases)
        return f"CASE GROUPING({', '.join(columns)}) {spelled} END"

    # rows of one unit

    def total_as(self, total: str, kind: ColumnType) -> str:
        return f"{'TRY_CAST' if kind == 'integer' else 'CAST'}({total} AS {self.types[kind]})"

    def scaled(self, x: str, step: Fraction) -> str:
        return f"{x} * {self.double(step)}"

    def extreme(self, function: str, x: str, kind: ColumnType | None) -> str:
        del kind
        return f"{function}({x})"


DUCKDB = DuckDBDialect()
