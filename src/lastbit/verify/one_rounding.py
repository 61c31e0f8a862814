"""Code taken apart around its one rounding: the sum before it, and what is made of the result.

Law      the code's result is P(K): K = round(q), q the sum over the cell in floats, and P is made
         of K and of numbers of the code alone
Theorem  let P be the same for all K from `last` on, and for all K up to `first`. Then the result is
         a function of K moved to [first, last], and loses no more than that: whatever is done to a
         release costs nothing. Each link of P (+ - * / with a number, a minus, a clamp) never falls
         or never rises with K, whether Python rounds it to a float or keeps it exact. So where a
         clamp gives its end at `last`, it gives that end for all K beyond
Theorem  a clamp before the rounding is one after it: if f never falls, f(clamp(x, a, b)) is
         clamp(f(x), f(a), f(b)); and x -> round(x / cell) never falls in floats
Differs  what Python computes of whole numbers is exact, of floats rounded: a link is followed by an
         interval that holds both. Ends are taken one cell farther out where the two disagree
Checked  tests/verify/test_one_rounding.py; the checker's own are in `checker/steps.py`
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from lastbit.errors import NotCertified
from lastbit.verify.error_bounds.formats import BINARY64, Interval
from lastbit.verify.language import expressions as ex
from lastbit.verify.language.expressions import Expression, table
from lastbit.verify.tracing.steps import Rows, Typed

Link: TypeAlias = tuple[str, Fraction | None, Fraction | None]
"""A step after the rounding: its name and its number, or the two ends of a clamp."""

_FORMS = (
    "Return step * round(x / step) or round(x * n) / n, and clamp that last, as in "
    "min(max(step * round(x / step), low), high). After the rounding, use numbers alone: "
    "+ - * / by them, a minus, min and max"
)
_MOST_CELLS = 1 << 64
_MOST_LINKS = 6
_TINY = Fraction(1, 1 << 100)


class Parts(NamedTuple):
    """P(round(total to the cell)): P's links are about multiples of `unit`, one for each cell."""

    total: Expression
    cell: Fraction
    unit: Fraction
    links: tuple[Link, ...]

    @property
    def is_plain(self) -> bool:
        """Whether the result is the multiple of the cell itself, clamps apart."""
        factor = self.unit
        for name, number, _ in self.links:
            if name not in ("MUL", "DIV", "CLAMP"):
                return False
            if name != "CLAMP" and number is not None:
                factor = factor * number if name == "MUL" else factor / number
        return factor == self.cell

    @property
    def is_modest(self) -> bool:
        """Whether no number but 0 becomes 0 on the way: a float sum is 2**-53 of a part or more."""
        numbers = [abs(low) for name, low, _ in self.links if name != "CLAMP" and low]
        return len(self.links) <= _MOST_LINKS and all(_TINY < x < 1 / _TINY for x in numbers)

    def reached(self, index: int) -> list[Interval]:
        """Two numbers between which each link's result lies where the rounding gives this cell."""
        reached = [_either((index * self.unit,))]
        for link in self.links:
            reached.append(_linked(link, reached[-1]))
        return reached

    def is_exact(self, indices: Iterable[int]) -> bool:
        """Whether whole numbers are floats, all numbers too, from one of these cells to another."""
        sizes = [abs(x) for index in indices for ends in self.reached(index) for x in ends]
        numbers = [x for link in self.links for x in link[1:] if isinstance(x, Fraction)]
        return max(sizes) <= 2**53 and all(map(BINARY64.holds, numbers))

    def is_end(self, index: int, way: int) -> bool:
        """Whether all cells from this one on have one result: upward (1) or downward (-1)."""
        reached = _either((index * self.unit,))
        for link in self.links:
            name, low, high = link
            if name == "CLAMP":
                if way > 0 and high is not None and reached[0] >= _either((high,))[1]:
                    return True
                if way < 0 and low is not None and reached[1] <= _either((low,))[0]:
                    return True
            reached = _linked(link, reached)
            if name in ("NEG", "FROM") or (name in ("MUL", "DIV") and low is not None and low < 0):
                way = -way
        return False

    def last(self, way: int) -> int | None:
        """The cell from which on all have one result, in this direction; None if there is none."""
        far = 1
        while not self.is_end(far * way, way):
            far *= 2
            if far > _MOST_CELLS:
                return None
        near = -1
        while self.is_end(near * way, way):
            near *= 2
            if near < -_MOST_CELLS:
                return None
        while far - near > 1:
            middle = (far + near) // 2
            far, near = (middle, near) if self.is_end(middle * way, way) else (far, middle)
        return far * way


