"""Targets made ready: numpy's noise, lastbit's, and that of other libraries.

A library is imported when its targets are asked for, and a clear error says how to install it.
Every target has the promise that its library makes, for two neighbouring inputs.

| file | holds |
|---|---|
| `target.py` | what an attack is tried on |
| `lastbit.py` | lastbit's mechanisms, and its samplers made into mechanisms |
| `libraries.py` | `targets(library)`; numpy, diffprivlib, OpenDP, PyDP, Tumult |
"""

from lastbit.doors import opened

__getattr__, __dir__, __all__ = opened(__name__)
