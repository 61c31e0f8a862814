"""lastbit: differential privacy that holds to the last bit.

>>> import lastbit as lb
>>> noise = lb.Laplace(sensitivity=1, epsilon="1/2")
>>> noise.guarantee
PureDP(epsilon='0.5')
>>> noisy_count = noise.release(1234)

Mechanisms (`lastbit.mechanisms`), guarantees and their calculus (`lastbit.privacy`), how far
statistics move (`lastbit.sensitivity`), exact samplers on cryptographic bits (`lastbit.sampling`),
places (`lastbit.geo`), proofs about float code (`lastbit.verify`), audits of anybody's mechanism
(`lastbit.audit`), exact probability laws (`lastbit.laws`) and exact numbers (`lastbit.exact`).
Questions about whole tables (`lastbit.tables`, `lastbit.release`), paid for exactly once
(`lastbit.ledger`), start with `lastbit.table`. Every room explains itself: `help(lastbit.privacy)`.
Errors: `lastbit.errors`.
"""

from lastbit.doors import opened

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = opened(__name__)
