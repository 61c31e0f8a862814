"""Keys that bounds tell, on every engine: each row is in the group that the nearer bound says.

The truth is plain Python on the rows, the calendar's own functions: no part of a statement.
"""

from collections import Counter
from datetime import date, datetime, timedelta

import pytest

from lastbit.tables.card.column import Column
from lastbit.tables.compile.rows import relation
from lastbit.tables.plan.sensitivity import measures_of
from lastbit.tables.sql.statement import parsed
from tests.engines.batches import plain
from tests.engines.running import card_of

TYPES = {"d": "date", "t": "timestamp", "z": "timestamptz", "age": "bigint"}
LOW, HIGH = date(1968, 2, 28), date(1970, 3, 1)
FROM, TO = datetime(1969, 12, 31, 21, 59, 59, 999_999), datetime(1970, 1, 1, 2, 0, 0, 1)
EPOCH = datetime(1970, 1, 1)
DAYS = [LOW + timedelta(days=days) for days in range(-40, (HIGH - LOW).days + 40, 9)]
DAYS += [LOW, HIGH, date(1, 1, 1), date(9999, 12, 31), date(1968, 2, 29), date(1969, 12, 29)]
TIMES = [FROM + (TO - FROM) / 40 * step for step in range(-9, 50)]
TIMES += [datetime(1970, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 999_999), datetime.min, TO]


def clamp(value, low, high):
    return None if value is None else min(max(value, low), high)


def rows():
    """Days and times inside and beyond their bounds, at seams, and missing."""
    found = []
    for place in range(max(len(DAYS), len(TIMES)) + 1):
        day = DAYS[place] if place < len(DAYS) else None
        time = TIMES[place] if place < len(TIMES) else None
        found.append((day, time, time, place - 5 if place % 7 else None))
    return found


def stored(row):
    day, time, zoned, age = row
    days = None if day is None else day.toordinal() - EPOCH.toordinal()
    micros = [
        None if t is None else (t - EPOCH) // timedelta(microseconds=1) for t in (time, zoned)
    ]
    return days, *micros, age


def card():
    bounds = {"d": (LOW, HIGH), "t": (FROM, TO), "z": (FROM, TO), "age": (0, 30)}
    kinds = {"d": "date", "t": "timestamp", "z": "timestamp", "age": "integer"}
    columns = {n: Column(name=n, type=k, bounds=bounds[n]) for n, k in kinds.items()}  # type: ignore[arg-type]
    return card_of({}, columns=columns)


def month(day):
    return day.replace(day=1)


def week(day):
    return day - timedelta(days=day.weekday())


def hour(time):
    return time.replace(minute=0, second=0, microsecond=0)


QUESTIONS = {
    "date_trunc('month', d)": ("d", month),
    "date_trunc('week', d)": ("d", week),
    "date_trunc('quarter', d)": ("d", lambda d: date(d.year, (d.month - 1) // 3 * 3 + 1, 1)),
    "year(d) // 10 * 10": ("d", lambda d: d.year // 10 * 10),
    "isoyear(d) * 100 + week(d)": ("d", lambda d: d.isocalendar()[0] * 100 + d.isocalendar()[1]),
    "date_diff('month', DATE '1968-02-29', d)": ("d", lambda d: d.year * 12 + d.month - 23618),
    "d": ("d", lambda d: d),
    "date_trunc('hour', t)": ("t", hour),
    "CAST(t AS DATE)": ("t", lambda t: t.date()),
    "date_trunc('hour', z)": ("z", hour),
    "hour(z) * 60 + minute(z)": ("z", lambda t: t.hour * 60 + t.minute),
    "age // 10": ("age", lambda age: age // 10),
    "age": ("age", lambda age: age),
}


def counts(runner, sql):
    query = parsed(f"SELECT {sql} AS k, COUNT(*) AS n FROM t GROUP BY k", card())
    assert query.keys[0].values is not None
    runner.make(relation(), TYPES, [stored(row) for row in rows()])
    return runner.asked(query, card(), measures_of(query)[0])


@pytest.mark.parametrize("sql", QUESTIONS)
def test_every_row_is_in_its_group(engine, duck, sql):
    name, key = QUESTIONS[sql]
    bounds = card().columns[name].bounds
    place = list(TYPES).index(name)
    inside = [clamp(row[place], *bounds) for row in rows()]
    wanted = Counter(key(value) for value in inside if value is not None)
    found = counts(duck, sql)
    assert plain(counts(engine, sql)) == plain(found)
    (entries,) = found.entries.values()
    listed = dict(zip([key for (key,) in found.keys], entries, strict=True))
    assert sum(wanted.values()) > 40
    assert {key: number for key, number in listed.items() if number} == wanted
