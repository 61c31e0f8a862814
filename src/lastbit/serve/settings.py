"""What `lastbit serve` is told; nothing of it depends on data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

LOOPBACK = ("127.0.0.1", "::1", "localhost")


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
    most_body: int = 64 << 10
    most_sql: int = 16 << 10
    most_waiting: int = 100
    """Questions in the queue of one table; more are turned away, and not charged."""
    previews_a_minute: int = 300
    questions_a_minute: int = 60

    @property
    def address(self) -> str:
        """What a browser is to open; also the only Origin from which it may post."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return self.origin or f"http://{host}:{self.port}"
