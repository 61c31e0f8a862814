"""Code cannot tell the function that is followed from the one that runs: all that does is refused.

The functions of `sloppy/told.py` were certified once: they ask a function, a module, the type of
the sign or an address what they are. The prover's screen and the checker's refuse them, each alone.
"""

from __future__ import annotations

import itertools
import math
import types
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from lastbit.checker import code as checker
from lastbit.checker.dispatch import problem_of
from lastbit.checker.numbers import Rejected
from lastbit.checker.one_rounding import readings
from lastbit.errors import LastbitError, NotCertified, Untraceable, WrongType
from lastbit.verify.rounded_code import certified_code, certified_function
from lastbit.verify.running.code import Code
from lastbit.verify.tracing.markers import clamp
from lastbit.verify.tracing.screening import screened
from lastbit.verify.tracing.trace import followed
from tests.cli.running import lastbit
from tests.verify.sloppy import told

ALL = [name for name, f in vars(told).items() if any(f is one for one in told.TELLS + told.VARIES)]
BY_SIGN = {"by_whole_sign", "by_sign_fraction"}  # steps are compared, not instructions
BY_CALLER = {"by_place", "by_signature", "by_fraction", "by_list"}


@pytest.mark.parametrize("function", told.TELLS, ids=lambda f: f.__name__)
def test_it_tells_the_value_where_it_runs(function):
    uniforms = [0.637 + k * 1e-6 for k in range(-150, 151)]
    high = {v: sum(function(v, u, s) == 8.0 for u in uniforms for s in (1, -1)) for v in (-7, -8)}
    assert high[-7] > 0.9 * 602 and high[-8] == 0


@pytest.mark.parametrize("name", ALL)
def test_it_is_refused_with_a_remedy(name):
    for code in (getattr(told, name), Code(f"{told.__name__}:{name}")):
        with pytest.raises(LastbitError) as caught:
            certified_code(code, sensitivity=1, region=(-8, 8))
        assert ";" in str(caught.value)
    with pytest.raises(LastbitError):
        certified_function(
            Code(f"{told.__name__}:{name}"), sensitivity=1, cell="1/4", region=(-8, 8)
        )


@pytest.mark.parametrize("name", sorted(set(ALL) - BY_SIGN - BY_CALLER))
def test_each_screen_refuses_it_alone(name):
    function = getattr(told, name)
    with pytest.raises(Untraceable, match=r", line \d+: .*; "):
        screened(function)
    with pytest.raises(Rejected):
        todo = [function]
        while todo:
            todo.extend(checker._Reader(todo.pop(), {}).called())


USES = {
    "compared": "math.log == math.log",
    "ordered": "math.log < math.exp",
    "contained": "math.log in (1.0, 2.0)",
    "held in a list": "len([math.log])",
    "held in a tuple": "len((1.0, helper))",
    "asked for its truth": "not math.log",
    "passed on": "helper(math.log)",
    "passed by name": "helper(x=math.log)",
    "as a key": "sorted([x], key=helper)",
    "multiplied": "3 * math.log",
    "in text": "len(f'{math.log}')",
    "in text by percent": "len('%s' % helper)",
    "in text with its length": "len(f'{math.log:>40}')",
    "in text as repr": "len(f'{helper!r}')",
    "a class": "float == float",
    "a class of errors": "ValueError == ValueError",
    "numpy's": "np.log == np.log",
    "ours": "clamp == clamp",
    "one or the other": "(math.log or helper)(0.5)",
    "indexed": "(math.log, math.exp)[0](0.5)",
    "kept by a name": "(f := math.log)(0.5)",
    "kept and compared": "((f := helper)(0.5), f)[1] == 1",
    "an inner one kept": "[(g := helper)(y) for y in (1.0,)][0]",
    "made here": "len([lambda: 0])",
    "made and called": "(lambda: 0)()",
    "made and passed": "helper(lambda: 0)",
    "the name of the module": "len(__name__)",
    "the module's text": "len(math.__doc__)",
    "built-ins by name": "len(__builtins__)",
    "a remainder": "int(3) % 2",
    "text of a number": "len(f'{3}')",
    "text of an iterator": "len(f'{zip()}')",
    "order of a set": "[len(n) for n in {'a', 'bc'}][0]",
}


def written(use: str) -> types.FunctionType:
    scope: dict[str, Any] = {"math": math, "np": np, "helper": told.helper, "clamp": clamp}
    exec(f"def function(x):\n    return x + ({use})\n", scope)  # noqa: S102 - one for each use
    return scope["function"]


@pytest.mark.parametrize("use", USES)
def test_nothing_is_done_to_a_function_but_to_call_it(use):
    function = written(USES[use])
    with pytest.raises(Untraceable):
        screened(function)
    with pytest.raises(Rejected):
        checker._Reader(function, {}).called()


