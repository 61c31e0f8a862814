"""The one way from a query to its answer: check, reserve, run, add noise, settle, then show.

Order of things, and why:
1. Users who may not ask are refused, and questions that cannot be answered: the columns of the
   answer are made without rows, and of noisy numbers that may come (`rehearsal.py`), its
   certificate is checked without rows, and the statement itself runs on tables without rows. None
   of it depends on a row.
2. A question that was answered on the same data before gets the recorded answer, at no charge.
3. The ledger commits the price as a reservation, in one transaction that checks the budget for
   good. If it refuses, nothing was read.
4. The engine runs the one statement; noise is added; the raw numbers are gone.
5. The ledger takes the whole record as the answer to the reservation, and only what it gives back
   is shown.

Theorem  (a) no row is read for an answer without a committed charge. (b) No answer is shown without
         a settled entry. (c) A reservation has at most one answer
Proof    (a) `aggregates` is called after `reserve` has returned, which it does after its commit.
         (b) what is returned is the record of an entry that `reserve` or `settle` read or wrote.
         (c) is `Ledger.settle`'s
Corollary  a query that is killed after step 3, at any moment, is paid for, and has shown how long
         it took and nothing else. A failure in steps 4 and 5 may depend on the data, and is charged
         as well. Asking the same question again on the same data resumes the reservation at no
         charge: its first noise was never shown
Differs  the source is looked through before the reservation, for whether it is well-formed, and a
         frame for its fingerprint: every row alike, whatever the question. Without a ledger (Python
         only) nothing is charged, and the answer says so. The time that an answer takes is not part
         of the promise
Checked  tests/release/test_reserving.py, tests/release/test_failures.py, tests/faults

The certificate of an answer (`certificate_of`) is what `lastbit check` needs to compute its price
again: the query, the plan and digests. The plan has seen no data, and the rows digested are
released, so it may go wherever the answer goes (tests/release/test_certificate.py).
"""

from __future__ import annotations

import gc
import getpass
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from lastbit.canonical import digest_of
from lastbit.checker import beliefs
from lastbit.errors import (
    BudgetExceeded,
    EngineFailed,
    EntropyUnavailable,
    InvalidParameter,
    LastbitError,
    LedgerDamaged,
    NotAllowed,
    NotCertified,
)
from lastbit.ledger import Entry, Ledger, one_connection, spared_by
from lastbit.release.answer import Answer
from lastbit.release.derived import derived_columns
from lastbit.release.having import kept
from lastbit.release.intervals import Column, columns_of
from lastbit.release.noise import Noisy, noised
from lastbit.release.recorded import columns_named, served
from lastbit.release.rehearsal import rehearsed
from lastbit.sampling import secure_bits
from lastbit.tables import (
    ColumnName,
    DataCard,
    GaussianSelection,
    MarginalsPlan,
    Plan,
    Query,
    aggregates,
    columns_in,
    counted_card,
    distinct_values,
    engine_record,
    fingerprint,
    keeping_units,
    one_database,
    rehearse,
    sealed,
    sensitivity_of,
    unit_name,
    values_to_json,
)
from lastbit.verify import certificate, digest


def certificate_of(
    plan: Plan | MarginalsPlan,
    *,
    columns: Sequence[Mapping[str, Any]],
    rows: Sequence[Mapping[str, Any]],
    head: str | None = None,
) -> dict[str, Any]:
    """The certificate of a release by this plan, sealed.

    `columns` and `rows` are those of the record; the certificate has their digest. `head` is the
    hash of the reservation that paid for it: quoted later, it proves that no entry was lost.
    """
    card, written = plan.card, plan.to_json()
    moves = {m.name: sensitivity_of(m, card, groups=plan.groups) for m in plan.measures}
    claim = {
        "table": card.name,
        "unit": card.unit,
        "neighbours": card.neighbours.relation,
        "query": plan.query.digest,
        "rows": digest({"columns": list(columns), "rows": list(rows)}),
        **written["cost"],
        **({"private": plan.private} if plan.private else {}),
        **({} if plan.query.per_unit is None else {"per_unit": True}),
    }
    body = {
        "query": plan.query.to_json(),
        "plan": written,
        "plan_digest": plan.digest,
        "moves": {
            name: {norm: str(getattr(found, norm)) for norm in ("l1", "l2_squared", "linf")}
            for name, found in moves.items()
        },
        "ledger": head,
        "engine": engine_record(card),
    }
    kind = "marginals" if isinstance(plan, MarginalsPlan) else "release"
    return certificate(kind, claim, beliefs(kind, claim), body)


