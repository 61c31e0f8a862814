"""Questions in SQL, drawn at random in all forms that are read, over a private and a public table.

Every unit has at most max_rows rows and numbers lie between their bounds, so that bounding changes
nothing; keys without declared values are had by many. LIMIT stands behind an order of all keys.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

import duckdb

import lastbit as lb

ROWS = """
SELECT range // 3 AS pid, ['n', 's', 'w'][1 + (hash(range) % 3)::INTEGER] AS region,
       ['a', 'b', 'cc', 'D'][1 + (hash(range + 1) % 4)::INTEGER] AS ward,
       (hash(range + 2) % 21)::BIGINT AS age, 1 + (hash(range + 3) % 5)::BIGINT AS educ,
       hash(range + 4) % 3 = 0 AS ok, DATE '2024-01-01' + (hash(range + 5) % 91)::INTEGER AS day,
       (hash(range + 6) % 400) / 4 AS cost,
       CASE WHEN hash(range + 7) % 5 > 0 THEN (hash(range + 8) % 9)::BIGINT - 4 END AS many
FROM range(1_800)
"""
ZONES = """
SELECT * FROM (VALUES ('n', 'cold', 1), ('s', 'warm', 2), ('x', 'hot', 3)) t(region, zone, size)
"""


def database() -> Any:
    """DuckDB with the tables, and what it lacks of our functions."""
    engine = duckdb.connect()
    engine.execute("CREATE SCHEMA s")
    for schema in ("main", "s"):
        engine.execute(f"CREATE TABLE {schema}.visits AS {ROWS}")
        engine.execute(f"CREATE TABLE {schema}.zones AS {ZONES}")
    engine.execute(
        "CREATE MACRO clamp(x, a, b) AS CASE WHEN x < a THEN a WHEN x > b THEN b ELSE x END"
    )
    return engine


def private_table(engine: Any) -> Any:
    """The table as a private one; `ward` and `educ` have no declared keys."""
    whole = {"age": (0, 20), "many": (-4, 4)}
    columns = [lb.Column(name=n, type="integer", bounds=ends) for n, ends in whole.items()]
    columns.append(lb.Column(name="cost", type="number", bounds=(0, 100)))
    columns.append(lb.Column(name="day", type="date", bounds=("2024-01-01", "2024-03-31")))
    return lb.table(
        engine.sql("FROM main.visits").to_arrow_table(),
        name="visits",
        unit="pid",
        max_rows=3,
        keys={"region": ["n", "s", "w"]},
        columns=columns,
        public={"zones": engine.sql("FROM main.zones").to_arrow_table()},
    )


CONDITIONS = (
    """
