"""What the card of a table could say, by a look at its values: types, bounds, keys, rows, the unit.

Nothing here is private. A bound or a key that was taken from the data tells about people to whoever
reads the card or an answer, so each is rounded, is marked in the card (`FROM_DATA`), and is said
again by `lastbit card check`. The steward decides whether to take it; the rows that are looked at
go nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from fractions import Fraction
from math import ceil, floor, isfinite
from typing import cast

from lastbit.errors import InvalidParameter
from lastbit.exact import exact_text
from lastbit.tables.card.column import Column
from lastbit.tables.query.expression import ColumnType, StoredType, Value
from lastbit.tables.query.types import check_bounds

MISSING_WORDS = (
    *("", "na", "n/a", "#n/a", "nan", "null", "none", "nil", "-", "--", "?", "."),
    *("missing", "unknown", "not available"),
)
"""Texts that mean that there is no value, in lower case: no type is judged by them."""

MOST_COUNTED = 60
"""Columns with this many different values or fewer have them counted, each."""

_MOST_KEYS = 40
_FEWEST_OF_A_KEY = 20  # a value of fewer rows is of few people, and is not proposed as a key
_READ = Fraction(99, 100)  # of the values must read as a type for it to be proposed
_OF_ITS_OWN = Fraction(9, 10)  # different values among rows: they name the rows
_FEW_ROWS = 20  # of which too little is seen to call a column identifying
_FREE_TEXT = 60  # letters on average
_WIDEST = Fraction(10) ** 15
_NAMES_PEOPLE = re.compile(
    r"e-?mail|phone|mobile|passport|(^|[_ ])(ssn|iban|address|street|"
    r"(first|last|sur|full|given|family|maiden)_?name)([_ ]|$)",
    re.IGNORECASE,
)
_PERSON = re.compile(
    r"patient|person|people|customer|client|user|member|household|student|pupil|employee|worker|"
    r"subject|participant|respondent|account|passenger|driver|subscriber|citizen|voter|donor|"
    r"guest|(^|[_ ])(pid|uid|who|tailnum)([_ ]|$)",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"(^|[_ ])(id|key|nr|no|uuid|guid)$|[a-z]Id$|ID$")


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnLook:
    """What stands in one column. It shows itself to nobody: these are values."""

    name: str
    type: ColumnType
    """As the schema states it; text where it states none."""
    is_text: bool
    present: int
    """Rows with a value; of text, with one that is no word for a missing one."""
    distinct: int
    readable: Mapping[ColumnType, int] = field(default_factory=dict)
    """Of text: how many values read as each type."""
    other_days: int = 0
    other_numbers: int = 0
    zeros: int = 0
    long: int = 0
    """Whole numbers of more digits than a double holds."""
    length: float = 0.0
    numbers: tuple[float, ...] | None = None
    """The values at the ranks 0.1 %, 1 %, 99 % and 99.9 %, of numbers; `days` likewise."""
    days: tuple[date, ...] | None = None
    counts: Mapping[str, int] | None = None
    """Every value and its rows, where there are few."""
    examples: tuple[str, ...] = ()
    is_list: bool = False
    """Whether rows have lists, and all of this is of their elements."""

    def __repr__(self) -> str:
        return "<ColumnLook: values, not shown>"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLook:
    """What stands in a table."""

    rows: int
    columns: Mapping[str, ColumnLook]

    def __repr__(self) -> str:
        return "<TableLook: values, not shown>"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitLook:
    """How many units there are, and how many rows they have."""

    units: int
    median: float
    most: int
    """99 of 100 units have no more rows."""
    largest: int

    def __repr__(self) -> str:
        return "<UnitLook: counts, not shown>"


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnProposal:
    """What the card could say of one column; the steward changes what is wrong."""

    name: str
    type: ColumnType
    bounds: tuple[Fraction, Fraction] | tuple[date, date] | None = None
    keys: tuple[Value, ...] | None = None
    left_out: str = ""
    """Why nobody should ask about it; nothing if it is to be kept."""
    remark: str = ""
    """What of its values is not read as the steward may think."""
    from_data: frozenset[str] = frozenset()
    """Which of bounds and keys are those that were seen, not the steward's own."""
    examples: tuple[str, ...] = field(default=(), repr=False)
    is_list: bool = False
    """Whether rows have lists, and all of this is of their elements."""

    @property
    def stored_type(self) -> StoredType:
        """The type as the card writes it."""
        return cast(StoredType, f"{self.type}[]") if self.is_list else self.type

    def with_type(self, kind: ColumnType) -> ColumnProposal:
        """The same column as another type: bounds and keys of the old one mean nothing."""
        if kind == self.type:
            return self
        numbers = {self.type, kind} == {"integer", "number"}
        rest = self.from_data & {"bounds"} if numbers else frozenset[str]()
        bounds = self.bounds if numbers else None
        return replace(self, type=kind, bounds=bounds, keys=None, remark="", from_data=rest)


