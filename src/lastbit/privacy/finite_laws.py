"""Two finite laws, one of each neighbour: which promises hold between them, decided exactly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact import Number, Real, positive, probability, refine, upper
from lastbit.privacy.guarantees import ApproxDP, ProbabilisticDP, PureDP, loss_parameter

FiniteLaw: TypeAlias = Mapping[Hashable, Number]
"""The probability of every output; what is not named has none."""

_Factor: TypeAlias = Fraction | Real | None
_REMEDY = 'pass {output: probability, ...}, say {"yes": "3/4", "no": "1/4"}, adding up to 1'
_PRECISION = 256


@dataclass(frozen=True, slots=True, init=False, repr=False)
class LawPair:
    """The output laws of two neighbours, exactly.

    Law      p and q, on finitely many outputs, with rational probabilities
    Theorem  *Pure*: p(z) <= exp(epsilon) q(z) for every z, and the reverse. *Approximate*: the
             greatest p(S) - exp(epsilon) q(S) is the sum of its positive terms. *Probabilistic*
             (003, Definition 2): the set that is left out must hold every z with
             p(z) > exp(epsilon) q(z), as the inequality for S = {z} fails otherwise, and that is
             enough: outside it no z fails, so no sum does. So the least delta is the probability
             of these outputs, under p; and under q in the other direction.
             For a rational epsilon other than 0, exp(epsilon) is irrational (Lindemann), so that
             p = exp(epsilon) q only where both are 0, and balls decide every comparison
    Source   paper 003, Definitions 1 to 3, Propositions 4 and 5
    Differs  `odds` is exp(epsilon) itself, for an epsilon such as ln 3 that is no rational
    Checked  tests/privacy/test_finite_laws.py, against all sets of outputs

    >>> coin = LawPair({0: "3/4", 1: "1/4"}, {0: "1/4", 1: "3/4"})
    >>> coin.satisfies(PureDP("1.1")), coin.satisfies(PureDP("1.09"))       # ln 3 is 1.0986
    (True, False)
    >>> coin.probabilistic_delta(odds=2), coin.approximate_delta(odds=2)
    (Fraction(3, 4), Fraction(1, 4))
    """

    one: tuple[tuple[Hashable, Fraction], ...]
    other: tuple[tuple[Hashable, Fraction], ...]

    def __init__(self, one: FiniteLaw, other: FiniteLaw) -> None:
        object.__setattr__(self, "one", _law(one, "one"))
        object.__setattr__(self, "other", _law(other, "other"))

    def __repr__(self) -> str:
        return f"LawPair({len(self._pairs())} outputs)"

    def mapped(self, function: Callable[[Any], Hashable]) -> LawPair:
        """The laws after processing: outputs that the function makes equal are one output."""
        images: tuple[Counter[Hashable], Counter[Hashable]] = (Counter(), Counter())
        for law, image in zip((self.one, self.other), images, strict=True):
            for output, chance in law:
                image[function(output)] += chance  # type: ignore[assignment]
        return LawPair(*images)

    def bad_outputs(
        self, *, epsilon: Number | None = None, odds: Number | None = None
    ) -> tuple[frozenset[Hashable], frozenset[Hashable]]:
        """The outputs that are too likely under one law for the other, in both directions."""
        factor = _factor(epsilon, odds)
        pairs = self._pairs().items()
        return (
            frozenset(output for output, (p, q) in pairs if _exceeds(p, q, factor)),
            frozenset(output for output, (p, q) in pairs if _exceeds(q, p, factor)),
        )

    def probabilistic_delta(
        self, *, epsilon: Number | None = None, odds: Number | None = None
    ) -> Fraction:
        """The least delta of a probabilistic guarantee, in both directions, exactly."""
        here, there = self.bad_outputs(epsilon=epsilon, odds=odds)
        return max(
            sum((p for output, p in self.one if output in here), Fraction(0)),
            sum((q for output, q in self.other if output in there), Fraction(0)),
        )

    def approximate_delta(
        self, *, epsilon: Number | None = None, odds: Number | None = None
    ) -> Fraction:
        """The least delta of an approximate guarantee: exact for `odds`, else rounded up."""
        factor = _factor(epsilon, odds)
        if factor is None:
            return Fraction(0)
        if isinstance(factor, Fraction):
            return max(a - factor * b for a, b in self._excesses(factor))
        grown = factor.ball(_PRECISION)
        return max(min(Fraction(upper(a - grown * b)), a) for a, b in self._excesses(factor))

    def satisfies(self, guarantee: PureDP | ApproxDP | ProbabilisticDP) -> bool:
        """Whether the promise holds between these two laws; nothing is rounded."""
        match guarantee:
            case PureDP():
                return not any(self.bad_outputs(epsilon=guarantee.epsilon))
            case ProbabilisticDP():
                return self.probabilistic_delta(epsilon=guarantee.epsilon) <= guarantee.delta
            case ApproxDP():
                factor = _factor(guarantee.epsilon, None)
                return not any(
                    _exceeds(a - guarantee.delta, b, factor) for a, b in self._excesses(factor)
                )
            case _:
                problem, remedy = "is of another kind", "pass PureDP, ApproxDP or ProbabilisticDP"
                raise WrongType("guarantee", problem=problem, remedy=remedy)

    def _pairs(self) -> dict[Hashable, tuple[Fraction, Fraction]]:
        mine, yours = dict(self.one), dict(self.other)
        none = Fraction(0)
        return {z: (mine.get(z, none), yours.get(z, none)) for z in {**mine, **yours}}

    def _excesses(self, factor: _Factor) -> list[tuple[Fraction, Fraction]]:
        """The probabilities of the bad outputs under both laws, in both directions."""
        pairs = list(self._pairs().values())
        sums = []
        for way in (pairs, [(q, p) for p, q in pairs]):
            bad = [(p, q) for p, q in way if _exceeds(p, q, factor)]
            sums.append((Fraction(sum(p for p, _ in bad)), Fraction(sum(q for _, q in bad))))
        return sums


def _factor(epsilon: Number | None, odds: Number | None) -> _Factor:
    """exp(epsilon): a rational, the exponential of a rational other than 0, or None: infinite."""
    if (epsilon is None) == (odds is None):
        raise InvalidParameter(
            "epsilon", problem="and odds are both given, or neither", remedy="pass one of them"
        )
    if odds is None:
        loss = loss_parameter(epsilon)
        if isinstance(loss, float):
            return None
        return Real(loss).exp() if loss else Fraction(1)
    exact = positive(odds, "odds")
    if exact < 1:
        raise InvalidParameter("odds", problem="are below 1", remedy="pass exp(epsilon)")
    return exact


def _exceeds(p: Fraction, q: Fraction, factor: _Factor) -> bool:
    """Whether p > exp(epsilon) q, for q >= 0; nothing exceeds an infinite factor."""
    if factor is None or p <= 0 or q == 0:
        return factor is not None and p > 0
    if isinstance(factor, Fraction):
        return p > factor * q
    return refine(lambda precision: factor.ball(precision) * q < p)  # never equal: bits decide


def _law(law: object, name: str) -> tuple[tuple[Hashable, Fraction], ...]:
    if not isinstance(law, Mapping):
        raise WrongType(name, problem="is not a law", remedy=_REMEDY)
    exact = [(output, probability(chance, name)) for output, chance in law.items()]
    if sum(chance for _, chance in exact) != 1:
        raise InvalidParameter(name, problem="does not add up to 1", remedy=_REMEDY)
    return tuple((output, chance) for output, chance in exact if chance)
