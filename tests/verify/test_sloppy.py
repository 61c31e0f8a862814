"""Careless code is never certified for what it does not do: by the API, at the shell, by forgery.

Each function of `sloppy/` is wrong, which is seen by running it: its outputs tell 2.5 from 3.5, or
the same arguments give it different outputs. Three defences stand alone: code is screened before
it runs, questions to a marker are kept, and the running code is compared with what was followed.
"""

from __future__ import annotations

import importlib
import inspect
import itertools
import json
import sys
import textwrap
import types
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from lastbit.checker import code as checker
from lastbit.checker.dispatch import problem_of
from lastbit.checker.numbers import Rejected
from lastbit.errors import LastbitError, Untraceable
from lastbit.verify.rounded_code import certified_code, certified_function
from lastbit.verify.running.code import Code
from lastbit.verify.running.uniforms import FullPrecision, Grid
from lastbit.verify.tracing.binding import _code, _sha
from lastbit.verify.tracing.screening import Screened
from tests.cli.running import lastbit
from tests.verify import right_code
from tests.verify.sloppy import kept, seen
from tests.verify.sloppy.noise import afresh

WRONG = [
    (module, name)
    for module in (seen, kept)
    for name, function in vars(module).items()
    if any(function is one for one in module.ALL)
]
IDS = [f"{module.__name__.rpartition('.')[2]}-{name}" for module, name in WRONG]
RIGHT = [n for n, f in vars(right_code).items() if any(f is one for one in right_code.CERTIFIED)]


def law(function: Any, value: float) -> Counter[float]:
    """How often each output comes at 512 evenly spread uniforms, with both signs."""
    return Counter(function(value, (k + 0.5) / 512, s) for k in range(512) for s in (1.0, -1.0))


def tells_apart(function: Any) -> bool:
    """Whether an output that 2.5 or 3.5 gives with probability 1/128 never comes from the other."""
    one, two = law(function, 2.5), law(function, 3.5)
    return any(a[r] >= 8 and not b[r] for a, b in ((one, two), (two, one)) for r in a)


def varies(function: Any) -> bool:
    return len({function(2.5, 0.3, 1.0) for _ in range(64)}) > 1


@pytest.mark.parametrize(("module", "name"), WRONG, ids=IDS)
def test_it_is_wrong_and_is_refused(module, name, tmp_path):
    assert varies(getattr(afresh(module), name)) or tells_apart(getattr(afresh(module), name))
    function = getattr(module, name)
    with pytest.raises(LastbitError) as caught:
        certified_code(function, sensitivity=1)
    assert ";" in str(caught.value)  # and says what to do
    if isinstance(caught.value, Untraceable):
        assert ", line " in str(caught.value)
    with pytest.raises(LastbitError):
        certified_function(
            Code(f"{module.__name__}:{name}"), sensitivity=1, cell="1/4", region=(-8, 8)
        )


def test_there_are_enough_of_them():
    assert len(WRONG) == len(seen.ALL) + len(kept.ALL) >= 60


@pytest.mark.parametrize(("module", "name"), WRONG[::6], ids=IDS[::6])
def test_the_command_line_writes_no_certificate(module, name, tmp_path):
    proof = tmp_path / "proof.json"
    wanted = ["--grid", "1/4", "--region", "-8", "8", "--epsilon", "1.01"]
    result = lastbit("verify", f"{module.__name__}:{name}", *wanted, "--certificate", str(proof))
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.stderr
    assert not proof.exists()


def unscreened(function: types.FunctionType) -> Screened:
    """What a screen that refuses nothing would find."""
    found = Screened({function: {}}, set(), set())
    todo = [function.__code__]
    while todo:
        found.codes.add(todo[-1])
        inner = [c for c in todo.pop().co_consts if isinstance(c, types.CodeType)]
        todo.extend(inner)
    return found


