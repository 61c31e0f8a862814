"""Child processes that answer through a pipe, and interruptions at every step of a draw."""

import json
import os
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any, NoReturn

from lastbit.sampling import bits, blocks, draw
from lastbit.sampling.uniform import uniform_below

WIDE = 1 << 62


def scalars(count: int) -> list[int]:
    """Single draws: they come from the pool made ahead."""
    return [uniform_below(WIDE) for _ in range(count)]


def send_scalars(connection: Any, count: int) -> None:
    """What a worker does, whichever way it was started."""
    connection.send(scalars(count))
    connection.close()


class Answer:
    """A list of integers on its way from a child, through a pipe."""

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()
        self._home = os.getpid()

    def away(self) -> bool:
        """Whether this is the child."""
        return os.getpid() != self._home

    def give(self, work: Callable[[], list[int]]) -> NoReturn:
        """In the child: send what `work` returns, and never come back."""
        try:
            text = json.dumps(work()).encode()
            while text:
                text = text[os.write(self._writer, text) :]
            os._exit(0)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)

    def take(self, pid: int) -> list[int]:
        """In the parent: what the child sent."""
        os.close(self._writer)
        with os.fdopen(self._reader, "rb") as pipe:
            text = pipe.read()
        _, status = os.waitpid(pid, 0)
        assert status == 0, f"the child ended with status {status}"
        return json.loads(text)


def in_child(work: Callable[[], list[int]], *, fork: Callable[[], int] = os.fork) -> list[int]:
    """What `work` returns in a child process."""
    answer = Answer()
    pid = fork()
    if pid == 0:
        answer.give(work)
    return answer.take(pid)


# -- interruptions --


@dataclass
class Trace:
    """How far a piece of work has come."""

    steps: int = 0
    last_look: int = 0
    """The step at which `bits.py` was last entered: beyond, the result is only handed over."""


def interrupted(
    work: Callable[[], Any], act: Callable[[], object], *, at: int, event: str
) -> tuple[Any, Trace]:
    """The result of `work`, with `act` called in its midst as a signal handler would be.

    Steps are lines or opcodes (`event`) of `draw.py`, `blocks.py` and `bits.py`; step 0 is none.
    """
    trace = Trace()

    def step(frame: FrameType, what: str, argument: object) -> Any:
        if what == event:
            trace.steps += 1
            if trace.steps == at:
                act()
        return step

    def enter(frame: FrameType, what: str, argument: object) -> Any:
        if frame.f_code.co_filename not in (bits.__file__, blocks.__file__, draw.__file__):
            return None
        if frame.f_code.co_filename == bits.__file__:
            trace.last_look = trace.steps
        frame.f_trace_opcodes = event == "opcode"
        return step

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        result = work()
    finally:
        sys.settrace(before)
    return result, trace


def number_of_steps(work: Callable[[], Any], *, event: str) -> int:
    return interrupted(work, lambda: None, at=0, event=event)[1].steps
