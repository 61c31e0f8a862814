"""What differs between engines in the text of a statement: each says all of it itself.

Law      a method gives SQL whose value on a row is, on every engine, what its docstring says, to
         the last bit; NULL is called missing
Theorem  no value of any row can stop the statement: a method that could raise on its engine
         guards its operands first
Theorem  no engine is given another one's text by omission: what could differ is abstract, so an
         engine that leaves it out cannot be made; no engine's class is made of another's
Theorem  the work on a row is bounded: operands are names of columns or constants (`steps.py`), so
         a method may name them several times; an operation nests `nested_terms` deep at most
Differs  what an engine cannot do to the last bit is not in its dialect: `unsupported`, or a method,
         refuses it with its remedy before anything is read
Checked  tests/engines/ (all pairs of hostile values, each engine against DuckDB), tests/tables/,
         tests/tables/test_dialects.py (each method left out, one by one)

What all three write alike is in the other files: comparisons, AND, OR, NOT, IS NULL, IN, BETWEEN,
CASE, coalesce, least and greatest (which skip what is missing), JOIN, GROUP BY, HAVING, DISTINCT,
UNION ALL, count(*), row_number(), GROUPING SETS, and sum(w) FILTER (WHERE ...): a weight is at most
2**20, so the sum of those of 2**40 rows has fewer than 64 bits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal, TypeAlias, final

from lastbit.errors import QueryRefused
from lastbit.tables.limits import LONGEST_TEXT, refused
from lastbit.tables.query.expression import ColumnType, Value

Family: TypeAlias = ColumnType | Literal["decimal", "enum", "timestamptz", "other"]
"""The kind of type that a column has in its source; `decimal` is exact, with a fraction or not;
`enum` is a type of texts that somebody made."""

Part: TypeAlias = Literal["inline", "step", "kept", "free"]
"""How a part of WITH is run: into what reads it; the same, but its expressions once a row;
once and kept; as the engine likes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A source as an engine shows it: how FROM names it, and its columns.

    `columns` has, by the name in lower letters, the name in the source and the family of its type.
    """

    place: str
    columns: Mapping[str, tuple[str, Family]]


@dataclass(frozen=True, slots=True)
class Grid:
    """Multiples of `step` from `shift` on, of which those from `low` to `high` are meant."""

    shift: Fraction
    step: Fraction
    low: int
    high: int


class Dialect(ABC):
    """The text of one engine. What all engines write alike is final here; the rest is theirs."""

    name: ClassVar[str]
    title: ClassVar[str]
    version: ClassVar[int]  # one more where the text changes its meaning
    types: ClassVar[Mapping[ColumnType, str]]
    evens: ClassVar[bool]  # whether steps are made even (`steps.py`): vectors of one value
    bounding: ClassVar[Literal["join", "window"]]  # how rows meet their unit's numbers
    nested_terms: ClassVar[int]  # operations of a chain a + b + c in one step
    unsupported: ClassVar[Mapping[str, str]]  # functions, with the remedy

    # texts in which names in braces stand for operands
    not_nan: ClassVar[str]  # {x}, a column of doubles, but missing where it is NaN
    days_between: ClassVar[str]  # from the date {a} to the date {b}, below 0 if that is earlier
    bytes_of: ClassVar[str]  # of the text {x} in UTF-8
    condition: ClassVar[str]  # what a row must pass to be counted, {tests}, as WHERE has it
    # the rows of {body}, for engines that else compute their values after sorting them by unit;
    # {nothing} is NULL for each column, and {place} the table
    computed_early: ClassVar[str]
    share: ClassVar[str]  # floor({total} / {count}) of whole numbers above 0
    unit_total: ClassVar[str]  # the exact sum of whole numbers {x} of 64 bits over 2**40 rows
    mean_of: ClassVar[str]  # a double {total} by a {count}, which is 0 only where that is missing

    # alike on every engine

    @final
    def check(self, function: str) -> None:
        """Refuse a function of `query/rules.py` that this engine does not have."""
        if function in self.unsupported:
            raise self.refusal(function, self.unsupported[function])

    @final
    def refusal(self, what: str, remedy: str) -> QueryRefused:
        """What this engine cannot do to the last bit."""
        return refused(what, f"cannot be computed to the last bit on {self.title}", remedy)

    @final
    def missing(self, kind: ColumnType) -> str:
        """NULL of this type."""
        return f"CAST(NULL AS {self.types[kind]})"

    @final
    def checked(self, name: str, kind: ColumnType) -> str:
        """A column of this type, but missing where it is NaN, over LONGEST_TEXT bytes, or a day
        outside of the years 1 to 9999.
        """
        match kind:
            case "number":
                return self.not_nan.format(x=name)
            case "date" | "timestamp":
                return f"CASE WHEN {name} BETWEEN {_range(kind, self.types[kind])} THEN {name} END"
            case "text":
                return f"CASE WHEN {self.bytes_of.format(x=name)} <= {LONGEST_TEXT} THEN {name} END"
        return name

    @final
    def concat_if_short(self, values: Sequence[str]) -> str:
        """concat(...) of these texts, missing if it had over LONGEST_TEXT bytes."""
        total = _added([f"coalesce({self.bytes_of.format(x=value)}, 0)" for value in values])
        return f"CASE WHEN {total} <= {LONGEST_TEXT} THEN concat({', '.join(values)}) END"

    # names and values

    @abstractmethod
    def identifier(self, name: str) -> str:
        """A name; no text in it can become code."""

    @abstractmethod
    def double(self, value: Fraction | int | float) -> str:
        """The double nearest to a number, and of that type."""

    @abstractmethod
    def literal(self, value: Value) -> str:
        """A constant, of its own SQL type; a missing one is NULL. Texts compare by their bytes, and
        none can become code.
        """

    # reading

    @abstractmethod
    def read(self, sql: str, kind: ColumnType, actual: Family) -> str:
        """A column of the source, whose type is of this family, as `kind`; missing if it cannot be.

        A double becomes the whole number next to it, ties to even, a decimal ties away from 0.
        NaN, long texts and far dates are left to `checked`.
        """

    @abstractmethod
    def cast(self, sql: str, kind: ColumnType, origin: ColumnType) -> str:
        """CAST in a question, between types of the card; missing where it cannot be."""

    @abstractmethod
    def widened(self, sql: str, kind: ColumnType, origin: ColumnType | None) -> str:
        """A whole number as the nearest double, a date as its first moment, a truth value as 0 or
        1, NULL (`origin` None) as NULL of that type; or what is of that type already.
        """

    # arithmetic

    @abstractmethod
    def whole(self, function: str, a: str, b: str | None = None) -> str:
        """Of whole numbers, a + b, a - b, a * b, a % b, -a (`negate`) or abs a, missing if it has
        over 64 bits. a % 0 is missing too; the sign of a % b is that of a, and -2**63 % -1 is 0.
        """

    @abstractmethod
    def number(self, function: str, a: str, b: str | None = None) -> str:
        """Of doubles, a + b, a - b, a * b, a / b or a % b, -a (`negate`), abs, floor or ceil, by
        IEEE 754: infinite, 0 or NaN where that says so; but missing where b is 0 or -0 in / and %.

        Of those that are not NaN, sqrt, ln, exp, power or round, which takes ties away from 0, or
        is to b decimal places: missing (or NaN, of two operands) outside of the domain.
        """

    @abstractmethod
    def on_grid(self, x: str, kind: ColumnType, grid: Grid, *, nearest: bool) -> str:
        """The whole number nearest to (x - shift)/step (ties away from 0), or the greatest below.

        x is a whole number or a double, and not NaN; it is subtracted from and divided in doubles,
        each rounded to the nearest. The last operation is a clamp of whole numbers to [low, high].
        """

    @abstractmethod
    def item(self, values: Sequence[str], index: str, kind: ColumnType | None = None) -> str:
        """The value at this place, from 1, all read as `kind`; missing at any other place."""

    # dates

    @abstractmethod
    def date_part(self, function: str, x: str, kind: ColumnType) -> str:
        """A part of a date or timestamp, as a whole number; hour, minute, second of a date are 0.

        year quarter month day hour minute second (0 to 59, cut off) week (ISO 8601) day_of_year
        weekday (0 is Sunday) iso_weekday (7 is Sunday) iso_year
        """

    @abstractmethod
    def start_of(self, part: str, x: str) -> str:
        """The first day of the year, quarter, month or week (a Monday) of a date, a date; or the
        first moment of the hour or minute of a timestamp, a timestamp.
        """

    @abstractmethod
    def formatted(self, x: str, form: str) -> str:
        """A date or timestamp as text, by the codes of `query/expression.py:DATE_CODES`."""

    # texts

    @abstractmethod
    def of_text(self, function: str, values: Sequence[str]) -> str:
        """lower, upper or trim of a text, its `length` in code points, or whether it `contains`
        another or `starts_with` it.
        """

    @abstractmethod
    def like(self, x: str, pattern: str, *, lowered: bool = False) -> str:
        """Whether the whole text matches: % is any text, _ any code point, nothing escapes.

        In time linear in the text. `lowered`: against the pattern as `lower` makes it.
        """

    @abstractmethod
    def substring(self, x: str, places: Sequence[str]) -> str:
        """The code points from a place on, as many as said, as DuckDB counts; missing where a place
        or number does not fit into 33 bits.
        """

    @abstractmethod
    def concat(self, values: Sequence[str]) -> str:
        """The texts one after the other, missing ones empty; missing if over LONGEST_TEXT bytes."""

    # rows

    @abstractmethod
    def among(self, name: str, listed: Sequence[str]) -> str:
        """Whether a column has one of these values, of its own type."""

    @abstractmethod
    def keyed_hash(self, columns: Sequence[tuple[str, ColumnType]], secret: str) -> str:
        """MD5 of the secret and the columns, each after its length in bytes, so that none runs into
        the next: 32 digits, a to f among them, ordered as texts are by their bytes.
        """

    @abstractmethod
    def part(self, name: str, body: str, how: Part = "inline") -> str:
        """A part of WITH."""

    @abstractmethod
    def unrolled(self, column: str) -> str:
        """In SELECT, a row for each of the first MOST_ELEMENTS of a list; for NULL and [] none."""

    @abstractmethod
    def nested(self, body: str) -> str:
        """A query in FROM, where its name is not needed."""

    # groups

    @abstractmethod
    def total(self, factors: Sequence[str], most: int) -> str:
        """The exact sum, over up to 2**40 rows, of the product of whole numbers, whose absolute
        value is at most `most`; the first factor is never missing. Missing if all products are.
        """

    @abstractmethod
    def block(self, columns: Sequence[str], cases: Sequence[tuple[int, int]]) -> str:
        """In GROUP BY GROUPING SETS, the number that belongs to a mask, in which the last of
        `columns` is the lowest bit, 1 where it is not grouped by.
        """

    # rows of one unit, in a sub-query grouped by it

    @abstractmethod
    def total_as(self, total: str, kind: ColumnType) -> str:
        """Such a sum as a whole number, missing if it has over 64 bits, or as a double."""

    @abstractmethod
    def scaled(self, x: str, step: Fraction) -> str:
        """A double, from the sum of whole numbers on a grid, times the step of the grid."""

    @abstractmethod
    def extreme(self, function: str, x: str, kind: ColumnType | None) -> str:
        """The least (`min`) or greatest (`max`) value; texts by their bytes, FALSE below TRUE."""


def materialized(name: str, body: str, how: Part) -> str:
    """A part of WITH, for engines that say there whether it is run once and kept."""
    kept = {"kept": "MATERIALIZED ", "free": ""}.get(how, "NOT MATERIALIZED ")
    return f"{name} AS {kept}(\n  {body})"


def _range(kind: ColumnType, written: str) -> str:
    first, last = ("", "") if kind == "date" else (" 00:00:00", " 23:59:59.999999")
    low, high = f"CAST('0001-01-01{first}' AS {written})", f"CAST('9999-12-31{last}' AS {written})"
    return f"{low} AND {high}"


def regular_expression(pattern: str) -> str:
    r"""The pattern of LIKE as a regular expression without letters of its own, so in either case.

    >>> regular_expression("50%_a.b")
    '50.*.a\\.b'
    """
    parts: list[str] = []
    for sign in pattern:
        if sign == "%":
            parts += [] if parts[-1:] == [".*"] else [".*"]
        elif sign == "_":
            parts.append(".")
        else:
            plain = sign.isalnum() or not sign.isascii() or not sign.isprintable() or sign == " "
            parts.append(sign if plain else f"\\{sign}")
    return "".join(parts)


def _added(parts: Sequence[str]) -> str:
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    return f"({_added(parts[:middle])} + {_added(parts[middle:])})"
