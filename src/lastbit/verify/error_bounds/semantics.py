"""How far float code strays from its real meaning: e_R ⇓ e_F over a box of inputs.

Steps are judged by `rules.py`, cases apart; SPLIT halves a box where the bound is worst.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

from lastbit.errors import InvalidParameter, NoBound, Overflow, WrongType
from lastbit.exact import Number, floor_log2, rational, whole
from lastbit.verify.certificate import certify, written
from lastbit.verify.error_bounds.formats import BINARY64, Binary, Fixed, Format, hull, power_of_two
from lastbit.verify.error_bounds.rules import (
    Box,
    Derivation,
    Judgement,
    Machine,
    input_step,
    mean_error,
    step,
    steps_to_json,
)
from lastbit.verify.language.expressions import (
    Condition,
    Expression,
    Piecewise,
    Sample,
    Table,
    Variable,
    expression_to_json,
    names,
    rule_of,
    table,
)


class _Piece:
    """A box with its judgement, or with why there is none, or with its two halves."""

    __slots__ = ("box", "found", "halves")

    def __init__(self, over: Callable[[Box], Derivation], box: Box) -> None:
        self.box = box
        self.halves: tuple[_Piece, _Piece] | None = None
        self.found: Derivation | NoBound
        try:
            self.found = over(box)
        except NoBound as problem:
            self.found = problem

    @property
    def badness(self) -> tuple[bool, Fraction]:
        found = self.found
        return (True, Fraction(0)) if isinstance(found, NoBound) else (False, found.error)


def split(over: Callable[[Box], Derivation], box: Box, *, most: int) -> Derivation:
    """The judgement over a box, from at most `most` pieces, the worst always halved first."""
    root = _Piece(over, box)
    count = 1
    queue: list[tuple[bool, Fraction, int, _Piece]] = []

    def push(piece: _Piece) -> None:
        unbounded, error = piece.badness
        heapq.heappush(queue, (not unbounded, -error, 2 * count + len(queue), piece))

    push(root)
    while count < most and queue:
        *_, worst = heapq.heappop(queue)
        worst.halves = _best_halves(over, worst.box)
        if worst.halves is None:  # a single point: nothing to gain
            break
        count += 1
        for half in worst.halves:
            push(half)
    return _joined(root)


def _best_halves(over: Callable[[Box], Derivation], box: Box) -> tuple[_Piece, _Piece] | None:
    """The halves along the input whose halving helps most."""
    best = None
    for index, (name, low, high) in enumerate(box):
        if low == high:
            continue
        at = _middle(low, high)
        one, two = (
            _Piece(over, (*box[:index], (name, *ends), *box[index + 1 :]))
            for ends in ((low, at), (at, high))
        )
        rest, worst = sorted((one.badness, two.badness))
        score = (worst, rest, (low - high) / max(abs(low), abs(high)))
        if best is None or score < best[0]:
            best = score, (one, two)
    return None if best is None else best[1]


def _middle(low: Fraction, high: Fraction) -> Fraction:
    """A short number strictly between: the middle, or by exponents if the ends differ greatly."""
    if low > 0 and high > 8 * low:
        return power_of_two((floor_log2(low) + floor_log2(high) + 1) // 2)
    if high < 0 and low < 8 * high:
        return -_middle(-high, -low)
    middle = (low + high) / 2
    step = power_of_two(floor_log2(high - low) - 6)
    return round(middle / step) * step


def _joined(root: _Piece) -> Derivation:
    order, stack = [], [root]
    while stack:
        order.append(stack.pop())
        stack.extend(order[-1].halves or ())
    done: dict[int, Derivation] = {}
    for piece in reversed(order):  # every piece after its halves
        found = piece.found
        if piece.halves is not None:
            both = tuple(done[id(half)] for half in piece.halves)
            found = Derivation("SPLIT", both[0].expression, _union(both), both, piece.box)
        if isinstance(found, NoBound):
            raise found
        done[id(piece)] = found
    return done[id(root)]


Errors: TypeAlias = Mapping[str, Number | Literal["rounded"]] | None
"""How far inputs are off: a bound or ROUNDED, by their names."""

ROUNDED: Final = "rounded"
"""The error of an input that is a real number rounded to the nearest of the format."""

DEFAULT_ULPS: Final = MappingProxyType(
    {"exp": Fraction(1), "ln": Fraction(1), "sqrt": Fraction(1, 2)}
)


def analyse(
    expression: Expression,
    ranges: Mapping[str, tuple[Number, Number]],
    *,
    errors: Errors = None,
    format: Format = BINARY64,
    ulps: Mapping[str, Number] | None = None,
    pieces: int = 1,
) -> Derivation:
    """Where the real and the machine's value lie, and how far they may be apart.

    Law      conclusion.real holds the real value and conclusion.computed the machine's, for all
             real inputs in `ranges` and all inputs of the machine (numbers of the format) within
             `errors` of them; abs(computed - real) <= conclusion.error
    Theorem  by induction over the steps, each by its rule (`rules.py`); where it is sharper, by
             carrying all roundings to the result at once (MEAN); SPLIT takes the worse of two
             halves. All ends are exact rationals, rounded outward.
    Source   paper 002, Figure 1
    Differs  rules for operands of any sign (the paper divides negative bounds the wrong way), with
             underflow, and refusing overflow, division by 0 and ln of what may not be above 0;
             steps of the format instead of a relative error
    Checked  tests/verify/test_semantics.py; the checker re-derives every number;
             proof: docs/theory/error-semantics.md

    Inputs are exact unless `errors` says otherwise: a bound, or ROUNDED. `ulps` is how far ln, exp
    and sqrt may be off (default 1, 1 and 1/2: an assumption on the library, unless 1/2 is what
    correctly rounding code proves). More `pieces` cost time and sharpen the bound.

    >>> from lastbit.verify import trace
    >>> area = trace(lambda x, y: x * y + 1.0)
    >>> found = analyse(area, {"x": (1, 2), "y": (-1, 3)})
    >>> print(found.conclusion)
    real [-1, 7], computed [-1, 7], error ≤ 8.881785e-16
    """
    machine = machine_of(format, ulps)
    box = _box(expression, ranges)
    work = _Work(table(expression), machine, _errors(errors, box))
    return split(work.over, box, most=whole(pieces, "pieces", least=1))


def error_certificate(
    derivation: Derivation,
    *,
    errors: Errors = None,
    format: Format = BINARY64,
    ulps: Mapping[str, Number] | None = None,
) -> dict[str, Any]:
    """A certificate of kind "error-bound", from a derivation made with the same arguments.

    >>> from lastbit.verify import problem_of, trace
    >>> found = analyse(trace(lambda x: x * x + 1.0), {"x": (0, 2)})
    >>> certificate = error_certificate(found)
    >>> certificate["kind"], problem_of(certificate)
    ('error-bound', None)
    """
    claim, body = error_proof(derivation, errors=errors, format=format, ulps=ulps)
    return certify("error-bound", claim, body)


def error_proof(
    derivation: Derivation,
    *,
    errors: Errors = None,
    format: Format = BINARY64,
    ulps: Mapping[str, Number] | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Claim and body of an error bound, as parts of a larger certificate."""
    machine = machine_of(format, ulps)
    slack = _errors(errors, derivation.box)
    claim = {
        "expression": expression_to_json(derivation.expression),
        "ranges": {name: [written(low), written(high)] for name, low, high in derivation.box},
        "errors": {name: ROUNDED if e is None else written(e) for name, e in slack.items()},
        "format": machine.format.json(),
        "ulps": {name: str(value) for name, value in machine.ulps.items()},
        "real": [*map(written, derivation.conclusion.real)],
        "computed": [*map(written, derivation.conclusion.computed)],
        "error": written(derivation.conclusion.error),
    }
    return claim, steps_to_json(derivation)


