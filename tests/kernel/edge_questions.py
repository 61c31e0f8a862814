"""Well-formed questions at the edges, and tables on which none of them may fail alone.

A question is drawn as steps of the builder, in text, so that a failure can be read and tried again.
Tables are of one schema: none, one row, hostile rows, the same without one unit, rows of nothing,
and many. What no table decides may be an error: then it is the same on all of them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import cache
from math import inf, nan
from pathlib import Path
from typing import Any

from pyarrow import parquet

import lastbit as lb
from tests.engines.running import arrow

TYPES = {
    "who": "bigint", "name": "text", "cat": "text", "word": "text", "num": "whole decimal",
    "big": "bigint", "small": "smallint", "x": "double", "money": "decimal", "flag": "boolean",
    "day": "date", "at": "timestamp",
}  # fmt: skip
LABS = {"whose": "bigint", "code": "text", "dose": "bigint"}
PLACES_TYPES = {"cat": "text", "level": "bigint", "zone": "text"}
"""Columns, with the types of tests/engines/running.py."""

Row = tuple[Any, ...]
MOST, LEAST = 2**63 - 1, -(2**63)
TEXTS = (
    "a", "b", "", "A", "ß\u0301", "\U0001f600", "a\0b", "'; --", "%", "_\\", "12", "-1.5e3", "inf",
    "nan", "1e999", "9223372036854775808", "2024-02-30", "0001-01-01", "294247-01-10", "true", " ",
    "x" * 4096, "y" * 4097, "é" * 3000, "1" * 400, "0x1p-3", "1_000", "infinity",
)  # fmt: skip
WHOLE = (0, 1, -1, 2, 7, 2**31, 2**53 + 1, 2**62, MOST, LEAST, LEAST + 1)
SHORT = tuple(number for number in WHOLE if number > LEAST)
WIDE = (0, 5, MOST, LEAST, 2**63, -(2**63) - 1, 2**70, 10**37, -(10**37), 10**38 - 1)
DOUBLES = (
    0.0, -0.0, 0.5, -2.5, 1e308, -1e308, 5e-324, -5e-324, 2.0**63, -(2.0**63), inf, -inf, nan,
    1.7976931348623157e308, 2.0**53, 9.999,
)  # fmt: skip
DECIMALS = ("0", "0.0000000001", "-0.5", "9999999999999999999999999999.9999999999", "0.5", "1.5")
DAYS = (-719_162, -1, 19_782, 2_932_896, -719_163, 2_932_897, 10**6, -(10**6))
"""From 1970 on: the first and the last of the years 1 to 9999, and some beyond."""
TIMES = (
    datetime(1, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(2024, 2, 29, 12),
    datetime(9999, 12, 31, 23, 59, 59, 999999),
)  # fmt: skip


def _row(who: int | None, at: int) -> Row:
    """The values at this place of each list."""

    def one(values: tuple[Any, ...], step: int = 1) -> Any:
        return values[at * step % len(values)]

    return (
        who, one(TEXTS, 3), one(TEXTS), one(TEXTS, 5), Decimal(one(WIDE)), one(WHOLE),
        one((0, 1, -1, 32767, -32768)), one(DOUBLES), Decimal(one(DECIMALS)),
        one((True, False, None)), one(DAYS), one(TIMES),
    )  # fmt: skip


NOTHING: Row = (None,) * len(TYPES)
PLAIN: Row = (1, "a", "a", "b", Decimal(3), 3, 3, 3.0, Decimal("0.5"), True, DAYS[2], TIMES[2])
PLACES: list[Row] = [
    ("a", 0, "n"), ("b", MOST, "n"), ("", LEAST, "s"), ("ß", None, None), (None, 2, "s"),
]  # fmt: skip


@cache
def tables() -> dict[str, tuple[list[Row], list[Row]]]:
    """The rows of the table and of its private companion, by what they are."""
    units = (0, 1, 2, 3, MOST, LEAST, None)
    hostile = [_row(units[at % 7], at) for at in range(63)] + [NOTHING, (3, *NOTHING[1:])]
    labs: list[Row] = [
        (units[at % 7], TEXTS[at % len(TEXTS)], WHOLE[at % len(WHOLE)]) for at in range(30)
    ]
    many = [(at // 4, *PLAIN[1:]) for at in range(400)] + [(7, *PLAIN[1:])] * 200
    return {
        "none": ([], []),
        "one": ([PLAIN], [(1, "a", 3)]),
        "one hostile": ([_row(1, 8)], labs[:8]),
        "hostile": (hostile, labs),
        "one unit less": ([r for r in hostile if r[0] != 2], [r for r in labs if r[0] != 2]),
        "nothing": ([(9, *NOTHING[1:]), NOTHING], [(9, None, None)]),
        "many": (many, [(at // 2, "a", 3) for at in range(200)]),
    }


@cache
def frames() -> dict[str, tuple[Any, Any]]:
    """The same as Arrow."""
    return {
        name: (arrow(TYPES, rows), arrow(LABS, labs)) for name, (rows, labs) in tables().items()
    }


@cache
def places() -> Any:
    """The public table."""
    return arrow(PLACES_TYPES, PLACES)


@cache
def _files(name: str, folder: Path) -> tuple[Path, Path]:
    """The tables as files, of the same names in a folder of their own."""
    own = folder / name
    own.mkdir()
    for file, frame in zip(("t.parquet", "labs.parquet"), frames()[name], strict=True):
        parquet.write_table(frame, own / file)
    return own / "t.parquet", own / "labs.parquet"


class _Card(dict[str, Any]):
    """Of a table: hashed by its text."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(repr(self))


