"""Is what was followed what runs? The code is called, and compared with its steps bit for bit.

Law      at every point of the set the running code ends as its steps do: the same type and bits,
         or the same exception; in several orders of calls, with fresh floats; and at some of them
         it runs the very instructions that it ran when it was traced, for the same answers to its
         conditions
Differs  finitely many points: elsewhere the claim rests on `screening`. A dispatch on the type of
         an input shows at the first float, state kept between calls when the order changes
Checked  tests/verify/test_screening.py, tests/verify/test_sloppy.py
"""

from __future__ import annotations

import hashlib
import math
import struct
import sys
import types
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import islice
from typing import Any, TypeAlias

from lastbit.errors import Untraceable
from lastbit.verify.language.expressions import Condition
from lastbit.verify.running.uniforms import Generator, Grid, Within
from lastbit.verify.tracing.markers import Computed
from lastbit.verify.tracing.screening import library_name
from lastbit.verify.tracing.steps import Outcome, Rows, outcome, replayed

Point: TypeAlias = Mapping[str, float]
Path: TypeAlias = tuple[tuple[types.CodeType, int], ...]

_LONGEST_PATH = 400_000
_RANDOM = 24
_PATHS = 12
_CELLS = 24
_LEAST, _GREATEST = 5e-324, sys.float_info.max
SPECIAL = (
    *(0.0, -0.0, _LEAST, -_LEAST, sys.float_info.min, -sys.float_info.min, _GREATEST, -_GREATEST),
    *(0.5, -0.5, 1.0, -1.0, 1.5, 2.0, -2.5, 0.1, 0.3, 3.0, 7.0, -11.0, 1e-9, 1e16, -1e16),
    *(2.0**-53, 1 - 2.0**-53, 1 + 2.0**-52, 0.5 - 2.0**-54, 0.5 + 2.0**-53, 2.0**53, 2.0**53 + 2),
)


def words(seed: str) -> Iterator[int]:
    """Words of 64 bits that follow from a seed: nothing secret, and the same every time."""
    for count in range(1 << 62):
        block = hashlib.sha256(f"{seed} {count}".encode()).digest()
        yield from struct.unpack("<4Q", block)
    raise AssertionError


def beside(number: Fraction | float) -> list[float]:
    """The floats at a number: the nearest, and its neighbours."""
    try:
        near = float(number)
    except OverflowError:
        return []
    return [math.nextafter(near, -math.inf), near, math.nextafter(near, math.inf)]


def points(
    names: Sequence[str],
    conditions: Sequence[Condition],
    extra: Mapping[str, Sequence[float]],
    *,
    seed: str,
    rounds: int = 1,
) -> list[Point]:
    """Points to call the code at: every float of interest of each input, among random others."""
    stream = words(seed)
    lists = {}
    for name in names:
        bounds = [x for c in conditions if c.name == name for x in beside(c.bound)]
        drawn = [_random_float(next(stream), next(stream)) for _ in range(_RANDOM)]
        every = (*extra.get(name, ()), *bounds, *SPECIAL, *drawn)
        lists[name] = [x for x in every if math.isfinite(x)]
    longest = max((len(own) for own in lists.values()), default=1)
    found: list[Point] = []
    for turn in range(rounds):
        for place in range(longest):
            # each input in turn goes through all of its floats, the others jump about
            point = {}
            for order, (name, own) in enumerate(lists.items()):
                at = place if order == turn % len(lists) else next(stream)
                point[name] = own[at % len(own)]
            found.append(point)
    return found


