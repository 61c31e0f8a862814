"""Whatever the text, reading it is linear work, and ends with a question or a refusal.

Work is counted as calls of Python functions, by the interpreter's own profiler: a reading that is
tried again and again shows there, whether the parser's steps are counted or not.
"""

import random
import sys
from itertools import product

import pytest

from lastbit.errors import InvalidParameter, QueryRefused
from lastbit.tables.sql.limits import DEEPEST_SQL, LONGEST_SQL, MOST_TOKENS
from lastbit.tables.sql.parse import statement_tree
from lastbit.tables.sql.rows import rows_of
from lastbit.tables.sql.statement import expression_of, parsed, released_condition
from tests.tables.asked import CARD

CALLS_PER_SIGN = 400
"""Calls for each character of the text, at most; an ordinary question needs about 60."""
A_FEW_CALLS = 60_000

# what opens, what stands inside, what closes
NESTED = [
    ("(", "age", ")"),
    ("abs(", "age", ")"),
    ("NOT ", "ok", ""),
    ("- ", "age", ""),
    ("-", "1", ""),
    ("~ ", "1", ""),
    ("+ ", "1", ""),
    ("CASE WHEN ", "ok", " THEN 1 END"),
    ("CASE ", "age", " WHEN 1 THEN 2 END"),
    ("CASE WHEN ok THEN ", "1", " ELSE 2 END"),
    ("CAST(", "age", " AS INT)"),
    ("TRY_CAST(", "age", " AS INT)"),
    ("age IN (", "1", ")"),
    ("age BETWEEN ", "1", " AND 2"),
    ("ARRAY[", "1", "]"),
    ("[", "1", "]"),
    ("{'a': ", "1", "}"),
    ("MAP {", "", "}"),
    ("age[", "1", "]"),
    ("EXTRACT(year FROM ", "day", ")"),
    ("INTERVAL ", "1", ""),
    ("INTERVAL (", "1", ") DAY"),
    ("x -> ", "x", ""),
    ("(x) -> (", "x", ")"),
    ("list_transform(", "x", ", x -> x)"),
    ("EXISTS (SELECT ", "1", ")"),
    ("(SELECT ", "1", ")"),
    ("COUNT(*) FILTER (WHERE ", "ok", ")"),
    ("SUM(age) OVER (PARTITION BY ", "age", ")"),
    ("a.", "b", ""),
    ("x.f(", "1", ")"),
    ("IF(", "ok", ", 1, 2)"),
    ("coalesce((", "age", ") * 9, 1)"),
    ("(1, ", "1", ")"),
    ("UNNEST(", "x", ")"),
    ("CAST(age AS STRUCT(a ", "INT", "))"),
    ("CAST(age AS ARRAY<", "INT", ">)"),
    ("DATE ", "'2020-01-01'", ""),
    ("age::", "INT", ""),
    ("/* ", "", " */"),
    ("-- ", "\n", ""),
    ("'", "", "'"),
    ('"', "a", '"'),
    ("$$", "", "$$"),
    ("E'", "\\", "'"),
    ("age COLLATE ", "a", ""),
    ("age IS NOT ", "NULL", ""),
    ("region LIKE ", "'a'", " ESCAPE 'b'"),
    ("ok AND (", "ok", ")"),
    ("ok OR ", "ok", ""),
    ("age = ", "1", ""),
    ("age < ANY (", "1", ")"),
    ("GROUPING SETS (", "1", ")"),
    ("TRIM(BOTH ", "region", ")"),
    ("SUBSTRING(", "region", " FROM 1)"),
    ("POSITION(", "region", " IN region)"),
    ("STRUCT(", "1", ")"),
    ("ROW(", "1", ")"),
    ("COLUMNS(", "*", ")"),
    ("x AT TIME ZONE ", "'a'", ""),
    ("nullif(", "age", ", 1)"),
    ("age BETWEEN (", "1", ") AND (2)"),
    ("lambda x: ", "x", ""),
    ("#", "1", ""),
    ("@", "age", ""),
    ("!", "1", ""),
]
TABLES = [
    ("", "visits", " JOIN regions"),
    ("visits JOIN ", "regions", ""),
    ("(", "visits", ")"),
    ("", "visits", " LEFT JOIN regions"),
    ("(visits JOIN ", "regions", ")"),
    ("(SELECT * FROM ", "visits", ")"),
    ("", "visits", ", visits"),
    ("LATERAL (SELECT * FROM ", "visits", ")"),
    ("", "visits", " NATURAL JOIN regions"),
    ("", "visits", " CROSS JOIN regions"),
    ("", "visits", " JOIN regions ON ok"),
    ("", "visits", " JOIN (regions"),
    ("", "visits", " ASOF JOIN regions"),
    ("", "visits", " PIVOT (SUM(age) FOR age IN (1))"),
    ("(PIVOT ", "visits", ")"),
    ("UNNEST(", "x", ")"),
    ("(VALUES (", "1", "))"),
    ("", "visits", " TABLESAMPLE (1)"),
    ("", "visits", " AS OF a"),
    ("", "visits", " x"),
    ("", "visits", " STRAIGHT_JOIN regions"),
    ("TABLE ", "visits", ""),
    ("FROM ", "visits", ""),
    ("", "visits", " UNION SELECT 1 FROM visits"),
    ("", "visits", " SEMI JOIN regions USING (region)"),
    ("", "visits", " JOIN regions JOIN"),
    ("", "visits", " WINDOW w AS ()"),
    ("", "visits", " POSITIONAL JOIN regions"),
]


