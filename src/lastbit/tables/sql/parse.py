"""From SQL text to the parser's tree, within limits, and a walk of it that overlooks nothing.

Law      the time is linear in the text: words, depth and the parser's own steps are counted, and
         beyond a public number the question is refused. No clock decides, so nothing but the text
Theorem  the parser (sqlglot's, for DuckDB's dialect) tries one reading after another, each of which
         may try others: 20 words JOIN keep it busy for days. Every reading moves along the words;
         these moves are counted, and PARSER_STEPS for each word are what it gets. Questions that
         have an answer need two at most
Checked  tests/tables/test_parsing.py (generated texts, the parser's calls counted)

The first word must begin a SELECT. What comes after the parser walks the tree recursively, and
derived columns are written out wherever they are named, so that the tree is limited as well. What
the parser understood and we did not look at would be a part of the question that the answer
silently ignores: so every node is taken apart by `taken`, which refuses what is not asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from sqlglot.dialects.duckdb import DuckDB

from lastbit.errors import QueryRefused, WrongType
from lastbit.tables.limits import refused
from lastbit.tables.sql import limits
from lastbit.tables.sql.spellings import (
    open_brackets,
    remove_schemas,
    rename_aggregates,
    top_as_limit,
)
from lastbit.tables.sql.words import written

_A_FEW_STEPS = 200
_CHAINS = ("Add", "And", "DPipe", "Mul", "Or")
_FIRST = ("(", "FROM", "SELECT", "WITH")
_OPENING = ("L_PAREN", "L_BRACKET", "L_BRACE", "CASE")
_CLOSING = ("R_PAREN", "R_BRACKET", "R_BRACE", "END")


def statement_tree(text: str) -> Any:
    """The one SELECT that the text is."""
    _check_text(text)
    return _statement(top_as_limit(text), "query", "write SELECT ... FROM ...")


def _statement(text: str, what: str, remedy: str) -> Any:
    statements = _parsed(text, what, remedy)
    if len(statements) != 1 or kind_of(statements[0]) != "Select":
        raise refused(
            "query", "is not one SELECT statement", "write SELECT ... FROM ... GROUP BY ..."
        )
    _check_size(statements[0])
    remove_schemas(statements[0])
    open_brackets(statements[0])
    rename_aggregates(statements[0])
    return statements[0]


def expression_tree(text: str) -> Any:
    """The one expression that the text is, such as age + 1.

    The text stands alone in brackets, on a line of its own: it can neither end the statement nor
    hide the bracket in a comment, and a second part of a SELECT is refused by `taken`.
    """
    _check_text(text, "expression", "write, say, 'age + 1' or 'age > 17'")
    select = _statement(in_brackets(text), "expression", "write, say, age + 1 or age > 17")
    (items,) = taken(select, "expressions")
    if len(items) != 1 or kind_of(items[0]) == "Alias":
        raise refused("expression", "is not one expression", "write, say, age + 1")
    return items[0]


def in_brackets(text: str) -> str:
    """A statement that selects this expression and nothing else."""
    return f"SELECT (\n{text}\n)"


def _check_text(text: object, what: str = "query", remedy: str = "write SQL") -> None:
    if not isinstance(text, str):
        raise WrongType(what, problem="is not text", remedy=remedy)
    if not text.strip() or len(text) > limits.LONGEST_SQL:
        raise refused(what, "is empty or too long", "write SQL, a page at most")
    if "\x00" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        raise refused("query", "holds characters that are none", "leave them out")


def too_deep(what: str = "query") -> QueryRefused:
    """A refusal of what is nested more deeply than can be walked."""
    return refused(what, "is nested too deeply", "write it more simply, with fewer brackets")


def _parsed(text: str, what: str, remedy: str) -> list[Any]:
    try:
        dialect = DuckDB()
        tokens = dialect.tokenize(text)
        if not tokens or tokens[0].text.upper() not in _FIRST:
            raise refused(what, "is not a SELECT", remedy)
        if len(tokens) > limits.MOST_TOKENS:
            problem = f"has more than {limits.MOST_TOKENS} words"
            raise refused(what, problem, "ask several questions")
        depth = 0  # of brackets inside each other
        for token in tokens:
            sign = token.token_type.name
            depth += (sign in _OPENING) - (sign in _CLOSING and depth > 0)
            if depth > limits.DEEPEST_SQL:
                raise too_deep(what)
        parser = _Counting(dialect=dialect)
        parser.left = limits.PARSER_STEPS * len(tokens) + _A_FEW_STEPS
        trees = [tree for tree in parser.parse(tokens, text) if tree is not None]
        # a comment behind the last ; is a tree of its own
        return [tree for tree in trees if kind_of(tree) != "Semicolon"]
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


_Parser: Any = DuckDB.Parser  # wherever this version of sqlglot defines it


class _Counting(_Parser):  # type: ignore[misc]
    """The parser, but with a number of steps that it may take."""

    left = 0

    def _advance(self, times: int = 1) -> None:
        self.left -= 1
        if self.left < 0:
            remedy = "give each JOIN its ON or USING, and write it more simply"
            raise refused("query", "can be read in too many ways", remedy)
        super()._advance(times)


def _check_size(tree: Any) -> None:
    """That the tree is no deeper than what walks it can bear; a long sum or AND is one level."""
    columns, queries, waiting = 0, 0, [(tree, 0)]
    while waiting:
        node, depth = waiting.pop()
        if depth > limits.DEEPEST_TREE:
            raise too_deep()
        columns += kind_of(node) == "Column"
        queries += kind_of(node) == "Select"
        chained = kind_of(node) in _CHAINS
        for child in node.iter_expressions():
            same = chained and kind_of(child) == kind_of(node)
            waiting.append((child, depth if same else depth + 1))
    if columns > limits.MOST_COLUMNS:
        raise refused("query", "names columns too often", "ask several questions")
    if queries > limits.MOST_SUBQUERIES:
        raise refused("query", "has too many sub-queries", "ask several questions")


EQUAL_COLUMNS = "write JOIN t USING (a), or JOIN t ON visits.a = t.b"
_FURTHER = "a further argument"
_LISTED = "list the columns, each by its name"
_SAID: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "catalog": ("a database", "write the name alone"),
        "columns": ("a list of columns", "name them in SELECT with AS"),
        "count": (_FURTHER, "leave it out"),
        "db": ("a schema", "write the name alone"),
        "direction": ("FETCH", "write LIMIT 10"),
        "distinct": ("DISTINCT", "GROUP BY the columns instead: SELECT x, COUNT(*) ... GROUP BY x"),
        "except": ("EXCLUDE", _LISTED),
        "expression": (_FURTHER, "leave it out"),
        "kind": ("what follows SELECT", "leave it out"),
        "limit_options": ("a share of the rows", "write, say, LIMIT 10"),
        "locks": ("FOR UPDATE", "leave it out"),
        "method": ("the kind of JOIN", EQUAL_COLUMNS),
        "offset": ("OFFSET", "take the first rows with LIMIT"),
        "on": ("ON", "GROUP BY the columns instead: SELECT x, COUNT(*) ... GROUP BY x"),
        "pivots": ("PIVOT", "GROUP BY the column instead"),
        "position": ("one side alone", "use TRIM"),
        "qualify": ("QUALIFY", "use HAVING"),
        "recursive": ("RECURSIVE", "ask without it"),
        "replace": ("REPLACE", _LISTED),
        "sample": ("SAMPLE", "ask about all rows"),
        "truncate": (_FURTHER, "leave it out"),
        "windows": ("WINDOW", "GROUP BY instead"),
    }
)
"""What the parser calls a part of a statement: how people write it, and what comes nearest."""


def kind_of(node: Any) -> str:
    """The name of a node's class."""
    return type(node).__name__


