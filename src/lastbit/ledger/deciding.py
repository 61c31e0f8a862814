"""What stewards decide: budgets, roles and allowances, and the rules that hold for them.

A charge needs none of this. `Ledger` applies these rules in the transaction that writes a decision,
`examination.py` applies them again to what was written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from lastbit.errors import BudgetExceeded, InvalidParameter, NotAllowed
from lastbit.exact import exact_text, rounded_up
from lastbit.ledger.chain import Scan, account_start, parsed, time_of
from lastbit.ledger.entry import (
    FILTERED,
    FIXED,
    NOTHING,
    Account,
    FilterCost,
    counted_by,
    filter_price,
    moved_up,
)
from lastbit.ledger.limits import CURRENCIES, ROLES, Limit, Role
from lastbit.ledger.principals import (
    NO_ACCOUNT,
    Allowance,
    Principal,
    letters_of,
    moment_of,
    more_used,
    named_allowance,
    principal_of,
)
from lastbit.ledger.storage import Books
from lastbit.ledger.words import in_words
from lastbit.tables import FILTERS, Budget, Cost, check_admitted

FIRST_STEWARD = "begin with a steward: lastbit user add CARD --role steward"

# ---------------------------------------------------------------- budgets


def with_budget(
    account: Account, budget: Budget | None, charges: Iterable[Cost] | None = None
) -> Account:
    """The account with another budget; refused if more than that is spent already.

    Under a filter, order and delta_kept stay as they are, whatever else changes: the proof
    needs them fixed before the first answer. A filter that takes an account of plain sums over
    counts all its `charges` so far again.
    """
    if isinstance(account.spent, FILTERED):
        return _with_filter(account, account.spent, budget)
    if budget is not None and opens_filter(account, budget):
        if charges is None and not account.unused:
            problem, remedy = "needs the charges so far", "pass them"
            raise InvalidParameter("budget", problem=problem, remedy=remedy)
        return _reopened(account, budget, charges or ())
    if budget is not None and not account.spent.within(budget):
        problem = f"is less than what {account.name} has spent: {in_words(account.spent)}"
        remedy = "set it to that to close the account, or higher; spent stays spent"
        raise InvalidParameter("budget", problem=problem, remedy=remedy)
    return replace(account, budget=budget)


def _with_filter(account: Account, spent: FilterCost, budget: Budget | None) -> Account:
    kept = account.budget
    assert kept is not None and kept.delta_kept is not None
    if budget is None or budget.kind not in FILTERS:
        problem = f"is of plain sums, and the account of {account.name} is kept by the filter"
        remedy = f'declare epsilon, delta and accounting = "{kept.kind}"'
        raise InvalidParameter("budget", problem=problem, remedy=remedy)
    fixed = budget.fixed(kept)
    if any(getattr(fixed, name) != getattr(kept, name) for name in ("kind", "order", "delta_kept")):
        problem = f"changes the filter of {account.name}, which was fixed before its first answer"
        numbers = [exact_text(getattr(kept, name)) for name in FIXED[kept.kind]]
        remedy = f"leave {' and '.join(FIXED[kept.kind])} out, or keep {' and '.join(numbers)}"
        if budget.kind != kept.kind:
            remedy = f'declare accounting = "{kept.kind}"'
        raise InvalidParameter("budget", problem=problem, remedy=remedy)
    return _covered(account, fixed, spent)


def opens_filter(account: Account, budget: Budget) -> bool:
    """Whether this budget brings an account of plain sums under the filter."""
    return budget.kind in FILTERS and not isinstance(account.spent, FILTERED)


def _reopened(account: Account, budget: Budget, charges: Iterable[Cost]) -> Account:
    """The account under the filter; `charges`, all of its own so far, are counted again."""
    fixed: Budget = budget.fixed()
    kept: Any = fixed.filter()
    spent: Any = counted_by(fixed)()
    for cost in charges:
        if fixed.kind == "gaussian" and cost.rho:
            problem = f"is kept by the Gaussian filter, and {account.name} has spent some rho"
            remedy = 'declare accounting = "filter"; whether it was for Gaussian noise is unknown'
            raise InvalidParameter("budget", problem=problem, remedy=remedy)
        spent += filter_price(kept, moved_up(cost))
    return _covered(account, fixed, spent)


def _covered(account: Account, budget: Budget, spent: FilterCost) -> Account:
    """Under a filter that allows what was spent; refused otherwise."""
    kept: Any = budget.filter()
    if not kept.within(spent):
        least = rounded_up(kept.epsilon_spent(spent))
        problem = f"is less than what {account.name} has spent by this filter"
        # at this order: another one, which a larger epsilon would choose, may need still more
        order = "" if budget.order is None else f" and order = {exact_text(budget.order)}"
        remedy = f"declare epsilon = {least} or more{order}; spent stays spent"
        if spent.delta > kept.delta_kept:
            remedy = f"declare delta_kept = {exact_text(spent.delta, 16)} or more, and delta"
        raise InvalidParameter("budget", problem=problem, remedy=remedy)
    return replace(account, budget=budget, spent=spent)


def leads_to(account: Account, after: Account, cost: Cost) -> bool:
    """Whether this charge makes the account what `after` says, by these rules or older ones.

    Before there was a grid of prices, sums were exact, however long.
    """
    try:
        account.check_currency(cost)
        if isinstance(account.spent, FILTERED):
            return after == account.under_filter(account.spent, cost) and cost != NOTHING
    except (InvalidParameter, BudgetExceeded):
        return False
    exact = account.spent + cost
    return (
        cost != NOTHING
        and isinstance(after.spent, Cost)
        and after == replace(account, spent=after.spent)
        and after.spent in (exact, moved_up(exact))
        and (account.budget is None or after.spent.within(account.budget))
    )


# ---------------------------------------------------------------- roles and allowances


def accounts_of(chain: Scan) -> list[Account]:
    """All accounts, after their newest entries."""
    states = (chain.entry(newest).state for newest in chain.newest.values())
    return [state for state in states if state is not None]


def principals_of(chain: Scan) -> dict[str, Principal]:
    """All principals, by name, with the roles given last."""
    roles = (newest for (account, _), newest in chain.named.items() if account == NO_ACCOUNT)
    return {one.name: one for one in map(principal_of, map(chain.entry, roles))}


def allowances_of(chain: Scan) -> list[Allowance]:
    """All allowances that are in force."""
    named = [chain.entry(newest) for key, newest in chain.named.items() if key[0] != NO_ACCOUNT]
    pairs = ((entry.account or "", entry.principal or "") for entry in named)
    allowances = (named_allowance(chain, *pair) for pair in pairs)
    return [one for one in allowances if one is not None]


def check_limit(limit: Limit) -> None:
    """Refuse numbers that are not on the grid of prices, so that what is left stays short."""
    for name in CURRENCIES:
        if getattr(limit, name) is not None:
            check_admitted(getattr(limit, name), f"limit: {name}")


def check_deciding(known: Mapping[str, Principal], by: str) -> None:
    """Refuse a decision about principals or allowances, but a steward's."""
    if not known:
        raise NotAllowed(f"the ledger has no users yet; {FIRST_STEWARD}")
    decider = known.get(by)
    if decider is None or decider.role != "steward":
        raise NotAllowed(f"{by} is not a steward of the ledger; let one decide this")


