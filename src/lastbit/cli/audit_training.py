"""`lastbit audit training`: a training loop audited by canaries, in one run."""

from __future__ import annotations

import shlex
from fractions import Fraction
from typing import Any

import click

from lastbit.audit import MOST_CANARIES, TrainingAudit, audit_training, error_of
from lastbit.cli.loading import foreign_code, named
from lastbit.cli.options import command, json_option, option, refusal, typed
from lastbit.cli.output import Facts, Heading, seen_above, show, show_json, waiting
from lastbit.exact import exact_text, rounded_down

TAKES = "write it as loop(included), which trains once and returns a score for each canary"
NOT_A_PROOF = "Nothing found is not a proof: more canaries, or better scores, may show more."
ON_TRUST = "That scores use nothing but what the loop releases is taken from its author."


@command("audit training module:loop --canaries 1000 --epsilon 2 --delta 1e-9")
@click.argument("loop", metavar="MODULE:LOOP")
@option(
    "--canaries",
    "How many examples to leave in or out by coins.",
    click.IntRange(1, MOST_CANARIES),
    default=1000,
)
@option("--epsilon", "The loss that is claimed, for one example more or less.", required=True)
@option("--delta", "The claimed delta; it must be below the error.", default="0")
@option("--error", "The probability with which the answer may be wrong.  [default: 1e-6]")
@option("--confidence", "1 - error, in its place: 0.9 for a bound at 90 %.")
@json_option
@click.pass_context
def training(
    context: click.Context,
    /,
    loop: str,
    as_json: bool,
    error: Fraction | None,
    confidence: Fraction | None,
    **claim: Any,
) -> None:
    """Audit a training loop by canaries, in one run.

    The loop is a function of your own. It gets a truth value for each canary, and trains once
    without those that are False. It returns a score for each canary. A high score says that the
    canary was there: its gradient times the released sums, or minus its loss. Scores may use what
    the loop releases and nothing else. A loop with an argument progress can call it with the share
    that is done.

    The module is looked for as Python does, and in the current folder. Its code is run: name only
    modules that you would run. The exit status is 0 if nothing was found, 1 if a violation is
    certified. It is 2 if the audit could not be run.
    """
    allowed = error_of(error, confidence)
    with foreign_code(TAKES), waiting("training") as tell:
        function = named(loop)
        if not callable(function):
            raise refusal("the loop", "is not a function of that module", TAKES)
        result = audit_training(function, **claim, error=allowed, progress=tell)
    words = ["lastbit", "audit", "training", loop, "--canaries", str(result.canaries)]
    words += ["--epsilon", typed(claim["epsilon"]), "--delta", typed(result.delta)]
    again = shlex.join([*words, "--error", typed(allowed)])
    if as_json:
        verdict = {"verdict": "refuted" if result.broken else "nothing found"}
        show_json({**verdict, **result.to_dict(), "command": again})
    else:
        _show(loop, result, again)
    context.exit(1 if result.broken else 0)


def _show(loop: str, result: TrainingAudit, again: str) -> None:
    level, risk = exact_text(result.delta), exact_text(result.error)
    claim = f"ε = {exact_text(result.epsilon or Fraction(0))}, δ = {level}"
    least = seen_above(result.epsilon_lower, result.epsilon if result.broken else None, 5)
    sentence = f"The guesses do not refute {claim}. They prove a loss of at least ε = {least}."
    if result.broken:
        sentence = f"The loop does not keep {claim}: at this δ its ε is at least {least}."
    out = result.guesses - result.guesses_in
    share = rounded_down(Fraction(100 * result.right, result.guesses), 3)
    facts = (
        ("claimed", claim),
        ("certified", f"ε ≥ {least} at δ = {level}"),
        ("error", f"wrong with probability at most {risk}"),
        ("canaries", f"{result.canaries:,}, of which {result.included:,} were in the data"),
        ("guesses", f"{result.guesses_in:,} that one was in, {out:,} that one was not"),
        ("right", f"{result.right:,} of {result.guesses:,} ({share} %)"),
        ("in reach", f"ε ≥ {rounded_down(result.reach, 3)}, were every guess right"),
        ("trained", f"once, in {result.seconds:.1f} s"),
        ("again", again),
    )
    verdict = f"refuted: ε ≥ {least}" if result.broken else "nothing found"
    show(
        Heading(f"Audit of the training {loop}", verdict, good=not result.broken),
        sentence,
        Facts(facts),
        ON_TRUST if result.broken else NOT_A_PROOF,
    )
