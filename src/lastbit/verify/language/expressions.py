"""The language of float code: expressions over real inputs, and their table of steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any, TypeAlias

from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact import Number, positive, rational
from lastbit.verify.certificate import number


@dataclass(frozen=True, slots=True)
class Constant:
    """A number; the machine holds the nearest of its format."""

    value: Fraction

    def __init__(self, value: Number) -> None:
        object.__setattr__(self, "value", rational(value, "constant"))


@dataclass(frozen=True, slots=True)
class Variable:
    """An input, by name."""

    name: str

    def __post_init__(self) -> None:
        _check_name(self.name)


@dataclass(frozen=True, slots=True)
class Sample:
    """A draw, by name: what the generator gave stands for it when the expression is evaluated.

    Law      "uniform" on (0, 1), "bernoulli"(p) on {0, 1}, "laplace"(scale) on the reals
    """

    name: str
    distribution: str
    parameters: tuple[Fraction, ...] = ()

    def __post_init__(self) -> None:
        _check_name(self.name)
        object.__setattr__(self, "parameters", tuple(rational(p) for p in self.parameters))
        wanted = {"uniform": 0, "bernoulli": 1, "laplace": 1}.get(self.distribution)
        if wanted != len(self.parameters):
            raise InvalidParameter(
                "distribution",
                problem="is unknown or has the wrong number of parameters",
                remedy='pass "uniform", or "bernoulli" or "laplace" with one parameter',
            )


@dataclass(frozen=True, slots=True)
class _OfTwo:
    left: Expression
    right: Expression


class Add(_OfTwo):
    """The sum."""


class Subtract(_OfTwo):
    """The difference."""


class Multiply(_OfTwo):
    """The product."""


class Divide(_OfTwo):
    """The quotient."""


@dataclass(frozen=True, slots=True)
class _OfOne:
    argument: Expression


class Negate(_OfOne):
    """The same number with the other sign."""


class Ln(_OfOne):
    """The natural logarithm."""


class Exp(_OfOne):
    """The exponential."""


class Sqrt(_OfOne):
    """The square root."""


class Absolute(_OfOne):
    """The size without the sign."""


class Sign(_OfOne):
    """-1, 0 or 1."""


@dataclass(frozen=True, slots=True)
class Clamp(_OfOne):
    """The nearest number of [low, high]; None leaves a side open."""

    low: Fraction | None
    high: Fraction | None

    def __post_init__(self) -> None:
        low = None if self.low is None else rational(self.low, "low")
        high = None if self.high is None else rational(self.high, "high")
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        if low is not None and high is not None and low > high:
            raise InvalidParameter("low", problem="is above high", remedy="swap the two")


@dataclass(frozen=True, slots=True)
class RoundTo(_OfOne):
    """The nearest multiple of a step, of two equally near ones the even one (as rint)."""

    step: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "step", positive(self.step, "step"))


@dataclass(frozen=True, slots=True)
class Condition:
    """An input compared with a number: "<", "<=" or "=="."""

    name: str
    relation: str
    bound: Fraction

    def __post_init__(self) -> None:
        _check_name(self.name)
        object.__setattr__(self, "bound", rational(self.bound, "bound"))
        if self.relation not in ("<", "<=", "=="):
            raise InvalidParameter(
                "relation", problem="is unknown", remedy='pass "<", "<=" or "=="'
            )

    def holds(self, value: Fraction) -> bool:
        """Whether a value of the input satisfies it."""
        if self.relation == "==":
            return value == self.bound
        return value < self.bound if self.relation == "<" else value <= self.bound


@dataclass(frozen=True, slots=True)
class Piecewise:
    """One expression where a condition on an exact input holds, another where it does not."""

    condition: Condition
    then: Expression
    otherwise: Expression


Unary: TypeAlias = Negate | Ln | Exp | Sqrt | Absolute | Sign | Clamp | RoundTo
Dyadic: TypeAlias = Add | Subtract | Multiply | Divide
Expression: TypeAlias = Constant | Variable | Sample | Dyadic | Unary | Piecewise

_KINDS: Mapping[str, type[Any]] = MappingProxyType({
    "CONST": Constant, "VAR": Variable, "SAMPLE": Sample, "ADD": Add, "SUB": Subtract,
    "MUL": Multiply, "DIV": Divide, "NEG": Negate, "LN": Ln, "EXP": Exp, "SQRT": Sqrt,
    "ABS": Absolute, "SGN": Sign, "CLAMP": Clamp, "ROUND": RoundTo, "CASES": Piecewise,
})  # fmt: skip
_RULES = MappingProxyType({kind: name for name, kind in _KINDS.items()})


def rule_of(expression: Expression) -> str:
    """The name of the rule that derives such an expression.

    >>> rule_of(Ln(Variable("u")))
    'LN'
    """
    if type(expression) not in _RULES:
        raise WrongType(
            "expression",
            problem=f"is of type {type(expression).__name__}",
            remedy="build it from lastbit.verify.language, or with trace()",
        )
    return _RULES[type(expression)]


def children(expression: Expression) -> tuple[Expression, ...]:
    """The expressions directly below one, left to right."""
    match expression:
        case Constant() | Variable() | Sample():
            return ()
        case Add() | Subtract() | Multiply() | Divide():
            return expression.left, expression.right
        case Piecewise():
            return expression.then, expression.otherwise
        case _:
            rule_of(expression)
            return (expression.argument,)


@dataclass(frozen=True, slots=True)
class Table:
    """An expression as steps in the order of evaluation, equal ones written once.

    `expressions[i]` is a step and `below[i]` the numbers of the steps that it uses; the last step
    is the whole. Code that names an intermediate result and uses it twice has it here once.
    """

    expressions: tuple[Expression, ...]
    below: tuple[tuple[int, ...], ...]

    def reached(self, root: int) -> list[int]:
        """The steps that one of them uses, itself included, in order."""
        found = {root}
        for index in range(root, -1, -1):
            if index in found:
                found.update(self.below[index])
        return sorted(found)


def table(expression: Expression) -> Table:
    """The steps of an expression; linear in the number of different ones.

    >>> x = Variable("x")
    >>> len(table(Add(Multiply(x, x), Multiply(x, x))).expressions)
    3
    """
    steps: list[Expression] = []
    below: list[tuple[int, ...]] = []
    seen: dict[int, int] = {}
    equal: dict[tuple[object, ...], int] = {}
    stack: list[tuple[Expression, bool]] = [(expression, False)]
    while stack:
        node, ready = stack.pop()
        if id(node) in seen:
            continue
        under = children(node)
        if not ready:
            stack.append((node, True))
            stack.extend((child, False) for child in reversed(under))
            continue
        places = tuple(seen[id(child)] for child in under)
        key = (rule_of(node), _payload(node), places)
        if key not in equal:
            equal[key] = len(steps)
            steps.append(node)
            below.append(places)
        seen[id(node)] = equal[key]
    return Table(tuple(steps), tuple(below))


def names(expression: Expression) -> tuple[str, ...]:
    """The inputs and draws of an expression, sorted.

    >>> names(Add(Variable("y"), Variable("x")))
    ('x', 'y')
    """
    found = set()
    for node in table(expression).expressions:
        if isinstance(node, Variable | Sample):
            found.add(node.name)
        elif isinstance(node, Piecewise):
            found.add(node.condition.name)
    return tuple(sorted(found))


def expression_to_json(expression: Expression) -> list[list[object]]:
    """The table of steps as plain JSON: a rule, the steps it uses, and what else it needs.

    >>> expression_to_json(Add(Variable("x"), Constant("1/3")))
    [['VAR', 'x'], ['CONST', '1/3'], ['ADD', 0, 1]]
    """
    steps = table(expression)
    return [
        [rule_of(node), *places, *_payload(node)]
        for node, places in zip(steps.expressions, steps.below, strict=True)
    ]


def expression_from_json(rows: Sequence[Sequence[Any]]) -> Expression:
    """The expression that `expression_to_json` wrote."""
    built: list[Expression] = []
    try:
        for row in rows:
            kind = _KINDS[row[0]]
            count = _arity(row[0])
            places = [built[_place(index, len(built))] for index in row[1 : 1 + count]]
            built.append(_built(kind, places, list(row[1 + count :])))
        return built[-1]
    except (LookupError, TypeError, ValueError) as error:
        raise InvalidParameter(
            "expression", problem="is not written as a table of steps", remedy="write it anew"
        ) from error


def _built(kind: type[Any], below: list[Expression], rest: list[Any]) -> Expression:
    if kind is Constant:
        (value,) = rest
        return Constant(number(value))
    if kind is Sample:
        name, distribution, *parameters = rest
        return Sample(name, distribution, tuple(number(p) for p in parameters))
    if kind is Piecewise:
        name, relation, bound = rest
        return Piecewise(Condition(name, relation, number(bound)), *below)
    if kind is Clamp:
        low, high = (None if end is None else number(end) for end in rest)
        return Clamp(below[0], low, high)
    if kind is RoundTo:
        (step,) = rest
        return RoundTo(below[0], number(step))
    return kind(*below, *rest)  # type: ignore[no-any-return]


def _arity(rule: str) -> int:
    if rule in ("CONST", "VAR", "SAMPLE"):
        return 0
    return 2 if rule in ("ADD", "SUB", "MUL", "DIV", "CASES") else 1


def _place(index: object, known: int) -> int:
    if type(index) is not int or not 0 <= index < known:
        raise ValueError("a step uses one that is not before it")
    return index


def _payload(node: Expression) -> tuple[object, ...]:
    """What a step needs besides the steps below it, as JSON values."""
    match node:
        case Constant():
            return (str(node.value),)
        case Variable():
            return (node.name,)
        case Sample():
            return (node.name, node.distribution, *map(str, node.parameters))
        case Clamp():
            return tuple(None if end is None else str(end) for end in (node.low, node.high))
        case RoundTo():
            return (str(node.step),)
        case Piecewise():
            condition = node.condition
            return (condition.name, condition.relation, str(condition.bound))
    return ()


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name.isidentifier():
        raise InvalidParameter(
            "name", problem="is not an identifier", remedy='pass a name such as "x"'
        )
