import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from lastbit.audit.targets.target import SumTarget, Target, as_release
from lastbit.errors import InvalidParameter, WrongType


def many(value, size):
    return [value] * size


def target(**changes):
    given: dict[str, Any] = dict(name="bare", release=many, claimed=1)
    return Target(**(given | changes))


def test_defaults():
    plain = target(sensitivity="1/4")
    assert plain.values == (0.0, 0.25) and plain.answers == (0.0, 0.25)
    assert plain.delta == 0 and plain.scale is None and plain.step is None
    assert plain.draw(1, 2).tolist() == [0.25, 0.25]


def test_one_at_a_time_is_repeated():
    one = target(release=lambda value: value + 1)
    assert one.draw(0, 3).tolist() == [1.0, 1.0, 1.0]
    assert as_release(many)(5, 2) == [5, 5]


def test_a_builtin_without_a_signature():
    assert target(release=lambda value, size=None: [value] * size).draw(0, 2).tolist() == [0, 0]


def test_whatever_a_target_takes():
    listed = target(values=([1, 2], [1, 3]), release=lambda value, size: [sum(value)] * size)
    assert listed.answers is None
    assert listed.draw(0, 2).tolist() == [3.0, 3.0]
    assert target(values=([1], [2]), answers=(1, 2)).answers == (1.0, 2.0)


@pytest.mark.parametrize("sensitivity", ["0.1", "1/3", "0.3", "1e-5", "1e400", Fraction(7, 10)])
def test_the_default_values_are_never_further_apart_than_the_sensitivity(sensitivity):
    """The float 0.1 is above 1/10: rounded to nearest, the pair would be none of the claim's."""
    made = target(sensitivity=sensitivity)
    low, high = made.values
    assert low == 0 and Fraction(high) <= made.sensitivity


def test_words_are_inputs_too():
    words = target(values=("yes", "no"), release=lambda value, size: [len(value)] * size)
    assert words.answers is None and words.draw(0, 2).tolist() == [3.0, 3.0]
    assert target(values=("1", "9")).answers is None


def test_a_parameter_is_not_taken_for_the_size():
    """k=3 outputs of one run are not three runs."""

    def top(value, k=3):
        return [value] * k

    assert as_release(top)(1, 5) == [[1, 1, 1]] * 5
    assert as_release(lambda value, *rest: len(rest))(1, 2) == [0, 0]
    assert as_release(lambda value, size=None: [value] * size)(1, 2) == [1, 1]
    assert as_release(lambda value, n: [value] * n)(1, 2) == [1, 1]


def test_a_mechanism_may_change_its_input_and_reuse_its_output():
    """Otherwise the second run would be on another input, and all outputs the last one."""
    buffer = np.zeros(1)

    def careless(value):
        value += 1
        buffer[:] = value
        return buffer

    given = np.zeros(1)
    outputs = as_release(careless)(given, 3)
    assert [output.tolist() for output in outputs] == [[1.0]] * 3 and given.tolist() == [0.0]
    listed = [3, 1, 2]
    as_release(lambda value, size: [value.sort()] * size)(listed, 2)
    assert listed == [3, 1, 2]
    records = np.array([2.0, 1.0])

    def least(data, bounds, size):
        data.sort()
        return [data[0]] * size

    total = SumTarget(name="least", release=least, claimed=1)
    assert total.draw(records, (0, 2), 2).tolist() == [1.0, 1.0] and records.tolist() == [2.0, 1.0]


@pytest.mark.parametrize(
    "changes",
    [
        dict(claimed=-1),
        dict(claimed=math.nan),
        dict(claimed=math.inf),
        dict(claimed=True),
        dict(claimed="much"),
        dict(delta=-0.1),
        dict(delta=1),
        dict(sensitivity=0),
        dict(sensitivity=-1),
        dict(scale=0),
        dict(scale=math.inf),
        dict(scale="1e400"),
        dict(step=-1),
        dict(values=(0, 2)),
        dict(values=(1,)),
        dict(values=(math.nan, 0)),
        dict(name=""),
        dict(name=3),
        dict(release=3),
    ],
)
def test_bad_parameters_are_refused(changes):
    with pytest.raises(InvalidParameter):
        target(**changes)


@pytest.mark.parametrize(
    "outputs",
    [[1.0], [[1.0, 2.0], [3.0, 4.0]], "ab", ["a", "b"], None, [None, object()], [1j, 2j]],
)
def test_strange_outputs_are_refused(outputs):
    with pytest.raises(InvalidParameter, match="release"):
        target(release=lambda value, size: outputs).draw(0, 2)


def test_integers_and_truth_values_are_outputs():
    assert target(release=lambda v, n: np.ones(n, dtype=bool)).draw(0, 2).tolist() == [1.0, 1.0]
    assert target(release=lambda v, n: [2**70] * n).draw(0, 1).tolist() == [2.0**70]
    assert math.isnan(target(release=lambda v, n: [math.nan] * n).draw(0, 1)[0])


def test_the_message_does_not_hold_the_outputs():
    with pytest.raises(InvalidParameter) as caught:
        target(release=lambda value, size: [73211.5]).draw(0, 2)
    assert "73211" not in str(caught.value)


def test_sums():
    total = SumTarget(name="sum", release=lambda d, b, n: [d.sum()] * n, claimed="1/2")
    assert total.claimed == Fraction(1, 2)
    assert total.draw(np.array([1.0, 2.0]), (0, 2), 2).tolist() == [3.0, 3.0]
    given: dict[str, Any] = dict(name="s", release=lambda d, b, n: [0.0], claimed=1)
    wrong: list[dict[str, Any]] = [
        dict(dtype="float32"),
        dict(release=1),
        dict(claimed=-1),
        dict(name=""),
    ]
    for changes in wrong:
        with pytest.raises((InvalidParameter, WrongType)):
            SumTarget(**(given | changes))
