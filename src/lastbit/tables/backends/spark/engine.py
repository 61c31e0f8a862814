"""Spark runs the statement: where the data are, on as many machines as they need.

Every call works in a session of our own (`newSession`) beside the active one: it shares the
application, its executors and its catalogs, but neither its settings nor its temporary views. It is
given back at the end, for the next question, and nobody else has it meanwhile. If
no session is active, one is made, on this machine unless Spark's own configuration says otherwise.
It needs Spark 4 and a session that is not Spark Connect, whose plans cannot be looked at.

Law      in our session all settings of SQL are Spark's defaults, those of `SETTINGS` ours, and each
         is read back; what cannot be set, and plug-ins that compute in other ways, are refused
Theorem  a row's meaning depends on it alone: no least and greatest values of files or blocks, which
         leave NaN out, decide what is read; nothing is skipped that is damaged or missing; days
         before 1582 and texts are what the file says (of Spark 2: what it meant)
Theorem  one statement: rows meet after one shuffle by unit. Rows that several scans of a statement
         read are the same ones (`sources.py`), whichever executor runs or repeats a task
Differs  from DuckDB in time: Spark may skip work that one row decides about (docs/known-limits.md)
Checked  tests/engines/test_spark.py, tests/engines/
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import warnings
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from functools import partial
from itertools import count
from math import prod
from types import MappingProxyType
from typing import Any, TypeVar

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import DataFrame, SparkSession, is_remote

from lastbit.errors import EngineFailed, InvalidParameter, LastbitError
from lastbit.tables.backends.engines import (
    RawRows,
    Session,
    Spelled,
    Tables,
    names_in_statement,
    plain_types,
    tables_of,
)
from lastbit.tables.backends.progress import told
from lastbit.tables.backends.spark.snapshot import unlogged
from lastbit.tables.backends.spark.sources import (
    Opened,
    alike,
    check_apart,
    check_unit_in_folders,
    check_values,
    chosen,
    opened,
)
from lastbit.tables.card.schema import DataCard
from lastbit.tables.compile.dialect import Shown
from lastbit.tables.compile.rows import CompiledRows
from lastbit.tables.compile.spark import SPARK
from lastbit.tables.compile.units import check_matches
from lastbit.tables.limits import sealed
from lastbit.tables.query.expression import StoredType
from lastbit.tables.query.scan import Scan

SETTINGS = MappingProxyType(
    {
        "spark.sql.analyzer.maxIterations": "1000",  # of a question nested as deep as may be
        "spark.sql.ansi.enabled": "true",
        "spark.sql.caseSensitive": "false",
        "spark.sql.constraintPropagation.enabled": "false",
        "spark.sql.files.ignoreCorruptFiles": "false",
        "spark.sql.files.ignoreMissingFiles": "false",
        "spark.sql.inMemoryColumnarStorage.partitionPruning": "false",
        "spark.sql.optimizer.maxIterations": "1000",
        # they would write the steps of an expression out again, several times for each level
        "spark.sql.optimizer.excludedRules": ",".join(
            f"org.apache.spark.sql.catalyst.optimizer.{rule}"
            for rule in ("PushDownPredicates", "PushPredicateThroughNonJoin")
        ),
        "spark.sql.parquet.aggregatePushdown": "false",
        "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
        "spark.sql.parquet.filterPushdown": "false",
        "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
        "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
        "spark.sql.parser.escapedStringLiterals": "false",
        "spark.sql.readSideCharPadding": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
        "spark.sql.timestampType": "TIMESTAMP_LTZ",
        "spark.sql.variable.substitute": "false",  # ${...} in a name would be replaced
    }
)
_THEIRS = ("adaptive.", "catalog.", "defaultCatalog", "files.m", "shuffle.partitions", "warehouse.")
_KNOWN_EXTENSIONS = (
    "io.delta.sql.DeltaSparkSessionExtension",
    "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
)
_OURS = MappingProxyType(
    {"spark.log.level": "OFF", "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
)
_OLDEST = 4
_A_MOMENT = 0.1
_MOST_MEMORY = 6 * 10**9
_SHARE_OF_MEMORY = 0.6
_GROUPS = count(1)
_CONNECT = "is reached by Spark Connect in this process, whose plans cannot be looked at"
_NOT_REMOTE = (
    "start Python again without SPARK_REMOTE, and with SparkSession.builder.master(...) for .remote"
)

Result = TypeVar("Result")


class EngineSession(Session):
    """One session of Spark, our own, taken when it is first needed."""

    def __init__(self, *, units: str | None = None) -> None:
        super().__init__(units=units)
        self._own: Any = None

    def run(self, query: Scan, card: DataCard, spelled: Spelled) -> RawRows:
        def run(session: Any) -> RawRows:
            asked = asked_tables(session, query, card)
            actual = show_tables(session, asked)
            wanted = spelled(dialect=SPARK, actual=actual)
            check_joins(session, query, card, actual)
            return RawRows(wanted, _read(session, asked, wanted.sql))

        return self.guarded(run)

    def fingerprint(self, card: DataCard) -> bytes:
        """Differs if the data do: of files their places, sizes and times, of frames the content.

        Refuses, before anything is charged, what no question could be answered from.
        """

        def run(session: Any) -> bytes:
            found = {}
            for table, there, columns in opened_all(session, card, [*card.public, *card.private]):
                chosen(there, plain_types(columns))
                found[table or ""] = repr(there.state)
            return hashlib.sha256(repr([found[name] for name in sorted(found)]).encode()).digest()

        return self.guarded(run)

    def connected(self) -> Any:
        """A session of our own, with our settings, beside the active one."""
        active = _active()
        if self._own is None or self._own.sparkContext is not active.sparkContext:
            self.close()
            self._own = _IDLE.take(active)
            self.held.callback(self._give_back)
        return self._own

    def _give_back(self) -> None:
        own, self._own = self._own, None
        _IDLE.give_back(own)

    def guarded(self, run: Callable[[Any], Result], *, words: str = "") -> Result:
        """What `run` gives; of the engine's own errors no word, of any other no frame."""

        def caught() -> Result:
            with self.lock, unlogged():
                try:
                    return run(self.connected())
                except (LastbitError, KeyboardInterrupt):
                    raise
                except Exception as error:  # its text may hold values, so it must not be a cause
                    kind = _condition(error)
            raise EngineFailed(words or _told(kind))

        return sealed(caught, words=words or _told(""))


