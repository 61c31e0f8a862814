"""`lastbit train`: what a run of DP-SGD costs, before it starts."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from lastbit.cli.files import check_folder, save
from lastbit.cli.options import FILE, group, json_option, option, refusal
from lastbit.cli.output import Columns, Facts, Heading, show, show_json, waiting
from lastbit.exact import exact_text, rounded_down, rounded_up
from lastbit.report import Bars, Panel, Series, picture
from lastbit.training import TrainingPlan, training_plan
from lastbit.verify import text_of

_BAR = 24
_LINES = 12


@group("train plan --examples 60000 --batch 256 --epochs 30 --epsilon 3 --delta 1e-6")
def train() -> None:
    """Plan private training: DP-SGD on whole numbers.

    Training itself is Python: see lastbit.training.
    """


@train.command(example="plan --examples 60000 --batch 256 --epochs 30 --epsilon 3 --delta 1e-6")
@option("--examples", "How many there are.", click.IntRange(1), required=True)
@option("--batch", "How many are expected in a step.", required=True)
@option("--epochs", "How often each is used, on average.")
@option("--steps", "How many steps, instead of --epochs.", click.IntRange(1))
@option("--epsilon", "What all steps together may cost; the least noise is found.")
@option("--noise-multiplier", "Noise over clipping norm; its epsilon is found.")
@option("--delta", "The delta of all steps together.", required=True)
@option("--unit", "Who is protected, if examples are counted by it.", "NAME", default="example")
@option("--out", "Where a picture of epsilon over the steps goes (.svg).", FILE)
@option("--certificate", "Where a certificate goes; lastbit check reads it.", FILE)
@json_option
def plan(
    examples: int,
    batch: Fraction,
    out: Path | None,
    certificate: Path | None,
    as_json: bool,
    **asked: Any,
) -> None:
    """What a training run costs: noise, steps, and epsilon after each epoch.

    Give --epsilon to find the noise, or --noise-multiplier to find epsilon. Each example takes part
    in a step with probability batch/examples, and one more or less is hidden. The JSON is what
    lastbit.training.read_plan reads.
    """
    if out is not None:
        if out.suffix.lower() != ".svg":
            raise refusal("--out", "does not end in .svg", "pass, say, epsilon.svg")
        check_folder(out)
    if certificate is not None:
        check_folder(certificate, "--certificate")
    with waiting("planning"):
        found = training_plan(examples=examples, batch=batch, **asked)
        curve = found.curve()
        proof = None if certificate is None else text_of(found.certificate())
    if out is not None:
        save(out, epsilon_picture(found, curve))
    if certificate is not None and proof is not None:
        save(certificate, proof, "--certificate")
    if as_json:
        ends = [{"steps": n, "epsilon": [repr(low), repr(high)]} for n, low, high in curve]
        show_json({**found.to_dict(), "curve": ends})
        return
    _show(found, curve)
    if proof is not None:
        checked = rounded_up(Fraction(json.loads(proof)["claim"]["epsilon"]))
        show(
            f"The certificate, for lastbit check: {certificate}. It proves ε = {checked} by "
            "moments; the smaller ε in it is on trust."
        )


def _show(found: TrainingPlan, curve: list[tuple[int, float, float]]) -> None:
    loss, level = rounded_up(found.epsilon), exact_text(found.delta)
    facts = (
        ("noise multiplier", f"{exact_text(found.noise_multiplier)}, of the clipping norm"),
        ("steps", f"{found.steps:,}, each with {rounded_up(found.expected_batch)} expected"),
        ("rate", f"{found.rate}, the probability of each {found.unit} in a step"),
        ("promise", f"ε = {loss} at δ = {level}, for one {found.unit} more or less"),
        ("charged", f"ε = {loss}, δ = {level}, before the first step"),
    )
    kept = curve[:: -(-len(curve) // _LINES)]
    kept = kept if kept[-1] == curve[-1] else [*kept, curve[-1]]
    most = curve[-1][2]
    rows = [
        (
            f"{steps:,}",
            _epochs(steps, found),
            rounded_down(low),
            rounded_up(high),
            _bar(high / most),
        )
        for steps, low, high in kept
    ]
    show(
        Heading(f"Training on {found.examples:,} {found.unit}s", f"ε ≤ {loss}, δ = {level}"),
        Facts(facts),
        Columns(("steps", "epochs", "ε at least", "ε at most", ""), rows, numbers=(0, 1, 2, 3)),
    )


def _epochs(steps: int, found: TrainingPlan) -> str:
    return f"{float(steps * found.rate):.4g}"


def _bar(share: float) -> str:
    return "█" * max(1, round(_BAR * share))


def epsilon_picture(found: TrainingPlan, curve: list[tuple[int, float, float]]) -> str:
    """Both bounds of epsilon over the run, as an SVG."""
    low = Series(label="at least", points=tuple((i, one[1]) for i, one in enumerate(curve, 1)))
    high = Series(label="at most", points=tuple((i, one[2]) for i, one in enumerate(curve, 1)))
    named = range(1, len(curve) + 1, -(-len(curve) // 10))
    panel = Panel(
        title=f"ε of {found.steps:,} steps at δ = {exact_text(found.delta)}",
        verdict=f"ε ≤ {rounded_up(found.epsilon)}",
        good=True,
        words=f"for one {found.unit} more or less; both bounds are proved",
        marks=Bars(first=low, second=high),
        places=(0, len(curve) + 1),
        ticks=tuple((i, f"{curve[i - 1][0]:,}") for i in named),
        axis="steps",
        chart_height=260,
    )
    return str(picture(f"Training on {found.examples:,} {found.unit}s", (panel,)))
