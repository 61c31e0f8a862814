"""What DuckDB's own parser says of a text: the reference for what is SQL.

Law      a text that DuckDB's parser refuses is refused here, before a plan and before a charge
Why      `parse.py` reads with a parser that repairs: IN (20,,30), COUNT(,) and WHERE age > 30, have
         no meaning, and it gives them one
Theorem  nothing is run: the parser works on a database in memory, without tables and without
         access to files. Texts have passed the limits of `parse.py` before
Checked  tests/tables/test_grammar.py (mutants of questions, against DuckDB's parser itself)
"""

from __future__ import annotations

import os
import re
from functools import lru_cache
from typing import Any

from lastbit.tables.limits import refused
from lastbit.tables.sql.parse import in_brackets, too_deep
from lastbit.tables.sql.spellings import top_as_limit

_SHOWN = re.compile(r"^LINE (\d+): (.*)\n( *)\^", re.MULTILINE)
_REMEDY = "look for a comma, bracket or word too many or too few just before"


def check_statement(text: str) -> None:
    """That DuckDB's parser reads the text as one SELECT."""
    _check_grammar(top_as_limit(text), "query", _REMEDY)


def check_expression(text: str) -> None:
    """That DuckDB's parser reads the text as an expression."""
    _check_grammar(in_brackets(text), "expression", "write, say, age + 1 or age > 17")


def _check_grammar(text: str, what: str, remedy: str) -> None:
    try:
        with _database(os.getpid()).cursor() as connection:
            kinds = [statement.type.name for statement in connection.extract_statements(text)]
    except Exception as error:  # its words hold the text: only the place is taken from them
        words = str(error)
    else:
        if kinds != ["SELECT"]:
            raise refused(what, "is not one SELECT statement", remedy)
        return
    if "expression depth" in words:
        raise too_deep(what)
    raise refused(what, "is no SQL" + (_place(words) if what == "query" else ""), remedy)


@lru_cache(maxsize=1)
def _database(process: int) -> Any:
    """An empty database of this process; a child has its own, as locks do not survive a fork."""
    import duckdb  # late: it is slow to load

    settings: dict[str, Any] = {
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "enable_external_access": False,
        "temp_directory": "",
        "threads": 1,
    }
    return duckdb.connect(":memory:", config=settings)


def _place(words: str) -> str:
    """Where DuckDB points to, unless it shortened the line."""
    shown = _SHOWN.search(words)
    if shown is None:
        return ""
    line, start, blanks = shown.groups()
    if start.startswith("..."):
        return f" at line {line}"
    return f" at line {line}, column {len(blanks) - len(f'LINE {line}: ') + 1}"
