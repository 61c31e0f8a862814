"""A bar for work that says how far it is."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE = 1.0  # seconds before a bar is worth the reader's attention


@contextmanager
def progress_bar() -> Iterator[Callable[[float, str], None]]:
    """A function of (share done, words); it draws on stderr, in a terminal, after a second."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    bar = Progress(*columns, console=console, transient=True)
    start, shown = time.monotonic(), False
    task = bar.add_task("", total=1.0)

    def tell(share: float, words: str) -> None:
        nonlocal shown
        if not shown and console.is_terminal and time.monotonic() - start > PATIENCE:
            bar.start()
            shown = True
        bar.update(task, completed=share, description=words)

    try:
        yield tell
    finally:
        if shown:
            bar.stop()
