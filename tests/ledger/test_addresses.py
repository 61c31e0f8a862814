"""Addresses of servers: read as libpq does, shown without a password, and refused with one."""

import pickle
import sys

import pytest

from lastbit.addresses import Address
from lastbit.errors import InvalidParameter
from lastbit.ledger.ledger import Ledger
from lastbit.ledger.safekeeping import spared_by
from lastbit.place_names import is_address
from lastbit.tables.card.schema import DataCard, Source

SECRET = "canary-48151623"


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("postgresql://books@db/lastbit", {"user": "books", "host": "db", "dbname": "lastbit"}),
        ("postgres://[::1]:5433/x", {"host": "::1", "port": "5433", "dbname": "x"}),
        ("postgresql:///x?host=/run/pg&port=5", {"host": "/run/pg", "port": "5", "dbname": "x"}),
        ("postgresql://u@%2Frun%2Fpg/x", {"user": "u", "host": "/run/pg", "dbname": "x"}),
        ("postgresql:///?service=clinic", {"service": "clinic"}),
        ("postgresql://a%40b@h/c%2Fd", {"user": "a@b", "host": "h", "dbname": "c/d"}),
        ("postgresql://h/x?sslkey=/a+b", {"host": "h", "dbname": "x", "sslkey": "/a+b"}),
    ],
)
def test_an_address_is_read_and_shown_so_that_it_is_the_same(text, given):
    found = Address.read(text)
    assert found.given == given and is_address(text)
    assert Address.read(str(found)) == found == pickle.loads(pickle.dumps(found))


@pytest.mark.parametrize(
    "text",
    [
        f"postgresql://ada:{SECRET}@db/x",
        f"postgresql://:{SECRET}@db/x",
        f"postgresql://ada@db/x?password={SECRET}",
        f"postgresql://ada@db/x?p%61ssword={SECRET}",
        f"postgresql://ada@db/x?sslpassword={SECRET}",
        f"postgresql://ada:{SECRET}@home@db/x",
        f"postgresql://ada@db/x?options=-csearch_path%3D{SECRET}",
        f"postgresql://one,two/x?application_name={SECRET}",
        f"postgresql:///x?host=one,two&application_name={SECRET}",
        f"postgresql://db:{SECRET}/x",
        f"postgresql://db/x#{SECRET}",
        f"postgresql://db/x%0a{SECRET}",
    ],
)
def test_what_may_hold_a_secret_is_refused_and_not_quoted(text):
    with pytest.raises(InvalidParameter) as caught:
        Address.read(text)
    assert SECRET not in str(caught.value) and caught.value.__cause__ is None


@pytest.mark.parametrize(
    "start", [" postgresql://", "POSTGRES://", "postgresql+psycopg://", "jdbc:postgresql://",
              "postgresql:/", "postgresql:"],
)  # fmt: skip
def test_a_slip_in_an_address_makes_no_file(start, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidParameter, match="is not an address") as caught:
        Ledger.open(f"{start}ada:{SECRET}@db")
    assert SECRET not in str(caught.value) and not list(tmp_path.iterdir())


def test_one_database_whoever_signs_in():
    ours = Address.read("postgresql://ada@db/lastbit?schema=ward", "schema")
    assert ours.leads_to(Address.read("postgresql://ben@db/lastbit?schema=ward", "schema"))
    for other in ("postgresql://db/lastbit", "postgresql://db2/lastbit?schema=ward"):
        assert not ours.leads_to(Address.read(other, "schema"))
    assert not ours.leads_to("postgresql://ada@db/lastbit?schema=ward")


def test_without_a_driver_the_remedy_is_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "lastbit.ledger.postgres", None)
    monkeypatch.delattr("lastbit.ledger.postgres", raising=False)
    with pytest.raises(InvalidParameter, match=r"pip install \"lastbit\[postgres\]\""):
        Ledger.open("postgresql://db/books")


def test_a_ledger_on_a_server_spares_no_file_and_is_known_by_its_address():
    path = Address.read("postgresql://ada@db/books", "schema")
    ledger = Ledger(path=path, opened="0" * 64)
    assert ledger.is_at("postgresql://ben@db/books") and not ledger.is_at("books")
    card = DataCard(
        name="t", source=Source(kind="csv"), unit=None, max_rows=1, columns={}, ledger=str(path)
    )
    assert "the ledger" not in spared_by(card) | spared_by(card, path)
