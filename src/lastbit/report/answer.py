"""A released answer for people: its numbers, question and promise, in a terminal or on a page.

Everything is a function of the record of an answer, plain JSON that is public. `cells.py` writes
its numbers and keys, `answer_charts.py` draws them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from markupsafe import Markup

from lastbit.errors import InvalidParameter
from lastbit.exact import Ball, rounded_up
from lastbit.privacy import ZCDP, ApproxDP
from lastbit.report.answer_charts import answer_charts, charted, in_notebook
from lastbit.report.budget import budget_parts
from lastbit.report.cells import Record, key_words, shown_cell
from lastbit.report.page import amount, grouped, listed, price, printable, rendered
from lastbit.report.plan import TUNING, notes_of, record_words, title_of, unit_word

INTERVAL = "95 %"
"""The heading of intervals: ± 12, or 3 to 9."""
EMPTY = "No group is shown: none was large enough, or none met the condition."

# ---------------------------------------------------------------- tables of text

_LONGEST_KEY = 40
_BAR = 24
_TERMINAL_ROWS = 40
_TERMINAL_WIDTH, _NOTEBOOK_WIDTH = 100, 160


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerTable:
    """Headings and rows of text; the columns of `numbers` are set flush right."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: tuple[int, ...]
    left_out: int = 0
    """How many groups of the answer are not among the rows."""

    @property
    def width(self) -> int:
        """How many letters wide it is, with two between columns."""
        columns = zip(self.headings, *self.rows, strict=True)
        return sum(max(map(len, cells)) + 2 for cells in columns)


def table_of(record: Record, *, width: int, most: int) -> AnswerTable:
    """A line for each group if that fits the width, else a line for each released number."""
    if not any(column["function"] == "histogram" for column in record["columns"]):
        wide = wide_table(record, most=most)
        if wide.width <= width:
            return wide
    return long_table(record, most=most)


def wide_table(record: Record, *, most: int) -> AnswerTable:
    """A line for each group: its keys, then two columns for every number."""
    keys = _keys(record)
    values = (heading for column in _values(record) for heading in (_name(column), INTERVAL))
    headings = (*keys, *values)
    rows = []
    for row in record["rows"][:most]:
        shown = [shown_cell(cell) for cell in row["cells"]]
        numbers = (text for cell in shown for text in (cell.value, cell.interval))
        rows.append((*(key_words(key, _LONGEST_KEY) for key in row["keys"]), *numbers))
    return AnswerTable(
        headings=headings,
        rows=tuple(rows),
        numbers=tuple(range(len(keys), len(headings))),
        left_out=max(len(record["rows"]) - most, 0),
    )


def long_table(record: Record, *, most: int) -> AnswerTable:
    """A line for each number: the keys of its group, its name, itself; bars for histograms."""
    keys, columns = _keys(record), _values(record)
    bars = all(column["function"] == "histogram" for column in columns)
    counts = [cell["value"] for row in record["rows"] for cell in row["cells"]] if bars else []
    longest = float(max([0, *counts]))
    rows = []
    for row in record["rows"][:most]:
        group = [key_words(key, _LONGEST_KEY) for key in row["keys"]]
        for column, cell in zip(columns, row["cells"], strict=True):
            shown = shown_cell(cell)
            bar = ["█" * max(round(_BAR * float(cell["value"]) / longest), 0)] if longest else []
            rows.append((*group, _name(column), shown.value, shown.interval, *bar))
    return AnswerTable(
        headings=(*keys, "what", "value", INTERVAL, *([""] if longest else [])),
        rows=tuple(rows),
        numbers=(len(keys) + 1, len(keys) + 2),
        left_out=max(len(record["rows"]) - most, 0),
    )


def totals_of(record: Record) -> list[tuple[str, str]]:
    """Names and totals of counts, where consistent ones were asked for.

    >>> totals_of({"columns": [{"name": "n", "role": "value"}], "totals": [1204]})
    [('n', '1,204')]
    """
    names = [_name(column) for column in _values(record)]
    totals = record.get("totals") or [None] * len(names)
    pairs = zip(names, totals, strict=True)
    return [(name, f"{total:,}") for name, total in pairs if total is not None]


def answer_in_terminal(record: Record) -> str:
    """Aligned columns, the promise, and the notes."""
    table = table_of(record, width=_TERMINAL_WIDTH, most=_TERMINAL_ROWS)
    rows = [table.headings, *table.rows]
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            cell.rjust(width) if i in table.numbers else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    lines.insert(1, "  ".join("-" * width for width in widths))
    notes = (f"- {printable(note, 1000)}" for note in notes_of(record))
    below = [*_below(record), "", printable(record["guarantee"], 400), *notes]
    return "\n".join([*(lines if record["rows"] else [EMPTY]), *below])


