"""Sentences that the program shows are short, and without phrases that nobody understands.

Read from the source: texts of Python files outside docstrings, help of commands, and pages. What
stands in certificates letter for letter, and texts that are no prose (SQL, a Makefile's, names),
are left out by name.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "lastbit"
LONGEST = 20
PHRASES = (
    "nobody may",
    "whoever",
    "is nothing that",
    "a thing without",
    "where there are more",
    "whatever the data are",
    "bought besides",
)
CERTIFIED = ("checker/dispatch.py", "checker/answer.py")
"""Their sentences are compared letter for letter, earlier versions among them."""
NO_PROSE = (
    "checker/code.py",
    "ledger/definitions.py",
    "report/answer_charts.py",
    "report/certificate.py",
    "serve/sqlport/names.py",
    "serve/units.py",
    "tables/compile/",
    "tables/sql/expressions.py",
    "verify/tracing/screening.py",
)
_INLINE = re.compile(r"</?(?:a|abbr|b|bdi|code|em|i|kbd|mark|span|strong|sub|sup|var)\b[^>]*>")
_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9{\"'(“]|lastbit)|\n\s*\n|\n(?=#)")
_SQL = re.compile(r"\s*(?:CREATE|SELECT|WITH|INSERT|UPDATE|DELETE|COPY) ")


def text_of(node: ast.AST) -> str | None:
    """A text that is written out; what is filled in stands as one word."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(text_of(part) or "{}" for part in parts)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            texts = text_of(left), text_of(right)
            return None if texts == (None, None) else "".join(text or "{}" for text in texts)
    return None


def is_command(function: ast.FunctionDef) -> bool:
    """Whether it is one of the command line's, so that its docstring is shown."""
    return any(
        "command" in name or "group" in name for name in map(ast.unparse, function.decorator_list)
    )


def texts_of(tree: ast.Module, *, commands: bool) -> Iterator[str]:
    """Every text of a file but SQL and docstrings; of commands these too, which are their help."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    helps = {id(one.body[0]) for one in functions if commands and is_command(one)}
    hidden = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if id(node) not in helps
    }

    def walk(node: ast.AST) -> Iterator[str]:
        if id(node) in hidden:
            return
        text = text_of(node)
        if text is not None and not _SQL.match(text):
            yield text
        for child in ast.iter_child_nodes(node):
            if text is None or isinstance(child, ast.FormattedValue):
                yield from walk(child)

    yield from walk(tree)


def sentences_of(text: str) -> Iterator[str]:
    for part in _END.split(text):
        sentence = " ".join(part.split())
        if len(re.findall("[A-Za-z]{2,}", sentence)) > 2:
            yield sentence


def words_of(sentence: str) -> int:
    return sum(bool(re.search("[A-Za-z0-9{]", word)) for word in sentence.split())


def page_texts(page: str) -> Iterator[str]:
    """The running text of a template; a value that is filled in is one word."""
    page = re.sub(r"(?s)<(script|style).*?</\1>|\{#.*?#\}", "", page)
    page = re.sub(r"(?s)\{%.*?%\}", " ", re.sub(r"(?s)\{\{.*?\}\}", "{}", page))
    yield from re.findall(r"(?:^|>)([^<]+)", _INLINE.sub("", page))


@cache
def shown_sentences() -> tuple[tuple[str, str], ...]:
    """File and sentence, of all that may be shown."""
    found = []
    for path in sorted(SOURCE.rglob("*")):
        name = str(path.relative_to(SOURCE))
        if name.startswith((*CERTIFIED, *NO_PROSE)):
            continue
        if path.suffix == ".py":
            tree = ast.parse(path.read_text("utf-8"))
            texts = texts_of(tree, commands=name.startswith("cli/"))
        elif path.suffix == ".html":
            texts = page_texts(path.read_text("utf-8"))
        else:
            continue
        found += [(name, sentence) for text in texts for sentence in sentences_of(text)]
    return tuple(found)


def faults_of(sentence: str) -> str | None:
    """What is wrong with a sentence."""
    phrase = next((one for one in PHRASES if one in sentence.lower()), None)
    if phrase is not None:
        return f"says {phrase}"
    return f"has {count} words" if (count := words_of(sentence)) > LONGEST else None


def test_no_sentence_is_too_long_or_says_what_nobody_understands() -> None:
    faults = [(name, fault, s) for name, s in shown_sentences() if (fault := faults_of(s))]
    assert not faults


def test_the_reading_sees_texts_helps_and_pages() -> None:
    assert len(shown_sentences()) > 4_000
    long = "the interval " + "covers noise only and " * 7
    tree = ast.parse(
        f'"""Docstring {long}."""\nraise E(problem=f"{long} {{n}}", remedy="x")\n'
        f'@command("q")\ndef q():\n    """Help {long}."""\n'
    )
    texts = [*texts_of(tree, commands=True)]
    assert any(text.startswith("Help") for text in texts)
    assert not any(text.startswith("Docstring") for text in texts)
    assert [faults_of(s) for text in texts for s in sentences_of(text) if faults_of(s)] == [
        "has 31 words",
        "has 31 words",
    ]
    page = "<p>Rows of a <b>unit</b> count, and nobody may know {{ what }}.</p>"
    (sentence,) = (s for text in page_texts(page) for s in sentences_of(text))
    assert faults_of(sentence) == "says nobody may"
    assert faults_of("The interval covers noise only.") is None
