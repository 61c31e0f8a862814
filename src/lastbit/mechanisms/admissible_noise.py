"""Which noise, how wide, for a smooth bound: the pairs (alpha, beta) that keep a promise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact import Ball, Number, arb_of, lower, positive, whole, working_precision
from lastbit.laws import Ideal, IdealCauchy, IdealGaussian, IdealLaplace, PolynomialTail, StudentT
from lastbit.mechanisms.mechanism import level
from lastbit.privacy import least_noise

_PRECISION = 256
_LEAST_POWER = Fraction(1, 16)
_LARGEST_LOSS = 100_000
_PIECES = 64
_SHARES = tuple(Fraction(part, 64) for part in range(1, 64))


@dataclass(frozen=True, slots=True)
class Admissible:
    """A noise law Z, and the alpha and beta for which f + (S/alpha) Z is private.

    Law      Z has density h. For neighbours x, y let f and S be a value and a beta-smooth bound on
             its local sensitivity: |f(x) - f(y)| <= min(S(x), S(y)), |ln S(x)/S(y)| <= beta
    Theorem  A(x) = f(x) + (S(x)/alpha) Z promises (epsilon, delta).
             *Student's t* of v degrees, both changes at once, exactly: with sigma = S sqrt(v)/alpha
             the density at z is P**((v+1)/2) sigma**((v-1)/2) times a constant, where P =
             sigma/((z-f)**2 + sigma**2) is the Poisson kernel of the upper half plane at
             w = f + i sigma. The greatest ln of a ratio of two such kernels is the hyperbolic
             distance d of the two points, cosh d = 1 + |w - w'|**2/(2 sigma sigma'), so the
             greatest loss of either order is (v+1)/2 d + |v-1|/2 t, t = |ln S(x)/S(y)|. With
             |f(x) - f(y)| <= min(S(x), S(y)), cosh d <= cosh t + exp(-t) alpha**2/(2v). The loss is
             at most epsilon for all t in [0, beta] exactly if alpha**2/(2v) <= g(t) =
             exp(t) (cosh L - cosh t), L = (2 epsilon - |v-1| t)/(v+1), for all of them. With
             c = |v-1|/(v+1) < 1, exp(-2t) g'(t) = exp(-t) (cosh L - c sinh L) - 1 has the slope
             -exp(-t) (1 - c**2) cosh L < 0: g rises, then falls, and is least at an end. So
             alpha**2 = 2 v min(g(0), g(beta)), for max(1, v) beta < epsilon; delta 0.
             Cauchy is v = 1, g(beta) = exp(beta) (cosh epsilon - cosh beta).
             *The others* go from A(x) to A(y) in two steps: first the width changes from S(x)/alpha
             to S(y)/alpha (*dilation* by a factor exp(t), |t| <= beta), then the place from f(x) to
             f(y) (*sliding*, by at most S(y)/(S(y)/alpha) = alpha widths). If dilation costs
             (e2, d2) and sliding (e1, d1), P_x <= exp(e2) P_middle + d2 and P_middle <= exp(e1) P_y
             + d1, together (e1 + e2, d2 + exp(e2) d1). What each noise pays, with g = -ln h:
             *Polynomial tail* h ~ 1/(1+|z|**gamma): |g'| <= c = (gamma-1)**((gamma-1)/gamma), and
             1 - z g'(z) lies in (1-gamma, 1], so epsilon = c alpha + max(1, gamma-1) beta, delta 0.
             *Laplace*: sliding costs alpha. A dilation by exp(t) to a wider law costs t <= beta; to
             a narrower one the ratio exceeds exp(e2) exactly where |z| > T = (e2+t)/(exp(t)-1), and
             d2 = exp(-T) - exp(e2) exp(-T exp(t)) = exp(-T) (1 - exp(-t)), which grows with t.
             *Gaussian*: sliding by a has d1 = Q(e1/a - a/2) - exp(e1) Q(e1/a + a/2), Q the upper
             tail, which grows with a. A dilation to a wider law costs t <= beta; to a narrower one
             d2 = 2 Q(T) - 2 exp(e2) Q(T exp(t)), T**2 = 2 (e2+t)/(exp(2t)-1). It grows with t: the
             map z -> a z + noise of variance 1-a**2 takes a standard law to itself and the law of
             width exp(-t) to a wider one, so no test does better on the wider one.
             For Laplace and Gaussian noise beta is then enlarged as far as the delta of both steps
             at once allows: see `joint_delta`.
             *d numbers*, d independent draws of Z, S a bound for all of them in the L1 norm (also
             in the L2 norm for Gaussian noise):
             Student's t: coordinate i moves by a_i, their sum is at most alpha, and its hyperbolic
             distance d_i has cosh d_i = cosh t + cosh s_i - 1, s_i = 2 asinh(exp(-t/2) a_i/(2
             sqrt(v))). As cosh(sqrt(x)) - 1 is a power series with coefficients >= 0, it is
             superadditive, so d_i <= sqrt(t**2 + s_i**2). asinh is concave: the s_i add up to at
             most s = 2 d asinh(exp(-t/2) alpha/(2 d sqrt(v))). The root is convex in s_i: the d_i
             add up to at most (d-1) t + sqrt(t**2 + s**2). The loss, (v+1)/2 times that and d
             |v-1|/2 t, is at most epsilon if alpha <= G(t) = 2 d sqrt(v) exp(t/2)
             sinh(sqrt(R**2 - t**2)/(2d)), R = (2 epsilon - d |v-1| t)/(v+1) - (d-1) t. R - t and
             R + t are straight, the root of their product is concave, so is ln sinh: ln G is
             concave, and least at t = 0 or beta. alpha = min(G(0), G(beta)), for
             d max(1, v) beta < epsilon; G(0) is the truth, where all coordinates move alike.
             Polynomial tail: c alpha + d max(1, gamma-1) beta.
             Laplace: sliding costs alpha. Dilation to a wider law costs d t; to a narrower one the
             ratio exceeds exp(e2) where the L1 norm exceeds T = (e2 + d t)/(exp(t) - 1), and that
             norm has Erlang's law: d2 = E(T) - exp(e2) E(T exp(t)), E its tail. It grows with t,
             since for every T the second term falls.
             Gaussian: sliding depends on the L2 norm alone, which is at most the L1 norm. Dilation
             to a wider law costs d t; to a narrower one likewise, with the chi-squared law of d
             degrees and T**2 = 2 (e2 + d t)/(exp(2t) - 1).
    Source   Nissim, Raskhodnikova, Smith 2007 (Lemma 2.6, as quoted in paper 004); Bun, Steinke
             2019 for Student's t
    Differs  for Student's t and Cauchy no larger alpha will do for this beta; for the others the
             constants are the exact ones of each step. For epsilon = 1 Cauchy noise has alpha
             1.04 with beta 0.73, where the source has 1/6 for both. Lemma 2.6 adds the two halves
             of delta plainly; the second has to carry exp(epsilon/2), as above
    Checked  tests/mechanisms/test_admissible.py; proof: docs/theory/smooth-sensitivity.md
    """

    law: Ideal
    alpha: Fraction
    beta: Fraction
    epsilon: Fraction
    delta: Fraction
    dimension: int = 1


_MOST_DIMENSIONS = 1 << 16
_REMEDY = 'pass "cauchy", "student", "laplace", "gaussian", StudentT(...) or PolynomialTail(...)'


def noise_law(noise: object) -> Ideal:
    """The ideal law that a name or a law object stands for."""
    if not isinstance(noise, str | Ideal):  # an array compared with a name is an array
        raise WrongType("noise", problem="is not known to be admissible", remedy=_REMEDY)
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
    noise: object,
    *,
    epsilon: Number,
    delta: Number | None = None,
    share: Number = "auto",
    dimension: int = 1,
) -> Admissible:
    """The largest alpha and beta, rounded down, for a noise and a promise.

    `dimension` is how many numbers are released together, each with its own draw.

    `share` is the part of epsilon that is not left to dilation: (1 - share) epsilon would pay for a
    change of width by exp(beta) alone. "auto" is 1/2; for Cauchy noise and Student's t it is the
    multiple of 1/64 with the least noise for evenly spread records. It never depends on data.

    >>> chosen = admissible("cauchy", epsilon=1)
    >>> round(float(chosen.alpha), 4), round(float(chosen.beta), 4)
    (1.0422, 0.7344)
    >>> chosen = admissible("cauchy", epsilon=1, dimension=4)
    >>> round(float(chosen.alpha), 4), round(float(chosen.beta), 4)
    (0.5761, 0.1484)
    """
    law = noise_law(noise)
    loss, numbers = positive(epsilon, "epsilon"), whole(dimension, "dimension", least=1)
    if numbers > _MOST_DIMENSIONS:
        raise InvalidParameter(
            "dimension", problem="is too large", remedy=f"pass at most {_MOST_DIMENSIONS}"
        )
    if isinstance(share, str) and share == "auto":
        part = None
    else:
        part = level(share, "share", remedy='pass "1/2", or "auto"')
    if isinstance(law, IdealLaplace | IdealGaussian):
        if delta is None:
            raise InvalidParameter(
                "delta",
                problem="is needed for this noise",
                remedy="pass {delta}, or {noise}",
                delta="1e-6",
                noise="cauchy",
            )
        chance = level(delta, "delta", remedy='pass, say, "1e-6"')
    elif delta is None:
        chance = Fraction(0)
    else:
        raise InvalidParameter(
            "delta",
            problem="is of no use to this noise",
            remedy="leave it out, or pass {noise}",
            noise="laplace",
        )
    degrees = _degrees(law)
    if degrees is not None:
        alpha, beta = _student(degrees, loss, part, numbers)
        return Admissible(law, alpha, beta, loss, chance, numbers)
    sliding = loss * (Fraction(1, 2) if part is None else part)
    dilation = loss - sliding
    match law:
        case IdealLaplace():
            alpha = sliding
            beta = min(dilation / numbers, _narrowed(laplace_dilation, numbers, dilation, chance))
        case IdealGaussian():
            alpha, beta = _gaussian(sliding, dilation, chance, numbers)
        case PolynomialTail(gamma=gamma):
            # the greatest slope of ln(1+|z|**gamma)
            alpha = sliding / _upper(lambda: arb_of(gamma - 1) ** arb_of((gamma - 1) / gamma))
            beta = dilation / max(Fraction(1), gamma - 1) / numbers
        case _:
            raise AssertionError("noise_law lets no other law through")
    if numbers == 1 and chance:
        beta = _widened(law, alpha, beta, dilation, (loss, chance))
    return Admissible(law, alpha, beta, loss, chance, numbers)


def _degrees(law: Ideal) -> Fraction | None:
    """The degrees of freedom, if the law is a Student's t under any of its names."""
    match law:
        case StudentT(degrees=degrees):
            return degrees
        case IdealCauchy() | PolynomialTail(gamma=2):
            return Fraction(1)
        case _:
            return None


