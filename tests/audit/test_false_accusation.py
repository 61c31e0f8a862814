"""How likely a correct mechanism is accused, summed exactly over everything that can be counted.

A mechanism is correct for a claim (epsilon, delta) and an event if P <= e**epsilon Q + delta. All
probabilities of accusation below are exact rationals: no simulation, no luck. The runs at the end
show that the code which was summed over is the code that runs.
"""

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache, partial
from itertools import product

import numpy as np
import pytest

from lastbit.audit import bounds as bound
from lastbit.audit.attacks.floats import low_bits, precision
from lastbit.audit.attacks.noise import threshold
from lastbit.audit.blackbox.distinguish import distinguish_by_sampling
from lastbit.audit.blackbox.sampled import AT_THE_END
from lastbit.audit.bounds import exceeds
from lastbit.audit.targets.target import Target
from lastbit.exact import probability_lower
from tests.evidence import late

ERRORS = (Fraction(1, 3), Fraction(1, 20), Fraction(1, 1000))
CLAIMS = (Fraction(0), Fraction(1, 10), Fraction(1), Fraction(3))
DELTAS = (Fraction(0), Fraction(1, 50), Fraction(1, 4))
SHARES = tuple(Fraction(k, 32) for k in (0, 1, 2, 5, 10, 16, 22, 27, 30, 31, 32))


@pytest.fixture(autouse=True)
def ends(monkeypatch):
    """The ends of the intervals once for each count: they are asked for again and again."""
    for end in ("probability_lower", "probability_upper"):
        monkeypatch.setattr(bound, end, cache(getattr(bound, end)))


@cache
def exponential(epsilon: Fraction) -> Fraction:
    """A little below e**epsilon: all terms of the series are above 0."""
    total, term = Fraction(1), Fraction(1)
    for k in range(1, 60):
        term = term * epsilon / k
        total += term
    return Fraction(math.floor(total * 2**80), 2**80)