@dataclass(frozen=True, slots=True)
class _Work:
    """One expression on one machine: its judgement over any box."""

    steps: Table
    machine: Machine
    errors: Mapping[str, Fraction | None]

    def over(self, box: Box) -> Derivation:
        return self._goal(len(self.steps.expressions) - 1, box)

    def _goal(self, root: int, box: Box) -> Derivation:
        """The step-by-step judgement, or the one by MEAN if it is sharper."""
        found: dict[int, Derivation] = {}
        roundings: dict[int, Fraction | None] = {}
        for index in self.steps.reached(root, self._used):
            try:
                found[index], roundings[index] = self._step(index, found, box)
            except Overflow as problem:
                raise NoBound(f"{problem}; narrow the ranges") from None
        plain = found[root]
        judgements = {index: part.conclusion for index, part in found.items()}
        error = mean_error(self.steps, root, judgements, roundings)
        if error >= plain.error:
            return plain
        conclusion = replace(plain.conclusion, error=error)
        return Derivation("MEAN", plain.expression, conclusion, tuple(found.values()), box)

    def _used(self, index: int) -> tuple[int, ...]:
        """The steps below, but not those inside a case distinction: branches have their own box."""
        cases = isinstance(self.steps.expressions[index], Piecewise)
        return () if cases else self.steps.below[index]

    def _step(
        self, index: int, found: Mapping[int, Derivation], box: Box
    ) -> tuple[Derivation, Fraction | None]:
        """A step's derivation and its own rounding; None if only its whole error is known."""
        node, below = self.steps.expressions[index], self.steps.below[index]
        rounding: Fraction | None = None
        premises: tuple[Derivation, ...] = ()
        if isinstance(node, Piecewise):
            premises = self._branches(node.condition, below, box)
            conclusion = _union(premises)
        elif isinstance(node, Variable | Sample):
            interval = next((low, high) for name, low, high in box if name == node.name)
            conclusion = input_step(interval, self.errors[node.name], self.machine)
            rounding = conclusion.error
        else:
            premises = tuple(found[place] for place in below)
            judged = [premise.conclusion for premise in premises]
            square = len(below) == 2 and below[0] == below[1]
            conclusion, rounding = step(node, judged, self.machine, square=square)
        return Derivation(rule_of(node), node, conclusion, premises, box), rounding

    def _branches(
        self, condition: Condition, below: tuple[int, ...], box: Box
    ) -> tuple[Derivation, ...]:
        if self.errors[condition.name] != 0:
            raise NoBound("a branch on an input with an error may go two ways; make it exact")
        if not self.machine.format.holds(condition.bound):
            raise NoBound("a branch compares with a number that is not in the format")
        parts = zip(_narrowed(condition, box), below, strict=True)
        return tuple(self._goal(place, part) for part, place in parts if part is not None)


