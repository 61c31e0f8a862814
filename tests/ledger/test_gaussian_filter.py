"""Accounts that the Gaussian filter keeps: what they take, what they refuse, and forgeries."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from lastbit.errors import BudgetExceeded, InvalidParameter
from lastbit.ledger.entry import Account, Entry
from lastbit.ledger.ledger import Ledger
from lastbit.ledger.safekeeping import restored
from lastbit.privacy import GaussianCost, GaussianFilter
from lastbit.tables.card.budget import Budget, budgets_agree
from lastbit.tables.plan.cost import Cost
from tests.ledger.books import charged, new_ledger, price, small_ledger
from tests.ledger.test_chain import found, rewrite

KEPT = Budget(kind="gaussian", epsilon=Fraction("5.1"), delta=Fraction(1, 10**6))
RHO = Cost(rho=Fraction(1, 200))


def filtered(place: Path | str) -> Ledger:
    """Opened, a budget, and three charges: entries 1 to 5."""
    ledger = new_ledger(place)
    ledger.account("visits", KEPT)
    charged(ledger, "q1", RHO, gaussian_noise=True)
    charged(ledger, "q2", price("0.1", "1e-9"))
    charged(ledger, "q3", RHO, gaussian_noise=True)
    return ledger


def test_what_is_spent_is_the_sum_of_the_filters_prices(place):
    ledger = filtered(place)
    kept = GaussianFilter(epsilon="5.1", delta="1e-6", delta_kept="1e-7")
    expected = 2 * kept.price(rho=RHO.rho) + kept.price(epsilon="0.1", delta="1e-9")
    assert ledger.spent("visits") == expected and ledger.remaining("visits") == kept.left(expected)
    assert ledger.problems() == [] and ledger.account("visits", KEPT).filter == kept
    assert [entry.version for entry in ledger.entries()] == [1, 4, 4, 4, 4]
    assert all(Entry.read(entry.text) == entry for entry in ledger.entries())


def test_a_rho_of_other_noise_is_refused(place):
    ledger = filtered(place)
    head = ledger.head
    with pytest.raises(InvalidParameter, match="Gaussian noise only"):
        charged(ledger, "q4", RHO)
    with pytest.raises(InvalidParameter, match="above 3/2"):
        charged(ledger, "q4", Cost(rho=Fraction(2)), gaussian_noise=True)
    with pytest.raises(InvalidParameter, match="Gaussian noise only"):
        ledger.reserve(
            "visits", RHO, who="ada", question="r", plan_digest="p" * 64, fingerprint="f" * 64
        )
    assert ledger.head == head


def test_the_budget_is_used_up_and_not_exceeded():
    account = Account(name="visits", budget=KEPT)
    count, large = 0, Cost(rho=Fraction(1, 20))
    with pytest.raises(BudgetExceeded, match="or rho = "):
        for _ in range(1000):
            account = account.charged(large, gaussian_noise=True)
            count += 1
    assert isinstance(account.spent, GaussianCost)
    kept = account.filter
    assert isinstance(kept, GaussianFilter)
    assert count == kept.answers_left(GaussianCost(), kept.price(rho=large.rho)) == 10
    left = account.remaining
    assert left is not None
    most = Cost(rho=left.rho)
    assert kept.within(account.spent + kept.price(rho=most.rho))
    assert not kept.within(account.spent + kept.price(rho=most.rho * (1 + Fraction(1, 2**30))))
    assert kept.within(account.spent + kept.price(epsilon=left.epsilon))
    assert not kept.within(account.spent + kept.price(epsilon=left.epsilon * Fraction("1.0001")))
    assert kept.epsilon_spent(account.spent) <= Fraction("5.1") < kept.odometer(account.spent)
    with pytest.raises(BudgetExceeded, match="delta kept"):
        account.charged(price("1e-9", "2e-7"))


def test_kind_and_share_stay(place):
    ledger = filtered(place)
    more = ledger.set_budget("visits", replace(KEPT, epsilon=Fraction(6))).budget
    assert more is not None and more.delta_kept == Fraction(1, 10**7)
    for other in (
        replace(KEPT, kind="filter"),
        replace(KEPT, delta_kept=Fraction(1, 10**8)),
        replace(KEPT, kind="approx"),
        None,
    ):
        with pytest.raises(InvalidParameter, match=r"fixed before its first answer|plain sums"):
            ledger.set_budget("visits", other)
    with pytest.raises(InvalidParameter, match="is less than what visits has spent"):
        ledger.set_budget("visits", replace(KEPT, epsilon=Fraction(1, 10)))
    with pytest.raises(InvalidParameter, match="order"):
        replace(KEPT, order=Fraction(3))
    assert budgets_agree(KEPT.fixed(), KEPT) and not budgets_agree(
        KEPT.fixed(), replace(KEPT, kind="filter")
    )
    assert ledger.problems() == []


def test_reopening_needs_charges_without_rho(place):
    ledger = small_ledger(place)
    after = ledger.set_budget("visits", KEPT)
    assert isinstance(after.spent, GaussianCost) and after.spent.epsilon == Fraction(3, 4)
    words = ledger.entries(last=1)[0].words
    assert words is not None and words.startswith("kept by the Gaussian filter")
    ledger.account("stays", Budget(kind="zcdp", rho=Fraction(1)))
    charged(ledger, "s", RHO, account="stays")
    with pytest.raises(InvalidParameter, match="has spent some rho"):
        ledger.set_budget("stays", KEPT)
    assert ledger.problems() == []


def test_a_backup_keeps_the_filter(place, tmp_path):
    ledger = filtered(place)
    ledger.backup(tmp_path / "b.ledger")
    back = restored(tmp_path / "b.ledger", tmp_path / "c.ledger")
    assert back.spent("visits") == ledger.spent("visits") and back.problems() == []


@pytest.mark.parametrize(
    "change",
    [
        lambda spent: replace(spent, mu_squared=spent.mu_squared - Fraction(1, 2**64)),
        lambda spent: replace(spent, delta=Fraction(0)),
        lambda spent: replace(spent, rho=Fraction(0)),
    ],
)
def test_a_forged_total_is_seen(place, change):
    ledger = filtered(place)
    rewrite(ledger, 5, spent=change(ledger.entry(5).spent))
    found(ledger, "entry 5 exceeds the budget, or states the wrong total")


def test_a_forged_filter_is_seen(place):
    ledger = filtered(place)
    budget = ledger.entry(5).budget
    assert budget is not None
    for forged in (replace(budget, delta_kept=Fraction(0)), replace(budget, epsilon=Fraction(9))):
        rewrite(ledger, 5, budget=forged)
        found(ledger, "entry 5")
        rewrite(ledger, 5, budget=budget)
    assert ledger.problems() == []
