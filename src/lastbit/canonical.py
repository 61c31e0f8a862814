"""Canonical JSON, and its digest: equal values have equal text, so equal digests.

Law      ASCII, names sorted, no blanks, no NaN or infinity; floats as Python's shortest repr
Used by  the ledger's hash chain, the digests of queries and plans, and those of certificates.
         Digests that were written stay valid only as long as these bytes stay as they are
Differs  the checker has its own copy on purpose: it imports nothing of lastbit
Checked  tests/ledger/test_entry.py
"""

from __future__ import annotations

import hashlib
import json

from lastbit.errors import WrongType


def canonical_json(value: object) -> str:
    """The one JSON text of a value.

    >>> canonical_json({"b": 1, "a": [0.1, None]})
    '{"a":[0.1,null],"b":1}'
    """
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        pass  # its message may quote a value
    raise WrongType(
        "record", problem="is not plain JSON", remedy="pass dicts, lists, text and finite numbers"
    )


def sha256(text: str) -> str:
    """SHA-256 of ASCII text, in hexadecimal."""
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def digest_of(value: object) -> str:
    """SHA-256 of the canonical JSON of a value.

    >>> digest_of({"b": 1, "a": 2}) == digest_of({"a": 2, "b": 1})
    True
    """
    return sha256(canonical_json(value))
