"""Whether the server is well: "ok", or what is wrong in a word.

Open to everyone, so it says no more, and looks at most once a second.
"""

from __future__ import annotations

import os
import sqlite3
import time
from typing import TYPE_CHECKING, Literal

from starlette.responses import PlainTextResponse

from lastbit.errors import LastbitError

if TYPE_CHECKING:
    from lastbit.serve.handling import Call
    from lastbit.serve.identity import Gate

LEAST_ROOM = 64 << 20
"""Bytes that a disk must have left: a ledger that cannot be written charges nothing."""
SECONDS = 1.0


def health(call: Call) -> PlainTextResponse:
    """200 and "ok", or 503 and a word."""
    state = call.request.app.state
    looked, word = getattr(state, "health", (0.0, None))
    if not looked or time.monotonic() - looked > SECONDS:
        word = state.desk.unwell or trouble(state.gate)
        state.health = (time.monotonic(), word)
    return PlainTextResponse(f"{word or 'ok'}\n", status_code=200 if word is None else 503)


def trouble(gate: Gate) -> Literal["store", "disk", "ledger"] | None:
    """What cannot be written or read; None if all can."""
    try:
        with gate.store.transaction() as rows:
            rows.execute("SELECT count(*) FROM slots").fetchone()
        room = os.statvfs(gate.store.path.parent)
    except (sqlite3.Error, OSError):
        return "store"
    if room.f_bavail * room.f_frsize < LEAST_ROOM:
        return "disk"
    try:
        gate.ledger.head  # noqa: B018  # opens it and reads its last entry
    except (LastbitError, OSError, sqlite3.Error):
        return "ledger"
    return None
