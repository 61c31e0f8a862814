"""Judges mechanisms by proof: what does code written in floats truly promise?

Published mechanisms are proved over the reals and run in floats. This room takes the code as it is
and says what holds of *it*, with a certificate that a second, small program checks again.

| question | answer |
|---|---|
| how far does this code stray from its formula? | `trace` it, then `analyse`: a derivation |
| what is the exact law of this code, its exact loss for two inputs? | `exact_law`, `exact_loss` |
| is this code private at all? | `refute`: two inputs, an output set, both exact probabilities |
| what does rounding and truncating make of it? | `rounding_certificate`, `least_cell` |
| what does the snapping mechanism promise, for all inputs? | `snapping_bound` |
| all of it for binary16, for every pair of inputs | `exhaustive` |
| is this certificate right? | `check`; `lastbit check` on the command line |

How it is done. Code is run on marked inputs and becomes an expression (`trace.py`, `language.py`).
The error semantics derives, rule by rule, an interval for the real value, one for the computed
value and a bound on their distance (`semantics.py`, `rules.py`). Where code is monotone in its
random number, every output's preimage is an interval of bit patterns, found by bisection with the
code itself (`law.py`): no model of its arithmetic is needed, and its law is a table of rationals.

| files | hold |
|---|---|
| `formats.py`, `uniforms.py` | number formats; generators of uniform floats |
| `language.py`, `notation.py`, `evaluation.py` | expressions, on paper and evaluated |
| `trace.py`, `traced.py` | from Python code to expressions |
| `semantics.py`, `rules.py`, `mean.py`, `splitting.py`, `intervals.py`, `derivation.py` | errors |
| `law.py`, `witness.py`, `running.py`, `exhaustive.py` | exact laws, losses, refutations |
| `direction.py` | whether code rises or falls with its uniform, proved from its steps |
| `rounding.py`, `rounded_code.py`, `declared.py`, `modulus.py` | paper 000, corrected |
| `snapping.py` | paper 002, corrected |
| `certificate.py` | certificates as JSON; the one door they leave by, past the checker |
| `check.py`, `check_*.py`, `arithmetic.py` | the second program; standard library only |
"""

from lastbit.doors import opened

__getattr__, __dir__, __all__ = opened(__name__)
