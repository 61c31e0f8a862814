"""A ledger in PostgreSQL, and everything that breaks: writers, the server, and the way between.

Nothing is charged above a budget, no answer that was shown is lost, none is doubled, and the chain
verifies; whoever is told that nothing was charged was not charged.
"""

import gc
import itertools
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from lastbit.addresses import Address
from lastbit.errors import InvalidParameter
from lastbit.ledger.ledger import Ledger
from tests.cli.running import lastbit, refused
from tests.engines import servers
from tests.faults.losing import Proxy
from tests.ledger.books import ONE, price, record
from tests.release.canaries import write_card, write_csv

pytest.importorskip("psycopg", reason=servers.MISSING)
from lastbit.ledger import postgres as room

ROOT = Path(__file__).parents[2]
postgres = servers.postgres
_NUMBERS = itertools.count(100)
HALF = price("1/2")
ASKED: Any = dict(who="ada", question="asked", plan_digest="p", fingerprint="f")


@pytest.fixture(scope="module")
def way(postgres):
    """A proxy before the server."""
    with passed_on(postgres) as proxy:
        yield proxy


@contextmanager
def passed_on(server):
    with tempfile.TemporaryDirectory(prefix="lb-", dir="/tmp") as folder:
        proxy = Proxy(Path(folder), server.folder)
        yield proxy
        proxy.close()


def twin(server, database: str, how: str, way: Proxy, patience: float) -> tuple[Ledger, Any]:
    """A ledger, always in the same state, and a call to it by the proxy that writes one entry."""
    direct = Ledger.init(f"{database}&schema=s{next(_NUMBERS)}")
    direct.account("visits", ONE)
    address = str(direct.path).replace(str(server.folder), str(way.folder))
    path = Address.read(address, "schema")
    through = Ledger(path=path, opened=direct.opened, patience=patience)
    if how == "reserve":
        return direct, lambda: through.reserve("visits", HALF, **ASKED)
    if how == "charge":
        return direct, lambda: through.charge("visits", HALF, record=record("asked"), **ASKED)
    paid = direct.reserve("visits", HALF, **ASKED)
    return direct, lambda: through.settle(paid, record("asked"))


def asked_again(direct: Ledger) -> None:
    """It is charged once in all, and has one answer."""
    again = direct.reserve("visits", HALF, **ASKED)
    if again.record is None:
        direct.settle(again, record("asked"))
    assert direct.spent("visits") == HALF and direct.problems() == []
    assert (direct.recorded("visits", "asked") or {})["rows"] == record("asked")["rows"]


