"""From ordinary Python code to an expression: a copy of the code is run on marked inputs.

Arithmetic on them, `abs`, `round`, `min` and `max` with a constant, the functions of `math` and
numpy that are listed, and `clamp` and `round_to` build the expression; nothing is computed. The
copy sees its own `math`, `min`, `max` and so on: no module is changed. Where the code compares an
input with a constant, it is run again for the other answer, and the expression has both cases.
Whatever else depends on the data (a branch on a computed value, a loop bound, an index, `int`,
`float`) is refused with file and line.

Code is not believed to be what it looks like. Before it runs, every instruction that could run is
screened (`screening`). While it runs, a question that it swallows is kept. A sign is followed as a
float and as an int, and must lead to the same steps. Afterwards the function itself is called on
floats, and must do what was followed, to the last bit and by the same instructions (`agreement`).

Arithmetic among constants alone is done by Python, as the code itself does it: its result counts
as a given number. Write `Fraction(1, 10)` for a tenth; the literal 0.1 is the float of that name.
"""

from __future__ import annotations

import builtins
import inspect
import math
import sys
import types
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from lastbit.errors import InvalidParameter, LastbitError, Untraceable, WrongType
from lastbit.exact import rational
from lastbit.verify.language.cases import INFINITE, clamp_of_cases, clamp_of_infinities
from lastbit.verify.language.expressions import (
    Condition,
    Constant,
    Expression,
    Fails,
    Piecewise,
    Variable,
    expression_to_json,
)
from lastbit.verify.tracing.agreement import Path, agree, points, recorded
from lastbit.verify.tracing.markers import (
    MATH_STEPS,
    Computed,
    Run,
    Split,
    Traced,
    clamp,
    folded,
    marked,
    marker,
    refuse,
    round_to,
    summed,
)
from lastbit.verify.tracing.screening import Screened, codes_in, module_of, screened
from lastbit.verify.tracing.steps import (
    ERRORS,
    Rows,
    Step,
    Typed,
    constant_step,
    failing_on,
    outcome,
    replayed,
    rows_of,
    typed,
)

MOST_CASES = 256
_DRAWS = frozenset({"u", "v", "w"})  # what fails by a draw alone fails for all values alike

Known: TypeAlias = tuple[tuple[Condition | Computed, bool], ...]


@dataclass(frozen=True, slots=True)
class Followed:
    """Code that was followed: what it means, what it runs, and the function itself."""

    function: types.FunctionType
    roles: Mapping[str, str]
    given: Mapping[str, Any]
    expression: Expression
    rows: Rows
    screen: Screened
    paths: tuple[tuple[Known, Path], ...]
    place: str
    sign: str | None
    name: str
    part: int | None = None
    beside: Rows = field(default_factory=list)

    @property
    def conditions(self) -> list[Condition]:
        every = {c: None for known, _ in self.paths for c, _ in known}
        return [condition for condition in every if isinstance(condition, Condition)]

    def call(self, inputs: Mapping[str, Any], **instead: Any) -> Any:
        named = {argument: inputs[role] for argument, role in self.roles.items()}
        return _part(_called(self.function, {**self.given, **named, **instead}), self.part)

    def typed(self, *, rounded: bool = False) -> list[Typed]:
        """The types of its steps; if `rounded`, refused unless each rounds once, to a float."""
        return typed(self.rows, self.place, rounded=rounded)

    def agree(self, extra: Mapping[str, Sequence[float]], *, rounds: int, seed: str) -> None:
        """Refuse unless the function does, on floats, what was followed."""
        names = sorted(set(self.roles.values()))
        at = points(names, self.conditions, extra, seed=seed, rounds=rounds)
        if self.beside:  # where the other number of a pair fails, so does the call
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                at = [p for p in at if outcome(partial(replayed, self.beside, p))[0] != "raises"]
        codes = frozenset(self.screen.codes)
        calls: list[Callable[..., Any]] = [self.call]
        if self.sign is not None:  # callers pass a sign as an int too
            whole: dict[str, Any] = {self.sign: int(self.given[self.sign])}
            calls.append(partial(self.call, **whole))
        for call in calls:
            agree(call, self.rows, at, paths=self.paths, codes=codes, place=self.place)


