"""Which databases are neighbours: names, words, refusals."""

import copy
import dataclasses
import pickle

import pytest

from lastbit.errors import InvalidParameter
from lastbit.privacy.neighbours import ADD_REMOVE, AS_DECLARED, CHANGE_ONE, Neighbours

ALL = (ADD_REMOVE, CHANGE_ONE, AS_DECLARED)


@pytest.mark.parametrize("relation", ["add", "", "ADD-REMOVE", None, 3, "add-remove "])
def test_an_unknown_relation_is_refused_with_the_known_ones(relation):
    with pytest.raises(InvalidParameter, match="add-remove, change-one, as-declared"):
        Neighbours(relation)


def test_an_unhashable_relation_is_refused_like_any_other():
    with pytest.raises(InvalidParameter):
        Neighbours(["add-remove"])  # type: ignore[arg-type]


@pytest.mark.parametrize("unit", ["", None, 3, b"patient"])
def test_a_unit_is_a_name(unit):
    with pytest.raises(InvalidParameter, match="unit"):
        Neighbours("add-remove", unit)
    with pytest.raises(InvalidParameter, match="unit"):
        ADD_REMOVE.by(unit)


def test_the_three_relations_are_three():
    assert len(set(ALL)) == 3
    assert ADD_REMOVE == Neighbours("add-remove") != ADD_REMOVE.by("patient")
    assert hash(ADD_REMOVE.by("patient")) == hash(Neighbours("add-remove", "patient"))


def test_they_say_what_they_mean():
    assert str(ADD_REMOVE.by("patient")) == "one patient more or less"
    assert str(CHANGE_ONE.by("visit")) == "one visit changed"
    assert "declared sensitivity" in str(AS_DECLARED)


@pytest.mark.parametrize("unit", ["{0}", "{", "{}", "%s", "a}b", "{unit.__class__}"])
def test_braces_in_a_unit_are_only_braces(unit):
    assert unit in str(ADD_REMOVE.by(unit))


@pytest.mark.parametrize("neighbours", ALL)
def test_frozen_copied_and_sent_away(neighbours):
    with pytest.raises(dataclasses.FrozenInstanceError):
        neighbours.unit = "patient"
    assert copy.deepcopy(neighbours) == neighbours
    assert pickle.loads(pickle.dumps(neighbours)) == neighbours
