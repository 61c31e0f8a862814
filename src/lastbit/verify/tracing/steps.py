"""What traced code does, operation by operation: the very functions it calls, in its own types.

An expression says what the code means; its steps say what it runs: `math.log` or `numpy.log`,
`round`, which gives an int, or `numpy.rint`, which keeps the sign of zero, `min` with its operands
in the order written. Replaying steps on floats performs the calls that the code performs.

An expression means that every operation is rounded once, to a float. `typed` says where steps are
not: Python's whole numbers and fractions are exact, and numpy's whole numbers wrap around.
"""

from __future__ import annotations

import math
import operator
import struct
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any, TypeAlias

import numpy as np

from lastbit.errors import Untraceable
from lastbit.verify.error_bounds.formats import BINARY64
from lastbit.verify.language.expressions import Condition, in_order

Rows: TypeAlias = list[list[Any]]
Outcome: TypeAlias = tuple[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """An operation by name, the steps that it works on, and what else it needs."""

    name: str
    below: tuple[Step, ...] = ()
    rest: tuple[Any, ...] = ()


def constant_step(value: Any) -> Step:
    """A number that the code holds, with its type."""
    if value is None:
        return Step("none")
    if isinstance(value, bool | int | np.integer):
        return Step("int", rest=(str(int(value)),))
    if isinstance(value, np.float64):
        return Step("numpy.float64", rest=(float(value).hex(),))
    if isinstance(value, float):
        return Step("float", rest=(float(value).hex(),))
    return Step("fraction", rest=(str(Fraction(value)),))


def rows_of(step: Step) -> Rows:
    """Steps as plain JSON in the order of evaluation, equal ones once: a name, places, the rest."""
    listed = in_order(step, lambda node: node.below, lambda node: (node.name, node.rest))
    return [[node.name, *places, *node.rest] for node, places in listed]


def used_by(step: Step) -> dict[int, Step]:
    """A step and all that it uses, by identity."""
    found, todo = {id(step): step}, [step]
    while todo:
        new = [one for one in todo.pop().below if id(one) not in found]
        found |= {id(one): one for one in new}
        todo += new
    return found


def failing_on(made: Sequence[Step], results: Sequence[Step]) -> set[str]:
    """The inputs for which a step may fail that the results do not use.

    Theorem  a division, a rounding and a function of `math` fail for some numbers, and a failure is
             seen. What the results use is judged with them; of the rest nothing is known
    """
    used = {key: step for result in results for key, step in used_by(result).items()}
    dead = [one for one in made if id(one) not in used and one.name.startswith(_FAILING)]
    below = [one for top in dead for one in used_by(top).values()]
    return {one.rest[0] for one in below if one.name == "input"}


ERRORS = frozenset(
    {ArithmeticError, AssertionError, IndexError, KeyError, NotImplementedError, OverflowError}
    | {RuntimeError, TypeError, ValueError, ZeroDivisionError}
)
"""What code may raise."""

_RAISED = types.MappingProxyType({kind.__name__: kind for kind in ERRORS})
_FAILING = ("div", "round", "math.")
_RUN: Mapping[str, Callable[..., Any]] = types.MappingProxyType({
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv,
    "neg": operator.neg, "pos": operator.pos, "abs": abs, "round": round, "min": min, "max": max,
    "clamp": lambda x, low, high: min(max(x, low), high),
})  # fmt: skip


def replayed(rows: Sequence[Sequence[Any]], inputs: Mapping[str, Any]) -> Any:
    """What the steps give for these inputs, each step that is needed run once, in order."""
    used = {len(rows) - 1}
    taken: dict[int, int] = {}
    for index in range(len(rows) - 1, -1, -1):
        if index in used:
            row = rows[index]
            if row[0] in ("case", "branch"):
                taken[index] = row[1] if _holds(rows, row, inputs) else row[2]
                used.add(taken[index])
            else:
                used.update(part for part in row[1:] if type(part) is int)
    found: dict[int, Any] = {}
    for index in sorted(used):
        name, *parts = rows[index]
        match name:
            case "input":
                found[index] = inputs[parts[0]]
            case "case" | "branch":
                found[index] = found[taken[index]]
            case "raise":
                raise _RAISED[parts[0]]
            case "int":
                found[index] = int(parts[0])
            case "float":
                found[index] = float.fromhex(parts[0])
            case "numpy.float64":
                found[index] = np.float64(float.fromhex(parts[0]))
            case "fraction":
                found[index] = Fraction(parts[0])
            case "none":
                found[index] = None
            case "round_to":
                x, grid = found[parts[0]], Fraction(parts[1])
                if not math.isfinite(x):
                    raise ValueError("no number")  # as `round_to` does
                found[index] = float(round(Fraction(x) / grid) * grid)
            case "math.fsum":
                found[index] = math.fsum(found[place] for place in parts)
            case _:
                library, _, function = name.rpartition(".")
                run = getattr({"math": math, "numpy": np}.get(library), function, _RUN.get(name))
                found[index] = run(*(found[place] for place in parts))  # type: ignore[misc]
    return found[len(rows) - 1]


def _holds(rows: Sequence[Sequence[Any]], row: Sequence[Any], inputs: Mapping[str, Any]) -> bool:
    """Whether the condition of a case, on an input, or of a branch, on a computed number, holds."""
    of, relation, bound = row[3:]
    if row[0] == "branch":
        return compared(replayed(rows[: of + 1], inputs), relation, Fraction(bound))
    return Condition(of, relation, Fraction(bound)).holds(Fraction(inputs[of]))


def compared(x: Any, relation: str, bound: Fraction) -> bool:
    """Whether a number is below a bound, exactly."""
    number = float(x) if isinstance(x, float) else x
    return bool(number < bound if relation == "<" else number <= bound)


def outcome(run: Callable[[], Any]) -> Outcome:
    """How a call ends, so that two can be compared to the last bit: its result or its exception."""
    try:
        result = run()
    except Exception as failure:  # whatever the code raises, at these arguments
        known = next(kind for kind in type(failure).__mro__ if kind.__module__ == "builtins")
        return "raises", known.__name__
    if isinstance(result, float):
        return type(result).__name__, struct.pack("<d", result)
    return type(result).__name__, result


_EXACT = frozenset({"int", "fraction"})
_MOST_NUMBERS = 16


@dataclass(frozen=True, slots=True)
class Typed:
    """What is known of a step's type: the names of the types it can have, and of its exact numbers.

    `numbers` are those it can be where it is a whole number or a fraction: these, or any if None.
    `loose`: one of them may be none that a float holds.
    """

    kinds: frozenset[str]
    numbers: frozenset[Fraction] | None = frozenset()
    loose: bool = False

    @property
    def exact(self) -> bool:
        return bool(self.kinds & _EXACT)


def typed(rows: Rows, place: str, *, rounded: bool) -> list[Typed]:
    """The types of all steps; refused where numpy computes with whole numbers.

    Law      numpy holds whole numbers in 64 bits, which wrap around: np.multiply(4, 2**61) is
             -2**63. Python's are exact, and become floats only where they meet one
    Theorem  if `rounded` and nothing is refused, every step is its operation on floats, rounded
             once. Proof: let a step of whole numbers or fractions alone have operands that floats
             hold. Whatever float it meets next, it is rounded first, and that is the rounding of
             the step; and it meets no other exact number, or it is refused
    Differs  refuses right code: round(x) + 1 + 1 is exact for small x, which the steps do not say
    Checked  tests/verify/test_typed_code.py; the checker's own are `checker/steps.py`
    """
    found: list[Typed] = []
    for name, *parts in rows:
        below = [found[part] for part in parts if type(part) is int]
        if name.startswith("numpy.") and below:
            numbers = [one for one in below if one.kinds != {"none"}]
            if all("int" in one.kinds for one in numbers):
                raise Untraceable(
                    f"{place} calls {name} of whole numbers, which wrap around in numpy; "
                    "write 1.0 * round(x), or leave numpy out there"
                )
            if any("fraction" in one.kinds for one in numbers):
                raise Untraceable(f"{place} calls {name} of a fraction; write a float")
        if name == "math.fsum" and any(one.exact for one in below):
            raise Untraceable(f"{place} calls math.fsum of a whole number; write 1.0 * round(x)")
        loose = [one for one in below if one.exact and one.loose]
        if rounded and name in _ARITHMETIC and loose and all(one.exact for one in below):
            raise Untraceable(
                f"{place} computes with exact whole numbers or fractions, which Python does not "
                f"round; write 1.0 * round(x), and floats for fractions"
            )
        found.append(_typed(name, parts, below))
    return found


def passes_whole_to_numpy(rows: Rows, types: Sequence[Typed]) -> bool:
    """Whether a function of numpy is given what may be a whole number."""
    return any(
        "int" in types[part].kinds
        for name, *parts in rows
        for part in parts
        if name.startswith("numpy.") and type(part) is int
    )


def _typed(name: str, parts: Sequence[Any], below: list[Typed]) -> Typed:
    match name:
        case "int" | "fraction":
            return _of_numbers({name}, {Fraction(parts[0])})
        case "float" | "numpy.float64" | "none":
            return Typed(frozenset({name}))
        case "raise":
            return Typed(frozenset())
        case "min" | "max" | "clamp" | "case" | "branch":
            below = below[:2] if name == "branch" else below
            kinds = frozenset[str]().union(*(one.kinds for one in below))
            if any(one.numbers is None for one in below):
                return Typed(kinds, None, any(one.loose for one in below))
            return _of_numbers(kinds, {x for one in below for x in one.numbers or ()})
        case "neg" | "pos" | "abs" | "round":
            (one,) = below
            kinds = frozenset({"int"}) if name == "round" else one.kinds
            if one.numbers is None or (name == "round" and one.kinds - _EXACT):
                return Typed(kinds, None, one.loose)
            return _of_numbers(kinds, {Fraction(_RUN[name](x)) for x in one.numbers})
        case _ if name in _ARITHMETIC:
            return _combined(name, *below)
    return Typed(frozenset({"numpy.float64" if name.startswith("numpy.") else "float"}))


_ARITHMETIC = ("add", "sub", "mul", "div")


def _combined(name: str, left: Typed, right: Typed) -> Typed:
    kinds: set[str] = set()
    for pair in product(left.kinds, right.kinds):
        if _EXACT.issuperset(pair):
            kinds.add("fraction" if "fraction" in pair else "float" if name == "div" else "int")
        else:  # a float of numpy and a fraction give either float, by their order
            kinds.add("numpy.float64" if "numpy.float64" in pair else "float")
            kinds |= {"float"} & {"float" if "fraction" in pair else ""}
    if not kinds & _EXACT:
        return Typed(frozenset(kinds))
    if left.numbers is None or right.numbers is None or (name == "div" and 0 in right.numbers):
        return Typed(frozenset(kinds), None, loose=True)
    pairs = product(left.numbers, right.numbers)
    return _of_numbers(kinds, {_RUN[name](x, y) for x, y in pairs})


def _of_numbers(kinds: set[str] | frozenset[str], numbers: set[Fraction]) -> Typed:
    loose = not all(map(BINARY64.holds, numbers))
    few = len(numbers) <= _MOST_NUMBERS
    return Typed(frozenset(kinds), frozenset(numbers) if few else None, loose)
