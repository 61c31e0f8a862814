"""The SQLite file under a ledger: synced, locked, its errors in our words.

**Durable.** `synchronous=EXTRA` with a rollback journal. A transaction is committed by deleting its
journal; at FULL the folder is not synced after that, and a power cut could bring the journal back,
and with it the state before a charge whose answer was already shown. EXTRA syncs the folder too.
`fullfsync` asks macOS for a sync that reaches the disk.

**A journal, not a write-ahead log.** Between calls the ledger is *one* file: whoever copies it
copies all of it. With a log beside it, a copy of the main file would silently be an older ledger,
with budget left that was spent. A process killed in the middle leaves a journal, which the next
one to open the file rolls back.

**Alone.** (`storage.py`) Nothing here opens the file by other means while it is in use, since
closing *any* handle of a file drops the POSIX locks that this process holds on it. A connection is
used again only while the path still leads to the file that it has open and nobody has written to
it, and without a page that it remembers. Threads may take turns with one, under the lock.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from lastbit.errors import InvalidParameter, LastbitError
from lastbit.ledger.entry import Entry, for_people
from lastbit.ledger.storage import ALONE, NEWEST, Connections, Row, damaged, row_of, unusable

APPLICATION = 0x6C62_6C67  # "lblg"
MAKING = ".lastbit-ledger-"
"""How the name begins under which a new ledger is written (`making.py`)."""
BESIDE = ("-journal", "-wal", "-shm")  # of files beside a database
_STAY = "BEGIN SELECT RAISE(ABORT, 'entries are never changed'); END"
SCHEMA = (
    # the record comes last: looking an entry up does not read through its answer
    "CREATE TABLE entries (sequence INTEGER PRIMARY KEY AUTOINCREMENT, account TEXT, "
    "question TEXT, text TEXT NOT NULL, hash TEXT NOT NULL UNIQUE, record TEXT)",
    "CREATE TABLE secret (one INTEGER PRIMARY KEY CHECK (one = 1), value BLOB NOT NULL)",
    "CREATE INDEX entries_by_account ON entries (account, sequence)",
    "CREATE INDEX entries_by_question ON entries (question, account, sequence)",
    "CREATE TRIGGER entries_follow BEFORE INSERT ON entries WHEN NEW.sequence IS NOT "
    f"(SELECT coalesce(max(sequence), 0) + 1 FROM entries) {_STAY}",
    f"CREATE TRIGGER entries_update BEFORE UPDATE ON entries {_STAY}",
    f"CREATE TRIGGER entries_delete BEFORE DELETE ON entries {_STAY}",
    f"CREATE TRIGGER secret_update BEFORE UPDATE ON secret {_STAY}",
    f"CREATE TRIGGER secret_delete BEFORE DELETE ON secret {_STAY}",
)
_SETTINGS = (
    "PRAGMA journal_mode = DELETE",
    "PRAGMA synchronous = EXTRA",
    "PRAGMA fullfsync = ON",
    "PRAGMA trusted_schema = OFF",
    "PRAGMA cell_size_check = ON",
)
_DAMAGE = OSError, UnicodeError, OverflowError, MemoryError
"""What Python raises of a file that cannot be reached, or holds what no ledger holds."""


def place_of(path: str | os.PathLike[str]) -> Path:
    """The real path, links followed, if a ledger may be there; a folder or a device is refused.

    One ledger has one path then, whatever link it is reached by: SQLite finds a journal by it.
    """
    if not isinstance(path, str | os.PathLike) or not os.fspath(path) or "\0" in os.fspath(path):
        raise InvalidParameter("ledger", problem="is not a valid path", remedy="name a file")
    try:
        place = Path(os.path.realpath(path))
        longest = os.pathconf(place.parent, "PC_NAME_MAX") if place.parent.is_dir() else 255
        if len(os.fsencode(place.name)) + max(map(len, BESIDE)) > longest:
            raise unusable(place, "has a name that is too long", "name it by fewer letters")
        found = place.stat()
    except FileNotFoundError:
        if os.path.islink(path):  # say, to a disk that is not mounted: no reason for a fresh budget
            raise unusable(
                place, "is not there, though a link leads to it", "restore it, or drop the link"
            ) from None
        return place
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "its name is not text"
        raise unusable(Path(path), f"cannot be reached ({reason})") from None
    if stat.S_ISDIR(found.st_mode):
        raise unusable(place, "is a folder", "name a file in it")
    if not stat.S_ISREG(found.st_mode):
        raise unusable(place, "is not a regular file", "name a file")
    _check_one_name(place)
    return place


def _check_one_name(place: Path) -> None:
    """Refuse a ledger with two names (a hard link): its journal would be found by one of them only.

    The name under which `making.py` wrote it may still be there, for a moment or after a crash.
    """
    if place.stat().st_nlink == 1:
        return
    own = place.stat().st_ino
    making = 0
    for other in place.parent.glob(f"{MAKING}*.new"):
        with suppress(OSError):
            making += other.stat().st_ino == own
    if place.stat().st_nlink - making > 1:
        raise for_people().two_names(place)


def raw(place: Path, *, patience: float) -> sqlite3.Connection:
    """A connection with our settings; what it holds is not looked at."""
    address = f"{place.as_uri()}?mode=rw"  # rw: never made by mistake
    connection = sqlite3.connect(
        address, timeout=patience, isolation_level=None, uri=True, check_same_thread=False
    )
    # bytes that are not UTF-8 stay recognisable as such, and fit no hash
    connection.text_factory = lambda found: found.decode("utf-8", "surrogateescape")
    try:
        for setting in _SETTINGS:
            connection.execute(setting).fetchall()
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def connected(place: Path, connections: Connections, *, patience: float) -> Iterator[SqliteBooks]:
    """A connection to a ledger, for one call; anything but a ledger of this version is refused."""
    with ALONE.lock, translated(place):
        place_of(place)
        try:
            empty = place.stat().st_size == 0
        except OSError:
            raise unusable(place, "is not there", "name one that lastbit made") from None
        if empty:
            raise damaged(place, "is empty; if a new one is meant, delete it first")
        with ExitStack() as held:
            key = _key(place, patience)
            connection = connections.take(key) or raw(place, patience=patience)
            held.callback(connection.close)
            # SQLite forgets pages if a counter in the file has changed. A file that is
            # overwritten in place by another ledger may have the same counter
            connection.execute("PRAGMA shrink_memory")
            _check_schema(place, connection)
            yield SqliteBooks(place, connection)
            # closed if the call failed, left a transaction open, or if another file was put in
            # this place meanwhile: what is left behind is found by the file that is there now
            after = _key(place, patience)
            same = key is not None and after is not None and key[:_FILE] == after[:_FILE]
            if same and connections.lasts and not connection.in_transaction:
                held.pop_all()
                connections.leave(after, connection, connection.close)


_FILE = 4  # of a key: place, patience, and by device and number which file it is


def _key(place: Path, patience: float) -> tuple[object, ...] | None:
    """By what a connection is found again: which file it is, and when it was last written, as far
    as the system tells; None where it is not there.
    """
    with suppress(OSError):
        found = place.stat()
        written = found.st_size, found.st_mtime_ns, found.st_ctime_ns
        return place, patience, found.st_dev, found.st_ino, *written
    return None


@dataclass(frozen=True, slots=True)
class SqliteBooks:
    """A ledger in a file, open for one call."""

    place: Path
    raw: sqlite3.Connection

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """BEGIN IMMEDIATE takes SQLite's write lock before anything is read."""
        self.raw.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.raw.execute("COMMIT")
        finally:
            if self.raw.in_transaction:  # refused, failed, or interrupted before the commit
                self.raw.execute("ROLLBACK")

    def texts(self) -> Iterable[tuple[int, bytes, bytes, int | None]]:
        """As bytes, since hashes are of bytes; one statement is one state of the file."""
        return self.raw.execute(
            "SELECT sequence, CAST(text AS BLOB), CAST(hash AS BLOB), "
            "(SELECT max(seq) FROM sqlite_sequence WHERE name = 'entries') "
            "FROM entries NOT INDEXED ORDER BY sequence"
        )

    def rows(self, where: str, *values: object, records: bool = False) -> Iterator[Row]:
        """By no index: one that is damaged could hide an entry."""
        last = "record" if records else "NULL"
        columns = f"sequence, account, question, text, hash, {last}"
        return self.raw.execute(f"SELECT {columns} FROM entries NOT INDEXED {where}", values)

    @property
    def decides(self) -> bool:
        """A file knows no roles: who may write it may write all of it."""
        return True

    def now(self) -> str:
        """The clock of this computer."""
        return datetime.now(UTC).isoformat(timespec="milliseconds")

    def append(self, entry: Entry, record: str | None) -> None:
        """A lastbit that knows no such entries refuses the file from now on, in its own words."""
        (before,) = self.raw.execute("PRAGMA user_version").fetchone()
        if before < entry.version:
            self.raw.execute(f"PRAGMA user_version = {entry.version}")
        self.raw.execute(
            "INSERT INTO entries (sequence, account, question, text, hash, record) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            row_of(entry, record),
        )

    def secret(self) -> object:
        found = self.raw.execute("SELECT value FROM secret").fetchone()
        return None if found is None else found[0]

    def check_writable(self) -> None:
        """Refuse to write where SQLite would take a page that is in use for a free one.

        New pages come from the list of free ones, if its count in the header is not 0, or from
        behind the last page by the header's count of pages. Entries are never deleted, so the list
        is almost always empty; where it is not, SQLite looks through the whole file.
        """
        (free,) = self.raw.execute("PRAGMA freelist_count").fetchone()
        (pages,) = self.raw.execute("PRAGMA page_count").fetchone()
        (size,) = self.raw.execute("PRAGMA page_size").fetchone()
        if pages * size != self.place.stat().st_size or (
            free and self.raw.execute("PRAGMA quick_check(1)").fetchone() != ("ok",)
        ):
            raise damaged(self.place, "is damaged (its count of pages is wrong); restore a backup")


def _check_schema(place: Path, connection: sqlite3.Connection) -> None:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if application != APPLICATION:
        raise damaged(place, "is a database, but not a ledger of lastbit's; name another")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > NEWEST:
        raise damaged(
            place, f"is of version {version}, and this lastbit knows {NEWEST}; upgrade lastbit"
        )
    rows = connection.execute(
        "SELECT sql FROM sqlite_master WHERE name NOT LIKE 'sqlite~_%' ESCAPE '~'"
    )
    if version not in range(1, NEWEST + 1) or sorted(str(sql) for (sql,) in rows) != sorted(SCHEMA):
        raise damaged(place, "had its tables or triggers changed; restore a backup")


@contextmanager
def translated(place: Path) -> Iterator[None]:
    """SQLite's errors as ours. Its own words are dropped: they may quote what is stored."""
    try:
        yield
    except LastbitError:
        raise
    except (sqlite3.Error, sqlite3.Warning, *_DAMAGE) as error:
        failed: Exception = for_people().file_failure(place, error)
    else:
        return
    raise failed from None
