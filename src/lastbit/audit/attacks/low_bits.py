"""The low-bits test: digits of the secret that fixed-point noise leaves alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lastbit.audit.attacks.trial import Floats, Trial
from lastbit.audit.bounds import DEFAULT_ERROR
from lastbit.audit.result import Verdict
from lastbit.audit.targets.target import Target
from lastbit.exact import Number

MOST_BITS = 30


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
    options = [(likely, bits) for likely in (0, 1) for bits in range(1, MOST_BITS)]

    def promise(option: tuple[int, int]) -> float:
        likely, bits = option
        shares = [float(same_ending(y, values[likely], step, bits).mean()) for y in drawn]
        return (shares[likely] - 1 / train) / (shares[1 - likely] + 3 / train)

    likely, bits = max(options, key=promise)

    def event(outputs: Floats) -> NDArray[np.bool_]:
        return same_ending(outputs, values[likely], step, bits)

    told = (
        f"the output is {values[likely]!r} and a multiple of 2**{bits} steps of {step!r}: "
        f"its last {bits} bits are the secret's"
    )
    return trial.verdict(
        event,
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
