"""Is the code here the code that was certified, and does it do what the certificate says?

A record names a function, and says of it and of every Python function that it can call: the SHA-256
of source and bytecode, and what each name leads to that it reads. All of this is found again here,
by importing the function; so are the versions of Python and the libraries. Whatever the function
could run is looked at, instruction by instruction: nothing that keeps state, catches exceptions,
asks for types, writes text, or does anything to a function but call it. Then it is called, at
points of this program's own choosing and in several orders, and must end as the record's steps do,
to the last bit. What is believed: that code which passes all this, and whose every instruction is
one of those listed, does at other points too what its steps say; that its sign is passed as 1.0 or
-1.0 (whole signs are tried at the points only); and that the libraries are those of their versions.

Checking runs the function that the certificate names: check only what names code you would run.
"""

from __future__ import annotations

import builtins
import dis
import functools
import hashlib
import importlib
import inspect
import json
import linecache
import math
import platform
import re
import struct
import sys
import sysconfig
import types
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

from .careful import Careful, check_use, with_sums
from .numbers import Json, Rejected, number, require
from .steps import check_meaning, conditions, ended, run_steps

Record: TypeAlias = Json

_FIELDS = frozenset(
    {"role", "function", "inputs", "sign", "parameters", "functions", "machine", "steps"}
)
_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)
_BINARY64 = '{"binary": [53, -1022, 1023]}'
_AGAIN = "verify the code again"
_INPUTS: Mapping[str, list[str]] = types.MappingProxyType(
    {
        "mechanism": ["u", "value"],
        "sum": ["u", "value"],
        "noise": ["u"],
        "normal": ["u", "v"],
        "accepted": ["u", "v"],
        "planar noise": ["u", "v", "w"],
        "planar mechanism": ["u", "v", "w", "x", "y"],
    }
)


def check_records(claim: Json, query: Any) -> None:
    """Reject unless the records of code mean what the claim is about; nothing is run."""
    code = claim["code"]
    require(isinstance(code, list), "it does not say which code it is about; " + _AGAIN)
    if not code:
        return
    second = "accepted" if claim.get("accepted") is not None else "query"
    wanted = 1 if query is None and second == "query" else 2
    require(len(code) == wanted, "not all of the code is named; " + _AGAIN)
    require(json.dumps(claim["format"]) == _BINARY64, "Python's floats are of another format")
    for place, record in enumerate(code):
        require(set(record) == _FIELDS, "a record of code has a part too many or too few")
        role = record["role"]
        require((place == 1) == (role == second), "a role of code is unknown")
        require(role in (*_INPUTS, "query"), "a role of code is unknown")
        inputs, sign = record["inputs"], record["sign"]
        for named in (inputs, record["parameters"]):
            texts = isinstance(named, Mapping) and all(isinstance(t, str) for t in named.values())
            require(texts, "arguments have no names")
        if role != "query":
            require(sorted(inputs.values()) == _INPUTS[role], "the inputs are others")
        require(sign is None or isinstance(sign, str), "the sign has no name")
        pair = role.startswith("planar")
        require(not (pair and sign is not None), "noise of the plane has no sign")
        wanted = 2 if pair or sign is not None else 1
        require(len(record["steps"]) == wanted, "the steps are incomplete")
        check_meaning(role, record["steps"], claim, query)


def check_code(claim: Json) -> None:
    """Reject unless the code that the records name is here, unchanged, and takes their steps."""
    for record in claim["code"]:
        function = imported(record["function"])
        _check_same(record, function)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _check_runs(record, function, claim)


# ---------------------------------------------------------------- the same code


def imported(name: Any) -> types.FunctionType:
    """The plain function that a certificate names."""
    require(isinstance(name, str) and bool(_NAME.fullmatch(name)), "the function has no name")
    module, _, attribute = name.partition(":")
    try:
        found = vars(importlib.import_module(module))[attribute]
    except (Exception, SystemExit) as failure:  # whatever somebody's module raises
        raise Rejected(f"the function {name} cannot be imported; {_AGAIN}") from failure
    require(isinstance(found, types.FunctionType), f"{name} is not a plain function; {_AGAIN}")
    return found  # type: ignore[no-any-return]


