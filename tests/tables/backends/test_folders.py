"""Folders: every data file below, and columns that stand in the names of folders."""

import os

import duckdb
import pytest

from lastbit.errors import InvalidParameter
from lastbit.tables.backends.columns import columns_of
from lastbit.tables.backends.duckdb.files import opened
from lastbit.tables.backends.printed import fingerprint
from lastbit.tables.card.column import Column
from lastbit.tables.card.schema import DataCard
from lastbit.tables.card.source import kind_of_folder, source_of
from lastbit.tables.plan.sensitivity import measures_of
from lastbit.tables.query.expression import ColumnName
from lastbit.tables.query.query import Aggregate, Query
from lastbit.tables.query.scan import GroupKey
from tests.kernel.unsealing import aggregates

COUNT = Aggregate(name="n", function="count")


def written(folder, kind="parquet", rows=12):
    """Rows 0 ... by year (text) and city, one of which has no name."""
    duckdb.sql(
        f"COPY (SELECT range AS id, 2020 + range % 3 AS year, "
        f"CASE WHEN range % 4 > 0 THEN 'New York' END AS city FROM range({rows})) "
        f"TO '{folder}' (FORMAT {kind}, PARTITION_BY (year, city))"
    )
    return str(folder)


def files_of(source):
    with opened(source) as there:
        return list(there.paths)


def card_of(source, **types):
    columns = {n: Column(name=n, type=t) for n, t in {"id": "integer", **types}.items()}
    return DataCard(name="t", source=source, unit=None, max_rows=1, columns=columns)


def counts(card, column, *values):
    key = GroupKey(name="k", expression=ColumnName(column), values=values)
    query = Query(table="t", aggregates=(COUNT,), keys=(key,))
    return aggregates(query, card, measures_of(query)[0], secret="s").entries["m1"]


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_folders_say_columns(tmp_path, kind):
    source = source_of(written(tmp_path / "rows", kind))
    assert source.kind == kind == kind_of_folder(source.paths[0])
    assert columns_of(source) == {
        "id": "text" if kind == "csv" else "integer",
        "year": "text",
        "city": "text",
    }
    card = card_of(source, year="integer", city="text")
    assert counts(card, "year", 2020, 2021, 2022) == [4, 4, 4]
    assert counts(card, "city", "New York", None) == [9, 3]


def test_a_pattern_says_the_same_as_the_folder(tmp_path):
    folder = written(tmp_path / "rows")
    pattern = source_of(f"{folder}/**/*.parquet")
    assert columns_of(pattern) == columns_of(source_of(folder))
    one = source_of(files_of(pattern)[0])  # a file by its own name is that file alone
    assert columns_of(one) == {"id": "integer"}


def test_a_column_of_the_file_goes_before_its_folder(tmp_path):
    (tmp_path / "Year=1999").mkdir()
    duckdb.sql(f"COPY (SELECT 1 AS id, 2024 AS year) TO '{tmp_path}/Year=1999/a.parquet'")
    source = source_of(str(tmp_path))
    assert columns_of(source) == {"id": "integer", "year": "integer"}
    assert counts(card_of(source, year="integer"), "year", 1999, 2024)[1] > 0


def test_files_of_two_schemas_are_cast_each_by_itself(tmp_path):
    for year, value in ((1, "'7'"), (2, "7")):
        (tmp_path / f"year={year}").mkdir()
        duckdb.sql(f"COPY (SELECT {value} AS id) TO '{tmp_path}/year={year}/a.parquet'")
    card = card_of(source_of(str(tmp_path)), year="integer")
    assert counts(card, "year", 1, 2) == [1, 1]
    assert counts(card, "id", 7) == [2]


def test_what_programs_leave_beside_data_is_no_data(tmp_path):
    folder = written(tmp_path / "rows")
    before = files_of(source_of(folder))
    for name in ("_SUCCESS", ".part.parquet", "_other/a.parquet", "notes.txt"):
        place = tmp_path / "rows" / name
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(b"")
    assert files_of(source_of(folder)) == before


def test_a_new_file_is_other_data(tmp_path):
    card = card_of(source_of(written(tmp_path / "rows")), year="integer")
    before = fingerprint(card)
    assert fingerprint(card) == before
    (tmp_path / "rows/year=2020/city=x").mkdir()
    duckdb.sql(f"COPY (SELECT 1 AS id) TO '{tmp_path}/rows/year=2020/city=x/b.parquet'")
    assert fingerprint(card) != before


def test_a_folder_that_is_renamed_while_it_is_read_is_noticed(tmp_path):
    folder = written(tmp_path / "rows")
    with opened(source_of(folder)) as there:
        assert there.now == there.seen
        os.rename(tmp_path / "rows" / "year=2021", tmp_path / "rows" / "year=1921")
        assert there.now != there.seen


@pytest.mark.parametrize(
    ("places", "words"),
    [
        (("year=1/a.parquet", "month=1/a.parquet"), "different columns"),
        (("year=1/a.parquet", "a.parquet"), "different columns"),
        (("a=1/A=2/a.parquet",), "different columns"),
    ],
)
def test_ways_that_do_not_fit_are_refused(tmp_path, places, words):
    for place in places:
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        duckdb.sql(f"COPY (SELECT 1 AS id) TO '{tmp_path / place}'")
    with pytest.raises(InvalidParameter, match=words):
        columns_of(source_of(str(tmp_path)))


def test_folders_of_no_kind_or_of_two_are_refused(tmp_path):
    with pytest.raises(InvalidParameter, match="is a folder without"):
        source_of(str(tmp_path))
    written(tmp_path / "one")
    written(tmp_path / "two", "csv")
    with pytest.raises(InvalidParameter, match="or with both"):
        source_of(str(tmp_path))


def test_many_folders_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("lastbit.tables.backends.duckdb.files._MOST_PARTITIONS", 2)
    with pytest.raises(InvalidParameter, match="more than 2 folders"):
        columns_of(source_of(written(tmp_path / "rows")))


def test_a_unit_that_folders_say_is_refused(tmp_path):
    source = source_of(written(tmp_path / "t"))
    columns = {n: Column(name=n, type="text") for n in ("id", "Year", "city")}
    card = DataCard(name="t", source=source, unit="Year", max_rows=1, columns=columns)
    with pytest.raises(InvalidParameter, match="write the unit into the files"):
        counts(card, "city", "New York")


def test_values_that_folders_say_are_not_in_errors(tmp_path):
    for name, text in (("a", "id\n1\n"), ("SECRET", 'id\n"1\n')):
        (tmp_path / "t" / f"patient={name}").mkdir(parents=True)
        (tmp_path / "t" / f"patient={name}" / "x.csv").write_text(text)
    with pytest.raises(InvalidParameter) as told:
        counts(card_of(source_of(str(tmp_path / "t")), patient="text"), "patient", "a")
    assert "patient=.../x.csv" in str(told.value) and "SECRET" not in str(told.value)
