"""The least noise with which something holds."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from lastbit.errors import InvalidParameter
from lastbit.exact import floor_log2


def least_noise(meets: Callable[[Fraction], bool], *, start: Fraction, bits: int = 40) -> Fraction:
    """The least dyadic noise parameter for which `meets` holds, to a relative 2**-bits.

    Theorem  `meets` was evaluated, and true, at the very number returned: whatever the shape of the
             function between, the guarantee holds there. If it is monotone the number is the least
             up to the factor 1 + 2**-bits
    Checked  tests/privacy/test_calibrate.py

    >>> float(least_noise(lambda noise: noise * noise >= 2, start=Fraction(1)))
    1.4142135623...
    """
    high = Fraction(2) ** floor_log2(start)
    for _ in range(4096):
        if meets(high):
            break
        high *= 2
    else:
        raise InvalidParameter(
            "target", problem="is out of reach", remedy="ask for a larger epsilon or delta"
        )
    low = high / 2
    for _ in range(4096):
        if not meets(low):
            break
        low, high = low / 2, low
    for _ in range(bits):
        middle = (low + high) / 2
        if meets(middle):
            high = middle
        else:
            low = middle
    return high
