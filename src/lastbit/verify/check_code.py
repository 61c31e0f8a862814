"""Is the code here the code that was certified, and does it do what the certificate says?

A record names a function, and says of it and of every Python function that it can call: the SHA-256
of source and bytecode, and what each name leads to that it reads. All of this is found again here,
by importing the function; so are the versions of Python and the libraries. Whatever the function
could run is looked at, instruction by instruction: nothing that keeps state, catches exceptions or
asks for types. Then it is called, at points of this program's own choosing and in several orders,
and must end as the record's steps do, to the last bit. What is believed: that code which passes all
this, and whose every instruction is one of those listed, does at other points too what its steps
say; and that the libraries are those of their versions.

Checking runs the function that the certificate names: check only what names code you would run.
"""

from __future__ import annotations

import builtins
import dis
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
import types
import warnings
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from importlib import metadata
from typing import Any, TypeAlias

from lastbit.verify.arithmetic import Rejected, number, require
from lastbit.verify.check_steps import check_meaning, conditions, ended, run_steps

__all__ = ["check_code", "check_records", "running_code"]

Record: TypeAlias = Mapping[str, Any]

_FIELDS = frozenset(
    {"role", "function", "inputs", "sign", "parameters", "functions", "machine", "steps"}
)
_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)
_BINARY64 = '{"binary": [53, -1022, 1023]}'
_AGAIN = "verify the code again"
_INPUTS: Mapping[str, frozenset[str]] = types.MappingProxyType(
    {
        "mechanism": frozenset({"value", "u"}),
        "sum": frozenset({"value", "u"}),
        "noise": frozenset({"u"}),
    }
)
_MOST_VALUES = 300


def check_records(claim: Mapping[str, Any], query: Any) -> None:
    """Reject unless the records of code mean what the claim is about; nothing is run."""
    code = claim["code"]
    require(isinstance(code, list), "it does not say which code it is about; " + _AGAIN)
    if not code:
        return
    wanted = 1 if query is None else 2
    require(len(code) == wanted, "not all of the code is named; " + _AGAIN)
    require(json.dumps(claim["format"]) == _BINARY64, "Python's floats are of another format")
    for place, record in enumerate(code):
        require(set(record) == _FIELDS, "a record of code has a part too many or too few")
        role = record["role"]
        require(place == 1 if role == "query" else place == 0, "a role of code is unknown")
        require(role in (*_INPUTS, "query"), "a role of code is unknown")
        inputs, sign = record["inputs"], record["sign"]
        require(_are_texts(inputs) and _are_texts(record["parameters"]), "arguments have no names")
        if role != "query":
            require(sorted(inputs.values()) == sorted(_INPUTS[role]), "the inputs are others")
        require(sign is None or isinstance(sign, str), "the sign has no name")
        require(len(record["steps"]) == (1 if sign is None else 2), "the steps are incomplete")
        check_meaning(role, record["steps"], claim, query)


def check_code(claim: Mapping[str, Any]) -> None:
    """Reject unless the code that the records name is here, unchanged, and takes their steps."""
    for record in claim["code"]:
        function = _imported(record["function"])
        _check_same(record, function)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _check_runs(record, function, claim)


def _are_texts(found: Any) -> bool:
    return isinstance(found, Mapping) and all(isinstance(text, str) for text in found.values())


# ---------------------------------------------------------------- the same code


def _imported(name: Any) -> types.FunctionType:
    require(isinstance(name, str) and bool(_NAME.fullmatch(name)), "the function has no name")
    module, _, attribute = name.partition(":")
    try:
        found = vars(importlib.import_module(module))[attribute]
    except (Exception, SystemExit) as failure:  # whatever somebody's module raises
        raise Rejected(f"the function {name} cannot be imported; {_AGAIN}") from failure
    require(isinstance(found, types.FunctionType), f"{name} is no plain function; {_AGAIN}")
    return found  # type: ignore[no-any-return]


