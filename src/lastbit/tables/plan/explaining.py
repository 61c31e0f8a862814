"""A plan in words: what will be done, at which price, with which error."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import TYPE_CHECKING

from lastbit.exact import shown
from lastbit.tables.card.schema import DataCard
from lastbit.tables.plan.measures import Measure
from lastbit.tables.plan.parts import KeysPart, NoisePart, Part, RankPart
from lastbit.tables.plan.price import Cost
from lastbit.tables.plan.ranks import rank_accuracy
from lastbit.tables.plan.sensitivity import weight_one

if TYPE_CHECKING:
    from lastbit.tables.plan.plan import Plan

_WORD = re.compile("[A-Za-z_\u00c0-\u024f][A-Za-z0-9_\u00c0-\u024f]{0,59}")
_TAIL = Fraction(39, 40)


def guarantee_text(card: DataCard, cost: Cost) -> str:
    """The promise in one sentence.

    >>> from lastbit.tables import Source
    >>> card = DataCard(name="t", source=Source(kind="csv"), unit=None, max_rows=1, columns={})
    >>> guarantee_text(card, Cost(epsilon=Fraction(1)))
    'epsilon = 1 differential privacy for one row more or less'
    """
    kind = "zero-concentrated differential privacy" if cost.rho else "differential privacy"
    return f"{str(cost).replace(chr(39), '')} {kind} for {_neighbours(card)}"


def unit_name(name: str) -> str:
    """A column's name in a sentence: one that is no plain word is quoted, odd letters escaped.

    >>> unit_name("patient_id"), unit_name("row, or none")
    ('patient_id', '"row, or none"')
    """
    if _WORD.fullmatch(name):
        return name
    letters = [c if c.isprintable() and c not in '"\\' else f"\\u{ord(c):04x}" for c in name]
    return '"' + "".join(letters) + '"'


def _neighbours(card: DataCard) -> str:
    """By the column that the card names, and by nothing else: the checker writes the same."""
    unit = "row" if card.unit is None else unit_name(card.unit)
    return str(card.neighbours.by(unit))


def explained(plan: Plan) -> str:
    """The whole plan as text: the price, what is protected, every mechanism, every error."""
    lines = [
        _headline(plan),
        f"price     {plan.cost} for the whole answer".replace("'", ""),
        f"protects  {_neighbours(plan.card)}{_bounding(plan.card)}",
        f"adds up   {_composition(plan)}",
        "noise",
        *(f"  {line}" for line in _aligned(list(map(_row(plan), plan.parts)))),
        *_hints(plan),
        "Nothing has been read or charged.",
    ]
    return "\n".join(lines)


def _hints(plan: Plan) -> Iterator[str]:
    """What would make the answer cheaper without asking for less."""
    counts = [measure for measure in plan.measures if measure.kind == "rows"]
    apart = [measure.name for measure in counts if measure.expression is not None]
    if len(counts) > 1 and apart:
        users = _users(plan)
        names = ", ".join(users[name] for name in apart)
        yield f"hint      {names}: with nullable=False one count would serve all"


def _headline(plan: Plan) -> str:
    columns = ", ".join(part.name for part in plan.query.aggregates)
    if not plan.query.keys:
        return f"{columns} of {plan.card.name}"
    keys = ", ".join(key.name for key in plan.query.keys)
    how = "keys found privately" if plan.groups is None else _plural(plan.groups, "declared key")
    return f"{columns} of {plan.card.name} by {keys} ({how})"


def _bounding(card: DataCard) -> str:
    if card.unit is None:
        return ""
    text = f"; each counts for at most {_plural(card.max_rows, 'row')} in all"
    if card.max_groups is not None:
        text += f" and brings at most {_plural(card.max_groups, 'key')} to light"
    return text


def _plural(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _composition(plan: Plan) -> str:
    if plan.composition == "basic":
        why = " has the smaller worst error here" if plan.asked.delta else ""
        return f"epsilons; Laplace noise{why}"
    if plan.conversion is None:
        return "rhos; Gaussian noise"
    rho = float(plan.conversion.rho)
    epsilon, delta = shown(plan.conversion.epsilon), shown(plan.conversion.delta)
    return (
        f"rhos, {rho:.6g} in all, which implies epsilon = {epsilon} at delta = {delta}; "
        "Gaussian noise has the smaller worst error here"
    ).replace("'", "")


def _row(plan: Plan) -> Callable[[Part], tuple[str, str, str, str]]:
    measures = {measure.name: measure for measure in plan.measures}
    users = _users(plan)
    one = weight_one(plan.card)

    def row(part: Part) -> tuple[str, str, str, str]:
        match part:
            case KeysPart():
                counted = users.get(part.measure)
                what = "keys" if counted is None else f"keys, and their units ({counted})"
                error = f"shown from about {part.threshold} units on"
                return what, _price(part), f"Laplace, scale {_short(part.scale)}", error
            case NoisePart():
                return _noise_row(part, measures[part.measure], users[part.measure], one)
            case RankPart():
                return _rank_row(part, one)

    return row


def _users(plan: Plan) -> dict[str | None, str]:
    found: dict[str | None, list[str]] = {}
    for recipe in plan.recipes:
        for name in recipe.measures.values():
            found.setdefault(name, []).append(recipe.aggregate.name)
    return {name: ", ".join(users) for name, users in found.items()}


def _noise_row(
    part: NoisePart, measure: Measure, users: str, one: int
) -> tuple[str, str, str, str]:
    words = {
        "rows": ("rows", Fraction(1, one), "rows"),
        "values": ("sum of values", measure.step / one, ""),
        "squares": ("sum of squares", measure.step**2 / one, ""),
        "bins": ("rows in each bin", Fraction(1, one), "rows"),
        "units": ("units", Fraction(1), "units"),
    }
    what, factor, unit = words[measure.kind]
    within = f"{_short(part.law.quantile(_TAIL) * factor)} {unit}".rstrip()
    if part.mechanism == "laplace":
        noise = f"Laplace, scale {_short(part.noise * factor)}"
    else:
        noise = f"Gaussian, deviation {float(part.noise) ** 0.5 * float(factor):.4g}"
    return f"{what} ({users})", _price(part), noise, f"95 % within ± {within}"


def _rank_row(part: RankPart, one: int) -> tuple[str, str, str, str]:
    names = {"value": "", "low": ", lower end", "high": ", upper end"}
    far = rank_accuracy(
        part.moved, part.epsilon, beta=Fraction(1, 20), candidates=max(part.candidates, 2)
    )
    rows = Fraction(far, part.level.denominator * one)
    return (
        f"{part.aggregate}{names[part.role]}",
        _price(part),
        f"exponential, {part.candidates} bins",
        f"95 % within {_short(rows)} rows of the rank",
    )


def _price(part: Part) -> str:
    if isinstance(part, KeysPart):
        return f"epsilon {float(part.epsilon):.4g}, delta {float(part.delta):.3g}"
    if part.rho is not None:
        return f"rho {float(part.rho):.4g}"
    assert part.epsilon is not None
    return f"epsilon {float(part.epsilon):.4g}"


def _short(number: Fraction | int) -> str:
    return f"{float(number):.4g}" if abs(Fraction(number)) < 10_000 else f"{round(number):,}"


def _aligned(rows: list[tuple[str, str, str, str]]) -> Iterator[str]:
    widths = [max((len(row[i]) for row in rows), default=0) for i in range(4)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield "   ".join(cells).rstrip()
