"""Sixteen processes at once: not one unit of the last place too much, no answer charged twice."""

import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from lastbit.ledger.ledger import Ledger
from lastbit.ledger.limits import Limit
from tests.ledger.books import new_ledger
from tests.ledger.competing import BUDGET, PROCESSES

ROOT = Path(__file__).parents[2]


def competing(
    how: str, place: Path | str, *, begun: bool = False
) -> tuple[list[list[str]], Ledger]:
    if isinstance(place, str) and not begun:
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


@pytest.mark.parametrize(("most", "by_ben"), [("3/8", 3), ("1/2", 4)])
def test_the_last_of_an_allowance_and_of_an_account_at_once(place, most, by_ben):
    """Eight of ben's race for his allowance, all sixteen for the account."""
    ledger = new_ledger(place)
    ledger.account("visits", BUDGET)
    ledger.set_principal("ada", "steward", by="root")
    for name, epsilon in (("ben", Fraction(most)), ("cy", Fraction(7, 8))):
        ledger.set_principal(name, "analyst", by="ada")
        ledger.set_allowance("visits", name, Limit(epsilon=epsilon, period="day"), by="ada")
    said, ledger = competing("allowances", place, begun=True)
    names = [name for done in said for name in done]
    assert len(names) == 8 and ledger.spent("visits").epsilon == 1
    assert names.count("ben") <= by_ben and names.count("cy") <= 7
    for allowance in ledger.allowances():
        assert allowance.used.epsilon == Fraction(names.count(allowance.principal), 8)


def test_the_last_of_an_allowance_alone(place):
    """The account has enough for both: each is charged exactly what its allowance holds."""
    ledger = new_ledger(place)
    ledger.account("visits", BUDGET)
    ledger.set_principal("ada", "steward", by="root")
    for name in ("ben", "cy"):
        ledger.set_principal(name, "analyst", by="ada")
        ledger.set_allowance("visits", name, Limit(epsilon=Fraction(3, 8)), by="ada")
    said, ledger = competing("allowances", place, begun=True)
    names = [name for done in said for name in done]
    assert sorted(names) == ["ben"] * 3 + ["cy"] * 3
    assert ledger.spent("visits").epsilon == Fraction(3, 4)


def test_the_same_question_is_charged_once_and_all_see_one_answer(place):
    said, ledger = competing("same", place)
    assert len({tuple(done) for done in said}) == 1
    assert ledger.spent("visits").epsilon == Fraction(1, 3)
