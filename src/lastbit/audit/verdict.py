"""What an auditor says about a mechanism, and how sure it is."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from lastbit.audit.bounds import exceeds
from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact import exact_text, probability, rounded_down, rounded_up, whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The outcome of one attack on one target.

    `broken` means: certified to be above the claim, except with probability `error`. It never means
    "probably". The other way round nothing is proved: a target that is not broken resisted this
    attack, on these inputs, with so many samples.

    `epsilon_lower` is certified too, and rounded down: with probability 1 - error the mechanism is
    not epsilon-private for any smaller epsilon (with the claim's own delta, if it has one).
    `claimed` is None where the claim is no epsilon, as for the time a draw takes.

    >>> print(Verdict(
    ...     name="precision", target="numpy Laplace", broken=True, epsilon_lower=5.25,
    ...     claimed=Fraction(1), error=Fraction(1, 10**6), samples=10_000, seconds=0.1,
    ...     witness="2.5 is no multiple of 3", details={"hits": "27 %, 0 %"}))
    precision on numpy Laplace: BROKEN
      epsilon is at least 5.25, claimed was 1 (wrong with probability at most 1e-6)
      2.5 is no multiple of 3
      hits: 27 %, 0 %
      10,000 samples in 0.1 s
    """

    name: str
    target: str
    broken: bool
    epsilon_lower: float
    claimed: Fraction | None
    error: Fraction
    samples: int
    seconds: float
    witness: str
    details: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("name", "target", "witness"):
            if not isinstance(getattr(self, name), str):
                raise WrongType(name, problem="is no text", remedy="pass a string")
        if not isinstance(self.broken, bool):
            raise WrongType("broken", problem="is no truth value", remedy="pass True or False")
        if not self.epsilon_lower >= 0:
            raise InvalidParameter(
                "epsilon_lower", problem="is negative or NaN", remedy="pass 0 if nothing is shown"
            )
        probability(self.error, "error", one=False, remedy="pass the rate of false accusations")
        whole(self.samples, "samples")
        if self.claimed is not None and self.broken != exceeds(self.epsilon_lower, self.claimed):
            raise InvalidParameter(
                "broken",
                problem="disagrees with epsilon_lower and the claim",
                remedy="pass epsilon_lower > claimed",
            )
        object.__setattr__(self, "details", dict(self.details))

    def __str__(self) -> str:
        lines = [f"{self.name} on {self.target}: {'BROKEN' if self.broken else 'resisted'}"]
        sure = f"(wrong with probability at most {rounded_up(self.error, 3)})"
        if self.claimed is not None:
            lines.append(
                f"  epsilon is at least {rounded_down(self.epsilon_lower, 4)}, "
                f"claimed was {exact_text(self.claimed)} {sure}"
            )
        else:
            lines.append(f"  {'shown' if self.broken else 'nothing shown'} {sure}")
        lines.append(f"  {self.witness}")
        lines += [f"  {key}: {text}" for key, text in self.details.items()]
        lines.append(f"  {self.samples:,} samples in {self.seconds:.1f} s")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; rationals as text, infinity too."""
        finite = math.isfinite(self.epsilon_lower)
        return {
            "name": self.name,
            "target": self.target,
            "broken": self.broken,
            "epsilon_lower": self.epsilon_lower if finite else "inf",
            "claimed": None if self.claimed is None else str(self.claimed),
            "error": str(self.error),
            "samples": self.samples,
            "seconds": self.seconds,
            "witness": self.witness,
            "details": dict(self.details),
        }
