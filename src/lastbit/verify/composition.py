"""Certificates of compositions: what several releases promise together, for the checker to redo.

Theorem  for any order c > 0 releases with the moments M_i(c) = E[exp(c L_i); L_i < oo] and the
         chances d_i that all is told are together (epsilon, delta)-private if
         D + k(c) exp(-c epsilon) prod M_i(c)**n_i <= delta, D = 1 - prod(1 - d_i)**n_i,
         k(c) = c**c/(1+c)**(1+c); so
         epsilon = (ln k(c) + sum n_i ln M_i(c) - ln(delta - D))/c, rounded up
Proof    (1 - exp(-y))_+ <= k(c) exp(c y) for all y, at y = L - epsilon; the whole proof is in
         checker/composition.py
Differs  that is the moment form. Its least over c is above the tight epsilon of the `Profile`, by 2
         to 10 % where delta is small. `_law_plan` plans a tighter proof, and the checker has the
         last word: it redoes the law of the sum (checker/convolution.py). The moment form
         is for what that cannot do: releases about samples, zCDP, lattices that are too fine. A
         tight epsilon that no proof reaches is written beside, on trust.
         Discrete Gaussian noise counts by n**2/(2v) concentrated privacy, which is nearly exact;
         so does a vector of it, by its L2 distance squared. Moments of releases about samples are
         binomial sums at whole orders, and between those the chord of their logarithms, which
         the checker redoes. Where the losses simply add up to less, the certificate says that
         instead
Checked  tests/verify/test_check_composition.py, test_two_sides.py
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from flint import acb, arb

from lastbit.errors import IncompatibleGuarantees, InvalidParameter, NotCertified
from lastbit.exact import Number, arb_of, ends, probability, upper, working_precision
from lastbit.privacy import (
    ZCDP,
    ApproxLoss,
    BoundedRangeLoss,
    DiscreteGaussianLoss,
    DiscreteGaussianVectorLoss,
    DiscreteLaplaceLoss,
    GaussianLoss,
    LaplaceLoss,
    Neighbours,
    PrivacyLoss,
    Profile,
    RandomizedResponseLoss,
    SubsampledGaussianLoss,
    SubsampledLaplaceLoss,
    ThresholdLoss,
)
from lastbit.verify.certificate import certify

Part: TypeAlias = tuple[PrivacyLoss | ZCDP, int]
_PRECISION = 320
_DIGITS = 15
_SMALL = Fraction(1, 10**10)
_MARGINS = tuple(map(Fraction, ("1e-9", "1e-6", "1e-4", "1e-3", "1e-2", "3e-2", "6e-2", "1/10")))
_AS_GOOD_AS = Fraction(1, 100)
_LEAST_ORDER, _GREATEST_ORDER = 1e-6, 1e11
_MOST_SAMPLED_ORDER = 1000
_SAMPLED = (SubsampledGaussianLoss, SubsampledLaplaceLoss)
_LATTICE, _SPREAD = "lattice", "spread"
_MOST_CELLS, _MOST_SPREAD_CELLS = 12_000, 2_400
_WINDOW = 19.0  # deviations: beyond 9 of them a tilted mass is below 2**-48 of the greatest
_PARTS = (24, 8, 4)  # cells to the deviation of a loss that is on no lattice
_FEW_RANGES = 12  # so many releases of bounded range have less on a lattice than as spread
_GREATEST_LATTICE_VARIANCE = 100
_LARGEST_SPREAD = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class _Proved:
    """An epsilon and the body of its proof."""

    epsilon: Fraction
    body: dict[str, Any]


def composition_certificate(releases: Profile | Iterable[Part], *, delta: Number) -> dict[str, Any]:
    """The certificate that releases together are (epsilon, delta)-private.

    A profile, or losses with how often each occurs; among those a `ZCDP` guarantee is taken too.
    The epsilon that `lastbit check` re-derives is nearly the tight one of the profile, unless
    releases are about samples or known by their zCDP: then it is that of the moment form, and the
    tight one is written beside it, on trust.

    >>> from lastbit.privacy import ApproxLoss
    >>> claim = composition_certificate(100 * ApproxLoss("0.1"), delta="1e-6")["claim"]
    >>> float(Fraction(claim["epsilon"])), claim["tight_epsilon_on_trust"]
    (4.77456..., None)
    """
    level = probability(delta, "delta", one=False, remedy="pass, say, 1e-9")
    parts = releases.parts if isinstance(releases, Profile) else tuple(releases)
    neighbours = _shared(parts)
    simple, tight = _least(parts, level), _tight(parts, level)
    for proved in (*_by_law(parts, level, simple), simple):
        beside = tight is not None and tight * (1 + _AS_GOOD_AS) < proved.epsilon
        claim = {
            "neighbours": {"relation": neighbours.relation, "unit": neighbours.unit},
            "losses": [{**_written(loss), "times": n} for loss, n in parts],
            "on_trust": [],
            "epsilon": str(proved.epsilon),
            "delta": str(level),
            "tight_epsilon_on_trust": str(tight) if beside else None,
        }
        try:
            return certify("composition", claim, proved.body)
        except NotCertified:
            if proved is simple:
                raise
    raise AssertionError


def _by_law(parts: Sequence[Part], delta: Fraction, simple: _Proved) -> Iterator[_Proved]:
    """What the law of the sum may prove, the least first: the checker decides."""
    plan = _law_plan(parts, delta, _best_order(parts, max(delta - _told(parts), delta / 10**9)))
    if plan is None:
        return
    for margin in _MARGINS if plan.epsilon else (Fraction(0), *_MARGINS):
        epsilon = _rounded_up(max(plan.epsilon, _SMALL) * (1 + margin)) if margin else Fraction(0)
        if epsilon < simple.epsilon:
            yield _Proved(epsilon=epsilon, body=plan.body)


def _shared(parts: Sequence[Part]) -> Neighbours:
    relations = {loss.neighbours for loss, _ in parts}
    if len(relations) != 1:
        problem = "are empty" if not relations else "are about different neighbours"
        remedy = "pass losses, all stated for the same neighbours"
        raise InvalidParameter("parts", problem=problem, remedy=remedy)
    for loss, _ in parts:
        if isinstance(loss, ZCDP) and not isinstance(loss.rho, Fraction):
            raise IncompatibleGuarantees("an infinite rho promises nothing; leave it out")
    return relations.pop()


def _written(loss: PrivacyLoss | ZCDP) -> dict[str, object]:
    if isinstance(loss, ZCDP):
        return {"loss": "ZCDP", "rho": str(loss.rho)}
    return loss.to_dict()


def _tight(parts: Sequence[Part], delta: Fraction) -> Fraction | None:
    """What the accountant proves, if all losses are known; a profile is not made of zCDP."""
    losses = [(loss, n) for loss, n in parts if not isinstance(loss, ZCDP)]
    if len(losses) < len(parts):
        return None
    _, high = Profile(losses).epsilon(delta)
    return Fraction(high) if math.isfinite(high) else None


# ---------------------------------------------------------------- the moment form


def _moment_form(loss: PrivacyLoss | ZCDP) -> PrivacyLoss:
    """The loss whose moments are used: discrete Gaussian noise and zCDP count as Gaussian."""
    match loss:
        case ZCDP(rho=Fraction() as rho):
            return GaussianLoss(2 * rho, neighbours=loss.neighbours)
        case DiscreteGaussianLoss(variance=spread, distance=far):
            return GaussianLoss(far * far / spread, neighbours=loss.neighbours)
        case DiscreteGaussianVectorLoss(variance=spread, distance_squared=far):
            return GaussianLoss(far / spread, neighbours=loss.neighbours)
    assert not isinstance(loss, ZCDP)
    return loss


def _least(parts: Sequence[Part], delta: Fraction) -> _Proved:
    """The lesser of what the best order proves and what the losses add up to."""
    found = [proved for proved in (_by_sum(parts, delta), _by_moments(parts, delta)) if proved]
    if not found:
        raise InvalidParameter(
            "delta",
            problem="is so small that no epsilon can be certified",
            remedy="pass a delta above those of the losses together",
        )
    return min(found, key=lambda proved: proved.epsilon)


def _by_sum(parts: Sequence[Part], delta: Fraction) -> _Proved | None:
    """The greatest losses added up, where each has one and what they tell is within delta."""
    total = Fraction(0)
    for loss, times in parts:
        most = _greatest(_moment_form(loss))
        if most is None or isinstance(loss, _SAMPLED):
            return None
        total += most * times
    if _told(parts) > delta:
        return None
    return _Proved(epsilon=total, body={"form": "sum"})


def _greatest(loss: PrivacyLoss) -> Fraction | None:
    """The greatest finite loss, exactly where it is rational, else rounded up."""
    ways = []
    for direction in loss.directions():
        total = Fraction(0)
        for component, n in direction:
            exact = Fraction(0) if component.variance() == 0 else component.greatest
            if exact is None:
                with working_precision(_PRECISION):
                    most = component.ceiling()
                    if most is None:
                        return None
                    exact = _rounded_up(ends(most)[1])
            total += n * exact
        ways.append(total)
    return max(ways)


def _by_moments(parts: Sequence[Part], delta: Fraction) -> _Proved | None:
    told = _told(parts)
    if told >= delta:
        return None
    order = _best_order(parts, delta - told)
    orders = {order}
    if any(isinstance(loss, _SAMPLED) for loss, _ in parts):
        # whole orders next to it, where nothing is lost to chords
        near = min(order, Fraction(_MOST_SAMPLED_ORDER))
        orders = {near, Fraction(max(math.floor(near), 1)), Fraction(math.ceil(near))}
    ways = [found for order in orders if (found := _at_order(parts, delta - told, order))]
    return min(ways, key=lambda proved: proved.epsilon, default=None)


def _at_order(parts: Sequence[Part], room: Fraction, order: Fraction) -> _Proved | None:
    """What the moments of one order prove."""
    with working_precision(_PRECISION):
        total = _log_kappa(order)
        for loss, times in parts:
            total += arb_of(_log_moment(_moment_form(loss), order)) * times
        found = (total - arb_of(room).log()) / arb_of(order)
        if not found.is_finite():
            return None
        epsilon = _rounded_up(ends(found)[1])
    return _Proved(epsilon=epsilon, body={"form": "moment", "order": str(order)})


def _log_kappa(order: Fraction) -> arb:
    """The logarithm of k(c) = c**c/(1+c)**(1+c)."""
    c = arb_of(order)
    return c * c.log() - (1 + c) * (1 + c).log()


def _log_moment(loss: PrivacyLoss, order: Fraction) -> Fraction:
    """An upper bound of ln M(c), both directions; a probability that all is told is not in it."""
    if isinstance(loss, _SAMPLED):
        below = math.floor(order)
        low, high = _sampled_moment(loss, below), _sampled_moment(loss, below + 1)
        return max(ends(low + arb_of(order - below) * (high - low))[1], Fraction(0))
    if isinstance(loss, BoundedRangeLoss):
        ((component, _),) = loss.directions()[0]
        moment = component.moment(acb(arb_of(order))).real.log()
        return min(ends(moment)[1], loss.epsilon**2 / 8 * order * (order + 1))
    ways = []
    for direction in loss.directions():
        total = arb(0)
        for component, n in direction:
            moment = component.moment(acb(arb_of(order))).real / (1 - component.infinite())
            total += n * moment.log()
        ways.append(ends(total)[1])
    return max(*ways, Fraction(0))


def _sampled_moment(loss: SubsampledGaussianLoss | SubsampledLaplaceLoss, order: int) -> arb:
    """The logarithm of M(c) of a removal at a whole order: a binomial sum; additions have less.

    Theorem  checker/composition.py
    """
    rate, power = arb_of(loss.rate), order + 1
    plain = (
        GaussianLoss(loss.mu_squared)
        if isinstance(loss, SubsampledGaussianLoss)
        else LaplaceLoss(loss.epsilon)
    )
    (((component, _),),) = plain.directions()
    total = arb(0)
    for k in range(power + 1):
        moment = component.moment(acb(k - 1)).real if k > 1 else arb(1)
        total += arb.bin_uiui(power, k) * (1 - rate) ** (power - k) * rate**k * moment
    return total.log()


def _told(parts: Sequence[Part]) -> Fraction:
    """An upper bound of 1 - prod(1 - d_i)**n_i, the larger direction of each: that, or sum n d."""
    with working_precision(_PRECISION):
        plain, kept = arb(0), arb(1)
        for loss, times in parts:
            ways = [
                max(sum(ends(c.infinite())[1] * n for c, n in direction), Fraction(0))
                for direction in _moment_form(loss).directions()
            ]
            for component, n in _moment_form(loss).directions()[ways.index(max(ways))]:
                plain += component.infinite() * (n * times)
                kept *= (1 - component.infinite()) ** (n * times)
        most = ends(plain)[1]
        # as exact as numbers get where it is small, and never more than 1
        return most if most < _SMALL else ends(1 - kept)[1]


def _best_order(parts: Sequence[Part], room: Fraction) -> Fraction:
    """About the order that proves the least epsilon, 6 digits: floats choose, and prove nothing."""
    forms = []
    for loss, n in parts:
        form = _moment_form(loss)
        if isinstance(form, BoundedRangeLoss):  # several of them have less as concentrated privacy
            form = GaussianLoss(form.epsilon**2 / 4, neighbours=form.neighbours)
        forms.append((form.directions(), n))
    with working_precision(_PRECISION):
        level = float(arb_of(room).log())

    def epsilons(places: Any) -> Any:
        c = np.exp(places)
        total = c * places - (1 + c) * np.log1p(c) - level
        for directions, times in forms:
            ways = [
                sum((n * component.cumulant(c) for component, n in direction), np.zeros_like(c))
                for direction in directions
            ]
            total = total + float(times) * np.maximum.reduce(ways)
        found = total / c
        return np.where(np.isfinite(found), found, 1e300)

    low, high = math.log(_LEAST_ORDER), math.log(_GREATEST_ORDER)
    with np.errstate(all="ignore"):
        for _ in range(6):
            places = np.linspace(low, high, 41)
            index = int(np.argmin(epsilons(places)))
            low, high = float(places[max(index - 1, 0)]), float(places[min(index + 1, 40)])
    return Fraction(f"{math.exp((low + high) / 2):.5e}")


def _rounded_up(number: Fraction) -> Fraction:
    """A decimal of 15 digits, not below."""
    if number <= 0:
        return Fraction(0)
    place = _DIGITS - len(str(math.ceil(number)))
    unit = Fraction(1, 10**place) if place >= 0 else Fraction(10**-place)
    if number < 1:
        while number < unit * 10 ** (_DIGITS - 1):
            unit /= 10
    return math.ceil(number / unit) * unit


# ---------------------------------------------------------------- the law of the sum


def _law_plan(parts: Sequence[Part], delta: Fraction, order: Fraction) -> _Proved | None:
    """An epsilon, nearly the tight one, that the law of the sum should prove; None if none is.

    Nothing here is believed. A plan says which way each loss goes, on which lattice and at which
    order, and which epsilon the accountant finds for what the checker will see; the checker then
    computes all of it by itself, in whole numbers (checker/convolution.py), and accepts or not.
    """
    losses = [(loss, n) for loss, n in parts if not isinstance(loss, ZCDP)]
    if len(losses) < len(parts) or any(isinstance(loss, _SAMPLED) for loss, _ in losses):
        return None
    chosen = sum(n for loss, n in losses if isinstance(loss, BoundedRangeLoss))
    first = [
        _LATTICE
        if isinstance(loss, BoundedRangeLoss) and chosen <= _FEW_RANGES
        else _first_way(loss)
        for loss, _ in losses
    ]
    for ways in (first, [_second_way(loss) for loss, _ in losses]):
        steps = (_step(losses, ways, float(order), parts) for parts in _PARTS)
        step = next((step for step in steps if step is not None), None)
        seen = _modelled(losses, ways) if step is not None else None
        if seen is not None:
            _, high = seen.epsilon(delta)
            body = {"form": "lattice", "order": str(order), "step": str(step), "ways": ways}
            return _Proved(epsilon=Fraction(high), body=body) if math.isfinite(high) else None
    return None


def _first_way(loss: PrivacyLoss) -> str:
    match loss:
        case GaussianLoss() | DiscreteGaussianVectorLoss() | BoundedRangeLoss():
            return _SPREAD
        case DiscreteGaussianLoss() if loss.variance > _GREATEST_LATTICE_VARIANCE:
            return _SPREAD
    return _LATTICE


def _second_way(loss: PrivacyLoss) -> str:
    """Where lattices are too fine: whatever can be a range is one."""
    match loss:
        case ApproxLoss() | LaplaceLoss() | DiscreteLaplaceLoss() | ThresholdLoss():
            return _SPREAD
        case RandomizedResponseLoss(categories=2):
            return _SPREAD
    return _first_way(loss)


def _step(losses: Sequence[Part], ways: Sequence[str], order: float, parts: int) -> Fraction | None:
    """The common lattice, made finer for losses that are on none; None if it has many cells."""
    listed = [
        (component, n * times)
        for (loss, times), way in zip(losses, ways, strict=True)
        if way == _LATTICE and not isinstance(loss, ZCDP)
        for component, n in loss.directions()[0]
    ]
    if not listed:
        return Fraction(1)
    spacing, fine, total, most = Fraction(0), math.inf, 0.0, 0.0
    for component, n in listed:
        deviation, greatest = _deviation(component, order), component.greatest
        total += n * deviation**2
        most = max(most, float(greatest or 0), 12 * deviation)
        size = max(deviation, float(greatest or 0))
        if component.grid is None:
            fine = min(fine, size / parts) if size else fine
        else:
            spacing = _common(spacing, component.grid.spacing)
    if not spacing:
        spacing = Fraction(fine).limit_denominator(10**9) if fine < 1e9 else Fraction(1)
    elif fine < spacing:
        spacing /= math.ceil(spacing / Fraction(fine))
    if not spacing:
        return None
    limit = _MOST_CELLS if set(ways) == {_LATTICE} else _MOST_SPREAD_CELLS
    cells = (_WINDOW * math.sqrt(total) + 2 * most) / float(spacing)
    return spacing if cells <= limit else None


def _deviation(component: Any, order: float) -> float:
    """That of the tilted loss, about: floats choose, and prove nothing."""
    shift = 1e-3
    with np.errstate(all="ignore"):
        left, here, right = component.cumulant(np.array([1 - shift, 1, 1 + shift]) * order)
    found = (right - 2 * here + left) / (shift * order) ** 2
    return math.sqrt(found) if found > 0 and math.isfinite(found) else 0.0


def _common(one: Fraction, other: Fraction) -> Fraction:
    top = math.gcd(one.numerator * other.denominator, other.numerator * one.denominator)
    return Fraction(top, one.denominator * other.denominator)


def _modelled(losses: Sequence[Part], ways: Sequence[str]) -> Profile | None:
    """The accountant's form of it: Gaussian losses in the place of what goes as spread."""
    neighbours = losses[0][0].neighbours
    seen: list[tuple[PrivacyLoss, int]] = []
    ranges: list[tuple[Fraction, int]] = []
    for (loss, times), way in zip(losses, ways, strict=True):
        match loss:
            case ThresholdLoss():
                ((component, _),) = loss.directions()[0]
                with working_precision(128):
                    told = Fraction(upper(component.infinite()))
                keys = times * loss.keys
                if way == _SPREAD:
                    ranges.append((2 / loss.scale, keys))
                    seen.append((ApproxLoss(0, told, neighbours=neighbours), keys if told else 0))
                else:
                    seen.append((ApproxLoss(1 / loss.scale, told, neighbours=neighbours), keys))
            case DiscreteGaussianLoss() if way == _SPREAD:
                if loss.variance * 3 < 1:
                    return None
                far = loss.distance**2
                seen.append(
                    (DiscreteGaussianVectorLoss(loss.variance, far, neighbours=neighbours), times)
                )
            case BoundedRangeLoss() if way == _SPREAD:
                ranges.append((loss.epsilon, times))
            case ApproxLoss() if way == _SPREAD:
                ranges.append((2 * loss.epsilon, times))
                told = loss.delta
                seen.append((ApproxLoss(0, told, neighbours=neighbours), times if told else 0))
            case LaplaceLoss() | RandomizedResponseLoss() if way == _SPREAD:
                ranges.append((2 * loss.epsilon, times))
            case DiscreteLaplaceLoss() if way == _SPREAD:
                ranges.append((2 * loss.distance / loss.scale, times))
            case ZCDP():
                return None
            case _:
                seen.append((loss, times))
    spreads = [(length * length / 4, times) for length, times in ranges if length and times]
    if spreads:
        most = max(spread for spread, _ in spreads)
        if most > _LARGEST_SPREAD:
            return None
        total = sum((spread * times for spread, times in spreads), Fraction(0))
        extra = Fraction(float(most) * math.log1p(float(total / most)))
        seen.append((GaussianLoss(3 * most + total + extra, neighbours=neighbours), 1))
    return Profile(seen or [(GaussianLoss(0, neighbours=neighbours), 1)])
