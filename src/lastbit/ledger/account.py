"""One table's account: its budget, what is spent of it, and the rules by which both change.

Theorem  if every entry follows these rules, then at every entry what is spent is not below the sum
         of all charges so far, and is it exactly if all prices are on the grid of prices; and it
         lies within the budget then in force
Proof    by induction over the entries: `charged` adds the price, moves the sum up to the grid of
         `tables/plan/price.py` (which holds every sum of prices that are on it), and refuses one
         outside of the budget; `with_budget` keeps the sum and refuses a budget it is not within
Differs  sums are exact fractions: three answers at 1/3 fit a budget of 1, and nothing more does.
         Prices off the grid are refused; ledgers that were written before there was one may hold
         some, and their sums, however long, are moved up at the next charge
Checked  tests/ledger/test_account.py; tests/ledger/test_short_sums.py
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from lastbit.errors import BudgetExceeded, InvalidParameter
from lastbit.exact import exact_text
from lastbit.tables import Budget, Cost, on_grid, rounded_up, suggested

_NOTHING = Cost()


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A name with a budget (None: no limit) and what was spent so far.

    >>> account = Account(name="visits", budget=Budget(kind="pure", epsilon=Fraction(1)))
    >>> account = account.charged(Cost(epsilon=Fraction(2, 3)))
    >>> account.remaining
    Cost(epsilon=Fraction(1, 3), delta=Fraction(0, 1), rho=Fraction(0, 1))
    >>> account.charged(Cost(epsilon=Fraction(1, 2)))
    Traceback (most recent call last):
        ...
    lastbit.errors.BudgetExceeded: the answer costs epsilon = 0.5, and of the budget of visits ...
    """

    name: str
    budget: Budget | None
    spent: Cost = _NOTHING

    @property
    def remaining(self) -> Cost | None:
        """What may still be spent; None where there is no limit."""
        if self.budget is None:
            return None
        return Cost(
            epsilon=self.budget.epsilon - self.spent.epsilon,
            delta=self.budget.delta - self.spent.delta,
            rho=self.budget.rho - self.spent.rho,
        )

    def charged(self, cost: Cost) -> Account:
        """The account after this charge; refused if the budget does not allow it."""
        if cost == _NOTHING:
            raise InvalidParameter("cost", problem="is zero", remedy="no answer is free")
        self._check_currency(cost)
        _check_on_grid(cost)
        spent = _moved_up(self.spent + cost)
        if self.budget is not None and not spent.within(self.budget):
            raise BudgetExceeded(self._refusal(cost))
        return replace(self, spent=spent)

    def leads_to(self, after: Account, cost: Cost) -> bool:
        """Whether this charge makes the account what `after` says, by these rules or older ones.

        Before there was a grid of prices, sums were exact, however long.
        """
        try:
            self._check_currency(cost)
        except InvalidParameter:
            return False
        exact = self.spent + cost
        return (
            cost != _NOTHING
            and (after.name, after.budget) == (self.name, self.budget)
            and after.spent in (exact, _moved_up(exact))
            and (self.budget is None or after.spent.within(self.budget))
        )

    def with_budget(self, budget: Budget | None) -> Account:
        """The account with another budget; refused if more than that is spent already."""
        if budget is not None and not self.spent.within(budget):
            raise InvalidParameter(
                "budget",
                problem=f"is less than what {self.name} has spent: {_amounts(self.spent)}",
                remedy="set it to that to close the account, or higher; spent stays spent",
            )
        return replace(self, budget=budget)

    def _check_currency(self, cost: Cost) -> None:
        """In rho, or in epsilon and delta: the two do not add up."""
        kept_in_rho = self.budget.rho > 0 if self.budget is not None else self.spent.rho > 0
        started = self.budget is not None or self.spent != _NOTHING
        if started and kept_in_rho != (cost.rho > 0):
            ours, theirs = ("rho", "epsilon") if kept_in_rho else ("epsilon", "rho")
            raise InvalidParameter(
                "cost",
                problem=f"is in {theirs}, and the account of {self.name} is kept in {ours}",
                remedy=f"ask with {ours}",
            )

    def _refusal(self, cost: Cost) -> str:
        left = self.remaining
        assert left is not None  # only a budget can be exceeded
        remedy = "ask at a lower price, or let the steward decide on another budget"
        if cost.delta and self.budget is not None and not self.budget.delta:
            remedy = "ask for what needs no delta, say by declared keys"
        return (
            f"the answer costs {_amounts(cost)}, and of the budget of {self.name} only "
            f"{_amounts(left, all_of=self.budget)} is left; nothing was charged or released; "
            f"{remedy}"
        )


def _amounts(cost: Cost, *, all_of: Budget | None = None) -> str:
    """In words; with a budget, zero is said too where the budget has that currency."""
    like = cost if all_of is None else all_of
    names = [name for name in ("epsilon", "delta", "rho") if getattr(like, name)] or ["epsilon"]
    return ", ".join(f"{name} = {exact_text(getattr(cost, name), 16)}" for name in names)


def _moved_up(amount: Cost) -> Cost:
    return Cost(
        epsilon=rounded_up(amount.epsilon),
        delta=rounded_up(amount.delta),
        rho=rounded_up(amount.rho),
    )


def _check_on_grid(cost: Cost) -> None:
    for name in ("epsilon", "delta", "rho"):
        price: Fraction = getattr(cost, name)
        if not on_grid(price):
            raise InvalidParameter(
                name,
                problem="is not on the grid of prices, and its sums would grow without end",
                remedy=f"ask at a price of few digits, such as {suggested(price)}",
            )
