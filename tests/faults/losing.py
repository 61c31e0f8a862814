"""A way to a PostgreSQL server that loses connections at chosen bytes; for one process's tests.

It listens on a socket of its own and passes on what it hears, until the chosen byte of the chosen
direction: then it is silent. It hangs up on both ends, or, to look like a network that is cut,
keeps the server's end open so that the server knows nothing of it.
"""

import contextlib
import socket
import threading
from pathlib import Path
from typing import Literal

Direction = Literal["up", "down"]


class Proxy:
    """Connections are passed on; of the first after `lose`, only so many bytes."""

    def __init__(self, folder: Path, server: Path) -> None:
        self.folder, self.server = folder, server
        self.listening = socket.socket(socket.AF_UNIX)
        self.listening.bind(str(folder / ".s.PGSQL.5432"))
        self.listening.listen(64)
        self.plan: tuple[Direction, int, bool] | None = None
        self.passed: dict[Direction, int] = {"up": 0, "down": 0}
        self.lost = False
        self.held: list[socket.socket] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def lose(self, direction: Direction, after: int, *, hang_up: bool = True) -> None:
        """Of the next connection, pass on only so many bytes in this direction."""
        self.plan, self.lost = (direction, after, hang_up), False

    def count(self) -> None:
        """Count the bytes of the connections from now on."""
        self.plan, self.passed = None, {"up": 0, "down": 0}

    def close(self) -> None:
        self.listening.close()
        for one in self.held:
            one.close()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self.listening.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            self.held += [client, server]
            try:
                server.connect(str(self.server / ".s.PGSQL.5432"))
            except OSError:
                client.close()
                server.close()
                continue
            plan, self.plan = self.plan, None
            for direction, near, far in (("up", client, server), ("down", server, client)):
                given = (direction, near, far, client, server, plan)
                threading.Thread(target=self._pass, args=given, daemon=True).start()

    def _pass(self, direction: Direction, near, far, client, server, plan) -> None:
        left = plan[1] if plan and plan[0] == direction else None
        with contextlib.suppress(OSError):
            while heard := near.recv(1 << 16):
                self.passed[direction] += len(heard)
                if left is not None and len(heard) > left:
                    far.sendall(heard[:left])
                    self.lost = True
                    break
                far.sendall(heard)
                left = None if left is None else left - len(heard)
        for end in (client, server) if plan is None or plan[2] else (client,):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
