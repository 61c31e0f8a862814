"""Thirty-three questions that an analyst asks of two ordinary tables, each answered and checked.

At a high price noise is next to nothing, and no unit has more rows than count: what is released is
what DuckDB says of the same rows, nearly; and the independent checker accepts it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pytest

import lastbit as lb
from lastbit.checker import problem_of

PRICE: dict[str, Any] = {"epsilon": 100_000}
FOUND: dict[str, Any] = {**PRICE, "delta": "1e-7"}

Kinds = dict[str, tuple[str, tuple[int, int] | list[Any] | None]]

FLIGHTS: Kinds = {
    "month": ("integer", (1, 12)),
    "dep_time": ("number", (0, 2400)),
    "dep_delay": ("number", (-60, 300)),
    "arr_delay": ("number", (-90, 300)),
    "carrier": ("text", None),
    "tailnum": ("text", None),
    "origin": ("text", ["EWR", "JFK", "LGA"]),
    "dest": ("text", None),
    "air_time": ("number", (0, 720)),
    "distance": ("integer", (0, 5000)),
    "hour": ("integer", (0, 23)),
    "time_hour": ("timestamp", None),
}
PLANES: Kinds = {"tailnum": ("text", None), "manufacturer": ("text", None)}
SURVEY: Kinds = {
    "rate_marriage": ("integer", (1, 5)),
    "age": ("integer", (15, 60)),
    "children": ("number", (0, 10)),
    "religious": ("integer", [1, 2, 3, 4]),
    "educ": ("integer", [9, 12, 16]),
    "occupation": ("integer", [1, 2, 3]),
    "affairs": ("number", (0, 60)),
}
MADE = {
    "flights": """SELECT 1 + i % 12 AS month,
        CASE WHEN i % 17 > 0 THEN 600.0 + i % 900 END AS dep_time,
        CASE WHEN i % 17 > 0 THEN (i * 37) % 200 - 20.0 END AS dep_delay,
        CASE WHEN i % 17 > 0 THEN (i * 37) % 200 - 30.0 + i % 11 END AS arr_delay,
        ['AA', 'B6', 'DL', 'UA'][1 + i % 100 // 25] AS carrier, 'N' || i % 100 AS tailnum,
        ['EWR', 'JFK', 'LGA', 'LGA'][1 + i % 4] AS origin,
        ['BOS', 'LAX', 'ORD', 'SFO'][1 + i * i % 7 % 4] AS dest,
        CASE WHEN i % 17 > 0 THEN 30.0 + (i * 53) % 400 END AS air_time,
        100 + (i * 53) % 2400 AS distance,
        5 + i % 4 AS hour, TIMESTAMP '2013-01-01' + INTERVAL 1 HOUR * (i * 7) AS time_hour
        FROM range(1200) AS t(i)""",
    "airlines": """SELECT * FROM (VALUES ('AA', 'American'), ('B6', 'JetBlue'), ('DL', 'Delta'),
        ('UA', 'United')) AS t(carrier, name)""",
    "planes": """SELECT 'N' || i AS tailnum, ['AIRBUS', 'BOEING'][1 + i % 2] AS manufacturer
        FROM range(100) AS t(i)""",
    "survey": """SELECT 1 + i % 5 AS rate_marriage, 20 + i % 9 AS age, i % 4 * 1.0 AS children,
        1 + i % 7 % 4 AS religious, [9, 12, 16][1 + i % 3] AS educ, 1 + i % 5 % 3 AS occupation,
        CASE WHEN i % 3 = 0 THEN i % 10 ELSE 0 END * 1.0 AS affairs FROM range(900) AS t(i)""",
}
LATE = "CASE WHEN arr_delay > 15 THEN 1 ELSE 0 END"
KIND = (
    "CASE WHEN distance < 500 THEN 'short' "
    "WHEN distance < 1500 THEN 'medium' ELSE 'long' END AS kind"
)


class Question(NamedTuple):
    """`truth` is for DuckDB where the question is not written in its words."""

    sql: str
    price: dict[str, Any] = PRICE
    keys: int = 0
    truth: str | None = None
    off: float = 0.6


QUESTIONS = {
    1: Question("SELECT COUNT(*) FROM flights"),
    2: Question("SELECT COUNT(DISTINCT tailnum) FROM flights"),
    3: Question(
        "SELECT carrier, COUNT(*) AS n FROM flights GROUP BY carrier ORDER BY n DESC", FOUND, 1
    ),
    4: Question(
        "SELECT dest, COUNT(*) AS n, AVG(arr_delay) AS late FROM flights GROUP BY dest "
        "ORDER BY n DESC LIMIT 10",
        FOUND,
        1,
    ),
    5: Question(
        "SELECT origin, AVG(distance), STDDEV(distance) FROM flights GROUP BY origin",
        keys=1,
        truth="SELECT origin, AVG(distance), STDDEV_POP(distance) FROM flights GROUP BY origin",
    ),
    6: Question("SELECT month, COUNT(*) FROM flights GROUP BY month ORDER BY month", keys=1),
    7: Question(
        "SELECT EXTRACT(dow FROM time_hour) AS weekday, AVG(dep_delay) FROM flights "
        "GROUP BY weekday",
        keys=1,
    ),
    8: Question(
        "SELECT date_trunc('month', time_hour) AS m, SUM(distance) FROM flights GROUP BY m",
        FOUND,
        1,
    ),
    9: Question(
        "SELECT strftime(time_hour, '%Y-%m') AS m, COUNT(*) FROM flights GROUP BY m", FOUND, 1
    ),
    10: Question(
        f"SELECT origin, 100.0*SUM({LATE})/COUNT(*) AS late_percent FROM flights GROUP BY origin",
        keys=1,
    ),
    11: Question(
        "SELECT origin, COUNT(*) FILTER (WHERE dep_time IS NULL) AS cancelled FROM flights "
        "GROUP BY origin",
        keys=1,
    ),
    12: Question("SELECT SUM(distance)/SUM(air_time) AS speed FROM flights WHERE air_time > 0"),
    13: Question("SELECT MEDIAN(dep_delay), QUANTILE_CONT(dep_delay, 0.9) FROM flights"),
    14: Question(
        "SELECT carrier, QUANTILE_CONT(arr_delay, [0.1, 0.25, 0.5, 0.75, 0.9]) FROM flights "
        "GROUP BY carrier",
        FOUND,
        1,
        "SELECT carrier, "
        + ", ".join(f"QUANTILE_DISC(arr_delay, {q})" for q in (0.1, 0.25, 0.5, 0.75, 0.9))
        + " FROM flights GROUP BY carrier",
        off=3,  # between two values, either is one
    ),
    15: Question("SELECT MIN(distance), MAX(distance) FROM flights"),
    16: Question("SELECT COUNT(DISTINCT dest) FROM flights"),
    17: Question(
        "SELECT carrier, COUNT(DISTINCT dest) AS places FROM flights GROUP BY carrier", FOUND, 1
    ),
    18: Question("SELECT CORR(dep_delay, arr_delay) FROM flights"),
    19: Question(
        "SELECT REGR_SLOPE(arr_delay, dep_delay), REGR_INTERCEPT(arr_delay, dep_delay) FROM flights"
    ),
    20: Question(
        "SELECT MODE(origin) FROM flights",
        keys=1,
        truth="SELECT origin, COUNT(*) AS n FROM flights GROUP BY origin ORDER BY n DESC LIMIT 1",
    ),
    21: Question(
        "SELECT a.name, COUNT(*) FROM flights f JOIN airlines a USING (carrier) GROUP BY a.name",
        keys=1,
    ),
    22: Question(
        f"SELECT {KIND}, COUNT(*), AVG(arr_delay) FROM flights GROUP BY kind",
        keys=1,
    ),
    23: Question(
        "SELECT p.manufacturer, COUNT(*) FROM flights f JOIN planes p USING (tailnum) "
        "GROUP BY p.manufacturer",
        FOUND,
        1,
    ),
    24: Question(
        "SELECT AVG(n) FROM (SELECT tailnum, COUNT(*) AS n FROM flights GROUP BY tailnum)"
    ),
    25: Question(
        "SELECT carrier, AVG(miles) FROM (SELECT tailnum, carrier, SUM(distance) AS miles "
        "FROM flights GROUP BY tailnum, carrier) GROUP BY carrier",
        FOUND,
        1,
    ),
    26: Question(
        "SELECT COUNT(*) FROM (SELECT tailnum FROM flights GROUP BY tailnum HAVING COUNT(*) >= 10)"
    ),
    27: Question(
        "SELECT origin, hour, AVG(dep_delay) FROM flights WHERE month BETWEEN 6 AND 8 "
        "GROUP BY origin, hour HAVING COUNT(*) > 10",
        keys=2,
    ),
    28: Question(
        "SELECT FLOOR(distance/250)*250 AS bin, COUNT(*) FROM flights GROUP BY bin", keys=1
    ),
    29: Question(
        "SELECT origin, AVG(arr_delay) - AVG(dep_delay) AS made_up FROM flights GROUP BY origin",
        keys=1,
    ),
    30: Question(
        "SELECT carrier, COUNT(*) * 100.0 / SUM(COUNT(*)) OVER () AS share FROM flights "
        "GROUP BY carrier",
        FOUND,
        1,
    ),
    31: Question(
        "SELECT religious, COUNT(*), AVG(affairs > 0) FROM survey GROUP BY religious",
        keys=1,
        truth="SELECT religious, COUNT(*), AVG((affairs > 0)::INT) FROM survey GROUP BY religious",
    ),
    32: Question(
        "SELECT age, AVG(rate_marriage) FROM survey WHERE children > 0 GROUP BY age ORDER BY age",
        keys=1,
    ),
}


def columns(prefix: str, kinds: Kinds) -> Iterator[str]:
    for name, (kind, known) in kinds.items():
        yield f'[{prefix}.{name}]\ntype = "{kind}"'
        if known is not None:
            yield f"{'bounds' if isinstance(known, tuple) else 'keys'} = {json.dumps(list(known))}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables as Parquet, and their cards."""
    found = tmp_path_factory.mktemp("questions")
    for name, sql in MADE.items():
        duckdb.sql(f"COPY ({sql}) TO '{found / name}.parquet'")
    cards = {"flights": 'column = "tailnum"\nmax_rows = 12', "survey": "each_row = true"}
    for name, unit in cards.items():
        lines = [f'[table]\nname = "{name}"\nsource = "{name}.parquet"']
        lines += ['neighbours = "add-remove"', f"[unit]\n{unit}"]
        lines += ["[budget]\nepsilon = 10000000\ndelta = 1e-4"]
        lines += columns("columns", {"flights": FLIGHTS, "survey": SURVEY}[name])
        if name == "flights":
            lines.append('[public.airlines]\nsource = "airlines.parquet"')
            lines.append('columns = {carrier = "text", name = "text"}')
            lines.append('[private.planes]\nsource = "planes.parquet"')
            lines.append('unit = "tailnum"\nmax_rows = 1')
            lines += columns("private.planes.columns", PLANES)
        (found / f"{name}.toml").write_text("\n".join(lines) + "\n", "utf-8")
    return found


def told(values: Any) -> str:
    return str(values).removesuffix(" 00:00:00").removesuffix(".0")


@pytest.mark.parametrize("number", QUESTIONS)
def test_a_question_is_answered_as_duckdb_answers_it(number: int, folder: Path) -> None:
    asked = QUESTIONS[number]
    name = "survey" if "FROM survey" in asked.sql else "flights"
    job = lb.table(folder / f"{name}.toml").sql(asked.sql)
    plan = job.explain(**asked.price)
    assert plan.endswith("Nothing has been read or charged.") and name in plan
    answer = job.release(**asked.price)
    assert problem_of(json.loads(answer.to_json())) is None
    with duckdb.connect() as truth:
        for table in MADE:
            truth.sql(f"CREATE VIEW {table} AS FROM '{folder / table}.parquet'")
        rows = truth.sql(asked.truth or asked.sql).fetchall()
    exact = {tuple(map(told, row[: asked.keys])): row[asked.keys :] for row in rows}
    for row in answer:
        cells = [row[column] for column in row.names]
        key = tuple(map(told, cells[: asked.keys]))
        wanted = exact.pop(key, None)
        for place, cell in enumerate(cells[asked.keys :]):  # a public key that no row has is empty
            near = pytest.approx(float(wanted[place]) if wanted else 0, rel=0.02, abs=asked.off)
            assert cell == near or (wanted is None and cell is None), (key, plan)
    assert not exact


def test_all_small_tables_of_three_columns_at_one_price(folder: Path) -> None:
    """The thirty-third: all one- and two-way tables of a survey."""
    job = lb.table(folder / "survey.toml").marginals(["religious", "educ", "occupation"])
    answer = job.release(**PRICE)
    assert problem_of(json.loads(answer.to_json())) is None
    found = {table.columns: {cell.keys: cell.whole for cell in table} for table in answer}
    assert len(found) == 6
    for columns, cells in found.items():
        keys = ", ".join(columns)
        sql = f"SELECT {keys}, COUNT(*) FROM '{folder / 'survey.parquet'}' GROUP BY ALL"
        exact = {row[:-1]: row[-1] for row in duckdb.execute(sql).fetchall()}
        assert {key: number for key, number in cells.items() if number} == exact
