"""Every judgement holds for real IEEE evaluation; wrong rules are caught."""

import math
import operator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, settings, strategies as st

from lastbit.checker.error_bound import check_error_bound
from lastbit.errors import InvalidParameter, LastbitError, NoBound, WrongType
from lastbit.exact.ball import Ball
from lastbit.verify.error_bounds import rules
from lastbit.verify.error_bounds.formats import BINARY16, BINARY32, BINARY64, Binary, Fixed
from lastbit.verify.error_bounds.rules import Derivation
from lastbit.verify.error_bounds.semantics import analyse, error_certificate
from lastbit.verify.language.evaluation import machine_value, real_value
from lastbit.verify.language.expressions import (
    Absolute,
    Add,
    Constant,
    Divide,
    Exp,
    Expression,
    Ln,
    Multiply,
    Negate,
    Piecewise,
    RoundTo,
    Sample,
    Sign,
    Sqrt,
    Subtract,
    Variable,
    names,
    table,
)
from lastbit.verify.tracing.trace import trace
from tests.verify.expressions import CASES, FORMATS, X, Y, float_value, placed

HALF: dict[str, Any] = {"ln": "1/2", "exp": "1/2", "sqrt": "1/2"}


def only(expression: Expression, values: dict) -> dict:
    return {name: values[name] for name in names(expression)}


def judged(expression, ranges, **options) -> Derivation:
    try:
        return analyse(expression, only(expression, ranges), **options)
    except NoBound:
        assume(False)
        raise


def assert_holds(found: Derivation, computed: Fraction, real: Ball) -> None:
    """The judgement is not refuted: the ball is far smaller than any error worth the name."""
    judgement = found.conclusion
    low, high = real.ends
    assert judgement.real[0] <= high and low <= judgement.real[1]
    assert judgement.computed[0] <= computed <= judgement.computed[1]
    assert low - judgement.error <= computed <= high + judgement.error


def real_of(expression: Expression, values: dict) -> Ball:
    try:
        ball = real_value(expression, values, precision=2000)
        _ = ball.ends  # a root or a logarithm so near 0 that the ball holds 0 is not finite
        return ball
    except LastbitError:  # exactly on a jump
        assume(False)
        raise


@pytest.mark.thinned(one_in=9)
@pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.name)
def test_the_machine_is_inside_the_bounds(format):
    @settings(max_examples=150, deadline=None)
    @given(CASES, st.sampled_from([1, 3]))
    def inside(case, pieces):
        expression, ranges, inputs = placed(case, format)
        found = judged(expression, ranges, format=format, ulps=HALF, pieces=pieces)
        computed = machine_value(expression, inputs, format)
        assert_holds(found, computed, real_of(expression, inputs))

    inside()


@pytest.mark.thinned(one_in=9)
@pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.name)
def test_inputs_may_be_rounded_or_off(format):
    @settings(max_examples=100, deadline=None)
    @given(CASES, st.fractions(0, 1), st.sampled_from(["rounded", "0", "1/8"]))
    def inside(case, part, error):
        expression, ranges, _ = placed(case, format)
        ends = only(expression, ranges)
        reals = {name: low + part * (high - low) for name, (low, high) in ends.items()}
        found = judged(
            expression, ranges, format=format, ulps=HALF, errors=dict.fromkeys(ends, error)
        )
        inputs = {name: format.rounded(value) for name, value in reals.items()}
        if error != "rounded":
            assume(all(abs(inputs[n] - reals[n]) <= Fraction(error) for n in inputs))
        computed = machine_value(expression, inputs, format)
        assert_holds(found, computed, real_of(expression, reals))

    inside()


@settings(max_examples=200, deadline=None)
@given(CASES)
def test_pythons_own_floats_are_inside_the_bounds(case):
    """With its library's ln and exp, believed to be within one ulp."""
    expression, ranges, inputs = placed(case, BINARY64)
    found = judged(expression, ranges)
    value = float_value(expression, {name: float(x) for name, x in inputs.items()})
    assert_holds(found, Fraction(value), real_of(expression, inputs))


NUMPY: dict[str, Any] = {
    Constant,
    Variable,
    Add,
    Subtract,
    Multiply,
    Divide,
    Negate,
    Absolute,
    Sign,
    Sqrt,
}  # type: ignore[assignment]


@pytest.mark.evidence
@pytest.mark.parametrize(("format", "kind"), [(BINARY16, np.float16), (BINARY32, np.float32)])
def test_numpys_small_floats_are_inside_the_bounds(format, kind):
    @settings(max_examples=150, deadline=None)
    @given(CASES)
    def inside(case):
        expression, ranges, inputs = placed(case, format)
        assume(all(type(node) in NUMPY for node in table(expression).expressions))  # type: ignore[comparison-overlap]
        found = judged(expression, ranges, format=format)
        value = numpy_value(expression, {name: kind(float(x)) for name, x in inputs.items()}, kind)
        assert_holds(found, Fraction(float(value)), real_of(expression, inputs))

    inside()


