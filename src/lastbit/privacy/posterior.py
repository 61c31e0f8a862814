"""What an adversary can believe afterwards."""

from __future__ import annotations

from fractions import Fraction

from lastbit.errors import InvalidParameter
from lastbit.exact import arb_of, lower, probability, upper, working_precision
from lastbit.privacy.guarantees import PureDP


def posterior_bounds(prior: object, guarantee: PureDP) -> tuple[float, float]:
    """Between which probabilities a belief lies after one release, if it was `prior` before.

    Law      p / (e + (1-e) p) and e p / (1 + (e-1) p), e = exp(epsilon)
    Theorem  Bayes' rule with a likelihood ratio between exp(-epsilon) and exp(epsilon)
    Source   paper 003 equation (5)
    Differs  the lower bound is rounded down, the upper one up
    Checked  tests/privacy/test_posterior.py

    >>> posterior_bounds("1/2", PureDP(0))
    (0.5, 0.5)
    >>> posterior_bounds("0.01", PureDP(1))
    (0.003702..., 0.026723...)
    """
    p = probability(prior, "prior")
    if not isinstance(guarantee, PureDP):
        raise InvalidParameter(
            "guarantee", problem="is not pure", remedy="the bound holds for PureDP only"
        )
    if p in (0, 1) or guarantee.epsilon == 0:
        return lower(p), upper(p)
    if not isinstance(guarantee.epsilon, Fraction):
        return 0.0, 1.0
    with working_precision(160):
        shrink = (-arb_of(guarantee.epsilon)).exp()
        mine, rest = arb_of(p), arb_of(1 - p)
        return (
            max(lower(mine * shrink / (rest + mine * shrink)), 0.0),
            min(upper(mine / (mine + rest * shrink)), 1.0),
        )
