"""The errors that asking about a table may raise."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial


class LastbitError(Exception):
    """The root of the tree; catch it to catch everything lastbit raises on purpose.

    >>> import lastbit as lb
    >>> try:
    ...     lb.Laplace(sensitivity=1, epsilon=0)
    ... except LastbitError as error:
    ...     print(error)
    epsilon is zero; pass a number above 0
    """

    __module__ = "lastbit.errors"

    def __init_subclass__(cls) -> None:
        cls.__module__ = LastbitError.__module__  # known by the room's name, wherever they stand


class InvalidParameter(LastbitError, ValueError):
    """A parameter's value has no meaning here.

    >>> raise InvalidParameter("scale", problem="is negative", remedy="pass a number above 0")
    Traceback (most recent call last):
        ...
    lastbit.errors.InvalidParameter: scale is negative; pass a number above 0

    Words that name an argument have it in braces and its value beside them, so that a command line
    can name its option instead (`cli/options.py`).

    >>> InvalidParameter("value", problem="is odd", remedy="pass {grid}", grid="auto").remedy
    'pass grid="auto"'
    """

    def __init__(
        self, parameter: str, *, problem: str, remedy: str, **arguments: str | None
    ) -> None:
        self.said = parameter, problem, remedy, arguments
        self.parameter = parameter
        self.problem = _filled(problem, arguments)
        self.remedy = _filled(remedy, arguments)
        # a problem that begins with a capital letter is a sentence, and so is its remedy
        form = "{1} {2}" if self.problem[:1].isupper() else "{0} {1}; {2}"
        super().__init__(form.format(parameter, self.problem, self.remedy))

    def __reduce__(self) -> tuple[object, ...]:
        """Rebuild across process boundaries: the default would drop the keyword arguments."""
        parameter, problem, remedy, arguments = self.said
        kind = partial(type(self), parameter, problem=problem, remedy=remedy)
        return partial(kind, **arguments), ()


class WrongType(InvalidParameter, TypeError):
    """A parameter is of a type that cannot carry the meaning asked for.

    >>> import lastbit as lb
    >>> lb.PureDP([1])
    Traceback (most recent call last):
        ...
    lastbit.errors.WrongType: epsilon is of type list, not a number; pass an int, a Fraction, ...
    """


class QueryRefused(InvalidParameter):
    """A question that has no private answer here; the message says what comes nearest.

    >>> import duckdb
    >>> import lastbit as lb
    >>> visits = lb.table(duckdb.sql("SELECT 7 AS cost"), each_row=True, name="visits")
    >>> visits.sql("SELECT cost FROM visits").explain(epsilon=1)
    Traceback (most recent call last):
        ...
    lastbit.errors.QueryRefused: cost is selected row by row; add GROUP BY, or aggregate it
    """


class EngineFailed(LastbitError, RuntimeError):
    """The database could not run a statement. Its own words may hold data, so they are not here.

    >>> issubclass(EngineFailed, RuntimeError)
    True
    """


class LedgerDamaged(LastbitError, RuntimeError):
    """A ledger that cannot be read, or whose chain of entries does not fit.

    >>> issubclass(LedgerDamaged, RuntimeError)
    True
    """


class NotAllowed(LastbitError, PermissionError):
    """The card says who may ask, or about which data, and that is not so here.

    >>> issubclass(NotAllowed, PermissionError)
    True
    """


class PrecisionExhausted(LastbitError, ArithmeticError):
    """A question stayed undecided up to the highest precision allowed.

    >>> from lastbit.exact import Ball, refine
    >>> refine(lambda precision: 3 * Ball.of("1/3") > 1, limit=512)
    Traceback (most recent call last):
        ...
    lastbit.errors.PrecisionExhausted: still undecided at 512 bits; ...
    """


class EntropyUnavailable(LastbitError, RuntimeError):
    """The operating system's random source failed; nothing was drawn.

    >>> issubclass(EntropyUnavailable, RuntimeError)
    True
    """


class NotCertified(LastbitError, ValueError):
    """No promise can be proved for this code with these parameters; the message says why.

    >>> from lastbit.verify import certified_code
    >>> certified_code(lambda value, u, sign: value + sign * u, sensitivity=1, region=(-8, 8))
    Traceback (most recent call last):
        ...
    lastbit.errors.NotCertified: the code does not round its result; ...
    """


def _filled(words: str, arguments: Mapping[str, str | None]) -> str:
    """The words with arguments in their places, as Python writes them.

    An argument has its value, "" where the caller must find one, or None to be only named.
    """
    for name, value in arguments.items():
        mention = name if value is None else f'{name}="{value}"' if value else f"{name}="
        words = words.replace(f"{{{name}}}", mention)  # no format: words may hold other braces
    return words
