"""The Laplace mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from lastbit.exact import Number, positive
from lastbit.laws import DiscreteLaplace
from lastbit.mechanisms.lattice import Additive, Lattice, check_whole_sensitivity, lattice
from lastbit.mechanisms.mechanism import Pure, exactly_one, set_fields
from lastbit.privacy import AS_DECLARED, DiscreteLaplaceLoss, Neighbours, check_neighbours
from lastbit.sampling import Sampler, laplace_sampler


@dataclass(frozen=True, slots=True, init=False)
class Laplace(Pure, Additive):
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
        exactly_one(epsilon=epsilon, scale=scale)
        if scale is not None:
            noise = positive(scale, "scale")
            grounds = lattice(grid, noise=noise, dimension=dimension)
        else:
            loss = positive(epsilon, "epsilon")
            grounds = lattice(grid, noise=distance / loss, dimension=dimension)
            noise = grounds.l1_steps(distance) * grounds.step / loss
        check_whole_sensitivity(distance, grounds)
        check_neighbours(neighbours)
        set_fields(self, sensitivity=distance, scale=noise, lattice=grounds, neighbours=neighbours)
        set_fields(self, _sampler=None)

    @property
    def loss(self) -> DiscreteLaplaceLoss:
        """What one release loses, for a `Profile`."""
        steps = math.floor(self.lattice.l1_steps(self.sensitivity))
        noise = self.scale / self.lattice.step
        return DiscreteLaplaceLoss(noise, steps, neighbours=self.neighbours)

    def _loss(self, distance: Fraction) -> Fraction:
        return self.lattice.l1_steps(distance) * self.lattice.step / self.scale

    def _noise(self) -> DiscreteLaplace:
        return DiscreteLaplace(self.scale / self.lattice.step)

    def _new_sampler(self) -> Sampler:
        return laplace_sampler(self.scale / self.lattice.step)
