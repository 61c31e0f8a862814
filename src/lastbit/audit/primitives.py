"""Our own primitives: which functions draw noise, and what a call of each one protects.

A mechanism is heard as a whole: what `release` is given is the protected input, and how the noise
comes about inside is its own affair. For mechanisms whose noise follows the data
(`SmoothStatistic`, `ExponentialQuantile`) the input is the dataset itself, and its distance is
counted in records.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import zip_longest
from types import FunctionType
from typing import Any

import numpy as np

from lastbit import mechanisms, sampling
from lastbit.audit.following import Spread, SpreadRule
from lastbit.audit.mechanism_moves import MechanismRule
from lastbit.audit.moves import Move, distance
from lastbit.audit.patching import Described
from lastbit.audit.sameness import same
from lastbit.audit.tape import Description, bound
from lastbit.errors import LastbitError
from lastbit.exact.ball import arb_of, working_precision
from lastbit.exact.rational import rational
from lastbit.exact.rounding import upper
from lastbit.mechanisms.above_threshold import AboveThreshold, AboveThresholdSession
from lastbit.privacy.guarantees import PureDP

__all__ = ["our_primitives", "spread_of"]

_MECHANISMS = (
    "AboveThreshold",
    "Exponential",
    "ExponentialQuantile",
    "Gaussian",
    "Histogram",
    "Laplace",
    "PermuteAndFlip",
    "PlanarLaplace",
    "PolarLaplace",
    "ProposeTestRelease",
    "RandomizedResponse",
    "ReportNoisyMax",
    "RoundedLaplace",
    "SmoothNoise",
    "SmoothStatistic",
    "Snapping",
    "StableValue",
    "ThresholdedHistogram",
)
# draws that are not followed: their outcome is kept, and what moves their law has no known price
_DRAWS = ("bernoulli_exp", "planar_laplace", "uniform_below")


def our_primitives() -> Iterator[tuple[FunctionType, Described]]:
    """Every function to listen at, with what describes its calls."""
    for name in _MECHANISMS:
        yield getattr(mechanisms, name).release, _release(name)
    yield _function(mechanisms.ThresholdedHistogram.release_arrays), _release_arrays
    yield _function(AboveThreshold.start), _start
    yield _function(AboveThresholdSession.ask), _ask
    for name in _DRAWS:
        yield getattr(sampling, name), _draw(name)
    yield _function(sampling.bernoulli), _chance("bernoulli", "p")
    yield _function(sampling.choice), _chance("choice", "weights")
    yield _function(sampling.discrete_laplace), _noise("discrete_laplace", "laplace")
    yield _function(sampling.geometric), _noise("geometric", "one-sided")
    yield _function(sampling.discrete_gaussian), _gaussian
    yield _function(sampling.choice_exp), _choice_exp
    yield _function(sampling.rounded), _rounded


def _function(function: Callable[..., Any]) -> FunctionType:
    assert isinstance(function, FunctionType)
    return function


# ---------------------------------------------------------------- mechanisms


def _release(name: str) -> Described:
    def describe(args: tuple[Any, ...], named: dict[str, Any]) -> Description | None:
        mechanism, value, size = _parts(args, named)
        if mechanism is None:
            return None
        return Description(
            kind=f"{name}.release",
            value=value,
            parameters=(mechanism, size),
            rule=MechanismRule(mechanism, _count(size)),
            release=True,
        )

    return describe


def _parts(args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, Any, Any]:
    """The mechanism, its input and the size, however they were passed."""
    size = args[2] if len(args) > 2 else named.get("size")
    if len(args) > 1:
        return args[0], args[1], size
    given = [value for key, value in named.items() if key != "size"]
    return (args[0], given[0], size) if args and given else (None, None, None)


def _count(size: Any) -> int:
    if size is None:
        return 1
    try:
        return math.prod(size) if isinstance(size, tuple) else int(size)
    except (TypeError, ValueError):
        return 1  # the mechanism itself will refuse it


def _release_arrays(args: tuple[Any, ...], named: dict[str, Any]) -> Description | None:
    given = bound({"self": None, "keys": None, "counts": None}, args, named)
    return Description(
        kind="ThresholdedHistogram.release_arrays",
        value=(np.asarray(given["keys"]), np.asarray(given["counts"])),
        parameters=given["self"],
        rule=MechanismRule(given["self"]),
        release=True,
    )


def _start(args: tuple[Any, ...], named: dict[str, Any]) -> Description | None:
    rule = MechanismRule(args[0])
    return Description(kind="AboveThreshold.start", parameters=args[0], rule=rule, release=True)


def _ask(args: tuple[Any, ...], named: dict[str, Any]) -> Description | None:
    given = bound({"self": None, "value": None}, args, named)
    session, value = given["self"], given["value"]

    def instead(answer: bool) -> None:
        session._mechanism.lattice.steps_of(value)  # refuses what it would have refused
        session._left -= answer

    return Description(
        kind="AboveThreshold.ask", value=value, group=session, instead=instead, release=True
    )


# ---------------------------------------------------------------- samplers used directly


def spread_of(law: Any, scale: Any, *, whole: bool = False) -> Spread:
    """A law with an exact scale; unknown where the scale is no number."""
    try:
        if np.ndim(scale):
            scales = tuple(abs(rational(part)) for part in np.asarray(scale).ravel().tolist())
            return Spread(law=law, scale=scales, whole=whole)
        return Spread(law=law, scale=abs(rational(scale)), whole=whole)
    except LastbitError:
        return Spread(law="unknown", scale=Fraction(0))


def _noise(name: str, law: str) -> Described:
    def describe(args: tuple[Any, ...], named: dict[str, Any]) -> Description | None:
        given = bound({"scale": None, "size": None}, args, named)
        follow = spread_of(law, given["scale"], whole=True)
        parameters = (given["scale"], given["size"])
        return Description(kind=name, value=0, parameters=parameters, follow=follow)

    return describe


def _gaussian(args: tuple[Any, ...], named: dict[str, Any]) -> Description | None:
    names = {"variance": None, "standard_deviation": None, "size": None}
    given = bound(names, args, named)
    spread = spread_of("gaussian", given["standard_deviation"], whole=True)
    if given["variance"] is not None:
        # a root rounded down, so that the cost is rounded up
        variance = spread_of("gaussian", given["variance"])
        assert isinstance(variance.scale, Fraction)
        spread = Spread(law=variance.law, scale=_root_below(variance.scale), whole=True)
    parameters = tuple(given.values())
    return Description(kind="discrete_gaussian", value=0, parameters=parameters, follow=spread)


def _root_below(square: Fraction) -> Fraction:
    if square == 0:
        return square
    fine = 1 << 64
    scaled = square.numerator * square.denominator * fine * fine
    return Fraction(math.isqrt(scaled), fine * square.denominator)


def _draw(name: str) -> Described:
    def describe(args: tuple[Any, ...], named: dict[str, Any]) -> Description | None:
        return Description(kind=name, value=(args, named), rule=_NoPrice())

    return describe


@dataclass(frozen=True, slots=True)
class _NoPrice:
    def moved(self, here: Any, there: Any) -> Move:
        return Move(distance=Fraction(0), costs=() if same(here, there) else None)


def _chance(name: str, first: str) -> Described:
    def describe(args: tuple[Any, ...], named: dict[str, Any]) -> Description | None:
        given = bound({first: None, "size": None}, args, named)
        size = given["size"]
        rule = _ByProbabilities(_count(size))
        return Description(kind=name, value=given[first], parameters=size, rule=rule)

    return describe


@dataclass(frozen=True, slots=True)
class _ByProbabilities:
    """Theorem  a draw from finitely many costs the largest logarithm of a ratio of chances."""

    releases: int

    def moved(self, here: Any, there: Any) -> Move:
        one, other = _probabilities(here), _probabilities(there)
        if one == other:
            return Move(distance=Fraction(0))
        pairs = [(a, b) for a, b in zip_longest(one, other, fillvalue=Fraction(0)) if a != b]
        if not all(a and b for a, b in pairs):
            return Move(distance=math.inf, costs=(PureDP(math.inf),))
        with working_precision(128):
            loss = Fraction(upper(arb_of(max(max(a / b, b / a) for a, b in pairs)).log()))
        return Move(distance=loss, costs=(PureDP(loss * self.releases),))


def _probabilities(given: Any) -> list[Fraction]:
    """Of a coin's sides, or of an index by its weight."""
    if not np.ndim(given):
        return [rational(given), 1 - rational(given)]
    weights = [rational(weight) for weight in given]
    return [weight / sum(weights) for weight in weights]