@cache
def _table(name: str, card: _Card, folder: Path | None) -> Any:
    rows, labs = frames()[name] if folder is None else _files(name, folder)
    related = card.get("neighbours", "add-remove")
    private = {}
    if card.get("unit") == "who":
        own = lb.table(labs, unit="whose", max_rows=2, name="labs", neighbours=related)
        private = {"labs": own}
    declared: Any = {"num": "integer"} | card.get("columns", {})
    how: dict[str, Any] = {"public": {"places": places()}, "private": private}
    return lb.table(rows, name="t", **how | card | {"columns": declared})


# ---------------------------------------------------------------- questions


@dataclass(frozen=True)
class Edge:
    """A question in words, and how it is asked of a table."""

    words: str
    card: dict[str, Any]
    ask: Callable[[Any], Any]
    price: dict[str, str]

    def of(self, name: str, folder: Path | None = None) -> Any:
        """The question, asked of one of the tables: a frame, or Parquet files in this folder."""
        return self.ask(_table(name, _Card(self.card), folder))


class Draw:
    """Draws expressions of each type as SQL."""

    def __init__(self, rng: random.Random, without: tuple[str, ...] = ()) -> None:
        self.rng, self.without = rng, without

    def one(self, *choices: Any) -> Any:
        """One of these; of texts one without the words that an engine refuses, if there is one."""
        rest = [
            choice
            for choice in choices
            if not isinstance(choice, str) or not any(word in choice for word in self.without)
        ]
        return self.rng.choice(rest or choices)

    def whole(self, depth: int) -> str:
        d = depth - 1
        if depth <= 0 or self.rng.random() < 0.15:
            return str(
                self.one("num", "big", "small", "num", "big", "small", *map(str, SHORT), "NULL")
            )
        a, b = self.whole(d), self.whole(d)
        return str(
            self.one(
                f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"({a} % {b})", f"(-({a}))",
                f"abs({a})", f"coalesce({a}, {b})", f"least({a}, {b})", f"greatest({a}, {b})",
                f"CAST({self.number(d)} AS BIGINT)", f"CAST({self.text(d)} AS BIGINT)",
                f"length({self.text(d)})", f"year({self.day(d)})",
                f"days_between({self.day(d)}, {self.day(0)})", self.of_days(self.day(d)),
                f"CASE WHEN {self.truth(d)} THEN {a} ELSE {b} END",
                f"bin({a}, {LEAST + 1}, 0, {MOST})", f"bin({a}, 0, 1, 2)",
                f"{self.part()}({self.day(d)})", f"hour({self.time(d)})",
                f"clamp({a}, {self.one(-5, LEAST + 1, 0)}, {self.one(5, MOST)})",
            )
        )  # fmt: skip

    def of_days(self, day: str) -> str:
        """What months, quarters, decades and weeks of days are numbered by."""
        unit = self.one("day", "month", "quarter", "year")
        return str(
            self.one(
                f"(year({day}) // 10 * 10)", f"(isoyear({day}) * 100 + week({day}))",
                f"date_diff('{unit}', {day}, {self.day(0)})", f"extract(decade FROM {day})",
                f"date_diff('{unit}', DATE '9999-12-31', {day})", f"(year({day}) % -7)",
            )
        )  # fmt: skip

    def known(self) -> str:
        """A key of which bounds or WHERE may tell all values."""
        unit = self.one("year", "quarter", "month", "week")
        return str(
            self.one(
                "day", f"date_trunc('{unit}', day)", f"date_trunc('{unit}', \"at\")", "small",
                self.of_days("day"), self.of_days("CAST(\"at\" AS DATE)"), "small // 2", "big",
                "date_trunc('minute', \"at\")", "strftime(day, '%G-%V')", "hour(\"at\")",
                "small % 3 + month(day)", "bin(\"at\", '1969-12-31', '1970-01-01', '1970-01-02')",
                "coalesce(year(day), big)", "CAST(\"at\" AS DATE)", "small * big", "abs(big) + 1",
            )
        )  # fmt: skip

    def within(self) -> str:
        """A WHERE that bounds columns, or nearly does."""
        return str(
            self.one(
                "day BETWEEN '1969-12-25' AND '2024-02-29'", "year(day) = 2024",
                "small BETWEEN -1 AND 9",
                "day >= '9999-12-01' AND small > 0", "year(\"at\") IN (1, 1969, 9999)",
                f"big BETWEEN {MOST - 9} AND {MOST}", f"big >= {LEAST + 1} AND big < {LEAST + 9}",
                "day IN ('0001-01-01', '0001-01-02', NULL)", "\"at\" < '0001-01-02'",
                "year(day) < 1000 AND month(day) = 1 AND small <= 5",
                "day IS NULL OR year(day) = 1970",
            )
        )  # fmt: skip

    def part(self) -> str:
        return str(self.one("month", "quarter", "day", "week", "dayofweek", "dayofyear", "isodow"))

    def number(self, depth: int) -> str:
        d = depth - 1
        if depth <= 0 or self.rng.random() < 0.15:
            return str(
                self.one(
                    "x",
                    "money",
                    "x",
                    "money",
                    "power(10.5, 290)",
                    "-exp(700.5)",
                    "1e-300",
                    "0.1",
                    "0.0",
                    "2.5",
                )
            )
        a, b = self.number(d), self.number(d)
        return str(
            self.one(
                f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"({a} / {b})", f"({a} % {b})",
                f"({self.whole(d)} / {self.whole(d)})", f"sqrt({a})", f"ln({a})",
                f"exp({a})", f"power({a}, {b})", f"round({a})", f"floor({a})", f"ceil({a})",
                f"round({a}, {self.one(0, 2, -2, 400, -400, MOST, LEAST + 1)})", f"abs({a})",
                f"round({a}, {self.whole(0)})",
                f"CAST({self.text(d)} AS DOUBLE)", f"CAST({self.whole(d)} AS DOUBLE)",
                f"CASE WHEN {self.truth(d)} THEN {a} END", f"coalesce({a}, {b})",
                f"bin({a}, -9e17, 0, 0.1, 9e17)", f"clamp({a}, -9e17, 9e17)",
            )
        )  # fmt: skip

    def text(self, depth: int) -> str:
        d = depth - 1
        if depth <= 0 or self.rng.random() < 0.2:
            return str(self.one("cat", "word", "name", "cat", "word", "''", "'a'", "'%'", "'ß'"))
        a, b = self.text(d), self.text(d)
        place, size = self.whole(0), self.whole(0)
        return str(
            self.one(
                f"lower({a})", f"upper({a})", f"trim({a})", f"concat({a}, {b})",
                f"substring({a}, {place})", f"substring({a}, {place}, {size})",
                f"CAST({self.whole(d)} AS VARCHAR)", f"CAST({self.number(d)} AS VARCHAR)",
                f"CAST({self.day(d)} AS VARCHAR)", f"CAST({self.time(d)} AS VARCHAR)",
                f"CAST({self.truth(0)} AS VARCHAR)", f"coalesce({a}, {b})", f"least({a}, {b})",
                f"strftime({self.day(d)}, '%Y-%m-%d %j %G %V')",
                f"strftime({self.time(d)}, '%A %B %H %M %S %p %y')",
            )
        )  # fmt: skip

    def truth(self, depth: int) -> str:
        d = depth - 1
        basic = (
            "flag", f"{self.whole(d)} {self.compared()} {self.whole(d)}",
            f"{self.number(d)} {self.compared()} {self.number(d)}",
            f"{self.text(d)} {self.compared()} {self.text(d)}",
            f"{self.day(d)} {self.compared()} {self.day(d)}",
            f"{self.whole(d)} {self.compared()} {self.number(d)}",
            f"{self.text(d)} LIKE '{self.one('%', 'a_', '%a%b%', '_%', '[', chr(92))}'",
            f"{self.text(d)} ILIKE '{self.one('%', 'SS', 'A%')}'",
            f"contains({self.text(d)}, '{self.one('', 'a', 'ß')}')",
            f"starts_with({self.text(d)}, {self.text(d)})",
            f"{self.whole(d)} IN (0, {MOST}, {LEAST + 1}, NULL)", f"{self.text(d)} IN ('', 'a')",
            f"{self.number(d)} IS NULL", f"{self.whole(d)} BETWEEN {LEAST + 1} AND {MOST}",
            f"CAST({self.text(d)} AS BOOLEAN)", f"CAST({self.whole(d)} AS BOOLEAN)",
        )  # fmt: skip
        found = str(self.one(*basic))
        if depth > 0 and self.rng.random() < 0.3:
            return str(
                self.one(f"NOT ({found})", f"({found} AND flag)", f"({found} OR {self.truth(d)})")
            )
        return found

    def compared(self) -> str:
        return str(self.one("=", "<>", "<", "<=", ">", ">="))

    def day(self, depth: int) -> str:
        d = depth - 1
        if depth <= 0 or self.rng.random() < 0.3:
            return str(self.one("day", "day", "DATE '0001-01-01'", "DATE '9999-12-31'"))
        unit = self.one("year", "quarter", "month", "week")
        return str(
            self.one(
                f"date_trunc('{unit}', {self.day(d)})", f"CAST({self.text(d)} AS DATE)",
                f"bin({self.day(d)}, '0001-01-01', '1970-01-01', '9999-12-31')",
                f"CAST({self.time(d)} AS DATE)", f"coalesce({self.day(d)}, day)",
            )
        )  # fmt: skip

    def time(self, depth: int) -> str:
        if depth <= 0 or self.rng.random() < 0.5:
            return '"at"'
        return f"date_trunc('{self.one('hour', 'minute')}', {self.time(depth - 1)})"

    def expression(self, depth: int) -> str:
        return str(self.one(self.whole, self.number)(depth))

    # what is asked

    def bounds(self) -> tuple[Any, Any]:
        """Of all sizes: also beyond what 64 bits, doubles and our own limits hold."""
        low = self.one(
            0,
            0,
            0,
            0,
            0,
            -10,
            -10,
            "0.1",
            "-1e-9",
            "-1e18",
            -(2**62),
            LEAST,
            -(2**70),
            "-1e75",
            "-1e80",
        )
        high = self.one(
            10,
            10,
            10,
            10,
            10,
            100,
            1,
            "0.3",
            "1e-300",
            "1e18",
            2**62,
            MOST,
            2**63,
            2**70,
            "1e75",
            "1e80",
        )
        return low, high

    def level(self) -> str:
        return str(
            self.one(
                "0.5", "0.9", "1/3", "0.000000000000000000001", "0.123456789012345678901234567",
                f"1/{2**62}", f"1/{2**64 + 1}", f"{10**40 - 1}/{10**40}", "1e-18",
            )
        )  # fmt: skip

    def edges(self) -> list[Any]:
        return list(
            self.one(
                [0, 1], [-5, 0, 2, 10], range(40), [0, 2**62, 2**63], [LEAST, 0, MOST],
                [i * 2**58 for i in range(40)], [i * 2**60 for i in range(60)],
                ["0.1", "0.2", "0.3"],
                [f"{i}e-300" for i in range(1, 40)], [f"{i}e74" for i in range(1, 5)],
                [0, 2**126, 2**127, 2**128], ["-1e300", "1e300"], [2**53, 2**53 + 1, 2**53 + 2],
                [f"{i}/3" for i in range(50)], [f"1/{10**30}", 1],
                [-(2**53) + i for i in range(50)],
            )
        )  # fmt: skip

    def aggregate(self, depth: int) -> tuple[str, Any]:
        value = self.expression(self.one(0, 0, 1, depth) if depth else 0)
        low, high = self.bounds()
        level, edges = self.level(), self.edges()
        anything = self.one(self.whole, self.text, self.day, self.truth)(min(depth, 1))
        points = [self.one(0, 1, "0.2", 5)]
        made: tuple[tuple[str, Callable[[], Any]], ...] = (
            ("count()", lb.count),
            (f"count({value!r})", lambda: lb.count(value)),
            ("count_units()", lb.count_units),
            (f"count_distinct({anything!r})", lambda: lb.count_distinct(anything)),
            (f"sum({value!r}, {low!r}, {high!r})", lambda: lb.sum(value, low, high)),
            (f"mean({value!r}, {low!r}, {high!r})", lambda: lb.mean(value, low, high)),
            (f"variance({value!r}, {low!r}, {high!r})", lambda: lb.variance(value, low, high)),
            (f"quantile({value!r}, {level!r}, {low!r}, {high!r})",
             lambda: lb.quantile(value, level, low, high)),
            (f"quantiles({value!r}, ['0.1', {level!r}], {low!r}, {high!r})",
             lambda: lb.quantiles(value, ["0.1", level], low, high)),
            (f"min({value!r}, {low!r}, {high!r})", lambda: lb.min(value, low, high)),
            (f"max({value!r}, {low!r}, {high!r})", lambda: lb.max(value, low, high)),
            (f"histogram({value!r}, {edges!r})", lambda: lb.histogram(value, edges)),
            (f"cdf({value!r}, {points!r}, {low!r}, {high!r})",
             lambda: lb.cdf(value, points, low, high)),
        )  # fmt: skip
        words, make = self.one(*(made if depth else made[7:]))
        return words, make

    def of_a_unit(self, depth: int) -> tuple[str, Any]:
        """What a sub-query asks of the rows of one unit."""
        value, whole = self.expression(depth), self.whole(depth)
        low, high = self.bounds()
        made: tuple[tuple[str, Callable[[], Any]], ...] = (
            ("count()", lb.count),
            (f"count_distinct({whole!r})", lambda: lb.count_distinct(whole)),
            (f"sum({whole!r})", lambda: lb.sum(whole)),
            (f"mean({whole!r})", lambda: lb.mean(whole)),
            (f"sum({value!r}, {low!r}, {high!r})", lambda: lb.sum(value, low, high)),
            (f"mean({value!r}, {low!r}, {high!r})", lambda: lb.mean(value, low, high)),
            (f"max({value!r})", lambda: lb.max(value)),
            (f"min({whole!r})", lambda: lb.min(whole)),
        )
        words, make = self.one(*made)
        return words, make

    def key(self) -> str:
        return str(
            self.one(
                "cat", "word", "flag", "day", "num", "big", "num % 3", self.whole(1), self.text(1),
                self.truth(1), self.day(1), "date_trunc('hour', \"at\")", "bin(x, -5, 0, 10)",
                "bin(num, -10, 0, 10)", "CAST(x AS BIGINT)", "CAST(money AS BIGINT)", "small",
            )
        )  # fmt: skip

    def price(self, *, found: bool) -> dict[str, str]:
        """With a delta where keys must be found, and seldom beside rho where none must."""
        price = dict(
            self.one(
                {"epsilon": "1", "delta": "1e-9"}, {"epsilon": "1", "delta": "1e-9"},
                {"rho": "1/8", "delta": "1e-6"}, {"rho": "1/8", "delta": "1e-6"},
                {"epsilon": f"1/{2**29}", "delta": "1e-9"},
                {"epsilon": str(2**29), "delta": "1e-9"},
                {"epsilon": "0.123456789012", "delta": "1e-40"},
                {"rho": f"1/{2**28}", "delta": "1e-12"}, {"rho": "1000000", "delta": "1e-12"},
            )
        )  # fmt: skip
        if not found and ("rho" in price or self.rng.random() < 0.5):
            del price["delta"]
        return price

    def card(self, kind: str) -> dict[str, Any]:
        if kind == "known keys":
            return dict(self.one(*BOUNDED_CARDS))
        if kind == "rows" or (kind == "edges" and self.rng.random() < 0.5):
            return dict(self.one(*ROW_CARDS))
        own = [card for card in UNIT_CARDS if kind in _ANY_UNIT or card["unit"] == "who"]
        return dict(self.one(*own))


