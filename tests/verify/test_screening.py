"""Markers keep every question, and screened code cannot do what is not on the list."""

from __future__ import annotations

import contextlib
import copy
import decimal
import dis
import functools
import json
import logging
import math
import operator
import pickle
import statistics
import struct
import types
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from lastbit.checker import code as checker
from lastbit.errors import Untraceable
from lastbit.verify.language.expressions import Condition, Variable
from lastbit.verify.tracing.agreement import agree, recorded
from lastbit.verify.tracing.markers import Run, Split, Traced, marked, marker
from lastbit.verify.tracing.screening import _INSTRUCTIONS, screened
from lastbit.verify.tracing.steps import Step, outcome, replayed, rows_of
from lastbit.verify.tracing.trace import followed, trace

# ---------------------------------------------------------------- markers


def a_marker() -> tuple[Traced, Run]:
    run = Run(lambda: "here.py, line 1:", ())
    return marker(Variable("x"), Step("input", rest=("x",)), run), run


def _entered(x: Any) -> None:
    with x:
        pass


def _matched(x: Any) -> bool:
    match x:
        case float():
            return True
        case _:
            return False


LOOKS: dict[str, Callable[[Any], Any]] = {
    "hash": hash,
    "str": str,
    "repr": repr,
    "format": lambda x: f"{x}",
    "format spec": lambda x: format(x, ".3f"),
    "percent": lambda x: "%s" % x,  # noqa: UP031
    "percent f": lambda x: "%f" % x,  # noqa: UP031
    "str.format": "{}".format,
    "join": lambda x: ",".join(map(str, [x])),
    "ascii": ascii,
    "bytes": bytes,
    "class": lambda x: x.__class__,
    "isinstance": lambda x: isinstance(x, float),
    "isinstance of many": lambda x: isinstance(x, (int, str)),
    "isinstance of an abstract class": lambda x: isinstance(x, types.GeneratorType),
    "bool": bool,
    "not": lambda x: not x,
    "int": int,
    "float": float,
    "complex": complex,
    "index": operator.index,
    "range": range,
    "len": len,
    "iter": iter,
    "list": list,
    "tuple": tuple,
    "contains": lambda x: 1.0 in x,
    "in a list": lambda x: x in [1.0, 2.0],
    "in a set": lambda x: x in {1.0},
    "in a dict": lambda x: x in {1.0: 2},
    "dict.get": {1.0: 2}.get,
    "dict key": lambda x: {x: 1},
    "set": lambda x: {x},
    "call": lambda x: x(),
    "with": _entered,
    "subscript": lambda x: x[0],
    "slice": lambda x: x[:1],
    "attribute": lambda x: x.real,
    "getattr": lambda x: getattr(x, "imag", None),
    "hasattr": lambda x: hasattr(x, "hex"),
    "hasattr dunder": lambda x: hasattr(x, "__float__"),
    "is_integer": lambda x: x.is_integer(),
    "as_integer_ratio": lambda x: x.as_integer_ratio(),
    "setattr": lambda x: setattr(x, "seen", 1),
    "delattr": lambda x: delattr(x, "seen"),
    "dir": dir,
    "vars": vars,
    "sizeof": lambda x: x.__sizeof__(),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": pickle.dumps,
    "json": json.dumps,
    "struct": lambda x: struct.pack("<d", x),
    "fraction": Fraction,
    "cache": functools.cache(lambda x: 1.0),
    "match a class": _matched,
    "sorted": lambda x: sorted([x, 1.0]),
    "max of a list": lambda x: max([x, 1.0]),
    "statistics": lambda x: statistics.mean([x, x]),
    "floor": math.floor,
    "ceil": math.ceil,
    "trunc": math.trunc,
    "isnan": math.isnan,
    "isclose": lambda x: math.isclose(x, 1.0),
    "math.log": math.log,
    "fsum": lambda x: math.fsum([x]),
    "power": lambda x: x**2,
    "power of": lambda x: 2**x,
    "floor division": lambda x: x // 1,
    "modulo": lambda x: x % 1,
    "divmod": lambda x: divmod(x, 1),
    "and": lambda x: x & 1,
    "shift": lambda x: x << 1,
    "invert": lambda x: ~x,
    "matmul": lambda x: x @ x,
    "array": np.array,
    "asarray": np.asarray,
    "float64": np.float64,
    "array of it": lambda x: np.array([x], dtype=float),
    "isfinite": np.isfinite,
    "where": lambda x: np.where(x, 1, 2),
    "numpy sum": np.sum,
    "interp": lambda x: np.interp(x, [0, 1], [0, 1]),
    "equal to text": lambda x: x == "1",
    "equal to None": lambda x: x == None,  # noqa: E711
    "less than text": lambda x: x < "1",
    "less than infinity": lambda x: x < math.inf,
    "less than nan": lambda x: x < math.nan,  # noqa: PLW0177
    "equal to a list": lambda x: x == [],
    "equal": lambda x: x == 1.0,
    "plus text": lambda x: x + "1",
    "plus decimal": lambda x: x + decimal.Decimal(1),
    "times a list": lambda x: [1] * x,
    "round digits": lambda x: round(x, 2),
    "logging": lambda x: logging.LogRecord("n", 1, "p", 1, "%s", (x, x), None).getMessage(),
    "reversed": reversed,
    "sum": sum,
    "bytearray": bytearray,
}


