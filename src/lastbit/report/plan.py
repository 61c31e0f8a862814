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
from dataclasses import dataclass, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from lastbit.exact import root_bounds
from lastbit.laws import DiscreteGaussian, DiscreteLaplace
from lastbit.mechanisms import Exponential
from lastbit.report.page import amount, grouped_up, listed, price, printable
from lastbit.tables import MarginalsPlan, Plan, Tree, unit_name, worst_reach

_TAIL = Fraction(1, 20)
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
        "distinct": "number of distinct values",
    }
)
_MANY_UNITS = 200  # a threshold that many tables have no key above
UNTOUCHED = "Nothing has been read or charged."


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRow:
    """One mechanism; `share` is its part of what is paid in its currency, from 0 to 1.

    `off` is by how many rows the rank of a quantile may be off, in 95 % of releases.
    """

    what: str
    sensitivity: str
    noise: str
    error: str
    price: str
    share: float
    off: Fraction | None = None


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


def plan_words(plan: Plan | MarginalsPlan) -> PlanWords:
    """The words for a plan that was just made."""
    words = record_words(
        {
            "plan": plan.to_json(),
            "asked": {"query": plan.query.to_json()},
            "guarantee": plan.guarantee,
        }
    )
    return replace(words, hints=(*words.hints, *_rank_hints(words, plan)))


def record_words(record: Mapping[str, Any]) -> PlanWords:
    """The words for the plan in the record of an answer."""
    plan = record["plan"]
    title = f"{title_of(record)}, from {printable(plan['table'], 60)}"
    if "marginals" in plan:
        title += f" ({many(plan['groups'], 'cell')})"
    elif record["asked"]["query"]["keys"]:
        keys = plan["groups"]
        title += f" ({'keys found privately' if keys is None else many(keys, 'declared key')})"
    return PlanWords(
        title=title,
        price=price(plan["cost"]),
        promise=str(record["guarantee"]),
        limits=" ".join(bounding_sentences(record)),
        composition=composition_sentence(record),
        rows=tuple(plan_rows(record)),
        hints=(*price_warnings(plan["cost"]), *_hints(record), *_derived(record["asked"]["query"])),
    )


MADE_UP = "Made-up rows"
"""How the title of an answer begins that is not about the table."""


def title_of(record: Mapping[str, Any], given: str | None = None) -> str:
    """The question in a line: n, cost by region; or the title that is given for it."""
    title = given or _asked_of(record)
    return f"{MADE_UP}: {title}" if record.get("made_up") else title


