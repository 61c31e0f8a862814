"""lastbit's own mechanisms that add noise to numbers, and a sum made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lastbit.audit.target import Bounds, SumTarget, Target
from lastbit.mechanisms.gaussian import Gaussian
from lastbit.mechanisms.laplace import Laplace
from lastbit.mechanisms.rounded_laplace import RoundedLaplace
from lastbit.mechanisms.snapping import Snapping

__all__ = ["exact_sum", "own_noise_targets"]

DELTA = Fraction(1, 10**6)
SEEN_DELTA = Fraction(1, 20)
AT_ONCE = 1 << 12
STEPS = 1 << 20  # of the grid between the bounds of a sum


def own_noise_targets() -> Iterator[Target | SumTarget]:
    """Noise on integers and floats, exact and certified."""
    yield from _laplace()
    yield from _gaussian()
    yield from _certified_floats()
    yield SumTarget(name="lastbit sum", release=exact_sum, claimed=1)
    for dtype in ("int32", "int64"):
        yield SumTarget(name=f"lastbit {dtype} sum", release=exact_sum, claimed=1, dtype=dtype)


def _laplace() -> Iterator[Target]:
    integers = partial(Target, values=(0, 1), step=1)
    for scale in (1, 10):
        noise = Laplace(sensitivity=1, scale=scale)
        yield integers(
            name=f"lastbit Laplace, integers, scale {scale}",
            release=lambda value, size, noise=noise: noise.release(np.full(size, value)),
            claimed=noise.epsilon,
            scale=scale,
        )
        fine = Laplace(sensitivity=1, scale=scale, grid="auto")
        yield Target(
            name=f"lastbit Laplace, floats, scale {scale}",
            release=_wide(fine.scale, fine.lattice.step),
            claimed=fine.epsilon,
            scale=scale,
            step=fine.lattice.step,
        )


def _wide(scale: Fraction, step: Fraction) -> Callable[[float, int], Any]:
    """One release of many equal floats: each coordinate has the law of a single release."""

    def release(value: float, size: int) -> Any:
        noise = Laplace(sensitivity=1, scale=scale, grid=step, dimension=size)
        return noise.release(np.full(size, value))

    return release


def _gaussian() -> Iterator[Target]:
    kinds = [("integers", None, DELTA), ("floats", "auto", DELTA)]
    # a delta that samples can see: the shape of the law is the same
    for kind, grid, delta in (*kinds, ("integers, delta 1/20", None, SEEN_DELTA)):
        one = Gaussian(sensitivity=1, epsilon=1, delta=delta, grid=grid)
        step = one.lattice.step

        def release(
            value: Any,
            size: int,
            one: Gaussian = one,
            grid: Fraction | None = step if grid else None,
        ) -> Any:
            many = Gaussian(sensitivity=1, variance=one.variance, grid=grid, dimension=size)
            return many.release(np.full(size, value))

        yield Target(
            name=f"lastbit Gaussian, {kind}",
            release=release,
            claimed=1,
            delta=delta,
            values=(0, 1) if grid is None else (0.0, 1.0),
            scale=one.standard_deviation_upper,
            step=step,
        )


def _certified_floats() -> Iterator[Target]:
    snapping = Snapping(sensitivity=1, bound=64, epsilon=1)
    yield Target(
        name="lastbit Snapping",
        release=lambda value, size: snapping.release(np.full(size, value)),
        claimed=snapping.guarantee.epsilon,
        scale=1,
        step=snapping.grid,
    )
    # many coordinates at once; what one of them loses by itself is distance/scale + excess
    cells = RoundedLaplace(sensitivity=1, epsilon=1, cell="1/16", bound=1000, dimension=AT_ONCE)

    def rounded(value: float, size: int) -> NDArray[np.float64]:
        parts = [min(AT_ONCE, size - start) for start in range(0, size, AT_ONCE)]
        return np.concatenate([cells.release(np.full(part, value)) for part in parts])

    yield Target(
        name="lastbit RoundedLaplace",
        release=rounded,
        claimed=1 / cells.scale + cells.bounds.excess,
        scale=1,
        step=cells.cell,
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
        steps, width = [int(x) - lower for x in np.clip(data, lower, upper).tolist()], Fraction(1)
    else:
        width = (Fraction(upper) - Fraction(lower)) / STEPS
        share = (np.clip(data, lower, upper) - lower) / (upper - lower)
        clean = np.where(np.isnan(share), 0.0, np.clip(share, 0.0, 1.0))
        steps = np.rint(clean * STEPS).astype(np.int64).tolist()
    most = upper - lower if data.dtype.kind in "iu" else STEPS
    noise = Laplace(sensitivity=most, epsilon=1)
    base = Fraction(lower) * len(data)
    total = sum(steps)
    return [float(base + width * noise.release(total)) for _ in range(size)]
