"""The same on torch's tensors, and around its optimizers: importing these files imports torch."""

from lastbit.doors import opened

__getattr__, __dir__, __all__ = opened(__name__)
