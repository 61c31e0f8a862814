"""Sixteen processes at once: not one unit of the last place too much, no answer charged twice."""

import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

from lastbit.ledger.ledger import Ledger
from tests.ledger.competing import PROCESSES

ROOT = Path(__file__).parents[2]


def competing(how: str, place: Path | str) -> tuple[list[list[str]], Ledger]:
    if isinstance(place, str):
        Ledger.init(place)
    finished = subprocess.run(
        [sys.executable, "-m", "tests.ledger.competing", how, str(place)],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert finished.returncode == 0, finished.stderr
    said = json.loads(finished.stdout)
    assert len(said) == PROCESSES
    ledger = Ledger.existing(place)
    assert ledger.problems() == []
    assert len([entry for entry in ledger.entries() if entry.kind == "opened"]) == 1
    assert len([entry for entry in ledger.entries() if entry.kind == "budget"]) == 1
    if isinstance(place, Path):
        assert [path.name for path in place.parent.iterdir()] == ["a.ledger"]
    return said, ledger


def test_three_thirds_fit_exactly(place):
    said, ledger = competing("thirds", place)
    assert sum(map(len, said)) == 3
    assert ledger.spent("visits").epsilon == 1
    left = ledger.remaining("visits")
    assert left is not None and left.epsilon == 0


def test_a_third_and_a_bit_fits_twice(place):
    said, ledger = competing("thirds-and-a-bit", place)
    assert sum(map(len, said)) == 2
    assert ledger.spent("visits").epsilon == Fraction(2, 3) + Fraction(2, 10**30)


def test_prices_of_all_sorts_never_overspend(place):
    said, ledger = competing("mixed", place)
    prices = [Fraction(price) for done in said for price in done]
    assert sum(prices) == ledger.spent("visits").epsilon <= 1
    assert len(prices) > 20
    # every process stopped because the next would have been too much
    assert 1 - sum(prices) < Fraction(1, 31) + Fraction(16, 10**30)


def test_the_same_question_is_charged_once_and_all_see_one_answer(place):
    said, ledger = competing("same", place)
    assert len({tuple(done) for done in said}) == 1
    assert ledger.spent("visits").epsilon == Fraction(1, 3)
