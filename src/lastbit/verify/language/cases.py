"""Cases that are not cases: a clamp written by `if`, and failures that no draw leads to.

Theorem  let a part x of a computation be compared with a number c, let the code go on as f(x) where
         x is below c, and where it is not, as it would with c in the place of x. Then it computes
         f(min(x, c)), step by step and to the last bit; and with "above", f(max(x, c)). Proof: each
         step is a function of its operands, and those of numbers alone are computed by Python in
         the code as they are here, rounded to the nearest float; a step that Python keeps exact is
         another number, unless a float holds it, and then the two ends differ and nothing is found
Theorem  let code return a float x where it is at most c, and an infinity elsewhere. With d the next
         float above c, its result is min(x, d) with another name for d: no float lies between, and
         no x that is returned is d. So the two tell the same, and min(x, d) is what is judged; with
         one infinity for both sides the code tells less. (Mechanism 2 of paper 000)
Differs  x must be a part of f(x): a part that is compared and used no more could fail unseen
Checked  tests/verify/test_one_rounding.py; the checker finds both again, `checker/steps.py`
"""

from __future__ import annotations

import math
from fractions import Fraction

from lastbit.errors import NotCertified, Overflow
from lastbit.verify.error_bounds.formats import BINARY64
from lastbit.verify.language import expressions as ex
from lastbit.verify.language.expressions import Expression, table
from lastbit.verify.running.uniforms import Generator, draw_range

INFINITE = ex.Fails("infinity")
"""What code means that returns `math.inf`."""


def clamp_of_cases(
    part: Expression, bound: Fraction, then: Expression, otherwise: Expression
) -> Expression | None:
    """One expression for two cases of a part, below the bound and above; None if it is no clamp.

    >>> x, most = ex.Variable("x"), ex.Constant(8)
    >>> clamp_of_cases(x, Fraction(8), ex.Multiply(x, ex.Constant(2)), ex.Constant(16))
    Multiply(left=Clamp(argument=Variable(name='x'), low=None, high=Fraction(8, 1)), ...)
    """
    below = (then, otherwise, (None, bound)), (otherwise, then, (bound, None))
    for kept, other, ends in below:
        with_end = _replaced(kept, part, ex.Constant(bound))
        if with_end is not None and len(set(table(ex.Add(with_end, other)).below[-1])) == 1:
            return _replaced(kept, part, ex.Clamp(part, *ends))
    return None


def clamp_of_infinities(
    part: Expression, relation: str, bound: Fraction, then: Expression, otherwise: Expression
) -> Expression | None:
    """A clamp just beyond the bound for a result that is infinite there; None if it is no such.

    What is returned inside must be the part itself, or its clamp by another bound: else a result
    inside could have the name of what is outside.

    >>> x, most = ex.Variable("x"), Fraction(8)
    >>> clamp_of_infinities(x, "<", most, x, INFINITE)
    Clamp(argument=Variable(name='x'), low=None, high=Fraction(8, 1))
    """
    for kept, other, above in ((then, otherwise, True), (otherwise, then, False)):
        if other != INFINITE or not BINARY64.holds(bound):
            continue
        inside = part.argument if isinstance(part, ex.Absolute) else part
        if inside is not part and not above:
            return None  # infinite around 0
        outer = bound
        if (relation == "<=") == above:  # the bound itself is inside
            outer = Fraction(math.nextafter(float(bound), math.inf if above else -math.inf))
        low, high = (None, outer) if above else (outer, None)
        low = -outer if inside is not part else low
        if _is_same(kept, inside):
            return ex.Clamp(kept, low, high)
        if isinstance(kept, ex.Clamp) and _is_same(kept.argument, inside):
            fits = (low is None or kept.low is None or kept.low <= low) and (
                high is None or kept.high is None or kept.high >= high
            )
            apart = (high is None or kept.low is None or kept.low < high) and (
                low is None or kept.high is None or kept.high > low
            )
            return ex.Clamp(kept, low, high) if fits and apart else None
    return None


def _is_same(one: Expression, other: Expression) -> bool:
    return len(set(table(ex.Add(one, other)).below[-1])) == 1


