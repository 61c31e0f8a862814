"""Questions and tables that are drawn, and what plain SQL says of them.

`Question.plain` counts the whole table in plain SQL, with the given rules applied and no others:
with none it is what a person means by the question; with those that `rules_of` lists it must be
what the engine counts, exactly.
"""

import random
from dataclasses import dataclass, field
from datetime import date
from fractions import Fraction
from math import nan

from lastbit.tables.card.column import Column
from lastbit.tables.card.schema import DataCard, PrivateTable, PublicTable, Source

PLACES = (("a", "X", 1), ("b", "Y", 2), ("b", "Y", 2), ("e", "Z", 3))
WIDE = 10**7  # no bounds that a question has


@dataclass(frozen=True)
class Key:
    """A key, by its SQL and by plain SQL; and what can befall rows there."""

    name: str
    sql: str
    raw: str
    listed: tuple = ()
    ends: tuple = ()
    bins: bool = False

    def plain(self, rules):
        """The key with these rules, and the tests that its rows must pass."""
        codes = {rule.code for rule in rules if rule.name == self.name}
        value, tests = self.raw, []
        if "key_bounds" in codes:
            value = clamped(value, self.ends)
        if "keys" in codes:
            tests.append(f"coalesce({value} IN {self.listed}, false)")
        if "bins" in codes:
            tests.append(f"{value} IS DISTINCT FROM -1")
        if "no_key" in codes:
            tests.append(f"{value} IS NOT NULL")
        return value, tests


@dataclass(frozen=True)
class Part:
    """An aggregate: its SQL, the kind of number, its values in plain SQL and its middle."""

    name: str
    sql: str
    kind: str
    raw: str = "1"
    middle: float = 0
    of_units: bool = False


BINNED = (
    "CASE WHEN x IS NULL THEN NULL WHEN x < 0 OR x > 10 THEN -1 WHEN x < 2 THEN 0 "
    "WHEN x < 5 THEN 2 ELSE 5 END"
)
KEYS = (
    Key("cat", "cat", "cat", listed=("a", "b")),
    Key("num", "num", "num", ends=(0, 5)),
    Key("flag", "flag", "flag"),
    Key("month", "month(day)", "month(day)"),
    Key("side", "CASE WHEN x > 5 THEN 'hi' ELSE 'lo' END", "CASE WHEN x > 5 THEN 'hi' ELSE 'lo' END"),
    Key("maybe", "CASE WHEN flag THEN 'yes' END", "CASE WHEN flag THEN 'yes' END"),
    Key("b", "bin(x, 0, 2, 5, 10)", BINNED, bins=True),
    Key("half", "FLOOR(num / 2) * 2", "CAST(floor(num / 2) * 2 AS BIGINT)", ends=(0, 4)),
    Key("sure", "clamp(coalesce(num, 0), 1, 3)", "coalesce(num, 0)", ends=(1, 3)),
    Key("truth", "num IS NULL", "num IS NULL"),
    Key("name", "name", "name"),
    Key("label", "label", "label"),
)
PARTS = (
    Part("n", "COUNT(*)", "count"),
    Part("nx", "COUNT(x)", "some", "x"),
    Part("units", "COUNT(DISTINCT who)", "units", of_units=True),
    Part("sn", "SUM(num)", "sum", "num", 2),
    Part("mx", "AVG(x)", "mean", "x", 5),
    Part("vx", "VAR_POP(x)", "variance", "x", 5),
    Part("hx", "HISTOGRAM(x, 0, 2, 5, 10)", "histogram", "x"),
    Part("dc", "COUNT(DISTINCT cat)", "distinct", "cat"),
    Part("late", "SUM(CASE WHEN flag THEN 1 ELSE 0 END)", "sum", "CASE WHEN flag THEN 1 ELSE 0 END"),
    Part("mm", "AVG(month(day))", "mean", "month(day)", 6),
    Part("sj", "SUM(junk)", "sum", "junk", 6),
    Part("sc", "SUM(clamp(num, 1, 3))", "sum", "num", 2),
    Part("few", "COUNT(*) FILTER (WHERE num > 2)", "some", "CASE WHEN num > 2 THEN 1 END"),
    Part("med", "MEDIAN(x)", "median", "x"),
    Part("near", "SUM(coalesce(num, 3))", "sum", "coalesce(num, 3)", 2),
)
WHERES = (
    *("num > 2", "flag", "cat <> 'a'", "x IS NOT NULL", "junk < 5 OR flag"),
    *("coalesce(num, 9) > 2", "NOT num > 2", "cat IN ('a', 'c')"),
)
INNER_KEYS = (None, KEYS[0], KEYS[1], KEYS[7])
OUTER_KEYS = (None, Key("n", "n", "n", ends=(1, 0)), Key("s", "s", "s", ends=(0, 0)))
OUTER_PARTS = (
    Part("people", "COUNT(*)", "count"),
    Part("mean_n", "AVG(n)", "mean", "n"),
    Part("sum_s", "SUM(s)", "sum", "s"),
    Part("most", "SUM(CASE WHEN n > 2 THEN 1 ELSE 0 END)", "sum", "CASE WHEN n > 2 THEN 1 ELSE 0 END"),
)


