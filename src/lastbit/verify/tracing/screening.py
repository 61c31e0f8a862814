"""Which code can be followed at all: what runs reads nothing but its arguments and constants.

Theorem  every value that screened code can hold is an input, a number, a text, None, or a fresh
         list or tuple or range of these; every operation on them is a function of its operands,
         and a marker records what it is asked. So the code keeps no state, cannot ask for a type,
         and its answer depends on its arguments alone. By induction over the instructions: a load
         gives such a value (anything else that a name leads to is refused), a call calls a
         function named below, and no instruction outside the list runs. A function, a class and a
         module are no values: they are called where they are named, and never compared, held,
         passed on or written, so code cannot tell the tracer's own from the real ones, nor read
         an address. Text is written in error messages alone: other text may hold an address
Differs  strict: code that catches exceptions, writes to anything but its own names, asks objects
         for attributes or calls what is not listed is refused, with file, line and a remedy,
         though it may be right. What the interpreter, `math` and numpy do is believed, and that
         Python's compiler wrote the instructions: it puts a NULL beside what is called, only there
Checked  tests/verify/test_screening.py, tests/verify/test_sloppy.py
"""

from __future__ import annotations

import builtins
import dis
import math
import sys
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Any, NoReturn, TypeAlias

import numpy as np

from lastbit.errors import Untraceable
from lastbit.verify.tracing.markers import UFUNCS, clamp, round_to
from lastbit.verify.tracing.steps import ERRORS

_TOP = "move that out of the function, and pass numbers"
_FLOATS = "leave that out: inputs are floats"
_STATE = "return what changes: no state between calls"
_OWN_NAME = "give each number its own name"
_CATCHES = "catches exceptions or opens a context around its steps"


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_INSTRUCTIONS = _words("""
    BINARY_OP BINARY_SLICE BINARY_SUBSCR BUILD_LIST BUILD_SLICE BUILD_STRING BUILD_TUPLE CACHE
    CALL CALL_INTRINSIC_1 CALL_KW COMPARE_OP CONTAINS_OP CONVERT_VALUE COPY COPY_FREE_VARS
    DELETE_FAST END_FOR EXTENDED_ARG FORMAT_SIMPLE FORMAT_VALUE FORMAT_WITH_SPEC FOR_ITER
    GET_ITER JUMP_BACKWARD JUMP_BACKWARD_NO_INTERRUPT JUMP_FORWARD JUMP_IF_FALSE_OR_POP
    JUMP_IF_TRUE_OR_POP KW_NAMES LIST_APPEND LIST_EXTEND LIST_TO_TUPLE LOAD_ASSERTION_ERROR
    LOAD_CLOSURE LOAD_CONST LOAD_FAST LOAD_FAST_AND_CLEAR LOAD_FAST_CHECK LOAD_FAST_LOAD_FAST
    MAKE_CELL MAKE_FUNCTION NOP POP_JUMP_BACKWARD_IF_FALSE POP_JUMP_BACKWARD_IF_NONE
    POP_JUMP_BACKWARD_IF_NOT_NONE POP_JUMP_BACKWARD_IF_TRUE POP_JUMP_FORWARD_IF_FALSE
    POP_JUMP_FORWARD_IF_NONE POP_JUMP_FORWARD_IF_NOT_NONE POP_JUMP_FORWARD_IF_TRUE
    POP_JUMP_IF_FALSE POP_JUMP_IF_NONE POP_JUMP_IF_NOT_NONE POP_JUMP_IF_TRUE POP_TOP PRECALL
    PUSH_NULL RAISE_VARARGS RERAISE RESUME RETURN_CONST RETURN_VALUE SET_FUNCTION_ATTRIBUTE
    STORE_FAST STORE_FAST_LOAD_FAST STORE_FAST_STORE_FAST SWAP TO_BOOL UNARY_INVERT
    UNARY_NEGATIVE UNARY_NOT UNARY_POSITIVE UNPACK_SEQUENCE
""")
"""What may run, in Python 3.11 to 3.13; loads, stores and `is` are looked at one by one."""

