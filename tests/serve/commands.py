"""`lastbit serve` and `lastbit demo --serve` as a person starts them: a process, and its lines."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lastbit.cli.demo import CARD, write_visits

PATIENCE = 60.0
ROWS = 20_000
LINK = re.compile(r"https?://\S+/link/[\w-]+")


def hospital(folder: Path, card: str = CARD, rows: int = ROWS) -> Path:
    """The card of a small hospital, with its visits beside it."""
    write_visits(folder / "visits.parquet", rows)
    (folder / "visits.toml").write_text(card, "utf-8")
    return folder / "visits.toml"


class Process:
    """A command that runs, and what it has printed so far."""

    def __init__(self, folder: Path, words: tuple[str, ...], **files: Any) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-u", "-m", "lastbit", *words],
            cwd=folder,
            env={**os.environ, "NO_COLOR": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            **files,
        )
        self._lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.append(line)

    @property
    def text(self) -> str:
        return "".join(self._lines)

    def until(self, words: str) -> str:
        """All that was printed, once it holds the words."""
        end = time.monotonic() + PATIENCE
        while words not in self.text:
            if self.process.poll() is not None:
                self._reader.join(PATIENCE)
                raise AssertionError(f"ended with {self.process.returncode}:\n{self.text}")
            assert time.monotonic() < end, f"no {words!r} in\n{self.text}"
            time.sleep(0.02)
        return self.text

    @property
    def address(self) -> str:
        found = re.search(r"http://127\.0\.0\.1:\d+", self.until("http://"))
        assert found is not None
        return found[0]

    @property
    def links(self) -> list[str]:
        """The one-time links, in the order in which they were printed."""
        self.until("/link/")
        time.sleep(0.1)  # the other two of a demo
        return LINK.findall(self.text)

    def ended(self, by: signal.Signals | None = signal.SIGTERM) -> int:
        """Send a signal, and wait for the status."""
        if by is not None:
            self.process.send_signal(by)
        status = self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        return status


@contextmanager
def running(folder: Path, *words: str, **files: Any) -> Iterator[Process]:
    """A command that goes on until it is ended, by the test or after it."""
    one = Process(folder, words, **files)
    try:
        yield one
    finally:
        one.process.kill()
        one.process.wait()
        one._reader.join(PATIENCE)
        assert one.process.stdout is not None
        one.process.stdout.close()
