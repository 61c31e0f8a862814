"""Somebody's mechanism, by its name: found, imported, and asked what it takes."""

from __future__ import annotations

import importlib
import inspect
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from typing import Any

from lastbit.cli.options import refusal
from lastbit.errors import InvalidParameter, LastbitError
from lastbit.verify import Code, arguments_of

NAME = re.compile(r"[A-Za-z]\w*(\.[A-Za-z]\w*)*:[A-Za-z]\w*", re.ASCII)
THE_FUNCTION = "the function"
LONGEST = 200  # characters of somebody else's error


@contextmanager
def current_folder() -> Iterator[None]:
    """Let modules of the current folder be found, after all others; hush numpy's warnings."""
    folder = os.getcwd()
    sys.path.append(folder)
    importlib.invalidate_caches()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            yield
    finally:
        sys.path.remove(folder)


@contextmanager
def foreign_code(remedy: str) -> Iterator[None]:
    """Run somebody's code: what it prints is not our answer, what it raises an error of ours.

    `remedy` says how the command can be told what the code takes. So is an interruption: a
    traceback would end with the exit status 1, which says that a violation is certified.
    """
    try:
        with redirect_stdout(sys.stderr), current_folder():
            yield
    except LastbitError:
        raise
    except KeyboardInterrupt:
        problem = "was interrupted before it found anything out"
        raise refusal("the command", problem, "pass fewer --samples, or let it run") from None
    except (Exception, SystemExit) as failure:
        problem = f"raises {type(failure).__name__}: {failure}"
        cut = problem if len(problem) <= LONGEST else f"{problem[:LONGEST]}..."
        raise refusal(THE_FUNCTION, cut, remedy) from failure


def named(name: str) -> Any:
    """Whatever a name such as `module:function` stands for, or None; its module is run."""
    if not NAME.fullmatch(name):
        remedy = "write, say, noise:laplace for the function laplace of noise.py"
        raise refusal(THE_FUNCTION, "is not named as module:function", remedy)
    module, _, attribute = name.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute, None)
    except (Exception, SystemExit) as error:
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if missing is not None and f"{module}.".startswith(f"{missing}."):
            problem = f"names the module {module}, which was not found"
            remedy = "run lastbit in the folder of the module, or install it"
            raise refusal(THE_FUNCTION, problem, remedy) from error
        problem = f"names the module {module}, whose code raises {type(error).__name__}"
        raise refusal(THE_FUNCTION, problem, "make `import` of it succeed") from error


def _absent(name: str, remedy: str) -> InvalidParameter:
    module, _, attribute = name.partition(":")
    problem = f"is not there: the module {module} has no function {attribute}"
    return refusal(THE_FUNCTION, problem, remedy)


TAKES_UNIFORM = "write it as function(value, u), or function(value, u, sign) with a fair sign"
PLACES = ((0.0, 0.3), (0.25, 0.7))  # (value, u) at which it is called twice


@dataclass(frozen=True, slots=True)
class Loaded:
    """A function that can be judged: as named code, and whether it takes a sign."""

    code: Code
    has_sign: bool

    @property
    def signs(self) -> tuple[int, int] | None:
        return (-1, 1) if self.has_sign else None

    def __call__(self, value: float, *random: float) -> float:
        """Call it; whatever it raises becomes an error of ours that names no value."""
        try:
            return self.code(value, *random)
        except (ArithmeticError, ValueError) as failure:
            raise LastbitError(
                f"{THE_FUNCTION} fails at the uniform {random[0]!r} ({type(failure).__name__}); "
                "make it answer every uniform, or pass --uniform grid53-open, which leaves out 0"
            ) from failure
        except Exception as failure:
            problem = f"raises {type(failure).__name__}: {failure}"[:LONGEST]
            raise refusal(THE_FUNCTION, problem, TAKES_UNIFORM) from failure