def proposals(look: TableLook) -> dict[str, ColumnProposal]:
    """What the card could say of each column."""
    return {name: _proposal(column, look.rows) for name, column in look.columns.items()}


def _proposal(look: ColumnLook, rows: int) -> ColumnProposal:
    kind, remark = (look.type, "") if not look.is_text else _type_of_text(look)
    bounds = _bounds(look, kind)
    keys = None if bounds is not None else _keys(look, kind)
    names = [("bounds", bounds is not None), ("keys", keys is not None)]
    return ColumnProposal(
        name=look.name,
        type=kind,
        bounds=bounds,
        keys=keys,
        left_out=_why_left_out(look, kind, rows),
        remark=remark,
        from_data=frozenset(name for name, there in names if there),
        examples=look.examples,
        is_list=look.is_list,
    )


def _type_of_text(look: ColumnLook) -> tuple[ColumnType, str]:
    """The narrowest type as which nearly all values read, and what the others come to."""
    wanted = look.present * _READ
    if not look.present:
        return "text", ""
    if look.zeros and look.zeros >= look.present - look.readable.get("integer", 0) > 0:
        return "text", "numbers with leading zeros stay text, as codes do"
    if look.long >= wanted / 2:
        return "text", "numbers of more than 16 digits stay text, as codes do"
    for kind in ("boolean", "integer", "number", "date", "timestamp"):
        readable = look.readable.get(kind, 0)
        if readable >= wanted:
            some = readable < look.present
            return kind, f"some values do not read as {kind}: they count as missing" * some
    if look.other_days >= wanted:
        return "text", "dates are read as 2024-12-31: write them so in the source to use them"
    if look.other_numbers >= wanted:
        return "text", "numbers are read as 1234.5: take signs and separators out of the source"
    return "text", ""


def _why_left_out(look: ColumnLook, kind: ColumnType, rows: int) -> str:
    if not look.present:
        return "it is empty"
    different = rows >= _FEW_ROWS and look.distinct >= look.present * _OF_ITS_OWN
    if kind == "text" and _NAMES_PEOPLE.search(look.name):
        return "its name says that it names people"
    if kind == "text" and different:
        return "nearly every row has a value of its own"
    if kind == "text" and look.length > _FREE_TEXT:
        return "it holds free text"
    if kind == "integer" and different and _NUMBERED.search(look.name):
        return "it numbers the rows"
    return ""


# ---------------------------------------------------------------- bounds and keys


def _bounds(
    look: ColumnLook, kind: ColumnType
) -> tuple[Fraction, Fraction] | tuple[date, date] | None:
    if kind in ("date", "timestamp") and look.days is not None:
        return date(look.days[0].year, 1, 1), date(look.days[-1].year, 12, 31)
    if kind not in ("integer", "number") or look.numbers is None:
        return None
    bounds = _whole_bounds(look) if kind == "integer" else None
    bounds = bounds or _round_bounds(look.numbers)
    if bounds is not None and kind == "integer":  # ranks lie between values: of 1 and 2 at 1.9988
        bounds = Fraction(floor(bounds[0])), Fraction(ceil(bounds[1]))
    try:
        if bounds is not None:
            Column(name=look.name, type=kind, bounds=bounds)
            check_bounds("bounds", bounds)
    except InvalidParameter:
        return None
    return bounds


