"""A card with every field, to be spoilt line by line."""

from __future__ import annotations

from pathlib import Path

from lastbit.tables.card.read import card_from
from lastbit.tables.card.schema import DataCard

WHOLE = """\
# line 1
[table]
name = "visits"
source = "visits.parquet"
neighbours = "add-remove"

[unit]
column = "patient_id"
max_rows = 20
max_groups = 5

[budget]
epsilon = 3
delta = 1e-6

[ledger]
path = "hospital.ledger"

[access]
users = ["ana", "ben"]

[columns.patient_id]
type = "integer"

[columns.cost]
type = "number"
bounds = [0, 500.1]
step = 0.01
nullable = false

[columns.region]
type = "text"
keys = ["north", "south"]

[public.regions]
source = "regions.csv"
columns = {region = "text", name = "text"}
"""
FOLDER = Path("/cards")


def read(text: str = WHOLE) -> DataCard:
    return card_from(text, folder=FOLDER, named="visits.toml")


def edited(old: str, new: str) -> str:
    """The whole card with one passage changed."""
    assert WHOLE.count(old) == 1, old
    return WHOLE.replace(old, new)


def line_of(passage: str, text: str) -> int:
    return text[: text.index(passage)].count("\n") + 1
