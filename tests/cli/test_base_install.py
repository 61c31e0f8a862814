"""Every help, its example, and the demo, where only the base dependencies are installed."""

import os
import re
import subprocess
import sys
import tomllib
import venv
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from lastbit.cli.main import COMMANDS
from tests.evidence import late

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = {
    Requirement(line).name for extra in PROJECT["optional-dependencies"].values() for line in extra
}
PROGRAM = Path(__file__).with_name("first_commands.py")
PLAIN = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
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
    """What it prints where importing an optional package fails."""
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


def counted(said: str) -> tuple[int, int]:
    """How many helps and examples the program says that it ran."""
    ((helps, examples),) = re.findall(r"(\d+) helps, (\d+) examples\n", said)
    return int(helps), int(examples)


@pytest.mark.parametrize("choice", ["helps", late("quick")])
def test_helps_and_their_examples_run_without_the_extras(tmp_path, choice):
    """All helps, and in the evidence every example that takes no minute."""
    program = f"import runpy, sys; sys.argv[1:] = ['{choice}']\n"
    program += f"runpy.run_path({str(PROGRAM)!r}, run_name='__main__')"
    helps, examples = counted(run_without_extras(program, tmp_path))
    assert helps > len(COMMANDS) > 20
    assert examples >= (60 if choice == "quick" else 0)


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


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """The Python of an environment that has the wheel, what it requires, and nothing else."""
    folder = tmp_path_factory.mktemp("base")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, capture_output=True, check=True)
    venv.create(folder / "base", with_pip=True)
    python = folder / "base" / "bin" / "python"
    (wheel,) = folder.glob("*.whl")
    install = [python, "-m", "pip", "install", "--quiet", str(wheel)]
    done = subprocess.run(install, env=PLAIN, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"pip cannot install here: {(done.stderr.splitlines() or ['no reason'])[-1]}")
    return python


@pytest.mark.evidence
@pytest.mark.apart
def test_the_wheel_alone_runs_every_help_and_every_example(base, tmp_path):
    run = subprocess.run(
        [base, PROGRAM], env=PLAIN, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr[-2000:] + run.stdout[-2000:]
    helps, examples = counted(run.stdout)
    assert helps > len(COMMANDS) and examples > 60
    extras = "import importlib.util as u; print([n for n in {!r} if u.find_spec(n)])"
    there = [base, "-c", extras.format(sorted(EXTRAS))]
    assert subprocess.run(there, env=PLAIN, capture_output=True, check=True).stdout == b"[]\n"
