"""What code was seen to do, step by step, held against the claim's programs and run on floats.

A record in a certificate lists the operations that the code performs (`math.log`, `round`, `min`,
...). Their meaning is worked out here: it must be the claim's program, and for code that rounds and
clamps, its cell and region too. And they are run, with the functions that they name, so that the
code can be compared with them (`check_code`). Nothing here is believed of the code.

A program means that each operation is rounded once, to a float. Python does not round whole numbers
and fractions until they meet a float, and numpy's whole numbers wrap around: `last_type` rejects
steps that would differ by that. Rejected are also mechanisms with results of two types, which tell
more than their number, and those in which a step may be beyond all floats: round fails there.
"""

from __future__ import annotations

import importlib
import math
import operator
import struct
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from types import MappingProxyType
from typing import Any, TypeAlias

from .intervals import ARITHMETIC, Rows, interval_of, uniform_range
from .numbers import Interval, Json, Rejected, number, require
from .one_rounding import (
    check_ends,
    check_one_function,
    check_one_outside,
    check_zeros,
    readings,
    zeros,
)

_DYADIC = MappingProxyType({
    "add": "ADD", "sub": "SUB", "mul": "MUL", "div": "DIV", "numpy.add": "ADD",
    "numpy.subtract": "SUB", "numpy.multiply": "MUL", "numpy.divide": "DIV", "math.fsum": "ADD",
})  # fmt: skip
_UNARY = MappingProxyType({
    "neg": "NEG", "numpy.negative": "NEG", "abs": "ABS", "numpy.absolute": "ABS",
    "math.fabs": "ABS", "numpy.fabs": "ABS", "math.log": "LN", "numpy.log": "LN",
    "math.exp": "EXP", "numpy.exp": "EXP", "math.sqrt": "SQRT", "numpy.sqrt": "SQRT",
    "math.cos": "COS", "numpy.cos": "COS", "math.sin": "SIN", "numpy.sin": "SIN",
    "numpy.sign": "SGN",
})  # fmt: skip
_MOST_PATHS, _LONGEST = 1 << 10, 1 << 18
_MOST_BITS = 1 << 30  # of the numbers of one program: 128 megabytes
_CONSTANTS = frozenset({"int", "float", "fraction", "numpy.float64"})


def check_meaning(role: str, steps: Any, claim: Json, query: Any) -> None:
    """Reject unless the steps mean what the claim is about."""
    require(isinstance(steps, list) and bool(steps), "the code has no steps")
    graph = Graph()
    found = [graph.meaning(rows) for rows in steps]
    require(all(_paths(rows) <= _MOST_PATHS for rows in steps), "the code has too many paths")
    # elsewhere an infinity would be computed with, and is no name of what lies outside
    infinite = ("INF",) in graph.nodes
    require(role == "mechanism" or not infinite, "an infinity is no result of such code")
    if role == "query":
        require(isinstance(query, Mapping) and len(found) == 1, "the query has no proof")
        stated = [graph.program(query["claim"]["expression"])]
    elif role == "accepted":
        stated = [graph.program(claim["accepted"])]
    else:
        stated = [graph.program(rows) for rows in claim["programs"]]
    if role in ("mechanism", "sum", "noise"):
        drawn = uniform_range(claim["uniform"])
        found = [graph.clamped_values(graph.certain(root, drawn)) for root in found]
    if role in ("noise", "normal"):
        value = graph.node("VAR", "value")
        found = [graph.node("ADD", value, noise) for noise in found]
    if role == "planar noise":
        pair = zip(("x", "y"), found, strict=True)
        found = [graph.node("ADD", graph.node("VAR", name), noise) for name, noise in pair]
    types = [last_type(rows, role == "query") for rows in steps]
    sums = role == "sum" and any(row[0] == "math.fsum" for rows in steps for row in rows)
    if role == "mechanism" or sums:  # round fails beyond all floats, and math.fsum does
        far = max(abs(number(end)) for end in claim.get("values", claim["region"]))
        greatest = Fraction(2**970 * (2**53 - 1))
        largest = max(graph.size(root, far) for root in found)
        require(largest <= greatest, "a step of the code may be beyond all floats")
        # of these numpy makes objects, and np.clip a result of another type
        long = largest > 2**63 and any(map(_gives_whole_to_numpy, steps))
        require(not long, "numpy is given whole numbers that 64 bits may not hold")
    if role == "mechanism":
        require(len(set().union(*types)) == 1, "results of the code are of two types")
        _check_release(graph, found, stated, claim, steps)
        return
    if role == "planar mechanism":
        for rows, root, total, kinds in zip(steps, found, stated, types, strict=True):
            require(len(kinds) == 1 and not _gives_whole_to_numpy(rows), "results are of two types")
            _check_coordinate(graph, root, total, number(claim["cell"]), rows)
        return
    require(found == stated, "the steps of the code are not those of the proof")


