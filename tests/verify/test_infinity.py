"""Mechanism 2 of paper 000: code that returns an infinity beyond a bound, right and wrong."""

from __future__ import annotations

import math
from collections import defaultdict
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from lastbit.checker import problem_of
from lastbit.checker.numbers import Rejected
from lastbit.checker.steps import Graph, check_meaning, run_steps
from lastbit.errors import LastbitError
from lastbit.verify import (
    FullPrecision,
    certified_code,
    closeness,
    rounding_certificate,
    trace,
)
from lastbit.verify.language import expressions as ex
from lastbit.verify.language.cases import INFINITE, clamp_of_infinities
from lastbit.verify.rounding import Query

INF = math.inf


def near(value, u, sign):
    return 0.25 * round((value + sign * 0.5 * math.log(u)) / 0.25)


def noisy(value, u, sign):
    return value + sign * 0.5 * math.log(u)


def two_sides(value, u, sign):
    k = near(value, u, sign)
    if k > 2.0:
        return math.inf
    if k < -2.0:
        return -math.inf
    return k


def one_infinity(value, u, sign):
    k = near(value, u, sign)
    return k if -2.0 <= k <= 2.0 else math.inf


def by_size(value, u, sign):
    k = near(value, u, sign)
    return math.inf if abs(k) > 2.0 else k


def without_its_ends(value, u, sign):
    k = near(value, u, sign)
    return k if abs(k) < 2.0 else math.inf


RIGHT = [
    (two_sides, Fraction(9, 4)),
    (one_infinity, Fraction(9, 4)),
    (by_size, Fraction(9, 4)),
    (without_its_ends, Fraction(2)),
    # in the form of the wrong ones below: neither lambda nor the name INF is why they are refused
    (lambda value, u, sign: near(value, u, sign) if abs(near(value, u, sign)) < 2.0 else INF, 2),
]
FEW = FullPrecision(9, -14)


def law(code, value):
    found: dict[float, Fraction] = defaultdict(Fraction)
    for k in range(FEW.size):
        chance = (FEW.below(k + 1) - FEW.below(k)) / 2
        for sign in (1.0, -1.0):
            found[code(value, FEW.point(k), sign)] += chance
    return found


@pytest.mark.parametrize(("code", "end"), RIGHT)
def test_it_is_certified_and_true(code, end):
    """Every draw of a small generator; failed before: no code that returns inf was followed."""
    found = certified_code(code, sensitivity="1/2", uniform=FEW)
    assert found.region == (-end, end)
    certificate = found.certificate()
    assert problem_of(certificate) is None
    laws = [law(code, value) for value in (0.0, 0.5, -0.5, 1.5, 2.0)]
    for one, two in ((0, 1), (0, 2), (3, 4), (4, 3), (1, 0)):
        for output, chance in laws[one].items():
            assert chance <= math.exp(found.epsilon) * laws[two][output] * (1 + 1e-12)
    less = float(found.epsilon) * 0.9  # nine tenths of the loss would be a lie
    assert any(p > math.exp(less) * laws[1][o] for o, p in laws[0].items())


