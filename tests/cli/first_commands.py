"""Every command's help, and every example of a help, as somebody types them after `pip install`.

A program, so that it runs where nothing but lastbit is installed. In an empty folder:
`python first_commands.py`. What examples name is made first. Where an optional package is missing,
the examples that need it must say how it is installed. `quick` leaves out what takes a minute,
`helps` all examples.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import click
import duckdb
from click.testing import CliRunner

from lastbit.cli.main import main

ROWS = """
SELECT range // 3 AS patient, ['a', 'b'][1 + range % 2] AS region, range % 90 AS cost,
       range % 60 AS minutes, ['a', 'b'][1 + range % 2] || range // 2 % 3 AS district
FROM range(9_000)
"""
AREAS = f"SELECT DISTINCT region, district FROM ({ROWS}) ORDER BY ALL"
PUBLIC = """
[public.areas]
source = "areas.csv"
[public.areas.columns]
region = "text"
district = "text"
"""
PLACES = "SELECT 52.3 + random() * 0.4 AS lat, 13 + random() * 0.8 AS lon FROM range(50)"
QUESTIONS = "SELECT COUNT(*) AS n FROM visits; SELECT AVG(cost) FROM visits;"
MODULES = {
    "module": """
import lastbit as lb
from lastbit.training import rounded_gaussian

def function(value, size=None):
    return value + lb.discrete_laplace(1, size=size)

def loop(included):
    return 8 * included + rounded_gaussian(len(included), 8)
""",
    "noise": """
import math

def rounded(value, u, sign):
    noise = sign * (math.log(u) / 1.0)
    return min(max(1.0 * round(min(max(value, -64.0), 64.0) + noise), -64.0), 64.0)

def normal(u, v, sigma=10.0):
    return sigma * math.sqrt(-2.0 * math.log(1.0 - u)) * math.cos(2.0 * math.pi * v)

def planar(u, v, w, scale=200.0):
    r = -scale * (math.log(1.0 - u) + math.log(1.0 - v))
    return r * math.cos(2.0 * math.pi * w), r * math.sin(2.0 * math.pi * w)
""",
    "votes": """
def noisy_max(run, queries):
    run.emit(run.largest([query + run.laplace(2) for query in queries]))
""",
}
OF_A_UNIFORM = """
def function(value, u):
    return value if u < 0.5 else 1 - value
"""
"""`module.py` where it is verified: there a function is given its draws."""
DECIDED = "--unit patient --max-rows 3 --neighbours add-remove --epsilon 9 --look --yes"
EARLY = ("card new", "card")
LATE = (
    "user show",
    "allowance remove",
    "user remove",
    "check",
    "ledger withdraw",
    "ledger restore",
)
"""What makes files that others name, and what needs or ends them; the others as helps list them."""
NEEDED = {
    "serve": ("starlette", "serve"),
    "ledger init": ("psycopg", "postgres"),
    "ledger copy": ("psycopg", "postgres"),
    "ledger upgrade": ("psycopg", "postgres"),
}
"""By command: the module that its example needs, and the extra that brings it."""
SLOW = ("audit",)
REFUTERS = ("verify", "audit", "attack")
"""They end with 1 where a mechanism is refuted."""
ELSEWHERE = {"/mnt/elsewhere": "elsewhere", "/tmp/hospital": "hospital"}


def commands(group: click.Group, *path: str) -> Iterator[tuple[str, click.Command]]:
    """Every command and group, by the words that call it."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield " ".join((*path, name)), command
        if isinstance(command, click.Group):
            yield from commands(command, *path, name)


def examples() -> dict[str, str]:
    """By command, in an order in which they can be run: its example, without `lastbit`."""
    found = {
        name: (command.epilog or "").removeprefix("Example: lastbit ")
        for name, command in commands(main)
    }
    order = [*EARLY, *(name for name in found if name not in EARLY + LATE), *LATE]
    return {name: found[name] for name in order}


def run(words: str, *allowed: int) -> str:
    """What a command shows, which ends with 0 or as allowed."""
    result = CliRunner().invoke(main, shlex.split(words))
    if result.exit_code not in (0, *allowed) or (
        result.exception and not isinstance(result.exception, SystemExit)
    ):
        sys.exit(f"lastbit {words}: {result.output}\n{result.exception!r}")
    return result.output


