"""`lastbit theory compose`: what several releases promise together, theorem by theorem."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import click

from lastbit.cli.files import check_folder, save
from lastbit.cli.options import (
    FILE,
    command,
    flag,
    option,
    refusal,
    repeated_guarantee,
    spelled,
    title,
)
from lastbit.cli.output import Columns, Facts, Heading, show, show_json, waiting
from lastbit.errors import IncompatibleGuarantees
from lastbit.exact import exact_text, rounded_down, rounded_up
from lastbit.privacy import (
    ZCDP,
    ApproxDP,
    GaussianLoss,
    Guarantee,
    PrivacyLoss,
    RenyiDP,
    black_box,
    compositions,
    tight_profile,
)
from lastbit.verify import composition_certificate, text_of

Counted: TypeAlias = list[tuple[Guarantee | GaussianLoss, int]]
MOST = 100_000
THEOREMS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "basic": ("all added up", "paper 003, Prop. 8"),
        "advanced": ("added up with a slack", "Dwork et al. 2010"),
        "optimal": ("exact: no less is true", "Kairouz et al. 2015"),
        "concentrated": ("as zCDP, best order", "CKS 2020, Prop. 12"),
        "concentrated and basic": ("zCDP, the rest added", "CKS 2020, Prop. 12"),
        "moments": ("by moments, best order", "Feldman, Zrnic 2021"),
        "Renyi": ("one order, added up", "CKS 2020, Prop. 12"),
        "tight": ("exact, from both sides", "Zhu et al. 2022"),
        "none": ("no theorem applies", "-"),
    }
)


@command('theory compose "pure 0.1 x 100" "gaussian 10 x 3" --delta 1e-6')
@click.argument("guarantees", nargs=-1, required=True)
@option("--delta", "The delta of all together.")
@option("--certificate", "Where a certificate goes; lastbit check reads it. Needs --delta.", FILE)
@flag("--json", "Print JSON, with exact numbers.", dest="as_json")
def compose(
    guarantees: tuple[str, ...], delta: Fraction | None, certificate: Path | None, as_json: bool
) -> None:
    """Compose guarantees about the same people.

    Each of GUARANTEES is a kind and its numbers, in quotes, and perhaps how many times. Examples:
    "pure 0.1 x 100", "approx 1 1e-6", "zcdp 0.01 x 3", "renyi 10 0.5". Without --delta, guarantees
    of one kind add up exactly. With it, every theorem that applies is tried and the best is marked.

    "gaussian 10 x 50" is continuous Gaussian noise of deviation 10, 50 times, at sensitivity 1. For
    another sensitivity, write deviation/sensitivity. Of it more is known than of a zcdp guarantee,
    1/(2 deviation²), and its epsilon is exact.

    A certificate holds the epsilon that the independent checker can redo, by moments at one order.
    It is a little above the tight one, which stands beside it on trust.
    """
    counted = [repeated_guarantee(text) for text in guarantees]
    if sum(times for _, times in counted) > MOST:
        remedy = 'add some up first: "zcdp 10" is "zcdp 0.1 x 100"'
        raise refusal("the guarantees", f"are more than {MOST:,} together", remedy)
    if certificate is not None:
        if delta is None:
            raise refusal("--delta", "is missing, and a certificate needs it", "pass, say, 1e-9")
        check_folder(certificate, "--certificate")
    if delta is None:
        total = _sum(counted)
        if as_json:
            show_json({"of": _json_of(counted), "together": total.to_dict()})
            return
        facts = (
            ("releases", _listed(counted)),
            ("together", title(total)),
            ("theorem", "basic composition: the parameters add up, exactly"),
            ("better", "pass --delta to try every theorem that allows a δ"),
        )
        show(Heading(_count(counted), spelled(total)), Facts(facts))
        return
    renyi = [isinstance(guarantee, RenyiDP) for guarantee, _ in counted]
    if any(renyi) and not all(renyi):
        raise IncompatibleGuarantees(
            "renyi guarantees compose only with those of the same order; start from zcdp or pure, "
            "or compose them apart"
        )
    with waiting("composing"):
        if all(renyi):
            found = {"Renyi": _sum(counted).to(ApproxDP, delta=delta)}
        else:
            found = compositions([g for g, times in counted for _ in range(times)], delta)
        proof = None if certificate is None else _certificate(counted, delta)
    if certificate is not None and proof is not None:
        save(certificate, text_of(proof), "--certificate")
    _show_table(counted, delta, found, as_json=as_json)
    if certificate is not None and proof is not None and not as_json:
        checked = rounded_up(Fraction(proof["claim"]["epsilon"]))
        show(
            f"The certificate, for lastbit check: {certificate}. It proves ε = {checked} at this "
            "δ; a smaller ε in it is on trust."
        )


def _certificate(counted: Counted, delta: Fraction) -> dict[str, Any]:
    parts: list[tuple[PrivacyLoss | ZCDP, int]] = []
    for guarantee, times in counted:
        if isinstance(guarantee, RenyiDP):
            problem = "is not written for renyi guarantees"
            raise refusal("--certificate", problem, "leave it out, or state them as zcdp")
        if isinstance(guarantee, ZCDP | GaussianLoss):
            parts.append((guarantee, times))
        else:
            parts.append((black_box(guarantee), times))
    return composition_certificate(parts, delta=delta)


def _sum(counted: Counted) -> Guarantee:
    """All added up, exactly; refused with a word about --delta if they are of several kinds."""
    sums = [
        (ZCDP(part.mu_squared / 2) if isinstance(part, GaussianLoss) else part, times)
        for part, times in counted
    ]
    if len({type(guarantee) for guarantee, _ in sums}) > 1:
        problem = "is missing, and guarantees of different kinds do not just add up"
        raise refusal("--delta", problem, "pass --delta, say 1e-9")
    total: Guarantee = sum(_times(guarantee, times) for guarantee, times in sums)
    return total


def _times(guarantee: Any, times: int) -> Any:
    """The sum of this many equal ones, by doubling."""
    if times == 1:
        return guarantee
    half = _times(guarantee, times // 2)
    return half + half + guarantee if times % 2 else half + half


def _show_table(
    counted: Counted, delta: Fraction, found: dict[str, ApproxDP], *, as_json: bool
) -> None:
    best = min(found, key=lambda name: found[name].epsilon)
    profile = None
    if "tight" in found:
        profile = tight_profile(g for g, times in counted for _ in range(times))
    bounds = None if profile is None else profile.epsilon(delta)  # from below and from above
    if as_json:
        show_json(
            {
                "of": _json_of(counted),
                "theorems": {name: guarantee.to_dict() for name, guarantee in found.items()},
                "best": best,
                "together": found[best].to_dict(),
                **({"tight": [repr(end) for end in bounds]} if bounds else {}),
            }
        )
        return
    # a δ that basic composition reaches, optimal reaches too, unless it is too much work
    gave_up = "basic" in found and found["optimal"].epsilon == math.inf > found["basic"].epsilon
    rows = [
        (
            f"{name} ●" if name == best else name,
            "not tried" if name == "optimal" and gave_up else rounded_up(loss.epsilon),
            *THEOREMS.get(name, ("", "")),
        )
        for name, loss in found.items()
    ]
    loss, level = rounded_up(found[best].epsilon), exact_text(delta)
    conclusion = (
        f"● the least: all of them together promise ε = {loss} at δ = {level}. Every ε is rounded "
        "up."
        if found[best].epsilon < math.inf
        else "Nothing is promised at this δ: what was given away already is more than that."
    )
    if bounds and bounds[1] < math.inf:
        conclusion += f" No less than {rounded_down(bounds[0])} is true of all such releases."
    headings = ("theorem", "ε", "says", "source")
    show(
        Heading(_count(counted), f"ε ≤ {loss}, δ = {level}"),
        Facts((("releases", _listed(counted)),)),
        Columns(headings, rows, best=list(found).index(best), numbers=(1,)),
        conclusion,
    )


def _count(counted: Counted) -> str:
    return f"{sum(times for _, times in counted):,} releases together"


def _listed(counted: Counted) -> str:
    return ", ".join(spelled(g) + (f" × {times}" if times > 1 else "") for g, times in counted)


def _json_of(counted: Counted) -> list[dict[str, object]]:
    return [{"guarantee": guarantee.to_dict(), "times": times} for guarantee, times in counted]
