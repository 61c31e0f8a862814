"""The port: who may come in, how many, who cancels whom, and how it all ends.

Law      at most `MOST_CONNECTIONS` clients are connected, `MOST_OF_ONE` of one principal, and
         `MOST_STRANGERS` that have not said who they are: of these the one that has waited longest
         makes room. A cancel is heard if it names a session and its key, and is answered by the end
         of its connection either way
Law      the port listens on the loopback address, or with a certificate: never else
Checked  tests/serve/test_sqlport.py, tests/serve/test_sqlport_wires.py
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import socket
import ssl
from dataclasses import dataclass

from lastbit.errors import InvalidParameter
from lastbit.sampling import secure_bits
from lastbit.serve.desk import Desk
from lastbit.serve.identity import Gate
from lastbit.serve.safety import Rates
from lastbit.serve.settings import Settings
from lastbit.serve.sqlport.asking import Asking
from lastbit.serve.sqlport.problems import SqlError
from lastbit.serve.sqlport.reading import Reader
from lastbit.serve.sqlport.session import Session
from lastbit.serve.sqlport.wires import Wire, WireServer

MOST_CONNECTIONS, MOST_OF_ONE, MOST_STRANGERS = 256, 64, 64
_LOG = logging.getLogger("lastbit.serve")


@dataclass(slots=True)
class _Client:
    """A session, the task that serves it, and by what it is cancelled."""

    session: Session
    task: asyncio.Task[None]
    principal: str | None = None
    process: int = 0
    secret: bytes = b""


class SqlPort(WireServer):
    """All SQL clients of a server."""

    def __init__(self, desk: Desk, gate: Gate, settings: Settings, rates: Rates) -> None:
        self._reader = Reader(settings.cards)
        self._told = desk, gate, self._reader, settings, rates
        self._settings, self.epsilon = settings, settings.sql_epsilon
        self.context = tls_context(settings)
        self._clients: dict[Wire, _Client] = {}
        self._by_process: dict[int, _Client] = {}
        self._server: asyncio.Server | None = None
        self._starting: asyncio.Task[None] | None = None

    def asking(self) -> Asking:
        """What a new session asks with."""
        return Asking(*self._told)

    # ------------------------------------------------------------ start and stop

    async def start(self, listener: socket.socket) -> None:
        """Take clients."""
        loop = asyncio.get_running_loop()
        self._starting = loop.create_task(self._reader.start())
        self._server = await loop.create_server(lambda: Wire(self), sock=listener)

    async def stop(self) -> None:
        """Tell all clients that it ends, and end."""
        if self._server is not None:
            self._server.close()
        clients = list(self._clients.items())
        wrong = SqlError("57P01", "the server is ending", hint="connect again later", fatal=True)
        await asyncio.gather(
            *(one.session.end(wrong) for _, one in clients), return_exceptions=True
        )
        for wire, client in clients:
            client.task.cancel()
            wire.close()
        await asyncio.gather(*(one.task for _, one in clients), return_exceptions=True)
        if self._starting is not None:
            self._starting.cancel()
        await self._reader.stop()

    # ------------------------------------------------------------ clients

    def begun(self, wire: Wire) -> None:
        session = Session(wire, self)
        task = asyncio.get_running_loop().create_task(self._serve(wire, session))
        self._clients[wire] = _Client(session, task)
        # who was told to go may still be there: many come at one turn of the loop
        here = {one: client for one, client in self._clients.items() if not one.is_ended}
        strangers = [one for one, client in here.items() if client.principal is None]
        if len(strangers) > MOST_STRANGERS or len(here) > MOST_CONNECTIONS:
            strangers[0].abort()  # perhaps the new one itself

    def ended(self, wire: Wire) -> None:
        client = self._clients.get(wire)
        if client is not None:
            client.session.hung_up()

    async def _serve(self, wire: Wire, session: Session) -> None:
        try:
            await session.run()
        except Exception as error:  # a fault of the program: this client alone sees it
            _LOG.error("SQL: a session ended by %s", type(error).__name__)
        finally:
            self._clients.pop(wire, None)
            wire.close()

    def enter(self, session: Session, principal: str) -> tuple[int, bytes]:
        """Take a session in; its number and key for cancelling. Refused where there are many."""
        mine = sum(client.principal == principal for client in self._clients.values())
        if mine >= MOST_OF_ONE:
            problem = f"sorry, too many clients: {MOST_OF_ONE} connections of yours are open"
            raise SqlError("53300", problem, hint="close some of them", fatal=True)
        client = next(one for one in self._clients.values() if one.session is session)
        number = secure_bits().fill(8).tobytes()
        process = int.from_bytes(number[:4], "big") & 0x7FFFFFFF
        while process == 0 or process in self._by_process:
            process = process % 0x7FFFFFFF + 1
        client.principal, client.process, client.secret = principal, process, number[4:]
        self._by_process[process] = client
        _LOG.info("%s SQL connected", principal)
        return process, client.secret

    def cells_of(self, principal: str) -> int:
        """How many values the sessions of a principal hold."""
        mine = (one.session for one in self._clients.values() if one.principal == principal)
        return sum(sum(session.cells_held()) for session in mine)

    def leave(self, session: Session) -> None:
        """A session has ended."""
        for process, client in list(self._by_process.items()):
            if client.session is session:
                del self._by_process[process]
                _LOG.info("%s SQL disconnected", client.principal)

    def cancel(self, process: int, secret: bytes) -> None:
        """Let a session not wait any more, if the key is right."""
        client = self._by_process.get(process)
        known = b"" if client is None else client.secret
        if hmac.compare_digest(known, secret) and client is not None:
            client.session.cancel()


# ---------------------------------------------------------------- where it listens


def sql_listener(settings: Settings) -> socket.socket:
    """The socket that the port listens on."""
    host, port = settings.sql_host, settings.sql_port or 0
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(MOST_CONNECTIONS)
    except OSError as error:
        listener.close()
        problem = f"cannot be listened on ({error.strerror})"
        raise InvalidParameter(
            f"{host}:{port}", problem=problem, remedy="pass another {sql_port}", sql_port=None
        ) from None
    listener.setblocking(False)  # noqa: FBT003
    return listener


def tls_context(settings: Settings) -> ssl.SSLContext | None:
    """What TLS is spoken with; None: it is not."""
    if settings.sql_certificate is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(settings.sql_certificate, settings.sql_key)
    except (OSError, ssl.SSLError):
        problem = "is not a certificate with its key"
        remedy = "pass {sql_certificate} and {sql_key}, PEM files that the server may read"
        raise InvalidParameter(
            "sql_certificate", problem=problem, remedy=remedy, sql_certificate=None, sql_key=None
        ) from None
    return context
