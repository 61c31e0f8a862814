"""When answers appear: the line of a table on a made-up clock, with run times as its input."""

import asyncio
import selectors
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import example, given, strategies as st

from lastbit.errors import InvalidParameter
from lastbit.serve.slots import Line, Slots, _now, slot_for

T = 8.0  # seconds; all times are multiples of 1/64, so that sums of them are exact
NEVER = 1000.0
RENEWED = 3.0  # seconds for another process to start


class MadeUpClock(asyncio.SelectorEventLoop):
    """An event loop whose clock stands while it works, and jumps to the next thing to do."""

    def __init__(self) -> None:
        self.at = 0.0
        selector = selectors.DefaultSelector()
        waited = selector.select

        def select(timeout: float | None = None) -> Any:
            assert timeout is not None, "nothing is left to happen"
            self.at += max(timeout, 0)
            return waited(0)

        selector.select = select  # type: ignore[method-assign]
        super().__init__(selector)

    def time(self) -> float:
        return self.at


@dataclass
class Asked:
    """A question, with the seconds that its statement runs; `fails` if it fails then."""

    name: int
    runs: float
    seen: list[Any]
    ended: list[float]
    fails: bool = False
    fixed: int | None = None
    submitted: float = 0.0
    appeared: asyncio.Event = field(default_factory=asyncio.Event)

    def taken(self) -> bool:
        return not self.ended

    async def process(self) -> None:
        await asyncio.sleep(RENEWED - (_now() - self.ended[-1]))
        self.ended.clear()

    async def ready(self) -> bool:
        self.seen.append((_now(), self.name, "started"))
        await asyncio.sleep(self.runs)
        return not self.fails

    async def settle(self) -> bool:
        self.seen.append((_now(), self.name, "in the ledger"))
        return True

    async def close(self) -> None:
        self.seen.append((_now(), self.name, "closed"))
        self.ended.append(_now())

    async def appear(self, start: float, k: int | None) -> None:
        self.seen.append((_now(), self.name, "appeared", start, k))
        self.appeared.set()


@dataclass(frozen=True)
class Submission:
    """After the one before was submitted, or after it appeared, as this one's asker likes."""

    gap: float
    waits: bool
    fixed: int | None = None


def watched(
    submissions: list[Submission],
    runs: list[tuple[float, bool]],
    *,
    strict: bool = False,
    made: type[Line] = Line,
) -> list[Any]:
    """All that anybody can see, with its times: every change, and the queue again and again."""
    seen: list[Any] = []
    ended: list[float] = []
    loop = MadeUpClock()

    async def look(line: Line, items: list[Asked]) -> None:
        while True:
            await asyncio.sleep(T / 2 - 1 / 128)  # never when something else happens
            running = None if line.running is None else (line.running[0].name, line.running[1])  # type: ignore[attr-defined]
            seen.append((_now(), len(line), running, [line.due(item) for item in items]))
            await asyncio.sleep(1 / 128)

    async def asking() -> None:
        faults: list[Exception] = []
        line, stopped = made(Slots(seconds=T, strict=strict)), asyncio.Event()
        items: list[Asked] = []
        working = asyncio.ensure_future(line.run(stopped, faults.append))
        looking = asyncio.ensure_future(look(line, items))
        for name, (asked, (seconds, fails)) in enumerate(zip(submissions, runs, strict=True)):
            if asked.waits and items:
                await items[-1].appeared.wait()
            await asyncio.sleep(asked.gap)
            item = Asked(name, seconds, seen, ended, fails, asked.fixed, _now())
            seen.append((_now(), name, "submitted"))
            items.append(item)
            line.add(item)
        for item in items:
            await item.appeared.wait()
        looking.cancel()
        stopped.set()
        await working
        assert not faults

    try:
        loop.run_until_complete(asking())
    finally:
        loop.close()
    return seen


def run_time(k: int | None, share: float, slots: Slots) -> float:
    """A run time of the class of k: its share of the way through it."""
    ends = [k * T - slots.margin for k in slots.after]
    if k is None:
        return ends[-1] + 1 / 64 + share * 64
    place = slots.after.index(k)
    low = 0 if place == 0 else ends[place - 1] + 1 / 64
    high = ends[place] - (1 / 64 if k == slots.after[-1] else 0)  # not at the very last moment
    return low + round(share * 64) / 64 * (high - low)


shares = st.integers(0, 64).map(lambda n: n / 64)
gaps = st.integers(0, 20 * 64).map(lambda n: n / 64)
questions = st.lists(
    st.tuples(
        st.builds(Submission, gap=gaps, waits=st.booleans()),
        st.sampled_from([1, 2, 4, None]),
        st.tuples(shares, shares),
        st.tuples(st.booleans(), st.booleans()),
    ),
    min_size=1,
    max_size=4,
)


