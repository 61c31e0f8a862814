"""lastbit: differential privacy that holds to the last bit.

Exact numbers (`lastbit.exact`), exact probability laws (`lastbit.laws`) and exact samplers on
cryptographic bits (`lastbit.sampling`), the last of which are also here:

>>> import lastbit as lb
>>> noisy_count = 1234 + lb.discrete_laplace(scale="1/2")
>>> lb.laws.DiscreteLaplace("1/2").probability(0)
Ball(0.76159415595576488812 ± 5.42e-22)

Every room explains itself: `help(lastbit.sampling)`. Errors: `lastbit.errors`.
"""

from lastbit import errors, exact, laws, sampling
from lastbit.sampling import (
    bernoulli,
    bernoulli_exp,
    choice,
    choice_exp,
    discrete_gaussian,
    discrete_laplace,
    geometric,
    stream,
    uniform_below,
)

__version__ = "0.1.0"

__all__ = [
    "__version__",
    "bernoulli",
    "bernoulli_exp",
    "choice",
    "choice_exp",
    "discrete_gaussian",
    "discrete_laplace",
    "errors",
    "exact",
    "geometric",
    "laws",
    "sampling",
    "stream",
    "uniform_below",
]