_NOT_MADE = "the answer could not be made; nothing was released"
_NOT_POSSIBLE = (
    "the columns of this answer cannot be made, whatever the data are; nothing was charged; ask at "
    "another price, or for fewer columns at once"
)
_CHARGED = (
    "the price stays charged; asking the same question again is free while the data are unchanged"
)
_UNKNOWN = (
    "it is unclear whether you were charged: the ledger cannot be read or has lost the entry; run "
    "`lastbit ledger verify` before asking again"
)
_WORDED = (EngineFailed, EntropyUnavailable, LedgerDamaged, NotCertified)


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """What differs from one kind of question to another; the order in which it is done does not."""

    question: Callable[[Any, str | None], str]
    """Digest of all that the answer depends on but the noise, given the plan and the data's."""
    columns: Callable[[Any], object]
    """Raises if the answer could not be made whatever the rows are."""
    runnable: Callable[[Any], None]
    """The same for its certificate and its statement, without a row."""
    made: Callable[..., dict[str, Any]]
    """The record; reads the rows and adds the noise."""


def released(
    query: Query,
    card: DataCard,
    plan: Plan,
    *,
    ledger: str | os.PathLike[str] | Ledger | None = None,
    who: str | None = None,
    fresh: bool = False,
    consistent: bool = False,
    sql: str | None = None,
) -> Answer:
    """The private answer to a query, as planned; charged to the ledger before a row is read.

    `ledger` defaults to the card's, and cannot be another one where the card names one. `fresh`
    pays for new noise though the same question was answered before. `consistent` makes counts agree
    with their totals, which is free. `who` is what the ledger notes beside the user's own name.
    """
    if plan.query != query or plan.card != counted_card(query, card):
        raise InvalidParameter(
            "plan", problem="is for another query or table", remedy="pass planned(query, card, ...)"
        )
    steps = Steps(
        question=question_of_plan, columns=_check_columns, runnable=_check_runnable, made=_made
    )
    answer = paid_for(plan, steps, ledger=ledger, who=who, fresh=fresh, sql=sql)
    return answer.consistent() if consistent else answer


@one_connection()
def paid_for(
    plan: Any,
    steps: Steps,
    *,
    ledger: str | os.PathLike[str] | Ledger | None,
    who: str | None,
    fresh: bool,
    sql: str | None,
) -> Answer:
    """The record of an answer, in the safe order; the plan has a card, a query and a cost."""
    card = plan.card
    person = _user()
    if card.users is not None and person not in card.users:
        raise NotAllowed(f"the card of {card.name} does not name {person} among its users")
    steps.columns(plan)
    books = opened_ledger(ledger, card)
    if books is not None:
        label = person if who is None or who == person else f"{who} (as {person})"
        with one_database(card):
            return _recorded(plan, steps, books, who=label, fresh=fresh, sql=sql)
    if card.budget is not None and not plan.cost.within(card.budget):
        raise BudgetExceeded(f"the answer costs more than all of the budget of {card.name}")
    note = "Not recorded: no ledger was given, so nobody counts what this answer cost."
    said: Any = {"question": steps.question(plan, None), "sql": sql, "notes": (note,)}
    with one_database(card):
        made = sealed(lambda: steps.made(plan, **said), words=_NOT_MADE)
    return Answer(made, spared_by(card))


