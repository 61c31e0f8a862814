"""SPLIT: halving a box where the bound is worst."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from lastbit.verify.derivation import Box, Derivation, Judgement
from lastbit.verify.formats import floor_log2, power_of_two
from lastbit.verify.intervals import hull
from lastbit.verify.rules import NoBound

__all__ = ["split"]


@dataclass(slots=True, eq=False)
class _Piece:
    """A box with its judgement, or with why there is none, or with its two halves."""

    box: Box
    found: Derivation | NoBound
    halves: tuple[_Piece, _Piece] | None = None

    @property
    def badness(self) -> tuple[bool, Fraction]:
        found = self.found
        return (True, Fraction(0)) if isinstance(found, NoBound) else (False, found.error)


def split(over: Callable[[Box], Derivation], box: Box, *, most: int) -> Derivation:
    """The judgement over a box, from at most so many pieces, the worst always halved first."""
    root = _piece(over, box)
    count = 1
    queue: list[tuple[bool, Fraction, int, _Piece]] = []
    _push(queue, root, count)
    while count < most and queue:
        *_, worst = heapq.heappop(queue)
        halves = _best_halves(over, worst.box)
        if halves is None:  # a single point: nothing to gain
            break
        worst.halves = halves
        count += 1
        for half in halves:
            _push(queue, half, count)
    return _joined(root)


def _push(queue: list[tuple[bool, Fraction, int, _Piece]], piece: _Piece, count: int) -> None:
    unbounded, error = piece.badness
    heapq.heappush(queue, (not unbounded, -error, 2 * count + len(queue), piece))


def _piece(over: Callable[[Box], Derivation], box: Box) -> _Piece:
    try:
        return _Piece(box, over(box))
    except NoBound as problem:
        return _Piece(box, problem)


def _best_halves(over: Callable[[Box], Derivation], box: Box) -> tuple[_Piece, _Piece] | None:
    """The halves along the input whose halving helps most."""
    best = None
    for index, (name, low, high) in enumerate(box):
        if low == high:
            continue
        at = _middle(low, high)
        pieces = tuple(
            _piece(over, (*box[:index], (name, *ends), *box[index + 1 :]))
            for ends in ((low, at), (at, high))
        )
        worst = max(piece.badness for piece in pieces)
        rest = min(piece.badness for piece in pieces)
        score = (worst, rest, -_spread(low, high))
        if best is None or score < best[0]:
            best = score, (pieces[0], pieces[1])
    return None if best is None else best[1]


def _spread(low: Fraction, high: Fraction) -> Fraction:
    return (high - low) / max(abs(low), abs(high))


def _middle(low: Fraction, high: Fraction) -> Fraction:
    """A short number strictly between: the middle, or by exponents if the ends differ greatly."""
    if low > 0 and high > 8 * low:
        return power_of_two((floor_log2(low) + floor_log2(high) + 1) // 2)
    if high < 0 and low < 8 * high:
        return -_middle(-high, -low)
    middle = (low + high) / 2
    step = power_of_two(floor_log2(high - low) - 6)
    return round(middle / step) * step


def _joined(root: _Piece) -> Derivation:
    """The pieces put together again, from below."""
    order, stack = [], [root]
    while stack:
        order.append(stack.pop())
        stack.extend(order[-1].halves or ())
    done: dict[int, Derivation] = {}
    for piece in reversed(order):  # every piece after its halves
        found = piece.found
        if piece.halves is not None:
            low, high = (done[id(half)] for half in piece.halves)
            found = _union(low, high, piece.box)
        if isinstance(found, NoBound):
            raise found
        done[id(piece)] = found
    return done[id(root)]


def _union(low: Derivation, high: Derivation, box: Box) -> Derivation:
    a, b = low.conclusion, high.conclusion
    real, computed = hull(a.real, b.real), hull(a.computed, b.computed)
    conclusion = Judgement(real, computed, max(a.error, b.error))
    return Derivation("SPLIT", low.expression, conclusion, (low, high), box)
