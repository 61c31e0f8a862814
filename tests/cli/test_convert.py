"""`lastbit convert`: the numbers, the theorems, the refusals."""

import json
from fractions import Fraction

import pytest

from lastbit.privacy.guarantees import ZCDP, ApproxDP, PureDP, RenyiDP, from_json
from tests.cli.running import read, refused, succeeded


def guarantee(values: dict):
    return from_json(json.dumps(values))


def test_concentrated_to_approximate_shows_order_theorem_and_the_usual_formula():
    output = succeeded("convert", "zcdp 0.1", "--delta", "1e-9")
    assert "ρ = 0.1" in output
    assert "ε ≤ 2.71549, δ = 1e-9" in output
    assert "Prop. 12" in output
    assert "α = 14.436" in output
    assert "gives ε = 2.97912: 0.264 more than needed." in output


def test_the_order_shown_gives_the_result_shown():
    values = read("convert", "zcdp 0.1", "--delta", "1e-9")
    by_order = ZCDP("0.1").to(RenyiDP, alpha=values["order"]).to(ApproxDP, delta="1e-9")
    result = guarantee(values["to"])
    assert result == ZCDP("0.1").to(ApproxDP, delta="1e-9")
    assert abs(by_order.epsilon / result.epsilon - 1) < Fraction(1, 10**9)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("pure 1", "--to", "zcdp"), PureDP(1).to(ZCDP)),
        (("pure 1", "--to", "approx"), ApproxDP(1, 0)),
        (("pure 1", "--alpha", "3/2"), PureDP(1).to(RenyiDP, alpha="3/2")),
        (("zcdp 1/3", "--alpha", "3"), RenyiDP(3, 1)),
        (("pure 1/2", "--group", "3"), PureDP("3/2")),
        (("zcdp 1/2", "--group", "4"), ZCDP(8)),
        (("PURE 0.1", "--group", "2", "--to", "zcdp"), PureDP("0.2").to(ZCDP)),
        (("probabilistic 1 1e-6", "--to", "approx"), ApproxDP(1, "1e-6")),
        (("pure 1", "--delta", "1e-3"), PureDP(1).to(ApproxDP, delta="1e-3")),
        (("zcdp 0.1", "--epsilon", "2"), ZCDP("0.1").to(ApproxDP, epsilon=2)),
        (("renyi 10 0.5", "--delta", "1e-5"), RenyiDP(10, "0.5").to(ApproxDP, delta="1e-5")),
        (("approx 1 1e-6", "--group", "2"), ApproxDP(1, "1e-6").group(2)),
    ],
)
def test_results_are_those_of_the_library_and_round_trip(arguments, expected):
    values = read("convert", *arguments)
    assert guarantee(values["to"]) == expected
    assert from_json(guarantee(values["from"]).to_json()) == guarantee(values["from"])
    assert values["theorems"]
    assert "theorem" in succeeded("convert", *arguments)


def test_what_is_shown_is_not_below_the_truth():
    output = succeeded("convert", "pure 1", "--delta", "1e-3")
    headline = output.splitlines()[0]
    shown = Fraction(headline.split("≤")[1].split(",")[0].strip())
    exact = PureDP(1).to(ApproxDP, delta="1e-3").epsilon
    assert exact <= shown <= exact * (1 + Fraction(1, 10**5))


def test_a_delta_that_is_spent_already_promises_nothing():
    output = succeeded("convert", "approx 1 1e-6", "--delta", "1e-9")
    assert "ε = ∞" in output
    assert "No ε is promised" in output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("zcpd 1", "--delta", "0.1"), 'unknown kind "zcpd"; write "pure 1"'),
        (("", "--delta", "0.1"), "is empty"),
        (("pure", "--delta", "0.1"), "has 0 numbers"),
        (("pure 1 2", "--delta", "0.1"), "has 2 numbers"),
        (("pure nan", "--delta", "0.1"), "not a number; write a number such as"),
        (("pure inf", "--delta", "0.1"), "not a number"),
        (("pure -1", "--delta", "0.1"), "negative"),
        (("pure 1/0", "--delta", "0.1"), "denominator 0"),
        (("pure 1e999999999", "--delta", "0.1"), "digits"),
        (("pure 1e-5000", "--delta", "0.1"), "more than 1000 digits"),
        (("renyi 1 1", "--delta", "0.1"), "not above 1"),
        (("approx 1 2", "--delta", "0.1"), "not between 0 and 1"),
        (("zcdp 0.1",), "--to is missing; pass --delta"),
        (("zcdp 0.1", "--to", "approx"), "--delta is missing"),
        (("zcdp 0.1", "--to", "renyi"), "--alpha is missing"),
        (("zcdp 0.1", "--to", "pure"), "zcdp cannot be converted to pure"),
        (("zcdp 0.1", "--delta", "nan"), "--delta is 'nan'"),
        (("zcdp 0.1", "--delta", "-1"), "--delta is not between 0 and 1"),
        (("zcdp 0.1", "--delta", "1e-9", "--epsilon", "1"), "--delta and --epsilon contradict"),
        (("zcdp 0.1", "--delta", "1e-9", "--to", "zcdp"), "belongs to approx, not to zcdp"),
        (("zcdp 0.1", "--alpha", "1"), "not above 1"),
        (("renyi 2 1", "--group", "2"), "no group rule"),
        (("zcdp 0.1", "--group", "0"), "--group"),
        (("zcdp 0.1", "--to", "best"), "--to"),
    ],
)
def test_refusals_name_the_remedy(arguments, words):
    assert words in refused("convert", *arguments)


@pytest.mark.parametrize("text", ["zcdp 1e300", "zcdp 1e-300", "pure 1e300", "renyi 1e300 1e300"])
def test_absurd_sizes_never_end_in_a_traceback(text):
    from tests.cli.running import lastbit

    result = lastbit("convert", text, "--delta", "1e-9")
    assert result.exit_code in (0, 2)
    assert "Traceback" not in result.output
