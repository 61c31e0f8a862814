"""From a question about a table to integers that noise can be added to.

A steward describes a table once (`DataCard`, from TOML or Python). A question, in SQL or in Python,
becomes a value (`Query`). The plan says which integer vectors answer it, their sensitivity, which
noise that takes and what it costs; all before anything is read. The engine then runs one statement.
What happens to its integers is the business of `lastbit.kernel`.

Why answers are private, in one paragraph. Rows are filtered and turned into bounded integers one by
one. Each unit's rows share a bounded weight, so one unit adds a bounded amount to any sum of them
(`measures.py`, with proofs). Sums of integers have no order and no rounding. Undeclared
keys are shown only if enough units have them (partition selection). Everything that is released is
such a sum with exact noise, a choice among public candidates by an exact mechanism, or computed
from these.

Folders: `card/` (what is declared), `query/` (questions as values), `sql/` (SQL in), `plan/` (noise
for a price), `compile/` (SQL out), `backends/` (engines).
"""

from lastbit.doors import opened

__getattr__, __dir__, __all__ = opened(__name__)