_DECLARED = {"cat": ["a", "", "ß\u0301", "nowhere"], "flag": [True, False]}
_WHOLE_KEYS = {"cat": ["a", None], "num": [0, MOST, LEAST + 1], "small": list(range(-2, 30))}
_BOUNDED = {
    "day": lb.Column(name="day", type="date", bounds=("1969-12-31", "2024-02-29")),
    "at": lb.Column(name="at", type="timestamp", bounds=("1969-12-31 23:00:00", "1970-01-01")),
    "small": lb.Column(name="small", type="integer", bounds=(-1, 9)),
    "big": lb.Column(name="big", type="integer", bounds=(MOST - 9, MOST)),
}
_ANY_UNIT = ("plain", "edges", "grouped", "joined")
ROW_CARDS: tuple[dict[str, Any], ...] = (
    {"each_row": True},
    {"each_row": True, "keys": _DECLARED, "neighbours": "change-one"},
    {"each_row": True, "keys": _WHOLE_KEYS},
)
UNIT_CARDS: tuple[dict[str, Any], ...] = (
    {"unit": "who", "max_rows": 3},
    {"unit": "who", "max_rows": 1, "max_groups": 1, "keys": _DECLARED},
    {"unit": "who", "max_rows": 2**20, "max_groups": 2**20, "neighbours": "change-one"},
    {"unit": "who", "max_rows": 3, "max_groups": 2, "keys": _WHOLE_KEYS},
    {"unit": "name", "max_rows": 2, "max_groups": 20, "keys": _DECLARED},
    {"unit": "num", "max_rows": 1000, "neighbours": "change-one", "keys": _WHOLE_KEYS},
)
BOUNDED_CARDS: tuple[dict[str, Any], ...] = (
    {"each_row": True, "columns": _BOUNDED},
    {"unit": "who", "max_rows": 3, "max_groups": 2, "columns": _BOUNDED},
    {"unit": "name", "max_rows": 2, "columns": _BOUNDED},
    {"unit": "who", "max_rows": 3},
)
"""Few, as the table of each is made once."""


