"""The command-line reference is the commands' own help, and each help shows an example."""

import click

from docs.generate_cli import PAGE, commands, reference
from lastbit.cli.main import main


def without_example(root: click.Command, name: str) -> list[str]:
    """Commands whose help never shows them in use."""
    return [
        path
        for path, command, _ in commands(root, name)
        if not isinstance(command, click.Group)
        and f"Example: {path}" not in f"{command.help}\n{command.epilog}"
    ]


def test_the_page_is_up_to_date():
    assert PAGE.read_text("utf-8") == reference(main, "lastbit"), "run `make reference`"


def test_every_command_is_on_the_page():
    page = PAGE.read_text("utf-8")
    names = [path for path, _, _ in commands(main, "lastbit")]
    assert len(names) > 1
    assert [name for name in names if f"## {name}\n" not in page] == []


def test_every_command_shows_an_example():
    assert without_example(main, "lastbit") == []


@click.group()
def tool():
    """A tool."""


@tool.command()
def shown():
    """Does it. Example: tool shown"""


@tool.command()
def unshown():
    """Does it too, see tool unshown."""


def test_a_command_without_example_is_rejected():
    assert without_example(tool, "tool") == ["tool unshown"]


def test_the_reference_holds_every_command():
    text = reference(tool, "tool")
    assert "## tool\n" in text
    assert "## tool shown\n" in text
    assert "Usage: tool unshown [OPTIONS]" in text
