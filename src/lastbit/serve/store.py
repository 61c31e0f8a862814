"""What the server must remember besides the ledger: tokens, sessions, links, jobs, the audit log.

No money and no answer is kept here: those are the ledger's, and a server that has lost this file
has lost who is signed in and which questions were waiting, no more. Secrets are kept as digests.

Law  `transaction` is all or nothing and synced before it returns, as SQLite gives it
     (`journal_mode=WAL`, `synchronous=FULL`); one connection a thread.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from lastbit.errors import InvalidParameter
from lastbit.sampling import secure_bits
from lastbit.serve.questions import Question, State

VERSION = 1
_PART = "an answer on record says this among other things; nothing was charged"
_OPEN = "state IN ('waiting', 'running')"
_SCHEMA = """
CREATE TABLE tokens (
  digest TEXT PRIMARY KEY,          -- SHA-256 of the token; the token itself is shown once
  id TEXT NOT NULL UNIQUE,          -- by which it is listed and revoked
  principal TEXT NOT NULL,
  since INTEGER NOT NULL,           -- the entry that gave the principal its role
  parent TEXT,                      -- digest of the token that made it, and is revoked with it
  name TEXT NOT NULL,               -- what it is for, in its owner's words
  made INTEGER NOT NULL,
  expires INTEGER NOT NULL,
  rights TEXT NOT NULL,             -- JSON list of rights that are left; cut with the role's
  tables TEXT,                      -- JSON list of tables it is restricted to; NULL: no restriction
  used INTEGER,
  revoked INTEGER
) STRICT;
CREATE TABLE sessions (
  digest TEXT PRIMARY KEY,
  principal TEXT NOT NULL,
  since INTEGER NOT NULL,
  token TEXT,                       -- digest of the token it was begun by: its restrictions hold
  made INTEGER NOT NULL,
  expires INTEGER NOT NULL
) STRICT;
CREATE TABLE links (
  digest TEXT PRIMARY KEY,          -- of a one-time code
  principal TEXT,                   -- NULL: the first steward, who chooses a name
  since INTEGER NOT NULL,
  expires INTEGER NOT NULL,
  used INTEGER
) STRICT;
CREATE TABLE jobs (
  id TEXT PRIMARY KEY,
  sequence INTEGER NOT NULL UNIQUE, -- order of submission
  table_name TEXT NOT NULL,
  principal TEXT NOT NULL,
  question TEXT NOT NULL,           -- JSON of a Question
  idempotency TEXT,                 -- the client's key
  submitted REAL NOT NULL,
  state TEXT NOT NULL,              -- waiting, running, answered, no answer, refused
  reservation TEXT,                 -- hash of the entry that paid
  cost TEXT,                        -- JSON; NULL: recorded, no charge
  started REAL,
  slots INTEGER,                    -- after how many slots it appeared
  entry INTEGER,                    -- number of the answer in the ledger
  reason TEXT,
  UNIQUE (principal, idempotency)
) STRICT;
CREATE INDEX jobs_waiting ON jobs (table_name, state, sequence);
CREATE TABLE slots (table_name TEXT PRIMARY KEY, seconds REAL NOT NULL, why TEXT NOT NULL) STRICT;
CREATE TABLE audit (
  sequence INTEGER PRIMARY KEY AUTOINCREMENT,
  at REAL NOT NULL,
  principal TEXT,
  action TEXT NOT NULL,             -- a word of a fixed list
  subject TEXT,                     -- table, account or principal; never a value
  words TEXT
) STRICT;
"""


class Store:
    """The server's own file; safe to use from threads."""

    __slots__ = ("_local", "path")

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path = folder / "serve.db"
        self._local = threading.local()
        if not self.path.exists():
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        with self.transaction() as rows:
            (found,) = rows.execute("PRAGMA user_version").fetchone()
            if found == 0:
                for statement in _SCHEMA.split(";\n"):
                    rows.execute(statement)
                rows.execute(f"PRAGMA user_version = {VERSION}")
            elif found != VERSION:
                raise InvalidParameter(
                    f"the server's state {self.path}",
                    problem="was written by another version of lastbit",
                    remedy="use that version, or name another folder by --state",
                )

    def connection(self) -> sqlite3.Connection:
        """The one of the calling thread."""
        found: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if found is None:
            found = sqlite3.connect(self.path, isolation_level=None, timeout=30)
            found.row_factory = sqlite3.Row
            found.execute("PRAGMA journal_mode = WAL")
            found.execute("PRAGMA synchronous = FULL")
            self._local.connection = found
        return found

    def swept(self, now: float, *, keep_days: int) -> None:
        """Forget what has ended: secrets that expired, and of older days questions and the log.

        Questions that wait or run stay, however old. Charges and answers are the ledger's.
        """
        old = now - keep_days * 86_400
        with self.transaction() as rows:
            rows.execute("DELETE FROM links WHERE expires <= ?", (now,))
            rows.execute("DELETE FROM sessions WHERE expires <= ?", (now,))
            rows.execute("DELETE FROM tokens WHERE max(expires, coalesce(used, 0)) <= ?", (old,))
            rows.execute("DELETE FROM audit WHERE at <= ?", (old,))
            rows.execute(
                "DELETE FROM jobs WHERE submitted <= ? AND state NOT IN ('waiting', 'running')",
                (old,),
            )

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All or nothing; nobody else writes meanwhile."""
        rows = self.connection()
        rows.execute("BEGIN IMMEDIATE")
        try:
            yield rows
        except BaseException:
            rows.execute("ROLLBACK")
            raise
        rows.execute("COMMIT")


# ---------------------------------------------------------------- jobs


def canonical(question: Question) -> str:
    """As rows hold it."""
    return json.dumps(question.to_json(), sort_keys=True)


class Jobs:
    """Jobs as the store has them; `desk.py` says what they are and when they are written."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def _rows(self, condition: str, *values: Any) -> list[sqlite3.Row]:
        query = f"SELECT * FROM jobs WHERE {condition}"
        return self._store.connection().execute(query, values).fetchall()

    def forget_lost(self, is_held: Callable[[str | None, int | None], bool]) -> None:
        """Forget those whose charge or answer the ledger does not have, by reservation and entry.

        A backup was restored, and their numbers may be those of other answers by now.
        """
        with self._store.transaction() as rows:
            known = rows.execute("SELECT id, reservation, entry FROM jobs").fetchall()
            lost = [(id,) for id, paid, entry in known if not is_held(paid, entry)]
            rows.executemany("DELETE FROM jobs WHERE id = ?", lost)

    def waiting(self, table: str) -> list[sqlite3.Row]:
        """Those of a table that are not finished, in their order."""
        return self._rows(f"table_name = ? AND {_OPEN} ORDER BY sequence", table)

    def with_id(self, id: str) -> sqlite3.Row | None:
        return next(iter(self._rows("id = ?", id)), None)

    def of_key(self, principal: str, key: str) -> sqlite3.Row | None:
        """The job that somebody asked for under this key."""
        return next(iter(self._rows("principal = ? AND idempotency = ?", principal, key)), None)

    def newest(self, principal: str | None) -> list[sqlite3.Row]:
        whose = "principal = ?1" if principal is not None else "?1 IS NULL"
        return self._rows(f"{whose} ORDER BY sequence DESC LIMIT 1000", principal)

    def slots_of(self, entry: int | None) -> int | None:
        """After how many slots an answer appeared when it was first given."""
        rows = self._rows("entry = ? AND slots IS NOT NULL ORDER BY sequence", entry)
        return rows[0]["slots"] if rows else None

    def add(
        self,
        table: str,
        question: Question,
        principal: str,
        key: str | None,
        paid: Mapping[str, Any],
    ) -> sqlite3.Row:
        reservation, cost = paid.get("reservation"), paid.get("cost")
        values = {
            "id": secure_bits().fill(16).tobytes().hex(),
            "table_name": table,
            "principal": principal,
            "question": canonical(question),
            "idempotency": key,
            "submitted": time.time(),
            "state": "waiting",
            "reservation": reservation,
            "cost": None if cost is None else json.dumps(cost),
            "entry": paid.get("recorded"),
            "reason": _PART if paid.get("part") else None,
        }
        names, marks = ", ".join(values), ", ".join("?" * len(values))
        with self._store.transaction() as rows:
            told = "SELECT 1 FROM jobs WHERE reservation = ? AND cost IS NOT NULL"
            if rows.execute(told, (reservation,)).fetchone() is not None:
                values["cost"] = None  # charged for an earlier job, which waits as well
            rows.execute(
                f"INSERT INTO jobs (sequence, {names}) SELECT "
                f"COALESCE(MAX(sequence), 0) + 1, {marks} FROM jobs",
                tuple(values.values()),
            )
            made = rows.execute("SELECT * FROM jobs WHERE id = ?", (values["id"],)).fetchone()
        return cast("sqlite3.Row", made)

    def finish(
        self,
        id: str,
        *,
        state: State,
        started: float,
        slots: int | None,
        entry: int | None,
        reason: str | None,
    ) -> None:
        with self._store.transaction() as rows:
            rows.execute(
                "UPDATE jobs SET state = ?, started = ?, slots = ?, entry = ?, reason = ? "
                "WHERE id = ?",
                (state, started, slots, entry, reason, id),
            )
