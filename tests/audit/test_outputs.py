"""A row depends on its own output and on nothing else."""

import dataclasses
import datetime
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from lastbit.audit.blackbox.features import rows
from lastbit.errors import InvalidParameter, WrongType


@dataclasses.dataclass
class Answer:
    count: int
    word: str


class Plain:
    def __init__(self, count):
        self.count = count


class Bare:
    __slots__ = ()


single = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3), st.binary(max_size=3)
)
anything = st.one_of(
    single,
    st.lists(single, max_size=4),
    st.tuples(single, single),
    st.sets(st.integers(), max_size=3),
)


def test_what_stands_beside_an_output_does_not_change_its_row(extent):
    @settings(max_examples=extent.number(30, 100))
    @given(st.lists(anything, min_size=1, max_size=6), st.integers(1, 5))
    def holds(items, width):
        together = rows(items, len(items), width)
        assert together.shape == (len(items), width)
        assert np.isfinite(together).all()
        for item, row in zip(items, together, strict=True):
            assert np.array_equal(rows([item], 1, width)[0], row)

    holds()


def test_outputs_of_every_kind_become_numbers():
    assert rows(np.array([1 + 2j]), 1).tolist() == [[1.0, 2.0]]
    assert rows([math.nan, math.inf, -math.inf], 3).ravel().tolist() == [
        -(2.0**1000),
        2.0**1001,
        -(2.0**1001),
    ]
    assert rows([Fraction(1, 2), Decimal("0.25")], 2).ravel().tolist() == [0.5, 0.25]
    assert rows([[1], [1, 2]], 2)[:, 0].tolist() == [1.0, 1.0]
    assert rows(np.zeros((3, 0)), 3).shape == (3, 1)
    words = rows(["a", "b", "a"], 3)
    assert words[0, 0] == words[2, 0] != words[1, 0]


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (10**400, 10**401),
        (10**400, -(10**400)),
        (None, math.nan),
        ({"a": 1}, {"a": 2}),
        ({1}, {2}),
        (Answer(1, "x"), Answer(1, "y")),
        (Plain(1), Plain(2)),
        (datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)),
        (np.datetime64("2020-01-01"), np.datetime64("2020-01-02")),
        ([1, 2, 3, 4], [1, 2, 3, 5]),
        ([], [0]),
    ],
)
def test_different_outputs_have_different_rows(one, two):
    first, second = rows([one, two], 2, 3)
    assert not np.array_equal(first, second)
    assert np.array_equal(rows([one], 1, 3)[0], first)


def test_order_that_means_nothing_is_not_seen():
    assert np.array_equal(*rows([{"a": 1, "b": 2}, {"b": 2, "a": 1}], 2))
    assert np.array_equal(*rows([{"x", "y", "z"}, {"z", "y", "x"}], 2))
    assert np.array_equal(*rows([Plain(3), Plain(3)], 2))  # two places in memory


def test_the_wrong_number_of_outputs_is_refused():
    for outputs, size in (([1, 2, 3], 2), (np.zeros(3), 2), (np.float64(1), 1), (["a"], 2)):
        with pytest.raises(InvalidParameter):
            rows(outputs, size)


@pytest.mark.parametrize("outputs", [None, 5, "ab", b"ab", {1: 2, 3: 4}, {1, 2}])
def test_what_is_no_list_is_refused(outputs):
    with pytest.raises(WrongType):
        rows(outputs, 2)


@pytest.mark.parametrize("output", [object(), Bare(), lambda: 0])
def test_what_shows_only_its_place_in_memory_is_refused(output):
    """It would differ from run to run, whatever the mechanism does: a false accusation."""
    with pytest.raises(WrongType):
        rows([output], 1)


def test_endless_nesting_is_refused():
    loop = [1, "a"]
    loop.append(loop)
    with pytest.raises(WrongType):
        rows([loop], 1)
