"""Errors as SQL clients read them: five letters of SQLSTATE, a message, a detail, a hint.

Law      what is said of a refusal is what HTTP says of it (`problems.py`), cut at the way out; of
         any other error its class is logged and nothing of it is said
Checked  tests/serve/test_sqlport_session.py
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from lastbit.serve.problems import refusal_of
from lastbit.serve.questions import Refusal
from lastbit.serve.sqlport.messages import BadText, complaint
from lastbit.serve.sqlport.options import WrongOption
from lastbit.serve.sqlport.values import WrongValue

_LOG = logging.getLogger("lastbit.serve")
_CODES: Mapping[str, str] = MappingProxyType(
    {
        "over-budget": "53400",
        "not-allowed": "42501",
        "not-signed-in": "28000",
        "unknown-table": "42P01",
        "refused": "0A000",
        "malformed": "42601",
        "invalid": "22023",
        "too-complicated": "54001",
        "too-many": "53300",
        "queue-full": "53300",
        "data-changed": "55000",
        "data-missing": "55000",
        "measuring": "55000",
        "card-changed": "55000",
        "stopping": "57P01",
        "engine": "58000",
        "ledger": "58000",
    }
)
"""SQLSTATE by the last part of a problem's type; 58000 for any other."""


@dataclass(eq=False)  # not frozen: contexts set the traceback of what passes them
class SqlError(Exception):
    """What a statement is refused with; `fatal` ends the connection."""

    code: str
    message: str
    detail: str = ""
    hint: str = ""
    fatal: bool = False

    def packed(self) -> bytes:
        severity = "FATAL" if self.fatal else "ERROR"
        return complaint(b"E", severity, self.code, self.message, self.detail, self.hint)


def sql_error_of(error: Exception) -> SqlError:
    """What is said of an error."""
    match error:
        case SqlError():
            return error
        case WrongOption(code=code, message=message, hint=hint):
            return SqlError(code, message, hint=hint)
        case WrongValue():
            return SqlError(
                "22P02", str(error), hint="send it as a number, a text, a date or a boolean"
            )
        case BadText():
            return SqlError("22021", str(error), hint="send UTF-8")
    refusal = refusal_of(error)
    if refusal is not error and refusal.status >= 500:
        _LOG.error("SQL: %s: %s", refusal.status, type(error).__name__)
    return _of_refusal(refusal)


def _of_refusal(refusal: Refusal) -> SqlError:
    problem, _, remedy = refusal.detail.rpartition("; ")
    if not problem:
        problem, remedy = refusal.detail, ""
    default = "XX000" if refusal.status >= 500 else "42000"
    code = _CODES.get(refusal.kind, default)
    return SqlError(code, f"{refusal.title}: {problem}", hint=remedy)


def cancelled(detail: str, hint: str = "") -> SqlError:
    """The client does not want to wait any more."""
    return SqlError("57014", "canceling statement due to user request", detail, hint)


def no_price() -> SqlError:
    """Nobody said what the answer may cost."""
    return SqlError(
        "22023",
        "no price is set, and nothing was charged",
        detail="an answer is paid for with a part of your allowance",
        hint="SET lastbit.epsilon = '0.1'",
    )


def other_columns() -> SqlError:
    """A result has other columns than were told: in words by which clients prepare again."""
    detail = "a setting has changed since the statement was prepared"
    hint = "prepare the statement again"
    return SqlError("0A000", "cached plan must not change result type", detail, hint)
