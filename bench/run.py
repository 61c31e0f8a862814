"""Runs the benchmarks: all of them, or those named. See README.md.

    python bench/run.py [sampling ...] [--no-peers]

It is a report, not a test: the exit status is 0 also where a target is missed.
"""

from __future__ import annotations

import argparse
from types import ModuleType

import beyond
import mechanisms
import report
import sampling
from measure import Measurement, Step, pinned, quietest_core
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

BENCHMARKS: dict[str, ModuleType] = {
    "sampling": sampling,
    "mechanisms": mechanisms,
    "beyond": beyond,
}


def main() -> None:
    """Run, show and save each benchmark."""
    parser = argparse.ArgumentParser(description="Run lastbit's benchmarks.")
    parser.add_argument("names", nargs="*", metavar="name", help=f"of {', '.join(BENCHMARKS)}")
    parser.add_argument("--no-peers", action="store_true", help="leave other libraries out")
    options = parser.parse_args()
    unknown = set(options.names) - set(BENCHMARKS)
    if unknown:
        parser.error(f"no benchmark is called {', '.join(sorted(unknown))}")
    console = Console(highlight=False)
    for name in options.names or BENCHMARKS:
        module = BENCHMARKS[name]
        measurements = measured(console, module.steps(peers=not options.no_peers))
        report.show(console, module.TITLE, measurements)
        path = report.write(name, measurements)
        console.print(f"Figures, machine and commit: {path.relative_to(report.ROOT)}")


def measured(console: Console, steps: list[Step]) -> list[Measurement]:
    """What all the steps measured, on one core, with a line that says where we are."""
    console.print(f"Measuring in {len(steps)} steps on one core; about a minute.")
    results = []
    columns = (
        BarColumn(20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=console, transient=True, auto_refresh=False) as progress:
        task = progress.add_task("", total=len(steps))
        for step in steps:
            progress.update(task, description=step.title, refresh=True)
            with pinned(quietest_core()):
                results += step.run()
            progress.advance(task)
    return results


if __name__ == "__main__":
    main()
