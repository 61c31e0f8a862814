"""The one kind of child process: it is given a task's name and a message, and answers with one.

Law      a child ends when its parent does, however that ends: a thread of it reads the pipe from
         the parent, and leaves at its end. It cannot have more address space than it is given,
         leaves no core file, and what it prints by itself goes nowhere: its words might be data.
         A task may pause before its last step: it says "ready", and goes on once it is told to
         settle; any other word then ends the child. All children of a card have read the same card:
         once its file is another one, none is started
Checked  tests/serve/test_children.py
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import logging
import os
import queue
import resource
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

Message: TypeAlias = dict[str, Any]
_LOG = logging.getLogger("lastbit.serve")
_LONGEST = 1 << 26  # letters of a line: an answer on made-up rows is the longest
_LATER, _STARTING, _MOST_PAUSE = 3600.0, 120.0, 60
_SETTLING = 120.0
"""Seconds after which a child that was told to settle is taken to be lost."""
SETTLE: Mapping[str, str] = MappingProxyType({"do": "settle"})


class Gone(Exception):
    """The child has ended, or was ended: it took too long, or too much."""


class CardChanged(Gone):
    """It is not started: a card is not the one that the server was started with."""


class Child:
    """A process of ours, for one request at a time; it is started when it is first needed."""

    def __init__(self, module: str, *arguments: str, cards: Iterable[Path] = ()) -> None:
        self._cards = {path: _digest(path) for path in cards}
        self._command = (sys.executable, "-m", module, *arguments, *map(str, self._cards))
        self._process: asyncio.subprocess.Process | None = None
        self._ending: set[asyncio.Task[int]] = set()
        self._lock = asyncio.Lock()
        self._keeping: asyncio.Task[None] | None = None
        self._heard_of = False
        self.failures = 0
        """How often in a row it could not be started."""

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    @property
    def is_up(self) -> bool:
        """Whether it has started, and has not ended."""
        running = self._process is not None and self._process.returncode is None
        return running and self._heard_of

    # ------------------------------------------------------------ start and end

    async def start(self) -> None:
        """Start it, unless it runs, and wait until it is ready."""
        async with self._lock:
            if self.is_up:
                return
            if any(_digest(path) != digest for path, digest in self._cards.items()):
                raise CardChanged
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

    async def up(self) -> None:
        """Wait until it can be asked: who stops waiting does not stop its start."""
        if self._keeping is None or self._keeping.done():
            self._keeping = asyncio.create_task(self._keep_starting())
        await asyncio.shield(self._keeping)

    async def _keep_starting(self) -> None:
        while not self.is_up:
            try:
                await self.start()
                self.failures = 0
            except Gone:
                self.failures += 1
                names = ", ".join(path.name for path in self._cards)
                times = f"{self.failures} times in a row"
                _LOG.error("the process that reads %s does not start, %s", names, times)
                await asyncio.sleep(min(2**self.failures, _MOST_PAUSE))

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
        if self._keeping is not None:
            self._keeping.cancel()
        self.kill()
        await asyncio.gather(*self._ending)

    async def renew(self) -> None:
        """End it, whatever it does; another one is on its way then."""
        await self.end()
        self._keeping = asyncio.create_task(self._keep_starting())

    # ------------------------------------------------------------ what is asked of it

    async def ask(self, request: Mapping[str, Any], within: float = _LATER) -> Message:
        if self._process is None or self._process.stdin is None:
            raise Gone
        try:
            self._process.stdin.write(json.dumps(dict(request)).encode() + b"\n")
            await self._process.stdin.drain()
        except (ConnectionError, RuntimeError):
            raise Gone from None
        return await self.heard(within)

    async def heard(self, within: float) -> Message:
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

    async def ready(self, request: Message) -> bool:
        """Let it work; True when it waits to be told to settle, False if it failed or has ended."""
        try:
            return "ready" in await self.ask(request)
        except Gone:
            return False

    async def settle(self) -> Message:
        """Let it finish; what became of it."""
        try:
            return await self.ask(SETTLE, _SETTLING)
        except Gone:
            return {"failed": "failed"}


def _digest(path: Path) -> str | None:
    with contextlib.suppress(OSError):
        return hashlib.sha256(path.read_bytes()).hexdigest()
    return None


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

    def _say(self, message: Mapping[str, Any]) -> None:
        self._out.write(json.dumps(message) + "\n")
        self._out.flush()

    def pause(self) -> None:
        """Say that nothing is left to do but to write it down, and wait to be told to."""
        self._say({"ready": True})
        if self._lines.get() != SETTLE:
            os._exit(1)  # who asks something else does not want it written down

    def serve(self, answer: Callable[[Message], Mapping[str, Any]]) -> None:
        """Answer every line, until the parent is gone. An error becomes its kind and its words."""
        # late: children are started often, and this is what they need then
        from lastbit.errors import InvalidParameter, LastbitError

        self._say({"ready": True})
        while True:
            request = self._lines.get()
            try:
                told = answer(request)
            except MemoryError:
                os._exit(1)  # who knows what is left of us
            except Exception as error:  # words of ours hold nobody's data; others may
                words = str(error) if isinstance(error, LastbitError) else ""
                told = {"error": type(error).__name__, "words": words}
                told |= {"said": error.said} if isinstance(error, InvalidParameter) else {}
            self._say(told)


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
