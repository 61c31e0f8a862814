"""The independent checker accepts certificates of laws and refutations, and no mutated one."""

from __future__ import annotations

import functools
import itertools
import json
import math
import textwrap
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from typing import Any

import pytest

from lastbit.checker.code import running_code as checked_code
from lastbit.checker.law import check_law, check_refutation
from lastbit.checker.numbers import Rejected
from lastbit.errors import LastbitError
from lastbit.mechanisms.snapping import snapped
from lastbit.verify.running.code import Calls, Code, order
from lastbit.verify.running.law import branches_of, exact_loss
from lastbit.verify.running.uniforms import FullPrecision, Grid
from lastbit.verify.running.witness import _Code, refute
from lastbit.verify.tracing.binding import running_code
from tests.mutants import copied, replaced
from tests.verify.judged import naive_laplace

SNAPPED = "lastbit.mechanisms.snapping:snapped"
NUMPY = Grid(53, first=1)
# what `check` counts as malformed
MALFORMED = (KeyError, TypeError, ValueError, IndexError, ArithmeticError, RecursionError)

Certificate = dict[str, Any]


def problem(sealed: Certificate) -> str | None:
    """Why a certificate is rejected, as `check` finds it once the digest is right again."""
    checker = check_law if sealed["kind"] == "law" else check_refutation
    try:
        checker(sealed["claim"], sealed["body"])
    except Rejected as rejection:
        return str(rejection)
    except MALFORMED as error:
        return f"malformed: {error!r}"
    return None


@cache
def finite_law() -> str:
    code = Code(SNAPPED, epsilon=1.0, bound=8.0)
    return json.dumps(exact_loss(code, 3.3, 4.3).certificate(code))


@cache
def infinite_law() -> str:
    code = Code(SNAPPED, epsilon=1.0, bound=32.0)
    return json.dumps(exact_loss(code, 20.0, 21.0, uniform=NUMPY).certificate(code))


@cache
def unsigned_law() -> str:
    code = Code("tests.verify.judged:rounded_laplace", step=0.5)
    uniform = Grid(20, offset="1/2")
    return json.dumps(exact_loss(code, 0.25, 1.0, uniform=uniform, signs=None).certificate(code))


@cache
def split_law() -> str:
    code = Code("tests.verify.judged:wave")
    loss = exact_loss(code, 0.0, 1.0, uniform=Grid(30), signs=None, pieces=[0.5])
    return json.dumps(loss.certificate(code))


@cache
def infinite_refutation() -> str:
    code = Code("tests.verify.judged:naive_laplace", scale=1.0)
    return json.dumps(refute(code, 0.0, 1.0, uniform=NUMPY, signs=None, tries=20).certificate(code))  # type: ignore[union-attr]


@cache
def finite_refutation() -> str:
    code = Code(SNAPPED, epsilon=1.0, bound=8.0)
    return json.dumps(refute(code, 3.3, 4.3, tries=3).certificate(code))  # type: ignore[union-attr]


LAWS = [finite_law, infinite_law, unsigned_law, split_law]
REFUTATIONS = [infinite_refutation, finite_refutation]


@pytest.mark.thinned(one_in=6)
@pytest.mark.parametrize("made", [*LAWS, *REFUTATIONS])
def test_accepted(made):
    assert problem(json.loads(made())) is None


@pytest.mark.thinned(one_in=36)
@pytest.mark.parametrize(
    "uniform", [FullPrecision(), FullPrecision(24, -126), Grid(53, first=1), Grid(53, offset=1)]
)
def test_every_model_is_accepted(uniform):
    code = Code(SNAPPED, epsilon=0.7, bound=10.3)
    for x, y in ((0.1, 1.0), (-10.3, -9.5), (50.0, 9.9)):
        assert problem(exact_loss(code, x, y, uniform=uniform).certificate(code)) is None


# ---------------------------------------------------------------- mutations


def changed(sealed: Certificate, path: list[Any], change: Callable[[Any], Any]) -> Certificate:
    """A copy in which one value is replaced."""
    old: Any = sealed
    for step in path:
        old = old[step]
    mutant: Certificate = replaced(sealed, path, change(copied(old)))
    return mutant


def leaves(value: Any, path: list[Any]) -> Iterator[list[Any]]:
    """The way to every number and word."""
    if isinstance(value, dict):
        for key in value:
            yield from leaves(value[key], [*path, key])
    elif isinstance(value, list):
        for index in range(len(value)):
            yield from leaves(value[index], [*path, index])
    else:
        yield path


