"""Judges mechanisms by experiment: anybody's, and with certainty where it accuses.

Four ways in, by how much is known of what is judged.

| you have | use | you get |
|---|---|---|
| a function that adds noise, and its claim | `distinguish` | a certified lower bound on epsilon |
| a training loop, of which one run is affordable | `audit_training` | the same, by canaries |
| a library, or noise whose construction is known | `attack` | the verdicts of published attacks |
| a whole program that uses noise | `audit_program`, or `record`, `replay` | leaks, the true cost |

**Black box.** `distinguish` looks for the pair of inputs and the event that tell them apart best,
fixes both, and only then tests them on fresh samples: the bound is wrong with probability at most
`error`, over everything that was tried. Where the law is known (our own mechanisms, code in
`verify.Code`, a table of probabilities) no samples are drawn and the bound is exact. Sampling
cannot see what almost never happens: it accuses with certainty and never acquits.

**White box.** `attacks/` holds published attacks, each with its paper, its set-up, what it breaks
and what resists; `targets/` holds ready targets: ours and numpy's.

**Grey box.** Most violations in practice are wrong sensitivities and data that steers the program.
`record` notes every call of a noise primitive, `replay` runs the program on a neighbour with the
noisy values frozen, and reports what changed that should not have, and the composed true cost.

>>> from lastbit import audit
>>> import lastbit as lb
>>> found = audit.distinguish(lb.Laplace(sensitivity=1, epsilon=1), (0, 2), epsilon=1)
>>> found.broken, round(found.epsilon_lower, 6)
(True, 2.0)

Mechanisms of the literature to measure auditors with are in `bench/auditing`.
"""

from lastbit.doors import opened

__getattr__, __dir__, __all__ = opened(__name__)
