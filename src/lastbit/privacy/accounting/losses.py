"""Privacy losses: frozen values with exact parameters, each a proved dominating pair."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import Any, ClassVar, TypeAlias

from lastbit.errors import IncompatibleGuarantees, InvalidParameter, WrongType
from lastbit.exact import Number, nonnegative, positive, probability, shown, whole
from lastbit.privacy.accounting.component import (
    Atoms,
    Component,
    DoubleExponential,
    Normal,
    Response,
    ThetaNormal,
    Tilted,
    TwoSidedGeometric,
)
from lastbit.privacy.accounting.subsampling import SampledLaplace, SampledNormal
from lastbit.privacy.accounting.thresholds import Threshold
from lastbit.privacy.gaussian_pair import step_mu_squared
from lastbit.privacy.guarantees import ApproxDP, Guarantee, ProbabilisticDP, PureDP
from lastbit.privacy.neighbours import ADD_REMOVE, AS_DECLARED, Neighbours, check_neighbours

MOST_RELEASES = 10**12
_MOST_OUTCOMES = 10_000

Directions: TypeAlias = tuple[tuple[tuple[Component, int], ...], ...]
"""One composition a direction: what is the same both ways has one."""


@dataclass(frozen=True, slots=True)
class _Loss:
    """What all losses share. Each is a pair (P, Q) that dominates one release of a mechanism.

    Law      delta(x) = sup over events of P - exp(x) Q is at least that of the mechanism, for every
             x and every two neighbours
    Theorem  then the product of the pairs of several steps dominates all of them together, also if
             later mechanisms are chosen from earlier answers, as long as their losses are not
    Source   Zhu, Dong, Wang 2022, Theorem 10; Dong, Roth, Su 2022
    """

    neighbours: Neighbours = field(default=AS_DECLARED, kw_only=True)

    def directions(self) -> Directions:
        """The components of (P, Q), and those of (Q, P) unless they are the same."""
        raise NotImplementedError

    def __add__(self, other: Any) -> Any:
        return _profile(self) + other

    def __radd__(self, other: object) -> Any:
        if other == 0:  # so that sum() works
            return _profile(self)
        return NotImplemented

    def __mul__(self, times: int) -> Any:
        return times * _profile(self)

    __rmul__ = __mul__

    def to_dict(self) -> dict[str, object]:
        """The parameters as exact strings."""
        values: dict[str, object] = {"loss": type(self).__name__}
        for f in fields(self):
            if f.name != "neighbours":
                value = getattr(self, f.name)
                if isinstance(value, tuple):
                    values[f.name] = [[str(p), str(q)] for p, q in value]
                else:
                    values[f.name] = value if isinstance(value, int) else str(value)
        return values

    def __repr__(self) -> str:
        inside = []
        for f in fields(self):
            value = getattr(self, f.name)
            if f.name == "neighbours":
                if value != AS_DECLARED:
                    inside.append(f"neighbours={value!r}")
            elif isinstance(value, tuple):
                inside.append(f"{f.name}=<{len(value)} outcomes>")
            else:
                text = shown(value) if isinstance(value, Fraction) else repr(value)
                inside.append(f"{f.name}={text}")
        return f"{type(self).__name__}({', '.join(inside)})"

    @property
    def profile(self) -> Any:
        """One release, as a `Profile`."""
        return _profile(self)


def _profile(loss: Any) -> Any:
    # profiles are made of losses, and losses add up to profiles
    from lastbit.privacy.accounting.profile import Profile

    return Profile([(loss, 1)])


def _set(loss: _Loss, **values: object) -> None:
    check_neighbours(values["neighbours"])
    for name, value in values.items():
        object.__setattr__(loss, name, value)


@dataclass(frozen=True, slots=True, repr=False, init=False)
class GaussianLoss(_Loss):
    """Gaussian noise: N(0, 1) against N(mu, 1), mu = sensitivity/deviation.

    Also any mechanism that is mu-GDP (Dong, Roth, Su 2022).

    >>> GaussianLoss(1).profile.epsilon("1e-5")
    (4.377178095681..., 4.377178095681...)
    """

    mu_squared: Fraction

    def __init__(self, mu_squared: Number, *, neighbours: Neighbours = AS_DECLARED) -> None:
        _set(self, mu_squared=nonnegative(mu_squared, "mu_squared"), neighbours=neighbours)

    def directions(self) -> Directions:
        return (((Normal(self.mu_squared), 1),),)


@dataclass(frozen=True, slots=True, repr=False, init=False)
class DiscreteGaussianLoss(_Loss):
    """Discrete Gaussian noise in one coordinate, inputs at most `distance` whole steps apart.

    Theorem  noise with a log-concave law is told apart best by half-lines, and
             P[X >= k] - exp(x) P[X >= k + d] grows with d: the greatest distance is the worst

    >>> low, high = DiscreteGaussianLoss(100).profile.epsilon("1e-6")
    >>> low <= high < 0.4
    True
    """

    variance: Fraction
    distance: int

    def __init__(
        self, variance: Number, distance: int = 1, *, neighbours: Neighbours = AS_DECLARED
    ) -> None:
        spread, far = positive(variance, "variance"), whole(distance, "distance")
        _set(self, variance=spread, distance=far, neighbours=neighbours)

    def directions(self) -> Directions:
        if not self.distance:
            return (((Response(Fraction(0)), 1),),)
        return (((ThetaNormal(self.variance, self.distance), 1),),)


@dataclass(frozen=True, slots=True, repr=False, init=False)
class DiscreteGaussianVectorLoss(_Loss):
    """Discrete Gaussian noise in every coordinate, inputs apart by whole steps d_i.

    Law      sum d_i**2 <= `distance_squared`, the L2 distance squared; the same variance everywhere
    Theorem  the release is sqrt(distance_squared x)-GDP, x (1 - x/12) >= 1/variance: proof in
             `gaussian_pair.py`. If distance_squared is 1 one coordinate moves, by one step, and
             its law is exact

    >>> vector = DiscreteGaussianVectorLoss(100, 4)
    >>> vector.profile.epsilon("1e-6")[1], DiscreteGaussianLoss(100, 2).profile.epsilon("1e-6")[1]
    (0.83449..., 0.83433...)
    """

    variance: Fraction
    distance_squared: int

    def __init__(
        self, variance: Number, distance_squared: int = 1, *, neighbours: Neighbours = AS_DECLARED
    ) -> None:
        spread, far = positive(variance, "variance"), whole(distance_squared, "distance_squared")
        if far > 1:
            step_mu_squared(spread)  # refused if there is none
        _set(self, variance=spread, distance_squared=far, neighbours=neighbours)

    def directions(self) -> Directions:
        if self.distance_squared <= 1:
            one = DiscreteGaussianLoss(self.variance, self.distance_squared)
            return one.directions()
        return (((Normal(self.distance_squared * step_mu_squared(self.variance)), 1),),)


@dataclass(frozen=True, slots=True, repr=False, init=False)
class LaplaceLoss(_Loss):
    """Continuous Laplace noise: epsilon = sensitivity/scale, in one coordinate.

    >>> low, high = (100 * LaplaceLoss("0.1")).epsilon("1e-6")
    >>> low <= high < 4.77
    True
    """

    epsilon: Fraction

    def __init__(self, epsilon: Number, *, neighbours: Neighbours = AS_DECLARED) -> None:
        _set(self, epsilon=nonnegative(epsilon, "epsilon"), neighbours=neighbours)

    def directions(self) -> Directions:
        return (((DoubleExponential(self.epsilon), 1),),)


@dataclass(frozen=True, slots=True, repr=False, init=False)
class DiscreteLaplaceLoss(_Loss):
    """Discrete Laplace noise, inputs at most `distance` whole steps apart in the L1 norm.

    Theorem  one coordinate: as for discrete Gaussian noise, the law is log-concave. Several: let
             g_d(a) be the greatest power of a test of level a between X and X + d. Tests by
             half-lines are best, so g_d takes P[X >= k] to P[X >= k-d], linearly between, and
             g_d after g_e is g_(d+e). A test between x and x + (d, e) has at most the power g_d(a)
             at x + (d, 0), so at most g_e(g_d(a)) = g_(d+e)(a): one coordinate that moves by all of
             the distance is the worst

    >>> (100 * DiscreteLaplaceLoss(10)).epsilon("1e-6")[1] < 4.776
    True
    """

    scale: Fraction
    distance: int

    def __init__(
        self, scale: Number, distance: int = 1, *, neighbours: Neighbours = AS_DECLARED
    ) -> None:
        noise, far = positive(scale, "scale"), whole(distance, "distance")
        _set(self, scale=noise, distance=far, neighbours=neighbours)

    def directions(self) -> Directions:
        if not self.distance:
            return (((Response(Fraction(0)), 1),),)
        return (((TwoSidedGeometric(self.scale, self.distance), 1),),)


@dataclass(frozen=True, slots=True, repr=False, init=False)
class RandomizedResponseLoss(_Loss):
    """Randomised response with several answers, e**epsilon times as likely to be kept as another.

    Theorem  an answer kept less often is this one with some answers replaced by a uniform one, so
             every keep probability up to e**epsilon/(e**epsilon + k - 1) is dominated

    >>> low, high = (100 * RandomizedResponseLoss("0.1")).epsilon("1e-6")
    >>> low <= high < 4.78
    True
    """

    epsilon: Fraction
    categories: int

    def __init__(
        self, epsilon: Number, categories: int = 2, *, neighbours: Neighbours = AS_DECLARED
    ) -> None:
        loss, count = nonnegative(epsilon, "epsilon"), whole(categories, "categories", least=2)
        _set(self, epsilon=loss, categories=count, neighbours=neighbours)

    def directions(self) -> Directions:
        return (((Response(self.epsilon, answers=self.categories), 1),),)


@dataclass(frozen=True, slots=True, repr=False, init=False)
class ApproxLoss(_Loss):
    """Anything that is (epsilon, delta)-private; pure for delta = 0.

    Theorem  the worst is randomised response that tells all with probability delta (Kairouz, Oh,
             Viswanath 2015)

    >>> (100 * ApproxLoss("0.1")).epsilon("1e-6")[1] < 4.776
    True
    """

    epsilon: Fraction
    delta: Fraction

    def __init__(
        self, epsilon: Number, delta: Number = 0, *, neighbours: Neighbours = AS_DECLARED
    ) -> None:
        loss, chance = nonnegative(epsilon, "epsilon"), probability(delta, "delta")
        _set(self, epsilon=loss, delta=chance, neighbours=neighbours)

    def directions(self) -> Directions:
        return (((Response(self.epsilon, self.delta), 1),),)


@dataclass(frozen=True, slots=True, repr=False, init=False)
class BoundedRangeLoss(_Loss):
    """A choice whose losses lie in an interval of length epsilon: the exponential mechanism.

    Theorem  exp(rate u_i)/sum against exp(rate v_i)/sum: the loss is rate (u_i - v_i) plus a number
             that does not depend on i, and u_i - v_i moves by at most 2 sensitivities, or one if
             all utilities move in one direction: in both cases by epsilon/rate

    >>> chosen, anything = 100 * BoundedRangeLoss("0.1"), 100 * ApproxLoss("0.1")
    >>> chosen.epsilon("1e-6")[1] < anything.epsilon("1e-6")[0]
    True
    """

    epsilon: Fraction

    def __init__(self, epsilon: Number, *, neighbours: Neighbours = AS_DECLARED) -> None:
        _set(self, epsilon=nonnegative(epsilon, "epsilon"), neighbours=neighbours)

    def directions(self) -> Directions:
        return (((Tilted(self.epsilon) if self.epsilon else Response(Fraction(0)), 1),),)


@dataclass(frozen=True, slots=True, repr=False, init=False)
class FiniteLoss(_Loss):
    """Two finite laws with rational masses: (p, q) of every outcome, p with the record, q without.

    Two laws that are not each other's mirror image have a direction. It is that of the record, and
    all releases of a profile share it, so they are taken for add-remove only: under another
    relation one release might go one way and the next the other way.

    >>> low, high = FiniteLoss([("3/4", "1/4"), ("1/4", "3/4")]).profile.delta(0)
    >>> low <= 0.5 <= high and high - low < 1e-15
    True
    """

    outcomes: tuple[tuple[Fraction, Fraction], ...]

    def __init__(
        self, outcomes: Iterable[tuple[Number, Number]], *, neighbours: Neighbours = ADD_REMOVE
    ) -> None:
        _set(self, outcomes=_pairs(outcomes), neighbours=neighbours)
        if len(self.directions()) > 1 and neighbours.relation != ADD_REMOVE.relation:
            raise InvalidParameter(
                "neighbours",
                problem="is not add-remove, and the two laws are not mirror images of each other",
                remedy="pass ADD_REMOVE, or the pure loss of the two laws as ApproxLoss",
            )

    def directions(self) -> Directions:
        back = tuple(sorted((q, p) for p, q in self.outcomes))
        here = ((Atoms(self.outcomes), 1),)
        return (here,) if back == self.outcomes else (here, ((Atoms(back), 1),))


def _pairs(outcomes: Iterable[tuple[Number, Number]]) -> tuple[tuple[Fraction, Fraction], ...]:
    remedy = 'pass pairs of probabilities, [("3/4", "1/4"), ("1/4", "3/4")]'
    try:
        given = [(p, q) for p, q in outcomes]
    except (TypeError, ValueError):
        raise WrongType("outcomes", problem="are not a list of pairs", remedy=remedy) from None
    exact = sorted((probability(p, "outcomes"), probability(q, "outcomes")) for p, q in given)
    if len(exact) > _MOST_OUTCOMES:
        problem = f"are more than {_MOST_OUTCOMES:,}"
        raise InvalidParameter("outcomes", problem=problem, remedy="merge those of equal loss")
    if sum(p for p, _ in exact) != 1 or sum(q for _, q in exact) != 1:
        raise InvalidParameter("outcomes", problem="do not add up to 1 twice", remedy=remedy)
    return tuple(exact)


@dataclass(frozen=True, slots=True, repr=False, init=False)
class ThresholdLoss(_Loss):
    """Noisy counts of undeclared keys that are shown from a threshold up: partition selection.

    Law      at most `keys` keys move, each by 1; a key with a count n >= 1 gets n + X, X discrete
             Laplace, and is shown iff that is at least the threshold
    Theorem  let p = P[1 + X >= threshold]. Each key is dominated by the pair that tells all with
             probability p, and is discrete Laplace noise at distance 1 otherwise, profile
             p + (1-p) D(x). A key that both neighbours have: post-processed noise, at most D(x). A
             key that only one has: against "not shown" for certain, delta(x) is p for x >= 0 and
             1 - exp(x) for exp(x) <= 1-p one way, and (1 - exp(x) (1-p))_+ =
             (p + (1-p)(1 - exp(x)))_+ the other way; D(x) >= (1 - exp(x))_+ settles both. Keys
             are independent, so the pairs multiply
    Differs  a key is of one kind or the other: `thresholds.py` has the exact profile of one
             release, and a smaller pair
    Checked  tests/privacy/accounting/test_domination.py, test_thresholds.py

    >>> ThresholdLoss(scale=1, threshold=20, keys=1).profile.delta(1)[1] < 1e-8
    True
    """

    scale: Fraction
    threshold: int
    keys: int

    def __init__(
        self, scale: Number, threshold: int, keys: int, *, neighbours: Neighbours = AS_DECLARED
    ) -> None:
        noise, bar = positive(scale, "scale"), whole(threshold, "threshold", least=1)
        count = whole(keys, "keys", least=1)
        _set(self, scale=noise, threshold=bar, keys=count, neighbours=neighbours)

    def directions(self) -> Directions:
        return (((Threshold(self.scale, 1, self.threshold, self.keys), self.keys),),)


@dataclass(frozen=True, slots=True, repr=False, init=False)
class _SampledLoss(_Loss):
    """A release about a Poisson sample: each record takes part with probability `rate`."""

    relation: ClassVar[str] = "add-remove"
    rate: Fraction

    @staticmethod
    def _checked(rate: Number, neighbours: Neighbours) -> Fraction:
        if check_neighbours(neighbours).relation != "add-remove":
            raise InvalidParameter(
                "neighbours",
                problem="is not add-remove: Poisson sampling is accounted for one record more or "
                "less",
                remedy="pass ADD_REMOVE",
            )
        return probability(rate, "rate", zero=False, remedy="pass, say, 0.01")


@dataclass(frozen=True, slots=True, repr=False, init=False)
class SubsampledGaussianLoss(_SampledLoss):
    """Gaussian noise on a Poisson sample (DP-SGD): mu = sensitivity/deviation = 1/multiplier.

    Theorem  (1-q) N(0) + q N(mu) against N(0) dominates a removal, its reverse an addition (Zhu,
             Dong, Wang 2022, Theorem 11). The two directions are composed apart

    >>> (10**4 * SubsampledGaussianLoss("0.01", 1)).epsilon("1e-5")[1] < 6.18772
    True
    """

    mu_squared: Fraction

    def __init__(
        self, rate: Number, mu_squared: Number, *, neighbours: Neighbours = ADD_REMOVE
    ) -> None:
        share = self._checked(rate, neighbours)
        spread = positive(mu_squared, "mu_squared")
        _set(self, rate=share, mu_squared=spread, neighbours=neighbours)

    def directions(self) -> Directions:
        if self.rate == 1:
            return (((Normal(self.mu_squared), 1),),)
        return tuple(
            ((SampledNormal(self.rate, removed, self.mu_squared), 1),) for removed in (True, False)
        )


@dataclass(frozen=True, slots=True, repr=False, init=False)
class SubsampledLaplaceLoss(_SampledLoss):
    """Continuous Laplace noise of epsilon on a Poisson sample; both directions, as above.

    >>> SubsampledLaplaceLoss("0.01", 1).profile.epsilon("1e-6")[1] < 0.02
    True
    """

    epsilon: Fraction

    def __init__(
        self, rate: Number, epsilon: Number, *, neighbours: Neighbours = ADD_REMOVE
    ) -> None:
        share = self._checked(rate, neighbours)
        _set(self, rate=share, epsilon=positive(epsilon, "epsilon"), neighbours=neighbours)

    def directions(self) -> Directions:
        if self.rate == 1:
            return (((DoubleExponential(self.epsilon), 1),),)
        return tuple(
            ((SampledLaplace(self.rate, removed, self.epsilon), 1),) for removed in (True, False)
        )


PrivacyLoss: TypeAlias = (
    GaussianLoss
    | DiscreteGaussianLoss
    | DiscreteGaussianVectorLoss
    | LaplaceLoss
    | DiscreteLaplaceLoss
    | RandomizedResponseLoss
    | ApproxLoss
    | BoundedRangeLoss
    | FiniteLoss
    | ThresholdLoss
    | SubsampledGaussianLoss
    | SubsampledLaplaceLoss
)


def black_box(guarantee: Guarantee) -> ApproxLoss:
    """The loss of a mechanism of which only a pure or approximate guarantee is known."""
    match guarantee:
        case PureDP(epsilon=Fraction() as loss):
            return ApproxLoss(loss, neighbours=guarantee.neighbours)
        case ApproxDP(epsilon=Fraction() as loss) | ProbabilisticDP(epsilon=Fraction() as loss):
            return ApproxLoss(loss, guarantee.delta, neighbours=guarantee.neighbours)
    raise IncompatibleGuarantees(
        f"{type(guarantee).__name__} with these numbers does not bound the loss of one release; "
        f"pass a pure or approximate guarantee"
    )
