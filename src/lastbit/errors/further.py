"""All other errors: of cards, budgets, servers, guarantees, and proofs about code."""

from __future__ import annotations

from lastbit.errors.asking import InvalidParameter, LastbitError


class CardRefused(InvalidParameter):
    """A data card says too little or something that has no meaning; the message names the line.

    >>> import lastbit as lb
    >>> lb.table("missing.toml")
    Traceback (most recent call last):
        ...
    lastbit.errors.CardRefused: missing.toml cannot be read (No such file ...); pass a TOML file
    """


class UnknownName(InvalidParameter, AttributeError):
    """A name that is not there, as of a step that a table does not have; it says what was meant.

    >>> import duckdb
    >>> import lastbit as lb
    >>> visits = lb.table(duckdb.sql("SELECT 7 AS cost"), each_row=True, name="visits")
    >>> visits.filter("cost > 3")
    Traceback (most recent call last):
        ...
    lastbit.errors.UnknownName: filter is not a step of a table; did you mean .where("cost > 100")?
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
