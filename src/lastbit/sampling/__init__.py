"""Random bits in, exact draws out.

Every function here returns integers (or truth values) whose law is *exactly* the one in its
docstring: no float is between the random bits and the draw, except where its error is bounded in
the docstring and everything within the bound is decided by exact arithmetic.

| call | draws |
|---|---|
| `uniform_below(n)` | 0 ... n-1, all alike |
| `bernoulli(p)` | True with rational probability p |
| `bernoulli_exp(gamma)` | True with probability exp(-gamma) |
| `geometric(scale)` | k >= 0 with P proportional to exp(-k/scale) |
| `discrete_laplace(scale)` | an integer, P proportional to exp(-abs(k)/scale) |
| `discrete_gaussian(variance=...)` | an integer, P proportional to exp(-k**2/(2 variance)) |
| `choice(weights)` | an index, P proportional to a rational weight |
| `choice_exp(exponents)` | an index, P proportional to exp(exponent) |
| `planar_laplace(rate)` | a pair (i, j), P proportional to exp(-rate sqrt(i**2 + j**2)) |
| `rounded(law, location=, scale=, grid=)` | a real number of that law, rounded to the grid |

`size=` gives an array; `stream` gives arrays one after the other in bounded memory. Results are
int64, and Python integers (an object array) where the law reaches beyond int64: nothing wraps.

How it is done. A draw is an inversion, X = least j with U < F(j), of a uniform real U whose bits
are revealed only as far as the answer needs them: sixteen nearly always do (`inversion.py`). Large
scales are drawn digit by digit (`laplace.py`) or cell by cell (`gaussian.py`). Candidates with
exponential weights are drawn from integer weights a trace too large, and corrected (`choice.py`).
Real-valued laws are drawn with certified polynomials, and by balls where those do not decide
(`pieces.py`, `rounded.py`).

What a clock can see. The number of random words and of rounds depends on the parameters and the
size alone, except on refinement paths taken with probability below 2**-39 a draw; a test counts.
`rounded` takes such a path with about 2**-17, since its location and scale may be anything.
Memory access does depend on what is drawn (table look-ups), and so may the time of a cache miss:
see docs/known-limits.md. Scalar draws come from a pool made ahead, before any data was seen.
"""

from lastbit.doors import opened

__getattr__, __dir__, __all__ = opened(__name__)
