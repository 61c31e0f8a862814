"""Certificates as a malicious planner writes them: genuine ones, mutated, composed and resealed."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from fractions import Fraction
from typing import Any

from lastbit.checker.numbers import digest
from tests.kernel.genuine import Genuine

Json = Any
JUNK: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 1.0, 0.5, 1e300, 10**30, -(10**30), "", "0", "1", "-1", "x",
    "1/2", "2/4", "1.0", " 1", "+1", "1e3", "\u0663", "1/0", "9" * 60, "9" * 4001, "\ud800", "a\0b",
    "1p9001", [], {}, [[]], [None], ["+"], {"column": "who"}, {"type": "integer", "value": True},
    {"type": "missing", "value": None}, {"first": "0", "last": "1", "bins": 10**12},
    {"first": "0", "last": "5", "bins": -3}, {"first": "0", "last": "5", "bins": 0},
    {"first": "5", "last": "0", "bins": 100}, {"first": "0", "last": "5", "bins": True},
)  # fmt: skip
PRICES = ("epsilon", "delta", "rho")


def places(data: Json) -> Iterator[tuple[Any, Any]]:
    """Every container with each of its keys."""
    items = data.items() if isinstance(data, dict) else enumerate(data)
    for key, value in items:
        yield data, key
        if isinstance(value, dict | list):
            yield from places(value)


def nested(depth: int) -> Any:
    found: Any = {"column": "x"}
    for _ in range(depth):
        found = ["negate", found]
    return found


def is_number(value: Any) -> bool:
    if type(value) is int:
        return True
    try:
        return isinstance(value, str) and len(value) < 300 and bool(Fraction(value) or 1)
    except (ValueError, ZeroDivisionError):
        return False


def other_number(rng: random.Random, value: Any) -> Any:
    """The same number up, down, or written otherwise."""
    number = Fraction(value)
    few = (0, 1, 2, -1, Fraction(1, 2), Fraction(999, 1000), Fraction(1001, 1000), 10, 10**9)
    changed = number * rng.choice(few) + rng.choice((0, 0, 0, 1, -1, Fraction(1, 10**9)))
    if type(value) is int:
        whole = int(changed)
        return rng.choice(
            (whole, whole, whole, float(min(whole, 10**300)), str(whole), bool(whole))
        )
    spelled = f"{2 * changed.numerator}/{2 * changed.denominator}"
    return rng.choice((str(changed),) * 6 + (spelled, f"{changed.numerator}", float(number) ** 0))


# ---------------------------------------------------------------- blind mutations


def change_number(rng: random.Random, data: Json, _: Json) -> None:
    found = [(where, key) for where, key in places(data) if is_number(where[key])]
    where, key = rng.choice(found)
    where[key] = other_number(rng, where[key])


def put_junk(rng: random.Random, data: Json, _: Json) -> None:
    where, key = rng.choice(list(places(data)))
    where[key] = copy.deepcopy(rng.choice((*JUNK, nested(40), nested(150))))


def leave_out(rng: random.Random, data: Json, _: Json) -> None:
    where, key = rng.choice(list(places(data)))
    del where[key]


def add_unknown(rng: random.Random, data: Json, other: Json) -> None:
    found = [where[key] for where, key in places(data) if isinstance(where[key], dict)]
    where, more = rng.choice(found), rng.choice(list(places(other)))
    names = ("private", "per_unit", "mu", "mu_squared", "single", "order", "derived", "shown")
    name = rng.choice((*names, "intervals", "table", "digest", str(more[1])))
    where[name] = copy.deepcopy(rng.choice((True, {}, more[0][more[1]])))


def reorder(rng: random.Random, data: Json, _: Json) -> None:
    lists = [where[key] for where, key in places(data) if isinstance(where[key], list)]
    found = rng.choice([one for one in lists if one] or [[]])
    how = rng.randrange(4)
    if how == 0:
        rng.shuffle(found)
    elif how == 1 and found:
        found.append(copy.deepcopy(rng.choice(found)))
    elif how == 2 and found:
        found[rng.randrange(len(found))] = copy.deepcopy(rng.choice(found))
    else:
        found.reverse()


def swap_subtree(rng: random.Random, data: Json, other: Json) -> None:
    """A part of another plan in the place of the same, or of any, part of this one."""
    theirs = list(places(other))
    where, key = rng.choice(list(places(data)))
    alike = [(w, k) for w, k in theirs if k == key]
    there, name = rng.choice(alike or theirs)
    where[key] = copy.deepcopy(there[name])


def swap_whole(rng: random.Random, data: Json, other: Json) -> None:
    """Query, parts, measures, price or all of the plan of another."""
    ours, theirs = data["body"], other["body"]
    names = rng.sample(list(theirs["plan"]), rng.randrange(1, 4))
    match rng.randrange(4):
        case 0:
            ours["query"] = copy.deepcopy(theirs["query"])
        case 1:
            data["claim"] = copy.deepcopy(other["claim"])
        case 2:
            ours["plan"] |= {name: copy.deepcopy(theirs["plan"][name]) for name in names}
        case _:
            ours["plan"], ours["moves"] = copy.deepcopy((theirs["plan"], theirs["moves"]))


# ---------------------------------------------------------------- mutations that keep the form


def rename_all(rng: random.Random, data: Json, _: Json) -> None:
    """One text becomes another wherever it stands: names of tables, columns, keys, units."""
    texts = {where[key] for where, key in places(data) if isinstance(where[key], str)}
    names = sorted(text for text in texts if 0 < len(text) < 12 and not is_number(text))
    old = rng.choice(names)
    new = rng.choice((old.upper(), old.title(), rng.choice(names), old + " ", old + "\u0307"))
    for where, key in list(places(data)):
        if where[key] == old:
            where[key] = new
    for where, key in list(places(data)):
        if isinstance(where[key], dict) and old in where[key]:
            where[key][new] = where[key].pop(old)


def drop_private(rng: random.Random, data: Json, _: Json) -> None:
    """A private table passes for a public one, or the other way round."""
    plan, query = data["body"]["plan"], data["body"]["query"]
    joins = [*query["joins"], *query.get("per_unit", {"joins": []})["joins"]]
    for join in joins:
        if join.pop("private", None) is None and rng.random() < 0.5:
            join["private"] = True
    for where in (data["claim"], plan):
        if where.pop("private", None) is None and joins:
            where["private"] = {joins[0]["table"]: {"unit": "who", "max_rows": 1}}


def change_join(rng: random.Random, data: Json, _: Json) -> None:
    """Other columns are compared than the unit's."""
    joins = data["body"]["query"]["joins"]
    if joins:
        pair = rng.choice(rng.choice(joins)["on"])
        pair[rng.randrange(2)] = rng.choice(
            ({"column": "x"}, {"column": "code", "table": "labs"}, {"column": "WHO"}, nested(1))
        )


