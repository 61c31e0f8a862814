"""The proof inside a certificate: a tree of rules to open one by one, and LaTeX.

Nothing is checked here. A step that several others rest on is shown where it is first needed and
named afterwards, so a tree is never larger than its certificate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any, TypeAlias

from lastbit.errors import InvalidParameter
from lastbit.exact import rounded_down, rounded_up
from lastbit.report.charts import shortened
from lastbit.report.page import amount
from lastbit.verify import (
    Derivation,
    FullPrecision,
    Grid,
    SnappingBound,
    Step,
    Uniform,
    derivation_from_json,
    judgement,
    latex_of_steps,
    number,
    side_names,
    table,
    text as expression_text,
)

Json: TypeAlias = Mapping[str, Any]

_DIGITS = 7
_MANY = 21  # digits: near 1 every one of them counts
_LONGEST = 24
_SMALL = 10**6


def up(x: Fraction) -> str:
    """Seven digits, not below."""
    return rounded_up(x, _DIGITS)


def down(x: Fraction) -> str:
    """Seven digits, not above."""
    return rounded_down(x, _DIGITS)


def exact(ratio: Any) -> str:
    """A number of a certificate, exactly; a long one by seven digits, not below."""
    return amount(number(ratio), up=True)


def probability(p: Fraction) -> str:
    """An exact probability, over a power of two where it is one; long ones by seven digits.

    >>> probability(Fraction(3, 2**60)), probability(Fraction(0))
    ('3/2**60 (2.602085e-18)', '0')
    """
    if p.denominator == 1:
        return str(p)
    power = p.denominator & (p.denominator - 1) == 0 and p.denominator > _SMALL
    below = f"2**{p.denominator.bit_length() - 1}" if power else str(p.denominator)
    if max(len(str(p.numerator)), len(below)) > _LONGEST:
        return f"{down(p)} (exact in the certificate)"
    return f"{p.numerator}/{below} ({down(p)})"


def float_name(bits: str) -> str:
    """A double as Python writes it, from its hexadecimal digits."""
    return repr(float.fromhex(bits))


_MOST_ROWS = 200
_MOST_CODE = 240
_MOST_STEPS = 200
_WHY_LOSS = MappingProxyType(
    {
        "SNAPPING": "the loss is epsilon plus the worst excess of the eight cases",
        "PROGRAM": "the loss is that of ideal noise plus the worst excess of all outputs",
        "VALUES": "the values that the claim is about, and how far apart two of them are",
        "OUTPUT": "rounded sums from the first to the last: the worst of their cases",
        "AXUNIF": "how far the uniforms that go beyond an edge are from the ideal ones",
        "MUL": "what the product's rounding moves",
        "DRAW": "what noise that is rounded costs beyond its shift m",
        "RELEASE": "what a sum v of inputs costs beyond its move, rounded with its noise",
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
_WHY = MappingProxyType(
    {
        "POLAR": "the theorem of the plane: docs/theory/polar.md",
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
        "ROUND": "a draw by a logarithm, rounded to a grid",
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


_SIGNIFICANDS = MappingProxyType(
    {"binary16": 11, "binary32": 24, "binary64": 53, "extended80": 64, "binary128": 113}
)


def proof_of(certificate: Json) -> Rule:
    """The proof of a certificate that `check` accepts."""
    claim, body = certificate["claim"], certificate["body"]
    match certificate["kind"]:
        case "snapping":
            return _loss(body["derivation"], _SIGNIFICANDS[claim["format"]], side_names(2, 0))
        case "derivation":
            names = side_names(len(claim["programs"]), body["down"])
            return _loss(body["derivation"], claim["format"]["binary"][0], names)
        case "rounding":
            return _declared(claim, body) if "rate" in claim else _rounding(claim, body)
        case "gaussian":
            return _gaussian(claim, body)
        case "polar":
            return _polar(claim, body)
        case "coupling":
            return _coupling(claim, body)
        case "law":
            return _law(claim, body)
        case "refutation":
            return _refutation(claim, body)
        case "error-bound":
            return error_rule(derivation_from_json(claim["expression"], body))
    raise InvalidParameter(
        "certificate",
        problem="has no proof to open",
        remedy="write the page of the answer, which has its plan",
    )


def _rule(name: str, says: str, premises: tuple[Rule, ...] = (), **rows: Any) -> Rule:
    return Rule(name, says, premises, why=_WHY.get(name, ""), **rows)


def error_rule(derivation: Derivation) -> Rule:
    """The rules of an error bound; what is shared is shown once."""
    parts = table(derivation.expression).expressions
    numbers = {id(part): place for place, part in enumerate(parts)}

    def spelled(node: Derivation) -> str:
        """The expression in full, or by number where there are very many."""
        if len(parts) > _MOST_STEPS:
            return f"step {numbers[id(node.expression)]}"
        return shortened(expression_text(node.expression), _MOST_CODE)

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
            says = f"{spelled(node)} ⇓ {node.conclusion}"
            if node.rule == "SPLIT":
                box = ((n, amount(a, up=False), amount(b, up=True)) for n, a, b in node.box)
                says += f", over {', '.join(f'{n} in [{a}, {b}]' for n, a, b in box)}"
            done[id(node)] = _rule(node.rule, says, premises)
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack.extend((premise, False) for premise in reversed(node.shown_premises))
    return done[id(derivation)]


def _loss(step: Json, bits: int, sides: Sequence[str]) -> Rule:
    """Steps of a derived loss, cases with the uniforms that they relate."""
    says = [said] if (said := judgement(step["rule"], sides)) else []
    for name, ratio in step["values"].items():
        value = number(ratio)
        small = name in {"excess", "up", "down", "low", "high", "error"}
        words = f"≤ {up(value * (1 << bits))} η" if small else amount(value, up=True)
        says.append(f"{name} {words}")
    premises = tuple(_loss(p, bits, sides) for p in step["premises"])
    return Rule(step["rule"], ", ".join(says), premises, why=_WHY_LOSS.get(step["rule"], ""))


def _strays(body: Json, sides: str = "") -> str:
    """How far the computed sum is from the ideal one, and what that is made of."""
    total, of_sum, of_quotient = (
        up(number(body[name])) for name in ("delta_t", "delta_n", "delta_round")
    )
    return f"δ_t = {total} = {sides}{of_sum} (the sum) + {of_quotient} (the quotient)"


def _pieces(body: Json, letter: str) -> Rule:
    """The same where it was bounded piece by piece of what is drawn."""
    rows = tuple(
        (*(rounded_down(number(end), _MANY) for end in piece[letter]), up(number(piece["error"])))
        for piece in body["pieces"]
    )
    headings = (f"{letter} from", "to", "error at most")
    return _rule("STRAY", f"{_strays(body)}, piece by piece", headings=headings, rows=rows)


def _noise_says(claim: Json, body: Json, noise: str) -> str:
    epsilon, excess = number(claim["epsilon"]), number(body["excess"])
    ideal = amount(epsilon - excess, up=True)
    return f"ε = {rounded_up(epsilon, _MANY)}: {noise} loses {ideal}, the floats {up(excess)}"


def _declared(claim: Json, body: Json) -> Rule:
    noise = f"noise of the declared rate {exact(claim['rate'])}"
    return _rule("ROUNDING", _noise_says(claim, body, noise), (_pieces(body, "u"),))


def _rounding(claim: Json, body: Json) -> Rule:
    sides = tuple(_side(claim, branch) for branch in body["branches"])
    omega = max(number(branch["omega"]) for branch in body["branches"])
    stray = _rule("STRAY", _strays(body, f"{up(omega)} (the generator) + "), sides)
    query: tuple[Rule, ...] = ()
    if body["query"] is not None:
        inner = body["query"]
        proof = derivation_from_json(inner["claim"]["expression"], inner["body"])
        says = f"error ≤ {up(number(claim['query_error']))}"
        query = (_rule("QUERY", says, (error_rule(proof),)),)
    noise = f"Laplace noise of scale {exact(body['scale'])}"
    return _rule("ROUNDING", _noise_says(claim, body, noise), (stray, *query))


def _coupling(claim: Json, body: Json) -> Rule:
    says = f"ε = {exact(claim['epsilon'])}, end by end of the program"
    if not body:
        return _rule("COUPLING", f"{says}: the exact laws of uniforms are compared")
    rows = tuple(
        (str(place + 1), name, " + ".join(f"{x} d({n})" if n else x for n, x in form.items()))
        for place, shifts in enumerate(body["shifts"])
        for name, form in shifts.items()
    )
    losses = tuple(
        _rule("ROUND", name, (_loss(step, 53, ()),))
        for name, step in body.get("losses", {}).items()
    )
    return _rule("COUPLING", says, losses, headings=("end", "draw", "moves by"), rows=rows)


def _gaussian(claim: Json, body: Json) -> Rule:
    ideal, at, growth, missed = (
        up(number(body[name])) for name in ("ideal_delta", "ideal_epsilon", "growth", "missed")
    )
    says = (
        f"δ = {up(number(claim['delta']))}: the normal law has {ideal} at {at}, cells grow by "
        f"{growth}, draws of probability {missed} are given up"
    )
    return _rule("GAUSSIAN", says, (_pieces(body, "t"),))


def _polar(claim: Json, body: Json) -> Rule:
    says = (
        f"{exact(claim['rate'])} d + {up(number(claim['excess']))}: ideal loss at a distance d, "
        f"and cost of the stray at edges of a square"
    )
    moved = f"{up(number(body['moved']))} (the draws: {up(number(body['omega']))} the radius) + "
    names = ("ln", "ln", "turn of x", "turn of y", "sum of x", "sum of y")[-len(_bounds(body)) :]
    rows = tuple(
        (name, up(number(one["error"]))) for name, one in zip(names, _bounds(body), strict=True)
    )
    errors = _rule("ERRORS", "what is computed, at all draws", headings=("of", "error"), rows=rows)
    far = f"beyond {up(number(body['reach']))} from the point both lie outside"
    stray = _rule("STRAY", f"{_strays(body, moved)}; {far}", (errors,))
    return _rule("POLAR", says, (stray,))


def _bounds(body: Json) -> list[Any]:
    return [*body["logs"], *body["turns"], *body["sums"]]


def _side(claim: Json, branch: Json) -> Rule:
    low, high = map(exact, branch["interval"])
    expression = claim["programs"][branch["program"]]
    pieces = []
    for piece in branch["pieces"]:
        first, last = (rounded_down(number(end), _MANY) for end in piece["u"])
        says = f"u in [{first}, {last}]: error ≤ {up(number(piece['error']))}"
        proof = error_rule(derivation_from_json(expression, piece["proof"]))
        pieces.append(_rule("PIECE", says, (proof,)))
    says = (
        f"u in ({low}, {high}), cut at {rounded_down(number(branch['cut']), _MANY)}; the generator "
        f"moves the noise by at most {up(number(branch['omega']))}"
    )
    return _rule("SIDE", says, tuple(pieces))


def _law(claim: Json, body: Json) -> Rule:
    uniform = _uniform(claim["uniform"])
    p, q = (probability(number(ratio)) for ratio in claim["probabilities"])
    laws = tuple(
        _rule("LAW", f"input {float_name(value)}", tuple(_cells(law, uniform)))
        for value, law in zip(claim["inputs"], body["laws"], strict=True)
    )
    output = float_name(claim["output"])
    return _rule("LOSS", f"output {output}: {p} against {q}, {claim['direction']}", laws)


def _cells(law: Sequence[Json], uniform: Uniform) -> Iterator[Rule]:
    for branch in law:
        cells, sign = branch["cells"], branch["sign"]
        rows = tuple(
            (float_name(output), *_range(uniform, first, last))
            for output, first, last in cells[:_MOST_ROWS]
        )
        yield _rule(
            "CELLS",
            f"{'' if sign is None else f'sign {sign:+d}: '}{len(cells)} cells of uniforms",
            headings=("output", "from u =", "to u =", "probability of these u"),
            rows=rows,
            left_out=max(len(cells) - _MOST_ROWS, 0),
        )


def _refutation(claim: Json, body: Json) -> Rule:
    uniform = _uniform(claim["uniform"])
    low, high = map(float_name, claim["outputs"])
    p, q = (probability(number(ratio)) for ratio in claim["probabilities"])
    preimages = []
    for value, preimage in zip(claim["inputs"], body["preimages"], strict=True):
        rows = tuple(
            (
                "none" if branch["sign"] is None else str(branch["sign"]),
                "rises with u" if branch["rises"] else "falls with u",
                *_range(uniform, *branch["range"]),
            )
            for branch in preimage
        )
        headings = ("sign", "output", "from u =", "to u =", "probability of these u")
        says = f"input {float_name(value)}: the uniforms that lead there"
        preimages.append(_rule("PREIMAGE", says, headings=headings, rows=rows))
    return _rule("WITNESS", f"outputs from {low} to {high}: {p} against {q}", tuple(preimages))


def _range(uniform: Uniform, first: int, last: int) -> tuple[str, str, str]:
    """The first and the last uniform of a range, and how likely it is."""
    if last < first:
        return "none", "none", "0"
    share = uniform.below(last + 1) - uniform.below(first)
    return repr(uniform.point(first)), repr(uniform.point(last)), down(share)


def laws_of(certificate: Json) -> tuple[dict[float, Fraction], ...]:
    """The two exact laws of a certificate of kind "law"."""
    claim = certificate["claim"]
    uniform = _uniform(claim["uniform"])
    ways = 1 if claim["signs"] is None else len(claim["signs"])
    found = []
    for law in certificate["body"]["laws"]:
        shares: dict[float, Fraction] = {}
        for branch in law:
            for bits, first, last in branch["cells"]:
                output = float.fromhex(bits)
                share = (uniform.below(last + 1) - uniform.below(first)) / ways
                shares[output] = shares.get(output, Fraction(0)) + share
        found.append(shares)
    return tuple(found)


def _uniform(model: Json) -> Uniform:
    if model["model"] == "full":
        return FullPrecision(model["significand"], model["least_exponent"])
    return Grid(model["bits"], offset=number(model["offset"]), first=model["first"])


_MOST_TYPESET_ROWS = 40
_MOST_NESTED = 150
_LETTERS = MappingProxyType(
    str.maketrans(
        {letter: f"\\{letter}" for letter in "{}$&#%_"}
        | {"<": "$<$", ">": "$>$", "\\": r"\textbackslash{}", "^": r"\textasciicircum{}"}
        | {"~": r"\textasciitilde{}", "…": r"\dots{}"}
        | {"ε": r"$\varepsilon$", "δ": r"$\delta$", "η": r"$\eta$", "≤": r"$\le$"}
        | {"∈": r"$\in$", "∼": r"$\sim$", "∧": r"$\wedge$", "∨": r"$\vee$", "′": "'"}
        | {"≥": r"$\ge$", "±": r"$\pm$", "⇓": r"$\Downarrow$"}
    )
)


def in_latex(words: str) -> str:
    """The words with every letter that means something to LaTeX escaped."""
    return words.translate(_LETTERS)


def latex_proof(certificate: Json) -> Iterator[str]:
    """The proof as inference rules, premises above; needs the command fitted."""
    claim, body = certificate["claim"], certificate["body"]
    match certificate["kind"]:
        case "snapping":
            bound = SnappingBound(
                epsilon=number(claim["epsilon"]),
                bound=number(claim["bound"]),
                format=claim["format"],
                derivation=_step(body["derivation"]),
            )
            yield from _fitted(bound.latex())
        case "derivation":
            names = side_names(len(claim["programs"]), body["down"])
            bits = claim["format"]["binary"][0]
            yield from _fitted(latex_of_steps(_step(body["derivation"]), bits, names))
        case "rounding" if "rate" not in claim:
            yield from _latex_rounding(certificate)
        case "error-bound":
            yield from _inference(derivation_from_json(claim["expression"], body))
        case _:
            yield from _outline(proof_of(certificate))


def _fitted(formulas: str) -> Iterator[str]:
    for line in formulas.splitlines():
        formula = line.removeprefix(r"\[").removesuffix(r"\]").strip()
        yield rf"\fitted{{{formula}}}"


def _step(written: Json) -> Step:
    values = tuple((name, number(ratio)) for name, ratio in written["values"].items())
    return Step(written["rule"], values, tuple(_step(p) for p in written["premises"]))


def _latex_rounding(certificate: Json) -> Iterator[str]:
    claim, body = certificate["claim"], certificate["body"]
    root = proof_of(certificate)
    yield in_latex(root.says) + ".\n"
    yield in_latex(root.premises[0].says) + ".\n"
    for branch, side in zip(body["branches"], root.premises[0].premises, strict=True):
        yield rf"\paragraph{{Side.}} {in_latex(side.says)}."
        expression = claim["programs"][branch["program"]]
        for piece in branch["pieces"]:
            low, high = down(number(piece["u"][0])), up(number(piece["u"][1]))
            yield rf"\par For $u \in [{_power(low)}, {_power(high)}]$:"
            yield from _inference(derivation_from_json(expression, piece["proof"]))
    if body["query"] is not None:
        inner = body["query"]
        yield r"\paragraph{Query.}"
        yield from _inference(derivation_from_json(inner["claim"]["expression"], inner["body"]))


def _power(amount: str) -> str:
    mantissa, e, exponent = amount.partition("e")
    return rf"{mantissa}\cdot 10^{{{int(exponent)}}}" if e else amount


def _inference(derivation: Derivation) -> Iterator[str]:
    """One nested rule; or line by line, if nested it would be too deep or too wide to read."""
    steps, stack = 0, [derivation]
    while stack and steps <= _MOST_NESTED:  # each step counts as often as it would be written
        steps += 1
        stack.extend(stack.pop().shown_premises)
    if steps <= _MOST_NESTED:
        yield rf"\fitted{{{derivation.latex()}}}"
    else:
        yield from _outline(error_rule(derivation))


def _outline(root: Rule) -> Iterator[str]:
    """A tree whose leaves are tables: sentences and tables, one below the other."""
    stack = [root]
    while stack:
        rule = stack.pop()
        yield rf"\paragraph{{\textsc{{{in_latex(rule.name.lower())}}}}} {in_latex(rule.says)}."
        if rule.rows:
            yield rf"\fitted{{\begin{{tabular}}{{{'l' * len(rule.headings)}}}"
            yield " & ".join(map(in_latex, rule.headings)) + r" \\ \hline"
            # a box is not broken over pages: the first rows show what the others are like
            for row in rule.rows[:_MOST_TYPESET_ROWS]:
                yield " & ".join(map(in_latex, row)) + r" \\"
            yield r"\end{tabular}}"
            more = len(rule.rows) + rule.left_out - _MOST_TYPESET_ROWS
            if more > 0:
                yield rf"\par {more} more are in the certificate."
        stack.extend(reversed(rule.premises))
