"""Judges mechanisms by proof: what does code written in floats truly promise?

Published mechanisms are proved over the reals and run in floats. This room takes the code as it is
and says what holds of *it*, with a certificate that an independent checker works out again.

| question | answer |
|---|---|
| how far does this code stray from its formula? | `trace` it, then `analyse`: a derivation |
| how close is code to its meaning, a law to another? | `closeness`, `wasserstein` |
| what is the exact law of this code, its exact loss for two inputs? | `exact_law`, `exact_loss` |
| is this code private at all? | `refute`: two inputs, an output set, both exact probabilities |
| what does rounding and truncating make of it? | `rounding_certificate`, `least_cell` |
| and of Gaussian noise of two uniforms, with its delta? | `gaussian_certificate` |
| and of noise of the plane, of a radius and an angle? | `polar_certificate` |
| what does a program lose that draws, compares and puts out? | `coupled` |
| what does the snapping mechanism promise, for all inputs? | `snapping_bound` |
| all of it for binary16, for every pair of inputs | `exhaustive`, `drawn_law` |
| is this certificate right? | `check`; `lastbit check` on the command line |

Code is run on marked inputs (`tracing/`) and becomes an expression (`language/`). The error
semantics (`error_bounds/`) derives, rule by rule, an interval for the real value, one for the
computed value and a bound on their distance. Where code is monotone in its random number, every
output's preimage is an interval of bit patterns, found by bisection with the code itself
(`running/`): no model of its arithmetic is needed, and its law is a table of rationals.

Nothing here shares logic with `lastbit.checker`: it is asked for its verdict, and for the sentences
that a certificate must carry.
"""

from lastbit.doors import opened

__getattr__, __dir__, __all__ = opened(__name__)