def _student(
    degrees: Fraction, loss: Fraction, part: Fraction | None, dimension: int
) -> tuple[Fraction, Fraction]:
    """The largest alpha for the beta of this share, or of the best share."""
    with working_precision(_PRECISION):
        choices = [
            (
                joint_alpha(degrees, loss, beta)
                if dimension == 1
                else product_alpha(degrees, loss, beta, dimension),
                beta,
            )
            for share in (_SHARES if part is None else (part,))
            for beta in [loss * (1 - share) / max(Fraction(1), degrees) / dimension]
        ]
        scale = arb_of(loss) ** 2  # so that no float is too small
        alpha, beta = max(choices, key=lambda pair: float(pair[0] / evenly_spread(pair[1]) / scale))
        return Fraction(lower(alpha)), beta


def evenly_spread(beta: Fraction) -> arb:
    """About the smooth sensitivity of the median of evenly spread records, in their distances.

    It is the greatest of (k+1) exp(-beta k): at k + 1 = 1/beta, or at k = 0.
    """
    return (arb_of(beta) - 1).exp() / arb_of(beta) if beta < 1 else arb(1)


def joint_alpha(degrees: Fraction, epsilon: Fraction, beta: Fraction) -> arb:
    """The largest alpha of Student's t for a pure epsilon and beta < epsilon/max(1, degrees).

    2 g(t) = 4 exp(t) sinh((L+t)/2) sinh((L-t)/2) has no differences of large numbers; beyond
    64 an argument counts as 64, which makes alpha smaller, and large enough for any purpose.
    """
    values = []
    for t in (Fraction(0), beta):
        reach = (2 * epsilon - abs(degrees - 1) * t) / (degrees + 1)
        more, less, grown = (
            arb_of(min(part, Fraction(64))) for part in ((reach + t) / 2, (reach - t) / 2, t)
        )
        values.append(4 * arb_of(degrees) * grown.exp() * more.sinh() * less.sinh())
    return values[0].min(values[1]).sqrt()


