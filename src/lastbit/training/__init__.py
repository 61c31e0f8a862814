"""DP-SGD whose promise is true of the program that runs: whole numbers between model and release.

A step takes examples by exact coins (`poisson.py`), clips the gradient of each to whole numbers
(`clipping.py`), adds these, adds rounded Gaussian noise once (`noise.py`), and only then returns to
floats. Whatever the model, its precision, its compiler, its device and the order of sums did, one
example moves the sum by at most the bound that noise is for.

What it costs is planned before (`plan.py`), charged to a ledger before the first step and counted
while steps are taken (`run.py`), certified, and told on the model's card (`card.py`).

`tensors` and `gpu` hold the same for torch, and what goes around an optimizer; `arrays` for JAX and
optax. They alone import these, when they are first asked for.
"""

from lastbit.doors import opened

__getattr__, __dir__, __all__ = opened(__name__)
