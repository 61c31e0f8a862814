"""Polls: the estimator exactly unbiased, the variance of the paper, coverage summed exactly."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from itertools import product
from statistics import NormalDist

import numpy as np
import pytest

from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact import clopper_pearson
from lastbit.exact.ball import Real, refine
from lastbit.mechanisms.poll import Poll, PollResult, share_variance, uncertainty_curve
from lastbit.mechanisms.randomized_response import RandomizedResponse
from lastbit.privacy.guarantees import PureDP
from lastbit.privacy.neighbours import ADD_REMOVE
from lastbit.sampling import draw
from lastbit.sampling.deterministic import Seeded

CONFIDENCE = Fraction(19, 20)
SHARES = [Fraction(i, 20) for i in range(21)]


def binomial(n: int, m: Fraction) -> list[Fraction]:
    return [math.comb(n, y) * m**y * (1 - m) ** (n - y) for y in range(n + 1)]


def mass(mechanism: RandomizedResponse, answer: int, response: int) -> Fraction:
    law = mechanism.law(answer)
    return law.exact_cumulative(response) - law.exact_cumulative(response - 1)


# ---------------------------------------------------------------- the estimator


@pytest.mark.parametrize("categories", [2, 3])
@pytest.mark.parametrize("epsilon", ["1/10", 1, 4])
def test_exactly_unbiased(categories: int, epsilon: object) -> None:
    """Summed over all responses of three people, for all their answers, as rationals."""
    mechanism = RandomizedResponse(epsilon=epsilon, categories=categories)  # type: ignore[arg-type]
    poll = Poll(mechanism)
    for answers in product(range(categories), repeat=3):
        for category in range(categories):
            expected = Fraction(0)
            for responses in product(range(categories), repeat=3):
                chance = math.prod(
                    mass(mechanism, a, o) for a, o in zip(answers, responses, strict=True)
                )
                expected += chance * poll.unbiased_share(responses.count(category), 3)
            assert expected == Fraction(answers.count(category), 3)


def test_mutant_that_forgets_the_lot_is_biased() -> None:
    mechanism = RandomizedResponse(keep="3/4")
    mean = sum(mass(mechanism, 0, o) * o / mechanism.truth_probability for o in range(2))
    assert mean == Fraction(1, 2)  # and not 0


def test_estimate_is_the_formula_of_the_paper() -> None:
    """(10), where p = 1/2: mu^ = (3/8 - 1/4) / (1/2)."""
    poll = Poll(RandomizedResponse.from_truth("1/2"))
    for responses in ([1, 1, 1, 0, 0, 0, 0, 0], np.array([[True, False], [False, True]] * 2)):
        result = poll.estimate(responses)
        share = np.mean(responses)
        assert result.mean == (share - 0.25) / 0.5
        assert result.standard_error == pytest.approx(math.sqrt(share * (1 - share) / 8) / 0.5)
        assert (result.n, result.confidence) == (8, 0.95)
        assert poll.estimate_shares(responses)[0].mean == 1 - result.mean
        assert 0 <= result.low <= result.mean <= result.high <= 1


def test_the_variance_is_that_of_the_paper() -> None:
    """(14) times p**2 is a polynomial of degree 2 in p and in mu, and so is m(1-m).

    Two such polynomials that agree on three values of each are equal.
    """
    three = (Fraction(1, 5), Fraction(1, 2), Fraction(1))
    for p, mu in product(three, three):
        paper = mu / p - mu**2 + (1 - p) / (2 * p**2) - (1 - p) ** 2 / (4 * p**2) - mu * (1 - p) / p
        assert share_variance(p, mu) == paper


@pytest.mark.parametrize("categories", [2, 3, 5])
def test_the_variance_from_the_law(categories: int) -> None:
    """Of one response to an answer drawn with these shares, exactly."""
    mechanism = RandomizedResponse(epsilon=1, categories=categories)
    poll, mean = Poll(mechanism), Fraction(2, 7)
    other = (1 - mean) / (categories - 1)
    yes = sum((mean if a == 1 else other) * mass(mechanism, a, 1) for a in range(categories))
    ends = [poll.unbiased_share(0, 1), poll.unbiased_share(1, 1)]
    variance = yes * (ends[1] - mean) ** 2 + (1 - yes) * (ends[0] - mean) ** 2
    assert poll.variance("2/7") == variance


# ---------------------------------------------------------------- intervals


@cache
def interval(keep: Fraction, count: int, n: int, method: str = "exact") -> PollResult:
    poll = Poll(RandomizedResponse(keep=keep))
    responses = [1] * count + [0] * (n - count)
    return poll.estimate(responses, method=method)  # type: ignore[arg-type]


def coverage(keep: Fraction, counts: list[Fraction], mean: Fraction, method: str) -> Fraction:
    """P[low <= mean <= high], exactly, for a law of the number of yes responses."""
    n = len(counts) - 1
    results = [interval(keep, y, n, method) for y in range(n + 1)]
    return sum(
        (p for p, r in zip(counts, results, strict=True) if r.low <= mean <= r.high), Fraction(0)
    )


KEEPS = [Fraction(11, 20), Fraction(3, 4), Fraction(9, 10), Fraction(999, 1000)]


@pytest.mark.parametrize("keep", KEEPS, ids=str)
@pytest.mark.parametrize("n", [1, 2, 5, 11, 30])
def test_exact_coverage_of_the_exact_interval(keep: Fraction, n: int) -> None:
    """Answers drawn independently with share mu: at least the confidence, for every mu."""
    p = 2 * keep - 1
    for mean in SHARES:
        counts = binomial(n, p * mean + (1 - p) / 2)
        assert sum(counts) == 1
        assert coverage(keep, counts, mean, "exact") >= CONFIDENCE


@pytest.mark.parametrize("keep", KEEPS[:3], ids=str)
@pytest.mark.parametrize("n", [1, 2, 5, 11, 30])
def test_exact_coverage_for_a_fixed_population(keep: Fraction, n: int) -> None:
    """Answers that are not drawn at all: only the coins are random, and vary less."""
    for true in range(n + 1):
        yes, no = binomial(true, keep), binomial(n - true, 1 - keep)
        counts = [
            sum((yes[a] * no[y - a] for a in range(true + 1) if 0 <= y - a <= n - true), Fraction())
            for y in range(n + 1)
        ]
        assert sum(counts) == 1
        assert coverage(keep, counts, Fraction(true, n), "exact") >= CONFIDENCE


def test_the_ends_are_carried_over_outwards() -> None:
    poll = Poll(RandomizedResponse(epsilon=1))
    truth = poll.response.truth_probability
    for count in range(8, 13):
        low, high = (Fraction(end) for end in clopper_pearson(count, 20, error="0.05"))
        result = interval(poll.response.keep, count, 20)
        assert Fraction(result.low) <= max((low - (1 - truth) / 2) / truth, Fraction(0))
        assert Fraction(result.high) >= min((high - (1 - truth) / 2) / truth, Fraction(1))


def test_the_normal_interval_covers_too_rarely() -> None:
    """Why it is not the default: asked for 95 %, it gives far less for few answers."""
    keep = Fraction(9, 10)
    p = 2 * keep - 1
    worst = min(
        coverage(keep, binomial(11, p * mean + (1 - p) / 2), mean, "normal") for mean in SHARES
    )
    assert worst < Fraction(8, 10)


def test_the_normal_interval_is_that_of_the_paper() -> None:
    poll = Poll(RandomizedResponse(keep="3/4"))
    result = poll.estimate([1] * 60 + [0] * 40, method="normal", confidence="0.9")
    half = NormalDist().inv_cdf(0.95) * math.sqrt(0.6 * 0.4 / 100) / 0.5
    assert result.mean == 0.7
    assert result.low == pytest.approx(0.7 - half, rel=1e-12)
    assert result.high == pytest.approx(0.7 + half, rel=1e-12)
    sure = poll.estimate([1] * 5, method="normal")
    assert sure.low == sure.high == sure.mean == 1.5


# ---------------------------------------------------------------- planning


def suffices(poll: Poll, n: int, half_width: Fraction, variance: Fraction) -> bool:
    """z sqrt(v/n) <= h: erf(h sqrt(n/(2v))) >= confidence, without the inverse."""
    root = Real(half_width**2 * n / (2 * variance)).sqrt()
    return refine(
        lambda precision: Real(lambda: root.enclosure().erf()).ball(precision) >= CONFIDENCE
    )


@pytest.mark.parametrize("epsilon", ["1/10", 1, 5])
@pytest.mark.parametrize("half_width", ["0.2", "0.05", "0.001"])
@pytest.mark.parametrize("mean", [None, "0.03", 1])
def test_sample_size_is_the_least(epsilon: object, half_width: str, mean: object) -> None:
    poll = Poll(epsilon=epsilon)  # type: ignore[arg-type]
    n = poll.sample_size(half_width, mean=mean)  # type: ignore[arg-type]
    variance = poll.variance("1/2" if mean is None else mean)  # type: ignore[arg-type]
    wanted = Fraction(half_width)
    assert suffices(poll, n, wanted, variance)
    assert n == 1 or not suffices(poll, n - 1, wanted, variance)
    assert poll.half_width(n, mean=mean) <= float(wanted)  # type: ignore[arg-type]


@pytest.mark.parametrize("categories", [2, 3, 10])
def test_without_a_mean_the_widest_interval_is_planned_for(categories: int) -> None:
    for epsilon in ("1/2", 4):
        poll = Poll(RandomizedResponse(epsilon=epsilon, categories=categories))
        widest = max(poll.half_width(100, mean=mean) for mean in [*SHARES, Fraction(1, 2)])
        assert poll.half_width(100) >= widest
        assert poll.half_width(100) == pytest.approx(widest, rel=0.01)


def test_the_curves_of_figure_2() -> None:
    """More privacy or fewer answers: less certainty; the baseline is the poll without privacy."""
    sizes = [100, 1000, 10_000]
    curve = uncertainty_curve(["1/10", 1, 10, math.inf], sizes)
    assert curve.shape == (4, 3)
    assert (np.diff(curve, axis=0) < 0).all()
    assert (np.diff(curve, axis=1) < 0).all()
    z = NormalDist().inv_cdf(0.975)
    assert curve[3].tolist() == pytest.approx([z / 2 / math.sqrt(n) for n in sizes])
    p = math.tanh(0.5)  # (e - 1)/(e + 1)
    assert curve[1].tolist() == pytest.approx([z / 2 / p / math.sqrt(n) for n in sizes])
    assert uncertainty_curve([], sizes).shape == (0, 3)
    asymmetric = uncertainty_curve([math.inf], [100], mean="1/10", confidence="0.9")[0, 0]
    assert asymmetric == pytest.approx(NormalDist().inv_cdf(0.95) * 0.3 / 10)


# ---------------------------------------------------------------- the whole


def test_a_poll_from_answers_to_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    """A population of 10,000, a fixed seed, intervals that fail with probability 2**-40 each."""
    source = Seeded(3)
    monkeypatch.setattr(draw, "secure_bits", lambda: source)
    sure = 1 - Fraction(1, 2**40)
    answers = np.arange(10_000) < 3000
    poll = Poll(epsilon=2)
    assert poll.guarantee == PureDP(2)
    responses = poll.collect(answers)
    assert responses.dtype == np.bool_
    result = poll.estimate(responses, confidence=sure)
    assert result.low <= 0.3 <= result.high
    assert result.high - result.low < 0.2

    many = Poll(RandomizedResponse(epsilon=2, categories=4))
    shares = many.estimate_shares(many.collect(np.arange(10_000) % 4), confidence=sure)
    assert len(shares) == 4
    assert sum(s.mean for s in shares) == pytest.approx(1)
    assert all(s.low <= 0.25 <= s.high for s in shares)


@pytest.mark.parametrize("digits", [100, 1000])
def test_confidence_close_to_one_or_to_zero(digits: int) -> None:
    """z**2 lies between 2 L - 4 ln L and 2 L, L = ln(1/alpha) large: Mills' ratio, generously."""
    poll, little = Poll(epsilon=1), Fraction(1, 10**digits)
    exponent = digits * math.log(10)
    per_square = poll.sample_size("1/10", confidence=1 - little) / float(100 * poll._planned(None))
    assert 2 * exponent - 4 * math.log(exponent) < per_square < 2 * exponent
    wide = poll.half_width(100, confidence=1 - little)
    assert wide == pytest.approx(math.sqrt(per_square * float(poll._planned(None)) / 100), rel=1e-3)
    assert poll.sample_size("1/10", confidence=little) == 1
    assert 0 < poll.half_width(100, confidence=little) < 1e-99


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda poll: poll.estimate([]), "does not hold categories|are not several"),
        (lambda poll: poll.estimate(np.array([], np.bool_)), "responses are not several"),
        (lambda poll: poll.estimate(1), "responses are not several"),
        (lambda poll: poll.estimate([0, 2]), "responses is or holds a category out of range"),
        (lambda poll: poll.estimate([0.5]), "whole numbers from 0 to 1"),
        (lambda poll: poll.estimate([0, 1], confidence=1), "confidence is not between 0 and 1"),
        (lambda poll: poll.estimate([0, 1], confidence=0), "confidence is not between 0 and 1"),
        (lambda poll: poll.estimate([0, 1], method="wald"), "method is unknown"),
        (lambda poll: poll.variance(2), "mean is not between 0 and 1"),
        (lambda poll: poll.sample_size(0), "half_width is zero"),
        (lambda poll: poll.half_width(0), "n is below 1"),
        (lambda poll: uncertainty_curve([1], [0]), "sizes is below 1"),
        (lambda poll: uncertainty_curve([-1], [1]), "epsilon is negative"),
        (lambda poll: poll.unbiased_share(1, 0), "n is below 1"),
        (lambda poll: poll.unbiased_share(-1, 2), "count is below 0"),
        (lambda poll: poll.unbiased_share(3, 2), "count is above n"),
        (lambda poll: poll.unbiased_share(0.5, 2), "count is of type float"),
        (
            lambda poll: poll.estimate(np.ma.array([0, 1], mask=[False, True])),
            "responses is masked",
        ),
        (lambda poll: poll.collect(np.ma.array([0, 1], mask=[False, True])), "value is masked"),
        (
            lambda poll: Poll(RandomizedResponse(epsilon=1, neighbours=ADD_REMOVE)),
            "pass CHANGE_ONE",
        ),
        (
            lambda poll: Poll(RandomizedResponse(epsilon=1, categories=2**32)).estimate_shares([0]),
            "too many to list",
        ),
        (lambda poll: Poll(), "exactly one"),
        (lambda poll: Poll(poll.response, epsilon=1), "exactly one"),
        (lambda poll: Poll(RandomizedResponse(keep="1/2")), "nothing can be learned"),
        (
            lambda poll: Poll(RandomizedResponse(epsilon=1, categories=3)).estimate([0, 1]),
            "use estimate_shares",
        ),
    ],
)
def test_bad_input(call, message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        call(Poll(epsilon=1))


def test_a_poll_needs_a_randomized_response() -> None:
    with pytest.raises(WrongType, match="response is of type int"):
        Poll(1)  # type: ignore[arg-type]
