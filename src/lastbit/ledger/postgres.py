"""A ledger in PostgreSQL: one that machines share, with rights that the server itself keeps.

Law      a transaction that writes locks the one row of `head` before it reads anything, READ
         COMMITTED, with synchronous_commit = on. Entries are appended by functions of the ledger's
         owner alone, which check number, hash, link, record and sum again under the same lock; no
         other role may write to a table
Theorem  (a), (b) and (c) of `charging.py`. (d) A call whose connection is lost while it commits
         returns only if its entry is there for good, and raises "nothing was charged" only if it
         is not there and never will be. (e) A role that holds no more than `append` cannot change,
         drop or reorder an entry, open an account, change a budget, its neighbours, a role or an
         allowance, answer a reservation twice, or one of another principal, withdraw an answer,
         write what lastbit does not read or say another time than the server's clock, take an
         account of plain sums over its budget, or charge in the name of anybody but its own
         principal, or more than the allowance of that has left in the server's period, or charge
         an account that is kept by a filter
Proof    (a) under READ COMMITTED each statement sees all that was committed before it began. The
         lock is given when whoever held it has committed or aborted; every charge holds it; so what
         is read after it is the last state until the commit; `entered` refuses what was read
         earlier. (b) COMMIT returns when the log is synced; fsync, full_page_writes and
         synchronous_commit are looked at, a replica and unlogged tables are refused. (c) as in
         `charging.py`; besides, a second answer is refused by a unique index, and a second draw, or
         an answer by another plan than that of the draw, by `entered`. (d) The lost transaction
         holds the lock until it has ended, either way. So whoever gets the lock afterwards, on a
         new connection, sees the entry, or it was aborted. (e) by the grants, and the rules in
         `definitions.py`
Differs  a promoted replica that lacks the last commits forgets charges: where there are replicas,
         synchronous_standby_names must name one, and a head noted elsewhere tells. Whoever owns the
         tables, or is a superuser, can do anything; the chain and an anchor show it. What such a
         role, or an analyst with SQL at hand, can do is in docs/threat-model.md
Source   PostgreSQL, "Explicit Locking", "Read Committed Isolation Level", "Asynchronous Commit",
         "Writing SECURITY DEFINER Functions Safely"
Checked  tests/ledger/test_postgres.py and test_both_storages.py; tests/faults/test_lost_servers.py
         and test_killed.py
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

from lastbit.addresses import Address
from lastbit.errors import InvalidParameter, LastbitError
from lastbit.ledger.definitions import (
    AS_MADE,
    BY_INDEX,
    GIVEN,
    LAYOUT,
    LOOKED_AT,
    ROLES,
    digest_of_lines,
)
from lastbit.ledger.entry import Entry
from lastbit.ledger.storage import ALONE, NEWEST, Connections, Row, damaged, row_of, unusable
from lastbit.servers import unreached

OLDEST_SERVER = 15
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,39}")
_SERVER = """
SELECT current_setting('server_version_num')::integer / 10000, current_setting('server_encoding'),
       pg_is_in_recovery(), current_setting('transaction_read_only'), current_setting('fsync'),
       current_setting('full_page_writes'), current_setting('synchronous_commit'),
       current_setting('zero_damaged_pages'), current_setting('session_replication_role')
