"""A card held against its source: names and types of columns, never a value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from lastbit.tables.card_fields import Problem
from lastbit.tables.card_lines import nearest_line
from lastbit.tables.schema import ColumnType, DataCard, Source
from lastbit.tables.toml_text import toml_key

__all__ = ["Compared", "compared"]

_DAYS = ("date", "timestamp")


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What the card says of columns that the source says otherwise; places are fields of a card."""

    wrong: list[tuple[tuple[str, ...], str, str]] = field(default_factory=list)
    """Place, problem and remedy: columns that are not there, or could only be missing."""
    notes: list[str] = field(default_factory=list)
    unlisted: list[str] = field(default_factory=list)
    """Columns of the source that the card leaves out."""

    def problems(self, lines: Mapping[tuple[str, ...], int]) -> list[Problem]:
        """What is wrong, on the lines of the card."""
        return sorted(
            Problem(nearest_line(lines, place), toml_key(*place), problem, remedy)
            for place, problem, remedy in self.wrong
        )


def compared(card: DataCard) -> Compared:
    """The card beside its sources; refuses those that cannot be read."""
    from lastbit.tables.backends.duckdb import columns_of

    found = Compared()
    types = columns_of(card.source)
    declared = {column.name: column.type for column in card.columns.values()}
    _compare(found, ("columns",), card.source, types, declared)
    known = {name.lower() for name in declared}
    found.unlisted.extend(name for name in types if name.lower() not in known)
    for public in card.public.values():
        place = ("public", public.name, "columns")
        _compare(found, place, public.source, columns_of(public.source), public.columns)
    return found


def _compare(
    found: Compared,
    path: tuple[str, ...],
    source: Source,
    types: Mapping[str, ColumnType],
    declared: Mapping[str, ColumnType],
) -> None:
    there = {name.lower(): kind for name, kind in types.items()}
    for name, kind in declared.items():
        actual = there.get(name.lower())
        if actual is None:
            problem = "is not in the source, or nested or generated there"
            found.wrong.append(((*path, name), problem, "check the name, or store plain values"))
        elif (
            source.kind != "csv"
            and (kind in _DAYS) != (actual in _DAYS)
            and "text"
            not in (
                kind,
                actual,
            )
        ):
            problem = f"is {kind} here and {actual} in the source: every value would be missing"
            found.wrong.append(((*path, name), problem, f'write type = "{actual}"'))
        elif source.kind != "csv":
            found.notes.extend(_notes(name, kind, actual))


def _notes(name: str, kind: ColumnType, actual: ColumnType) -> Iterator[str]:
    if actual == "text" and kind != "text":
        yield f"{name}: the source has text; what does not read as {kind} counts as missing."
    elif actual == "number" and kind == "integer":
        yield f"{name}: the source has numbers with a point; they are rounded to whole ones."
