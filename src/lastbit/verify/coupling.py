"""Couplings: proofs for programs that draw, compare and put out, in floats.

Noise is drawn on a grid, or by the logarithm of a uniform and then rounded (`rounded_draws`):
either way all later sums are exact.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product
from types import MappingProxyType
from typing import Any, TypeAlias

from lastbit.errors import InvalidParameter, LastbitError, NotCertified, WrongType
from lastbit.exact import (
    Number,
    arb_of,
    ends,
    ln,
    positive,
    rational,
    rounded_up,
    upper,
    whole,
    working_precision,
)
from lastbit.privacy import ApproxDP, PureDP
from lastbit.sampling import discrete_laplace, uniform_below
from lastbit.verify.certificate import Certified
from lastbit.verify.language.expressions import (
    Add,
    Clamp,
    Constant,
    Divide,
    Expression,
    Ln,
    Multiply,
    Negate,
    Subtract,
    Variable,
    expression_from_json,
    expression_to_json,
    names,
    text,
)
from lastbit.verify.loss_rules import Step, text_of_steps
from lastbit.verify.rounded_draws import (
    beyond_cap,
    chain_of,
    draw_loss,
    noise_of,
    scale_of,
)
from lastbit.verify.tracing.binding import running_code
from lastbit.verify.tracing.screening import screened
from lastbit.verify.tracing.trace import plain_function

Form: TypeAlias = dict[str, Fraction]
"""A sum of multiples of inputs and draws, and of 1 under the name of nothing."""

_WAYS: Mapping[str, tuple[int, ...]] = MappingProxyType(
    {"each": (0,), "one": (0,), "same": (1, -1)}  # 0: inputs may differ either way
)
_METHODS = frozenset({"laplace", "uniform", "sign", "ln", "round_to", "clamp", "emit", "largest"})
_LIBRARIES = frozenset({"builtins", "fractions", "math"})
_PRECISION = 128
_MOST_LEAVES = 1 << 12
_MOST_QUESTIONS = 64
_MOST_TRIES = 50_000
_CAP_BITS = 48
_FARTHEST = 1000
_FAILURES = (*(ArithmeticError, AssertionError, LookupError, RuntimeError, TypeError, ValueError),)
_ZERO = Fraction(0)


# ---------------------------------------------------------------- following a program


Tree: TypeAlias = dict[str, Any]
"""A program as a tree of its questions, as certificates write it."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A comparison on the way to an end of a program, as it turned out."""

    left: Expression
    relation: str
    right: Expression

    def __str__(self) -> str:
        return f"{text(self.left)} {self.relation} {text(self.right)}"


class _Question(BaseException):
    """A question that is not answered yet; code that catches exceptions must not swallow it.

    `answers` are all that it can have, with the comparisons that each says; `write` makes the tree
    of the question from those of what follows each answer.
    """

    def __init__(
        self,
        answers: Sequence[tuple[Any, tuple[Asked, ...]]],
        write: Callable[[list[Tree]], Tree],
    ) -> None:
        super().__init__("asked")
        self.answers, self.write = answers, write


class Symbol:
    """A sum of inputs and draws, as the program computes it."""

    __slots__ = ("expression", "run")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, run: _Run, expression: Expression) -> None:
        self.run, self.expression = run, expression

    def __add__(self, other: object) -> Symbol:
        return Symbol(self.run, Add(self.expression, _expression(other)))

    def __radd__(self, other: object) -> Symbol:
        return Symbol(self.run, Add(_expression(other), self.expression))

    def __sub__(self, other: object) -> Symbol:
        return Symbol(self.run, Subtract(self.expression, _expression(other)))

    def __rsub__(self, other: object) -> Symbol:
        return Symbol(self.run, Subtract(_expression(other), self.expression))

    def __neg__(self) -> Symbol:
        return Symbol(self.run, Negate(self.expression))

    def __mul__(self, other: object) -> Symbol:
        return Symbol(self.run, Multiply(self.expression, _expression(other)))

    def __rmul__(self, other: object) -> Symbol:
        return Symbol(self.run, Multiply(_expression(other), self.expression))

    def __truediv__(self, other: object) -> Symbol:
        below = _expression(other)
        if not isinstance(below, Constant) or not below.value:
            raise _refused("divides by something that may be 0", "divide by numbers only")
        return Symbol(self.run, Divide(self.expression, below))

    def __ge__(self, other: object) -> bool:
        return self.run.compared(self.expression, ">=", _expression(other))

    def __gt__(self, other: object) -> bool:
        return self.run.compared(self.expression, ">", _expression(other))

    def __lt__(self, other: object) -> bool:
        return self.run.compared(_expression(other), ">", self.expression)

    def __le__(self, other: object) -> bool:
        return self.run.compared(_expression(other), ">=", self.expression)

    def __eq__(self, other: object) -> bool:
        raise _refused("compares for equality", "compare with >= or <")

    def __bool__(self) -> bool:
        raise _refused("takes a number for a truth value", "compare it with a number")


