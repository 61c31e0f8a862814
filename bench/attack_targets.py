"""Targets of other libraries, each with the promise that its library makes.

A library is imported when its targets are asked for. numpy's are in `lastbit.audit.targets`, all of
ours in `tests/audit/targets`. Of Tumult Core only the samplers are tried: its measurements need
Spark. PyDP is Google's library by way of OpenMined.
"""

from __future__ import annotations

import importlib
import math
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lastbit.audit import SumTarget, Target
from lastbit.audit.targets.libraries import NUMPY_DEVIATION, numpy_targets
from lastbit.audit.targets.target import Bounds, ReleaseOfSums, as_release
from lastbit.errors import InvalidParameter

DELTA = 1e-6
WIDE = 1e6  # bounds of diffprivlib's truncated kinds, far from the values
DEVIATION = 4.6  # of OpenDP's Gaussian
FLOAT32 = 24  # bits of its significand
LEARNING_RATE, BATCH = 0.1, 64


def loaded(module: str, *, package: str) -> Any:
    """A module of a library under test, imported when its targets are asked for.

    What a target draws comes from that library; nothing of it is ever released as private.

    >>> loaded("no_such_module", package="no-such-package")
    Traceback (most recent call last):
        ...
    lastbit.errors.InvalidParameter: library no-such-package is not installed or does not ...
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        raise InvalidParameter(
            f"library {package}",
            problem="is not installed or does not import",
            remedy=f"pip install {package}",
        ) from None


def _sums(
    library: str, make: Callable[[str], ReleaseOfSums], kinds: tuple[str, str, str], claimed: int
) -> Iterator[SumTarget]:
    """Sums of floats and of two kinds of integers, by the library's own names of them."""
    for dtype, kind in zip(("float64", "int32", "int64"), kinds, strict=True):
        name = f"{library} sum" if dtype == "float64" else f"{library} {dtype} sum"
        yield SumTarget(name=name, release=make(kind), claimed=claimed, dtype=dtype)


