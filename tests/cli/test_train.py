"""`lastbit train plan`: the noise, the steps, epsilon on the way; a picture and a certificate."""

import json
import re

import pytest

from lastbit.training import read_plan, training_plan
from tests.cli.running import lastbit, read, refused, succeeded

SIZES = ("--examples", "1000", "--batch", "50", "--delta", "1e-5")


def test_a_plan_says_what_it_costs_and_when():
    output = succeeded("train", "plan", *SIZES, "--epochs", "5", "--epsilon", "3")
    assert output.startswith("Training on 1,000 examples")
    assert re.search(r"^noise multiplier +1\.078807, of the clipping norm$", output, re.M)
    assert re.search(r"^steps +100, each with 50 expected$", output, re.M)
    assert re.search(r"^promise +ε = 3 at δ = 1e-5, for one example more or less$", output, re.M)
    assert re.search(r"^ +100 +5 +2\.99999 +3 +█+$", output, re.M)


def test_the_json_is_a_plan(folder):
    arguments = ("train", "plan", *SIZES, "--steps", "9", "--noise-multiplier", "1")
    values = read(*arguments, "--unit", "patient")
    (folder / "plan.json").write_text(json.dumps(values))
    plan = training_plan(
        examples=1_000, batch=50, delta="1e-5", steps=9, noise_multiplier=1, unit="patient"
    )
    assert read_plan(folder / "plan.json") == plan
    steps, low, high = plan.curve()[-1]
    assert values["curve"][-1] == {"steps": steps, "epsilon": [repr(low), repr(high)]}


def test_a_picture_and_a_certificate_are_written(folder):
    output = succeeded(
        "train", "plan", *SIZES, "--steps", "40", "--noise-multiplier", "2",
        "--out", "e.svg", "--certificate", "c.json",
    )  # fmt: skip
    assert "It proves ε = " in output
    assert (folder / "e.svg").read_text().startswith("<svg")
    assert "ACCEPTED" in succeeded("check", "c.json")
    values = json.loads((folder / "c.json").read_text())
    values["claim"]["losses"][0]["mu_squared"] = "1/5"
    (folder / "c.json").write_text(json.dumps(values))
    assert lastbit("check", "c.json").exit_code != 0


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (("--epochs", "1"), "pass --epsilon or --noise-multiplier"),
        (("--epsilon", "1"), "pass --epochs or --steps"),
        (("--epsilon", "1", "--epochs", "1", "--out", "e.png"), "pass, say, epsilon.svg"),
        (("--epsilon", "1", "--epochs", "1", "--batch", "1001"), "--batch is above the number"),
        (("--epsilon", "0", "--epochs", "1"), "--epsilon is zero"),
    ],
)
def test_what_is_no_plan_is_refused_in_the_words_of_the_command(folder, wrong, words):
    assert words in refused("train", "plan", *SIZES, *wrong)
