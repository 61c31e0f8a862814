"""Telling the recorder about noise of one's own."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import FunctionType
from typing import Any, TypeVar, cast

from lastbit.audit.moves import NORMS, Declared, Norm
from lastbit.audit.patching import Described
from lastbit.audit.tape import Description
from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact.rational import Number, positive
from lastbit.privacy.guarantees import ZCDP, ApproxDP, Guarantee, PureDP

__all__ = ["declared_primitives", "noise"]

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Declaration:
    """What was declared, and how to find it in a call."""

    name: str
    signature: inspect.Signature
    protected: str
    public: frozenset[str]
    norm: Norm
    sensitivity: Number
    epsilon: Number | None
    delta: Number | None
    rho: Number | None

    def described(self, args: tuple[Any, ...], named: dict[str, Any]) -> Description:
        given = self.signature.bind(*args, **named)
        given.apply_defaults()
        values = dict(given.arguments)
        parameters = {
            name: value
            for name, value in values.items()
            if name not in self.public and name not in (self.protected, "self", "cls")
        }
        return Description(
            kind=self.name,
            value=values[self.protected],
            parameters=parameters,
            rule=self.rule(values),
            release=True,
        )

    def rule(self, values: dict[str, Any]) -> Declared:
        """The rule of one call; a name stands for the argument of that name."""

        def number(of: Number, name: str) -> Fraction:
            return positive(values[of] if _is_name(of) else of, name)  # type: ignore[index]

        guarantee: Guarantee
        if self.rho is not None:
            guarantee = ZCDP(number(self.rho, "rho"))
        elif self.delta is not None:
            assert self.epsilon is not None
            epsilon = number(self.epsilon, "epsilon")
            guarantee = ApproxDP(epsilon, number(self.delta, "delta"))
        else:
            assert self.epsilon is not None
            guarantee = PureDP(number(self.epsilon, "epsilon"))
        sensitivity = number(self.sensitivity, "sensitivity")
        return Declared(norm=self.norm, sensitivity=sensitivity, guarantee=guarantee)


def noise(
    *,
    sensitivity: Number,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    norm: Norm = "L1",
    of: str | None = None,
    public: Sequence[str] = (),
) -> Callable[[Function], Function]:
    """Declare that a function adds noise: `record` then hears its calls as those of a mechanism.

    The protected input is the argument named by `of`, or the first one; all others are parameters
    and must not depend on data, except those named in `public`. `norm` is "L1", "L2", "Linf",
    "entries" (how many places of a list change) or "records" (how many records are removed or
    added). A name in place of a number stands for the argument of that name. What the function
    itself calls is not heard. Outside of `record` the function is as it was.

    >>> @noise(sensitivity=1, epsilon="epsilon")
    ... def noisy(count, epsilon):
    ...     return count + 3          # a bad draw
    >>> noisy(4, epsilon=1)
    7
    """
    if norm not in NORMS:
        raise InvalidParameter("norm", problem="is unknown", remedy=f"pass one of {NORMS}")
    if (epsilon is None) == (rho is None) or (rho is not None and delta is not None):
        raise InvalidParameter(
            "epsilon", problem="or rho, exactly one, is needed", remedy="pass one of the two"
        )
    numbers = {"sensitivity": sensitivity, "epsilon": epsilon, "delta": delta, "rho": rho}
    for name, given in numbers.items():
        if given is not None and not _is_name(given):
            positive(given, name)

    def decorate(function: Function) -> Function:
        declaration = _Declaration(
            name=getattr(function, "__qualname__", "noise"),
            signature=_signature(function),
            protected=_protected(function, of),
            public=frozenset(public),
            norm=norm,
            sensitivity=sensitivity,
            epsilon=epsilon,
            delta=delta,
            rho=rho,
        )
        _check_names(declaration)

        @functools.wraps(function)
        def declared(*args: Any, **named: Any) -> Any:
            return _through(function, declaration, args, named)

        return cast(Function, declared)

    return decorate


def _is_name(given: object) -> bool:
    return isinstance(given, str) and given.isidentifier()


def _signature(function: Callable[..., Any]) -> inspect.Signature:
    if not callable(function):
        raise WrongType("function", problem="cannot be called", remedy="decorate a function")
    return inspect.signature(function)


def _protected(function: Callable[..., Any], of: str | None) -> str:
    names = [name for name in _signature(function).parameters if name not in ("self", "cls")]
    if of is None and names:
        return names[0]
    if of not in names:
        raise InvalidParameter(
            "of", problem="names no argument", remedy="pass the name of the protected argument"
        )
    return of


def _check_names(declaration: _Declaration) -> None:
    numbers = declaration.sensitivity, declaration.epsilon, declaration.delta, declaration.rho
    wanted = {str(number) for number in numbers if _is_name(number)} | declaration.public
    if not wanted <= set(declaration.signature.parameters):
        raise InvalidParameter(
            "sensitivity, epsilon, delta, rho or public",
            problem="names an argument that the function does not have",
            remedy="pass a number, or the name of an argument",
        )


def _through(
    function: Callable[..., Any],
    declaration: _Declaration,
    args: tuple[Any, ...],
    named: dict[str, Any],
) -> Any:
    """Where all declared functions pass, so that one exchange hears them all."""
    return function(*args, **named)


def declared_primitives() -> tuple[tuple[FunctionType, Described]]:
    """The function to listen at, with what describes its calls."""
    assert isinstance(_through, FunctionType)
    return ((_through, _describe),)


def _describe(args: tuple[Any, ...], named: dict[str, Any]) -> Description | None:
    _, declaration, inner, inner_named = args
    described: Description = declaration.described(inner, inner_named)
    return described
