"""A whole server with a SQL port, and clients of it."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lastbit.serve.catalogue import Catalogue
from lastbit.serve.desk import Desk
from lastbit.serve.identity import Gate
from lastbit.serve.safety import Rates
from lastbit.serve.settings import Settings
from lastbit.serve.sqlport.port import SqlPort, sql_listener
from lastbit.serve.store import Store
from tests.serve.desks import written


@dataclass(kw_only=True)
class SqlServing:
    """A server whose SQL port takes clients, and its insides."""

    settings: Settings
    desk: Desk
    gate: Gate
    port: SqlPort
    number: int
    tokens: dict[str, str]
    loop: asyncio.AbstractEventLoop

    def told(self, user: str = "ana") -> dict[str, Any]:
        """How a client connects."""
        password = self.tokens[user]
        return {"host": "127.0.0.1", "port": self.number, "user": user, "password": password}

    def address(self, user: str = "ana", scheme: str = "postgresql") -> str:
        return f"{scheme}://{user}:{self.tokens[user]}@127.0.0.1:{self.number}/lastbit"

    def charges(self) -> int:
        """How many prices the ledger holds."""
        return sum(entry.kind == "reserved" for entry in self.desk.catalogue.ledger.entries())


@contextmanager
def sql_serving(folder: Path, *names: str, **settings: Any) -> Iterator[SqlServing]:
    """A server of these tables (visits), with short slots; `ana` may ask."""
    cards = written(folder, *names)
    chosen = {"slot": 1.0, "sql_port": 0, **settings}
    told = Settings(cards=cards, state=folder / "state", **chosen)
    store = Store(told.state)
    desk = Desk(Catalogue(told, store), store, told)
    gate = Gate(store, desk.catalogue.ledger, told)
    tokens = {
        name: gate.token_made(name, name="test", days=1)[0]
        for name in ("ana", "ben", "stella", "otto")
    }
    port = SqlPort(desk, gate, told, Rates())
    listener = sql_listener(told)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def do(work: Any, within: float = 120) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result(within)

    try:
        do(desk.start())
        do(desk.up.wait())
        do(port.start(listener))
        yield SqlServing(
            settings=told,
            desk=desk,
            gate=gate,
            port=port,
            number=listener.getsockname()[1],
            tokens=tokens,
            loop=loop,
        )
    finally:
        do(desk.stop())
        do(port.stop())
        listener.close()
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        loop.close()


def certificate_in(folder: Path) -> tuple[Path, Path]:
    """A certificate of localhost that signs itself, and its key."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl makes the certificate")
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    command = f"{openssl} req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1"
    command += f" -subj /CN=localhost -addext subjectAltName=DNS:localhost -keyout {key}"
    subprocess.run([*command.split(), "-out", str(certificate)], check=True, capture_output=True)
    return certificate, key
