"""Binary16: all laws against enumeration, all pairs against a plain double loop."""

from __future__ import annotations

import importlib
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from lastbit.errors import InvalidParameter, NotMonotone
from lastbit.exact.ball import arb_of, ends, working_precision
from lastbit.verify.error_bounds.formats import BINARY16
from lastbit.verify.running.exhaustive import (
    BINARY16_UNIFORM,
    exhaustive,
    laws_of,
)
from lastbit.verify.running.uniforms import FullPrecision
from tests.evidence import late
from tests.verify.snapped_code import logarithms, snapped_binary16

# the room's name `exhaustive` is the function
module = importlib.import_module("lastbit.verify.running.exhaustive")
SMALL = FullPrecision(4, -6)


def some_inputs(bound: float, count: int) -> np.ndarray:
    random = np.random.default_rng(1)
    return np.sort(random.uniform(-bound, bound, count).astype(np.float16))


def enumerated(function, inputs, uniform):
    u = np.array([uniform.point(i) for i in range(uniform.size)], np.float16)
    shares = [uniform.below(i + 1) - uniform.below(i) for i in range(uniform.size)]
    rows = []
    for x in inputs:
        row: dict[float, Fraction] = {}
        for sign in (-1, 1):
            outputs = function(np.full(u.size, x), u, sign).tolist()
            for output, share in zip(outputs, shares, strict=True):
                row[output] = row.get(output, Fraction(0)) + share / 2
        rows.append(row)
    return rows


@pytest.mark.thinned(one_in=36)
@pytest.mark.parametrize("uniform", [SMALL, late(BINARY16_UNIFORM)])
@pytest.mark.parametrize(("epsilon", "bound"), [(1.0, 4.0), (0.5, 6.0)])
def test_laws_by_enumeration(uniform, epsilon, bound):
    function = partial(snapped_binary16, epsilon=epsilon, bound=bound)
    inputs = some_inputs(bound, 12)
    outputs, table, total = laws_of(function, inputs, uniform=uniform)
    for row, expected in zip(table.tolist(), enumerated(function, inputs, uniform), strict=True):
        law = {r: Fraction(n, total) for r, n in zip(outputs.tolist(), row, strict=True) if n}
        assert law == expected


def test_the_worst_of_all_pairs_by_a_double_loop(monkeypatch):
    """Every pair and every output, in fractions, for a format with few inputs."""
    function = partial(snapped_binary16, epsilon=1.0, bound=1.5)
    few = np.arange(1 << 16, dtype=np.uint16).view(np.float16)[:: 1 << 9]
    few = np.sort(few[np.isfinite(few) & (np.abs(few) <= 1.5)])
    monkeypatch.setattr(module, "_within", lambda bound: few)
    found = exhaustive(function, bound=1.5, uniform=SMALL)
    rows = enumerated(function, few, SMALL)
    best, infinite = Fraction(0), False
    for x, one in zip(few.tolist(), rows, strict=True):
        for y, two in zip(few.tolist(), rows, strict=True):
            if abs(Fraction(x) - Fraction(y)) <= 1:
                for output, p in one.items():
                    q = two.get(output, Fraction(0))
                    infinite = infinite or q == 0
                    best = max(best, p / q if q else best)
    assert not infinite
    assert found.worst.probability / found.worst.other == best
    assert found.count == few.size
    assert abs(Fraction(found.inputs[0]) - Fraction(found.inputs[1])) <= 1


@pytest.mark.evidence
def test_infinite_where_the_noise_does_not_reach():
    found = exhaustive(partial(snapped_binary16, epsilon=1.0, bound=8.0), bound=8, checked=2)
    assert found.loss is None
    assert found.excess(1) is None
    assert found.worst.other == 0 < found.worst.probability


def test_the_worst_pair_at_bound_4():
    found = exhaustive(partial(snapped_binary16, epsilon=1.0, bound=4.0), bound=4, checked=2)
    assert found.count == 34818
    excess = found.excess(1)
    assert excess is not None
    assert 7 < float(excess.ends[0]) * 2**11 < 8  # the theorem allows 12 B + 2 = 50


def test_logarithms_of_binary16():
    table = logarithms()
    for pattern in range(1, 0x7C00, 37):
        x = Fraction(float(np.uint16(pattern).view(np.float16)))
        with working_precision(200):
            low, high = ends(arb_of(x).log())
        assert BINARY16.rounded(low) == BINARY16.rounded(high) == Fraction(float(table[pattern]))


def test_each_step_is_rounded_once():
    random = np.random.default_rng(2)
    for _ in range(300):
        value = np.float16(random.uniform(-5, 5))
        u = np.float16(random.uniform(2.0**-14, 0.999))
        log = Fraction(float(logarithms()[u.view(np.uint16)]))
        y = BINARY16.rounded(log / Fraction(float(np.float16(0.7))))
        w = BINARY16.rounded(min(max(Fraction(float(value)), Fraction(-4)), Fraction(4)) + y)
        expected = float(min(max(round(w / 2) * 2, -4), 4))
        out = snapped_binary16(
            np.array([value]), np.array([u]), 1, epsilon=float(np.float16(0.7)), bound=4.0
        )
        assert out.tolist() == [expected]


def test_waves_are_refused():
    def wave(value, u, sign):
        return np.rint(4 * u * (np.float16(1) - u))

    with pytest.raises(NotMonotone):
        laws_of(wave, some_inputs(1, 3), uniform=SMALL)


def test_a_dent_is_refused():
    def dent(value, u, sign):
        return np.where(u == np.float16(0.40625), 1, 0).astype(np.float16)

    with pytest.raises(NotMonotone):
        laws_of(dent, some_inputs(1, 3), uniform=SMALL)


def test_bad_functions():
    with pytest.raises(InvalidParameter, match="NaN"):
        laws_of(lambda value, u, sign: u * np.float16(np.nan), some_inputs(1, 3), uniform=SMALL)
    with pytest.raises(InvalidParameter, match="binary16"):
        snapped_binary16(some_inputs(1, 1), some_inputs(1, 1), 1, epsilon=0.7, bound=4.0)
    with pytest.raises(InvalidParameter):
        exhaustive(partial(snapped_binary16, epsilon=1.0, bound=4.0), bound=-1)
