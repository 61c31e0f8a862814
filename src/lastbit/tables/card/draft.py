"""The draft of a data card, and a card compared with its source: names and types, never a value.

The types of Parquet and DuckDB files stand in their schema; a CSV file has only names (its first
line), so every type is left to be decided. A card that still has the word "decide" is refused.
Where the steward has looked at the data (`proposal.py`), what comes from there is marked.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType

from lastbit.errors import InvalidParameter
from lastbit.tables.backends.columns import columns_of
from lastbit.tables.card.fields import Problem
from lastbit.tables.card.proposal import FROM_DATA, ColumnProposal, bounds_text
from lastbit.tables.card.schema import DataCard, Source
from lastbit.tables.card.source import ON_SPARK
from lastbit.tables.card.toml import lines_of, nearest_line, toml_key, toml_string
from lastbit.tables.query.expression import StoredType

_HEAD = """\
# A data card: what is publicly known of a table, and what its answers may cost in all.
# Replace every "decide". {looked}

[table]
name = {name}
source = {source}
# add-remove hides whether a unit is in the table at all. change-one hides what its rows say:
# then the number of units is public.
neighbours = {neighbours}
{rows}
[unit]
# Whose row is it? The column that names the person, patient or household.
# If each row is a different person, write  each_row = true  instead of column.
{unit}
# The contribution bound: this many rows of one unit count in full. With more, each weighs less.
# Left out, it is chosen for each question from a private profile (lastbit card profile).
{max_rows}
# The most groups in which one unit is counted. Left out, it is chosen in the same way.
# max_groups = 3
# at_most = 366   # nobody has more rows, as everybody knows: whole intervals are sure then

[budget]
# What all answers together may cost. Smaller protects better: 1 is common, 10 protects little.
epsilon = {epsilon}
# Needed to find keys that are not declared, and for Gaussian noise. Well below 1 / units.
{delta}
# Or, instead of both, concentrated privacy:  rho = 0.5

[ledger]
path = {ledger}

# [access]
# users = ["ana", "ben"]   # who may ask; without this, everybody who can read the files

