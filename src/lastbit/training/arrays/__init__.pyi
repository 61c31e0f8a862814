from lastbit.training.arrays.examples import (
    check_isolated as check_isolated,
    per_example_gradients as per_example_gradients,
)
from lastbit.training.arrays.loading import batches as batches
from lastbit.training.arrays.mean import (
    noisy_mean as noisy_mean,
    noisy_mean_of_parts as noisy_mean_of_parts,
)
from lastbit.training.arrays.transformation import exact_mean as exact_mean

__all__ = [
    "batches",
    "check_isolated",
    "exact_mean",
    "noisy_mean",
    "noisy_mean_of_parts",
    "per_example_gradients",
]
