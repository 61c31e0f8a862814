"""Exact probability laws.

A law answers three questions about a random integer, and never with a bare float:

* `probability(k)`: P[X = k], as a `Ball`,
* `cdf(k)`: P[X <= k], as a `Ball`,
* `quantile(p)`: the least k with P[X <= k] >= p, as an integer, decided exactly.

Two programs compare laws, not samples: the samplers build their tables from them, the tests check
the tables against them by independent arithmetic, and the guarantees of the rooms above are stated
in them. Every law is a frozen value with exact rational parameters; `precision=` says how many bits
to work with, and the ball says what came of it.

| law | P[X = k] |
|---|---|
| `Uniform(n)` | 1/n on 0 ... n-1 |
| `Bernoulli(p)` | p for 1, 1-p for 0 |
| `Geometric(scale)` | proportional to exp(-k/scale) on 0, 1, 2, ... |
| `DiscreteLaplace(scale)` | proportional to exp(-abs(k)/scale) on the integers |
| `DiscreteGaussian(variance)` | proportional to exp(-k**2 / (2 variance)) on the integers |
| `Weighted(weights)` | proportional to the rational weights[k] |
| `ExpWeighted(exponents)` | proportional to exp(exponents[k]) |
| `Shifted(law, by)`, `OnGrid(law, step)` | those of X + by and of step * X |
| `Clamped(law, low, high)` | those of X moved into an interval |
| `Stepped(starts, counts, distances, rate)` | constant on runs of integers |
| `Rounded(ideal, location, scale, grid)` | of a real number rounded to a grid |
| `DiscretePlanarLaplace(rate)` | proportional to exp(-rate sqrt(i**2 + j**2)) on pairs (i, j) |

Real-valued laws (`IdealLaplace`, `IdealGaussian`, `IdealCauchy`, `PolynomialTail`, `StudentT`,
`Logistic`, `Gumbel`) give the same answers for intervals; they are drawn only through `Rounded`.

The room lies between `exact` and `privacy`: a law needs exact numbers and nothing else, and both
the samplers and the privacy-loss computations need laws.
"""

from lastbit.doors import opened

__getattr__, __dir__, __all__ = opened(__name__)
