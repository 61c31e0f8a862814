"""What is known of a plan, for every screen: what protects whom, each mechanism, error and price.

`Plan.explain()`, `lastbit query --explain`, the page of an answer, the claim of its certificate and
the checklist of a deployment all say what is gathered here (`PlanFacts`), from the plan and the
question as typed values. The record of a saved answer is read into them once (`read_record`), and
refused if it is malformed. Numbers are rounded to the safe side: errors, sensitivities, prices and
the width of noise up.

Checked  tests/report/test_plan.py
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any, TypeAlias

from lastbit.errors import InvalidParameter, LastbitError
from lastbit.exact import root_bounds
from lastbit.mechanisms import Exponential
from lastbit.report.left_out import left_out_notes
from lastbit.report.page import MALFORMED, amount, grouped_up, listed, price, printable
from lastbit.tables import (
    AnyPart,
    Cost,
    GaussianPart,
    GaussianSelection,
    LaplacePart,
    MarginalsPlan,
    Measure,
    NoisePart,
    PairConversion,
    PairSelection,
    PartitionSelection,
    Plan,
    Query,
    RankPart,
    Selection,
    SingleKeys,
    TreePart,
    WrittenPlan,
    rules_of,
    worst_reach,
)

Record: TypeAlias = Mapping[str, Any]
Named: TypeAlias = Callable[[object, int], str]
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
        "above": "count and sum together",
        "bins": "rows in each range",
        "units": "number of units",
        "distinct": "number of distinct values",
    }
)
_MANY_UNITS = 200  # a threshold that many tables have no key above
UNTOUCHED = "Nothing has been read or charged."


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The record of an answer, with its plan and its question as they are."""

    record: Record
    plan: WrittenPlan
    query: Query

    @property
    def facts(self) -> PlanFacts:
        """What is known of its plan."""
        return plan_facts(self.plan, self.query, str(self.record["guarantee"]))


def read_record(record: Record) -> Reading:
    """The record of an answer that was saved; a malformed one is refused."""
    try:
        plan = WrittenPlan.from_json(record["plan"])
        return Reading(record=record, plan=plan, query=Query.from_json(record["asked"]["query"]))
    except (LastbitError, *MALFORMED) as error:
        raise InvalidParameter(
            "record", problem="is not an answer's", remedy="pass what save() wrote"
        ) from error


@dataclass(frozen=True, slots=True)
class PlanRow:
    """One mechanism; `share` is its part of what is paid in its currency, from 0 to 1.

    `off` is by how many rows the rank of a quantile may be off, in 95 % of releases.
    """

    what: str
    sensitivity: str
    noise: str
    error: str
    off: Fraction | None = None
    price: str = ""
    share: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFacts:
    """What people read of a plan, of the answer to it, of its certificate and of a deployment."""

    title: str
    price: str
    promise: str
    limits: tuple[str, ...]
    composition: str
    rows: tuple[PlanRow, ...]
    hints: tuple[str, ...]
    chosen: tuple[str, ...] = ()
    """What a profile has chosen, or will choose."""
    expected: tuple[str, ...] = ()
    """The errors of all columns, where somebody knows how many rows there are."""
    before: str = ""
    """The price of the profile that is bought first, and that of all, where one is."""

    @property
    def facts(self) -> list[tuple[str, str]]:
        """What is said of the whole plan."""
        return [
            ("price", f"{self.price} for the whole answer{self.before}"),
            ("promise", self.promise),
            ("limits", " ".join(self.limits)),
            *([("chosen", " ".join(self.chosen))] if self.chosen else []),
            ("adds up", self.composition),
            *(("expect", words) for words in self.expected),
            *(("hint", hint) for hint in self.hints),
        ]

    @property
    def table(self) -> list[tuple[str, str, str, str]]:
        """Headings, and a row for each mechanism."""
        rows = ((row.what, row.price, row.noise, row.error) for row in self.rows)
        return [("what", "price", "mechanism", "noise"), *rows]

    def __str__(self) -> str:
        widths = [max(map(len, cells)) for cells in zip(*self.table, strict=True)]
        lines = [self.title]
        for name, words in self.facts:
            lines += textwrap.wrap(f"{name:9} {words}", _WIDTH, subsequent_indent=" " * 10)
        for row in self.table:
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            lines.append("  " + "   ".join(cells).rstrip())
        return "\n".join([*lines, UNTOUCHED])