def _refused(what: str, remedy: str) -> InvalidParameter:
    return InvalidParameter("program", problem=what, remedy=remedy)


def _expression(value: object) -> Expression:
    if isinstance(value, Symbol):
        return value.expression
    if type(value) in (int, float, Fraction):
        if value == 0 and math.copysign(1, value) < 0:
            raise _refused("has -0.0", "write 0.0")
        return Constant(rational(value, "program"))
    raise WrongType("program", problem="adds something else than numbers", remedy="use + and -")


class _Run:
    """What a program draws from while it is followed: symbols, and answers given beforehand."""

    def __init__(self, answers: Sequence[Any]) -> None:
        self.answers = list(answers)
        self.draws: list[dict[str, Any]] = []
        self.drawn = 0
        self.emitted: list[Expression] = []

    def laplace(self, scale: Number) -> Symbol:
        return self._drawn({"law": "laplace", "scale": str(positive(scale, "scale"))})

    def uniform(self) -> Symbol:
        return self._drawn({"law": "uniform"})

    def sign(self) -> Symbol:
        """A fair sign, 1.0 or -1.0: to be multiplied with noise that is then rounded."""
        return self._drawn({"law": "sign"})

    def ln(self, x: object) -> Symbol:
        """The correctly rounded logarithm of a uniform: to be rounded to a grid."""
        return Symbol(self, Ln(_expression(x)))

    def round_to(self, x: object, step: Number) -> Symbol:
        """The nearest multiple of a power of two, ties to even: from here on a draw of its own."""
        value, noise = noise_of(_expression(x))
        chain, *used = chain_of(noise)
        for name in used:
            drawn = [draw for draw in self.draws if draw["name"] == name]
            if len(drawn) != 1:
                raise _refused("rounds noise of one uniform or sign twice", "draw them afresh")
            self.draws.remove(drawn[0])
        draw = {
            "law": "rounded",
            "chain": [[rule, str(factor)] for rule, factor in chain],
            "step": str(positive(step, "step")),
            "value": None if value is None else _written_value(value),
        }
        return self._drawn(draw)

    def clamp(self, x: object, low: Number, high: Number) -> object:
        """A number moved to the nearer end; of inputs alone, for a sum that is then rounded."""
        expression, ends = _expression(x), (rational(low, "low"), rational(high, "high"))
        if ends[0] > ends[1]:
            raise _refused("clamps to ends in the wrong order", "pass low <= high")
        symbol = Symbol(self, expression)
        if not any(name.startswith("draw") for name in names(expression)):
            return Symbol(self, Clamp(expression, *ends))
        if symbol < low:
            return low
        return high if symbol > high else symbol

    def _drawn(self, draw: dict[str, Any]) -> Symbol:
        # another way may draw from another law there
        law = draw["law"] if "scale" not in draw else draw["scale"]
        if draw["law"] == "rounded":
            law = f"{scale_of(draw)}_to_{draw['step']}{'' if draw['value'] is None else '_sum'}"
        self.drawn += 1
        name = f"draw{self.drawn}_{law}".replace("/", "_")
        self.draws.append({**draw, "name": name})
        return Symbol(self, Variable(name))

    def emit(self, value: object) -> None:
        self.emitted.append(_expression(value))

    def largest(self, values: Sequence[object]) -> int:
        if not values:
            raise _refused("chooses among nothing", "pass values")
        among = [_expression(value) for value in values]
        if self.answers:
            return int(self.answers.pop(0))
        answers = []
        for k, one in enumerate(among):
            rest = enumerate(among)
            said = (Asked(one, ">" if j < k else ">=", other) for j, other in rest if j != k)
            answers.append((k, tuple(said)))
        rows = [expression_to_json(one) for one in among]
        raise _Question(answers, lambda below: {"largest": rows, "cases": below})

    def compared(self, left: Expression, relation: str, right: Expression) -> bool:
        if self.answers:
            return bool(self.answers.pop(0))
        other = {">=": "<", ">": "<="}[relation]
        ways = ((True, relation), (False, other))
        answers = [(holds, (Asked(left, said, right),)) for holds, said in ways]
        asked = [expression_to_json(left), relation, expression_to_json(right)]
        raise _Question(answers, lambda below: {"if": asked, "then": below[0], "else": below[1]})


@dataclass(frozen=True, slots=True)
class Leaf:
    """An end of a program: the comparisons that lead there, and what is put out."""

    asked: tuple[Asked, ...]
    emitted: tuple[Expression, ...]

    def __str__(self) -> str:
        return f"puts out ({', '.join(map(text, self.emitted))})"


