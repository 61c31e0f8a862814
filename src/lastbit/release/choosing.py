"""Questions whose limits are left out, from the price to the plan; the profile is bought once.

Law      let a question be asked at a price p, and let limits of it be left out. If the ledger has
         the histograms that it needs, of these data, limits are chosen by them (`limits.py`), and
         all of p buys the answer. Else about p/10 buys each histogram, p/5 all of them at most,
         and the rest of p the answer; delta is the answer's. What was bought so is given again
Theorem  the charges of one call add up to p at most, exactly; of a profile nothing is paid twice
Proof    the parts of the price are computed exactly, on the grid of prices, and each is charged as
         any answer is (`paying.py`). A histogram on record is not bought again; two who buy the
         same one at the same price at once ask one question, and the ledger charges one  []
Theorem  what is refused is refused before the first charge, as far as it can be known: the question
         with guessed limits is planned, checked without a row, and its price held against budget
         and allowance together with that of the profile. A process that is killed between the
         charges has paid for the profile, which the next question finds
Differs  without a ledger nothing is remembered: each release pays, unless it is handed a profile
Checked  tests/release/test_limits.py
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor
from typing import Any, TypeAlias

from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact import Number
from lastbit.ledger import Ledger
from lastbit.release.limits import open_questions, with_guess, with_limits
from lastbit.release.paying import check_payable, checked, current_data, is_missing, opened_ledger
from lastbit.release.profile import Profile, ProfileQuestion, recorded_profiles
from lastbit.release.question import Question
from lastbit.release.recorded import question_of_plan
from lastbit.release.release import released
from lastbit.release.whole import rows_in_play, with_ends
from lastbit.release.within import Within, planned_within
from lastbit.report import price as price_words
from lastbit.tables import Cost, DataCard, Plan, admitted, asked_price, planned

Place: TypeAlias = str | os.PathLike[str] | Ledger | None
Buys: TypeAlias = Sequence[tuple[ProfileQuestion, Plan]]
_EACH, _MOST_SHARE = 10, Fraction(1, 5)
"""Each histogram costs a tenth of the price of the first question, all of them a fifth at most.

Tried on six real tables and eight made-up ones, a twentieth makes whole intervals of single
histograms 1.5 times as wide, three twentieths no narrower by much.
"""
_HANDED = (
    "Limits and whole intervals rest on the profile that you passed. Nobody checks that it is of "
    "these data."
)
_DIGITS, _SHORT = 9, 4
_MOST_PROFILES = 8
"""How many recorded profiles are tried, the best first, to find what was asked before."""


def price_in_shares(amount: Fraction, weights: Sequence[Fraction]) -> list[Fraction]:
    """Short decimals in these proportions; they add up to the amount, to nine digits of it."""
    unit = Fraction(1, 10**40)
    while amount / unit >= 10**_DIGITS:
        unit *= 10
    total, coarse = amount // unit, 10 ** (_DIGITS - _SHORT)
    each = total / coarse / sum(weights, Fraction(0))
    parts = [max(floor(each * weight), 1) * coarse for weight in weights]
    largest = max(range(len(parts)), key=lambda i: (weights[i], i))
    parts[largest] += total - sum(parts)  # which is negative where small ones were raised
    return [part * unit for part in parts]


def split_price(price: Fraction, number: int = 1, least: int | None = None) -> list[Fraction]:
    """So many equal prices, each about 1/least of a price, and the rest of it: all on the grid.

    `least` is 10, or as many as make a fifth of the price together.

    >>> [str(part) for part in split_price(Fraction(1, 3), 2)]
    ['1/30', '1/30', '4/15']
    """
    least = max(_EACH, ceil(number / _MOST_SHARE)) if least is None else least
    parts = [price / least, Fraction(price.numerator // least, price.denominator)]
    for each in (*parts, *(price / part for part in range(least - 1, number, -1))):
        if each > 0 and admitted(each) and admitted(price - number * each):
            return [*[each] * number, price - number * each]
    problem = "cannot be shared exactly with the histograms of a profile"
    remedy = "pass fewer digits, or buy the profile first: table.profile(epsilon=...)"
    raise InvalidParameter("price", problem=problem, remedy=remedy)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A question with all its limits, its plan, what to say of both; and what is bought before."""

    question: Question
    plan: Plan
    notes: tuple[str, ...] = ()
    buys: Buys = ()
    profile: Profile = Profile()  # noqa: RUF009  a frozen value
    """By which limits are chosen and judged; what is known already, where more is to be bought."""


