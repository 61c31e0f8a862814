"""Random bits in, exact draws out.

Every function here returns integers (or truth values) whose law is *exactly* the one in its
docstring: no float is between the random bits and the draw, except where its error is bounded in
the docstring and everything within the bound is decided by exact arithmetic.

`size=` gives an array; `stream` gives arrays one after the other in bounded memory. Results are
int64, and Python integers (an object array) where the law reaches beyond int64: nothing wraps.

How it is done. A draw is an inversion, X = least j with U < F(j), of a uniform real U whose bits
are revealed only as far as the answer needs them: sixteen nearly always do (`inversion.py`). Large
scales are drawn digit by digit (`laplace_tables.py`) or cell by cell (`gaussian_tables.py`).
Candidates with exponential weights are drawn from integer weights a trace too large, and corrected
(`rows.py`, `choice.py`). An answer about a table needs few draws, and takes all by such weights:
digits of Laplace noise (`laplace.py`), some of which are Gaussian noise (`gaussian.py`).
All this rests on whole numbers alone (`exact/fixed_point.py`), and not on Arb.
Real-valued laws are drawn with certified polynomials, and by balls where those do not decide
(`pieces.py`, `rounded.py`).

What a clock can see. The number of random words and of rounds depends on the parameters and the
size alone, except on refinement paths taken with probability below 2**-39 a draw; a test counts.
`rounded` takes such a path with about 2**-17, since its location and scale may be anything, and a
choice among n candidates of many rows with n 2**-59.
Memory access does depend on what is drawn (table look-ups), and so may the time of a cache miss:
see docs/known-limits.md. Scalar draws come from a pool made ahead, before any data was seen.
"""

from lastbit.doors import opened

__getattr__, __dir__, __all__ = opened(__name__)
