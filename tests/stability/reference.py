"""What a query's measures are, worked out row by row in Python: exact, slow and independent."""

import hashlib
import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

from lastbit.tables.measures import Measure, grid_of
from lastbit.tables.query.derived import columns_in
from lastbit.tables.query.expression import Call, ColumnName, Constant
from lastbit.tables.query.sub_query import derived_card
from lastbit.tables.query.types import card_types, type_of

WEIGHT = 1 << 20
INEXACT = frozenset(
    {
        "ln",
        "exp",
        "power",
        "round",
        "lower",
        "upper",
        "trim",
        "substring",
        "like",
        "ilike",
        "to_text",
    }
)
"""Functions that are left to the engine: their last bit, or their Unicode, is its own affair."""


def value(expression, row, kinds):
    """Of one row: a dict of (table, column) to int, float, str, bool, date or None."""
    match expression:
        case ColumnName(name, table):
            return row[table, name]
        case Constant(constant):
            return float(constant) if isinstance(constant, Fraction) else constant
    assert isinstance(expression, Call)
    found = [value(argument, row, kinds) for argument in expression.arguments]
    types = [type_of(argument, kinds) for argument in expression.arguments]
    result = applied(expression.function, found, types, type_of(expression, kinds))
    return None if isinstance(result, float) and math.isnan(result) else result


def applied(name, found, types, kind):
    match name:
        case "and":
            return False if False in found else None if None in found else True
        case "or":
            return True if True in found else None if None in found else False
        case "is_missing":
            return found[0] is None
        case "coalesce" | "least" | "greatest":
            present = [widened(v, kind) for v in found if v is not None]
            pick = {"coalesce": lambda vs: vs[0], "least": min, "greatest": max}[name]
            return pick(present) if present else None
        case "case":
            for condition, result in zip(found[0::2], found[1::2], strict=False):
                if condition is True:
                    return widened(result, kind)
            return widened(found[-1], kind) if len(found) % 2 else None
        case "in":
            if found[0] is None or not found[1:]:
                return None
            equal = [None if v is None else met(found[0], v) for v in found[1:]]
            return True if True in equal else None if None in equal else False
        case "concat":
            return "".join(v for v in found if v is not None)
        case "clamp":
            x, low, high = (widened(v, kind) for v in found)
            if x is None:
                return None
            return (
                low if low is not None and x < low else high if high is not None and x > high else x
            )
        case "bin":
            return binned(found, kind)
    if None in found:
        return None
    return strict(name, found, types, kind)


def binned(found, kind):
    x, *edges = found
    if x is None or x < edges[0]:
        return None
    for low, high in pairwise(edges):
        if x < high:
            return widened(low, kind)
    return None


def widened(v, kind):
    return float(v) if kind == "number" and v is not None else v


def met(a, b):
    return float(a) == float(b) if isinstance(a, float) != isinstance(b, float) else a == b


