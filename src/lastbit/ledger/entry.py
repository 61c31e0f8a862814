"""An entry of the ledger and the account it changes: fields, canonical text, hash, and the rules.

The hash is SHA-256 over the canonical JSON of all fields, the hash of the entry before among them.
An answer's record may be long, so the entry holds its digest (`result`) and the record lies beside
it. Every entry of an account also holds what is spent and the budget in force *after* it: a running
total that `chain.py` computes again from the charges alone.

| kind | says |
|---|---|
| opened | the ledger was made |
| budget | an account has this budget, and these neighbours, from now on |
| reserved | this price is charged for an answer that is to come; no row has been read for it |
| drawn | the noisy numbers of an earlier reservation, before anybody sees them: the only ones |
| settled | the answer to an earlier reservation, which costs nothing more |
| voided | an earlier reservation stays charged and is never answered: its `words` say why, or a
  backup was restored |
| withdrawn | the answer of an earlier entry is used no more; what it cost stays charged |
| charge | a price and its answer at once |
| principal | somebody has this role from now on, or none (`principals.py`) |
| allowance | an analyst may charge so much to an account from now on, or nothing |
| note | a remark |

Theorem  if every entry follows the rules of `Account`, then at every entry what is spent is not
         below the sum of all charges so far, and equals it if all prices are on the grid of prices;
         and it lies within the budget then in force
Proof    by induction over the entries: `charged` adds the price, moves the sum up to the grid of
         `tables/plan/cost.py` (which holds every sum of prices that are on it), and refuses one
         outside of the budget; `with_budget` (`deciding.py`) keeps the sum and refuses a budget it
         is not within
Theorem  (accounts under a filter) if every entry follows the rules and the filter has kept
         the account from its first charge on, all answers together are (epsilon, delta)-private,
         though prices, kinds of price and budgets are chosen from earlier answers; epsilon and
         delta are the greatest to which the budget may come to be set
Proof    `privacy/filter.py`, or `privacy/gaussian_filter.py` for accounts of the kind "gaussian",
         whose prices in rho are those of Gaussian noise, as the caller says: what is spent is the
         exact sum of the filter's prices, which are a function of the charges and of the order;
         `charged` refuses what the filter does; kind, order and delta_kept never change.
         `with_budget` counts the charges of plain sums again: the same theorem holds if the
         answers until then had no say in whether and how the account was reopened
Theorem  (one promise) once an account states its neighbours, a charge that says it is of others is
         refused
Proof    `with_neighbours` changes what is stated only while nothing is spent; `Ledger.reserve`
         compares in the transaction that charges
Differs  sums are exact fractions: three answers at 1/3 fit a budget of 1, and nothing more does.
         Prices off the grid are refused; ledgers that were written before there was one may hold
         some, and their sums, however long, are moved up at the next charge
Checked  tests/ledger/test_account.py; tests/ledger/test_short_sums.py; tests/ledger/test_filter.py
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, get_args

from lastbit.canonical import canonical_json, sha256
from lastbit.errors import InvalidParameter
from lastbit.ledger.limits import CURRENCIES, ROLES, Limit, Role, Total
from lastbit.privacy import NOTHING_SPENT, GaussianCost, GaussianFilter, MomentCost, MomentFilter
from lastbit.reading import parse_json
from lastbit.tables import FILTERS, Budget, Cost, on_grid, rounded_up as next_price

if TYPE_CHECKING:
    from lastbit.tables import DataCard

Kind: TypeAlias = Literal[
    "opened",
    "budget",
    "charge",
    "note",
    "reserved",
    "drawn",
    "settled",
    "voided",
    "principal",
    "allowance",
    "withdrawn",
]

FIRST = "0" * 64
"""What the first entry has in place of the hash of the one before."""

_FORMATS = tuple(f"lastbit ledger {version}" for version in range(1, 8))
_RESERVATIONS = ("reserved", "settled", "voided")
_LINKED = (*_RESERVATIONS, "drawn", "withdrawn")
"""Kinds of entries that may name an earlier one."""
NEIGHBOURS = tuple(
    f"{relation} of {unit}"
    for relation in ("add-remove", "change-one")
    for unit in ("rows", "units")
)
"""What an account may sum up prices of."""
_DECIDING = "lastbit.ledger.deciding"
LONGEST_ENTRY = 1 << 21
"""Letters of an entry's text: those of the longest question, and its amounts."""
_KINDS = get_args(Kind)
_NAMED = ("charge", "reserved", "principal", "allowance")
"""Kinds of entries that may name a principal; the last two always do."""
_EXACT = re.compile(r"\d{1,4100}(/\d{1,4100})?", re.ASCII)
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
FIXED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"filter": ("order", "delta_kept"), "gaussian": ("delta_kept",)}
)
_NOT_OF_ROLES = ("account", "cost", "spent", "budget", "question", "result", "limit", "used")
_TEXTS = ("account", "who", "words", "query", "question", "plan", "fingerprint", "result", "secret")
NOTHING = Cost()
FILTERED = (MomentCost, GaussianCost)
FilterCost: TypeAlias = MomentCost | GaussianCost


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
    lastbit.errors.BudgetExceeded: the answer costs epsilon = 0.5. Of the budget of visits ...
    """

    name: str
    budget: Budget | None
    spent: Cost | FilterCost = NOTHING
    neighbours: str | None = None
    """Of which neighbours the prices are (`NEIGHBOURS`); None: nobody has said so yet."""

    def __post_init__(self) -> None:
        if self.budget is not None:
            object.__setattr__(self, "budget", self.budget.fixed())
        if self.spent == NOTHING:
            object.__setattr__(self, "spent", counted_by(self.budget)())
        if not isinstance(self.spent, counted_by(self.budget)):
            problem, remedy = "is counted in another way than the budget", "call with_budget"
            raise InvalidParameter("spent", problem=problem, remedy=remedy)

    @property
    def filter(self) -> MomentFilter | GaussianFilter | None:
        """The filter that keeps the account; None of plain sums."""
        return self.budget.filter() if self.budget and isinstance(self.spent, FILTERED) else None

    @property
    def unused(self) -> bool:
        """Whether nothing has been spent."""
        return self.spent in (NOTHING, NOTHING_SPENT, GaussianCost())

    @property
    def remaining(self) -> Cost | FilterCost | None:
        """What may still be spent; None where there is no limit.

        Under a filter: what a single further answer may cost, if it is paid in epsilon or in rho.
        """
        return cast("Cost | FilterCost | None", for_people().what_remains(self))

    def charged(self, cost: Cost, *, gaussian_noise: bool = False) -> Account:
        """The account after this charge; refused if the budget does not allow it.

        Under the Gaussian filter a price in rho must be that of Gaussian noise, and be said so.
        """
        if cost == NOTHING:
            raise InvalidParameter("cost", problem="is zero", remedy="pass the price of the plan")
        self.check_currency(cost)
        for name in CURRENCIES:
            if not on_grid(price := getattr(cost, name)):
                raise cast(Exception, for_people().off_grid(name, price))
        if isinstance(self.spent, GaussianCost) and cost.rho and not gaussian_noise:
            problem = f"is in rho, and the account of {self.name} takes that of Gaussian noise only"
            raise InvalidParameter("cost", problem=problem, remedy="ask with epsilon")
        if isinstance(self.spent, FILTERED):
            return self.under_filter(self.spent, cost)
        spent = moved_up(self.spent + cost)
        if self.budget is not None and not spent.within(self.budget):
            raise cast(Exception, for_people().beyond_budget(self, cost))
        return replace(self, spent=spent)

    def under_filter(self, before: Any, cost: Cost) -> Account:
        """The account after a charge that its filter allows."""
        kept: Any = self.filter
        spent = before + filter_price(kept, cost)
        if not kept.within(spent):
            raise cast(Exception, for_people().beyond_filter(self, cost))
        return replace(self, spent=spent)

    # found by name: a charge needs neither of the rules of stewards and auditors

    def with_budget(self, budget: Budget | None) -> Account:
        """The account with another budget, by the rules of `deciding.py`."""
        return cast(Account, import_module(_DECIDING).with_budget(self, budget))

    def leads_to(self, after: Account, cost: Cost) -> bool:
        """Whether this charge makes the account what `after` says, by the rules there."""
        return cast(bool, import_module(_DECIDING).leads_to(self, after, cost))

    def with_neighbours(self, neighbours: str | None) -> Account:
        """The account, stated to be of these neighbours; None leaves it as it is.

        Prices of other neighbours never come into one sum: once something is spent, it stays so.
        """
        if neighbours is None or neighbours == self.neighbours:
            return self
        if neighbours not in NEIGHBOURS:
            remedy = f"pass one of {', '.join(NEIGHBOURS)}"
            raise InvalidParameter("neighbours", problem="are unknown", remedy=remedy)
        if self.neighbours is not None and not self.unused:
            raise for_people().other_neighbours(self)
        return replace(self, neighbours=neighbours)

    def check_currency(self, cost: Cost) -> None:
        """In rho, or in epsilon and delta: the two do not add up, but under a filter."""
        if isinstance(self.spent, FILTERED):
            return
        kept_in_rho = self.budget.rho > 0 if self.budget is not None else self.spent.rho > 0
        started = self.budget is not None or self.spent != NOTHING
        if started and kept_in_rho != (cost.rho > 0):
            ours, theirs = ("rho", "epsilon") if kept_in_rho else ("epsilon", "rho")
            problem = f"is in {theirs}, and the account of {self.name} is kept in {ours}"
            raise InvalidParameter("cost", problem=problem, remedy=f"ask with {ours}")


def for_people() -> Any:
    """The words of refusals, and what remains; found by name, since no charge rests on them."""
    return import_module("lastbit.ledger.words")


def moved_up(amount: Cost) -> Cost:
    """The amount, or the next one on the grid of prices."""
    return Cost(**{name: next_price(getattr(amount, name)) for name in CURRENCIES})


def filter_price(kept: Any, cost: Cost) -> FilterCost:
    """What a charge costs under a filter."""
    price: FilterCost = kept.price(epsilon=cost.epsilon, delta=cost.delta, rho=cost.rho)
    return price


def counted_by(budget: Budget | None) -> type[Cost | FilterCost]:
    """In what the charges to an account with this budget are counted."""
    match None if budget is None else budget.kind:
        case "filter":
            return MomentCost
        case "gaussian":
            return GaussianCost
    return Cost


def neighbours_of(card: DataCard) -> str:
    """Of which neighbours the prices of answers about a table are: one of `NEIGHBOURS`."""
    return f"{card.neighbours.relation} of {'rows' if card.unit is None else 'units'}"


class Malformed(ValueError):
    """A text that is not an entry; the message says in what. It never leaves this room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of the books. `words` are the SQL text of a question, or the text of a note.

    >>> entry = Entry(sequence=1, when="2026-01-01T00:00:00+00:00", kind="note", words="hello")
    >>> Entry.read(entry.text) == entry
    True
    """

    kind: Kind
    sequence: int = 0
    """From 1 on; a draft has no number, and no time, yet."""
    when: str = ""
    previous: str = FIRST
    account: str | None = None
    who: str | None = None
    words: str | None = None
    query: str | None = None
    """Digest of the query, however it was written."""
    question: str | None = None
    """Digest of the query, the price asked and the keyed fingerprint of the data."""
    cost: Cost | None = None
    plan: str | None = None
    fingerprint: str | None = None
    result: str | None = None
    spent: Cost | FilterCost | None = None
    budget: Budget | None = None
    secret: str | None = None
    """In the first entry: the digest of the ledger's secret, so that it cannot be exchanged."""
    reservation: str | None = None
    """The hash of the reservation that is drawn, answered or closed, or of the answer withdrawn."""
    principal: str | None = None
    """In whose name is charged; or whose role or allowance it is."""
    role: Role | None = None
    """Of a principal; None if they are removed."""
    limit: Limit | None = None
    """Of the allowance of the principal for the account, from here on; None if there is none."""
    used: Total | None = None
    """Of the limit, this entry included."""
    since: str | None = None
    """The first day of the period in which it is used; None if it is for good."""
    neighbours: str | None = None
    """Of which neighbours the account's prices are, from here on (`NEIGHBOURS`)."""
    record: Mapping[str, Any] | None = field(default=None, repr=False, compare=False)
    unreadable: str | None = field(default=None, repr=False, compare=False)
    """Why an entry that has a `result` has no record: what is kept is no answer of lastbit's."""
    resumed: bool = field(default=False, repr=False, compare=False)
    """Of a reservation that `reserve` gives: whether it was charged by an earlier call."""

    @property
    def version(self) -> int:
        """The version of lastbit's ledgers that first had entries like this one."""
        if self.kind == "drawn":
            return 7
        if self.neighbours is not None or self.kind == "withdrawn":
            return 6
        if self.principal is not None:
            return 5
        if isinstance(self.spent, FILTERED):
            return 3 if isinstance(self.spent, MomentCost) else 4
        return 2 if self.kind in _RESERVATIONS else 1

    @property
    def text(self) -> str:
        """The canonical JSON of all fields; the record is in it by its digest."""
        late: dict[str, Any] = {}
        if self.kind in _LINKED:
            late["reservation"] = self.reservation
        if self.version >= 6:
            late["neighbours"] = self.neighbours
        if self.principal is not None:
            amounts = {name: _amounts(getattr(self, name)) for name in ("limit", "used")}
            named = {name: getattr(self, name) for name in ("principal", "role", "since")}
            late |= amounts | named
        return canonical_json(
            {
                "format": _FORMATS[self.version - 1],
                "sequence": self.sequence,
                "when": self.when,
                "kind": self.kind,
                "previous": self.previous,
                **{name: _amounts(getattr(self, name)) for name in ("cost", "spent", "budget")},
                **{name: getattr(self, name) for name in _TEXTS},
                **late,
            }
        )

    @property
    def hash(self) -> str:
        """SHA-256 of the text: what the next entry points to, and what a certificate quotes."""
        return sha256(self.text)

    @property
    def state(self) -> Account | None:
        """The account as it was after this entry."""
        if self.account is None or self.spent is None:
            return None
        return Account(
            name=self.account, budget=self.budget, spent=self.spent, neighbours=self.neighbours
        )

    def stating(self, account: Account) -> Entry:
        """The entry, after which the account is so."""
        spent, budget, neighbours = account.spent, account.budget, account.neighbours
        return replace(self, spent=spent, budget=budget, neighbours=neighbours)

    def with_record(self, record: Mapping[str, Any]) -> Entry:
        """The entry and the answer beside it, which is told where it is recorded."""
        place = {"hash": self.hash, "sequence": self.sequence}
        return replace(self, record={**record, "entry": place})

    def without_answer(self, why: str) -> Entry:
        """The entry, whose record is no answer."""
        return replace(self, record=None, unreadable=why)

    @staticmethod
    def read(text: str) -> Entry:
        """The entry that this text is; any other text, also of the same meaning, is refused."""
        try:
            data = parse_json(text)
        except ValueError:
            raise Malformed("is not JSON") from None
        if not isinstance(data, dict) or data.get("format") not in _FORMATS:
            raise Malformed("is of another format")
        try:
            late = ("reservation",) if data["kind"] in _LINKED else ()
            texts: dict[str, Any] = {name: data[name] for name in (*_TEXTS, *late)}
            if data["kind"] not in _KINDS or type(data["sequence"]) is not int:
                raise ValueError
            written = (text for text in (data["when"], *texts.values()) if text is not None)
            if data["when"] is None or not all(isinstance(text, str) for text in written):
                raise TypeError
            entry = Entry(
                sequence=data["sequence"],
                when=data["when"],
                kind=cast(Kind, data["kind"]),
                previous=str(data["previous"]),
                cost=_read_cost(data["cost"]),
                spent=_read_spent(data["spent"]),
                budget=_read_budget(data["budget"]),
                **texts,
                **(_read_allowance(data) if "principal" in data else {}),
                **({"neighbours": data["neighbours"]} if "neighbours" in data else {}),
            )
            if entry.neighbours is not None and (
                entry.neighbours not in NEIGHBOURS or entry.state is None
            ):
                raise ValueError
            if entry.principal is None and entry.kind in ("principal", "allowance"):
                raise ValueError
            if entry.spent is not None and not isinstance(entry.spent, counted_by(entry.budget)):
                raise ValueError
            if entry.spent is None and entry.budget is not None and entry.budget.kind in FILTERS:
                raise ValueError
        except (KeyError, TypeError, ValueError, ZeroDivisionError):  # LastbitErrors among them
            raise Malformed("has fields that no entry has") from None
        if entry.text != text:
            raise Malformed("is not written as entries are")
        return entry


