"""Keys that are shown from a threshold up: one release exactly, several by pairs.

Law      K keys move by 1. Each is of one of three kinds: both neighbours have it (E), only the one
         under P has it (N), only the other one (M). A key that one has alone is shown with the
         probability p. Kinds are those of the data: the same for all outcomes of one release
Theorem  (one release) with b keys N, c keys M, a = K-b-c keys E, and l = -ln(1-p), delta(x) is at
         most 1 - (1-p)**b + (1-p)**b D_a(x + (b-c) l), D_a the profile of a randomised responses
         of epsilon = 1/scale, and comes as close to that as one likes. The greatest over all b and
         c is the profile of a pair, which dominates the release
Proof    E: post-processed noise at distance 1, a randomised response (`TwoSidedGeometric`); nearly
         that if the counts are far above the threshold. N: shown with probability p, which the
         other law never does; not shown, a loss of ln(1-p). M: the reverse, always a loss of l.
         Keys are independent. The greatest of profiles is convex in exp(x), 1 at 0 and falls.  []
Theorem  (one key) that pair is the (e, p)-private one,
         e = ln(exp(1/scale) - exp((2-threshold)/scale)), or e = 0 where this is less: on x >= 0 the
         greater of p and D_1(x)
Differs  for several releases each key has that pair: valid if kinds follow from earlier answers,
         not tight for more than one key. The lower bound is that of all keys N or all keys E
Checked  tests/privacy/accounting/test_thresholds.py
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from lastbit.exact import arb_of, lower, upper, working_precision
from lastbit.laws import DiscreteLaplace
from lastbit.privacy.accounting.component import Component, Response, TwoSidedGeometric
from lastbit.privacy.accounting.composition import Composition

MOST_KEYS = 24
_PRECISION = 192
_WORTHWHILE = Fraction(1, 10**6)


@dataclass(frozen=True, slots=True)
class Threshold(TwoSidedGeometric):
    """One key of a release about so many: all is told with the probability that it is shown."""

    threshold: int
    keys: int

    def told_exactly(self) -> None:
        return None

    def infinite(self) -> arb:
        return DiscreteLaplace(self.scale).cumulative(1 - self.threshold)


def closed_threshold(part: Threshold, x: Fraction) -> arb:
    """D(x) of one release: the greatest over all kinds, less what all keys N tell."""
    shown = part.infinite()
    hidden, most = 1 - shown, arb(0)
    shift = -hidden.log()
    tells = [-((b * hidden.log()).expm1()) for b in range(part.keys + 1)]
    for b in range(part.keys):
        for c in range(part.keys - b + 1):
            reached = _responses(part.scale, part.keys - b - c, arb_of(x) + (b - c) * shift)
            gain = hidden**b * (reached - tells[part.keys - b])
            if not gain <= 0:
                most = most.max(gain)
    return most


def _responses(scale: Fraction, count: int, at: arb) -> arb:
    """The profile of so many randomised responses of 1/scale at once."""
    keep = 1 / (1 + (-arb_of(1 / scale)).exp())
    total = arb(0)
    for j in range(count + 1):
        gain = -(at - arb_of(Fraction(count - 2 * j) / scale)).expm1()
        if gain <= 0:
            break
        weight = arb.bin_uiui(count, j) * keep ** (count - j) * (1 - keep) ** j
        total += weight * gain.nonnegative_part()
    return total


# ---------------------------------------------------------------- several releases


def _thresholds(composition: Composition) -> list[tuple[Threshold, int]]:
    return [(part, n) for part, n in composition.parts if isinstance(part, Threshold)]


def has_thresholds(composition: Composition) -> bool:
    """Whether keys are shown from a threshold up."""
    return bool(_thresholds(composition))


def tight_pairs(composition: Composition) -> Composition | None:
    """Keys alone, each with the pair of the theorem, where it is worth its lattice."""
    pairs: dict[Component, Component] = {}
    if len(_thresholds(composition)) < len(composition.parts):
        return None
    for part, _ in _thresholds(composition):
        with working_precision(_PRECISION):
            step = arb_of(1 / part.scale)
            ratio = step.exp() - arb_of(Fraction(2 - part.threshold) / part.scale).exp()
            # where the ball does not say whether it is above 1, the loss is above 0
            loss = Fraction(0) if ratio <= 1 else Fraction(max(upper(ratio.log()), 0.0))
            if loss > (1 - _WORTHWHILE) / part.scale:
                continue
            pairs[part] = Response(loss, min(Fraction(upper(part.infinite())), Fraction(1)))
    if not pairs:
        return None
    return Composition.of(
        (pairs.get(part, part), n) for part, n in (*composition.parts, *composition.told)
    )


def attained_forms(composition: Composition) -> Iterator[tuple[Composition, Fraction]]:
    """Compositions with keys of known kinds, with shifts: delta(x) is at least theirs at x + it."""
    if not has_thresholds(composition):
        yield composition, Fraction(0)
        return
    for every_key_new in (False, True):
        parts: list[tuple[Component, int]] = []
        shift = Fraction(0)
        for part, n in (*composition.parts, *composition.told):
            if not isinstance(part, Threshold):
                parts.append((part, n))
            elif every_key_new:
                with working_precision(_PRECISION):
                    shown = part.infinite()
                    parts.append((Response(Fraction(0), Fraction(lower(shown))), n))
                    shift += n * Fraction(upper(-(1 - shown).log()))
            else:
                parts.append((TwoSidedGeometric(part.scale, 1), n))
        yield Composition.of(parts), shift
