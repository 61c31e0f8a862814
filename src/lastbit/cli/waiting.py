"""A sign of life for work that takes more than a second."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE = 1.0  # seconds before a sign of life is worth the reader's attention


@contextmanager
def waiting(words: str) -> Iterator[None]:
    """Show a spinner and the words on stderr, in a terminal only, once a second has gone by."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    status = console.status(words)
    timer = threading.Timer(PATIENCE, status.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        status.stop()
