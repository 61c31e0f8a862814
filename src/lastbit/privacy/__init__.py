"""What is promised, and how promises combine.

A guarantee is a frozen value with exact parameters and a neighbour relation: it says how much an
output can tell about which change of the input. Guarantees know nothing of the mechanisms that give
them; they are what is left when the mechanism has run.

| value | promises |
|---|---|
| `PureDP(epsilon)` | no output is more than exp(epsilon) times as likely |
| `ApproxDP(epsilon, delta)` | the same up to an additive delta |
| `ProbabilisticDP(epsilon, delta)` | pure, outside outputs of probability delta |
| `ZCDP(rho)` | Renyi divergence of every order alpha at most alpha rho |
| `RenyiDP(alpha, epsilon)` | Renyi divergence of one order |
| `MetricDP(epsilon, per=, unit=)` | a loss that grows with the distance of the inputs |

`a + b` composes (one kind, one relation, or an error that says how to convert), `g.group(k)` speaks
for k units together, `g.to(Kind, ...)` converts, `g.implies(other)` compares, `g.post_processed()`
is what survives processing. `best_composition` picks the tightest theorem that applies.

A mechanism's `.loss` says more than its guarantee: the pair of laws that one release is at worst.
`50 * one.loss + other.loss` is a `Profile`, the exact composition: `.epsilon(delta)` and
`.delta(epsilon)` give both a lower and an upper bound, `.to(ApproxDP, delta=...)` the guarantee.

Every number that comes out of a conversion is rounded *up* (to a float, taken as the exact dyadic
it is), so a chain of conversions can only promise less than is true, never more.

| file | holds |
|---|---|
| `neighbours.py` | which databases are neighbours |
| `guarantees.py` | the values |
| `convert.py` | from kind to kind, to several units, to beliefs |
| `gaussian_pair.py` | discrete Gaussian noise as Gaussian noise |
| `least_noise.py` | the least noise that meets a condition |
| `compose.py` | several releases, theorem by theorem |
| `filter.py` | releases whose prices are chosen from earlier answers: when to stop |
| `gaussian_filter.py` | the same for Gaussian noise, where it is tighter |
| `best_order.py` | the order of a moment filter that suits a budget |
| `remaining.py` | what the filters tell people: what is left, what was lost so far |
| `promised_prices.py` | what guarantees and losses cost under the filters |
| `accounting/` | losses and profiles: the tight composition, with both bounds |
"""

from lastbit.doors import opened

__getattr__, __dir__, __all__ = opened(__name__)
