"""Re-derives what several releases promise together, from the losses of the releases.

For one release let (P, Q) be the pair of laws that its loss names, L = ln(P/Q) under P, d the
probability that L is infinite and M(c) = E[exp(c L); L < oo] for c > 0.

Theorem  (moments) releases whose pairs dominate them are together (epsilon, delta)-private if
         D + K <= delta, D = 1 - prod(1 - d_i)**k_i and K = k(c) exp(-c epsilon) prod M_i(c)**k_i,
         k(c) = c**c/(1+c)**(1+c), for any one c > 0
Proof    Fix two neighbours and their order. A release that is dominated by (P_i, Q_i) is made of
         one draw from P_i or Q_i by a rule that may depend on earlier answers (Blackwell 1953;
         Dong, Roth, Su 2022, Theorem 2): seeing the draws tells no less. A release that is
         rho-zCDP is seen as it is. Let L be the sum of the losses of all that is seen. Then
         delta(epsilon) <= P[L = oo] + E[(1 - exp(epsilon - L))_+; L < oo]. Draws do not depend on
         the past, and zCDP has no infinite loss: the first is at most D. Whatever came before,
         E[exp(c L_i); L_i < oo] <= M_i(c), so one release after the other
         E[exp(c L); L < oo] <= prod M_i(c)**k_i. For real y, (1 - exp(-y))_+ <= k(c) exp(c y): the
         ratio is greatest where exp(y) = (1+c)/c, and is k(c) there. With y = L - epsilon the
         second is at most K. M_i and d_i here are bounds for (P, Q) and for (Q, P).  []
Theorem  (lattice) delta is at most D plus the excess of checker/convolution.py, which redoes the
         law of the sum of all losses; in both directions if a loss has one
Theorem  (sums) if every finite loss is at most g_i and epsilon >= sum k_i g_i, then K may be 0:
         (1 - exp(epsilon - L))_+ = 0

Upper bounds of ln M(c), each with its greatest finite loss g; e = epsilon:

| loss | ln M(c) | g | d |
|---|---|---|---|
| Gaussian, mu**2 = v | v c(c+1)/2 | none | 0 |
| discrete Gaussian, variance v, distance n | n**2 c(c+1)/(2v) at most (CKS20, Prop. 5) | none | 0 |
| a vector of it, L2 distance squared n | n c(c+1)/(2v) at most (CKS20, Theorem 14) | none | 0 |
| rho-zCDP | rho c(c+1), by definition | none | 0 |
| randomised response, m answers, s = exp(-e) | | e | 0 |
| | c e + ln((1 + (m-2) s exp(-c e) + s exp(-2c e))/(1 + (m-1) s)) | | |
| (e, d)-private | as for 2 answers (Kairouz, Oh, Viswanath 2015) | e | d |
| Laplace | c e + ln((c + 1 + c exp(-(2c+1) e))/(2c+1)) | e | 0 |
| discrete Laplace, scale s, distance n; q = exp(-1/s), t = exp(-(2c+1)/s) | | n/s | 0 |
| | c n/s + ln((1 + t**n + (1-q)(t - t**n)/(1-t))/(1+q)) | | |
| bounded range (Dong, Durfee, Rogers 2020) | | e | 0 |
| | c e + ln((1 - exp(-(2c+1) e))/((2c+1)(1 - exp(-e)))), or e**2 c(c+1)/8 if less | | |
| finite laws | ln of the sum of p exp(c ln(p/q)), and of q exp(c ln(q/p)) | max | p or q alone |
| n keys from a threshold T on, scale s | n times discrete Laplace, distance 1 | n/s | each below |
| Poisson samples, rate q, of Gaussian or Laplace noise | the next two theorems | none | 0 |

Keys: each tells all with the probability q**(T-1)/(1+q) that a key of one record is shown.

Theorem  (samples, whole orders) let l be the loss of a pair (N1, N0) that some map swaps, as a
         mirror swaps those of Gaussian and of Laplace noise, and b = 1 - q + q exp(l). The pairs of
         a sample are b N0 against N0 (a record removed), and N0 against b N0 (added). For both
         and a whole c, M(c) <= sum over k of C(c+1, k) (1-q)**(c+1-k) q**k m(k-1), where m(k-1) =
         E[exp(k l)] under N0 is the moment of order k-1 without sampling, and m(-1) = 1
Proof    Removed: M(c) = E[b**(c+1)] under N0; the binomial theorem. Added: M(c) = E[b**-c] under
         N0, which is no larger. Take an outcome and its mirror image, in which N0 and N1 are
         swapped: with r = exp(l) >= 1 at one of them, they weigh 1 and r under N0. Let A =
         1 - q + q r, B = q + (1-q) r and g(t) = t**(c+1) - t**-c: the claim for the two is
         g(A) >= B g(r/B). Let s = r/B >= 1. Since A + B = 1 + r, A = 1 + B (s - 1), and B >= 1.
         g(1) = 0 and g is convex from 1 on, g'' = c (c+1) t**(-c-2) (t**(2c+1) - 1) >= 0: so
         g(s) <= g(A)/B.  []
Theorem  (samples, orders between) ln M is convex (Hoelder) and M(0) <= 1: for n <= c <= n+1,
         ln M(c) <= (n+1-c) ln M(n) + (c-n) ln M(n+1)

Certificates of an earlier version have samples under `on_trust`, with the moment that the producer
found at the same c: a premise. `taken_on_trust` says so, and a certificate with such a part is
checked but not accepted. A tight epsilon, which no moment proves, may stand beside the one that is
checked: nothing here says that it is true. Neither may be below what `necessary.py` proves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import comb
from types import MappingProxyType
from typing import Any

from .convolution import (
    Law,
    excess,
    finite_law,
    gaussian_law,
    laplace_law,
    range_law,
    range_spread,
    response_law,
    step_spread,
)
from .necessary import check_trusted_epsilon, check_trusted_moment
from .numbers import Json, exp_bounds, ln_bounds, number, require

_CLAIM = frozenset(
    {"neighbours", "losses", "on_trust", "epsilon", "delta", "tight_epsilon_on_trust"}
)
_FORMS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"moment": ("order",), "sum": (), "lattice": ("order", "step", "ways")}
)
_RELATIONS = frozenset({"add-remove", "change-one", "as-declared"})
_FARTHEST = Fraction(2000)  # exp(-2000) is below every delta; beyond it fractions grow long
_EXTREME = 10**12
_MOST_RELEASES = 10**15
_MOST_OUTCOMES = 10**4
_FINEST = 10**120
_LONGEST = 10**5  # bits of a sum
_MOST_TERMS = 1001  # of the moment of a sample
_SAMPLED: Mapping[str, frozenset[str]] = MappingProxyType({
    "SubsampledGaussianLoss": frozenset({"rate", "mu_squared"}),
    "SubsampledLaplaceLoss": frozenset({"rate", "epsilon"}),
})  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bound:
    """At most: ln M(c), the greatest finite loss, and d, the chance that all is told.

    No moment is worked out where no order is given; None for a loss without a greatest value.
    """

    moment: Fraction | None
    greatest: Fraction | None
    told: Fraction = Fraction(0)

    def repeated(self, times: int) -> _Bound:
        return _Bound(
            moment=None if self.moment is None else times * self.moment,
            greatest=None if self.greatest is None else times * self.greatest,
            told=_some(self.told, times),
        )


def check_composition(claim: Json, body: Json) -> None:
    """Raise `Rejected` unless the losses together cost no more than is claimed."""
    require(set(claim) == _CLAIM, "the claim lacks a part, or has one too many")
    _check_neighbours(claim["neighbours"])
    epsilon, delta = number(claim["epsilon"]), number(claim["delta"])
    require(epsilon >= 0, "epsilon is below 0")
    require(0 <= delta < 1, "delta is not a probability below 1")
    tight = claim["tight_epsilon_on_trust"]
    require(tight is None or 0 <= number(tight) < epsilon, "what is on trust is not tighter")
    form = body["form"]
    require(isinstance(form, str) and form in _FORMS, "the form of the proof is unknown")
    require(set(body) == {"form", *_FORMS[form]}, "the body is odd")
    order = _order(body["order"]) if form == "moment" else None
    listed = isinstance(claim["losses"], list) and isinstance(claim["on_trust"], list)
    require(listed and bool(claim["losses"] or claim["on_trust"]), "there are no losses")
    added = claim["neighbours"]["relation"] == "add-remove"
    sampled = claim["on_trust"] or any(_about_samples(part) for part in claim["losses"])
    require(added or not sampled, "samples are about one record more or less")
    parts = [_counted(part, _checked, order) for part in claim["losses"]]
    parts += [_counted(part, _trusted, order) for part in claim["on_trust"]]
    if form == "lattice":
        require(not claim["on_trust"], "what is on trust has moments only")
        one_way = added or not any(_is_directed(loss) for loss in claim["losses"])
        require(one_way, "a loss with a direction is about one record more or less")
        _check_lattice(claim["losses"], body, epsilon, delta - _told(parts))
    else:
        _check_total(parts, order, epsilon, delta)
    if tight is not None:
        every = (*claim["losses"], *claim["on_trust"])
        check_trusted_epsilon(every, number(tight), delta)


def taken_on_trust(claim: Json) -> bool:
    """Whether a part of what is claimed was not worked out here: its moment is a premise."""
    return bool(claim.get("on_trust", True))


def _check_total(
    parts: list[_Bound], order: Fraction | None, epsilon: Fraction, delta: Fraction
) -> None:
    told = _told(parts)
    if order is None:
        most = [part.greatest for part in parts if part.greatest is not None]
        require(len(most) == len(parts), "a loss has no greatest value, and losses do not add up")
        require(_sum(most) <= epsilon, "the losses add up to more than epsilon")
        require(told <= delta, "the losses tell all with more than delta")
        return
    exponent = _log_kappa(order) - order * epsilon
    for part in parts:
        assert part.moment is not None
        exponent += part.moment
    # what is left of delta; 0 leaves no room
    require(exponent < 0, "the moments prove nothing at this epsilon")
    rest = exp_bounds(max(exponent, -_FARTHEST))[1]
    require(told + rest <= delta, "the moments do not prove this epsilon and delta")


def _told(parts: list[_Bound]) -> Fraction:
    """An upper bound of the chance that any release tells all."""
    kept = Fraction(1)
    for part in parts:
        kept = _floor(kept * (1 - part.told))
    return min(_sum(part.told for part in parts), 1 - kept)


def _log_kappa(order: Fraction) -> Fraction:
    """An upper bound of ln k(c) = -c ln(1 + 1/c) - ln(1 + c)."""
    return -order * ln_bounds(1 + 1 / order)[0] - ln_bounds(1 + order)[0]


def _check_neighbours(written: Json) -> None:
    fields = isinstance(written, Mapping) and set(written) == {"relation", "unit"}
    require(fields and written["relation"] in _RELATIONS, "the neighbours are unknown")
    unit = written["unit"]
    require(isinstance(unit, str) and bool(unit), "the privacy unit has no name")


def _order(text: Any) -> Fraction:
    order = number(text)
    require(Fraction(1, _EXTREME) <= order <= _EXTREME, "the order is out of range")
    return order


def _counted(
    written: Any, bound_of: Callable[[dict[str, Any], Fraction | None], _Bound], order: Any
) -> _Bound:
    require(isinstance(written, Mapping), "a loss is malformed")
    values = dict(written)
    times = values.pop("times")
    require(type(times) is int and 0 <= times <= _MOST_RELEASES, "a number of releases is odd")
    return bound_of(values, order).repeated(times)


def _about_samples(written: Any) -> bool:
    return isinstance(written, Mapping) and written.get("loss") in tuple(_SAMPLED)


def _trusted(values: dict[str, Any], order: Fraction | None) -> _Bound:
    """The moment that the producer found: a premise, at the order of the proof."""
    require(order is not None, "what is on trust has moments only")
    assert order is not None
    name = values.pop("loss")
    require(name in _SAMPLED, "a loss is on trust that could be checked, or is unknown")
    moment = number(values.pop("log_moment"))
    require(number(values.pop("order")) == order, "a moment on trust is of another order")
    require(set(values) == _SAMPLED[name], "a loss lacks a number, or has one too many")
    sample = {"loss": name, **values}
    rate = number(values.pop("rate"))
    require(0 < rate <= 1 and all(number(v) > 0 for v in values.values()), "a sample is odd")
    check_trusted_moment(sample, order, moment)
    return _Bound(moment=moment, greatest=None)


# ---------------------------------------------------------------- one release


def _checked(values: dict[str, Any], order: Fraction | None) -> _Bound:
    name = values.pop("loss")
    require(isinstance(name, str) and name in _LOSSES, "a loss is unknown")
    fields, bound_of = _LOSSES[name]
    require(set(values) == set(fields), "a loss lacks a number, or has one too many")
    found = bound_of(order, *(values[field] for field in fields))
    if found.moment is None:
        return found
    return _Bound(moment=_ceiling(found.moment), greatest=found.greatest, told=found.told)


def _gaussian(order: Fraction | None, mu_squared: Any) -> _Bound:
    return _density(order, _size(mu_squared) / 2)


def _concentrated(order: Fraction | None, rho: Any) -> _Bound:
    return _density(order, _size(rho))


def _density(order: Fraction | None, rho: Fraction) -> _Bound:
    moment = None if order is None else rho * order * (order + 1)
    return _Bound(moment=moment, greatest=None if rho else Fraction(0))


def _discrete_gaussian(order: Fraction | None, variance: Any, distance: Any) -> _Bound:
    far = _count(distance, least=0)
    return _density(order, far * far / (2 * _positive(variance)))


def _gaussian_vector(order: Fraction | None, variance: Any, distance_squared: Any) -> _Bound:
    return _density(order, _count(distance_squared, least=0) / (2 * _positive(variance)))


def _private(order: Fraction | None, epsilon: Any, delta: Any) -> _Bound:
    found = _response(order, epsilon, 2)
    return _Bound(moment=found.moment, greatest=found.greatest, told=_chance(delta))


def _response(order: Fraction | None, epsilon: Any, categories: Any) -> _Bound:
    loss, answers = _size(epsilon), _count(categories, least=2)
    if order is None:
        return _Bound(moment=None, greatest=loss)
    low, high = _falls(loss)
    others = (answers - 2) * high * _falls(order * loss)[1]
    top = 1 + others + high * _falls(2 * order * loss)[1]
    return _Bound(moment=_log(order * loss, top / (1 + (answers - 1) * low)), greatest=loss)


def _laplace(order: Fraction | None, epsilon: Any) -> _Bound:
    loss = _size(epsilon)
    if order is None:
        return _Bound(moment=None, greatest=loss)
    poles = 2 * order + 1
    share = (order + 1 + order * _falls(poles * loss)[1]) / poles
    return _Bound(moment=_log(order * loss, share), greatest=loss)


def _discrete_laplace(order: Fraction | None, scale: Any, distance: Any) -> _Bound:
    step, far = 1 / _positive(scale), _count(distance, least=0)
    if order is None or not far:
        return _Bound(moment=Fraction(0), greatest=far * step)
    turn = (2 * order + 1) * step
    last = _falls(far * turn)
    share = 1 + last[1]
    if far > 1:
        share += _rises(step)[1] * max(_falls(turn)[1] - last[0], Fraction(0)) / _rises(turn)[0]
    share /= 1 + _falls(step)[0]
    return _Bound(moment=_log(order * far * step, share), greatest=far * step)


def _bounded_range(order: Fraction | None, epsilon: Any) -> _Bound:
    loss = _size(epsilon)
    if order is None or not loss:
        return _Bound(moment=Fraction(0), greatest=loss)
    poles = 2 * order + 1
    share = _rises(poles * loss)[1] / (poles * _rises(loss)[0])
    concentrated = loss * loss / 8 * order * (order + 1)
    return _Bound(moment=min(_log(order * loss, share), concentrated), greatest=loss)


def _finite(order: Fraction | None, outcomes: Any) -> _Bound:
    listed = isinstance(outcomes, list) and 0 < len(outcomes) <= _MOST_OUTCOMES
    paired = listed and all(isinstance(pair, list) and len(pair) == 2 for pair in outcomes)
    require(paired, "the outcomes are malformed")
    pairs = [(_chance(p), _chance(q)) for p, q in outcomes]
    sums = {_sum(p for p, _ in pairs), _sum(q for _, q in pairs)}
    require(sums == {1}, "the outcomes do not add up to 1")
    told = max(_sum(p for p, q in pairs if not q), _sum(q for p, q in pairs if not p))
    ways = [[(p, p / q) for p, q in pairs if p and q], [(q, q / p) for p, q in pairs if p and q]]
    greatest = max(
        (ln_bounds(ratio)[1] for way in ways for _, ratio in way if ratio > 1), default=Fraction(0)
    )
    if order is None or not ways[0]:
        return _Bound(moment=Fraction(0), greatest=greatest, told=told)
    sizes = []
    for way in ways:
        most = max(ratio for _, ratio in way)
        share = Fraction(0)
        for mass, ratio in way:
            less = order * ln_bounds(most / ratio)[0] if ratio < most else Fraction(0)
            share += _ceiling(mass * _falls(max(less, Fraction(0)))[1])
        raised = order * ln_bounds(most)[1] if most != 1 else Fraction(0)
        sizes.append(_log(raised, share))
    return _Bound(moment=max(sizes), greatest=greatest, told=told)


def _keys(order: Fraction | None, scale: Any, threshold: Any, keys: Any) -> _Bound:
    one = _discrete_laplace(order, scale, 1)
    step, bar = 1 / _positive(scale), _count(threshold, least=1)
    shown = _falls((bar - 1) * step)[1] / (1 + _falls(step)[0])
    each = _Bound(moment=one.moment, greatest=one.greatest, told=shown)
    return each.repeated(_count(keys, least=1))


def _sampled_gaussian(order: Fraction | None, rate: Any, mu_squared: Any) -> _Bound:
    require(number(mu_squared) > 0, "a sample is odd")
    return _sampled(order, rate, lambda whole: _gaussian(whole, mu_squared))


def _sampled_laplace(order: Fraction | None, rate: Any, epsilon: Any) -> _Bound:
    require(number(epsilon) > 0, "a sample is odd")
    return _sampled(order, rate, lambda whole: _laplace(whole, epsilon))


def _sampled(order: Fraction | None, rate: Any, plain: Callable[[Fraction], _Bound]) -> _Bound:
    """A Poisson sample of a release whose moments of whole orders are `plain`."""
    chance = _chance(rate)
    require(chance > 0, "a sample is odd")
    if order is None:
        return _Bound(moment=None, greatest=None)
    below = order.numerator // order.denominator
    share = order - below
    moment = (1 - share) * _binomial(below, chance, plain)
    if share:
        moment += share * _binomial(below + 1, chance, plain)
    return _Bound(moment=moment, greatest=None)


def _binomial(order: int, rate: Fraction, plain: Callable[[Fraction], _Bound]) -> Fraction:
    """An upper bound of ln M(c) for a whole order, by its c + 2 terms."""
    power = order + 1
    require(power <= _MOST_TERMS, "the order is too large for the moment of a sample")
    seen = ln_bounds(rate)[1] if rate != 1 else Fraction(0)
    unseen = ln_bounds(1 - rate)[1] if rate != 1 else Fraction(0)
    logarithms = []
    for k in range(power + 1) if rate != 1 else [power]:
        ways = comb(power, k)
        size = (ln_bounds(Fraction(ways))[1] if ways > 1 else 0) + k * seen + (power - k) * unseen
        if k > 1:
            moment = plain(Fraction(k - 1)).moment
            assert moment is not None
            size += moment
        logarithms.append(_ceiling(size))
    most = max(logarithms)
    return _log(most, _sum(_ceiling(_falls(most - size)[1]) for size in logarithms))


_LOSSES: Mapping[str, tuple[tuple[str, ...], Callable[..., _Bound]]] = MappingProxyType({
    "GaussianLoss": (("mu_squared",), _gaussian),
    "DiscreteGaussianLoss": (("variance", "distance"), _discrete_gaussian),
    "DiscreteGaussianVectorLoss": (("variance", "distance_squared"), _gaussian_vector),
    "ZCDP": (("rho",), _concentrated),
    "LaplaceLoss": (("epsilon",), _laplace),
    "DiscreteLaplaceLoss": (("scale", "distance"), _discrete_laplace),
    "RandomizedResponseLoss": (("epsilon", "categories"), _response),
    "ApproxLoss": (("epsilon", "delta"), _private),
    "BoundedRangeLoss": (("epsilon",), _bounded_range),
    "FiniteLoss": (("outcomes",), _finite),
    "ThresholdLoss": (("scale", "threshold", "keys"), _keys),
    "SubsampledGaussianLoss": (("rate", "mu_squared"), _sampled_gaussian),
    "SubsampledLaplaceLoss": (("rate", "epsilon"), _sampled_laplace),
})  # fmt: skip


# ---------------------------------------------------------------- the law of the sum


@dataclass(slots=True)
class _Sum:
    """What goes each way: laws with their counts, a variance, lengths of ranges with theirs."""

    order: Fraction
    step: Fraction
    reverse: bool
    laws: list[tuple[Law, int]]
    spread: Fraction
    ranges: list[tuple[Fraction, int]]


def _check_lattice(losses: list[Any], body: Json, epsilon: Fraction, room: Fraction) -> None:
    order, step, ways = _order(body["order"]), number(body["step"]), body["ways"]
    require(Fraction(1, _EXTREME) <= step <= _EXTREME, "the step is out of range")
    require(isinstance(ways, list) and len(ways) == len(losses), "the ways are odd")
    require(all(isinstance(way, str) for way in ways), "the ways are odd")
    for reverse in (False, True) if any(map(_is_directed, losses)) else (False,):
        total = _Sum(order, step, reverse, [], Fraction(0), [])
        for loss, way in zip(losses, ways, strict=True):
            require((way, loss["loss"]) in _WAYS, "a loss cannot go the way that is stated")
            _WAYS[way, loss["loss"]](total, loss["times"], loss)
        spread = total.spread + range_spread(total.ranges)
        found = excess(total.laws, spread, order, step, epsilon)
        require(found <= room, "the law of the sum does not prove this epsilon and delta")


def _is_directed(loss: Json) -> bool:
    """Whether the two laws are not each other's mirror image."""
    pairs = loss["outcomes"] if loss["loss"] == "FiniteLoss" else []
    return sorted((p, q) for p, q in pairs) != sorted((q, p) for p, q in pairs)


