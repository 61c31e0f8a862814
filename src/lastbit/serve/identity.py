"""Who asks: by a session of a browser, a token, or a proxy that is trusted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from lastbit.serve.routes import Right

Role: TypeAlias = Literal["steward", "analyst", "auditor"]
Via: TypeAlias = Literal["session", "token", "proxy"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A principal of the ledger who has proved to be it, with what is left of its rights."""

    principal: str
    role: Role
    rights: frozenset[Right]
    tables: frozenset[str] | None = None
    """Tables that a token is restricted to; None: all that the principal may see."""
    via: Via = "session"
    key: str = ""
    """The digest of session or token, by which it is revoked and its rate is limited."""
