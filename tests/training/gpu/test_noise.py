"""Noise on tensors: the law, fresh keys, forks, and what refuses."""

import os
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb

from lastbit.errors import EntropyUnavailable, InvalidParameter, NotCertified, WrongType
from lastbit.exact import arb_of, working_precision
from lastbit.sampling.bits import secure_bits
from lastbit.sampling.deterministic import Seeded
from tests.evidence import Extent
from tests.laws.frequency import assert_frequency
from tests.sampling.children import in_child
from tests.training.gpu.interpreted import (
    DEVICE,
    by_arb,
    gaussian,
    key_of,
    known_answer,
    launch,
    noise,
    torch,
)

add_rounded_gaussian, rounded_gaussian_on = noise.add_rounded_gaussian, noise.rounded_gaussian_on


def drawn(seed: int, count: int, deviation: Fraction) -> np.ndarray:
    sums = torch.zeros(count, dtype=torch.int64, device=DEVICE)
    noise.add_under_key(Seeded(1), key_of(seed), sums, deviation)
    return sums.cpu().numpy()


def below(number: Fraction, deviation: Fraction) -> arb:
    """P[sigma Z < number]."""
    return (1 + (arb_of(number / deviation) / arb(2).sqrt()).erf()) / 2


def tail(statistic: float, freedom: int) -> float:
    """P[chi-squared >= statistic], exactly rounded."""
    return float(1 - (arb(statistic) / 2).gamma_lower(arb(freedom) / 2, regularized=1).mid())


def test_the_law_is_the_rounded_normal_one(extent: Extent) -> None:
    """Chi-squared on all cells; the keys are fixed; a scale 5 % off, of many 1 %, is refused."""
    count, off = extent.number(1 << 16, 1 << 20), Fraction(extent.number(105, 101), 100)
    for deviation in (Fraction(1), Fraction(4, 3), Fraction(7)):
        values = drawn(int(deviation * 3), count, deviation)
        wide = int(4 * deviation)
        edges = [Fraction(2 * k + 1, 2) for k in range(-wide, wide)]
        seen = np.bincount(np.clip(values, -wide, wide) + wide, minlength=2 * wide + 1)
        for factor, fits in ((Fraction(1), True), (off, False)):
            with working_precision(128):
                at = [float(below(e, deviation * factor).mid()) for e in edges]
            chances = np.diff([0.0, *at, 1.0])
            statistic = float((((seen - count * chances) ** 2) / (count * chances)).sum())
            assert (tail(statistic, len(edges)) > 1e-6) == fits


def test_the_numbers_of_a_point_are_independent() -> None:
    count = 1 << 16
    values = drawn(77, count, Fraction(4, 3)).reshape(4, 2, -1)
    one, two = (np.clip(values[:, i].ravel(), -2, 2) + 2 for i in (0, 1))
    table = np.zeros((5, 5))
    np.add.at(table, (one, two), 1)
    expected = np.outer(table.sum(1), table.sum(0)) / table.sum()
    assert tail(float((((table - expected) ** 2) / expected).sum()), 16) > 1e-6


def test_the_tails_are_those_of_the_law(extent: Extent) -> None:
    count, deviation = extent.number(1 << 16, 1 << 20), Fraction(1 << 20)
    values = np.abs(drawn(78, count, deviation))
    for reach in (2, 3, 4):
        with working_precision(128):
            chance = 2 * float(1 - below(reach * deviation - Fraction(1, 2), deviation).mid())
        hits = int((values >= reach * deviation).sum())
        assert_frequency(hits, trials=count, probability=chance)


