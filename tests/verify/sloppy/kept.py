# mypy: ignore-errors
"""Keeps something between calls, or asks the world: the same arguments give different answers."""

import functools
import itertools
import os
import random
import threading
import time
from contextlib import contextmanager

from tests.verify.sloppy.noise import rounded

COUNT = 0
SEEN = []
MEMO = {}
TURNS = itertools.count()
CYCLE = itertools.cycle([1.0, 1.0, 0.001])
WARM = {"calls": 0}
LOCAL = threading.local()
RANDOM = random.Random(7)


def counted(value, u, sign):
    global COUNT
    COUNT += 1
    return rounded(value, u, sign, 0.001 if COUNT % 3 == 0 else 1.0)


def warmed_up(value, u, sign):
    WARM["calls"] += 1
    return rounded(value, u, sign, 1.0 if WARM["calls"] < 5 else 0.001)


def remembered(value, u, sign):
    SEEN.append(1)
    return rounded(value, u, sign, 1.0 if len(SEEN) < 9 else 0.001)


def memo(value, u, sign):
    key = round(float(value)) if isinstance(value, float) else 0
    if key not in MEMO:
        MEMO[key] = rounded(value, u, sign, 1.0)
    return MEMO[key]


def by_turns(value, u, sign):
    return rounded(value, u, sign, 1.0 if next(TURNS) % 2 else 0.001)


def by_cycle(value, u, sign):
    return rounded(value, u, sign, next(CYCLE))


def default_list(value, u, sign, seen=[]):
    seen.append(None)
    return rounded(value, u, sign, 1.0 if len(seen) < 7 else 0.001)


def default_dict(value, u, sign, *, state={"scale": 1.0}):
    state["scale"] = 1.0 if state["scale"] < 1.0 else 0.001
    return rounded(value, u, sign, state["scale"])


def on_itself(value, u, sign):
    on_itself.calls = getattr(on_itself, "calls", 0) + 1
    return rounded(value, u, sign, 1.0 if on_itself.calls < 6 else 0.001)


def counter():
    calls = 0

    def enclosed(value, u, sign):
        nonlocal calls
        calls += 1
        return rounded(value, u, sign, 1.0 if calls < 6 else 0.001)

    return enclosed


enclosed = counter()


def cell():
    box = [1.0]

    def boxed(value, u, sign):
        scale = box[0]
        box[0] = 0.001
        return rounded(value, u, sign, scale)

    return boxed


boxed = cell()


def reused(value, u, sign):
    LOCAL.calls = getattr(LOCAL, "calls", 0) + 1
    return rounded(value, u, sign, 1.0 if LOCAL.calls < 4 else 0.001)


def by_clock(value, u, sign):
    return rounded(value, u, sign, 1.0 if time.perf_counter_ns() % 2 else 0.001)


def by_chance(value, u, sign):
    return rounded(value, u, sign, 1.0 if RANDOM.random() < 0.5 else 0.001)


def by_environment(value, u, sign):
    left = int(os.environ.get("SLOPPY_CALLS", "0")) + 1
    os.environ["SLOPPY_CALLS"] = str(left)
    return rounded(value, u, sign, 1.0 if left < 5 else 0.001)


def by_thread(value, u, sign):
    found = []
    worker = threading.Thread(target=lambda: found.append(next(TURNS) % 2))
    worker.start()
    worker.join()
    return rounded(value, u, sign, 1.0 if found[0] else 0.001)


@contextmanager
def quietly():
    SEEN.append(0)
    yield 1.0 if len(SEEN) % 2 else 0.001


def in_context(value, u, sign):
    with quietly() as scale:
        return rounded(value, u, sign, scale)


class Meter:
    def __init__(self):
        self.calls = 0

    def scale(self):
        self.calls += 1
        return 1.0 if self.calls < 5 else 0.001


METER = Meter()


def by_method(value, u, sign):
    return rounded(value, u, sign, METER.scale())


class Lazy:
    @functools.cached_property
    def first(self):
        return next(TURNS)

    @property
    def scale(self):
        return 1.0 if next(TURNS) % 3 else 0.001


LAZY = Lazy()


def by_property(value, u, sign):
    return rounded(value, u, sign, LAZY.scale)


def logged(function):
    calls = []

    def wrapped(value, u, sign):
        calls.append(1)
        return function(value, u, sign) if len(calls) < 6 else 0.25 * round(value / 0.25)

    return wrapped


@logged
def by_wrapper(value, u, sign):
    return rounded(value, u, sign, 1.0)


def by_builtins(value, u, sign):
    box = __builtins__ if isinstance(__builtins__, dict) else vars(__builtins__)
    box["sloppy"] = box.get("sloppy", 0) + 1
    return rounded(value, u, sign, 1.0 if box["sloppy"] < 5 else 0.001)


def by_globals(value, u, sign):
    globals()["COUNT"] += 1
    return rounded(value, u, sign, 1.0 if COUNT % 2 else 0.001)


def by_exec(value, u, sign):
    exec("WARM['calls'] += 1")
    return rounded(value, u, sign, 1.0 if WARM["calls"] % 2 else 0.001)


def by_import(value, u, sign):
    from tests.verify.sloppy import kept

    kept.COUNT += 1
    return rounded(value, u, sign, 1.0 if kept.COUNT % 2 else 0.001)


def by_address(value, u, sign):
    SEEN.append(object())
    return rounded(value, u, sign, 1.0 if id(SEEN[-1]) // 16 % 2 else 0.001)


def by_yield():
    scale = 1.0
    while True:
        value, u, sign = yield scale
        scale = rounded(value, u, sign, 1.0) if scale == 1.0 else value


STREAM = by_yield()
next(STREAM)


def by_stream(value, u, sign):
    return 0.25 * round(STREAM.send((value, u, sign)) / 0.25)


ALL = (
    counted, warmed_up, remembered, memo, by_turns, by_cycle, default_list, default_dict, on_itself,
    enclosed, boxed, reused, by_clock, by_chance, by_environment, by_thread, in_context, by_method,
    by_property, by_wrapper, by_builtins, by_globals, by_exec, by_import, by_address, by_stream,
)  # fmt: skip