# Columns. Drop those that no question may use.
#   bounds = [low, high]   values outside count as the nearer bound. Left out, a profile
#                          chooses them for sums, means and quantiles.
#   step = 0.01            numbers are rounded to its multiples before they are summed
#   keys = ["a", "b"]      the groups to show; else they are found privately, for a delta
#   nullable = false       every row has a value; a mean then shares the count of all rows
# {where}
"""
_NOT_LOOKED = "Nothing here was taken from the values of the table."
_LOOKED = """The types were read off the values of the table.
# A line marked "taken from the data" was, too. No guarantee covers it: readers of this
# card or an answer learn it of people. Wherever you can, write what everybody knows instead."""
_WHERE = "Take bounds and keys from what everybody knows (a form, a law), never from the data."
_WHERE_LOOKED = (
    "Bounds and keys behind a # were seen in the data, too: take the # away to declare them."
)
_HINTS = MappingProxyType(
    {
        **dict.fromkeys(("integer", "number"), "# bounds = [0, 100]\n"),
        **dict.fromkeys(("date", "timestamp"), '# bounds = ["2020-01-01", "2024-12-31"]\n'),
        "text": '# keys = ["a", "b"]\n',
    }
)
_PLAIN_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_NUMBERLIKE = re.compile(r"\s*[+-]?[\d.,' _]*\d[\d.,' _%]*([eE][+-]?\d+)?\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """What the steward has decided already; None and "" are left to be decided on the card.

    `epsilon` and `delta` are numbers as they are to be written.
    """

    unit: str | None = None
    each_row: bool = False
    max_rows: int | None = None
    neighbours: str | None = None
    epsilon: str = ""
    delta: str = ""
    rows: int | None = None
    rows_from_data: bool = False
    likely_unit: str | None = None
    """The column that a look proposes; it is named in a comment while the unit is open."""

    def fields(self, *, accepted: bool = False) -> dict[str, str]:
        """The lines of the card that it decides, and the others as they wait.

        The number of rows that was seen stands behind a # until it is `accepted`.
        """
        unit = "each_row = true" if self.each_row else f"column = {_told(self.unit)}"
        if self.unit is None and not self.each_row and self.likely_unit is not None:
            unit += f"  # perhaps {toml_string(self.likely_unit)}"
        rows = f"max_rows = {self.max_rows}" if self.max_rows else "# max_rows = 20"
        return {
            "neighbours": _told(self.neighbours),
            "unit": unit,
            "max_rows": "# (each row is a unit: nothing to bound)" if self.each_row else rows,
            "epsilon": _in_toml(self.epsilon) if self.epsilon else _told(None),
            "delta": f"delta = {_in_toml(self.delta)}" if self.delta else "# delta = 1e-9",
            "rows": self._rows_line(accepted),
        }

    def _rows_line(self, accepted: bool) -> str:
        """About how many rows there are; nothing if nobody has said it."""
        if self.rows is None:
            return ""
        line = f"rows = {self.rows}"
        if self.rows_from_data:
            line = _marked(line) if accepted else f"# {_marked(line)}"
        return f"# About how many rows there are, as everybody knows.\n{line}\n"


def _told(value: str | None) -> str:
    return toml_string("decide" if value is None else value)


def _in_toml(text: str) -> str:
    """A number as TOML has it: 0.5 as it is, 1/3 as text."""
    return text if _PLAIN_NUMBER.fullmatch(text) else toml_string(text)


def _marked(line: str) -> str:
    return f"{line}  {FROM_DATA}"


def drafted(
    source: Source,
    columns: Mapping[str, StoredType | None],
    *,
    name: str,
    decided: Decided = Decided(),  # noqa: B008  a frozen value
    proposed: Mapping[str, ColumnProposal] | None = None,
    accepted: bool = False,
) -> str:
    """The text of a card to be completed; `columns` are names and types, None where unknown.

    The paths of the source stand in the card as they are here. What is `proposed` of columns, by a
    look at their values, stands behind a # until it is `accepted`.

    >>> text = drafted(Source(kind="csv", paths=("v.csv",)), {"first name": "text"}, name="v")
    >>> text.splitlines()[-3:]
    ['[columns."first name"]', 'type = "text"', '# keys = ["a", "b"]']
    """
    scheme = ON_SPARK if source.kind == "spark" else ""
    names = [source.table or ""] if scheme and not source.paths else source.paths
    paths = [toml_string(f"{scheme}{name}") for name in names]
    place = paths[0] if len(paths) == 1 else f"[{', '.join(paths)}]"
    if source.kind == "duckdb":
        place = f"{{duckdb = {paths[0]}, table = {toml_string(source.table or '')}}}"
    if source.kind == "postgres":
        place = f"{paths[0]}\ntable = {toml_string(source.table or '')}"
    ledger = toml_string(f"{name}.ledger")
    known = decided.fields(accepted=accepted)
    known |= {"looked": _NOT_LOOKED, "where": _WHERE}
    if proposed is not None:
        known |= {"looked": _LOOKED, "where": _WHERE_LOOKED}
    text = _HEAD.format(name=toml_string(name), source=place, ledger=ledger, **known)
    for column, kind in columns.items():
        if proposed is not None and column in proposed:
            text += _proposed_section(proposed[column], accepted=accepted)
            continue
        text += f"\n[{toml_key('columns', column)}]\n"
        if kind is None:
            text += 'type = "decide"  # integer, number, text, boolean, date or timestamp\n'
        else:
            text += f"type = {toml_string(kind)}\n{_HINTS.get(kind, '')}"
    return text


def _proposed_section(column: ColumnProposal, *, accepted: bool) -> str:
    """One column as a look proposes it; behind # if it had better be left out."""
    lines = [f"[{toml_key('columns', column.name)}]", f"type = {toml_string(column.stored_type)}"]
    lines[1] += f"  # {column.remark}" if column.remark else ""
    for field_name, written in (("bounds", _bounds(column)), ("keys", _keys(column))):
        if written:
            line = f"{field_name} = {written}"
            if field_name in column.from_data:
                line = _marked(line) if accepted else f"# {_marked(line)}"
            lines.append(line)
    if column.left_out:
        lines = [f"# {line.removeprefix('# ')}" for line in lines]
        lines[0] += f"  # left out: {column.left_out}"
    return "\n" + "\n".join(lines) + "\n"


def _bounds(column: ColumnProposal) -> str:
    if column.bounds is None:
        return ""
    ends = bounds_text(column.bounds)
    days = column.type in _DAYS
    return f"[{', '.join(map(toml_string if days else _in_toml, ends))}]"


def _keys(column: ColumnProposal) -> str:
    if column.keys is None:
        return ""
    keys = (toml_string(key) if isinstance(key, str) else str(key) for key in column.keys)
    return f"[{', '.join(keys)}]"


def taken_from_data(text: str) -> list[str]:
    """The fields of a card that are marked as taken from the data, as they are called."""
    text = text.replace("\r\n", "\n")
    lines = text.split("\n")
    marked = {
        path: lines[number - 1].rstrip().endswith(FROM_DATA)
        for path, number in lines_of(text).items()
    }
    return [toml_key(*path) for path, is_marked in marked.items() if is_marked]


def columns_to_draft(
    source: Source, columns: Mapping[str, StoredType]
) -> dict[str, StoredType | None]:
    """The columns of a source, with the types that its schema states: CSV files state none."""
    check_names(source, columns)
    return dict.fromkeys(columns) if source.kind == "csv" else dict(columns)


def check_names(source: Source, names: Iterable[str]) -> None:
    """Refuse names of a CSV file that look like values, and do not repeat them.

    A file without a header would give away its first row as names.
    """
    if source.kind == "csv" and any(map(_value_like, names)):
        problem = "looks like a row of values, not like names of columns"
        remedy = "write a header above it, in which no name is a number, a date or an address"
        raise InvalidParameter("the first line", problem=problem, remedy=remedy)


def table_name(text: str) -> str:
    """A name that SQL need not quote, made of that of a file or table.

    >>> table_name("2026 visits.csv.gz"), table_name("Stays")
    ('t_2026_visits', 'Stays')
    """
    stem = re.sub(r"\.(csv|tsv|parquet|pq|duckdb|db|gz)\b.*$", "", text, flags=re.IGNORECASE)
    plain = re.sub(r"[^A-Za-z0-9]+", "_", stem).strip("_") or "rows"
    return f"t_{plain}" if plain[0].isdigit() else plain


def _value_like(name: str) -> bool:
    if _NUMBERLIKE.fullmatch(name) or "@" in name:
        return True
    try:
        datetime.fromisoformat(name.strip())
    except ValueError:
        return False
    return True


_DAYS = ("date", "timestamp")


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What the card says of columns that the source says otherwise; places are fields of a card."""

    wrong: list[tuple[tuple[str, ...], str, str]] = field(default_factory=list)
    """Place, problem and remedy: columns that are not there, or could only be missing."""
    notes: list[str] = field(default_factory=list)
    unlisted: list[str] = field(default_factory=list)
    """Columns of the source that the card leaves out."""

    def problems(self, lines: Mapping[tuple[str, ...], int]) -> list[Problem]:
        """What is wrong, on the lines of the card."""
        return sorted(
            Problem(nearest_line(lines, place), toml_key(*place), problem, remedy)
            for place, problem, remedy in self.wrong
        )


def compared(card: DataCard) -> Compared:
    """The card beside its sources; refuses those that cannot be read."""
    found = Compared()
    spill = card.engine_limits.spill_folder
    if spill is not None and not os.access(spill, os.W_OK | os.X_OK):
        remedy = "make it, or name another"
        problem = "is not a folder that can be written to"
        found.wrong.append((("engine", "spill_folder"), problem, remedy))
    types = columns_of(card.source)
    declared = card.columns_at(0)
    _compare(found, ("columns",), card.source, types, declared)
    known = {name.lower() for name in declared}
    found.unlisted.extend(name for name in types if name.lower() not in known)
    for public in card.public.values():
        place = ("public", public.name, "columns")
        _compare(found, place, public.source, columns_of(public.source), public.columns)
    for at, one in enumerate(card.through, start=1):
        place = ("through", one.name, "columns")
        _compare(found, place, one.source, columns_of(one.source), card.columns_at(at))
    for private in card.private.values():
        place = ("private", private.name, "columns")
        kinds = {column.name: column.type for column in private.columns.values()}
        _compare(found, place, private.source, columns_of(private.source), kinds)
    return found


def _compare(
    found: Compared,
    path: tuple[str, ...],
    source: Source,
    types: Mapping[str, StoredType],
    declared: Mapping[str, StoredType],
) -> None:
    there = {name.lower(): kind for name, kind in types.items()}
    for name, kind in declared.items():
        called = ".".join((*path[1:-1], name))  # planes.year, of a joined table
        actual = there.get(name.lower())
        if actual is None:
            problem = "is not in the source, or nested or generated there"
            found.wrong.append(((*path, name), problem, "check the name, or store plain values"))
        elif kind.endswith("[]") != actual.endswith("[]"):
            problem = f"is {kind} here and {actual} in the source"
            found.wrong.append(((*path, name), problem, f'write type = "{actual}"'))
        elif (
            source.kind != "csv"
            and (kind in _DAYS) != (actual in _DAYS)
            and "text" not in (kind, actual)
        ):
            problem = f"is {kind} here and {actual} in the source: every value would be missing"
            found.wrong.append(((*path, name), problem, f'write type = "{actual}"'))
        elif (
            source.engine != "duckdb"
            and "text" in (kind, actual)
            and (kind, actual) not in (("text", "text"), ("text", "integer"), ("text", "boolean"))
        ):
            problem = f"is {kind} here and {actual} in the source, and is not read as that there"
            found.wrong.append(((*path, name), problem, f'write type = "{actual}"'))
        elif source.kind != "csv" and actual == "text" and kind != "text":
            said = f"the source has text; what does not read as {kind} counts as missing."
            found.notes.append(f"{called}: {said}")
        elif source.kind != "csv" and actual == "number" and kind == "integer":
            said = "the source has numbers with a point; they are rounded to whole ones."
            found.notes.append(f"{called}: {said}")