CALLS = (
    "math.log(2.0)", "helper(1.0)", "helper(x=1.0)", "clamp(1.0, 0.0, 2.0)", "np.log(2.0)",
    "float(3)", "len([1.0, 2.0])", "helper(helper(math.log(2.0)))",
    "[math.log(k) for k in (1.0,)][0]", "float(1.0 in {1.0, 2.0})",
)  # fmt: skip


@pytest.mark.parametrize("use", CALLS)
def test_calls_are_followed(use):
    function = written(use)
    screened(function)
    checker._Reader(function, {}).called()
    assert followed(function, {"x": "x"}, {}).rows


@pytest.mark.parametrize("pair", list(itertools.pairwise(CALLS)), ids=str)
def test_many_names_are_no_obstacle(pair):
    """Beyond 256 names the compiler writes longer instructions."""
    names = "\n".join(f"    x = x + K{k}" for k in range(300))
    scope: dict[str, Any] = {f"K{k}": 0.0 for k in range(300)}
    scope |= {"math": math, "np": np, "helper": told.helper, "clamp": clamp}
    exec(f"def function(x):\n{names}\n    return x + {pair[0]} - {pair[1]}\n", scope)  # noqa: S102
    screened(scope["function"])
    checker._Reader(scope["function"], {}).called()


# ---------------------------------------------------------------- signs, parameters, forms


def halved(value, u, sign):
    return 0.25 * round((value + sign * math.log(u)) / 0.25)


def third(value, u, sign):
    return 0.25 * round((value + sign / 3 * 3 * math.log(u)) / 0.25)


def test_a_sign_is_followed_as_both_of_its_types():
    roles = {"value": "value", "u": "u"}
    for function in (halved, third):
        for sign in (1.0, -1.0):
            assert followed(function, roles, {"sign": sign}, "sign").rows
    with pytest.raises(Untraceable, match="takes other steps for the sign 1"):
        followed(told.by_whole_sign, roles, {"sign": 1.0}, "sign")


@pytest.mark.parametrize("given", [True, None, "1", (1.0,), [1.0], math.log])
def test_a_parameter_is_a_number(given):
    def mechanism(value, u, sign, scale=1.0):
        return 0.25 * round((value + sign * scale * math.log(u)) / 0.25)

    with pytest.raises(WrongType, match="pass a number"):
        certified_code(mechanism, sensitivity=1, region=(-8, 8), parameters={"scale": given})


def test_a_keyword_argument_has_the_role_of_its_name():
    def crossed(value, *, sign, u):
        return 0.25 * round((value + sign * math.log(u)) / 0.25)

    assert certified_code(crossed, sensitivity=1, region=(-8, 8)).epsilon > 1


def test_a_clamp_without_an_end_is_refused():
    def open_below(value, u, sign):
        return clamp(0.25 * round((value + sign * math.log(u)) / 0.25), None, 8.0)

    with pytest.raises(Untraceable, match="pass both ends"):
        certified_code(open_below, sensitivity=1, region=(-8, 8))


@pytest.mark.parametrize(
    "form",
    [
        lambda value, u, sign: value + 0.25 * round(sign * math.log(u) / 0.25),
        lambda value, u, sign: abs(0.25 * round((value + sign * math.log(u)) / 0.25)),
        lambda value, u, sign: 0.0 * round(value + sign * math.log(u)),
    ],
)
def test_another_form_is_refused_with_the_one_that_is_wanted(form):
    with pytest.raises(NotCertified, match=r"Return step \* round\(x / step\)"):
        certified_code(form, sensitivity=1, region=(-8, 8))


def test_the_checker_refuses_a_fraction_that_is_no_float():
    graph = checker_graph([["fraction", "8/3"]])
    with pytest.raises(Rejected, match="not a float"):
        list(readings(graph.nodes, len(graph.nodes) - 1))
    whole = checker_graph([["fraction", "8"]])
    cells = [cell for _, cell, *_ in readings(whole.nodes, len(whole.nodes) - 1)]
    assert cells == [1, Fraction(1, 8)]  # round(x) with x = value * 8, or of cells of value


def checker_graph(constant: list[list[str]]) -> Any:
    from lastbit.checker.steps import Graph

    graph = Graph()
    graph.meaning([["input", "value"], *constant, ["mul", 0, 1], ["round", 2], ["div", 3, 1]])
    return graph


def scaled(value, u, sign, scale=0.001):
    return min(max(0.25 * round((value + sign * scale * math.log(u)) / 0.25), -2.0), 2.0)


def test_check_shows_the_parameters(tmp_path):
    proof = tmp_path / "proof.json"
    wanted = ["--grid", "1/4", "--region", "-2", "2", "--epsilon", "1.01", "--parameter", "scale=1"]
    made = lastbit("verify", f"{__name__}:scaled", *wanted, "--certificate", str(proof))
    assert made.exit_code == 0, made.output
    assert "scale = 1.0" in lastbit("check", str(proof)).output
    code = Code(f"{__name__}:scaled", scale=1.0)
    assert problem_of(certified_code(code, sensitivity=1).certificate()) is None