def _paths(rows: Rows) -> int:
    """How many ways lead through the choices of a table, whose steps may be shared."""
    found: list[int] = []
    for name, *parts in rows:
        below = [found[part] for part in parts if type(part) is int]
        choice = name in ("case", "branch")
        found.append(sum(below[:2]) if choice else max(below, default=1))
    return found[-1]


def _check_coordinate(graph: Graph, root: int, total: int, cell: Fraction, rows: Rows) -> None:
    """Reject unless the code is cell * round(total / cell), of which a zero has one sign."""
    for found, step, unit, links in readings(graph.nodes, root):
        factor = unit
        for rule, *constants in links:
            if rule in ("MUL", "DIV"):
                factor = factor * constants[0] if rule == "MUL" else factor / constants[0]
        plain = all(rule in ("MUL", "DIV") for rule, *_ in links) and factor == cell
        if found == total and step == cell and plain:
            whole = [not kinds - _WHOLE for kinds, *_ in _types(rows, rounded=False)]
            check_zeros(links, zeros(rows, whole), (Fraction(-1), Fraction(1)))
            return
    raise Rejected("the steps of the code are not those of the proof")


def _check_release(
    graph: Graph, roots: list[int], stated: list[int], claim: Json, steps: Sequence[Rows]
) -> None:
    """Reject unless the code is P(round(sum / cell)), the same P for both signs, settled beyond."""
    require(len(roots) == len(stated), "the steps of the code are not those of the proof")
    cell, region = number(claim["cell"]), interval_of(claim["region"])
    fitting = [
        {
            reading[1:]
            for reading in readings(graph.nodes, root)
            if reading[1] == cell and graph.nested(reading[0]) == total
        }
        for root, total in zip(roots, stated, strict=True)
    ]
    common = set.intersection(*fitting)
    require(bool(common), "the steps of the code are not those of the proof")
    _, unit, links = min(common, key=repr)
    results = check_ends((0, cell, unit, links), region)
    types = [[kinds for kinds, *_ in _types(rows, rounded=False)] for rows in steps]
    check_one_function((0, cell, unit, links), region, steps, types)
    check_one_outside(steps)
    signs = frozenset[int]()
    for rows, kinds in zip(steps, types, strict=True):
        signs |= zeros(rows, [not one - _WHOLE for one in kinds])
    check_zeros(links, signs, results)