def diffprivlib_targets() -> Iterator[Target | SumTarget]:
    """Everything that adds noise to a number, at epsilon 1 and sensitivity 1; and the sum."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mechanisms = loaded("diffprivlib.mechanisms", package="diffprivlib")
        tools = loaded("diffprivlib.tools", package="diffprivlib")
        accountant = loaded("diffprivlib.accountant", package="diffprivlib").BudgetAccountant()
    pure = {"epsilon": 1.0, "sensitivity": 1.0}
    bounded = pure | {"lower": -WIDE, "upper": WIDE}
    approximate = pure | {"delta": DELTA}
    whole = {"epsilon": 1.0, "sensitivity": 1}
    integers = {"values": (0, 1), "step": 1}
    kinds: tuple[tuple[str, dict[str, Any], dict[str, Any]], ...] = (
        ("Laplace", pure, {"scale": 1}),
        ("LaplaceTruncated", bounded, {"scale": 1}),
        ("LaplaceFolded", bounded, {"scale": 1}),
        ("LaplaceBoundedDomain", bounded, {"scale": 1}),
        ("Staircase", pure, {"scale": 1}),
        ("Snapping", bounded, {}),
        ("LaplaceBoundedNoise", approximate, {"delta": DELTA}),
        ("Gaussian", approximate | {"epsilon": 0.99}, {"claimed": 0.99, "delta": DELTA}),
        ("GaussianAnalytic", approximate, {"delta": DELTA}),
        ("GaussianDiscrete", whole | {"delta": DELTA}, {"delta": DELTA, **integers}),
        ("Geometric", whole, dict(integers)),
    )
    for name, parameters, known in kinds:
        mechanism = getattr(mechanisms, name)(**parameters)
        release = as_release(mechanism.randomise)
        claimed = known.pop("claimed", 1)
        yield Target(name=f"diffprivlib {name}", release=release, claimed=claimed, **known)

    def summed(kind: str) -> ReleaseOfSums:
        # numpy's types by name: a float sum has none
        options = {"dtype": getattr(np, kind)} if kind else {}
        options |= {"epsilon": 1.0, "accountant": accountant}

        def release(data: NDArray[Any], bounds: Bounds, size: int) -> list[float]:
            return [float(tools.sum(data, bounds=bounds, **options)) for _ in range(size)]

        return release

    yield from _sums("diffprivlib", summed, ("", "int32", "int64"), claimed=1)


def opendp_targets() -> Iterator[Target | SumTarget]:
    """Laplace and Gaussian noise on floats and integers, and sums with a known number of records.

    The claim is the epsilon that OpenDP itself states for the distance 1.
    """
    dp = loaded("opendp.prelude", package="opendp")
    dp.enable_features("contrib")
    real = dp.vector_domain(dp.atom_domain(T=float, nan=False))
    whole = dp.vector_domain(dp.atom_domain(T="i64"))

    def target(name: str, noise: Any, number: type, claimed: float, **known: Any) -> Target:
        return Target(
            name=f"OpenDP {name}",
            release=lambda value, size: noise(np.full(size, number(value))),
            claimed=claimed,
            **known,
        )

    for scale in (1.0, 10.0):
        noise = dp.m.make_laplace(real, dp.l1_distance(T=float), scale=scale)
        name = f"Laplace, scale {scale:g}"
        yield target(name, noise, float, noise.map(1.0), scale=scale)
    noise = dp.m.make_laplace(whole, dp.l1_distance(T="i64"), scale=1.0)
    yield target("integer Laplace", noise, int, noise.map(1), values=(0, 1), scale=1, step=1)
    noise = dp.m.make_gaussian(real, dp.l2_distance(T=float), scale=DEVIATION)
    claimed = dp.c.make_zCDP_to_approxDP(noise).map(1.0).epsilon(DELTA)
    yield target("Gaussian", noise, float, claimed, delta=DELTA, scale=DEVIATION)

    def summed(kind: str) -> ReleaseOfSums:
        """With a known number of records: a changed record is one removed and one added."""
        options = {"T": kind} if kind else {"T": float, "nan": False}
        number = int if kind else float

        def release(data: NDArray[Any], bounds: Bounds, size: int) -> list[float]:
            records = dp.vector_domain(dp.atom_domain(**options), size=len(data))
            ends = (number(bounds[0]), number(bounds[1]))
            total = dp.t.make_clamp(records, dp.symmetric_distance(), ends) >> dp.t.then_sum()
            noisy = dp.binary_search_chain(
                lambda scale: total >> dp.m.then_laplace(scale), d_in=2, d_out=1.0, T=float
            )
            return [float(noisy(data)) for _ in range(size)]

        return release

    yield from _sums("OpenDP", summed, ("", "i32", "i64"), claimed=1)


def pydp_targets() -> Iterator[Target | SumTarget]:
    """Laplace and Gaussian noise on floats, and bounded sums."""
    mechanisms = loaded("pydp.algorithms.numerical_mechanisms", package="python-dp")
    laplacian = loaded("pydp.algorithms.laplacian", package="python-dp")
    laplace = mechanisms.LaplaceMechanism(epsilon=1.0, sensitivity=1.0)
    gaussian = mechanisms.GaussianMechanism(1.0, DELTA, 1.0)

    def noisy(mechanism: Any) -> Callable[[Any, int], list[Any]]:
        return as_release(lambda value: mechanism.add_noise(float(value)))

    kinds: tuple[tuple[str, Any, dict[str, Any]], ...] = (
        ("Laplace", laplace, {"scale": 1}),
        ("Gaussian", gaussian, {"delta": DELTA}),
    )
    for name, mechanism, known in kinds:
        yield Target(name=f"PyDP {name}", release=noisy(mechanism), claimed=1, **known)

    def summed(kind: str) -> ReleaseOfSums:
        def release(data: NDArray[Any], bounds: Bounds, size: int) -> list[float]:
            total = laplacian.BoundedSum(
                epsilon=1.0, lower_bound=bounds[0], upper_bound=bounds[1], dtype=kind
            )
            records = data.tolist()
            return [float(total.quick_result(records)) for _ in range(size)]

        return release

    # its bounded sum promises epsilon for a record added or removed: a change is two of those
    yield from _sums("PyDP", summed, ("float", "int", "int64"), claimed=2)


def tumult_targets() -> Iterator[Target]:
    """The ideal Laplace noise, correctly rounded to a float, that interval refining gives."""
    laplace = loaded("tmlt.core.random.laplace", package="tmlt.core").laplace
    for scale, claimed in ((1.0, "1"), (10.0, "1/10")):
        yield Target(
            name=f"Tumult Laplace, scale {scale:g}",
            release=lambda value, size, scale=scale: [laplace(value, scale) for _ in range(size)],
            claimed=claimed,
            scale=scale,
        )


def _of_gradients(name: str, release: Callable[..., Any]) -> Target:
    """Gaussian noise that a library for training adds in float32."""
    return Target(name=name, release=release, claimed=1, delta="1e-6", significand_bits=FLOAT32)


def opacus_targets() -> Iterator[Target]:
    """The noise of its optimizer on a clipped gradient, as one step adds it; float32.

    Its secure mode sums four draws, so that the noise cannot be traced back to the generator. It
    asks for a cryptographic generator too: torchcsprng, which has no build for today's torch. A
    generator that is seeded by the system for each release stands in for it.
    """
    torch = loaded("torch", package="torch")
    optimizers = loaded("opacus.optimizers", package="opacus")

    def noisy(value: Any, size: int, *, secure: bool) -> Any:
        weights = torch.nn.Parameter(torch.zeros(size))
        generator = torch.Generator() if secure else None
        if generator is not None:
            generator.seed()
        optimizer = optimizers.DPOptimizer(
            torch.optim.SGD([weights], lr=1.0),
            noise_multiplier=NUMPY_DEVIATION,
            max_grad_norm=1.0,
            expected_batch_size=1,
            generator=generator,
            secure_mode=secure,
        )
        weights.summed_grad = torch.full((size,), float(value))
        optimizer.add_noise()
        return weights.grad.double().numpy()

    for name, secure in (("noise", False), ("noise, secure mode", True)):
        yield _of_gradients(f"Opacus {name}", partial(noisy, secure=secure))
    layer = torch.nn.Linear(1, 1, bias=False)
    model = loaded("opacus.grad_sample", package="opacus").GradSampleModule(layer)
    optimizer = optimizers.DPOptimizer(
        torch.optim.SGD(model.parameters(), lr=LEARNING_RATE),
        noise_multiplier=NUMPY_DEVIATION,
        max_grad_norm=1.0,
        expected_batch_size=BATCH,
    )

    def stepped(value: Any) -> float:
        """The weight, from 0, after a step on one record whose gradient is the value."""
        torch.nn.init.zeros_(layer.weight)
        optimizer.zero_grad()
        model(torch.tensor([[float(value)]])).sum().backward()
        optimizer.step()
        return gradient_of(layer.weight.item())

    yield _of_gradients("Opacus weight after a step", as_release(stepped))


def gradient_of(weight: float) -> float:
    """The noisy gradient behind a float32 weight: on the grid of 2**-24, if that explains it.

    Made from the weight alone, so it is as private as the weight.

    >>> gradient_of(float(np.float32(-LEARNING_RATE) * np.float32(0.75 / BATCH)))
    0.75
    """
    rate = float(np.float32(LEARNING_RATE))
    gradient = -weight / rate * BATCH
    near = math.ldexp(round(math.ldexp(gradient, FLOAT32)), -FLOAT32)
    return near if np.float32(-near / BATCH * rate) == np.float32(weight) else gradient


def jax_privacy_targets() -> Iterator[Target]:
    """The noise of its Gaussian privatizer on a clipped gradient, one step; float32.

    The key is the privatizer's own, as where none is given: one of 2**31, from numpy's generator.
    """
    jax = loaded("jax", package="jax")
    noise = loaded("jax_privacy.noise_addition", package="jax-privacy")

    def noisy(value: Any, size: int) -> Any:
        gradient = jax.numpy.full((size,), float(value))
        privatizer = noise.gaussian_privatizer(stddev=NUMPY_DEVIATION)
        found, _ = privatizer.update(gradient, privatizer.init(gradient))
        return np.asarray(found, dtype=np.float64)

    yield _of_gradients("JAX-privacy noise", noisy)


def tensorflow_privacy_targets() -> Iterator[Target]:
    """The noise of its Gaussian sum query on a clipped gradient; float32."""
    tensorflow = loaded("tensorflow", package="tensorflow")
    queries = loaded("tensorflow_privacy", package="tensorflow-privacy")
    query = queries.GaussianSumQuery(l2_norm_clip=1.0, stddev=NUMPY_DEVIATION)

    def noisy(value: Any, size: int) -> Any:
        gradient = tensorflow.fill([size], float(value))
        found, *_ = query.get_noised_result(gradient, query.initial_global_state())
        return found.numpy().astype(np.float64)

    yield _of_gradients("TensorFlow Privacy noise", noisy)


def pipelinedp_targets() -> Iterator[Target]:
    """What its engine adds to sums and counts: PyDP's noise, by its own interface."""
    noise = loaded("pipeline_dp.dp_computations", package="pipeline-dp")
    kinds: tuple[tuple[str, Any, dict[str, Any]], ...] = (
        ("Laplace", noise.LaplaceMechanism.create_from_epsilon(1.0, 1.0), {"scale": 1}),
        (
            "Gaussian",
            noise.GaussianMechanism.create_from_epsilon_delta(1.0, DELTA, 1.0),
            {"delta": DELTA},
        ),
    )
    for name, mechanism, known in kinds:
        yield Target(
            name=f"PipelineDP {name}",
            release=lambda value, size, of=mechanism: of.add_noise(np.full(size, float(value))),
            claimed=1,
            **known,
        )


