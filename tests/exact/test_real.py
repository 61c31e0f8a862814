"""Computable reals, and asking until the answer is certain."""

import math
from decimal import Decimal
from fractions import Fraction

import pytest
from flint import arb, ctx
from hypothesis import assume, given, strategies as st

from lastbit.errors import InvalidParameter, LastbitError, PrecisionExhausted, Undecidable
from lastbit.exact.ball import Ball, Real, arb_of, refine
from tests.exact.enclosing import holds


def asked(*, decided_at: int):
    """A question that is certain from some precision on, and what it was asked."""
    precisions: list[int] = []

    def question(precision: int) -> str:
        precisions.append(precision)
        if precision < decided_at:
            raise Undecidable("not yet")
        return "answer"

    return question, precisions


def test_the_precision_doubles_until_the_answer_is_certain():
    question, precisions = asked(decided_at=300)
    assert refine(question) == "answer"
    assert precisions == [64, 128, 256, 512]


def test_start_and_limit():
    question, precisions = asked(decided_at=100)
    assert refine(question, start=25, limit=100) == "answer"
    assert precisions == [25, 50, 100]


def test_beyond_the_limit_it_gives_up():
    question, precisions = asked(decided_at=10**9)
    with pytest.raises(PrecisionExhausted, match=r"512 bits; .*raise limit=") as failure:
        refine(question, limit=512)
    assert precisions == [64, 128, 256, 512]
    assert isinstance(failure.value, LastbitError)
    assert isinstance(failure.value, ArithmeticError)


def test_other_errors_pass_through():
    def question(precision: int) -> bool:
        raise KeyError(precision)

    with pytest.raises(KeyError):
        refine(question)


def test_false_is_an_answer_too():
    root = Real(2).sqrt()
    assert refine(lambda precision: root.ball(precision) > 2) is False


def test_close_numbers_are_told_apart():
    root = Real(2).sqrt()
    # floor(sqrt(2) * 10**75), so the root lies between this and one unit more
    digits, unit = math.isqrt(2 * 10**150), 10**75
    below, above = Fraction(digits, unit), Fraction(digits + 1, unit)
    assert refine(lambda precision: root.ball(precision) > below)
    assert refine(lambda precision: root.ball(precision) < above)
    with pytest.raises(Undecidable):
        root.ball(64) > below  # noqa: B015


def test_equal_numbers_never_are():
    root = Real(2).sqrt()
    before = ctx.prec
    for question in (
        lambda precision: (root * root).ball(precision) > 2,
        lambda precision: (root * root).ball(precision) == 2,
        lambda precision: Real(3).log().exp().ball(precision) <= 3,
    ):
        with pytest.raises(PrecisionExhausted):
            refine(question, limit=2048)
        assert ctx.prec == before


@given(st.fractions(), st.fractions(), st.sampled_from([20, 64, 500]))
def test_arithmetic_encloses(left, right, precision):
    def check(real: Real, exact: Fraction) -> None:
        ball = real.ball(precision)
        assert isinstance(ball, Ball)
        assert holds(ball.enclosure, exact)

    check(Real(left), left)
    check(-Real(left), -left)
    check(Real(left) + right, left + right)
    check(left + Real(right), left + right)
    check(Real(left) - Real(right), left - right)
    check(left - Real(right), left - right)
    check(Real(left) * right, left * right)
    check(left * Real(right), left * right)
    assume(right != 0)
    check(Real(left) / Real(right), left / right)
    check(left / Real(right), left / right)


@pytest.mark.parametrize("number", [2, 2.0, "2", Fraction(2), Decimal(2)])
def test_every_kind_of_number(number):
    assert Real(number).ball(64) == 2
    assert (Real(1) + number).ball(64) == 3
    assert (number - Real(1)).ball(64) == 1


@pytest.mark.parametrize("number", [float("nan"), "abc", None, True])
def test_refuses_what_is_no_number(number):
    with pytest.raises(InvalidParameter):
        Real(number)
    with pytest.raises(InvalidParameter):
        Real(1) + number


def test_an_own_enclosure_is_asked_at_each_precision():
    asked_at: list[int] = []

    def enclosure() -> arb:
        asked_at.append(ctx.prec)
        return arb_of(Fraction(1, 3))

    number = Real(enclosure)
    assert asked_at == []
    third = number.ball(70)
    assert asked_at == [70]
    assert third.contains("1/3")
    low, high = number.ball(700).ends
    assert high - low < Fraction(1, 1 << 690)


def test_more_precision_gives_smaller_balls_within():
    """Nested up to the larger radius: both hold the number."""
    number = (Real("1/7").exp() + Real(2).sqrt()).log()
    widths = []
    for precision in (32, 64, 128, 256):
        low, high = number.ball(precision).ends
        widths.append(high - low)
        assert widths[-1] < Fraction(1, 1 << (precision - 8))
    assert widths == sorted(widths, reverse=True)
