"""What guarantees and losses cost under the filters, for those who have these and not numbers.

The ledger keeps its accounts by numbers alone, and needs none of this.
"""

from __future__ import annotations

from fractions import Fraction

from lastbit.errors import IncompatibleGuarantees
from lastbit.privacy.accounting.losses import (
    DiscreteGaussianLoss,
    DiscreteGaussianVectorLoss,
    GaussianLoss,
    PrivacyLoss,
)
from lastbit.privacy.filter import MomentCost, MomentFilter
from lastbit.privacy.gaussian_filter import GaussianCost, GaussianFilter
from lastbit.privacy.gaussian_pair import step_mu_squared
from lastbit.privacy.guarantees import ZCDP, ApproxDP, Guarantee, ProbabilisticDP, PureDP


def moment_price(kept: MomentFilter, guarantee: Guarantee) -> MomentCost:
    """The price of what a guarantee promises: `MomentFilter.price_of`."""
    _check_relation(kept, guarantee, "guarantee")
    match guarantee:
        case PureDP(epsilon=Fraction() as epsilon):
            return kept.price(epsilon=epsilon)
        case (ApproxDP() | ProbabilisticDP()) as both if isinstance(both.epsilon, Fraction):
            return kept.price(epsilon=both.epsilon, delta=both.delta)
        case ZCDP(rho=Fraction() as rho):
            return kept.price(rho=rho)
    raise IncompatibleGuarantees(
        f"{type(guarantee).__name__} has no price here; pass a PureDP, ApproxDP or ZCDP "
        "with finite parameters"
    )


def gaussian_price(kept: GaussianFilter, promise: PrivacyLoss | Guarantee) -> GaussianCost:
    """The price of a loss of Gaussian noise, or of a guarantee: `GaussianFilter.price_of`."""
    _check_relation(kept, promise, "promise")
    match promise:
        case GaussianLoss(mu_squared=spread):
            return kept.price(mu_squared=spread)
        case DiscreteGaussianLoss(variance=spread, distance=far):
            return kept.price(mu_squared=far**2 * step_mu_squared(spread) if far else 0)
        case DiscreteGaussianVectorLoss(variance=spread, distance_squared=far):
            return kept.price(mu_squared=far * step_mu_squared(spread) if far else 0)
        case PureDP(epsilon=Fraction() as epsilon):
            return kept.price(epsilon=epsilon)
        case (ApproxDP() | ProbabilisticDP()) as both if isinstance(both.epsilon, Fraction):
            return kept.price(epsilon=both.epsilon, delta=both.delta)
    raise IncompatibleGuarantees(
        f"{type(promise).__name__} has no price here; pass the loss of Gaussian noise, or a "
        f"PureDP or ApproxDP with finite parameters"
    )


def _check_relation(
    kept: MomentFilter | GaussianFilter, promise: PrivacyLoss | Guarantee, what: str
) -> None:
    if getattr(promise, "neighbours", kept.neighbours) != kept.neighbours:
        raise IncompatibleGuarantees(
            f"the filter is about {kept.neighbours}, the {what} about "
            f"{promise.neighbours}; state both for the same neighbours"
        )


def gaussian_epsilon(kept: GaussianFilter, mu_squared: Fraction) -> Fraction:
    """The least epsilon for which this mu**2 is within a filter else like this one."""
    return Fraction(GaussianLoss(mu_squared).profile.epsilon(kept.delta - kept.delta_kept)[1])