_WHY: Mapping[str, tuple[str, str]] = types.MappingProxyType({
    "PUSH_EXC_INFO": (_CATCHES, "move it out of the function: a tracer's question may be caught"),
    "BEFORE_WITH": (_CATCHES, "move it out of the function"),
    "STORE_GLOBAL": ("writes to a global name", _STATE),
    "DELETE_GLOBAL": ("deletes a global name", _STATE),
    "STORE_ATTR": ("sets an attribute of an object", _STATE),
    "DELETE_ATTR": ("deletes an attribute", _STATE),
    "STORE_SUBSCR": ("writes into a list or dictionary", _OWN_NAME),
    "DELETE_SUBSCR": ("deletes from a list or dictionary", _OWN_NAME),
    "STORE_SLICE": ("writes into a list", _OWN_NAME),
    "IMPORT_NAME": ("imports while it runs", "import at the top of the module"),
    "MATCH_CLASS": ("asks an object for its class", _FLOATS),
    "MATCH_SEQUENCE": ("asks an object for its class", _FLOATS),
    "MATCH_MAPPING": ("asks an object for its class", _FLOATS),
    "YIELD_VALUE": ("is a generator, or uses one", "write a loop"),
    "RETURN_GENERATOR": ("is a generator, or uses one", "write a loop"),
    "BUILD_MAP": ("builds a dictionary", _OWN_NAME),
    "BUILD_CONST_KEY_MAP": ("builds a dictionary", _OWN_NAME),
    "BUILD_SET": ("builds a set", _OWN_NAME),
    "CALL_FUNCTION_EX": ("calls with a list of arguments", "write the arguments one by one"),
    "isinstance": ("asks what kind of thing a value is (isinstance)", _FLOATS),
    "type": ("asks what kind of thing a value is (type)", _FLOATS),
    "callable": ("asks what kind of thing a value is (callable)", _FLOATS),
    "print": ("prints (print)", "print outside the function"),
})  # fmt: skip
_LIBRARY = "use + - * /, abs, round, min, max, and log, exp, sqrt, cos, sin, fabs of math or numpy"
_CALL_IT = "call it where it is named: followed code sees another function of that name"
_NO_TEXT = "leave text out: only the message of an error that is raised may be written"
_IN_A_MESSAGE = _words("""
    BINARY_OP BUILD_STRING CALL CONVERT_VALUE COPY FORMAT_SIMPLE FORMAT_VALUE FORMAT_WITH_SPEC
    LOAD_CONST LOAD_DEREF LOAD_FAST LOAD_FAST_CHECK LOAD_FAST_LOAD_FAST LOAD_GLOBAL
""")
"""What may stand between the text of a message and the raising of its error."""

_BUILTINS = _words("""
    abs all any bool enumerate float int len list max min range reversed round sorted sum tuple zip
""")
_Next: TypeAlias = dis.Instruction | None
_Loaded: TypeAlias = tuple[str, types.ModuleType, bool] | None
"""The name of a module that an instruction leads to, it, and whether what follows is called."""


@dataclass(slots=True)
class Screened:
    """Every Python function that can run, with what each name in it leads to; nothing else can."""

    functions: dict[types.FunctionType, dict[str, str]] = field(default_factory=dict)
    codes: set[types.CodeType] = field(default_factory=set)
    libraries: set[str] = field(default_factory=set)


def screened(function: types.FunctionType, *, methods: frozenset[str] = frozenset()) -> Screened:
    """The functions that code can run, or `Untraceable` with file, line and remedy.

    `methods` are names of methods that it may call, on whatever value: of those that it can hold
    only what it draws from has them.
    """
    found = Screened()
    todo = [function]
    while todo:
        one = todo.pop()
        if one not in found.functions:
            found.functions[one] = {}
            reader = _Reader(one, found, methods)
            reader.screen()
            todo.extend(reader.called)
    return found


