"""The same on JAX's arrays, and for optax: importing these files imports jax."""

from lastbit.doors import opened

__getattr__, __dir__, __all__ = opened(__name__)
