"""Which functions draw noise, and what a call of each one protects: lastbit's, and declared ones.

A mechanism is recorded as a whole: what `release` is given is the protected input; the draws inside
are its own affair. For mechanisms whose noise depends on the data (`SmoothStatistic`,
`ExponentialQuantile`) the input is the dataset itself, and its distance is counted in records.
`noise` declares a function of the program's own.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial, wraps
from itertools import zip_longest
from types import FunctionType
from typing import Any, TypeVar, cast

import numpy as np

from lastbit import mechanisms, sampling
from lastbit.audit.replay.distance import (
    NORMS,
    Declared,
    MechanismRule,
    Norm,
    Observed,
    bit_identical,
    distance,
)
from lastbit.audit.replay.recorder import Call, Described, bound
from lastbit.audit.replay.taint import Spread, SpreadRule
from lastbit.errors import InvalidParameter, LastbitError, WrongType
from lastbit.exact import Number, arb_of, positive, rational, root_below, upper, working_precision
from lastbit.mechanisms import AboveThreshold, AboveThresholdSession
from lastbit.privacy import ZCDP, ApproxDP, Guarantee, PureDP

_MECHANISMS = (
    *("AboveThreshold", "Exponential", "ExponentialQuantile", "Gaussian", "Histogram", "Laplace"),
    *("NormLaplace", "PermuteAndFlip", "PlanarLaplace", "PolarLaplace", "ProposeTestRelease"),
    *("RandomizedResponse", "ReportNoisyMax", "RoundedLaplace", "SmoothNoise", "SmoothStatistic"),
    *("Snapping", "StableValue", "ThresholdedHistogram"),
)
# draws that are not tracked: their outcome is kept, and a change of their law has no known price
_DRAWS = ("bernoulli_exp", "planar_laplace", "uniform_below")


def primitives() -> Iterator[tuple[FunctionType, Described]]:
    """Every function to hook, with what describes its calls."""
    found: list[tuple[Any, Described]] = [
        # kinds that share one function are hooked once: the call says which it is
        *dict.fromkeys((getattr(mechanisms, name).release, _release) for name in _MECHANISMS),
        (
            mechanisms.ThresholdedHistogram.release_arrays,
            _by_name(_release_arrays, self=None, keys=None, counts=None),
        ),
        (AboveThreshold.start, _start),
        (AboveThresholdSession.ask, _by_name(_ask, self=None, value=None)),
        *((getattr(sampling, name), _draw(name)) for name in _DRAWS),
        (sampling.bernoulli, _chance("bernoulli", "p")),
        (sampling.choice, _chance("choice", "weights")),
        (sampling.discrete_laplace, _noise("discrete_laplace", "laplace")),
        (sampling.geometric, _noise("geometric", "one-sided")),
        (
            sampling.discrete_gaussian,
            _by_name(_gaussian, variance=None, standard_deviation=None, size=None),
        ),
        (sampling.choice_exp, _by_name(_choice_exp, exponents=None, size=None, rate=1)),
        (sampling.rounded, _by_name(_rounded, law=None, location=0, scale=1, grid=1, size=None)),
        (_through, lambda args, named: args[1].described(*args[2:])),
    ]
    for function, describe in found:
        assert isinstance(function, FunctionType)
        yield function, describe


def _by_name(make: Callable[[dict[str, Any]], Call], **names: Any) -> Described:
    """What describes a call by its arguments; `names` gives their order and defaults."""
    return lambda args, named: make(bound(names, args, named))


# ---------------------------------------------------------------- mechanisms


def _release(args: tuple[Any, ...], named: dict[str, Any]) -> Call | None:
    size = args[2] if len(args) > 2 else named.get("size")
    values = [*args[1:2], *(value for key, value in named.items() if key != "size")]
    if not args or not values:
        return None  # the mechanism itself will refuse it
    kinds = (kind.__name__ for kind in type(args[0]).__mro__ if kind.__name__ in _MECHANISMS)
    return Call(
        kind=f"{next(kinds, 'mechanism')}.release",
        value=values[0],
        parameters=(args[0], size),
        rule=MechanismRule(args[0], _count(size)),
        release=True,
    )


def _count(size: Any) -> int:
    try:
        return 1 if size is None else math.prod(size) if isinstance(size, tuple) else int(size)
    except (TypeError, ValueError):
        return 1  # the mechanism itself will refuse it


def _release_arrays(given: dict[str, Any]) -> Call:
    return Call(
        kind="ThresholdedHistogram.release_arrays",
        value=(np.asarray(given["keys"]), np.asarray(given["counts"])),
        parameters=given["self"],
        rule=MechanismRule(given["self"]),
        release=True,
    )


def _start(args: tuple[Any, ...], named: dict[str, Any]) -> Call:
    rule = MechanismRule(args[0])
    return Call(kind="AboveThreshold.start", parameters=args[0], rule=rule, release=True)


def _ask(given: dict[str, Any]) -> Call:
    session, value = given["self"], given["value"]

    def instead(answer: bool) -> None:
        session._mechanism.lattice.steps_of(value)  # refuses what it would have refused
        session._left -= answer

    return Call(
        kind="AboveThreshold.ask", value=value, group=session, instead=instead, release=True
    )


# ---------------------------------------------------------------- samplers used directly


def spread_of(law: Any, scale: Any, *, whole: bool = False) -> Spread:
    """A law with an exact scale; unknown where the scale is not a number."""
    try:
        if np.ndim(scale):
            scales = tuple(abs(rational(part)) for part in np.asarray(scale).ravel().tolist())
            return Spread(law=law, scale=scales, whole=whole)
        return Spread(law=law, scale=abs(rational(scale)), whole=whole)
    except LastbitError:
        return Spread(law="unknown", scale=Fraction(0))


def _noise(name: str, law: str) -> Described:
    def made(given: dict[str, Any]) -> Call:
        spread = spread_of(law, given["scale"], whole=True)
        parameters = (given["scale"], given["size"])
        return Call(kind=name, value=0, parameters=parameters, taint=spread)

    return _by_name(made, scale=None, size=None)


def _gaussian(given: dict[str, Any]) -> Call:
    spread = spread_of("gaussian", given["standard_deviation"], whole=True)
    if given["variance"] is not None:
        variance = spread_of("gaussian", given["variance"])
        assert isinstance(variance.scale, Fraction)
        # a root rounded down, so that the cost is rounded up
        spread = Spread(law=variance.law, scale=root_below(variance.scale), whole=True)
    parameters = tuple(given.values())
    return Call(kind="discrete_gaussian", value=0, parameters=parameters, taint=spread)


def _draw(name: str) -> Described:
    return lambda args, named: Call(kind=name, value=(args, named), rule=_Rule(_unpriced))


@dataclass(frozen=True, slots=True)
class _Rule:
    """A rule that is a function."""

    observed: Callable[[Any, Any], Observed]


def _unpriced(here: Any, there: Any) -> Observed:
    return Observed(distance=Fraction(0), costs=() if bit_identical(here, there) else None)


def _chance(name: str, first: str) -> Described:
    def made(given: dict[str, Any]) -> Call:
        rule = _Rule(partial(_by_probabilities, _count(given["size"])))
        return Call(kind=name, value=given[first], parameters=given["size"], rule=rule)

    return _by_name(made, **{first: None, "size": None})


def _by_probabilities(releases: int, here: Any, there: Any) -> Observed:
    """Theorem  a draw from finitely many costs the largest logarithm of a ratio of chances."""
    one, other = _probabilities(here), _probabilities(there)
    if one == other:
        return Observed(distance=Fraction(0))
    pairs = [(a, b) for a, b in zip_longest(one, other, fillvalue=Fraction(0)) if a != b]
    if not all(a and b for a, b in pairs):
        return Observed(distance=math.inf, costs=(PureDP(math.inf),))
    with working_precision(128):
        loss = Fraction(upper(arb_of(max(max(a / b, b / a) for a, b in pairs)).log()))
    return Observed(distance=loss, costs=(PureDP(loss * releases),))


def _probabilities(given: Any) -> list[Fraction]:
    """Of a coin's sides, or of an index by its weight."""
    if not np.ndim(given):
        return [rational(given), 1 - rational(given)]
    weights = [rational(weight) for weight in given]
    return [weight / sum(weights) for weight in weights]


