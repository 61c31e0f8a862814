"""Broken SQL is refused, not repaired: whatever DuckDB's parser refuses has no answer here.

The oracle is DuckDB's parser itself, on a connection of the test's own.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import duckdb
import pyarrow
import pytest

import lastbit as lb
from lastbit.errors import LastbitError, QueryRefused
from lastbit.tables.sql.rows import rows_of
from lastbit.tables.sql.statement import expression_of, parsed
from tests.evidence import Extent
from tests.tables.asked import CARD, EVERYTHING

BROKEN = (
    "SELECT COUNT(*) AS n FROM visits WHERE age IN (20,,30)",
    "SELECT COUNT(*) AS n FROM visits WHERE age > 30,",
    "SELECT COUNT(,) AS n FROM visits",
    "SELECT COUNT(*) AS n FROM visits WHERE (age > 30",
    "SELECT COUNT(* FROM visits",
)
VALID = (
    "SELECT COUNT ( * ) AS n FROM visits WHERE age IN ( 20 , 30 )",
    "SELECT region , COUNT ( * ) AS n FROM visits GROUP BY region ORDER BY n DESC LIMIT 3",
    "SELECT AVG ( age ) AS a , SUM ( cost ) AS s FROM visits WHERE age > 30 AND ok",
    "SELECT bin ( age , 0 , 10 , 20 ) AS b , COUNT ( * ) AS n FROM visits GROUP BY b",
    "SELECT COUNT ( * ) AS n FROM visits JOIN regions USING ( region ) WHERE zone = 'a'",
    "SELECT QUANTILE_CONT ( age , [ 0.1 , 0.5 ] ) AS q FROM visits WHERE NOT ( age < 3 OR ok )",
    "SELECT CASE WHEN age > 17 THEN 'a' ELSE 'b' END AS c , COUNT ( * ) FROM visits GROUP BY 1",
    "WITH q AS ( SELECT * FROM visits ) SELECT region , COUNT ( * ) AS n FROM q GROUP BY region "
    "HAVING COUNT ( * ) > 3",
)
INSERTED = (",", "(", ")", "[", "]", ";", "*", "AND", "30", "'a'", "AS", "age", "=", "-", "WHERE")


def is_sql(text: str) -> bool:
    """Whether DuckDB's parser reads one statement."""
    try:
        return len(duckdb.extract_statements(text)) == 1
    except duckdb.Error:
        return False


def mutant(random: Random) -> str:
    """A valid question with one or two words deleted, doubled, swapped or inserted."""
    words = random.choice(VALID).split(" ")
    for _ in range(random.choice((1, 1, 2))):
        place = random.randrange(len(words))
        match random.randrange(4):
            case 0:
                del words[place]
            case 1:
                words.insert(place, words[place])
            case 2:
                words.insert(place, random.choice(INSERTED))
            case _:
                other = random.randrange(len(words))
                words[place], words[other] = words[other], words[place]
    return " ".join(words)


@pytest.mark.parametrize("text", BROKEN)
def test_broken_sql_is_refused(text: str) -> None:
    with pytest.raises(QueryRefused, match=r"is no SQL at line 1, column \d+; ") as error:
        parsed(text, CARD)
    assert error.value.__cause__ is None


@pytest.mark.parametrize("text", ["age IN (20,,30)", "(age > 30", "COALESCE(age,,3) > 1"])
def test_broken_expressions_are_refused(text: str) -> None:
    with pytest.raises(QueryRefused, match="expression is no SQL"):
        expression_of(text, rows_of(CARD))


def test_whatever_the_reference_parser_refuses_is_refused(extent: Extent) -> None:
    """Mutants of valid questions; a check left out is seen, as some are repaired."""
    assert all(map(is_sql, (*VALID, EVERYTHING)))
    random, broken, answered = Random(5), 0, 0
    for _ in range(extent.number(1_000, 5_000)):
        text = mutant(random)
        wrong = not is_sql(text)
        broken += wrong
        try:
            parsed(text, CARD)
        except LastbitError as error:
            assert str(error)
        else:
            answered += 1
            assert not wrong, text
    assert broken > 300 and answered > 50


@pytest.mark.parametrize("text", BROKEN)
def test_broken_sql_costs_nothing(text: str, tmp_path: Path) -> None:
    """The ledger is not even made: a question without a meaning has no plan and no price."""
    numbers = range(300)
    columns = {"patient": [n // 3 for n in numbers], "age": [20 + n % 60 for n in numbers]}
    rows = pyarrow.table(columns)
    visits = lb.table(rows, unit="patient", max_rows=3, name="visits")
    with pytest.raises(QueryRefused):
        visits.sql(text).release(epsilon=1, ledger=tmp_path / "visits.ledger")
    assert not list(tmp_path.iterdir())
    whole = visits.sql("SELECT COUNT(*) AS n FROM visits WHERE age IN (20, 30)")
    whole.release(epsilon=1, ledger=tmp_path / "visits.ledger")
    assert list(tmp_path.iterdir())