def _narrowed(condition: Condition, box: Box) -> tuple[Box | None, Box | None]:
    """The closed boxes that hold all inputs where a condition is true, and where it is false."""
    low, high = next((low, high) for name, low, high in box if name == condition.name)
    at, strict = condition.bound, condition.relation == "<"
    if condition.relation == "==":
        then = (at, at) if low <= at <= high else None
        otherwise = (low, high) if not low == at == high else None
    else:
        then = (low, min(high, at)) if (low < at if strict else low <= at) else None
        otherwise = (max(low, at), high) if (high >= at if strict else high > at) else None

    def with_ends(ends: tuple[Fraction, Fraction] | None) -> Box | None:
        if ends is None:
            return None
        return tuple((r[0], *ends) if r[0] == condition.name else r for r in box)

    return with_ends(then), with_ends(otherwise)


def _union(parts: tuple[Derivation, ...]) -> Judgement:
    """What holds over all parts of a box."""
    first, *rest = (part.conclusion for part in parts)
    for other in rest:
        real, computed = hull(first.real, other.real), hull(first.computed, other.computed)
        first = Judgement(real, computed, max(first.error, other.error))
    return first


def machine_of(format: object, given: Mapping[str, Number] | None) -> Machine:
    """The machine that was asked for, or a refusal that names what has no meaning."""
    if not isinstance(format, Binary | Fixed):
        raise WrongType("format", problem="is not a number format", remedy="pass BINARY64")
    ulps = dict(DEFAULT_ULPS)
    most = 2 ** (format.significand - 2) if isinstance(format, Binary) else 2**20
    for name, value in (given or {}).items():
        if name not in (*DEFAULT_ULPS, "cos", "sin"):
            problem, remedy = "names an unknown function", "pass ln, exp, sqrt, cos or sin"
            raise InvalidParameter("ulps", problem=problem, remedy=remedy)
        ulps[name] = rational(value, "ulps")
        if not Fraction(1, 2) <= ulps[name] <= most:
            problem, remedy = "is below 1/2 or absurdly large", "pass 1/2 or more"
            raise InvalidParameter("ulps", problem=problem, remedy=remedy)
    return Machine(format, ulps)


def _box(expression: Expression, ranges: Mapping[str, tuple[Number, Number]]) -> Box:
    wanted = names(expression)
    wrong = [name for name in wanted if name not in ranges] or sorted(set(ranges) - set(wanted))
    if wrong:
        problem = "lacks an input, or has one that is not used: " + ", ".join(wrong)
        remedy = "pass (low, high) for " + (", ".join(wanted) or "nothing")
        raise InvalidParameter("ranges", problem=problem, remedy=remedy)
    box = []
    for name in wanted:
        try:
            low, high = ranges[name]
        except (TypeError, ValueError):
            raise WrongType(name, problem="has no range", remedy="pass (low, high)") from None
        ends = rational(low, name), rational(high, name)
        if ends[0] > ends[1]:
            raise InvalidParameter(name, problem="has an empty range", remedy="pass low <= high")
        box.append((name, *ends))
    return tuple(box)


def _errors(given: Errors, box: Box) -> dict[str, Fraction | None]:
    errors: dict[str, Fraction | None] = {name: Fraction(0) for name, _, _ in box}
    for name, value in (given or {}).items():
        if name not in errors:
            problem = "names an input that is not used"
            raise InvalidParameter("errors", problem=problem, remedy="leave it out")
        bound = errors[name] = None if value == ROUNDED else rational(value, name)
        if bound is not None and bound < 0:
            raise InvalidParameter(name, problem="has a negative error", remedy="pass 0 or more")
    return errors
