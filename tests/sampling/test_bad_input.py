"""Every public sampler refuses bad input: by name, with a way out, before any bit is drawn."""

import math
import os
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import lastbit
from lastbit.errors import InvalidParameter, LastbitError, WrongType
from lastbit.exact.ball import Real
from lastbit.sampling import bits
from lastbit.sampling.bernoulli import bernoulli, bernoulli_exp
from lastbit.sampling.bits import KeyStream
from lastbit.sampling.choice import choice, choice_exp
from lastbit.sampling.draw import stream
from lastbit.sampling.integers import discrete_gaussian, discrete_laplace, geometric
from lastbit.sampling.planar import planar_laplace
from lastbit.sampling.rounded import rounded
from lastbit.sampling.uniform import uniform_below

NO_NUMBERS: list[Any] = [
    "abc",
    "",
    None,
    [],
    [1],
    (),
    {},
    object(),
    True,
    False,
    np.bool_(True),
    1j,
    b"1",
    np.array([1.0]),
    float,
]
NOT_FINITE: list[Any] = [
    math.nan,
    math.inf,
    -math.inf,
    "nan",
    "inf",
    "-inf",
    np.float32("nan"),
    np.float64("inf"),
    np.longdouble("nan"),
    Decimal("nan"),
    Decimal("sNaN"),
    Decimal("-inf"),
    "1e999999999",
    "1/0",
]
NEGATIVE: list[Any] = [-1, -0.5, "-1/3", Fraction(-1, 10**9), -5e-324, Decimal("-1"), np.int8(-1)]
ZERO: list[Any] = [0, 0.0, -0.0, "0", "0/5", Fraction(0), Decimal("-0"), np.int64(0)]
NOT_WHOLE: list[Any] = [0.5, 3.0, "3", Fraction(3), Decimal(3), np.float64(3), math.nan, math.inf]
NO_SIZE: list[Any] = [
    -1,
    (-1,),
    (2, -1),
    (-2, -3),
    np.int64(-1),
    3.0,
    (2, 3.0),
    math.nan,
    True,
    (True, 2),
    np.bool_(True),
    "3",
    [2, 3],
    {3},
    (None,),
    ((2, 3),),
    object(),
    np.array([2, 3]),
    2**36 + 1,
    2**62,
    2**63,
    10**30,
    (2**20, 2**20),
    (0, 2**70),
    (1,) * 65,
]
NO_SEQUENCE: list[Any] = [5, 0.5, None, True, object(), "abc", "123", b"123", math.nan, iter([1])]
NO_ORDER: list[Any] = [{1, 2}, {0: 1, 1: 2}]
WRONG_SHAPE: list[Any] = [
    np.array(5),
    np.zeros((2, 2)),
    np.ones((1, 3), np.int64),
    np.zeros((0, 3)),
]

