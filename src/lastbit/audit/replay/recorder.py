"""Recording a program: the tape of its calls, who writes it, and who answers from it and compares.

A tape holds the inputs of the noise primitives, which are as secret as the data: nothing prints
them.
"""

from __future__ import annotations

import copy
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from types import FrameType, MappingProxyType, TracebackType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lastbit.audit.replay.distance import Observed, bit_identical, shifts
from lastbit.audit.replay.findings import Finding, Kind, Replay, composed
from lastbit.audit.replay.hooks import Described
from lastbit.audit.replay.taint import Source, Spread, plain, tainted
from lastbit.errors import InvalidParameter, LastbitError, WrongType
from lastbit.privacy import Guarantee, PureDP

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
    None for an output that is left as it is. `coins` draws the same coins again for another input,
    where the output is not a release. `group` is the session that a question belongs to, `instead`
    what a replay does in place of the call. `release` says that the call is a whole mechanism:
    only its output leaves it.
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
        """Whether something was drawn that is not tracked noise."""
        tracked = all(call.release or call.taint or call.kind == ADDED for call in self._calls)
        return self.tossed_by_library or not tracked

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


# ---------------------------------------------------------------- listeners


class Diverged(BaseException):
    """The program went another way than on the tape; no `except Exception` may stop it."""


class Unmeasurable(BaseException):
    """Our own refusal in the midst of a program: not an error of the program."""

    def __init__(self, error: LastbitError) -> None:
        super().__init__()
        self.error = error


class Recorder:
    """Lets every call through and writes it down."""

    def __init__(self, tape: Tape) -> None:
        self.tape = tape
        self.open = True
        self._groups: dict[int, tuple[Any, int]] = {}

    def on_call(
        self, original: Callable[..., Any], describe: Described, args: Any, named: Any
    ) -> Any:
        """Make the call, note it, hand on what it gave."""
        call: Description | None = describe(args, named)
        if call is None:
            return original(*args, **named)
        value, parameters = copied(plain(call.value)), copied(plain(call.parameters))
        state = call.coins.state() if call.coins is not None else None
        where = place()
        output = original(*args, **named)
        group = _started(self._groups, call.group) if call.group is not None else None
        number = self.tape.add(
            Call(
                kind=call.kind,
                where=where,
                value=value,
                parameters=parameters,
                output=None if call.coins is not None else copied(output),
                rule=call.rule,
                taint=call.taint,
                state=state,
                group=group,
                release=call.release,
            )
        )
        if call.kind.endswith(".start"):
            self._groups[id(output)] = (output, number)  # kept, so that its id stays its own
        if call.taint is None:
            return output
        return tainted(output, Source(listener=self, draw=number, spread=call.taint))

    def added(self, source: Source, index: Any, value: Any, output: Any) -> Any:
        """Note what noise was added to."""
        if self.open:
            self.tape.add(
                Call(
                    kind=ADDED,
                    where=place(),
                    value=copied(value),
                    parameters=(source.draw, index.tolist(), source.factor, source.spread),
                    output=copied(output),
                    rule=None,
                )
            )
        return output


