"""The `lastbit` command: the group that the commands hang from, and how an error is shown.

A command's file is imported when the command is run; `lastbit --help` imports none. Here, and
nowhere else, an error of ours becomes a paragraph on stderr and the exit status 2.
"""

from __future__ import annotations

import errno
import gc
from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import IO, Any

import click

from lastbit import __version__
from lastbit.errors import LastbitError, QueryRefused

LINE_WIDTH = 80
# Each line is the first of the command's own help: a test compares them. The headings are the four
# doors of the README.
DOORS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "See it work": {
            "demo": "Ask a made-up hospital, and see the truth beside the answers.",
            "leak": "Watch textbook noise give its secret away, and ours keep it.",
            "docs": "Read the documentation in a browser, without a network.",
            "help": "What can be asked, and the help of a command.",
        },
        "Publish statistics from a table": {
            "card": "Draft and check data cards: what a steward declares of a table.",
            "query": "Ask a table in SQL: a private answer with error bars.",
            "plan": "Plan several questions at one price, and ask them all.",
            "levels": "Count on several levels, so that the numbers add up.",
            "budget": "What is spent and what is left.",
            "report": "What is on record of a table, for reviewers and registries.",
        },
        "Run a service for people who do not have the data": {
            "serve": "Let people who do not have the data ask in a browser.",
            "user": "Who may decide, ask and read: the principals of a ledger.",
            "allowance": "How much of an account an analyst may spend.",
            "ledger": "Check, read and copy a ledger: who spent what.",
        },
        "Use one mechanism": {
            "mechanism": "Release one value with exact noise, or explain a mechanism.",
            "median": "A private median of one column of a CSV file.",
            "train": "Plan private training: DP-SGD on whole numbers.",
            "theory": "Add up and convert guarantees; plan polls; hide places.",
        },
        "Judge a mechanism or an answer": {
            "check": "Re-derive what certificates claim; that of a saved answer too.",
            "verify": "What float code truly loses, with a certificate.",
            "audit": "A certified lower bound on the epsilon of a mechanism.",
            "attack": "Known ways in which noise fails, tried on anybody's.",
        },
    }
)
THEORY: Mapping[str, str] = MappingProxyType(
    {
        "compose": "Compose guarantees about the same people.",
        "convert": "Convert a guarantee to another kind.",
        "geo": "Move places by noise, so that near ones look alike.",
        "poll": "Plan and read polls whose answers are perturbed.",
    }
)
"""Commands below `lastbit theory`; without that word too, as they were called at first."""

COMMANDS: Mapping[str, str] = MappingProxyType(
    {name: line for door in DOORS.values() for name, line in door.items()}
)


def loaded(name: str) -> click.Command:
    """A command, whose file is imported now."""
    gc.disable()  # what is loaded stays; to search it for garbage costs a fifth of the start
    try:
        command: click.Command = getattr(import_module(f"lastbit.cli.{name}"), name)
    finally:
        gc.enable()
    return command


class Refused(click.ClickException):
    """An error of ours on its way to the terminal: a paragraph, exit status 2.

    An error that lists several problems has a line for each, and they keep their lines.
    """

    exit_code = 2

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the message on stderr, every line of it folded to the width of a terminal."""
        first, *others = self.message.splitlines()
        folded = [click.wrap_text(f"Error: {first}", width=LINE_WIDTH)]
        folded += [click.wrap_text(line, LINE_WIDTH, "  ", "    ") for line in others]
        click.echo("\n".join(folded), file=file, err=file is None)


class Commands(click.Group):
    """A group that imports a command when it is run, and whose errors end in a paragraph."""

    old_names = tuple(THEORY)
    """Names that run commands, and are listed elsewhere."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*COMMANDS, *self.commands]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in COMMANDS or cmd_name in THEORY:
            return loaded(cmd_name)
        return super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The table itself, door by door: no command is imported for it."""
        widest = max(map(len, COMMANDS))
        for door, lines in DOORS.items():
            with formatter.section(door):
                formatter.write_dl([(name.ljust(widest), line) for name, line in lines.items()])

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except LastbitError as error:
            lines = [" ".join(line.split()) for line in str(error).splitlines()]
            if isinstance(error, QueryRefused) and "lastbit help queries" not in str(error):
                lines.append("What can be asked: lastbit help queries")
            raise Refused("\n".join(line for line in lines if line)) from error
        except (OSError, UnicodeError, RecursionError, MemoryError) as error:
            if isinstance(error, OSError) and error.errno in (errno.EPIPE, None):
                raise  # nobody reads our output any more: click knows
            # the last net: what no command has foreseen, without a word that could hold data
            words = "the input is too large or nested too deeply; make it smaller"
            if isinstance(error, OSError):
                reason = error.strerror
                words = f"a file could not be read or written ({reason}); check names and disk"
            elif isinstance(error, UnicodeError):
                words = "a name or a file is not text in UTF-8; rename or convert it"
            raise Refused(words) from None


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": LINE_WIDTH},
    epilog="Example: lastbit demo",
)
@click.version_option(__version__, prog_name="lastbit")
def main() -> None:
    """Differential privacy that holds to the last bit.

    Begin with demo. Every command has --help with an example; docs has the manual.
    """
