"""A server from its start to its end: where it listens, who gets in first, how it stops.

Start. The port is taken and the cards are read before anything is shown. A card that never had a
version of its data accepted has it accepted now, on record. The first steward comes in by a
one-time link, which is printed: who sees this terminal owns the server.

Stop. At the first signal that asks it to end no question is taken any more, those that run end with
their slots, pages are still shown, and then the server exits with 0. Questions that wait stay in
the store for the next start. A second signal ends it at once; what ran then is run again at the
next start, with new noise: the first was never shown.

Law      however a server ends, somebody is told why. Every signal that can be caught and that would
         end it (`ENDING`) is named in the log, unless who started it has it ignored (nohup); an
         error, by its class; a fault of the interpreter, by what it prints itself. All of them are
         noted in the state folder too, since a terminal that is gone shows nothing. What cannot be
         caught (kill -9, no memory, no power) leaves the note of the start, and the next start says
         that the one before ended without a word
Checked  tests/serve/test_endings.py

Log. One line a request (`safety.py`): when, who, method, the pattern of the path, status. No query
string, no one-time code, no value, and of how long a statement ran nothing but that a question took
its last slot, which everybody is shown. Of an error, its class.
"""

from __future__ import annotations

import asyncio
import errno
import faulthandler
import logging
import os
import signal
import socket
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

import uvicorn

from lastbit.errors import InvalidParameter, LastbitError, NotAllowed
from lastbit.ledger import Ledger
from lastbit.release import accept_data
from lastbit.serve.app import application
from lastbit.serve.catalogue import Catalogue
from lastbit.serve.desk import Desk
from lastbit.serve.identity import Gate
from lastbit.serve.safety import Rates, server_config
from lastbit.serve.settings import Settings
from lastbit.serve.sqlport.port import SqlPort, sql_listener
from lastbit.serve.store import Store
from lastbit.tables import read_card

