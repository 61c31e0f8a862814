"""Failures that carry nothing out: no words, no frames, no chain."""

from __future__ import annotations

from typing import Any

import pytest

from lastbit.errors import BudgetExceeded, EngineFailed, QueryRefused
from lastbit.tables.limits import sealed
from tests.release.canaries import leaks, told


class Panic(BaseException):
    """What Rust's panics look like from Python: no Exception."""


def failing(error: BaseException) -> Any:
    secret = "Zq8X"  # held by a frame
    try:
        raise KeyError(secret)
    except KeyError:
        raise error  # noqa: B904  the context is what is tested


def test_what_works_is_given_back() -> None:
    assert sealed(lambda: 7, words="no") == 7


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (BudgetExceeded("too dear"), BudgetExceeded, "too dear"),
        (RuntimeError("Zq8X"), EngineFailed, "no luck"),
        (Panic("Zq8X"), EngineFailed, "no luck"),
        (KeyboardInterrupt("Zq8X"), KeyboardInterrupt, ""),
        (SystemExit("Zq8X"), SystemExit, "1"),
        (SystemExit(3), SystemExit, "3"),
    ],
)
def test_what_fails(error: BaseException, kind: type[BaseException], words: str) -> None:
    with pytest.raises(kind) as caught:
        sealed(lambda: failing(error), words="no luck")
    assert str(caught.value) == words
    assert caught.value.__context__ is None and caught.value.__cause__ is None
    trace, depth = caught.value.__traceback__, 0
    while trace is not None:
        trace, depth = trace.tb_next, depth + 1
    assert depth == 2  # this function and `sealed`
    assert leaks(told(caught.value)) == []


def test_only_known_errors_keep_their_words() -> None:
    error = QueryRefused("x", problem="Zq8X", remedy="none")
    with pytest.raises(EngineFailed, match="no luck"):
        sealed(lambda: failing(error), words="no luck", known=(BudgetExceeded,))
