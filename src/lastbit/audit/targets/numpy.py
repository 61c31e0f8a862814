"""Noise as people write it with numpy, and the fixed-point machine of paper 000.

This is what lastbit is there to replace: targets for attacks, and nothing else. It is one of two
files that may name numpy's generators (tests/architecture).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lastbit.audit.targets.target import Bounds, SumTarget, Target

DELTA = "1e-6"
# enough for epsilon = 1 and delta = 1e-6 at sensitivity 1 (the analytic Gaussian needs 4.224...)
DEVIATION = 4.25


def numpy_targets() -> Iterator[Target | SumTarget]:
    """The textbook's noise from numpy's generators."""
    fresh, legacy = np.random.default_rng(), np.random.RandomState()
    for scale, claimed in ((1, "1"), (10, "1/10")):
        yield Target(
            name=f"numpy Laplace, scale {scale}",
            release=lambda value, size, scale=scale: fresh.laplace(value, scale, size),
            claimed=claimed,
            scale=scale,
        )
    yield Target(
        name="numpy Gaussian",
        release=lambda value, size: fresh.normal(value, DEVIATION, size),
        claimed=1,
        delta=DELTA,
        scale=DEVIATION,
    )
    yield Target(
        name="numpy legacy Gaussian",
        release=lambda value, size: legacy.normal(value, DEVIATION, size),
        claimed=1,
        delta=DELTA,
        scale=DEVIATION,
    )
    yield _fixed_point(fresh)
    yield SumTarget(
        name="numpy sum",
        release=lambda data, bounds, size: _noisy_sum(fresh, data, bounds, size),
        claimed=1,
    )
    for dtype in ("int32", "int64"):
        yield SumTarget(
            name=f"numpy {dtype} sum",
            release=lambda data, bounds, size: _noisy_sum(fresh, data, bounds, size),
            claimed=1,
            dtype=dtype,
        )


def _fixed_point(generator: np.random.Generator) -> Target:
    """Six fractional bits and scale 4: noise is drawn on the grid, then multiplied."""
    bits, scale = 6, 4
    step = 2.0**-bits

    def release(value: float, size: int) -> NDArray[np.float64]:
        noise: NDArray[np.float64] = np.rint(generator.laplace(0, 1, size) / step)
        return value + noise * scale * step

    values = (0.0, 1 + 2.0**-5)
    return Target(
        name="fixed point by hand",
        release=release,
        claimed=values[1] / scale,
        sensitivity=values[1],
        values=values,
        scale=scale,
        step=step,
    )


def _noisy_sum(
    generator: np.random.Generator, data: NDArray[Any], bounds: Bounds, size: int
) -> NDArray[np.float64]:
    """Clip, sum in the records' own type, add noise for upper - lower."""
    total = np.clip(data, *bounds).sum(dtype=data.dtype)
    noisy: NDArray[np.float64] = float(total) + generator.laplace(0, bounds[1] - bounds[0], size)
    return noisy