def screened(
    function: types.FunctionType, methods: frozenset[str] = frozenset()
) -> dict[types.FunctionType, dict[str, str]]:
    """Every Python function that code can run, with what it reads; rejects what may not run.

    Attributes of values are not asked for, but for methods of these names, which are called.
    """
    found: dict[types.FunctionType, dict[str, str]] = {}
    todo = [function]
    while todo:
        one = todo.pop()
        if one not in found:
            found[one] = {}
            todo.extend(_Reader(one, found[one], methods).called())
    return found


def _check_same(record: Record, function: types.FunctionType) -> None:
    found = screened(function)
    texts = {text for reads in found.values() for text in reads.values()}
    libraries = {"lastbit" for text in texts if text in _OURS}
    libraries |= {"numpy" for text in texts if text.startswith("built-in numpy.")}
    _check_machine(record["machine"], libraries)
    stated = record["functions"]
    require(isinstance(stated, list), "the functions are not listed")
    names = sorted(_name(one) for one in found)
    require(sorted(str(one["name"]) for one in stated) == names, f"the code calls others; {_AGAIN}")
    linecache.checkcache()
    for one, reads in found.items():
        name = _name(one)
        try:
            source = inspect.getsource(one)
        except (OSError, TypeError) as failure:
            raise Rejected(f"the source of {name} is not there; {_AGAIN}") from failure
        bytecode = _sha(json.dumps(_written(one.__code__)))
        here = {"name": name, "source": _sha(source), "bytecode": bytecode, "reads": reads}
        problem = f"the code is not the one that was certified: {name} changed; {_AGAIN}"
        require(here in stated, problem)


def _check_machine(stated: Any, libraries: set[str]) -> None:
    found = {
        "python": _python(),
        "platform": f"{platform.system()} {platform.machine()}",
        "libc": " ".join(platform.libc_ver()),
    }
    found |= {name: _version(name) for name in ("lastbit", "numpy") if name in libraries}
    require(isinstance(stated, Mapping), "the machine is not described")
    for name in sorted({*found, *stated}):
        here, there = found.get(name, "none"), stated.get(name, "none")
        require(here == there, f"it is about {name} {there}, and here is {here}; {_AGAIN}")


def _version(name: str) -> str:
    from importlib import metadata  # loads email and zipfile: only where a library is named

    return metadata.version(name)


def _python() -> str:
    return f"{platform.python_implementation()} {platform.python_version()}"


def _name(function: types.FunctionType) -> str:
    return f"{function.__module__}:{function.__qualname__}"


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _written(code: types.CodeType) -> list[Any]:
    """A code object without file names and line numbers."""
    counts = [code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags]
    names = [code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars]
    constants = [_written_constant(constant) for constant in code.co_consts]
    return [code.co_code.hex(), code.co_exceptiontable.hex(), counts, names, constants]


def _written_constant(value: Any) -> list[Any]:
    match value:
        case types.CodeType():
            return ["code", _written(value)]
        case tuple():
            return ["tuple", [_written_constant(part) for part in value]]
        case frozenset():
            return ["frozenset", sorted(json.dumps(_written_constant(part)) for part in value)]
        case float():
            return ["float", value.hex()]
    return [type(value).__name__, ascii(value)]


