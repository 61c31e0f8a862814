"""What a released query may be, which integer vectors it needs, and how far one unit moves each.

The form is checked again from the query's JSON alone. Every function of `_FUNCTIONS` is believed to
look at one row only, so filters, keys and values are functions of a row and of public tables;
`having`, `order` and `limit` may name columns of the answer only, so they see released numbers
alone. Declared keys must be different values of one type: a key declared twice would be released
twice, and one person counted twice.

Sensitivities follow by rules proved in `tables/measures.py`. A unit with n rows has each of
them count with the weight floor(k W / n), or W if n <= k: k W in all. Its own contribution is

| kind | over all groups and bins |
|---|---|
| rows, bins | entries from 0 up that add up to at most k W |
| values | sizes add up to at most k W largest |
| squares | entries from 0 up that add up to at most k W largest**2 |
| units | 1 in each of at most c groups |
| shares | floor(W/sqrt(K)) in each of K <= c groups: squares add up to at most W**2 |
| distinct | entries from 0 up that add up to at most v, the values that a unit may name |

and no other unit's moves. Add-remove: it comes or goes. Change-one: it becomes another, so L1
doubles; entries from 0 up move by no more than the larger of the two, so Linf stays and the square
of L2 doubles; entries of either sign can double Linf, and the square of L2 grows fourfold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from fractions import Fraction
from itertools import pairwise
from math import ceil, floor, isqrt, prod
from types import MappingProxyType
from typing import Any

from .numbers import Json, Rejected, ratio, require
from .units import Units, check_units

_PARTS = frozenset({"table", "where", "joins", "keys", "aggregates", "having", "order", "limit"})
_MORE = frozenset({"derived", "shown"})  # where released numbers make others, or are not shown
_AGGREGATE = frozenset(
    {"name", "function", "expression", "bounds", "step", "nullable", "level", "edges"}
)
_PER_UNIT = frozenset({"where", "joins", "keys", "columns"})
_UNIT_COLUMN = frozenset({"name", "function", "expression", "bounds", "step", "nullable"})
_OF_A_UNIT = ("count", "count_distinct", "sum", "mean", "min", "max")
_COUNTS = ("count", "count_units")
_DISTINCT = "count_distinct"
RANKED = ("quantile", "min", "max")
_NUMERIC = ("sum", "mean", "variance", "std", "cdf", *RANKED)
_KEYS = ("integer", "text", "boolean", "date", "timestamp", "missing")
# function: the least and the greatest number of its arguments
_FUNCTIONS: Mapping[str, tuple[int, int]] = MappingProxyType({
    **dict.fromkeys(("+", "*", "and", "or", "in", "case", "least", "greatest"), (2, 10**6)),
    **dict.fromkeys(("-", "/", "%", "=", "<>", "<", "<=", ">", ">=", "like", "ilike"), (2, 2)),
    **dict.fromkeys(("power", "starts_with", "contains", "days_between"), (2, 2)),
    **dict.fromkeys(("negate", "not", "is_missing", "abs", "floor", "ceil", "sqrt"), (1, 1)),
    **dict.fromkeys(("ln", "exp", "length", "lower", "upper", "trim"), (1, 1)),
    **dict.fromkeys(("to_integer", "to_number", "to_text", "to_date", "to_boolean"), (1, 1)),
    **dict.fromkeys(("year", "quarter", "month", "day", "hour", "weekday"), (1, 1)),
    **dict.fromkeys(("minute", "second", "week", "day_of_year", "iso_weekday"), (1, 1)),
    **dict.fromkeys(("iso_year", "start_of_year", "start_of_quarter"), (1, 1)),
    **dict.fromkeys(("start_of_week", "start_of_hour", "start_of_minute"), (1, 1)),
    "strftime": (2, 2),
    "start_of_month": (1, 1), "round": (1, 2), "substring": (2, 3), "clamp": (3, 3),
    "bin": (3, 10**6), "coalesce": (1, 10**6), "concat": (1, 10**6),
})  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One aggregate of the query, read."""

    name: str
    function: str
    expression: Any
    bounds: tuple[Fraction, Fraction] | None
    step: Fraction | None
    nullable: bool
    level: Fraction | None
    edges: tuple[Fraction, ...]
    intervals: bool = True
    ends: tuple[Fraction, ...] | None = None

    @property
    def value_key(self) -> object:
        """What two aggregates must share for one sum of values to serve both."""
        return identity_of(self.expression), self.bounds, self.step, self.nullable

    def candidates(self, *, closed: bool) -> tuple[Fraction, ...]:
        """The edges of the bins among which a rank is drawn.

        A bin for each value of the grid, the greatest one too if they are not `closed`: in earlier
        plans the last bin held the greatest two.
        """
        assert self.bounds is not None
        low, high = self.bounds
        steps = _CANDIDATES if self.step is None else (high - low) / self.step
        if not closed and self.step and int(steps) == steps <= _CANDIDATES:
            return tuple(low + self.step * i for i in range(int(steps) + 2))
        count = min(_CANDIDATES, ceil(steps))
        return tuple(low + (high - low) * i / count for i in range(count + 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A query whose form is right. `values` has the declared values of each key, if any are."""

    table: str
    names: tuple[str, ...]
    values: tuple[tuple[object, ...] | None, ...]
    aggregates: tuple[Asked, ...]
    units: Units

    @property
    def groups(self) -> int | None:
        """The number of all possible keys, 1 without any; None where only the data knows."""
        sizes = [None if values is None else len(values) for values in self.values]
        return None if None in sizes else prod(size for size in sizes if size is not None)


def question_of(query: Any) -> Question:
    """What of a query meets the table, or `Rejected`; `shown.py` has the rest of it."""
    present = set(query) - {"per_unit"} if isinstance(query, Mapping) else set()
    require(present in (_PARTS, _PARTS | _MORE), "the query lacks a part")
    inner = None if "per_unit" not in query else _per_unit(query["per_unit"])
    tables = _joined(query)
    keys = [_key(key, tables) for key in items(query["keys"])]
    aggregates = tuple(_aggregate(part, tables) for part in items(query["aggregates"]))
    require(bool(aggregates), "the query asks for nothing")
    within = () if inner is None else query["per_unit"]["joins"]
    every = [text.lower() for text in (*dict(keys), *(part.name for part in aggregates))]
    unique = len(set(every)) == len(keys) + len(aggregates)
    require(unique, "two columns of the answer have one name")
    return Question(
        table=name_in(query["table"]),
        names=tuple(key for key, _ in keys),
        values=tuple(values for _, values in keys),
        aggregates=aggregates,
        units=Units(
            joins=tuple(join for join in query["joins"] if "unnest" not in join),
            inner_joins=tuple(join for join in within if "unnest" not in join),
            lists=tuple(j["unnest"]["column"] for j in (*within, *query["joins"]) if "unnest" in j),
            bare=inner is None or not any("unnest" in join for join in query["joins"]),
            columns=inner,
            one_row=inner is not None and not query["per_unit"]["keys"] and not query["joins"],
            named=tuple(_own_columns(query)),
        ),
    )


def _per_unit(inner: Any) -> tuple[str, ...]:
    """The names of keys and columns of a sub-query grouped by the unit, if its form is right."""
    require(isinstance(inner, Mapping) and set(inner) == _PER_UNIT, "a sub-query lacks a part")
    tables = _joined(inner)
    names = []
    for key in items(inner["keys"]):
        require(set(key) == {"name", "expression"}, "a key of a sub-query is malformed")
        check_expression(key["expression"], tables)
        names.append(name_in(key["name"]))
    for part in items(inner["columns"]):
        whole = isinstance(part, Mapping) and set(part) == _UNIT_COLUMN
        require(whole and type(part["nullable"]) is bool, "a column of a sub-query is malformed")
        require(part["function"] in _OF_A_UNIT, "a function of a unit's rows is unknown")
        counted = part["expression"] is None and part["function"] == "count"
        require(counted or bool(part["expression"]), "a column of a sub-query is of nothing")
        if not counted:
            check_expression(part["expression"], tables)
        bounds = None if part["bounds"] is None else tuple(map(ratio, items(part["bounds"])))
        rising = bounds is None or (len(bounds) == 2 and bounds[0] < bounds[1])
        require(rising, "bounds of a sub-query do not rise")
        require(part["step"] is None or ratio(part["step"]) > 0, "a step is not above 0")
        names.append(name_in(part["name"]))
    lowered = {name.lower() for name in names}
    require(len(lowered) == len(names), "two columns of a sub-query have one name")
    return tuple(names)


def _own_columns(query: Json) -> Iterator[str]:
    """The columns of the table, or of the sub-query in its place, that the query names."""
    parts = [query["where"], *(key["expression"] for key in query["keys"])]
    parts += [part["expression"] for part in query["aggregates"]]
    waiting = [*parts, *(own for join in query["joins"] for own, _ in join.get("on", ()))]
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            waiting += part[1:]
        elif part is not None and "column" in part and "table" not in part:
            yield part["column"]


def _joined(query: Json) -> frozenset[str]:
    """The names of the tables that are joined; what is joined and filtered by is well formed."""
    names, named = [], [] if query["where"] is None else [query["where"]]
    for join in items(query["joins"]):
        if isinstance(join, Mapping) and set(join) == {"unnest"}:
            require(isinstance(join["unnest"], Mapping), "a list is none")
            require(set(join["unnest"]) == {"column"}, "a list is not of the table")
            name_in(join["unnest"]["column"])
            continue
        whole = isinstance(join, Mapping) and set(join) - {"private"} == {"table", "on"}
        require(whole and join.get("private", True) is True, "a join is malformed")
        names.append(name_in(join["table"]))
        pairs = items(join["on"])
        require(bool(pairs) and all(len(items(p)) == 2 for p in pairs), "a join has no condition")
        for own, other in pairs:
            named.append(own)
            require(isinstance(other, Mapping), "a join compares with no column")
            require(other.get("table", names[-1]) == names[-1], "a join compares another table")
            require(set(other) - {"table"} == {"column"}, "a join compares with no column")
            name_in(other["column"])
    require(len({name.lower() for name in names}) == len(names), "a table is joined twice")
    for expression in named:
        check_expression(expression, frozenset(names))
    return frozenset(names)


def _key(key: Any, tables: frozenset[str]) -> tuple[str, tuple[object, ...] | None]:
    require(isinstance(key, Mapping), "a key is malformed")
    require(set(key) == {"name", "expression", "values"}, "a key is malformed")
    check_expression(key["expression"], tables)
    if key["values"] is None:
        return name_in(key["name"]), None
    values = tuple(constant_of(value) for value in items(key["values"]))
    kinds = {value["type"] for value in key["values"]}
    require(bool(values) and kinds <= set(_KEYS), "declared keys are none, or no keys")
    require(len(kinds - {"missing"}) <= 1, "declared keys are of several types")
    require(len(set(values)) == len(values), "a key is declared twice")
    return name_in(key["name"]), values


def _aggregate(part: Any, tables: frozenset[str]) -> Asked:
    require(isinstance(part, Mapping), "an aggregate is malformed")
    require(set(part) - {"intervals", "ends"} == _AGGREGATE, "an aggregate is malformed")
    function, expression = part["function"], part["expression"]
    bare = "intervals" in part  # written only where a quantile has none
    require(not bare or part["intervals"] is False, "intervals are neither there nor not")
    require(not bare or function == "quantile", "an interval is left out that costs nothing")
    known = (*_COUNTS, _DISTINCT, *_NUMERIC, "histogram")
    require(function in known, "an aggregate is unknown")
    require(expression is not None or function in _COUNTS, "an aggregate is of nothing")
    require(expression is None or function != "count_units", "units are counted of a column")
    if expression is not None:
        check_expression(expression, tables)
    require(type(part["nullable"]) is bool, "nullable is neither true nor false")
    bounds = None if part["bounds"] is None else tuple(map(ratio, items(part["bounds"])))
    require(bounds is not None or function not in _NUMERIC, "an aggregate has no bounds")
    require(bounds is None or (len(bounds) == 2 and bounds[0] < bounds[1]), "bounds do not rise")
    step = None if part["step"] is None else ratio(part["step"])
    require(step is None or step > 0, "a step is not above 0")
    level = None if part["level"] is None else ratio(part["level"])
    if function == "quantile":
        require(level is not None and 0 < level < 1, "a quantile has no level")
    ends = tuple(map(ratio, items(part["ends"]))) if "ends" in part else None
    if ends is not None:
        ordered = level is not None and len(ends) == 2 and 0 < ends[0] <= level <= ends[1] < 1
        require(ordered and function == "quantile" and not bare, "ends are no levels")
    edges = () if part["edges"] is None else tuple(map(ratio, items(part["edges"])))
    if function == "cdf":
        require(len(edges) == 1, "a share has no point, or several")
        within = bounds is not None and bounds[0] <= edges[0] <= bounds[1]
        require(within, "the point of a share is outside of its bounds")
    if function == "histogram":
        require(len(edges) > 1 and all(a < b for a, b in pairwise(edges)), "bins do not rise")
    return Asked(
        name=name_in(part["name"]),
        function=function,
        expression=expression,
        bounds=bounds,  # type: ignore[arg-type]
        step=step,
        nullable=part["nullable"],
        level=level,
        edges=edges,
        intervals=not bare,
        ends=ends,
    )


def check_expression(expression: Any, tables: frozenset[str]) -> list[str]:
    """The columns that an expression names, of the table and of joined ones, if it is well formed.

    It is made of columns, constants, and known functions of them.
    """
    if isinstance(expression, list):
        require(bool(expression) and isinstance(expression[0], str), "an expression is malformed")
        require(expression[0] in _FUNCTIONS, "a function is unknown")
        least, most = _FUNCTIONS[expression[0]]
        require(least <= len(expression) - 1 <= most, "a function has the wrong arguments")
        return [name for argument in expression[1:] for name in check_expression(argument, tables)]
    require(isinstance(expression, Mapping), "an expression is malformed")
    if "column" not in expression:
        constant_of(expression)
        return []
    require(set(expression) <= {"column", "table"}, "a column is malformed")
    require("table" not in expression or expression["table"] in tables, "a table is not joined")
    return [name_in(expression["column"])]


_VALUE = frozenset(("type", "value"))


def constant_of(data: Any) -> object:
    """A public value as something that is equal exactly if type and value are.

    >>> constant_of({"type": "integer", "value": 1}), constant_of({"type": "text", "value": "1"})
    (('integer', 1), ('text', '1'))
    """
    whole = isinstance(data, dict | Mapping) and data.keys() == _VALUE  # dict: the quick way
    require(whole, "a value is malformed")
    kind, value = data["type"], data["value"]
    match kind:
        case "missing":
            require(value is None, "a missing value has a value")
            return ("missing",)
        case "boolean":
            require(type(value) is bool, "a truth value is none")
        case "integer":
            require(type(value) is int, "a whole number is none")
        case "number":
            return kind, ratio(value)
        case "text":
            require(isinstance(value, str), "a text is none")
        case "date":
            require(date.fromisoformat(value).isoformat() == value, "a date is written otherwise")
        case "timestamp":
            require(datetime.fromisoformat(value).isoformat() == value, "a time is malformed")
        case _:
            raise Rejected("a value is of an unknown type")
    return kind, value


def identity_of(expression: Any) -> object:
    """Something that is equal for equal expressions; 1, 1.0 and true are three constants."""
    if expression is None:
        return None
    if isinstance(expression, list):
        return (expression[0], *map(identity_of, expression[1:]))
    if "column" in expression:
        return "column", expression["column"], expression.get("table")
    return constant_of(expression)


def name_in(text: Any) -> str:
    """A name that is none but text."""
    require(isinstance(text, str) and bool(text), "a name is empty")
    return str(text)


def items(value: Any) -> list[Any]:
    """The items of a JSON list."""
    require(isinstance(value, list), "a list is none")
    return list(value)


_WEIGHT = 1 << 20
_GRID = 1 << 20
_CANDIDATES = 1 << 10
_MOST = 1 << 20
_MOST_SHARES = 1 << 10
_MANY_EDGES = 64
_CENTRED = ("mean", "variance", "std")


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the proof needs of the card."""

    unit: str | None
    max_rows: int
    max_groups: int | None
    change_one: bool
    groups: int | None

    @property
    def weight_one(self) -> int:
        return 1 if self.unit is None else _WEIGHT

    @property
    def total(self) -> int:
        return self.max_rows * self.weight_one

    @property
    def own_values(self) -> int:
        """How many values of a column one unit may name."""
        return self.max_rows if self.max_groups is None else min(self.max_rows, self.max_groups)

    @property
    def own_keys(self) -> int:
        """To how many groups one unit can belong."""
        if self.unit is None:
            return 1
        known = [number for number in (self.max_groups, self.groups) if number is not None]
        require(bool(known), "one unit could bring any number of keys to light")
        return min(known)


def facts_of(plan: Json, question: Question) -> Facts:
    """The card's facts as the plan names them, each within its limits."""
    unit, rows, groups = plan["unit"], plan["max_rows"], plan["max_groups"]
    require(unit is None or (isinstance(unit, str) and bool(unit)), "the unit has no name")
    require(type(rows) is int and 1 <= rows <= _MOST, "max_rows is out of range")
    limited = groups is None or (type(groups) is int and 1 <= groups <= _MOST)
    require(limited, "max_groups is out of range")
    if unit is None:
        require(rows == 1 and groups in (None, 1), "a row that is a unit has several rows")
    require(plan["neighbours"] in ("add-remove", "change-one"), "the neighbours are unknown")
    check_units(plan, question.units)
    return Facts(
        unit=unit,
        max_rows=rows,
        max_groups=groups,
        change_one=plan["neighbours"] == "change-one",
        groups=question.groups,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One integer vector: what a row brings to it."""

    kind: str
    expression: Any = None
    nullable: bool = True
    centre: Fraction = Fraction(0)
    step: Fraction = Fraction(1)
    lowest: int = 0
    highest: int = 0
    edges: tuple[Fraction, ...] = ()
    clamped: bool = True

    @property
    def largest(self) -> int:
        size = max(abs(self.lowest), abs(self.highest))
        sizes = {"values": size, "squares": size**2, "above": size, "below": size}
        return sizes.get(self.kind, 1)

    @property
    def identity(self) -> object:
        grid = (self.centre, self.step, self.lowest, self.highest)
        bins = (self.edges, self.clamped)
        return self.kind, identity_of(self.expression), self.nullable, grid, bins

    def json(self, name: str) -> dict[str, Any]:
        """As plans write it: many equal bins by the first edge, the last and their number."""
        edges: Any = [str(edge) for edge in self.edges]
        if len(self.edges) > _MANY_EDGES:
            first, last, bins = self.edges[0], self.edges[-1], len(self.edges) - 1
            width = (last - first) / bins
            if all(edge == first + width * i for i, edge in enumerate(self.edges)):
                edges = {"first": str(first), "last": str(last), "bins": bins}
        fields = {field: getattr(self, field) for field in self.__slots__}
        grid = {"centre": str(self.centre), "step": str(self.step)}
        return {"name": name, **fields, **grid, "edges": edges}


def measured_of(
    question: Question, *, closed: bool = False, ends: bool = False
) -> tuple[dict[str, Measured], list[dict[str, Any]]]:
    """The measures by name, and how each aggregate is made of them, as plans write it."""
    names: dict[object, str] = {}
    found: dict[str, Measured] = {}
    recipes = []
    centred = {part.value_key for part in question.aggregates if part.function in _CENTRED}
    shared = [ends or part.value_key in centred for part in question.aggregates]
    pairs = list(zip(question.aggregates, shared, strict=True))
    every = [list(_needed(part, shared=own, closed=closed)) for part, own in pairs]
    for part, own in zip(question.aggregates, every, strict=True):
        needed = {}
        for measure in _ends(own, every) if ends else own:
            name = names.setdefault(measure.identity, f"m{len(names) + 1}")
            found.setdefault(name, measure)
            needed[measure.kind] = name
        recipes.append({"aggregate": part.name, "function": part.function, "measures": needed})
    return found, recipes


def _ends(own: list[Measured], every: list[list[Measured]]) -> list[Measured]:
    """For rows and the one column of values that they serve, how far values are from both ends."""
    rows = {measure.identity for measure in own if measure.kind == "rows"}
    beside = [some for some in every if any(measure.identity in rows for measure in some)]
    served = {one.identity: one for some in beside for one in some if one.kind != "rows"}
    if [one.kind for one in served.values()] != ["values"]:
        return own
    (values,) = served.values()
    low, highest = values.centre + values.lowest * values.step, values.highest - values.lowest
    ends = replace(values, centre=low, lowest=0, highest=highest)
    return [replace(ends, kind="above"), replace(ends, kind="below")]


def moves_of(measure: Measured, facts: Facts) -> dict[str, int]:
    """The most by which it moves between neighbours, in three norms."""
    if measure.kind == "shares":
        times, root = 2 if facts.change_one else 1, isqrt(_WEIGHT**2 * measure.highest)
        return {"l1": times * root, "l2_squared": times * _WEIGHT**2, "linf": _WEIGHT}
    if measure.kind == "units":
        moved = (measure.highest or facts.own_keys) * (2 if facts.change_one else 1)
        if facts.groups is not None:
            moved = min(moved, facts.groups)
        return {"l1": moved, "l2_squared": moved, "linf": 1}
    total = facts.total * measure.largest
    if measure.kind == "distinct":
        total = facts.own_values
    if not facts.change_one:
        return {"l1": total, "l2_squared": total**2, "linf": total}
    if measure.kind == "values" and measure.lowest < 0 < measure.highest:
        return {"l1": 2 * total, "l2_squared": 4 * total**2, "linf": 2 * total}
    return {"l1": 2 * total, "l2_squared": 2 * total**2, "linf": total}


def selecting(written: Any, measures: Mapping[str, Measured], facts: Facts) -> Measured:
    """The measure, the last one of a plan, that exists to find undeclared keys alone."""
    require(facts.groups is None and facts.unit is not None, "a measure serves nothing")
    asked = {measure.kind for measure in measures.values()}
    require("units" not in asked, "units are counted twice")
    kind, own = written["kind"], written["highest"]
    require(kind in ("units", "shares"), "the query needs other measures")
    most = _MOST if facts.max_groups is None else facts.max_groups
    require(type(own) is int and 1 <= own <= most, "a unit chooses more keys than it may")
    apart = kind == "shares" and written["lowest"] == 2
    # a unit that changes could be counted with one key before and with several afterwards
    require(not apart or (own > 1 and not facts.change_one), "units with one key stand apart")
    return Measured(kind=kind, lowest=2 if apart else 0, highest=own)


def share_weights(first: int, own: int) -> dict[int, int]:
    """What a unit with K keys, first <= K <= own, adds to each of them: floor(W/sqrt(K))."""
    require(own <= _MOST_SHARES, "a unit has too many keys for shares")
    return {keys: isqrt(_WEIGHT**2 // keys) for keys in range(first, own + 1)}


def rank_moved(level: Fraction, facts: Facts) -> int:
    """How far the distances from a rank move, over all groups: `ranks.py`, Theorem 1."""
    a, d = level.numerator, level.denominator
    farther = max(a, d - a) * facts.total
    if not facts.change_one:
        return farther
    return d * facts.total if facts.groups == 1 else 2 * farther


def _needed(part: Asked, *, shared: bool, closed: bool) -> Iterator[Measured]:
    rows = Measured(kind="rows", nullable=False)
    if part.expression is not None and part.nullable:
        rows = Measured(kind="rows", expression=part.expression)
    match part.function:
        case "count":
            yield rows
        case "count_units":
            yield Measured(kind="units")
        case "count_distinct":
            yield Measured(kind="distinct", expression=part.expression)
        case "sum":
            yield _values(part, "values", centred=shared)
            if shared:
                yield rows
        case "histogram":
            yield Measured(kind="bins", expression=part.expression, edges=part.edges, clamped=False)
        case "quantile" | "cdf" | "min" | "max":
            edges = part.candidates(closed=closed)
            yield Measured(kind="bins", expression=part.expression, edges=edges)
        case _:
            yield _values(part, "values", centred=True)
            yield rows
            if part.function != "mean":
                yield _values(part, "squares", centred=True)


def _values(part: Asked, kind: str, *, centred: bool) -> Measured:
    """Values on the grid of multiples of the step around the centre, within the bounds."""
    assert part.bounds is not None
    low, high = part.bounds
    centre = (low + high) / 2 if centred else Fraction(0)
    if part.step is not None:
        centre = floor(centre / part.step) * part.step
    step = (high - low) / _GRID if part.step is None else part.step
    lowest, highest = ceil((low - centre) / step), floor((high - centre) / step)
    require(lowest < highest, "a step is as wide as the bounds")
    grid = {"centre": centre, "step": step, "lowest": lowest, "highest": highest}
    return Measured(kind=kind, expression=part.expression, nullable=part.nullable, **grid)  # type: ignore[arg-type]
