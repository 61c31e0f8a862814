"""What people are told of accounts, allowances and files: what is left, and why it is refused.

That it is refused was decided before these words are made: no charge rests on them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from lastbit.errors import BudgetExceeded, InvalidParameter, LastbitError, LedgerDamaged
from lastbit.exact import exact_text, rounded_down
from lastbit.ledger.entry import FILTERED, Account, FilterCost
from lastbit.ledger.limits import CURRENCIES, Limit
from lastbit.ledger.storage import Place, damaged, unusable
from lastbit.tables import Budget, Cost, suggested

if TYPE_CHECKING:
    from lastbit.ledger.principals import Allowance


def in_words(cost: Any, *, all_of: Budget | Limit | None = None) -> str:
    """With a budget or a limit, zero is said too where that has the currency."""
    like = cost if all_of is None else all_of
    there = [name for name in CURRENCIES if getattr(like, name) is not None]
    names = [name for name in there if getattr(like, name)] or there[:1]
    return ", ".join(f"{name} = {exact_text(getattr(cost, name), 16)}" for name in names)


def what_remains(account: Account) -> Cost | FilterCost | None:
    """What may still be spent: `Account.remaining`."""
    if account.budget is None:
        return None
    if isinstance(account.spent, FILTERED):
        kept: Any = account.filter
        return cast(FilterCost, kept.left(account.spent))
    budget, spent = account.budget, account.spent
    return Cost(**{name: getattr(budget, name) - getattr(spent, name) for name in CURRENCIES})


def off_grid(name: str, price: Fraction) -> InvalidParameter:
    """The refusal of a price that is not on the grid of prices."""
    problem = "is not on the grid of prices, and its sums would grow without end"
    remedy = f"ask at a price of few digits, such as {suggested(price)}"
    return InvalidParameter(name, problem=problem, remedy=remedy)


def beyond_budget(account: Account, cost: Cost) -> BudgetExceeded:
    """The refusal of a charge to an account of plain sums."""
    assert account.budget is not None  # only a budget can be exceeded
    remedy = "ask at a lower price, or let the steward decide on another budget"
    if cost.delta and not account.budget.delta:
        remedy = "ask for what needs no delta, say by declared keys"
    left = in_words(what_remains(account), all_of=account.budget)
    return BudgetExceeded(
        f"the answer costs {in_words(cost)}. Of the budget of {account.name} only {left} is left. "
        f"Nothing was charged or released; {remedy}"
    )


def beyond_filter(account: Account, cost: Cost) -> BudgetExceeded:
    """The refusal of a charge by the filter of an account."""
    left: Any = what_remains(account)
    asked = f"the answer costs {in_words(cost)}, and the filter of {account.name} leaves"
    if cost.delta > left.delta:
        remedy = "ask for what needs less delta, say by declared keys"
        words = f"delta = {exact_text(left.delta, 16)} of the delta kept for such answers"
    else:
        remedy = "ask at a lower price, or let the steward decide on another budget"
        words = f"at most epsilon = {exact_text(left.epsilon, 16)}"
        words += f", or rho = {rounded_down(left.rho)}, for one answer"
    return BudgetExceeded(f"{asked} {words}; nothing was charged or released; {remedy}")


def beyond_allowance(allowance: Allowance, cost: Cost) -> BudgetExceeded:
    """The refusal of a charge by the limit of an allowance."""
    remedy = "ask at a lower price, or let a steward set another allowance"
    if allowance.limit.period is not None:
        remedy += f". It is whole again when the next {allowance.limit.period} begins (UTC)"
    return BudgetExceeded(
        f"the answer costs {in_words(cost)}. Of the allowance of {allowance.principal} "
        f"for {allowance.account} only {in_words(allowance.left, all_of=allowance.limit)} is left. "
        f"Nothing was charged; {remedy}"
    )


def other_neighbours(account: Account) -> InvalidParameter:
    """The refusal of a card, or of a price, that is of other neighbours."""
    problem = f"{account.name} has answers about other neighbours or units"
    remedy = "let cards that share an account declare the same neighbours and units"
    if account.unused:
        problem = f"{account.name} is kept for other neighbours or units"
        remedy += ", or let a steward run lastbit budget card.toml --set"
    return InvalidParameter("account", problem=problem, remedy=remedy)


def not_open(account: str) -> InvalidParameter:
    """The refusal of an account that nobody has opened."""
    return InvalidParameter(
        "account", problem=f"{account[:80]} is not open", remedy="call account(name, budget) first"
    )


def other_budget(account: str) -> InvalidParameter:
    """Of an account that is kept by another budget than its card declares."""
    return InvalidParameter(
        f"the budget of {account}",
        problem="is not the one that the ledger has for it",
        remedy="put the old one back on the card, or let the steward change the ledger's "
        "by lastbit budget card.toml --set",
    )


def without_secret(place: Place) -> LedgerDamaged:
    """Of a ledger that was cut."""
    return damaged(place, "has lost its secret; restore a backup")


def two_names(place: Path) -> InvalidParameter:
    """The refusal of a file that has a hard link."""
    problem = "has another name (a hard link), and a crash under one could not be undone under the"
    remedy = "remove the other name, or make a symbolic link"
    return unusable(place, f"{problem} other", remedy)


def without_psycopg() -> InvalidParameter:
    """Of a ledger on a server, where nothing is installed that reaches one."""
    problem = "is in PostgreSQL, and psycopg is not installed"
    remedy = 'pip install "lastbit[postgres]"'
    return InvalidParameter("the ledger", problem=problem, remedy=remedy)


_DISK = "look at the disk"
_CLOSED = "cannot be opened", "make the file and its folder readable and writable"
_LOCKED = "is locked by another process", "try again when that has finished"
_NO_WRITING = "may not be written", "make the file and its folder writable for you"
_UNUSABLE: Mapping[int, tuple[str, str]] = MappingProxyType(
    {
        **dict.fromkeys((sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED), _LOCKED),
        **dict.fromkeys(
            (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH), _NO_WRITING
        ),
        sqlite3.SQLITE_FULL: ("has no room: the disk is full", "free some space"),
        sqlite3.SQLITE_CANTOPEN: _CLOSED,
        sqlite3.SQLITE_IOERR: ("cannot be read or written: the disk fails or is full", _DISK),
    }
)
"""What is wrong with the place and not with the ledger, by SQLite's codes."""


def file_failure(place: Path, error: Exception) -> LastbitError:
    """What an error of SQLite, or of the system, says of a file; none of its own words."""
    match error:
        case sqlite3.Error():
            code = (getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF  # upper bits tell variants
            if code in _UNUSABLE:
                return unusable(place, *_UNUSABLE[code])
            if code == sqlite3.SQLITE_NOTADB:
                problem = "is not a ledger of lastbit's: not even a database; name another"
                return damaged(place, problem)
            name = getattr(error, "sqlite_errorname", "unreadable")
            return damaged(place, f"is damaged ({name}); restore a backup")
        case OSError():
            return unusable(place, f"cannot be reached ({error.strerror})", _DISK)
        case MemoryError():
            what = "it names a size beyond all memory"
        case _:  # bytes where text or a number should be
            what = "it holds what no ledger holds"
    return damaged(place, f"is damaged ({what}); restore a backup")
