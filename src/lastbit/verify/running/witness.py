"""A concrete output set that tells two inputs apart, for code with too many outputs to list."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Any

from lastbit.errors import InvalidParameter, NotMonotone
from lastbit.exact import Ball, ends, whole
from lastbit.sampling import uniform_below
from lastbit.verify.certificate import certify
from lastbit.verify.direction import followed_steps
from lastbit.verify.running.code import Calls, Code, Function, evaluated, input_of, order
from lastbit.verify.running.law import branches_of, claim_about, if_monotone, log_ratio
from lastbit.verify.running.uniforms import Uniform, model_of, stratified

_NEAR = 32
_STRATA = 256
_INFINITY = order(float("inf"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Preimage:
    """The uniforms of one branch that lead into a range of outputs: those numbered first ... last.

    None do if last is first - 1.
    """

    sign: int | None
    rises: bool
    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Refutation:
    """Outputs from `low` to `high`: exactly how likely from one input, and from the other.

    `inputs[0]` gives one of them with `probabilities[0]`, `inputs[1]` with `probabilities[1]`.
    """

    inputs: tuple[float, float]
    low: float
    high: float
    probabilities: tuple[Fraction, Fraction]
    preimages: tuple[tuple[Preimage, ...], tuple[Preimage, ...]] = field(repr=False)
    uniform: Uniform
    signs: tuple[int, ...] | None
    splits: tuple[int, ...]
    code: Code | None = field(default=None, repr=False, compare=False)

    @property
    def infinite(self) -> bool:
        """Whether the second input never gives such an output."""
        return self.probabilities[1] == 0

    @property
    def loss(self) -> Ball | None:
        return log_ratio(*self.probabilities)

    @property
    def monotone(self) -> str:
        """How the code is known to be monotone in its uniform: "proved" or "probed"."""
        proved = self.code is not None and self._steps(self.code) is not None
        return "proved" if proved else "probed"

    def certificate(self, code: Code) -> dict[str, Any]:
        """What the checker needs to find the same probabilities."""
        stated, steps = "infinite", self._steps(code)
        if self.loss is not None:
            scale = 1 << 180
            stated = str(Fraction(int(ends(self.loss.enclosure)[0] * scale) - 1, scale))
        claim = {
            **claim_about(code, self.uniform, self.signs, self.splits, self.inputs),
            "outputs": [self.low.hex(), self.high.hex()],
            "loss": stated,
            "probabilities": [str(share) for share in self.probabilities],
            "monotone": "probed" if steps is None else "proved",
        }
        preimages = [
            [{"sign": p.sign, "rises": p.rises, "range": [p.first, p.last]} for p in preimage]
            for preimage in self.preimages
        ]
        return certify("refutation", claim, {"preimages": preimages, "programs": steps or []})

    def _steps(self, code: Code) -> list[list[list[object]]] | None:
        """Steps that prove the code monotone between the splits, for both inputs; None if none."""
        point, signs = self.uniform.point, self.signs or (None,)
        starts = [0, *self.splits, self.uniform.size]
        stretches = [
            (sign, point(first), point(after - 1))
            for sign in signs
            for first, after in pairwise(starts)
        ]
        places = [
            (value, p.sign, point(index))
            for value, preimage in zip(self.inputs, self.preimages, strict=True)
            for p in preimage
            for index in (p.first - 1, p.first, p.last, p.last + 1)
            if 0 <= index < self.uniform.size
        ]
        places += [(v, sign, u) for v in self.inputs for sign, *both in stretches for u in both]
        seen = [(v, sign, u, evaluated(code, v, u, sign)) for v, sign, u in places]
        return followed_steps(code, self.inputs, signs, stretches, seen)

    def __str__(self) -> str:
        loss = "infinite" if self.loss is None else f"{float(self.loss.ends[0]):.9g} or more"
        return (
            f"loss {loss}{if_monotone(self.monotone)}\n"
            f"outputs from {self.low!r} to {self.high!r}, inputs {self.inputs[0]!r} and "
            f"{self.inputs[1]!r}"
        )


def refute(
    function: Function,
    x: float,
    y: float,
    *,
    uniform: Uniform | None = None,
    signs: Sequence[int] | None = (-1, 1),
    pieces: Sequence[float] = (),
    tries: int = 200,
) -> Refutation | None:
    """The most telling outputs that were found, or None if none tells x and y apart.

    Law      the two probabilities are exact: those of the outputs from `low` to `high`
    Theorem  if the output rises or falls with u, the preimage of a range is a stretch of uniforms,
             found by bisection. Between two neighbouring outputs that y reaches there is a gap;
             whatever x puts there has the probability 0 from y: an infinite loss
    Differs  a search: None proves nothing. Uniforms are tried where the exponent changes,
             beside those, and at random; of the infinite losses the most likely one is kept, else
             the greatest ratio. That the code is monotone is assumed, and probed: beside the ends,
             at the model's landmarks, and once in each of 256 equally likely stretches
    Checked  tests/verify/test_witness.py

    >>> from math import log
    >>> def naive(x, u):
    ...     return x + log(2 * u) if u < 0.5 else x - log(2 - 2 * u)
    >>> found = refute(naive, 0.0, 1.0, signs=None)
    >>> found.infinite, found.probabilities[0] > 0
    (True, True)
    """
    model = model_of(uniform)
    count = whole(tries, "tries", least=1)
    stretches = list(branches_of(model, signs, pieces))
    inputs = (input_of(x, "x"), input_of(y, "y"))
    calls = Calls(function)
    one, two = (_Code(calls, value, model, stretches) for value in inputs)
    one.check_order()
    two.check_order()
    best: Refutation | None = None
    greatest = (False, Fraction(0))
    for a, b in ((one, two), (two, one)):
        for output in dict.fromkeys(a.candidates(count)):
            low, high = b.gap(output)  # the output, or the whole gap around it
            here, there = a.preimage(low, high), b.preimage(low, high)
            p, q = a.share(here), b.share(there)
            telling = (q == 0, p if q == 0 else p / q)
            if p <= q or telling <= greatest or not (a.steady(here) and b.steady(there)):
                continue
            greatest = telling
            best = Refutation(
                inputs=(a.value, b.value),
                low=_float(low),
                high=_float(high),
                probabilities=(p, q),
                preimages=(here, there),
                uniform=model,
                signs=None if signs is None else tuple(signs),
                splits=tuple(sorted({first for _, first, _ in stretches} - {0})),
                code=function if isinstance(function, Code) else None,
            )
    calls.check_again()
    return best


class _Code:
    """The function at one input, as maps from numbers of uniforms to ordered outputs."""

    def __init__(
        self,
        calls: Calls,
        value: float,
        uniform: Uniform,
        stretches: list[tuple[int | None, int, int]],
    ) -> None:
        self.value, self.uniform, self.stretches = value, uniform, stretches
        self.branches = []
        for sign, first, last in stretches:

            def at(index: int, sign: int | None = sign) -> int:
                return order(calls.at(value, uniform.point(index), sign))

            self.branches.append((sign, first, last, at, at(first) <= at(last)))

    def check_order(self) -> None:
        """Refuse code that turns: its preimages would not be stretches."""
        for _, first, last, at, rises in self.branches:
            marks = [mark for mark in self.uniform.landmarks() if first < mark < last]
            marks += stratified(self.uniform, first, last, strata=_STRATA)
            places = sorted({first, last, *marks})
            for (a, before), (b, after) in pairwise((place, at(place)) for place in places):
                if before != after and (before < after) != rises:
                    u, v = self.uniform.point(a), self.uniform.point(b)
                    raise NotMonotone(
                        f"the output turns between the uniforms {u!r} and {v!r}; pass pieces= with "
                        "the points between which it rises or falls",
                        between=(u, v),
                    )

    def candidates(self, tries: int) -> Iterator[int]:
        """Outputs at structured places and at random ones, as ordered integers."""
        powers = [Fraction(1, 1 << k) for k in range(1, 33)]
        marks = [self.uniform.number(u) for u in (*powers, *(1 - u for u in powers[1:17]))]
        for _, first, last, at, _ in self.branches:
            near = {m + d for m in (first, last, *marks) for d in (-1, 0, 1)}
            places = [place for place in sorted(near) if first <= place <= last]
            places += [first + int(k) for k in uniform_below(last - first + 1, size=tries).tolist()]
            # uniform reals too: numbers of full-precision floats crowd near 0
            reals = [Fraction(int(k), 1 << 62) for k in uniform_below(1 << 62, size=tries).tolist()]
            places += [min(max(self.uniform.number(real), first), last) for real in reals]
            yield from map(at, places)

    def preimage(self, low: int, high: int) -> tuple[Preimage, ...]:
        """The uniforms that lead to outputs from low to high."""
        found = []
        for sign, first, last, at, rises in self.branches:
            way, (least, most) = (1, (low, high)) if rises else (-1, (-high, -low))
            start = _reached(first, last, lambda i, at=at, w=way: w * at(i), least)  # type: ignore[misc]
            after = _next(start, last, lambda i, at=at, w=way, x=most: w * at(i) > x)  # type: ignore[misc]
            found.append(Preimage(sign=sign, rises=rises, first=start, last=after - 1))
        return tuple(found)

    def gap(self, output: int) -> tuple[int, int]:
        """The widest range around an output that is never reached; else the output alone."""
        low, high = -_INFINITY - 1, _INFINITY
        branches = zip(self.preimage(output, output), self.branches, strict=True)
        for preimage, (_, first, last, at, _) in branches:
            if preimage.first <= preimage.last:
                return output, output
            for index in (preimage.first - 1, preimage.first):
                if first <= index <= last:
                    reached = at(index)
                    low = max(low, reached + 1) if reached < output else low
                    high = min(high, reached - 1) if reached > output else high
        return low, high

    def steady(self, preimage: tuple[Preimage, ...]) -> bool:
        for part, (_, first, last, at, rises) in zip(preimage, self.branches, strict=True):
            for end in (part.first, part.last):
                near = range(max(first, end - _NEAR), min(last, end + _NEAR) + 1)
                outputs = [at(index) for index in near]
                if sorted(outputs, reverse=not rises) != outputs:
                    return False
        return True

    def share(self, preimage: tuple[Preimage, ...]) -> Fraction:
        """The exact probability of these uniforms."""
        below = self.uniform.below
        total = sum((below(part.last + 1) - below(part.first) for part in preimage), Fraction(0))
        return total / len({sign for sign, _, _ in self.stretches})


def _first(low: int, last: int, holds: Callable[[int], bool]) -> int:
    """The least number from which a condition holds up to `last`; last + 1 if it never does."""
    high = last + 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def _reached(low: int, last: int, at: Callable[[int], int], wanted: int) -> int:
    """The least number at which a rising `at` is `wanted` or more; last + 1 if there is none.

    A guess on the line between the two ends, another beside it, at the root of what is left, and a
    halving if both were bad: about 12 steps where code is smooth and halving alone takes 53.
    """
    high, below, above = last, at(low), at(last)
    if below >= wanted or above < wanted:
        return low if below >= wanted else last + 1
    while high - low > 1:
        wide, root = high - low, math.isqrt(high - low)
        guess = low + wide * (wanted - below) // (above - below)
        for place in (guess, guess + root, guess - root, low + wide // 2):
            if low < place < high and 2 * (high - low) > wide:
                found = at(place)
                if found >= wanted:
                    high, above = place, found
                else:
                    low, below = place, found
    return high


def _next(low: int, last: int, holds: Callable[[int], bool]) -> int:
    """The same where that number is probably near: by steps that double, then by halving."""
    step, at = 1, low
    while at <= last and not holds(at):
        low, at, step = at + 1, at + step, 2 * step
    return _first(low, min(at, last + 1) - 1, holds)


def _float(key: int) -> float:
    """The inverse of `order`."""
    if not -_INFINITY - 1 <= key <= _INFINITY:
        raise InvalidParameter("key", problem="is not a float", remedy="pass an ordered float")
    pattern = key if key >= 0 else (-(key + 1)) | -(1 << 63)
    return float(struct.unpack("<d", struct.pack("<q", pattern))[0])
