"""PostgreSQL's text of a statement, from version 15 on.

Law      every method means what `dialect.py` says of it, to the last bit
Theorem  no value of any row stops the statement. PostgreSQL raises where DuckDB goes on: at whole
         numbers of over 64 bits, at doubles that overflow *or underflow*, at casts out of range.
         So each operation is a CASE whose condition raises nothing and lets only operands through
         for which the operation raises nothing; of CASE only the branch that is chosen is
         evaluated. What is constant is evaluated before a row is read, where the question is
         rehearsed
Theorem  (sums) with h(x) = x/2 if abs x > 1, else 0: h(a) + h(b) is half of the rounded a + b where
         either is at least 2**1022, since halving is exact and what is left out is below half a
         unit in the last place; so a + b overflows just if abs(h(a) + h(b)) >= 2**1023
Theorem  (products, quotients) let s(x) be x times 2**-600, 1 or 2**600, so that it is within
         2**-474 and 2**500: exact. s(a) s(b) and s(a)/s(b) neither over- nor underflow, and round
         as the result does unless that is subnormal. So the result overflows just if theirs,
         rounded, times the power of two left out is at least 2**1024. It is rounded to 0 just if it
         is at most 2**-1075, before rounding. A quotient m/n of integers below 2**53 that is not a
         power of two differs from each by over 2**-53 of it, so its rounding decides that. A
         product M N 2**c of integers from 2**52 to 2**53 may be rounded down to a power of two:
         just if 2**105 < M N <= 2**105 + 2**52, since next above 2**104 is 2**104 + 2**52
Theorem  (round) trunc(x + h), h the double below 1/2 with the sign of x, is x rounded, ties away
         from 0, for every double x
Theorem  (grid) only values within twice the grid's width are divided, so that nothing overflows;
         what is further away is on the same side of it
Differs  a column that is text in the source is read as text only: what a text means as a number or
         a date differs between engines. Functions whose result depends on a library of the server
         or on its tables of letters are refused: ln, exp, power, lower, upper, trim, ILIKE. A
         decimal becomes the double nearest to it; DuckDB rounds twice where it has over 15 digits
Checked  tests/engines/ (all pairs of hostile values against DuckDB; the mutants say what each guard
         is for), tests/engines/test_postgres_text.py

Texts compare by their bytes: every text that is read or written has COLLATE "C". LIKE tries each
part between two % at each place once and never goes back before it, so its time is bounded by the
lengths of text and pattern multiplied. Steps (`steps.py`) end in OFFSET 0, which keeps the planner
from writing an operation out wherever its result is named; of many, some are planned by themselves.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import nextafter
from types import MappingProxyType
from typing import ClassVar, Literal

from lastbit.tables.compile import steps
from lastbit.tables.compile.dialect import Dialect, Family, Grid, Part, materialized
from lastbit.tables.compile.steps import least_double_from
from lastbit.tables.compile.stored_types import READ_FROM
from lastbit.tables.limits import refused
from lastbit.tables.query.expression import ColumnType, Value

_DERIVE = "compute it in the table, in a column of its own"
_LEAST, _GREATEST = "'-9223372036854775808'::bigint", "9223372036854775807"
_SMALL = "BETWEEN -2147483648 AND 2147483647"
_INFINITE = "'Infinity'::double precision"
_LONGEST_NAME = 63
_GROUPED = 31
_PLANNED = 16  # steps; the time to plan steps of steps grows with the cube of their number
_PARTS: Mapping[str, str] = MappingProxyType(
    {"weekday": "dow", "iso_weekday": "isodow", "iso_year": "isoyear", "day_of_year": "doy"}
)
_DAYS = "BETWEEN '0001-01-01'::date AND '9999-12-31'::date"


class Postgres(Dialect):
    """PostgreSQL's text; its settings are those of `backends/postgres/sources.py`."""

    name: ClassVar[str] = "postgres"
    title: ClassVar[str] = "PostgreSQL"
    version: ClassVar[int] = 1
    types: ClassVar[Mapping[ColumnType, str]] = MappingProxyType(
        {
            "integer": "bigint",
            "number": "double precision",
            "text": "text",
            "boolean": "boolean",
            "date": "date",
            "timestamp": "timestamp",
        }
    )
    evens: ClassVar[bool] = False  # it works on a row at a time
    bounding: ClassVar[Literal["join", "window"]] = "window"  # one sort, one scan
    nested_terms: ClassVar[int] = 1  # a guard names its operands several times
    unsupported: ClassVar[Mapping[str, str]] = MappingProxyType(
        dict.fromkeys(
            ("ln", "exp", "power", "lower", "upper", "trim", "ilike", "strftime"), _DERIVE
        )
    )
    not_nan: ClassVar[str] = "nullif({x}, 'NaN'::double precision)"  # NaN equals itself here
    days_between: ClassVar[str] = "({b} - {a})::bigint"
    bytes_of: ClassVar[str] = "octet_length({x})"
    # of a CASE the planner expects half of the rows, of tests on a cast column one in 200
    condition: ClassVar[str] = "CASE WHEN {tests} THEN TRUE ELSE FALSE END"
    # The values of a union's part are computed where its rows are read, so by all workers, and not
    # by the one that counts the units' rows. This other part is empty, and is not run.
    computed_early: ClassVar[str] = "{body}\n  UNION ALL SELECT {nothing} FROM {place} WHERE FALSE"
    share: ClassVar[str] = "CAST({total} AS BIGINT) / {count}"
    unit_total: ClassVar[str] = "sum(({x})::bigint)"
    mean_of: ClassVar[str] = "{total} / ({count})::double precision"

    # names and values

    def identifier(self, name: str) -> str:
        if len(name.encode(errors="replace")) > _LONGEST_NAME:  # it would be cut
            problem = f"is a name of over {_LONGEST_NAME} bytes, which PostgreSQL cuts"
            raise refused(name, problem, "use a shorter one")
        return steps.identifier(name)

    def text(self, value: str) -> str:
        return f'({steps.string(value)}::text COLLATE "C")'

    def double(self, value: Fraction | int | float) -> str:
        steps.double(value)  # refuses what doubles cannot hold
        return f"'{float(value)!r}'::double precision"  # 0.1e0 would be a numeric

    def literal(self, value: Value) -> str:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Fraction):
            return self.double(value)
        return steps.literal(value)

    # reading

    def read(self, sql: str, kind: ColumnType, actual: Family) -> str:
        if actual not in READ_FROM[kind]:
            renamed = {"timestamptz": "timestamp", "decimal": "number", "enum": "text"}
            stored = renamed.get(actual, actual)
            problem = f"is of type {stored} in PostgreSQL, which is not read as {kind} there"
            remedy = f"store it in a column of type {kind}, or declare its own type on the card"
            raise refused(f"column {sql}", problem, remedy)
        match kind, actual:
            case "text", "enum":  # its owner may have made a cast, which could do anything
                return f'(CASE WHEN {sql} IS NOT NULL THEN concat({sql}) END COLLATE "C")'
            case "text", _:
                return f'(({sql})::text COLLATE "C")'
            case "number", "decimal":
                return _nearest_double(sql)
            case "integer", "decimal":
                whole = f"round({sql})"  # ties away from 0; NaN is above every number
                return (
                    f"CASE WHEN {whole} BETWEEN {_LEAST} AND {_GREATEST} THEN {whole}::bigint END"
                )
            case "integer", "number":
                inside = f"{sql} >= {self.double(-(2**63))} AND {sql} < {self.double(2**63)}"
                return f"CASE WHEN {inside} THEN ({sql})::bigint END"  # ties to even
            case (("integer" | "number"), "boolean"):
                return f"({sql})::integer::{self.types[kind]}"
            case "boolean", "integer":
                return f"({sql} <> 0)"
            case "timestamp", "date":  # a far day is no time
                return f"CASE WHEN {sql} {_DAYS} THEN ({sql})::timestamp END"
            case _, "timestamptz":
                return f"({sql} AT TIME ZONE 'UTC')::{self.types[kind]}"
        return f"({sql})::{self.types[kind]}"

    def cast(self, sql: str, kind: ColumnType, origin: ColumnType) -> str:
        if kind == "text" and origin in ("date", "timestamp"):  # in the years 1 to 9999
            return f'(({sql})::text COLLATE "C")'
        if origin not in READ_FROM[kind]:
            raise self.refusal(f"CAST from {origin} to {kind}", _DERIVE)
        return self.read(sql, kind, origin)

    def widened(self, sql: str, kind: ColumnType, origin: ColumnType | None) -> str:
        between = "::integer" if origin == "boolean" and kind != "boolean" else ""
        return f"({sql}){between}::{self.types[kind]}"

    # arithmetic

    def whole(self, function: str, a: str, b: str | None = None) -> str:
        match function:
            case "negate" | "abs":
                name = "-" if function == "negate" else function
                return f"{name}(CASE WHEN {a} > {_LEAST} THEN {a} END)"
            case "%":
                return f"({a} % CASE WHEN {b} <> 0 THEN {b} END)"
            case "+":
                inside = f"THEN {a} <= {_GREATEST} - {b} ELSE {a} >= {_LEAST} - {b}"
            case "-":
                inside = f"THEN {a} >= {_LEAST} + {b} ELSE {a} <= {_GREATEST} + {b}"
            case _:
                inside = f"({a})::numeric * {b} BETWEEN {_LEAST} AND {_GREATEST}"
                small = f"{a} {_SMALL} AND {b} {_SMALL}"
                return f"CASE WHEN {small} THEN {a} * {b} WHEN {inside} THEN {a} * {b} END"
        return f"CASE WHEN CASE WHEN {b} >= 0 {inside} END THEN {a} {function} {b} END"

    def number(self, function: str, a: str, b: str | None = None) -> str:
        match function, b:
            case (("+" | "-"), str()):
                return self._sum(function, a, b)
            case "*", str():
                return self._product(a, b)
            case "/", str():
                return f"CASE WHEN {b} <> {self.double(0)} THEN {self._quotient(a, b)} END"
            case "%", _:
                remedy = "use whole numbers, or x - n * floor(...)"
                raise self.refusal("% of numbers with fractions", remedy)
            case (("negate" | "abs" | "floor" | "ceil"), None):
                return f"{'-' if function == 'negate' else function}({a})"
            case "round", None:
                return self._rounded(a)
            case "sqrt", None:
                return f"sqrt(CASE WHEN {a} >= {self.double(0)} THEN {a} END)"
        raise self.refusal(f"{function} to decimal places", "round(x * 100) / 100, say")

    def _power(self, exponent: int) -> str:
        return self.double(Fraction(2) ** exponent)

    def _sum(self, sign: str, a: str, b: str) -> str:
        def half(x: str) -> str:
            exact = f"WHEN abs({x}) > {self.double(1)} THEN {x} * {self.double(0.5)}"
            return f"CASE {exact} WHEN {x} IS NOT NULL THEN {self.double(0)} END"

        near = self._power(1022)
        halves = f"({half(a)} {sign} {half(b)})"
        return (
            f"CASE WHEN abs({a}) < {near} AND abs({b}) < {near} THEN {a} {sign} {b}"
            f" WHEN abs({halves}) < {self._power(1023)} THEN {a} {sign} {b}"
            f" ELSE {halves} * {_INFINITE} END"
        )

    def _product(self, a: str, b: str) -> str:
        product, exponent = f"{self._scaled(a)} * {self._scaled(b)}", self._exponent(a, "+", b)
        digits = f"{self._significand(a)}::numeric * {self._significand(b)}"
        above = f"{digits} BETWEEN {2**105 + 1} AND {2**105 + 2**52}"
        edge = self._edge(exponent)
        vanishes = f"{product} < {edge} OR ({product} = {edge} AND NOT {above})"
        return self._guarded(a, "*", b, exponent, vanishes)

    def _quotient(self, a: str, b: str) -> str:
        exponent = self._exponent(a, "-", b)
        vanishes = f"{self._scaled(a)} / {self._scaled(b)} <= {self._edge(exponent)}"
        return self._guarded(a, "/", b, exponent, vanishes)

    def _edge(self, exponent: str) -> str:
        """What is 2**-1075 before scaling."""
        once, twice = self._power(-475), self._power(125)
        return f"CASE {exponent} WHEN 600 THEN {once} WHEN 1200 THEN {twice} END"

    def _guarded(self, a: str, sign: str, b: str, exponent: str, vanishes: str) -> str:
        """The operation; where it would raise, what IEEE 754 says.

        What is 0, infinite or NaN raises in neither, but for a quotient by 0.
        """
        small, large, plain = self._power(-500), self._power(500), f"{a} {sign} {b}"
        usual = " AND ".join(f"abs({x}) BETWEEN {small} AND {large}" for x in (a, b))
        odd = " OR ".join(f"{x} = {self.double(0)} OR abs({x}) >= {_INFINITE}" for x in (a, b))
        near = f"{self._scaled(a)} {sign} {self._scaled(b)}"
        top = f"CASE {exponent} WHEN -600 THEN {self._power(424)} WHEN -1200 THEN"
        over = f"{near} >= {top} {self._power(-176)} END"
        signed = f"CASE WHEN ({a} < 0) = ({b} < 0) THEN {_INFINITE} ELSE -{_INFINITE} END"
        return (
            f"CASE WHEN {usual} THEN {plain} WHEN {odd} THEN {plain} WHEN {over} THEN {signed}"
            f" WHEN {vanishes} THEN {self.double(0)} ELSE {plain} END"
        )

    def _scaled(self, x: str) -> str:
        """The absolute value times a power of two: within 2**-474 and 2**500."""
        down, up = f"THEN abs({x}) * {self._power(-600)}", f"THEN abs({x}) * {self._power(600)}"
        large, small = f"abs({x}) > {self._power(500)}", f"abs({x}) < {self._power(-500)}"
        return f"CASE WHEN {large} {down} WHEN {small} {up} ELSE abs({x}) END"

    def _exponent(self, a: str, sign: str, b: str) -> str:
        """By which power of two the result is multiplied if its operands are scaled."""
        small, large = self._power(-500), self._power(500)
        x, y = (
            f"CASE WHEN abs({x}) > {large} THEN -600 WHEN abs({x}) < {small} THEN 600 ELSE 0 END"
            for x in (a, b)
        )
        return f"{x} {sign} {y}"

    def _significand(self, x: str) -> str:
        """The 53 binary digits of a scaled double, as a whole number."""
        bits = f"('x' || encode(float8send({self._scaled(x)}), 'hex'))::bit(64)::bigint"
        return f"(({bits} & {2**52 - 1}) + {2**52})"

    def _rounded(self, x: str) -> str:
        half = self.double(nextafter(0.5, 0))
        return f"trunc({x} + CASE WHEN {x} < 0 THEN -{half} ELSE {half} END)"

    def on_grid(self, x: str, kind: ColumnType, grid: Grid, *, nearest: bool) -> str:
        low, high = grid.low, grid.high
        zero, size = Fraction(float(grid.shift)), Fraction(float(grid.step))
        width = 2 * (max(abs(low), abs(high)) + 2) * size
        ends = -least_double_from(width - zero), least_double_from(zero + width)
        if any(abs(Fraction(end) - zero) > size * 2**1000 for end in ends):
            raise refused("step", "is too fine for numbers so far from 0", "declare a coarser one")
        column = x if kind == "number" else f"({x})::double precision"
        moved = f"({column} - {self.double(zero)})" if zero else column
        least = Fraction(1) if kind == "integer" and not zero else abs(zero) / 2**54
        if size > 1 and least < size / 2**1000:  # a quotient that could underflow is 2**-100
            tiny = self.double(size / 2**100)
            moved = f"CASE WHEN abs({moved}) < {tiny} THEN sign({moved}) * {tiny} ELSE {moved} END"
        quotient = moved if size == 1 else f"{moved} / {self.double(size)}"
        whole = f"floor({quotient})"
        if nearest:
            half = self.double(nextafter(0.5, 0))
            half = f"CASE WHEN {column} < {self.double(zero)} THEN -{half} ELSE {half} END"
            whole = f"trunc({quotient} + {half})"
        near = f"least(greatest({whole}::bigint, {low}), {high})"
        below, above = (
            f"{column} {how} {self.double(end)}" for how, end in zip("<>", ends, strict=True)
        )  # so far out that it is not divided
        return f"CASE WHEN {below} THEN {low} WHEN {above} THEN {high} ELSE {near} END"

    def item(self, values: Sequence[str], index: str, kind: ColumnType | None = None) -> str:
        return f"(ARRAY[{', '.join(values)}]::{self.types[kind or 'integer']}[])[{index}]"

    # dates

    def date_part(self, function: str, x: str, kind: ColumnType) -> str:
        time = x if kind == "timestamp" else f"({x})::timestamp"
        return f"floor(date_part('{_PARTS.get(function, function)}', {time}))::bigint"

    def start_of(self, part: str, x: str) -> str:
        if part in ("hour", "minute"):
            return f"date_trunc('{part}', {x})"
        return f"date_trunc('{part}', ({x})::timestamp)::date"

    def formatted(self, x: str, form: str) -> str:
        raise self.refusal("strftime", _DERIVE)

    # texts

    def of_text(self, function: str, values: Sequence[str]) -> str:
        listed = ", ".join(values)
        match function:
            case "length":
                return f"char_length({listed})::bigint"
            case "contains":
                return f"(strpos({listed}) > 0)"
            case "starts_with":
                return f"starts_with({listed})"
        raise self.refusal(function, _DERIVE)

    def like(self, x: str, pattern: str, *, lowered: bool = False) -> str:
        assert not lowered  # ILIKE is refused
        return f"({x} LIKE {self.text(pattern)} ESCAPE '')"

    def substring(self, x: str, places: Sequence[str]) -> str:
        # DuckDB counts from the end where the place is below 0, and backwards where the number is
        inside = f"BETWEEN {-(2**32)} AND {2**32 - 1}"
        known = " AND ".join([f"{x} IS NOT NULL", *(f"{place} {inside}" for place in places)])
        first, many = (*places, f"{2**32 - 1}")[:2]
        start = (
            f"WHEN {first} > 0 THEN {first} - 1 WHEN {first} < 0 THEN char_length({x}) + {first}"
        )
        many = f"CASE WHEN {first} = 0 THEN greatest({many} - 1, 0) ELSE {many} END"
        low, high = (
            f"least(greatest(CASE {start} ELSE 0 END + {of}({many}, 0), 0), char_length({x}))"
            for of in ("least", "greatest")
        )
        cut = f"substr({x}, ({low})::integer + 1, ({high} - {low})::integer)"
        return f"CASE WHEN {known} THEN {cut} END"

    def concat(self, values: Sequence[str]) -> str:
        return f'({self.concat_if_short(values)} COLLATE "C")'

    # rows

    def among(self, name: str, listed: Sequence[str]) -> str:
        return f"{name} IN ({', '.join(listed)})"

    def keyed_hash(self, columns: Sequence[tuple[str, ColumnType]], secret: str) -> str:
        parts = [self.text(f"{secret}:")]
        for column, kind in columns:
            if kind == "number":
                remedy = "leave numbers with fractions of private tables out, or round them there"
                raise self.refusal("a choice among rows by numbers", remedy)
            value = f"({column})::text"
            parts.append(f"coalesce(octet_length({value})::text || ':' || {value}, '-')")
        return f'(md5(concat({", ".join(parts)})) COLLATE "C")'

    def part(self, name: str, body: str, how: Part = "inline") -> str:
        step = re.fullmatch("l([0-9]+)", name)
        if step and int(step[1]) % _PLANNED == 0:
            how = "kept"
        return materialized(name, f"{body} OFFSET 0" if step else body, how)

    def unrolled(self, column: str) -> str:
        raise self.refusal("UNNEST", "write the table as Parquet, and ask of that")

    def nested(self, body: str) -> str:
        return f"({body}) AS nested"

    # groups

    def total(self, factors: Sequence[str], most: int) -> str:
        first = factors[0] if most < 1 << 62 else f"({factors[0]})::numeric"
        return f"sum({' * '.join([first, *factors[1:]])})"  # of bigint too, a numeric

    def block(self, columns: Sequence[str], cases: Sequence[tuple[int, int]]) -> str:
        # GROUPING takes fewer than 32 columns, and its value has as many bits
        few = [columns[start : start + _GROUPED] for start in range(0, len(columns), _GROUPED)]
        mask = f"GROUPING({', '.join(few[0])})"
        for part in few[1:]:
            mask = f"({mask})::bigint * {1 << len(part)} + GROUPING({', '.join(part)})"
        spelled = " ".join(f"WHEN {bits} THEN {number}" for bits, number in cases)
        return f"CASE {mask} {spelled} END"

    # rows of one unit

    def total_as(self, total: str, kind: ColumnType) -> str:
        if kind == "integer":
            return f"CASE WHEN {total} BETWEEN {_LEAST} AND {_GREATEST} THEN {total}::bigint END"
        # as DuckDB rounds 128 bits: below 0, first the complement
        below = f"{total} < 0 AND {total} >= {-(2**64)}"
        rounded = f"-((-{total} - 1)::double precision) - {self.double(1)}"
        return f"CASE WHEN {below} THEN {rounded} ELSE {total}::double precision END"

    def scaled(self, x: str, step: Fraction) -> str:
        if not Fraction(1, 2**900) < step < 2**900:  # of 0, or from 2**-41 to 2**104
            raise refused("step", "is too near to 0, or too large", "declare another step")
        return f"{x} * {self.double(step)}"

    def extreme(self, function: str, x: str, kind: ColumnType | None) -> str:
        if kind == "boolean":
            return f"{'bool_and' if function == 'min' else 'bool_or'}({x})"
        return f"{function}({x})"


def _nearest_double(sql: str) -> str:
    """The double nearest to a numeric; NaN is missing, and what is beyond doubles infinite or 0.

    From half a step above the largest double on, and to half the least one, the cast would raise.
    """
    far = str(2**1024 - 2**970)
    least = "2.4703282292062328e-324"
    return (
        f"CASE WHEN {sql} = 'NaN' THEN NULL WHEN {sql} >= {far} THEN {_INFINITE}"
        f" WHEN {sql} <= -{far} THEN -{_INFINITE} WHEN abs({sql}) <= {least}"
        f" THEN '0'::double precision ELSE ({sql})::double precision END"
    )


POSTGRES = Postgres()