def _by_exponents(rate: Any, releases: int, here: Any, there: Any) -> Observed:
    """Theorem  exponents that move by at most d change each weight, and their sum, by exp(d)."""
    far = distance(here, there, "Linf")
    if far == math.inf:
        return Observed(distance=far, costs=(PureDP(math.inf),))
    return Observed(distance=far, costs=(PureDP(2 * Fraction(far) * rational(rate) * releases),))


def _choice_exp(given: dict[str, Any]) -> Call:
    rate, size = given["rate"], given["size"]
    return Call(
        kind="choice_exp",
        value=given["exponents"],
        parameters=(rate, size),
        rule=_Rule(partial(_by_exponents, rate, _count(size))),
    )


def _rounded(given: dict[str, Any]) -> Call:
    location, size = given.pop("location"), given["size"]
    law = given["law"] if given["law"] in ("laplace", "gaussian") else "unknown"
    shape = size if isinstance(size, tuple) else () if size is None else (_count(size),)
    rule = SpreadRule(spread_of(law, given["scale"]), shape)
    return Call(kind="rounded", value=location, parameters=tuple(given.values()), rule=rule)


# ---------------------------------------------------------------- declared by the program


Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class _Declaration:
    """What was declared of a function, and how to find it in a call."""

    name: str
    signature: inspect.Signature
    protected: str
    public: frozenset[str]
    norm: Norm
    numbers: Mapping[str, Number]
    """Sensitivity, and epsilon (and delta) or rho; a name stands for the argument of that name."""

    def described(self, args: tuple[Any, ...], named: dict[str, Any]) -> Call:
        given = self.signature.bind(*args, **named)
        given.apply_defaults()
        values = dict(given.arguments)
        hidden = {*self.public, self.protected, "self", "cls"}
        numbers = {
            name: positive(values[str(of)] if _is_name(of) else of, name)
            for name, of in self.numbers.items()
        }
        guarantee: Guarantee
        if "rho" in numbers:
            guarantee = ZCDP(numbers["rho"])
        elif "delta" in numbers:
            guarantee = ApproxDP(numbers["epsilon"], numbers["delta"])
        else:
            guarantee = PureDP(numbers["epsilon"])
        sensitivity = numbers["sensitivity"]
        return Call(
            kind=self.name,
            value=values[self.protected],
            parameters={name: value for name, value in values.items() if name not in hidden},
            rule=Declared(norm=self.norm, sensitivity=sensitivity, guarantee=guarantee),
            release=True,
        )


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
    """Declare that a function adds noise: `record` notes its calls as those of a mechanism.

    The protected input is the argument named by `of`, or the first one; all others are parameters
    and must not depend on data, except those named in `public`. `norm` is "L1", "L2", "Linf",
    "entries" (how many places of a list change) or "records" (how many records are removed or
    added). A name in place of a number stands for the argument of that name. What the function
    itself calls is not recorded. Outside of `record` the function is as it was.

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
    given = {name: number for name, number in numbers.items() if number is not None}
    for name, number in given.items():
        if not _is_name(number):
            positive(number, name)

    def decorate(function: Function) -> Function:
        if not callable(function):
            raise WrongType("function", problem="cannot be called", remedy="decorate a function")
        signature = inspect.signature(function)
        declaration = _Declaration(
            name=getattr(function, "__qualname__", "noise"),
            signature=signature,
            protected=_protected(signature, of),
            public=frozenset(public),
            norm=norm,
            numbers=given,
        )
        named_arguments = {str(number) for number in given.values() if _is_name(number)}
        if not named_arguments | declaration.public <= set(signature.parameters):
            raise InvalidParameter(
                "sensitivity, epsilon, delta, rho or public",
                problem="names an argument that the function does not have",
                remedy="pass a number, or the name of an argument",
            )

        @wraps(function)
        def declared(*args: Any, **named: Any) -> Any:
            return _through(function, declaration, args, named)

        return cast(Function, declared)

    return decorate


def _is_name(given: object) -> bool:
    return isinstance(given, str) and given.isidentifier()


def _protected(signature: inspect.Signature, of: str | None) -> str:
    names = [name for name in signature.parameters if name not in ("self", "cls")]
    if of is None and names:
        return names[0]
    if of not in names:
        raise InvalidParameter(
            "of", problem="names no argument", remedy="pass the name of the protected argument"
        )
    return of


def _through(
    function: Callable[..., Any],
    declaration: _Declaration,
    args: tuple[Any, ...],
    named: dict[str, Any],
) -> Any:
    """Where all declared functions pass, so that one hook reaches them all."""
    return function(*args, **named)
