"""Numbers on the command line: read exactly, shown with all their digits certain or rounded up."""

from __future__ import annotations

import math
import re
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

import click

from lastbit.errors import InvalidParameter, LastbitError

if TYPE_CHECKING:
    from lastbit.exact import Ball

LONGEST = 24
LARGEST = 10**1000
REMEDY = "write a number such as 3, 0.5, 1/3 or 1e-9"


class Exact(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.5 on
    """A number as it was written: 0.1 is one tenth, 1/3 is one third."""

    name = "number"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Fraction:
        """The exact rational; the message shows what was written, which is no secret."""
        return value if isinstance(value, Fraction) else exact_number(str(value), _name(param))


class Secret(Exact):
    """The same for a number that is data: no message repeats it."""

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Fraction:
        """The exact rational."""
        return secret_number(str(value), _name(param))


EXACT = Exact()
SECRET = Secret()


def exact_number(text: str, name: str) -> Fraction:
    """The exact rational that was written, if it can also be printed."""
    from lastbit.exact import rational

    try:
        number = rational(text)
    except LastbitError as error:
        problem = getattr(error, "problem", "is no number")
        raise InvalidParameter(name, problem=problem, remedy=REMEDY) from error
    if max(abs(number.numerator), number.denominator) >= LARGEST:
        raise InvalidParameter(name, problem="has more than 1000 digits", remedy=REMEDY)
    return number


def secret_number(text: str, name: str) -> Fraction:
    """The exact rational that a datum spells; the datum itself is in no message."""
    try:
        return exact_number(text, name)
    except LastbitError:  # its message quotes the text
        pass
    raise InvalidParameter(name, problem="is no finite number", remedy=REMEDY)


def _name(param: click.Parameter | None) -> str:
    return param.opts[0] if param is not None and param.opts else "the number"


def exact_text(number: Fraction | float) -> str:
    """A number as a person would write it; a long one by its first digits and a sign of it.

    >>> exact_text(Fraction(1, 10)), exact_text(Fraction(1, 10**9)), exact_text(math.inf)
    ('0.1', '1e-9', '∞')
    >>> exact_text(Fraction(10**40 + 1, 3 * 10**40))
    '0.333333...'
    """
    from lastbit.exact import shown

    if isinstance(number, float):
        return "∞" if number == math.inf else repr(number)
    if max(abs(number.numerator), number.denominator) >= LARGEST:
        return f"{_decimal(number, 6, ROUND_FLOOR)}..."
    text = re.sub(r"e([+-])0", r"e\1", shown(number).strip("'"))
    return text if len(text) <= LONGEST else f"{_decimal(number, 6, ROUND_FLOOR)}..."


def rounded_up(number: Fraction | float, digits: int = 6) -> str:
    """A number in decimal, not below the truth.

    >>> rounded_up(Fraction(1, 3), 4), rounded_up(Fraction(1, 8)), rounded_up(Fraction(10**7))
    ('0.3334', '0.125', '10000000')
    """
    return _rounded(number, digits, ROUND_CEILING)


def rounded_down(number: Fraction | float, digits: int = 6) -> str:
    """A number in decimal, not above the truth.

    >>> rounded_down(Fraction(2, 3), 4)
    '0.6666'
    """
    return _rounded(number, digits, ROUND_FLOOR)


def _rounded(number: Fraction | float, digits: int, rounding: str) -> str:
    if isinstance(number, float):
        if math.isinf(number):
            return "∞" if number > 0 else "-∞"
        number = Fraction(number)
    if number.denominator == 1 and abs(number) < 10**15:
        return str(number.numerator)
    return _decimal(number, digits, rounding)


def _decimal(number: Fraction, digits: int, rounding: str) -> str:
    context = Context(prec=digits, rounding=rounding)
    # the two integers are exact: a context rounds results, not what is built
    return tidy(context.divide(Decimal(number.numerator), Decimal(number.denominator)))


def tidy(number: Decimal) -> str:
    """A decimal without zeros that say nothing; a small one with an exponent.

    >>> tidy(Decimal("0.1250")), tidy(Decimal("0.0000120")), tidy(Decimal("1E+20"))
    ('0.125', '1.2e-5', '1e+20')
    """
    if number == 0:
        return "0"
    short = number.normalize(Context(prec=len(number.as_tuple().digits)))
    if -4 <= short.adjusted() < 15:
        return f"{short:f}"
    return f"{short:e}"


def certain(ball: Ball, digits: int = 8) -> str:
    """A number known to lie in a ball, with all its digits certain; absurd sizes by their bound.

    >>> from lastbit.exact import Ball
    >>> certain(Ball.of("1/3")), certain((Ball.of(-10**6)).exp())
    ('0.33333333', 'below 1e-300')
    >>> certain(1 - Ball.of("1e-9"))
    '1 - 1e-9'
    """
    from lastbit.cli.leak_view import significant
    from lastbit.exact import lower, upper

    if upper(ball) < 1e-300 and lower(ball) >= 0:
        return "0" if upper(ball) == 0 else "below 1e-300"
    if lower(ball) > 1e300:
        return "above 1e300"
    text = significant(*ball.ends, digits)
    short = text if " to " in text else tidy(Decimal(text))
    if short != "1" or ball.ends[0] == ball.ends[1]:
        return short
    rest, sign = (ball - 1, "+") if ball.ends[0] > 1 else (1 - ball, "-")
    return f"1 {sign} {certain(rest, 3)}" if rest.ends[0] > 0 else "1"
