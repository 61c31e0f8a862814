"""Work on secrets whose failures carry nothing out.

An exception holds more than its words: the frames it passed, with all that their functions held,
and the exceptions it came from. A notebook, a debugger or a service that collects errors shows
them. So whatever fails while raw or unpaid numbers are in memory ends here, and another error, or
the same one stripped, starts anew.

Theorem  what leaves `sealed` is a value that `work` returned, an error of the kinds `known` without
         frames below this one and without a cause or context, a fresh interrupt, or a fresh error
         with public words
Checked  tests/tables/test_sealing.py, tests/release/test_canaries.py
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from lastbit.errors import EngineFailed, LastbitError

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
