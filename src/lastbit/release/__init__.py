"""Release: the only room where a raw aggregate meets a mechanism and a ledger.

A question comes in as a `Query` with its `Plan`, and goes out as an `Answer` that is paid for. In
between, and only here, exact numbers of people are in memory; they are gone before anything is
shown, recorded or logged, and no exception carries them out.

The order is fixed (`paying.py` says why): check who asks and that it can be answered, look for a
recorded answer, let the ledger commit the price, run the engine, add the noise, let the ledger take
the whole answer, show.

| file | holds |
|---|---|
| `table.py` | `table(...)`: a card, files, frames or a server's table, declared |
| `private_table.py` | `Table`: the Python front end, `.group_by(...).agg(...).release(...)` |
| `paying.py` | `checked`, `reserved`, `answered`: from a plan to an answer, in the safe order |
| `release.py` | `released`; the columns, rows and certificate of an answer |
| `made_up_rows.py` | rows made up from a card alone, and answers about them |
| `noise.py` | exact aggregates in, noisy ones out: every mechanism of the plan, run once |
| `intervals.py` | noisy integers to numbers with standard errors and noise intervals |
| `having.py` | HAVING, ORDER BY and LIMIT on released values |
| `views.py` | what SELECT shows of an answer: fewer columns, and what is made of keys |
| `marginals.py` | contingency tables: the question, its release, its record |
| `projection.py` | noisy tables made to agree, exactly |
| `levels.py` | counts on several levels: the questions, their prices, invariants |
| `levels_shares.py` | how much of a price each level gets |
| `levels_tree.py` | noisy numbers on a tree made to add up: least squares in two passes |
| `levels_reach.py` | how far sums of many noises stray |
| `levels_answer.py` | `LevelsAnswer`: numbers that add up, shown, exported, saved |
| `synthetic_rows.py` | synthetic rows from released tables |
| `marginal_answer.py` | `Marginals`: released tables, shown, exported, saved |
| `remote.py` | tables of a server: asked over HTTPS, answers checked and compared |
| `connection.py` | the connection to a server, and the token |
| `steps_as_sql.py` | steps of a question as one SELECT, for servers |
| `answer.py` | `Answer`: the record of an answer, shown, exported, saved, made consistent |
"""

from lastbit.doors import opened

__getattr__, __dir__, __all__ = opened(__name__)
