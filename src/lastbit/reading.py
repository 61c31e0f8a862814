"""JSON that a stranger wrote: its size is bounded before it is parsed.

Parsed text takes many times its own memory: 100 MB of `{},` take 2.4 GB. So bytes,
values, nesting and digits are counted first, by searches that keep nothing.

Law      `parse_json` gives the value of a JSON text, or raises `NotJson`. Names are unique in each
         object, numbers are finite
Theorem  what it keeps is at most a constant for each of `most_values` values and each byte
Proof    each value but the first stands behind a comma, a colon or an opening bracket, and each
         name before a colon: there are at most as many as these. They are counted in texts too,
         which only refuses more. Nesting and digits are those outside of texts: `_TEXT` matches
         each text whole, the last one though it does not end, and no byte twice
Differs  the checker counts by itself (`checker/reading.py`)
Checked  tests/verify/test_reading.py; tests/cli/test_large_files.py tries every reader

| what is read | bounded by |
|---|---|
| certificates, saved answers (`verify.read`), answers of a server, pairs to audit | `parse_json` |
| a guarantee, a profile; requests to the server's API; entries of a ledger | `parse_json` |
| answers in a ledger, which were paid for | `parse_json`, of eight times as many values |
| data cards | bytes, and signs before TOML is parsed (`tables/card/read.py`) |
| anchors, tokens, SQL from standard input | bytes; lines are as long as they must be |
| forms, headers and paths of requests | `serve/safety.py` |
| certificates, by a copy of the checker | `checker/reading.py` |
Data are read by the engines, or as CSV by who owns them, and are as large as they are.
"""

from __future__ import annotations

import json
import math
import re
from array import array
from itertools import accumulate
from typing import Any

MOST_BYTES = 1 << 27
MOST_VALUES = 1 << 23
MOST_RECORDED = MOST_VALUES << 3
DEEPEST = 200
MOST_DIGITS = 1000

_TEXT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_STEPS = bytes.maketrans(b"[]{}", b"\x01\xff\x01\xff")
_DIGITS = bytes(ord("0") if ord("0") <= letter <= ord("9") else 0 for letter in range(256))


class NotJson(ValueError):
    """What is wrong with a text; its words hold nothing of it."""


def parse_json(
    content: bytes | str,
    *,
    most_bytes: int = MOST_BYTES,
    most_values: int = MOST_VALUES,
    deepest: int = DEEPEST,
) -> Any:
    """The value that a JSON text in UTF-8 stands for.

    >>> parse_json('{"a": [1, 2.5]}')
    {'a': [1, 2.5]}
    >>> parse_json("[" * 300 + "]" * 300)
    Traceback (most recent call last):
        ...
    lastbit.reading.NotJson: is nested too deeply
    """
    try:
        data = content.encode() if isinstance(content, str) else content
        _check_size(data, most_bytes, most_values, deepest)
        return json.loads(
            data.decode(), object_pairs_hook=_object, parse_constant=_constant, parse_float=_float
        )
    except NotJson:
        raise
    except (ValueError, RecursionError):  # their words may quote the text
        pass
    raise NotJson("is not JSON in UTF-8")


def _check_size(data: bytes, most_bytes: int, most_values: int, deepest: int) -> None:
    values = sum(map(data.count, (b",", b":", b"[", b"{")))
    if len(data) > most_bytes or values > most_values or data.count(b'"') > 4 * most_values:
        raise NotJson("is longer, or has more values, than we read")
    bare = _TEXT.sub(b"", data)
    steps = array("b", bare.translate(_STEPS, _NOT_BRACKETS))
    if max(accumulate(steps), default=0) > deepest:
        raise NotJson("is nested too deeply")
    if b"0" * (MOST_DIGITS + 1) in bare.translate(_DIGITS):
        raise NotJson("has a number of too many digits")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Two readers might take different ones of two values under one name."""
    value = dict(pairs)
    if len(value) < len(pairs):
        raise NotJson("has a name twice in one object")
    return value


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise NotJson("has a number beyond the largest float")
    return value


def _constant(_: str) -> Any:
    raise NotJson("has NaN or an infinity, which JSON does not know")