def numpy_value(expression: Expression, inputs: dict, kind):
    steps = table(expression)
    found: list = []
    for node, below in zip(steps.expressions, steps.below, strict=True):
        a = [found[place] for place in below]
        match node:
            case Constant():
                value = kind(node.value.numerator / node.value.denominator)
                assume(Fraction(float(value)) == format_of(kind).rounded(node.value))
            case Variable():
                value = inputs[node.name]
            case Add():
                value = a[0] + a[1]
            case Subtract():
                value = a[0] - a[1]
            case Multiply():
                value = a[0] * a[1]
            case Divide():
                value = a[0] / a[1]
            case Negate():
                value = -a[0]
            case Absolute():
                value = np.abs(a[0])
            case Sign():
                value = np.sign(a[0])
            case Sqrt():
                value = np.sqrt(a[0])
        assert value.dtype == kind
        found.append(value)
    return found[-1]


def format_of(kind) -> Binary:
    return BINARY16 if kind is np.float16 else BINARY32


@settings(max_examples=100, deadline=None)
@given(CASES, st.sampled_from([1, 4]))
def test_every_certificate_is_accepted(case, pieces):
    expression, ranges, _ = placed(case, BINARY32)
    found = judged(expression, ranges, format=BINARY32, pieces=pieces)
    sealed = error_certificate(found, format=BINARY32)
    check_error_bound(sealed["claim"], sealed["body"])


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("expression", "ranges", "problem"),
    [
        (Divide(Constant(1), X), {"x": (-1, 1)}, "divisor may be 0"),
        (Divide(Constant(1), X), {"x": (0, 1)}, "divisor may be 0"),
        (Ln(X), {"x": (0, 1)}, "ln of"),
        (Ln(X), {"x": (-2, -1)}, "ln of"),
        (Sqrt(X), {"x": (-1, 1)}, "sqrt of"),
        (Exp(X), {"x": (0, 710)}, "overflow"),
        (Exp(X), {"x": (0, 10**9)}, "overflow"),
        (Multiply(X, X), {"x": (0, 2**600)}, "overflow"),
        (X, {"x": (0, 10**400)}, "largest"),
        (Constant(10**400), {}, "overflow"),
    ],
)
def test_what_may_fail_is_refused(expression, ranges, problem):
    with pytest.raises(NoBound, match=problem):
        analyse(expression, ranges)


def test_pieces_can_help_where_the_whole_is_refused():
    """x*x - x + 1 is at least 3/4, which intervals see only in pieces."""
    inverse = trace(lambda x: 1 / (x * x - x + 1))
    with pytest.raises(NoBound):
        analyse(inverse, {"x": (-4, 4)})
    assert analyse(inverse, {"x": (-4, 4)}, pieces=30).error < Fraction(1, 2**40)


def test_a_branch_on_an_inexact_input_is_refused():
    steps = trace(lambda x: -x if x < 0 else x)
    assert analyse(steps, {"x": (-1, 1)}).error == 0
    with pytest.raises(NoBound, match="two ways"):
        analyse(steps, {"x": (-1, 1)}, errors={"x": "rounded"})
    tenth = trace(lambda x: -x if x < 0.1 else x)
    with pytest.raises(NoBound, match="not in the format"):
        analyse(tenth, {"x": (-1, 1)}, format=BINARY32)


@pytest.mark.parametrize(
    ("ranges", "options"),
    [
        ({}, {}),
        ({"x": (0, 1), "z": (0, 1)}, {}),
        ({"x": (1, 0)}, {}),
        ({"x": 3}, {}),
        ({"x": (0, math.nan)}, {}),
        ({"x": (0, math.inf)}, {}),
        ({"x": (0, True)}, {}),
        ({"x": ("a", "b")}, {}),
        ({"x": (0, 1)}, {"errors": {"x": -1}}),
        ({"x": (0, 1)}, {"errors": {"y": 0}}),
        ({"x": (0, 1)}, {"errors": {"x": "round"}}),
        ({"x": (0, 1)}, {"ulps": {"tan": 1}}),
        ({"x": (0, 1)}, {"ulps": {"ln": "1/4"}}),
        ({"x": (0, 1)}, {"ulps": {"ln": 2**60}}),
        ({"x": (0, 1)}, {"pieces": 0}),
        ({"x": (0, 1)}, {"pieces": 1.5}),
        ({"x": (0, 1)}, {"format": "binary64"}),
    ],
)
def test_bad_input_is_refused(ranges, options):
    with pytest.raises((InvalidParameter, WrongType)):
        analyse(Ln(Add(X, Constant(1))), ranges, **options)


