"""Grey-box audit: record a program's noise, replay it on a neighbour, see what still changes."""

from lastbit.doors import opened

__getattr__, __dir__, __all__ = opened(__name__)