def clamped(value, ends):
    return f"CASE WHEN ({value}) < {ends[0]} THEN {ends[0]} WHEN ({value}) > {ends[1]} THEN {ends[1]} ELSE ({value}) END"


@dataclass(frozen=True, kw_only=True)
class Question:
    card: DataCard
    keys: tuple = ()
    parts: tuple = ()
    where: str | None = None
    join: str | None = None
    inner: Key | None = None
    is_inner: bool = False
    having: bool = False
    limit: int | None = None
    seen: dict = field(default_factory=dict)

    @property
    def sql(self):
        keys = [f"{key.sql} AS {key.name}" for key in self.keys]
        wanted = ", ".join([*keys, *(f"{part.sql} AS {part.name}" for part in self.parts)])
        where = f" WHERE {self.where}" if self.where else ""
        if self.is_inner:
            by = f", {self.inner.sql} AS {self.inner.name}" if self.inner else ""
            own = f", {self.inner.sql}" if self.inner else ""
            rows = f"SELECT who{by}, COUNT(*) AS n, SUM(num) AS s FROM t{where} GROUP BY who{own}"
            text = f"SELECT {wanted} FROM ({rows}) AS q"
        else:
            joins = {"places": " JOIN places ON t.cat = places.cat",
                     "labs": " JOIN labs ON t.who = labs.whose"}  # fmt: skip
            text = f"SELECT {wanted} FROM t{joins.get(self.join, '')}{where}"
        text += f" GROUP BY {', '.join(key.name for key in self.keys)}" if self.keys else ""
        text += f" HAVING {self.parts[0].name} > 1" if self.having else ""
        return text + (f" LIMIT {self.limit}" if self.limit else "")

    def rows(self, rules):
        """The rows that are counted: u, the keys, the columns; before weights."""
        codes = {rule.code for rule in rules}
        unit = self.card.unit
        u = "rid" if unit is None else "coalesce(who, -100 - rid % 2)"
        owned = ["who IS NOT NULL"] if "no_unit" in codes else []
        source = f"(SELECT {u} AS u, b.* FROM b)"
        if self.join == "places":
            once = "places"
            if "one_match" in codes:
                once = "(SELECT cat, any_value(label) AS label FROM places GROUP BY cat HAVING count(*) = 1)"
            side = "" if "no_match" in codes else "LEFT "
            source = f"(SELECT s.*, p.label FROM {source} AS s {side}JOIN {once} AS p ON s.cat = p.cat)"
        if self.join == "labs":
            most = next((rule.most for rule in rules if rule.code == "joined_rows"), 10**6)
            some = f"(SELECT whose FROM (SELECT whose, row_number() OVER (PARTITION BY whose) AS place FROM labs) WHERE place <= {most})"
            side = "" if "no_match" in codes else "LEFT "
            source = f"(SELECT s.*, p.whose FROM {source} AS s {side}JOIN {some} AS p ON s.who = p.whose)"
        if self.where:
            owned.append(f"({self.where})" if "condition" in codes else f"coalesce({self.where}, true)")
        text = f"SELECT * FROM {source}" + (f" WHERE {' AND '.join(owned)}" if owned else "")
        keys = self.keys
        if self.is_inner:
            by, tests = (None, []) if self.inner is None else self.inner.plain(rules)
            ends = [r.ends for r in rules if r.code == "unit_bounds"]
            num = clamped("num", ends[0]) if ends else "num"
            made = "" if by is None else f", {by} AS {self.inner.name}"
            text = f"SELECT u{made}, count(*) AS n, sum({num}) AS s FROM ({text}) GROUP BY ALL"
            keys = [
                Key(key.name, key.sql, key.name, listed=key.listed) if key == self.inner else key
                for key in keys
            ]
        shown, tests = ["*"], []
        for key in keys:
            ends = [r.ends for r in rules if r.code == "key_bounds" and r.name == key.name]
            own = Key(key.name, key.sql, key.raw, key.listed, ends[0] if ends else (), key.bins)
            value, more = own.plain([] if self.is_inner and key.raw == key.name == getattr(self.inner, "name", "") else rules)
            if self.is_inner and key.name == getattr(self.inner, "name", ""):
                more = [t for t in (f"{key.name} IS NOT NULL" if _has(rules, "no_key", key.name) else "", f"coalesce({key.name} IN {key.listed}, false)" if _has(rules, "keys", key.name) else "") if t]
            shown.append(f"{value} AS g_{key.name}")
            tests += more
        return f"SELECT {', '.join(shown)} FROM ({text})" + (f" WHERE {' AND '.join(tests)}" if tests else "")

    def plain(self, connection, rules):
        """For every group the numbers of all parts, with these rules."""
        groups = [f"g_{key.name}" for key in self.keys]
        most = next((rule.most for rule in rules if rule.code == "max_rows"), None)
        weight = "1.0" if most is None else (
            f"CASE WHEN c > {most} THEN floor({most} * 1048576.0 / c) / 1048576.0 ELSE 1.0 END"
        )  # fmt: skip
        counted = f"SELECT *, count(*) OVER (PARTITION BY u) AS c FROM ({self.rows(rules)})"
        weighed = f"SELECT *, {weight} AS w FROM ({counted})"
        numbers = [text for part in self.parts for text in self.number(part, rules)]
        by = f" GROUP BY {', '.join(groups)}" if groups else ""
        found = connection.execute(f"SELECT {', '.join([*groups, *numbers])} FROM ({weighed}){by}").fetchall()
        return {row[: len(groups)]: row[len(groups) :] for row in found}

    def number(self, part, rules):
        """The SQL of what a part counts: one number, or those of its ranges."""
        own = [rule for rule in rules if part.name in rule.columns]
        codes, v = {rule.code for rule in own}, f"CAST(({part.raw}) AS DOUBLE)"
        if part.kind == "count":
            return ["coalesce(sum(w), 0)"]
        if part.kind == "units":
            return ["count(DISTINCT u)"]
        if part.kind == "distinct":
            return [f"count(DISTINCT coalesce({part.raw}, {chr(39)}?{chr(39)}))" if "missing" not in codes else f"count(DISTINCT {part.raw})"]
        if part.kind == "some":
            return ["coalesce(sum(w), 0)" if not codes & {"missing"} else f"coalesce(sum(w) FILTER (({part.raw}) IS NOT NULL), 0)"]
        for rule in own:
            if rule.code == "bounds":
                v = clamped(v, tuple(map(float, rule.ends)))
        if part.kind == "histogram":
            low, high = (0, 10) if "edges" in codes else (-WIDE, WIDE)
            ends = [(low, 2, "<"), (2, 5, "<"), (5, high, "<=")]
            value = v if "missing" in codes else f"coalesce({v}, 3)"
            return [f"coalesce(sum(w) FILTER ({value} >= {a} AND {value} {sign} {b}), 0)" for a, b, sign in ends]
        if part.kind == "median":
            return ["coalesce(sum(w), 0)" if "missing" not in codes else f"coalesce(sum(w) FILTER (({v}) IS NOT NULL), 0)"]
        if "missing" not in codes and "promised" not in codes:
            v = f"coalesce({v}, 1)"
        rows = f"sum(w) FILTER (({v}) IS NOT NULL)"
        if "promised" in codes:
            v = f"coalesce({v}, {part.middle if part.kind != 'sum' else 0})"
            rows = "sum(w)"
        if part.kind == "sum":
            return [f"coalesce(sum(w * ({v})), 0)"]
        mean = f"sum(w * ({v})) / {rows}"
        if part.kind == "mean":
            return [mean]
        return [f"sum(w * ({v}) * ({v})) / {rows} - ({mean}) * ({mean})"]