def trace(
    function: Callable[..., Any], *inputs: str, parameters: Mapping[str, Any] | None = None
) -> Expression:
    """The expression that a function computes from its inputs.

    Law      for every assignment of floats to the inputs that takes the same path, evaluating the
             expression in floats performs the same operations in the same order as the function
    Theorem  by construction: a traced value answers each operation with the step of that name and
             has no other way out; conditions on inputs are split, all else raises `Untraceable`,
             whatever the code makes of it. That the function itself takes a path that was
             followed is the theorem of `screening`, and tried on floats by `agreement`
    Differs  -0.0 and 0.0 are one number, and NaN and infinities are not inputs
    Checked  tests/verify/test_trace.py, tests/verify/test_sloppy.py

    `inputs` names the arguments that are data, all without a default by default; the others get
    their value from `parameters` or their default.

    >>> def noise(u, scale):
    ...     return -scale * math.log(u)
    >>> trace(noise, "u", parameters={"scale": 2.0})
    Multiply(left=Constant(value=Fraction(-2, 1)), right=Ln(argument=Variable(name='u')))
    """
    given = dict(parameters or {})
    marked = inputs or _by_signature(function, given)
    found = followed(function, {name: name for name in marked}, given)
    found.typed(rounded=True)
    return found.expression


def followed(
    function: Callable[..., Any],
    roles: Mapping[str, str],
    given: Mapping[str, Any],
    sign: str | None = None,
    name: str | None = None,
    *,
    may_fail: bool = False,
    part: int | None = None,
) -> Followed:
    """A function followed, screened, and held against itself on floats; or a `part` of its pair.

    Where it raises an error in some case, its expression has that (`Fails`) if it `may_fail`; else
    it is refused. `roles` maps arguments that are data to the names of their variables; `sign`
    names the argument given that is a sign, if there is one; `name` is how the function was asked
    for, module:name.
    """
    plain = plain_function(function)
    for parameter, value in given.items():
        if type(value) not in (int, float, Fraction, np.float64):
            problem = f"is a {type(value).__name__}"
            remedy = "pass a number as parameter, 1 or 0 for yes or no"
            raise WrongType(parameter, problem=problem, remedy=remedy)
    screen = screened(plain)
    tracer = _Tracer(plain, dict(roles), dict(given), _Copies(), part)
    expression, step, paths = tracer.explored()
    if tracer.failures and (not may_fail or isinstance(expression, Fails)):
        raise tracer.failures[0]
    again, *_ = tracer.explored()
    place = f"{plain.__code__.co_filename}, line {plain.__code__.co_firstlineno}: the function"
    if expression_to_json(again) != expression_to_json(expression):
        raise Untraceable(f"{place} computes something else each time; take draws as inputs")
    if sign is not None:
        whole = {**given, sign: int(given[sign])}
        _, other, _ = _Tracer(plain, dict(roles), whole, _Copies(), part).explored()
        typed(rows_of(other), place, rounded=False)
        if _by_value(rows_of(other)) != _by_value(rows_of(step)):
            raise Untraceable(
                f"{place} takes other steps for the sign 1 than for 1.0; write float(sign), or "
                f"use it with floats only"
            )
    beside: Rows = []
    if part is not None:
        other_part = _Tracer(plain, dict(roles), dict(given), _Copies(), 1 - part)
        beside = rows_of(other_part.explored()[1])
    codes = frozenset(screen.codes)
    found = Followed(
        function=plain,
        roles=dict(roles),
        given=dict(given),
        expression=expression,
        rows=rows_of(step),
        screen=screen,
        paths=tuple((known, tracer.path(known, codes)) for known in paths),
        place=place,
        sign=sign,
        name=name or module_of(plain),
        part=part,
        beside=beside,
    )
    found.typed()
    found.agree({}, rounds=1, seed="followed")
    return found


def _part(result: Any, part: int | None) -> Any:
    """One of two numbers, where code returns a pair."""
    if part is None:
        return result
    if type(result) is not tuple or len(result) != 2:
        raise WrongType("result", problem="is not a pair", remedy="return x, y")
    return result[part]


def plain_function(function: object) -> types.FunctionType:
    """A function written in Python, and no other callable."""
    if type(function) is not types.FunctionType:
        problem = f"is of type {type(function).__name__}, not a plain function"
        remedy = "pass a function written with def or lambda"
        raise WrongType("function", problem=problem, remedy=remedy)
    return function


