"""Copies of plain JSON, whole or with one value replaced: what tests of mutants make thousands of.

`copy.deepcopy`, which knows every kind of object, takes longer than the checks of what it copied.
"""

from collections.abc import Sequence
from typing import Any


def copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: copied(part) for name, part in value.items()}
    return [copied(part) for part in value] if isinstance(value, list) else value


def replaced(whole: Any, path: Sequence[Any], new: Any) -> Any:
    """A copy of what lies on the way to the value; all else is shared with the original."""
    if not path:
        return new
    step, *rest = path
    other = whole.copy()
    other[step] = replaced(whole[step], rest, new) if rest else new
    return other
