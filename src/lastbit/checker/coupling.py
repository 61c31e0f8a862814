"""Checks certificates of kind "coupling": two runs of a program that draws and compares.

The claim has the program as a tree: comparisons of sums, choices of a largest, and leaves with what
is put out; its draws; how inputs of neighbours differ; and epsilon and delta. If it names code, the
code is imported and followed here, on marks, and must have that tree. The body gives, for each leaf
and each draw, by how much the draw of the second run is shifted against that of the first.

* EXACT. Inputs, constants and draws are multiples of the grid, a power of two, and no sum exceeds
  2**53 of it, as long as no draw exceeds the cap: so binary64 computes every sum exactly, and
  compares as real numbers do. That a draw exceeds the cap has the probability that delta pays for.
* LAPLACE. A draw has P(k grid) ~ exp(-k grid/scale). Shifting it by s, a multiple of the grid that
  depends on the inputs and the leaf alone, is one to one and costs at most |s|/scale.
* CASE. A comparison that leads to the leaf in the first run must do so in the second: what it
  compares moves, by the shifts and the inputs, only the way that it holds. CHOICE: the same for a
  largest, the first of equal ones.
* EMIT. What the leaf puts out does not move at all.
* SEQ. The costs of all draws add up, for inputs that differ most: "each" by the sensitivity, or
  "one", which all together differ by it. Both are the same for either run as the first.

So P(first run ends in the leaf with output o) <= exp(cost) P(second run does); summed over the
leaves that put out o, this is the claim (Barthe and others 2016: pointwise coupling).

* UNIFORM. Where all draws are uniform on (0, 1), compared with numbers alone, and inputs have
  finitely many values, P(u < p) = p gives both laws, and their ratios are compared.

Believed: the draws are exact and independent; code does with floats what it does with marks.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any, TypeAlias

from .code import running_code
from .numbers import Json, Rejected, exp_bounds, is_power_of_two, ln_bounds, number, require

Form: TypeAlias = dict[str, Fraction]
"""A sum of multiples of inputs and draws, and of 1 under the name of nothing."""

_CLAIM = frozenset({
    "code", "tree", "draws", "inputs", "values", "neighbours", "sensitivity", "grid", "bound",
    "epsilon", "delta",
})  # fmt: skip
_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)
_MOST_LEAVES = 1 << 12
_FARTHEST = Fraction(1000)


def check_coupling(claim: Json, body: Json) -> None:
    """Reject unless the body proves the claim, and the code that it names has this tree."""
    check_coupling_steps(claim, body)
    if claim["code"] is None:
        return
    name, stated = claim["code"]["function"], claim["code"]
    require(isinstance(name, str) and bool(_NAME.fullmatch(name)), "the function has no name")
    module, _, attribute = name.partition(":")
    try:
        function = vars(importlib.import_module(module))[attribute]
    except (Exception, SystemExit) as failure:  # whatever somebody's module raises
        raise Rejected(f"the function {name} cannot be imported; verify it again") from failure
    here = {"function": name, **running_code(function)}
    require(here == stated, f"the code is not the one that was certified: {name} changed")
    try:
        tree, draws = followed(function, list(claim["inputs"]))
    except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as failure:
        problem = f"the function {name} cannot be followed ({type(failure).__name__})"
        raise Rejected(f"{problem}; verify it again") from failure
    require(tree == claim["tree"] and draws == claim["draws"], "the code has another program")


def check_coupling_steps(claim: Json, body: Json) -> None:
    """Reject unless the body proves the claim about the tree; no code is run."""
    require(set(claim) == _CLAIM, "a part is missing or unknown")
    draws = {draw["name"]: draw for draw in claim["draws"]}
    names = list(claim["inputs"])
    distinct = len({*draws, *names}) == len(claim["draws"]) + len(names)
    require(distinct and "" not in {*draws, *names}, "two inputs or draws have one name")
    leaves = list(_leaves(claim["tree"]))
    require(len(leaves) <= _MOST_LEAVES, "the program has too many ends")
    require(claim["neighbours"] in ("each", "one"), "the neighbours are unknown")
    if any(draw["law"] == "uniform" for draw in draws.values()):
        require(set(body) == set(), "there is a part too many")
        _check_uniform(claim, draws, leaves)
    else:
        require(set(body) == {"cap", "shifts"}, "a part is missing or unknown")
        _check_shifts(claim, body, draws, leaves)


# ---------------------------------------------------------------- the tree


@dataclass(frozen=True)
class _Leaf:
    """Where a run ends: comparisons that led there, whether each held, and what is put out."""

    asked: tuple[tuple[Any, Any, str], ...]
    emitted: tuple[Any, ...]


def _leaves(tree: Any, asked: tuple[tuple[Any, Any, str], ...] = ()) -> Iterator[_Leaf]:
    require(isinstance(tree, Mapping), "a part of the program is not a tree")
    match sorted(tree):
        case ["emitted"]:
            require(isinstance(tree["emitted"], list), "an end puts out nothing that is listed")
            yield _Leaf(asked, tuple(tree["emitted"]))
        case ["else", "if", "then"]:
            left, relation, right = tree["if"]
            require(relation in (">=", ">"), "a comparison is unknown")
            other = {">=": "<", ">": "<="}[relation]
            yield from _leaves(tree["then"], (*asked, (left, right, relation)))
            yield from _leaves(tree["else"], (*asked, (left, right, other)))
        case ["cases", "largest"]:
            values, cases = tree["largest"], tree["cases"]
            require(len(values) == len(cases) > 0, "a choice has other cases than values")
            for k, case in enumerate(cases):
                rest = [j for j in range(len(values)) if j != k]
                said = [(values[k], values[j], ">" if j < k else ">=") for j in rest]
                yield from _leaves(case, (*asked, *said))
        case _:
            raise Rejected("a part of the program is unknown")


def _form(rows: Any, known: frozenset[str]) -> list[Form]:
    """Every step of a sum, as a form; the last is the sum."""
    require(isinstance(rows, list) and bool(rows), "a sum has no steps")
    found: list[Form] = []

    def at(place: Any) -> Form:
        require(type(place) is int and 0 <= place < len(found), "a step uses one not before it")
        return found[int(place)]

    for row in rows:
        match list(row):
            case ["VAR", str(name)]:
                require(name in known, "a sum has something that is neither input nor draw")
                found.append({name: Fraction(1)})
            case ["CONST", value]:
                found.append({"": number(value)})
            case ["NEG", one]:
                found.append({name: -share for name, share in at(one).items()})
            case [("ADD" | "SUB") as rule, one, two]:
                found.append(added(at(one), at(two), 1 if rule == "ADD" else -1))
            case _:
                raise Rejected("a step is neither a sum nor a difference")
    return found


def added(one: Form, two: Form, factor: Fraction | int = 1) -> Form:
    """A sum of forms, the second times a factor."""
    names = {*one, *two}
    zero = Fraction(0)
    both = {name: one.get(name, zero) + factor * two.get(name, zero) for name in names}
    return {name: share for name, share in both.items() if share}


# ---------------------------------------------------------------- shifted draws


def _check_shifts(claim: Json, body: Json, draws: Mapping[str, Any], leaves: list[_Leaf]) -> None:
    grid, bound, cap = number(claim["grid"]), number(claim["bound"]), number(body["cap"])
    apart = number(claim["sensitivity"])
    require(is_power_of_two(grid) and Fraction(1, 1 << 500) <= grid <= 1 << 500, "a grid is absurd")
    lengths = (bound, cap, apart)
    require(all((x / grid).denominator == 1 and x > 0 for x in lengths), "a length is off the grid")
    require(claim["values"] is None, "inputs of finitely many values need uniform draws")
    scales = {}
    for name, draw in draws.items():
        require(set(draw) == {"name", "law", "scale"}, "a draw has a part too many or too few")
        require(draw["law"] == "laplace", "the law of a draw is unknown")
        scales[name] = number(draw["scale"])
        require(scales[name] > 0, "a scale is not above 0")
    inputs = list(claim["inputs"])
    known = frozenset({*inputs, *draws})
    require(len(body["shifts"]) == len(leaves), "an end has no shifts")
    epsilon = number(claim["epsilon"])
    together = claim["neighbours"] == "one"

    def most(form: Form) -> Fraction:
        """The greatest value over all differences of inputs."""
        shares = [abs(share) for name, share in form.items() if name]
        wide = max(shares, default=Fraction(0)) if together else sum(shares, Fraction(0))
        return form.get("", Fraction(0)) + apart * wide

    for leaf, written in zip(leaves, body["shifts"], strict=True):
        require(set(written) <= set(draws), "something else than a draw is shifted")
        shifts = {}
        for name, parts in written.items():
            shift = {key: number(text) for key, text in parts.items()}
            require(set(shift) <= {"", *inputs}, "a shift depends on something else than inputs")
            lattice = (shift.get("", Fraction(0)) / grid).denominator == 1
            whole = all(share.denominator == 1 for key, share in shift.items() if key)
            require(lattice and whole, "a shift is off the grid")
            shifts[name] = shift
        reach = {name: max(most(s), most(_minus(s))) for name, s in shifts.items()}
        if together:  # the inputs differ in one place: the worst place, and the worst sign
            ends = [{key: side * apart} for key in inputs for side in (1, -1)]
            costs = [
                sum((abs(_at(s, end)) / scales[name] for name, s in shifts.items()), Fraction(0))
                for end in ends
            ]
            cost = max(costs, default=Fraction(0))
        else:
            cost = sum((reach[name] / scales[name] for name in shifts), Fraction(0))
        require(cost <= epsilon, "a coupling costs more than epsilon")

        def moved(form: Form, shifts: Mapping[str, Form] = shifts) -> Form:
            total: Form = {name: share for name, share in form.items() if name in inputs}
            for name, share in form.items():
                total = added(total, shifts.get(name, {}), share)
            return total

        limits = dict.fromkeys(inputs, bound)
        limits |= {name: cap + reach.get(name, Fraction(0)) for name in draws}
        for left, right, relation in leaf.asked:
            one, two = (_exact(rows, known, limits, grid) for rows in (left, right))
            change = moved(added(one, two, -1))
            rises = relation in (">", ">=")
            worst = most(_minus(change)) if rises else most(change)
            require(worst <= 0, "a comparison may turn out otherwise in the second run")
        for rows in leaf.emitted:
            if len(_form(rows, known)) == 1 and rows[0][0] == "CONST":
                continue  # a number of the program itself: it may lie off the grid
            still = not moved(_exact(rows, known, limits, grid))
            require(still, "what is put out may differ in the second run")
    beyond = sum(
        (2 * exp_bounds(-min(cap / scale, _FARTHEST))[1] for scale in scales.values()), Fraction(0)
    )
    require(number(claim["delta"]) >= beyond, "delta does not pay for draws beyond the cap")


def _minus(form: Form) -> Form:
    return {name: -share for name, share in form.items()}


def _at(form: Form, place: Form) -> Fraction:
    zero = Fraction(0)
    return sum((share * place.get(name, zero) for name, share in form.items() if name), zero) + (
        form.get("", zero)
    )


def _exact(
    rows: Any, known: frozenset[str], limits: Mapping[str, Fraction], grid: Fraction
) -> Form:
    """The form of a sum, if binary64 computes each step of it exactly."""
    steps = _form(rows, known)
    for row, form in zip(rows, steps, strict=True):
        if row[0] == "CONST":
            on = (number(row[1]) / grid).denominator == 1
            require(on, "a constant is not a multiple of the grid")
        size = sum(
            (abs(share) * (limits[name] if name else 1) for name, share in form.items()),
            Fraction(0),
        )
        require(size <= grid * 2**53, "a sum may be too large to be exact")
    return steps[-1]


# ---------------------------------------------------------------- uniform draws


def _check_uniform(claim: Json, draws: Mapping[str, Any], leaves: list[_Leaf]) -> None:
    """Reject unless the laws for all neighbouring inputs have the ratios claimed."""
    for draw in draws.values():
        fine = set(draw) == {"name", "law"} and draw["law"] == "uniform"
        require(fine, "uniform draws and others are mixed")
    values = claim["values"]
    require(
        isinstance(values, list) and 2 <= len(values) <= 64, "the inputs' values are not listed"
    )
    numbers = [number(value) for value in values]
    inputs = list(claim["inputs"])
    known = frozenset({*inputs, *draws})
    require(len(numbers) ** len(inputs) * len(leaves) <= 1 << 14, "there are too many inputs")
    laws = {}
    for place in product(numbers, repeat=len(inputs)):
        here = dict(zip(inputs, place, strict=True))
        law: dict[tuple[Fraction, ...], Fraction] = {}
        for leaf in leaves:
            share = _share(leaf, here, draws, known)
            forms = [_form(rows, known)[-1] for rows in leaf.emitted]
            require(all(set(f) <= {"", *inputs} for f in forms), "a uniform draw is put out")
            output = tuple(_at(form, here) for form in forms)
            law[output] = law.get(output, Fraction(0)) + share
        require(sum(law.values()) == 1, "the ends do not have all the probability")
        laws[place] = law
    epsilon = number(claim["epsilon"])
    for one, two in product(laws, repeat=2):
        differ = sum(a != b for a, b in zip(one, two, strict=True))
        if not differ or (claim["neighbours"] == "one" and differ > 1):
            continue
        for output, share in laws[one].items():
            other = laws[two].get(output, Fraction(0))
            require(not share or other > 0, "an output has the probability 0 in the second run")
            fine = not share or share <= other or ln_bounds(share / other)[1] <= epsilon
            require(fine, "the uniforms of an output differ by more than epsilon")
    require(number(claim["delta"]) >= 0, "delta is below 0")


def _share(leaf: _Leaf, here: Form, draws: Mapping[str, Any], known: frozenset[str]) -> Fraction:
    """The probability of a leaf: uniforms below and above numbers, and inputs compared."""
    ends = {name: [Fraction(0), Fraction(1)] for name in draws}
    for left, right, relation in leaf.asked:
        form = added(_form(left, known)[-1], _form(right, known)[-1], -1)
        used = [name for name in form if name in draws]
        rest = _at({k: s for k, s in form.items() if k not in draws}, here)
        if not used:
            holds = {">=": rest >= 0, ">": rest > 0, "<": rest < 0, "<=": rest <= 0}[relation]
            if not holds:
                return Fraction(0)
            continue
        (name,) = used
        require(abs(form[name]) == 1, "a uniform is compared with more than a number")
        at = -rest / form[name]  # the number that the uniform is compared with
        require(0 <= at <= 1 and Fraction(float(at)) == at, "a uniform is compared with no float")
        turned = {">": "<", ">=": "<=", "<": ">", "<=": ">="}[relation]
        way = relation if form[name] > 0 else turned
        # of "u < a" and "u >= a" the model knows the share exactly, of others up to one float
        require(way in ("<", ">="), "write a comparison of a uniform as u < number")
        low, high = ends[name]
        ends[name] = [max(low, at), high] if way == ">=" else [low, min(high, at)]
    total = Fraction(1)
    for low, high in ends.values():
        total *= max(high - low, Fraction(0))
    return total


# ---------------------------------------------------------------- code, followed on marks


class _Ask(BaseException):  # code that catches exceptions must not swallow it
    def __init__(self, question: dict[str, Any], answers: Sequence[Any]) -> None:
        super().__init__("asked")
        self.question, self.answers = question, answers


class _Run:
    """What code draws from: it hands out marks, and answers comparisons as it is told."""

    def __init__(self, answers: Sequence[Any]) -> None:
        self.answers, self.draws, self.emitted = list(answers), [], []  # type: ignore[var-annotated]

    def laplace(self, scale: Any) -> _Mark:
        self.draws.append({"law": "laplace", "scale": str(Fraction(scale))})
        return self._named()

    def uniform(self) -> _Mark:
        self.draws.append({"law": "uniform"})
        return self._named()

    def _named(self) -> _Mark:
        """By its place and its law: on another way through the code it may be from another."""
        law = self.draws[-1].get("scale", "uniform").replace("/", "_")
        name = f"draw{len(self.draws)}_{law}"
        self.draws[-1]["name"] = name
        return _Mark(self, ("VAR", name))

    def emit(self, value: Any) -> None:
        self.emitted.append(_rows(_mark(self, value)))

    def largest(self, values: Sequence[Any]) -> int:
        rows = [_rows(_mark(self, value)) for value in values]
        return int(self.ask({"largest": rows}, range(len(rows))))

    def ask(self, question: dict[str, Any], answers: Sequence[Any]) -> Any:
        if not self.answers:
            raise _Ask(question, answers)
        return self.answers.pop(0)


class _Mark:
    """A sum of inputs and draws."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, run: _Run, step: tuple[Any, ...]) -> None:
        self.run, self.step = run, step

    def __add__(self, other: Any) -> _Mark:
        return _Mark(self.run, ("ADD", self, _mark(self.run, other)))

    def __radd__(self, other: Any) -> _Mark:
        return _Mark(self.run, ("ADD", _mark(self.run, other), self))

    def __sub__(self, other: Any) -> _Mark:
        return _Mark(self.run, ("SUB", self, _mark(self.run, other)))

    def __rsub__(self, other: Any) -> _Mark:
        return _Mark(self.run, ("SUB", _mark(self.run, other), self))

    def __neg__(self) -> _Mark:
        return _Mark(self.run, ("NEG", self))

    def _ask(self, left: Any, relation: str, right: Any) -> bool:
        rows = [_rows(_mark(self.run, left)), relation, _rows(_mark(self.run, right))]
        return bool(self.run.ask({"if": rows}, (True, False)))

    def __ge__(self, other: Any) -> bool:
        return self._ask(self, ">=", other)

    def __gt__(self, other: Any) -> bool:
        return self._ask(self, ">", other)

    def __lt__(self, other: Any) -> bool:  # the other is greater
        return self._ask(other, ">", self)

    def __le__(self, other: Any) -> bool:
        return self._ask(other, ">=", self)

    def __eq__(self, other: object) -> bool:
        raise Rejected("the code compares for equality")

    def __bool__(self) -> bool:
        raise Rejected("the code takes a number for a truth value")


