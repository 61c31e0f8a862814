"""The one way from a plan to its answer: check, reserve, run, add noise, wait, settle, then show.

Order of things, and why:
1. `checked`: questions that cannot be answered are refused. The columns of the answer are made
   without rows, and of noisy numbers that may come (`rehearsal.py`), its certificate is checked
   without rows, and the statement itself runs on tables without rows. None of it depends on a row.
2. `reserved`: a question that was answered on the same data before gets the recorded answer, at no
   charge. For any other the ledger commits the price as a reservation, in one transaction that
   checks the budget for good. If it refuses, nothing was read.
3. `answered`: the engine runs the one statement; noise is added; the raw numbers are gone.
   `before_settling` is called, which may wait. The ledger takes the whole record as the answer to
   the reservation, and only what it gives back is shown.

Theorem  (a) no row is read for an answer without a committed charge. (b) No answer is shown without
         a settled entry. (c) A reservation has at most one answer. (d) For a card with accepted
         data, `checked` and `reserved` open no file of a protected table that DuckDB reads: what
         they do, and how long it takes, depends on the question, the card, the ledger and public
         tables, and on whether one of those is a protected file. (e) `answered` ends, with an
         answer or an error, after `before_settling` has ended, and the time of the entry is later
         than that: if it waits for an instant that is fixed beforehand, neither says how long the
         statement took. (f) A reservation is answered by its own question, card and data
Proof    (a) `aggregates` is called after `reserve` has returned, which it does after its commit.
         (b) what is returned is the record of an entry that `reserve` or `settle` read or wrote.
         (c) is `Ledger.settle`'s. (d) the fingerprint is the one that was accepted last, read from
         the ledger; the statement is tried on empty tables with the columns of the card
         (`made_up_rows.py`). That the source is the accepted one is checked by `answered`, before
         and after it is read: what differs is refused there, and charged. (e) `_Once` stands
         before `settle`, and before every error is raised; only an interrupt passes it. (f) the
         digest of all three is computed again, and compared with that of the entry
Corollary  a query that is killed after its reservation, at any moment, is paid for, and has shown
         how long it took and nothing else. A failure in `answered` may depend on the data, and is
         charged as well. Asking the same question again on the same data resumes the reservation
         at no charge: its first noise was never shown
Differs  where data need not be accepted, the source is looked through before the reservation, for
         whether it is well-formed, and a frame for its fingerprint: every row alike, whatever the
         question. `released` does so for accepted data too, so that changed data are refused at no
         charge. Tables of PostgreSQL and Spark are looked at by `checked`: names and types of
         columns, never a row. Without a ledger (Python only) nothing is charged, and the answer
         says so. Unless `before_settling` waits, the time that an answer takes is not part of the
         promise
Checked  tests/release/test_reserving.py, tests/release/test_failures.py, tests/faults
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from lastbit.arguments import check_kind
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
from lastbit.files import exists
from lastbit.kernel import (
    Noisy,
    Program,
    answer,
    answer_unrecorded,
    question_of,
    question_of_program,
    reserve,
)
from lastbit.ledger import (
    Account,
    Connections,
    Entry,
    Ledger,
    check_deciding,
    neighbours_of,
    spared_by,
    user_name,
)
from lastbit.place_names import is_address
from lastbit.release.answer import Answer
from lastbit.release.believing import is_answer_to, record_problem
from lastbit.release.certifying import program_of
from lastbit.release.recorded import served
from lastbit.tables import (
    DataCard,
    MarginalsPlan,
    Plan,
    Session,
    fingerprint,
    open_session,
    sealed,
    session_for,
)

if TYPE_CHECKING:  # which is made of this file
    from lastbit.release.profile import Profile

_NOT_MADE = "the answer could not be made; nothing was released"
_NOT_RECORDED = "Not recorded: no ledger was given, so nobody counts what this answer cost."
_NOT_ACCEPTED = "the data of {table} are not those that a steward has accepted"
_UNREAD = "the source could not be read; check it"
_ACCEPT = "let one look at them, and run lastbit ledger accept on the card"
_CHARGED = (
    "the price stays charged; asking the same question again is free while the data are unchanged"
)
_SILENT = "the ledger does not answer now; ask the same again when it does: it is charged once"
_UNKNOWN = (
    "perhaps you were charged: the ledger is damaged or lost the entry; run lastbit ledger verify "
    "before you ask again"
)
_WORDED = (EngineFailed, EntropyUnavailable, LedgerDamaged, NotAllowed, NotCertified)
MOST_LOOKED_AT = 200
"""How many entries of an account, the newest first, are searched for what they tell besides."""


def nothing() -> None:
    """Do nothing: for those who have nothing to check or to wait for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """What differs from one kind of question to another; the order in which it is done does not."""

    columns: Callable[[Any], object]
    """Raises if the answer could not be made whatever the rows are."""
    runnable: Callable[[Any, Session, Program | None], Program]
    """The same for its columns, its certificate and its statement, without a row: what runs."""
    record: Callable[..., dict[str, Any]]
    """The record, from the plan and its noisy integers."""


