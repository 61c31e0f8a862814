"""`lastbit poll`: plans, estimates, simulations."""

import json
import re
from fractions import Fraction

import pytest

from lastbit.mechanisms.poll import Poll
from lastbit.privacy.guarantees import PureDP, from_json
from tests.cli.running import read, refused, succeeded


def test_a_plan_says_how_many_and_what_to_do():
    output = succeeded("poll", "plan", "--epsilon", "1", "--half-width", "0.01")
    assert re.search(r"^people needed +44,971$", output, re.M)
    assert re.search(r"^without privacy +9,604$", output, re.M)  # (1.959964/0.02)**2 = 9603.6
    assert re.search(r"^price +4\.69 times", output, re.M)
    words = " ".join(output.split())
    assert "keep 0.731058, the probability" in words
    assert "with probability 0.462117 they answer truthfully. Otherwise they toss a" in words
    assert "26.89 % to 73.11 % afterwards" in words


@pytest.mark.parametrize("epsilon", ["1/10", "1", "7"])
@pytest.mark.parametrize("width", ["0.3", "0.01", "1e-6"])
def test_plans_are_those_of_the_library(epsilon, width):
    values = read("poll", "plan", "--epsilon", epsilon, "--half-width", width)
    poll = Poll(epsilon=epsilon)
    assert values["people"] == poll.sample_size(width)
    # without privacy: ceil(z**2 / (4 width**2)) with z = 1.95996398454005423552...
    z = Fraction("1.959963984540054235524594")
    exact = z * z / (4 * Fraction(width) ** 2)
    assert values["people_without_privacy"] == -(-exact.numerator // exact.denominator)
    assert Fraction(values["keep"]) == poll.response.keep
    assert from_json(json.dumps(values["guarantee"])) == PureDP(epsilon)


def test_confidence_is_taken():
    values = read("poll", "plan", "--epsilon", "1", "--half-width", "0.01", "--confidence", "0.99")
    assert values["people"] == Poll(epsilon=1).sample_size("0.01", confidence="0.99")


def test_an_estimate_has_its_interval():
    output = succeeded("poll", "estimate", "--epsilon", "1", "--yes", "530", "--total", "1000")
    assert re.search(r"^estimate +56\.49 % of the true answers", output, re.M)
    assert re.search(r"^interval +49\.67 % to 63\.27 %, 95 % sure for every", output, re.M)


@pytest.mark.parametrize("method", ["exact", "normal"])
def test_estimates_are_those_of_the_library(method):
    arguments = ("--epsilon", "1", "--yes", "530", "--total", "1000", "--method", method)
    values = read("poll", "estimate", *arguments)
    expected = Poll(epsilon=1).estimate([1] * 530 + [0] * 470, method=method)
    assert (values["mean"], values["low"], values["high"]) == (
        expected.mean,
        expected.low,
        expected.high,
    )


def test_an_estimate_outside_is_explained():
    output = succeeded("poll", "estimate", "--epsilon", "1", "--yes", "0", "--total", "10")
    assert "outside 0 to 100 %" in " ".join(output.split())


def test_a_simulation_counts_what_it_did():
    arguments = ("--epsilon", "1", "--people", "500", "--share", "0.3")
    values = read("poll", "simulate", *arguments)
    assert (values["yes"], values["n"]) == (150, 500)
    assert 0 <= values["changed"] <= 500
    assert values["mean"] == float(Poll(epsilon=1).unbiased_share(values["responses_yes"], 500))
    output = succeeded("poll", "simulate", *arguments)
    assert "150 yes of 500 (30 %), made up" in output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("plan", "--half-width", "0.01"), "--epsilon"),
        (("plan", "--epsilon", "1"), "--half-width"),
        (("plan", "--epsilon", "nan", "--half-width", "0.01"), "--epsilon is 'nan'"),
        (("plan", "--epsilon", "-1", "--half-width", "0.01"), "--epsilon is negative"),
        (("plan", "--epsilon", "0", "--half-width", "0.01"), "--epsilon is zero"),
        (("plan", "--epsilon", "1e-30", "--half-width", "0.01"), "pass a larger epsilon"),
        (("plan", "--epsilon", "1", "--half-width", "0"), "not from 1e-9 to 1/2"),
        (("plan", "--epsilon", "1", "--half-width", "0.6"), "not from 1e-9 to 1/2"),
        (("plan", "--epsilon", "1", "--half-width", "1e-500"), "not from 1e-9 to 1/2"),
        (
            ("plan", "--epsilon", "1", "--half-width", "0.1", "--confidence", "95"),
            "--confidence is not between 0 and 1",
        ),
        (("estimate", "--epsilon", "1", "--yes", "5", "--total", "3"), "--yes is above --total"),
        (("estimate", "--epsilon", "1", "--yes", "-5", "--total", "3"), "--yes"),
        (("estimate", "--epsilon", "1", "--yes", "1.5", "--total", "3"), "--yes"),
        (("estimate", "--epsilon", "1", "--yes", "1", "--total", "0"), "--total"),
        (("estimate", "--epsilon", "1", "--yes", "1", "--total", "9" * 30), "--total"),
        (("estimate", "--epsilon", "1", "--yes", "1"), "--total"),
        (("simulate", "--epsilon", "1", "--people", "10", "--share", "1.1"), "--share"),
        (("simulate", "--epsilon", "1", "--people", "1" + "0" * 12, "--share", "0"), "--people"),
    ],
)
def test_refusals_name_the_remedy(arguments, words):
    assert words in refused("poll", *arguments)