def plan_words(plan: Plan | MarginalsPlan) -> PlanFacts:
    """The words for a plan that was just made."""
    facts = plan_facts(plan.written, plan.query, plan.guarantee)
    facts = replace(facts, hints=(*facts.hints, *_rank_hints(facts.rows, plan)))
    if not isinstance(plan, Plan):
        return facts
    first, both = (price(cost.to_json()) for cost in (plan.before, plan.before + plan.cost))
    before = f", and {first} for a profile before: {both} in all" if plan.before != Cost() else ""
    return replace(facts, chosen=plan.chosen, before=before)


def plan_facts(
    plan: WrittenPlan, query: Query, guarantee: str, *, named: Named = printable
) -> PlanFacts:
    """What is known of a plan; `named` makes the names of columns fit to print."""
    title = f"{question_title(plan, query)}, from {printable(plan.table, 60)}"
    if plan.marginals is not None:
        assert plan.groups is not None
        title += f" ({many(plan.groups, 'cell')})"
    elif query.keys:
        keys = plan.groups
        title += f" ({'keys found privately' if keys is None else many(keys, 'declared key')})"
    cost = plan.cost.to_json()
    return PlanFacts(
        title=title,
        price=price(cost),
        promise=guarantee,
        limits=tuple(_limits(plan, query)),
        composition=_composition(plan),
        rows=tuple(_rows(plan, query, named)),
        hints=(*price_warnings(cost), *_hints(plan, query), *_derived(query)),
    )


MADE_UP = "Made-up rows"
"""How the title of an answer begins that is not about the table."""


def title_of(answer: Record | Reading, given: str | None = None) -> str:
    """The question in a line: n, cost by region; or the title that is given for it."""
    reading = answer if isinstance(answer, Reading) else read_record(answer)
    title = given or question_title(reading.plan, reading.query)
    return f"{MADE_UP}: {title}" if reading.record.get("made_up") else title


_PROFILES: Mapping[tuple[str, ...], str] = MappingProxyType(
    {
        ("units",): "profile: rows or groups of each unit",
        ("values",): "profile: how large values are",
    }
)
"""Of the histograms that choose limits: nobody wrote these names."""


def question_title(plan: WrittenPlan, query: Query) -> str:
    """What is asked for, in a line."""
    if query.selected in _PROFILES and query.aggregates[0].function == "histogram":
        return _PROFILES[query.selected]
    names = ", ".join(printable(name, 60) for name in query.selected)
    keys = ", ".join(printable(key.name, 60) for key in query.keys)
    if plan.marginals is not None:
        ways = {len(columns) for columns in plan.marginals}
        ways |= {2 for part in plan.parts if isinstance(part, PairSelection)}
        kinds = [word for number, word in ((1, "one-way"), (2, "two-way")) if number in ways]
        return f"{' and '.join(kinds)} tables of {keys}"
    return f"{names} by {keys}" if keys else names


def unit_word(unit: str | None) -> str:
    """What the privacy unit of a plan or a card is called.

    >>> unit_word("patient_id"), unit_word(None)
    ('patient_id', 'row')
    """
    return "row" if unit is None else printable(unit, 60)


def bound_words(unit: str | None, most: int) -> str:
    """For how much one unit counts."""
    if unit is None:
        return "Each row counts once."
    if most == 1:
        return f"Each {unit_word(unit)} is counted once."
    whose = f"Each {unit_word(unit)} counts for at most {many(most, 'row')} in all"
    return f"{whose}; with more rows, each weighs less."


