"""The checker on code: other code or constants, another Python, a changed step are rejected."""

from __future__ import annotations

import builtins
import importlib
import json
import math
import platform
import re
import sys
from collections.abc import Callable, Iterator
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lastbit.checker import code as checker
from lastbit.checker.dispatch import check_apart_from_code, names_code, problem_of
from lastbit.checker.numbers import Rejected, digest
from lastbit.checker.steps import Graph, run_steps
from lastbit.errors import LastbitError
from lastbit.verify.declared import declared_certificate
from lastbit.verify.rounded_code import certified_code, certified_function, derived_loss
from lastbit.verify.rounding import Query, rounding_certificate
from lastbit.verify.running.code import Code
from lastbit.verify.running.uniforms import Grid
from lastbit.verify.tracing.markers import clamp
from tests.cli.running import lastbit
from tests.mutants import at, copied, leaves
from tests.verify import right_code
from tests.verify.rounding_examples import one_uniform, with_sign

SETTING: dict[str, Any] = dict(sensitivity=1, cell="1/4", region=(-8, 8))


def mean(a, b):
    return (a + b) / 3


def logistic(u):
    return math.log(u) - math.log(1 - u)


def whole(name: str) -> dict[str, Any]:
    code = Code(f"tests.verify.right_code:{name}")
    uniform = Grid(53, first=1) if name == "textbook" else None
    return certified_function(code, uniform=uniform, **SETTING)[0].certificate()


QUERY = Query(function=mean, ranges={"a": (0, 1), "b": (0, 1)})
KINDS: dict[str, Callable[[], dict[str, Any]]] = {
    "mechanism": lambda: whole("with_globals"),
    "numpy": lambda: whole("textbook"),
    "derivation": lambda: derived_loss(
        Code("tests.verify.right_code:with_globals"), sensitivity=1
    ).certificate(),
    "helper": lambda: whole("through_module"),
    "noise": lambda: rounding_certificate(with_sign, query=QUERY, **SETTING).certificate(),
    "declared": lambda: declared_certificate(
        logistic, rate=1, uniform=Grid(53, first=1), **SETTING
    ).certificate(),
}


@cache
def made(kind: str) -> dict[str, Any]:
    return KINDS[kind]()


@pytest.fixture(autouse=True, scope="module")
def all_made() -> None:
    """Before any test puts another machine or library in the place of this one."""
    for kind in KINDS:
        made(kind)
    plain()


def sealed(changed: dict[str, Any]) -> dict[str, Any]:
    return {**changed, "digest": digest(changed)}


def others(value: Any) -> list[Any]:
    if value is None:
        return ["sign", "u"]
    if isinstance(value, int):
        return [value + 1, max(0, value - 1)] if value else [1]
    if len(value) == 64:
        return [value[::-1], "0" * 64, value.upper()]
    if value.startswith(("0x", "-0x")):
        near = float.fromhex(value)
        return [(near * 2 + 1).hex(), (-near - 1).hex(), (near * (1 + 2**-50)).hex()]
    return [value + "1", "", "tests.verify.right_code:with_loop", "other"]


def problem(mutant: dict[str, Any]) -> str | None:
    """As `problem_of`, without the proof, which says nothing of the record."""
    try:
        checker.check_records(mutant["claim"], mutant["body"].get("query"))
        checker.check_code(mutant["claim"])
    except (Rejected, ArithmeticError, LookupError, TypeError, ValueError) as rejected:
        return str(rejected)
    return None


@pytest.mark.parametrize("kind", KINDS)
def test_every_change_of_the_record_is_rejected(kind, extent):
    certificate = made(kind)
    assert problem_of(certificate) is None
    record = certificate["claim"]["code"]
    changes = [
        (path, other)
        for path in leaves(record)
        for other in others(at(record, path))
        if other != at(record, path)
    ]
    assert len(changes) > 30
    for place, (path, other) in enumerate(extent.cases(changes, one_in=10)):
        mutant = copied(certificate)
        at(mutant["claim"]["code"], path[:-1])[path[-1]] = other
        assert problem(mutant) is not None, (path, other)
        if place % 20 == 0:
            assert problem_of(sealed(mutant)) is not None, (path, other)