def steps_of(plan: Plan | MarginalsPlan) -> Steps:
    """How the questions of such plans are answered."""
    if isinstance(plan, MarginalsPlan):
        from lastbit.release.marginals import marginals_steps  # which is made of this file

        return marginals_steps()
    from lastbit.release.release import plan_steps  # which is made of this file

    return plan_steps()


@dataclass(frozen=True, slots=True, kw_only=True)
class Paid:
    """A question whose price is in the ledger: a reservation to answer, or an answer already."""

    entry: Entry | None = None
    """The reservation; None where there is an answer already, whose record names its entry."""
    recorded: dict[str, Any] | None = None
    """The record of the earlier answer."""
    shown: dict[str, Any] | None = None
    """What of that record the question asks for, if not all of it."""
    sql: str | None = None
    """As it was asked now; None: as the reservation has it, which may be somebody else's."""
    charged: bool = False
    """Whether this very call has charged: not for what is recorded, nor for what is resumed."""
    program: Program | None = None
    """What the price is paid for, where it was made in this process."""


def checked(
    plan: Plan | MarginalsPlan, session: Session | None = None, program: Program | None = None
) -> Program:
    """What runs; refused if it could not be answered whatever the data are.

    Nothing is charged, no row read. A `program` of this plan is not judged again.
    """
    with session_for(plan.card, session) as engine:
        return steps_of(plan).runnable(plan, engine, program)


def reserved(
    plan: Plan | MarginalsPlan,
    *,
    books: Ledger,
    who: str | None,
    principal: str | None = None,
    sql: str | None,
    fresh: bool = False,
    before_charging: Callable[[], object] = nothing,
    session: Session | None = None,
    program: Program | None = None,
) -> Paid:
    """The price of an answer, committed; or the recorded answer, at no charge; or an error.

    `before_charging` is called where a price is about to be committed, and for nothing else: it
    may refuse. `principal` is whose allowance pays, in a ledger that has principals; `program` is
    what `checked` gave for this plan, where it was called before.
    """
    with books.connection():
        card, program = plan.card, program_of(plan, session, program)
        data = current_data(card, books, session)
        neighbours = neighbours_of(card)
        # later than the source, which opens no account if it is not there
        books.account(card.account_name, card.budget, neighbours)
        question = question_of_program(program, data)
        is_answer = partial(is_answer_to, plan=plan, question=question)
        known = None if fresh else books.recorded(card.account_name, question, is_answer=is_answer)
        found = None if known is None else Paid(recorded=known)
        if found is None and isinstance(plan, Plan) and not fresh:
            found = _served(plan, books, data, sql=sql)
        if found is not None:
            books.check_asking(card.account_name, principal)
            return found
        before_charging()
        entry = reserve(
            program,
            books=books,
            data=data,
            who=who,
            principal=principal,
            sql=sql,
            fresh=fresh,
            is_answer=is_answer,
        )
        if entry.record is not None:  # another process was quicker
            return Paid(recorded=dict(entry.record))
        return Paid(entry=entry, sql=sql, charged=not entry.resumed, program=program)


