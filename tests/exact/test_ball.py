"""Balls hold the truth, decide only what is certain, and leave the precision as they found it."""

import operator
import signal
import threading
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from flint import arb, ctx
from hypothesis import assume, example, given, strategies as st

from lastbit.errors import InvalidParameter, LastbitError, Undecidable
from lastbit.exact.ball import Ball, arb_of, ends, floor_ceil, working_precision
from tests.exact.enclosing import ends_of, holds
from tests.sampling.children import in_child

OPERATIONS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}
COMPARISONS: list[Callable[[Any, Any], bool]] = [
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
    operator.eq,
    operator.ne,
]
SMALL = st.fractions(max_denominator=10**6)


def wide(low: int, high: int) -> Ball:
    """The ball from low to high, about."""
    return Ball(arb(low).union(arb(high)))


# -- arithmetic encloses --

leaves = st.tuples(st.sampled_from(["ball", "plain"]), st.fractions())
trees = st.recursive(
    leaves, lambda below: st.tuples(st.sampled_from("+-*/"), below, below), max_leaves=12
)


def evaluated(tree: Any) -> tuple[Any, Fraction]:
    """A tree in balls (or left plain), and in fractions."""
    if tree[0] in ("ball", "plain"):
        number = tree[1]
        return (Ball.of(number) if tree[0] == "ball" else number), number
    sign, left, right = tree
    (ball_left, exact_left), (ball_right, exact_right) = evaluated(left), evaluated(right)
    if sign == "/":
        assume(exact_right != 0)
        if isinstance(ball_right, Ball):
            low, high = ball_right.ends
            assume(not low <= 0 <= high)
    operation = OPERATIONS[sign]
    return operation(ball_left, ball_right), operation(exact_left, exact_right)


@given(trees)
@example(("-", ("ball", Fraction(1, 3)), ("ball", Fraction(1, 3))))
@example(("-", ("plain", Fraction(1, 3)), ("ball", Fraction(1, 7))))
@example(("/", ("plain", Fraction(2)), ("ball", Fraction(1, 3))))
@example(("*", ("ball", Fraction(1, 3)), ("plain", Fraction(10**400))))
def test_every_expression_is_enclosed(tree):
    ball, exact = evaluated(tree)
    if isinstance(ball, Ball):
        assert holds(ball.enclosure, exact)
        assert ball.contains(exact)
        low, high = ends_of(ball.enclosure)
        assert ball.ends == (low, high)
    else:
        assert ball == exact


@given(st.fractions(), st.fractions(min_value=0), st.fractions())
def test_a_wide_ball_holds_every_result(middle, radius, other):
    """The ends of a wide ball are its hardest members."""
    with working_precision(64):
        ball = Ball(arb_of(middle).union(arb_of(middle + radius)))
    for member in (middle, middle + radius / 3, middle + radius):
        assert (ball + other).contains(member + other)
        assert (ball - other).contains(member - other)
        assert (other - ball).contains(other - member)
        assert (ball * other).contains(member * other)
        assert (ball * ball).contains(member * member)
        assert (-ball).contains(-member)
        assert abs(ball).contains(abs(member))


@given(st.fractions(), st.sampled_from([24, 53, 128, 1000]))
def test_balls_are_as_tight_as_asked(number, precision):
    low, high = Ball.of(number, precision=precision).ends
    assert low <= number <= high
    assert high - low <= abs(number) * Fraction(1, 1 << (precision - 4))


@pytest.mark.parametrize("surroundings", [2, 53, 500])
def test_no_operation_loses_precision_to_its_surroundings(surroundings):
    third = Ball.of("1/3", precision=200)
    with working_precision(surroundings):
        results = [
            -third,
            abs(third),
            third + 1,
            1 + third,
            third - 1,
            1 - third,
            third * 3,
            3 * third,
            third / 7,
            7 / third,
            third.exp(),
            third.log(),
            third.sqrt(),
        ]
    for result in results:
        low, high = result.ends
        assert high - low < Fraction(1, 1 << 180)


def test_every_kind_of_operand():
    half = Ball.of("1/2")
    for two in (2, Fraction(2), Decimal(2), 2.0, "2", Ball.of(2)):
        assert (half * two).contains(1)
        assert (half + two).contains("5/2")
        assert half < two
        assert half != two
    assert (1.5 - half).contains(1)
    assert (Decimal(1) / half).contains(2)
    with pytest.raises(InvalidParameter):
        half + float("nan")
    with pytest.raises(InvalidParameter):
        half * "abc"
    with pytest.raises(LastbitError):
        half < None  # type: ignore[operator]  # noqa: B015


