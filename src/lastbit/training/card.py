"""A model's card, in Markdown: what its training promises, and where that was counted."""

from __future__ import annotations

from fractions import Fraction

from lastbit.exact import exact_text, rounded_down, rounded_up
from lastbit.privacy import PureDP, posterior_bounds
from lastbit.training.clipping import WholeClip
from lastbit.training.plan import TrainingPlan
from lastbit.training.run import TrainingRun

_BELIEF = Fraction(1, 100)
_SHARES = tuple(Fraction(1, 2**i) for i in range(2, 7))  # of epsilon, where the bound may be least


def model_card(run: TrainingRun, clip: WholeClip) -> str:
    """The card of a model that this run trained, to be saved beside it.

    It depends on the plan and the ledger alone, and on no example.

    >>> from lastbit.training import start_run, training_plan
    >>> plan = training_plan(examples=9, batch=3, steps=2, noise_multiplier=2, delta="1e-5")
    >>> print(model_card(start_run(plan), WholeClip(norm=1)).splitlines()[0])
    # How this model was trained
    """
    plan, unit = run.plan, run.plan.unit
    low, _ = plan.epsilon_bounds()
    told = (
        ("promise", f"({exact_text(plan.epsilon)}, {exact_text(plan.delta)})-differential privacy"),
        ("for", f"one {unit} more or less among {plan.examples:,}"),
        ("true of it", f"no ε below {rounded_down(low)} is: the promise is tight for its noise"),
        (f"in a step, each {unit} with probability", str(plan.rate)),
        ("steps", f"{plan.steps:,}"),
        ("gradients", f"cut to norm {exact_text(clip.norm)}, in whole steps of {clip.step}"),
        ("noise", f"rounded Gaussian, {exact_text(plan.noise_multiplier)} times that norm, exact"),
        ("run", run.name),
        ("charged", _charge(run)),
        ("plan", plan.digest),
    )
    rows = "\n".join(f"| {name} | {_plain(value)} |" for name, value in told)
    return f"""# How this model was trained

{_promise(plan)}

| | |
|---|---|
{rows}

What one {unit} moves is bounded in whole numbers, and the noise is drawn exactly. So the promise is
about the program that ran, whatever its floats did. It assumes random bits that nobody can tell
from true ones. It assumes that the gradient of each {unit} depends on no other. One that is absent
leaves an empty place. How many places a batch has, other floats may show in their last bits.

Not covered is whatever else was learned from the same data. Examples: the choice of settings, an
early stop, a test on examples that were trained on. The command
`lastbit check` derives the promise again, from the certificate of the plan.
"""


def _promise(plan: TrainingPlan) -> str:
    """The promise as a sentence about beliefs, and the chance that it fails: more than delta."""
    _, most = posterior_bounds(_BELIEF, PureDP(plan.epsilon))
    share = rounded_up(100 * Fraction(most), 3)
    return (
        f"Somebody who knows all other {plan.unit}s may think it 1 % likely that one more was in "
        f"the training data. After seeing all that training released they think it "
        f"at most {share} % likely, up to a chance of {rounded_up(chance_beyond(plan), 3)}."
    )


def chance_beyond(plan: TrainingPlan) -> Fraction:
    """A bound of the chance that a release speaks for somebody by more than exp(epsilon) to 1.

    Theorem  for every x > 0, P[L > epsilon] <= delta(epsilon - x) / (1 - exp(-x)), L the loss
    Proof    delta(e) = E[(1 - exp(e - L))_+], which is at least 1 - exp(-x) where L > e + x. And
             1 - exp(-x) is at least x - x**2/2, and at least x/(1 + x).  []
    Differs  delta itself is no such bound: one step with noise 1 passes epsilon with five times it
    Checked  tests/training/test_card.py

    >>> from lastbit.training import training_plan
    >>> plan = training_plan(examples=9, batch=9, steps=1, noise_multiplier=1, delta="1e-5")
    >>> plan.delta < chance_beyond(plan) < 20 * plan.delta
    True
    """
    profile, chances = plan.profile(), [Fraction(1)]
    for share in _SHARES:
        x = plan.epsilon * share
        least = max(x - x**2 / 2, x / (1 + x))
        chances.append(Fraction(profile.delta(plan.epsilon - x)[1]) / least)
    return min(chances)


def _charge(run: TrainingRun) -> str:
    entry = run.entry
    if entry is None:
        return "to no ledger: steps were counted in memory alone"
    return f"account {entry.account}, entry {entry.sequence}, {entry.hash}"


def _plain(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")
