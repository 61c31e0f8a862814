"""Draws 10^8 numbers with `lastbit.stream` in a process of its own and prints time and memory."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import lastbit

SCALE = 1000
TOTAL = 10**8


def peak_memory() -> float:
    """The most memory this process ever held, in MB.

    Linux's own counter for the program: `getrusage` would also count the parent that started it.
    """
    try:
        status = Path("/proc/self/status").read_text("utf-8")
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024
    except (OSError, IndexError):
        import resource

        unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def main() -> None:
    imported = peak_memory()
    start = time.perf_counter_ns()
    count = sum(
        block.size for block in lastbit.stream(lastbit.discrete_laplace, SCALE, total=TOTAL)
    )
    nanoseconds = time.perf_counter_ns() - start
    assert count == TOTAL
    json.dump({"ns": nanoseconds / TOTAL, "extra_mb": peak_memory() - imported}, sys.stdout)


if __name__ == "__main__":
    main()
