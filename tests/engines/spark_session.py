"""A Spark of the tests' own: one Java process for each worker that asks for it, gone at the end.

    def test_something(spark):  # a fixture of tests/engines: the session that a user might have
        spark.read.parquet(...)

It has one core and one partition after a shuffle: small tables are quickest so.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

MISSING = "needs PySpark and Java 17: make engines, and a Java (Debian: openjdk-17-jre-headless)"
_SILENT = """
appender.none.type = Null
appender.none.name = none
rootLogger.level = off
rootLogger.appenderRef.none.ref = none
"""
_JAVA = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xss4m"  # quick to start; plans nest deeply
_SETTINGS = {
    "spark.default.parallelism": "1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def is_here() -> bool:
    """Whether there is a Spark to start."""
    java = os.environ.get("JAVA_HOME") or shutil.which("java")
    return bool(java) and importlib.util.find_spec("pyspark") is not None


def started(folder: Path, **settings: str) -> Any:
    """A session, the only one of this process; its files are in the folder."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    log = folder / "log4j2.properties"
    log.write_text(_SILENT, "utf-8")
    builder = SparkSession.builder.master("local[1]").appName("tests")
    java = f"{_JAVA} -Dlog4j2.configurationFile={log.as_uri()}"
    places = {
        "spark.driver.extraJavaOptions": java,
        "spark.local.dir": str(folder / "blocks"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    for name, value in (_SETTINGS | places | settings).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The session that tests share."""
    if not is_here():
        pytest.skip(MISSING)
    session = started(tmp_path_factory.mktemp("spark"))
    yield session
    session.stop()
