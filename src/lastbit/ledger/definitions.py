"""Tables, functions and rights of a ledger in PostgreSQL, and whether they are as they were made.

`{s}` stands for the schema, `{steward}` and the like for its roles. Nobody but the owner may write
to a table. `append` and `decide` run as the owner, and let `entered` decide: an entry has the next
number, names the hash before, fits its own hash, and its record the digest it states, the price
that was paid and the plan; it says when it is written, by the server's clock; a charge adds its
price to what was spent, and stays within a budget of plain sums (a filter's sums are not worked out
here: such an account is charged through `decide` alone); a reservation is drawn once, and answered
once, by the plan of its draw; no sum goes down; an account's neighbours stay once something is
spent; what opens an account, or changes a budget, a role or an allowance, voids a reservation,
withdraws an answer or notes the head of another ledger, goes through `decide`. Once there are
principals (`principals.py`), a charge names one who may ask: by `append` whoever is signed in, who
alone then answers it, by `decide` anybody; and that of an analyst states `since` as the server's
clock and the entry before have it, and what is used of the limit. `well_formed` and `readable` let
nothing in that lastbit would not read again. Whoever breaks a rule gets an error, and nothing is
written.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from lastbit.ledger.entry import LONGEST_ENTRY
from lastbit.ledger.records import DEEPEST, LONGEST_RECORD, MOST_DIGITS
from lastbit.tables import GRID

LAYOUT = 5
"""Of tables and functions; a lastbit that needs others says so. 1 knew no principals; 2 let those
who ask open accounts, say any time that has been, and write any record; 3 knew no numbers that are
drawn before there is an answer; 4 let another plan answer than that of the draw."""
ROLES = ("steward", "analyst", "auditor")
_MOST_PARTS = 1 << 25  # commas: about the values of the largest answer

GIVEN = "bigint, text, text, text, text, text"

# a + b <= c for exact fractions; numeric is exact on whole numbers
_AT_MOST = """
SELECT (n[1] * d[2] + n[2] * d[1]) * d[3] <= n[3] * d[1] * d[2] FROM (
    SELECT array_agg(split_part(part, '/', 1)::numeric ORDER BY i) AS n,
           array_agg(coalesce(nullif(split_part(part, '/', 2), ''), '1')::numeric ORDER BY i) AS d
    FROM unnest(ARRAY[$1, $2, $3]) WITH ORDINALITY AS given (part, i)) AS fractions
"""

# whether c is a + b, or, if that is off the grid of prices, the next number on it
_ADDS = f"""
SELECT over = 0 OR mod({GRID}, d[3]) = 0 AND over > 0 AND over * {GRID} < d[1] * d[2] * d[3] FROM (
    SELECT d, n[3] * d[1] * d[2] - (n[1] * d[2] + n[2] * d[1]) * d[3] AS over FROM (
        SELECT array_agg(split_part(part, '/', 1)::numeric ORDER BY i) AS n,
               array_agg(coalesce(nullif(split_part(part, '/', 2), ''), '1')::numeric
                         ORDER BY i) AS d
        FROM unnest(ARRAY[$1, $2, $3]) WITH ORDINALITY AS given (part, i)) AS fractions) AS sums
"""

# PostgreSQL stops at a NUL that somebody asked about, wherever it is; no field that matters has one
_READ = r"""
SELECT CASE strpos($1, '\u0000') WHEN 0 THEN $1
       ELSE regexp_replace($1, '(?<!\\)((?:\\\\)*)\\u0000', '\1', 'g') END::json
