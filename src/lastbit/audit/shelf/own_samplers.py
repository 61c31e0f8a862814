"""lastbit's samplers, made into mechanisms the way a textbook does."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from lastbit.audit.target import Target
from lastbit.exact.ball import arb_of, working_precision
from lastbit.exact.rounding import upper
from lastbit.laws.ideal import Ideal, IdealCauchy, StudentT
from lastbit.sampling.bernoulli import bernoulli, bernoulli_exp
from lastbit.sampling.choice import choice, choice_exp
from lastbit.sampling.draw import stream
from lastbit.sampling.gaussian import discrete_gaussian
from lastbit.sampling.laplace import discrete_laplace, geometric
from lastbit.sampling.rounded import rounded
from lastbit.sampling.uniform import uniform_below

__all__ = ["heavy_score", "own_sampler_targets"]

DELTA = Fraction(1, 10**6)
DEVIATION = Fraction(17, 4)
STEP = Fraction(1, 16)


def own_sampler_targets() -> Iterator[Target]:
    """Noise drawn directly and added by the user; coins and wheels that answer instead of a person.

    The points of the plane are in `own_points.py`.
    """
    yield from _noise()
    yield from _answers()


def _noise() -> Iterator[Target]:
    integers = partial(Target, values=(0, 1), step=1, scale=1, claimed=1)
    yield integers(
        name="lastbit discrete_laplace",
        release=lambda value, size: value + discrete_laplace(1, size=size),
    )
    yield integers(  # the difference of two geometric numbers is discrete Laplace
        name="lastbit geometric",
        release=lambda value, size: value + geometric(1, size=size) - geometric(1, size=size),
    )
    yield integers(name="lastbit stream", release=_streamed)
    # (1, 1e-6) by the exact curve of the discrete Gaussian; tests/audit/shelf/test_own.py
    yield Target(
        name="lastbit discrete_gaussian",
        release=lambda value, size: (
            value + discrete_gaussian(standard_deviation=DEVIATION, size=size)
        ),
        claimed=1,
        delta=DELTA,
        values=(0, 1),
        scale=float(DEVIATION),
        step=1,
    )
    for law in ("laplace", "logistic"):  # either has the loss d/scale
        yield Target(
            name=f"lastbit rounded, {law}",
            release=lambda value, size, law=law: (
                rounded(law, location=value, scale=1, grid=STEP, size=size) * float(STEP)
            ),
            claimed=1,
            scale=1,
            step=STEP,
        )

    yield from _heavy_tails()


def _heavy_tails() -> Iterator[Target]:
    """Student's noise of some degrees, Cauchy's among them, moved by one scale.

    What is shown is the logarithm of the ratio of the two densities at the rounded output, since
    no cut through the outputs themselves tells much: far out both are alike. Its greatest value is
    (n+1) asinh(1/(2 sqrt(n))) for n degrees.
    """
    for name, law, degrees in (("cauchy", IdealCauchy(), 1), ("student", StudentT(3), 3)):

        def score(
            place: tuple[int], size: int, law: Ideal = law, degrees: int = degrees
        ) -> NDArray[np.float64]:
            steps = rounded(law, location=place[0], scale=1, grid=STEP, size=size)
            return heavy_score(np.asarray(steps, np.float64) * float(STEP), degrees)

        yield Target(
            name=f"lastbit rounded, {name}, which is likelier",
            release=score,
            claimed=_heavy_loss(degrees),
            values=((0,), (1,)),  # no numbers: a score is no answer plus noise
        )


def heavy_score(outputs: NDArray[np.float64], degrees: int) -> NDArray[np.float64]:
    """Ln of the ratio of Student's densities about 1 and about 0."""
    ratio = (degrees + outputs**2) / (degrees + (outputs - 1) ** 2)
    score: NDArray[np.float64] = np.log(ratio) * (degrees + 1) / 2
    return score


def _heavy_loss(degrees: int) -> float:
    with working_precision(64):
        return upper((degrees + 1) * (1 / (2 * arb(degrees).sqrt())).asinh())


def _streamed(value: int, size: int) -> NDArray[Any]:
    return value + np.concatenate(list(stream(discrete_laplace, 1, total=size, block=1 << 12)))


def _answers() -> Iterator[Target]:
    """Two answers, the true one three times as likely as the other: epsilon = ln 3."""
    answers = partial(Target, values=(0, 1), step=1, claimed=_logarithm_upper(3))
    yield answers(
        name="lastbit bernoulli",
        release=lambda value, size: bernoulli("3/4" if value else "1/4", size=size),
    )
    yield answers(
        name="lastbit uniform_below",
        release=lambda value, size: value ^ (uniform_below(4, size=size) == 0),
    )
    yield answers(
        name="lastbit choice",
        release=lambda value, size: choice([1, 3] if value else [3, 1], size=size),
    )
    exponential = partial(Target, values=(0, 1), step=1, claimed=1)
    # True e times as likely for one value; False is less than e times as likely for the other
    yield exponential(
        name="lastbit bernoulli_exp",
        release=lambda value, size: bernoulli_exp("1/2" if value else "3/2", size=size),
    )
    yield exponential(
        name="lastbit choice_exp",
        release=lambda value, size: choice_exp([0, 1] if value else [1, 0], size=size),
    )


def _logarithm_upper(number: int) -> float:
    with working_precision(64):
        return upper(arb_of(Fraction(number)).log())