def answer_in_notebook(record: Record) -> Markup:
    """The same as a piece of HTML, with the charts."""
    table = table_of(record, width=_NOTEBOOK_WIDTH, most=_TERMINAL_ROWS)
    styles = [
        f"text-align:{'right' if place in table.numbers else 'left'};"
        f"font-variant-numeric:tabular-nums{';opacity:.7' if heading == INTERVAL else ''}"
        for place, heading in enumerate(table.headings)
    ]
    return rendered(
        "notebook.html",
        table=table,
        styles=styles,
        shown=bool(record["rows"]),
        charts=in_notebook(record) if record["rows"] else [],
        empty=EMPTY,
        below=[*_below(record), record["guarantee"]],
        notes=notes_of(record),
    )


def _below(record: Record) -> list[str]:
    """What stands between the numbers and the promise."""
    left = len(record["rows"]) - _TERMINAL_ROWS
    more = [f"... and {left:,} more rows"] if left > 0 else []
    return more + [f"total of {name}: {total}" for name, total in totals_of(record)]


def _keys(record: Record) -> list[str]:
    return [_name(column) for column in record["columns"] if column["role"] == "key"]


def _values(record: Record) -> list[Record]:
    return [column for column in record["columns"] if column["role"] == "value"]


def _name(column: Record) -> str:
    return printable(column["name"], 60)


# ---------------------------------------------------------------- what was asked

_BINDS: Mapping[str, int] = MappingProxyType(
    {"or": 1, "and": 2}
    | dict.fromkeys(("=", "<>", "<", "<=", ">", ">=", "like", "ilike"), 3)
    | {"+": 4, "-": 4, "*": 5, "/": 5, "%": 5}
)
_NOUNS: Mapping[str, str] = MappingProxyType(
    {
        "sum": "the sum of {}",
        "mean": "the mean of {}",
        "variance": "the variance of {}",
        "std": "the standard deviation of {}",
        "min": "the least {}",
        "max": "the greatest {}",
    }
)


def expression_words(data: Any) -> str:
    """An expression over one row, near to SQL.

    >>> expression_words(["and", [">=", {"column": "age"}, {"type": "integer", "value": 18}],
    ...     ["is_missing", {"column": "died"}]])
    'age >= 18 and died is missing'
    """
    return _expression(data, 0)


def _expression(data: Any, outside: int = 9) -> str:
    """The words; in brackets if they bind no tighter than what is outside."""
    match data:
        case {"column": str(name), "table": str(table)}:
            return f"{printable(table, 60)}.{printable(name, 60)}"
        case {"column": str(name)}:
            return printable(name, 60)
        case {"type": "text", "value": str(value)}:
            return f"'{printable(value, 60)}'"
        case {"type": "missing"}:
            return "missing"
        case {"type": str(), "value": _}:
            return key_words(data)
        case ["is_missing", inner]:
            return f"{_expression(inner)} is missing"
        case ["not", inner]:
            return f"not {_expression(inner)}"
        case ["in", value, *others]:
            return f"{_expression(value)} in ({', '.join(map(expression_words, others))})"
        case [str(function), *arguments] if function in _BINDS:
            own = _BINDS[function]
            words = f" {function} ".join(_expression(argument, own) for argument in arguments)
            return words if own > outside else f"({words})"
        case [str(function), *arguments]:
            return f"{printable(function, 40)}({', '.join(map(expression_words, arguments))})"
    return "?"


def measure_words(aggregate: Record, *, unit: str) -> str:
    """What one released column is.

    >>> measure_words({"function": "mean", "expression": {"column": "cost"}, "bounds": ["0", "500"],
    ...     "level": None, "edges": None}, unit="patient")
    'the mean of cost, kept within 0 and 500'
    """
    function, expression = aggregate["function"], aggregate["expression"]
    what = "" if expression is None else expression_words(expression)
    if function == "count":
        return f"the number of rows with a value of {what}" if what else "the number of rows"
    if function == "count_units":
        return f"the number of units, each counted once ({unit})"
    if function == "count_distinct":
        return f"the number of different values of {what}"
    if function == "histogram":
        return f"the number of rows in each of {len(aggregate['edges']) - 1} ranges of {what}"
    if function == "quantile":
        level = Fraction(aggregate["level"])
        half = level == Fraction(1, 2)
        name = "median" if half else f"{amount(100 * level, up=True)} % quantile"
        words = f"the {name} of {what}"
    elif function == "cdf":
        (point,) = (amount(Fraction(edge), up=True) for edge in aggregate["edges"])
        words = f"the share of values of {what} up to {point}"
    else:
        words = _NOUNS[function].format(what)
    low, high = (grouped(amount(Fraction(end), up=True)) for end in aggregate["bounds"])
    return f"{words}, kept within {low} and {high}"


