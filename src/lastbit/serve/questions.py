"""What is asked of the server, what it says beforehand, and what became of it: plain data.

Numbers travel as exact texts ("1/3", "0.5", "1e-9"), never as floats.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from lastbit.errors import EngineFailed, LastbitError, LedgerDamaged

State: TypeAlias = Literal["waiting", "running", "answered", "no answer", "refused"]
FINISHED: tuple[State, ...] = ("answered", "no answer", "refused")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One SELECT with its price, or with the ± that it may have."""

    sql: str
    epsilon: str | None = None
    delta: str | None = None
    rho: str | None = None
    within: str | Mapping[str, str] | None = None
    """Instead of a price: the least price is taken for which every ± is at most this."""
    weights: str | Mapping[str, str] | None = None
    fresh: bool = False
    """Pay for new noise though an answer is recorded."""

    def to_json(self) -> dict[str, Any]:
        """As it is stored and sent."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What an answer would cost and how far off it would be: of question, card and ledger alone."""

    table: str
    title: str
    cost: Mapping[str, str]
    """{"epsilon": "1", "delta": "0", "rho": "0"}: exact."""
    guarantee: str
    facts: tuple[tuple[str, str], ...]
    """Lines of the plan, in words: what `lastbit query --explain` shows."""
    columns: tuple[tuple[str, ...], ...]
    """Its table: the first row has the headings."""
    prices: tuple[tuple[str, ...], ...]
    """What other prices buy; the first row has the headings."""
    recorded: int | None = None
    """The entry of an answer that is on record: to ask is free."""
    refused: str | None = None
    """Why it could not be paid for now: budget or allowance."""
    left: Mapping[str, str] | None = None
    """What would be left of the asker's own allowance, or of the account for a steward."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A question that was taken: paid for, or on record."""

    id: str
    table: str
    principal: str
    question: Question
    submitted: float
    state: State
    cost: Mapping[str, str] | None = None
    """What was charged for it; None: nothing, it is on record, or another job has paid."""
    due: float | None = None
    """When to look next, in seconds since 1970: the end of a slot."""
    slot: float | None = None
    slots: int | None = None
    entry: int | None = None
    """The number of the answer, once it has appeared."""
    reason: str | None = None


@dataclass(kw_only=True, eq=False)  # not frozen: contexts set the traceback of what passes them
class Refusal(Exception):
    """What the server does not do, for the one who asked: becomes a problem document or a page."""

    status: int
    title: str
    detail: str
    kind: str = "refused"
    """The last part of the problem's type: over-budget, not-allowed, unknown-table ..."""
    headers: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.title}: {self.detail}"


LATER = "try again later, or tell the steward"
"""Instead of words that may say where ledger and data are."""


_PLACES: Mapping[str, type[LastbitError]] = MappingProxyType(
    {"the ledger ": LedgerDamaged, "source ": EngineFailed}
)


def of_place(words: str) -> type[LastbitError] | None:
    """What an error about a parameter is, if it says where the ledger or a file is; else None."""
    return next((kind for start, kind in _PLACES.items() if words.startswith(start)), None)


LONGEST_SQL = 16 << 10
_NUMBER = re.compile(r"[0-9]+(\.[0-9]*)?(/[0-9]+|[eE][+-]?[0-9]{1,3})?", re.ASCII)
_LONGEST_NUMBER, _MOST_NAMED = 60, 100
_PRICES = ("epsilon", "delta", "rho")


def asked(data: object, *, most_sql: int = LONGEST_SQL) -> Question:
    """The question that this JSON is; anything that is not one is refused."""
    if not isinstance(data, Mapping):
        raise _wrong("the question", "is not an object", 'send {"sql": "SELECT ...", ...}')
    unknown = [name for name in data if name not in Question.__dataclass_fields__]
    if unknown:
        names = ", ".join(Question.__dataclass_fields__)
        raise _wrong("the question", "has a field that is not known", f"use {names}")
    sql, fresh = data.get("sql"), data.get("fresh", False)
    if not isinstance(sql, str) or not sql.strip() or not _is_text(sql):
        raise _wrong("sql", "is missing, or not a text", "send one SELECT")
    if len(sql.encode()) > most_sql:
        raise _wrong("sql", f"is longer than {most_sql} bytes", "ask in fewer words")
    if type(fresh) is not bool:
        raise _wrong("fresh", "is neither true nor false", "leave it out")
    prices = {name: _number(name, data.get(name)) for name in _PRICES}
    within, weights = (_numbers(name, data.get(name)) for name in ("within", "weights"))
    if within is None and prices["epsilon"] is None and prices["rho"] is None:
        raise _wrong("the question", "has no price", 'name "epsilon", "rho" or "within"')
    return Question(sql=sql, within=within, weights=weights, fresh=fresh, **prices)


def _number(name: str, value: object) -> str | None:
    if value is None:
        return None
    if isinstance(value, str) and len(value) <= _LONGEST_NUMBER and _NUMBER.fullmatch(value):
        return value
    raise _wrong(name, "is not an exact number", 'send it as text: "0.5", "1/3" or "1e-9"')


def _numbers(name: str, value: object) -> str | dict[str, str] | None:
    """One number for all, or one a column; weights are those, or "balanced"."""
    if isinstance(value, Mapping):
        if not 0 < len(value) <= _MOST_NAMED or not all(map(_is_text, value)):
            raise _wrong(name, "names no column, or too many", 'send {"n": "100"}')
        return {column: _number(name, one) or _none(name) for column, one in value.items()}
    if name == "weights" and value not in (None, "balanced"):
        raise _wrong(name, "are not known", 'send "balanced", or {"n": "2", "cost": "1"}')
    return value if name == "weights" else _number(name, value)  # type: ignore[return-value]


def _none(name: str) -> str:
    raise _wrong(name, "leaves a column without a number", 'send {"n": "100"}')


def _is_text(value: object) -> bool:
    return isinstance(value, str) and not any("\ud800" <= letter <= "\udfff" for letter in value)


def _wrong(what: str, problem: str, remedy: str) -> Refusal:
    return Refusal(
        status=422, title="Not a question", detail=f"{what} {problem}; {remedy}", kind="malformed"
    )
