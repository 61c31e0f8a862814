"""The price of a plan, before there is an answer: what a kernel asks before it runs anything."""

from __future__ import annotations

from collections.abc import Mapping

from .marginals import check_marginals
from .numbers import Json, Rejected, require
from .release import check_release

MALFORMED = (
    *(ArithmeticError, AssertionError, AttributeError, LookupError),
    *(MemoryError, RecursionError, TypeError, ValueError),
)
"""What reading a malformed certificate may raise."""


def check_price(kind: object, claim: Json, body: Json) -> None:
    """Raise `Rejected` unless a plan of this kind costs no more than is claimed."""
    try:
        whole = isinstance(claim, Mapping) and isinstance(body, Mapping)
        require(whole, "claim or body is missing")
        require(kind in ("release", "marginals"), "its kind is unknown")
        (check_release if kind == "release" else check_marginals)(claim, body)
    except MALFORMED as error:
        raise Rejected(f"it is malformed ({type(error).__name__})") from error
