"""Tails of binomial laws, decided exactly, and what a count proves about a probability.

P[Bin(n, p) >= k] is the regularised incomplete beta function I_p(k, n - k + 1). Balls enclose it;
where a comparison is so close that they cannot decide it, whole numbers can.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from statistics import NormalDist

from flint import arb, fmpz

from lastbit.errors import InvalidParameter
from lastbit.exact.ball import DEFAULT_PRECISION, arb_of, working_precision
from lastbit.exact.rational import Number, floor_log2, probability
from lastbit.exact.rounding import upper
from lastbit.exact.written import whole

_MOST_TRIALS = 1 << 34
_FEW_MISSES = 1 << 12
_FEW_TRIALS = 200  # a tail of so few terms is added up in whole numbers at once
_SHARP = 48
_MOST_STEPS = 60
_CLOSE = 1e-12


def binomial_tail(hits: int, trials: int, p: Fraction | float, *, least: Fraction) -> arb:
    """P[Bin(trials, p) >= hits] for 0 < hits <= trials, enclosed to 48 bits or more.

    Law      I_p(hits, misses + 1), or 1 - I_(1-p)(misses + 1, hits): the same number. Among
             millions of trials with few misses the second is fast and sharp and the first is
             neither; elsewhere it is the other way round
    Differs  a difference loses as many bits as its result is small: so many more are computed as
             the probability `least`, with which the tail will be compared, calls for

    >>> binomial_tail(2, 3, Fraction(1, 2), least=Fraction(1, 2)).contains(arb("0.5"))
    True
    """
    few = 2 * p > 1 and trials - hits < _FEW_MISSES
    lost = -floor_log2(least)
    tail = arb.nan()
    for precision, falling in product((DEFAULT_PRECISION, 4 * DEFAULT_PRECISION), (few, not few)):
        with working_precision(precision + (lost if falling else 0)):
            chance = arb_of(Fraction(p))
            if falling:
                tail = 1 - (1 - chance).beta_lower(trials - hits + 1, hits, 1)
            else:
                tail = chance.beta_lower(hits, trials - hits + 1, 1)
        if tail.rel_accuracy_bits() > _SHARP:
            break
    return tail


def tail_surely_at_most(hits: int, trials: int, p: Fraction | float, level: Fraction) -> bool:
    """Whether balls prove P[Bin(trials, p) >= hits] <= level."""
    tail = binomial_tail(hits, trials, p, least=level)
    with working_precision(DEFAULT_PRECISION):
        return bool(tail <= arb_of(level))


def tail_at_most(hits: int, trials: int, p: Fraction, level: Fraction) -> bool:
    """Whether P[Bin(trials, p) >= hits] <= level, exactly; equality is decided by integers.

    >>> tail_at_most(2, 3, Fraction(1, 2), Fraction(1, 2))
    True
    """
    if trials > _FEW_TRIALS and 0 < p < 1:
        tail = binomial_tail(hits, trials, p, least=level)
        with working_precision(4 * DEFAULT_PRECISION):
            if tail <= arb_of(level):
                return True
            if tail > arb_of(level):
                return False
    numerator = scaled_tail(hits, trials, p)
    return bool(numerator * level.denominator <= level.numerator * fmpz(p.denominator) ** trials)


def scaled_tail(hits: int, trials: int, p: Fraction) -> fmpz:
    """The integer P[Bin(trials, p) >= hits] times the denominator of p to the power of trials.

    Theorem  with p = u/(u+w), it is the sum of C(n, i) u**i w**(n-i) over i >= hits. Neighbouring
             terms have the ratio (n-i) u / ((i+1) w), so it is the first term times 1 + a sum of
             products of ratios, which binary splitting adds up

    >>> scaled_tail(2, 3, Fraction(1, 2))
    4
    """
    if p in (0, 1):  # the count is certain, and one of the ratios' factors is 0
        return fmpz(hits <= trials * p)
    yes = fmpz(p.numerator)
    no = p.denominator - yes
    _, below, added = _split(hits, trials, trials, yes, no)
    first = fmpz.bin_uiui(trials, hits) * yes**hits * no ** (trials - hits)
    return first * (below + added) // below


def _split(start: int, stop: int, trials: int, yes: fmpz, no: fmpz) -> tuple[fmpz, fmpz, fmpz]:
    """Products of the ratios' numerators and denominators; the sum of all partial products."""
    if stop <= start:
        return fmpz(1), fmpz(1), fmpz(0)
    if stop - start == 1:
        above = (trials - start) * yes
        return above, (start + 1) * no, above
    middle = (start + stop) // 2
    above, below, added = _split(start, middle, trials, yes, no)
    above_then, below_then, added_then = _split(middle, stop, trials, yes, no)
    return above * above_then, below * below_then, added * below_then + above * added_then


