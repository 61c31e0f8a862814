"""From a question about a table to integers that noise can be added to.

A steward describes a table once (`schema.py`; as TOML: `card.py`). A question, in SQL or in Python,
becomes a value (`Query`). The plan says which integer vectors answer it, how far one unit can move
each, which noise that takes and what it costs; all before anything is read. The engine then runs
one statement. What happens to its integers is the business of `lastbit.release`.

Why answers are private, in one paragraph. Rows are filtered and turned into bounded integers one by
one. Each unit's rows share a bounded weight, so one unit adds a bounded amount to any sum of them
(`stability.py`, with proofs). Sums of integers have no order and no rounding. Keys that nobody
declared are shown only if enough units have them. Everything that is released is such a sum with
exact noise, a choice among public candidates by an exact mechanism, or worked out from these.

| files | hold |
|---|---|
| `expression.py`, `types.py`, `bounds.py` | expressions over one row; what is known of them |
| `schema.py`, `card.py`, `card_fields.py`, `card_lines.py`, `toml_text.py` | the data card |
| `drafting.py`, `card_source.py` | a card drafted, and held against the table itself |
| `query.py`, `aggregates.py` | a question as a value; what can be asked |
| `sql.py`, `sql_text.py`, `sql_tree.py`, `sql_names.py` | SQL in: statements, words, names |
| `sql_from.py`, `sql_joins.py`, `sql_rows.py`, `sql_released.py` | its FROM, and its HAVING |
| `sql_aggregates.py`, `sql_expression.py` | its aggregates and expressions |
| `measures.py`, `stability.py` | integer vectors, and how far they move |
| `plan.py`, `parts.py`, `pricing.py`, `split.py`, `ranks.py`, `asking.py`, `cost.py` | the plan |
| `explaining.py` | the promise in one sentence |
| `compile.py`, `compile_rows.py`, `compile_integers.py` | SQL out: one statement |
| `compile_expression.py`, `literals.py` | its expressions and constants |
| `csv_records.py` | CSV split into records, each by itself |
| `backends/`, `aggregated.py` | engines, and what they give back |
| `sealing.py` | work on secrets whose failures carry nothing out |
"""

from lastbit.doors import opened

__getattr__, __dir__, __all__ = opened(__name__)
