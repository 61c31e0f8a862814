"""Every command's help, and the demo, where only the base dependencies are installed."""

import os
import subprocess
import sys
import tomllib
import venv
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from lastbit.cli.main import COMMANDS

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = {
    Requirement(line).name for extra in PROJECT["optional-dependencies"].values() for line in extra
}
# Every command and command of a group: its own help, and what `lastbit help` says of it.
HELP_OF_ALL = """
import sys
import click
from click.testing import CliRunner
from lastbit.cli.main import COMMANDS, main

def check(*arguments):
    result = CliRunner().invoke(main, arguments)
    raised = result.exception
    if result.exit_code != 0:
        sys.exit(f"lastbit {' '.join(arguments)}: {type(raised).__name__}: {raised}")

for name in COMMANDS:
    check(name, "--help")
    check("help", name)

def check_group(group, *path):
    for name in group.list_commands(click.Context(group)):
        check(*path, name, "--help")
        below = group.get_command(click.Context(group), name)
        if isinstance(below, click.Group):
            check_group(below, *path, name)

check_group(main)
print(len(COMMANDS), "commands")
"""
# The examples of helps, in the order of a first day. What they name is made before, or by them.
EXAMPLES = """
import shlex, sys
import click
import duckdb
from click.testing import CliRunner
from lastbit.cli.main import main

rows = "SELECT range // 3 AS patient, ['a', 'b'][1 + range % 2] AS region, range % 90 AS cost, "
rows += "range % 60 AS minutes FROM range(9_000)"
duckdb.execute(f"COPY ({rows}) TO 'visits.parquet'")
duckdb.execute(f"COPY ({rows}) TO 'visits.csv'")
where = "SELECT 52.3 + random() * 0.4 AS lat, 13 + random() * 0.8 AS lon FROM range(50)"
duckdb.execute(f"COPY ({where}) TO 'points.csv'")
open("questions.sql", "w").write("SELECT COUNT(*) AS n FROM visits; SELECT AVG(cost) FROM visits;")

def run(*arguments):
    result = CliRunner().invoke(main, arguments)
    if result.exit_code != 0:
        sys.exit(f"lastbit {' '.join(arguments)}: {result.output} {result.exception}")

def example(*path, more=()):
    command, context = main, None
    for name in path:
        context = click.Context(command, parent=context)
        command = command.get_command(context, name)
    words = shlex.split(command.epilog.removeprefix("Example: lastbit "))
    run(*words, *more)

decided = ["--unit", "patient", "--max-rows", "3", "--neighbours", "add-remove", "--epsilon", "9"]
example("card", "new", more=[*decided, "--look", "--yes"])
run("user", "add", "visits.toml", "--role", "steward")
run("budget", "visits.toml", "--set")
for path in EXAMPLES_OF:
    example(*path)
print(len(EXAMPLES_OF), "examples")
"""
EXAMPLES_OF = [
    *(("help",), ("card", "check"), ("card", "profile"), ("card", "tune"), ("query",), ("plan",)),
    *(("budget",), ("report",), ("user", "add"), ("user", "list"), ("allowance", "set")),
    *(("allowance", "list"), ("user", "show"), ("allowance", "remove"), ("user", "remove")),
    *(("mechanism", name) for name in ("laplace", "gaussian", "histogram", "exponential")),
    *(("mechanism", name) for name in ("permute-and-flip", "report-noisy-max", "above-threshold")),
    *(("mechanism", name) for name in ("randomized-response", "thresholded-histogram")),
    *(("median",), ("theory", "compose"), ("theory", "convert"), ("theory", "geo")),
    *(("theory", "poll", name) for name in ("plan", "estimate", "simulate")),
    *(("verify", name) for name in ("snapping", "rounding", "polar-laplace")),
    *(("attack", "list"), ("leak",)),
]
"""Not here: those that need a function of the reader's own, a server, or a file of hers."""
BLOCKER = """
import sys

class Blocker:
    def __init__(self, finder):
        self.finder = finder

    def __getattr__(self, name):
        return getattr(self.finder, name)  # what is installed is still listed

    def find_spec(self, name, path=None, target=None):
        # None, as where it is not installed: to raise here would be another thing to find_spec
        blocked = name.partition(".")[0] in {names}
        return None if blocked else self.finder.find_spec(name, path, target)

sys.meta_path[:] = map(Blocker, sys.meta_path)
"""


def modules_of_extras() -> set[str]:
    """What the optional packages are imported as, installed or not."""
    imported = {module for module, owners in packages_distributions().items() if EXTRAS & {*owners}}
    return {module for module in imported | EXTRAS if module.isidentifier()}


def run_without_extras(program: str, folder: Path) -> str:
    blocked = BLOCKER.format(names=sorted(modules_of_extras())) + program
    run = subprocess.run(
        [sys.executable, "-c", blocked], cwd=folder, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr[-2000:]
    return run.stdout


def test_the_blocker_knows_the_optional_packages():
    assert {
        "deltalake", "jax", "mbi", "optax", "psycopg", "pyspark", "starlette", "torch", "uvicorn"
    } == EXTRAS  # fmt: skip
    assert modules_of_extras() >= EXTRAS


def test_every_command_has_help_without_the_extras(tmp_path):
    assert run_without_extras(HELP_OF_ALL, tmp_path) == f"{len(COMMANDS)} commands\n"


def test_examples_of_helps_run_as_they_are_written_without_the_extras(tmp_path):
    program = f"EXAMPLES_OF = {EXAMPLES_OF!r}\n{EXAMPLES}"
    assert run_without_extras(program, tmp_path) == f"{len(EXAMPLES_OF)} examples\n"


def test_the_blocker_blocks(tmp_path):
    """Else the test above would pass whatever commands import."""
    program = "try:\n    import uvicorn\nexcept ModuleNotFoundError:\n    print('blocked')"
    assert run_without_extras(program, tmp_path) == "blocked\n"


def test_the_demo_runs_without_the_extras_and_names_the_one_to_serve(tmp_path):
    program = (
        "from click.testing import CliRunner\n"
        "from lastbit.cli.main import main\n"
        "asked = CliRunner().invoke(main, ['demo', '--rows', '10000'])\n"
        "assert asked.exit_code == 0, asked.exception\n"
        "served = CliRunner().invoke(main, ['demo', '--serve', '--rows', '10000'])\n"
        "assert served.exit_code == 2, served.exception\n"
        "print(' '.join(served.output.split()))\n"
    )
    assert 'pip install "lastbit[serve]"' in run_without_extras(program, tmp_path)


@pytest.mark.evidence
@pytest.mark.apart
def test_an_empty_environment_has_every_command(tmp_path):
    venv.create(tmp_path / "base", with_pip=True)
    python = tmp_path / "base" / "bin" / "python"
    plain = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    install = [python, "-m", "pip", "install", "--quiet", str(ROOT)]
    done = subprocess.run(install, env=plain, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"pip cannot install here: {(done.stderr.splitlines() or ['no reason'])[-1]}")
    run = subprocess.run(
        [python, "-c", HELP_OF_ALL],
        env=plain,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stdout) == (0, f"{len(COMMANDS)} commands\n"), run.stderr[-2000:]
    demo = [tmp_path / "base" / "bin" / "lastbit", "demo", "--rows", "10000"]
    subprocess.run(demo, env=plain, cwd=tmp_path, capture_output=True, check=True)