def prepare_plan(
    question: Question,
    price: Mapping[str, Any],
    within: Within | None = None,
    *,
    ledger: Place = None,
    profile: Profile | None = None,
    fresh: bool = False,
) -> Prepared:
    """The plan of a release, with limits by guess where a profile is to be bought; none is yet."""
    card, wanted = question.card, open_questions(question)
    if profile is not None:
        _check_handed(profile, card)
    known = Profile() if profile is None else profile
    if not _has_all(known, wanted) and not is_missing(ledger, card):
        books = opened_ledger(ledger, card)
        data = None if books is None else current_data(card, books)
        if books is not None and data is not None:
            recorded = recorded_profiles(wanted, card, books=books, data=data)
            known = known.with_more(recorded[0]) if recorded else known
            if profile is None and not fresh:
                asked = {entry.question for entry in books.entries(card.account_name)}
                ready = plan_on_record(question, price, within, books, data, paid=asked)
                if ready is not None:
                    return ready
    if _has_all(known, wanted):
        return _by_profile(question, known, price, within)
    if within is not None:
        problem = "finds a price, and limits that are left out are chosen for one"
        remedy = "buy the profile first: lastbit card profile, or table.profile(epsilon=...)"
        raise InvalidParameter("within", problem=problem, remedy=remedy)
    missing = [one for one in wanted if not one.is_in(known)]
    currency, parts = _parts_of(price, card, len(missing))
    buys = _plans(missing, currency, parts[:-1])
    guess, words = with_guess(question)
    plan = planned(guess.query, guess.card, **{**price, currency: parts[-1]})
    before = sum((one.cost for _, one in buys), start=Cost())
    charges = "" if len(buys) == 1 else f" in {len(buys)} charges"
    first = (
        f"lastbit first buys a profile of the table for {price_words(before.to_json())}{charges}"
    )
    chosen = (f"{first}, and chooses limits from it.", *words)
    plan = replace(plan, chosen=chosen, before=before)
    return Prepared(question=guess, plan=plan, buys=buys, profile=known)


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
    ready = prepare_plan(question, price, within, ledger=ledger, profile=profile, fresh=fresh)
    if profile is not None and question.card.ledger is None and ledger is None:
        ready = replace(ready, notes=(*ready.notes, _HANDED))
    if not ready.buys:
        return ready
    bought = _buy(ready.buys, question.card, ready.plan, ledger=ledger, who=who)
    asked = ready.plan.asked
    rest = {**price, "epsilon": asked.epsilon, "rho": asked.rho}
    chosen = _by_profile(question, ready.profile.with_more(bought), rest, None)
    paid = price_words(ready.plan.before.to_json())
    handed = ready.notes if _HANDED in ready.notes else ()
    notes = (*chosen.notes, *handed, f"Of the price, {paid} bought a profile of the table.")
    if question.card.ledger is None and ledger is None:
        notes += (
            "Without a ledger, the next question buys a profile again: pass profile= to reuse it.",
        )
    return replace(chosen, notes=notes)


