"""Templates filled in, and what pages say of tables, accounts, answers and entries: plain data.

What is not the server's own words is escaped by the templates; only charts, which `lastbit.report`
has drawn and escaped, are put in as they are. Amounts are rounded to the safe side: what is left
down, everything else up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from fractions import Fraction
from functools import cache
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from jinja2 import Environment
from starlette.requests import Request
from starlette.responses import HTMLResponse

from lastbit import __version__
from lastbit.canonical import sha256
from lastbit.doors import content
from lastbit.ledger import Entry, Limit
from lastbit.report import (
    amount,
    page_environment,
    price,
    printable,
    rendered,
    title_of,
)
from lastbit.serve.identity import Identity
from lastbit.serve.routes import Right
from lastbit.tables import DataCard, quoted, unit_name

_LONGEST_WORDS = 2000
CURRENCIES = (("epsilon", "ε"), ("delta", "δ"), ("rho", "ρ"))
_PLACES: tuple[tuple[str, str, Right], ...] = (
    ("/", "Tables", "browse"),
    ("/answers", "Answers", "browse"),
    ("/budget", "Budget", "browse"),
    ("/ledger", "Ledger", "ledger"),
    ("/users", "Users", "users"),
    ("/audit", "Audit", "audit"),
)
STATIC: Mapping[str, str] = MappingProxyType(
    {
        "serve.css": "text/css",
        "serve.js": "text/javascript",
        "editor.js": "text/javascript",
        "icon.svg": "image/svg+xml",
    }
)
MAY: Mapping[Right, str] = MappingProxyType(
    {
        "browse": "see tables, answers and budgets",
        "preview": "see prices before paying",
        "ask": "pay for answers",
        "ledger": "read the ledger",
        "audit": "read the audit log",
        "users": "manage users",
        "allowances": "set allowances",
        "data": "accept data",
    }
)
_THIS: Mapping[str | None, str] = MappingProxyType(
    {None: "", "day": " today", "week": " this week", "month": " this month", "year": " this year"}
)
_MOST_KEYS, _A_MINUTE = 12, 60


# ---------------------------------------------------------------- templates


def _load(name: str) -> str:
    if name.startswith("report/"):
        return content("lastbit.report", f"templates/{name.removeprefix('report/')}")
    return content("lastbit.serve", f"templates/{name}")


@cache
def _environment() -> Environment:
    environment = page_environment(_load)
    environment.globals.update(static=_static_address, to=path_to, version=__version__)
    environment.globals.update(card_columns=card_columns, unit_name=unit_name)
    environment.filters.update(moment=moment, when=when_words, price=price, span=seconds_words)
    return environment


def render(
    request: Request, name: str, *, status: int = 200, title: str = "", **data: Any
) -> HTMLResponse:
    """A page: the template filled in, with who is signed in and where they may go."""
    who: Identity | None = getattr(request.state, "identity", None)
    rights: frozenset[Right] = frozenset() if who is None else who.rights
    text = (
        _environment()
        .get_template(name)
        .render(
            title=title,
            identity=who,
            can=rights.__contains__,
            here=request.url.path,
            places=[(path, words) for path, words, right in _PLACES if right in rights],
            **data,
        )
    )
    return HTMLResponse(text, status)


def path_to(*parts: object) -> str:
    """The path of these parts, whatever they hold."""
    return "/" + "/".join(quote(str(part), safe="") for part in parts)


@cache
def static_text(name: str) -> str:
    """The text of a static file; the style sheet of reports comes before our own."""
    text = content("lastbit.serve", f"static/{name}")
    return str(rendered("style.css")) + text if name == "serve.css" else text


@cache
def _static_address(name: str) -> str:
    """By its digest, so that browsers may keep it for good."""
    return f"/static/{name}?v={sha256(static_text(name))[:12]}"


# ---------------------------------------------------------------- times


def moment(seconds: float, *, exact: bool = False) -> str:
    """A time since 1970, in minutes or seconds."""
    form = "%Y-%m-%d %H:%M:%S UTC" if exact else "%Y-%m-%d %H:%M UTC"
    return datetime.fromtimestamp(seconds, UTC).strftime(form)


def when_words(text: str) -> str:
    """The time of an entry."""
    return f"{text[:16].replace('T', ' ')} UTC"


def seconds_words(seconds: float) -> str:
    """A length of time."""
    if seconds < 2 * _A_MINUTE:
        return f"{seconds:g} s"
    return f"{seconds / _A_MINUTE:.3g} min"


def timing(slot: float | None, *, strict: bool) -> str:
    """When answers appear."""
    if slot is None:
        return "The first answer takes some seconds longer: slots are measured on made-up rows."
    times = [seconds_words(k * slot) for k in ((1,) if strict else (1, 2, 4))]
    after = times[0] if len(times) == 1 else f"{', '.join(times[:-1])} or {times[-1]}"
    return f"Answers appear after a fixed {after}, so that timing reveals nothing."


# ---------------------------------------------------------------- tables and allowances


def protects(card: DataCard) -> list[str]:
    """Privacy unit, neighbours and contribution bounds, in sentences."""
    whose = "person" if card.unit is None else unit_name(card.unit)
    hides = f"whether any one {whose} is in the table at all"
    if card.neighbours.relation == "change-one":
        hides = f"what the rows of any one {whose} say; how many there are is public"
    sentences = [f"Answers hide {hides}."]
    if card.unit is None:
        return [*sentences, "Each row is a different person."]
    if card.max_rows_open:
        rows = f"A profile of the table decides for how many rows each {whose} counts."
    elif card.max_rows == 1:
        rows = f"Each {whose} is counted once."
    else:
        most = f"at most {card.max_rows:,} rows in all"
        rows = f"Each {whose} counts for {most}; with more rows, each weighs less."
    sentences.append(rows)
    if card.max_groups is not None:
        groups = "1 group" if card.max_groups == 1 else f"{card.max_groups:,} groups"
        sentences.append(
            f"Each {whose} contributes to at most {groups}, if their keys are not declared."
        )
    return sentences


def card_columns(columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What a card declares of columns; names and keys also as SQL writes them."""
    found = []
    for column in columns.values():
        ends = [str(end) for end in column.bounds or ()]
        if column.number_bounds is not None:
            ends = [amount(end, up=bool(place)) for place, end in enumerate(column.bounds)]
        keys = column.keys or ()
        found.append(
            {
                "name": column.name,
                "sql": quoted(column.name),
                "type": column.stored_type,
                "within": " to ".join(ends),
                "keys": [_key(key) for key in keys[:_MOST_KEYS]],
                "more": max(len(keys) - _MOST_KEYS, 0),
                "missing": column.nullable,
                "meaning": printable(column.description or "", _LONGEST_WORDS),
            }
        )
    return found


