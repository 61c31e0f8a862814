"""Which of two kinds of place a text names: a database server, or a file."""

from __future__ import annotations

import re

_MEANT = re.compile(r"\s*(?:jdbc:)?postgres(?:ql)?(?:\+[a-z0-9_]+)?:", re.IGNORECASE)


def is_address(place: object) -> bool:
    """Whether this names a database server and not a file; in any spelling, so that a slip in one
    neither makes a file, which would come with a fresh budget, nor is quoted with a password.
    """
    return isinstance(place, str) and _MEANT.match(place) is not None
