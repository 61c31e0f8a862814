"""No answer, as an answer of its own."""

from __future__ import annotations

from enum import Enum

__all__ = ["BOTTOM", "Bottom"]


class Bottom(Enum):
    """What a mechanism that tests first releases if the test fails.

    It is one value, equal to nothing else, false in a condition, and the same after pickling.

    >>> BOTTOM, bool(BOTTOM), BOTTOM == 0
    (⊥, False, False)
    """

    BOTTOM = "bottom"

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "⊥"

    __str__ = __repr__


BOTTOM = Bottom.BOTTOM
