"""Somebody's function, by its name: found, imported, and asked what it takes."""

from __future__ import annotations

import importlib
import inspect
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lastbit.errors import InvalidParameter

if TYPE_CHECKING:
    from lastbit.verify import Code

NAME = re.compile(r"[A-Za-z]\w*(\.[A-Za-z]\w*)*:[A-Za-z]\w*", re.ASCII)
THE_FUNCTION = "the function"
TAKES = "write it as function(value, u), or function(value, u, sign) with a fair sign"
PLACES = ((0.0, 0.3), (0.25, 0.7))  # (value, u) at which it is called twice


@dataclass(frozen=True, slots=True)
class Loaded:
    """A function that can be judged: as named code, as it is, and whether it takes a sign."""

    code: Code
    function: Callable[..., Any]
    has_sign: bool

    @property
    def signs(self) -> tuple[int, int] | None:
        """The values of its sign, if it has one."""
        return (-1, 1) if self.has_sign else None

    def __call__(self, value: float, *random: float) -> float:
        """Call it; whatever it raises becomes an error of ours that names no value."""
        try:
            return self.code(value, *random)
        except (ArithmeticError, ValueError):
            raise  # `evaluated` says at which uniform
        except Exception as failure:
            raise InvalidParameter(
                THE_FUNCTION,
                problem=f"raises {type(failure).__name__}: {failure}"[:200],
                remedy=TAKES,
            ) from failure


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


def loaded(name: str, parameters: Mapping[str, float]) -> Loaded:
    """The function that a name such as `module:function` stands for; its module is run."""
    from lastbit.verify import Code

    function = _imported(name)
    _check_arguments(function, parameters)
    has_sign = len(_open(function, parameters)) == 3
    found = Loaded(Code(name, **parameters), function, has_sign)
    for value, u in PLACES:
        random = (u, 1) if has_sign else (u,)
        _check_same(_tried(found, value, random), _tried(found, value, random))
    return found


def named(name: str) -> Any:
    """Whatever a name such as `module:function` stands for, or None; its module is run."""
    if not NAME.fullmatch(name):
        raise InvalidParameter(
            THE_FUNCTION,
            problem="is not named as module:function",
            remedy="write, say, noise:laplace for the function laplace of noise.py",
        )
    module, _, attribute = name.partition(":")
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{module}.".startswith(f"{error.name}."):
            raise InvalidParameter(
                THE_FUNCTION,
                problem=f"names the module {module}, which was not found",
                remedy="run lastbit in the folder of the module, or install it",
            ) from error
        raise _broken(module, error) from error
    except (Exception, SystemExit) as error:
        raise _broken(module, error) from error
    return getattr(found, attribute, None)


def _imported(name: str) -> Callable[..., Any]:
    function = named(name)
    if not callable(function):
        module, _, attribute = name.partition(":")
        raise InvalidParameter(
            THE_FUNCTION,
            problem=f"is not there: the module {module} has no function {attribute}",
            remedy="name one that it has",
        )
    return function  # type: ignore[no-any-return]


def _broken(module: str, error: BaseException) -> InvalidParameter:
    return InvalidParameter(
        THE_FUNCTION,
        problem=f"names the module {module}, whose code raises {type(error).__name__}",
        remedy="make `import` of it succeed",
    )


def _check_arguments(function: Callable[..., Any], given: Mapping[str, float]) -> None:
    arguments = _arguments(function)
    for name in given:
        if name not in arguments:
            raise InvalidParameter(
                "--parameter", problem=f"names {name}, which the function lacks", remedy=TAKES
            )
    needed = [
        name
        for name, argument in arguments.items()
        if argument.kind is argument.KEYWORD_ONLY
        and argument.default is argument.empty
        and name not in given
    ]
    if needed:
        raise InvalidParameter(
            THE_FUNCTION,
            problem=f"needs a value for {', '.join(needed)}",
            remedy="pass it as --parameter NAME=NUMBER",
        )
    count = len(_open(function, given))
    places = (0.0, 0.5, 1)[:count]
    try:
        if count not in (2, 3):
            raise TypeError
        inspect.Signature(list(arguments.values())).bind(*places, **given)
    except TypeError as error:
        raise InvalidParameter(
            THE_FUNCTION, problem="does not take a value and a uniform", remedy=TAKES
        ) from error


def _open(function: Callable[..., Any], given: Mapping[str, float]) -> list[str]:
    """The arguments that are data or randomness: positional, no default, not given."""
    return [
        name
        for name, argument in _arguments(function).items()
        if argument.kind in (argument.POSITIONAL_ONLY, argument.POSITIONAL_OR_KEYWORD)
        and argument.default is argument.empty
        and name not in given
    ]


def _arguments(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """What its code takes; `__signature__` and `__wrapped__` say what they like."""
    from lastbit.verify import arguments_of

    return arguments_of(function)


def _tried(function: Loaded, value: float, random: tuple[float, ...]) -> Any:
    try:
        return function(value, *random)
    except (ArithmeticError, ValueError) as failure:
        if isinstance(failure, InvalidParameter):
            raise
        raise InvalidParameter(
            THE_FUNCTION,
            problem=f"fails at the value {value} and the uniform {random[0]} "
            f"({type(failure).__name__})",
            remedy="make it total: it must answer every value and every uniform",
        ) from failure


def _check_same(one: Any, other: Any) -> None:
    if not isinstance(one, float) or not isinstance(other, float):
        raise InvalidParameter(
            THE_FUNCTION,
            problem=f"returns {type(one).__name__}, no float",
            remedy="return a float",
        )
    if one != other and one == one:
        raise InvalidParameter(
            THE_FUNCTION,
            problem="gives two outputs for the same arguments",
            remedy="let all its randomness come from u and sign",
        )
