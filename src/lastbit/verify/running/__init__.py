"""Code that runs: its exact output law over a model of uniforms, witnesses, exhaustive checks."""

from lastbit.doors import opened

__getattr__, __dir__, __all__ = opened(__name__)
