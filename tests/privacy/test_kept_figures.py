"""Prices and limits of filters are, to the last bit, those that ledgers were first kept by.

A ledger holds sums of prices, and whoever verifies it computes them again. The digest is of the
figures that Arb gave, before the filters computed with whole numbers alone.
"""

import hashlib
from fractions import Fraction

from lastbit.privacy import GaussianFilter, moment_filter

KEPT = "db00b3edbb8c2b1ca2e8d1c87aba299d54c7a0f3422495d36ce0b395c51e112b"
LOSSES = [
    *(Fraction(k) * Fraction(10) ** e for e in (-40, -9, -4, -2, -1, 0, 2, 5) for k in (1, 3, 7)),
    *(Fraction(n * n + 1, 997) for n in range(1, 60, 4)),
    Fraction(0.1),
]
BUDGETS = [("3", "1e-6"), ("5.1", "1e-9"), ("0.01", "1e-40"), ("100", "0.25"), ("1e5", "1e-7")]


def figures():
    for epsilon, delta in BUDGETS:
        moments = moment_filter(epsilon, delta)
        gaussian = GaussianFilter(epsilon=epsilon, delta=delta)
        yield from (moments.order, moments.limit, gaussian.limit)
        yield from (moments.price(epsilon=loss).moment for loss in LOSSES)
    yield moment_filter(1, "1/4", order=1, delta_kept=0).limit  # on the grid
    yield from (gaussian.price(epsilon=loss).mu_squared for loss in LOSSES)
    yield from (gaussian.price(rho=loss).mu_squared for loss in LOSSES if loss < 1)


def test_the_figures_of_filters_never_change():
    listed = " ".join(map(str, figures()))
    assert hashlib.sha256(listed.encode()).hexdigest() == KEPT