Program: TypeAlias = Callable[[Any, Any], object]
"""program(run, inputs): draws by run.laplace(scale) or run.uniform(), chooses by
run.largest(values), puts out by run.emit(value); + - and comparisons are Python's own. Noise by
run.sign() * (scale * run.ln(run.uniform())) is rounded by run.round_to(noise, step)."""


def _followed(
    program: Program,
    inputs: Sequence[str],
    leaves: list[Leaf],
    before: tuple[Any, ...] = (),
    asked: tuple[Asked, ...] = (),
) -> tuple[Tree, list[dict[str, Any]]]:
    """The program as a tree of questions, and its draws; its ends are put to the leaves."""
    run = _Run(before)
    try:
        told = program(run, [Symbol(run, Variable(name)) for name in inputs])
    except _Question as question:
        if len(before) > _MOST_QUESTIONS:
            problem = f"compares more than {_MOST_QUESTIONS} times"
            raise _refused(problem, "shorten it, or take fewer inputs") from None
        trees, draws = list[Tree](), list[dict[str, Any]]()
        for answer, said in question.answers:
            further = (*before, answer), (*asked, *said)
            tree, some = _followed(program, inputs, leaves, *further)
            trees.append(tree)
            draws += [draw for draw in some if draw not in draws]
        return question.write(trees), draws
    except _FAILURES as failure:
        if isinstance(failure, LastbitError):
            raise
        problem = f"raises {type(failure).__name__} when it is followed"
        raise _refused(problem, "use + - and comparisons on inputs and draws") from failure
    if told is not None:
        raise _refused("returns something", "put it out by run.emit, and return nothing")
    leaves.append(Leaf(asked, tuple(run.emitted)))
    if len(leaves) > _MOST_LEAVES:
        problem = f"has more than {_MOST_LEAVES} ends"
        raise _refused(problem, "shorten it, or take fewer inputs")
    return {"emitted": [expression_to_json(one) for one in run.emitted]}, run.draws


def _written_value(value: Expression) -> dict[str, Any]:
    """What is added to noise: a sum of inputs, and the ends of its clamp."""
    clamp = None
    if isinstance(value, Clamp):
        clamp, value = [str(value.low), str(value.high)], value.argument
    if any(name.startswith("draw") for name in names(value)):
        raise _refused("rounds a sum of noise with another draw", "round each of them by itself")
    _form(value)
    return {"rows": expression_to_json(value), "clamp": clamp}


def _form(expression: Expression) -> Form:
    match expression:
        case Constant(value=value):
            return {"": value} if value else {}
        case Variable(name=name):
            return {name: Fraction(1)}
        case Negate(argument=below):
            return _added({}, _form(below), -1)
        case Add(left=left, right=right):
            return _added(_form(left), _form(right))
        case Subtract(left=left, right=right):
            return _added(_form(left), _form(right), -1)
    raise _refused(
        "multiplies, divides, clamps or takes a logarithm, and compares or puts out the result",
        "round it first: run.round_to(value + noise, step)",
    )


def _added(one: Form, two: Form, factor: Fraction | int = 1) -> Form:
    both = {n: one.get(n, _ZERO) + factor * two.get(n, _ZERO) for n in {**one, **two}}
    return {name: share for name, share in both.items() if share}


class _Exact:
    """What a program draws from when it is released."""

    def __init__(self, grid: Fraction) -> None:
        self.grid, self.emitted = grid, list[float]()

    def laplace(self, scale: Number) -> float:
        return float(self.grid * discrete_laplace(positive(scale, "scale") / self.grid))

    def sign(self) -> float:
        return 1.0 - 2.0 * uniform_below(2)

    def ln(self, x: float) -> float:
        """Correctly rounded; 0 has the probability 2**-1074, and noise beyond every cap."""
        return ln(max(x, 5e-324))

    def round_to(self, x: float, step: Number) -> float:
        return float(step) * round(x / float(step))

    def clamp(self, x: float, low: Number, high: Number) -> float:
        return min(max(x, float(low)), float(high))

    def uniform(self) -> float:
        """A uniform real, rounded down to a float: P(u < a) = a, a being a multiple of 2**-1074."""
        drawn = uniform_below(1 << 1074)
        over = max(drawn.bit_length() - 53, 0)
        return math.ldexp(drawn >> over, over - 1074)

    def emit(self, value: float) -> None:
        self.emitted.append(float(value) + 0.0)

    def largest(self, values: Sequence[float]) -> int:
        return max(range(len(values)), key=lambda k: (values[k], -k))


# ---------------------------------------------------------------- the proof