@pytest.mark.parametrize(("module", "name"), WRONG, ids=IDS)
def test_kept_questions_and_agreement_refuse_it_without_the_screen(module, name, monkeypatch):
    monkeypatch.setattr(sys.modules["lastbit.verify.tracing.trace"], "screened", unscreened)
    with pytest.raises(LastbitError):
        certified_code(getattr(afresh(module), name), sensitivity=1)


# ---------------------------------------------------------------- right code


def settings(function: Any) -> dict[str, Any]:
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    uniform: Any = FullPrecision() if "sign" in names else Grid(53, first=1)
    return dict(sensitivity=1, cell="1/4", region=(-8, 8), uniform=uniform)


@pytest.mark.thinned(one_in=30)
@pytest.mark.parametrize("name", RIGHT)
def test_right_code_is_certified_and_checked(name):
    code = Code(f"tests.verify.right_code:{name}")
    found, rounds = certified_function(code, **settings(getattr(right_code, name)))
    assert rounds and found.epsilon < 1 + 10**-6
    certificate = found.certificate()
    assert [one["function"] for one in certificate["claim"]["code"]] == [code.name]
    assert problem_of(certificate) is None


def test_there_is_enough_right_code():
    assert len(RIGHT) == len(right_code.CERTIFIED) >= 20


@pytest.mark.parametrize(("function", "remedy"), right_code.REFUSED)
def test_right_code_is_refused_with_a_remedy(function, remedy):
    assert not tells_apart(function)
    with pytest.raises(Untraceable, match=remedy):
        certified_code(function, sensitivity=1)


# ---------------------------------------------------------------- a forger's certificates


@cache
def honest() -> str:
    code = Code("tests.verify.right_code:plain")
    found, _ = certified_function(code, **settings(right_code.plain))
    return json.dumps(found.certificate()["claim"])


def forged(module: types.ModuleType, name: str) -> dict[str, Any]:
    """An honest proof that names careless code, every digest put right."""
    claim: dict[str, Any] = json.loads(honest())
    function = getattr(module, name)
    record = claim["code"][0]
    record["function"] = f"{module.__name__}:{name}"
    if isinstance(function, types.FunctionType):
        record["functions"] = [
            {
                "name": f"{function.__module__}:{function.__qualname__}",
                "source": _sha(inspect.getsource(function)),
                "bytecode": _sha(json.dumps(_code(function.__code__))),
                "reads": {},
            }
        ]
    return claim


@pytest.mark.parametrize(("module", "name"), WRONG, ids=IDS)
def test_the_checker_rejects_an_honest_proof_with_careless_code(module, name, monkeypatch):
    claim = forged(module, name)
    with pytest.raises(Rejected):
        checker.check_code(claim)
    monkeypatch.setattr(checker, "_check_same", lambda record, function: None)
    with pytest.raises(Rejected):  # by running it, too
        checker.check_code(claim)


# ---------------------------------------------------------------- generated

