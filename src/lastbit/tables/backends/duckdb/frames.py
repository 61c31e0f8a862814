"""Frames as DuckDB can read them, each value by itself.

Law      a column of a pandas frame that holds Python objects is text: of a text itself, of numbers,
         truth values, dates and identifiers what `str` says, of anything else, or of what cannot be
         written in UTF-8, nothing. A category is what it stands for. A frame that could differ at
         a second scan is copied first
Theorem  what becomes of a value depends on it alone, and on the frame's declared types. For DuckDB
         itself that is not so: an integer category with one missing value makes the whole column
         floating-point, and half of a surrogate pair in one row stops the query
Refused  buffers that are not what their types say (a dictionary's index that is out of range, text
         that is not UTF-8), for the frame as a whole, without saying where
Checked  tests/tables/backends/test_locality.py
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np

from lastbit.errors import InvalidParameter
from lastbit.tables.backends.duckdb.card_types import stored_type_named
from lastbit.tables.backends.duckdb.files import Opened
from lastbit.tables.backends.duckdb.snapshot import Snapshot
from lastbit.tables.backends.duckdb.sources import described, element_named, readable
from lastbit.tables.compile.steps import identifier

_TEXTUAL = (str, int, float, bool, Decimal, date, time, timedelta, UUID, np.generic)
_UNKNOWN = ("BinderException", "InvalidInputException", "NotImplementedException")


def show_source(connection: Any, there: Opened, name: str) -> tuple[dict[str, str], dict[str, str]]:
    """The view of this name; the types of its columns, none of which is left out."""
    plain, copied = plain_frame(there.source.frame)
    if not copied:
        return _typed(connection, plain, name), {}
    once = f"lastbit_once {name}"  # no table of the card is called so
    kinds = _typed(connection, plain, once)
    columns = ", ".join(
        f"TRY(decode(encode({identifier(c)}))) AS {identifier(c)}"  # not every library checks UTF-8
        if kind == "VARCHAR"
        else identifier(c)
        for c, kind in kinds.items()
        if readable(element_named(kind) or kind)
    )
    connection.execute(
        f"CREATE TEMP TABLE {identifier(name)} AS SELECT {columns} FROM {identifier(once)}"
    )
    return kinds, {}


def _typed(connection: Any, frame: Any, name: str) -> dict[str, str]:
    """The columns of a frame, registered under this name; refuses types that DuckDB does not know.

    That is by the frame's types alone: no row of it is read here.
    """
    try:
        connection.register(name, frame)
        return described(connection, identifier(name))
    except Exception as error:  # its words may hold names of other columns
        if type(error).__name__ not in _UNKNOWN:
            raise
    problem = "is not a frame, or has a column of a type that cannot be read"
    remedy = "convert to numbers, text, truth values, dates or timestamps, or leave columns out"
    raise InvalidParameter("source", problem=problem, remedy=remedy)


def content(connection: Any, name: str, kinds: Mapping[str, str]) -> str:
    """Of the rows, in whatever order: their number, and sums of two hashes of each.

    DuckDB hashes two lists as one, and NULL as [], so a list's length comes before it.
    """
    lists = {f"len({identifier(c)})": c for c, kind in kinds.items() if element_named(kind)}
    names = ", ".join([*lists, *map(identifier, kinds)]) or "NULL"
    sums = ", ".join(
        f"sum(CAST(hash({salt}, {names}) AS HUGEINT)), bit_xor(hash({salt}, {names}))"
        for salt in (1, 2)
    )
    (found,) = connection.execute(f"SELECT count(*), {sums} FROM {identifier(name)}").fetchall()
    columns = sorted((column, stored_type_named(kind)) for column, kind in kinds.items())
    return repr((columns, found))


def plain_frame(frame: Any) -> tuple[Any, bool]:
    """The frame, ready to be registered; and whether it must be copied, to be scanned twice."""
    kind = type(frame)
    if kind.__name__ == "LazyFrame":
        frame = frame.collect()
    if "BatchReader" in kind.__name__:
        raise InvalidParameter(
            "source", problem="can be read once only", remedy="pass frame.read_all()"
        )
    _check_names(frame)
    modules = [base.__module__ for base in kind.__mro__]  # a subclass is what it is made of
    if any(module.startswith("pandas") for module in modules):
        if not hasattr(frame, "columns"):
            raise InvalidParameter(
                "source", problem="is one column, not a table", remedy="pass series.to_frame()"
            )
        return _pandas(frame), False
    if kind.__module__.startswith("polars") or isinstance(frame, Snapshot):
        return frame, False
    if kind.__module__.startswith("pyarrow") and hasattr(frame, "validate"):
        _check_buffers(frame)
        return frame, False
    return frame, True


def _check_names(frame: Any) -> None:
    names = [str(column) for column in getattr(frame, "columns", ())]
    if type(frame).__module__.startswith("pyarrow"):
        names = list(frame.schema.names)
    if len({column.lower() for column in names}) != len(names):
        raise InvalidParameter(
            "columns", problem="are two of one name", remedy="rename one in the frame"
        )


def _pandas(frame: Any) -> Any:
    """The frame with text in place of objects and categories; the rest is shared, not copied."""
    found = frame.copy(deep=False)
    found.index = range(len(frame))
    for place, column in enumerate(frame.columns):
        values = frame.iloc[:, place]
        kind = str(values.dtype)
        if kind == "object":
            found[column] = _texts(values, [_as_text(value) for value in values.array])
        elif kind == "category":
            known = [*map(_as_text, values.cat.categories), None]  # the code of missing is -1
            found[column] = _texts(values, [known[code] for code in values.cat.codes])
        elif getattr(values.dtype, "storage", kind) == "pyarrow" or "[pyarrow]" in kind:
            _check_buffers(values.array.__arrow_array__())
    return found


def _texts(values: Any, texts: list[str | None]) -> Any:
    """A column of objects: pandas would choose a type by what they are."""
    return type(values)(texts, dtype=object)


def _as_text(value: Any) -> str | None:
    """One value as text; None for a missing value and for anything that is not a plain value."""
    if not isinstance(value, _TEXTUAL):
        return None
    try:
        if isinstance(value, str):
            found = str.__str__(value)
        elif value == value:  # NaN and NaT differ from themselves
            found = str(value)
        else:
            return None
        found.encode("utf-8")
    except Exception:  # half of a surrogate pair, a number of more digits than Python writes ...
        return None
    return found


def _check_buffers(array: Any) -> None:
    try:
        array.validate(full=True)
    except Exception:  # its words may hold values
        pass
    else:
        return
    problem = "has buffers that are not what their types say, or text that is not UTF-8"
    remedy = "build the frame again from plain values"
    raise InvalidParameter("source", problem=problem, remedy=remedy)
