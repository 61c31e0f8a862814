"""Places, losses and distances as people write them, read exactly and checked before all else.

Places are pairs (latitude, longitude) in degrees; losses and distances are texts such as
"ln(4)/200m", "1 per 200 m" and "10 km".
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lastbit.errors import InvalidParameter, LastbitError, WrongType
from lastbit.exact import Ball, Number, Real, exact_text, positive, rational
from lastbit.mechanisms import array_of

Length: TypeAlias = Number
"""A distance: a number of metres, or a string with its unit, "200 m" or "10 km"."""

UNITS = MappingProxyType(
    {"m": 1, "metre": 1, "metres": 1, "meter": 1, "meters": 1, "km": 1000, "kilometre": 1000,
     "kilometres": 1000, "kilometer": 1000, "kilometers": 1000}
)  # fmt: skip
LARGEST_POWER = 64  # beyond it a factor is only bounded: its digits would not be read
_DECIMAL = r"(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?"
_NUMBER = rf"{_DECIMAL}(?:\s*/\s*\d+)?"
_UNIT = "|".join(sorted(UNITS, key=len, reverse=True))
# without brackets no quotient: "ln 8/2" would be one thing to us and another to its writer
_AMOUNT = rf"(?:ln\s*(?:\(\s*(?P<inner>{_NUMBER})\s*\)|(?P<bare>{_DECIMAL}))|(?P<plain>{_NUMBER}))"
# after a stroke no quotient either: "1/2/3m" is half a loss in 3 m, never one loss in 2/3 m
_BY = rf"(?:/\s*(?P<plainly>{_DECIMAL})?|(?:per|within|every)\s*(?P<length>{_NUMBER})?)"
_LOSS = re.compile(rf"\s*{_AMOUNT}\s*", re.ASCII)
_RATE = re.compile(rf"\s*{_AMOUNT}\s*{_BY}\s*(?P<unit>{_UNIT})\s*", re.ASCII)
_METRES = re.compile(rf"\s*(?P<length>{_NUMBER})\s*(?P<unit>{_UNIT})?\s*", re.ASCII)
_LONGEST = 100
_LARGEST_LOSS = 2000
_UNNAMED = "a real number"
_EPSILON_REMEDY = 'write a loss and its distance, "ln(4)/200m", "1 per 200 m" or "0.0069/m"'
_LENGTH_REMEDY = 'pass metres, or a string such as "200 m" or "10 km"'


@dataclass(frozen=True, slots=True)
class ExactLoss:
    """A privacy loss: `share`, or `share` times the logarithm of `factor`, or times a real.

    >>> quarter = loss_and_distance("ln(4)/200m")[0]
    >>> print(quarter, quarter.odds_upper)
    ln(4) 4
    """

    share: Fraction
    factor: Fraction | Real | None = None

    @property
    def value(self) -> Fraction | Real:
        """The loss as a number that mechanisms take."""
        match self.factor:
            case None:
                return self.share
            case Fraction():
                return Real(self.factor).log() * self.share
            case Real():
                return self.factor * self.share

    def divided(self, parts: int) -> ExactLoss:
        """One of `parts` equal parts."""
        return ExactLoss(self.share / parts, self.factor)

    def ball(self, precision: int = 128) -> Ball:
        """The loss, enclosed."""
        value = self.value
        return value.ball(precision) if isinstance(value, Real) else Ball.of(value)

    @property
    def odds_upper(self) -> Fraction | float:
        """By which factor odds change at most: exp of the loss, exact where it is rational.

        Beyond exp(2000) it is infinity: a number with too many digits to read.
        """
        whole = self.share.denominator == 1 and self.share <= LARGEST_POWER
        if isinstance(self.factor, Fraction) and whole:
            return self.factor**self.share.numerator
        loss = self.ball()
        return loss.exp().ends[1] if loss <= _LARGEST_LOSS else math.inf

    def __str__(self) -> str:
        if self.factor is None:
            return exact_text(self.share)
        words = f"ln({exact_text(self.factor)})" if isinstance(self.factor, Fraction) else _UNNAMED
        return words if self.share == 1 else f"{exact_text(self.share)} {words}"


def parse_epsilon(text: str) -> tuple[Fraction | Real, Fraction]:
    """A loss and the distance in metres at which it is meant, both exact.

    >>> epsilon, within = parse_epsilon("1 per 0.2 km")
    >>> print(epsilon, within)
    1 200
    >>> parse_epsilon("ln(4)/200m")[0].ball(64) < 1.3862943611198907
    True
    """
    loss, within = loss_and_distance(text)
    if within is None:
        raise InvalidParameter(
            "epsilon", problem="says nothing of a distance", remedy=_EPSILON_REMEDY
        )
    return loss.value, within


def loss_and_distance(epsilon: object) -> tuple[ExactLoss, Fraction | None]:
    """The loss that was meant, and its distance in metres if one was spelled with it."""
    match epsilon:
        case ExactLoss():
            return epsilon, None
        case Real():
            loss = ExactLoss(Fraction(1), epsilon)
            if loss.ball().ends[0] <= 0:
                remedy = "pass a Real above 0, say Real(2)"
                raise WrongType("epsilon", problem="is not surely above 0", remedy=remedy)
            return loss, None
        case str() if len(epsilon) > _LONGEST:
            raise InvalidParameter("epsilon", problem="is too long", remedy=_EPSILON_REMEDY)
        case str():
            if (rate := _RATE.fullmatch(epsilon)) is not None:
                return _amount(rate), _distance(rate, "epsilon")
            if (alone := _LOSS.fullmatch(epsilon)) is not None:
                return _amount(alone), None
            problem = "is not a loss that can be read"
            raise InvalidParameter("epsilon", problem=problem, remedy=_EPSILON_REMEDY)
    return ExactLoss(positive(epsilon, "epsilon")), None


def metres(length: object, name: str) -> Fraction:
    """A distance in metres, exactly, refused unless it is above 0.

    >>> print(metres("10 km", "radius"), metres(2.5, "within"))
    10000 5/2
    """
    if not isinstance(length, str):
        return positive(length, name)
    found = _METRES.fullmatch(length) if len(length) <= _LONGEST else None
    if found is None:
        raise InvalidParameter(name, problem="is not a distance", remedy=_LENGTH_REMEDY)
    return _distance(found, name)


def _amount(found: re.Match[str]) -> ExactLoss:
    logarithm = found["inner"] or found["bare"]
    if logarithm is None:
        return ExactLoss(positive(found["plain"], "epsilon"))
    factor = rational(logarithm, "epsilon")
    if factor <= 1:
        raise InvalidParameter(
            "epsilon",
            problem="is the logarithm of a number that is not above 1",
            remedy="pass ln of the factor by which odds may change, ln(4)",
        )
    return ExactLoss(Fraction(1), factor)


def _distance(found: re.Match[str], name: str) -> Fraction:
    length = found["length"] or found.groupdict().get("plainly") or "1"
    return positive(length, name) * UNITS[found["unit"] or "m"]


_REMEDY = "pass (latitude, longitude) in degrees, a list of such pairs, or an array of shape (n, 2)"


def places_of(points: Any) -> tuple[NDArray[np.float64], bool]:
    """An array of shape (n, 2), and whether a single place was passed.

    Latitudes from -90 to 90. Longitudes from -180 to 180; those up to 360 are taken too, for
    callers who count from 0 to 360. No message holds a coordinate.

    >>> places_of((52.5, 13.4))
    (array([[52.5, 13.4]]), True)
    """
    array = _floats(points)
    if not array.size and array.ndim == 1:
        raise InvalidParameter("points", problem="are none", remedy=_REMEDY)
    single = array.ndim == 1
    if array.shape[-1:] != (2,) or array.ndim > 2:
        raise InvalidParameter("points", problem="are not pairs", remedy=_REMEDY)
    places = array.reshape(-1, 2)
    if not len(places):
        raise InvalidParameter("points", problem="are none", remedy=_REMEDY)
    if not np.isfinite(places).all():
        raise InvalidParameter(
            "points", problem="hold NaN or an infinity", remedy="drop those places first"
        )
    latitude, longitude = places[:, 0], places[:, 1]
    if (np.abs(latitude) > 90).any():
        swapped = bool((np.abs(longitude) <= 90).all())
        raise InvalidParameter(
            "points",
            problem="hold a latitude beyond 90 degrees",
            remedy="the latitude comes first: swap the two" if swapped else _REMEDY,
        )
    if (longitude < -180).any() or (longitude > 360).any():
        raise InvalidParameter(
            "points",
            problem="hold a longitude outside -180 to 360 degrees",
            remedy="pass longitudes from -180 to 180",
        )
    return places, single


def _floats(points: Any) -> NDArray[np.float64]:
    problem = "are not pairs of finite numbers"
    try:
        array = array_of(points)
        if array.dtype.kind != "O":
            with np.errstate(over="ignore"):
                return array.astype(np.float64)
        if any(isinstance(item, str | bytes) for item in array.flat):
            raise WrongType("points", problem=problem, remedy=_REMEDY)
        problem = "hold what is not a finite number"
        numbers = [float(rational(item, "points")) for item in array.flat]
        return np.array(numbers, np.float64).reshape(array.shape)
    except OverflowError:
        kind, problem = InvalidParameter, "are not pairs of finite numbers"
    except LastbitError as error:  # its message might quote a coordinate
        kind = WrongType if isinstance(error, WrongType) else InvalidParameter
    raise kind("points", problem=problem, remedy=_REMEDY)
