"""Recording a program: hooks on its calls, the tape of them, who writes it, who answers from it.

A Python function keeps its identity when its `__code__` is exchanged: names imported earlier, bound
methods and default arguments all lead to it, and so to the listener. Types written in C have no
such code; for them the entry in the type's own dictionary is exchanged (`numpy_generators.py`).
Hooks are seen by the whole process. Only calls made in the recording thread reach the listener;
those of other threads go through as if nothing had happened, and are counted.

A tape holds the inputs of the noise primitives, which are as secret as the data: nothing prints
them.
"""

from __future__ import annotations

import copy
import math
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from types import FrameType, FunctionType, MappingProxyType, TracebackType
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lastbit.audit.replay.distance import Observed, bit_identical, shifts
from lastbit.audit.replay.findings import Finding, Kind, Replay, composed
from lastbit.audit.replay.taint import Source, Spread, plain, tainted
from lastbit.errors import InvalidParameter, LastbitError, WrongType
from lastbit.privacy import Guarantee, PureDP

_LIBRARIES = frozenset({"lastbit", "numpy", "pandas", "polars", "scipy"})
_NOTHING = object()
_HERE = "the hook of lastbit.audit"
_LISTENING = threading.Lock()
ADDED = "added noise"


class Rule(Protocol):
    """How far two inputs of a primitive are apart, and what that costs."""

    def observed(self, here: Any, there: Any) -> Observed: ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Call:
    """One call of a primitive: what it protects, and by which parameters; never shown.

    `taint` is the law of a draw that is tracked until it is added to something (`taint.py`), and
    None for an output that is left as it is. `coins` draws the same coins again for another input,
    where the output is not a release; `state` is where they stood. `group` is the session that a
    question belongs to, on a tape the number of the call that started it, `instead` what a replay
    does in place of the call. `release` says that the call is a whole mechanism: only its output
    leaves it. Where it was made, and its output, are known on a tape only.
    """

    kind: str
    value: Any = field(default=None, repr=False)
    parameters: Any = field(default=None, repr=False)
    rule: Rule | None = field(default=None, repr=False)
    taint: Any = field(default=None, repr=False)
    coins: Any = field(default=None, repr=False)
    group: Any = field(default=None, repr=False)
    instead: Any = field(default=None, repr=False)
    release: bool = False
    where: str = ""
    output: Any = field(default=None, repr=False)
    state: Any = field(default=None, repr=False)


Described: TypeAlias = Callable[[tuple[Any, ...], dict[str, Any]], Call | None]
"""What a primitive makes of the arguments of a call; None if it is not one of ours."""


# ---------------------------------------------------------------- hooks


class Hook:
    """Where calls arrive: at one thread's listener, or past it."""

    __slots__ = ("_depth", "_thread", "elsewhere", "listener")

    def __init__(self) -> None:
        self.listener: Recorder | Replayer | None = None
        self.elsewhere = 0
        self._thread = threading.get_ident()
        self._depth = 0

    def called(
        self, original: Callable[..., Any], describe: Described, args: Any, named: Any
    ) -> Any:
        """Tell the listener, unless the call is part of one it was told of already."""
        if threading.get_ident() != self._thread:
            self.elsewhere += 1
            return original(*args, **named)
        if self.listener is None or self._depth:
            return original(*args, **named)
        self._depth += 1
        try:
            return self.listener.on_call(original, describe, args, named)
        finally:
            self._depth -= 1


