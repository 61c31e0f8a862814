"""Names and texts as TOML, so that no name can become another line of a card, or of a terminal."""

from __future__ import annotations

import json
import re

from lastbit.errors import InvalidParameter

__all__ = ["toml_key", "toml_text"]

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def toml_text(value: str) -> str:
    r"""A TOML string of one line; whatever would not be seen is escaped.

    >>> toml_text('a "b"\n'), toml_text("é\u202e")
    ('"a \\"b\\"\\n"', '"é\\u202e"')
    """
    if any("\ud800" <= letter <= "\udfff" for letter in value):
        raise InvalidParameter(
            "a name", problem="is no text in Unicode", remedy="rename the file or column"
        )
    # JSON's escapes are all TOML's too; what JSON would leave invisible, or steers, is escaped here
    written = json.dumps(value, ensure_ascii=False)
    return "".join(letter if letter.isprintable() else _escaped(letter) for letter in written)


def toml_key(*parts: str) -> str:
    """The name of a table or field.

    >>> toml_key("columns", "first name", "type")
    'columns."first name".type'
    """
    return ".".join(part if _BARE.fullmatch(part) else toml_text(part) for part in parts)


def _escaped(letter: str) -> str:
    return f"\\u{ord(letter):04x}" if ord(letter) < 1 << 16 else f"\\U{ord(letter):08x}"