BLIND: dict[str, Callable[[Any], Any]] = {
    "float.hex": lambda x: float.hex(x),  # noqa: PLW0108
    "decimal": lambda x: decimal.Decimal(x),  # noqa: PLW0108
    "memoryview": lambda x: memoryview(x),  # noqa: PLW0108
    "is": lambda x: x is math.pi,
    "type": lambda x: type(x) is float,
    "id": lambda x: id(x),  # noqa: PLW0108
    "callable": lambda x: callable(x),  # noqa: PLW0108
}
"""What C code sees without asking: the screen is there for it."""


@pytest.mark.parametrize("look", BLIND)
def test_a_look_that_asks_nothing_is_screened(look):
    x, run = a_marker()
    with contextlib.suppress(TypeError):
        BLIND[look](x)
    assert not run.refusals and not run.splits
    with pytest.raises(Untraceable):
        screened(BLIND[look])  # type: ignore[arg-type]


@pytest.mark.parametrize("look", LOOKS)
def test_a_look_at_a_marker_is_kept_even_if_it_is_swallowed(look):
    x, run = a_marker()
    try:
        result = LOOKS[look](x)
    except BaseException:  # as careless code does
        result = None
    assert run.refusals or run.splits, f"{look} gave {type(result).__name__}"
    for refusal in run.refusals:
        assert "here.py, line 1:" in str(refusal) and ";" in str(refusal)


HARMLESS = frozenset(
    {"__new__", "__init__", "__init_subclass__", "__subclasshook__", "__doc__", "__module__"}
    | {"__slots__", "__class_getitem__", "__getformat__", "__class__", "__getattribute__"}
    | {"__static_attributes__", "__firstlineno__"}
)
"""What belongs to the class and not to a value, and what all attributes go through."""


def test_no_special_method_is_left_to_object():
    """A method that Python's own types have is the marker's own, or it does not exist at all."""
    kinds = (object, float, int, complex, str, bytes, list, dict, set, tuple, Fraction, np.float64)
    names = {name for kind in kinds for name in dir(kind) if name.startswith("__")} - HARMLESS
    for name in sorted(names):
        inherited = hasattr(Traced, name) and name not in vars(Traced)
        assert not inherited, name
    assert set(vars(object)) & names <= set(vars(Traced))


def test_arithmetic_leaves_no_question():
    x, run = a_marker()
    for result in (
        x + 1,
        1 - x,
        x * 2.0,
        x / 3,
        -x,
        +x,
        abs(x),
        round(x),
        np.log(x),
        x * Fraction(1),
    ):
        assert type(result) is Traced
        marked(result)
    assert not run.refusals and not run.splits


def test_a_question_answered_twice_is_asked_once():
    _, run = a_marker()
    assert run.known == ()
    with pytest.raises(Split):
        _ = a_marker()[0] > 3.0


# ---------------------------------------------------------------- the screen


def test_the_two_programs_let_the_same_instructions_run():
    """The list of one and the pattern of the other agree on all instructions of this Python."""
    apart = {"LOAD_ATTR", "LOAD_METHOD", "LOAD_GLOBAL", "LOAD_DEREF", "STORE_DEREF", "DELETE_DEREF"}
    for name in dis.opmap:
        if name in apart or name in ("IS_OP", "CALL_INTRINSIC_1", "EXTENDED_ARG"):
            continue
        assert (name in _INSTRUCTIONS) == bool(checker._MAY_RUN.fullmatch(name)), name
    for name in ("IS_OP", "PUSH_EXC_INFO", "STORE_GLOBAL", "STORE_ATTR", "IMPORT_NAME"):
        assert not checker._MAY_RUN.fullmatch(name) and name not in _INSTRUCTIONS


def with_positions(x):
    total = x

    def inner(y):
        return y + len([2 * z for z in (1.0, 2.0)])

    return inner(total) if total is not None else 0.0


