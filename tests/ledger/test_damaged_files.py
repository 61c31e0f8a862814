"""Whatever is done to a ledger's file: errors of ours, with a remedy, and no value of an answer.

Some places are damaged; as evidence every 61st byte of the file (in `make check` every 241st), and
each of SQLite's own header.
"""

import os
import random
import resource
import shutil
import sqlite3
import subprocess
from contextlib import closing, suppress
from pathlib import Path

import pytest

from lastbit.errors import InvalidParameter, LastbitError, LedgerDamaged
from lastbit.ledger.ledger import Ledger
from lastbit.ledger.safekeeping import exported, restored
from tests.evidence import WHOLE_CHECK
from tests.ledger.books import CANARY, ONE, charged, price, record, small_ledger

TRIES = 60


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    ledger = small_ledger(folder)
    paid = ledger.reserve(
        "visits", price("1/8"), who="ada", question="q8", plan_digest="p", fingerprint="f"
    )
    ledger.settle(paid, record("q8"))
    return ledger.path.read_bytes()


def used(path: Path) -> str:
    """Everything that anybody does with a ledger; what it says, if it is refused."""
    said = ""

    def tried(work):
        nonlocal said
        try:
            work()
        except LastbitError as error:
            assert error.__cause__ is None, "another error is behind it"
            said += f"{error}\n"

    def asked():
        ledger = Ledger.open(path, patience=0.2)
        tried(lambda: ledger.account("visits", ONE))
        tried(ledger.accounts)
        tried(ledger.entries)
        tried(lambda: ledger.recorded("visits", "q1"))
        tried(lambda: ledger.unanswered("visits"))
        tried(lambda: ledger.keyed(b"x"))
        tried(lambda: list(exported(ledger)))
        tried(lambda: [said_of(problem) for problem in ledger.problems(["0" * 64])])
        tried(lambda: charged(ledger, "q9", price("1/16")))

    def said_of(problem):
        nonlocal said
        said += problem

    tried(asked)
    assert CANARY not in said
    return said


