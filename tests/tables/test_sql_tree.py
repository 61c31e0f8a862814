"""Nothing that the parser understood is overlooked: every part of every node is noticed."""

from __future__ import annotations

from typing import Any

import pytest
import sqlglot
from sqlglot import exp

from lastbit.errors import InvalidParameter
from lastbit.tables.query.query import Query
from lastbit.tables.query.view import View
from lastbit.tables.sql import (
    aggregates as sql_aggregates,
    derived as sql_derived,
    expressions as sql_expression,
)
from lastbit.tables.sql.statement import parsed, query_of
from tests.tables.asked import (
    CARD,
    COMMAS,
    DISTINCT_VALUES,
    EVERYTHING,
    JOINED,
    KEYS_ALONE,
    MOST_FREQUENT,
    OF_KEYS,
    OVER_GROUPS,
    SHARES,
)

# parts that carry no meaning for the answer, each with the reason
MEANINGLESS = {
    ("Cast", "safe"),  # an expression is missing where SQL would stop, so TRY_CAST is CAST
    ("CTE", "materialized"),  # how, not what
    ("Count", "big_int"),  # the width of the result
    ("Concat", "safe"), ("Concat", "coalesce"),  # CONCAT leaves out what is missing, always
    ("DPipe", "safe"), ("Div", "safe"), ("Div", "typed"),
    ("DateDiff", "date_part_boundary"),  # midnights are counted, always
    ("Identifier", "quoted"),  # all names here are spelled as on the card
    ("Literal", "is_string"),  # '8' beside a number is 8; elsewhere: the test below
    ("Least", "ignore_nulls"),  # missing ones are left out, always
    ("Ordered", "nulls_first"),  # of a quantile: missing values have no rank
}  # fmt: skip
# parts without which the thing means the same: no name where there is only one table, COUNT()
IMPLIED = {("Column", "table"), ("Count", "this"), ("DateDiff", "unit")}


def read(tree: Any) -> tuple[Query, View | None]:
    return query_of(tree, CARD)


def difference(tree: Any, original: tuple[Query, View | None]) -> bool:
    """Whether the change of the tree was noticed: refused, or another question."""
    try:
        return read(tree) != original
    except Exception:
        return True


def everything(text: str = EVERYTHING) -> Any:
    return sqlglot.parse_one(text, read="duckdb")


def kinds_of_places() -> dict[tuple[str, str | None, str], tuple[str, int]]:
    """One place in the trees for every kind of node below every kind of node."""
    found: dict[tuple[str, str | None, str], tuple[str, int]] = {}
    texts = (SHARES, MOST_FREQUENT, OF_KEYS, KEYS_ALONE, OVER_GROUPS, JOINED, DISTINCT_VALUES)
    for text in (EVERYTHING, *texts):
        for place, node in enumerate(everything(text).walk(bfs=False)):
            kinds = type(node.parent).__name__, node.arg_key, type(node).__name__
            found.setdefault(kinds, (text, place))
    return found


PLACES = kinds_of_places()


def at(place: tuple[str, int]) -> tuple[Any, Any]:
    tree = everything(place[0])
    return tree, list(tree.walk(bfs=False))[place[1]]


def test_the_statement_of_the_next_tests_is_read_and_holds_many_kinds_of_nodes():
    assert read(everything())[0].limit == 7
    assert len({kind for _, _, kind in PLACES}) > 60


@pytest.mark.thinned(one_in=12)
@pytest.mark.parametrize("place", PLACES.values(), ids=map(str, PLACES))
def test_no_part_of_any_node_is_overlooked(place):
    """Every part that the parser could set, set: refused, or another question."""
    tree, node = at(place)
    original, kind = read(tree), type(node).__name__
    for name in node.arg_types:
        before = node.args.get(name)
        flag = isinstance(before, bool) or name == "desc"
        for strange in (not before,) if flag else (exp.column("strange"), True):
            node.args[name] = strange
            noticed = difference(tree, original)
            assert noticed or (kind, name) in MEANINGLESS, (kind, name, strange)
        node.args[name] = before
    assert read(tree) == original


@pytest.mark.thinned(one_in=6)
@pytest.mark.parametrize("place", PLACES.values(), ids=map(str, PLACES))
def test_no_part_of_any_node_can_go_unnoticed(place):
    """Every part that is there, taken away: refused, or another question."""
    tree, node = at(place)
    original, kind = read(tree), type(node).__name__
    for name, before in list(node.args.items()):
        if before in (None, False, []):
            continue
        node.args[name] = None
        noticed = difference(tree, original)
        assert noticed or (kind, name) in MEANINGLESS | IMPLIED, (kind, name)
        node.args[name] = before


@pytest.mark.parametrize("text", [OVER_GROUPS, JOINED, COMMAS])
def test_no_part_of_a_select_over_groups_or_of_joins_is_overlooked(text):
    tree = everything(text)
    original = read(tree)
    for node in list(tree.walk(bfs=False)):
        kind = type(node).__name__
        for name in {*node.arg_types, *node.args}:
            before = node.args.get(name)
            flag = isinstance(before, bool) or name == "desc"
            for strange in (not before,) if flag else (exp.column("strange"), True, None):
                if strange == before or (strange is None and not before):
                    continue
                node.args[name] = strange  # another name of a table, that nothing uses, is free
                free = MEANINGLESS | (IMPLIED if strange is None else {("Table", "alias")})
                assert difference(tree, original) or (kind, name) in free, (kind, name, strange)
            node.args[name] = before
    assert read(tree) == original


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) AS n FROM visits GROUP BY '1'",
        "SELECT region, COUNT(*) AS n FROM visits GROUP BY '1'",
        "SELECT region, COUNT(*) AS n FROM visits GROUP BY region LIMIT '5'",
        "SELECT QUANTILE_CONT(age, '0.5') AS q FROM visits",
        "SELECT HISTOGRAM(age, '0', '18') AS h FROM visits",
        "SELECT bin(age, '0', '18') AS b, COUNT(*) AS n FROM visits GROUP BY b",
        "SELECT AVG(clamp(age, '0', '18')) AS a FROM visits",
        "SELECT AVG(age + '1') AS a FROM visits",
        "SELECT COUNT(*) * '2' AS a FROM visits",
    ],
)
def test_a_text_is_a_number_in_comparisons_alone(text):
    with pytest.raises(InvalidParameter):
        parsed(text, CARD)


def test_every_name_of_the_parser_that_we_know_is_one():
    known = [*sql_expression._CHAINS, *sql_expression._CALLS, *sql_expression._HANDLERS]
    known += [*sql_aggregates._PLAIN, *sql_aggregates._LEVELS, *sql_aggregates._OTHERS]
    known += sql_derived._KINDS
    assert [name for name in known if not hasattr(exp, name)] == []
    assert [
        name for name in sql_expression._CASTS if name not in exp.DataType.Type.__members__
    ] == []