"""
_SOUND = ("UTF8", False, "off", "on", "on", "on", "off", "origin")
_KEEPING = (
    *("fsync", "full_page_writes", "synchronous_commit", "zero_damaged_pages"),
    "session_replication_role",
)


def schema_of(place: Address) -> str:
    """The schema that the ledger is in."""
    name = place.extra.get("schema", "lastbit")
    if not _NAME.fullmatch(name) or name.startswith("pg_"):
        problem = "names a schema that is not of small letters, digits and _"
        raise unusable(place, problem, "write, say, ?schema=ward")
    return name


def names_of(place: Address) -> dict[str, str]:
    """The schema and the roles of a ledger, quoted."""
    schema = schema_of(place)
    roles = {role: f'"{schema}_{role}"' for role in (*ROLES, "owner")}
    return {"s": f'"{schema}"', **roles}


# ---------------------------------------------------------------- a connection

# what a role or a database may have set otherwise, and what the server's descriptions of tables
# and functions, its texts of values and the meaning of ours depend on; the first one comes first
_MEANINGS: Mapping[str, str] = MappingProxyType(
    {
        "quote_all_identifiers": "off",
        "standard_conforming_strings": "on",
        "transform_null_equals": "off",
        "exit_on_error": "off",
        "DateStyle": "'ISO, YMD'",
        "IntervalStyle": "postgres",
        "TimeZone": "'UTC'",
        "extra_float_digits": "1",
        "bytea_output": "hex",
        "lc_monetary": "'C'",
        "lc_time": "'C'",
        "default_table_access_method": "heap",
        "default_tablespace": "''",
        "check_function_bodies": "on",
    }
)


def _settings(patience: float, *, local: bool) -> str:
    """By SET LOCAL in each transaction too: behind a pool, SET may have reached another server.

    Entries are read by no index, as in a file.
    """
    wait = max(int(patience * 1000), 1)
    given = {
        **_MEANINGS,
        "search_path": "pg_catalog, pg_temp",
        "synchronous_commit": "on",
        "lock_timeout": str(wait),
        "statement_timeout": str(max(4 * wait, 20_000)),
        "idle_in_transaction_session_timeout": str(_longest_idle(patience)),
        "idle_session_timeout": "0",
        "row_security": "off",
        "jit": "off",
        **dict.fromkeys(BY_INDEX, "off"),
    }
    how = "SET LOCAL" if local else "SET"
    return "; ".join(f"{how} {name} = {value}" for name, value in given.items())


def _longest_idle(patience: float) -> int:
    """Milliseconds after which the server ends a transaction of ours that says nothing."""
    return max(int(patience * 600), 5_000)


def _signed_in(place: Address, patience: float) -> Any:
    """A connection with our settings, to a server that keeps what it promised."""
    given = {
        "connect_timeout": "10",
        "application_name": "lastbit",
        "tcp_user_timeout": str(max(int(patience * 1000), 5_000)),
        **place.given,
        "client_encoding": "UTF8",
    }
    try:
        connect: Any = psycopg.connect
        connection = connect(**given, autocommit=True, prepare_threshold=None)
    except (psycopg.Error, UnicodeError, ValueError) as error:
        said = str(error)
        failed = unusable(place, *unreached(said))
    else:
        return connection
    raise failed from None  # the words of libpq may quote what is in the environment


def _check_server(place: Address, connection: Any) -> None:
    """Refuse a server that could forget a charge."""
    (version, *found) = connection.execute(_SERVER).fetchone()
    if version < OLDEST_SERVER:
        problem = f"is on PostgreSQL {version}, and needs {OLDEST_SERVER} or newer"
        raise unusable(place, problem, "upgrade the server")
    if tuple(found) == _SOUND:
        return
    encoding, replica, read_only = found[:3]
    if replica:
        raise unusable(place, "is on a replica, or may only be read", "name the primary")
    if encoding != "UTF8":
        raise unusable(place, "is in a database that is not in UTF8", "name another database")
    if read_only != "off":
        problem = "may only be read: default_transaction_read_only is on"
        raise unusable(place, problem, "turn it off for this user and database")
    wanted = zip(_KEEPING, found[3:], _SOUND[3:], strict=True)
    wrong = [f"{name} = {sound}" for name, there, sound in wanted if there != sound]
    raise unusable(
        place,
        "is on a server that may forget or damage what it has confirmed",
        f"set {', '.join(wrong)} for this server, user and database",
    )


def layout_of(place: Address, connection: Any) -> int:
    """The layout of the ledger; one whose tables, functions or rights were changed is refused."""
    schema, steward = schema_of(place), names_of(place)["steward"].strip('"')
    lines = sorted(line for (line,) in connection.execute(LOOKED_AT, (schema, steward)))
    if not any(line.startswith("relation entries ") for line in lines):
        there = "holds no ledger" if not lines else "is a schema, but not a ledger of lastbit's"
        raise unusable(place, there, f"make one by lastbit ledger init {place}")
    layout = AS_MADE.get(digest_of_lines(lines, schema))
    if layout is None:
        rights = [line for line in lines if line.startswith("grant ")]
        what = "its rights" if rights else "its tables, triggers or functions"
        raise damaged(
            place,
            f"had {what} changed; let its owner put them back (a backup lacks later charges)",
        )
    return layout


def check_made(place: Address, connection: Any) -> None:
    """Refuse what is not a ledger of the layout that this lastbit writes to."""
    if layout_of(place, connection) != LAYOUT:
        problem = "was made by an older lastbit, whose tables and functions check less"
        raise unusable(place, problem, f"let its owner run lastbit ledger upgrade {place}")


_CHECKED_AGAIN = 10.0  # seconds after which definitions and rights are looked at again


@contextmanager
def connected(
    place: Address, connections: Connections, *, patience: float
) -> Iterator[PostgresBooks]:
    """A ledger, open for one call; anything but a ledger of this version is refused.

    To sign in costs more than to charge, so a connection is left for the next call, with no
    transaction open; a server that went away meanwhile is noticed, and asked again.
    """
    with ALONE.lock, translated(place):
        books = connections.take((place, patience))
        if books is None or not books.is_alive():
            books = PostgresBooks(place, patience)
        try:
            books.open()
            yield books
        finally:
            if books.raw is not None and books.status != TransactionStatus.IDLE:
                books.close()
            if books.raw is not None:
                connections.leave((place, patience), books, None)


@dataclass(slots=True)
class PostgresBooks:
    """A ledger in a database, open for one call."""

    place: Address
    patience: float
    raw: Any = field(default=None, repr=False)
    steward: bool = False
    schema: str = ""
    pid: int = field(default_factory=os.getpid)
    checked: float = 0.0
    pending: list[str] = field(default_factory=list)
    """Hashes of entries that the open transaction has appended."""

    def open(self) -> None:
        """Connect, and look whether this is a ledger, on a server that keeps it."""
        if self.raw is None:
            self.connect()
        elif time.monotonic() < self.checked + _CHECKED_AGAIN:
            return
        by_index = "; ".join(f"SET LOCAL {name} = on" for name in BY_INDEX)
        with self.begun("READ COMMITTED, READ ONLY", by_index):
            check_made(self.place, self.raw)
            may_decide = f"has_function_privilege('{self.schema}.decide({GIVEN})', 'EXECUTE')"
            found = self.raw.execute(
                f"SELECT layout, version, {may_decide} FROM {self.schema}.head"
            ).fetchone()
        if found is None:
            raise damaged(self.place, "has lost its head; restore a backup")
        layout, version, self.steward = found
        if layout > LAYOUT or version > NEWEST:
            raise damaged(
                self.place, "is of a newer version than this lastbit knows; upgrade lastbit"
            )
        self.checked = time.monotonic()

    @property
    def status(self) -> Any:
        return self.raw.info.transaction_status

    @property
    def is_mine(self) -> bool:
        """Whether this process opened it: what a fork inherited is its parent's."""
        return self.pid == os.getpid()

    def connect(self) -> None:
        self.schema = names_of(self.place)["s"]
        self.raw = _signed_in(self.place, self.patience)
        self.raw.execute(_settings(self.patience, local=False))
        _check_server(self.place, self.raw)

    def is_alive(self) -> bool:
        """Whether the server is still there, and what it was."""
        try:
            _check_server(self.place, self.raw)
        except psycopg.Error:
            return False
        return True

    def close(self) -> None:
        """Only where it was opened: a child that says goodbye would end its parent's connection."""
        if self.raw is not None and self.is_mine:
            with suppress(psycopg.Error):
                self.raw.close()
            self.raw = None

    def __del__(self) -> None:
        self.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """The lock of `head` comes before anything is read."""
        self.pending.clear()
        with self.begun("READ COMMITTED, READ WRITE", f"SELECT {self.schema}.locked()"):
            yield
            self._commit()

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        with self.begun("REPEATABLE READ, READ ONLY", "SELECT 1"):
            yield

    @contextmanager
    def begun(self, how: str, first: str) -> Iterator[None]:
        settings = _settings(self.patience, local=True)
        try:
            self.raw.execute(f"BEGIN ISOLATION LEVEL {how}; {settings}; {first}")
            yield
        finally:
            if self.raw is not None and self.status != TransactionStatus.IDLE:
                with suppress(psycopg.Error):  # a lost connection has ended it, too
                    self.raw.execute("ROLLBACK")

    def _commit(self) -> None:
        try:
            ended = self.raw.execute("COMMIT").statusmessage
        except psycopg.Error:
            if self.status == TransactionStatus.IDLE:
                raise  # refused, by a server that is there
            ended = "COMMIT" if self._arrived() else ""
        if ended != "COMMIT":
            raise unusable(self.place, _GONE, "ask again")

    def _arrived(self) -> bool:
        """Whether the transaction that was lost at its commit was committed; waits until it ended.

        The lost one holds the lock of `head` until then.
        """
        self.checked = 0.0  # all is looked at again by the next call
        until = time.monotonic() + max(self.patience, _longest_idle(self.patience) / 1000 + 5)
        find = f"SELECT count(*) FROM {self.schema}.entries WHERE hash = ANY(%s)"
        while True:
            self.close()
            try:
                self.connect()
                self.raw.execute(f"BEGIN; {_settings(self.patience, local=True)}")
                self.raw.execute(f"SELECT {self.schema}.locked()")
                (count,) = self.raw.execute(find, (self.pending,)).fetchone()
                self.raw.execute("ROLLBACK")
                return bool(count == len(self.pending))
            except (psycopg.Error, InvalidParameter):
                if time.monotonic() > until:
                    raise unusable(self.place, _UNKNOWN, _ASK_AGAIN) from None
                time.sleep(0.2)

    def texts(self) -> Iterable[tuple[int, bytes, bytes, int | None]]:
        """One statement is one state."""
        rows: Iterable[tuple[int, bytes, bytes, int | None]] = self.raw.execute(
            "SELECT sequence, convert_to(text, 'UTF8'), convert_to(hash, 'UTF8'), "
            f"(SELECT last FROM {self.schema}.head) FROM {self.schema}.entries ORDER BY sequence",
            binary=True,
        )
        return rows

    def rows(self, where: str, *values: object, records: bool = False) -> Iterator[Row]:
        columns = f"sequence, account, question, text, hash, {'record' if records else 'NULL'}"
        tail = where.replace("?", "%s")
        statement = f"SELECT {columns} FROM {self.schema}.entries {tail}"
        if self.status != TransactionStatus.INTRANS or values:
            yield from self.raw.execute(statement, values or None)
            return
        with self.raw.cursor(name="lastbit") as rows:  # all of them, a part at a time
            rows.itersize = 200
            yield from rows.execute(statement)

    @property
    def decides(self) -> bool:
        return self.steward

    def now(self) -> str:
        """The clock of the server: one for all who share it."""
        written = '\'YYYY-MM-DD"T"HH24:MI:SS.MS"+00:00"\''
        clock = f"SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', {written})"
        return str(self.raw.execute(clock).fetchone()[0])

    def append(self, entry: Entry, record: str | None) -> None:
        """By the steward's function if this is a steward."""
        function = f"{self.schema}.{'decide' if self.steward else 'append'}"
        call = f"SELECT {function}(%s::bigint, %s, %s, %s, %s, %s)"
        self.raw.execute(call, row_of(entry, record))
        self.pending.append(entry.hash)

    def user(self) -> str:
        return str(self.raw.execute("SELECT session_user::text").fetchone()[0])

    def last(self) -> int | None:
        found = self.raw.execute(f"SELECT last FROM {self.schema}.head").fetchone()
        return None if found is None else int(found[0])

    def secret(self) -> object:
        found = self.raw.execute(f"SELECT value FROM {self.schema}.secret").fetchone()
        return None if found is None else found[0]

    def secret_digest(self) -> str | None:
        (found,) = self.raw.execute(f"SELECT {self.schema}.secret_digest()").fetchone()
        return None if found is None else str(found)

    def check_writable(self) -> None:
        """The server finds its own room."""

    def problems(self) -> Iterator[str]:
        found = self.raw.execute(
            f"SELECT (SELECT hash FROM {self.schema}.head) IS DISTINCT FROM "
            f"(SELECT hash FROM {self.schema}.entries ORDER BY sequence DESC LIMIT 1)"
        ).fetchone()
        if found != (False,):
            yield "the head names another entry than the last one"


