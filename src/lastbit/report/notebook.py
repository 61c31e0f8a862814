"""Plans and tables as notebooks show them: small pieces of HTML without styles of their own."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup, escape

from lastbit.exact import exact_text
from lastbit.report.page import printable
from lastbit.report.plan import UNTOUCHED, PlanFacts
from lastbit.tables import Column, DataCard, unit_name

_MOST_KEYS = 6
_LEFT = "text-align:left"


def plan_in_notebook(facts: PlanFacts) -> Markup:
    """A plan: its mechanisms, then what is said of the whole."""
    headings, *rows = facts.table
    said = Markup("").join(
        Markup("<li><b>{}</b>: {}</li>").format(name, words) for name, words in facts.facts
    )
    return Markup("<p><b>{}</b></p>{}<ul>{}</ul><p>{}</p>").format(
        facts.title, _table(headings, rows), said, UNTOUCHED
    )


def table_in_notebook(title: str, card: DataCard) -> Markup:
    """A table, by what is declared of it: columns with types, bounds and keys; no row is read."""
    columns = card.columns.values()
    rows = [(printable(one.name, 60), one.stored_type, *_known(one)) for one in columns]
    unit = "each row is a unit" if card.unit is None else f"rows belong to {unit_name(card.unit)}"
    words = f"{unit}; {card.neighbours.relation}. Nothing has been read or charged."
    shown = _table(("column", "type", "bounds", "keys"), rows)
    return Markup("<p><b>{}</b></p>{}<p>{}</p>").format(
        printable(" ".join(title.split()), 2000), shown, words
    )


def _known(column: Column) -> tuple[str, str]:
    """Bounds and keys, cut where there are many."""
    ends = [] if column.bounds is None else list(column.bounds)
    numbers = column.number_bounds is not None
    bounds = " to ".join(exact_text(end) if numbers else str(end) for end in ends)  # type: ignore[arg-type]
    if column.keys is None:
        return bounds, ""
    some = ", ".join(printable(str(key), 24) for key in column.keys[:_MOST_KEYS])
    more = len(column.keys) - _MOST_KEYS
    return bounds, some + (f" and {more} more" if more > 0 else "")


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Markup:
    def line(cells: Sequence[str], tag: str) -> Markup:
        parts = (f"<{tag} style='{_LEFT}'>{escape(cell)}</{tag}>" for cell in cells)
        return Markup(f"<tr>{''.join(parts)}</tr>")

    body = Markup("").join(line(row, "td") for row in rows)
    head = line(headings, "th")
    return Markup("<table><thead>{}</thead><tbody>{}</tbody></table>").format(head, body)