def _limits(plan: WrittenPlan, query: Query) -> Iterator[str]:
    """The contribution bounds: what one privacy unit may count for."""
    unit = unit_word(plan.unit)
    if plan.unit is None:
        yield "Each row is a different person."
        return
    if query.per_unit is not None:
        yield f"Each row of the sub-query is made from the rows of one {unit}."
    yield f"{bound_words(plan.unit, plan.max_rows)} lastbit leaves out rows without a {unit}."
    for step in plan.through:
        named = printable(step["table"], 60)
        yield f"Rows reach their {unit} through {named}. lastbit leaves out rows that reach nobody."
    for name, table in plan.private.items():
        most = many(table.max_rows, "row")
        yield f"lastbit joins at most {most} of one {unit} from {printable(name, 60)}."
    for part in plan.parts:
        if isinstance(part, Selection):
            yield (
                f"At most {many(part.keys_per_person, 'group')} of each {unit} decide which keys "
                "are shown. All its rows count in the groups shown."
            )


def _composition(plan: WrittenPlan) -> str:
    """How the prices of the mechanisms add up to that of the answer."""
    conversion = plan.conversion
    if plan.composition == "basic":
        return "The ε of all mechanisms add up to the ε of the answer, and so do the δ."
    if conversion is None:
        return "The ρ of all mechanisms add up to the ρ of the answer."
    if isinstance(conversion, PairConversion):
        mu = grouped_up(conversion.mu)
        all_of_it = f"All noise together tells no more than Gaussian noise with μ = {mu}, which"
    else:
        all_of_it = f"The ρ of all mechanisms add up to {grouped_up(conversion.rho)}, which"
    epsilon, delta = amount(conversion.epsilon, up=True), amount(conversion.delta, up=True)
    implied = f"{all_of_it} implies ε = {epsilon} at δ = {delta}"
    if not any(isinstance(part, Selection) for part in plan.parts):
        return f"{implied}."
    added = "δ" if all(_paid(part)[0] == "ρ" for part in plan.parts) else "price"
    return f"{implied}; the {added} of partition selection is added."


_MOST_MEANT = (
    ("epsilon", Fraction(20), "ε", "hardly protects anybody: 1 is common, and 10 protects little"),
    ("rho", Fraction(5), "ρ", "hardly protects anybody: 0.1 is common, and 5 protects little"),
    ("delta", Fraction(1, 1000), "δ", "is large: with that probability nothing is promised"),
)
"""Prices above these promise next to nothing; rho = 5 is about epsilon = 20 at a usual delta."""


def price_warnings(cost: Mapping[str, str]) -> list[str]:
    """What to say of a price that hardly protects; it is allowed, and it may be meant.

    >>> price_warnings({"epsilon": "1", "delta": "1/1000000000", "rho": "0"})
    []
    >>> price_warnings({"epsilon": "30", "delta": "0", "rho": "0"})
    ['A price of ε = 30 hardly protects anybody: 1 is common, and 10 protects little.']
    """
    return [
        f"A price of {letter} = {amount(Fraction(cost[name]), up=True)} {words}."
        for name, most, letter, words in _MOST_MEANT
        if Fraction(cost[name]) > most
    ]


MOST_NOTES = 3  # below an answer; the others are one step away
_AT_MOST = re.compile(r" counts for at most \d+ rows| is counted once\.$")
_FIRST = (  # of all notes, and of those of the record those that say how to read its numbers
    re.compile("^A price of |^Of the price, "),
    re.compile(
        "^(Not recorded|From the record): |^These rows are made up|lastbit (also|did not) estimate"
    ),
    re.compile("noise ±|^Intervals hold|^The intervals of .* all together"),
    re.compile("^Groups with fewer|^A key is shown if|^Counts near that size"),
    re.compile("two-way tables were chosen privately"),
    _AT_MOST,
)
BIAS = "What limits leave out is bias: the ± does not show it."
TUNING = "To estimate the share of rows that count: `lastbit card tune`, lb.suggest_max_rows."

EXTREMES = (
    "MIN and MAX are near the ends: few rows lie beyond them. The exact ends would reveal one row."
)
EMPTY_GROUPS = (
    "Every declared key is listed, even without rows. If the interval of its count reaches 0, its "
    "other numbers may be noise alone."
)
_OF_VALUES = frozenset({"mean", "variance", "std", "quantile", "min", "max"})