def _check_same(record: Record, function: types.FunctionType) -> None:
    found: dict[types.FunctionType, dict[str, str]] = {}
    todo = [function]
    while todo:
        one = todo.pop()
        if one not in found:
            found[one] = {}
            todo.extend(_Reader(one, found[one]).called())
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
        here = {
            "name": name,
            "source": _sha(source),
            "bytecode": _sha(json.dumps(_written(one.__code__))),
            "reads": reads,
        }
        problem = f"the code is not the one that was certified: {name} changed; {_AGAIN}"
        require(here in stated, problem)
    require(len(stated) == len(found), f"the code calls others; {_AGAIN}")


def _check_machine(stated: Any, libraries: set[str]) -> None:
    found = {
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "platform": f"{platform.system()} {platform.machine()}",
        "libc": " ".join(platform.libc_ver()),
    }
    found |= {name: metadata.version(name) for name in ("lastbit", "numpy") if name in libraries}
    require(isinstance(stated, Mapping), "the machine is not described")
    for name in sorted({*found, *stated}):
        here, there = found.get(name, "none"), stated.get(name, "none")
        require(here == there, f"it is about {name} {there}, and here is {here}; {_AGAIN}")


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

    Those are the function and what its global names lead to, also as attributes of modules;
    functions of the standard library and numpy are left out.
    """
    found: dict[types.FunctionType, tuple[str, str, str]] = {}
    todo = [function if isinstance(function, types.FunctionType) else type(function).__call__]
    linecache.checkcache()
    while todo:
        one = todo.pop()
        if not isinstance(one, types.FunctionType) or one in found:
            continue
        root = (one.__module__ or "").partition(".")[0]
        if root in sys.stdlib_module_names or root == "numpy":
            continue
        try:
            source = inspect.getsource(one)
        except (OSError, TypeError):
            source = ""
        found[one] = (_name(one), _sha(source), _sha(json.dumps(_written(one.__code__))))
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
    whole = json.dumps(sorted(list(parts) for parts in found.values()))
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return {"functions": _sha(whole), "python": python}


# ---------------------------------------------------------------- what it reads, and may run

_MAY_RUN = re.compile(
    r"BINARY_\w+|BUILD_(LIST|SLICE|STRING|TUPLE)|CACHE|CALL(_KW)?|COMPARE_OP|CONTAINS_OP|"
    r"CONVERT_VALUE|COPY|COPY_FREE_VARS|DELETE_FAST|END_FOR|EXTENDED_ARG|FORMAT_\w+|FOR_ITER|"
    r"GET_ITER|JUMP_\w+|POP_JUMP_\w+|KW_NAMES|LIST_\w+|LOAD_(ASSERTION_ERROR|CLOSURE|CONST)|"
    r"LOAD_FAST\w*|STORE_FAST\w*|MAKE_(CELL|FUNCTION)|NOP|POP_TOP|PRECALL|PUSH_NULL|RAISE_VARARGS|"
    r"RERAISE|RESUME|RETURN_(CONST|VALUE)|SET_FUNCTION_ATTRIBUTE|SWAP|TO_BOOL|UNARY_\w+|"
    r"UNPACK_SEQUENCE"
)
_BUILT_IN = frozenset(
    re.findall(
        r"\w+",
        """
        abs all any bool enumerate float int len list max min range reversed round sorted sum tuple
        zip ArithmeticError AssertionError IndexError KeyError NotImplementedError OverflowError
        RuntimeError TypeError ValueError ZeroDivisionError
        """,
    )
)
_NUMPY = frozenset(
    re.findall(
        r"\w+",
        """
        add subtract multiply divide negative positive absolute fabs log exp sqrt sign rint minimum
        maximum less less_equal greater greater_equal equal not_equal clip float64
        """,
    )
)
_OURS = ("lastbit clamp", "lastbit round_to")


class _Reader:
    """Reads a function's instructions: refuses what may not run, notes what names lead to."""

    def __init__(self, function: types.FunctionType, reads: dict[str, str]) -> None:
        self.function = function
        self.reads = reads
        self.found: list[types.FunctionType] = []

    def called(self) -> list[types.FunctionType]:
        function = self.function
        own: Any = function
        require(own.__builtins__ is vars(builtins), "the code has its own built-ins")
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
        module: tuple[str, types.ModuleType] | None = None
        enclosed = self.function.__code__.co_freevars
        for at in dis.get_instructions(code):
            if at.opname in ("CACHE", "PRECALL", "EXTENDED_ARG"):
                continue
            name, argument = at.opname, str(at.argval)
            follows = name in ("LOAD_ATTR", "LOAD_METHOD")
            require(follows == (module is not None), "the code asks for an attribute of a value")
            if name == "LOAD_GLOBAL":
                scope = self.function.__globals__
                here = scope if argument in scope else vars(builtins)
                require(argument in here, f"{argument} is not there")
                replaced = argument not in scope and isinstance(here[argument], types.FunctionType)
                require(not replaced, f"the built-in {argument} is replaced")
                module = self.leads(argument, here[argument])
            elif name == "LOAD_DEREF" and argument in enclosed:
                cell = (self.function.__closure__ or ())[enclosed.index(argument)]
                module = self.leads(f"closure {argument}", cell.cell_contents)
            elif follows and module is not None:
                require(argument in vars(module[1]), f"{argument} is not there")
                module = self.leads(f"{module[0]}.{argument}", vars(module[1])[argument])
            else:
                module = None
                self.check(at, enclosed)
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                self.code(constant)

    def check(self, at: dis.Instruction, enclosed: tuple[str, ...]) -> None:
        if at.opname == "CALL_INTRINSIC_1":
            allowed = at.arg in (5, 6)  # unary plus, a list to a tuple
        elif at.opname in ("LOAD_DEREF", "STORE_DEREF", "DELETE_DEREF"):
            allowed = at.argval not in enclosed
        else:
            allowed = _MAY_RUN.fullmatch(at.opname) is not None
        require(allowed, f"{_name(self.function)} does what cannot be followed ({at.opname})")

    def leads(self, name: str, value: Any) -> tuple[str, types.ModuleType] | None:
        if type(value) is types.ModuleType:
            return name, value
        text = _constant_text(value) or _known_text(value)
        if text is None and isinstance(value, types.FunctionType):
            root = (value.__module__ or "").partition(".")[0]
            library = root in sys.stdlib_module_names or root == "numpy"
            require(not library, f"the code calls {_name(value)}")
            self.found.append(value)
            text = f"function {_name(value)}"
        require(text is not None, f"{_name(self.function)} reads {name}, which may change")
        self.reads[name] = str(text)
        return None


