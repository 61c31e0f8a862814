"""The trusted base: what must be right for an answer to be private, and nothing else.

Theorem  whatever is above this door (planner, SQL parser, intervals, formulas, reports, tuning,
         marginals, synthetic rows, the server) and whatever it passes in, the noisy integers that
         leave through it are one draw of a program that the independent checker has accepted, for
         each price that the card's account was charged; so all of them together protect one unit
         of the card as the account's sum says
Proof    `Program`: what runs is read from the very JSON that the checker accepted. `sealed`: raw
         integers are made here, and read by `noise` alone. `noise`: each step runs once, with exact
         noise. `answering`: the price is committed before a row is read, and a reservation gives
         one draw. What is made of noisy integers afterwards is post-processing
Rests on  - the engine (DuckDB, PostgreSQL, Spark): it computes the one statement as its SQL says
         - the sampler's bits: AES in counter mode, keyed by the operating system
         - Python's and numpy's integers, and IEEE 754's sums and products of doubles
         - SQLite, or PostgreSQL, and the disk: what was committed stays
         - the card: the steward's word for which column is the unit, where the data are, which
           ledger and account pay, and what else it declares. Its budget, and the data that it
           accepts, are compared with the ledger's here. Who asks, and whether the card names that
           user, is looked at where people are known, above this door (`release/paying.py`,
           `serve/tasks.py`)
         - nobody else in this process: a program that reads memory needs no answer, and one that
           makes a `Program` around its checker (`Program.__new__`) or writes into one does as much
Checked  tests/kernel; `make trusted` lists every file that this rests on, and counts its lines
"""

from lastbit.doors import opened

__getattr__, __dir__, __all__ = opened(__name__)
