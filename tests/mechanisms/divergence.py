"""Exact divergences between laws on the integers, for judging mechanisms."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

from tests.laws.oracle import decimal, decimals, exp


def hockey_stick(p: Any, q: Any, epsilon: Fraction, values: range) -> Decimal:
    """sum of max(0, p(x) - exp(epsilon) q(x)) over the values, in Decimals."""
    with decimals():
        factor = exp(epsilon)
        total = Decimal(0)
        for x in values:
            mine, other = mass(p, x), mass(q, x)
            total += max(Decimal(0), mine - factor * other)
        return +total


def mass(law: Any, value: int | tuple[int, ...]) -> Decimal:
    """The midpoint of a ball of 256 bits: good to far more digits than are asked for."""
    low, high = law.probability(value, precision=256).ends
    with decimals():
        return decimal((low + high) / 2)


def worst_ratio(p: Any, q: Any, values: range) -> Decimal:
    """The largest p(x)/q(x) over the values."""
    with decimals():
        return max(mass(p, x) / mass(q, x) for x in values)