def _recorded(
    plan: Any, steps: Steps, books: Ledger, *, who: str, fresh: bool, sql: str | None
) -> Answer:
    card = plan.card
    data = _fingerprint(books, card)  # first: a source that is not there opens no account
    books.account(card.account_name, card.budget)
    if card.account is not None:
        _check_one_promise(books, card)
    if card.accepted_data and books.accepted_data(card.account_name, card.name) != data:
        raise NotAllowed(
            f"the data of {card.name} are not those that a steward has accepted; nothing was "
            "charged; let one look at them, and run lastbit ledger accept on the card"
        )
    question = steps.question(plan, data)
    spared = spared_by(card, books.path)
    known = None if fresh else books.recorded(card.account_name, question)
    if known is not None:
        return Answer(known, spared, charged=False)
    if isinstance(plan, Plan) and not fresh:
        served = _served(plan, books, data, sql=sql)
        if served is not None:
            return Answer(served[0], spared, charged=False, shown=served[1])
    steps.runnable(plan)
    paid = books.reserve(
        card.account_name,
        plan.cost,
        who=who,
        question=question,
        plan_digest=plan.digest,
        fingerprint=data,
        words=sql,
        query=plan.query.digest,
        fresh=fresh,
        gaussian_noise=plan.gaussian_noise,
    )
    if paid.record is not None:  # another process was quicker
        return Answer(dict(paid.record), spared, charged=False)

    def settled() -> Entry:
        with keeping_units(card, books.path):
            record = steps.made(plan, question=question, sql=sql, head=paid.hash)
        if _fingerprint(books, card) != data:  # else the record would name other data than it has
            raise EngineFailed("the data changed while they were read")
        with uncollected():
            return books.settle(paid, record, who=who, plan_digest=plan.digest)

    # sealed: its frames hold an answer that is not settled yet
    entry = _charged(settled, lambda: books.holds(paid))
    return Answer(dict(entry.record or {}), spared, charged=not paid.resumed)


def accept_data(card: DataCard, *, who: str | None = None) -> Entry:
    """Let the data be asked about as they are now; a steward's decision, which is recorded."""
    books = opened_ledger(None, card)
    if books is None:
        raise InvalidParameter("card", problem="names no ledger", remedy="add [ledger] to it")
    with one_database(card):
        data = _fingerprint(books, card)
    books.account(card.account_name, card.budget)
    return books.accept_data(card.account_name, card.name, data, who=who)


MOST_LOOKED_AT = 200
"""How many entries of an account, the newest first, are searched for what they tell besides."""


def _check_one_promise(books: Ledger, card: DataCard) -> None:
    """Refuse to add prices up that are of other neighbours: their sum would promise nothing."""
    for entry in reversed(books.entries(card.account_name, last=MOST_LOOKED_AT)):
        record = {} if entry.result is None else books.entry(entry.sequence).record or {}
        try:
            claim = record["certificate"]["claim"]
            unit, neighbours = claim["unit"], claim["neighbours"]
        except (KeyError, TypeError):  # no answer about a table
            continue
        if neighbours != card.neighbours.relation or (unit is None) != (card.unit is None):
            problem = f"{card.account_name} has answers about other neighbours or units"
            remedy = "let cards that share an account declare the same neighbours and units"
            raise InvalidParameter("account", problem=problem, remedy=remedy)
        return


def _served(
    plan: Plan, books: Ledger, data: str, *, sql: str | None
) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """The newest record that answers the question too, and what of it the question asks for."""
    card = plan.card
    for entry in reversed(books.entries(card.account_name, last=MOST_LOOKED_AT)):
        if entry.result is None:
            continue
        record = books.entry(entry.sequence).record or {}
        try:
            same = record["question"] == question_of(record["asked"], card, data)
            shown = served(record, plan, sql=sql) if same else None
        except (KeyError, TypeError, ValueError, StopIteration):  # written by another program
            continue
        if shown is not None:
            return dict(record), shown
    return None


def _charged(work: Callable[[], Entry], held: Callable[[], bool]) -> Entry:
    """What `work` gives; its errors say that the price is paid, and how to come by the answer.

    `held` says whether the ledger still has the reservation; if it does not, the message
    claims nothing about the charge.
    """
    try:
        return sealed(work, words=_NOT_MADE)
    except InvalidParameter as error:
        remedy = f"{error.remedy}; {_CHARGED if held() else _UNKNOWN}"
        wrong, problem = error.parameter, error.problem
        failed: LastbitError = InvalidParameter(wrong, problem=problem, remedy=remedy)
    except LastbitError as error:
        kind = type(error) if type(error) in _WORDED else EngineFailed
        failed = kind(f"{error}; {_CHARGED if held() else _UNKNOWN}")
    raise failed


def _fingerprint(books: Ledger, card: DataCard) -> str:
    return sealed(
        lambda: books.keyed(fingerprint(card)), words="the source could not be read; check it"
    )


