"""`lastbit serve`: people ask in a browser, or by HTTP, about tables that they do not have."""

from __future__ import annotations

import webbrowser
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import click

from lastbit.cli.options import FILE, command, flag, option, refusal
from lastbit.cli.output import Facts, Heading, Part, show
from lastbit.serve import UNITS, Settings
from lastbit.tables import read_card

if TYPE_CHECKING:  # needs the extra
    from lastbit.serve import Started

NEEDED = ("starlette", "uvicorn")


@command("serve visits.toml")
@click.argument("cards", type=FILE, nargs=-1, required=True, metavar="CARD...")
@option(
    "--state",
    "A folder for sessions, tokens and waiting questions. Without it: visits.serve beside the "
    "first card.",
    click.Path(file_okay=False, path_type=Path),
)
@option("--host", "Where to listen.", "HOST", default="127.0.0.1")
@option("--port", "Where to listen; 0 takes a free one.", click.IntRange(0, 65535), default=8000)
@option("--socket", "Listen on this Unix socket instead.", FILE)
@flag("--behind-proxy", "A proxy in front does TLS; needs --origin.")
@option("--origin", "What browsers open: https://stats.example.org.", "ADDRESS")
@option(
    "--trusted-header",
    "The header in which the proxy on the Unix socket names who signed in.",
    "HEADER",
)
@option(
    "--sql-port",
    "Let SQL clients ask by PostgreSQL's protocol on this port; 0 takes a free one.",
    click.IntRange(0, 65535),
)
@option("--sql-host", "Where to listen for them.", "HOST", default="127.0.0.1")
@option("--sql-certificate", "A PEM file: they speak TLS. Other machines must.", FILE)
@option("--sql-key", "The key of the certificate, if it is in a file of its own.", FILE)
@option("--sql-epsilon", "What a question of theirs costs where they say nothing.", "AMOUNT")
@option("--slot", "Seconds of a slot. Without it: measured on made-up rows, once.")
@flag("--strict", "Answers appear after one slot or never: 1 bit of time at most, not 2.")
@option(
    "--keep-days",
    "Days for which the audit log and finished questions are kept; the ledger is kept for good.",
    click.IntRange(1, 36_525),
    default=366,
)
@flag("--open", "Open it in a browser.", dest="opening")
@option("--link", "Print another one-time link for this user, and end.", "NAME")
@option(
    "--print",
    "Print a file for those who run it for good, and end.",
    tuple(UNITS),
    dest="unit",
)
def serve(
    cards: tuple[Path, ...],
    state: Path | None,
    slot: Fraction | None,
    opening: bool,
    link: str | None,
    unit: str | None,
    **said: Any,
) -> None:
    """Let people who do not have the data ask in a browser.

    Serves the tables of one ledger: stewards give analysts allowances, analysts see prices before
    they pay, auditors read along. Prints a one-time link for the first steward. Listens on this
    machine only, unless a proxy does TLS (--behind-proxy). Ctrl-C ends it once the questions that
    run have ended; a second one at once.
    """
    for card in cards:
        read_card(card)
    settings = Settings(
        cards=cards,
        state=cards[0].with_suffix(".serve") if state is None else state,
        slot=None if slot is None else float(slot),
        **said,
    )
    if unit is not None:
        click.echo(UNITS[unit](settings), nl=False)
    elif link is not None:
        check_extra()
        from lastbit.serve import link_for  # needs the extra

        click.echo(f"{link_for(settings, link)}\nValid once, for an hour.")
    else:
        run(settings, lambda started: _announce(started, opening=opening))


def run(
    settings: Settings, announce: Callable[[Started], None], links_for: tuple[str, ...] = ()
) -> None:
    """Serve until a signal ends it; a line a request on stdout."""
    check_extra()
    from lastbit.serve import serve as served  # needs the extra

    def told(started: Started) -> None:
        with suppress(BrokenPipeError):  # as below; --link makes another link
            announce(started)

    served(settings, announce=told, log=_line, links_for=links_for)
    _line("ended; every question that was running has ended too")


def check_extra() -> None:
    """Refuse, with the remedy, where the packages of the extra are not installed."""
    if any(find_spec(name) is None for name in NEEDED):
        problem = f"needs {' and '.join(NEEDED)}, which are not installed"
        raise refusal("lastbit serve", problem, 'pip install "lastbit[serve]"')


def _line(words: str) -> None:
    with suppress(OSError, ValueError):  # nobody reads any more: no reason to stop
        click.echo(words)


def _announce(started: Started, *, opening: bool) -> None:
    from lastbit.serve import UNSAID  # needs the extra

    tables = started.catalogue.tables
    facts = [("tables", ", ".join(tables)), ("ledger", str(started.catalogue.ledger.path))]
    facts += [] if started.sql is None else [("SQL", started.sql)]
    facts += [] if started.before is None else [("last run", started.before)]
    parts: list[Part] = [Heading("lastbit serve", started.address), Facts(facts)]
    if started.accepted:
        names = ", ".join(started.accepted)
        parts.append(
            f"Accepted as the first version of the data: {names}. That is on record; from now on "
            "data that change are not asked about until a steward accepts them."
        )
    if started.waiting:
        parts.append(
            f"No version of the data of {', '.join(started.waiting)} is accepted yet: a steward "
            f"accepts one on the page of the table. Until then no question is answered."
        )
    parts += [f"{one.name}: {UNSAID}" for one in tables.values() if one.is_unsized]
    first = started.links.get("")
    if first is None:
        parts.append(
            "For a user who has no token, the same command with --link NAME prints a sign-in link."
        )
    else:
        parts.append("The first steward's link, valid once, for an hour:")
    show(*parts)
    click.echo("" if first is None else f"\n  {first}\n")  # not folded: it is to be clicked
    if opening:
        # beside the server: some browsers take the terminal until they are closed
        Thread(target=webbrowser.open, args=(first or started.address,), daemon=True).start()
