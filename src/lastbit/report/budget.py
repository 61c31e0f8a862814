"""What is spent and what is left of an account, as plain data, and in words for every screen.

Amounts are exact fractions in text; in words they are rounded to the safe side: what is left down,
everything else up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from lastbit.ledger import Account, Allowance, Entry
from lastbit.privacy import MomentFilter
from lastbit.report.page import CURRENCIES, amount, price
from lastbit.report.plan import Record
from lastbit.tables import Cost

_TENTH = Fraction(1, 10)
"""Of the budget: the price to count with where nothing was asked yet."""


def allowance_json(one: Allowance) -> dict[str, Any]:
    """Exact fractions as text; None in a limit is a currency that it does not name."""
    return {
        "account": one.account,
        "principal": one.principal,
        "limit": one.limit.to_json(),
        "used": one.used.to_json(),
        "left": one.left.to_json(),
        "since": one.since,
    }


def account_json(account: Account, next_: Cost | None = None) -> dict[str, Any]:
    """Exact fractions as text; "left" under a filter is what a single answer may cost.

    With a price `next_`, also how many more answers of it fit, where there is a limit.
    """
    left, kept = account.remaining, account.budget
    filter_: Any = account.filter
    names = [name for name, _ in CURRENCIES]
    found: dict[str, Any] = {
        "account": account.name,
        "kind": None if kept is None else kept.kind,
        "budget": None if kept is None else {name: str(getattr(kept, name)) for name in names},
        "spent": account.spent.to_json(),
        "left": None if left is None else left.to_json(),
    }
    if filter_ is not None:
        asked = next_ or typical_price(account, ())
        took = epsilon_taken(account, asked)
        found["filter"] = {
            **({"order": str(filter_.order)} if isinstance(filter_, MomentFilter) else {}),
            "delta_kept": str(filter_.delta_kept),
            "limit": str(filter_.limit),
            "epsilon_spent": str(filter_.epsilon_spent(account.spent)),
            "odometer": str(filter_.odometer(account.spent)),
            "next": {
                "cost": asked.to_json(),
                "epsilon": None if took is None else str(took),
                "answers": answers_left(account, asked),
            },
        }
    elif next_ is not None and (more := answers_left(account, next_)) is not None:
        found["next"] = {"cost": next_.to_json(), "answers": more}
    return found


def answers_left(account: Account, asked: Cost) -> int | None:
    """How many answers of this price an account still allows; None if there is no end.

    Theorem  by plain sums n answers fit iff n c <= left in every currency c > 0: the least of the
             quotients, rounded down

    >>> from lastbit.tables import Budget
    >>> budget = Budget(kind="approx", epsilon=Fraction(2), delta=Fraction(1, 10**6))
    >>> delta = Fraction(3, 10**7)
    >>> answers_left(Account(name="visits", budget=budget), Cost(epsilon=Fraction(1), delta=delta))
    2
    """
    kept: Any = account.filter
    if kept is not None:
        return kept.answers_left(account.spent, _priced(kept, asked)) or 0
    if account.budget is None:
        return None
    pairs = ((getattr(account.remaining, name), getattr(asked, name)) for name, _ in CURRENCIES)
    return min((left // one for left, one in pairs if one), default=None)


def epsilon_taken(account: Account, asked: Cost) -> Fraction | None:
    """By how much the epsilon spent under the filter grows with an answer; None if it is refused.

    The first rho may take much: from then on plain sums no longer hold.
    """
    kept: Any = account.filter
    spent: Any = account.spent
    after = spent + _priced(kept, asked)
    return kept.epsilon_spent(after) - kept.epsilon_spent(spent) if kept.within(after) else None


def _priced(kept: Any, cost: Cost) -> Any:
    return kept.price(epsilon=cost.epsilon, delta=cost.delta, rho=cost.rho)


def typical_price(account: Account, entries: Sequence[Entry]) -> Cost:
    """The price to count further answers with.

    By plain sums that of the last answer, nothing before the first. Under a filter the median of
    the prices paid so far, by their moments; a tenth of the budget before that.
    """
    kept, budget = account.filter, account.budget
    costs = [entry.cost for entry in entries if entry.cost is not None]
    if kept is None:
        return costs[-1] if costs else Cost()
    if not costs:
        return Cost(epsilon=_TENTH * (budget.epsilon if budget is not None else 1))
    name = "moment" if isinstance(kept, MomentFilter) else "mu_squared"
    ordered = sorted(costs, key=lambda cost: getattr(_priced(kept, cost), name))
    return ordered[(len(costs) - 1) // 2]


def budget_parts(account: Mapping[str, Any], records: Sequence[Record] = ()) -> dict[str, Any]:
    """What a page says of an account, given as `account_json` writes it: bars, words and notes.

    The part of `records`, answers that the page is about, is told from what was spent otherwise.
    """
    if account["budget"] is None:
        return {"rows": None, "spent": price(account["spent"])}
    if "filter" in account:
        return {"rows": [_filter_row(account)], "notes": _filter_notes(account)}
    rows = []
    for name, letter in CURRENCIES:
        whole = Fraction(account["budget"][name])
        if not whole:
            continue
        spent, left = Fraction(account["spent"][name]), Fraction(account["left"][name])
        own = min(sum((Fraction(record["cost"][name]) for record in records), Fraction(0)), spent)
        words = f"{amount(left, up=False)} left of {amount(whole, up=True)}"
        shares = {"before": float(100 * (spent - own) / whole), "own": float(100 * own / whole)}
        rows.append({"letter": letter, "words": words, **shares})
    return {"rows": rows, "notes": []}


def _filter_row(account: Mapping[str, Any]) -> dict[str, Any]:
    """Prices do not add up to what is spent under a filter, so no part of it is this answer's."""
    whole, spent = Fraction(account["budget"]["epsilon"]), account["filter"]["epsilon_spent"]
    left = amount(whole - Fraction(spent), up=False)
    words = f"{left} left of {amount(whole, up=True)}, by the filter"
    return {"letter": "ε", "words": words, "before": float(100 * Fraction(spent) / whole), "own": 0}


def _filter_notes(account: Mapping[str, Any]) -> list[str]:
    """The plain sum beside it, the odometer, and what one more answer would take."""
    kept, budget = account["filter"], account["budget"]
    level = amount(Fraction(budget["delta"]), up=True)
    notes = [f"By plain sums: {price(account['spent'])}."]
    if "odometer" in kept:
        loss = amount(Fraction(kept["odometer"]), up=True)
        notes.append(f"Odometer: no loss above ε {loss} so far, except with probability {level}.")
    following = kept.get("next", {})
    if following.get("epsilon") is not None:
        taken = amount(Fraction(following["epsilon"]), up=True)
        notes.append(
            f"One more answer at {price(following['cost'])} would take ε {taken}; "
            f"{following['answers']:,} more fit."
        )
    return notes
