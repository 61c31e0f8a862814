"""The record of an answer as a small table: in a terminal or log, and in a notebook.

Numbers have the digits and intervals of the report (`report/answer_tables.py`), so that an answer
reads alike wherever it is shown.
"""

from __future__ import annotations

from html import escape
from typing import Any

from lastbit.report import AnswerTable, table_of, totals_of

_MOST_ROWS = 40
_TEXT_WIDTH = 100
_NOTEBOOK_WIDTH = 160
_EMPTY = "No group is shown: none was large enough, or none met the condition."


def text_table(record: dict[str, Any]) -> str:
    """Aligned columns, the promise, and the notes."""
    lines = _lines(table_of(record, width=_TEXT_WIDTH, most=_MOST_ROWS))
    lines = lines if record["rows"] else [_EMPTY]
    lines += _below(record)
    return "\n".join([*lines, "", record["guarantee"], *(f"- {n}" for n in record["notes"])])


def html_table(record: dict[str, Any]) -> str:
    """The same for a notebook; everything is escaped."""
    table = table_of(record, width=_NOTEBOOK_WIDTH, most=_MOST_ROWS)
    head = "".join(f"<th{_style(table, i)}>{escape(h)}</th>" for i, h in enumerate(table.headings))
    body = "".join(
        f"<tr>{''.join(f'<td{_style(table, i)}>{escape(c)}</td>' for i, c in enumerate(row))}</tr>"
        for row in table.rows
    )
    shown = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    words = "<br>".join(map(escape, [*_below(record), record["guarantee"]]))
    notes = "".join(f"<li>{escape(note)}</li>" for note in record["notes"])
    return (
        f"{shown if record['rows'] else f'<p>{_EMPTY}</p>'}<p>{words}</p>"
        f"<details><summary>How to read it</summary><ul>{notes}</ul></details>"
    )


def _lines(table: AnswerTable) -> list[str]:
    rows = [table.headings, *table.rows]
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            cell.rjust(width) if i in table.numbers else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    return [lines[0], "  ".join("-" * width for width in widths), *lines[1:]]


def _below(record: dict[str, Any]) -> list[str]:
    """What stands between the numbers and the promise."""
    left = len(record["rows"]) - _MOST_ROWS
    more = [f"... and {left:,} more rows"] if left > 0 else []
    return more + [f"total of {name}: {total}" for name, total in totals_of(record)]


def _style(table: AnswerTable, place: int) -> str:
    side = "right" if place in table.numbers else "left"
    quiet = ";opacity:.7" if table.headings[place].startswith("±") else ""
    return f" style='text-align:{side};font-variant-numeric:tabular-nums{quiet}'"