def arguments_of(function: object) -> Mapping[str, inspect.Parameter]:
    """The arguments that a plain function takes, by its code and by nothing that it says of itself.

    `__signature__` and `__wrapped__` are attributes that anybody can set; calls do not ask them.
    """
    plain = plain_function(function)
    own, values = plain.__code__, plain.__defaults__
    bare = types.FunctionType(own, {}, plain.__name__, values, plain.__closure__)
    bare.__kwdefaults__ = plain.__kwdefaults__
    return inspect.signature(bare).parameters


def _by_value(rows: Rows) -> list[tuple[Any, ...]]:
    """Steps without the types of constants: 1 and 1.0 are one number."""
    places: list[int] = []
    known: dict[tuple[Any, ...], int] = {}
    for name, *parts in rows:
        below = tuple(places[part] if type(part) is int else part for part in parts)
        key: tuple[Any, ...] = (name, *below)
        if name in ("int", "fraction"):
            key = ("number", Fraction(parts[0]))
        elif name in ("float", "numpy.float64"):
            value = float.fromhex(parts[0])
            key = ("number", value if math.isinf(value) else Fraction(value))
        places.append(known.setdefault(key, len(known)))
    return list(known)


def _called(function: types.FunctionType, arguments: Mapping[str, Any]) -> Any:
    """Call a function with its arguments by name, those without a name by place."""
    code = function.__code__
    first = code.co_varnames[: code.co_posonlyargcount]
    placed = [arguments[name] for name in first if name in arguments]
    return function(*placed, **{n: x for n, x in arguments.items() if n not in first})


@dataclass(slots=True)
class _Tracer:
    """Runs of a copy of the function, one for each set of answers to its conditions."""

    function: types.FunctionType
    roles: dict[str, str]
    given: dict[str, Any]
    copies: _Copies
    part: int | None = None
    paths: list[Known] = field(default_factory=list)
    failures: list[Untraceable] = field(default_factory=list)
    runs: int = 0

    def explored(self) -> tuple[Expression, Step, list[Known]]:
        self.paths, self.failures, self.runs = [], [], 0
        expression, step = self.from_(())
        return expression, step, self.paths

    def from_(self, known: Known) -> tuple[Expression, Step]:
        self.runs += 1
        if self.runs > MOST_CASES:
            raise Untraceable(
                f"{self.copies.place()} distinguishes more than {MOST_CASES} cases; use clamp, abs "
                "or min and max with a constant instead of branches"
            )
        run = Run(self.copies.place, known)
        condition, result = self.ended(run)
        if condition is not None:
            then, yes = self.from_((*known, (condition, True)))
            otherwise, no = self.from_((*known, (condition, False)))
            if isinstance(condition, Condition):
                rest = (condition.name, condition.relation, str(condition.bound))
                return Piecewise(condition, then, otherwise), Step("case", (yes, no), rest)
            cases = condition.bound, then, otherwise
            clamped = clamp_of_cases(condition.expression, *cases)
            if clamped is None:
                clamped = clamp_of_infinities(condition.expression, condition.relation, *cases)
            if clamped is None:
                raise condition.refusal()
            below = (condition.relation, str(condition.bound))
            return clamped, Step("branch", (yes, no, condition.step), below)
        self.paths.append(known)
        if type(result) is Fails:
            return result, Step("raise", rest=(result.name,))
        beside: list[Step] = []
        if self.part is not None:
            if type(result) is not tuple or len(result) != 2:
                kind = "number" if type(result) is Traced else type(result).__name__
                raise Untraceable(
                    f"{self.copies.place()} returns a {kind}; return two numbers: return x, y"
                )
            beside = [marked(one)[1] for one in result if type(one) is Traced]
            result = result[self.part]
        if type(result) is Traced:
            expression, step, _ = marked(result)
        elif isinstance(result, float) and math.isinf(result):
            # a name for what is outside: only of a mechanism's result, whose callers may_fail
            self.failures.append(
                Untraceable(f"{self.copies.place()} returns an infinity; return one number")
            )
            expression, step = INFINITE, constant_step(result)
        else:
            try:
                expression, step = Constant(rational(result, "result")), constant_step(result)
            except LastbitError:
                infinite = isinstance(result, float) and math.isinf(result)
                kind = "an infinity" if infinite else f"a {type(result).__name__}"
                remedy = "report apart from it what is outside" if infinite else "return one number"
                raise Untraceable(f"{self.copies.place()} returns {kind}; {remedy}") from None
        if failing_on(run.made, [step, *beside, *run.asked]) - _DRAWS:
            raise Untraceable(
                f"{self.copies.place()} computes with an input and does not use the result; leave "
                f"that out: a failure shows the input"
            )
        return expression, step

    def ended(self, run: Run) -> tuple[Condition | Computed | None, Any]:
        """The condition at which a run stopped, or its result; a question kept is never lost.

        An error that the code raises itself is a result too, and a failure.
        """
        result: Any = None
        stopped: BaseException | None = None
        try:
            result = self.start(run)
        except (Split, Exception) as raised:  # a question, the code's own failure, or a refusal
            stopped = raised
        if run.refusals:
            raise run.refusals[0]
        if run.splits and (len(run.splits) > 1 or stopped is not run.splits[0][0]):
            raise Untraceable(
                f"{run.splits[0][1]} asks about an input and catches the question; "
                "leave try, except and with out of the function"
            )
        if isinstance(stopped, Split):
            return stopped.condition, None
        if isinstance(stopped, LastbitError):
            raise stopped
        if isinstance(stopped, Exception):
            failure = Untraceable(
                f"{self.copies.failed(stopped)} raises {type(stopped).__name__} when it is "
                "followed; make it answer every input, with finite numbers"
            )
            failure.__cause__ = stopped
            self.failures.append(failure)
            if type(stopped) not in ERRORS:
                raise failure
            return None, Fails(type(stopped).__name__)
        return None, result

    def start(self, run: Run) -> Any:
        roles = self.roles.items()
        inputs = {a: marker(Variable(role), Step("input", rest=(role,)), run) for a, role in roles}
        return _called(self.copies.of(self.function), {**self.given, **inputs})

    def path(self, known: Known, codes: frozenset[types.CodeType]) -> Path:
        """The instructions of the run with these answers."""
        run = Run(self.copies.place, known)

        def silent() -> None:  # nothing may look at the marker that comes out
            self.start(run)

        return recorded(silent, codes)[1]


