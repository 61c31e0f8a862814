"""Random state that a forked process shares with its parent."""

from __future__ import annotations

import os
import struct
import warnings

from lastbit.audit.attacks.trial import Tally, Trial
from lastbit.audit.bounds import DEFAULT_ERROR
from lastbit.audit.result import Verdict
from lastbit.audit.targets.target import Target
from lastbit.errors import InvalidParameter
from lastbit.exact import Number


def forked(target: Target, *, samples: int = 200, error: Number = DEFAULT_ERROR) -> Verdict:
    """Looks for a child process that repeats its parent's noise.

    Law      the process forks; the parent releases the first value, the child the first one too
             (one world) or the second one (the other world). The event: both outputs are equal
    Theorem  only the child's input differs between the worlds, and the child releases once; if its
             noise is its own, both outputs together reveal at most epsilon. A child with its
             parent's state repeats the noise: equal outputs always, or never. Each fork is a trial
    Breaks   generators seeded, or buffers filled, before the fork: numpy's and what is built on
             it, PyDP's; pools of workers and pre-forking servers do this
    Resists  generators that notice the fork, or ask the system for every draw
    Source   known since OpenSSL's fork bugs; for noise: docs/threat-model.md
    Checked  tests/audit/attacks/test_forked.py

    `samples` counts forks. A mechanism with few different outputs resists longer.

    >>> same = Target(name="bare", release=lambda value, size: [value] * size, claimed=1)
    >>> forked(same, samples=100).broken
    True
    """
    trial = Trial("fork", target, samples=samples, error=error)
    if not hasattr(os, "fork"):
        raise InvalidParameter("target", problem="cannot be forked here", remedy="run it on Linux")
    each = trial.samples // 2
    equal = [sum(_repeats(target, world) for _ in range(each)) for world in (0, 1)]
    counted = Tally(hits=equal[0], trials=each, other_hits=equal[1], other_trials=each)
    return trial.judged(
        counted,
        witness="a forked process repeats its parent's output if the inputs are equal, else seldom",
        samples=2 * each,
    )


def _repeats(target: Target, world: int) -> bool:
    """Whether a child that releases the value of this world gives the parent's output."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # about threads; the child only draws
        child = os.fork()
    if child == 0:
        _answer(target, world, writer)
    os.close(writer)
    try:
        with os.fdopen(reader, "rb") as pipe:
            own = float(target.draw(0, 1)[0])
            sent = pipe.read()
    finally:
        os.waitpid(child, 0)
    if len(sent) != 8:
        raise InvalidParameter(
            "target", problem="fails in a forked process", remedy="audit it without this attack"
        )
    other: float = struct.unpack("<d", sent)[0]
    return other == own


def _answer(target: Target, world: int, writer: int) -> None:
    """In the child: send one output, and never come back."""
    try:
        os.write(writer, struct.pack("<d", float(target.draw(world, 1)[0])))
        os._exit(0)
    finally:
        os._exit(1)