def product_alpha(degrees: Fraction, epsilon: Fraction, beta: Fraction, dimension: int) -> arb:
    """min(G(0), G(beta)) of the theorem on d numbers, for d max(1, degrees) beta < epsilon.

    Beyond 64 an argument of sinh counts as 64, and t as 64, which makes alpha smaller.
    """
    values = []
    for t in (Fraction(0), beta):
        reach = (2 * epsilon - dimension * abs(degrees - 1) * t) / (degrees + 1)
        reach -= (dimension - 1) * t
        root = arb_of((reach - t) * (reach + t)).sqrt() / (2 * dimension)
        grown = arb_of(min(t, Fraction(64)) / 2)
        values.append(
            2 * dimension * arb_of(degrees).sqrt() * grown.exp() * root.min(arb(64)).sinh()
        )
    return values[0].min(values[1])


def _upper(number: Callable[[], arb]) -> Fraction:
    """A rational not below a number."""
    with working_precision(_PRECISION):
        return -Fraction(lower(Ball(-number())))


def laplace_dilation(beta: arb, epsilon: arb, dimension: int = 1) -> arb:
    """The delta of making Laplace noise narrower by exp(-beta), at this epsilon."""
    beyond = (epsilon + dimension * beta) / beta.expm1()
    if dimension == 1:
        return (-beyond).exp() * -(-beta).expm1()
    return _tails(beyond, beyond * beta.exp(), arb(dimension), epsilon)


