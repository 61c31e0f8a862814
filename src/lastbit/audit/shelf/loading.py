"""Other libraries, loaded by name and only when they are asked for."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from lastbit.errors import InvalidParameter

__all__ = ["again_and_again", "loaded"]


def loaded(module: str, *, package: str) -> Any:
    """A module of a library under test.

    What a target draws comes from the library under test; nothing of it is ever released as
    private.

    >>> loaded("no_such_module", package="no-such-package")
    Traceback (most recent call last):
        ...
    lastbit.errors.InvalidParameter: library no-such-package is not installed or does not ...
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        raise InvalidParameter(
            f"library {package}",
            problem="is not installed or does not import",
            remedy=f"pip install {package}",
        ) from None


def again_and_again(release: Callable[[Any], Any]) -> Callable[[Any, int], list[Any]]:
    """A release of one value, as many times as asked for."""
    return lambda value, size: [release(value) for _ in range(size)]
