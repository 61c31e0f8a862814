"""Checks certificates of kind "coupling": two runs of a program that draws and compares.

The claim has the program as a tree: comparisons of sums, choices of a largest, and leaves with what
is put out; its draws; how inputs of neighbours differ; and epsilon and delta. If it names code, the
code is imported, screened as all code is (`code.py`: but for the methods of what it draws from),
followed here on marks, and must have that tree; then it is run on floats, and must put out what the
tree says. The body gives, for each leaf and each draw, by how much the draw of the second run is
shifted against that of the first.

* EXACT. Inputs, constants and draws are multiples of the grid, a power of two, and no sum exceeds
  2**53 of it, as long as no draw exceeds the cap: so binary64 computes every sum exactly, and
  compares as real numbers do. That a draw exceeds the cap has the probability that delta pays for.
* LAPLACE. A draw has P(k grid) ~ exp(-|k| grid/scale). Shifting it by s, a multiple of the grid
  that depends on the inputs and the leaf alone, is one to one and costs at most |s|/scale.
* CASE. A comparison that leads to the leaf in the first run must do so in the second: what it
  compares moves, by the shifts and the inputs, only the way that it holds. CHOICE: the same for a
  largest, the first of equal ones.
* EMIT. What the leaf puts out does not move at all, and is never -0.0, which would tell a zero of
  one input from that of another: a sum is -0.0 only if both parts are, a difference only if its
  first part is.
* SEQ. The costs of all draws add up, for inputs that differ most: "each" by the sensitivity, "one"
  of them, or all the "same" way. The first two are the same for either run as the first; of the
  third the body has shifts for inputs of the second run that are above, and then for those below.

So P(first run ends in the leaf with output o) <= exp(cost) P(second run does); summed over the
leaves that put out o, this is the claim (Barthe and others 2016: pointwise coupling).

* DRAW, RELEASE. Noise by a logarithm that is rounded is a draw, shifted at a further cost; a sum of
  inputs that is rounded with its noise is one that stays as it is (`rounded_draws.py`).

* UNIFORM. Where all draws are uniform on (0, 1), themselves compared with numbers (a sum with a
  draw would be rounded), and inputs have finitely many values for which every step of every sum is
  a float, P(u < p) = p gives both laws, and their ratios are compared.

A mark knows + and -, negation and comparisons; products, quotients and logarithms only until they
are rounded, which makes a draw of them. It refuses all else: to be equal, a truth value, an
index, a text. Screened code can do nothing else to a float without an error (`code.py`); lists of
numbers it compares by identity first, which is equality for floats that are not NaN. So the code
does with floats what it does with marks, and the runs on floats only try that.

Believed: the draws are exact and independent; Python does what its instructions say.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from types import MappingProxyType
from typing import Any, TypeAlias

from .code import imported, running_code, screened
from .intervals import is_power_of_two
from .loss_rules import of, require_same
from .numbers import Json, Rejected, exp_bounds, ln_bounds, number, require
from .rounded_draws import MOST_SHIFT, chain_in, rounded_draw

Form: TypeAlias = dict[str, Fraction]
"""A sum of multiples of inputs and draws, and of 1 under the name of nothing."""

_CLAIM = frozenset({
    "code", "tree", "draws", "inputs", "values", "neighbours", "sensitivity", "grid", "bound",
    "epsilon", "delta",
})  # fmt: skip
_WAYS: Mapping[str, tuple[int, ...]] = MappingProxyType(
    {"each": (0,), "one": (0,), "same": (1, -1)}  # 0: inputs may differ either way
)
_METHODS = frozenset({"laplace", "uniform", "sign", "ln", "round_to", "clamp", "emit", "largest"})
_LIBRARIES = ("built-in builtins.", "built-in math.", "built-in fractions.", "function ")
_MOST_LEAVES = 1 << 12
_FARTHEST = Fraction(1000)
_TRIED = 64


def check_coupling(claim: Json, body: Json) -> None:
    """Reject unless the body proves the claim, and the code that it names has this tree."""
    check_coupling_steps(claim, body)
    if claim["code"] is None:
        return
    name, stated = claim["code"]["function"], claim["code"]
    function = imported(name)
    here = {"function": name, **running_code(function)}
    require(here == stated, f"the code is not the one that was certified: {name} changed")
    for one, reads in screened(function, _METHODS).items():
        for read, text in reads.items():
            value = not text.startswith(("built-in", "function", "lastbit"))
            fine = value or text.startswith(_LIBRARIES)
            require(fine, f"{one.__name__} calls {read}, which may not know marks")
    try:
        tree, draws = followed(function, list(claim["inputs"]))
    except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as failure:
        problem = f"the function {name} cannot be followed ({type(failure).__name__})"
        raise Rejected(f"{problem}; verify it again") from failure
    require(tree == claim["tree"] and draws == claim["draws"], "the code has another program")
    _check_plays(function, claim)


def check_coupling_steps(claim: Json, body: Json) -> None:
    """Reject unless the body proves the claim about the tree; no code is run."""
    require(set(claim) == _CLAIM, "a part is missing or unknown")
    draws = {draw["name"]: draw for draw in claim["draws"]}
    names = list(claim["inputs"])
    require(isinstance(claim["inputs"], list), "the inputs are not listed")
    distinct = len({*draws, *names}) == len(claim["draws"]) + len(names)
    require(distinct and "" not in {*draws, *names}, "two inputs or draws have one name")
    leaves = list(_leaves(claim["tree"]))
    require(len(leaves) <= _MOST_LEAVES, "the program has too many ends")
    require(claim["neighbours"] in _WAYS, "the neighbours are unknown")
    if any(draw["law"] == "uniform" for draw in draws.values()):
        require(set(body) == set(), "there is a part too many")
        _check_uniform(claim, draws, leaves)
    else:
        derived = {"losses"} if any(draw["law"] == "rounded" for draw in draws.values()) else set()
        require(set(body) == {"cap", "shifts"} | derived, "a part is missing or unknown")
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
    scales, rounded = {}, {}
    for name, draw in draws.items():
        if draw["law"] == "rounded":
            rounded[name] = rounded_draw(draw, cap)
            scales[name] = rounded[name].scale
            on = (rounded[name].step / grid).denominator == 1
            require(on, "ROUND: a step is not a multiple of the grid")
            continue
        require(set(draw) == {"name", "law", "scale"}, "a draw has a part too many or too few")
        require(draw["law"] == "laplace", "the law of a draw is unknown")
        scales[name] = number(draw["scale"])
        require(scales[name] > 0, "a scale is not above 0")
    inputs = list(claim["inputs"])
    released: dict[str, Form] = {}
    excess, sizes = dict.fromkeys(draws, Fraction(0)), dict.fromkeys(draws, Fraction(0))
    for name, draw_ in rounded.items():
        if draw_.rows is not None:
            within = dict.fromkeys(inputs, bound)
            form = _exact(draw_.rows, frozenset(inputs), within, grid)
            released[name] = {key: share for key, share in form.items() if key}
            sizes[name] = sum((abs(x) * (bound if n else 1) for n, x in form.items()), Fraction(0))
            if draw_.clamp is not None:  # its ends may lie beyond all sums
                (low, high), most_ = draw_.clamp, sizes[name]
                sizes[name] = max(abs(min(max(end, low), high)) for end in (-most_, most_))
        loss = draw_.loss(cap, sizes[name])
        require_same(body["losses"].get(name), loss)
        excess[name] = of(loss, "excess")
    require(set(body.get("losses", {})) == set(rounded), "a loss is of no draw")
    known = frozenset({*inputs, *draws})
    ends = list(product(_WAYS[claim["neighbours"]], leaves))
    require(len(body["shifts"]) == len(ends), "an end has no shifts")
    epsilon = number(claim["epsilon"])
    together = claim["neighbours"] == "one"

    def most(form: Form, way: int) -> Fraction:
        """The greatest value over all differences of inputs."""
        shares = [
            max(way * share, Fraction(0)) if way else abs(share)
            for name, share in form.items()
            if name
        ]
        wide = max(shares, default=Fraction(0)) if together else sum(shares, Fraction(0))
        return form.get("", Fraction(0)) + apart * wide

    def price(moved: Mapping[str, Fraction]) -> Fraction:
        costs = (size / scales[name] + excess[name] for name, size in moved.items() if size)
        return sum(costs, Fraction(0))

    for (way, leaf), written in zip(ends, body["shifts"], strict=True):
        require(set(written) <= set(draws), "something else than a draw is shifted")
        require(not set(written) & set(released), "a sum that was rounded is shifted")
        shifts = {}
        for name, parts in written.items():
            shift = {key: number(text) for key, text in parts.items()}
            require(set(shift) <= {"", *inputs}, "a shift depends on something else than inputs")
            lattice = (shift.get("", Fraction(0)) / grid).denominator == 1
            whole = all(share.denominator == 1 for key, share in shift.items() if key)
            require(lattice and whole, "a shift is off the grid")
            if name in rounded and shift:
                unit = rounded[name].step
                parts_ = (x * (grid if key else 1) / unit for key, x in shift.items())
                require(all(x.denominator == 1 for x in parts_), "DRAW: a shift is off its step")
            shifts[name] = shift
        reach = {name: max(most(s, way), most(_minus(s), way)) for name, s in shifts.items()}
        # what is neither compared nor put out may be drawn apart in the two runs
        seen = {
            row[1]
            for rows in (*leaf.emitted, *(part for one in leaf.asked for part in one[:2]))
            for row in rows
            if row[0] == "VAR"
        }
        stays = {name: form for name, form in released.items() if name in seen}
        moves = {name: max(most(f, way), most(_minus(f), way)) for name, f in stays.items()}
        far = {**reach, **moves}
        near = all(far[name] <= MOST_SHIFT * scales[name] for name in rounded if name in far)
        require(near, "DRAW: a shift is beyond 32 scales")
        if together:  # the inputs differ in one place: the worst place, and the worst sign
            cost = Fraction(0)
            for key in inputs:
                sizes_at = [
                    {n: abs(_at(form, {key: end})) for n, form in {**shifts, **stays}.items()}
                    for end in (apart, -apart)
                ]
                # nearer inputs shift a draw that the farthest leave alone
                rest = {n for size in sizes_at for n in size if size[n]}
                for size in sizes_at:
                    missed = (excess[n] for n in rest if not size[n])
                    cost = max(cost, price(size) + sum(missed, Fraction(0)))
        else:
            cost = price(far)
        require(cost <= epsilon, "a coupling costs more than epsilon")

        def moved(form: Form, shifts: Mapping[str, Form] = shifts) -> Form:
            total: Form = {name: share for name, share in form.items() if name in inputs}
            for name, share in form.items():
                total = added(total, shifts.get(name, {}), share)
            return total

        limits = dict.fromkeys(inputs, bound)
        for name in draws:
            own = rounded[name].cap(cap) + 2 * rounded[name].step if name in rounded else cap
            limits[name] = sizes[name] + own + reach.get(name, Fraction(0))
        for left, right, relation in leaf.asked:
            one, two = (_exact(rows, known, limits, grid) for rows in (left, right))
            change = moved(added(one, two, -1))
            rises = relation in (">", ">=")
            worst = most(_minus(change), way) if rises else most(change, way)
            require(worst <= 0, "a comparison may turn out otherwise in the second run")
        for rows in leaf.emitted:
            if len(_form(rows, known)) == 1 and rows[0][0] == "CONST":
                continue  # a number of the program itself: it may lie off the grid
            still = not moved(_exact(rows, known, limits, grid))
            require(still, "what is put out may differ in the second run")
            require(_unsigned(rows, inputs), _SIGNED)
    beyond = Fraction(0)
    for name, scale in scales.items():
        if name in rounded:
            beyond += rounded[name].beyond(cap, body["losses"][name])
        else:
            beyond += 2 * exp_bounds(-min(cap / scale, _FARTHEST))[1]
    require(number(claim["delta"]) >= beyond, "delta does not pay for draws beyond the cap")


_SIGNED = "what is put out may be -0.0, or not, by what was put in: write 0.0 + it"


def _unsigned(rows: Any, signed: Sequence[str]) -> bool:
    """Whether a sum is never -0.0, if of its inputs and draws only these can be."""
    found: list[bool] = []
    for rule, *parts in rows:
        match rule:
            case "VAR":
                found.append(parts[0] in signed)
            case "ADD":
                found.append(found[parts[0]] and found[parts[1]])
            case "SUB":
                found.append(found[parts[0]])
            case _:
                found.append(rule == "NEG")
    return not found[-1]


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
    require(len({*numbers}) == len(numbers), "a value is listed twice")
    positive = all(number(claim[name]) > 0 for name in ("grid", "bound", "sensitivity", "epsilon"))
    require(positive, "a number is not above 0")
    inputs = list(claim["inputs"])
    require(len(numbers) ** len(inputs) * len(leaves) <= 1 << 14, "there are too many inputs")
    laws = {}
    for place in product(numbers, repeat=len(inputs)):
        here = dict(zip(inputs, place, strict=True))
        law: dict[tuple[Fraction, ...], Fraction] = {}
        for leaf in leaves:
            share = _share(leaf, here, draws)
            require(all(_unsigned(rows, ()) for rows in leaf.emitted), _SIGNED)
            output = tuple(_float(rows, here) for rows in leaf.emitted)
            if share:
                law[output] = law.get(output, Fraction(0)) + share
        require(sum(law.values()) == 1, "the ends do not have all the probability")
        laws[place] = law
    epsilon = number(claim["epsilon"])
    # of neighbours that are all near to one another the greatest share and the least are compared
    one = claim["neighbours"] == "one"
    near: dict[Any, list[dict[tuple[Fraction, ...], Fraction]]] = {}
    for place, law in laws.items():
        for k in range(len(inputs)) if one else (-1,):
            near.setdefault((k, place[:k], place[k + 1 :]) if one else k, []).append(law)
    for group in near.values():
        for output in {output for law in group for output in law}:
            shares = [law.get(output, Fraction(0)) for law in group]
            least, most = min(shares), max(shares)
            require(least > 0, "an output has the probability 0 in the second run")
            fine = least == most or ln_bounds(most / least)[1] <= epsilon
            require(fine, "the uniforms of an output differ by more than epsilon")
    require(number(claim["delta"]) >= 0, "delta is below 0")


def _float(rows: Any, here: Form) -> Fraction:
    """A sum of inputs of these values, if each of its steps is a float: then none is rounded."""
    found = [_at(form, here) for form in _form(rows, frozenset(here))]
    fine = all(Fraction(float(value)) == value for value in found)
    require(fine, "a sum of inputs and numbers is rounded in floats")
    return found[-1]


def _share(leaf: _Leaf, here: Form, draws: Mapping[str, Any]) -> Fraction:
    """The probability of a leaf: uniforms below and above numbers, and inputs compared."""
    ends = {name: [Fraction(0), Fraction(1)] for name in draws}
    for left, right, relation in leaf.asked:
        bare = [[*map(list, rows)] in [[["VAR", name]] for name in draws] for rows in (left, right)]
        require(not all(bare), "two uniforms are compared")
        if not any(bare):
            one, two = _float(left, here), _float(right, here)
            holds = {">=": one >= two, ">": one > two, "<": one < two, "<=": one <= two}[relation]
            if not holds:
                return Fraction(0)
            continue
        name, at = (left if bare[0] else right)[0][1], _float(right if bare[0] else left, here)
        require(0 <= at <= 1, "a uniform is compared with a number beyond 0 and 1")
        turned = {">": "<", ">=": "<=", "<": ">", "<=": ">="}[relation]
        way = relation if bare[0] else turned
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
        self.count = 0

    def laplace(self, scale: Any) -> _Mark:
        self.draws.append({"law": "laplace", "scale": str(Fraction(scale))})
        return self._named()

    def uniform(self) -> _Mark:
        self.draws.append({"law": "uniform"})
        return self._named()

    def sign(self) -> _Mark:
        self.draws.append({"law": "sign"})
        return self._named()

    def ln(self, x: Any) -> _Mark:
        return _Mark(self, ("LN", _mark(self, x)))

    def round_to(self, x: Any, step: Any) -> _Mark:
        mark = _mark(self, x)
        names = {
            law: [d["name"] for d in self.draws if d["law"] == law] for law in ("sign", "uniform")
        }
        has_value, chain, sign, uniform = chain_in(_rows(mark), names["sign"], names["uniform"])
        self.draws = [draw for draw in self.draws if draw["name"] not in (sign, uniform)]
        value = None
        if has_value:
            _, left, right = mark.step
            part = right if any(row[0] == "LN" for row in _rows(left)) else left
            ends = None
            if part.step[0] == "CLAMP":
                _, part, *ends = part.step
            summed = _rows(part)
            require(not _draws_in(summed), "the code rounds noise together with another draw")
            value = {"rows": summed, "clamp": ends and [str(end) for end in ends]}
        stated = str(Fraction(step))
        self.draws.append({"law": "rounded", "chain": chain, "step": stated, "value": value})
        return self._named()

    def clamp(self, x: Any, low: Any, high: Any) -> Any:
        mark = _mark(self, x)
        require(low <= high, "the code clamps to ends in the wrong order")
        if not _draws_in(_rows(mark)):
            return _Mark(self, ("CLAMP", mark, Fraction(low), Fraction(high)))
        if mark < low:
            return low
        return high if mark > high else mark

    def _named(self) -> _Mark:
        """By its place and its law: on another way through the code it may be from another."""
        self.count += 1
        name = f"draw{self.count}_{law_name(self.draws[-1])}"
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

    def __mul__(self, other: Any) -> _Mark:
        return _Mark(self.run, ("MUL", self, _mark(self.run, other)))

    def __rmul__(self, other: Any) -> _Mark:
        return _Mark(self.run, ("MUL", _mark(self.run, other), self))

    def __truediv__(self, other: Any) -> _Mark:
        below = _mark(self.run, other)  # by 0 a float fails, used or not
        fine = below.step[0] == "CONST" and other != 0
        require(fine, "the code divides by something that may be 0")
        return _Mark(self.run, ("DIV", self, below))

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


def _draws_in(rows: list[list[Any]]) -> bool:
    return any(row[0] == "VAR" and row[1].startswith("draw") for row in rows)


def law_name(draw: Json) -> str:
    """What a draw's name says of its law."""
    if draw["law"] != "rounded":
        return str(draw.get("scale", draw["law"])).replace("/", "_")
    scale = Fraction(1)
    for rule, factor in draw["chain"]:
        scale = scale * number(factor) if rule == "MUL" else scale / number(factor)
    kind = "" if draw["value"] is None else "_sum"
    return f"{scale}_to_{draw['step']}{kind}".replace("/", "_")


