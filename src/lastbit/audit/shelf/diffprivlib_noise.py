"""diffprivlib's mechanisms and sum."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

from numpy.typing import NDArray

from lastbit.audit.shelf.loading import again_and_again, loaded
from lastbit.audit.target import Bounds, SumTarget, Target

__all__ = ["diffprivlib_targets"]

DELTA = 1e-6
WIDE = 1e6  # bounds of the truncated kinds, far from the values


def diffprivlib_targets() -> Iterator[Target | SumTarget]:
    """Everything that adds noise to a number, at epsilon 1 and sensitivity 1; and the sum."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mechanisms = loaded("diffprivlib.mechanisms", package="diffprivlib")
        tools = loaded("diffprivlib.tools", package="diffprivlib")
    pure = {"epsilon": 1.0, "sensitivity": 1.0}
    bounded = pure | {"lower": -WIDE, "upper": WIDE}
    yield _target("Laplace", mechanisms.Laplace(**pure), scale=1)
    yield _target("LaplaceTruncated", mechanisms.LaplaceTruncated(**bounded), scale=1)
    yield _target("LaplaceFolded", mechanisms.LaplaceFolded(**bounded), scale=1)
    yield _target("LaplaceBoundedDomain", mechanisms.LaplaceBoundedDomain(**bounded), scale=1)
    yield _target("Staircase", mechanisms.Staircase(**pure), scale=1)
    yield _target("Snapping", mechanisms.Snapping(**bounded))
    approximate = pure | {"delta": DELTA}
    yield _target("LaplaceBoundedNoise", mechanisms.LaplaceBoundedNoise(**approximate), delta=DELTA)
    gaussian = mechanisms.Gaussian(**(approximate | {"epsilon": 0.99}))
    yield _target("Gaussian", gaussian, claimed=0.99, delta=DELTA)
    yield _target("GaussianAnalytic", mechanisms.GaussianAnalytic(**approximate), delta=DELTA)
    whole = partial(_target, values=(0, 1), step=1)
    discrete = mechanisms.GaussianDiscrete(epsilon=1.0, delta=DELTA, sensitivity=1)
    yield whole("GaussianDiscrete", discrete, delta=DELTA)
    yield whole("Geometric", mechanisms.Geometric(epsilon=1.0, sensitivity=1))
    yield SumTarget(name="diffprivlib sum", release=_sum(tools, None), claimed=1)
    for dtype in ("int32", "int64"):
        name = f"diffprivlib {dtype} sum"
        yield SumTarget(name=name, release=_sum(tools, dtype), claimed=1, dtype=dtype)


def _target(name: str, mechanism: Any, *, claimed: float = 1.0, **known: Any) -> Target:
    release = again_and_again(mechanism.randomise)
    return Target(name=f"diffprivlib {name}", release=release, claimed=claimed, **known)


def _sum(tools: Any, dtype: str | None) -> Any:
    numpy = loaded("numpy", package="numpy")
    options = {} if dtype is None else {"dtype": getattr(numpy, dtype)}
    accountant = loaded("diffprivlib.accountant", package="diffprivlib").BudgetAccountant()

    def release(data: NDArray[Any], bounds: Bounds, size: int) -> list[float]:
        def one() -> float:
            return float(
                tools.sum(data, epsilon=1.0, bounds=bounds, accountant=accountant, **options)
            )

        return [one() for _ in range(size)]

    return release
