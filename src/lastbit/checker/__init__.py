"""The independent checker of certificates.

If you distrust lastbit, this is the one room to read. It imports the standard library and itself,
nothing else of lastbit, and works when copied elsewhere: `python -m checker certificate.json`.
None of its logic is used to make certificates, so a fault on one side is noticed by the other.
Numbers are fractions; bounds are rounded the safe way.

| kind | claims | checked in |
|---|---|---|
| error-bound | how far float code strays from its real meaning | `error_bound.py` |
| law, refutation | the exact loss of running code for two inputs | `law.py`, `direction.py` |
| snapping | the loss of the snapping mechanism for all inputs | `snapping.py`, `loss_rules.py` |
| derivation | the loss of rounded noise by ln u, output by output | `loss_derivation.py` |
| rounding | the loss of float noise that is truncated and rounded | `rounding.py`, `shape.py` |
| gaussian | the same of Gaussian noise, with its delta | `gaussian.py`, `tail.py` |
| polar | the same of Laplace noise in the plane, of a radius and an angle | `polar.py` |
| coupling | the loss of a program that draws, compares and puts out | `coupling.py` |
| | and the code that it names is here and takes its steps | `code.py`, `steps.py` |
| release | what an answer from a table costs | `release.py`, `shown.py` |
| marginals | what contingency tables cost, and that they agree | `marginals.py` |
| composition | what several releases promise together | `composition.py`, `necessary.py` |

Other rooms may import the names of `door.py` and nothing else: entry points, and the sentences that
a certificate must carry (`beliefs`). tests/architecture enforces it.
"""

from .door import opened

__getattr__, __dir__, __all__ = opened(__name__)
