"""Tables of Delta, Iceberg and Hudi: what counts is what a log says, or nothing is read."""

import datetime
import json
import sys

import duckdb
import pyarrow
import pytest

from lastbit.errors import EngineFailed, InvalidParameter
from lastbit.tables.backends.columns import columns_of
from lastbit.tables.backends.duckdb import engine
from lastbit.tables.backends.duckdb.files import opened
from lastbit.tables.backends.engines import LookedThrough
from lastbit.tables.backends.printed import fingerprint
from lastbit.tables.card.source import source_of
from tests.tables.backends.test_folders import card_of, counts, files_of


@pytest.fixture
def delta(tmp_path):
    """A table of 12 rows by year and city, one of which is deleted."""
    deltalake = pytest.importorskip("deltalake", reason="pip install 'lastbit[delta]'")
    columns = {
        "id": range(12),
        "year": [2020 + i % 3 for i in range(12)],
        "city": ["New York" if i % 4 else None for i in range(12)],
    }
    rows = pyarrow.table({name: list(values) for name, values in columns.items()})
    deltalake.write_deltalake(tmp_path / "t", rows, partition_by=["year", "city"])
    deltalake.DeltaTable(tmp_path / "t").delete("id = 3")
    return tmp_path / "t"


def test_rows_of_the_newest_version_count(delta):
    source = source_of(str(delta))
    assert columns_of(source) == {"id": "integer", "year": "text", "city": "text"}
    card = card_of(source, year="integer", city="text")
    assert counts(card, "year", 2020, 2021, 2022) == [3, 4, 4]
    assert counts(card, "city", "New York", None) == [8, 3]
    assert counts(card, "id", 3, 4) == [0, 1]
    import deltalake

    deltalake.DeltaTable(delta).create_checkpoint()
    for written in (delta / "_delta_log").glob("*.json"):
        written.unlink()
    assert counts(card, "year", 2020, 2021, 2022) == [3, 4, 4]
    every = duckdb.sql(f"SELECT count(*) FROM '{delta}/year=*/**/*.parquet'").fetchall()
    assert every == [(14,)]  # what a pattern would have counted


def test_a_new_version_is_other_data_and_noticed(delta, monkeypatch):
    import deltalake

    card = card_of(source_of(str(delta)), year="integer", city="text")
    before = fingerprint(card)
    assert fingerprint(card) == before
    ran = engine._ran

    def changing(connection, sql):
        deltalake.DeltaTable(delta).delete("id = 4")
        return ran(connection, sql)

    with monkeypatch.context() as patch:
        patch.setattr(engine, "_ran", changing)
        patch.setattr(engine, "_LOOKED_THROUGH", LookedThrough())
        with pytest.raises(EngineFailed, match="changed while it was read"):
            counts(card, "year", 2020)
    assert fingerprint(card) != before
    assert counts(card, "year", 2020, 2021, 2022) == [3, 3, 4]


def test_values_of_columns_in_the_log_are_part_of_the_data(delta, monkeypatch):
    """Though no file of it changed: a mutant that leaves them out would serve an old answer."""
    card = card_of(source_of(str(delta)), year="integer", city="text")
    before = fingerprint(card)
    log = delta / "_delta_log" / "00000000000000000000.json"
    log.write_text(log.read_text().replace('"year":"2021"', '"year":"1921"'))
    assert fingerprint(card) != before
    assert counts(card, "year", 1921, 2021) == [4, 0]


def test_dates_and_truth_values_in_folders(tmp_path):
    deltalake = pytest.importorskip("deltalake", reason="pip install 'lastbit[delta]'")
    day = datetime.date(2024, 1, 31)
    rows = pyarrow.table({"id": [1, 2], "day": [day, None], "ok": [True, False]})
    deltalake.write_deltalake(tmp_path, rows, partition_by=["day", "ok"])
    card = card_of(source_of(str(tmp_path)), day="date", ok="boolean")
    assert counts(card, "day", day, None) == [1, 1]
    assert counts(card, "ok", True, False) == [1, 1]


@pytest.mark.parametrize("pattern", ["", "/year=2020", "/**/*.parquet", "/year=2020/**/*.parquet"])
def test_its_files_are_not_read_past_the_log(delta, pattern, monkeypatch):
    if not pattern:
        monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(InvalidParameter) as caught:
        files_of(source_of(f"{delta}{pattern}"))
    told = str(caught.value)
    assert "Delta" in told and ("lastbit[delta]" if not pattern else "folder of the table") in told


def test_one_file_and_a_link_to_one_are_not_read_either(delta, tmp_path):
    file = files_of(source_of(str(delta)))[0]
    (tmp_path / "link.parquet").symlink_to(file)
    for path in (file, str(tmp_path / "link.parquet")):
        with pytest.raises(InvalidParameter, match="Delta"):
            files_of(source_of(path))


def protocol(feature):
    both = {key: [feature] for key in ("readerFeatures", "writerFeatures")}
    return {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **both}}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (protocol("deletionVectors"), "deletionVectors"),
        (protocol("typeWidening"), "typeWidening|cannot be read"),
        (protocol("futureFeature"), "futureFeature|cannot be read"),
        ({"metaData": "column mapping"}, "columnMapping"),
        ({"add": "elsewhere"}, "elsewhere or gone|cannot be read"),
        ({"add": "gone"}, "elsewhere or gone"),
    ],
)
def test_what_a_list_of_files_does_not_say_is_refused(delta, line, words):
    log = delta / "_delta_log"
    said = [json.loads(one) for one in (log / f"{0:020}.json").read_text().splitlines()]
    if "metaData" in line:
        metadata = next(one["metaData"] for one in said if "metaData" in one)
        metadata["configuration"] = {"delta.columnMapping.mode": "name"}
        line = {"metaData": metadata}
    if "add" in line:
        add = next(one["add"] for one in said if "add" in one)
        place = "file:///nowhere/x.parquet" if line["add"] == "elsewhere" else "year=1/x.parquet"
        line = {"add": add | {"path": place}}
    (log / f"{2:020}.json").write_text(json.dumps(line) + "\n")
    with pytest.raises(InvalidParameter, match=words) as caught:
        files_of(source_of(str(delta)))
    assert caught.value.__cause__ is None


def test_a_damaged_log_is_refused_without_a_value(delta, capfd):
    (delta / "_delta_log" / f"{2:020}.json").write_text('{"add": canary-73211')
    with pytest.raises(InvalidParameter, match="cannot be read") as caught:
        files_of(source_of(str(delta)))
    assert "73211" not in str(caught.value) and caught.value.__context__ is None
    assert "73211" not in "".join(capfd.readouterr())  # the library has a log of its own


def test_a_new_version_is_seen_while_files_are_open(delta):
    import deltalake

    with opened(source_of(str(delta))) as there:
        assert there.now == there.seen
        deltalake.DeltaTable(delta).delete("id = 5")
        assert there.now != there.seen


@pytest.mark.parametrize("mark", ["metadata/v1.metadata.json", ".hoodie/hoodie.properties"])
def test_tables_of_iceberg_and_hudi_are_refused(tmp_path, mark):
    (tmp_path / mark).parent.mkdir()
    (tmp_path / mark).write_text("{}")
    (tmp_path / "data").mkdir()
    duckdb.sql(f"COPY (SELECT 1 AS id) TO '{tmp_path}/data/a.parquet'")
    for path in (tmp_path, f"{tmp_path}/data/*.parquet", tmp_path / "data" / "a.parquet"):
        with pytest.raises(InvalidParameter, match=r"old or deleted.*as Parquet"):
            files_of(source_of(str(path)))
