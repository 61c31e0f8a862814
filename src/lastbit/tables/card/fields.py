"""Single fields of a data card, and the problems found in them, each with its line and remedy."""

from __future__ import annotations

import glob
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar, cast

from lastbit.errors import InvalidParameter
from lastbit.exact import rational
from lastbit.place_names import is_address
from lastbit.tables.card.schema import Source
from lastbit.tables.card.source import DATABASES, ON_SPARK, source_of, spark_source
from lastbit.tables.card.toml import KeyPath, lines_of, nearest_line, toml_key

Result = TypeVar("Result")
_UNDECIDED = "decide"
_LONGEST_NAME = 60
_FIELDS = (
    *("column", "type", "bounds", "step", "keys", "description"),
    *("max_rows", "max_groups", "at_most", "epsilon", "delta", "rho", "order", "delta_kept"),
)
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


class Fields:
    """The fields of a card; notes the problems found so far."""

    def __init__(self, data: Mapping[str, Any], text: str, folder: Path) -> None:
        self.data, self.lines, self.folder = data, lines_of(text), folder
        self.found: dict[Problem, None] = {}

    def wrong(self, path: KeyPath, problem: str, remedy: str, *, undecided: bool = False) -> None:
        where = toml_key(*(part[:_LONGEST_NAME] for part in path))
        line = nearest_line(self.lines, path)
        self.found[Problem(line, where, problem, remedy, undecided)] = None

    def attempt(self, path: KeyPath, make: Callable[[], Result]) -> Result | None:
        """What is made, or None and a note: of the field that the error names, if it is one."""
        try:
            return make()
        except InvalidParameter as error:
            field = error.parameter.rpartition(": ")[2]
            table = re.fullmatch("(public|private|linked) table (.*)", error.parameter)
            at = table.groups() if table else (*path, field) if field in _FIELDS else path
            listed = re.fullmatch("column (.*): type", error.parameter)
            at = ("columns", listed[1], "type") if listed and path == ("unit",) else at
            at = ("through", *at[1:]) if at[:1] == ("linked",) else at
            self.wrong(at, error.problem, error.remedy)
            return None

    def section(self, name: str, *, needed: bool = True) -> dict[str, Any]:
        value = self.data.get(name)
        if isinstance(value, dict):
            return value
        if value is not None:
            self.wrong((name,), "is not a section", f"write [{name}]")
        elif needed:
            self.wrong((name,), "is missing", f"add a section [{name}]")
        return {}

    def known(self, path: KeyPath, fields: Mapping[str, Any], names: tuple[str, ...]) -> None:
        for field in fields:
            if field not in names:
                self.wrong((*path, field), "is not known", f"use {', '.join(names)}, or drop it")

    def undecided(self, path: KeyPath, value: Any, remedy: str) -> bool:
        """Whether the field still has the word that a draft puts there."""
        if value == _UNDECIDED:
            self.wrong(path, "is still to be decided", remedy, undecided=True)
        return bool(value == _UNDECIDED)

    # -- single fields; a number with a point is a `Written`, hence no `str` by its type --

    def text(self, path: KeyPath, value: Any, remedy: str) -> str:
        """A text of at least one letter, and no NUL; "" if it is none."""
        if type(value) is not str or not value or "\0" in value:
            problem = "is missing" if value is None else "is not text, or is empty"
            self.wrong(path, problem, remedy)
            return ""
        return "" if self.undecided(path, value, remedy) else value

    def choice(self, path: KeyPath, value: Any, among: tuple[str, ...]) -> str | None:
        words = [f'"{word}"' for word in among]
        remedy = f"write {', '.join(words[:-1])} or {words[-1]}"
        if type(value) is str and value in among:
            return value
        if not self.undecided(path, value, remedy):
            self.wrong(path, "is missing" if value is None else "is unknown", remedy)
        return None

    def whole(self, path: KeyPath, value: Any, remedy: str) -> int | None:
        if type(value) is int and value > 0:
            return value
        if not self.undecided(path, value, remedy):
            problem = "is missing" if value is None else "is not a whole number above 0"
            self.wrong(path, problem, remedy)
        return None

    def number(self, path: KeyPath, value: Any) -> Fraction | None:
        """An exact number: 3, 0.1 (which is 1/10), or "1/3"."""
        remedy = 'write a number: 3, 0.5, or "1/3"'
        if value is None or self.undecided(path, value, remedy):
            return None
        plain = value.replace("_", "") if isinstance(value, Written) else value
        problem = "is not a number"
        if not isinstance(plain, bool) and isinstance(plain, int | str):
            try:
                return rational(plain, path[-1])
            except InvalidParameter as error:
                problem = error.problem
        self.wrong(path, problem, remedy)
        return None

    def bounds(self, path: KeyPath, value: Any) -> tuple[Fraction, Fraction] | None:
        remedy = "write bounds = [low, high]"
        if value is None or self.undecided(path, value, remedy):
            return None
        if isinstance(value, list) and len(value) == 2:
            low, high = (self.number(path, end) for end in value)
            return None if low is None or high is None else (low, high)
        self.wrong(path, "are not two numbers", remedy)
        return None

    def source(self, path: KeyPath, fields: Mapping[str, Any]) -> Source | None:
        """Files, or a table of a DuckDB file or a server; paths are relative to the card."""
        value, table, place = fields.get("source"), fields.get("table"), (*path[:-1], "table")
        if isinstance(value, str) and is_address(value):
            named = self.text(place, table, 'write table = "public.visits", say')
            return self.attempt(path, lambda: source_of(value, table=named)) if named else None
        if table is not None:
            remedy = 'leave it out; of DuckDB files, source = {duckdb = "x.duckdb", table = "t"}'
            self.wrong(place, "is for servers of PostgreSQL", remedy)
        remedy = 'write "visits.parquet", ["a.csv", "b.csv"] or {duckdb = "x.duckdb", table = "t"}'
        if isinstance(value, str) and value.lower().endswith(DATABASES):
            self.wrong(path, "is a DuckDB file, which has many tables", remedy)
            return None
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
        if any(text.startswith(ON_SPARK) for text in texts):
            return self.attempt(path, lambda: spark_source(*texts, folder=str(self.folder)))
        places = [self.place(path, text) for text in texts if text]
        if len(places) < len(paths) or None in places:
            return None
        if len(set(places)) < len(places):
            self.wrong(path, "names a file twice", "name each once")
            return None
        return self.attempt(path, lambda: source_of(*cast(list[str], places)))

    def place(self, path: KeyPath, text: str) -> str | None:
        if "://" in text:
            self.wrong(path, "is not a file here", "download it first, and name the file")
            return None
        folder = str(self.folder)  # in which nothing is a pattern
        return str(Path(glob.escape(folder) if _PATTERN.search(text) else folder) / text)
