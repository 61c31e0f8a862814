"""From SQL text to the parser's tree, within limits; whatever the parser does, we only refuse.

Law      the time is linear in the text: words, depth and the parser's own steps are counted, and
         beyond a public number the question is refused. No clock decides, so nothing but the text
Theorem  the parser (sqlglot's, for DuckDB's dialect) tries one reading after another, each of which
         may try others: 20 words JOIN keep it busy for days. Every reading moves along the words;
         these moves are counted, and PARSER_STEPS for each word are what it gets. Questions that
         have an answer need two at most
Checked  tests/tables/test_parsing.py (generated texts, the parser's calls counted)

The first word must begin a SELECT. What comes after the parser walks the tree recursively, and
derived columns are written out wherever they are named, so that the tree is limited as well.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from lastbit.errors import QueryRefused, WrongType
from lastbit.tables.limits import (
    DEEPEST_SQL,
    DEEPEST_TREE,
    LONGEST_SQL,
    MOST_COLUMNS,
    MOST_SUBQUERIES,
    MOST_TOKENS,
    PARSER_STEPS,
)
from lastbit.tables.sql_tree import kind_of, refused, taken

__all__ = ["expression_tree", "statement_tree", "too_deep"]

_A_FEW_STEPS = 200
_CHAINS = ("Add", "And", "DPipe", "Mul", "Or")
_FIRST = ("(", "FROM", "SELECT", "WITH")
_OPENING = ("L_PAREN", "L_BRACKET", "L_BRACE", "CASE")
_CLOSING = ("R_PAREN", "R_BRACKET", "R_BRACE", "END")


def statement_tree(text: str) -> Any:
    """The one SELECT that the text is."""
    _check_text(text)
    return _statement(text, "query", "write SELECT ... FROM ...")


def _statement(text: str, what: str, remedy: str) -> Any:
    statements = _parsed(text, what, remedy)
    if len(statements) != 1 or kind_of(statements[0]) != "Select":
        raise refused(
            "query", "is not one SELECT statement", "write SELECT ... FROM ... GROUP BY ..."
        )
    _check_size(statements[0])
    return statements[0]


def expression_tree(text: str) -> Any:
    """The one expression that the text is, such as age + 1.

    The text stands alone in brackets, on a line of its own: it can neither end the statement nor
    hide the bracket in a comment, and a second part of a SELECT is refused by `taken`.
    """
    _check_text(text, "expression", "write, say, 'age + 1' or 'age > 17'")
    select = _statement(f"SELECT (\n{text}\n)", "expression", "write, say, age + 1 or age > 17")
    (items,) = taken(select, "expressions")
    if len(items) != 1 or kind_of(items[0]) == "Alias":
        raise refused("expression", "is not one expression", "write, say, age + 1")
    return items[0]


def _check_text(text: object, what: str = "query", remedy: str = "write SQL") -> None:
    if not isinstance(text, str):
        raise WrongType(what, problem="is no text", remedy=remedy)
    if not text.strip() or len(text) > LONGEST_SQL:
        raise refused(what, "is empty or too long", "write SQL, a page at most")
    if "\x00" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        raise refused("query", "holds characters that are none", "leave them out")


def too_deep(what: str = "query") -> QueryRefused:
    """A refusal of what is nested more deeply than can be walked."""
    return refused(what, "is nested too deeply", "write it more simply, with fewer brackets")


def _parsed(text: str, what: str, remedy: str) -> list[Any]:
    from sqlglot.dialects.duckdb import DuckDB

    try:
        dialect = DuckDB()
        tokens = dialect.tokenize(text)
        if not tokens or tokens[0].text.upper() not in _FIRST:
            raise refused(what, "is no SELECT", remedy)
        _check_tokens(tokens, what)
        parser = _counting()(dialect=dialect)
        parser.left = PARSER_STEPS * len(tokens) + _A_FEW_STEPS
        return [tree for tree in parser.parse(tokens, text) if tree is not None]
    except QueryRefused:
        raise
    except RecursionError:
        deep = True
    except Exception as error:  # a parser that is surprised may raise anything
        deep = False
        place: Any = next(iter(getattr(error, "errors", ())), {})
        known = what == "query" and "line" in place
        where = f" at line {place['line']}, column {place['col']}" if known else ""
    raise too_deep(what) if deep else refused(what, f"is no SQL{where}", remedy)


@cache
def _counting() -> Any:
    """The parser, but with a number of steps that it may take."""
    from sqlglot.dialects.duckdb import DuckDB

    parser: Any = DuckDB.Parser

    class Counting(parser):  # type: ignore[misc]
        left = 0

        def _advance(self, times: int = 1) -> None:
            self.left -= 1
            if self.left < 0:
                raise refused(
                    "query",
                    "can be read in too many ways",
                    "give each JOIN its ON or USING, and write it more simply",
                )
            super()._advance(times)

    return Counting


def _check_tokens(tokens: list[Any], what: str) -> None:
    """That there are not too many, and not too many brackets inside each other."""
    if len(tokens) > MOST_TOKENS:
        raise refused(what, f"has more than {MOST_TOKENS} words", "ask several questions")
    depth = 0
    for token in tokens:
        sign = token.token_type.name
        depth += (sign in _OPENING) - (sign in _CLOSING and depth > 0)
        if depth > DEEPEST_SQL:
            raise too_deep(what)


def _check_size(tree: Any) -> None:
    """That the tree is no deeper than what walks it can bear; a long sum or AND is one level."""
    columns, queries, waiting = 0, 0, [(tree, 0)]
    while waiting:
        node, depth = waiting.pop()
        if depth > DEEPEST_TREE:
            raise too_deep()
        columns += kind_of(node) == "Column"
        queries += kind_of(node) == "Select"
        chained = kind_of(node) in _CHAINS
        for child in node.iter_expressions():
            same = chained and kind_of(child) == kind_of(node)
            waiting.append((child, depth if same else depth + 1))
    if columns > MOST_COLUMNS:
        raise refused("query", "names columns too often", "ask several questions")
    if queries > MOST_SUBQUERIES:
        raise refused("query", "has too many sub-queries", "ask several questions")