def altered(value: Any) -> Iterator[Any]:
    """Other values of the same kind, and some of another."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield from (value + 1, value - 1, value + 2**20, -value - 1, str(value), float(value))
    elif isinstance(value, str):
        for position in {0, 1, len(value) // 2, len(value) - 1}:
            if position < len(value):
                other = "7" if value[position] != "7" else "3"
                yield value[:position] + other + value[position + 1 :]
        yield from (value + "1", value[1:], "", None)
    else:
        yield from (1, "forward")


def is_harmless(path: list[Any], sealed: Certificate, mutant: Certificate) -> bool:
    """Mutations that leave a true claim: looser bounds on the loss, nothing else.

    The bounds of the loss may be wider than need be (or, for a refutation, the bound smaller).
    """
    if path[:2] != ["claim", "loss"]:
        return False
    old, new = sealed["claim"]["loss"], mutant["claim"]["loss"]
    try:
        if sealed["kind"] == "refutation":
            return 0 < Fraction(new) <= Fraction(old)
        return Fraction(new[0]) <= Fraction(old[0]) and Fraction(old[1]) <= Fraction(new[1])
    except (TypeError, ValueError, IndexError):
        return False


def is_another_truth(path: list[Any], mutant: Certificate) -> bool:
    """Whether what the mutant claims is true as well, found without the checker.

    An input moved in its last digits may have the very same cells; a refutation names some outputs
    only, which another bound, or a slightly wider range of outputs, need not touch.
    """
    if path[:2] not in (["claim", "inputs"], ["claim", "parameters"], ["claim", "outputs"]):
        return False
    claim = mutant["claim"]
    try:
        numbers = {name: float.fromhex(text) for name, text in claim["parameters"].items()}
        x, y = map(float.fromhex, claim["inputs"])
        code = Code(claim["function"], **numbers)
        model = dict(claim["uniform"])
        uniform = (FullPrecision if model.pop("model") == "full" else Grid)(**model)
        pieces = [uniform.point(index) for index in claim["splits"]]
        if mutant["kind"] == "law":
            loss = exact_loss(code, x, y, uniform=uniform, signs=claim["signs"], pieces=pieces)
            return loss.certificate(code)["body"] == mutant["body"]
        low, high = (order(float.fromhex(text)) for text in claim["outputs"])
        stretches = list(branches_of(uniform, claim["signs"], pieces))
        for value, share in zip((x, y), claim["probabilities"], strict=True):
            running = _Code(Calls(code), value, uniform, stretches)
            if running.share(running.preimage(low, high)) != Fraction(share):
                return False
    except (TypeError, ValueError, OverflowError):
        return False
    return True


@pytest.mark.parametrize("made", [*LAWS, *REFUTATIONS])
def test_every_changed_value_is_rejected(made, extent):
    sealed = json.loads(made())
    paths = [*leaves(sealed["claim"], ["claim"]), *leaves(sealed["body"], ["body"])]
    count = 0
    for path in extent.cases(paths[:80] + paths[80::7], one_in=10):
        place = sealed
        for step in path:
            place = place[step]
        for other in altered(place):
            mutant = changed(sealed, path, lambda _, other=other: other)  # type: ignore[misc]
            if is_harmless(path, sealed, mutant):
                continue
            count += 1
            rejected = problem(mutant) is not None
            assert rejected or is_another_truth(path, mutant), (path, place, other)
    assert count >= extent.number(5, 60)


def test_moved_inputs_are_rejected_or_true():
    """The inputs themselves: a change that the checker accepts gives the same cells."""
    sealed = json.loads(finite_law())
    code = Code(SNAPPED, epsilon=1.0, bound=8.0)
    for index in (0, 1):
        for text in ("0x1.0p+1", (3.25).hex(), (4.5).hex(), (-3.3).hex(), (3.3).hex().upper()):
            mutant = changed(sealed, ["claim", "inputs", index], lambda _, text=text: text)  # type: ignore[misc]
            if problem(mutant) is None:
                x, y = map(float.fromhex, mutant["claim"]["inputs"])
                assert exact_loss(code, x, y).certificate(code)["body"] == sealed["body"]
    for value in ("inf", "nan", "-inf"):
        assert problem(changed(sealed, ["claim", "inputs", 0], lambda _, v=value: v)) is not None  # type: ignore[misc]


@pytest.mark.parametrize("made", [*LAWS, *REFUTATIONS])
def test_structure(made):
    """Parts dropped, doubled, swapped, renamed."""
    sealed = json.loads(made())
    mutants = []
    for part in ("claim", "body"):
        for name in sealed[part]:
            for rename in (None, name + "s"):
                mutant = copied(sealed)
                value = mutant[part].pop(name)
                if rename:
                    mutant[part][rename] = value
                mutants.append(mutant)
    mutants.append(changed(sealed, ["claim", "inputs"], lambda v: v[::-1]))
    mutants.append(changed(sealed, ["claim", "inputs"], lambda v: v[:1]))
    mutants.append(changed(sealed, ["claim", "inputs"], lambda v: [*v, v[0]]))
    mutants.append(changed(sealed, ["claim", "probabilities"], lambda v: v[::-1]))
    mutants.append(changed(sealed, ["claim", "signs"], lambda v: [-1] if v is None else None))
    mutants.append(changed(sealed, ["claim", "signs"], lambda v: [1, 1]))
    mutants.append(changed(sealed, ["claim", "splits"], lambda v: [*v, 5, 4]))
    mutants.append(changed(sealed, ["claim", "splits"], lambda v: [*v, 2**70]))
    mutants.append(changed(sealed, ["claim", "splits"], lambda v: [*v, 1 << 19]))
    name = "laws" if sealed["kind"] == "law" else "preimages"
    mutants.append(changed(sealed, ["body", name], lambda v: v[::-1]))
    mutants.append(changed(sealed, ["body", name], lambda v: [v[0], v[0]]))
    mutants.append(changed(sealed, ["body", name], lambda v: v[:1]))
    mutants.append(changed(sealed, ["body", name, 0], lambda v: v[1:]))
    mutants.append(changed(sealed, ["body", name, 0], lambda v: [*v, v[0]]))
    mutants.append(changed(sealed, ["body", name, 1, 0, "sign"], lambda v: 1 if v != 1 else -1))
    for mutant in mutants:
        assert problem(mutant) is not None


@pytest.mark.thinned(one_in=36)
@pytest.mark.parametrize("made", LAWS)
def test_cells(made):
    """Cells dropped, merged, doubled, swapped, moved to a neighbour."""
    sealed = json.loads(made())
    mutants = []
    for law, branches in enumerate(sealed["body"]["laws"]):
        for branch, _ in enumerate(branches):
            path = ["body", "laws", law, branch, "cells"]
            cells = branches[branch]["cells"]
            for i in range(0, len(cells) - 1, 5):
                mutants.append(changed(sealed, path, lambda v, i=i: v[:i] + v[i + 1 :]))  # type: ignore[misc]
                mutants.append(changed(sealed, path, lambda v, i=i: [*v[: i + 1], *v[i:]]))  # type: ignore[misc]
                mutants.append(changed(sealed, path, lambda v, i=i: _moved(v, i, 1)))  # type: ignore[misc]
                mutants.append(changed(sealed, path, lambda v, i=i: _moved(v, i, -1)))  # type: ignore[misc]
                mutants.append(changed(sealed, path, lambda v, i=i: _merged(v, i)))  # type: ignore[misc]
                mutants.append(changed(sealed, path, lambda v, i=i: _cut(v, i)))  # type: ignore[misc]
            mutants.append(changed(sealed, path, lambda v: v[::-1]))
            mutants.append(changed(sealed, path, lambda _: []))
    for mutant in mutants:
        assert mutant == sealed or problem(mutant) is not None
    assert len(mutants) >= 16


def _moved(cells: list[Any], i: int, step: int) -> list[Any]:
    (a, first, last), (b, start, end) = cells[i], cells[i + 1]
    return [*cells[:i], [a, first, last + step], [b, start + step, end], *cells[i + 2 :]]


def _merged(cells: list[Any], i: int) -> list[Any]:
    return [*cells[:i], [cells[i][0], cells[i][1], cells[i + 1][2]], *cells[i + 2 :]]


def _cut(cells: list[Any], i: int) -> list[Any]:
    """One cell cut in two: true, but no cell is allowed twice."""
    output, first, last = cells[i]
    if first == last:
        return []
    return [*cells[:i], [output, first, first], [output, first + 1, last], *cells[i + 1 :]]


def test_the_claim_must_be_the_worst():
    """Another output, or the other direction, with its own true numbers, is not the loss."""
    code = Code(SNAPPED, epsilon=1.0, bound=8.0)
    loss = exact_loss(code, 3.3, 4.3)
    sealed = loss.certificate(code)
    one, two = loss.laws
    for output in one.outputs:
        if output == loss.worst.output:
            continue
        p, q = one.probability(output), two.probability(output)
        claim = {**sealed["claim"], "direction": "forward", "output": output.hex()}
        claim["probabilities"] = [str(p), str(q)]
        claim["loss"] = ["-5", "5"]
        with pytest.raises(Rejected, match="worse"):
            check_law(claim, sealed["body"])


def test_a_loss_that_is_too_good():
    sealed = json.loads(finite_law())
    low, high = map(Fraction, sealed["claim"]["loss"])
    assert high - low < Fraction(1, 2**170)
    step = Fraction(1, 2**60)
    for claimed in ([low - 3 * step, high - step], [low + step, high + step], ["0", "1"]):
        mutant = changed(sealed, ["claim", "loss"], lambda _, c=claimed: [str(end) for end in c])  # type: ignore[misc]
        assert problem(mutant) == "the loss lies outside its claimed bounds"
    assert problem(changed(sealed, ["claim", "loss"], lambda _: "infinite")) is not None
    sealed = json.loads(infinite_law())
    assert problem(changed(sealed, ["claim", "loss"], lambda _: ["0", "100"])) is not None


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("nowhere.to.be:found", "cannot be imported"),
        ("math:nothing", "cannot be imported"),
        ("os:system", "not a plain function"),
        ("math:floor", "not a plain function"),
        ("x", "no name"),
        ("a b:c", "no name"),
        ("os:__name__", "no name"),
        (3, "no name"),
    ],
)
def test_other_functions(name, why):
    sealed = json.loads(finite_law())
    assert why in problem(changed(sealed, ["claim", "function"], lambda _: name))  # type: ignore[operator]


@pytest.mark.parametrize(
    "model",
    [
        {"model": "full", "significand": 54, "least_exponent": -1022},
        {"model": "full", "significand": 53, "least_exponent": -1023},
        {"model": "full", "significand": 53, "least_exponent": 0},
        {"model": "full", "significand": 52, "least_exponent": -1022},
        {"model": "full", "significand": 53, "least_exponent": -1021},
        {"model": "grid", "bits": 53, "offset": "0", "first": 1},
        {"model": "grid", "bits": 53, "offset": "1/2", "first": 0},
        {"model": "grid", "bits": 53, "offset": "1/4", "first": 0},
        {"model": "real"},
    ],
)
def test_other_generators(model):
    sealed = json.loads(finite_law())
    assert problem(changed(sealed, ["claim", "uniform"], lambda _: model)) is not None


def test_bounds_of_an_exact_loss_are_close():
    """Mutant: "the loss is 1000" of harmless code, as the upper of two bounds."""
    sealed = json.loads(finite_law())
    for loss in (["-1000", "1000"], ["0", "2"], "02", {"0": 1, "2": 1}):
        assert problem(changed(sealed, ["claim", "loss"], lambda _, loss=loss: loss)) is not None  # type: ignore[misc]
    wide = problem(changed(sealed, ["claim", "loss"], lambda _: ["0", "2"]))
    assert wide == "the loss is claimed to be exact, but its bounds are wide"
    shares = dict.fromkeys(sealed["claim"]["probabilities"], 0)
    assert problem(changed(sealed, ["claim", "probabilities"], lambda _: shares)) is not None


def lower_coin(value: float, u: float) -> float:
    return value + (1.0 if u < 0.5 else 2.0)


def test_an_empty_preimage_may_stand_at_the_start():
    """All outputs of one input lie above the range: its preimage is written [0, -1]."""
    code = Code("tests.verify.test_check_law:lower_coin")
    found = refute(code, 0.0, 4.0, signs=None, tries=3)
    sealed = found.certificate(code)  # type: ignore[union-attr]
    assert sealed["body"]["preimages"][1][0]["range"] == [0, -1]
    assert problem(sealed) is None
    for bad in ([0, -2], [1, -1], [-1, -1], [-1, -2], [0, True], [False, -1]):
        path = ["body", "preimages", 1, 0, "range"]
        assert problem(changed(sealed, path, lambda _, bad=bad: bad)) is not None  # type: ignore[misc]


CALLS = itertools.count()


def counting(value: float, u: float) -> float:
    return float(next(CALLS))


def test_code_that_answers_differently_is_rejected():
    sealed = json.loads(unsigned_law())
    mutant = changed(sealed, ["claim", "function"], lambda _: f"{__name__}:counting")
    mutant["claim"]["parameters"] = {}
    assert "is not the one that was certified" in str(problem(mutant))
    mutant["claim"]["code"] = running_code(counting)
    assert problem(mutant) == "the function answers differently each time"


def failing(value, u, sign=1, **_):
    return {}[value]


def test_functions_that_fail_are_rejected():
    name = f"{__name__}:failing"
    mutant = changed(json.loads(finite_law()), ["claim", "function"], lambda _: name)
    mutant["claim"]["code"] = running_code(failing)
    assert "fails" in str(problem(mutant))


@functools.wraps(math.log)
def log_of_our_own(x):
    return math.log(x)


def with_log_of_our_own(value, u):
    return float(round(value + log_of_our_own(u)))


@functools.lru_cache
def kept_log(x):
    return math.log(x)


half_log = functools.partial(log_of_our_own, 0.5)


def through_wrappers(value, u):
    return value + kept_log(u) + half_log()


def enclosing(function, scale=1.0):
    def inner(value, u):
        return value + scale * function(u)

    return inner


def test_both_programs_find_the_same_code():
    ours = (snapped, counting, naive_laplace, with_log_of_our_own, through_wrappers)
    enclosed = (enclosing(math.log), enclosing(log_of_our_own), enclosing(math.log, 2.0))
    for function in (*ours, *enclosed, functools.singledispatch(counting)):
        try:
            found = running_code(function)
        except LastbitError:
            with pytest.raises(Rejected):
                checked_code(function)
        else:
            assert found == checked_code(function)
    assert running_code(snapped) != running_code(counting)
    assert len({running_code(function)["functions"] for function in enclosed}) == 3


class Stateful:
    def method(self, value, u):
        return value + u

    __call__ = method


@pytest.mark.parametrize(
    "function",
    [
        math.floor,
        functools.partial(counting),
        functools.lru_cache(counting),
        Stateful(),
        Stateful().method,
        textwrap.dedent,
    ],
)
def test_what_is_no_plain_function_has_no_digest(function):
    with pytest.raises(LastbitError, match=";"):
        running_code(function)
    with pytest.raises(Rejected, match=r"not a plain function|a library"):
        checked_code(function)


@pytest.mark.parametrize("name", ["with_log_of_our_own", "through_wrappers"])
@pytest.mark.parametrize("find", [running_code, checked_code])
def test_a_helper_behind_a_wrapper_is_digested(name, find, monkeypatch):
    function = globals()[name]
    before = find(function)
    monkeypatch.setattr(log_of_our_own, "__code__", (lambda x: math.log(x) + 1e-9).__code__)
    assert find(function) != before


def test_a_certificate_from_before_is_refused_with_a_remedy():
    for text in (finite_law(), finite_refutation()):
        old = json.loads(text)
        del old["claim"]["code"]
        assert "verify it again" in str(problem(old))


@pytest.mark.parametrize("line", ["raise SystemExit(0)", "1/0", "import no_such_module", "def"])
def test_modules_that_fail_are_rejected(line, tmp_path, monkeypatch):
    (tmp_path / "failing_module.py").write_text(line + "\n")
    monkeypatch.syspath_prepend(tmp_path)
    sealed = json.loads(finite_law())
    mutant = changed(sealed, ["claim", "function"], lambda _: "failing_module:f")
    assert problem(mutant) == "the function cannot be imported"


def dipping(value, u):
    """The same output at both ends of the uniforms; between them another, from one input only."""
    return 0.0 if 0.25 <= u < 0.5 and value == 1.0 else 1.0


def test_code_that_turns_between_its_boundaries_is_rejected():
    about = dict(
        function=f"{__name__}:dipping", code=running_code(dipping), parameters={}, signs=None,
        uniform=Grid(20).written(), splits=[], inputs=[x.hex() for x in (0.0, 1.0)],
        monotone="probed",
    )  # fmt: skip
    tiny = Fraction(1, 1 << 100)
    law = dict(loss=[str(-tiny), str(tiny)], direction="forward", output=(1.0).hex())
    whole = [{"sign": None, "cells": [[(1.0).hex(), 0, 2**20 - 1]]}]
    claim: dict[str, Any] = dict(about, **law, probabilities=["1", "1"])
    told = dict(kind="law", claim=claim, body=dict(laws=[whole] * 2, programs=[]))
    assert "between the boundaries" in str(problem(told))
    full = [{"sign": None, "rises": True, "range": [0, 2**20 - 1]}]
    claim = dict(about, outputs=[(1.0).hex()] * 2, loss="1", probabilities=["1", "1"])
    told = dict(kind="refutation", claim=claim, body=dict(preimages=[full] * 2, programs=[]))
    assert "between the boundaries" in str(problem(told))
