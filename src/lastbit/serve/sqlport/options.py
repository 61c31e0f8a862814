"""What a session sets: the price of a question, and the few settings that clients expect.

Law      a session keeps a value for each name of a fixed list, of a fixed length at most, and for
         no other: ten thousand SETs take the room of one. SET of a price is checked as the API
         checks a question's. What clients set and nothing here depends on is taken and shown
Differs  a name that is not known is refused, as by PostgreSQL; ROLLBACK does not undo a SET, and
         SET LOCAL of a price is refused
Checked  tests/serve/test_sqlport_session.py
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from lastbit.serve.schemas import SCHEMAS, problem_in
from lastbit.serve.sqlport.lexing import unquoted, words

PRICES = ("epsilon", "delta", "rho", "within")
OWN = "lastbit."
SERVER_VERSION = "15.0"
_MOST = 1000
_SHOWN: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "application_name": ("application_name", ""),
        "client_encoding": ("client_encoding", "UTF8"),
        "datestyle": ("DateStyle", "ISO, MDY"),
        "default_transaction_read_only": ("default_transaction_read_only", "on"),
        "in_hot_standby": ("in_hot_standby", "off"),
        "integer_datetimes": ("integer_datetimes", "on"),
        "intervalstyle": ("IntervalStyle", "postgres"),
        "is_superuser": ("is_superuser", "off"),
        "search_path": ("search_path", '"$user", public'),
        "server_encoding": ("server_encoding", "UTF8"),
        "server_version": ("server_version", SERVER_VERSION),
        "session_authorization": ("session_authorization", ""),
        "standard_conforming_strings": ("standard_conforming_strings", "on"),
        "timezone": ("TimeZone", "UTC"),
    }
)
"""Those that a client is told at its start and at each change, under the names that it knows."""
_OTHERS: Mapping[str, str] = MappingProxyType(
    {
        "backslash_quote": "safe_encoding",
        "bytea_output": "hex",
        "check_function_bodies": "on",
        "client_min_messages": "notice",
        "cursor_tuple_fraction": "0.1",
        "default_table_access_method": "heap",
        "default_tablespace": "",
        "default_transaction_deferrable": "off",
        "default_transaction_isolation": "read committed",
        "default_with_oids": "off",
        "escape_string_warning": "on",
        "extra_float_digits": "1",
        "geqo": "on",
        "idle_in_transaction_session_timeout": "0",
        "idle_session_timeout": "0",
        "jit": "off",
        "lc_collate": "C.UTF-8",
        "lc_ctype": "C.UTF-8",
        "lc_messages": "C.UTF-8",
        "lc_monetary": "C.UTF-8",
        "lc_numeric": "C.UTF-8",
        "lc_time": "C.UTF-8",
        "lock_timeout": "0",
        "max_identifier_length": "63",
        "max_index_keys": "32",
        "password_encryption": "scram-sha-256",
        "quote_all_identifiers": "off",
        "role": "none",
        "row_security": "on",
        "server_version_num": "150000",
        "statement_timeout": "0",
        "synchronize_seqscans": "on",
        "transaction_deferrable": "off",
        "transaction_isolation": "read committed",
        "transaction_read_only": "on",
        "transaction_timeout": "0",
        "work_mem": "4MB",
        "xmloption": "content",
    }
)
_FIXED_NAMES = """
in_hot_standby integer_datetimes is_superuser lc_collate lc_ctype max_identifier_length
max_index_keys server_encoding server_version server_version_num session_authorization
"""
_FIXED = frozenset(_FIXED_NAMES.split())
_ENCODINGS = ("utf8", "utf-8", "unicode", "'utf8'")
_SPOKEN: Mapping[tuple[str, ...], str] = MappingProxyType(
    {
        ("time", "zone"): "timezone",
        ("transaction", "isolation", "level"): "transaction_isolation",
        ("session", "authorization"): "session_authorization",
        ("names",): "client_encoding",
    }
)
"""Settings whose names are several words in SQL."""


class WrongOption(Exception):
    """A setting that is not taken: SQLSTATE, what is wrong, and the way out."""

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.code, self.message, self.hint = code, message, hint


class Options:
    """The settings of one session."""

    __slots__ = ("_start", "_values")

    def __init__(self, *, user: str = "", epsilon: str | None = None) -> None:
        known = {name: value for name, (_, value) in _SHOWN.items()} | dict(_OTHERS)
        known |= {f"{OWN}{name}": "" for name in PRICES} | {f"{OWN}intervals": "off"}
        known["session_authorization"] = user
        known[f"{OWN}epsilon"] = epsilon or ""
        self._start = known
        self._values = dict(known)

    def set(self, name: str, value: str | None) -> str | None:
        """Set one, or set it back (None); the name under which clients are told of it, if any."""
        name = name.lower()
        if name not in self._start:
            message = f'unrecognized configuration parameter "{name[:60]}"'
            own = ", ".join(f"{OWN}{one}" for one in (*PRICES, "intervals"))
            hint = f"use {own}" if name.startswith(OWN) else ""
            raise WrongOption("42704", message, hint)
        value = self._start[name] if value is None else value
        if name in _FIXED and value != self._values[name]:
            raise WrongOption("55P02", f'parameter "{name}" cannot be changed now')
        if len(value) > _MOST:
            raise WrongOption("22023", f'the value of "{name}" is too long')
        self._values[name] = _checked(name, value)
        return _SHOWN[name][0] if name in _SHOWN else None

    def begin(self) -> None:
        """Take what is set now for what RESET sets back: what a client said as it connected."""
        self._start = dict(self._values)

    def reset(self) -> None:
        """Set all back."""
        self._values = dict(self._start)

    def __getitem__(self, name: str) -> str:
        found = self._values.get(name.lower())
        if found is None:
            message = f'unrecognized configuration parameter "{name[:60]}"'
            raise WrongOption("42704", message)
        return found

    def told(self) -> list[tuple[str, str]]:
        """What clients are told at the start."""
        return [(shown, self._values[name]) for name, (shown, _) in _SHOWN.items()]

    def every(self) -> list[tuple[str, str]]:
        return sorted(self._values.items())

    @property
    def price(self) -> dict[str, str]:
        """What is paid for a question, as the API has it."""
        set_now = {name: self._values[f"{OWN}{name}"] for name in PRICES}
        found = {name: value for name, value in set_now.items() if value}
        # a default is a default: who says another price, or a ±, means that
        is_default = self._values[f"{OWN}epsilon"] == self._start[f"{OWN}epsilon"]
        if is_default and found.keys() & {"rho", "within"}:
            found.pop("epsilon", None)
        return found

    @property
    def has_intervals(self) -> bool:
        return self._values[f"{OWN}intervals"] == "on"


def _checked(name: str, value: str) -> str:
    if name == "client_encoding":
        if value.lower() not in _ENCODINGS:
            raise WrongOption("22023", "texts are UTF-8 here", "SET client_encoding = 'UTF8'")
        return "UTF8"
    if name == "standard_conforming_strings" and value.lower() not in ("on", "true", "1", "yes"):
        raise WrongOption("22023", "strings are those of the standard here")
    if name == "datestyle":
        if not value.lower().startswith("iso"):
            raise WrongOption("22023", "dates are written as in ISO 8601 here")
        return "ISO, MDY"
    if name == f"{OWN}intervals":
        on = {"on": "on", "true": "on", "1": "on", "yes": "on"}
        off = {"off": "off", "false": "off", "0": "off", "no": "off"}
        found = (on | off).get(value.lower())
        if found is None:
            raise WrongOption("22023", f"{name} is on or off", f"SET {name} = on")
        return found
    if name.startswith(OWN) and value:
        schema = SCHEMAS["Question"]["properties"][name.removeprefix(OWN)]
        problem = problem_in(value, schema, name)
        if problem is not None:
            raise WrongOption("22023", problem, f"SET {name} = '0.5'")
    return value


# ---------------------------------------------------------------- commands


def assignment(statement: str) -> tuple[str, str | None] | None:
    """The name and the value that SET, or RESET, says; None where nothing follows from it.

    >>> assignment("SET lastbit.epsilon = '0.5'")
    ('lastbit.epsilon', '0.5')
    >>> assignment("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY")
    """
    first, *rest = words(statement)
    is_local = rest[:1] == ["local"]
    if rest[:1] in (["session"], ["local"]) and rest[1:2] != ["authorization"]:
        rest = rest[1:]
    if rest[:1] in (["characteristics"], ["transaction"], ["constraints"]) and first == "set":
        return None
    for spoken, name in _SPOKEN.items():
        if tuple(rest[: len(spoken)]) == spoken:
            return name, None if first == "reset" else _value(rest[len(spoken) :])
    name, rest = named(rest)
    if first == "reset":
        return name, None
    if is_local and name.lower().startswith(OWN):  # else a price would be paid again behind COMMIT
        problem = f"{name[:60]} is set for the session, not for a transaction"
        raise WrongOption("0A000", problem, f"SET {name[:60]} = ...")
    if rest[:1] not in (["="], ["to"]):
        raise WrongOption("42601", "a SET is not understood", "SET lastbit.epsilon = '0.5'")
    return name, _value(rest[1:])


def named(rest: Sequence[str]) -> tuple[str, list[str]]:
    """A name, perhaps of two parts, and what follows."""
    if not rest:
        raise WrongOption("42601", "a name is missing", "SHOW lastbit.epsilon")
    name, place = unquoted(rest[0]), 1
    while rest[place : place + 1] == ["."] and len(rest) > place + 1:
        name, place = f"{name}.{unquoted(rest[place + 1])}", place + 2
    return name, list(rest[place:])


def shown_name(statement: str) -> str:
    """The name that SHOW says."""
    rest = words(statement)[1:]
    for spoken, name in _SPOKEN.items():
        if tuple(rest) == spoken:
            return name
    name, more = named(rest)
    if more:
        raise WrongOption("42601", "SHOW takes one name", "SHOW lastbit.epsilon")
    return name


def _value(rest: Sequence[str]) -> str | None:
    if not rest:
        raise WrongOption("42601", "a value is missing", "SET lastbit.epsilon = '0.5'")
    if list(rest) == ["default"]:
        return None
    joined, before = "", ""
    for word in rest:
        quoted = unquoted(word)
        glued = word in (",", "-", "+", ".", "/", "%") or before in ("-", "+", ".", "/", "")
        joined += quoted if glued else f" {quoted}"
        before = word
    return joined


def from_startup(words_: str) -> list[tuple[str, str]]:
    """The settings in the parameter "options": -c name=value, as libpq sends it.

    >>> from_startup("-c lastbit.epsilon=0.5 --lastbit.delta=1e-9")
    [('lastbit.epsilon', '0.5'), ('lastbit.delta', '1e-9')]
    """
    found, pieces = [], words_.replace("\\ ", "\x01").split()
    pieces = [piece.replace("\x01", " ") for piece in pieces]
    while pieces:
        piece = pieces.pop(0)
        if piece == "-c" and pieces:
            piece = pieces.pop(0)
        elif piece.startswith("-c"):
            piece = piece[2:]
        elif piece.startswith("--"):
            name, equal, value = piece[2:].partition("=")
            piece = f"{name.replace('-', '_')}{equal}{value}"
        else:
            raise WrongOption("22023", "options are not understood", "-c lastbit.epsilon=0.5")
        name, equal, value = piece.partition("=")
        if not equal:
            raise WrongOption("22023", "options are not understood", "-c lastbit.epsilon=0.5")
        found.append((name, value))
    return found
