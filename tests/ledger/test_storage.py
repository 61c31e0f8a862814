"""Files that are no ledger, or cannot be used: refused clearly, before anything is released."""

import os
import resource
import sqlite3
import subprocess
import sys
import textwrap
from contextlib import closing
from pathlib import Path

import pytest

from lastbit.errors import BudgetExceeded, InvalidParameter, LastbitError, LedgerDamaged
from lastbit.ledger import sqlite as storage
from lastbit.ledger.ledger import Ledger
from lastbit.ledger.sqlite import SCHEMA, translated
from lastbit.ledger.storage import ALONE
from tests.ledger.books import CANARY, ONE, changed, charged, price, small_ledger

ROOT = Path(__file__).parents[2]


def test_what_is_no_ledger_is_refused_and_left_as_it_is(tmp_path):
    path = tmp_path / "a.ledger"
    for content, problem in (
        (b"", "is empty; if a new one is meant"),
        (b"name,salary\n" + CANARY.encode() * 300, "not even a database"),
        (b"SQLite format 3\0" + b"\xff" * 5000, "is (damaged|not a ledger)"),
    ):
        path.write_bytes(content)
        for door in (Ledger.open, Ledger.existing):
            with pytest.raises(LedgerDamaged, match=problem) as caught:
                door(path)
            assert CANARY not in str(caught.value) and caught.value.__cause__ is None
        assert path.read_bytes() == content


def test_another_database_is_refused_and_left_as_it_is(tmp_path):
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"CREATE TABLE people (name TEXT DEFAULT '{CANARY}')")
        connection.commit()
    whole = path.read_bytes()
    with pytest.raises(LedgerDamaged, match="is a database, but not a ledger") as caught:
        Ledger.open(path)
    assert CANARY not in str(caught.value)
    assert path.read_bytes() == whole


def test_a_newer_version_is_refused(tmp_path):
    ledger = small_ledger(tmp_path)
    changed(ledger.path, "PRAGMA user_version = 8")
    with pytest.raises(LedgerDamaged, match="is of version 8, and this lastbit knows 7; upgrade"):
        Ledger.open(ledger.path)
    changed(ledger.path, "PRAGMA user_version = 0")
    with pytest.raises(LedgerDamaged, match="changed"):
        Ledger.open(ledger.path)


def test_an_emptied_ledger_is_refused(tmp_path):
    ledger = small_ledger(tmp_path)
    changed(ledger.path, "DELETE FROM entries")
    with pytest.raises(LedgerDamaged, match="lost its first entry"):
        Ledger.open(ledger.path)


@pytest.mark.parametrize("path", ["", "a\0b", None, 3, b"bytes"])
def test_what_is_no_path_is_refused(path):
    with pytest.raises(InvalidParameter, match="ledger is not a valid path"):
        Ledger.open(path)


def test_folders_devices_and_missing_places_are_refused(tmp_path):
    with pytest.raises(InvalidParameter, match="is a folder; name a file in it"):
        Ledger.open(tmp_path)
    with pytest.raises(InvalidParameter, match="is not a regular file"):
        Ledger.open("/dev/null")
    with pytest.raises(InvalidParameter, match="cannot be made"):
        Ledger.open(tmp_path / "missing" / "a.ledger")
    with pytest.raises(InvalidParameter, match="is not there"):
        Ledger.existing(tmp_path / "a.ledger")
    (tmp_path / "file").write_text("x")
    with pytest.raises(InvalidParameter, match="cannot be reached"):
        Ledger.open(tmp_path / "file" / "a.ledger")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    with pytest.raises(InvalidParameter, match="is not there"):
        Ledger.open(tmp_path / "dangling")
    assert sorted(os.listdir(tmp_path)) == ["dangling", "file"]


def test_a_ledger_that_went_away_is_not_made_anew_behind_the_users_back(tmp_path):
    ledger = small_ledger(tmp_path)
    ledger.path.unlink()
    with pytest.raises(InvalidParameter, match="is not there"):
        charged(ledger, "q9", price("1/8"))
    assert os.listdir(tmp_path) == []


