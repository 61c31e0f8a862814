# ruff: noqa: PLW0108 - a lambda around a library function is what is being traced
"""Tracing: the expression computes what the code computes, and the rest is refused by line."""

import itertools
import math
from fractions import Fraction
from math import exp, log
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lastbit.errors import InvalidParameter, Untraceable, WrongType
from lastbit.verify.language.expressions import (
    Absolute,
    Add,
    Clamp,
    Constant,
    Exp,
    Ln,
    Multiply,
    Piecewise,
    RoundTo,
    Sign,
    Sqrt,
    Variable,
    names,
    table,
)
from lastbit.verify.tracing.markers import clamp, round_to
from lastbit.verify.tracing.trace import trace
from tests.evidence import late
from tests.verify.expressions import float_value
from tests.verify.roundoff_suite import SUITE

SCALE = 0.7
COUNTER = itertools.count()
X = Variable("x")


def helper(x):
    return log(x) / SCALE


def by_helper(x, y=2.0):
    return y * helper(abs(x) + 1.0)


def laplace(u):
    return -2.0 * np.sign(u - 0.5) * np.log(1 - 2 * np.abs(u - 0.5))


def branching(x):
    if x < -1:
        return -x
    if x <= -1:
        return 10.0
    return x * x if x != 2 else 0.5


def snapped(x):
    return clamp(0.25 * round(x / 0.25), -3.0, 3.0)


def imported_inside(x):
    import math as maths

    return maths.sqrt(maths.fabs(x))


def nested(x):
    def inner(z):
        return z + x

    return inner(exp(-x * x)) - max(-1.0, min(x, 1.0))


def with_numpy(x):
    return np.clip(np.rint(x) + np.float64(1.5) * x, -4, 4) - np.minimum(x, 2) + np.sqrt(x * x)


def counted(x):
    total = 0.0
    for k in range(5):
        total = total + x / (k + 1)
    return total


RUNNING = [
    by_helper,
    branching,
    snapped,
    nested,
    with_numpy,
    counted,
    lambda x: round_to(x, 0.125) * 3,
    lambda x: abs(-x) + (+x),
    lambda x: x if x else 3.0,
    lambda x: [x, -x][1] / 3,
    lambda x: x * math.pi,
    lambda x: max(x, 0.5, 0.25),
    lambda x: math.exp(min(x, 3.0)),
    lambda x: 7,
    lambda x: x + sum([1.0, 2.0]),
]


@pytest.mark.parametrize("function", RUNNING)
def test_the_expression_computes_what_the_code_computes(function):
    expression = trace(function, "x")

    @given(x=st.one_of(st.floats(-6, 6), st.sampled_from([0.0, -1.0, 2.0, -0.125])))
    def computes(x):
        assert float_value(expression, {"x": x}) == function(x)

    computes()


def test_the_laplace_quantile_function():
    expression = trace(laplace)

    @given(st.floats(1e-9, 1 - 1e-9))
    def computes(u):
        assert float_value(expression, {"u": u}) == laplace(u)

    computes()


def test_closures_are_followed():
    module, scale = math, 3.0

    def noise(u):
        return scale * module.log(u)

    expression = trace(noise)
    assert expression == Multiply(Constant(3), Ln(Variable("u")))
    assert module is math
    assert noise(0.5) == 3.0 * math.log(0.5)  # the original is as before


def test_names_and_parameters():
    def noise(value, u, epsilon=1.0):
        return value + math.log(u) / epsilon

    assert names(trace(noise)) == ("u", "value")
    half = trace(noise, parameters={"epsilon": 0.5})
    assert Constant("1/2") in table(half).expressions
    fixed = trace(noise, "u", parameters={"value": Fraction(1, 3)})
    assert names(fixed) == ("u",)
    assert Constant("1/3") in table(fixed).expressions


def test_fractions_are_themselves_and_floats_what_they_are():
    assert trace(lambda x: Fraction(1, 10) * x) == Multiply(Constant("1/10"), X)
    assert trace(lambda x: 0.1 * x) == Multiply(Constant(0.1), X)


def test_steps():
    assert trace(lambda x: np.sign(x)) == Sign(X)
    assert trace(lambda x: np.rint(x)) == RoundTo(X, Fraction(1))
    assert trace(lambda x: np.exp(x)) == Exp(X)
    assert trace(lambda x: np.fabs(x)) == Absolute(X)
    assert trace(lambda x: np.sqrt(x)) == Sqrt(X)
    assert trace(lambda x: np.maximum(1, x)) == Clamp(X, Fraction(1), None)
    assert trace(lambda x: clamp(x, -1, 1)) == Clamp(X, Fraction(-1), Fraction(1))
    assert trace(lambda x: np.float64(0.5) + x) == Add(Constant("1/2"), X)


