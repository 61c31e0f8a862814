"""What the server must remember besides the ledger: tokens, sessions, links, jobs, the audit log.

No money and no answer is kept here: those are the ledger's, and a server that has lost this file
has lost who is signed in and which questions were waiting, no more. Secrets are kept as digests.

Law  `transaction` is all or nothing and synced before it returns, as SQLite gives it
     (`journal_mode=WAL`, `synchronous=FULL`); one connection a thread.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lastbit.errors import InvalidParameter

VERSION = 1
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
  question TEXT NOT NULL,           -- JSON of desk.Question
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
