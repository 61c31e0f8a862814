"""Tests of the door for JAX are read only where JAX and optax are: `make training-tests`.

`jax_here.py` comes before the tests by name, and pytest, which looks for examples in it, would keep
the half of it that it read: the tests would fail and not be skipped.
"""

from importlib.util import find_spec

_OF_JAX = ["jax_here.py", "test_jax_*.py"]
collect_ignore_glob = [] if find_spec("jax") and find_spec("optax") else _OF_JAX
