"""What every mechanism that adds symmetric noise on a lattice can say of its error."""

from __future__ import annotations

from dataclasses import fields
from fractions import Fraction

from lastbit.errors import InvalidParameter
from lastbit.exact.rational import rational
from lastbit.exact.rounding import upper
from lastbit.laws import Law, OnGrid, Shifted
from lastbit.mechanisms.lattice import Lattice

__all__ = [
    "check_whole_sensitivity",
    "distance_parameter",
    "error_bound",
    "error_probability",
    "moved_law",
    "probability",
    "unprepared",
]


def unprepared(mechanism: object) -> tuple[object, ...]:
    """How to pickle a mechanism: all its values, without the tables made for drawing."""
    values = {
        f.name: None if f.name == "_sampler" else getattr(mechanism, f.name)
        for f in fields(mechanism)  # type: ignore[arg-type]
    }
    return _restored, (type(mechanism), values)


def _restored(kind: type, values: dict[str, object]) -> object:
    mechanism: object = object.__new__(kind)
    for name, value in values.items():
        object.__setattr__(mechanism, name, value)
    return mechanism


def moved_law(noise: Law, lattice: Lattice, value: object) -> Shifted | OnGrid:
    """The exact law of value + noise."""
    moved = Shifted(noise, lattice.steps_of(value))
    return OnGrid(moved, lattice.step) if lattice.rounds else moved


def error_bound(noise: Law, lattice: Lattice, beta: object) -> Fraction:
    """The least a with P[abs(error) > a] <= beta, for the exact release.

    A float release is the nearest float to the exact one: beyond 2**53 steps it may be off by half
    a unit in its last place more.

    Theorem  P[abs(X) > k] <= beta iff P[X <= k] >= 1 - beta/2, since X is symmetric; rounding to
             the grid moves a value by at most half a step more
    """
    steps = max(noise.quantile(1 - probability(beta, "beta") / 2), 0)
    return steps * lattice.step + _rounding(lattice)


def error_probability(noise: Law, lattice: Lattice, error: object) -> float:
    """P[abs(error) > error], rounded up: the inverse of `error_bound`."""
    steps = (distance_parameter(error, "error") - _rounding(lattice)) // lattice.step
    if steps < 0:
        return 1.0
    return min(upper((1 - noise.cdf(int(steps))) * 2), 1.0)


def _rounding(lattice: Lattice) -> Fraction:
    return lattice.step / 2 if lattice.rounds else Fraction(0)


def check_whole_sensitivity(sensitivity: Fraction, lattice: Lattice) -> None:
    """On the integers a sensitivity below 1 would say that no input ever changes."""
    if not lattice.rounds and sensitivity < 1:
        raise InvalidParameter(
            "sensitivity",
            problem="is below 1, and no two different integers are that close",
            remedy='pass a whole number, or grid="auto" for floats',
        )


def distance_parameter(value: object, name: str = "distance") -> Fraction:
    """An exact distance from 0 up."""
    far = rational(value, name)
    if far < 0:
        raise InvalidParameter(name, problem="is negative", remedy="pass a number from 0 up")
    return far


def probability(value: object, name: str) -> Fraction:
    """An exact probability strictly between 0 and 1."""
    level = rational(value, name)
    if not 0 < level < 1:
        raise InvalidParameter(
            name, problem="is not strictly between 0 and 1", remedy="pass, say, 0.05"
        )
    return level
