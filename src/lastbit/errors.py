"""Every error that lastbit raises on purpose.

    LastbitError
    ├── InvalidParameter      (also a ValueError)   a parameter has no meaning here
    │   ├── WrongType         (also a TypeError)    it is not even of a kind that could
    │   ├── CardRefused                             a data card says too little, or nonsense
    │   └── QueryRefused                            a question that has no private answer here
    ├── EngineFailed          (also RuntimeError)   the database could not run a statement
    ├── BudgetExceeded        (also RuntimeError)   the answer would cost more than is left
    ├── LedgerDamaged         (also RuntimeError)   a ledger is unreadable, or was tampered with
    ├── NotAllowed            (also PermissionError) the card does not let this person ask
    ├── ServerFailed          (also ConnectionError) a server that is not reached, or not trusted
    ├── IncompatibleGuarantees (also a ValueError)  two promises that do not combine as they are
    ├── Undecidable           (also ArithmeticError) two balls overlap: neither < nor >= is proved
    ├── PrecisionExhausted    (also ArithmeticError) more precision was asked for than is allowed
    ├── EntropyUnavailable    (also RuntimeError)   the operating system gave no random bytes
    ├── Untraceable           (also TypeError)      code does more than arithmetic with its input
    ├── Overflow              (also ArithmeticError) a number does not fit into a format
    ├── NoBound               (also ArithmeticError) code may overflow, or divide by 0
    ├── NotMonotone           (also ValueError)     code neither rises nor falls with its uniform
    ├── TooManyOutputs        (also ValueError)     code has more outputs than can be listed
    └── NotCertified          (also ValueError)     no promise can be proved of this code

Each message names the parameter and the way out. No message holds a value of anybody's data: the
parameters named here (scales, weights, sizes) are public by definition, and long ones are cut.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

__all__ = [
    "BudgetExceeded",
    "CardRefused",
    "EngineFailed",
    "EntropyUnavailable",
    "IncompatibleGuarantees",
    "InvalidParameter",
    "LastbitError",
    "LedgerDamaged",
    "NoBound",
    "NotAllowed",
    "NotCertified",
    "NotMonotone",
    "Overflow",
    "PrecisionExhausted",
    "QueryRefused",
    "ServerFailed",
    "TooManyOutputs",
    "Undecidable",
    "Untraceable",
    "WrongType",
]


class LastbitError(Exception):
    """The root of the tree; catch it to catch everything lastbit raises on purpose.

    >>> import lastbit as lb
    >>> try:
    ...     lb.Laplace(sensitivity=1, epsilon=0)
    ... except LastbitError as error:
    ...     print(error)
    epsilon is zero; pass a number above 0
    """


class InvalidParameter(LastbitError, ValueError):
    """A parameter's value has no meaning here.

    >>> raise InvalidParameter("scale", problem="is negative", remedy="pass a number above 0")
    Traceback (most recent call last):
        ...
    lastbit.errors.InvalidParameter: scale is negative; pass a number above 0

    Words that name an argument have it in braces and its value beside them, so that a command line
    can name its option instead.

    >>> error = InvalidParameter("value", problem="is odd", remedy="pass {grid}", grid="auto")
    >>> error.remedy, error.with_options({"grid": "--grid"}).remedy
    ('pass grid="auto"', 'pass --grid auto')
    """

    def __init__(
        self, parameter: str, *, problem: str, remedy: str, **arguments: str | None
    ) -> None:
        self._said = parameter, problem, remedy, arguments
        self.parameter = parameter
        self.problem = _filled(problem, arguments, {})
        self.remedy = _filled(remedy, arguments, {})
        super().__init__(f"{parameter} {self.problem}; {self.remedy}")

    def __reduce__(self) -> tuple[object, ...]:
        """Rebuild across process boundaries: the default would drop the keyword arguments."""
        parameter, problem, remedy, arguments = self._said
        kind = partial(type(self), parameter, problem=problem, remedy=remedy)
        return partial(kind, **arguments), ()

    def with_options(self, options: Mapping[str, str]) -> InvalidParameter:
        """The same error where arguments are called otherwise, as on a command line."""
        parameter, problem, remedy, arguments = self._said
        return type(self)(
            options.get(parameter, parameter),
            problem=_filled(problem, arguments, options),
            remedy=_filled(remedy, arguments, options),
        )


class WrongType(InvalidParameter, TypeError):
    """A parameter is of a type that cannot carry the meaning asked for.

    >>> import lastbit as lb
    >>> lb.PureDP([1])
    Traceback (most recent call last):
        ...
    lastbit.errors.WrongType: epsilon is of type list, not a number; pass an int, a Fraction, ...
    """


class CardRefused(InvalidParameter):
    """A data card says too little or something that has no meaning; the message names the line.

    >>> import lastbit as lb
    >>> lb.table("missing.toml")
    Traceback (most recent call last):
        ...
    lastbit.errors.CardRefused: missing.toml cannot be read (No such file ...); pass a TOML file
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