def _user() -> str:
    """The user whom the operating system runs this for; the environment could say anything."""
    try:
        import pwd  # not on every system

        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid {os.getuid()}"
    except ImportError:
        return getpass.getuser()


def opened_ledger(ledger: Any, card: DataCard) -> Ledger | None:
    """The ledger that is named, or the card's; one that the card does not name is refused."""
    if ledger is None:
        return None if card.ledger is None else Ledger.open(card.ledger)
    books = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)
    if card.ledger is not None and not books.is_at(card.ledger):
        raise InvalidParameter(
            "ledger", problem="is not the one that the card names", remedy="leave it out"
        )
    return books


def question_of_plan(plan: Any, data: str | None) -> str:
    """Digest of everything the answer depends on except the noise: query, price, card, data."""
    query = plan.query.digest
    return _digest(query, plan.asked.to_json(), _types(plan.query, plan.card), plan.card, data)


def question_of(asked: Mapping[str, Any], card: DataCard, data: str) -> str | None:
    """The same of a recorded answer, by what it says was asked; None if that cannot be told."""
    query = asked["query"]
    price = {name: value for name, value in asked.items() if name not in ("sql", "query")}
    columns = {ColumnName(name, table) for name, table in columns_named(query)}
    return _digest(digest_of(query), price, _types_of(columns, card), card, data)


def _digest(
    query: str, asked: Mapping[str, Any], types: list[list[str]], card: DataCard, data: str | None
) -> str:
    public = [card.public[name].source for name in sorted(card.public)]
    return digest_of(
        {
            "query": query,
            "asked": asked,
            "card": [
                card.name,
                card.unit,
                card.max_rows,
                card.max_groups,
                card.neighbours.relation,
            ],
            "types": types,
            "tables": [source.table for source in (card.source, *public)],
            "data": data,
            **({"private": _private(card)} if card.private else {}),
        }
    )


def _private(card: DataCard) -> list[list[Any]]:
    """What the card declares of its private tables that a plan does not say."""
    tables = sorted(card.private.items())
    return [[name, one.unit, one.max_rows, one.source.table] for name, one in tables]


def _types(query: Query, card: DataCard) -> list[list[str]]:
    """How the card reads the columns that matter: it decides whether 007 is a number or text.

    Bounds, steps, keys and missing values are in the query; types are on the card alone.
    """
    parts = [query.where, *(key.expression for key in query.keys)]
    parts += [part.expression for part in query.aggregates]
    parts += [] if query.per_unit is None else query.per_unit.expressions()
    parts += [side for join in query.all_joins for pair in join.on for side in pair]
    return _types_of({c for part in parts if part is not None for c in columns_in(part)}, card)


def _types_of(mentioned: set[ColumnName], card: DataCard) -> list[list[str]]:
    if card.unit is not None:
        mentioned = mentioned | {ColumnName(card.unit)}
    tables: dict[str | None, Mapping[str, str]] = {
        name: {column.lower(): kind for column, kind in public.columns.items()}
        for name, public in card.public.items()
    }
    protected = {name: table.columns for name, table in card.private.items()}
    for name, columns in (*protected.items(), (None, card.columns)):
        tables[name] = {column.name.lower(): column.type for column in columns.values()}
    kinds = ((c, tables.get(c.table, {}).get(c.name.lower())) for c in mentioned)
    return sorted([column.table or "", column.name, kind or ""] for column, kind in kinds)


def _check_columns(plan: Plan) -> list[dict[str, Any]]:
    """The columns of an answer without rows, so that what cannot be made fails here."""
    none: dict[str, list[Any]] = {measure.name: [] for measure in plan.measures}
    pairs = [(r.aggregate.name, role) for r in plan.recipes for role in ("value", "low", "high")]
    drawn: dict[tuple[str, str], list[int]] = {pair: [] for pair in pairs}
    nothing = Noisy(keys=[], entries=none, bins=none, ranks=drawn, trees=none)
    found = _told(plan, _columns(plan, nothing))
    if len({column["name"].lower() for column in found}) != len(found):
        raise InvalidParameter(
            "query", problem="gives two columns of the answer one name", remedy="rename one"
        )
    return found