def drop_sub_query(rng: random.Random, data: Json, other: Json) -> None:
    query = data["body"]["query"]
    if query.pop("per_unit", None) is None and "per_unit" in other["body"]["query"]:
        query["per_unit"] = copy.deepcopy(other["body"]["query"]["per_unit"])
        data["claim"]["per_unit"] = True
    else:
        data["claim"].pop("per_unit", None)


def change_expression(rng: random.Random, data: Json, other: Json) -> None:
    """A measure, or an aggregate, or both, of another expression."""
    query, plan = data["body"]["query"], data["body"]["plan"]
    new = rng.choice(({"column": "y"}, {"column": "x"}, nested(2), ["*", nested(0), nested(0)]))
    measured = [m for m in plan["measures"] if m["expression"] is not None]
    asked = [a for a in query["aggregates"] if a["expression"] is not None]
    if measured and asked:
        old = rng.choice(asked)["expression"]
        for one in (
            *(asked if rng.random() < 0.7 else ()),
            *(measured if rng.random() < 0.7 else ()),
        ):
            if one["expression"] == old:
                one["expression"] = copy.deepcopy(new)
    if rng.random() < 0.5:
        query["where"] = copy.deepcopy(rng.choice((None, ["not", nested(0)], nested(3))))


def move_limits(rng: random.Random, data: Json, _: Json) -> None:
    """Others limits on rows and groups, all that follows from max_rows scaled, or not."""
    body = data["body"]
    plan, factor = body["plan"], rng.choice((2, 3, Fraction(1, 3), Fraction(1, 2)))
    which = rng.randrange(3)
    if which == 0 and type(plan["max_rows"]) is int:
        plan["max_rows"] = max(1, int(plan["max_rows"] * factor))
        if rng.random() < 0.7:
            _scale_moves(body, factor)
    elif which == 1:
        plan["max_groups"] = rng.choice((None, 1, 2, 3, 100, 1 << 20))
    else:
        plan["neighbours"] = data["claim"]["neighbours"] = rng.choice(("add-remove", "change-one"))