def clopper_pearson(hits: int, trials: int, *, error: Number) -> tuple[float, float]:
    """Two ends between which a probability lies, except with probability `error`.

    Law      the one-sided ends, each with half of `error`; 0 and 1 where there are no hits, or
             no misses
    Theorem  P[low <= p <= high] >= 1 - error whatever p is, by the union bound
    Source   Clopper, Pearson 1934
    Differs  the ends are rounded outwards, each proved by a ball to lie on the safe side
    Checked  tests/exact/test_binomial.py

    >>> clopper_pearson(0, 100, error="0.05")
    (0.0, 0.0362166...)
    """
    half = _error(error) / 2
    low = probability_lower(hits, trials, error=half)
    return low, probability_upper(hits, trials, error=half)


def probability_lower(hits: int, trials: int, *, error: Number) -> float:
    """The lower end of a one-sided confidence interval for a probability.

    Law      the greatest p with P[Bin(trials, p) >= hits] <= error, within a factor 1 - 1e-11 below
    Theorem  if p is the true probability, the answer exceeds p with probability at most `error`:
             let h be the least count whose answer exceeds p; the tail at h rises with its argument,
             so P[Bin(trials, p) >= h] <= error. The tail is I_p(hits, trials - hits + 1). Its
             logarithm is concave in ln p (so is that of its density, hence of its integral), so
             Newton's steps stay on the safe side; the last one is checked again with balls
    Source   Clopper, Pearson 1934
    Checked  tests/exact/test_binomial.py

    >>> probability_lower(100, 100, error="0.05")
    0.9704869...
    """
    count, total, allowed = *_counts(hits, trials), _error(error)
    if count == 0:
        return 0.0
    guess = _newton(count, total, allowed)
    for shrink in (0.0, *(2.0**-places for places in range(52, 20, -4))):
        candidate = guess * (1 - shrink)
        if candidate > 0 and tail_surely_at_most(count, total, candidate, allowed):
            return candidate
    return 0.0  # nothing is proved, as where an extreme `error` underflows; 0 always holds


def probability_upper(hits: int, trials: int, *, error: Number) -> float:
    """The upper end of a one-sided interval: one minus the lower end for the misses.

    >>> probability_upper(0, 100, error="0.05")
    0.0295130...
    """
    count, total = _counts(hits, trials)
    return upper(1 - Fraction(probability_lower(total - count, total, error=error)))


def _newton(hits: int, trials: int, error: Fraction) -> float:
    """A float near the greatest p whose tail is at most `error`; only a guess, or NaN."""
    target = math.log(error.numerator) - math.log(error.denominator)
    constant = (
        math.lgamma(trials + 1) - math.lgamma(hits) - math.lgamma(trials - hits + 1)
    )  # of the density p**hits (1-p)**(trials-hits) in ln p
    logarithm = (target - constant) / hits if hits == trials else _start(hits, trials, target)
    for _ in range(_MOST_STEPS):
        p = math.exp(logarithm)
        if not p > 0:
            return math.nan
        tail = float(binomial_tail(hits, trials, p, least=error).log().mid())
        rest = (trials - hits) * math.log1p(-p) if hits < trials else 0.0
        slope = math.exp(constant + hits * logarithm + rest - tail)
        step = (target - tail) / slope
        logarithm = min(logarithm + step, -(2.0**-53))
        if abs(step) < _CLOSE:
            break
    return math.exp(logarithm)


def _start(hits: int, trials: int, target: float) -> float:
    """Where to begin, as ln p: by Carter's formula (Abramowitz and Stegun, 26.5.22), roughly.

    It takes the normal quantile, of which a tail below all floats has its leading term.
    """
    error = math.exp(target)
    deviations = -NormalDist().inv_cdf(error) if 0 < error < 1 else math.sqrt(-2 * target)
    first, second = 1 / (2 * hits - 1), 1 / (2 * (trials - hits) + 1)
    mean, part = 2 / (first + second), (deviations**2 - 3) / 6
    if mean + part <= 0:
        return math.log(hits / trials) - 1e-9
    odds = deviations * math.sqrt(mean + part) / mean
    odds -= (second - first) * (part + 5 / 6 - 2 / (3 * mean))
    near = math.log(hits) - math.log(trials - hits + 1) - 2 * odds
    return min(near, 0.0) - math.log1p(math.exp(-abs(near)))


def _counts(hits: int, trials: int) -> tuple[int, int]:
    total = whole(trials, "trials", least=1)
    if total > _MOST_TRIALS:
        raise InvalidParameter("trials", problem="are above 2**34", remedy="count fewer runs")
    count = whole(hits, "hits")
    if count > total:
        raise InvalidParameter(
            "hits", problem="are more than the trials", remedy="pass hits <= trials"
        )
    return count, total


def _error(error: Number) -> Fraction:
    return probability(error, "error", zero=False, one=False, remedy='pass, say, "1e-6"')
