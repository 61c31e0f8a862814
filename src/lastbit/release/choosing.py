"""Questions whose limits are left out, from the price to the plan; the profile is bought once.

Law      let a question be asked at a price p, and let limits of it be left out.
         - If the ledger has the histograms that it needs, of these data, limits are chosen by them
           (`limits.py`) and all of p buys the answer: one charge.
         - Else about p/20 buys the histograms and the rest of p the answer, limits being chosen in
           between: two or more charges, whose prices add up to p exactly. Delta is the answer's
         - If an answer that was bought in this way before is on record, it is given at no charge
Theorem  the charges of one call cost at most p together; of the profile nothing is paid twice
Proof    the parts of the price are computed exactly, and are on the grid of prices. Each is charged
         as any answer is (`paying.py`). A histogram on record is not bought again; two who buy the
         same one at the same price at once ask one question, and the ledger charges one  []
Theorem  what is refused is refused before the first charge, as far as it can be known: the question
         with guessed limits is planned, checked without a row and its price held against the budget
         and the allowance together with that of the profile. A process that is killed between the
         charges has paid for the profile, which the next question finds
Differs  without a ledger nothing is remembered: each release pays for the profile, unless it is
         handed one that was bought before
Checked  tests/release/test_limits.py
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact import Number
from lastbit.ledger import Ledger
from lastbit.release.limits import open_questions, with_guess, with_limits
from lastbit.release.paying import check_payable, checked, current_data, is_missing, opened_ledger
from lastbit.release.profile import Profile, ProfileQuestion, recorded_profiles
from lastbit.release.question import Question
from lastbit.release.recorded import question_of_plan
from lastbit.release.release import released
from lastbit.release.within import Within, planned_within
from lastbit.report import price as price_words
from lastbit.tables import Cost, DataCard, Plan, admitted, asked_price, planned

_PARTS = 20
"""The profile costs one part of this many of the price of the first question."""
_MOST_PROFILES = 4
"""How many recorded profiles are tried, the best first, to find what was asked before."""
_NO_LEDGER = "No ledger was given, so the next question pays for the profile again; pass profile=."

Place = str | os.PathLike[str] | Ledger | None


def split_price(price: Fraction, number: int = 1) -> tuple[Fraction, Fraction]:
    """What each of so many histograms costs, about a twentieth in all, and the rest of the price.

    All of them are on the grid of prices, and add up to the price exactly.

    >>> [str(part) for part in split_price(Fraction(1))]
    ['1/20', '19/20']
    >>> [str(part) for part in split_price(Fraction(1, 3), 2)]
    ['1/99', '31/99']
    """
    least = _PARTS * number
    parts = [price / least, Fraction(price.numerator // least, price.denominator)]
    for each in (*parts, *(price / part for part in range(least - 1, number, -1))):
        if each > 0 and admitted(each) and admitted(price - number * each):
            return each, price - number * each
    problem = "cannot be shared exactly between a profile and the answer"
    remedy = "pass fewer digits, or buy the profile first: table.profile(epsilon=...)"
    raise InvalidParameter("price", problem=problem, remedy=remedy)


def share_out(price: Fraction, number: int) -> list[Fraction]:
    """A price in so many parts, about equal, that add up to it and are on the grid.

    >>> [str(part) for part in share_out(Fraction(1, 20), 3)]
    ['1/60', '1/60', '1/60']
    """
    if not number:
        return []
    if admitted(price / number):
        return [price / number] * number
    on_its_own_grid = Fraction(price.numerator // number, price.denominator)
    each = on_its_own_grid or split_price(price, number - 1)[0]
    return [*[each] * (number - 1), price - (number - 1) * each]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A question with all its limits, its plan, and what to say of both."""

    question: Question
    plan: Plan
    notes: tuple[str, ...] = ()


def prepare_plan(
    question: Question,
    price: Mapping[str, Any],
    within: Within | None = None,
    *,
    ledger: Place = None,
    profile: Profile | None = None,
) -> Prepared:
    """The plan that a release would have now; by guessed limits where a profile is to be bought.

    Nothing is bought.
    """
    known = _Known.of(question, ledger=ledger, profile=profile)
    ready = known.plan(price, within)
    if ready is not None:
        return ready
    buys, rest = known.purchase(price, within)
    guess, words = with_guess(question)
    plan = planned(guess.query, guess.card, **rest)
    before = _cost(buys)
    charges = "" if len(buys) == 1 else f" in {len(buys)} charges"
    first = (
        f"A profile of the table is bought first, for {price_words(before.to_json())}{charges}; "
        "limits are chosen by it. Until then:"
    )
    return Prepared(question=guess, plan=replace(plan, chosen=(first, *words), before=before))


