"""Numbers of any size in a certificate: the checker ends soon, and what is taken can be drawn.

No clock is looked at: a meter counts the calls of Python code and the bits of the fractions that
the checker makes. What it has to do grows with the size of the file, never with its numbers.
"""

from __future__ import annotations

import copy
import fractions
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from lastbit.checker import Rejected, check_price, release, tail
from lastbit.checker.numbers import FARTHEST, exp_above, exp_bounds
from lastbit.errors import InvalidParameter, LastbitError
from lastbit.kernel import Program
from lastbit.kernel.noise import add_noise, rank_distances
from lastbit.kernel.program import KeySelection, Noise, PairDraws, RankDraw, TreeNoise
from lastbit.ledger.records import MOST_DIGITS
from lastbit.sampling import choice_exp_rows
from tests.evidence import Extent
from tests.kernel.genuine import PURE, RHO, Genuine, certificates
from tests.kernel.hostile_plans import is_number, reseal

WIDEST = 1 << 17
"""Bits of a fraction: five numbers of 4,000 digits multiplied, and some."""
MOST_CALLS = 400_000
SIZES = (1, 4, 30, 300, 1000, 3990)


@dataclass
class Meter:
    """What ran: calls of Python functions, and the widest number that a fraction was made of."""

    calls: int = 0
    widest: int = 0

    def note(self, frame: Any, event: str, _: Any) -> None:
        if event != "call":
            return
        self.calls += 1
        if frame.f_code.co_filename == fractions.__file__:
            for value in frame.f_locals.values():
                if type(value) is int:
                    self.widest = max(self.widest, value.bit_length())
                elif type(value) is Fraction and hasattr(value, "_denominator"):
                    sizes = value.numerator.bit_length(), value.denominator.bit_length()
                    self.widest = max(self.widest, *sizes)


@contextmanager
def metered() -> Iterator[Meter]:
    meter, before = Meter(), sys.getprofile()
    sys.setprofile(meter.note)
    try:
        yield meter
    finally:
        sys.setprofile(before)


