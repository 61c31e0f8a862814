"""The exact law of running float code, and the exact loss of two inputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Any

from lastbit.errors import InvalidParameter, NotMonotone, TooManyOutputs, WrongType
from lastbit.exact import Ball, Number, arb_of, ends, rational, whole, working_precision
from lastbit.sampling import uniform_below
from lastbit.verify.certificate import certify
from lastbit.verify.direction import followed_steps
from lastbit.verify.running.code import Calls, Code, Function, input_of, order
from lastbit.verify.running.uniforms import Uniform, index_of, model_of, stratified
from lastbit.verify.tracing.binding import running_code

_PRECISION = 320
_MOST_CELLS = 1 << 14
_SIGNS = (-1, 1)
_STRATA = 256
_FINE = 62


@dataclass(frozen=True, slots=True)
class Cell:
    """All uniforms from number `first` to number `last` lead to this output."""

    output: float
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Branch:
    """The cells of one sign between two splits, in the order of the uniforms."""

    sign: int | None
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactLaw:
    """Every output with its exact probability, and the cells of uniforms they came from."""

    outputs: tuple[float, ...]
    probabilities: tuple[Fraction, ...]
    branches: tuple[Branch, ...] = field(repr=False)
    uniform: Uniform
    signs: tuple[int, ...] | None

    @property
    def splits(self) -> list[int]:
        """Where the uniforms were split, as numbers."""
        return sorted({branch.cells[0].first for branch in self.branches} - {0})

    @property
    def by_output(self) -> dict[int, Fraction]:
        """The probabilities by the order of their outputs."""
        return {order(r): p for r, p in zip(self.outputs, self.probabilities, strict=True)}

    def probability(self, output: float) -> Fraction:
        """The exact probability of one output; 0 if it is never reached."""
        return self.by_output.get(order(output), Fraction(0))

    def written(self) -> list[dict[str, Any]]:
        """The law as certificates write it."""
        return [
            {"sign": b.sign, "cells": [[c.output.hex(), c.first, c.last] for c in b.cells]}
            for b in self.branches
        ]


def exact_law(
    function: Function | Calls,
    value: float,
    *,
    uniform: Uniform | None = None,
    signs: Sequence[int] | None = _SIGNS,
    pieces: Sequence[float] = (),
    most_cells: int = _MOST_CELLS,
    probes: int = 4,
) -> ExactLaw:
    """The exact law of function(value, u, sign), or function(value, u) with signs=None.

    Law      P(output = r) = the mean over the signs of P(u in the cells of r), as a fraction
    Theorem  if the output rises or falls with u, the uniforms of one output are neighbours. Where
             they begin is found by bisection over the numbers of the floats, calling the function
             itself; how likely they are the model of the generator says exactly
    Differs  that the code is monotone is probed here (and proved by `direction.py` for a
             certificate, where that can be done): at the ends of all cells; at `probes`
             random places in each by number, and as many by probability; where the exponent of u or
             of 1 - u changes, and at round decimals; and once in each of 256 `probes` equally
             likely stretches. So a turn is always found if its stretch of uniforms has 1/(128
             probes) of the probability. Code that is monotone only between some points is split
             there: `pieces`
    Checked  tests/verify/test_law.py

    >>> law = exact_law(Code("lastbit.mechanisms.snapping:snapped", epsilon=1.0, bound=2.0), 0.5)
    >>> law.outputs, sum(law.probabilities)
    ((-2.0, -1.0, 0.0, 1.0, 2.0), Fraction(1, 1))
    """
    calls = function if isinstance(function, Calls) else Calls(function)
    model, place = model_of(uniform), input_of(value, "value")
    most, count = whole(most_cells, "most_cells", least=1), whole(probes, "probes")
    branches: list[Branch] = []
    for sign, first, last in branches_of(model, signs, pieces):

        def at(index: int, sign: int | None = sign) -> float:
            return calls.at(place, model.point(index), sign)

        left = most - sum(len(branch.cells) for branch in branches)
        cells = _cells(at, first, last, model, left)
        if cells is None:
            raise TooManyOutputs(
                f"the function has more than {most} outputs; round its result to a grid, raise "
                f"most_cells, or try refute"
            )
        _probe(at, cells, model, count)
        branches.append(Branch(sign, tuple(cells)))
    if calls is not function:
        calls.check_again()
    return _law(tuple(branches), model, None if signs is None else tuple(signs))


def branches_of(
    uniform: Uniform, signs: Sequence[int] | None, pieces: Sequence[float]
) -> Iterator[tuple[int | None, int, int]]:
    """Every sign with every stretch of numbers on which the code is monotone."""
    if signs is not None and (
        sorted(signs) != [-1, 1] or any(type(sign) is not int for sign in signs)
    ):
        problem = "are neither None nor -1 and 1"
        raise InvalidParameter("signs", problem=problem, remedy="pass (-1, 1), or None")
    if isinstance(pieces, str) or not isinstance(pieces, Sequence):
        raise WrongType("pieces", problem="are not a list", remedy="pass, say, [0.5]")
    places = [rational(u, "pieces") for u in pieces]
    if not all(0 < u < 1 for u in places):
        problem = "are not all between 0 and 1"
        raise InvalidParameter("pieces", problem=problem, remedy="pass, say, [0.5]")
    inner = {index_of(uniform, u) for u in places} - {0, uniform.size}
    for sign in (None,) if signs is None else signs:
        for first, after in pairwise([0, *sorted(inner), uniform.size]):
            yield sign, first, after - 1


def _cells(
    at: Callable[[int], float], first: int, last: int, uniform: Uniform, most: int
) -> list[Cell] | None:
    """The cells from number `first` to `last`, by bisection; None if there are more than most.

    Where a cell should end is guessed from the three before it and looked for there first, in steps
    that begin with a part of what the last guess was off. Only the calls decide where it ends.
    """
    cells: list[Cell] = []
    start, output, end = first, at(first), at(last)
    todo = [(first, output, order(output), last, end, order(end))]
    guess, step = last, 1
    while todo:
        low, before, a, high, after, c = todo.pop()
        while a != c:  # the lower half at once, the upper half later
            if high == low + 1:
                cells.append(Cell(output, start, low))
                start, output = high, after
                if len(cells) >= most:
                    return None
                guess, step = _guess(cells, uniform), max(abs(high - guess) // 4, 1)
                break
            middle = low + step if low >= guess else high - step if high <= guess else guess
            if low < middle < high:
                step *= 2
            else:
                middle = (low + high) // 2
            between = at(middle)
            b = order(between)
            if not (a <= b <= c or a >= b >= c):
                _check_same(at, {low: before, middle: between, high: after})
                raise _not_monotone(uniform, low, middle, high)
            if b != c:
                todo.append((middle, between, b, high, after, c))
            high, after, c = middle, between, b
    return [*cells, Cell(output, start, last)] if most > 0 else None


def _guess(cells: Sequence[Cell], uniform: Uniform) -> int:
    """Where the next cell ends if ends of cells, as uniforms, are A + B r**k; else nowhere."""
    if len(cells) < 3:
        return uniform.size
    one, two, three = (uniform.point(cell.last) for cell in cells[-3:])
    ratio = (three - two) / (two - one)
    next_ = three + (three - two) * ratio
    return uniform.near(next_) if three < next_ < 1 else uniform.size


def _probe(at: Callable[[int], float], cells: list[Cell], uniform: Uniform, probes: int) -> None:
    """Look between the boundaries, and refuse code that is not constant there."""
    first, last = cells[0].first, cells[-1].last
    rise = [order(cell.output) for cell in cells]
    if sorted(rise) != rise and sorted(rise, reverse=True) != rise:
        raise _not_monotone(uniform, first, cells[len(cells) // 2].first, last)
    marks = {mark + d for mark in uniform.landmarks() for d in (-1, 0) if first <= mark + d <= last}
    marks.update(stratified(uniform, first, last, strata=_STRATA * probes))
    todo = sorted(marks, reverse=True)
    draws = iter(uniform_below(1 << _FINE, size=2 * probes * len(cells)).tolist())
    for cell, wanted in zip(cells, rise, strict=True):
        low, high = cell.first, cell.last
        places = [low, min(low + 1, high), max(high - 1, low), high]
        if high - low > len(places) and probes:  # at random, by number and by probability
            places += [low + ((high - low) * next(draws) >> _FINE) for _ in range(probes)]
            left, wide = uniform.point(low), uniform.point(high) - uniform.point(low)
            for k in range(probes):  # one in each of as many stretches, equally likely
                share = (k + math.ldexp(next(draws), -_FINE)) / probes
                places.append(min(max(uniform.near(left + wide * share), low), high))
        while todo and todo[-1] <= high:
            places.append(todo.pop())
        for place in places:
            if order(at(place)) != wanted:
                _check_same(at, dict.fromkeys((low, high), cell.output))
                raise _not_monotone(uniform, low, place, high)


def _check_same(at: Callable[[int], float], known: dict[int, float]) -> None:
    for index, output in known.items():
        if any(order(at(index)) != order(output) for _ in range(4)):
            problem = "gives two outputs for the same uniform"
            remedy = "let all its randomness come from u and sign"
            raise InvalidParameter("function", problem=problem, remedy=remedy)


def _not_monotone(uniform: Uniform, low: int, middle: int, high: int) -> NotMonotone:
    a, b, c = (uniform.point(index) for index in (low, middle, high))
    return NotMonotone(
        f"the output turns between the uniforms {a!r} and {c!r}, see {b!r}; pass pieces=, "
        f"points between which it rises or falls",
        between=(a, c),
    )


def _law(branches: tuple[Branch, ...], uniform: Uniform, signs: tuple[int, ...] | None) -> ExactLaw:
    shares: dict[int, Fraction] = {}
    names: dict[int, float] = {}
    for cell in (cell for branch in branches for cell in branch.cells):
        key = order(cell.output)
        names[key] = cell.output
        share = uniform.below(cell.last + 1) - uniform.below(cell.first)
        shares[key] = shares.get(key, Fraction(0)) + share / len(signs or (None,))
    keys = sorted(shares)
    return ExactLaw(
        outputs=tuple(names[key] for key in keys),
        probabilities=tuple(shares[key] for key in keys),
        branches=branches,
        uniform=uniform,
        signs=signs,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Worst:
    """The output that tells one input from another best, and its two exact probabilities."""

    output: float
    probability: Fraction
    other: Fraction

    @property
    def infinite(self) -> bool:
        """Whether the other input never gives this output."""
        return self.other == 0

    @property
    def loss(self) -> Ball | None:
        return log_ratio(self.probability, self.other)

    def excess(self, epsilon: Number) -> Ball | None:
        """The loss beyond a promise."""
        return None if self.loss is None else self.loss - rational(epsilon, "epsilon")


def log_ratio(probability: Fraction, other: Fraction) -> Ball | None:
    """ln(probability/other); None stands for infinity."""
    if other == 0:
        return None
    with working_precision(_PRECISION):
        return Ball(arb_of(probability / other).log())


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactLoss:
    """The exact privacy loss of two inputs: forward is x against y, backward y against x."""

    inputs: tuple[float, float]
    laws: tuple[ExactLaw, ExactLaw] = field(repr=False)
    forward: Worst
    backward: Worst
    code: Code | None = field(default=None, repr=False, compare=False)

    @property
    def direction(self) -> str:
        """Which of the two is the greater."""
        one, two = self.forward, self.backward
        if two.infinite and not one.infinite:
            return "backward"
        larger = one.probability * two.other >= two.probability * one.other
        return "forward" if one.infinite or larger else "backward"

    @property
    def worst(self) -> Worst:
        return self.forward if self.direction == "forward" else self.backward

    @property
    def infinite(self) -> bool:
        """Whether some output has a probability above 0 for one input and 0 for the other."""
        return self.worst.infinite

    @property
    def loss(self) -> Ball | None:
        return self.worst.loss

    def excess(self, epsilon: Number) -> Ball | None:
        return self.worst.excess(epsilon)

    def delta(self, epsilon: Number) -> Ball:
        """The least delta at this epsilon, for these inputs in both directions.

        Law      the sum over the outputs of max(0, P - exp(epsilon) Q), the greater of the two ways
        """
        claimed, sums = rational(epsilon, "epsilon"), []
        with working_precision(_PRECISION):
            factor = arb_of(claimed).exp()
            for p, q in (self.laws, self.laws[::-1]):
                others, total = q.by_output, arb_of(0)
                for key, share in p.by_output.items():
                    rest = arb_of(share) - factor * arb_of(others.get(key, Fraction(0)))
                    total += rest.max(arb_of(0))
                sums.append(total)
            return Ball(sums[0].max(sums[1]))

    def certificate(self, code: Code) -> dict[str, Any]:
        """What the checker needs to find the same loss; `code` is what was analysed."""
        one, worst = self.laws[0], self.worst
        loss = worst.loss
        steps = monotone_steps(code, self.inputs, self.laws)
        claim = {
            **claim_about(code, one.uniform, one.signs, one.splits, self.inputs),
            "loss": "infinite" if loss is None else [str(end) for end in _outward(loss)],
            "direction": self.direction,
            "output": worst.output.hex(),
            "probabilities": [str(worst.probability), str(worst.other)],
            "monotone": "probed" if steps is None else "proved",
        }
        body = {"laws": [law.written() for law in self.laws], "programs": steps or []}
        return certify("law", claim, body)

    @property
    def monotone(self) -> str:
        """How the code is known to be monotone in its uniform: "proved" or "probed"."""
        proved = monotone_steps(self.code, self.inputs, self.laws) is not None
        return "proved" if proved else "probed"

    def __str__(self) -> str:
        loss = "infinite" if self.loss is None else f"{float(self.loss.ends[1]):.9g}"
        return (
            f"exact loss {loss}{if_monotone(self.monotone)}\n"
            f"inputs {self.inputs[0]!r} and {self.inputs[1]!r}; the worst output is "
            f"{self.worst.output!r}"
        )


def _outward(ball: Ball) -> tuple[Fraction, Fraction]:
    """The ends of a ball on multiples of 2**-180: short, and wide enough for any second look."""
    low, high = (end * (1 << 180) for end in ends(ball.enclosure))
    return Fraction(math.floor(low) - 1, 1 << 180), Fraction(math.ceil(high) + 1, 1 << 180)


def claim_about(
    code: Code,
    uniform: Uniform,
    signs: Sequence[int] | None,
    splits: Sequence[int],
    inputs: Sequence[float],
) -> dict[str, Any]:
    """What a certificate about running code says of the code, its draws and its two inputs."""
    return {
        "function": code.name,
        "code": running_code(code.function),
        "parameters": {name: value.hex() for name, value in code.parameters},
        "uniform": uniform.written(),
        "signs": None if signs is None else list(signs),
        "splits": list(splits),
        "inputs": [value.hex() for value in inputs],
    }


def if_monotone(monotone: str) -> str:
    """What a loss rests on, in words: code that was proved monotone, or only probed."""
    if monotone == "proved":
        return "; the code is monotone in its uniform (proved from its steps)"
    return ", if the code is monotone in its uniform (probed, not proved)"


def monotone_steps(
    code: object, inputs: Sequence[float], laws: Sequence[ExactLaw]
) -> list[list[list[object]]] | None:
    """Steps that prove the code monotone where its laws say so; None where there is no proof."""
    law = laws[0]
    point = law.uniform.point
    stretches = [(b.sign, point(b.cells[0].first), point(b.cells[-1].last)) for b in law.branches]
    seen = (
        (value, branch.sign, point(index), cell.output)
        for value, law in zip(inputs, laws, strict=True)
        for branch in law.branches
        for cell in branch.cells
        for index in (cell.first, cell.last)
    )
    return followed_steps(code, inputs, law.signs or (None,), stretches, seen)


def exact_loss(
    function: Function,
    x: float,
    y: float,
    *,
    uniform: Uniform | None = None,
    signs: Sequence[int] | None = _SIGNS,
    pieces: Sequence[float] = (),
    most_cells: int = _MOST_CELLS,
    probes: int = 4,
) -> ExactLoss:
    """The exact privacy loss between two inputs of running float code.

    Law      the greatest ln(P(r | x)/P(r | y)) over all outputs r, and the same with x and y
             exchanged; infinite where only one of the two probabilities is 0
    Theorem  the greatest loss over output sets is that of a single output: a sum of fractions lies
             between the least and the greatest of them
    Checked  tests/verify/test_law.py

    >>> snapping = Code("lastbit.mechanisms.snapping:snapped", epsilon=1.0, bound=64.0)
    >>> loss = exact_loss(snapping, 3.0, 4.0)
    >>> loss.excess(1) < 770 * 2.0**-53
    True
    """
    inputs = (input_of(x, "x"), input_of(y, "y"))
    calls = Calls(function)
    settings: dict[str, Any] = {"most_cells": most_cells, "probes": probes}
    one, two = (
        exact_law(calls, value, uniform=uniform, signs=signs, pieces=pieces, **settings)
        for value in inputs
    )
    calls.check_again()
    return ExactLoss(
        inputs=inputs,
        laws=(one, two),
        forward=_worst(one, two),
        backward=_worst(two, one),
        code=function if isinstance(function, Code) else None,
    )


def _worst(one: ExactLaw, two: ExactLaw) -> Worst:
    others = two.by_output
    best: Worst | None = None
    for output, p in zip(one.outputs, one.probabilities, strict=True):
        q = others.get(order(output), Fraction(0))
        # p/q > best: the products compare fractions with 0 below
        if p and (best is None or p * best.other > q * best.probability):
            best = Worst(output=output, probability=p, other=q)
            if q == 0:
                break
    if best is None:  # the probabilities of a law add up to 1
        raise InvalidParameter("function", problem="has no output", remedy="report a bug")
    return best
