"""`lastbit compose`: what several releases promise together, theorem by theorem."""

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
    from lastbit.privacy import ApproxDP, Guarantee

MOST = 100_000
THEOREMS = (
    ("basic", "all added up", "paper 003, Prop. 8"),
    ("advanced", "added up with a slack", "Dwork et al. 2010"),
    ("optimal", "exact: no less is true", "Kairouz et al. 2015"),
    ("concentrated", "as zCDP, best order", "CKS 2020, Prop. 12"),
    ("concentrated and basic", "zCDP, the rest added", "CKS 2020, Prop. 12"),
    ("Renyi", "one order, added up", "CKS 2020, Prop. 12"),
    ("none", "no theorem applies", "-"),
)


@click.command(epilog='Example: lastbit compose "pure 0.1 x 100" "zcdp 0.01 x 3" --delta 1e-6')
@click.argument("guarantees", nargs=-1, required=True)
@click.option("--delta", type=EXACT, help="The delta of all together.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with exact numbers.")
def compose(guarantees: tuple[str, ...], delta: Fraction | None, as_json: bool) -> None:
    """Compose guarantees about the same people.

    Each of GUARANTEES is a kind and its numbers, in quotes, and perhaps how many times: "pure 0.1 x
    100", "approx 1 1e-6", "zcdp 0.01 x 3", "renyi 10 0.5". Without --delta, guarantees of one kind
    are added up exactly; with it, every theorem that applies is tried and the best is marked.
    """
    from lastbit.cli.promises import promises
    from lastbit.cli.waiting import waiting

    counted = [promises(text) for text in guarantees]
    if sum(times for _, times in counted) > MOST:
        raise InvalidParameter(
            "the guarantees",
            problem=f"are more than {MOST:,} together",
            remedy='add some up first: "zcdp 10" is "zcdp 0.1 x 100"',
        )
    if delta is None:
        _show_sum(counted, _sum(counted), as_json=as_json)
        return
    with option_names(), waiting("composing"):
        found = _found(counted, delta)
    _show_table(counted, delta, found, as_json=as_json)


def _sum(counted: list[tuple[Guarantee, int]]) -> Guarantee:
    """All added up, exactly; refused with a word about --delta if they are of several kinds."""
    kinds = {type(guarantee) for guarantee, _ in counted}
    if len(kinds) > 1:
        raise InvalidParameter(
            "--delta",
            problem="is missing, and guarantees of different kinds do not just add up",
            remedy="pass --delta, say 1e-9",
        )
    total: Guarantee = sum(_times(guarantee, times) for guarantee, times in counted)
    return total


def _times(guarantee: Any, times: int) -> Any:
    """The sum of so many equal ones, by doubling."""
    if times == 1:
        return guarantee
    half = _times(guarantee, times // 2)
    return half + half + guarantee if times % 2 else half + half


def _found(counted: list[tuple[Guarantee, int]], delta: Fraction) -> dict[str, ApproxDP]:
    from lastbit.privacy import ApproxDP, RenyiDP, compositions

    renyi = [isinstance(guarantee, RenyiDP) for guarantee, _ in counted]
    if all(renyi):
        return {"Renyi": _sum(counted).to(ApproxDP, delta=delta)}
    if any(renyi):
        raise IncompatibleGuarantees(
            "a renyi guarantee of one order composes only with others of that order; "
            "start from zcdp or pure, or compose the renyi ones apart"
        )
    return compositions([g for g, times in counted for _ in range(times)], delta)


def _listed(counted: list[tuple[Guarantee, int]]) -> str:
    from lastbit.cli.promises import promise_text

    return ", ".join(
        promise_text(guarantee) + (f" × {times}" if times > 1 else "")
        for guarantee, times in counted
    )


def _show_sum(counted: list[tuple[Guarantee, int]], total: Guarantee, *, as_json: bool) -> None:
    from lastbit.cli.page import Facts, Heading, show, show_json
    from lastbit.cli.promises import promise_text, title

    if as_json:
        show_json({"of": _json_of(counted), "together": total.to_dict()})
        return
    facts = (
        ("releases", _listed(counted)),
        ("together", title(total)),
        ("theorem", "basic composition: the parameters add up, exactly"),
        ("better", "pass --delta to try every theorem that allows a δ"),
    )
    releases = sum(times for _, times in counted)
    show(Heading(f"{releases:,} releases together", promise_text(total)), Facts(facts))


def _show_table(
    counted: list[tuple[Guarantee, int]],
    delta: Fraction,
    found: dict[str, ApproxDP],
    *,
    as_json: bool,
) -> None:
    from lastbit.cli.page import Columns, Facts, Heading, Words, show, show_json

    best = min(found, key=lambda name: found[name].epsilon)
    if as_json:
        show_json(
            {
                "of": _json_of(counted),
                "theorems": {name: guarantee.to_dict() for name, guarantee in found.items()},
                "best": best,
                "together": found[best].to_dict(),
            }
        )
        return
    known = {name: (rule, source) for name, rule, source in THEOREMS}
    rows = [
        (
            f"{name} ●" if name == best else name,
            # a δ that basic composition reaches, optimal reaches too, unless it is too much work
            "not tried" if name == "optimal" and _gave_up(found) else rounded_up(loss.epsilon),
            *known.get(name, ("", "")),
        )
        for name, loss in found.items()
    ]
    releases = sum(times for _, times in counted)
    loss = rounded_up(found[best].epsilon)
    table = Columns(
        ("theorem", "ε", "says", "source"), tuple(rows), best=list(found).index(best), numbers=(1,)
    )
    conclusion = (
        f"● the least: all of them together promise ε = {loss} at δ = {exact_text(delta)}. Every "
        "ε is rounded up."
        if found[best].epsilon < math.inf
        else "Nothing is promised at this δ: what was given away already is more than that."
    )
    show(
        Heading(f"{releases:,} releases together", f"ε ≤ {loss}, δ = {exact_text(delta)}"),
        Facts((("releases", _listed(counted)),)),
        table,
        Words(conclusion),
    )


def _gave_up(found: dict[str, ApproxDP]) -> bool:
    return "basic" in found and found["optimal"].epsilon == math.inf > found["basic"].epsilon


def _json_of(counted: list[tuple[Guarantee, int]]) -> list[dict[str, object]]:
    return [{"guarantee": guarantee.to_dict(), "times": times} for guarantee, times in counted]