class Graph:
    """Expressions whose equal parts have one number."""

    def __init__(self) -> None:
        self.numbers: dict[tuple[Any, ...], int] = {}
        self.nodes: list[tuple[Any, ...]] = []
        self.bits = 0

    def node(self, *parts: Any) -> int:
        if parts not in self.numbers:
            exact = [part for part in parts if isinstance(part, Fraction)]
            self.bits += sum(x.numerator.bit_length() + x.denominator.bit_length() for x in exact)
            require(self.bits <= _MOST_BITS, "the numbers of a program are too long")
            self.numbers[parts] = len(self.nodes)
            self.nodes.append(parts)
        return self.numbers[parts]

    def program(self, rows: Rows) -> int:
        """A table of rules as the claim writes it."""
        found: list[int] = []
        for row in rows:
            match list(row):
                case ["VAR", str(name)]:
                    node = self.node("VAR", name)
                case ["CONST", value]:
                    node = self.node("CONST", number(value))
                case ["CASES", yes, no, str(name), str(relation), bound]:
                    two = (_at(found, yes), _at(found, no))
                    node = self.node("CASES", *two, name, relation, number(bound))
                case ["CLAMP", below, low, high]:
                    ends = [None if end is None else number(end) for end in (low, high)]
                    node = self.node("CLAMP", _at(found, below), *ends)
                case ["ROUND", below, step]:
                    node = self.node("ROUND", _at(found, below), number(step))
                case [str(rule), left, right] if rule in _DYADIC.values():
                    node = self.node(rule, _at(found, left), _at(found, right))
                case [str(rule), below] if rule in _UNARY.values():
                    node = self.node(rule, _at(found, below))
                case _:
                    raise Rejected("a program has a step that code cannot take")
            found.append(node)
        require(bool(found), "a program has no steps")
        return found[-1]

    def meaning(self, rows: Rows) -> int:
        """A table of operations as code performs them."""
        found: list[int] = []
        for row in rows:
            match list(row):
                case ["input", str(argument)]:
                    node = self.node("VAR", argument)
                case ["float" | "numpy.float64", "inf" | "-inf"]:
                    node = self.node("INF")
                case [str(name), str(text)] if name in _CONSTANTS:
                    node = self.node("CONST", Fraction(_constant(name, text)))
                case ["none"]:
                    node = self.node("none")
                case ["case", yes, no, str(argument), str(relation), bound]:
                    two = (_at(found, yes), _at(found, no))
                    require(relation in ("<", "<=", "=="), "a condition is unknown")
                    node = self.node("CASES", *two, argument, relation, number(bound))
                case ["branch", yes, no, below, str(relation), bound]:
                    require(relation in ("<", "<="), "a condition is unknown")
                    two = (_at(found, yes), _at(found, no))
                    asked = _at(found, below), number(bound)
                    clamped = self.clamp_by_cases(*asked, *two)
                    if clamped is None:
                        clamped = self.infinite_by_cases(*asked, *two, relation == "<=")
                    require(clamped is not None, "the code branches on what it computed")
                    node = clamped or 0
                case ["raise", str(name)]:
                    require(name in _RAISED, "a step of the code is unknown")
                    node = self.node("FAIL")
                case ["round_to", below, step]:
                    require(number(step) > 0, "a step is not above 0")
                    node = self.node("ROUND", _at(found, below), number(step))
                case [str(name), left, right] if name in _DYADIC:
                    node = self.node(_DYADIC[name], _at(found, left), _at(found, right))
                case [str(name), below] if name in _UNARY:
                    node = self.node(_UNARY[name], _at(found, below))
                case ["pos" | "numpy.positive", below]:
                    node = _at(found, below)
                case ["round" | "numpy.rint", below]:
                    node = self.node("ROUND", _at(found, below), Fraction(1))
                case [("clamp" | "numpy.clip") as name, below, low, high]:
                    ends = [self.constant(_at(found, end)) for end in (low, high)]
                    both = name != "clamp" or None not in ends
                    require(both, "a clamp without an end fails whenever it runs")
                    node = self.node("CLAMP", _at(found, below), *ends)
                case ["min" | "numpy.minimum", _, _, *_]:
                    below, constants = self.bounded([_at(found, part) for part in row[1:]])
                    node = self.node("CLAMP", below, None, min(constants))
                case ["max" | "numpy.maximum", _, _, *_]:
                    below, constants = self.bounded([_at(found, part) for part in row[1:]])
                    node = self.node("CLAMP", below, max(constants), None)
                case _:
                    raise Rejected("a step of the code is unknown")
            found.append(node)
        require(bool(found), "the code has no steps")
        return found[-1]

    def clamp_by_cases(self, part: int, bound: Fraction, yes: int, no: int) -> int | None:
        """One node for two: `yes` where a part is below the bound, `no` where it is above.

        If one is the other with the bound in the place of the part, the part is clamped: the code
        computes the same numbers, those that depend on constants alone included. A float must hold
        the bound, and the part must be used: else it could fail, and nobody would look.
        """
        require(_is_float(bound), "a bound is no float")
        end = self.node("CONST", bound)
        for kept, other, ends in ((yes, no, (None, bound)), (no, yes, (bound, None))):
            if part in self.uses(kept) and self.exchanged(kept, part, end) == other:
                return self.exchanged(kept, part, self.node("CLAMP", part, *ends))
        return None

    def infinite_by_cases(
        self, part: int, bound: Fraction, yes: int, no: int, closed: bool
    ) -> int | None:
        """One node for a result that is the part where it is inside a bound, else an infinity.

        All floats outside are one result: as if they were moved to the first of them. That one must
        not be a result inside: so inside is the part itself, or clamped by ends that leave it out.
        """
        infinite = ("INF",)
        if [self.nodes[yes], self.nodes[no]].count(infinite) != 1:
            return None
        above = self.nodes[no] == infinite
        kept = yes if above else no
        rule, *rest = self.nodes[part]
        size = rule == "ABS"
        if size and not above:
            return None
        first = float(bound)
        if closed == above:
            first = math.nextafter(first, math.inf if above else -math.inf)
        require(math.isfinite(first), "a bound is no float")
        end = Fraction(first)
        ends = (-end if size else None, end) if above else (end, None)
        inside, limits = kept, [None, None]
        if self.nodes[kept][0] == "CLAMP":
            _, inside, *limits = self.nodes[kept]
        if inside != (rest[0] if size else part):
            inside, limits = kept, [None, None]
            if inside != (rest[0] if size else part):
                return None
        for side, mine, theirs in zip((-1, 1), ends, limits, strict=True):
            across = limits[side < 0]  # the limit on the other side
            if mine is not None:
                kept_out = theirs is None or side * (theirs - mine) >= 0
                free = across is None or side * (mine - across) > 0
                if not (kept_out and free):
                    return None
        return self.node("CLAMP", kept, *ends)

    def uses(self, root: int) -> set[int]:
        used = {root}
        for index in range(root, -1, -1):
            if index in used:
                used.update(self.below(index))
        return used

    def below(self, index: int) -> list[int]:
        rule, *parts = self.nodes[index]
        count = {"VAR": 0, "CONST": 0, "none": 0, "FAIL": 0, "INF": 0, "CLAMP": 1, "ROUND": 1}
        places = 2 if rule == "CASES" else count.get(rule, len(parts))
        return parts[:places]

    def exchanged(self, root: int, part: int, by: int) -> int:
        """The root with another node for a part; steps of constants are worked out as floats."""
        found: dict[int, int] = {}
        for index in sorted(self.uses(root)):
            rule, *parts = self.nodes[index]
            under = [found[place] for place in self.below(index)]
            if index == part:
                found[index] = by
            elif under == self.below(index):
                found[index] = index
            else:
                value = self.worked_out(rule, under, parts[len(under) :])
                constant = None if value is None else self.node("CONST", value)
                rest = (*under, *parts[len(under) :])
                found[index] = self.node(rule, *rest) if constant is None else constant
        return found[root]

    def worked_out(self, rule: str, under: list[int], rest: list[Any]) -> Fraction | None:
        if rule == "CASES" or any(self.nodes[place][0] != "CONST" for place in under):
            return None
        x, *more = (self.nodes[place][1] for place in under)
        if rule == "CLAMP":
            low, high = rest
            x = x if low is None else max(x, low)
            x = x if high is None else min(x, high)
        elif rule == "ROUND":
            x = round(x / rest[0]) * rest[0]
        elif rule == "NEG":
            x = -x
        elif rule == "ABS":
            x = abs(x)
        elif rule in ARITHMETIC and not (rule == "DIV" and more[0] == 0):
            x = ARITHMETIC[rule](x, more[0])
        else:
            return None
        try:
            return Fraction(float(x))
        except OverflowError:
            return None

    def certain(self, root: int, drawn: Interval) -> int:
        """The root without failures that no draw leads to; what may fail is rejected."""
        rule, *parts = self.nodes[root]
        require(rule != "FAIL", "the code may fail, and that is seen")
        require(rule != "INF", "the code returns an infinity by its input, and that is seen")
        if rule != "CASES":
            return root
        yes, no, name, relation, bound = parts
        fails = [self.nodes[place] == ("FAIL",) for place in (yes, no)]
        if any(fails):
            require(name == "u", "the code fails by its value, and that is seen")
            if relation == "==":
                inside = drawn[0] <= bound <= drawn[1]
                require(not inside and not fails[1], "the code may fail, and that is seen")
                return self.certain(no, drawn)
            answers = {_COMPARED[relation](end, bound) for end in drawn}
            require(len(answers) == 1, "the code may fail, and that is seen")
            return self.certain(yes if answers.pop() else no, drawn)
        two = self.certain(yes, drawn), self.certain(no, drawn)
        return self.node("CASES", *two, name, relation, bound)

    def clamped_values(self, root: int) -> int:
        """The root with cases of the value as clamps of it, where they are."""
        rule, *parts = self.nodes[root]
        if rule != "CASES":
            return root
        yes, no, name, relation, bound = parts
        two = self.clamped_values(yes), self.clamped_values(no)
        if name == "value" and relation != "==" and _is_float(bound):
            found = self.clamp_by_cases(self.node("VAR", "value"), bound, *two)
            if found is not None:
                return found
        return self.node("CASES", *two, name, relation, bound)

    def size(self, root: int, far: Fraction) -> Fraction:
        """Twice what no step up to the root exceeds, for values up to `far` and any u.

        A logarithm of a float is below 746; twice, for the roundings.
        """
        sizes: list[Fraction] = []
        for rule, *parts in self.nodes[: root + 1]:
            match rule:
                case "CONST":
                    size = abs(parts[0])
                case "VAR":
                    size = Fraction(1) if parts[0] == "u" else far
                case "ADD" | "SUB":
                    size = sizes[parts[0]] + sizes[parts[1]]
                case "MUL":
                    size = sizes[parts[0]] * sizes[parts[1]]
                case "DIV":
                    by = self.constant(parts[1])
                    require(by not in (0, None), "a quotient by something that varies")
                    size = sizes[parts[0]] / abs(by or 1)
                case "LN":
                    size = Fraction(746)
                case "SGN" | "none" | "FAIL" | "INF":
                    size = Fraction(1)
                case "ROUND":
                    size = sizes[parts[0]] + parts[1]
                case "NEG" | "ABS":
                    size = sizes[parts[0]]
                case "CASES":
                    size = max(sizes[parts[0]], sizes[parts[1]])
                case "CLAMP":
                    size = max(abs(x) for x in (sizes[parts[0]], *parts[1:]) if x is not None)
                case _:
                    raise Rejected("a step of the code is not one of Laplace noise")
            short = max(size.numerator.bit_length(), size.denominator.bit_length()) <= _LONGEST
            require(short, "a step of the code may be beyond all floats")
            sizes.append(size)
        return 2 * max(sizes)

    def bounded(self, operands: list[int]) -> tuple[int, list[Fraction]]:
        """The one operand that is computed, and the constants beside it."""
        constants = [self.nodes[k][1] for k in operands if self.nodes[k][0] == "CONST"]
        rest = [k for k in operands if self.nodes[k][0] != "CONST"]
        require(len(rest) == 1 and bool(constants), "the least or greatest of two computed values")
        return rest[0], constants

    def constant(self, index: int) -> Fraction | None:
        rule, *rest = self.nodes[index]
        require(rule in ("CONST", "none"), "an end of a clamp or a divisor is not a constant")
        return rest[0] if rest else None

    def nested(self, total: Any) -> int:
        """The number of a sum that is read with its cases."""
        if isinstance(total, int):
            return total
        rule, yes, no, *condition = total
        return self.node(rule, self.nested(yes), self.nested(no), *condition)


