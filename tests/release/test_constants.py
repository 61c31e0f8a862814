"""1, 1.0 and true are three constants: questions that differ in them have answers of their own."""

import json
from fractions import Fraction

import pytest

import lastbit as lb
from lastbit.checker.dispatch import problem_of
from lastbit.errors import QueryRefused
from lastbit.tables.query.expression import ColumnName, Constant, Value
from lastbit.tables.query.rules import call

pd = pytest.importorskip("pandas")
NAMES = ["true"] * 200 + ["1"] * 70 + ["1.0"] * 30


def names():
    frame = pd.DataFrame({"id": range(300), "name": pd.array(NAMES, dtype="object")})
    return lb.table(frame, unit="id", max_rows=1)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_each_has_its_own_answer(order):
    texts = [("a", "true", 200), ("b", "1", 70), ("c", "CAST(1 AS DOUBLE)", 30)]
    asked = ", ".join(
        f"COUNT_IF(name = CAST({texts[i][1]} AS TEXT)) AS {texts[i][0]}" for i in order
    )
    answer = names().sql(f"SELECT {asked} FROM rows").release(epsilon=10**6)
    assert {name: answer[name] for name, *_ in texts} == {n: [truth] for n, _, truth in texts}
    assert problem_of(json.loads(answer.to_json())) is None


def test_equal_only_with_their_type():
    values: list[Value] = [1, True, Fraction(1)]
    assert len({Constant(value) for value in values}) == 3
    assert len({call("=", ColumnName("x"), Constant(value)) for value in values}) == 3
    assert Constant(1) == Constant(1) != 1


@pytest.mark.parametrize("end", ["", "HAVING n > 1", "ORDER BY 1"])
def test_group_by_nothing_is_refused(end):
    with pytest.raises(QueryRefused, match="GROUP BY lists no key"):
        names().sql(f"SELECT COUNT(*) AS n FROM rows GROUP BY {end}")
