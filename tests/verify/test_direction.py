"""Code that is called monotone is: against every uniform of small generators, and dense doubles.

Two programs follow the steps, the producer's and the checker's. Whatever either calls monotone is
run on all uniforms; whatever the producer proves the checker must accept.
"""

import copy
import math
import struct
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st

from lastbit.checker.direction import check_monotone, reaches
from lastbit.checker.dispatch import problem_of
from lastbit.checker.numbers import Rejected
from lastbit.errors import LastbitError, NotCertified
from lastbit.verify.certificate import certificate
from lastbit.verify.direction import NotFollowed, _way as direction
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
    Sign,
    Sqrt,
    Subtract,
    Variable,
    expression_to_json,
)
from lastbit.verify.running.code import Code, order
from lastbit.verify.running.law import exact_loss
from lastbit.verify.running.uniforms import Grid
from lastbit.verify.running.witness import refute
from lastbit.verify.tracing.trace import trace

U, VALUE = Variable("u"), Variable("value")


# ---------------------------------------------------------------- running expressions


def computed(expression: Expression, value: float, u: float) -> float:
    """The expression in Python's own floats, one operation after the other."""

    def of(e: Expression) -> float:
        match e:
            case Constant():
                return float(e.value)
            case Variable():
                return {"u": u, "value": value}[e.name]
            case Add():
                return of(e.left) + of(e.right)
            case Subtract():
                return of(e.left) - of(e.right)
            case Multiply():
                return of(e.left) * of(e.right)
            case Divide():
                return of(e.left) / of(e.right)
            case Negate():
                return -of(e.argument)
            case Ln():
                return math.log(of(e.argument))
            case Exp():
                return math.exp(of(e.argument))
            case Sqrt():
                return math.sqrt(of(e.argument))
            case Absolute():
                return abs(of(e.argument))
            case Sign():
                x = of(e.argument)
                return float((x > 0) - (x < 0))
            case Clamp():
                x = of(e.argument)
                x = x if e.low is None else max(x, float(e.low))
                return x if e.high is None else min(x, float(e.high))
            case RoundTo():
                return float(round(Fraction(of(e.argument)) / e.step) * e.step)
            case Piecewise():
                at = {"u": u, "value": value}[e.condition.name]
                return of(e.then if e.condition.holds(Fraction(at)) else e.otherwise)
        raise AssertionError(e)

    return of(expression)


def way_of(expression: Expression, value: float, uniforms: list[float]) -> set[int]:
    """All ways in which the outputs go from one uniform to the next."""
    outputs = [order(computed(expression, value, u)) for u in uniforms]
    return {(b > a) - (b < a) for a, b in pairwise(outputs)} - {0}


def proved(expression: Expression, value: float, low: float, high: float) -> int | None:
    try:
        return direction(expression, value, low, high)
    except (NotFollowed, ArithmeticError, ValueError):
        return None


def accepted(expression: Expression, value: float, low: float, high: float) -> bool:
    try:
        check_monotone(expression_to_json(expression), value, low, high)
    except (Rejected, ArithmeticError):
        return False
    return True


# ---------------------------------------------------------------- generated steps

numbers = st.sampled_from(["-3", "-1", "-1/3", "0", "1/4", "1/2", "1", "2", "10"]).map(Fraction)
leaves = st.one_of(st.just(U), st.just(VALUE), numbers.map(Constant))


