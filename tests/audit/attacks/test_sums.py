"""The attacks on sums: narrow bounds, order, NaN, overflow; and a target that refuses."""

import math
from fractions import Fraction

import numpy as np
import pytest

from lastbit.audit.attacks.sums import (
    NARROW,
    RECORDS,
    WAYS_TO_SUM,
    jump,
    narrow_sum,
    not_a_number,
    orders,
    overflow,
    reordering,
)
from lastbit.audit.targets.lastbit import exact_sum
from lastbit.audit.targets.target import SumTarget
from lastbit.errors import InvalidParameter
from tests.audit.attacks.leaky import generator

FLOAT_ATTACKS = (narrow_sum, reordering, not_a_number)
MANY = 100_000


def attack(kind, target, samples=600):
    options = {} if kind in (not_a_number, overflow) else {"records": MANY}
    return kind(target, samples=samples, **options)


def noisy(add, claimed=1, dtype="float64"):
    draw = generator()
    return SumTarget(
        name="by hand",
        release=lambda data, bounds, size: (
            float(add(np.clip(data, *bounds))) + draw.laplace(0, bounds[1] - bounds[0], size)
        ),
        claimed=claimed,
        dtype=dtype,
    )


@pytest.mark.thinned(one_in=9)
@pytest.mark.parametrize("way", WAYS_TO_SUM)
def test_neighbours_jump_by_a_whole_spacing(way):
    """The theorem: one record moves by 0.001, the computed sum by 1/4 = 250 sensitivities."""
    add = WAYS_TO_SUM[way]
    first, second = jump(add, NARROW, 1_000_000)
    assert int((first != second).sum()) == 1
    assert NARROW[0] <= first.min() and second.max() <= NARROW[1]
    moved = abs(add(second) - add(first))
    assert moved >= 0.25
    assert moved / (NARROW[1] - NARROW[0]) >= 249


@pytest.mark.parametrize("way", WAYS_TO_SUM)
def test_float_sums_are_broken(way):
    verdict = attack(narrow_sum, noisy(WAYS_TO_SUM[way]))
    assert verdict.broken and verdict.epsilon_lower > 2


def test_orders_are_orders():
    records = np.arange(1000.0)
    for some in orders(records):
        assert np.array_equal(np.sort(some), records)


def test_float_sums_depend_on_the_order():
    assert attack(reordering, noisy(np.sum)).broken
    assert attack(reordering, noisy(lambda data: np.cumsum(data)[-1])).broken


def test_exactly_rounded_sums_do_not():
    assert not attack(reordering, noisy(math.fsum)).broken


def test_nan_passes_through():
    assert attack(not_a_number, noisy(np.sum)).broken


def test_nan_with_a_fixed_meaning_does_not():
    assert not attack(not_a_number, noisy(np.nansum)).broken


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_machine_integers_wrap(dtype):
    verdict = attack(overflow, noisy(lambda data: data.sum(dtype=dtype), dtype=dtype))
    assert verdict.broken and "wraps" in verdict.witness


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_python_integers_do_not(dtype):
    target = noisy(lambda data: sum(data.tolist()), dtype=dtype)
    assert not attack(overflow, target, samples=4000).broken


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_the_wrapping_pair_is_a_pair_of_neighbours(dtype):
    seen = {}

    def release(data, bounds, size):
        seen[data.tobytes()] = data, bounds
        return np.zeros(size)

    overflow(SumTarget(name="spy", release=release, claimed=1, dtype=dtype), samples=40)
    (first, bounds), (second, _) = seen.values()
    assert len(first) == len(second) == RECORDS and int((first != second).sum()) == 1
    assert bounds[0] <= min(first.min(), second.min())
    assert max(first.max(), second.max()) <= bounds[1]
    totals = sorted(sum(data.tolist()) for data in (first, second))
    assert totals[0] <= np.iinfo(dtype).max < totals[1]


@pytest.mark.parametrize("kind", FLOAT_ATTACKS)
def test_our_sum_resists(kind):
    verdict = attack(kind, SumTarget(name="ours", release=exact_sum, claimed=1), samples=2000)
    assert not verdict.broken and verdict.samples > 0


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_our_integer_sum_resists(dtype):
    target = SumTarget(name="ours", release=exact_sum, claimed=1, dtype=dtype)
    assert not attack(overflow, target, samples=4000).broken


def test_our_sum_is_the_sum():
    """Without noise to speak of, it is the sum: many records, wide epsilon per record."""
    data = generator().uniform(0, 1, MANY)
    released = exact_sum(data, (0.0, 1.0), 50)
    assert abs(float(np.median(released)) - math.fsum(data)) < 10
    whole = np.arange(1000, dtype=np.int64)
    assert Fraction(exact_sum(whole, (0, 999), 1)[0]).denominator == 1


def test_a_target_that_refuses_is_not_accused():
    def refuse(data, bounds, size):
        raise ValueError("NaN")

    verdict = not_a_number(SumTarget(name="strict", release=refuse, claimed=1))
    assert not verdict.broken and verdict.samples == 0
    assert "ValueError" in verdict.witness


def test_the_wrong_kind_of_records_is_refused():
    floats = noisy(np.sum)
    integers = noisy(np.sum, dtype="int32")
    with pytest.raises(InvalidParameter, match="float64"):
        overflow(floats)
    for kind in FLOAT_ATTACKS:
        with pytest.raises(InvalidParameter, match="int32"):
            kind(integers)