"""
_FIELD = "SELECT ($1 -> $2)::text::jsonb #>> '{}'"

# how each field is written, as `Entry.text` does; in which entries it is
_F = r'"(0|[1-9][0-9]*)(/[1-9][0-9]*)?"'
_TEXT = (
    r'^(null|"([^"\\\x7f]|\\["\\bfnrt]|\\u(00(0[0-7bef]|1[0-9a-f]|7f|[89a-f][0-9a-f])'
    r'|0[1-9a-f][0-9a-f]{2}|[1-9a-f][0-9a-f]{3}))*")$'
)
_PRICE = rf'^(null|\{{"delta":{_F},"epsilon":{_F},"rho":{_F}\}})$'
_N = f"({_F}|null)"
_SHAPES: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(
            (
                "account",
                "fingerprint",
                "plan",
                "query",
                "question",
                "result",
                "secret",
                "who",
                "words",
            ),
            _TEXT,
        ),
        "budget": rf'^(null|\{{"delta":{_F},("delta_kept":{_F},)?"epsilon":{_F},"kind":"[a-z]+",'
        rf'("order":{_F},)?"rho":{_F}\}})$',
        "cost": _PRICE,
        "format": '^"lastbit ledger [1-7]"$',
        "kind": '^"[a-z]+"$',
        "limit": rf'^(null|\{{"delta":{_N},"epsilon":{_N},'
        rf'"period":(null|"(day|week|month|year)"),"rho":{_N}\}})$',
        "neighbours": '^(null|"(add-remove|change-one) of (rows|units)")$',
        "previous": '^"[0-9a-f]{64}"$',
        "principal": _TEXT,
        "reservation": '^(null|"[0-9a-f]{64}")$',
        "role": '^(null|"(steward|analyst|auditor)")$',
        "sequence": "^[1-9][0-9]{0,17}$",
        "since": '^(null|"[0-9]{4}-[0-9]{2}-[0-9]{2}")$',
        "spent": rf'^(null|\{{"delta":{_F},"epsilon":{_F},(("moment"|"mu_squared"):{_F},)?'
        rf'"rho":{_F}\}})$',
        "used": _PRICE,
        "when": r'^"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}\+00:00"$',
    }
)
_IN: Mapping[str, int] = MappingProxyType(
    {
        "reservation": 2,
        "neighbours": 6,
        **dict.fromkeys(("limit", "principal", "role", "since", "used"), 5),
    }
)
_FIELDS = ", ".join(
    f"('{name}', '{_SHAPES[name]}', {_IN.get(name, 1)})" for name in sorted(_SHAPES)
)

_WELL_FORMED = rf"""
DECLARE
    kind text := {{s}}.field($1, 'kind');
    version text := right({{s}}.field($1, 'format'), 1);
    counted text := ($1 -> 'spent')::text;
    limits text := {{s}}.field($1 -> 'budget', 'kind');
    amounts text := concat($1 -> 'cost', $1 -> 'spent', $1 -> 'budget', $1 -> 'limit',
                           $1 -> 'used');
    epsilon text := {{s}}.field($1 -> 'budget', 'epsilon');
    delta text := {{s}}.field($1 -> 'budget', 'delta');
    kept text := {{s}}.field($1 -> 'budget', 'delta_kept');
    place text := {{s}}.field($1 -> 'budget', 'order');
    fits boolean;
