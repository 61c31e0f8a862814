"""Attacks on the bits of an output: which values could have been rounded to it?"""

from __future__ import annotations

import math
from functools import partial
from itertools import product

import numpy as np
from numpy.typing import NDArray

from lastbit.audit.attacks.trial import Floats, Trial, example_of
from lastbit.audit.bounds import DEFAULT_ERROR
from lastbit.audit.result import Verdict
from lastbit.audit.targets.target import Target
from lastbit.exact import Number

UNIFORM_BITS, POLAR_BITS = 53, 52  # the grids of numpy's uniform numbers
UNIFORM_STEPS, POLAR_STEPS = 4, 2  # how far around the rounded inverse is searched
MOST_BITS = 30


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
    return trial.verdict(
        lambda y: has_preimage(y, right, scale) & ~has_preimage(y, wrong, scale),
        likely=0,
        witness=lambda seen: (
            f"a 53-bit uniform makes {example_of(seen)} out of {right!r}, "
            f"and none near the inverse makes it out of {wrong!r}"
        ),
    )


def has_preimage(outputs: Floats, value: float, scale: float) -> NDArray[np.bool_]:
    """Which outputs numpy's Laplace formula reaches from this value.

    numpy: value - scale*log(2 - U - U) for U >= 1/2, value + scale*log(U + U) below, from left to
    right, in doubles, with the C library's logarithm, which `math.log` calls too.

    >>> has_preimage(np.array([0.0, 1e-300]), 0.0, 1.0).tolist()    # U = 1/2 gives 0
    [True, False]
    """
    with np.errstate(all="ignore"):  # an output may be as far away as floats go
        noise = np.where(np.isfinite(outputs), outputs - value, 0.0)
        near = np.rint(np.exp(-np.abs(noise) / scale) * 2.0 ** (UNIFORM_BITS - 1))
    near = np.where(noise >= 0, 2.0**UNIFORM_BITS - near, near)
    found = np.zeros(outputs.shape, dtype=np.bool_)
    for step in range(-UNIFORM_STEPS, UNIFORM_STEPS + 1):
        steps = near + step
        valid = (steps > 0) & (steps < 2.0**UNIFORM_BITS)
        uniform = np.where(valid, steps, 2.0 ** (UNIFORM_BITS - 1)) * 2.0**-UNIFORM_BITS
        right = uniform >= 0.5
        logarithm = _logarithms(np.where(right, 2.0 - uniform - uniform, uniform + uniform))
        with np.errstate(all="ignore"):
            made = np.where(right, value - scale * logarithm, value + scale * logarithm)
        found |= valid & (made == outputs)
    return found


def _logarithms(numbers: Floats) -> Floats:
    return np.fromiter(map(math.log, numbers.tolist()), np.float64, numbers.size)


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
        near = np.rint(noise / factor[:, None] * 2.0**POLAR_BITS)
        near = np.where(np.isfinite(near) & (np.abs(near) < 2.0**POLAR_BITS), near, 0.0)
    found = np.zeros(len(pairs), dtype=np.bool_)
    steps = range(-POLAR_STEPS, POLAR_STEPS + 1)
    for shift in product(steps, steps):
        points = (near + np.array(shift)) * 2.0**-POLAR_BITS
        # as numpy computes them; NaN outside the unit disc
        square = points[:, 1] * points[:, 1] + points[:, 0] * points[:, 0]
        valid = (square > 0) & (square < 1)
        inside = np.where(valid, square, 0.5)
        factor = np.where(valid, np.sqrt(-2.0 * _logarithms(inside) / inside), np.nan)
        with np.errstate(all="ignore"):
            found |= (value + scale * (factor[:, None] * points) == pairs).all(axis=1)
    return found


def precision(target: Target, *, samples: int = 10_000, error: Number = DEFAULT_ERROR) -> Verdict:
    """Looks for outputs that cannot have come from the larger value, for their bits are too fine.

    Law      the event: y is not a multiple of 2**(e-53), where 2**e <= abs(v) and v is the larger
             of the two values in magnitude; 24 for 53 if the noise is added in float32
    Theorem  y = fl(v + x) is a multiple of 2**(e-53) for every double x. A double of magnitude
             2**(e-1) or more is one, for it has 53 bits; v is such a double. If the real sum has
             that magnitude, so has y. Otherwise abs(x) > abs(v) - 2**(e-1) >= 2**(e-1): x is a
             multiple too, so is the real sum, which needs fewer than 53 bits and is not rounded
    Breaks   every mechanism that adds float noise with a full significand to a float: numpy's,
             diffprivlib's Laplace, Gaussian and others. At value 0 about a quarter of all Laplace
             noise of scale 1 is finer than 2**-53. The wider the noise, the rarer the event
    Resists  noise on a public grid; sums that are rounded afterwards to a grid coarser than theirs
    Source   Haney, Desfontaines, Hartman, Shrestha, Hay 2022 (Precision-based attacks)
    Checked  tests/audit/attacks/test_precision.py

    >>> leaky = Target(
    ...     name="a third", release=lambda value, size: [value + 1e-17 / 3] * size, claimed=1)
    >>> precision(leaky, samples=1000).broken
    True
    """
    trial = Trial("precision", target, samples=samples, error=error)
    first, second = trial.knows("answers")
    likely, large = (0, second) if abs(first) <= abs(second) else (1, first)
    exponent = finest_grid(large, target.significand_bits)
    # 0 has no grid, and there it is only an event
    why = f"; every float sum with {large!r} is one" if large else ""
    return trial.verdict(
        partial(off_grid, exponent=exponent),
        likely=likely,
        witness=lambda seen: f"{example_of(seen)} is no multiple of 2**{exponent}{why}",
        details={"grid": f"2**{exponent}"},
    )


