"""What an answer is made of: cells with error bars, in columns."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

__all__ = ["Cell", "Column"]


@dataclass(frozen=True, slots=True)
class Cell:
    """One released number: value, standard error and the ends of the 95 % interval."""

    value: float | int | None
    standard_error: float | None
    low: float | int | None
    high: float | int | None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "value": self.value,
            "standard_error": self.standard_error,
            "low": self.low,
            "high": self.high,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of the answer: one cell a key."""

    name: str
    function: str
    aggregate: str
    cells: list[Cell]
    bin: tuple[Fraction, Fraction] | None = None

    def to_json(self) -> dict[str, Any]:
        """What the record says of the column."""
        said: dict[str, Any] = {"name": self.name, "role": "value", "function": self.function}
        if self.bin is not None:
            said |= {"aggregate": self.aggregate, "bin": [str(self.bin[0]), str(self.bin[1])]}
        return said
