from lastbit.training.clipping import (
    WholeClip as WholeClip,
    clipped_sum as clipped_sum,
    whole_gradients as whole_gradients,
)
from lastbit.training.noise import rounded_gaussian as rounded_gaussian
from lastbit.training.poisson import PoissonSample as PoissonSample

__all__ = [
    "PoissonSample",
    "WholeClip",
    "clipped_sum",
    "rounded_gaussian",
    "whole_gradients",
]