def test_what_is_no_expression_is_refused():
    with pytest.raises(WrongType):
        analyse("x + 1", {})  # type: ignore[arg-type]


# ---------------------------------------------------------------- sharpness


def test_what_is_exact_has_no_error():
    for function, ranges in (
        (lambda x: 2 * x, {"x": (-5, 5)}),
        (lambda x: x / 4, {"x": (1, 5)}),
        (lambda x: -abs(x), {"x": (-5, 5)}),
        (lambda x: x - 1.0, {"x": ("0.5", 2)}),  # Sterbenz
        (lambda x: 1.0 - x, {"x": ("0.5", 2)}),
        (lambda x: x + 0, {"x": (-9, 9)}),
        (lambda x: 0 * x, {"x": (-9, 9)}),
        (lambda x: 8 * np.rint(x / 8), {"x": (1, 900)}),
        (lambda x: -np.sign(x), {"x": (-1, 1)}),
    ):
        assert analyse(trace(function), ranges).error == 0
    tiny = (Fraction(-1, 2**1022), Fraction(1, 2**1022))
    assert analyse(Add(X, Y), {"x": tiny, "y": tiny}).error == 0
    assert analyse(Add(X, Y), {"x": (-9, 9), "y": (-9, 9)}, format=Fixed(4, 9)).error == 0
    halved = analyse(Divide(X, Constant(2)), {"x": tiny})
    assert halved.error == BINARY64.least / 2


def test_errors_that_cancel_are_seen_to_cancel():
    """x - x/2 passes on half of the input's error."""
    half = trace(lambda x: x - x / 2)
    found = analyse(half, {"x": (1, 2)}, errors={"x": "1/1024"})
    assert found.rule == "MEAN"
    assert Fraction(1, 2048) <= found.error < Fraction(1, 2048) + Fraction(1, 2**41)


def test_more_pieces_are_never_worse():
    curve = trace(lambda x: x / (x * x + 1) - math.log(x))
    errors = [analyse(curve, {"x": (1, 50)}, pieces=n).error for n in (1, 2, 4, 8, 16, 32)]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < errors[0] / 2


def test_ulps_count():
    bounds = [
        analyse(Ln(X), {"x": (2, 3)}, ulps={"ln": units}).error for units in ("1/2", "1", "4")
    ]
    assert bounds == [Fraction(1, 2**53), Fraction(1, 2**52), Fraction(1, 2**50)]


def test_a_draw_is_an_input():
    u = Sample("u", "uniform")
    found = analyse(Ln(u), {"u": ("0.5", "0.75")})
    assert found.error == Fraction(1, 2**53)


def test_the_laplace_quantile_function_near_its_ends():
    """Pieces by exponents: the error stays relative to the noise, not to its largest value."""
    noise = trace(lambda u: -math.log(u))
    found = analyse(noise, {"u": (Fraction(1, 2**60), Fraction(1, 2))}, pieces=20)
    assert found.error == Fraction(1, 2**47)  # one ulp of 60 ln 2, which is between 32 and 64


# ---------------------------------------------------------------- mutants

SMALL, TINY = Fraction(1, 2**537), Fraction(1, 2**50)
WITNESSES: list[tuple[Any, Any, dict[str, Fraction]]] = [
    (Multiply(X, X), {"x": (0, SMALL)}, {"x": BINARY64.rounded(SMALL * 2 / 3)}),
    (Multiply(X, Y), {"x": (1, 2), "y": (1, 2)}, {"x": Fraction(1.3), "y": Fraction(1.7)}),
    (Add(X, Y), {"x": (1, 2), "y": (0, TINY)}, {"x": Fraction(1), "y": TINY / 8}),
    (Subtract(X, Y), {"x": (-2, -1), "y": (1, 2)}, {"x": Fraction(-1.3), "y": Fraction(1.1)}),
    (Divide(X, Y), {"x": (1, 2), "y": (-4, -3)}, {"x": Fraction(1), "y": Fraction(-3)}),
]


def caught() -> bool:
    """Whether some witness refutes the rules as they now are."""
    for expression, ranges, inputs in WITNESSES:
        found = analyse(expression, ranges)
        try:
            assert_holds(
                found, machine_value(expression, inputs, BINARY64), real_of(expression, inputs)
            )
        except AssertionError:
            return True
    return False


def test_the_rules_survive_the_witnesses():
    assert not caught()


def test_halving_the_unit_roundoff_is_caught(monkeypatch):
    plain = Binary.rounding_error
    monkeypatch.setattr(Binary, "rounding_error", lambda self, a, b: plain(self, a, b) / 2)
    assert caught()


