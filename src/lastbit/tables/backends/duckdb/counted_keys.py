"""For which questions prepared rows have counts: without keys, and by each column of known keys.

Which they are is for speed alone: any other question counts the rows of units by itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from lastbit.tables.backends.duckdb.preparing import PreparedState, Tell, make_rows
from lastbit.tables.card.schema import DataCard
from lastbit.tables.query.expression import ColumnName
from lastbit.tables.query.key_values import key_of, known_values
from lastbit.tables.query.scan import GroupKey, Scan

MOST_COUNTS = 16
"""The most columns whose keys are counted; each takes a pass, and a number beside every row."""


def prepare_rows(card: DataCard, tell: Tell = lambda share, words: None) -> PreparedState:
    """Make the rows of the card's source ready; nothing is done if they are, byte for byte."""
    return make_rows(card, list(counted_scans(card)), tell)


def counted_scans(card: DataCard) -> Iterator[Scan]:
    """The rows of all groups, then those of each column's known keys."""
    yield Scan(table=card.name)
    listed = 0
    for column in card.columns.values():
        key = key_of(ColumnName(column.name), card)
        values = known_values(key, card)
        if values is not None and listed < MOST_COUNTS:
            listed += 1
            asked = GroupKey(name=column.name, expression=key, values=values)
            yield Scan(table=card.name, keys=(asked,))