def test_functions_enclose():
    two = Ball.of(2)
    assert (two.sqrt() * two.sqrt()).contains(2)
    assert two.log().exp().contains(2)
    assert Ball.of(0).exp().contains(1)
    assert Ball.of(0).sqrt().contains(0)
    assert Ball.of(1).log().contains(0)


def test_functions_outside_their_domain():
    with pytest.raises(ArithmeticError):
        Ball.of(-1).sqrt()
    for nothing in (0, -1):
        with pytest.raises(ArithmeticError):
            Ball.of(nothing).log()
    for function in (Ball.log, Ball.sqrt):
        with pytest.raises(Undecidable):
            function(wide(-1, 1))


def test_a_quotient_by_zero_decides_nothing():
    lost = Ball.of(1) / 0
    for compare in COMPARISONS:
        with pytest.raises(Undecidable):
            compare(lost, 1)


# -- comparisons --


@given(SMALL, SMALL)
def test_exact_numbers_compare_as_they_should(left, right):
    """At 128 bits two fractions of twenty bits are told apart, or are the same."""
    for compare in COMPARISONS:
        try:
            answer = compare(Ball.of(left), right)
        except Undecidable:
            assert left == right  # a third is in no ball alone
            assert (left.denominator & (left.denominator - 1)) != 0
        else:
            assert answer == compare(left, right)


@given(st.fractions(), st.fractions(), st.fractions(), st.fractions())
def test_an_answer_is_true_of_all_members(a, b, c, d):
    with working_precision(30):
        left = Ball(arb_of(a).union(arb_of(b)))
        right = Ball(arb_of(c).union(arb_of(d)))
    for compare in COMPARISONS:
        answers = {compare(x, y) for x in (*left.ends, a, b) for y in (*right.ends, c, d)}
        try:
            answer = compare(left, right)
        except Undecidable:
            continue
        assert answers == {answer}


@pytest.mark.parametrize("compare", COMPARISONS)
def test_overlapping_balls_are_undecidable(compare):
    with pytest.raises(Undecidable, match=r"does not decide .*precision"):
        compare(wide(0, 2), wide(1, 3))
    with pytest.raises(Undecidable):
        compare(wide(0, 2), 1)
    third = Ball.of("1/3")
    with pytest.raises(Undecidable):
        compare(third * 3, 1)


def test_touching_ends():
    exact = Ball.of(1)
    assert exact <= 1
    assert exact >= 1
    assert exact == 1
    assert not exact < 1
    assert not exact > 1
    low, high = wide(0, 2).ends
    assert wide(0, 2) <= high
    assert wide(0, 2) >= low
    with pytest.raises(Undecidable):
        wide(0, 2) < high  # noqa: B015
    with pytest.raises(Undecidable):
        wide(0, 2) == high  # noqa: B015


def test_the_error_is_of_lastbit_and_arithmetic():
    assert issubclass(Undecidable, LastbitError)
    assert issubclass(Undecidable, ArithmeticError)


def test_a_ball_is_neither_truth_nor_float_nor_key():
    ball = Ball.of("1/3")
    with pytest.raises(TypeError, match="compare"):
        bool(ball)
    with pytest.raises(TypeError, match="upper or lower"):
        float(ball)
    with pytest.raises(TypeError):
        hash(ball)
    with pytest.raises(TypeError):
        {ball}  # noqa: B018
    with pytest.raises((AttributeError, TypeError)):
        ball.enclosure = arb(1)  # type: ignore[misc]
    assert (ball == object()) is False
    assert (ball == None) is False  # noqa: E711


# -- ends, floor and ceiling --


@given(
    st.integers(-(2**90), 2**90),
    st.integers(-100, 100),
    st.integers(0, 2**29),
    st.integers(-100, 100),
)
def test_ends_and_integers_around(middle, exponent, radius, radius_exponent):
    with working_precision(2000):
        ball = arb(arb((middle, exponent)), arb((radius, radius_exponent)))
        low, high = ends(ball)
        assert (low, high) == ends_of(ball)
        below, above = floor_ceil(ball)
    assert below <= low
    assert above >= high
    assert below > low - 2  # as close as the ball allows
    assert above < high + 2


@given(st.fractions())
def test_a_rational_is_enclosed_at_any_precision(number):
    for precision in (2, 24, 300):
        with working_precision(precision):
            assert holds(arb_of(number), number)


def test_integers_are_exact_at_any_precision():
    with working_precision(2):
        assert ends_of(arb_of(12345)) == (Fraction(12345), Fraction(12345))


# -- the working precision --


