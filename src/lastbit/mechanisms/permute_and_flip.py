"""Permute-and-flip."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, overload

from flint import arb, arb_poly, ctx
from numpy.typing import NDArray

from lastbit.exact import (
    DEFAULT_PRECISION,
    Number,
    arb_of,
    nonnegative,
    upper,
    whole,
    working_precision,
)
from lastbit.laws import ExpWeighted, Law
from lastbit.mechanisms.exponential import ByRate, exact_utilities, losses_of, utilities_of
from lastbit.mechanisms.mechanism import level, set_fields
from lastbit.sampling import Size, drawn_fresh, flips


@dataclass(frozen=True, slots=True, init=False)
class PermuteAndFlip(ByRate):
    """Picks a candidate, the better the likelier; never worse than the exponential mechanism.

    Law      candidates come in a random order, and each is taken with probability
             p_i = exp(rate (u_i - max u)), the first one taken is released:
             P[release(u) = i] = p_i * integral over 0 < t < 1 of product over j != i of (1 - t p_j)
    Theorem  (uniform among heads) flip all coins at once, apart from the order. The best has p = 1,
             so some fall heads; among those every one is equally likely to come first. So the
             release is uniform among the heads, and no order is needed.
             (law) given heads at i, k others fall heads, and E[1/(1+k)] = integral of E[t**k] =
             integral of product (1 - p_j + t p_j) over 0 < t < 1; turn t round.
             (race) with t = exp(-rate (z - max u)) the law is that of the greatest u_i + E_i, E_i
             exponential of scale 1/rate: z is its value. So i wins iff E_i reaches a threshold set
             by the others, which moves, against u_i, by at most 2 D if no utility moves by more
             than D, and by D if all move in one direction (`monotone`). P[E >= k + m] >=
             exp(-rate m) P[E >= k], so the loss is at most 2 D rate, or D rate
    Source   McKenna, Sheldon 2020; the race: Ding et al. 2021
    Differs  utilities are exact, floats are the dyadic numbers they are; coins are flipped all at
             once and exactly (`sampling/bernoulli.py`)
    Checked  tests/mechanisms/test_permute_and_flip.py; proof: docs/theory/permute-and-flip.md

    >>> pick = PermuteAndFlip(sensitivity=1, epsilon=2)
    >>> pick.rate, pick.guarantee
    (Fraction(1, 1), PureDP(epsilon=2))
    >>> pick.release([0, 1000, 0])
    1
    >>> pick.law([0, 1]).probability(1)          # 1 - exp(-1)/2
    Ball(0.81606027941427883920 ± 2.24e-21)
    >>> pick.accuracy("0.05", candidates=100) < 7
    True
    """

    @overload
    def release(self, utilities: object, size: None = None) -> int: ...
    @overload
    def release(self, utilities: object, size: int | tuple[int, ...]) -> NDArray[Any]: ...
    def release(self, utilities: object, size: Size = None) -> int | NDArray[Any]:
        """The index of a candidate; an array of independent ones if a size is given.

        Each of them costs what `guarantee` says.
        """
        found: int | NDArray[Any] = drawn_fresh(flips(utilities_of(utilities), self.rate), size)
        return found

    def law(self, utilities: object) -> PermuteAndFlipLaw:
        """The exact law of release(utilities); n candidates take n**2 operations."""
        exact = exact_utilities(utilities_of(utilities))
        return PermuteAndFlipLaw([self.rate * utility for utility in exact])

    def accuracy(self, beta: Number, *, candidates: int) -> float:
        """An a with P[greatest utility - chosen one > a] <= beta, rounded up.

        The a at which `beta` is reached, by bisection; never above that of `Exponential`.
        """
        most, count = level(beta, "beta"), whole(candidates, "candidates", least=1)
        if self._worst(Fraction(0), count) <= most:
            return 0.0
        ratio = (count - 1) / (2 * most)  # by the simpler bound (n-1) p/2 this high serves
        with working_precision(DEFAULT_PRECISION):
            high = upper(arb_of(ratio).log() / arb_of(self.rate)) if ratio > 1 else 0.0
        low = 0.0
        while low < (middle := low + (high - low) / 2) < high:  # high serves, low does not
            if self._worst(Fraction(middle), count) <= most:
                high = middle
            else:
                low = middle
        return high

    def beta(self, error: Number, *, candidates: int) -> float:
        """The greatest P[greatest utility - chosen one > error] of all utilities, rounded up.

        Theorem  more heads among the candidates worse by more than the error, or fewer among the
                 others, make a bad choice likelier. So the worst case is one best candidate and n-1
                 with p = exp(-rate error): 1 - integral of (1 - t p)**(n-1) over 0 < t < 1,
                 which is 1 - (1 - (1-p)**n)/(n p), and at most (n-1) p/2
        """
        return min(
            self._worst(nonnegative(error, "error"), whole(candidates, "candidates", least=1)), 1.0
        )

    def expected_error(self, utilities: object) -> float:
        """The mean of greatest utility - chosen one, rounded up."""
        values = utilities_of(utilities)
        law = PermuteAndFlipLaw([self.rate * utility for utility in exact_utilities(values)])
        with working_precision(DEFAULT_PRECISION):
            terms = (
                p * arb_of(loss) for p, loss in zip(law.masses(), losses_of(values), strict=True)
            )
            return upper(sum(terms, arb(0)))

    def expected_error_bound(self, *, candidates: int) -> float:
        """The mean for the worst utilities of n candidates is not above this.

        Theorem  the integral over all errors of the worst case of `beta`: (H(n) - 1)/rate, H(n) =
                 1 + 1/2 + ... + 1/n; below ln(n)/rate, the bound for `Exponential`
        """
        count = whole(candidates, "candidates", least=1)
        with working_precision(DEFAULT_PRECISION):
            harmonic = arb(count + 1).digamma() + arb.const_euler()
            return max(upper((harmonic - 1) / arb_of(self.rate)), 0.0) if count > 1 else 0.0

    def _worst(self, error: Fraction, count: int) -> float:
        """An upper bound on 1 - (1 - (1-p)**n)/(n p): at most its last bit above."""
        if count == 1:
            return 0.0
        exponent = self.rate * error
        if exponent > 4096:  # (n-1) p/2 is as good, and needs no cancellation
            with working_precision(DEFAULT_PRECISION):
                return upper((-arb_of(exponent)).exp() * (count - 1) / 2)
        with working_precision(DEFAULT_PRECISION + 2 * int(2 * exponent)):
            p = (-arb_of(exponent)).exp()
            return upper(1 - (1 - (1 - p) ** count) / (count * p))


@dataclass(frozen=True, slots=True, init=False)
class PermuteAndFlipLaw(Law):
    """The law of permute-and-flip.

    Law      P[X = i] = p_i * integral over 0 < t < 1 of product over j != i of (1 - t p_j),
             p_j = exp(exponents[j] - max(exponents))
    Theorem  the product is a polynomial in t with coefficients c_k, so the integral is the sum of
             c_k/(k+1). They are below 2**n and cancel to no less than 1/n, so n + 32 bits beyond
             the working precision make up for it. Dividing the product of all n factors by one of
             them, b_k = c_k + p_i b_(k-1), gives all n integrals in n**2 operations
    Source   McKenna, Sheldon 2020
    Checked  tests/mechanisms/test_permute_and_flip.py

    >>> PermuteAndFlipLaw([0, 0, 0, 0]).quantile("1/2")
    1
    """

    exponents: tuple[Fraction, ...]

    def __init__(self, exponents: Sequence[Number]) -> None:
        set_fields(self, exponents=ExpWeighted(exponents).exponents)

    def mass(self, value: int) -> arb:
        if not 0 <= value < len(self.exponents):
            return arb(0)
        with working_precision(ctx.prec + len(self.exponents) + 32):
            heads = self._heads()
            others = failures(heads[:value] + heads[value + 1 :])
            return heads[value] * _integral(others)

    def masses(self) -> list[arb]:
        """All probabilities at the working precision."""
        with working_precision(ctx.prec + len(self.exponents) + 32):
            heads = self._heads()
            product = failures(heads)
            return [p * _integral(_divided(product, p)) for p in heads]

    def cumulative(self, value: int) -> arb:
        if value < 0:
            return arb(0)
        if value >= len(self.exponents) - 1:
            return arb(1)
        return sum(self.masses()[: value + 1], arb(0))

    def exact_cumulative(self, value: int) -> Fraction | None:
        # equal exponents are equally likely, and that alone decides the cases known there
        return ExpWeighted(self.exponents).exact_cumulative(value)

    @property
    def support(self) -> tuple[int, int]:
        return 0, len(self.exponents) - 1

    def _heads(self) -> list[arb]:
        greatest = max(self.exponents)
        return [arb_of(exponent - greatest).exp() for exponent in self.exponents]


def failures(heads: Sequence[arb]) -> list[arb]:
    """The coefficients of the product of (1 - p x), lowest first."""
    if not heads:
        return [arb(1)]
    factors = [arb_poly([1, -p]) for p in heads]
    while len(factors) > 1:  # in pairs: a balanced product is quicker
        odd = factors[-1:] if len(factors) % 2 else []
        factors = [a * b for a, b in zip(factors[::2], factors[1::2], strict=False)] + odd
    return factors[0].coeffs()


def _divided(product: list[arb], p: arb) -> list[arb]:
    """The product without its factor (1 - p x)."""
    quotient = [product[0]]
    for coefficient in product[1:-1]:
        quotient.append(coefficient + p * quotient[-1])
    return quotient


def _integral(coefficients: list[arb]) -> arb:
    return sum((c / (k + 1) for k, c in enumerate(coefficients)), arb(0))