def _check_rehearsed(plan: Plan) -> None:
    """Refuse, before the charge, a plan whose columns fail for noisy numbers that may come.

    Rows of nothing, of one, and far out on both sides, by public facts alone.
    """
    for noisy in rehearsed(plan):
        sealed(partial(_columns, plan, noisy), words=_NOT_POSSIBLE)


def _check_runnable(plan: Plan) -> None:
    """All that could fail whatever the data are, tried without a row of them."""
    _check_rehearsed(plan)
    check_certified(lambda: certificate_of(plan, columns=_check_columns(plan), rows=[]))
    rehearse(plan.query, plan.card, plan.measures)


def check_certified(empty: Callable[[], object]) -> None:
    """Refuse a plan whose certificate, without rows, the checker rejects as it is made."""
    try:
        empty()
        return
    except NotCertified:
        pass
    raise NotCertified(
        "the checker rejects the plan of this answer; nothing was charged; ask at another price, "
        "or with other weights"
    )


def _noisy(plan: Plan) -> Noisy:
    """Run the statement and add the noise; raw numbers live in here and nowhere else."""
    secret = secure_bits().fill(32).tobytes().hex()
    raw = aggregates(plan.query, plan.card, plan.measures, secret=secret)

    def checked() -> Noisy:
        _check_shape(plan, raw)
        return noised(plan, raw)

    words = "the noise could not be added; nothing was released"
    return sealed(checked, words=words, known=(EntropyUnavailable,))


def _check_shape(plan: Plan, raw: Any) -> None:
    """That the engine gave one entry for every key and measure, as it promised."""
    count = len(raw.keys)
    if plan.groups is not None and count != plan.groups:
        raise EngineFailed("keys")
    for measure in plan.measures:
        entries = raw.bins if measure.kind == "bins" else raw.entries
        if len(entries[measure.name]) != count:
            raise EngineFailed("entries")
        wanted = len(measure.edges) - 1
        if measure.kind == "bins" and any(len(b) != wanted for b in entries[measure.name]):
            raise EngineFailed("bins")
    if plan.groups is None and len(raw.units) != count:
        raise EngineFailed("units")
    apart = any(measure.kind == "shares" and measure.lowest for measure in plan.measures)
    if apart and len(raw.single) != count:
        raise EngineFailed("units with one key")


def _made(plan: Plan, **said: Any) -> dict[str, Any]:
    """The record of a new answer; to be called sealed, since it is not settled yet."""
    noisy = _noisy(plan)
    with uncollected():
        return sealed(lambda: _record(plan, noisy, **said), words=_NOT_MADE, known=(NotCertified,))


@contextmanager
def uncollected() -> Iterator[None]:
    """Inside, no cycles are looked for: a record can have millions of values, and has no cycle.

    Whatever other threads do, collecting is on in the end if it was before.
    """
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()


def _record(
    plan: Plan,
    noisy: Noisy,
    *,
    question: str,
    sql: str | None,
    notes: tuple[str, ...] = (),
    head: str | None = None,
) -> dict[str, Any]:
    columns = _columns(plan, noisy)
    rows = _rows(plan.query, noisy, columns)
    said = [*notes, *_notes(plan)]
    return record_of(
        plan, _told(plan, columns), rows, question=question, sql=sql, notes=said, head=head
    )


def record_of(
    plan: Plan | MarginalsPlan,
    columns: Sequence[Mapping[str, Any]],
    rows: Sequence[Mapping[str, Any]],
    *,
    question: str,
    sql: str | None,
    notes: Sequence[str],
    head: str | None,
) -> dict[str, Any]:
    """What is recorded of an answer, not settled yet: the checker has had the last word on it."""
    import lastbit  # late: the package imports this room

    return {
        "lastbit": lastbit.__version__,
        "table": plan.card.name,
        "question": question,
        "asked": {"sql": sql, "query": plan.query.to_json(), **plan.asked.to_json()},
        "columns": list(columns),
        "rows": list(rows),
        "cost": plan.cost.to_json(),
        "guarantee": plan.guarantee,
        "plan": plan.to_json(),
        "notes": list(notes),
        "certificate": certificate_of(plan, columns=columns, rows=rows, head=head),
        "entry": None,
    }


def _columns(plan: Plan, noisy: Noisy) -> list[Column]:
    """Every column that is released, those made of others last."""
    released = columns_of(plan, noisy)
    return [*released, *derived_columns(plan, noisy, released)]