_Exact: TypeAlias = tuple[frozenset[str], list[Fraction] | None, bool]
"""Names of types; the whole numbers and fractions it can be, any if None; if all are floats too."""

_WHOLE = frozenset({"int", "fraction"})
_MANY, _LONG = 16, 1 << 14


def last_type(rows: Rows, rounded: bool) -> frozenset[str]:
    """The types that the last step can have.

    Rejects functions of numpy on whole numbers alone, or on fractions. If `rounded`, also every
    step of whole numbers and fractions alone that uses one which need not be a float: if none does,
    what such steps give is rounded as the float that it meets needs, once, and never before.
    """
    return _types(rows, rounded=rounded)[-1][0]


def _types(rows: Rows, *, rounded: bool) -> list[_Exact]:
    found: list[_Exact] = []
    for name, *parts in rows:
        used = [found[part] for part in parts if type(part) is int]
        kinds = [one[0] for one in used if one[0] != {"none"}]
        if name.startswith("numpy.") and kinds:
            whole = all("int" in one for one in kinds) or any("fraction" in one for one in kinds)
            require(not whole, f"{name} of whole numbers wraps around, or is of fractions")
        if name == "math.fsum":
            require(not any(one & _WHOLE for one in kinds), "math.fsum of whole numbers")
        if rounded and name in ("add", "sub", "mul", "div"):
            unrounded = all(one & _WHOLE for one in kinds) and not all(one[2] for one in used)
            require(not unrounded, "a step of exact numbers is not rounded as floats are")
        found.append(_type(name, parts, used))
    return found


