"""For which neighbours something is promised: what one unit may do to a database."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from lastbit.errors import InvalidParameter, WrongType

Relation = Literal["add-remove", "change-one", "as-declared"]
_WORDS = (
    ("add-remove", "one {} more or less"),
    ("change-one", "one {} changed"),
    ("as-declared", "inputs as far apart as the declared sensitivity"),
)


@dataclass(frozen=True, slots=True)
class Neighbours:
    """A neighbour relation: what one unit may do to the database.

    `add-remove`: one unit more or less. `change-one`: one unit changed, the number of units public.
    `as-declared`: the relation for which a mechanism's sensitivity was stated, whatever it was.

    >>> ADD_REMOVE.by("patient")
    Neighbours(relation='add-remove', unit='patient')
    >>> str(CHANGE_ONE)
    'one record changed'
    """

    relation: Relation
    unit: str = "record"

    def __post_init__(self) -> None:
        if not isinstance(self.relation, str) or self.relation not in dict(_WORDS):
            known = ", ".join(name for name, _ in _WORDS)
            raise InvalidParameter("relation", problem="is unknown", remedy=f"pass one of {known}")
        if not isinstance(self.unit, str) or not self.unit:
            raise InvalidParameter("unit", problem="is not a name", remedy='pass, say, "patient"')

    def by(self, unit: str) -> Neighbours:
        """The same relation, counted in another unit."""
        return replace(self, unit=unit)

    def __str__(self) -> str:
        return dict(_WORDS)[self.relation].format(self.unit)


def check_neighbours(value: object) -> Neighbours:
    """A neighbour relation, and nothing else."""
    if not isinstance(value, Neighbours):
        raise WrongType(
            "neighbours",
            problem="is not a neighbour relation",
            remedy="pass ADD_REMOVE or CHANGE_ONE",
        )
    return value


ADD_REMOVE = Neighbours("add-remove")
"""Neighbours differ by one record more or less: that somebody takes part is hidden."""
CHANGE_ONE = Neighbours("change-one")
"""Neighbours have equally many records and differ in one: what a record says is hidden."""
AS_DECLARED = Neighbours("as-declared")
"""No `Neighbours` are named: the promise is about whatever the sensitivity was declared for."""
