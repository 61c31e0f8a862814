"""Histograms: the exact law of every small database against that of every neighbour.

All probabilities are integer polynomials in q = exp(-1/scale), over a power of 1 + q. A number
exp(-g) with g rational is transcendental, so a polynomial is 0 there only if it is 0 everywhere:
every inequality below is decided exactly, without any tolerance.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date, datetime
from fractions import Fraction
from functools import cache
from itertools import combinations, product
from math import gcd, prod
from typing import Any

import numpy as np
import pytest
from flint import arb, fmpz_poly
from hypothesis import given, strategies as st

from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact.ball import arb_of, working_precision
from lastbit.exact.rounding import upper
from lastbit.mechanisms import histogram, lattice
from lastbit.mechanisms.histogram import Histogram, ThresholdedHistogram
from lastbit.privacy.guarantees import ApproxDP, ProbabilisticDP, PureDP
from lastbit.privacy.neighbours import ADD_REMOVE, AS_DECLARED, CHANGE_ONE, Neighbours
from lastbit.sampling.blocks import Sampler, drawn_with
from lastbit.sampling.deterministic import Counting, Seeded
from tests.laws.frequency import assert_frequency, suspicious

KEYS = 3
COUNTS = range(4)
Table = tuple[int, ...]


class Refused(AssertionError):
    """Two neighbours that the guarantee does not cover."""


# ---------------------------------------------------------------- the exact judge


def power(exponent: int) -> fmpz_poly:
    return fmpz_poly([0] * exponent + [1])


class Judge:
    """The claim that a threshold and a scale are (epsilon, delta)-private, exactly decided."""

    def __init__(
        self, *, scale: Fraction, threshold: int, epsilon: Fraction, delta: Fraction
    ) -> None:
        # q = base**self.u and exp(-epsilon) = base**self.w, for base = exp(-unit)
        rate, loss = 1 / scale, Fraction(epsilon)
        common = rate.denominator * loss.denominator
        unit = Fraction(gcd(int(rate * common), int(loss * common)), common)
        self.unit, self.u, self.w = unit, int(rate / unit), int(loss / unit)
        self.threshold, self.delta = threshold, delta
        self.judged: set[tuple[tuple[int, int], ...]] = set()
        # beyond all counts the ratios do not change: one class holds all larger values
        self.last = max(threshold, max(COUNTS) + 1)
        self.outcomes = [None, *range(threshold, self.last + 1)]

    def q(self, exponent: int) -> fmpz_poly:
        return power(self.u * exponent)

    @cache  # noqa: B019
    def mass(self, count: int, outcome: int | None) -> fmpz_poly:
        """(1 + q) P[a key of this count comes out so], written down from the definition."""
        if count == 0:
            return 1 + self.q(1) if outcome is None else fmpz_poly([0])
        if outcome is None:  # count + X <= threshold - 1
            room = self.threshold - 1 - count
            return 1 + self.q(1) - self.q(room + 1) if room >= 0 else self.q(-room)
        if outcome == self.last:  # count + X >= last
            return self.q(self.last - count)
        return (1 - self.q(1)) * self.q(abs(outcome - count))

    @cache  # noqa: B019
    def sign_of(self, coefficients: tuple[int, ...]) -> int:
        if not coefficients:
            return 0
        polynomial = fmpz_poly(list(coefficients))
        precision = 64
        while True:
            with working_precision(precision):
                value = polynomial((-arb_of(self.unit)).exp())
                if value > 0 or value < 0:
                    return 1 if value > 0 else -1
            precision *= 2

    def sign(self, polynomial: fmpz_poly) -> int:
        return self.sign_of(tuple(int(c) for c in polynomial.coeffs()))

    def check(self, x: Table, y: Table) -> None:
        """P_x against P_y: bad set, ratio outside it, and the hockey-stick divergence."""
        pair = tuple(sorted(zip(x, y, strict=True)))  # keys are alike
        if pair in self.judged:
            return
        whole = (1 + self.q(1)) ** len(pair)
        bad, stick = fmpz_poly([0]), fmpz_poly([0])
        for outcome in product(self.outcomes, repeat=len(pair)):
            of_x = prod(
                (self.mass(n, o) for (n, _), o in zip(pair, outcome, strict=True)),
                start=fmpz_poly([1]),
            )
            of_y = prod(
                (self.mass(n, o) for (_, n), o in zip(pair, outcome, strict=True)),
                start=fmpz_poly([1]),
            )
            excess = power(self.w) * of_x - of_y
            above = self.sign(excess) > 0
            if any(n and not m and o is not None for (n, m), o in zip(pair, outcome, strict=True)):
                bad += of_x
            elif above:
                raise Refused(f"{x} against {y}: {outcome} is more than exp(epsilon) as likely")
            if above:
                stick += excess
        if self.sign(self.delta.denominator * bad - self.delta.numerator * whole) > 0:
            raise Refused(f"{x} against {y}: the bad set is more likely than delta")
        room = self.delta.numerator * power(self.w) * whole
        if self.sign(self.delta.denominator * stick - room) > 0:
            raise Refused(f"{x} against {y}: the divergence is above delta")
        self.judged.add(pair)


def people(most: int) -> list[Table]:
    """Every set of at most so many of the keys, as what its holder adds."""
    sets = [s for size in range(most + 1) for s in combinations(range(KEYS), size)]
    return [tuple(int(key in held) for key in range(KEYS)) for held in sets]


def plus(x: Table, y: Table) -> Table:
    return tuple(a + b for a, b in zip(x, y, strict=True))


def pairs(relation: Neighbours, most: int) -> Iterator[tuple[Table, Table]]:
    """Every two neighbours with counts up to 3, in both directions."""
    for base in product(COUNTS, repeat=KEYS):
        if relation is ADD_REMOVE:
            for person in people(most):
                grown = plus(base, person)
                if max(grown) <= max(COUNTS):
                    yield base, grown
                    yield grown, base
        else:
            for one, other in product(people(most), repeat=2):
                x, y = plus(base, one), plus(base, other)
                if max(*x, *y) <= max(COUNTS):
                    yield x, y


def judge_all(judge: Judge, relation: Neighbours, most: int) -> int:
    for x, y in pairs(relation, most):
        judge.check(x, y)
    return len(judge.judged)


def judge_of(mechanism: ThresholdedHistogram) -> Judge:
    return Judge(
        scale=mechanism.scale,
        threshold=mechanism.threshold,
        epsilon=mechanism.epsilon,
        delta=mechanism.delta,
    )


# ---------------------------------------------------------------- thresholded: privacy

TARGETS = [("1", "1/5"), ("2", "1/100"), ("1/2", "1e-6"), ("7/5", "0.9"), ("1/10", "0.9")]


@pytest.mark.thinned(one_in=4)
@pytest.mark.parametrize("relation", [ADD_REMOVE, CHANGE_ONE], ids=["add-remove", "change-one"])
@pytest.mark.parametrize("most", [1, 2])
@pytest.mark.parametrize(("epsilon", "delta"), TARGETS)
def test_every_output_of_all_neighbours(
    epsilon: str, delta: str, most: int, relation: Neighbours
) -> None:
    mechanism = ThresholdedHistogram(
        epsilon=epsilon, delta=delta, keys_per_person=most, neighbours=relation
    )
    assert mechanism.guarantee.epsilon == Fraction(epsilon)
    assert mechanism.guarantee.delta <= Fraction(delta)
    assert judge_all(judge_of(mechanism), relation, most) > 20


def test_the_bound_is_attained() -> None:
    """Neither epsilon nor delta could be smaller: the claim lowered by a trace fails."""
    mechanism = ThresholdedHistogram(epsilon=2, delta="1/20", keys_per_person=2)
    for less in (
        {"epsilon": Fraction(199, 100)},
        {"delta": mechanism.delta * (1 - Fraction(1, 10**6))},
    ):
        claim: dict[str, Any] = {"epsilon": mechanism.epsilon, "delta": mechanism.delta} | less
        judge = Judge(scale=mechanism.scale, threshold=mechanism.threshold, **claim)
        with pytest.raises(Refused):
            judge_all(judge, ADD_REMOVE, 2)


RATIO, BAD_SET = r"as likely", "bad set"
MUTANTS = {
    "noise 1 % too small": (lambda m: {"scale": m.scale * Fraction(99, 100)}, RATIO),
    "noise for one key only": (lambda m: {"scale": m.scale / m.keys_per_person}, RATIO),
    "threshold one too small": (lambda m: {"threshold": m.threshold - 1}, BAD_SET),
    "delta of one key only": (lambda m: {"delta": _one_key(m)}, BAD_SET),
}


def _one_key(mechanism: ThresholdedHistogram) -> Fraction:
    return ThresholdedHistogram(
        scale=mechanism.scale, threshold=mechanism.threshold, keys_per_person=1
    ).delta


@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutants_are_rejected(mutant: str) -> None:
    asked = Fraction(1, 20)
    mechanism = ThresholdedHistogram(epsilon=1, delta=asked, keys_per_person=2)
    claim: dict[str, Any] = {
        "scale": mechanism.scale,
        "threshold": mechanism.threshold,
        "epsilon": mechanism.epsilon,
        "delta": asked,
    }
    judge_all(Judge(**claim), ADD_REMOVE, 2)
    change, reason = MUTANTS[mutant]
    with pytest.raises(Refused, match=reason):
        judge_all(Judge(**claim | change(mechanism)), ADD_REMOVE, 2)


def test_a_change_is_not_an_addition() -> None:
    """The add-remove numbers, claimed for change-one, fail; and its own group bound is loose."""
    mechanism = ThresholdedHistogram(epsilon=1, delta="1/20", keys_per_person=1)
    with pytest.raises(Refused):
        judge_all(judge_of(mechanism), CHANGE_ONE, 1)
    direct = ThresholdedHistogram(
        scale=mechanism.scale,
        threshold=mechanism.threshold,
        keys_per_person=1,
        neighbours=CHANGE_ONE,
    ).guarantee
    by_groups = mechanism.guarantee.changed_one()
    assert direct.epsilon == by_groups.epsilon == 2
    assert direct.delta * 3 < by_groups.delta


@pytest.mark.parametrize(
    ("scale", "least"), [("1", 2), ("2", 2), ("5/2", 3), ("10", 19), ("100", 394)]
)
def test_the_condition_on_the_threshold(scale: str, least: int) -> None:
    """Below it, not seeing a new key costs more than epsilon: a pair of databases shows it."""
    if least > 2:
        with pytest.raises(InvalidParameter, match=f"pass {least} or more"):
            ThresholdedHistogram(scale=scale, threshold=least - 1, keys_per_person=1)
    mechanism = ThresholdedHistogram(scale=scale, threshold=least, keys_per_person=1)
    judge_of(mechanism).check((0,), (1,))
    low = Judge(
        scale=mechanism.scale, threshold=least - 1, epsilon=mechanism.epsilon, delta=Fraction(1)
    )
    with pytest.raises(Refused, match=r"\(None,\) is more"):
        low.check((0,), (1,))


@given(
    scale=st.fractions(min_value="1/20", max_value=50, max_denominator=20),
    delta=st.fractions(min_value="1/1000000", max_value="99/100", max_denominator=10**6),
    most=st.integers(1, 9),
)
def test_the_threshold_is_the_least(scale: Fraction, delta: Fraction, most: int) -> None:
    mechanism = ThresholdedHistogram(scale=scale, delta=delta, keys_per_person=most)
    assert mechanism.delta <= delta
    if mechanism.threshold == 2:
        return
    try:
        lower = ThresholdedHistogram(
            scale=scale, threshold=mechanism.threshold - 1, keys_per_person=most
        )
    except InvalidParameter:
        return  # the condition of the theorem binds
    assert lower.delta > delta


def test_delta_is_that_of_the_noise_rounded_up() -> None:
    q = float(np.exp(-1 / 3))
    p = q**44 / (1 + q)
    mechanism = ThresholdedHistogram(scale=3, threshold=45, keys_per_person=3)
    assert float(mechanism.delta) == pytest.approx(1 - (1 - p) ** 3, rel=1e-9)
    tiny = ThresholdedHistogram(epsilon=1, delta="1e-400", keys_per_person=1)
    assert 0 < tiny.delta <= Fraction("1e-400")


def test_the_guarantee() -> None:
    patients = ADD_REMOVE.by("patient")
    mechanism = ThresholdedHistogram(
        epsilon="1/3", delta="1e-9", keys_per_person=4, neighbours=patients
    )
    assert mechanism.scale == 12
    assert mechanism.guarantee == ProbabilisticDP("1/3", mechanism.delta, neighbours=patients)
    assert isinstance(mechanism.guarantee.post_processed(), ApproxDP)
    changed = ThresholdedHistogram(
        epsilon="1/3", delta="1e-9", keys_per_person=4, neighbours=CHANGE_ONE
    )
    assert changed.scale == 24


# ---------------------------------------------------------------- thresholded: law and release


@pytest.mark.parametrize(("scale", "threshold"), [("1", 3), ("2", 2), ("1/2", 4), ("3", 9)])
def test_the_law_is_the_polynomial(scale: str, threshold: int) -> None:
    mechanism = ThresholdedHistogram(scale=scale, threshold=threshold, keys_per_person=1)
    judge = judge_of(mechanism)
    with working_precision(256):
        base = (-arb_of(judge.unit)).exp()

        def exact(polynomial: fmpz_poly) -> arb:
            return polynomial(base) / (1 + judge.q(1))(base)

        for count in COUNTS:
            law = mechanism.law(count)
            assert abs(law.suppressed.enclosure - exact(judge.mass(count, None))) < 1e-30
            assert abs(law.released.enclosure - (1 - exact(judge.mass(count, None)))) < 1e-30
            for value in range(threshold, judge.last):
                mass = exact(judge.mass(count, value))
                assert abs(law.probability(value).enclosure - mass) < 1e-30
            assert law.probability(threshold - 1).contains(0)


class Given:
    """A sampler that hands out the noise it was given."""

    def __init__(self, noise: list[int]) -> None:
        self.noise = noise
        self.drawn = 0

    def draw(self, bits: object, size: int) -> np.ndarray:
        self.drawn += size
        return np.array(self.noise[:size], np.int64)


def test_release_does_what_the_law_says_for_all_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = ThresholdedHistogram(scale=1, threshold=3, keys_per_person=1)
    for noise in product(range(-4, 5), repeat=2):
        sampler = Given(list(noise))
        monkeypatch.setattr(histogram, "laplace_sampler", lambda scale, s=sampler: s)
        released = mechanism.release({"b": 2, "none": 0, "a": 1})
        assert released == {
            key: count + x
            for key, count, x in (("a", 1, noise[0]), ("b", 2, noise[1]))
            if count + x >= 3
        }
        assert sampler.drawn == 2  # one draw a present key
        keys, counts = mechanism.release_arrays(np.array(["b", "a"]), np.array([2, 1]))
        assert dict(zip(keys.tolist(), counts.tolist(), strict=True)) == released


def seeded(seed: int, monkeypatch: pytest.MonkeyPatch) -> Counting:
    """Noise from a seed, through the real samplers; the source counts what is taken."""
    source = Counting(Seeded(seed))

    def drawn(sampler: Sampler, shape: tuple[int, ...]) -> np.ndarray:
        return drawn_with(sampler, source, prod(shape)).reshape(shape)

    monkeypatch.setattr(lattice, "drawn", drawn)
    return source


def test_release_has_the_frequencies_of_the_law(monkeypatch: pytest.MonkeyPatch) -> None:
    """400,000 keys; a false alarm has probability below 2**-40 each; sees 10 % of a probability."""
    trials = 400_000
    mechanism = ThresholdedHistogram(scale=2, threshold=5, keys_per_person=1)
    seeded(20, monkeypatch)
    _, values = mechanism.release_arrays(np.arange(trials), np.full(trials, 3))
    law = mechanism.law(3)
    assert values.min() == 5
    for hits, chance in [
        (trials - values.size, law.suppressed),
        *(((values == value).sum(), law.probability(value)) for value in range(5, 9)),
    ]:
        expected = upper(chance)
        assert_frequency(int(hits), trials=trials, probability=expected, detects=Fraction(1, 10))
    shifted = upper(mechanism.law(4).suppressed)  # mutant: thresholded one too low
    assert suspicious(
        trials - values.size, trials=trials, probability=shifted, false_alarm=2.0**-40
    )


def test_the_random_bytes_depend_on_the_number_of_present_keys_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mechanism = ThresholdedHistogram(scale=2, threshold=5, keys_per_person=1)
    used = set()
    for seed, counts in enumerate([[1] * 50, [1000] * 50, [0] * 9 + [7] * 50]):
        source = seeded(seed, monkeypatch)
        mechanism.release(dict(enumerate(counts)))
        used.add((source.bytes, source.requests))
    assert len(used) == 1


# ---------------------------------------------------------------- thresholded: what else could tell


def certain() -> ThresholdedHistogram:
    """So little noise that large counts are shown and small ones are not."""
    return ThresholdedHistogram(epsilon=100, threshold=50, keys_per_person=1)


def test_the_order_is_that_of_the_keys() -> None:
    keys = ["b", "a", 10, 9, (2, "x"), (2, None), (1, "y"), b"z", None, date(2020, 1, 2), -1]
    first = certain().release(dict.fromkeys(keys, 1000))
    second = certain().release(dict.fromkeys(reversed(keys), 1000))
    assert list(first) == list(second)
    assert set(first) == set(keys)
    assert [k for k in first if isinstance(k, int)] == [-1, 9, 10]


def test_keys_are_written_in_one_way() -> None:
    released = certain().release({np.int64(3): 1000, (np.str_("a"), np.int8(1)): 1000})
    assert [(type(k), k) for k in released] == [(int, 3), (tuple, ("a", 1))]
    assert all(type(part) in (str, int) for part in list(released)[1])


@pytest.mark.parametrize(
    "key", [1.0, True, float("nan"), datetime(2020, 1, 1), frozenset(), (1, 2.0), np.float64(2)]
)
def test_keys_with_two_faces_are_refused(key: object) -> None:
    with pytest.raises(WrongType, match="keys holds one"):
        certain().release({key: 1000})


def test_arrays_tell_nothing_of_keys_that_are_not_shown() -> None:
    long = "x" * 1000
    keys, counts = certain().release_arrays(np.array(["ab", long, "c"]), np.array([900, 1, 800]))
    assert keys.dtype == np.dtype("U2")
    assert keys.base is None
    assert counts.base is None
    assert keys.tolist() == ["ab", "c"]
    nothing, _ = certain().release_arrays(np.array([long]), np.array([1]))
    assert nothing.dtype == np.dtype("U1")
    mixed, _ = certain().release_arrays(["a", 7], [1, 1000])
    assert mixed.tolist() == [7]
    huge = ThresholdedHistogram(epsilon=100, threshold=2**70, keys_per_person=1)
    assert huge.release({"a": 2**80, "b": 5})["a"] > 2**79


@pytest.mark.parametrize("kind", [np.int8, np.int16, np.uint16, ">i4", np.uint64, np.int64, object])
def test_integer_keys_do_not_tell_how_wide_others_were(kind: Any) -> None:
    hidden = 300 if kind is object else min(300, np.iinfo(kind).max)
    keys, counts = certain().release_arrays(
        np.array([5, hidden], kind), np.array([900, 1], np.int16)
    )
    assert keys.tolist() == [5]
    assert keys.dtype == counts.dtype == np.dtype(np.int64)
    assert keys.base is None
    nothing, _ = certain().release_arrays(np.array([5], kind), [1])
    assert nothing.dtype == np.int64


def test_large_integer_keys_are_wide_only_if_they_are_shown() -> None:
    keys = np.array([5, 2**63], np.uint64)
    assert certain().release_arrays(keys, [900, 1])[0].dtype == np.int64
    shown, _ = certain().release_arrays(keys, [1, 900])
    assert shown.dtype == np.uint64
    assert shown.tolist() == [2**63]


def nested(depth: int) -> tuple[Any, ...]:
    key: tuple[Any, ...] = ()
    for _ in range(depth):
        key = (key,)
    return key


@pytest.mark.evidence
def test_deep_keys() -> None:
    assert certain().release_arrays([nested(32)], [900])[0].tolist() == [nested(32)]
    for depth in (33, 1000, 300_000):
        with pytest.raises(WrongType, match="nested"):
            certain().release_arrays([nested(depth)], [900])
        with pytest.raises(WrongType, match="keys"):
            Histogram(keys=[nested(depth)], epsilon=1, keys_per_person=1)


def test_masked_counts_are_refused() -> None:
    masked: Any = np.ma.array(900, mask=True)
    for mechanism in (certain(), Histogram(keys=["a"], epsilon=1, keys_per_person=1)):
        with pytest.raises(WrongType, match="counts is masked"):
            mechanism.release({"a": masked})


def test_a_million_keys() -> None:
    keys = np.arange(10**6) * 7
    shown, counts = certain().release_arrays(keys, np.where(keys % 5 == 0, 1000, 1))
    assert shown.tolist() == keys[keys % 5 == 0].tolist()
    assert np.abs(counts - 1000).max() < 10


def test_empty() -> None:
    assert certain().release({}) == {}
    assert certain().release({"a": 0}) == {}
    assert certain().release_arrays(np.array([], "U1"), np.array([], np.int64))[0].size == 0


# ---------------------------------------------------------------- known keys


@pytest.mark.parametrize("relation", [ADD_REMOVE, CHANGE_ONE], ids=["add-remove", "change-one"])
@pytest.mark.parametrize("most", [1, 2])
@pytest.mark.parametrize("per_key", [1, 2])
def test_known_keys_all_neighbours(most: int, per_key: int, relation: Neighbours) -> None:
    """P_x/P_y = q**(sum of abs(o - x) - abs(o - y)): whole exponents, so the loss is an integer."""
    mechanism = Histogram(
        keys=range(KEYS), scale="7/3", keys_per_person=most, per_key=per_key, neighbours=relation
    )
    additions = {
        tuple(a * m for a, m in zip(person, amount, strict=True))
        for person in people(most)
        for amount in product(range(per_key + 1), repeat=KEYS)
    }
    changes = (
        {plus(a, tuple(-x for x in b)) for a, b in product(additions, repeat=2)}
        if relation is CHANGE_ONE
        else additions | {tuple(-x for x in a) for a in additions}
    )
    outputs = list(product(range(-3, 4), repeat=KEYS))
    worst = max(
        sum(abs(o - c) - abs(o) for o, c in zip(output, change, strict=True))
        for change in changes
        for output in outputs
    )
    # worst is attained: one percent less noise, or the other relation, would not be covered
    assert Fraction(worst) / mechanism.scale == mechanism.epsilon
    assert (
        worst == mechanism.sensitivity == per_key * min(KEYS, most * (1 + (relation is CHANGE_ONE)))
    )


def test_known_keys_release(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = Histogram(keys=["b", "a", True], epsilon="1/2", keys_per_person=2)
    assert mechanism.guarantee == PureDP("1/2", neighbours=ADD_REMOVE)
    assert mechanism.guarantee_at(0) == PureDP(0, neighbours=ADD_REMOVE)
    assert mechanism.guarantee_at(6) == PureDP("3/2", neighbours=ADD_REMOVE)
    for noise in product(range(-2, 3), repeat=3):
        monkeypatch.setattr(histogram, "laplace_sampler", lambda scale, n=noise: Given(list(n)))
        released = mechanism.release({1: 7, "b": 2**70})
        assert released == {"b": 2**70 + noise[0], "a": noise[1], True: 7 + noise[2]}
        assert list(released)[2] is True  # as declared, not as in the data


def test_known_keys_frequencies(monkeypatch: pytest.MonkeyPatch) -> None:
    """300,000 keys; a false alarm has probability below 2**-40 each; sees 10 % of a probability."""
    trials = 300_000
    mechanism = Histogram(keys=range(trials), scale=3, keys_per_person=1)
    seeded(21, monkeypatch)
    values = np.array(list(mechanism.release({0: 0}).values()))
    for value in range(-3, 4):
        expected = upper(mechanism.law(0).probability(value))
        hits = int((values == value).sum())
        assert_frequency(hits, trials=trials, probability=expected, detects=Fraction(1, 10))


def test_an_undeclared_key_is_refused_and_not_named() -> None:
    mechanism = Histogram(keys=["a", "b"], epsilon=1, keys_per_person=1)
    with pytest.raises(InvalidParameter, match="ThresholdedHistogram") as refusal:
        mechanism.release({"a": 1, "escargots": 1})
    assert "escargots" not in str(refusal.value)


# ---------------------------------------------------------------- accuracy


@pytest.mark.parametrize("keys", [1, 10, 10**6])
def test_accuracy_and_beta_are_inverse(keys: int) -> None:
    for mechanism in (
        Histogram(keys="ab"[:1].split(), scale="9/2", keys_per_person=1),
        ThresholdedHistogram(scale="9/2", delta="1e-6", keys_per_person=1),
    ):
        bound = mechanism.accuracy("0.05", keys=keys)
        assert mechanism.beta(bound, keys=keys) <= 0.05 < mechanism.beta(bound - 1, keys=keys)
        assert mechanism.beta(bound + Fraction(1, 2), keys=keys) == mechanism.beta(bound, keys=keys)
        q = np.exp(-2 / 9)
        off = 2 * q ** (bound + 1) / (1 + q)
        assert mechanism.beta(bound, keys=keys) == pytest.approx(-np.expm1(keys * np.log1p(-off)))


def test_accuracy_speaks_of_the_threshold() -> None:
    """A key with a count of threshold + a is shown with probability at least 1 - beta."""
    mechanism = ThresholdedHistogram(epsilon=1, delta="1e-6", keys_per_person=2)
    bound = mechanism.accuracy("0.01")
    assert mechanism.law(mechanism.threshold + bound).suppressed <= "0.01"


def test_extremes() -> None:
    wide = ThresholdedHistogram(epsilon=Fraction(1, 10**30), delta="1e-40", keys_per_person=1)
    assert wide.beta(0) == 1.0
    assert wide.threshold > 10**31
    narrow = Histogram(keys=["a"], scale="1/100000", keys_per_person=10**9)
    assert narrow.sensitivity == 1
    assert narrow.accuracy("0.5", keys=10**9) == 0


# ---------------------------------------------------------------- bad input

GOOD: Mapping[str, Any] = {"epsilon": 1, "delta": "1e-6", "keys_per_person": 1}


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon": None}, {"scale": 1}, {"threshold": 9}, {"delta": None}, {"epsilon": 0},
        {"epsilon": -1}, {"epsilon": float("nan")}, {"delta": 0}, {"delta": 1}, {"delta": -1},
        {"delta": "x"}, {"keys_per_person": 0}, {"keys_per_person": 1.0}, {"keys_per_person": True},
        {"neighbours": AS_DECLARED}, {"neighbours": "add-remove"}, {"neighbours": None},
        {"delta": None, "threshold": 1}, {"delta": None, "threshold": -5},
        {"delta": None, "threshold": 2.5},
    ],
    ids=str,
)  # fmt: skip
def test_bad_parameters(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        ThresholdedHistogram(**{**GOOD, **change})


@pytest.mark.parametrize(
    "change",
    [
        {"keys": []}, {"keys": "ab"}, {"keys": ["a", "a"]}, {"keys": [[]]}, {"keys": 3},
        {"keys": [1, True]}, {"keys_per_person": 0}, {"per_key": 0}, {"per_key": 0.5},
        {"epsilon": None}, {"scale": 1}, {"neighbours": AS_DECLARED}, {"keys": [([],)]},
        {"keys": ["a", ("b", {})]}, {"keys": [np.ma.masked]}, {"neighbours": "x"},
        {"neighbours": None},
    ],
    ids=str,
)  # fmt: skip
def test_bad_parameters_of_known_keys(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        Histogram(**{"keys": ["a"], "epsilon": 1, "keys_per_person": 1, **change})


@pytest.mark.parametrize("neighbours", ["x", None, 3])
def test_neighbours_are_a_relation(neighbours: Any) -> None:
    with pytest.raises(WrongType, match="pass ADD_REMOVE or CHANGE_ONE"):
        ThresholdedHistogram(**{**GOOD, "neighbours": neighbours})
    with pytest.raises(WrongType, match="pass ADD_REMOVE or CHANGE_ONE"):
        Histogram(keys=["a"], epsilon=1, keys_per_person=1, neighbours=neighbours)


BAD_COUNTS = [-1, 1.0, float("nan"), True, "3", None, np.float64(1), np.True_, Fraction(1), [1]]


@pytest.mark.parametrize("count", BAD_COUNTS, ids=repr)
def test_bad_counts_are_refused_before_any_noise(
    count: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(scale: Fraction) -> None:
        raise AssertionError("noise was asked for")

    monkeypatch.setattr(histogram, "laplace_sampler", never)
    for mechanism in (
        ThresholdedHistogram(epsilon=1, delta="1e-6", keys_per_person=1),
        Histogram(keys=["a", "b"], epsilon=1, keys_per_person=1),
    ):
        with pytest.raises(InvalidParameter, match="counts is"):
            mechanism.release({"a": 3, "b": count})
        with pytest.raises(InvalidParameter):
            mechanism.law(count)
        with pytest.raises(InvalidParameter):
            mechanism.release([("a", 3)])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("keys", "counts"),
    [
        (np.array([1, 2, 1]), np.array([1, 1, 1])),
        (["a", "b", "a"], [1, 1, 1]),
        (np.array([1, 2]), np.array([1])),
        (np.array([1, 2]), np.array([1, -1])),
        (np.array([1, 2]), np.array([1.0, 2.0])),
        (np.array([1, 2]), np.array([True, False])),
        (np.array([1.0, 2.0]), np.array([1, 2])),
        (np.array([[1], [2]]), np.array([[1], [2]])),
        (np.array(1), np.array(1)),
        ("ab", [1, 2]),
        (["a"], 3),
        (np.ma.array([1, 2], mask=[False, True]), [1, 2]),
        ([1, 2], np.ma.array([1, 2], mask=[False, True])),
        (np.ma.array([1, 2]), np.array([1, 2])),
        ([np.timedelta64(1, "s")], [1]),
        ([1], [np.timedelta64(900, "s")]),
        (np.array([1, 2], "m8[s]"), [1, 2]),
        ([([],)], [1]),
    ],
    ids=str,
)
def test_bad_arrays(keys: object, counts: object) -> None:
    with pytest.raises(InvalidParameter):
        certain().release_arrays(keys, counts)


@pytest.mark.parametrize("beta", [0, 1, -1, "x", None])
def test_bad_beta(beta: Any) -> None:
    with pytest.raises(InvalidParameter):
        certain().accuracy(beta)
    with pytest.raises(InvalidParameter):
        certain().accuracy("0.1", keys=0)
    with pytest.raises(InvalidParameter):
        certain().beta(-1)


def test_guarantees_for_several_people():
    mechanism = ThresholdedHistogram(epsilon=1, delta="1e-6", keys_per_person=1)
    assert mechanism.guarantee_at(0) == ProbabilisticDP(0, 0, neighbours=ADD_REMOVE)
    assert mechanism.guarantee_at(1) == mechanism.guarantee
    assert mechanism.guarantee_at(3) == mechanism.guarantee.group(3)
    assert isinstance(mechanism.guarantee_at(2), ApproxDP)
    with pytest.raises(InvalidParameter, match="distance"):
        mechanism.guarantee_at(-1)
