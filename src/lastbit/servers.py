"""Servers that are spoken to: web addresses, secrets that are not shown, and why none answers."""

from __future__ import annotations

import re
from typing import Any

from lastbit.errors import WrongType

_WEB = re.compile(r"\s*https?:", re.IGNORECASE)


def is_web_address(place: object) -> bool:
    """Whether this names a table of a server of lastbit's, in any spelling.

    >>> is_web_address("https://stats.example.org/visits"), is_web_address("visits.toml")
    (True, False)
    """
    return isinstance(place, str) and _WEB.match(place) is not None


class Secret:
    """A text that is not shown: in no repr, in no pickle, in no words that pass `hidden`."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return "<secret>"

    def __reduce__(self) -> Any:
        raise WrongType("a secret", problem="is not to be written down", remedy="pass it again")

    def revealed(self) -> str:
        """The text itself, for whom it is meant."""
        return self._text

    def hidden(self, words: str) -> str:
        """The words without it."""
        return words.replace(self._text, "<secret>") if self._text else words


def unreached(said: str) -> tuple[str, str]:
    """Why a server is not reached, and what to do, as far as libpq's words tell.

    Its own words are not quoted: they may hold what is in the environment.
    """
    for words, problem, remedy in _UNREACHED:
        if re.search(words, said):
            return problem, remedy
    return "cannot be reached, or does not let you in", "look at host, port, database and user"


_UNREACHED = (
    (
        r"password|authentication|pg_hba|[Pp]eer|no such role|role .* does not exist",
        "does not let you in",
        "look at the user of the address, and at ~/.pgpass, PGPASSFILE or PGPASSWORD",
    ),
    (r"database .* does not exist", "names a database that is not there", "name one that is"),
    (r"permission denied for database", "does not let you in", "ask for CONNECT on the database"),
    (
        r"of service|service file",
        "names a service that no service file has",
        "look at ~/.pg_service.conf",
    ),
    (
        r"starting up|shutting down|recovery mode|too many",
        "is on a server that takes nobody at the moment",
        "try again",
    ),
    (
        r"refused|No such file|not known|translate|resolve|timeout|timed out|unreachable",
        "cannot be reached",
        "look at host and port, and whether the server runs",
    ),
)
