"""Randomized response: the privacy inequality on exact laws, the real code over all words."""

from __future__ import annotations

import math
import pickle
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact.ball import Real, refine
from lastbit.mechanisms import randomized_response
from lastbit.mechanisms.randomized_response import GRID, RandomizedResponse, Shift, moved, shifts
from lastbit.privacy.guarantees import PureDP
from lastbit.privacy.neighbours import ADD_REMOVE, AS_DECLARED, CHANGE_ONE, Neighbours
from lastbit.sampling import draw
from lastbit.sampling.blocks import Sampler, drawn_with
from lastbit.sampling.deterministic import Counting, Replay, Seeded
from tests.laws.frequency import assert_frequency
from tests.laws.oracle import MARGIN, decimal, decimals, exp

EPSILONS = [Fraction(1, 1000), Fraction(1, 10), Fraction(1, 2), Fraction(1), Fraction(3), 10]
COUNTS = [2, 3, 4, 7, 10]


def masses(mechanism: RandomizedResponse, answer: int) -> list[Fraction]:
    law = mechanism.law(answer)
    sums = [law.exact_cumulative(k) for k in range(-1, mechanism.categories)]
    return [after - before for before, after in pairwise(sums)]


def worst_ratio(mechanism: RandomizedResponse) -> Fraction:
    """Over all outputs and all pairs of answers."""
    laws = [masses(mechanism, answer) for answer in range(mechanism.categories)]
    assert all(sum(law) == 1 and min(law) > 0 for law in laws)
    return max(p / q for one, other in product(laws, laws) for p, q in zip(one, other, strict=True))


def is_private(mechanism: RandomizedResponse, epsilon: Fraction) -> bool:
    """P[o | x] <= e**epsilon P[o | y] for all o, x, y: decided by balls."""
    ratio = worst_ratio(mechanism)
    if ratio == 1:
        return True
    return refine(lambda precision: Real(epsilon).exp().ball(precision) >= ratio)


def assert_close_to_ideal(mechanism: RandomizedResponse, epsilon: Fraction) -> None:
    """keep is below e**epsilon/(e**epsilon + k-1), by less than 2**-62: by Decimals."""
    with decimals():
        ideal = exp(epsilon) / (exp(epsilon) + mechanism.categories - 1)
        assert -MARGIN <= ideal - decimal(mechanism.keep) < decimal(Fraction(1, GRID)) + MARGIN


# ---------------------------------------------------------------- the exact law


@pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
@pytest.mark.parametrize("categories", COUNTS)
def test_privacy_for_all_outputs_and_pairs(categories: int, epsilon: Fraction) -> None:
    mechanism = RandomizedResponse(epsilon=epsilon, categories=categories)
    assert mechanism.guarantee == PureDP(epsilon)
    assert is_private(mechanism, epsilon)


@pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
@pytest.mark.parametrize("categories", COUNTS)
def test_no_privacy_is_wasted(categories: int, epsilon: Fraction) -> None:
    """Kept within 2**-62 of the ideal, by Decimals; and one unit more would be too much."""
    mechanism = RandomizedResponse(epsilon=epsilon, categories=categories)
    assert_close_to_ideal(mechanism, epsilon)
    assert not is_private(_kept(mechanism.keep + Fraction(1, GRID), categories), epsilon)


@pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
@pytest.mark.parametrize("categories", COUNTS)
def test_mutant_that_keeps_one_per_cent_more(categories: int, epsilon: Fraction) -> None:
    keep = RandomizedResponse(epsilon=epsilon, categories=categories).keep * Fraction(101, 100)
    if keep < 1:
        assert not is_private(_kept(keep, categories), epsilon)
    else:  # nobody lies any more
        with pytest.raises(InvalidParameter):
            _kept(keep, categories)


def _kept(keep: Fraction, categories: int) -> RandomizedResponse:
    return RandomizedResponse(keep=keep, categories=categories)


