"""A question is rehearsed before it is paid for: what must fail, fails on tables without rows.

No answer rests on this: the kernel runs a statement whether it was rehearsed or not, and one that
fails then stays charged. Every engine's folder has a `rehearsal.py` with `run_without_rows`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from importlib import import_module

from lastbit.tables.backends.engines import Session, Spelled
from lastbit.tables.card.schema import DataCard
from lastbit.tables.compile.marginals import marginals_statement
from lastbit.tables.compile.statement import statement
from lastbit.tables.measures import Measure
from lastbit.tables.query.scan import Marginal, Scan

_NO_SECRET = "0" * 64


def rehearse(session: Session, query: Scan, card: DataCard, measures: tuple[Measure, ...]) -> None:
    """Refuse a source that is not there, columns that it lacks, what the engine cannot run."""
    _run(session, query, card, partial(statement, query, card, measures, secret=_NO_SECRET))


def rehearse_marginals(
    session: Session, query: Scan, card: DataCard, marginals: Sequence[Marginal]
) -> None:
    """The same for all marginals of a question."""
    _run(session, query, card, partial(marginals_statement, query, card, marginals))


def _run(session: Session, query: Scan, card: DataCard, spelled: Spelled) -> None:
    """The statement, but on protected tables without rows; nothing depends on one."""
    engine = import_module(f"lastbit.tables.backends.{card.source.engine}.rehearsal")
    engine.run_without_rows(session, query, card, spelled)
