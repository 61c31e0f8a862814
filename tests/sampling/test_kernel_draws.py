"""The draws a table answer is made of: exact parameters only, the samplers' own law, no Arb."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest

from lastbit.errors import InvalidParameter, WrongType
from lastbit.sampling import bits, gaussian, laplace
from lastbit.sampling.blocks import drawn_with
from lastbit.sampling.deterministic import Seeded
from lastbit.sampling.gaussian import draw_discrete_gaussian, rejection
from lastbit.sampling.laplace import draw_discrete_laplace, signed_digits

DRAWS = [
    (draw_discrete_laplace, signed_digits, laplace),
    (draw_discrete_gaussian, rejection, gaussian),
]


@pytest.mark.parametrize(("draw", "sampler", "module"), DRAWS)
@pytest.mark.parametrize("parameter", [Fraction(1, 3), Fraction(10**6), Fraction(1 << 200, 7)])
def test_draws_are_those_of_the_sampler(draw, sampler, module, parameter, monkeypatch) -> None:
    monkeypatch.setattr(module, "secure_bits", lambda: Seeded(5))
    expected = drawn_with(sampler(parameter), Seeded(5), 300).tolist()
    assert draw(parameter, 300) == expected
    assert {type(value) for value in expected} == {int}
    assert draw(parameter * 4, 300) != expected


@pytest.mark.parametrize(("draw", "sampler", "module"), DRAWS)
def test_no_draw_is_no_draw(draw, sampler, module) -> None:
    assert draw(Fraction(3), 0) == []


@pytest.mark.parametrize(("draw", "sampler", "module"), DRAWS)
@pytest.mark.parametrize("parameter", [1, 0.5, "1/2", None, np.float64(2)])
def test_only_exact_rationals_are_taken(draw, sampler, module, parameter, monkeypatch) -> None:
    sampler(Fraction(1)), sampler(Fraction(2)), sampler(Fraction(1, 2))  # an equal one is known
    monkeypatch.setattr(bits.KeyStream, "fill", lambda *_: pytest.fail("bits were drawn"))
    with pytest.raises(WrongType, match="is no Fraction; pass an exact rational"):
        draw(parameter, 3)


@pytest.mark.parametrize(("draw", "sampler", "module"), DRAWS)
@pytest.mark.parametrize("parameter", [Fraction(0), Fraction(-1, 2)])
def test_only_what_is_above_zero_is_taken(draw, sampler, module, parameter) -> None:
    with pytest.raises(InvalidParameter, match="is not above 0; pass a number above 0"):
        draw(parameter, 3)


def test_nothing_below_them_loads_arb() -> None:
    code = """
import sys
from fractions import Fraction
import numpy as np
from lastbit.sampling import choice_exp_rows, draw_discrete_gaussian, draw_discrete_laplace
for size in (1, 10**40):
    draw_discrete_gaussian(Fraction(size), 9), draw_discrete_laplace(Fraction(size), 9)
choice_exp_rows(np.array([[0, 3]]), rate=Fraction(1, 2))
print("flint" in sys.modules)
import lastbit.exact.ball
print("flint" in sys.modules)
"""
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["False", "True"]
