"""How far an engine is, told to whoever asked to be told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeAlias

Tell: TypeAlias = Callable[[float, str], None]
_TELL: ContextVar[Tell | None] = ContextVar("tell", default=None)


@contextmanager
def progress(tell: Tell) -> Iterator[None]:
    """Inside, engines that know how far they are say so: the share done, and what they do."""
    before = _TELL.set(tell)
    try:
        yield
    finally:
        _TELL.reset(before)


def told(share: Callable[[], float], words: str) -> None:
    """For engines: tell how far the work is, where that is asked for at all."""
    tell = _TELL.get()
    if tell is not None:
        tell(share(), words)