WRONG = [
    lambda value, u, sign: noisy(value, u, sign) if abs(noisy(value, u, sign)) < 2.0 else INF,
    lambda value, u, sign: near(value, u, sign) if abs(noisy(value, u, sign)) < 1.9 else INF,
    lambda value, u, sign: near(value, u, sign) if noisy(value, u, sign) < 1.01 else INF,
    lambda value, u, sign: near(value, u, sign) if abs(value) < 1.0 else INF,
    lambda value, u, sign: near(value, u, sign) if value < 0.5 else -INF,
    lambda value, u, sign: near(value, u, sign) if value != 1.0 else INF,
    lambda value, u, sign: near(value, u, sign) if near(value, u, sign) < value else INF,
    lambda value, u, sign: INF if near(value, u, sign) > 2.0 else value,
    lambda value, u, sign: INF if near(value, u, sign) > 2.0 else near(value, u, sign) + value,
    lambda value, u, sign: INF if near(value, u, sign) > 2.0 else noisy(value, u, sign),
    lambda value, u, sign: INF if abs(near(value, u, sign) - value) > 2.0 else near(value, u, sign),
    lambda value, u, sign: (INF if value > 0.0 else -INF) if u < 0.1 else near(value, u, sign),
    lambda value, u, sign: (INF if value > 0.0 else 2.0) if near(value, u, sign) > 2.0 else 0.0,
    lambda value, u, sign: INF * value,
    lambda value, u, sign: INF - value + near(value, u, sign),
    lambda value, u, sign: min(INF, noisy(value, u, sign)),
    lambda value, u, sign: max(-INF, value),
    lambda value, u, sign: near(value, u, sign) if abs(near(value, u, sign)) < 2.0 else math.nan,
    lambda value, u, sign: near(value, u, sign) if abs(near(value, u, sign)) > 0.5 else INF,
    lambda value, u, sign: min(near(value, u, sign), 1.0) if near(value, u, sign) < 2.0 else INF,
    lambda value, u, sign: max(near(value, u, sign), 5.0) if near(value, u, sign) < 2.0 else INF,
    lambda value, u, sign: -near(value, u, sign) if near(value, u, sign) < value else INF,
    lambda value, u, sign: 4 * near(value, u, sign) if noisy(value, u, sign) < 2.0 else INF,
    lambda value, u, sign: round(near(value, u, sign)) if near(value, u, sign) < 2.0 else INF,
    lambda value, u, sign: round(noisy(value, u, sign) / 0.25) if value < 2.0 else INF,
    lambda value, u, sign: np.rint(noisy(value, u, sign)) if noisy(value, u, sign) < 2.0 else INF,
    lambda value, u, sign: INF if u < 0.5 else value,
    lambda value, u, sign: INF if sign * value > 1.0 else near(value, u, sign),
    lambda value, u, sign: near(value, u, sign) if near(value + value, u, sign) < 2.0 else INF,
    lambda value, u, sign: near(value, u, sign) if near(0.0, u, sign) + value < 2.01 else INF,
    lambda value, u, sign: INF,
    lambda value, u, sign: near(value, u, sign) if noisy(value, u, -sign) < 2.0 else INF,
]


@pytest.mark.parametrize("code", WRONG, ids=map(str, range(len(WRONG))))
def test_sloppy_code_is_refused(code):
    assert len(WRONG) >= 30
    with pytest.raises(LastbitError):
        certified_code(code, sensitivity="1/2")


def by_the_sign(value, u, sign):
    k = near(value, u, sign)
    if sign > 0:
        return k if abs(k) < 2.0 else math.inf
    return k if abs(k) < 2.0 else -math.inf


def by_the_side_of_u(value, u):
    if u < 0.5:
        k = 0.25 * round((value + 0.5 * math.log(2.0 * u)) / 0.25)
        return k if abs(k) < 2.0 else math.inf
    k = 0.25 * round((value - 0.5 * math.log(2.0 * (1.0 - u))) / 0.25)
    return k if abs(k) < 2.0 else -math.inf


def by_a_clamped_value(value, u, sign):
    if value > 1.0:
        k = near(1.0, u, sign)
        return k if abs(k) < 2.0 else math.inf
    k = near(value, u, sign)
    return k if abs(k) < 2.0 else -math.inf


def or_the_end_itself(value, u, sign):
    k = near(value, u, sign)
    if sign > 0:
        return max(min(k, 2.0), -2.0)
    return k if abs(k) < 2.0 else math.inf


TELLING = [by_the_sign, by_the_side_of_u, by_a_clamped_value, or_the_end_itself]


@pytest.mark.parametrize("code", TELLING)
def test_what_is_outside_has_one_name_on_all_paths(code, monkeypatch):
    """All were certified: 1.5 gave inf where 1.0 gave -inf. Both sides refuse it by themselves."""
    with pytest.raises(LastbitError, match="tells the path"):
        certified_code(code, sensitivity="1/2")
    monkeypatch.setattr("lastbit.verify.rounded_code.has_one_outside", lambda rows: True)
    with pytest.raises(LastbitError, match="one name on one path"):
        certified_code(code, sensitivity="1/2")


def test_a_clamped_value_and_one_infinity_are_fine():
    def code(value, u, sign):
        if value > 1.0:
            value = 1.0
        k = near(value, u, sign)
        return k if abs(k) < 2.0 else math.inf

    assert problem_of(certified_code(code, sensitivity="1/2").certificate()) is None


def endless(x):
    return x if x + 1.0 < 3.0 else math.inf


