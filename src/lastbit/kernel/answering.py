"""From a program to noisy integers that are paid for, and an answer that is in the books.

Law      `reserve` commits a program's price to the account of its card. `answer` has the engine
         compute the sealed integers of a reservation, adds the noise, writes the noisy integers
         into the books, hands them to `make_record`, and settles the record that it gives
Theorem  (a) no row is read for an answer before its price is committed. (b) One reservation gives
         one draw: whatever becomes of a process, of `make_record`, or of another process at the
         same time, noisy integers that leave this file are those that the books have, and the books
         have one set of them for a reservation. (c) A reservation is answered by the program, card
         and data that it was made for, at the price that was charged
Proof    (a) `books.reserve` returns after its commit, and `answer` asks the books for the open
         reservation before it runs the engine. (b) `ChargingLedger.draw` keeps the first draw of a
         reservation in one transaction, and gives back what is kept: only that is used. (c) the
         digest of the program, by the reservation's own data, and the price are compared with those
         of the reservation, the card's budget with that of the account, and `settle` refuses
         another plan than that of the draw; the data are compared after they are read, and where a
         steward must accept them, before, with those that the books have as accepted last
Corollary  whoever made program and record, sees what is shown and calls when he likes, all that he
         gets is the noisy integers of programs, once for each price that is charged
Differs  without a ledger nothing is charged: only for a card that names none
Checked  tests/kernel/test_answering.py; tests/faults
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from lastbit.errors import EngineFailed, EntropyUnavailable, InvalidParameter, NotAllowed, WrongType
from lastbit.kernel.noise import Noisy, noisy_numbers
from lastbit.kernel.program import Program, scanned_marginals
from lastbit.kernel.question import question_of_program
from lastbit.kernel.sealed import sealed_integers
from lastbit.ledger import ChargingLedger, Entry, IsAnswer, neighbours_of
from lastbit.sampling import secure_bits
from lastbit.tables import DataCard, Session, sealed, session_for

Record: TypeAlias = Mapping[str, Any]
_UNREAD = "the source could not be read; check it"
_NOT_NOISED = "the noise could not be added; nothing was released"


def data_fingerprint(card: DataCard, books: ChargingLedger, session: Session) -> str:
    """Differs if the data do, and tells nothing else: keyed by the ledger's secret."""
    return sealed(lambda: books.keyed(session.fingerprint(card)), words=_UNREAD)


def reserve(
    program: Program,
    *,
    books: ChargingLedger,
    data: str,
    who: str | None,
    principal: str | None = None,
    sql: str | None = None,
    fresh: bool = False,
    is_answer: IsAnswer = bool,
) -> Entry:
    """The price of a program, committed; or an entry with the recorded answer, at no charge."""
    _check_kinds(program, books)
    card = program.card
    return books.reserve(
        card.account_name,
        program.cost,
        who=who,
        question=question_of_program(program, data),
        plan_digest=program.plan_digest,
        fingerprint=data,
        words=sql,
        query=program.query_digest,
        fresh=fresh,
        is_answer=is_answer,
        gaussian_noise=program.gaussian_noise,
        principal=principal,
        neighbours=neighbours_of(card),
    )


def answer(
    program: Program,
    entry: Entry,
    *,
    books: ChargingLedger,
    make_record: Callable[[Noisy], Record],
    who: str | None,
    session: Session | None = None,
    before_settling: Callable[[], None] = lambda: None,
) -> Entry:
    """The settled answer to a reservation; what fails stays charged."""
    _check_kinds(program, books)
    if type(entry) is not Entry:
        raise WrongType("entry", problem="is none", remedy="pass what reserve gave")
    # as the books have it, whatever was passed in
    paid = books.reservation(entry.hash, declared=program.card.budget)
    same = question_of_program(program, paid.fingerprint) == paid.question
    if not same or paid.cost != program.cost or paid.account != program.card.account_name:
        problem, remedy = "is for another question or card", "pass what reserve gave for it"
        raise InvalidParameter("entry", problem=problem, remedy=remedy)

    def draw() -> str:
        text = books.drawn(paid)
        if text is None:
            with session_for(program.card, session, units_beside=books.path) as engine:
                text = _text_of(_run(program, books, paid, engine))
            text = books.draw(paid, text, plan_digest=program.plan_digest, who=who)
        return text

    # sealed: until they are in the books, numbers must not leave in the frames of an error
    text = sealed(draw, words=_NOT_NOISED)
    record = make_record(Noisy.from_text(text))
    before_settling()
    return books.settle(paid, record, who=who, plan_digest=program.plan_digest)


def _text_of(noisy: Noisy) -> str:
    """The numbers, for the books; what cannot be written is a text that is none, and is kept.

    Whether it can depends on what was drawn: an error would free another draw, and tell of this.
    """
    try:
        return noisy.to_text()
    except Exception:
        return ""


def answer_unrecorded(program: Program, *, session: Session | None = None) -> Noisy:
    """Noisy integers that nobody counts: for a card that names no ledger."""
    if type(program) is not Program:
        raise WrongType("program", problem="is none", remedy="make one of a certificate")
    if program.card.ledger is not None:
        raise NotAllowed("the card names a ledger; ask through it")
    with session_for(program.card, session) as engine:
        return _noisy(program, engine)


def _check_kinds(program: Program, books: ChargingLedger) -> None:
    """That nothing else poses as what was checked, or as the books that the card names."""
    ours = ChargingLedger, getattr(sys.modules.get("lastbit.ledger.ledger"), "Ledger", None)
    if type(program) is not Program or type(books) not in ours:
        raise WrongType("program", problem="is none", remedy="pass a Program and a Ledger")
    if program.card.ledger is not None and not books.is_at(program.card.ledger):
        problem, remedy = "is not the one that the card names", "leave it out"
        raise InvalidParameter("ledger", problem=problem, remedy=remedy)


def _run(program: Program, books: ChargingLedger, entry: Entry, session: Session) -> Noisy:
    """The noisy integers of a reservation, if the data are its own while they are read."""
    card = program.card
    if card.accepted_data:
        accepted = books.accepted_data(card.account_name, card.name)
        if accepted != entry.fingerprint or accepted != data_fingerprint(card, books, session):
            raise NotAllowed(f"the data of {card.name} are not those that a steward has accepted")
    noisy = _noisy(program, session)
    if data_fingerprint(card, books, session) != entry.fingerprint:  # else it names other data
        raise EngineFailed("the data changed while they were read; ask when nobody writes")
    return noisy


def _noisy(program: Program, session: Session) -> Noisy:
    """Run the statement and add the noise; raw numbers live in here and nowhere else.

    Sealed as a whole too: a frame that an error passes would hold the rows.
    """

    def run() -> Noisy:
        card, secret = program.card, secure_bits().fill(32).tobytes().hex()

        def read() -> Any:
            if program.marginals is None:
                return session.aggregates(program.scan, card, program.measures, secret=secret)
            return session.marginal_counts(program.scan, card, scanned_marginals(program))

        raw = sealed(read, words=_UNREAD)

        def add() -> Noisy:
            return noisy_numbers(program, sealed_integers(program, raw))

        return sealed(add, words=_NOT_NOISED, known=(EntropyUnavailable,))

    return sealed(run, words=_NOT_NOISED)
