"""Steps around the one rounding: right code is certified, its wrong twins are not, by both sides.

Right and wrong programs stand in `step_programs`. What random ones do is seen for every uniform of
a small grid: type, bits or exception; no certified loss may be exceeded by one of them.
"""

from __future__ import annotations

import copy
import inspect
import json
import math
import random
from collections import Counter
from fractions import Fraction
from typing import Any

import pytest

from lastbit.checker import code as checker_code, one_rounding as checker_rounding, steps
from lastbit.checker.dispatch import problem_of
from lastbit.checker.numbers import digest
from lastbit.errors import LastbitError, NotCertified
from lastbit.verify import one_rounding, rounded_code
from lastbit.verify.language import cases, expressions as ex
from lastbit.verify.rounded_code import certified_code
from lastbit.verify.rounding import RoundingAnalysis, followed_code
from lastbit.verify.running.code import Code
from lastbit.verify.running.uniforms import FullPrecision, Grid
from lastbit.verify.tracing import trace as tracing
from lastbit.verify.tracing.binding import record
from tests.verify import step_programs, typed_programs

RIGHT = [(kind, f) for kind, functions in step_programs.RIGHT.items() for f in functions]
WRONG = [(kind, f) for kind, functions in step_programs.WRONG.items() for f in functions]


def names(cases_: list[Any]) -> list[str]:
    return [function.__name__ for _, function in cases_]


def uniform_of(function: Any) -> Any:
    signed = "sign" in function.__code__.co_varnames[: function.__code__.co_argcount]
    return FullPrecision() if signed else Grid(53, first=1)


def certified(function: Any, **settings: Any) -> RoundingAnalysis:
    code = Code(f"{step_programs.__name__}:{function.__name__}")
    return certified_code(code, **dict(sensitivity=1, uniform=uniform_of(function)) | settings)


SHARES = {
    "half_value": Fraction(1, 2),
    "value_by_two": Fraction(1, 2),
    "clamped_and_halved": Fraction(1, 2),
    "fsum_with_half": Fraction(1, 2),
    "tenth_of_value": Fraction(0.1),
}


@pytest.mark.thinned(one_in=8)
@pytest.mark.parametrize(("kind", "function"), RIGHT, ids=names(RIGHT))
def test_right_code_is_certified_for_what_it_loses(kind, function):
    """None of these was certified before, but `whole_with_numpy` and `hundredths_by_product`."""
    found = certified(function)
    assert found.ideal == SHARES.get(function.__name__, 1)
    assert found.ideal < found.epsilon < found.ideal + Fraction(1, 10**6)
    certificate = found.certificate()
    assert [one["function"] for one in certificate["claim"]["code"]]
    assert problem_of(certificate) is None


@pytest.mark.thinned(one_in=6)
@pytest.mark.parametrize(("kind", "function"), WRONG, ids=names(WRONG))
def test_its_wrong_twin_is_refused(kind, function):
    for region in (None, (-8, 8)):
        with pytest.raises(LastbitError, match=r"; |Return step"):  # and says what to do
            certified(function, region=region)


@pytest.mark.parametrize(
    "function",
    [
        step_programs.whole_on_one_path,
        step_programs.fraction_on_one_path,
        step_programs.whole_by_sign,
    ],
    ids=lambda function: function.__name__,
)
def test_exact_numbers_on_one_path_tell_it(function):
    """Results of one cell that come from one half of the noise only; they had a certificate."""
    uniforms = [(k + 0.5) / 2048 for k in range(1024)]
    if "sign" in function.__code__.co_varnames[:3]:
        halves = [{function(0.5, u, sign) for u in uniforms} for sign in (1.0, -1.0)]
    else:
        halves = [{function(0.5, abs(end - u)) for u in uniforms} for end in (0.0, 1.0)]
    one, two = ({abs(result) for result in half} for half in halves)
    assert one - two and two - one


def test_an_edge_told_by_if_is_a_leak():
    """The result of one float, next to which every other draw ends elsewhere; it was certified."""
    uniforms = [(k + 0.5) / 4096 for k in range(4096)]
    for function in (step_programs.tell_an_edge_by_if, step_programs.tell_an_edge_by_a_fraction):
        edge = function(7.5, 0.5)
        assert edge != function(7.5, 0.51) == function(8.0, 0.5)
        assert edge not in {function(value, u) for value in (7.4, 7.6, 6.5) for u in uniforms}
    near, far = (step_programs.clip_long_whole_numbers(8.0, u, -1.0) for u in (0.1, 1e-9))
    assert near == far and type(near) is not type(far)


