"""Copies of plain JSON, whole or with one value replaced: what tests of mutants make thousands of.

`own_leaves` and `variants` generate the mutants of a certificate.

`copy.deepcopy`, which knows every kind of object, takes longer than the checks of what it copied.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
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


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict):
        for key in value:
            yield from leaves(value[key], (*path, key))
    elif isinstance(value, list):
        for place, part in enumerate(value):
            yield from leaves(part, (*path, place))
    else:
        yield path


def at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def variants(old: Any) -> list[Any]:
    """A leaf with one digit or letter changed."""
    if isinstance(old, bool) or old is None:
        return ["0"]
    if isinstance(old, int):
        return [old + 1, old - 1]
    try:
        value = Fraction(old)
    except (ValueError, ZeroDivisionError):
        return sorted({old.lower(), old[::-1], old + "X", ""} - {old})
    near = value * (1 + Fraction(1, 1 << 30)) if value else Fraction(1, 1 << 60)
    numbers = {value + 1, value - 1, near, value * (1 - Fraction(1, 1 << 30)), -value}
    return [str(number) for number in sorted(numbers - {value})]


def own_leaves(sealed: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Everything but the insides of the error derivations."""
    found = [path for path in leaves(sealed) if path[0] in ("claim", "body")]
    return [path for path in found if "proof" not in path]
