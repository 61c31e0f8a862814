"""A released answer in words: what was asked, what is promised, which key is which.

Everything here reads the record of an answer, plain JSON that is public. Keys are text that a
stranger may have written into the data: `key_text` makes them fit to be shown, the caller escapes.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from lastbit.report.plan import unit_word
from lastbit.report.words import amount, listed, printable

_LONGEST_KEY = 200
_LARGEST_EXPONENT = 10_000
_CERTAIN = 40  # beyond this epsilon, 100 % is the honest number
_BINDS: Mapping[str, int] = MappingProxyType(
    {"or": 1, "and": 2}
    | dict.fromkeys(("=", "<>", "<", "<=", ">", ">=", "like", "ilike"), 3)
    | {"+": 4, "-": 4, "*": 5, "/": 5, "%": 5}
)
_NOUNS: Mapping[str, str] = MappingProxyType(
    {
        "sum": "the sum of {}",
        "mean": "the mean of {}",
        "variance": "the variance of {}",
        "std": "the standard deviation of {}",
        "min": "the least {}",
        "max": "the greatest {}",
    }
)


# ---------------------------------------------------------------- single things


def key_text(key: Mapping[str, Any], most: int = _LONGEST_KEY) -> str:
    """One key of a row, as people read it."""
    value = key["value"]
    if value is None:
        return "(missing)"
    if isinstance(value, bool):
        return "true" if value else "false"
    if value == "":
        return "(empty text)"
    return printable(str(value), most)


# ---------------------------------------------------------------- what was asked


def expression_text(data: Any) -> str:
    """An expression over one row, near to SQL.

    >>> expression_text(["and", [">=", {"column": "age"}, {"type": "integer", "value": 18}],
    ...     ["is_missing", {"column": "died"}]])
    'age >= 18 and died is missing'
    """
    return _expression(data, 0)


def _expression(data: Any, outside: int = 9) -> str:
    """The text; in brackets if it binds no tighter than what is outside of it."""
    match data:
        case {"column": str(name), "table": str(table)}:
            return f"{printable(table, 60)}.{printable(name, 60)}"
        case {"column": str(name)}:
            return printable(name, 60)
        case {"type": "text", "value": str(value)}:
            return f"'{printable(value, 60)}'"
        case {"type": "missing"}:
            return "missing"
        case {"type": str(), "value": _}:
            return key_text(data)
        case ["is_missing", inner]:
            return f"{_expression(inner)} is missing"
        case ["not", inner]:
            return f"not {_expression(inner)}"
        case ["in", value, *others]:
            return f"{_expression(value)} in ({', '.join(map(expression_text, others))})"
        case [str(function), *arguments] if function in _BINDS:
            own = _BINDS[function]
            text = f" {function} ".join(_expression(argument, own) for argument in arguments)
            return text if own > outside else f"({text})"
        case [str(function), *arguments]:
            return f"{printable(function, 40)}({', '.join(map(expression_text, arguments))})"
    return "?"


def measure_words(aggregate: Mapping[str, Any], *, unit: str) -> str:
    """What one released column is.

    >>> measure_words({"function": "mean", "expression": {"column": "cost"}, "bounds": ["0", "500"],
    ...     "level": None, "edges": None}, unit="patient")
    'the mean of cost, kept within 0 and 500'
    """
    function, expression = aggregate["function"], aggregate["expression"]
    what = "" if expression is None else expression_text(expression)
    if function == "count":
        return f"the number of rows with a value of {what}" if what else "the number of rows"
    if function == "count_units":
        return f"the number of units, each counted once ({unit})"
    if function == "histogram":
        return f"the number of rows in each of {len(aggregate['edges']) - 1} ranges of {what}"
    if function == "quantile":
        level = Fraction(aggregate["level"])
        name = "median" if level == Fraction(1, 2) else f"{amount(100 * level, up=True)} % quantile"
        words = f"the {name} of {what}"
    else:
        words = _NOUNS[function].format(what)
    low, high = (_number(end) for end in aggregate["bounds"])
    return f"{words}, kept within {low} and {high}"


def _number(text: str) -> str:
    number = Fraction(text)
    return f"{number.numerator:,}" if number.denominator == 1 else amount(number, up=True)


def measures_asked(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The name of every column that was asked for, and what it is."""
    unit = unit_word(record)
    return [
        (printable(part["name"], 60), measure_words(part, unit=unit))
        for part in record["asked"]["query"]["aggregates"]
    ]