def finest_grid(value: float, bits: int = 53) -> int:
    """The exponent g such that every sum with the value, in floats of so many bits, is on 2**g.

    >>> finest_grid(1.0), finest_grid(-3.5), finest_grid(0.75), finest_grid(1.0, 24)
    (-53, -52, -54, -24)
    """
    if value == 0:  # any float is a sum with 0: the grid of 1 is as good as another
        return -bits
    return max(math.frexp(value)[1] - 1 - bits, -1074)


def off_grid(outputs: Floats, exponent: int) -> NDArray[np.bool_]:
    """Which outputs are finite and not multiples of 2**exponent; the remainder is exact.

    >>> off_grid(np.array([1.0, 2.0**-60, np.nan, 1e300, 5e-324]), -53).tolist()
    [False, True, False, False, True]
    """
    finite = np.isfinite(outputs)
    rest = np.fmod(np.where(finite, outputs, 0.0), math.ldexp(1.0, exponent))
    off: NDArray[np.bool_] = finite & (rest != 0)
    return off


def low_bits(target: Target, *, samples: int = 10_000, error: Number = DEFAULT_ERROR) -> Verdict:
    """Looks for outputs that end in the same bits as one value and not as the other.

    Law      the event: (y - v)/step is a multiple of 2**n, v one of the values; n and v are chosen
             on a fifth of the samples
    Theorem  n and v do not depend on the samples that are counted, so the bound is true. Noise
             that is scaled by 2**n after it was drawn on the grid is a multiple of 2**n steps: the
             last n bits are the secret's with probability 1
    Breaks   fixed-point noise that is multiplied by its scale: the wider, the more bits it keeps
    Resists  noise whose law lives on the grid of the outputs itself
    Source   paper 000 (Gazeau, Miller, Palamidessi), Example 1.1
    Checked  tests/audit/attacks/test_low_bits.py

    >>> even = Target(
    ...     name="even", release=lambda value, size: [value + 8] * size, claimed=1, step=1)
    >>> low_bits(even, samples=1000).broken
    True
    """
    trial = Trial("low bits", target, samples=samples, error=error, least=20)
    step, values = float(trial.knows("step")), trial.knows("answers")
    train = trial.samples // 10
    drawn = target.draw(0, train), target.draw(1, train)

    def promise(option: tuple[int, int]) -> float:
        likely, bits = option
        shares = [float(same_ending(y, values[likely], step, bits).mean()) for y in drawn]
        return (shares[likely] - 1 / train) / (shares[1 - likely] + 3 / train)

    likely, bits = max(product((0, 1), range(1, MOST_BITS)), key=promise)
    told = (
        f"the output is {values[likely]!r} and a multiple of 2**{bits} steps of {step!r}: "
        f"its last {bits} bits are the secret's"
    )
    return trial.verdict(
        partial(same_ending, value=values[likely], step=step, bits=bits),
        likely=likely,
        witness=lambda seen: told,
        trained=train,
        details={"bits": str(bits)},
    )


def same_ending(outputs: Floats, value: float, step: float, bits: int) -> NDArray[np.bool_]:
    """Which outputs differ from the value by a multiple of 2**bits steps, and by less than 2**52.

    Further away a float has no such bits left.

    >>> same_ending(np.array([1.0, 5.0, 7.0, np.inf]), 1.0, 1.0, 2).tolist()
    [True, True, False, False]
    """
    finite = np.isfinite(outputs)
    with np.errstate(all="ignore"):
        steps = (np.where(finite, outputs, 0.0) - value) / step
        near = finite & (np.abs(steps) < 2.0**52)
    same: NDArray[np.bool_] = near & (np.fmod(np.where(near, steps, 1.0), 2.0**bits) == 0)
    return same