@dataclass(frozen=True, slots=True, kw_only=True)
class Coupling(Certified):
    """A proof by couplings: for each end of a program, how far each draw is shifted.

    Law      (`epsilon`, `delta`) for every two inputs that are neighbours, `delta` being the
             probability that a draw exceeds `cap`, beyond which binary64 would have to round
    Theorem  P(first run ends there with output o) <= exp(cost) P(second run does), if shifting the
             draws keeps every comparison on the way and everything that is put out; the rules
             EXACT, LAPLACE, CASE, CHOICE, EMIT, SEQ and UNIFORM of `checker/coupling.py`, and
             DRAW and RELEASE of `rounded_draws`
    Source   paper 002 (its AxUnif and case split); Barthe and others 2016, pointwise couplings
    Differs  in floats: inputs, constants and draws lie on a grid, so that sums are exact. A loop is
             the number of rounds that it was followed for
    Checked  tests/verify/test_coupling.py, against exact laws
    """

    program: Mapping[str, Any] = field(repr=False)
    draws: tuple[Mapping[str, Any], ...]
    leaves: tuple[Leaf, ...] = field(repr=False)
    shifts: tuple[Mapping[str, Form], ...] = field(repr=False)
    inputs: tuple[str, ...]
    values: tuple[Fraction, ...] | None
    neighbours: str
    sensitivity: Fraction
    grid: Fraction
    bound: Fraction
    epsilon: Fraction
    cost: Fraction
    code: Mapping[str, str] | None = None
    function: Program | None = field(default=None, repr=False, compare=False)
    _text: list[str] = field(default_factory=list, init=False, repr=False, compare=False)

    @property
    def cap(self) -> Fraction:
        return self.grid * (1 << _CAP_BITS)

    @property
    def losses(self) -> dict[str, Step]:
        """What each draw by a logarithm costs beyond its shift, derived."""
        by_logarithm = (draw for draw in self.draws if draw["law"] == "rounded")
        return {draw["name"]: draw_loss(draw, self.cap, self._most(draw)) for draw in by_logarithm}

    def _most(self, draw: Mapping[str, Any]) -> Fraction:
        """How large the value of a sum that is rounded can be."""
        if draw["value"] is None:
            return _ZERO
        form, ends = value_form(draw), draw["value"]["clamp"]
        size = sum((abs(x) * (self.bound if n else 1) for n, x in form.items()), _ZERO)
        if ends is None:
            return size
        low, high = map(Fraction, ends)  # which may lie beyond all sums
        return max(abs(min(max(end, low), high)) for end in (-size, size))

    @property
    def delta(self) -> Fraction:
        if self.values is not None:
            return _ZERO
        losses = self.losses
        with working_precision(_PRECISION):
            beyond = arb_of(0)
            for draw in self.draws:
                if draw["law"] == "rounded":
                    beyond += arb_of(beyond_cap(draw, self.cap, losses[draw["name"]]))
                    continue
                far = min(self.cap / Fraction(draw["scale"]), Fraction(_FARTHEST))
                beyond += 2 * (-arb_of(far)).exp()
            return Fraction(upper(beyond))

    @property
    def guarantee(self) -> ApproxDP | PureDP:
        return ApproxDP(self.epsilon, self.delta) if self.delta else PureDP(self.epsilon)

    def release(self, inputs: Sequence[Number]) -> tuple[float, ...]:
        """What the program puts out for these inputs, with draws of their exact laws.

        Law      that of the certificate: inputs that it is not about are refused, and numbers are
                 put out as floats, zero without a sign
        Checked  tests/verify/test_coupling.py
        """
        exact = [rational(value, "inputs") for value in inputs]
        fine = len(exact) == len(self.inputs) and self.function is not None
        for value in exact:
            on = (value / self.grid).denominator == 1 and abs(value) <= self.bound
            fine = fine and (on if self.values is None else value in self.values)
        if not fine or self.function is None:
            problem = "are more or fewer than were followed, off the grid or beyond the bound"
            raise InvalidParameter("inputs", problem=problem, remedy="pass inputs of the claim")
        run = _Exact(self.grid)
        self.function(run, [float(value) for value in exact])
        return tuple(run.emitted)

    def text(self) -> str:
        """The derivation, a line for each step."""
        if self.values is not None:
            return f"UNIFORM: the laws of all neighbours differ by at most exp({self.epsilon})"
        lines = [f"SEQ: every end costs at most {_amount(self.cost)}"]
        for draw in self.draws:
            if draw["law"] == "rounded":
                lines += _text_of_draw(draw, self.losses[draw["name"]])
        ends = product(_WAYS[self.neighbours], self.leaves)
        for (way, leaf), shifts in zip(ends, self.shifts, strict=True):
            lines.append(f"  {leaf}" + {0: "", 1: ", inputs rising", -1: ", falling"}[way])
            for draw in self.draws:
                if shifts.get(draw["name"]):
                    rule = "LAPLACE" if draw["law"] == "laplace" else "DRAW"
                    moved = _spelled(shifts[draw["name"]])
                    lines.append(f"    {rule}: {draw['name']} moves by {moved}")
            lines += [f"    CASE: {one} stays" for one in leaf.asked]
            lines += [f"    EMIT: {text(one)} stays" for one in leaf.emitted]
        return "\n".join(lines)

    def statement(self) -> tuple[str, dict[str, Any], dict[str, Any]]:
        claim = {
            "code": None if self.code is None else dict(self.code),
            "tree": self.program,
            "draws": [dict(draw) for draw in self.draws],
            "inputs": list(self.inputs),
            "values": None if self.values is None else [str(value) for value in self.values],
            "neighbours": self.neighbours,
            **{
                name: str(getattr(self, name))
                for name in ("sensitivity", "grid", "bound", "epsilon", "delta")
            },
        }
        if self.values is not None:
            return "coupling", claim, {}
        shifts = [
            {name: {k: str(x) for k, x in form.items()} for name, form in one.items() if form}
            for one in self.shifts
        ]
        losses = {name: step.as_json() for name, step in self.losses.items()}
        derived = {"losses": losses} if losses else {}
        return "coupling", claim, {"cap": str(self.cap), "shifts": shifts, **derived}