def parts_of(expression: Expression) -> Parts:
    """The code's steps around its rounding, on every path."""
    links: list[Link] = []
    step: Expression = expression
    while not isinstance(step, ex.RoundTo):
        if isinstance(step, ex.Piecewise):
            one, other = parts_of(step.then), parts_of(step.otherwise)
            if one[1:] != other[1:]:
                raise NotCertified(
                    "the code rounds or clamps differently on its paths; do it once, at the end"
                )
            cases = ex.Piecewise(step.condition, one.total, other.total)
            return one._replace(total=cases, links=_merged((*one.links, *reversed(links))))
        link, below = _link(step)
        if below is None:
            raise _unknown(step)
        links.append(link)
        step = below
    total, cell, clamps = _before(step.argument, step.step)
    return Parts(total, cell, step.step, _merged((*clamps, *reversed(links))))


def _link(step: Expression) -> tuple[Link, Expression | None]:
    """A step as a link, and the step below it; None if it is not a step with a number."""
    match step:
        case ex.Clamp():
            return ("CLAMP", step.low, step.high), step.argument
        case ex.Negate():
            return ("NEG", None, None), step.argument
        case ex.Add(left=below, right=ex.Constant(value=number)):
            return ("ADD", number, None), below
        case ex.Add(left=ex.Constant(value=number), right=below):
            return ("ADD", number, None), below
        case ex.Subtract(left=below, right=ex.Constant(value=number)):
            return ("SUB", number, None), below
        case ex.Subtract(left=ex.Constant(value=number), right=below):
            return ("FROM", number, None), below
        case ex.Multiply(left=below, right=ex.Constant(value=number)) if number:
            return ("MUL", number, None), below
        case ex.Multiply(left=ex.Constant(value=number), right=below) if number:
            return ("MUL", number, None), below
        case ex.Divide(left=below, right=ex.Constant(value=number)) if number:
            return ("DIV", number, None), below
    return ("", None, None), None


def _unknown(expression: Expression) -> NotCertified:
    if any(isinstance(step, ex.RoundTo) for step in table(expression).expressions):
        return NotCertified(
            "the code does not round its result in a form that is known: it changes it before or "
            f"after. {_FORMS}"
        )
    return NotCertified(
        "the code does not round its result; without rounding the last bits of float noise tell "
        f"the value. {_FORMS}, or pass the noise and a cell"
    )


def _before(argument: Expression, unit: Fraction) -> tuple[Expression, Fraction, list[Link]]:
    """The sum that is rounded, its cell, and clamps of it as clamps of what it is rounded to."""
    links: list[Link] = []
    factor: tuple[str, Fraction] | None = None
    total = argument
    while True:
        match total:
            case ex.Clamp():
                ends = [_cell_of(end, unit, factor) for end in (total.low, total.high)]
                links.insert(0, ("CLAMP", ends[0], ends[1]))
                total = total.argument
            case ex.Divide(left=below, right=ex.Constant(value=number)) if (
                number > 0 and unit == 1 and factor is None
            ):
                factor, total = ("DIV", number), below
            case (
                ex.Multiply(left=below, right=ex.Constant(value=number))
                | ex.Multiply(left=ex.Constant(value=number), right=below)
            ) if number > 0 and unit == 1 and factor is None:
                if not BINARY64.holds(number):
                    raise NotCertified(
                        "the code multiplies by a fraction that is not a float; divide by its "
                        "inverse: step * round(x / step)"
                    )
                factor, total = ("MUL", number), below
            case _:
                break
    if factor is None:
        return total, unit, links
    # a product is rounded just as the quotient by 1/factor would be
    return total, factor[1] if factor[0] == "DIV" else 1 / factor[1], links


