"""`lastbit theory convert`: the same promise as another kind, and the theorem that says so."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import click

from lastbit.cli.options import (
    command,
    flag,
    guarantee_of,
    kind_named,
    option,
    refusal,
    spelled,
    title,
)
from lastbit.cli.output import Facts, Heading, show, show_json
from lastbit.errors import IncompatibleGuarantees
from lastbit.exact import Real, exact_text, rounded_up, upper
from lastbit.privacy import (
    ZCDP,
    ApproxDP,
    Guarantee,
    ProbabilisticDP,
    PureDP,
    RenyiDP,
    best_order_for_delta,
)

BY_DEFINITION = "definition: a pure guarantee is an approximate one with δ = 0"
WORST_CASE = "randomised response is the worst case (Kairouz, Oh, Viswanath 2015)"
RULES: tuple[tuple[type, type, str], ...] = (
    (PureDP, ZCDP, "ρ = ε tanh(ε/2), randomised response is the worst case"),
    (PureDP, RenyiDP, "randomised response is the worst case: ln(cosh((α-1/2)ε)/cosh(ε/2))/(α-1)"),
    (ZCDP, RenyiDP, "definition: the divergence of order α is at most α ρ"),
    (PureDP, ApproxDP, WORST_CASE),
    (ApproxDP, ApproxDP, WORST_CASE),
    (ProbabilisticDP, ApproxDP, "what survives processing (paper 003, Prop. 5)"),
    (
        ZCDP,
        ApproxDP,
        "the best order of Renyi divergence (Canonne, Kamath, Steinke 2020, Prop. 12)",
    ),
    (RenyiDP, ApproxDP, "Canonne, Kamath, Steinke 2020, Prop. 12"),
)
GROUPS: tuple[tuple[type, str], ...] = (
    (PureDP, "k ε (paper 003, Prop. 1)"),
    (ApproxDP, "k ε and δ (e^(kε) - 1)/(e^ε - 1) (paper 003, Prop. 6 and (28))"),
    (ProbabilisticDP, "as approximate: k ε and δ (e^(kε) - 1)/(e^ε - 1) (paper 003, Prop. 6)"),
    (ZCDP, "k² ρ (Bun, Steinke 2016, Prop. 27)"),
)


@command('theory convert "zcdp 0.1" --delta 1e-9')
@click.argument("guarantee")
@option(
    "--to",
    "The kind to convert to.",
    ("pure", "approx", "probabilistic", "zcdp", "renyi"),
    dest="target",
)
@option("--delta", "As approximate, with the least epsilon for this delta.")
@option("--epsilon", "As approximate, with the least delta for this one.")
@option("--alpha", "As Renyi, of this order.")
@option("--group", "First, for this many units together.", click.IntRange(1, 10**9), dest="size")
@flag("--json", "Print JSON, with exact numbers.", dest="as_json")
def convert(
    guarantee: str,
    target: str | None,
    size: int | None,
    as_json: bool,
    **parameters: Fraction | None,
) -> None:
    """Convert a guarantee to another kind.

    GUARANTEE is a kind and its numbers, in quotes. Examples: "pure 1", "approx 1 1e-6",
    "probabilistic 1 1e-6", "zcdp 0.1" or "renyi 10 0.5". Numbers are exact. What comes out is
    rounded up, so that it can only promise less than is true.
    """
    given = guarantee_of(guarantee)
    names = ("delta", "epsilon", "alpha")
    asked = {name: value for name in names if (value := parameters[name]) is not None}
    kind = _target(target, asked, grouped=size is not None)
    start = given.group(size) if size is not None else given
    result = start if kind is None else _converted(start, kind, asked)
    theorems = _theorems(given, start, result, size)
    rates = _rates(start, result)
    # of all orders, each of which gives a true bound, the one whose bound is shown, nearly
    order = None if rates is None else best_order_for_delta(*rates)
    if as_json:
        show_json(
            {
                "from": given.to_dict(),
                "to": result.to_dict(),
                "theorems": list(theorems),
                **({"group": size} if size is not None else {}),
                **({"order": exact_text(order)} if order is not None else {}),
            }
        )
        return
    facts = [("from", title(given))]
    if size is not None and start != result:
        facts.append((f"for {size} units", title(start)))
    facts += [("to", title(result)), *(("theorem", theorem) for theorem in theorems)]
    if order is not None:
        facts.append(("best order", f"α = {rounded_up(order)}"))
    heading = Heading(spelled(given), _headline(result))
    show(heading, Facts(facts), *_notes(start, result))


def _target(target: str | None, asked: dict[str, Fraction], *, grouped: bool) -> str | None:
    """The kind to convert to, from `--to` or from the parameters given; None is no conversion."""
    if len(asked) > 1:
        names = " and ".join(f"--{name}" for name in asked)
        raise refusal(names, "contradict each other", "pass one of them")
    implied = None if not asked else "renyi" if "alpha" in asked else "approx"
    if target is None and implied is None and not grouped:
        raise refusal("--to", "is missing", "pass --delta, --epsilon, --alpha, --to or --group")
    if target is not None and implied is not None and target != implied:
        remedy = f"leave it out, or pass --to {implied}"
        raise refusal(f"--{next(iter(asked))}", f"belongs to {implied}, not to {target}", remedy)
    if target == "renyi" and not asked:
        raise refusal("--alpha", "is missing", "pass an order above 1")
    return target or implied


def _converted(start: Guarantee, kind: str, asked: dict[str, Fraction]) -> Guarantee:
    if kind == "approx" and not asked and isinstance(start, ZCDP | RenyiDP):
        raise refusal("--delta", "is missing", "pass --delta or --epsilon")
    try:
        converted: Guarantee = start.to(kind_named(kind)[0], **asked)
    except IncompatibleGuarantees as error:
        raise IncompatibleGuarantees(
            f"{spelled(start).split()[0]} cannot be converted to {kind}, which promises more; "
            f"pass --delta or --epsilon for approx, which all others imply"
        ) from error
    return converted


def _theorems(
    given: Guarantee, start: Guarantee, result: Guarantee, size: int | None
) -> tuple[str, ...]:
    grouped = [rule for kind, rule in GROUPS if size is not None and type(given) is kind]
    if start == result:
        return tuple(grouped) or ("nothing to convert",)
    if isinstance(start, PureDP) and getattr(result, "delta", 1) == 0:
        return (*grouped, BY_DEFINITION)
    pair = type(start), type(result)
    return (*grouped, *(rule for one, other, rule in RULES if (one, other) == pair))


def _headline(result: Guarantee) -> str:
    name = "epsilon" if hasattr(result, "epsilon") else "rho"
    number, symbol = getattr(result, name), result.symbols[name]
    words = f"{symbol} = {exact_text(number)}"
    words = words if len(words) <= 20 else f"{symbol} ≤ {rounded_up(number)}"
    delta = getattr(result, "delta", None)
    if delta is None:
        return words
    exact = exact_text(delta)
    return f"{words}, δ = {exact if len(exact) <= 12 else rounded_up(delta)}"


def _notes(start: Guarantee, result: Guarantee) -> list[str]:
    notes = []
    if getattr(result, "epsilon", 0) == math.inf:
        notes.append("No ε is promised at this δ: it is smaller than what was given away already.")
    rates = _rates(start, result)
    if rates is not None and hasattr(result, "epsilon"):
        # Bun, Steinke 2016, Prop. 3, rounded up
        rho, delta = rates
        bound = Real(rho) + Real(2) * (Real(rho) * Real(1 / delta).log()).sqrt()
        simple, ours = Fraction(upper(bound.ball(128))), result.epsilon
        words = f"The usual formula ρ + 2√(ρ ln(1/δ)) gives ε = {rounded_up(simple)}"
        notes.append(
            f"{words}: {rounded_up(simple - ours, 3)} more than needed."
            if ours < simple
            else f"{words}; here it is no worse."
        )
    return notes


def _rates(start: Any, result: Any) -> tuple[Fraction, Fraction] | None:
    """Rho and delta of a conversion from zCDP to approximate privacy, where both say something."""
    if not isinstance(start, ZCDP) or not isinstance(result, ApproxDP):
        return None
    rho, delta = start.rho, result.delta
    if not isinstance(rho, Fraction) or rho == 0 or not 0 < delta < 1:
        return None
    return rho, delta
