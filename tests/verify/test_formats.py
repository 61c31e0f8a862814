"""Formats against the machine's own rounding, and against brute force."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, strategies as st

from lastbit.checker import Rejected
from lastbit.checker.intervals import number_format
from lastbit.checker.numbers import number as checked_number, spelled
from lastbit.errors import LastbitError, Overflow
from lastbit.report.certificate import certificate_page
from lastbit.report.claims import claim_of
from lastbit.verify import (
    Grid,
    analyse,
    declared_certificate,
    digest,
    error_certificate,
    gaussian_certificate,
    problem_of,
    rounding_certificate,
    snapping_bound,
    trace,
)
from lastbit.verify.certificate import number, written
from lastbit.verify.error_bounds.formats import (
    BINARY16,
    BINARY32,
    BINARY64,
    BINARY128,
    EXTENDED80,
    Binary,
    Fixed,
    format_from_json,
)

TINY = Binary(3, -2, 2)
SMALL = Fixed(2, 3)
FORMATS = (BINARY16, BINARY32, BINARY64, EXTENDED80, BINARY128, TINY, SMALL, Fixed(20, 30))


def every_number(format) -> list[Fraction]:
    """All numbers of a small format, by definition."""
    if isinstance(format, Fixed):
        count = 2 ** (format.fraction_bits + format.integer_bits)
        return [k * format.least for k in range(-count + 1, count)]
    p = format.significand
    found = {
        m * Fraction(2) ** (e - p + 1)
        for e in range(format.least_exponent, format.greatest + 1)
        for m in range(-(2**p) + 1, 2**p)
    }
    return sorted(found)


@pytest.mark.parametrize("format", [TINY, SMALL, Fixed(0, 4), Binary(2, -3, 1)])
def test_rounding_is_to_the_nearest_by_brute_force(format):
    numbers = every_number(format)
    assert format.largest == numbers[-1]
    assert all(format.holds(x) and format.rounded(x) == x for x in numbers)
    fine = format.least / 8
    x = -format.largest
    while x <= format.largest:
        near = format.rounded(x)
        distance = min(abs(n - x) for n in numbers)
        assert abs(near - x) == distance
        ties = [n for n in numbers if abs(n - x) == distance]
        if len(ties) == 2:
            even = [n for n in ties if (n / format.ulp(x)) % 2 == 0]
            assert near in even
        assert format.holds(x) == (distance == 0)
        x += fine


@pytest.mark.parametrize("format", [TINY, SMALL, Binary(2, -3, 1)])
def test_the_bound_on_rounding_holds_and_is_reached(format):
    """Over all intervals with ends on a grid eight times as fine."""
    fine = format.least / 8
    count = int(min(format.largest, 3) / fine)
    moved = [abs(format.rounded(k * fine) - k * fine) for k in range(count + 1)]
    for i in range(0, count, 5):
        for j in range(i, count, 7):
            bound = format.rounding_error(i * fine, j * fine)
            assert max(moved[i : j + 1]) <= bound
            assert format.rounding_error(-j * fine, -i * fine) == bound
    whole = format.rounding_error(Fraction(0), Fraction(3))
    assert whole == max(moved)


@given(st.fractions(), st.integers(-1100, 1100))
@example(Fraction(1), -1075)
@example(Fraction(3), -1075)
@example(Fraction(2**54 - 1), 970)
def test_binary64_is_pythons(number, exponent):
    x = number * Fraction(2) ** exponent
    try:
        wanted = x.numerator / x.denominator
    except OverflowError:
        with pytest.raises(Overflow):
            BINARY64.rounded(x)
        return
    assert BINARY64.rounded(x) == Fraction(wanted)


@pytest.mark.parametrize(("format", "kind"), [(BINARY16, np.float16), (BINARY32, np.float32)])
def test_the_small_ones_are_numpys(format, kind):
    @given(st.floats(-60000, 60000))
    def same(x):
        assert Fraction(float(kind(x))) == format.rounded(Fraction(x))

    same()
    assert Fraction(float(np.finfo(kind).max)) == format.largest
    assert Fraction(float(np.finfo(kind).smallest_subnormal)) == format.least
    assert Fraction(float(np.finfo(kind).tiny)) == format.least_normal


@pytest.mark.thinned(one_in=3)
@pytest.mark.parametrize("format", FORMATS)
@given(a=st.fractions(-7, 7), b=st.fractions(-7, 7), part=st.fractions(0, 1))
def test_nothing_moves_farther_than_the_bound(format, a, b, part):
    low, high = min(a, b), max(a, b)
    x = low + part * (high - low)
    assert abs(format.rounded(x) - x) <= format.rounding_error(low, high)


@pytest.mark.thinned(one_in=36)
@pytest.mark.parametrize("format", FORMATS)
@given(x=st.fractions(-7, 7), y=st.fractions(-7, 7))
def test_the_checkers_formats_are_the_same(format, x, y):
    theirs = number_format(format.json())
    low, high = min(x, y), max(x, y)
    assert theirs.nearest(x) == format.rounded(x)
    assert theirs.step(x) == format.ulp(x)
    assert theirs.half((low, high)) == format.rounding_error(low, high)
    assert theirs.largest == format.largest
    assert theirs.least == format.least
    if isinstance(format, Binary):
        assert theirs.least_normal == format.least_normal


@pytest.mark.parametrize("format", FORMATS)
def test_overflow_is_refused_at_the_right_place(format):
    step = format.ulp(format.largest)
    assert format.rounded(format.largest + step / 4) == format.largest
    for beyond in (format.largest + step, -format.largest - step):
        with pytest.raises(Overflow):
            format.rounded(beyond)


@pytest.mark.parametrize("format", FORMATS)
def test_json_comes_back(format):
    assert format_from_json(format.json()) == format


@pytest.mark.parametrize(
    "written", [{}, {"binary": [53, -1022]}, {"float": [1, 2]}, {"fixed": ["1", 2]}, {"binary": 3}]
)
def test_other_json_is_refused(written):
    with pytest.raises(LastbitError):
        format_from_json(written)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Binary(1, -5, 5),
        lambda: Binary(53, 5, 5),
        lambda: Binary(True, -5, 5),
        lambda: Binary(53.0, -5, 5),  # type: ignore[arg-type]
        lambda: Fixed(-1, 5),
        lambda: Fixed(3, 0),
        lambda: Binary(10**5, -5, 5),
        lambda: Fixed(10**9, 5),
    ],
)
def test_absurd_formats_are_refused(make):
    with pytest.raises(LastbitError):
        make()


def test_ties_go_to_even():
    assert [round(Fraction(k, 2)) for k in (-3, -1, 1, 3, 5)] == [-2, 0, 0, 2, 2]
    assert math.isclose(float(BINARY64.unit_roundoff), 2.0**-53)


# ---------------------------------------------------------------- numbers beyond 4,300 digits

WIDE = (EXTENDED80, BINARY128)


def logistic(u):
    return math.log(u) - math.log(1 - u)


def laplace(u, sign):
    return sign * math.log(u)


def normal(u, v):
    return 10.0 * math.sqrt(-2.0 * math.log(1.0 - u)) * math.cos(2.0 * math.pi * v)


def certificates(format):
    """One of each kind that takes a format; most of them failed before: 4,300 digits."""
    found = analyse(trace(lambda x, y: math.exp(x) * y), {"x": (-9, 3), "y": (0, 3)}, format=format)
    yield error_certificate(found, format=format)
    usual = {"sensitivity": 1, "region": (-8, 8), "format": format}
    yield rounding_certificate(laplace, cell="1/1000", **usual).certificate()
    open_grid = Grid(53, first=1)
    declared = declared_certificate(logistic, rate=1, cell="1/16", uniform=open_grid, **usual)
    yield declared.certificate()
    wide = {**usual, "region": (-100, 100)}
    yield gaussian_certificate(normal, epsilon=1, cell=1, **wide).certificate()
    yield snapping_bound(epsilon=1, bound=2**16, format=format.name).certificate()


@pytest.mark.parametrize("format", WIDE, ids=lambda one: one.name)
def test_wide_formats_have_certificates(format):
    found = list(certificates(format))
    assert [one["kind"] for one in found] == [
        "error-bound", "rounding", "rounding", "gaussian", "snapping",
    ]  # fmt: skip
    for one in found:
        assert problem_of(json.loads(json.dumps(one))) is None
        assert claim_of(one).verdict in certificate_page(one)
    assert any("p-16" in json.dumps(one) for one in found)


def test_wide_formats_stray_less():
    line = trace(lambda x: x * x + 1.0)
    errors = [analyse(line, {"x": (1, 2)}, format=f).error for f in (BINARY64, *WIDE)]
    assert errors[0] == errors[1] * 2**11 == errors[2] * 2**60


def test_a_wide_formats_loss_is_not_that_of_another():
    """A mutant: the claim of 64 bits with the errors of 113."""
    fine = snapping_bound(epsilon=1, bound=64, format="binary128").certificate()
    fine["claim"]["format"] = "extended80"
    fine["digest"] = digest(fine)
    assert "does not follow" in str(problem_of(fine))


@pytest.mark.parametrize("exponent", [0, 1, 53, 8191, 8192, 8193, 16494, 110000])
@given(top=st.integers(-(2**130), 2**130), way=st.sampled_from([1, -1]))
def test_written_numbers_come_back_to_both(exponent, top, way):
    exact = top * Fraction(2) ** (way * exponent)
    text = written(exact)
    assert number(text) == checked_number(text) == exact
    assert spelled(exact) == text
    assert len(text) < 2600


@pytest.mark.parametrize(
    "text",
    ["2p-9000", "1p-8192", "1p8192", "1p0", "0p9000", "01p-9000", "1p-09000", "+1p9000", "1p",
     "1p9000000", "1.5p9000", "1p-900000000", "--1p9000", "1p+9000", "1/1p9000", " 1p9000",
     "٣p9000"],
)  # fmt: skip
def test_a_number_has_one_spelling(text):
    with pytest.raises(LastbitError):
        number(text)
    with pytest.raises(Rejected):
        checked_number(text)


def test_a_ratio_of_too_many_digits_is_refused_in_words():
    """Failed before with a ValueError about Python's own limit."""
    with pytest.raises(LastbitError, match="more than 4,300 digits; pass ratios"):
        written(Fraction(1, 3**10000))


@pytest.mark.parametrize("where", ["steps", "boxes"])
def test_short_texts_of_long_numbers_fill_no_memory(where):
    """1p199999 is short: a file of 128 megabytes took some 90 gigabytes."""
    expression = trace(lambda x: x + 1.0)
    found = json.loads(json.dumps(error_certificate(analyse(expression, {"x": (0, 1)}))))
    body, count = found["body"], 2200 if where == "steps" else 5500
    if where == "boxes":
        body["boxes"] += [{"x": ["0", f"{2 * k + 1}p199999"]} for k in range(2 * count)]
    else:
        (first,) = (step for step in body["steps"][:1])
        for step in body["steps"]:
            step["premises"] = [place + count for place in step["premises"]]
        wide = [f"{2 * k + 1}p199999" for k in range(count)]
        around = [{"real": ["-" + x, x], "computed": ["-" + x, x], "error": x} for x in wide]
        body["steps"] = [{**first, **said} for said in around] + body["steps"]
    found["digest"] = digest(found)
    assert "too long" in (problem_of(found) or "")
