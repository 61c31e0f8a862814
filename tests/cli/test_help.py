"""`lastbit help`: what can be asked, which the parser must know; and `python -m lastbit`."""

import subprocess
import sys

import pytest

import lastbit
from lastbit.cli.help import INSTEAD
from lastbit.errors import QueryRefused
from lastbit.tables.sql.statement import parsed
from tests.cli.running import refused, succeeded
from tests.tables.asked import CARD


def test_queries_fit_on_a_terminal():
    page = succeeded("help", "queries")
    assert max(map(len, page.splitlines())) <= 80
    assert "GROUP BY" in page and "clamp(x, low, high)" in page


def test_the_help_of_a_command_is_its_own():
    assert succeeded("help", "card") == succeeded("card", "--help")
    assert succeeded("help") == succeeded("--help")
    assert succeeded("help", "card", "new") == succeeded("card", "new", "--help")
    assert "is not known" in refused("help", "card", "old")
    assert "is not known" in refused("help", "query", "new")
    assert "is not known; write queries" in refused("help", "nothing")


def test_refused_questions_point_to_it(folder):
    (folder / "t.csv").write_text("id\n1\n")
    options = ("--each-row", "--epsilon", "1", "--types", "id=integer")
    succeeded("card", "new", "t.csv", *options, "--neighbours", "add-remove")
    words = refused("query", "t.toml", "SELECT DISTINCT id FROM t", "--epsilon", "1")
    assert words.endswith("What can be asked: lastbit help queries")


@pytest.mark.parametrize(
    ("sql", "word"),
    [
        ("string_agg(region, ',')", "STRING_AGG"),
        ("bool_and(ok)", "BOOL_AND"),
        ("strpos(region, 'a')", "STRPOS"),
        ("arg_max(region, age)", "ARG_MAX"),
        ("region[1]", "x[...]"),
        ("age & 3", "&"),
    ],
)
def test_refusals_use_the_words_of_sql(sql, word):
    with pytest.raises(QueryRefused) as caught:
        parsed(f"SELECT {sql} FROM visits", CARD)
    assert caught.value.parameter == word
    assert "lastbit help queries" in caught.value.remedy


def test_what_is_said_to_be_refused_is():
    assert len(INSTEAD) == 6
    for sql in (
        "SELECT * FROM visits",
        "SELECT DISTINCT region FROM visits",
        "SELECT AVG(free) FROM visits",
        "SELECT cost, COUNT(*) FROM visits GROUP BY cost",
        "SELECT COUNT(*) FROM visits WHERE pid IN (SELECT pid FROM visits)",
        "SELECT COUNT(*) OVER () FROM visits",
        "SELECT COUNT(*) FROM visits UNION SELECT COUNT(*) FROM visits",
        "SELECT region, COUNT(*) FROM visits GROUP BY ROLLUP (region)",
    ):
        with pytest.raises(QueryRefused):
            parsed(sql, CARD)


def test_python_runs_the_same_command():
    run = subprocess.run(
        [sys.executable, "-m", "lastbit", "--version"], capture_output=True, text=True, check=True
    )
    assert run.stdout == f"lastbit, version {lastbit.__version__}\n"