def repeated(parts, times, *, cut=False):
    """The parts inside each other, in turn; without what closes them if `cut`."""
    turns = [parts[i % len(parts)] for i in range(times)]
    end = "" if cut else "".join(close for _, _, close in reversed(turns))
    return "".join(opening for opening, _, _ in turns) + turns[-1][1] + end


def texts(rng, count):
    """Texts, each short and with one or two things nested in each other."""
    for kind, spell in (
        (NESTED, "SELECT COUNT(*) FROM visits WHERE {}"),
        (TABLES, "SELECT COUNT(*) FROM {}"),
    ):
        singles = [(one,) for one in kind]
        pairs = list(product(kind, repeat=2))
        for parts in singles + rng.sample(pairs, min(count, len(pairs))):
            for times in (8, 28):
                yield spell.format(repeated(parts, times, cut=rng.random() < 0.2))


def calls_of(run):
    found = 0

    def count(frame, event, argument):
        nonlocal found
        found += event == "call"

    sys.setprofile(count)
    try:
        run()
    except QueryRefused as refused:
        assert len(str(refused)) < 2_000
    except InvalidParameter:
        pass
    finally:
        sys.setprofile(None)
    return found


def test_reading_is_linear_work_and_ends_with_a_question_or_a_refusal(extent):
    worst = (0.0, "")
    parsed("SELECT COUNT(*) FROM visits", CARD)  # loads the parser
    for text in texts(random.Random(7), extent.generated(25, 800)):
        calls = calls_of(lambda text=text: parsed(text, CARD))
        assert calls <= CALLS_PER_SIGN * len(text) + A_FEW_CALLS, text
        worst = max(worst, (calls / len(text), text))
    print(f"worst: {worst[0]:.0f} calls for each character: {worst[1][:200]}")


def test_165_characters_of_join_are_refused_at_once():
    for text in (
        "SELECT COUNT(*) FROM visits" + " JOIN regions" * 20,
        "SELECT COUNT(*) FROM visits" + " JOIN b" * 20,
        "SELECT COUNT(*) FROM " + "a JOIN " * 25 + "b",
    ):
        with pytest.raises(QueryRefused, match="too many ways"):
            parsed(text, CARD)
    with pytest.raises(QueryRefused, match="too many ways"):
        parsed(f"SELECT COUNT(*) FROM visits WHERE {'ARRAY[' * 20}1{']' * 20}", CARD)


def test_depth_is_counted_by_brackets_not_by_what_texts_say():
    inside = "(" * DEEPEST_SQL + "age" + ")" * DEEPEST_SQL
    parsed(f"SELECT COUNT(*) FROM visits WHERE {inside} > 1", CARD)
    with pytest.raises(QueryRefused, match="too deeply"):
        parsed(f"SELECT COUNT(*) FROM visits WHERE ({inside}) > 1", CARD)
    words = ", ".join(f"'{word}{n}'" for n in range(60) for word in ("case ", "(", "["))
    parsed(f"SELECT COUNT(*) FROM visits WHERE region IN ('case', '(', {words})", CARD)


