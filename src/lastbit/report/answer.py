"""A released answer for people: its numbers, question and promise, in a terminal or on a page.

Everything is a function of the record of an answer, plain JSON that is public. `cells.py` writes
its numbers and keys, `answer_charts.py` draws them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from markupsafe import Markup

from lastbit.errors import InvalidParameter
from lastbit.exact import Ball, rounded_up
from lastbit.privacy import ZCDP, ApproxDP
from lastbit.report.answer_charts import answer_charts, charted, in_notebook
from lastbit.report.budget import budget_parts
from lastbit.report.cells import AnswerTable, answer_table, key_words, value_columns
from lastbit.report.marginals import marginal_lines, marginal_numbers, tables_of
from lastbit.report.page import amount, grouped, listed, price, printable, rendered, whole_text
from lastbit.report.plan import (
    MOST_NOTES,
    TUNING,
    Reading,
    Record,
    more_words,
    notes_of,
    read_record,
    title_of,
    unit_word,
)
from lastbit.report.whole import (
    NOISE,
    WHOLE,
    band_words,
    plain_whole,
    shown_columns,
    whole_sentences,
)
from lastbit.tables import (
    Aggregate,
    Call,
    ColumnName,
    Constant,
    Expression,
    ListJoin,
    PerUnit,
    Query,
    UnitJoin,
    WrittenPlan,
    clamped_day,
    to_json,
)

EMPTY = "No group is shown: none was large enough, or none met the condition."

# ---------------------------------------------------------------- tables of text

_LONGEST_KEY = 40
_BAR = 24
_TERMINAL_ROWS = 40
_TERMINAL_WIDTH, _NOTEBOOK_WIDTH = 80, 160


def table_of(record: Record, *, width: int, most: int) -> AnswerTable:
    """A line for each group if that fits the width, else a line for each released number."""
    if not any(column["function"] == "histogram" for column in record["columns"]):
        wide = wide_table(record, most=most)
        if sum(wide.widths) + 2 * (len(wide.widths) - 1) <= width:
            return wide
    return long_table(record, most=most)


def wide_table(record: Record, *, most: int) -> AnswerTable:
    """A line for each group: its keys, then for every number itself, its noise and the whole."""
    headings = _keys(record)
    words, left_out = len(headings), max(len(record["rows"]) - most, 0)
    rows = [[key_words(key, _LONGEST_KEY) for key in row["keys"]] for row in record["rows"][:most]]
    for column, cells in shown_columns(record, most):
        headings += [_name(column), NOISE, WHOLE]
        for row, cell in zip(rows, cells, strict=True):
            row += [cell.value, cell.noise, cell.whole]
    return answer_table(headings, rows, words=words, left_out=left_out)


def long_table(record: Record, *, most: int) -> AnswerTable:
    """A line for each number: the keys of its group, its name, itself; bars for histograms."""
    keys, columns = _keys(record), shown_columns(record, most)
    bars = all(column["function"] == "histogram" for column, _ in columns)
    counts = [cell["value"] for row in record["rows"] for cell in row["cells"]] if bars else []
    longest = float(max([0, *counts]))
    rows, some = [], any(cell.whole for _, cells in columns for cell in cells)
    for place, row in enumerate(record["rows"][:most]):
        group = [key_words(key, _LONGEST_KEY) for key in row["keys"]]
        for (column, cells), cell in zip(columns, row["cells"], strict=True):
            one = cells[place]
            bar = "█" * max(round(_BAR * float(cell["value"]) / longest), 0) if longest else ""
            whole = one.whole or (plain_whole(cell) if some else "")
            rows.append((*group, _name(column), one.value, one.noise, whole, bar))
    left_out = max(len(record["rows"]) - most, 0)
    headings = (*keys, "what", "value", NOISE, WHOLE, "")
    return answer_table(headings, rows, words=len(keys) + 1, left_out=left_out)


def totals_of(record: Record) -> list[tuple[str, str]]:
    """Names and totals of counts, where consistent ones were asked for.

    >>> totals_of({"columns": [{"name": "n", "role": "value"}], "totals": [1204]})
    [('n', '1,204')]
    """
    names = [_name(column) for column in value_columns(record)]
    totals = record.get("totals") or [None] * len(names)
    pairs = zip(names, totals, strict=True)
    return [(name, f"{total:,}") for name, total in pairs if total is not None]


def answer_in_terminal(record: Record) -> str:
    """Aligned columns, or tables with their sums; the promise, and the notes."""
    reading = read_record(record)
    if reading.plan.marginals is not None:
        lines = marginal_lines(tables_of(reading))
    else:
        table = table_of(record, width=_TERMINAL_WIDTH, most=_TERMINAL_ROWS)
        heading, *rows = table.lines
        lines = [heading, "  ".join("-" * width for width in table.widths), *rows]
        lines = [*(lines if rows else [EMPTY]), *_below(record), ""]
    sentences = whole_sentences(reading)
    lines += [*sentences, ""] if sentences else []
    notes = notes_of(reading)
    lines += [printable(record["guarantee"], 400)]
    lines += [f"- {printable(note, 1000)}" for note in notes[:MOST_NOTES]]
    return "\n".join([*lines, *([f"{left}: answer.notes"] if (left := more_words(notes)) else [])])


def answer_in_notebook(record: Record) -> Markup:
    """The same as a piece of HTML, with the charts."""
    reading = read_record(record)
    if reading.plan.marginals is not None:
        return Markup("<pre>{}</pre>").format(answer_in_terminal(record))
    table = table_of(record, width=_NOTEBOOK_WIDTH, most=_TERMINAL_ROWS)
    styles = [
        f"text-align:{'right' if place in table.numbers else 'left'};"
        f"font-variant-numeric:tabular-nums{';opacity:.7' if heading in (NOISE, WHOLE) else ''}"
        for place, heading in enumerate(table.headings)
    ]
    return rendered(
        "notebook.html",
        table=table,
        styles=styles,
        shown=bool(record["rows"]),
        charts=in_notebook(reading) if record["rows"] else [],
        empty=EMPTY,
        below=[
            *_below(record),
            *band_words(record),
            *whole_sentences(reading),
            record["guarantee"],
        ],
        notes=notes_of(reading),
        most_notes=MOST_NOTES,
    )


def _below(record: Record) -> list[str]:
    """What stands right below the numbers."""
    left = len(record["rows"]) - _TERMINAL_ROWS
    more = [f"... and {left:,} more rows"] if left > 0 else []
    return more + [f"total of {name}: {total}" for name, total in totals_of(record)]


def _keys(record: Record) -> list[str]:
    return [_name(column) for column in record["columns"] if column["role"] == "key"]


def _name(column: Record) -> str:
    return printable(column["name"], 60)


# ---------------------------------------------------------------- what was asked

_BINDS: Mapping[str, int] = MappingProxyType(
    {"or": 1, "and": 2}
    | dict.fromkeys(("=", "<>", "<", "<=", ">", ">=", "like", "ilike"), 3)
    | {"+": 4, "-": 4, "*": 5, "/": 5, "%": 5}
)
_INSIDE = 9  # binds tighter than all of them
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


def expression_words(expression: Expression, outside: int = 0) -> str:
    """An expression over one row, near to SQL; in brackets if it binds no tighter than `outside`.

    >>> from lastbit.tables import call
    >>> adult = call(">=", ColumnName("age"), Constant(18))
    >>> expression_words(call("and", adult, call("is_missing", ColumnName("died"))))
    'age >= 18 and died is missing'
    """
    match expression:
        case ColumnName(name, table):
            return ".".join(printable(part, 60) for part in (table, name) if part is not None)
        case Constant(str(value)):
            return f"'{printable(value, 60)}'"
        case Constant(None):
            return "missing"
        case Constant():
            return key_words(to_json(expression))
        case Call("is_missing", (inner,)):
            return f"{expression_words(inner, _INSIDE)} is missing"
        case Call("not", (inner,)):
            return f"not {expression_words(inner, _INSIDE)}"
        case Call("in", (value, *others)):
            return f"{expression_words(value, _INSIDE)} in ({_list_words(others)})"
        case Call("bin", (Call("case", (Call("=", (value, _)), _, same)), *edges)) if value == same:
            return f"bin({_list_words([value, *edges])})"  # its last bin is closed
        case Call("case") if (day := clamped_day(expression)) is not None:
            return f"clamp({_list_words([day[0], *map(Constant, day[1:])])})"
        case Call(function, arguments) if function in _BINDS:
            own = _BINDS[function]
            words = f" {function} ".join(expression_words(part, own) for part in arguments)
            return words if own > outside else f"({words})"
        case Call(function, arguments):
            return f"{printable(function, 40)}({_list_words(arguments)})"


def _list_words(arguments: Iterable[Expression]) -> str:
    return ", ".join(map(expression_words, arguments))


def measure_words(part: Aggregate, *, unit: str) -> str:
    """What one released column is.

    >>> cost, bounds = ColumnName("cost"), (Fraction(0), Fraction(500))
    >>> part = Aggregate(name="m", function="mean", expression=cost, bounds=bounds)
    >>> measure_words(part, unit="patient")
    'the mean of cost, kept within 0 and 500'
    """
    what = "" if part.expression is None else expression_words(part.expression)
    edges = part.edges or ()
    match part.function:
        case "count":
            match part.expression:
                case Call("case", (condition, Constant(1))):  # COUNT_IF, or a filter of COUNT(*)
                    return f"the number of rows where {expression_words(condition)}"
            return f"the number of rows with a value of {what}" if what else "the number of rows"
        case "count_units":
            return f"the number of units, each counted once ({unit})"
        case "count_distinct":
            return f"the number of different values of {what}"
        case "histogram":
            return f"the number of rows in each of {len(edges) - 1} ranges of {what}"
        case "quantile":
            level = part.level or Fraction(1, 2)
            half = level == Fraction(1, 2)
            name = "median" if half else f"{amount(100 * level, up=True)} % quantile"
            words = f"the {name} of {what}"
        case "cdf":
            words = f"the share of values of {what} up to {amount(edges[0], up=True)}"
        case _:
            words = _NOUNS[part.function].format(what)
    low, high = (grouped(amount(end, up=True)) for end in part.bounds or ())
    return f"{words}, kept within {low} and {high}"


def question_sentences(plan: WrittenPlan, query: Query) -> list[str]:
    """Of what, for which groups, of which rows, in which order."""
    first = f"Of the table {printable(query.table, 60)}"
    if query.keys:
        keys = []
        for key in query.keys:
            name, inner = printable(key.name, 60), expression_words(key.expression)
            named = name if inner.lower() == name.lower() else f"{name} = {inner}"
            how = "keys found privately"
            if key.values is not None:
                how = f"{len(key.values):,} declared keys"
            keys.append(f"{named} ({how})")
        first += f", for each {listed(keys)}"
    sentences = [first + ":"]
    if query.per_unit is not None:
        sentences += _row_sentences(query.per_unit)
        whose = [f"each {unit_word(plan.unit)}"]
        whose += [printable(key.name, 60) for key in query.per_unit.keys]
        made = f"First, for {listed(whose)}, one row is made of its own rows"
        columns = [printable(part.name, 60) for part in query.per_unit.columns]
        sentences.append(f"{made}: {listed(columns)}." if columns else f"{made}.")
    sentences += _row_sentences(query)
    after = []
    if query.having is not None:
        after.append(f"only groups are shown for which {expression_words(query.having)}")
    if query.order:
        falls = {True: ", falling", False: ""}
        names = [f"{printable(one.name, 60)}{falls[one.descending]}" for one in query.order]
        after.append(f"groups are sorted by {listed(names)}")
    if query.limit is not None:
        after.append(f"no more than {query.limit:,} are shown")
    return [*sentences, f"After the noise, {listed(after)}."] if after else sentences


def _row_sentences(scan: Query | PerUnit) -> Iterator[str]:
    """With what the rows are joined, and which of them count."""
    for join in scan.joins:
        if isinstance(join, ListJoin):
            yield f"Each element of the list {printable(join.column.name, 60)} counts as a row."
            continue
        private = isinstance(join, UnitJoin)
        yield (
            f"Joined with the {'private' if private else 'public'} table "
            f"{printable(join.table, 60)}{', on the privacy unit' if private else ''}."
        )
    if scan.where is not None:
        yield f"Only rows count for which {expression_words(scan.where)}."


# ---------------------------------------------------------------- what is promised

_LARGEST_EXPONENT = 10_000


def promise_sentences(reading: Reading) -> list[str]:
    """The guarantee for somebody who has never heard of epsilon; numbers are rounded up."""
    if reading.record.get("made_up"):
        return [str(reading.record["guarantee"])]
    unit, cost = unit_word(reading.plan.unit), reading.plan.cost
    hidden, fact = f"whether any one {unit} is in the table", f"one {unit} is in the table"
    pair = "with them as without"
    if reading.plan.neighbours == "change-one":
        hidden = f"what the rows of any one {unit} say"
        fact = f"the rows of one {unit} say one thing and not another"
        pair = "for these rows as for any other rows of theirs"
    first = f"The answer hides {hidden}: every number in it is partly chance."
    likely = "Whatever can be read from it is at most {} times as likely " + pair
    if cost.rho:
        implied = ZCDP(cost.rho).to(ApproxDP, delta=Fraction(1, 10**6))
        return [
            first,
            f"{likely.format(likelihood_factor(Fraction(implied.epsilon)))}, but for a probability "
            "of one in a million; other such pairs follow from the price ρ as well.",
        ]
    likely = likely.format(likelihood_factor(cost.epsilon))
    if cost.delta:
        return [first, f"{likely}, but for a probability of {amount(cost.delta, up=True)}."]
    # by Bayes' rule, even odds become at most exp(epsilon) to 1
    odds = Ball.of(min(cost.epsilon, Fraction(_LARGEST_EXPONENT))).exp().ends[1]
    return [
        first,
        f"{likely}.",
        f"Suppose someone knows all else, and is 50 % sure that {fact}. After reading it they are "
        f"at most {rounded_up(100 * odds / (1 + odds), 3)} % sure.",
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
_INTERVALS = (
    "The noise interval (noise ±) covers noise only: in 95 of 100 releases it holds the number "
    "without noise. Of twenty such intervals, expect one to miss.",
    "The whole interval also covers what limits on rows, groups and values left out. It holds the "
    "number of the whole table in at least 90 of 100 releases. “About” marks an end that rests "
    "on an assumption, which stands below the numbers. Neither covers how the data were gathered.",
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
    readings = [read_record(record) for record in records]
    name = title_of(readings[0], title)
    if len(records) > 1 and title is None:
        tables = sorted({printable(record["table"], 60) for record in records})
        name = f"{len(records)} answers from {', '.join(tables)}"
    return rendered(
        "answer.html",
        title=printable(name),
        answers=[_parts(reading) for reading in readings],
        budget=None if account is None else budget_parts(account, records),
        empty=EMPTY,
        intervals=_INTERVALS,
        assumptions=[printable(a, 1000) for a in records[0]["certificate"].get("assumptions", ())],
        version=printable(records[0]["lastbit"], 40),
    )


def answer_parts(record: Record) -> dict[str, Any]:
    """What a page says of one answer, by the names that templates use."""
    return _parts(read_record(record))


def _parts(reading: Reading) -> dict[str, Any]:
    record, plan = reading.record, reading.plan
    sql = record["asked"].get("sql") or ""
    entry, certificate = record.get("entry"), record["certificate"]
    digests = [("certificate", certificate.get("digest", "none"))]
    if entry is not None:
        digests.append((f"ledger, entry {int(entry['sequence'])}", entry["hash"]))
    digests.append(("question", record["question"]))
    numbers = _numbers if plan.marginals is None else marginal_numbers
    # a page is for readers, who cannot tune a card
    notes = [printable(note, 1000) for note in notes_of(reading) if note != TUNING]
    return {
        "title": title_of(reading),
        "source": printable(record["table"], 60),
        "price": price(record["cost"]),
        "promise": promise_sentences(reading),
        "guarantee": printable(record["guarantee"], 400),
        "question": question_sentences(plan, reading.query),
        "sql": "\n".join(printable(words, 2000) for words in str(sql).splitlines()),
        **numbers(reading, most=MOST_ROWS),
        "plan": reading.facts,
        "notes": notes[:MOST_NOTES],
        "more": more_words(notes),
        "further_notes": notes[MOST_NOTES:],
        "digests": [(name, printable(digest, 100)) for name, digest in digests],
        "certificate": whole_text(certificate),
    }


def _numbers(reading: Reading, *, most: int) -> dict[str, Any]:
    """What was measured, and the released numbers: large, drawn, and in a table."""
    record, unit = reading.record, unit_word(reading.plan.unit)
    columns, rows = value_columns(record), record["rows"]
    histograms = any(column["function"] == "histogram" for column in columns)
    single = len(rows) == 1 and not rows[0]["keys"]
    figures = [  # the numbers of an answer without groups, to be shown large
        (_name(column), cells[0])
        for column, cells in (shown_columns(record) if single else ())
        if column["function"] != "histogram"
    ]
    wide = len(columns) <= _MOST_COLUMNS and not histograms
    table = (wide_table if wide else long_table)(record, most=most)
    if not table.headings[-1]:  # bars of letters are for terminals
        cut = tuple(row[:-1] for row in table.rows)
        table = replace(table, headings=table.headings[:-1], rows=cut)
    measures = [(part.name, measure_words(part, unit=unit)) for part in reading.query.aggregates]
    measures += [
        (one.name, f"computed from these: {expression_words(one.expression)}")
        for one in reading.query.derived
    ]
    return {
        "measures": [(printable(name, 60), words) for name, words in measures],
        "shown": bool(rows),
        "figures": figures,
        "charts": answer_charts(reading) if rows else [],
        "cut": charted(reading),
        "table": table if rows and (histograms or not single) else None,
        "totals": totals_of(record),
        "whole": whole_sentences(reading),
        "bands": band_words(record),
    }
