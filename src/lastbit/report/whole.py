"""What limits did to an answer: which numbers have a whole interval, and what that rests on.

The noise interval of a number holds the number without noise. The whole interval holds the true
number of the table: it also covers what max_rows, max_groups and bounds left out. A record has the
ends, and of every column the share of rows that counted, codes of assumptions (`about`) and what a
mean is of (`of`). The sentences are made here, once for every screen; what is unknown is said once.

Checked  tests/report/test_whole.py
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from types import MappingProxyType

from lastbit.errors import InvalidParameter
from lastbit.report.cells import Shown, shown_cell, value_columns
from lastbit.report.page import MALFORMED, listed, printable
from lastbit.report.plan import Reading, Record, many, read_record, unit_word
from lastbit.tables import columns_in

NOISE, WHOLE = "noise", "whole"
"""Headings: ± 12, or 3 to 9; and 3 to about 20."""
UNKNOWN = "how much limits left out is unknown: the table has no profile (lastbit card profile)."
_UNBOUNDED = "the whole interval is unknown: the profile does not bound what was left out."


@dataclass(frozen=True, slots=True, kw_only=True)
class Limited:
    """What a record says of a column of which limits may have left something out."""

    limits: tuple[str, ...]
    share: tuple[Fraction, Fraction] | None
    """Of what counted, about and at least; None if unknown."""
    about: tuple[str, ...]
    beyond: int | None
    of: str | None


def limited_columns(record: Record) -> dict[str, Limited]:
    """By name, the columns (a histogram is one) of which limits may have left something out."""
    try:
        return {
            str(name): Limited(
                limits=tuple(map(str, one["limits"])),
                share=None
                if one["share"] is None
                else (Fraction(one["share"]["value"]), Fraction(one["share"]["low"])),
                about=tuple(map(str, one["about"])),
                beyond=None if one.get("beyond") is None else int(one["beyond"]),
                of=None if one["of"] is None else str(one["of"]),
            )
            for name, one in (record.get("whole") or {"columns": {}})["columns"].items()
        }
    except MALFORMED as error:
        raise InvalidParameter(
            "record", problem="is not an answer's", remedy="pass what save() wrote"
        ) from error


def _name(column: Record) -> str:
    return str(column.get("aggregate", column["name"]))


def has_whole(cell: Record) -> bool:
    """Whether the whole interval is known, and another than that of the noise."""
    ends = cell.get("whole_low"), cell.get("whole_high")
    return None not in ends and ends != (cell["low"], cell["high"])


def plain_whole(cell: Record) -> str:
    """What stands for a whole interval beside others, where a number has none of its own."""
    return "unknown" if None in (cell["whole_low"], cell["whole_high"]) else "as noise"


def band_words(record: Record) -> list[str]:
    """How charts show the two intervals, where there are two."""
    known = any(has_whole(cell) for row in record["rows"] for cell in row["cells"])
    return ["Charts show the noise (±) strong, and the whole as a faint band."] if known else []


def shown_columns(record: Record, most: int | None = None) -> list[tuple[Record, list[Shown]]]:
    """Every released column with its cells as text, those of the first `most` rows.

    Where no cell of a column has a whole interval of its own, all are empty.
    """
    limited = limited_columns(record)
    columns = []
    for place, column in enumerate(value_columns(record)):
        cells = [row["cells"][place] for row in record["rows"]]
        one = limited.get(_name(column))
        about = one is not None and bool(one.about)
        known = any(map(has_whole, cells))
        shown = [shown_cell(cell, about=about) for cell in cells[:most]]
        shown = [replace(c, whole=(c.whole or "unknown") if known else "") for c in shown]
        columns.append((column, shown))
    return columns


def whole_sentences(answer: Record | Reading) -> list[str]:
    """What stands below the numbers: what counted, what the whole rests on, what is unknown."""
    reading = answer if isinstance(answer, Reading) else read_record(answer)
    record, limited = reading.record, limited_columns(reading.record)
    said: dict[str, dict[str, None]] = {}  # by sentence the columns that it is about, each once
    names: dict[str, None] = {}
    for place, column in enumerate(value_columns(record) if limited else ()):
        names[_name(column)] = None
        one = limited.get(_name(column))
        cells = [row["cells"][place] for row in record["rows"]]
        for sentence in () if one is None else _sentences(one, column, cells, reading):
            said.setdefault(sentence, {})[printable(_name(column), 60)] = None
    return [
        f"{sentence[0].upper()}{sentence[1:]}"
        if len(about) == len(names)
        else f"{listed(list(about))}: {sentence}"
        for sentence, about in said.items()
    ]


def _sentences(
    one: Limited, column: Record, cells: Sequence[Record], reading: Reading
) -> Iterator[str]:
    """Of one column, each beginning with a small letter."""
    unit = unit_word(reading.plan.unit)
    groups = "max_groups" in one.limits and "max_rows" not in one.limits
    if one.share is not None:
        value, low = (100 * share for share in one.share)
        near = min(round(value), 99) if value < 100 else 100  # 100 says that nothing was lost
        what = f"the groups of each {unit}" if groups else "rows"
        counted = f"about {near} %, at least {math.floor(low)} % of {what} counted"
        assumed = "nobody_beyond" in one.about
        given = _assumption("nobody_beyond", one.beyond, unit, groups=groups) if assumed else ""
        yield f"{counted}, if {given}." if assumed else f"{counted}."
    if one.of is not None:
        most = reading.plan.max_rows
        once = f"each {unit} is counted once."
        yield once if most == 1 else f"each {unit} counts for at most {many(most, 'row')}."
    with_noise = [cell for cell in cells if None not in (cell["low"], cell["high"])]
    unknown = [None in (cell.get("whole_low"), cell.get("whole_high")) for cell in with_noise]
    codes, rests = () if all(unknown) else one.about, "nothing was left out if"
    if any(map(has_whole, cells)):
        codes, rests = one.about, "the whole interval assumes that"
    elif one.share is not None:  # which has its own
        codes = tuple(code for code in one.about if code == "spread_evenly")
        rests = "the share assumes that"
    if "values_thin_out" in codes:  # of these bounds it is not assumed that values lie within
        codes = tuple(code for code in codes if code != "within_bounds")
    for code in codes:
        alike = _alike_words(_name(column), reading) if code == "rows_alike" else []
        said = alike or [_assumption(code, one.beyond, unit, groups=groups)]
        yield from (f"{rests} {words}." for words in said)
    if any(unknown):
        profile = reading.record["whole"].get("groups" if groups else "profile")
        yield UNKNOWN if profile is None else _UNBOUNDED


def _alike_words(name: str, reading: Reading) -> list[str]:
    """What `rows_alike` means for a column: another thing for each kind of number."""
    functions = {part.name: part.function for part in reading.query.aggregates}
    derived = {one.name: one.expression for one in reading.query.derived}
    names = [one.name for one in columns_in(derived[name])] if name in derived else [name]
    kinds = {functions[one] for one in names if one in functions}
    said = [words for words, of in _ALIKE.items() if kinds & of]
    if kinds and name in derived and kinds <= {"count", "sum"}:
        return ["the quotient of rows left out is off by at most a third"]
    return said


_ALIKE: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "rows left out have a mean off by at most a third of the way to a bound": frozenset(
            {"mean"}
        ),
        "rows left out have a variance between half and twice that of the others": frozenset(
            {"variance", "std"}
        ),
        "the share of rows left out up to any value is off by at most a third": frozenset(
            {"quantile", "cdf"}
        ),
    }
)


def _assumption(code: str, beyond: int | None, unit: str, *, groups: bool) -> str:
    match code:
        case "nobody_beyond" if beyond is not None:
            having = "is in more than" if groups else "has more than"
            return f"hardly any {unit} {having} {many(beyond, 'group' if groups else 'row')}"
        case "group_like_table":
            return "no group loses a larger share of its rows than the table"
        case "values_alike":
            return "a sum loses no larger share than its rows"
        case "spread_evenly":
            of = "groups" if groups else "rows"
            return f"{unit}s have the middle number of {of} of their range on average"
        case "within_bounds":
            return "all values lie within their bounds"
        case "values_thin_out":
            return "values thin out beyond the bounds that lastbit chose"
    # one that is not known here is said by its code: no interval stands without what it rests on
    return printable(code, 60).replace("_", " ")
