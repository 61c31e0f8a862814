"""`lastbit card profile`: how rows, groups and values are spread over units, bought once."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from lastbit.cli.ledger import account_of, budget_rows
from lastbit.cli.options import PATH, command, flag, json_option, option, refusal
from lastbit.cli.output import Columns, Facts, Heading, Part, printable, show, show_json, waiting
from lastbit.release import Profile, Table
from lastbit.report import price as price_words
from lastbit.tables import Cost, DataCard, read_card, rows_of


@command("card profile visits.toml --epsilon 0.05 --column cost")
@click.argument("file", type=PATH, metavar="CARD")
@option("--epsilon", "What is paid for it, in all.")
@option("--rho", "The same, where the table is paid in concentrated privacy.")
@option(
    "--column", "How large the values of this column are; may be repeated.", "NAME", multiple=True
)
@option(
    "--keys",
    "In how many groups of these keys units are; may be repeated.",
    "NAME,...",
    multiple=True,
)
@flag("--fresh", "Pay for new noise though a profile is recorded.")
@json_option
def profile(
    file: Path,
    epsilon: Fraction | None,
    rho: Fraction | None,
    column: Sequence[str],
    keys: Sequence[str],
    fresh: bool,
    as_json: bool,
) -> None:
    """Buy the profile of a table, by which limits that are left out are chosen.

    How many rows units have; with --column how large values are, with --keys in how many groups
    units are. Each is a histogram in which a unit counts once, released with noise as any answer:
    charged to the ledger, recorded, certified. The price is shared out equally among them.

    For these data it is bought once: max_rows, max_groups and bounds that a card or a question
    leaves out are chosen by it, for everybody and at no charge. What is recorded is shown again.
    """
    card = read_card(file)
    table = Table(rows=rows_of(card))
    if (epsilon is None) == (rho is None):
        raise refusal("--epsilon", "or --rho, exactly one, is needed", "write, say, --epsilon 0.05")
    listed = [[name.strip() for name in names.split(",")] for names in keys]
    with waiting("profiling"):
        found = table.profile(epsilon=epsilon, rho=rho, columns=column, keys=listed, fresh=fresh)
    if as_json:
        show_json(_json(found))
    else:
        show(*_page(card, found))


def _page(card: DataCard, found: Profile) -> list[Part]:
    charged = Cost()
    for answer in found.answers:
        charged += answer.cost if answer.charged else Cost()
    verdict = "recorded, no charge" if charged == Cost() else price_words(charged.to_json())
    parts: list[Part] = [Heading(f"Profile of {printable(card.name, 40)}", verdict)]
    for headings, lines in found.tables():
        rows = [(printable(a, 40), b) for a, b in lines] or [("nothing stands out from noise", "")]
        parts.append(Columns([printable(one, 40) for one in headings], rows, numbers=(1,)))
    numbers = [str(a.record["entry"]["sequence"]) for a in found.answers if a.record.get("entry")]
    facts = [("ledger", f"entries {', '.join(numbers)}")] if numbers else []
    parts.append(Facts([*facts, *budget_rows(account_of(card)[1], found.answers[0].cost)]))
    return [*parts, "Limits that are left out are chosen by it, at no further charge."]


def _json(found: Profile) -> dict[str, Any]:
    return {
        "histograms": [
            {"of": headings[0], "bins": [{"bin": a, "units": b} for a, b in lines]}
            for headings, lines in found.tables()
        ],
        "answers": [answer.record for answer in found.answers],
        "charged": [answer.charged for answer in found.answers],
    }
