"""Everything public goes to another process and back: names by reference, values by what they say.

The list is that of the doors. A class among the names of `lastbit` itself must have an example.
"""

import copy
import importlib
import inspect
import pickle
import types
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars
import pytest

import lastbit as lb
from lastbit.tables import Cost, planned

ROOMS = Path(lb.__file__).parent
# a command of click, and tables that nobody can change: programs import them
NOT_VALUES = {"lastbit.cli.main", "lastbit.audit.ATTACKS", "lastbit.audit.LIBRARIES"}


def public() -> dict[str, Any]:
    """Every public name, as the doors list them."""
    found = {}
    for stub in (ROOMS / "__init__.pyi", *sorted(ROOMS.glob("*/__init__.pyi"))):
        room = ".".join(("lastbit", *stub.parent.relative_to(ROOMS).parts))
        module = importlib.import_module(room)
        for name in module.__all__:
            value = getattr(module, name)
            if not isinstance(value, types.ModuleType):
                found[f"{room}.{name}"] = value
    return found


PUBLIC = public()
ROWS = polars.DataFrame({"id": [1, 2], "region": ["a", "b"], "cost": [1.0, 2.0]})
TABLE = lb.table(ROWS, unit="id", max_rows=1, keys={"region": ["a", "b"]}, name="visits")
ASKED = TABLE.group_by("region").agg(n=lb.count(), cost=lb.mean("cost", 0, 9))
ANSWER = ASKED.release(epsilon=1)
PAIR: dict[str, Any] = {"sensitivity": 1, "epsilon": 1}
ENDS: dict[str, Any] = {"epsilon": 1, "lower": 0, "upper": 9}
VALUES = [
    lb.AboveThreshold(threshold=5, epsilon=1),
    lb.ApproxDP(1, "1e-6"),
    lb.ApproxLoss(1, "1e-6"),
    lb.BoundedRangeLoss(1),
    lb.Budget(epsilon=3),
    lb.Column(name="cost", type="number", bounds=(0, 9)),
    lb.DiscreteGaussianLoss(4),
    lb.DiscreteGaussianVectorLoss(4),
    lb.DiscreteLaplaceLoss(2),
    lb.Exponential(**PAIR),
    lb.ExponentialQuantile("1/2", **ENDS),
    lb.FiniteLoss([("1/2", "1/2"), ("1/2", "1/2")]),
    lb.Gaussian(sensitivity=1, standard_deviation=2),
    lb.GaussianLoss(1),
    lb.Histogram(keys=["a", "b"], keys_per_person=1, epsilon=1),
    lb.Laplace(**PAIR),
    lb.Laplace(**PAIR, grid="auto"),
    lb.LaplaceLoss(1),
    lb.MetricDP(1),
    lb.Neighbours("add-remove"),
    lb.PermuteAndFlip(**PAIR),
    lb.NormLaplace(sensitivity=1, epsilon=1, norm="L2", dimension=3),
    lb.PlanarLaplace(epsilon=1),
    lb.PolarLaplace(epsilon=1, within=100, cell="1/16", half_width=1000),
    lb.Poll(epsilon=1),
    lb.ProbabilisticDP(1, "1e-6"),
    lb.Profile([(lb.LaplaceLoss(1), 2)]),
    lb.ProposeTestRelease(epsilon=1, delta="1e-6", bound=1),
    lb.PureDP(1),
    lb.RandomizedResponse(epsilon=1),
    lb.RandomizedResponseLoss(1),
    lb.RenyiDP(2, 1),
    lb.ReportNoisyMax(**PAIR),
    lb.RoundedLaplace(**PAIR, cell="1/1024", bound=100),
    lb.SmoothNoise(epsilon=1, grid="1/1024"),
    lb.SmoothStatistic("median", **ENDS),
    lb.Snapping(bound=100, epsilon=1),
    lb.StableValue(epsilon=1, delta="1e-6"),
    lb.SubsampledGaussianLoss("1/10", 1),
    lb.SubsampledLaplaceLoss("1/10", 1),
    lb.ThresholdLoss(2, 20, 1),
    lb.ThresholdedHistogram(keys_per_person=1, epsilon=1, delta="1e-6"),
    lb.ZCDP("0.5"),
    lb.BOTTOM,
    lb.count(),
    Cost(epsilon=Fraction(1)),
    TABLE.card,
    ASKED.query,
    planned(ASKED.query, ASKED.card, epsilon=1),
    ANSWER,
    ANSWER[0],
    ANSWER[0].cells[0],
]


def test_every_class_of_the_front_door_has_an_example():
    classes = {n for n in lb.__all__ if inspect.isclass(getattr(lb, n))}
    assert classes <= {type(value).__name__ for value in VALUES}


@pytest.mark.parametrize("name", sorted(PUBLIC.keys() - NOT_VALUES))
def test_names_are_pickled(name):
    value = PUBLIC[name]
    found = pickle.loads(pickle.dumps(value))
    assert found is value or found == value


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_values_are_pickled_and_copied(value):
    for found in (pickle.loads(pickle.dumps(value)), copy.copy(value), copy.deepcopy(value)):
        assert type(found) is type(value)
        assert found == value or repr(found) == repr(value)


def test_errors_are_pickled():
    for name, kind in inspect.getmembers(lb.errors, inspect.isclass):
        if issubclass(kind, lb.errors.InvalidParameter):
            error: Exception = kind("scale", problem="is odd", remedy="pass {grid}", grid="auto")
        elif issubclass(kind, lb.errors.LastbitError):
            error = kind("words")
        else:
            continue
        found = pickle.loads(pickle.dumps(error))
        assert type(found) is kind and str(found) == str(error), name


def test_a_table_with_its_question_is_pickled():
    found = pickle.loads(pickle.dumps(ASKED))
    assert found.query == ASKED.query and found.card == ASKED.card
    assert found.release(epsilon=1000)["n"] == [1, 1]
