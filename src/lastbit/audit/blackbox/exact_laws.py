"""The exact loss of two inputs where the laws of their outputs are known.

No sample sees a violation that happens once in 2**60 runs; a law does. `Curator` mechanisms, which
publish the truth with a tiny probability and are faultless otherwise, pass every black-box audit
and are caught here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from typing import Any

from flint import arb

from lastbit.audit.bounds import claimed_epsilon
from lastbit.audit.result import OutputEvent, PairFinding
from lastbit.errors import InvalidParameter
from lastbit.exact import Ball, arb_of, lower, probability, rational, working_precision
from lastbit.laws import Law, OnGrid
from lastbit.verify import Code, ExactLaw, exact_law

_PRECISION = 256
_MOST_CELLS = 1 << 13
_TAIL = Fraction(1, 1 << 60)
_NAN = "NaN"


@dataclass(frozen=True, slots=True)
class _Cell:
    """A set of outputs with its probability under each of the two inputs."""

    name: str
    p: arb
    q: arb


def law_of(mechanism: Any) -> Callable[[Any], Any] | None:
    """How to get the exact law of a mechanism's output; None where there is no way.

    A mechanism with a method `law(value)` knows its own; code of one uniform (`verify.Code`) is
    worked out by bisection over its uniforms.
    """
    if isinstance(mechanism, Code):
        # not float(value): a rounded pair may be further apart than the one that was asked about
        signs = (-1, 1) if mechanism.takes(0.0, 0.5, 1) else None  # a sign only if it asks
        return lambda value: exact_law(mechanism, value, signs=signs)
    own = getattr(mechanism, "law", None)
    return own if callable(own) else None


def exact_finding(
    one: Any, two: Any, *, epsilon: Fraction | None, delta: Fraction
) -> PairFinding | None:
    """What the laws of the outputs of two inputs prove; None for laws of an unknown kind.

    Law      the greatest over m of ln((P(S_m) - delta) / Q(S_m)), in both directions; S_m are the m
             outputs of the greatest ratio P/Q. Infinite where Q(S_m) = 0 and P(S_m) > delta
    Theorem  (epsilon, delta)-privacy says P(S) <= e**epsilon Q(S) + delta for every set S, so each
             S_m gives a lower bound. For finitely many outputs the best set is among them: P - cQ
             is greatest on {P > cQ}. Infinitely many are gathered in finitely many cells, which is
             post-processing: a lower bound still. So is every other doubt decided: outputs that
             may be the same are one, and only a probability that is exactly 0 is
    Checked  tests/audit/test_exact_laws.py

    >>> half = Fraction(1, 2)
    >>> exact_finding({0: half, 1: half}, {0: 1}, epsilon=None, delta=Fraction(0)).epsilon_lower
    inf
    """
    if epsilon is not None:
        claimed_epsilon(epsilon, "epsilon")
    probability(delta, "delta")
    with working_precision(_PRECISION):
        cells = _cells(one, two)
        if cells is None:
            return None
        there = _best(cells, epsilon, delta, swapped=False)
        back = _best([_Cell(c.name, c.q, c.p) for c in cells], epsilon, delta, swapped=True)
    best = back if back.epsilon_lower > there.epsilon_lower else there
    deltas = [d for d in (there.delta_lower, back.delta_lower) if d is not None]
    return PairFinding(
        epsilon_lower=best.epsilon_lower,
        delta_lower=max(deltas, default=None),
        event=best.event,
        swapped=best.swapped,
    )


def _best(
    cells: list[_Cell], epsilon: Fraction | None, delta: Fraction, *, swapped: bool
) -> PairFinding:
    ordered = sorted(cells, key=_ratio, reverse=True)
    room, factor = arb_of(delta), None if epsilon is None else arb_of(epsilon).exp()
    p, q, loss, excess, length = arb(0), arb(0), 0.0, 0.0, 0
    for count, cell in enumerate(ordered, 1):
        p, q = p + cell.p, q + cell.q
        value = _loss(p - room, q)
        if value > loss:
            loss, length = value, count
        if factor is not None:
            excess = max(excess, _excess(p, q, factor))
    names = [cell.name for cell in ordered[:length]]
    return PairFinding(
        epsilon_lower=loss,
        delta_lower=None if factor is None else excess,
        event=OutputEvent.of(names),
        swapped=swapped,
    )


def _loss(above: arb, q: arb) -> float:
    """ln(above/q) rounded down; 0 where the sign of `above` is not certainly positive."""
    if not above > 0:
        return 0.0
    if q == 0:
        return math.inf
    return lower((above / q).log()) if q > 0 else 0.0


def _excess(p: arb, q: arb, factor: arb) -> float:
    """What p has above factor q, rounded down; 0 where the factor is too large for a ball."""
    if q == 0:
        return lower(p)
    rest = p - factor * q
    return lower(rest) if rest.is_finite() else 0.0


def _ratio(cell: _Cell) -> float:
    """A guess by which to sort; any order gives a true bound."""
    if not cell.p > 0:
        return -math.inf
    if not cell.q > 0:
        return math.inf
    return float((cell.p / cell.q).log().mid())


# ---------------------------------------------------------------- laws as cells


def _cells(one: Any, two: Any) -> list[_Cell] | None:
    if isinstance(one, OnGrid) and isinstance(two, OnGrid) and one.step == two.step:
        return _whole_numbers(one.law, two.law, one.step)
    if isinstance(one, Law) and isinstance(two, Law):
        return _whole_numbers(one, two, Fraction(1))
    bitwise = isinstance(one, ExactLaw) and isinstance(two, ExactLaw)
    first, second = _listed(one, bitwise=bitwise), _listed(two, bitwise=bitwise)
    if first is None or second is None:
        return None
    outputs = dict.fromkeys([*first, *second])
    for output in outputs:
        if (output in first) != (output in second) and not has_own_equality(output):
            raise InvalidParameter(
                "law",
                problem="has outputs that equal nothing but themselves",
                remedy="make them numbers, words or tuples: equal outputs must compare equal",
            )
    nothing = arb(0)
    return [_Cell(_name(o), first.get(o, nothing), second.get(o, nothing)) for o in outputs]


def _listed(law: Any, *, bitwise: bool) -> dict[Any, arb] | None:
    """Outputs and their probabilities; what may be one output is listed once."""
    pairs: list[tuple[Any, Any]]
    if isinstance(law, ExactLaw):
        pairs = list(zip(law.outputs, law.probabilities, strict=True))
    elif isinstance(law, Mapping):
        pairs = list(law.items())
    else:
        return None
    shares = [_probability(share) for _, share in pairs]
    _check_sum(shares)
    found: dict[Any, arb] = {}
    for (output, _), share in zip(pairs, shares, strict=True):
        key = _Zero(output) if bitwise and output == 0 else _same(output)
        ball = share if isinstance(share, arb) else arb_of(share)
        found[key] = found[key] + ball if key in found else ball
    return found


def listed_law(law: ExactLaw | Mapping[Any, Any]) -> dict[Any, arb]:
    """The outputs that a law lists, as it tells them apart, and their probabilities."""
    return _listed(law, bitwise=isinstance(law, ExactLaw)) or {}


def same_output(output: Any, law: Any) -> Any:
    """An output as `listed_law` would list it."""
    return _Zero(output) if isinstance(law, ExactLaw) and output == 0 else _same(output)


@dataclass(frozen=True, slots=True)
class _Zero:
    """A zero of running code with its sign: the bits tell -0.0 from 0.0."""

    output: float = field(compare=False)
    negative: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "negative", math.copysign(1.0, self.output) < 0)


def _same(output: Any) -> Any:
    """The output, NaN as one word: NaN differs from itself, and so every law from every other."""
    if isinstance(output, tuple):
        return tuple(_same(part) for part in output)
    if isinstance(output, frozenset):
        return frozenset(_same(part) for part in output)
    return _NAN if output != output else output


def has_own_equality(output: Any) -> bool:
    """Whether equal outputs compare equal: not so for objects that are compared by where they lie.

    >>> has_own_equality((1, "a", None)), has_own_equality((1, object()))
    (True, False)
    """
    if isinstance(output, tuple | frozenset):
        return all(has_own_equality(part) for part in output)
    alone = output is None or isinstance(output, Enum | type)  # of which there is only one
    return alone or getattr(type(output), "__eq__", None) is not object.__eq__


def _name(output: Any) -> str:
    return str(output.output if isinstance(output, _Zero) else output)


def _probability(share: Any) -> Fraction | arb:
    """A share of a law: a rational as it is, a ball as its enclosure."""
    known = share.enclosure if isinstance(share, Ball) else rational(share, "probability")
    if known < 0:
        raise InvalidParameter(
            "law", problem="has a negative probability", remedy="pass probabilities"
        )
    return known


def _check_sum(shares: list[Fraction | arb]) -> None:
    """Rationals must sum to 1 exactly, balls as far as they say."""
    exact = sum((share for share in shares if isinstance(share, Fraction)), Fraction(0))
    balls = [share for share in shares if isinstance(share, arb)]
    if not (sum(balls, arb_of(exact)).overlaps(arb(1)) if balls else exact == 1):
        raise InvalidParameter(
            "law", problem="has probabilities that do not sum to 1", remedy="list every output"
        )


def _whole_numbers(one: Law, two: Law, step: Fraction) -> list[_Cell]:
    """Single values in the middle, or ranges where there are too many, and the two tails."""
    low = min(_end(law, _TAIL, 0) for law in (one, two))
    high = max(_end(law, 1 - _TAIL, 1) for law in (one, two))
    width = max(1, -(-(high - low + 1) // _MOST_CELLS))
    if width == 1:
        cells = [
            _Cell(str(k * step), one.mass(k), two.mass(k)) for k in range(low, high + 1)
        ]  # from the masses themselves: a difference of sums would blur the rare ones
    else:
        cells = [_range(one, two, k, k + width - 1, step) for k in range(low, high + 1, width)]
        high = low + len(cells) * width - 1
    below = _Cell(f"below {low * step}", one.cumulative(low - 1), two.cumulative(low - 1))
    above = _Cell(f"above {high * step}", 1 - one.cumulative(high), 1 - two.cumulative(high))
    found = [*cells, below, above]
    _check_whole([[cell.p for cell in found], [cell.q for cell in found]])
    return found


def _check_whole(laws: list[list[arb]]) -> None:
    """Masses and cumulative function must tell of one law, and its quantiles of its bulk."""
    if not all(sum(shares, arb(0)).overlaps(arb(1)) for shares in laws):
        raise InvalidParameter(
            "law",
            problem="has masses that do not fit its cumulative function",
            remedy="let mass, cumulative, support and quantile be those of one law",
        )


def _range(one: Law, two: Law, low: int, high: int, step: Fraction) -> _Cell:
    shares = (law.cumulative(high) - law.cumulative(low - 1) for law in (one, two))
    return _Cell(f"from {low * step} to {high * step}", *shares)


def _end(law: Law, level: Fraction, side: int) -> int:
    known = law.support[side]
    if known is not None and abs(known) < 1 << 40:
        return known
    return law.quantile(level)