def noise_points(
    cell: Fraction, region: tuple[Fraction, Fraction], uniform: Generator
) -> dict[str, list[float]]:
    """Values at edges and middles of cells, uniforms from the least to the greatest.

    Of many cells some are taken: those at both ends and around 0, and others evenly between.
    """
    low, high = (int(end / cell) for end in region)
    step = max(1, (high - low) // _CELLS)
    near = {low, low + 1, high - 1, high, -1, 0, 1, *range(low, high, step)}
    halves = sorted(k for index in near for k in (2 * index, 2 * index + 1))
    values = [x for half in halves for x in beside(half * cell / 2)]
    if isinstance(uniform, Within):  # of which no values are known: those of most libraries
        uniform = Grid(53)
    last = uniform.size - 1
    numbers = {0, 1, 2, last - 2, last - 1, last}
    for power in range(1, 53, 3):
        for real in (Fraction(1, 1 << power), 1 - Fraction(1, 1 << power)):
            numbers.update(uniform.number(real) + way for way in (-1, 0, 1))
    uniforms = [uniform.point(index) for index in sorted(numbers) if 0 <= index <= last]
    return {"value": values, "u": uniforms}


def _random_float(kind: int, bits: int) -> float:
    """A float of any exponent, of a moderate one, or in (0, 1)."""
    if kind % 4 == 0:
        found = float(struct.unpack("<d", struct.pack("<Q", bits))[0])
        return found if math.isfinite(found) else 1.25
    if kind % 4 == 1:
        return (bits >> 11) * 2.0**-53
    sign = -1.0 if kind & 4 else 1.0
    return math.ldexp(sign * (1 + (bits >> 12) * 2.0**-52), kind // 8 % 44 - 36)


@dataclass(slots=True)
class _Recorder:
    """Notes which instructions of some code objects run, and what they call of C."""

    codes: frozenset[types.CodeType]
    path: list[tuple[types.CodeType, int]]
    called: list[object]

    def enter(self, frame: types.FrameType, event: str, _: Any) -> Any:
        if frame.f_code not in self.codes:
            return None
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        return self.step

    def step(self, frame: types.FrameType, event: str, _: Any) -> Any:
        if event == "opcode":
            self.instruction(frame.f_code, frame.f_lasti)
        return self.step

    def profile(self, frame: types.FrameType, event: str, function: Any) -> None:
        if event == "c_call" and frame.f_code in self.codes:
            self.called.append(function)

    def instruction(self, code: types.CodeType, offset: int) -> None:
        if len(self.path) < _LONGEST_PATH:
            self.path.append((code, offset))

    def call(self, code: types.CodeType, offset: int, function: Any, _: Any) -> None:
        if isinstance(function, types.BuiltinFunctionType | types.MethodDescriptorType):
            self.called.append(function)


def recorded(
    run: Callable[[], Any], codes: frozenset[types.CodeType]
) -> tuple[Outcome, Path, list[object]]:
    """How a call ends, the instructions of these code objects that it ran, and what C it called."""
    recorder = _Recorder(codes, [], [])
    watched = _monitored if hasattr(sys, "monitoring") else _traced
    with watched(recorder):
        ended = outcome(run)
    return ended, tuple(recorder.path), recorder.called


@contextmanager
def _traced(recorder: _Recorder) -> Iterator[None]:
    """As Python 3.11 does it."""
    before, profile = sys.gettrace(), sys.getprofile()
    profiled = profile is not None and not callable(profile)  # cProfile's cannot be put back
    sys.settrace(recorder.enter)
    if not profiled:
        sys.setprofile(recorder.profile)
    try:
        yield
    finally:
        if not profiled:
            sys.setprofile(profile)
        sys.settrace(before)


@contextmanager
def _monitored(recorder: _Recorder) -> Iterator[None]:
    """As Python 3.12 and later do it, where a trace function misses the first instructions."""
    monitoring: Any = sys.monitoring  # type: ignore[attr-defined, unused-ignore]
    free = [number for number in (4, 3, 5, 2, 1, 0) if monitoring.get_tool(number) is None]
    if not free:
        raise Untraceable("six other tools watch this process; close one, say the debugger")
    tool, events = free[0], monitoring.events
    monitoring.use_tool_id(tool, "lastbit")
    try:
        monitoring.register_callback(tool, events.INSTRUCTION, recorder.instruction)
        monitoring.register_callback(tool, events.CALL, recorder.call)
        for code in recorder.codes:
            monitoring.set_local_events(tool, code, events.INSTRUCTION | events.CALL)
        yield
    finally:
        for code in recorder.codes:
            monitoring.set_local_events(tool, code, 0)
        monitoring.register_callback(tool, events.INSTRUCTION, None)
        monitoring.register_callback(tool, events.CALL, None)
        monitoring.free_tool_id(tool)


def agree(
    call: Callable[[Mapping[str, Any]], Any],
    rows: Rows,
    at: Sequence[Point],
    *,
    paths: Sequence[tuple[tuple[tuple[Condition | Computed, bool], ...], Path]],
    codes: frozenset[types.CodeType],
    place: str,
) -> None:
    """Refuse code that ends otherwise than its steps, or takes another path, at one of the points.

    `paths` are those of the traced runs, with the answers to conditions that each belongs to.
    """

    def run(point: Point) -> Any:  # with equal floats that are other objects
        return call({n: struct.unpack("<d", struct.pack("<d", x))[0] for n, x in point.items()})

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = [outcome(partial(replayed, rows, point)) for point in at]
        for index in _orders(len(at)):
            if outcome(partial(run, at[index])) != wanted[index]:
                where = ", ".join(f"{name}={value!r}" for name, value in at[index].items())
                raise Untraceable(
                    f"{place} computes something else than was followed (seen at {where}); let it "
                    f"use its arguments alone, by arithmetic and comparisons"
                )
        for point, path in _some(at, paths):
            ended, taken, called = recorded(partial(run, point), codes)
            if len(taken) >= _LONGEST_PATH:
                raise Untraceable(f"{place} runs too long to be followed; write shorter loops")
            unknown = [f for f in called if library_name(f) is None]
            if unknown:
                name = getattr(unknown[0], "__name__", "a function")
                raise Untraceable(f"{place} calls {name}; use a function that can be traced")
            if ended[0] != "raises" and taken != path:
                raise Untraceable(
                    f"{place} takes another path on floats than when it is followed; use inputs "
                    f"by arithmetic and comparisons only"
                )


def _orders(count: int) -> Iterator[int]:
    """Forward, backward, the odd before the even, and each twice in a row."""
    yield from (*range(count), *reversed(range(count)), *range(1, count, 2), *range(0, count, 2))
    yield from (index for index in range(count) for _ in range(2))


def _some(
    at: Sequence[Point], paths: Sequence[tuple[tuple[tuple[Condition | Computed, bool], ...], Path]]
) -> Iterator[tuple[Point, Path]]:
    """For each case the first points that belong to it."""
    for known, path in paths:
        fit = (p for p in at if all(_answer(c, p) == holds for c, holds in known))
        yield from ((point, path) for point in islice(fit, max(2, _PATHS // len(paths))))


def _answer(condition: Condition | Computed, point: Point) -> bool:
    if isinstance(condition, Computed):
        return condition.holds_at(point)
    return condition.holds(Fraction(point[condition.name]))
