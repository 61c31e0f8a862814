"""What a replay finds, in words a person can act on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Literal, TypeAlias

from flint import arb

from lastbit.errors import WrongType
from lastbit.exact import Number, arb_of, exact_text, working_precision
from lastbit.privacy import (
    ZCDP,
    ApproxDP,
    Guarantee,
    Loss,
    ProbabilisticDP,
    PureDP,
    best_composition,
    loss_parameter,
    plus,
    times,
)

Kind: TypeAlias = Literal[
    "control flow",
    "parameters",
    "sensitivity",
    "leak",
    "reuse",
    "fixed noise",
    "cost",
    "unfollowed",
]
_REMEDIES: Mapping[Kind, str] = MappingProxyType(
    {
        "control flow": "decide by released values and public facts only, and ask the same "
        "questions of all data",
        "parameters": "take bounds, scales, sizes and keys from public knowledge, "
        "not from the data",
        "sensitivity": "bound what one record can do before this line (clamp, count once, sum "
        "integers), or declare its true sensitivity",
        "leak": "return only released values and functions of them; wrap noise that cannot be "
        "followed with lastbit.audit.noise",
        "reuse": "draw fresh noise for every value; the difference of two such sums has none",
        "fixed noise": "do not seed the generator: who knows the seed takes the noise away",
        "cost": "lower the epsilon of the releases, make fewer, or claim what they cost. Wrap "
        "noisy maximum, sparse vector or sampling with lastbit.audit.noise",
        "unfollowed": "draw all noise in one thread, by numpy, lastbit or lastbit.audit.noise, "
        "and keep nothing from run to run",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something a neighbour showed: what, at which line, and what to do.

    It is `certain` if it refutes what the program or its mechanisms promise. It is not where the
    program may have a proof that a replay cannot see: costs are those of noisy values that are all
    shown, and noise may cover a value in a way that was not followed.

    str() and repr() hold nothing of the data. `distance` and `neighbour` do; `in_full()` prints
    them, for the eyes of those who may see the data.

    >>> print(Finding(kind="leak", where="report.py:12", problem="the output differs"))
    leak at report.py:12: the output differs; return only released values and functions of them; ...
    """

    kind: Kind
    where: str
    problem: str
    certain: bool = field(default=True, compare=False)
    distance: Loss | None = field(default=None, repr=False, compare=False)
    allowed: Fraction | None = field(default=None, compare=False)
    neighbour: str = field(default="", repr=False, compare=False)

    @property
    def remedy(self) -> str:
        return _REMEDIES[self.kind]

    def __str__(self) -> str:
        perhaps = "" if self.certain or self.kind in ("cost", "unfollowed") else "perhaps "
        return f"{perhaps}{self.kind} at {self.where}: {self.problem}; {self.remedy}"

    def in_full(self) -> str:
        """The same with what it says of the data: as secret as they are."""
        lines = [str(self)]
        if self.distance is not None:
            allowed = "" if self.allowed is None else f", {exact_text(self.allowed)} declared"
            lines.append(f"  moved by {exact_text(self.distance)}{allowed}")
        if self.neighbour:
            lines.append(f"  seen with {self.neighbour}")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """One neighbour's replay, as `record` shows: findings, and what the observed distances cost.

    `cost` holds one guarantee of each kind, composed; it is computed from data and so is secret.
    `declared` is the same with what mechanisms promise, whatever the distance. `gaussian` says that
    all of the cost is that of real Gaussian noise. `unpriced` names primitives that moved and whose
    cost is not known.
    """

    findings: tuple[Finding, ...]
    cost: tuple[Guarantee, ...] = field(repr=False)
    declared: tuple[Guarantee, ...] = field(default=(), repr=False)
    gaussian: bool = field(default=False, repr=False)
    unpriced: tuple[str, ...] = ()

    @property
    def clean(self) -> bool:
        return not self.findings

    def within(self, claim: Guarantee) -> bool:
        """Whether one of the bounds on the cost stays within the claim."""
        if keeps(claim, self.cost) or keeps(claim, self.declared):
            return True
        return self.gaussian and isinstance(claim, ApproxDP) and _under_curve(claim, self.cost)


