"""What a question leaves out or changes, in sentences: one for each rule that can (`rules_of`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from types import MappingProxyType

from lastbit.report.page import amount, listed
from lastbit.tables import Query, Rule, WrittenPlan, columns_in, rules_of, unit_name

_READ = "missing, or cannot be read or computed"
_WORDS: Mapping[str, str] = MappingProxyType(
    {
        "no_unit": "Rows without a {name} are left out.",
        "max_groups": "Each {name} counts in at most {most} groups of {columns}: of any other it "
        "is left out.",
        "no_match": "Rows that match no row of {name} are left out.",
        "one_match": "Rows that match several rows of {name} are left out.",
        "joined_rows": "At most {most} rows of one unit in {name} are joined, chosen afresh: "
        "others are left out.",
        "condition": f"Rows are left out where a value that WHERE looks at is {_READ}.",
        "keys": "Rows whose {name} is not among the {most} keys listed are left out.",
        "no_key": f"Rows are left out where {{name}} is {_READ}.",
        "key_bounds": "Rows with {name} below {low} count at {low}, those above {high} at {high}.",
        "bins": "Rows with {of} below {low} or above {high} are left out: no bin of {name} "
        "holds them.",
        "edges": "Values of {of} below {low} or above {high} are left out of {columns}.",
        "bounds": "In {columns} values of {of} below {low} count as {low}, those above {high} as "
        "{high}.",
        "unit_bounds": "In {name} values of {of} below {low} count as {low}, those above {high} "
        "as {high}.",
        "step": "In {columns} values of {of} are rounded to multiples of {step}.",
        "missing": f"Rows are left out of {{columns}} where the value is {_READ}.",
        "promised": "The card promises that {of} is never missing: in {columns} rows without it "
        "count.",
        "having": "HAVING leaves groups out by their noisy numbers.",
        "limit": "LIMIT leaves out all groups but {most}.",
    }
)
"""Of max_rows, distinct values and thresholds the notes of the record speak."""


def left_out_notes(plan: WrittenPlan, query: Query) -> Iterator[str]:
    """What this question leaves out, or changes, and by which rule."""
    for rule in rules_of(plan, query):
        if rule.code in _WORDS:
            yield _WORDS[rule.code].format_map(_facts(rule))


def _facts(rule: Rule) -> dict[str, str]:
    names = dict.fromkeys(unit_name(one.name) for one in columns_in(rule.of)) if rule.of else ()
    numbers = zip(("low", "high"), rule.ends or (), strict=False)
    return {
        "name": unit_name(rule.name),
        "of": listed(list(names)) if names else "a constant",
        "columns": listed([*map(unit_name, rule.columns)])
        if rule.columns
        else "what groups are chosen by",
        "most": f"{rule.most or 0:,}",
        "step": "" if rule.step is None else amount(rule.step, up=True),
        **{
            name: str(end) if isinstance(end, date) else amount(end, up=True)
            for name, end in numbers
        },
    }
