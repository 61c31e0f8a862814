"""Addresses of databases: what may be written and shown, and what may not.

An address is `postgresql://user@host:port/database?name=value`, as libpq reads it. A password is
never part of one: cards, records, logs and error messages quote addresses. What a server is asked
with beside the address comes from where PostgreSQL's own programs take it: `~/.pgpass`, a service
file, or the environment.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any
from urllib.parse import quote, unquote

from lastbit.errors import InvalidParameter

_ADDRESS = re.compile(
    r"postgres(?:ql)?://(?:(?P<user>[^@/?#]*)@)?(?P<host>[^@/?#]*)(?:/(?P<database>[^/?#]*))?"
    r"(?:\?(?P<options>[^#]*))?"
)
_HOST = re.compile(r"(?:\[([0-9A-Fa-f:.%]+)\]|([^\[\]:,]*))(?::([0-9]*))?")
_SECRETS = (
    "password",
    "sslpassword",
    "scram_client_key",
    "scram_server_key",
    "oauth_client_secret",
)
_KNOWN = re.compile(
    r"application_name|channel_binding|connect_timeout|dbname|gssencmode|host|hostaddr|passfile|port"
    r"|keepalives(_count|_idle|_interval)?|krbsrvname|require_auth|service|tcp_user_timeout|user"
    r"|ssl(cert|crl|crldir|key|mode|negotiation|rootcert)|target_session_attrs"
)
_PASSWORD = "put it into ~/.pgpass or a file named by PGPASSFILE, a service file, or PGPASSWORD"
_FORM = 'write, say, "postgresql://books@db.example.org/lastbit"'


@dataclass(frozen=True, slots=True)
class Address:
    """Where a database is, without a password; `extra` are options of ours, taken off libpq's.

    >>> found = Address.read("postgresql://books@db/lastbit?schema=ward&sslmode=require", "schema")
    >>> str(found), dict(found.extra)
    ('postgresql://books@db/lastbit?schema=ward&sslmode=require', {'schema': 'ward'})
    >>> found.given["dbname"], found.given["sslmode"]
    ('lastbit', 'require')
    """

    given: MappingProxyType[str, str] = field(hash=False)
    """What libpq is told, by its names."""
    extra: MappingProxyType[str, str] = field(hash=False)

    @staticmethod
    def read(text: str, *own: str, what: str = "the address") -> Address:
        """The address that this text is; one with a password is refused, and not quoted."""

        def wrong(problem: str, remedy: str = _FORM) -> InvalidParameter:
            return InvalidParameter(what, problem=problem, remedy=remedy)

        found = _ADDRESS.fullmatch(text)
        if found is None or any(ord(c) <= 32 or ord(c) == 127 for c in unquote(text)):
            raise wrong("is not an address of PostgreSQL")
        user, _, password = (found["user"] or "").partition(":")
        if password:
            raise wrong("holds a password", _PASSWORD)
        options = [pair.partition("=")[::2] for pair in (found["options"] or "").split("&") if pair]
        given = {"user": unquote(user), "dbname": unquote(found["database"] or "")}
        host = _HOST.fullmatch(found["host"] or "")
        if host is None:  # of several servers one may be behind the others
            raise wrong("names several servers, or none that can be read")
        given |= {"host": unquote(host[1] or host[2]), "port": host[3] or ""}
        extra: dict[str, str] = {}
        for name, value in ((unquote(name), unquote(value)) for name, value in options):
            if name in _SECRETS and value:
                raise wrong("holds a password", _PASSWORD)
            if not _KNOWN.fullmatch(name) and name not in (*own, *_SECRETS):
                raise wrong("has an option that is not known here", f"leave it out; {_FORM}")
            (extra if name in own else given)[name] = value
        if "," in given["host"]:
            raise wrong("names several servers")
        return Address(
            MappingProxyType({name: value for name, value in given.items() if value}),
            MappingProxyType(extra),
        )

    def __str__(self) -> str:
        """As it is shown; there is nothing to hide in it."""
        shown = dict(self.given)
        user, database = shown.pop("user", ""), shown.pop("dbname", "")
        host, port = shown.pop("host", ""), shown.pop("port", "")
        if "/" in host:  # a folder of sockets
            shown |= {"host": host, **({"port": port} if port else {})}
            host = port = ""
        place = f"[{host}]" if ":" in host else host
        place = f"{quote(user, safe='')}@{place}" if user else place
        place += f":{port}" if port else ""
        pairs = sorted((shown | self.extra).items())
        options = "&".join(f"{quote(name)}={quote(value, safe='/:')}" for name, value in pairs)
        return f"postgresql://{place}/{quote(database, safe='')}" + (
            f"?{options}" if options else ""
        )

    @property
    def name(self) -> str:
        """As a command takes it."""
        return str(self)

    def leads_to(self, other: object) -> bool:
        """Whether both name one database, whoever signs in."""
        if not isinstance(other, Address):
            return False
        mine, theirs = ({**a.given, **a.extra, "user": ""} for a in (self, other))
        return mine == theirs

    def __reduce__(self) -> Any:
        return Address.read, (str(self), *self.extra)