def _mark(run: _Run, value: Any) -> _Mark:
    if isinstance(value, _Mark):
        return value
    require(type(value) in (int, float, Fraction), "the code mixes numbers with something else")
    return _Mark(run, ("CONST", str(Fraction(value))))


def _rows(mark: _Mark) -> list[list[Any]]:
    rows: list[list[Any]] = []

    def write(one: _Mark) -> int:
        rule, *parts = one.step
        row = [rule, *(write(part) if isinstance(part, _Mark) else part for part in parts)]
        if row not in rows:  # equal steps are written once
            rows.append(row)
        return rows.index(row)

    write(mark)
    return rows


def followed(
    function: Callable[..., Any], inputs: Sequence[str], before: tuple[Any, ...] = ()
) -> tuple[Any, list[Any]]:
    """The tree of a program, and all draws that some run makes."""
    run = _Run(before)
    try:
        function(run, [_Mark(run, ("VAR", name)) for name in inputs])
    except _Ask as asked:
        found = [followed(function, inputs, (*before, answer)) for answer in asked.answers]
        draws = []
        for _, some in found:
            draws += [draw for draw in some if draw not in draws]
        parts = [tree for tree, _ in found]
        if "if" in asked.question:
            return {**asked.question, "then": parts[0], "else": parts[1]}, draws
        return {**asked.question, "cases": parts}, draws
    return {"emitted": run.emitted}, run.draws
