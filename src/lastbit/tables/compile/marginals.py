"""All marginals of a question as one SQL statement, in one scan.

    t, l, e, r, h, s  as in `statement.py`: rows with their unit, their keys and their weight
    then the sum of the weights for every marginal: GROUP BY GROUPING SETS over the same rows s

Theorem  every marginal is a measure of kind rows of the same rows s: its entry at a key is the sum
         of the weights of the rows that have it. A unit's weights add up to at most kW, and in one
         marginal each row is in one entry; so one unit moves each marginal by at most kW in L1, as
         `measures.py` says
Theorem  without noise the marginals agree: all sum the same rows, since a row that lacks a declared
         key in any of the columns is in none of them
Checked  tests/stability/test_marginals.py (on the real engine, with mutants)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lastbit.tables.card.schema import DataCard
from lastbit.tables.compile.dialect import Dialect, Shown
from lastbit.tables.compile.rows import AS_ON_THE_CARD, CompiledRows
from lastbit.tables.compile.statement import Statement, bounded_rows, weights
from lastbit.tables.query.scan import Marginal, Scan

if TYPE_CHECKING:
    from lastbit.tables.compile.numbers import Numbers


def marginals_statement(
    query: Scan,
    card: DataCard,
    marginals: Sequence[Marginal],
    *,
    dialect: Dialect,
    actual: Mapping[str, Shown] = AS_ON_THE_CARD,
    indexed: bool = False,
    numbers: Numbers | None = None,
) -> Statement:
    """Its columns are the number of the marginal, all keys and the sum of the weights.

    A marginal is given by the places of its columns among the keys of the query, which must all be
    declared. `indexed` and `numbers` are those of `statement`.
    """
    own = card if numbers is None else numbers.card_where(units_counted=False)
    rows = CompiledRows(query, own, dialect=dialect, actual=actual)
    names, types = rows.names, rows.key_types()
    weighed = weights(card, dialect, paired=False, indexed=indexed, numbers=numbers)
    parts = [*bounded_rows(rows, {} if numbers is None else numbers.columns(rows)), *weighed]
    last = len(names) - 1
    everything = (1 << len(names)) - 1  # a bit of GROUPING is 1 where its column is not grouped by
    masks = [everything - sum(1 << (last - place) for place in one) for one in marginals]
    cases = [(mask, number) for number, mask in enumerate(masks)]
    sets = ", ".join(f"({', '.join(names[place] for place in one)})" for one in marginals)
    block = f"{dialect.block(names, cases)} AS block"
    final = f"SELECT {', '.join([block, *names])}, sum(w) AS n FROM s"
    text = "WITH " + ",\n".join(parts) + f"\n{final} GROUP BY GROUPING SETS ({sets})"
    return Statement(sql=text, keys=types, sums=(), bins={}, distinct={})
