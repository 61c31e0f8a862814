"""What is about to be written over: refused if it is a ledger, or anything that is spared."""

from __future__ import annotations

import os

from lastbit.errors import InvalidParameter
from lastbit.ledger.storage import holds_ledger
from lastbit.places import Place, Spared, check_target

__all__ = ["check_output"]

_ENDS = ("-journal", "-wal", "-shm")


def check_output(option: str, path: Place, spared: Spared) -> None:
    """Refuse to write over what is spared and over any ledger, whoever it belongs to."""
    check_target(option, path, spared)
    place = os.path.realpath(path)
    bases = [place, *(place.removesuffix(end) for end in _ENDS if place.endswith(end))]
    if any(holds_ledger(base) for base in bases):
        raise InvalidParameter(
            option,
            problem="names a ledger, which must not be written over",
            remedy="name another file",
        )
