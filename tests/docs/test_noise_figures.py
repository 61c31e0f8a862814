"""Figures of noise that follows made-up data: what they show is what the library computes."""

from __future__ import annotations

from fractions import Fraction

import pytest

from docs.draw_figures import (
    admissible_figure,
    made_up_waits,
    planar_figure,
    smooth_sensitivity_figure,
)
from lastbit.errors import InvalidParameter
from lastbit.exact import rounded_up
from lastbit.laws.planar import DiscretePlanarLaplace
from lastbit.mechanisms.admissible_noise import admissible
from lastbit.sensitivity.smooth import smooth_sensitivity


def test_the_smooth_sensitivity_is_the_library_s() -> None:
    text = smooth_sensitivity_figure(["1"], count=501)
    bound = smooth_sensitivity("median", made_up_waits(501), beta="1/2", lower=0, upper=500).bound
    assert f"S ≤ {rounded_up(bound, 3)}" in text
    assert "501 made-up waits" in text


def test_the_errors_are_those_of_the_noise() -> None:
    text = admissible_figure(epsilon=1, count=501)
    chosen = admissible("cauchy", epsilon=1)
    bound = smooth_sensitivity(
        "median", made_up_waits(501), beta=chosen.beta, lower=0, upper=500
    ).bound
    assert f"half the errors &lt; {rounded_up(bound / chosen.alpha, 2)}" in text


def test_the_radius_is_that_of_the_law() -> None:
    text = planar_figure(["4"], within=200)
    steps = 16  # of the grid, in a metre
    law = DiscretePlanarLaplace(Fraction("0.00693147180559945309") / steps)
    assert f"95 % within {float(law.radius('0.95') / steps):,.0f} m" in text


@pytest.mark.parametrize("bad", [0, -1, float("nan")])
def test_bad_parameters_are_refused(bad: float) -> None:
    for call in (
        lambda: smooth_sensitivity_figure([bad]),
        lambda: admissible_figure(epsilon=bad),
        lambda: planar_figure(within=bad),
    ):
        with pytest.raises(InvalidParameter):
            call()
