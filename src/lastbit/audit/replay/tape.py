"""What was recorded of a program: every call of a noise primitive, in order.

A tape holds the inputs of the primitives, which are as secret as the data: nothing prints them.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Protocol

import numpy as np

from lastbit.audit.replay.distance import Observed
from lastbit.audit.replay.taint import plain
from lastbit.errors import InvalidParameter

_LIBRARIES = frozenset({"lastbit", "numpy", "pandas", "polars", "scipy"})
_NOTHING = object()
ADDED = "added noise"


class Rule(Protocol):
    """How far two inputs of a primitive are apart, and what that costs."""

    def observed(self, here: Any, there: Any) -> Observed:
        """From the input on one dataset to that on its neighbour."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Description:
    """A call before it is made: what it protects, and by which parameters.

    `taint` is the law of a draw that is tracked until it is added to something (`taint.py`), and
    None for an output that is left as it is. `coins` holds what draws the same
    coins again for another input, where the output is no release. `group` is the session that a
    question belongs to, `instead` what a replay does in place of the call. `release` says that the
    call is a whole mechanism: nothing but its output comes out of it.
    """

    kind: str
    value: Any = field(default=None, repr=False)
    parameters: Any = field(default=None, repr=False)
    rule: Rule | None = None
    taint: Any = None
    coins: Any = field(default=None, repr=False)
    group: Any = field(default=None, repr=False)
    instead: Any = None
    release: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Call:
    """One call of a primitive: where, what kind, and, never shown, its input and output."""

    kind: str
    where: str
    value: Any = field(repr=False)
    parameters: Any = field(repr=False)
    output: Any = field(repr=False)
    rule: Rule | None = field(repr=False)
    taint: Any = field(default=None, repr=False)
    state: Any = field(default=None, repr=False)
    group: int | None = field(default=None, repr=False)
    release: bool = False


class Tape:
    """The calls of one run, and what the run returned.

    >>> from lastbit import Laplace
    >>> from lastbit.audit.replay import record
    >>> with record() as tape:
    ...     answer = tape.keep(Laplace(sensitivity=1, epsilon=1).release(42))
    >>> tape
    Tape(1 call, complete)
    >>> [call.kind for call in tape]
    ['Laplace.release']
    """

    __slots__ = ("_calls", "_output", "complete", "library_state", "tossed_by_library")

    def __init__(self) -> None:
        self._calls: list[Call] = []
        self._output: Any = _NOTHING
        self.complete = False
        self.library_state: Any = None  # of the standard library's generator, at the start
        self.tossed_by_library = False

    def __iter__(self) -> Iterator[Call]:
        return iter(self._calls)

    def __len__(self) -> int:
        return len(self._calls)

    def __getitem__(self, number: int) -> Call:
        return self._calls[number]

    @property
    def calls(self) -> int:
        """How many calls of primitives there are, additions of noise aside."""
        return sum(call.kind != ADDED for call in self._calls)

    def add(self, call: Call) -> int:
        """Note a call; its number is returned."""
        self._calls.append(call)
        return len(self._calls) - 1

    def keep(self, output: Any) -> Any:
        """Note what the program returned, and return it: `replay` compares with it."""
        shown = plain(list(output) if isinstance(output, Iterator) else output)
        self._output = copied(shown)
        return shown

    @property
    def draws(self) -> bool:
        """Whether there was noise, or a coin, that is not inside of a mechanism."""
        return self.tossed_by_library or not all(call.release for call in self._calls)

    @property
    def coins(self) -> bool:
        """Whether something was drawn that is no tracked noise."""
        followed = all(call.release or call.taint or call.kind == ADDED for call in self._calls)
        return self.tossed_by_library or not followed

    @property
    def output(self) -> Any:
        """What the program returned on the dataset of the tape."""
        if self._output is _NOTHING:
            raise InvalidParameter(
                "tape",
                problem="holds no output to compare with",
                remedy="write tape.keep(program(dataset)) inside the `with` block",
            )
        return self._output

    def __repr__(self) -> str:
        calls = f"{self.calls} call" + ("" if self.calls == 1 else "s")
        return f"Tape({calls}, {'complete' if self.complete else 'not complete'})"


def copied(value: Any) -> Any:
    """A value that later changes of the original do not reach."""
    if isinstance(value, np.ndarray):
        return np.array(value, subok=False)
    if type(value).__module__.startswith("lastbit.mechanisms"):
        return value  # frozen
    try:
        return copy.deepcopy(value)
    except Exception:  # sessions and the like refuse; they are compared by identity of kind only
        return value


def place() -> str:
    """File and line of the innermost code that is the program's own."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if _foreign(frame):
            return f"{_relative(frame.f_code.co_filename)}:{frame.f_lineno}"
        frame = frame.f_back
    return "unknown place"


def place_of(traceback: TracebackType | None) -> str:
    """The same for an error: where the program's own code met it."""
    found = "unknown place"
    while traceback is not None:
        if _foreign(traceback.tb_frame):
            found = f"{_relative(traceback.tb_frame.f_code.co_filename)}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    return found


def _foreign(frame: FrameType) -> bool:
    """Code of the program: a library that passes noise on is not where it was asked for."""
    if frame.f_code.co_filename.startswith("<frozen"):
        return False
    module = str(frame.f_globals.get("__name__", ""))
    return module.partition(".")[0] not in _LIBRARIES


def _relative(file: str) -> str:
    """Relative to where one stands, if it is below."""
    path = Path(file)
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return file


def bound(
    names: Mapping[str, Any], args: tuple[Any, ...], named: Mapping[str, Any]
) -> dict[str, Any]:
    """Arguments by name; `names` gives the order and the defaults."""
    return {**names, **dict(zip(names, args, strict=False)), **named}
