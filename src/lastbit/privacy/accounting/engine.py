"""Which engine answers, and how an epsilon is found.

| composition | engine |
|---|---|
| Gaussian losses only; one release | closed forms, `single.py` |
| few atoms and Laplace losses, on no lattice | residues, `pieces.py` |
| two releases, one at least about a sample | an integral of a closed form, `pair.py` |
| samples, where the line sum does not close | noise in cells, `cells.py` |
| all others | the line sum, `contour.py` |

Discrete Laplace noise on a very fine lattice is bounded by continuous noise from both sides
(`component.TwoSidedGeometric`). Every engine gives both bounds in balls; an upper bound is never
above what the moment bound or the greatest loss says. All of this is about products of pairs;
`choices.py` says what is better where mechanisms or data choose.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple, TypeAlias

from flint import acb, arb

from lastbit.errors import PrecisionExhausted
from lastbit.exact import arb_of, lower, nearest, upper, working_precision
from lastbit.privacy.accounting.cells import Cells, Target, in_cells
from lastbit.privacy.accounting.component import DoubleExponential, TwoSidedGeometric
from lastbit.privacy.accounting.composition import Composition
from lastbit.privacy.accounting.contour import (
    TooManyTerms,
    contour,
    kappa,
    moment_epsilon,
    slope_at,
    smoothed,
    smoothed_floats,
)
from lastbit.privacy.accounting.pair import pair
from lastbit.privacy.accounting.pieces import few_pieces, pieces
from lastbit.privacy.accounting.single import Closed, closed
from lastbit.privacy.accounting.thresholds import MOST_KEYS, Threshold

Bounds: TypeAlias = tuple[arb, arb]
Excess: TypeAlias = Callable[[Fraction], Bounds]

# From this distance on discrete Laplace noise is bounded by continuous noise.
FINE = 1 << 12
_PRECISION = 192
_GREATEST_SAMPLED_ORDER = 1e5
_SOME_ORDERS = tuple(4.0**n for n in range(-2, 16))
_OVERFLOW = 700.0
# Bounds of cells that are this close are not tried again; others that are so wide are.
_GOOD_ENOUGH, _POOR = 1e-3, 1e-2
_WIDE, _NOTHING = Fraction(1, 10**13), Fraction(1, 10**30)
_PRECISE, _MOST_DOUBLINGS = 1e-9, 64
_HIGHEST_PRECISION = 1 << 14


def delta_bounds(composition: Composition, x: Fraction) -> Bounds:
    """delta(x) of one direction, from below and from above."""
    if composition.infinite() == 1:
        return arb(1), arb(1)
    low, high = _sandwich(composition)
    below = _excess_bounds(low, x)
    above = below if high is low else _excess_bounds(high, x)
    greatest = composition.greatest()
    if greatest is not None and x >= greatest:
        below = above = arb(0), arb(0)
    with working_precision(_PRECISION):
        told = composition.infinite()
        return (
            (told + below[0]).lower().max(arb(0)),
            (told + above[1]).upper().min(arb(1)),
        )


def _excess_bounds(composition: Composition, x: Fraction) -> Bounds:
    try:
        return _excess_directly(composition, x)
    except TooManyTerms:
        return _excess_in_cells(composition, x)


def _excess_in_cells(composition: Composition, x: Fraction) -> Bounds:
    """D(x) by cells, which are cut again when it is known how steep D is there."""
    low, high = arb(0), composition.variation()
    target = Target(x=nearest(x))
    for _ in range(3):
        cells = in_cells(composition, target)
        try:
            (_, above), slope = _excess_and_slope(cells.split, x, target.log_delta)
            below = _excess_and_slope(cells.joined, x, target.log_delta)[0][0]
        except TooManyTerms:  # far out: only that there is next to nothing
            return low, high.min(_moment_delta(cells.split, x))
        with working_precision(_PRECISION):
            low = low.max((below + cells.beyond(x)).lower())
            told = cells.split.infinite() - composition.infinite()
            high = high.min((above + told).upper())
            if not high - low > high * arb(_GOOD_ENOUGH):
                break
        target = Target(nearest(x), _logarithm(high), slope)
    return low, high


def _excess_directly(composition: Composition, x: Fraction) -> Bounds:
    return _excess_and_slope(composition, x)[0]


def _excess_and_slope(
    composition: Composition, x: Fraction, most: float | None = None
) -> tuple[Bounds, float]:
    """D(x), and about how steep ln D is there; ln D(x) is at most about `most`, where known."""
    if not composition.parts:
        return (arb(0), arb(0)), 1.0
    greatest = composition.greatest()
    if greatest is not None and x >= greatest:
        return (arb(0), arb(0)), 1.0
    with working_precision(_PRECISION):
        ceiling = composition.ceiling()
        if ceiling is not None and arb_of(x) >= ceiling:
            return (arb(0), arb(0)), 1.0
    order = _capped(composition, composition.guide.for_epsilon(nearest(x)))
    size, _ = composition.guide.size(order, nearest(x))
    excess = _excess(composition, order, nearest(x), size if most is None else min(size, most))
    low, high = excess(x)
    slope = slope_at(excess, nearest(x), order) if _has_cells(composition) else order
    with working_precision(_PRECISION):
        if high.is_finite() and high - low < high * arb(1e-9):
            return (low, high), slope
        c = arb(order)
        moment = kappa(c) * (-c * arb_of(x)).exp() * composition.moment(acb(c)).real
        least = high.min(moment.upper()) if high.is_finite() else moment.upper()
        return (low, least), slope


def _sandwich(composition: Composition) -> tuple[Composition, Composition]:
    """A composition that this one dominates, and one that dominates it; often itself."""
    if one_release(composition) or not any(_fine(part) for part, _ in composition.parts):
        return composition, composition
    low, high = [], []
    for part, count in (*composition.parts, *composition.told):
        if isinstance(part, TwoSidedGeometric) and _fine(part):
            with working_precision(_PRECISION):
                more = 2 * arb_of(1 / (2 * part.scale)).cosh().log()
                wide = Fraction(upper(more.upper()))
            low.append((DoubleExponential(part.greatest), count))
            high.append((DoubleExponential(part.greatest + wide), count))
        else:
            low.append((part, count))  # type: ignore[arg-type]
            high.append((part, count))  # type: ignore[arg-type]
    return Composition.of(low), Composition.of(high)


def one_release(composition: Composition) -> Closed | None:
    """The only component that loses anything but all, where its profile has a closed form."""
    if len(composition.parts) != 1:
        return None
    part, count = composition.parts[0]
    if isinstance(part, Threshold):
        return part if count == part.keys <= MOST_KEYS else None
    return part if count == 1 and isinstance(part, Closed) else None


def _one_bounds(composition: Composition, part: Closed, x: Fraction) -> Bounds:
    low, high = _precisely(lambda: closed(part, x))
    with working_precision(_PRECISION):
        constant = composition.constant()
        return (constant * low).lower(), (constant * high).upper()


def _fine(part: object) -> bool:
    return type(part) is TwoSidedGeometric and part.distance >= FINE


def _capped(composition: Composition, order: float) -> float:
    """Larger orders than this gain nothing on a lattice, and take long on a sample."""
    if not composition.exact_lines:
        return order if _has_cells(composition) else min(order, _GREATEST_SAMPLED_ORDER)
    grid = composition.grid()
    return order if grid is None else min(order, 300 / nearest(grid.spacing))


def _has_cells(composition: Composition) -> bool:
    return any(isinstance(part, Cells) for part, _ in composition.parts)


def _excess(composition: Composition, order: float, x: float, size: float) -> Excess:
    """The engine for D near x, where it is about exp(size)."""
    part = one_release(composition)
    if part is not None:
        return lambda at: _one_bounds(composition, part, at)
    grid = composition.grid()
    if grid is None or nearest(grid.spacing) < 1e-4 or few_pieces(composition):
        found = _in_pieces(composition, x)
        if found is not None:
            return found
    return _line(composition, order, x, size)


def _line(composition: Composition, order: float, x: float, size: float) -> Excess:
    if _has_cells(composition):
        return smoothed_floats(composition, order, x, size).bounds
    both = None if composition.exact_lines else pair(composition, size)
    if both is not None:
        return both.bounds
    try:
        return contour(composition, order, x, size).bounds
    except TooManyTerms:
        if not composition.exact_lines:
            raise
    if size > _OVERFLOW:  # a chance of exp(700): the floats that look for an order have failed
        raise PrecisionExhausted(
            "the accountant cannot add so many releases of so small a loss; pass fewer, or ask at "
            "a larger epsilon"
        )
    return smoothed(composition, order, x, size).bounds


def _in_pieces(composition: Composition, x: float) -> Excess | None:
    """Residues at a precision at which they do not cancel."""
    precision = 128 + 4 * min(composition.releases, 400)
    while precision <= _HIGHEST_PRECISION:
        found = pieces(composition, precision)
        if found is None:
            return None
        low, high = found.bounds(Fraction(max(x, 0.0)))
        with working_precision(_PRECISION):
            if high == 0 or (low > 0 and (high - low) < low * arb(2) ** -60):
                return found.bounds
        precision *= 2
    return None


def _precisely(value: Callable[[], arb | None]) -> Bounds:
    """Both ends of a ball, computed with as much precision as it takes to know 60 bits."""
    precision = 128
    found = arb(0)
    while precision <= _HIGHEST_PRECISION:
        with working_precision(precision):
            ball = value()
            assert ball is not None
            found = ball
        if found.is_finite() and (found.rel_accuracy_bits() > 60 or found == 0):
            break
        precision *= 2
    if not found.is_finite():
        return arb(0), arb(1)
    return found.lower().max(arb(0)), found.upper()


def epsilon_bounds(composition: Composition, delta: Fraction) -> tuple[float, float]:
    """The least x >= 0 with delta(x) <= delta, of one direction, from below and from above."""
    told = composition.told_exactly()
    if told == delta:
        return _at_nothing(composition)
    with working_precision(_PRECISION):
        rest = arb_of(delta) - (composition.infinite() if told is None else arb_of(told))
        if rest < 0:
            return math.inf, math.inf
        if not rest > 0:  # nearly nothing is left, and perhaps less
            return 0.0, math.inf
    low, high = _sandwich(composition)
    below = _epsilon(low, rest)
    if high is low:
        return below
    greatest = composition.greatest()
    most = math.inf if greatest is None else upper(greatest)
    return below[0], min(_epsilon(high, rest)[1], most)


def is_soon_within(composition: Composition, delta: Fraction, x: float) -> bool:
    """Whether delta(x) <= delta, as far as the greatest loss or one moment tells it at once."""
    greatest = composition.greatest()
    beyond = greatest is not None and x >= greatest and composition.told_exactly() == 0
    if beyond or x == math.inf:
        return True
    if not composition.exact_lines:
        composition = in_cells(composition, Target(x=x)).split
    return bool(_moment_delta(composition, Fraction(x)) <= arb_of(delta))


def _moment_delta(composition: Composition, x: Fraction) -> arb:
    """An upper bound of delta(x): the moment bound of one order, or of some if floats know none."""
    order = _capped(composition, composition.guide.for_epsilon(nearest(x)))
    likely = math.isfinite(composition.guide.size(order, nearest(x))[0])
    with working_precision(_PRECISION):
        best = arb(1)
        for c in map(arb, [order] if likely else _SOME_ORDERS):
            moment = kappa(c) * (-c * arb_of(x)).exp() * composition.moment(acb(c)).real
            if moment.is_finite():
                best = best.min((composition.infinite() + moment).upper())
        return best


def _at_nothing(composition: Composition) -> tuple[float, float]:
    """The epsilon that no delta is left for: the greatest loss."""
    if not composition.parts:
        return 0.0, 0.0
    greatest = composition.greatest()
    if greatest is not None:
        return lower(greatest), upper(greatest)
    with working_precision(_PRECISION):
        ceiling = composition.ceiling()
        return (math.inf, math.inf) if ceiling is None else (0.0, upper(ceiling))


def _epsilon(composition: Composition, chance: arb) -> tuple[float, float]:
    """The least x >= 0 with D(x) <= chance."""
    try:
        found = _epsilon_directly(composition, chance)
    except TooManyTerms:
        return _epsilon_in_cells(composition, chance)
    if composition.exact_lines or not found.high - found.low > _POOR * found.high:
        return found.low, found.high
    low, high = _epsilon_in_cells(composition, chance)
    return max(found.low, low), min(found.high, high)


def _epsilon_in_cells(composition: Composition, chance: arb) -> tuple[float, float]:
    """The same by cells, which are cut again for the place that was found."""
    least, most, before = 0.0, math.inf, math.inf
    target = Target(log_delta=_logarithm(chance))
    for _ in range(3):
        cells = in_cells(composition, target)
        with working_precision(_PRECISION):
            above = (chance + composition.infinite() - cells.split.infinite()).lower()
        if not above > 0:
            break
        try:
            found = _epsilon_directly(cells.split, above, target.x)
            most = min(most, found.high)
            with working_precision(_PRECISION):  # x <= most, and what is beyond falls with x
                below = (chance - cells.beyond(Fraction(min(most, 1e300)))).upper()
            if below > 0:
                least = max(least, _epsilon_directly(cells.joined, below, most).low)
        except TooManyTerms:
            return least, min(most, _moment_epsilon(cells.split, above))
        if not _GOOD_ENOUGH * most < most - least < before / 2:
            break
        before = most - least
        target = target._replace(x=(least + most) / 2, slope=found.slope)
    return least, most


def _moment_epsilon(composition: Composition, chance: arb) -> float:
    """An x with D(x) <= chance, by the moment bounds of some orders."""
    with working_precision(_PRECISION):
        bounds = [moment_epsilon(composition, order, chance) for order in _SOME_ORDERS]
        return min((max(upper(x), 0.0) for x in bounds if x.is_finite()), default=math.inf)


class _Found(NamedTuple):
    """Both bounds of an epsilon, and about how steep ln D is there."""

    low: float
    high: float
    slope: float


def _epsilon_directly(composition: Composition, chance: arb, start: float | None = None) -> _Found:
    if not composition.parts or chance >= composition.variation():
        return _Found(0.0, 0.0, 1.0)
    greatest = composition.greatest()
    most = math.inf if greatest is None else upper(greatest)
    with working_precision(_PRECISION):
        ceiling = composition.ceiling()
        if greatest is None and ceiling is not None:
            most = upper(ceiling)
    log_chance = _logarithm(chance)
    order, x = composition.guide.for_delta(log_chance)
    if start is not None:
        x, order = start, composition.guide.for_epsilon(start)
    if x <= 0 or not math.isfinite(x):
        x, order = 0.0, composition.guide.for_epsilon(0.0)
    x = min(x, most)
    order = _capped(composition, order)
    for _ in range(3):
        excess = _excess(composition, order, x, log_chance)
        with working_precision(_PRECISION):
            if excess(Fraction(0))[1] <= chance:
                return _Found(0.0, 0.0, order)
        low, high = _solved(excess, chance, max(x, 1e-9), order, most)
        middle = (low + high) / 2
        if high - low < 1e-10 * high or not high < math.inf or abs(middle - x) * order < 1:
            break
        # the floats were wrong about the place: plan again for the one that was found
        x, order = middle, _capped(composition, composition.guide.for_epsilon(middle))
    if not high - low < 1e-9 * high:
        with working_precision(_PRECISION):
            bound = moment_epsilon(composition, order, chance)
            if bound.is_finite():
                most = min(most, max(upper(bound), 0.0))
    return _Found(min(low, most), min(high, most), slope_at(excess, low, order))


def _logarithm(chance: arb) -> float:
    with working_precision(64):
        return float(chance.mid().log().mid())


def _solved(
    excess: Excess, chance: arb, start: float, order: float, most: float
) -> tuple[float, float]:
    """Both ends of an interval that holds the x with D(x) = chance: a secant, then proofs."""
    x = _secant(excess, chance, start, order, most)
    with working_precision(_PRECISION):
        least, greatest = excess(x)
        wide = float(((greatest - least) / greatest).mid()) if greatest > 0 else 0.0
        wide = wide if math.isfinite(wide) else 1.0
    # what the engine cannot tell apart, in parts of x
    blur = min(max(2 * wide / (order * max(nearest(x), 1e-300)), 2.0**-52), 0.5)

    def below(at: Fraction) -> bool:
        with working_precision(_PRECISION):
            return bool(excess(at)[1] <= chance)

    def above(at: Fraction) -> bool:
        with working_precision(_PRECISION):
            return bool(excess(at)[0] > chance)

    high = _closest(below, x, 1, Fraction(blur))
    low = _closest(above, x, -1, Fraction(blur)) or Fraction(0)
    if high is None and wide < _PRECISE:
        places = (max(x, Fraction(1)) * 2**n for n in range(_MOST_DOUBLINGS))
        high = next((place for place in places if below(place)), None)
    if high is None:
        return lower(low), math.inf
    # a profile in steps sends a secant astray: halve what is left while either side is proved
    while high - low > max(high * _WIDE, _NOTHING):
        middle = (low + high) / 2
        if below(middle):
            high = middle
        elif above(middle):
            low = middle
        else:
            break
    return lower(low), upper(high)


def _closest(
    proved: Callable[[Fraction], bool], x: Fraction, sign: int, gap: Fraction
) -> Fraction | None:
    """A number near x, on one side of it, for which something is proved; None if none is found."""
    failed = Fraction(0)
    while not proved(max(x * (1 + sign * gap), Fraction(0))):
        gap, failed = 4 * gap, gap
        if gap > 2:
            return None
    if gap > _WIDE:
        for _ in range(6):
            middle = (gap + failed) / 2
            if proved(max(x * (1 + sign * middle), Fraction(0))):
                gap = middle
            else:
                failed = middle
    return max(x * (1 + sign * gap), Fraction(0))


def _secant(excess: Excess, chance: arb, start: float, order: float, most: float) -> Fraction:
    """About where D(x) = chance: any number will do, a close one proves more."""

    def height(x: float) -> float:
        """About ln D(x)/chance; 0 where the engine cannot tell them apart."""
        low, high = excess(Fraction(x))
        with working_precision(_PRECISION):
            middle = (low + high) / 2
            if low > 0 and low <= chance <= high and high - low < low * arb(1e-6):
                return 0.0
            return float((middle / chance).log().mid()) if middle > 0 else math.nan

    x, slope = min(start, most), -order
    y = height(x)
    left, right = 0.0, most
    for _ in range(40):
        if math.isnan(y):  # below what the engine sees: too far right
            right, new = x, (left + x) / 2
        else:
            left, right = (max(left, x), right) if y > 0 else (left, min(right, x))
            new = x - y / slope if slope else (left + right) / 2
            if not left <= new <= right:
                new = (left + right) / 2 if right < math.inf else 2 * x
        if abs(new - x) <= 2e-16 * abs(x) or abs(y) < 1e-17:
            x = x if y == 0 else new
            break
        value = height(new)
        if not math.isnan(value) and not math.isnan(y) and new != x and value != y:
            slope = (value - y) / (new - x)
        x, y = new, value
    return Fraction(x)
