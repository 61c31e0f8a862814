"""Laplace noise for vectors whose distance is Euclidean, or that of the largest coordinate."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lastbit.errors import InvalidParameter
from lastbit.exact import Number, nonnegative, positive, root_above
from lastbit.laws import DiscreteNormLaplace, Norm, ScatteredVector
from lastbit.mechanisms.lattice import (
    Lattice,
    array_of,
    check_whole_sensitivity,
    lattice,
    power_below,
)
from lastbit.mechanisms.mechanism import Prepared, Pure, exactly_one, level, set_fields
from lastbit.privacy import AS_DECLARED, Neighbours, check_neighbours
from lastbit.sampling import MOST_STEPS, Sampler, drawn, norm_sampler

_FINENESS = 1 << 10  # of the distance and of the noise, for grid="auto"
_MOST_POSITION = 1 << 60


@dataclass(frozen=True, slots=True, init=False)
class NormLaplace(Pure, Prepared):
    """Adds Laplace noise of a norm to a vector of integers, or of floats on a public grid.

    Law      release(x) = step (round(x/step) + X), P[X = k] proportional to exp(-rate norm(k)) for
             all vectors k of `dimension` integers; rate = step/scale
    Theorem  inputs at most D apart in the norm lose at most rate M, M their distance in steps: D on
             the integers; on a grid D/step + sqrt(dimension) in "L2", floor(D/step) + 1 in "Linf"
    Proof    *Noise*: for each output o, norm(o - x) - norm(o - y) <= norm(x - y), and the sum Z is
             the same around every centre. *Rounding* moves each coordinate by half a step at most,
             so differences by one; in "Linf" the distance in steps is whole. The float that comes
             back is the nearest to the exact result: post-processing
    Source   paper 000, Definition 2.7, Theorem 3.2 and Mechanism 1 in m dimensions
    Differs  the noise is exact on a lattice; in two dimensions and "L2" it is `PlanarLaplace`'s law
    Checked  tests/mechanisms/test_norm_laplace.py

    A sensitivity in "Linf" is that of the coordinate that moves most. Noise by norm costs more per
    coordinate than `Laplace` where few of them move, and less where all move at once.

    >>> noise = NormLaplace(sensitivity=1, epsilon=1, norm="Linf", dimension=3)
    >>> noise.guarantee, noise.release([10, 20, 30]).shape
    (PureDP(epsilon=1), (3,))
    >>> print(noise.accuracy("0.05"))       # no coordinate is further off, with probability 0.95
    6
    """

    sensitivity: Fraction
    scale: Fraction
    norm: Norm
    lattice: Lattice
    neighbours: Neighbours

    def __init__(
        self,
        *,
        sensitivity: Number,
        norm: Norm,
        dimension: int,
        epsilon: Number | None = None,
        scale: Number | None = None,
        grid: Number | None = None,
        neighbours: Neighbours = AS_DECLARED,
    ) -> None:
        distance = positive(sensitivity, "sensitivity")
        exactly_one(epsilon=epsilon, scale=scale)
        # the law looks at norm and dimension; its rate is known once the grid is
        DiscreteNormLaplace(1, dimension=dimension, norm=norm)
        noise = (
            positive(scale, "scale")
            if scale is not None
            else distance / positive(epsilon, "epsilon")
        )
        if isinstance(grid, str) and grid == "auto":
            grid = power_below(max(min(distance, noise) / _FINENESS, noise * 2 / MOST_STEPS))
        grounds = lattice(grid, noise=noise, dimension=dimension)
        set_fields(self, sensitivity=distance, norm=norm, lattice=grounds, neighbours=neighbours)
        if epsilon is not None:
            noise = self._moved(distance) * grounds.step / positive(epsilon, "epsilon")
        set_fields(self, scale=noise, _sampler=None)
        check_whole_sensitivity(distance, grounds)
        check_neighbours(neighbours)
        if grounds.step * MOST_STEPS < noise:
            raise InvalidParameter(
                "grid",
                problem="or unit is finer than 2**-22 of the noise",
                remedy="use a coarser grid, or count in larger units",
            )

    def _moved(self, distance: Fraction) -> Fraction:
        """How many steps apart two inputs can be, in the norm."""
        if self.norm == "L2":
            return self.lattice.l2_steps(distance)
        return Fraction(distance // self.lattice.step + self.lattice.rounds)

    def _loss(self, distance: Fraction) -> Fraction:
        return self._moved(distance) * self.lattice.step / self.scale

    def release(self, value: Any) -> NDArray[Any]:
        """A private version of one vector: integers, or floats on a grid."""
        steps = self._steps(value)
        moved = steps + drawn(self._prepared(), (1,))["x"][0]
        return np.asarray(self.lattice.on_grid(moved))

    def law(self, value: Any) -> ScatteredVector:
        """The exact law of release(value)."""
        centre = tuple(self._steps(value).tolist())
        return ScatteredVector(self._noise(), centre, self.lattice.step)

    def accuracy(self, beta: Number) -> Fraction:
        """A distance in the norm that a release exceeds with probability at most beta.

        Theorem  the radius of the law (`DiscreteNormLaplace.radius`), and what rounding the input
                 can add: half a step in "Linf", sqrt(dimension) halves in "L2"
        """
        return self._noise().radius(1 - level(beta, "beta")) * self.lattice.step + self._slack()

    def beta(self, error: Number) -> float:
        """The probability that a release is further off than this in the norm, rounded up."""
        left = nonnegative(error, "error") - self._slack()
        return self._noise().tail_upper(left / self.lattice.step)

    def _slack(self) -> Fraction:
        half = self.lattice.half_step
        return half if self.norm == "Linf" else half * root_above(Fraction(self.lattice.dimension))

    def _noise(self) -> DiscreteNormLaplace:
        rate, dimension = self.lattice.step / self.scale, self.lattice.dimension
        return DiscreteNormLaplace(rate, dimension=dimension, norm=self.norm)

    def _new_sampler(self) -> Sampler:
        return norm_sampler(self._noise())

    def _steps(self, value: Any) -> NDArray[np.int64]:
        """Where a vector lies on the lattice; refused before anything is drawn."""
        if array_of(value).shape != (self.lattice.dimension,):
            raise InvalidParameter(
                "value",
                problem="is not one vector of the declared dimension",
                remedy=f"pass {self.lattice.dimension} numbers",
            )
        steps = self.lattice.vector_steps(value)
        if not all(abs(int(step)) <= _MOST_POSITION for step in steps):
            raise InvalidParameter(
                "value", problem="lies beyond 2**60 steps", remedy="clamp the data first"
            )
        return steps.astype(np.int64)