# ---------------------------------------------------------------- what it costs


def composed(parts: Sequence[Guarantee]) -> tuple[Guarantee, ...]:
    """One guarantee of each kind: those of one kind add up."""
    totals: dict[type, Guarantee] = {}
    for part in parts:
        kind = type(part)
        totals[kind] = totals[kind] + part if kind in totals else part
    return tuple(totals.values())


def claim_of(claim: Guarantee | Number | None) -> Guarantee | None:
    """A claim as a guarantee; a number is a pure epsilon."""
    if claim is None or isinstance(claim, PureDP | ApproxDP | ProbabilisticDP | ZCDP):
        return claim
    if isinstance(claim, Guarantee):
        raise WrongType(
            "claim",
            problem=f"is of the kind {type(claim).__name__}",
            remedy="pass PureDP, ApproxDP or ZCDP",
        )
    return PureDP(loss_parameter(claim, "claim"))


def keeps(claim: Guarantee, parts: Sequence[Guarantee]) -> bool:
    """Whether these costs together stay within the claim, by the composition theorems known here.

    >>> keeps(PureDP(1), [PureDP("1/2"), PureDP("1/2")]), keeps(PureDP(1), [ZCDP("1/8")])
    (True, False)
    """
    totals = [part for part in composed(parts) if not _free(part)]
    if not totals:
        return True
    match claim:
        case PureDP():
            pure = all(isinstance(part, PureDP) for part in totals)
            return pure and totals[0].epsilon <= claim.epsilon  # type: ignore[union-attr]
        case ZCDP():
            rho: Loss = Fraction(0)
            for part in totals:
                match part:
                    case PureDP():
                        rho = plus(rho, times(part.epsilon, part.epsilon) / 2)
                    case ZCDP():
                        rho = plus(rho, part.rho)
                    case _:
                        return False
            return rho <= claim.rho
        case ApproxDP() | ProbabilisticDP():
            return best_composition(parts, claim.delta).epsilon <= claim.epsilon
    raise AssertionError(claim)


def _under_curve(claim: ApproxDP, cost: Sequence[Guarantee]) -> bool:
    """Whether Gaussian noise alone keeps the claim.

    Theorem  Gaussian releases at distances d_i with deviations s_i are as private as one at
             distance m with deviation 1, m**2 = sum d_i**2/s_i**2 = 2 rho, which keeps (e, d) if
             Phi(m/2 - e/m) - exp(e) Phi(-m/2 - e/m) <= d
    Source   Balle, Wang 2018; Dong, Roth, Su 2022 for many, also adaptive ones
    """
    (total,) = cost  # nothing else is Gaussian
    assert isinstance(total, ZCDP)
    if total.rho == math.inf or claim.epsilon == math.inf:
        return claim.epsilon == math.inf
    with working_precision(256):
        m, epsilon = (2 * arb_of(Fraction(total.rho))).sqrt(), arb_of(Fraction(claim.epsilon))
        half, shift, root = m / 2, epsilon / m, arb(2).sqrt()
        below, above = ((shift - half) / root).erfc(), ((shift + half) / root).erfc()
        return bool((below - epsilon.exp() * above) / 2 <= arb_of(claim.delta))


def a_little_more(claim: Guarantee) -> Guarantee:
    """The claim with room for the roundings of a scale that was computed in floats."""
    more = 1 + Fraction(1, 1 << 40)
    match claim:
        case PureDP() | ApproxDP() | ProbabilisticDP():
            return replace(claim, epsilon=times(more, claim.epsilon))
        case ZCDP():
            return replace(claim, rho=times(more, claim.rho))
    return claim


def _free(part: Guarantee) -> bool:
    match part:
        case PureDP():
            return part.epsilon == 0
        case ApproxDP() | ProbabilisticDP():
            return part.epsilon == 0 and part.delta == 0
    return isinstance(part, ZCDP) and part.rho == 0