def plan_on_record(
    question: Question,
    price: Mapping[str, Any],
    within: Within | None,
    books: Ledger,
    data: str,
    *,
    paid: Collection[str | None],
) -> Prepared | None:
    """The plan by recorded profiles: one that is paid for already, or else the first.

    The price is the whole one, or what a profile that was bought inside it has left. None where the
    ledger lacks a histogram of these data that the question needs.
    """
    card, wanted, first = question.card, open_questions(question), None
    profiles = recorded_profiles(wanted, card, books=books, data=data) if wanted else [Profile()]
    prices = [price]
    for number in range(1, len(wanted) + 1 if within is None else 0):
        with suppress(InvalidParameter):  # a price that could not have been shared
            currency, parts = _parts_of(price, card, number)
            prices += [rest] if (rest := {**price, currency: parts[-1]}) not in prices else []
    for profile in profiles[:_MOST_PROFILES]:
        for one in prices if _has_all(profile, wanted) else ():
            ready = _by_profile(question, profile, one, within)
            if question_of_plan(ready.plan, data) in paid:
                return ready
            first = ready if first is None else first
    return first


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
    currency, (whole,) = _parts_of({**price, "delta": None, "weights": None}, card, 0)
    known = Profile()
    books = None if fresh or is_missing(ledger, card) else opened_ledger(ledger, card)
    if books is not None:
        data = current_data(card, books)
        known = next(iter(recorded_profiles(questions, card, books=books, data=data)), known)
    missing = [one for one in questions if not one.is_in(known)]
    number = len(missing)
    parts = split_price(whole, number - 1, number) if number > 1 else [whole] * number
    buys = _plans(missing, currency, parts)
    return known.with_more(_buy(buys, card, ledger=ledger, who=who, fresh=fresh))


def _check_handed(profile: Any, card: DataCard) -> None:
    """Refuse the profile of another table, by what its answers say they are about."""
    remedy = "pass what table.profile(...) gave"
    if not isinstance(profile, Profile):
        raise WrongType("profile", problem="is not a Profile", remedy=remedy)
    ours = {"table": card.name, "unit": card.unit}
    claims = [answer.record["certificate"]["claim"] for answer in profile.answers]
    if any(claim[part] != value for claim in claims for part, value in ours.items()):
        problem = "is of a table with another name or unit"
        raise InvalidParameter("profile", problem=problem, remedy=remedy)


def _has_all(profile: Profile, wanted: Sequence[ProfileQuestion]) -> bool:
    return all(one.is_in(profile) for one in wanted)


def _parts_of(price: Mapping[str, Any], card: DataCard, number: int) -> tuple[str, list[Fraction]]:
    """The currency of a price; what of it each of so many histograms costs, and the answer."""
    request = asked_price(card, **price)
    currency = "rho" if request.epsilon is None else "epsilon"
    whole = getattr(request, currency)
    return currency, split_price(whole, number) if number else [whole]


def _plans(questions: Sequence[ProfileQuestion], currency: str, parts: Sequence[Fraction]) -> Buys:
    prices: list[dict[str, Any]] = [{currency: part} for part in parts]
    pairs = zip(questions, prices, strict=True)
    return [(one, planned(one.query, one.card, **paid)) for one, paid in pairs]


def _buy(
    buys: Buys,
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


def _by_profile(
    question: Question, profile: Profile, price: Mapping[str, Any], within: Within | None
) -> Prepared:
    """The plan with limits chosen by a profile; with `within`, as for a price of 1."""
    at = price
    if within is not None:
        budget = question.card.budget
        currency = "rho" if budget is not None and budget.kind == "zcdp" else "epsilon"
        at = {**price, currency: 1}
    chosen, words = with_limits(question, profile, at)
    query = chosen.query
    if profile.rows is not None and rows_in_play(query, chosen.card):
        numbers = profile.rows if query.joins else profile.rows.capped(chosen.card.at_most)
        query = with_ends(query, numbers.loss(chosen.card.max_rows).share.low)
    plan = planned_within(query, chosen.card, within, **price)
    return Prepared(question=chosen, plan=replace(plan, chosen=words), notes=words, profile=profile)