def answered(
    plan: Plan | MarginalsPlan,
    paid: Paid,
    *,
    books: Ledger,
    who: str | None,
    before_settling: Callable[[], None] = nothing,
    session: Session | None = None,
) -> Answer:
    """The answer that is paid for, settled in the ledger; what fails stays charged.

    `before_settling` is called once, whatever happens: when the noise is drawn and before the
    answer is in the ledger, or before an error is raised, or a recorded answer given.
    """
    card, wait = plan.card, _Once(before_settling)
    spared = spared_by(card, books.path)
    entry = paid.entry
    if paid.recorded is not None or entry is None:
        from lastbit.release.whole import shown_with_profile  # which is made of this file

        wait()
        shown = paid.shown or shown_with_profile(paid.recorded or {}, plan, books=books)
        return Answer(paid.recorded or {}, spared, charged=False, shown=shown)
    program = program_of(plan, session, paid.program)
    sql = entry.words if paid.sql is None else paid.sql
    said: dict[str, Any] = {"question": entry.question, "sql": sql, "head": entry.hash}
    said["engine"] = program.engine

    def settled() -> Entry:
        from lastbit.release.whole import profile_of  # which is made of this file

        said["profile"] = profile_of(plan, books=books, data=entry.fingerprint)
        with uncollected():
            return answer(
                program,
                entry,
                books=books,
                session=session,
                make_record=partial(_record, plan, said),
                who=who,
                before_settling=wait,
            )

    # sealed: its frames hold an answer that is not settled yet
    done = _charged(settled, partial(_state_of_charge, books, entry), wait)
    return Answer(dict(done.record or {}), spared, charged=paid.charged)


def _record(plan: Plan | MarginalsPlan, said: dict[str, Any], noisy: Noisy) -> dict[str, Any]:
    """The record of an answer, not settled yet: nothing of it is in an error."""
    steps = steps_of(plan)
    return sealed(
        lambda: steps.record(plan, noisy, **said),
        words=_NOT_MADE,
        known=(NotCertified,),
    )


class _Once:
    """A call that is made the first time only, also if it fails then."""

    def __init__(self, call: Callable[[], None]) -> None:
        self.left = [call]

    def __call__(self) -> None:
        while self.left:
            self.left.pop()()


def _state_of_charge(books: Ledger, entry: Entry) -> str:
    """What is said of a reservation after a failure; one remedy, whatever the failure itself says.

    A server that stopped keeps what was committed: only a ledger that is there can have lost it.
    """
    held = books.holds(entry)
    return _SILENT if held is None else _CHARGED if held else _UNKNOWN


def _charged(work: Callable[[], Entry], state: Callable[[], str], wait: _Once) -> Entry:
    """What `work` gives; its errors say that the price is paid, and how to come by the answer.

    Where the ledger does not have the reservation any more, the message claims nothing about the
    charge; and only there it does not say what else is to be done.
    """
    try:
        return sealed(work, words=_NOT_MADE)
    except LastbitError as error:
        failed = error
    with suppress(LastbitError):
        sealed(wait, words=_NOT_MADE)
    paid = state()
    if isinstance(failed, InvalidParameter):
        wrong, problem = failed.parameter, failed.problem
        remedy = paid if paid != _CHARGED else f"{failed.remedy}; {paid}"
        raise InvalidParameter(wrong, problem=problem, remedy=remedy)
    kind = type(failed) if type(failed) in _WORDED else EngineFailed
    words = str(failed) if paid == _CHARGED else str(failed).partition("; ")[0]
    raise kind(f"{words}; {paid}")


def paid_for(
    plan: Plan | MarginalsPlan,
    *,
    ledger: str | os.PathLike[str] | Ledger | None,
    who: str | None,
    fresh: bool,
    sql: str | None,
    profile: Profile | None = None,
) -> Answer:
    """The answer to a user of this machine, in the safe order, on one connection to the ledger."""
    connections = ledger.connections if isinstance(ledger, Ledger) else Connections()
    asked: dict[str, Any] = {"ledger": ledger, "who": who, "fresh": fresh, "sql": sql}
    with connections.lasting():
        return _paid_for(plan, connections, profile, **asked)


