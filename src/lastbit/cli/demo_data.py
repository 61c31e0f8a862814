"""The made-up hospital of `lastbit demo`: its visits, its data card, and what is true of it.

The same rows on every machine. They come from a fixed scramble of the numbers 0, 1, 2 ... and from
operations that IEEE 754 fixes to the last bit: nobody's data, and no noise.

Most patients come about five times, a few every week. Two wards are so small that naming them would
say something about the people in them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import duckdb

Truth: TypeAlias = Mapping[tuple[Any, ...], tuple[Any, ...]]

MARK = "# Made by lastbit demo, of a hospital that does not exist."
REGIONS = ("North", "East", "South", "West", "Centre", "Coast", "Hills", "Islands")
ROWS_A_PATIENT = 50 / 9  # on average

CARD = f"""\
{MARK}
# A data card says what is publicly known of a table, and what its answers may cost in all.

[table]
name = "visits"
source = "visits.parquet"
neighbours = "add-remove"      # hides whether a patient is in the table at all

[unit]
column = "patient"             # whose row it is
max_rows = 30                  # contribution bound: of more visits, each counts for less
max_groups = 8                 # groups a patient may contribute to where keys are undeclared

[budget]
epsilon = 3
delta = 1e-8

[ledger]
path = "visits.ledger"

[columns.patient]
type = "integer"

[columns.region]
type = "text"
keys = [{", ".join(f'"{region}"' for region in REGIONS)}]

[columns.ward]                 # keys are not declared: they are found privately
type = "text"

[columns.age]
type = "integer"
bounds = [0, 110]
nullable = false

[columns.cost]
type = "number"
bounds = [0, 2000]
nullable = false

[columns.wait]
type = "integer"
bounds = [0, 240]
nullable = false
"""

# Each scramble is a bijection of 32 bits; k tells the columns of one row apart.
_MACROS = (
    "CREATE MACRO folded(h, s) AS xor(h, h >> s)",
    "CREATE MACRO part(n, k) AS folded(folded(folded((n * 2654435769 + k * 2246822519)"
    " & 4294967295, 16) * 2146121005 & 4294967295, 15) * 2221713035 & 4294967295, 16)"
    "::DOUBLE / 4294967296",
)

_VISITS = """
CREATE TABLE visits AS
WITH parts AS (
  SELECT part(i, 1) AS a, part(i, 2) AS b, part(i, 3) AS c, part(i, 4) AS d, part(i, 5) AS e
  FROM (SELECT range::UBIGINT AS i FROM range({rows}))
), seen AS (
  SELECT floor({patients} * a * sqrt(sqrt(a)))::UBIGINT AS patient, b, c, d, e FROM parts
), known AS (
  SELECT patient, part(patient, 11) AS home, part(patient, 12) AS young,
         part(patient, 13) AS x, part(patient, 14) AS y, b, c, d, e
  FROM seen
), placed AS (
  SELECT patient, b, c, d, e,
    CASE WHEN home < 0.19 THEN 'North' WHEN home < 0.35 THEN 'East' WHEN home < 0.56 THEN 'South'
      WHEN home < 0.68 THEN 'West' WHEN home < 0.86 THEN 'Centre' WHEN home < 0.93 THEN 'Coast'
      WHEN home < 0.985 THEN 'Hills' ELSE 'Islands' END AS region,
    CASE WHEN young < 0.16 THEN floor(16 * x)
      WHEN young < 0.55 THEN floor(16 + 50 * x) ELSE floor(45 + 28 * x + 26 * y) END::INTEGER AS age
  FROM known
), warded AS (
  SELECT *,
    CASE WHEN b < 0.000008 THEN 'Trial unit 7' WHEN b < 0.00006 THEN 'Tropical medicine'
      WHEN b < 0.24 THEN 'Emergency' WHEN age < 16 AND b < 0.9 THEN 'Paediatrics'
      WHEN b < 0.38 THEN 'Surgery' WHEN b < 0.51 THEN 'Orthopaedics'
      WHEN b < 0.63 THEN CASE WHEN age < 45 THEN 'Maternity' ELSE 'Cardiology' END
      WHEN b < 0.75 THEN 'Internal medicine' WHEN b < 0.83 THEN 'Oncology'
      WHEN b < 0.9 THEN 'Neurology' ELSE 'Psychiatry' END AS ward
  FROM placed
), priced AS (
  SELECT *,
    CASE ward WHEN 'Emergency' THEN 190 WHEN 'Paediatrics' THEN 150 WHEN 'Surgery' THEN 520
      WHEN 'Orthopaedics' THEN 310 WHEN 'Oncology' THEN 600 WHEN 'Cardiology' THEN 420
      ELSE 240 END AS base,
    CASE ward WHEN 'Emergency' THEN 95 WHEN 'Paediatrics' THEN 40 WHEN 'Surgery' THEN 30
      WHEN 'Orthopaedics' THEN 70 WHEN 'Psychiatry' THEN 55 ELSE 48 END AS slow,
    CASE region WHEN 'Islands' THEN 1.25 WHEN 'Hills' THEN 1.125 WHEN 'Centre' THEN 0.875
      ELSE 1 END::DOUBLE AS far
  FROM warded
)
SELECT patient::INTEGER AS patient, region, ward, age,
  floor(100 * base * far * 0.45 / (1.15 - c)) / 100 AS cost,
  floor(slow * far * (c + d + e) / 1.5)::INTEGER AS wait
FROM priced
"""


def write_visits(file: Path, rows: int) -> None:
    """Write this many visits as a Parquet file."""
    patients = max(round(rows / ROWS_A_PATIENT), 1)
    with duckdb.connect(":memory:") as connection:
        for macro in _MACROS:
            connection.execute(macro)
        connection.execute(_VISITS.format(rows=rows, patients=patients))
        connection.execute(f"COPY visits TO '{_quoted(file)}' (FORMAT parquet)")


def write_card(file: Path) -> None:
    """Write the data card beside the visits."""
    file.write_text(CARD, "utf-8")


def truth(file: Path, sql: str, *, keys: int) -> Truth:
    """What a statement gives without privacy, by its first columns; for made-up rows."""
    with duckdb.connect(":memory:") as connection:
        view = f"CREATE VIEW visits AS SELECT * FROM read_parquet('{_quoted(file)}')"
        connection.execute(view)
        rows = connection.execute(sql).fetchall()
    return {tuple(row[:keys]): tuple(row[keys:]) for row in rows}


def _quoted(file: Path) -> str:
    return str(file).replace("'", "''")
