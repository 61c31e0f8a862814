"""What is sent and given, as JSON Schemas; what is sent is checked by them.

Law      a schema uses the keywords of `KEYWORDS` alone, and `problem_in` knows all of these as JSON
         Schema 2020-12 means them, so that a client and this server read one document alike.
         Objects that are sent have no other names than the schema's; money is exact text, since a
         JSON number would be somebody's float
Checked  tests/serve/test_openapi.py (against every keyword, and against jsonschema where it is)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType, NoneType
from typing import Any, TypeAlias, get_args, get_origin, get_type_hints

from lastbit.ledger import PERIODS
from lastbit.serve.catalogue import AnswerLine, Example
from lastbit.serve.questions import Job, Preview, Question, Refusal
from lastbit.serve.routes import RIGHTS

Schema: TypeAlias = Mapping[str, Any]

KEYWORDS = frozenset(
    {"$ref", "type", "enum", "anyOf", "description", "pattern", "minLength", "maxLength"}
    | {"properties", "required", "additionalProperties", "maxProperties", "items", "maxItems"}
    | {"minimum", "maximum"}
)
MOST = 200
"""Of a list, in one answer."""
USUAL = 50
LONGEST_SQL = 16 << 10
_NUMBER = r"^[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]{1,2})?$|^[0-9]+/[0-9]+$"
_LONGEST_NAME = 200

# ---------------------------------------------------------------- how schemas are written


def ref(name: str) -> Schema:
    """The schema of this name."""
    return {"$ref": f"#/components/schemas/{name}"}


def _of(*kinds: str, **more: Any) -> Schema:
    """A value of one of these types."""
    return {"type": kinds[0] if len(kinds) == 1 else list(kinds), **more}


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def _object(required: Mapping[str, Any], optional: Mapping[str, Any] | None = None) -> Schema:
    known = {**required, **(optional or {})}
    return _of("object", properties=known, required=list(required), additionalProperties=False)


def _open(required: Mapping[str, Any]) -> Schema:
    """What the ledger holds: versions of lastbit may add to it, and its own checker judges it."""
    return _of("object", properties=dict(required), required=list(required))


def _texts(names: str, *, or_null: bool = False) -> dict[str, Schema]:
    """Any texts, under these names."""
    return dict.fromkeys(names.split(), _of_type(str | None if or_null else str))


def _list(of: Schema) -> Schema:
    return _of("array", items=of)


def _page(name: str, of: Schema, before: Schema) -> Schema:
    """A part of a list, the newest first; `before` asks for the next part, null: there is none."""
    return _object({name: _list(of), "before": before})


def text_of(description: str = "", *, most: int = _LONGEST_NAME) -> Schema:
    """A text that says something, and not too much."""
    words = {"description": description} if description else {}
    return _of("string", minLength=1, maxLength=most, **words)


_PLAIN: Mapping[type, Schema] = MappingProxyType(
    {
        str: _of("string"),
        int: _of("integer", minimum=1),
        float: _of("number", minimum=0),
        bool: _of("boolean"),
    }
)


def _of_type(kind: Any) -> Schema:
    """A text, a number from 1, seconds, a truth; one of some words, a list of these, or none."""
    parts = get_args(kind)
    if get_origin(kind) is tuple:
        return _list(_of_type(parts[0]))
    if NoneType in parts:
        schema = _of_type(parts[0])
        return {**schema, "type": [schema["type"], "null"]}
    return _of("string", enum=list(parts)) if parts else _PLAIN[kind]


def _record(kind: type, **others: Schema) -> Schema:
    """The fields of a dataclass, all of which are given; `others` are not as their types say."""
    fields = get_type_hints(kind)
    return _object({name: others.get(name) or _of_type(fields[name]) for name in fields})


# ---------------------------------------------------------------- what is sent and given

LONGEST_NUMBER = 60
_ANY, _WHOLE, _TRUTH = _PLAIN[str], _PLAIN[int], _PLAIN[bool]
_ANY_OR_NULL, _WHOLE_OR_NULL, _SECONDS_OR_NULL = map(
    _of_type, (str | None, int | None, float | None)
)
_TIME = _of("string", description="RFC 3339, in UTC")
_SPELLED = MappingProxyType(
    {"pattern": _NUMBER, "maxLength": LONGEST_NUMBER, "description": 'exact: "1", "0.5", "1/3"'}
)
_EXACT = _of("string", **_SPELLED)
_EXACT_OR_NULL = _of("string", "null", **_SPELLED)
_BY_NAME = _of("object", additionalProperties=_EXACT, maxProperties=100)
_PRICES = ("epsilon", "delta", "rho")
_RIGHT = _of("string", enum=sorted(RIGHTS["steward"]))
_COST = _object(_texts("epsilon delta rho"))
_COST_OR_NULL = _or_null(_COST)
_COLUMN = _object(
    {
        **_texts("name type"),
        "bounds": _of("array", "null", items=_ANY),
        "step": _ANY_OR_NULL,
        "keys": _of("array", "null", items=_of("string", "number", "boolean", "null")),
        "nullable": _TRUTH,
        "description": _ANY_OR_NULL,
    }
)
_LIMIT: Mapping[str, Schema] = MappingProxyType(
    dict.fromkeys(_PRICES, _EXACT_OR_NULL)
    | {"period": _of("string", "null", enum=[*PERIODS, None])}
)
_AMOUNTS = _object(dict.fromkeys(_LIMIT, _ANY_OR_NULL))
_TOKEN: Mapping[str, Schema] = MappingProxyType(
    {
        **_texts("id name"),
        "made": _TIME,
        "expires": _TIME,
        "rights": _list(_RIGHT),
        "tables": _of("array", "null", items=_ANY),
        **_texts("used revoked", or_null=True),
    }
)
_TABLE_LINE = MappingProxyType({"name": _ANY, "account": _ANY, "unit": _ANY_OR_NULL})

SCHEMAS: Mapping[str, Schema] = MappingProxyType(
    {
        "Problem": _open({**_texts("type title detail"), "status": _WHOLE}),
        "Question": _object(
            {"sql": text_of("one SELECT", most=LONGEST_SQL)},
            {
                **dict.fromkeys(_PRICES, _EXACT_OR_NULL),
                "within": {
                    "anyOf": [_EXACT_OR_NULL, _BY_NAME],
                    "description": "instead of a price: the least by which every ± is at most this",
                },
                "weights": {
                    "anyOf": [_of("string", "null", enum=["balanced", None]), _BY_NAME],
                    "description": "how the price is shared out among the columns",
                },
                "fresh": {**_TRUTH, "description": "pay for new noise though one is recorded"},
            },
        ),
        "Tables": _object({"tables": _list(ref("TableLine"))}),
        "TableLine": _object(_TABLE_LINE),
        "Table": _object(
            {
                **_TABLE_LINE,
                "max_rows": {**_WHOLE_OR_NULL, "description": "null: a profile chooses it"},
                "max_groups": _WHOLE_OR_NULL,
                "max_groups_assumed": _TRUTH,
                "neighbours": _ANY,
                "columns": _list(_COLUMN),
                "budget": _or_null(
                    _object(
                        {"kind": _ANY, **_texts("epsilon delta rho order delta_kept", or_null=True)}
                    )
                ),
                "public": _list(
                    _object({"name": _ANY, "columns": _of("object", additionalProperties=_ANY)})
                ),
                "private": _list(
                    _object({**_texts("name unit"), "max_rows": _WHOLE, "columns": _list(_COLUMN)})
                ),
                "slot": {
                    **_SECONDS_OR_NULL,
                    "description": "seconds after which answers appear; null while it is measured",
                },
                "examples": _list(_record(Example)),
            },
            {
                "through": _list(
                    _object(
                        {
                            "name": _ANY,
                            "on": _list(_list(_ANY)),
                            "columns": _of("object", additionalProperties=_ANY),
                            "max_rows": _WHOLE,
                        }
                    )
                )
            },
        ),
        "Preview": _record(
            Preview,
            cost=_COST,
            left=_or_null(_of("object", additionalProperties=_ANY_OR_NULL)),
        ),
        "Job": _record(
            Job,
            question=_of("object"),
            submitted=_TIME,
            cost=_COST_OR_NULL,
            due={**_ANY_OR_NULL, "description": "when to look next: the end of a slot"},
            entry={**_WHOLE_OR_NULL, "description": "the number of the answer"},
        ),
        "Jobs": _page("jobs", ref("Job"), _ANY_OR_NULL),
        "Accepted": _object({"table": _ANY, "accepted": _TRUTH}),
        "AnswerLine": _record(AnswerLine, cost=_COST_OR_NULL),
        "Answers": _page("answers", ref("AnswerLine"), _WHOLE_OR_NULL),
        "Answer": _open({"table": _ANY, "cost": _COST, "guarantee": _ANY, "notes": _list(_ANY)}),
        "Certificate": _open(
            {
                **_texts("kind digest lastbit"),
                "version": _WHOLE,
                "claim": _of("object"),
                "assumptions": _list(_ANY),
                "body": _of("object"),
            }
        ),
        "Account": _object(
            {
                "account": _ANY,
                "kind": _ANY_OR_NULL,
                "budget": _COST_OR_NULL,
                "spent": _of("object"),
                "left": _or_null(_of("object")),
            },
            {"filter": _of("object")},
        ),
        "Budget": _object(
            {"accounts": _list(ref("Account")), "allowances": _list(ref("Allowance"))}
        ),
        "Entry": _open({"sequence": _WHOLE, **_texts("when kind hash")}),
        "Entries": _page("entries", ref("Entry"), _WHOLE_OR_NULL),
        "Role": _object({"role": _of("string", enum=sorted(RIGHTS))}),
        "User": _object(
            {
                "name": _ANY,
                "role": _of("string", "null", enum=[*sorted(RIGHTS), None]),
                "active": _TRUTH,
            }
        ),
        "Users": _object({"users": _list(ref("User"))}),
        "Link": _object({"address": {**_ANY, "description": "works once, for anyone who has it"}}),
        "Limit": _object({}, _LIMIT),
        "Allowance": _object(
            {
                **_texts("account principal"),
                "limit": _AMOUNTS,
                "used": _COST,
                "left": _AMOUNTS,
                "since": _ANY_OR_NULL,
            }
        ),
        "Allowances": _object({"allowances": _list(ref("Allowance"))}),
        "TokenWish": _object(
            {"name": text_of("what it is for"), "days": _of("integer", minimum=1, maximum=366)},
            {
                "rights": _of("array", "null", items=_RIGHT, maxItems=20),
                "tables": _of("array", "null", items=text_of(), maxItems=100),
            },
        ),
        "TokenLine": _object(_TOKEN),
        "Token": _object({"token": {**_ANY, "description": "shown this once"}, **_TOKEN}),
        "Tokens": _object({"tokens": _list(ref("TokenLine"))}),
        "AuditLine": _object(
            {
                "sequence": _WHOLE,
                "at": _TIME,
                "action": _ANY,
                **_texts("principal subject words", or_null=True),
            }
        ),
        "Audit": _page("lines", ref("AuditLine"), _WHOLE_OR_NULL),
    }
)
PAGED: Mapping[str, Schema] = MappingProxyType(
    {"jobs": text_of(), "answers": _WHOLE, "ledger": _WHOLE, "audit": _WHOLE}
)
"""Lists that grow, by handler: what `before` is there."""
KEY = _of(
    "string",
    pattern="^[A-Za-z0-9_.:-]{1,128}$",
    description="chosen by the client: the same key and question are one job and one charge",
)

# ---------------------------------------------------------------- what is sent, checked

_TYPES: Mapping[str, tuple[type, ...]] = MappingProxyType(
    {
        "object": (dict,),
        "array": (list,),
        "string": (str,),
        "integer": (int,),
        "number": (int, float),
        "boolean": (bool,),
        "null": (type(None),),
    }
)
_MOST: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "maxLength": ("string", "has more than {} letters"),
        "maxItems": ("array", "has more than {} items"),
        "maxProperties": ("object", "has more than {} names"),
        "maximum": ("number", "is more than {}"),
    }
)
_LEAST: Mapping[str, tuple[str, str]] = MappingProxyType(
    {"minLength": ("string", "is empty"), "minimum": ("number", "is less than {}")}
)
_LONGEST_WHERE = 60


def problem_in(value: Any, schema: Schema, where: str = "the body") -> str | None:
    """What is wrong with a value, and where; None if it is as the schema says. Quotes no value.

    >>> problem_in({"sql": "SELECT 1", "epsilon": 1}, SCHEMAS["Question"])
    'epsilon is not a string or null'
    >>> problem_in({"sql": "SELECT 1", "epsilon": "1"}, SCHEMAS["Question"])
    """
    return next(_problems_in(value, schema, where), None)


def _problems_in(value: Any, schema: Schema, where: str) -> Iterator[str]:
    if "$ref" in schema:
        yield from _problems_in(value, SCHEMAS[schema["$ref"].rpartition("/")[2]], where)
    if "anyOf" in schema and all(problem_in(value, one) is not None for one in schema["anyOf"]):
        yield f"{where} has none of the forms it may have"
    kinds = schema.get("type", ())
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(_is_of(value, kind) for kind in kinds):
        yield f"{where} is not {'an' if kinds[0][0] in 'aeio' else 'a'} {' or '.join(kinds)}"
    if "enum" in schema and not any(value is one or value == one for one in schema["enum"]):
        yield f"{where} is not one of {', '.join(str(one) for one in schema['enum'])}"
    size = len(value) if isinstance(value, str | list | dict) else value
    for bounds, sign in ((_MOST, 1), (_LEAST, -1)):
        for keyword, (kind, words) in bounds.items():
            if keyword in schema and _is_of(value, kind) and sign * (size - schema[keyword]) > 0:
                yield f"{where} {words.format(schema[keyword])}"
    pattern = schema.get("pattern") if isinstance(value, str) else None
    if pattern is not None and not re.fullmatch(pattern, value, re.ASCII):
        yield f'{where} is not an exact number: write "1", "0.5", "1/3" or "1e-9"'
    if isinstance(value, dict):
        yield from _problems_in_object(value, schema, where)
    if isinstance(value, list):
        for one in value:
            yield from _problems_in(one, schema.get("items", {}), f"an item of {where}")


def _is_of(value: Any, kind: str) -> bool:
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()  # 1.0 is one, says JSON Schema
    return isinstance(value, _TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))


def _problems_in_object(value: dict[str, Any], schema: Schema, where: str) -> Iterator[str]:
    known, others = schema.get("properties", {}), schema.get("additionalProperties", {})
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{name} is missing in {where}"
    for name, part in value.items():
        if name not in known and others is False:
            yield f"{where} has a name that is not known; use {', '.join(known)}"
        called = name[:_LONGEST_WHERE] if name in known else f"a part of {where}"
        yield from _problems_in(part, known.get(name, others or {}), called)


def question_of(data: object, *, most_sql: int = LONGEST_SQL) -> Question:
    """The question that this JSON is; anything that is not one is refused."""
    problem = problem_in(data, SCHEMAS["Question"], "the question") or _problem_beyond(
        data, most_sql
    )
    if problem is not None:
        detail = f"{problem}; send one SELECT, and epsilon, rho or within as exact text"
        raise Refusal(422, "Not a question", detail, "malformed")
    assert isinstance(data, dict)
    return Question(**data)


def _problem_beyond(data: Any, most_sql: int) -> str | None:
    """What no keyword says."""
    sql, named = data["sql"], [data.get("within"), data.get("weights")]
    texts = (sql, *(column for names in named if isinstance(names, dict) for column in names))
    if not sql.strip() or any("\ud800" <= letter <= "\udfff" for letter in "".join(texts)):
        return "sql is missing, or a text is none"
    if len(sql.encode()) > most_sql:
        return f"sql is longer than {most_sql} bytes"
    if {} in named:
        return "within or weights names no column"
    if all(data.get(name) is None for name in ("epsilon", "rho", "within")):
        return "the question has no price"
    return None
