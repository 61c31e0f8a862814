"""`lastbit card prepare` and `unprepare`: rows made ready once, for quicker answers."""

from __future__ import annotations

from pathlib import Path

import click

from lastbit.cli.options import PATH, command, json_option
from lastbit.cli.output import Facts, Heading, printable, show, show_json, waiting
from lastbit.tables import PreparedState, prepare_rows, read_card, unprepare_rows

_SAME = "Answers are the same to the last bit: only the time to read the rows changes."


@command("card prepare visits.toml")
@click.argument("file", type=PATH, metavar="CARD")
@json_option
def prepare(file: Path, as_json: bool) -> None:
    """Make the rows of a card's source ready, so that questions come back sooner.

    The card says where, by [prepared] and path = "visits.prepared". Rows are read once, and written
    as the card reads them, sorted by unit. Only you can read that folder. Nothing is charged. When
    the source changes, questions are refused until it is prepared again.
    """
    card = read_card(file)
    with waiting("preparing") as tell:
        state = prepare_rows(card, tell)
    if as_json:
        show_json({"card": file.name, "made_now": state.made_now, "bytes": state.size})
        return
    verdict = "prepared" if state.made_now else "was prepared already"
    facts = [("size", size_words(state)), ("for", "you alone: it holds the rows of the source")]
    show(Heading(printable(card.name, 40), verdict), Facts(facts), _SAME)


@command("card unprepare visits.toml")
@click.argument("file", type=PATH, metavar="CARD")
@json_option
def unprepare(file: Path, as_json: bool) -> None:
    """Remove what card prepare made; the source itself is read again.

    Only files that lastbit made are removed. Answers on record stay, and are free as before.
    """
    card = read_card(file)
    removed = unprepare_rows(card)
    if as_json:
        show_json({"card": file.name, "removed": removed})
        return
    show(Heading(printable(card.name, 40), "removed" if removed else "was not prepared"), _SAME)


def size_words(state: PreparedState) -> str:
    """How large prepared rows are."""
    return f"{max(state.size / 10**6, 0.1):,.1f} MB"


def state_words(state: PreparedState) -> str:
    """Whether prepared rows are used, for the page of a card."""
    if state.ready:
        return f"ready, {size_words(state)}"
    return f"{state.problem}; run lastbit card prepare"
