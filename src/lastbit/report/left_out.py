"""What a question leaves out or changes, in sentences: one for each rule that can (`rules_of`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from types import MappingProxyType

from lastbit.report.page import amount, grouped_up, listed
from lastbit.tables import Query, Rule, WrittenPlan, columns_in, rules_of, unit_name

_WORDS: Mapping[str, str] = MappingProxyType(
    {
        "no_unit": "Rows without a {name} are left out.",
        "max_groups": "Each {name} counts in at most {groups} of {columns}, and in no other.",
        "no_match": "Rows that match no row of {name} are left out.",
        "copies": "Of rows of {name} with one id and one unit, at most {most} are gone through.",
        "one_match": "Rows that match several rows of {name} are left out.",
        "joined_rows": "Of {name} at most {most} rows of one unit are joined, chosen afresh.",
        "keys": "Rows whose {name} is not one of the listed keys are left out.",
        "key_bounds": "Rows with {name} below {low} count at {low}, those above {high} at {high}.",
        "bins": "Rows with {of} below {low} or above {high} are in no bin of {name}, and left out.",
        "edges": "Values of {of} below {low} or above {high} are left out of {columns}.",
        "bounds": "In {columns} {of} counts as {low} below {low}, and as {high} above {high}.",
        "unit_bounds": "In {name} {of} counts as {low} below {low}, and as {high} above {high}.",
        "promised": "Rows without {of} count in {columns}: the card promises that there are none.",
        "having": "HAVING leaves groups out by their noisy numbers.",
        "limit": "LIMIT leaves out all groups but {most}.",
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
        yield f"In {_names(columns)} values are rounded to multiples of {coarsest} or less."
    lacking = [rule for rule in rules if rule.code in ("condition", "no_key", "missing")]
    if lacking:
        which = (name for rule in lacking for name in rule.columns or [rule.name or "WHERE"])
        places = _names(dict.fromkeys(which))
        yield f"A value that is missing, or cannot be read, leaves its row out of {places}."


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
