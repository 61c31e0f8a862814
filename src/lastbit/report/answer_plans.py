"""The plan of an answer in words: each mechanism, what it hides, how far off it is, its price."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from lastbit.exact import root_below
from lastbit.report.answer_words import amount_text, printable, unit_word
from lastbit.report.claims import natural_unit

_LAPLACE_95 = math.log(20)
_GAUSSIAN_95 = 1.959964
_SHORT = 6
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


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRow:
    """One mechanism; `share` is its part of what is paid in its currency, from 0 to 1."""

    what: str
    moved: str
    noise: str
    error: str
    price: str
    share: float


def plan_rows(record: Mapping[str, Any]) -> list[PlanRow]:
    """The mechanisms in the order in which they ran."""
    plan = record["plan"]
    measures = {measure["name"]: measure for measure in plan["measures"]}
    users: dict[str, list[str]] = {}
    for recipe in plan["recipes"]:
        for name in recipe["measures"].values():
            users.setdefault(name, []).append(printable(recipe["aggregate"], 40))
    prices = [_amount(part) for part in plan["parts"]]
    rows = []
    for part, price in zip(plan["parts"], prices, strict=True):
        match part["part"]:
            case "noise":
                row = _noise(part, measures[part["measure"]], users, plan["weight_one"])
            case "keys":
                row = _keys(part, users)
            case _:
                row = _rank(part, plan["weight_one"])
        what, moved, noise, error = row
        same = [p for p in prices if p[0] == price[0]]
        total = sum((number for _, number in same), Fraction(0))
        rows.append(
            PlanRow(
                what=what,
                moved=moved,
                noise=noise,
                error=error,
                price=_price(part),
                share=float(price[1] / total) if total else 0.0,
            )
        )
    return rows


def bounding_sentences(record: Mapping[str, Any]) -> list[str]:
    """What one unit may count for."""
    plan, unit = record["plan"], unit_word(record)
    if plan["unit"] is None:
        return ["Every row is somebody else's."]
    said = [
        f"One {unit} counts for at most {plan['max_rows']:,} rows in all: the rows of whoever has "
        "more count for less each."
    ]
    if plan["max_groups"] is not None and plan["groups"] is None:
        said.append(f"One {unit} brings at most {plan['max_groups']:,} keys to light.")
    return said


def composition_sentence(record: Mapping[str, Any]) -> str:
    """How the prices of the mechanisms add up to that of the answer."""
    plan = record["plan"]
    conversion = plan["conversion"]
    if plan["composition"] == "basic":
        return "The ε of all mechanisms add up to the ε of the answer, and so do the δ."
    if conversion is None:
        return "The ρ of all mechanisms add up to the ρ of the answer."
    rho, epsilon, delta = (Fraction(conversion[name]) for name in ("rho", "epsilon", "delta"))
    return (
        f"The ρ of all mechanisms add up to {_up(rho)}, which implies "
        f"ε = {amount_text(epsilon, up=True)} at δ = {amount_text(delta, up=True)}; what finding "
        "keys costs is added."
    )


# ---------------------------------------------------------------- one mechanism each


def _noise(
    part: Mapping[str, Any], measure: Mapping[str, Any], users: Mapping[str, list[str]], one: int
) -> tuple[str, str, str, str]:
    factor = natural_unit(measure, one)
    what = f"{_KINDS[measure['kind']]} ({', '.join(users[part['measure']])})"
    if part["mechanism"] == "laplace":
        moved = Fraction(part["sensitivity"]["l1"]) * factor
        scale = Fraction(part["scale"]) * factor
        noise, error = f"Laplace, scale {_short(scale)}", float(scale) * _LAPLACE_95
        return what, f"{_up(moved)} in all groups together", noise, f"± {_short(error)}"
    far = root_below(Fraction(part["sensitivity"]["l2_squared"]) * factor**2)
    deviation = root_below(Fraction(part["variance"]) * factor**2)
    noise = f"Gaussian, deviation {_short(deviation)}"
    return what, f"{_up(far)} (Euclidean)", noise, f"± {_short(float(deviation) * _GAUSSIAN_95)}"


def _keys(part: Mapping[str, Any], users: Mapping[str, list[str]]) -> tuple[str, str, str, str]:
    names = users.get(part["measure"] or "", [])
    what = f"keys, and their units ({', '.join(names)})" if names else "which keys are shown"
    noise = f"Laplace, scale {_short(Fraction(part['scale']))}"
    return (
        what,
        f"{part['keys_per_person']:,} keys, by 1 each",
        noise,
        f"shown from about {part['threshold']:,} units on",
    )


def _rank(part: Mapping[str, Any], one: int) -> tuple[str, str, str, str]:
    level = Fraction(part["level"])
    moved = Fraction(part["sensitivity"]["distance"]) / (one * level.denominator)
    # a candidate is exp(-rate distance) times as likely: 95 % lie within (log(20 m))/rate
    rate = Fraction(part["rate"]) * one * level.denominator
    far = math.log(20 * max(part["candidates"], 2)) / float(rate)
    return (
        f"{printable(part['aggregate'], 40)}{_ROLES.get(part['role'], '')}",
        f"{_up(moved)} in rank",
        f"exponential, {part['candidates']:,} candidates",
        f"within {_short(far)} rows of the rank",
    )


def _amount(part: Mapping[str, Any]) -> tuple[str, Fraction]:
    """The currency in which a part is paid, and how much."""
    if part.get("rho") is not None:
        return "ρ", Fraction(part["rho"])
    return "ε", Fraction(part["epsilon"])


def _price(part: Mapping[str, Any]) -> str:
    letter, number = _amount(part)
    text = f"{letter} = {_paid(number)}"
    return f"{text}, δ = {_paid(Fraction(part['delta']))}" if part.get("delta") else text


def _paid(number: Fraction) -> str:
    """Exact if that is short, so that three thirds are seen to be one; else rounded up.

    >>> _paid(Fraction(1, 3)), _paid(Fraction(2, 3_000_001))
    ('1/3', '6.667e-7')
    """
    exact = amount_text(number, up=True)
    return exact if len(exact) <= _SHORT else _up(number)


def _short(number: Fraction | float) -> str:
    """Four digits, to the nearest: how wide noise is.

    >>> _short(Fraction(1, 3)), _short(119829.3), _short(Fraction(1, 10**9))
    ('0.3333', '119,800', '1e-9')
    """
    return _four_digits(Fraction(number), ROUND_HALF_EVEN)


def _up(number: Fraction | float) -> str:
    """Four digits, rounded up: what something costs, or how far it moves.

    >>> _up(Fraction(1, 3)), _up(Fraction(1, 2))
    ('0.3334', '0.5')
    """
    return _four_digits(Fraction(number), ROUND_CEILING)


def _four_digits(number: Fraction, rounding: str) -> str:
    context = Context(prec=4, rounding=rounding)
    near = context.divide(Decimal(number.numerator), Decimal(number.denominator)).normalize()
    if near and not -5 <= near.adjusted() < 12:
        return f"{near:e}".replace("e+", "e")
    return f"{near:,f}"