def running_code(function: Any) -> dict[str, str]:
    """What a law or a refutation says of its code: one digest of all the Python functions in reach.

    Those are the function and what its global names lead to, also as attributes of modules, what it
    encloses and what its defaults are, through wrappers of the standard library; functions whose
    own globals are those of a module of the standard library or of numpy are left out.
    """
    require(type(function) is types.FunctionType, f"the code is not a plain function; {_AGAIN}")
    require(not _is_of_library(function), f"the code is a library's; {_AGAIN}")
    found: dict[types.FunctionType, list[Any]] = {}
    passed: set[int] = set()
    todo: list[Any] = [function]
    linecache.checkcache()
    while todo:
        one = todo.pop()
        if id(one) in passed:
            continue
        passed.add(id(one))
        match one:
            case functools.partial():
                todo.extend([one.func, *one.args, *one.keywords.values()])
            case types.MethodType():
                todo.append(one.__func__)
            case _ if isinstance(one, type(functools.cache(len))):
                todo.append(one.__wrapped__)
        if type(one) is not types.FunctionType:
            continue
        closed = [c.cell_contents for c in one.__closure__ or () if c != types.CellType()]
        held = [*closed, *(one.__defaults__ or ()), *(one.__kwdefaults__ or {}).values()]
        todo.extend(held)
        if _is_of_library(one):
            continue
        try:
            source = inspect.getsource(one.__code__)
        except (OSError, TypeError):
            source = ""
        bytecode = _sha(json.dumps(_written(one.__code__)))
        found[one] = [_name(one), _sha(source), bytecode, [_constant_text(x) or "" for x in held]]
        names: set[str] = set()
        codes = [one.__code__]
        while codes:
            names.update(codes[-1].co_names)
            codes.extend(c for c in codes.pop().co_consts if isinstance(c, types.CodeType))
        for name in names & set(one.__globals__):
            value = one.__globals__[name]
            todo.append(value)
            if isinstance(value, types.ModuleType):
                todo.extend(vars(value)[part] for part in names & set(vars(value)))
    return {"functions": _sha(json.dumps(sorted(found.values()))), "python": _python()}


def _is_of_library(function: types.FunctionType) -> bool:
    """Whether a function's own globals are those of an imported module of a library.

    `__module__` says nothing: `functools.wraps` copies it from another function.
    """
    place = function.__globals__.get("__name__")
    module = sys.modules.get(place) if isinstance(place, str) else None
    if module is None or vars(module) is not function.__globals__:
        return False
    root = str(place).partition(".")[0]
    file = str(getattr(module, "__file__", None) or "")
    own = file.startswith(sysconfig.get_path("stdlib")) and "-packages" not in file
    if root in sys.stdlib_module_names:
        return own or not file
    return root == "numpy"


# ---------------------------------------------------------------- what it reads, and may run

_MAY_RUN = re.compile(
    r"BINARY_\w+|BUILD_(LIST|SLICE|STRING|TUPLE)|CACHE|CALL(_KW)?|COMPARE_OP|CONTAINS_OP|"
    r"CONVERT_VALUE|COPY|COPY_FREE_VARS|DELETE_FAST|END_FOR|EXTENDED_ARG|FORMAT_\w+|FOR_ITER|"
    r"GET_ITER|JUMP_\w+|POP_JUMP_\w+|KW_NAMES|LIST_\w+|LOAD_(ASSERTION_ERROR|CLOSURE|CONST)|"
    r"LOAD_FAST\w*|STORE_FAST\w*|MAKE_(CELL|FUNCTION)|NOP|POP_TOP|PRECALL|PUSH_NULL|RAISE_VARARGS|"
    r"RERAISE|RESUME|RETURN_(CONST|VALUE)|SET_FUNCTION_ATTRIBUTE|SWAP|TO_BOOL|UNARY_\w+|"
    r"UNPACK_SEQUENCE"
)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_BUILT_IN = _words(
    "abs all any bool enumerate float int len list max min range reversed round sorted sum tuple "
    "zip ArithmeticError AssertionError IndexError KeyError NotImplementedError OverflowError "
    "RuntimeError TypeError ValueError ZeroDivisionError"
)
_NUMPY = _words(
    "add subtract multiply divide negative positive absolute fabs log exp sqrt sign rint minimum "
    "cos sin maximum less less_equal greater greater_equal equal not_equal clip float64"
)
_LIBRARY = _NUMPY | {
    name for name, value in vars(math).items() if callable(value) and not name.startswith("_")
}
_OURS = ("lastbit clamp", "lastbit round_to")


