"""Neighbours of every kind of dataset."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lastbit.audit.replay.distance import record_distance
from lastbit.audit.replay.neighbours import neighbours
from lastbit.errors import InvalidParameter, WrongType
from lastbit.privacy.neighbours import ADD_REMOVE, AS_DECLARED, CHANGE_ONE


@given(
    data=st.lists(st.integers(0, 3), min_size=1, max_size=6),
    records=st.lists(st.integers(0, 5), max_size=3),
    relation=st.sampled_from([ADD_REMOVE, CHANGE_ONE]),
)
def test_each_is_one_step_away_and_all_are_there(data, records, relation):
    found = [n.dataset for n in neighbours(data, relation, records=records)]
    assert all(record_distance(data, other, relation.relation) == 1 for other in found)
    values = {*data, *records}
    if relation is ADD_REMOVE:
        assert len(found) == len(data) + len(values)
        assert {tuple(other[: len(data)]) for other in found[len(data) :]} <= {tuple(data)}
    else:
        assert len(found) == len(data) * (len(values) - 1)


def test_arrays_and_columns_keep_their_kind():
    rows = np.array([[1.0, 2.0], [3.0, 4.0]])
    first, *_, last = neighbours(rows, records=np.array([[9.0, 9.0]]))
    assert first.dataset.tolist() == [[3, 4]] and last.dataset.shape == (3, 2)
    columns = {"age": [31, 44], "town": np.array(["a", "b"])}
    first, *_ = neighbours(columns)
    assert first.dataset["age"] == [44] and first.dataset["town"].tolist() == ["b"]


def test_all_rows_of_a_unit_go_at_once():
    visits = {"patient": ["p", "q", "p"], "cost": [1, 2, 3]}
    found = [n.dataset for n in neighbours(visits, ADD_REMOVE.by("patient"))]
    assert [d["cost"] for d in found] == [[2], [1, 3]]
    more = {"patient": ["r", "s", "r"], "cost": [7, 8, 9]}
    found = [n.dataset for n in neighbours(visits, ADD_REMOVE.by("patient"), records=more)]
    assert [d["cost"] for d in found[2:]] == [[1, 2, 3, 7, 9], [1, 2, 3, 8]]
    with pytest.raises(InvalidParameter, match="that is in the dataset"):
        neighbours(visits, ADD_REMOVE.by("patient"), records={"patient": ["q"], "cost": [7]})
    with pytest.raises(InvalidParameter, match="several rows"):
        neighbours(visits, CHANGE_ONE.by("patient"))


def test_some_are_spread_evenly_and_cheap():
    found = list(neighbours(list(range(1000)), CHANGE_ONE, most=10))
    assert 9 <= len(found) <= 10
    assert len({n.change.split()[1] for n in found}) == len(found)  # ten different records
    assert len(list(neighbours([1, 2], most=100))) == 4


def test_nothing_of_the_data_is_shown():
    (first, *_) = neighbours([73211, 5])
    assert repr(first) == "Neighbour()"


@pytest.mark.parametrize(
    ("dataset", "options"),
    [
        (5, {}),
        ("text", {}),
        (np.array(3), {}),
        ({1, 2}, {}),
        ({"a": [1], "b": [1, 2]}, {}),
        ([1], {"relation": AS_DECLARED}),
        ([1], {"relation": "add-remove"}),
        ([1], {"most": 0}),
        ([1], {"most": 1.5}),
        ([1], {"records": (1,)}),
        (np.array([1]), {"records": np.array([1.5])}),
        ({"a": [1]}, {"records": {"b": [1]}}),
    ],
)
def test_bad_input_is_refused(dataset, options):
    with pytest.raises((InvalidParameter, WrongType)):
        neighbours(dataset, **options)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames(library):
    frames = pytest.importorskip(library)
    frame = frames.DataFrame({"age": [31, 44, 44], "town": ["a", "b", "b"]})
    extra = frames.DataFrame({"age": [0], "town": ["a"]})
    found = [n.dataset for n in neighbours(frame, records=extra)]
    assert [len(other) for other in found] == [2, 2, 2, 4, 4, 4]
    assert found[0]["age"].to_list() == [44, 44] and found[-1]["age"].to_list()[-1] == 0
    by_town = [n.dataset["age"].to_list() for n in neighbours(frame, ADD_REMOVE.by("town"))]
    assert by_town == [[44, 44], [31]]