def _response_way(total: _Sum, times: int, loss: Json) -> None:
    total.laws.append((response_law(_size(loss["epsilon"]), loss.get("categories", 2)), times))


def _keys_way(total: _Sum, times: int, loss: Json) -> None:
    total.laws.append((response_law(1 / _positive(loss["scale"]), 2), times * loss["keys"]))


def _laplace_way(total: _Sum, times: int, loss: Json) -> None:
    """Continuous noise, or bounded range, with as many points as the lattice has."""
    size = _size(loss["epsilon"])
    law = range_law if loss["loss"] == "BoundedRangeLoss" else laplace_law
    if size:
        count = 2 * size / total.step
        total.laws.append((law(size, -(-count.numerator // count.denominator)), times))


def _discrete_laplace_way(total: _Sum, times: int, loss: Json) -> None:
    far = loss["distance"]
    if far:
        total.laws.append((laplace_law(far / _positive(loss["scale"]), far), times))


def _discrete_gaussian_way(total: _Sum, times: int, loss: Json) -> None:
    far = loss["distance"]
    if far:
        require(far <= 10**6, "a distance is too large for a lattice")
        total.laws.append((gaussian_law(_positive(loss["variance"]), far, total.order), times))


def _finite_way(total: _Sum, times: int, loss: Json) -> None:
    pairs = [(_chance(p), _chance(q)) for p, q in loss["outcomes"]]
    turned = [(q, p) for p, q in pairs] if total.reverse else pairs
    total.laws.append((finite_law(turned), times))


def _gaussian_spread(total: _Sum, times: int, loss: Json) -> None:
    total.spread += times * _size(loss["mu_squared"])


def _step_spread(total: _Sum, times: int, loss: Json) -> None:
    squared = loss["distance_squared"] if "distance_squared" in loss else loss["distance"] ** 2
    if squared:
        total.spread += times * squared * step_spread(_positive(loss["variance"]))


def _range_way(total: _Sum, times: int, loss: Json) -> None:
    match loss["loss"]:
        case "BoundedRangeLoss":
            length = _size(loss["epsilon"])
        case "DiscreteLaplaceLoss":
            length = 2 * loss["distance"] / _positive(loss["scale"])
        case "ThresholdLoss":
            length, times = 2 / _positive(loss["scale"]), times * loss["keys"]
        case _:
            length = 2 * _size(loss["epsilon"])
    total.ranges.append((length, times))


_WAYS: Mapping[tuple[str, str], Callable[[_Sum, int, Json], None]] = MappingProxyType({
    ("lattice", "ApproxLoss"): _response_way,
    ("lattice", "RandomizedResponseLoss"): _response_way,
    ("lattice", "ThresholdLoss"): _keys_way,
    ("lattice", "LaplaceLoss"): _laplace_way,
    ("lattice", "BoundedRangeLoss"): _laplace_way,
    ("lattice", "DiscreteLaplaceLoss"): _discrete_laplace_way,
    ("lattice", "DiscreteGaussianLoss"): _discrete_gaussian_way,
    ("lattice", "FiniteLoss"): _finite_way,
    ("spread", "GaussianLoss"): _gaussian_spread,
    ("spread", "DiscreteGaussianLoss"): _step_spread,
    ("spread", "DiscreteGaussianVectorLoss"): _step_spread,
    **{("spread", name): _range_way for name in (
        "BoundedRangeLoss", "ApproxLoss", "RandomizedResponseLoss", "LaplaceLoss",
        "DiscreteLaplaceLoss", "ThresholdLoss",
    )},
})  # fmt: skip
"""How a loss may go; its numbers were checked before."""


# ---------------------------------------------------------------- numbers


def _falls(x: Fraction) -> tuple[Fraction, Fraction]:
    """Around exp(-x) for x >= 0; 0 stands below what is beyond exp(-2000)."""
    if x == 0:
        return Fraction(1), Fraction(1)
    low, high = exp_bounds(-min(x, _FARTHEST))
    return (low if x <= _FARTHEST else Fraction(0)), min(high, Fraction(1))


def _rises(x: Fraction) -> tuple[Fraction, Fraction]:
    """Around 1 - exp(-x) for x > 0; for small x, x - x**2/2 and x are sharper."""
    low, high = _falls(x)
    return max(1 - high, x - x * x / 2), min(1 - low, x)


def _log(raised: Fraction, share: Fraction) -> Fraction:
    """An upper bound of ln(exp(raised) share)."""
    return raised + ln_bounds(share)[1]


def _some(chance: Fraction, times: int) -> Fraction:
    """An upper bound of 1 - (1-d)**n."""
    if not chance or not times:
        return Fraction(0)
    if chance == 1:
        return Fraction(1)
    exponent = times * ln_bounds(1 - chance)[0]
    far = 1 - exp_bounds(exponent)[0] if exponent > -_FARTHEST else Fraction(1)
    return min(times * chance, far)


def _sum(numbers: Iterable[Fraction]) -> Fraction:
    """The exact sum; rejected where adding them up would take long."""
    total = Fraction(0)
    for value in numbers:
        total += value
        require(total.denominator.bit_length() <= _LONGEST, "a sum is too long to write down")
    return total


def _ceiling(x: Fraction) -> Fraction:
    """Not below x and of 120 places: sums of many stay short."""
    return Fraction(-(-x.numerator * _FINEST // x.denominator), _FINEST)


def _floor(x: Fraction) -> Fraction:
    return Fraction(x.numerator * _FINEST // x.denominator, _FINEST)


def _size(text: Any) -> Fraction:
    value = number(text)
    require(0 <= value <= _EXTREME, "a loss is out of range")
    return value


def _positive(text: Any) -> Fraction:
    value = number(text)
    require(value > 0, "a noise is not above 0")
    return value


def _chance(text: Any) -> Fraction:
    value = number(text)
    require(0 <= value <= 1, "a probability is not between 0 and 1")
    return value


def _count(written: Any, least: int) -> int:
    require(type(written) is int and least <= written <= 10**30, "a count is out of range")
    return int(written)
