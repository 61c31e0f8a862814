"""Questions and tables that are drawn, and what plain SQL says of them.

`Question.plain` counts the whole table in plain SQL, with the given rules applied and no others:
with none it is what a person means by the question; with those that `rules_of` lists it must be
what the engine counts, exactly.
"""

import random
from collections.abc import Collection
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from math import floor, nan
from typing import Any

from lastbit.tables import Rule
from lastbit.tables.card.column import Column
from lastbit.tables.card.schema import DataCard, PrivateTable, PublicTable, Source

PLACES = (("a", "X", 1), ("b", "Y", 2), ("b", "Y", 2), ("e", "Z", 3))
"""The public table: one key twice, one that no row has, none for most rows."""
WIDE = 10**7  # beyond all bounds
ONE = "1048576.0"  # of the weights
Rules = list[Rule]
Groups = dict[tuple[Any, ...], tuple[Any, ...]]


def clamped(value: str, ends: Any) -> str:
    low, high = (float(end) if Fraction(end).denominator > 1 else int(end) for end in ends)
    return (
        f"CASE WHEN {value} < {low} THEN {low} WHEN {value} > {high} THEN {high} ELSE {value} END"
    )


@dataclass(frozen=True)
class Key:
    """A key, by its SQL and by plain SQL, and the values that the card lists."""

    name: str
    sql: str
    raw: str
    listed: tuple[str, ...] = ()

    def value(self, rules: Rules) -> str:
        ends = {one.name: one.ends for one in rules if one.code == "key_bounds"}
        raw = self.raw  # of the column that it is made of, or of itself
        if "num" in ends and self.name != "num":
            raw = raw.replace("num", f"({clamped('num', ends['num'])})")
        return clamped(f"({raw})", ends[self.name]) if self.name in ends else raw

    def tests(self, value: str, rules: Rules) -> list[str]:
        """What rows must pass."""
        tests = {
            "keys": f"coalesce({value} IN {self.listed}, false)",
            "bins": f"{value} IS DISTINCT FROM -1",
            "no_key": f"{value} IS NOT NULL",
        }
        codes = {rule.code for rule in rules if rule.name == self.name}
        return [f"({test})" for code, test in tests.items() if code in codes]


@dataclass(frozen=True)
class Part:
    """An aggregate: its SQL, the kind of number, and its values in plain SQL."""

    name: str
    sql: str
    kind: str
    raw: str = "1"

    def numbers(self, rules: Rules, *, beside_mean: bool = False) -> list[str]:
        """What it counts, in plain SQL: one number, or those of its ranges."""
        own = [rule for rule in rules if self.name in rule.columns]
        codes, value = {rule.code for rule in own}, f"({self.raw})"
        rows = f"coalesce(sum(w) FILTER ({value} IS NOT NULL), 0)"
        if self.kind in ("count", "some", "median"):
            return [rows if "missing" in codes else "coalesce(sum(w), 0)"]
        if self.kind == "units":
            return ["count(DISTINCT u)"]
        if self.kind == "distinct":
            known = value if "missing" in codes else f"coalesce({value}, '?')"
            return [f"count(DISTINCT {known})"]
        for rule in own:
            if rule.code == "bounds":
                value = f"({clamped(value, rule.ends)})"
        if not codes & {"missing", "promised"}:
            value = f"coalesce({value}, 1)"
        if self.kind == "histogram":
            low, high = (0, 10) if "edges" in codes else (-WIDE, WIDE)
            tests = (f"{value} >= {low} AND {value} < 2", f"{value} >= 2 AND {value} < 5",
                     f"{value} >= 5 AND {value} <= {high}")  # fmt: skip
            return [f"coalesce(sum(w) FILTER ({test}), 0)" for test in tests]
        if "promised" in codes:
            alone = self.kind == "sum" and not beside_mean
            ends: Any = next((r.ends for r in own if r.code == "bounds"), None) or (0, 0)
            middle = 0 if alone else floor(Fraction(ends[0] + ends[1]) / 2)
            value = f"coalesce({value}, {middle})"
        total, rows = f"sum(w * {value})", f"sum(w) FILTER ({value} IS NOT NULL)"
        if self.kind == "sum":
            return [f"coalesce({total}, 0)"]
        if self.kind == "mean":
            return [f"{total} / {rows}"]
        return [f"sum(w * {value} * {value}) / {rows} - ({total} / {rows}) * ({total} / {rows})"]


