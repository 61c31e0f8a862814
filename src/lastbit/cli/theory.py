"""`lastbit theory`: guarantees and mechanisms worked out; each command is imported when it runs."""

from __future__ import annotations

import click

from lastbit.cli.main import THEORY, loaded
from lastbit.cli.options import Group, group


class Theory(Group):
    """A group that imports a command when it is run."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(THEORY)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        return loaded(cmd_name) if cmd_name in THEORY else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The table itself: no command is imported for it."""
        with formatter.section("Commands"):
            formatter.write_dl(list(THEORY.items()))


@group('theory compose "pure 0.1 x 100" --delta 1e-6', cls=Theory)
def theory() -> None:
    """Add up and convert guarantees; plan polls; hide places."""