def _scale_moves(body: Json, factor: Fraction | int) -> None:
    """All moves and sensitivities of kinds that follow max_rows, and epsilon with them or not."""
    for moves in body["moves"].values():
        for norm, text in moves.items():
            times = factor**2 if norm == "l2_squared" else factor
            moves[norm] = str(Fraction(text) * times)
    for part in body["plan"]["parts"]:
        for norm, text in part.get("sensitivity", {}).items():
            times = factor**2 if norm == "l2_squared" else factor
            part["sensitivity"][norm] = str(Fraction(text) * times)


def reprice(rng: random.Random, data: Json, _: Json) -> None:
    """More or less noise in one part, its price and the sum as they follow; or a bit less."""
    plan = data["body"]["plan"]
    part = rng.choice(plan["parts"])
    name = next((n for n in ("scale", "variance", "rate") if n in part), None)
    currency = next((n for n in ("rho", "epsilon") if isinstance(part.get(n), str)), None)
    if name is None or currency is None:
        return
    factor = Fraction(rng.choice((1, 1, 2, 3, 10)), rng.choice((1, 1, 2, 3, 7)))
    before, old = Fraction(part[currency]), Fraction(part[name])
    part[name] = str(old * factor)
    if name == "rate":
        after = before * factor ** (2 if currency == "rho" else 1)
        if part["epsilon"] is not None:
            part["epsilon"] = str(Fraction(part["epsilon"]) * factor)
    else:
        after = before / factor
    part[currency] = str(after)
    if "mu_squared" in part:
        part["mu_squared"] = str(Fraction(part["mu_squared"]) / factor * rng.choice((1, 2)))
    if plan["conversion"] is None or currency in plan["conversion"]:
        raise_price(data, currency, after - before, rng)


def raise_price(data: Json, currency: str, more: Fraction, rng: random.Random) -> None:
    plan = data["body"]["plan"]
    less = rng.choice((0, 0, Fraction(1, 10**9)))
    for where in (plan["cost"], plan["asked"], data["claim"]):
        if isinstance(where.get(currency), str):
            where[currency] = str(Fraction(where[currency]) + more - less)
    conversion = plan["conversion"]
    if conversion and currency in conversion:
        conversion[currency] = str(Fraction(conversion[currency]) + more - less)


def reselect(rng: random.Random, data: Json, _: Json) -> None:
    """Keys found by less noise or from a lower threshold, at a delta as large as that may need."""
    plan = data["body"]["plan"]
    parts = [part for part in plan["parts"] if part["part"] == "keys"]
    if not parts:
        return
    part, looser = parts[0], Fraction(10) ** rng.randrange(5)
    lower = (1, 1, 2, Fraction(9, 10), Fraction(3, 4), Fraction(1, 2), Fraction(1, 10))
    part["threshold"] = int(part["threshold"] * rng.choice(lower))
    if "tail" in part:
        part["tail"] = str(min(Fraction(part["tail"]) * looser, Fraction(1, 2)))
    before = Fraction(part["delta"])
    after = min(before * looser * rng.choice((1, 2)), Fraction(2, 3))
    part["delta"] = str(after)
    factor = Fraction(rng.choice((1, 1, 2, 3)), rng.choice((1, 1, 2, 3)))
    for name in ("scale", "variance"):
        if name in part:
            part[name] = str(Fraction(part[name]) * factor)
    for name in ("rho", "mu_squared", "epsilon"):
        if isinstance(part.get(name), str) and (name != "epsilon" or "scale" in part):
            part[name] = str(Fraction(part[name]) / factor * rng.choice((1, Fraction(101, 100))))
    if "mu" in part and factor < 1:
        part["mu"] = str(Fraction(part["mu"]) / factor)
    if "single" in part and rng.random() < 0.7:
        single = part["single"]
        single["threshold"] = int(single["threshold"] * rng.choice(lower))
        single["scale"] = str(Fraction(single["scale"]) * rng.choice(lower))
    raise_price(data, "delta", after - before, rng)
    currency = "rho" if Fraction(plan["cost"]["rho"]) else "epsilon"
    raise_price(data, currency, Fraction(rng.choice((0, 0, 1, 5))), rng)


def change_price(rng: random.Random, data: Json, _: Json) -> None:
    """The price of all, in one place or in all of them; or another currency."""
    currency = rng.choice(PRICES)
    more = rng.choice((1, -1, Fraction(1, 10**6), Fraction(-1, 10**6), Fraction(1, 3)))
    raise_price(data, currency, Fraction(more), rng)
    if rng.random() < 0.2:
        plan, other = data["body"]["plan"], rng.choice(PRICES)
        for where in (plan["cost"], plan["asked"], data["claim"]):
            where[currency], where[other] = where.get(other), where.get(currency)


