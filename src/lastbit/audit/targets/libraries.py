"""Ready-made targets by name, each with the promise that is made for it: numpy's noise, and ours.

Those of other libraries are in `bench/attack_targets.py`. This is one of two files that may name
numpy's generators (tests/architecture).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lastbit.audit.targets.lastbit import lastbit_targets
from lastbit.audit.targets.target import Bounds, SumTarget, Target
from lastbit.errors import InvalidParameter

# enough for epsilon = 1 and delta = 1e-6 at sensitivity 1 (the analytic Gaussian needs 4.224...)
NUMPY_DEVIATION = 4.25


def targets(library: str) -> tuple[Target | SumTarget, ...]:
    """Everything of one library that is ready to be attacked.

    >>> [target.name for target in targets("numpy")][:2]
    ['numpy Laplace, scale 1', 'numpy Laplace, scale 10']
    """
    if library not in LIBRARIES:
        raise InvalidParameter(
            "library", problem="has no targets here", remedy=f"pass one of {', '.join(LIBRARIES)}"
        )
    return tuple(LIBRARIES[library]())


def numpy_targets() -> Iterator[Target | SumTarget]:
    """Noise as people write it with numpy, and the fixed-point machine of paper 000.

    This is what lastbit is there to replace: targets for attacks, and nothing else.
    """
    fresh, legacy = np.random.default_rng(), np.random.RandomState()
    for scale, claimed in ((1, "1"), (10, "1/10")):
        yield Target(
            name=f"numpy Laplace, scale {scale}",
            release=lambda value, size, scale=scale: fresh.laplace(value, scale, size),
            claimed=claimed,
            scale=scale,
        )
    generators: tuple[tuple[str, Any], ...] = (("", fresh), ("legacy ", legacy))
    for name, generator in generators:
        yield Target(
            name=f"numpy {name}Gaussian",
            release=lambda value, size, of=generator: of.normal(value, NUMPY_DEVIATION, size),
            claimed=1,
            delta="1e-6",
            scale=NUMPY_DEVIATION,
        )
    step, scale, values = 2.0**-6, 4, (0.0, 1 + 2.0**-5)
    yield Target(  # six fractional bits: noise is drawn on the grid, then multiplied
        name="fixed point by hand",
        release=lambda v, size: v + np.rint(fresh.laplace(0, 1, size) / step) * scale * step,
        claimed=values[1] / scale,
        sensitivity=values[1],
        values=values,
        scale=scale,
        step=step,
    )

    def summed(data: NDArray[Any], bounds: Bounds, size: int) -> NDArray[np.float64]:
        """Clip, sum in the records' own type, add noise for upper - lower."""
        total = np.clip(data, *bounds).sum(dtype=data.dtype)
        return float(total) + fresh.laplace(0, bounds[1] - bounds[0], size)

    for dtype, name in (("float64", "sum"), ("int32", "int32 sum"), ("int64", "int64 sum")):
        yield SumTarget(name=f"numpy {name}", release=summed, claimed=1, dtype=dtype)


LIBRARIES: Mapping[str, Callable[[], Iterator[Target | SumTarget]]] = MappingProxyType(
    {"lastbit": lastbit_targets, "numpy": numpy_targets}
)
"""What makes the targets of each library; `targets` asks it."""