SIDE, MAYBE = "CASE WHEN x > 5 THEN 'hi' ELSE 'lo' END", "CASE WHEN flag THEN 'yes' END"
LATE, OFTEN = "CASE WHEN flag THEN 1 ELSE 0 END", "CASE WHEN n > 2 THEN 1 ELSE 0 END"
BINNED = (
    "CASE WHEN x IS NULL THEN NULL WHEN x < 0 OR x > 10 THEN -1 WHEN x < 2 THEN 0 "
    "WHEN x < 5 THEN 2 ELSE 5 END"
)
KEYS = (
    Key("cat", "cat", "cat", listed=("a", "b")),
    Key("num", "num", "num"),
    Key("flag", "flag", "flag"),
    Key("month", "month(day)", "month(day)"),
    Key("side", SIDE, SIDE),
    Key("maybe", MAYBE, MAYBE),
    Key("b", "bin(x, 0, 2, 5, 10)", BINNED),
    Key("half", "FLOOR(num / 2) * 2", "CAST(floor(num / 2) * 2 AS BIGINT)"),
    Key("sure", "clamp(coalesce(num, 0), 1, 3)", "coalesce(num, 0)"),
    Key("truth", "num IS NULL", "num IS NULL"),
    Key("name", "name", "name"),
    Key("label", "label", "label"),
)
PARTS = (
    Part("n", "COUNT(*)", "count"),
    Part("nx", "COUNT(x)", "some", "x"),
    Part("units", "COUNT(DISTINCT who)", "units"),
    Part("sn", "SUM(num)", "sum", "num"),
    Part("mn", "AVG(num)", "mean", "num"),
    Part("mx", "AVG(x)", "mean", "x"),
    Part("vx", "VAR_POP(x)", "variance", "x"),
    Part("hx", "HISTOGRAM(x, 0, 2, 5, 10)", "histogram", "x"),
    Part("dc", "COUNT(DISTINCT cat)", "distinct", "cat"),
    Part("late", f"SUM({LATE})", "sum", LATE),
    Part("mm", "AVG(month(day))", "mean", "month(day)"),
    Part("sj", "SUM(junk)", "sum", "junk"),
    Part("sc", "SUM(clamp(num, 1, 3))", "sum", "(num)"),
    Part("few", "COUNT(*) FILTER (WHERE num > 2)", "some", "CASE WHEN num > 2 THEN 1 END"),
    Part("med", "MEDIAN(x)", "median", "x"),
    Part("near", "SUM(coalesce(num, 3))", "sum", "coalesce(num, 3)"),
)
WHERES = (
    *("num > 2", "flag", "cat <> 'a'", "x IS NOT NULL", "junk < 5 OR flag"),
    *("coalesce(num, 9) > 2", "NOT num > 2", "cat IN ('a', 'c')", "x IS NOT NULL AND num < 9"),
)
INNER_KEYS = (None, *KEYS[:3])
OUTER_KEYS = (None, Key("n", "n", "n"), Key("s", "s", "s"))
OUTER_PARTS = (
    Part("people", "COUNT(*)", "count"),
    Part("sum_n", "SUM(n)", "sum", "n"),
    Part("mean_s", "AVG(s)", "mean", "s"),
    Part("often", f"SUM({OFTEN})", "sum", OFTEN),
)


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question about t: plain, joined with `places` or `labs`, or of rows made for each unit."""

    card: DataCard
    keys: tuple[Key, ...]
    parts: tuple[Part, ...]
    where: str | None = None
    join: str | None = None
    per_unit: tuple[Key, ...] | None = None
    having: str = ""

    @property
    def sql(self) -> str:
        keys = [key.name if self.is_inner(key) else f"{key.sql} AS {key.name}" for key in self.keys]
        wanted = ", ".join([*keys, *(f"{part.sql} AS {part.name}" for part in self.parts)])
        on = {"places": " JOIN places ON t.cat = places.cat", "labs": " JOIN labs ON who = whose"}
        rows = f"FROM t{on.get(self.join or '', '')}" + (
            f" WHERE {self.where}" if self.where else ""
        )
        if self.per_unit is not None:
            own = ", ".join(["who", *(key.sql for key in self.per_unit)])
            rows = f"FROM (SELECT {own}, COUNT(*) AS n, SUM(num) AS s {rows} GROUP BY {own}) AS q"
        grouped = f" GROUP BY {', '.join(key.name for key in self.keys)}" if self.keys else ""
        return f"SELECT {wanted} {rows}{grouped}{self.having}"

    def is_inner(self, key: Key) -> bool:
        return self.per_unit is not None and key in self.per_unit

    def rows(self, rules: Rules) -> str:
        """The rows that count: u, the keys as g_..., all columns."""
        codes = {rule.code for rule in rules}
        unit = "rid" if self.card.unit is None else "coalesce(who, -100 - rid % 2)"
        text = self.joined(f"(SELECT {unit} AS u, b.* FROM b) AS t", rules, codes)
        tests = ["who IS NOT NULL"] if "no_unit" in codes else []
        if self.where:
            unknown = "" if "condition" in codes else ", true"
            tests.append(f"coalesce({self.where}{unknown or ', false'})")
        text = f"SELECT * FROM {text} WHERE {' AND '.join(tests) or 'true'}"
        if self.per_unit is not None:
            ends = [rule.ends for rule in rules if rule.code == "unit_bounds"]
            total = f"sum({clamped('num', ends[0]) if ends else 'num'}) AS s"
            own = [f"{key.value(rules)} AS k_{key.name}" for key in self.per_unit]
            listed = ", ".join(["u", *own, "count(*) AS n", total])
            text = f"SELECT {listed} FROM ({text}) GROUP BY ALL"
        values = {
            key: f"k_{key.name}" if self.is_inner(key) else key.value(rules) for key in self.keys
        }
        tests = [test for key, value in values.items() for test in key.tests(value, rules)]
        shown = ", ".join(["*", *(f"{value} AS g_{key.name}" for key, value in values.items())])
        return f"SELECT {shown} FROM ({text}) WHERE {' AND '.join(tests) or 'true'}"

    def joined(self, rows: str, rules: Rules, codes: set[str]) -> str:
        side = "" if "no_match" in codes else "LEFT "
        if self.join == "places":
            once = " HAVING count(*) = 1" if "one_match" in codes else ", place"
            numbered = "(SELECT *, row_number() OVER () AS place FROM places)"
            other = f"SELECT cat, any_value(label) AS label FROM {numbered} GROUP BY cat{once}"
            return f"(SELECT t.*, p.label FROM {rows} {side}JOIN ({other}) AS p ON t.cat = p.cat)"
        if self.join == "labs":
            most = next((rule.most for rule in rules if rule.code == "joined_rows"), WIDE)
            numbered = "SELECT whose, row_number() OVER (PARTITION BY whose) AS place FROM labs"
            other = f"SELECT whose FROM ({numbered}) WHERE place <= {most}"
            return f"(SELECT t.*, p.whose FROM {rows} {side}JOIN ({other}) AS p ON who = p.whose)"
        return rows

    def plain(self, connection: Any, rules: Rules, beside: Collection[str] = ()) -> Groups:
        """For every group the numbers of all parts, by plain SQL with these rules.

        `beside` names the parts whose rows are counted with their values.
        """
        groups = [f"g_{key.name}" for key in self.keys]
        weight = "1.0"
        for rule in rules:
            if rule.code == "max_rows":
                share = f"floor({rule.most} * {ONE} / c) / {ONE}"
                weight = f"CASE WHEN c > {rule.most} THEN {share} ELSE 1.0 END"
        counted = f"SELECT *, count(*) OVER (PARTITION BY u) AS c FROM ({self.rows(rules)})"
        means = {part.raw for part in self.parts if part.kind in ("mean", "variance")}
        numbers = [
            text
            for part in self.parts
            for text in part.numbers(rules, beside_mean=part.raw in means or part.name in beside)
        ]
        wanted = ", ".join([*groups, *numbers])
        by = f" GROUP BY {', '.join(groups)}" if groups else ""
        text = f"SELECT {wanted} FROM (SELECT *, {weight} AS w FROM ({counted})){by}"
        rows = connection.execute(text).fetchall()
        return {row[: len(groups)]: row[len(groups) :] for row in rows}


def card_of(draw: random.Random, places: Any, *, each_row: bool) -> DataCard:
    """A card with limits that bite; the public table is in the file `places`."""
    columns = (
        Column(name="who", type="integer"),
        Column(name="name", type="text"),
        Column(name="cat", type="text", keys=("a", "b")),
        Column(name="num", type="integer", bounds=(0, 5), nullable=draw.random() < 0.8),
        Column(name="x", type="number", bounds=(0, 10), step=draw.choice([None, None, "1/2"])),
        Column(name="flag", type="boolean"),
        Column(name="day", type="date"),
        Column(name="junk", type="number", bounds=(0, 12)),
    )
    frame, file = Source(kind="frame"), Source(kind="parquet", paths=(str(places),))
    types: Any = {"cat": "text", "label": "text", "level": "integer"}
    labs = {name: Column(name=name, type="integer") for name in ("whose", "dose")}
    most = draw.randint(1, 3)
    private = PrivateTable(name="labs", source=frame, unit="whose", max_rows=most, columns=labs)
    return DataCard(
        name="t",
        source=frame,
        unit=None if each_row else "who",
        max_rows=1 if each_row else draw.randint(1, 4),
        max_groups=None if each_row else draw.choice([None, 1, 2, 3]),
        columns={column.name: column for column in columns},
        public={"places": PublicTable(name="places", source=file, columns=types)},
        private={} if each_row else {"labs": private},
    )


def question_of(draw: random.Random, places: Any) -> Question:
    """A question of any kind."""
    each_row = draw.random() < 0.2
    card = card_of(draw, places, each_row=each_row)
    where = draw.choice([None, None, *WHERES])
    if not each_row and draw.random() < 0.25:
        inner = draw.choice(INNER_KEYS)
        outer = draw.choice((*OUTER_KEYS, inner))
        parts = draw.sample(OUTER_PARTS, draw.randint(1, 2))
        where = None if where == "flag" == getattr(inner, "name", "") else where
        return Question(
            card=card,
            keys=() if outer is None else (outer,),
            parts=tuple(parts),
            where=where,
            per_unit=() if inner is None else (inner,),
        )
    join = draw.choice([None, None, None, "places", None if each_row else "labs"])
    unfit = {"label"} if join != "places" else {"cat", "dc"}
    unfit |= set() if card.max_groups else {"name"}
    unfit |= {"units"} if each_row else set()
    if join == "places" and where and "cat" in where:
        where = None
    keys = draw.sample([key for key in KEYS if key.name not in unfit], draw.choice([0, 1, 1, 2]))
    parts = draw.sample([part for part in PARTS if part.name not in unfit], draw.randint(1, 3))
    having = ""
    if keys and draw.random() < 0.2:
        shown = parts[0].kind not in ("histogram", "median")
        having = f" HAVING {parts[0].name} > 1" if shown and draw.random() < 0.5 else ""
        having += draw.choice(["", " LIMIT 1", " LIMIT 500"])
    return Question(
        card=card, keys=tuple(keys), parts=tuple(parts), where=where, join=join, having=having
    )


DAYS = (None, date(2024, 1, 31), date(2024, 2, 29), date(2025, 12, 1))
Table = tuple[tuple[Any, ...], tuple[Any, ...]]


def table_of(draw: random.Random, rows: int) -> Table:
    """Rows that go wrong, and those of `labs`: no unit, many of one, values of every kind."""
    lines = []
    for _ in range(rows):
        who = draw.choice([None, None, None, *[0] * 6, 1, 1, 1, 2, 2, 3, 4, 5])
        lines.append(
            (
                who,
                None if who is None else f"u{who % 3}",
                draw.choice(["a", "a", "b", "c", "", None, "e"]),
                draw.choice([None, None, None, *range(-3, 13), 2**70]),
                draw.choice(
                    [None, nan, 0.0, 2.0, 5.0, 10.0, -1.5, -3.0, 11.25, 12.0, 3.3333, 9.999, 7.5]
                ),
                draw.choice([None, True, False]),
                draw.choice(DAYS),
                draw.choice([None, "12", "abc", "", "nan", "-1.5e3", "0", "7.25"]),
            )
        )
    labs = [(draw.choice([None, 0, 0, 0, 1, 1, 2]), None, None, 1, None) for _ in range(rows // 3)]
    return tuple(lines), tuple(labs)
