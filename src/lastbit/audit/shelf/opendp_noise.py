"""OpenDP's measurements."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lastbit.audit.shelf.loading import loaded
from lastbit.audit.target import Bounds, SumTarget, Target

__all__ = ["opendp_targets"]

DELTA = 1e-6
DEVIATION = 4.6


def opendp_targets() -> Iterator[Target | SumTarget]:
    """Laplace and Gaussian noise on floats and integers, and sums with a known number of records.

    The claim is the epsilon that OpenDP itself states for the distance 1.
    """
    dp = loaded("opendp.prelude", package="opendp")
    dp.enable_features("contrib")
    real = dp.vector_domain(dp.atom_domain(T=float, nan=False))
    whole = dp.vector_domain(dp.atom_domain(T="i64"))
    for scale in (1.0, 10.0):
        noise = dp.m.make_laplace(real, dp.l1_distance(T=float), scale=scale)
        yield Target(
            name=f"OpenDP Laplace, scale {scale:g}",
            release=lambda value, size, noise=noise: noise(np.full(size, float(value))),
            claimed=noise.map(1.0),
            scale=scale,
        )
    integers = dp.m.make_laplace(whole, dp.l1_distance(T="i64"), scale=1.0)
    yield Target(
        name="OpenDP integer Laplace",
        release=lambda value, size: integers(np.full(size, int(value))),
        claimed=integers.map(1),
        values=(0, 1),
        scale=1,
        step=1,
    )
    gaussian = dp.m.make_gaussian(real, dp.l2_distance(T=float), scale=DEVIATION)
    yield Target(
        name="OpenDP Gaussian",
        release=lambda value, size: gaussian(np.full(size, float(value))),
        claimed=dp.c.make_zCDP_to_approxDP(gaussian).map(1.0).epsilon(DELTA),
        delta=DELTA,
        scale=DEVIATION,
    )
    yield SumTarget(name="OpenDP sum", release=_sum(dp, "float"), claimed=1)
    for dtype, kind in (("int32", "i32"), ("int64", "i64")):
        name = f"OpenDP {dtype} sum"
        yield SumTarget(name=name, release=_sum(dp, kind), claimed=1, dtype=dtype)


def _sum(dp: Any, kind: str) -> Any:
    """The sum of so many records, a changed record being one removed and one added."""
    number = float if kind == "float" else int

    def release(data: NDArray[Any], bounds: Bounds, size: int) -> list[float]:
        options = {"nan": False} if kind == "float" else {"T": kind}
        ends = (number(bounds[0]), number(bounds[1]))
        clamped = dp.t.make_clamp(
            dp.vector_domain(dp.atom_domain(**_typed(options, number)), size=len(data)),
            dp.symmetric_distance(),
            ends,
        )
        total = clamped >> dp.t.then_sum()
        noisy = dp.binary_search_chain(
            lambda scale: total >> dp.m.then_laplace(scale), d_in=2, d_out=1.0, T=float
        )
        return [float(noisy(data)) for _ in range(size)]

    return release


def _typed(options: dict[str, Any], number: type) -> dict[str, Any]:
    return {"T": number} | options
