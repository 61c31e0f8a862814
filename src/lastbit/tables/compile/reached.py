"""Rows that reach their unit through other tables: items by order_id, orders by customer.

Set-up. T0 is the card's table, T1 ... Tm those of its `through`; the unit is a column of Tm.
Rows of T(i-1) and Ti meet where the columns of a step are equal; what is missing equals nothing.
J has a row for each chain of rows that meet, one of each table: an inner join, as bags. A row of J
belongs to the unit of its row of Tm.

Law      t is J, where of one unit's chains from Ti on with the same join columns at most max_rows
         of the step are gone through: the first by a hash of the columns that are read
Theorem  let two databases differ in rows such that the chains of every other unit are the same.
         Then the rows of t of every other unit are the same
Proof    from the last table back. v_m are rows of Tm, each of one unit; the first of those with one
         unit and one list of join columns are a function of rows of this unit alone. If v_i(y), the
         rows of unit y, is a function of y's chains from Ti on, then so are the rows of T(i-1) that
         meet v_i(y), with y as their unit, and those of them that are first with their unit and
         join columns. Rows that the order does not tell apart are equal in all that is read
So       neighbours are databases whose chains are the same but for those of one unit. Take away
         all rows of a unit x in Tm: its chains go, no other's. Besides, rows of the other tables
         through which nobody else is reached may come and go with x. A row of items whose order
         two customers have is in J for each of the two; no row of either decides about the other's
         copy. To take one row for each id (ANY_VALUE, DISTINCT ON) would break this: whose row is
         taken depends on whose rows are there. One file as two of the tables would break it too: to
         take away x's rows in Tm would take them from the ways of others, so that is refused
Theorem  a row of T0 becomes at most M rows of one unit, M the product of max_rows (1 each, unless
         the card says more; at most MOST_MATCHES). What a unit counts for is bounded as ever, by
         weights, from the number of its rows in t (`measures.py`): so no sum overflows
Differs  a row of Tm with the id of many rows of T0 brings them all to its unit: the work grows with
         the rows that are there, and not with their square, as it would without max_rows
Checked  tests/stability/test_reached.py (with mutants), tests/tables/, tests/engines/
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lastbit.tables.compile.dialect import Part
from lastbit.tables.compile.steps import Typed

if TYPE_CHECKING:
    from lastbit.tables.compile.rows import CompiledRows


def reached_rows(rows: CompiledRows) -> Iterator[str]:
    """The parts up to t: w0, w1 ... of the tables by themselves, and v1 ... joined to the end."""
    from lastbit.tables.compile.rows import private_relation  # late: that file imports this one

    part, mentioned = rows.dialect.part, rows.tables[None]
    placed = {name.lower(): i for i, one in enumerate(rows.way, 1) for name in one.columns}
    sources = [rows.own, *(private_relation(one.name) for one in rows.way)]
    listed: list[Typed] = []  # what chains from here on have
    for place in range(len(rows.way), -1, -1):
        step = rows.way[place - 1] if place else None
        own = [one for name, one in sorted(mentioned.items()) if placed.get(name, 0) == place]
        columns = [(step.own_name(name) if step else name, typed) for name, typed in own]
        pairs = [] if step is None else list(enumerate(step.on, start=1))
        for number, (before, other) in pairs:
            kind = mentioned[before.lower()][1].type
            columns.append((other, Typed(f"w{place}_k{number}", kind)))
        even = place == 0 and rows.steps.even
        cast, body = rows.cast_rows(f"w{place}", sources[place], columns, even=even)
        yield cast
        yield part(f"w{place}", body, "step")
        chain = f"w{place}"
        if place < len(rows.way):
            on = [
                f"{mentioned[before.lower()][1].sql} = w{place + 1}_k{number}"
                for number, (before, _) in enumerate(rows.way[place].on, start=1)
            ]
            chain += f" JOIN v{place + 1} ON {' AND '.join(on)}"
        listed += [typed for _, typed in columns]
        if step is None:
            chosen = [typed.sql for _, typed in mentioned.values()] + ["mixed"] * even
            yield part("t", f"SELECT {', '.join(chosen)} FROM {chain}", "step")
            return
        every = ", ".join(typed.sql for typed in listed)
        # what is looked at twice at every step would be looked at 2**m times in all
        how: Part = "kept" if place < len(rows.way) else "step"
        yield part(f"v{place}_all", f"SELECT {every} FROM {chain}", how)
        same = [f"w{place}_k{number}" for number, _ in pairs] + [str(rows.unit)]
        hashed = [(typed.sql, typed.type or "text") for typed in listed]
        order = f"{rows.dialect.keyed_hash(hashed, '')}, {every}"  # 0 and -0 are told apart
        yield from rows.first_rows(f"v{place}", every, same, order, step.max_rows)
