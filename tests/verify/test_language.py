"""Expressions: tables, JSON, evaluation and spelling."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

from lastbit.errors import InvalidParameter, Overflow, Undecidable
from lastbit.verify.error_bounds.formats import BINARY16, BINARY64, Fixed
from lastbit.verify.language.evaluation import machine_value, real_value
from lastbit.verify.language.expressions import (
    Absolute,
    Add,
    Clamp,
    Condition,
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
    expression_from_json,
    expression_to_json,
    latex,
    names,
    table,
    text,
)
from tests.verify.expressions import CASES, X, Y, float_value, placed


@settings(max_examples=200)
@given(CASES)
def test_json_comes_back(case):
    expression = case[0]
    rows = expression_to_json(expression)
    again = expression_from_json(rows)
    assert again == expression
    assert expression_to_json(again) == rows


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [["VAR"]],
        [["ADD", 0, 1]],
        [["VAR", "x"], ["ADD", 0, 1]],
        [["VAR", "x"], ["ADD", 0, -1]],
        [["VAR", "x"], ["ADD", 0, True]],
        [["VAR", "x y"]],
        [["POW", 0]],
        [["CONST", 3]],
        [["CONST", "0.5"]],
        [["VAR", "x"], ["CLAMP", 0, "2", "1"]],
        [["VAR", "x"], ["ROUND", 0, "0"]],
        [["SAMPLE", "u", "cauchy"]],
        [["VAR", "x"], ["CASES", 0, 0, "x", ">", "1"]],
    ],
)
def test_other_json_is_refused(rows):
    with pytest.raises(InvalidParameter):
        expression_from_json(rows)


def test_a_shared_part_is_one_step():
    x: Expression = X
    for _ in range(60):  # 2**60 leaves if written out
        x = Add(x, x)
    assert len(table(x).expressions) == 61
    assert names(x) == ("x",)
    assert expression_from_json(expression_to_json(x)) is not None
    assert float_value(x, {"x": 1.0}) == 2.0**60
    assert len(text(x)) <= 20_000


@settings(max_examples=200, deadline=None)
@given(CASES)
def test_binary64_is_what_python_computes(case):
    """But for ln and exp, where Python's library may be off by a bit."""
    expression, _, inputs = placed(case, BINARY64)
    assume(not any(isinstance(e, Ln | Exp) for e in table(expression).expressions))
    try:
        exact = machine_value(expression, inputs, BINARY64)
    except (Overflow, InvalidParameter):
        assume(False)
    assert Fraction(float_value(expression, {n: float(x) for n, x in inputs.items()})) == exact


@given(st.integers(1, 31743))
@settings(max_examples=100)
def test_binary16_functions_are_correctly_rounded(pattern):
    x = Fraction(float(np.array([pattern], dtype=np.uint16).view(np.float16)[0]))
    root = machine_value(Sqrt(Variable("x")), {"x": x}, BINARY16)
    assert root == Fraction(float(np.sqrt(np.float16(float(x)))))
    half = BINARY16.ulp(Fraction(float(np.log(float(x))))) / 2
    ln = machine_value(Ln(Variable("x")), {"x": x}, BINARY16)
    assert abs(ln - Fraction(math.log(x))) <= half * Fraction(1001, 1000)


def test_exact_values_of_functions():
    for format in (BINARY16, BINARY64, Fixed(10, 10)):
        assert machine_value(Ln(Constant(1)), {}, format) == 0
        assert machine_value(Exp(Constant(0)), {}, format) == 1
        assert machine_value(Sqrt(Constant(4)), {}, format) == 2
        assert machine_value(Sqrt(Constant(0)), {}, format) == 0
    assert machine_value(Exp(Constant(-(10**7))), {}, BINARY64) == 0
    assert machine_value(Exp(Constant(-2000)), {}, BINARY64) == 0
    with pytest.raises(Overflow):
        machine_value(Exp(Constant(10**7)), {}, BINARY64)


@pytest.mark.parametrize(
    "expression",
    [Ln(Constant(0)), Ln(Constant(-1)), Sqrt(Constant(-1)), Divide(X, Constant(0)), Y],
)
def test_nothing_is_computed_outside_the_domain(expression):
    with pytest.raises(InvalidParameter):
        machine_value(expression, {"x": Fraction(1)}, BINARY64)


def test_an_input_must_be_of_the_format():
    with pytest.raises(InvalidParameter):
        machine_value(X, {"x": Fraction(1, 3)}, BINARY64)


def test_the_real_value_is_enclosed():
    expression = Divide(Sqrt(Exp(X)), Ln(Y))
    ball = real_value(expression, {"x": Fraction(2), "y": Fraction(3)})
    assert abs(float(ball.ends[0]) - math.e / math.log(3)) < 1e-15
    assert ball.ends[1] - ball.ends[0] < Fraction(1, 10**30)


def test_a_jump_is_not_guessed():
    nearly = Sign(Subtract(Multiply(Sqrt(X), Sqrt(X)), X))
    with pytest.raises(Undecidable):
        real_value(nearly, {"x": Fraction(2)})
    assert real_value(Sign(X), {"x": Fraction(-2)}) == -1


def test_only_the_branch_taken_is_evaluated():
    safe = Piecewise(Condition("x", "<=", Fraction(0)), Constant(7), Ln(X))
    assert machine_value(safe, {"x": Fraction(-1)}, BINARY64) == 7
    assert float_value(safe, {"x": 0.0}) == 7
    assert real_value(safe, {"x": Fraction(1)}) == 0


def test_rounding_to_a_grid():
    to = RoundTo(X, Fraction(1, 4))
    for x, wanted in {0.3: 0.25, 0.125: 0.0, 0.375: 0.5, -0.125: 0.0, 5.0: 5.0}.items():
        assert machine_value(to, {"x": Fraction(x)}, BINARY64) == Fraction(wanted)
        assert float_value(to, {"x": x}) == wanted


@pytest.mark.parametrize(
    ("expression", "spelled", "set_in_latex"),
    [
        (Subtract(X, Add(X, Y)), "x - (x + y)", r"x - \left(x + y\right)"),
        (Divide(X, Multiply(X, Y)), "x / (x * y)", r"\frac{x}{x \times y}"),
        (Multiply(Constant("0.1"), X), "0.1 * x", r"0.1 \times x"),
        (Multiply(Constant("1/3"), X), "(1/3) * x", r"\frac{1}{3} \times x"),
        (Negate(Add(X, Y)), "-(x + y)", r"-\left(x + y\right)"),
        (Sqrt(Absolute(X)), "sqrt(abs(x))", r"\sqrt{\left|x\right|}"),
        (Clamp(X, None, Fraction(2)), "clamp(x, none, 2)", None),
        (RoundTo(X, Fraction(1, 2)), "round(x, 0.5)", r"\left\lfloor x \right\rceil_{0.5}"),
        (Sample("u", "uniform"), "u", "u"),
        (Sign(Variable("query_value")), "sgn(query_value)", None),
        (Multiply(X, Constant(-2)), "x * (-2)", None),
        (
            Piecewise(Condition("x", "<=", Fraction(0)), Negate(X), X),
            "(-x if x <= 0 else x)",
            r"\begin{cases} -x & x \leq 0 \\ x & \text{else} \end{cases}",
        ),
    ],
)
def test_spelling(expression, spelled, set_in_latex):
    assert text(expression) == spelled
    assert set_in_latex is None or latex(expression) == set_in_latex
    assert latex(expression).count("{") == latex(expression).count("}")
