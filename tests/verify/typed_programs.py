"""Random code in Python's numbers: floats, whole numbers, fractions and numpy's, mixed.

Programs are text, so that each is a function of its own. `query` computes a number of x; its real
value is known to any precision. `mechanism` adds Laplace noise, rounds and clamps, and all that it
does for all uniforms of a small grid can be seen: the type, the bits, or the exception.
"""

from __future__ import annotations

import math
import random
import types
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np

from lastbit.verify.running.uniforms import Grid
from lastbit.verify.tracing.markers import clamp, round_to

_CONSTANTS = (
    "1", "2", "3", "-1", "10", "2**53 + 1", "3**30", "2**61", "10**16 + 1", "0.1", "1.0", "0.5",
    "3.0", "-0.25", "1e16", "Fraction(1, 3)", "Fraction(1, 10)", "np.float64(0.1)",
)  # fmt: skip
_STEPS = (
    *("{a} + {b}", "{a} - {b}", "{a} * {b}", "{a} / {b}", "{b} - {a}", "{a} - {c}", "{a} * {c}")
    * 3,
    *("{b} + {c}", "{c} * {b}", "{b} - {c}") * 2,
    *("round({a})", "round({b})") * 4,
    *("np.add({a}, {c})", "np.multiply({a}, {c})", "np.subtract({a}, {b})", "np.negative({a})"),
    *(
        "-{a}",
        "abs({a})",
        "math.fabs({a})",
        "np.rint({a})",
        "np.absolute({a})",
        "np.sqrt(abs({a}))",
    ),
    *("min({a}, {c})", "max({c}, {a})", "clamp({a}, -3, 10**17)", "np.clip({a}, -5, 5)"),
    *("round_to({a}, 0.25)", "np.minimum({a}, {c})", "({a} if x < 3 else {b})"),
)


def function(text: str) -> types.FunctionType:
    scope: dict[str, Any] = dict(
        math=math, np=np, Fraction=Fraction, clamp=clamp, round_to=round_to
    )
    exec(compile(text, "<generated>", "exec"), scope)  # noqa: S102 - a function for each text
    return scope["f"]


def query(random_: random.Random) -> str:
    """The text of a function of x, of two to seven steps."""
    names, lines = ["x"], []
    for k in range(random_.randint(2, 7)):
        a, b = names[-1] if random_.random() < 0.5 else random_.choice(names), random_.choice(names)
        step = random_.choice(_STEPS).format(a=a, b=b, c=random_.choice(_CONSTANTS))
        lines.append(f"    t{k} = {step}\n")
        names.append(f"t{k}")
    return f"def f(x):\n{''.join(lines)}    return {names[-1]}\n"


def mechanism(random_: random.Random) -> tuple[str, bool]:
    """The text of a function that adds noise of scale 2, and whether it takes a sign."""

    def written(number: str) -> str:
        whole = [number.removesuffix(".0")] if number.endswith(".0") else []
        return random_.choice([number, number, f"np.float64({number})", *whole])

    log = random_.choice(["math.log", "np.log"])
    value = random_.choice(
        ["value", f"max({written('-4.0')}, value)", "(2 * value - value)", "(value + 0)"]
    )
    signed = random_.random() < 0.5
    noise, scale = f"sign * ({written('2.0')} * {log}(u))", written("2.0")
    if not signed:
        noise = f"({scale} * {log}(2 * u) if u < 0.5 else -{scale} * {log}(2 - 2 * u))"
    cell, way = written("2.0"), random_.choice(["round", "np.rint", "1.0 * round"])
    core = random_.choice(
        [
            f"{cell} * {way}(({value} + {noise}) / {cell})",
            f"{way}(({value} + {noise}) * 0.5) / 0.5",
            f"round_to({noise} + {value}, {cell})",
            f"np.multiply({cell}, {way}(({value} + {noise}) / {cell}))",
        ]
    ) + random_.choice(["", " + 0.0", " + 0"])
    low, high = written("-4.0"), written("4.0")
    result = random_.choice(
        [
            f"min(max({core}, {low}), {high})",
            f"np.clip({core}, {low}, {high})",
            f"clamp({core}, {low}, {high})",
            f"np.minimum(np.maximum({core}, {low}), {high})",
        ]
    ) + random_.choice(["", "", " + 0.0"])
    arguments = "value, u, sign" if signed else "value, u"
    return f"def f({arguments}):\n    return {result}\n", signed


def outcomes(
    mechanism: types.FunctionType, value: float, uniform: Grid, *, signed: bool
) -> Counter[str]:
    """How often each end of a call is seen, over all uniforms: type and bits, or exception."""
    found: Counter[str] = Counter()
    for index in range(uniform.size):
        for sign in ((1.0,), (-1.0,)) if signed else ((),):
            try:
                result = mechanism(value, uniform.point(index), *sign)
            except (ArithmeticError, ValueError) as failure:
                found[type(failure).__name__] += 1
            else:
                found[f"{type(result).__name__} {float(result).hex()}"] += 1
    return found