def test_forgetting_underflow_is_caught(monkeypatch):
    def relative(self, low, high):
        return self.unit_roundoff * max(abs(low), abs(high))

    monkeypatch.setattr(Binary, "rounding_error", relative)
    assert caught()


def test_believing_all_sums_exact_is_caught(monkeypatch):
    monkeypatch.setattr(rules, "_exact_sum", lambda x, y, format: True)
    assert caught()


def test_rounding_the_ends_inward_is_caught(monkeypatch):
    def inward(exact, format):
        low, high = format.rounded(exact[0]), format.rounded(exact[1])
        step = format.ulp(high)
        return low + step, high - step

    monkeypatch.setattr(rules, "_rounded", inward)
    assert caught()


def test_the_papers_rule_fails_for_negative_operands():
    """Paper 002, Figure 1: (lo/(1+η), hi(1+η)) moves negative bounds the wrong way."""
    eta = BINARY64.unit_roundoff

    def paper(low: Fraction, high: Fraction) -> tuple[Fraction, Fraction]:
        return low / (1 + eta), high * (1 + eta)

    wrong = right = 0
    for k in range(1, 200):
        x, y = Fraction(float(k) / 7), Fraction(1.1)
        for sign in (1, -1):
            exact = sign * x * y
            low, high = paper(exact, exact)
            inside = low <= BINARY64.rounded(exact) <= high
            right += inside and sign == 1
            wrong += not inside and sign == -1
            ours = analyse(Multiply(X, Y), {"x": (sign * x, sign * x), "y": (y, y)}).conclusion
            assert ours.computed[0] <= BINARY64.rounded(exact) <= ours.computed[1]
    assert right == 199  # sound for positive operands
    assert wrong > 150  # an empty interval for negative ones


def test_the_papers_rule_fails_for_differences_and_quotients_of_positive_operands():
    """Figure 1 takes both lower ends, then both upper ones, whatever the operation is."""
    eta = BINARY64.unit_roundoff
    operands = {"x": (Fraction(1), Fraction(2)), "y": (Fraction(1), Fraction(2))}
    for operation, expression, sound in (
        (operator.add, Add(X, Y), True),
        (operator.mul, Multiply(X, Y), True),
        (operator.sub, Subtract(X, Y), False),
        (operator.truediv, Divide(X, Y), False),
    ):
        low = operation(operands["x"][0], operands["y"][0]) / (1 + eta)
        high = operation(operands["x"][1], operands["y"][1]) * (1 + eta)
        corners = [operation(x, y) for x in operands["x"] for y in operands["y"]]
        assert (low <= min(corners) and max(corners) <= high) == sound
        ours = analyse(expression, operands).conclusion
        assert ours.computed[0] <= min(corners) <= max(corners) <= ours.computed[1]


def test_section_5_turns_the_bounds_of_the_logarithm_round():
    """Figure 1 divides the lower bound of ln by 1 + η, section 5 multiplies it: only that holds."""
    eta = BINARY64.unit_roundoff
    for k in range(1, 200):
        exact = Ball.of(Fraction(k, 401)).log()  # ln u < 0
        low, high = exact / (1 + eta), exact * (1 + eta)
        assert low > high  # Figure 1: nothing lies between them
        low, high = exact * (1 + eta), exact / (1 + eta)
        assert low < exact < high  # section 5


@example(Fraction(1, 3))
@given(st.fractions(-1, 1))
def test_a_point_is_judged_exactly(x):
    found = analyse(Constant(x), {})
    assert found.error == abs(BINARY64.rounded(x) - x)
    assert found.conclusion.real == (x, x)


def test_a_grid_that_is_no_power_of_two():
    found = analyse(RoundTo(X, Fraction(1, 10)), {"x": (0, 1)})
    assert 0 < found.error <= Fraction(1, 2**53)
    jump = analyse(RoundTo(X, Fraction(1, 4)), {"x": (0, 1)}, errors={"x": Fraction(1, 100)})
    assert jump.error == Fraction(1, 4)


def test_every_case_of_a_branch_counts():
    steps = trace(lambda x: 3 * x if x < 1 else (x if x == 4 else 5 * x))
    assert isinstance(steps, Piecewise)
    whole = analyse(steps, {"x": (0, 8)})
    assert [premise.expression for premise in whole.premises] == [steps.then, steps.otherwise]
    assert list(map(int, whole.conclusion.real)) == [0, 40]
    assert analyse(steps, {"x": (4, 4)}).error == 0
    assert list(map(int, analyse(steps, {"x": (2, 3)}).conclusion.real)) == [10, 15]
