"""Calibration on profiles: the least noise for an epsilon and a delta after several releases."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Any, TypeVar

from lastbit.errors import InvalidParameter, PrecisionExhausted, WrongType
from lastbit.exact import (
    Number,
    arb_of,
    lower,
    nearest,
    nonnegative,
    probability,
    whole,
    working_precision,
)
from lastbit.privacy.accounting.losses import (
    MOST_RELEASES,
    ApproxLoss,
    BoundedRangeLoss,
    DiscreteGaussianLoss,
    DiscreteGaussianVectorLoss,
    DiscreteLaplaceLoss,
    GaussianLoss,
    LaplaceLoss,
    RandomizedResponseLoss,
    SubsampledGaussianLoss,
    SubsampledLaplaceLoss,
)
from lastbit.privacy.gaussian_pair import LEAST_VECTOR_VARIANCE

Kind = TypeVar("Kind")

# The parameter that is found, and the others that must be given (None) or may be.
_FOUND: Mapping[type, tuple[str, Mapping[str, object]]] = MappingProxyType(
    {
        GaussianLoss: ("mu_squared", {}),
        DiscreteGaussianLoss: ("variance", {"distance": 1}),
        DiscreteGaussianVectorLoss: ("variance", {"distance_squared": 1}),
        LaplaceLoss: ("epsilon", {}),
        DiscreteLaplaceLoss: ("scale", {"distance": 1}),
        SubsampledGaussianLoss: ("mu_squared", {"rate": None}),
        SubsampledLaplaceLoss: ("epsilon", {"rate": None}),
        RandomizedResponseLoss: ("epsilon", {"categories": 2}),
        ApproxLoss: ("epsilon", {}),
        BoundedRangeLoss: ("epsilon", {}),
    }
)
_GAUSSIAN = (
    GaussianLoss,
    DiscreteGaussianLoss,
    DiscreteGaussianVectorLoss,
    SubsampledGaussianLoss,
)
_LEAST_EPSILON = Fraction(1, 10**12)
_LEAST_DELTA = Fraction(1, 10**300)
_MOST_EPSILON = 10**4
_BITS = 32
_DIGITS = 44
_MOST_DOUBLINGS = 200
_MOST_STEPS = 100


def calibrated(
    kind: type[Kind], *, epsilon: Number, delta: Number, releases: int = 1, **fixed: Any
) -> Kind:
    """The loss with the least noise of which `releases` releases together promise (epsilon, delta).

    `fixed` are the other parameters of the loss: `distance=` for discrete noise (for vectors
    `distance_squared=`), `rate=` for samples, `categories=` for randomised response. The result has
    exact parameters; the noise is its variance, its scale, sensitivity**2/mu_squared, or
    sensitivity/epsilon.

    Law      the noise v (variance, 1/mu_squared, scale or 1/epsilon) is the least with
             delta(epsilon) <= delta for the profile of all releases, to a relative 2**-32
    Theorem  the upper bound of the profile was evaluated at the very parameter returned and is at
             most delta: whatever the search did, the promise holds. The least: more noise of a kind
             is less with noise added to both laws, so delta falls as v grows. Gaussian: variances
             add up. Laplace: (1 + b**2 t**2)/(1 + c**2 t**2) is the characteristic function of
             0 with probability (b/c)**2 and Laplace(c) otherwise, for b < c. Discrete Laplace, q <
             p: likewise, as (1-qz)(1-q/z) = (q/p)(1-pz)(1-p/z) + (1-q/p)(1-pq). A sample's law is
             a mixture of such. A randomised response of a smaller epsilon answers at random more
             often. For discrete Gaussian noise the search takes this for granted, and so it does
             for bounded range; the promise does not need it
    Differs  where the profile's two bounds lie apart (samples, delta near 1), it is the least noise
             that the upper one proves
    Checked  tests/privacy/accounting/test_calibrate.py

    >>> training = calibrated(
    ...     SubsampledGaussianLoss, rate="0.01", epsilon=2, delta="1e-5", releases=1000
    ... )
    >>> float(1 / training.mu_squared) ** 0.5                        # the noise multiplier
    0.9591...
    >>> (1000 * training).delta(2)[1] <= 1e-5
    True
    """
    name, others = _parameters(kind)
    loss, level, count = _epsilon(epsilon), _level(delta), _count(releases)
    _check_fixed(kind, others, fixed)

    def made(noise: Fraction) -> Any:
        return kind(**{name: noise if name in ("variance", "scale") else 1 / noise}, **fixed)

    def reached(noise: Fraction) -> float:
        if kind is DiscreteGaussianVectorLoss and noise < LEAST_VECTOR_VARIANCE:
            return 1.0  # no pair is proved with less
        try:
            bound: float = (count * made(noise)).delta(loss)[1]
        except PrecisionExhausted:  # many releases about rare samples, each with next to no loss
            raise InvalidParameter(
                "releases",
                problem="are too many for the accountant at this epsilon and delta",
                remedy="pass fewer, or allow a larger epsilon or delta",
            ) from None
        return bound

    example = made(Fraction(1))
    _check_needed(example, level, count)
    enough = _pure(example, loss, count)
    _check_reachable(loss, level, enough)
    found = enough
    if found is None or level:
        found = _least(reached, level, _guess(example, loss, level, count), enough)
    if not reached(found) <= level:
        raise _out_of_reach()
    result: Kind = made(found)
    return result


def _parameters(kind: object) -> tuple[str, Mapping[str, object]]:
    if not isinstance(kind, type) or kind not in _FOUND:
        known = ", ".join(kind.__name__ for kind in _FOUND)
        raise WrongType(
            "kind", problem="is not a loss whose noise can be chosen", remedy=f"pass one of {known}"
        )
    return _FOUND[kind]


def _epsilon(epsilon: Number) -> Fraction:
    loss = nonnegative(epsilon, "epsilon")
    if loss > _MOST_EPSILON:
        problem = f"is above {_MOST_EPSILON:,}, which promises nothing"
        raise InvalidParameter("epsilon", problem=problem, remedy="pass a smaller one")
    if 0 < loss < _LEAST_EPSILON:
        raise InvalidParameter(
            "epsilon", problem="is below 1e-12", remedy="pass a larger one, or 0 and a delta"
        )
    return loss


def _level(delta: Number) -> Fraction:
    level = probability(delta, "delta", one=False, remedy="pass, say, 1e-9")
    if 0 < level < _LEAST_DELTA:
        remedy = "pass a larger one, or 0 for a pure promise"
        raise InvalidParameter("delta", problem="is below 1e-300", remedy=remedy)
    return level


def _count(releases: object) -> int:
    count = whole(releases, "releases", least=1)
    if count > MOST_RELEASES:
        raise InvalidParameter(
            "releases", problem=f"are more than {MOST_RELEASES:,}", remedy="pass fewer"
        )
    return count


def _check_fixed(kind: type, others: Mapping[str, object], fixed: Mapping[str, object]) -> None:
    unknown = set(fixed) - {*others, "neighbours"}
    if unknown:
        raise InvalidParameter(
            min(unknown),
            problem=f"has no meaning for {kind.__name__}",
            remedy=f"pass {' or '.join(others)}" if others else "leave it out",
        )
    for name, usual in others.items():
        if usual is None and name not in fixed:
            raise InvalidParameter(name, problem="is needed", remedy=f"pass {name}=, say, 0.01")


def _check_needed(example: Any, level: Fraction, count: int) -> None:
    """Refuse what takes no noise at all: equal inputs, and records that samples rarely hold.

    Theorem  whatever the noise, a record is seen only if it is in some sample: delta is at most
             1 - (1-rate)**releases
    """
    name = "distance_squared" if hasattr(example, "distance_squared") else "distance"
    if getattr(example, name, 1) == 0:
        raise InvalidParameter(
            name, problem="is 0, which takes no noise", remedy="pass a distance from 1 up"
        )
    rate = getattr(example, "rate", Fraction(1))
    if rate == 1:
        return
    with working_precision(128):
        seen = -(count * (-arb_of(rate)).log1p()).expm1()
        needed = seen > arb_of(level)
    if not needed:
        raise InvalidParameter(
            "delta",
            problem="is met without noise: no more often is a record in any sample",
            remedy="pass a smaller delta",
        )


def _check_reachable(loss: Fraction, level: Fraction, enough: Fraction | None) -> None:
    if loss == level == 0:
        raise InvalidParameter(
            "epsilon", problem="and delta are 0, which no noise promises", remedy="allow some loss"
        )
    if level == 0 and enough is None:
        raise InvalidParameter(
            "delta",
            problem="is 0, which Gaussian noise does not promise",
            remedy="pass, say, 1e-9, or take a loss of Laplace noise",
        )


def _out_of_reach() -> InvalidParameter:
    return InvalidParameter(
        "epsilon", problem="and delta are out of reach", remedy="allow a larger epsilon or delta"
    )


def _pure(example: Any, loss: Fraction, count: int) -> Fraction | None:
    """Noise with which all releases together are epsilon-private; None where none is.

    Theorem  greatest losses add up. That of a sample is ln(1 - q + q exp(e)), so e =
             ln(1 + (exp(epsilon/k) - 1)/q), rounded down, less a crumb for the accountant's balls
    """
    if loss == 0 or isinstance(example, _GAUSSIAN):
        return None
    each = loss / count
    rate = getattr(example, "rate", Fraction(1))
    if rate < 1:
        with working_precision(128 + 2 * math.ceil(each)):
            odds = (arb_of(each).expm1() / arb_of(rate)).log1p()
            each = Fraction(lower(odds)) * (1 - Fraction(1, 2**40))
    return getattr(example, "distance", 1) / each


def _guess(example: Any, loss: Fraction, level: Fraction, count: int) -> float:
    """About the least noise, through zCDP; floats may be careless.

    rho + 2 sqrt(rho ln(1/delta)) = epsilon, and pi delta**2 for an epsilon of 0. A sample at rate q
    with Gaussian noise costs about q**2 (exp(mu**2) - 1)/2.
    """
    far, near = -math.log(level), nearest(loss)
    rho = (near / (math.sqrt(far + near) + math.sqrt(far))) ** 2
    rho = max(rho, 3 * nearest(level) ** 2, 1e-200) / count
    rate, distance = float(getattr(example, "rate", 1)), float(getattr(example, "distance", 1))
    distance = math.sqrt(getattr(example, "distance_squared", distance**2))
    if isinstance(example, _GAUSSIAN):
        return distance**2 / (math.log1p(2 * rho / rate**2) if rate < 1 else 2 * rho)
    each = max(math.sqrt(2 * rho), near / count)
    seen = math.log1p(math.expm1(each) / rate) if each < 700 else each
    return distance / seen


def _least(
    reached: Callable[[Fraction], float], level: Fraction, guess: float, enough: Fraction | None
) -> Fraction:
    """The least noise that reaches the level, to a relative 2**-32: false position in logarithms.

    Theorem  `high` was tried and meets the level, `low` was tried and does not; steps land between
    """
    log_level = math.log(level)

    def gap(noise: Fraction) -> float:
        bound = reached(noise)
        far = (math.log(bound) if bound else -1e4) - log_level
        return min(far, 0.0) if bound <= level else max(far, 1e-300)

    low, high, below, above = _bracket(gap, _short(guess), enough)
    crumb, side, wide = 2.0 ** -(_BITS + 1), 0, high - low
    for step in range(_MOST_STEPS):
        if high - low <= high / 2**_BITS:
            break
        share = below / (below - above)
        if step % 3 == 2:
            # false position is slow here if three steps did not take a quarter of the bracket
            share, wide = (0.5 if 4 * (high - low) > wide else share), high - low
        place = nearest(low) * math.exp(share * math.log(nearest(high / low)))
        inside = min(max(place, nearest(low) * (1 + crumb)), nearest(high) * (1 - crumb))
        tried = _short(inside)
        found = gap(tried)
        # an end that stays twice weighs half, so that it moves too (Illinois)
        if found <= 0:
            high, above, below = tried, found, below / 2 if side < 0 else below
            side = -1
        else:
            low, below, above = tried, found, above / 2 if side > 0 else above
            side = 1
    return high


def _bracket(
    gap: Callable[[Fraction], float], start: Fraction, enough: Fraction | None
) -> tuple[Fraction, Fraction, float, float]:
    """A noise that is too small and one that is not, with their gaps."""
    noise = start if enough is None else min(start, enough)
    found = gap(noise)
    for _ in range(_MOST_DOUBLINGS):
        following = noise / 2 if found <= 0 else noise * 2
        if enough is not None:
            following = min(following, enough)
        further = gap(following)
        if further <= 0 < found:
            return noise, following, found, further
        if found <= 0 < further:
            return following, noise, further, found
        noise, found = following, further
    raise _out_of_reach()


def _short(noise: float) -> Fraction:
    """A dyadic number of few digits close by."""
    digits, power = math.frexp(noise)
    return Fraction(round(digits * 2**_DIGITS)) * Fraction(2) ** (power - _DIGITS)
