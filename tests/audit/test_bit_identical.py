"""Outputs are compared to the last bit, and what cannot be compared is refused."""

from collections import Counter, OrderedDict
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lastbit.audit.replay.distance import bit_identical, distance, key_of, no_more_than
from lastbit.errors import WrongType
from lastbit.exact import root_above

NAN = float("nan")


@dataclass
class Report:
    mean: float
    rows: list


class Bag:
    def __init__(self, items):
        self.items = items


EQUAL = [
    (1, 1),
    (NAN, NAN),
    ([1, {"a": (2.5, None)}], [1, {"a": (2.5, None)}]),
    (np.array([1.0, NAN]), np.array([1.0, NAN])),
    (np.array(["a", None], object), np.array(["a", None], object)),
    (Report(1.5, [2]), Report(1.5, [2])),
    (Bag([1]), Bag([1])),
    ({1, 2}, {2, 1}),
    (Fraction(1, 3), Fraction(1, 3)),
    (np.float32(1.5), np.float32(1.5)),
]
DIFFERENT = [
    (1, 1.0),
    (1, True),
    (0.0, -0.0),
    (1.0, np.float64(1.0)),
    ((1, 2), [1, 2]),
    ([1, 2], [1, 2, 3]),
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    ({"a": 1}, OrderedDict({"a": 1})),
    (np.array([1]), np.array([1.0])),
    (np.array([0.0]), np.array([-0.0])),
    (np.zeros(2), np.zeros((2, 1))),
    (Report(1.5, [2]), Report(1.5, [3])),
    (Bag([1]), Bag([2])),
    ("a", b"a"),
    (1.0, 1.0 + 2**-52),
]


@pytest.mark.parametrize(("one", "other"), EQUAL)
def test_same(one, other):
    assert bit_identical(one, other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_different(one, other):
    assert not bit_identical(one, other) and not bit_identical(other, one)


def test_what_cannot_be_compared_is_refused():
    nested: list = []
    nested.append(nested)
    other: list = []
    other.append(other)
    for one, two in [(object(), object()), (nested, other)]:
        with pytest.raises(WrongType):
            bit_identical(one, two)
    with pytest.raises(WrongType):
        key_of({1, 2} and [Bag, {1}])


def test_keys_count_records():
    assert Counter(map(key_of, [[1, 2], [1, 2], [2, 1], {"a": 1.0}, np.array([1, 2])])).total() == 5
    assert key_of([1, 2]) == key_of([1, 2]) != key_of((1, 2))
    assert key_of(0.0) != key_of(-0.0) and key_of(NAN) == key_of(float("nan"))


NUMBERS = st.integers(-9, 9) | st.fractions(-9, 9, max_denominator=16) | st.floats(-9, 9)


@pytest.mark.evidence
@given(pairs=st.lists(st.tuples(NUMBERS, NUMBERS), max_size=5))
def test_distances_are_exact(pairs):
    here, there = [a for a, _ in pairs], [b for _, b in pairs]
    gaps = [abs(Fraction(a) - Fraction(b)) for a, b in pairs]
    assert distance(here, there, "L1") == sum(gaps)
    assert distance(here, there, "Linf") == max(gaps, default=0)
    square = sum(gap * gap for gap in gaps)
    root = Fraction(distance(here, there, "L2"))
    assert square <= root**2 <= square * (1 + Fraction(1, 2**30)) + Fraction(1, 2**60)
    assert no_more_than(here, there, "L2", root)
    assert (
        not root
        or not no_more_than(here, there, "L2", root - Fraction(1, 2**40))
        or ((root - Fraction(1, 2**40)) ** 2 >= square)
    )


def test_one_ulp_beyond_is_beyond():
    assert no_more_than(0.0, 1.0, "L1", Fraction(1))
    assert not no_more_than(0.0, 1.0 + 2**-52, "L1", Fraction(1))
    assert not no_more_than([0, 0], [1, 1], "L2", Fraction(2**0.5) - Fraction(1, 2**52))
    assert root_above(Fraction(9, 4)) == Fraction(3, 2)


@pytest.mark.parametrize(
    ("here", "there", "norm", "far"),
    [
        ([1, 2], [1, 2, 3], "L1", float("inf")),
        ([NAN], [NAN], "L1", 0),
        ([NAN], [1.0], "L1", float("inf")),
        (float("inf"), 1.0, "Linf", float("inf")),
        ({"a": 1}, {"b": 1}, "L1", 2),
        ({"a": 1}, [1], "L1", float("inf")),
        (2**70, 2**70 + 1, "L1", 1),
        ([2**53 + 1, 0.5], [2**53, 0.5], "L1", 1),
        ("a", "b", "L1", float("inf")),
        ([True, False], [True, True], "entries", 1),
        ([1], [1, 2], "entries", float("inf")),
        ([3, 1, 1], [1, 3, 2], "records", 2),
    ],
)
def test_distances_of_odd_inputs(here, there, norm, far):
    assert distance(here, there, norm) == far
