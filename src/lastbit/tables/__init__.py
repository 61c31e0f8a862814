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

| folder | files |
|---|---|
| `card/` | `schema` (what is declared, and its rules), `column` (what is known of one), |
| | `read` (from TOML: `fields`, `toml`), `source` (where rows come from), `draft`, `public` |
| `query/` | `expression` (over one row), `types` (what is known of one), `scan` (rows and keys), |
| | `query` (a question as a value), `writing`, `aggregates` (what can be asked in Python) |
| `sql/` | `parse` (text to tree), `statement`, `rows`, `expressions`, `aggregates` |
| `plan/` | `sensitivity` (integer vectors, and how far they move), `ranks` (quantiles), `price`, |
| | `calibrate` (from a price to noise), `parts` (the mechanisms), `plan` |
| `compile/` | `statement` (SQL out), `rows`, `expressions`, `steps`, `dialect` (of an engine) |
| `backends/` | `engines` (which one runs it), `raw_rows` (what it gives back), `duckdb/` ... |

`limits.py` says how large a question may be, and runs work on secrets whose failures carry nothing
out (`sealed`).
"""

from lastbit.doors import opened

__getattr__, __dir__, __all__ = opened(__name__)