def _gives_whole_to_numpy(rows: Rows) -> bool:
    types = _types(rows, rounded=False)
    return any(
        "int" in types[part][0]
        for name, *parts in rows
        for part in parts
        if name.startswith("numpy.") and type(part) is int
    )


def _type(name: str, parts: list[Any], used: list[_Exact]) -> _Exact:
    used = used[:2] if name == "branch" else used
    kinds = frozenset(kind for one in used for kind in one[0])
    every = all(one[2] for one in used)
    exact = [one[1] for one in used]
    known = None if None in exact else [x for numbers in exact for x in numbers or ()]
    match name:
        case "int" | "fraction":
            return _numbers(frozenset({name}), [Fraction(_constant(name, parts[0]))])
        case "raise":
            return frozenset(), [], True
        case "case" | "branch" | "min" | "max" | "clamp":
            return (kinds, None, every) if known is None else _numbers(kinds, known)
        case "neg" | "pos" | "abs":
            turned = None if known is None else [Fraction(_RUN[name](x)) for x in known]
            return (kinds, None, every) if turned is None else _numbers(kinds, turned)
        case "round":
            whole = frozenset({"int"})
            if known is None or kinds - _WHOLE:
                return whole, None, every
            return _numbers(whole, [Fraction(round(x)) for x in known])
        case "add" | "sub" | "mul" | "div":
            left, right = used
            made = frozenset().union(*(_made(name, a, b) for a in left[0] for b in right[0]))
            if not made & _WHOLE:
                return made, [], True
            if left[1] is None or right[1] is None or (name == "div" and 0 in right[1]):
                return made, None, False
            return _numbers(made, [_RUN[name](x, y) for x in left[1] for y in right[1]])
        case "none" | "float" | "numpy.float64":
            return frozenset({name}), [], True
    return frozenset({"numpy.float64" if name.startswith("numpy.") else "float"}), [], True


