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
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise
from types import MappingProxyType
from typing import Any, TypeAlias

from lastbit.arguments import check_kind
from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact import exact_text
from lastbit.kernel import question_of
from lastbit.ledger import Ledger, spared_by
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
LINES = ("what is counted", "how many", "units, about")
_FAR = MappingProxyType({"number": Fraction(2) ** 200, "integer": Fraction(2) ** 62})
_BETWEEN_KEYS, _NO_KEY = "\x1f", "\x1e"  # letters that no text has, unlike none at all


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """The released histogram of a column's values: each unit counts once, shared by its rows."""

    edges: tuple[Fraction, ...]
    counts: tuple[int, ...]
    noise: Noise

    @property
    def likely(self) -> list[int]:
        """The counts of the values that stand out from noise; 0 for the others."""
        one = bisect_left(self.edges, 1)
        return standing_out(
            self.counts, self.noise, [abs(i - one) for i in range(len(self.counts))]
        )


def standing_out(counts: Sequence[int], noise: Noise, far: Sequence[int]) -> list[int]:
    """The counts of the stretch of bins that stands out most from noise; 0 outside of it.

    That is the stretch with the greatest sum of counts, less for each bin what one noise is above
    in a tenth of releases, and less a quarter of a deviation for each of the bins (`far`) by which
    its further end is away from where numbers usually are: noise alone shall not choose a bin
    that makes everything large. Some count is above 0.

    >>> standing_out([4, 300, 20, 250, 3, 12], Noise(scale=10.0), range(6))
    [0, 300, 20, 250, 0, 0]
    """
    # measured on nine tables with noise of scale 20 and 60: limits chosen by it are off by 1.0
    # times the least error in the median, and by 2 in a tenth; a fiftieth in place of a tenth: 1.3
    each, away = noise.surpassed(1 / 10), math.sqrt(noise.spread) / 4
    best, chosen = -math.inf, (0, 0)
    for first in range(len(counts)):
        running = 0.0
        for last in range(first, len(counts)):
            running += counts[last] - each
            score = running - away * max(far[first], far[last])
            if score > best:
                best, chosen = score, (first, last)
    first, last = chosen
    found = [max(n, 0) if first <= place <= last else 0 for place, n in enumerate(counts)]
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
        rows = [LINES, *self.lines()]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            "  ".join(map(str.ljust, row, widths)).rstrip()
            for row in rows  # two blanks apart
        )

    def lines(self) -> list[tuple[str, str, str]]:
        """What is counted, a bin and about how many units are in it: bins that stand out."""
        shown = []
        counted = {} if self.rows is None else {"rows of one unit": self.rows}
        for keys, numbers in self.groups.items():
            named = (key.name if isinstance(key, ColumnName) else "an expression" for key in keys)
            counted[f"groups of one unit by {', '.join(named)}"] = numbers
        for what, numbers in counted.items():
            bins = [f"{a:,}" if a == b else f"{a:,} to {b:,}" for a, b in numbers.bins]
            shown += [
                (what, one, f"{max(n, 0):,}") for one, n in zip(bins, numbers.counts, strict=False)
            ]
        for column, values in self.values.items():
            ends = (" to ".join(map(exact_text, pair)) for pair in pairwise(values.edges))
            pairs = zip(ends, values.likely, strict=True)
            shown += [(f"values of {column}", one, f"{n:,}") for one, n in pairs if n]
        return shown

    def with_more(self, other: Profile) -> Profile:
        """All of it and what another has besides; rows of a question before those of the table."""
        check_kind(other, Profile, "profile", remedy="pass what table.profile(...) gave")
        own = self.rows is not None and not (other.rows is not None and self.whole_table)
        return Profile(
            rows=self.rows if own else other.rows,
            rows_answer=self.rows_answer if own else other.rows_answer,
            whole_table=self.whole_table if own else other.whole_table,
            groups={**other.groups, **self.groups},
            values={**other.values, **self.values},
            answers=(*self.answers, *other.answers),
        )


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
    texts = [call("coalesce", call("to_text", key), Constant(_NO_KEY)) for key in keys]
    joined = [part for text in texts for part in (Constant(_BETWEEN_KEYS), text)]
    key = call("concat", *joined)
    number = UnitColumn(name="n", function="count_distinct", expression=key, nullable=False)
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
    least = Fraction(1, 1 << 10) if kind == "number" else Fraction(1)
    sizes = [least * (2 + n % 2) * 2 ** (n // 2) / 2 for n in range(2 * 51) if n != 1 or least < 1]
    rising, far = [size for size in sizes if size <= 1 << 40], _FAR[kind]
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
        problem = f"is of type {declared.type}, and only bounds of numbers are chosen"
        raise InvalidParameter(f"column {column[:60]}", problem=problem, remedy="name a number")
    if declared.is_list:
        problem, remedy = "is of lists, whose bounds no profile chooses", "declare bounds for it"
        raise InvalidParameter(f"column {column[:60]}", problem=problem, remedy=remedy)
    once = each_unit_once(card)
    counted = aggregate_of(
        "values", histogram(quoted_name(declared.name), value_edges(declared.type)), rows_of(once)
    )
    query = Query(table=card.name, aggregates=(counted,))
    return ProfileQuestion(query=query, card=once, column=declared.name.lower())


def quoted_name(name: str) -> str:
    """A column's name as SQL has it."""
    if not isinstance(name, str):
        raise WrongType("columns", problem="are not names", remedy='pass, say, ["cost"]')
    return '"' + name.replace('"', '""') + '"'


# ---------------------------------------------------------------- what is on record


def recorded_profile(
    questions: Sequence[ProfileQuestion], card: DataCard, *, books: Ledger, data: str
) -> Profile | None:
    """The best of `recorded_profiles`; None where the ledger has none of these histograms."""
    return next(iter(recorded_profiles(questions, card, books=books, data=data)), None)


def recorded_profiles(
    questions: Sequence[ProfileQuestion], card: DataCard, *, books: Ledger, data: str
) -> list[Profile]:
    """What of these histograms the ledger has of these data, at no charge: the best first.

    There are several where histograms were bought again, since by each a question may have been
    paid for: the best that there was at each time, the latest first; then, as two who buy at once
    go by their own, the second of all by their noise, the third and so on.
    """
    answers: dict[str, list[Answer]] = {question.query.digest: [] for question in questions}
    known: dict[str, Answer] = {}
    states: list[dict[str, Answer]] = []
    for question, answer in _recorded_answers(questions, card, books=books, data=data):
        digest = question.query.digest
        answers[digest].append(answer)
        if digest not in known or _spread(answer) < _spread(known[digest]):
            known = {**known, digest: answer}
            states.insert(0, known)
    ranked = [(digest, sorted(some, key=_spread)) for digest, some in answers.items() if some]
    for place in range(1, max((len(some) for _, some in ranked), default=0)):
        state = {digest: some[min(place, len(some) - 1)] for digest, some in ranked}
        states += [state] if state not in states else []
    return [_joined(questions, state) for state in states]


def _joined(questions: Sequence[ProfileQuestion], answers: Mapping[str, Answer]) -> Profile:
    profile = Profile()
    for one in questions:
        if one.query.digest in answers:
            profile = profile.with_more(one.profile(answers[one.query.digest]))
    return profile


def _spread(answer: Answer) -> float:
    return noise_of(answer.record["plan"]).spread


def _recorded_answers(
    questions: Sequence[ProfileQuestion], card: DataCard, *, books: Ledger, data: str
) -> Iterator[tuple[ProfileQuestion, Answer]]:
    """All recorded answers to these questions, in the order of the books."""
    wanted = {question.query.digest: question for question in questions}
    asked: dict[str | None, ProfileQuestion] = {}
    for entry in books.entries(card.account_name):  # one pass, and no other answers are read
        if entry.query in wanted:
            asked[entry.hash] = wanted[entry.query]
        question = asked.get(entry.reservation)
        if question is None or entry.fingerprint != data or not entry.result:
            continue
        record, query = dict(books.entry(entry.sequence).record or {}), question.query
        if record_problem(record) is not None or record["asked"]["query"] != query.to_json():
            continue
        if record["question"] == question_of(
            record["asked"], counted_card(query, question.card), data
        ):
            yield question, Answer(record, spared_by(card, books.path), charged=False)
