"""Above threshold: every sequence of answers of short inputs against those of all neighbours."""

from __future__ import annotations

import copy
import os
import pickle
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from fractions import Fraction
from itertools import product
from math import ceil, floor, prod
from typing import Any

import numpy as np
import pytest

from lastbit.errors import InvalidParameter, LastbitError, WrongType
from lastbit.exact.ball import Ball
from lastbit.exact.rounding import upper
from lastbit.laws.discrete import DiscreteLaplace
from lastbit.mechanisms import above_threshold, lattice
from lastbit.mechanisms.above_threshold import AboveThreshold
from lastbit.privacy.guarantees import PureDP
from lastbit.privacy.neighbours import ADD_REMOVE, CHANGE_ONE
from lastbit.sampling.blocks import Sampler, drawn_with
from lastbit.sampling.deterministic import Counting, Seeded
from lastbit.sampling.draw import drawn
from tests.evidence import late
from tests.laws.frequency import assert_frequency, suspicious
from tests.laws.oracle import decimals, exp

VALUES = range(-2, 3)
LENGTH = 3
Answers = tuple[bool, ...]


class Refused(AssertionError):
    """Two neighbours that the guarantee does not cover."""


def neighbours(*, monotone: bool) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """All sequences of three values from -2 to 2, and all that differ by at most 1 everywhere."""
    moves = [
        move
        for move in product((-1, 0, 1), repeat=LENGTH)
        if not monotone or min(move) >= 0 or max(move) <= 0
    ]
    for x in product(VALUES, repeat=LENGTH):
        for move in moves:
            y = tuple(a + b for a, b in zip(x, move, strict=True))
            if all(value in VALUES for value in y):
                yield x, y


def check(one: dict[Answers, Ball], other: dict[Answers, Ball], epsilon: Fraction) -> None:
    """Every answer of one input is at most exp(epsilon) as likely from the other: by balls."""
    factor = Ball.of(epsilon).exp()
    for answers, chance in one.items():
        if not chance <= factor * other[answers]:
            raise Refused(f"{answers} is more than exp(epsilon) as likely")


def check_all(mechanism: AboveThreshold, epsilon: Fraction, *, monotone: bool) -> None:
    laws = {x: mechanism.law(x, precision=80) for x in product(VALUES, repeat=LENGTH)}
    for x, y in neighbours(monotone=monotone):
        if x != y:
            check(laws[x], laws[y], epsilon)


# ---------------------------------------------------------------- privacy


@pytest.mark.parametrize("monotone", [False, late(True)])
@pytest.mark.parametrize("count", [1, late(2), late(3)])
@pytest.mark.parametrize("epsilon", ["1", late("3")])
def test_every_answer_of_all_neighbours(epsilon: str, count: int, monotone: bool) -> None:
    mechanism = AboveThreshold(threshold=0, epsilon=epsilon, count=count, monotone=monotone)
    assert mechanism.guarantee == PureDP(epsilon)
    check_all(mechanism, mechanism.epsilon, monotone=monotone)


@pytest.mark.evidence
@pytest.mark.parametrize("count", [1, late(2)])
def test_query_noise_without_its_factor_is_rejected(count: int) -> None:
    """Delta/epsilon2 in the place of 2 count Delta/epsilon2."""
    right = AboveThreshold(threshold=0, epsilon=1, count=count)
    wrong = AboveThreshold(
        threshold=0,
        threshold_scale=right.threshold_scale,
        query_scale=right.query_scale / (2 * count),
        count=count,
    )
    with pytest.raises(Refused):
        check_all(wrong, right.epsilon, monotone=False)


# False answers far above and True answers far below the threshold leave only the worst noise
FAR = 20


def worst_pair(count: int, *, monotone: bool) -> tuple[list[int], list[int], Answers]:
    falses = 2 + 2 * count
    down = 0 if monotone else 1
    x = [-FAR] * (count - 1) + [FAR] * falses + [-FAR]
    y = [-FAR - down] * (count - 1) + [FAR + 1] * falses + [-FAR - down]
    return x, y, (True,) * (count - 1) + (False,) * falses + (True,)


def loss(mechanism: AboveThreshold, *, monotone: bool) -> Ball:
    x, y, answers = worst_pair(mechanism.count, monotone=monotone)
    laws = [mechanism.law(values, precision=192)[answers] for values in (x, y)]
    return laws[0].log() - laws[1].log()


