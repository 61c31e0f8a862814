"""Tables, functions and rights of a ledger in PostgreSQL, and whether they are as they were made.

`{s}` stands for the schema, `{steward}` and the like for its roles. Nobody but the owner may write
to a table. `append` and `decide` run as the owner, and let `entered` decide: an entry has the next
number, names the hash before, fits its own hash, and its record the digest it states; a charge adds
at least its price to what was spent, and stays within a budget of plain sums; a reservation is
answered once; no sum goes down; what changes a budget or voids a reservation goes through `decide`.
Whoever breaks a rule gets an error, and nothing is written.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

LAYOUT = 1
"""Of tables and functions; a lastbit that needs others says so."""
ROLES = ("steward", "analyst", "auditor")

GIVEN = "bigint, text, text, text, text, text"

# a + b <= c for exact fractions; numeric is exact on whole numbers
_AT_MOST = """
SELECT (n[1] * d[2] + n[2] * d[1]) * d[3] <= n[3] * d[1] * d[2] FROM (
    SELECT array_agg(split_part(part, '/', 1)::numeric ORDER BY i) AS n,
           array_agg(coalesce(nullif(split_part(part, '/', 2), ''), '1')::numeric ORDER BY i) AS d
    FROM unnest(ARRAY[$1, $2, $3]) WITH ORDINALITY AS given (part, i)) AS fractions
"""
_AMOUNTS = r'^(null|\{(("kind":"[a-z]+"|"[a-z_]+":"[0-9]+(/[1-9][0-9]*)?"),?)+\})$'

# PostgreSQL stops at a NUL that somebody asked about, wherever it is; no field that matters has one
_READ = r"SELECT regexp_replace($1, '(?<!\\)((?:\\\\)*)\\u0000', '\1', 'g')::json"
_FIELD = "SELECT ($1 -> $2)::text::jsonb #>> '{}'"

_ENTERED = r"""
#variable_conflict use_column
DECLARE
    entry json := {s}.read(given_text);
    kind text := {s}.field(entry, 'kind');
    answered text := {s}.field(entry, 'reservation');
    now_head {s}.head%ROWTYPE;
    paid {s}.entries%ROWTYPE;
    before json;
    limits text;
    currency text;
    fits boolean;
    steady boolean;
BEGIN
    SELECT * INTO STRICT now_head FROM {s}.head WHERE one = 1 FOR UPDATE;
    IF given_sequence IS DISTINCT FROM now_head.last + 1
       OR {s}.field(entry, 'sequence') IS DISTINCT FROM given_sequence::text
       OR {s}.field(entry, 'previous') IS DISTINCT FROM now_head.hash
       OR octet_length(given_text) <> length(given_text)
       OR given_hash IS DISTINCT FROM encode(sha256(convert_to(given_text, 'UTF8')), 'hex')
       OR {s}.field(entry, 'account') IS DISTINCT FROM given_account
       OR {s}.field(entry, 'question') IS DISTINCT FROM given_question
       OR {s}.field(entry, 'result')
          IS DISTINCT FROM encode(sha256(convert_to(given_record, 'UTF8')), 'hex')
       OR (entry -> 'cost')::text !~ '{amounts}' OR (entry -> 'spent')::text !~ '{amounts}'
       OR (entry -> 'budget')::text !~ '{amounts}'
    THEN RAISE EXCEPTION 'an entry does not follow the last one' USING ERRCODE = 'LB001';
    END IF;
    SELECT {s}.read(e.text) INTO before FROM {s}.entries AS e
        WHERE e.account = given_account ORDER BY e.sequence DESC LIMIT 1;
    steady := coalesce((entry -> 'budget')::text = (before -> 'budget')::text, false);
    limits := coalesce({s}.field(entry -> 'budget', 'kind'), 'none');
    fits := true;
    IF before IS NOT NULL AND kind IN ('charge', 'reserved', 'budget') THEN
        FOREACH currency IN ARRAY ARRAY['epsilon', 'delta', 'rho'] LOOP
            fits := fits AND {s}.at_most(
                {s}.field(before -> 'spent', currency),
                CASE kind WHEN 'budget' THEN '0' ELSE {s}.field(entry -> 'cost', currency) END,
                {s}.field(entry -> 'spent', currency));
            IF limits IN ('pure', 'approx', 'zcdp') THEN
                fits := fits AND {s}.at_most({s}.field(entry -> 'spent', currency), '0',
                    {s}.field(entry -> 'budget', currency));
            END IF;
        END LOOP;
        FOREACH currency IN ARRAY ARRAY['moment', 'mu_squared'] LOOP
            fits := fits AND {s}.at_most(
                coalesce({s}.field(before -> 'spent', currency), '0'), '0',
                coalesce({s}.field(entry -> 'spent', currency), '0'));
        END LOOP;
    END IF;
    IF kind IN ('charge', 'reserved') THEN
        fits := fits AND steady AND (entry -> 'cost')::text ~ ':"[1-9]' AND answered IS NULL
            AND (kind = 'charge') = (given_record IS NOT NULL);
    ELSE
        fits := fits AND (entry -> 'cost')::text = 'null';
        steady := steady AND (entry -> 'spent')::text = (before -> 'spent')::text;
    END IF;
    IF kind IN ('settled', 'voided') THEN
        SELECT * INTO paid FROM {s}.entries AS e WHERE e.hash = answered;
        fits := fits AND steady AND {s}.field({s}.read(paid.text), 'kind') = 'reserved'
            AND (paid.account, paid.question) IS NOT DISTINCT FROM (given_account, given_question)
            AND (kind = 'settled') = (given_record IS NOT NULL);
    ELSIF kind = 'note' THEN
        fits := fits AND given_record IS NULL AND (steady OR given_account IS NULL);
    ELSIF kind = 'budget' THEN
        fits := fits AND given_record IS NULL AND given_account IS NOT NULL;
    ELSIF kind NOT IN ('charge', 'reserved') THEN
        fits := false;
    END IF;
    IF fits IS NOT TRUE THEN
        RAISE EXCEPTION 'an entry breaks the rules of its account' USING ERRCODE = 'LB001';
    END IF;
    IF NOT given_steward AND (kind = 'voided' OR kind = 'budget' AND before IS NOT NULL) THEN
        RAISE EXCEPTION 'a steward decides this' USING ERRCODE = '42501';
    END IF;
    INSERT INTO {s}.entries (sequence, account, question, text, hash, reservation, record) VALUES
        (given_sequence, given_account, given_question, given_text, given_hash, answered,
         given_record);
    UPDATE {s}.head SET last = given_sequence, hash = given_hash,
        version = greatest(version, right({s}.field(entry, 'format'), 1)::integer) WHERE one = 1;
