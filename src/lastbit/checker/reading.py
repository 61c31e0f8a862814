"""Reads a file that may hold anything: what is in it is counted before it is parsed.

Law      the value of a regular file in JSON of at most `MOST_BYTES` bytes and `MOST_VALUES` commas,
         colons and opening brackets, texts included; nested `DEEPEST` deep and with numbers of
         `MOST_DIGITS` digits at most, texts left out. Every name is there once in its object
Theorem  the memory that it takes is at most a constant times these two numbers: each value but the
         first stands behind one of the signs that are counted
Checked  tests/verify/test_reading.py, tests/verify/test_copied_checker.py
"""

from __future__ import annotations

import json
import os
import re
import stat
from typing import Any

from .numbers import Rejected, require

MOST_BYTES = 1 << 27
MOST_VALUES = 1 << 23
DEEPEST = 200
MOST_DIGITS = 1000

# a text, to its end or to that of the file
_TEXT = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.DOTALL)
_OTHERS = bytes(letter for letter in range(256) if letter not in b"[]{}")
_LONG = re.compile(rb"(?<![0-9])[0-9]{%d}" % (MOST_DIGITS + 1))


def read_file(path: str) -> Any:
    """What stands in a file; `Rejected` where that is too much, or no JSON."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    with open(handle, "rb") as file:
        kind = os.fstat(handle)
        require(stat.S_ISREG(kind.st_mode), "it is not a regular file")
        require(kind.st_size <= MOST_BYTES, "it is too long, or has too many values")
        data = file.read(kind.st_size)
    return value_of(data)


def value_of(data: bytes) -> Any:
    """The value of a JSON text in UTF-8."""
    values = sum(data.count(sign) for sign in (b",", b":", b"[", b"{"))
    few = values <= MOST_VALUES and data.count(b'"') <= 4 * MOST_VALUES
    require(few and len(data) <= MOST_BYTES, "it is too long, or has too many values")
    bare = _TEXT.sub(b"", data)
    require(not _LONG.search(bare), "a number has too many digits")
    depth = 0
    for sign in bare.translate(None, _OTHERS):
        depth += 1 if sign in b"[{" else -1
        if depth > DEEPEST:
            raise Rejected("it is nested too deeply")
    try:
        return json.loads(data.decode("utf-8"), object_pairs_hook=_object)
    except (ValueError, RecursionError):
        raise Rejected("it is not JSON in UTF-8") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose names are all different: two readers might take different ones."""
    if len(dict(pairs)) != len(pairs):
        raise ValueError
    return dict(pairs)