_GONE = "lost its connection or was refused at the commit: nothing was charged"
_UNKNOWN = "lost its connection at the commit, and it is not known whether the entry was written"
_ASK_AGAIN = (
    "look whether the server runs, and ask the same again: what is paid for is not charged twice"
)


# ---------------------------------------------------------------- errors


@contextmanager
def translated(place: Address) -> Iterator[None]:
    """The server's errors as ours. Its own words are dropped: they may quote what is stored."""
    try:
        yield
    except psycopg.Error as error:
        code = error.sqlstate or ""
        if code in _REFUSED:
            failed: LastbitError = unusable(place, *_REFUSED[code])
        elif code[:2] in _REFUSED:
            failed = unusable(place, *_REFUSED[code[:2]])
        elif isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
            failed = unusable(place, "lost its connection; nothing was changed", "ask again")
        elif isinstance(error, psycopg.DataError) and not code:
            failed = unusable(place, "cannot hold such a text", "pass one without NUL")
        else:
            failed = damaged(place, f"is damaged, or was changed ({code}); restore a backup")
    except MemoryError:
        failed = damaged(place, "is damaged (it names a size beyond all memory); restore a backup")
    else:
        return
    raise failed from None


_RIGHTS = (
    "does not give you the right to do this",
    "let its owner GRANT you the role of an analyst, or of a steward if budgets are to change",
)
_LEFT = "lost its server; nothing was changed", "ask again when the server runs"
_REFUSED: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "55P03": ("is locked by another process", "try again when that has finished"),
        "40P01": ("is locked by another process", "try again when that has finished"),
        "57014": ("took longer than is waited for, and was cancelled", "try again"),
        "25P03": ("took longer than is waited for, and was cancelled", "try again"),
        "42501": _RIGHTS,
        "28": _RIGHTS,
        "57P01": _LEFT,
        "57P02": _LEFT,
        "57P03": _LEFT,
        "08": _LEFT,
        "25006": ("is on a replica, or may only be read", "name the primary"),
        "57P05": (
            "is on a server that ends sessions too soon; nothing was changed",
            "raise idle_session_timeout for this user and database",
        ),
        "25P04": (
            "is on a server that ends transactions too soon; nothing was changed",
            "raise transaction_timeout for this user and database",
        ),
        "53": ("has no room: the server is out of disk or memory", "free some"),
        "54": (
            "needs more than this server lets a statement have; nothing was changed",
            "raise max_stack_depth for this user and database",
        ),
        "58": ("cannot be read or written: the server's disk fails", "look at the disk"),
        "LB002": (
            "lets you charge in your own name alone, which is that of your database user",
            "ask as the principal of that name, or let a steward's role ask for you",
        ),
        "LB003": (
            "keeps this account by a filter, whose sums its server cannot check",
            "ask through lastbit serve, or as a steward",
        ),
        "LB001": ("refuses an entry that does not follow from those before", "ask again"),
    }
)
"""What is wrong with the place and not with the ledger, by SQLSTATE or its class."""