def _paid_for(
    plan: Plan | MarginalsPlan,
    connections: Connections,
    profile: Profile | None,
    *,
    ledger: str | os.PathLike[str] | Ledger | None,
    who: str | None,
    fresh: bool,
    sql: str | None,
) -> Answer:
    card, label = plan.card, _label(plan.card, who)
    steps_of(plan).columns(plan)
    program = _checked_first(plan) if is_missing(ledger, card) else None
    books = opened_ledger(ledger, card, connections)
    with open_session(card, units_beside=None if books is None else books.path) as session:
        if books is None:
            made = unrecorded(plan, _NOT_RECORDED, session, sql=sql, profile=profile)
            return Answer(made, spared_by(card))
        if card.accepted_data and _fingerprint(books, card, session) != _accepted(books, card):
            raise _waits(card)
        program = program_of(plan, session, program)
        check = partial(checked, plan, session, program)
        paid = reserved(
            plan,
            books=books,
            who=label,
            principal=books.user,
            sql=sql,
            fresh=fresh,
            before_charging=check,
            session=session,
            program=program,
        )
        return answered(plan, paid, books=books, who=label, session=session)


def check_payable(
    plans: Sequence[Plan], card: DataCard, ledger: str | os.PathLike[str] | Ledger | None
) -> None:
    """Refuse, before the first of several charges, what budget or allowance do not allow in all."""
    books = None if is_missing(ledger, card) else opened_ledger(ledger, card)
    account = Account(name=card.account_name, budget=card.budget)
    allowance = None
    if books is not None:
        known = (one for one in books.accounts() if one.name == card.account_name)
        account = next(known, account)
        if books.principals():
            allowance = next(iter(books.allowances(account.name, books.user)), None)
    for plan in plans:
        account = account.charged(plan.cost, gaussian_noise=plan.gaussian_noise)
        allowance = None if allowance is None else allowance.charged(plan.cost)


def current_data(card: DataCard, books: Ledger, session: Session | None = None) -> str:
    """The fingerprint by which the ledger knows the data: as accepted, or else as they are."""
    return _accepted(books, card) if card.accepted_data else _fingerprint(books, card, session)


def _label(card: DataCard, who: str | None) -> str:
    """In whose name the ledger notes it; refused for those whom the card does not name."""
    check_kind(who, (str, type(None)), "who", remedy='pass a name, say "me"')
    person = user_name()
    if card.users is not None and person not in card.users:
        words = f"the card of {card.name} does not name {person} among its users"
        raise NotAllowed(f"{words}; let a steward add the name under [access]")
    return person if who is None or who == person else f"{who} (as {person})"


def paid_for_all(
    plans: Sequence[Plan],
    connections: Connections,
    *,
    ledger: str | os.PathLike[str] | Ledger | None,
    who: str | None,
    sqls: Sequence[str | None],
) -> list[Answer]:
    """The answers to several plans of one table, in the safe order: all prices first, or none."""
    card = plans[0].card
    with connections.lasting():
        label = _label(card, who)
        missing = is_missing(ledger, card)
        programs = [_checked_first(plan) if missing else checked(plan) for plan in plans]
        books = None if missing else opened_ledger(ledger, card, connections)
        _check_together(plans, programs, books, ledger)
        paid, asked = [], list(zip(plans, sqls, strict=True))
        books = books or opened_ledger(ledger, card, connections)
        if books is not None:
            how: dict[str, Any] = {"who": label, "principal": books.user, "books": books}
            paid = [reserved(plan, sql=sql, **how) for plan, sql in asked]
        how = {"ledger": books or ledger, "who": who, "fresh": False}
        answers = [_paid_for(plan, connections, None, sql=sql, **how) for plan, sql in asked]
    charged = [one.charged for one in paid] or [answer.charged for answer in answers]
    return [replace(a, charged=bought) for a, bought in zip(answers, charged, strict=True)]


def _check_together(
    plans: Sequence[Plan], programs: Sequence[Program], books: Ledger | None, ledger: Any
) -> None:
    """Refuse prices that budget or allowance do not cover together, before the first charge."""
    card, due = plans[0].card, list(plans)
    if books is not None:
        data = _fingerprint(books, card)
        if card.accepted_data and data != _accepted(books, card):
            raise _waits(card)
        asked = [question_of_program(program, data) for program in programs]
        paid = {entry.question or "" for entry in books.unanswered(card.account_name)}
        paid |= {one for one in asked if books.recorded(card.account_name, one)}
        due = [plan for plan, question in zip(plans, asked, strict=True) if question not in paid]
    check_payable(due, card, books or ledger)


