"""Two releases, one of them about a sample: an integral of the closed form of the other.

Law      D(x) = E[D_2(x - L_1)], D_2 the profile of the second release, which is closed
Theorem  D_2(x) is 1 - exp(x) up to the least loss, 0 from the greatest one on, and between them an
         analytic function of exp(x) (`single.py`). L_1 is a rising or falling function of the
         noise. So the integral is cut where x - L_1 is one of the two ends, and each part is an
         integral of an analytic function, in balls (Johansson 2018, after Petras). Where a
         Gaussian part is not analytic at such an end, a sliver next to it is left to the
         monotony of D_2: between its values at both ends. D_2 is at most 1, and rises with L_1:
         beyond the noise that is looked at, the integral is at most the probability, on the side
         of small losses times D_2 at the end
Source   the calculus of integrals; Johansson 2018 for the rigour
Checked  tests/privacy/accounting/test_few.py
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from flint import acb, arb

from lastbit.exact import arb_of, working_precision
from lastbit.privacy.accounting.component import Component, DoubleExponential, Normal
from lastbit.privacy.accounting.composition import Composition
from lastbit.privacy.accounting.single import closed_at
from lastbit.privacy.accounting.subsampling import SampledLaplace, SampledNormal, normal_tail

_PRECISION = 96
_BITS = 40
_SLIVER = -24

Sampled = SampledLaplace | SampledNormal


def pair(composition: Composition, size: float) -> Pair | None:
    """Two releases with densities, where D is about exp(size); None for all others."""
    found: list[Sampled] = []
    for part, count in composition.parts:
        sampled = as_sampled(part)
        if sampled is None or count > 2:
            return None
        found += [sampled] * count
    return Pair(found[0], found[1], size, composition) if len(found) == 2 else None


def as_sampled(part: Component) -> Sampled | None:
    """Noise on all records is noise on a sample at the rate 1."""
    match part:
        case SampledLaplace() | SampledNormal():
            return part
        case DoubleExponential():
            return SampledLaplace(rate=Fraction(1), removed=True, epsilon=part.epsilon)
        case Normal():
            return SampledNormal(rate=Fraction(1), removed=True, mu_squared=part.spread)
    return None


@dataclass(frozen=True, slots=True)
class Pair:
    """Two releases: the first is integrated over, the second is closed."""

    first: Sampled
    second: Sampled
    size: float
    composition: Composition

    def bounds(self, x: Fraction) -> tuple[arb, arb]:
        """D(x) from below and from above."""
        with working_precision(_PRECISION):
            at = arb_of(x)
            total = self._atoms(at)
            low, high, beyond = self._noise(at)
            total += beyond + self._density(at, low, high)
            total *= self.composition.constant()
            if not total.is_finite():
                return arb(0), arb(1)
            return total.lower().max(arb(0)), total.upper()

    def _atoms(self, at: arb) -> arb:
        part = self.first
        if isinstance(part, SampledNormal):
            return arb(0)
        total = arb(0)
        for loss, mass in (
            (-arb_of(part.epsilon), arb(1) / 2),
            (arb_of(part.epsilon), (-arb_of(part.epsilon)).exp() / 2),
        ):
            b = part.ratio(loss)
            here = b.log() if part.removed else -b.log()
            total += (mass * b if part.removed else mass) * closed_at(self.second, at - here)
        return total

    def _noise(self, at: arb) -> tuple[arb, arb, arb]:
        """From where to where the noise is integrated over, and what lies beyond."""
        part = self.first
        if isinstance(part, SampledLaplace):
            return -arb_of(part.epsilon), arb_of(part.epsilon), arb(0)
        s = part.deviation()
        reach = math.sqrt(2 * (_BITS * math.log(2) - min(self.size, 0.0)))
        low, high = -s * arb(reach), s * arb(reach) + (1 if part.removed else 0)
        left, right = normal_tail(-low / s), normal_tail(high / s)
        if part.removed:
            q = arb_of(part.rate)
            left = (1 - q) * left + q * normal_tail((1 - low) / s)
            right = (1 - q) * right + q * normal_tail((high - 1) / s)
        sides = [
            (mass, closed_at(self.second, at - _loss(part, end)))
            for mass, end in ((left, low), (right, high))
        ]
        few = sides[0] if part.removed else sides[1]  # on the side of small losses
        many = right if part.removed else left
        most = many + few[0] * few[1].upper().min(arb(1))
        return low, high, arb(0).union(most.upper())

    def _density(self, at: arb, low: arb, high: arb) -> arb:
        """The three parts of the integral."""
        second, sign = self.second, 1 if self.first.removed else -1
        least, most = second.least(), second.ceiling()
        # noise at which x - L_1 is the greatest, and the least loss of the second release
        nothing = None if most is None else self._place(at - most)
        everything = None if least is None else self._place(at - least)
        ends = [low, high] if sign > 0 else [high, low]
        first = ends[0] if nothing is None else _clipped(nothing, low, high)
        last = ends[1] if everything is None else _clipped(everything, low, high)
        total = arb(0)
        if everything is not None:
            total += self._integral(self._all, at, last, ends[1])
        return total + self._between(at, first, last)

    def _between(self, at: arb, first: arb, last: arb) -> arb:
        """The part where the second release decides, with slivers at both ends."""
        if isinstance(self.second, SampledLaplace):
            return self._integral(self._inner, at, first, last)
        wide = (last - first) * arb(2) ** _SLIVER
        total = arb(0)
        for end, inside in ((first, first + wide), (last, last - wide)):
            values = [closed_at(self.second, at - _loss(self.first, y)) for y in (end, inside)]
            weight = self._weight(acb(end.union(inside))).real
            total += abs(end - inside) * weight * values[0].union(values[1])
        return total + self._integral(self._inner, at, first + wide, last - wide)

    def _integral(
        self, inner: Callable[[acb, acb, bool], acb], at: arb, first: arb, last: arb
    ) -> arb:
        """An integral over the noise, of the modulus of its sign."""
        if first.overlaps(last) and (last - first).abs_upper() < arb(2) ** -100:
            width = abs(last - first)
            return width * self._weight(acb(first.union(last))).real * arb(0).union(arb(1))
        raised = acb(at.exp())

        def value(y: acb, analytic: bool) -> acb:
            return self._weight(y) * inner(raised / self._raised(y), y, analytic)

        enough = arb(2) ** -_BITS
        found = acb.integral(
            value,
            acb(first),
            acb(last),
            rel_tol=enough,
            abs_tol=enough * arb(max(self.size, -2000.0)).exp() * arb(2) ** -6,
        ).real
        return found if self.first.removed else -found

    def _all(self, e: acb, y: acb, analytic: bool) -> acb:
        return 1 - e

    def _inner(self, e: acb, y: acb, analytic: bool) -> acb:
        """D_2 between its ends, e = exp(x - L_1)."""
        part = self.second
        q, base = arb_of(part.rate), arb_of(1 - part.rate)
        w = ((e if part.removed else 1 / e) - base) / q
        if isinstance(part, SampledLaplace):
            root, half = w.sqrt(analytic=analytic), (-arb_of(part.epsilon) / 2).exp() / 2
            above, above_with = half / root, 1 - half * root
        else:
            v = arb_of(1 / part.mu_squared)
            place = w.log(analytic=analytic) * v + arb(1) / 2
            scale = (2 * v).sqrt()
            if not part.removed:
                scale = -scale
            above = (place / scale).erfc() / 2
            above_with = ((place - 1) / scale).erfc() / 2
        if part.removed:
            return q * above_with + (base - e) * above
        if isinstance(part, SampledLaplace):
            above, above_with = 1 - above, 1 - above_with
        return above - e * (base * above + q * above_with)

    def _raised(self, y: acb) -> acb:
        """exp(L_1)."""
        part = self.first
        loss = y
        if isinstance(part, SampledNormal):
            loss = (y - arb(1) / 2) * arb_of(part.mu_squared)
        b = arb_of(1 - part.rate) + arb_of(part.rate) * loss.exp()
        return b if part.removed else 1 / b

    def _weight(self, y: acb) -> acb:
        """The density of the noise, with the record if it is removed."""
        part = self.first
        if isinstance(part, SampledLaplace):
            found = (-(y + arb_of(part.epsilon)) / 2).exp() / 4
        else:
            mu = arb_of(part.mu_squared)
            found = (-(y * y) * mu / 2).exp() * (mu / (2 * arb.pi())).sqrt()
        return found * self._raised(y) if part.removed else found

    def _place(self, loss: arb) -> arb:
        """The noise at which L_1 has a value, -oo if none has one so far out."""
        part = self.first
        raised = loss.exp() if part.removed else (-loss).exp()
        rest = (raised - arb_of(1 - part.rate)) / arb_of(part.rate)
        if rest <= 0:
            return arb("-inf")
        noise = rest.log()  # nan if it is not certain which
        if isinstance(part, SampledLaplace):
            return noise
        return noise / arb_of(part.mu_squared) + arb(1) / 2


def _loss(part: Sampled, y: arb) -> arb:
    if isinstance(part, SampledNormal):
        y = (y - arb(1) / 2) * arb_of(part.mu_squared)
    b = part.ratio(y)
    return b.log() if part.removed else -b.log()


def _clipped(y: arb, low: arb, high: arb) -> arb:
    if y.is_nan() or y == arb("-inf"):
        return y if y.is_nan() else low
    return y.max(low).min(high)
