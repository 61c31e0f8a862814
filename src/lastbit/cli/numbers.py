"""Numbers on the command line, read exactly. How numbers look: `lastbit.exact.decimals`."""

from __future__ import annotations

from fractions import Fraction

import click

from lastbit.errors import InvalidParameter, LastbitError
from lastbit.exact import rational

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
