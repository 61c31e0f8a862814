from lastbit.training.card import model_card as model_card
from lastbit.training.clipping import (
    WholeClip as WholeClip,
    clipped_sum as clipped_sum,
    whole_gradients as whole_gradients,
)
from lastbit.training.noise import rounded_gaussian as rounded_gaussian
from lastbit.training.plan import (
    TrainingPlan as TrainingPlan,
    plan_from_dict as plan_from_dict,
    read_plan as read_plan,
    training_plan as training_plan,
)
from lastbit.training.poisson import PoissonSample as PoissonSample
from lastbit.training.run import TrainingRun as TrainingRun, start_run as start_run

__all__ = [
    "PoissonSample",
    "TrainingPlan",
    "TrainingRun",
    "WholeClip",
    "clipped_sum",
    "model_card",
    "plan_from_dict",
    "read_plan",
    "rounded_gaussian",
    "start_run",
    "training_plan",
    "whole_gradients",
]