class Replayer:
    """Answers every call with what the tape has for it, and notes what has changed.

    `instead` holds other answers, by the number of the draw.
    """

    def __init__(self, tape: Tape, instead: Mapping[int, Any] = MappingProxyType({})) -> None:
        self.tape = tape
        self.open = True
        self._instead = instead
        self._uncoupled = tape.tossed_by_library
        self.findings: list[Finding] = []
        self._next = 0
        self._costs: list[Guarantee] = []
        self._declared: list[Guarantee] = []
        self._gaussian = True
        self._unpriced: list[str] = []
        self._groups: dict[int, tuple[Any, int]] = {}
        self._asked: dict[int, tuple[list[Any], list[Any]]] = {}
        self._shifts: dict[int, dict[int, list[Fraction]]] = {}  # by draw and entry, if not 0
        self._uses: dict[int, NDArray[np.int64]] = {}  # how often each entry was added to something
        self._shared: set[int] = set()
        self._mixed: set[int] = set()
        self._spreads: dict[int, Spread] = {}
        self._wheres: dict[int, str] = {}
        self._centres: dict[int, dict[int, Fraction] | None] = {}

    # -- calls --
    def on_call(
        self, original: Callable[..., Any], describe: Described, args: Any, named: Any
    ) -> Any:
        """Let the call be refused if it must be, and else answer from the tape."""
        here: Description | None = describe(args, named)
        if here is None:
            return original(*args, **named)
        number, call = self._expected(here.kind, release=here.release)
        if here.coins is not None:
            self._compare_coins(call, here)
            here.coins.restore(call.state)
            return original(*args, **named)
        output = None
        if here.instead is not None:
            here.instead(call.output)
        else:
            output = original(*args, **named)  # a refusal is a fact about the data: let it out
        if not _same_parameters(call.parameters, plain(here.parameters)):
            self.find("parameters", call.where, f"the parameters of {call.kind} change")
        if call.kind.endswith(".start"):
            self._groups[id(output)] = (output, number)
            return output
        try:
            self._measure(number, call, here)
        except LastbitError as error:
            raise Unmeasurable(error) from None
        answer = copied(self._instead.get(number, call.output))
        if call.taint is None:
            return answer
        return tainted(answer, Source(listener=self, draw=number, spread=call.taint))

    def _compare_coins(self, call: Call, here: Description) -> None:
        """The same bits fall as other coins, if their number or their law has changed."""
        if not _same_parameters(call.parameters, plain(here.parameters)):
            self._unpriced.append(call.kind)
            self._uncoupled = True
        elif not bit_identical(call.value, plain(here.value)):
            self._uncoupled = True

    def _expected(self, kind: str, *, release: bool = False) -> tuple[int, Call]:
        number = self._next
        matches = number < len(self.tape) and self.tape[number].kind == kind
        self._uncoupled |= not matches and not release  # how often coins fall is not shown
        if number >= len(self.tape):
            self._diverge(f"{kind} is called once more than on the first dataset")
        call = self.tape[number]
        if call.kind != kind:
            self._diverge(f"{kind} is called where {call.kind} was on the first dataset")
        self._next += 1
        return number, call

    def _diverge(self, problem: str) -> None:
        self.find("control flow", place(), problem)
        raise Diverged

    def _measure(self, number: int, call: Call, here: Description) -> None:
        value = plain(here.value)
        if here.group is not None:
            start = _started(self._groups, here.group)
            if start != call.group:
                self._diverge("another session is asked")
            before, now = self._asked.setdefault(start, ([], []))
            before.append(call.value)
            now.append(value)
        elif call.taint is not None:
            self._centres[number] = shifts(call.value, value, np.shape(call.output))
        elif call.rule is not None:
            self._note(call, call.rule.observed(call.value, value))

    def _note(self, call: Call, move: Observed) -> None:
        if move.beyond:
            allowed = getattr(getattr(call.rule, "mechanism", call.rule), "sensitivity", None)
            little = allowed is not None and move.distance <= allowed * (1 + Fraction(1, 1 << 40))
            problem = f"{call.kind}: {move.why}{', by a rounding' * little}"
            self.find("sensitivity", call.where, problem, move.distance, allowed)
        if move.costs is None:
            self._unpriced.append(call.kind)
            self._uncoupled = True
        else:
            self._charge(move.costs, move.declared, getattr(call.rule, "spread", None))

    def _charge(
        self,
        costs: tuple[Guarantee, ...],
        declared: tuple[Guarantee, ...] | None = None,
        spread: Spread | None = None,
    ) -> None:
        """At the distances seen, and as the mechanisms declare it: either is a bound."""
        self._costs += costs
        self._declared += costs if declared is None else declared
        real = spread is not None and spread.law == "gaussian" and not spread.whole
        self._gaussian &= real or not costs

    def find(
        self,
        kind: Kind,
        where: str,
        problem: str,
        distance: Fraction | float | None = None,
        allowed: Any = None,
    ) -> None:
        """Note it, as uncertain where untracked noise, or other coins, may cover it."""
        loose = self.tape.coins if kind == "reuse" else self.tape.draws
        self.findings.append(
            Finding(
                kind=kind,
                where=where,
                problem=problem,
                certain=not (self._uncoupled or loose),
                distance=distance,
                allowed=None if allowed is None else Fraction(allowed),
            )
        )

    # -- tracked noise --
    def added(self, source: Source, index: Any, value: Any, output: Any) -> Any:
        """Answer with the sum on the tape, and note by how much the value has moved."""
        if not self.open:
            return output
        _, call = self._expected(ADDED)
        draw, entries, factor, spread = call.parameters
        if draw != source.draw or entries != index.tolist():
            self._diverge("other noise is added than on the first dataset")
        if factor != source.factor or spread != source.spread:
            self.find("parameters", call.where, "the scale of the noise changes")
        self._wheres[draw] = call.where
        if self._spreads.setdefault(draw, spread) != spread:  # before and after it was rounded
            self._mixed.add(draw)
        flat = index.ravel().tolist()
        moved = shifts(call.value, plain(value), index.shape)
        if moved is None:
            self.find("sensitivity", call.where, "the value under the noise is not finite")
            self._charge((PureDP(math.inf),))
        else:
            np.add.at(self._used(draw), flat, 1)
            entries = self._shifts.setdefault(draw, {})
            for place, shift in moved.items():
                entries.setdefault(flat[place], []).append(shift / factor)
        for other in source.others:
            self._shared.add(other)
            self._used(other)[:] += 1
        return copied(call.output)

    def _used(self, draw: int) -> NDArray[np.int64]:
        nothing = np.zeros(np.size(self.tape[draw].output), np.int64)
        return self._uses.setdefault(draw, nothing)

    def finish(self, output: Any) -> Replay:
        """All that was found, the program having returned."""
        if self._next < len(self.tape):
            call = self.tape[self._next]
            self.find("control flow", call.where, f"{call.kind} is not called any more")
        if not bit_identical(self.tape.output, plain(output)):
            self.find("leak", "the output", "it changes although every noisy value is the same")
        return self.summary()

    def summary(self) -> Replay:
        """What was found up to here, with the costs of sessions and of tracked noise."""
        for start, (before, now) in self._asked.items():
            call = self.tape[start]
            if call.rule is not None:
                self._note(call, call.rule.observed(before, now))
        self._asked.clear()
        for draw, centre in self._centres.items():
            self._settle(draw, centre)
        self._centres.clear()
        return Replay(
            findings=tuple(self.findings),
            cost=composed(self._costs),
            declared=composed(self._declared),
            gaussian=self._gaussian,
            unpriced=tuple(dict.fromkeys(self._unpriced)),
        )

    @property
    def coupled(self) -> bool:
        """Whether no coin may have fallen otherwise than on the tape."""
        return not (self._uncoupled or self.tape.coins)

    def undone(self) -> dict[int, Any]:
        """The draws that hide this neighbour: what was drawn, less what the value has moved."""
        found = {}
        for draw, entries in self._shifts.items():
            call = self.tape[draw]
            if not entries or self._spreads[draw] != call.taint:  # rounded noise has other units
                continue
            drawn = np.array(call.output)
            for entry, moved in entries.items():
                drawn.flat[entry] -= drawn.dtype.type(float(moved[0]))
            found[draw] = drawn if drawn.ndim else drawn.item()
        return found

    def _settle(self, draw: int, centre: dict[int, Fraction] | None) -> None:
        """The cost of one draw: every entry may be shifted by one amount only."""
        call = self.tape[draw]
        if centre is None:
            self.find("sensitivity", call.where, "the centre of the noise is not finite")
            self._charge((PureDP(math.inf),))
            return
        total: dict[int, Fraction] = {}
        entries = self._shifts.get(draw, {})
        for entry in {**centre, **entries}:
            base, own = centre.get(entry, Fraction(0)), entries.get(entry, [])
            moved = {base + shift for shift in own}
            if base or self._used(draw)[entry] > len(own):
                moved.add(base)
            if len(moved) > 1 or (draw in self._mixed and any(moved)):
                where = self._wheres.get(draw, call.where)
                self._uncoupled |= draw in self._shared  # two sums of noises may be priced better
                self.find("reuse", where, f"one draw of {call.kind} covers different values")
                self._charge((PureDP(math.inf),))
                return
            total[entry] = moved.pop()
        spread: Spread = self._spreads.get(draw, call.taint)
        costs = spread.cost(total)
        if costs is None:
            self._unpriced.append(call.kind)
        else:
            self._charge(costs, spread=spread)


def _started(groups: dict[int, tuple[Any, int]], session: Any) -> int:
    if id(session) not in groups:
        raise InvalidParameter(
            "program",
            problem="asks a session that it did not start",
            remedy="start the session inside the program",
        )
    return groups[id(session)][1]


def _same_parameters(one: Any, other: Any) -> bool:
    """Whether parameters agree; what cannot be compared, a generator say, agrees in its type."""
    if isinstance(one, dict) and isinstance(other, dict):
        one, other = tuple(one.items()), tuple(other.items())
    if isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other):
        return all(map(_same_parameters, one, other))
    try:
        return bit_identical(one, other)
    except WrongType:
        return type(one) is type(other)