def extended(below: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    conditions = st.builds(
        Condition, st.sampled_from(["u", "value"]), st.sampled_from(["<", "<=", "=="]), numbers
    )
    return st.one_of(
        *(st.builds(kind, below, below) for kind in (Add, Subtract, Multiply, Divide)),
        *(st.builds(kind, below) for kind in (Negate, Ln, Exp, Sqrt, Absolute, Sign)),
        st.builds(Clamp, below, st.one_of(st.none(), numbers), st.none()),
        st.builds(Clamp, below, st.none(), numbers),
        st.builds(RoundTo, below, st.sampled_from(["1/8", "1/4", "1", "1/3"]).map(Fraction)),
        st.builds(Piecewise, conditions, below, below),
    )


programs = st.recursive(leaves, extended, max_leaves=8)
SMALL = [k / 64 for k in range(1, 64)]
TINY = [2.0**-k for k in range(1070, 0, -7)]


def beside(points: list[float]) -> list[float]:
    """The points with some floats on either side of each: where cases change and results round."""
    found = set(points)
    for x in points:
        low = high = x
        for _ in range(3):
            low, high = math.nextafter(low, -math.inf), math.nextafter(high, math.inf)
            found |= {low, high}
    return sorted(x for x in found if 0 < x < 1)


DENSE = beside([*TINY, *SMALL, 1 / 3, 1 - 2.0**-53])


def test_what_is_proved_is_so_and_the_checker_agrees(extent):
    """All uniforms of 64 points, and hundreds of doubles beside every edge and down to 2**-1070."""

    @settings(max_examples=extent.generated(100, 2_000))
    @given(programs, st.sampled_from([-2.5, -0.0, 0.0, 0.3, 1.0, 7.0]))
    @example(Piecewise(Condition("u", "<", Fraction(1, 2)), Ln(U), Negate(Ln(U))), 0.0)
    @example(Clamp(Subtract(U, Constant("1/2")), Fraction(0), None), 0.0)
    @example(Multiply(Subtract(U, Constant("1/2")), VALUE), -0.0)
    @example(Negate(Absolute(Subtract(U, Constant(1)))), 0.0)
    def holds(expression, value):
        for uniforms in (SMALL, DENSE):
            low, high = uniforms[0], uniforms[-1]
            way = proved(expression, value, low, high)
            if way is not None or accepted(expression, value, low, high):
                ways = way_of(expression, value, uniforms)
                assert len(ways) <= 1
                if way is not None:
                    assert ways <= {way}
                    assert accepted(expression, value, low, high)

    holds()


def test_the_checker_knows_where_a_step_lies(extent):
    @settings(max_examples=extent.generated(100, 2_000))
    @given(programs, st.sampled_from([-2.5, 0.3, 7.0]), st.sampled_from(DENSE))
    def holds(expression, value, u):
        try:
            low, high = reaches(expression_to_json(expression), value, u)
        except (Rejected, ArithmeticError):
            return
        assert low <= computed(expression, value, u) <= high

    holds()


def half(bits: int) -> float:
    """The number of a binary16 pattern."""
    return float(struct.unpack("<e", struct.pack("<H", bits))[0])


HALVES = [half(bits) for bits in range(1, 0x3C00)]  # every binary16 in (0, 1)


@pytest.mark.thinned(one_in=4)
@pytest.mark.parametrize(
    "noise",
    [
        lambda value, u: value + 2.0 * math.log(u),
        lambda value, u: value - 0.3 * math.log(1 - u),
        lambda value, u: value + (math.log(u) - math.log(1 - u)),
        lambda value, u: value + math.log(2 * u) if u < 0.5 else value - math.log(2 - 2 * u),
        lambda value, u: 0.25 * round((value + math.log(u)) / 0.25),
        lambda value, u: min(max(0.5 * round((value + math.log(u)) / 0.5), -8.0), 8.0),
        lambda value, u: value + math.sqrt(u) * math.exp(u),
        lambda value, u: value / (1 + u),
        lambda value, u: abs(u - 1) * -3.0,
        lambda value, u: 1.0 if u < 0.25 else 0.0,
        lambda value, u: u * u,
    ],
)
def test_ordinary_noise_is_proved_and_so_on_every_binary16(noise: Callable[..., float]):
    """The uniforms of a generator of 16 bits, all 15359 of them, at a few inputs."""
    expression = trace(noise, "value", "u")
    for value in (0.0, 1.0, -3.7):
        way = proved(expression, value, HALVES[0], HALVES[-1])
        if value == 0.0 and way is None:  # 0/(1 + u): a factor may be 0
            continue
        assert way is not None
        assert accepted(expression, value, HALVES[0], HALVES[-1])
        assert way_of(expression, value, HALVES) <= {way}


MUTANTS: dict[str, Callable[..., float]] = {
    "a hump": lambda value, u: value + u * (1 - u),
    "logarithms that pull both ways": lambda value, u: value + math.log(u) + math.log(1 - u),
    "a jump back": lambda value, u: value + u if u < 0.5 else value + u - 0.25,
    "a slope that turns": lambda value, u: u if u < 0.5 else 1 - u,
    "one uniform singled out": lambda value, u: 5.0 if u == 0.5 else u,
    "a sign inside": lambda value, u: abs(u - 0.5),
    "a product through 0": lambda value, u: (u - 0.5) * (u - 0.25),
    "a clamp at 0": lambda value, u: max(u - 0.5, 0.0),
    "a pole": lambda value, u: 1 / (u - 0.3),
    "a dip of one ulp": lambda value, u: u if u <= 0.5 else u - 2.0**-52,
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutants_are_called_monotone_by_neither(name):
    expression = trace(MUTANTS[name], "value", "u")
    assert proved(expression, 1.0, 2.0**-20, 1 - 2.0**-20) is None
    assert not accepted(expression, 1.0, 2.0**-20, 1 - 2.0**-20)


def test_a_stretch_between_two_turns_is_monotone():
    expression = trace(MUTANTS["a slope that turns"], "value", "u")
    assert proved(expression, 0.0, 0.1, 0.4) == 1 and proved(expression, 0.0, 0.6, 0.9) == -1
    assert accepted(expression, 0.0, 0.1, 0.4) and accepted(expression, 0.0, 0.6, 0.9)


def test_cases_in_cases_cannot_take_for_ever():
    """Each step uses the one before it twice, in two cases: 2**60 ways through sixty steps."""
    rows: list[list[Any]] = [["VAR", "u"], ["CONST", "1"]]
    for k in range(60):
        rows.append(["CASES", len(rows) - 2, len(rows) - 2, "u", "<", f"{k + 1}/128"])
        rows.append(["ADD", len(rows) - 1, 1])
    with pytest.raises(Rejected):
        check_monotone(rows, 0.0, 0.001, 0.999)


@pytest.mark.parametrize(
    "rows",
    [[], [["VAR", "w"]], [["ADD", 0, 1]], [["LN", 0]], [["VAR", "u"], ["POW", 0]],
     [["VAR", "u"], ["CASES", 0, 1, "u", "<", "1/2"]], [["VAR", "u"], ["ROUND", 0, "0"]],
     [["VAR", "u"], ["CASES", 0, 0, "w", "<", "1/2"]], "steps", None],
)  # fmt: skip
def test_what_are_no_steps_is_rejected(rows):
    with pytest.raises((Rejected, TypeError, LookupError, ValueError)):
        check_monotone(rows, 0.0, 0.1, 0.9)


# ---------------------------------------------------------------- certificates


def rounded(value, u, sign):
    return min(max(0.5 * round((value + sign * math.log(u)) / 0.5), -4.0), 4.0)


def humped(value, u):
    """Falls up to 1/4 and rises from there; the split makes it monotone, and products hide it."""
    return 0.25 * round((value + 8 * (u - 0.25) * (u - 0.25)) / 0.25)


def naive(value, u):
    return value + math.log(2 * u) if u < 0.5 else value - math.log(2 - 2 * u)


ROUNDED, HUMPED = (
    Code("tests.verify.test_direction:rounded"),
    Code("tests.verify.test_direction:humped"),
)
NAIVE = Code("tests.verify.test_direction:naive")


def resealed(sealed: dict[str, Any]) -> str | None:
    from lastbit.checker.numbers import digest

    sealed["digest"] = digest(sealed)
    return problem_of(sealed)


@pytest.mark.evidence
def test_certificates_say_whether_monotone_is_proved_or_probed():
    good = exact_loss(ROUNDED, 0.0, 1.0).certificate(ROUNDED)
    assert good["claim"]["monotone"] == "proved" and len(good["body"]["programs"]) == 2
    assert not any("probed" in line for line in good["assumptions"])
    loss = exact_loss(HUMPED, 0.0, 1.0, uniform=Grid(12), signs=None, pieces=[0.25])
    probed = loss.certificate(HUMPED)
    assert probed["claim"]["monotone"] == "probed" and probed["body"]["programs"] == []
    assert any("probed" in line for line in probed["assumptions"])
    assert "probed, not proved" in str(loss).splitlines()[0]
    found = refute(NAIVE, 0.0, 1.0, signs=None)
    assert found is not None
    assert found.certificate(NAIVE)["claim"]["monotone"] == "proved"
    assert "proved from its steps" in str(found).splitlines()[0]


def test_a_certificate_that_says_proved_must_prove_it():
    loss = exact_loss(HUMPED, 0.0, 1.0, uniform=Grid(12), signs=None, pieces=[0.25])
    probed = loss.certificate(HUMPED)
    assumed = exact_loss(ROUNDED, 0.0, 1.0).certificate(ROUNDED)["assumptions"]
    for steps in ([], [expression_to_json(trace(humped, "value", "u"))], [[["VAR", "u"]]]):
        forged = copy.deepcopy(probed)
        forged["claim"]["monotone"] = "proved"
        forged["body"]["programs"] = steps
        forged["assumptions"] = assumed
        assert resealed(forged) is not None
        with pytest.raises(NotCertified):
            certificate("law", forged["claim"], assumed, forged["body"])


def test_steps_of_other_code_are_rejected():
    """Monotone steps, but not those of the code: its outputs at the boundaries tell."""
    good = exact_loss(ROUNDED, 0.0, 1.0).certificate(ROUNDED)
    other = copy.deepcopy(good)
    for rows in other["body"]["programs"]:
        for row in rows:
            if row[0] == "CLAMP" and row[2] is None:
                row[3] = "7/2"
    assert resealed(other) == "the code does not take the steps written here"
    fewer = copy.deepcopy(good)
    fewer["body"]["programs"].pop()
    assert resealed(fewer) is not None
    unsaid = copy.deepcopy(good)
    unsaid["claim"]["monotone"] = "probed"
    assert resealed(unsaid) is not None
    unsaid["claim"]["monotone"] = "surely"
    assert resealed(unsaid) is not None


# ---------------------------------------------------------------- what cannot be asked

HUGE = Constant(10**400)


def deep(steps: int) -> Expression:
    expression: Expression = U
    for _ in range(steps):
        expression = Negate(expression)
    return expression


STRANGE: list[Any] = [
    Sqrt(Subtract(U, Constant(2))), Ln(Subtract(U, Constant(2))), HUGE, Add(HUGE, U),
    Add(HUGE, Constant(1)), Divide(U, Constant(0)), RoundTo(HUGE, Fraction(1)),
    Clamp(U, Fraction(10**400), None), Absolute(HUGE), Negate(HUGE), Variable("x"), None, "u",
    Piecewise(Condition("u", "<", Fraction(10**400)), U, VALUE), Exp(Multiply(HUGE, U)), U,
    RoundTo(U, Fraction(1, 10**400)), deep(3000),
]  # fmt: skip
NUMBERS = [0.0, -0.0, 1.0, 5e-324, -1e308]
STRETCHES = [(0.25, 0.75), (-1.0, 2.0), (5e-324, 1.0), (0.5, 0.5)]


def test_every_refusal_is_an_error_of_ours_with_a_remedy():
    """A square root below 0 was a ValueError of `math`."""
    refused = 0
    for steps, value, stretch in product(STRANGE, NUMBERS, STRETCHES):
        try:
            assert direction(steps, value, *stretch) in (-1, 0, 1)
        except LastbitError as error:
            assert "; " in str(error)
            refused += 1
    assert refused > 250
    assert direction(U, 1.0, 0.0, 1.0) == 1
