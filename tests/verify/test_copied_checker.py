"""The checker's folder, copied to a place where there is no lastbit, checks every kind alone."""

import json
import math
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import lastbit.checker
from lastbit.verify.running.code import Code
from lastbit.verify.running.law import exact_loss
from lastbit.verify.running.uniforms import Grid
from tests.verify.test_check_composition import produced
from tests.verify.test_two_sides import (
    declared_noise,
    derivation,
    drawn_noise,
    error_bound,
    release_of,
    saved_answer,
    snapping_bound,
    together,
)

TOY = """
import math


def noise(value, u):
    return round(value + 4 * math.log(u)) + 0.0
"""


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    source = Path(lastbit.checker.__file__).parent
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(source, tmp_path / "checker", ignore=ignored)
    return tmp_path


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Python without site-packages and settings: nothing but its own library and this folder."""
    bare = [sys.executable, "-S", "-E", "-s", "-m"]
    return subprocess.run(
        [*bare, *arguments], cwd=folder, capture_output=True, text=True, check=False
    )


def test_there_is_no_lastbit_there(copied):
    (copied / "missing.py").write_text("import lastbit", "utf-8")
    assert "ModuleNotFoundError" in run(copied, "missing").stderr


def test_every_kind_is_checked_and_a_changed_digit_is_refused(copied, monkeypatch):
    (copied / "toy.py").write_text(TOY, "utf-8")
    monkeypatch.syspath_prepend(str(copied))
    toy = Code("toy:noise")

    def unnamed(value, u, sign):
        return min(max(0.25 * round((value + sign * math.log(u)) / 0.25), -4.0), 4.0) + 0.0

    found = {
        "law": exact_loss(toy, 0.0, 1.0, uniform=Grid(8, first=1), signs=None).certificate(toy),
        "error-bound": error_bound(),
        "snapping": snapping_bound(),
        "derivation": derivation(unnamed),
        "noise": drawn_noise(),
        "declared": declared_noise(),
        "release": release_of(),
        "answer": saved_answer(copied),
        "composition": together(),
    }
    for name, sealed in found.items():
        (copied / f"{name}.json").write_text(json.dumps(sealed), "utf-8")
    files = [f"{name}.json" for name in found]
    told = run(copied, "checker", *files)
    assert told.stdout.splitlines() == [f"{file}: accepted" for file in files], told.stderr
    assert told.returncode == 0
    for name, sealed in found.items():
        inner = sealed.get("certificate", sealed)
        inner["claim"] = {**inner["claim"], "epsilon": "1/10"}
        (copied / f"{name}.json").write_text(json.dumps(sealed), "utf-8")
    told = run(copied, "checker", *files)
    assert all(": REFUSED: " in line for line in told.stdout.splitlines())
    assert len(told.stdout.splitlines()) == len(files) and told.returncode == 1


@pytest.mark.parametrize("text", ["{", "[]", '{"a": 1, "a": 2}', '"text"', ""])
def test_other_files_are_not_accepted(copied, text):
    (copied / "odd.json").write_text(text, "utf-8")
    told = run(copied, "checker", "odd.json")
    assert told.returncode in (1, 2) and "accepted" not in told.stdout
    assert run(copied, "checker", "none.json").returncode == 2
    assert run(copied, "checker").returncode == 2


def test_what_is_on_trust_is_not_accepted(copied):
    (copied / "sampled.json").write_text(json.dumps(produced("trusted")), "utf-8")
    told = run(copied, "checker", "sampled.json")
    assert told.stdout == "sampled.json: checked, apart from what it takes on trust\n"
    assert told.returncode == 3
