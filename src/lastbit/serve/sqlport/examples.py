"""What parameters are before they are sent, where only the columns of a result are asked for.

Law      an example tells of the card alone. Several are tried, since WHERE may let no declared key
         through by one of them: the least and the largest value of a column, and any value
Checked  tests/serve/test_sqlport.py
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from lastbit.tables import ColumnType, DataCard

_OF_KINDS: Mapping[ColumnType, Any] = MappingProxyType(
    {
        "integer": 1,
        "number": 1.0,
        "text": "",
        "boolean": True,
        "date": "2000-01-01",
        "timestamp": "2000-01-01 00:00:00",
    }
)


def examples(
    kinds: Sequence[ColumnType], beside: Sequence[Sequence[str]], card: DataCard
) -> list[list[Any]]:
    """Values for all parameters, by their types and the columns that they are compared with."""
    ends = [_ends(kind, names, card) for kind, names in zip(kinds, beside, strict=False)]
    ends += [(_OF_KINDS[kind],) * 3 for kind in kinds[len(ends) :]]
    found: list[list[Any]] = []
    for values in zip(*ends, strict=True):
        if list(values) not in found:
            found.append(list(values))
    return found or [[]]


def _ends(kind: ColumnType, names: Sequence[str], card: DataCard) -> tuple[Any, Any, Any]:
    """The least and the largest value of the column, and any."""
    lowered = [name.lower() for name in names]
    for column in card.columns.values():
        if column.name.lower() in lowered and column.type == kind:
            known = column.keys or column.bounds
            if known:
                return _plain(known[0], kind), _plain(known[-1], kind), _OF_KINDS[kind]
    return (_OF_KINDS[kind],) * 3


def _plain(value: Any, kind: ColumnType) -> Any:
    if isinstance(value, bool | str):
        return value
    if isinstance(value, int | float | Fraction):
        return int(value) if kind == "integer" else float(value)
    return str(value)
