"""What `lastbit serve` is told; nothing of it depends on data."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from lastbit.errors import InvalidParameter
from lastbit.exact import rational

LOOPBACK = ("127.0.0.1", "::1", "localhost")
_NAME = r"(?=.{1,253}(?::|$))[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*"
_ORIGIN = re.compile(
    rf"https://(?:{_NAME}|\[[0-9a-f:.]+\])(?::[0-9]{{1,5}})?"
    r"|http://(?:localhost|127\.0\.0\.1|\[::1\])(?::[0-9]{1,5})?"
)
_HEADER = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,63}")
_NOT_SENT = ("authorization", "cookie", "host", "origin", "connection", "content-length")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One server: its cards, where it keeps its state, where it listens."""

    cards: tuple[Path, ...]
    state: Path
    """A folder of this server alone (0700): `serve.db`, made-up rows, logs."""
    host: str = "127.0.0.1"
    port: int = 8000
    socket: Path | None = None
    """Listen on a Unix socket instead: what a trusted proxy needs."""
    behind_proxy: bool = False
    """A proxy does TLS in front: any other address than the loopback one needs it."""
    origin: str | None = None
    """Where browsers find the server: https://stats.example.org. None: host and port."""
    trusted_header: str | None = None
    """The header by which a proxy on the Unix socket names who signed in; None: no such sign-in."""
    slot: float | None = None
    """Seconds of a slot; None: calibrated on made-up rows."""
    strict: bool = False
    """Answers appear after one slot or never: 1 bit at most, where else there are 2."""
    worker_memory: int = 4 << 30
    """Bytes of address space that a worker may take."""
    session_hours: int = 12
    keep_days: int = 366
    """Days for which finished questions and the audit log are kept; the ledger is kept for good."""
    most_body: int = 64 << 10
    most_sql: int = 16 << 10
    most_waiting: int = 100
    """Questions in the queue of one table; more are turned away, and not charged."""
    sql_port: int | None = None
    """Where SQL clients find the server, by PostgreSQL's protocol; 0: any; None: nowhere."""
    sql_host: str = "127.0.0.1"
    sql_certificate: Path | None = None
    """What TLS is spoken with on that port: any address but the loopback one needs it."""
    sql_key: Path | None = None
    """The key of the certificate, where that file does not hold it."""
    sql_epsilon: str | None = None
    """What a question by that port costs where its asker says nothing; None: they must say."""
    previews_a_minute: int = 300
    questions_a_minute: int = 60

    def __post_init__(self) -> None:
        if not self.cards:
            raise _refused("cards", "are missing", "name a data card")
        if self.host not in LOOPBACK and not self.behind_proxy:
            problem = "is reached by other machines, and this server does not do TLS"
            remedy = "listen on 127.0.0.1, or pass {behind_proxy} and let a proxy do TLS"
            raise _refused("host", problem, remedy, behind_proxy=None)
        if (self.behind_proxy or self.socket is not None) and self.origin is None:
            what = "behind_proxy" if self.behind_proxy else "socket"
            problem = "needs the address that browsers open"
            raise _refused(what, problem, "pass {origin}", origin="https://stats.example.org")
        if self.origin is not None and not _ORIGIN.fullmatch(self.origin):
            problem = "is not https:// and the name of a host in small letters, with nothing behind"
            raise _refused("origin", problem, "write https://stats.example.org")
        if self.trusted_header is not None:
            if self.socket is None:
                problem = "would be believed from anyone who reaches the port"
                remedy = "pass {socket}: only the proxy may open it"
                raise _refused("trusted_header", problem, remedy, socket="/run/lastbit/socket")
            taken = self.trusted_header.lower() in _NOT_SENT
            if taken or not _HEADER.fullmatch(self.trusted_header):
                problem = "is not a header that a proxy sets"
                raise _refused("trusted_header", problem, "write one such as X-Remote-User")
        if not 1 <= self.keep_days <= 36_525:
            problem = "is not from a day to a hundred years"
            raise _refused("keep_days", problem, "write a number of days, such as 366")
        self._check_sql()
        if not 0 <= self.port <= 65535:
            raise _refused("port", "is not a port", "write a number from 1 to 65535, or 0 for any")
        if self.slot is not None and not 0.05 <= self.slot <= 3600:
            problem = "is not from 0.05 s to an hour"
            raise _refused("slot", problem, "write the seconds of a slot, such as 2")

    def _check_sql(self) -> None:
        if self.sql_port is not None and not 0 <= self.sql_port <= 65535:
            raise _refused("sql_port", "is not a port", "write a number from 1 to 65535, or 0")
        if self.sql_host not in LOOPBACK and self.sql_certificate is None:
            problem = "is reached by other machines, and tokens would be sent as they are"
            remedy = "pass {sql_certificate} and {sql_key}, or listen on 127.0.0.1"
            raise _refused("sql_host", problem, remedy, sql_certificate=None, sql_key=None)
        if self.sql_key is not None and self.sql_certificate is None:
            problem = "has no certificate"
            raise _refused("sql_key", problem, "pass {sql_certificate} too", sql_certificate=None)
        others = (self.sql_certificate, self.sql_epsilon)
        if self.sql_port is None and (self.sql_host not in LOOPBACK or any(others)):
            problem = "is not opened, and other options are about it"
            raise _refused("sql_port", problem, "pass {sql_port}", sql_port="5433")
        if self.sql_epsilon is not None:
            price = rational(self.sql_epsilon, "sql_epsilon")
            if price <= 0:
                raise _refused("sql_epsilon", "is not above 0", "write a price such as 0.1")

    @property
    def address(self) -> str:
        """What a browser is to open; also the only Origin from which it may post."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return self.origin or f"http://{host}:{self.port}"


def _refused(what: str, problem: str, remedy: str, **arguments: str | None) -> InvalidParameter:
    return InvalidParameter(what, problem=problem, remedy=remedy, **arguments)
