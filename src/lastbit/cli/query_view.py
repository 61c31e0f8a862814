"""An answer as a page of the terminal: numbers with their ±, the price, what is left, notes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lastbit.cli.page import Part
    from lastbit.ledger import Account
    from lastbit.tables import Plan

MOST_ROWS = 60
ROOM = 76  # a table is set in by two blanks on either side
NOTE_WIDTH = 76


def answer_parts(record: Mapping[str, Any], account: Account, *, charged: bool) -> tuple[Part, ...]:
    """The whole page."""
    from lastbit.cli.page import Facts, Heading
    from lastbit.report import cost_text, totals_of

    price = cost_text(record["cost"])
    verdict = price if charged else "recorded, no charge"
    facts = [("in all", f"{total} {name}") for name, total in totals_of(record)]
    facts.append(("promise", str(record["guarantee"])))
    if not charged:
        facts.append(("paid", f"{price}, when it was first asked"))
    if record.get("entry") is not None:
        facts.append(("ledger", f"entry {record['entry']['sequence']}"))
    return (
        Heading(_title(record, 78 - len(verdict)), verdict),
        *answer_table(record),
        Facts((*facts, *budget_rows(account))),
        *note_parts(record),
    )


def plan_parts(plan: Plan) -> tuple[Part, ...]:
    """What will be done, at which price and with which error."""
    from lastbit.cli.page import Columns, Facts, Heading, Words
    from lastbit.report import bounding_sentences, composition_sentence, cost_text, plan_rows

    record = {"plan": plan.to_json(), "asked": {"query": plan.query.to_json()}}
    rows = tuple((row.what, row.price, row.noise, row.error) for row in plan_rows(record))
    return (
        Heading(_title(record, 44), f"{cost_text(plan.cost.to_json())}, not yet paid"),
        Facts(
            (
                ("promise", plan.guarantee),
                ("limits", " ".join(bounding_sentences(record))),
                ("adds up", composition_sentence(record)),
            )
        ),
        Columns(("what", "price", "noise", "95 % within"), rows),
        Words("Nothing has been read or charged."),
    )


def price_parts(plan: Plan, account: Account) -> tuple[Part, ...]:
    """That it can be asked, and the budget as it would be afterwards."""
    from lastbit.cli.page import Facts, Heading, Words
    from lastbit.report import cost_text

    after = account.charged(plan.cost)
    return (
        Heading("It can be asked", cost_text(plan.cost.to_json())),
        Facts((("promise", plan.guarantee), *budget_rows(after))),
        Words("The budget is shown as it would be afterwards. Nothing has been read or charged."),
    )


def budget_rows(account: Account) -> tuple[tuple[str, str], ...]:
    """A bar for each currency: what is spent, what is left."""
    from lastbit.cli.ledger_view import account_parts
    from lastbit.cli.page import Facts

    bars = account_parts(account)[1]
    assert isinstance(bars, Facts)
    return bars.rows


def answer_table(record: Mapping[str, Any]) -> tuple[Part, ...]:
    """The numbers; a line for each group if that fits."""
    from lastbit.cli.page import Columns, Words
    from lastbit.report import table_of

    if not record["rows"]:
        return (Words("No group is shown: none was large enough, or none met the condition."),)
    table = table_of(record, width=ROOM, most=MOST_ROWS)
    parts: list[Part] = [Columns(table.headings, table.rows, numbers=table.numbers)]
    if table.left_out:
        parts.append(
            Words(f"... and {table.left_out:,} more groups: --out answer.csv has them all")
        )
    return tuple(parts)


def note_parts(record: Mapping[str, Any]) -> tuple[Part, ...]:
    """The notes, each folded below its dash."""
    import textwrap

    from lastbit.cli.page import Words
    from lastbit.report import printable

    notes = [
        textwrap.fill(
            printable(note, 1000), NOTE_WIDTH, initial_indent="- ", subsequent_indent="  "
        )
        for note in record["notes"]
    ]
    return (Words("\n".join(notes)),) if notes else ()


def _title(record: Mapping[str, Any], most: int) -> str:
    from lastbit.report import title_of

    text = title_of(record)
    return text if len(text) <= most else text[: max(most - 3, 0)] + "..."