def two_courses(asked: Any, *, strict: bool, made: type[Line] = Line) -> tuple[Any, Any]:
    """What is seen of the same questions, with the same k, and other run times and failures."""
    slots = Slots(seconds=T, strict=strict)
    found = []
    for turn in (0, 1):
        runs = []
        for _, wanted, both, fails in asked:
            k = wanted if wanted in slots.after else None
            if k is None and fails[turn]:  # to fail early is as never to be ready
                runs.append((both[turn] * T, True))
            else:
                runs.append((run_time(k, both[turn], slots), False))
        found.append(watched([one[0] for one in asked], runs, strict=strict, made=made))
    return found[0], found[1]


@given(asked=questions, strict=st.booleans())
@example(asked=[(Submission(0, False), None, (0, 1), (True, False))] * 2, strict=False)
def test_all_that_is_seen_is_a_function_of_the_submissions_and_of_the_ks(asked, strict):
    one, other = two_courses(asked, strict=strict)
    assert one == other


@given(asked=questions, strict=st.booleans())
def test_starts_ends_and_entries_are_those_of_the_law(asked, strict):
    slots = Slots(seconds=T, strict=strict)
    ks = [k if k in slots.after else None for _, k, _, _ in asked]
    runs = [
        (run_time(k, both[0], slots), False) for k, (_, _, both, _) in zip(ks, asked, strict=True)
    ]
    seen = watched([one[0] for one in asked], runs, strict=strict)
    end, there = 0.0, 0.0
    for name, k in enumerate(ks):
        mine = {event[2]: event for event in seen if len(event) > 2 and event[1] == name}
        start = max(mine["submitted"][0], end, there)
        end = start + (k or max(slots.after)) * T
        there = 0.0 if k else end + RENEWED
        assert mine["started"][0] == start
        assert mine["appeared"] == (end, name, "appeared", start, k)
        if k is None:
            assert mine["closed"][0] == end and "in the ledger" not in mine
        else:
            assert mine["in the ledger"][0] == end - slots.margin and "closed" not in mine


@given(asked=questions, k=st.sampled_from([1, 2, 4]))
def test_an_answer_on_record_has_the_slots_that_it_had(asked, k):
    record, slots = Submission(0, False, fixed=k), Slots(seconds=T)
    runs = [(run_time(wanted, both[0], slots), False) for _, wanted, both, _ in asked]
    seen = watched([*(one[0] for one in asked), record], [*runs, (0, False)])
    fresh = watched([*(one[0] for one in asked), Submission(0, False)], [*runs, (k * T - 1, False)])
    assert seen == fresh


@pytest.mark.parametrize("step", ["taken", "process", "ready", "settle", "close", "appear"])
def test_an_error_of_one_item_does_not_stop_the_line(step):
    """As when disk or ledger fail for a moment: the others go on, and it is told."""
    loop, seen, faults = MadeUpClock(), [], []

    async def asking() -> None:
        line, stopped = Line(Slots(seconds=T)), asyncio.Event()
        ended = [0.0] if step == "process" else []
        bad = Asked(0, NEVER if step == "close" else 0.0, seen, ended)
        good = Asked(1, 0.0, seen, [])

        def broken(*_: Any) -> Any:
            raise OSError("no space left")

        setattr(bad, step, broken)
        for item in (bad, good):
            line.add(item)
        working = asyncio.ensure_future(line.run(stopped, faults.append))
        await good.appeared.wait()
        stopped.set()
        await working

    try:
        loop.run_until_complete(asking())
    finally:
        loop.close()
    assert [type(error) for error in faults] == [OSError]
    assert [event[1] for event in seen if event[2] == "appeared"] == [1]


class Hasty(Line):
    """A mutant: what is ready appears."""

    async def _done(self, item: Any, start: float) -> None:
        k = await self._worked(item, start)
        self._end = _now()
        await item.appear(start, k)


class Frank(Line):
    """A mutant: a failure appears when it happens."""

    async def _done(self, item: Any, start: float) -> None:
        k = await self._worked(item, start)
        if k is None:
            self._end = _now()
            await item.close()
            await item.appear(start, k)
            return
        self._end = start + self.slots.length(k)
        await asyncio.sleep(self._end - _now())
        await item.appear(start, k)


@pytest.mark.parametrize("mutant", [Hasty, Frank])
def test_lines_that_say_more_are_found_out(mutant):
    late = (Submission(0, False), None, (0.0, 1.0), (True, True))
    again = (Submission(0, False), 2, (0.0, 1.0), (False, False))
    one, other = two_courses([late, again], strict=False, made=mutant)
    assert one != other


def test_four_courses_of_events_for_a_question_and_two_for_a_strict_server():
    asked = [Submission(0, False)]
    for strict, most in ((False, 4), (True, 2)):
        runs = [(n / 4, fails) for n in range(int(5 * T * 4)) for fails in (False, True)]
        courses = {repr(watched(asked, [one], strict=strict)) for one in runs[::7]}
        assert len(courses) == most


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), 1e9])
def test_slots_without_meaning_are_refused(seconds):
    with pytest.raises(InvalidParameter, match="--slot"):
        Slots(seconds=seconds)


@given(st.floats(0, 10_000))
def test_a_slot_is_twice_the_slowest_example_rounded_up(slowest):
    slot = slot_for(slowest)
    assert 2 * slowest <= slot <= max(0.5, 1.7 * 2 * slowest)