def _by_signature(function: object, given: Mapping[str, Any]) -> tuple[str, ...]:
    data = []
    for name, parameter in arguments_of(function).items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            problem, remedy = f"takes {parameter}", "name its arguments one by one"
            raise InvalidParameter("function", problem=problem, remedy=remedy)
        if name not in given and parameter.default is parameter.empty:
            data.append(name)
    return tuple(data)


_NUMBERS = (int, float, bool, str, Fraction, np.float64)
_TRACEABLE = (
    "use math.log, exp, sqrt or fabs, round, abs, min or max; round instead of floor, ceil and "
    "trunc"
)


def _shim(
    original: Callable[..., Any],
    name: str,
    known: Callable[..., Any] | None,
    place: Callable[[], str],
) -> Any:
    """A function that builds the step on traced values and is the original on numbers.

    Lists are refused unless they hold numbers alone: C code may treat lists of floats in its own
    way, which a marker does not show.
    """

    def of_numbers(x: object) -> bool:
        listed = type(x) is list or type(x) is tuple
        return all(map(of_numbers, x)) if listed else type(x) in _NUMBERS  # type: ignore[call-overload]

    def shimmed(*arguments: Any, **options: Any) -> Any:
        given = (*arguments, *options.values())
        traced = next((x for x in given if type(x) is Traced), None)
        if traced is None:
            if not all(map(of_numbers, given)):
                raise Untraceable(f"{place()} calls {name} of a list; {_TRACEABLE}")
            return original(*arguments, **options)
        if known is None or options or len(arguments) != 1:
            refuse(traced, f"calls {name} so", _TRACEABLE)
        return known(traced)

    return shimmed


def _shim_of_fsum(values: Any) -> Any:
    """`math.fsum` as traced code sees it."""
    listed = values if type(values) is list or type(values) is tuple else (values,)
    for x in listed:
        if type(x) is Traced:
            return summed(values, x)
    return math.fsum(values)


