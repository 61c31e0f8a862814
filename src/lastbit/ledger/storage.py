"""What a ledger asks of the place that keeps it, and what is the same in all of them.

A place is a file (`sqlite.py`) or a database that machines share (`postgres.py`). Both have the
same functions (`Storage`) and give the same `Books`; a ledger does not know which it has.

**Alone.** A call has a connection for itself, under a lock of the whole process which a fork takes
too: no child ever inherits the belief that it holds a lock of the database. Between calls a
connection is closed, or left in the `Connections` of its ledger, idle: no transaction is open, so
it holds no lock. It is used again only by the process that opened it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from lastbit.errors import InvalidParameter, LedgerDamaged
from lastbit.ledger.entry import Entry

if TYPE_CHECKING:
    from lastbit.addresses import Address

Place: TypeAlias = "Path | Address"
Row: TypeAlias = tuple[int, str | None, str | None, str, str, str | None]
"""An entry as it is kept: number, account, question, text, hash, record."""

SECRET_BYTES = 32
NEWEST = 7
"""1 had no reservations, 2 no accounts under the filter, 3 none under the Gaussian filter, 4 no
principals, 5 no accounts that state their neighbours and no answers that are withdrawn, 6 no
numbers that are drawn before there is an answer."""


def row_of(entry: Entry, record: str | None) -> Row:
    """An entry and the text of its answer, as they are kept."""
    return entry.sequence, entry.account, entry.question, entry.text, entry.hash, record


class Books(Protocol):
    """A ledger that is open, for one call."""

    @property
    def place(self) -> Place: ...

    def transaction(self) -> AbstractContextManager[None]:
        """All or nothing, and nobody else writes meanwhile: reads inside see the last state."""

    def texts(self) -> Iterable[tuple[int, bytes, bytes, int | None]]:
        """Number, text and hash of every entry, in order and by no index; and how many there were.

        One state, whoever writes meanwhile.
        """

    def rows(self, where: str, *values: object, records: bool = False) -> Iterator[Row]:
        """The entries that this SQL tail picks; answers may be long, and are read where wanted."""

    def append(self, entry: Entry, record: str | None) -> None:
        """Write an entry that has its number, and the text of its answer beside it."""

    @property
    def decides(self) -> bool:
        """Whether the place itself lets us decide on budgets, as it lets a steward."""

    def now(self) -> str:
        """The time, by the clock that this ledger goes by."""

    def secret(self) -> object:
        """What is kept as the ledger's secret."""

    def check_writable(self) -> None:
        """Refuse to write where that could damage what is there."""


class Storage(Protocol):
    """A kind of place."""

    def connected(
        self, place: Any, connections: Connections, *, patience: float
    ) -> AbstractContextManager[Books]:
        """A ledger, open for one call; anything but a ledger of this version is refused."""


# ---------------------------------------------------------------- one connection at a time


class _Alone:
    """One connection at a time in a process, and none while it forks."""

    __slots__ = ("lock",)

    def __init__(self) -> None:
        self.lock = threading.RLock()
        os.register_at_fork(
            before=self._take, after_in_parent=self._give, after_in_child=self._renew
        )

    def _take(self) -> None:
        self.lock.acquire()

    def _give(self) -> None:
        self.lock.release()  # the lock of now, which need not be the first one

    def _renew(self) -> None:
        self.lock = threading.RLock()


ALONE = _Alone()


class Connections:
    """Where one call of a ledger leaves its connection for the next; at most one, and idle.

    A file is closed after each call, unless that is inside `lasting`. A server, which takes long to
    sign in to, is left as long as this lives.
    """

    __slots__ = ("_idle", "_inside")

    def __init__(self) -> None:
        # by process: a child neither uses nor closes what a fork has given it
        self._idle: dict[int, tuple[object, Any, Callable[[], None] | None]] = {}
        self._inside: set[object] = set()

    def __reduce__(self) -> Any:
        return Connections, ()  # another process has connections of its own

    @contextmanager
    def lasting(self) -> Iterator[Connections]:
        """Inside, all calls use one connection to a file; it is closed when the outermost ends."""
        call = object()
        self._inside.add(call)
        try:
            yield self
        finally:
            self._inside.discard(call)
            if not self._inside:
                with ALONE.lock:
                    _, _, close = self._idle.get(os.getpid(), _NO_CONNECTION)
                    if close is not None:
                        self.take(None)

    def take(self, key: object) -> Any:
        """The connection that was left under this key; any other that was left is closed."""
        kept, connection, close = self._idle.pop(os.getpid(), _NO_CONNECTION)
        if kept == key is not None:
            return connection
        if close is not None:
            close()
        return None

    def leave(self, key: object, connection: Any, close: Callable[[], None] | None) -> None:
        """Leave a connection for the next call; None closes itself when nobody holds it."""
        self.take(None)
        self._idle[os.getpid()] = key, connection, close

    @property
    def lasts(self) -> bool:
        """Whether we are inside `lasting`."""
        return bool(self._inside)


_NO_CONNECTION = (None, None, None)


# ---------------------------------------------------------------- errors


def damaged(place: Place, problem: str) -> LedgerDamaged:
    """The error, with the place in front; nothing is released."""
    return LedgerDamaged(f"the ledger {place} {problem}")


def unusable(place: Place, problem: str, remedy: str = "name another file") -> InvalidParameter:
    """What is wrong with the place and not with the ledger."""
    return InvalidParameter(f"the ledger {place}", problem=problem, remedy=remedy)