def check_help(name: str) -> None:
    """By the option and by `lastbit help`."""
    assert "Example: lastbit " in run(f"{name} --help"), name
    run(f"help {name}")


def make_files() -> None:
    for name in ("visits.parquet", "visits.csv"):
        duckdb.execute(f"COPY ({ROWS}) TO '{name}'")
    duckdb.execute(f"COPY ({PLACES}) TO 'points.csv'")
    duckdb.execute(f"COPY ({AREAS}) TO 'areas.csv'")
    Path("questions.sql").write_text(QUESTIONS, "utf-8")
    Path("elsewhere").mkdir()
    for name in ("noise", "votes"):
        Path(f"{name}.py").write_text(MODULES[name], "utf-8")


def decide_card() -> None:
    """The card that a steward has decided, in place of the draft, and her books."""
    card = Path("visits.toml")
    card.unlink()
    run(f"card new visits.parquet {DECIDED}")
    card.write_text(card.read_text("utf-8").replace("visits.ledger", "hospital.ledger"), "utf-8")
    with card.open("a", encoding="utf-8") as more:
        more.write(PUBLIC)
    run("user add visits.toml --role steward")
    run("budget visits.toml --set")
    run("user add visits.toml ana --role analyst")
    run('query visits.toml "SELECT COUNT(*) AS rows FROM visits" --epsilon 1')


def prepare_for(name: str) -> None:
    """What one example alone needs: a card that is not there yet, a module of its own."""
    if name in EARLY:
        Path("visits.toml").unlink(missing_ok=True)
    if name.startswith("user add"):
        run("user remove visits.toml ana")
    if name == "card prepare":
        with Path("visits.toml").open("a", encoding="utf-8") as card:
            card.write('\n[prepared]\npath = "visits.prepared"\n')
    if name == "ledger restore":
        Path("hospital.ledger").unlink()
    text = OF_A_UNIFORM if name.startswith(("verify", "check")) else MODULES["module"]
    Path("module.py").write_text(text, "utf-8")
    sys.modules.pop("module", None)


def as_it_is_here(words: str) -> str:
    """An example with places, a head and an entry that are there."""
    for place, stand_in in ELSEWHERE.items():
        words = words.replace(place, stand_in)
    if "3f9a..." in words:
        (head, *_) = re.findall("[0-9a-f]{64}", run("ledger verify hospital.ledger"))
        words = words.replace("3f9a...", head)
    if words.startswith("ledger withdraw"):
        entries = re.findall(r"(\d+) .*answered", run("ledger log hospital.ledger --last 50"))
        words = words.replace(" 12 ", f" {entries[-1]} ")
    return words


def run_example(name: str, words: str) -> None:
    module, extra = NEEDED.get(name, ("", ""))
    if not extra:
        run(as_it_is_here(words), *([1] if name.startswith(REFUTERS) else []))
    elif find_spec(module) is None:
        said = " ".join(run(words, 2).split())
        assert f'pip install "lastbit[{extra}]"' in said, said


def read_docs(words: str) -> None:
    """Where the site is installed, the pages are served until Ctrl-C; else shown."""
    command = [sys.executable, "-m", "lastbit", *shlex.split(words)]
    quiet = {**os.environ, "BROWSER": "true", "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, env=quiet, text=True, stdout=-1, stderr=-1) as reading:
        assert reading.stdout is not None and reading.stderr is not None
        line = reading.stdout.readline()
        while line and "http://127.0.0.1" not in line:
            line = reading.stdout.readline()
        if line:
            reading.send_signal(signal.SIGINT)
        reading.stdout.read()
        said = reading.stderr.read()
    assert reading.returncode == 0 and not said, said


def check_examples(*, quick: bool) -> int:
    """Every example once, and how many that are."""
    make_files()
    done = set()
    for name, words in examples().items():
        if words in done or (quick and name in SLOW):
            continue
        done.add(words)
        prepare_for(name)
        if name == "docs":
            read_docs(words)
        else:
            run_example(name, words)
        if name == EARLY[-1]:
            decide_card()
    return len(done)


if __name__ == "__main__":
    names = [name for name, _ in commands(main)]
    for name in names:
        check_help(name)
    count = 0 if "helps" in sys.argv else check_examples(quick="quick" in sys.argv)
    print(len(names), "helps,", count, "examples")
