"""Which code can be followed at all: what runs reads nothing but its arguments and constants.

Theorem  every value that screened code can hold is an input, a number, a text, None, a fresh list
         or tuple or range of these, or one of the functions named below; every operation on them
         is a function of its operands, and a marker records what it is asked. So the code keeps no
         state, cannot ask for a type, and its answer depends on its arguments alone. By induction
         over the instructions: a load gives such a value (anything else that a name leads to is
         refused), a call calls such a function, and no instruction outside the list runs
Differs  strict: code that catches exceptions, writes to anything but its own names, asks objects
         for attributes or calls what is not listed is refused, with file, line and a remedy,
         though it may be right. What the interpreter, `math` and numpy do is believed
Checked  tests/verify/test_screening.py, tests/verify/test_sloppy.py
"""

from __future__ import annotations

import builtins
import dis
import math
import re
import sys
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np

from lastbit.errors import Untraceable
from lastbit.verify.traced import UFUNCS, clamp, round_to

__all__ = ["Read", "Screened", "constant_text", "is_known", "module_of", "screened"]

_TOP = "move that out of the function, and pass numbers"
_INSTRUCTIONS = frozenset(
    re.findall(
        r"\w+",
        """
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
        """,
    )
)
"""What may run, in Python 3.11 to 3.13; loads, stores and `is` are looked at one by one."""

_INTRINSICS = frozenset({5, 6})  # unary plus, and a list to a tuple
_CATCHES = "catches exceptions or opens a context around its steps"
_WHY: Mapping[str, tuple[str, str]] = types.MappingProxyType(
    {
        "PUSH_EXC_INFO": (
            _CATCHES,
            "move it out of the function: a tracer's question may be caught",
        ),
        "BEFORE_WITH": (_CATCHES, "move it out of the function"),
        "STORE_GLOBAL": ("writes to a global name", "return what changes: no state between calls"),
        "DELETE_GLOBAL": ("deletes a global name", "return what changes: no state between calls"),
        "STORE_ATTR": (
            "sets an attribute of an object",
            "return what changes: no state between calls",
        ),
        "DELETE_ATTR": ("deletes an attribute", "return what changes: no state between calls"),
        "STORE_SUBSCR": ("writes into a list or dictionary", "give each number its own name"),
        "DELETE_SUBSCR": ("deletes from a list or dictionary", "give each number its own name"),
        "STORE_SLICE": ("writes into a list", "give each number its own name"),
        "IMPORT_NAME": ("imports while it runs", "import at the top of the module"),
        "MATCH_CLASS": ("asks an object for its class", "leave that out: inputs are floats"),
        "MATCH_SEQUENCE": ("asks an object for its class", "leave that out: inputs are floats"),
        "MATCH_MAPPING": ("asks an object for its class", "leave that out: inputs are floats"),
        "YIELD_VALUE": ("is a generator, or uses one", "write a loop"),
        "RETURN_GENERATOR": ("is a generator, or uses one", "write a loop"),
        "BUILD_MAP": ("builds a dictionary", "give each number its own name"),
        "BUILD_CONST_KEY_MAP": ("builds a dictionary", "give each number its own name"),
        "BUILD_SET": ("builds a set", "give each number its own name"),
        "CALL_FUNCTION_EX": ("calls with a list of arguments", "write the arguments one by one"),
    }
)
_LIBRARY = "use + - * /, abs, round, min, max, and log, exp, sqrt, fabs of math or numpy"
_ASKS = "asks what kind of thing a value is"
_BUILTIN_WHY: Mapping[str, tuple[str, str]] = types.MappingProxyType(
    {
        "isinstance": (_ASKS, "leave that out: inputs are floats"),
        "type": (_ASKS, "leave that out: inputs are floats"),
        "callable": (_ASKS, "leave that out: inputs are floats"),
        "print": ("prints", "print outside the function"),
    }
)
_BUILTINS = frozenset(
    re.findall(
        r"\w+",
        """
        abs all any bool enumerate float int len list max min range reversed round sorted sum tuple
        zip
        """,
    )
)
_ERRORS = frozenset(
    {ArithmeticError, AssertionError, IndexError, KeyError, NotImplementedError, OverflowError}
    | {RuntimeError, TypeError, ValueError, ZeroDivisionError}
)


