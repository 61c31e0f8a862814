"""One column of a card: its type, and what is publicly known of it, with the rules for both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime, time
from fractions import Fraction
from types import MappingProxyType
from typing import Any, cast, get_args

from lastbit.arguments import check_flags
from lastbit.errors import InvalidParameter
from lastbit.exact import Number, rational
from lastbit.tables.query.expression import ColumnType, StoredType, Value

TYPES: tuple[ColumnType, ...] = get_args(ColumnType)
LISTS: tuple[StoredType, ...] = tuple(cast(StoredType, f"{kind}[]") for kind in TYPES)
"""The types of columns of lists: UNNEST makes a row of each element."""
_LARGEST_KEY = 2**63 - 1
_KEYS: Mapping[str, tuple[type, str]] = MappingProxyType(
    {
        "integer": (int, "[1, 2, 3]"),
        "text": (str, '["north", "south"]'),
        "boolean": (bool, "[true, false]"),
        "date": (date, "[2026-01-31, 2026-02-28]"),
    }
)
"""Types that keys can be of, and how a list of such keys is written."""


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class Column:
    """One column: its type, and what is publicly known of it.

    `bounds` limit a number, a date or a time: a value outside counts as the nearer bound. Of a time
    they may be days, both of them whole. `keys` are the values a group may have; rows with another
    belong to no group. `step` is the grid on which numbers are summed: 1 for integers, 2**-20 of
    the range otherwise unless declared. A column that is not `nullable` has no missing values; if
    it has one nevertheless, that counts as the middle of the bounds in a mean, and in a sum that is
    measured with it or with a count, and as nothing in a sum alone. A column of lists is declared
    as "text[]": all that is said here is of its elements, and `type` is theirs.

    >>> cost = Column(name="cost", type="number", bounds=(0, 500), nullable=False)
    >>> cost.bounds
    (Fraction(0, 1), Fraction(500, 1))
    """

    name: str
    type: ColumnType
    bounds: tuple[Fraction, Fraction] | tuple[date, date] | None
    step: Fraction | None
    keys: tuple[Value, ...] | None
    nullable: bool
    bounds_chosen: bool
    """Whether bounds come from a profile, for aggregates alone: no list of keys follows."""
    description: str | None = field(compare=False)
    """What the column means, for those who ask: no plan depends on it."""
    is_list: bool
    """Whether each row has a list of such values, of which UNNEST makes rows."""

    def __init__(
        self,
        *,
        name: str,
        type: StoredType,
        bounds: tuple[Number, Number] | tuple[date | str, date | str] | None = None,
        step: Number | None = None,
        keys: Iterable[Value] | None = None,
        nullable: bool = True,
        bounds_chosen: bool = False,
        description: str | None = None,
        is_list: bool = False,
    ) -> None:
        if isinstance(type, str) and type in LISTS:
            type, is_list = cast(ColumnType, type.removesuffix("[]")), True
        fields: dict[str, Any] = {"name": name, "type": type, "bounds": bounds, "step": step}
        fields["is_list"] = is_list
        if keys is not None and (isinstance(keys, str) or not isinstance(keys, Iterable)):
            problem, remedy = "are not a list", 'write ["north", "south"]'
            raise InvalidParameter(f"column {name}: keys", problem=problem, remedy=remedy)
        fields |= {"keys": None if keys is None else tuple(keys), "nullable": nullable}
        fields |= {"bounds_chosen": bounds_chosen, "description": description}
        for field_name, value in fields.items():
            object.__setattr__(self, field_name, value)
        self._check()

    def _check(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise InvalidParameter("column", problem="has no name", remedy="name it")
        check_flags(nullable=self.nullable, is_list=self.is_list)
        if self.description is not None and not isinstance(self.description, str):
            raise self._wrong("description", "is not text", "say what the column means")
        if not isinstance(self.type, str) or self.type not in TYPES:
            remedy = f"use one of {', '.join(TYPES)}, or of lists of them, text[]"
            raise self._wrong("type", "is unknown", remedy)
        number = self.type in ("integer", "number")
        if self.bounds is not None:
            self._check_bounds(self.bounds)
        if self.step is not None:
            object.__setattr__(self, "step", rational(self.step, "step"))
            if not number:
                raise self._wrong("step", "is for numbers", "drop it")
            if not self.step > 0:
                raise self._wrong("step", "is not above 0", "pass, say, 0.01")
        if self.keys is not None:
            self._check_keys(self.keys)

    @property
    def stored_type(self) -> StoredType:
        """The type of the column in its table.

        >>> Column(name="codes", type="text[]").stored_type
        'text[]'
        """
        return cast(StoredType, f"{self.type}[]") if self.is_list else self.type

    @property
    def number_bounds(self) -> tuple[Fraction, Fraction] | None:
        """The bounds of a number; None of a date, or where there are none."""
        return self.bounds if self.type in ("integer", "number") else None  # type: ignore[return-value]

    def _check_bounds(self, bounds: Any) -> None:
        days = self.type in ("date", "timestamp")
        if not days and self.type not in ("integer", "number"):
            raise self._wrong("bounds", "are for numbers, dates and times", "drop them")
        try:
            low, high = bounds
        except (TypeError, ValueError):
            problem = f"are not two {'dates' if days else 'numbers'}"
            raise self._wrong("bounds", problem, "write (low, high)") from None
        if days:
            ends: Any = self._moment(low, time.min), self._moment(high, time.max)
        else:
            ends = rational(low, "low"), rational(high, "high")
        object.__setattr__(self, "bounds", ends)
        if not (ends[0] < ends[1] or (days and ends[0] == ends[1])):
            raise self._wrong("bounds", "do not rise", "write [low, high] with low < high")

    def _moment(self, end: Any, of_day: time) -> date:
        """The day, or of a time the moment: a day stands for its first or its last one."""
        if isinstance(end, str):
            with suppress(ValueError):
                end = datetime.fromisoformat(end) if ":" in end else date.fromisoformat(end)
        if self.type == "timestamp" and type(end) is date:
            end = datetime.combine(end, of_day)
        wanted = date if self.type == "date" else datetime
        if type(end) is wanted and getattr(end, "tzinfo", None) is None:
            return end
        remedy = 'write ["1997-01-01", "1998-06-30"]'
        raise self._wrong("bounds", f"are not two {self.type}s without a zone", remedy)

    def _check_keys(self, keys: tuple[Value, ...]) -> None:
        if self.type not in _KEYS:
            remedy = "drop them; group by integers, text, dates or truth values, or by bin(...)"
            raise self._wrong("keys", f"cannot be of type {self.type}", remedy)
        wanted, example = _KEYS[self.type]
        # by type, not isinstance: True is an int, and a time a date
        if any(key is not None and type(key) is not wanted for key in keys):
            raise self._wrong("keys", f"are not a list of type {self.type}", f"write {example}")
        if any(isinstance(key, int) and abs(key) > _LARGEST_KEY for key in keys):
            raise self._wrong(
                "keys", "need more than 63 bits", "use smaller whole numbers, or text"
            )
        if any("\0" in key for key in keys if isinstance(key, str)):
            raise self._wrong("keys", "hold a NUL", "leave it out")
        if not keys or len(set(keys)) != len(keys):
            raise self._wrong("keys", "are none, or two are equal", "list each key once")

    def _wrong(self, field: str, problem: str, remedy: str) -> InvalidParameter:
        return InvalidParameter(f"column {self.name}: {field}", problem=problem, remedy=remedy)