def _whole_bounds(look: ColumnLook) -> tuple[Fraction, Fraction] | None:
    """The ends of few whole numbers of which each has many rows: months, grades, stars."""
    counts = {value: count for value, count in (look.counts or {}).items() if _is_whole(value)}
    if not 2 <= len(counts) <= _MOST_KEYS or min(counts.values()) < _FEWEST_OF_A_KEY:
        return None
    ends = [Fraction(value.strip()) for value in counts]
    return (min(ends), max(ends)) if max(ends) - min(ends) <= 2 * len(ends) else None


def _is_whole(value: str) -> bool:
    return re.fullmatch(r"\s*[+-]?[0-9]{1,18}(\.0*)?\s*", value, re.ASCII) is not None


def _round_bounds(ranks: tuple[float, ...]) -> tuple[Fraction, Fraction] | None:
    """Round numbers around 98 of 100 values; those of a few people at the ends move nothing.

    >>> tuple(map(int, _round_bounds((1.0, 3.0, 412.0, 9e9))))
    (0, 500)
    """
    if not all(map(isfinite, ranks)) or max(map(abs, ranks)) > _WIDEST:
        return None
    low, high = Fraction(ranks[1]), Fraction(ranks[2])
    if low == high:
        low, high = Fraction(ranks[0]), Fraction(ranks[-1])
    if low == high:
        return None
    if ranks[0] >= 0 and low <= high / 4:
        low = Fraction(0)
    step = _round_step((high - low) / 4)
    return low // step * step, -(-high // step) * step


def _round_step(about: Fraction) -> Fraction:
    """The largest of 1, 2 and 5 times a power of ten that is no more than this."""
    power = Fraction(1)
    while power > about:
        power /= 10
    while power * 10 <= about:
        power *= 10
    return max(power * digit for digit in (1, 2, 5) if power * digit <= about)


def _keys(look: ColumnLook, kind: ColumnType) -> tuple[Value, ...] | None:
    """Few values, each of many rows; where one is rare, keys are better found privately."""
    if kind != "text" or not look.counts or len(look.counts) > _MOST_KEYS:
        return None
    plain = all(key.isprintable() and key.strip() == key and key for key in look.counts)
    if min(look.counts.values()) < _FEWEST_OF_A_KEY or not plain or len(look.counts) < 2:
        return None
    return tuple(sorted(look.counts))


# ---------------------------------------------------------------- rows and units


def rounded_rows(rows: int) -> int:
    """About how many rows: one digit, and noughts.

    >>> rounded_rows(336_776), rounded_rows(7)
    (300000, 7)
    """
    power = int(10 ** (len(str(rows)) - 1))
    return max((rows + power // 2) // power * power, 1)


def likely_unit(look: TableLook, offered: Mapping[str, ColumnProposal]) -> str | None:
    """The column that most likely says whose row it is; None where no name says so."""
    scores = {}
    for name, column in look.columns.items():
        usable = offered[name].stored_type in ("integer", "text") and column.distinct >= 2
        if usable and column.present >= look.rows * Fraction(1, 2):
            person, numbered = bool(_PERSON.search(name)), bool(_NUMBERED.search(name))
            scores[name] = 2 * person + numbered
    best = max(scores, key=lambda name: scores[name], default=None)
    return best if best is not None and scores[best] > 0 else None


# ---------------------------------------------------------------- as the card writes it

FROM_DATA = "# taken from the data"
"""The mark behind a line of a card whose numbers or keys were seen in the data."""


def bounds_text(bounds: tuple[Fraction, Fraction] | tuple[date, date]) -> tuple[str, str]:
    """Both bounds, as people and TOML write numbers; of dates, without quotes.

    >>> bounds_text((Fraction(-1, 2), Fraction(500)))
    ('-0.5', '500')
    """
    low, high = (exact_text(end) if isinstance(end, Fraction) else str(end) for end in bounds)
    return low, high