def _constant_text(value: Any) -> str | None:
    if value is None or value is True or value is False:
        return str(value)
    numpy = sys.modules.get("numpy")
    if numpy is not None and type(value) is numpy.float64:
        return f"numpy.float64 {float(value).hex()}"
    if type(value) is float:
        return f"float {value.hex()}"
    if type(value) in (int, Fraction):
        return f"{type(value).__name__} {value}"
    if type(value) is str:
        return f"str {value!a}"
    if type(value) is tuple:
        parts = [_constant_text(part) for part in value]
        if all(part is not None for part in parts):
            return f"({', '.join(str(part) for part in parts)})"
    return None


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
    ours = sys.modules.get("lastbit.verify.traced")
    if ours is not None and name in ("clamp", "round_to") and vars(ours).get(name) is value:
        return f"lastbit {name}"
    return None


# ---------------------------------------------------------------- the same steps


def _check_runs(record: Record, function: types.FunctionType, claim: Mapping[str, Any]) -> None:
    given = {name: _value(text) for name, text in record["parameters"].items()}
    first = function.__code__.co_varnames[: function.__code__.co_posonlyargcount]
    for place, rows in enumerate(record["steps"]):
        at = list(_points(record, rows, claim))
        wanted = [ended(lambda r=rows, p=p: run_steps(r, p)) for p in at]  # type: ignore[misc]
        signs: list[dict[str, Any]] = [{}]
        if record["sign"] is not None:
            sign = 1 - 2 * place
            signs = [{record["sign"]: sign}, {record["sign"]: float(sign)}]
        for extra in signs:
            for index in _orders(len(at)):
                fresh = {n: _again(at[index][role]) for n, role in record["inputs"].items()}
                named = {**given, **fresh, **extra}
                placed = [named.pop(name) for name in first if name in named]
                here = ended(lambda p=placed, n=named: function(*p, **n))  # type: ignore[misc]
                problem = f"{record['function']} does not take the steps of the certificate"
                require(here == wanted[index], f"{problem}; {_AGAIN}")
                if record["role"] == "mechanism":
                    require(here[1] != struct.pack(">d", -0.0), "the code gives -0.0")