# sources


Asked = list[tuple[str, Opened, dict[str, StoredType]]]


def asked_tables(session: Any, query: Scan, card: DataCard) -> Asked:
    """The table, then the joined ones: their names in the statement, frames and columns."""
    return names_in_statement(card, opened_all(session, card, query.joined_tables))


def opened_all(session: Any, card: DataCard, names: Iterable[str]) -> Tables[Opened]:
    """The table (None) and these others, in which no value stops Spark's own reader."""
    opener = partial(opened, session)
    found = tables_of(card, names, opener, check_unit_in_folders, check_apart, alike)
    for _, there, kinds in found:
        check_values(there, plain_types(kinds), lambda sql: run_sql(session, sql))
    return found


def show_tables(session: Any, asked: Asked, *, empty: set[str] | None = None) -> dict[str, Shown]:
    """Make the sources temporary views of the session; those named in `empty` without rows."""
    found = {}
    for place, (name, there, columns) in enumerate(asked):
        frame = chosen(there, plain_types(columns))
        if name in (empty or ()):
            # an RDD, not LIMIT 0, from which Spark would conclude that there is nothing to do
            rows = session.sparkContext._jsc.emptyRDD()
            made = session._jsparkSession.createDataFrame(rows, frame._jdf.schema())
            frame = DataFrame(made, session)
        frame.createOrReplaceTempView(f"lastbit_{place}")
        found[name] = Shown(place=f"lastbit_{place}", columns=there.columns)
    return found


def _read(session: Any, asked: Asked, sql: str) -> list[tuple[Any, ...]]:
    found = run_sql(session, sql)
    for _, there, _ in asked:
        there.check_unchanged(session)
    return found


def check_joins(session: Any, query: Scan, card: DataCard, actual: dict[str, Shown]) -> None:
    """That joins make few rows of one: by public tables and the card, so it tells nothing else."""
    wanted = CompiledRows(query, card, dialect=SPARK, actual=actual).matches()
    check_matches(query, card, prod(run_sql(session, sql)[0][0] for sql in wanted))


# sessions


class _IdleSessions:
    """Sessions of ours that no question has now: each is taken out by one, and given back."""

    def __init__(self) -> None:
        self._sessions: deque[Any] = deque(maxlen=16)

    def take(self, active: Any) -> Any:
        """One that was given back, or a new one; those of a Spark that stopped are dropped."""
        with suppress(IndexError):  # there is none
            while (own := self._sessions.pop()).sparkContext is not active.sparkContext:
                pass
            return own
        return _session(active)

    def give_back(self, own: Any) -> None:
        """For the next question."""
        self._sessions.append(own)


_IDLE = _IdleSessions()


def _active() -> Any:
    """The user's session, or one that is made: without pages and log, and with enough memory."""
    if is_remote():
        raise InvalidParameter("Spark", problem=_CONNECT, remedy=_NOT_REMOTE)
    active = SparkSession.getActiveSession() or SparkSession._instantiatedSession
    if active is not None and active.sparkContext._jsc is not None:
        return active
    if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        problem, remedy = "needs Java, which is not here", "install Java 17, or set JAVA_HOME"
        raise InvalidParameter("Spark", problem=problem, remedy=remedy)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    most = int(min(_MOST_MEMORY, _SHARE_OF_MEMORY * memory)) >> 20
    conf = SparkConf().setAppName("lastbit").setAll(_OURS.items())
    if "PYSPARK_SUBMIT_ARGS" not in os.environ:
        conf.set("spark.driver.memory", f"{most}m")
    gateway = launch_gateway(conf, popen_kwargs={"stderr": subprocess.DEVNULL})
    with warnings.catch_warnings():  # PySpark's about pandas, of which nothing is used here
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas")
        return SparkSession(SparkContext(conf=conf, gateway=gateway))


