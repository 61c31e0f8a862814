"""The promise of a plan in one sentence; the checker writes the same, letter for letter."""

from __future__ import annotations

import re

from lastbit.tables.card.schema import DataCard
from lastbit.tables.plan.price import Cost

_WORD = re.compile("[A-Za-z_\u00c0-\u024f][A-Za-z0-9_\u00c0-\u024f]{0,59}")


def guarantee_text(card: DataCard, cost: Cost) -> str:
    """The promise in one sentence.

    >>> from lastbit.tables.schema import Source
    >>> card = DataCard(name="t", source=Source(kind="csv"), unit=None, max_rows=1, columns={})
    >>> guarantee_text(card, Cost(epsilon=Fraction(1)))
    'epsilon = 1 differential privacy for one row more or less'
    """
    kind = "zero-concentrated differential privacy" if cost.rho else "differential privacy"
    return f"{str(cost).replace(chr(39), '')} {kind} for {_neighbours(card)}"


def unit_name(name: str) -> str:
    """A column's name in a sentence: one that is no plain word is quoted, odd letters escaped.

    >>> unit_name("patient_id"), unit_name("row, or none")
    ('patient_id', '"row, or none"')
    """
    if _WORD.fullmatch(name):
        return name
    letters = [c if c.isprintable() and c not in '"\\' else f"\\u{ord(c):04x}" for c in name]
    return '"' + "".join(letters) + '"'


def _neighbours(card: DataCard) -> str:
    """By the column that the card names, and by nothing else: the checker writes the same."""
    unit = "row" if card.unit is None else unit_name(card.unit)
    return str(card.neighbours.by(unit))
