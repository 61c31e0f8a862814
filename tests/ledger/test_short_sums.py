"""However hostile the prices, the ledger's numbers stay short; old ledgers are read and healed."""

import random
import shutil
from fractions import Fraction
from pathlib import Path

import pytest

from lastbit.errors import InvalidParameter
from lastbit.ledger.deciding import leads_to
from lastbit.ledger.entry import Account
from lastbit.ledger.ledger import Ledger
from lastbit.tables.card.budget import Budget
from lastbit.tables.plan.cost import GRID, Cost, on_grid
from tests.ledger.books import charged, price

OLD = Path(__file__).parent / "data" / "version-1.ledger"
"""Written before there were reservations and a grid: 11 entries, sums of 6,989 letters."""
HEAD = "7b772ee57330d890e96cd62805a3af7221665e40c81533c940bf2c943abb445b"


def hostile(source: random.Random) -> Fraction:
    """Admitted, and as awkward in a sum as can be."""
    kind = source.randrange(3)
    if kind == 0:
        return Fraction(source.randrange(1, 10**12), 10 ** source.randrange(28, 41))
    if kind == 1:
        return Fraction(1, source.choice((97, 89, 83, 79, 73, 64, 81, 49, 100)))
    return Fraction(source.uniform(2.0**-130, 2.0**-30))


def test_thousands_of_hostile_prices_keep_the_sum_short():
    source = random.Random(11)
    account, exact = Account(name="visits", budget=None), Fraction(0)
    for _ in range(5_000):
        cost = hostile(source)
        account, exact = account.charged(Cost(epsilon=cost)), exact + cost
        assert account.spent.epsilon.denominator <= GRID
    assert account.spent.epsilon == exact  # and exact all the same
    assert len(str(account.spent.epsilon)) <= 2 * 124 + 8


def test_a_ledger_of_hostile_prices_has_short_entries(tmp_path):
    source = random.Random(12)
    ledger = Ledger.open(tmp_path / "a.ledger")
    ledger.account("visits", Budget(kind="approx", epsilon=Fraction(100), delta=Fraction(1, 2)))
    for number in range(60):
        charged(ledger, f"q{number}", Cost(epsilon=hostile(source), delta=hostile(source) / 4096))
    assert ledger.problems() == []
    assert max(len(entry.text) for entry in ledger.entries()) < 2_000


@pytest.fixture
def old(tmp_path):
    shutil.copy(OLD, tmp_path / "old.ledger")
    return Ledger.open(tmp_path / "old.ledger")


def test_an_old_ledger_is_read_and_its_chain_fits(old):
    assert old.head == HEAD and old.problems() == [] and len(old.entries()) == 11
    assert old.recorded("visits", "first")["rows"] == ["first"]
    assert old.spent("visits") == price("7/12", "1e-9")


def test_a_long_sum_of_old_is_moved_up_and_the_chain_still_fits(old):
    before = old.spent("long").epsilon
    assert len(str(before)) > 6_000
    charged(old, "short", price("1/3"), account="long")
    after = old.spent("long").epsilon
    assert on_grid(after) and len(str(after)) < 256
    assert 0 <= after - before - Fraction(1, 3) < Fraction(1, GRID)
    for number in range(20):
        charged(old, f"more {number}", price("0.01"), account="long")
    assert old.problems([HEAD]) == []


def test_new_budgets_are_on_the_grid_and_old_ones_stay(old):
    long = Budget(kind="pure", epsilon=2 + Fraction(1, 10**998 + 7))
    for change in (lambda: old.account("new", long), lambda: old.set_budget("long", long)):
        with pytest.raises(InvalidParameter, match="grid of prices"):
            change()
    assert old.account("long", Budget(kind="pure", epsilon=Fraction(3))).name == "long"


def test_a_sum_below_the_charges_is_seen(old):
    """The mutant: rounding down, or to nearest."""
    account = Account(name="a", budget=None, spent=Cost(epsilon=Fraction(1, 10**300 + 7)))
    up = account.charged(price(1))
    assert leads_to(account, up, price(1))
    down = Account(name="a", budget=None, spent=Cost(epsilon=Fraction(1)))
    assert not leads_to(account, down, price(1))