def test_the_precision_comes_back():
    before = ctx.prec
    with working_precision(777):
        assert ctx.prec == 777
        with working_precision(55):
            assert ctx.prec == 55
        assert ctx.prec == 777
    assert ctx.prec == before


def test_the_precision_comes_back_after_an_exception():
    before = ctx.prec
    with pytest.raises(KeyError), working_precision(777), working_precision(55):
        raise KeyError
    assert ctx.prec == before
    for attempt in (
        lambda: Ball.of("abc", precision=500),
        lambda: Ball.of(-1, precision=500).sqrt(),
        lambda: wide(0, 2) < 1,
        lambda: Ball.of(1).contains(None),
        lambda: Ball.of("1/3", precision=400) + "x",
    ):
        with pytest.raises((LastbitError, ArithmeticError)):
            attempt()
        assert ctx.prec == before


@pytest.mark.parametrize("bits", [0, -1, "64"])
def test_a_senseless_precision_changes_nothing(bits):
    before = ctx.prec
    with pytest.raises((ValueError, TypeError)), working_precision(bits):
        pass
    assert ctx.prec == before
    with working_precision(100):  # and the lock is free
        assert ctx.prec == 100


def test_threads_do_not_see_each_others_precision():
    before = ctx.prec
    start = threading.Barrier(3)
    seen: dict[int, set[int]] = {40: set(), 400: set(), 4000: set()}
    radii: dict[int, set[bool]] = {bits: set() for bits in seen}

    def compute(bits: int) -> None:
        start.wait()
        for _ in range(300):
            with working_precision(bits):
                seen[bits].add(ctx.prec)
                third = arb(1) / 3
                seen[bits].add(ctx.prec)
            low, high = ends_of(third)
            radii[bits].add(high - low < Fraction(1, 1 << (bits - 4)))

    threads = [threading.Thread(target=compute, args=(bits,)) for bits in seen]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == {bits: {bits} for bits in seen}
    assert radii == {bits: {True} for bits in seen}
    assert ctx.prec == before


def test_a_second_thread_waits_for_the_first():
    """While one thread is inside, no other gets in; it does once the first has left."""
    order: list[str] = []
    inside, leave = threading.Event(), threading.Event()

    def first() -> None:
        with working_precision(1000):
            inside.set()
            leave.wait()
            order.append(f"first at {ctx.prec}")

    def second() -> None:
        inside.wait()
        leave.set()
        with working_precision(60):
            order.append(f"second at {ctx.prec}")

    threads = [threading.Thread(target=work) for work in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert order == ["first at 1000", "second at 60"]


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_fork_while_another_thread_computes():
    """The child has no such thread: it must neither wait for it nor work at its precision."""
    before = ctx.prec
    inside, leave = threading.Event(), threading.Event()

    def compute() -> None:
        with working_precision(1000):
            inside.set()
            leave.wait()

    def work() -> list[int]:
        signal.alarm(20)  # a child that waits for ever is ended, and fails
        seen = ctx.prec
        low, high = Ball.of("1/3", precision=300).ends
        return [seen, high - low < Fraction(1, 1 << 290), ctx.prec]

    thread = threading.Thread(target=compute)
    thread.start()
    inside.wait()
    try:
        assert in_child(work)[1:] == [True, before]
    finally:
        leave.set()
        thread.join()


# -- how it looks --


@pytest.mark.parametrize("number", ["1/3", "0.1", 10**50, "-1e-30", 0, 2**70, "1e-400"])
def test_repr_holds_the_number_it_shows(number):
    """The digits shown, give or take the radius shown, hold the ball."""
    text = repr(Ball.of(number))
    assert text.startswith("Ball(")
    assert text.endswith(")")
    middle, _, radius = text.removeprefix("Ball(").removesuffix(")").partition("±")
    shown, error = Fraction(middle.strip() or 0), Fraction(radius.strip() or 0)
    low, high = Ball.of(number).ends
    assert shown - error <= low
    assert high <= shown + error
    assert len(text) < 60


def test_repr_of_wide_and_lost_balls():
    assert "±" in repr(wide(-1, 1))
    assert repr(Ball.of(0)) == "Ball(0)"
    assert "nan" in repr(Ball.of(1) / 0)


def test_precision_does_not_run_away():
    """A long chain of operations keeps the bits it knows, not ever more of them."""
    ball = Ball.of("1/3")
    for _ in range(500):
        ball = ball * "7/5"
        ball = ball + "1/9"
    assert ball.enclosure.bits() < 300
    assert ball.enclosure.rel_accuracy_bits() > 90