@pytest.mark.parametrize("kind", KINDS)
def test_no_part_of_the_record_can_be_dropped_or_added(kind):
    certificate = made(kind)
    for record, part in enumerate(certificate["claim"]["code"]):
        for field in part:
            mutant = copied(certificate)
            del mutant["claim"]["code"][record][field]
            assert problem(mutant) is not None
        mutant = copied(certificate)
        mutant["claim"]["code"][record]["more"] = 1
        assert problem(mutant) is not None
        mutant = copied(certificate)
        mutant["claim"]["code"][record]["functions"] *= 2
        assert problem(mutant) is not None
    mutant = copied(certificate)
    mutant["claim"]["code"] *= 2
    assert problem_of(sealed(mutant)) is not None


def test_a_certificate_from_before_is_refused_with_a_remedy():
    old = copied(made("mechanism"))
    del old["claim"]["code"]
    assert "verify it again" in str(problem_of(sealed(old)))


def test_without_its_record_a_certificate_is_about_steps_and_must_say_so():
    bare = copied(made("mechanism"))
    bare["claim"]["code"] = []
    assert problem_of(sealed(bare)) == "its assumptions leave out what the proof rests on"

    def without_a_name(value, u, sign):
        return right_code.plain(value, u, sign)

    about = certified_code(without_a_name, sensitivity=1)
    steps = about.certificate()
    assert steps["claim"]["code"] == [] and not names_code(steps)
    assert any("names no code" in words for words in steps["assumptions"])
    assert problem_of(steps) is None


def test_what_remains_unproved_is_among_the_assumptions():
    words = " ".join(made("mechanism")["assumptions"])
    for part in ("depends on its arguments alone", "finitely many points", "stated ulps"):
        assert part in words
    for place, sentence in enumerate(made("mechanism")["assumptions"]):
        mutant = copied(made("mechanism"))
        del mutant["assumptions"][place]
        assert problem_of(sealed(mutant)) is not None, sentence


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("python_version", "3.99.0"),
        ("python_implementation", "PyPy"),
        ("machine", "quantum"),
        ("system", "Plan 9"),
        ("libc_ver", ("musl", "1.2")),
    ],
)
def test_another_machine_is_refused_with_a_remedy(name, instead, monkeypatch):
    monkeypatch.setattr(platform, name, lambda: instead)
    assert "verify the code again" in str(problem_of(made("mechanism")))


def test_another_numpy_is_refused_with_a_remedy(monkeypatch):
    real = metadata.version
    monkeypatch.setattr(metadata, "version", lambda name: real(name) + ".1")
    assert "it is about numpy" in str(problem_of(made("numpy")))
    assert problem_of(made("mechanism")) is None  # uses math alone


# ---------------------------------------------------------------- other code

CODE = """
import math
from constants import SCALE
import steps

def mechanism(value, u, sign, step=0.25):
    total = value + sign * SCALE * math.log(u)
    return min(max(steps.rounded(total, step), -8.0), 8.0)
"""
STEPS = """
def rounded(x, step):
    return step * round(x / step)
"""
FILES = {"mine.py": CODE, "constants.py": "SCALE = 1.0\n", "steps.py": STEPS}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, "utf-8")
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    forget()


def forget() -> None:
    for name in FILES:
        sys.modules.pop(name.removesuffix(".py"), None)
    importlib.invalidate_caches()


@cache
def proof() -> str:
    """Of the files as they are in every folder at first."""
    result = lastbit(
        *("verify", "mine:mechanism", "--epsilon", "1.01", "--grid", "1/4"),
        *("--region", "-8", "8", "--certificate", "proof.json"),
    )
    assert result.exit_code == 0, result.output
    forget()
    return Path("proof.json").read_text("utf-8")


def verified() -> None:
    Path("proof.json").write_text(proof(), "utf-8")


def test_the_same_code_is_accepted(folder):
    verified()
    result = lastbit("check", "proof.json")
    assert result.exit_code == 0 and "ACCEPTED" in result.stdout
    record = json.loads(Path("proof.json").read_text("utf-8"))["claim"]["code"][0]
    assert [one["name"] for one in record["functions"]] == ["mine:mechanism", "steps:rounded"]
    assert record["functions"][0]["reads"]["SCALE"] == "float 0x1.0000000000000p+0"


