"""The language of float code: expressions over real inputs, as steps, as JSON and on paper."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar

from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact import Number, positive, rational
from lastbit.verify.certificate import number, written

Node = TypeVar("Node")


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name.isidentifier():
        remedy = 'pass a name such as "x"'
        raise InvalidParameter("name", problem="is not an identifier", remedy=remedy)


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
            problem = "is unknown or has the wrong number of parameters"
            remedy = 'pass "uniform", or "bernoulli" or "laplace" with one parameter'
            raise InvalidParameter("distribution", problem=problem, remedy=remedy)


@dataclass(frozen=True, slots=True)
class Fails:
    """No number: the code raises an error of this name; nothing is proved of it."""

    name: str

    def __post_init__(self) -> None:
        _check_name(self.name)


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


class Cos(_OfOne):
    """The cosine."""


class Sin(_OfOne):
    """The sine."""


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
        for name in ("low", "high"):
            end = getattr(self, name)
            object.__setattr__(self, name, None if end is None else rational(end, name))
        if self.low is not None and self.high is not None and self.low > self.high:
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
            remedy = 'pass "<", "<=" or "=="'
            raise InvalidParameter("relation", problem="is unknown", remedy=remedy)

    def holds(self, value: Fraction) -> bool:
        if self.relation == "==":
            return value == self.bound
        return value < self.bound if self.relation == "<" else value <= self.bound


@dataclass(frozen=True, slots=True)
class Piecewise:
    """One expression where a condition on an exact input holds, another where it does not."""

    condition: Condition
    then: Expression
    otherwise: Expression


Unary: TypeAlias = Negate | Ln | Exp | Sqrt | Cos | Sin | Absolute | Sign | Clamp | RoundTo
Dyadic: TypeAlias = Add | Subtract | Multiply | Divide
Expression: TypeAlias = Constant | Variable | Sample | Fails | Dyadic | Unary | Piecewise

# a rule: what it makes, of how many expressions, and how many texts come before its numbers
_KINDS: Mapping[str, tuple[type[Any], int, int]] = MappingProxyType({
    "CONST": (Constant, 0, 0), "VAR": (Variable, 0, 1), "SAMPLE": (Sample, 0, 2),
    "FAIL": (Fails, 0, 1),
    "ADD": (Add, 2, 0), "SUB": (Subtract, 2, 0), "MUL": (Multiply, 2, 0), "DIV": (Divide, 2, 0),
    "NEG": (Negate, 1, 0), "LN": (Ln, 1, 0), "EXP": (Exp, 1, 0), "SQRT": (Sqrt, 1, 0),
    "COS": (Cos, 1, 0), "SIN": (Sin, 1, 0), "ABS": (Absolute, 1, 0), "SGN": (Sign, 1, 0),
    "CLAMP": (Clamp, 1, 0), "ROUND": (RoundTo, 1, 0), "CASES": (Piecewise, 2, 2),
})  # fmt: skip
_RULES = MappingProxyType({kind: name for name, (kind, _, _) in _KINDS.items()})


def rule_of(expression: Expression) -> str:
    """The name of the rule that derives such an expression.

    >>> rule_of(Ln(Variable("u")))
    'LN'
    """
    if type(expression) not in _RULES:
        problem = f"is of type {type(expression).__name__}"
        remedy = "build it from lastbit.verify.language, or with trace()"
        raise WrongType("expression", problem=problem, remedy=remedy)
    return _RULES[type(expression)]


def children(expression: Expression) -> tuple[Expression, ...]:
    """The expressions directly below one, left to right."""
    match expression:
        case Constant() | Variable() | Sample() | Fails():
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

    def reached(self, root: int, into: Callable[[int], Sequence[int]] | None = None) -> list[int]:
        """A step and all that it uses, in order; `into` says which of those below a step count."""
        found = {root}
        for index in range(root, -1, -1):
            if index in found:
                found.update(self.below[index] if into is None else into(index))
        return sorted(found)


def table(expression: Expression) -> Table:
    """The steps of an expression; linear in the number of different ones.

    >>> x = Variable("x")
    >>> len(table(Add(Multiply(x, x), Multiply(x, x))).expressions)
    3
    """
    rows = in_order(expression, children, lambda node: (rule_of(node), _payload(node)))
    return Table(tuple(node for node, _ in rows), tuple(places for _, places in rows))


def in_order(
    root: Node, children: Callable[[Node], Sequence[Node]], key: Callable[[Node], object]
) -> list[tuple[Node, tuple[int, ...]]]:
    """A node and all below it in the order of evaluation, each with the places of its children.

    Nodes of equal keys with equal children are one.
    """
    rows: list[tuple[Node, tuple[int, ...]]] = []
    seen: dict[int, int] = {}
    equal: dict[object, int] = {}
    stack = [(root, False)]
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
        seen[id(node)] = equal.setdefault((key(node), places), len(rows))
        if seen[id(node)] == len(rows):
            rows.append((node, places))
    return rows


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
    rows = zip(steps.expressions, steps.below, strict=True)
    return [[rule_of(node), *places, *_payload(node)] for node, places in rows]


def _payload(node: Expression) -> tuple[object, ...]:
    """What a step needs besides the steps below it, as JSON values."""
    match node:
        case Constant(value=exact) | RoundTo(step=exact):
            return (written(exact),)
        case Variable() | Fails():
            return (node.name,)
        case Sample():
            return (node.name, node.distribution, *map(written, node.parameters))
        case Clamp():
            return tuple(None if end is None else written(end) for end in (node.low, node.high))
        case Piecewise(condition=condition):
            return (condition.name, condition.relation, written(condition.bound))
    return ()


def expression_from_json(rows: Sequence[Sequence[Any]]) -> Expression:
    """The expression that `expression_to_json` wrote."""
    built: list[Expression] = []
    try:
        for rule, *parts in rows:
            kind, count, texts = _KINDS[rule]
            if any(type(p) is not int or not 0 <= p < len(built) for p in parts[:count]):
                raise ValueError("a step uses one that is not before it")
            below = [built[place] for place in parts[:count]]
            words, figures = parts[count : count + texts], parts[count + texts :]
            numbers = [None if figure is None else number(figure) for figure in figures]
            if kind is Sample:
                name, distribution = words
                built.append(Sample(name, distribution, tuple(numbers)))  # type: ignore[arg-type]
            elif kind is Piecewise:
                built.append(Piecewise(Condition(*words, *numbers), *below))
            else:
                built.append(kind(*below, *words, *numbers))
        return built[-1]
    except (LookupError, TypeError, ValueError) as error:
        raise InvalidParameter(
            "expression", problem="is not written as a table of steps", remedy="write it again"
        ) from error


_LONGEST = 20_000
_FUNCTIONS: Mapping[type[Any], str] = MappingProxyType(
    {Ln: "ln", Exp: "exp", Sqrt: "sqrt", Cos: "cos", Sin: "sin", Absolute: "abs", Sign: "sgn"}
)


def text(expression: Expression) -> str:
    """The expression in one line.

    >>> text(Multiply(Add(Variable("x"), Constant(1)), Ln(Variable("x"))))
    '(x + 1) * ln(x)'
    """
    return _spelled(expression, _plain_step, "({})")


def latex(expression: Expression) -> str:
    r"""The expression for LaTeX's mathematics.

    >>> latex(Divide(Ln(Variable("u")), Constant(2)))
    '\\frac{\\ln(u)}{2}'
    """
    return _spelled(expression, _latex_step, r"\left({}\right)")


def _spelled(
    expression: Expression, spell: Callable[[Expression, list[str], list[str]], str], bracket: str
) -> str:
    steps = table(expression)
    words: list[str] = []
    for node, places in zip(steps.expressions, steps.below, strict=True):
        below = [words[place] for place in places]
        held = [
            bracket.format(words[p])
            if isinstance(steps.expressions[p], Add | Subtract | Negate)
            else words[p]
            for p in places
        ]
        match node:
            case Add():
                word = f"{below[0]} + {held[1] if below[1].startswith('-') else below[1]}"
            case Subtract():
                word = f"{below[0]} - {held[1]}"
            case Negate():
                word = f"-{held[0]}"
            case _:
                word = spell(node, below, held)
        # shared parts may be written again and again: what is too long to read is cut
        words.append(word if len(word) <= _LONGEST else word[: _LONGEST - 1] + "…")
    return words[-1]


def _plain_step(node: Expression, below: list[str], held: list[str]) -> str:
    match node:
        case Constant():
            return _constant(node.value)
        case Variable() | Sample() | Fails():
            return node.name
        case Multiply():
            return f"{held[0]} * {_factor(node.right, held[1])}"
        case Divide():
            return f"{held[0]} / {_factor(node.right, held[1])}"
        case Clamp():
            low, high = ("none" if e is None else _constant(e) for e in (node.low, node.high))
            return f"clamp({below[0]}, {low}, {high})"
        case RoundTo():
            return f"round({below[0]}, {_constant(node.step)})"
        case Piecewise(condition=asked):
            condition = f"{asked.name} {asked.relation} {_constant(asked.bound)}"
            return f"({below[0]} if {condition} else {below[1]})"
    return f"{_FUNCTIONS[type(node)]}({below[0]})"


def _latex_step(node: Expression, below: list[str], held: list[str]) -> str:
    match node:
        case Constant():
            return _latex_constant(node.value)
        case Variable() | Sample() | Fails():
            return _latex_name(node.name)
        case Multiply():
            return rf"{held[0]} \times {_factor(node.right, held[1])}"
        case Divide():
            return rf"\frac{{{below[0]}}}{{{below[1]}}}"
        case Sqrt():
            return rf"\sqrt{{{below[0]}}}"
        case Absolute():
            return rf"\left|{below[0]}\right|"
        case Sign():
            return rf"\mathrm{{sgn}}({below[0]})"
        case Clamp():
            low = r"-\infty" if node.low is None else _latex_constant(node.low)
            high = r"\infty" if node.high is None else _latex_constant(node.high)
            return rf"\mathrm{{clamp}}_{{[{low}, {high}]}}\left({below[0]}\right)"
        case RoundTo():
            return rf"\left\lfloor {below[0]} \right\rceil_{{{_latex_constant(node.step)}}}"
        case Piecewise(condition=asked):
            sign = {"<": "<", "<=": r"\leq", "==": "="}[asked.relation]
            condition = f"{_latex_name(asked.name)} {sign} {_latex_constant(asked.bound)}"
            cases = rf"{below[0]} & {condition} \\ {below[1]} & \text{{else}}"
            return rf"\begin{{cases}} {cases} \end{{cases}}"
    return rf"\{_FUNCTIONS[type(node)]}({below[0]})"


def _factor(node: Expression, word: str) -> str:
    """A right factor or divisor, which binds only as tightly as it is written."""
    loose = isinstance(node, Multiply | Divide) or word.startswith("-") or " / " in word
    return f"({word})" if loose else word


def _constant(value: Fraction) -> str:
    if value.denominator == 1:
        return written(value)
    near = value.numerator / value.denominator if abs(value) < 2**1000 else 0.0
    if near and (Fraction(near) == value or Fraction(repr(near)) == value):
        return repr(near)
    return f"({written(value)})"


def _latex_constant(value: Fraction) -> str:
    plain = _constant(value)
    if plain.startswith("("):
        return rf"\frac{{{value.numerator}}}{{{value.denominator}}}"
    return power_of_ten(plain)


def power_of_ten(plain: str) -> str:
    """A number in decimal as LaTeX has it."""
    mantissa, e, exponent = plain.partition("e")
    return rf"{mantissa}\cdot 10^{{{int(exponent)}}}" if e else mantissa


def _latex_name(name: str) -> str:
    return name if len(name) == 1 else rf"\mathit{{{name}}}".replace("_", r"\_")
