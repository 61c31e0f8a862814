"""The group: version, help, and errors that end in a paragraph."""

import pickle
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

import lastbit
from lastbit.cli.main import COMMANDS, DOORS, THEORY, Commands, main
from lastbit.cli.options import Command
from lastbit.errors import InvalidParameter, LastbitError, Undecidable


def test_version_is_the_package_version():
    result = CliRunner().invoke(main, ["--version"])
    assert result.exit_code == 0
    assert result.output == f"lastbit, version {lastbit.__version__}\n"


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["leak", "--help"]])
def test_every_help_has_an_example(arguments):
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0
    assert "Example: lastbit" in result.output


def test_no_help_line_is_wider_than_a_terminal():
    for arguments in (["--help"], *([name, "--help"] for name in COMMANDS)):
        output = CliRunner().invoke(main, arguments).output
        assert max(len(line) for line in output.splitlines()) <= 80


@pytest.mark.parametrize("name", COMMANDS)
def test_the_table_says_of_a_command_what_it_says_of_itself(name):
    context = click.Context(main)
    command = main.get_command(context, name)
    room = 80 - 6 - max(map(len, COMMANDS))  # what click leaves beside the names
    assert command is not None and command.name == name
    assert COMMANDS[name] == command.get_short_help_str(room)


def test_commands_are_listed_by_the_doors_of_the_readme():
    page = CliRunner().invoke(main, ["--help"]).output
    headings = [line.rstrip(":") for line in page.splitlines() if line.rstrip(":") in DOORS]
    assert headings == list(DOORS) and len(COMMANDS) <= 22
    assert not any(f"\n  {name} " in page for name in THEORY)


@pytest.mark.parametrize("name", THEORY)
def test_seldom_used_commands_have_a_group_and_their_old_names(name):
    context = click.Context(main)
    command = main.get_command(context, name)
    assert command is not None
    assert THEORY[name] == command.get_short_help_str(80)
    old, new = (CliRunner().invoke(main, [*path, "--help"]) for path in ([name], ["theory", name]))
    assert old.exit_code == new.exit_code == 0
    assert [line.split() for line in old.output.splitlines()[1:]] == (
        [line.split() for line in new.output.splitlines()[1:]]
    )
    assert f"Example: lastbit theory {name}" in old.output
    assert name in CliRunner().invoke(main, ["theory", "--help"]).output


def test_help_imports_no_command_and_nothing_heavy():
    code = """
import sys
from lastbit.cli import main
try:
    main(["--help"])
except SystemExit:
    print(*sorted(sys.modules), sep="\\n")
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = run.stdout.splitlines()
    assert "  demo       Ask a made-up hospital" in run.stdout
    assert not {"numpy", "flint", "duckdb", "sqlglot", "rich", "ssl"} & set(loaded)
    assert not {f"lastbit.cli.{name}" for name in COMMANDS} & set(loaded)
    assert sum(name.partition(".")[0] == "lastbit" for name in loaded) <= 40


def failing(error: Exception) -> Commands:
    group = Commands("lastbit")

    @group.command("fail")
    def fail() -> None:
        raise error

    return group


@pytest.mark.parametrize(
    "error",
    [
        InvalidParameter("scale", problem="is zero", remedy="pass a number above 0"),
        Undecidable("the ball does not decide\n\n   == 1; compute it with more precision"),
        LastbitError("a long one " + "that goes on and on " * 20),
    ],
)
def test_our_errors_become_one_paragraph_and_status_2(error):
    result = CliRunner().invoke(failing(error), ["fail"])
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("Error: ")
    assert "Traceback" not in result.stderr
    assert "\n\n" not in result.stderr
    assert max(len(line) for line in result.stderr.splitlines()) <= 80
    assert result.stderr.split() == ["Error:", *str(error).split()]


def test_other_errors_are_not_hidden():
    result = CliRunner().invoke(failing(ZeroDivisionError("a bug of ours")), ["fail"])
    assert isinstance(result.exception, ZeroDivisionError)


def test_what_cannot_be_read_is_answered_with_an_example():
    for arguments in (["42"], ["--price", "1"], []):
        run = CliRunner().invoke(main, ["mechanism", "laplace", *arguments])
        assert run.exit_code == 2 and "Example: lastbit mechanism laplace" in run.stderr


def test_unknown_command_is_refused():
    result = CliRunner().invoke(main, ["leek"])
    assert result.exit_code == 2
    assert "No such command" in result.stderr


def test_an_error_with_several_problems_keeps_their_lines():
    error = LastbitError(
        "card.toml has 2 problems; mend them:\nline 3: " + "a b " * 40 + "\nline 9"
    )
    lines = CliRunner().invoke(failing(error), ["fail"]).stderr.splitlines()
    assert lines[0] == "Error: card.toml has 2 problems; mend them:"
    assert lines[1].startswith("  line 3: a b") and lines[2].startswith("    b a")
    assert lines[-1] == "  line 9" and max(map(len, lines)) <= 80


def test_an_error_names_the_options_that_the_command_has():
    """From the arguments that it carries; braces of anything else are left alone."""
    error = InvalidParameter(
        "rho",
        problem="or {grid} is missing, {0}",
        remedy="pass {grid}, {rho} or {scale}",
        grid="auto",
        rho="",
        scale="2",
    )
    assert str(error) == ('rho or grid="auto" is missing, {0}; pass grid="auto", rho= or scale="2"')
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    group = Commands("lastbit")

    @group.command("fail", cls=Command)
    @click.option("--step", "grid")
    @click.option("--rho")
    def fail(grid: str, rho: str) -> None:
        raise error

    told = " ".join(CliRunner().invoke(group, ["fail"]).stderr.split())
    words = "--rho or --step auto is missing, {0}; pass --step auto, --rho or"
    assert told == f'Error: {words} scale="2"'