def question_sentences(record: Record) -> list[str]:
    """Of what, for which groups, of which rows, in which order."""
    query = record["asked"]["query"]
    first = f"Of the table {printable(query['table'], 60)}"
    if query["keys"]:
        keys = []
        for key in query["keys"]:
            name, inner = printable(key["name"], 60), expression_words(key["expression"])
            named = name if inner.lower() == name.lower() else f"{name} = {inner}"
            values = key["values"]
            how = "keys found privately" if values is None else f"{len(values):,} declared keys"
            keys.append(f"{named} ({how})")
        first += f", for each {listed(keys)}"
    sentences = [first + ":"]
    inner = query.get("per_unit")
    if inner is not None:
        sentences += _joined_sentences(inner["joins"])
        if inner["where"] is not None:
            sentences.append(f"Only rows count for which {expression_words(inner['where'])}.")
        whose = f"each {unit_word(record)}"
        names = [printable(key["name"], 60) for key in inner["keys"]]
        columns = [printable(part["name"], 60) for part in inner["columns"]]
        sentences.append(
            f"First, for {listed([whose, *names])}, one row is made of its own rows: "
            f"{listed(columns)}."
            if columns
            else f"First, for {listed([whose, *names])}, one row is made of its own rows."
        )
    sentences += _joined_sentences(query["joins"])
    if query["where"] is not None:
        sentences.append(f"Only rows count for which {expression_words(query['where'])}.")
    after = []
    if query["having"] is not None:
        after.append(f"only groups are shown for which {expression_words(query['having'])}")
    if query["order"]:
        names = [f"{printable(n, 60)}{', falling' if falls else ''}" for n, falls in query["order"]]
        after.append(f"groups are sorted by {listed(names)}")
    if query["limit"] is not None:
        after.append(f"no more than {query['limit']:,} are shown")
    return [*sentences, f"After the noise, {listed(after)}."] if after else sentences


def _joined_sentences(joins: list[Record]) -> list[str]:
    kinds = [("private" if join.get("private") else "public", join["table"]) for join in joins]
    return [
        f"Joined with the {kind} table {printable(name, 60)}"
        + (", on the privacy unit." if kind == "private" else ".")
        for kind, name in kinds
    ]


# ---------------------------------------------------------------- what is promised

_LARGEST_EXPONENT = 10_000


def promise_sentences(record: Record) -> list[str]:
    """The guarantee for somebody who has never heard of epsilon; numbers are rounded up."""
    if record.get("made_up"):
        return [str(record["guarantee"])]
    unit = unit_word(record)
    cost = {name: Fraction(number) for name, number in record["cost"].items()}
    hidden, fact = f"whether any one {unit} is in the table", f"one {unit} is in the table"
    pair = "with them as without"
    if record["plan"]["neighbours"] == "change-one":
        hidden = f"what the rows of any one {unit} say"
        fact = f"the rows of one {unit} say one thing and not another"
        pair = "for these rows as for any other rows of theirs"
    first = f"The answer hides {hidden}: every number in it is partly chance."
    likely = "Whatever can be read from it is at most {} times as likely " + pair
    if cost["rho"]:
        implied = ZCDP(cost["rho"]).to(ApproxDP, delta=Fraction(1, 10**6))
        return [
            first,
            f"{likely.format(likelihood_factor(Fraction(implied.epsilon)))}, but for a probability "
            "of one in a million; other such pairs follow from the price ρ as well.",
        ]
    likely = likely.format(likelihood_factor(cost["epsilon"]))
    if cost["delta"]:
        return [first, f"{likely}, but for a probability of {amount(cost['delta'], up=True)}."]
    # by Bayes' rule, even odds become at most exp(epsilon) to 1
    odds = Ball.of(min(cost["epsilon"], Fraction(_LARGEST_EXPONENT))).exp().ends[1]
    return [
        first,
        f"{likely}.",
        f"Even someone who knows all else, and thought it as likely as not (50 %) that {fact}, can "
        f"be at most {rounded_up(100 * odds / (1 + odds), 3)} % sure after reading it.",
    ]