age > 5|age = '8'|age IN (3, 4, 5)|age BETWEEN 4 AND 15|NOT age < 10|age <> 7|age NOT IN ('1', 2)
region = 'n'|region IN ('n', 's')|region = 'n' OR region = 'w'|NOT region = 's'|region <> 'w'
ok|NOT ok|ok = 1|ok = FALSE|ok IS TRUE|ward LIKE '%c%'|ward IN ('a', 'b')|upper(ward) <> 'A'
educ = 3|educ IN (1, 2)|educ = '2' OR educ = 4|day >= '2024-02-01'|month(day) = 2|cost < 50.5
many IS NULL|many > 0 OR age > 10|many = '3' OR cost > '20.5'
day BETWEEN '2024-01-10' AND '2024-02-20'
age % 2 = 0|age // 5 = 1|(region = 'n' AND age > 3) OR region = 's'
log(age + 1) < 1|concat(age, ward) <> '8a'
""".replace("\n", "|")
    .strip("|")
    .split("|")
)
# a key, and what may be shown of it
KEYS = {
    "region": ("upper(region)", "region || '!'", "CASE WHEN region = 'n' THEN 1 ELSE 2 END"),
    "ward": ("lower(ward)", "length(ward)", "concat(ward, 1)"),
    "age": ("age * 10", "-age", "CAST(age AS VARCHAR)", "age % 3"),
    "educ": ("educ + 1", "concat(educ, '.')", "educ > 2"),
    "ok": ("NOT ok", "CASE WHEN ok THEN 'y' ELSE 'n' END"),
    "age // 5": ("age // 5 * 5", "age // 5 + 1"),
    "floor(age / 7)": ("floor(age / 7) * 7",),
    "month(day)": ("month(day) * 100",),
    "upper(ward)": ("length(upper(ward))",),
    "age > 9": (),
    "CASE WHEN age < 7 THEN 'young' ELSE 'old' END": (),
    "date_trunc('month', day)": (),
}  # fmt: skip
NUMBERS = """
age|cost|many|educ_|age + 1|2 * age - many|cost / 4|sqrt(age)|ln(age + 1)|exp(age / 10)
age % 7|age // 3
cost // 2|round(cost, 1)|power(age, 2)|length(ward)|abs(many)|log(age + 1)|log2(cost + 1)
CAST(age > 7 AS BIGINT)
CASE WHEN ok THEN age END|CASE WHEN many > 0 THEN cost ELSE 0 END|least(age, 9)|greatest(many, 0)
clamp(educ, 0, 9)|clamp(educ, 0, 5) * many|coalesce(many, 0)
""".replace("educ_", "clamp(educ, 1, 5)").replace("\n", "|").strip("|").split("|")  # fmt: skip
WHOLE = ("age", "many", "age + 1", "abs(many)", "CASE WHEN ok THEN age END", "clamp(educ, 0, 7)")


@dataclass(frozen=True)
class Drawn:
    """A question, and what it is in DuckDB's words."""

    text: str
    plain: str
    forms: frozenset[str] = field(default_factory=frozenset)


def aggregate(random: Random) -> str:
    """One number of a group."""
    number, whole = random.choice(NUMBERS), random.choice(WHOLE)
    return random.choice(
        (
            "COUNT(*)", "COUNT(many)", "COUNT(DISTINCT pid)", f"COUNT(DISTINCT {whole})",
            "COUNT(DISTINCT ward)", f"SUM({number})", f"SUM({number})", "SUM(age > 7)",
            f"AVG({number})",
            f"VARIANCE({whole})", f"STDDEV({whole})", f"SUM(DISTINCT {whole})",
            f"AVG(DISTINCT {whole})", f"VARIANCE(DISTINCT {whole})", f"SUM({number}) / COUNT(*)",
            "LN(COUNT(*) + 1)", f"POWER(AVG({whole}), 2)", "3 * COUNT(*) + 1", "LOG(1 + COUNT(*))",
            f"SUM({number}) FILTER (WHERE ok)", "COUNT_IF(age > 5)", "ROUND(100.0 * COUNT(*), 0)",
            f"CASE WHEN COUNT(*) > 10.5 THEN SUM({whole}) ELSE 0 END",
        )
    )  # fmt: skip


