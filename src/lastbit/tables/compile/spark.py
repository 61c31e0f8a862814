r"""Spark's text of a statement (Spark 4, ANSI mode, in UTC: `backends/spark/engine.py` sees to it).

Law      as in `dialect.py`: on every row the value that DuckDB has, to the last bit
Theorem  no value of any row can stop the statement, whatever the optimizer moves: nothing that can
         raise is written. Whole numbers are added, divided and cast by try_add, try_mod, try_cast;
         doubles are IEEE's in Java, and divided by try_divide; sums cannot overflow (`total`)
Theorem  sums are exact: a product below 2**(22 n) is the sum of n limbs of 22 bits, the highest
         with its sign, each times a power of 2**22. The sum of 2**40 limbs has at most 62 bits, so
         BIGINT holds it, and DECIMAL(38, 0) what is made of these for a group
Theorem  LIKE takes time linear in the text: every part between two % is matched where it first
         occurs, once and for all ((?>...), an atomic group). As a part has a fixed number of
         characters, its first place leaves the most to those after it, so nothing is missed
Differs  what Java and C round differently (ln, exp, power), what depends on the version of
         Unicode (lower, upper, trim) and text that stands for a number or a day are refused.
         Text that is not UTF-8 is missing. Steps are not made even: an operation works row by row
Checked  tests/engines/

A backslash escapes in '...', so a text with anything but letters, digits and blanks is written as
its bytes. \z ends a pattern; $ would also match before a last line break.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from fractions import Fraction
from types import MappingProxyType
from typing import ClassVar, Literal

from lastbit.tables.compile.dialect import Dialect, Family, Grid, Part, regular_expression
from lastbit.tables.compile.steps import double, literal, string
from lastbit.tables.compile.stored_types import READ_FROM
from lastbit.tables.query.expression import ColumnType, Value

_LIMB = 22  # bits: 2**22 times 2**40 rows is below 2**63
_EXACT = 1 << 62
_HALF = 0.49999999999999994  # the greatest double below 1/2
_ON_DUCKDB = "derive the column in the table"
_OTHER_TYPE = "store the column as that type, or declare the type it has"


class SparkDialect(Dialect):
    """Spark's text; its settings are those of `backends/spark/engine.py`."""

    name: ClassVar[str] = "spark"
    title: ClassVar[str] = "Spark"
    version: ClassVar[int] = 1
    types: ClassVar[Mapping[ColumnType, str]] = MappingProxyType(
        {
            "integer": "BIGINT",
            "number": "DOUBLE",
            "text": "STRING",
            "boolean": "BOOLEAN",
            "date": "DATE",
            "timestamp": "TIMESTAMP_NTZ",
        }
    )
    evens: ClassVar[bool] = False
    bounding: ClassVar[Literal["join", "window"]] = "window"
    nested_terms: ClassVar[int] = 32
    unsupported: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            **dict.fromkeys(("ln", "exp", "power", "lower", "upper", "trim"), _ON_DUCKDB),
            "ilike": "write LIKE, with OR for other cases",
            "strftime": "group by year(d), month(d) or start_of_month(d)",
        }
    )
    not_nan: ClassVar[str] = "CASE WHEN NOT isnan({x}) THEN {x} END"
    days_between: ClassVar[str] = "CAST(datediff({b}, {a}) AS BIGINT)"
    bytes_of: ClassVar[str] = "octet_length({x})"
    condition: ClassVar[str] = "{tests}"
    computed_early: ClassVar[str] = "{body}"
    share: ClassVar[str] = "CAST({total} AS BIGINT) div {count}"
    unit_total: ClassVar[str] = "sum(CAST({x} AS DECIMAL(38,0)))"
    mean_of: ClassVar[str] = "try_divide({total}, CAST({count} AS DOUBLE))"

    # names and values

    def identifier(self, name: str) -> str:
        """A name; no text in it can become code.

        >>> SPARK.identifier("a `b`")
        '`a ``b```'
        """
        string(name)  # refuses NUL and halves of surrogate pairs
        return f"`{name.replace('`', '``')}`"

    def text(self, value: str) -> str:
        """A text; where it could be misread, by its bytes.

        >>> SPARK.text("north 1"), SPARK.text("it's")
        ("'north 1'", "CAST(X'69742773' AS STRING)")
        """
        written = string(value)
        if value.isascii() and value.replace(" ", "").isalnum():
            return written
        return f"CAST(X'{value.encode().hex()}' AS STRING)"

    def double(self, value: Fraction | int | float) -> str:
        double(value)  # refuses what is beyond doubles
        near = float(value)
        return f"{near!r}D" if near >= 0 else f"({near!r}D)"

    def literal(self, value: Value) -> str:
        match value:
            case Fraction():
                return self.double(value)
            case str():
                return self.text(value)
            case datetime():
                return literal(value).replace(" AS TIMESTAMP)", " AS TIMESTAMP_NTZ)")
        return literal(value)

    # reading

    def read(self, sql: str, kind: ColumnType, actual: Family) -> str:
        if actual not in READ_FROM[kind]:
            what = f"a column of {actual} as {kind}"
            raise self.refusal(what, _OTHER_TYPE)
        match kind, actual:
            case "text", "text":
                return f"try_validate_utf8(CAST({sql} AS STRING) COLLATE UTF8_BINARY)"
            case "integer", "number":  # 2**63 would be cut off to a whole number
                x = f"CAST({sql} AS DOUBLE)"
                inside = f"{x} >= {self.double(-(2.0**63))} AND {x} < {self.double(2.0**63)}"
                return f"CASE WHEN {inside} THEN try_cast(rint({x}) AS BIGINT) END"
            case "integer", "decimal":
                return f"try_cast(round({sql}, 0) AS BIGINT)"
            case "number", "boolean":
                return f"CAST(CAST({sql} AS INT) AS DOUBLE)"
            case "timestamp", "date":  # a far day has no microseconds in 64 bits
                return self.widened(self.checked(sql, "date"), "timestamp", "date")
        return f"CAST({sql} AS {self.types[kind]})"

    def cast(self, sql: str, kind: ColumnType, origin: ColumnType) -> str:
        if (kind, origin) == ("text", "date"):  # of the years 1 to 9999: it was checked
            return f"CAST({sql} AS STRING)"
        if origin not in READ_FROM[kind]:
            raise self.refusal(f"CAST from {origin} to {kind}", _ON_DUCKDB)
        return self.read(sql, kind, origin)

    def widened(self, sql: str, kind: ColumnType, origin: ColumnType | None) -> str:
        del origin
        return f"CAST({sql} AS {self.types[kind]})"

    # arithmetic

    def whole(self, function: str, a: str, b: str | None = None) -> str:
        if b is None:
            negated = f"try_subtract({self.literal(0)}, {a})"
            size = f"CASE WHEN {a} < 0 THEN {negated} ELSE {a} END"
            return negated if function == "negate" else size
        name = {"+": "add", "-": "subtract", "*": "multiply", "%": "mod"}[function]
        return f"try_{name}({a}, {b})"

    def number(self, function: str, a: str, b: str | None = None) -> str:
        """As the base says. Spark's own floor is a whole number, and raises beyond those."""
        near, half, one = f"rint({a})", self.double(0.5), self.double(1)
        match function:
            case "/" | "%":
                return f"try_{'divide' if function == '/' else 'mod'}({a}, {b})"
            case "+" | "-" | "*":
                return f"({a} {function} {b})"
            case "floor":
                return f"CASE WHEN {near} > {a} THEN {near} - {one} ELSE {near} END"
            case "ceil":
                return f"CASE WHEN {near} < {a} THEN {near} + {one} ELSE {near} END"
            case "negate" | "abs":
                return f"{'-' if function == 'negate' else function}({a})"
            case "sqrt":
                return f"sqrt(CASE WHEN {a} >= {self.double(0)} THEN {a} END)"
            case "round" if b is None:
                return (
                    f"CASE WHEN {a} - {near} = {half} AND {a} > 0 THEN {near} + {one}"
                    f" WHEN {near} - {a} = {half} AND {a} < 0 THEN {near} - {one} ELSE {near} END"
                )
            case "round":
                raise self.refusal("round to decimal places", "write round(x * 100) / 100")
        raise self.refusal(function, _ON_DUCKDB)

    def on_grid(self, x: str, kind: ColumnType, grid: Grid, *, nearest: bool) -> str:
        """As the base says. The cast cuts off, so what it cuts is made a half larger before.

        Theorem  with h the double below 1/2, x + h cut off is the whole number nearest to x >= 0,
                 ties up: below 1/2 from a whole number the sum stays below the next one, and
                 1/2 + h, which is half way between two doubles, is rounded to 1, the even one
        """
        del kind
        shift, step, low, high = grid.shift, grid.step, grid.low, grid.high
        quotient = f"(CAST({x} AS DOUBLE) - {self.double(shift)}) / {self.double(step)}"
        if nearest:
            half = self.double(_HALF)
            quotient = f"({quotient} + CASE WHEN {quotient} < 0 THEN -{half} ELSE {half} END)"
        elif low < 0:
            quotient = self.number("floor", quotient)
        near = f"least(greatest({quotient}, {self.double(low)}), {self.double(high)})"
        return f"least(greatest(try_cast({near} AS BIGINT), {low}), {high})"

    def item(self, values: Sequence[str], index: str, kind: ColumnType | None = None) -> str:
        del kind  # numbers of one array are made alike
        return f"get(array({', '.join(values)}), CAST({index} - 1 AS INT))"

    # dates

    def date_part(self, function: str, x: str, kind: ColumnType) -> str:
        if function in ("hour", "minute", "second"):
            of_day = self.literal(0) if kind == "date" else f"CAST({function}({x}) AS BIGINT)"
            return f"CASE WHEN {x} IS NOT NULL THEN {of_day} END"
        day = x if kind == "date" else f"CAST({x} AS DATE)"
        part = {
            "week": f"weekofyear({day})",
            "day_of_year": f"dayofyear({day})",
            "weekday": f"dayofweek({day}) - 1",
            "iso_weekday": f"weekday({day}) + 1",
            "iso_year": f"extract(YEAROFWEEK FROM {day})",
        }.get(function, f"{function}({day})")
        return f"CAST({part} AS BIGINT)"

    def start_of(self, part: str, x: str) -> str:
        if part in ("hour", "minute"):
            start = f"date_trunc('{part}', CAST({x} AS TIMESTAMP))"
            return f"CAST({start} AS TIMESTAMP_NTZ)"
        return f"trunc({x}, '{part}')"

    def formatted(self, x: str, form: str) -> str:
        raise self.refusal("strftime", self.unsupported["strftime"])

    # texts

    def of_text(self, function: str, values: Sequence[str]) -> str:
        listed = ", ".join(values)
        match function:
            case "length":
                return f"CAST(char_length({listed}) AS BIGINT)"
            case "contains" | "starts_with":
                return f"{function.replace('_', '')}({listed})"
        raise self.refusal(function, _ON_DUCKDB)

    def like(self, x: str, pattern: str, *, lowered: bool = False) -> str:
        assert not lowered  # ILIKE is refused
        return f"rlike({x}, {self.text(java_pattern(pattern))})"

    def substring(self, x: str, places: Sequence[str]) -> str:
        """As DuckDB counts: from the end where the place is below 0, backwards where the number is.

        A place or number that is not from -2**32 to 2**32 - 1 is missing, and clamped before it
        is reckoned with: so nothing overflows, whatever Spark evaluates first.
        """
        far, size = 1 << 32, f"char_length({x})"
        inside = (f"{place} BETWEEN {-far} AND {far - 1}" for place in places)
        known = " AND ".join([f"{x} IS NOT NULL", *inside])
        first, many = (
            f"least(greatest({place}, {-far}), {far})" for place in (*places, f"{far}")[:2]
        )
        begin = f"WHEN {first} > 0 THEN {first} - 1 WHEN {first} < 0 THEN {size} + {first}"
        many = f"CASE WHEN {first} = 0 THEN greatest({many} - 1, 0) ELSE {many} END"
        low, high = (
            f"least(greatest(CASE {begin} ELSE 0 END + {of}({many}, 0), 0), {size})"
            for of in ("least", "greatest")
        )
        cut = f"substr({x}, CAST({low} + 1 AS INT), CAST({high} - {low} AS INT))"
        return f"CASE WHEN {known} THEN {cut} END"

    def concat(self, values: Sequence[str]) -> str:
        return self.concat_if_short([f"coalesce({value}, '')" for value in values])

    # rows

    def among(self, name: str, listed: Sequence[str]) -> str:
        return f"{name} IN ({', '.join(listed)})"

    def keyed_hash(self, columns: Sequence[tuple[str, ColumnType]], secret: str) -> str:
        parts = [self.text(f"{secret}:")]
        for column, kind in columns:
            if kind == "number":
                remedy = "leave numbers with fractions of private tables out, or round them there"
                raise self.refusal("a choice among rows by numbers", remedy)
            value = f"CAST({column} AS STRING)"
            size = f"CAST({self.bytes_of.format(x=value)} AS STRING)"
            parts.append(f"coalesce(concat({size}, {self.text(':')}, {value}), {self.text('-')})")
        return f"md5(CAST(concat({', '.join(parts)}) AS BINARY))"

    def part(self, name: str, body: str, how: Part = "inline") -> str:
        del how
        return f"{name} AS (\n  {body})"

    def unrolled(self, column: str) -> str:
        raise self.refusal("UNNEST", "write the table as Parquet, and ask of that")

    def nested(self, body: str) -> str:
        return f"({body})"

    # groups

    def total(self, factors: Sequence[str], most: int) -> str:
        """The exact sum.

        >>> SPARK.total(["w", "v1"], 2**23)
        'CAST(sum((w * v1) & 4194303) AS DECIMAL(38,0)) + CAST(sum(shiftright(w * v1, 22)) AS ...
        """
        product = " * ".join(factors)
        if most < 1 << _LIMB:
            return f"sum({product})"
        if most >= _EXACT:
            wide = " * ".join(f"CAST({factor} AS DECIMAL(38,0))" for factor in factors)
            return f"sum(CAST({wide} AS DECIMAL(38,0)))"
        limbs, shift = [], 0
        while most >> shift >= 1 << _LIMB:
            above = product if not shift else f"shiftright({product}, {shift})"
            limbs.append(f"({above}) & {(1 << _LIMB) - 1}")
            shift += _LIMB
        limbs.append(f"shiftright({product}, {shift})")
        sums = (f"CAST(sum({limb}) AS DECIMAL(38,0))" for limb in limbs)
        weighed = (
            f"{part} * CAST({1 << _LIMB * place} AS DECIMAL(20,0))" if place else part
            for place, part in enumerate(sums)
        )
        return " + ".join(weighed)

    def block(self, columns: Sequence[str], cases: Sequence[tuple[int, int]]) -> str:
        last = len(columns) - 1
        bits = (f"CAST(grouping({c}) AS BIGINT) * {1 << last - i}" for i, c in enumerate(columns))
        # CASE would write the sum out for each case: of 31, their compiler runs out of memory
        numbers = ", ".join(f"CAST({mask} AS BIGINT), {number}" for mask, number in cases)
        return f"try_element_at(map({numbers}), {' + '.join(bits)})"

    # rows of one unit

    def total_as(self, total: str, kind: ColumnType) -> str:
        return f"try_cast({total} AS {self.types[kind]})"

    def scaled(self, x: str, step: Fraction) -> str:
        return f"{x} * {self.double(step)}"

    def extreme(self, function: str, x: str, kind: ColumnType | None) -> str:
        del kind
        return f"{function}({x})"


def java_pattern(pattern: str) -> str:
    r"""The pattern of LIKE for Java, which goes back at no %.

    >>> java_pattern("a%b_%c"), java_pattern("a.b")
    ('(?s)\\Aa(?>.*?b.).*c\\z', '(?s)\\Aa\\.b\\z')
    """
    first, *others = (regular_expression(part) for part in pattern.split("%"))
    if others:
        *middle, last = others
        first += "".join(f"(?>.*?{part})" for part in middle if part) + f".*{last}"
    return rf"(?s)\A{first}\z"


SPARK = SparkDialect()
