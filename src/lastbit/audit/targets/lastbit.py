"""lastbit's own noise, ready to be attacked: numbers plus noise, and sums of records."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lastbit import mechanisms
from lastbit.audit.targets.target import Bounds, SumTarget, Target

DELTA = Fraction(1, 10**6)
SEEN_DELTA = Fraction(1, 20)
STEPS = 1 << 20  # of the grid between the bounds of a sum


def lastbit_targets() -> Iterator[Target | SumTarget]:
    """Laplace and Gaussian noise on integers and floats, and sums."""
    yield from (*_laplace(), *_gaussian())
    for dtype, name in (("float64", "sum"), ("int32", "int32 sum"), ("int64", "int64 sum")):
        yield SumTarget(name=f"lastbit {name}", release=exact_sum, claimed=1, dtype=dtype)


def our_target(name: str, release: Callable[..., Any], claimed: Any, **known: Any) -> Target:
    """A target of ours by its name."""
    return Target(name=f"lastbit {name}", release=release, claimed=claimed, **known)


def many(release: Callable[[Any], Any], of: Callable[[Any], Any] = lambda value: value) -> Any:
    """One release of an array of equal values: each entry has the law of a single release."""
    return lambda value, size: release(np.full(size, of(value)))


def _at_once(value: Any, size: int, *, kind: Any, **options: Any) -> Any:
    """One release of many coordinates."""
    return kind(sensitivity=1, dimension=size, **options).release(np.full(size, value))


def _laplace() -> Iterator[Target]:
    for scale in (1, 10):
        noise = mechanisms.Laplace(sensitivity=1, scale=scale)
        known = {"scale": scale, "values": (0, 1), "step": 1}
        name = f"Laplace, integers, scale {scale}"
        yield our_target(name, many(noise.release), noise.epsilon, **known)
        fine = mechanisms.Laplace(sensitivity=1, scale=scale, grid="auto")
        step = fine.lattice.step
        release = partial(_at_once, kind=mechanisms.Laplace, scale=fine.scale, grid=step)
        name = f"Laplace, floats, scale {scale}"
        yield our_target(name, release, fine.epsilon, scale=scale, step=step)


def _gaussian() -> Iterator[Target]:
    kinds = [("integers", None, DELTA), ("floats", "auto", DELTA)]
    # a delta that samples can see: the shape of the law is the same
    for kind, grid, delta in (*kinds, ("integers, delta 1/20", None, SEEN_DELTA)):
        one = mechanisms.Gaussian(sensitivity=1, epsilon=1, delta=delta, grid=grid)
        step = one.lattice.step
        options: dict[str, Any] = {"variance": one.variance, "grid": step if grid else None}
        yield our_target(
            f"Gaussian, {kind}",
            partial(_at_once, kind=mechanisms.Gaussian, **options),
            1,
            delta=delta,
            values=(0, 1) if grid is None else (0.0, 1.0),
            scale=one.standard_deviation_upper,
            step=step,
        )


def exact_sum(data: NDArray[Any], bounds: Bounds, size: int) -> list[float]:
    """A private sum that keeps its promise: records to whole steps of a grid, summed as integers.

    Theorem  each record counts 0 ... m steps, so a changed record moves the sum of steps by at most
             m, and Python's integers neither wrap nor round; the order is irrelevant. NaN counts as
             the lower bound. What follows the noise is post-processing

    >>> 0 < exact_sum(np.full(1000, 0.5), (0.0, 1.0), 1)[0] < 1000
    True
    """
    lower, upper = bounds
    if data.dtype.kind in "iu":
        steps = [int(x) - lower for x in np.clip(data, lower, upper).tolist()]
        most, width = upper - lower, Fraction(1)
    else:
        share = (np.clip(data, lower, upper) - lower) / (upper - lower)
        clean = np.where(np.isnan(share), 0.0, np.clip(share, 0.0, 1.0))
        steps = np.rint(clean * STEPS).astype(np.int64).tolist()
        most, width = STEPS, (Fraction(upper) - Fraction(lower)) / STEPS
    noise = mechanisms.Laplace(sensitivity=most, epsilon=1)
    base, total = Fraction(lower) * len(data), sum(steps)
    return [float(base + width * noise.release(total)) for _ in range(size)]
