"""Answers beside the truth, which only a made-up table may show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from lastbit.cli.page import Part

Truth: TypeAlias = Mapping[tuple[Any, ...], tuple[Any, ...]]


def beside_the_truth(record: Mapping[str, Any], truth: Truth) -> Part:
    """The answer with the true number right of every interval."""
    from lastbit.cli.page import Columns
    from lastbit.report import shown_cell

    names = [column["name"] for column in record["columns"] if column["role"] == "value"]
    keys = [column["name"] for column in record["columns"] if column["role"] == "key"]
    if not keys:
        (row,), (true,) = record["rows"], truth.values()
        cells = zip(names, row["cells"], true, strict=True)
        shown = [(name, shown_cell(cell), _true(number, cell)) for name, cell, number in cells]
        rows = [(name, cell.value, cell.interval, number) for name, cell, number in shown]
        return Columns(("what", "value", "± 95 %", "truth"), tuple(rows), numbers=(1, 2, 3))
    headings = [*keys, *(word for name in names for word in (name, "± 95 %", "truth"))]
    lines = []
    for row in record["rows"]:
        group = tuple(key["value"] for key in row["keys"])
        line = list(map(str, group))
        for cell, number in zip(row["cells"], truth[group], strict=True):
            shown_value = shown_cell(cell)
            line += [shown_value.value, shown_value.interval, _true(number, cell)]
        lines.append(tuple(line))
    return Columns(tuple(headings), tuple(lines), numbers=tuple(range(len(keys), len(headings))))


def unseen(record: Mapping[str, Any], truth: Truth) -> Iterator[str]:
    """Which groups are in the table and not in the answer."""
    shown = {tuple(key["value"] for key in row["keys"]) for row in record["rows"]}
    hidden = sorted(set(truth) - shown)
    if hidden:
        names = ", ".join(f"{' '.join(group)} ({truth[group][0]})" for group in hidden)
        yield (
            f"Not shown, since too few patients were there: {names}. The answer does not even say "
            "that they exist."
        )


def coverage(records: Sequence[Mapping[str, Any]], truths: Sequence[Truth]) -> tuple[int, int]:
    """How many intervals hold the true number, and how many there are."""
    held = cells = 0
    for record, truth in zip(records, truths, strict=True):
        for row in record["rows"]:
            group = tuple(key["value"] for key in row["keys"])
            for cell, number in zip(row["cells"], truth[group], strict=True):
                cells += 1
                held += cell["low"] <= number <= cell["high"]
    return held, cells


def _true(number: float | int, cell: Mapping[str, Any]) -> str:
    """The true number with as many digits as the answer has."""
    from lastbit.report import shown_cell

    return shown_cell({**cell, "value": number}).value
