"""The parts of a plan: one for every mechanism that will run, with its exact parameters.

| part | mechanism | its sensitivity |
|---|---|---|
| `LaplacePart` | discrete Laplace noise on a measure | in the L1 norm |
| `GaussianPart` | discrete Gaussian noise on a measure | the square of that in the L2 norm |
| `PartitionSelection` | thresholded histogram of units: which keys are shown | keys of a unit |
| `GaussianSelection` | the same by Gaussian noise: `selection.py` | the square of that in L2 |
| `RankPart` | exponential mechanism over bins: a quantile, min or max | `ranks.py` |
| `TreePart` | noise on a tree of bins: several quantiles | `tree.py` |
| `PairSelection` | exponential mechanism over pairs of columns | `marginals.py` |

A part pays in epsilon (and delta), or in rho where the plan adds up concentrated privacy. The names
in the JSON are those of certificates, and stay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeAlias

from lastbit.errors import WrongType
from lastbit.laws import DiscreteGaussian, DiscreteLaplace
from lastbit.tables.plan.conversion import (
    AnyConversion,
    Conversion,
    PairConversion,
    conversion_from_json,
)
from lastbit.tables.plan.tree import Tree
from lastbit.tables.query.scan import Marginal

Role: TypeAlias = Literal["value", "low", "high"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LaplacePart:
    """Laplace noise on every entry of one measure.

    Theorem  noise of scale s on integers that move by at most d in the L1 norm costs epsilon = d/s
    Source   `mechanisms/laplace.py`
    """

    measure: str
    l1_sensitivity: int
    scale: Fraction
    epsilon: Fraction

    @classmethod
    def at(cls, measure: str, l1: int, epsilon: Fraction) -> LaplacePart:
        """At this epsilon."""
        return cls(measure=measure, l1_sensitivity=l1, scale=l1 / epsilon, epsilon=epsilon)

    @property
    def law(self) -> DiscreteLaplace:
        """The exact law of the noise on one entry."""
        return DiscreteLaplace(self.scale)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON; fractions as text."""
        return {
            "part": "noise",
            "measure": self.measure,
            "mechanism": "laplace",
            "sensitivity": {"l1": str(self.l1_sensitivity)},
            "scale": str(self.scale),
            "epsilon": str(self.epsilon),
            "rho": None,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianPart:
    """Gaussian noise on every entry of one measure.

    Theorem  noise of variance v on integers whose squared L2 norm moves by at most d costs
             rho = d/(2v). Where mu adds up (`conversion.py`), it costs `mu_squared`
    Source   `mechanisms/gaussian.py`
    """

    measure: str
    squared_l2_sensitivity: int
    variance: Fraction
    rho: Fraction
    mu_squared: Fraction | None = None

    @classmethod
    def at(cls, measure: str, squared: int, rho: Fraction) -> GaussianPart:
        """At this rho."""
        return cls(
            measure=measure, squared_l2_sensitivity=squared, variance=squared / (2 * rho), rho=rho
        )

    @property
    def law(self) -> DiscreteGaussian:
        """The exact law of the noise on one entry."""
        return DiscreteGaussian(self.variance)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON; fractions as text."""
        return {
            "part": "noise",
            "measure": self.measure,
            "mechanism": "gaussian",
            "sensitivity": {"l2_squared": str(self.squared_l2_sensitivity)},
            "variance": str(self.variance),
            "epsilon": None,
            "rho": str(self.rho),
            **({} if self.mu_squared is None else {"mu_squared": str(self.mu_squared)}),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSelection:
    """Which undeclared keys are shown: those whose noisy number of units reaches a threshold.

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
class SingleKeys:
    """Units that have one key are counted apart, by Laplace noise with a threshold of its own."""

    scale: Fraction
    threshold: int

    def to_json(self) -> dict[str, Any]:
        """Plain JSON; fractions as text."""
        return {"scale": str(self.scale), "threshold": self.threshold}


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianSelection:
    """Which undeclared keys are shown, by Gaussian noise on the numbers, or shares, of units.

    `threshold` is in parts of `weight_one`, which stands for a unit with one key. `tail` bounds the
    probability that a key of one unit alone is shown. With a `conversion` the part is paid for in
    epsilon, else its rho adds up with that of the others. `single` costs nothing beside it.
    Theorem  `selection.py`: rho = squared_l2_sensitivity/(2 variance), delta = tail
    """

    measure: str | None
    keys_per_person: int
    weight_one: int
    squared_l2_sensitivity: int
    variance: Fraction
    threshold: int
    tail: Fraction
    rho: Fraction
    conversion: AnyConversion | None
    single: SingleKeys | None = None
    mu_squared: Fraction | None = None

    @property
    def law(self) -> DiscreteGaussian:
        """The exact law of the noise on one number, shown or not."""
        return DiscreteGaussian(self.variance)

    @property
    def delta(self) -> Fraction:
        """What it adds to the delta of the answer."""
        return self.tail + (0 if self.conversion is None else self.conversion.delta)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON; fractions as text."""
        converted = self.conversion
        return {
            "part": "keys",
            "measure": self.measure,
            "mechanism": "gaussian threshold",
            "keys_per_person": self.keys_per_person,
            "weight_one": self.weight_one,
            "sensitivity": {"l2_squared": str(self.squared_l2_sensitivity)},
            "variance": str(self.variance),
            "threshold": self.threshold,
            "tail": str(self.tail),
            "epsilon": None if converted is None else str(converted.epsilon),
            "rho": str(self.rho),
            "order": str(converted.order) if isinstance(converted, Conversion) else None,
            "delta": str(self.delta),
            **({} if self.mu_squared is None else {"mu_squared": str(self.mu_squared)}),
            **({"mu": str(converted.mu)} if isinstance(converted, PairConversion) else {}),
            **({} if self.single is None else {"single": self.single.to_json()}),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class RankPart:
    """One draw a group of the exponential mechanism over the bins of a measure; see `ranks.py`.

    Distances are counted in parts of the weight: 1/level.denominator of it is one.
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
    distance_sensitivity: int
    """How far the distances of all groups together can move."""
    epsilon: Fraction
    rho: Fraction | None

    @property
    def rate(self) -> Fraction:
        """What one unit of distance costs a candidate, in the exponent."""
        return self.epsilon / (2 * self.distance_sensitivity)

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
            "sensitivity": {"distance": str(self.distance_sensitivity)},
            "rate": str(self.rate),
            "epsilon": str(self.epsilon),
            "rho": None if self.rho is None else str(self.rho),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class TreePart:
    """Noise on every node of a tree over the bins of a measure; see `tree.py`.

    `sensitivity` is that of all nodes: in the L1 norm where it is paid for in epsilon, squared in
    the L2 norm where in rho.
    """

    measure: str
    tree: Tree
    sensitivity: int
    noise: LaplacePart | GaussianPart

    @classmethod
    def laplace(cls, measure: str, tree: Tree, l1: int, epsilon: Fraction) -> TreePart:
        """All nodes at this epsilon; `l1` is the sensitivity of the bins."""
        moved = tree.levels * l1
        noise = LaplacePart.at(measure, moved, epsilon)
        return cls(measure=measure, tree=tree, sensitivity=moved, noise=noise)

    @classmethod
    def gaussian(cls, measure: str, tree: Tree, l2_squared: int, rho: Fraction) -> TreePart:
        """All nodes at this rho; `l2_squared` is the squared sensitivity of the bins."""
        moved = tree.levels * l2_squared
        noise = GaussianPart.at(measure, moved, rho)
        return cls(measure=measure, tree=tree, sensitivity=moved, noise=noise)

    @property
    def law(self) -> DiscreteLaplace | DiscreteGaussian:
        """The exact law of the noise on one node."""
        return self.noise.law

    def to_json(self) -> dict[str, Any]:
        """Plain JSON; fractions as text."""
        shape = {"branching": self.tree.branching, "levels": self.tree.levels}
        return {**self.noise.to_json(), "part": "tree", **shape}


@dataclass(frozen=True, slots=True, kw_only=True)
class PairSelection:
    """Draws that decide which two-way tables are measured; `epsilon` and `rho` are of all draws."""

    keys: tuple[str, ...]
    """The names of all columns."""
    candidates: tuple[Marginal, ...]
    picks: int
    distance_sensitivity: int
    rate: Fraction
    epsilon: Fraction
    rho: Fraction | None
    penalty: int
    """What the score of a pair loses for each of its cells."""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON; fractions as text."""
        return {
            "part": "choice",
            "mechanism": "exponential",
            "candidates": [[self.keys[place] for place in one] for one in self.candidates],
            "picks": self.picks,
            "penalty": str(self.penalty),
            "sensitivity": {"distance": str(self.distance_sensitivity)},
            "rate": str(self.rate),
            "epsilon": str(self.epsilon),
            "rho": None if self.rho is None else str(self.rho),
        }


NoisePart: TypeAlias = LaplacePart | GaussianPart
Selection: TypeAlias = PartitionSelection | GaussianSelection
Part: TypeAlias = NoisePart | Selection | RankPart | TreePart
AnyPart: TypeAlias = Part | PairSelection


def part_from_json(
    data: Mapping[str, Any], bins: Mapping[str, int], keys: Sequence[str]
) -> AnyPart:
    """The part that `to_json` wrote, of a plan with these numbers of bins, by measure, and keys."""
    match data["part"], data["mechanism"]:
        case "noise", _:
            return _noise_from_json(data)
        case "tree", _:
            noise = _noise_from_json(data)
            shape = {name: data[name] for name in ("branching", "levels")}
            sensitivity = _only(data["sensitivity"])
            tree = Tree(bins=bins[data["measure"]], **shape)
            return TreePart(
                measure=data["measure"], tree=tree, sensitivity=sensitivity, noise=noise
            )
        case "keys", "threshold":
            return PartitionSelection(
                measure=data["measure"],
                keys_per_person=data["keys_per_person"],
                scale=Fraction(data["scale"]),
                threshold=data["threshold"],
                epsilon=Fraction(data["epsilon"]),
                delta=Fraction(data["delta"]),
            )
        case "keys", "gaussian threshold":
            return _gaussian_selection(data)
        case "rank", "exponential":
            first, last = data["ends"]
            return RankPart(
                **{name: data[name] for name in ("aggregate", "measure", "role", "candidates")},
                level=Fraction(data["level"]),
                shift=int(data["shift"]),
                ends=(int(first), int(last)),
                distance_sensitivity=_only(data["sensitivity"]),
                epsilon=Fraction(data["epsilon"]),
                rho=_fraction(data["rho"]),
            )
        case "choice", "exponential":
            return PairSelection(
                keys=tuple(keys),
                candidates=tuple(tuple(map(keys.index, one)) for one in data["candidates"]),
                picks=data["picks"],
                distance_sensitivity=_only(data["sensitivity"]),
                rate=Fraction(data["rate"]),
                epsilon=Fraction(data["epsilon"]),
                rho=_fraction(data["rho"]),
                penalty=int(data["penalty"]),
            )
    raise WrongType(
        "plan", problem="has a part that is not known", remedy="pass one that lastbit wrote"
    )


def _only(sensitivity: Mapping[str, str]) -> int:
    """The number of the one norm that is named."""
    (number,) = sensitivity.values()
    return int(number)


def _fraction(text: str | None) -> Fraction | None:
    return None if text is None else Fraction(text)


def _noise_from_json(data: Mapping[str, Any]) -> NoisePart:
    measure, moved = data["measure"], _only(data["sensitivity"])
    if data["mechanism"] == "laplace":
        epsilon, scale = Fraction(data["epsilon"]), Fraction(data["scale"])
        return LaplacePart(measure=measure, l1_sensitivity=moved, scale=scale, epsilon=epsilon)
    return GaussianPart(
        measure=measure,
        squared_l2_sensitivity=moved,
        variance=Fraction(data["variance"]),
        rho=Fraction(data["rho"]),
        mu_squared=_fraction(data.get("mu_squared")),
    )


def _gaussian_selection(data: Mapping[str, Any]) -> GaussianSelection:
    single, tail, converted = data.get("single"), Fraction(data["tail"]), None
    if data["epsilon"] is not None:
        figures = {"epsilon": data["epsilon"], "delta": str(Fraction(data["delta"]) - tail)}
        figures |= (
            {"mu": data["mu"]} if "mu" in data else {"rho": data["rho"], "order": data["order"]}
        )
        converted = conversion_from_json(figures)
    return GaussianSelection(
        **{name: data[name] for name in ("measure", "keys_per_person", "weight_one", "threshold")},
        squared_l2_sensitivity=_only(data["sensitivity"]),
        variance=Fraction(data["variance"]),
        tail=tail,
        rho=Fraction(data["rho"]),
        conversion=converted,
        single=None
        if single is None
        else SingleKeys(scale=Fraction(single["scale"]), threshold=single["threshold"]),
        mu_squared=_fraction(data.get("mu_squared")),
    )