@dataclass(frozen=True, slots=True)
class _ByExponents:
    """Theorem  exponents that move by at most d change each weight, and their sum, by exp(d)."""

    rate: Any
    releases: int

    def moved(self, here: Any, there: Any) -> Move:
        far = distance(here, there, "Linf")
        if far == math.inf:
            return Move(distance=far, costs=(PureDP(math.inf),))
        loss = 2 * Fraction(far) * rational(self.rate) * self.releases
        return Move(distance=far, costs=(PureDP(loss),))


def _choice_exp(args: tuple[Any, ...], named: dict[str, Any]) -> Description | None:
    given = bound({"exponents": None, "size": None, "rate": 1}, args, named)
    rate, size = given["rate"], given["size"]
    return Description(
        kind="choice_exp",
        value=given["exponents"],
        parameters=(rate, size),
        rule=_ByExponents(rate, _count(size)),
    )


def _rounded(args: tuple[Any, ...], named: dict[str, Any]) -> Description | None:
    names = {"law": None, "location": 0, "scale": 1, "grid": 1, "size": None}
    given = bound(names, args, named)
    location = given.pop("location")
    law = given["law"] if given["law"] in ("laplace", "gaussian") else "unknown"
    size = given["size"]
    shape = size if isinstance(size, tuple) else () if size is None else (_count(size),)
    rule = SpreadRule(spread_of(law, given["scale"]), shape)
    return Description(kind="rounded", value=location, parameters=tuple(given.values()), rule=rule)