def is_missing(ledger: Any, card: DataCard) -> bool:
    """Whether the ledger is a file that is not there yet."""
    place = card.ledger if ledger is None else ledger
    if not isinstance(place, str | os.PathLike) or is_address(place):
        return False
    return not exists(place)


def _checked_first(plan: Plan | MarginalsPlan) -> Program:
    """What runs, unless a new ledger would refuse it: a refused question leaves no file behind."""
    card = plan.card
    if card.accepted_data:
        raise _waits(card)
    with open_session(card) as session:
        sealed(partial(fingerprint, card, session), words=_UNREAD)
        program = checked(plan, session)
    account = Account(name=card.account_name, budget=card.budget)
    account.charged(plan.cost, gaussian_noise=plan.gaussian_noise)
    return program


def unrecorded(
    plan: Plan | MarginalsPlan,
    note: str,
    session: Session,
    *,
    sql: str | None,
    profile: Profile | None = None,
) -> dict[str, Any]:
    """The record of an answer that nobody counts, on a card that names no ledger."""
    card, program = plan.card, program_of(plan, session)
    if card.budget is not None and not plan.cost.within(card.budget):
        words = f"the answer costs more than all of the budget of {card.name}"
        raise BudgetExceeded(f"{words}; ask at a lower price")
    said: Any = {"question": question_of_program(program, None), "sql": sql, "notes": (note,)}
    said |= {"engine": program.engine, "profile": profile}

    def made() -> dict[str, Any]:
        return _record(plan, said, answer_unrecorded(program, session=session))

    return sealed(made, words=_NOT_MADE)


def accept_data(card: DataCard, *, who: str | None = None) -> Entry:
    """Let the data be asked about as they are now; a steward's decision, which is recorded."""
    if is_missing(None, card):
        sealed(partial(fingerprint, card), words=_UNREAD)
    books = opened_ledger(None, card)
    if books is None:
        raise InvalidParameter("card", problem="names no ledger", remedy="add [ledger] to it")
    known = {one.name: one for one in books.principals()}
    if known:  # the ledger refuses as well, by `who`, once the source has been read
        check_deciding(known, books.user)
    data = _fingerprint(books, card)
    books.account(card.account_name, card.budget, neighbours_of(card))
    return books.accept_data(card.account_name, card.name, data, who=who or books.user)


def _accepted(books: Ledger, card: DataCard) -> str:
    """The fingerprint of the data that were accepted last; refused where none ever were."""
    found = books.accepted_data(card.account_name, card.name)
    if found is None:
        raise _waits(card)
    return found


def _waits(card: DataCard) -> NotAllowed:
    return NotAllowed(f"{_NOT_ACCEPTED.format(table=card.name)}; nothing was charged; {_ACCEPT}")


def _served(plan: Plan, books: Ledger, data: str, *, sql: str | None) -> Paid | None:
    """The newest record that answers the question too, and what of it the question asks for."""
    card = plan.card
    for entry in books.answers(card.account_name, last=MOST_LOOKED_AT):
        record = entry.record or {}
        if record_problem(record) is not None:
            continue
        same = record["question"] == question_of(record["asked"], card, data)
        shown = served(record, plan, sql=sql) if same else None
        if shown is not None:
            return Paid(recorded=dict(record), shown=shown)
    return None


def _fingerprint(books: Ledger, card: DataCard, session: Session | None = None) -> str:
    return sealed(lambda: books.keyed(fingerprint(card, session)), words=_UNREAD)


def opened_ledger(
    ledger: Any, card: DataCard, connections: Connections | None = None
) -> Ledger | None:
    """The ledger that is named, or the card's; one that the card does not name is refused."""
    if ledger is None:
        return None if card.ledger is None else Ledger.open(card.ledger, connections=connections)
    books = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger, connections=connections)
    if card.ledger is not None and not books.is_at(card.ledger):
        raise InvalidParameter(
            "ledger", problem="is not the one that the card names", remedy="leave it out"
        )
    return books


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
