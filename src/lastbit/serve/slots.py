"""When answers appear: at the ends of slots, so that how long a statement took is hardly seen.

Law      a table has one line of questions and one process that works on them, one at a time. Let T
         be the length of a slot, m < T a margin, K = (1, 2, 4), or (1) in a strict server. Question
         i of the line, submitted at s(i), starts at a(i) = max(s(i), e(i-1)), where e is the end of
         the one before; later if the process is not there yet: then at u(i), when it is. Its noise
         is drawn r(i) seconds later; r(i) is infinite if that fails, or never happens. k(i) is the
         least k of K with r(i) <= k T - m, if there is one. Then e(i) = a(i) + k(i) T; the answer
         is in the ledger from e(i) - m on, and is shown at e(i). If there is none, e(i) = a(i) +
         max(K) T: then the process is ended, whatever it does, and another is started; the
         reservation is closed in the ledger as charged and never to be answered, and that is shown.
         An answer on record goes through the line as well, with the k that it had, or 1 if that is
         not known. To accept a version of the data goes through it like a question. Looks at the
         source, whether it is the accepted one, have a process of their own: what one finds is
         shown a fixed time after it began, and that it was not ready then is not shown
Theorem  for any number of people who see everything that the server says to anybody, at any time,
         and who choose each question by all that they have seen: given the answers, n questions
         have at most 4^n courses of events, 2^n in a strict server. So besides what was paid for
         they learn of the data at most 2 bits a question, in a strict server 1
Proof    what is said before a reservation depends on question, card and ledger (`planning.py`). By
         induction over the line a(i), e(i), the times of its two entries and its state at every
         time are functions of s(1) ... s(i), k(1) ... k(i) and u(1) ... u(i) alone: `Line` takes
         times from nowhere else. How long a process takes to start does not depend on the data: it
         reads no row before it is asked. Queue, `due`, HTTP answers and lines of the log are
         functions of those. k(i) has four values, none included (two if K has one element), and
         each submission depends on what was seen before: so a course of events is named by the n
         values k(i) of questions. Those of records are functions of what is known
Corollary  T is not a number of the data either: it is given, or taken on made-up rows. A question
         that is ended at max(K) T is charged, and charged again if it is asked again: nothing is
         learnt for free by questions that take long
Differs  - the processor is shared: while a statement runs, other requests may take a little longer.
           Workers let all others go first (`nice`), which makes it small, not nothing
         - a question that was running when the server was stopped or killed is run again, and has
           another k then: up to 2 bits more each time. Analysts cannot stop the server
         - what the ledger takes for an answer longer than m (a great answer, a slow disk) is seen
           in the time at which it is shown; it depends on the answer, which is shown anyway
         - that the source is another one than the accepted is said as soon as a slot ends in which
           it was found: such changes are public (`catalogue.py`)
Checked  tests/serve/test_slots.py: the line itself, on a clock that is made up, with run times as
         input. tests/serve/test_timing.py: the server itself, on tables that differ in one unit
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any, Protocol

from lastbit.errors import InvalidParameter

_MARGIN, _MOST_MARGIN = 1 / 8, 0.5
_LEAST, _MOST = 0.05, 3600.0
_TWICE = 2
_SHORT, _STEPS = (5, 7), (10, 15, 20, 30, 50, 70)
DECLARED = 1_000_000
"""How many rows a table is taken to have whose card does not say it."""
UNSAID = (
    "The card does not say about how many rows there are, so answers wait as long as for "
    f"{DECLARED:,}. For shorter waits write rows = 70000, say, under [table]."
)
"""What stewards are told of such a card."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slots:
    """The slots of a table: their length in seconds, and after which of them answers appear."""

    seconds: float
    strict: bool = False

    def __post_init__(self) -> None:
        if not _LEAST <= self.seconds <= _MOST:
            problem, remedy = "is not between 0.05 and 3600 seconds", "pass, say, --slot 2"
            raise InvalidParameter("slot", problem=problem, remedy=remedy)

    @property
    def after(self) -> tuple[int, ...]:
        """K of the law."""
        return (1,) if self.strict else (1, 2, 4)

    @property
    def margin(self) -> float:
        """Before the end of a slot, for the ledger: m of the law."""
        return min(self.seconds * _MARGIN, _MOST_MARGIN)

    def ready(self, seconds: float) -> int | None:
        """After which slot an answer appears whose noise was drawn this long after its start.

        >>> [Slots(seconds=8).ready(seconds) for seconds in (0, 7.5, 7.51, 15.6, 31.5, 31.6)]
        [1, 1, 2, 4, 4, None]
        """
        fit = (k for k in self.after if seconds <= k * self.seconds - self.margin)
        return next(fit, None)

    def length(self, k: int | None) -> float:
        """How long a question has the table's process: until its answer appears, or never does."""
        return (self.after[-1] if k is None else k) * self.seconds