def _asked_of(record: Mapping[str, Any]) -> str:
    query = record["asked"]["query"]
    shown = query.get("shown") or [part["name"] for part in query["aggregates"]]
    names = ", ".join(printable(name, 60) for name in shown)
    keys = ", ".join(printable(key["name"], 60) for key in query["keys"])
    if "marginals" in record.get("plan", {}):
        ways = {len(columns) for columns in record["plan"]["marginals"]}
        ways |= {2 for part in record["plan"]["parts"] if part["part"] == "choice"}
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
        f"One {unit} counts for at most {many(plan['max_rows'], 'row')} in all; where there are "
        f"more, each counts for less. Rows without a {unit} are left out."
    ]
    if record["asked"]["query"].get("per_unit") is not None:
        sentences.insert(0, f"The rows are those of the sub-query, each made of one {unit}'s own.")
    for name, table in plan.get("private", {}).items():
        most = many(table["max_rows"], "row")
        sentences.append(f"At most {most} of one {unit} in {printable(name, 60)} are joined.")
    for part in plan["parts"]:
        if part["part"] == "keys":
            sentences.append(
                f"Which keys are shown is decided by at most "
                f"{many(part['keys_per_person'], 'group')} of each {unit}; all its rows are "
                "measured in those that are shown."
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
    epsilon, delta = (Fraction(conversion[name]) for name in ("epsilon", "delta"))
    selection = any(part["part"] == "keys" for part in plan["parts"])
    in_rho = all(_in_rho(part) for part in plan["parts"])
    added = "δ" if in_rho else "price"
    if "mu" in conversion:
        mu = grouped_up(Fraction(conversion["mu"]))
        all_of_it = f"All noise together tells no more than Gaussian noise with μ = {mu}, which"
    else:
        total = grouped_up(Fraction(conversion["rho"]))
        all_of_it = f"The ρ of all mechanisms add up to {total}, which"
    return f"{all_of_it} implies ε = {amount(epsilon, up=True)} at δ = {amount(delta, up=True)}" + (
        f"; the {added} of partition selection is added." if selection else "."
    )


_MOST_MEANT = MappingProxyType(
    {"epsilon": Fraction(20), "rho": Fraction(5), "delta": Fraction(1, 1000)}
)
"""Prices above these promise next to nothing; rho = 5 is about epsilon = 20 at a usual delta."""


def price_warnings(cost: Mapping[str, str]) -> list[str]:
    """What to say of a price that hardly protects; it is allowed, and it may be meant.

    >>> price_warnings({"epsilon": "1", "delta": "1/1000000000", "rho": "0"})
    []
    >>> price_warnings({"epsilon": "30", "delta": "0", "rho": "0"})
    ['A price of ε = 30 hardly protects anybody: 1 is common, and 10 protects little.']
    """
    paid = {name: Fraction(cost[name]) for name in _MOST_MEANT}
    large = {name: number for name, number in paid.items() if number > _MOST_MEANT[name]}
    words = []
    for name, letter, usual in (
        ("epsilon", "ε", "1 is common, and 10 protects little"),
        ("rho", "ρ", "0.1 is common, and 5 protects little"),
    ):
        if name in large:
            said = f"{letter} = {amount(large[name], up=True)}"
            words.append(f"A price of {said} hardly protects anybody: {usual}.")
    if "delta" in large:
        said = f"δ = {amount(large['delta'], up=True)}"
        words.append(f"A price of {said} is large: with that probability nothing is promised.")
    return words


_FOR_LESS = "all of them count for less."
BIAS = "That is bias, which the ± does not show."
TUNING = (
    "`lastbit card tune`, or lb.suggest_max_rows in Python, estimates the share of rows that count."
)


EXTREMES = (
    "MIN and MAX are values that few rows lie beyond, not the least and the greatest: those would "
    "be one row's own."
)
EMPTY_GROUPS = (
    "Declared keys are listed whether or not a row has them. Where the interval of a group's count "
    "reaches 0 there may be no rows, and what is said of their values may be noise alone."
)
_OF_VALUES = frozenset({"mean", "variance", "std", "quantile", "min", "max"})


def notes_of(record: Mapping[str, Any]) -> list[str]:
    """What to know of an answer: its notes, what its price is worth, what the ± leaves out.

    The notes in a record are known letter for letter to the independent checker. Those added here
    follow from its plan alone, so that answers saved earlier are shown with them too.
    """
    notes = [*price_warnings(record["cost"]), *map(str, record["notes"])]
    asked, plan = record.get("asked", {}).get("query", {}), record.get("plan", {})
    bounded = [place for place, note in enumerate(notes) if note.endswith(_FOR_LESS)]
    for place in bounded:
        share = [] if "kept" in record or "per_unit" in asked else [BIAS, TUNING]
        missing = f"Rows without a {unit_name(plan['unit'])} are left out."
        notes[place + 1 : place + 1] = [*share, missing]
    functions = {recipe["function"] for recipe in plan.get("recipes", ())}
    if functions & {"min", "max"}:
        notes.append(EXTREMES)
    if asked.get("keys") and plan.get("groups") is not None and functions & _OF_VALUES:
        notes.append(EMPTY_GROUPS)
    return notes


def _hints(record: Mapping[str, Any]) -> Iterator[str]:
    """What would make the answer cheaper without asking for less."""
    plan = record["plan"]
    yield from _bound_hints(record)
    counts = [measure for measure in plan["measures"] if measure["kind"] == "rows"]
    apart = [measure["name"] for measure in counts if measure["expression"] is not None]
    if len(counts) > 1 and apart:
        users = _users(plan)
        names = ", ".join(users[name] for name in apart)
        yield f"{names}: with nullable=False one count would serve all"
    for part in plan["parts"]:
        if part["part"] != "keys":
            continue
        least = -(-part["threshold"] // part.get("weight_one", 1))
        least = min(least, part.get("single", part)["threshold"])
        if least >= _MANY_UNITS:
            lower = "" if part["keys_per_person"] == 1 else "declare a smaller max_groups, "
            yield (
                f"keys that fewer than about {least:,} units have will not be shown, perhaps none "
                f"at all: declare the keys, {lower}give the keys more weight, or pay more ε or δ"
            )


def _rank_hints(words: PlanWords, plan: Plan | MarginalsPlan) -> Iterator[str]:
    """Where a quantile may be far off in rank, by the rows that the card declares.

    Law      of N rows in G groups a group has N/G on average; a rank that is off by r of them is
             that of a level up to r G/N away
    """
    ranks = [(row.off, row.what) for row in words.rows if row.off is not None]
    rows, groups = plan.card.rows, plan.query.groups
    if not rows or not groups or not ranks:
        return
    off, what = max(ranks)
    share = math.ceil(100 * off * groups / rows)
    if share < _FAR_OFF:
        return
    ways = ["pay more"]
    if groups > 1:
        ways.append("ask for fewer groups")
    if plan.card.max_rows > 1:
        ways.append("declare a smaller max_rows")
    if len(ranks) > 1:
        ways.append("leave intervals out (--no-intervals, intervals=False)")
    yield (
        f"{what}: by the card {'the table' if groups == 1 else 'a group'} has about "
        f"{rows // groups:,} rows, and the rank may be off by {min(share, 100)} % of them; to come "
        f"closer, {listed(ways, 'or')}"
    )


_FAR_OFF = 10  # per cent of the rows of a group
_FEW_VALUES, _FEW_GROUPS = 10, 8


def _bound_hints(record: Mapping[str, Any]) -> Iterator[str]:
    """Where max_groups is not declared, and declaring it would make noise smaller."""
    plan, unit = record["plan"], unit_word(record)
    if plan["unit"] is None or plan["max_groups"] not in (None, plan["max_rows"]):
        return
    kinds, users = {one["name"]: one["kind"] for one in plan["measures"]}, _users(plan)
    most, inner = plan["max_rows"], record["asked"]["query"].get("per_unit")
    for part in plan["parts"]:
        if part["part"] == "noise" and kinds[part["measure"]] == "distinct" and most > _FEW_VALUES:
            now = _noise(part, Fraction(1))[2]
            then = _noise(_shrunk(part, Fraction(_FEW_VALUES, most)), Fraction(1))[2]
            yield (
                f"{users[part['measure']]}: one {unit} may name max_rows = {most:,} distinct "
                f"values, hence {now}; declaring max_groups = {_FEW_VALUES} would make it {then}"
            )
        if part["part"] == "keys" and part["keys_per_person"] == 1 and most > 1 and inner is None:
            yield (
                f"one {unit} helps to show 1 key, since max_groups is not declared: where most are "
                f"in several groups, declaring max_groups = {min(_FEW_GROUPS, most)} or more may "
                "show more keys, though each must then have more units"
            )
    if inner is not None and most > 1:
        clamp = ""
        if {"values", "squares"} & set(kinds.values()):
            clamp = ", and narrow wide bounds by clamp(x, low, high)"
        yield (
            f"one {unit} may have max_rows = {most:,} rows of the sub-query: where it has few, "
            f"declare max_groups (1 for one row each){clamp}"
        )


def _shrunk(part: Mapping[str, Any], factor: Fraction) -> dict[str, Any]:
    """The noise of a part at the same price, where the sensitivity is smaller by this factor."""
    if part["mechanism"] == "laplace":
        return {**part, "scale": str(Fraction(part["scale"]) * factor)}
    return {**part, "variance": str(Fraction(part["variance"]) * factor**2)}


def _derived(query: Mapping[str, Any]) -> Iterator[str]:
    """What is released unseen, and which columns are free."""
    shown = query.get("shown")
    if shown is None:
        return
    unseen = [printable(p["name"], 60) for p in query["aggregates"] if p["name"] not in shown]
    made = [printable(one["name"], 60) for one in query["derived"] if one["name"] in shown]
    if made:
        yield f"{', '.join(made)}: computed from released numbers, at no further price"
    if unseen:
        yield f"{', '.join(unseen)}: released as a part of the question, and not shown"


def plan_rows(
    record: Mapping[str, Any], *, named: Callable[[object, int], str] = printable
) -> list[PlanRow]:
    """The mechanisms in the order in which they run; `named` makes names fit to print."""
    plan = record["plan"]
    measures = {measure["name"]: measure for measure in plan["measures"]}
    users, one = _users(plan, named), plan["weight_one"]
    paid = [  # the currency in which each is paid, and how much
        ("ρ", Fraction(p["rho"])) if _in_rho(p) else ("ε", Fraction(p["epsilon"]))
        for p in plan["parts"]
    ]
    rows = []
    for part, (letter, number) in zip(plan["parts"], paid, strict=True):
        off = None
        match part["part"]:
            case "noise":
                unit = natural_unit(measures[part["measure"]], one)
                name = f"{_KINDS[measures[part['measure']]['kind']]} ({users[part['measure']]})"
                words = (name, *_noise(part, unit))
            case "keys":
                counted = users.get(part["measure"])
                name = f"keys, and their units ({counted})" if counted else "which keys are shown"
                words = (name, *_selection(part))
            case "tree":
                shape = _tree(part, measures[part["measure"]])
                name = f"tree of {shape.bins:,} ranges ({users[part['measure']]})"
                unit = Fraction(1, one)
                off = _tree_error(record, part, shape, unit)
                words = (name, *_noise(part, unit)[:2], _rank_error(off))
            case "choice":
                many = f"{part['picks']} of {len(part['candidates'])}"
                moved = Fraction(part["sensitivity"]["distance"]) / one
                noise = f"exponential, {len(part['candidates']):,} candidates"
                words = (
                    f"which pairs are measured ({many})",
                    f"{grouped_up(moved)} rows",
                    noise,
                    "-",
                )
            case _:
                name = named(part["aggregate"], 40) + _ROLES.get(part["role"], "")
                sensitivity, noise, off = _rank(part, one)
                words = (name, sensitivity, noise, _rank_error(off))
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
                off=off,
            )
        )
        if "single" in part:
            alone = {"keys_per_person": 1, "mechanism": "threshold", **part["single"]}
            sensitivity, noise, error = _selection(alone)
            rows.append(
                PlanRow(
                    what="   by units with one key",
                    sensitivity=sensitivity,
                    noise=noise,
                    error=error,
                    price="",
                    share=0.0,
                )
            )
    return rows


