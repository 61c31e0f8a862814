"""Whole mechanisms as code: is the rounding there, and which rounding would do?"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from lastbit.errors import InvalidParameter, NotCertified
from lastbit.exact import Number, positive, rational
from lastbit.verify.error_bounds.formats import BINARY64, Interval
from lastbit.verify.language import expressions as ex
from lastbit.verify.language.expressions import Expression, table
from lastbit.verify.rounding import Code, RoundingAnalysis, bound_to, certified_sums, followed_code
from lastbit.verify.tracing.trace import Followed

_MOST_HALVINGS = 256
_FORMS = (
    "Return step * round(x / step) or round(x * n) / n, the step or n the same in both places, and "
    "clamp that last, as in min(max(step * round(x / step), low), high)"
)


class _Parts(NamedTuple):
    """Code taken apart: clamp(round(total to the cell), low, high)."""

    total: Expression
    cell: Fraction
    low: Fraction | None = None
    high: Fraction | None = None


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
    _, cell, low, high = parts[0]
    if any(part[1:] != parts[0][1:] for part in parts):
        raise NotCertified("the code rounds or clamps differently for the two signs")
    ends = region
    if low is not None and high is not None:
        if region is not None and [rational(e, "region") for e in region] != [low, high]:
            raise NotCertified("the code clamps its result to another region than the one given")
        ends = (low, high)
    if ends is None:
        raise NotCertified(
            "the code does not clamp its result; pass region, and move what lies beyond to its ends"
        )
    totals = tuple(part.total for part in parts)
    found = certified_sums(totals, sensitivity=sensitivity, cell=cell, region=ends, **settings)
    over_zero = found.region[0] <= 0 <= found.region[1]
    if over_zero and any(_gives_negative_zero(one, found.cell) for one in code):
        raise NotCertified(
            "the code gives -0.0, which tells on which side of 0 the sum lay; add 0.0 to its result"
        )
    kinds = sorted({kind for one in code for kind in one.typed()[-1].kinds})
    if len(kinds) > 1:
        raise NotCertified(
            f"the code returns {' or '.join(kinds)}, and the type of a result tells what its "
            "number does not (8 is not 8.0 in print); return one type: write the ends of min and "
            "max as floats, -8.0 and 8.0, or use np.clip"
        )
    if any(_overflows(one.expression, found.region) for one in code):
        raise NotCertified(
            "the code may compute with numbers beyond all floats, and round fails there, for some "
            "values and not for others; measure values and noise in larger units"
        )
    return bound_to(found, "mechanism", code)


def _overflows(program: Expression, region: Interval) -> bool:
    """Whether a step may be beyond all floats, for a value of the region and any u.

    Theorem  no size of a step exceeds the one found: sizes of sums and products add and multiply, a
             logarithm of a float above 0 is below 746, and rounding adds less than half
    """
    steps, sizes = table(program), list[Fraction]()
    for node, below in zip(steps.expressions, steps.below, strict=True):
        under = [sizes[place] for place in below]
        match node:
            case ex.Constant():
                size = abs(node.value)
            case ex.Variable():
                size = Fraction(1) if node.name == "u" else max(map(abs, region))
            case ex.Add() | ex.Subtract():
                size = sum(under, Fraction(0))
            case ex.Multiply():
                size = under[0] * under[1]
            case ex.Divide(right=ex.Constant(value=divisor)) if divisor:
                size = under[0] / abs(divisor)
            case ex.Ln():
                size = Fraction(746)
            case ex.Sign():
                size = Fraction(1)
            case ex.RoundTo():
                size = under[0] + node.step
            case ex.Negate() | ex.Absolute() | ex.Piecewise():
                size = max(under)
            case ex.Clamp():
                size = max(abs(end) for end in (under[0], node.low, node.high) if end is not None)
            case _:
                return True
        sizes.append(size)
    return max(sizes) > BINARY64.largest / 2


def _gives_negative_zero(code: Followed, cell: Fraction) -> bool:
    """Whether code gives -0.0: it cuts the cell over 0 in two, which the proof does not count.

    Around 0 results are looked at from both sides, for noise of every size.
    """
    powers = [2.0**-k for k in range(1, 53)]
    uniforms = [
        *powers,
        *(1 - p for p in powers),
        *(0.5 + s * p / 2 for s in (-1, 1) for p in powers),
    ]
    for value in (0.0, float(cell) / 8, -float(cell) / 8):
        for u in uniforms:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    output = float(code.call({"value": value, "u": u}))
            except (ArithmeticError, ValueError):  # the logarithm of 0
                continue
            except TypeError as failure:
                raise NotCertified(
                    "the code raises TypeError on floats; make it take and return plain floats"
                ) from failure
            if output == 0 and math.copysign(1.0, output) < 0:
                return True
    return False


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
            if one[1:] != other[1:]:
                raise NotCertified("the code rounds or clamps differently on its paths")
            return one._replace(total=ex.Piecewise(expression.condition, one.total, other.total))
        case ex.RoundTo():
            return _Parts(expression.argument, expression.step)
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
                return _Parts(quotient.left, step)
        case ex.Divide(
            left=ex.RoundTo(
                argument=ex.Multiply(left=total, right=ex.Constant(value=factor)), step=unit
            ),
            right=ex.Constant(value=divisor),
        ) if unit == 1 and factor == divisor > 0:
            if not BINARY64.holds(factor):
                raise NotCertified(
                    "the code multiplies by a fraction that is not a float, so its cells are not "
                    "those of the fraction; divide by its inverse: step * round(x / step)"
                )
            # the product is rounded just as the quotient by 1/factor would be
            return _Parts(total, 1 / factor)
    if any(isinstance(step, ex.RoundTo) for step in table(expression).expressions):
        raise NotCertified(
            "the code does not round its result in a form that is known: something is done to it "
            f"after the rounding, or before. {_FORMS}"
        )
    raise NotCertified(
        "the code does not round its result; without rounding the last bits of float noise tell "
        f"the value. {_FORMS}, or pass the noise and a cell"
    )


def least_cell(
    certified: Callable[[Fraction], RoundingAnalysis],
    *,
    epsilon: Number,
    region: tuple[Number, Number],
) -> RoundingAnalysis:
    """The least power of two, as a cell, for which the loss is at most epsilon.

    `certified` maps a cell to its analysis. What is returned was certified as it is; that it is the
    least rests on the loss falling as the cell grows.

    >>> from lastbit.verify import Grid, rounding_certificate
    >>> def noise(u, sign):
    ...     return sign * math.log(u)
    >>> def analysed(cell):
    ...     return rounding_certificate(noise, sensitivity=1, cell=cell, region=(-4, 4),
    ...                                 uniform=Grid(20))
    >>> print(least_cell(analysed, epsilon="1.5", region=(-4, 4)).cell)
    1/32
    """
    coarsest, target = _common_power(region), positive(epsilon, "epsilon")
    best = _last(lambda halvings: certified(coarsest / 2**halvings), target, 0, _MOST_HALVINGS)
    if best is None:
        problem = "is too wide for this epsilon, whatever the cell"
        raise InvalidParameter("region", problem=problem, remedy="ask for a larger epsilon")
    return best


def largest_region(
    certified: Callable[[Fraction], RoundingAnalysis], *, epsilon: Number, cell: Number
) -> RoundingAnalysis:
    """The largest region (-k cell, k cell) for which the loss is at most epsilon.

    `certified` maps an end k cell to the analysis of (-k cell, k cell).

    >>> from lastbit.verify import Grid, rounding_certificate
    >>> def noise(u, sign):
    ...     return sign * math.log(u)
    >>> def analysed(end):
    ...     return rounding_certificate(noise, sensitivity=1, cell=1, region=(-end, end),
    ...                                 uniform=Grid(20))
    >>> largest_region(analysed, epsilon="1.5", cell=1).region[1]
    Fraction(6, 1)
    """
    target, step = positive(epsilon, "epsilon"), positive(cell, "cell")
    best = _last(lambda cells: certified(step * cells), target, 1, 1 << _MOST_HALVINGS)
    if best is None:
        problem = "is too small for this epsilon, whatever the region"
        raise InvalidParameter("cell", problem=problem, remedy="ask for a larger epsilon")
    return best


def _last(
    certified: Callable[[int], RoundingAnalysis], target: Fraction, first: int, most: int
) -> RoundingAnalysis | None:
    """What the last number gives at which the loss is within the target, and once fails for good.

    The numbers from `first` on are doubled, then halved between; None if the first fails.
    """

    def meets(number: int) -> RoundingAnalysis | None:
        try:
            found = certified(number)
        except NotCertified:
            return None
        return found if found.epsilon <= target else None

    best, low, high = meets(first), first, first + 1
    if best is None:
        return None
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
