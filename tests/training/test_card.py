"""The card says what the plan and the books say, and nothing of an example."""

from math import erfc, sqrt

import pytest

from lastbit.ledger import Ledger
from lastbit.tables import Budget
from lastbit.training import WholeClip, model_card, start_run, training_plan
from lastbit.training.card import chance_beyond

PLAN = training_plan(
    examples=100, batch=10, steps=20, noise_multiplier=2, delta="1e-6", unit="pa|tient"
)


def test_a_card_says_what_was_promised_and_charged(folder):
    run = start_run(
        PLAN,
        name="digits <1>",
        ledger=Ledger.open(folder / "l.ledger"),
        account="digits",
        budget=Budget(epsilon=10, delta="1e-5"),
    )
    card = model_card(run, WholeClip(norm="1/2"))
    assert "| promise | (" in card
    assert "| steps | 20 |" in card
    assert "cut to norm 0.5, in whole steps of 1/33554432" in card
    assert "noise | rounded Gaussian, 2 times that norm, exact" in card
    assert run.entry is not None
    assert f"account digits, entry {run.entry.sequence}, {run.entry.hash}" in card
    assert "digits &lt;1>" in card
    assert "one pa\\|tient more or less" in card
    assert PLAN.digest in card
    assert "leaves an empty place" in card


def test_a_run_without_a_ledger_says_so():
    card = model_card(start_run(PLAN), WholeClip(norm=1))
    assert "to no ledger: steps were counted in memory alone" in card


def test_the_sentence_is_about_beliefs():
    """Of 1 %, exp(epsilon) times the odds: 12/11 at epsilon = ln(12/11)."""
    plan = training_plan(examples=9, batch=1, steps=1, noise_multiplier=50, delta="1e-5")
    words = " ".join(model_card(start_run(plan), WholeClip(norm=1)).split())
    assert "may think it 1 % likely" in words
    assert "they think it at most 1." in words


@pytest.mark.parametrize("noise", ["0.7", "1", "2"])
def test_the_chance_of_a_stronger_belief_is_that_of_the_loss_and_not_delta(noise):
    """One step on all: L is normal of mean mu**2/2, variance mu**2. The card said delta."""
    plan = training_plan(examples=9, batch=9, steps=1, noise_multiplier=noise, delta="1e-5")
    mu = 1 / float(noise)
    exact = erfc((float(plan.epsilon) - mu**2 / 2) / mu / sqrt(2)) / 2
    assert 4 * float(plan.delta) < exact <= float(chance_beyond(plan)) < 3 * exact
    words = " ".join(model_card(start_run(plan), WholeClip(norm=1)).split())
    said = words.split("up to a chance of ")[1].split()[0].rstrip(".")
    assert float(said) >= exact