def _mark(run: _Run, value: Any) -> _Mark:
    if isinstance(value, _Mark):
        return value
    require(type(value) in (int, float, Fraction), "the code mixes numbers with something else")
    require(value != 0 or math.copysign(1, value) > 0, "the code has -0.0; write 0.0")
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
        told = function(run, [_Mark(run, ("VAR", name)) for name in inputs])
        require(told is None, "the code returns something: what it puts out is what it emits")
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


# ---------------------------------------------------------------- code, run on floats


class _Played:
    """What code draws from when it is run on floats: numbers that were chosen beforehand."""

    def __init__(self, chosen: Iterator[int], grid: Fraction, draws: Any, inputs: Form) -> None:
        self.chosen, self.grid, self.inputs = chosen, grid, inputs
        self.rounded = [draw for draw in draws if draw["law"] == "rounded"]
        self.values: dict[str, Fraction] = {}
        self.emitted: list[Any] = []

    def laplace(self, scale: Any) -> float:
        return self._drawn(str(Fraction(scale)).replace("/", "_"), _wide(self.chosen) * self.grid)

    def uniform(self) -> float:
        least = 1 if self.rounded else 0  # of 0 there is no logarithm
        return self._drawn("uniform", Fraction((next(self.chosen) >> 11) + least, 1 << 53))

    def sign(self) -> float:
        return self._drawn("sign", Fraction(1 - 2 * (next(self.chosen) % 2)))

    def ln(self, x: float) -> float:
        low, high = map(float, ln_bounds(Fraction(x))) if x != 1 else (0.0, 0.0)
        require(low == high, "a logarithm is not decided")
        return low

    def round_to(self, x: float, step: Any) -> float:
        """Rounded; the sum must be what a draw of this place says, of a uniform drawn before."""
        prefix = f"draw{len(self.values) + 1}_"
        for draw in self.rounded:
            fits = draw["name"].startswith(prefix) and number(draw["step"]) == Fraction(step)
            if fits and x in self._sums(draw):
                near = float(step) * round(x / float(step))
                return self._drawn(law_name(draw), Fraction(near))
        raise Rejected("the code rounds another sum on floats than when it is followed")

    def _sums(self, draw: Json) -> Iterator[float]:
        """What the sum of a draw can be, in floats, with noise of either sign."""
        value = 0.0
        if draw["value"] is not None:
            rows, ends = draw["value"]["rows"], draw["value"]["clamp"]
            value = float(_at(_form(rows, frozenset(self.inputs))[-1], self.inputs))
            if ends is not None:
                value = min(max(value, float(number(ends[0]))), float(number(ends[1])))
        for name, drawn in self.values.items():
            if name.endswith("_uniform"):
                noise = self.ln(float(drawn))
                for rule, text in reversed(draw["chain"]):
                    factor = float(number(text))
                    noise = noise * factor if rule == "MUL" else noise / factor
                yield from (value + noise, value - noise)

    def clamp(self, x: float, low: Any, high: Any) -> float:
        return min(max(x, float(low)), float(high))

    def _drawn(self, law: str, value: Fraction) -> float:
        self.values[f"draw{len(self.values) + 1}_{law}"] = value
        return float(value)

    def emit(self, value: Any) -> None:
        self.emitted.append(value)

    def largest(self, values: Sequence[Any]) -> int:
        return max(range(len(values)), key=lambda k: (values[k], -k))