OURS = "lastbit.serve"
_LOG = logging.getLogger(OURS)
BACKLOG = 2048
LINE = "\n"
ADDRESS = "address"
"""The file of the state folder that says where the server is found, for `lastbit serve --link`."""
RUN = "last-run"
"""The file of the state folder that says when the server was started, and how it ended."""
ENDING: Mapping[signal.Signals, str] = MappingProxyType(
    {
        signal.SIGINT: "Ctrl-C",
        signal.SIGTERM: "it was told to stop",
        signal.SIGHUP: "its terminal was closed, or the connection to it",
        signal.SIGQUIT: "Ctrl-\\",
        signal.SIGXCPU: "it had used all of the processor time that it may",
        **dict.fromkeys(
            (
                signal.SIGUSR1,
                signal.SIGUSR2,
                signal.SIGALRM,
                signal.SIGVTALRM,
                signal.SIGPROF,
                signal.SIGIO,
            ),
            "another process sent it",
        ),
    }
)
"""Signals that end a program unless it says otherwise, and what they mean."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """What is to be said once the server answers."""

    address: str
    sql: str | None
    """Host and port for SQL clients, if there is such a port."""
    catalogue: Catalogue
    accepted: Sequence[str]
    """Tables whose data were accepted as they are, since no version had been."""
    waiting: Sequence[str]
    """Tables whose data a steward must accept first."""
    before: str | None
    """How the server of this folder ended that ran before."""
    links: Mapping[str, str]
    """One-time addresses by name; by "" that of the first steward, who chooses a name."""


def serve(
    settings: Settings,
    *,
    announce: Callable[[Started], None],
    log: Callable[[str], None],
    links_for: tuple[str, ...] = (),
) -> None:
    """Serve until a signal ends it; how it ended is logged, and noted in the state folder."""
    with (
        _listening(settings) as (listener, settings),
        _logging(log),
        _in_words(settings.state) as run,
        _listening_for_sql(settings) as (sql, settings),
    ):
        store = Store(settings.state)
        catalogue = Catalogue(settings, store)
        accepted, waiting = _first_versions(catalogue)
        gate = Gate(store, catalogue.ledger, settings)
        desk, rates = Desk(catalogue, store, settings), Rates()
        port = None if sql is None else SqlPort(desk, gate, settings, rates)

        def started() -> None:
            run.started()
            (settings.state / ADDRESS).write_text(settings.address, "utf-8")
            links = {name: settings.address + gate.link_made(name) for name in links_for}
            if not catalogue.ledger.principals():
                links[""] = settings.address + gate.link_made(None)
            announce(
                Started(
                    address=settings.address,
                    sql=None if sql is None else f"{settings.sql_host}:{settings.sql_port}",
                    catalogue=catalogue,
                    accepted=accepted,
                    waiting=waiting,
                    before=run.before,
                    links=links,
                )
            )

        config = server_config(application(desk, gate, settings, rates))
        sockets = listener, sql
        asyncio.run(_until_told(_Server(config, started), sockets, desk, port, run))


def link_for(settings: Settings, name: str) -> str:
    """Another one-time link for a principal, or for the first steward while there is none."""
    store = Store(settings.state)
    ledger = Ledger.existing(str(read_card(settings.cards[0]).ledger))
    known = {principal.name: principal.active for principal in ledger.principals()}
    if known and not known.get(name):
        problem = "is not a user of this server"
        raise InvalidParameter(name, problem=problem, remedy="add it: lastbit user add CARD NAME")
    address = settings.address
    with suppress(OSError):  # a server that was never started has left none
        address = (settings.state / ADDRESS).read_text("utf-8")
    return address + Gate(store, ledger, settings).link_made(name if known else None)


def _first_versions(catalogue: Catalogue) -> tuple[list[str], list[str]]:
    """Tables whose data are accepted now, and those that wait for a steward to do so."""
    accepted, waiting = [], []
    for table in catalogue.tables.values():
        if table.data() is not None:
            continue
        try:
            accept_data(table.card, who=catalogue.ledger.user)
        except NotAllowed:  # the ledger has users, and who starts the server is not a steward
            waiting.append(table.name)
        else:
            accepted.append(table.name)
    return accepted, waiting


# ---------------------------------------------------------------- start and stop


class _Server(uvicorn.Server):
    """uvicorn's, which tells when it answers, and leaves signals to us."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._tell = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._tell()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def _until_told(
    server: _Server,
    sockets: tuple[socket.socket, socket.socket | None],
    desk: Desk,
    port: SqlPort | None,
    run: _Run,
) -> None:
    listener, sql = sockets
    loop = asyncio.get_running_loop()
    told: list[asyncio.Task[None]] = []

    async def stop() -> None:
        try:
            await desk.stop()
            if port is not None:
                await port.stop()
        finally:  # an error is logged, and must not keep the server up
            server.should_exit = True

    def signalled(number: signal.Signals) -> None:
        if told:
            _LOG.warning("%s, once more: ended at once", _named(number))
            run.ended(f"at once, by {_named(number)}")
            os._exit(128 + number)
        _LOG.warning("%s: ending once the questions that run have ended", _named(number))
        run.ended(f"by {_named(number)}")
        told.append(loop.create_task(stop()))

    for number in _caught():
        loop.add_signal_handler(number, signalled, number)
    await desk.start()
    if port is not None and sql is not None:
        await port.start(sql)
    try:
        await server.serve(sockets=[listener])
    finally:
        if not told:
            await desk.stop()
    await asyncio.gather(*told)
    if not told:
        problem, remedy = "ended by itself", "read the lines above, and start it again"
        raise InvalidParameter("the server", problem=problem, remedy=remedy)


# ---------------------------------------------------------------- how it ended


class _Run:
    """What the state folder says of this run, once it has the folder to itself."""

    def __init__(self, state: Path) -> None:
        self.before, self._file, self._is_ours = last_run(state), state / RUN, False

    def started(self) -> None:
        self._is_ours = True
        self.ended("")

    def ended(self, how: str) -> None:
        when = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
        if self._is_ours:
            with suppress(OSError):  # the disk is full: the log says how it ended
                self._file.write_text(f"{when}\n{how}", "utf-8")


def last_run(state: Path) -> str | None:
    """How the last server of this folder ended; None if there was none."""
    with suppress(OSError, ValueError):
        when, how = (state / RUN).read_text("utf-8").split("\n")
        if how:
            return f"ended {when} {how}"
        return f"started {when}, and ended without a word: it was killed, or the machine went down"
    return None


class _Told(BaseException):
    """A signal that came while the server was not up yet; no net for errors may catch it."""