def dispatched(called: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Where exchanged code leads."""
    return called(args, named)


def _template(*args: Any, **named: Any) -> Any:
    # inside, since this code runs with the globals of the function that was exchanged
    from lastbit.audit.replay.recorder import dispatched

    return dispatched("the hook of lastbit.audit", args, named)


@contextmanager
def hooked(function: FunctionType, describe: Described, hook: Hook) -> Iterator[None]:
    """Lead every call of a function to the hook, inside the `with` block.

    >>> def double(x, *, times=2):
    ...     return times * x
    >>> class Loud:
    ...     def on_call(self, original, describe, args, named):
    ...         return original(*args, **named) + 1000
    >>> hook, alias = Hook(), double
    >>> hook.listener = Loud()
    >>> with hooked(double, lambda args, named: None, hook):
    ...     alias(21)
    1042
    >>> alias(21)
    42
    """
    code, defaults, named = function.__code__, function.__defaults__, function.__kwdefaults__
    if code.co_freevars:
        raise InvalidParameter(
            "function", problem="is a closure", remedy="decorate it with lastbit.audit.noise"
        )
    original = FunctionType(code, function.__globals__, function.__name__, defaults)
    original.__kwdefaults__ = named
    called, template = partial(hook.called, original, describe), _template.__code__
    constants = tuple(called if known == _HERE else known for known in template.co_consts)
    try:
        function.__code__ = template.replace(co_consts=constants, co_name=code.co_name)
        yield
    finally:
        function.__code__ = code
        function.__defaults__ = defaults
        function.__kwdefaults__ = named


@contextmanager
def one_at_a_time() -> Iterator[ExitStack]:
    """A stack of exchanges, undone in reverse order whatever happens; never two in a process."""
    if not _LISTENING.acquire(blocking=False):
        raise InvalidParameter(
            "record", problem="is going on already", remedy="end the other `with` block first"
        )
    try:
        with ExitStack() as stack:
            yield stack
    finally:
        _LISTENING.release()


# ---------------------------------------------------------------- the tape


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
    while frame is not None and not (found := _line(frame, frame.f_lineno)):
        frame = frame.f_back
    return found if frame is not None else "unknown place"


def place_of(traceback: TracebackType | None) -> str:
    """The same for an error: where the program's own code met it."""
    found = ""
    while traceback is not None:
        found = _line(traceback.tb_frame, traceback.tb_lineno) or found
        traceback = traceback.tb_next
    return found or "unknown place"


def _line(frame: FrameType, number: int) -> str:
    """File, relative to where one stands, and line; nothing in a library that passes noise on."""
    file, module = frame.f_code.co_filename, str(frame.f_globals.get("__name__", ""))
    if file.startswith("<frozen") or module.partition(".")[0] in _LIBRARIES:
        return ""
    path, here = Path(file), Path.cwd()
    return f"{path.relative_to(here) if path.is_relative_to(here) else file}:{number}"


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
        call = describe(args, named)
        if call is None:
            return original(*args, **named)
        noted = replace(
            call,
            where=place(),
            value=copied(plain(call.value)),
            parameters=copied(plain(call.parameters)),
            state=call.coins.state() if call.coins is not None else None,
        )
        output = original(*args, **named)
        if call.coins is None:
            noted = replace(noted, output=copied(output))
        if call.group is not None:
            noted = replace(noted, group=_started(self._groups, call.group))
        number = self.tape.add(replace(noted, coins=None, instead=None))
        if call.kind.endswith(".start"):
            self._groups[id(output)] = (output, number)  # kept, so that its id stays its own
        if call.taint is None:
            return output
        return tainted(output, Source(listener=self, draw=number, spread=call.taint))

    def added(self, source: Source, index: Any, value: Any, output: Any) -> Any:
        """Note what noise was added to."""
        if self.open:
            how = (source.draw, index.tolist(), source.factor, source.spread)
            call = Call(kind=ADDED, where=place(), value=copied(value), parameters=how)
            self.tape.add(replace(call, output=copied(output)))
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
        here = describe(args, named)
        if here is None:
            return original(*args, **named)
        number, call = self._expected(here.kind, release=here.release)
        same = _same_parameters(call.parameters, plain(here.parameters))
        if here.coins is not None:
            # the same bits fall as other coins, if their number or their law has changed
            if not same:
                self._unpriced.append(call.kind)
            self._uncoupled |= not same or not bit_identical(call.value, plain(here.value))
            here.coins.restore(call.state)
            return original(*args, **named)
        output = None
        if here.instead is not None:
            here.instead(call.output)
        else:
            output = original(*args, **named)  # a refusal is a fact about the data: let it out
        if not same:
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

    def _measure(self, number: int, call: Call, here: Call) -> None:
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
        self._uncoupled |= move.costs is None
        self._charge(call.kind, move.costs, move.declared, getattr(call.rule, "spread", None))

    def _charge(
        self,
        kind: str,
        costs: tuple[Guarantee, ...] | None,
        declared: tuple[Guarantee, ...] | None = None,
        spread: Spread | None = None,
    ) -> None:
        """At the distances seen, and as the mechanisms declare it: either is a bound."""
        if costs is None:
            self._unpriced.append(kind)
            return
        self._costs += costs
        self._declared += costs if declared is None else declared
        real = spread is not None and spread.law == "gaussian" and not spread.whole
        self._gaussian &= real or not costs

    def _lost(self, kind: Kind, where: str, problem: str) -> None:
        """A finding after which nothing is private."""
        self.find(kind, where, problem)
        self._charge(ADDED, (PureDP(math.inf),))

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
            self._lost("sensitivity", call.where, "the value under the noise is not finite")
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
            self._lost("sensitivity", call.where, "the centre of the noise is not finite")
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
                self._lost("reuse", where, f"one draw of {call.kind} covers different values")
                return
            total[entry] = moved.pop()
        spread: Spread = self._spreads.get(draw, call.taint)
        self._charge(call.kind, spread.cost(total), spread=spread)


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