def value_form(draw: Mapping[str, Any]) -> Form:
    """The sum of inputs to which noise is added before both are rounded."""
    return _form(expression_from_json(draw["value"]["rows"]))


def _amount(cost: Fraction) -> str:
    return str(cost) if len(str(cost)) < 20 else rounded_up(cost, 20)


def _text_of_draw(draw: Mapping[str, Any], loss: Step) -> list[str]:
    """A draw by a logarithm: what is rounded, what it relates, and the derivation of its excess."""
    total = "ln(u)"
    for rule, factor in reversed(draw["chain"]):
        total = f"{total} {'*' if rule == 'MUL' else '/'} {factor}"
    total = f"s * ({total})"
    if draw["value"] is not None:
        value, ends = text(expression_from_json(draw["value"]["rows"])), draw["value"]["clamp"]
        value = value if ends is None else f"clamp({value}, {ends[0]}, {ends[1]})"
        total = f"{value} + {total}"
    head = f"{draw['name']} = round({total}, {draw['step']}), of scale {scale_of(draw)}"
    derived = text_of_steps(loss, 53, ()).splitlines()
    return [f"  ROUND: {head}", *(f"    {line}" for line in derived)]


def _spelled(form: Form) -> str:
    """A shift in words: d(q1) is by how much the input q1 differs between the runs."""
    signs = {Fraction(1): "", Fraction(-1): "-"}
    parts = [
        f"{signs.get(share, f'{share} ')}d({name})" if name else str(share)
        for name, share in sorted(form.items())
    ]
    return " + ".join(parts) or "0"


def _draw_in(words: str) -> str:
    """What the first draw that is named there is, for people."""
    found = re.search(r"draw(\d+)_(\w+)", words)
    if found is None:
        return ""
    differs = "; d(q1) is by how much q1 differs" if "d(q" in words else ""
    scale = found[2].partition("_to_")[0].replace("_", "/")
    return f" ({found[0]} is draw number {found[1]}, of scale {scale}{differs})"


