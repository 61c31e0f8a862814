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
Differs  in PostgreSQL the clock is the server's. In a file it is that of the computer that charges,
         and those who may write the file can write anything: there the chain shows what was done
Checked  tests/ledger/test_principals.py: against a naive model, with clocks that go back and forth;
         tests/ledger/test_forged_principals.py: chains that break a rule
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import date, timedelta
from fractions import Fraction
from importlib import import_module
from typing import Any, Literal, TypeAlias, cast, get_args

from lastbit.errors import InvalidParameter, NotAllowed, WrongType
from lastbit.tables import Cost

Role: TypeAlias = Literal["steward", "analyst", "auditor"]
Period: TypeAlias = Literal["day", "week", "month", "year"]
ROLES: tuple[Role, ...] = get_args(Role)
PERIODS: tuple[Period, ...] = get_args(Period)
CURRENCIES = ("epsilon", "delta", "rho")
_WHEN = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", re.ASCII)


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
class Limit:
    """How much an allowance allows in a period (None: ever).

    Prices in epsilon, or in rho, where that is None are refused. A delta that is None is limited by
    the account alone.
    """

    epsilon: Fraction | None = None
    delta: Fraction | None = None
    rho: Fraction | None = None
    period: Period | None = None

    def __post_init__(self) -> None:
        for name in CURRENCIES:
            number = getattr(self, name)
            if number is None:
                continue
            if not isinstance(number, Fraction) or number < 0:
                problem, remedy = "is not an exact number from 0 up", "pass a Fraction"
                raise WrongType(f"limit: {name}", problem=problem, remedy=remedy)
        if self.epsilon is None and self.rho is None:
            problem, remedy = "names no price", "name epsilon, or rho"
            raise InvalidParameter("limit", problem=problem, remedy=remedy)
        if self.period not in (None, *PERIODS):
            problem, remedy = "has an unknown period", f"pass one of {', '.join(PERIODS)}, or None"
            raise InvalidParameter("limit", problem=problem, remedy=remedy)

    def to_json(self) -> dict[str, str | None]:
        """Exact fractions as text."""
        numbers = {name: getattr(self, name) for name in CURRENCIES}
        told = {name: None if n is None else str(n) for name, n in numbers.items()}
        return {**told, "period": self.period}

    def since(self, moment: str) -> str | None:
        """The first day of the period in which a moment lies.

        >>> [Limit(rho=Fraction(1), period=p).since("2026-11-18T09:30") for p in PERIODS]
        ['2026-11-18', '2026-11-16', '2026-11-01', '2026-01-01']
        """
        day = date.fromisoformat(moment[:10])
        match self.period:
            case "week":
                day -= timedelta(days=min(day.weekday(), (day - date.min).days))
            case "month":
                day = day.replace(day=1)
            case "year":
                day = day.replace(month=1, day=1)
            case None:
                return None
        return day.isoformat()


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """A sum of prices, of both currencies if an account takes both."""

    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)

    def __add__(self, price: Cost) -> Total:
        return Total(**{n: getattr(self, n) + getattr(price, n) for n in CURRENCIES})

    def to_json(self) -> dict[str, str]:
        """Exact fractions as text."""
        return {name: str(getattr(self, name)) for name in CURRENCIES}


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """What an analyst may charge to an account, and what is used of it since the period began.

    >>> limit = Limit(epsilon=Fraction(1), period="month")
    >>> mine = Allowance(account="visits", principal="ada", limit=limit, since="2026-11-01")
    >>> mine = mine.charged(Cost(epsilon=Fraction(2, 3)))
    >>> mine.left.epsilon, mine.at("2026-12-24T00:00").left.epsilon
    (Fraction(1, 3), Fraction(1, 1))
    >>> mine.charged(Cost(epsilon=Fraction(1, 2)))
    Traceback (most recent call last):
        ...
    lastbit.errors.BudgetExceeded: the answer costs epsilon = 0.5, and of the allowance of ada ...
    """

    account: str
    principal: str
    limit: Limit
    used: Total = Total()
    since: str | None = None

    @property
    def left(self) -> Limit:
        """What may still be charged, in the currencies that the limit names."""
        named = {n: getattr(self.limit, n) for n in CURRENCIES}
        left = {n: most - min(most, getattr(self.used, n)) for n, most in named.items() if most}
        return replace(self.limit, **left)

    def at(self, moment: str) -> Allowance:
        """The allowance at a moment: refreshed if a later period has begun, and else as it is."""
        since = self.limit.since(moment)
        if since is None or since <= (self.since or ""):
            return self
        return replace(self, used=Total(), since=since)

    def charged(self, cost: Cost) -> Allowance:
        """The allowance after this charge; refused if its limit does not allow it."""
        after = self.used + cost
        for name, other in (("epsilon", "rho"), ("rho", "epsilon")):
            if getattr(cost, name) and getattr(self.limit, name) is None:
                problem = f"is in {name}, and the allowance of {self.principal} for {self.account} "
                problem += f"is in {other}"
                raise InvalidParameter("cost", problem=problem, remedy=f"ask with {other}")
        for name in CURRENCIES:
            most = getattr(self.limit, name)
            if getattr(cost, name) and most is not None and getattr(after, name) > most:
                raise cast(Exception, for_people().beyond_allowance(self, cost))
        return replace(self, used=after)


def for_people() -> Any:
    """The words of refusals; found by name, since no charge rests on them."""
    return import_module("lastbit.ledger.words")


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
            "the ledger has principals, and the charge names none; ask as one of them: "
            "lastbit user list shows them, lastbit user add makes one"
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
