"""The exact loss of two inputs where the laws of their outputs are known.

No sample sees a violation that happens once in 2**60 runs; a law does. `Curator` mechanisms, which
publish the truth with a tiny probability and are faultless otherwise, pass every black-box audit
and are caught here. Code whose law is only probed is run: the law chooses the event, runs decide.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from fractions import Fraction
from typing import Any

from flint import arb

from lastbit.audit.bounds import delta_lower, epsilon_lower
from lastbit.audit.result import OutputEvent, PairFinding
from lastbit.errors import InvalidParameter, NotMonotone
from lastbit.exact import Ball, arb_of, lower, nonnegative, probability, rational, working_precision
from lastbit.laws import Law, OnGrid
from lastbit.sampling import secure_bits, uniform_below
from lastbit.verify import (
    Code,
    ExactLaw,
    Uniform,
    evaluated,
    exact_law,
    input_of,
    order,
)

_PRECISION = 256
_MOST_CELLS = 1 << 13
_TAIL = Fraction(1, 1 << 60)
_NAN = "NaN"
RUNS = 1 << 16  # of each input
_BITS = 128
_FEW = 75  # bits below which a float of full precision is not yet known
_MORE = 1024
_WIDE, _NONE = 5.0, 15.0  # what an interval costs, about: in standard deviations, and in runs


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
        nonnegative(epsilon, "epsilon")
    probability(delta, "delta")
    with working_precision(_PRECISION):
        cells = _cells(one, two)
        if cells is None:
            return None
        best = _best(cells, epsilon, delta)
        back = _best([_Cell(c.name, c.q, c.p) for c in cells], epsilon, delta)
    deltas = [d for d in (best.delta_lower, back.delta_lower) if d is not None]
    if back.epsilon_lower > best.epsilon_lower:
        best = replace(back, swapped=True)
    return replace(best, delta_lower=max(deltas, default=None))


def _best(cells: list[_Cell], epsilon: Fraction | None, delta: Fraction) -> PairFinding:
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
    return PairFinding(
        epsilon_lower=loss,
        delta_lower=None if factor is None else excess,
        event=OutputEvent.of([cell.name for cell in ordered[:length]]),
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
    first, second = listed_law(one, bitwise=bitwise), listed_law(two, bitwise=bitwise)
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
    return [_Cell(str(o), first.get(o, nothing), second.get(o, nothing)) for o in outputs]


def listed_law(law: Any, *, bitwise: bool) -> dict[Any, arb] | None:
    """Outputs and their probabilities; what may be one output is listed once.

    The bits tell -0.0 from 0.0 if `bitwise`, as in laws of running code. Rationals must sum to 1
    exactly, balls as far as they say.
    """
    pairs: list[tuple[Any, Any]]
    if isinstance(law, ExactLaw):
        pairs = list(zip(law.outputs, law.probabilities, strict=True))
    elif isinstance(law, Mapping):
        pairs = list(law.items())
    else:
        return None
    found: dict[Any, arb] = {}
    exact, balls = Fraction(0), []
    for output, given in pairs:
        share = given.enclosure if isinstance(given, Ball) else rational(given, "probability")
        if share < 0:
            raise InvalidParameter(
                "law", problem="has a negative probability", remedy="pass probabilities"
            )
        if isinstance(share, Fraction):
            exact, ball = exact + share, arb_of(share)
        else:
            ball = share
            balls.append(ball)
        key = same_output(output, bitwise=bitwise)
        found[key] = found[key] + ball if key in found else ball
    if not (sum(balls, arb_of(exact)).overlaps(arb(1)) if balls else exact == 1):
        raise InvalidParameter(
            "law", problem="has probabilities that do not sum to 1", remedy="list every output"
        )
    return found


def same_output(output: Any, *, bitwise: bool) -> Any:
    """An output as `listed_law` lists it."""
    return _Zero(output) if bitwise and output == 0 else _same(output)


@dataclass(frozen=True, slots=True)
class _Zero:
    """A zero of running code with its sign: the bits tell -0.0 from 0.0."""

    output: float = field(compare=False)
    negative: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "negative", math.copysign(1.0, self.output) < 0)

    def __str__(self) -> str:
        return str(self.output)


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


def _whole_numbers(one: Law, two: Law, step: Fraction) -> list[_Cell]:
    """Single values in the middle, or ranges where there are too many, and the two tails."""
    low = min(_end(law, _TAIL, 0) for law in (one, two))
    high = max(_end(law, 1 - _TAIL, 1) for law in (one, two))
    width = max(1, -(-(high - low + 1) // _MOST_CELLS))
    cells = []
    for k in range(low, high + 1, width):
        if width == 1:  # the masses themselves: a difference of sums would blur the rare ones
            cells.append(_Cell(str(k * step), one.mass(k), two.mass(k)))
        else:
            last = k + width - 1
            shares = (law.cumulative(last) - law.cumulative(k - 1) for law in (one, two))
            cells.append(_Cell(f"from {k * step} to {last * step}", *shares))
    high = low + len(cells) * width - 1
    below = _Cell(f"below {low * step}", one.cumulative(low - 1), two.cumulative(low - 1))
    above = _Cell(f"above {high * step}", 1 - one.cumulative(high), 1 - two.cumulative(high))
    found = [*cells, below, above]
    for masses in ([cell.p for cell in found], [cell.q for cell in found]):
        if not sum(masses, arb(0)).overlaps(arb(1)):
            raise InvalidParameter(
                "law",
                problem="has masses that do not fit its cumulative function",
                remedy="let mass, cumulative, support and quantile be those of one law",
            )
    return found


def _end(law: Law, level: Fraction, side: int) -> int:
    known = law.support[side]
    return known if known is not None and abs(known) < 1 << 40 else law.quantile(level)


# ---------------------------------------------------------------- code that was only probed


def counted(
    code: Code,
    pair: tuple[Any, Any],
    laws: tuple[ExactLaw, ExactLaw],
    *,
    epsilon: Fraction | None,
    delta: Fraction,
    error: Fraction,
    runs: int = RUNS,
) -> PairFinding:
    """The event that promises most by the laws, counted in `runs` fresh runs of each input.

    Law      the law of code that is worked out by bisection is its law if the code is monotone in
             its uniform. Where that is not proved, it only says where to look
    Theorem  the pair of inputs, the event and the number of runs are functions of that law and of
             what was asked, fixed before the first run is drawn. The runs draw the uniform and the
             sign as the model says, so the counts are binomial with the true probabilities,
             whatever the code is; the bound is wrong with probability at most `error`
    Checked  tests/audit/test_probed_code.py
    """
    swapped, event = _most_telling([law.by_output for law in laws], delta, runs)
    names = {order(r): r for law in laws for r in law.outputs}
    found = [
        _hits(code, input_of(value, "value"), law, event, runs)
        for value, law in zip(pair, laws, strict=True)
    ]
    one, two = reversed(found) if swapped else found
    return PairFinding(
        epsilon_lower=epsilon_lower(one, runs, two, runs, delta=delta, error=error),
        delta_lower=None
        if epsilon is None
        else delta_lower(one, runs, two, runs, epsilon=epsilon, error=error),
        event=OutputEvent.of([str(names[key]) for key in sorted(event)]),
        swapped=swapped,
        hits=one,
        trials=runs,
        other_hits=two,
        other_trials=runs,
        samples=2 * runs,
    )


def _most_telling(
    shares: Sequence[dict[int, Fraction]], delta: Fraction, runs: int
) -> tuple[bool, frozenset[int]]:
    """The outputs that are likelier under one input, as many as promise the greatest bound."""
    best: tuple[float, bool, frozenset[int]] = (-math.inf, False, frozenset())
    for swapped in (False, True):
        p, q = reversed(shares) if swapped else iter(shares)
        shares_of = {k: (float(p.get(k, 0)), float(q.get(k, 0))) for k in {*p, *q}}
        ratios = {k: a / b if b else math.inf if a else 0.0 for k, (a, b) in shares_of.items()}
        outputs = sorted(shares_of, key=ratios.__getitem__, reverse=True)
        some, other = 0.0, 0.0
        for count, key in enumerate(outputs, 1):
            some, other = some + shares_of[key][0], other + shares_of[key][1]
            # a guess at the bound that these runs will prove
            least = some - _WIDE * math.sqrt(max(some * (1 - some), 0.0) / runs) - float(delta)
            most = other + _WIDE * math.sqrt(max(other * (1 - other), 0.0) / runs) + _NONE / runs
            found = math.log(least / most) if least > 0 else -math.inf
            if found > best[0]:
                best = found, swapped, frozenset(outputs[:count])
    return best[1], best[2]


def _hits(code: Code, value: float, law: ExactLaw, event: frozenset[int], runs: int) -> int:
    """How many fresh runs of an input end in the event; refused if one ends outside the law."""
    known = {order(output) for output in law.outputs}
    signs: Sequence[int | None] = (None,) if law.signs is None else law.signs
    coins = uniform_below(len(signs), size=runs).tolist()
    hits = 0
    for u, coin in zip(_uniforms(law.uniform, runs), coins, strict=True):
        output = order(evaluated(code, value, u, signs[int(coin)]))
        if output not in known:
            raise NotMonotone(
                "the code is not monotone in its uniform, as one output shows; audit a "
                "function(value) by samples"
            )
        hits += output in event
    return hits


def _uniforms(uniform: Uniform, count: int) -> list[float]:
    """`count` draws, exactly as the model says."""
    if uniform.below(1) * uniform.size == 1:  # all alike
        return [uniform.point(int(k)) for k in uniform_below(uniform.size, size=count).tolist()]
    drawn, size = secure_bits().fill(count * _BITS // 8).tobytes(), _BITS // 8
    found = []
    for start in range(0, count * size, size):
        k, bits = int.from_bytes(drawn[start : start + size]), _BITS
        if k >> _FEW == 0:  # the next digits matter too
            more = int.from_bytes(secure_bits().fill(_MORE // 8).tobytes())
            k, bits = (k << _MORE) | more, _BITS + _MORE
        found.append(uniform.point(uniform.number(Fraction(k, 1 << bits))))
    return found
