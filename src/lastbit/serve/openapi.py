"""The OpenAPI document, made of `ROUTES` and of the schemas here; what is sent is checked by them.

Law      a schema uses the keywords of `KEYWORDS` alone, and `problem_in` knows all of these as JSON
         Schema 2020-12 means them, so that a client and this server read one document alike.
         Objects that are sent have no other names than the schema's; money is exact text, since a
         JSON number would be somebody's float
Checked  tests/serve/test_openapi.py (against every keyword, and against jsonschema where it is)
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

import lastbit
from lastbit.serve.problems import MEDIA_TYPE
from lastbit.serve.routes import CALLS, RIGHTS, Route

Schema: TypeAlias = Mapping[str, Any]

KEYWORDS = frozenset(
    {"$ref", "type", "enum", "anyOf", "description", "pattern", "minLength", "maxLength"}
    | {"properties", "required", "additionalProperties", "maxProperties", "items", "maxItems"}
    | {"minimum", "maximum"}
)
MOST = 200
"""Of a list, in one answer."""
USUAL = 50
_NUMBER = r"^[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]{1,2})?$|^[0-9]+/[0-9]+$"
_LONGEST = 16 << 10
_LONGEST_NAME = 200


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _of(*kinds: str, **more: Any) -> Schema:
    """A value of one of these types."""
    return {"type": kinds[0] if len(kinds) == 1 else list(kinds), **more}


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def _object(required: Mapping[str, Any], optional: Mapping[str, Any] | None = None) -> Schema:
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
        "additionalProperties": False,
    }


def _open(required: Mapping[str, Any]) -> Schema:
    """What the ledger holds: versions of lastbit may add to it, and its own checker judges it."""
    return {"type": "object", "properties": dict(required), "required": list(required)}


def _list(of: Schema) -> Schema:
    return {"type": "array", "items": of}


def _page(name: str, of: Schema, before: Schema) -> Schema:
    """A part of a list, the newest first; `before` asks for the next part, null: there is none."""
    return _object({name: _list(of), "before": before})


def _text(description: str = "", *, most: int = _LONGEST_NAME, null: bool = False) -> Schema:
    kind = ["string", "null"] if null else "string"
    words = {"description": description} if description else {}
    return {"type": kind, "minLength": 1, "maxLength": most, **words}


_ANY = _of("string")
_ANY_OR_NULL = _of("string", "null")
_WHOLE = _of("integer", minimum=1)
_WHOLE_OR_NULL = _of("integer", "null", minimum=1)
_TRUTH = _of("boolean")
_TIME = _of("string", description="RFC 3339, in UTC")
_SECONDS_OR_NULL = _of("number", "null", minimum=0)
_SPELLED = MappingProxyType(
    {"pattern": _NUMBER, "maxLength": 60, "description": 'exact: "1", "0.5", "1/3"'}
)
_EXACT = _of("string", **_SPELLED)
_EXACT_OR_NULL = _of("string", "null", **_SPELLED)
_BY_NAME = _of("object", additionalProperties=_EXACT, maxProperties=100)
_ROLE = _of("string", enum=sorted(RIGHTS))
_RIGHT = _of("string", enum=sorted(RIGHTS["steward"]))
_COST = _object({"epsilon": _ANY, "delta": _ANY, "rho": _ANY})
_COST_OR_NULL = _or_null(_COST)
_SOME = _or_null(_of("object"))
_ROWS = _list(_list(_ANY))
_COLUMN = _object(
    {
        "name": _ANY,
        "type": _ANY,
        "bounds": {"type": ["array", "null"], "items": _ANY},
        "step": _ANY_OR_NULL,
        "keys": {
            "type": ["array", "null"],
            "items": {"type": ["string", "number", "boolean", "null"]},
        },
        "nullable": _TRUTH,
    }
)
_LIMIT: Mapping[str, Schema] = MappingProxyType(
    {
        "epsilon": _EXACT_OR_NULL,
        "delta": _EXACT_OR_NULL,
        "rho": _EXACT_OR_NULL,
        "period": _of("string", "null", enum=["day", "week", "month", "year", None]),
    }
)
_TOKEN: Mapping[str, Schema] = MappingProxyType(
    {
        "id": _ANY,
        "name": _ANY,
        "made": _TIME,
        "expires": _TIME,
        "rights": _list(_RIGHT),
        "tables": _of("array", "null", items=_ANY),
        "used": _ANY_OR_NULL,
        "revoked": _ANY_OR_NULL,
    }
)

SCHEMAS: Mapping[str, Schema] = MappingProxyType(
    {
        "Problem": _open({"type": _ANY, "title": _ANY, "status": _WHOLE, "detail": _ANY}),
        "Question": _object(
            {"sql": _text("one SELECT", most=_LONGEST)},
            {
                "epsilon": _EXACT_OR_NULL,
                "delta": _EXACT_OR_NULL,
                "rho": _EXACT_OR_NULL,
                "within": {
                    "anyOf": [_EXACT_OR_NULL, _BY_NAME],
                    "description": "instead of a price: the least by which every ± is at most this",
                },
                "weights": {
                    "anyOf": [{"type": ["string", "null"], "enum": ["balanced", None]}, _BY_NAME],
                    "description": "how the price is shared out among the columns",
                },
                "fresh": {**_TRUTH, "description": "pay for new noise though one is recorded"},
            },
        ),
        "Tables": _object({"tables": _list(_ref("TableLine"))}),
        "TableLine": _object({"name": _ANY, "account": _ANY, "unit": _ANY_OR_NULL}),
        "Table": _object(
            {
                "name": _ANY,
                "account": _ANY,
                "unit": _ANY_OR_NULL,
                "max_rows": _WHOLE,
                "max_groups": _WHOLE_OR_NULL,
                "max_groups_assumed": _TRUTH,
                "neighbours": _ANY,
                "columns": _list(_COLUMN),
                "budget": {
                    "anyOf": [
                        _object(
                            {
                                "kind": _ANY,
                                **dict.fromkeys(
                                    ("epsilon", "delta", "rho", "order", "delta_kept"), _ANY_OR_NULL
                                ),
                            }
                        ),
                        {"type": "null"},
                    ]
                },
                "public": _list(
                    _object(
                        {"name": _ANY, "columns": {"type": "object", "additionalProperties": _ANY}}
                    )
                ),
                "private": _list(
                    _object(
                        {"name": _ANY, "unit": _ANY, "max_rows": _WHOLE, "columns": _list(_COLUMN)}
                    )
                ),
                "slot": {
                    **_SECONDS_OR_NULL,
                    "description": "seconds after which answers appear; null while it is measured",
                },
                "examples": _list(
                    _object(
                        {
                            "sql": _ANY,
                            "words": _ANY,
                            **dict.fromkeys(("epsilon", "delta", "rho"), _ANY_OR_NULL),
                        }
                    )
                ),
            }
        ),
        "Preview": _object(
            {
                "table": _ANY,
                "title": _ANY,
                "cost": _COST,
                "guarantee": _ANY,
                "facts": _ROWS,
                "columns": _ROWS,
                "prices": _ROWS,
                "recorded": _WHOLE_OR_NULL,
                "refused": _ANY_OR_NULL,
                "left": {
                    "anyOf": [
                        {"type": "object", "additionalProperties": _ANY_OR_NULL},
                        {"type": "null"},
                    ]
                },
            }
        ),
        "Job": _object(
            {
                "id": _ANY,
                "table": _ANY,
                "principal": _ANY,
                "question": {"type": "object"},
                "submitted": _TIME,
                "state": {
                    "type": "string",
                    "enum": ["waiting", "running", "answered", "no answer", "refused"],
                },
                "cost": _COST_OR_NULL,
                "due": {**_ANY_OR_NULL, "description": "when to look next: the end of a slot"},
                "slot": _SECONDS_OR_NULL,
                "slots": _WHOLE_OR_NULL,
                "entry": {**_WHOLE_OR_NULL, "description": "the number of the answer"},
                "reason": _ANY_OR_NULL,
            }
        ),
        "Jobs": _page("jobs", _ref("Job"), _ANY_OR_NULL),
        "Accepted": _object({"table": _ANY, "accepted": _TRUTH}),
        "AnswerLine": _object(
            {
                "entry": _WHOLE,
                "table": _ANY_OR_NULL,
                "title": _ANY,
                "sql": _ANY_OR_NULL,
                "cost": _COST_OR_NULL,
                "when": _ANY,
                "principal": _ANY_OR_NULL,
            }
        ),
        "Answers": _page("answers", _ref("AnswerLine"), _WHOLE_OR_NULL),
        "Answer": _open({"table": _ANY, "cost": _COST, "guarantee": _ANY, "notes": _list(_ANY)}),
        "Certificate": _open(
            {
                "lastbit": _ANY,
                "version": _WHOLE,
                "kind": _ANY,
                "claim": {"type": "object"},
                "assumptions": _list(_ANY),
                "body": {"type": "object"},
                "digest": _ANY,
            }
        ),
        "Account": _object(
            {
                "account": _ANY,
                "kind": _ANY_OR_NULL,
                "budget": _COST_OR_NULL,
                "spent": {"type": "object"},
                "left": _SOME,
            },
            {"filter": {"type": "object"}},
        ),
        "Budget": _object(
            {"accounts": _list(_ref("Account")), "allowances": _list(_ref("Allowance"))}
        ),
        "Entry": _open({"sequence": _WHOLE, "when": _ANY, "kind": _ANY, "hash": _ANY}),
        "Entries": _page("entries", _ref("Entry"), _WHOLE_OR_NULL),
        "Role": _object({"role": _ROLE}),
        "User": _object(
            {
                "name": _ANY,
                "role": {"type": ["string", "null"], "enum": [*sorted(RIGHTS), None]},
                "active": _TRUTH,
            }
        ),
        "Users": _object({"users": _list(_ref("User"))}),
        "Link": _object(
            {"address": {**_ANY, "description": "works once; whoever has it signs in"}}
        ),
        "Limit": _object({}, _LIMIT),
        "Allowance": _object(
            {
                "account": _ANY,
                "principal": _ANY,
                "limit": _object(dict.fromkeys((*_LIMIT,), _ANY_OR_NULL)),
                "used": _COST,
                "left": _object(dict.fromkeys((*_LIMIT,), _ANY_OR_NULL)),
                "since": _ANY_OR_NULL,
            }
        ),
        "Allowances": _object({"allowances": _list(_ref("Allowance"))}),
        "TokenWish": _object(
            {
                "name": _text("what it is for"),
                "days": {"type": "integer", "minimum": 1, "maximum": 366},
            },
            {
                "rights": {"type": ["array", "null"], "items": _RIGHT, "maxItems": 20},
                "tables": {"type": ["array", "null"], "items": _text(), "maxItems": 100},
            },
        ),
        "TokenLine": _object(_TOKEN),
        "Token": _object({"token": {**_ANY, "description": "shown this once"}, **_TOKEN}),
        "Tokens": _object({"tokens": _list(_ref("TokenLine"))}),
        "AuditLine": _object(
            {
                "sequence": _WHOLE,
                "at": _TIME,
                "principal": _ANY_OR_NULL,
                "action": _ANY,
                "subject": _ANY_OR_NULL,
                "words": _ANY_OR_NULL,
            }
        ),
        "Audit": _page("lines", _ref("AuditLine"), _WHOLE_OR_NULL),
    }
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
_LONGEST_WHERE = 60


def problem_in(value: Any, schema: Schema, where: str = "the body") -> str | None:
    """What is wrong with a value, and where; None if it is as the schema says. Quotes no value.

    >>> problem_in({"sql": "SELECT 1", "epsilon": 1}, SCHEMAS["Question"])
    'epsilon is not a string or null'
    >>> problem_in({"sql": "SELECT 1", "epsilon": "1"}, SCHEMAS["Question"])
    """
    if "$ref" in schema:
        return problem_in(value, SCHEMAS[schema["$ref"].rpartition("/")[2]], where)
    if "anyOf" in schema:
        found = [problem_in(value, one, where) for one in schema["anyOf"]]
        if all(problem is not None for problem in found):
            return found[0] if len(found) == 1 else f"{where} has none of the forms it may have"
    kinds = schema.get("type", ())
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(_is_of(value, kind) for kind in kinds):
        return f"{where} is not {'an' if kinds[0][0] in 'aeio' else 'a'} {' or '.join(kinds)}"
    if "enum" in schema and not any(value is one or value == one for one in schema["enum"]):
        return f"{where} is not one of {', '.join(str(one) for one in schema['enum'])}"
    if isinstance(value, str):
        return _problem_in_text(value, schema, where)
    if isinstance(value, dict):
        return _problem_in_object(value, schema, where)
    if isinstance(value, list):
        if len(value) > schema.get("maxItems", len(value)):
            return f"{where} has more than {schema['maxItems']} items"
        inner = (problem_in(one, schema.get("items", {}), f"an item of {where}") for one in value)
        return next((problem for problem in inner if problem is not None), None)
    if isinstance(value, int | float) and not isinstance(value, bool):
        if value < schema.get("minimum", value):
            return f"{where} is less than {schema['minimum']}"
        if value > schema.get("maximum", value):
            return f"{where} is more than {schema['maximum']}"
    return None


def _is_of(value: Any, kind: str) -> bool:
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()  # 1.0 is one, says JSON Schema
    return isinstance(value, _TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))


def _problem_in_text(value: str, schema: Schema, where: str) -> str | None:
    if len(value) < schema.get("minLength", 0):
        return f"{where} is empty"
    if len(value) > schema.get("maxLength", len(value)):
        return f"{where} has more than {schema['maxLength']} letters"
    if "pattern" in schema and not re.fullmatch(schema["pattern"], value, re.ASCII):
        return f'{where} is not an exact number: write "1", "0.5", "1/3" or "1e-9"'
    return None


def _problem_in_object(value: dict[str, Any], schema: Schema, where: str) -> str | None:
    known = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            return f"{name} is missing in {where}"
    others = schema.get("additionalProperties", {})
    if len(value) > schema.get("maxProperties", len(value)):
        return f"{where} has more than {schema['maxProperties']} names"
    for name, part in value.items():
        if name not in known and others is False:
            return f"{where} has a name that is not known; use {', '.join(known)}"
        called = name[:_LONGEST_WHERE] if name in known else f"a part of {where}"
        problem = problem_in(part, known.get(name, others), called)
        if problem is not None:
            return problem
    return None


# ---------------------------------------------------------------- the document

_PARAMETERS: Mapping[str, Schema] = MappingProxyType(
    {
        "entry": {"type": "integer", "minimum": 1},
        "job": _text("as its Location says"),
        "table": _text("as the card calls it"),
        "account": _text("as the ledger calls it"),
        "name": _text("of a principal"),
        "token": _text("its id, not the token itself"),
    }
)
PAGED: Mapping[str, Schema] = MappingProxyType(
    {"jobs": _text(), "answers": _WHOLE, "ledger": _WHOLE, "audit": _WHOLE}
)
"""Lists that grow, by handler: what `before` is there."""
KEY = _of(
    "string",
    pattern="^[A-Za-z0-9_.:-]{1,128}$",
    description="chosen by the client: the same key and question are one job and one charge",
)
_FILES: Mapping[str, str] = MappingProxyType({"answer_csv": "text/csv"})


def document() -> dict[str, Any]:
    """The whole document, OpenAPI 3.1."""
    paths: dict[str, dict[str, Any]] = {}
    for route in CALLS:
        paths.setdefault(_path(route), {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "lastbit",
            "version": lastbit.__version__,
            "description": "Private answers about tables that one does not have. Money is exact "
            "text. Errors are problem documents (RFC 9457), with the remedy in detail.",
        },
        "paths": paths,
        "security": [{"bearer": []}],
        "components": {
            "schemas": {name: dict(schema) for name, schema in SCHEMAS.items()},
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }


def _path(route: Route) -> str:
    return re.sub(r":[a-z]+\}", "}", route.path)


def _operation(route: Route) -> dict[str, Any]:
    found: dict[str, Any] = {
        "operationId": route.handler,
        "summary": route.summary,
        "description": f"Needs the right {route.right}." if route.right != "open" else "",
        "parameters": _parameters(route),
        "responses": {str(route.status): _good(route), **_problems(route)},
    }
    if route.right == "open":
        found["security"] = []
    if route.body is not None:
        content = {"application/json": {"schema": _ref(route.body)}}
        found["requestBody"] = {"required": True, "content": content}
    return found


def _parameters(route: Route) -> list[dict[str, Any]]:
    found = [
        {"name": name, "in": "path", "required": True, "schema": _PARAMETERS[name]}
        for name in re.findall(r"\{([a-z]+)", route.path)
    ]
    if route.handler in PAGED:
        last = {"type": "integer", "minimum": 1, "maximum": MOST}
        found.append({"name": "last", "in": "query", "required": False, "schema": last})
        before = PAGED[route.handler]
        found.append({"name": "before", "in": "query", "required": False, "schema": before})
    if route.handler == "asked":
        key = {"name": "Idempotency-Key", "in": "header", "required": False, "schema": KEY}
        found.append(key)
    return found


def _good(route: Route) -> dict[str, Any]:
    found: dict[str, Any] = {"description": route.summary}
    if route.gives is not None:
        found["content"] = {"application/json": {"schema": _ref(route.gives)}}
    elif route.handler in _FILES:
        found["content"] = {_FILES[route.handler]: {"schema": {"type": "string"}}}
    elif route.status != 204:
        found["content"] = {"application/json": {"schema": {"type": "object"}}}
    if route.status == 202:
        found["headers"] = {
            "Location": {"description": "the job", "schema": {"type": "string"}},
            "Retry-After": {
                "description": "seconds to the end of a slot",
                "schema": {"type": "integer"},
            },
        }
    return found


def _problems(route: Route) -> dict[str, Any]:
    """Which refusals a route may answer with, and why."""
    said = {"429": "Too many requests", "default": "Refused, or failed"}
    if route.right != "open":
        said |= {"401": "No token, or one that is not valid", "403": "A right is missing"}
    if "{" in route.path:
        said["404"] = "Not there, or not for you"
    if route.body is not None:
        said |= {"400": "Not JSON", "413": "Too long", "415": "Not application/json"}
    if route.body is not None or route.handler in PAGED:
        said["422"] = "Understood, and refused; detail says why, and the way out"
    if route.handler == "asked":
        said |= {
            "409": "The data have changed, and are not accepted",
            "503": "Too many questions wait, or it is stopping",
        }
    content = {MEDIA_TYPE: {"schema": _ref("Problem")}}
    return {code: {"description": words, "content": content} for code, words in said.items()}