@cache
def mass(trials: int, p: Fraction) -> tuple[Fraction, ...]:
    return tuple(math.comb(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(trials + 1))


def greatest(q: Fraction, epsilon: Fraction, delta: Fraction) -> Fraction:
    """The greatest P that the claim allows, rounded down to a short fraction."""
    most = min(Fraction(1), exponential(epsilon) * q + delta)
    return Fraction(math.floor(most * 2**16), 2**16)


def accused(
    hits: int,
    trials: int,
    others: int,
    other_trials: int,
    claim: tuple[Fraction, Fraction],
    error: Fraction,
) -> bool:
    """Whether either statement contradicts the claim."""
    counts, (epsilon, delta) = (hits, trials, others, other_trials), claim
    loss = bound.epsilon_lower(*counts, delta=delta, error=error)
    rest = bound.delta_lower(*counts, epsilon=epsilon, error=error)
    return exceeds(loss, epsilon) or Fraction(rest) > delta


def accusing(sizes: tuple[int, int], claim: tuple[Fraction, Fraction], error: Fraction):
    """All pairs of counts that accuse."""
    trials, others = sizes
    return [
        (h, o)
        for h, o in product(range(trials + 1), range(others + 1))
        if accused(h, trials, o, others, claim, error)
    ]


def chance(pairs, sizes: tuple[int, int], p: Fraction, q: Fraction) -> Fraction:
    """The exact probability of one of these pairs of counts."""
    one, two = mass(sizes[0], p), mass(sizes[1], q)
    return sum((one[h] * two[o] for h, o in pairs), Fraction(0))


# ---------------------------------------------------------------- one event, one look


SIZES = [(1, 1), (3, 3), (8, 8), (14, 14), (20, 20), (4, 11), (11, 4)]


@pytest.mark.thinned(one_in=3)
@pytest.mark.parametrize("sizes", [late(s) if s[0] > 8 else s for s in SIZES])
@pytest.mark.parametrize("error", ERRORS)
def test_a_correct_mechanism_is_accused_with_probability_at_most_the_error(sizes, error):
    """Both statements together, at the greatest P that is allowed and below it, for every claim."""
    for claim in product(CLAIMS, DELTAS):
        pairs = accusing(sizes, claim, error)
        for q in SHARES:
            most = greatest(q, *claim)
            for p in {most, most * Fraction(7, 8), most / 2}:
                assert chance(pairs, sizes, p, q) <= error


def test_the_rate_is_not_idle():
    """Somewhere the probability is a good part of the error: the bound is not simply 0."""
    sizes, error = (14, 14), Fraction(1, 3)
    pairs = accusing(sizes, (Fraction(0), Fraction(0)), error)
    assert max(chance(pairs, sizes, q, q) for q in SHARES) > error / 8
    assert accused(14, 14, 0, 14, (Fraction(1, 10), Fraction(1, 50)), Fraction(1, 20))


def test_mutants_would_accuse_too_often():
    """Estimates instead of ends; the whole error at either end; delta forgotten."""
    sizes, error, q = (14, 14), Fraction(1, 20), Fraction(1, 2)

    def plain(h: int, o: int) -> bool:
        return h > o

    def whole_error(h: int, o: int) -> bool:
        low = probability_lower(h, 14, error=error)
        return low > 1 - probability_lower(14 - o, 14, error=error)

    counts = list(product(range(15), range(15)))
    assert chance([c for c in counts if plain(*c)], sizes, q, q) > error
    twice = chance([c for c in counts if whole_error(*c)], sizes, q, q)
    assert twice > chance(accusing(sizes, (Fraction(0), Fraction(0)), error), sizes, q, q)
    # P - Q = 3/4 is what this claim allows, and what is called a break if delta is left out
    allowed = Fraction(3, 4)
    without = accusing(sizes, (Fraction(0), Fraction(0)), error)
    assert chance(without, sizes, allowed, Fraction(0)) > error
    assert chance(accusing(sizes, (Fraction(0), allowed), error), sizes, allowed, Fraction(0)) <= (
        error
    )


# ---------------------------------------------------------------- many looks


def stopped(
    readings: list[tuple[int, Fraction]], claim: tuple[Fraction, Fraction], p: Fraction, q: Fraction
) -> Fraction:
    """The exact probability that some reading accuses, although one may stop at any of them.

    A reading is a number of runs of each input and the error that it may use.
    """
    going: dict[tuple[int, int], Fraction] = {(0, 0): Fraction(1)}
    total, done = Fraction(0), 0
    for until, error in readings:
        one, two = mass(until - done, p), mass(until - done, q)
        later: dict[tuple[int, int], Fraction] = {}
        for (h, o), share in going.items():
            for (i, a), (j, b) in product(enumerate(one), enumerate(two)):
                place = h + i, o + j
                later[place] = later.get(place, Fraction(0)) + share * a * b
        done, going = until, {}
        for (h, o), share in later.items():
            if accused(h, done, o, done, claim, error):
                total += share
            else:
                going[h, o] = share
    return total


@pytest.mark.parametrize("q", [Fraction(1, 8), Fraction(1, 2), Fraction(7, 8)])
@pytest.mark.parametrize("prior", [(1, 1), (3, 1), (1, 9), (20, 20)])
def test_an_end_for_all_times_is_passed_at_some_time_as_seldom_as_promised(q, prior):
    """Summed over all sequences of 40 trials, stopped where the end exceeds the truth."""
    error = Fraction(1, 4)
    assert passed(q, partial(bound.lower_at_all_times, prior=prior, error=error)) <= error


def test_an_end_for_one_time_is_passed_at_some_time_too_often():
    """A mutant: the interval of Clopper and Pearson after every trial."""
    error, q = Fraction(1, 4), Fraction(1, 2)
    assert passed(q, partial(probability_lower, error=error)) > error


def passed(q: Fraction, end: Callable[[int, int], float]) -> Fraction:
    """The exact probability that some end of 40 trials exceeds q."""
    going, total = {0: Fraction(1)}, Fraction(0)
    for trials in range(1, 41):
        later: dict[int, Fraction] = {}
        for hits, share in going.items():
            for hit, likely in ((1, q), (0, 1 - q)):
                later[hits + hit] = later.get(hits + hit, Fraction(0)) + share * likely
        going = {}
        for hits, share in later.items():
            if Fraction(end(hits, trials)) > q:
                total += share
            else:
                going[hits] = share
    return total


@pytest.mark.parametrize("q", [Fraction(1, 8), Fraction(1, 2), Fraction(7, 8)])
def test_stopping_when_one_likes_is_paid_for(q):
    """The reading at the planned end beside ends for all times, which one may stop at."""
    error, trials = Fraction(1, 4), 24

    def end(hits: int, done: int) -> float:
        always = bound.lower_at_all_times(hits, done, prior=(4, 4), error=(1 - AT_THE_END) * error)
        if done != trials:
            return always
        return max(always, probability_lower(hits, done, error=AT_THE_END * error))

    assert passed(q, end) <= error


def test_stopping_for_nothing_would_accuse_too_often():
    """A mutant: the whole error at every reading, and many readings."""
    error, claim, q = Fraction(1, 4), (Fraction(0), Fraction(0)), Fraction(1, 2)
    once = stopped([(16, error)], claim, q, q)
    often = stopped([(until, error) for until in range(2, 17)], claim, q, q)
    assert once <= error and often > 2 * once
    paid = stopped([(until, error / 15) for until in range(2, 17)], claim, q, q)
    assert paid <= error


# ---------------------------------------------------------------- the event is chosen


def samples_of(kinds: int, trials: int) -> Iterator[tuple[int, ...]]:
    """How often each of so many outputs came, in all ways."""
    if kinds == 1:
        yield (trials,)
        return
    for first in range(trials + 1):
        for rest in samples_of(kinds - 1, trials - first):
            yield (first, *rest)


def multinomial(counts: tuple[int, ...], law: tuple[Fraction, ...]) -> Fraction:
    ways, left = 1, sum(counts)
    for count in counts:
        ways *= math.comb(left, count)
        left -= count
    return math.prod((p**k for p, k in zip(law, counts, strict=True)), start=Fraction(ways))


def test_an_event_chosen_on_other_outputs_costs_nothing_and_on_the_same_ones_too_much():
    """Four outputs, all equally likely under both inputs; every set of them is an event."""
    error, claim, trials = Fraction(1, 4), (Fraction(0), Fraction(0)), 6
    law = (Fraction(1, 4),) * 4
    events = [e for e in product((0, 1), repeat=4) if any(e)]
    pairs = set(accusing((trials, trials), claim, error))
    # the event does not depend on what is counted: whatever chose it, one of these is its rate
    for event in events:
        p = sum((law[i] for i in range(4) if event[i]), Fraction(0))
        assert chance(pairs, (trials, trials), p, p) <= error
    # a mutant: the best event for the very outputs that are counted
    worst = max(chance(pairs, (trials, trials), Fraction(sum(e), 4), Fraction(sum(e), 4))
                for e in events)  # fmt: skip
    total = Fraction(0)
    drawn = [(counts, multinomial(counts, law)) for counts in samples_of(4, trials)]
    for (one, a), (two, b) in product(drawn, drawn):
        tried = ((sum(c for c, e in zip(side, event, strict=True) if e) for side in (one, two))
                 for event in events)  # fmt: skip
        if any(tuple(counts) in pairs for counts in tried):
            total += a * b
    assert total > 2 * worst


# ---------------------------------------------------------------- a coin for each run


def ratio_chance(coins: int, p: Fraction, q: Fraction, error: Fraction) -> Fraction:
    """The exact probability that `ratio_lower` exceeds ln(p/q), over fair coins and both laws."""
    total, truth = Fraction(0), p / q
    for h in range(coins + 1):
        for o in range(coins + 1 - h):
            loss = bound.ratio_lower(h, o, error=error)
            if loss > 0 and exponential_above(loss, truth):
                ways = math.comb(coins, h) * math.comb(coins - h, o)
                neither = 1 - (p + q) / 2
                total += ways * (p / 2) ** h * (q / 2) ** o * neither ** (coins - h - o)
    return total


def exponential_above(loss: float, truth: Fraction) -> bool:
    return exponential(Fraction(loss)) > truth


@pytest.mark.parametrize("error", [Fraction(1, 3), Fraction(1, 50)])
def test_the_ratio_of_hits_is_wrong_as_seldom_as_promised_if_coins_are_thrown(error):
    shares = [Fraction(1, 10), Fraction(1, 3), Fraction(1)]
    for q, ratio in product(shares, [Fraction(1), Fraction(2), Fraction(9, 4)]):
        p = q * ratio
        if p <= 1:
            assert ratio_chance(16, p, q, error) <= error


# ---------------------------------------------------------------- the code itself, a thousand times


LN_2 = Fraction("0.6931471805599454")  # above ln 2
ERROR = Fraction(1, 10**6)


def response(seed: int):
    """Tells the truth with probability 2/3: its loss is ln 2 exactly, nothing is left over."""
    source = np.random.default_rng(seed)
    return lambda value, size: np.where(source.integers(0, 3, size) < 2, value, 1 - value)


def geometric(seed: int):
    """Two-sided geometric noise with ratio 1/2: ln 2 again, at every output."""
    source = np.random.default_rng(seed)

    def release(value, size):
        rise, fall = (source.geometric(0.5, size).astype(np.float64) for _ in range(2))
        return value + rise - fall

    return release


def leak(seed: int):
    """Publishes the input with probability 1/16, else nothing: (0, 1/16), with equality."""
    source = np.random.default_rng(seed)
    return lambda value, size: np.where(source.integers(0, 16, size) == 0, value, 7.0)


CORRECT = (
    (response, LN_2, Fraction(0)),
    (geometric, LN_2, Fraction(0)),
    (leak, Fraction(0), Fraction(1, 16)),
)
ATTEMPTS = (threshold, low_bits, precision)


def verdicts(seeds: range, error: Fraction):
    """One attack on one correct mechanism for each seed, in turn."""
    for seed in seeds:
        make, claimed, delta = CORRECT[seed % 3]
        target = Target(name="correct", release=make(seed), claimed=claimed, delta=delta, step=1)
        yield ATTEMPTS[seed // 3 % 3](target, samples=100 + seed % 100, error=error)


@pytest.mark.evidence
def test_a_thousand_attacks_on_correct_mechanisms_accuse_none():
    """By the sums above an accusation in all of them has probability at most 1000/10**6."""
    assert not [seed for seed, v in enumerate(verdicts(range(1000), ERROR)) if v.broken]


def most_accusations(audits: int, error: Fraction) -> int:
    """The greatest number that is no proof of a higher rate: exact, at a chance of 1e-6."""
    coins, tail, most = mass(audits, error), Fraction(0), audits
    while tail + coins[most] <= ERROR:
        tail += coins[most]
        most -= 1
    return most


@pytest.mark.evidence
def test_a_thousand_attacks_with_a_large_error_accuse_few():
    """At an error of 1/10 accusations are allowed: as many as 1000 coins of 1/10 may show."""
    broken = sum(v.broken for v in verdicts(range(1000, 2000), Fraction(1, 10)))
    assert broken <= most_accusations(1000, Fraction(1, 10)) < 200


@pytest.mark.apart  # statistics, of a thousand audits; of 24 here
def test_black_box_audits_of_correct_mechanisms_are_wrong_as_seldom_as_they_say(extent):
    """A thousand at an error of 3/10; read at 1e-6, the same counts accuse none.

    All three mechanisms attain their claims: no slack hides a wrong statement.
    """
    audits, often = extent.number(few=24, many=1000), Fraction(3, 10)
    accused = 0
    for seed in range(audits):
        make, claimed, delta = CORRECT[seed % 3]
        result = distinguish_by_sampling(
            make(seed),
            (0, 1),
            epsilon=claimed,
            delta=delta,
            samples=100,
            error=often,
            also=(ERROR,),
            seed=seed,
            processes=1,
        )
        accused += result.broken
        assert not result.at(ERROR).broken
    assert accused <= most_accusations(audits, often)
    assert accused or not extent.is_many  # the error is spent