def test_the_checker_rejects_a_choice_before_the_last_steps():
    """Rows that choose between exact numbers and floats, and then go on as one; accepted before."""
    honest = certified(step_programs.whole_as_floats).certificate()
    one, two = (1.0).hex(), (2.0).hex()
    high = (6.0 * 2**53).hex()
    rows: list[list[Any]] = [
        ["input", "u"], ["input", "value"], ["float", two], ["mul", 2, 0], ["math.log", 3],
        ["mul", 2, 4], ["add", 1, 5], ["div", 6, 2], ["round", 7], ["sub", 2, 3],
        ["math.log", 9], ["mul", 2, 10], ["sub", 1, 11], ["div", 12, 2], ["round", 13],
        ["float", one], ["mul", 15, 14], ["case", 8, 16, "u", "<", "1/2"],
        ["int", str(step_programs.MANY)], ["mul", 17, 18], ["mul", 15, 19], ["float", f"-{high}"],
        ["max", 20, 21], ["float", high], ["min", 22, 23],
    ]  # fmt: skip
    function = step_programs.whole_inside_on_one_path
    for u in (0.001, 0.3, 0.7, 0.999):
        assert steps.run_steps(rows, {"u": u, "value": 1.25}) == function(1.25, u)
    forged = copy.deepcopy(honest)
    own = forged["claim"]["code"][0]
    with pytest.MonkeyPatch.context() as patch:
        written = unguarded_record(function, patch)
    own["function"] = f"{step_programs.__name__}:{function.__name__}"
    own["functions"], own["steps"] = written["functions"], [rows]
    assert "other numbers on one path" in str(problem_of(resealed(forged)))


def test_there_are_twins_of_all_kinds():
    assert set(step_programs.RIGHT) == set(step_programs.WRONG)
    assert len(RIGHT) >= 40 and len(WRONG) >= 35


def test_a_draw_that_fails_is_refused():
    """With 0 among the draws the assertion fails for some, and what is drawn then is missing."""
    for function in (step_programs.assert_positive, step_programs.raise_at_zero):
        with pytest.raises(NotCertified, match="pass a uniform without 0"):
            certified(function, uniform=Grid(53))
        assert certified(function, uniform=Grid(53, first=1)).epsilon > 1


# ---------------------------------------------------------------- a forger's certificates


def resealed(certificate: dict[str, Any]) -> dict[str, Any]:
    return {**certificate, "digest": digest(certificate)}


@pytest.mark.thinned(one_in=12)
@pytest.mark.parametrize(("kind", "function"), WRONG, ids=names(WRONG))
def test_the_checker_rejects_a_right_proof_with_the_wrong_twin(kind, function, monkeypatch):
    """The wrong code with all its digests and, where it can be followed, with its own steps."""
    twin = step_programs.RIGHT[kind][-1]
    honest = certified(twin, uniform=uniform_of(function)).certificate() if kind != "if" else None
    if honest is None:
        honest = certified(step_programs.RIGHT[kind][3]).certificate()
    forged = copy.deepcopy(honest)
    own = forged["claim"]["code"][0]
    own["function"] = f"{step_programs.__name__}:{function.__name__}"
    function_record = unguarded_record(function, monkeypatch)
    own["functions"] = function_record["functions"]
    assert problem_of(resealed(forged)) is not None
    if function_record["steps"]:
        own["steps"], own["sign"] = function_record["steps"], function_record["sign"]
        assert problem_of(resealed(forged)) is not None


