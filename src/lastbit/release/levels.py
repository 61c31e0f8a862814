"""Counts on several levels at one price: nation, region, district, made to add up.

Law      each level is a question of its own: how many rows has each of its keys? A level is a
         column. Columns of the public table are a chain, in which a finer one says what the coarser
         ones are; other columns have declared keys, and cross the chain. The rows are the same in
         all questions: those whose finest key of the chain is in the public table, and whose other
         keys are declared
Theorem  (price) levels are charged one by one, all prices before a row is read; they add up to the
         price asked. Keys are public: those of the public table, or the card's
Theorem  (sums) numbers without noise add up on all levels. A row counts with a weight that depends
         on its unit's rows in the question, and on nothing else (`tables/measures.py`; a choice of
         keys is made for counts of units only); the rows are the same on all levels, each has one
         key on every level, and the key of a level says which it has on the level above
Law      the rest is post-processing: `levels_tree.py`, `levels_answer.py`; the shares of the price
         are public (`levels_shares.py`). Numbers given as exact are never read from the data: they
         come from who asks, cost nothing, and stand outside of the promise
Checked  tests/release/test_levels.py
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, TypeAlias

import duckdb

from lastbit.arguments import check_kind, listed, nearest
from lastbit.errors import InvalidParameter, QueryRefused, WrongType
from lastbit.exact import Number, exact_text, positive, rounded_up, whole as whole_number
from lastbit.ledger import Connections, Ledger
from lastbit.release.answer import Answer
from lastbit.release.choosing import price_in_shares
from lastbit.release.levels_answer import (
    Level,
    LevelsAnswer,
    Reached,
    plain_cost,
    reached,
    tree_of,
)
from lastbit.release.levels_shares import least_shares
from lastbit.release.paying import paid_for_all
from lastbit.release.profile import quoted_name
from lastbit.release.question import Names, Question, texts_by_name
from lastbit.release.reach import MeasureNoise
from lastbit.report import printable
from lastbit.tables import (
    Call,
    Constant,
    Cost,
    GroupKey,
    Plan,
    PublicTable,
    Query,
    Source,
    Value,
    asked_price,
    count,
    planned,
    public_rows,
    snapshot,
)

_MOST_KEYS = 1 << 20
TOTAL = "all"

Parents: TypeAlias = Mapping[str, Mapping[Any, Any]]
"""For a level, each key's parent on the level above it in the chain."""
Invariants: TypeAlias = Mapping[str, int | Mapping[Any, int]]
"""For a level, its exact numbers by key; of the whole, one number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelsPlan:
    """What is bought for each level, and how exact the numbers will be; nothing was read."""

    levels: tuple[Level, ...]
    plans: tuple[Plan | None, ...]
    """Of each level; None where its numbers are given."""
    alone: tuple[Plan | None, ...]
    """The same where all levels had equal parts of the price and were left as they are."""
    reached: Reached = field(repr=False)

    @property
    def cost(self) -> Cost:
        """What all levels cost together."""
        return sum((plan.cost for plan in self.plans if plan is not None), Cost())

    def explain(self) -> str:
        """The levels with their prices and errors, before anything is read."""
        lines = [
            f"counts on {len(self.levels)} levels, from {self._plan.card.name}, that add up",
            f"price     {plain_cost(self.cost)} for all levels",
            f"promise   {self._promise}",
            "",
            f"{'level':<18}{'numbers':>9}{'price':>13}{'noise ±':>10}{'error':>9}{'alone':>9}",
            *self._lines(),
            "",
            "noise ±   in 95 % of releases, of the least exact number of the level",
            "error     its standard error, once levels add up",
            "alone     the same with equal parts of the price, each level left as it is",
            "Nothing has been read or charged.",
        ]
        return "\n".join(lines)

    @property
    def _plan(self) -> Plan:
        return next(plan for plan in self.plans if plan is not None)

    @property
    def _promise(self) -> str:
        names = [n.name for n, plan in zip(self.levels, self.plans, strict=True) if plan is None]
        whose = self._plan.guarantee.partition(" for ")[2]
        given = f"; not for the given numbers of {', '.join(names)}" if names else ""
        return f"differential privacy for {whose}{given}"

    def _lines(self) -> Iterable[str]:
        for place, (level, plan) in enumerate(zip(self.levels, self.plans, strict=True)):
            name = f"{printable(level.name, 17):<18}{len(level.keys):>9,}"
            if plan is None:
                yield f"{name}{'given':>13}{'exact':>10}"
                continue
            paid = exact_text(plan.cost.rho or plan.cost.epsilon)
            own, equal = self.reached.own[place], self.alone[place]
            assert own is not None
            assert equal is not None
            half = max(min(half, own) for half in self.reached.halves[place])
            numbers = half, max(self.reached.errors[place]), _standard_error(equal)
            shown = [rounded_up(Fraction(float(number)), 3) for number in numbers]
            yield f"{name}{paid:>13}{shown[0]:>10}{shown[1]:>9}{shown[2]:>9}"


def _standard_error(plan: Plan) -> float:
    """Of a released count, in rows."""
    (part,) = plan.written.parts
    noise = MeasureNoise(part.law)  # type: ignore[union-attr]
    return math.sqrt(noise.variance) / plan.written.weight_one


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class LevelsQuestion:
    """Counts on several levels, asked of a table; `Table.levels` makes it."""

    table: Question
    levels: tuple[Level, ...]
    keys: tuple[tuple[GroupKey, ...], ...]
    """What each level is grouped by."""
    given: tuple[tuple[int, ...] | None, ...]

    def __repr__(self) -> str:
        names = ", ".join(level.name for level in self.levels)
        return f"<Levels {names}, of {self.table.card.name}>"

    def plan(
        self,
        *,
        epsilon: Number | None = None,
        rho: Number | None = None,
        shares: Mapping[str, Number] | None = None,
    ) -> LevelsPlan:
        """The prices and errors of all levels; nothing is read.

        Shares of the price are those by which the largest error is least, unless `shares` says, for
        each level that is asked, in which proportions: {"all": 1, "region": 1, "district": 3}.
        """
        whole = asked_price(self.table.card, epsilon=epsilon, delta=None, rho=rho, weights=None)
        by_rho, price = whole.rho is not None, whole.rho or whole.epsilon
        assert price is not None
        tree, unasked = tree_of(self.levels), [some is not None for some in self.given]
        asked = [place for place, known in enumerate(unasked) if not known]
        if shares is None:
            parts = least_shares(tree, power=1 if by_rho else 2, given=unasked)
        else:
            parts = self._shares(shares, [self.levels[place].name for place in asked])
        plans: list[Plan | None] = [None] * len(self.levels)
        alone: list[Plan | None] = [None] * len(self.levels)
        equal = price_in_shares(price, [Fraction(1)] * len(asked))
        priced = zip(asked, price_in_shares(price, parts), equal, strict=True)
        prices: list[dict[str, Any]]
        for place, part, same in priced:
            query, card = self._query(place), self.table.card
            prices = [{"rho" if by_rho else "epsilon": paid} for paid in (part, same)]
            plans[place], alone[place] = (planned(query, card, **paid) for paid in prices)
        written = [None if plan is None else plan.written for plan in plans]
        return LevelsPlan(
            levels=self.levels,
            plans=tuple(plans),
            alone=tuple(alone),
            reached=reached(tree, written),
        )

    def explain(self, **price: Any) -> str:
        """What the numbers would cost and how far off they would be; takes what `plan` takes."""
        return self.plan(**price).explain()

    def release(
        self,
        *,
        epsilon: Number | None = None,
        rho: Number | None = None,
        shares: Mapping[str, Number] | None = None,
        ledger: str | os.PathLike[str] | Ledger | None = None,
        who: str | None = None,
    ) -> LevelsAnswer:
        """The numbers of all levels, which add up; all prices are committed first, or none.

        The same levels at the same price of the same data are answered from the record.
        """
        plan = self.plan(epsilon=epsilon, rho=rho, shares=shares)
        bought = [one for one in plan.plans if one is not None]
        sqls = [None] * len(bought)
        paid = iter(paid_for_all(bought, Connections(), ledger=ledger, who=who, sqls=sqls))
        answers: list[Answer | None] = [None if one is None else next(paid) for one in plan.plans]
        return LevelsAnswer(levels=self.levels, answers=tuple(answers), given=self.given)

    def _query(self, place: int) -> Query:
        """What one level asks."""
        return replace(self.table, keys=self.keys[place]).query

    def _shares(self, shares: Mapping[str, Number], names: Sequence[str]) -> list[Fraction]:
        remedy = f"pass a number above 0 for each of {', '.join(names)}"
        check_kind(shares, Mapping, "shares", remedy=remedy)
        if sorted(map(str, shares)) != sorted(names):
            raise InvalidParameter("shares", problem="are not for all levels", remedy=remedy)
        return [positive(shares[name], "shares") for name in names]


# ---------------------------------------------------------------- from columns to levels


def levels_question(
    table: Any,
    names: Sequence[str],
    *,
    public: str | None,
    parents: Parents | None,
    on: Names | None,
    total: str,
    invariants: Invariants | None,
) -> LevelsQuestion:
    """The question that `Table.levels` asks, of a table that nothing else was asked of."""
    remedy = 'pass levels from the top: "region", "district"'
    called = listed(names, "levels", remedy=remedy)
    for name in (total, *called):
        check_kind(name, str, "levels", remedy=remedy)
    if not called or len({name.lower() for name in (total, *called)}) <= len(called):
        problem = "have one name twice" if called else "are none"
        raise InvalidParameter("levels", problem=problem, remedy=remedy)
    if public is not None and parents is not None:
        problem = "is given beside parents"
        raise InvalidParameter("public", problem=problem, remedy="pass one of them")
    if parents is not None:
        table, public, on = _with_parents(table, called, parents)
    chain = _Chain.read(table, called, public, on)
    rows, keys = chain.joined(table), {}
    for name in called:
        keys[name] = chain.key(rows, name) or _declared_key(rows, name)
    crossed = [keys[name] for name in called if name not in chain.names]
    tests = [Call("in", (key.expression, *map(Constant, key.values or ()))) for key in crossed]
    counted = rows.agg(**{_free_name(called): count()})
    counted = replace(counted, rows=replace(counted.rows, where=(*counted.rows.where, *tests)))
    levels = tuple(_levels(called, keys, chain, total))
    grouped = [tuple(keys[column] for column in level.columns) for level in levels]
    return LevelsQuestion(
        table=counted,
        levels=levels,
        keys=tuple(map(tuple, grouped)),
        given=_given(levels, invariants),
    )


def _free_name(taken: Iterable[str]) -> str:
    """What the count is called: n, unless a level is."""
    name, lowered = "n", {other.lower() for other in taken}
    while name in lowered:
        name += "_"
    return name


def _declared_key(rows: Any, name: str) -> GroupKey:
    """A key that crosses the chain: declared on the card, or known by bounds."""
    (key,) = rows.group_by(name).keys
    if key.values is None or None in key.values:
        problem = "has no declared keys" if key.values is None else "has a missing key declared"
        remedy = "declare its keys, or name the public table with it: public=..., parents=..."
        raise QueryRefused(f"levels {name[:60]}", problem=problem, remedy=remedy)
    return key  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chain:
    """The levels that a public table knows, from coarse to fine; empty where there is none."""

    public: str = ""
    names: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    """What the public table calls them."""
    rows: tuple[tuple[Value, ...], ...] = ()

    @classmethod
    def read(cls, table: Any, names: Sequence[str], public: str | None, on: Names | None) -> _Chain:
        """The chain of a public table of the card, whose rows everybody may see."""
        if public is None:
            return cls()
        check_kind(public, str, "public", remedy='pass the name of a public table: "areas"')
        card = table.card
        if public not in card.public:
            known = ", ".join(card.public) or "lb.table(..., public={...}) first"
            meant = nearest(public, card.public)
            problem = "is no public table of the card"
            raise InvalidParameter("public", problem=problem, remedy=f"{meant}use {known}")
        theirs = {column.lower(): column for column in card.public[public].columns}
        renamed = dict(texts_by_name("levels", () if on is None else on))
        meant_by = {name: renamed.get(name, name) for name in names}
        chain = [name for name in names if meant_by[name].lower() in theirs]
        if not chain or (renamed and chain[-1] not in renamed):
            problem = "has no column of the finest level" if renamed else "has none of the levels"
            remedy = 'name levels as its columns are, or pass on={"district": "code"}'
            raise InvalidParameter("public", problem=problem, remedy=remedy)
        columns = tuple(theirs[meant_by[name].lower()] for name in chain)
        found = public_rows(card, public, columns, most=_MOST_KEYS + 1)
        rows = [row for row in found if row[len(columns) - 1] is not None]
        _check_chain(chain, rows)
        return cls(
            public=public,
            names=tuple(chain),
            columns=columns,
            rows=tuple(tuple(row[:-1]) for row in rows),
        )

    def joined(self, table: Any) -> Any:
        """The rows that have a key of the chain."""
        if not self.names:
            return table
        return table.join(self.public, on={self.names[-1]: self.columns[-1]})

    def key(self, rows: Any, name: str) -> GroupKey | None:
        """What a level of the chain is grouped by, with the values that the public table has."""
        if name not in self.names:
            return None
        place = self.names.index(name)
        text = quoted_name(name)
        if name != self.names[-1]:
            text = f"{quoted_name(self.public)}.{quoted_name(self.columns[place])}"
        key: GroupKey = rows.group_by({name: text}).keys[0]
        return replace(key, values=tuple(dict.fromkeys(row[place] for row in self.rows)))

    def below(self) -> dict[str, dict[Value, list[Value]]]:
        """For each level, by the key above, its keys in order."""
        found: dict[str, dict[Value, list[Value]]] = {}
        for place, name in enumerate(self.names):
            some: dict[Value, dict[Value, None]] = {}
            for row in self.rows:
                some.setdefault(row[place - 1] if place else None, {})[row[place]] = None
            found[name] = {above: list(keys) for above, keys in some.items()}
        return found


def _check_chain(names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
    """Refuse a public table by which numbers would not add up; what it holds is public."""
    last = len(names) - 1
    if not rows or len(rows) > _MOST_KEYS:
        problem = "has no row" if not rows else "has more than 2**20 keys of the finest level"
        raise InvalidParameter("public", problem=problem, remedy="pass another table")
    for place, name in enumerate(names[:last]):
        finer, above = names[place + 1], dict[Value, Value]()
        for row in rows:
            if row[place] is None:
                problem = f"has a {finer[:60]} without a {name[:60]}"
                remedy = f"write one for each; where there is none, repeat the {finer[:60]}"
                raise InvalidParameter("public", problem=problem, remedy=remedy)
            if above.setdefault(row[place + 1], row[place]) != row[place]:
                problem = f"has a {finer[:60]} in two of {name[:60]}"
                remedy = "use keys that are unique, as codes are"
                raise InvalidParameter("public", problem=problem, remedy=remedy)
    keys = [row[last] for row in rows]
    if len(set(keys)) < len(keys) or any(row[-1] != 1 for row in rows):
        problem = f"has a {names[-1][:60]} in several rows, which would be counted for each"
        remedy = f"leave one row for each {names[-1][:60]}"
        raise InvalidParameter("public", problem=problem, remedy=remedy)


def _levels(
    names: Sequence[str], keys: Mapping[str, GroupKey], chain: _Chain, total: str
) -> Iterable[Level]:
    """The levels from the top: every node, below its parent."""
    yield Level(name=total, columns=(), keys=((),), parents=())
    paths: list[dict[str, Value]] = [{}]
    below = chain.below()
    for place, name in enumerate(names):
        finest = [n for n in names[: place + 1] if n in chain.names][-1:]
        columns = tuple(n for n in names[: place + 1] if n not in chain.names or n in finest)
        made, parents = [], []
        for i, path in enumerate(paths):
            values: Sequence[Value] = keys[name].values or ()
            if name in chain.names:
                coarser = chain.names.index(name) - 1
                values = below[name][None if coarser < 0 else path[chain.names[coarser]]]
            made += [{**path, name: value} for value in values]
            parents += [i] * len(values)
        paths = made
        if len(paths) > _MOST_KEYS:
            problem = "have more than 2**20 keys together"
            raise QueryRefused("levels", problem=problem, remedy="leave out a level")
        yield Level(
            name=name,
            columns=columns,
            keys=tuple(tuple(path[column] for column in columns) for path in paths),
            parents=tuple(parents),
        )


def _with_parents(
    table: Any, names: Sequence[str], parents: Parents
) -> tuple[Any, str, dict[str, str]]:
    """The table with a public one made of the mappings, its name, and on what it is joined."""
    remedy = 'pass parents={"district": {"mitte": "berlin", "altona": "hamburg"}}'
    check_kind(parents, Mapping, "parents", remedy=remedy)
    said = [name for name in names if name in parents]
    if not said or len(said) < len(parents) or said[0] == names[0]:
        problem = "are not for levels below the first"
        raise InvalidParameter("parents", problem=problem, remedy=remedy)
    chain = [names[names.index(said[0]) - 1], *said]
    for name in said:
        check_kind(parents[name], Mapping, f"parents of {name[:60]}", remedy=remedy)
    rows = []
    for key in parents[said[-1]]:
        row = [key]
        for name in reversed(said):
            if row[-1] not in parents[name]:
                problem = "have a key whose own parent is missing"
                raise InvalidParameter(f"parents of {name[:60]}", problem=problem, remedy=remedy)
            row.append(parents[name][row[-1]])
        rows.append(row[::-1])
    columns = [[row[place] for row in rows] for place in range(len(chain))]
    kinds = [_kind_of(name, column) for name, column in zip(chain, columns, strict=True)]
    called = "parents"
    while called in table.card.public:
        called += "_"
    types = {"text": "VARCHAR", "integer": "BIGINT"}
    selected = ", ".join(
        f"unnest($c{i}::{types[kind]}[]) AS {quoted_name(name)}"
        for i, (name, kind) in enumerate(zip(chain, kinds, strict=True))
    )
    connection = duckdb.connect(":memory:")
    relation = connection.sql(
        f"SELECT {selected}", params={f"c{i}": column for i, column in enumerate(columns)}
    )
    source = snapshot(Source(kind="frame", frame=relation))
    made = PublicTable(name=called, source=source, columns=dict(zip(chain, kinds, strict=True)))
    base = table.card
    base = replace(base, public={**base.public, called: made})
    known = replace(table, rows=replace(table.rows, base=base))
    return known, called, {chain[-1]: chain[-1]}


def _kind_of(name: str, keys: Iterable[Any]) -> Any:
    kinds = {type(key) for key in keys}
    if kinds not in ({str}, {int}):
        problem = "are not all texts, or all whole numbers"
        remedy = "write keys as the column has them, or pass public=..."
        raise WrongType(f"parents: keys of {name[:60]}", problem=problem, remedy=remedy)
    return "text" if kinds == {str} else "integer"


# ---------------------------------------------------------------- invariants


def _given(
    levels: Sequence[Level], invariants: Invariants | None
) -> tuple[tuple[int, ...] | None, ...]:
    """By level the numbers that are given as exact; those above a given level are its sums."""
    given: list[tuple[int, ...] | None] = [None] * len(levels)
    remedy = 'pass invariants={"region": {"north": 5210, "south": 4790}}, a number for each key'
    check_kind(invariants, (Mapping, type(None)), "invariants", remedy=remedy)
    if not invariants:
        return tuple(given)
    names = [level.name for level in levels]
    if len(invariants) != 1 or next(iter(invariants)) not in names[:-1]:
        problem = "are not of one level above the last"
        raise InvalidParameter("invariants", problem=problem, remedy=remedy)
    ((name, numbers),) = invariants.items()
    place = names.index(name)
    if isinstance(numbers, int) and place == 0:
        numbers = {(): numbers}
    if not isinstance(numbers, Mapping):
        raise WrongType("invariants", problem="are not numbers by key", remedy=remedy)
    by_key = {key if isinstance(key, tuple) else (key,): n for key, n in numbers.items()}
    if set(by_key) != set(levels[place].keys):
        problem = f"are not for all keys of {name[:60]}"
        raise InvalidParameter("invariants", problem=problem, remedy=remedy)
    found = [whole_number(by_key[key], "invariants", least=0) for key in levels[place].keys]
    given[place] = tuple(found)
    for above in range(place - 1, -1, -1):
        sums = [0] * len(levels[above].keys)
        for parent, number in zip(levels[above + 1].parents, given[above + 1] or (), strict=True):
            sums[parent] += number
        given[above] = tuple(sums)
    return tuple(given)