class _Reader:
    """Reads a function's instructions: refuses what may not run, notes what names lead to."""

    def __init__(
        self,
        function: types.FunctionType,
        reads: dict[str, str],
        methods: frozenset[str] = frozenset(),
    ) -> None:
        self.function, self.reads, self.methods = function, reads, methods
        self.found: list[types.FunctionType] = []
        self.made = _made_inside(function.__code__)
        self.last = ""

    def called(self) -> list[types.FunctionType]:
        function = self.function
        own: Any = function
        require(own.__builtins__ is vars(builtins), "the code has its own built-ins")
        require(type(function.__globals__) is dict, "the code has its own kind of global names")
        values = function.__defaults__ or ()
        names = function.__code__.co_varnames[: function.__code__.co_argcount]
        placed = zip(names[len(names) - len(values) :], values, strict=True)
        for name, value in {**dict(placed), **(function.__kwdefaults__ or {})}.items():
            text = _constant_text(value)
            require(text is not None, f"a default of {_name(function)} may change")
            self.reads[f"default {name}"] = str(text)
        self.code(function.__code__)
        return self.found

    def code(self, code: types.CodeType) -> None:
        """Read one code object: what it loads, what it may run, and that functions are called.

        Python's compiler puts a NULL beside what it is going to call, and nowhere else. A function
        or a class without one is used as a value: compared, held, passed on or written as text.
        Code that is followed could tell by that, and text may hold an address.
        """
        read = [at for at in dis.get_instructions(code) if at.opname not in _SILENT]
        enclosed = self.function.__code__.co_freevars
        module: tuple[str, types.ModuleType, bool] | None = None
        for k, at in enumerate(read):
            name, argument = at.opname, str(at.argval)
            rest = [one.opname for one in read[k + 1 :]] + [""]
            stays = rest[0] in ("PUSH_NULL", "KW_NAMES", "NOP") or rest[0][:4] in ("LOAD", "CALL")
            empty = rest[0] in ("BUILD_LIST", "BUILD_TUPLE") and read[k + 1].arg == 0
            null = (stays or empty) and _has_null(at, read[k - 1].opname if k else "", rest[0])
            follows = name in ("LOAD_ATTR", "LOAD_METHOD")
            if follows and module is None and null and argument in self.methods:
                continue
            require(follows == (module is not None), "the code asks for an attribute of a value")
            usable = null or rest[0] == "RAISE_VARARGS"
            if name == "LOAD_GLOBAL":
                scope = self.function.__globals__
                special = argument[:2] == argument[-2:] == "__"
                require(not special, f"the code reads {argument}, which tells how it is run")
                here = scope if argument in scope else vars(builtins)
                require(argument in here, f"{argument} is not there")
                replaced = argument not in scope and isinstance(here[argument], types.FunctionType)
                require(not replaced, f"the built-in {argument} is replaced")
                module = self.leads(argument, here[argument], usable, null)
                self.last = argument if null else self.last
            elif name == "LOAD_DEREF" and argument in enclosed:
                cell = (self.function.__closure__ or ())[enclosed.index(argument)]
                module = self.leads(f"closure {argument}", cell.cell_contents, usable, null)
            elif follows and module is not None:
                require(argument in vars(module[1]), f"{argument} is not there")
                require(not argument.startswith("__"), f"the code reads {argument}")
                inside, before = vars(module[1])[argument], module[2]
                full = f"{module[0]}.{argument}"
                marked = null or (before and (stays or empty))
                module = self.leads(full, inside, usable or marked, marked)
                self.last = full if marked else self.last
            else:
                module = None
                self.check(at, enclosed)
                self.check_use(at, read[k - 1] if k else None, rest, null)
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                self.code(constant)

    def check(self, at: dis.Instruction, enclosed: tuple[str, ...]) -> None:
        allowed = _MAY_RUN.fullmatch(at.opname) is not None
        if at.opname == "CALL_INTRINSIC_1":
            allowed = at.arg in (5, 6)  # unary plus, a list to a tuple
        elif at.opname in ("LOAD_DEREF", "STORE_DEREF", "DELETE_DEREF"):
            allowed = at.argval not in enclosed
        require(allowed, f"{_name(self.function)} does what cannot be followed ({at.opname})")

    def check_use(
        self, at: dis.Instruction, before: dis.Instruction | None, rest: list[str], null: bool
    ) -> None:
        """Functions made inside are named and called; text is for errors; sets have no order."""
        here, name = _name(self.function), at.opname
        if name in ("MAKE_FUNCTION", "SET_FUNCTION_ATTRIBUTE"):
            code = before.argval if before is not None else None
            listed = isinstance(code, types.CodeType) and code.co_name == "<listcomp>"
            stored = rest[0] in _STORES or rest[0] == "SET_FUNCTION_ATTRIBUTE"
            require(listed or stored, f"{here} passes on a function that it makes")
        if re.fullmatch(r"LOAD_(FAST|DEREF|FAST_CHECK|FAST_LOAD_FAST)|STORE_FAST_LOAD_FAST", name):
            loaded = list(at.argval) if isinstance(at.argval, tuple) else [at.argval]
            if name.startswith("STORE"):
                loaded = loaded[1:]
            values = loaded[:-1] if null else loaded
            used = self.made.intersection(values)
            require(not used, f"{here} uses a function as a value")
        if name == "BINARY_OP":
            require("%" not in at.argrepr, f"{here} takes a remainder, or writes text")
        if name == "LOAD_CONST" and isinstance(at.argval, frozenset):
            require(rest[0] == "CONTAINS_OP", f"{here} goes through a set, in no order")
        if name.startswith("FORMAT_") or name == "CONVERT_VALUE":
            error = self.reads.get(self.last, "").removeprefix("built-in builtins.")
            end = rest.index("CALL") + 2 if "CALL" in rest else 0
            message = _MESSAGE.fullmatch(" ".join(rest[:end])) is not None
            raised = error.endswith("Error") and error in _BUILT_IN
            require(message and raised, f"{here} writes text")

    def leads(
        self, name: str, value: Any, usable: bool, null: bool
    ) -> tuple[str, types.ModuleType, bool] | None:
        if type(value) is types.ModuleType:
            return name, value, null
        constant = _constant_text(value)
        text = constant or _known_text(value)
        if text is None and isinstance(value, types.FunctionType):
            for module in (value.__module__, value.__globals__.get("__name__")):
                root = str(module).partition(".")[0]
                library = root in sys.stdlib_module_names or root == "numpy"
                require(not library, f"the code calls {_name(value)}")
            self.found.append(value)
            text = f"function {_name(value)}"
        require(text is not None, f"{_name(self.function)} reads {name}, which may change")
        own, called = name.rpartition("."), str(text).rpartition(".")[2]
        exchanged = bool(own[0]) and own[2] in _LIBRARY and own[2] != called
        require(not exchanged, f"{name} is {called}: somebody put it in its place")
        require(constant is not None or usable, f"{_name(self.function)} uses {name} as a value")
        self.reads[name] = str(text)
        return None