def _made(name: str, left: str, right: str) -> set[str]:
    """The type of a sum, difference, product or quotient of two types."""
    both = {left, right}
    if "numpy.float64" in both:  # with a fraction it depends on the order
        return {"numpy.float64", "float"} if "fraction" in both else {"numpy.float64"}
    if "float" in both or (name == "div" and both == {"int"}):
        return {"float"}
    return {"fraction"} if "fraction" in both else {"int"}


def _numbers(kinds: frozenset[str], numbers: list[Fraction]) -> _Exact:
    distinct = sorted(set(numbers))
    if any(max(x.numerator.bit_length(), x.denominator.bit_length()) > _LONG for x in distinct):
        return kinds, None, False
    fits = all(map(_is_float, distinct))
    return kinds, distinct if len(distinct) <= _MANY else None, fits


def _is_float(x: Fraction) -> bool:
    try:
        return Fraction(float(x)) == x
    except OverflowError:
        return False


def _at(found: list[int], index: object) -> int:
    require(type(index) is int and 0 <= index < len(found), "a step uses one that is not before it")
    assert isinstance(index, int)
    return found[index]


_RAISED: Mapping[str, type[Exception]] = MappingProxyType({
    kind.__name__: kind
    for kind in (
        ArithmeticError, AssertionError, IndexError, KeyError, NotImplementedError, OverflowError,
        RuntimeError, TypeError, ValueError, ZeroDivisionError,
    )
})  # fmt: skip
_COMPARED = MappingProxyType({"<": operator.lt, "<=": operator.le, "==": operator.eq})
_fraction = lru_cache(1024)(Fraction)  # the same text at a thousand points


