"""Several questions about one table at one price: what they share is bought once.

Law      questions about the same rows by the same keys are one question, of all their aggregates;
         each is shown its own columns of the answer. A question with formulas stands alone. The
         price is shared out so that the largest relative error is least: of a question's worst
         number, in a group of `rows` of the card over the number of groups (ten if unknown), or of
         the size that `sizes` says
Theorem  (price) each answer is charged by itself, and prices add up to at most that asked
Theorem  (shares) errors fall like 1/epsilon, and like 1/sqrt(rho): the largest is least where all
         are equal, at shares in proportion to the errors at one price, or to their squares
Theorem  (totals) let t be a count, of variance v, and s the sum of k counts, of variance w each,
         that are its parts. The best linear unbiased estimates that agree are t + (s - t) a and,
         for each part, itself + (t - s)(1 - a)/k, a = v/(v + k w)
Proof    least squares with that condition moves t by v l and each part by -w l, for one l
Law      limits that are left out are chosen by a profile on record, for an equal part of the price;
         none is bought: without one the questions are refused, before anything is charged
Law      all prices are committed before a row is read for an answer; a budget or allowance that
         covers only some of them refuses before the first is charged
Differs  each answer has a charge, a record and a certificate of its own. If somebody else spends
         the rest before the last charge, what was charged stays reserved: asking again resumes it
Checked  tests/release/test_workload.py
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import count
from math import floor
from typing import Any, cast

from lastbit.arguments import check_flags
from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact import Number, positive
from lastbit.ledger import Connections, Ledger
from lastbit.release.answer import Answer
from lastbit.release.choosing import Place, prepare_plan, price_in_shares
from lastbit.release.kept import with_notes
from lastbit.release.limits import open_questions
from lastbit.release.paying import paid_for_all
from lastbit.release.private_table import Table
from lastbit.release.recorded import view_of
from lastbit.tables import Cost, DataCard, Plan, Query, planned

TOGETHER = "Answered together with others: saved, it is their whole answer with its certificate."
AGREEING = "Totals and their parts were made to agree after the noise, each by how exact it is."
_GROUPS = 10
_WIDER = (("low", min), ("high", max), ("whole_low", min), ("whole_high", max))


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadPlan:
    """What is bought for several questions; nothing was read or charged."""

    plans: tuple[Plan, ...]
    serves: tuple[tuple[int, ...], ...]
    """For each plan the places of the questions that it answers."""

    @property
    def cost(self) -> Cost:
        """What all of them cost together."""
        return sum((plan.cost for plan in self.plans), Cost())

    def explain(self) -> str:
        """What will be done, at which price and with which error."""
        parts = [
            f"{', '.join(str(place + 1) for place in places)}. {plan.explain()}"
            for plan, places in zip(self.plans, self.serves, strict=True)
        ]
        return "\n\n".join([*parts, f"In all: {self.cost}"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Questions about one table, to be paid for together."""

    questions: tuple[Table, ...]

    notes: tuple[tuple[str, ...], ...] = ()
    """For each question which limits a profile chose; none where all are declared."""

    def with_limits(self, price: Mapping[str, Any], ledger: Place = None) -> Workload:
        """The questions with the limits that a profile on record chooses where they are left out.

        Each is chosen for an equal part of the price.
        """
        if not any(map(open_questions, self.questions)):
            return self
        number = len(self.questions)
        ready = []
        for place, one in enumerate(self.questions):
            part: dict[str, Any] = dict.fromkeys(("epsilon", "delta", "rho", "weights"))
            for name, whole in price.items():
                if whole is not None and name in part:
                    part[name] = price_in_shares(positive(whole, name), [Fraction(1)] * number)[
                        place
                    ]
            ready.append(prepare_plan(one, part, ledger=ledger))
        if any(one.buys for one in ready):
            problem = "are left out, and no profile of the table is on record"
            remedy = "buy one first (lastbit card profile, or table.profile), or declare the limits"
            raise InvalidParameter("limits", problem=problem, remedy=remedy)
        asked = tuple(cast("Table", one.question) for one in ready)
        return Workload(questions=asked, notes=tuple(one.notes for one in ready))

    def plan(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        sizes: Sequence[Number] | None = None,
        ledger: Place = None,
    ) -> WorkloadPlan:
        """The plans and prices; `sizes`: public rows of a typical group of each question.

        Limits that are left out are chosen by the profile that the ledger has, or the card's one.
        """
        if isinstance(sizes, str) or not isinstance(sizes, Sequence | None):
            raise WrongType("sizes", problem="are no list", remedy="pass one for each question")
        if sizes is not None and len(sizes) != len(self.questions):
            remedy = "pass one for each question"
            raise InvalidParameter("sizes", problem="are too many or too few", remedy=remedy)
        whole: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "rho": rho}
        if (chosen := self.with_limits(whole, ledger)) is not self:
            return chosen.plan(**whole, sizes=sizes)
        groups = list(_merged(self.questions))
        # beside rho, a delta finds keys and has no other meaning: questions without any pay none
        found = [rho is None or query.groups is None for query, _, _ in groups]
        with_delta = found if any(found) else [True] * len(found)
        errors, asked = [], dict[str, Fraction]()
        for (query, card, places), own in zip(groups, with_delta, strict=True):
            plan = planned(query, card, **(whole if own else {**whole, "delta": None}))
            rows = Fraction(plan.card.rows or 1, plan.groups or _GROUPS)
            if sizes is not None:
                rows = min(positive(sizes[place], "sizes") for place in places)
            errors.append((plan.worst_error / rows) ** (1 if rho is None else 2))
            asked |= {name: price for name in whole if (price := getattr(plan.asked, name))}
        prices: Any = [{} for _ in groups]
        for name, price in asked.items():
            paying = [i for i, own in enumerate(with_delta) if own or name != "delta"]
            weights = [Fraction(1) if name == "delta" else errors[i] for i in paying]
            for i, share in zip(paying, price_in_shares(price, weights), strict=True):
                prices[i][name] = share
        every = zip(groups, prices, strict=True)
        plans = tuple(planned(query, card, **price) for (query, card, _), price in every)
        return WorkloadPlan(plans=plans, serves=tuple(places for _, _, places in groups))

    def explain(self, **price: Any) -> str:
        """What the answers would cost and how far off they would be; nothing is read."""
        return self.plan(**price).explain()

    def release(
        self,
        *,
        ledger: str | os.PathLike[str] | Ledger | None = None,
        who: str | None = None,
        consistent: bool = False,
        **price: Any,
    ) -> tuple[Answer, ...]:
        """The answers, in the order of the questions; all prices are committed first, or none.

        The same workload at the same price to the same data is answered from the record. With
        `consistent` a count without keys and the counts by keys of the same rows are made to agree:
        say it where every row has one of these keys.
        """
        check_flags(consistent=consistent)
        if (chosen := self.with_limits(price, ledger)) is not self:
            return chosen.release(ledger=ledger, who=who, consistent=consistent, **price)
        plan, views = self.plan(**price), [one.view for one in self.questions]
        alone = [places[0] if len(places) == 1 else None for places in plan.serves]
        texts = [None if one is None else self.questions[one].sql_text for one in alone]
        paid = paid_for_all(plan.plans, Connections(), ledger=ledger, who=who, sqls=texts)
        answers: dict[int, Answer] = {}
        for answer, places, made in zip(paid, plan.serves, plan.plans, strict=True):
            for place in places:
                query, sql = self.questions[place].query, self.questions[place].sql_text
                answers[place] = answer
                if query != made.query:  # formulas too: of several questions that are one
                    view = view_of(answer.record, query, sql=sql, note=TOGETHER)
                    answers[place] = replace(answer, shown=view)
                answers[place] = with_notes(answers[place], self.notes[place] if self.notes else ())
        found = [answers[place] for place in sorted(answers)]
        found = _agreeing(self.questions, found) if consistent else found
        return tuple(replace(answer, view=view) for answer, view in zip(found, views, strict=True))