def unguarded_record(function: Any, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What a prover without its own defences would write of this code."""
    from lastbit.verify.tracing.screening import screened

    with monkeypatch.context() as patch:
        patch.setattr(tracing, "failing_on", lambda made, results: set())
        try:
            code = Code(f"{step_programs.__name__}:{function.__name__}")
            followed = followed_code(code, "value", "u", may_fail=True)
            written = record("mechanism", followed)
            assert written is not None
            return dict(written)
        except LastbitError:
            pass
    stated = [
        {
            "name": f"{one.__module__}:{one.__qualname__}",
            "source": checker_code._sha(inspect.getsource(one)),
            "bytecode": checker_code._sha(json.dumps(checker_code._written(one.__code__))),
            "reads": dict(sorted(reads.items())),
        }
        for one, reads in screened(function).functions.items()
    ]
    return {"functions": stated, "steps": None}


UNGUARDED: dict[str, tuple[Any, str, Any]] = {
    "failures": (rounded_code, "without_failures", lambda e, _: without(e)),
    "cases": (rounded_code, "without_cases_of", lambda _, e: without_values(e)),
    "clamps": (tracing, "clamp_of_cases", lambda part, bound, then, otherwise: otherwise),
    "unused": (tracing, "failing_on", lambda made, results: set()),
    "zeros": (rounded_code, "zero_signs", lambda rows, types: frozenset({1})),
    "paths": (rounded_code, "has_one_function", lambda parts, indices, code: True),
    "numpy": (rounded_code, "passes_whole_to_numpy", lambda rows, types: False),
}


def without(expression: ex.Expression) -> ex.Expression:
    """A prover that forgets failures."""
    if not isinstance(expression, ex.Piecewise):
        return expression
    parts = [without(part) for part in (expression.then, expression.otherwise)]
    kept = [part for part in parts if not isinstance(part, ex.Fails)]
    return kept[0] if len(kept) == 1 else ex.Piecewise(expression.condition, *parts)


def without_values(expression: ex.Expression) -> ex.Expression:
    """A prover that takes the last case of the value for all."""
    while isinstance(expression, ex.Piecewise) and expression.condition.name == "value":
        expression = expression.otherwise
    return expression


@pytest.mark.thinned(one_in=12)
@pytest.mark.parametrize(("kind", "function"), WRONG, ids=names(WRONG))
def test_the_checker_alone_rejects_what_an_unguarded_prover_writes(kind, function, monkeypatch):
    for place, name, instead in UNGUARDED.values():
        monkeypatch.setattr(place, name, instead)
    with pytest.raises(LastbitError):
        certified(function)


@pytest.mark.parametrize("name", ["an_edge_by_if", "an_edge_by_a_fraction", "more_than_the_end"])
def test_the_checker_alone_compares_both_ends_of_a_branch(name, monkeypatch):
    monkeypatch.setattr(*UNGUARDED["paths"])
    with pytest.raises(NotCertified, match="other numbers on one path"):
        certified(getattr(step_programs, f"tell_{name}"))


@pytest.mark.evidence
def test_some_of_these_are_rejected_by_the_checker_itself(monkeypatch):
    """So that the test above is one of the checker: its own reasons are seen."""
    for place, name, instead in UNGUARDED.values():
        monkeypatch.setattr(place, name, instead)
    reasons = Counter[str]()
    for function in (
        step_programs.assert_value, step_programs.assert_often, step_programs.clamp_what_fails,
        step_programs.minus_with_two_zeros, step_programs.fsum_that_fails,
        step_programs.clamp_by_the_value, step_programs.whole_on_one_path,
        step_programs.fraction_on_one_path, step_programs.whole_by_sign,
        step_programs.clip_long_whole_numbers,
    ):  # fmt: skip
        try:
            certified(function)
        except LastbitError as error:
            reasons[str(error).partition(": ")[2].partition(";")[0][:60]] += 1
    seen = "\n".join(reasons)
    for words in (
        "code fails by its value", "may fail, and", "-0.0", "branches on what it", "passes",
        "not those of the proof", "other numbers on one path", "64 bits may not hold",
    ):  # fmt: skip
        assert words in seen, reasons


@pytest.mark.thinned(one_in=4)
@pytest.mark.parametrize("name", ["half_value", "offset_before", "hundredths", "offset_between"])
def test_figures_of_another_claim_are_rejected(name):
    certificate = certified(getattr(step_programs, name)).certificate()
    assert problem_of(certificate) is None
    claim = certificate["claim"]
    changes: list[tuple[str, Any]] = [("epsilon", "1/4"), ("sensitivity", "1/2"), ("cell", "1/8")]
    for field in {"values", "region"} & set(claim):
        low, high = map(Fraction, claim[field])
        width = high - low
        for ends in ((low - width, high), (low, high + width), (low + width / 2, high)):
            if field == "region" or ends[0] < low or ends[1] > high:
                changes.append((field, list(map(str, ends))))
    for field, other in changes:
        forged = copy.deepcopy(certificate)
        forged["claim"][field] = other
        assert problem_of(resealed(forged)) is not None, (field, other)
    without_values_ = copy.deepcopy(certificate)
    if without_values_["claim"].pop("values", None):
        assert problem_of(resealed(without_values_)) is not None


# ---------------------------------------------------------------- links and cases


def test_links_of_both_sides_agree(extent):
    """Ends, results and signs of zero, for chains of random links, and the results as they run."""
    random_ = random.Random("links")
    settled = 0
    for _ in range(extent.generated(25, 400)):
        text, _ = step_programs.generated(random_)
        try:
            followed = followed_code(typed_programs.function(text), "value", "u")
            parts = one_rounding.parts_of(followed[0].expression)
        except LastbitError:
            continue
        graph = steps.Graph()
        root = graph.meaning(followed[0].rows)
        ways = list(checker_rounding.readings(graph.nodes, graph.clamped_values(root)))
        links = {reading[3] for reading in ways if reading[1] == parts.cell}
        own = tuple(
            tuple(x for x in link[:3] if x is not None or link[0] == "CLAMP")
            for link in parts.links
        )
        assert own in links, text
        types = followed[0].typed()
        whole = [not one.kinds - {"int", "fraction"} for one in types]
        signs = one_rounding.zero_signs(followed[0].rows, types)
        assert checker_rounding.zeros(followed[0].rows, whole) == signs, text
        for way in (1, -1):
            last = parts.last(way)
            if last is not None:
                settled += 1
                reached = checker_rounding._hull([last * parts.unit])
                before = checker_rounding._hull([(last - way) * parts.unit])
                assert checker_rounding.settled(own, reached, way)
                assert not checker_rounding.settled(own, before, way)
    assert settled > 8


@pytest.mark.parametrize(
    ("then", "otherwise", "found"),
    [
        ("x", "c", "min"), ("c", "x", "max"), ("2x", "2c", "min"), ("x", "x", None),
        ("c", "c", None), ("x", "2c", None), ("y", "c", None), ("x+y", "c+y", "min"),
    ],
)  # fmt: skip
def test_which_cases_are_a_clamp(then, otherwise, found):
    x, y, bound = ex.Multiply(ex.Variable("v"), ex.Variable("u")), ex.Variable("y"), Fraction(3)
    c, two = ex.Constant(3), ex.Constant(2)
    made: dict[str, ex.Expression] = {
        "x": x, "y": y, "c": c, "2x": ex.Multiply(two, x), "2c": ex.Constant(6),
        "x+y": ex.Add(x, y), "c+y": ex.Add(c, y),
    }  # fmt: skip
    clamped = cases.clamp_of_cases(x, bound, made[then], made[otherwise])
    assert (clamped is None) == (found is None)
    graph = steps.Graph()
    ids = [graph.program(ex.expression_to_json(made[name])) for name in (then, otherwise)]
    part = graph.program(ex.expression_to_json(x))
    node = graph.clamp_by_cases(part, bound, *ids)
    if clamped is None:
        assert node is None
    else:
        assert node == graph.program(ex.expression_to_json(clamped))
        ends = {"min": (None, bound), "max": (bound, None)}[str(found)]
        assert ex.Clamp(x, *ends) in ex.table(clamped).expressions


# ---------------------------------------------------------------- everything that can be seen


def excess_seen(text: str, signed: bool, found: RoundingAnalysis, uniform: Grid) -> float:
    """By how much the worst log-ratio of what can be seen exceeds the certified loss, at most."""
    code = typed_programs.function(text)
    low, high = (float(end) for end in found.values)
    low, high = (low if low >= found.values[0] else math.nextafter(low, math.inf)), min(high, 50.0)
    while high > found.values[1]:
        high = math.nextafter(high, -math.inf)
    edges = [low, high, (low + high) / 2, 0.0, 1.0, 2.5, 2.625, -1.0, 0.25 * low + 0.75 * high]
    worst = -math.inf
    for value in edges:
        for apart in (1.0, -1.0, 0.5, 0.0625):
            other = min(max(value + apart, low), high)
            if not low <= value <= high or other == value:
                continue
            one, two = (
                typed_programs.outcomes(code, x, uniform, signed=signed) for x in (value, other)
            )
            for seen in one | two:
                if not one[seen] or not two[seen]:
                    return math.inf
                worst = max(worst, abs(math.log(one[seen] / two[seen])) - float(found.epsilon))
    return worst


@pytest.mark.apart
def test_no_random_program_loses_more_than_its_certificate_says(extent):
    uniform, random_ = Grid(10, offset="1/2"), random.Random("steps")
    tried = proved = 0
    kinds = Counter[str]()
    for _ in range(extent.generated(5, 2000)):
        text, signed = step_programs.generated(random_)
        tried += 1
        try:
            found = certified_code(typed_programs.function(text), sensitivity=1, uniform=uniform)
        except LastbitError:
            continue
        proved += 1
        assert excess_seen(text, signed, found, uniform) < 1e-9, text
        for word in ("assert", "if y", "fsum", "1.9", "-y", "0.5 * value", "0.3 * value", "rint"):
            kinds[word] += word in text
    assert tried < 100 or proved * 6 > tried
    assert tried < 500 or min(kinds.values()) > 0, kinds  # all kinds of steps were certified
