"""The page of corrections: its tests exist, and those that have no better home are here."""

from __future__ import annotations

import math
import re
from itertools import pairwise
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest

from lastbit.errors import NotCertified
from lastbit.verify.rounding import rounding_certificate
from tests.verify.rounding_examples import one_uniform

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "theory" / "corrections.md"
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE.read_text("utf-8"))


@pytest.mark.parametrize(("file", "name"), sorted(set(NAMED)))
def test_the_tests_named_exist(file, name):
    assert f"def {name}(" in (ROOT / file).read_text("utf-8")


def test_every_row_names_a_test():
    rows = re.findall(r"^\| (\d+) \|.*$", PAGE.read_text("utf-8"), re.M)
    lines = [line for line in PAGE.read_text("utf-8").splitlines() if re.match(r"\| \d", line)]
    assert sorted(map(int, rows)) == list(range(1, 27))
    assert all("::test_" in line for line in lines)


def test_each_is_told_on_the_page_of_its_paper():
    """By a link to the list, under the heading of the section that it corrects."""
    titles = re.split(r"^## Paper (\d{3})$", PAGE.read_text("utf-8"), flags=re.M)[1:]
    listed = {
        (int(number), paper)
        for paper, text in zip(titles[::2], titles[1::2], strict=True)
        for number in re.findall(r"^\| (\d+) \|", text, re.M)
    }
    pages = (page.read_text("utf-8") for page in (ROOT / "docs" / "papers").glob("*.md"))
    told = re.findall(r"\[(\d+)\]\(\.\./theory/corrections\.md#paper-(\d{3})\)", "".join(pages))
    assert {(int(number), paper) for number, paper in told} == listed


def test_10_the_interval_needs_the_inverse():
    """An interval of half-width Phi(0.975) sigma covers 60 percent, not 95."""
    normal = NormalDist()
    printed, meant = normal.cdf(0.975), normal.inv_cdf(0.975)
    assert printed == pytest.approx(0.835, abs=1e-3)
    assert 2 * normal.cdf(printed) - 1 < 0.6
    assert 2 * normal.cdf(meant) - 1 == pytest.approx(0.95)


def test_13_noise_is_large_at_the_ends_of_the_uniform():
    near, far = abs(one_uniform(0.5 + 1e-9)), abs(one_uniform(1 - 1e-9))
    assert near < 1e-8
    assert far > 20


def flipped(u):
    """The sizes of Laplace noise in the right order, but beyond 5 on the wrong side."""
    size = -math.log(1 - 2 * abs(u - 0.5))
    side = 1 if u > 0.5 else -1
    return -side * size if size > 5 else side * size


def test_14_sizes_do_not_tell_the_side():
    """Condition 2 holds for it; moved to the nearer end, results are at the wrong one."""
    grid = np.linspace(0.001, 0.999, 999).tolist()
    ideal = [abs(one_uniform(u)) for u in grid]
    order = np.argsort(ideal, kind="stable")
    sizes = [abs(flipped(grid[k])) for k in order]
    assert all(a <= b + 1e-12 for a, b in pairwise(sizes))
    assert flipped(0.999) < 0 < flipped(0.9)

    def descending(u, sign):  # a code that is not monotone is refused
        return sign * (math.log(u) + (u - u))

    with pytest.raises(NotCertified):
        rounding_certificate(descending, sensitivity=1, cell=1, region=(-4, 4))


def test_15_the_inequality_is_the_other_way_round():
    assert math.exp(-1 * 0.5) > math.exp(-1)
    assert math.exp(1 * 0.5) < math.exp(1)


def test_16_zero_has_two_names():
    """np.rint keeps the sign of what it rounds to zero: the cell is cut in two."""
    names = {str(float(np.rint(x))) for x in (-0.4, 0.4)}
    assert names == {"-0.0", "0.0"}
    assert {str(float(np.rint(x) + 0.0)) for x in (-0.4, 0.4)} == {"0.0"}
