"""The mechanisms as people call them: against OpenDP's, and against their own limits.

lastbit releases vectors of 10^6 values, OpenDP vectors of 10^4: its time per value is the same at
any length, and a million of its releases would take minutes.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from measure import Call, Measurement, Step, Target, least, repeated
from peer_environment import install, is_installed, times
from peers import CANDIDATES

import lastbit as lb

TITLE = "Mechanisms: time of one released value"
SIZE = 10**6
CALLS = 5_000
PEER = "OpenDP"

# how many times faster than OpenDP each piece of work has to be
FASTER = {
    "laplace integers": 300,
    "gaussian integers": 300,
    "laplace floats": 400,
    "gaussian floats": 400,
    "randomized response": 150,
}


def steps(*, peers: bool) -> list[Step]:
    """Everything this benchmark measures, in the order of the table."""
    own = [
        Step(title="one call", run=scalars),
        Step(title="one of 10^6 candidates", run=selection),
        Step(title="constructing calibrated mechanisms", run=construction),
    ]
    if not peers:
        return own
    title = PEER if is_installed(PEER) else f"{PEER}: installing it into bench/.venv"
    return [*own, Step(title=title, run=compared)]


def scalars() -> list[Measurement]:
    """`release` of one number."""
    work = {
        "Laplace, an integer": partial(lb.Laplace(sensitivity=1, epsilon="1/2").release, 42),
        "Laplace, a float": partial(
            lb.Laplace(sensitivity=1, epsilon="1/2", grid="auto").release, 42.5
        ),
        "Gaussian, an integer": partial(lb.Gaussian(sensitivity=1, rho="1/8").release, 42),
        "Gaussian, a float": partial(
            lb.Gaussian(sensitivity=1, rho="1/8", grid="auto").release, 42.5
        ),
        "RandomizedResponse, an answer": partial(lb.RandomizedResponse(epsilon=1).release, 1),
    }
    return [
        Measurement(
            section="release, one call",
            what=what,
            ours=least(repeated(call, CALLS))[0] / CALLS,
            target=Target(limit=5_000),
        )
        for what, call in work.items()
    ]


def selection() -> list[Measurement]:
    """Per candidate; OpenDP's noisy max takes about 55 ns."""
    integers = np.random.default_rng(0).integers(0, 1000, CANDIDATES)
    rows = []
    for kind in (lb.Exponential, lb.PermuteAndFlip, lb.ReportNoisyMax):
        mechanism = kind(sensitivity=1, epsilon="1/5")
        rows.append(
            Measurement(
                section="one of 10^6, per candidate",
                what=f"{kind.__name__}, integers",
                ours=least(partial(mechanism.release, integers))[0] / CANDIDATES,
                target=Target(limit=55),
            )
        )
    floats = integers + 0.25
    rows.append(
        Measurement(
            section="one of 10^6, per candidate",
            what="Exponential, floats",
            ours=least(partial(lb.Exponential(sensitivity=1, epsilon="1/5").release, floats))[0]
            / CANDIDATES,
            target=Target(limit=55),
        )
    )
    return rows


def construction() -> list[Measurement]:
    """A mechanism for a promise nobody asked for before: the slowest of several."""
    makers: dict[str, Callable[[str], object]] = {
        "Laplace(epsilon)": lambda e: lb.Laplace(sensitivity=1, epsilon=e),
        "Gaussian(epsilon, delta), exact": lambda e: lb.Gaussian(
            sensitivity=1, epsilon=e, delta="1e-6"
        ),
        "Gaussian(epsilon, delta), floats": lambda e: lb.Gaussian(
            sensitivity=1, epsilon=e, delta="1e-6", grid="auto"
        ),
        "Gaussian(epsilon, delta), vector": lambda e: lb.Gaussian(
            sensitivity=1, epsilon=e, delta="1e-6", dimension=100
        ),
        "RandomizedResponse(epsilon)": lambda e: lb.RandomizedResponse(epsilon=e),
        "ThresholdedHistogram": lambda e: lb.ThresholdedHistogram(
            epsilon=e, delta="1e-9", keys_per_person=3
        ),
    }
    return [
        Measurement(
            section="constructing, calibrated",
            what=what,
            ours=max(least(partial(make, _fresh(base)), repeats=3)[0] for base in (0, 1, 4)),
            target=Target(limit=20e6),
        )
        for what, make in makers.items()
    ]


def _fresh(base: int) -> str:
    return f"{base}.{int.from_bytes(os.urandom(3)):08d}1"


def compared() -> list[Measurement]:
    """The same work by OpenDP, in an environment of its own."""
    reason = install(PEER)
    result: dict[str, Any] = {"reason": reason} if reason else times("OpenDP mechanisms")
    if "reason" in result:
        return [Measurement(section=PEER, what=f"not measured: {result['reason']}", peer=True)]
    rows = []
    for work, peer_time in result["times"].items():
        label, call, count = our_work()[work]
        faster = FASTER.get(work)
        target = Target(limit=1 / faster, of="ratio") if faster else None
        rows.append(
            Measurement(
                section=f"{PEER} {result['version']}",
                what=label,
                ours=least(call)[0] / count,
                reference=peer_time,
                reference_name=PEER,
                target=target,
                peer=True,
            )
        )
    return rows


def our_work() -> dict[str, tuple[str, Call, int]]:
    """For each name of work in `peers.py` its label, the same work by lastbit, and its size."""
    integers, floats = np.arange(SIZE), np.linspace(0, 1, SIZE)
    answers = np.arange(SIZE) % 2 == 1
    scores = np.random.default_rng(0).integers(0, 1000, CANDIDATES)
    laplace = lb.Laplace(sensitivity=1, scale=2)
    gaussian = lb.Gaussian(sensitivity=1, standard_deviation=2, dimension=SIZE)
    laplace_floats = lb.Laplace(sensitivity=1, scale=2, grid="auto", dimension=SIZE)
    gaussian_floats = lb.Gaussian(sensitivity=1, standard_deviation=2, grid="auto", dimension=SIZE)
    respond = lb.RandomizedResponse(keep="3/4")
    noisy_max = lb.ReportNoisyMax(sensitivity=1, scale=10)
    return {
        "laplace integers": ("Laplace, integers", partial(laplace.release, integers), SIZE),
        "laplace floats": ("Laplace, floats", partial(laplace_floats.release, floats), SIZE),
        "gaussian integers": ("Gaussian, integers", partial(gaussian.release, integers), SIZE),
        "gaussian floats": ("Gaussian, floats", partial(gaussian_floats.release, floats), SIZE),
        "laplace one": ("Laplace, one call", repeated(partial(laplace.release, 42), CALLS), CALLS),
        "gaussian one": (
            "Gaussian, one call",
            repeated(partial(gaussian.release, 42), CALLS),
            CALLS,
        ),
        "randomized response": (
            "randomised response, per bit",
            partial(respond.release, answers),
            SIZE,
        ),
        "select": ("noisy max of 10^6", partial(noisy_max.release, scores), CANDIDATES),
    }
