"""Times the peers and prints JSON. Runs in the environment that `peer_environment.py` makes.

`peers.py OpenDP` prints {"version": ..., "times": {work: nanoseconds}}, or {"reason": ...} where
the library did not run. A library is asked for what a careful user would write: integers in,
integers out where it can; arrays where it takes them. This file needs no part of lastbit.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import version

import numpy as np

REPEATS = 7
CALLS = 200
VECTOR = 10_000
CANDIDATES = 1_000_000


def least(call: Callable[[], object], repeats: int = REPEATS) -> float:
    """The least time of a call in nanoseconds, after a warm-up."""
    call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter_ns()
        call()
        times.append(time.perf_counter_ns() - start)
    return float(min(times))


def scalar(call: Callable[[], object]) -> float:
    """The least time of one call among many made in a row."""

    def calls() -> None:
        for _ in range(CALLS):
            call()

    return least(calls) / CALLS


def opendp() -> dict[str, float]:
    """Integer noise on vectors and scalars, and selection by noisy max."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    one, many = dp.atom_domain(T="i64"), dp.vector_domain(dp.atom_domain(T="i64"))
    zeros = np.zeros(VECTOR, np.int64)
    times = {}
    scales = {"1": 1.0, "100": 100.0, "2^40": 2.0**40}
    for name, scale in scales.items():
        laplace = dp.m.make_laplace(many, dp.l1_distance(T="i64"), scale=scale)
        times[f"laplace vector {name}"] = least(partial(laplace, zeros)) / VECTOR
    for name, scale in scales.items():
        gaussian = dp.m.make_gaussian(many, dp.l2_distance(T=float), scale=scale)
        times[f"gaussian vector {name}"] = least(partial(gaussian, zeros)) / VECTOR
    laplace = dp.m.make_laplace(one, dp.absolute_distance(T="i64"), scale=10.0)
    times["laplace scalar"] = scalar(lambda: laplace(0))
    gaussian = dp.m.make_gaussian(one, dp.absolute_distance(T=float), scale=10.0)
    times["gaussian scalar"] = scalar(lambda: gaussian(0))
    scores = np.random.default_rng(0).integers(0, 1000, CANDIDATES)
    select = dp.m.make_noisy_max(many, dp.linf_distance(T="i64"), dp.max_divergence(), scale=10.0)
    times["select"] = least(lambda: select(scores)) / CANDIDATES
    return times


def opendp_mechanisms() -> dict[str, float]:
    """Whole mechanisms: integers and floats in, the same out; randomised response on bits."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    whole = dp.vector_domain(dp.atom_domain(T="i64"))
    real = dp.vector_domain(dp.atom_domain(T=float, nan=False))
    integers, floats = np.arange(VECTOR), np.linspace(0, 1, VECTOR)
    one = dp.atom_domain(T="i64")
    bits = np.packbits(np.arange(VECTOR) % 2).tobytes()
    laplace_i = dp.m.make_laplace(whole, dp.l1_distance(T="i64"), scale=2.0)
    laplace_f = dp.m.make_laplace(real, dp.l1_distance(T=float), scale=2.0)
    gaussian_i = dp.m.make_gaussian(whole, dp.l2_distance(T=float), scale=2.0)
    gaussian_f = dp.m.make_gaussian(real, dp.l2_distance(T=float), scale=2.0)
    laplace_1 = dp.m.make_laplace(one, dp.absolute_distance(T="i64"), scale=2.0)
    gaussian_1 = dp.m.make_gaussian(one, dp.absolute_distance(T=float), scale=2.0)
    respond = dp.m.make_randomized_response_bitvec(
        dp.bitvector_domain(max_weight=VECTOR), dp.discrete_distance(), f=0.5
    )
    scores = np.random.default_rng(0).integers(0, 1000, CANDIDATES)
    many = dp.vector_domain(dp.atom_domain(T="i64"))
    select = dp.m.make_noisy_max(many, dp.linf_distance(T="i64"), dp.max_divergence(), scale=10.0)
    return {
        "laplace integers": least(lambda: laplace_i(integers)) / VECTOR,
        "laplace floats": least(lambda: laplace_f(floats)) / VECTOR,
        "gaussian integers": least(lambda: gaussian_i(integers)) / VECTOR,
        "gaussian floats": least(lambda: gaussian_f(floats)) / VECTOR,
        "laplace one": scalar(lambda: laplace_1(42)),
        "gaussian one": scalar(lambda: gaussian_1(42)),
        "randomized response": least(lambda: respond(bits)) / VECTOR,
        "select": least(lambda: select(scores)) / CANDIDATES,
    }


def diffprivlib() -> dict[str, float]:
    """Scalars only: it has no vectors. Laplace in floats; the Gaussian is discrete, σ = 8.05."""
    from diffprivlib.mechanisms import GaussianDiscrete, Laplace

    laplace = Laplace(epsilon=0.1, sensitivity=1)
    gaussian = GaussianDiscrete(epsilon=0.5, delta=1e-6, sensitivity=1)
    return {
        "laplace scalar": scalar(lambda: laplace.randomise(0)),
        "gaussian 8 scalar": scalar(lambda: gaussian.randomise(0)),
    }


def pydp() -> dict[str, float]:
    """Scalars only, rounded to integers."""
    from pydp.algorithms.numerical_mechanisms import GaussianMechanism, LaplaceMechanism

    laplace = LaplaceMechanism(epsilon=0.1, sensitivity=1)
    gaussian = GaussianMechanism(0.5, 1e-6, 1)  # σ about 8
    return {
        "laplace scalar": scalar(lambda: laplace.add_noise(0)),
        "gaussian 8 scalar": scalar(lambda: gaussian.add_noise(0)),
    }


PEERS = {
    "OpenDP": ("opendp", opendp),
    "diffprivlib": ("diffprivlib", diffprivlib),
    "PyDP": ("python-dp", pydp),
    "OpenDP mechanisms": ("opendp", opendp_mechanisms),
}


def timed(name: str) -> dict[str, object]:
    """The times of one library, or why there are none."""
    package, measure = PEERS[name]
    try:
        return {"version": version(package), "times": measure()}
    except Exception as failure:  # whatever a peer does must not stop the others
        lines = str(failure).splitlines() or [""]
        # no paths of this machine in a published result
        message = re.sub(r"\s*\(?/\S+", "", lines[0])[:80]
        return {"reason": f"{type(failure).__name__}: {message}"}


if __name__ == "__main__":
    json.dump(timed(sys.argv[1]), sys.stdout)
