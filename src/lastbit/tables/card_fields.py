"""Fields of a card, taken one by one; what is wrong is noted with its line, and told at the end."""

from __future__ import annotations

import glob
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from pathlib import Path as Folder
from typing import Any, TypeVar, cast

from lastbit.errors import CardRefused, InvalidParameter
from lastbit.exact.rational import rational
from lastbit.tables.card_lines import Path, lines_of, nearest_line
from lastbit.tables.expression import Value
from lastbit.tables.schema import ColumnType, Source
from lastbit.tables.toml_text import toml_key

__all__ = ["Fields", "Problem", "Written", "refusal", "source_of"]

Result = TypeVar("Result")

_UNDECIDED = "decide"
_MOST_TOLD = 50
_LONGEST_NAME = 60
_LARGEST_KEY = 2**63 - 1
_FIELDS = ("type", "bounds", "step", "keys", "max_rows", "max_groups", "epsilon", "delta", "rho")
_PATTERN = re.compile(r"[*?\[]")


class Written(str):
    """A number with a point, as it was written: 0.1 is not the float 0.1."""


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """What is wrong on one line of a card, and what to do about it."""

    line: int
    where: str
    problem: str
    remedy: str
    undecided: bool = False
    """Whether the line only waits for the steward."""

    def __str__(self) -> str:
        return f"{self.where} {self.problem}; {self.remedy}"


def refusal(named: str, problems: list[Problem]) -> CardRefused:
    """All of them as one error."""
    if len(problems) == 1:
        (one,) = problems
        place = f"{named}, line {one.line}: {one.where}"
        return CardRefused(place, problem=one.problem, remedy=one.remedy)
    told = [f"line {one.line}: {one}." for one in sorted(problems)[:_MOST_TOLD]]
    if len(problems) > _MOST_TOLD:
        told.append(f"... and {len(problems) - _MOST_TOLD} more.")
    count = f"has {len(problems)} problems"
    return CardRefused(named, problem=count, remedy="mend them:\n" + "\n".join(told))