def test_open_draws_are_added_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a scale at which one draw in six is open, all are those of balls, with their bits."""
    deviation, count = Fraction((1 << 47) - 12_345), 4_003
    monkeypatch.setattr(noise, "_MOST_OPEN", 1 << 30)
    sums = torch.arange(count, dtype=torch.int64, device=DEVICE)
    noise.add_under_key(Seeded(1), key_of(9), sums, deviation)
    got = sums.cpu().numpy() - np.arange(count)
    assert (got == by_arb(9, count, deviation, key_seed=1)).all()


def test_what_no_kernel_wrote_is_decided_by_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(key: object, sums: Any, constants: object, *, narrow: bool) -> Any:
        marks = torch.full((128,), 255, dtype=torch.uint8, device=sums.device)
        marks[126:] = 0
        return marks

    monkeypatch.setattr(noise, "add_certain", nothing)
    assert (drawn(10, 1003, Fraction(50)) == by_arb(10, 1003, Fraction(50), key_seed=1)).all()


def test_a_device_that_decides_too_little_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise, "_MOST_OPEN", 0)
    with pytest.raises(NotCertified, match="far more draws open"):
        drawn(11, 4_000, Fraction((1 << 47) - 1))


def test_a_device_with_other_arithmetic_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    known_answer.check_device.cache_clear()
    monkeypatch.setattr(known_answer, "digest_of", lambda device: "0" * 64)
    with pytest.raises(NotCertified, match="arithmetic differs"):
        rounded_gaussian_on(DEVICE, (8,), 1000)
    known_answer.check_device.cache_clear()


def test_every_call_has_a_key_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps, tensors and ranks: seeds of torch have no say, and no two calls share a key."""
    keys = []
    inner = noise.add_under_key

    def seen(bits: Any, key: Any, *rest: Any) -> None:
        keys.append(key.tobytes())
        inner(bits, key, *rest)

    monkeypatch.setattr(noise, "add_under_key", seen)
    first = []
    for _ in range(5):
        torch.manual_seed(0)
        first.append(rounded_gaussian_on(DEVICE, (100,), 1 << 20).cpu().numpy().tobytes())
    monkeypatch.setattr(noise, "MOST_NUMBERS", 32)  # a large tensor takes several keys
    rounded_gaussian_on(DEVICE, (100,), 1 << 20)
    assert len(keys) == 9 and len(set(keys)) == 9 and len(set(first)) == 5
    assert all(len(key) == 32 for key in keys)


def draw() -> list[int]:
    return rounded_gaussian_on(DEVICE, (64,), 1 << 30).cpu().tolist()


forks = pytest.mark.skipif(DEVICE.type == "cuda", reason="CUDA does not work in a forked child")


@forks
@pytest.mark.filterwarnings("ignore:This process")
def test_a_child_draws_other_noise() -> None:
    draw()
    every = [in_child(draw), in_child(draw), draw()]
    assert len({tuple(numbers) for numbers in every}) == 3


@forks
@pytest.mark.filterwarnings("ignore:This process")
def test_a_child_forked_within_a_draw_gives_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    inner = launch.add_certain
    children = []

    def forking(*arguments: Any, **named: Any) -> Any:
        children.append(os.fork())
        return inner(*arguments, **named)

    monkeypatch.setattr(noise, "add_certain", forking)
    parent = os.getpid()
    try:
        draw()
        if os.getpid() != parent:
            os._exit(1)
    except EntropyUnavailable:
        os._exit(0 if os.getpid() != parent else 2)
    assert children[0] and os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]) == 0


def test_the_draws_use_the_one_door_to_entropy(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> None:
        raise EntropyUnavailable("no bits")

    monkeypatch.setattr(noise, "secure_bits", fails)
    with pytest.raises(EntropyUnavailable):
        draw()
    assert secure_bits().fill(1).size == 1


def test_noise_is_added_in_place_whatever_the_shape() -> None:
    sums = torch.full((3, 5, 7), 10**12, dtype=torch.int64, device=DEVICE)
    add_rounded_gaussian(sums, "2.5")
    moved = sums - 10**12
    assert 0 < int(moved.abs().max()) < 60
    empty = torch.zeros((0, 4), dtype=torch.int64, device=DEVICE)
    add_rounded_gaussian(empty, 1)


@pytest.mark.parametrize(
    ("sums", "deviation", "problem", "error"),
    [
        (lambda: torch.zeros(4), 1, "are no tensor of int64", WrongType),
        (lambda: np.zeros(4), 1, "are no tensor of int64", WrongType),
        (
            lambda: torch.zeros((4, 4), dtype=torch.int64).T[1:],
            1,
            "not contiguous",
            InvalidParameter,
        ),
        (lambda: torch.zeros(4, dtype=torch.int64), 0, "is zero", InvalidParameter),
    ],
)
def test_what_refuses(sums: Any, deviation: Any, problem: str, error: Any) -> None:
    with pytest.raises(error, match=problem):
        add_rounded_gaussian(sums(), deviation)


def test_other_scales_are_drawn_by_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise, "add_under_key", None)
    for deviation in (Fraction(1, 1000), 2**36 + 1, 2**50):
        values = rounded_gaussian_on(DEVICE, (1000,), deviation).double()
        assert deviation < 1 or 0.8 < float(values.std() / float(deviation)) < 1.2
        assert deviation > 1 or not values.any()


def test_a_processor_without_the_interpreter_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gaussian, "is_interpreted", lambda: False)
    with pytest.raises(InvalidParameter, match="not on a CUDA device; draw on the CPU"):
        add_rounded_gaussian(torch.zeros(4, dtype=torch.int64), 5)