@contextmanager
def _in_words(state: Path) -> Iterator[_Run]:
    """Whatever ends what is done inside is said, and noted in the state folder."""
    run = _Run(state)

    def told(number: int, _: object) -> None:
        raise _Told(number)

    if not faulthandler.is_enabled():
        with suppress(OSError, RuntimeError):  # there is no stderr
            faulthandler.enable()  # names functions and lines, and no value
    kept = {number: signal.signal(number, told) for number in _caught()}
    try:
        yield run
    except _Told as by:
        (number,) = by.args
        _LOG.warning("%s: ended before it was up", _named(signal.Signals(number)))
        raise SystemExit(128 + number) from None
    except BaseException as error:
        run.ended(f"by an error, {type(error).__name__}")
        if not isinstance(error, LastbitError):  # whose words are printed
            _LOG.error("the server ends by an error: %s", type(error).__name__)
        raise
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)


def _caught() -> list[signal.Signals]:
    """The signals that ask it to end: not those that nohup, say, has it ignore."""
    return [number for number in ENDING if signal.getsignal(number) is not signal.SIG_IGN]


def _named(number: signal.Signals) -> str:
    return f"{number.name} ({ENDING[number]})"


@contextmanager
def _listening(settings: Settings) -> Iterator[tuple[socket.socket, Settings]]:
    """The socket, and the settings with the port that it has."""
    listener = None
    try:
        if settings.socket is not None:
            listener = _unix(settings.socket)
        else:
            family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
            listener = socket.socket(family)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((settings.host, settings.port))
            settings = replace(settings, port=listener.getsockname()[1])
        listener.listen(BACKLOG)  # two may bind to one port as long as neither listens
        listener.setblocking(False)  # noqa: FBT003
    except OSError as error:
        if listener is not None:
            listener.close()
        where = str(settings.socket or f"{settings.host}:{settings.port}")
        taken = error.errno == errno.EADDRINUSE
        problem = "is in use" if taken else f"cannot be listened on ({error.strerror})"
        remedy = "pass another {socket}" if settings.socket else "pass another {port}"
        raise InvalidParameter(
            where, problem=problem, remedy=remedy, socket=None, port=None
        ) from None
    try:
        yield listener, settings
    finally:
        listener.close()
        if settings.socket is not None:
            with suppress(OSError):
                settings.socket.unlink()


@contextmanager
def _listening_for_sql(
    settings: Settings,
) -> Iterator[tuple[socket.socket | None, Settings]]:
    """The socket of SQL clients, if there is one, and the settings with the port that it has."""
    if settings.sql_port is None:
        yield None, settings
        return
    with closing(sql_listener(settings)) as listener:
        yield listener, replace(settings, sql_port=listener.getsockname()[1])


def _unix(path: Path) -> socket.socket:
    """A socket that its owner and group may open; one that a dead server left is replaced."""
    with suppress(FileNotFoundError):
        if stat.S_ISSOCK(os.lstat(path).st_mode):
            with socket.socket(socket.AF_UNIX) as probe:
                try:
                    probe.connect(str(path))
                except ConnectionRefusedError:  # nobody listens
                    path.unlink()
    listener = socket.socket(socket.AF_UNIX)
    before = os.umask(0o117)
    try:
        listener.bind(str(path))
    except BaseException:
        listener.close()
        raise
    finally:
        os.umask(before)
    return listener


# ---------------------------------------------------------------- the log


class _Lines(logging.Handler):
    """Our own lines as they are; of those of libraries the first words, and the error's class."""

    def __init__(self, log: Callable[[str], None]) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        if record.name == OURS:
            words = record.getMessage()
        else:
            words = f"{record.name}: {str(record.msg).partition(LINE)[0]}"  # not its arguments
        if record.exc_info and record.exc_info[0] is not None:
            words += f" {record.exc_info[0].__name__}"
        level = "" if record.levelno == logging.INFO else f"{record.levelname.lower()}: "
        when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created))
        line = " ".join(f"{when} {level}{words}".split())  # SQL may be written in several
        self._log("".join(letter if letter.isprintable() else "?" for letter in line))


@contextmanager
def _logging(log: Callable[[str], None]) -> Iterator[None]:
    root, ours, lines = logging.getLogger(), logging.getLogger(OURS), _Lines(log)
    before = ours.level
    root.addHandler(lines)
    ours.setLevel(logging.INFO)
    try:
        yield
    finally:
        root.removeHandler(lines)
        ours.setLevel(before)