def _has(rules, code, name):
    return any(rule.code == code and rule.name == name for rule in rules)


def card_of(draw, places, *, each_row):
    """A card with limits that bite; the public table is in the file `places`."""
    promised = draw.random() < 0.2
    columns = (
        Column(name="who", type="integer"),
        Column(name="name", type="text"),
        Column(name="cat", type="text", keys=("a", "b")),
        Column(name="num", type="integer", bounds=(0, 5), nullable=not promised),
        Column(name="x", type="number", bounds=(0, 10), step=draw.choice([None, None, Fraction(1, 2)])),
        Column(name="flag", type="boolean"),
        Column(name="day", type="date"),
        Column(name="junk", type="number", bounds=(0, 12)),
    )
    types = {"cat": "text", "label": "text", "level": "integer"}
    labs = {name: Column(name=name, type="integer") for name in ("whose", "dose")}
    source, public = Source(kind="frame"), Source(kind="parquet", paths=(str(places),))
    return DataCard(
        name="t",
        source=source,
        unit=None if each_row else "who",
        max_rows=1 if each_row else draw.randint(1, 4),
        max_groups=None if each_row else draw.choice([None, 1, 2, 3]),
        columns={column.name: column for column in columns},
        public={"places": PublicTable(name="places", source=public, columns=types)},
        private={} if each_row else {
            "labs": PrivateTable(name="labs", source=source, unit="whose", max_rows=draw.randint(1, 3), columns=labs)
        },
    )  # fmt: skip