def change_keys(rng: random.Random, data: Json, _: Json) -> None:
    """Declared keys become undeclared, twice declared, of another type, or fewer."""
    keys = data["body"]["query"]["keys"]
    if not keys:
        return
    key = rng.choice(keys)
    values = key["values"]
    match rng.randrange(5):
        case 0:
            key["values"] = None if values else [{"type": "text", "value": "a"}]
        case 1 if values:
            values.append(copy.deepcopy(rng.choice(values)))
        case 2 if values:
            values.append({"type": "integer", "value": 7})
        case 3 if values:
            values.pop()
        case _:
            keys.append(copy.deepcopy(key))
    groups: int | None = 1
    for one in keys:
        groups = None if one["values"] is None or groups is None else groups * len(one["values"])
    data["body"]["plan"]["groups"] = groups


def loosen(rng: random.Random, data: Json, _: Json) -> None:
    """More noise, higher thresholds, a higher price: what an honest but wasteful planner writes."""
    plan = data["body"]["plan"]
    for part in plan["parts"]:
        if rng.random() < 0.5:
            continue
        times = rng.choice((2, Fraction(3, 2), 10))
        for name in ("scale", "variance"):
            if name in part and part["part"] != "keys":
                part[name] = str(Fraction(part[name]) * times)
        if type(part.get("threshold")) is int:
            part["threshold"] += rng.randrange(3)
    rng.shuffle(plan["parts"]) if "marginals" not in plan else None
    if rng.random() < 0.5:
        raise_price(data, rng.choice(PRICES), Fraction(1, rng.choice((2, 10**8))), rng)


Mutation = Callable[[random.Random, Any, Any], None]
MUTATIONS: tuple[Mutation, ...] = (
    change_number, change_number, put_junk, leave_out, add_unknown, reorder, swap_subtree,
    swap_whole, rename_all, rename_all, drop_private, change_join, drop_sub_query,
    change_expression, move_limits, reprice, reprice, reprice, change_price, change_keys, loosen,
    loosen, reselect, reselect, reselect,
)  # fmt: skip


def reseal(data: Json) -> None:
    """The digests as they follow, so that no mutant is refused for those alone."""
    body, claim = data["body"], data["claim"]
    body["plan"]["query"] = claim["query"] = digest(body["query"])
    body["plan_digest"] = digest(body["plan"])


def spoil_text(rng: random.Random, text: str) -> str:
    """What no dictionary can hold: names twice, other numbers, depth, other encodings."""
    at = rng.randrange(len(text))
    match rng.randrange(8):
        case 0:
            return text.replace('"epsilon": ', '"epsilon": "0", "epsilon": ', rng.randrange(1, 4))
        case 1:
            return text.replace('"max_rows": ', '"max_rows": 1, "max_rows": ', 1)
        case 2:
            return text.replace("null", rng.choice(("NaN", "Infinity", "1e999", "-0")), 1)
        case 3:
            return text[:at] + rng.choice('[]{}",:\\0\x00\ufeff') + text[at:]
        case 4:
            return "[" * 5000 + text + "]" * 5000
        case 5:
            return text[:at]
        case 6:
            return text.replace("1048576", "1048576.0", 1)
        case _:
            return text.replace('"body"', '"Body"', 1) + " " * 10


def hostile_texts(
    genuine: tuple[Genuine, ...], rng: random.Random, number: int
) -> Iterator[tuple[str, str, Genuine]]:
    """Mutants: which mutations, the text, and by whose card it is asked."""
    for _ in range(number):
        own, other = rng.choice(genuine), rng.choice(genuine)
        data, names = copy.deepcopy(own.data), []
        for mutate in rng.choices(MUTATIONS, k=rng.choice((1, 1, 1, 2, 2, 3, 5))):
            names.append(mutate.__name__)
            with suppress(LookupError, TypeError, ValueError, AttributeError, ArithmeticError):
                mutate(rng, data, other.data)  # unless an earlier mutation left nothing to mutate
        if rng.random() < 0.95:
            try:
                reseal(data)
            except (LookupError, TypeError, ValueError, AttributeError):
                names.append("not sealed")
        text = json.dumps(data)
        if rng.random() < 0.05:
            names.append("text")
            text = spoil_text(rng, text)
        asked_by = other if rng.random() < 0.1 else own
        yield " ".join(names), text, asked_by
