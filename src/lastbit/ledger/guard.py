"""What is about to be written over: refused if it is a ledger, or anything that is spared."""

from __future__ import annotations

import os

from lastbit.errors import InvalidParameter
from lastbit.ledger.storage import holds_ledger
from lastbit.places import Place, Spared, check_target, ledger_files
from lastbit.tables.schema import DataCard, Source

__all__ = ["check_output", "spared_by"]

_ENDS = ("-journal", "-wal", "-shm")


def spared_by(card: DataCard, ledger: Place | None = None) -> dict[str, list[str]]:
    """What no answer from this table may be written over: card, ledger, source, public tables."""
    found: dict[str, list[str]] = {}
    if card.file is not None:
        found["the card"] = [card.file]
    books = card.ledger if ledger is None else ledger
    if books is not None:
        found["the ledger"] = ledger_files(books)
    found["the source"] = _files(card.source)
    for name, public in card.public.items():
        found[f"the public table {name[:60]}"] = _files(public.source)
    return found


def _files(source: Source) -> list[str]:
    return [place for path in source.paths for place in (path, f"{path}.wal")]


def check_output(option: str, path: Place, spared: Spared) -> None:
    """Refuse to write over what is spared and over any ledger, whoever it belongs to."""
    check_target(option, path, spared)
    place = os.path.realpath(path)
    bases = [place, *(place.removesuffix(end) for end in _ENDS if place.endswith(end))]
    if any(holds_ledger(base) for base in bases):
        raise InvalidParameter(
            option,
            problem="names a ledger, which must not be written over",
            remedy="name another file",
        )