def question_of(draw, places):
    """A question of any kind."""
    each_row = draw.random() < 0.2
    card = card_of(draw, places, each_row=each_row)
    where = draw.choice([None, None, *WHERES])
    if not each_row and draw.random() < 0.25:
        inner = draw.choice(INNER_KEYS)
        outer = draw.choice((*OUTER_KEYS, inner, inner))
        parts = tuple(draw.sample(OUTER_PARTS, draw.randint(1, 2)))
        keys = () if outer is None else (outer,)
        return Question(card=card, keys=keys, parts=parts, where=where, inner=inner, is_inner=True)
    join = draw.choice([None, None, None, "places", None if each_row else "labs"])
    allowed = [k for k in KEYS if (k.name != "label" or join == "places") and (k.name != "name" or card.max_groups)]
    keys = draw.sample(allowed, draw.choice([0, 1, 1, 1, 2]))
    if join == "places":
        where = None if where and "cat" in where else where
        keys = [key for key in keys if key.name != "cat"]
        keys = keys or ([k for k in KEYS if k.name == "label"] if draw.random() < 0.5 else [])
    parts = [p for p in PARTS if not (p.of_units and each_row) and not (p.raw == "cat" and join == "places")]
    parts = draw.sample(parts, draw.randint(1, 3))
    plain = bool(keys) and parts[0].kind in ("count", "sum") and draw.random() < 0.15
    limit = draw.choice([1, 2, 500]) if keys and draw.random() < 0.15 else None
    return Question(card=card, keys=tuple(keys), parts=tuple(parts), where=where, join=join, having=plain, limit=limit)


DAYS = (None, date(2024, 1, 31), date(2024, 2, 29), date(2025, 12, 1))


def table_of(draw, rows):
    """Rows that go wrong: no unit, many of one unit, values and keys of every kind."""
    def line():
        who = draw.choice([None, None, None, *[0] * 6, 1, 1, 1, 2, 2, 3, 4, 5])
        return (
            who,
            None if who is None else f"u{who % 3}",
            draw.choice(["a", "a", "b", "c", "", None, "e"]),
            draw.choice([None, *range(-3, 13), 2**70]),
            draw.choice([None, nan, 0.0, 2.0, 5.0, 10.0, 10.0, -1.5, 11.25, 3.3333, 9.999, 7.5]),
            draw.choice([None, True, False]),
            draw.choice(DAYS),
            draw.choice([None, "12", "abc", "", "nan", "-1.5e3", "0", "7.25"]),
        )  # fmt: skip
    labs = [(draw.choice([None, 0, 0, 0, 1, 1, 2]), None, None, 1, None) for _ in range(rows // 3)]
    return tuple(line() for _ in range(rows)), tuple(labs)


def drawn(number):
    return random.Random(number)  # noqa: S311  no noise is drawn from it
