"""`lastbit attack`: the list, the verdicts, the exit statuses."""

from __future__ import annotations

import json
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lastbit.audit.attacks.registry import ATTACKS, run
from lastbit.audit.targets.target import Target
from lastbit.cli import attack
from lastbit.cli.attack import targets_of, tried
from lastbit.cli.loading import current_folder
from lastbit.errors import InvalidParameter
from tests.cli.running import lastbit, read, refused, succeeded

CODE = """
import numpy as np

import lastbit as lb
from lastbit.audit.targets.target import SumTarget, Target

generator = np.random.default_rng(20240501)
exact = lb.Laplace(sensitivity=1, epsilon=1)
NOT_A_MECHANISM = 3

def plain(value, size):
    return generator.laplace(value, 10, size)

def bare(value, size):
    return np.full(size, float(value))

def honest(value, size):
    return value + np.asarray(lb.discrete_laplace(1, size=size))

def raises(value):
    raise KeyError("no such value")

def only_zero(value, size):
    if value != 0:
        raise ValueError("no")
    return [0.0] * size

ready = Target(name="ready", release=bare, claimed=1)
total = SumTarget(
    name="total", release=lambda data, bounds, size: [float(data.sum())] * size, claimed=1)
"""
TOLD: dict[str, Any] = {
    "epsilon": None,
    "delta": None,
    "answers": None,
    "scale": None,
    "step": None,
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "targets.py").write_text(CODE, "utf-8")
    monkeypatch.delitem(sys.modules, "targets", raising=False)
    monkeypatch.setattr(attack, "FORKS", 40)
    return tmp_path


def broken(*arguments: str) -> str:
    result = lastbit("attack", "run", *arguments)
    assert result.exit_code == 1, result.output
    assert result.stderr == ""
    assert "--json" in arguments or max(map(len, result.stdout.splitlines())) <= 80
    return result.stdout


def test_every_attack_is_listed() -> None:
    listed = succeeded("attack", "list")
    for name in ATTACKS:
        assert f"  {name} " in listed
    found = read("attack", "list")["attacks"]
    assert [attack["name"] for attack in found] == list(ATTACKS)
    assert all(attack["looks_for"] and attack["source"] for attack in found)


def test_numpy_is_broken_and_the_witness_is_shown() -> None:
    out = broken("precision", "--target", "numpy", "--samples", "4000")
    assert "numpy Laplace, scale 1" in out
    assert "BROKEN" in out
    assert "is no multiple of" in out
    assert "1e-6" in out


def test_a_function_is_attacked_with_what_is_said_of_it() -> None:
    out = broken("preimage", "--target", "targets:plain", "--epsilon", "0.1", "--scale", "10")
    assert "claimed 0.1" in out
    assert float(out.split("ε at least")[1].split(",")[0]) > 5


@pytest.mark.evidence
def test_honest_noise_resists_all_that_suits() -> None:
    options = ("--epsilon", "1", "--step", "1", "--scale", "1", "--samples", "2000")
    out = succeeded("attack", "run", "all", "--target", "targets:honest", *options)
    assert "resisted" in out
    assert "BROKEN" not in out
    assert "attacks float64 sums" in out


def test_a_mechanism_object_is_released() -> None:
    options = ("--epsilon", "1", "--samples", "2000")
    assert "resisted" in succeeded(
        "attack", "run", "threshold", "--target", "targets:exact", *options
    )


def test_targets_of_ones_own() -> None:
    assert "ready" in broken("threshold", "--target", "targets:ready", "--samples", "1000")
    out = broken("nan", "--target", "targets:total", "--samples", "400")
    assert "total" in out


@pytest.mark.evidence
def test_json_holds_every_verdict() -> None:
    out = json.loads(
        broken("all", "--target", "targets:bare", "--epsilon", "1", "--samples", "1000", "--json")
    )
    assert out["verdict"] == "broken"
    names = {verdict["name"] for verdict in out["verdicts"]}
    assert {"threshold", "precision"} <= names
    assert {entry["attack"] for entry in out["not_tried"]} >= {"preimage", "nan"}


@pytest.mark.evidence
def test_the_error_is_shared_by_all_verdicts() -> None:
    """The mutant that gives each the whole error accuses too often when there are many."""
    quiet = Target(name="quiet", release=lambda value, size: np.zeros(size), claimed=1)
    outcome = tried("all", [quiet, quiet], samples=400, error=Fraction(1, 100))
    assert len(outcome.verdicts) > 3
    assert sum(verdict.error for verdict in outcome.verdicts) <= Fraction(1, 100)
    assert not outcome.broken


@pytest.mark.evidence
def test_one_that_fails_does_not_stop_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def sometimes(name: str, *given: Any, **options: Any) -> Any:
        if name == "precision":
            raise RuntimeError("out of luck")
        return run(name, *given, **options)

    monkeypatch.setattr(attack, "run_attack", sometimes)
    options = ("--epsilon", "1", "--samples", "1000")
    out = succeeded("attack", "run", "all", "--target", "targets:honest", *options)
    assert "RuntimeError: out of luck" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nothing", "--target", "numpy"), "pass one of preimage"),
        (("all", "--target", "nobody"), "pass one of lastbit, numpy"),
        (("precision",), "--target"),
        (("precision", "--target", "targets:absent", "--epsilon", "1"), "no function absent"),
        (("precision", "--target", "targets:NOT_A_MECHANISM", "--epsilon", "1"), "no function"),
        (("precision", "--target", "nowhere:f", "--epsilon", "1"), "was not found"),
        (("precision", "--target", "targets:plain"), "--epsilon is missing"),
        (("precision", "--target", "targets:plain", "--epsilon", "-1"), "negative"),
        (("preimage", "--target", "targets:plain", "--epsilon", "1"), "pass --scale"),
        (("nan", "--target", "targets:plain", "--epsilon", "1"), "SumTarget"),
        (("threshold", "--target", "targets:total"), "does not suit"),
        (("threshold", "--target", "targets:raises", "--epsilon", "1"), "raises KeyError"),
        (("all", "--target", "targets:raises", "--epsilon", "1"), "error in every attack"),
        (("precision", "--target", "numpy", "--epsilon", "1"), "--epsilon is said of a function"),
        (("precision", "--target", "targets:ready", "--scale", "1"), "--scale is said of"),
        (("precision", "--target", "numpy", "--error", "1"), "--error"),
        (("precision", "--target", "numpy", "--samples", "3"), "--samples"),
        (
            ("precision", "--target", "targets:plain", "--epsilon", "1", "--answers", "1", "1"),
            "--answers are equal",
        ),
        (
            ("precision", "--target", "targets:plain", "--epsilon", "1", "--answers", "0", "0.1"),
            "that a float is exactly",
        ),
    ],
)
def test_what_cannot_run_ends_with_2_and_a_way_out(arguments: tuple[str, ...], words: str) -> None:
    assert words in refused("attack", "run", *arguments)


def test_answers_are_the_two_inputs() -> None:
    told = TOLD | {"epsilon": Fraction(1), "answers": (Fraction(2), Fraction(1, 2))}
    with current_folder():
        (target,) = targets_of("targets:plain", told)
    assert isinstance(target, Target)
    assert target.values == (2, 0.5)
    assert target.sensitivity == Fraction(3, 2)


def test_a_claim_that_is_no_target() -> None:
    with pytest.raises(InvalidParameter, match="--target"):
        targets_of("nobody", TOLD)
