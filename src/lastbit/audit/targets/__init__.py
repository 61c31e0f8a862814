"""Targets made ready: numpy's noise, lastbit's, and that of other libraries.

A library is imported when its targets are asked for, and a clear error says how to install it.
Every target has the promise that its library makes, for two neighbouring inputs.
"""

from lastbit.doors import opened

__getattr__, __dir__, __all__ = opened(__name__)
