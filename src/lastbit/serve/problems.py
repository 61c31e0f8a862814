"""Errors as programs read them: problem documents of RFC 9457, one `type` a kind.

A type is a relative reference, `/problems/over-budget`: a name to compare with, not a page. Its
`detail` says what is wrong and the way out; no value of the data, no run time, no token is in it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

from starlette.responses import JSONResponse, Response

from lastbit.errors import (
    BudgetExceeded,
    EngineFailed,
    InvalidParameter,
    LastbitError,
    LedgerDamaged,
    NotAllowed,
)
from lastbit.serve.questions import Refusal

LATER = "try again later, or tell the steward"
"""Instead of words that may say where ledger and data are."""


_PLACES: Mapping[str, type[LastbitError]] = MappingProxyType(
    {"the ledger ": LedgerDamaged, "source ": EngineFailed}
)


def of_place(words: str) -> type[LastbitError] | None:
    """What an error about a parameter is, if it says where the ledger or a file is; else None."""
    return next((kind for start, kind in _PLACES.items() if words.startswith(start)), None)


MEDIA_TYPE = "application/problem+json"
FAILED = Refusal(
    500, "The server failed", "this is not your fault; try again, or tell the steward", "failed"
)
_KINDS: Mapping[type[LastbitError], tuple[int, str, str]] = MappingProxyType(
    {
        BudgetExceeded: (403, "over-budget", "Over the budget"),
        NotAllowed: (403, "not-allowed", "Not allowed"),
        InvalidParameter: (422, "refused", "This cannot be done as it was asked"),
        LedgerDamaged: (503, "ledger", "The ledger cannot be used"),
        EngineFailed: (503, "engine", "The database cannot be used"),
    }
)
"""The first that an error is of; the words of those below 500 are shown."""


def refusal_of(error: Exception) -> Refusal:
    """What is told of an error: its own words if the asker can do something about it."""
    if isinstance(error, Refusal):
        return error
    return refusal_for(type(error), str(error), getattr(error, "said", None)) or FAILED


def refusal_for(kind: type[Exception], words: str, said: Said | None = None) -> Refusal | None:
    """What is told of an error of this kind; None: nothing but that there was one.

    `said` are its parts: of them pages make words of their own.
    """
    if kind is InvalidParameter and (place := of_place(words)) is not None:
        kind = place  # it is gone, or cannot be read: not of the asker's making
    for known, (status, name, title) in _KINDS.items():
        if issubclass(kind, known):
            if status >= 500 or said is None:
                return Refusal(status, title, words if status < 500 else LATER, name)
            shown, field = page_words(said), FIELDS.get(said[0], ("", "sql"))[1]
            return Refusal(status, title, words, name, shown=shown, field=field)
    return None


Said: TypeAlias = tuple[str, str, str, Mapping[str, str | None]]
"""A parameter, what is wrong with it, the way out, and the arguments that these name."""

FIELDS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "epsilon": ("ε", "price"),
        "rho": ("ρ", "price"),
        "delta": ("δ", "delta"),
        "within": ("±", "within"),
        "weights": ("how the price is shared", "weights"),
        "price": ("the price", "price"),
    }
)
"""What a page calls an argument of Python's, and the field of the editor that it stands in."""


def page_words(said: Said) -> str:
    """An error as a page says it: by the names of its fields, and with nothing to be passed.

    >>> page_words(("epsilon", "is zero", "pass a number above 0", {}))
    'ε is zero; write a number above 0'
    >>> page_words(("GROUP BY", "takes a delta", "pass {delta}, say", {"delta": "1e-9"}))
    'GROUP BY takes a delta; write δ = 1e-9, say'
    """
    parameter, problem, remedy, arguments = said
    for name, value in arguments.items():
        label = FIELDS.get(name, (name, ""))[0]
        mention = f"{label} = {value}" if value else label
        problem, remedy = (words.replace(f"{{{name}}}", mention) for words in (problem, remedy))
    remedy = _AMOUNT.sub(lambda found: f"{FIELDS[found[1]][0]} =", remedy)
    remedy = re.sub(r"^pass\b", "write", remedy)
    for elsewhere, here in _ELSEWHERE.items():
        remedy = remedy.replace(elsewhere, here)
    if problem[:1].isupper():  # a sentence of its own
        return f"{problem} {remedy}"
    return f"{FIELDS.get(parameter, (parameter, ''))[0]} {problem}; {remedy}"


_ELSEWHERE: Mapping[str, str] = MappingProxyType(
    {
        "`lastbit help queries` lists them all": "Help lists the usual ones",
        "see `lastbit help queries`": "see Help",
        "lastbit query --marginals region,ward, or ": "MARGINALS region, ward FROM the table ",
        '.marginals(["region", "ward"]) in Python, gives': "gives",
    }
)
"""Ways out that are commands or Python, and what a page has instead."""
_AMOUNT = re.compile(r"\b(epsilon|rho|delta) =")


def problem(refusal: Refusal) -> Response:
    """The problem document of a refusal."""
    document: dict[str, Any] = {
        "type": f"/problems/{refusal.kind}",
        "title": refusal.title,
        "status": refusal.status,
        "detail": refusal.detail,
    }
    return JSONResponse(
        document, status_code=refusal.status, headers=dict(refusal.headers), media_type=MEDIA_TYPE
    )