def workload(questions: Iterable[Table]) -> Workload:
    """Questions about one table, at one price: `.plan`, `.explain` and `.release(epsilon=3)`.

    >>> import duckdb
    >>> import lastbit as lb
    >>> rows = duckdb.sql("SELECT range // 5 AS patient, range % 2 = 0 AS old FROM range(5_000)")
    >>> visits = lb.table(rows, unit="patient", max_rows=5, name="visits")
    >>> every, few = visits.agg(n=lb.count()), visits.where("old").agg(n=lb.count())
    >>> [answer.value > 0 for answer in workload([every, few]).release(epsilon=2)]
    [True, True]
    """
    listed = tuple(questions) if isinstance(questions, Iterable) else ()
    if not listed or not all(isinstance(one, Table) for one in listed):
        remedy = "pass questions of lb.table(...) that are asked here"
        raise WrongType("questions", problem="are none, or no questions", remedy=remedy)
    first = listed[0].card
    for card in (one.card for one in listed):
        same = _table(card) == _table(first)
        if not same or card.budget != first.budget or card.unit != first.unit:
            problem, remedy = "are about several tables", "make one workload for each"
            raise InvalidParameter("questions", problem=problem, remedy=remedy)
    return Workload(questions=listed)


def _table(card: DataCard) -> tuple[object, ...]:
    """What makes the rows of two cards those of one table, and of the same people."""
    return (card.name, card.ledger, card.source, card.through)


def statements_in(text: str) -> list[str]:
    """The statements, without comments; semicolons end them, if not in quotes or comments.

    >>> statements_in("SELECT ';' AS x; SELECT 2 /* no; */ ; -- the end")
    ["SELECT ';' AS x", 'SELECT 2']
    """
    words = r"""'[^']*'|"[^"]*"|--[^\n]*|/\*.*?\*/|;|[^;'"/-]+|."""
    found = [""]
    for word in re.findall(words, text, re.DOTALL):
        found += [""] if word == ";" else []
        found[-1] += " " if word == ";" or word.startswith(("--", "/*")) else word
    return [one.strip() for one in found if one.strip()]