BEGIN
    -- these fields in this order, each as it is written, and nothing else
    SELECT $1::text = '{{' || string_agg('"' || name || '":' || ($1 -> name)::text, ','
                                        ORDER BY name COLLATE "C") || '}}'
           AND bool_and(coalesce(($1 -> name)::text ~ shape, false)) INTO fits
    FROM (VALUES {_FIELDS}) AS fields (name, shape, needs)
    WHERE needs = 1 OR needs = 5 AND ($1 -> 'principal') IS NOT NULL
       OR needs = 2 AND kind IN ('reserved', 'drawn', 'settled', 'voided', 'withdrawn')
       OR needs = 6 AND version IN ('6', '7');
    IF fits IS NOT TRUE THEN RETURN false; END IF;
    -- fractions in lowest terms, of a length that is read
    IF EXISTS (SELECT FROM regexp_matches(amounts, '"([0-9]+)(?:/([0-9]+))?"', 'g') AS found (part)
               WHERE length(part[1]) > 4100 OR length(part[2]) > 4100 OR part[2] = '1'
                  OR gcd(part[1]::numeric, part[2]::numeric) <> 1)
    THEN RETURN false; END IF;
    -- one currency in a price, and in a plain sum; what is spent is counted as the budget says
    IF ($1 -> 'cost')::text ~ '"epsilon":"[1-9].*"rho":"[1-9]'
       OR counted ~ '"epsilon":"[1-9][0-9/]*","rho":"[1-9]'
       OR (counted ~ '"moment"') <> (limits IS NOT DISTINCT FROM 'filter')
       OR (counted ~ '"mu_squared"') <> (limits IS NOT DISTINCT FROM 'gaussian')
       OR ($1 -> 'principal')::text = 'null'
       OR ($1 -> 'neighbours')::text <> 'null' AND (counted = 'null'
                                                    OR ($1 -> 'account')::text = 'null')
       OR version <> (CASE WHEN kind = 'drawn' THEN '7'
                          WHEN kind = 'withdrawn' OR ($1 -> 'neighbours')::text <> 'null' THEN '6'
                          WHEN ($1 -> 'principal') IS NOT NULL THEN '5'
                          WHEN counted ~ '"mu_squared"' THEN '4' WHEN counted ~ '"moment"' THEN '3'
                          WHEN kind IN ('reserved', 'settled', 'voided') THEN '2' ELSE '1' END)
    THEN RETURN false; END IF;
    -- budgets that mean something
    fits := CASE limits
        WHEN 'pure' THEN epsilon <> '0' AND delta = '0'
        WHEN 'zcdp' THEN epsilon = '0' AND delta = '0'
        ELSE limits IS NULL OR limits IN ('approx', 'filter', 'gaussian')
             AND epsilon <> '0' AND delta <> '0' AND NOT {{s}}.at_most('1', '0', delta) END
        AND (limits IS NULL OR (limits = 'zcdp') = ({{s}}.field($1 -> 'budget', 'rho') <> '0'))
        AND (kept IS NOT NULL) = (limits IS NOT NULL AND limits IN ('filter', 'gaussian'))
        AND (place IS NOT NULL) = (limits IS NOT DISTINCT FROM 'filter')
        AND (kept IS NULL OR NOT {{s}}.at_most(delta, '0', kept)
             AND NOT {{s}}.at_most(
                 CASE limits WHEN 'filter' THEN '1000000000000' ELSE '1000000' END, '0', epsilon))
        AND (place IS NULL OR place <> '0'
             AND (SELECT max(part::numeric) FROM regexp_split_to_table(place, '/') AS part)
                 <= 1000000000000);
    IF ($1 -> 'principal') IS NULL THEN
        RETURN fits AND kind NOT IN ('principal', 'allowance');
    END IF;
    -- roles, allowances, and charges in a principal's name
    RETURN fits AND kind IN ('charge', 'reserved', 'principal', 'allowance')
        AND (kind = 'principal' OR ($1 -> 'role')::text = 'null')
        AND (kind <> 'principal' OR concat($1 -> 'account', amounts, $1 -> 'question')
                                    = repeat('null', 7))
        AND (($1 -> 'limit')::text = 'null') = (($1 -> 'used')::text = 'null')
        AND (($1 -> 'since')::text = 'null') = ({{s}}.field($1 -> 'limit', 'period') IS NULL)
        AND ($1 -> 'limit')::text !~ '"epsilon":null.*"rho":null';
END
"""

# what stands between two quotation marks is text, and may have any digits
_LONG = "".join(f"[0-9]{{{n}}}" for n in (250, 250, 250, MOST_DIGITS - 749))
_READABLE = rf"""
DECLARE
    outside text := '';
    record jsonb;
BEGIN
    IF octet_length($1) > {LONGEST_RECORD} OR octet_length($1) <> length($1)
       OR length($1) - length(replace($1, ',', '')) > {_MOST_PARTS} THEN RETURN false; END IF;
    IF $1 ~ '{_LONG}' THEN
        SELECT string_agg(part, ' ' ORDER BY i) INTO outside
            FROM unnest(string_to_array(replace(replace($1, '\\', ''), '\"', ''), '"'))
                WITH ORDINALITY AS parts (part, i) WHERE i % 2 = 1;
    END IF;
    record := {{s}}.read($1)::jsonb;  -- halves of letters and numbers beyond all are errors
    RETURN outside !~ '{_LONG}' AND jsonb_typeof(record) = 'object'
        AND NOT jsonb_path_exists(record, 'strict $.**{{{DEEPEST} to last}}');