def prepare_release(
    question: Question,
    price: Mapping[str, Any],
    within: Within | None = None,
    *,
    ledger: Place = None,
    who: str | None = None,
    fresh: bool = False,
    profile: Profile | None = None,
) -> Prepared:
    """The plan to release by; where a profile is needed and on no record, it is bought."""
    known = _Known.of(question, ledger=ledger, profile=profile)
    ready = known.plan(price, within, fresh=fresh)
    if ready is not None:
        return ready
    buys, rest = known.purchase(price, within)
    guess, _ = with_guess(question)
    guessed = planned(guess.query, guess.card, **rest)
    bought = known.profile.with_more(_buy(buys, question.card, guessed, ledger=ledger, who=who))
    chosen, words = with_limits(question, bought, rest)
    plan = planned(chosen.query, chosen.card, **rest)
    paid = price_words(_cost(buys).to_json())
    first = f"The profile of the table was bought first, inside the price: {paid}."
    unkept = [_NO_LEDGER] if question.card.ledger is None and ledger is None else []
    notes = (*words, first, *unkept)
    return Prepared(question=chosen, plan=replace(plan, chosen=words), notes=notes)


def _cost(buys: Sequence[tuple[ProfileQuestion, Plan]]) -> Cost:
    return sum((plan.cost for _, plan in buys), start=Cost())


def _buy(
    buys: Sequence[tuple[ProfileQuestion, Plan]],
    card: DataCard,
    *others: Plan,
    ledger: Place,
    who: str | None,
    fresh: bool = False,
) -> Profile:
    """These histograms, bought one by one; refused before the first, also for what comes after."""
    check_payable([*(plan for _, plan in buys), *others], card, ledger)
    for plan in others:
        checked(plan)
    bought = Profile()
    for one, plan in buys:
        answer = released(one.query, one.card, plan, ledger=ledger, who=who, fresh=fresh)
        bought = bought.with_more(one.profile(answer))
    return bought


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """What is known of the limits that a question leaves out."""

    question: Question
    wanted: tuple[ProfileQuestion, ...]
    profile: Profile
    """What was handed over, and the best that the ledger has besides."""
    handed: Profile | None
    books: Ledger | None
    data: str | None

    @classmethod
    def of(cls, question: Question, *, ledger: Place, profile: Profile | None) -> _Known:
        if profile is not None and not isinstance(profile, Profile):
            remedy = "pass what table.profile(...) gave"
            raise WrongType("profile", problem="is not a Profile", remedy=remedy)
        card, wanted = question.card, open_questions(question)
        there, books, data = Profile() if profile is None else profile, None, None
        if not all(one.is_in(there) for one in wanted) and not is_missing(ledger, card):
            books = opened_ledger(ledger, card)
        if books is not None:
            data = current_data(card, books)
            recorded = recorded_profiles(wanted, card, books=books, data=data)
            there = there.with_more(recorded[0]) if recorded else there
        return cls(
            question=question,
            wanted=wanted,
            profile=there,
            handed=profile,
            books=books,
            data=data,
        )

    def plan(
        self, price: Mapping[str, Any], within: Within | None, *, fresh: bool = False
    ) -> Prepared | None:
        """The plan, where nothing is to be bought: the one that was asked before, if one was."""
        if not all(one.is_in(self.profile) for one in self.wanted):
            return None
        first = _by_profile(self.question, self.wanted, self.profile, price, within)
        if fresh or self.books is None or self.data is None:
            return first
        asked = {entry.question for entry in self.books.entries(self.question.card.account_name)}
        if self.handed is not None or question_of_plan(first.plan, self.data) in asked:
            return first
        others = plans_on_record(self.question, price, within, books=self.books, data=self.data)
        for plan in others:
            if question_of_plan(plan.plan, self.data) in asked:
                return plan
        return first

    def purchase(
        self, price: Mapping[str, Any], within: Within | None
    ) -> tuple[list[tuple[ProfileQuestion, Plan]], dict[str, Any]]:
        """The histograms to buy with their plans, and the price that is left for the answer."""
        if within is not None:
            problem = "finds a price, and limits that are left out are chosen for one"
            remedy = "buy the profile first: lastbit card profile, or table.profile(epsilon=...)"
            raise InvalidParameter("within", problem=problem, remedy=remedy)
        missing = [one for one in self.wanted if not one.is_in(self.profile)]
        currency, each, rest = _parts_of(price, self.question.card, len(missing))
        return profile_plans(missing, currency, [each] * len(missing)), rest


