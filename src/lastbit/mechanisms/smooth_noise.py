"""Noise scaled to a smooth bound on the local sensitivity, and how much of it each law needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite

from flint import arb

from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact import Ball, Number, arb_of, lower, positive, upper, working_precision
from lastbit.laws import (
    Clamped,
    Ideal,
    IdealCauchy,
    IdealGaussian,
    IdealLaplace,
    Law,
    OnGrid,
    PolynomialTail,
    Rounded,
    StudentT,
)
from lastbit.mechanisms.lattice import lattice, nearest
from lastbit.mechanisms.mechanism import level, set_fields
from lastbit.mechanisms.stable_value import check_same
from lastbit.privacy import (
    AS_DECLARED,
    ApproxDP,
    ApproxLoss,
    Neighbours,
    PureDP,
    black_box,
    check_neighbours,
    least_noise,
)
from lastbit.sampling import drawn_fresh, rounded_sampler
from lastbit.sensitivity import LEAST_BETA, SmoothBound

_PRECISION = 256
_LEAST_POWER = Fraction(1, 16)
_LARGEST_LOSS = 100_000


@dataclass(frozen=True, slots=True)
class Admissible:
    """A noise law Z, and the alpha and beta for which f + (S/alpha) Z is private.

    Law      Z has density h. For neighbours x, y let f and S be a value and a beta-smooth bound on
             its local sensitivity: |f(x) - f(y)| <= min(S(x), S(y)), |ln S(x)/S(y)| <= beta
    Theorem  A(x) = f(x) + (S(x)/alpha) Z promises (epsilon, delta). Go from A(x) to A(y) in two
             steps: first the width changes from S(x)/alpha to S(y)/alpha (*dilation* by a factor
             exp(t), |t| <= beta), then the place from f(x) to f(y) (*sliding*, by at most
             S(y)/(S(y)/alpha) = alpha widths). If dilation costs (e2, d2) and sliding (e1, d1),
             P_x <= exp(e2) P_middle + d2 and P_middle <= exp(e1) P_y + d1, together
             (e1 + e2, d2 + exp(e2) d1). What each noise pays, with g = -ln h:
             *Polynomial tail* h ~ 1/(1+|z|**gamma): |g'| <= c = (gamma-1)**((gamma-1)/gamma), and
             1 - z g'(z) lies in (1-gamma, 1], so epsilon = c alpha + max(1, gamma-1) beta, delta 0.
             Cauchy is gamma = 2: epsilon = alpha + beta.
             *Student's t* of v degrees: |g'| <= (v+1)/(2 sqrt v), 1 - z g'(z) in (-v, 1]:
             epsilon = alpha (v+1)/(2 sqrt v) + max(1, v) beta, delta 0.
             *Laplace*: sliding costs alpha. A dilation by exp(t) to a wider law costs t <= beta; to
             a narrower one the ratio exceeds exp(e2) exactly where |z| > T = (e2+t)/(exp(t)-1), and
             d2 = exp(-T) - exp(e2) exp(-T exp(t)) = exp(-T) (1 - exp(-t)), which grows with t.
             *Gaussian*: sliding by a has d1 = Q(e1/a - a/2) - exp(e1) Q(e1/a + a/2), Q the upper
             tail, which grows with a. A dilation to a wider law costs t <= beta; to a narrower one
             d2 = 2 Q(T) - 2 exp(e2) Q(T exp(t)), T**2 = 2 (e2+t)/(exp(2t)-1). It grows with t: the
             map z -> a z + noise of variance 1-a**2 takes a standard law to itself and the law of
             width exp(-t) to a wider one, so no test does better on the wider one.
    Source   Nissim, Raskhodnikova, Smith 2007 (Lemma 2.6, as quoted in paper 004); Bun, Steinke
             2019 for Student's t
    Differs  the constants are the exact ones of each step: for Cauchy noise epsilon = alpha + beta
             where the source has alpha = beta = epsilon/6. Lemma 2.6 adds the two halves of delta
             plainly; the second has to carry exp(epsilon/2), as above
    Checked  tests/mechanisms/test_admissible.py; proof: docs/theory/smooth-sensitivity.md
    """

    law: Ideal
    alpha: Fraction
    beta: Fraction
    epsilon: Fraction
    delta: Fraction


_REMEDY = 'pass "cauchy", "student", "laplace", "gaussian", StudentT(...) or PolynomialTail(...)'


def noise_law(noise: object) -> Ideal:
    """The ideal law that a name or a law object stands for."""
    match noise:
        case "cauchy":
            return IdealCauchy()
        case "student":
            return StudentT(3)
        case "laplace":
            return IdealLaplace()
        case "gaussian":
            return IdealGaussian()
        case PolynomialTail(gamma=gamma):
            power = gamma - 1
        case StudentT(degrees=degrees):
            power = degrees
        case IdealCauchy() | IdealLaplace() | IdealGaussian():
            return noise
        case _:
            raise WrongType("noise", problem="is not known to be admissible", remedy=_REMEDY)
    if power < _LEAST_POWER:  # a draw would have thousands of digits and take minutes
        raise InvalidParameter(
            "noise",
            problem="has too heavy a tail",
            remedy="pass StudentT(degrees) with degrees, or PolynomialTail(gamma) with gamma - 1, "
            f"from {_LEAST_POWER} up",
        )
    return noise


def admissible(
    noise: object, *, epsilon: Number, delta: Number | None = None, share: Number = "1/2"
) -> Admissible:
    """The largest alpha and beta, rounded down, for a noise and a promise.

    `share` is the part of epsilon that pays for sliding; the rest pays for dilation.

    >>> admissible("cauchy", epsilon=1)
    Admissible(law=IdealCauchy(), alpha=Fraction(1, 2), beta=Fraction(1, 2), ...)
    """
    law = noise_law(noise)
    loss = positive(epsilon, "epsilon")
    part = level(share, "share", remedy='pass "1/2"')
    sliding, dilation = loss * part, loss * (1 - part)
    chance = _delta(delta, law)
    match law:
        case IdealLaplace():
            alpha = sliding
            beta = min(dilation, _largest(laplace_dilation, dilation, chance))
        case IdealGaussian():
            alpha, beta = _gaussian(sliding, dilation, chance)
        case IdealCauchy():
            alpha, beta = sliding, dilation
        case PolynomialTail(gamma=gamma):
            # the greatest slope of ln(1+|z|**gamma)
            alpha = sliding / _upper(lambda: arb_of(gamma - 1) ** arb_of((gamma - 1) / gamma))
            beta = dilation / max(Fraction(1), gamma - 1)
        case StudentT(degrees=degrees):
            alpha = sliding / _upper(lambda: arb_of(degrees + 1) / (2 * arb_of(degrees).sqrt()))
            beta = dilation / max(Fraction(1), degrees)
        case _:
            raise AssertionError("noise_law lets no other law through")
    return Admissible(law, alpha, beta, loss, chance)


def _delta(delta: Number | None, law: Ideal) -> Fraction:
    needs = isinstance(law, IdealLaplace | IdealGaussian)
    if delta is None:
        if needs:
            raise InvalidParameter(
                "delta",
                problem="is needed for this noise",
                remedy='pass {delta}, or "cauchy"',
                delta="1e-6",
            )
        return Fraction(0)
    if not needs:
        raise InvalidParameter(
            "delta", problem="is of no use to this noise", remedy='leave it out, or "laplace"'
        )
    return level(delta, "delta", remedy='pass, say, "1e-6"')


def _upper(number: Callable[[], arb]) -> Fraction:
    """A rational not below a number."""
    with working_precision(_PRECISION):
        return -Fraction(lower(Ball(-number())))


def laplace_dilation(beta: arb, epsilon: arb) -> arb:
    """The delta of making Laplace noise narrower by exp(-beta), at this epsilon."""
    beyond = (epsilon + beta) / beta.expm1()
    return (-beyond).exp() * -(-beta).expm1()


def gaussian_dilation(beta: arb, epsilon: arb) -> arb:
    """The delta of making Gaussian noise narrower by exp(-beta), at this epsilon."""
    beyond = ((epsilon + beta) / (2 * beta).expm1()).sqrt()  # T/sqrt(2)
    return beyond.erfc() - epsilon.exp() * (beyond * beta.exp()).erfc()


def gaussian_sliding(alpha: arb, epsilon: arb) -> arb:
    """The delta of moving Gaussian noise by alpha of its widths, at this epsilon."""
    here, there = epsilon / alpha - alpha / 2, epsilon / alpha + alpha / 2
    root = arb(2).sqrt()
    return ((here / root).erfc() - epsilon.exp() * (there / root).erfc()) / 2


def _gaussian(sliding: Fraction, dilation: Fraction, delta: Fraction) -> tuple[Fraction, Fraction]:
    """Half of delta for each step; the second step's half is counted exp(dilation) times."""
    if dilation > _LARGEST_LOSS:
        raise InvalidParameter("epsilon", problem="is too large", remedy="pass less than 100000")
    with working_precision(_PRECISION):
        mantissa, exponent = (arb_of(delta / 2) * (-arb_of(dilation)).exp()).lower().man_exp()
    second = int(mantissa) * Fraction(2) ** int(exponent)  # no float: it may be below them all
    alpha = _largest(gaussian_sliding, sliding, second)
    return alpha, min(dilation, _largest(gaussian_dilation, dilation, delta / 2))


