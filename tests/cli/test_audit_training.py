"""`lastbit audit training`: what it says, what it refuses, and that `audit` is as it was."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

from lastbit.cli.audit_training import NOT_A_PROOF, ON_TRUST
from tests.cli.running import lastbit, refused, succeeded

CODE = """
import numpy as np

NOT_A_LOOP = 3

def tells(included):
    return included

def silent(included, progress):
    progress(0.5)
    print("is not the answer")
    return np.zeros(len(included))

def short(included):
    return included[:3]

def fails(included):
    raise ValueError("out of memory")
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own_loops.py").write_text(CODE, "utf-8")
    monkeypatch.delitem(sys.modules, "own_loops", raising=False)


def audited(loop: str, *arguments: str) -> tuple[str, ...]:
    return ("audit", "training", f"own_loops:{loop}", "--epsilon", "2", *arguments)


def test_a_loop_that_tells_is_refuted_and_the_command_says_so_again() -> None:
    result = lastbit(*audited("tells", "--delta", "1e-9"))
    assert result.exit_code == 1 and result.stderr == ""
    for words in ("refuted: ε ≥ 3.", "claimed", "guesses", "right", "in reach", ON_TRUST):
        assert words in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
    again = " ".join(result.stdout.split("again  ")[1].split(ON_TRUST)[0].split())
    assert shlex.split(again)[:4] == ["lastbit", "audit", "training", "own_loops:tells"]
    assert lastbit(*shlex.split(again)[1:]).exit_code == 1


def test_a_loop_that_tells_nothing_is_not_and_its_own_words_are_not_the_answer() -> None:
    result = lastbit(*audited("silent"))
    assert result.exit_code == 0 and "nothing found" in result.stdout
    assert "is not the answer" not in result.stdout
    assert NOT_A_PROOF in " ".join(result.stdout.split())


def test_json_holds_the_same() -> None:
    result = lastbit(*audited("tells", "--json", "--confidence", "0.999"))
    read = json.loads(result.stdout)
    assert read["verdict"] == "refuted" and read["broken"] and read["error"] == "1/1000"
    assert read["right"] <= read["guesses"] <= read["canaries"] == 1000


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (audited("short"), "scores have the shape (3,)"),
        (audited("fails"), "raises ValueError: out of memory"),
        (audited("NOT_A_LOOP"), "is not a function of that module"),
        (audited("nowhere"), "is not a function of that module"),
        (audited("tells", "--delta", "1e-5"), "--delta is not below"),
        (audited("tells", "--canaries", "20"), "--canaries are too few"),
        (audited("tells", "--canaries", "0"), "--canaries"),
        (audited("tells", "--error", "0.1", "--confidence", "0.9"), "--confidence"),
        (("audit", "training", "own_loops:tells"), "--epsilon"),
        (("audit", "training"), "MODULE:LOOP"),
        (("audit", "own_loops:tells", "more", "--epsilon", "1"), "unexpected extra argument"),
        (("audit",), "MODULE:FUNCTION"),
    ],
)
def test_what_cannot_be_audited_is_refused(arguments: tuple[str, ...], words: str) -> None:
    assert words in refused(*arguments)


def test_help_names_both() -> None:
    assert "training  Audit a training loop" in succeeded("audit", "--help")
    assert " audit training [OPTIONS]" in succeeded("help", "audit", "training")
    assert " audit training [OPTIONS]" in succeeded("audit", "training", "--help")
