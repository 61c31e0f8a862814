"""Who asks: by a session of a browser, a token, or a proxy that is trusted.

Law      A principal *stands* if the ledger gives it a role, by the entry that did so when the
         secret was made. A request acts as a standing principal p
         (API)   by its one Authorization header, if that is a token of p, neither expired nor
                 revoked; cookies do not count
         (page)  by its one trusted header, which says p, if settings name that header and the
                 request came over the Unix socket; else by its one cookie, if that is the secret
                 of a session of p that has neither expired nor ended; tokens do not count
         and as nobody else. Its rights are those of p's role, cut with those of the token by which
         it acts or by which its session was begun; so are its tables
Theorem  (only less)  A token that is made by an identity has no right, table or day that the
         identity has not, nor has any that is made by it in turn, nor a session begun by one. Links
         and roles that it gives to others carry no right that it has not
Proof    `token_made` refuses rights and tables that the maker lacks, and shortens its life to that
         of the token by which the maker acts (`parent`); `_check_gives` does so for links and
         roles. `_cut` only intersects, with rights of the role as it is at the request. Induction
         along `parent`
Theorem  (revocation)  Once `token_revoked` has returned, no request acts by the token, by one that
         descends from it, or by a session begun by one of these; once `session_revoked` has, by the
         session; once `all_ended` has, by nothing that was made for the principal before
Proof    Each is one transaction of the store, and so is `token_made`, which looks for its parent
         in it: a child is made before the revocation, which then finds it, or never. Tokens and
         sessions are looked up at each request
Theorem  (guessing)  q guesses of somebody who has read the store act as another with probability at
         most q·n/2**256, n secrets being alive, if SHA-256 is not inverted
Proof    A secret is 256 bits of the one door to entropy; the store has digests of them alone. The
         look-up is by digest, so that its time says nothing of how much of a guess is right
Theorem  (links)  A link begins one session; the first steward's begins one only if the ledger has
         no principal
Proof    One transaction reads and writes `used`. The ledger takes a first principal from anybody,
         and any other from a steward alone: `_LINK` is none
Differs  A steward may make a link for anybody, and so act as them: the audit log shows it. A role
         is read from the ledger at most a second before the request; `principal_set` forgets
         what was read, so a change made here counts at once
Checked  tests/serve/test_identity.py, tests/serve/test_escalation.py
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeAlias, cast, get_args

from starlette.responses import Response

from lastbit.errors import InvalidParameter
from lastbit.ledger import Entry, Ledger, Principal, Role
from lastbit.sampling import secure_bits
from lastbit.serve.questions import Refusal, not_allowed, wrong
from lastbit.serve.routes import API, RIGHTS, Right
from lastbit.serve.settings import Settings
from lastbit.serve.store import Store

Via: TypeAlias = Literal["session", "token", "proxy"]
Action: TypeAlias = Literal[
    "signed in",
    "signed out",
    "session ended",
    "link made",
    "first steward",
    "token made",
    "token revoked",
    "user set",
    "user removed",
    "user revoked",
    "allowance set",
    "allowance ended",
    "data accepted",
    "asked",
    "downloaded",
]
OF_TABLES: frozenset[Right] = frozenset({"open", "self", "browse", "preview", "ask", "data"})
"""Rights that may be for some tables only: a token that is restricted to tables has no other."""
COOKIE = "__Host-lastbit"
TOKEN = re.compile(r"lbt_[A-Za-z0-9_-]{43}", re.ASCII)
_SECRET = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}", re.ASCII)
_LINK = "a one-time link"  # not a name that `_NAME` allows
_FRESH = 1.0  # seconds for which roles are remembered
_LINK_SECONDS = 3600
_MOST_DAYS = 366
_MOST_TOKENS = 100
_MOST_SESSIONS = 50  # of a principal; the oldest ends
_SESSION_ID = 16  # letters of its digest, which says nothing of the secret
_USED_SECONDS = 60  # a token's last use is written at most this often


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
    """The digest of session or token, by which it is ended or revoked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenLine:
    """A token as it is listed: all but the token."""

    id: str
    principal: str
    name: str
    made: int
    expires: int
    rights: frozenset[Right]
    tables: frozenset[str] | None
    used: int | None
    revoked: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionLine:
    """A session as it is listed: all but its secret."""

    id: str
    made: int
    expires: int
    token: str | None
    """The name of the token that it was begun by; None: by a link."""
    current: bool


