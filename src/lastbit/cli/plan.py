"""`lastbit plan`: several questions about a table at one price, shown before they are asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from lastbit.cli.options import PATH, command, flag, json_option, option, refusal
from lastbit.cli.output import show_json, waiting
from lastbit.release import Table, statements_in, workload
from lastbit.tables import progress, read_card, rows_of


@command("plan visits.toml questions.sql --epsilon 3")
@click.argument("card", type=PATH)
@click.argument("questions", type=PATH)
@option("--epsilon", "The price of all answers together: 1, 0.5, 1/3 ...")
@option("--delta", "For undeclared keys, and Gaussian noise: 1e-9.")
@option("--rho", "The price, where the table is paid in concentrated privacy.")
@flag("--release", "Ask them all, and show the answers.")
@flag("--consistent", "With --release: a count and its parts by keys agree; keys must cover all.")
@json_option
def plan(
    card: Path, questions: Path, release: bool, consistent: bool, as_json: bool, **price: Any
) -> None:
    """Plan several questions at one price, and ask them all.

    QUESTIONS is a file of SELECT statements about the table of CARD, each ended by a semicolon.
    What they share is bought once, and the largest relative error is as small as it can be. With
    --release all prices are charged before a row is read, or none is.
    """
    if consistent and not release:
        raise refusal("--consistent", "is for --release", "leave it out")
    text = questions.read_text(encoding="utf-8")
    asked = workload(Table(rows=rows_of(read_card(card))).sql(one) for one in statements_in(text))
    made = asked.plan(**price)
    if release:
        with waiting("asking") as tell, progress(tell):
            answers = asked.release(consistent=consistent, **price)
        shown: Any = [answer.part or answer.record for answer in answers]
        text = "\n\n".join(f"{number}. {one}" for number, one in enumerate(answers, start=1))
    else:
        shown = {"cost": made.cost.to_json(), "plans": [one.to_json() for one in made.plans]}
        text = made.explain()
    show_json(shown) if as_json else click.echo(text)
