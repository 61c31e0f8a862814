"""Compositions of losses: what many releases promise together."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from lastbit.arguments import listed, two
from lastbit.errors import IncompatibleGuarantees, InvalidParameter, LastbitError, WrongType
from lastbit.exact import Number, lower, nonnegative, probability, upper, whole
from lastbit.privacy.accounting.choices import delta_bounds, epsilon_bounds
from lastbit.privacy.accounting.composition import Composition
from lastbit.privacy.accounting.engine import is_soon_within
from lastbit.privacy.accounting.losses import (
    MOST_RELEASES,
    ApproxLoss,
    BoundedRangeLoss,
    DiscreteGaussianLoss,
    DiscreteGaussianVectorLoss,
    DiscreteLaplaceLoss,
    FiniteLoss,
    GaussianLoss,
    LaplaceLoss,
    PrivacyLoss,
    RandomizedResponseLoss,
    SubsampledGaussianLoss,
    SubsampledLaplaceLoss,
    ThresholdLoss,
)
from lastbit.privacy.guarantees import ApproxDP
from lastbit.privacy.neighbours import Neighbours
from lastbit.reading import parse_json

_KINDS = (
    GaussianLoss,
    DiscreteGaussianLoss,
    DiscreteGaussianVectorLoss,
    LaplaceLoss,
    DiscreteLaplaceLoss,
    RandomizedResponseLoss,
    ApproxLoss,
    BoundedRangeLoss,
    FiniteLoss,
    ThresholdLoss,
    SubsampledGaussianLoss,
    SubsampledLaplaceLoss,
)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Profile:
    """Several releases together: the profile of the product of their dominating pairs.

    Law      delta(x) is the greatest P[S] - exp(x) Q[S] over all events S, where P and Q are the
             products of the pairs of all releases; epsilon(d) the least x >= 0 with delta(x) <= d
    Theorem  the releases together are (x, delta(x))-private for every x, also if each mechanism is
             chosen from earlier answers, as long as the losses are fixed beforehand. Pairs that
             depend on the direction (a record added, or removed) are composed apart, each direction
             by itself, and the larger delta counts at the end
    Source   Zhu, Dong, Wang 2022, Theorem 10
    Differs  both bounds of the profile are proved. Several releases of bounded range are bounded
             over all adaptive choices (`bounded_range.py`), not by the product of pairs; the lower
             bound is what mechanisms attain. So it is where pairs are exact; for vectors it is one
             for their pairs
    Checked  tests/privacy/accounting

    Losses add up and are multiplied by how often they occur; about one relation only.

    >>> together = 100 * ApproxLoss("0.1") + GaussianLoss("1/100")
    >>> together.to(ApproxDP, delta="1e-6").epsilon < 4.9
    True
    >>> Profile.from_json(together.to_json()) == together
    True
    """

    parts: tuple[tuple[PrivacyLoss, int], ...]
    neighbours: Neighbours

    def __init__(self, parts: Iterable[tuple[PrivacyLoss, int]]) -> None:
        counts: dict[PrivacyLoss, int] = {}
        remedy = "pass [(mechanism.loss, 1)]"
        for part in listed(parts, "parts", remedy=remedy):
            loss, times = two(part, "parts", remedy=remedy)
            if not isinstance(loss, _KINDS):
                raise WrongType(
                    "parts", problem="hold something else than losses", remedy="pass mechanism.loss"
                )
            counts[loss] = counts.get(loss, 0) + whole(times, "times")
        if not counts:
            raise InvalidParameter("parts", problem="are empty", remedy="pass at least one loss")
        if sum(counts.values()) > MOST_RELEASES:
            problem = f"are more than {MOST_RELEASES:,} releases"
            raise InvalidParameter("parts", problem=problem, remedy="account for fewer at a time")
        relations = {loss.neighbours for loss in counts}
        if len(relations) > 1:
            one, other, *_ = sorted(relations, key=str)
            raise IncompatibleGuarantees(
                f"one loss is about {one}, another about {other}; state all of them for the same "
                "neighbours"
            )
        ordered = sorted(counts.items(), key=lambda part: json.dumps(part[0].to_dict()))
        object.__setattr__(self, "parts", tuple(ordered))
        object.__setattr__(self, "neighbours", relations.pop())

    @property
    def releases(self) -> int:
        """How many releases there are."""
        return sum(times for _, times in self.parts)

    def __add__(self, other: object) -> Profile:
        if isinstance(other, _KINDS):
            return Profile([*self.parts, (other, 1)])
        if not isinstance(other, Profile):
            return NotImplemented
        return Profile([*self.parts, *other.parts])

    def __radd__(self, other: object) -> Profile:
        if other == 0:  # so that sum() works
            return self
        if isinstance(other, _KINDS):
            return self + other
        return NotImplemented

    def __mul__(self, times: object) -> Profile:
        count = whole(times, "times")
        return Profile([(loss, n * count) for loss, n in self.parts])

    __rmul__ = __mul__

    def delta(self, epsilon: Number) -> tuple[float, float]:
        """The delta at an epsilon: not below the first number, not above the second."""
        x = nonnegative(epsilon, "epsilon")
        found = [delta_bounds(direction, x) for direction in self._directions()]
        return max(max(lower(low), 0.0) for low, _ in found), min(
            max(upper(high) for _, high in found), 1.0
        )

    def epsilon(self, delta: Number) -> tuple[float, float]:
        """The least epsilon at a delta: not below the first number, not above the second.

        At delta = 0 it is the greatest loss there is, infinite for Gaussian noise.
        """
        level = probability(delta, "delta", one=False, remedy="pass, say, 1e-9")
        first, *others = self._directions()
        low, high = epsilon_bounds(first, level)
        for other in others:
            if low < math.inf and not is_soon_within(other, level, low):
                below, above = epsilon_bounds(other, level)
                low, high = max(low, below), max(high, above)
        return low, high

    def to(self, kind: type[ApproxDP], **parameters: Any) -> ApproxDP:
        """What all releases promise together, rounded up: ApproxDP, with delta= or epsilon=."""
        if kind is not ApproxDP:
            raise IncompatibleGuarantees(
                "a profile is a curve of approximate guarantees; convert it to ApproxDP, with "
                "delta= or epsilon="
            )
        if len(parameters) != 1 or not parameters.keys() <= {"delta", "epsilon"}:
            raise InvalidParameter(
                "delta",
                problem="or epsilon, exactly one, is needed",
                remedy="pass {delta} or {epsilon}",
                delta="",
                epsilon="",
            )
        if "epsilon" in parameters:
            x = nonnegative(parameters["epsilon"], "epsilon")
            return ApproxDP(x, Fraction(self.delta(x)[1]), neighbours=self.neighbours)
        level = probability(parameters["delta"], "delta", one=False, remedy="pass, say, 1e-9")
        return ApproxDP(self.epsilon(level)[1], level, neighbours=self.neighbours)

    def to_dict(self) -> dict[str, object]:
        """The parts with exact parameters."""
        return {
            "kind": "Profile",
            "neighbours": {"relation": self.neighbours.relation, "unit": self.neighbours.unit},
            "parts": [{**loss.to_dict(), "times": times} for loss, times in self.parts],
        }

    def to_json(self) -> str:
        """JSON with exact parameters; `Profile.from_json` reads it back."""
        return json.dumps(self.to_dict(), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Profile:
        """The profile that `to_json` wrote."""
        try:
            values = parse_json(text)
            if values["kind"] != "Profile":
                raise KeyError("kind")
            relation = Neighbours(**values["neighbours"])
            return cls([_read(dict(part), relation) for part in values["parts"]])
        except LastbitError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError):
            raise InvalidParameter(
                "text", problem="is not a profile in JSON", remedy="pass what to_json() gave"
            ) from None

    def __repr__(self) -> str:
        inside = " + ".join(
            f"{times} * {loss!r}" if times != 1 else repr(loss) for loss, times in self.parts[:4]
        )
        more = f" + ... ({len(self.parts)} different losses)" if len(self.parts) > 4 else ""
        return f"<Profile: {inside}{more}>"

    def _directions(self) -> list[Composition]:
        """One composition if no loss depends on the direction, else one for each."""
        both = [(loss.directions(), times) for loss, times in self.parts if times]
        count = max((len(found) for found, _ in both), default=1)
        return [
            Composition.of(
                (component, n * times)
                for found, times in both
                for component, n in found[min(way, len(found) - 1)]
            )
            for way in range(count)
        ]


def _read(values: dict[str, Any], relation: Neighbours) -> tuple[PrivacyLoss, int]:
    kind = {kind.__name__: kind for kind in _KINDS}[values.pop("loss")]
    times = values.pop("times")
    return kind(**values, neighbours=relation), times
