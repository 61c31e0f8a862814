"""Draws by ln u inside programs: noise that is rounded, and sums of inputs and noise that are.

Law      N = round(s f(ln u)) to multiples of a step, a power of two: s a fair sign, u a uniform
         float, f a chain of products and quotients with numbers, the logarithm correctly rounded,
         all in binary64. S = round(v + s f(ln u)) likewise, v a sum of inputs, clamped or not
Theorem  let b be the scale, the product of the numbers of f, and `cap` 640 b or less. But for the
         probability 2 exp(high - cap/b), |s f(ln u)| <= cap. There
         DRAW     P(N = k) <= exp(|m|/b + excess) P(N = k + m), for multiples m of the step up to
                  32 b: the cells of k and of k + m are cells of one cut Laplace law, beside 0 or
                  around it (CELL, OVER of `loss_rules`), with no ADD: their edges are exact
         RELEASE  P(S = k) <= exp(|d|/b + excess) P'(S = k) if v and v' are d apart, d up to 32 b:
                  the two inputs of `loss_derivation`, without ends; ADD moves edges by `shift`
         So a coupling may shift N by m at the cost |m|/b + excess, or leave it alone at none, and
         keeps S as it is at the cost |d|/b + excess
Source   paper 002: its semantics (Figure 1) and AxUnif, here inside the logic of Barthe and others
Differs  rounded before it is compared: after that all sums are exact
Checked  tests/verify/test_rounded_draws.py; the checker has its own, `checker/rounded_draws.py`
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from lastbit.errors import InvalidParameter, NotCertified
from lastbit.exact import arb_of, ends, working_precision
from lastbit.verify.error_bounds.formats import BINARY64, is_power
from lastbit.verify.language import expressions as ex
from lastbit.verify.language.expressions import Expression
from lastbit.verify.loss_rules import LossRules, Step, case_step
from lastbit.verify.noise_shape import Unrecognised, noise_chain

_REACH, _MOST_SHIFT, _MOST_STEP = 640, 32, 16  # times the scale
_PRECISION = 128
_LARGEST, _SMALLEST = Fraction(1 << 300), Fraction(1, 1 << 300)


def _refused(problem: str, remedy: str) -> InvalidParameter:
    return InvalidParameter("program", problem=problem, remedy=remedy)


def noise_of(total: Expression) -> tuple[Expression | None, Expression]:
    """The value and the noise of a sum that is rounded; None if it is noise alone."""
    if not _has_logarithm(total):
        raise _refused("rounds a sum without noise by a logarithm", "add run.sign() * run.ln(u)")
    if not isinstance(total, ex.Add | ex.Subtract):
        return None, total
    value, noise = total.left, total.right
    if isinstance(total, ex.Add) and _has_logarithm(value):
        value, noise = noise, value
    if _has_logarithm(value):
        raise _refused("takes something from noise, or adds two", "write value + noise, of one ln")
    return value, noise


def _has_logarithm(expression: Expression) -> bool:
    return any(isinstance(node, ex.Ln) for node in ex.table(expression).expressions)


def chain_of(noise: Expression) -> tuple[list[tuple[str, Fraction]], str, str]:
    """The numbers of the noise, from the sum down, and the names of its uniform and sign."""
    remedy = "write run.sign() * (scale * run.ln(run.uniform()))"
    try:
        chain, signs, drawn = noise_chain(noise)
    except Unrecognised as found:
        raise _refused(f"rounds {found}", remedy) from None
    names = [one.name for one in (drawn, *signs) if isinstance(one, ex.Variable)]
    if len(names) != 2 or not names[0].endswith("_uniform") or not names[1].endswith("_sign"):
        problem = "rounds noise without one fair sign, or a logarithm of what is no uniform"
        raise _refused(problem, remedy)
    size = Fraction(1)
    for rule, factor in reversed(chain):
        size *= factor if rule == "MUL" else 1 / factor
        if not BINARY64.holds(factor) or not _SMALLEST <= size <= _LARGEST:
            raise _refused("has noise times a number that is no usual float", "write it as a float")
    return chain, names[0], names[1]


def scale_of(draw: Mapping[str, Any]) -> Fraction:
    """The scale of Laplace noise, drawn on the grid or by a logarithm."""
    if draw["law"] == "laplace":
        return Fraction(draw["scale"])
    scale = Fraction(1)
    for rule, factor in draw["chain"]:
        scale = scale * Fraction(factor) if rule == "MUL" else scale / Fraction(factor)
    return scale


def cap_of(draw: Mapping[str, Any], cap: Fraction) -> Fraction:
    """How large the noise of a draw may be before delta pays for it."""
    step = Fraction(draw["step"])
    return min(cap, _REACH * scale_of(draw)) // step * step


def draw_loss(draw: Mapping[str, Any], cap: Fraction, most: Fraction) -> Step:
    """DRAW or RELEASE: the excess of a draw by a logarithm; `most` is the size of its value."""
    scale, step = scale_of(draw), Fraction(draw["step"])
    if not is_power(step) or step <= 0 or step > _MOST_STEP * scale:
        raise NotCertified(
            "ROUND: a step is no power of two, or above 16 scales; pass one near the scale, say 1/4"
        )
    if cap_of(draw, cap) < 16 * step:
        raise NotCertified("ROUND: the scale is too small for its step; round to a smaller one")
    chain = tuple((rule, Fraction(factor)) for rule, factor in draw["chain"])
    rules = LossRules(rate=1 / scale, chain=chain, significand=53, least=-1022, drawn=53)
    far = cap_of(draw, cap) + 2 * step
    shift = Fraction(0) if draw["value"] is None else rules.half_ulp(most + far)
    growth = rules.growth(step - 2 * shift)
    reach = far + _MOST_SHIFT * scale + shift
    if rules.range(reach, Fraction(1))["delta"]:
        raise NotCertified("RANGE: the least uniform is too large for this noise; change the unit")
    cell = rules.cell(reach, growth)
    over = rules.over(step + 2 * shift, growth)
    return case_step("DRAW" if draw["value"] is None else "RELEASE", cell, over)


def beyond_cap(draw: Mapping[str, Any], cap: Fraction, loss: Step) -> Fraction:
    """An upper bound on the probability that the noise of a draw exceeds its cap."""
    high = loss.premises[0].premises[0]["high"]
    with working_precision(_PRECISION):
        return ends(2 * (arb_of(high - cap_of(draw, cap) / scale_of(draw))).exp())[1]
