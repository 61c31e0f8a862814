"""Questions as people write them in SQL, for neighbours that try to break them.

What is drawn are the forms by which the language is wider than its parts: keys that are not
selected, or made of something, distinct values summed, bounds that follow, keys of WHERE, joins in
either order, SELECTs over groups, constants of another type.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from hypothesis import assume, strategies as st

from lastbit.errors import QueryRefused
from lastbit.tables.card.column import Column
from lastbit.tables.card.schema import DataCard, PublicTable, Source
from lastbit.tables.query.query import Query
from lastbit.tables.sql.statement import parsed

KEYS = (
    "t.cat", "num", "flag", "day", "upper(t.cat)", "num // 3", "num % 3", "clamp(num, 0, 5)",
    "month(day)", "CASE WHEN num < 3 THEN 'a' ELSE 'b' END", "length(t.cat)", "num > 2",
    "bin(x, 0, 3, 10)", "concat(t.cat, flag)", "floor(clamp(x, 0, 9) / 5)", "clamp(num, 0, 9) // 4",
)  # fmt: skip
NUMBERS = (
    "clamp(num, 0, 9) % 4", "sqrt(clamp(x, 0, 9))", "log(clamp(x, 1, 100))", "clamp(x, 0, 10) // 3",
    "round(clamp(x, 0, 10), 1)", "exp(clamp(x, 0, 3))", "power(clamp(num, -3, 3), 2)",
    "length(t.cat)", "clamp(num, -9, 9) // 2", "log2(clamp(x, 0.5, 9))", "bin(x, 0, 3, 10)",
    "ln(clamp(num, 1, 9)) * clamp(x, -1, 1)", "month(day)", "num > 3", "abs(clamp(num, -9, 9))",
    "least(clamp(x, 0, 9), clamp(num, 0, 9))", "length(substring(t.cat, 1, 2))",
)  # fmt: skip
WHOLE = (
    "clamp(num, 0, 9)",
    "clamp(num, -3, 4)",
    "abs(clamp(num, -5, 5))",
    "month(day)",
    "num // 3",
)
TESTS = (
    "num = '2'", "flag = 1", "t.cat IN ('a', 'b')", "t.cat = 'a' OR t.cat = 'b'", "NOT num > 3",
    "num BETWEEN 0 AND 5", "flag", "num IN (1, '2')", "x > '2.5'", "NOT (t.cat = 'a' AND flag)",
    "num <> 1", "day >= '2024-01-01'", "log(clamp(x, 1, 9)) < 0.5", "t.cat <> 'a' OR num < 2",
)  # fmt: skip
SOURCES = ("t", "s.t", "(t)", "(SELECT * FROM t WHERE num < 7) AS t", "(s.t) AS t")
JOINED = (
    "t JOIN places ON t.cat = places.cat", "places AS p JOIN t ON t.cat = p.cat",
    "(t JOIN places USING (cat))", "t, places AS p WHERE t.cat = p.cat",
    "t JOIN (SELECT cat FROM places WHERE level < 2) p ON p.cat = t.cat",
)  # fmt: skip


@cache
def asked_card(types: tuple[tuple[str, Any], ...]) -> DataCard:
    """The card by which questions are read; another one is drawn for what they ask."""
    public = {"cat": "text", "label": "text", "level": "integer"}
    places = PublicTable(name="places", source=Source(kind="frame"), columns=public)  # type: ignore[arg-type]
    return DataCard(
        name="t",
        source=Source(kind="frame"),
        unit="who",
        max_rows=3,
        max_groups=3,
        columns={name: Column(name=name, type=kind) for name, kind in types},
        public={"places": places},
    )


@st.composite
def sql_questions(draw: st.DrawFn, types: dict[str, Any]) -> Query:
    """A question that is read."""
    text = draw(texts())
    try:
        return parsed(text, asked_card(tuple(types.items())))
    except QueryRefused as error:
        assert "no key that WHERE lets through" in str(error), (text, str(error))
        assume(condition=False)
        raise


@st.composite
def texts(draw: st.DrawFn) -> str:
    """One SELECT."""
    source = draw(st.sampled_from((*SOURCES, *JOINED)))
    tests = draw(st.lists(st.sampled_from(TESTS), max_size=2, unique=True))
    keys = draw(st.lists(st.sampled_from(KEYS), max_size=2, unique=True))
    items = [
        f"{key} AS k{place}" if way == "shown" else f"'x' AS c{place}"
        for place, key in enumerate(keys)
        if (way := draw(st.sampled_from(("shown", "hidden", "constant")))) != "hidden"
    ]
    number, whole = st.sampled_from(NUMBERS), st.sampled_from(WHOLE)
    counts = (
        st.just("COUNT(*)"),
        st.just("COUNT(DISTINCT who)"),
        whole.map("COUNT(DISTINCT {})".format),
        number.map("SUM({})".format),
        number.map("AVG({})".format),
        whole.map("SUM(DISTINCT {})".format),
        whole.map("STDDEV({})".format),
        whole.map("VARIANCE(DISTINCT {})".format),
        number.map("SUM({}) / COUNT(*)".format),
    )
    made = draw(st.lists(st.one_of(counts), min_size=1, max_size=2, unique=True))
    made = [one for one in made if "num // 3" not in one or "COUNT" in one]
    items += [f"{one} AS a{place}" for place, one in enumerate(made)] + ["COUNT(*) AS n"]
    joint = " AND " if " WHERE t.cat" in source else " WHERE "
    where = joint + " AND ".join(f"({test})" for test in tests) if tests else ""
    group = f" GROUP BY {', '.join(keys)}" if keys else ""
    text = f"SELECT {', '.join(items)} FROM {source}{where}{group}"
    return draw(
        st.sampled_from((text, text, f"SELECT n, n / 2 AS h FROM ({text}) AS g WHERE n > 3"))
    )
