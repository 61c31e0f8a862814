"""Code that runs: its exact output law over a model of uniforms, witnesses, exhaustive checks.

| file | holds |
|---|---|
| `code.py` | `Code`: a function with its inputs, as it is called |
| `uniforms.py` | models of what a generator of uniforms can return |
| `law.py` | exact output laws and losses, by bisection over monotone code |
| `witness.py` | two inputs and an output that refute a claim |
| `exhaustive.py` | every float of a small format, tried |
"""

from lastbit.doors import opened

__getattr__, __dir__, __all__ = opened(__name__)