@lru_cache(1024)
def _constant(name: str, text: str) -> Any:
    if name == "int":
        require(str(int(text)) == text, "a number is not written as it should be")
        return int(text)
    if name == "fraction":
        return number(text)
    value = float.fromhex(text)
    require(value.hex() == text and value == value, "a float is not in hexadecimal")
    return importlib.import_module("numpy").float64(value) if name != "float" else value


def conditions(rows: Rows) -> list[tuple[str, Fraction]]:
    """The inputs that the steps compare with a number, and the numbers."""
    return [(row[3], number(row[5])) for row in rows if row[0] == "case"]


_RUN: Mapping[str, Callable[..., Any]] = MappingProxyType({
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv,
    "neg": operator.neg, "pos": operator.pos, "abs": abs, "round": round, "min": min, "max": max,
    "clamp": lambda x, low, high: min(max(x, low), high),
    # as they are now: a module that is certified may put something else in their place
    "math.log": math.log, "math.exp": math.exp, "math.sqrt": math.sqrt, "math.fabs": math.fabs,
    "math.cos": math.cos, "math.sin": math.sin,
    "math.fsum": lambda *numbers, run=math.fsum: run(numbers),
})  # fmt: skip


def _of_numpy(name: str) -> Callable[..., Any]:
    """The function of numpy that has this name, not one that somebody put in its place."""
    library, _, attribute = name.rpartition(".")
    require(library == "numpy", "a step of the code is unknown")
    numpy = importlib.import_module("numpy")
    found: Callable[..., Any] = getattr(numpy, attribute)
    own = attribute == "clip" or isinstance(found, numpy.ufunc)
    require(own and found.__name__ == attribute, f"{name} is not numpy's")
    return found


def run_steps(rows: Rows, inputs: Mapping[str, Any]) -> Any:
    """What the steps give: only those that the answers to the conditions lead to are run."""
    needed, todo = set(), [len(rows) - 1]
    taken: dict[int, int] = {}
    while todo:
        index = todo.pop()
        if index not in needed:
            needed.add(index)
            below = _below(rows, index, inputs)
            if rows[index][0] in ("case", "branch"):
                taken[index] = below[0]
            todo.extend(below)
    known: dict[int, Any] = {}
    for index in sorted(needed):
        name, *parts = rows[index]
        match name:
            case "input":
                known[index] = inputs[parts[0]]
            case "case" | "branch":
                known[index] = known[taken[index]]
            case "raise":
                raise _RAISED[parts[0]]
            case "none":
                known[index] = None
            case "round_to":
                x, grid = known[parts[0]], _fraction(parts[1])
                if not math.isfinite(x):
                    raise ValueError("no number")
                known[index] = float(round(Fraction(x) / grid) * grid)
            case _ if name in _CONSTANTS:
                known[index] = _constant(name, parts[0])
            case _:
                run = _RUN[name] if name in _RUN else _of_numpy(name)
                known[index] = run(*(known[part] for part in parts))
    return known[len(rows) - 1]


def _below(rows: Rows, index: int, inputs: Json) -> list[int]:
    row = rows[index]
    if row[0] == "case":
        _, yes, no, name, relation, bound = row
        holds = _COMPARED[relation](Fraction(inputs[name]), _fraction(bound))
        return [yes if holds else no]
    if row[0] == "branch":  # what is compared comes first: it may fail
        _, yes, no, place, relation, bound = row
        x = run_steps(rows[: place + 1], inputs)
        holds = _COMPARED[relation](float(x) if isinstance(x, float) else x, _fraction(bound))
        return [yes if holds else no]
    return [part for part in row[1:] if type(part) is int]


def ended(run: Callable[[], Any]) -> tuple[str, Any]:
    """How a call ends: the type and the bits of its result, or the name of its exception."""
    try:
        result = run()
    except Exception as failure:  # whatever somebody's code raises
        kinds = [kind.__name__ for kind in type(failure).__mro__ if kind.__module__ == "builtins"]
        return "raises", kinds[0]
    bits = struct.pack(">d", result) if isinstance(result, float) else result
    return type(result).__name__, bits