def gaussian_dilation(beta: arb, epsilon: arb, dimension: int = 1) -> arb:
    """The delta of making Gaussian noise narrower by exp(-beta), at this epsilon."""
    square = (epsilon + dimension * beta) / (2 * beta).expm1()  # T**2/2
    if dimension == 1:
        beyond = square.sqrt()
        return beyond.erfc() - epsilon.exp() * (beyond * beta.exp()).erfc()
    return _tails(square, square * (2 * beta).exp(), arb(dimension) / 2, epsilon)


def _tails(here: arb, there: arb, shape: arb, epsilon: arb) -> arb:
    """P[G > here] - exp(epsilon) P[G > there], G of the gamma law of a shape."""
    mine = here.gamma_upper(shape, 1)
    return mine - epsilon.exp() * there.gamma_upper(shape, 1)


def _narrowed(
    cost: Callable[[arb, arb, int], arb], dimension: int, epsilon: Fraction, delta: Fraction
) -> Fraction:
    return _largest(lambda beta, loss: cost(beta, loss, dimension), epsilon, delta)


def gaussian_sliding(alpha: arb, epsilon: arb) -> arb:
    """The delta of moving Gaussian noise by alpha of its widths, at this epsilon."""
    here, there = epsilon / alpha - alpha / 2, epsilon / alpha + alpha / 2
    root = arb(2).sqrt()
    return ((here / root).erfc() - epsilon.exp() * (there / root).erfc()) / 2


def _gaussian(
    sliding: Fraction, dilation: Fraction, delta: Fraction, dimension: int
) -> tuple[Fraction, Fraction]:
    """Half of delta for each step; the second step's half is counted exp(dilation) times."""
    if dilation > _LARGEST_LOSS:
        raise InvalidParameter("epsilon", problem="is too large", remedy="pass less than 100000")
    with working_precision(_PRECISION):
        mantissa, exponent = (arb_of(delta / 2) * (-arb_of(dilation)).exp()).lower().man_exp()
    second = int(mantissa) * Fraction(2) ** int(exponent)  # no float: it may be below them all
    alpha = _largest(gaussian_sliding, sliding, second)
    beta = _narrowed(gaussian_dilation, dimension, dilation, delta / 2)
    return alpha, min(dilation / dimension, beta)


def _widened(
    law: Ideal, alpha: Fraction, beta: Fraction, most: Fraction, promise: tuple[Fraction, Fraction]
) -> Fraction:
    """The largest beta up to a thousandth, at least this one, for which `joint_delta` will do."""
    epsilon, delta = promise

    def meets(wider: Fraction) -> bool:
        with working_precision(128):
            return bool(joint_delta(law, alpha, wider, epsilon) <= arb_of(delta))

    high = min(most, 2 * beta)
    if meets(high):
        return high
    for _ in range(10):
        middle = (beta + high) / 2
        beta, high = (middle, high) if meets(middle) else (beta, middle)
    return beta


def joint_delta(law: Ideal, alpha: Fraction, beta: Fraction, epsilon: Fraction) -> arb:
    """A bound on the delta of Laplace or Gaussian noise at epsilon, place and width at once.

    Theorem  delta is the greatest excess, the integral of max(0, p - exp(epsilon) q), of two laws
             of widths s and s exp(t), |t| <= beta, whose places are apart by at most alpha times
             the lesser width. *Farther is worse*: the excess is 1 less the integral over u of the
             length that {p > u} and {exp(epsilon) q > u} share; both are intervals about the
             places, so it does not grow with their distance. *A piece a <= t <= b at once*: with
             p = h and q_t the law of width exp(t), q_t >= exp(a-b) q_a at every point, so the
             excess is at most that of q_a at epsilon - (b-a). With p_t of width exp(t) and q = h
             likewise p_t <= exp(b-a) p_b, and the excess is at most exp(b-a) times that of p_b at
             epsilon - (b-a). So a few points prove it for all t
    Checked  tests/mechanisms/test_admissible.py
    """
    excess = laplace_excess if isinstance(law, IdealLaplace) else gaussian_excess
    return worst_excess(excess, alpha, beta, epsilon)