END
""".replace("{amounts}", _AMOUNTS)


def _function(name: str, given: str, gives: str, language: str, body: str, how: str) -> str:
    return (
        f"CREATE FUNCTION {{s}}.{name}({given}) RETURNS {gives} LANGUAGE {language} {how} "
        f"AS $lastbit${body}$lastbit$"
    )


BY_INDEX = ("enable_indexscan", "enable_indexonlyscan", "enable_bitmapscan")
# what a caller may set must not change what the text of a function means
_SAFE = "SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on"
_NAMED = (
    "given_sequence bigint, given_account text, given_question text, given_text text, "
    "given_hash text, given_record text, given_steward boolean"
)
_CALLED = "SELECT {s}.entered($1, $2, $3, $4, $5, $6, %s)"
_DIGEST = "SELECT encode(sha256(value), 'hex') FROM {s}.secret WHERE octet_length(value) = 32"
_OWNERS = f"SECURITY DEFINER {_SAFE}"
SCHEMA = (
    "CREATE TABLE {s}.head (one integer PRIMARY KEY CHECK (one = 1), layout integer NOT NULL, "
    'version integer NOT NULL, last bigint NOT NULL, hash text COLLATE "C" NOT NULL)',
    "CREATE TABLE {s}.secret (one integer PRIMARY KEY CHECK (one = 1), value bytea NOT NULL)",
    'CREATE TABLE {s}.entries (sequence bigint PRIMARY KEY, account text COLLATE "C", '
    'question text COLLATE "C", text text COLLATE "C" NOT NULL, '
    'hash text COLLATE "C" NOT NULL UNIQUE, '
    'reservation text COLLATE "C" UNIQUE REFERENCES {s}.entries (hash), record text COLLATE "C")',
    "CREATE INDEX entries_by_account ON {s}.entries (account, sequence)",
    _function("stay", "", "trigger", "plpgsql", "BEGIN RAISE 'entries are fixed'; END", _SAFE),
    *(
        f"CREATE TRIGGER stay_{what.lower()} BEFORE {what} ON {{s}}.{table} "
        "FOR EACH STATEMENT EXECUTE FUNCTION {s}.stay()"
        for table, whats in (
            ("entries", ("UPDATE", "DELETE", "TRUNCATE")),
            ("secret", ("UPDATE", "DELETE", "TRUNCATE")),
            ("head", ("DELETE", "TRUNCATE")),
        )
        for what in whats
    ),
    _function("read", "text", "json", "sql", _READ, "IMMUTABLE"),
    _function("field", "json, text", "text", "sql", _FIELD, "IMMUTABLE"),
    _function("at_most", "text, text, text", "boolean", "sql", _AT_MOST, "IMMUTABLE"),
    _function(
        "locked", "", "bigint", "sql", "SELECT last FROM {s}.head WHERE one = 1 FOR UPDATE", _OWNERS
    ),
    _function("entered", _NAMED, "void", "plpgsql", _ENTERED, f"{_SAFE} SET {BY_INDEX[0]} = on"),
    _function("append", GIVEN, "void", "sql", _CALLED % "false", _OWNERS),
    _function("decide", GIVEN, "void", "sql", _CALLED % "true", _OWNERS),
    _function("secret_digest", "", "text", "sql", _DIGEST, _OWNERS),
    "REVOKE ALL ON ALL FUNCTIONS IN SCHEMA {s} FROM PUBLIC",
    "GRANT USAGE ON SCHEMA {s} TO {steward}, {analyst}, {auditor}",
    "GRANT SELECT ON {s}.entries, {s}.head TO {steward}, {analyst}, {auditor}",
    "GRANT SELECT ON {s}.secret TO {steward}, {analyst}",
    "GRANT EXECUTE ON FUNCTION {s}.secret_digest() TO {steward}, {analyst}, {auditor}",
    f"GRANT EXECUTE ON FUNCTION {{s}}.locked(), {{s}}.append({GIVEN}) TO {{steward}}, {{analyst}}",
    f"GRANT EXECUTE ON FUNCTION {{s}}.decide({GIVEN}) TO {{steward}}",
)

LOOKED_AT = """
WITH space AS (SELECT oid, nspowner, nspacl FROM pg_namespace WHERE nspname = %s),
     class AS (SELECT c.* FROM pg_class AS c JOIN space ON c.relnamespace = space.oid),
     routine AS (SELECT p.* FROM pg_proc AS p JOIN space ON p.pronamespace = space.oid)
