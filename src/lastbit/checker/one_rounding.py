"""What code does before and after the one place where it rounds, looked at again.

A mechanism must be P(k), k the whole number to which it rounds its sum over the cell, and P made of
k and constants: then P costs nothing, whatever it is, if all k beyond the region's ends have the
result of the ends. Each link of P moves one way with k, rounded or exact, so it is enough to see a
clamp act at both ends. The sum, its cell and the links can be read in more ways than one, as x / 1
is x: `readings` gives all of them, and each is right.

Zeros have two signs. Of a whole number k the sign follows; numpy's rint keeps that of the sum, and
would tell it: `zeros` says which signs a result of 0 can have, and there must be one.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import Any, TypeAlias

from .intervals import ARITHMETIC, Rows
from .numbers import Interval, Rejected, number, require

Link: TypeAlias = tuple[Any, ...]
"""A rule and its constants: ("MUL", c), ("FROM", c) for c - x, ("CLAMP", low, high), ("NEG",)."""

Reading: TypeAlias = tuple[int, Fraction, Fraction, tuple[Link, ...]]
"""The node of the sum, its cell, the multiple that stands for a cell, and the links from there."""

Nodes: TypeAlias = Sequence[tuple[Any, ...]]
_CHOICES = ("case", "branch")
_FEW = 6
_WIDE = Fraction(2**100)


def float_of(x: Fraction) -> Fraction:
    """The nearest float."""
    try:
        return Fraction(float(x))
    except OverflowError:
        raise Rejected("a step of the code may be beyond all floats") from None


def readings(nodes: Nodes, root: int) -> Iterator[tuple[Any, Fraction, Fraction, tuple[Link, ...]]]:
    """All ways to read code as links after a rounding; a sum with cases is nested as they are."""
    outer: list[Link] = []
    at = root
    while nodes[at][0] != "ROUND":
        if nodes[at][0] == "CASES":
            _, yes, no, *condition = nodes[at]
            for one, other in itertools.product(readings(nodes, yes), readings(nodes, no)):
                if one[1:] == other[1:]:
                    links = shortened((*one[3], *reversed(outer)))
                    yield ("CASES", one[0], other[0], *condition), one[1], one[2], links
            return
        link, at = _link(nodes, at)
        outer.append(link)
    _, inside, step = nodes[at]
    for total, cell, clamps in _insides(nodes, inside, step):
        yield total, cell, step, shortened((*clamps, *reversed(outer)))


def _link(nodes: Nodes, at: int) -> tuple[Link, int]:
    rule, *parts = nodes[at]
    if rule == "CLAMP":
        return ("CLAMP", parts[1], parts[2]), parts[0]
    if rule == "NEG":
        return ("NEG",), parts[0]
    if rule in ("ADD", "SUB", "MUL", "DIV"):
        left, right = (nodes[part] for part in parts)
        nothing = rule in ("MUL", "DIV") and ("CONST", 0) in (left, right)
        if right[0] == "CONST" and not nothing:
            return (rule, right[1]), parts[0]
        if left[0] == "CONST" and rule != "DIV" and not nothing:
            return ("FROM" if rule == "SUB" else rule, left[1]), parts[1]
    raise Rejected("the code does not round its result")


def _insides(
    nodes: Nodes, inside: int, step: Fraction
) -> Iterator[tuple[int, Fraction, list[Link]]]:
    """The sum as it stands before the rounding, and as it stands before a division by the cell."""
    at, clamps = _unclamped(nodes, inside, step, ())
    yield at, step, clamps
    rule, *parts = nodes[at]
    if step != 1 or rule not in ("DIV", "MUL"):
        return
    for below, constant in (parts, parts[::-1]) if rule == "MUL" else (parts,):
        kind, *value = nodes[constant]
        if kind != "CONST" or value[0] <= 0:
            continue
        if rule == "MUL":  # Python multiplies by the float nearest to n: else 1/n is not the cell
            require(
                float_of(value[0]) == value[0],
                "the code multiplies by a fraction that is not a float",
            )
        total, more = _unclamped(nodes, below, step, ((rule, value[0]),))
        yield total, value[0] if rule == "DIV" else 1 / value[0], [*more, *clamps]


def _unclamped(
    nodes: Nodes, at: int, step: Fraction, before: tuple[Link, ...]
) -> tuple[int, list[Link]]:
    """What is clamped, and its clamps as clamps of what it is rounded to: rounding never falls."""
    clamps: list[Link] = []
    while nodes[at][0] == "CLAMP":
        _, below, *ends = nodes[at]
        whole: list[Fraction | None] = []
        for end in ends:
            rounded = None
            if end is not None:
                low, high = (round(x / step) * step for x in followed(before, _hull([end])))
                require(low == high, "a clamp before the rounding has its end between two cells")
                rounded = low
            whole.append(rounded)
        clamps.insert(0, ("CLAMP", *whole))
        at = below
    return at, clamps


def shortened(links: Sequence[Link]) -> tuple[Link, ...]:
    """Links that do something, neighbouring clamps as one."""
    kept: list[Link] = []
    for link in links:
        if link in (("ADD", 0), ("SUB", 0), ("MUL", 1), ("DIV", 1)):
            continue
        if link[0] != "CLAMP" or not kept or kept[-1][0] != "CLAMP":
            kept.append(link)
            continue
        first, ends = kept.pop()[1:], link[1:]
        own = [mine if mine is not None else end for mine, end in zip(first, ends, strict=True)]
        kept.append(("CLAMP", *(None if end is None else _clamp(end, *ends) for end in own)))
    return tuple(kept)


def _clamp(x: Fraction, low: Fraction | None, high: Fraction | None) -> Fraction:
    x = x if low is None or x >= low else low
    return x if high is None or x <= high else high


def _hull(numbers: Sequence[Fraction]) -> Interval:
    """From the least to the greatest, each as it is and as a float."""
    both = sorted({*numbers, *map(float_of, numbers)})
    return both[0], both[-1]


def followed(links: Sequence[Link], reached: Interval) -> Interval:
    """What the links make of an interval, if Python rounds each result, or if it does not."""
    for rule, *constants in links:
        if rule == "CLAMP":
            results = [_clamp(x, *constants) for x in reached]
        elif rule == "NEG":
            results = [-x for x in reached]
        else:
            results = [_RESULT[rule](x, c) for x in reached for c in _hull(constants)]
        reached = _hull(results)
    return reached


_RESULT: Mapping[str, Callable[[Any, Any], Any]] = MappingProxyType(
    {**ARITHMETIC, "FROM": lambda x, c: c - x}
)


def settled(links: Sequence[Link], reached: Interval, way: int) -> bool:
    """Whether a clamp acts at this cell, and so at all cells beyond it in this direction."""
    for index, (rule, *constants) in enumerate(links):
        if rule == "CLAMP":
            end = constants[way > 0]
            if end is not None:
                low, high = _hull([end])
                if (way > 0 and reached[0] >= high) or (way < 0 and reached[1] <= low):
                    return True
        reached = followed(links[index : index + 1], reached)
        turned = rule in ("NEG", "FROM") or (rule in ("MUL", "DIV") and constants[0] < 0)
        way = -way if turned else way
    return False


def check_ends(reading: Reading, region: Interval) -> Interval:
    """The least and the greatest result; reject unless all sums beyond the region have these.

    Code that does not clamp on both sides gives multiples of the cell, and somebody else moves
    those beyond the region to its ends: the claim says so.
    """
    _, cell, unit, links = reading
    places = [end / cell * unit for end in region]
    reached = [_hull([place]) for place in places]
    clamps = [link for link in links if link[0] == "CLAMP"]
    both = all(any(link[side] is not None for link in clamps) for side in (1, 2))
    if both:
        for place, way in zip(reached, (-1, 1), strict=True):
            require(settled(links, place, way), "the code clamps to another region")
    else:
        factor = unit
        for rule, *constants in links:
            require(rule in ("MUL", "DIV", "CLAMP"), "the code does not clamp what it makes")
            if rule != "CLAMP":
                factor = factor * constants[0] if rule == "MUL" else factor / constants[0]
        require(factor == cell, "the code does not clamp what it makes")
    results = [x for place in reached for x in followed(links, place)]
    return min(results), max(results)


def check_one_function(
    reading: Reading,
    region: Interval,
    tables: Sequence[Rows],
    types: Sequence[Sequence[frozenset[str]]],
) -> None:
    """Reject code that may give two numbers for one k: on two paths, or for two signs.

    The links of all are equal as numbers, but what is whole or a fraction is not rounded. Either
    the steps are the same, or nothing is a fraction or beyond 2**53, where floats are exact. Both
    ends of a branch are paths; a step after a choice has as many steps as the choice.
    """
    _, cell, unit, links = reading
    ends: set[Any] = set()
    names: dict[Any, int] = {}
    plain = same = True
    for rows, kinds in zip(tables, types, strict=True):
        marks: list[int] = []
        after: set[int] = set()
        for index, (name, *parts) in enumerate(rows):
            below = [part for part in parts if type(part) is int]
            rest = [part for part in parts if type(part) is not int]
            rounding = name in ("round", "numpy.rint", "round_to")
            own = () if rounding else tuple(marks[place] for place in below)
            key = name, tuple(rest), own
            marks.append(names.setdefault(key, len(names)))
            if rounding or after.intersection(below):
                after.add(index)
                choices = [k for k in below if rows[k][0] in _CHOICES]
                same = same and (rounding or name in _CHOICES or not choices)
                plain = plain and all(
                    "fraction" not in kinds[k] for k in (index, *below[rounding:])
                )
        todo = [len(rows) - 1]
        while todo:
            top = todo.pop()
            if rows[top][0] in _CHOICES:
                todo += rows[top][1:3]
            else:
                ends.add(marks[top])
    if same and len(ends) == 1:
        return
    constants = [x for link in links for x in link[1:] if x is not None]
    small = all(float_of(x) == x for x in constants)
    for end in region:
        for count in range(len(links) + 1):
            reached = followed(links[:count], _hull([end / cell * unit]))
            small = small and max(map(abs, reached)) <= 2**53
    require(plain and small, "the code gives other numbers on one path than on another")


def check_one_outside(tables: Sequence[Rows]) -> None:
    """Reject code with an infinity unless all its paths do the same after the rounding.

    An infinity stands for a number just beyond a bound. Another infinity on another path, or that
    number itself, would tell the path, which a value or a sign led to. So the steps after the
    rounding must be the same for both signs and after every case, branches included, and without a
    case among them.
    """
    if not any(row[1:] in _INFINITIES for rows in tables for row in map(list, rows)):
        return
    names: dict[Any, int] = {}
    ends: set[int] = set()
    for rows in tables:
        marks: list[int] = []
        by_case: list[bool] = []
        for name, *parts in rows:
            rounding = name in ("round", "numpy.rint", "round_to")
            below = [] if rounding else [part for part in parts if type(part) is int]
            rest = tuple(part for part in parts if type(part) is not int)
            key = name, rest, tuple(marks[place] for place in below)
            marks.append(names.setdefault(key, len(names)))
            by_case.append(name == "case" or any(by_case[place] for place in below))
        todo, passed = [len(rows) - 1], set[int]()
        while todo:
            top = todo.pop()
            if top in passed:
                continue
            passed.add(top)
            if rows[top][0] == "case":
                todo += rows[top][1:3]
            else:
                require(not by_case[top], _OUTSIDE)
                ends.add(marks[top])
    require(len(ends) == 1, _OUTSIDE)


_INFINITIES = (["inf"], ["-inf"])
_OUTSIDE = "what lies outside has one name on one path and another on another"


def check_zeros(links: Sequence[Link], signs: frozenset[int], results: Interval) -> None:
    """Reject results of 0 with two signs, and links that could make a 0 of something else.

    A sum of floats is 0 or no less than 2**-53 of its parts, so few links with constants of usual
    size never come to 0 by rounding.
    """
    if results[0] > 0 or results[1] < 0:
        return
    constants = [abs(link[1]) for link in links if link[0] not in ("CLAMP", "NEG") and link[1]]
    usual = all(1 / _WIDE < c < _WIDE for c in constants)
    require(len(links) <= _FEW and usual, "a result may be rounded to 0")
    require(len(signs) <= 1, "the code gives -0.0, or it cannot be seen that it does not")


def zeros(rows: Rows, whole: Sequence[bool]) -> frozenset[int]:
    """The signs of a 0 in the last row; `whole` says which rows are whole numbers or fractions."""
    known: list[frozenset[int]] = []
    for row, exact in zip(rows, whole, strict=True):
        known.append(frozenset({1}) if exact else frozenset(_zeros(row, rows, known)))
    return known[-1]


def _zeros(row: Sequence[Any], rows: Rows, known: Sequence[frozenset[int]]) -> set[int]:
    name, *parts = row
    below = [set(known[part]) for part in parts if type(part) is int]
    name = name.removeprefix("numpy.")
    if name in ("float", "float64"):
        signed = -1 if parts[0].startswith("-") else 1
        return set() if float.fromhex(parts[0]) else {signed}
    if name in ("add", "sub", "subtract"):
        second = {-sign for sign in below[1]} if name[0] == "s" else below[1]
        return {1, -1} if -1 in below[0] and -1 in second else {1}
    if name in ("neg", "negative"):
        return {-sign for sign in below[0]}
    if name in ("pos", "positive"):
        return below[0]
    if name in ("abs", "absolute", "fabs", "math.fabs", "round", "round_to"):
        return {1}
    if name in ("mul", "multiply", "div", "divide"):
        factors = [_constant(rows[part]) for part in parts]
        for factor, other in zip(factors[::-1], below, strict=True):
            divisor = factor is factors[1] or name[0] == "m"
            if factor and divisor:
                return {sign if factor > 0 else -sign for sign in other}
        return {1, -1}
    if name in ("min", "max") and row[0] == name and _constant(rows[parts[0]]) == 0:
        return below[0]  # Python takes the first of equal numbers
    if name in ("min", "max", "minimum", "maximum", "clamp", "clip"):
        return set().union(*below)
    if name in ("case", "branch"):
        return below[0] | below[1]
    return {1, -1}


def _constant(row: Sequence[Any]) -> Fraction | None:
    if row[0] in ("int", "fraction"):
        return number(row[1])
    return Fraction(float.fromhex(row[1])) if row[0] in ("float", "numpy.float64") else None