@pytest.mark.parametrize("exponent", [50, 55, 56, 58, 60, 61, 62, 63, 64, 65, 70, 5000])
@pytest.mark.parametrize("categories", [2, 3, 5, 6, 7, 11])
def test_tiny_epsilons(exponent: int, categories: int) -> None:
    """Rounding down may not end below 1/k, where the truth would be *less* likely than the rest."""
    epsilon = Fraction(1, 1 << exponent)
    mechanism = RandomizedResponse(epsilon=epsilon, categories=categories)
    assert mechanism.keep * categories >= 1
    assert is_private(mechanism, epsilon)
    assert_close_to_ideal(mechanism, epsilon)
    naive = Fraction(GRID // categories, GRID)
    if categories != 2 and exponent > 64:
        law = [naive, *[(1 - naive) / (categories - 1)] * (categories - 1)]
        ratio = max(law) / min(law)  # what the rounding alone would have given
        assert refine(lambda precision: Real(epsilon).exp().ball(precision) < ratio)


@pytest.mark.parametrize("epsilon", [43, 64, 1000, 10**100], ids=str)
@pytest.mark.parametrize("categories", [2, 3, 1000, 1 << 32])
def test_large_epsilons(epsilon: int, categories: int) -> None:
    mechanism = RandomizedResponse(epsilon=epsilon, categories=categories)
    assert mechanism.keep < 1
    ratio = mechanism.keep * (categories - 1) / (1 - mechanism.keep)
    bound = Fraction(min(epsilon, 200))  # beyond, keep stays at its greatest value
    assert refine(lambda precision: Real(bound).exp().ball(precision) > ratio)
    assert_close_to_ideal(mechanism, bound)
    assert mechanism.guarantee == PureDP(epsilon)


@pytest.mark.parametrize("categories", [2, 3, 10, 1000])
@pytest.mark.parametrize(
    "more", [Fraction(1, 10**40), Fraction(1, 1000), Fraction(1, 3), Fraction(99, 100)], ids=str
)
def test_the_loss_of_a_given_keep(more: Fraction, categories: int) -> None:
    """ln(keep (k-1)/(1-keep)) rounded up, to the very next float."""
    mechanism = RandomizedResponse.from_truth(more, categories=categories)
    assert mechanism.truth_probability == more
    ratio = mechanism.keep * (categories - 1) / (1 - mechanism.keep)
    epsilon = float(mechanism.epsilon)
    assert Fraction(epsilon) == mechanism.epsilon
    assert refine(lambda precision: Real(ratio).log().ball(precision) < epsilon)
    before = math.nextafter(epsilon, 0)
    assert refine(lambda precision: Real(ratio).log().ball(precision) > before)
    if categories == 2:
        assert ratio == 1 + 2 * more / (1 - more)  # paper 003 (7), (8)
    if categories <= 10:
        assert worst_ratio(mechanism) == ratio


def test_answers_by_lot() -> None:
    for categories in (2, 3, 7):
        mechanism = RandomizedResponse(keep=Fraction(1, categories), categories=categories)
        assert mechanism.guarantee == PureDP(0)
        assert mechanism.truth_probability == 0
        assert worst_ratio(mechanism) == 1


def test_guarantee_at() -> None:
    mechanism = RandomizedResponse(epsilon="1/3", neighbours=CHANGE_ONE.by("person"))
    assert mechanism.guarantee.neighbours == CHANGE_ONE.by("person")
    assert mechanism.guarantee_at(0).epsilon == 0
    assert mechanism.guarantee_at(1) == mechanism.guarantee
    assert mechanism.guarantee_at(5).epsilon == Fraction(5, 3)
    assert mechanism.guarantee_at("2.9").epsilon == Fraction(2, 3)
    with pytest.raises(InvalidParameter, match="distance is negative"):
        mechanism.guarantee_at(-1)


def test_two_changed_answers_cost_twice() -> None:
    """The joint law of two answers, exactly: the bound of guarantee_at(2) is attained."""
    mechanism = RandomizedResponse(keep="3/4")
    one, other = masses(mechanism, 0), masses(mechanism, 1)
    joint = max(one[a] * one[b] / (other[a] * other[b]) for a, b in product(range(2), range(2)))
    assert joint == worst_ratio(mechanism) ** 2 == 9


# ---------------------------------------------------------------- the real code


class Words:
    """The first bits of one coin, and the word of its replacement if there is one to draw."""

    def __init__(self, first: int, other: int | None) -> None:
        words = [first] if other is None else [first, other]
        self.fill = Replay([np.array([word], np.uint16) for word in words]).fill


def enumerated(sampler: Sampler, categories: int, answer: int) -> list[Fraction]:
    """The law of the real code, from all its words: 4 bits for the coin, 4 for the replacement."""
    others = [None] if categories == 2 else range(16)
    seen = [0] * categories
    for first, other in product(range(16), others):
        shift = sampler.draw(Words(first, other), 1)
        (response,) = moved(np.array([answer]), shift, categories).tolist()
        seen[response] += 1
    return [Fraction(n, 16 * len(others)) for n in seen]


@pytest.mark.parametrize("categories", [2, 3, 5, 9])
@pytest.mark.parametrize("keep", [Fraction(13, 16), Fraction(9, 16), Fraction(15, 16)], ids=str)
def test_the_real_code_over_all_words(categories: int, keep: Fraction) -> None:
    """keep has the denominator 16, so four bits decide and the law comes out exactly."""
    mechanism = RandomizedResponse(keep=keep, categories=categories)
    sampler = shifts(1 - keep, categories, word_bits=8, guide_bits=4)
    for answer in range(categories):
        assert enumerated(sampler, categories, answer) == masses(mechanism, answer)


def test_mutants_of_the_shift_are_rejected() -> None:
    """A change that may change nothing, and a coin turned around."""

    class AnyCategory(Shift):
        def draw(self, bits, size: int):
            changed = self.changed.draw(bits, size)
            return self.other.draw(bits, size) * changed

    keep = Fraction(13, 16)
    mechanism = RandomizedResponse(keep=keep, categories=5)
    honest = shifts(1 - keep, 5, word_bits=8, guide_bits=4)
    turned = shifts(keep, 5, word_bits=8, guide_bits=4)
    assert isinstance(honest, Shift)
    assert enumerated(AnyCategory(honest.changed, honest.other), 5, 2) != masses(mechanism, 2)
    assert enumerated(turned, 5, 2) != masses(mechanism, 2)


@pytest.mark.parametrize("categories", [2, 3, 4, 7, 1000])
def test_frequencies(categories: int) -> None:
    """False alarm 2**-40 a frequency; one per cent off would be seen where it is common enough."""
    mechanism = RandomizedResponse(epsilon=2, categories=categories)
    trials = 2_000_000
    sampler = shifts(mechanism.beta(), categories)
    shift = drawn_with(sampler, Seeded(categories), trials)
    answer = categories - 1
    out = moved(np.full(trials, answer), shift, categories)
    assert out.dtype == np.int64
    seen = np.bincount(out, minlength=categories)
    assert seen.size == categories
    for k, probability in enumerate(masses(mechanism, answer)):
        common = probability * trials > 600_000
        assert_frequency(
            int(seen[k]),
            trials=trials,
            probability=float(probability),
            detects=Fraction(1, 100) if common else None,
        )


@pytest.mark.parametrize("categories", [2, 3, 7, 1 << 32])
@pytest.mark.parametrize("size", [1, 256, 65536])
def test_constant_words(categories: int, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes and requests depend on the number of answers only, not on them nor on the draws."""
    mechanism = RandomizedResponse(epsilon=1, categories=categories)
    seen = set()
    for seed in range(3 if size > 1000 else 50):
        source = Counting(Seeded(seed))
        monkeypatch.setattr(draw, "secure_bits", lambda source=source: source)
        mechanism.release(np.full(size, seed % 2 * (categories - 1)))
        seen.add((source.bytes, source.requests))
    assert len(seen) == 1


@pytest.mark.parametrize("epsilon", ["1/10", 1, 20])
@pytest.mark.parametrize("categories", [2, 4, 8, 16])
def test_calibrated_coins_never_need_refinement(categories: int, epsilon: object) -> None:
    mechanism = RandomizedResponse(epsilon=epsilon, categories=categories)  # type: ignore[arg-type]
    sampler = shifts(mechanism.beta(), categories)
    table = sampler.table if categories == 2 else sampler.changed.table  # type: ignore[union-attr]
    assert table.lows.tolist() == table.highs[1:].tolist()


# ---------------------------------------------------------------- releases


@given(st.lists(st.integers(0, 6), max_size=40), st.integers(7, 9))
def test_releases_are_categories(answers: list[int], categories: int) -> None:
    mechanism = RandomizedResponse(epsilon="1/5", categories=categories)
    array = np.array(answers, np.int32)
    before = array.copy()
    out = mechanism.release(array)
    assert out.dtype == np.int64 or not out.size
    assert out.shape == array.shape
    assert ((out >= 0) & (out < categories)).all()
    assert (array == before).all()


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int64, np.uint64, ">i8", np.object_])
def test_all_integers_are_taken(kind: object) -> None:
    answers = np.array([[0, 1, 1], [1, 0, 1]]).astype(kind)  # type: ignore[call-overload]
    out = RandomizedResponse(keep=1 - Fraction(1, 10**30)).release(answers)
    assert out.dtype == np.int64
    assert out.tolist() == answers.tolist()


def test_same_kind_out_as_in() -> None:
    nearly = RandomizedResponse(keep=1 - Fraction(1, 10**30))
    assert nearly.release(True) is True
    assert nearly.release(np.False_) is False
    assert nearly.release(1) == 1
    assert type(nearly.release(1)) is int
    assert type(nearly.release(np.int8(1))) is int
    assert nearly.release([True, False]).dtype == np.bool_
    assert nearly.release(np.array([], np.int64)).shape == (0,)
    assert nearly.release(np.zeros((0, 3), np.bool_)).dtype == np.bool_
    many = RandomizedResponse(keep=1 - Fraction(1, 10**30), categories=5)
    assert many.release(4) == 4
    assert many.release(np.array([4, 0, 2])).tolist() == [4, 0, 2]


def test_both_answers_come_out() -> None:
    """A hundred of one kind among 100 fair coins: 2**-99."""
    lot = RandomizedResponse(keep="1/2")
    assert {lot.release(True) for _ in range(100)} == {True, False}
    assert {lot.release(0) for _ in range(100)} == {0, 1}


BAD = [
    (2, 2), (2, -1), (3, 3), (3, [0, 1, 3]), (3, [-1]), (2, 2**70), (2, [0, 2**70]),
    (2, np.array([255], np.uint8)), (2, np.array([2**63], np.uint64)), (2, [[0, 1], [1]]),
    (2, 73211),
]  # fmt: skip
WRONG = [
    (2, 0.0), (2, 1.0), (2, float("nan")), (2, np.array([0.0, 1.0])), (2, np.array([np.nan])),
    (2, "1"), (2, ["yes", "no"]), (2, None), (2, [None, 1]), (2, [0, "73211"]), (2, {0, 1}),
    (3, True), (3, np.True_), (3, [True, False]), (3, np.array([True])), (2, Fraction(1)),
    (2, np.array(["2020-01-01"], "M8[D]")), (2, b"1"), (2, 1j), (2, np.array([])),
    (2, np.array([True, 1], np.object_)),
    (2, np.timedelta64(1, "s")), (3, [np.timedelta64(1, "s")]),
    (2, np.array([np.timedelta64(1, "s")], np.object_)), (3, np.array([1], "m8[s]")),
    (2, np.ma.array([0, 1], mask=[False, True])), (3, [np.ma.array([0, 1], mask=[False, True])]),
    (2, np.ma.array([True])),
]  # fmt: skip


@pytest.mark.parametrize(("categories", "value"), [*BAD, *WRONG], ids=repr)
def test_bad_answers_are_refused_before_anything_is_drawn(
    categories: int, value: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    mechanism = RandomizedResponse(epsilon=1, categories=categories)

    def drawn(*_: object) -> None:
        raise AssertionError("something was drawn")

    monkeypatch.setattr(randomized_response, "drawn", drawn)
    wrong = any(value is other for _, other in WRONG)
    with pytest.raises(WrongType if wrong else InvalidParameter) as refused:
        mechanism.release(value)
    assert "73211" not in str(refused.value)
    assert "pass" in str(refused.value)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({}, "exactly one"),
        ({"epsilon": 1, "keep": "0.7"}, "exactly one"),
        ({"epsilon": 0}, "epsilon is zero"),
        ({"epsilon": -1}, "epsilon is negative"),
        ({"epsilon": math.nan}, "NaN"),
        ({"epsilon": math.inf}, "infinite"),
        ({"keep": "0.49"}, "keep is below 1/categories"),
        ({"keep": "0.33", "categories": 3}, "from 1/3 up"),
        ({"keep": 1}, "every answer would be disclosed; pass a probability below 1"),
        ({"keep": 2}, "keep is 1 or more"),
        ({"epsilon": 1, "categories": 1}, "categories is below 2"),
        ({"epsilon": 1, "categories": 2.0}, "whole number"),
        ({"epsilon": 1, "categories": 2**33}, "more than 2"),
        ({"epsilon": 1, "neighbours": ADD_REMOVE}, "number of answers is shown; pass CHANGE_ONE"),
        ({"keep": "3/4", "neighbours": ADD_REMOVE.by("person")}, "pass CHANGE_ONE"),
    ],
)
def test_bad_parameters(parameters: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        RandomizedResponse(**parameters)  # type: ignore[arg-type]


@pytest.mark.parametrize("neighbours", ["x", None, 3, "change-one"])
def test_neighbours_are_a_relation(neighbours: object) -> None:
    with pytest.raises(WrongType, match="pass ADD_REMOVE or CHANGE_ONE"):
        RandomizedResponse(epsilon=1, neighbours=neighbours)  # type: ignore[arg-type]


@pytest.mark.parametrize("neighbours", [CHANGE_ONE, AS_DECLARED, AS_DECLARED.by("person")])
def test_only_inputs_of_equal_length_are_neighbours(neighbours: Neighbours) -> None:
    assert RandomizedResponse(epsilon=1, neighbours=neighbours).neighbours == neighbours
    with pytest.raises(InvalidParameter, match="CHANGE_ONE"):
        RandomizedResponse.from_truth("1/2", neighbours=ADD_REMOVE)


@pytest.mark.parametrize("categories", [2, 3])
@pytest.mark.parametrize("nobody", [[], (), [[]]])
def test_no_answers(categories: int, nobody: Any) -> None:
    out = RandomizedResponse(epsilon=1, categories=categories).release(nobody)
    assert out.dtype == np.int64
    assert out.shape == np.shape(nobody)


def test_the_law_of_very_many_categories_is_not_listed() -> None:
    mechanism = RandomizedResponse(epsilon=1, categories=2**32)
    with pytest.raises(InvalidParameter, match="too many to list"):
        mechanism.law(0)
    assert 0 <= mechanism.release(7) < 2**32


@pytest.mark.parametrize("probability", [1, -0.1, "1.5"])
def test_bad_truth(probability: object) -> None:
    with pytest.raises(InvalidParameter, match="probability is not between 0 and 1"):
        RandomizedResponse.from_truth(probability)  # type: ignore[arg-type]


def test_law_of_one_answer_only() -> None:
    mechanism = RandomizedResponse(keep="3/4")
    assert masses(mechanism, True) == [Fraction(1, 4), Fraction(3, 4)]
    with pytest.raises(WrongType, match="value is an array"):
        mechanism.law([0, 1])  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="out of range"):
        mechanism.law(2)


# ---------------------------------------------------------------- accuracy


def test_beta_is_the_mass_beside_the_truth() -> None:
    for categories in COUNTS:
        mechanism = RandomizedResponse(epsilon=1, categories=categories)
        assert mechanism.beta() == 1 - masses(mechanism, 0)[0]


@pytest.mark.parametrize("answers", [1, 2, 10, 199, 200, 201, 400])
@pytest.mark.parametrize("beta", ["0.5", "0.05", "1e-9"])
def test_accuracy_is_the_exact_quantile(answers: int, beta: str) -> None:
    """Against the plain sum of the binomial law, below and above the switch to balls."""
    mechanism = RandomizedResponse(keep="3/4")
    change = mechanism.beta()
    most = mechanism.accuracy(beta, answers=answers)

    def above(a: int) -> Fraction:
        return sum(
            (
                math.comb(answers, i) * change**i * (1 - change) ** (answers - i)
                for i in range(a + 1, answers + 1)
            ),
            Fraction(0),
        )

    assert above(most) <= Fraction(beta)
    assert most == 0 or above(most - 1) > Fraction(beta)


def test_accuracy_decides_ties() -> None:
    assert RandomizedResponse(keep="3/4").accuracy("1/4") == 0
    assert RandomizedResponse(keep="1/2").accuracy("1/4", answers=2) == 1
    assert RandomizedResponse(keep="1/2").accuracy(Fraction(1, 4) - Fraction(1, 10**30)) == 1
    with pytest.raises(InvalidParameter, match="beta is not between 0 and 1"):
        RandomizedResponse(keep="3/4").accuracy(0)


@pytest.mark.thinned(one_in=9)
@pytest.mark.parametrize("answers", [201, 1001, 100_001])
def test_accuracy_decides_ties_of_many_answers(answers: int) -> None:
    """P[B > n/2] = 1/2 for a fair coin and n odd: at the least difference the answer moves on."""
    fair, half, little = RandomizedResponse(keep="1/2"), Fraction(1, 2), Fraction(1, 2**5000)
    assert fair.accuracy(half, answers=answers) == answers // 2
    assert fair.accuracy(half + little, answers=answers) == answers // 2
    assert fair.accuracy(half - little, answers=answers) == answers // 2 + 1


def test_values() -> None:
    mechanism = RandomizedResponse(epsilon=1, categories=3)
    mechanism.release(1)
    assert pickle.loads(pickle.dumps(mechanism)) == mechanism
    assert hash(mechanism) == hash(RandomizedResponse(epsilon=1, categories=3))
    assert mechanism != RandomizedResponse(epsilon=1)
    with pytest.raises(AttributeError):
        mechanism.keep = Fraction(1)  # type: ignore[misc]


def test_noise_on_input_against_noise_on_output() -> None:
    """Paper 004: 0.030 and 0.0014 at n = 1000, epsilon = 1; the formula from all responses."""
    keep, answers = Fraction(3, 4), (1, 0, 0, 1, 1)
    coin = RandomizedResponse(keep=keep)
    truth = coin.truth_probability
    spread = Fraction(0)
    for responses in product((0, 1), repeat=len(answers)):
        chance = math.prod(
            keep if r == a else 1 - keep for r, a in zip(responses, answers, strict=True)
        )
        estimate = (Fraction(sum(responses), len(answers)) - (1 - truth) / 2) / truth
        spread += chance * (estimate - Fraction(sum(answers), len(answers))) ** 2
    assert spread == keep * (1 - keep) / truth**2 / len(answers)
    people, one = 1000, RandomizedResponse(epsilon=1)
    on_input = math.sqrt(one.keep * (1 - one.keep) / one.truth_probability**2 / people)
    ratio = math.exp(-1)  # discrete Laplace noise of scale 1 on the count
    on_output = math.sqrt(2 * ratio) / (1 - ratio) / people
    assert f"{on_input:.3f} {on_output:.4f}" == "0.030 0.0014"
