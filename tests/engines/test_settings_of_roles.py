"""Whatever a role or a database sets: ledgers and data work the same, or the setting is named."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from lastbit.errors import LastbitError
from lastbit.ledger.ledger import Ledger
from lastbit.ledger.storage import Connections
from lastbit.tables.backends import printed
from tests.engines import servers
from tests.engines.test_postgres import VISITS, asked, private, raw
from tests.evidence import Extent
from tests.ledger.books import small_ledger

pytest.importorskip("psycopg", reason=servers.MISSING)
from lastbit.ledger import postgres as room

# of what descriptions, texts and the meaning of statements depend on, or what ended in a bad remedy
TRIED_ALWAYS = (
    *("quote_all_identifiers", "standard_conforming_strings", "transform_null_equals"),
    *("DateStyle", "IntervalStyle", "TimeZone", "bytea_output", "exit_on_error"),
    *("search_path", "default_transaction_read_only", "session_replication_role"),
    *("idle_session_timeout", "zero_damaged_pages", "plpgsql.extra_errors"),
)
TEXTS = {
    "DateStyle": ["SQL, DMY", "German", "Postgres, MDY"],
    "TimeZone": ["Asia/Kathmandu", "Etc/GMT+12"],
    "client_encoding": ["SQL_ASCII", "LATIN1"],
    "search_path": ["books, public", "pg_temp", "nowhere"],
    **{f"lc_{kind}": ["C"] for kind in ("messages", "monetary", "numeric", "time")},
    "timezone_abbreviations": ["India", "Australia"],
    "default_tablespace": ["pg_default"],
    "temp_tablespaces": ["pg_default"],
    "default_text_search_config": ["pg_catalog.german"],
    "application_name": ["another"],
    "default_table_access_method": ["heap"],
    "restrict_nonsystem_relation_kind": ["view", "view, foreign-table"],
    "plpgsql.extra_errors": ["all"],
    "plpgsql.extra_warnings": ["all"],
    "createrole_self_grant": ["set, inherit"],
}
OTHER_CODE = (
    *("session_preload_libraries", "local_preload_libraries", "dynamic_library_path"),
    *("extension_control_path", "extension_destdir", "default_tablespace", "backtrace_functions"),
    *("wal_consistency_checking", "debug_io_direct", "oauth_validator_libraries"),
)
"""Texts that load code of a superuser's choice, or that no statement depends on."""
# values in the columns, by types whose texts a setting changes
ADDED = """
ALTER TABLE visits ADD COLUMN a interval DEFAULT '1 day 2 hours', ADD COLUMN b bytea DEFAULT 'ab',
  ADD COLUMN c money DEFAULT 3, ADD COLUMN d float8 DEFAULT 0.1,
  ADD COLUMN e timestamptz DEFAULT '2020-01-01 00:00:00+00'
"""


@dataclass(frozen=True)
class Place:
    """A database with a ledger and a table, which is set up by a connection of another one."""

    address: str
    name: str
    hands: Any
    numbers: Iterator[int]

    def settings(self) -> list[tuple[str, list[str]]]:
        """All that a role or a database can carry, with every other value or the extreme ones."""
        self.hands.execute("LOAD 'plpgsql'")
        rows = self.hands.execute(
            "SELECT name, vartype, enumvals, min_val, max_val, setting FROM pg_settings "
            "WHERE context IN ('user', 'superuser') ORDER BY name"
        )
        return [(row[0], [v for v in other_values(*row) if v != row[-1]]) for row in rows]

    def ledger(self) -> Any:
        """What a new process finds, and may do."""
        ledger = Ledger.existing(f"{self.address}&schema=books")
        before = len(ledger.entries())
        ledger.note("by hand", who="ben")
        return ledger.problems(), len(ledger.entries()) - before

    def data(self) -> Any:
        question = asked(private(self))
        return raw(question), printed.fingerprint(question.card)

    def new_ledger(self) -> Any:
        return small_ledger(f"{self.address}&schema=new_{next(self.numbers)}").problems()