@pytest.mark.thinned(one_in=4)
@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("count", [1, 2, late(3)])
def test_the_bound_is_reached(count: int, monotone: bool) -> None:
    """So a mutant with one percent less noise, in either place, is rejected."""
    mechanism = AboveThreshold(threshold=0, epsilon=2, count=count, monotone=monotone)
    exact = loss(mechanism, monotone=monotone)
    assert mechanism.epsilon * Fraction(99_999, 100_000) < exact
    assert exact <= mechanism.epsilon
    for threshold_noise, query_noise in ((Fraction(99, 100), 1), (1, Fraction(99, 100))):
        mutant = AboveThreshold(
            threshold=0,
            threshold_scale=mechanism.threshold_scale * threshold_noise,
            query_scale=mechanism.query_scale * query_noise,
            count=count,
            monotone=monotone,
        )
        assert loss(mutant, monotone=monotone) > mechanism.epsilon
        assert loss(mutant, monotone=monotone) <= mutant.epsilon
    if monotone:  # queries that go both ways are not covered
        assert loss(mechanism, monotone=False) > mechanism.epsilon


# ---------------------------------------------------------------- an independent law, and mutants


def tails(scale: Fraction) -> tuple[Callable[[int], Decimal], Callable[[int], Decimal]]:
    """P[X = k] and P[X < k] of the discrete Laplace law, in Decimals."""
    q = exp(-1 / scale)

    def mass(k: int) -> Decimal:
        return (1 - q) / (1 + q) * exp(-abs(k) / scale)

    def below(k: int) -> Decimal:
        return exp((k - 1) / scale) / (1 + q) if k <= 0 else 1 - exp(-k / scale) / (1 + q)

    return mass, below


def answer_law(values: Sequence[int], answers: Answers, a: Fraction, b: Fraction) -> Decimal:
    """P[answers] for the threshold 0 by the definition; the sum is cut where terms are 1e-60."""
    mass, _ = tails(a)
    _, below = tails(b)
    total = Decimal(0)
    reach = int(140 * a)
    for r in range(-reach, reach + 1):
        term = mass(r)
        for value, answer in zip(values, answers, strict=False):
            false = below(r - value)
            term *= 1 - false if answer else false
        total += term
    return total


@pytest.mark.thinned(one_in=9)
@pytest.mark.parametrize("count", [1, 2])
def test_the_law_is_that_of_the_definition(count: int) -> None:
    mechanism = AboveThreshold(
        threshold="-1/2", threshold_scale="3/2", query_scale=2, count=count
    )  # v >= -1/2 iff v >= 0
    law = mechanism.law([1, -1, 2])
    assert len(law) == {1: 4, 2: 7}[count]
    with decimals():
        for answers, chance in law.items():
            low, high = chance.ends
            exact = Fraction(answer_law([1, -1, 2], answers, Fraction(3, 2), Fraction(2)))
            assert low - Fraction(1, 10**35) < exact < high + Fraction(1, 10**35)
    total = sum(law.values(), Ball.of(0))
    assert total.contains(1)
    assert total.ends[1] - total.ends[0] < Fraction(1, 2**100)


def log_ratio(one: Decimal, other: Decimal) -> Decimal:
    return (one / other).ln()


def test_without_threshold_noise_it_fails() -> None:
    """Every False answer then costs, too: four of them more than epsilon, twelve thrice that."""
    mechanism = AboveThreshold(threshold=0, epsilon=1)
    with decimals():
        _, below = tails(mechanism.query_scale)
        for number, least in ((4, Decimal(1)), (12, Decimal(3))):
            assert log_ratio(below(-FAR) ** number, below(-FAR - 1) ** number) > least


def test_new_threshold_noise_for_every_query_fails() -> None:
    """If nothing is shared, False answers do not shift together."""
    mechanism = AboveThreshold(threshold=0, epsilon=1)
    scales = mechanism.threshold_scale, mechanism.query_scale
    with decimals():
        one = answer_law([FAR], (False,), *scales)
        other = answer_law([FAR + 1], (False,), *scales)
        assert log_ratio(one**4, other**4) > 1
        assert log_ratio(one**12, other**12) > 3