def coupled(
    program: Program,
    *,
    inputs: int,
    epsilon: Number,
    neighbours: str = "each",
    sensitivity: Number = 1,
    grid: Number = 1,
    bound: Number = 1 << 40,
    values: Sequence[Number] | None = None,
) -> Coupling:
    """A proof that a program in binary64 is private, or `NotCertified` at the step that fails.

    `program(run, inputs)` is ordinary code on floats: it draws discrete Laplace noise on the grid
    by `run.laplace(scale)` or a uniform of (0, 1) by `run.uniform()`, adds, subtracts, compares,
    chooses by `run.largest(values)` (the first of equal ones) and puts out by `run.emit(value)`.
    Noise by a logarithm is `run.sign() * (scale * run.ln(run.uniform()))`; it is rounded, by itself
    or with a sum of inputs, by `run.round_to(noise, step)`, and may then be clamped by
    `run.clamp(value, low, high)`, as inputs may before. It
    is screened, as code for `certified_code` is, and followed for this number of inputs, a list of
    floats; `Coupling.release` runs it. Neighbours differ in "each" input by at most the
    sensitivity, in "one" input, or in each the "same" way. `values` lists what inputs can be, where
    draws are uniform.

    Theorem  `Coupling`
    Checked  tests/verify/test_coupling.py

    >>> def noisy_max(run, queries):
    ...     run.emit(run.largest([query + run.laplace(2) for query in queries]))
    >>> found = coupled(noisy_max, inputs=3, epsilon=1)
    >>> found.cost, len(found.leaves), found.delta < 10**-300
    (Fraction(1, 1), 3, True)
    >>> def geometric(run, queries):
    ...     noise = run.sign() * (1.0 * run.ln(run.uniform()))
    ...     run.emit(queries[0] + run.round_to(noise, 1))
    >>> float(round((coupled(geometric, inputs=1, epsilon="1.1").cost - 1) * 2**53))
    2220.0
    >>> coupled(noisy_max, inputs=3, epsilon="1/2")
    Traceback (most recent call last):
        ...
    lastbit.errors.NotCertified: SEQ: where the program puts out (0) the cheapest coupling ...
    """
    asked, plain = positive(epsilon, "epsilon"), plain_function(program)
    other = screened(plain, methods=_METHODS).libraries - _LIBRARIES
    if other:
        problem = f"calls functions of {', '.join(sorted(other))}"
        raise _refused(problem, "use + - and comparisons on inputs and draws")
    if neighbours not in _WAYS:
        problem, remedy = "are unknown", 'pass "each", "one" or "same"'
        raise InvalidParameter("neighbours", problem=problem, remedy=remedy)
    input_names = tuple(f"q{k + 1}" for k in range(whole(inputs, "inputs", least=1)))
    leaves: list[Leaf] = []
    tree, draws = _followed(program, input_names, leaves)
    finite = None if values is None else tuple(rational(value, "values") for value in values)
    found = Coupling(
        program=tree,
        draws=tuple(draws),
        leaves=tuple(leaves),
        shifts=(),
        inputs=input_names,
        values=finite,
        neighbours=neighbours,
        sensitivity=positive(sensitivity, "sensitivity"),
        grid=positive(grid, "grid"),
        bound=positive(bound, "bound"),
        epsilon=asked,
        cost=asked,
        code=_named(program),
        function=program,
    )
    if any(draw["law"] == "sign" for draw in draws):
        raise _refused("draws a sign and does not round it", "use it in noise: run.round_to")
    uniform = [draw["law"] == "uniform" for draw in draws]
    if any(uniform) != (finite is not None) or (any(uniform) and not all(uniform)):
        problem = "mixes uniform draws with others, or has them without a list of values"
        remedy = "pass values= with uniform draws that are compared; round logarithms of others"
        raise _refused(problem, remedy)
    if finite is not None:
        _check_laws(found)
    else:
        excess = {name: loss["excess"] for name, loss in found.losses.items()}
        ways = product(_WAYS[neighbours], leaves)
        search = [_Search(found, excess, leaf, way) for way, leaf in ways]
        shifts = tuple(one.shifts() for one in search)
        found = replace(found, shifts=shifts, cost=max(one.best for one in search))
    found.certificate()  # the checker is asked before any figure is seen
    return found


def _named(program: Program) -> dict[str, str] | None:
    """The code by its name, where another process could import it."""
    module = sys.modules.get(getattr(program, "__module__", ""))
    name = getattr(program, "__name__", "")
    if module is None or module.__name__ == "__main__" or vars(module).get(name) is not program:
        return None
    if getattr(module, "__file__", None) is None:
        return None
    return {"function": f"{module.__name__}:{name}", **running_code(program)}


# ---------------------------------------------------------------- finding shifts


@dataclass(slots=True)
class _Rule:
    """What must hold of a sum: that it may not fall, not rise, or not move."""

    form: Form
    way: int
    words: str
    draws: frozenset[str]


