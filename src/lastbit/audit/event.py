"""The event that an audit judged by: a set of outputs, as data; `sentence` says it in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from lastbit.audit.blackbox.features import Feature

Range: TypeAlias = tuple[float, float]
"""From the first number, included, to the second, excluded; a single value if both are equal."""
_MOST_OUTPUTS = 6
_MOST_RANGES = 8  # in a sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputEvent:
    """The output is one of these, as they are printed, or of `others` that are not listed."""

    outputs: tuple[str, ...]
    others: int = 0

    @classmethod
    def of(cls, names: Sequence[str], most: int = _MOST_OUTPUTS) -> OutputEvent:
        """The event of all these outputs, listing at most so many."""
        return cls(outputs=tuple(names[:most]), others=max(0, len(names) - most))

    @property
    def sentence(self) -> str:
        """In words.

        >>> OutputEvent.of("abc", most=2).sentence, OutputEvent.of([]).sentence
        ('the output is a or b or 1 more', 'no output')
        """
        more = f" or {self.others} more" if self.others else ""
        return f"the output is {' or '.join(self.outputs)}{more}" if self.outputs else "no output"

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {"kind": "outputs", "outputs": list(self.outputs), "others": self.others}


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A feature of the output lies in one of some ranges."""

    feature: Feature
    ranges: tuple[Range, ...]

    @property
    def sentence(self) -> str:
        """In words."""
        more = len(self.ranges) - _MOST_RANGES
        tail = f", or in {more} more ranges" if more > 0 else ""
        named = " or ".join(map(_within, self.ranges[:_MOST_RANGES]))
        return f"{self.feature.name} is {named}{tail}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeEvent:
    """All of the conditions hold, or at least one of them."""

    conditions: tuple[Condition, ...]
    all_hold: bool = True

    @property
    def sentence(self) -> str:
        """In words."""
        joined = " and " if self.all_hold else " or "
        return joined.join(condition.sentence for condition in self.conditions)

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON; infinite ends as text."""
        return {
            "kind": "ranges",
            "all_hold": self.all_hold,
            "conditions": [
                {
                    "feature": condition.feature.name,
                    "ranges": [[_json(low), _json(high)] for low, high in condition.ranges],
                }
                for condition in self.conditions
            ],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class RatioEvent:
    """The likelihood ratio estimated from several features reaches a limit."""

    features: tuple[str, ...]
    """Which kinds of features, in words."""
    groups: tuple[str, ...]
    """The same by `Feature.group`."""
    at_least: float

    @property
    def sentence(self) -> str:
        """In words."""
        names = ", ".join(self.features)
        return f"the likelihood ratio estimated from {names} is at least {self.at_least:.4g}"

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {"kind": "ratio", "features": list(self.features), "at_least": self.at_least}


@dataclass(frozen=True, slots=True)
class NoEvent:
    """All outputs were alike, so there was nothing to count."""

    @property
    def sentence(self) -> str:
        """In words."""
        return "none"

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {"kind": "none"}


Event: TypeAlias = OutputEvent | RangeEvent | RatioEvent | NoEvent


def _within(ends: Range) -> str:
    low, high = ends
    if low == high:
        return f"{low:.17g}"
    if low == -math.inf:
        return "anything" if high == math.inf else f"below {high:.17g}"
    return f"in [{low:.17g}, {high:.17g})"


def _json(number: float) -> float | str:
    return number if math.isfinite(number) else str(number)
