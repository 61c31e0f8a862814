"""Derivations: trees of named rules that end in a judgement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from lastbit.errors import InvalidParameter
from lastbit.verify.certificate import number
from lastbit.verify.error_bounds.formats import Interval
from lastbit.verify.language.expressions import (
    Expression,
    decimal,
    expression_from_json,
    latex,
    table,
    text,
)

Box = tuple[tuple[str, Fraction, Fraction], ...]
"""The range of every input, sorted by name."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """e_R ⇓ e_F: for all inputs of a box, where both values lie and how far they are apart.

    Law      real value in `real`, machine value in `computed`, their distance at most `error`
    """

    real: Interval
    computed: Interval
    error: Fraction

    def __str__(self) -> str:
        bounds = f"real {_bracketed(self.real)}, computed {_bracketed(self.computed)}"
        return f"{bounds}, error ≤ {decimal(self.error, up=True)}"


@dataclass(frozen=True, slots=True)
class Derivation:
    """A judgement about an expression over a box, the rule that gives it, and from what.

    `rule` is that of the expression's last step (CONST, VAR, SAMPLE, ADD, SUB, MUL, DIV, NEG, LN,
    EXP, SQRT, ABS, SGN, CLAMP, ROUND, CASES), or MEAN (all rounding errors carried to the result
    at once), or SPLIT (the box in two).
    """

    rule: str
    expression: Expression
    conclusion: Judgement
    premises: tuple[Derivation, ...]
    box: Box

    @property
    def error(self) -> Fraction:
        return self.conclusion.error

    def tree(self, *, deepest: int = 1000) -> str:
        lines: list[str] = []
        stack: list[tuple[Derivation, int]] = [(self, 0)]
        while stack:
            node, depth = stack.pop()
            line = f"{'  ' * depth}{node.rule:6} {text(node.expression)} ⇓ {node.conclusion}"
            if depth == 0 or node.rule == "SPLIT":
                ranges = (f"{name} ∈ {_bracketed((low, high))}" for name, low, high in node.box)
                line += f"  over {', '.join(ranges)}"
            lines.append(line)
            if depth < deepest:
                stack.extend((premise, depth + 1) for premise in reversed(node.shown_premises))
        return "\n".join(lines)

    text = tree

    def latex(self) -> str:
        r"""The tree as nested \dfrac inference rules, for any LaTeX with amsmath."""
        above = r" \qquad ".join(premise.latex() for premise in self.shown_premises)
        low, high = self.conclusion.computed
        interval = f"[{decimal(low, up=False, latex=True)}, {decimal(high, up=True, latex=True)}]"
        error = decimal(self.conclusion.error, up=True, latex=True)
        own = f"{latex(self.expression)} \\Downarrow {interval},\\ {error}"
        name = rf"\ \textsc{{{self.rule.lower()}}}"
        return rf"\dfrac{{{above}}}{{{own}}}{name}" if above else f"{own}{name}"

    @property
    def shown_premises(self) -> tuple[Derivation, ...]:
        """The premises to print: MEAN uses every step, the last of which holds the others."""
        return self.premises[-1:] if self.rule == "MEAN" else self.premises


def steps_to_json(derivation: Derivation) -> dict[str, Any]:
    """The steps in order, each after its premises; expressions and boxes by number.

    An expression's number is its place in `expression_to_json` of the whole.
    """
    parts = table(derivation.expression).expressions
    places = {id(part): place for place, part in enumerate(parts)}
    boxes: dict[Box, int] = {}
    steps: list[dict[str, Any]] = []
    done: dict[int, int] = {}
    stack: list[tuple[Derivation, bool]] = [(derivation, False)]
    while stack:
        node, ready = stack.pop()
        if id(node) in done:
            continue
        if not ready:
            stack.append((node, True))
            stack.extend((premise, False) for premise in reversed(node.premises))
            continue
        done[id(node)] = len(steps)
        steps.append(
            {
                "rule": node.rule,
                "expression": places[id(node.expression)],
                "box": boxes.setdefault(node.box, len(boxes)),
                "premises": [done[id(premise)] for premise in node.premises],
                "real": [str(end) for end in node.conclusion.real],
                "computed": [str(end) for end in node.conclusion.computed],
                "error": str(node.conclusion.error),
            }
        )
    return {
        "boxes": [{name: [str(low), str(high)] for name, low, high in box} for box in boxes],
        "steps": steps,
    }


def derivation_from_json(
    expression: Sequence[Sequence[Any]], body: Mapping[str, Any]
) -> Derivation:
    """The derivation that `steps_to_json` wrote; nothing in it is checked."""
    try:
        parts = table(expression_from_json(expression)).expressions
        boxes = [
            tuple((name, number(low), number(high)) for name, (low, high) in sorted(box.items()))
            for box in body["boxes"]
        ]
        built: list[Derivation] = []
        for step in body["steps"]:
            low, high = (number(end) for end in step["real"])
            least, greatest = (number(end) for end in step["computed"])
            judgement = Judgement((low, high), (least, greatest), number(step["error"]))
            premises = tuple(built[place] for place in step["premises"])
            place, box = parts[step["expression"]], boxes[step["box"]]
            built.append(Derivation(step["rule"], place, judgement, premises, box))
        return built[-1]
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        problem, remedy = "is not written as a derivation", "write it again"
        raise InvalidParameter("body", problem=problem, remedy=remedy) from error


def _bracketed(x: Interval) -> str:
    return f"[{decimal(x[0], up=False)}, {decimal(x[1], up=True)}]"
