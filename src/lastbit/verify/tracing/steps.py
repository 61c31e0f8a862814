"""What traced code does, operation by operation: the very functions it calls, in its own types.

An expression says what the code means; its steps say what it runs: `math.log` or `numpy.log`,
`round`, which gives an int, or `numpy.rint`, which keeps the sign of zero, `min` with its operands
in the order written. Replaying steps on floats performs the calls that the code performs.
"""

from __future__ import annotations

import math
import operator
import struct
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from lastbit.verify.language.expressions import Condition

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


def case_step(condition: Condition, then: Step, otherwise: Step) -> Step:
    """One step where a condition on an input holds, another where it does not."""
    rest = (condition.name, condition.relation, str(condition.bound))
    return Step("case", (then, otherwise), rest)


def rows_of(step: Step) -> Rows:
    """Steps as plain JSON in the order of evaluation, equal ones once: a name, places, the rest."""
    rows: Rows = []
    seen: dict[int, int] = {}
    equal: dict[tuple[Any, ...], int] = {}
    stack: list[tuple[Step, bool]] = [(step, False)]
    while stack:
        node, ready = stack.pop()
        if id(node) in seen:
            continue
        if not ready:
            stack.append((node, True))
            stack.extend((below, False) for below in reversed(node.below))
            continue
        places = tuple(seen[id(below)] for below in node.below)
        key = (node.name, places, node.rest)
        if key not in equal:
            equal[key] = len(rows)
            rows.append([node.name, *places, *node.rest])
        seen[id(node)] = equal[key]
    return rows


_RUN: Mapping[str, Callable[..., Any]] = types.MappingProxyType({
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv,
    "neg": operator.neg, "pos": operator.pos, "abs": abs, "round": round, "min": min, "max": max,
    "clamp": lambda x, low, high: min(max(x, low), high),
})  # fmt: skip


def replayed(rows: Sequence[Sequence[Any]], inputs: Mapping[str, Any]) -> Any:
    """What the steps give for these inputs, each step that is needed run once, in order."""
    used = {len(rows) - 1}
    for index in range(len(rows) - 1, -1, -1):
        if index in used:
            row = rows[index]
            if row[0] == "case":
                used.add(row[1] if _holds(row, inputs) else row[2])
            else:
                used.update(part for part in row[1:] if type(part) is int)
    found: dict[int, Any] = {}
    for index in sorted(used):
        name, *parts = rows[index]
        match name:
            case "input":
                found[index] = inputs[parts[0]]
            case "case":
                found[index] = found[parts[0] if _holds(rows[index], inputs) else parts[1]]
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
            case _:
                library, _, function = name.rpartition(".")
                run = getattr({"math": math, "numpy": np}.get(library), function, _RUN.get(name))
                found[index] = run(*(found[place] for place in parts))  # type: ignore[misc]
    return found[len(rows) - 1]


def _holds(row: Sequence[Any], inputs: Mapping[str, Any]) -> bool:
    name, relation, bound = row[3:]
    condition = Condition(name, relation, Fraction(bound))
    return condition.holds(Fraction(inputs[name]))


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