@pytest.mark.evidence
def test_releasing_the_noisy_value_fails() -> None:
    """The value shown is not below the noisy threshold, which pins that down: R cannot shift.

    Answers False n times, then the noisy value 0 itself: the sum goes over r <= 0 only. The same
    answers without the value are fine.
    """
    mechanism = AboveThreshold(threshold=0, epsilon=1)
    a, b = mechanism.threshold_scale, mechanism.query_scale
    with decimals():
        threshold_mass, _ = tails(a)
        query_mass, below = tails(b)

        def shown(false_value: int, true_value: int, number: int) -> Decimal:
            terms = (threshold_mass(r) * below(r - false_value) ** number for r in range(-400, 1))
            return sum(terms, Decimal(0)) * query_mass(0 - true_value)

        losses = [log_ratio(shown(0, 0, n), shown(1, -1, n)) for n in (3, 10, 30)]
        assert losses[0] > 1
        assert losses[1] > 3
        assert losses[2] > 8  # no multiple of epsilon would do
        answers = (False,) * 10 + (True,)
        hidden = [answer_law([v] * 10 + [w], answers, a, b) for v, w in ((0, 0), (1, -1))]
        assert log_ratio(*hidden) < 1


# ---------------------------------------------------------------- guarantee and calibration


@pytest.mark.parametrize(
    ("count", "monotone", "ratio"), [(1, False, "1.587"), (4, False, "4"), (8, True, "4")]
)
def test_the_split(count: int, monotone: bool, ratio: str) -> None:
    mechanism = AboveThreshold(
        threshold=0, sensitivity=3, epsilon="1/7", count=count, monotone=monotone
    )
    first = 3 / mechanism.threshold_scale
    rest = (1 if monotone else 2) * count * 3 / mechanism.query_scale
    assert first + rest == mechanism.epsilon == Fraction(1, 7)
    assert rest / first == Fraction(ratio)


def test_guarantee_at() -> None:
    mechanism = AboveThreshold(threshold=0, epsilon="1/2", count=3, neighbours=ADD_REMOVE)
    assert mechanism.guarantee_at(0) == PureDP(0, neighbours=ADD_REMOVE)
    assert mechanism.guarantee_at(4) == PureDP(2, neighbours=ADD_REMOVE)
    assert mechanism.guarantee == mechanism.start().guarantee
    raw = AboveThreshold(threshold=0, threshold_scale=2, query_scale=8, count=2)
    assert raw.guarantee == PureDP(1)


def test_floats_count_their_rounding() -> None:
    mechanism = AboveThreshold(threshold="0.3", sensitivity="0.1", epsilon=1, grid="1/64")
    assert mechanism.epsilon == 1
    # 0.1 is 6.4 steps, which after rounding may become 7
    raw = AboveThreshold(
        threshold=0, sensitivity="0.1", threshold_scale=1, query_scale=1, grid="1/64"
    )
    assert raw.epsilon == 3 * Fraction(7, 64)
    law = mechanism.law([0.25, 0.5])
    same = AboveThreshold(
        threshold=20,  # 0.3 is 19.2 steps
        threshold_scale=mechanism.threshold_scale * 64,
        query_scale=mechanism.query_scale * 64,
    ).law([16, 32])
    assert all(abs(law[answers] - same[answers]) < "1e-30" for answers in law)
    assert AboveThreshold(threshold=0.5, epsilon=100, grid="auto").release([0.0, 1.0]) == [
        False,
        True,
    ]


# ---------------------------------------------------------------- release and session


class Given:
    """A sampler that hands out the noise it was given."""

    def __init__(self, noise: Sequence[int]) -> None:
        self.noise = noise

    def draw(self, bits: object, size: int) -> np.ndarray:
        return np.resize(np.array(self.noise, np.int64), size)


