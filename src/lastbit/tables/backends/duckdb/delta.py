"""Delta tables: the files that the newest version of the log names.

A folder with a `_delta_log` stands for these, with the values of columns that the log states; the
package `deltalake` reads it.

Law      a row counts if its file is in that version. Other files in the folder hold rows that were
         deleted, and older copies of rows that were changed
Theorem  each row is read once, from one version: the list is made in one go, and a version that is
         new by the end of the question is a change, which is noticed
Refused  Delta tables with deletion vectors or column mapping, whose files have rows and names that
         do not count, and other features of readers
Checked  tests/tables/backends/test_lakes.py
"""

from __future__ import annotations

import os
from datetime import date
from typing import Any
from urllib.parse import unquote

from lastbit.errors import InvalidParameter
from lastbit.tables.backends.duckdb.files import Partition, without_values

_PLAIN_FEATURES = frozenset({"columnMapping", "timestampNtz", "vacuumProtocolCheck"})
"""Of readers of Delta tables: these leave a file's rows and names alone (mapping: see `mapped`)."""


def files_in_delta(folder: str) -> list[tuple[str, Partition]]:
    """The files of the newest version of a Delta table, with the columns that its log states."""
    what = f"source {without_values(folder)}"
    try:
        import deltalake  # an extra, which most do without
    except ImportError:
        problem, remedy = "is a Delta table", "pip install 'lastbit[delta]', which reads its log"
        raise InvalidParameter(what, problem=problem, remedy=remedy) from None
    problem = "is a Delta table whose log cannot be read"
    remedy = "check that it is whole and that its columns in folders are text, integers or dates"
    try:
        table = deltalake.DeltaTable(folder)
        protocol, said = table.protocol(), table.metadata().configuration
        features = {*(protocol.reader_features or ())} - _PLAIN_FEATURES
        mapped = said.get("delta.columnMapping.mode", "none") != "none"
        rows = [
            (batch["path"][place].as_py(), _stated(batch, place))
            for batch in table.get_add_actions().to_batches()
            for place in range(batch.num_rows)
        ]
    except Exception:  # its words may hold values: the log has the least and greatest ones
        rows, features, mapped = None, set(), False
    if features or mapped:
        listed = ", ".join(sorted(features)) or "columnMapping"
        problem = f"is a Delta table with features that are not read here: {listed[:100]}"
        remedy = "write the rows that count as Parquet, or a Delta table without them"
    elif rows is not None and not any("://" in path or os.path.isabs(path) for path, _ in rows):
        found = [(os.path.join(folder, unquote(path)), said) for path, said in rows]
        if all(os.path.isfile(path) for path, _ in found):
            return sorted((os.path.abspath(path), said) for path, said in found)
        problem = "is a Delta table some of whose files are elsewhere or gone"
        remedy = "write it again, or copy it whole"
    raise InvalidParameter(what, problem=problem, remedy=remedy)


def _stated(batch: Any, place: int) -> Partition:
    """The columns that the log states for a file, as text."""
    if "partition" not in batch.schema.names:
        return ()
    said = batch["partition"][place].as_py()
    return tuple((name, _partition_text(value)) for name, value in said.items())


def _partition_text(value: Any) -> str | None:
    """A value that a folder's name could say.

    >>> _partition_text(2024), _partition_text(date(2024, 1, 31)), _partition_text(True)
    ('2024', '2024-01-31', 'true')
    """
    if value is None or type(value) is str:
        return value
    if type(value) in (bool, int, date):
        return str(value).lower()
    raise TypeError("partition")
