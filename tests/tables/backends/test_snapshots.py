"""Relations, connections and lazy frames: run once, and the same rows ever after."""

import pickle

import duckdb
import polars
import pytest

from lastbit.errors import EngineFailed, InvalidParameter, LastbitError
from lastbit.tables.backends.columns import columns_of
from lastbit.tables.backends.duckdb.snapshot import Snapshot, snapshot
from lastbit.tables.backends.printed import fingerprint
from lastbit.tables.card.column import Column
from lastbit.tables.card.schema import DataCard, Source


def held(source):
    return Source(kind="frame", frame=source)


def print_of(source):
    columns = {name: Column(name=name, type=kind) for name, kind in columns_of(source).items()}
    return fingerprint(DataCard(name="t", source=source, unit=None, max_rows=1, columns=columns))


@pytest.fixture
def connection():
    with duckdb.connect() as found:
        found.execute("CREATE TABLE visits AS SELECT range AS id, 'x' AS region FROM range(5000)")
        found.execute("CREATE VIEW dice AS SELECT *, random() AS r FROM visits")
        yield found


def test_a_relation_that_draws_is_drawn_once(connection):
    """Scanned again and again, a snapshot has one fingerprint; the relation itself has not."""
    relation = connection.table("dice")
    taken = snapshot(held(relation))
    assert isinstance(taken.frame, Snapshot)
    assert len({print_of(taken) for _ in range(4)}) == 1
    assert print_of(snapshot(held(relation))) != print_of(taken)  # the mutant: run again, others


def test_a_snapshot_stays_when_its_source_goes_on(connection):
    taken = [snapshot(held(connection), "visits"), snapshot(held(connection.table("visits")))]
    before = [print_of(one) for one in taken]
    assert before[0] == before[1]  # by content: the same rows are the same data
    connection.execute("UPDATE visits SET region = 'y'")
    assert [print_of(one) for one in taken] == before
    assert print_of(snapshot(held(connection), "visits")) != before[0]
    connection.close()
    assert [print_of(one) for one in taken] == before


def test_names_of_tables(connection):
    connection.execute("CREATE SCHEMA other; CREATE TABLE other.visits AS SELECT 1 AS id")
    assert set(columns_of(snapshot(held(connection), "OTHER.visits"))) == {"id"}
    with pytest.raises(InvalidParameter, match=r"several schemas; write schema\.table"):
        snapshot(held(connection), "visits")
    for name in ("dice", "absent", "range"):  # a view may be another one each time
        with pytest.raises(InvalidParameter, match="is not a stored table"):
            snapshot(held(connection), name)
    with pytest.raises(InvalidParameter, match="is not named"):
        snapshot(held(connection))


def test_lazy_frames_are_collected_once(tmp_path):
    polars.DataFrame({"id": [1, 2]}).write_csv(tmp_path / "a.csv")
    taken = snapshot(held(polars.scan_csv(tmp_path / "a.csv")))
    before = print_of(taken)
    polars.DataFrame({"id": [1, 2, 3]}).write_csv(tmp_path / "a.csv")
    assert print_of(taken) == before


def test_what_fails_says_no_word_of_the_data(connection):
    connection.execute("CREATE TABLE bad AS SELECT 'canary-73211' AS a")
    for source in (
        connection.sql("SELECT CAST(a AS INTEGER) FROM bad"),
        polars.LazyFrame({"a": ["canary-73211"]}).select(polars.col("a").cast(polars.Int64)),
    ):
        with pytest.raises(EngineFailed) as caught:
            snapshot(held(source))
        assert "73211" not in str(caught.value)
        assert caught.value.__cause__ is caught.value.__context__ is None
        below = caught.tb.tb_next  # the first frame is this test's, which holds the source itself
        while below is not None:
            assert "73211" not in repr(below.tb_frame.f_locals)
            below = below.tb_next


def test_rows_in_memory_are_not_pickled(connection):
    with pytest.raises(LastbitError, match="write it as Parquet"):
        pickle.dumps(snapshot(held(connection), "visits"))