def test_inner_functions_are_screened_too():
    found = screened(with_positions)  # type: ignore[arg-type]
    assert {code.co_name for code in found.codes} >= {"with_positions", "inner"}

    def outer(x):
        def inner(y):
            return y if type(y) is float else 0.0

        return inner(x)

    with pytest.raises(Untraceable, match="inputs are floats"):
        screened(outer)  # type: ignore[arg-type]


def test_own_built_ins_are_refused():
    code = compile("def f(x): return min(x, 1.0)", "own", "exec")
    scope: dict[str, Any] = {"__builtins__": {"min": max}}
    exec(code, scope)  # noqa: S102 - as a careless loader does
    with pytest.raises(Untraceable, match="built-in functions of its own"):
        screened(scope["f"])


# ---------------------------------------------------------------- agreement


def doubled(x):
    return 2.0 * x if x > 1.0 else x / 3


def test_the_same_instructions_run_for_the_same_answers():
    found = followed(doubled, {"x": "x"}, {})
    assert len(found.paths) == 2
    codes = frozenset(found.screen.codes)
    for known, path in found.paths:
        (condition, holds), *_ = known
        assert isinstance(condition, Condition)
        x = 2.0 if condition.holds(Fraction(2)) == holds else 0.5
        assert recorded(functools.partial(doubled, x), codes)[1] == path


def test_code_that_does_something_else_is_told_by_its_bits():
    found = followed(doubled, {"x": "x"}, {})
    other = {
        "another bit": lambda p: doubled(p["x"]) * (1 + 2**-52),
        "another zero": lambda p: 0.0 + doubled(p["x"]),
        "another type": lambda p: np.float64(doubled(p["x"])),
        "an exception": lambda p: 1 / 0 if p["x"] == 0.5 else doubled(p["x"]),
        "one point": lambda p: 7.0 if p["x"] == 3.0 else doubled(p["x"]),
        "one bound": lambda p: 7.0 if p["x"] == math.nextafter(1.0, 2.0) else doubled(p["x"]),
    }
    at = [{"x": x} for x in (-0.0, 0.0, 0.5, 1.0, math.nextafter(1.0, 2.0), 3.0, 7.5)]
    codes = frozenset(found.screen.codes)
    settings: Any = dict(paths=found.paths, codes=codes, place="here")
    agree(lambda p: doubled(p["x"]), found.rows, at, **settings)
    for name, call in other.items():
        with pytest.raises(Untraceable, match="something else than was followed"):
            agree(call, found.rows, at, **settings)
            raise AssertionError(name)


def test_another_path_with_the_same_outcome_is_refused():
    found = followed(doubled, {"x": "x"}, {})
    codes = frozenset(found.screen.codes)
    crossed = tuple((known, found.paths[1 - k][1]) for k, (known, _) in enumerate(found.paths))
    settings: Any = dict(paths=crossed, codes=codes, place="here")
    with pytest.raises(Untraceable, match="another path"):
        agree(lambda p: doubled(p["x"]), found.rows, [{"x": 0.5}, {"x": 2.0}], **settings)


def test_steps_keep_the_function_that_was_called():
    for function, name in (
        (lambda x: math.log(x), "math.log"),  # noqa: PLW0108
        (lambda x: np.log(x), "numpy.log"),  # noqa: PLW0108
        (lambda x: round(x), "round"),  # noqa: PLW0108
        (lambda x: np.rint(x), "numpy.rint"),  # noqa: PLW0108
        (lambda x: min(3.0, x), "min"),
    ):
        assert followed(function, {"x": "x"}, {}).rows[-1][0] == name
    first = followed(lambda x: min(x, 0.0), {"x": "x"}, {}).rows
    second = followed(lambda x: min(0.0, x), {"x": "x"}, {}).rows
    assert (
        str(replayed(first, {"x": -0.0})) == "-0.0" and str(replayed(second, {"x": -0.0})) == "0.0"
    )


def test_steps_are_written_once_and_replayed_only_where_needed():
    found = followed(lambda x: math.log(x) if x > 0 else 0.0, {"x": "x"}, {})
    assert replayed(found.rows, {"x": -1.0}) == 0.0
    assert outcome(lambda: replayed(found.rows, {"x": 0.0})) == outcome(lambda: 0.0)
    twice = Step("add", (Step("input", rest=("x",)), Step("input", rest=("x",))))
    assert rows_of(twice) == [["input", "x"], ["add", 0, 0]]


def test_a_failure_while_following_names_its_line():
    def fails(x, place=3):
        return x / 2.0 + (1.0, 2.0)[place]

    with pytest.raises(Untraceable, match=r"line \d+: raises IndexError"):
        trace(fails)
