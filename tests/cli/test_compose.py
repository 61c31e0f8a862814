"""`lastbit compose`: what each theorem gives, and which is best."""

import json
import re

import pytest

from lastbit.privacy import GaussianLoss
from lastbit.privacy.compose import compositions
from lastbit.privacy.guarantees import ZCDP, ApproxDP, PureDP, RenyiDP, from_json
from tests.cli.running import read, refused, succeeded


def guarantee(values: dict):
    return from_json(json.dumps(values))


def test_every_theorem_is_shown_and_the_best_is_marked():
    output = succeeded("compose", "pure 0.1 x 100", "--delta", "1e-6")
    assert output.startswith("100 releases together")
    assert re.search(r"^  basic +10 ", output, re.M)
    assert re.search(r"^  advanced +6\.30824 ", output, re.M)
    assert re.search(r"^  optimal ● +4\.77457 ", output, re.M)
    assert re.search(r"^  concentrated +5\.21908 ", output, re.M)
    assert re.search(r"^  moments +5\.07311 ", output, re.M)
    assert len(re.findall("●", output)) == 2  # in the table, and in what it means


def test_kinds_can_be_mixed():
    values = read("compose", "pure 0.1 x 100", "zcdp 0.01 × 3", "--delta", "1e-6")
    found = compositions([PureDP("0.1")] * 100 + [ZCDP("0.01")] * 3, "1e-6")
    assert {name: guarantee(v) for name, v in values["theorems"].items()} == found
    assert values["best"] == "moments" and 5.259 < found["moments"].epsilon < 5.26
    assert guarantee(values["together"]) == found["moments"]
    assert [(guarantee(v["guarantee"]), v["times"]) for v in values["of"]] == [
        (PureDP("0.1"), 100),
        (ZCDP("0.01"), 3),
    ]


def test_gaussian_noise_is_composed_exactly():
    noise = read("compose", "gaussian 10 x 50", "--delta", "1e-6")
    assert noise["of"] == [{"guarantee": GaussianLoss("1/100").to_dict(), "times": 50}]
    assert noise["best"] == "tight" and 3.3076 < guarantee(noise["together"]).epsilon < 3.30761
    output = succeeded("compose", "gaussian 1.50 x 2", "pure 0.1", "--delta", "1e-6")
    assert "gaussian 1.5 × 2, pure 0.1" in output and "tight ●" in output


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("pure 0.1 x 100",), PureDP(10)),
        (("pure 1/3", "pure 1/6"), PureDP("1/2")),
        (("zcdp 0.01 x 7",), ZCDP("0.07")),
        (("gaussian 10 x 6", "zcdp 0.01"), ZCDP("0.04")),
        (("approx 1 1e-6 x 3",), ApproxDP(3, "3e-6")),
        (("renyi 10 0.5 x 2",), RenyiDP(10, 1)),
    ],
)
def test_without_delta_one_kind_adds_up_exactly(arguments, expected):
    assert guarantee(read("compose", *arguments)["together"]) == expected
    assert "exactly" in succeeded("compose", *arguments)


def test_renyi_of_one_order_is_added_and_converted():
    values = read("compose", "renyi 4 1/2 x 3", "--delta", "1e-6")
    expected = RenyiDP(4, "3/2").to(ApproxDP, delta="1e-6")
    assert guarantee(values["together"]) == expected


def test_a_delta_that_is_spent_already():
    output = succeeded("compose", "approx 1 1e-3 x 3", "--delta", "1e-6")
    assert "Nothing is promised at this δ" in output
    assert "∞" in output


def test_too_many_different_losses_leave_the_optimal_theorem_out(monkeypatch):
    monkeypatch.setattr("lastbit.privacy.compose.MOST_LOSSES", 1000)  # 20,547 totals
    parts = [f"pure 1/{n} x 9" for n in range(1, 9)]
    output = succeeded("compose", *parts, "--delta", "1e-6")
    assert re.search(r"^  optimal +not tried ", output, re.M)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "GUARANTEES"),
        (("pure 0.1", "zcdp 1"), "--delta is missing"),
        (("pure 0.1", "renyi 2 1", "--delta", "1e-6"), "compose only with those of the same order"),
        (("renyi 3 1", "renyi 2 1", "--delta", "1e-6"), "different orders"),
        (("pure 0.1 x 0", "--delta", "1e-6"), "not a whole number from 1"),
        (("pure 0.1 x -3", "--delta", "1e-6"), "not a whole number from 1"),
        (("pure 0.1 x many", "--delta", "1e-6"), "not a whole number from 1"),
        (("pure 0.1 x 1e5", "--delta", "1e-6"), "not a whole number from 1"),
        (("pure 0.1 x 99999999999999999999", "--delta", "1e-6"), "not a whole number from 1"),
        (("pure 0.1 x 60000", "pure 0.2 x 60000", "--delta", "1e-6"), "more than 100,000"),
        (("pure x 3", "--delta", "1e-6"), "has 0 numbers"),
        (("gauss 1", "--delta", "1e-6"), "unknown kind"),
        (("gaussian", "--delta", "1e-6"), "has 0 numbers"),
        (("gaussian -1 x 3", "--delta", "1e-6"), "is not above 0"),
        (("pure 1", "--delta", "1"), "--delta is not between 0 and 1"),
        (("pure 1", "--delta", "nan"), "--delta is 'nan'"),
    ],
)
def test_refusals_name_the_remedy(arguments, words):
    assert words in refused("compose", *arguments)
