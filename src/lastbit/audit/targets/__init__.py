"""Targets made ready: numpy's noise and lastbit's, with the promise made for two neighbours."""

from lastbit.doors import opened

__getattr__, __dir__, __all__ = opened(__name__)