def question(random: Random) -> Drawn:
    """One question."""
    joined = random.random() < 0.25
    source, tests, forms = _source(random, joined)
    tests += random.sample(CONDITIONS, random.choice((0, 0, 1, 1, 2)))
    if joined:  # names that both tables have
        tests = [test.replace("region", "v.region") for test in tests if "v.region" not in test] + [
            test for test in tests if "v.region" in test
        ]
    keys = random.sample([*KEYS, *(["zone"] * 3 if joined else [])], random.choice((0, 1, 1, 2)))
    keys = list(dict.fromkeys(keys))
    if joined:
        keys = [key for key in keys if key != "region"]
    number = 0 if keys and random.random() < 0.12 else random.choice((1, 1, 2, 3))
    if not number:  # which of few rows are found nobody can tell, without a count
        tests, keys = [test for test in tests if "v.region = z" in test], keys[:1]
    items, by = list[str](), list[str]()
    for place, key in enumerate(keys):
        way = random.choice(("plain", "plain", "alias", "hidden", "made", "both"))
        made = KEYS.get(key, ())
        if way in ("made", "both") and not made:
            way = "alias"
        if way == "alias":
            items.append(f"{key} AS k{place}")
            by.append(random.choice((f"k{place}", key)))
            continue
        by.append(key)
        if way in ("plain", "both"):
            items.append(f"{key} AS k{place}")
        if way in ("made", "both"):
            items.append(f"{random.choice(made)} AS m{place}")
        forms.add(way)
    shown = [item.rpartition(" AS ")[2] for item in items]
    all_keys = all(f"k{place}" in shown for place in range(len(keys)))
    number = number or (0 if items else 1)
    counts = [f"{aggregate(random)} AS a{place}" for place in range(number)]
    if number:
        counts.append("COUNT(*) AS n")
    else:
        forms.add("keys alone")
    items += counts
    if random.random() < 0.1 and number:
        items.append("7 AS seven")
        forms.add("constant")
    random.shuffle(items)
    where = f" WHERE {' AND '.join(f'({test})' for test in tests)}" if tests else ""
    group = f" GROUP BY {', '.join(by)}" if by else ""
    having = ""
    if keys and random.random() < 0.3:
        having = random.choice((" HAVING COUNT(*) > 20.5", " HAVING SUM(age) > 100.5"))
        forms.add("having")
    order, limit, top = "", "", ""
    if keys and all_keys and number and random.random() < 0.4:
        ways = [f"k{place}{random.choice(('', ' DESC'))}" for place in range(len(keys))]
        first = random.choice(("", "", "n DESC, ", "n / 2, ", "abs(n - 30.5), "))
        order = f" ORDER BY {first}{', '.join(ways)}"
        # known keys without rows are no rows in SQL; keys of few units are not found
        having = having or " HAVING COUNT(*) > 3.5"
        limit, top = random.choice((("", ""), (" LIMIT 3", ""), (" LIMIT 3", "TOP 3 ")))
        forms |= {"top"} if top else {"order"}
    body = f"{', '.join(items)} FROM {source}{where}{group}{having}{order}"
    if top:
        return Drawn(f"SELECT {top}{body}", f"SELECT {body}{limit}", frozenset(forms))
    text = f"SELECT {body}{limit}"
    if number and keys and shown and not limit and random.random() < 0.3:
        text = _outer(random, text, [*shown, *(item.rpartition(" AS ")[2] for item in counts)])
        forms.add("outer")
    return Drawn(text, text, frozenset(forms))


def _source(random: Random, joined: bool) -> tuple[str, list[str], set[str]]:
    """FROM, what WHERE must say for it, and the form it has."""
    if joined:
        zones = "zones z", "(SELECT region, zone, size FROM zones WHERE size < 3) z", "(zones) AS z"
        zone = random.choice(zones)
        on = "v.region = z.region"
        options: list[tuple[str, list[str]]] = [
            (f"visits v JOIN {zone} ON {on}", []),
            (f"{zone} JOIN visits v ON {on}", []),
            (f"visits v, {zone}", [on]),
            (f"{zone}, (SELECT * FROM visits WHERE age < 18) AS v", [on]),
        ]
        source, tests = random.choice(options)
        return source, list(tests), {"join"}
    plain = (
        "visits", "visits", "s.visits", "visits AS v", "(visits)", "(s.visits) AS q",
        "(SELECT * FROM visits WHERE educ < 5)", "(SELECT *, age + 1 AS older FROM visits) AS q",
    )  # fmt: skip
    source = random.choice(plain)
    return source, [], {"source"} if source != "visits" else set()


def _outer(random: Random, inner: str, columns: list[str]) -> str:
    """A SELECT over the groups."""
    number = random.randint(1, len(columns))
    wanted = [*dict.fromkeys([*random.sample(columns, number), "n"])]
    where = random.choice(("", " WHERE n > 20.5", " WHERE n BETWEEN 10.5 AND 90.5"))
    ways = ", ".join(random.choice((name, f"{name} AS o_{name}")) for name in wanted)
    if random.random() < 0.3:
        ways += ", n / 2 AS half"
    if random.random() < 0.5:
        return f"WITH g AS ({inner}) SELECT {ways} FROM g{where}"
    return f"SELECT {ways} FROM ({inner}) AS g{where}"