@dataclass(frozen=True, slots=True)
class Read:
    """A name that a function reads, and what it leads to, in words that can be compared."""

    name: str
    leads_to: str


@dataclass(slots=True)
class Screened:
    """Every Python function that can run, with what each reads; nothing else can run."""

    functions: dict[types.FunctionType, list[Read]] = field(default_factory=dict)
    codes: set[types.CodeType] = field(default_factory=set)
    libraries: set[str] = field(default_factory=set)


def screened(function: types.FunctionType) -> Screened:
    """The functions that code can run, or `Untraceable` with file, line and remedy."""
    found = Screened()
    todo = [function]
    while todo:
        one = todo.pop()
        if one not in found.functions:
            found.functions[one] = []
            reader = _Reader(one, found)
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
    called: list[types.FunctionType] = field(default_factory=list)
    line: int = 0

    def screen(self) -> None:
        function = self.function
        self.line = function.__code__.co_firstlineno
        own: Any = function
        if own.__builtins__ is not vars(builtins):
            self.refuse("has built-in functions of its own", "define it in an ordinary module")
        given = dict(zip(_last_names(function), function.__defaults__ or (), strict=True))
        for name, value in {**given, **(function.__kwdefaults__ or {})}.items():
            text = constant_text(value)
            if text is None:
                what = f"has a {type(value).__name__} as the default of {name}"
                self.refuse(what, "use numbers as defaults")
            self.read(f"default {name}", text)
        self.code(function.__code__)

    def read(self, name: str, text: str) -> None:
        reads = self.found.functions[self.function]
        if Read(name, text) not in reads:
            reads.append(Read(name, text))

    def refuse(self, what: str, remedy: str) -> NoReturn:
        file = self.function.__code__.co_filename
        raise Untraceable(f"{file}, line {self.line}: {what}; {remedy}")

    def code(self, code: types.CodeType) -> None:
        self.found.codes.add(code)
        listed = [i for i in dis.get_instructions(code) if i.opname not in ("CACHE", "PRECALL")]
        follows = iter([*listed[1:], None])
        path: tuple[str, Any] | None = None
        for at in listed:
            then = next(follows)
            self.line = _line(at) or (_line(then) if then is not None else None) or self.line
            path = self.instruction(at, then, code, path)
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                self.code(constant)

    def instruction(
        self,
        at: dis.Instruction,
        then: dis.Instruction | None,
        code: types.CodeType,
        path: tuple[str, Any] | None,
    ) -> tuple[str, Any] | None:
        """Refuse an instruction, or say to which module it leads, if it leads to one."""
        match at.opname:
            case "LOAD_GLOBAL":
                name = str(at.argval)
                return self.led(name, self.global_value(name), then)
            case "LOAD_DEREF":
                if at.argval in self.function.__code__.co_freevars:
                    return self.led(f"closure {at.argval}", self.cell(str(at.argval)), then)
            case "LOAD_ATTR" | "LOAD_METHOD":
                if path is None:
                    self.refuse(f"asks for .{at.argval}", _LIBRARY)
                name, module = f"{path[0]}.{at.argval}", path[1]
                if str(at.argval) not in vars(module):
                    self.refuse(f"asks for {name}, which is not there", "correct the name")
                return self.led(name, vars(module)[str(at.argval)], then)
            case "STORE_DEREF" | "DELETE_DEREF":
                if at.argval in self.function.__code__.co_freevars:
                    what = f"writes to {at.argval} of the enclosing function"
                    self.refuse(what, "return what changes: no state between calls")
            case "IS_OP":
                self.refuse("asks whether two things are one (is)", "compare with == instead")
            case "CALL_INTRINSIC_1" if at.arg not in _INTRINSICS:
                self.refuse("does what cannot be followed", _TOP)
            case name if name not in _INSTRUCTIONS:
                what, remedy = _WHY.get(name, (f"does what cannot be followed ({name})", _TOP))
                self.refuse(what, remedy)
        return None

    def global_value(self, name: str) -> Any:
        scope = self.function.__globals__
        if name in scope:
            return scope[name]
        if name not in vars(builtins):
            self.refuse(f"reads {name}, which is not there", "define it before")
        value = vars(builtins)[name]
        if isinstance(value, types.FunctionType):
            self.refuse(
                f"calls {name}, which replaces a built-in function", "leave built-ins alone"
            )
        return value

    def cell(self, name: str) -> Any:
        """What a name of the enclosing function holds."""
        place = self.function.__code__.co_freevars.index(name)
        try:
            return (self.function.__closure__ or ())[place].cell_contents
        except ValueError:
            self.refuse(f"reads {name} of the enclosing function too early", "define it before")

    def led(self, name: str, value: Any, then: dis.Instruction | None) -> tuple[str, Any] | None:
        """What a name leads to: kept if it is fixed and known, refused else."""
        if type(value) is types.ModuleType:
            if then is None or then.opname not in ("LOAD_ATTR", "LOAD_METHOD"):
                self.refuse(f"uses the module {name} as a value", "write module.function")
            return name, value
        self.read(name, self.text(name, value))
        return None

    def text(self, name: str, value: Any) -> str:
        constant = constant_text(value)
        if constant is not None:
            return constant
        if value is clamp or value is round_to:
            self.found.libraries.add("lastbit")
            return f"lastbit {value.__name__}"
        if isinstance(value, types.FunctionType):
            if _of_a_library(value):
                self.refuse(f"calls {value.__module__}.{value.__name__}", _LIBRARY)
            self.called.append(value)
            return f"function {module_of(value)}"
        known = _known(value)
        if known is not None:
            self.found.libraries.add(known.partition(".")[0])
            return f"built-in {known}"
        if not isinstance(value, type) or value not in _ERRORS:
            self.refuse(*_why(name, value))
        return f"built-in builtins.{value.__name__}"


