"""What several releases cannot cost less than: no number below it is shown as if it might be true.

For a pair of laws let its overlap be B = E[sqrt(P Q)] and its distance x = -ln B. A certificate of
a composition may carry numbers that nothing here proves: a tighter epsilon, and, in those of an
earlier version, moments. Each is refused where these theorems exclude it.

Theorem  (epsilon) if laws of overlap B are (epsilon, delta)-private in both directions, then
         cosh(epsilon/2) >= (1 - delta)/B
Proof    They are made by one rule of the two laws that say all with probability delta and else
         answer at random (Kairouz, Oh, Viswanath 2015), whose overlap is
         (1 - delta) 2 exp(e/2)/(1 + exp(e)) = (1 - delta)/cosh(e/2). A rule never makes the overlap
         smaller (Cauchy-Schwarz).  []
Theorem  (moments) ln M(c) >= 2 c x for c > 0
Proof    ln M is convex (Hoelder), at most 0 at 0, and -x or less at -1/2: its chord up to 0 has at
         least the slope 2 x. Where M(0) < 1, all is told with the rest of the probability; samples,
         the only moments on trust, tell nothing at all, so M(0) = 1.  []
Theorem  (together) independent draws have the product of their overlaps: distances add up

| loss | its distance is at least |
|---|---|
| Gaussian, mu**2 = v | v/8 |
| discrete Gaussian, L2 distance squared n | n/(8 variance): half a step off, sums are no larger |
| Laplace | e/2 - ln(1 + e/2) |
| discrete Laplace, distance n; q = exp(-1/s) | n/(2s) - ln((n + 1 - q (n-1))/(1 + q)) |
| randomised response, m answers, s = exp(-e) | -ln((2 sqrt(s) + (m-2) s)/(1 + (m-1) s)) |
| (e, d)-private | that of 2 answers, and d |
| finite laws | -ln of the sum of sqrt(p q) |
| Poisson samples, rate q, of a pair at distance x | (q (1 - exp(-x)))**2/2 |
| rho-zCDP: Gaussian noise is, with mu**2 = 2 rho | rho/4 |
| bounded range: randomised response of e/2 has it | that of 2 answers for e/2 |
| n keys from a threshold on: n of them may be far above it | n times discrete Laplace, distance 1 |

Samples: the total variation V is q times that of the pair, which is at least 1 - exp(-x); and
B <= sqrt(1 - V**2), so that -ln B >= V**2/2.

Differs  these are bounds of the worst that the losses allow, not of what the releases truly did.
         They are far from tight where little is lost: `lastbit check` shows nothing unproved
Checked  tests/verify/test_necessary.py
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from .numbers import Json, Rejected, exp_bounds, ln_bounds, number, require, sqrt_bounds

_FARTHEST = Fraction(2000)
_PLACES = 10**120


def check_trusted_moment(loss: Json, order: Fraction, log_moment: Fraction) -> None:
    """Reject a moment that no sample of this kind can have."""
    possible = log_moment >= 2 * order * distance_of(loss)
    require(possible, "a moment on trust is less than its loss must have")


def check_trusted_epsilon(losses: Iterable[Json], epsilon: Fraction, delta: Fraction) -> None:
    """Reject an epsilon that these losses cannot have together."""
    possible = epsilon >= least_epsilon(losses, delta)
    require(possible, "the epsilon on trust is less than the losses must have")


def least_epsilon(losses: Iterable[Json], delta: Fraction) -> Fraction:
    """A lower bound of the epsilon that these losses have together at this delta."""
    total = sum((loss["times"] * distance_of(loss) for loss in losses), Fraction(0))
    if total > _FARTHEST:  # arcosh(y) >= ln y
        return max(2 * (total + ln_bounds(1 - delta)[0]), Fraction(0))
    least = _floor((1 - delta) * exp_bounds(total)[0])
    if least <= 1:
        return Fraction(0)
    return max(2 * ln_bounds(least + sqrt_bounds(least**2 - 1)[0])[0], Fraction(0))


def distance_of(loss: Json) -> Fraction:
    """A lower bound of the distance of the pair that a loss, whose form was checked, names."""
    match loss:
        case {"loss": "GaussianLoss", "mu_squared": moved}:
            found = number(moved) / 8
        case {"loss": "DiscreteGaussianLoss", "variance": spread, "distance": far}:
            found = far**2 / (8 * number(spread))
        case {"loss": "DiscreteGaussianVectorLoss", "variance": spread, "distance_squared": far}:
            found = far / (8 * number(spread))
        case {"loss": "LaplaceLoss", "epsilon": epsilon}:
            half = number(epsilon) / 2
            found = half - ln_bounds(1 + half)[1]
        case {"loss": "DiscreteLaplaceLoss", "scale": scale, "distance": far}:
            step = 1 / number(scale)
            least = _falling(step)[0]
            inside = Fraction(far + 1 - least * (far - 1)) / (1 + least)
            found = far * step / 2 - ln_bounds(inside)[1] if far else Fraction(0)
        case {"loss": "RandomizedResponseLoss", "epsilon": epsilon, "categories": answers}:
            found = _of_response(number(epsilon), answers)
        case {"loss": "ApproxLoss", "epsilon": epsilon, "delta": delta}:
            found = _of_response(number(epsilon), 2) + number(delta)
        case {"loss": "FiniteLoss", "outcomes": outcomes}:
            roots = [sqrt_bounds(number(p) * number(q))[1] for p, q in outcomes]
            overlap = sum(map(_ceiling, roots), Fraction(0))
            found = -ln_bounds(overlap)[1] if overlap else _FARTHEST
        case {"loss": "SubsampledGaussianLoss", "rate": rate, "mu_squared": moved}:
            found = _of_sample(number(rate), number(moved) / 8)
        case {"loss": "SubsampledLaplaceLoss", "rate": rate, "epsilon": epsilon}:
            plain = distance_of({"loss": "LaplaceLoss", "epsilon": epsilon})
            found = _of_sample(number(rate), plain)
        case {"loss": "ZCDP", "rho": rho}:
            found = number(rho) / 4
        case {"loss": "BoundedRangeLoss", "epsilon": epsilon}:
            found = _of_response(number(epsilon) / 2, 2)
        case {"loss": "ThresholdLoss", "scale": scale, "keys": keys}:
            found = keys * distance_of(
                {"loss": "DiscreteLaplaceLoss", "scale": scale, "distance": 1}
            )
        case _:
            raise Rejected("a loss is unknown")
    return _floor(max(found, Fraction(0)))


def _of_response(epsilon: Fraction, answers: int) -> Fraction:
    low, high = _falling(epsilon)
    overlap = 2 * _falling(epsilon / 2)[1] + (answers - 2) * high
    return -ln_bounds(overlap / (1 + (answers - 1) * low))[1]


def _of_sample(rate: Fraction, plain: Fraction) -> Fraction:
    return (rate * (1 - _falling(plain)[1])) ** 2 / 2


def _falling(x: Fraction) -> tuple[Fraction, Fraction]:
    """Around exp(-x) for x >= 0; 0 stands below what is beyond exp(-2000)."""
    if x == 0:
        return Fraction(1), Fraction(1)
    low, high = exp_bounds(-min(x, _FARTHEST))
    return (low if x <= _FARTHEST else Fraction(0)), min(high, Fraction(1))


def _floor(x: Fraction) -> Fraction:
    """Not above x and of 120 places: sums of many stay short."""
    return Fraction(x.numerator * _PLACES // x.denominator, _PLACES)


def _ceiling(x: Fraction) -> Fraction:
    return -_floor(-x)
