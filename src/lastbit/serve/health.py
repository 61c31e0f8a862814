"""Whether the server is well: "ok", or what is wrong in a word.

Open to everyone, so it says no more, and looks at most once a second.
"""

from __future__ import annotations

import os
import sqlite3
import time
from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool
from starlette.responses import PlainTextResponse

from lastbit.errors import LastbitError

if TYPE_CHECKING:
    from starlette.requests import Request

    from lastbit.serve.desk import Desk

LEAST_ROOM = 64 << 20
"""Bytes that a disk must have left: a ledger that cannot be written charges nothing."""
SECONDS = 1.0


async def answer(request: Request) -> PlainTextResponse:
    """200 and "ok", or 503 and a word."""
    state = request.app.state
    looked, word = getattr(state, "health", (0.0, None))
    if not looked or time.monotonic() - looked > SECONDS:
        word = await run_in_threadpool(trouble, state.desk)
        state.health = (time.monotonic(), word)
    return PlainTextResponse(f"{word or 'ok'}\n", status_code=200 if word is None else 503)


def trouble(desk: Desk) -> str | None:
    """What is wrong: store, disk, ledger, or what the desk says; None if nothing is."""
    try:
        with desk.store.transaction() as rows:
            rows.execute("SELECT count(*) FROM slots").fetchone()
        room = os.statvfs(desk.store.path.parent)
    except (sqlite3.Error, OSError):
        return "store"
    if room.f_bavail * room.f_frsize < LEAST_ROOM:
        return "disk"
    try:
        desk.catalogue.ledger.head  # noqa: B018  # opens it and reads its last entry
    except (LastbitError, OSError, sqlite3.Error):
        return "ledger"
    return desk.unwell