def _wide(chosen: Iterator[int]) -> int:
    """A whole number of any size up to 2**40, of either sign, more often a small one."""
    size, number_ = next(chosen) % 41, next(chosen)
    return (number_ >> 1) % (1 << size) * (1 if number_ % 2 else -1)


def _check_plays(function: Callable[..., Any], claim: Json) -> None:
    """Reject code that puts out something else on floats than its tree does on fractions."""

    def numbers(block: bytes) -> Iterator[int]:
        while True:
            block = hashlib.sha256(block).digest()
            yield from (int.from_bytes(block[k : k + 8], "big") for k in range(0, 32, 8))

    chosen = numbers(json.dumps([claim["code"], claim["inputs"], claim["draws"]]).encode())
    grid = number(claim["grid"])
    most = int(number(claim["bound"]) / grid)
    listed = None if claim["values"] is None else [number(value) for value in claim["values"]]
    for _ in range(_TRIED):
        inputs = [
            listed[next(chosen) % len(listed)]
            if listed
            else max(-most, min(_wide(chosen), most)) * grid
            for _ in claim["inputs"]
        ]
        named = dict(zip(claim["inputs"], inputs, strict=True))
        run = _Played(chosen, grid, claim["draws"], named)
        told = function(run, [float(value) for value in inputs])
        wanted = _put_out(claim["tree"], run.values | named)
        same = [type(x) in (int, float, Fraction) and Fraction(x) for x in run.emitted] == wanted
        fine = (
            told is None
            and same
            and not any(x == 0 and math.copysign(1, x) < 0 for x in run.emitted)
        )
        require(fine, "the code puts out something else on floats than when it is followed")


def _put_out(tree: Any, here: Form) -> list[Fraction]:
    """What a tree puts out for these inputs and draws."""

    def value(rows: Any) -> Fraction:
        return _at(_form(rows, frozenset(here))[-1], here)

    while "emitted" not in tree:
        if "if" in tree:
            left, relation, right = tree["if"]
            one, two = value(left), value(right)
            tree = tree["then" if one > two or (relation == ">=" and one == two) else "else"]
        else:
            values = [value(rows) for rows in tree["largest"]]
            tree = tree["cases"][values.index(max(values))]
    return [value(rows) for rows in tree["emitted"]]
