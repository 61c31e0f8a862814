"""What public calls ask of their arguments, before anything is read or charged.

A value of the wrong kind is refused here by the name of its parameter and with the way out, so that
nobody meets an error of Python's own from inside a computation. The value itself may be data, or
have a `repr` that shows some: only its type is named.

Checked  tests/release/test_hostile_calls.py: thousands of calls of the public interface
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

from lastbit.errors import WrongType


def check_kind(value: object, kind: type | tuple[type, ...], name: str, *, remedy: str) -> None:
    """Refuse a value that is not of this kind.

    >>> check_kind(3, str, "title", remedy='pass, say, "Visits"')
    Traceback (most recent call last):
        ...
    lastbit.errors.WrongType: title is of type int; pass, say, "Visits"
    """
    if not isinstance(value, kind):
        raise WrongType(name, problem=f"is of type {type(value).__name__}", remedy=remedy)


def check_flags(**flags: object) -> None:
    """Refuse flags that are neither True nor False: nearly everything else passes for True."""
    for name, value in flags.items():
        if not isinstance(value, bool):
            raise WrongType(name, problem="is neither True nor False", remedy="pass one of them")


def check_path(path: object, name: str = "path") -> None:
    """Refuse what names no file: a number would be taken for an open file of the process."""
    if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str):
        raise WrongType(name, problem="is not a path", remedy='pass, say, "visits.html"')


def two(value: Any, name: str, *, remedy: str) -> tuple[Any, Any]:
    """Both of a pair."""
    try:
        first, second = value
    except (TypeError, ValueError):
        first = second = None
    if first is None or second is None or isinstance(value, str):
        raise WrongType(name, problem="are not two", remedy=remedy)
    return first, second


def listed(values: Any, name: str, *, remedy: str, problem: str = "are not a list") -> list[Any]:
    """A list of several things; a text is not one, though Python takes it for its letters."""
    try:
        found = None if isinstance(values, str | bytes) else list(values)
    except TypeError:  # arrays without dimension claim to be iterable
        found = None
    if found is None:
        raise WrongType(name, problem=problem, remedy=remedy)
    return found


def nearest(word: str, known: Iterable[str]) -> str:
    """The name that was probably meant, as a question; "" if none comes near.

    >>> nearest("reigon", ["Region", "cost"])
    'did you mean Region? '
    """
    lowered = {name.lower(): name for name in known}
    near = get_close_matches(word.lower(), lowered, n=1)
    return f"did you mean {lowered[near[0]]}? " if near else ""
