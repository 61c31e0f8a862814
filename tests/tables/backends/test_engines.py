"""Which engine runs a question, what it needs, and what its text may not change."""

import sys
from abc import ABC
from dataclasses import replace
from fractions import Fraction
from importlib import import_module
from pathlib import Path

import pytest

from lastbit.errors import InvalidParameter
from lastbit.tables.backends import drivers, engines
from lastbit.tables.backends.columns import columns_of
from lastbit.tables.backends.duckdb import columns
from lastbit.tables.backends.printed import engine_record, printed_statement
from lastbit.tables.card.column import Column
from lastbit.tables.card.schema import DataCard, EngineLimits, PrivateTable, PublicTable, Source
from lastbit.tables.plan.plan import planned
from lastbit.tables.query.expression import ColumnName
from lastbit.tables.query.query import Aggregate, Query
from lastbit.tables.query.scan import GroupKey

FILE = Source(kind="parquet", paths=("visits.parquet",))
SERVER = Source(kind="postgres", paths=("postgresql://db/clinic",), table="public.visits")
LAKE = Source(kind="spark", table="clinic.visits")
WHO = {"who": Column(name="who", type="integer")}
COLUMNS = WHO | {"cost": Column(name="cost", type="number", bounds=(Fraction(0), Fraction(9)))}
QUESTION = Query(
    table="visits",
    aggregates=(
        Aggregate(name="n", function="count"),
        Aggregate(
            name="s",
            function="sum",
            expression=ColumnName("cost"),
            bounds=(Fraction(0), Fraction(9)),
        ),
    ),
    keys=(GroupKey(name="k", expression=ColumnName("who"), values=(1, 2)),),
)


def card(source, **changes):
    fields = {"name": "visits", "unit": "who", "max_rows": 2, "columns": COLUMNS}
    return DataCard(source=source, **(fields | changes))


@pytest.mark.parametrize("source", [FILE, SERVER, LAKE])
def test_a_source_says_its_engine(source):
    name = {"parquet": "duckdb"}.get(source.kind, source.kind)
    assert source.engine == drivers.dialect_of(source.engine).name == name


@pytest.mark.parametrize(("source", "driver"), [(SERVER, "psycopg"), (LAKE, "pyspark")])
def test_a_driver_that_is_not_installed_is_named_with_its_remedy(monkeypatch, source, driver):
    loaded = (f"lastbit.tables.backends.{source.kind}", driver)
    for name in [name for name in sys.modules if name.startswith(loaded)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, driver, None)
    with pytest.raises(InvalidParameter, match=f"lastbit\\[{source.kind}\\]"):
        columns_of(source)


@pytest.mark.parametrize(("own", "other"), [(FILE, SERVER), (SERVER, LAKE), (LAKE, FILE)])
def test_tables_of_one_card_are_on_one_engine(own, other):
    public = {"regions": PublicTable(name="regions", source=other, columns={"who": "integer"})}
    with pytest.raises(InvalidParameter, match=r"public table regions.* is on"):
        card(own, public=public)
    labs = PrivateTable(name="labs", source=other, unit="who", max_rows=1, columns=WHO)
    with pytest.raises(InvalidParameter, match=r"private table labs.* is on"):
        card(own, private={"labs": labs})
    card(own, private={"labs": replace(labs, source=own)})


def test_the_plan_is_the_same_on_every_engine():
    plans = [planned(QUESTION, card(source), epsilon=1) for source in (FILE, SERVER, LAKE)]
    assert len({plan.digest for plan in plans}) == 1


def test_what_a_vendor_calls_its_version_is_made_a_plain_word(monkeypatch):
    monkeypatch.setattr(columns, "version_of", lambda *_: "1.4 (our own)")
    assert engine_record(card(FILE)) == {
        "name": "duckdb",
        "version": "1.4__our_own_",
        "dialect": 1,
    }


@pytest.mark.parametrize(
    ("name", "driver"), [("duckdb", "duckdb"), ("postgres", "psycopg"), ("spark", "pyspark")]
)
def test_an_engine_that_forgets_a_method_cannot_be_opened(name, driver):
    pytest.importorskip(driver)
    session = import_module(f"lastbit.tables.backends.{name}.engine").EngineSession
    assert session.__mro__ == (session, engines.Session, ABC, object)
    body = {n: v for n, v in vars(session).items() if n not in ("__dict__", "__weakref__")}
    for forgotten in engines.Session.__abstractmethods__:
        without = {n: v for n, v in body.items() if n not in (forgotten, "__abstractmethods__")}
        with pytest.raises(TypeError, match=rf"abstract method '?{forgotten}\b"):
            type("Forgetful", (engines.Session,), without)()


def test_no_engine_keeps_anything_for_a_thread():
    """A session is passed: whoever has none has no connection either."""
    folder = Path(engines.__file__).parent
    assert [path for path in folder.rglob("*.py") if "threading.local" in path.read_text()] == []


@pytest.mark.parametrize(
    ("source", "ledger", "index", "kept"),
    [
        (FILE, Path("v.ledger"), True, "v.ledger.units"),
        (FILE, Path("v.ledger"), False, None),
        (FILE, "postgresql://db/ledger", True, None),
        (FILE, None, True, None),
        (SERVER, Path("v.ledger"), True, None),
    ],
)
def test_units_are_kept_beside_a_ledger_in_a_file(source, ledger, index, kept):
    if source is SERVER:
        pytest.importorskip("psycopg")
    limits = EngineLimits(index=index)
    with engines.open_session(card(source, engine_limits=limits), units_beside=ledger) as session:
        assert session.units == kept


@pytest.mark.parametrize("name", ["duckdb", "postgres", "spark"])
def test_a_statement_for_review_says_what_it_is(name):
    plan = planned(QUESTION, card(SERVER), epsilon=1)
    first = printed_statement(plan, name).partition("\n")[0]
    assert ("as lastbit runs it" in first) == (name == "postgres")
    assert printed_statement(plan).startswith("-- PostgreSQL, dialect 1: as lastbit runs")
