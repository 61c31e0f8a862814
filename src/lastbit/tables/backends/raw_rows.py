"""The rows of a statement, as an engine gives them: secret, and for the kernel alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lastbit.tables.compile.statement import Statement


class RawRows:
    """What a statement gave. Only `kernel/sealed.py` reads it; it shows itself to nobody."""

    __slots__ = ("statement", "unsealed_rows")

    def __init__(self, statement: Statement, rows: Iterable[tuple[Any, ...]]) -> None:
        self.statement = statement
        self.unsealed_rows = list(rows)

    def __repr__(self) -> str:
        return "<RawRows: not private, not shown>"