def _cell_of(
    end: Fraction | None, unit: Fraction, factor: tuple[str, Fraction] | None
) -> Fraction | None:
    """What the end of a clamp is rounded to."""
    if end is None:
        return None
    reached = _either((end,))
    if factor is not None:
        reached = _linked((*factor, None), reached)
    first, last = (round(x / unit) * unit for x in reached)
    if first != last:
        raise NotCertified(
            "the code clamps its sum where two cells meet; clamp it to multiples of the step"
        )
    return first


def _merged(links: Iterable[Link]) -> tuple[Link, ...]:
    """The same links without those that do nothing, clamps of clamps as one."""
    merged: list[Link] = []
    for link in links:
        name, low, high = link
        if (name in ("ADD", "SUB") and low == 0) or (name in ("MUL", "DIV") and low == 1):
            continue
        if name == "CLAMP" and merged and merged[-1][0] == "CLAMP":
            _, least, most = merged.pop()
            low_end = low if least is None else _clamped(least, low, high)
            high_end = high if most is None else _clamped(most, low, high)
            merged.append(("CLAMP", low_end, high_end))
        else:
            merged.append(link)
    return tuple(merged)


def _either(numbers: Iterable[Fraction]) -> Interval:
    """The least and the greatest of numbers, rounded to floats or not."""
    both = [x for number in numbers for x in (number, BINARY64.rounded(number))]
    return min(both), max(both)


def _linked(link: Link, reached: Interval) -> Interval:
    """All that a link makes of an interval."""
    name, low, high = link
    if name == "CLAMP":
        inside = (_clamped(x, low, high) for x in reached)
        return _either(inside)
    if name == "NEG":
        return -reached[1], -reached[0]
    assert low is not None
    numbers = _either((low,))
    return _either(_MADE[name](x, number) for x in reached for number in numbers)


def _clamped(x: Fraction, low: Fraction | None, high: Fraction | None) -> Fraction:
    above = x if low is None else max(x, low)
    return above if high is None else min(above, high)


_MADE: Mapping[str, Callable[[Fraction, Fraction], Fraction]] = MappingProxyType({
    "ADD": operator.add, "SUB": operator.sub, "FROM": lambda x, number: number - x,
    "MUL": operator.mul, "DIV": operator.truediv,
})  # fmt: skip


# ---------------------------------------------------------------- one function on all paths


def has_one_function(
    parts: Parts, indices: Sequence[int], code: Sequence[tuple[Rows, Sequence[Typed]]]
) -> bool:
    """Whether P is one function for both signs and on all paths, its floats to the last bit.

    Theorem  the links are equal as numbers. Python rounds floats, and neither whole numbers nor
             fractions: 3 * k is another number than 3.0 * k beyond 2**53. If all paths take the
             same steps, of the same types, they are one function. If not, but there is no fraction
             and no number beyond 2**53, then whole numbers are exact as floats too
    """
    known: dict[tuple[Any, ...], int] = {}
    paths = {path for rows, _ in code for path in _paths(rows, known)}
    if len(paths) == 1:
        return True
    fractions = any("fraction" in one.kinds for rows, types in code for one in _after(rows, types))
    return not fractions and parts.is_exact(indices)


def has_one_outside(code: Sequence[Rows]) -> bool:
    """Whether an infinity, if the code returns one, is the name of the same results on all paths.

    Theorem  a clamp stands for a branch to an infinity (`cases`), whichever infinity it is. Two of
             them, or one and the clamp's own end, would tell the path: a sign, a side of u, even
             the value. If all paths take the same steps after the rounding, the branches among
             them, the result is one function of the rounded number, infinities included
    """
    if not any(row[1:] in _INFINITIES for rows in code for row in map(tuple, rows)):
        return True
    known: dict[tuple[Any, ...], int] = {}
    found = set[int]()
    for rows in code:
        numbers, cases = _numbered(rows, known), list[bool]()
        for name, *parts in rows:
            below = [] if name in _ROUNDED else [part for part in parts if type(part) is int]
            cases.append(name == "case" or any(cases[place] for place in below))
        todo = [len(rows) - 1]
        while todo:
            index = todo.pop()
            if rows[index][0] == "case":
                todo.extend(rows[index][1:3])
            elif cases[index]:
                return False
            else:
                found.add(numbers[index])
    return len(found) == 1


_INFINITIES = (("inf",), ("-inf",))