@pytest.mark.parametrize("how", ["reserve", "settle", "charge"])
@pytest.mark.parametrize("direction", ["up", "down"])
def test_a_connection_that_is_lost_at_any_byte(postgres, way, extent, how, direction):
    database, outcomes = postgres.database(), Counter[str]()

    def once(after: int | None) -> int:
        direct, work = twin(postgres, database, how, way, 31.0)
        head = direct.head
        way.count()
        if after is not None:
            way.lose(direction, after)
        try:
            assert direct.holds(work())
            told = "done"
        except InvalidParameter as error:
            told = "refused"
            words = ("nothing was", "cannot be reached", "does not let you in")
            assert any(one in str(error) for one in words), str(error)
            assert direct.head == head
        outcomes[f"{told}, lost" if way.lost else told] += 1
        passed = way.passed[direction]
        asked_again(direct)
        gc.collect()  # the frames of errors keep connections, and the server takes a hundred
        return passed

    length = once(None)
    # of the last bytes most: the append, the commit, and what the server says to them
    places = {*range(0, length, max(length // 60, 1)), *range(max(length - 60, 0), length, 2)}
    for place in extent.cases(sorted(places), one_in=30):
        once(place)
    assert outcomes["refused, lost"] > 0
    if direction == "down":  # the commit had arrived, and that was found out
        once(length - 1)
        assert outcomes["done, lost"] > 0


def test_a_network_that_is_cut_at_the_commit(postgres, way):
    """The server knows nothing of it and keeps the lock, until it ends the transaction itself."""
    database = postgres.database()
    way.count()
    first = twin(postgres, database, "reserve", way, 6.0)[1]
    first()  # and stays connected: to say goodbye would be counted
    direct, work = twin(postgres, database, "reserve", way, 6.5)  # on a new connection
    way.lose("up", way.passed["up"] - 3, hang_up=False)
    begun = time.monotonic()
    with pytest.raises(InvalidParameter, match="nothing was charged"):
        work()
    assert way.lost and time.monotonic() - begun > 3
    asked_again(direct)


def test_a_server_that_does_not_come_back_leaves_it_open():
    """Then nothing is claimed; asked again, it is charged once."""
    server = servers.started()
    try:
        with passed_on(server) as way, pytest.MonkeyPatch.context() as patch:
            database, real = server.database(), room.PostgresBooks._arrived
            way.count()
            first = twin(server, database, "reserve", way, 0.5)[1]
            first()
            direct, work = twin(server, database, "reserve", way, 0.6)
            way.lose("down", way.passed["down"] - 1)

            def gone(self) -> bool:
                server.kill()
                patch.setattr(room, "_longest_idle", lambda _: -5_000)
                return real(self)

            patch.setattr(room.PostgresBooks, "_arrived", gone)
            with pytest.raises(InvalidParameter, match="it is not known whether"):
                work()
            patch.undo()
            server.start()
            assert direct.reserve("visits", HALF, **ASKED).resumed
            asked_again(direct)
    finally:
        server.remove()


def test_a_query_whose_server_is_killed_before_it_settles(tmp_path, monkeypatch):
    """The answer that was made is not shown; asked again, it is charged once."""
    server, real = servers.started(), Ledger.settle

    def killed(self, *given, **named):
        server.kill()
        return real(self, *given, **named)

    try:
        monkeypatch.chdir(tmp_path)
        write_csv(tmp_path / "visits.csv")
        address = server.database()
        card = write_card(tmp_path)
        card.write_text(card.read_text().replace("visits.ledger", address))
        Ledger.init(address)
        asked = ("query", "visits.toml", "SELECT COUNT(*) AS n FROM visits", "--epsilon", "1")
        monkeypatch.setattr(Ledger, "settle", killed)
        words = refused(*asked)
        assert "cannot be reached" in words and "ask the same again when it does" in words
        assert "verify" not in words
        monkeypatch.setattr(Ledger, "settle", real)
        server.start()
        ledger = Ledger.existing(address)
        (paid,) = ledger.unanswered("visits")
        answer = json.loads(lastbit(*asked, "--json").stdout)["answer"]
        settled = ledger.answer_to(paid)
        assert settled and settled.hash == answer["entry"]["hash"] == ledger.head
        assert ledger.spent("visits") == price(1) and ledger.problems() == []
    finally:
        server.remove()


def test_writers_and_servers_that_are_killed(extent, tmp_path):
    """16 writers; many: 60 s, more than 200 kills of writers, and of the server every 8 s."""
    seconds, kills = extent.number(9, 60), extent.number(12, 210)
    server = servers.started()
    try:
        address = server.database()
        Ledger.init(address)
        program = [sys.executable, "-m", "tests.faults.charging", address, str(tmp_path)]
        numbers = [str(n) for n in (16 if extent.is_many else 8, kills, seconds)]
        running = subprocess.Popen(
            [*program, *numbers], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        moments, crashes = random.Random(3), 0
        while running.poll() is None and len(shown_in(tmp_path)) < 5:
            time.sleep(0.1)
        while running.poll() is None:
            server.kill()  # all its processes at once, as a loss of power
            crashes += 1
            server.start()
            with suppress(subprocess.TimeoutExpired):
                running.wait(moments.uniform(0.3, 1.7) * 8)
        said, _ = running.communicate(timeout=30)
        assert running.returncode == 0 and json.loads(said)["kills"] >= kills
        checked(Ledger.existing(address), shown_in(tmp_path))
        assert crashes >= 1
    finally:
        server.remove()


def shown_in(folder: Path) -> list[str]:
    """The hashes that writers showed; the other lines are what they were told."""
    if not (folder / "shown").exists():
        return []
    return [line for line in (folder / "shown").read_text().split("\n") if len(line) == 64]


def checked(ledger: Ledger, shown: list[str]) -> None:
    entries = ledger.entries()
    paid = [entry for entry in entries if entry.kind == "reserved"]
    answers = {entry.hash for entry in entries if entry.kind == "settled"}
    assert len(shown) == len(set(shown)) and set(shown) <= answers  # none lost, none twice
    assert ledger.problems(shown) == []
    asked = Counter((entry.account, entry.question) for entry in paid)
    assert max(asked.values()) == 1  # none charged twice
    sums: Any = Counter()
    for entry in paid:
        assert entry.cost is not None
        sums[entry.account] += entry.cost.epsilon
    accounts = {account.name: account for account in ledger.accounts()}
    assert all(total == accounts[name].spent.epsilon <= 1 for name, total in sums.items())
    assert len(shown) >= 5