def _line(at: dis.Instruction) -> int | None:
    return None if at.positions is None else at.positions.lineno


def is_known(value: object) -> bool:
    """Whether screened code may call it: a function of a library that is on the list."""
    return _known(value) is not None


def _known(value: Any) -> str | None:
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
    if value is np.float64:
        return "numpy.float64"
    if value is np.clip:
        return "numpy.clip"
    if isinstance(value, np.ufunc):
        ufunc = UFUNCS.get(value.__name__)
        if ufunc is not None and ufunc[0] is value:
            return f"numpy.{value.__name__}"
    return None


def _why(name: str, value: Any) -> tuple[str, str]:
    called = getattr(value, "__name__", None)
    if callable(value) and isinstance(called, str):
        if getattr(value, "__module__", None) == "builtins" and called in _BUILTIN_WHY:
            what, remedy = _BUILTIN_WHY[called]
            return f"{what} ({called})", remedy
        module = getattr(value, "__module__", None) or type(value).__module__
        return f"calls {module}.{called}", _LIBRARY
    return (
        f"reads {name}, a {type(value).__name__}, which may change between calls",
        "read numbers, texts and tuples of them only",
    )


def _of_a_library(function: types.FunctionType) -> bool:
    root = (function.__module__ or "").split(".")[0]
    return root in sys.stdlib_module_names or root == "numpy"


def _last_names(function: types.FunctionType) -> Iterator[str]:
    """The positional arguments that have a default."""
    code = function.__code__
    count = len(function.__defaults__ or ())
    names = code.co_varnames[: code.co_argcount]
    return iter(names[len(names) - count :] if count else ())