def _shim_of_builtin(name: str) -> Callable[..., Any]:
    """`min`, `max` or `sum` as traced code sees it."""
    original = getattr(builtins, name)

    def fold(*values: Any, **options: Any) -> Any:
        traced = [x for x in values if type(x) is Traced]
        if not traced:
            return original(*values, **options)
        if options:
            refuse(traced[0], f"takes the {name} in its own order", "leave out key and default")
        if len(values) == 1:
            refuse(traced[0], f"takes the {name} of one number", "pass two")
        return folded(values, name)

    def total(values: Any, *rest: Any) -> Any:
        listed = list(values)
        for x in (*listed, *rest):
            if type(x) is Traced:  # newer Pythons compensate: other roundings
                refuse(x, "calls sum", "add one by one: versions of Python round sums differently")
        return sum(listed, *rest)

    return total if name == "sum" else fold


@dataclass(slots=True)
class _Copies:
    """Copies of the traced function and of those it calls, whose names lead to the shims."""

    made: dict[int, types.FunctionType] = field(default_factory=dict)
    shims: dict[int, Any] = field(default_factory=dict)
    codes: set[types.CodeType] = field(default_factory=set)
    first: types.CodeType | None = None

    def of(self, function: types.FunctionType) -> types.FunctionType:
        if id(function) in self.made:
            return self.made[id(function)]
        self.first = self.first or function.__code__
        codes = list(codes_in(function.__code__))
        self.codes.update(codes)
        scope: dict[str, Any] = {**function.__globals__, "__builtins__": dict(vars(builtins))}
        closure = function.__closure__
        cells = None if closure is None else tuple(types.CellType() for _ in closure)
        own, values = function.__code__, function.__defaults__
        copy = types.FunctionType(own, scope, function.__name__, values, cells)
        copy.__kwdefaults__ = function.__kwdefaults__
        self.made[id(function)] = copy  # before its names are replaced: it may call itself
        for name in {name for code in codes for name in code.co_names}:
            if name in scope or name in vars(builtins):
                scope[name] = self.replaced(scope.get(name, vars(builtins).get(name)))
        for old, new in zip(closure or (), cells or (), strict=True):
            new.cell_contents = self.replaced(old.cell_contents)
        return copy

    def place(self) -> str:
        """The file and line of the traced code that is running, or of the function itself."""
        frame = sys._getframe()
        while frame is not None:
            if frame.f_code in self.codes:
                return f"{frame.f_code.co_filename}, line {frame.f_lineno}:"
            frame = frame.f_back  # type: ignore[assignment]
        assert self.first is not None
        return f"{self.first.co_filename}, line {self.first.co_firstlineno}: the function"

    def failed(self, failure: Exception) -> str:
        """The file and line of the traced code from which an exception came."""
        at, found = failure.__traceback__, None
        while at is not None:
            found = at if at.tb_frame.f_code in self.codes else found
            at = at.tb_next
        if found is None:
            return self.place()
        return f"{found.tb_frame.f_code.co_filename}, line {found.tb_lineno}:"

    def replaced(self, value: Any) -> Any:
        """What stands for a value in the copies: always the same for the same."""
        if id(value) not in self.shims:
            # the value is kept too: its id is not given to another
            self.shims[id(value)] = (self.other(value), value)
        return self.shims[id(value)][0]

    def other(self, value: Any) -> Any:
        if type(value) is types.ModuleType and value is not np:
            return _ModuleShim(value, self)
        if isinstance(value, types.BuiltinFunctionType):
            name, owner = value.__name__, value.__self__
            if owner is math and name == "fsum":
                return _shim_of_fsum
            if owner is math:
                return _shim(value, f"math.{name}", MATH_STEPS.get(name), self.place)
            if owner is builtins and name in ("min", "max", "sum"):
                return _shim_of_builtin(name)
        if isinstance(value, types.FunctionType) and value not in (clamp, round_to):
            return self.of(value)
        return value


class _ModuleShim:
    """A module as traced code sees it: its functions are copies, its other names its own."""

    __slots__ = ("_of",)

    def __init__(self, module: types.ModuleType, copies: _Copies) -> None:
        object.__setattr__(self, "_of", (module, copies))

    def __getattribute__(self, name: str) -> Any:
        module, copies = object.__getattribute__(self, "_of")
        return copies.replaced(vars(module)[name])