_SILENT = frozenset({"CACHE", "PRECALL", "EXTENDED_ARG"})
_STORES = ("STORE_FAST", "STORE_DEREF", "STORE_FAST_LOAD_FAST", "STORE_FAST_STORE_FAST")
_MESSAGE = re.compile(
    r"((BINARY_OP|BUILD_STRING|CONVERT_VALUE|COPY|FORMAT_\w+|LOAD_(CONST|DEREF|GLOBAL|FAST\w*)) )*"
    r"CALL RAISE_VARARGS"
)


def _has_null(at: dis.Instruction, before: str, then: str) -> bool:
    """Whether the compiler marked what this loads as what is called."""
    version = sys.version_info[:2]
    marked = at.opname == "LOAD_GLOBAL" or (at.opname == "LOAD_ATTR" and version >= (3, 12))
    if at.opname == "LOAD_METHOD" or (marked and (at.arg or 0) % 2 == 1):
        return True
    return (then if version >= (3, 13) else before) == "PUSH_NULL"


def _made_inside(code: types.CodeType) -> set[str]:
    found: set[str] = set()
    making = False
    for at in dis.get_instructions(code):
        if making and at.opname in _STORES:
            found.add(at.argval[0] if isinstance(at.argval, tuple) else at.argval)
        if at.opname not in _SILENT:
            making = at.opname in ("MAKE_FUNCTION", "SET_FUNCTION_ATTRIBUTE")
    inner = (_made_inside(c) for c in code.co_consts if isinstance(c, types.CodeType))
    return found.union(*inner)


