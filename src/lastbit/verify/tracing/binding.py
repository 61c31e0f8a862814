"""Which code a certificate is about: by name, by source and bytecode, by all that it reads.

Law      a record names the function, every Python function that it can call, the SHA-256 of the
         source and of the bytecode of each, each constant, default and enclosed value that it
         reads, the machine, Python and the libraries, and the steps that it runs
Differs  `math` and numpy are known by their versions only. Code without a name that another
         process could import, or without source, cannot be bound: then the certificate is about
         the steps alone and says so
Checked  tests/verify/test_check_code.py; worked out again by the checker, `checker/code.py`
"""

from __future__ import annotations

import hashlib
import inspect
import json
import platform
import sys
import sysconfig
import types
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

from lastbit.errors import InvalidParameter
from lastbit.verify.tracing.screening import codes_in, constant_text, module_of
from lastbit.verify.tracing.trace import Followed, plain_function


def record(role: str, code: Sequence[Followed]) -> dict[str, Any] | None:
    """What a certificate says of code, followed once or once for each sign; None if it has no name.

    `role` is what the code computes: "mechanism", "sum", "noise" or "query".
    """
    first = code[0]
    place, _, attribute = first.name.partition(":")
    module = sys.modules.get(place)
    # module:name must lead to this very function, in another process too
    if module is None or place == "__main__" or getattr(module, "__file__", None) is None:
        return None
    if vars(module).get(attribute) is not first.function:
        return None
    try:
        written = [
            {
                "name": module_of(one),
                "source": _sha(inspect.getsource(one)),
                "bytecode": _sha(json.dumps(_code(one.__code__))),
                "reads": dict(sorted(reads.items())),
            }
            for one, reads in first.screen.functions.items()
        ]
    except (OSError, TypeError):  # no source, as where it was typed in
        return None
    libraries = set().union(*(one.screen.libraries for one in code))
    used = [name for name in ("lastbit", "numpy") if name in libraries]
    machine = {
        "python": _python(),
        "platform": f"{platform.system()} {platform.machine()}",
        "libc": " ".join(platform.libc_ver()),
    }
    return {
        "role": role,
        "function": first.name,
        "inputs": dict(first.roles),
        "sign": first.sign,
        "parameters": {n: constant_text(x) for n, x in first.given.items() if n != first.sign},
        "functions": sorted(written, key=lambda one: json.dumps(one, sort_keys=True)),
        "machine": machine | {name: _version(name) for name in used},
        "steps": [one.rows for one in code],
    }


def _version(name: str) -> str:
    from importlib import metadata  # loads email and zipfile: only where a library is named

    return metadata.version(name)


def _python() -> str:
    return f"{platform.python_implementation()} {platform.python_version()}"


def running_code(function: object) -> dict[str, str]:
    """What a certificate about running code says of it: a digest of all its Python functions.

    Law      SHA-256 over name, source, bytecode, enclosed numbers and defaults of the function and
             of those that its global names lead to, directly or as attributes of modules, that it
             encloses, or that a wrapper of the standard library calls for it, and so on; functions
             of the standard library and numpy left out, told by their own globals
    Differs  nothing is screened: what it reads otherwise, classes and data, is not digested. What
             is not a plain function, such as a partial one, is refused: its arguments have no
             source
    """
    plain = plain_function(function)
    if _of_library(plain):
        problem, remedy = "is a library's own", "write a function that calls it"
        raise InvalidParameter("function", problem=problem, remedy=remedy)
    todo: list[object] = [plain]
    seen: dict[int, object] = {}
    found: list[list[Any]] = []
    while todo:
        one = todo.pop()
        if id(one) in seen:
            continue
        seen[id(one)] = one
        match one:
            case types.FunctionType():
                cells = [cell for cell in one.__closure__ or () if cell != types.CellType()]
                kept = [cell.cell_contents for cell in cells]
                kept += [*(one.__defaults__ or ()), *(one.__kwdefaults__ or {}).values()]
                todo.extend(kept)
                if _of_library(one):
                    continue
                try:
                    source = inspect.getsource(one.__code__)
                except (OSError, TypeError):
                    source = ""
                bytecode = _sha(json.dumps(_code(one.__code__)))
                texts = [constant_text(value) or "" for value in kept]
                found.append([module_of(one), _sha(source), bytecode, texts])
                names = {name for code in codes_in(one.__code__) for name in code.co_names}
                values = [one.__globals__[name] for name in names if name in one.__globals__]
                modules = [value for value in values if isinstance(value, types.ModuleType)]
                todo.extend(values)
                todo.extend(vars(m)[name] for m in modules for name in names if name in vars(m))
            case partial():
                todo.extend([one.func, *one.args, *one.keywords.values()])
            case types.MethodType():
                todo.append(one.__func__)
            case _ if type(one) is type(lru_cache(len)):
                todo.append(vars(one).get("__wrapped__"))
    return {"functions": _sha(json.dumps(sorted(found))), "python": _python()}


def _of_library(function: types.FunctionType) -> bool:
    """Whether the function's globals are a library module's; anybody can set `__module__`."""
    scope = function.__globals__
    name = scope.get("__name__")
    if not isinstance(name, str) or name not in sys.modules:
        return False
    if vars(sys.modules[name]) is not scope:
        return False
    root, file = name.partition(".")[0], scope.get("__file__")
    if root in sys.stdlib_module_names:
        folder = sysconfig.get_path("stdlib")
        return file is None or (str(file).startswith(folder) and "-packages" not in str(file))
    return root == "numpy"


def _code(code: types.CodeType) -> list[Any]:
    """What a code object does, without file names and line numbers."""
    return [
        code.co_code.hex(),
        code.co_exceptiontable.hex(),
        [code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags],
        [list(n) for n in (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)],
        [_constant(constant) for constant in code.co_consts],
    ]


def _constant(constant: Any) -> Any:
    if isinstance(constant, types.CodeType):
        return ["code", _code(constant)]
    if isinstance(constant, tuple):
        return ["tuple", [_constant(part) for part in constant]]
    if isinstance(constant, frozenset):
        return ["frozenset", sorted(json.dumps(_constant(part)) for part in constant)]
    if isinstance(constant, float):
        return ["float", constant.hex()]
    return [type(constant).__name__, ascii(constant)]


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