def notes_of(answer: Record | Reading) -> list[str]:
    """What to know of an answer: its notes, what its price is worth, what the ± leaves out.

    The first three, which stand below the answer, say how to read its numbers.

    The notes in a record are known letter for letter to the independent checker. Those added here
    follow from its plan alone, so that answers saved earlier are shown with them too.
    """
    reading = answer if isinstance(answer, Reading) else read_record(answer)
    record, plan, query = reading.record, reading.plan, reading.query
    notes = [*price_warnings(record["cost"]), *map(str, record["notes"])]
    # of a unit each counts once; of an answer with whole intervals these say what was left out
    known = "whole" in record or query.per_unit is not None
    known |= plan.marginals is None and all(one.kind == "units" for one in plan.measures)
    place = next((at for at, note in enumerate(notes) if _AT_MOST.search(note)), len(notes))
    can = any(rule.code == "max_rows" for rule in rules_of(plan, query))
    said = [*notes[place : place + 1], *([] if known else [BIAS, TUNING])] if can else []
    notes[place : place + 1] = [*said, *left_out_notes(plan, query)]
    functions = {recipe.function for recipe in plan.recipes}
    if functions & {"min", "max"}:
        notes.append(EXTREMES)
    if query.keys and plan.groups is not None and functions & _OF_VALUES:
        notes.append(EMPTY_GROUPS)
    return sorted(notes, key=_rank)


def _rank(note: str) -> int:
    """Before how many kinds of notes this one must be read."""
    places = (place for place, kind in enumerate(_FIRST) if kind.search(note))
    return next(places, len(_FIRST))


def more_words(notes: Sequence[str]) -> str:
    """How many notes there are besides those that are shown; empty if there are none.

    >>> more_words(["one"] * 5), more_words(["one"] * 4), more_words(["one"] * 3)
    ('2 more notes', '1 more note', '')
    """
    left = len(notes) - MOST_NOTES
    return f"{left} more note{'s' * (left > 1)}" if left > 0 else ""


def _hints(plan: WrittenPlan, query: Query) -> Iterator[str]:
    """What would make the answer cheaper without asking for less."""
    users = _users(plan, printable)
    if plan.unit is not None and plan.max_groups in (None, plan.max_rows):
        yield from _bound_hints(plan, query, users)
    counts = [measure for measure in plan.measures if measure.kind in ("rows", "above")]
    apart = [m.name for m in counts if m.expression is not None and m.nullable]
    if len(counts) > 1 and apart:
        names = ", ".join(users[name] for name in apart)
        yield f"{names}: with nullable=False one count would serve all"
    for part in plan.parts:
        if not isinstance(part, Selection):
            continue
        least = part.threshold
        if isinstance(part, GaussianSelection):
            least = -(-part.threshold // part.weight_one)
            least = least if part.single is None else min(least, part.single.threshold)
        if least >= _MANY_UNITS:
            lower = "" if part.keys_per_person == 1 else "declare a smaller max_groups, "
            yield (
                f"groups with fewer than about {least:,} units are withheld, perhaps all. Declare "
                f"the keys, {lower}give the keys more weight, or pay more"
            )


def _rank_hints(rows: tuple[PlanRow, ...], plan: Plan | MarginalsPlan) -> Iterator[str]:
    """Where a quantile may be far off in rank, by the rows that the card declares.

    Law      of N rows in G groups a group has N/G on average; a rank that is off by r of them is
             that of a level up to r G/N away
    """
    ranks = [(row.off, row.what) for row in rows if row.off is not None]
    most, groups = plan.card.rows, plan.query.groups
    if not most or not groups or not ranks:
        return
    off, what = max(ranks)
    share = math.ceil(100 * off * groups / most)
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
        f"{most // groups:,} rows, and the rank may be off by {min(share, 100)} % of them. To come "
        f"closer, {listed(ways, 'or')}"
    )


_FAR_OFF = 10  # per cent of the rows of a group
_FEW_VALUES, _FEW_GROUPS = 10, 8


