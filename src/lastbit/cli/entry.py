"""The `lastbit` command: the group that the single commands hang from."""

from __future__ import annotations

import errno
from typing import IO, Any

import click

from lastbit import __version__
from lastbit.cli.attack import attack
from lastbit.cli.audit import audit
from lastbit.cli.budget import budget
from lastbit.cli.card import card
from lastbit.cli.check import check
from lastbit.cli.compose import compose
from lastbit.cli.convert import convert
from lastbit.cli.demo import demo
from lastbit.cli.figure import figure
from lastbit.cli.geo import geo
from lastbit.cli.leak import leak
from lastbit.cli.ledger import ledger
from lastbit.cli.mechanism import mechanism
from lastbit.cli.median import median
from lastbit.cli.poll import poll
from lastbit.cli.query import query
from lastbit.cli.verify import verify
from lastbit.errors import LastbitError

LINE_WIDTH = 80


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


def _unforeseen(error: BaseException) -> str:
    """The last net: what no command has foreseen, without a word that could hold data."""
    if isinstance(error, OSError):
        return f"a file could not be read or written ({error.strerror}); check names and disk"
    if isinstance(error, UnicodeError):
        return "a name or a file is no text in UTF-8; rename or convert it"
    return "the input is too large or nested too deeply; make it smaller"


class Commands(click.Group):
    """A group of commands whose `LastbitError`s end in a paragraph, never in a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the chosen command."""
        try:
            return super().invoke(ctx)
        except LastbitError as error:
            lines = (" ".join(line.split()) for line in str(error).splitlines())
            raise Refused("\n".join(line for line in lines if line)) from error
        except (OSError, UnicodeError, RecursionError, MemoryError) as error:
            if isinstance(error, OSError) and error.errno in (errno.EPIPE, None):
                raise  # whoever reads our output has gone: click knows
            raise Refused(_unforeseen(error)) from None


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": LINE_WIDTH},
    epilog="Example: lastbit demo",
)
@click.version_option(__version__, prog_name="lastbit")
def main() -> None:
    """Differential privacy that holds to the last bit.

    Private answers about tables (card, query, budget, ledger), exact noise (mechanism and others),
    proofs and audits of anybody's mechanism (verify, check, audit, attack). Start with demo.
    """


main.add_command(demo)
main.add_command(query)
main.add_command(leak)
main.add_command(mechanism)
main.add_command(poll)
main.add_command(median)
main.add_command(geo)
main.add_command(convert)
main.add_command(compose)
main.add_command(figure)
main.add_command(verify)
main.add_command(check)
main.add_command(card)
main.add_command(budget)
main.add_command(ledger)
main.add_command(audit)
main.add_command(attack)
