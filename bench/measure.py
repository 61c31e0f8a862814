"""What every benchmark needs: a clock, one core, a table and a record.

A benchmark module offers `steps(peers)`, a list of `Step`s; each step returns `Measurement`s. The
runner (`run.py`) calls them one after the other, prints one table and writes one JSON file.

Times are the least of several repeats after a warm-up: noise of the machine only ever adds. What
is compared is measured in turns, so that a noisy minute hits both sides.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Literal

REPEATS = 15
EVERY_CORE = frozenset(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else frozenset()

Unit = Literal["ns", "MB", "×", ""]
Call = Callable[[], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A bound on what was measured, or on its ratio to the reference."""

    limit: float
    of: Literal["ours", "ratio"] = "ours"
    at_least: bool = False

    def met_by(self, value: float) -> bool:
        return value >= self.limit if self.at_least else value <= self.limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One line of the table. `ours` or `reference` is None where it was not measured."""

    section: str
    what: str
    ours: float | None = None
    reference: float | None = None
    reference_name: str = ""
    unit: Unit = "ns"
    target: Target | None = None
    note: str = ""
    """Why there is no figure, or no verdict."""
    peer: bool = False
    """Whether the reference is another library that does the same work."""

    @property
    def ratio(self) -> float | None:
        if self.ours is None or not self.reference:
            return None
        return self.ours / self.reference

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None without a target, a figure or a fair trial."""
        if self.target is None or self.note:
            return None
        value = self.ours if self.target.of == "ours" else self.ratio
        return None if value is None else self.target.met_by(value)

    def record(self) -> dict[str, object]:
        """For the JSON file."""
        return asdict(self) | {"ratio": self.ratio, "met": self.met}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A part of a benchmark that takes a second or more, named for the progress line."""

    title: str
    run: Callable[[], list[Measurement]]


def least(*calls: Call, repeats: int = REPEATS) -> list[float]:
    """The least time of each call in nanoseconds; the calls take turns."""
    for call in calls:
        call()
    times = [[elapsed(call) for call in calls] for _ in range(repeats)]
    return [float(min(column)) for column in zip(*times, strict=True)]


def elapsed(call: Call) -> int:
    """Nanoseconds that one call took."""
    start = time.perf_counter_ns()
    call()
    return time.perf_counter_ns() - start


def repeated(call: Call, count: int) -> Callable[[], None]:
    """`count` calls in a row, for calls too short for the clock."""

    def calls() -> None:
        for _ in range(count):
            call()

    return calls


@contextmanager
def pinned(cores: frozenset[int]) -> Iterator[None]:
    """Run on these cores only, where the system can do that."""
    if not cores:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def quietest_core() -> frozenset[int]:
    """The core on which a fixed loop runs fastest now; empty where cores cannot be chosen."""
    times = {}
    for core in EVERY_CORE:
        with pinned(frozenset({core})):
            times[core] = sum(elapsed(lambda: sum(range(200_000))) for _ in range(20))
    return frozenset({min(times, key=times.__getitem__)}) if times else frozenset()
