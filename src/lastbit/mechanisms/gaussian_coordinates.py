"""Gaussian noise with a variance of its own for each coordinate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from lastbit.errors import InvalidParameter
from lastbit.exact import nonnegative, root_above, whole
from lastbit.mechanisms.lattice import Lattice, numbers_of
from lastbit.privacy import LEAST_VECTOR_VARIANCE, Loss, step_mu_squared
from lastbit.sampling import Sampler, gaussian_sampler

_MOST_COORDINATES = 1 << 16


@dataclass(frozen=True, slots=True)
class Coordinates:
    """How far inputs can be apart in each coordinate, and how much noise it gets.

    Law      Y_j = x_j + X_j, X_j independent discrete Gaussian of variance v_j, in steps
    Theorem  inputs whose coordinates are at most m_j whole steps apart lose at most
             rho = sum m_j**2/(2 v_j) in zCDP, an exact rational; and they are mu-GDP with
             mu**2 = sum m_j**2 x_j, x_j (1 - x_j/12) >= 1/v_j. If only an L2 distance m is known,
             m**2 over the least variance takes the place of the sum
    Proof    zCDP: at every order alpha the divergences of independent coordinates add up, and that
             of one is at most alpha d_j**2/(2 v_j) (CKS20, Theorem 14 with its sigma_j). GDP: m_j
             steps of one coordinate are m_j sqrt(x_j)-GDP, and independent ones add up by squares
             (`privacy/gaussian_pair.py`). Both sums grow with every d_j. With L2 alone,
             sum d_j**2/v_j <= (sum d_j**2)/min v, and x_j falls with v_j.
             *Rounding* moves each coordinate to at most floor(D_j/step) + 1 steps; equal ones stay
             equal, so D_j = 0 costs nothing
    Source   paper 001, Theorem 1.2; Canonne, Kamath, Steinke 2020, Theorem 14
    Differs  no square root is taken: sigma_j**2 is given. A coordinate without noise costs
             infinity, or 0 if it never moves; it is not released
    Checked  tests/mechanisms/test_gaussian_coordinates.py
    """

    sensitivities: tuple[Fraction, ...] | None
    variances: tuple[Fraction, ...]

    def per_coordinate(self, distance: object) -> tuple[Fraction, ...]:
        """A distance for each coordinate."""
        return exact_list(distance, "distance", length=len(self.variances))

    def steps(self, distances: tuple[Fraction, ...], lattice: Lattice) -> list[int]:
        """How many whole steps apart the inputs can be, coordinate by coordinate."""
        return [
            (far // lattice.step + lattice.rounds) if far else 0  # equal values round alike
            for far in distances
        ]

    def ratio(self, distances: tuple[Fraction, ...], lattice: Lattice) -> Loss:
        """The joint bound: the sum of squared distances over variances."""
        total = Fraction(0)
        for moved, noise in zip(self.steps(distances, lattice), self.variances, strict=True):
            if moved and not noise:
                return math.inf
            total += (moved * lattice.step) ** 2 / noise if moved else 0
        return total

    def mu_squared(self, distances: tuple[Fraction, ...], lattice: Lattice) -> Fraction | None:
        """mu**2 of the Gaussian pair of the theorem; None where none is proved."""
        total = Fraction(0)
        for moved, noise in zip(self.steps(distances, lattice), self.variances, strict=True):
            spread = noise / lattice.step**2
            if moved and spread < LEAST_VECTOR_VARIANCE:
                return None
            total += moved**2 * step_mu_squared(spread) if moved else 0
        return total

    def at(self, coordinate: object) -> Fraction:
        """The variance of one coordinate."""
        if coordinate is None or whole(coordinate, "coordinate") >= len(self.variances):
            raise InvalidParameter(
                "coordinate",
                problem="must say which: each has noise of its own",
                remedy=f"pass {{coordinate}}, from 0 to {len(self.variances) - 1}",
                coordinate="0",
            )
        assert isinstance(coordinate, int | np.integer)
        return self.variances[int(coordinate)]

    def check_value(self, array: NDArray[Any]) -> None:
        """Refuse all but one vector with just these coordinates."""
        if array.shape != (len(self.variances),):
            raise InvalidParameter(
                "value",
                problem="is not one vector with the declared coordinates",
                remedy=f"pass {len(self.variances)} numbers, in the order of the variances",
            )

    def sampler(self, lattice: Lattice) -> Sampler:
        """Independent draws, coordinate by coordinate."""
        return _EachItsOwn(tuple(variance / lattice.step**2 for variance in self.variances))


@dataclass(frozen=True, slots=True, eq=False)
class _EachItsOwn:
    """One draw of each variance, in this order; a vector has as many."""

    variances: tuple[Fraction, ...]

    def draw(self, bits: Any, size: int) -> NDArray[Any]:
        assert size == len(self.variances)
        return numbers_of(
            [int(gaussian_sampler(variance).draw(bits, 1)[0]) for variance in self.variances]
        )


def is_list(value: object) -> TypeGuard[Sequence[Any]]:
    """Whether a parameter is given for each coordinate."""
    return isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim > 0)


def exact_list(values: object, name: str, *, length: int | None = None) -> tuple[Fraction, ...]:
    """Exact numbers of at least 0, one for each coordinate."""
    if not is_list(values) or not len(values) or getattr(values, "ndim", 1) != 1:
        problem = "is not a list of numbers, one for each coordinate"
        raise InvalidParameter(name, problem=problem, remedy="pass a list of numbers")
    if len(values) > _MOST_COORDINATES:
        remedy = "use one variance for all coordinates"
        raise InvalidParameter(
            name, problem=f"has more than {_MOST_COORDINATES} numbers", remedy=remedy
        )
    if length is not None and len(values) != length:
        problem = f"has {len(values)} numbers for {length} coordinates"
        raise InvalidParameter(name, problem=problem, remedy="pass one for each coordinate")
    return tuple(nonnegative(value, name) for value in values)


def length_above(distances: tuple[Fraction, ...]) -> Fraction:
    """The L2 norm, rounded up."""
    return root_above(sum((far**2 for far in distances), Fraction(0)))
