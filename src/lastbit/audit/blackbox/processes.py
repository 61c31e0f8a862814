"""Several processes explore their share of the pairs at the same time."""

from __future__ import annotations

import multiprocessing
import time
import warnings
from multiprocessing.connection import Connection, wait
from typing import Any

from lastbit.audit.blackbox.sampled import explore
from lastbit.audit.blackbox.search import Draw, Plan, Progress
from lastbit.audit.inputs import Pair
from lastbit.audit.result import PairFinding


def explored(draw: Draw, dealt: list[list[Pair]], plan: Plan, tell: Progress) -> list[PairFinding]:
    """What each hand of pairs gave, in order: one process for each."""
    if len(dealt) == 1:
        return [explore(draw, dealt[0], plan, tell)]
    context = multiprocessing.get_context("fork")  # a closure cannot be sent, only inherited
    running: dict[Connection, tuple[int, Any]] = {}
    try:
        for number, hand in enumerate(dealt):
            ours, theirs = context.Pipe(duplex=False)
            process = context.Process(target=_work, args=(theirs, draw, hand, plan), daemon=True)
            with warnings.catch_warnings():
                # Python 3.12 warns of forks beside threads; a linear algebra library has some
                warnings.simplefilter("ignore", DeprecationWarning)
                process.start()
            theirs.close()
            running[ours] = number, process
        return _gathered(running, len(dealt), tell)
    finally:
        for pipe, (_, process) in running.items():
            pipe.close()
            process.terminate()
            process.join()


def _gathered(
    running: dict[Connection, tuple[int, Any]], count: int, tell: Progress
) -> list[PairFinding]:
    found: dict[int, PairFinding] = {}
    shares = [0.0] * count
    while len(found) < count:
        for pipe in wait([p for p, (number, _) in running.items() if number not in found]):
            assert isinstance(pipe, Connection)
            number = running[pipe][0]
            try:
                message = pipe.recv()
            except EOFError:
                raise RuntimeError("a process of the audit ended without an answer") from None
            match message:
                case PairFinding():
                    found[number] = message
                case str():
                    raise _failure(pipe, message)
                case (share, text):
                    shares[number] = share
                    tell(min(shares), text)
    return [found[i] for i in range(count)]


def _failure(pipe: Connection, kind: str) -> Exception:
    """What the mechanism raised, or its kind where that does not survive the way through a pipe."""
    try:
        failure = pipe.recv()
    except Exception:
        return RuntimeError(kind)
    return failure if isinstance(failure, Exception) else RuntimeError(kind)


def _work(pipe: Connection, draw: Draw, pairs: list[Pair], plan: Plan) -> None:
    last = 0.0

    def report(share: float, text: str) -> None:
        nonlocal last
        if time.perf_counter() - last > 0.1:
            last = time.perf_counter()
            pipe.send((share, text))

    try:
        pipe.send(explore(draw, pairs, plan, report))
    except Exception as failure:
        pipe.send(f"the mechanism failed with {type(failure).__name__}")
        try:
            pipe.send(failure)
        except Exception:  # it cannot be sent: the parent has been told its kind
            pipe.close()