class _Search:
    """Shifts for one end, the cheapest of those tried: whole multiples, or what makes sums stay."""

    def __init__(
        self, found: Coupling, excess: Mapping[str, Fraction], leaf: Leaf, way: int
    ) -> None:
        self.leaf, self.way = leaf, way
        self.apart, self.together = found.sensitivity, found.neighbours == "one"
        released = [draw for draw in found.draws if draw.get("value") is not None]
        self.values = {draw["name"]: value_form(draw) for draw in released}
        self.all_scales = {draw["name"]: scale_of(draw) for draw in found.draws}
        self.scales = {n: scale for n, scale in self.all_scales.items() if n not in self.values}
        self.excess = excess
        self.grid = found.grid
        self.steps = {draw["name"]: Fraction(draw.get("step", found.grid)) for draw in found.draws}
        self.inputs, self.epsilon = frozenset(found.inputs), found.epsilon
        self.rules: list[_Rule] = []
        for one in leaf.asked:
            way = 1 if one.relation in (">", ">=") else -1
            words = f"CASE: {one} may turn out otherwise in the second run"
            self._add_rule(Subtract(one.left, one.right), way, words)
        for shown in leaf.emitted:
            self._add_rule(shown, 0, f"EMIT: {text(shown)} may differ in the second run")
        self.order = [n for n in self.scales if any(n in rule.draws for rule in self.rules)]
        # EMIT leaves one choice only: draws that are put out come first, in their order
        put_out = {n for rule in self.rules if rule.way == 0 for n in rule.draws}
        self.order.sort(key=lambda name: name not in put_out)
        told = {n for rule in self.rules for n in rule.form}
        self.values = {name: form for name, form in self.values.items() if name in told}
        self.base = sum(
            (self._release_cost(n, self._size(f)) for n, f in self.values.items()), _ZERO
        )
        self.best = self.epsilon
        self.found: Mapping[str, Form] | None = None
        self.stuck: tuple[int, str] = (-1, "")
        self.tries = 0

    def _add_rule(self, expression: Expression, way: int, words: str) -> None:
        form = _form(expression)
        if not set(form) <= {"", *self.inputs, *self.all_scales}:
            problem = "compares or puts out a uniform or a sign of noise that is rounded"
            raise _refused(problem, "draw another one for that")
        self.rules.append(_Rule(form, way, words, frozenset(form) & self.scales.keys()))

    def _size(self, value: Form) -> Fraction:
        """By how much a sum of inputs differs at most."""
        form = {name: share for name, share in value.items() if name}
        return max(self._top(form), self._top(_added({}, form, -1)))

    def _release_cost(self, name: str, apart: Fraction) -> Fraction:
        """RELEASE: a sum that is rounded with its noise stays, at this cost."""
        return apart / self.all_scales[name] + self.excess[name] if apart else _ZERO

    def _shift_cost(self, name: str, moved: Fraction) -> Fraction:
        return moved / self.scales[name] + self.excess.get(name, _ZERO) if moved else _ZERO

    def shifts(self) -> Mapping[str, Form]:
        first = _ZERO if self.together else self.base
        self._extend({}, 0, first)
        if self.found is not None:
            return self.found
        self.best, self.tries = Fraction(10**9), 0  # what it would cost, to say what is wrong
        self._extend({}, 0, first)
        if self.found is None:
            words = f"{self.stuck[1]}, where the program {self.leaf}"
            raise NotCertified(
                f"{words}: no shift of the draws that was tried keeps it{_draw_in(words)}; add "
                "noise there, or put out less"
            )
        moves = [f"{n} moves by {_spelled(form)}" for n, form in self.found.items() if form]
        moves += [f"{n} stays while its value moves" for n in self.values]
        words = f"{', '.join(moves)}{_draw_in(' '.join(moves))}"
        raise NotCertified(
            f"SEQ: where the program {self.leaf} the cheapest coupling found costs "
            f"{_amount(self.best)}, more than {self.epsilon}: {words}. Draw from larger scales; "
            f"else ask for a larger epsilon"
        )

    def _extend(self, done: dict[str, Form], depth: int, cost: Fraction = _ZERO) -> None:
        self.tries += 1
        if self.found is None:
            too_dear = cost > self.best
        else:  # a proof that costs no more than epsilon will do
            too_dear = self.best <= self.epsilon or cost >= self.best
        if too_dear or self.tries > _MOST_TRIES:
            return
        known = frozenset(self.order[:depth])
        for rule in self.rules:
            new = depth == 0 or self.order[depth - 1] in rule.draws
            if new and rule.draws <= known and not self._holds(rule, done):
                if depth >= self.stuck[0]:
                    self.stuck = (depth, rule.words)
                return
        if depth == len(self.order):
            cost = max(cost, self._cost(done)) if self.together else cost
            if cost > self.best:
                return
            self.best, self.found = cost, dict(done)
            return
        name = self.order[depth]
        for most, shift in self._candidates(name, done, known):
            more = {**done, name: shift}
            dearer = self._cost(more) if self.together else cost + self._shift_cost(name, most)
            self._extend(more, depth + 1, dearer)

    def _candidates(
        self, name: str, done: Mapping[str, Form], known: frozenset[str]
    ) -> list[tuple[Fraction, Form]]:
        """Shifts of a draw, the least first, each with the most that it can be."""
        forms: list[Form] = [{"": k * self.apart} if k else {} for k in (0, 1, -1, 2, -2)]
        for rule in self.rules:
            if name in rule.draws and rule.draws - {name} <= known:
                rest = self._moved({n: x for n, x in rule.form.items() if n != name}, done)
                still = _added({}, rest, -1 / rule.form[name])
                others = (0,) if rule.way == 0 else (0, 1, -1)
                forms += [_added(still, {"": Fraction(k) * self.apart}) for k in others]
        unique = {tuple(sorted(form.items())): form for form in forms}
        whole_ = [f for f in unique.values() if all(x.denominator == 1 for n, x in f.items() if n)]
        fine = [f for f in whole_ if self._is_on_step(name, f)]
        found = [(max(self._top(f), self._top(_added({}, f, -1))), f) for f in fine]
        return sorted(found, key=lambda one: one[0])

    def _is_on_step(self, name: str, shift: Form) -> bool:
        """Whether a shift leads from multiples of the draw's step to others, for all inputs."""
        unit = self.steps[name]
        if unit == self.grid:
            return True
        return all((x * (self.grid if n else 1) / unit).denominator == 1 for n, x in shift.items())

    def _moved(self, form: Form, done: Mapping[str, Form]) -> Form:
        total = {name: share for name, share in form.items() if name in self.inputs}
        for name, share in form.items():
            total = _added(total, done.get(name, {}), share)
        return total

    def _holds(self, rule: _Rule, done: Mapping[str, Form]) -> bool:
        moved = self._moved(rule.form, done)
        if rule.way == 0:
            return not moved
        return self._top(_added({}, moved, -rule.way)) <= 0

    def _top(self, form: Form) -> Fraction:
        """The greatest value over all differences of inputs."""
        ways = (self.way,) if self.way else (1, -1)
        shares = [max([way * share for way in ways] + [_ZERO]) for n, share in form.items() if n]
        wide = max(shares, default=_ZERO) if self.together else sum(shares, _ZERO)
        return form.get("", _ZERO) + self.apart * wide

    def _cost(self, done: Mapping[str, Form]) -> Fraction:
        """The cost where one input differs, of the worst one; where each does, costs add up."""
        costs = []
        for key, side in product(self.inputs, (1, -1)):
            at = side * self.apart
            moved = {n: abs(s.get("", _ZERO) + at * s.get(key, _ZERO)) for n, s in done.items()}
            cost = sum((self._shift_cost(n, most) for n, most in moved.items()), _ZERO)
            # nearer inputs shift a draw that the farthest leave alone
            missed = (n for n, most in moved.items() if not most and done[n].get(key))
            cost += sum((self.excess.get(n, _ZERO) for n in missed), _ZERO)
            for name, form in self.values.items():
                cost += self._release_cost(name, abs(at * form.get(key, _ZERO)))
            costs.append(cost)
        return max(costs, default=_ZERO)


