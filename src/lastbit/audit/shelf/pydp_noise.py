"""PyDP's mechanisms and bounded sums (Google's library, by way of OpenMined)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from numpy.typing import NDArray

from lastbit.audit.shelf.loading import again_and_again, loaded
from lastbit.audit.target import Bounds, SumTarget, Target

__all__ = ["pydp_targets"]

DELTA = 1e-6


def pydp_targets() -> Iterator[Target | SumTarget]:
    """Laplace and Gaussian noise on floats, and bounded sums."""
    mechanisms = loaded("pydp.algorithms.numerical_mechanisms", package="python-dp")
    laplacian = loaded("pydp.algorithms.laplacian", package="python-dp")
    laplace = mechanisms.LaplaceMechanism(epsilon=1.0, sensitivity=1.0)
    yield Target(
        name="PyDP Laplace",
        release=again_and_again(lambda value: laplace.add_noise(float(value))),
        claimed=1,
        scale=1,
    )
    gaussian = mechanisms.GaussianMechanism(1.0, DELTA, 1.0)
    yield Target(
        name="PyDP Gaussian",
        release=again_and_again(lambda value: gaussian.add_noise(float(value))),
        claimed=1,
        delta=DELTA,
    )
    # its bounded sum promises epsilon for a record added or removed: a change is two of those
    yield SumTarget(name="PyDP sum", release=_sum(laplacian, "float"), claimed=2)
    for dtype, kind in (("int32", "int"), ("int64", "int64")):
        release = _sum(laplacian, kind)
        yield SumTarget(name=f"PyDP {dtype} sum", release=release, claimed=2, dtype=dtype)


def _sum(laplacian: Any, kind: str) -> Any:
    def release(data: NDArray[Any], bounds: Bounds, size: int) -> list[float]:
        summed = laplacian.BoundedSum(
            epsilon=1.0, lower_bound=bounds[0], upper_bound=bounds[1], dtype=kind
        )
        records = data.tolist()
        return [float(summed.quick_result(records)) for _ in range(size)]

    return release
