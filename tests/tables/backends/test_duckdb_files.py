"""Each file once, the same one from the first look to the last, and never public and private."""

import gzip
import os

import duckdb
import polars
import pytest
from pyarrow.dataset import dataset

from lastbit.errors import EngineFailed, InvalidParameter
from lastbit.tables.backends import rehearsal
from lastbit.tables.backends.columns import columns_of
from lastbit.tables.backends.duckdb import engine as backend
from lastbit.tables.backends.duckdb.engine import EngineSession
from lastbit.tables.backends.duckdb.rehearsal import prepared
from lastbit.tables.backends.printed import fingerprint
from lastbit.tables.card.column import Column
from lastbit.tables.card.schema import DataCard, PublicTable, Source
from lastbit.tables.plan.sensitivity import measures_of
from lastbit.tables.query.expression import ColumnName
from lastbit.tables.query.query import Aggregate, Query
from lastbit.tables.query.units import PublicJoin
from tests.evidence import late
from tests.kernel.unsealing import aggregates, opened
from tests.tables.connecting import connected, rehearse

COUNT = Aggregate(name="n", function="count")


def card_of(source, **changes):
    columns = {"id": Column(name="id", type="integer")}
    fields = {"name": "t", "source": source, "unit": None, "max_rows": 1, "columns": columns}
    return DataCard(**(fields | changes))


def ask(card, joins=()):
    query = Query(table="t", aggregates=(COUNT,), joins=joins)
    return aggregates(query, card, measures_of(query)[0], secret="s").entries["m1"][0]


def written(folder, kind):
    path = folder / f"a.{kind}"
    folder.mkdir(exist_ok=True)
    frame = polars.DataFrame({"id": [1, 2, 3]})
    frame.write_csv(path) if kind == "csv" else frame.write_parquet(path)
    return path


def twice(folder, path, kind):
    """Ways to name one file twice."""
    yield str(path), str(path)
    yield str(folder / f"*.{kind}"), str(path)
    yield str(path), str(folder / "sub" / ".." / path.name)
    os.symlink(path, folder / f"soft.{kind}")
    yield str(path), str(folder / f"soft.{kind}")
    os.link(path, folder / f"hard.{kind}")
    yield str(path), str(folder / f"hard.{kind}")
    yield (str(folder / f"*.{kind}"),)
    os.symlink(folder, folder / "sub" / "again")
    yield str(path), str(folder / "sub" / "again" / path.name)
    yield (str(folder / "**" / f"a.{kind}"),)


@pytest.mark.parametrize("kind", ["csv", late("parquet")])
def test_a_file_that_is_named_twice_is_refused(tmp_path, kind):
    """With each row a unit, every unit would have two."""
    path = written(tmp_path, kind)
    (tmp_path / "sub").mkdir()
    assert ask(card_of(Source(kind=kind, paths=(str(path),)))) == 3
    for paths in twice(tmp_path, path, kind):
        source = Source(kind=kind, paths=paths)
        for work in (ask, fingerprint, lambda card: columns_of(card.source)):
            with pytest.raises(InvalidParameter, match="same file under two names"):
                work(card_of(source))


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_copies_are_two_files(tmp_path, kind):
    one, two = written(tmp_path / "1", kind), written(tmp_path / "2", kind)
    assert ask(card_of(Source(kind=kind, paths=(str(one), str(two))))) == 6


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_pattern_is_written_out_once_and_a_new_file_noticed(tmp_path, kind, monkeypatch):
    written(tmp_path, kind)
    real = backend.RawRows

    def added(*args):
        (tmp_path / f"b.{kind}").write_bytes((tmp_path / f"a.{kind}").read_bytes())
        return real(*args)

    monkeypatch.setattr(backend, "RawRows", added)
    source = Source(kind=kind, paths=(str(tmp_path / f"*.{kind}"),))
    with pytest.raises(EngineFailed, match="changed while it was read"):
        ask(card_of(source))


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_link_that_is_turned_and_turned_back_changes_nothing(tmp_path, kind, monkeypatch):
    """What is read is what was opened: the name may lead elsewhere by then."""
    path = written(tmp_path / "1", kind)
    other = tmp_path / f"other.{kind}"
    frame = polars.DataFrame({"id": [1] * 50})
    frame.write_csv(other) if kind == "csv" else frame.write_parquet(other)
    link = tmp_path / f"link.{kind}"
    link.symlink_to(path)
    real = backend.shown

    def turned(*args):
        link.unlink()
        link.symlink_to(other)
        try:
            return real(*args)
        finally:
            link.unlink()
            link.symlink_to(path)

    monkeypatch.setattr(backend, "shown", turned)
    assert ask(card_of(Source(kind=kind, paths=(str(link),)))) == 3