KINDS = (
    *("plain", "edges", "grouped", "rows", "joined", "private", "per unit", "marginals"),
    "known keys",
)
"""Of `edges`: quantiles and bins of columns as they are, at every level and edge. Of `known keys`:
those that bounds of the card or of WHERE tell, of a table or of its units."""


ELSEWHERE = (
    *("ln(", "exp(", "power(", "lower(", "upper(", "trim(", "ILIKE", "strftime(", "round("),
    *("AS VARCHAR", "AS DOUBLE", "AS DATE", "AS BOOLEAN", "CAST(cat", "CAST(word", "CAST(sub"),
)
"""What PostgreSQL and Spark refuse, or refuse of texts."""


def questions(
    seed: int, number: int, kinds: tuple[str, ...] = KINDS, without: tuple[str, ...] = ()
) -> Iterator[Edge]:
    """So many questions, of each kind in turn."""
    for place in range(number):
        draw = Draw(random.Random(f"{seed} {place}"), without)
        yield _question(draw, kinds[place % len(kinds)])


def _question(draw: Draw, kind: str) -> Edge:
    card = draw.card(kind)
    known = kind == "known keys"
    where = draw.truth(2) if kind != "edges" and draw.rng.random() < 0.4 else None
    if known and where is None and draw.rng.random() < 0.8:
        where = draw.within()
    if kind == "marginals":
        return _marginals(draw, card, where)
    depth = 0 if kind == "edges" else 2
    parts = [draw.aggregate(depth) for _ in range(draw.one(1, 1, 2, 3) if depth else 1)]
    grouped = draw.rng.random() < {"plain": 0.2, "edges": 0.1}.get(kind, 0.7)
    keys = [draw.key() for _ in range(draw.one(1, 1, 2))] if grouped else []
    if known:
        keys = [draw.known() for _ in range(draw.one(1, 1, 2))]
    having = "a0 > 1" if draw.rng.random() < 0.1 else None
    by = {f"b{i}": key for i, key in enumerate(keys)} if known and draw.rng.random() < 0.3 else {}
    inner = [draw.of_a_unit(1) for _ in range(2)] if kind == "per unit" or by else []
    join = draw.one("cat", {"word": "cat"}, {"small": "level"})
    dose = draw.one("dose", "dose + big", "length(code)")
    if kind == "private":
        parts.append((f"sum({dose!r}, 0, 9)", lambda: lb.sum(dose, 0, 9)))
    if inner:
        column = draw.one("p0", "p0 + 1", "p1", "p0 / p1")
        parts = [(f"sum({column!r}, 0, 9)", lambda: lb.sum(column, 0, 9)), ("count()", lb.count)]
        keys = list(by)

    def ask(table: Any) -> Any:
        found = table
        if kind == "joined":
            found = found.join("places", on=join)
        if kind == "private":
            found = found.join("labs")
        if where is not None:
            found = found.where(where)
        if inner:
            found = found.per_unit(by=by, **{f"p{i}": make() for i, (_, make) in enumerate(inner)})
        if keys:
            found = found.group_by(**{f"k{i}": key for i, key in enumerate(keys)})
        found = found.agg(**{f"a{i}": make() for i, (_, make) in enumerate(parts)})
        return found if having is None else found.having(having)

    words = f"{kind} {card}: where {where} by {keys} per unit {by} {[w for w, _ in inner]}"
    words += f" join {join if kind == 'joined' else ''} ask {[w for w, _ in parts]}"
    return Edge(words=words, card=card, ask=ask, price=draw.price(found=bool(keys)))


def _marginals(draw: Draw, card: dict[str, Any], where: str | None) -> Edge:
    card = card | {"keys": {"cat": ["a", "", None], "flag": [True, False, None]}}
    columns = {"cat": "cat", "flag": "flag", "band": "bin(num, -10, 0, 10)", "part": draw.truth(1)}
    how = draw.one({}, {"pairs": 1}, {"pairs": 2}, {"up_to": 1})

    def ask(table: Any) -> Any:
        rows = table if where is None else table.where(where)
        return rows.marginals(columns, **how)

    words = f"marginals {card}: where {where} of {columns} {how}"
    return Edge(words=words, card=card, ask=ask, price=draw.price(found=False))
