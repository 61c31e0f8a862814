"""Numbers that are what they say.

Everything above this room computes with three kinds of number and nothing else:

* **Rationals** (`rational`): what a person writes. `"0.1"` and `"1/10"` are one tenth; the float
  `0.1` is the dyadic number that the machine stores, 3602879701896397/36028797018963968; NaN,
  infinities, booleans and words are refused with a remedy.
* **Balls** (`Ball`): a midpoint and a radius that certainly hold the true real number, on Arb by
  way of python-flint. A comparison that the ball cannot decide raises `Undecidable`; `refine`
  raises the precision until a question is decided, up to a bound.
* **Reals** (`Real`): numbers that can be enclosed as tightly as one likes: `Real(2).sqrt()`.

Only `upper(x)`, the least float not below x, and `lower(x)`, the greatest not above it, lead to
floats: which way a number was rounded is always visible. Arrays of floats stand for real numbers
in `elementary.py` and `logarithm.py` alone, with error bounds proved from the correct rounding of
+ - * / and never from what a maths library promises.
"""

from lastbit.doors import opened

__getattr__, __dir__, __all__ = opened(__name__)
