"""Expressions that would be slow, large or fatal for one chosen row and cheap for all others.

Each has one row do the work, by CASE, AND, COALESCE or a value of its own: overflow at each level,
texts that double, patterns that go back, casts that fail, deep and wide trees of every function.
"""

from contextlib import suppress
from fractions import Fraction

from lastbit.errors import QueryRefused
from lastbit.tables.card.column import Column
from lastbit.tables.card.schema import DataCard, Source
from lastbit.tables.limits import DEEPEST, LONGEST_TEXT
from lastbit.tables.query.expression import Call, ColumnName, ColumnType, Constant
from lastbit.tables.query.query import Aggregate, Query

CHOSEN = "Alice"
TYPES: dict[str, ColumnType] = {
    "who": "integer",
    "name": "text",
    "age": "integer",
    "cost": "number",
    "note": "text",
    "day": "date",
}
NAME, AGE, COST, NOTE, DAY = (ColumnName(name) for name in ("name", "age", "cost", "note", "day"))
IS_CHOSEN = Call("=", (NAME, Constant(CHOSEN)))
BIG, LONG = Constant(2**62), Constant("ab" * (LONGEST_TEXT // 2))
WHOLE = ("+", "-", "*", "%", "negate", "abs")
REAL = ("/", "sqrt", "ln", "exp", "power", "round", "floor", "ceil")
LENGTHS = ("lower", "upper", "trim")


def card(unit="who", **fields):
    """A card of the table that these expressions are about."""
    columns = {name: Column(name=name, type=kind) for name, kind in TYPES.items()}
    given = {"name": "people", "source": Source(kind="frame"), "unit": unit, "columns": columns}
    return DataCard(**(given | {"max_rows": 1} | fields))


def only_if_chosen(rng, value, other):
    """The value for the chosen row only, in one of the ways that a branch can be asked for."""
    match rng.randrange(4):
        case 0:
            return Call("case", (IS_CHOSEN, value, other))
        case 1:
            return Call("case", (Call("not", (IS_CHOSEN,)), other, value))
        case 2:
            return Call("coalesce", (Call("case", (Call("not", (IS_CHOSEN,)), other)), value))
        case _:
            return Call(
                "case",
                (Call("or", (Call("<>", (NAME, Constant(CHOSEN))), Constant(False))), other, value),
            )


def overflowing(rng, depth):
    """Overflows at each level, and starts again: 2**depth evaluations under nested TRY."""
    start = only_if_chosen(rng, BIG, Constant(0))
    found = start
    while found.depth + 2 <= min(depth, DEEPEST - 3):
        function = rng.choice(("*", "+", "-", "negate"))
        inner = (
            (found,)
            if function == "negate"
            else (found, Constant(rng.choice((9, 2**62, -(2**62)))))
        )
        found = Call("coalesce", (Call(function, inner), only_if_chosen(rng, BIG, Constant(0))))
        if found.calls > 200:
            break
    return found


def numeric(rng, depth):
    """Any functions of numbers, of a value that only the chosen row has."""
    found = only_if_chosen(
        rng, rng.choice((COST, Constant(Fraction(10) ** 300), Constant(Fraction(-1, 3)))), COST
    )
    while found.depth < min(depth, DEEPEST - 4):
        function = rng.choice((*REAL, "clamp", "least", "+", "*", "case"))
        other = rng.choice(
            (Constant(rng.choice((-1, 0, 7, 400))), COST, found if found.calls < 60 else COST)
        )
        match function:
            case "clamp":
                found = Call(function, (found, Constant(-(2**53)), Constant(2**53)))
            case "case":
                found = (
                    Call("case", (Call("<", (found, other)), found, other))
                    if found.calls < 60
                    else found
                )
                found = Call("abs", (found,))
            case "/" | "power" | "least" | "+" | "*":
                found = Call(function, (found, other))
            case "round":
                found = Call(function, (found, Constant(rng.choice((-400, 2, 400)))))
            case _:
                found = Call(function, (found,))
    return found


def textual(rng, depth):
    """A long text for the chosen row, worked on again and again, and measured at the end."""
    found = only_if_chosen(rng, LONG, NAME)
    for _ in range(min(depth, 14)):
        match rng.randrange(5):
            case 0:
                found = Call(rng.choice(LENGTHS), (found,))
            case 1:
                found = (
                    Call("concat", (found,) * rng.choice((2, 20))) if found.calls < 30 else found
                )
            case 2:
                found = Call(
                    "substring", (found, Constant(rng.choice((1, 2, -3000))), Constant(4_000))
                )
            case 3:
                found = Call("coalesce", (found, LONG))
            case _:
                found = only_if_chosen(rng, found, NAME)
    return found


def searched(rng, depth):
    """Patterns over a long text."""
    subject = textual(rng, depth // 2)
    patterns = (
        "%a_b%a_b%a_b%",
        "%" + "ab%" * 40 + "c",
        "%b" + "_" * 6 + "c%",
        "_" * 150,
        "%" + "a" * 150 + "%",
    )
    tests = [
        Call(rng.choice(("like", "ilike")), (subject, Constant(rng.choice(patterns))))
        for _ in range(rng.randrange(2, 5))
    ]
    tests.append(Call("contains", (subject, Constant("ab" * 80 + "c"))))
    return Call(rng.choice(("and", "or")), (IS_CHOSEN, *tests))


def cast(rng, depth):
    """Casts that fail for the chosen row, after much reading."""
    nines = Constant("1." + "9" * 4_000)
    found = only_if_chosen(rng, rng.choice((nines, LONG, Constant("2024-02-30"))), NAME)
    for _ in range(min(depth, 20)):
        kind = rng.choice(("to_integer", "to_number", "to_date", "to_boolean"))
        found = (
            Call("coalesce", (Call("to_text", (Call(kind, (found,)),)), found))
            if found.calls < 40
            else found
        )
    return found


def wide(rng, depth):
    """Many terms, each of them for the chosen row only."""
    terms = [only_if_chosen(rng, BIG, AGE) for _ in range(60)]
    return Call(rng.choice(("+", "*", "least")), tuple(terms))


def dated(rng, depth):
    """Dates at the ends of time."""
    found = only_if_chosen(rng, Call("to_date", (Constant("9999-12-31"),)), DAY)
    for _ in range(min(depth, DEEPEST - 8)):
        found = Call("start_of_month", (found,))
    return Call("days_between", (found, Call("to_date", (NOTE,))))


def alike(rng, depth):
    """The same constant for all other rows, which an engine would work on once for thousands."""
    if rng.randrange(2):
        found = only_if_chosen(rng, NAME, Constant("aB" * 100))
        for turn in range(min(depth, 24)):
            found = Call("concat", (Call(rng.choice(LENGTHS), (found,)), Constant(str(turn % 10))))
        return found
    found = only_if_chosen(rng, COST, Constant(Fraction(1, 2)))
    while found.depth < min(depth, DEEPEST - 4):
        function = rng.choice(("exp", "sqrt", "negate", "abs", "power", "+"))
        one = function in ("power", "+")
        found = Call(function, (found, Constant(3)) if one else (found,))
    return found


FAMILIES = (alike, overflowing, numeric, textual, searched, cast, wide, dated)


def counting(expression):
    """The question how many rows have a value of the expression."""
    part = Aggregate(name="n", function="count", expression=expression)
    return Query(table="people", aggregates=(part,))


def expressions(rng, count):
    """So many (name, expression), one family after the other, as large as a question may be."""
    found = 0
    while found < count:
        family = FAMILIES[found % len(FAMILIES)]
        with suppress(QueryRefused):  # beyond the limits: draw again
            expression = family(rng, rng.randrange(4, DEEPEST))
            counting(expression)
            yield family.__name__, expression
            found += 1
