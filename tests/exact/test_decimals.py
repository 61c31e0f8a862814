"""Logarithms, exponentials and powers of doubles, against Arb and against the checker's own."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from flint import arb, ctx
from hypothesis import given, settings, strategies as st

from lastbit.checker import formulas as checked
from lastbit.exact import decimal_exp, decimal_ln, decimal_log, decimal_power

ABOVE = st.floats(min_value=0, exclude_min=True, allow_infinity=False)
ANY = st.floats(allow_nan=False, allow_infinity=False)
NEAR = st.floats(-800, 800)
OF_ONE: dict[str, Callable[[float], float]] = {"ln": decimal_ln, "exp": decimal_exp}
OF_TWO: dict[str, Callable[[float, float], float]] = {"log": decimal_log, "power": decimal_power}


def holds(value: float, true: Any) -> bool:
    """Whether the true number is within one unit in the last place."""
    return bool(
        arb(math.nextafter(value, -math.inf)) <= true <= arb(math.nextafter(value, math.inf))
    )


def value_of(function: Callable[..., float], *numbers: float) -> float | None:
    try:
        return function(*numbers)
    except (ArithmeticError, ValueError):
        return None


@pytest.fixture(autouse=True)
def _precise() -> Any:
    before, ctx.prec = ctx.prec, 400
    yield
    ctx.prec = before


@settings(max_examples=300)
@given(ABOVE)
def test_logarithms(x: float) -> None:
    assert holds(decimal_ln(x), arb(x).log())


@settings(max_examples=300)
@given(NEAR)
def test_exponentials(x: float) -> None:
    value = value_of(decimal_exp, x)
    if value is None:
        assert arb(x).exp() > arb(1.797e308)
    else:
        assert holds(value, arb(x).exp())


@settings(max_examples=300)
@given(st.floats(1e-6, 1e6), st.floats(-60, 60))
def test_powers(x: float, y: float) -> None:
    value = value_of(decimal_power, x, y)
    assert value is None or holds(value, (arb(y) * arb(x).log()).exp())


@settings(max_examples=300)
@given(ABOVE.filter(lambda x: x != 1), ABOVE)
def test_logarithms_to_a_base(base: float, x: float) -> None:
    assert holds(decimal_log(base, x), arb(x).log() / arb(base).log())


@settings(max_examples=500)
@given(st.sampled_from([*OF_ONE, *OF_TWO]), ANY, ANY | st.integers(-9, 9).map(float))
def test_the_checker_has_the_same(name: str, x: float, y: float) -> None:
    numbers = (x,) if name in OF_ONE else (x, y)
    functions: dict[str, Callable[..., float]] = {**OF_ONE, **OF_TWO}
    mine = value_of(functions[name], *numbers)
    assert value_of(checked._DOUBLES[name], *numbers) == mine


@pytest.mark.parametrize("whole", [-3, -1, 0, 1, 2, 7])
@pytest.mark.parametrize("x", [-10.0, -0.5, 3.0, 1e10])
def test_whole_powers_are_those_of_rationals(x: float, whole: int) -> None:
    assert decimal_power(x, float(whole)) == x**whole


@pytest.mark.parametrize(
    ("function", "numbers"),
    [
        (decimal_ln, (0.0,)), (decimal_ln, (-1.0,)), (decimal_ln, (math.inf,)),
        (decimal_exp, (710.0,)), (decimal_exp, (1e300,)), (decimal_power, (0.0, -1.0)),
        (decimal_power, (-8.0, 1 / 3)), (decimal_power, (10.0, 400.0)),
        (decimal_log, (1.0, 5.0)), (decimal_log, (0.0, 5.0)), (decimal_log, (2.0, -5.0)),
    ],
)  # fmt: skip
def test_what_has_no_value_raises(function: Callable[..., float], numbers: Any) -> None:
    assert value_of(function, *numbers) is None
    assert decimal_exp(-1e300) == 0.0
