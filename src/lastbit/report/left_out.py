"""What a question leaves out or changes, in sentences: one for each rule that can (`rules_of`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from fractions import Fraction
from types import MappingProxyType

from lastbit.report.page import amount, grouped_up, listed
from lastbit.tables import Query, Rule, WrittenPlan, columns_in, rules_of, unit_name

_WORDS: Mapping[str, str] = MappingProxyType(
    {
        "no_unit": "Rows without a {name} are left out.",
        "max_groups": "Each {name} counts in at most {most} groups of {columns}: of any other it "
        "is left out.",
        "no_match": "Rows that match no row of {name} are left out.",
        "one_match": "Rows that match several rows of {name} are left out.",
        "joined_rows": "At most {most} rows of one unit in {name} are joined, chosen afresh: "
        "others are left out.",
        "keys": "Rows whose {name} is not one of the listed keys are left out.",
        "key_bounds": "Rows with {name} below {low} count at {low}, those above {high} at {high}.",
        "bins": "Rows with {of} below {low} or above {high} are left out: no bin of {name} "
        "holds them.",
        "edges": "Values of {of} below {low} or above {high} are left out of {columns}.",
        "bounds": "In {columns} values of {of} below {low} count as {low}, those above {high} as "
        "{high}.",
        "unit_bounds": "In {name} values of {of} below {low} count as {low}, those above {high} "
        "as {high}.",
        "promised": "The card promises that {of} is never missing: in {columns} rows without it "
        "count.",
        "having": "HAVING leaves groups out by their noisy numbers.",
        "limit": "LIMIT leaves out all groups but {most}.",
    }
)
"""Of max_rows, distinct values and thresholds the notes of the record speak."""


def left_out_notes(plan: WrittenPlan, query: Query) -> Iterator[str]:
    """What this question leaves out, or changes, and by which rule."""
    rules = rules_of(plan, query)
    for rule in rules:
        if rule.code in _WORDS:
            yield _WORDS[rule.code].format_map(_facts(rule))
    steps = [rule.step for rule in rules if rule.step is not None]
    if steps:
        columns = dict.fromkeys(name for rule in rules if rule.step for name in rule.columns)
        coarsest = grouped_up(max(steps))
        yield f"In {_names(columns)} values are rounded to multiples of {coarsest} or less."
    places = {
        "condition": lambda _: ("WHERE",),
        "no_key": lambda rule: (rule.name,),
        "missing": lambda rule: rule.columns,
    }
    missing = [name for rule in rules if rule.code in places for name in places[rule.code](rule)]
    if missing:
        which = _names(dict.fromkeys(missing))
        yield f"A value that is missing, or cannot be read, leaves its row out of {which}."


def _names(names: Iterable[str]) -> str:
    return listed([*map(unit_name, names)] or ["what groups are chosen by"])


def _facts(rule: Rule) -> dict[str, str]:
    values = () if rule.of is None else dict.fromkeys(one.name for one in columns_in(rule.of))
    ends: tuple[Fraction | date, ...] = rule.ends or ()
    return {
        "name": unit_name(rule.name),
        "of": _names(values),
        "columns": _names(rule.columns),
        "most": f"{rule.most or 0:,}",
        **{
            name: str(end) if isinstance(end, date) else amount(end, up=True)
            for name, end in zip(("low", "high"), ends, strict=False)
        },
    }
