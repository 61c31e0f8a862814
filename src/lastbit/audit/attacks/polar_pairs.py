"""The pair test for Gaussian noise made by the polar method, two numbers at a time."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
from numpy.typing import NDArray

from lastbit.audit.attacks.trial import Floats, Trial
from lastbit.audit.bounds import DEFAULT_ERROR
from lastbit.audit.result import Verdict
from lastbit.audit.targets.target import Target
from lastbit.exact import Number

GRID_BITS = 52
NEIGHBOURS = 2


def polar_pairs(target: Target, *, samples: int = 10_000, error: Number = DEFAULT_ERROR) -> Verdict:
    """Looks for pairs of outputs that no pair of uniform numbers turns into, for one value.

    Law      the event, of two releases in a row: some point (x1, x2) of the grid 2**-52 near the
             inverse gives both for v the second value, and none does for the first, by
             y1 = v + s*(f*x2), y2 = v + s*(f*x1), f = sqrt(-2 ln(r)/r), r = x1**2 + x2**2
    Theorem  the bound is true of any target. On numpy's legacy generator it is large: the two
             numbers it makes from one point fix the point, so a wrong value is found out in some
             95 of 100 pairs, and the right one hardly ever is
    Breaks   `numpy.random.normal` and `RandomState`, and whatever uses them, at every scale
    Resists  numpy's newer Generator (ziggurat) resists this test, not the precision test; noise on
             a public grid resists both
    Source   Jin, McMurtry, Rubinstein, Ohrimenko 2021 (Are we there yet?)
    Differs  a pair is two releases: the claim it is held against is twice the target's
    Checked  tests/audit/attacks/test_polar_pairs.py

    >>> ones = Target(name="ones", release=lambda value, size: [1.0] * size, claimed=1, scale=1)
    >>> polar_pairs(ones, samples=100).epsilon_lower
    0.0
    """
    trial = Trial("polar pairs", target, samples=samples, error=error, least=4)
    scale, (wrong, right) = trial.knows("scale"), trial.knows("answers")

    def event(outputs: Floats) -> NDArray[np.bool_]:
        pairs = outputs.reshape(-1, 2)
        others = made_by_polar_method(pairs, wrong, scale)
        return made_by_polar_method(pairs, right, scale) & ~others

    def witness(seen: float | None) -> str:
        pair = "a pair" if seen is None else f"{seen!r} and the next output"
        return (
            f"a point of the disc makes {pair} out of {right!r}, "
            f"and none near the inverse makes them out of {wrong!r}"
        )

    return trial.verdict(event, likely=1, witness=witness, group=2)


def made_by_polar_method(pairs: Floats, value: float, scale: float) -> NDArray[np.bool_]:
    """Which pairs of outputs the polar method reaches from this value."""
    with np.errstate(all="ignore"):
        noise = (pairs - value) / scale
        radius = np.exp(-(noise**2).sum(axis=1) / 2)
        factor = np.sqrt(-2.0 * np.log(radius) / radius)
        near = np.rint(noise / factor[:, None] * 2.0**GRID_BITS)
        near = np.where(np.isfinite(near) & (np.abs(near) < 2.0**GRID_BITS), near, 0.0)
    found = np.zeros(len(pairs), dtype=np.bool_)
    steps = range(-NEIGHBOURS, NEIGHBOURS + 1)
    for shift in product(steps, steps):
        points = (near + np.array(shift)) * 2.0**-GRID_BITS
        found |= (_polar(points, value, scale) == pairs).all(axis=1)
    return found


def _polar(points: Floats, value: float, scale: float) -> Floats:
    """Both outputs of each point, as numpy computes them; NaN outside the unit disc."""
    square = points[:, 1] * points[:, 1] + points[:, 0] * points[:, 0]
    valid = (square > 0) & (square < 1)
    inside = np.where(valid, square, 0.5)
    logarithm = np.fromiter(map(math.log, inside.tolist()), np.float64, inside.size)
    factor = np.where(valid, np.sqrt(-2.0 * logarithm / inside), np.nan)
    with np.errstate(all="ignore"):
        outputs: Floats = value + scale * (factor[:, None] * points)
    return outputs