class Gate:
    """Tokens, sessions and links of a server; all of it blocks for a short time."""

    __slots__ = ("_clock", "_known", "_lock", "_newest", "_read", "ledger", "settings", "store")

    def __init__(
        self,
        store: Store,
        ledger: Ledger,
        settings: Settings,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.store, self.ledger, self.settings = store, ledger, settings
        self._clock = clock
        self._lock = threading.Lock()
        self._known: dict[str, Principal] = {}
        self._newest: Entry | None = None
        self._read: float | None = None

    # ------------------------------------------------------------ who asks

    def identity_of(self, scope: Mapping[str, Any]) -> Identity | None:
        """Whom a request acts as; None: nobody. Nothing is written."""
        if scope["path"].startswith(f"{API}/"):
            sent = _headers(scope, "authorization")
            scheme, _, token = sent[0].partition(" ") if len(sent) == 1 else ("", "", "")
            return self._by_token(token.strip(" ")) if scheme.lower() == "bearer" else None
        if self.settings.trusted_header is not None:
            named = _headers(scope, self.settings.trusted_header)
            if named:
                return self._by_proxy(scope, named)
        return self._by_session(_cookie(scope))

    def identity_of_token(self, token: str) -> Identity | None:
        """Whom a token that came by another way than HTTP acts as; None: nobody."""
        return self._by_token(token)

    def identity_again(self, who: Identity) -> Identity | None:
        """The same by the same token, as ledger and store have them now; None: nobody any more."""
        return self._by_digest(who.key) if who.via == "token" else None

    def _by_token(self, token: str) -> Identity | None:
        return self._by_digest(_digest(token)) if TOKEN.fullmatch(token) else None

    def _by_digest(self, digest: str) -> Identity | None:
        row = self._row("SELECT * FROM tokens WHERE digest = ?", digest)
        if row is None or row["revoked"] is not None:
            return None
        known = self._standing(row)
        return None if known is None else _cut(known, row, via="token", key=row["digest"])

    def _by_session(self, secret: str | None) -> Identity | None:
        row = self._row("SELECT * FROM sessions WHERE digest = ?", _digest(secret or ""))
        known = None if row is None or secret is None else self._standing(row)
        if row is None or known is None:
            return None
        begun = None
        if row["token"] is not None:
            begun = self._row("SELECT * FROM tokens WHERE digest = ?", row["token"])
            if begun is None or begun["revoked"] is not None or self._standing(begun) is None:
                return None
        return _cut(known, begun, via="session", key=row["digest"])

    def _by_proxy(self, scope: Mapping[str, Any], named: list[str]) -> Identity | None:
        is_proxy = scope.get("state", {}).get("unix", False) and self.settings.socket is not None
        if not is_proxy or len(named) > 1:
            detail = "The header that names who signed in is believed from the proxy alone, once."
            raise Refusal(400, "Not from the proxy", detail, "bad-request")
        known = self._principal(named[0])
        return None if known is None else _cut(known, None, via="proxy", key=known.name)

    def _standing(self, row: sqlite3.Row) -> Principal | None:
        """Its principal, if that has the role that it had then and the secret has not expired."""
        known = self._principal(row["principal"])
        if row["expires"] <= self._clock() or known is None or known.since != row["since"]:
            return None
        return known

    def _principal(self, name: str) -> Principal | None:
        with self._lock:
            now = time.monotonic()
            if self._read is None or now - self._read > _FRESH:
                self._read_roles()
                self._read = now
            known = self._known.get(name)
        return known if known is not None and known.active else None

    def _read_roles(self) -> None:
        """Read the whole chain only if an entry that came since is about a principal."""
        (newest,) = self.ledger.entries(last=1)
        if self._newest is not None:
            more = newest.sequence - self._newest.sequence
            came = self.ledger.entries(last=more) if more > 0 else ()
            follow = came[0].previous == self._newest.hash if came else newest == self._newest
            if follow and all(entry.kind != "principal" for entry in came):
                self._newest = came[-1] if came else newest
                return
        self._known = {one.name: one for one in self.ledger.principals()}
        self._newest = newest  # what came meanwhile is looked at again

    def _forget(self) -> None:
        with self._lock:
            self._read = None

    def _there(self, name: str) -> Principal:
        """A principal as the ledger has it now."""
        self._forget()
        known = self._principal(name)
        if known is None:
            detail = "The ledger has no such principal; a steward adds one."
            raise Refusal(404, "No such user", detail, "unknown-user")
        return known

    def seen(self, identity: Identity) -> None:
        """Write that a token was used, once in a while."""
        now = int(self._clock())
        row = self._row("SELECT used FROM tokens WHERE digest = ?", identity.key)
        if row is not None and (row["used"] or 0) <= now - _USED_SECONDS:
            with self.store.transaction() as rows:
                rows.execute("UPDATE tokens SET used = ? WHERE digest = ?", (now, identity.key))

    # ------------------------------------------------------------ tokens

    def token_made(
        self,
        maker: Identity | str,
        *,
        name: str,
        days: int,
        rights: Iterable[Right] | None = None,
        tables: Iterable[str] | None = None,
    ) -> tuple[str, TokenLine]:
        """A token for the maker, or for a principal on whose behalf the server acts; shown once."""
        owner = maker if isinstance(maker, str) else maker.principal
        known = self._there(owner)
        most = _cut(known, None, via="session", key="") if isinstance(maker, str) else maker
        wanted = most.rights if rights is None else frozenset(rights)
        within = most.tables if tables is None else frozenset(tables)
        if within is not None:
            wanted &= OF_TABLES
        name = name.strip()
        if not 1 <= len(name) <= 100 or not name.isprintable():
            raise wrong("A token's name has 1 to 100 printable characters.")
        if not 1 <= days <= _MOST_DAYS:
            raise wrong(f"A token lives from 1 to {_MOST_DAYS} days.")
        beyond = most.tables is not None and within is not None and not within <= most.tables
        if beyond or not wanted <= most.rights:
            raise not_allowed("A token may have the rights and tables of its maker, and no more.")
        token, now = f"lbt_{_secret()}", int(self._clock())
        with self.store.transaction() as rows:
            parent = _parent(rows, maker, known)
            ends = now + days * 86_400 if parent is None else parent["expires"]
            if parent is not None and (parent["revoked"] is not None or ends <= now):
                raise _signed_out()
            alive = "principal = ? AND revoked IS NULL AND expires > ?"
            alive = f"SELECT COUNT(*) FROM tokens WHERE {alive}"
            if rows.execute(alive, (owner, now)).fetchone()[0] >= _MOST_TOKENS:
                raise wrong(f"There are {_MOST_TOKENS} tokens already; revoke one that is unused.")
            # who makes and revokes tokens all day must not fill the disk: the audit log has them
            rows.execute(
                "DELETE FROM tokens WHERE digest IN (SELECT digest FROM tokens WHERE principal = ? "
                "AND (revoked IS NOT NULL OR expires <= ?) ORDER BY made DESC, rowid DESC "
                "LIMIT -1 OFFSET ?)",
                (owner, now, _MOST_TOKENS),
            )
            made: dict[str, Any] = {
                "digest": _digest(token),
                "id": _secret()[:16],
                "principal": owner,
                "since": known.since,
                "parent": None if parent is None else parent["digest"],
                "name": name,
                "made": now,
                "expires": min(ends, now + days * 86_400),
                "rights": json.dumps(sorted(wanted)),
                "tables": None if within is None else json.dumps(sorted(within)),
                "used": None,
                "revoked": None,
            }
            _insert(rows, "tokens", made)
            self._note(rows, owner, "token made", made["id"])
        return token, _line(made)

    def tokens(self, principal: str) -> list[TokenLine]:
        """A principal's tokens, the newest first, the last of those that have ended too."""
        rows = self.store.connection().execute(
            "SELECT * FROM tokens WHERE principal = ? ORDER BY made DESC, rowid DESC", (principal,)
        )
        return [_line(row) for row in rows]

    def token_revoked(self, id: str, by: Identity) -> None:
        """End a token of one's own, or of anybody by the right "users", and all that it made."""
        with self.store.transaction() as rows:
            row = rows.execute("SELECT * FROM tokens WHERE id = ?", (id,)).fetchone()
            if row is None or not (row["principal"] == by.principal or "users" in by.rights):
                raise Refusal(404, "No such token", "You have no such token.", "unknown")
            rows.execute(
                "WITH RECURSIVE made (digest) AS (VALUES (?) UNION SELECT tokens.digest "
                "FROM tokens JOIN made ON tokens.parent = made.digest) "
                "UPDATE tokens SET revoked = ? WHERE revoked IS NULL AND digest IN made",
                (row["digest"], int(self._clock())),
            )
            self._note(rows, by.principal, "token revoked", id)

    # ------------------------------------------------------------ links and sessions

    def link_made(self, principal: str | None, *, by: Identity | None = None) -> str:
        """The path of a one-time link; None: for the first steward of a ledger that has none."""
        if principal is None:
            self._check_first()
            since = 0
        else:
            known = self._there(principal)
            _check_gives(by, known.role)
            since = known.since
        code = _secret()
        with self.store.transaction() as rows:
            expires = int(self._clock()) + _LINK_SECONDS
            made = {"digest": _digest(code), "principal": principal, "since": since}
            _insert(rows, "links", {**made, "expires": expires})
            self._note(rows, _name(by), "link made", principal)
        return f"/link/{code}"

    def link_found(self, code: str) -> str | None:
        """Whom a link is for, None: the first steward; refused if it is not good. Not used up."""
        row = self._row("SELECT * FROM links WHERE digest = ?", _digest(code))
        if row is None or row["used"] is not None or row["expires"] <= self._clock():
            raise _bad_link()
        if row["principal"] is None:
            self._check_first()
        elif self._standing(row) is None:
            raise _bad_link()
        return cast("str | None", row["principal"])

    def link_used(self, code: str, name: str | None = None) -> str:
        """Use a link up: the secret of a new session. The first steward says a name."""
        self._forget()
        with self.store.transaction() as rows:
            principal = self.link_found(code)
            rows.execute(
                "UPDATE links SET used = ? WHERE digest = ?", (int(self._clock()), _digest(code))
            )
            if principal is None:
                principal = name or ""
                _check_name(principal)
                self.ledger.set_principal(principal, "steward", by=_LINK)
                self._note(rows, principal, "first steward", principal)
            return self._session(rows, self._there(principal), token=None)

    def session_of(self, token: str) -> str:
        """The secret of a new session, with the restrictions of the token that begins it."""
        with self.store.transaction() as rows:
            identity = self._by_token(token)
            if identity is None:
                detail = "This is not a token, or it has expired or was revoked."
                raise Refusal(401, "Not signed in", detail, "bad-token")
            return self._session(rows, self._there(identity.principal), token=identity.key)

    def _session(self, rows: sqlite3.Connection, known: Principal, *, token: str | None) -> str:
        secret, now = _secret(), int(self._clock())
        rows.execute(
            "DELETE FROM sessions WHERE expires <= ? OR digest IN (SELECT digest FROM sessions "
            "WHERE principal = ? ORDER BY made DESC, rowid DESC LIMIT -1 OFFSET ?)",
            (now, known.name, _MOST_SESSIONS - 1),
        )
        expires = now + self.settings.session_hours * 3600
        made = {"digest": _digest(secret), "principal": known.name, "since": known.since}
        _insert(rows, "sessions", {**made, "token": token, "made": now, "expires": expires})
        self._note(rows, known.name, "signed in", None)
        return secret

    def session_ended(self, identity: Identity) -> None:
        """Sign out; tokens stay."""
        with self.store.transaction() as rows:
            rows.execute("DELETE FROM sessions WHERE digest = ?", (identity.key,))
            self._note(rows, identity.principal, "signed out", None)

    def sessions(self, identity: Identity) -> list[SessionLine]:
        """One's own, the newest first."""
        rows = self.store.connection().execute(
            "SELECT substr(s.digest, 1, :letters) AS id, s.made, s.expires, t.name AS token, "
            "s.digest = :own AS current "
            "FROM sessions AS s LEFT JOIN tokens AS t ON s.token = t.digest "
            "WHERE s.principal = :whose AND s.expires > :now "
            "AND (s.token IS NULL OR (t.revoked IS NULL AND t.expires > :now)) "
            "ORDER BY s.made DESC, s.rowid DESC",
            {
                "whose": identity.principal,
                "own": identity.key,
                "letters": _SESSION_ID,
                "now": self._clock(),
            },
        )
        return [SessionLine(**{**row, "current": bool(row["current"])}) for row in map(dict, rows)]

    def session_revoked(self, id: str, by: Identity) -> None:
        """End a session of one's own, by the name under which it is listed."""
        with self.store.transaction() as rows:
            ended = rows.execute(
                "DELETE FROM sessions WHERE principal = ? AND substr(digest, 1, ?) = ?",
                (by.principal, _SESSION_ID, id),
            )
            if not ended.rowcount:
                detail = "You have no such session; it may have ended."
                raise Refusal(404, "No such session", detail, "unknown")
            self._note(rows, by.principal, "session ended", id)

    def all_ended(self, principal: str, *, by: Identity | None = None) -> None:
        """End all sessions of a principal, revoke its tokens and make its links useless."""
        now = int(self._clock())
        with self.store.transaction() as rows:
            rows.execute("DELETE FROM sessions WHERE principal = ?", (principal,))
            for change in (
                "UPDATE tokens SET revoked = ? WHERE principal = ? AND revoked IS NULL",
                "UPDATE links SET used = ? WHERE principal = ? AND used IS NULL",
            ):
                rows.execute(change, (now, principal))
            self._note(rows, _name(by), "user revoked", principal)

    # ------------------------------------------------------------ principals

    def principal_set(self, name: str, role: Role | None, *, by: Identity) -> Principal:
        """Add a principal, change its role, or remove it; a new role ends what it had signed in."""
        known = {one.name: one.role for one in self.ledger.principals()}
        if name not in known:
            _check_name(name)
        _check_gives(by, role)
        found = self.ledger.set_principal(name, role, by=by.principal)
        self._forget()
        if known.get(name) not in (None, role):
            self.all_ended(name, by=by)
        self.audit(by, "user removed" if role is None else "user set", name, role)
        return found

    def _check_first(self) -> None:
        if self.ledger.principals():
            raise _bad_link()

    # ------------------------------------------------------------ the audit log

    def audit(
        self, who: Identity | None, action: Action, subject: str | None, words: str | None = None
    ) -> None:
        """Write who did what. Subjects are names; words are the server's own, never a value."""
        with self.store.transaction() as rows:
            self._note(rows, _name(who), action, subject, words)

    def _note(
        self,
        rows: sqlite3.Connection,
        principal: str | None,
        action: Action,
        subject: str | None,
        words: str | None = None,
    ) -> None:
        if action not in get_args(Action):
            remedy = "use one of the list, or add it there"
            raise InvalidParameter("action", problem="is not in the list", remedy=remedy)
        said = {"principal": principal, "action": action, "subject": subject, "words": words}
        _insert(rows, "audit", {"at": self._clock(), **said})

    def audit_lines(self, before: int | None = None, most: int = 100) -> list[sqlite3.Row]:
        """The newest lines of the audit log, or those before a number."""
        end = (1 << 62) if before is None else before
        query = "SELECT * FROM audit WHERE sequence < ? ORDER BY sequence DESC LIMIT ?"
        return list(self.store.connection().execute(query, (end, most)))

    def _row(self, query: str, key: str) -> sqlite3.Row | None:
        return cast("sqlite3.Row | None", self.store.connection().execute(query, (key,)).fetchone())


# ---------------------------------------------------------------- cookies


def with_session(response: Response, secret: str) -> Response:
    """Give a browser the secret of its session."""
    response.set_cookie(COOKIE, secret, path="/", secure=True, httponly=True, samesite="strict")
    return response


def without_session(response: Response) -> Response:
    """Take it back."""
    response.delete_cookie(COOKIE, path="/", secure=True, httponly=True, samesite="strict")
    return response


def _cookie(scope: Mapping[str, Any]) -> str | None:
    """The one secret that is sent; None if there is none, or several, of which one was planted."""
    parts = ";".join(_headers(scope, "cookie")).split(";")
    found = [part.strip().removeprefix(f"{COOKIE}=") for part in parts if COOKIE in part]
    return found[0] if len(found) == 1 and _SECRET.fullmatch(found[0]) else None


def _headers(scope: Mapping[str, Any], name: str) -> list[str]:
    wanted = name.lower().encode("latin-1")
    return [value.decode("latin-1") for key, value in scope["headers"] if key == wanted]


# ---------------------------------------------------------------- small parts


def _secret() -> str:
    """256 bits, as 43 letters that URLs and cookies take."""
    return base64.urlsafe_b64encode(secure_bits().fill(32).tobytes()).decode().rstrip("=")


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _name(who: Identity | None) -> str | None:
    return None if who is None else who.principal


def _cut(known: Principal, row: sqlite3.Row | None, *, via: Via, key: str) -> Identity:
    """What is left of a principal's rights after a token's restrictions."""
    assert known.role is not None  # it stands
    rights, tables = RIGHTS[known.role], None
    if row is not None:
        line = _line(row)
        rights, tables = rights & line.rights, line.tables
    return Identity(
        principal=known.name, role=known.role, rights=rights, tables=tables, via=via, key=key
    )


def _insert(rows: sqlite3.Connection, table: str, row: Mapping[str, Any]) -> None:
    places = ", ".join("?" * len(row))
    rows.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({places})", tuple(row.values()))


def _line(row: sqlite3.Row | dict[str, Any]) -> TokenLine:
    line = {field.name: row[field.name] for field in fields(TokenLine)}
    for listed in ("rights", "tables"):
        line[listed] = None if row[listed] is None else frozenset(json.loads(row[listed]))
    return TokenLine(**line)


def _parent(
    rows: sqlite3.Connection, maker: Identity | str, known: Principal
) -> sqlite3.Row | None:
    """The token by which the maker of a token acts, if there is one; refused if that has ended."""
    if isinstance(maker, str) or maker.via == "proxy":
        return None

    def found(table: str, digest: str) -> sqlite3.Row:
        row = rows.execute(f"SELECT * FROM {table} WHERE digest = ?", (digest,)).fetchone()
        if row is None or row["since"] != known.since:
            raise _signed_out()
        return cast("sqlite3.Row", row)

    token = maker.key if maker.via == "token" else found("sessions", maker.key)["token"]
    return None if token is None else found("tokens", token)


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise wrong(
            "A user's name has 1 to 64 letters, digits or . _ @ + -, and begins with a letter or "
            "digit."
        )


def _check_gives(by: Identity | None, role: Role | None) -> None:
    """Refuse that somebody gives a role with more than is left of their own rights."""
    if by is None or role is None:  # the server itself, or nothing is given
        return
    if by.tables is not None or not RIGHTS.get(role, frozenset()) <= by.rights:
        raise not_allowed("A token that is restricted does not make users of more rights.")


def _signed_out() -> Refusal:
    detail = "Your session or token has ended; sign in again."
    return Refusal(401, "Not signed in", detail, "not-signed-in")


def _bad_link() -> Refusal:
    detail = "This link was used, has expired, or never was one; ask a steward for another."
    return Refusal(404, "No such link", detail, "bad-link")
