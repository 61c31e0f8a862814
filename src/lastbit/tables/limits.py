"""How large a question may be; what is larger is refused before anything is read (SQL: `sql/`).

Law      each limit is a public number: whether a question is refused depends on the question and
         the card, never on a row
Theorem  a row costs the engine at most a constant, whatever it holds: an expression of n calls runs
         n operations on each row, each at most linear in texts of at most LONGEST_TEXT bytes.
         So one row more or less changes time and memory by at most that constant times the rows
         that a join makes of it: at most MOST_MATCHES; of a row of a joined private table, the
         rows of its unit in the table. A unit with n rows there has at most n MOST_MATCHES in all
Checked  tests/tables/test_limits.py counts; bench/timing.py measures

`sealed` runs work on secrets whose failures carry nothing out. An exception holds more
than its words: the frames it passed, with all that their functions held, and the exceptions it came
from. A notebook, a debugger or a service that collects errors shows them. So a failure while raw or
unpaid numbers are in memory ends here, and another error, or the same one stripped, is raised.

Theorem  what leaves `sealed` is a value that `work` returned, an error of the kinds `known` without
         frames below this one and without a cause or context, a fresh interrupt, or a fresh error
         with public words
Checked  tests/tables/test_sealing.py, tests/release/test_canaries.py
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from lastbit.errors import EngineFailed, LastbitError, QueryRefused

# of a row and of what is written about it
LONGEST_TEXT = 4_096  # bytes of UTF-8 in a text of a row, read or computed; a longer one is missing
LONGEST_CONSTANT = 4_096  # bytes of UTF-8 in a text written in a question
LONGEST_PATTERN = 200  # characters of the pattern of LIKE, ILIKE or contains()
MOST_SINGLE_WILDCARDS = 6  # signs _ in a pattern with %: each may double the work for a character
LONGEST_NAME = 200  # characters in a name of the answer

# of a question; derived columns are written out, and a chain a + b + c or a AND b AND c is one call
DEEPEST = 50  # calls inside each other
MOST_NODES = 20_000  # calls, columns and constants
MOST_CALLS = 1_000
MOST_TEXT_FUNCTIONS = 64  # of these, functions that read a text: LIKE, lower, CAST from text ...
MOST_ITEMS = 10_000  # constants of one IN
MOST_TERMS = 1_000  # arguments of any other call: terms of a sum, parts of a CASE, edges of bin
MOST_KEYS = 20  # things to group by
MOST_AGGREGATES = 200  # things to release for every group
MOST_EDGES = 1 << 16  # edges of a histogram
MOST_JOINS = 8  # public tables that a question joins with
MOST_MATCHES = 1_000  # rows that joins may make of one row
MOST_ELEMENTS = MOST_MATCHES  # of a list, the first that UNNEST makes rows of

_LONGEST_SHOWN = 60


def refused(what: str, problem: str, remedy: str, **arguments: str) -> QueryRefused:
    """A refusal of a question; `what` is the analyst's own text, cut."""
    return QueryRefused(what[:_LONGEST_SHOWN], problem=problem, remedy=remedy, **arguments)


Result = TypeVar("Result")


def sealed(
    work: Callable[[], Result],
    *,
    words: str,
    known: tuple[type[LastbitError], ...] = (LastbitError,),
) -> Result:
    """What `work` gives. `known` errors keep their words; of any other nothing is left but `words`.

    >>> sealed(lambda: [731][1], words="the noise could not be added")
    Traceback (most recent call last):
        ...
    lastbit.errors.EngineFailed: the noise could not be added
    """
    failed: BaseException
    try:
        return work()
    except known as error:
        failed = error.with_traceback(None)
        failed.__cause__ = failed.__context__ = None
    except KeyboardInterrupt:
        failed = KeyboardInterrupt()
    except SystemExit as error:
        failed = SystemExit(error.code if isinstance(error.code, int) else 1)
    except BaseException:  # a panic of other people's code is no Exception, and has words too
        failed = EngineFailed(words)
    raise failed  # outside of the handler, so that it has no context
