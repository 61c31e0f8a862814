"""`lastbit card tune` and `profile`: limits for a card, or for each question, found privately."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from lastbit.cli.ledger import account_of, budget_rows
from lastbit.cli.options import PATH, command, exact_number, flag, json_option, option, refusal
from lastbit.cli.output import Columns, Facts, Heading, Part, printable, show, show_json, waiting
from lastbit.errors import LastbitError
from lastbit.files import written_over
from lastbit.release import (
    LINES,
    BoundsSuggestion,
    MaxRowsSuggestion,
    Table,
    limit_words,
    option_row,
    suggest_bounds,
    suggest_max_rows,
)
from lastbit.report import price as price_words
from lastbit.tables import Cost, DataCard, read_card, rows_of

_SECTION = re.compile(r"^\s*\[(?P<name>[^\[\]]+)\]\s*(#.*)?$")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_BY_HAND = "paste the lines that are shown"


@command("card tune visits.toml --epsilon 0.05 --column cost")
@click.argument("file", type=PATH, metavar="CARD")
@option("--epsilon", "What is paid for it, in all.")
@option("--rho", "The same, where the table is paid in concentrated privacy.")
@option("--column", "Bounds for this column too; may be repeated.", "NAME", multiple=True)
@option("--between", "Values that are plausible, publicly: 0,1000.", "LOW,HIGH")
@option("--query", "About the rows and groups of this SELECT instead of all rows.", "SQL")
@option(
    "--groups", "How many groups answers will have; that of --query, else 1.", click.IntRange(1)
)
@option("--price", "The price of the answers to come.", default=Fraction(1))
@flag("--no-max-rows", "Bounds of columns only.")
@flag("--write", "Write the lines into the card; comments stay.")
@flag("--fresh", "Pay for new noise though an answer is recorded.")
@json_option
def tune(
    file: Path,
    epsilon: Fraction | None,
    rho: Fraction | None,
    column: Sequence[str],
    between: str | None,
    query: str | None,
    groups: int | None,
    price: Fraction,
    no_max_rows: bool,
    write: bool,
    fresh: bool,
    as_json: bool,
) -> None:
    """Choose max_rows, and bounds of columns, privately at a stated price.

    Releases a noisy histogram of how many rows units have, as any answer: charged to the ledger,
    recorded, certified. From it follows, at no further price, which share of the rows each max_rows
    would count. One is named for which bias and noise of a count are least together. With --column
    a second histogram finds bounds; the price is shared out equally.

    Later answers on the same data show the share of rows that count beside their numbers.
    """
    card = read_card(file)
    table = Table(rows=rows_of(card))
    questions = [*([] if no_max_rows or card.unit is None else [None]), *column]
    if not questions:
        problem = "has nothing to tune: each row is a unit, or --no-max-rows is given"
        raise refusal("the card", problem, "name a column by --column")
    if epsilon is None and rho is None:
        raise refusal("--epsilon", "is missing", "write, say, --epsilon 0.05")
    paid: dict[str, Any] = {
        name: None if amount is None else amount / len(questions)
        for name, amount in (("epsilon", epsilon), ("rho", rho))
    }
    ends = _between(between)
    for one in map(card.column, column):  # refused before anything is paid
        if one.type not in ("integer", "number"):
            raise refusal("--column", f"is of type {one.type}, no number", "name a number")
    if write:
        text = file.read_text(encoding="utf-8")
        for section in [("unit",) if name is None else ("columns", name) for name in questions]:
            edited(text, section, "max_rows = 1" if section == ("unit",) else "bounds = [0, 1]")
    rows: MaxRowsSuggestion | None = None
    bounds: list[BoundsSuggestion] = []
    with waiting("tuning") as tell:
        for number, name in enumerate(questions):
            tell(number / len(questions), "rows per unit" if name is None else f"bounds of {name}")
            if name is None:
                asked = table if query is None else table.sql(query)
                rows = suggest_max_rows(asked, price=price, groups=groups, fresh=fresh, **paid)
            else:
                bounds.append(suggest_bounds(table, name, between=ends, fresh=fresh, **paid))
    lines: dict[tuple[str, ...], str] = {} if rows is None else {("unit",): rows.line}
    lines |= {("columns", one.column): one.line for one in bounds}  # by the card's own tables
    if as_json:
        show_json(_json(rows, bounds, lines))
    else:
        show(*_page(card, rows, bounds, lines))
    if write:
        _write(file, lines)
    if not as_json:
        card_file = printable(file.name, 40)
        done = "They are written into" if write else "--write puts them into"
        show(f"\nThe lines are for the card. {done} {card_file}.")


def _between(text: str | None) -> tuple[Fraction, Fraction] | None:
    if text is None:
        return None
    ends = [exact_number(part.strip(), "--between") for part in text.split(",")]
    if len(ends) != 2 or not ends[0] < ends[1]:
        raise refusal("--between", "is not two rising numbers", "write --between 0,1000")
    return ends[0], ends[1]


def _heading(section: tuple[str, ...]) -> str:
    names = (name if _BARE.fullmatch(name) else json.dumps(name) for name in section)
    return f"[{'.'.join(names)}]"


def _page(
    card: DataCard,
    rows: MaxRowsSuggestion | None,
    bounds: Sequence[BoundsSuggestion],
    lines: Mapping[tuple[str, ...], str],
) -> list[Part]:
    answers = [*([] if rows is None else [rows.answer]), *(one.answer for one in bounds)]
    charged = [answer for answer in answers if answer.charged]
    verdict = " + ".join(price_words(answer.record["cost"]) for answer in charged)
    parts: list[Part] = [Heading(f"Tuning of {printable(card.name, 40)}", verdict or "no charge")]
    if rows is not None:
        best = [option.max_rows for option in rows.options].index(rows.max_rows)
        head = ("max_rows", "rows that count", "rows lost, about", "count ±")
        table = [option_row(option) for option in rows.options]
        parts += [Columns(head, table, numbers=range(4), best=best), *limit_words(rows)]
    if bounds:
        listed = [
            (printable(one.column, 30), one.line.removeprefix("bounds = "), str(one.share))
            for one in bounds
        ]
        parts.append(Columns(("column", "bounds", "values within, in 95 % of releases"), listed))
    facts = [(_heading(section), line) for section, line in lines.items()]
    numbers = [str(a.record["entry"]["sequence"]) for a in answers if a.record.get("entry")]
    facts += [("ledger", f"entry {', '.join(numbers)}")] if numbers else []
    return [*parts, Facts([*facts, *budget_rows(account_of(card)[1], answers[0].cost)])]


def _json(
    rows: MaxRowsSuggestion | None,
    bounds: Sequence[BoundsSuggestion],
    lines: Mapping[tuple[str, ...], str],
) -> dict[str, Any]:
    def share(one: Any) -> list[float]:
        return [one.value, one.low, one.high]

    found: dict[str, Any] = {"lines": {_heading(where): line for where, line in lines.items()}}
    if rows is not None:
        found |= {
            "max_rows": rows.max_rows,
            "limit": rows.limit,
            "beyond": rows.beyond,
            "options": [
                {"max_rows": o.max_rows, "share": share(o.share), "lost": o.lost, "error": o.error}
                for o in rows.options
            ],
            "answer": rows.answer.record,
            "charged": rows.answer.charged,
        }
    found["bounds"] = [
        {
            "column": one.column,
            "bounds": [str(end) for end in one.bounds],
            "share": share(one.share),
            "answer": one.answer.record,
            "charged": one.answer.charged,
        }
        for one in bounds
    ]
    return found


@command("card profile visits.toml --epsilon 0.05 --column cost")
@click.argument("file", type=PATH, metavar="CARD")
@option("--epsilon", "What is paid for it, in all.")
@option("--rho", "The same, where the table is paid in concentrated privacy.")
@option(
    "--column", "How large the values of this column are; may be repeated.", "NAME", multiple=True
)
@option(
    "--keys",
    "In how many groups of these keys units are; may be repeated.",
    "NAME,...",
    multiple=True,
)
@flag("--fresh", "Pay for new noise though a profile is recorded.")
@json_option
def profile(
    file: Path,
    epsilon: Fraction | None,
    rho: Fraction | None,
    column: Sequence[str],
    keys: Sequence[str],
    fresh: bool,
    as_json: bool,
) -> None:
    """Buy the profile of a table, by which limits that are left out are chosen.

    How many rows units have; with --column how large values are, with --keys in how many groups
    units are. Each is a noisy histogram in which a unit counts once. As any answer, it is charged
    to the ledger, recorded and certified. The price is shared out equally among them.

    For these data it is bought once. By it lastbit chooses max_rows, max_groups and bounds that are
    left out, for everybody and at no charge. What is recorded is shown again.
    """
    card = read_card(file)
    table = Table(rows=rows_of(card))
    if (epsilon is None) == (rho is None):
        raise refusal("--epsilon", "or --rho, exactly one, is needed", "write, say, --epsilon 0.05")
    listed = [[name.strip() for name in names.split(",")] for names in keys]
    with waiting("profiling"):
        found = table.profile(epsilon=epsilon, rho=rho, columns=column, keys=listed, fresh=fresh)
    answers = found.answers
    if as_json:
        show_json({"lines": found.lines(), "answers": [answer.record for answer in answers]})
        return
    charged = sum((answer.cost for answer in answers if answer.charged), start=Cost())
    verdict = "recorded, no charge" if charged == Cost() else price_words(charged.to_json())
    rows = [tuple(printable(cell, 40) for cell in line) for line in found.lines()]
    show(
        Heading(f"Profile of {printable(card.name, 40)}", verdict),
        Columns(LINES, rows, numbers=(2,)),
        Facts(budget_rows(account_of(card)[1], answers[0].cost)),
        "Limits that are left out are chosen by it, at no further charge.",
    )


# ---------------------------------------------------------------- the card


def _write(file: Path, lines: Mapping[tuple[str, ...], str]) -> None:
    """The card with these lines, if it is a card then; else as it was."""
    before = file.read_text(encoding="utf-8")
    text = before
    for section, line in lines.items():
        text = edited(text, section, line)
    written_over(file, text)
    try:
        read_card(file)
    except LastbitError as error:
        written_over(file, before)
        problem = f"would not be a card with these lines ({error}), and is as it was"
        raise refusal(str(file), problem, _BY_HAND) from None


def edited(text: str, section: tuple[str, ...], line: str) -> str:
    r"""A card's text with one line of one table set; everything else stays, comments too.

    >>> edited("[unit]\nmax_rows = 5   # of each\n", ("unit",), "max_rows = 8")
    '[unit]\nmax_rows = 8   # of each\n'
    """
    field = line.partition(" ")[0]
    lines = text.splitlines(keepends=True)
    inside, heading = False, None
    for place, old in enumerate(lines):
        found = _SECTION.match(old)
        if found is not None:
            names = [part.strip().strip("\"'") for part in found["name"].split(".")]
            inside = [name.lower() for name in names] == [name.lower() for name in section]
            heading = place if inside else heading
        elif inside and (known := re.match(rf"(\s*){field}\s*=\s*([^#\n]*?)(\s*(#.*)?\n?)$", old)):
            if "[" in known[2] and "]" not in known[2]:
                break  # a list over several lines
            lines[place] = f"{known[1]}{line}{known[3]}"
            return "".join(lines)
    else:
        if heading is not None:
            lines.insert(heading + 1, f"{line}\n")
            return "".join(lines)
    where = _heading(section)
    raise refusal(f"{where} {field}", "is not written as a line of its own", _BY_HAND)
