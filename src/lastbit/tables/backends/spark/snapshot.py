"""A frame of Spark as it is at one moment.

A frame is a recipe, and Spark runs it again for every question, and again where an executor is
lost: rand(), now(), files and tables that changed, a LIMIT without an order give other rows each
time, and Spark's own word on whether a plan is deterministic knows nothing of the last three. So
its rows are computed once, when the table is declared, and kept in Spark's own storage
(`localCheckpoint`).

Law      a snapshot is a set of blocks in the memory and on the disks of Spark's executors
Theorem  every scan of a snapshot gives the same rows, or fails: a local checkpoint forgets the
         recipe, so a block that is lost with its executor is not computed again
Differs  from `checkpoint`, which survives executors but writes the rows to a folder that somebody
         must protect and empty. Where that is needed, write the frame as Parquet and name it
         Whose row is whose is the caller's promise, as for any frame
Checked  tests/engines/test_spark.py
"""

from __future__ import annotations

import itertools
import logging
import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any
from urllib.parse import unquote, urlsplit

from lastbit.errors import WrongType
from lastbit.tables.card.schema import Source
from lastbit.tables.compile.spark import SPARK
from lastbit.tables.limits import sealed

_NUMBERS = itertools.count(1)
_UNREAD = ("map", "array", "struct", "variant", "geo")
_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
_WITHOUT_ROWS = ("Range", "OneRowRelation")
_PY4J = ("py4j", "py4j.clientserver", "py4j.java_gateway")


class _Silence:
    """How many calls, in whatever threads, want no log; and what to undo after the last one."""

    def __init__(self) -> None:
        self.lock, self.calls, self.after = threading.Lock(), 0, ExitStack()


_SILENCE = _Silence()


@contextmanager
def unlogged() -> Iterator[None]:
    """PySpark logs its errors, which hold values, before it raises them; Py4J all that it hears."""
    from pyspark.logger import PySparkLogger  # an extra: loaded where Spark is asked for

    with _SILENCE.lock:
        _SILENCE.calls += 1
        named = [*map(PySparkLogger.getLogger, _LOGGERS), *map(logging.getLogger, _PY4J)]
        for logger in named if _SILENCE.calls == 1 else ():
            _SILENCE.after.callback(setattr, logger, "disabled", logger.disabled)
            logger.disabled = True
    try:
        yield
    finally:
        with _SILENCE.lock:
            _SILENCE.calls -= 1
            if not _SILENCE.calls:
                _SILENCE.after.close()


class SparkSnapshot:
    """Rows that Spark keeps, whichever session asks for them; they show themselves to nobody."""

    __slots__ = ("_content", "_frame", "origins")

    def __init__(self, frame: Any) -> None:
        self.origins = _origins(frame)
        self._frame = frame.localCheckpoint(eager=True)
        self._content: str | None = None

    def __repr__(self) -> str:
        return "<SparkSnapshot>"

    def __reduce__(self) -> tuple[Any, ...]:
        problem = "is held by Spark, and not copied"
        raise WrongType("source", problem=problem, remedy="write it as Parquet")

    def shown(self, session: Any) -> Any:
        """The rows as a frame of this session: sessions share nothing but global views."""
        name = f"lastbit_{os.getpid()}_{next(_NUMBERS)}"
        self._frame.createGlobalTempView(name)
        try:
            shared = session.conf.get("spark.sql.globalTempDatabase")
            return session.table(f"{SPARK.identifier(shared)}.{name}")
        finally:
            session.catalog.dropGlobalTempView(name)

    @property
    def content(self) -> str:
        """Of the rows, in whatever order: their number, and sums of two hashes of each."""
        if self._content is None:
            fields = [(field.name, field.dataType.simpleString()) for field in self._frame.schema]
            plain = [name for name, kind in fields if not kind.startswith(_UNREAD)]  # some: no hash
            names = ", ".join(map(SPARK.identifier, plain)) or "NULL"
            sums = (f"sum(CAST(xxhash64({salt}, {names}) AS DECIMAL(38,0)))" for salt in (1, 2))
            found = self._frame.selectExpr("count(*)", *sums).collect()
            self._content = repr((sorted(fields), [tuple(row) for row in found]))
        return self._content


def _origins(frame: Any) -> frozenset[str]:
    """What a frame is made of, however it is derived: itself, its files, and rows held by Spark.

    Files are asked of the plan as it was written: once optimised, neither a cached frame nor one
    inside a value names its files.

    Differs  what other systems are asked for (JDBC) has a name alone, and copies are others: what
             was collected, checkpointed or written again
    """
    plan = frame._jdf.queryExecution().analyzed()
    nested = plan.subqueriesAll()
    origins, files = {f"plan {plan.semanticHash()}"}, set(frame.inputFiles())
    for one in (plan, *_each(nested)):
        for leaf in _each(one.collectLeaves()):
            if leaf.nodeName() not in _WITHOUT_ROWS:
                origins.add(f"plan {leaf.semanticHash()}")
                named, read = _of_leaf(leaf)
                origins |= named
                files |= read
    for file in files:
        origins.add(file)
        address = urlsplit(file)
        with suppress(OSError):  # it is gone, or not on this machine
            found = os.stat(unquote(address.path)) if address.scheme == "file" else None
            origins |= set() if found is None else {f"{found.st_dev} {found.st_ino}"}
    return frozenset(origins)


def _of_leaf(leaf: Any) -> tuple[set[str], set[str]]:
    """The names of what is read there, and its files."""
    match _kind(leaf):
        case "LogicalRelation" if _kind(leaf.relation()) == "HadoopFsRelation":
            return set(), set(leaf.relation().location().inputFiles())
        case "LogicalRelation":  # two looks at one table are two relations, of one name
            return {f"relation {leaf.relation().toString().partition(' [')[0]}"}, set()
        case "LogicalRDD":
            return _of_rows(leaf.rdd())
        case "DataSourceV2Relation":
            return {f"table {leaf.table().name()}"}, set()
    return set(), set()


def _of_rows(rows: Any) -> tuple[set[str], set[str]]:
    """The numbers of the RDDs that one is made of, and the files that they read."""
    numbers, files, later = set[int](), set[str](), [rows]
    while later:
        one = later.pop()
        if one.id() not in numbers:
            numbers.add(one.id())
            later += [before.rdd() for before in _each(one.dependencies())]
            if _kind(one) == "FileScanRDD":
                parts = (file for part in _each(one.filePartitions()) for file in part.files())
                files.update(file.urlEncodedPath() for file in parts)
    return {f"RDD {number}" for number in numbers}, files


def _kind(found: Any) -> str:
    return str(found.getClass().getSimpleName())


def _each(found: Any) -> Iterator[Any]:
    """The items of a sequence of Scala."""
    return map(found.apply, range(found.size()))


def spark_kind(given: object) -> str:
    """What an object of PySpark is, in a word; plans of Spark Connect cannot be looked at."""
    kind = type(given)
    if kind.__name__ != "DataFrame" or not kind.__module__.startswith("pyspark.sql."):
        return "a distributed frame"
    remote = kind.__module__.startswith("pyspark.sql.connect.")
    return "a frame of Spark Connect" if remote else "a frame of Spark"


def spark_snapshot(source: Source) -> Source:
    """The rows of a frame of Spark, as they are now; it comes and goes in a `Source`."""

    def taken() -> SparkSnapshot:
        with unlogged():
            return SparkSnapshot(source.frame)

    words = "the frame could not be computed; check that it runs by itself"
    return Source(kind="spark", frame=sealed(taken, words=words))
