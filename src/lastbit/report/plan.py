"""A plan in words, for every screen: what protects whom, each mechanism, its error and its price.

`Plan.explain()`, `lastbit query --explain` and the page of an answer all say what is written here,
from the plan's JSON, which a saved answer has too. Numbers are rounded to the safe side: errors,
sensitivities, prices and the width of noise up.

Checked  tests/report/test_plan.py
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from lastbit.exact import root_bounds, rounded_up
from lastbit.laws import DiscreteGaussian, DiscreteLaplace
from lastbit.mechanisms import Exponential
from lastbit.report.page import amount, grouped, price, printable
from lastbit.tables import Plan

_TAIL = Fraction(1, 20)
_DIGITS = 4
_SHORT = 6  # letters of a price that is written exactly
_WIDTH = 100
_ROLES: Mapping[str, str] = MappingProxyType(
    {"value": "", "low": ", lower end", "high": ", upper end"}
)
_KINDS: Mapping[str, str] = MappingProxyType(
    {
        "rows": "number of rows",
        "values": "sum of values",
        "squares": "sum of squares",
        "bins": "rows in each range",
        "units": "number of units",
    }
)
UNTOUCHED = "Nothing has been read or charged."


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRow:
    """One mechanism; `share` is its part of what is paid in its currency, from 0 to 1."""

    what: str
    sensitivity: str
    noise: str
    error: str
    price: str
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanWords:
    """A plan as people read it."""

    title: str
    price: str
    promise: str
    limits: str
    composition: str
    rows: tuple[PlanRow, ...]
    hints: tuple[str, ...]

    @property
    def facts(self) -> list[tuple[str, str]]:
        """What is said of the whole plan."""
        return [
            ("price", f"{self.price} for the whole answer"),
            ("promise", self.promise),
            ("limits", self.limits),
            ("adds up", self.composition),
            *(("hint", hint) for hint in self.hints),
        ]

    @property
    def table(self) -> list[tuple[str, str, str, str]]:
        """Headings, and a row for each mechanism."""
        rows = ((row.what, row.price, row.noise, row.error) for row in self.rows)
        return [("what", "price", "noise", "95 % within"), *rows]

    def __str__(self) -> str:
        widths = [max(map(len, cells)) for cells in zip(*self.table, strict=True)]
        lines = [self.title]
        for name, words in self.facts:
            lines += textwrap.wrap(f"{name:9} {words}", _WIDTH, subsequent_indent=" " * 10)
        for row in self.table:
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            lines.append("  " + "   ".join(cells).rstrip())
        return "\n".join([*lines, UNTOUCHED])


def plan_words(plan: Plan) -> PlanWords:
    """The words for a plan that was just made."""
    return record_words(
        {
            "plan": plan.to_json(),
            "asked": {"query": plan.query.to_json()},
            "guarantee": plan.guarantee,
        }
    )


def record_words(record: Mapping[str, Any]) -> PlanWords:
    """The words for the plan in the record of an answer."""
    plan = record["plan"]
    title = f"{title_of(record)}, from {printable(plan['table'], 60)}"
    if "marginals" in plan:
        title += f" ({_many(plan['groups'], 'cell')})"
    elif record["asked"]["query"]["keys"]:
        keys = plan["groups"]
        title += f" ({'keys found privately' if keys is None else _many(keys, 'declared key')})"
    return PlanWords(
        title=title,
        price=price(plan["cost"]),
        promise=str(record["guarantee"]),
        limits=" ".join(bounding_sentences(record)),
        composition=composition_sentence(record),
        rows=tuple(plan_rows(record)),
        hints=tuple(_hints(plan)),
    )


def title_of(record: Mapping[str, Any]) -> str:
    """The question in a line: n, cost by region."""
    query = record["asked"]["query"]
    names = ", ".join(printable(part["name"], 60) for part in query["aggregates"])
    keys = ", ".join(printable(key["name"], 60) for key in query["keys"])
    if "marginals" in record.get("plan", {}):
        ways = {len(columns) for columns in record["plan"]["marginals"]}
        kinds = [word for number, word in ((1, "one-way"), (2, "two-way")) if number in ways]
        return f"{' and '.join(kinds)} tables of {keys}"
    return f"{names} by {keys}" if keys else names


def unit_word(record: Mapping[str, Any]) -> str:
    """What the privacy unit is called.

    >>> unit_word({"plan": {"unit": "patient_id"}}), unit_word({"plan": {"unit": None}})
    ('patient_id', 'row')
    """
    unit = record["plan"]["unit"]
    return "row" if unit is None else printable(unit, 60)


def bounding_sentences(record: Mapping[str, Any]) -> list[str]:
    """The contribution bounds: what one privacy unit may count for."""
    plan, unit = record["plan"], unit_word(record)
    if plan["unit"] is None:
        return ["Each row is a different person."]
    sentences = [
        f"One {unit} counts for at most {_many(plan['max_rows'], 'row')} in all; where there are "
        "more, each counts for less."
    ]
    if plan["max_groups"] is not None and plan["groups"] is None:
        sentences.append(
            f"For partition selection, one {unit} contributes to at most "
            f"{_many(plan['max_groups'], 'group')}."
        )
    return sentences


def composition_sentence(record: Mapping[str, Any]) -> str:
    """How the prices of the mechanisms add up to that of the answer."""
    plan = record["plan"]
    conversion = plan["conversion"]
    if plan["composition"] == "basic":
        return "The ε of all mechanisms add up to the ε of the answer, and so do the δ."
    if conversion is None:
        return "The ρ of all mechanisms add up to the ρ of the answer."
    rho, epsilon, delta = (Fraction(conversion[name]) for name in ("rho", "epsilon", "delta"))
    selection = any(part["part"] == "keys" for part in plan["parts"])
    return (
        f"The ρ of all mechanisms add up to {_up(rho)}, which implies "
        f"ε = {amount(epsilon, up=True)} at δ = {amount(delta, up=True)}"
        + ("; the price of partition selection is added." if selection else ".")
    )


def _hints(plan: Mapping[str, Any]) -> Iterator[str]:
    """What would make the answer cheaper without asking for less."""
    counts = [measure for measure in plan["measures"] if measure["kind"] == "rows"]
    apart = [measure["name"] for measure in counts if measure["expression"] is not None]
    if len(counts) > 1 and apart:
        users = _users(plan)
        names = ", ".join(users[name] for name in apart)
        yield f"{names}: with nullable=False one count would serve all"


def plan_rows(
    record: Mapping[str, Any], *, named: Callable[[object, int], str] = printable
) -> list[PlanRow]:
    """The mechanisms in the order in which they run; `named` makes names fit to print."""
    plan = record["plan"]
    measures = {measure["name"]: measure for measure in plan["measures"]}
    users, one = _users(plan, named), plan["weight_one"]
    paid = [  # the currency in which each is paid, and how much
        ("ε", Fraction(p["epsilon"])) if p.get("rho") is None else ("ρ", Fraction(p["rho"]))
        for p in plan["parts"]
    ]
    rows = []
    for part, (letter, number) in zip(plan["parts"], paid, strict=True):
        match part["part"]:
            case "noise":
                unit = natural_unit(measures[part["measure"]], one)
                name = f"{_KINDS[measures[part['measure']]['kind']]} ({users[part['measure']]})"
                words = (name, *_noise(part, unit))
            case "keys":
                counted = users.get(part["measure"])
                words = (
                    f"keys, and their units ({counted})" if counted else "which keys are shown",
                    f"{_many(part['keys_per_person'], 'key')}, by 1 each",
                    f"Laplace, scale {_up(Fraction(part['scale']))}",
                    f"shown from about {part['threshold']:,} units on",
                )
            case _:
                name = named(part["aggregate"], 40) + _ROLES.get(part["role"], "")
                words = (name, *_rank(part, one))
        total = sum((other for currency, other in paid if currency == letter), Fraction(0))
        delta = f", δ = {_exact_or_up(Fraction(part['delta']))}" if part.get("delta") else ""
        what, sensitivity, noise, error = words
        rows.append(
            PlanRow(
                what=what,
                sensitivity=sensitivity,
                noise=noise,
                error=error,
                price=f"{letter} = {_exact_or_up(number)}{delta}",
                share=float(number / total) if total else 0.0,
            )
        )
    return rows


def natural_unit(measure: Mapping[str, Any], one: int) -> Fraction:
    """What 1 in the integers of a measure means in rows, units or amounts of the table.

    >>> natural_unit({"kind": "values", "step": "1/100"}, 1 << 20) == Fraction(1, 100 << 20)
    True
    """
    step = Fraction(measure["step"])
    factor = {"values": step, "squares": step**2}.get(measure["kind"], Fraction(1))
    return factor if measure["kind"] == "units" else factor / one


def _users(
    plan: Mapping[str, Any], named: Callable[[object, int], str] = printable
) -> dict[str | None, str]:
    """By measure, the columns of the answer that are made of it."""
    users: dict[str | None, list[str]] = {}
    for recipe in plan["recipes"]:
        for name in recipe["measures"].values():
            users.setdefault(name, []).append(named(recipe["aggregate"], 40))
    return {name: ", ".join(columns) for name, columns in users.items()}


def _noise(part: Mapping[str, Any], unit: Fraction) -> tuple[str, str, str]:
    law: DiscreteLaplace | DiscreteGaussian
    if part["mechanism"] == "laplace":
        law = DiscreteLaplace(Fraction(part["scale"]))
        sensitivity = f"{_up(Fraction(part['sensitivity']['l1']) * unit)} in all groups together"
        noise = f"Laplace, scale {_up(law.scale * unit)}"
    else:
        law = DiscreteGaussian(Fraction(part["variance"]))
        squared = Fraction(part["sensitivity"]["l2_squared"])
        sensitivity = f"{_up(root_bounds(squared * unit**2)[1])} (Euclidean)"
        noise = f"Gaussian, deviation {_up(root_bounds(law.variance * unit**2)[1])}"
    return sensitivity, noise, f"± {_up(law.quantile(1 - _TAIL / 2) * unit)}"


def _rank(part: Mapping[str, Any], one: int) -> tuple[str, str, str]:
    row = one * Fraction(part["level"]).denominator
    distance = Fraction(part["sensitivity"]["distance"])
    draw = Exponential(sensitivity=distance, epsilon=Fraction(part["epsilon"]))
    far = math.ceil(draw.accuracy(_TAIL, candidates=max(part["candidates"], 2)))
    return (
        f"{_up(distance / row)} in rank",
        f"exponential, {part['candidates']:,} candidates",
        f"within {_up(Fraction(max(far, 1)) / row)} rows of the rank",
    )


def _exact_or_up(number: Fraction) -> str:
    """Exact if that is short, so that three thirds are seen to be one; else rounded up.

    >>> _exact_or_up(Fraction(1, 3)), _exact_or_up(Fraction(2, 3_000_001))
    ('1/3', '6.667e-7')
    """
    exact = amount(number, up=True)
    return exact if len(exact) <= _SHORT else _up(number)


def _up(number: Fraction) -> str:
    """Four digits, or all digits of a whole number, not below the truth.

    >>> _up(Fraction(1, 3)), _up(Fraction(59914_6, 10))
    ('0.3334', '59,915')
    """
    whole = Fraction(math.ceil(number))
    return grouped(rounded_up(whole if number >= 10**_DIGITS else number, _DIGITS))


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