def question_sentences(record: Mapping[str, Any]) -> list[str]:
    """Of what, for which groups, of which rows, in which order."""
    query = record["asked"]["query"]
    sentence = f"Of the table {printable(query['table'], 60)}"
    if query["keys"]:
        sentence += f", for each {listed([_key_words(key) for key in query['keys']])}"
    said = [sentence + ":"]
    for join in query["joins"]:
        said.append(f"Joined with the public table {printable(join['table'], 60)}.")
    if query["where"] is not None:
        said.append(f"Only rows count for which {expression_text(query['where'])}.")
    after = []
    if query["having"] is not None:
        after.append(f"only groups are shown for which {expression_text(query['having'])}")
    if query["order"]:
        names = [f"{printable(n, 60)}{', falling' if falls else ''}" for n, falls in query["order"]]
        after.append(f"groups are sorted by {listed(names)}")
    if query["limit"] is not None:
        after.append(f"no more than {query['limit']:,} are shown")
    if after:
        said.append(f"After the noise, {listed(after)}.")
    return said


def _key_words(key: Mapping[str, Any]) -> str:
    name = printable(key["name"], 60)
    inner = expression_text(key["expression"])
    named = name if inner.lower() == name.lower() else f"{name} = {inner}"
    values = key["values"]
    how = "keys found privately" if values is None else f"{len(values):,} declared keys"
    return f"{named} ({how})"


# ---------------------------------------------------------------- what is promised


def promise_sentences(record: Mapping[str, Any]) -> list[str]:
    """The guarantee for somebody who has never heard of epsilon; numbers are rounded up."""
    unit = unit_word(record)
    cost = {name: Fraction(text) for name, text in record["cost"].items()}
    changed = record["plan"]["neighbours"] == "change-one"
    hides = (
        f"what the rows of any one {unit} say"
        if changed
        else f"whether any one {unit} is in the table"
    )
    pair = "for these rows as for any other rows of theirs" if changed else "with them as without"
    first = f"The answer hides {hides}: every number in it is partly chance."
    if cost["rho"]:
        return [first, _concentrated(cost["rho"], pair)]
    factor = likelihood_factor(cost["epsilon"])
    likely = f"Whatever can be read from it is at most {factor} times as likely {pair}"
    if cost["delta"]:
        level = amount(cost["delta"], up=True)
        return [first, f"{likely}, but for a probability of {level}."]
    fact = (
        f"the rows of one {unit} say one thing and not another"
        if changed
        else f"one {unit} is in the table"
    )
    return [first, f"{likely}.", _belief(cost["epsilon"], fact)]


def likelihood_factor(epsilon: Fraction) -> str:
    """exp(epsilon), rounded up to three digits.

    >>> likelihood_factor(Fraction(1)), likelihood_factor(Fraction(1, 100))
    ('2.72', '1.02')
    """
    if epsilon > _LARGEST_EXPONENT:
        return f"exp({amount(epsilon, up=True)})"
    return _rounded_up(_power(epsilon), 3)


def _belief(epsilon: Fraction, fact: str) -> str:
    """By Bayes' rule: even odds become at most exp(epsilon) to 1."""
    sure = Decimal(100)
    if epsilon <= _CERTAIN:
        odds = Fraction(_power(epsilon))
        sure = _decimal(100 * odds / (1 + odds))
    return (
        f"Who knows all else, and thinks it as likely as not (50 %) that {fact}, can be at most "
        f"{_rounded_up(sure, 3)} % sure after reading it."
    )


def _power(epsilon: Fraction) -> Decimal:
    """exp, rounded up: 60 digits, and one unit of the last place more than the nearest."""
    context = Context(prec=60, rounding=ROUND_CEILING)
    exponent = context.divide(Decimal(epsilon.numerator), Decimal(epsilon.denominator))
    return context.next_plus(context.exp(exponent))


def _decimal(number: Fraction) -> Decimal:
    context = Context(prec=60, rounding=ROUND_CEILING)
    return context.divide(Decimal(number.numerator), Decimal(number.denominator))


def _rounded_up(number: Decimal, digits: int) -> str:
    short_form = Context(prec=digits, rounding=ROUND_CEILING).plus(number)
    if short_form.adjusted() < 6:
        whole = f"{short_form:f}"
        return f"{int(short_form):,}" if short_form == int(short_form) else whole.rstrip("0")
    return f"{short_form:e}".replace("e+", "e")


def _concentrated(rho: Fraction, pair: str) -> str:
    from lastbit.privacy import ZCDP, ApproxDP

    implied = ZCDP(rho).to(ApproxDP, delta=Fraction(1, 10**6))
    factor = likelihood_factor(Fraction(implied.epsilon))
    return (
        f"Whatever can be read from it is at most {factor} times as likely {pair}, but for a "
        "probability of one in a million; other such pairs follow from the price ρ as well."
    )
