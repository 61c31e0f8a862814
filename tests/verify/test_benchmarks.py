"""Our bounds beside the published ones: never above the sharper of them by more than a little."""

from fractions import Fraction
from pathlib import Path

import pytest

from lastbit.checker.error_bound import check_error_bound
from lastbit.exact import rounded_up
from lastbit.verify.error_bounds.semantics import analyse, error_certificate
from tests.verify.roundoff_suite import SUITE, bounds

PAGE = Path(__file__).parents[2] / "docs" / "verify-benchmarks.md"


@pytest.mark.thinned(one_in=15)
@pytest.mark.parametrize("benchmark", SUITE, ids=lambda benchmark: benchmark.name)
def test_our_bound_is_no_worse_than_the_published_ones(benchmark):
    ours = bounds(benchmark)
    for mine, theirs in ((ours.rounded, benchmark.fptaylor), (ours.exact, benchmark.vcfloat)):
        assert theirs is None or mine <= Fraction(theirs)


@pytest.mark.thinned(one_in=12)
@pytest.mark.parametrize("benchmark", SUITE, ids=lambda benchmark: benchmark.name)
def test_the_page_shows_these_bounds(benchmark):
    rows = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| ")]
    (row,) = [line for line in rows if line.split(" | ")[0] == f"| {benchmark.name}"]
    ours = bounds(benchmark)
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[1:5] == [
        rounded_up(ours.rounded, 3),
        benchmark.fptaylor or "not found",
        rounded_up(ours.exact, 3),
        benchmark.vcfloat or "not found",
    ]
    assert cells[5] == str(benchmark.pieces)


def test_there_are_enough_of_them():
    assert len(SUITE) >= 15
    assert sum(b.fptaylor is not None for b in SUITE) >= 15


@pytest.mark.parametrize("benchmark", SUITE[::4], ids=lambda benchmark: benchmark.name)
def test_the_second_program_agrees(benchmark):
    options = benchmark.options(rounded=True)
    found = analyse(benchmark.expression, benchmark.ranges, pieces=4, **options)
    sealed = error_certificate(found, **options)
    check_error_bound(sealed["claim"], sealed["body"])
