"""Whether a public table is a protected one, by where their files are; before any is opened."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from lastbit.tables.backends.duckdb.files import Opened, check_apart
from lastbit.tables.card.schema import DataCard, Source


def check_public_apart(card: DataCard) -> None:
    """Refuse a public table of a card that is a protected one; no table is opened.

    What is missing of a protected table is no public one; the rest of it is compared.
    """
    public = [
        (name, there) for name, one in card.public.items() for there in _looked_at(one.source)
    ]
    for source in (card.source, *card.protected.values()):
        for protected in _looked_at(source):
            check_apart(protected, public)


def _looked_at(source: Source) -> Iterator[Opened]:
    """The files of each path, as `opened` would find them."""
    for part in [replace(source, paths=(path,)) for path in source.paths] or [source]:
        paths, stamps, _ = Opened(part).now or ((), (), ())
        yield Opened(part, paths, paths, stamps)