def _bound_hints(plan: WrittenPlan, query: Query, users: Mapping[str | None, str]) -> Iterator[str]:
    """Where max_groups is not declared: what declaring it would change."""
    unit, most, inner = unit_word(plan.unit), plan.max_rows, query.per_unit
    kinds = {measure.name: measure.kind for measure in plan.measures}
    for part in plan.parts:
        if isinstance(part, NoisePart) and kinds[part.measure] == "distinct" and most > _FEW_VALUES:
            smaller = _shrunk(part, Fraction(_FEW_VALUES, most))
            now, then = (_noise(one, Fraction(1))[2] for one in (part, smaller))
            yield (
                f"{users[part.measure]}: one {unit} may name max_rows = {most:,} distinct "
                f"values, hence {now}; declaring max_groups = {_FEW_VALUES} would make it {then}"
            )
        if isinstance(part, Selection) and part.keys_per_person == 1 < most and inner is None:
            yield (
                f"one {unit} helps to show 1 key, since max_groups is not declared. "
                f"Declared, max_groups = {min(_FEW_GROUPS, most)} or more may show more, "
                "but raises the threshold"
            )
    if inner is not None and most > 1:
        clamp = ""
        if {"values", "squares", "above"} & set(kinds.values()):
            clamp = ", and narrow wide bounds by clamp(x, low, high)"
        yield (
            f"one {unit} may have max_rows = {most:,} rows of the sub-query; declare max_groups "
            f"(1 for one row each){clamp}"
        )


def _shrunk(part: NoisePart, factor: Fraction) -> NoisePart:
    """The noise of a part at the same price, where the sensitivity is smaller by this factor."""
    if isinstance(part, LaplacePart):
        return replace(part, scale=part.scale * factor)
    return replace(part, variance=part.variance * factor**2)


def _derived(query: Query) -> Iterator[str]:
    """What is released unseen, and which columns are free."""
    made = [printable(one.name, 60) for one in query.derived if one.name in query.selected]
    if made:
        yield f"{', '.join(made)}: computed from released numbers, at no further price"
    if query.hidden:
        unseen = ", ".join(printable(part.name, 60) for part in query.hidden)
        yield f"{unseen}: released as a part of the question, and not shown"


def _rows(plan: WrittenPlan, query: Query, named: Named) -> Iterator[PlanRow]:
    """The mechanisms in the order in which they run."""
    users = _users(plan, named)
    kinds = {measure.name: measure.kind for measure in plan.measures}
    # the noise on the other end is the same, and is paid for with that on the first
    parts = [p for p in plan.parts if kinds.get(getattr(p, "measure", None) or "") != "below"]
    paid = [_paid(part) for part in parts]
    for part, (letter, number) in zip(parts, paid, strict=True):
        total = sum((other for currency, other in paid if currency == letter), Fraction(0))
        delta = f", δ = {_exact_or_up(part.delta)}" if isinstance(part, Selection) else ""
        yield replace(
            _mechanism(part, plan, query, users, named),
            price=f"{letter} = {_exact_or_up(number)}{delta}",
            share=float(number / total) if total else 0.0,
        )
        if isinstance(part, GaussianSelection) and part.single is not None:
            yield PlanRow("   by units with one key", *_selection(part.single))


def _mechanism(
    part: AnyPart, plan: WrittenPlan, query: Query, users: Mapping[str | None, str], named: Named
) -> PlanRow:
    """What a part measures, how far that can move, its noise and its error."""
    measures = {measure.name: measure for measure in plan.measures}
    one = plan.weight_one
    match part:
        case LaplacePart() | GaussianPart():
            measure = measures[part.measure]
            what = f"{_KINDS[measure.kind]} ({users[part.measure]})"
            return PlanRow(what, *_noise(part, natural_unit(measure, one)))
        case PartitionSelection() | GaussianSelection():
            counted = users.get(part.measure)
            what = f"keys, and their units ({counted})" if counted else "which keys are shown"
            return PlanRow(what, *_selection(part))
        case TreePart():
            what = f"tree of {part.tree.bins:,} ranges ({users[part.measure]})"
            off = _tree_error(plan, query, part)
            sensitivity, noise, _ = _noise(part.noise, Fraction(1, one))
        case PairSelection():
            candidates = len(part.candidates)
            what = f"which pairs are measured ({part.picks} of {candidates})"
            moved = f"{grouped_up(Fraction(part.distance_sensitivity, one))} rows"
            return PlanRow(what, moved, f"exponential, {candidates:,} candidates", "-")
        case RankPart():
            what = named(part.aggregate, 40) + _ROLES.get(part.role, "")
            row = one * part.level.denominator
            distance = Fraction(part.distance_sensitivity)
            draw = Exponential(sensitivity=distance, epsilon=part.epsilon)
            far = math.ceil(draw.accuracy(_TAIL, candidates=max(part.candidates, 2)))
            off = Fraction(max(far, 1), row)
            sensitivity = f"{grouped_up(distance / row)} in rank"
            noise = f"exponential, {part.candidates:,} candidates"
    error = "unknown" if off is None else f"within {grouped_up(off)} rows of the rank"
    return PlanRow(what, sensitivity, noise, error, off)


