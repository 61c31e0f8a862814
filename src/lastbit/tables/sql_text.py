"""From SQL text to the parser's tree, within limits; whatever the parser does, we only refuse.

The parser is sqlglot's, for DuckDB's dialect. It recurses, and guesses at what it does not know; so
the text is limited first, the first word must begin a SELECT, and the tree is limited afterwards:
what comes later walks it recursively, and derived columns are written out wherever they are named.
"""

from __future__ import annotations

from typing import Any

from lastbit.errors import QueryRefused, WrongType
from lastbit.tables.sql_tree import kind_of, refused, taken

__all__ = ["expression_tree", "statement_tree"]

_LONGEST = 100_000
_DEEPEST = 150
_MOST_COLUMNS = 1_000
_CHAINS = ("Add", "And", "DPipe", "Mul", "Or")
_FIRST = ("(", "FROM", "SELECT", "WITH")


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
    if not text.strip() or len(text) > _LONGEST:
        raise refused(what, "is empty or too long", "write SQL, a page at most")
    if "\x00" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        raise refused("query", "holds characters that are none", "leave them out")


def _parsed(text: str, what: str, remedy: str) -> list[Any]:
    import sqlglot

    try:
        first = next(iter(sqlglot.tokenize(text, read="duckdb")), None)
        if first is None or first.text.upper() not in _FIRST:
            raise refused(what, "is no SELECT", remedy)
        return [tree for tree in sqlglot.parse(text, read="duckdb") if tree is not None]
    except QueryRefused:
        raise
    except Exception as error:  # a parser that is surprised may raise anything
        place: Any = next(iter(getattr(error, "errors", ())), {})
        known = what == "query" and "line" in place
        where = f" at line {place['line']}, column {place['col']}" if known else ""
    raise refused(what, f"is no SQL{where}", remedy)


def _check_size(tree: Any) -> None:
    """That the tree is no deeper than what walks it can bear; a long sum or AND is one level."""
    columns, waiting = 0, [(tree, 0)]
    while waiting:
        node, depth = waiting.pop()
        if depth > _DEEPEST:
            raise refused("query", "is nested too deeply", "write it more simply")
        columns += kind_of(node) == "Column"
        chained = kind_of(node) in _CHAINS
        for child in node.iter_expressions():
            same = chained and kind_of(child) == kind_of(node)
            waiting.append((child, depth if same else depth + 1))
    if columns > _MOST_COLUMNS:
        raise refused("query", "names columns too often", "ask several questions")
