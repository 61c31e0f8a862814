"""Expressions and numbers on paper: text and LaTeX."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

from lastbit.verify.language.expressions import (
    Absolute,
    Add,
    Clamp,
    Constant,
    Divide,
    Exp,
    Expression,
    Ln,
    Multiply,
    Negate,
    Piecewise,
    RoundTo,
    Sample,
    Sign,
    Sqrt,
    Subtract,
    Variable,
    table,
)

DIGITS = 7
LONGEST = 20_000


def rounded(x: Fraction, *, up: bool, latex: bool = False, digits: int = DIGITS) -> str:
    """A number with a few digits, rounded up or down.

    >>> rounded(Fraction(1, 3), up=True), rounded(Fraction(1, 4), up=False)
    ('0.3333334', '0.25')
    """
    context = Context(prec=digits, rounding=ROUND_CEILING if up else ROUND_FLOOR)
    near = context.divide(Decimal(x.numerator), Decimal(x.denominator)).normalize()
    plain = f"{near:f}" if -5 < near.adjusted() < 9 else str(near)
    if latex and "E" in plain:
        mantissa, exponent = plain.split("E")
        return rf"{mantissa}\cdot 10^{{{int(exponent)}}}"
    return plain.replace("E", "e")


def line(expression: Expression) -> str:
    """The expression in one line.

    >>> line(Multiply(Add(Variable("x"), Constant(1)), Ln(Variable("x"))))
    '(x + 1) * ln(x)'
    """
    return _spelled(expression, _plain_step)


def latex(expression: Expression) -> str:
    r"""The expression for LaTeX's mathematics.

    >>> latex(Divide(Ln(Variable("u")), Constant(2)))
    '\\frac{\\ln(u)}{2}'
    """
    return _spelled(expression, _latex_step)


def _spelled(
    expression: Expression, spell: Callable[[Expression, list[str], list[bool]], str]
) -> str:
    steps = table(expression)
    words: list[str] = []
    for node, below in zip(steps.expressions, steps.below, strict=True):
        loose = [isinstance(steps.expressions[place], Add | Subtract | Negate) for place in below]
        word = spell(node, [words[place] for place in below], loose)
        # shared parts may be written again and again: what is too long to read is cut
        words.append(word if len(word) <= LONGEST else word[: LONGEST - 1] + "…")
    return words[-1]


def _plain_step(node: Expression, below: list[str], loose: list[bool]) -> str:
    held = [f"({word})" if open_ else word for word, open_ in zip(below, loose, strict=True)]
    match node:
        case Constant():
            return _constant(node.value)
        case Variable() | Sample():
            return node.name
        case Add():
            return f"{below[0]} + {held[1] if below[1].startswith('-') else below[1]}"
        case Subtract():
            return f"{below[0]} - {held[1]}"
        case Multiply():
            return f"{held[0]} * {_factor(node.right, held[1])}"
        case Divide():
            return f"{held[0]} / {_factor(node.right, held[1])}"
        case Negate():
            return f"-{held[0]}"
        case Clamp():
            low, high = (_end(end) for end in (node.low, node.high))
            return f"clamp({below[0]}, {low}, {high})"
        case RoundTo():
            return f"round({below[0]}, {_constant(node.step)})"
        case Piecewise():
            asked = node.condition
            condition = f"{asked.name} {asked.relation} {_constant(asked.bound)}"
            return f"({below[0]} if {condition} else {below[1]})"
        case Ln() | Exp() | Sqrt() | Absolute() | Sign():
            return f"{_function(node)}({below[0]})"


def _latex_step(node: Expression, below: list[str], loose: list[bool]) -> str:
    held = [
        rf"\left({word}\right)" if open_ else word for word, open_ in zip(below, loose, strict=True)
    ]
    match node:
        case Constant():
            return _latex_constant(node.value)
        case Variable() | Sample():
            return _latex_name(node.name)
        case Add():
            return f"{below[0]} + {held[1] if below[1].startswith('-') else below[1]}"
        case Subtract():
            return f"{below[0]} - {held[1]}"
        case Multiply():
            return rf"{held[0]} \times {_factor(node.right, held[1])}"
        case Divide():
            return rf"\frac{{{below[0]}}}{{{below[1]}}}"
        case Negate():
            return f"-{held[0]}"
        case Sqrt():
            return rf"\sqrt{{{below[0]}}}"
        case Absolute():
            return rf"\left|{below[0]}\right|"
        case Clamp():
            low, high = (
                _latex_constant(end) if end is not None else rf"{sign}\infty"
                for end, sign in ((node.low, "-"), (node.high, ""))
            )
            return rf"\mathrm{{clamp}}_{{[{low}, {high}]}}\left({below[0]}\right)"
        case RoundTo():
            return rf"\left\lfloor {below[0]} \right\rceil_{{{_latex_constant(node.step)}}}"
        case Piecewise():
            asked = node.condition
            sign = {"<": "<", "<=": r"\leq", "==": "="}[asked.relation]
            condition = f"{_latex_name(asked.name)} {sign} {_latex_constant(asked.bound)}"
            return (
                rf"\begin{{cases}} {below[0]} & {condition} \\ {below[1]} & \text{{else}} "
                rf"\end{{cases}}"
            )
        case Ln() | Exp() | Sign():
            name = r"\mathrm{sgn}" if isinstance(node, Sign) else rf"\{_function(node)}"
            return f"{name}({below[0]})"


def _factor(node: Expression, word: str) -> str:
    """A right factor or divisor, which binds only as tightly as it is written."""
    if isinstance(node, Multiply | Divide) or word.startswith("-") or " / " in word:
        return f"({word})"
    return word


def _function(node: Ln | Exp | Sqrt | Absolute | Sign) -> str:
    match node:
        case Ln():
            return "ln"
        case Exp():
            return "exp"
        case Sqrt():
            return "sqrt"
        case Absolute():
            return "abs"
        case Sign():
            return "sgn"


def _constant(value: Fraction) -> str:
    if value.denominator == 1:
        return str(value)
    near = value.numerator / value.denominator if abs(value) < 2**1000 else 0.0
    if near and (Fraction(near) == value or Fraction(repr(near)) == value):
        return repr(near)
    return f"({value})"


def _latex_constant(value: Fraction) -> str:
    plain = _constant(value)
    if plain.startswith("("):
        return rf"\frac{{{value.numerator}}}{{{value.denominator}}}"
    if "e" in plain:
        mantissa, exponent = plain.split("e")
        return rf"{mantissa}\cdot 10^{{{int(exponent)}}}"
    return plain


def _latex_name(name: str) -> str:
    return name if len(name) == 1 else rf"\mathit{{{name}}}".replace("_", r"\_")


def _end(value: Fraction | None) -> str:
    return "none" if value is None else _constant(value)


decimal, text = rounded, line  # the names that other rooms know
