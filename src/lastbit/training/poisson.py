"""Batches by exact coins: each example with probability q, and nothing else decides.

Law      every example is in a batch with probability q exactly, apart from all others and from all
         other batches
Theorem  that is the sample of which `SubsampledGaussianLoss(q, ...)` speaks
Differs  a shuffled pass over the data in equal pieces is another sample, of which no such theorem
         is known; and what is below a float32, as in other libraries, has another probability. An
         empty batch is a batch: its step is noise alone
Checked  tests/training/test_poisson.py; the coin in tests/laws/test_bernoulli.py
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from lastbit.errors import InvalidParameter
from lastbit.exact import Number, probability, whole
from lastbit.sampling import bernoulli


@dataclass(frozen=True, slots=True, init=False)
class PoissonSample:
    """Which of the examples take part in a step, drawn anew for each.

    >>> PoissonSample(examples=4, rate=1).batch().tolist()
    [0, 1, 2, 3]
    >>> [batch.size for batch in PoissonSample(examples=4, rate=1).batches(2)]
    [4, 4]
    """

    examples: int
    rate: Fraction

    def __init__(self, *, examples: int, rate: Number) -> None:
        object.__setattr__(self, "examples", whole(examples, "examples", least=1))
        share = probability(rate, "rate")
        if not share:
            raise InvalidParameter("rate", problem="is 0", remedy="pass, say, 1/100")
        object.__setattr__(self, "rate", share)

    @property
    def expected(self) -> Fraction:
        """How many examples a batch has on average: how many one has is not public."""
        return self.examples * self.rate

    def batch(self) -> NDArray[np.int64]:
        """The numbers of the examples of one batch, in order."""
        return np.flatnonzero(bernoulli(self.rate, self.examples))

    def batches(self, steps: int) -> Iterator[NDArray[np.int64]]:
        """So many batches, one after the other."""
        return (self.batch() for _ in range(whole(steps, "steps")))