SELECT concat_ws(' ', 'relation', relname, relkind, relpersistence, relrowsecurity, relhasrules,
       relispartition, relhassubclass) FROM class
UNION ALL SELECT concat_ws(' ', 'column', relname, attnum, attname, attnotnull, collname,
       format_type(atttypid, atttypmod)) FROM class JOIN pg_attribute ON attrelid = class.oid
       LEFT JOIN pg_collation AS k ON k.oid = attcollation
       WHERE relkind = 'r' AND attnum > 0 AND NOT attisdropped
UNION ALL SELECT concat_ws(' ', 'index', relname, indisunique, indisvalid, indisready, indkey)
       FROM class JOIN pg_index ON indexrelid = class.oid
UNION ALL SELECT concat_ws(' ', 'trigger', relname, tgname, tgenabled, tgtype, proname,
       CASE WHEN pronamespace <> relnamespace THEN 'from elsewhere' END)
       FROM class JOIN pg_trigger ON tgrelid = class.oid JOIN pg_proc AS p ON p.oid = tgfoid
       WHERE NOT tgisinternal
UNION ALL SELECT concat_ws(' ', 'constraint', relname, contype, convalidated, conkey)
       FROM class JOIN pg_constraint ON conrelid = class.oid WHERE contype <> 'n'
UNION ALL SELECT concat_ws(' ', 'function', proname, pronargs, prosecdef, provolatile, prokind,
       proconfig, proowner = nspowner, prosrc) FROM routine, space
UNION ALL SELECT 'another owner' FROM class, space WHERE relowner <> nspowner
UNION ALL SELECT concat_ws(' ', 'grant', relname, privilege_type)
       FROM class, aclexplode(relacl) WHERE grantee <> relowner
       AND (privilege_type <> 'SELECT' OR is_grantable OR grantee = 0)
UNION ALL SELECT concat_ws(' ', 'grant', relname, attname, privilege_type)
       FROM class JOIN pg_attribute ON attrelid = class.oid, aclexplode(attacl)
       WHERE grantee <> relowner
UNION ALL SELECT concat_ws(' ', 'grant', privilege_type) FROM space, aclexplode(nspacl)
       WHERE grantee <> nspowner AND privilege_type <> 'USAGE'
UNION ALL SELECT concat_ws(' ', 'grant', proname, CASE grantee WHEN 0 THEN 'PUBLIC' END)
       FROM routine, aclexplode(coalesce(proacl, acldefault('f', proowner)))
       WHERE grantee <> proowner AND (grantee = 0 OR is_grantable
          OR proname NOT IN ('append', 'decide', 'locked', 'secret_digest')
          OR proname = 'decide' AND pg_get_userbyid(grantee) <> %s)
"""
AS_MADE = "da6a3dc2a1f84ee3e6fbb998e0389751a707486125b60adbc158d01d7daaf02d"
"""Digest of what `LOOKED_AT` finds in a ledger as it is made, whatever the schema's name."""


def filled(statement: str, names: Mapping[str, str]) -> str:
    """The statement for one schema and its roles."""
    for name, text in names.items():
        statement = statement.replace(f"{{{name}}}", text)
    return statement


def digest_of_lines(lines: Iterable[str], schema: str) -> str:
    """Of the definitions, whatever the name of the schema is."""
    text = "\n".join(lines).replace(f'"{schema}".', "{s}.")
    return hashlib.sha256(text.encode()).hexdigest()
