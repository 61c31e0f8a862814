"""Names and texts as TOML writes them, and the line on which each table and field stands."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping

from lastbit.errors import InvalidParameter

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def toml_string(value: str) -> str:
    r"""A TOML string of one line; whatever would not be seen is escaped.

    >>> toml_string('a "b"\n'), toml_string("é\u202e")
    ('"a \\"b\\"\\n"', '"é\\u202e"')
    """
    if any("\ud800" <= letter <= "\udfff" for letter in value):
        raise InvalidParameter(
            "a name", problem="is not Unicode text", remedy="rename the file or column"
        )
    # JSON's escapes are all TOML's too; what JSON would leave invisible, or steers, is escaped here
    written = json.dumps(value, ensure_ascii=False)
    codes = ((letter, ord(letter)) for letter in written)
    return "".join(
        letter if letter.isprintable() else f"\\u{code:04x}" if code < 1 << 16 else f"\\U{code:08x}"
        for letter, code in codes
    )


def toml_key(*parts: str) -> str:
    """The name of a table or field.

    >>> toml_key("columns", "first name", "type")
    'columns."first name".type'
    """
    return ".".join(part if _BARE.fullmatch(part) else toml_string(part) for part in parts)


KeyPath = tuple[str, ...]
_PART = r'(?:[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|\'[^\']*\')'
_NAME = rf"{_PART}(?:[ \t]*\.[ \t]*{_PART})*"
_HEADER = re.compile(rf"^[ \t]*\[\[?[ \t]*({_NAME})[ \t]*\]\]?[ \t]*(?:#.*)?$")
_FIELD = re.compile(rf"^[ \t]*({_NAME})[ \t]*=")
# up to two quotes may stand before the three that end a text of several lines
_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}'
    r"|'''.*?'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'"
    r"|#[^\n]*",
    re.DOTALL,
)


def lines_of(text: str) -> Mapping[KeyPath, int]:
    r"""Each table and field with its line, counted from 1. The text is known to be valid TOML.

    >>> lines_of("[unit]\ncolumn = 'id'\n[columns.'a.b']\ntype = 'text'")["columns", "a.b", "type"]
    4
    """
    found: dict[KeyPath, int] = {}
    table: KeyPath = ()
    for number, line in _statements(text):
        if header := _HEADER.match(line):
            table = _parts(header[1])
            found.setdefault(table, number)
        elif field := _FIELD.match(line):
            found.setdefault((*table, *_parts(field[1])), number)
    return found


def nearest_line(lines: Mapping[KeyPath, int], path: KeyPath) -> int:
    """The line of the field, or of the table around it where the field is missing, or the first."""
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path, 1)


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """The lines that begin neither inside a text nor inside brackets, with their numbers."""
    inside: set[int] = set()
    for match in _STRING.finditer(text):
        if "\n" in match[0]:
            first = text.count("\n", 0, match.start()) + 1
            inside.update(range(first + 1, first + match[0].count("\n") + 1))
    bare = _STRING.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text).split("\n")
    depth = 0
    for number, line in enumerate(text.split("\n"), start=1):
        if depth == 0 and number not in inside:
            yield number, line
        code = bare[number - 1]
        depth += code.count("[") + code.count("{") - code.count("]") - code.count("}")


def _parts(name: str) -> KeyPath:
    """The parts of a dotted name, unquoted by the parser itself."""
    found, value = [], tomllib.loads(f"{name} = 0")
    while isinstance(value, dict):
        ((part, value),) = value.items()
        found.append(part)
    return tuple(found)