# ---------------------------------------------------------------- uniform draws


def _check_laws(found: Coupling) -> None:
    """Refuse unless the exact laws of all neighbours differ by at most epsilon."""
    assert found.values is not None
    laws = {
        place: _law(found, dict(zip(found.inputs, place, strict=True)))
        for place in product(found.values, repeat=len(found.inputs))
    }
    for one, two in product(laws, repeat=2):
        differ = sum(a != b for a, b in zip(one, two, strict=True))
        if not differ or (found.neighbours == "one" and differ > 1):
            continue
        for output, share in laws[one].items():
            other = laws[two].get(output, _ZERO)
            words = ", ".join(map(str, output))
            if share and not other:
                raise NotCertified(
                    f"UNIFORM: ({words}) has probability {share} in one run and 0 in the other; "
                    f"let every input lead to every output"
                )
            with working_precision(_PRECISION):
                loss = arb_of(share / other).log() if share else arb_of(0)
                if ends(loss)[1] > found.epsilon:
                    raise NotCertified(
                        f"UNIFORM: ({words}) has probability {share} in one run and {other} in "
                        f"the other. Tell the truth less often; else ask for a larger epsilon"
                    )


def _law(found: Coupling, here: Mapping[str, Fraction]) -> dict[tuple[Fraction, ...], Fraction]:
    """The exact law of what is put out, for inputs of these values."""
    law: dict[tuple[Fraction, ...], Fraction] = {}
    for leaf in found.leaves:
        ranges = {draw["name"]: (_ZERO, Fraction(1)) for draw in found.draws}
        share = Fraction(1)
        for one in leaf.asked:
            form = _form(Subtract(one.left, one.right))
            used = [name for name in form if name in ranges]
            rest = sum(
                (x * here.get(n, Fraction(1)) for n, x in form.items() if n not in used), _ZERO
            )
            if not used:
                signs = {">=": rest >= 0, ">": rest > 0, "<": rest < 0, "<=": rest <= 0}
                share *= int(signs[one.relation])
                continue
            if len(used) != 1 or abs(form[used[0]]) != 1:
                problem = "compares a uniform with more than a number"
                raise _refused(problem, "write u < number")
            name, at = used[0], -rest / form[used[0]]
            below = (one.relation in ("<", "<=")) == (form[name] > 0)
            low, high = ranges[name]
            ranges[name] = (low, min(high, at)) if below else (max(low, at), high)
        for low, high in ranges.values():
            share *= max(high - low, _ZERO)
        forms = (_form(one) for one in leaf.emitted)
        output = tuple(
            sum((x * here.get(n, Fraction(1)) for n, x in form.items()), _ZERO) for form in forms
        )
        law[output] = law.get(output, _ZERO) + share
    return law