@pytest.mark.thinned(one_in=14)
@pytest.mark.parametrize(
    ("file", "old", "new", "part"),
    [
        ("mine.py", "value + sign", "value - sign", "mine:mechanism changed"),
        ("mine.py", "total = value", "total = 1.0 * value", "mine:mechanism changed"),
        ("mine.py", "total =", "# a remark\n    total =", "mine:mechanism changed"),
        ("mine.py", "step=0.25", "step=0.5", "mine:mechanism changed"),
        ("constants.py", "1.0", "0.001", "mine:mechanism changed"),
        ("constants.py", "1.0", "1", "mine:mechanism changed"),
        ("constants.py", "1.0", "[1.0]", "which may change"),
        ("steps.py", "round(x / step)", "round(x / step + 0.0)", "steps:rounded changed"),
        ("steps.py", "return", "if x > 3e9: return 0.0\n    return", "steps:rounded changed"),
        (
            "steps.py",
            "def rounded",
            "from math import floor as rounded\ndef other",
            "calls others",
        ),
        ("mine.py", "def mechanism", "def another", "cannot be imported"),
        ("mine.py", "import math", "import maths", "cannot be imported"),
        (
            "mine.py",
            "    total",
            "    try: pass\n    finally: x = 1\n    total",
            "cannot be followed",
        ),
    ],
)
def test_other_code_is_refused(folder, file, old, new, part):
    verified()
    text = Path(file).read_text("utf-8")
    assert old in text
    Path(file).write_text(text.replace(old, new, 1), "utf-8")
    forget()
    result = lastbit("check", "proof.json", "--json")
    assert result.exit_code == 1, result.output
    (answer,) = json.loads(result.stdout)["certificates"]
    assert not answer["accepted"]
    assert part in answer["problem"] or "does not take the steps" in answer["problem"]


def test_code_whose_file_was_changed_after_its_import_is_refused(folder):
    verified()
    assert lastbit("check", "proof.json").exit_code == 0
    Path("steps.py").write_text(STEPS + "\n\n\n", "utf-8")  # the function itself is the same
    assert lastbit("check", "proof.json").exit_code == 0
    Path("steps.py").write_text(STEPS.replace("x / step", "x / step * 1"), "utf-8")
    assert lastbit("check", "proof.json").exit_code == 1


def test_checking_without_code_accepts_nothing(folder):
    verified()
    result = lastbit("check", "--without-code", "proof.json")
    assert result.exit_code == 3
    assert "CHECKED APART FROM THE CODE" in result.stdout and "ACCEPTED" not in result.stdout
    assert "mine" not in sys.modules
    result = lastbit("check", "--without-code", "proof.json", "--json")
    (answer,) = json.loads(result.stdout)["certificates"]
    assert answer["accepted"] is False and answer["checked"] == "apart from the code"
    proof = json.loads(Path("proof.json").read_text("utf-8"))
    proof["claim"]["epsilon"] = "1"
    Path("spoiled.json").write_text(json.dumps(sealed(proof)), "utf-8")
    assert lastbit("check", "--without-code", "spoiled.json").exit_code == 1


