"""The checker."""

from lastbit.doors import opened

__getattr__, __dir__, __all__ = opened(__name__)
