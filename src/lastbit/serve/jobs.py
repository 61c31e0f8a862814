"""The rows of the store about questions that were taken; safe to use from threads."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Mapping
from typing import Any, cast

from lastbit.sampling import secure_bits
from lastbit.serve.catalogue import Reading
from lastbit.serve.questions import Question, State
from lastbit.serve.store import Store

_PART = "an answer on record says this among other things; nothing was charged"
_OPEN = "state IN ('waiting', 'running')"


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

    def forget_lost(self, reading: Reading) -> None:
        """Forget those whose charge or answer the ledger does not have.

        A backup was restored, and their numbers may be those of other answers by now.
        """
        with self._store.transaction() as rows:
            known = rows.execute("SELECT id, reservation, entry FROM jobs").fetchall()
            lost = [(id,) for id, paid, entry in known if not reading.holds(paid, entry)]
            rows.executemany("DELETE FROM jobs WHERE id = ?", lost)

    def waiting(self, table: str) -> list[sqlite3.Row]:
        """Those of a table that are not finished, in their order."""
        return self._rows(f"table_name = ? AND {_OPEN} ORDER BY sequence", table)

    def with_id(self, id: str) -> sqlite3.Row | None:
        """The job of this name."""
        return next(iter(self._rows("id = ?", id)), None)

    def of_key(self, principal: str, key: str) -> sqlite3.Row | None:
        """The job that somebody asked for under this key."""
        return next(iter(self._rows("principal = ? AND idempotency = ?", principal, key)), None)

    def newest(self, principal: str | None) -> list[sqlite3.Row]:
        """The newest of a principal, or of all."""
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
        """The row of a new job."""
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
        """Write down what became of a job."""
        with self._store.transaction() as rows:
            rows.execute(
                "UPDATE jobs SET state = ?, started = ?, slots = ?, entry = ?, reason = ? "
                "WHERE id = ?",
                (state, started, slots, entry, reason, id),
            )