def without_cases_of(name: str, expression: Expression) -> Expression:
    """The same with cases of this input as clamps, where they are."""
    if not isinstance(expression, ex.Piecewise):
        return expression
    condition = expression.condition
    then, otherwise = (
        without_cases_of(name, part) for part in (expression.then, expression.otherwise)
    )
    found = None
    if condition.name == name and condition.relation != "==":
        found = clamp_of_cases(ex.Variable(name), condition.bound, then, otherwise)
    return ex.Piecewise(condition, then, otherwise) if found is None else found


def without_failures(expression: Expression, uniform: Generator) -> Expression:
    """The same without failures that no draw leads to; `NotCertified` for those that one does.

    A failure is seen, and what is drawn then is missing elsewhere: so none may happen.
    """
    if isinstance(expression, ex.Piecewise):
        holds = _answer(expression.condition, uniform)
        parts = (expression.then, expression.otherwise)
        fails = any(isinstance(part, ex.Fails) for part in parts)
        if fails and holds is not None:
            return without_failures(parts[0 if holds else 1], uniform)
        then, otherwise = (without_failures(part, uniform) for part in parts)
        return ex.Piecewise(expression.condition, then, otherwise)
    if expression == INFINITE:
        raise NotCertified(
            "an infinity tells the value or the draw; decide by the rounded result: "
            "k if abs(k) <= 16.0 else math.inf"
        )
    if isinstance(expression, ex.Fails):
        raise NotCertified(
            f"the code raises {expression.name} for some values or draws, which shows them. Clamp "
            f"the value; pass a uniform without 0, such as grid53-open"
        )
    return expression


def _answer(condition: ex.Condition, uniform: Generator) -> bool | None:
    """Whether a condition on u holds for all draws, or for none; None if for some or not on u."""
    if condition.name != "u":
        return None
    least, most = draw_range(uniform)
    if condition.relation == "==":
        return None if least <= condition.bound <= most else False
    first, last = condition.holds(least), condition.holds(most)
    return first if first == last else None


def _replaced(whole: Expression, part: Expression, by: Expression) -> Expression | None:
    """The whole with something else for a part, numbers alone worked out; None if it has none."""
    steps = table(ex.Add(whole, part))
    root, at = steps.below[-1]
    if at not in steps.reached(root):
        return None
    made: list[Expression] = []
    for index in range(root + 1):
        node = steps.expressions[index]
        below = [made[place] for place in steps.below[index]]
        made.append(by if index == at else _rebuilt(node, below))
    return made[root]


def _rebuilt(node: Expression, below: list[Expression]) -> Expression:
    match node:
        case ex.Constant() | ex.Variable() | ex.Sample() | ex.Fails():
            return node
        case ex.Piecewise():
            return ex.Piecewise(node.condition, *below)
        case ex.Clamp():
            built: Expression = ex.Clamp(below[0], node.low, node.high)
        case ex.RoundTo():
            built = ex.RoundTo(below[0], node.step)
        case _:
            built = type(node)(*below)
    numbers = [one.value for one in below if isinstance(one, ex.Constant)]
    result = _result(built, numbers) if len(numbers) == len(below) else None
    return built if result is None else ex.Constant(result)


def _result(step: Expression, numbers: list[Fraction]) -> Fraction | None:
    """A step of numbers as floats compute it; None for a function of a library."""
    match step:
        case ex.Add():
            exact = numbers[0] + numbers[1]
        case ex.Subtract():
            exact = numbers[0] - numbers[1]
        case ex.Multiply():
            exact = numbers[0] * numbers[1]
        case ex.Divide() if numbers[1]:
            exact = numbers[0] / numbers[1]
        case ex.Negate():
            exact = -numbers[0]
        case ex.Absolute():
            exact = abs(numbers[0])
        case ex.Clamp():
            exact = max([numbers[0], *([] if step.low is None else [step.low])])
            exact = min([exact, *([] if step.high is None else [step.high])])
        case ex.RoundTo():
            exact = round(numbers[0] / step.step) * step.step
        case _:
            return None
    try:
        return BINARY64.rounded(exact)
    except Overflow:
        return None
