"""Tumult Core's samplers; its measurements need Spark and are not tried.

diffprivlib's mechanisms and sum.

OpenDP's measurements.

PyDP's mechanisms and bounded sums (Google's library, by way of OpenMined).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lastbit.audit.targets.target import Bounds, SumTarget, Target, again_and_again, loaded

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
    yield SumTarget(name="OpenDP sum", release=_opendp_sum(dp, "float"), claimed=1)
    for dtype, kind in (("int32", "i32"), ("int64", "i64")):
        name = f"OpenDP {dtype} sum"
        yield SumTarget(name=name, release=_opendp_sum(dp, kind), claimed=1, dtype=dtype)


def _opendp_sum(dp: Any, kind: str) -> Any:
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
    yield SumTarget(name="PyDP sum", release=_pydp_sum(laplacian, "float"), claimed=2)
    for dtype, kind in (("int32", "int"), ("int64", "int64")):
        release = _pydp_sum(laplacian, kind)
        yield SumTarget(name=f"PyDP {dtype} sum", release=release, claimed=2, dtype=dtype)


def _pydp_sum(laplacian: Any, kind: str) -> Any:
    def release(data: NDArray[Any], bounds: Bounds, size: int) -> list[float]:
        summed = laplacian.BoundedSum(
            epsilon=1.0, lower_bound=bounds[0], upper_bound=bounds[1], dtype=kind
        )
        records = data.tolist()
        return [float(summed.quick_result(records)) for _ in range(size)]

    return release


def tumult_targets() -> Iterator[Target]:
    """The ideal Laplace noise, correctly rounded to a float, that interval refining gives."""
    laplace = loaded("tmlt.core.random.laplace", package="tmlt.core").laplace
    for scale in (1.0, 10.0):
        yield Target(
            name=f"Tumult Laplace, scale {scale:g}",
            release=lambda value, size, scale=scale: [laplace(value, scale) for _ in range(size)],
            claimed=1 / scale if scale == 1 else "1/10",
            scale=scale,
        )