def _key(key: Any) -> tuple[str, str]:
    """A key, and the literal that it is in SQL."""
    match key:
        case None:
            return "(missing)", "NULL"
        case bool() | int():
            return str(key), str(key).upper()
        case _:
            return str(key), "'" + str(key).replace("'", "''") + "'"


def examples_of(served: Any) -> list[dict[str, Any]]:
    """Questions to begin with: words, price, and the fields of a form."""
    found = []
    for one in served.examples:
        costs = {name: getattr(one, name, None) for name, _ in CURRENCIES}
        fields = [("sql", one.sql), *((name, text) for name, text in costs.items() if text)]
        words = ", ".join(f"{letter} = {costs[name]}" for name, letter in CURRENCIES if costs[name])
        found.append({"words": one.words, "sql": one.sql, "price": words, "fields": fields})
    return found


def allowance_parts(one: Any, name: str) -> dict[str, Any]:
    """An allowance in bars, like those of an account."""
    rows = []
    for currency, letter in CURRENCIES:
        limit, used = getattr(one.limit, currency), getattr(one.used, currency)
        if limit is None:
            continue
        left = amount(max(limit - used, Fraction(0)), up=False)
        share = 100.0 if not limit else min(float(100 * used / limit), 100.0)
        rows.append(
            {"letter": letter, "words": f"{left} left of {amount(limit, up=True)}", "before": share}
        )
    return {"rows": rows, "name": name + _THIS[one.limit.period], "account": one.account}


def may_words(rights: Iterable[Right], tables: Iterable[str] | None) -> str:
    """What a token may do."""
    words = "; ".join(words for right, words in MAY.items() if right in rights) or "nothing"
    return words if tables is None else f"{words}; only {', '.join(sorted(tables))}"


# ---------------------------------------------------------------- answers and entries


def citation(record: Mapping[str, Any], number: int, day: str) -> str:
    """How to name an answer in a paper."""
    digest = record["certificate"].get("digest", "none")
    return (
        f"{title_of(record)}. Answer {number} about the table {record['table']}, {day}. "
        f"{record['guarantee']}. lastbit {record['lastbit']}, certificate SHA-256 {digest}."
    )


def file_name(record: Mapping[str, Any], number: int, ending: str) -> str:
    """What a download is called; only letters, digits and "-"."""
    plain = "".join(c if c.isascii() and c.isalnum() else "-" for c in str(record["table"]))
    return f"{plain[:40]}-{number}.{ending}"


def entry_line(entry: Entry) -> dict[str, Any]:
    """An entry of the ledger in a list."""
    match entry.kind:
        case "principal":
            what = f"{entry.principal}: {entry.role or 'removed'}"
        case "allowance":
            what = f"{entry.principal}: {_limit_words(entry.limit)}"
        case "budget" if not entry.words:
            what = "no limit" if entry.budget is None else _amounts(entry.budget)
        case _:
            what = entry.words or ""
    return {
        "sequence": entry.sequence,
        "when": when_words(entry.when),
        "kind": entry.kind,
        "account": printable(entry.account or ""),
        "who": printable(entry.principal if entry.cost and entry.principal else entry.who or ""),
        "price": "" if entry.cost is None else price(entry.cost.to_json()),
        "what": printable(what, _LONGEST_WORDS),
        "answer": entry.sequence if entry.result is not None else None,
    }


def _limit_words(limit: Limit | None) -> str:
    if limit is None:
        return "no allowance"
    return _amounts(limit) + ("" if limit.period is None else f" a {limit.period}")


def _amounts(of: Any) -> str:
    named = ((letter, getattr(of, name)) for name, letter in CURRENCIES)
    return ", ".join(f"{letter} = {amount(n, up=True)}" for letter, n in named if n)
