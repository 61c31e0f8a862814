"""The data of `utility.py`, and what other libraries release of them. The latter prints JSON.

`utility_peers.py OpenDP 0 2 1000` runs in bench/.venv, takes the first of every two settings, each
at most 1000 times, and prints {"version": ..., "released": {setting: values}, "digests": {data:
...}}, or {"reason": ...}. This file needs no part of lastbit; `utility.py` imports the data.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from importlib.metadata import version

import numpy as np

LOWER, UPPER = 0, 500
SIZES = (101, 1001, 10_001, 100_001)
EPSILONS = ("0.1", "1", "4")
LEVELS = ("1/2", "9/10")
CANDIDATES = 1 << 10

Floats = np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One question: which quantile, of which data, how many of them, at which epsilon."""

    data: str
    level: str
    size: int
    epsilon: str

    @property
    def name(self) -> str:
        return f"{self.data} {self.level} {self.size} {self.epsilon}"


def settings() -> list[Setting]:
    """Every question, in the order of the tables."""
    return [
        Setting(data=data, level=level, size=size, epsilon=epsilon)
        for data in DATA
        for level in LEVELS
        for epsilon in EPSILONS
        for size in SIZES
    ]


def peer_runs(size: int) -> int:
    """How often a peer is asked: less often where one answer takes it a tenth of a second."""
    return 1000 if size <= 1001 else 200


def candidates(count: int = CANDIDATES) -> Floats:
    """The middles of equal cells between the bounds: floats hold them exactly."""
    return LOWER + (2 * np.arange(count) + 1) * ((UPPER - LOWER) / (2 * count))


# ---------------------------------------------------------------- the data


def waits(rng: np.random.Generator, size: int) -> Floats:
    """exponential waiting times of mean 50"""
    return rng.exponential(50, size)


def incomes(rng: np.random.Generator, size: int) -> Floats:
    """log-normal incomes in thousands: median 60, the standard deviation of the logarithm 0.8"""
    return 60 * rng.lognormal(0, 0.8, size)


def uniform(rng: np.random.Generator, size: int) -> Floats:
    """uniform on the whole range"""
    return rng.uniform(LOWER, UPPER, size)


def camps(rng: np.random.Generator, size: int) -> Floats:
    """two camps around 100 and 400 (standard deviation 5), and one record at 250, the median"""
    half = size // 2
    return np.concatenate((rng.normal(100, 5, half), [250], rng.normal(400, 5, size - half - 1)))


def ages(rng: np.random.Generator, size: int) -> Floats:
    """whole numbers with many ties: ages around 45 (standard deviation 18), from 18 to 100"""
    return np.clip(np.rint(rng.normal(45, 18, size)), 18, 100)


def constant(rng: np.random.Generator, size: int) -> Floats:
    """nearly constant: a gauge that shows 200.3, give or take 0.0001"""
    return rng.normal(200.3, 0.0001, size)


DATA: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "waits": waits,
    "incomes": incomes,
    "uniform": uniform,
    "camps": camps,
    "ages": ages,
    "constant": constant,
}


def data_of(name: str, size: int) -> Floats:
    """The data set of this name and size: the same in every run, and within the bounds."""
    rng = np.random.default_rng([list(DATA).index(name), size])
    return np.clip(DATA[name](rng, size), LOWER, UPPER)


def digest(data: Floats) -> str:
    """To see that all libraries were given the same data."""
    return hashlib.sha256(np.ascontiguousarray(data, "<f8").tobytes()).hexdigest()[:16]


# ---------------------------------------------------------------- the peers


def opendp(setting: Setting, data: Floats, runs: int) -> Iterator[float]:
    """Its private quantile: a noisy maximum of rank scores over the same candidates.

    A changed record is one removed and one added, hence a distance of 2; the number of records is
    public, as everywhere here.
    """
    import opendp.prelude as dp

    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=setting.size)

    def measurement(scale: float) -> dp.Measurement:
        return dp.m.make_private_quantile(
            domain,
            dp.symmetric_distance(),
            dp.max_divergence(),
            candidates().tolist(),
            float(Fraction(setting.level)),
            scale,
        )

    epsilon = float(setting.epsilon)
    scale = dp.binary_search_param(measurement, d_in=2, d_out=epsilon)
    release = measurement(scale)
    return (release(data) for _ in range(runs))


def diffprivlib(setting: Setting, data: Floats, runs: int) -> Iterator[float]:
    """Its quantile: the exponential mechanism, in floats, on the gaps between the records."""
    from diffprivlib.tools import quantile

    level, epsilon = float(Fraction(setting.level)), float(setting.epsilon)
    return (
        float(quantile(data, level, epsilon=epsilon, bounds=(LOWER, UPPER))) for _ in range(runs)
    )


PEERS = {"OpenDP": ("opendp", opendp), "diffprivlib": ("diffprivlib", diffprivlib)}


def released(name: str, part: int, parts: int, most: int) -> dict[str, object]:
    """What one library releases in its part of the settings, or why it does not."""
    package, release = PEERS[name]
    values, digests = {}, {}
    try:
        # by size, so that the slow ones are shared out evenly
        for setting in sorted(settings(), key=lambda s: s.size)[part::parts]:
            data = data_of(setting.data, setting.size)
            digests[f"{setting.data} {setting.size}"] = digest(data)
            runs = min(most, peer_runs(setting.size))
            values[setting.name] = list(release(setting, data, runs))
        return {"version": version(package), "released": values, "digests": digests}
    except Exception as failure:  # whatever a peer does must not stop the others
        lines = str(failure).splitlines() or [""]
        # no paths of this machine in a published result
        message = re.sub(r"\s*\(?/\S+", "", lines[0])[:80]
        return {"reason": f"{type(failure).__name__}: {message}"}


if __name__ == "__main__":
    library, *numbers = sys.argv[1:]
    json.dump(released(library, *map(int, numbers)), sys.stdout)
