"""Cosine and sine over arrays of floats, bounded from correctly rounded arithmetic."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lastbit.exact.elementary import alternating

TURN_ERROR = 2.0**-51

# The floats nearest to (2 pi)**j / j!, for even j and for odd j.
_COSINE = (
    1.0,
    19.739208802178716,
    64.9393940226683,
    85.45681720669373,
    60.24464137187666,
    26.4262567833744,
    7.903536371318469,
    1.714390711088672,
    0.28200596845579123,
)
_SINE = (
    6.283185307179586,
    41.34170224039976,
    81.60524927607506,
    76.70585975306139,
    42.058693944897655,
    15.09464257682299,
    3.819952584848282,
    0.7181223017785006,
    0.10422916220813984,
)


def cos_sin_turn(turn: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """cos(2 pi v) and sin(2 pi v) for every v of an array with 0 <= v < 1.

    Law      |cosine - cos(2 pi v)| <= TURN_ERROR and |sine - sin(2 pi v)| <= TURN_ERROR
    Theorem  Write u = 2**-53. Every + - * below is correctly rounded, so each adds at most u times
             its result (a product below 2**-1022 adds 2**-1075, and only where v is that small).
             Reduction: 4v is exact, j = rint(4v), t = v - j/4. For j = 0 nothing is subtracted; for
             j >= 1 v lies between half and twice j/4, so the difference is exact (Sterbenz).
             |t| <= 1/8, and the quarter turns only swap and negate.
             Series in s = fl(t*t) <= 1/64: with q_k = c_k - s q_(k+1) the error obeys
             e_k <= s e_(k+1) + u(c_k unless exact + 2 s|q_(k+1)| + |q_k|), the 2 for s and its
             product. 0 < q_k <= c_k, since the terms alternate and decrease.
             Cosine: e_2 <= 136u, e_1 <= (2.2 + 19.8 + 2.1 + 19.8)u < 44u,
             e_0 <= (0.69 + 0.62 + 1)u < 2.4u; left out: (pi/4)**18/18! < 0.02u.
             Sine: e_1 <= (2.7 + 41.4 + 2.6 + 41.4)u < 89u, e_0 <= (1.4 + 6.3 + 1.3 + 6.3)u < 15.4u;
             times |t|: 1.93u, its product 0.71u; left out: (pi/4)**19/19! < 0.01u. Below 2.7u.
             Both stay below 3u < 4u = 2**-51; u squared is covered by the gap.
    Differs  no maths library is called, so none has to be trusted
    Checked  tests/exact/test_trigonometry.py

    >>> cosine, sine = cos_sin_turn(np.array([0.0, 0.25, 0.5]))
    >>> (cosine + 0.0).tolist(), (sine + 0.0).tolist()
    ([1.0, 0.0, -1.0], [0.0, 1.0, 0.0])
    """
    if turn.dtype != np.float64:
        raise TypeError("cos_sin_turn is proved for float64 only")
    if turn.size and not (turn.min() >= 0 and turn.max() < 1):
        raise ValueError("cos_sin_turn is proved for fractions of a turn from 0 to below 1 only")
    quarters = np.rint(turn * 4)
    rest = turn - quarters * 0.25
    square = rest * rest
    along = alternating(_COSINE, square)
    across = alternating(_SINE, square)
    across *= rest
    quarter = quarters.astype(np.int8)
    odd = (quarter & 1).astype(np.bool_)
    cosine = np.where(odd, across, along)
    sine = np.where(odd, along, across)
    np.negative(cosine, out=cosine, where=((quarter + 1) & 2).astype(np.bool_))
    np.negative(sine, out=sine, where=(quarter & 2).astype(np.bool_))
    return cosine, sine
