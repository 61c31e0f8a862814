"""What is audited: somebody's mechanism by its name, how to call it, and when it cannot run."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from lastbit.cli.verify_loading import THE_FUNCTION, named
from lastbit.errors import InvalidParameter, LastbitError

TAKES = "write it as function(value), or as function(value, size) for many releases at once"
UNIFORMS = ("u", "uniform", "uniforms")
LONGEST = 200  # characters of somebody else's error


@dataclass(frozen=True, slots=True)
class Subject:
    """A mechanism as it was found, and how one value is released; None if only a law is known."""

    name: str
    mechanism: Any
    release: Callable[..., Any] | None

    @property
    def is_function(self) -> bool:
        """Whether it is a plain function, and no object that may be particular about integers."""
        return inspect.isroutine(self.mechanism)


def subject_named(name: str) -> Subject:
    """The mechanism that `module:function` or `module:object` stands for; its module is run."""
    return subject_of(name, named(name))


def subject_of(name: str, found: Any) -> Subject:
    """A function, an object with a method `release` or `law`, or code of one uniform."""
    from lastbit.audit import law_of
    from lastbit.verify import Code

    if isinstance(found, Code):
        return Subject(name, found, None)
    if inspect.isclass(found):
        raise InvalidParameter(
            THE_FUNCTION,
            problem="is a class, which is no mechanism yet",
            remedy="name an object of that class, or a function",
        )
    own = getattr(found, "release", None)
    if callable(own):
        return Subject(name, found, _called(own))
    if callable(found):
        return Subject(name, found, _called(found))
    if law_of(found) is not None:
        return Subject(name, found, None)
    module, _, attribute = name.partition(":")
    raise InvalidParameter(
        THE_FUNCTION,
        problem=f"is not there: the module {module} has no function {attribute}",
        remedy="name one that it has, or an object with a method release",
    )


def law_source(mechanism: Any) -> Callable[[Any], Any] | None:
    """How to get the law of a mechanism's output."""
    from lastbit.audit import law_of

    return law_of(mechanism)


@contextmanager
def failures_named(remedy: str) -> Iterator[None]:
    """Whatever somebody's code raises becomes an error of ours; so does an interruption.

    `remedy` says how the command can be told what the code takes. A traceback would end with the
    exit status 1, which says that a violation is certified.
    """
    try:
        yield
    except LastbitError:
        raise
    except KeyboardInterrupt:
        raise InvalidParameter(
            "the command",
            problem="was interrupted before it found anything out",
            remedy="pass fewer --samples, or let it run",
        ) from None
    except (Exception, SystemExit) as failure:
        problem = f"raises {type(failure).__name__}: {failure}"
        raise InvalidParameter(
            THE_FUNCTION,
            problem=problem if len(problem) <= LONGEST else f"{problem[:LONGEST]}...",
            remedy=remedy,
        ) from failure


def _called(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of (value), or of (value, size).

    A second argument is a size only if it is called so, or has to be given: a `scale=1` must not be
    taken for one, or a sound mechanism would be called with another scale.
    """

    def one(value: Any) -> Any:
        return function(value)

    def many(value: Any, size: int) -> Any:
        return function(value, size)

    def many_by_name(value: Any, size: int) -> Any:
        return function(value, size=size)

    try:
        arguments = inspect.signature(function).parameters
    except (TypeError, ValueError):  # a builtin that does not say what it takes
        return one
    asked = _asked(arguments)
    if "size" in arguments and _takes(function, 0, size=1):
        return many_by_name
    if len(asked) == 2 and asked[1] not in UNIFORMS and _takes(function, 0, 1):
        return many
    if len(asked) <= 1 and _takes(function, 0):
        return one
    if len(asked) == 2 and asked[1] in UNIFORMS:
        raise InvalidParameter(
            THE_FUNCTION,
            problem="takes its randomness as an argument",
            remedy="judge it by lastbit verify, or let it draw its own",
        )
    raise InvalidParameter(
        THE_FUNCTION, problem="does not take a value, or more than that", remedy=TAKES
    )


def _asked(arguments: Mapping[str, inspect.Parameter]) -> list[str]:
    """The arguments that have no default."""
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [
        name
        for name, argument in arguments.items()
        if argument.default is argument.empty and argument.kind not in kinds
    ]


def _takes(function: Callable[..., Any], *values: int, **named: int) -> bool:
    try:
        inspect.signature(function).bind(*values, **named)
    except TypeError:
        return False
    return True
