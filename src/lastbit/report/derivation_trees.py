"""The proof inside a certificate, as a tree of rules that people can open one by one.

Nothing is checked here. A step that several others rest on is shown where it is first needed and
named afterwards, so a tree is never larger than its certificate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from lastbit.report.claims import long, probability_text, short
from lastbit.verify import (
    Derivation,
    FullPrecision,
    Grid,
    Uniform,
    decimal,
    derivation_from_json,
    number,
    table,
    text as expression_text,
)

MOST_ROWS = 200
MOST_CODE = 240
MOST_STEPS = 200

WHY_SNAPPING = MappingProxyType(
    {
        "SNAPPING": "the loss is epsilon plus the worst excess of the eight cases",
        "CLAMP": "clamping brings no two inputs further apart",
        "MONOTONE": "rounding moves every edge of the grid, but for all inputs alike",
        "NEXT": "how far the least uniform that reaches an edge is from the ideal one",
        "ADD": "the noise must reach from the input to the edge, no further than this",
        "DIV": "what the quotient's rounding moves",
        "LN": "what the logarithm's rounding moves",
        "TAIL": "a half-line: the errors count once",
        "CELL": "a cell beside the input: a difference, which amplifies the errors",
        "OVER": "the cell over the input",
        "HALF": "an end cell with the input inside",
        "RANGE": "every edge lies above the least uniform, or delta pays",
    }
)
WHY = MappingProxyType(
    {
        "ROUNDING": "the ideal loss, and what the stray costs at the edges of a cell",
        "STRAY": "the computed sum is at most this far from the ideal one",
        "SIDE": "one half of the noise; beyond the cut every result lies at an end",
        "PIECE": "how far the floats stray on a range of the uniform",
        "QUERY": "how far the query's own floats stray",
        "LOSS": "the greatest log-ratio of two probabilities of one output",
        "LAW": "the uniforms cut into cells, each with one output",
        "WITNESS": "two exact probabilities of one set of outputs",
        "PREIMAGE": "the uniforms that lead into that set, found by bisection",
        "MEAN": "all roundings carried to the result at once",
        "SPLIT": "the box in two; the worse half counts",
    }
)


@dataclass(frozen=True, slots=True)
class Rule:
    """A step: its rule, what it says, the steps it rests on, and a table where numbers are many.

    `why` is the rule in a few words; empty for plain arithmetic.
    """

    name: str
    says: str
    premises: tuple[Rule, ...] = ()
    headings: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    left_out: int = 0
    why: str = ""


def proof_of(certificate: Mapping[str, Any]) -> Rule:
    """The proof of a certificate that `check` accepts."""
    claim, body = certificate["claim"], certificate["body"]
    match certificate["kind"]:
        case "snapping":
            return _snapping(body["derivation"], claim["format"])
        case "rounding":
            return _rounding(claim, body)
        case "law":
            return _law(claim, body)
        case "refutation":
            return _refutation(claim, body)
        case _:
            return error_rule(derivation_from_json(claim["expression"], body))


def _rule(name: str, says: str, premises: tuple[Rule, ...] = (), **table: Any) -> Rule:
    return Rule(name, says, premises, why=WHY.get(name, ""), **table)


# ---------------------------------------------------------------- float code


def error_rule(derivation: Derivation) -> Rule:
    """The rules of an error bound; what is shared is shown once."""
    spelled = _spelled(derivation)
    seen: set[int] = set()
    done: dict[int, Rule] = {}
    stack: list[tuple[Derivation, bool]] = [(derivation, False)]
    while stack:
        node, ready = stack.pop()
        if ready:
            # a premise that was shown before is only named
            premises = tuple(
                done.pop(id(p)) if id(p) in done else _rule(p.rule, f"{spelled(p)}, as above")
                for p in node.shown_premises
            )
            says = f"{spelled(node)} ⇓ {node.conclusion}{_where(node)}"
            done[id(node)] = _rule(node.rule, says, premises)
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack.extend((premise, False) for premise in reversed(node.shown_premises))
    return done[id(derivation)]


def _spelled(derivation: Derivation) -> Callable[[Derivation], str]:
    """How expressions are written: in full, or by number where there are very many."""
    parts = table(derivation.expression).expressions
    numbers = {id(part): number for number, part in enumerate(parts)}

    def spelled(node: Derivation) -> str:
        if len(parts) > MOST_STEPS:
            return f"step {numbers[id(node.expression)]}"
        text = expression_text(node.expression)
        return text if len(text) <= MOST_CODE else text[: MOST_CODE - 1] + "…"

    return spelled


def _where(node: Derivation) -> str:
    if node.rule != "SPLIT":
        return ""
    ends = (f"{n} in [{short(a, up=False)}, {short(b, up=True)}]" for n, a, b in node.box)
    return f", over {', '.join(ends)}"


# ---------------------------------------------------------------- snapping


def _snapping(step: Mapping[str, Any], form: str) -> Rule:
    values = {name: number(text) for name, text in step["values"].items()}
    unit = Fraction(1, 1 << {"binary16": 11, "binary32": 24, "binary64": 53}[form])
    said = ", ".join(f"{name} {_value(name, value, unit)}" for name, value in values.items())
    premises = tuple(_snapping(p, form) for p in step["premises"])
    return Rule(step["rule"], said, premises, why=WHY_SNAPPING.get(step["rule"], ""))


def _value(name: str, value: Fraction, unit: Fraction) -> str:
    if name in {"excess", "up", "down", "low", "high", "error"}:
        return f"≤ {decimal(value / unit, up=True)} η"
    return short(value, up=True)


# ---------------------------------------------------------------- rounding


def _rounding(claim: Mapping[str, Any], body: Mapping[str, Any]) -> Rule:
    scale, excess = number(body["scale"]), number(body["excess"])
    sides = tuple(_side(claim, branch) for branch in body["branches"])
    omega = max(number(branch["omega"]) for branch in body["branches"])
    stray = (
        f"δ_t = {_up(body['delta_t'])} = {decimal(omega, up=True)} (the generator) + "
        f"{_up(body['delta_n'])} (the sum) + {_up(body['delta_round'])} (the quotient)"
    )
    query: tuple[Rule, ...] = ()
    if body["query"] is not None:
        inner = body["query"]
        proof = derivation_from_json(inner["claim"]["expression"], inner["body"])
        query = (_rule("QUERY", f"error ≤ {_up(claim['query_error'])}", (error_rule(proof),)),)
    says = (
        f"ε = {long(number(claim['epsilon']), up=True)}: Laplace noise of scale "
        f"{short(scale, up=True)} loses {short(number(claim['epsilon']) - excess, up=True)}, the "
        f"floats {decimal(excess, up=True)}"
    )
    return _rule("ROUNDING", says, (_rule("STRAY", stray, sides), *query))


def _side(claim: Mapping[str, Any], branch: Mapping[str, Any]) -> Rule:
    low, high = (short(number(end), up=True) for end in branch["interval"])
    expression = claim["programs"][branch["program"]]
    pieces = tuple(
        _rule(
            "PIECE",
            f"u in [{_place(piece['u'][0])}, {_place(piece['u'][1])}]: error ≤ "
            f"{_up(piece['error'])}",
            (error_rule(derivation_from_json(expression, piece["proof"])),),
        )
        for piece in branch["pieces"]
    )
    says = (
        f"u in ({low}, {high}), cut at {_place(branch['cut'])}; the generator moves the noise by "
        f"at most {_up(branch['omega'])}"
    )
    return _rule("SIDE", says, pieces)


def _up(text: str) -> str:
    return decimal(number(text), up=True)


def _place(text: str) -> str:
    """A place of the uniform: near 1 every digit counts."""
    return long(number(text), up=False)


# ---------------------------------------------------------------- running code


def _law(claim: Mapping[str, Any], body: Mapping[str, Any]) -> Rule:
    uniform = _uniform(claim["uniform"])
    p, q = (number(text) for text in claim["probabilities"])
    says = (
        f"output {_float(claim['output'])}: {probability_text(p)} against {probability_text(q)}, "
        f"{claim['direction']}"
    )
    laws = tuple(
        _rule("LAW", f"input {_float(value)}", tuple(_cells(law, uniform)))
        for value, law in zip(claim["inputs"], body["laws"], strict=True)
    )
    return _rule("LOSS", says, laws)


def _cells(law: Sequence[Mapping[str, Any]], uniform: Uniform) -> Iterator[Rule]:
    for branch in law:
        cells = branch["cells"]
        rows = tuple(
            (
                _float(output),
                repr(uniform.point(first)),
                repr(uniform.point(last)),
                decimal(uniform.below(last + 1) - uniform.below(first), up=False),
            )
            for output, first, last in cells[:MOST_ROWS]
        )
        yield _rule(
            "CELLS",
            f"{_sign(branch['sign'])}{len(cells)} cells of uniforms",
            headings=("output", "from u =", "to u =", "probability of these u"),
            rows=rows,
            left_out=max(len(cells) - MOST_ROWS, 0),
        )


def _refutation(claim: Mapping[str, Any], body: Mapping[str, Any]) -> Rule:
    uniform = _uniform(claim["uniform"])
    low, high = (_float(text) for text in claim["outputs"])
    p, q = (probability_text(number(text)) for text in claim["probabilities"])
    preimages = []
    for value, preimage in zip(claim["inputs"], body["preimages"], strict=True):
        rows = tuple(_range(branch, uniform) for branch in preimage)
        headings = ("sign", "output", "from u =", "to u =", "probability of these u")
        says = f"input {_float(value)}: the uniforms that lead there"
        preimages.append(_rule("PREIMAGE", says, headings=headings, rows=rows))
    says = f"outputs from {low} to {high}: {p} against {q}"
    return _rule("WITNESS", says, tuple(preimages))


def _range(branch: Mapping[str, Any], uniform: Uniform) -> tuple[str, ...]:
    first, last = branch["range"]
    way = "rises with u" if branch["rises"] else "falls with u"
    sign = "none" if branch["sign"] is None else str(branch["sign"])
    if last < first:
        return sign, way, "none", "none", "0"
    share = decimal(uniform.below(last + 1) - uniform.below(first), up=False)
    return sign, way, repr(uniform.point(first)), repr(uniform.point(last)), share


def laws_of(certificate: Mapping[str, Any]) -> tuple[dict[float, Fraction], ...]:
    """The two exact laws of a certificate of kind "law"."""
    claim = certificate["claim"]
    uniform = _uniform(claim["uniform"])
    ways = 1 if claim["signs"] is None else len(claim["signs"])
    found = []
    for law in certificate["body"]["laws"]:
        shares: dict[float, Fraction] = {}
        for branch in law:
            for text, first, last in branch["cells"]:
                output = float.fromhex(text)
                share = (uniform.below(last + 1) - uniform.below(first)) / ways
                shares[output] = shares.get(output, Fraction(0)) + share
        found.append(shares)
    return tuple(found)


def _uniform(model: Mapping[str, Any]) -> Uniform:
    if model["model"] == "full":
        return FullPrecision(model["significand"], model["least_exponent"])
    return Grid(model["bits"], offset=number(model["offset"]), first=model["first"])


def _sign(sign: int | None) -> str:
    return "" if sign is None else f"sign {sign:+d}: "


def _float(text: str) -> str:
    return repr(float.fromhex(text))
