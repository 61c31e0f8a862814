"""The theorems that `lastbit leak` prints, and numpy's formula against numpy itself."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, strategies as st

from lastbit.cli.leak import (
    ANSWERS,
    FIRST_BIT,
    FRACTIONAL_BITS,
    GRID_BITS,
    LAST_BIT,
    LAST_BITS,
    fixed_point_leak,
    float_laplace,
    float_leak,
    ideal_share_off_grid,
    interval,
    lattice_rows,
    on_grid,
    trailing_bit,
)
from lastbit.exact.ball import Ball

FALSE_ALARM = 2 * math.exp(-14)  # of `interval`


# -- 1: fixed point --


def test_every_release_keeps_the_last_bits_of_its_secret():
    both = fixed_point_leak(draws=10_000)
    for answer, released in zip(ANSWERS, both, strict=True):
        assert {units % 4 for units in released} == {answer % 4}
    assert len(set(both[0])) > 100  # and yet there is noise


def test_the_example_is_the_papers():
    unit = 1 << FRACTIONAL_BITS
    assert [Fraction(answer, unit) for answer in ANSWERS] == [0, 1 + Fraction(1, 32)]
    assert LAST_BITS == ("00", "10")


# -- 2: floats: the formula is numpy's --


@pytest.mark.parametrize("scale", [1.0, 0.5, 3.0, 0.1, 100.0])
def test_the_formula_is_numpys_bit_for_bit(scale):
    """Same seed, same uniforms: `Generator.random` is the `next_double` that `laplace` consumes."""
    size = 200_000
    uniforms = np.random.Generator(np.random.PCG64(7)).random(size)
    integers = np.ldexp(uniforms, GRID_BITS).astype(np.int64)
    assert integers.min() > 0  # 0 would have been redrawn; it has probability 2**-53
    theirs = np.random.Generator(np.random.PCG64(7)).laplace(0.0, scale, size)
    ours = float_laplace(integers, scale)
    assert np.array_equal(ours.view(np.int64), theirs.view(np.int64))


def test_adding_the_answer_afterwards_is_numpys_loc_at_scale_1():
    size = 200_000
    noise = np.random.Generator(np.random.PCG64(8)).laplace(0.0, 1.0, size)
    located = np.random.Generator(np.random.PCG64(8)).laplace(1.0, 1.0, size)
    assert np.array_equal(1 + noise, located)


@pytest.mark.parametrize(
    ("integer", "noise"),
    [
        (1, -52 * math.log(2)),
        (1 << 52, 0.0),
        # 2 - U rounds to 1 here, so that numpy takes the logarithm of 2**-53, not of 2**-52
        ((1 << 53) - 1, 53 * math.log(2)),
    ],
)
def test_the_formula_at_its_ends(integer, noise):
    (value,) = float_laplace(np.array([integer]), 1.0).tolist()
    assert value == pytest.approx(noise, abs=1e-12)


# -- 2: floats: the grid --


@given(st.floats(allow_nan=False, allow_infinity=False))
@example(-0.5)
@example(math.nextafter(-0.5, 0))
@example(math.nextafter(-0.5, -1))
@example(-1.0)
@example(math.nextafter(-1.0, 0))
@example(math.nextafter(-1.0, -2))
@example(math.nextafter(-2.0, -1))
@example(5e-324)
@example(-5e-324)
@example(-(2.0**-54))
@example(0.0)
def test_one_plus_any_double_is_a_multiple_of_2_to_the_minus_53(x):
    assert (Fraction(1.0 + x) * 2**53).denominator == 1


@pytest.mark.parametrize("x", [2.0**-54, -3 * 2.0**-54, 0.25 + 2.0**-54, math.log(0.9)])
def test_zero_plus_a_double_need_not_be(x):
    """The mutant of the theorem above: 0 in the place of 1."""
    assert (Fraction(0.0 + x) * 2**53).denominator > 1
    assert not on_grid(np.array([0.0 + x]))[0]
    assert on_grid(np.array([1.0 + x]))[0]


# numpy's frexp and ldexp on subnormals are not at issue: noise never gets below 2**-54
noise_sized = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e15, max_value=1e15)


@given(noise_sized.filter(lambda x: x == 0 or abs(x) > 1e-290))
@example(0.0)
@example(1.0)
@example(2.0**-53)
@example(2.0**-54)
@example(3 * 2.0**-54)
def test_on_grid_and_trailing_bit_against_fractions(y):
    released = np.array([y])
    exact = Fraction(y)
    assert bool(on_grid(released)[0]) == ((exact * 2**53).denominator == 1)
    place = int(trailing_bit(released)[0])
    if y == 0:
        assert place < FIRST_BIT
    else:
        odd = exact * Fraction(2) ** place
        assert odd.denominator == 1
        assert odd.numerator % 2 == 1


def test_the_ideal_share_against_a_direct_sum():
    low, high = ideal_share_off_grid(Fraction(1))
    direct = sum(
        (math.exp(-(2.0 ** -(k + 1))) - math.exp(-(2.0**-k))) * (1 - 2.0**-k) for k in range(1, 80)
    )
    assert low <= high
    assert high - low < Fraction(1, 10**30)
    assert float(low) == pytest.approx(direct, rel=1e-12)
    assert float(low) == pytest.approx(0.27179386, abs=1e-8)


def test_the_ideal_share_falls_to_epsilon_over_three():
    """For a small epsilon the density is flat at epsilon/2: sum 2**-(k+1) * (1 - 2**-k) = 1/3."""
    epsilon = Fraction(1, 10**6)
    low, high = ideal_share_off_grid(epsilon)
    assert abs(low / epsilon - Fraction(1, 3)) < Fraction(1, 10**5)
    assert high >= low


def test_the_interval_is_hoeffdings_rounded_outwards():
    low, high = interval(300, 1000)
    assert (high - Fraction(3, 10)) ** 2 >= Fraction(7, 1000)
    assert (high - Fraction(3, 10)) ** 2 < Fraction(7, 1000) + Fraction(1, 10**9)
    assert high - Fraction(3, 10) == Fraction(3, 10) - low
    assert interval(0, 1) == (Fraction(0), Fraction(1))
    assert FALSE_ALARM < 1 / 600_000


def test_float_leak_counts_what_it_draws(monkeypatch):
    """Statistical, with a fixed seed: a seed at random would fail with probability 2*exp(-14).

    It would see a share that is off by 2 * sqrt(7/200000), about 0.012.
    """
    seeded = np.random.Generator(np.random.PCG64(9))
    monkeypatch.setattr(
        "lastbit.cli.leak.uniform_below", lambda n, size: seeded.integers(n, size=size)
    )
    samples = 200_000
    leak = float_leak(Fraction(1), samples, watch=lambda share: None)
    assert sum(leak.counts[0]) == sum(leak.counts[1]) == samples
    assert leak.off_grid[1] == 0
    assert leak.share(1, GRID_BITS + 1, LAST_BIT) == 0
    assert leak.share(0, GRID_BITS + 1, LAST_BIT) == Fraction(leak.off_grid[0], samples)
    low, high = interval(leak.off_grid[0], samples)
    assert low <= leak.ideal_share[0] <= leak.ideal_share[1] <= high
    assert leak.witness is not None
    assert (Fraction(leak.witness) * 2**53).denominator > 1


# -- 3: the lattice --


@pytest.mark.parametrize("epsilon", [Fraction(1), Fraction(1, 3), Fraction(10), Fraction(1, 100)])
def test_the_loss_of_every_output_is_epsilon_exactly(epsilon):
    rows = lattice_rows(epsilon)
    assert [row.output for row in rows] == list(range(-3, 5))
    for row in rows:
        assert row.loss == (epsilon if row.output <= 0 else -epsilon)
        # the balls come from the laws, the loss from algebra: they must agree
        scaled = row.ratio * Ball.of(-row.loss).exp()
        assert scaled.contains(1)
        low, high = scaled.ends
        assert high - low < Fraction(1, 10**30)


def test_a_wrong_scale_would_be_seen():
    """The mutant: noise at a scale off by 0.1 %."""
    row = lattice_rows(Fraction(1001, 1000))[0]
    assert not (row.ratio * Ball.of(-1).exp()).contains(1)
