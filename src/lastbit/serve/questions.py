"""What is asked of the server, what it says beforehand, and what became of it: plain data.

Numbers travel as exact texts ("1/3", "0.5", "1e-9"), never as floats.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias

State: TypeAlias = Literal["waiting", "running", "answered", "no answer", "refused"]
MARGINALS = "MARGINALS"
"""The word that a question for tables of every two columns begins with."""
FINISHED: tuple[State, ...] = ("answered", "no answer", "refused")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One SELECT with its price, or with the ± that it may have; or several, with semicolons."""

    sql: str
    epsilon: str | None = None
    delta: str | None = None
    rho: str | None = None
    within: str | Mapping[str, str] | None = None
    """Instead of a price: the least price is taken for which every ± is at most this."""
    weights: str | Mapping[str, str] | None = None
    fresh: bool = False
    """Pay for new noise though an answer is recorded."""
    part: int | None = None
    """Which purchase of several statements: the desk says it, never who asks."""

    def to_json(self) -> dict[str, Any]:
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
    parts: int | None = None
    """How many purchases answer it, where it is several statements."""


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


@dataclass(eq=False)  # not frozen: contexts set the traceback of what passes them
class Refusal(Exception):
    """What the server does not do, for the one who asked: becomes a problem document or a page."""

    status: int
    title: str
    detail: str
    kind: str = "refused"
    """The last part of the problem's type: over-budget, not-allowed, unknown-table ..."""
    headers: Mapping[str, str] = field(default_factory=dict)
    shown: str = ""
    """What pages say instead, in the words of their forms; where there is none, the detail."""
    field: str = ""
    """The field of the form that it is about, where it is about one."""

    def __str__(self) -> str:
        return f"{self.title}: {self.detail}"


def not_allowed(detail: str) -> Refusal:
    """A right is missing."""
    return Refusal(403, "Not allowed", detail, "not-allowed")


def wrong(detail: str, field: str = "") -> Refusal:
    """What was sent cannot be meant."""
    return Refusal(422, "Not accepted", detail, "invalid", field=field)
