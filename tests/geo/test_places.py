"""Places as people pass them: taken exactly, or refused without a word of what they hold."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from lastbit.errors import InvalidParameter
from lastbit.geo.parsing import places_of

SECRET = 73.2115


@pytest.mark.parametrize(
    ("points", "single"),
    [
        ((52.5, 13), True),
        ([52.5, 13], True),
        (np.array([52.5, 13]), True),
        ([(52.5, 13)], False),
        (((52.5, 13),), False),
        (np.array([[52.5, 13]], np.float32), False),
        ([(Fraction(105, 2), Decimal(13))], False),
        ((np.float64(52.5), np.int32(13)), True),
    ],
)
def test_every_way_of_writing_one(points, single):
    places, alone = places_of(points)
    assert places.tolist() == [[52.5, 13.0]]
    assert places.dtype == np.float64
    assert alone == single


def test_longitudes_to_360_are_taken():
    assert places_of([(0, 360), (-90, -180), (90, 180)])[0].shape == (3, 2)


@pytest.mark.parametrize(
    "points",
    [
        (), [], np.empty((0, 2)), None, 5, SECRET, "52.5,13", (52.5,), (52.5, 13, 4),
        [(52.5, 13), (1,)], [(52.5, "13")], (SECRET, float("nan")), (float("inf"), SECRET),
        [(SECRET, 361)], [(SECRET, -181)], [(91, SECRET)], (-91, 120), (True, 13),
        [(10**400, SECRET)], [(Fraction(10) ** 400, SECRET)], np.zeros((2, 2, 2)), np.zeros((2, 3)),
        np.array(["a", "b"]), (1 + 2j, 3), {52.5: 13}, np.ma.masked_array([[1.0, 2.0]], mask=True),
        [(None, None)], (Decimal("NaN"), 13),
    ],
    ids=str,
)  # fmt: skip
def test_anything_else_is_refused_without_its_values(points):
    with pytest.raises(InvalidParameter) as caught:
        places_of(points)
    assert caught.value.parameter == "points"
    assert "73.2" not in str(caught.value)
    assert caught.value.remedy.split()[0] in {"pass", "drop", "the"}


def test_swapped_pairs_are_guessed():
    with pytest.raises(InvalidParameter, match="swap the two"):
        places_of([(139.7, 35.7), (135.5, 34.7)])
    with pytest.raises(InvalidParameter) as caught:
        places_of([(139.7, 135.7)])
    assert "swap" not in str(caught.value)
