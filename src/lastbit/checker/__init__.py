"""The independent checker of certificates.

If you distrust lastbit, this is the one room to read. It imports the standard library and itself,
nothing else of lastbit, and works when copied elsewhere: `python -m checker certificate.json`.
None of its logic is used to make certificates, so a fault on one side is noticed by the other.
Numbers are fractions; bounds are rounded the safe way.

| file | holds |
|---|---|
| `dispatch.py` | `check`, `problem_of`: a certificate of any kind, accepted or refused |
| `numbers.py` | fractions, intervals, formats and generators, rounded the safe way |
| `error_bound.py` | derivations of rounding errors, rule by rule |
| `law.py`, `direction.py` | exact output laws of running code, and whether it is monotone |
| `rounding.py`, `shape.py` | code that adds noise and rounds |
| `code.py`, `steps.py` | is the code here the code that was certified? |
| `snapping.py` | the snapping mechanism |
| `release.py`, `query.py`, `answer.py` | answers about tables |

Other rooms may import the names below and nothing else: entry points, and the sentences that a
certificate must carry (`beliefs`). tests/architecture enforces it.
"""

from .dispatch import beliefs, certificate_in, check, check_apart_from_code, names_code, problem_of
from .numbers import Rejected

__all__ = [
    "Rejected",
    "beliefs",
    "certificate_in",
    "check",
    "check_apart_from_code",
    "names_code",
    "problem_of",
]