def test_infinities_are_names_of_results_alone():
    """A query, noise or an error bound would compute with them."""

    def noise(u, sign):
        made = sign * math.log(u)
        return made if abs(made) < 2.0 else math.inf

    def doubled(x):
        y = 2.0 * x
        return y if y < 1.5 else math.inf

    def laplace(u, sign):
        return sign * math.log(u)

    region: Any = dict(sensitivity=1, cell="1/4", region=(-8, 8))
    query = Query(function=doubled, ranges={"x": (0, 1)})
    for refused in (
        lambda: rounding_certificate(noise, **region),
        lambda: rounding_certificate(laplace, query=query, **region),
        lambda: trace(doubled),
        lambda: trace(endless),
        lambda: closeness(doubled, {"x": (0, 1)}),
    ):
        with pytest.raises(LastbitError):
            refused()
    steps: list[Any] = [["input", "x"], ["float", "inf"], ["branch", 0, 1, 0, "<", "2"]]
    bounded = [["VAR", "x"], ["CLAMP", 0, None, "2"]]
    with pytest.raises(Rejected, match="infinity"):
        check_meaning("query", [steps], {}, {"claim": {"expression": bounded}})


# ---------------------------------------------------------------- the checker's own reading

ROUNDED: list[list[Any]] = [["input", "x"], ["round", 0], ["float", (0.25).hex()], ["mul", 2, 1]]


def meaning(*rows):
    graph = Graph()
    return graph, graph.meaning([*ROUNDED, *rows])


@pytest.mark.parametrize(
    ("relation", "kept", "end"),
    [("<=", 0, math.nextafter(2.0, 3.0)), ("<", 0, 2.0),
     ("<=", 1, 2.0), ("<", 1, math.nextafter(2.0, 1.0))],
)  # fmt: skip
def test_both_sides_read_a_branch_alike(relation, kept, end):
    """The first float outside takes the place of the infinity, below and above."""
    two = [3, 4] if kept == 0 else [4, 3]
    graph, root = meaning(["float", "inf"], ["branch", *two, 3, relation, "2"])
    rule, _, *ends = graph.nodes[root]
    wanted = [None, Fraction(end)] if kept == 0 else [Fraction(end), None]
    assert rule == "CLAMP" and ends == wanted
    part = ex.Multiply(ex.Constant(Fraction(1, 4)), ex.RoundTo(ex.Variable("x"), Fraction(1)))
    cases = (part, INFINITE) if kept == 0 else (INFINITE, part)
    clamp = clamp_of_infinities(part, relation, Fraction(2), *cases)
    assert isinstance(clamp, ex.Clamp) and [clamp.low, clamp.high] == wanted


@pytest.mark.parametrize(
    "rows",
    [
        [["float", "inf"]],
        [["float", "inf"], ["add", 3, 4]],
        [["float", "inf"], ["branch", 4, 4, 3, "<", "2"]],
        [["float", "inf"], ["branch", 0, 4, 3, "<", "2"]],
        [["float", "inf"], ["neg", 3], ["branch", 5, 4, 3, "<", "2"]],
        [["float", "inf"], ["float", (1.0).hex()], ["min", 3, 5], ["branch", 6, 4, 3, "<", "2"]],
        [["float", "inf"], ["float", (2.0).hex()], ["max", 3, 5], ["branch", 6, 4, 3, "<", "2"]],
        [["float", "inf"], ["abs", 3], ["branch", 4, 3, 5, "<", "2"]],
        [["float", "inf"], ["case", 3, 4, "value", "<", "2"]],
        [["float", "nan"], ["branch", 3, 4, 3, "<", "2"]],
    ],
)
def test_the_checker_rejects_what_tells_more(rows):
    with pytest.raises((Rejected, LastbitError)):
        graph, root = meaning(*rows)
        root = graph.certain(root, (Fraction(0), Fraction(1)))
        used = {graph.nodes[index][0] for index in graph.uses(root)}
        if "INF" in used:  # no program of a claim has such a node
            raise Rejected("an infinity is left")


def test_steps_run_as_the_code_does():
    rows = [*ROUNDED, ["float", "-inf"], ["branch", 4, 3, 3, "<", "-2"]]
    assert [run_steps(rows, {"x": x}) for x in (-9.0, -8.0, 3.0)] == [-INF, -2.0, 0.75]
