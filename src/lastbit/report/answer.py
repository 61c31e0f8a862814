"""A released answer for people: its numbers, question and promise, in a terminal or on a page.

Everything is a function of the record of an answer, plain JSON that is public. Numbers have the
digits that mean something: a value is rounded to two digits of the half width of its interval, and
the ends of the interval are rounded outwards, so that what is shown holds at least as surely as
what was released. Keys are text that a stranger may have written into the data: `_key` makes them
fit to be shown, and templates escape them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import Any, TypeAlias

from markupsafe import Markup

from lastbit.errors import InvalidParameter
from lastbit.exact import Ball, rounded_up
from lastbit.privacy import ZCDP, ApproxDP
from lastbit.report.charts import Axis, Frame, box, element, line, round_ticks, text
from lastbit.report.page import CURRENCIES, amount, grouped, listed, price, printable, rendered
from lastbit.report.plan import record_words, title_of, unit_word

Record: TypeAlias = Mapping[str, Any]

EMPTY = "No group is shown: none was large enough, or none met the condition."

# ---------------------------------------------------------------- numbers

_HUGE = 10**15
_MOST_DIGITS = 9


@dataclass(frozen=True, slots=True)
class Shown:
    """A cell as text: the value, and how far off it may be (± 12, or 3 to 9)."""

    value: str
    interval: str


def shown_cell(cell: Record) -> Shown:
    """A released number for people.

    >>> shown_cell({"value": 1234.56, "low": 1200.1, "high": 1269.02, "standard_error": 17})
    Shown(value='1,235', interval='± 35')
    >>> shown_cell({"value": 2.0, "low": 1.0, "high": 6.0, "standard_error": None})
    Shown(value='2', interval='1 to 6')
    >>> shown_cell({"value": None, "low": 0.0, "high": 9.5, "standard_error": None})
    Shown(value='unknown', interval='0.0 to 9.5')
    """
    value, low, high = cell["value"], cell["low"], cell["high"]
    if low is None or high is None:
        if value is None:
            return Shown("unknown", "unknown")
        return Shown(_fixed(value, 3, ROUND_HALF_EVEN), "no interval")
    places, half = 0, float(high - low) / 2
    if any(number is not None and number != int(number) for number in (value, low, high)):
        places = min(max(1 - math.floor(math.log10(half)), 0), _MOST_DIGITS) if half > 0 else 3
    ends = f"{_fixed(low, places, ROUND_FLOOR)} to {_fixed(high, places, ROUND_CEILING)}"
    if value is None:
        return Shown("unknown", ends)
    below, above = (
        _rounded(Decimal(a) - Decimal(b), places, ROUND_CEILING)
        for a, b in ((value, low), (high, value))
    )
    near = abs(below - above) <= Decimal(1).scaleb(-places)
    interval = f"± {_separated(max(below, above), places)}" if near else ends
    return Shown(_fixed(value, places, ROUND_HALF_EVEN), interval)


def _rounded(number: Decimal, places: int, rounding: str) -> Decimal:
    return Context(prec=800, rounding=rounding).quantize(number, Decimal(1).scaleb(-places))


def _fixed(number: float, places: int, rounding: str) -> str:
    if abs(number) >= _HUGE:
        return f"{Context(prec=6, rounding=rounding).plus(Decimal(number)):e}"
    return _separated(_rounded(Decimal(number), places, rounding), places)


def _separated(number: Decimal, places: int) -> str:
    if abs(number) >= _HUGE:
        return f"{Context(prec=3, rounding=ROUND_CEILING).plus(number):e}"
    return f"{abs(number) if number == 0 else number:,.{places}f}"


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
    values = (heading for column in _values(record) for heading in (_name(column), "± 95 %"))
    headings = (*keys, *values)
    rows = []
    for row in record["rows"][:most]:
        shown = [shown_cell(cell) for cell in row["cells"]]
        numbers = (text for cell in shown for text in (cell.value, cell.interval))
        rows.append((*(_key(key, _LONGEST_KEY) for key in row["keys"]), *numbers))
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
        group = [_key(key, _LONGEST_KEY) for key in row["keys"]]
        for column, cell in zip(columns, row["cells"], strict=True):
            shown = shown_cell(cell)
            bar = ["█" * max(round(_BAR * float(cell["value"]) / longest), 0)] if longest else []
            rows.append((*group, _name(column), shown.value, shown.interval, *bar))
    return AnswerTable(
        headings=(*keys, "what", "value", "± 95 %", *([""] if longest else [])),
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
    notes = (f"- {printable(note, 1000)}" for note in record["notes"])
    below = [*_below(record), "", printable(record["guarantee"], 400), *notes]
    return "\n".join([*(lines if record["rows"] else [EMPTY]), *below])


def answer_in_notebook(record: Record) -> Markup:
    """The same as a piece of HTML."""
    table = table_of(record, width=_NOTEBOOK_WIDTH, most=_TERMINAL_ROWS)
    styles = [
        f"text-align:{'right' if place in table.numbers else 'left'};"
        f"font-variant-numeric:tabular-nums{';opacity:.7' if heading.startswith('±') else ''}"
        for place, heading in enumerate(table.headings)
    ]
    return rendered(
        "notebook.html",
        table=table,
        styles=styles,
        shown=bool(record["rows"]),
        empty=EMPTY,
        below=[*_below(record), record["guarantee"]],
        notes=record["notes"],
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


def _key(key: Record, most: int = 200) -> str:
    """One key of a row, as people read it."""
    value = key["value"]
    if value is None:
        return "(missing)"
    if isinstance(value, bool):
        return "true" if value else "false"
    return printable(value, most) if value != "" else "(empty text)"


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
            return _key(data)
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


# ---------------------------------------------------------------- charts

_WIDTH = 880
MOST_GROUPS, MOST_HISTOGRAMS, _PANELS_A_ROW = 40, 12, 3
_ROW, _TOP, _BOTTOM, _GAP = 26, 46, 30, 34
_LETTER = 6.9  # the width of a letter of 12.5 px, about
_FROM_ZERO = ("count", "count_units", "sum")
_BARS_TOP, _BARS_HEIGHT = 40, 190


def answer_charts(record: Record) -> list[Markup]:
    """A panel for each measure with a line for each group, and a chart for each histogram.

    Counts and sums are bars from 0; means, quantiles and the like are dots on an axis that need not
    begin at 0. A histogram has one bar for each range, all equally wide, since ranges are what was
    asked for. Every mark has its interval. There are none where there is nothing to compare.
    """
    columns, rows = _values(record), record["rows"]
    plain = [i for i, column in enumerate(columns) if column["function"] != "histogram"]
    charts = []
    if len(rows) > 1:
        for start in range(0, len(plain), _PANELS_A_ROW):
            chosen = plain[start : start + _PANELS_A_ROW]
            charts.append(_groups(rows[:MOST_GROUPS], columns, chosen))
    binned: dict[str, list[int]] = {}
    for i, column in enumerate(columns):
        if column["function"] == "histogram":
            binned.setdefault(column["aggregate"], []).append(i)
    for name, places in binned.items():
        charts += _histograms(rows[:MOST_HISTOGRAMS], columns, printable(name, 40), places)
    return charts


def _groups(rows: Sequence[Record], columns: Sequence[Record], chosen: list[int]) -> Markup:
    labels = [_group(row, 34) for row in rows]
    left = min(max(map(len, labels)) * _LETTER + 22, 250.0)
    wide = (_WIDTH - left - _GAP * (len(chosen) - 1)) / len(chosen)
    middles = [_TOP + _ROW * i + _ROW / 2 for i in range(len(rows))]
    lines = [text(left - 12, y + 4, "end", label) for y, label in zip(middles, labels, strict=True)]
    names = [printable(columns[place]["name"], 34) for place in chosen]
    for i, (name, place) in enumerate(zip(names, chosen, strict=True)):
        start = left + i * (wide + _GAP)
        cells = [row["cells"][place] for row in rows]
        bars = columns[place]["function"] in _FROM_ZERO
        lines.append(text(start, 18, "heading", name))
        lines += _measure(cells, middles, (start, start + wide), bars=bars)
    words = f"{', '.join(names)}, by group, with 95 % intervals"
    return _svg(words, _WIDTH, _TOP + _ROW * len(rows) + _BOTTOM, lines)


def _measure(
    cells: Sequence[Record], middles: Sequence[float], ends: tuple[float, float], *, bars: bool
) -> Iterator[Markup]:
    words = [shown_cell(cell) for cell in cells]
    labels = [w.value if w.value == "unknown" else f"{w.value} {w.interval}" for w in words]
    if any(" to " in w.interval for w in words):
        labels = [w.value for w in words]
    left, right = ends
    room = min(max(map(len, labels)) * _LETTER + 14, (right - left) * 0.55)
    domain = _domain(cells, bars=bars)
    most = 5 if right - left - room > 240 else 3
    across = Axis(ends=domain, ticks=round_ticks(*domain, most=most))
    up = Axis(ends=(0, 1), ticks=(), grid=False)
    width, height = right - left - room - 4, _ROW * len(cells) + 8
    frame = Frame(left + 4, _TOP - 8, width, height, across, up)
    yield from frame.lines()
    for cell, y, label in zip(cells, middles, labels, strict=True):
        value = cell["value"]
        if bars and value is not None:
            start, end = sorted((frame.x(max(0.0, domain[0])), frame.x(float(value))))
            yield box("bar", start, y - 7, max(end - start, 0.5), 14)
        if cell["low"] is not None and cell["high"] is not None:
            low, high = frame.x(float(cell["low"])), frame.x(float(cell["high"]))
            yield line("whisker", low, y, high, y)
            yield from (line("whisker", x, y - 4, x, y + 4) for x in (low, high))
        if not bars and value is not None:
            yield element("circle", "dot", cx=frame.x(float(value)), cy=y, r=4.5)
        yield text(right, y + 4, "end", label)


def _domain(cells: Sequence[Record], *, bars: bool) -> tuple[float, float]:
    """From the least end of an interval to the greatest, 0 included where bars need it."""
    numbers = (cell[end] for cell in cells for end in ("low", "high", "value"))
    ends = [float(n) for n in numbers if n is not None and math.isfinite(n)]
    low, high = min(ends, default=0.0), max(ends, default=1.0)
    if bars or 0 <= low <= 0.4 * high:
        low, high = min(low, 0.0), max(high, 0.0)
    if high <= low:
        return low - (abs(low) or 1.0), high + (abs(high) or 1.0)
    pad = (high - low) * 0.03
    return (low if low == 0 else low - pad), (high if high == 0 else high + pad)


def _histograms(
    rows: Sequence[Record], columns: Sequence[Record], name: str, places: list[int]
) -> Iterator[Markup]:
    """One chart for each group, all to one scale."""
    edges = [columns[places[0]]["bin"][0], *(columns[place]["bin"][1] for place in places)]
    labels = [amount(Fraction(edge), up=True) for edge in edges]
    groups = [[row["cells"][place] for place in places] for row in rows]
    ends = [float(cell[end]) for cells in groups for cell in cells for end in ("low", "high")]
    domain = (min([0.0, *ends]), max([1.0, *ends]) * 1.02)
    heights = round_ticks(*domain, most=4)
    width = 430 if len(rows) > 1 else _WIDTH
    left = max(len(label) for _, label in heights) * _LETTER + 12
    slot = (width - left - 14) / len(places)
    every = max(math.ceil((max(map(len, labels)) * _LETTER + 10) / slot), 1)
    ticks = tuple((float(i), label) for i, label in enumerate(labels))[::every]
    across = Axis(ends=(0, len(places)), ticks=ticks, grid=False)
    up = Axis(ends=domain, ticks=heights)
    frame = Frame(left, _BARS_TOP, width - left - 14, _BARS_HEIGHT, across, up)
    for row, cells in zip(rows, groups, strict=True):
        title = f"{name}, {_group(row, 40)}" if row["keys"] else name
        lines = [text(0, 18, "heading", title), *frame.lines()]
        for i, cell in enumerate(cells):
            top, foot = sorted((frame.y(float(cell["value"])), frame.y(0.0)))
            lines.append(box("bar", frame.x(i + 0.06), top, slot * 0.88, max(foot - top, 0.5)))
            middle, cap = frame.x(i + 0.5), min(slot * 0.2, 5.0)
            low, high = frame.y(float(cell["low"])), frame.y(float(cell["high"]))
            lines.append(line("whisker", middle, low, middle, high))
            lines += (line("whisker", middle - cap, y, middle + cap, y) for y in (low, high))
        yield _svg(f"{title}: rows in each range, with 95 % intervals", width, 268, lines)


def _group(row: Record, most: int) -> str:
    return printable(" · ".join(_key(key, most) for key in row["keys"]), most)


def _svg(name: str, width: int, height: float, lines: Sequence[Markup]) -> Markup:
    shell = '<svg class="chart" viewBox="0 0 {0} {1:.0f}" width="{0}" role="img" aria-label="{2}">'
    return Markup(shell + "\n{3}\n</svg>").format(width, height, name, Markup("\n").join(lines))


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
    name = title_of(records[0])
    if len(records) > 1:
        tables = sorted({printable(record["table"], 60) for record in records})
        name = f"{len(records)} answers from {', '.join(tables)}"
    return rendered(
        "answer.html",
        title=printable(title or name),
        answers=[_answer(record) for record in records],
        budget=None if account is None else _budget(account, records),
        empty=EMPTY,
        intervals=_INTERVALS,
        assumptions=[printable(a, 1000) for a in records[0]["certificate"].get("assumptions", ())],
        version=printable(records[0]["lastbit"], 40),
    )


def _answer(record: Record) -> dict[str, Any]:
    """What the template says of one answer."""
    columns, rows = _values(record), record["rows"]
    histograms = any(column["function"] == "histogram" for column in columns)
    single = len(rows) == 1 and not rows[0]["keys"]
    most = MOST_HISTOGRAMS if histograms else MOST_GROUPS
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
    unit, entry = unit_word(record), record.get("entry")
    whole = json.dumps(record["certificate"], indent=1, ensure_ascii=True)
    digests = [("certificate", record["certificate"].get("digest", "none"))]
    if entry is not None:
        digests.append((f"ledger, entry {int(entry['sequence'])}", entry["hash"]))
    digests.append(("question", record["question"]))
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
        "cut": most if len(rows) > most else None,
        "table": table if rows and (histograms or not single) else None,
        "totals": totals_of(record),
        "plan": record_words(record),
        "notes": [printable(note, 1000) for note in record["notes"]],
        "digests": [(name, printable(digest, 100)) for name, digest in digests],
        "certificate": whole if len(whole) <= _MOST_JSON else None,
    }


def _budget(account: Mapping[str, Any], records: Sequence[Record]) -> dict[str, Any]:
    if account["budget"] is None:
        return {"rows": None, "spent": price(account["spent"])}
    if account.get("kind") == "filter":
        return {"rows": [_filter_row(account)], "notes": _filter_notes(account)}
    rows = []
    for name, letter in CURRENCIES:
        whole = Fraction(account["budget"][name])
        if not whole:
            continue
        spent, left = Fraction(account["spent"][name]), Fraction(account["left"][name])
        own = min(sum((Fraction(record["cost"][name]) for record in records), Fraction(0)), spent)
        words = f"{amount(left, up=False)} left of {amount(whole, up=True)}"
        shares = {"before": float(100 * (spent - own) / whole), "own": float(100 * own / whole)}
        rows.append({"letter": letter, "words": words, **shares})
    return {"rows": rows, "notes": []}


def _filter_row(account: Mapping[str, Any]) -> dict[str, Any]:
    """Prices do not add up to what is spent under a filter, so no part of it is this answer's."""
    whole, spent = Fraction(account["budget"]["epsilon"]), account["filter"]["epsilon_spent"]
    left = amount(whole - Fraction(spent), up=False)
    words = f"{left} left of {amount(whole, up=True)}, by the filter"
    return {"letter": "ε", "words": words, "before": float(100 * Fraction(spent) / whole), "own": 0}


def _filter_notes(account: Mapping[str, Any]) -> list[str]:
    """The plain sum beside it, the odometer, and what one more answer would take."""
    kept, budget = account["filter"], account["budget"]
    level = amount(Fraction(budget["delta"]), up=True)
    notes = [f"By plain sums: {price(account['spent'])}."]
    if "odometer" in kept:
        loss = amount(Fraction(kept["odometer"]), up=True)
        notes.append(f"Odometer: no loss above ε {loss} so far, except with probability {level}.")
    following = kept.get("next", {})
    if following.get("epsilon") is not None:
        taken = amount(Fraction(following["epsilon"]), up=True)
        notes.append(
            f"One more answer at {price(following['cost'])} would take ε {taken}; "
            f"{following['answers']:,} more fit."
        )
    return notes
