"""Many draws: in bounded memory, and in two threads."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from functools import partial
from pathlib import Path
from threading import Thread

from measure import EVERY_CORE, Call, Measurement, Target, least, pinned

import lastbit as lb

THREAD_DRAWS = 10**7
STREAMS = 3
# Two threads that hash gain less than this only where no second core is free.
FAIR_CONTROL = 1.8


def streaming() -> list[Measurement]:
    """In a process of its own, so that its memory is its own."""
    script = [sys.executable, str(Path(__file__).with_name("streaming.py"))]
    outputs = [subprocess.check_output(script, text=True) for _ in range(STREAMS)]
    results = [json.loads(output) for output in outputs]
    row = partial(Measurement, section="stream of 10^8 draws")
    return [
        row(
            what="memory beyond the import",
            ours=max(result["extra_mb"] for result in results),
            unit="MB",
            target=Target(limit=100),
        ),
        row(what="discrete_laplace(1000)", ours=min(result["ns"] for result in results)),
    ]


def threads() -> list[Measurement]:
    """Twice the work in two threads against once in one, on all cores.

    The control hashes, which runs side by side in Python as well as anything can: if it does not
    gain, another program has the second core and nothing can be said.
    """
    laws = {
        "discrete_laplace(1000)": partial(lb.discrete_laplace, 1000, size=THREAD_DRAWS),
        "discrete_gaussian(σ = 1000)": partial(
            lb.discrete_gaussian, standard_deviation=1000, size=THREAD_DRAWS
        ),
    }
    with pinned(EVERY_CORE):
        return [thread_gain(what, draw) for what, draw in laws.items()]


def thread_gain(what: str, draw: Call) -> Measurement:
    block = bytes(1 << 26)
    control = partial(hashlib.sha256, block)
    one, two, control_one, control_two = least(
        partial(side_by_side, draw, 1),
        partial(side_by_side, draw, 2),
        partial(side_by_side, control, 1),
        partial(side_by_side, control, 2),
    )
    possible = 2 * control_one / control_two
    return Measurement(
        section="two threads, 10^7 draws each",
        what=what,
        ours=2 * one / two,
        reference=possible,
        reference_name="sha256",
        unit="×",
        target=Target(limit=1.7, at_least=True),
        note="" if possible >= FAIR_CONTROL else f"no core free: hashing gained × {possible:.2f}",
    )


def side_by_side(call: Call, count: int) -> None:
    workers = [Thread(target=call) for _ in range(count)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
