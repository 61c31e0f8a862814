"""The OpenAPI document, made of `CALLS`, their handlers' first lines, and `SCHEMAS`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any

import lastbit
from lastbit.serve.problems import MEDIA_TYPE
from lastbit.serve.routes import CALLS, Route
from lastbit.serve.schemas import KEY, MOST, PAGED, SCHEMAS, Schema, ref, text_of

_PARAMETERS: Mapping[str, Schema] = MappingProxyType(
    {
        "entry": {"type": "integer", "minimum": 1},
        "job": text_of("as its Location says"),
        "table": text_of("as the card calls it"),
        "account": text_of("as the ledger calls it"),
        "name": text_of("of a principal"),
        "token": text_of("its id, not the token itself"),
    }
)
_FILES: Mapping[str, str] = MappingProxyType({"answer_csv": "text/csv"})


def document() -> dict[str, Any]:
    """The whole document, OpenAPI 3.1."""
    paths: dict[str, dict[str, Any]] = {}
    for route in CALLS:
        path = re.sub(r":[a-z]+\}", "}", route.path)
        paths.setdefault(path, {})[route.method.lower()] = _operation(route)
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


def _summary(route: Route) -> str:
    handler = getattr(import_module("lastbit.serve.api"), route.handler)
    return str(handler.__doc__).rstrip(".")


def _operation(route: Route) -> dict[str, Any]:
    found: dict[str, Any] = {
        "operationId": route.handler,
        "summary": _summary(route),
        "description": f"Needs the right {route.right}." if route.right != "open" else "",
        "parameters": _parameters(route),
        "responses": {str(route.status): _good(route), **_problems(route)},
    }
    if route.right == "open":
        found["security"] = []
    if route.body is not None:
        content = {"application/json": {"schema": ref(route.body)}}
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
    found: dict[str, Any] = {"description": _summary(route)}
    if route.gives is not None:
        found["content"] = {"application/json": {"schema": ref(route.gives)}}
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
    content = {MEDIA_TYPE: {"schema": ref("Problem")}}
    return {code: {"description": words, "content": content} for code, words in said.items()}
