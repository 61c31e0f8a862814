"""The parts of a plan: one for every mechanism that will run, with its exact parameters.

| part | mechanism | what its sensitivity counts |
|---|---|---|
| `NoisePart` | discrete Laplace or Gaussian noise on a measure | L1, or the square of L2 |
| `KeysPart` | thresholded histogram of units: which keys are shown | keys a unit can bring |
| `RankPart` | exponential mechanism over bins: a quantile, min or max | `ranks.py` |

A part pays in epsilon (and delta), or in rho where the plan adds up concentrated privacy.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeAlias

from lastbit.laws import DiscreteGaussian, DiscreteLaplace

Role: TypeAlias = Literal["value", "low", "high"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisePart:
    """Noise on every entry of one measure.

    Theorem  Laplace of scale s on integers that move by at most d in the L1 norm costs
             epsilon = d/s, and rho = epsilon**2/2. Gaussian of variance v on integers whose
             squared L2 norm moves by at most d costs rho = d/(2v)
    Source   `mechanisms/laplace.py`, `mechanisms/gaussian.py`
    """

    measure: str
    mechanism: Literal["laplace", "gaussian"]
    moved: int
    """The L1 sensitivity for Laplace noise, the squared L2 sensitivity for Gaussian noise."""
    noise: Fraction
    """The scale of Laplace noise, the variance of Gaussian noise."""
    epsilon: Fraction | None
    rho: Fraction | None

    @property
    def law(self) -> DiscreteLaplace | DiscreteGaussian:
        """The exact law of the noise on one entry."""
        if self.mechanism == "laplace":
            return DiscreteLaplace(self.noise)
        return DiscreteGaussian(self.noise)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON; fractions as text."""
        norm, noise = ("l1", "scale") if self.mechanism == "laplace" else ("l2_squared", "variance")
        return {
            "part": "noise",
            "measure": self.measure,
            "mechanism": self.mechanism,
            "sensitivity": {norm: str(self.moved)},
            noise: str(self.noise),
            **_price(self.epsilon, self.rho),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class KeysPart:
    """Which keys of the data are shown: those whose noisy number of units reaches a threshold.

    `measure` is the one whose noisy counts are those of this part, if units are asked for.
    Theorem  `mechanisms/histogram.py`: (epsilon, delta), epsilon = people keys_per_person/scale
    """

    measure: str | None
    keys_per_person: int
    scale: Fraction
    threshold: int
    epsilon: Fraction
    delta: Fraction

    @property
    def law(self) -> DiscreteLaplace:
        """The exact law of the noise on one count, shown or not."""
        return DiscreteLaplace(self.scale)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON; fractions as text."""
        return {
            "part": "keys",
            "measure": self.measure,
            "mechanism": "threshold",
            "keys_per_person": self.keys_per_person,
            "scale": str(self.scale),
            "threshold": self.threshold,
            "epsilon": str(self.epsilon),
            "delta": str(self.delta),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class RankPart:
    """One draw a group of the exponential mechanism over the bins of a measure; see `ranks.py`.

    Distances are counted in parts of the weight: 1/level.denominator of it is one. `moved` is how
    far the distances of all groups together can move, and `rate` = epsilon/(2 moved).
    """

    aggregate: str
    measure: str
    role: Role
    level: Fraction
    shift: int
    """The rank aimed at is level * (weight of the group) + shift, counted from the first end."""
    ends: tuple[int, int]
    """Public weights put before the first and behind the last bin, so that the rank exists."""
    candidates: int
    moved: int
    epsilon: Fraction
    rho: Fraction | None

    @property
    def rate(self) -> Fraction:
        """What one unit of distance costs a candidate, in the exponent."""
        return self.epsilon / (2 * self.moved)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON; fractions as text."""
        return {
            "part": "rank",
            "aggregate": self.aggregate,
            "measure": self.measure,
            "mechanism": "exponential",
            "role": self.role,
            "level": str(self.level),
            "shift": str(self.shift),
            "ends": [str(end) for end in self.ends],
            "candidates": self.candidates,
            "sensitivity": {"distance": str(self.moved)},
            "rate": str(self.rate),
            "epsilon": str(self.epsilon),
            "rho": None if self.rho is None else str(self.rho),
        }


Part: TypeAlias = NoisePart | KeysPart | RankPart


def _price(epsilon: Fraction | None, rho: Fraction | None) -> dict[str, str | None]:
    return {
        "epsilon": None if epsilon is None else str(epsilon),
        "rho": None if rho is None else str(rho),
    }
