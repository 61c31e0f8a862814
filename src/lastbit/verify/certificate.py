"""Certificates: what is claimed, on which assumptions, and what a second program needs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

from lastbit.errors import InvalidParameter
from lastbit.places import content_of, written_over
from lastbit.verify.arithmetic import digest

__all__ = [
    "BITS_ASSUMPTION",
    "CODE_ASSUMPTION",
    "STEPS_ASSUMPTION",
    "certificate",
    "read",
    "save",
]

VERSION = 1
_LONGEST = 1 << 28
BITS_ASSUMPTION = (
    "The random bits are those of a cryptographic generator: the claim is computational, against "
    "whoever cannot tell them from random ones (paper 003, Definition 4)."
)
CODE_ASSUMPTION = (
    "The code that runs is the code named here, with these constants and on this machine, and is "
    "called with Python's own floats. Its answer depends on its arguments alone: it was screened "
    "for anything else and agreed with the steps bit for bit at finitely many points. Python and "
    "its libraries do at every call what they did there; their functions are within the stated "
    "ulps at every point, tried or not."
)
STEPS_ASSUMPTION = (
    "The claim is about the steps written in it and names no code: that the code which runs takes "
    "these steps is not checked."
)


def certificate(
    kind: str, claim: Mapping[str, Any], assumptions: Sequence[str], body: Mapping[str, Any]
) -> dict[str, Any]:
    """A certificate as plain JSON values, sealed by a digest against accidents.

    The digest finds a changed digit; it proves nothing. `check` re-derives the claim.
    """
    plain = {
        "lastbit": "certificate",
        "version": VERSION,
        "kind": kind,
        "claim": dict(claim),
        "assumptions": list(assumptions),
        "body": dict(body),
    }
    sealed: dict[str, Any] = json.loads(json.dumps(plain))
    sealed["digest"] = digest(sealed)
    return sealed


def save(sealed: Mapping[str, Any], path: Path) -> None:
    """Write a certificate, one number a line where it helps a reader."""
    written_over(path, json.dumps(sealed, indent=1, ensure_ascii=False) + "\n")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose names are all different: of two readers each might take another."""
    if len({name for name, _ in pairs}) != len(pairs):
        raise _Refused("has a name twice in one object")
    return dict(pairs)


def _constant(_: str) -> Any:
    raise _Refused("has NaN or an infinity, which JSON does not know")


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise _Refused("has a number beyond the largest float")
    return number


class _Refused(Exception):
    """Why a text is refused, though it may be JSON."""


def read(path: Path) -> dict[str, Any]:
    """The JSON object in a file: every name once, every number finite, nested within reason."""
    problem = "is no JSON object"
    value = None
    try:
        text = content_of(path, most=_LONGEST).decode("utf-8")
        value = json.loads(
            text, object_pairs_hook=_once, parse_constant=_constant, parse_float=_finite
        )
    except _Refused as refused:
        problem = str(refused)
    except RecursionError:
        problem = "is nested too deeply"
    except (OSError, ValueError):
        pass
    if not isinstance(value, dict):
        raise InvalidParameter(
            "certificate", problem=problem, remedy="pass a file that lastbit wrote"
        )
    return value
