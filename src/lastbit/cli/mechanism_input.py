"""The data that `lastbit mechanism` is given: on the command line or in a file, never repeated."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from lastbit.cli.files import rows_of
from lastbit.cli.numbers import secret_number
from lastbit.errors import InvalidParameter

if TYPE_CHECKING:
    from lastbit.mechanisms import Lattice

COUNT = re.compile(r"\s*\+?[0-9]{1,1000}\s*", re.ASCII)
HEADER = ("key", "count")


@dataclass(frozen=True, slots=True)
class Candidates:
    """One number a candidate, and their names where they have some."""

    numbers: tuple[int | Fraction, ...]
    names: tuple[str, ...] | None


def candidates(text: str | None, file: Path | None, option: str) -> Candidates | None:
    """The numbers given by an option or a file; None if neither was given."""
    rows = _rows(text, file, option)
    if rows is None:
        return None
    numbers = tuple(whole_or_fraction(secret_number(row[-1], where)) for where, row in rows)
    named = len(rows[0][1]) == 2
    return Candidates(numbers, tuple(row[0].strip() for _, row in rows) if named else None)


def counts(text: str | None, file: Path | None) -> dict[str, int] | None:
    """Counts by key, given by an option or a file; None if neither was given."""
    rows = _rows(text, file, "--counts", widths=(2,))
    if rows is None:
        return None
    if file is not None and tuple(cell.strip().lower() for cell in rows[0][1]) == HEADER:
        rows = rows[1:]
    found: dict[str, int] = {}
    for where, (key, count) in rows:
        if not COUNT.fullmatch(count):
            raise InvalidParameter(
                where,
                problem="has a count that is no whole number from 0 up",
                remedy='write a key and its count, "a=3,b=10" or a line a,3',
            )
        if key.strip() in found:
            raise InvalidParameter(
                where, problem="has a key for the second time", remedy="add up its counts first"
            )
        found[key.strip()] = int(count)
    return found


def _rows(
    text: str | None, file: Path | None, option: str, widths: tuple[int, ...] = (1, 2)
) -> list[tuple[str, list[str]]] | None:
    """What was given, with words for where it stood."""
    if text is not None and file is not None:
        raise InvalidParameter(
            f"{option} and --file", problem="are both given", remedy="pass one of the two"
        )
    if file is not None:
        return [(f"line {number} of --file", row) for number, row in rows_of(file, widths)]
    if text is None:
        return None
    rows = [
        (f"item {number} of {option}", item.rsplit("=", 1))
        for number, item in enumerate(text.split(","), start=1)
    ]
    for where, row in rows:
        if len(row) not in widths or len(row) != len(rows[0][1]):
            remedy = '"a=3,b=10"' if widths == (2,) else '"3,5,4" or "a=3,b=5,c=4"'
            raise InvalidParameter(where, problem="is not like the rest", remedy=f"write {remedy}")
    return rows


def whole_or_fraction(number: Fraction) -> int | Fraction:
    """An int where the number is one."""
    return number.numerator if number.denominator == 1 else number


def number_on(lattice: Lattice, number: Fraction, option: str) -> int | float:
    """A number in the form that the lattice takes: moved to its grid exactly, rounded only once.

    A float that is first rounded to 53 bits and then to the grid would be rounded twice, and two
    neighbours might end one step further apart than the proof allows.
    """
    if not lattice.rounds:
        if number.denominator == 1:
            return number.numerator
        raise InvalidParameter(
            option,
            problem="is not a whole number",
            remedy="pass --grid auto for numbers with a fractional part",
        )
    snapped = round(number / lattice.step) * lattice.step
    if snapped.denominator == 1:
        return snapped.numerator
    try:
        nearest = snapped.numerator / snapped.denominator
    except OverflowError:
        nearest = 0.0
    if Fraction(nearest) != snapped:
        raise InvalidParameter(
            option,
            problem="has more digits than a float holds at this grid",
            remedy="pass a coarser --grid, a power of two such as 1/1024",
        )
    return nearest
