"""Whole mechanisms as code: is the rounding there, and which rounding would do?"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from lastbit.errors import InvalidParameter, NotCertified
from lastbit.exact import Number, positive, rational
from lastbit.verify.language import expressions as ex
from lastbit.verify.language.expressions import Expression, table
from lastbit.verify.rounding import Code, RoundingAnalysis, bound_to, certified_sums, followed_code
from lastbit.verify.tracing.trace import Followed

_MOST_HALVINGS = 256
_FORMS = (
    "Return step * round(x / step) or round(x * n) / n, the step or n the same in both places, and "
    "clamp that last, as in min(max(step * round(x / step), low), high)"
)


@dataclass(frozen=True, slots=True)
class _Parts:
    """Code taken apart: clamp(round(total to the cell), low, high)."""

    total: Expression
    cell: Fraction
    low: Fraction | None
    high: Fraction | None


def certified_code(
    code: Code,
    *,
    sensitivity: Number,
    region: tuple[Number, Number] | None = None,
    parameters: dict[str, Any] | None = None,
    **settings: Any,
) -> RoundingAnalysis:
    """What a mechanism written as code of `value` and u (and sign) loses at most.

    The code must round its sum to multiples of a step, and clamp the result; or `region` says to
    which ends results are moved afterwards. Other settings as in `rounding_certificate`. It is also
    run, near 0: `np.rint` gives -0.0 there, which tells the side; add 0.0.

    >>> import math
    >>> def naive(value, u, sign):
    ...     return value + sign * math.log(u)
    >>> certified_code(naive, sensitivity=1, region=(-8, 8))
    Traceback (most recent call last):
        ...
    lastbit.errors.NotCertified: the code does not round its result; ...
    >>> def rounded(value, u, sign):
    ...     return 0.25 * round((value + sign * math.log(u)) / 0.25)
    >>> float(certified_code(rounded, sensitivity=1, region=(-8, 8)).epsilon)
    1.000000000000...
    """
    followed = followed_code(code, "value", "u", parameters=parameters)
    return _certified(followed, sensitivity, region, settings)


def certified_function(
    code: Code, *, sensitivity: Number, cell: Number, region: tuple[Number, Number], **settings: Any
) -> tuple[RoundingAnalysis, bool]:
    """The same, or if the code does not round, what it loses once its result is; and if it does."""
    followed = followed_code(code, "value", "u")
    programs = tuple(one.expression for one in followed)
    if any(isinstance(s, ex.RoundTo) for program in programs for s in table(program).expressions):
        return _certified(followed, sensitivity, region, settings), True
    found = certified_sums(programs, sensitivity=sensitivity, cell=cell, region=region, **settings)
    return bound_to(found, "sum", followed), False


def _certified(
    code: tuple[Followed, ...],
    sensitivity: Number,
    region: tuple[Number, Number] | None,
    settings: Mapping[str, Any],
) -> RoundingAnalysis:
    parts = [_parts(one.expression) for one in code]
    first = parts[0]
    if any((p.cell, p.low, p.high) != (first.cell, first.low, first.high) for p in parts):
        raise NotCertified("the code rounds or clamps differently for the two signs")
    ends = region
    if first.low is not None and first.high is not None:
        if region is not None and tuple(rational(e, "region") for e in region) != (
            first.low,
            first.high,
        ):
            raise NotCertified("the code clamps its result to another region than the one given")
        ends = (first.low, first.high)
    if ends is None:
        raise NotCertified(
            "the code does not clamp its result; pass region, and move what lies beyond to its ends"
        )
    totals = tuple(p.total for p in parts)
    found = certified_sums(
        totals, sensitivity=sensitivity, cell=first.cell, region=ends, **settings
    )
    if found.region[0] <= 0 <= found.region[1]:
        for one in code:
            _check_zero(one, found)
    return bound_to(found, "mechanism", code)


def _check_zero(code: Followed, found: RoundingAnalysis) -> None:
    """Refuse code that gives -0.0: it cuts the cell over 0 in two, which the proof does not count.

    Around 0 results are looked at from both sides, for noise of every size.
    """
    powers = [2.0**-k for k in range(1, 53)]
    near = [0.5 + s * p / 2 for s in (-1, 1) for p in powers if p < 1]
    for value in (0.0, float(found.cell) / 8, -float(found.cell) / 8):
        for u in (*powers, *(1 - p for p in powers), *near):
            if _is_negative_zero(code, {"value": value, "u": u}):
                raise NotCertified(
                    "the code gives -0.0, which tells on which side of 0 the sum lay; "
                    "add 0.0 to its result"
                )


def _is_negative_zero(code: Followed, inputs: Mapping[str, float]) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            output = float(code.call(inputs))
    except (ArithmeticError, ValueError):  # the logarithm of 0
        return False
    except TypeError as failure:
        raise NotCertified(
            "the code raises TypeError on floats; make it take and return plain floats"
        ) from failure
    return output == 0 and math.copysign(1.0, output) < 0


def _parts(expression: Expression) -> _Parts:
    """The code's outermost steps: clamps, then the rounding, on every path."""
    match expression:
        case ex.Clamp():
            inner = _parts(expression.argument)
            lows = [end for end in (inner.low, expression.low) if end is not None]
            highs = [end for end in (inner.high, expression.high) if end is not None]
            low, high = max(lows, default=None), min(highs, default=None)
            return _Parts(inner.total, inner.cell, low, high)
        case ex.Piecewise():
            one, other = _parts(expression.then), _parts(expression.otherwise)
            if (one.cell, one.low, one.high) != (other.cell, other.low, other.high):
                raise NotCertified("the code rounds or clamps differently on its paths")
            total = ex.Piecewise(expression.condition, one.total, other.total)
            return _Parts(total, one.cell, one.low, one.high)
        case ex.RoundTo():
            return _Parts(expression.argument, expression.step, None, None)
        case (
            ex.Add(left=rounded, right=ex.Constant(value=nothing))
            | ex.Add(left=ex.Constant(value=nothing), right=rounded)
        ) if nothing == 0:
            return _parts(rounded)
        case (
            ex.Multiply(left=ex.Constant(value=step), right=ex.RoundTo() as rounded)
            | ex.Multiply(left=ex.RoundTo() as rounded, right=ex.Constant(value=step))
        ) if rounded.step == 1 and step > 0:
            quotient = rounded.argument
            if isinstance(quotient, ex.Divide) and quotient.right == ex.Constant(step):
                return _Parts(quotient.left, step, None, None)
        case ex.Divide(
            left=ex.RoundTo(
                argument=ex.Multiply(left=total, right=ex.Constant(value=factor)), step=unit
            ),
            right=ex.Constant(value=divisor),
        ) if unit == 1 and factor == divisor > 0:
            if not _is_float(factor):
                raise NotCertified(
                    "the code multiplies by a fraction that is not a float, so its cells are not "
                    "those of the fraction; divide by its inverse: step * round(x / step)"
                )
            # the product is rounded just as the quotient by 1/factor would be
            return _Parts(total, 1 / factor, None, None)
    if any(isinstance(step, ex.RoundTo) for step in table(expression).expressions):
        raise NotCertified(
            "the code does not round its result in a form that is known: something is done to it "
            f"after the rounding, or before. {_FORMS}"
        )
    raise NotCertified(
        "the code does not round its result; without rounding the last bits of float noise tell "
        f"the value. {_FORMS}, or pass the noise and a cell"
    )