def _merged(questions: Sequence[Table]) -> Iterator[tuple[Query, Any, tuple[int, ...]]]:
    """The queries that are asked, each with its card and the places of the questions it answers."""
    left = list(range(len(questions)))
    while left:
        first = questions[left[0]]
        same = [i for i in left if questions[i].card == first.card]
        same = [i for i in same if _same_rows(questions[i].query, first.query)]
        yield _joined([questions[i].query for i in same]), first.card, tuple(same)
        left = [i for i in left if i not in same]


def _rows(query: Query) -> list[Any]:
    """Which rows a question is about, as JSON, which tells 1 from true."""
    written = query.to_json()
    return [written[name] for name in ("table", "where", "joins")] + [written.get("per_unit")]


def _same_rows(one: Query, other: Query) -> bool:
    """Whether they are about the same rows by the same keys, and made of no formulas."""
    if any(query.shown is not None or query.derived for query in (one, other)):
        return one == other
    return [*_rows(one), one.to_json()["keys"]] == [*_rows(other), other.to_json()["keys"]]


def _joined(queries: Sequence[Query]) -> Query:
    """One question of all their aggregates, each once; of a single question that itself."""
    if all(query == queries[0] for query in queries):
        return queries[0]
    every = {replace(part, name="x"): part for query in queries for part in query.aggregates}
    named, taken = [], {key.name.lower() for key in queries[0].keys}
    for part in every.values():
        name = next(n for n in (part.name + "_" * i for i in count()) if n.lower() not in taken)
        taken.add(name.lower())
        named.append(replace(part, name=name))
    return replace(queries[0], aggregates=tuple(named), having=None, order=(), limit=None)


# ---------------------------------------------------------------- totals and their parts


def agreeing_counts(
    total: tuple[Fraction, Fraction], parts: Sequence[Fraction], variance: Fraction
) -> tuple[int, list[int]]:
    """A count, with its variance, and its parts, of one variance each: whole, and adding up.

    >>> agreeing_counts((Fraction(12), Fraction(1)), [Fraction(4), Fraction(4)], Fraction(1))
    (11, [6, 5])
    """
    (known, own), number = total, len(parts)
    off, a = known - sum(parts, Fraction(0)), own / (own + number * variance)
    whole, exact = round(known - off * a), [part + off * (1 - a) / number for part in parts]
    rounded = [floor(part) for part in exact]
    order = sorted(range(number), key=lambda i: rounded[i] - exact[i])
    for step in range(whole - sum(rounded)):
        rounded[order[step % number]] += 1
    return whole, rounded


def _count_place(query: Query) -> int | None:
    """Where a question has the number of all its rows; None if it shows only some groups."""
    if query.derived or query.having is not None or query.limit or query.groups is None:
        return None
    parts = [(part.function, part.expression) for part in query.aggregates]
    return parts.index(("count", None)) if ("count", None) in parts else None


def _agreeing(questions: Sequence[Table], answers: Sequence[Answer]) -> list[Answer]:
    """The answers, each count without keys made to agree with the first counts by keys."""
    found, used = list(answers), set[int]()
    for i, one in enumerate(questions):
        for j, other in enumerate(questions):
            places = _count_place(one.query), _count_place(other.query)
            pair = not one.query.keys and bool(other.query.keys) and None not in places
            if pair and not used & {i, j} and _rows(one.query) == _rows(other.query):
                used |= {i, j}
                found[i], found[j] = _pair((found[i], found[j]), places)
    return found


def _pair(pair: tuple[Answer, Answer], places: tuple[Any, Any]) -> Iterator[Answer]:
    """A total and its parts with counts that agree; an interval is widened to hold its number."""
    views = [answer.shown or answer.record for answer in pair]
    cells = [[row["cells"][n] for row in v["rows"]] for v, n in zip(views, places, strict=True)]
    counts = [[Fraction(cell["value"]) for cell in some] for some in cells]
    own, each = (Fraction(some[0]["standard_error"]) ** 2 for some in cells)
    whole, parts = agreeing_counts((counts[0][0], own), counts[1], each)
    for answer, view, place, numbers in zip(pair, views, places, ([whole], parts), strict=True):
        rows = [{**row, "cells": [*row["cells"]]} for row in view["rows"]]
        for row, number in zip(rows, numbers, strict=True):
            cell = row["cells"][place]
            ends = {n: pick(cell[n], number) for n, pick in _WIDER if cell.get(n) is not None}
            row["cells"][place] = {**cell, "value": number, **ends}
        notes = [*view["notes"], AGREEING]
        yield replace(answer, shown={**view, "rows": rows, "notes": notes})
