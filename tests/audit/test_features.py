"""Features are functions of one output, whatever stands beside it."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lastbit.audit.blackbox.features import features, last_place, rows
from lastbit.audit.inputs import SeededRandom


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_the_last_place_is_the_greatest_power_that_divides(number):
    place = int(last_place(np.array([number]))[0])
    if number == 0:
        assert place == 2000
        return
    numerator, denominator = number.as_integer_ratio()
    odd = (numerator & -numerator).bit_length() - denominator.bit_length()
    assert place == odd


def outputs(kind: str, size: int) -> np.ndarray:
    """Outputs made of a fixed sequence: no randomness is needed."""
    base = np.modf(np.arange(1, 4 * size + 1) * math.sqrt(2))[0].reshape(size, 4)
    return {
        "floats": base * 20 - 10,
        "truth": base > 0.5,
        "counts": np.floor(base * 100),
        "flags": np.where(base > 0.7, base * 3, np.where(base > 0.4, -1000.0, np.nan)),
    }[kind]


@pytest.mark.parametrize("kind", ["floats", "truth", "counts", "flags"])
def test_a_feature_looks_at_one_output_alone(kind):
    table = rows(outputs(kind, 500), 500)
    found = features(table, SeededRandom(0))
    assert {"entries", "differences", "summary", "projections"} <= {f.group for f in found}
    for feature in found:
        together = feature.of(table)
        assert together.shape == (500,)
        assert np.isfinite(together).all()
        some = feature.of(table[100:107])
        assert np.array_equal(together[100:107], some), feature.name
        assert np.array_equal(together[::-1], feature.of(table[::-1])), feature.name


def test_repeated_values_make_a_pattern():
    found = {f.name for f in features(rows(outputs("flags", 500), 500), SeededRandom(0))}
    assert "the pattern of repeated values" in found
    assert "the pattern of repeated values, with the sum of the others" in found