class Fields:
    """The fields of a card, and the problems found so far."""

    def __init__(self, data: Mapping[str, Any], text: str, folder: Folder) -> None:
        self.data, self.lines, self.folder = data, lines_of(text), folder
        self.found: dict[Problem, None] = {}

    @property
    def problems(self) -> list[Problem]:
        """In the order of lines."""
        return sorted(self.found)

    def wrong(self, path: Path, problem: str, remedy: str, *, undecided: bool = False) -> None:
        """Note a problem."""
        where = toml_key(*(part[:_LONGEST_NAME] for part in path))
        line = nearest_line(self.lines, path)
        self.found[Problem(line, where, problem, remedy, undecided)] = None

    def attempt(self, path: Path, make: Callable[[], Result]) -> Result | None:
        """What is made, or None and a note: of the field that the error names, if it is one."""
        try:
            return make()
        except InvalidParameter as error:
            field = error.parameter.rpartition(": ")[2]
            at = (*path, field) if field in _FIELDS else path
            self.wrong(at, error.problem, error.remedy)
            return None

    # -- sections --

    def section(self, name: str, *, needed: bool = True) -> dict[str, Any]:
        """A table of the card; empty if it is not there."""
        value = self.data.get(name)
        if isinstance(value, dict):
            return value
        if value is not None:
            self.wrong((name,), "is no section", f"write [{name}]")
        elif needed:
            self.wrong((name,), "is missing", f"add a section [{name}]")
        return {}

    def known(self, path: Path, fields: Mapping[str, Any], names: tuple[str, ...]) -> None:
        """Note fields that have no meaning here."""
        for field in fields:
            if field not in names:
                self.wrong((*path, field), "is not known", f"use {', '.join(names)}, or drop it")

    def undecided(self, path: Path, value: Any, remedy: str) -> bool:
        """Whether the field still has the word that a draft puts there."""
        if value == _UNDECIDED:
            self.wrong(path, "is still to be decided", remedy, undecided=True)
        return bool(value == _UNDECIDED)

    # -- single fields; a number with a point is a `Written`, hence no `str` by its type --

    def text(self, path: Path, value: Any, remedy: str) -> str:
        """A text of at least one letter, and no NUL; "" if it is none."""
        if type(value) is not str or not value or "\0" in value:
            problem = "is missing" if value is None else "is no text, or an empty one"
            self.wrong(path, problem, remedy)
            return ""
        return "" if self.undecided(path, value, remedy) else value

    def choice(self, path: Path, value: Any, among: tuple[str, ...]) -> str | None:
        """One of these words."""
        words = [f'"{word}"' for word in among]
        remedy = f"write {', '.join(words[:-1])} or {words[-1]}"
        if type(value) is str and value in among:
            return value
        if not self.undecided(path, value, remedy):
            self.wrong(path, "is missing" if value is None else "is unknown", remedy)
        return None

    def whole(self, path: Path, value: Any, remedy: str) -> int | None:
        """A whole number above 0."""
        if type(value) is int and value > 0:
            return value
        if not self.undecided(path, value, remedy):
            problem = "is missing" if value is None else "is no whole number above 0"
            self.wrong(path, problem, remedy)
        return None

    def number(self, path: Path, value: Any) -> Fraction | None:
        """An exact number: 3, 0.1 (which is 1/10), or "1/3"."""
        remedy = 'write a number: 3, 0.5, or "1/3"'
        if value is None or self.undecided(path, value, remedy):
            return None
        plain = value.replace("_", "") if isinstance(value, Written) else value
        if isinstance(plain, bool) or not isinstance(plain, int | str):
            self.wrong(path, "is no number", remedy)
            return None
        try:
            return rational(plain, path[-1])
        except InvalidParameter as error:
            self.wrong(path, error.problem, remedy)
            return None

    def bounds(self, path: Path, value: Any) -> tuple[Fraction, Fraction] | None:
        """Two numbers."""
        remedy = "write bounds = [low, high]"
        if value is None or self.undecided(path, value, remedy):
            return None
        if isinstance(value, list) and len(value) == 2:
            low, high = (self.number(path, end) for end in value)
            return None if low is None or high is None else (low, high)
        self.wrong(path, "are not two numbers", remedy)
        return None

    def keys(self, path: Path, value: Any, kind: ColumnType) -> tuple[Value, ...] | None:
        """Values of the column's own type."""
        if value is None or self.undecided(path, value, "list the groups that may be shown"):
            return None
        if kind in ("number", "timestamp"):
            self.wrong(path, f"cannot be of type {kind}", "drop them, and group by bin(...)")
            return None
        wanted, example = {
            "integer": (int, "[1, 2, 3]"),
            "text": (str, '["north", "south"]'),
            "boolean": (bool, "[true, false]"),
            "date": (date, "[2026-01-31, 2026-02-28]"),
        }[kind]
        # by type, not isinstance: True is an int, and a time a date
        if not isinstance(value, list) or any(type(key) is not wanted for key in value):
            self.wrong(path, f"are not a list of type {kind}", f"write keys = {example}")
            return None
        if any(isinstance(key, int) and abs(key) > _LARGEST_KEY for key in value):
            self.wrong(path, "need more than 63 bits", "use smaller whole numbers, or text")
            return None
        if any("\0" in key for key in value if isinstance(key, str)):
            self.wrong(path, "hold a NUL", "leave it out")
            return None
        return tuple(value)

    def source(self, path: Path, value: Any) -> Source | None:
        """Files, or a table of a DuckDB file; paths are relative to the card."""
        remedy = 'write "visits.parquet", ["a.csv", "b.csv"] or {duckdb = "x.duckdb", table = "t"}'
        if isinstance(value, dict):
            self.known(path, value, ("duckdb", "table"))
            names = [self.text(path, value.get(part), remedy) for part in ("duckdb", "table")]
            if not all(names):
                return None
            file = self.place(path, names[0])
            return None if file is None else Source(kind="duckdb", paths=(file,), table=names[1])
        if self.undecided(path, value, remedy):
            return None
        paths = value if isinstance(value, list) and value else [value]
        texts = [self.text(path, one, remedy) for one in paths]
        places = [self.place(path, text) for text in texts if text]
        if len(places) < len(paths) or None in places:
            return None
        if len(set(places)) < len(places):
            self.wrong(path, "names a file twice", "name each once")
            return None
        return self.attempt(path, lambda: source_of(*cast(list[str], places)))

    def place(self, path: Path, text: str) -> str | None:
        """A path, relative to the card's folder."""
        if "://" in text:
            self.wrong(path, "is not a file here", "download it first, and name the file")
            return None
        folder = str(self.folder)  # in which nothing is a pattern
        return str(Folder(glob.escape(folder) if _PATTERN.search(text) else folder) / text)


def source_of(*paths: str) -> Source:
    """The files as a source; what they are is told by the ends of their names.

    >>> source_of("a.parquet", "b.parquet").kind
    'parquet'
    """
    kinds = {_kind(path) for path in paths}
    if len(kinds) != 1 or None in kinds:
        raise InvalidParameter(
            "source",
            problem="is of no one known kind",
            remedy="name files that all end in .csv, .tsv or .csv.gz, or all in .parquet",
        )
    return Source(kind=cast(Any, kinds.pop()), paths=paths)


def _kind(path: str) -> str | None:
    name = path.lower()
    if name.removesuffix(".gz").endswith((".csv", ".tsv")):
        return "csv"
    return "parquet" if name.endswith((".parquet", ".pq")) else None