def _constant_text(value: Any) -> str | None:
    numpy = sys.modules.get("numpy")
    if value is None or value is True or value is False:
        return str(value)
    if numpy is not None and type(value) is numpy.float64:
        return f"numpy.float64 {float(value).hex()}"
    if type(value) is float:
        return f"float {value.hex()}"
    if type(value) in (int, Fraction):
        return f"{type(value).__name__} {value}"
    if type(value) is str:
        return f"str {value!a}"
    parts = [_constant_text(part) for part in value] if type(value) is tuple else [None]
    return None if None in parts else f"({', '.join(map(str, parts))})"


def _known_text(value: Any) -> str | None:
    """The name of a library's function, if it is on the list and is that very object."""
    name = getattr(value, "__name__", None)
    if not isinstance(name, str):
        return None
    if isinstance(value, types.BuiltinFunctionType) and vars(math).get(name) is value:
        return f"built-in math.{name}"
    if name in _BUILT_IN and vars(builtins)[name] is value:
        return f"built-in builtins.{name}"
    if value is Fraction:
        return "built-in fractions.Fraction"
    numpy = sys.modules.get("numpy")
    if numpy is not None and name in _NUMPY and vars(numpy).get(name) is value:
        listed = name in ("clip", "float64") or isinstance(value, numpy.ufunc)
        return f"built-in numpy.{name}" if listed else None
    ours = sys.modules.get("lastbit.verify.tracing.markers")
    if ours is not None and name in ("clamp", "round_to") and vars(ours).get(name) is value:
        return f"lastbit {name}"
    return None


# ---------------------------------------------------------------- the same steps


def _check_runs(record: Record, function: types.FunctionType, claim: Json) -> None:
    given = {name: _value(text) for name, text in record["parameters"].items()}
    first = function.__code__.co_varnames[: function.__code__.co_posonlyargcount]
    sums = any("built-in math.fsum" in one["reads"].values() for one in record["functions"])
    used = with_sums(function) if sums else function
    zeros, signed = set[bytes](), [struct.pack(">d", zero) for zero in (0.0, -0.0)]
    for place, rows in enumerate(record["steps"]):
        at = list(_points(record, rows, claim))
        pair = record["role"].startswith("planar")
        if pair:  # where one of two numbers fails, the call does
            other = record["steps"][1 - place]
            at = [p for p in at if ended(lambda p=p, o=other: run_steps(o, p))[0] != "raises"]  # type: ignore[misc]
        wanted = [ended(lambda r=rows, p=p: run_steps(r, p)) for p in at]  # type: ignore[misc]
        signs: list[dict[str, Any]] = [{}]
        if record["sign"] is not None:
            sign = 1 - 2 * place
            signs = [{record["sign"]: sign}, {record["sign"]: float(sign)}]
        for extra in signs:
            for index in _orders(len(at)):
                point = at[index]  # each float as another object
                fresh = {n: float.fromhex(point[r].hex()) for n, r in record["inputs"].items()}
                named = {**given, **fresh, **extra}
                placed = [named.pop(name) for name in first if name in named]
                part = place if pair else None
                here = ended(
                    lambda p=placed, n=named, k=part: _number(function(*p, **n), k)  # type: ignore[misc]
                )
                problem = f"{record['function']} does not take the steps of the certificate"
                require(here == wanted[index], f"{problem}; {_AGAIN}")
                if here[1] in signed:
                    zeros.add(here[1])
        if record["role"] in ("mechanism", "sum", "planar mechanism"):
            for point in at:
                kinds = {
                    **dict.fromkeys("uvw", float),
                    **dict.fromkeys(("value", "x", "y"), Careful),
                }
                inputs = {n: kinds[r](point[r]) for n, r in record["inputs"].items()}
                named = {**given, **signs[-1], **inputs}
                check_use(used, [named.pop(name) for name in first if name in named], named)
    two = record["role"] == "mechanism" and len(zeros) > 1
    require(not two, "the code gives 0.0 and -0.0")


