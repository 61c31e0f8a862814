"""Runs `lastbit` as a person would, and looks at what comes back."""

import json

from click.testing import CliRunner, Result

from lastbit.cli.main import main


def lastbit(*arguments: str, given: str | None = None) -> Result:
    return CliRunner().invoke(main, arguments, input=given)


def succeeded(*arguments: str, given: str | None = None) -> str:
    """What it printed: plain, nothing wider than a terminal, nothing on stderr."""
    result = lastbit(*arguments, given=given)
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    assert "\x1b" not in result.stdout
    wide = [line for line in result.stdout.splitlines() if len(line) > 80 or line != line.rstrip()]
    assert not wide or {"--json", "--print-sql"} & {*arguments}, wide
    return result.stdout


def read(*arguments: str, given: str | None = None) -> dict:
    """The JSON it printed."""
    return json.loads(succeeded(*arguments, "--json", given=given))


def refused(*arguments: str, given: str | None = None) -> str:
    """Why it refused: one paragraph on stderr, exit status 2, no traceback, nothing printed."""
    result = lastbit(*arguments, given=given)
    assert result.exit_code == 2, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    if not result.stderr.startswith("Usage:"):  # click's own words, which it does not fold
        assert max(len(line) for line in result.stderr.splitlines()) <= 80
    return " ".join(result.stderr.split())