Call = Callable[[Any], Any]
CASES: list[tuple[str, str, Call, list[Any]]] = [
    (
        "uniform_below",
        "n",
        uniform_below,
        [*NO_NUMBERS, *NOT_FINITE, *NEGATIVE, *ZERO, *NOT_WHOLE],
    ),
    ("bernoulli", "p", bernoulli, [*NO_NUMBERS, *NOT_FINITE, *NEGATIVE]),
    ("bernoulli", "p", bernoulli, [2, "3/2", math.nextafter(1, 2), Fraction(10**9 + 1, 10**9)]),
    ("bernoulli_exp", "gamma", bernoulli_exp, [*NO_NUMBERS, *NOT_FINITE, *NEGATIVE]),
    (
        "bernoulli_exp",
        "gamma",
        bernoulli_exp,
        [Real(-1), Real(2).sqrt() - 2, Real(-1).sqrt(), Real(1) / 0, Real(0).log()],
    ),
    ("geometric", "scale", geometric, [*NO_NUMBERS, *NOT_FINITE, *NEGATIVE, *ZERO]),
    ("discrete_laplace", "scale", discrete_laplace, [*NO_NUMBERS, *NOT_FINITE, *NEGATIVE, *ZERO]),
    (
        "discrete_gaussian",
        "variance",
        lambda value: discrete_gaussian(variance=value),
        [*NO_NUMBERS, *NOT_FINITE, *NEGATIVE, *ZERO],
    ),
    (
        "discrete_gaussian",
        "standard_deviation",
        lambda value: discrete_gaussian(standard_deviation=value),
        [*(bad for bad in NO_NUMBERS if bad is not None), *NOT_FINITE, *NEGATIVE, *ZERO],
    ),
    ("choice", "weights", choice, [*NO_SEQUENCE, *NO_ORDER, *WRONG_SHAPE]),
    ("choice", "weights", choice, [[], (), np.array([]), np.array([], np.int64)]),
    ("choice", "weights", choice, [[0], [0, 0.0], np.zeros(3), np.zeros(3, np.uint8)]),
    ("choice", "weights[1]", lambda bad: choice([1, bad, 1]), [*NO_NUMBERS, *NOT_FINITE]),
    ("choice", "weights[1]", lambda bad: choice([1, bad, 1]), NEGATIVE),
    (
        "choice",
        "weights[1]",
        choice,
        [
            np.array([1, -1, 1]),
            np.array([1, -0.5, 1]),
            np.array([1, math.nan, 1]),
            np.array([1, math.inf, 1], np.float32),
            np.array([1, math.nan], np.longdouble),
            np.array([1, None]),
            np.array(["1", "abc"]),
        ],
    ),
    ("choice", "weights[0]", choice, [np.array([True, False]), np.array([1j]), [[1, 2], [3, 4]]]),
    ("choice_exp", "exponents", choice_exp, [*NO_SEQUENCE, *NO_ORDER, *WRONG_SHAPE]),
    ("choice_exp", "exponents", choice_exp, [[], (), np.array([]), np.array([], np.int64)]),
    ("choice_exp", "exponents[1]", lambda bad: choice_exp([1, bad]), [*NO_NUMBERS, *NOT_FINITE]),
    (
        "choice_exp",
        "exponents[1]",
        choice_exp,
        [
            np.array([1, math.nan, 1]),
            np.array([1, -math.inf]),
            np.array([1, math.inf], np.float16),
            np.array([1, None]),
        ],
    ),
    ("choice_exp", "exponents[0]", choice_exp, [np.array([True, False]), np.array([1j]), [[1, 2]]]),
    (
        "choice_exp",
        "rate",
        lambda bad: choice_exp([1, 2], rate=bad),
        [*NO_NUMBERS, *NOT_FINITE, *NEGATIVE, *ZERO, 2**1000, Fraction(1, 2**1000)],
    ),
    (
        "planar_laplace",
        "rate",
        planar_laplace,
        [*NO_NUMBERS, *NOT_FINITE, *NEGATIVE, *ZERO, "1e-9", Fraction(1, 2**22 + 1)],
    ),
    (
        "rounded",
        "law",
        rounded,
        [*(bad for bad in NO_NUMBERS if not isinstance(bad, str)), "normal", "", "LAPLACE", 5],
    ),
    (
        "rounded",
        "location",
        lambda bad: rounded("laplace", location=bad),
        [*NO_NUMBERS, *NOT_FINITE, Real(1) / 0, Real(-1).sqrt(), Real(50).exp().exp()],
    ),
    (
        "rounded",
        "scale",
        lambda bad: rounded("laplace", scale=bad),
        [*NO_NUMBERS, *NOT_FINITE, *NEGATIVE, *ZERO],
    ),
    (
        "rounded",
        "scale",
        lambda bad: rounded("laplace", scale=bad),
        [Real(0), Real(2).sqrt() - 2, Real(1) / 0, Real(50).exp().exp(), (-Real(50).exp()).exp()],
    ),
    ("rounded", "scale", lambda bad: rounded("laplace", scale=2**bad), [65536, 10**6]),
    (
        "rounded",
        "grid",
        lambda bad: rounded("laplace", grid=bad),
        [*NO_NUMBERS, *NOT_FINITE, *NEGATIVE, *ZERO, Real(1)],
    ),
    (
        "stream",
        "total",
        lambda bad: list(stream(uniform_below, 5, total=bad)),
        [*NO_NUMBERS, *NEGATIVE, *NOT_WHOLE],
    ),
    (
        "stream",
        "block",
        lambda bad: list(stream(uniform_below, 5, total=9, block=bad)),
        [*NO_NUMBERS, 0, -1, *NOT_WHOLE],
    ),
    ("stream", "draw", lambda bad: list(stream(bad, total=9)), ["abc", None, 5, []]),
    ("stream", "scale", lambda bad: list(stream(geometric, bad, total=9)), [-1, "abc", math.nan]),
]
SIZED: dict[str, Call] = {
    "uniform_below": lambda bad: uniform_below(5, size=bad),
    "bernoulli": lambda bad: bernoulli("1/3", size=bad),
    "bernoulli_exp": lambda bad: bernoulli_exp(1, size=bad),
    "geometric": lambda bad: geometric(5, size=bad),
    "discrete_laplace": lambda bad: discrete_laplace(5, size=bad),
    "discrete_gaussian": lambda bad: discrete_gaussian(variance=5, size=bad),
    "choice": lambda bad: choice([1, 2], size=bad),
    "choice_exp": lambda bad: choice_exp([1, 2], size=bad),
    "planar_laplace": lambda bad: planar_laplace("1/3", size=bad),
    "rounded": lambda bad: rounded("laplace", size=bad),
}
CASES.extend((name, "size", call, NO_SIZE) for name, call in SIZED.items())