def _number(result: Any, part: int | None) -> Any:
    """What code gives, or one of two numbers that it gives."""
    if part is None:
        return result
    require(type(result) is tuple and len(result) == 2, "the code does not give two numbers")
    return result[part]


def _value(text: str) -> Any:
    kind, _, rest = text.partition(" ")
    known: dict[str, Callable[[str], Any]] = {"int": int, "Fraction": Fraction}
    if kind == "numpy.float64":
        return importlib.import_module("numpy").float64(float.fromhex(rest))
    require(kind == "float" or kind in known, "a parameter is not a number")
    value = known.get(kind, float.fromhex)(rest)
    require(_constant_text(value) == text, "a parameter is not written as it should be")
    return value


def _orders(count: int) -> Iterator[int]:
    """Backward, forward, in strides that visit all, and each again after its neighbour."""
    yield from reversed(range(count))
    yield from range(count)
    stride = next(k for k in range(max(2, count // 3), 2 * count + 3) if math.gcd(k, count) == 1)
    yield from (k * stride % count for k in range(count))
    for index in range(1, count):
        yield from (index, index - 1, index)


def _points(record: Record, rows: Any, claim: Json) -> Iterator[dict[str, float]]:
    """Floats of interest of each input in turn, the others drawn from theirs."""
    seed = json.dumps([record["function"], record["steps"], claim["epsilon"], "checker"])

    def numbers(block: bytes) -> Iterator[int]:
        while True:
            block = hashlib.sha512(block).digest()
            yield from struct.unpack(">8Q", block)

    stream = numbers(seed.encode())
    names = sorted(record["inputs"].values())
    lists = {name: _floats(name, rows, claim, stream) for name in names}
    for leading in names:
        for x in lists[leading]:
            point = {name: lists[name][next(stream) % len(lists[name])] for name in names}
            yield point | {leading: x}


def _floats(name: str, rows: Any, claim: Json, stream: Iterator[int]) -> list[float]:
    exact = [bound for input_, bound in conditions(rows) if input_ == name]
    exact += [Fraction(k, 4) for k in range(-8, 9)]
    if name in (
        "value",
        "x",
        "y",
    ):  # edges and middles of cells: all, or the first, the last and some between
        half = number(claim["cell"]) / 2
        ends = claim.get("values", claim["region"])
        ends = ends if name == "value" else ends[name == "y"]
        low, high = (int(number(end) / half) for end in ends)
        places: Sequence[int] = range(low, high + 1)
        if len(places) > 301:
            some = [low + next(stream) % (high - low) for _ in range(100)]
            places = [*places[:3], *places[-3:], *some]
        exact += [k * half for k in places]
    if name in ("u", "v", "w"):
        exact += [Fraction(1, 1 << k) for k in range(1, 60, 4)]
        exact += [1 - Fraction(1, 1 << k) for k in range(2, 53, 4)]
        uniform = claim["uniform"]
        if uniform["model"] == "full":
            exact.append(Fraction(1, 1 << -uniform["least_exponent"]))
            exact.append(1 - Fraction(1, 1 << uniform["significand"]))
        elif uniform["model"] == "grid":
            offset, unit = number(uniform["offset"]), Fraction(1, 1 << uniform["bits"])
            exact += [(offset + uniform["first"]) * unit, 1 - (1 - offset) * unit]
    found = [*(s * x for s in (1.0, -1.0) for x in (0.0, 5e-324, 2.0**-1022, sys.float_info.max))]
    for x in exact:
        near = float(x)
        found += [near, math.nextafter(near, math.inf), math.nextafter(near, -math.inf)]
    for _ in range(60):
        found.append(struct.unpack("<d", struct.pack("<Q", next(stream)))[0])
        found.append((next(stream) >> 11) * 2.0**-53)
        found.append(math.ldexp(next(stream) / 2.0**63 - 1.0, next(stream) % 12))
    return [x for x in found if math.isfinite(x)]