def constant_text(value: object) -> str | None:
    """A constant in words that tell it from every other, with its type; None if it is none."""
    if value is None or isinstance(value, bool):
        return repr(value)
    kind = type(value)
    if kind is int:
        return f"int {value}"
    if kind is float:
        return f"float {value.hex()}"  # type: ignore[attr-defined]
    if kind is np.float64:
        return f"numpy.float64 {float(value).hex()}"  # type: ignore[arg-type]
    if kind is Fraction:
        return f"Fraction {value}"
    if kind is str:
        return f"str {value!a}"
    if kind is tuple:
        parts = [constant_text(part) for part in value]  # type: ignore[attr-defined]
        return None if None in parts else f"({', '.join(map(str, parts))})"
    return None


def module_of(function: types.FunctionType) -> str:
    """The name of a function with its module."""
    return f"{function.__module__}:{function.__qualname__}"


@dataclass(slots=True)
class _Reader:
    """One function, read instruction by instruction, its inner functions too."""

    function: types.FunctionType
    found: Screened
    methods: frozenset[str]
    called: list[types.FunctionType] = field(default_factory=list)
    line: int = 0
    inner: frozenset[str] = frozenset()
    callee: object = None

    def screen(self) -> None:
        function, code = self.function, self.function.__code__
        self.line = code.co_firstlineno
        own: Any = function
        if own.__builtins__ is not vars(builtins):
            self.refuse("has built-in functions of its own", "define it in an ordinary module")
        if type(function.__globals__) is not dict:
            self.refuse("has global names of its own kind", "define it in an ordinary module")
        self.inner = frozenset(_inner_names(code))
        values = function.__defaults__ or ()
        names = code.co_varnames[code.co_argcount - len(values) : code.co_argcount]
        given = dict(zip(names, values, strict=True)) | (function.__kwdefaults__ or {})
        for name, value in given.items():
            text = constant_text(value)
            if text is None:
                what = f"has a {type(value).__name__} as the default of {name}"
                self.refuse(what, "use numbers as defaults")
            self.found.functions[function][f"default {name}"] = text
        for one in codes_in(code):
            self.code(one)

    def refuse(self, what: str, remedy: str) -> NoReturn:
        file = self.function.__code__.co_filename
        raise Untraceable(f"{file}, line {self.line}: {what}; {remedy}")

    def code(self, code: types.CodeType) -> None:
        self.found.codes.add(code)
        listed = [None, *_instructions(code), None, None]
        path: _Loaded = None
        for place in range(1, len(listed) - 2):
            at, then = listed[place], listed[place + 1]
            assert at is not None
            lines = [one.positions.lineno for one in (at, then) if one and one.positions]
            self.line = next(filter(None, lines), self.line)
            path = self.instruction(at, listed[place - 1], listed[place + 1 :], path)

    def instruction(
        self, at: dis.Instruction, before: _Next, follow: list[_Next], path: _Loaded
    ) -> _Loaded:
        """Refuse an instruction, or say to which module it leads, if it leads to one."""
        called = _is_called(at, before, follow[0]) and _pushes(follow[0])
        name, enclosed = str(at.argval), self.function.__code__.co_freevars
        match at.opname:
            case "LOAD_GLOBAL":
                if name.startswith("__") and name.endswith("__"):
                    self.refuse(f"reads {name}, which tells how it is run", "leave that out")
                scope = self.function.__globals__
                value = scope[name] if name in scope else vars(builtins).get(name, _MISSING)
                if value is _MISSING:
                    self.refuse(f"reads {name}, which is not there", "define it before")
                if name not in scope and isinstance(value, types.FunctionType):
                    what = f"calls {name}, which replaces a built-in function"
                    self.refuse(what, "leave built-ins alone")
                return self.led(name, value, follow[0], called=called)
            case "LOAD_DEREF" if name in enclosed:
                try:
                    value = (self.function.__closure__ or ())[enclosed.index(name)].cell_contents
                except ValueError:
                    what = f"reads {name} of the enclosing function too early"
                    self.refuse(what, "define it before")
                return self.led(f"closure {name}", value, follow[0], called=called)
            case "LOAD_ATTR" | "LOAD_METHOD":
                if path is None and name in self.methods and called:
                    return None
                if path is None:
                    known = ", ".join(f"run.{one}" for one in sorted(self.methods))
                    programs = f"call {known} only, and make lists by [... for ...]"
                    self.refuse(f"asks for .{name}", programs if self.methods else _LIBRARY)
                module_name, module, module_called = path
                if name not in vars(module) or name.startswith("__"):
                    what = f"asks for {module_name}.{name}, which is not there"
                    self.refuse(what, "correct the name")
                called = called or module_called
                full = f"{module_name}.{name}"
                return self.led(full, vars(module)[name], follow[0], called=called)
            case "STORE_DEREF" | "DELETE_DEREF":
                if name in enclosed:
                    self.refuse(f"writes to {name} of the enclosing function", _STATE)
            case "IS_OP":
                self.refuse("asks whether two things are one (is)", "compare with == instead")
            case "CALL_INTRINSIC_1" if at.arg not in (5, 6):  # unary plus, and a list to a tuple
                self.refuse("does what cannot be followed", _TOP)
            case "MAKE_FUNCTION" | "SET_FUNCTION_ATTRIBUTE":
                self.check_made(before, follow[0])
            case kind if kind.startswith("FORMAT_") or kind == "CONVERT_VALUE":
                self.check_message(follow)
            case "BINARY_OP" if at.argrepr in ("%", "%="):
                remedy = "use round(x / step), or an f-string in the message of an error"
                self.refuse("takes a remainder or writes text (%)", remedy)
            case "LOAD_CONST" if isinstance(at.argval, frozenset):
                if follow[0] is None or follow[0].opname != "CONTAINS_OP":
                    self.refuse("goes through a set, in no fixed order", "use a tuple")
            case kind if kind not in _INSTRUCTIONS and kind != "LOAD_DEREF":
                what, remedy = _WHY.get(kind, (f"does what cannot be followed ({kind})", _TOP))
                self.refuse(what, remedy)
        self.check_inner(at, called=called)
        return None

    def check_made(self, before: _Next, then: _Next) -> None:
        """Refuse a function made here that is not given a name at once; a comprehension has none.

        Names of functions made here are called and nothing else: `check_inner`.
        """
        made = None if before is None else before.argval
        comprehension = isinstance(made, types.CodeType) and made.co_name == "<listcomp>"
        following = "" if then is None else then.opname
        if not comprehension and not following.startswith(("STORE_", "SET_FUNCTION_")):
            self.refuse("passes on a function that it makes", "give it a name, and call it")

    def check_inner(self, at: dis.Instruction, *, called: bool) -> None:
        """Refuse the name of a function made here where it is not called."""
        if not at.opname.startswith(("LOAD_FAST", "LOAD_DEREF", "STORE_FAST_LOAD_FAST")):
            return
        if at.opname == "LOAD_FAST_AND_CLEAR":  # put aside, and put back to its own name
            return
        names = at.argval if isinstance(at.argval, tuple) else (at.argval,)
        loaded = names[1:] if at.opname == "STORE_FAST_LOAD_FAST" else names
        wrong = [n for n in (loaded[:-1] if called else loaded) if n in self.inner]
        if wrong:
            self.refuse(f"uses the function {wrong[0]} as a value", _CALL_IT)

    def check_message(self, follow: list[_Next]) -> None:
        names = [None if one is None else one.opname for one in follow]
        end = next((k for k, name in enumerate(names) if name not in _IN_A_MESSAGE), 0)
        raised = names[end] == "RAISE_VARARGS" and names[:end].count("CALL") == 1
        error = isinstance(self.callee, type) and self.callee in ERRORS
        if not raised or names[end - 1] != "CALL" or not error:
            self.refuse("writes text", _NO_TEXT)

    def led(self, name: str, value: Any, then: _Next, *, called: bool) -> _Loaded:
        """What a name leads to: kept if it is fixed and known, refused else."""
        if type(value) is types.ModuleType:
            if then is None or then.opname not in ("LOAD_ATTR", "LOAD_METHOD"):
                self.refuse(f"uses the module {name} as a value", "write module.function")
            return name, value, called
        text = self.text(name, value)
        raised = then is not None and then.opname == "RAISE_VARARGS"
        held = not called or not _pushes(then)
        if constant_text(value) is None and held and not raised:
            self.refuse(f"uses the function {name} as a value", _CALL_IT)
        if called:
            self.callee = value
        self.found.functions[self.function][name] = text
        return None

    def text(self, name: str, value: Any) -> str:
        constant = constant_text(value)
        if constant is not None:
            return constant
        if value is clamp or value is round_to:
            self.found.libraries.add("lastbit")
            return f"lastbit {value.__name__}"
        if isinstance(value, types.FunctionType):
            for module in (value.__module__, value.__globals__.get("__name__")):
                root = str(module).partition(".")[0]
                if root in sys.stdlib_module_names or root == "numpy":
                    self.refuse(f"calls {value.__module__}.{value.__name__}", _LIBRARY)
            self.called.append(value)
            return f"function {module_of(value)}"
        known = library_name(value)
        if known is not None:
            self.found.libraries.add(known.partition(".")[0])
            return f"built-in {known}"
        if not isinstance(value, type) or value not in ERRORS:
            self.refuse(*_why(name, value))
        return f"built-in builtins.{value.__name__}"


