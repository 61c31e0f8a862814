"""The cases of `accounting.py`, and what other accountants say of them. The latter prints JSON.

`accounting_peers.py dp_accounting` runs in bench/.venv and prints {"version": ..., "found": {case:
{delta: [epsilon, seconds]}}}, or {"reason": ...}; with `training`, `rare` or `box` after it, of
these settings of DP-SGD. This file needs no part of lastbit.
"""

from __future__ import annotations

import json
import math
import random
import signal
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from typing import Any, NamedTuple, TypeAlias

Parts: TypeAlias = list[tuple[str, tuple[float, ...], int]]
DELTAS = ("1e-5", "1e-10", "1e-30")
REPEATS = 2
LONGEST_CALL_SECONDS = 60
# name: parts, each a kind, its parameters and how often it occurs
CASES: dict[str, Parts] = {
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


class Setting(NamedTuple):
    """Steps of DP-SGD, and the deltas to ask for."""

    rate: float
    multiplier: float
    steps: int
    deltas: tuple[str, ...] = ("1e-5", "1e-8", "1e-10")

    @property
    def name(self) -> str:
        return f"{self.rate:g} | {self.multiplier:g} | {self.steps:,}"

    @property
    def parts(self) -> Parts:
        return [("sampled", (self.rate, self.multiplier), self.steps)]


def anywhere(count: int) -> list[Setting]:
    """Settings all over what training uses: even in logarithms, always the same."""
    draw = random.Random(20261118)

    def between(low: float, high: float, digits: int) -> float:
        return float(f"{math.exp(draw.uniform(math.log(low), math.log(high))):.{digits}g}")

    return [
        Setting(
            between(1e-6, 0.5, 3),
            between(0.3, 10, 3),
            int(between(1, 1e6, 7)),
            (f"{between(1e-12, 1e-4, 2):g}",),
        )
        for _ in range(count)
    ]


SETTINGS: dict[str, list[Setting]] = {
    "training": [
        Setting(0.004, 1.1, 15_000),  # 240 of 60,000 examples, 60 epochs
        Setting(0.01, 1.0, 10_000),
        Setting(0.01, 1.0, 1),
        Setting(0.01, 0.5, 1_000),
        Setting(0.001, 0.5, 10_000),
        Setting(0.1, 4.0, 500),
        Setting(0.5, 20.0, 1_000),
    ],
    "rare": [
        Setting(1e-5, 1.0, 10**6, ("1e-6",)),
        Setting(1e-5, 1.0, 10**5, ("1e-6",)),
        Setting(1e-4, 1.0, 10**6, ("1e-6",)),
        Setting(1e-4, 1.0, 10**5, ("1e-6",)),
        Setting(1e-4, 1.0, 10**4, ("1e-12",)),
        Setting(1e-5, 0.5, 100, ("1e-4",)),  # one large loss decides
        Setting(1e-6, 0.3, 10**6, ("1e-6",)),
        Setting(3.43e-6, 0.331, 103_416, ("2.9e-9",)),
    ],
    "box": anywhere(120),
}


def dp_accounting(parts: Parts, delta: float) -> float:
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


def prv_accountant(parts: Parts, delta: float) -> float:
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


def opacus(parts: Parts, delta: float, *, kind: str) -> float:
    """One of Opacus' accountants of DP-SGD, as its engine asks it; without sampling at rate 1."""
    from opacus.accountants import create_accountant  # only its own environment has it

    accountant = create_accountant(kind)
    for rate, multiplier, steps in _of_training(parts):
        accountant.history.append((multiplier, rate, steps))
    return float(accountant.get_epsilon(delta=delta))


def dp_accounting_rdp(parts: Parts, delta: float) -> float:
    """Google's accountant by Rényi divergences, with its default orders."""
    import dp_accounting as dp  # only this library's own environment has it

    accountant = dp.rdp.RdpAccountant()
    for rate, multiplier, steps in _of_training(parts):
        event = dp.PoissonSampledDpEvent(rate, dp.GaussianDpEvent(multiplier))
        accountant.compose(event, steps)
    return float(accountant.get_epsilon(delta))


def tensorflow_privacy(parts: Parts, delta: float) -> float:
    """What TensorFlow Privacy says of examples, a batch size and a number of epochs."""
    import tensorflow_privacy  # only this library's own environment has it

    [(rate, multiplier, steps)] = _of_training(parts)
    examples = 10**6
    epsilon, _ = tensorflow_privacy.compute_dp_sgd_privacy(
        examples, round(rate * examples), multiplier, (steps - 0.5) * rate, delta
    )  # it rounds the steps up
    return float(epsilon)


def autodp(parts: Parts, delta: float) -> float:
    """autodp's own mechanism of noisy SGD."""
    from autodp.mechanism_zoo import NoisySGD_Mechanism  # only its own environment has it

    [(rate, multiplier, steps)] = _of_training(parts)
    return float(NoisySGD_Mechanism(rate, multiplier, steps).get_approxDP(delta))


def _of_training(
    parts: Parts,
) -> list[tuple[float, float, int]]:
    """Rates, multipliers and steps of DP-SGD; anything else is refused."""
    if any(name not in ("gaussian", "sampled") for name, _, _ in parts):
        raise ValueError("is about steps of DP-SGD only")
    return [(1.0, n[0], t) if len(n) == 1 else (n[0], n[1], t) for _, n, t in parts]


PEERS: dict[str, tuple[str, Callable[..., float]]] = {
    "dp_accounting": ("dp-accounting", dp_accounting),
    "dp_accounting RDP": ("dp-accounting", dp_accounting_rdp),
    "prv_accountant": ("prv-accountant", prv_accountant),
    **{
        f"Opacus {kind.upper()}": ("opacus", partial(opacus, kind=kind))
        for kind in ("rdp", "prv", "gdp")
    },
    "TensorFlow Privacy": ("tensorflow-privacy", tensorflow_privacy),
    "autodp": ("autodp", autodp),
}


def measured(call: Callable[[], float], repeats: int = REPEATS) -> list[object]:
    """The answer, and the least time of a few runs; or the name of the error."""
    least, found = math.inf, math.nan
    signal.setitimer(signal.ITIMER_PROF, LONGEST_CALL_SECONDS)  # of computing
    try:
        for _ in range(repeats):
            start = time.perf_counter()
            found = call()
            least = min(least, time.perf_counter() - start)
    except Exception as error:
        return [type(error).__name__, None]
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return [found, least]


def _too_long(*_: object) -> None:
    raise TimeoutError


def main() -> None:
    """Print what one peer finds."""
    warnings.filterwarnings("ignore")
    signal.signal(signal.SIGPROF, _too_long)
    package, epsilon = PEERS[sys.argv[1]]
    asked: list[tuple[str, Any, tuple[str, ...]]] = [
        (name, parts, DELTAS) for name, parts in CASES.items()
    ]
    repeats = REPEATS
    if sys.argv[2:]:
        asked = [(s.name, s.parts, s.deltas) for s in SETTINGS[sys.argv[2]]]
        repeats = 1
    found = {
        name: {d: measured(partial(epsilon, parts, float(d)), repeats) for d in deltas}
        for name, parts, deltas in asked
    }
    print(json.dumps({"version": version(package), "found": found}))


if __name__ == "__main__":
    main()