def _is_float(number: Fraction) -> bool:
    try:
        return Fraction(float(number)) == number
    except OverflowError:
        return False


# ---------------------------------------------------------------- the other way round


def least_cell(
    certified: Callable[[Fraction], RoundingAnalysis],
    *,
    epsilon: Number,
    region: tuple[Number, Number],
) -> RoundingAnalysis:
    """The least power of two, as a cell, for which the loss is at most epsilon.

    `certified` maps a cell to its analysis. What is returned was certified as it is; that it is the
    least rests on the loss falling as the cell grows.
    """
    target = positive(epsilon, "epsilon")
    coarsest = _common_power(region)

    def meets(halvings: int) -> RoundingAnalysis | None:
        return _within(target, lambda: certified(coarsest / 2**halvings))

    best = meets(0)
    if best is None:
        problem = "is too wide for this epsilon, whatever the cell"
        raise InvalidParameter("region", problem=problem, remedy="ask for a larger epsilon")
    return _last(meets, best, 1, _MOST_HALVINGS)


def largest_region(
    certified: Callable[[Fraction], RoundingAnalysis], *, epsilon: Number, cell: Number
) -> RoundingAnalysis:
    """The largest region (-k cell, k cell) for which the loss is at most epsilon.

    `certified` maps an end k cell to the analysis of (-k cell, k cell).
    """
    target, step = positive(epsilon, "epsilon"), positive(cell, "cell")

    def meets(cells: int) -> RoundingAnalysis | None:
        return _within(target, lambda: certified(step * cells))

    best = meets(1)
    if best is None:
        problem = "is too small for this epsilon, whatever the region"
        raise InvalidParameter("cell", problem=problem, remedy="ask for a larger epsilon")
    return _last(meets, best, 2, 1 << _MOST_HALVINGS)


def _last(
    meets: Callable[[int], RoundingAnalysis | None], best: RoundingAnalysis, first: int, most: int
) -> RoundingAnalysis:
    """What the last number gives at which a condition holds that once fails for good.

    `best` is what the number before `first` gives. The numbers are doubled, then halved between.
    """
    low, high = first - 1, first
    while high <= most and (found := meets(high)) is not None:
        low, high, best = high, 2 * high, found
    while high - low > 1:
        middle = (low + high) // 2
        found = meets(middle)
        if found is None:
            high = middle
        else:
            low, best = middle, found
    return best


def _within(target: Fraction, analysis: Callable[[], RoundingAnalysis]) -> RoundingAnalysis | None:
    try:
        found = analysis()
    except NotCertified:
        return None
    return found if found.epsilon <= target else None


def _common_power(region: tuple[Number, Number]) -> Fraction:
    ends = [rational(end, "region") for end in region]
    powers = []
    for end in ends:
        if end.denominator & (end.denominator - 1):
            problem = "has an end that is not a multiple of a power of two"
            raise InvalidParameter("region", problem=problem, remedy="pass whole numbers")
        if end:
            powers.append(Fraction(end.numerator & -end.numerator, end.denominator))
    if not powers:
        raise InvalidParameter("region", problem="is empty", remedy="pass low < high")
    return min(powers)
