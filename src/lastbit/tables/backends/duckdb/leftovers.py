"""What killed processes have left: folders with copies of rows, removed by the next rehearsal."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from contextlib import ExitStack, suppress

from lastbit.tables.backends.duckdb.engine import SCRATCH

_LOST = 60.0  # seconds for a new folder to be locked


def remove_leftovers(folder: str | None) -> None:
    """Remove such folders from this one: of this user, and locked by nobody."""
    place = folder or tempfile.gettempdir()
    with suppress(OSError):
        for name in os.listdir(place):
            if name.startswith(SCRATCH):
                with suppress(OSError):
                    _remove(os.path.join(place, name))


def _remove(folder: str) -> None:
    with ExitStack() as held:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        held.callback(os.close, descriptor)
        found = os.fstat(descriptor)
        if found.st_uid == os.geteuid() and found.st_mtime < time.time() - _LOST:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