def test_a_parquet_file_that_is_replaced_under_its_name_is_noticed(tmp_path, monkeypatch):
    path = written(tmp_path, "parquet")
    other = tmp_path / "other"
    polars.DataFrame({"id": [1] * 50}).write_parquet(other)
    real = backend._ran

    def replaced(connection, sql):
        os.replace(other, path)
        return real(connection, sql)

    monkeypatch.setattr(backend, "_ran", replaced)
    with pytest.raises(EngineFailed, match="changed while it was read"):
        ask(card_of(Source(kind="parquet", paths=(str(path),))))


def public_of(source):
    return {"p": PublicTable(name="p", source=source, columns={"id": "integer"})}


JOIN = (PublicJoin(table="p", on=((ColumnName("id"), ColumnName("id", "p")),)),)


def test_the_public_table_is_not_the_private_one(tmp_path):
    path = written(tmp_path, "parquet")
    os.link(path, tmp_path / "other.parquet")
    frame = polars.DataFrame({"id": [1]})
    base = str(tmp_path / "x.db")
    with duckdb.connect(base) as connection:
        connection.execute("CREATE TABLE one AS SELECT 1 AS id")
        connection.execute("CREATE TABLE two AS SELECT 1 AS id")
    os.symlink(base, tmp_path / "y.db")
    pairs = [
        (Source(kind="parquet", paths=(str(path),)), str(tmp_path / "other.parquet"), "parquet"),
        (Source(kind="duckdb", paths=(base,), table="one"), str(tmp_path / "y.db"), "duckdb"),
    ]
    cards = [
        card_of(own, public=public_of(Source(kind=kind, paths=(other,), table=own.table)))
        for own, other, kind in pairs
    ]
    for spelled in ("main.one", "MAIN.One", 'main."one"', "y.main.one"):
        other = Source(kind="duckdb", paths=(str(tmp_path / "y.db"),), table=spelled)
        cards.append(card_of(pairs[1][0], public=public_of(other)))
        cards.append(card_of(other, public=public_of(pairs[1][0])))
    shared = Source(kind="frame", frame=frame)
    cards.append(card_of(shared, public=public_of(Source(kind="frame", frame=frame))))
    for card in cards:
        for work in (fingerprint, lambda card: ask(card, JOIN)):
            with pytest.raises(InvalidParameter, match="is the table itself"):
                work(card)
    apart = public_of(Source(kind="duckdb", paths=(str(tmp_path / "y.db"),), table="two"))
    assert ask(card_of(pairs[1][0], public=apart), JOIN) == 1


def test_a_packed_file_is_known_by_its_bytes(tmp_path):
    """A name that links to it may end otherwise."""
    (tmp_path / "store").write_bytes(gzip.compress(b"id\n1\n2\n"))
    (tmp_path / "x.csv.gz").symlink_to(tmp_path / "store")
    (tmp_path / "x.csv").symlink_to(tmp_path / "store")
    for name in ("x.csv.gz", "x.csv"):
        assert ask(card_of(Source(kind="csv", paths=(str(tmp_path / name),)))) == 2