def label(value: object) -> str:
    """The same in every process: no address in memory."""
    text = repr(value)
    return type(value).__name__ if " at 0x" in text else text[:40]


ROWS = [
    pytest.param(parameter, call, bad, id=f"{name}-{parameter}-{label(bad)}")
    for name, parameter, call, values in CASES
    for bad in values
]


@pytest.fixture
def no_randomness(monkeypatch) -> None:
    """A stream without a key and without draws made ahead, that fails the test when asked."""

    def forbidden(*arguments: object) -> None:
        pytest.fail("a random bit was drawn")

    monkeypatch.setattr(bits._LOCAL, "stream", KeyStream())
    monkeypatch.setattr(KeyStream, "fill", forbidden)
    monkeypatch.setattr(os, "urandom", forbidden)


@pytest.mark.usefixtures("no_randomness")
@pytest.mark.parametrize(("parameter", "call", "bad"), ROWS)
def test_is_refused_before_anything_is_drawn(parameter, call, bad):
    with pytest.raises(LastbitError) as refusal:
        call(bad)
    error = refusal.value
    assert isinstance(error, InvalidParameter)
    assert isinstance(error, ValueError)
    assert error.parameter == parameter
    assert str(error).startswith(f"{parameter} ")
    assert str(error).endswith(f"; {error.remedy}")
    assert error.remedy.split()[0] in {"pass", "rescale", "draw"}
    assert len(str(error)) < 250


@pytest.mark.usefixtures("no_randomness")
@pytest.mark.parametrize(
    "call",
    [
        discrete_gaussian,
        lambda: discrete_gaussian(size=3),
        lambda: discrete_gaussian(variance=None, standard_deviation=None),
        lambda: discrete_gaussian(variance=1, standard_deviation=1),
        lambda: discrete_gaussian(variance=-1, standard_deviation="abc", size=-1),
    ],
)
def test_one_of_variance_and_standard_deviation(call):
    with pytest.raises(InvalidParameter, match=r"pass variance= or standard_deviation=") as refusal:
        call()
    assert refusal.value.parameter == "variance"


@pytest.mark.usefixtures("no_randomness")
def test_a_wrong_type_is_a_type_error_too():
    for call in (
        lambda: discrete_laplace(None),  # type: ignore[call-overload]
        lambda: uniform_below(3.0),  # type: ignore[call-overload]
        lambda: bernoulli("1/3", size="3"),  # type: ignore[call-overload]
        lambda: choice(5),  # type: ignore[call-overload]
    ):
        with pytest.raises(WrongType) as refusal:
            call()
        assert isinstance(refusal.value, TypeError)


@pytest.mark.usefixtures("no_randomness")
def test_the_gaussian_takes_no_nameless_parameter():
    """Variance or standard deviation: a bare number would not say."""
    with pytest.raises(TypeError):
        discrete_gaussian(5)  # type: ignore[call-overload]


@pytest.mark.usefixtures("no_randomness")
def test_a_refusal_is_not_remembered():
    """Nor does it harm what comes after it."""
    wrong: list[Any] = [math.nan, -1, None, []]
    for bad in [*wrong, *wrong]:
        with pytest.raises(InvalidParameter):
            discrete_laplace(bad)


def test_every_sampler_is_here():
    tested = {name for name, *_ in CASES}
    assert tested == set(lastbit.sampling.__all__)


def test_the_guard_itself_sees_a_draw(no_randomness):
    with pytest.raises(pytest.fail.Exception, match="random bit"):
        uniform_below(5)
    with pytest.raises(pytest.fail.Exception, match="random bit"):
        choice([1, 2], size=3)
