"""The statement of a plan, printed for people who review it; nothing is run."""

from __future__ import annotations

from typing import cast

from lastbit.tables.backends.engines import dialect_of
from lastbit.tables.card.schema import EngineName
from lastbit.tables.compile.marginals import marginals_statement
from lastbit.tables.compile.statement import statement
from lastbit.tables.plan.marginals import MarginalsPlan
from lastbit.tables.plan.plan import Plan

_SHOWN = "lastbit_table stands for the table"
_UNDRAWN = "drawn afresh for every answer"


def printed_statement(plan: Plan | MarginalsPlan, name: str | None = None) -> str:
    """The statement of a plan, for review, in the text of this engine or of the card's own.

    Its first line says what it is. Nothing is read: columns are taken to be as the card says, and
    sources stand under the names that an engine shows them by.
    """
    own = plan.card.source.engine
    name = name or own
    dialect = dialect_of(cast(EngineName, name))
    if isinstance(plan, MarginalsPlan):
        sql = marginals_statement(plan.query, plan.card, plan.scanned, dialect=dialect).sql
    else:
        asked = plan.query, plan.card, plan.measures
        sql = statement(*asked, secret=_UNDRAWN, dialect=dialect).sql
    if name == own:
        words = f"{dialect.title}, dialect {dialect.version}: as lastbit runs it; {_SHOWN}"
    else:
        words = f"{dialect.title}, dialect {dialect.version}: the source is on {own}"
    return f"-- {words}\n{sql}"