def loaded(name: str, parameters: Mapping[str, float]) -> Loaded:
    """The function that a name such as `module:function` stands for; its module is run."""
    function = named(name)
    if not callable(function):
        raise _absent(name, "name one that it has")
    # of its code: `__signature__` and `__wrapped__` say what they like
    random = _check_arguments(arguments_of(function), parameters)
    found = Loaded(Code(name, **parameters), len(random) == 2)
    for value, u in PLACES:
        one, other = (found(value, *(u, 1)[: len(random)]) for _ in range(2))
        if not isinstance(one, float) or not isinstance(other, float):
            problem = f"returns {type(one).__name__}, not a float"
            raise refusal(THE_FUNCTION, problem, "return a float")
        if one != other and one == one:
            problem = "gives two outputs for the same arguments"
            raise refusal(THE_FUNCTION, problem, "let all its randomness come from u and sign")
    return found


def _check_arguments(
    arguments: Mapping[str, inspect.Parameter], given: Mapping[str, float]
) -> list[str]:
    """The arguments that are randomness: a uniform, and perhaps a sign."""
    for name in given:
        if name not in arguments:
            problem = f"names {name}, which the function lacks"
            raise refusal("--parameter", problem, TAKES_UNIFORM)
    asked = {n: a for n, a in arguments.items() if a.default is a.empty and n not in given}
    needed = [name for name, argument in asked.items() if argument.kind is argument.KEYWORD_ONLY]
    if needed:
        remedy = "pass it as --parameter NAME=NUMBER"
        raise refusal(THE_FUNCTION, f"needs a value for {', '.join(needed)}", remedy)
    places = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    data = [name for name, argument in asked.items() if argument.kind in places]
    try:
        if len(data) not in (2, 3):
            raise TypeError
        inspect.Signature(list(arguments.values())).bind(*(0.0, 0.5, 1)[: len(data)], **given)
    except TypeError as error:
        problem = "does not take a value and a uniform"
        raise refusal(THE_FUNCTION, problem, TAKES_UNIFORM) from error
    return data[1:]


TAKES_VALUE = "write it as function(value), or as function(value, size) for many releases at once"
UNIFORMS = ("u", "uniform", "uniforms")


@dataclass(frozen=True, slots=True)
class Subject:
    """A mechanism as it was found, and how one value is released; None if only a law is known."""

    mechanism: Any
    release: Callable[..., Any] | None

    @property
    def is_function(self) -> bool:
        """Whether it is a plain function, and no object that may be particular about integers."""
        return inspect.isroutine(self.mechanism)


def subject_of(name: str, found: Any) -> Subject:
    """A function, an object with a method `release` or `law`, or code of one uniform."""
    if isinstance(found, Code):
        return Subject(found, None)
    if inspect.isclass(found):
        problem = "is a class, which is not a mechanism yet"
        raise refusal(THE_FUNCTION, problem, "name an object of that class, or a function")
    for own in (getattr(found, "release", None), found):
        if callable(own):
            return Subject(found, _called(own))
    if callable(getattr(found, "law", None)):
        return Subject(found, None)
    raise _absent(name, "name one that it has, or an object with a method release")


def _called(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of (value), or of (value, size).

    A second argument is a size only if it is called so, or has to be given: a `scale=1` must not be
    taken for one, or a sound mechanism would be called with another scale.
    """

    def one(value: Any) -> Any:  # a function of one argument, whatever else it may take
        return function(value)

    def many(value: Any, size: int) -> Any:
        return function(value, size)

    def binds(*values: int, **names: int) -> bool:
        try:
            signature.bind(*values, **names)
        except TypeError:
            return False
        return True

    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # a builtin that does not say what it takes
        return one
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    asked = [
        name
        for name, argument in signature.parameters.items()
        if argument.default is argument.empty and argument.kind not in kinds
    ]
    if "size" in signature.parameters and binds(0, size=1):
        return lambda value, size: function(value, size=size)
    if len(asked) == 2 and asked[1] not in UNIFORMS and binds(0, 1):
        return many
    if len(asked) <= 1 and binds(0):
        return one
    if len(asked) == 2 and asked[1] in UNIFORMS:
        remedy = "judge it by lastbit verify, or let it draw its own"
        raise refusal(THE_FUNCTION, "takes its randomness as an argument", remedy)
    raise refusal(THE_FUNCTION, "does not take a value, or more than that", TAKES_VALUE)