_MISSING = object()


def codes_in(code: types.CodeType) -> Iterator[types.CodeType]:
    """A code object and those of the functions made inside, at any depth."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from codes_in(constant)


def _instructions(code: types.CodeType) -> list[dis.Instruction]:
    beside = ("CACHE", "PRECALL", "EXTENDED_ARG")
    return [at for at in dis.get_instructions(code) if at.opname not in beside]


def _is_called(at: dis.Instruction, before: _Next, then: _Next) -> bool:
    """Whether Python's compiler loads it in order to call it: a NULL goes with it."""
    if at.opname == "LOAD_METHOD":
        return True
    if at.opname == "LOAD_GLOBAL" or (at.opname == "LOAD_ATTR" and sys.version_info >= (3, 12)):
        if bool((at.arg or 0) & 1):
            return True
    beside = then if sys.version_info >= (3, 13) else before
    return beside is not None and beside.opname == "PUSH_NULL"


def _pushes(then: _Next) -> bool:
    """Whether what is to be called stays where it is: arguments follow, or the call itself."""
    if then is None:
        return False
    if then.opname in ("BUILD_LIST", "BUILD_TUPLE"):
        return then.arg == 0
    return then.opname.startswith(("LOAD_", "CALL", "PUSH_NULL", "KW_NAMES", "NOP"))


