"""Exact probability laws.

A law answers three questions about a random integer, and never with a bare float:

* `probability(k)`: P[X = k], as a `Ball`,
* `cdf(k)`: P[X <= k], as a `Ball`,
* `quantile(p)`: the least k with P[X <= k] >= p, as an integer, decided exactly.

Two programs compare laws, not samples: the samplers build their tables from them, the tests check
the tables against them by independent arithmetic, and the guarantees of the rooms above are stated
in them. Every law is a frozen value with exact rational parameters; `precision=` says how many bits
to work with, and the ball says what came of it.

Real-valued laws (`IdealLaplace`, `IdealGaussian`, `IdealCauchy`, `PolynomialTail`, `StudentT`,
`Logistic`, `Gumbel`) give the same answers for intervals; they are drawn only through `Rounded`.

The room lies between exact numbers and privacy: a law needs the former and nothing else, and both
the samplers and the privacy-loss computations need laws.
"""

from lastbit.doors import opened

__getattr__, __dir__, __all__ = opened(__name__)