class BudgetExceeded(LastbitError, RuntimeError):
    """The answer would cost more than is left; nothing was released and nothing charged.

    >>> import duckdb
    >>> import lastbit as lb
    >>> one = lb.Budget(kind="pure", epsilon=1)
    >>> visits = lb.table(duckdb.sql("SELECT 7 AS x"), each_row=True, name="visits", budget=one)
    >>> visits.agg(n=lb.count()).release(epsilon=2)
    Traceback (most recent call last):
        ...
    lastbit.errors.BudgetExceeded: the answer costs more than all of the budget of visits; ask ...
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


class ServerFailed(LastbitError, ConnectionError):
    """A server that cannot be reached, or whose answer is not what was asked for.

    >>> issubclass(ServerFailed, ConnectionError)
    True
    """


class IncompatibleGuarantees(LastbitError, ValueError):
    """Two promises of different kinds or about different neighbours; the message says how on.

    >>> import lastbit as lb
    >>> lb.PureDP(1) + lb.ZCDP(1)
    Traceback (most recent call last):
        ...
    lastbit.errors.IncompatibleGuarantees: PureDP and ZCDP do not add up; convert both to one ...
    """


class Undecidable(LastbitError, ArithmeticError):
    """A comparison of balls that overlap: the truth is not known at this precision.

    >>> from lastbit.exact import Ball
    >>> 3 * Ball.of("1/3") > 1
    Traceback (most recent call last):
        ...
    lastbit.errors.Undecidable: the ball 1.0000000000000000000 ± ... does not decide > 1; ...
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


class Untraceable(LastbitError, TypeError):
    """Code does something with an input that is not arithmetic; the message says where.

    >>> from lastbit.verify import trace
    >>> trace(lambda x: int(x))
    Traceback (most recent call last):
        ...
    lastbit.errors.Untraceable: ... converts an input to an integer; use round_to(x, step)
    """


class Overflow(LastbitError, ArithmeticError):
    """A number lies beyond the largest of a format: a machine would answer infinity.

    >>> from lastbit.verify import BINARY16
    >>> BINARY16.rounded(10**6)
    Traceback (most recent call last):
        ...
    lastbit.errors.Overflow: the result may overflow binary16
    """


class NoBound(LastbitError, ArithmeticError):
    """No bound can be given: the code may overflow or divide by 0 somewhere in the box.

    >>> from lastbit.verify import analyse, trace
    >>> analyse(trace(lambda x: 1.0 / x), {"x": (-1, 1)})
    Traceback (most recent call last):
        ...
    lastbit.errors.NoBound: a divisor may be 0; narrow the ranges, or raise pieces=
    """


class NotMonotone(LastbitError, ValueError):
    """Code whose output does not rise or fall with its uniform, but turns `between` two.

    >>> from lastbit.verify import Grid, exact_law
    >>> exact_law(lambda value, u: abs(u - 0.5), 0, uniform=Grid(8), signs=None)
    Traceback (most recent call last):
        ...
    lastbit.errors.NotMonotone: the output turns between the uniforms ...
    """

    def __init__(self, message: str, *, between: tuple[float, float] | None = None) -> None:
        super().__init__(message)
        self.between = between


class TooManyOutputs(LastbitError, ValueError):
    """Code with more outputs than may be enumerated.

    >>> from lastbit.verify import Grid, exact_law
    >>> exact_law(lambda value, u: value + u, 0, uniform=Grid(20), signs=None, most_cells=9)
    Traceback (most recent call last):
        ...
    lastbit.errors.TooManyOutputs: the function has more than 9 outputs; round its result to ...
    """


class NotCertified(LastbitError, ValueError):
    """No promise can be proved for this code with these parameters; the message says why.

    >>> from lastbit.verify import certified_code
    >>> certified_code(lambda value, u, sign: value + sign * u, sensitivity=1, region=(-8, 8))
    Traceback (most recent call last):
        ...
    lastbit.errors.NotCertified: the code does not round its result; ...
    """


def _filled(words: str, arguments: Mapping[str, str | None], options: Mapping[str, str]) -> str:
    """The words with arguments in their places: as options, or as Python writes them.

    An argument has its value, "" where the caller must find one, or None to be only named.
    """
    for name, value in arguments.items():
        mention = name if value is None else f'{name}="{value}"' if value else f"{name}="
        if name in options:
            mention = f"{options[name]} {value or ''}".rstrip()
        words = words.replace(f"{{{name}}}", mention)  # no format: words may hold other braces
    return words