def plans_on_record(
    question: Question,
    price: Mapping[str, Any],
    within: Within | None,
    *,
    books: Ledger,
    data: str,
) -> Iterator[Prepared]:
    """The plans that recorded profiles give, at the whole price and at what a profile left of it.

    None where the ledger lacks a histogram of these data that the question needs.
    """
    wanted = open_questions(question)
    if not wanted:
        yield _by_profile(question, wanted, Profile(), price, within)
        return
    profiles = recorded_profiles(wanted, question.card, books=books, data=data)
    for profile in profiles[:_MOST_PROFILES]:
        if not all(one.is_in(profile) for one in wanted):
            return
        yield _by_profile(question, wanted, profile, price, within)
        for rest in [] if within is not None else _rests(price, question.card, len(wanted)):
            yield _by_profile(question, wanted, profile, rest, None)


def _by_profile(
    question: Question,
    wanted: Sequence[ProfileQuestion],
    profile: Profile,
    price: Mapping[str, Any],
    within: Within | None,
) -> Prepared:
    """The plan with limits chosen by a profile; with `within`, as for a price of 1."""
    if not wanted:
        plan = planned_within(question.query, question.card, within, **price)
        return Prepared(question=question, plan=plan)
    at = price
    if within is not None:
        budget = question.card.budget
        currency = "rho" if budget is not None and budget.kind == "zcdp" else "epsilon"
        at = {**price, currency: 1}
    chosen, words = with_limits(question, profile, at)
    plan = planned_within(chosen.query, chosen.card, within, **price)
    return Prepared(question=chosen, plan=replace(plan, chosen=words), notes=words)


def _parts_of(
    price: Mapping[str, Any], card: DataCard, number: int
) -> tuple[str, Fraction, dict[str, Any]]:
    """The currency of a price, what of it each histogram costs, and the price of the answer."""
    request = asked_price(card, **price)
    currency = "rho" if request.epsilon is None else "epsilon"
    each, rest = split_price(getattr(request, currency), number)
    return currency, each, {**price, currency: rest}


def _rests(price: Mapping[str, Any], card: DataCard, most: int) -> list[dict[str, Any]]:
    """What is left of a price for the answer when 1, 2 ... histograms were bought inside it."""
    rests: list[dict[str, Any]] = []
    for number in range(1, most + 1):
        with suppress(InvalidParameter):  # one that could not have been shared
            rest = _parts_of(price, card, number)[2]
            rests += [rest] if rest not in rests else []
    return rests


def profile_plans(
    questions: Sequence[ProfileQuestion], currency: str, parts: Sequence[Fraction]
) -> list[tuple[ProfileQuestion, Plan]]:
    """A plan for each histogram, at its part of the price."""
    prices: list[dict[str, Any]] = [{currency: part} for part in parts]
    pairs = zip(questions, prices, strict=True)
    return [(one, planned(one.query, one.card, **paid)) for one, paid in pairs]


def buy_profile(
    questions: Sequence[ProfileQuestion],
    card: DataCard,
    price: Mapping[str, Number | None],
    *,
    ledger: Place = None,
    who: str | None = None,
    fresh: bool = False,
) -> Profile:
    """A profile of these histograms: those on record as they are, the others at this price."""
    request = asked_price(card, **price, delta=None, weights=None)
    currency = "rho" if request.epsilon is None else "epsilon"
    known = Profile()
    books = None if fresh or is_missing(ledger, card) else opened_ledger(ledger, card)
    if books is not None:
        data = current_data(card, books)
        recorded = recorded_profiles(questions, card, books=books, data=data)
        known = recorded[0] if recorded else known
    missing = [one for one in questions if not one.is_in(known)]
    parts = share_out(getattr(request, currency), len(missing))
    buys = profile_plans(missing, currency, parts)
    return known.with_more(_buy(buys, card, ledger=ledger, who=who, fresh=fresh))
