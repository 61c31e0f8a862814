"""The command-line reference is the commands' own help, and each help shows an example."""

import re
import shlex

import click
import pytest
from click.testing import CliRunner

from docs.generate_cli import PAGE, commands, reference
from lastbit.cli.main import main
from tests.docs.pages import commands as shown_commands, executable
from tests.docs.test_pages import EXECUTED

# tests/cli and tests/ledger run these: a million rows, a browser, a server, a ledger with users
ELSEWHERE = {f"lastbit {name}" for name in ("demo", "docs", "ledger upgrade", "allowance remove")}
ELSEWHERE.add("lastbit verify module:function")  # stands for a function of one's own


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


def shown_on_no_page() -> dict[str, str]:
    """The example of each command that no executed page runs."""
    pages = [executable(page.read_text("utf-8")) for page in EXECUTED]
    consoles = [fence for page in pages for fence in page if fence.language == "console"]
    run = [command.text for console in consoles for command in shown_commands(console)]
    found = {}
    for path, command, _ in commands(main, "lastbit"):
        known = isinstance(command, click.Group) or path in ELSEWHERE
        if not known and not any(re.search(rf"\b{path}( |$)", text) for text in run):
            found[path] = re.findall(r"Example: lastbit (.*)", f"{command.help}\n{command.epilog}")[
                0
            ]
    return found


@pytest.mark.parametrize("example", shown_on_no_page().values())
def test_examples_run_where_no_page_runs_the_command(example, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(main, shlex.split(example)).exit_code == 0


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