END
"""
_CLOCK = "SELECT clock_timestamp()"

_ALLOWED = r"""
DECLARE
    kind text := {s}.field($1, 'kind');
    named text := {s}.field($1, 'principal');
    charged text := {s}.field($1, 'account');
    role text := {s}.role_of(named);
    decides boolean := {s}.role_of({s}.field($1, 'who')) = 'steward';
    already boolean := EXISTS (SELECT FROM {s}.entries AS e WHERE e.principal IS NOT NULL);
    started text;
    moment text;
    share json;
    day text;
    currency text;
    fits boolean;
BEGIN
    IF kind NOT IN ('charge', 'reserved', 'principal', 'allowance') THEN RETURN true; END IF;
    IF kind = 'principal' THEN
        RETURN CASE WHEN already THEN decides ELSE {s}.field($1, 'role') = 'steward' END;
    ELSIF kind = 'allowance' THEN
        RETURN decides AND (role = 'analyst' OR ($1 -> 'limit')::text = 'null');
    ELSIF NOT already OR role = 'steward' THEN
        RETURN (named IS NOT NULL) = already AND coalesce(($1 -> 'limit')::text, 'null') = 'null';
    ELSIF role IS DISTINCT FROM 'analyst' THEN
        RETURN false;
    END IF;
    SELECT {s}.read(e.text) INTO share FROM {s}.entries AS e
        WHERE e.principal = named AND e.account = charged AND e.sequence > (
            SELECT max(r.sequence) FROM {s}.entries AS r
            WHERE r.principal = named AND r.account IS NULL)
        ORDER BY e.sequence DESC LIMIT 1;
    started := {s}.field(share, 'since');
    fits := ($1 -> 'limit')::text <> 'null' AND ($1 -> 'limit')::text = (share -> 'limit')::text;
    -- by the server's clock, and by what the entry says of it
    FOREACH moment IN ARRAY ARRAY[$3, {s}.field($1, 'when')] LOOP
        IF $2 ~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{12}\+00:00$' THEN
            moment := greatest(moment, $2 COLLATE "C");
        END IF;
        day := greatest(started, to_char(date_trunc({s}.field($1 -> 'limit', 'period'),
            moment::timestamptz AT TIME ZONE 'UTC'), 'YYYY-MM-DD') COLLATE "C");
        fits := fits AND {s}.field($1, 'since') IS NOT DISTINCT FROM day;
    END LOOP;
    FOREACH currency IN ARRAY ARRAY['epsilon', 'delta', 'rho'] LOOP
        fits := fits AND {s}.adds(
            CASE WHEN started IS NOT DISTINCT FROM day
                 THEN {s}.field(share -> 'used', currency) ELSE '0' END,
            {s}.field($1 -> 'cost', currency), {s}.field($1 -> 'used', currency));
        IF {s}.field($1 -> 'cost', currency) <> '0' THEN
            fits := fits AND coalesce({s}.at_most({s}.field($1 -> 'used', currency), '0',
                {s}.field($1 -> 'limit', currency)), currency = 'delta');
        END IF;
    END LOOP;
    RETURN fits;
END
"""
_ROLE_OF = """
SELECT {s}.field({s}.read(e.text), 'role') FROM {s}.entries AS e
WHERE e.principal = $1 AND e.account IS NULL ORDER BY e.sequence DESC LIMIT 1
"""

# a half of a letter, without the other one beside it
_FIRST, _SECOND = r"\\ud[89ab][0-9a-f]{2}", r"\\ud[c-f][0-9a-f]{2}"
_HALVES = f"{_FIRST}(?!{_SECOND})|(?<!{_FIRST}){_SECOND}"
_ENTERED = (
    r"""
