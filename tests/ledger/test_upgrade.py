"""A ledger that an older lastbit made in PostgreSQL, brought to today's tables and functions."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from lastbit.cli.main import main
from lastbit.errors import InvalidParameter, LedgerDamaged
from lastbit.ledger.definitions import AS_MADE, LAYOUT, UPGRADES, filled
from lastbit.ledger.ledger import Ledger
from lastbit.ledger.limits import Limit
from lastbit.ledger.places import place_of
from tests.engines import servers
from tests.ledger.books import ONE, changed, charged, person, price, signed_in, small_ledger
from tests.ledger.test_principals import asked

pytest.importorskip("psycopg", reason=servers.MISSING)
from lastbit.ledger import making_postgres as room

DATA = Path(__file__).parent / "data"


@pytest.fixture(params=[1, 2, 3, 4])
def old(request, address, tmp_path):
    """The small ledger in an older layout: 1 knew no principals, 2 let analysts open accounts,
    3 knew no numbers that are drawn before there is an answer, 4 let another plan answer them."""
    statements = json.loads((DATA / f"layout-{request.param}.json").read_text())
    file = small_ledger(tmp_path)
    place = place_of(address)
    names = room.names_of(place)
    with signed_in(place) as connection, connection.transaction():
        room._make_roles(place, connection, names)
        for statement in statements:
            connection.execute(filled(statement, names))
        last = file.entries(last=1)[0]
        head = f"INSERT INTO {names['s']}.head VALUES (1, {request.param}, 1, %s, %s)"
        connection.execute(head, (last.sequence, last.hash))
        connection.execute(f"INSERT INTO {names['s']}.secret VALUES (1, %s)", (file.secret,))
        for number in range(1, last.sequence + 1):
            entry = file.entry(number)
            text = None
            if entry.record is not None:
                told = {**entry.record, "entry": None}
                text = json.dumps(told, sort_keys=True, separators=(",", ":"))
            connection.execute(
                f"INSERT INTO {names['s']}.entries VALUES (%s, %s, %s, %s, %s, NULL, %s)",
                (number, entry.account, entry.question, entry.text, entry.hash, text),
            )
    return file, place


def test_every_layout_has_a_way_to_the_next():
    assert set(UPGRADES) == set(range(1, LAYOUT)) == set(AS_MADE.values()) - {LAYOUT}


def test_an_old_layout_is_told_from_a_changed_one(old):
    _, place = old
    with pytest.raises(InvalidParameter, match=r"older lastbit.*run lastbit ledger upgrade postg"):
        Ledger.existing(place)
    changed(place, "ALTER TABLE entries DISABLE TRIGGER stay_update")
    for work in (Ledger.existing, Ledger.upgrade):
        with pytest.raises(LedgerDamaged, match="had its tables, triggers or functions changed"):
            work(place)


def test_an_upgrade_keeps_the_chain(old):
    file, place = old
    assert Ledger.upgrade(place) is True and Ledger.upgrade(place) is False
    ledger = Ledger.existing(place)
    assert [e.hash for e in ledger.entries()] == [e.hash for e in file.entries()]
    assert ledger.opened == file.opened and ledger.secret == file.secret
    assert ledger.accounts() == file.accounts() and ledger.problems([file.head]) == []
    charged(person(ledger, "analyst"), "q9", price("1/8"))
    ledger.set_principal("ada", "steward", by="root")
    ledger.set_principal("ben", "analyst", by="ada")
    ledger.set_allowance("visits", "ben", Limit(epsilon=ONE.epsilon, period="day"), by="ada")
    asked(ledger, "new", price("1/8"))
    assert ledger.spent("visits") == price(1) and ledger.problems() == []


@pytest.mark.parametrize("old", [1], indirect=True)
def test_only_the_owner_upgrades_and_all_or_nothing(old, monkeypatch):
    _, place = old
    with signed_in(place) as connection:
        connection.execute("CREATE ROLE nearly LOGIN")
        connection.execute(f"GRANT {place.extra['schema']}_steward TO nearly")
    with pytest.raises(InvalidParameter, match="does not give you the right"):
        Ledger.upgrade(str(place).replace("postgres@", "nearly@"))
    broken = {1: (*UPGRADES[1], "CREATE TABLE {s}.entries ()")}
    monkeypatch.setattr(room, "UPGRADES", {**UPGRADES, **broken})
    with pytest.raises(LedgerDamaged):
        Ledger.upgrade(place)
    monkeypatch.setattr(
        room, "UPGRADES", {**UPGRADES, 2: UPGRADES[2][:-2], 3: (), 4: ()}
    )  # something is left out
    with pytest.raises(LedgerDamaged, match="changed"):
        Ledger.upgrade(place)
    monkeypatch.undo()
    with pytest.raises(InvalidParameter, match="older lastbit"):
        Ledger.existing(place)
    assert Ledger.upgrade(place)


def test_on_the_command_line(old, tmp_path):
    file, place = old
    for what, words in ((place, "upgraded"), (place, "needs nothing"), (file.path, "needs noth")):
        result = CliRunner().invoke(main, ["ledger", "upgrade", str(what)])
        assert result.exit_code == 0 and words in result.output and file.head in result.output