def _in_rho(part: Mapping[str, Any]) -> bool:
    """Whether a part is paid for in rho: selection by Gaussian noise may have a rho and not."""
    return part.get("rho") is not None and (part["part"] != "keys" or part["epsilon"] is None)


def natural_unit(measure: Mapping[str, Any], one: int) -> Fraction:
    """What 1 in the integers of a measure means in rows, units or amounts of the table.

    >>> natural_unit({"kind": "values", "step": "1/100"}, 1 << 20) == Fraction(1, 100 << 20)
    True
    """
    step = Fraction(measure["step"])
    factor = {"values": step, "squares": step**2}.get(measure["kind"], Fraction(1))
    return factor if measure["kind"] in ("units", "distinct") else factor / one


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
        sensitivity = (
            f"{grouped_up(Fraction(part['sensitivity']['l1']) * unit)} in all groups together"
        )
        noise = f"Laplace, scale {grouped_up(law.scale * unit)}"
    else:
        law = DiscreteGaussian(Fraction(part["variance"]))
        squared = Fraction(part["sensitivity"]["l2_squared"])
        sensitivity = f"{grouped_up(root_bounds(squared * unit**2)[1])} (Euclidean)"
        noise = f"Gaussian, deviation {grouped_up(root_bounds(law.variance * unit**2)[1])}"
    return sensitivity, noise, f"± {grouped_up(law.quantile(1 - _TAIL / 2) * unit)}"


