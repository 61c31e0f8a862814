"""What records and people are told of an engine and its data: version, fingerprint, statement."""

from __future__ import annotations

import re
from importlib import import_module
from typing import cast

from lastbit.tables.backends.drivers import dialect_of
from lastbit.tables.backends.engines import Session, session_for
from lastbit.tables.card.schema import DataCard, EngineName
from lastbit.tables.compile.marginals import marginals_statement
from lastbit.tables.compile.statement import statement
from lastbit.tables.plan.marginals import MarginalsPlan
from lastbit.tables.plan.plan import Plan

_SHOWN = "lastbit_table stands for the table"
_UNDRAWN = "drawn afresh for every answer"


def engine_record(card: DataCard, session: Session | None = None) -> dict[str, str | int]:
    """What a record and a certificate say of the engine: name, version, and that of the dialect."""
    name = card.source.engine
    with session_for(card, session) as engine:
        said = import_module(f"lastbit.tables.backends.{name}.columns").version_of(engine, card)
    # a vendor may call its own version anything; the checker takes a plain word
    version = re.sub(r"[^0-9A-Za-z.+!_-]", "_", said)[:60] or "_"
    return {"name": name, "version": version, "dialect": dialect_of(name).version}


def fingerprint(card: DataCard, session: Session | None = None) -> bytes:
    """Differs if the data do. Refuses what no question could be answered from."""
    with session_for(card, session) as engine:
        return engine.fingerprint(card)


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
