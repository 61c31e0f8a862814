"""The Laplace mechanism."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from lastbit.errors import InvalidParameter
from lastbit.exact import Number, positive
from lastbit.laws import DiscreteLaplace, OnGrid, Shifted
from lastbit.mechanisms.lattice import (
    Lattice,
    check_whole_sensitivity,
    distance_parameter,
    error_bound,
    error_probability,
    lattice,
    moved_law,
    unprepared,
)
from lastbit.privacy import AS_DECLARED, Neighbours, PureDP, check_neighbours
from lastbit.sampling import Sampler, laplace_sampler


@dataclass(frozen=True, slots=True, init=False)
class Laplace:
    """Adds discrete Laplace noise to integers, or to floats on a public grid.

    Law      release(x) = x + X, P[X = k] = (1-q)/(1+q) q**abs(k), q = exp(-step/scale), k counted
             in steps of the lattice (1 for integers)
    Theorem  if two inputs are at most m steps apart in the L1 norm, every output is at most
             exp(m step/scale) times as likely from one as from the other: the exponents differ by
             at most the sum of abs(abs(k_i - x_i) - abs(k_i - y_i)) <= m. m is the sensitivity, for
             floats enlarged by the rounding (`mechanisms/lattice.py`)
    Source   Dwork, McSherry, Nissim, Smith 2006; paper 004; discrete: Ghosh et al. 2009
    Differs  the noise is exact and lives on the lattice; the effect of rounding floats is counted
    Checked  tests/mechanisms/test_laplace.py; proof: docs/theory/laplace.md

    >>> noise = Laplace(sensitivity=1, epsilon="1/2")
    >>> noise.guarantee
    PureDP(epsilon='0.5')
    >>> print(noise.accuracy(beta="0.05"))       # 95 % of the releases are no further off
    6
    >>> isinstance(noise.release(42), int)
    True
    >>> Laplace(sensitivity="0.1", epsilon=1, grid="auto").release(2.5) != 2.5
    True
    """

    sensitivity: Fraction
    scale: Fraction
    lattice: Lattice
    neighbours: Neighbours
    _sampler: Sampler | None = field(repr=False, compare=False)

    def __init__(
        self,
        *,
        sensitivity: Number,
        epsilon: Number | None = None,
        scale: Number | None = None,
        grid: Number | None = None,
        dimension: int = 1,
        neighbours: Neighbours = AS_DECLARED,
    ) -> None:
        distance = positive(sensitivity, "sensitivity")
        if (epsilon is None) == (scale is None):
            raise InvalidParameter(
                "epsilon", problem="or scale, exactly one, is needed", remedy="pass one of the two"
            )
        if scale is not None:
            noise = positive(scale, "scale")
            grounds = lattice(grid, noise=noise, dimension=dimension)
        else:
            loss = positive(epsilon, "epsilon")
            grounds = lattice(grid, noise=distance / loss, dimension=dimension)
            noise = grounds.l1_steps(distance) * grounds.step / loss
        check_whole_sensitivity(distance, grounds)
        check_neighbours(neighbours)
        object.__setattr__(self, "sensitivity", distance)
        object.__setattr__(self, "scale", noise)
        object.__setattr__(self, "lattice", grounds)
        object.__setattr__(self, "neighbours", neighbours)
        object.__setattr__(self, "_sampler", None)

    @property
    def epsilon(self) -> Fraction:
        """The exact loss for inputs as far apart as the declared sensitivity."""
        return self.lattice.l1_steps(self.sensitivity) * self.lattice.step / self.scale

    @property
    def guarantee(self) -> PureDP:
        """What one release promises for the declared sensitivity."""
        return PureDP(self.epsilon, neighbours=self.neighbours)

    def guarantee_at(self, distance: Number) -> PureDP:
        """What one release promises for inputs at most so far apart."""
        far = distance_parameter(distance)
        if far == 0:
            return PureDP(0, neighbours=self.neighbours)
        loss = self.lattice.l1_steps(far) * self.lattice.step / self.scale
        return PureDP(loss, neighbours=self.neighbours)

    def release(self, value: Any) -> Any:
        """A private version of an integer, a float or an array, of the same kind."""
        sampler = self._sampler
        if sampler is None:  # tables are built when they are first needed
            sampler = laplace_sampler(self.scale / self.lattice.step)
            object.__setattr__(self, "_sampler", sampler)
        return self.lattice.noised(value, sampler)

    def law(self, value: Any) -> Shifted | OnGrid:
        """The exact law of release(value)."""
        return moved_law(self._noise(), self.lattice, value)

    def accuracy(self, beta: Number) -> Fraction:
        """The least a with P[abs(release - value) > a] <= beta, for one coordinate.

        Theorem  P[abs(X) > k] = 2 q**(k+1)/(1+q) for the discrete law; its continuous counterpart
                 is the error (sensitivity/epsilon) ln(1/beta) of paper 004
        """
        return error_bound(self._noise(), self.lattice, beta)

    def beta(self, error: Number) -> float:
        """P[abs(release - value) > error] for one coordinate, rounded up."""
        return error_probability(self._noise(), self.lattice, error)

    def __reduce__(self) -> tuple[object, ...]:
        return unprepared(self)

    def _noise(self) -> DiscreteLaplace:
        return DiscreteLaplace(self.scale / self.lattice.step)
