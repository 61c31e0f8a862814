"""Partition selection: which undeclared keys are shown, by Laplace or by Gaussian noise.

Law      A unit that has chosen K of its keys, 1 <= K <= c, adds w_K to each of them: w_K = 1 where
         units are counted, w_K = floor(W/sqrt(K)) where the count itself is not released
         (`shares`, W = 2**20), so that a unit with few keys counts in full and one with many keys
         still counts in each. Every key whose sum n is above 0 gets n + X, X independent discrete
         Gaussian of variance v, and is shown, with n + X, iff n + X >= T
Theorem  (Gaussian selection) let d2 bound the squared L2 norm by which the sums move between
         neighbours (`sensitivity.py`), p_K = P[w_K + X >= T], and delta >= 1 - (1 - p_K)**K for all
         K <= c. The release is delta-approximately rho-zCDP, rho = d2/(2v)
Proof    Bun, Steinke 2016, Definition 8.1 asks for events E of the release on x and F of that on y,
         each of probability at least 1 - delta, such that the laws given E and given F are
         rho-zCDP apart, both ways. Keys are drawn independently of each other. Let E (F) be that
         no key is shown which is 0 on y (on x). A key that is above 0 on x and 0 on y has its
         whole sum from the one unit in which x and y differ, so there are j <= K of them, each of
         sum w_K: P[E] = (1 - p_K)**j >= 1 - delta, and so for F. Given E, these keys are certainly
         not shown, and the others are distributed as without the condition: the law given E is a
         function of n + X over the keys common to x and y, and so is that given F, the same
         function. Over those keys n moves by at most d2, discrete Gaussian noise makes that
         rho-zCDP (CKS20 Theorem 4), and a function of it is no worse. Both relations of neighbours
         are covered: d2 is that of the relation, and under add-remove one of E and F is certain []
Theorem  (composition) after a delta-approximately rho-zCDP release run what, whatever was released
         before, is rho'-zCDP: the whole is delta-approximately (rho + rho')-zCDP
Proof    the same E and F. They are about the first release's own randomness, so given E its output
         is as above and the second release has the law that it has anyhow; divergences of adaptive
         steps add up (Bun, Steinke 2016, Lemmas 2.3 and 8.2)  []
Theorem  (conversion) if rho-zCDP implies (epsilon, delta'), then a release that is
         delta-approximately rho-zCDP is (epsilon, delta + delta')-private
Proof    P[E] and P[F] may be taken to be 1 - delta exactly: of the larger event keep a part by a
         coin of its own, which changes no law given the event. For every set S,
         P_x[S] <= delta + (1-delta) P_x[S | E] <= delta + (1-delta)(exp(epsilon) P_y[S | F] +
         delta') <= delta + exp(epsilon) P_y[S] + delta'  []
Theorem  (units with one key) count the units that have one key by a thresholded histogram of scale
         s and threshold T' (`mechanisms/histogram.py`), all others by shares as above, K >= 2; show
         a key iff one of the two shows it. Where one unit comes or goes, and each of the two is
         (epsilon, delta)-private, so is the whole
Proof    how many keys a unit has is a function of its own rows. So x and y differ in a unit of one
         of the two tables, and the other table is the same: what is released of it is independent
         of the rest and has the same law on x and y. The keys shown are a function of both. (Where
         a unit changes, it could be counted in the one table before and in the other afterwards:
         both would have to be paid for.)  []
Differs  p_K is the exact tail of the discrete law if v < 2**16. From there on it is bounded by the
         tail of the continuous one, p_K <= Q((T - w_K - 1/2)/sqrt(v)), at most 1e-4 of it above:
         exp(-t**2/2v) is convex for t >= sqrt(v), so its value at m is at most its integral over
         [m - 1/2, m + 1/2]; and the sum over all integers is not below sqrt(2 pi v) (Poisson)
Source   Gopi, Gulhane, Kulkarni, Shen, Shokouhi, Yekhanin 2020 (weights 1/sqrt(K), Gaussian);
         Korolova et al. 2009 (Laplace): `mechanisms/histogram.py`
Checked  tests/tables/test_selection.py

Which one. Laplace, Gaussian and the two side by side are computed at the same price, and that is
taken which needs fewer units to show a key, in the geometric mean of units with one key and units
with the most keys: max_groups, or `MANY_KEYS` (max_rows if less) where that is not declared. Then a
unit chooses 1 key or MANY_KEYS of its keys, decided in the same way: from the price alone, before
anything is read. Weights make a large number cheap: the threshold for 128 keys is a twentieth
above that for 8.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

from flint import arb

from lastbit.exact import arb_of, at_most
from lastbit.laws import DiscreteGaussian, least
from lastbit.mechanisms import ThresholdedHistogram
from lastbit.privacy import ADD_REMOVE
from lastbit.tables.card.schema import DataCard
from lastbit.tables.measures import WEIGHT_ONE, Measure, chosen_keys, share_of
from lastbit.tables.plan.conversion import (
    Conversion,
    PairConversion,
    conversion_to,
    most_mu_squared,
    pair_conversion_to,
    pair_variance,
)
from lastbit.tables.plan.parts import GaussianSelection, PartitionSelection, Selection, SingleKeys
from lastbit.tables.plan.sensitivity import sensitivity_of

MANY_KEYS = 128
"""How many keys a unit chooses at most where max_groups is not declared."""

_EXACT_BELOW = 1 << 16
_MOST_KEYS = 1 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A selection, the measure that it looks at if no aggregate has it, and what it needs."""

    part: Selection
    extra: Measure | None
    need: Fraction
    """Units with one key, times units with many, from which on a key is about to be shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finder:
    """What is known of the units that the selection counts."""

    card: DataCard
    serves: Measure | None
    """The measure of the query that the noisy sums are released as: units, or rows that are."""
    name: str
    """Of a measure that the query does not have."""

    @property
    def limits(self) -> tuple[int, ...]:
        """To how many keys a unit may be limited."""
        card = self.card
        if card.unit is None:
            return (1,)
        if self.serves is not None:
            own = chosen_keys(card, groups=None, needs_choice=True)
            assert own is not None  # refused where a unit could be in any number of groups
            return (own,)
        if card.max_groups is not None and not card.max_groups_assumed:
            return (min(card.max_groups, _MOST_KEYS),)
        most = card.max_rows if card.max_groups is None else card.max_groups
        return tuple(sorted({1, min(MANY_KEYS, most)}))

    def at_epsilon(self, epsilon: Fraction, delta: Fraction) -> Found:
        """The selection that needs the fewest units at a price of its own."""
        found = [self._laplace(own, epsilon, delta) for own in self.limits]
        conversion = pair_conversion_to(epsilon, delta / 2) or conversion_to(epsilon, delta / 2)
        for own in self.limits:
            found.append(self._gaussian(own, conversion.rho, delta / 2, conversion))
            if own > 1 and self.serves is None and self.card.neighbours == ADD_REMOVE:
                law = ThresholdedHistogram(keys_per_person=1, epsilon=epsilon, delta=delta)
                single = SingleKeys(scale=law.scale, threshold=law.threshold)
                found.append(self._gaussian(own, conversion.rho, delta / 2, conversion, single))
        return min(found, key=lambda one: one.need)

    def at_rho(self, rho: Fraction, delta: Fraction, *, paired: bool = False) -> Found:
        """The same where rho, or mu**2/2 if `paired`, adds up with that of the other parts."""
        found = [self._gaussian(own, rho, delta, None, paired=paired) for own in self.limits]
        return min(found, key=lambda one: one.need)

    def _laplace(self, own: int, epsilon: Fraction, delta: Fraction) -> Found:
        law = ThresholdedHistogram(
            keys_per_person=own, epsilon=epsilon, delta=delta, neighbours=self.card.neighbours
        )
        declared = self.card.unit is None or own == self.card.max_groups
        extra = None if declared else Measure(name=self.name, kind="units", highest=own)
        measure = self.serves or extra
        part = PartitionSelection(
            measure=None if measure is None else measure.name,
            keys_per_person=own,
            scale=law.scale,
            threshold=law.threshold,
            epsilon=epsilon,
            delta=delta,
        )
        need = self._need(Fraction(law.threshold), own, Fraction(1))
        return Found(part=part, extra=extra, need=need)

    def _gaussian(
        self,
        own: int,
        rho: Fraction,
        tail: Fraction,
        conversion: Conversion | PairConversion | None,
        single: SingleKeys | None = None,
        *,
        paired: bool = False,
    ) -> Found:
        """By shares, of units with several keys if those with a `single` one are counted apart."""
        extra, least_keys = None, 1 if single is None else 2
        if self.serves is None and self.card.unit is not None:
            lowest = 0 if single is None else least_keys
            extra = Measure(name=self.name, kind="shares", lowest=lowest, highest=own)
        measure = self.serves or extra
        counted = extra or Measure(name="", kind="units")
        squared = sensitivity_of(counted, self.card, groups=None).l2_squared
        paired = paired or isinstance(conversion, PairConversion)
        variance = pair_variance(squared, 2 * rho) if paired else squared / (2 * rho)
        one, weights = (1, {own: 1}) if extra is None else (WEIGHT_ONE, shares_of(own, least_keys))
        threshold = least_threshold(variance, weights, tail)
        part = GaussianSelection(
            measure=None if measure is None else measure.name,
            keys_per_person=own,
            weight_one=one,
            squared_l2_sensitivity=squared,
            variance=variance,
            threshold=threshold,
            tail=tail,
            rho=squared / (2 * variance),
            conversion=conversion,
            single=single,
            mu_squared=min(2 * rho, most_mu_squared(squared)) if paired else None,
        )
        first = None if single is None else Fraction(single.threshold)
        need = self._need(Fraction(threshold, one), own, Fraction(weights[own], one), first)
        return Found(part=part, extra=extra, need=need)

    def _need(
        self, threshold: Fraction, own: int, weight: Fraction, first: Fraction | None = None
    ) -> Fraction:
        """A unit with one key adds 1; one with many adds `weight` to the share that it keeps."""
        return (first or threshold) * threshold / (weight * own / max(self.limits))


def shares_of(own: int, first: int = 1) -> dict[int, int]:
    """By its number of keys, from `first` to `own`: what a unit adds to each of them.

    >>> shares_of(4)
    {1: 1048576, 2: 741455, 3: 605395, 4: 524288}
    """
    return {number: share_of(number) for number in range(first, own + 1)}


def shown_alone(variance: Fraction, distance: int) -> arb:
    """P[X >= distance], or a little more, at the working precision: Differs above.

    >>> from lastbit.exact import working_precision
    >>> with working_precision(64):
    ...     print(shown_alone(Fraction(100), 50))
    [3.67159594052102...e-7 +/- ...]
    """
    if variance < _EXACT_BELOW:
        return DiscreteGaussian(variance).cumulative(-distance)
    x = (arb_of(distance) - arb_of(Fraction(1, 2))) / arb_of(variance).sqrt()
    return (x / arb(2).sqrt()).erfc() / 2


def least_threshold(variance: Fraction, weights: Mapping[int, int], delta: Fraction) -> int:
    """The least T with 1 - (1 - p_K)**K <= delta for every K, and T - w_K - 1/2 >= sqrt(v)."""
    most = max(weights.values())
    found = most + 2 + isqrt(-(-variance.numerator // variance.denominator))
    for keys in sorted(weights, reverse=True):  # the largest mostly decides
        weight = weights[keys]

        def enough(threshold: int, keys: int = keys, weight: int = weight) -> bool:
            def some() -> arb:
                chance = shown_alone(variance, threshold - weight)
                return -(keys * (-chance).log1p()).expm1()

            return at_most(some, lambda: arb_of(delta))

        if not enough(found):
            found = least(enough, (found, None))
    return found