def test_cases_that_cannot_happen_are_not_split():
    def three(x):
        if x > 2:
            return 1 if x > 1 else 2
        return 3 if x >= 3 else (4 if x == 2.5 else x)

    expression = trace(three)
    assert sum(isinstance(e, Piecewise) for e in table(expression).expressions) == 1


def refused(function, *parts, **options):
    with pytest.raises(Untraceable) as caught:
        trace(function, **options)
    for part in parts:
        assert part in str(caught.value)
    return str(caught.value)


def computed_branch(x):
    y = x * x
    if y > 1:  # line 2 of the function
        return 2.0
    return y


def two_inputs(x, y):
    return x if x < y else y


def swallowed(x):
    try:
        return float(x)
    except TypeError:
        return 0.0


def endless(x):
    count = 0.0
    while x > count:
        count += 1.0
    return count


def test_cases_without_end_are_refused(monkeypatch):
    """The true limit, 256, is tried with the evidence."""
    monkeypatch.setattr("lastbit.verify.tracing.trace.MOST_CASES", 20)
    refused(endless, "more than 20 cases")


def test_a_branch_on_a_computed_value_is_refused_with_its_line():
    line = computed_branch.__code__.co_firstlineno + 2
    refused(computed_branch, "test_trace.py", f"line {line}:", "branches on a computed value")


@pytest.mark.parametrize(
    ("function", "part"),
    [
        (two_inputs, "branches"),
        (swallowed, "catches exceptions"),
        (imported_inside, "import at the top of the module"),
        (lambda x: 1.0 if isinstance(x, float) else x, "inputs are floats"),
        late(endless, "cases"),
        (lambda x: int(x), "integer"),
        (lambda x: range(x), "loop bound"),
        (lambda x: [1, 2][x], "index"),
        (lambda x: x[0], "part"),
        (lambda x: list(x), "list"),
        (lambda x: x**2, "power"),
        (lambda x: 2**x, "power"),
        (lambda x: x // 2, "remainder"),
        (lambda x: x % 2, "remainder"),
        (lambda x: math.tan(x), "math.tan"),
        (lambda x: math.log(x, 2), "math.log"),
        (lambda x: math.floor(x), "math.floor"),
        (lambda x: np.tan(x), "numpy.tan"),
        (lambda x: np.where(x, 1, 2), "numpy.where"),
        (lambda x: np.add(x, 1, dtype=float), "float as a value"),
        (lambda x: np.add(x, 1, casting="no"), "numpy.add"),
        (lambda x: x + np.ones(3), "numpy.ones"),
        (lambda x: x.real, ".real"),
        (lambda x: round(x, 2), "decimal digits"),
        (lambda x: max(x, x * x), "two computed"),
        (lambda x: np.minimum(x, x * x), "two computed"),
        (lambda x: x + math.inf, "finite"),
        (lambda x: x + math.nan, "finite"),
        (lambda x: x + "1/2", "str"),
        (lambda x: x + np.float32(0.5), "float32"),
        (lambda x: np.float16(0.5) * x, "float16"),
        (lambda x: sum([x, 1.0]), "calls sum"),
        (lambda x: x + next(COUNTER), "builtins.next"),
        (lambda x: x + COUNTER, "may change between calls"),
        (lambda x: clamp(x, x, 1), "constant"),
        (lambda x: (x, 1), "returns a tuple"),
        (lambda x: None, "returns a NoneType"),
        (lambda x: "%f" % x, "writes text"),  # noqa: UP031,
    ],
)
def test_what_is_no_arithmetic_is_refused(function, part):
    message = refused(function, part, "test_trace.py, line ")
    assert ";" in message  # and says what to do


def test_what_is_no_function_is_refused():
    wrong: Any
    for wrong in (math.log, 3, "f", print):
        with pytest.raises(WrongType):
            trace(wrong)
    with pytest.raises(InvalidParameter):
        trace(lambda *xs: 1)


@pytest.mark.parametrize("benchmark", SUITE, ids=lambda benchmark: benchmark.name)
def test_the_suite_is_traced(benchmark):
    assert set(names(benchmark.expression)) == set(benchmark.ranges)


def test_helpers_on_floats():
    assert clamp(5.0, -1, 1) == 1
    assert round_to(0.3, 0.1) == 0.30000000000000004  # 3 times the float 0.1