def test_what_was_written_last_is_read_through_a_link_too(tmp_path):
    """DuckDB looks for the log beside the name that it is given."""
    base = tmp_path / "x.db"
    connection = duckdb.connect(str(base))
    connection.execute("CREATE TABLE t AS SELECT 1 AS id")
    connection.execute("CHECKPOINT")
    connection.execute("SET wal_autocheckpoint = '1GB'")
    connection.execute("PRAGMA disable_checkpoint_on_shutdown")
    connection.execute("INSERT INTO t VALUES (2), (3)")
    connection.close()
    assert (tmp_path / "x.db.wal").exists()
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "y.db"
    link.symlink_to(base)
    assert ask(card_of(Source(kind="duckdb", paths=(str(link),), table="t"))) == 3


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_what_is_prepared_outlives_the_files_and_has_no_private_row(tmp_path, kind):
    path, other = written(tmp_path, kind), written(tmp_path / "public", kind)
    public = public_of(Source(kind=kind, paths=(str(other),)))
    card = card_of(Source(kind=kind, paths=(str(path),)), public=public)
    with connected() as connection:
        prepared(connection, Query(table="t", aggregates=(COUNT,), joins=JOIN), card)
        path.unlink()
        other.unlink()
        assert connection.execute("SELECT * FROM lastbit_table").fetchall() == []
        assert [row[0] for row in connection.execute("DESCRIBE lastbit_table").fetchall()] == ["id"]
        assert connection.execute('SELECT count(*) FROM "lastbit_public p"').fetchall() == [(3,)]


def test_calls_share_one_database_and_see_each_file_as_it_is_then(tmp_path, monkeypatch):
    connects = []
    connect = duckdb.connect
    monkeypatch.setattr(
        duckdb,
        "connect",
        lambda *given, **others: connects.append(given) or connect(*given, **others),
    )

    def stored(rows):
        new = tmp_path / "new.db"
        with connect(str(new)) as connection:
            connection.execute(f"CREATE TABLE t AS SELECT range AS id FROM range({rows})")
        os.replace(new, tmp_path / "a.db")

    plain = tmp_path / "a.parquet"
    cards = [
        card_of(Source(kind="duckdb", paths=(str(tmp_path / "a.db"),), table="t")),
        card_of(Source(kind="parquet", paths=(str(plain),))),
        card_of(Source(kind="frame", frame=polars.DataFrame({"id": [1, 2]}))),
    ]
    count = Query(table="t", aggregates=(COUNT,))
    measures = measures_of(count)[0]
    with EngineSession() as session:
        for rows in (3, 5, 4):
            stored(rows)
            polars.DataFrame({"id": range(rows)}).write_parquet(plain)
            fingerprints = [session.fingerprint(card) for card in cards]
            for card, number in zip(cards, (rows, rows, 2), strict=True):
                rehearsal.rehearse(session, count, card, measures)
                raw = session.aggregates(count, card, measures, secret=None)
                assert opened(count, measures, raw).entries == {"m1": [number]}
            assert [session.fingerprint(card) for card in cards] == fingerprints
        assert len(connects) == 1
    ask(cards[0])
    assert len(connects) == 2


def joined(*names):
    """Joins of the table with public ones of these names."""
    return tuple(
        PublicJoin(table=name, on=((ColumnName("id"), ColumnName("id", name)),)) for name in names
    )


@pytest.mark.parametrize("name", ["p whole", "p once", "lastbit_whole p", "lastbit_once p"])
@pytest.mark.parametrize("kind", ["parquet", "frame"])
def test_no_name_of_a_public_table_is_one_of_ours(tmp_path, kind, name):
    """What a table is shown under for a moment must not be another table's name."""

    def source(folder):
        path = written(tmp_path / folder, "parquet")
        if kind == "parquet":
            return Source(kind="parquet", paths=(str(path),))
        return Source(kind="frame", frame=dataset(str(path)))  # which is copied before it is read

    columns = {"id": "integer"}
    public = {
        one: PublicTable(name=one, source=source(str(place)), columns=columns)
        for place, one in enumerate(("p", name))
    }
    card = card_of(source("own"), public=public)
    for order in (("p", name), (name, "p")):
        query = Query(table="t", aggregates=(COUNT,), joins=joined(*order))
        rehearse(query, card, measures_of(query)[0])
        assert ask(card, joined(*order)) == 3
    assert fingerprint(card)
