"""The table that the tests of the front ends ask, and a printer of questions as SQL."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from fractions import Fraction
from typing import Any

from lastbit.tables.card.column import Column
from lastbit.tables.card.schema import DataCard, PublicTable, Source
from lastbit.tables.query.expression import (
    Call,
    ColumnName,
    ColumnType,
    Constant,
    Expression,
    Value,
)
from lastbit.tables.query.query import Aggregate, Query


def column(name: str, kind: ColumnType, **values: Any) -> Column:
    return Column(name=name, type=kind, **values)


COLUMNS = (
    column("pid", "integer"),
    column("region", "text", keys=("north", "south")),
    column("Ward", "text"),
    column("age", "integer", bounds=(Fraction(0), Fraction(120)), step=Fraction(1)),
    column("cost", "number", bounds=(Fraction(0), Fraction(500)), nullable=False),
    column("free", "number"),
    column("many", "integer"),
    column("day", "date"),
    column("seen", "timestamp"),
    column("ok", "boolean"),
    column("odd name", "text"),
)
PUBLIC = PublicTable(
    name="regions",
    source=Source(kind="csv", paths=("regions.csv",)),
    columns={"region": "text", "zone": "text", "size": "integer", "since": "date"},
)
OTHER = PublicTable(
    name="wards",
    source=Source(kind="csv", paths=("wards.csv",)),
    columns={"ward": "text", "beds": "integer", "zone": "text"},
)


def card_with(**values: Any) -> DataCard:
    given: dict[str, Any] = {
        "name": "visits",
        "source": Source(kind="parquet", paths=("visits.parquet",)),
        "unit": "pid",
        "max_rows": 10,
        "max_groups": 3,
        "columns": {one.name: one for one in COLUMNS},
        "public": {"regions": PUBLIC, "wards": OTHER},
    }
    return DataCard(**(given | values))


CARD = card_with()

# one statement with nearly every kind of part that has a meaning here
EVERYTHING = (
    "WITH q AS (SELECT *, age * 2 + 1 - 3 AS twice FROM visits AS v WHERE v.ok) "
    'SELECT q.region AS r, lower(trim(q."Ward")) AS w, bin(q.age, 0, 18, 65) AS b, '
    "CASE WHEN q.age > 3 THEN 'a' ELSE 'b' END AS c, month(q.day) AS m, "
    "COUNT(*) AS n, COUNT(DISTINCT q.pid) AS u, SUM(q.age) FILTER (WHERE q.ok) AS s, "
    "PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY q.cost DESC) AS p, "
    "QUANTILE_CONT(q.age, 0.5) AS k, MEDIAN(q.age) AS e, HISTOGRAM(q.age, 0, 18) AS h, "
    "STDDEV(q.cost) AS d, MAX(q.age) AS x, "
    "COUNT_IF(q.age % 2 = 0) AS y, COUNT(DISTINCT q.ward) AS dw, "
    "APPROX_COUNT_DISTINCT(q.day) AS dd, 100.0 * SUM(q.cost) / NULLIF(COUNT(*), 0) AS f, "
    "CORR(q.age, q.cost) AS g, COVAR_SAMP(q.age, q.cost) AS i, REGR_SLOPE(q.cost, q.age) - 1 AS j "
    "FROM q JOIN regions AS t ON q.region = t.region "
    "WHERE (q.age BETWEEN 1 AND 99 OR NOT q.ok) AND q.ward IN ('a', 'b') "
    "AND q.ward LIKE 'x%' AND q.ward NOT ILIKE 'y' "
    "AND coalesce(q.free / 2, 0) >= power(q.many, 2) AND q.day < DATE '2020-01-01' "
    "AND q.ward || 'x' <> CONCAT('y', q.ward) AND q.free IS NOT NULL AND round(q.free, 1) = -1.5 "
    "AND substring(q.ward, 1, 2) = CAST(q.age AS TEXT) AND date_trunc('month', q.day) = q.day "
    "AND date_diff('day', q.day, q.seen) > 1 AND extract(year FROM q.day) = 2020 "
    "AND least(q.age, 3) = IF(q.ok, 1, NULL) AND NULLIF(q.age, 3) = 4 AND starts_with(q.ward, 'a') "
    "AND q.ok = TRUE AND q.twice > 0 AND strftime(q.seen, '%Y-%m') = '2020-01' "
    "AND week(q.day) = 1 AND width_bucket(q.age, 0, 100, 4) = 2 AND q.age // 10 = 3 "
    "AND monthname(q.day) = 'May' AND dayname(q.day) = 'Monday' AND minute(q.seen) = 1 "
    "AND second(q.seen) = 2 AND extract(isodow FROM q.day) = 1 AND date(q.seen) = q.day "
    "AND dayofyear(q.day) = 1 AND isodow(q.day) = 2 AND weekofyear(q.day) = 3 "
    "GROUP BY r, w, b, c, m HAVING n > 5 AND AVG(q.cost) > 1 "
    "ORDER BY n DESC, r, SUM(q.age) / COUNT(*) LIMIT 7"
)
# and what cannot stand in it
SHARES = "SELECT region AS r, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS s FROM visits GROUP BY r"
MOST_FREQUENT = "SELECT MODE(region) AS r FROM visits WHERE ok"
OF_KEYS = (
    "SELECT upper(ward) AS u, CASE WHEN age = 3 THEN 'x' ELSE ward END AS c, COUNT(*) AS n "
    "FROM visits GROUP BY ward, age, ok HAVING u <> 'A' AND n > 3 "
    "ORDER BY u DESC, n LIMIT 3"
)
DISTINCT_VALUES = (
    "SELECT region, SUM(DISTINCT age) AS s, 2 * AVG(DISTINCT age + 1) AS a FROM visits "
    "WHERE age < '90' AND ok = 1 GROUP BY region HAVING STDDEV(DISTINCT age) > 3"
)
KEYS_ALONE = "SELECT DISTINCT ward, age FROM visits ORDER BY ward LIMIT 3"
OVER_GROUPS = (
    "WITH s AS (SELECT region AS k, COUNT(*) AS n, SUM(age) AS m FROM visits GROUP BY k) "
    "SELECT k AS r, q.n, LOG(2, m / n) AS l FROM (SELECT * FROM s WHERE n > 1) AS q "
    "WHERE q.n > 100 AND k = 'north' ORDER BY q.m DESC, l + 1 LIMIT 5"
)
COMMAS = (
    "SELECT w.beds AS b, COUNT(*) AS n FROM wards AS w, regions AS r, visits AS v "
    "WHERE r.zone = w.zone AND v.region = r.region AND v.ok GROUP BY b"
)
JOINED = (
    "WITH v AS (SELECT * FROM visits WHERE ok) SELECT z, COUNT(*) AS n FROM "
    "(SELECT region AS k, zone AS z, size + 1 AS s FROM regions AS r WHERE r.size > 3) AS a "
    "JOIN wards AS w ON a.z = w.zone JOIN v ON v.region = a.k AND v.ward = w.ward "
    "WHERE w.beds > 2 AND a.s > 4 GROUP BY z"
)


# ---------------------------------------------------------------- a printer


def printed(query: Query) -> str:
    """The query as SQL text that asks it."""
    items = [f"{spelled(key.expression)} AS {quoted(key.name)}" for key in query.keys]
    items += [f"{aggregate(part)} AS {quoted(part.name)}" for part in query.aggregates]
    text = f"SELECT {', '.join(items)} FROM {quoted(query.table)}"
    for join in query.joins:
        same = ", ".join(quoted(b.name) for _, b in join.on)  # equal columns of one name, here
        text += f" JOIN {quoted(join.table)} USING ({same})"
    if query.where is not None:
        text += f" WHERE {spelled(query.where)}"
    if query.keys:
        text += f" GROUP BY {', '.join(spelled(key.expression) for key in query.keys)}"
    if query.having is not None:
        text += f" HAVING {spelled(query.having)}"
    if query.order:
        ways = (f"{quoted(o.name)}{' DESC' if o.descending else ''}" for o in query.order)
        text += f" ORDER BY {', '.join(ways)}"
    return text if query.limit is None else f"{text} LIMIT {query.limit}"


def aggregate(part: Aggregate) -> str:
    inside = "*" if part.expression is None else spelled(part.expression)
    if part.bounds is not None:
        inside = f"clamp({inside}, {number(part.bounds[0])}, {number(part.bounds[1])})"
    match part.function:
        case "count":
            return f"COUNT({inside})"
        case "count_units":
            return "COUNT(DISTINCT pid)"
        case "count_distinct":
            return f"COUNT(DISTINCT {inside})"
        case "quantile":
            assert part.level is not None
            return f"QUANTILE_CONT({inside}, {number(part.level)})"
        case "histogram":
            return f"HISTOGRAM({inside}, {', '.join(map(number, part.edges or ()))})"
    name = {"mean": "AVG", "variance": "VAR_POP", "std": "STDDEV_POP"}.get(part.function)
    return f"{name or part.function.upper()}({inside})"


def closed_bin(value: Expression, edges: Sequence[Any]) -> Call:
    """The bin of a value as SQL has it: the last one holds its upper edge."""
    *_, lower, last = constants = [Constant(edge) for edge in edges]
    inside = Call("case", (Call("=", (value, last)), lower, value))
    return Call("bin", (inside, *constants))


def spelled(expression: Expression) -> str:
    match expression:
        case Call("bin", (Call("case", (Call("=", (value, _)), _, same)), *edges)) if value == same:
            return called("bin", [spelled(part) for part in (value, *edges)])
        case ColumnName(name, None):
            return quoted(name)
        case ColumnName(name, str(table)):
            return f"{quoted(table)}.{quoted(name)}"
        case Constant(value):
            return constant(value)
    assert isinstance(expression, Call)
    return called(expression.function, [spelled(part) for part in expression.arguments])


def called(function: str, parts: list[str]) -> str:
    casts = {"to_integer": "BIGINT", "to_number": "DOUBLE", "to_text": "TEXT"}
    casts |= {"to_date": "DATE", "to_boolean": "BOOLEAN"}
    if not function[0].isalpha() or function in ("and", "or", "like", "ilike"):
        return f"({f' {function} '.join(parts)})"
    match function:
        case "negate":
            return f"(-{parts[0]})"
        case "not":
            return f"(NOT {parts[0]})"
        case "is_missing":
            return f"({parts[0]} IS NULL)"
        case "in":
            return f"({parts[0]} IN ({', '.join(parts[1:])}))"
        case "case":
            pairs = zip(parts[0::2], parts[1::2], strict=False)
            branches = " ".join(f"WHEN {test} THEN {value}" for test, value in pairs)
            otherwise = f" ELSE {parts[-1]}" if len(parts) % 2 else ""
            return f"CASE {branches}{otherwise} END"
    if function in casts:
        return f"CAST({parts[0]} AS {casts[function]})"
    return f"{function}({', '.join(parts)})"


def constant(value: Value) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case int() | Fraction():
            return number(value)
        case str():
            return "'" + value.replace("'", "''") + "'"
        case datetime():
            return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
        case date():
            return f"DATE '{value.isoformat()}'"


def number(value: int | Fraction) -> str:
    """An exact decimal; the denominators here are powers of 2 and 5."""
    exact = Fraction(value)
    places = 0
    while (exact * 10**places).denominator != 1:
        places += 1
    digits = str(abs(int(exact * 10**places))).rjust(places + 1, "0")
    text = f"{digits[:-places]}.{digits[-places:]}" if places else digits
    return f"(-{text})" if exact < 0 else text


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
