"""The rules of an account: exact sums, one currency, never beyond the budget."""

from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from lastbit.errors import BudgetExceeded, InvalidParameter
from lastbit.ledger.deciding import with_budget
from lastbit.ledger.entry import Account
from lastbit.tables.card.budget import Budget
from lastbit.tables.plan.cost import Cost

TINY = Fraction(1, 10**40)
PURE = Budget(kind="pure", epsilon=Fraction(1))
APPROX = Budget(kind="approx", epsilon=Fraction(1), delta=Fraction(1, 10**6))
RHO = Budget(kind="zcdp", rho=Fraction(1, 2))

prices = st.builds(  # as st.fractions(0, 1/2, max_denominator=50), which takes longer
    lambda n, d: Fraction(n % (d // 2 + 1), d), st.integers(0, 25), st.integers(1, 50)
)


def epsilon(value: Fraction | int, delta: Fraction | int = 0) -> Cost:
    return Cost(epsilon=Fraction(value), delta=Fraction(delta))


@given(st.lists(st.tuples(prices, prices.map(lambda p: p / 10**5)), max_size=30))
def test_spent_is_the_sum_of_what_was_accepted_and_within_the_budget(asked):
    account = Account(name="visits", budget=APPROX)
    accepted = Cost()
    for each in asked:
        cost = epsilon(*each)
        fits = (accepted + cost).within(APPROX)
        try:
            account = account.charged(cost)
            accepted += cost
            assert fits
        except BudgetExceeded:
            assert not fits
        except InvalidParameter:
            assert cost == Cost()
        assert account.spent == accepted and accepted.within(APPROX)


def test_not_one_unit_of_the_last_place_too_much():
    full = Account(name="visits", budget=PURE).charged(epsilon(1 - TINY)).charged(epsilon(TINY))
    assert full.remaining == Cost()
    with pytest.raises(BudgetExceeded):
        full.charged(epsilon(TINY))
    with pytest.raises(BudgetExceeded):
        Account(name="visits", budget=PURE).charged(epsilon(1 + TINY))


def test_a_float_sum_would_have_let_more_through():
    """The mutant: ten times the double 0.1 is 0.9999999999999999 in doubles, and more than 1."""
    account = Account(name="visits", budget=PURE)
    for _ in range(9):
        account = account.charged(epsilon(Fraction(0.1)))
    with pytest.raises(BudgetExceeded):
        account.charged(epsilon(Fraction(0.1)))


def test_no_limit_keeps_the_sum():
    account = Account(name="visits", budget=None).charged(epsilon(10**6)).charged(epsilon(1))
    assert account.spent.epsilon == 10**6 + 1
    assert account.remaining is None


@pytest.mark.parametrize("budget", [PURE, APPROX, None])
def test_currencies_do_not_mix(budget):
    account = Account(name="visits", budget=budget).charged(epsilon(TINY))
    with pytest.raises(InvalidParameter, match="is in rho, and the account of visits is kept in e"):
        account.charged(Cost(rho=TINY))
    kept = Account(name="visits", budget=RHO if budget else None).charged(Cost(rho=TINY))
    with pytest.raises(InvalidParameter, match=r"is in epsilon, .* kept in rho; ask with rho"):
        kept.charged(epsilon(TINY))


def test_refusals_say_what_is_left_and_the_way_out():
    account = Account(name="visits", budget=APPROX).charged(epsilon(Fraction(3, 4)))
    with pytest.raises(
        BudgetExceeded, match=r"costs epsilon = 0.5\. .* epsilon = 0.25, delta = 1e"
    ):
        account.charged(epsilon(Fraction(1, 2)))
    with pytest.raises(BudgetExceeded, match="declared keys"):
        Account(name="visits", budget=PURE).charged(epsilon(Fraction(1, 2), TINY))
    with pytest.raises(BudgetExceeded, match=r"only epsilon = 0 is left\. Nothing was charged"):
        Account(name="visits", budget=PURE).charged(epsilon(1)).charged(epsilon(1))
    with pytest.raises(InvalidParameter, match="cost is zero"):
        account.charged(Cost())


def test_another_budget_covers_what_is_spent():
    account = Account(name="visits", budget=APPROX).charged(epsilon(Fraction(1, 2), TINY))
    half = Budget(kind="approx", epsilon=Fraction(1, 2), delta=TINY)
    assert with_budget(account, half).remaining == Cost()
    assert with_budget(account, None).remaining is None
    too_small = Budget(kind="approx", epsilon=Fraction(1, 2) - TINY, delta=TINY)
    for other in (too_small, RHO, PURE):  # PURE has no delta, and some is spent
        with pytest.raises(InvalidParameter, match="less than what visits has spent"):
            with_budget(account, other)


def test_prices_off_the_grid_are_refused():
    account = Account(name="visits", budget=None)
    with pytest.raises(InvalidParameter, match=r"not on the grid of prices.*such as 1e-40"):
        account.charged(epsilon(Fraction(1, 10**999 + 7)))
    with pytest.raises(InvalidParameter, match=r"such as 0\.00990099009900"):
        account.charged(epsilon(Fraction(1, 101)))
