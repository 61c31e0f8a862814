"""The cases of `accounting.py`, and what other accountants say of them. The latter prints JSON.

`accounting_peers.py dp_accounting` runs in bench/.venv and prints {"version": ..., "found": {case:
{delta: [epsilon, seconds]}}}, or {"reason": ...}. This file needs no part of lastbit.
"""

from __future__ import annotations

import json
import math
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from importlib.metadata import version

DELTAS = ("1e-5", "1e-10", "1e-30")
REPEATS = 2
# name: parts, each a kind, its parameters and how often it occurs
CASES: dict[str, list[tuple[str, tuple[float, ...], int]]] = {
    "10^2 Gaussians, mu = 1 in all": [("gaussian", (10.0,), 100)],
    "10^4 Gaussians, mu = 1 in all": [("gaussian", (100.0,), 10**4)],
    "10^5 Gaussians, mu = 1 in all": [("gaussian", (316.227766016838,), 10**5)],
    "10^5 Gaussians, deviation 100": [("gaussian", (100.0,), 10**5)],
    "10^5 Laplace 0.001": [("laplace", (0.001,), 10**5)],
    "10^6 randomised responses 0.001": [("response", (0.001,), 10**6)],
    "1000 Laplace 0.01 and 1000 Gaussians, deviation 100": [
        ("laplace", (0.01,), 1000),
        ("gaussian", (100.0,), 1000),
    ],
    "DP-SGD, rate 0.01, multiplier 1, 10^4 steps": [("sampled", (0.01, 1.0), 10**4)],
}


def dp_accounting(parts: list[tuple[str, tuple[float, ...], int]], delta: float) -> float:
    """Google's accountant, as its documentation shows it, with its default interval."""
    import dp_accounting as dp  # only this library's own environment has it

    relation = dp.NeighboringRelation
    replaced = any(kind == "response" for kind, _, _ in parts)
    accountant = dp.pld.PLDAccountant(
        relation.REPLACE_ONE if replaced else relation.ADD_OR_REMOVE_ONE
    )
    for kind, numbers, times in parts:
        if kind == "gaussian":
            event = dp.GaussianDpEvent(numbers[0])
        elif kind == "laplace":
            event = dp.LaplaceDpEvent(1 / numbers[0])
        elif kind == "response":
            keep = 1 / (1 + math.exp(-numbers[0]))
            event = dp.RandomizedResponseDpEvent(2 * (1 - keep), 2)
        else:
            event = dp.PoissonSampledDpEvent(numbers[0], dp.GaussianDpEvent(numbers[1]))
        accountant.compose(event, times)
    return float(accountant.get_epsilon(delta))


def prv_accountant(parts: list[tuple[str, tuple[float, ...], int]], delta: float) -> float:
    """Microsoft's accountant: its upper bound, with an error of 0.01 allowed."""
    import prv_accountant as prv  # only this library's own environment has it

    kinds = {
        "gaussian": lambda n: prv.GaussianMechanism(noise_multiplier=n[0]),
        "laplace": lambda n: prv.LaplaceMechanism(mu=n[0]),
        "sampled": lambda n: prv.PoissonSubsampledGaussianMechanism(
            sampling_probability=n[0], noise_multiplier=n[1]
        ),
    }
    mechanisms = [kinds[kind](numbers) for kind, numbers, _ in parts]
    counts = [times for _, _, times in parts]
    accountant = prv.PRVAccountant(
        prvs=mechanisms, max_self_compositions=counts, eps_error=0.01, delta_error=delta / 1000
    )
    return float(accountant.compute_epsilon(delta, counts)[2])


def opacus(parts: list[tuple[str, tuple[float, ...], int]], delta: float, *, kind: str) -> float:
    """One of Opacus' accountants of DP-SGD, as its engine asks it; without sampling at rate 1."""
    from opacus.accountants import create_accountant  # only its own environment has it

    accountant = create_accountant(kind)
    for name, numbers, times in parts:
        if name not in ("gaussian", "sampled"):
            raise ValueError("is about steps of DP-SGD only")
        rate, deviation = numbers if name == "sampled" else (1.0, numbers[0])
        accountant.history.append((deviation, rate, times))
    return float(accountant.get_epsilon(delta=delta))


PEERS: dict[str, tuple[str, Callable[..., float]]] = {
    "dp_accounting": ("dp-accounting", dp_accounting),
    "prv_accountant": ("prv-accountant", prv_accountant),
    **{
        f"Opacus {kind.upper()}": ("opacus", partial(opacus, kind=kind))
        for kind in ("rdp", "prv", "gdp")
    },
}


def measured(call: Callable[[], float]) -> list[object]:
    """The answer, and the least time of a few runs; or the name of the error."""
    least, found = math.inf, math.nan
    try:
        for _ in range(REPEATS):
            start = time.perf_counter()
            found = call()
            least = min(least, time.perf_counter() - start)
    except Exception as error:
        return [type(error).__name__, None]
    return [found, least]


def main() -> None:
    """Print what one peer finds."""
    warnings.filterwarnings("ignore")
    package, epsilon = PEERS[sys.argv[1]]
    found = {
        name: {d: measured(lambda p=parts, d=d: epsilon(p, float(d))) for d in DELTAS}
        for name, parts in CASES.items()
    }
    print(json.dumps({"version": version(package), "found": found}))


if __name__ == "__main__":
    main()