def _largest(cost: Callable[[arb, arb], arb], epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest parameter, up to 2**-40, whose cost is certainly at most delta."""

    def meets(inverse: Fraction) -> bool:
        with working_precision(_PRECISION):
            return bool(cost(arb_of(1 / inverse), arb_of(epsilon)) <= arb_of(delta))

    return 1 / least_noise(meets, start=1 / epsilon)


@dataclass(frozen=True, slots=True, init=False)
class SmoothNoise:
    """Adds ideal real noise as wide as a smooth bound asks for, then rounds to a public grid.

    Law      release(f, S) = grid * round((f + (S/alpha) Z)/grid), Z the ideal law of `noise` on the
             real line, drawn exactly (`sampling/rounded.py`); then moved into the range of the
             statistic if the bound knows it
    Theorem  f + (S/alpha) Z promises (epsilon, delta) for S a beta-smooth upper bound on the local
             sensitivity of f: see `Admissible`. Rounding and moving see nothing but that number
    Source   Nissim, Raskhodnikova, Smith 2007, as in paper 004; Bun, Steinke 2019
    Differs  the law is that of the real-valued mechanism to the last bit, S is a rational that is
             beta-smooth as computed (`sensitivity/smooth.py`), the grid depends on no data
    Checked  tests/mechanisms/test_smooth_noise.py; proof: docs/theory/smooth-sensitivity.md

    `noise` is "student" (Student's t of 3 degrees, or StudentT(degrees)), "cauchy" or
    PolynomialTail(gamma), all three pure; "laplace" or "gaussian", which need delta. Cauchy noise
    has the least typical error and the heaviest tail. The width of the noise depends on the data:
    `accuracy` is a secret of the data's holder, like the data.

    >>> from lastbit.privacy import CHANGE_ONE
    >>> from lastbit.sensitivity import smooth_sensitivity
    >>> noise = SmoothNoise(epsilon=1, noise="cauchy", grid="1/16", neighbours=CHANGE_ONE)
    >>> noise.alpha, noise.beta
    (Fraction(1, 2), Fraction(1, 2))
    >>> ages = [23, 35, 37, 41, 44, 45, 52, 61]
    >>> bound = smooth_sensitivity("median", ages, beta=noise.beta, lower=0, upper=120)
    >>> 0 <= noise.release(bound) <= 120
    True
    """

    admissible: Admissible
    grid: Fraction
    neighbours: Neighbours

    def __init__(
        self,
        *,
        epsilon: Number,
        grid: Number,
        delta: Number | None = None,
        noise: str | Ideal = "student",
        share: Number = "1/2",
        neighbours: Neighbours = AS_DECLARED,
    ) -> None:
        if isinstance(grid, str) and grid == "auto":
            raise InvalidParameter(
                "grid", problem="cannot follow the data", remedy='pass a power of two, say "1/1024"'
            )
        chosen = admissible(noise, epsilon=epsilon, delta=delta, share=share)
        if chosen.beta < LEAST_BETA:
            raise InvalidParameter(
                "epsilon",
                problem="is too small for this noise: no bound is smooth enough",
                remedy="pass a larger one, or use Laplace with global_sensitivity",
            )
        step = lattice(grid, noise=Fraction(1), dimension=1).step
        set_fields(self, admissible=chosen, grid=step, neighbours=check_neighbours(neighbours))

    @property
    def alpha(self) -> Fraction:
        """The noise is S/alpha wide."""
        return self.admissible.alpha

    @property
    def beta(self) -> Fraction:
        """How smooth the bound must be."""
        return self.admissible.beta

    @property
    def guarantee(self) -> PureDP | ApproxDP:
        """What one release promises."""
        chosen = self.admissible
        if chosen.delta == 0:
            return PureDP(chosen.epsilon, neighbours=self.neighbours)
        return ApproxDP(chosen.epsilon, chosen.delta, neighbours=self.neighbours)

    @property
    def loss(self) -> ApproxLoss:
        """What one release loses, for a `Profile`."""
        return black_box(self.guarantee)

    def release(self, bound: SmoothBound) -> float:
        """A private version of the statistic's value."""
        self._check(bound)
        limits = self._limits(bound)
        if bound.bound == 0:  # then S is 0 for all data, and there is one possible value
            return nearest(_moved(round(bound.value / self.grid), limits) * self.grid)
        sampler = rounded_sampler(
            self.admissible.law, bound.value, bound.bound / self.alpha, self.grid
        )
        steps: int = drawn_fresh(sampler, None)
        return nearest(_moved(steps, limits) * self.grid)

    def law(self, bound: SmoothBound) -> OnGrid:
        """The exact law of release(bound): as secret as the data."""
        self._check(bound)
        scale, limits = bound.bound / self.alpha, self._limits(bound)
        if scale == 0:
            only = _moved(round(bound.value / self.grid), limits)
            scale, limits = Fraction(1), (only, only)
        ideal: Law = Rounded(self.admissible.law, bound.value, scale, self.grid)
        return OnGrid(ideal if limits is None else Clamped(ideal, *limits), self.grid)

    def accuracy(self, beta: Number, bound: SmoothBound) -> Fraction:
        """An error not exceeded with probability 1 - beta: as secret as the data, never publish it.

        Theorem  P[abs(Z) > z] <= beta for z the quantile of 1 - beta/2, the law being symmetric;
                 rounding adds at most half a step. Moving into the range takes the result nearer
                 to the value f, unless f lies beyond the last step in it: then it is off by less
                 than the rest of the range there. Nothing is off by more than the whole range
        """
        self._check(bound)
        chance = 1 - level(beta, "beta") / 2
        with working_precision(128):
            wide = self.admissible.law.quantile(chance).enclosure * arb_of(bound.bound / self.alpha)
            error = _not_below(wide) + self.grid / 2
        limits = self._limits(bound)
        if limits is None or bound.lower is None or bound.upper is None:
            return error
        low, high = (step * self.grid for step in limits)
        error = max(error, low - bound.lower, bound.upper - high)
        return min(error, bound.upper - bound.lower)

    def _limits(self, bound: SmoothBound) -> tuple[int, int] | None:
        """The least and the greatest step within the statistic's range, if there is one."""
        if bound.lower is None or bound.upper is None:
            return None
        return steps_between(bound.lower, bound.upper, self.grid)

    def _check(self, bound: object) -> None:
        if not isinstance(bound, SmoothBound):
            raise WrongType(
                "bound",
                problem="is not a smooth bound",
                remedy="pass smooth_sensitivity(...) or from_distance(...)",
            )
        if bound.beta > self.beta:
            raise InvalidParameter(
                "bound", problem="is not smooth enough", remedy="compute it with this beta"
            )
        check_same(bound.neighbours, self.neighbours)


def steps_between(lower: Fraction, upper: Fraction, grid: Fraction) -> tuple[int, int]:
    """The least and the greatest step of a grid between two numbers."""
    low, high = -(-lower // grid), upper // grid
    if low > high:
        raise InvalidParameter(
            "grid", problem="has no point between the bounds", remedy="pass a finer grid"
        )
    return low, high


def _moved(steps: int, limits: tuple[int, int] | None) -> int:
    return steps if limits is None else min(max(steps, limits[0]), limits[1])


def _not_below(ball: arb) -> Fraction:
    """A rational not below anything in a ball: a float if there is one."""
    number = upper(ball)
    if isfinite(number):
        return Fraction(number)
    mantissa, exponent = ball.upper().man_exp()
    return int(mantissa) * Fraction(2) ** int(exponent)