@pytest.mark.parametrize("read", [parsed, lambda text, card: expression_of(text, rows_of(card))])
def test_a_caller_deep_in_the_stack_gets_a_refusal(read):
    text = "age + abs(" * 20 + "age" + ")" * 20
    text = text if read is not parsed else f"SELECT COUNT(*) FROM visits WHERE {text} > 1"
    read(text, CARD)

    def deep(levels):
        if levels:
            deep(levels - 1)
        else:
            with pytest.raises(QueryRefused, match="too deeply"):
                read(text, CARD)

    deep(sys.getrecursionlimit() - 300)


@pytest.mark.thinned(one_in=2)
@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) FROM visits WHERE age > " + "9" * 5_000,
        "SELECT COUNT(*) FROM visits WHERE cost > 1e999999",
        "SELECT COUNT(*) FROM visits WHERE cost > 1e-999999",
        "SELECT COUNT(*) FROM visits WHERE cost > 0." + "1" * 5_000,
        "SELECT COUNT(*) FROM visits LIMIT " + "9" * 5_000,
        "SELECT COUNT(*) FROM visits GROUP BY " + "9" * 5_000,
        "SELECT COUNT(*) FROM visits ORDER BY " + "9" * 5_000,
        "SELECT QUANTILE_CONT(age, 1e-99999) FROM visits",
        "SELECT AVG(clamp(cost, 0, 1e99999)) FROM visits",
        "SELECT HISTOGRAM(age, 0, 1e99999) FROM visits",
        "SELECT COUNT(*) AS n FROM visits HAVING n > 1e99999",
        "SELECT COUNT(*) AS n FROM visits HAVING n > " + "9" * 5_000,
        "SELECT COUNT(*) FROM visits WHERE day = '" + "9" * 5_000 + "'",
        "SELECT COUNT(*) FROM visits WHERE region = '" + "a" * 5_000 + "'",
        "SELECT COUNT(*) FROM visits WHERE " + "age = 1 OR " * 7_000 + "ok",
        "SELECT COUNT(*) FROM visits WHERE " + "a" * LONGEST_SQL,
        "SELECT COUNT(*) FROM visits WHERE ok" + " " * LONGEST_SQL,
        "SELECT COUNT(*) FROM visits " + ", a" * MOST_TOKENS,
    ],
)
def test_long_numbers_and_texts_are_refused(text):
    calls = calls_of(lambda: refuses(text))
    assert calls <= CALLS_PER_SIGN * len(text) + A_FEW_CALLS


def refuses(text):
    with pytest.raises(QueryRefused):
        parsed(text, CARD)


def test_a_subject_of_case_is_read_once_however_often_it_is_compared():
    text = "age"
    for _ in range(12):
        text = f"CASE {text} {' '.join(f'WHEN {i} THEN {i}' for i in range(10))} END"
    calls = calls_of(lambda: refuses(f"SELECT COUNT(*) FROM visits WHERE {text} = 1"))
    assert calls <= CALLS_PER_SIGN * len(text) + A_FEW_CALLS


def test_what_the_parser_needs_for_an_ordinary_question_is_far_from_its_limit():
    text = (
        "SELECT region, COUNT(*) AS n, AVG(cost) AS c, MEDIAN(clamp(age, 0, 240)) AS w FROM visits"
        " JOIN regions USING (region) WHERE age > 10 AND CASE WHEN ok THEN age ELSE 1 END BETWEEN 1"
        " AND 2 GROUP BY region HAVING n > 100 ORDER BY n DESC LIMIT 10"
    )
    assert calls_of(lambda: statement_tree(text)) < 0.2 * CALLS_PER_SIGN * len(text)


def test_conditions_on_what_is_released_are_limited_alike():
    query = parsed("SELECT COUNT(*) AS n FROM visits", CARD)
    rows = rows_of(CARD)
    for text in (
        "abs(" * 60 + "n" + ")" * 60,
        "n > " + "9" * 5_000,
        "ARRAY[" * 20 + "n",
        "n = 1 OR " * 5_000 + "n = 2",
    ):
        with pytest.raises(QueryRefused):
            released_condition(text, query, rows)
