"""A product of components, and floats that say where to look."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from flint import acb, arb

from lastbit.exact import arb_of
from lastbit.privacy.accounting.component import (
    Component,
    DoubleExponential,
    Floats,
    Grid,
    Normal,
    Response,
)
from lastbit.privacy.accounting.subsampling import SampledNoise

_FINEST = Fraction(1, 10**40)
_MOST_FACTORS = 1000
_LEAST_ORDER, _GREATEST_ORDER = 1e-4, 1e12


@dataclass(frozen=True, slots=True)
class Composition:
    """Independent components, each with how often it occurs; no loss of 0 among them.

    Theorem  L is the sum of all; it is oo unless each is finite, so P[L = oo] = 1 - prod(1-d)**n.
             Gaussian losses add up to one, equal components are one with a larger count
    """

    parts: tuple[tuple[Component, int], ...]
    told: tuple[tuple[Component, int], ...]
    guide: Guide = field(compare=False)

    @staticmethod
    def of(parts: Iterable[tuple[Component, int]]) -> Composition:
        """A composition in its one form."""
        spread, counts, told = Fraction(0), Counter[Component](), []
        for part, count in parts:
            found = part.variance()
            if found is not None:
                spread += found * count
            elif isinstance(part, Response) and not part.epsilon:
                told.append((part, count))
            elif not (isinstance(part, DoubleExponential) and not part.epsilon):
                counts[part] += count
        kept = [*counts.items(), *([(Normal(spread), 1)] if spread else [])]
        return Composition(tuple(kept), tuple(told), Guide(tuple(kept)))

    @property
    def releases(self) -> int:
        """How many components there are."""
        return sum(count for _, count in self.parts)

    @property
    def exact_lines(self) -> bool:
        """Whether moments are known to any precision, not by floats."""
        return not any(isinstance(part, SampledNoise) for part, _ in self.parts)

    def furthest(self, order: float) -> float:
        """The largest time at which moments can be computed in reasonable time."""
        sampled = (part for part, _ in self.parts if isinstance(part, SampledNoise))
        return min((part.furthest(order) for part in sampled), default=math.inf)

    def constant(self) -> arb:
        """The probability that no component without any other loss tells all."""
        return math.prod(((1 - part.infinite()) ** n for part, n in self.told), start=arb(1))

    def infinite(self) -> arb:
        """P[L = oo]; by logarithms, for 1 - (1 - d)**n loses all digits of a small d."""
        told = [(part.infinite(), n) for part, n in (*self.parts, *self.told)]
        if any(mass == 1 for mass, _ in told):
            return arb(1)
        found = -sum((n * (-mass).log1p() for mass, n in told), arb(0)).expm1()
        if found.is_finite():
            return found
        return 1 - math.prod(((1 - mass) ** n for mass, n in told), start=arb(1))

    def told_exactly(self) -> Fraction | None:
        """P[L = oo] where it is rational and not too long to write down."""
        kept, factors = Fraction(1), 0
        for part, count in (*self.parts, *self.told):
            told = part.told_exactly()
            if told is None:
                return None
            if told:
                factors += count
                if factors > _MOST_FACTORS:
                    return None
                kept *= (1 - told) ** count
        return 1 - kept

    def variation(self) -> arb:
        """At most D(0), the total variation: of a release about a sample at most its rate."""
        apart = arb(1)
        for part, count in self.parts:
            if not isinstance(part, SampledNoise):
                return arb(1)
            apart *= arb_of(1 - part.rate) ** count
        return (1 - apart).upper()

    def moment(self, z: acb) -> acb:
        """M(z), for real z."""
        factors = (part.moment(z) ** n for part, n in self.parts)
        return math.prod(factors, start=acb(self.constant()))

    def greatest(self) -> Fraction | None:
        """The greatest finite loss, if it is known to be rational."""
        total = Fraction(0)
        for part, count in self.parts:
            most = part.greatest
            if most is None:
                return None
            total += most * count
        return total

    def ceiling(self) -> arb | None:
        """An upper bound of all finite losses."""
        total = arb(0)
        for part, count in self.parts:
            most = part.ceiling()
            if most is None:
                return None
            total += most * count
        return total.upper()

    def grid(self) -> Grid | None:
        """The lattice on which all losses lie."""
        offset, spacing = Fraction(0), Fraction(0)
        for part, count in self.parts:
            grid = part.grid
            if grid is None:
                return None
            offset += grid.offset * count
            spacing = common(spacing, grid.spacing)
        return Grid(offset, spacing) if spacing > _FINEST else None


def common(one: Fraction, other: Fraction) -> Fraction:
    """The greatest number of which both are whole multiples."""
    top = math.gcd(one.numerator * other.denominator, other.numerator * one.denominator)
    return Fraction(top, one.denominator * other.denominator)


class Guide:
    """Floats about a composition: they choose, and prove nothing."""

    UP = np.array([0.02 * 1.4**i for i in range(15)])
    DOWN = np.array([0.03, 0.06, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.97])

    __slots__ = ("_parts",)

    def __init__(self, parts: tuple[tuple[Component, int], ...]) -> None:
        self._parts = parts

    def cumulants(self, orders: Floats) -> Floats:
        """About ln M at these orders."""
        total = np.zeros_like(orders)
        with np.errstate(all="ignore"):
            for part, count in self._parts:
                total = total + float(count) * part.cumulant(orders)
        return np.asarray(total)

    def _derivatives(self, orders: Floats) -> tuple[Floats, Floats, Floats]:
        shift = 1e-3
        left, here, right = np.split(
            self.cumulants(np.concatenate([orders * (1 - shift), orders, orders * (1 + shift)])), 3
        )
        step = shift * orders
        with np.errstate(all="ignore"):
            first, second = (right - left) / (2 * step), (right - 2 * here + left) / step**2
        return here, first, np.maximum(second, 1e-300)

    def size(self, order: float, x: float) -> tuple[float, float]:
        """About ln D(x) as seen from an order, and the deviation of the tilted loss there."""
        here, _, second = (float(a[0]) for a in self._derivatives(np.array([order])))
        deviation = math.sqrt(second)
        found = here - order * x - math.log(order) - math.log1p(order)
        return found - math.log(deviation * 2.5066 + 1 / order), deviation

    def for_delta(self, log_delta: float) -> tuple[float, float]:
        """The order, and the x, at which D(x) is about this."""

        def at(places: Floats) -> tuple[Floats, Floats]:
            c = np.exp(places)
            here, first, second = self._derivatives(c)
            x = first - 1 / c - 1 / (1 + c)
            second = second + c**-2 + (1 + c) ** -2
            value = here - c * x - places - np.log1p(c) - 0.5 * np.log(2 * math.pi * second)
            return np.where(np.isfinite(value), value, -1e300), x

        low, high = math.log(_LEAST_ORDER), math.log(_GREATEST_ORDER)
        for count in (40, 10, 10):
            places = np.linspace(low, high, count)
            value, _ = at(places)
            below = np.flatnonzero(value <= log_delta)
            index = int(below[0]) if below.size else count - 1
            low, high = float(places[max(index - 1, 0)]), float(places[max(index, 1)])
        middle = np.array([(low + high) / 2])
        return float(np.exp(middle)[0]), float(at(middle)[1][0])

    def for_epsilon(self, x: float) -> float:
        """The order at which the sum for D(x) is smallest: the saddle."""
        low, high = math.log(_LEAST_ORDER), math.log(_GREATEST_ORDER)
        for count in (60, 12, 12):
            places = np.linspace(low, high, count)
            c = np.exp(places)
            value = self.cumulants(c) - c * x - places - np.log1p(c)
            index = int(np.argmin(np.where(np.isfinite(value), value, 1e300)))
            low, high = float(places[max(index - 1, 0)]), float(places[min(index + 1, count - 1)])
        return math.exp((low + high) / 2)

    def _alias(self, orders: Floats, x: float) -> Floats:
        kappa = orders * np.log(orders) - (1 + orders) * np.log1p(orders)
        return np.asarray(kappa + self.cumulants(orders) - orders * x)

    def width(self, order: float, x: float, goal: float) -> float:
        """The least width for which both aliases stay below exp(goal)."""
        widths = []
        for others in (order * (1 + self.UP), order * (1 - self.DOWN)):
            needed = (self._alias(others, x) - goal) / np.abs(others - order)
            widths.append(max(float(np.nanmin(needed)), 0.0))
        return max(widths) * 1.01 + 1e-9

    def alias_orders(self, order: float, x: float, width: float) -> list[float]:
        """An order above and one below whose alias bounds are small."""
        found = []
        for others in (order * (1 + self.UP), order * (1 - self.DOWN)):
            value = self._alias(others, x) - width * np.abs(others - order)
            found.append(float(others[int(np.nanargmin(value))]))
        return found
