"""A child process that speaks in lines of JSON: how one is started, limited, asked and ended.

Law      a child ends when its parent does, however that ends: a thread of it reads the pipe from
         the parent, and leaves at its end. It cannot have more address space than it is given,
         leaves no core file, and what it prints by itself goes nowhere: its words might be data
Checked  tests/serve/test_children.py
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import queue
import resource
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

Message: TypeAlias = dict[str, Any]
_LONGEST = 1 << 26  # letters of a line: an answer on made-up rows is the longest
_LATER, _STARTING = 3600.0, 120.0


class Gone(Exception):
    """The child has ended, or was ended: it took too long, or too much."""


class Unchanged:
    """Files that children read when they start, as they are now: all have read the same."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._digests = {path: _digest(path) for path in paths}

    @property
    def hold(self) -> bool:
        """Whether none of them has changed since."""
        return all(_digest(path) == digest for path, digest in self._digests.items())


def _digest(path: Path) -> str | None:
    with contextlib.suppress(OSError):
        return hashlib.sha256(path.read_bytes()).hexdigest()
    return None


class Child:
    """A process of ours, for one request at a time; it is started when it is first needed."""

    def __init__(self, module: str, *arguments: str) -> None:
        self._command = (sys.executable, "-m", module, *arguments)
        self._process: asyncio.subprocess.Process | None = None
        self._ending: set[asyncio.Task[int]] = set()
        self._starting = asyncio.Lock()
        self._heard_of = False

    @property
    def pid(self) -> int | None:
        """Of the process, while there is one."""
        return None if self._process is None else self._process.pid

    @property
    def is_up(self) -> bool:
        """Whether it has started, and has not ended."""
        running = self._process is not None and self._process.returncode is None
        return running and self._heard_of

    async def start(self) -> None:
        """Start it, unless it runs, and wait until it is ready."""
        async with self._starting:
            if not self.is_up:
                self._process = await asyncio.create_subprocess_exec(
                    *self._command,
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.DEVNULL,
                    limit=_LONGEST,
                    start_new_session=True,  # Ctrl-C in a terminal is for the parent: slots end
                )
                await self.heard(_STARTING)
                self._heard_of = True

    async def say(self, message: Mapping[str, Any]) -> None:
        """Send a line."""
        if self._process is None or self._process.stdin is None:
            raise Gone
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            await self._process.stdin.drain()
        except (ConnectionError, RuntimeError):
            raise Gone from None

    async def heard(self, within: float = _LATER) -> Message:
        """The next line; if it is not there in time, or nobody waits for it, the child is ended."""
        if self._process is None or self._process.stdout is None:
            raise Gone
        try:
            async with asyncio.timeout(within):
                found: Message = json.loads(await self._process.stdout.readline())
            return found
        except (TimeoutError, ValueError, ConnectionError):  # an ended child says an empty line
            self.kill()
            raise Gone from None
        except BaseException:  # an answer that comes late must not be taken for the next one
            self.kill()
            raise

    def kill(self) -> None:
        """End it at once (SIGKILL)."""
        self._heard_of = False
        if self._process is not None:
            if self._process.returncode is None:
                # not Process.kill: that may reap the child behind the back of the event loop
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self._process.pid, signal.SIGKILL)
            ending = asyncio.ensure_future(self._process.wait())
            self._ending.add(ending)
            ending.add_done_callback(self._ending.discard)
            self._process = None

    async def end(self) -> None:
        """End it at once, and see that it has ended."""
        self.kill()
        await asyncio.gather(*self._ending)


# ---------------------------------------------------------------- inside of a child


class Parent:
    """The other side: what a child hears of its parent, and says to it."""

    def __init__(self) -> None:
        self._lines: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self._out = os.fdopen(os.dup(1), "w", encoding="utf-8")
        nowhere = os.open(os.devnull, os.O_RDWR)
        os.dup2(nowhere, 1)  # whatever prints by itself must not end up among the lines
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        for line in sys.stdin:
            self._lines.put(json.loads(line))
        os._exit(0)  # also in the midst of a statement: there is nobody to answer to

    def heard(self) -> Message:
        """The next line, waited for."""
        return self._lines.get()

    def say(self, message: Mapping[str, Any]) -> None:
        """Send a line."""
        self._out.write(json.dumps(message) + "\n")
        self._out.flush()

    def serve(self, answer: Callable[[Message], Mapping[str, Any]]) -> None:
        """Answer every line, until the parent is gone. An error becomes its kind and its words."""
        self.say({"ready": True})
        while True:
            request = self.heard()
            try:
                told = answer(request)
            except MemoryError:
                os._exit(1)  # who knows what is left of us
            except Exception as error:
                told = failure(error)
            self.say(told)


def failure(error: Exception) -> Message:
    """An error as a line: its words if it is ours, which hold nobody's data, and else its kind."""
    from lastbit.errors import LastbitError  # children are started often: what they need, and late

    words = str(error) if isinstance(error, LastbitError) else ""
    return {"error": type(error).__name__, "words": words}


def limited(*, memory: int | None, nice: int = 0) -> None:
    """Take no more address space than this, leave no core file, and let others go first."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if memory is not None:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    if nice:
        os.nice(nice)


def seconds_left(seconds: int | None) -> None:
    """Use the processor for this many seconds from now, then the system ends us; None: no end."""
    if seconds is None:
        resource.setrlimit(resource.RLIMIT_CPU, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    most = int(used.ru_utime + used.ru_stime) + 1 + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (most, resource.RLIM_INFINITY))