def worst_excess(
    excess: Callable[[arb, arb, arb], arb],
    alpha: Fraction,
    beta: Fraction,
    epsilon: Fraction,
    pieces: int = _PIECES,
) -> arb:
    """The theorem of `joint_delta`, for any density that is symmetric and falls on either side."""
    step = beta / pieces
    less, worst = arb_of(epsilon - step), arb(0)
    for piece in range(pieces if step else 1):
        wider = arb_of(step * piece)
        worst = worst.max(excess(arb_of(alpha), wider, less))
        narrower = -arb_of(step * (piece + 1))
        moved = arb_of(alpha) * narrower.exp()
        worst = worst.max(arb_of(step).exp() * excess(moved, narrower, less))
    return worst


def gaussian_excess(moved: arb, dilated: arb, epsilon: arb) -> arb:
    """The integral of max(0, p - exp(epsilon) q), q moved by m > 0 and wider by exp(dilated).

    Where the loss, a z**2 + b z + c with b < 0, is above 0: below its lesser root and above the
    greater one for a narrower q, between its roots, if there are any, for a wider one.
    """
    if dilated.is_zero():
        return gaussian_sliding(moved, epsilon)
    width = dilated.exp()
    a, b = (-2 * dilated).expm1() / 2, -moved / width**2
    c = moved**2 / (2 * width**2) + dilated - epsilon
    square = b * b - 4 * a * c
    if square <= 0:
        return arb(0)
    if not square > 0:  # not decided: claim nothing
        return arb(1)
    half = (square.sqrt() - b) / 2
    near, far = c / half, half / a  # without differences of near numbers
    mine = _normal(near) - _normal(far)
    other = _normal((near - moved) / width) - _normal((far - moved) / width)
    if dilated < 0:  # beyond the far root too
        mine = _normal(near) + _normal(-far)
        other = _normal((near - moved) / width) + _normal((moved - far) / width)
    return (mine - epsilon.exp() * other).max(arb(0))


def _normal(z: arb) -> arb:
    """The standard normal distribution function, to its own size."""
    return (-z / arb(2).sqrt()).erfc() / 2


def laplace_excess(moved: arb, dilated: arb, epsilon: arb) -> arb:
    """The integral of max(0, p - exp(epsilon) q), q moved by m > 0 and wider by exp(dilated).

    The loss dilated - |z| + |z-m|/w - epsilon is straight between the places 0 and m and beyond
    them; it is `peak` at 0. For a wider q it falls from there on both sides, and is not above 0 at
    m unless dilated > epsilon + m, where nothing is claimed. For a narrower one it falls up to m
    and rises from there.
    """
    if not dilated <= epsilon + moved:
        return arb(1)
    width, factor = dilated.exp(), epsilon.exp()
    peak = dilated + moved / width - epsilon
    if dilated >= 0:
        if peak <= 0:
            return arb(0)
        top = peak.max(arb(0))
        right = top / (1 + 1 / width)
        mine, other = 1 - (-right).exp() / 2, ((right - moved) / width).exp() / 2
        if dilated > 0:
            left = -top / (1 - 1 / width)
            mine, other = mine - left.exp() / 2, other - ((left - moved) / width).exp() / 2
        return (mine - factor * other).max(arb(0))
    steep = (-dilated).expm1()  # 1/w - 1
    if peak > 0:
        left = peak / (1 + 1 / width)
        mine = 1 - (-left).exp() / 2
    elif peak <= 0:
        left = peak / steep
        mine = left.exp() / 2
    else:  # not decided: claim nothing
        return arb(1)
    other = ((left - moved) / width).exp() / 2
    beyond = (epsilon - dilated + moved) / steep  # from m on
    mine += (-(moved + beyond)).exp() / 2
    other += (-beyond / width).exp() / 2
    return (mine - factor * other).max(arb(0))


def _largest(cost: Callable[[arb, arb], arb], epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest parameter, up to 2**-40, whose cost is certainly at most delta."""

    def meets(inverse: Fraction) -> bool:
        with working_precision(_PRECISION):
            return bool(cost(arb_of(1 / inverse), arb_of(epsilon)) <= arb_of(delta))

    return 1 / least_noise(meets, start=1 / epsilon)
