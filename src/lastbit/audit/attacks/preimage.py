"""The preimage test: is there a uniform number that the noise could have been made from?"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from lastbit.audit.attacks.trial import Floats, Trial, example_of
from lastbit.audit.bounds import DEFAULT_ERROR
from lastbit.audit.result import Verdict
from lastbit.audit.targets.target import Target
from lastbit.exact import Number

GRID_BITS = 53
NEIGHBOURS = 4


def preimage(target: Target, *, samples: int = 10_000, error: Number = DEFAULT_ERROR) -> Verdict:
    """Looks for outputs that no uniform number of the generator's grid turns into, for one value.

    Law      the event: some U = m * 2**-53 near the inverse gives y = v + noise(U) exactly with the
             first value as v, and none does with the second; noise(U) is numpy's Laplace formula
    Theorem  the bound is true of any target, for the event was fixed beforehand. On numpy it is
             large: every release of a value has a preimage (the one it was made from, a step or
             two from the rounded inverse), while the other value reaches it only by chance, in
             about one of five cases, since 2**53 uniforms leave most doubles out
    Breaks   numpy's Laplace noise at every scale: wide noise does not help, as it does against the
             precision test. At scale 10 (epsilon 0.1) some 10,000 releases prove epsilon > 5
    Resists  noise on a public grid; diffprivlib's Laplace, which adds up four uniforms' worth
    Source   Mironov 2012 (On significance of the least significant bits)
    Differs  searches the uniforms with numpy's own formula; exp is a guess that the formula checks,
             and a preimage that is overlooked weakens the bound and never falsifies it
    Checked  tests/audit/attacks/test_preimage.py

    >>> from lastbit.mechanisms.laplace import Laplace
    >>> noise = Laplace(sensitivity=1, scale=10)
    >>> ours = Target(
    ...     name="ours", release=lambda value, size: noise.release(np.full(size, int(value))),
    ...     claimed="1/10", scale=10)
    >>> preimage(ours, samples=1000).broken
    False
    """
    trial = Trial("preimage", target, samples=samples, error=error)
    scale, (right, wrong) = trial.knows("scale"), trial.knows("answers")

    def event(outputs: Floats) -> NDArray[np.bool_]:
        return has_preimage(outputs, right, scale) & ~has_preimage(outputs, wrong, scale)

    def witness(seen: float | None) -> str:
        return (
            f"a 53-bit uniform makes {example_of(seen)} out of {right!r}, "
            f"and none near the inverse makes it out of {wrong!r}"
        )

    return trial.verdict(event, likely=0, witness=witness)


def has_preimage(outputs: Floats, value: float, scale: float) -> NDArray[np.bool_]:
    """Which outputs numpy's Laplace formula reaches from this value.

    numpy: value - scale*log(2 - U - U) for U >= 1/2, value + scale*log(U + U) below, from left to
    right, in doubles, with the C library's logarithm, which `math.log` calls too.

    >>> has_preimage(np.array([0.0, 1e-300]), 0.0, 1.0).tolist()    # U = 1/2 gives 0
    [True, False]
    """
    with np.errstate(all="ignore"):  # an output may be as far away as floats go
        noise = np.where(np.isfinite(outputs), outputs - value, 0.0)
        near = np.rint(np.exp(-np.abs(noise) / scale) * 2.0 ** (GRID_BITS - 1))
    near = np.where(noise >= 0, 2.0**GRID_BITS - near, near)
    found = np.zeros(outputs.shape, dtype=np.bool_)
    for step in range(-NEIGHBOURS, NEIGHBOURS + 1):
        steps = near + step
        valid = (steps > 0) & (steps < 2.0**GRID_BITS)
        uniform = np.where(valid, steps, 2.0 ** (GRID_BITS - 1)) * 2.0**-GRID_BITS
        found |= valid & (_laplace(uniform, value, scale) == outputs)
    return found


def _laplace(uniform: Floats, value: float, scale: float) -> Floats:
    right = uniform >= 0.5
    argument = np.where(right, 2.0 - uniform - uniform, uniform + uniform)
    logarithm = np.fromiter(map(math.log, argument.tolist()), np.float64, argument.size)
    with np.errstate(all="ignore"):
        return np.where(right, value - scale * logarithm, value + scale * logarithm)