def _session(active: Any) -> Any:
    if int(active.version.partition(".")[0]) < _OLDEST:
        problem = f"is older than version {_OLDEST}"
        raise InvalidParameter("Spark", problem=problem, remedy="pip install 'pyspark>=4'")
    own = active.newSession()
    given = own.conf.getAll
    check_extensions(given.get("spark.sql.extensions", ""), given.get("spark.plugins", ""))
    for name in given:
        sql = name.removeprefix("spark.sql.")
        if sql != name and not sql.startswith(_THEIRS) and own.conf.isModifiable(name):
            own.conf.unset(name)
    for name, value in SETTINGS.items():
        if own.conf.get(name, None) != value:  # some warn whenever they are set
            own.conf.set(name, value)
        if own.conf.get(name) != value:
            problem, remedy = "cannot be set", "ask those who run Spark to allow it"
            raise InvalidParameter(name, problem=problem, remedy=remedy)
    return own


def check_extensions(extensions: str, plugins: str) -> None:
    """Refuse what may compute otherwise than Spark does: other parsers, rules, native engines.

    >>> check_extensions("io.delta.sql.DeltaSparkSessionExtension", "")
    """
    names = {name.strip() for name in f"{extensions},{plugins}".split(",")} - {""}
    if names - set(_KNOWN_EXTENSIONS):
        problem = "has plug-ins that may compute otherwise than Spark does"
        remedy = "start one without spark.plugins and with no spark.sql.extensions but those of"
        raise InvalidParameter("Spark", problem=problem, remedy=f"{remedy} Delta and Iceberg")


# running


def run_sql(session: Any, sql: str) -> list[tuple[Any, ...]]:
    """The rows. Spark works for another thread, so that this one hears Ctrl-C and tells how far."""
    context, group = session.sparkContext, f"lastbit {os.getpid()} {next(_GROUPS)}"

    def run() -> list[tuple[Any, ...]]:
        context.setJobGroup(group, "lastbit", interruptOnCancel=True)
        return [tuple(row) for row in session.sql(sql).collect()]

    with ThreadPoolExecutor(max_workers=1) as worker:
        waiting = worker.submit(run)
        try:
            while not waiting.done():
                wait([waiting], timeout=_A_MOMENT)
                told(lambda: _share_done(context.statusTracker(), group), "asking Spark")
        except BaseException:
            context.cancelJobGroup(group)
            raise
        return waiting.result()


def _share_done(tracker: Any, group: str) -> float:
    """Of the tasks that are known by now, those that are done."""
    done = total = 0
    for job in tracker.getJobIdsForGroup(group):
        info = tracker.getJobInfo(job)
        for stage in () if info is None else info.stageIds:
            found = tracker.getStageInfo(stage)
            done += 0 if found is None else found.numCompletedTasks
            total += 0 if found is None else found.numTasks
    return done / total if total else 0.0


_LOST = "CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND"


def _condition(error: Exception) -> str:
    """The class of an error of Spark, which holds no value; else the type of the error."""
    try:
        if _LOST in str(error):  # a task's own error is quoted in that of its job
            return _LOST
        return str(error.getCondition())  # type: ignore[attr-defined]
    except Exception:
        return type(error).__name__


def _told(kind: str) -> str:
    """What is said of an error of this class; no word of Spark's own."""
    if kind.startswith(("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND", "PATH_NOT_FOUND")):
        words = (
            "the source is not there; check its name: spark:catalog.db.table or spark:/a/path; of "
            "a temporary view pass the frame: spark.table(...)"
        )
    elif kind.startswith(("FAILED_READ_FILE", "CANNOT_READ_FILE", "UNABLE_TO_INFER_SCHEMA")):
        words = "a file of the source could not be read; check that it is whole and readable"
    elif kind == _LOST:
        words = (
            "Spark lost an executor with rows of a frame; call lb.table(frame, ...) again, or "
            "write the frame as Parquet"
        )
    elif kind == "JAVA_GATEWAY_EXITED":
        words = "Spark did not start; check that Java 17 or newer is here (java -version)"
    elif kind in (
        "Py4JNetworkError",
        "Py4JError",
        "ConnectionRefusedError",
        "ConnectionResetError",
    ):
        words = "Spark stopped, or cannot be reached; start it again; nothing was released"
    else:
        words = "Spark could not run the statement; nothing was released"
    return words
