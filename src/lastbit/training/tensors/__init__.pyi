from lastbit.training.tensors.clipping import add_clipped as add_clipped
from lastbit.training.tensors.examples import (
    check_isolated as check_isolated,
    per_example_gradients as per_example_gradients,
)
from lastbit.training.tensors.loading import (
    PoissonBatches as PoissonBatches,
    loader as loader,
)
from lastbit.training.tensors.optimizer import ExactOptimizer as ExactOptimizer, exact as exact

__all__ = [
    "ExactOptimizer",
    "PoissonBatches",
    "add_clipped",
    "check_isolated",
    "exact",
    "loader",
    "per_example_gradients",
]
