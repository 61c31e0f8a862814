"""The report of released answers: one HTML page that a person can read, print and check.

A pure function of records (plain JSON) and of the state of the account. The page needs no script,
font or picture from elsewhere, follows the reader's light or dark scheme, and prints. All that
comes from a record is escaped: keys are text out of somebody's data, names are as people write.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from html import escape
from typing import Any

from lastbit.errors import InvalidParameter
from lastbit.report.answer_charts import MOST_GROUPS, MOST_HISTOGRAMS, answer_charts
from lastbit.report.answer_look import LOOK
from lastbit.report.answer_tables import AnswerTable, long_table, shown_cell, totals_of, wide_table
from lastbit.report.answer_words import measures_asked, promise_sentences, question_sentences
from lastbit.report.plan import record_words, title_of
from lastbit.report.words import amount, price, printable

MOST_ROWS = 1000
MOST_COLUMNS = 4
MOST_JSON = 400_000
LETTERS = (("epsilon", "ε"), ("delta", "δ"), ("rho", "ρ"))

INTERVALS = (
    "An interval of 95 % holds the number that would have been released without noise in 95 of 100 "
    "releases, whatever the data are; its ends are rounded outwards. Each interval by itself does "
    "so: of twenty of them, expect one to miss.",
    "Intervals are about the noise. They do not cover what the limit on rows of one unit, bounds "
    "and rounding did to the data before, nor how the data were gathered.",
)


def page(
    *records: Mapping[str, Any],
    title: str | None = None,
    account: Mapping[str, Any] | None = None,
) -> str:
    """The page of one answer or several; `account` is the state of the budget, if it is known.

    An account has "budget", "spent" and "left", each with epsilon, delta and rho as fractions in
    text; budget and left are None where there is no limit.
    """
    if not records:
        raise InvalidParameter("records", problem="are none", remedy="pass an answer's record")
    several = len(records) > 1
    name = title or (title_of(records[0]) if not several else _several(records))
    budget = [] if account is None else list(_account(account, records))
    parts = [*_head(name, records, several=several), *(budget if several else ())]
    for number, record in enumerate(records, start=1):
        parts += _answer(record, level=3 if several else 2, number=number if several else None)
    parts += () if several else budget
    parts += _reading(2)
    parts += _checking(records, 2)
    version = escape(printable(str(records[0]["lastbit"]), 40))
    parts.append(f"<footer>lastbit {version}</footer>\n</main>\n</body>\n</html>\n")
    return "\n".join(parts)


def _several(records: Sequence[Mapping[str, Any]]) -> str:
    tables = sorted({printable(record["table"], 60) for record in records})
    return f"{len(records)} answers from {', '.join(tables)}"


def _head(name: str, records: Sequence[Mapping[str, Any]], *, several: bool) -> Iterator[str]:
    title = escape(printable(name))
    yield "<!doctype html>"
    yield '<html lang="en">\n<head>\n<meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield '<meta name="referrer" content="no-referrer">'
    yield f"<title>{title}</title>\n<style>{LOOK}</style>\n</head>\n<body>\n<main>"
    yield f"<header><h1>{title}</h1>"
    if several:
        yield '<ol class="contents">'
        for number, record in enumerate(records, start=1):
            cost = f'<span class="soft">{escape(price(record["cost"]))}</span>'
            words = escape(title_of(record))
            yield f'<li><a href="#answer{number}">{words}</a> {cost}</li>'
        yield "</ol>"
    else:
        table = escape(printable(records[0]["table"], 60))
        yield f'<p class="soft">from the table <strong>{table}</strong></p>'
    yield "</header>"


# ---------------------------------------------------------------- one answer


def _answer(record: Mapping[str, Any], *, level: int, number: int | None) -> Iterator[str]:
    yield "<article>"
    if number is not None:
        yield f'<h2 class="numbered" id="answer{number}">{number}. {escape(title_of(record))}</h2>'
    yield from _promise(record)
    yield from _question(record, level)
    yield f"<h{level}>Answer</h{level}>"
    yield from _numbers(record)
    yield from _plan(record, level)
    if record["notes"]:
        yield f"<h{level}>Notes</h{level}>\n<ul>"
        yield from (f"<li>{escape(printable(note, 1000))}</li>" for note in record["notes"])
        yield "</ul>"
    yield "</article>"


def _promise(record: Mapping[str, Any]) -> Iterator[str]:
    yield '<section class="promise">'
    yield f'<p class="price">{escape(price(record["cost"]))}</p>'
    first, *others = promise_sentences(record)
    yield f"<p><strong>{escape(first)}</strong> {escape(' '.join(others))}</p>"
    yield f'<p class="soft">{escape(printable(record["guarantee"], 400))}</p>'
    yield "</section>"


def _question(record: Mapping[str, Any], level: int) -> Iterator[str]:
    yield f"<h{level}>Question</h{level}>"
    first, *others = question_sentences(record)
    yield f"<p>{escape(first)}</p>\n<dl>"
    for name, words in measures_asked(record):
        yield f"<dt>{escape(name)}</dt><dd>{escape(words)}</dd>"
    yield "</dl>"
    if others:
        yield f"<p>{escape(' '.join(others))}</p>"
    sql = record["asked"].get("sql")
    if sql:
        lines = "\n".join(printable(line, 2000) for line in str(sql).splitlines())
        yield f"<pre>{escape(lines)}</pre>"


def _numbers(record: Mapping[str, Any]) -> Iterator[str]:
    if not record["rows"]:
        yield "<p>No group is shown: none was large enough, or none met the condition.</p>"
        return
    plain = [c for c in record["columns"] if c["role"] == "value" and c["function"] != "histogram"]
    single = len(record["rows"]) == 1 and not record["rows"][0]["keys"]
    if single and plain:
        yield from _figures(record)
    yield '<div class="charts">'
    yield from answer_charts(record)
    yield "</div>"
    histograms = len(plain) < sum(c["role"] == "value" for c in record["columns"])
    most = MOST_HISTOGRAMS if histograms else MOST_GROUPS
    if len(record["rows"]) > most:
        yield f'<p class="soft">Charts show the first {most} groups.</p>'
    if not single or histograms:
        yield from _table(record, histograms=histograms)
    for name, total in totals_of(record):
        yield f'<p class="soft">{escape(name)} in all: {escape(total)}</p>'


def _figures(record: Mapping[str, Any]) -> Iterator[str]:
    """The numbers of an answer without groups, large."""
    values = [column for column in record["columns"] if column["role"] == "value"]
    yield '<div class="figures">'
    for column, cell in zip(values, record["rows"][0]["cells"], strict=True):
        if column["function"] == "histogram":
            continue
        shown = shown_cell(cell)
        name = escape(printable(column["name"], 60))
        yield (
            f'<div class="figure"><div class="soft">{name}</div>'
            f'<div class="big">{escape(shown.value)}</div>'
            f"<div>{escape(shown.interval)} <span class='soft'>(95 %)</span></div></div>"
        )
    yield "</div>"


def _table(record: Mapping[str, Any], *, histograms: bool) -> Iterator[str]:
    values = sum(column["role"] == "value" for column in record["columns"])
    wide = values <= MOST_COLUMNS and not histograms
    table = wide_table(record, most=MOST_ROWS) if wide else long_table(record, most=MOST_ROWS)
    if histograms and not table.headings[-1]:  # bars of letters are for terminals
        cut = tuple(row[:-1] for row in table.rows)
        table = AnswerTable(
            headings=table.headings[:-1], rows=cut, numbers=table.numbers, left_out=table.left_out
        )
    yield '<div class="wide"><table class="answer"><thead><tr>'
    for place, heading in enumerate(table.headings):
        look = ' class="number"' if place in table.numbers else ""
        yield f"<th{look}>{escape(heading)}</th>"
    yield "</tr></thead><tbody>"
    for row in table.rows:
        yield "<tr>" + "".join(_cell(cell, i, table) for i, cell in enumerate(row)) + "</tr>"
    yield "</tbody></table></div>"
    if table.left_out:
        yield f'<p class="soft">... and {table.left_out:,} more groups.</p>'


def _cell(words: str, place: int, table: AnswerTable) -> str:
    if place not in table.numbers:
        return f"<td><bdi>{escape(words)}</bdi></td>"
    soft = " soft" if table.headings[place].startswith("±") else ""
    return f'<td class="number{soft}">{escape(words)}</td>'


def _plan(record: Mapping[str, Any], level: int) -> Iterator[str]:
    words = record_words(record)
    yield f"<h{level}>How it was made</h{level}>"
    yield f"<p>{escape(words.limits)} {escape(words.composition)}</p>"
    yield '<div class="wide"><table class="plan"><thead><tr><th>what</th><th>one unit moves it by '
    yield "at most</th><th>noise</th><th>95 % within</th><th>price</th><th>share</th></tr></thead>"
    yield "<tbody>"
    for row in words.rows:
        cells = (row.what, row.sensitivity, row.noise, row.error)
        yield "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        yield f'<td class="price-cell">{escape(row.price)}</td><td>{_share(row.share)}</td></tr>'
    yield "</tbody></table></div>"


def _share(share: float) -> str:
    return (
        f'<svg class="share" viewBox="0 0 100 10" width="70" height="10" role="img" '
        f'aria-label="{share:.0%}"><rect class="track" width="100" height="10" rx="3"/>'
        f'<rect class="bar" width="{100 * share:.2f}" height="10" rx="3"/></svg>'
        f'<span class="soft"> {100 * share:.0f} %</span>'
    )


# ---------------------------------------------------------------- the rest of the page


def _account(account: Mapping[str, Any], records: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield '<section class="budget"><h2>Budget</h2>'
    if account["budget"] is None:
        total = escape(price(account["spent"]))
        yield f"<p>This table has no limit. All its answers together cost {total}.</p></section>"
        return
    yield '<table class="plain">'
    for name, letter in LETTERS:
        whole = Fraction(account["budget"][name])
        if not whole:
            continue
        spent, left = Fraction(account["spent"][name]), Fraction(account["left"][name])
        here = sum((Fraction(record["cost"][name]) for record in records), Fraction(0))
        words = f"{amount(left, up=False)} left of {amount(whole, up=True)}"
        yield (
            f'<tr><th scope="row">{letter}</th><td>{_meter(spent, min(here, spent), whole)}</td>'
            f"<td>{escape(words)}</td></tr>"
        )
    yield "</table>"
    yield (
        '<p class="soft"><span class="swatch here"></span> this page '
        '<span class="swatch before"></span> other answers '
        '<span class="swatch left"></span> left. The same question to the same data is answered '
        "again at no charge.</p></section>"
    )


def _meter(spent: Fraction, here: Fraction, whole: Fraction) -> str:
    before, own = (float(max(part / whole, Fraction(0))) * 100 for part in (spent - here, here))
    return (
        '<svg class="meter" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="track" width="100" height="6"/>'
        f'<rect class="before" width="{before:.2f}" height="6"/>'
        f'<rect class="bar" x="{before:.2f}" width="{own:.2f}" height="6"/></svg>'
    )


def _reading(level: int) -> Iterator[str]:
    yield f"<h{level}>What the intervals mean</h{level}>"
    yield from (f"<p>{escape(words)}</p>" for words in INTERVALS)


def _checking(records: Sequence[Mapping[str, Any]], level: int) -> Iterator[str]:
    yield f"<h{level}>Check it again</h{level}>"
    yield (
        "<p>Every answer holds its certificate. For an answer that was saved as answer.json, a "
        "second program works sensitivities, noise and price out anew, with nothing but the "
        "integers and fractions of Python's standard library:</p>\n"
        "<pre>lastbit check answer.json</pre>"
    )
    assumptions = records[0]["certificate"].get("assumptions", ())
    if assumptions:
        yield "<p>The promise holds on these assumptions, which no program has checked:</p>\n<ul>"
        yield from (f"<li>{escape(printable(str(words), 1000))}</li>" for words in assumptions)
        yield "</ul>"
    for record in records:
        certificate, entry = record["certificate"], record.get("entry")
        yield '<table class="plain facts">'
        if len(records) > 1:
            yield f'<tr><th scope="row">answer</th><td>{escape(title_of(record))}</td></tr>'
        digest = escape(printable(str(certificate.get("digest", "none")), 100))
        yield f'<tr><th scope="row">certificate</th><td><code>{digest}</code></td></tr>'
        if entry is not None:
            place = escape(printable(str(entry["hash"]), 100))
            yield (
                f'<tr><th scope="row">ledger, entry {int(entry["sequence"])}</th>'
                f"<td><code>{place}</code></td></tr>"
            )
        question = escape(printable(str(record["question"]), 100))
        yield f'<tr><th scope="row">question</th><td><code>{question}</code></td></tr></table>'
        whole = json.dumps(certificate, indent=1, ensure_ascii=True)
        if len(whole) <= MOST_JSON:
            yield "<details><summary>The whole certificate</summary>"
            yield f'<pre class="whole">{escape(whole)}</pre></details>'