def _numbered(rows: Rows, known: dict[tuple[Any, ...], int]) -> list[int]:
    """A number for each step, the same for the same steps; all roundings are alike."""
    numbers: list[int] = []
    for name, *parts in rows:
        below = () if name in _ROUNDED else tuple(numbers[p] for p in parts if type(p) is int)
        rest = tuple(part for part in parts if type(part) is not int)
        numbers.append(known.setdefault((name, below, rest), len(known)))
    return numbers


def _paths(rows: Rows, known: dict[tuple[Any, ...], int]) -> set[int]:
    """The steps after the rounding on each path, as numbers: equal steps have equal ones."""
    numbers = _numbered(rows, known)
    todo, found = [len(rows) - 1], set[int]()
    while todo:
        index = todo.pop()
        if rows[index][0] in ("case", "branch"):
            todo.extend(rows[index][1:3])
        else:
            found.add(numbers[index])
    return found


def _after(rows: Rows, types: Sequence[Typed]) -> list[Typed]:
    """The types of all steps that use the rounded number, and of the numbers beside it."""
    uses: list[bool] = []
    found: list[Typed] = []
    for index, (name, *parts) in enumerate(rows):
        below = [part for part in parts if type(part) is int]
        uses.append(name in _ROUNDED or any(uses[part] for part in below))
        if uses[index]:
            found.append(types[index])
            if name not in _ROUNDED:
                found.extend(types[part] for part in below)
    return found


_ROUNDED = ("round", "numpy.rint", "round_to")


# ---------------------------------------------------------------- signs of zero


def zero_signs(rows: Rows, types: Sequence[Typed]) -> frozenset[int]:
    """The signs that a result of 0 can have: 1 for 0.0, -1 for -0.0.

    Theorem  a sum of floats is -0.0 only if both are; a product or quotient with a number has the
             sign of both; whole numbers have one zero. So the sign of a zero follows from K, but
             for `numpy.rint`, which keeps that of the sum. That nothing but 0 comes to 0 by
             rounding is for `Parts.is_modest` to see
    """
    found: list[frozenset[int]] = []
    for (name, *parts), kind in zip(rows, types, strict=True):
        below = [found[part] for part in parts if type(part) is int]
        found.append(_ONE if not kind.kinds - _WHOLE else _signs(name, parts, below, rows))
    return found[-1]


_ONE, _BOTH = frozenset({1}), frozenset({1, -1})
_WHOLE = frozenset({"int", "fraction"})


def _signs(
    name: str, parts: Sequence[Any], below: list[frozenset[int]], rows: Rows
) -> frozenset[int]:
    match name.removeprefix("numpy.").removeprefix("math."):
        case "float" | "float64":
            number = float.fromhex(parts[0])
            return frozenset() if number else frozenset({-1 if parts[0].startswith("-") else 1})
        case "fsum":
            return _BOTH
        case "add":
            return _ONE | ({-1} if -1 in below[0] & below[1] else set())
        case "sub" | "subtract":
            return _ONE | ({-1} if -1 in below[0] and 1 in below[1] else set())
        case "mul" | "multiply" | "div" | "divide" as product:
            for place, other in ((1, 0), (0, 1)) if product.startswith("mul") else ((1, 0),):
                factor = _number(rows[parts[place]])
                if factor:
                    return below[other] if factor > 0 else frozenset(-s for s in below[other])
            return _BOTH
        case "neg" | "negative":
            return frozenset(-sign for sign in below[0])
        case "pos" | "positive":
            return below[0]
        case "abs" | "absolute" | "fabs" | "round" | "round_to" | "int" | "fraction":
            return _ONE
        case "min" | "max" if name in ("min", "max") and _number(rows[parts[0]]) == 0:
            return below[0]  # of equal numbers Python takes the first
        case "min" | "max" | "minimum" | "maximum" | "clamp" | "clip":
            return frozenset().union(*below)
        case "case" | "branch":
            return below[0] | below[1]
    return _BOTH


def _number(row: Sequence[Any]) -> Fraction | None:
    match row:
        case [("float" | "numpy.float64"), text]:
            return Fraction(float.fromhex(text))
        case [("int" | "fraction"), text]:
            return Fraction(text)
    return None