def field_names(data: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Every place of a number, by the names that lead to it and the mechanism it is of."""
    items = data.items() if isinstance(data, dict) else enumerate(data)
    for key, value in items:
        kind = data.get("mechanism", "") if isinstance(data, dict) else ""
        here = f"{path}.{kind}{key if isinstance(key, str) else ''}"
        if isinstance(value, dict | list):
            yield from field_names(value, here)
        elif is_number(value):
            yield here, data, key


def fields() -> dict[str, Genuine]:
    """By field: the first genuine certificate that has it."""
    found: dict[str, Genuine] = {}
    for one in certificates():
        for name, _, _ in field_names(one.data):
            found.setdefault(re.sub(r"\bm\d+\b", "m", name), one)
    return found


def enlarged(one: Genuine, field: str, value: Any) -> dict[str, Any] | None:
    """The certificate with another number in this field, everywhere; None: of another type."""
    data = copy.deepcopy(one.data)
    for name, where, key in list(field_names(data)):
        if re.sub(r"\bm\d+\b", "m", name) == field:
            if type(where[key]) is int and value.denominator != 1:
                return None
            where[key] = int(value) if type(where[key]) is int else str(value)
    reseal(data)
    return data


def cases() -> list[tuple[str, Genuine, Fraction]]:
    sizes = [Fraction(10) ** n for n in SIZES]
    values = [*sizes, *(1 / n for n in sizes), *(-n for n in sizes[2:5])]
    values += [Fraction(10**3990 + 1, 10**n + 7) for n in (3980, 3700)]
    return [(name, one, value) for name, one in fields().items() for value in values]


def test_the_checker_ends_whatever_the_size_of_a_number(extent: Extent) -> None:
    """Failed before: a threshold of 10**300 took minutes, for fractions of 1,400,000 bits."""
    ends: Counter[str] = Counter()
    for name, one, value in extent.cases(cases(), one_in=9):
        data = enlarged(one, name, value)
        if data is None:
            continue
        with metered() as meter:
            try:
                check_price(data["kind"], data["claim"], data["body"])
                ends["accepted"] += 1
            except Rejected:
                ends["refused"] += 1
        assert meter.widest <= WIDEST and meter.calls <= MOST_CALLS, (name, one.name, meter)
    assert min(ends["accepted"], ends["refused"]) > extent.number(10, 100), ends


def test_a_chance_is_never_counted_too_small() -> None:
    """Where it is cut off it is larger than it is; of what divides it, it is left out."""
    for x in (Fraction(-1), Fraction(-1387), Fraction(-1388), Fraction(-(10**300))):
        assert 0 < exp_bounds(max(x, Fraction(-5000)))[0] < exp_above(x)
    assert exp_above(-FARTHEST) < Fraction(1, 1 << 2000)
    for beyond in (Fraction(2), Fraction(10**300)):
        assert exp_above(beyond) > 1
    chance = tail.gaussian_tail(Fraction(1), 10**300)
    assert Fraction(1, 1 << 2002) < chance < Fraction(1, 1 << 2000)
    assert chance < tail.gaussian_tail(Fraction(1), 52)
    chance = release._appears(Fraction(1), 1400)[0]
    assert release._appears(Fraction(1), 10**300)[0] == chance < Fraction(1, 1 << 2000)
    # mutant, failed before: terms cut off at a number that is larger than they are
    assert tail._whole(Fraction(1, 10**7)) == 1


def test_a_far_end_of_a_pair_may_be_left_out() -> None:
    """delta of mu = 2**k at epsilon = mu**2/2 + mu: the second tail is nothing."""
    bounds = [
        tail.pair_delta(Fraction(1 << k), Fraction(1 << 2 * k, 2) + (1 << k)) for k in (9, 40)
    ]
    assert 0 <= bounds[1] - bounds[0] < Fraction(1, 1 << 9)


# ---------------------------------------------------------------- what is taken can be drawn

NOISES = re.compile(r"parts\b.*(scale|variance|rate|threshold|shift|ends)$")


def drawn_numbers(step: Any) -> list[int]:
    """What the kernel draws for a step, as the books would have to keep it."""
    match step:
        case Noise():
            return add_noise(step, [0, 1])
        case TreeNoise(noise=noise):
            return add_noise(noise, [0])
        case KeySelection(noise=noise, single=None):
            return add_noise(noise, [1])
        case KeySelection(noise=noise, single=(single, _)):
            return [*add_noise(noise, [1]), *add_noise(single, [1])]
        case RankDraw() as draw:
            return choice_exp_rows(rank_distances(draw, [[1, 2, 3]]), rate=draw.rate).tolist()
        case PairDraws(rate=rate):
            return choice_exp_rows(np.array([[0, 1 << 61]]), rate=rate).tolist()
    raise AssertionError(step)


def test_what_a_program_takes_can_be_drawn_and_kept(extent: Extent) -> None:
    """Failed before: a scale beyond 2**512 was accepted, charged, and never answered."""
    noises = [case for case in cases() if NOISES.search(case[0])]
    ends: Counter[str] = Counter()
    for name, one, value in extent.cases(noises, one_in=4):
        for size in (value, value * (1 << 500)):
            data = enlarged(one, name, size)
            if data is None:
                continue
            try:
                program = Program(json.dumps(data), one.card)
            except LastbitError as error:
                ends["too large" if "above 2**512" in str(error) else "refused"] += 1
                continue
            ends["taken"] += 1
            numbers = [number for step in program.steps for number in drawn_numbers(step)]
            assert max(len(str(number)) for number in numbers) < MOST_DIGITS, (name, one.name)
    assert min(ends["too large"], ends["taken"]) > extent.number(1, 8), ends


@pytest.mark.parametrize("price", [PURE, RHO])
def test_noise_that_cannot_be_drawn_is_refused_before_the_charge(price: dict[str, str]) -> None:
    """At the limit it is drawn; one step above it the question is refused, and costs nothing."""
    gaussian = "rho" in price
    one = next(g for g in certificates() if f"| people | {price}" in g.name)
    field = "variance" if gaussian else "scale"
    for more, fits in ((0, True), (1, False)):
        data = copy.deepcopy(one.data)
        for part in data["body"]["plan"]["parts"]:
            part[field] = str((1 << (1024 if gaussian else 512)) + more)
        reseal(data)
        if fits:
            numbers = drawn_numbers(Program(json.dumps(data), one.card).steps[0])
            assert max(map(abs, numbers)) < 1 << 530
            continue
        with pytest.raises(InvalidParameter, match=r"noise is of a scale above 2\*\*512; ask at"):
            Program(json.dumps(data), one.card)