def _shown(query: Query, columns: list[Column]) -> list[Column]:
    """The columns that the answer shows, in the order of the question."""
    return [column for name in query.selected for column in columns if column.aggregate == name]


def _told(plan: Plan, columns: list[Column]) -> list[dict[str, Any]]:
    """What the record says of the columns of its rows."""
    return [
        *({"name": key.name, "role": "key", "function": None} for key in plan.query.keys),
        *(column.to_json() for column in _shown(plan.query, columns)),
    ]


def _rows(query: Query, noisy: Noisy, columns: list[Column]) -> list[dict[str, Any]]:
    """The rows of the answer, HAVING, ORDER BY and LIMIT applied to what is released."""
    names = [key.name for key in query.keys] + [column.name for column in columns]
    values: Sequence[Sequence[Any]] = noisy.keys
    if query.having is not None or query.order:
        values = [
            [*keys, *(column.cells[i].value for column in columns)]
            for i, keys in enumerate(noisy.keys)
        ]
    shown, hidden = _shown(query, columns), {part.name for part in query.hidden}
    parts = [column for column in columns if column.aggregate in hidden]
    # a column of keys at a time: there may be 10^5 rows
    listed = zip(*map(values_to_json, zip(*noisy.keys, strict=True)), strict=True)
    keys = [list(row) for row in listed] if query.keys else [[] for _ in noisy.keys]
    return [
        {
            "keys": keys[i],
            "cells": [column.cells[i].to_json() for column in shown],
            # what derived columns are made of and the answer does not show by itself
            **({"parts": [column.cells[i].to_json() for column in parts]} if parts else {}),
        }
        for i in kept(query, names, values)
    ]


DERIVED = (
    "Columns made of others are computed from released numbers and cost nothing. Where a divisor "
    "may be 0, or a part is a quantile among others, they have no interval."
)


SERVED = (
    "The count by which a key is shown is the count in the answer. Its interval, and those of "
    "means and variances made of it, hold in 95 % of all releases, those without the key included; "
    "where noise lifted a key to that number, they miss more often."
)


def _notes(plan: Plan) -> list[str]:
    """What a reader must know; public, and the same for all data. The checker knows these words."""
    notes = [
        "Intervals hold the number without noise in 95 % of all releases. They do not cover what "
        "limits on rows, bounds and rounding did to the data, and nobody may know if they did."
    ]
    card, functions = plan.card, {part.function for part in plan.query.aggregates}
    if card.unit is not None:
        notes.append(
            f"Each {unit_name(card.unit)} counts for at most {card.max_rows} rows: where there are "
            "more, all of them count for less."
        )
    part = plan.partition_selection
    if isinstance(part, GaussianSelection) and part.single is not None:
        notes.append(
            f"A key is shown if about {part.single.threshold} units or more have it and no other, "
            f"or about {-(-part.threshold // part.weight_one)} that have several, a unit with K "
            "keys counting as one over the square root of K; others are unknown."
        )
    elif isinstance(part, GaussianSelection) and part.weight_one > 1:
        notes.append(
            f"A key is shown if about {-(-part.threshold // part.weight_one)} units or more have "
            "it, a unit with K keys counting as one over the square root of K; others are unknown."
        )
    elif part is not None:
        notes.append(
            f"A key is shown if about {part.threshold} units or more have it; others are unknown, "
            "and counts close to that number tend to be too high."
        )
    counted = {name for recipe in plan.recipes for name in recipe.measures.values()}
    if part is not None and part.measure in counted:
        notes.append(SERVED)
    if functions & {"variance", "std"}:
        notes.append("Variances are those of the rows themselves (divided by n, not n - 1).")
    if functions & {"quantile", "min", "max"}:
        notes.append(
            "Quantiles are chosen among bins between the bounds, and shown as the middle of the "
            "bin, or as its lower edge where a bin is one step."
        )
    if "count_distinct" in functions and card.unit is not None:
        notes.append(
            f"Of distinct values each {unit_name(card.unit)} names at most "
            f"{distinct_values(card)}, chosen afresh: values that it alone has beyond these are "
            "not counted."
        )
    if plan.query.derived:
        notes.append(DERIVED)
    return notes
