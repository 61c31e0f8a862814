"""A text of several statements, cut at its semicolons; and the words that a command begins with.

Law      a semicolon inside of quotes, dollar quotes, comments or brackets of none cuts nothing.
         The time is linear in the text. What is cut here is read again by a parser: here nothing
         is decided but where a statement ends, and which of a few commands it is
Checked  tests/serve/test_sqlport_messages.py
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_PART = re.compile(
    r"""
    (?P<blank>\s+|--[^\n]*)
  | (?P<comment>/\*)
  | (?P<escaped>[eE]'(?:[^'\\]|\\.|'')*(?:'|\Z))
  | (?P<text>'(?:[^']|'')*(?:'|\Z))
  | (?P<quoted>"(?:[^"]|"")*(?:"|\Z))
  | (?P<dollar>\$(?:[A-Za-z_][A-Za-z0-9_]*)?\$)
  | (?P<place>\$[0-9]+)
  | (?P<word>[^\W\d][\w$]*)
  | (?P<number>[0-9][\w.]*)
  | (?P<sign>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_ENDS = re.compile(r"/\*|\*/")


def parts(text: str) -> Iterator[tuple[str, str, int]]:
    """Every part: its kind, its letters and where it begins; blanks and comments are "blank"."""
    place = 0
    while place < len(text):
        found = _PART.match(text, place)
        assert found is not None  # `sign` takes any letter
        kind, end = str(found.lastgroup), found.end()
        if kind == "comment":
            kind, end = "blank", _comment_end(text, end)
        elif kind == "dollar":
            close = text.find(found.group(), end)
            kind, end = "text", len(text) if close < 0 else close + len(found.group())
        yield kind, text[place:end], place
        place = end


def _comment_end(text: str, place: int) -> int:
    depth = 1
    while depth:
        found = _ENDS.search(text, place)
        if found is None:
            return len(text)
        depth += 1 if found.group() == "/*" else -1
        place = found.end()
    return place


def statements(text: str) -> list[str]:
    """The statements of a text, without what is empty.

    >>> statements("SELECT ';' ; -- a; b")
    ["SELECT ';'"]
    """
    found, start, some = [], 0, False
    for kind, letters, place in parts(text):
        if kind == "sign" and letters == ";":
            found += [text[start:place].strip()] if some else []
            start, some = place + 1, False
        elif kind != "blank":
            some = True
    return [*found, *([text[start:].strip()] if some else [])]


def words(statement: str, most: int = 400) -> list[str]:
    """The parts of a command, those without quotes in lower case."""
    found = []
    for kind, letters, _ in parts(statement):
        if kind != "blank":
            found.append(letters.lower() if kind == "word" else letters)
            if len(found) >= most:
                break
    return found


def has_parameters(statement: str) -> bool:
    """Whether $1 stands somewhere."""
    return any(kind == "place" for kind, _, _ in parts(statement))


def parameters_apart(statement: str) -> str:
    """The statement with a blank behind each parameter: some parsers take $1,$ for a quote.

    >>> parameters_apart("a IN ($1,$2) OR a = '$1,$2'")
    "a IN ($1 ,$2 ) OR a = '$1,$2'"
    """
    pieces = ((kind, letters) for kind, letters, _ in parts(statement))
    return "".join(f"{letters} " if kind == "place" else letters for kind, letters in pieces)


def unquoted(word: str) -> str:
    """What a text or a name in quotes says.

    >>> unquoted("'it''s'")
    "it's"
    """
    for quote in ("'", '"'):
        if len(word) > 1 and word[0] == quote == word[-1]:
            return word[1:-1].replace(quote * 2, quote)
    return word
