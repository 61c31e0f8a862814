"""The processes of an audit: each has the mechanism, a stream of its own, and one core.

They do the same work on outputs of their own, and one parent decides. Whether the streams are
independent is up to the mechanism. A generator that was seeded before the fork gives the same
outputs in every process: the first outputs are compared, and where they agree more often than by
chance one process goes on alone.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import warnings
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lastbit.audit.blackbox.events import ScoreEvent
from lastbit.audit.blackbox.features import Rows
from lastbit.audit.blackbox.search import Draw, Plan, Scout
from lastbit.audit.inputs import Pair

Counts: TypeAlias = NDArray[np.int64]  # by event; hits or runs; likelier input or other
_ALIKE = 6.0  # deviations
_MOST_TIMED = 1 << 21
_AHEAD = 2  # rounds that are asked for before the first of them is read


class Coins:
    """Fair coins: whether a run is on the first input.

    A seed alone would fix the numbers of runs once and for all, and `ratio_lower` would promise
    nothing about that audit. So the label holds a digest of outputs that were drawn before: an
    audit can be repeated if the mechanism can, and the coins are as random as the mechanism is.
    """

    def __init__(self, seed: int, label: str) -> None:
        self._key = f"{seed}/{label}/".encode()
        self._count = 0

    def heads(self, coins: int) -> int:
        self._count += 1
        text = hashlib.shake_128(self._key + str(self._count).encode()).digest(-(-coins // 8))
        return (int.from_bytes(text, "big") >> (-coins % 8)).bit_count()


class Worker(Scout):
    """One process of the audit: it looks, and then it counts; each method answers a question."""

    def __init__(self, draw: Draw, pairs: Sequence[Pair], plan: Plan, number: int) -> None:
        super().__init__(draw, pairs, plan)
        self._number = number

    def hold(self, place: int, events: Sequence[ScoreEvent], label: str) -> None:
        """Fix some events of one pair, before their first run is drawn."""
        label = f"{label} of pair {place} in process {self._number} after {self.box.seen}"
        self._coins, self._pair = Coins(self._plan.seed, label), self._pairs[place]
        self._events = [event.compiled() for event in events]

    def count(self, size: int) -> Counts:
        """Hits and runs of each event, under its likelier input and under the other.

        A coin decides the input of each run.
        """
        counts = np.zeros((len(self._events), 2, 2), dtype=np.int64)
        for part in self.box.chunks(size):
            heads = self._coins.heads(part)
            for side, runs in enumerate((heads, part - heads)):
                if runs:
                    table = self.box(self._pair[side], runs)
                    for event, found in zip(self._events, counts, strict=True):
                        place = 1 - side if event.swapped else side
                        found[:, place] += int(np.count_nonzero(event.holds(table))), runs
        return counts

    def time(self, seconds: float) -> float:
        """How long a run takes to draw and to count, by runs that are not counted."""
        size = max(self.least, min(_MOST_TIMED, int(seconds / self.box.pace / 2)))
        start = self._plan.clock()
        self.count(size)
        return (self._plan.clock() - start) / size


class Team:
    """Processes that answer the same questions at the same time; of one, this process itself."""

    def __init__(self, draw: Draw, pairs: Sequence[Pair], plan: Plan, processes: int) -> None:
        self._local = Worker(draw, pairs, plan, 0) if processes == 1 else None
        self._pipes: list[Connection] = []
        self._running: list[Any] = []
        self.repeated = False
        if self._local is None:
            for number in range(processes):
                self._start(draw, pairs, plan, number)

    def __enter__(self) -> Team:
        return self

    def __exit__(self, *failure: object) -> None:
        self._keep(0)

    def __len__(self) -> int:
        return 1 if self._local is not None else len(self._pipes)

    def try_out(self) -> None:
        """The first outputs of each; one process is kept if they are alike."""
        tables = self.ask("try_out")
        if any(alike(tables[0], other) for other in tables[1:]):
            self.repeated = True
            self._keep(1)

    def ask(self, question: str, *facts: Any) -> list[Any]:
        """What each process answers."""
        if self._local is not None:
            return [getattr(self._local, question)(*facts)]
        self._send(question, [facts] * len(self))
        return self._answers()

    def rounds(self, sizes: Iterator[Sequence[int]]) -> Iterator[Counts]:
        """Counts of one round after the other; of each round the runs of every process are given.

        The next rounds are asked for before the last is read, so that no process waits for another.
        A round is read when all processes have finished it: which runs are read never depends on
        how long they took.
        """
        if self._local is not None:
            for (size,) in sizes:
                yield self._local.count(size)
            return
        ahead = 0
        for given in sizes:
            self._send("count", [(size,) for size in given])
            ahead += 1
            if ahead == _AHEAD:
                yield sum(self._answers())
                ahead -= 1
        for _ in range(ahead):
            yield sum(self._answers())

    def _start(self, draw: Draw, pairs: Sequence[Pair], plan: Plan, number: int) -> None:
        context = multiprocessing.get_context("fork")  # a closure cannot be sent, only inherited
        ours, theirs = context.Pipe()
        process = context.Process(
            target=_serve, args=(theirs, draw, pairs, plan, number), daemon=True
        )
        with warnings.catch_warnings():
            # Python 3.12 warns of forks beside threads; a linear algebra library has some
            warnings.simplefilter("ignore", DeprecationWarning)
            process.start()
        theirs.close()
        self._pipes.append(ours)
        self._running.append(process)

    def _send(self, question: str, facts: Sequence[tuple[Any, ...]]) -> None:
        for pipe, fact in zip(self._pipes, facts, strict=True):
            pipe.send((question, fact))

    def _answers(self) -> list[Any]:
        return [_received(pipe) for pipe in self._pipes]

    def _keep(self, count: int) -> None:
        """Only the first so many go on."""
        for pipe, process in zip(self._pipes[count:], self._running[count:], strict=True):
            pipe.close()
            process.terminate()
            process.join()
        del self._pipes[count:], self._running[count:]


def alike(one: Sequence[Rows], two: Sequence[Rows]) -> bool:
    """Whether two processes' outputs of the same calls agree more often than by chance.

    Law      all are equal; or in some column the share of equal entries in the same place exceeds
             that of entries one place apart by six deviations
    Differs  a sign of streams that were copied, in whole or in part; never a proof that they were
             not. Taking independent streams for copies only makes the audit slower
    Checked  tests/audit/test_team.py
    """
    calls = min(len(one), len(two))
    x, y = (np.concatenate(tables[:calls]) for tables in (one, two))
    if x.shape != y.shape or np.array_equal(x, y):
        return x.shape == y.shape
    same, apart = (x == y).mean(axis=0), (x[1:] == y[:-1]).mean(axis=0)
    spread = np.sqrt((apart * (1 - apart) + 1 / len(x)) * 2 / len(x))
    return bool(np.any(same - apart > _ALIKE * spread))


def _received(pipe: Connection) -> Any:
    """The answer of a process, or what the mechanism raised there."""
    try:
        answer, failure = pipe.recv()
        if failure is None:
            return answer
    except EOFError:
        raise RuntimeError("a process of the audit ended without an answer") from None
    try:  # what was raised follows, if it survives a pipe
        raised = pipe.recv()
    except Exception:
        raised = None
    raise raised if isinstance(raised, Exception | SystemExit) else RuntimeError(failure)


def _serve(pipe: Connection, draw: Draw, pairs: Sequence[Pair], plan: Plan, number: int) -> None:
    worker = Worker(draw, pairs, plan, number)
    while True:
        try:
            question, facts = pipe.recv()
        except EOFError:  # the parent has gone
            return
        try:
            pipe.send((getattr(worker, question)(*facts), None))
        except (Exception, SystemExit) as failure:
            pipe.send((None, f"the mechanism failed with {type(failure).__name__}"))
            try:
                pipe.send(failure)
            except Exception:  # it cannot be sent: the parent has been told its kind
                pipe.close()
            return
