"""A look at the values of a source, for the steward who drafts its card and asked for one.

This is the one place where values are read to be shown as they are. No question passes through
here, and nothing is kept: what was seen goes to the steward's terminal and, where it was accepted,
into the card, marked (`card/proposal.py`). Text is tried by the casts that questions use, so a type
is proposed only if its values are read as that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import duckdb

from lastbit.errors import EngineFailed
from lastbit.tables.backends.duckdb.card_types import type_named
from lastbit.tables.backends.duckdb.engine import EngineSession
from lastbit.tables.backends.duckdb.files import opened
from lastbit.tables.backends.duckdb.sources import element_named, shown, textual
from lastbit.tables.card.proposal import (
    MISSING_WORDS,
    MOST_COUNTED,
    ColumnLook,
    TableLook,
    UnitLook,
)
from lastbit.tables.card.schema import Source
from lastbit.tables.compile.duckdb import DUCKDB
from lastbit.tables.compile.rows import relation
from lastbit.tables.compile.steps import identifier, string
from lastbit.tables.query.expression import ColumnType

Look = TypeVar("Look")

_AT_ONCE = 24  # columns of one statement: more take memory, fewer more scans
_EXAMPLES = 3
_LONGEST_EXAMPLE = 40
_RANKS = "[0.001, 0.01, 0.99, 0.999]"
_LOGIC = ("true", "false", "t", "f", "yes", "no", "y", "n")
# what text of a type looks like: TRY_CAST alone rounds 1.5 to 2, and takes "infinity" for a date
_WHOLE = r"\s*[+-]?(0|[1-9][0-9]*)(\.0*)?\s*"
_LEADING_ZERO = r"\s*0[0-9]+\s*"
_LONG = r"\s*[+-]?[0-9]{17,}\s*"
_DAY = r"\s*[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}.*"
_OTHER_DAY = r"\s*([0-9]{1,2}[./-][0-9]{1,2}[./-][0-9]{2,4}|[0-9]{4}[./][0-9]{1,2}[./][0-9]{1,2}).*"
_OTHER_NUMBER = r"\s*[$€£+-]*\s*[0-9][0-9.,' ]*\s*[%€$£]?\s*"


def table_look(session: EngineSession, source: Source) -> TableLook:
    """What stands in the columns of a source, by two scans of it."""

    def run(connection: Any) -> TableLook:
        with opened(source) as there:
            name = relation()
            kinds = shown(connection, there, name)
            place = identifier(name)
            (rows,) = connection.execute(f"SELECT count(*) FROM {place}").fetchall()[0]
            looks: dict[str, ColumnLook] = {}
            columns = [column for column in kinds if element_named(kinds[column]) is None]
            for start in range(0, len(columns), _AT_ONCE):
                some = {column: kinds[column] for column in columns[start : start + _AT_ONCE]}
                looks |= _looks(connection, place, some)
            looks |= _looks_at_lists(connection, place, kinds)
            there.check_unchanged()
            return TableLook(rows=rows, columns={column: looks[column] for column in kinds})

    return _with_text_checked(session, run)


def unit_look(session: EngineSession, source: Source, column: str) -> UnitLook:
    """How many rows the units of this column have."""

    def run(connection: Any) -> UnitLook:
        with opened(source) as there:
            name = relation()
            shown(connection, there, name)
            units = f"SELECT count(*) AS n FROM {identifier(name)} WHERE {identifier(column)}"
            units += f" IS NOT NULL GROUP BY {identifier(column)}"
            numbers = "count(*), median(n), quantile_disc(n, 0.99), max(n)"
            sql = f"SELECT {numbers} FROM ({units})"
            count, middle, most, largest = connection.execute(sql).fetchall()[0]
            return UnitLook(units=count, median=middle or 0, most=most or 0, largest=largest or 0)

    return _with_text_checked(session, run)


def _with_text_checked(session: EngineSession, run: Callable[[Any], Look]) -> Look:
    """What `run` gives; a value that stops DuckDB is said to be one, and not repeated."""

    def guarded(connection: Any) -> Look:
        try:
            return run(connection)
        except duckdb.Error as error:
            kind = type(error).__name__
        words = f"the source holds values that DuckDB cannot read ({kind}); write it as CSV in"
        raise EngineFailed(f"{words} UTF-8, or leave out --look")

    return session.guarded(guarded)


def _looks(connection: Any, place: str, kinds: Mapping[str, str]) -> dict[str, ColumnLook]:
    """The looks at these columns: one scan for all, and one that counts values where few are."""
    parts = {column: _aggregates(column, kind) for column, kind in kinds.items()}
    listed = ", ".join(sql for part in parts.values() for sql in part.values())
    values = iter(connection.execute(f"SELECT {listed} FROM {place}").fetchall()[0])
    found = {column: {name: next(values) for name in part} for column, part in parts.items()}
    few = [c for c, fields in found.items() if fields["distinct"] <= MOST_COUNTED]
    histograms: dict[str, dict[str, int]] = {}
    if few:
        listed = ", ".join(f"histogram(CAST({identifier(c)} AS VARCHAR))" for c in few)
        rows = connection.execute(f"SELECT {listed} FROM {place}").fetchall()[0]
        histograms = {c: dict(counts or {}) for c, counts in zip(few, rows, strict=True)}
    return {
        column: _column_look(column, kinds[column], fields, histograms.get(column))
        for column, fields in found.items()
    }


def _looks_at_lists(connection: Any, place: str, kinds: Mapping[str, str]) -> dict[str, ColumnLook]:
    """The looks at the elements of columns of lists."""
    found: dict[str, ColumnLook] = {}
    for column, kind in kinds.items():
        element, name = element_named(kind), identifier(column)
        if element is not None:
            rows = f"(SELECT unnest({name}) AS {name} FROM {place})"
            (look,) = _looks(connection, rows, {column: element}).values()
            found[column] = replace(look, is_list=True)
    return found


def _column_look(
    column: str, kind: str, fields: Mapping[str, Any], counts: Mapping[str, int] | None
) -> ColumnLook:
    examples = tuple(str(value)[:_LONGEST_EXAMPLE] for value in fields["examples"] or ())
    ranks = fields.get("ranks"), fields.get("days")
    return ColumnLook(
        name=column,
        type=type_named(kind),
        is_text=textual(kind),
        present=fields["present"],
        distinct=len(counts) if counts is not None else fields["distinct"],
        readable={type_: fields[type_] for type_ in _TRIED if type_ in fields},
        other_days=fields.get("other_days", 0),
        other_numbers=fields.get("other_numbers", 0),
        zeros=fields.get("zeros", 0),
        long=fields.get("long", 0),
        length=fields.get("length") or 0.0,
        numbers=tuple(ranks[0]) if ranks[0] and None not in ranks[0] else None,
        days=tuple(day.date() for day in ranks[1]) if ranks[1] and None not in ranks[1] else None,
        counts=counts,
        examples=examples,
    )


_TRIED: tuple[ColumnType, ...] = ("boolean", "integer", "number", "date", "timestamp")


def _aggregates(column: str, kind: str) -> dict[str, str]:
    """The aggregates of one column, by what each is called above."""
    name, plain = identifier(column), type_named(kind)
    written = f"CAST({name} AS VARCHAR)"
    common = {
        "distinct": f"approx_count_distinct({name})",
        "examples": f"approx_top_k({written}, {_EXAMPLES}) FILTER ({name} IS NOT NULL)",
    }
    if not textual(kind):
        common["present"] = f"count({name})"
        return common | _ranks(name, plain)
    given = f"{name} IS NOT NULL AND lower(trim({name})) NOT IN ({_listed(MISSING_WORDS)})"
    number, day = DUCKDB.read(name, "number", "text"), DUCKDB.read(name, "timestamp", "text")
    dated = f"{_full_match(name, _DAY)} AND isfinite({day})"
    tried = {
        "present": "true",
        "boolean": f"lower(trim({name})) IN ({_listed(_LOGIC)})",
        "integer": f"{_full_match(name, _WHOLE)}"
        f" AND {DUCKDB.read(name, 'integer', 'text')} IS NOT NULL",
        "number": f"isfinite({number}) AND NOT contains({name}, '_')",
        "date": f"{dated} AND NOT contains({name}, ':')",
        "timestamp": dated,
        "other_days": _full_match(name, _OTHER_DAY),
        "other_numbers": _full_match(name, _OTHER_NUMBER),
        "zeros": _full_match(name, _LEADING_ZERO),
        "long": _full_match(name, _LONG),
    }
    counts = {what: f"count(*) FILTER ({given} AND {test})" for what, test in tried.items()}
    ranks = {
        "ranks": f"approx_quantile({number}, {_RANKS}) FILTER ({given} AND isfinite({number}))",
        "days": f"approx_quantile({day}, {_RANKS}) FILTER ({given} AND {dated})",
    }
    return common | counts | ranks | {"length": f"avg(length({name}))"}


def _ranks(name: str, kind: ColumnType) -> dict[str, str]:
    """Values near both ends of a column that is no text."""
    if kind in ("integer", "number"):
        number = f"TRY_CAST({name} AS DOUBLE)"
        return {"ranks": f"approx_quantile({number}, {_RANKS}) FILTER (isfinite({number}))"}
    if kind in ("date", "timestamp"):
        day = f"TRY_CAST({name} AS TIMESTAMP)"
        return {"days": f"approx_quantile({day}, {_RANKS}) FILTER (isfinite({day}))"}
    return {}


def _full_match(name: str, pattern: str) -> str:
    return f"regexp_full_match({name}, {string(pattern)})"


def _listed(words: Sequence[str]) -> str:
    return ", ".join(map(string, words))
