"""The words for a failure of DuckDB, by the kind of its error alone."""

from __future__ import annotations


def words_of(kind: str) -> str:
    """What can be said without a value of the data."""
    match kind:
        case "OutOfMemoryException" | "MemoryError":
            return (
                "the database ran out of memory or disk; ask for fewer groups, or raise "
                "max_memory or max_spill on the card"
            )
        case "IOException" | "PermissionError" | "FileNotFoundError":
            return "a file of the source could not be read; check that it is whole and readable"
        case _:
            return "the database could not run the statement; nothing was released"