def test_flipped_bytes(whole, tmp_path, extent):
    path = tmp_path / "a.ledger"
    source = random.Random(5)
    every = range(0, len(whole), 241 if WHOLE_CHECK else 61)
    places = every if extent.is_many else source.sample(range(len(whole)), TRIES // 2)
    header = range(0, 100, extent.number(10, 1))  # SQLite's own
    refused = 0
    for place in (*header, *places):
        for flip in (0xFF, 1 << source.randrange(8)):
            damaged = bytearray(whole)
            damaged[place] ^= flip
            path.write_bytes(damaged)
            refused += bool(used(path))
    assert refused


def test_bytes_that_are_no_utf_8(whole, tmp_path):
    """The hole: UnicodeDecodeError from a text of the file."""
    path = tmp_path / "a.ledger"
    for text in (b"visits", b"SELECT", b"CREATE TABLE", b"entries", b"charge", CANARY.encode()):
        place = whole.find(text)
        while place >= 0:
            path.write_bytes(whole[:place] + b"\xff\xfe" + whole[place + 2 :])
            assert used(path)
            place = whole.find(text, place + 4096)


def test_cut_off_and_lengthened(whole, tmp_path):
    path = tmp_path / "a.ledger"
    for length in (0, 1, 15, 16, 99, 100, 512, 4095, 4096, 4097, 8192, len(whole) - 1):
        path.write_bytes(whole[:length])
        assert used(path)
    path.write_bytes(whole + b"\x00" * 5000)
    used(path)
    path.write_bytes(b"\x00" * len(whole))
    assert used(path)


def test_noise_within_pages(whole, tmp_path):
    path = tmp_path / "a.ledger"
    source = random.Random(6)
    for _ in range(TRIES // 4):
        start = source.randrange(100, len(whole) - 600)
        width = source.randrange(2, 600)
        path.write_bytes(whole[:start] + source.randbytes(width) + whole[start + width :])
        used(path)


def test_other_files(tmp_path):
    other = tmp_path / "other.ledger"
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE entries (a)")
        connection.commit()
    assert "not a ledger of lastbit's" in used(other)
    for name, content in (("text", b"dear Ada,\n"), ("wide", "x".encode("utf-16"))):
        (tmp_path / name).write_bytes(content * 500)
        assert "not even a database" in used(tmp_path / name)
    (tmp_path / "folder").mkdir()
    assert "is a folder" in used(tmp_path / "folder")
    os.mkfifo(tmp_path / "pipe")
    assert "is not a regular file" in used(tmp_path / "pipe")
    for device in ("/dev/null", "/dev/zero", "/dev/full"):
        assert "is not a regular file" in used(Path(device))


def test_names_that_are_none(tmp_path):
    for name in ("x" * 300, "x" * 250, "a\0b", "", "y/" * 3000 + "z"):
        with pytest.raises(InvalidParameter):
            Ledger.open(f"{tmp_path}/{name}" if name else "")
    looped = tmp_path / "loop"
    looped.symlink_to(looped)
    with pytest.raises(InvalidParameter):
        Ledger.open(looped)
    assert os.listdir(tmp_path) == ["loop"]


def test_a_journal_that_is_not_its_own(whole, tmp_path):
    path = tmp_path / "a.ledger"
    for content in (b"", b"\x00" * 600, whole[:3000], os.urandom(2000)):
        path.write_bytes(whole)
        path.with_name("a.ledger-journal").write_bytes(content)
        used(path)
        with suppress(FileNotFoundError):
            path.with_name("a.ledger-journal").unlink()


def test_a_full_disk_changes_nothing(tmp_path):
    ledger = small_ledger(tmp_path)
    before, size = ledger.path.read_bytes(), ledger.path.stat().st_size
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    for room in (0, 100, 600, 2000):
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + room if room else 0, hard))
        try:
            with pytest.raises(LastbitError):
                charged(ledger, "long", price("1/8"), record={"rows": ["x" * 50_000]})
            if not room:
                with pytest.raises(LastbitError):
                    ledger.backup(tmp_path / "copy.ledger")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert Ledger.open(ledger.path).spent("visits") == price("3/4")
    assert ledger.path.read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == ["a.ledger"]


def test_a_tiny_file_system(tmp_path):
    """A disk of 64 kB, where one may be mounted."""
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(tmp_path)],
        capture_output=True, check=False,
    )  # fmt: skip
    if mounted.returncode:
        pytest.skip("nothing may be mounted here")
    try:
        ledger = Ledger.open(tmp_path / "a.ledger")
        ledger.account("visits", ONE)
        with pytest.raises(LastbitError):
            for number in range(100):
                charged(ledger, f"q{number}", price("1/97"), record={"rows": ["x" * 5_000]})
        assert ledger.problems() == []
        subprocess.run(["mount", "-o", "remount,ro", str(tmp_path)], check=True)
        with pytest.raises(InvalidParameter, match=r"may not be written|cannot be"):
            charged(ledger, "last", price("1/97"))
        assert ledger.recorded("visits", "q0") is not None
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to this user")
def test_what_may_not_be_read_or_written(tmp_path):
    ledger = small_ledger(tmp_path)
    ledger.path.chmod(0o400)
    with pytest.raises(InvalidParameter, match="may not be written"):
        charged(ledger, "q9", price("1/8"))
    ledger.path.chmod(0)
    with pytest.raises(InvalidParameter, match="cannot be opened"):
        Ledger.open(ledger.path)


def test_damaged_backups_are_not_restored(whole, tmp_path):
    source = random.Random(8)
    for _ in range(12):
        damaged = bytearray(whole)
        for _ in range(6):
            damaged[source.randrange(4096, len(damaged))] ^= 0xFF
        (tmp_path / "backup").write_bytes(damaged)
        with suppress(LedgerDamaged, InvalidParameter):
            ledger = restored(tmp_path / "backup", tmp_path / "new.ledger")
            assert ledger.problems() == []
        with suppress(FileNotFoundError):
            (tmp_path / "new.ledger").unlink()
    shutil.rmtree(tmp_path)