def _value(text: str) -> Any:
    kind, _, rest = text.partition(" ")
    if kind == "numpy.float64":
        return importlib.import_module("numpy").float64(float.fromhex(rest))
    known: dict[str, Callable[[str], Any]] = {
        "float": float.fromhex,
        "int": int,
        "Fraction": Fraction,
    }
    require(kind in known, "a parameter is no number")
    value = known[kind](rest)
    require(_constant_text(value) == text, "a parameter is not written as it should be")
    return value


def _again(x: float) -> float:
    """The same float as another object."""
    return float.fromhex(x.hex())


def _orders(count: int) -> Iterator[int]:
    """Backward, forward, in strides that visit all, and each again after its neighbour."""
    yield from reversed(range(count))
    yield from range(count)
    stride = next(k for k in range(max(2, count // 3), 2 * count + 3) if math.gcd(k, count) == 1)
    yield from (k * stride % count for k in range(count))
    for index in range(1, count):
        yield from (index, index - 1, index)


def _points(record: Record, rows: Any, claim: Mapping[str, Any]) -> Iterator[dict[str, float]]:
    """Floats of interest of each input in turn, the others drawn from theirs."""
    seed = json.dumps([record["function"], record["steps"], claim["epsilon"], "checker"])
    stream = _stream(seed)
    names = sorted(record["inputs"].values())
    lists = {name: _floats(name, rows, claim, stream) for name in names}
    for leading in names:
        for x in lists[leading]:
            point = {name: lists[name][next(stream) % len(lists[name])] for name in names}
            yield point | {leading: x}


def _floats(name: str, rows: Any, claim: Mapping[str, Any], stream: Iterator[int]) -> list[float]:
    exact = [bound for input_, bound in conditions(rows) if input_ == name]
    exact += [Fraction(k, 4) for k in range(-8, 9)]
    if name == "value":
        exact += _edges(claim, stream)
    if name == "u":
        exact += [Fraction(1, 1 << k) for k in range(1, 60, 4)]
        exact += [1 - Fraction(1, 1 << k) for k in range(2, 53, 4)]
        exact += list(_least_and_greatest(claim["uniform"]))
    found = [*(s * x for s in (1.0, -1.0) for x in (0.0, 5e-324, 2.0**-1022, sys.float_info.max))]
    for x in exact:
        near = float(x)
        found += [near, math.nextafter(near, math.inf), math.nextafter(near, -math.inf)]
    for _ in range(60):
        found.append(struct.unpack("<d", struct.pack("<Q", next(stream)))[0])
        found.append((next(stream) >> 11) * 2.0**-53)
        found.append(math.ldexp(next(stream) / 2.0**63 - 1.0, next(stream) % 12))
    return [x for x in found if math.isfinite(x)]


def _edges(claim: Mapping[str, Any], stream: Iterator[int]) -> list[Fraction]:
    """Edges and middles of cells: all, or the first, the last and some between."""
    half = number(claim["cell"]) / 2
    low, high = (int(number(end) / half) for end in claim["region"])
    if high - low <= _MOST_VALUES:
        return [k * half for k in range(low, high + 1)]
    some = [low + next(stream) % (high - low) for _ in range(_MOST_VALUES // 3)]
    return [k * half for k in (low, low + 1, low + 2, high - 2, high - 1, high, *some)]


def _least_and_greatest(uniform: Mapping[str, Any]) -> Iterator[Fraction]:
    if uniform["model"] == "full":
        yield Fraction(1, 1 << -uniform["least_exponent"])
        yield 1 - Fraction(1, 1 << uniform["significand"])
    else:
        offset, unit = number(uniform["offset"]), Fraction(1, 1 << uniform["bits"])
        yield (offset + uniform["first"]) * unit
        yield 1 - (1 - offset) * unit


def _stream(seed: str) -> Iterator[int]:
    block = seed.encode()
    while True:
        block = hashlib.sha512(block).digest()
        yield from struct.unpack(">8Q", block)
