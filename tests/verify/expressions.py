"""Random expressions, boxes and inputs for the tests of the error semantics."""

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from lastbit.verify.error_bounds.formats import BINARY16, BINARY32, BINARY64, Binary, Fixed, Format
from lastbit.verify.language import evaluation
from lastbit.verify.language.expressions import (
    Absolute,
    Add,
    Clamp,
    Condition,
    Constant,
    Cos,
    Divide,
    Exp,
    Expression,
    Ln,
    Multiply,
    Negate,
    Piecewise,
    RoundTo,
    Sign,
    Sqrt,
    Subtract,
    Variable,
)
from lastbit.verify.rounding import followed_code

FORMATS = (BINARY16, BINARY32, BINARY64, Binary(4, -6, 7), Fixed(6, 8), Fixed(20, 20))
CONSTANTS = [
    Fraction(c)
    for c in ("0", "1", "-1", "2", "1/2", "-1/4", "1/3", "-0.1", "3", "10", "-7/2", "1/1000")
]
X, Y = Variable("x"), Variable("y")
PAIRS: tuple[Any, ...] = (Add, Subtract, Multiply, Divide, Add, Multiply)
SINGLES: tuple[Any, ...] = (
    Negate,
    Ln,
    Exp,
    Sqrt,
    Absolute,
    Sign,
    lambda a: Multiply(a, a),
    lambda a: Sqrt(Absolute(a)),
    lambda a: Exp(Negate(Absolute(a))),
    lambda a: Clamp(a, Fraction(-3), Fraction(1, 3)),
    lambda a: Clamp(a, None, Fraction(2)),
    lambda a: RoundTo(a, Fraction(1, 4)),
    lambda a: RoundTo(a, Fraction(1, 10)),
)
CONDITIONS = (("<", Fraction(0)), ("<=", Fraction(1, 2)), ("==", Fraction(-1)), ("<", Fraction(1)))

IN_FLOATS = {
    **evaluation._ARITHMETIC,
    Ln: math.log,
    Exp: math.exp,
    Sqrt: math.sqrt,
    Cos: math.cos,
}


def traced(code: Any, *data: str) -> tuple[Expression, ...]:
    """Code of these inputs as one expression, or as one for each value of its input `sign`."""
    return tuple(one.expression for one in followed_code(code, *data))


def float_value(expression: Any, values: Mapping[str, float]) -> float:
    """The value in Python's own floats, with its math library: what running code would give."""

    def run(node: Any, below: list[float]) -> float:
        return float(IN_FLOATS[type(node)](*below))

    parts = lambda _, x: float(x), lambda x, jump: float(jump(x)), max, min, run
    found: float = evaluation._walk(expression, values, evaluation._Numbers(*parts))
    return found


def built(program: list[tuple[int, int, int]]) -> Any:
    """The last of a list of steps, each on earlier ones: 0, 1 mean the latest, and so on."""
    nodes: list[Any] = [*map(Constant, CONSTANTS), Y, X]
    for kind, i, j in program:
        a, b = nodes[-1 - i % len(nodes)], nodes[-1 - j % len(nodes)]
        if kind < 2 * len(PAIRS):
            nodes.append(PAIRS[kind // 2](a, b))
        elif kind < 2 * len(PAIRS) + len(SINGLES):
            nodes.append(SINGLES[kind - 2 * len(PAIRS)](a))
        else:
            relation, bound = CONDITIONS[kind % len(CONDITIONS)]
            nodes.append(Piecewise(Condition("x", relation, bound), a, b))
    return nodes[-1]


KINDS = 2 * len(PAIRS) + len(SINGLES) + 2
STEP = st.tuples(st.integers(0, KINDS - 1), st.integers(0, 20), st.integers(0, 20))
EXPRESSIONS = st.lists(STEP, min_size=1, max_size=9).map(built)
PARTS = st.tuples(st.integers(0, 5), st.integers(-(2**12), 2**12))


def number_of(part: tuple[int, int], format: Format) -> Fraction:
    """A number of a format: ordinary, near the least or near the largest."""
    kind, k = part
    sizes = (
        Fraction(k, 1000),
        Fraction(k, 64),
        Fraction(k, 2**12),
        k % 9 * format.least,
        k % 3 * format.least_normal if isinstance(format, Binary) else Fraction(k % 5),
        format.largest / (1 + k % 7),
    )
    return format.rounded(sizes[kind] if k >= 0 else -sizes[kind])


CASES = st.tuples(EXPRESSIONS, st.lists(PARTS, min_size=6, max_size=6), st.integers(0, 8))


def placed(case, format: Format):
    """An expression, the ranges of x and y, and inputs of the format inside them."""
    expression, parts, choice = case
    numbers = [number_of(part, format) for part in parts]
    ranges, inputs = {}, {}
    for name, three, pick in (("x", numbers[:3], choice % 3), ("y", numbers[3:], choice // 3)):
        three.sort()
        ranges[name] = (three[0], three[2])
        inputs[name] = three[pick]
    return expression, ranges, inputs