def smartnoise_targets() -> Iterator[Target]:
    """What its SQL engine adds to sums of values between 0 and 1: OpenDP's noise."""
    kinds: tuple[tuple[str, dict[str, Any]], ...] = (
        ("Laplace", {}),
        ("Gaussian", {"delta": DELTA}),
    )
    for name, known in kinds:
        module = loaded(f"snsql.sql._mechanisms.{name.lower()}", package="smartnoise-sql")
        mechanism = getattr(module, name)(1.0, lower=0, upper=1, max_contrib=1, **known)
        yield Target(
            name=f"SmartNoise {name}",
            release=lambda value, size, of=mechanism: of.release([float(value)] * size),
            claimed=1,
            **known,
        )


def lastbit_targets() -> Iterator[Target | SumTarget]:
    """Everything of ours that draws noise, as the tests attack it."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    return importlib.import_module("tests.audit.targets.own_targets").own_targets()


LIBRARIES: Mapping[str, Callable[[], Iterator[Target | SumTarget]]] = MappingProxyType(
    {
        "lastbit": lastbit_targets,
        "numpy": numpy_targets,
        "diffprivlib": diffprivlib_targets,
        "opendp": opendp_targets,
        "pydp": pydp_targets,
        "tumult": tumult_targets,
        "opacus": opacus_targets,
        "jax-privacy": jax_privacy_targets,
        "tensorflow-privacy": tensorflow_privacy_targets,
        "pipelinedp": pipelinedp_targets,
        "smartnoise": smartnoise_targets,
    }
)
"""What makes the targets of each library."""


def targets(library: str) -> tuple[Target | SumTarget, ...]:
    """Everything of one library that is ready to be attacked."""
    return tuple(LIBRARIES[library]())
