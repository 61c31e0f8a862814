"""The profile of a table: how many rows and groups units have, how large values are; bought once.

Set-up. A histogram counts units over public geometric bins: by the number of their rows, by the
number of groups that they are in, or by the values of a column. Each is one question, an ordinary
one: planned, charged, recorded and certified by itself; their prices add up to the price named.

Law      rows: the bin of the number of a unit's rows (`rows_per_unit.EDGES`). Groups: the bin of
         the number of different keys among its rows, a missing one being a key. Values: each of a
         unit's rows is in the bin of its value with the weight 1/n, n being the number of its rows
Theorem  one unit moves each histogram by at most 1 in all (by 2 where it is changed), whatever
         max_rows, max_groups and bounds are, and whether they are declared at all
Proof    rows and groups are columns of a sub-query grouped by the unit alone (`query/units.py`): a
         unit has one row there, so max_rows = 1 leaves it at its full weight (`counted_card`).
         Values are asked under max_rows = 1, so that the weights of a unit's rows add up to at
         most 1 (`measures.py`)  []
Theorem  what is read off a recorded profile is a function of released answers, and free: limits
         chosen by it depend on the data through these answers alone
Theorem  a recorded histogram is taken only if it is of the same data (the ledger's fingerprint),
         the same question, unit and types of columns, and the checker accepts its record. Of
         several the one with the least noise is taken, then the first: a function of the books
Differs  one question for each histogram, and not all in one: the noise is the same at the same
         price in all, and each is found again, and certified, without the others
Checked  tests/release/test_profile.py
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise
from types import MappingProxyType
from typing import Any, TypeAlias

from lastbit.errors import InvalidParameter
from lastbit.exact import exact_text
from lastbit.kernel import question_of
from lastbit.ledger import Entry, Ledger, spared_by
from lastbit.release.answer import Answer
from lastbit.release.believing import record_problem
from lastbit.release.rows_per_unit import EDGES, Noise, RowsPerUnit, counts_of, noise_of
from lastbit.tables import (
    Aggregate,
    ColumnName,
    Constant,
    DataCard,
    Expression,
    GroupKey,
    PerUnit,
    Query,
    UnitColumn,
    aggregate_of,
    all_of,
    call,
    counted_card,
    histogram,
    rows_of,
)

Keys: TypeAlias = tuple[Expression, ...]
_FAR = MappingProxyType({"number": Fraction(2) ** 200, "integer": Fraction(2) ** 62})
_BETWEEN_KEYS = "\x1f"


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """The released histogram of a column's values: each unit counts once, shared by its rows."""

    edges: tuple[Fraction, ...]
    counts: tuple[int, ...]
    noise: Noise

    @property
    def likely(self) -> list[int]:
        """The counts of the stretch of bins that stands out most from noise; 0 outside of it.

        That is the stretch with the greatest sum of counts, less what one noise is above in a tenth
        of releases for each bin. Where there is noise alone it is a short one; it has a unit.
        """
        price = self.noise.surpassed(1 / 10)
        best, first, last, running, start = -math.inf, 0, 0, 0.0, 0
        for place, count in enumerate(self.counts):
            if running <= 0:
                running, start = 0.0, place
            running += count - price
            if running > best:
                best, first, last = running, start, place
        found = [
            max(count, 0) if first <= place <= last else 0
            for place, count in enumerate(self.counts)
        ]
        # a few values of the other sign are hardly there
        least = self.noise.least_clear(self.counts)
        below = [edge < 0 for edge in self.edges[:-1]]
        sums = [
            sum(n for n, b in zip(found, below, strict=True) if b is side) for side in (False, True)
        ]
        for side in (False, True):
            if sums[side] <= least < sums[not side]:
                found = [0 if b is side else n for n, b in zip(found, below, strict=True)]
        return found if any(found) else [*found[:first], 1, *found[first + 1 :]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What is known of how rows, groups and values are spread over units, for one state of data."""

    rows: RowsPerUnit | None = None
    rows_answer: Answer | None = None
    """The answer that `rows` is read off."""
    whole_table: bool = True
    """Whether `rows` is of all rows of the table, and not of those that one question looks at."""
    groups: Mapping[Keys, RowsPerUnit] = field(default_factory=dict)
    """Groups per unit, by the expressions of the keys, in the order of a GROUP BY."""
    values: Mapping[str, Values] = field(default_factory=dict)
    """By the name of the column, in small letters."""
    answers: tuple[Answer, ...] = ()
    """All answers that it comes from."""

    def __str__(self) -> str:
        """The histograms, one below the other."""
        return "\n\n".join(_table_text(*table) for table in self.tables())

    def tables(self) -> list[tuple[tuple[str, str], list[tuple[str, str]]]]:
        """Headings and rows of each histogram; bins that do not stand out from noise are left out.

        The numbers are noisy: about so many units.
        """
        shown = []
        counted = {} if self.rows is None else {"rows of one unit": self.rows}
        for keys, numbers in self.groups.items():
            named = ", ".join(_key_words(key) for key in keys)
            counted[f"groups of one unit, by {named}"] = numbers
        for heading, numbers in counted.items():
            bins = [f"{a:,}" if a == b else f"{a:,} to {b:,}" for a, b in numbers.bins]
            units = [f"{max(count, 0):,}" for count in numbers.counts[: len(bins)]]
            shown.append(((heading, "units, about"), list(zip(bins, units, strict=True))))
        for column, values in self.values.items():
            pairs = zip(pairwise(values.edges), values.likely, strict=True)
            lines = [
                (f"{exact_text(low)} to {exact_text(high)}", f"{count:,}")
                for (low, high), count in pairs
                if count
            ]
            shown.append(((f"values of {column}", "units, about"), lines))
        return shown

    def with_more(self, other: Profile) -> Profile:
        """All of it and what another has besides; rows of a question before those of the table."""
        own = self.rows is not None and not (other.rows is not None and self.whole_table)
        return Profile(
            rows=self.rows if own else other.rows,
            rows_answer=self.rows_answer if own else other.rows_answer,
            whole_table=self.whole_table if own else other.whole_table,
            groups={**other.groups, **self.groups},
            values={**other.values, **self.values},
            answers=(*self.answers, *other.answers),
        )


def _table_text(headings: tuple[str, str], lines: list[tuple[str, str]]) -> str:
    rows = [headings, *(lines or [("nothing stands out from noise", "")])]
    left, right = (max(map(len, column)) for column in zip(*rows, strict=True))
    return "\n".join(f"{a.ljust(left)}  {b.rjust(right)}".rstrip() for a, b in rows)


def _key_words(key: Expression) -> str:
    return key.name if isinstance(key, ColumnName) else "an expression"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileQuestion:
    """One histogram of a profile: what is asked, and by which card."""

    query: Query
    card: DataCard
    keys: Keys | None = None
    column: str | None = None
    whole_table: bool = True

    def is_in(self, profile: Profile) -> bool:
        """Whether a profile has this histogram."""
        if self.column is not None:
            return self.column in profile.values
        if self.keys is not None:
            return self.keys in profile.groups
        return profile.rows is not None and profile.whole_table == self.whole_table

    def profile(self, answer: Answer) -> Profile:
        """What an answer to it says."""
        if self.column is not None:
            counts, noise = tuple(counts_of(answer.record)), noise_of(answer.record["plan"])
            edges = self.query.aggregates[0].edges or ()
            values = {self.column: Values(edges=edges, counts=counts, noise=noise)}
            return Profile(values=values, answers=(answer,))
        numbers = RowsPerUnit.of(answer.record)
        if self.keys is not None:
            return Profile(groups={self.keys: numbers}, answers=(answer,))
        whole = self.whole_table
        return Profile(rows=numbers, rows_answer=answer, whole_table=whole, answers=(answer,))


# ---------------------------------------------------------------- the questions


def rows_query(query: Query | None, card: DataCard) -> Query:
    """The question how many rows units have: those that `query` looks at, or all."""
    if card.unit is None:
        problem = "has no meaning where each row is a unit: all rows count"
        raise InvalidParameter("kept", problem=problem, remedy="leave it out")
    if query is not None and query.per_unit is not None:
        problem = "has no meaning for rows of a sub-query"
        raise InvalidParameter("kept", problem=problem, remedy="leave it out")
    tests = (
        [] if query is None else [test for key in query.keys if (test := _declared_key_test(key))]
    )
    where = [] if query is None or query.where is None else [query.where]
    inner = PerUnit(
        columns=(UnitColumn(name="n", function="count", nullable=False),),
        where=all_of([*where, *tests]),
        joins=() if query is None else query.joins,
    )
    return _histogram_of_units(card, inner)


def groups_query(keys: Keys, card: DataCard) -> Query:
    """The question how many groups units are in, of those that these keys make."""
    missing = Constant("")
    texts = [call("coalesce", call("to_text", key), missing) for key in keys]
    between = Constant(_BETWEEN_KEYS)
    joined = [part for text in texts for part in (between, text)][1:]
    both = joined[0] if len(joined) == 1 else call("concat", *joined)
    number = UnitColumn(name="n", function="count_distinct", expression=both, nullable=False)
    return _histogram_of_units(card, PerUnit(columns=(number,)))


def _histogram_of_units(card: DataCard, inner: PerUnit) -> Query:
    """How many units are in each bin of the one column n of a sub-query."""
    edges = tuple(map(Fraction, EDGES))
    counted = Aggregate(name="units", function="histogram", expression=ColumnName("n"), edges=edges)
    return Query(table=card.name, aggregates=(counted,), per_unit=inner)


def _declared_key_test(key: GroupKey) -> Expression | None:
    """That a row has one of the declared keys: others are gone before rows are weighed."""
    if key.values is None:
        return None
    present = [Constant(value) for value in key.values if value is not None]
    tests = [call("in", key.expression, *present)] if present else []
    if None in key.values:
        tests.append(call("is_missing", key.expression))
    return tests[0] if len(tests) == 1 else call("or", *tests)


def each_unit_once(card: DataCard) -> DataCard:
    """The card by which all rows of a unit count for one row together."""
    groups = None if card.unit is None else 1
    once: dict[str, Any] = {"max_rows": 1, "max_groups": groups, "max_rows_open": False}
    return replace(card, **once, max_groups_assumed=False)


def value_edges(kind: str) -> tuple[Fraction, ...]:
    """Powers of two and their middles, of either sign: up to 2**40, and one bin for all beyond."""
    least = -10 if kind == "number" else 0
    sizes = {Fraction(2) ** octave for octave in range(least, 41)}
    sizes |= {
        Fraction(3) * Fraction(2) ** (octave - 1)
        for octave in range(least, 40)
        if least < 0 or octave > 0
    }
    rising, far = sorted(sizes), _FAR[kind]
    return (-far, *(-size for size in reversed(rising)), Fraction(0), *rising, far)


def rows_question(card: DataCard, query: Query | None = None) -> ProfileQuestion:
    """Rows per unit: of the table, or of what a question looks at."""
    once, whole = each_unit_once(card), query is None
    return ProfileQuestion(query=rows_query(query, card), card=once, whole_table=whole)


def groups_question(card: DataCard, keys: Keys) -> ProfileQuestion:
    """Groups per unit."""
    return ProfileQuestion(query=groups_query(keys, card), card=each_unit_once(card), keys=keys)


def values_question(card: DataCard, column: str) -> ProfileQuestion:
    """The values of a column, each unit counting once."""
    declared = card.column(column)
    if declared.type not in _FAR:
        problem = f"is of type {declared.type}, which has no bounds"
        raise InvalidParameter(f"column {column[:60]}", problem=problem, remedy="name a number")
    once = each_unit_once(card)
    counted = aggregate_of(
        "values", histogram(quoted_name(declared.name), value_edges(declared.type)), rows_of(once)
    )
    query = Query(table=card.name, aggregates=(counted,))
    return ProfileQuestion(query=query, card=once, column=declared.name.lower())


def quoted_name(name: str) -> str:
    """A column's name as SQL has it."""
    return '"' + name.replace('"', '""') + '"'


# ---------------------------------------------------------------- what is on record


def recorded_profile(
    questions: Iterable[ProfileQuestion], card: DataCard, *, books: Ledger, data: str
) -> Profile | None:
    """What of these histograms the ledger has of these data; None: nothing. No charge."""
    return next(iter(recorded_profiles(list(questions), card, books=books, data=data)), None)


def recorded_profiles(
    questions: Sequence[ProfileQuestion], card: DataCard, *, books: Ledger, data: str
) -> list[Profile]:
    """The same, the one with the least noise first: several where histograms were bought again."""
    answers = _recorded_answers(questions, card, books=books, data=data)
    profiles = []
    for place in range(max(map(len, answers.values()), default=0)):
        profile = Profile()
        for question in questions:
            known = answers[question.query.digest]
            if known:
                profile = profile.with_more(question.profile(known[min(place, len(known) - 1)]))
        profiles.append(profile)
    return profiles


def _recorded_answers(
    questions: Sequence[ProfileQuestion], card: DataCard, *, books: Ledger, data: str
) -> dict[str, list[Answer]]:
    """All recorded answers to each of these questions, by its digest, the least noise first."""
    wanted = {question.query.digest: question for question in questions}
    asked: dict[str | None, ProfileQuestion] = {}
    found: dict[str, list[Answer]] = {digest: [] for digest in wanted}
    spared = spared_by(card, books.path)
    for entry in books.entries(card.account_name):  # one pass, and no answers are read
        if entry.query in wanted:
            asked[entry.hash] = wanted[entry.query]
        question = asked.get(entry.reservation)
        if question is None or entry.fingerprint != data or not entry.result:
            continue
        record = _record_of(entry, question, books=books, data=data)
        if record is None:
            continue
        found[question.query.digest].append(Answer(record, spared, charged=False))
    for answers in found.values():
        answers.sort(key=lambda answer: noise_of(answer.record["plan"]).spread)  # stable
    return found


def _record_of(
    entry: Entry, question: ProfileQuestion, *, books: Ledger, data: str
) -> dict[str, Any] | None:
    """The record of an entry, if it is an answer to this very question by this card."""
    record = dict(books.entry(entry.sequence).record or {})
    if record_problem(record) is not None:
        return None
    query, card = question.query, counted_card(question.query, question.card)
    same = record["question"] == question_of(record["asked"], card, data)
    return record if same and record["asked"]["query"] == query.to_json() else None
