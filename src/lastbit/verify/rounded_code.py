"""Whole mechanisms as code: is the rounding there, and which rounding would do?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, TypeVar

from lastbit.errors import InvalidParameter, NotCertified
from lastbit.exact import Number, positive, rational
from lastbit.verify.error_bounds.formats import BINARY64, Interval
from lastbit.verify.language import expressions as ex
from lastbit.verify.language.cases import without_cases_of, without_failures
from lastbit.verify.language.expressions import Expression, table
from lastbit.verify.loss_derivation import DerivedLoss, derived_sums
from lastbit.verify.noise_shape import every_float, generator_of
from lastbit.verify.one_rounding import (
    Parts,
    has_one_function,
    has_one_outside,
    parts_of,
    zero_signs,
)
from lastbit.verify.rounding import Code, RoundingAnalysis, Setting, certified_sums, followed_code
from lastbit.verify.tracing.steps import passes_whole_to_numpy
from lastbit.verify.tracing.trace import Followed

Analysis = TypeVar("Analysis")

_MOST_HALVINGS = 256
_LONG = Fraction(1 << 63)  # numpy holds whole numbers in 64 bits
_TOO_LARGE = (
    "the code may compute with numbers beyond all floats, where round fails for some values; "
    "measure in larger units"
)


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
    which ends results are moved afterwards. What is done after the rounding costs nothing
    (`one_rounding`), but zeros of two signs do: `np.rint` gives -0.0, which tells the side; add
    0.0. Other settings as in `rounding_certificate`. `values` of what is found are those that the
    promise is about.

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
    followed = followed_code(code, "value", "u", parameters=parameters, may_fail=True)
    return _judged(
        certified_sums, followed, _programs(followed, settings), sensitivity, region, settings
    )


def derived_loss(
    code: Code,
    *,
    sensitivity: Number,
    region: tuple[Number, Number] | None = None,
    parameters: dict[str, Any] | None = None,
    **settings: Any,
) -> DerivedLoss:
    """The same, derived case by case, with a loss for each output: sharper, for fewer programs.

    The code adds noise to its value, clamped or not, in one addition; the noise is ln of u times
    or by numbers. `NotCertified` names the rule that it would need. The logarithm is taken to
    be within 1 ulp; `ulps` may say 1/2 where the code runs with one that is correctly rounded, as
    `lastbit.exact.ln` is and `math.log` is not.

    >>> import math
    >>> def snapped(value, u, sign):
    ...     noise = sign * (math.log(u) / 1.0)
    ...     return min(max(1.0 * round(min(max(value, -64.0), 64.0) + noise), -64.0), 64.0)
    >>> found = derived_loss(snapped, sensitivity=1)
    >>> float(round(found.units, 1))      # certified_code proves 1116.6
    558.3
    >>> [(int(first), int(last), float(round((loss - 1) * 2**53, 1)))
    ...     for first, last, loss in found.outputs]
    [(-64, -64, 258.0), (-63, 63, 558.3), (64, 64, 258.0)]
    >>> found = derived_loss(snapped, sensitivity=1, ulps={"ln": "1/2"})    # with lastbit's ln
    >>> float(round(found.units, 1))
    281.3
    """
    followed = followed_code(code, "value", "u", parameters=parameters, may_fail=True)
    programs = _programs(followed, settings)
    return _judged(derived_sums, followed, programs, sensitivity, region, settings)


def certified_function(
    code: Code, *, sensitivity: Number, cell: Number, region: tuple[Number, Number], **settings: Any
) -> tuple[RoundingAnalysis, bool]:
    """The same, or if the code does not round, what it loses once its result is; and if it does."""
    followed = followed_code(code, "value", "u", may_fail=True)
    programs = _programs(followed, settings)
    if any(isinstance(s, ex.RoundTo) for program in programs for s in table(program).expressions):
        return _judged(certified_sums, followed, programs, sensitivity, region, settings), True
    sums = any(row[0] == "math.fsum" for one in followed for row in one.rows)

    def refuse(found: RoundingAnalysis) -> None:
        if sums and any(_overflows(program, found.values) for program in programs):
            raise NotCertified(_TOO_LARGE)  # where + gives an infinity, math.fsum fails

    given = {"sensitivity": sensitivity, "cell": cell, "region": region, **settings}
    return certified_sums(programs, code=followed, refuse=refuse, **given), False


def _programs(code: tuple[Followed, ...], settings: Mapping[str, Any]) -> tuple[Expression, ...]:
    """What the code computes for all draws of the generator, clamps by `if` written as clamps."""
    form = settings.get("format", BINARY64)
    uniform = generator_of(settings.get("uniform"), form, default=every_float)
    certain = (without_failures(one.expression, uniform) for one in code)
    return tuple(without_cases_of("value", program) for program in certain)


def _judged(
    judge: Callable[..., Analysis],
    code: tuple[Followed, ...],
    programs: tuple[Expression, ...],
    sensitivity: Number,
    region: tuple[Number, Number] | None,
    settings: Mapping[str, Any],
) -> Analysis:
    """What `certified_sums` or `derived_sums` finds of the sums before the rounding."""
    parts = [parts_of(program) for program in programs]
    if any(part[1:] != parts[0][1:] for part in parts):
        raise NotCertified(
            "the code rounds or clamps differently for the two signs; do it alike for both"
        )
    ends, wanted = _ends(parts[0], region)
    return judge(
        tuple(part.total for part in parts),
        sensitivity=sensitivity,
        cell=parts[0].cell,
        region=ends,
        wanted=wanted,
        code=code,
        role="mechanism",
        refuse=lambda found: _refuse_telling(found, code, programs, parts[0]),
        **settings,
    )


def _refuse_telling(
    found: Setting,
    code: tuple[Followed, ...],
    programs: tuple[Expression, ...],
    parts: Parts,
) -> None:
    """Refuse code whose results tell more than their number does: by a sign, a type or an error."""
    types = [one.typed() for one in code]
    indices = [int(end / found.cell) for end in found.region]
    results = [x for index in indices for x in parts.reached(index)[-1]]
    over_zero = min(results) <= 0 <= max(results)
    signs = {s for o, t in zip(code, types, strict=True) for s in zero_signs(o.rows, t)}
    if over_zero and len(signs) > 1:
        raise NotCertified(
            "the code gives -0.0, which tells on which side of 0 the sum lay; add 0.0 to its result"
        )
    kinds = sorted({kind for one in types for kind in one[-1].kinds})
    if len(kinds) > 1:
        raise NotCertified(
            f"the type tells more than the number: the code returns {' or '.join(kinds)}. "
            f"Return one type; take floats as ends of min and max, -8.0 and 8.0, or np.clip"
        )
    if any(_overflows(program, found.values) for program in programs):
        raise NotCertified(_TOO_LARGE)
    whole = any(passes_whole_to_numpy(o.rows, t) for o, t in zip(code, types, strict=True))
    if whole and any(_overflows(program, found.values, _LONG) for program in programs):
        raise NotCertified(
            "the code passes whole numbers beyond 2**63 to np.clip, whose type then tells more "
            "than the result; write 1.0 * round(x)"
        )
    steps = [(one.rows, kinds_of) for one, kinds_of in zip(code, types, strict=True)]
    if not has_one_function(parts, indices, steps):
        raise NotCertified(
            "the code computes with floats on one path, with exact numbers on another. Use "
            "floats on all; clamp beyond 2**53"
        )
    if not has_one_outside([one.rows for one in code]):
        raise NotCertified(
            "an infinity tells the path, as only one path returns it; "
            "round first, then: k if abs(k) <= 16.0 else math.inf"
        )
    if over_zero and not parts.is_modest:
        raise NotCertified(
            "tiny numbers, or many steps after rounding, may make a result 0; measure in "
            "larger units, or take fewer steps"
        )


def _ends(parts: Parts, region: tuple[Number, Number] | None) -> tuple[Interval, Interval | None]:
    """The sums beyond which all results are one, and the results there if they are sums as well.

    These follow from the code's own clamps, or from `region` where it has none.
    """
    asked = None if region is None else tuple(rational(end, "region") for end in region)
    first, last = parts.last(-1), parts.last(1)
    if first is not None and last is not None:
        ends = first * parts.cell, last * parts.cell
        results = sorted(parts.reached(index)[-1] for index in (first, last))
        same = asked == ends or (
            asked is not None
            and all(low <= end <= high for end, (low, high) in zip(asked, results, strict=True))
        )
        if asked is not None and not same:
            raise NotCertified(
                "the code clamps its result to another region than the one given; pass that one"
            )
        return ends, (results[0][0], results[1][1]) if parts.is_plain else None
    if asked is None:
        raise NotCertified(
            "the code does not clamp its result; pass region, and move what lies beyond to its ends"
        )
    if not parts.is_plain:
        raise NotCertified(
            "the code changes its result after the rounding; clamp it last, as in min(max(x, "
            "low), high)"
        )
    near = tuple(round(end / parts.cell) for end in asked)
    results = [parts.reached(index)[-1] for index in near]
    # 8 is the float 0.01 * 800, though 800 cells of that float are a little more
    if all(low <= end <= high for end, (low, high) in zip(asked, results, strict=True)):
        return (near[0] * parts.cell, near[1] * parts.cell), (asked[0], asked[1])
    return (asked[0], asked[1]), None


def _overflows(program: Expression, region: Interval, largest: Fraction = BINARY64.largest) -> bool:
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
    return max(sizes) > largest / 2


def least_cell(
    certified: Callable[[Fraction], RoundingAnalysis],
    *,
    epsilon: Number,
    region: tuple[Number, Number],
) -> RoundingAnalysis:
    """The least power of two, as a cell, for which the loss is at most epsilon.

    `certified` maps a cell to its analysis. What is returned was certified as it is; that it is the
    least rests on the loss falling as the cell grows.

    >>> import math
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

    >>> import math
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