def check_role(known: Mapping[str, Principal], name: str, role: Role | None, *, by: str) -> None:
    """Refuse a role that may not be given, or not by this one."""
    if role not in (None, *ROLES):
        raise InvalidParameter(
            "role", problem="is unknown", remedy=f"pass one of {', '.join(ROLES)}, or None"
        )
    if not known:
        if role != "steward":
            raise InvalidParameter("the ledger", problem="has no users yet", remedy=FIRST_STEWARD)
        return
    check_deciding(known, by)
    if role is None and name not in known:
        remedy = "lastbit user list shows those that there are"
        raise InvalidParameter("principal", problem="is not in the ledger", remedy=remedy)
    stewards = {one.name for one in known.values() if one.role == "steward"}
    if stewards == {name} and role != "steward":
        problem = "is the only steward, and without one no decision could be made"
        raise InvalidParameter("principal", problem=problem, remedy="add another steward first")


def check_allowed(
    known: Mapping[str, Principal], name: str, limit: Limit | None, *, by: str
) -> None:
    """Refuse an allowance for anybody but an analyst, or by anybody but a steward."""
    check_deciding(known, by)
    given = known.get(name)
    if limit is not None and (given is None or given.role != "analyst"):
        problem = "is not an analyst of the ledger, and only analysts need an allowance"
        remedy = "let a steward run lastbit user add --role analyst"
        raise InvalidParameter("principal", problem=problem, remedy=remedy)


def counted(
    account: str, principal: str, limit: Limit, charges: Iterable[tuple[str, Cost]], moment: str
) -> Allowance:
    """An allowance as it begins: what was charged in its period counts.

    The charges are those of the principal to the account, each with the moment of its allowance.
    """
    fresh = Allowance(account=account, principal=principal, limit=limit).at(moment)
    for at, cost in charges:
        if limit.period is None or at[:10] >= (fresh.since or ""):
            fresh = replace(fresh, used=more_used(fresh.used, cost))
    return fresh


def charges_by(books: Books, account: str, principal: str) -> tuple[list[tuple[str, Cost]], str]:
    """The charges of a principal to an account, each with the moment of their allowance then.

    And the last such moment; the entry that is being written has none yet.
    """
    start, letters = account_start(account), b'"principal":%b' % letters_of(principal)
    charges, latest, before = [], "", b""
    for number, text, _, _ in books.texts():
        if text.startswith(start) and letters in text:
            entry = parsed(books.place, number, text)
            latest = max(latest, moment_of(entry.when, time_of(before)))
            if entry.cost is not None:
                charges.append((latest, entry.cost))
        before = text
    return charges, latest