def _selection(part: Mapping[str, Any]) -> tuple[str, str, str]:
    own, one = many(part["keys_per_person"], "key"), part.get("weight_one", 1)
    least = f"shown from about {-(-part['threshold'] // one):,} units on"
    if part["mechanism"] == "threshold":
        return f"{own}, by 1 each", f"Laplace, scale {grouped_up(Fraction(part['scale']))}", least
    deviation = root_bounds(Fraction(part["variance"]))[1] / one
    each = "1 each" if one == 1 else "1 over the root of their number"
    return f"{own}, by {each}", f"Gaussian, deviation {grouped_up(deviation)}", least


def _rank(part: Mapping[str, Any], one: int) -> tuple[str, str, Fraction]:
    row = one * Fraction(part["level"]).denominator
    distance = Fraction(part["sensitivity"]["distance"])
    draw = Exponential(sensitivity=distance, epsilon=Fraction(part["epsilon"]))
    far = math.ceil(draw.accuracy(_TAIL, candidates=max(part["candidates"], 2)))
    return (
        f"{grouped_up(distance / row)} in rank",
        f"exponential, {part['candidates']:,} candidates",
        Fraction(max(far, 1)) / row,
    )


def _rank_error(off: Fraction | None) -> str:
    return "unknown" if off is None else f"within {grouped_up(off)} rows of the rank"