ASKED = (
    "value > 3.0", "3.0 < value", "value >= 3.25", "not value <= 3.0", "value in (3.5, 4.0)",
    "value in [3.5]", "value in {3.5}", "max(value, 3.0) != 3.0", "max([value, 3.0]) > 3.0",
    "sorted([3.0, value])[0] == 3.0", "str(value)[0] == '3'", "f'{value}' == '3.5'",
    "'%s' % value == '3.5'", "'{:.1f}'.format(value) == '3.5'", "repr(value) == '3.5'",
    "type(value) is float and value > 3.0", "isinstance(value, float) and value > 3.0",
    "value.__class__ is float and value > 3.0", "hash(value) == hash(3.5)", "{3.5: 1}.get(value)",
    "math.floor(value) == 3", "math.isclose(value, 3.5)", "int(value) == 3", "value // 1 == 3.0",
    "value % 1 and value > 3.0", "divmod(value, 1)[0] == 3.0", "float(value) > 3.0",
    "value == 3.5", "value != 2.5", "bool(value - 2.5)", "abs(value) > 3.0", "value * 2 > 6.0",
    "round(value) == 4", "round(value, 1) == 3.5", "np.floor(value) == 3.0", "np.isfinite(value) "
    "and value > 3.0", "np.greater(value, 3.0)", "np.array([value])[0] > 3.0", "value is not None "
    "and value > 3.0", "any([value > 3.0])", "all([value > 3.0, True])", "len([1] * (value > 3.0))",
    "[False, True][value > 3.0]", "(lambda x: x > 3.0)(value)", "bool(value > 3.0)",
    "np.float64(value) > 3.0", "value.is_integer() is False and value > 3.0", "id(value) and "
    "value > 3.0", "complex(value).real > 3.0", "struct.pack('<d', value)[6] == 12", "u > 2.0",
    "min(value, 3.0) is not value", "value ** 2 > 9.0", "-value < -3.0", "next(COUNT) > 60",
)  # fmt: skip
AROUND = (
    """
    if {asked}:
        scale = 0.001
    """,
    """
    try:
        if {asked}:
            scale = 0.001
    except Exception:
        pass
    """,
    """
    try:
        scale = 0.001 if {asked} else 1.0
    except BaseException:
        scale = 1.0
    """,
    """
    with suppress(BaseException):
        if {asked}:
            scale = 0.001
    """,
    """
    scale = ({asked}) and 0.001 or 1.0
    """,
    """
    def chosen():
        try:
            return 0.001 if {asked} else 1.0
        finally:
            return 1.0 if False else locals().get("found", 1.0)
    scale = chosen() if not ({asked}) else 0.001
    """,
    """
    for scale in [0.001 if {asked} else 1.0 for _ in (0,)]:
        pass
    """,
    """
    scale = (1.0, 0.001)[1 if {asked} else 0]
    """,
    """
    if sign == 1.0 and ({asked}):
        scale = 0.001
    """,
    """
    if u < 0.5 and ({asked}):
        scale = 0.001
    """,
)
HEAD = """
import itertools, math, struct
from contextlib import suppress
import numpy as np
COUNT = itertools.count()
"""


def generated() -> str:
    parts = [HEAD]
    for number, (asked, around) in enumerate(itertools.product(ASKED, AROUND)):
        body = textwrap.indent(textwrap.dedent(around.format(asked=asked)).strip(), "    ")
        total = "(value + sign * scale * math.log(u)) / 0.25"
        parts.append(
            f"def made_{number}(value, u, sign):\n    scale = 1.0\n{body}\n"
            f"    return min(max(0.25 * round({total}), -8.0), 8.0)\n"
        )
    return "\n".join(parts)


@pytest.mark.evidence
def test_no_generated_carelessness_is_certified_falsely(tmp_path, monkeypatch):
    """Every way to ask about a value, in every way to swallow or use the answer."""
    (tmp_path / "generated_carelessness.py").write_text(generated(), "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    module = importlib.import_module("generated_carelessness")
    functions = [f for n, f in vars(module).items() if n.startswith("made_")]
    assert len(functions) == len(ASKED) * len(AROUND) > 500
    certified = 0
    for function in functions:
        try:
            found = certified_code(function, sensitivity=1)
        except LastbitError:
            continue
        certified += 1
        assert found.epsilon < 2
        assert not tells_apart(function), function.__name__
    assert 3 <= certified <= 40  # what never happens, as u > 2, may be certified
    sys.modules.pop("generated_carelessness")


def test_the_example_of_a_swallowed_question(tmp_path):
    """As it was found: certified for 1 + 6.1e-14, and told apart by its own outputs."""
    line = seen.bare.__code__.co_firstlineno
    with pytest.raises(Untraceable) as caught:
        certified_code(seen.bare, sensitivity=1)
    assert "seen.py" in str(caught.value) and "move it out" in str(caught.value)
    assert any(f"line {line + k}:" in str(caught.value) for k in range(8))
    assert Path(seen.__file__).name == "seen.py"