def strict(name, found, types, kind):
    """Functions that are missing as soon as an argument is."""
    if name in ("=", "<>", "<", "<=", ">", ">="):
        a, b = (float(v) for v in found) if "number" in types else found
        return {"=": a == b, "<>": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[name]
    match name:
        case "not":
            return not found[0]
        case "length":
            return len(found[0])
        case "contains":
            return found[1] in found[0]
        case "starts_with":
            return found[0].startswith(found[1])
        case "year" | "month" | "day":
            return getattr(found[0], name)
        case "weekday":
            return (found[0].weekday() + 1) % 7
        case "quarter":
            return (found[0].month + 2) // 3
        case "start_of_month":
            return found[0].replace(day=1)
        case "start_of_quarter":
            return found[0].replace(day=1, month=(found[0].month - 1) // 3 * 3 + 1)
        case "week":
            return found[0].isocalendar().week
        case "iso_weekday":
            return found[0].isoweekday()
        case "strftime":
            names = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
            assert found[1] == "%A %d"
            return f"{names[found[0].weekday()]} {found[0].day:02}"
        case "days_between":
            return (found[1] - found[0]).days
        case "sqrt":
            return math.sqrt(found[0]) if found[0] >= 0 else None
        case "to_integer":
            return to_integer(found[0])
        case "to_number":
            return float(found[0])
    return number(name, found, kind)


def to_integer(v):
    if isinstance(v, bool | int):
        return int(v)
    return fits(round(Fraction(v))) if math.isfinite(v) else None


def fits(v):
    return v if -(2**63) <= v < 2**63 else None


def number(name, found, kind):
    if kind == "integer":
        return whole(name, found)
    a, *rest = (float(v) for v in found)
    match name:
        case "negate":
            return -a
        case "abs":
            return abs(a)
        case "floor" | "ceil":
            return float(getattr(math, name)(a)) if math.isfinite(a) else a
    for b in rest:
        if name in ("/", "%") and b == 0:
            return None
        match name:
            case "+":
                a = a + b
            case "-":
                a = a - b
            case "*":
                a = a * b
            case "/":
                a = a / b
            case "%":
                a = math.fmod(a, b) if math.isfinite(a) else math.nan
    return a


def whole(name, found):
    a, *rest = found
    match name:
        case "negate":
            return fits(-a)
        case "abs":
            return fits(abs(a))
        case "floor" | "ceil":
            return a
    for b in rest:
        if a is None:
            return None
        match name:
            case "+":
                a = fits(a + b)
            case "-":
                a = fits(a - b)
            case "*":
                a = fits(a * b)
            case "%":
                least = (a, b) == (-(2**63), -1)  # overflows on the way
                a = None if b == 0 or least else abs(a) % abs(b) * (-1 if a < 0 else 1)
    return a


# ---------------------------------------------------------------- measures


def measured(query, card, measures, rows, public, secret):
    """{measure: {key: int, or list for bins}} and {key: number of units}."""
    if query.per_unit is not None:
        rows = per_unit(query.per_unit, card, rows, public, secret)
    kinds = card_types(derived_card(card, query.per_unit))
    tables = {**public, **chosen_rows(query, card, public, secret)}
    joined = [r for row in rows for r in with_public(query, card, row, tables, kinds)]
    kept = []
    for row in joined:
        unit = object() if card.unit is None else row[None, card.unit]
        where = query.where is None or value(query.where, row, kinds) is True
        key = tuple(value(k.expression, row, kinds) for k in query.keys)
        known = all(k.values is None or v in k.values for k, v in zip(query.keys, key, strict=True))
        if unit is not None and where and known:
            kept.append((unit, key, row))
    counts = {}
    for unit, _, _ in kept:
        counts[unit] = counts.get(unit, 0) + 1
    found = {m.name: {} for m in measures}
    units = {key: set() for _, key, _ in kept}
    own = {}
    for unit, key, _ in kept:
        own.setdefault(unit, set()).add(key)
    for unit, key, _ in chosen(query, card, measures, kept, secret):
        units[key].add(unit)
    for unit, key, row in kept:
        n, k = counts[unit], card.max_rows
        weight = 1 if card.unit is None else WEIGHT if n <= k else k * WEIGHT // n
        for m in measures:
            add(found[m.name], m, key, weight, row, kinds)
    numbers = {key: len(who) for key, who in units.items()}
    if any(m.kind == "shares" for m in measures):
        most = limit(card, measures)
        part = {u: math.isqrt(WEIGHT**2 // min(len(keys), most)) for u, keys in own.items()}
        if any(m.kind == "shares" and m.lowest for m in measures):
            alone = {u for u, keys in own.items() if len(keys) == 1}
            found["single"] = {key: len(who & alone) for key, who in units.items()}
            units = {key: who - alone for key, who in units.items()}
        numbers = {key: sum(part[u] for u in who) for key, who in units.items()}
    for m in measures:
        if m.kind in ("units", "shares"):
            found[m.name] = numbers
    for place, m in enumerate((m for m in measures if m.kind == "distinct"), start=1):
        found[m.name] = distinct(card, m, kept, kinds, f"{secret} {place}")
    return found, numbers


def distinct(card, m, kept, kinds, secret):
    """{key: number of different values}, of those that each unit names: its least by hash."""
    own = {}
    for unit, key, row in kept:
        v = value(m.expression, row, kinds)
        if v is not None:
            own.setdefault(unit, set()).add((key, v))
    most = min(card.max_rows, card.max_groups or card.max_rows)
    named = set()
    for unit, pairs in own.items():
        least = sorted(pairs, key=lambda pair, who=unit: hashed(secret, who, *pair[0], pair[1]))
        named |= set(least[:most]) if card.unit is not None else pairs
    found = {}
    for key, _ in named:
        found[key] = found.get(key, 0) + 1
    return found


def with_public(query, card, row, public, kinds):
    found = [row]
    for join in query.joins:
        names = [other.name for _, other in join.on]
        table = public[join.table]
        if card.unit is None:
            seen = [tuple(line[join.table, n] for n in names) for line in table]
            table = [line for line, key in zip(table, seen, strict=True) if seen.count(key) == 1]
        found = [
            r | line
            for r in found
            for line in table
            if all(
                line[join.table, other.name] is not None
                and value(own, r, kinds) == line[join.table, other.name]
                for own, other in join.on
            )
        ]
    return found


def chosen_rows(query, card, tables, secret):
    """Of private tables, the rows of each unit that may be joined: max_rows of least hash."""
    sides = [side for join in query.joins for pair in join.on for side in pair]
    inner = getattr(query, "per_unit", None)  # chooses for itself, by what it mentions
    own = query if inner is None else replace(query, per_unit=None)
    mentioned = {column for e in (*own.expressions(), *sides) for column in columns_in(e)}
    found = {}
    for name, private in card.private.items():
        columns = sorted({c.name for c in mentioned if c.table == name}, key=str.lower)
        owners = {}
        for line in tables[name]:
            owners.setdefault(line[name, private.unit], []).append(line)
        owners.pop(None, None)
        found[name] = [
            line
            for lines in owners.values()
            for line in sorted(
                lines, key=lambda line: hashed(secret, *(line[name, c] for c in columns))
            )[: private.max_rows]
        ]
    return found


def per_unit(inner, card, rows, public, secret):
    """The rows of a sub-query grouped by the unit."""
    kinds = card_types(card)
    tables = {**public, **chosen_rows(inner, card, public, secret)}
    groups = {}
    joined = [r for row in rows for r in with_public(inner, card, row, tables, kinds)]
    for row in joined:
        unit = row[None, card.unit]
        if unit is None or (inner.where is not None and value(inner.where, row, kinds) is not True):
            continue
        key = tuple(value(k.expression, row, kinds) for k in inner.keys)
        groups.setdefault((unit, key), []).append(row)
    found = []
    for (unit, key), own in groups.items():
        line = {(None, card.unit): unit}
        line |= {(None, k.name): v for k, v in zip(inner.keys, key, strict=True)}
        line |= {(None, part.name): of_unit(part, own, kinds) for part in inner.columns}
        found.append(line)
    return found


def of_unit(part, rows, kinds):
    if part.expression is None:
        return len(rows)
    values = [v for row in rows if (v := value(part.expression, row, kinds)) is not None]
    values = [v + 0.0 if isinstance(v, float) else v for v in values]  # -0 is 0
    match part.function:
        case "count":
            return len(values)
        case "count_distinct":
            return len(set(values))
        case "min" | "max":
            return {"min": min, "max": max}[part.function](values, default=None)
    if not values:
        return None
    whole, step, integers = type_of(part.expression, kinds) == "integer", Fraction(1), values
    if part.bounds is not None:
        given = part.step or (Fraction(1) if whole else None)
        step, low, high = grid_of(part.bounds, given, centre=Fraction(0))
        steps = Measure(name="", kind="values", step=step, lowest=low, highest=high)
        integers = [grid(steps, v, "integer" if whole else "number") for v in values]
    total = sum(integers)
    if part.function == "sum" and whole and step == 1:
        return fits(total)
    number = double(total) / (len(values) if part.function == "mean" else 1)
    return number * float(step)


def double(total):
    """A number of 128 bits as the engine makes it a double: exactly, below 2**53."""
    high, low = divmod(total, 1 << 64)
    if high == -1:
        return -float((1 << 64) - 1 - low) - 1.0
    return float(low) + float(high) * 2.0**64


def chosen(query, card, measures, kept, secret):
    declared = all(k.values is not None for k in query.keys)
    groups = math.prod(len(k.values) for k in query.keys) if declared else None
    if card.unit is None or (declared and not any(m.kind == "units" for m in measures)):
        return kept
    if groups is not None and (card.max_groups is None or card.max_groups >= groups):
        return kept
    most, hashes = limit(card, measures), {}
    for unit, key, _ in kept:
        hashes.setdefault(unit, {})[key] = hashed(secret, unit, *key)
    least = {unit: sorted(own.values())[:most] for unit, own in hashes.items()}
    return [line for line in kept if hashes[line[0]][line[1]] in least[line[0]]]


def limit(card, measures):
    """To how many keys a unit is limited: by a measure of its own, or by the card."""
    return next((m.highest for m in measures if m.name == "q"), card.max_groups)


def hashed(secret, *values):
    text = f"{secret}:".encode()
    for v in values:
        raw = {True: "true", False: "false"}[v] if isinstance(v, bool) else str(v)
        text += b"-" if v is None else f"{len(raw.encode())}:{raw}".encode()
    return hashlib.md5(text).hexdigest()


def add(found, m, key, weight, row, kinds):
    if m.kind in ("units", "shares", "distinct"):
        return
    v = None if m.expression is None else value(m.expression, row, kinds)
    if m.kind == "bins":
        place = None if v is None else bin_of(m, v)
        entry = found.setdefault(key, [0] * (len(m.edges) - 1))
        if place is not None:
            entry[place] += weight
        return
    if m.kind == "rows":
        integer = 1 if m.expression is None or v is not None else 0
    else:
        kind = type_of(m.expression, kinds)
        integer = 0 if v is None else grid(m, v, kind) ** (2 if m.kind == "squares" else 1)
        if m.kind in ("above", "below") and v is None and not m.nullable:
            integer = m.highest // 2
        if m.kind == "below" and not (v is None and m.nullable):
            integer = m.highest - integer
    found[key] = found.get(key, 0) + weight * integer


def grid(m, v, kind):
    if kind == "integer" and m.step == 1 and m.centre.denominator == 1:
        steps = v - int(m.centre)
    else:
        quotient = (float(v) - float(m.centre)) / float(m.step)
        if math.isinf(quotient):
            return m.highest if quotient > 0 else m.lowest
        steps = math.floor(abs(Fraction(quotient)) + Fraction(1, 2)) * (-1 if quotient < 0 else 1)
    return min(max(steps, m.lowest), m.highest)


def bin_of(m, v):
    last = len(m.edges) - 2
    if isinstance(v, float) and math.isinf(v):
        return (last if v > 0 else 0) if m.clamped else None
    exact = Fraction(v)
    if not m.clamped and not m.edges[0] <= exact <= m.edges[-1]:
        return None
    return sum(exact >= edge for edge in m.edges[1:-1])