def _inner_names(code: types.CodeType) -> Iterator[str]:
    """The names that functions made inside are given, at any depth."""
    for at, then in (pair for one in codes_in(code) for pair in pairwise(_instructions(one))):
        if at.opname in ("MAKE_FUNCTION", "SET_FUNCTION_ATTRIBUTE") and "STORE_" in then.opname:
            yield str(then.argval[0] if isinstance(then.argval, tuple) else then.argval)


def library_name(value: Any) -> str | None:
    """The name of a library's function that code may call, told by the object and not by a name."""
    if isinstance(value, types.BuiltinFunctionType):
        owner: Any = value.__self__
        if owner is math and vars(math).get(value.__name__) is value:
            return f"math.{value.__name__}"
        if owner is builtins and value.__name__ in _BUILTINS:
            return f"builtins.{value.__name__}"
    if isinstance(value, type) and value.__name__ in _BUILTINS:
        return f"builtins.{value.__name__}" if vars(builtins)[value.__name__] is value else None
    if value is Fraction:
        return "fractions.Fraction"
    if value is np.float64 or value is np.clip:
        return f"numpy.{value.__name__}"
    if isinstance(value, np.ufunc) and UFUNCS.get(value.__name__, (None,))[0] is value:
        return f"numpy.{value.__name__}"
    return None


def _why(name: str, value: Any) -> tuple[str, str]:
    called = getattr(value, "__name__", None)
    if callable(value) and isinstance(called, str):
        module = getattr(value, "__module__", None) or type(value).__module__
        if module == "builtins" and called in _WHY:
            return _WHY[called]
        return f"calls {module}.{called}", _LIBRARY
    what = f"reads {name}, a {type(value).__name__}, which may change between calls"
    return what, "read numbers, texts and tuples of them only"
