"""A card beside its source: names and types only, whatever the values are."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from lastbit.errors import EngineFailed, InvalidParameter
from lastbit.tables.backends.columns import columns_of
from lastbit.tables.card.draft import Compared, compared
from lastbit.tables.card.read import examined
from lastbit.tables.card.schema import Source
from lastbit.tables.card.source import source_of

CANARY = "canary-73211"
CARD = """\
[table]
name = "v"
source = {source}
neighbours = "add-remove"
[unit]
each_row = true
[budget]
epsilon = 1
{columns}
"""
SELECT = f"""
SELECT 7::INTEGER AS id, 1.5::DOUBLE AS cost, '{CANARY}' AS region, true AS urgent,
  DATE '1999-12-31' AS day, TIMESTAMP '1999-12-31 23:59:58' AS moment, 9.25::DECIMAL(9,2) AS price
"""


def made(folder: Path, columns: dict[str, str], source: str = '"v.parquet"') -> Path:
    text = "".join(f'[columns.{name}]\ntype = "{kind}"\n' for name, kind in columns.items())
    file = folder / "v.toml"
    file.write_text(CARD.format(source=source, columns=text), "utf-8")
    return file


def beside(folder: Path, columns: dict[str, str], source: str = '"v.parquet"') -> Compared:
    card = examined(made(folder, columns, source)).card
    assert card is not None
    return compared(card)


@pytest.fixture(autouse=True)
def files(tmp_path: Path) -> None:
    for name in ("v.parquet", "v.csv"):
        duckdb.execute(f"COPY ({SELECT}) TO '{tmp_path / name}'")
    with duckdb.connect(str(tmp_path / "v.duckdb")) as connection:
        connection.execute(f"CREATE TABLE visits AS {SELECT}")


TYPES = {
    "id": "integer",
    "cost": "number",
    "region": "text",
    "urgent": "boolean",
    "day": "date",
    "moment": "timestamp",
    "price": "number",
}


def test_types_come_from_the_schema_and_from_csv_none(tmp_path):
    database = Source(kind="duckdb", paths=(str(tmp_path / "v.duckdb"),), table="visits")
    assert columns_of(source_of(str(tmp_path / "v.parquet"))) == TYPES
    assert columns_of(database) == TYPES
    assert columns_of(source_of(str(tmp_path / "v.csv"))) == dict.fromkeys(TYPES, "text")


@pytest.mark.parametrize("source", ['"v.parquet"', '{duckdb = "v.duckdb", table = "visits"}'])
def test_a_card_that_fits(tmp_path, source):
    assert beside(tmp_path, TYPES, source) == Compared()
    assert beside(tmp_path, {"ID": "integer"}, source).unlisted == list(TYPES)[1:]


def test_a_csv_card_is_held_against_names_only(tmp_path):
    found = beside(tmp_path, {"region": "date", "nobody": "text"}, '"v.csv"')
    assert [place for place, _, _ in found.wrong] == [("columns", "nobody")]
    assert found.notes == []


def test_columns_that_are_not_there_and_their_lines(tmp_path):
    file = made(tmp_path, {"id": "integer", "wait": "number"})
    found = examined(file)
    assert found.card is not None
    (problem,) = compared(found.card).problems(found.lines)
    assert (problem.line, problem.where) == (11, "columns.wait")


@pytest.mark.parametrize(
    ("column", "kind", "verdict"),
    [
        ("id", "number", "fits"),
        ("id", "text", "fits"),
        ("day", "timestamp", "fits"),
        ("moment", "date", "fits"),
        ("urgent", "integer", "fits"),
        ("cost", "integer", "noted"),
        ("region", "date", "noted"),
        ("region", "integer", "noted"),
        ("day", "integer", "wrong"),
        ("moment", "boolean", "wrong"),
        ("cost", "date", "wrong"),
        ("urgent", "timestamp", "wrong"),
    ],
)
def test_other_types_than_the_schema_has(tmp_path, column, kind, verdict):
    found = beside(tmp_path, {column: kind})
    assert (bool(found.wrong), bool(found.notes)) == (verdict == "wrong", verdict == "noted")


@pytest.mark.thinned(one_in=4)
@pytest.mark.parametrize("column", list(TYPES))
def test_wrong_is_what_the_engine_reads_as_missing_always(tmp_path, column):
    """The verdict against the engine's own casts, for values that read as everything they can."""
    from lastbit.tables.compile.duckdb import DUCKDB

    source = f"'{tmp_path / 'v.parquet'}'"
    for kind in ("integer", "number", "text", "boolean", "date", "timestamp"):
        wrong = bool(beside(tmp_path, {column: kind}).wrong)
        ((value,),) = duckdb.execute(
            f"SELECT {DUCKDB.read(column, kind, 'text')} FROM {source}"
        ).fetchall()
        assert wrong == (value is None) or column == "region"  # a text reads as what it holds


def test_public_tables_are_held_against_theirs(tmp_path):
    (tmp_path / "regions.csv").write_text("region,Name\nnorth,North\n")
    file = made(tmp_path, {"id": "integer"})
    with file.open("a") as card:
        card.write(
            '[public.r]\nsource = "regions.csv"\ncolumns = {region = "text", size = "text"}\n'
        )
    found = examined(file)
    assert found.card is not None
    (problem,) = compared(found.card).problems(found.lines)
    assert (problem.where, problem.line) == ("public.r.columns.size", 14)


def test_sources_that_cannot_be_read_tell_nothing_of_themselves(tmp_path):
    (tmp_path / "torn.parquet").write_bytes(CANARY.encode() * 9)
    for source, kind in (
        ('"absent.parquet"', InvalidParameter),
        ('"torn.parquet"', EngineFailed),
        ('{duckdb = "v.duckdb", table = "absent"}', InvalidParameter),
    ):
        with pytest.raises(kind) as caught:
            beside(tmp_path, {"id": "integer"}, source)
        assert CANARY not in repr(caught.getrepr(chain=True))