def _tree(part: Mapping[str, Any], measure: Mapping[str, Any]) -> Tree:
    edges = measure["edges"]
    bins = edges["bins"] if isinstance(edges, Mapping) else len(edges) - 1
    return Tree(bins=bins, branching=part["branching"], levels=part["levels"])


def _tree_error(
    record: Mapping[str, Any], part: Mapping[str, Any], shape: Tree, unit: Fraction
) -> Fraction | None:
    """By how many rows the rank of the worst quantile may be off; None if that is unknown."""
    made = {recipe["aggregate"]: recipe["measures"] for recipe in record["plan"]["recipes"]}
    levels = {
        Fraction(one["level"])
        for one in record["asked"]["query"]["aggregates"]
        if one["function"] == "quantile" and made[one["name"]]["bins"] == part["measure"]
    } or {Fraction(1, 2)}
    law: DiscreteLaplace | DiscreteGaussian
    if part["mechanism"] == "laplace":
        law = DiscreteLaplace(Fraction(part["scale"]))
    else:
        law = DiscreteGaussian(Fraction(part["variance"]))
    found = [worst_reach(shape, law, level) for level in levels]
    known = [reach for reach in found if reach is not None]
    return max(known) * unit if known else None


def _exact_or_up(number: Fraction) -> str:
    """Exact if that is short, so that three thirds are seen to be one; else rounded up.

    >>> _exact_or_up(Fraction(1, 3)), _exact_or_up(Fraction(2, 3_000_001))
    ('1/3', '6.667e-7')
    """
    exact = amount(number, up=True)
    return exact if len(exact) <= _SHORT else grouped_up(number)


def many(count: int, noun: str) -> str:
    """A number of things in words: 1 row, 2,000 rows."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
