"""What mechanisms share: parameter checks, pure privacy loss, samplers prepared once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from fractions import Fraction
from math import isfinite

from flint import arb

from lastbit.errors import InvalidParameter, Undecidable
from lastbit.exact import (
    DEFAULT_PRECISION,
    Number,
    floor_ceil,
    nonnegative,
    positive,
    probability,
    refine,
    upper,
    working_precision,
)
from lastbit.privacy import Neighbours, PrivacyLoss, Profile, PureDP, black_box
from lastbit.sampling import Sampler

_EXTREME = Fraction(2) ** 300


def set_fields(mechanism: object, **values: object) -> None:
    """Set the fields of a frozen mechanism under construction."""
    for name, value in values.items():
        object.__setattr__(mechanism, name, value)


def exactly_one(**parameters: object) -> None:
    """Refuse no parameter, or several, where each of them alone determines the mechanism."""
    if sum(value is not None for value in parameters.values()) != 1:
        first, *others = parameters
        raise InvalidParameter(
            first, problem=f"or {' or '.join(others)}: exactly one is needed", remedy="pass one"
        )


def level(value: object, name: str, *, remedy: str = "pass, say, 0.05") -> Fraction:
    """An exact probability strictly between 0 and 1."""
    return probability(value, name, zero=False, one=False, remedy=remedy)


def moderate(value: object, name: str, *, remedy: str = "change the unit") -> Fraction:
    """A number so far from 0 and infinity that no float over- or underflows."""
    number = positive(value, name)
    if not 1 / _EXTREME <= number <= _EXTREME:
        raise InvalidParameter(name, problem="is not between 2**-300 and 2**300", remedy=remedy)
    return number


def not_below(ball: arb) -> Fraction:
    """A rational not below anything in a ball: a float if there is one."""
    number = upper(ball)
    if isfinite(number):
        return Fraction(number)
    mantissa, exponent = ball.upper().man_exp()
    return int(mantissa) * Fraction(2) ** int(exponent)


def ceiling(number: Callable[[], arb]) -> int:
    """The least integer not below a number, with as much precision as it takes."""

    def at(precision: int) -> int:
        with working_precision(precision):
            below, above = floor_ceil(number())
        if above - below > 1:
            raise Undecidable("the ceiling is not certain yet")
        return above

    return refine(at, start=DEFAULT_PRECISION)


class Pure:
    """Pure privacy: `_loss` is what inputs at a distance above 0 lose."""

    __slots__ = ()

    sensitivity: Fraction
    neighbours: Neighbours

    def _loss(self, distance: Fraction) -> Fraction:
        raise NotImplementedError

    @property
    def epsilon(self) -> Fraction:
        """The exact loss for inputs as far apart as the declared sensitivity."""
        return self._loss(self.sensitivity)

    @property
    def guarantee(self) -> PureDP:
        """What one release promises for the declared sensitivity."""
        return PureDP(self.epsilon, neighbours=self.neighbours)

    @property
    def loss(self) -> PrivacyLoss | Profile:
        """What one release loses, for a `Profile`."""
        return black_box(self.guarantee)

    def guarantee_at(self, distance: Number) -> PureDP:
        """What one release promises for inputs at most this far apart."""
        far = nonnegative(distance, "distance")
        return PureDP(self._loss(far) if far else 0, neighbours=self.neighbours)


@dataclass(frozen=True, slots=True, init=False)
class Prepared:
    """A mechanism whose sampler is built at the first release, and is left out of pickles."""

    _sampler: Sampler | None = field(repr=False, compare=False)

    def _new_sampler(self) -> Sampler:
        raise NotImplementedError

    def _prepared(self) -> Sampler:
        sampler = self._sampler
        if sampler is None:
            sampler = self._new_sampler()
            object.__setattr__(self, "_sampler", sampler)
        return sampler

    def __reduce__(self) -> tuple[object, ...]:
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return _restored, (type(self), values | {"_sampler": None})


def _restored(kind: type, values: dict[str, object]) -> object:
    mechanism: object = object.__new__(kind)
    set_fields(mechanism, **values)
    return mechanism