def slot_for(slowest: float) -> float:
    """The length of slots where the slowest example takes this long: twice that, rounded up.

    >>> [slot_for(seconds) for seconds in (0.01, 0.25, 0.26, 0.51, 1.2, 3, 40)]
    [0.5, 0.5, 0.7, 1.5, 3.0, 7.0, 100.0]
    """
    return next(tenths / 10 for tenths in _tenths() if _TWICE * slowest <= tenths / 10)


def _tenths() -> Iterator[int]:
    """Lengths that slots may be given, in tenths of a second: six a decade, from half a second."""
    yield from _SHORT
    for decade in count():
        yield from (step * 10**decade for step in _STEPS)


def late(slots: Slots, k: int | None) -> str | None:
    """What a steward is told of a question that took its last slot, or more; k is public.

    >>> late(Slots(seconds=2), 4)
    'took its last slot; where that happens often, pass a longer one: --slot 5'
    >>> late(Slots(seconds=2), 2), late(Slots(seconds=2, strict=True), 1)
    (None, None)
    """
    if k is not None and (slots.strict or k < slots.after[-1]):
        return None
    words = "was not answered" if k is None else "took its last slot"
    longer = f"--slot {slot_for(slots.seconds):g}"
    return f"{words}; where that happens often, pass a longer one: {longer}"


class Item(Protocol):
    """What waits in a line."""

    submitted: float
    """By the clock of the line."""
    fixed: int | None
    """How many slots it has, being ready anyway; None: as many as it needs, by the law."""

    def taken(self) -> bool:
        """Its turn has come: `fixed` is decided now. Whether the process is there, if needed."""

    async def process(self) -> None:
        """Wait until the process is there."""

    async def ready(self) -> bool:
        """Do the work; False if it failed. It is cancelled when it is too late for it."""

    async def settle(self) -> bool:
        """Write it into the ledger; False if that failed."""

    async def close(self) -> None:
        """End the work for good: it was not ready in time, or failed."""

    async def appear(self, start: float, k: int | None) -> None:
        """Show it."""


class Line:
    """The questions of one table, in their order: the law above, on the clock of the event loop."""

    def __init__(self, slots: Slots) -> None:
        self.slots = slots
        self.running: tuple[Item, float] | None = None
        self._waiting: deque[Item] = deque()
        self._more = asyncio.Event()
        self._end = 0.0
        self._clock = asyncio.get_running_loop().time  # asked for by other threads, too

    def add(self, item: Item) -> None:
        """Put an item at the end; items are added in the order of their submission."""
        self._waiting.append(item)
        self._more.set()

    def __len__(self) -> int:
        """How many wait, the running one not counted."""
        return len(self._waiting)

    def due(self, item: Item) -> float | None:
        """The next end of a slot at which it may appear; None if it is not here."""
        now, end = self._clock(), self._end
        found = self.running
        if found is not None:
            running, start = found
            ends = [start + self.slots.length(k) for k in self.slots.after]
            end = next((end for end in ends if end > now), ends[-1])
            if running is item:
                return end
        for other in list(self._waiting):
            end = max(end, other.submitted) + self.slots.seconds
            if other is item:
                return max(end, now)
        return None

    async def run(self, stopped: asyncio.Event, fault: Callable[[Exception], None]) -> None:
        """Take one after the other, until this is set and the slot that runs has ended.

        An error that an item lets through is a fault of the program, or of disk and ledger.
        """
        while (item := await self._next(stopped)) is not None:
            try:
                await self._turn(item, stopped)
            except Exception as error:
                fault(error)
            self.running = None

    async def _turn(self, item: Item, stopped: asyncio.Event) -> None:
        start = max(item.submitted, self._end)
        if not item.taken():
            await either(item.process(), stopped.wait())
            if stopped.is_set():
                return
            start = max(start, _now())
        self.running = item, start
        await self._done(item, start)

    async def _done(self, item: Item, start: float) -> None:
        self._end = start + self.slots.length(item.fixed)
        k = await self._worked(item, start)
        self._end = start + self.slots.length(item.fixed or k)
        await until(self._end)
        if k is None:
            await item.close()
        await item.appear(start, k)

    async def _next(self, stopped: asyncio.Event) -> Item | None:
        while not stopped.is_set():
            if self._waiting:
                return self._waiting.popleft()
            self._more.clear()
            await either(self._more.wait(), stopped.wait())
        return None

    async def _worked(self, item: Item, start: float) -> int | None:
        latest = self.slots.length(None) - self.slots.margin
        try:
            async with asyncio.timeout_at(start + latest):
                is_ready = await item.ready()
        except TimeoutError:
            return None
        k = item.fixed or (self.slots.ready(_now() - start) if is_ready else None)
        if k is None:
            return None
        await until(start + k * self.slots.seconds - self.slots.margin)
        return k if await item.settle() else None


def _now() -> float:
    return asyncio.get_running_loop().time()


async def until(end: float) -> None:
    """Wait for a time of the loop's clock; not less, whatever the timers do."""
    while (seconds := end - _now()) > 0:
        await asyncio.sleep(seconds)


async def either(*waits: Coroutine[Any, Any, Any]) -> None:
    """Wait for the first of them, and stop waiting for the others."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
