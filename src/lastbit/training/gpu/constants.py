"""The proved bounds of the noise kernel, and the floats made of them for a noise scale."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from fractions import Fraction

from lastbit.exact import upper

UNIT = Fraction(1, 1 << 53)
LOG_ERROR = Fraction(5, 8) * UNIT
"""How far the computed logarithm of a float may be off, besides one rounding of the result."""
TURN_ERROR = Fraction(21, 8) * UNIT
"""How far, relatively, the computed cosine and sine may be off."""
_SLACK = 1 + Fraction(1, 1 << 8)
"""More than all terms of second order, and the roundings of the bound's own computation."""
_ROOT_TWO = Fraction(14143, 10000)
LEAST_DEVIATION, MOST_DEVIATION = Fraction(1), Fraction(1 << 36)
NARROW_DEVIATION = Fraction(1 << 27)
"""Up to it draws fit int32: none that the kernel is certain of is above 8.5 deviations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Constants:
    """What the kernel takes of a standard deviation: see the theorem in `gaussian.py`."""

    square: float
    first: float
    second: float
    third: float

    @property
    def patterns(self) -> tuple[int, int, int, int]:
        """The four as integers of 64 bits: a float argument would become binary32.

        What multiplies the radius has a minus: the kernel's radius is negative.
        """
        floats = struct.pack("<4d", self.square, -self.first, self.second, self.third)
        one, two, three, four = struct.unpack("<4q", floats)
        return one, two, three, four


def suits_kernel(deviation: Fraction) -> bool:
    """Whether the kernel's theorem holds for a standard deviation, and few draws are left open.

    >>> suits_kernel(Fraction(1 << 24)), suits_kernel(Fraction(1 << 40))
    (True, False)
    """
    return LEAST_DEVIATION <= deviation <= MOST_DEVIATION


def constants_of(deviation: Fraction) -> Constants:
    """The constants of the theorem, rounded up; the square is rounded to nearest, by at most d.

    >>> constants_of(Fraction(1024)).square
    2097152.0
    """
    double = 2 * deviation**2
    square = float(double)
    off = abs(Fraction(square) / double - 1)
    return Constants(
        square=square,
        first=upper(_SLACK * ((off + 2 * UNIT) / 2 + UNIT + TURN_ERROR)),
        second=upper(_SLACK * double * (LOG_ERROR + UNIT)),
        third=upper(_SLACK * double * _ROOT_TWO),
    )


def open_share(deviation: Fraction) -> float:
    """About how large a share of the draws the kernel leaves open; nothing rests on it.

    Twice the mean of `error` in the kernel: E|c| = 2/pi, E[R] = sqrt(pi/2), and E[1/R] as much.
    """
    one = constants_of(deviation)
    root = math.sqrt(math.pi / 2)
    reach = root * float(deviation) * one.first + root * one.second / float(2 * deviation)
    # the further bits: E[e/R], in steps of a factor 2 of U, is below 64 times 2**-63
    return 2 * (2 / math.pi * reach + root * float(deviation) * 2.0**-60 + 2.0**-53) + 2.0**-39
