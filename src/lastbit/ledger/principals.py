"""Principals and allowances: who may charge an account, and how much of it.

A principal is a name with a role. Stewards decide and may ask; analysts ask within an allowance;
auditors read. An allowance is a share of one account for one analyst, for good or for each calendar
period, UTC. Allowances may add up to more than the account has: the account is what holds.

Law      a ledger without principals knows none of this. The first principal is a steward. From then
         on roles and allowances are set by active stewards alone, of whom one always stays, and
         every charge names an active principal: a steward, or an analyst with an allowance for the
         account. A new role ends the allowances of its principal.
         The *moment* of an entry is the later of its own time and that of the entry before it. The
         moment of an allowance is the latest of its analyst's charges to the account so far, of its
         own entries, and of the entry that is being written; `since` is the first day of the period
         in which that lies; `used` is the exact sum of the prices of all the analyst's charges to
         the account whose allowance had its moment on that day or later. A charge after which
         `used` would exceed the limit is refused
Theorem  (collusion) whatever roles, allowances and clocks are, and whoever asks together, all
         charges to an account are within its budget
Proof    each of them passed `Account.charged` too, in the same transaction, and that reads neither
         principal nor allowance nor clock: the rules here refuse charges, and add none. Only
         allowances refresh; `entry.py` says that what an account has spent never goes down
Theorem  (allowance) while an allowance stays as it is set, the charges of one `since` add up to at
         most its limit; `since` never goes back, and is never later than the first day of the
         period of the latest time in the ledger. So if no clock is ahead, an analyst is charged at
         most the limit in each calendar period. A clock that is ahead grants a later period
         earlier, and not once more when that comes; one that goes back refreshes nothing
Proof    the first day of a period is a rising function of the moment, and the moment of an
         allowance is a running maximum. So the charges fall into runs of one `since`, each later
         than the one before; `used` is the sum of the run, to which `charged` adds each price
         before it compares. A refresh begins the next run, and no run begins twice
So       what is here is not trusted with privacy: a charge takes from it a refusal, or what its
         entry says of an allowance, and nothing else
Differs  in PostgreSQL the clock is the server's. In a file it is that of the computer that charges,
         and those who may write the file can write anything: there the chain shows what was done
Checked  tests/ledger/test_principals.py: against a naive model, with clocks that go back and forth;
         tests/ledger/test_forged_principals.py: chains that break a rule
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import date, timedelta

from lastbit.canonical import canonical_json
from lastbit.errors import InvalidParameter, NotAllowed
from lastbit.ledger.chain import Scan, account_letters
from lastbit.ledger.entry import Account, Entry
from lastbit.ledger.inspection import inspected
from lastbit.ledger.limits import CURRENCIES, Limit, Period, Role, Total
from lastbit.ledger.storage import Books
from lastbit.ledger.words import beyond_allowance
from lastbit.tables import Cost

_WHEN = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", re.ASCII)
NOTHING_USED = Total()
NO_ACCOUNT = b'{"account":null'
"""How an entry begins that is of no account."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """A person or a program in whose name questions are asked; without a role, a removed one.

    >>> Principal(name="ana", role="analyst").active, Principal(name="ben", role=None).active
    (True, False)
    """

    name: str
    role: Role | None
    since: int = 0
    """The number of the entry that gave the role, or took it."""

    @property
    def active(self) -> bool:
        """Whether they have a role."""
        return self.role is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """What an analyst may charge to an account, and what is used of it since the period began.

    >>> from fractions import Fraction
    >>> limit = Limit(epsilon=Fraction(1), period="month")
    >>> mine = Allowance(account="visits", principal="ada", limit=limit, since="2026-11-01")
    >>> mine = mine.charged(Cost(epsilon=Fraction(2, 3)))
    >>> mine.left.epsilon, mine.at("2026-12-24T00:00").left.epsilon
    (Fraction(1, 3), Fraction(1, 1))
    >>> mine.charged(Cost(epsilon=Fraction(1, 2)))
    Traceback (most recent call last):
        ...
    lastbit.errors.BudgetExceeded: the answer costs epsilon = 0.5. Of the allowance of ada ...
    """

    account: str
    principal: str
    limit: Limit
    used: Total = NOTHING_USED
    since: str | None = None

    @property
    def left(self) -> Limit:
        """What may still be charged, in the currencies that the limit names."""
        named = {n: getattr(self.limit, n) for n in CURRENCIES}
        left = {n: most - min(most, getattr(self.used, n)) for n, most in named.items() if most}
        return replace(self.limit, **left)

    def at(self, moment: str) -> Allowance:
        """The allowance at a moment: refreshed if a later period has begun, and else as it is."""
        since = first_day(self.limit.period, moment)
        if since is None or since <= (self.since or ""):
            return self
        return replace(self, used=Total(), since=since)

    def charged_at(self, cost: Cost, when: str, before: str) -> Allowance:
        """The same at a time, after an entry of another one."""
        return self.at(moment_of(when, before)).charged(cost)

    def charged(self, cost: Cost) -> Allowance:
        """The allowance after this charge; refused if its limit does not allow it."""
        after = more_used(self.used, cost)
        for name, other in (("epsilon", "rho"), ("rho", "epsilon")):
            if getattr(cost, name) and getattr(self.limit, name) is None:
                problem = f"is in {name}, and the allowance of {self.principal} for {self.account} "
                problem += f"is in {other}"
                raise InvalidParameter("cost", problem=problem, remedy=f"ask with {other}")
        for name in CURRENCIES:
            most = getattr(self.limit, name)
            if getattr(cost, name) and most is not None and getattr(after, name) > most:
                raise beyond_allowance(self, cost)
        return replace(self, used=after)


def first_day(period: Period | None, moment: str) -> str | None:
    """The first day of the period in which a moment lies.

    >>> [first_day(period, "2026-11-18T09:30") for period in ("day", "week", "month", "year")]
    ['2026-11-18', '2026-11-16', '2026-11-01', '2026-01-01']
    """
    day = date.fromisoformat(moment[:10])
    match period:
        case "week":
            day -= timedelta(days=min(day.weekday(), (day - date.min).days))
        case "month":
            day = day.replace(day=1)
        case "year":
            day = day.replace(month=1, day=1)
        case None:
            return None
    return day.isoformat()


# ---------------------------------------------------------------- in a chain of entries


def principal_of(entry: Entry) -> Principal:
    """The principal that an entry gives a role to."""
    return Principal(name=entry.principal or "", role=entry.role, since=entry.sequence)


def allowance_of(entry: Entry) -> Allowance | None:
    """The allowance as it was after an entry."""
    if entry.account is None or entry.principal is None or entry.limit is None:
        return None
    return Allowance(
        account=entry.account,
        principal=entry.principal,
        limit=entry.limit,
        used=entry.used or Total(),
        since=entry.since,
    )


def named_principal(chain: Scan, name: str) -> Principal | None:
    """A principal, with the role given last."""
    newest = chain.named.get((NO_ACCOUNT, letters_of(name)))
    return None if newest is None else principal_of(chain.entry(newest))


def named_allowance(chain: Scan, account: str, principal: str) -> Allowance | None:
    """The allowance as its newest entry states it, unless a role was given since."""
    letters = letters_of(principal)
    role = chain.named.get((NO_ACCOUNT, letters))
    newest = chain.named.get((account_letters(account), letters))
    if role is None or newest is None or newest <= role:
        return None
    return allowance_of(chain.entry(newest))


# ---------------------------------------------------------------- the rules


def moment_of(when: str, before: str) -> str:
    """The later of the time of an entry and of the entry before, which may be of another making."""
    return max(when, before) if is_time(before) else when


def is_time(when: str) -> bool:
    """Whether it is written as times of entries are, and is one."""
    try:
        return bool(_WHEN.fullmatch(when) and date.fromisoformat(when[:10]))
    except ValueError:
        return False


def check_charging(
    who: Principal | None, named: str | None, account: str, allowance: Allowance | None
) -> None:
    """Refuse a charge in a ledger with principals, unless it names one who may ask this account."""
    if named is None:
        raise NotAllowed(
            "the charge names no principal of the ledger; ask as one of them: lastbit user list "
            "shows them"
        )
    if who is None or not who.active:
        problem = "is not a principal of the ledger" if who is None else "was removed"
        raise NotAllowed(f"{named} {problem}; let a steward run lastbit user add")
    if who.role == "auditor":
        raise NotAllowed(f"{named} is an auditor, who reads and does not ask; ask as an analyst")
    if who.role == "analyst" and allowance is None:
        raise NotAllowed(
            f"{named} has no allowance for {account}; let a steward run lastbit allowance set"
        )


def asking_allowance(chain: Scan, account: str, name: str | None) -> Allowance | None:
    """Refuse a principal who may not ask this account; else an analyst's allowance for it."""
    who = None if name is None else named_principal(chain, name)
    allowance = None if name is None else named_allowance(chain, account, name)
    check_charging(who, name, account, allowance)
    return allowance


def check_opening(books: Books, chain: Scan, state: Account) -> None:
    """Refuse those who may only ask to write an account as a card declares it."""
    known = named_principal(chain, inspected(books).user()) if chain.named else None
    if not books.decides or (known is not None and known.role not in (None, "steward")):
        what = "is not open" if chain.account(state.name) is None else "states no neighbours"
        remedy = "let a steward run lastbit budget card.toml --set, once"
        raise InvalidParameter("account", problem=f"{state.name[:80]} {what}", remedy=remedy)


def more_used(used: Total, price: Cost) -> Total:
    """What is used of a limit, a charge of this price included."""
    return Total(**{name: getattr(used, name) + getattr(price, name) for name in CURRENCIES})


def letters_of(name: str) -> bytes:
    """A name as it is written in an entry."""
    return canonical_json(name).encode()
