"""`lastbit convert`: the same promise as another kind, and the theorem that says so."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import click

from lastbit.cli.numbers import EXACT
from lastbit.cli.refusals import option_names
from lastbit.errors import IncompatibleGuarantees, InvalidParameter
from lastbit.exact import exact_text, rounded_up

if TYPE_CHECKING:
    from lastbit.privacy import Guarantee

TARGETS = ("pure", "approx", "probabilistic", "zcdp", "renyi")
BY_DEFINITION = "definition: a pure guarantee is an approximate one with δ = 0"
WORST_CASE = "randomised response is the worst case (Kairouz, Oh, Viswanath 2015)"
BEST_ORDER = "the best order of Renyi divergence (Canonne, Kamath, Steinke 2020, Prop. 12)"
RULES = (
    ("PureDP", "ZCDP", "ρ = ε²/2 (Bun, Steinke 2016, Prop. 14)"),
    ("PureDP", "RenyiDP", "min(ε, α ε²/2) (Bun, Steinke 2016, Prop. 14; Mironov 2017)"),
    ("ZCDP", "RenyiDP", "definition: the divergence of order α is at most α ρ"),
    ("PureDP", "ApproxDP", WORST_CASE),
    ("ApproxDP", "ApproxDP", WORST_CASE),
    ("ProbabilisticDP", "ApproxDP", "what survives processing (paper 003, Prop. 5)"),
    ("ZCDP", "ApproxDP", BEST_ORDER),
    ("RenyiDP", "ApproxDP", "Canonne, Kamath, Steinke 2020, Prop. 12"),
)
GROUPS = (
    ("PureDP", "k ε (paper 003, Prop. 1)"),
    ("ApproxDP", "k ε and δ (e^(kε) - 1)/(e^ε - 1) (paper 003, Prop. 6 and (28))"),
    ("ProbabilisticDP", "as approximate: k ε and δ (e^(kε) - 1)/(e^ε - 1) (paper 003, Prop. 6)"),
    ("ZCDP", "k² ρ (Bun, Steinke 2016, Prop. 27)"),
)


@click.command(epilog='Example: lastbit convert "zcdp 0.1" --delta 1e-9')
@click.argument("guarantee")
@click.option("--to", "target", type=click.Choice(TARGETS), help="The kind to convert to.")
@click.option("--delta", type=EXACT, help="As approximate, with the least epsilon for this delta.")
@click.option("--epsilon", type=EXACT, help="As approximate, with the least delta for this one.")
@click.option("--alpha", type=EXACT, help="As Renyi, of this order.")
@click.option(
    "--group", "size", type=click.IntRange(1, 10**9), help="First, for so many units together."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with exact numbers.")
def convert(
    guarantee: str,
    target: str | None,
    delta: Fraction | None,
    epsilon: Fraction | None,
    alpha: Fraction | None,
    size: int | None,
    as_json: bool,
) -> None:
    """Convert a guarantee to another kind.

    GUARANTEE is a kind and its numbers, in quotes: "pure 1", "approx 1 1e-6", "probabilistic 1
    1e-6", "zcdp 0.1" or "renyi 10 0.5". Numbers are exact. What comes out is rounded up, so that it
    can only promise less than is true.
    """
    from lastbit.cli.page import show_json
    from lastbit.cli.promises import promise

    given = promise(guarantee)
    parameters = {"delta": delta, "epsilon": epsilon, "alpha": alpha}
    asked = {name: value for name, value in parameters.items() if value is not None}
    kind = _target(target, asked, grouped=size is not None)
    with option_names():
        start = given.group(size) if size is not None else given
        result = start if kind is None else _converted(start, kind, asked)
    theorems = _theorems(given, start, result, size)
    if as_json:
        order = _order(start, result)
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
    _show(given, start, result, theorems, size)


def _target(target: str | None, asked: dict[str, Fraction], *, grouped: bool) -> str | None:
    """The kind to convert to, from `--to` or from the parameters given; None is no conversion."""
    if len(asked) > 1:
        names = " and ".join(f"--{name}" for name in asked)
        raise InvalidParameter(names, problem="contradict each other", remedy="pass one of them")
    implied = None if not asked else "renyi" if "alpha" in asked else "approx"
    if target is None and implied is None and not grouped:
        raise InvalidParameter(
            "--to", problem="is missing", remedy="pass --delta, --epsilon, --alpha, --to or --group"
        )
    if target is not None and implied is not None and target != implied:
        raise InvalidParameter(
            f"--{next(iter(asked))}",
            problem=f"belongs to {implied}, not to {target}",
            remedy=f"leave it out, or pass --to {implied}",
        )
    if target == "renyi" and not asked:
        raise InvalidParameter("--alpha", problem="is missing", remedy="pass an order above 1")
    return target or implied


def _converted(start: Guarantee, kind: str, asked: dict[str, Fraction]) -> Guarantee:
    from lastbit.cli.promises import kind_named, promise_text
    from lastbit.privacy import ZCDP, RenyiDP

    if kind == "approx" and not asked and isinstance(start, ZCDP | RenyiDP):
        raise InvalidParameter("--delta", problem="is missing", remedy="pass --delta or --epsilon")
    try:
        converted: Guarantee = start.to(kind_named(kind), **asked)
    except IncompatibleGuarantees as error:
        raise IncompatibleGuarantees(
            f"{promise_text(start).split()[0]} does not convert to {kind}: that would promise more "
            "than is known; pass --delta or --epsilon for approx, the kind that all others imply"
        ) from error
    return converted


def _theorems(
    given: Guarantee, start: Guarantee, result: Guarantee, size: int | None
) -> tuple[str, ...]:
    grouped = [rule for kind, rule in GROUPS if size is not None and kind == type(given).__name__]
    pair = type(start).__name__, type(result).__name__
    if start == result:
        return (*grouped, *(() if grouped else ("nothing to convert",)))
    if pair[0] == "PureDP" and getattr(result, "delta", 1) == 0:
        return (*grouped, BY_DEFINITION)
    return (*grouped, *(rule for *kinds, rule in RULES if tuple(kinds) == pair))


def _show(
    given: Guarantee,
    start: Guarantee,
    result: Guarantee,
    theorems: tuple[str, ...],
    size: int | None,
) -> None:
    from lastbit.cli.page import Facts, Heading, Words, show
    from lastbit.cli.promises import promise_text, title

    facts = [("from", title(given))]
    if size is not None and start != result:
        facts.append((f"for {size} units", title(start)))
    facts += [("to", title(result)), *(("theorem", theorem) for theorem in theorems)]
    order = _order(start, result)
    if order is not None:
        facts.append(("best order", f"α = {rounded_up(order)}"))
    notes = [Words(note) for note in _notes(start, result)]
    show(Heading(f"{promise_text(given)}", _headline(result)), Facts(tuple(facts)), *notes)


def _headline(result: Guarantee) -> str:
    names = [name for name in ("epsilon", "rho") if hasattr(result, name)]
    number = getattr(result, names[0])
    symbol = result.symbols[names[0]]
    words = f"{symbol} = {exact_text(number)}"
    short = words if len(words) <= 20 else f"{symbol} ≤ {rounded_up(number)}"
    delta = getattr(result, "delta", None)
    return short if delta is None else f"{short}, δ = {_delta_text(delta)}"


def _delta_text(delta: Fraction) -> str:
    text = exact_text(delta)
    return text if len(text) <= 12 else rounded_up(delta)


def _notes(start: Guarantee, result: Guarantee) -> list[str]:
    notes = []
    if getattr(result, "epsilon", 0) == math.inf:
        notes.append("No ε is promised at this δ: it is smaller than what was given away already.")
    simple = _simple_bound(start, result)
    if simple is not None and hasattr(result, "epsilon"):
        ours = result.epsilon
        words = f"The usual formula ρ + 2√(ρ ln(1/δ)) gives ε = {rounded_up(simple)}"
        notes.append(
            f"{words}: {rounded_up(simple - ours, 3)} more than needed."
            if ours < simple
            else f"{words}; here it is no worse."
        )
    return notes


def _simple_bound(start: Any, result: Any) -> Fraction | None:
    """The usual rho + 2 sqrt(rho ln(1/delta)), rounded up (Bun, Steinke 2016, Prop. 3)."""
    from lastbit.exact import Real, upper
    from lastbit.privacy import ZCDP, ApproxDP

    if not isinstance(start, ZCDP) or not isinstance(result, ApproxDP):
        return None
    rho, delta = start.rho, result.delta
    if not isinstance(rho, Fraction) or not 0 < delta < 1 or rho == 0:
        return None
    bound = Real(rho) + Real(2) * (Real(rho) * Real(1 / delta).log()).sqrt()
    return Fraction(upper(bound.ball(128)))


def _order(start: Any, result: Any) -> Fraction | None:
    """The order whose bound is the one shown, nearly: every order gives a true one."""
    from lastbit.privacy import ZCDP, ApproxDP, best_order_for_delta

    if not isinstance(start, ZCDP) or not isinstance(result, ApproxDP):
        return None
    rho, delta = start.rho, result.delta
    if not isinstance(rho, Fraction) or rho == 0 or not 0 < delta < 1:
        return None
    return best_order_for_delta(rho, delta)