def likelihood_factor(epsilon: Fraction) -> str:
    """exp(epsilon), rounded up to three digits.

    >>> likelihood_factor(Fraction(1)), likelihood_factor(Fraction(1, 100))
    ('2.72', '1.02')
    """
    if epsilon > _LARGEST_EXPONENT:
        return f"exp({amount(epsilon, up=True)})"
    return grouped(rounded_up(Ball.of(epsilon).exp().ends[1], 3))


# ---------------------------------------------------------------- the page

MOST_ROWS = 1000
_MOST_COLUMNS = 4
_MOST_JSON = 400_000
_INTERVALS = (
    "A confidence interval of 95 % holds the number that would have been released without noise in "
    "95 of 100 releases, whatever the data are; its ends are rounded outwards. Each interval by "
    "itself does so: of twenty of them, expect one to miss.",
    "Intervals are about the noise. They do not cover what contribution bounds, clamping and "
    "rounding did to the data before, nor how the data were gathered.",
)


def page(
    *records: Record, title: str | None = None, account: Mapping[str, Any] | None = None
) -> Markup:
    """The page of one answer or several; `account` is the state of the budget, if it is known.

    An account has "budget", "spent" and "left", each with epsilon, delta and rho as fractions in
    text; budget and left are None where there is no limit.
    """
    if not records:
        raise InvalidParameter("records", problem="are none", remedy="pass an answer's record")
    name = title_of(records[0], title)
    if len(records) > 1 and title is None:
        tables = sorted({printable(record["table"], 60) for record in records})
        name = f"{len(records)} answers from {', '.join(tables)}"
    return rendered(
        "answer.html",
        title=printable(name),
        answers=[answer_parts(record) for record in records],
        budget=None if account is None else budget_parts(account, records),
        empty=EMPTY,
        intervals=_INTERVALS,
        assumptions=[printable(a, 1000) for a in records[0]["certificate"].get("assumptions", ())],
        version=printable(records[0]["lastbit"], 40),
    )


def answer_parts(record: Record) -> dict[str, Any]:
    """What a page says of one answer, by the names that templates use."""
    columns, rows = _values(record), record["rows"]
    histograms = any(column["function"] == "histogram" for column in columns)
    single = len(rows) == 1 and not rows[0]["keys"]
    figures = [  # the numbers of an answer without groups, to be shown large
        (_name(column), (shown := shown_cell(cell)).value, shown.interval)
        for column, cell in (zip(columns, rows[0]["cells"], strict=True) if single else ())
        if column["function"] != "histogram"
    ]
    wide = len(columns) <= _MOST_COLUMNS and not histograms
    table = (wide_table if wide else long_table)(record, most=MOST_ROWS)
    if not table.headings[-1]:  # bars of letters are for terminals
        cut = tuple(row[:-1] for row in table.rows)
        table = replace(table, headings=table.headings[:-1], rows=cut)
    unit = unit_word(record)
    sql = record["asked"].get("sql") or ""
    return {
        "title": title_of(record),
        "source": printable(record["table"], 60),
        "price": price(record["cost"]),
        "promise": promise_sentences(record),
        "guarantee": printable(record["guarantee"], 400),
        "question": question_sentences(record),
        "measures": [
            (printable(part["name"], 60), measure_words(part, unit=unit))
            for part in record["asked"]["query"]["aggregates"]
        ]
        + [
            (
                printable(one["name"], 60),
                f"computed from these: {expression_words(one['expression'])}",
            )
            for one in record["asked"]["query"].get("derived", ())
        ],
        "sql": "\n".join(printable(words, 2000) for words in str(sql).splitlines()),
        "shown": bool(rows),
        "figures": figures,
        "charts": answer_charts(record) if rows else [],
        "cut": charted(record),
        "table": table if rows and (histograms or not single) else None,
        "totals": totals_of(record),
        "plan": record_words(record),
        **_proof(record),
    }


def _proof(record: Record) -> dict[str, Any]:
    """Notes, certificate and digests: what every kind of answer ends with."""
    entry, certificate = record.get("entry"), record["certificate"]
    whole = json.dumps(certificate, indent=1, ensure_ascii=True)
    digests = [("certificate", certificate.get("digest", "none"))]
    if entry is not None:
        digests.append((f"ledger, entry {int(entry['sequence'])}", entry["hash"]))
    digests.append(("question", record["question"]))
    return {
        # a page is for readers, who cannot tune a card
        "notes": [printable(note, 1000) for note in notes_of(record) if note != TUNING],
        "digests": [(name, printable(digest, 100)) for name, digest in digests],
        "certificate": whole if len(whole) <= _MOST_JSON else None,
    }