#variable_conflict use_column
DECLARE
    entry json := {s}.read(given_text);
    kind text := {s}.field(entry, 'kind');
    answered text := {s}.field(entry, 'reservation');
    named text := {s}.field(entry, 'principal');
    now timestamptz := {s}.clock();
    stated text := {s}.field(entry, 'neighbours');
    now_head {s}.head%ROWTYPE;
    paid {s}.entries%ROWTYPE;
    before json;
    draw json;
    limits text;
    currency text;
    fits boolean;
    steady boolean;
    price json;
    answer json;
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
       OR octet_length(given_text) > %LONGEST%
       OR given_record IS NOT NULL AND {s}.readable(given_record) IS NOT TRUE
       OR {s}.well_formed(entry) IS NOT TRUE
       OR replace(given_text, '\\', '') ~ '%HALVES%'
       OR strpos(regexp_replace(given_text, '"(who|words)":"([^"\\]|\\.)*"', '', 'g'),
                 '\u0000') > 0
       OR kind = 'reserved' AND given_question IS NULL
       OR {s}.field(entry, 'when')::timestamptz NOT BETWEEN now - interval '5 minutes' AND now
    THEN RAISE EXCEPTION 'an entry does not follow the last one' USING ERRCODE = 'LB001';
    END IF;
    SELECT {s}.read(e.text) INTO before FROM {s}.entries AS e
        WHERE e.account = given_account ORDER BY e.sequence DESC LIMIT 1;
    steady := coalesce((entry -> 'budget')::text = (before -> 'budget')::text, false)
        AND stated IS NOT DISTINCT FROM {s}.field(before, 'neighbours');
    limits := coalesce({s}.field(entry -> 'budget', 'kind'), 'none');
    fits := true;
    IF before IS NOT NULL AND kind IN ('charge', 'reserved', 'budget') THEN
        FOREACH currency IN ARRAY ARRAY['epsilon', 'delta', 'rho'] LOOP
            IF kind = 'budget' THEN
                fits := fits AND {s}.at_most({s}.field(before -> 'spent', currency), '0',
                    {s}.field(entry -> 'spent', currency));
            ELSE
                fits := fits AND {s}.adds({s}.field(before -> 'spent', currency),
                    {s}.field(entry -> 'cost', currency), {s}.field(entry -> 'spent', currency))
                    AND mod(%GRID%, coalesce(nullif(split_part(
                        {s}.field(entry -> 'cost', currency), '/', 2), ''), '1')::numeric) = 0;
            END IF;
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
    ELSIF kind = 'drawn' THEN
        SELECT * INTO paid FROM {s}.entries AS e WHERE e.hash = answered;
        fits := fits AND steady AND {s}.field({s}.read(paid.text), 'kind') = 'reserved'
            AND (paid.account, paid.question) IS NOT DISTINCT FROM (given_account, given_question)
            AND given_record IS NOT NULL
            AND NOT EXISTS (SELECT FROM {s}.entries AS e WHERE e.reservation = answered);
    ELSIF kind = 'withdrawn' THEN
        SELECT * INTO paid FROM {s}.entries AS e WHERE e.hash = answered;
        fits := fits AND steady AND given_record IS NULL AND paid.record IS NOT NULL
            AND (paid.account, paid.question) IS NOT DISTINCT FROM (given_account, given_question);
    ELSIF kind = 'note' THEN
        fits := fits AND given_record IS NULL AND (steady OR given_account IS NULL);
    ELSIF kind = 'budget' THEN
        fits := fits AND given_record IS NULL AND given_account IS NOT NULL
            AND (before IS NOT NULL OR (entry -> 'spent')::text !~ 'null|:"[1-9]')
            AND coalesce(stated = {s}.field(before, 'neighbours')
                         OR (before -> 'spent')::text !~ ':"[1-9]',
                         {s}.field(before, 'neighbours') IS NULL);
    ELSIF kind = 'allowance' THEN
        fits := fits AND given_record IS NULL AND steady;
    ELSIF kind = 'principal' THEN
        fits := fits AND given_record IS NULL;
    ELSIF kind NOT IN ('charge', 'reserved') THEN
        fits := false;
    END IF;
    -- a reservation has one draw, and the plan of that answers it
    IF kind IN ('drawn', 'settled') THEN
        SELECT {s}.read(e.text) INTO draw FROM {s}.entries AS e
            WHERE e.account = given_account AND e.question IS NOT DISTINCT FROM given_question
                AND e.text LIKE '%"kind":"drawn"%'
                AND {s}.field({s}.read(e.text), 'reservation') = answered LIMIT 1;
        fits := fits AND (draw IS NULL OR kind = 'settled'
            AND {s}.field(draw, 'plan') IS NOT DISTINCT FROM {s}.field(entry, 'plan'));
    END IF;
    -- a record may name its price and plan, which are those of its entry
    IF given_record IS NOT NULL THEN
        price := CASE kind WHEN 'settled' THEN {s}.read(paid.text) ELSE entry END -> 'cost';
        answer := {s}.read(given_record);
        fits := fits
            AND (answer -> 'cost' IS NULL OR (answer -> 'cost')::text = price::text)
            AND (answer -> 'plan' IS NULL OR (answer -> 'plan' -> 'cost')::text = price::text
                 AND (strpos(given_record, '\u0000') > 0
                      OR encode(sha256(convert_to((answer -> 'plan')::text, 'UTF8')), 'hex')
                         IS NOT DISTINCT FROM {s}.field(entry, 'plan')));
    END IF;
    fits := fits AND {s}.allowed(entry, (SELECT {s}.field({s}.read(e.text), 'when')
        FROM {s}.entries AS e WHERE e.sequence = now_head.last),
        to_char(now AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"+00:00"'));
    IF fits IS NOT TRUE THEN
        RAISE EXCEPTION 'an entry breaks the rules of its account' USING ERRCODE = 'LB001';
    END IF;
    IF NOT given_steward
       AND (kind IN ('budget', 'voided', 'principal', 'allowance', 'withdrawn')
            OR kind = 'note' AND (entry -> 'words')::text LIKE '"anchor of %') THEN
        RAISE EXCEPTION 'a steward decides this' USING ERRCODE = '42501';
    END IF;
    IF NOT given_steward AND kind IN ('charge', 'reserved')
       AND limits NOT IN ('none', 'pure', 'approx', 'zcdp') THEN
        RAISE EXCEPTION 'a filter''s sums are not checked here' USING ERRCODE = 'LB003';
    END IF;
    IF kind IN ('drawn', 'settled') THEN
        named := {s}.field({s}.read(paid.text), 'principal');
    END IF;
    IF NOT given_steward AND named <> session_user THEN
        RAISE EXCEPTION 'a charge in the name of somebody else' USING ERRCODE = 'LB002';
    END IF;
    INSERT INTO {s}.entries (sequence, account, question, text, hash, reservation, record,
        principal) VALUES (given_sequence, given_account, given_question, given_text, given_hash,
        CASE kind WHEN 'drawn' THEN NULL ELSE answered END, given_record,
        {s}.field(entry, 'principal'));
    UPDATE {s}.head SET last = given_sequence, hash = given_hash,
        version = greatest(version, right({s}.field(entry, 'format'), 1)::integer) WHERE one = 1;
END
""".replace("%LONGEST%", str(LONGEST_ENTRY))
    .replace("%HALVES%", _HALVES)
    .replace("%GRID%", str(GRID))
)


def _function(name: str, given: str, gives: str, language: str, body: str, how: str) -> str:
    return (
        f"CREATE OR REPLACE FUNCTION {{s}}.{name}({given}) RETURNS {gives} "
        f"LANGUAGE {language} {how} AS $lastbit${body}$lastbit$"
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
_FUNCTIONS = (
    _function("read", "text", "json", "sql", _READ, "IMMUTABLE"),
    _function("field", "json, text", "text", "sql", _FIELD, "IMMUTABLE"),
    _function("at_most", "text, text, text", "boolean", "sql", _AT_MOST, "IMMUTABLE"),
    _function("adds", "text, text, text", "boolean", "sql", _ADDS, "IMMUTABLE"),
    _function("well_formed", "json", "boolean", "plpgsql", _WELL_FORMED, f"IMMUTABLE {_SAFE}"),
    _function("readable", "text", "boolean", "plpgsql", _READABLE, f"IMMUTABLE {_SAFE}"),
    _function("clock", "", "timestamptz", "sql", _CLOCK, f"VOLATILE {_SAFE}"),
    _function("role_of", "text", "text", "sql", _ROLE_OF, "STABLE"),
    _function("allowed", "json, text, text", "boolean", "plpgsql", _ALLOWED, f"STABLE {_SAFE}"),
    _function("entered", _NAMED, "void", "plpgsql", _ENTERED, f"{_SAFE} SET {BY_INDEX[0]} = on"),
)
_OURS_ALONE = "REVOKE ALL ON ALL FUNCTIONS IN SCHEMA {s} FROM PUBLIC"
_PRINCIPALS = (
    'ALTER TABLE {s}.entries ADD COLUMN principal text COLLATE "C"',
    "CREATE INDEX entries_by_principal ON {s}.entries (principal, account, sequence) "
    "WHERE principal IS NOT NULL",
)
SCHEMA = (
    "CREATE TABLE {s}.head (one integer PRIMARY KEY CHECK (one = 1), layout integer NOT NULL, "
    'version integer NOT NULL, last bigint NOT NULL, hash text COLLATE "C" NOT NULL)',
    "CREATE TABLE {s}.secret (one integer PRIMARY KEY CHECK (one = 1), value bytea NOT NULL)",
    'CREATE TABLE {s}.entries (sequence bigint PRIMARY KEY, account text COLLATE "C", '
    'question text COLLATE "C", text text COLLATE "C" NOT NULL, '
    'hash text COLLATE "C" NOT NULL UNIQUE, '
    'reservation text COLLATE "C" UNIQUE REFERENCES {s}.entries (hash), record text COLLATE "C")',
    "CREATE INDEX entries_by_account ON {s}.entries (account, sequence)",
    *_PRINCIPALS,
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
    *_FUNCTIONS,
    _function(
        "locked", "", "bigint", "sql", "SELECT last FROM {s}.head WHERE one = 1 FOR UPDATE", _OWNERS
    ),
    _function("append", GIVEN, "void", "sql", _CALLED % "false", _OWNERS),
    _function("decide", GIVEN, "void", "sql", _CALLED % "true", _OWNERS),
    _function("secret_digest", "", "text", "sql", _DIGEST, _OWNERS),
    _OURS_ALONE,
    "GRANT USAGE ON SCHEMA {s} TO {steward}, {analyst}, {auditor}",
    "GRANT SELECT ON {s}.entries, {s}.head TO {steward}, {analyst}, {auditor}",
    "GRANT SELECT ON {s}.secret TO {steward}, {analyst}",
    "GRANT EXECUTE ON FUNCTION {s}.secret_digest() TO {steward}, {analyst}, {auditor}",
    f"GRANT EXECUTE ON FUNCTION {{s}}.locked(), {{s}}.append({GIVEN}) TO {{steward}}, {{analyst}}",
    f"GRANT EXECUTE ON FUNCTION {{s}}.decide({GIVEN}) TO {{steward}}",
)

UPGRADES: Mapping[int, tuple[str, ...]] = MappingProxyType(
    {
        1: _PRINCIPALS,
        2: ("DROP FUNCTION IF EXISTS {s}.allowed(json, text)", *_FUNCTIONS, _OURS_ALONE),
        3: (*_FUNCTIONS, _OURS_ALONE),
        4: (*_FUNCTIONS, _OURS_ALONE),
    }
)
"""By the layout that is there: what makes the next one of it. No entry is touched."""

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
UNION ALL SELECT concat_ws(' ', 'index', relname, indisunique, indisvalid, indisready, indkey,
       pg_get_expr(indpred, indrelid))
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
AS_MADE: Mapping[str, int] = MappingProxyType(
    {
        "da6a3dc2a1f84ee3e6fbb998e0389751a707486125b60adbc158d01d7daaf02d": 1,
        "bdb9f515b6fc0de241beb2c979be02c6f89fa31913da9a224bae229f908a524f": 2,
        "94105fd293c1252efef2a9d72f057a5ade3618ec8d7df7dbb83e32a779aa4ba4": 3,
        "38ed1cadd3c600b0a5082642f8cad558dfd4509966ea9f1b207fcbd75bbfa18d": 4,
        "8ff425e6be6466aade3d93e228b45fcd25bacdd8452dca60428db1c975afec34": LAYOUT,
    }
)
"""The layout, by the digest of what `LOOKED_AT` finds in it, whatever the schema's name."""


def filled(statement: str, names: Mapping[str, str]) -> str:
    """The statement for one schema and its roles."""
    for name, text in names.items():
        statement = statement.replace(f"{{{name}}}", text)
    return statement


def digest_of_lines(lines: Iterable[str], schema: str) -> str:
    """Of the definitions, whatever the name of the schema is."""
    text = "\n".join(lines).replace(f'"{schema}".', "{s}.")
    return hashlib.sha256(text.encode()).hexdigest()
