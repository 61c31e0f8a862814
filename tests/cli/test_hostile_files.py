"""Whatever a command is given for a file: exit status 2 and a remedy, at once, and no traceback."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import pytest

from lastbit.errors import LastbitError
from lastbit.release.answer import Answer
from lastbit.tables.card.read import read_card
from tests.cli.certificates import certificate
from tests.cli.running import lastbit
from tests.ledger.books import CANARY
from tests.release.canaries import write_card, write_csv

SQL = "SELECT COUNT(*) AS n FROM visits"
COMMANDS = {
    "query": ("query", "{}", SQL, "--epsilon", "1"),
    "card check": ("card", "check", "{}"),
    "budget of a card": ("budget", "{}.toml"),
    "budget of a ledger": ("budget", "{}"),
    "ledger verify": ("ledger", "verify", "{}"),
    "ledger log": ("ledger", "log", "{}"),
    "ledger export": ("ledger", "export", "{}"),
    "ledger backup": ("ledger", "backup", "{}", "copy.ledger"),
    "ledger restore": ("ledger", "restore", "{}", "new.ledger"),
    "check": ("check", "{}"),
    "report": ("report", "{}", "--checklist"),
    "card new": ("card", "new", "{}.csv", "--out", "new.toml"),
    "median": ("median", "{}", "--column", "age", "--epsilon", "1", "--bounds", "0", "9"),
    "mechanism": ("mechanism", "laplace", "--epsilon", "1", "--file", "{}"),
    "geo": ("geo", "{}", "--epsilon", "ln(4)/200m", "--region", "52.3,13,52.7,13.8",
            "--out", "noisy.csv"),
    "verify": ("verify", "{}:noisy", "--epsilon", "1", "--inputs", "0", "1"),
    "verify, out": ("verify", "lastbit.mechanisms.snapping:snapped", "--epsilon", "1",
                    "--inputs", "0", "1", "--certificate", "{}/x.json"),
    "audit pairs": ("audit", "lastbit.mechanisms.snapping:snapped", "--epsilon", "1",
                    "--pairs", "{}"),
}  # fmt: skip


FINE = {("card new", "deep")}
"""A header of one odd name."""


def hostile(folder: Path) -> dict[str, str]:
    """Things that are no file of any use, by name; each with the endings that commands want."""
    for end in ("", ".toml", ".csv"):
        os.mkfifo(folder / f"pipe{end}")
        (folder / f"folder{end}").mkdir()
        (folder / f"empty{end}").touch()
        (folder / f"noise{end}").write_bytes(random.Random(3).randbytes(4000))
        (folder / f"wide{end}").write_bytes(f"a,b\n1,{CANARY}\n".encode("utf-16"))
        (folder / f"nul{end}").write_bytes(b"a\0b,\0\n" + CANARY.encode())
        (folder / f"deep{end}").write_bytes(b"[" * 100_000 + CANARY.encode())
        os.symlink(f"loop{end}", folder / f"loop{end}")
        os.symlink("/dev/zero", folder / f"zero{end}")
    names = ("pipe", "folder", "empty", "noise", "wide", "nul", "deep", "loop", "zero", "absent")
    return {name: name for name in names} | {
        "long": "x" * 300, "longer": "y" * 5_000, "odd": "a\nb\x1b[2J",
    }  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_refuses_what_is_no_file(folder: Path, name: str) -> None:
    for what, path in hostile(folder).items():
        result = lastbit(*(part.format(path) for part in COMMANDS[name]))
        assert isinstance(result.exception, SystemExit | None), (what, result.exception)
        fine = (name, what) in FINE
        assert result.exit_code in ((0,) if fine else (1, 2)), (what, result.output)
        if fine:
            continue
        assert "Traceback" not in result.output and CANARY not in result.output, what
        assert "\x1b[2J" not in result.output


@pytest.mark.parametrize("reader", [Answer.load, read_card])
def test_readers_in_python_raise_errors_of_ours(folder: Path, reader: object) -> None:
    for path in (*hostile(folder).values(), "a\0b"):
        for end in ("", ".toml"):
            with pytest.raises(LastbitError) as caught:
                reader(path + end)  # type: ignore[operator]
            assert CANARY not in str(caught.value)


def test_spoilt_certificates_and_records(folder: Path) -> None:
    text = json.dumps(certificate("snapping")).encode()
    source = random.Random(4)
    for _ in range(60):
        spoilt = bytearray(text)
        for _ in range(source.randrange(1, 4)):
            match source.randrange(3):
                case 0:
                    spoilt[source.randrange(len(spoilt))] = source.randrange(256)
                case 1:
                    del spoilt[source.randrange(len(spoilt)) :]
                    spoilt += b'"}'
                case _:
                    place = source.randrange(len(spoilt))
                    spoilt[place:place] = spoilt[place : place + 40]
        Path("x.json").write_bytes(spoilt)
        result = lastbit("check", "x.json")
        assert result.exit_code in (0, 1, 2) and "Traceback" not in result.output
        assert isinstance(result.exception, SystemExit | None)


LEDGERS = {
    "too long": "z" * 300, "a folder": "folder", "a pipe": "pipe", "noise": "noise",
    "nowhere": "none/a.ledger", "looped": "loop",
}  # fmt: skip


@pytest.mark.parametrize("name", LEDGERS)
def test_cards_that_name_a_hostile_ledger(folder: Path, name: str) -> None:
    hostile(folder)
    write_csv(folder / "visits.csv")
    write_card(folder, **{'"visits.ledger"': f'"{LEDGERS[name]}"'})
    for command in (
        ("query", "visits.toml", SQL, "--epsilon", "1"),
        ("query", "visits.toml", SQL, "--epsilon", "1", "--dry-run"),
        ("budget", "visits.toml"),
        ("budget", "visits.toml", "--set"),
    ):
        result = lastbit(*command)
        assert isinstance(result.exception, SystemExit | None), command
        assert "Traceback" not in result.output and result.exit_code in (0, 2)
        assert CANARY not in result.output