def _amounts(amount: Cost | FilterCost | Budget | Limit | Total | None) -> Any:
    if amount is None:
        return None
    if isinstance(amount, Budget):
        names = (*CURRENCIES, *FIXED.get(amount.kind, ()))
        return {"kind": amount.kind, **{name: str(getattr(amount, name)) for name in names}}
    return amount.to_json()


def _exact(data: Any, names: Iterable[str]) -> dict[str, Fraction]:
    if not all(_EXACT.fullmatch(data[name]) for name in names):
        raise ValueError
    return {name: Fraction(data[name]) for name in names}


def _read_cost(data: Any) -> Cost | None:
    return None if data is None else Cost(**_exact(data, CURRENCIES))


def _read_allowance(data: Any) -> dict[str, Any]:
    """The fields that only entries with a principal have."""
    role, limit, used, since = (data[name] for name in ("role", "limit", "used", "since"))
    if type(data["principal"]) is not str or data["kind"] not in _NAMED:
        raise ValueError
    if role not in (None, *ROLES) or (role is not None and data["kind"] != "principal"):
        raise ValueError
    if data["kind"] == "principal" and any(data[name] is not None for name in _NOT_OF_ROLES):
        raise ValueError
    if limit is not None:
        numbers = _exact(limit, [name for name in CURRENCIES if limit[name] is not None])
        limit = Limit(**numbers, period=limit["period"])
    lasting = limit is None or limit.period is None
    if (used is None) != (limit is None) or (since is None) != lasting:
        raise ValueError
    if since is not None and not _DAY.fullmatch(since):
        raise ValueError
    return {
        "principal": data["principal"],
        "role": role,
        "limit": limit,
        "used": None if used is None else Total(**_exact(used, CURRENCIES)),
        "since": since,
    }


def _read_spent(data: Any) -> Cost | FilterCost | None:
    if data is not None and "moment" in data:
        return MomentCost(**_exact(data, (*CURRENCIES, "moment")))
    if data is not None and "mu_squared" in data:
        return GaussianCost(**_exact(data, (*CURRENCIES, "mu_squared")))
    return _read_cost(data)


def _read_budget(data: Any) -> Budget | None:
    if data is None:
        return None
    names = (*CURRENCIES, *FIXED.get(data["kind"], ()))
    return Budget(kind=data["kind"], **_exact(data, names))
