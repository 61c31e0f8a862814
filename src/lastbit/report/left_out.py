"""What a question leaves out or changes, in sentences: one for each rule that can (`rules_of`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from types import MappingProxyType

from lastbit.report.page import amount, grouped_up, listed
from lastbit.tables import Query, Rule, WrittenPlan, columns_in, rules_of, unit_name

_WORDS: Mapping[str, str] = MappingProxyType(
    {
        "no_unit": "lastbit leaves out rows without a {name}.",
        "max_groups": "{columns}: each {name} counts in at most {groups}.",
        "no_match": "lastbit leaves out rows that match no row of {name}.",
        "copies": "lastbit joins at most {most} rows of {name} with one id and one unit.",
        "one_match": "lastbit leaves out rows that match several rows of {name}.",
        "no_element": "lastbit leaves out rows whose list {name} is missing or empty.",
        "elements": "lastbit leaves out elements of a list {name} after the first {most}.",
        "joined_rows": "lastbit joins at most {most} rows of one unit from {name}, at random.",
        "keys": "lastbit leaves out rows whose {name} is not a declared key.",
        "key_bounds": "{name}: rows below {low} count at {low}, and rows above {high} at {high}.",
        "bins": "{name}: lastbit leaves out rows with {of} below {low} or above {high}.",
        "edges": "{columns}: lastbit leaves out rows with {of} below {low} or above {high}.",
        "bounds": "{columns}: {of} below {low} counts as {low}, and above {high} as {high}.",
        "unit_bounds": "{name}: {of} below {low} counts as {low}, and above {high} as {high}.",
        "promised": "{columns}: rows without {of} count too; the card promises there are none.",
        "having": "HAVING selects groups by their noisy numbers.",
        "limit": "LIMIT shows {groups} and leaves out the others.",
    }
)
"""Of max_rows, distinct values and thresholds the notes of the record speak."""


def left_out_notes(plan: WrittenPlan, query: Query) -> Iterator[str]:
    """What this question leaves out, or changes, and by which rule."""
    rules = rules_of(plan, query)
    yield from (_WORDS[rule.code].format_map(_facts(rule)) for rule in rules if rule.code in _WORDS)
    steps = {rule.step: rule for rule in rules if rule.step is not None}
    if steps:
        columns = dict.fromkeys(name for rule in steps.values() for name in rule.columns)
        coarsest = grouped_up(max(steps))
        yield f"{_names(columns)}: lastbit rounds values to multiples of {coarsest} or less."
    lacking = [rule for rule in rules if rule.code in ("condition", "no_key", "missing")]
    if lacking:
        which = (name for rule in lacking for name in rule.columns or [rule.name or "WHERE"])
        places = _names(dict.fromkeys(which))
        yield f"{places}: lastbit leaves out rows with a missing or unreadable value."


def _names(names: Iterable[str]) -> str:
    return listed([*map(unit_name, names)] or ["what groups are chosen by"])


def _facts(rule: Rule) -> dict[str, str]:
    values = () if rule.of is None else dict.fromkeys(one.name for one in columns_in(rule.of))
    ends = [str(end) if isinstance(end, date) else amount(end, up=True) for end in rule.ends or ()]
    return {
        "name": unit_name(rule.name),
        "of": _names(values),
        "columns": _names(rule.columns),
        "most": f"{rule.most or 0:,}",
        "groups": "1 group" if rule.most == 1 else f"{rule.most or 0:,} groups",
        **dict(zip(("low", "high"), ends, strict=False)),
    }