def test_a_locked_ledger_is_said_to_be_locked(tmp_path):
    small_ledger(tmp_path)
    ledger = Ledger.open(tmp_path / "a.ledger", patience=0.05)
    with closing(sqlite3.connect(ledger.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert ledger.spent("visits") == price("3/4")  # reading goes on
        with pytest.raises(InvalidParameter, match="is locked by another process; try again"):
            charged(ledger, "q9", price("1/8"))
        other.execute("COMMIT")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(InvalidParameter, match="is locked"):
            ledger.spent("visits")
        with pytest.raises(InvalidParameter, match="is locked"):
            ledger.backup(tmp_path / "copy")
        other.execute("COMMIT")
        reader = other.execute("SELECT * FROM entries")
        reader.fetchone()
        with pytest.raises(InvalidParameter, match="is locked"):  # at the commit
            charged(ledger, "q9", price("1/8"))
        reader.close()
    assert ledger.spent("visits") == price("3/4")
    assert ledger.problems() == []
    charged(ledger, "q9", price("1/8"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_ledger_can_be_read_and_not_charged(tmp_path):
    ledger = small_ledger(tmp_path)
    ledger.path.chmod(0o400)
    assert ledger.problems() == []
    with pytest.raises(InvalidParameter, match="may not be written"):
        charged(ledger, "q9", price("1/8"))
    tmp_path.chmod(0o500)
    with pytest.raises(InvalidParameter, match="cannot be made"):
        Ledger.open(tmp_path / "b.ledger")
    tmp_path.chmod(0o700)


def test_a_full_disk_charges_nothing_and_shows_nothing(tmp_path):
    """A limit on the size of files stands in for the full disk; it holds in a child only."""
    ledger = small_ledger(tmp_path)
    script = textwrap.dedent(
        """
        import resource, signal, sys
        from lastbit.ledger import Ledger
        from tests.ledger.books import CANARY, charged, price
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        ledger = Ledger.open(sys.argv[1])
        size = ledger.path.stat().st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        charged(ledger, "q9", price("1/8"), record={"rows": [CANARY] * 100_000})
        print("shown")
        """
    )
    child = [sys.executable, "-c", script, str(ledger.path)]
    finished = subprocess.run(child, cwd=ROOT, capture_output=True, text=True, check=False)
    assert finished.returncode == 1 and finished.stdout == ""
    last = finished.stderr.splitlines()[-1]
    assert "InvalidParameter: the ledger" in last and "disk" in last
    assert CANARY not in finished.stderr
    assert ledger.spent("visits") == price("3/4")
    assert ledger.problems() == []
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY


@pytest.mark.parametrize(
    ("code", "kind", "words"),
    [
        (sqlite3.SQLITE_FULL, InvalidParameter, "the disk is full; free some space"),
        (sqlite3.SQLITE_IOERR_FSYNC, InvalidParameter, "the disk fails or is full"),
        (sqlite3.SQLITE_READONLY_ROLLBACK, InvalidParameter, "may not be written"),
        (sqlite3.SQLITE_CANTOPEN, InvalidParameter, "cannot be opened"),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, InvalidParameter, "is locked"),
        (sqlite3.SQLITE_CORRUPT, LedgerDamaged, "is damaged"),
        (sqlite3.SQLITE_NOTADB, LedgerDamaged, "not even a database"),
        (sqlite3.SQLITE_CONSTRAINT, LedgerDamaged, "is damaged"),
        (None, LedgerDamaged, "is damaged"),
    ],
)
def test_sqlites_own_words_are_dropped(tmp_path, code, kind, words):
    error = sqlite3.OperationalError(f"could not decode '{CANARY}'")
    if code is not None:
        error.sqlite_errorcode = code
    with pytest.raises(kind, match=words) as caught, translated(tmp_path / "a.ledger"):
        raise error
    seen: BaseException | None = caught.value
    assert isinstance(seen, LastbitError) and CANARY not in str(seen)
    assert seen.__cause__ is None and seen.__suppress_context__  # so that no traceback shows it


def test_a_charge_is_synced_as_it_has_to_be(tmp_path, monkeypatch):
    """The mutants: synchronous below EXTRA (3), or a write-ahead log."""
    from lastbit.ledger import sqlite as storage

    ledger = small_ledger(tmp_path)
    with storage.connected(ledger.path, ledger.connections, patience=1) as connection:
        assert connection.raw.execute("PRAGMA synchronous").fetchone() == (3,)
        assert connection.raw.execute("PRAGMA journal_mode").fetchone() == ("delete",)


def test_the_schema_forbids_changes():
    assert sum("BEFORE UPDATE ON entries" in statement for statement in SCHEMA) == 1
    assert sum("BEFORE DELETE ON entries" in statement for statement in SCHEMA) == 1


def test_a_fork_waits_for_a_call_and_the_child_can_use_the_ledger(tmp_path):
    """A thread charges all the time while the main thread forks; every child charges too."""
    script = textwrap.dedent(
        """
        import os, sys, threading, warnings
        warnings.simplefilter("ignore")
        from lastbit.ledger import Ledger
        from tests.ledger.books import charged, price
        ledger = Ledger.open(sys.argv[1], patience=20)
        ledger.account("visits", None)
        stop = threading.Event()
        def busy():
            number = 0
            while not stop.is_set():
                charged(ledger, f"t{number}", price(1)); number += 1
        thread = threading.Thread(target=busy); thread.start()
        children = []
        for number in range(4):
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    charged(ledger, f"c{number}", price(1)); status = 0
                finally:
                    os._exit(status)
            children.append(child)
        failed = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        stop.set(); thread.join()
        found = [ledger.recorded("visits", f"c{number}") is not None for number in range(4)]
        sys.exit(not (failed == [0] * 4 and all(found) and ledger.problems() == []))
        """
    )
    child = [sys.executable, "-c", script, str(tmp_path / "a.ledger")]
    finished = subprocess.run(child, cwd=ROOT, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr


def test_an_account_of_a_ledger_made_by_two_at_once_is_one(tmp_path, monkeypatch):
    """Another process links its new ledger first: that one counts, ours is thrown away."""
    path = tmp_path / "a.ledger"
    real = os.link

    def late(source, target):
        monkeypatch.setattr(os, "link", real)
        Ledger.open(path).account("visits", ONE)
        real(source, target)

    monkeypatch.setattr(os, "link", late)
    ledger = Ledger.open(path)
    assert [account.name for account in ledger.accounts()] == ["visits"]
    assert os.listdir(tmp_path) == ["a.ledger"]


@pytest.fixture
def opened(monkeypatch):
    """How often a connection was opened so far."""
    count = []
    connect = sqlite3.connect

    def counted(*given, **others):
        count.append(given)
        return connect(*given, **others)

    monkeypatch.setattr(sqlite3, "connect", counted)
    return count


def test_calls_share_one_connection_and_hold_no_lock_between_them(tmp_path, opened):
    ledger = small_ledger(tmp_path)
    opened.clear()
    with ledger.connection():
        ledger.account("visits", ONE)
        charged(ledger, "q4", price("1/8"))
        with ledger.connection():
            assert ledger.spent("visits") == price("7/8")
        with closing(sqlite3.connect(ledger.path, timeout=0, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            other.execute("COMMIT")
        assert ledger.problems() == []
        assert len(opened) == 2  # ours, and the other one
    assert ledger.spent("visits") == price("7/8")
    assert len(opened) == 3


def test_a_kept_connection_is_not_used_for_a_file_that_took_its_place(tmp_path):
    ledger = small_ledger(tmp_path)
    (tmp_path / "sub").mkdir()
    other = small_ledger(tmp_path / "sub")
    with ledger.connection():
        assert ledger.spent("visits") == price("3/4")
        os.replace(other.path, ledger.path)
        with pytest.raises(LedgerDamaged, match="was exchanged"):
            ledger.spent("visits")
        ledger.path.unlink()
        with pytest.raises(InvalidParameter, match="is not there"):
            ledger.spent("visits")


def test_a_connection_is_not_kept_for_a_file_that_took_its_place_in_a_call(tmp_path):
    """Else later calls would charge a file that has no name any more."""
    ledger = small_ledger(tmp_path)
    (tmp_path / "sub").mkdir()
    other = small_ledger(tmp_path / "sub")
    with ledger.connection():
        with ledger._connected():
            os.replace(other.path, ledger.path)
        with pytest.raises(LedgerDamaged, match="was exchanged"):
            ledger.spent("visits")


def test_a_kept_connection_is_closed_when_a_call_fails(tmp_path, opened):
    ledger = small_ledger(tmp_path)
    opened.clear()
    with ledger.connection():
        with pytest.raises(BudgetExceeded):
            charged(ledger, "q4", price("1/2"))
        assert ledger.spent("visits") == price("3/4")
    assert len(opened) == 2


def test_a_child_opens_a_connection_of_its_own(tmp_path, opened):
    ledger = small_ledger(tmp_path)
    with ledger.connection():
        ledger.spent("visits")
        opened.clear()
        child = os.fork()
        if child == 0:
            fine = ledger.spent("visits") == price("3/4") and len(opened) == 1
            os._exit(0 if fine else 1)
        assert os.waitpid(child, 0)[1] == 0
        charged(ledger, "q4", price("1/8"))
        assert not opened


@pytest.mark.parametrize("clock", ["fine", "coarse"])
def test_a_kept_connection_remembers_no_page_of_a_file_that_is_overwritten(
    tmp_path, monkeypatch, clock
):
    """By another ledger with as many transactions, to which SQLite's own counter is the same."""
    if clock == "coarse":  # as if the file's times had not changed
        monkeypatch.setattr(
            storage, "_key", lambda place, patience: (place, patience, place.stat().st_ino)
        )
    ledger = small_ledger(tmp_path)
    start = ledger.path.read_bytes()
    charged(ledger, "q4", price("1/4"))
    all_spent = ledger.path.read_bytes()
    ledger.path.write_bytes(start)
    charged(ledger, "q4", price("1/16"))
    assert ledger.path.read_bytes()[24:40] == all_spent[24:40]
    with ledger.connection():
        assert ledger.spent("visits") == price("13/16")
        ledger.path.write_bytes(all_spent)
        assert ledger.spent("visits") == price(1)
        with pytest.raises(BudgetExceeded):
            charged(ledger, "q5", price("1/8"))
    assert ledger.problems() == [] and ledger.path.read_bytes() == all_spent


def test_an_interrupt_at_the_end_leaves_no_connection_on(tmp_path, monkeypatch):
    class Interrupted:
        def __enter__(self):
            raise KeyboardInterrupt

        def __exit__(self, *_):
            raise AssertionError

    ledger = small_ledger(tmp_path)
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt), ledger.connection():
        ledger.spent("visits")
        patched.setattr(ALONE, "lock", Interrupted())
    assert not ledger.connections.lasts
