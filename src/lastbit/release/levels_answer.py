"""Released numbers on several levels that add up; functions of public records alone.

Law      estimates are those of `levels_tree.py`. Top-down, a node's whole number is split among its
         children: the nearest numbers from 0 up that add up to it, rounded by largest remainders,
         the first child first where remainders are equal (`nearest_whole`). The first level's are
         its estimates, rounded, and not below 0
Theorem  whole numbers are not negative, and add up to their parent's, on every level; all of it is
         post-processing of released numbers and costs nothing
Intervals  each holds the number without noise in 95 % of releases. It is about that number, and is
         made for the estimate (`levels_reach.py`), or for the level's own noisy number where that
         is shorter, which no data decide. An end below 0 is raised to 0, and an interval is widened
         where it does not hold the whole number: `widened` says how many were
         Whole intervals are those of the level's own answer, as it has them: they hold the number
         of the whole table, limits included, and belong to the noisy number
Given    numbers that the steward gave as exact have no interval. The promise does not cover them
Checked  tests/release/test_levels.py
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import groupby
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from lastbit.errors import InvalidParameter
from lastbit.files import csv_text, plain_cell
from lastbit.release.answer import Answer, exported
from lastbit.release.levels_reach import half_widths
from lastbit.release.levels_tree import (
    LevelTree,
    TreeWeights,
    adding_up,
    fractions,
    noise_sums,
    rounded_weights,
)
from lastbit.release.projection import nearest_whole
from lastbit.release.reach import MeasureNoise
from lastbit.release.views import key_value
from lastbit.report import printable
from lastbit.tables import Constant, Cost, Value, WrittenPlan, to_json
from lastbit.verify import read

_SHOWN, _NAME, _LINE = 12, 36, 80
_FILE = "levels.json"
ADJUSTED = "lastbit made the numbers of all levels add up after the noise, each by how exact it is."
BELONGS = (
    "Each interval holds the number without noise in 95 % of all releases. Numbers are rounded to "
    "whole ones from 0 up."
)
OUTSIDE = "The numbers of {} were given as exact. The promise does not cover them."


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One level: the columns that name its numbers, their keys, and where the parent of each is."""

    name: str
    columns: tuple[str, ...]
    keys: tuple[tuple[Value, ...], ...] = field(repr=False)
    parents: tuple[int, ...] = field(repr=False)
    """Places in the level above; of the first level none."""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        keys = [[to_json(Constant(value)) for value in key] for key in self.keys]
        return {
            "name": self.name,
            "columns": list(self.columns),
            "keys": keys,
            "parents": list(self.parents),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Level:
        """The level that `to_json` wrote."""
        return cls(
            name=data["name"],
            columns=tuple(data["columns"]),
            keys=tuple(tuple(map(key_value, key)) for key in data["keys"]),
            parents=tuple(data["parents"]),
        )


def tree_of(levels: Sequence[Level]) -> LevelTree:
    """Who belongs to whom."""
    return LevelTree(tuple(np.array(level.parents, np.int64) for level in levels[1:]))


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelRow:
    """One number of one level.

    `value` is whole, not negative, and adds up; `estimate` adds up too (exactly in `exact`) and has
    the standard error. `low` and `high` are the ends of the noise interval. `noisy` is what was
    released; None for a number that was given.
    """

    level: str
    columns: tuple[str, ...]
    keys: tuple[Value, ...]
    parent: tuple[Value, ...] | None
    value: int
    estimate: float
    standard_error: float
    low: int
    high: int
    whole_low: int | None
    whole_high: int | None
    noisy: int | None
    exact: Fraction = field(repr=False)

    def __getitem__(self, column: str) -> Value:
        """The key of a column: row["region"]."""
        if column not in self.columns:
            remedy = f"use one of {', '.join(self.columns) or 'value, low, high'}"
            raise InvalidParameter("column", problem="is no key of this level", remedy=remedy)
        return self.keys[self.columns.index(column)]


_NUMBERS = (
    "value", "estimate", "standard_error", "low", "high", "whole_low", "whole_high", "noisy"
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Reached:
    """What is known before anything is read: weights, and of each level deviations and widths."""

    weights: TreeWeights
    errors: tuple[NDArray[np.float64], ...]
    halves: tuple[NDArray[np.float64], ...]
    own: tuple[int | None, ...]
    """Half of the width of the interval of each level's own noisy numbers, in rows."""


def reached(tree: LevelTree, plans: Sequence[WrittenPlan | None]) -> Reached:
    """The same for levels with these plans; None where numbers are given."""
    noises = [None if plan is None else MeasureNoise(_law_of(plan)) for plan in plans]
    one = next(plan.weight_one for plan in plans if plan is not None)
    variances = [Fraction(0) if noise is None else noise.variance for noise in noises]
    weights = rounded_weights(tree, variances)
    largest = max(variances)
    sums = noise_sums(tree, weights, 2, [variance / largest for variance in variances])
    spread = math.sqrt(largest) / one
    return Reached(
        weights=weights,
        errors=tuple(np.sqrt(some) * spread for some in sums),
        halves=tuple(half_widths(tree, weights, noises, one)),
        own=tuple(
            None if noise is None else -(-noise.accuracy(Fraction(1, 20)) // one)
            for noise in noises
        ),
    )


def _law_of(plan: WrittenPlan) -> Any:
    """The law of the noise of a plan for one count."""
    (part,) = plan.parts
    return part.law  # type: ignore[union-attr]


@dataclass(frozen=True)
class LevelsAnswer:
    """Counts on every level that add up; what it shows is public.

    Iterating gives the rows, level by level from the top; `level("region")` those of one level.
    `answers` has the answer of each level as it was released, with its record and certificate.

    >>> import duckdb
    >>> import lastbit as lb
    >>> rows = duckdb.sql("SELECT range % 7 AS ward FROM range(7_000)")
    >>> stays = lb.table(rows, each_row=True, name="stays")
    >>> wings = {"ward": {0: "a", 1: "a", 2: "a", 3: "b", 4: "b", 5: "b", 6: "b"}}
    >>> found = stays.levels("wing", "ward", parents=wings).release(epsilon=1)
    >>> [row["wing"] for row in found.level("wing")], len(found)
    (['a', 'b'], 10)
    >>> found.value == sum(row.value for row in found.level("ward"))
    True
    """

    levels: tuple[Level, ...]
    answers: tuple[Answer | None, ...]
    """Of each level; None where its numbers were given."""
    given: tuple[tuple[int, ...] | None, ...]
    """The numbers that were given, of each level."""

    @property
    def names(self) -> tuple[str, ...]:
        """The levels, from the top."""
        return tuple(level.name for level in self.levels)

    @cached_property
    def rows(self) -> tuple[LevelRow, ...]:
        """All numbers, level by level."""
        return tuple(self._rows())

    def __iter__(self) -> Iterator[LevelRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def level(self, name: str) -> tuple[LevelRow, ...]:
        """The numbers of one level."""
        if name not in self.names:
            raise InvalidParameter(
                "level", problem="is not in the answer", remedy=f"use {', '.join(self.names)}"
            )
        return tuple(row for row in self.rows if row.level == name)

    @property
    def value(self) -> int:
        """The number of all rows."""
        return self.rows[0].value

    @cached_property
    def _reached(self) -> Reached:
        plans = [
            None if answer is None else WrittenPlan.from_json(answer.record["plan"])
            for answer in self.answers
        ]
        return reached(tree_of(self.levels), plans)

    @property
    def _cells(self) -> list[list[Any]]:
        """By level the released cells, in the order of its keys."""
        found: list[list[Any]] = []
        for level, answer, given in zip(self.levels, self.answers, self.given, strict=True):
            if answer is None:
                found.append(list(given or ()))
                continue
            cells = {row.keys: row.cells[0] for row in answer}
            found.append([cells[key] for key in level.keys])
        return found

    def _rows(self) -> Iterator[LevelRow]:
        tree, made, cells = tree_of(self.levels), self._reached, self._cells
        noisy = [[c if isinstance(c, int) else c.value for c in some] for some in cells]
        exact = [fractions(some) for some in adding_up(tree, made.weights, noisy)]
        whole = whole_numbers(tree, exact)
        for place, level in enumerate(self.levels):
            answer = self.answers[place]
            above = self.levels[place - 1].keys if place else ()
            for i, key in enumerate(level.keys):
                low, high = self._ends(place, i, exact[place][i], cells[place][i])
                whole_low, whole_high = low, high
                if answer is not None and not _is_of_all_rows(answer):
                    whole_low, whole_high = cells[place][i].whole_low, cells[place][i].whole_high
                value = whole[place][i]
                known = answer is None
                yield LevelRow(
                    level=level.name,
                    columns=level.columns,
                    keys=key,
                    parent=above[level.parents[i]] if place else None,
                    value=value,
                    estimate=float(exact[place][i]),
                    standard_error=float(made.errors[place][i]),
                    low=value if known else min(max(low, 0), value),
                    high=value if known else max(high, value),
                    whole_low=value if known else _raised(whole_low, value),
                    whole_high=value if known else _lowered(whole_high, value),
                    noisy=None if known else noisy[place][i],
                    exact=exact[place][i],
                )

    def _ends(self, place: int, i: int, exact: Fraction, cell: Any) -> tuple[int, int]:
        """The ends of the interval, before it is brought to numbers from 0 up."""
        half, own = Fraction(float(self._reached.halves[place][i])), self._reached.own[place]
        if own is not None and own < half:
            return cell.low, cell.high
        return math.floor(exact - half), math.ceil(exact + half)

    @property
    def widened(self) -> int:
        """How many intervals were widened, as they did not hold the whole number."""
        pairs = zip(self.rows, (c for some in self._cells for c in some), strict=True)
        place = {name: i for i, name in enumerate(self.names)}
        index = (i for level in self.levels for i in range(len(level.keys)))
        found = 0
        for (row, cell), i in zip(pairs, index, strict=True):
            if row.noisy is not None:
                low, high = self._ends(place[row.level], i, row.exact, cell)
                found += not max(low, 0) <= row.value <= high
        return found

    @property
    def cost(self) -> Cost:
        """What was paid for all levels together."""
        return sum((answer.cost for answer in self.answers if answer is not None), Cost())

    @property
    def guarantee(self) -> str:
        """What is promised, in words; and what is not."""
        (first, *_) = [answer for answer in self.answers if answer is not None]
        whose = first.guarantee.partition(" for ")[2]
        kind = "zero-concentrated differential privacy" if self.cost.rho else "differential privacy"
        said = f"{plain_cost(self.cost)} {kind} for {whose}"
        names = [n for n, answer in zip(self.names, self.answers, strict=True) if answer is None]
        return f"{said}. {OUTSIDE.format(', '.join(names))}" if names else said

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know when reading the numbers."""
        (first, *_) = [answer for answer in self.answers if answer is not None]
        own = [note for note in first.notes if not note.startswith("Each noise")]
        wide = self.widened
        more = [f"{wide:,} intervals were widened to hold the whole number."] if wide else []
        return (ADJUSTED, BELONGS, *more, *own)

    # ------------------------------------------------------------ sums across

    def sums(self, *columns: str) -> list[dict[str, Any]]:
        """The whole numbers of the last level, added up by these columns; they have no interval.

        Any columns of the levels: `sums("sex")`, `sums("region", "sex")`. What is a level by itself
        has these very numbers.
        """
        known = [column for level in self.levels for column in level.columns]
        for column in columns:
            if column not in known:
                remedy = f"use {', '.join(dict.fromkeys(known))}"
                raise InvalidParameter("column", problem="is in no level", remedy=remedy)
        found: dict[tuple[Value, ...], int] = {}
        for path, row in zip(self._paths(), self.level(self.names[-1]), strict=True):
            key = tuple(path[column] for column in columns)
            found[key] = found.get(key, 0) + row.value
        return [{**dict(zip(columns, key, strict=True)), "value": n} for key, n in found.items()]

    def _paths(self) -> Iterator[dict[str, Value]]:
        """For each number of the last level all keys, its own and those of the levels above."""
        for i in range(len(self.levels[-1].keys)):
            path: dict[str, Value] = {}
            place = i
            for level in reversed(self.levels):
                path = dict(zip(level.columns, level.keys[place], strict=True)) | path
                place = level.parents[place] if level.parents else 0
            yield path

    # ------------------------------------------------------------ shown and kept

    def to_dicts(self) -> list[dict[str, Any]]:
        """One dict a number: its level, a column for every key, its numbers."""
        columns = dict.fromkeys(column for level in self.levels for column in level.columns)
        return [
            {"level": row.level, **columns, **dict(zip(row.columns, row.keys, strict=True))}
            | {name: getattr(row, name) for name in _NUMBERS}
            for row in self
        ]

    def to_csv(self, path: str | Path | None = None) -> str:
        """Comma-separated text, also written to a file if one is named."""
        rows = self.to_dicts()
        lines = (rows[0], *(row.values() for row in rows))
        return exported(csv_text(map(plain_cell, line) for line in lines), path, self._spared)

    def to_pandas(self) -> Any:
        """A pandas DataFrame."""
        import pandas  # optional

        return pandas.DataFrame(self.to_dicts())

    def to_polars(self) -> Any:
        """A Polars DataFrame."""
        import polars  # optional

        return polars.DataFrame(self.to_dicts(), infer_schema_length=None)

    @property
    def _spared(self) -> Any:
        return next(answer.spared for answer in self.answers if answer is not None)

    def save(self, folder: str | Path) -> None:
        """Keep it in a folder: a record for each level, for `lastbit check`, and `levels.json`.

        The checker re-derives the levels' records. It knows nothing of numbers that add up: `load`
        derives those again from the records, and compares.
        """
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        files: list[str | None] = []
        for number, answer in enumerate(self.answers):
            files.append(None if answer is None else f"{number}.json")
            if answer is not None:
                answer.save(place / f"{number}.json")
        numbers = [[row.value, row.low, row.high, str(row.exact)] for row in self]
        said = {
            "levels": [level.to_json() for level in self.levels],
            "answers": files,
            "given": [None if some is None else list(some) for some in self.given],
            "numbers": numbers,
        }
        text = json.dumps(said, ensure_ascii=False, allow_nan=False) + "\n"
        exported(text, place / _FILE, self._spared)

    @staticmethod
    def load(folder: str | Path) -> LevelsAnswer:
        """What `save` wrote; all numbers are derived again from the levels' records."""
        place = Path(folder)
        try:
            said = read(place / _FILE)
            found = LevelsAnswer(
                levels=tuple(map(Level.from_json, said["levels"])),
                answers=tuple(f and Answer.load(place / Path(f).name) for f in said["answers"]),
                given=tuple(None if some is None else tuple(some) for some in said["given"]),
            )
            numbers = [[row.value, row.low, row.high, str(row.exact)] for row in found]
        except (LookupError, TypeError, AttributeError, AssertionError, StopIteration):
            raise InvalidParameter(
                "folder", problem="is malformed", remedy="pass what save() wrote"
            ) from None
        if numbers != said["numbers"]:
            problem = "has numbers that do not follow from the answers beside them"
            raise InvalidParameter("folder", problem=problem, remedy="save the answer again")
        return found

    def __str__(self) -> str:
        width = min(max(len(_named(row)) for row in self.rows), _NAME)
        lines = []
        for name, some in groupby(self.rows, key=lambda row: row.level):
            listed = list(some)
            lines.append(name)
            for row in listed[:_SHOWN]:
                ends = f"{row.low:,} to {row.high:,}"
                lines.append(f"  {_named(row):<{width}} {row.value:>12,}  {ends}")
            if len(listed) > _SHOWN:
                lines.append(f"  and {len(listed) - _SHOWN:,} more: answer.level({name!r})")
        words = [self.guarantee, *(f"- {note}" for note in self.notes[:3])]
        return "\n".join([*lines, "", *(fill(text, _LINE) for text in words)])

    def __repr__(self) -> str:
        return f"<LevelsAnswer: {len(self):,} numbers of {', '.join(self.names)}; {self.guarantee}>"

    def _repr_html_(self) -> str:
        return Markup("<pre>{}</pre>").format(str(self))


def plain_cost(cost: Cost) -> str:
    """A price in a sentence: of decimals without the marks that say they are exact."""
    return str(cost).replace("'", "")


def _named(row: LevelRow) -> str:
    return printable(", ".join(str(key) for key in row.keys) or row.level, _NAME)


def _is_of_all_rows(answer: Answer) -> bool:
    """Whether no limit can have left a row out: then the noise interval is the whole one."""
    return "whole" not in answer.record and answer.record["plan"]["unit"] is None


def _raised(end: int | None, value: int) -> int | None:
    return None if end is None else min(max(end, 0), value)


def _lowered(end: int | None, value: int) -> int | None:
    return None if end is None else max(end, value)


def whole_numbers(tree: LevelTree, exact: Sequence[Sequence[Fraction]]) -> list[list[int]]:
    """Whole numbers from 0 up near these that add up, top-down.

    >>> tree = LevelTree((np.array([0, 0, 0]),))
    >>> whole_numbers(tree, [[Fraction(7)], [Fraction(5), Fraction(-2), Fraction(4)]])
    [[7], [4, 0, 3]]
    """
    found = [[max(round(number), 0) for number in exact[0]]]
    for level, below in enumerate(exact[1:]):
        firsts = [*tree.firsts(level).tolist(), len(below)]
        split = [
            nearest_whole(below[first:last], total)
            for first, last, total in zip(firsts, firsts[1:], found[-1], strict=False)
        ]
        found.append([number for some in split for number in some])
    return found