def other_values(
    name: str, kind: str, named: list[str] | None, least: str, most: str, now: str
) -> list[str]:
    match kind:
        case "bool":
            return ["off" if now == "on" else "on"]
        case "enum":
            return named or []
        case "integer" | "real":
            return list(dict.fromkeys((least, "0", "1", most)))
    return TEXTS.get(name, [])


@pytest.fixture(scope="module")
def place(postgres: Any) -> Iterator[Place]:
    address = postgres.database()
    with postgres.connected(address) as setting_up:
        setting_up.execute(VISITS + ADDED)
        name = setting_up.info.dbname
    small_ledger(f"{address}&schema=books")
    with postgres.connected(postgres.address()) as hands:
        yield Place(address, name, hands, itertools.count(1))


def test_every_setting_is_ours_or_named(place: Place, extent: Extent) -> None:
    """Failed before: quote_all_identifiers had the ledger's tables changed, "restore a backup"."""
    import psycopg

    works: dict[str, Callable[[], Any]] = {"ledger": place.ledger, "data": place.data}
    expected = {name: work() for name, work in works.items()}
    tried, refused = 0, set()
    for name, values in place.settings():
        assert values or name in OTHER_CODE or name in TEXTS, f"{name} is a text of its own"
        if not (extent.is_many or name in TRIED_ALWAYS):
            continue
        for value in values if extent.is_many else values[:2]:
            whom = ("DATABASE " + place.name, "ROLE postgres")[tried % 2]
            try:
                given = value if name == "search_path" else f"'{value}'"
                place.hands.execute(f"ALTER {whom} SET {name} = {given}")
            except psycopg.errors.Error:
                continue  # beyond what it may be, or not to be carried
            tried += 1
            try:
                for what, work in works.items():
                    try:
                        assert work() == expected[what], (what, name, value)
                    except LastbitError as error:
                        named = name in str(error) or lost_at_once(name, error)
                        assert named, (what, name, value, str(error))
                        assert "backup" not in str(error)
                        refused.add(name)
            finally:
                place.hands.execute(f"ALTER {whom} RESET {name}")
    assert tried >= (300 if extent.is_many else 18)
    assert refused >= {"default_transaction_read_only", "session_replication_role"}
    assert refused <= {
        *("default_transaction_read_only", "session_replication_role", "zero_damaged_pages"),
        *("idle_session_timeout", "statement_timeout", "lock_timeout", "transaction_timeout"),
        "temp_file_limit",
    }
    assert {name: work() for name, work in works.items()} == expected


def lost_at_once(name: str, error: LastbitError) -> bool:
    """A session that may be idle for 1 ms may be over before the server's last word is read."""
    return name == "idle_session_timeout" and "lost" in str(error)


@pytest.mark.parametrize("name", ["quote_all_identifiers", "exit_on_error"])
def test_a_ledger_is_made_under_other_settings(place: Place, name: str) -> None:
    place.hands.execute(f"ALTER DATABASE {place.name} SET {name} = on")
    try:
        assert place.new_ledger() == []
    finally:
        place.hands.execute(f"ALTER DATABASE {place.name} RESET {name}")


@pytest.mark.evidence
def test_a_ledger_is_made_under_every_setting(place: Place) -> None:
    import psycopg

    for name, values in place.settings():
        for value in values[-1:]:
            try:
                given = value if name == "search_path" else f"'{value}'"
                place.hands.execute(f"ALTER DATABASE {place.name} SET {name} = {given}")
            except psycopg.errors.Error:
                continue
            try:
                assert place.new_ledger() == []
            except LastbitError as error:
                assert name in str(error) or lost_at_once(name, error), (name, value, str(error))
            finally:
                place.hands.execute(f"ALTER DATABASE {place.name} RESET {name}")


def test_no_setting_of_a_pool_reaches_the_definitions(place: Place) -> None:
    """Behind a pool, SET may have reached another session: definitions are read under SET LOCAL."""
    path = Ledger.existing(f"{place.address}&schema=books").path
    with room.connected(path, Connections(), patience=5) as books:
        books.raw.execute("SET quote_all_identifiers = on; SET DateStyle = German")
        books.checked = -(10**9)
        books.open()
        shown = books.raw.execute("SHOW quote_all_identifiers").fetchone()
        assert shown == ("on",)
