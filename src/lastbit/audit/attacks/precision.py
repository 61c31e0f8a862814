"""The precision test: bits that are too fine for the larger of two values."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from numpy.typing import NDArray

from lastbit.audit.attacks.trial import Floats, Trial, example_of
from lastbit.audit.bounds import DEFAULT_ERROR
from lastbit.audit.result import Verdict
from lastbit.audit.targets.target import Target
from lastbit.exact import Number


def precision(target: Target, *, samples: int = 10_000, error: Number = DEFAULT_ERROR) -> Verdict:
    """Looks for outputs that cannot have come from the larger value, for their bits are too fine.

    Law      the event: y is no multiple of 2**(e-53), where 2**e <= abs(v) and v is the larger of
             the two values in magnitude
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
    exponent = finest_grid(large)

    # 0 has no grid, and there it is only an event
    why = f"; every float sum with {large!r} is one" if large else ""
    return trial.verdict(
        partial(off_grid, exponent=exponent),
        likely=likely,
        witness=lambda seen: f"{example_of(seen)} is no multiple of 2**{exponent}{why}",
        details={"grid": f"2**{exponent}"},
    )


def finest_grid(value: float) -> int:
    """The exponent g such that every float sum with the value is a multiple of 2**g.

    >>> finest_grid(1.0), finest_grid(-3.5), finest_grid(0.75)
    (-53, -52, -54)
    """
    if value == 0:  # any double is a sum with 0: the grid of 1 is as good as another
        return -53
    return max(math.frexp(value)[1] - 1 - 53, -1074)


def off_grid(outputs: Floats, exponent: int) -> NDArray[np.bool_]:
    """Which outputs are finite and no multiples of 2**exponent.

    The remainder of two floats is exact, also where the quotient is huge.

    >>> off_grid(np.array([1.0, 2.0**-60, np.nan, 1e300, 5e-324]), -53).tolist()
    [False, True, False, False, True]
    """
    finite = np.isfinite(outputs)
    rest = np.fmod(np.where(finite, outputs, 0.0), math.ldexp(1.0, exponent))
    off: NDArray[np.bool_] = finite & (rest != 0)
    return off