@pytest.mark.parametrize("count", [1, 2])
def test_release_does_what_the_law_says_for_all_noise(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    mechanism = AboveThreshold(threshold=1, threshold_scale=1, query_scale=2, count=count)
    values = [0, 2, 1]
    for threshold_noise, *noise in product(range(-2, 3), repeat=4):
        samplers = {Fraction(1): Given([threshold_noise]), Fraction(2): Given(noise)}
        monkeypatch.setattr(above_threshold, "laplace_sampler", samplers.__getitem__)
        expected: list[bool] = []
        for value, x in zip(values, noise, strict=True):
            if sum(expected) < count:
                expected.append(value + x >= 1 + threshold_noise)
        assert mechanism.release(values) == expected
        assert mechanism.release(np.array(values)) == expected


def seeded(seed: int, monkeypatch: pytest.MonkeyPatch) -> Counting:
    """Noise from a seed, through the real samplers; the source counts what is taken."""
    source = Counting(Seeded(seed))
    ahead: dict[Sampler, list[int]] = {}

    def drawn(sampler: Sampler, size: tuple[int, ...] | None) -> Any:
        if size is not None:
            return drawn_with(sampler, source, prod(size)).reshape(size)
        if not ahead.get(sampler):
            ahead[sampler] = drawn_with(sampler, source, 1000).tolist()
        return ahead[sampler].pop()

    monkeypatch.setattr(above_threshold, "drawn", drawn)
    monkeypatch.setattr(lattice, "drawn", drawn)
    return source


def asked(mechanism: AboveThreshold, values: Sequence[int]) -> Answers:
    session = mechanism.start()
    answers = []
    for value in values:
        if not session.finished:
            answers.append(session.ask(value))
    return tuple(answers)


@pytest.mark.parametrize(
    "run",
    [asked, late(lambda mechanism, values: tuple(mechanism.release(values)))],
    ids=["ask", "release"],
)
def test_frequencies(
    run: Callable[[AboveThreshold, Sequence[int]], Answers], monkeypatch: pytest.MonkeyPatch
) -> None:
    """30,000 runs; a false alarm has probability below 2**-40 each; sees 25 % of a probability."""
    seeded(30, monkeypatch)
    trials = 30_000
    mechanism = AboveThreshold(threshold=1, threshold_scale=2, query_scale=3, count=2)
    law = mechanism.law([0, 3, 1])
    hits = dict.fromkeys(law, 0)
    for _ in range(trials):
        hits[run(mechanism, [0, 3, 1])] += 1
    for answers, chance in law.items():
        assert_frequency(
            hits[answers], trials=trials, probability=upper(chance), detects=Fraction(1, 4)
        )
    # mutant: new threshold noise for every query, which has another law of two True answers
    single = [upper(mechanism.law([value])[(True,)]) for value in (0, 3)]
    assert suspicious(
        hits[True, True], trials=trials, probability=single[0] * single[1], false_alarm=2.0**-40
    )


def test_the_random_bytes_do_not_tell_where_it_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    used = set()
    for values in ([10**6] + [0] * 999, [-(10**6)] * 1000):
        source = seeded(1, monkeypatch)
        AboveThreshold(threshold=0, epsilon=1).release(values)
        used.add((source.bytes, source.requests))
    assert len(used) == 1


def test_release_stops() -> None:
    mechanism = AboveThreshold(threshold=10**6, epsilon=1, count=2)
    high = 2 * 10**6
    assert mechanism.release([0, high, 0, high, 0, high]) == [False, True, False, True]
    assert mechanism.release([0, high, 0]) == [False, True, False]
    assert mechanism.release([]) == []
    assert mechanism.release([2**80, -(2**80), 2**64]) == [True, False, True]


def test_session_stops() -> None:
    session = AboveThreshold(threshold=10**6, epsilon=1, count=2).start()
    assert [session.ask(v) for v in (0, 2 * 10**6, 0, 2**80)] == [False, True, False, True]
    assert session.finished
    for _ in range(2):
        with pytest.raises(InvalidParameter, match="comes after the last answer; start a new"):
            session.ask(0)


def test_the_threshold_noise_is_drawn_once(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Fraction] = []

    def counted(sampler: Fraction, size: object) -> int:
        drawn.append(sampler)
        return 0

    monkeypatch.setattr(above_threshold, "drawn", counted)
    monkeypatch.setattr(above_threshold, "laplace_sampler", lambda scale: scale)
    session = AboveThreshold(threshold=5, threshold_scale=1, query_scale=2, count=3).start()
    assert [session.ask(v) for v in (4, 5, 6)] == [False, True, True]
    assert drawn == [1, 2, 2, 2]


def test_a_session_is_not_copied() -> None:
    session = AboveThreshold(threshold=0, epsilon=1).start()
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(WrongType, match="cannot be copied"):
            copied(session)
    assert str(session._bar) not in repr(session).replace(hex(id(session)), "")


def test_a_session_stays_in_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    session = AboveThreshold(threshold=0, epsilon=1).start()
    here = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: here + 1)
    with pytest.raises(InvalidParameter, match="another process"):
        session.ask(0)


def test_threads_get_no_answer_too_many() -> None:
    session = AboveThreshold(threshold=0, epsilon=1, count=10).start()

    def ask(_: int) -> int:
        try:
            return session.ask(10**6)
        except InvalidParameter:
            return 0

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(ask, range(500))) == 10