def _paid(part: AnyPart) -> tuple[str, Fraction]:
    """The currency in which a part is paid for, and how much."""
    match part:
        case TreePart():
            return _paid(part.noise)
        case LaplacePart() | PartitionSelection():
            return "ε", part.epsilon
        case GaussianPart():
            return "ρ", part.rho
        case GaussianSelection():
            converted = part.conversion
            return ("ρ", part.rho) if converted is None else ("ε", converted.epsilon)
        case RankPart() | PairSelection():
            return ("ε", part.epsilon) if part.rho is None else ("ρ", part.rho)


def natural_unit(measure: Measure, one: int) -> Fraction:
    """What 1 in the integers of a measure means in rows, units or amounts of the table.

    >>> measure = Measure(name="m", kind="values", step=Fraction(1, 100))
    >>> natural_unit(measure, 1 << 20) == Fraction(1, 100 << 20)
    True
    """
    step = measure.step
    factor = {"values": step, "squares": step**2}.get(measure.kind, Fraction(1))
    if measure.kind in ("above", "below"):  # all of the steps are a row
        factor = Fraction(1, measure.highest)
    return factor if measure.kind in ("units", "distinct") else factor / one


def _users(plan: WrittenPlan, named: Named) -> dict[str | None, str]:
    """By measure, the columns of the answer that are made of it."""
    users: dict[str | None, list[str]] = {}
    for recipe in plan.recipes:
        for name in recipe.measures.values():
            users.setdefault(name, []).append(named(recipe.aggregate, 40))
    return {name: ", ".join(columns) for name, columns in users.items()}


def _noise(part: NoisePart, unit: Fraction) -> tuple[str, str, str]:
    if isinstance(part, LaplacePart):
        sensitivity = f"{grouped_up(part.l1_sensitivity * unit)} in all groups together"
        noise = f"Laplace, scale {grouped_up(part.scale * unit)}"
    else:
        squared = part.squared_l2_sensitivity * unit**2
        sensitivity = f"{grouped_up(root_bounds(squared)[1])} (Euclidean)"
        noise = f"Gaussian, deviation {grouped_up(root_bounds(part.variance * unit**2)[1])}"
    return sensitivity, noise, f"± {grouped_up(part.law.quantile(1 - _TAIL / 2) * unit)}"


def _selection(part: Selection | SingleKeys) -> tuple[str, str, str]:
    one = part.weight_one if isinstance(part, GaussianSelection) else 1
    keys = many(1 if isinstance(part, SingleKeys) else part.keys_per_person, "key")
    each = "1 each" if one == 1 else "1 over the root of their number"
    if isinstance(part, GaussianSelection):
        noise = f"Gaussian, deviation {grouped_up(root_bounds(part.variance)[1] / one)}"
    else:
        noise = f"Laplace, scale {grouped_up(part.scale)}"
    return f"{keys}, by {each}", noise, f"shown from about {-(-part.threshold // one):,} units on"


def _tree_error(plan: WrittenPlan, query: Query, part: TreePart) -> Fraction | None:
    """By how many rows the rank of the worst quantile may be off; None if that is unknown."""
    made = {recipe.aggregate: recipe.measures.get("bins") for recipe in plan.recipes}
    levels = {
        one.level
        for one in query.aggregates
        if one.level is not None and made.get(one.name) == part.measure
    } or {Fraction(1, 2)}
    reaches = (worst_reach(part.tree, part.law, level) for level in levels)
    known = [reach for reach in reaches if reach is not None]
    return Fraction(max(known), plan.weight_one) if known else None


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
