"""The neighbours of a dataset, one after the other."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from lastbit.audit.replay.distance import key_of
from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact import whole
from lastbit.privacy import ADD_REMOVE, Neighbours, check_neighbours


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """A dataset next to the first one, and in what it differs: both are secret."""

    dataset: Any = field(repr=False)
    change: str = field(repr=False)


def neighbours(
    dataset: Any,
    relation: Neighbours = ADD_REMOVE,
    *,
    records: Any = None,
    most: int | Literal["all"] = "all",
) -> Iterator[Neighbour]:
    """Datasets that differ from this one in one record: a list, an array, columns, or a frame.

    Records are the items of a list or tuple, the rows of an array, the rows of a dictionary of
    columns, the rows of a pandas or polars frame. ADD_REMOVE takes every record away, and adds
    another copy of each different one; CHANGE_ONE puts each different one in the place of every
    other. `records`, of the same kind as the dataset, are used besides those that are there: pass
    the extremes of what a record may be, since a wrong bound shows at the extremes only. With
    ADD_REMOVE.by("patient") all rows of one patient go at once, if that is a column, and `records`
    must be of patients that are not there. `most` limits their number; they are then spread evenly.

    >>> [list(n.dataset) for n in neighbours([1, 2, 2])]
    [[2, 2], [1, 2], [1, 2], [1, 2, 2, 1], [1, 2, 2, 2]]
    >>> from lastbit.privacy import CHANGE_ONE
    >>> [n.dataset for n in neighbours((0, 5), CHANGE_ONE, records=(9,))]
    [(5, 5), (9, 5), (0, 0), (0, 9)]
    """
    check_neighbours(relation)
    if relation.relation == "as-declared":
        raise InvalidParameter(
            "relation", problem="names none", remedy="pass ADD_REMOVE or CHANGE_ONE"
        )
    pool = dataset if records is None else _joined(dataset, records)
    number = None if most == "all" else whole(most, "most", least=1)
    changes = _changes(dataset, pool, relation, number)
    return (Neighbour(dataset=_taken(pool, rows), change=change) for rows, change in changes)


def _changes(
    dataset: Any, pool: Any, relation: Neighbours, most: int | None
) -> Iterator[tuple[list[int], str]]:
    """The rows of the pool that make up each neighbour, and what was changed."""
    size, column = _length(dataset), _column(pool, relation.unit)
    if column is not None:
        return _unit_changes(size, column, relation, most)
    keys = [key_of(_row(pool, row)) for row in range(_length(pool))]
    first: dict[Any, int] = {}
    for row, key in enumerate(keys):
        first.setdefault(key, row)
    different = list(first.values())
    if relation.relation == "add-remove":
        return (
            ([*range(place), *range(place + 1, size)], f"record {place} removed")
            if place < size
            else _with([different[place - size]], size)
            for place in _spread(size + len(different), most)
        )
    pairs = (divmod(place, len(different)) for place in _spread(size * len(different), most))
    return (
        (
            [*range(row), different[other], *range(row + 1, size)],
            f"record {row} changed to {_named(different[other], size)}",
        )
        for row, other in pairs
        if keys[row] != keys[different[other]]
    )


def _unit_changes(
    size: int, column: Sequence[Any], relation: Neighbours, most: int | None
) -> Iterator[tuple[list[int], str]]:
    """All rows of a unit at once."""
    if relation.relation != "add-remove":
        raise InvalidParameter(
            "relation", problem="changes a unit of several rows", remedy="pass ADD_REMOVE"
        )
    rows: dict[Any, list[int]] = {}
    for row, unit in enumerate(column):
        rows.setdefault(key_of(unit), []).append(row)
    units = list(rows.values())
    if any(its[0] < size <= its[-1] for its in units):
        raise InvalidParameter(
            "records",
            problem=f"hold a {relation.unit} that is in the dataset",
            remedy="pass all rows of new ones",
        )
    return (
        (sorted(set(range(size)).difference(units[number])), f"{relation.unit} {number} removed")
        if units[number][0] < size
        else _with(units[number], size)
        for number in _spread(len(units), most)
    )


def _with(others: list[int], size: int) -> tuple[list[int], str]:
    return [*range(size), *others], f"{_named(others[0], size)} added"


def _named(row: int, size: int) -> str:
    return f"a copy of record {row}" if row < size else f"given record {row - size}"


def _spread(total: int, most: int | None) -> Iterable[int]:
    """All places, or `most` of them, spread evenly."""
    if most is None or most >= total:
        return range(total)
    return (place * total // most for place in range(most))


# ---------------------------------------------------------------- kinds of datasets


def _library(dataset: Any) -> str:
    """The frame library a dataset comes from, or nothing."""
    name = type(dataset).__module__.partition(".")[0]
    return name if name in ("pandas", "polars") and hasattr(dataset, "columns") else ""


def _length(dataset: Any) -> int:
    if isinstance(dataset, Mapping):
        lengths = {len(column) for column in dataset.values()}
        if len(lengths) != 1:
            raise InvalidParameter(
                "dataset", problem="has columns of different lengths", remedy="pass a table"
            )
        return lengths.pop()
    scalar = isinstance(dataset, np.ndarray) and dataset.ndim == 0
    if not scalar and (isinstance(dataset, list | tuple | np.ndarray) or _library(dataset)):
        return len(dataset)
    raise WrongType(
        "dataset",
        problem="is not a collection of records",
        remedy="pass a list, an array, a dictionary of columns or a frame, "
        "or your own iterable of neighbours",
    )


def _column(dataset: Any, unit: str) -> Sequence[Any] | None:
    if isinstance(dataset, Mapping):
        return dataset.get(unit)
    if _library(dataset) and unit in list(dataset.columns):
        column: list[Any] = dataset[unit].to_list()
        return column
    return None


def _row(dataset: Any, row: int) -> Any:
    if isinstance(dataset, Mapping):
        return tuple(column[row] for column in dataset.values())
    match _library(dataset):
        case "pandas":
            return tuple(dataset.iloc[row].tolist())
        case "polars":
            return dataset.row(row)
    return dataset[row]


def _taken(dataset: Any, rows: list[int]) -> Any:
    if isinstance(dataset, Mapping):
        return {name: _taken(column, rows) for name, column in dataset.items()}
    match _library(dataset):
        case "pandas":
            return dataset.iloc[rows].reset_index(drop=True)
        case "polars":
            return dataset[rows]
    if isinstance(dataset, np.ndarray):
        return dataset[np.array(rows, np.intp)]
    return type(dataset)(dataset[row] for row in rows)


def _joined(dataset: Any, records: Any) -> Any:
    """The dataset and more records, of one kind."""
    if type(dataset) is not type(records):
        raise WrongType(
            "records",
            problem="are not of the dataset's kind",
            remedy=f"pass a {type(dataset).__name__}",
        )
    if isinstance(dataset, Mapping):
        if list(dataset) != list(records):
            raise InvalidParameter(
                "records", problem="have other columns", remedy="pass the same, in order"
            )
        return {name: _joined(dataset[name], records[name]) for name in dataset}
    match _library(dataset):
        case "pandas":
            return sys.modules["pandas"].concat([dataset, records], ignore_index=True)
        case "polars":
            return dataset.vstack(records)
    if isinstance(dataset, np.ndarray):
        if dataset.dtype != records.dtype:
            raise WrongType(
                "records", problem="have another dtype", remedy="pass the dataset's own"
            )
        return np.concatenate([dataset, records])
    return dataset + records
