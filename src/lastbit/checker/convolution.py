"""Re-derives the tight epsilon of several releases: losses on a lattice, others as Gaussian ones.

Every loss goes one of two ways, which the certificate chooses: `lattice` or `spread`. For one
release let L be its loss under P, and D(x) = E[(1 - exp(x - L))_+; L < oo].

Theorem  (lattice) let the finite losses of all releases that go this way lie on a lattice O + gZ,
         and let the tilted masses P[L = x] exp(c(x - O)) be rounded down, or dropped, and
         convolved, again and again. With S the sum of what is left, M >= prod of the tilted sums of
         all releases, and U the profile of a Gaussian loss of variance s beside them,
             D(e) <= sum of left masses * U(e - x) + k(c) exp(c(O - e)) exp(s c(c+1)/2) (M - S),
         k(c) = c**c/(1+c)**(1+c), and U(y) = (1 - exp(y))_+ for s = 0
Proof    What is missing is a measure of the tilted mass M - S at most; for every measure the bound
         of moments holds, (1 - exp(-y))_+ <= k(c) exp(cy), also after the Gaussian loss, whose
         moment is exp(s c(c+1)/2).  []
Theorem  (between points) a mass m at p, lo < p < hi = lo + g, may be put as m h at hi and m (1-h)
         at lo, h = (1 - exp(lo-p))/(1 - exp(-g))
Proof    D is E under Q of (r - exp(x))_+, convex in the ratio r = exp(L). Under Q the mass is split
         so that the mean of r stays; its mean value can only grow.  []

| loss | on the lattice | spread |
|---|---|---|
| Gaussian | | mu**2 |
| discrete Gaussian, variance v, distance n | (n**2 - 2nk)/(2v), masses exp(-k**2/(2v))/Z | n**2 x |
| a vector of it, distance squared n | | n x |
| (e, d)-private, randomised response | e, 0 (more than 2 answers), -e | a range of 2e |
| discrete Laplace, distance n, scale s | (n - 2j)/s, masses (1, (1-q) q**j, q**n)/(1+q) | of 2n/s |
| Laplace | as discrete Laplace noise of n steps of e/n, for any n, which dominates | of 2e |
| keys from a threshold | as randomised response of 1/s each | a range of 2/s each |
| finite laws | ln(p/q), both directions | |
| bounded range | e - 2je/n, masses 1 (ends) or 2 times v**j (1-v)/((1+v)(1 - exp(-e))) | of e |

x is the mu**2 of one step: x (1 - x/12) >= 1/v, 0 < x <= 12 (the proof is in
privacy/gaussian_pair.py). One release of bounded range is dominated by the pair whose
loss has the density exp(l/2)/(4 sinh(e/2)) on [-e, e]; with every mass put on the n+1 points and
v = exp(-e/n), the integrals are those of the table. Discrete Laplace noise has at its lattice
points the profile of continuous noise of the same n/s and is linear in exp(x) between; that of
continuous noise is convex, so it is not above.

Theorem  (ranges) releases whose losses lie in intervals of lengths r_i, chosen after earlier
         answers, are dominated by one Gaussian loss of variance
         3A + sum A_i + A ln(1 + sum A_i/A), A_i = r_i**2/4, A the greatest of them, A <= 8
Proof    privacy/accounting/bounded_range.py, with s = 3A; losses within [-e, e] have a range of 2e

Everything is rounded up, or down where it is subtracted. Upper tails Q of the normal law: for
abs(x) <= 8 from 1/2 - f(x) (x + x**3/3 + x**5/15 + ...), beyond by Laplace's continued fraction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

from .numbers import Interval, exp_bounds, ln_bounds, require, sqrt_bounds

_BITS = 60  # of a mass
_BYTES = 17  # of a cell of a product: 2 * 60 bits, and 16 for up to 2**16 summands
_LEAST_BITS = 32  # of a mass that is worth a Gaussian profile: the rest is missing
_MOST_CELLS = 1 << 14
_MOST_SPREAD_CELLS = 3000
_MOST_WORK = 1 << 20  # cells of all products together
_POINT = 256
_FAR_TAIL = 8
_LEVELS = 48
_FARTHEST = Fraction(10**5)
_LN2 = (
    Fraction(693147180559945309417232121458176568075500134360255254120680009, 10**63),
    Fraction(693147180559945309417232121458176568075500134360255254120680010, 10**63),
)
_PI = (
    Fraction(314159265358979323846264338327950288419, 10**38),
    Fraction(314159265358979323846264338327950288420, 10**38),
)


@dataclass(frozen=True, slots=True)
class Law:
    """The finite losses of one release: how far below the top, and bounds of the mass there.

    `rest` is an upper bound of E[exp(c (L - top)); L is not listed].
    """

    top: Fraction
    masses: tuple[tuple[Fraction, Interval], ...]
    rest: Fraction = Fraction(0)


@dataclass(slots=True)
class Cells:
    """Masses numbers[i] * 2**exponent at -(first + i) steps below the top."""

    numbers: list[int]
    exponent: int
    first: int


@dataclass(slots=True)
class Work:
    """How many cells may still be computed."""

    left: int = _MOST_WORK

    def spend(self, cells: int) -> None:
        require(cells <= _MOST_CELLS, "the lattice has too many cells")
        self.left -= cells
        require(self.left >= 0, "the lattice takes too long")


def excess(
    laws: Sequence[tuple[Law, int]],
    spread: Fraction,
    order: Fraction,
    step: Fraction,
    epsilon: Fraction,
) -> Fraction:
    """Not below D(epsilon) of all releases: laws on a lattice, and a Gaussian loss beside them."""
    work, total, whole, top = Work(), Cells([1], 0, 0), Fraction(1), Fraction(0)
    for law, times in laws:
        if not times:
            continue
        cells, tilted = _tilted(law, order, step)
        total = _product(total, _power(cells, times, work), work)
        whole = _up(whole * _power_up(tilted, times))
        top += times * law.top
    if spread:
        total = _likely(total)
    left = Fraction(sum(total.numbers)) * _two(total.exponent)
    missing = max(whole - left, Fraction(0))
    exponent = order * (top - epsilon) + spread * order * (order + 1) / 2
    # -c ln(1 + 1/c) - ln(1 + c)
    exponent += -order * ln_bounds(1 + 1 / order)[0] - ln_bounds(1 + order)[0]
    slack = missing * _grows(exponent)[1]
    if spread:
        return _mixed(total, spread, order, step, top, epsilon) + slack
    return _left(total, order, step, top, epsilon) + slack


def _tilted(law: Law, order: Fraction, step: Fraction) -> tuple[Cells, Fraction]:
    """Tilted masses rounded down on the lattice, and an upper bound of their sum."""
    places: dict[int, Interval] = {}

    def put(place: int, mass: Interval, share: Interval) -> None:
        low, high = places.get(place, (Fraction(0), Fraction(0)))
        places[place] = _down(low + mass[0] * share[0]), _up(high + mass[1] * share[1])

    cell = _rises(step)
    for down, mass in law.masses:
        above = floor(down / step)
        if down == above * step:
            put(above, mass, (Fraction(1), Fraction(1)))
            continue
        part = _rises((above + 1) * step - down)
        near = _down(part[0] / cell[1]), min(_up(part[1] / cell[0]), Fraction(1))
        put(above, mass, near)
        put(above + 1, mass, (1 - near[1], 1 - near[0]))
    first, last = min(places), max(places)
    require(last - first < _MOST_CELLS, "the lattice has too many cells")
    bounds = {place: _falls(order * step * place) for place in places}
    exact = {place: mass[0] * bounds[place][0] for place, mass in places.items()}
    most = max(exact.values())
    require(most > 0, "a loss has no mass on the lattice")
    scale = _BITS - 1 - _log2(most)
    numbers = [floor(exact.get(j, Fraction(0)) * _two(scale)) for j in range(first, last + 1)]
    whole = law.rest
    for place, mass in places.items():
        whole = _up(whole + mass[1] * bounds[place][1])
    return Cells(numbers, -scale, first), whole


def _power(cells: Cells, times: int, work: Work) -> Cells:
    total = Cells([1], 0, 0)
    while times:
        if times & 1:
            total = _product(total, cells, work)
        times >>= 1
        if times:
            cells = _product(cells, cells, work)
    return total


def _product(one: Cells, other: Cells, work: Work) -> Cells:
    """The convolution, by one product of long integers; each cell rounded down to 60 bits."""
    size = len(one.numbers) + len(other.numbers) - 1
    work.spend(size)
    packed = (_packed(one.numbers) * _packed(other.numbers)).to_bytes(_BYTES * (size + 1), "little")
    found = [
        int.from_bytes(packed[i : i + _BYTES], "little") for i in range(0, _BYTES * size, _BYTES)
    ]
    shift = max(max(found).bit_length() - _BITS, 0)
    rounded = [number >> shift for number in found]
    used = [i for i, number in enumerate(rounded) if number]
    low, high = used[0], used[-1]
    exponent, first = one.exponent + other.exponent + shift, one.first + other.first + low
    return Cells(rounded[low : high + 1], exponent, first)


def _likely(cells: Cells) -> Cells:
    """Without the least masses at both ends."""
    used = [i for i, number in enumerate(cells.numbers) if number >> (_BITS - _LEAST_BITS)]
    kept = cells.numbers[used[0] : used[-1] + 1] if used else cells.numbers
    return Cells(kept, cells.exponent, cells.first + (used[0] if used else 0))


def _packed(numbers: list[int]) -> int:
    return int.from_bytes(b"".join(n.to_bytes(_BYTES, "little") for n in numbers), "little")


def _left(
    cells: Cells, order: Fraction, step: Fraction, top: Fraction, epsilon: Fraction
) -> Fraction:
    """Not below the sum of left masses times (1 - exp(epsilon - x))."""
    # j steps below the top are above epsilon for j < (top - epsilon)/step
    count = ceil((top - epsilon) / step) - cells.first
    numbers = cells.numbers[: max(count, 0)]
    if not numbers:
        return Fraction(0)
    last = cells.first + len(numbers) - 1
    gap = top - last * step - epsilon  # how far the lowest of them is above epsilon
    once = _fixed(_falls(order * step)[1], up=True)
    twice = _fixed(_falls((order + 1) * step)[0], up=False)
    above = below = 0  # Horner's rule, from the top down
    for number in numbers:
        above = -(-above * once >> _POINT) + (number << _POINT)
        below = (below * twice >> _POINT) + (number << _POINT)
    total = above - _falls(gap)[0] * below
    return (
        max(total, Fraction(0))
        / (1 << _POINT)
        * _two(cells.exponent)
        * _grows(order * last * step)[1]
    )


def _mixed(
    cells: Cells,
    spread: Fraction,
    order: Fraction,
    step: Fraction,
    top: Fraction,
    epsilon: Fraction,
) -> Fraction:
    """Not below the sum of left masses times the profile of the Gaussian loss."""
    require(len(cells.numbers) <= _MOST_SPREAD_CELLS, "the lattice has too many cells")
    total, once = Fraction(0), _grows(order * step)[1]
    tilt = _two(cells.exponent) * _grows(order * cells.first * step)[1] / once
    for j, number in enumerate(cells.numbers, cells.first):
        tilt = _up(tilt * once)
        if number:
            mass = number * tilt
            total = _up(total + mass * gaussian_profile(spread, epsilon - top + j * step))
    return total


# ---------------------------------------------------------------- laws on a lattice


def response_law(loss: Fraction, answers: int) -> Law:
    """Randomised response with so many answers."""
    low, high = _falls(loss)
    least, most = 1 / (1 + (answers - 1) * high), 1 / (1 + (answers - 1) * low)
    ends = ((Fraction(0), (least, most)), (2 * loss, (least * low, most * high)))
    if answers == 2:
        return Law(loss, ends)
    others = (answers - 2) * least * low, (answers - 2) * most * high
    return Law(loss, (*ends, (loss, others)))


def laplace_law(loss: Fraction, distance: int) -> Law:
    """Discrete Laplace noise of so many steps, together of this loss."""
    require(0 < distance <= _MOST_CELLS // 2, "a distance is too large for a lattice")
    step = loss / distance
    ratio, rise = _falls(step), _rises(step)
    least, most = 1 / (1 + ratio[1]), 1 / (1 + ratio[0])
    masses = [(Fraction(0), (least, most))]
    for j in range(1, distance):
        low, high = _falls(j * step)
        masses.append((2 * j * step, (least * rise[0] * low, most * rise[1] * high)))
    low, high = _falls(loss)
    return Law(loss, (*masses, (2 * loss, (least * low, most * high))))


def range_law(loss: Fraction, points: int) -> Law:
    """Bounded range: the pair of one release, on so many points and one more."""
    require(0 < points <= _MOST_CELLS // 2, "a range has too many points for a lattice")
    ratio, whole = _falls(loss / points), _rises(loss)
    step = _rises(loss / points)
    least, most = step[0] / (1 + ratio[1]) / whole[1], step[1] / (1 + ratio[0]) / whole[0]
    masses = []
    for j in range(points + 1):
        low, high = _falls(j * loss / points)
        weight = 1 if j in (0, points) else 2
        masses.append((2 * j * loss / points, (weight * least * low, weight * most * high)))
    return Law(loss, tuple(masses))


def gaussian_law(variance: Fraction, distance: int, order: Fraction) -> Law:
    """Discrete Gaussian noise: the losses that matter at an order, and a bound for the others."""
    require(variance <= _MOST_CELLS, "a variance is too large for a lattice")
    reach = ceil(12 * sqrt_bounds(variance)[1]) + 2
    middle = -round(order * distance)
    weights = {
        k: _falls(k * k / (2 * variance))
        for k in {*range(middle - reach, middle + reach + 1), *range(-reach, reach + 1)}
    }
    near = range(-reach, reach + 1)
    whole = _down(sum((weights[k][0] for k in near), Fraction(0)))
    # beyond, terms fall at least by exp(-1/(2v)) to the power of 2 reach + 3
    beyond = _falls((reach + 1) ** 2 / (2 * variance))[1]
    beyond /= _rises((2 * reach + 3) / (2 * variance))[0]
    largest = _up(sum((weights[k][1] for k in near), 2 * beyond))
    first = middle - reach
    top = (distance * distance - 2 * distance * first) / (2 * variance)
    masses = tuple(
        (
            distance * (k - first) / variance,
            (_down(weights[k][0] / largest), _up(weights[k][1] / whole)),
        )
        for k in range(first, middle + reach + 1)
    )
    # beyond the listed ones tilted terms fall on, by exp(-fall) or more a step
    rest = Fraction(0)
    for k, side in ((middle + reach + 1, 1), (first - 1, -1)):
        fall = side * (order * distance / variance + Fraction(2 * k + side) / (2 * variance))
        require(fall > 0, "an order is odd")
        term = _grows(-k * k / (2 * variance) - order * distance * (k - first) / variance)[1]
        rest += _up(term / whole / _rises(fall)[0])
    return Law(top, masses, rest)


def finite_law(pairs: Sequence[tuple[Fraction, Fraction]]) -> Law:
    """Two finite laws: losses ln(p/q), rounded up, which can only add to delta."""
    ratios = [(p, p / q) for p, q in pairs if p and q]
    if not ratios:
        return Law(Fraction(0), ((Fraction(0), (Fraction(1), Fraction(1))),))
    places = [(p, ln_bounds(r)[1] if r != 1 else Fraction(0)) for p, r in ratios]
    top = _short(max(place for _, place in places)) + Fraction(1, 1 << 64)
    return Law(top, tuple((top - place, (p, p)) for p, place in places))


# ---------------------------------------------------------------- Gaussian losses


def gaussian_profile(spread: Fraction, x: Fraction) -> Fraction:
    """Not below P[N > x/m - m/2] - exp(x) P[N > x/m + m/2], m**2 the spread.

    >>> 0.126936 < gaussian_profile(Fraction(1), Fraction(1)) < 0.126937
    True
    """
    low, high = sqrt_bounds(spread)
    least = x / (high if x >= 0 else low) - high / 2
    most = x / (low if x >= 0 else high) + high / 2
    near, far = upper_tail(_short(least))[1], upper_tail(_short(most) + Fraction(1, 1 << 64))[0]
    if x > _FARTHEST:
        return near
    gain = near - (_grows(x)[0] * far if x > -_FARTHEST else Fraction(0))
    return min(max(gain, Fraction(0)), Fraction(1))


def upper_tail(x: Fraction) -> Interval:
    """Around P[N > x].

    >>> low, high = upper_tail(Fraction(1))
    >>> f"{float(low):.15f}", high - low < Fraction(1, 10**38)
    ('0.158655253931457', True)
    """
    if x < 0:
        low, high = upper_tail(-x)
        return 1 - high, 1 - low
    if x * x / 2 > _FARTHEST:
        return Fraction(0), _exp(-_FARTHEST)[1]
    raised = _falls(x * x / 2)
    density = raised[0] / sqrt_bounds(2 * _PI[1])[1], raised[1] / sqrt_bounds(2 * _PI[0])[0]
    if x > _FAR_TAIL:
        return density[0] * _continued(x, _LEVELS + 1), density[1] * _continued(x, _LEVELS)
    # x + x**3/3 + x**5/15 + ...: from a term on whose ratio is below 1/2, the rest is less than it
    point, square = _fixed(x, up=False), _fixed(x * x, up=False)
    summed, term, odd = 0, point, 1
    while term > 1 << 8 or 2 * square > odd << _POINT:
        summed += term
        odd += 2
        term = (term * square >> _POINT) // odd
    # a term lacks 2 units, and what earlier ones lacked times its growth, 2**46 at most in all
    most = summed + (odd << (_POINT - 200))
    half = Fraction(1, 2)
    sums = Fraction(summed, 1 << _POINT), Fraction(most, 1 << _POINT)
    return max(half - density[1] * sums[1], Fraction(0)), half - density[0] * sums[0]


def _continued(x: Fraction, levels: int) -> Fraction:
    """1/(x + 1/(x + 2/(x + ...))), stopped: not below it after an even number, not above if odd."""
    (top, bottom), (x_top, x_bottom) = [x.as_integer_ratio()] * 2
    for level in range(levels, 0, -1):
        top, bottom = x_top * top + level * bottom * x_bottom, x_bottom * top
    shifted = bottom << _POINT
    return Fraction(shifted // top if levels % 2 else -(-shifted // top), 1 << _POINT)


def step_spread(variance: Fraction) -> Fraction:
    """Not below the least x with x (1 - x/12) >= 1/v: mu**2 of discrete Gaussian noise a step."""
    require(3 * variance >= 1, "discrete Gaussian noise of so small a variance has no spread")
    found = _up(6 - 6 * sqrt_bounds(1 - 1 / (3 * variance))[0])
    require(0 < found <= 12 and found * (1 - found / 12) >= 1 / variance, "a spread is odd")
    return found


def range_spread(ranges: Sequence[tuple[Fraction, int]]) -> Fraction:
    """The variance of one Gaussian loss that dominates releases of these ranges."""
    spreads = [(length * length / 4, times) for length, times in ranges if length and times]
    if not spreads:
        return Fraction(0)
    most = max(spread for spread, _ in spreads)
    require(most <= 8, "a range is too long to count as spread")
    total = sum((spread * times for spread, times in spreads), Fraction(0))
    return 3 * most + total + most * ln_bounds(1 + total / most)[1]


# ---------------------------------------------------------------- numbers


def _exp(x: Fraction) -> Interval:
    """Around exp(x), as short numbers: exp(x - n ln 2) 2**n.

    >>> low, high = _exp(Fraction(-1000))
    >>> 0 < high - low < high / 10**40 and high.numerator.bit_length() <= 240
    True
    """
    require(abs(x) <= _FARTHEST, "an exponent is out of range")
    n = round(x / _LN2[0])
    low, high = exp_bounds(x - n * _LN2[0])
    margin = 1 + Fraction(abs(n) + 1, 10**62)  # ln 2 is known to 10**-63
    return _down(low / margin) * _two(n), _up(high * margin) * _two(n)


def _falls(x: Fraction) -> Interval:
    """Around exp(-x) for x >= 0."""
    if x == 0:
        return Fraction(1), Fraction(1)
    low, high = _exp(-min(x, _FARTHEST))
    return (low if x <= _FARTHEST else Fraction(0)), min(high, Fraction(1))


def _rises(x: Fraction) -> Interval:
    """Around 1 - exp(-x) for x > 0; for small x, x - x**2/2 and x are sharper."""
    low, high = _falls(x)
    return max(1 - high, x - x * x / 2), min(1 - low, x)


def _grows(x: Fraction) -> Interval:
    """Around exp(x), of either sign."""
    if x <= 0:
        return _falls(-x)
    return _exp(x)


def _power_up(x: Fraction, times: int) -> Fraction:
    """Not below x**times."""
    total = Fraction(1)
    while times:
        if times & 1:
            total = _up(total * x)
        times >>= 1
        x = _up(x * x) if times else x
    return total


def _up(x: Fraction) -> Fraction:
    """Not below x > 0, and of 240 significant bits."""
    shift = 240 + x.denominator.bit_length() - x.numerator.bit_length()
    if shift <= 0:
        return Fraction(-(-x.numerator // (x.denominator << -shift)) << -shift)
    return Fraction(-((-x.numerator << shift) // x.denominator), 1 << shift)


def _down(x: Fraction) -> Fraction:
    """Not above x >= 0, and of 240 significant bits."""
    shift = max(240 + x.denominator.bit_length() - x.numerator.bit_length(), 0)
    return Fraction((x.numerator << shift) // x.denominator, 1 << shift)


def _short(x: Fraction) -> Fraction:
    """Rounded down."""
    return Fraction(floor(x * (1 << 64)), 1 << 64)


def _fixed(x: Fraction, *, up: bool) -> int:
    scaled = x * (1 << _POINT)
    return ceil(scaled) if up else floor(scaled)


def _log2(x: Fraction) -> int:
    """About the binary logarithm of x > 0: not below it, and by less than 2 above."""
    return x.numerator.bit_length() - x.denominator.bit_length() + 1


def _two(exponent: int) -> Fraction:
    return Fraction(1 << exponent) if exponent >= 0 else Fraction(1, 1 << -exponent)
