"""lastbit against other libraries for differential privacy, with the same parameters."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from measure import Call, Measurement, Step, least, repeated
from peer_environment import PINS, install, is_installed, times
from peers import CANDIDATES, VECTOR

import lastbit as lb

SCALAR_CALLS = 10_000


def against_peers() -> list[Step]:
    """One step a library; the first time it is installed, into an environment of its own."""
    return [
        Step(
            title=name if is_installed(name) else f"{name}: installing it into bench/.venv",
            run=partial(compared, name),
        )
        for name in PINS
    ]


def compared(name: str) -> list[Measurement]:
    """Everything a library was timed at in this run, or the reason why not."""
    reason = install(name)
    result: dict[str, Any] = {"reason": reason} if reason else times(name)
    if "reason" in result:
        return [Measurement(section=name, what=f"not measured: {result['reason']}", peer=True)]
    rows = []
    for work, peer_time in result["times"].items():
        label, call, count = our_work()[work]
        (our_time,) = least(call)
        rows.append(
            Measurement(
                section=f"{name} {result['version']}",
                what=label,
                ours=our_time / count,
                reference=peer_time,
                reference_name=name,
                peer=True,
            )
        )
    return rows


def our_work() -> dict[str, tuple[str, Call, int]]:
    """For each name of work in `peers.py` its label, the same work by lastbit, and its size."""
    work: dict[str, tuple[str, Call, int]] = {}
    for name, scale in (("1", 1), ("100", 100), ("2^40", 2**40)):
        laplace = partial(lb.discrete_laplace, scale, size=VECTOR)
        gaussian = partial(lb.discrete_gaussian, standard_deviation=scale, size=VECTOR)
        work[f"laplace vector {name}"] = f"Laplace {name}, 10^4 draws", laplace, VECTOR
        work[f"gaussian vector {name}"] = f"Gaussian {name}, 10^4 draws", gaussian, VECTOR
    for law, label, draw in (
        ("laplace", "Laplace 10", partial(lb.discrete_laplace, 10)),
        ("gaussian", "Gaussian 10", partial(lb.discrete_gaussian, standard_deviation=10)),
        ("gaussian 8", "Gaussian 8", partial(lb.discrete_gaussian, standard_deviation=8)),
    ):
        calls = repeated(draw, SCALAR_CALLS)
        work[f"{law} scalar"] = f"{label}, one call", calls, SCALAR_CALLS
    select = partial(lb.choice_exp, candidates(), rate="1/10")
    work["select"] = "one of 10^6, per candidate", select, CANDIDATES
    return work


def candidates() -> np.ndarray:
    """Scores to select from, the same as in `peers.py`."""
    return np.random.default_rng(0).integers(0, 1000, CANDIDATES)