def test_a_signal_handler_cannot_ask_in_the_midst_of_an_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It would get one True too many: the answer it interrupts has looked at what is left."""
    session = AboveThreshold(threshold=0, epsilon=1).start()
    refused: list[str] = []

    def handler(*_: object) -> None:
        with pytest.raises(InvalidParameter, match="being asked already") as failure:
            session.ask(10**6)
        refused.append(str(failure.value))

    def interrupted(sampler: Sampler, size: None) -> Any:
        if not refused:
            signal.raise_signal(signal.SIGUSR1)
        return drawn(sampler, size)

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        monkeypatch.setattr(above_threshold, "drawn", interrupted)
        assert session.ask(10**6)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert len(refused) == 1
    assert session.finished
    with pytest.raises(InvalidParameter, match="after the last answer"):
        session.ask(10**6)


def test_an_interrupted_answer_leaves_the_session_usable(monkeypatch: pytest.MonkeyPatch) -> None:
    session = AboveThreshold(threshold=0, epsilon=1).start()

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(above_threshold, "drawn", interrupted)
        with pytest.raises(KeyboardInterrupt):
            session.ask(10**6)
    assert not session.finished
    assert session.ask(10**6)
    assert session.finished


# ---------------------------------------------------------------- accuracy


@pytest.mark.parametrize("threshold", ["0", "1/2"])
@pytest.mark.parametrize("count", [1, 3])
def test_accuracy_holds_by_the_exact_law(count: int, threshold: str) -> None:
    """P[some answer is wrong by more than a] summed over all answers to hard inputs."""
    mechanism = AboveThreshold(threshold=threshold, epsilon=4, count=count)
    bound = mechanism.accuracy("0.1", queries=3)
    bar = Fraction(threshold)
    low, high = ceil(bar - bound) - 1, floor(bar + bound) + 1  # just beyond
    for values in ([low, low, high], [high, high, high], [low, low, low]):
        wrong = [
            chance
            for answers, chance in mechanism.law(values).items()
            if any(
                (answer and value < bar - bound) or (not answer and value > bar + bound)
                for answer, value in zip(answers, values, strict=False)
            )
        ]
        assert sum(wrong, Ball.of(0)) <= "0.1"


def test_accuracy_grows_with_the_logarithm_of_the_queries() -> None:
    mechanism = AboveThreshold(threshold=0, epsilon=1)
    bounds = [mechanism.accuracy("0.05", queries=10**k) for k in range(0, 10, 3)]
    assert bounds == sorted(bounds)
    assert bounds[-1] < 120
    # Dwork and Roth, Theorem 3.24: 8 (ln k + ln(2/beta))/epsilon, there with an even split
    assert bounds[1] < 8 * (np.log(1000) + np.log(40))
    on_grid = AboveThreshold(threshold=0, epsilon=1, grid="1/1024")
    assert abs(on_grid.accuracy("0.05", queries=1000) - bounds[1]) < 1


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon": None}, {"epsilon": 0}, {"epsilon": -1}, {"epsilon": float("inf")},
        {"threshold_scale": 1}, {"threshold_scale": 1, "query_scale": 1},
        {"epsilon": None, "threshold_scale": 1}, {"epsilon": None, "query_scale": 1},
        {"epsilon": None, "threshold_scale": 1, "query_scale": 0}, {"sensitivity": 0},
        {"sensitivity": -1}, {"threshold": float("nan")}, {"threshold": None}, {"count": 0},
        {"count": 1.5}, {"count": True}, {"monotone": 1}, {"grid": "1/3"},
        {"monotone": True, "neighbours": CHANGE_ONE}, {"neighbours": "x"}, {"neighbours": None},
        {"monotone": True, "neighbours": 3}, {"neighbours": 3},
    ],
    ids=str,
)  # fmt: skip
def test_bad_parameters(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        AboveThreshold(**{"threshold": 0, "epsilon": 1, **change})


BAD_VALUES = [
    1.5, float("nan"), True, "3", None, np.True_, [1], 1j, np.timedelta64(1, "s"), np.ma.masked,
]  # fmt: skip


@pytest.mark.parametrize("value", BAD_VALUES)
def test_bad_values_are_refused_before_any_noise(
    value: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    mechanism = AboveThreshold(threshold=0, epsilon=1)
    session = mechanism.start()

    def never(*_: object) -> None:
        raise AssertionError("noise was asked for")

    monkeypatch.setattr(above_threshold, "laplace_sampler", never)
    monkeypatch.setattr(above_threshold, "drawn", never)
    with pytest.raises(InvalidParameter):
        mechanism.release([1, value])
    with pytest.raises(InvalidParameter):
        session.ask(value)
    with pytest.raises(InvalidParameter):
        mechanism.law([1, value])
    assert not session.finished


@pytest.mark.parametrize("values", [3, "12", None, np.array([[1, 2]]), np.array([1.5])])
def test_bad_lists(values: object) -> None:
    with pytest.raises(InvalidParameter):
        AboveThreshold(threshold=0, epsilon=1).release(values)


@pytest.mark.parametrize("grid", [None, "auto"])
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({1: 2}, "no order"), ({1, 2}, "no order"), (frozenset({1}), "no order"),
        ({1: 2}.keys(), "no order"), (np.array(3), "dimension"), (np.array([[1]]), "dimension"),
        (np.array(3, np.object_), "dimension"), (np.ma.array([1, 2], mask=[False, True]), "masked"),
        (np.ma.array([1.0, 2.0]), "masked"), (np.timedelta64(1, "s"), "not a list"),
        (np.array([1], "m8[s]"), "number"),
    ],
    ids=str,
)  # fmt: skip
def test_lists_of_the_wrong_type(values: object, message: str, grid: Any) -> None:
    mechanism = AboveThreshold(threshold=0, epsilon=1, grid=grid)
    for question in (mechanism.release, mechanism.law):
        with pytest.raises(WrongType, match=message):
            question(values)


def test_noise_beyond_all_tables_is_refused_before_any_is_drawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("noise was asked for")

    monkeypatch.setattr(above_threshold, "drawn", never)
    mechanism = AboveThreshold(threshold=0, threshold_scale=1, query_scale=2**600)
    with pytest.raises(InvalidParameter, match="scale"):
        mechanism.release([1])
    with pytest.raises(InvalidParameter, match="scale"):
        mechanism.start()


def test_the_law_has_its_limits() -> None:
    with pytest.raises(InvalidParameter, match="at most 12"):
        AboveThreshold(threshold=0, epsilon=1).law([0] * 13)
    with pytest.raises(InvalidParameter, match="threshold_scale"):
        AboveThreshold(threshold=0, epsilon="1e-9").law([0])
    with pytest.raises(InvalidParameter):
        AboveThreshold(threshold=0, epsilon=1).accuracy("0.1", queries=0)
    with pytest.raises(InvalidParameter):
        AboveThreshold(threshold=0, epsilon=1).accuracy(1, queries=1)
    with pytest.raises(InvalidParameter):
        AboveThreshold(threshold=0, epsilon=1).guarantee_at(-1)


@pytest.mark.parametrize("grid", [None, "1/8"])
def test_beta_and_accuracy_agree(grid) -> None:
    """The error that accuracy allows for a beta is exceeded with at most that probability."""
    mechanism = AboveThreshold(sensitivity=1, epsilon=1, threshold=0, grid=grid)
    for level in ("0.5", "0.05", "1e-6"):
        error = mechanism.accuracy(level, queries=20)
        assert mechanism.beta(error, queries=20) <= float(level)
        assert mechanism.beta(2 * error, queries=20) < mechanism.beta(error, queries=20)
    assert mechanism.beta(0, queries=1) == 1.0
    # the truth for one query: P[abs(R - N) > a], summed over both laws, is never above
    bar = DiscreteLaplace(mechanism.threshold_scale / mechanism.lattice.step)
    noise = DiscreteLaplace(mechanism.query_scale / mechanism.lattice.step)
    weights = [float(upper(bar.probability(k))) for k in range(-80, 81)]
    tails = [float(upper(noise.probability(k))) for k in range(-200, 201)]
    for steps in (2, 6, 15):
        exact = sum(
            w * t
            for r, w in zip(range(-80, 81), weights, strict=True)
            for n, t in zip(range(-200, 201), tails, strict=True)
            if abs(r - n) > steps
        )
        far = (steps + Fraction(mechanism.lattice.rounds, 2)) * mechanism.lattice.step
        assert mechanism.beta(far, queries=1) >= min(exact, 1.0) - 1e-3


@pytest.mark.parametrize("error", [-1, float("nan"), "x"])
def test_bad_errors(error) -> None:
    with pytest.raises(LastbitError, match="error"):
        AboveThreshold(sensitivity=1, epsilon=1, threshold=0).beta(error, queries=1)
