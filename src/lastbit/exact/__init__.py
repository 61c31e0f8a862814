"""Numbers that are what they say.

The lowest room. Everything above it computes with three kinds of number and nothing else:

* **Rationals** (`rational`): what a person writes. `"0.1"` and `"1/10"` are one tenth; the float
  `0.1` is the dyadic number that the machine stores, 3602879701896397/36028797018963968; NaN,
  infinities, booleans and words are refused with a remedy.
* **Balls** (`Ball`): a midpoint and a radius that certainly hold the true real number, on Arb by
  way of python-flint. A comparison that the ball cannot decide raises `Undecidable`; it never
  guesses. `refine` raises the precision until a question is decided, up to a bound.
* **Reals** (`Real`): numbers that can be enclosed as tightly as one likes: `Real(2).sqrt()`.

Out of the exact world lead two doors only: `upper(x)` is the least float not below `x`, `lower(x)`
the greatest float not above it. Which way a number was rounded is therefore always visible.

`exp_negative` is the one place where arrays of floats stand for real numbers; its error bound is
proved in its docstring from the correct rounding of + - * / alone, never from what a maths library
promises.

| file | holds |
|---|---|
| `rational.py` | what people write -> Fraction, in range; square roots and exponents of Fractions |
| `rounding.py` | exact number or ball -> float, up or down |
| `decimals.py` | exact number or ball -> text, up, down or exactly |
| `ball.py` | balls whose undecidable comparisons raise; computable reals, and `refine` |
| `binomial.py` | binomial tails, decided exactly; Clopper-Pearson ends |
| `elementary.py` | e**-x, cos and sin over arrays of floats, with proved error bounds |
| `logarithm.py` | ln of floats, correctly rounded |
"""

from lastbit.doors import opened

__getattr__, __dir__, __all__ = opened(__name__)
