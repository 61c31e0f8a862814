"""Questions for those who do not write SQL: what they choose in a form becomes one statement.

Law      a statement is made of the words of this file, of names that the card has, and of literals.
         Names are quoted where SQL needs it. A value is read by the type of its column: a number is
         written anew, digit by digit, so are dates and times; a text stands between apostrophes,
         and each apostrophe of its own is doubled
Theorem  whatever a form holds, the statement is one SELECT (or MARGINALS, `planning.py`) about this
         table, in which each name of the form is one name of the card, and each value one literal
Proof    functions, cuts and comparisons are looked up in tables of this file, columns in the card.
         Numbers, dates and times hold no letter but those that are written for them. In a text, a
         literal ends at a single apostrophe, and there is none: all come in pairs
Checked  tests/serve/test_builder.py: hostile values and names, read back by the parser
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import chain, count
from math import ceil
from types import MappingProxyType

from lastbit.errors import InvalidParameter
from lastbit.exact import rational
from lastbit.serve.questions import MARGINALS, wrong
from lastbit.serve.schemas import LONGEST_NUMBER
from lastbit.tables import Column, ColumnType, DataCard, quoted, unit_name

MEASURES, CUTS, TESTS = 3, 4, 3
"""How many lines a form has, of each kind."""
_NUMBERS, _DAYS = ("integer", "number"), ("date", "timestamp")
_ALL: tuple[ColumnType, ...] = ("integer", "number", "text", "boolean", "date", "timestamp")
_LONGEST, _MOST_BINS, _BINS = 200, 200, 10
_LARGEST, _DIGITS = 10**18, 60


@dataclass(frozen=True, slots=True)
class Choice:
    """A word of the form: what people read, the SQL it becomes, and for which columns."""

    words: str
    sql: str
    types: tuple[str, ...] = _ALL


ROWS, TABLES, BINS, AMONG = "rows", "tables", "bins", "in"
FUNCTIONS: Mapping[str, Choice] = MappingProxyType(
    {
        ROWS: Choice("the number of rows", "COUNT(*)", ()),
        "units": Choice("the number of different", "COUNT(DISTINCT {})", ()),
        "mean": Choice("the mean of", "AVG({})", (*_NUMBERS, "boolean")),
        "sum": Choice("the sum of", "SUM({})", (*_NUMBERS, "boolean")),
        "median": Choice("the median of", "MEDIAN({})", _NUMBERS),
        "low": Choice("nearly the least", "MIN({})", _NUMBERS),
        "high": Choice("nearly the greatest", "MAX({})", _NUMBERS),
        "std": Choice("the standard deviation of", "STDDEV({})", _NUMBERS),
        "values": Choice("the number of rows that have a", "COUNT({})"),
        TABLES: Choice("tables of every two columns below", "", ()),
    }
)
CUT: Mapping[str, Choice] = MappingProxyType(
    {
        "": Choice("each value", "{}", ("integer", "text", "boolean", "date")),
        "year": Choice("each year", "date_trunc('year', {})", _DAYS),
        "quarter": Choice("each quarter", "date_trunc('quarter', {})", _DAYS),
        "month": Choice("each month", "date_trunc('month', {})", _DAYS),
        "week": Choice("each week", "date_trunc('week', {})", _DAYS),
        "weekday": Choice("each day of the week", "isodow({})", _DAYS),
        BINS: Choice("ranges of equal width", "bin({}, {})", _NUMBERS),
    }
)
COMPARISONS: Mapping[str, Choice] = MappingProxyType(
    {
        "=": Choice("is", "{} = {}"),
        "<>": Choice("is not", "{} <> {}"),
        ">=": Choice("is at least", "{} >= {}", (*_NUMBERS, *_DAYS)),
        ">": Choice("is above", "{} > {}", (*_NUMBERS, *_DAYS)),
        "<=": Choice("is at most", "{} <= {}", (*_NUMBERS, *_DAYS)),
        "<": Choice("is below", "{} < {}", (*_NUMBERS, *_DAYS)),
        AMONG: Choice("is one of (with commas)", "{} IN ({})"),
        "contains": Choice("contains", "contains({}, {})", ("text",)),
        "starts": Choice("begins with", "starts_with({}, {})", ("text",)),
        "there": Choice("has a value", "{} IS NOT NULL"),
        "missing": Choice("is missing", "{} IS NULL"),
    }
)
_WITHOUT_VALUE = ("there", "missing")


def statement(form: Mapping[str, str], card: DataCard) -> str:
    """The statement that the fields of a form choose; refused in words for its field."""
    names = {name.lower() for name in card.columns}
    keys = [(cut, _free(name, names)) for cut, name in _cuts(form, card)]
    conditions = [_condition(form, place, card) for place in _filled(form, "where", TESTS)]
    rows = f"FROM {quoted(card.name)}"
    if conditions:
        rows += f"\nWHERE {' AND '.join(conditions)}"
    measures = [form[f"what{place}"] for place in _filled(form, "what", MEASURES)]
    if TABLES in measures:
        if len(measures) > 1 or len(keys) < 2:
            problem = "Tables of every two columns need two columns below, and no other line above."
            raise wrong(problem, "what1")
        return f"{MARGINALS} {_listed(keys)}\n{rows}"
    shown = [(sql, _free(name, names)) for sql, name in _measures(form, card)]
    if not shown:
        shown = [("COUNT(*)", _free("n", names))]
    select = f"SELECT {_listed([*keys, *shown])}\n{rows}"
    by = ", ".join(cut if cut == quoted(name) else quoted(name) for cut, name in keys)
    return f"{select}\nGROUP BY {by}" if keys else select


def _listed(parts: list[tuple[str, str]]) -> str:
    plain = (sql if sql == quoted(name) else f"{sql} AS {quoted(name)}" for sql, name in parts)
    return ", ".join(plain)


def _filled(form: Mapping[str, str], field: str, most: int) -> Iterator[int]:
    """The lines that say something."""
    return (place for place in range(1, most + 1) if form.get(f"{field}{place}"))


def _free(name: str, taken: set[str]) -> str:
    """The name, unless it is taken; columns of the card are, but by themselves."""
    if name.startswith("="):  # a column by itself
        return name[1:]
    others = (f"{name}_{i}" for i in count(2))
    found = next(one for one in chain([name], others) if one.lower() not in taken)
    taken.add(found.lower())
    return found


def _column(card: DataCard, name: str, field: str) -> Column:
    if not name:
        raise wrong("Choose a column in this line.", field)
    if name not in card.columns:
        raise wrong("There is no such column; choose one of the list.", field)
    return card.columns[name]


def _chosen(choices: Mapping[str, Choice], word: str, column: Column | None, field: str) -> Choice:
    """The choice of this word, which must be for such a column."""
    if word not in choices:
        raise wrong("This is not on the list; choose another.", field)
    found = choices[word]
    if column is not None and column.type not in found.types:
        raise wrong(f"“{found.words}” is not for {column.name}, which is {column.type}.", field)
    return found


def _measures(form: Mapping[str, str], card: DataCard) -> Iterator[tuple[str, str]]:
    """What is computed, and what it is called."""
    for place in _filled(form, "what", MEASURES):
        word, field = form[f"what{place}"], f"what{place}"
        choice = _chosen(FUNCTIONS, word, None, field)
        if word == ROWS:
            yield choice.sql, "n"
        elif word == "units":
            if card.unit is None:
                raise wrong("Each row is a different person: count the rows.", field)
            yield choice.sql.format(quoted(card.unit)), "units"
        else:
            column = _column(card, form.get(f"of{place}", ""), f"of{place}")
            _chosen(FUNCTIONS, word, column, f"of{place}")
            yield choice.sql.format(quoted(column.name)), f"{word}_{column.name}"


def _cuts(form: Mapping[str, str], card: DataCard) -> Iterator[tuple[str, str]]:
    """What is grouped by, and what it is called; a column by itself is marked by "="."""
    for place in _filled(form, "by", CUTS):
        column = _column(card, form[f"by{place}"], f"by{place}")
        word, field = form.get(f"cut{place}", ""), f"cut{place}"
        choice = _chosen(CUT, word, column, field)
        name = quoted(column.name)
        if word == BINS:
            edges = ", ".join(_edges(column, form.get(f"width{place}", "").strip(), place))
            yield choice.sql.format(name, edges), f"{column.name}_from"
        else:
            yield choice.sql.format(name), f"{column.name}_{word}" if word else f"={column.name}"


def _edges(column: Column, width: str, place: int) -> list[str]:
    """Where bins begin, from the bounds of the card; ten bins if no width is chosen."""
    if column.number_bounds is None:
        words = f"{column.name} has no bounds on the card; ask a steward, or choose each value."
        raise wrong(words, f"by{place}")
    low, high = column.number_bounds
    step = (high - low) / _BINS
    if width:
        step = _number(width, "The width", f"width{place}")
    elif column.type == "integer":
        step = Fraction(ceil(step))
    if step <= 0 or (high - low) / step > _MOST_BINS:
        words = f"Choose a width above 0, for at most {_MOST_BINS} ranges."
        raise wrong(words, f"width{place}")
    steps = ceil((high - low) / step)
    edges = [_decimal(min(low + i * step, high)) for i in range(steps + 1)]
    if None in edges:
        raise wrong(
            f"This width does not divide the bounds of {column.name}; choose another.",
            f"width{place}",
        )
    return [edge for edge in edges if edge is not None]


def _condition(form: Mapping[str, str], place: int, card: DataCard) -> str:
    column = _column(card, form[f"where{place}"], f"where{place}")
    word, field = form.get(f"is{place}", "="), f"value{place}"
    choice, name = _chosen(COMPARISONS, word, column, f"is{place}"), quoted(column.name)
    if word in _WITHOUT_VALUE:
        return choice.sql.format(name)
    value = form.get(field, "")
    if len(value) > _LONGEST:
        raise wrong(f"A value has at most {_LONGEST} letters.", field)
    parts = value.split(",") if word == AMONG else [value]
    literals = ", ".join(_literal(column, part, field) for part in parts)
    return choice.sql.format(name, literals)


def _literal(column: Column, text: str, field: str) -> str:
    """One literal of the type of the column."""
    plain = text.strip()
    if not plain:
        raise wrong(f"Write a value to compare {column.name} with.", field)
    match column.type:
        case "text":
            if "\0" in plain:
                raise wrong("A value cannot hold a NUL.", field)
            return "'" + plain.replace("'", "''") + "'"
        case "integer" | "number":
            return _decimal(_number(plain, column.name, field)) or ""
        case "boolean":
            if plain.lower() not in ("true", "false", "yes", "no"):
                raise wrong(f"{column.name} is true or false.", field)
            return "TRUE" if plain.lower() in ("true", "yes") else "FALSE"
        case _:
            return f"'{_moment(column, plain, field)}'"


def _number(text: str, what: str, field: str) -> Fraction:
    try:
        found = rational(text, what) if len(text) <= LONGEST_NUMBER else None
        if found is not None and abs(found) < _LARGEST and _decimal(found) is not None:
            return found
    except InvalidParameter:
        pass
    raise wrong(f"{what} is a number: write 12 or 0.5.", field) from None


def _decimal(number: Fraction) -> str | None:
    """The number in decimal digits; None if it has no end of them."""
    with localcontext(prec=_DIGITS):
        found = Decimal(number.numerator) / Decimal(number.denominator)
    return f"{found.normalize():f}" if Fraction(found) == number else None


def _moment(column: Column, text: str, field: str) -> str:
    """The day or time, written anew."""
    for read, separator in ((date.fromisoformat, ""), (datetime.fromisoformat, " ")):
        if separator and column.type == "date":
            continue
        try:
            found = read(text)
        except ValueError:
            continue
        if getattr(found, "tzinfo", None) is None:
            return found.isoformat(separator) if isinstance(found, datetime) else found.isoformat()
    example = "2026-01-31" if column.type == "date" else "2026-01-31 08:30"
    raise wrong(f"{column.name} is not a day or time here: write {example}.", field)


def choices_for(card: DataCard) -> dict[str, object]:
    """The lists of the form: words for people, and what is sent."""
    functions = [(word, one.words) for word, one in FUNCTIONS.items()]
    if card.unit is None:
        functions = [pair for pair in functions if pair[0] != "units"]
    else:
        units = f"the number of different values of {unit_name(card.unit)}"
        functions = [(word, units if word == "units" else words) for word, words in functions]
    columns = [(name, name) for name in card.columns if name.lower() != (card.unit or "").lower()]
    return {
        "functions": functions,
        "columns": columns,
        "cuts": [(word, one.words) for word, one in CUT.items()],
        "comparisons": [(word, one.words) for word, one in COMPARISONS.items()],
        "lines": {"what": MEASURES, "by": CUTS, "where": TESTS},
    }
