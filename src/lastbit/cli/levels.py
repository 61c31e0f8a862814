"""`lastbit levels`: counts on several levels that add up: nation, region, district."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from lastbit.cli.options import PATH, command, flag, json_option, option, refusal
from lastbit.cli.output import show_json, waiting
from lastbit.release import Table
from lastbit.tables import progress, read_card, rows_of


@command("levels visits.toml region district --public areas --epsilon 1 --explain")
@click.argument("card", type=PATH)
@click.argument("levels", nargs=-1, required=True)
@option("--epsilon", "The price of all levels together: 1, 0.5, 1/3 ...")
@option("--rho", "The price in concentrated privacy, for Gaussian noise.")
@option("--public", "The public table of the card that says which region a district is in.", "TEXT")
@option("--on", "What that table calls the last level it has: district=code.", "TEXT")
@option("--where", "Only rows for which this is true.", "TEXT")
@flag("--explain", "Show prices and errors; nothing is read.")
@option("--save", "Keep the answer in this folder, a record for each level.", PATH)
@option("--csv", "Write the numbers as comma-separated text.", PATH)
@json_option
def levels(
    card: Path,
    levels: tuple[str, ...],
    epsilon: Any,
    rho: Any,
    public: str | None,
    on: str | None,
    where: str | None,
    explain: bool,
    save: Path | None,
    csv: Path | None,
    as_json: bool,
) -> None:
    """Count on several levels, so that the numbers add up.

    LEVELS are columns of the table of CARD, from the top: region, then district. A public table
    says which region each district is in; other levels have declared keys. One price is shared
    out among all levels, so that the largest error is least. Numbers are whole, not negative, and
    add up exactly on every level.
    """
    pairs = None if on is None else dict([_pair(on)])
    asked = Table(rows=rows_of(read_card(card)))
    asked = asked if where is None else asked.where(where)
    question = asked.levels(*levels, public=public, on=pairs)
    price: dict[str, Any] = {"epsilon": epsilon, "rho": rho}
    if explain:
        plan = question.plan(**price)
        said = {"cost": plan.cost.to_json(), "levels": [level.name for level in plan.levels]}
        show_json(said) if as_json else click.echo(plan.explain())
        return
    with waiting("asking") as tell, progress(tell):
        answer = question.release(**price)
    if save is not None:
        answer.save(save)
    if csv is not None:
        answer.to_csv(csv)
    shown = {"cost": answer.cost.to_json(), "guarantee": answer.guarantee}
    show_json({**shown, "rows": answer.to_dicts()}) if as_json else click.echo(str(answer))


def _pair(text: str) -> tuple[str, str]:
    """What `--on district=code` says."""
    own, equals, theirs = text.partition("=")
    if not (own and equals and theirs):
        raise refusal("--on", "is no pair of columns", "name both, and an equals sign between them")
    return own, theirs