def taken(node: Any, *wanted: str, ignored: tuple[str, ...] = ()) -> list[Any]:
    """The named parts of a node, in this order; any other part is refused.

    `ignored` names parts that mean nothing here (hints of the parser about dialects).
    """
    for name, value in node.args.items():
        empty = value is None or value is False or value == "" or value == []
        if not empty and name not in wanted and name not in ignored:
            plain = name.strip("_")
            said, remedy = _SAID.get(plain, (plain.upper().replace("_", " "), "leave it out"))
            raise refused(said, f"has no meaning here (in {written(node)})", remedy)
    return [node.args.get(name) for name in wanted]


def name_of(identifier: Any) -> str:
    """The text of an identifier."""
    if kind_of(identifier) != "Identifier":
        raise refused("name", "is not a plain name", "write a name")
    (text,) = taken(identifier, "this", ignored=("quoted",))
    if not isinstance(text, str) or not text:
        raise refused("name", "is empty", "write a name")
    return text


def names(identifier: Any, known: str) -> bool:
    """Whether the identifier means this name: letter for letter in quotes, else in any case."""
    text = name_of(identifier)
    return text == known if identifier.args.get("quoted") else text.lower() == known.lower()


def number_of(node: Any) -> Fraction | None:
    """The exact number that a literal writes, with its sign; None for anything else."""
    sign = 1
    while kind_of(node) in ("Neg", "Paren"):
        sign = -sign if kind_of(node) == "Neg" else sign
        (node,) = taken(node, "this")
    if kind_of(node) != "Literal" or node.args.get("is_string"):
        return None
    mantissa, _, exponent = str(node.this).lower().replace("_", "").partition("e")
    if len(mantissa) > limits.LONGEST_DIGITS or len(exponent) > 4:
        raise refused("number", "is written with too many digits", "write a shorter one")
    try:
        power = int(exponent or "0")
        number = Fraction(mantissa)
    except (ValueError, ZeroDivisionError):
        raise refused("number", "is not understood", "write digits") from None
    if abs(power) > limits.LARGEST_EXPONENT:
        power = limits.LARGEST_EXPONENT
        remedy = f"write one from 1e-{power} to 1e{power}"
        raise refused("number", "is too large or too small", remedy)
    return sign * number * Fraction(10) ** power


def integer_of(node: Any) -> int | None:
    """The whole number that a literal writes; None for anything else."""
    number = number_of(node)
    return int(number) if number is not None and number.denominator == 1 else None


def place_of(node: Any) -> int | None:
    """The place that a bare whole number names, as in ORDER BY 2; None for anything else."""
    while kind_of(node) == "Paren":
        (node,) = taken(node, "this")
    if kind_of(node) == "Literal" and not node.args.get("is_string") and str(node.this).isdigit():
        return integer_of(node)
    return None