def test_laws_cannot_be_checked_without_code(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    from tests.cli.certificates import certificate

    for kind in ("law", "refutation"):
        Path("law.json").write_text(json.dumps(certificate(kind)), "utf-8")
        assert lastbit("check", "--without-code", "law.json").exit_code == 1
    for kind in ("snapping", "error-bound"):
        check_apart_from_code(certificate(kind))
        Path("other.json").write_text(json.dumps(certificate(kind)), "utf-8")
        result = lastbit("check", "--without-code", "other.json")
        assert result.exit_code == 0 and "ACCEPTED" in result.stdout


# ---------------------------------------------------------------- the checker's parts


def test_a_function_that_was_replaced_in_the_library_is_refused(monkeypatch):
    real = math.log
    for instead in (lambda x: real(x) * (1 + 2**-52), math.log1p, math.exp, print):
        monkeypatch.setattr(math, "log", instead)
        with pytest.raises(LastbitError):
            certified_code(right_code.plain, sensitivity=1)
        with pytest.raises(Rejected):
            checker.check_code(plain()["claim"])


def test_a_replaced_built_in_is_refused(monkeypatch):
    real = min

    def lesser(*numbers, **options):
        return real(*numbers, **options)

    monkeypatch.setattr(builtins, "min", lesser)
    with pytest.raises(LastbitError, match="leave built-ins alone"):
        certified_code(right_code.plain, sensitivity=1)
    with pytest.raises(Rejected, match="min is replaced"):
        checker.check_code(plain()["claim"])


@cache
def plain() -> dict[str, Any]:
    return whole("plain")


def test_steps_mean_what_they_say():
    graph = Graph()
    rows: list[list[Any]] = [
        ["input", "u"],
        ["math.log", 0],
        ["float", "0x1.0000000000000p+1"],
        ["mul", 2, 1],
    ]
    meant: list[list[Any]] = [["CONST", "2"], ["VAR", "u"], ["LN", 1], ["MUL", 0, 2]]
    assert graph.meaning(rows) == graph.program(meant)
    assert run_steps(rows, {"u": 0.5}) == 2 * math.log(0.5)
    wrong: Any
    for wrong in (
        [],
        [["math.sin", 0]],
        [["input", "u"], ["math.log", 1]],
        [["input", "u"], ["min", 0, 0]],
        [["float", "2.0"]],
        [["input", "u"], ["case", 0, 0, "u", ">", "1"]],
        [["input", "u"], ["round_to", 0, "0"]],
        [["input", "u"], ["clamp", 0, 0, 0]],
    ):
        with pytest.raises((Rejected, ValueError)):
            graph.meaning(wrong)


def test_the_two_programs_choose_different_points():
    from lastbit.verify.tracing.agreement import noise_points, points

    record, claim = plain()["claim"]["code"][0], plain()["claim"]
    theirs = {tuple(p.values()) for p in checker._points(record, record["steps"][0], claim)}
    extra = noise_points(*_numbers(claim))
    ours = {tuple(p.values()) for p in points(["u", "value"], [], extra, seed="x", rounds=2)}
    assert len(theirs - ours) > 300 and len(ours) > 300


def _numbers(claim: dict[str, Any]) -> tuple[Any, Any, Any]:
    from fractions import Fraction

    low, high = (Fraction(end) for end in claim["region"])
    return Fraction(claim["cell"]), (low, high), Grid(53)


def test_helpers_of_lastbit_may_be_called():
    record = whole("with_clamp")["claim"]["code"][0]
    assert record["machine"]["lastbit"] == metadata.version("lastbit")
    assert record["functions"][0]["reads"]["clamp"] == "lastbit clamp"
    assert clamp(9.0, -8.0, 8.0) == 8.0
    assert one_uniform.__module__ == "tests.verify.rounding_examples"


# ---------------------------------------------------------------- libraries that were changed


@pytest.mark.parametrize("by_name", [True, False], ids=["names", "steps"])
@pytest.mark.parametrize(
    ("kind", "library"), [("noise", math), ("numpy", np)], ids=["math", "numpy"]
)
def test_a_function_put_in_the_place_of_another_is_not_the_reference(
    kind, library, by_name, monkeypatch
):
    """A module may say `math.log = math.exp`; then the code is not compared with itself.

    Two checks notice: the name under which it is read, and the steps as the checker takes them.
    """
    mutant = copied(made(kind))
    monkeypatch.setattr(library, "log", library.exp)
    reads = [one["reads"] for record in mutant["claim"]["code"] for one in record["functions"]]
    changed = [(read, name) for read in reads for name in read if name.endswith(".log")]
    assert changed
    for read, name in changed:
        read[name] = f"built-in {library.__name__}.exp"
    if not by_name:
        monkeypatch.setattr(checker, "_LIBRARY", frozenset())
    wanted = "put it in its place" if by_name else "does not take the steps|is not numpy's"
    found = problem_of(sealed(mutant))
    assert found is not None and re.search(wanted, found)


def choices(rows: list[Any]) -> list[Any]:
    for _ in range(60):
        rows = [*rows, ["case", len(rows) - 1, len(rows) - 1, "u", "<", "1/2"]]
    return rows


def squares(rows: list[Any]) -> list[Any]:
    before: list[Any] = [["int", "3"]]
    for _ in range(60):
        before.append(["mul", len(before) - 1, len(before) - 1])
    moved = [[r[0], *(p + 61 if type(p) is int else p for p in r[1:])] for r in rows]
    return before + moved


@pytest.mark.parametrize("kind", ["mechanism", "noise"])
@pytest.mark.parametrize("change", [choices, squares])
def test_shared_steps_take_no_longer_than_their_table(kind, change):
    """A choice between a step and itself, and a square of a square: each took 2**60 steps."""
    forged = copied(made(kind))
    record = forged["claim"]["code"][0]
    record["steps"] = [change(rows) for rows in record["steps"]]
    found = problem_of(sealed(forged))
    if change is choices:
        assert "too many paths" in (found or "")


def test_a_program_of_squares_is_rejected():
    forged = copied(made("noise"))
    for rows in forged["claim"]["programs"]:
        _, value, noise = rows.pop()
        rows.append(["CONST", "3"])
        rows += [["MUL", k, k] for k in range(len(rows) - 1, len(rows) + 59)]
        rows += [["MUL", noise, len(rows) - 1], ["ADD", value, len(rows)]]
    assert "too long" in (problem_of(sealed(forged)) or "")
