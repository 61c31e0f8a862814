"""The ledger: who spent what, for ever.

A table has a budget; every answer takes a part of it, and nothing gives it back. The ledger is the
file, or the database, that remembers. It is append-only and hash-chained: each entry holds the hash
of the one before, so that no old entry can be changed or dropped without changing every later hash.

The order of things is what keeps the promise. `Ledger.reserve` checks the budget and appends the
price in one transaction; only when that is safely on the disk may a row be read for the answer.
`Ledger.settle` appends the whole answer in another; only when that is on the disk may anybody see
it. A crash therefore leaves nothing, or a price that is paid and whose answer the same question
brings about at no further charge, or an answer that is paid for and can be had again. It never
leaves an answer, or a look at the data, without a charge.

    >>> import tempfile
    >>> from fractions import Fraction
    >>> from pathlib import Path
    >>> from lastbit.ledger import Ledger
    >>> from lastbit.tables import Budget, Cost
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger.open(Path(folder.name) / "hospital.ledger")
    >>> _ = ledger.account("visits", Budget(kind="pure", epsilon=Fraction(1)))
    >>> paid = ledger.reserve("visits", Cost(epsilon=Fraction(1, 3)), who="ada", question="q1",
    ...                       plan_digest="p1", fingerprint="f1")
    >>> entry = ledger.settle(paid, {"rows": []})          # now it may be shown
    >>> entry.sequence, str(ledger.remaining("visits")), ledger.problems()
    (4, "epsilon = '2/3'", [])
    >>> ledger.recorded("visits", "q1")["rows"]            # asked again: no charge
    []
    >>> folder.cleanup()

The room knows nothing of data or noise: it takes a price, a few digests and a record in plain JSON.

| file | holds |
|---|---|
| `charging.py` | `ChargingLedger`: reserve, draw, settle |
| `entry.py` | an entry, its canonical text and its hash; an account, and how it is charged |
| `limits.py` | what entries state of allowances |
| `records.py` | what of a record is read, whoever wrote it |
| `chain.py` | entries written, and read in one pass |
| `storage.py` | what a ledger asks of the place that keeps it, and what all places share |
| `places.py` | which storage keeps a place |
| `sqlite.py` | a file: synced, locked, its errors in our words |
| | these decide what a question is charged, and import none of the following |
| `principals.py` | who may charge what: roles and allowances |
| `answers.py` | which records are answers, and which one answers a question again |
| `ledger.py` | `Ledger`: the same, opened, with what stewards decide and auditors look at |
| `making.py` | new ledgers, made whole or not at all; older ones upgraded |
| `words.py` | what people are told: what is left, why a charge is refused |
| `deciding.py` | the rules of decisions: budgets, roles, allowances |
| `inspection.py` | what stewards and auditors ask of the place that keeps a ledger |
| `examination.py` | what is wrong with a chain of entries |
| `safekeeping.py` | backup, restore, export; what must not be written over |
| `making_postgres.py` | the same in a database |
| `postgres.py` | a database that machines share: its lock, lost connections, errors in our words |
| `definitions.py` | its tables, roles, and the functions that append |
"""

from lastbit.doors import opened

__getattr__, __dir__, __all__ = opened(__name__)
