"""The independent checker accepts every derivation of the first, and no other."""

import ast
import copy
import json
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from lastbit.checker import snapping as checker
from lastbit.checker.numbers import Rejected, number
from lastbit.checker.snapping import check_snapping
from lastbit.errors import NotCertified
from lastbit.verify import snapping
from lastbit.verify.loss_rules import LossRules
from lastbit.verify.snapping import CASES, SnappingBound, snapping_bound

PARAMETERS = [(1, 64, "binary64"), (0.7, 32, "binary64"), (1, 1024, "binary64"), (1, 4, "binary16")]


@cache
def text_of(epsilon: Any, bound: Any, format: str) -> str:
    return json.dumps(snapping_bound(epsilon=epsilon, bound=bound, format=format).certificate())


def produced(epsilon: Any = 0.7, bound: Any = 32, format: str = "binary64") -> dict[str, Any]:
    """A fresh certificate: the tests change it."""
    fresh: dict[str, Any] = json.loads(text_of(epsilon, bound, format))
    return fresh


def accepted(certificate: dict[str, Any]) -> bool:
    """Whatever is wrong is `Rejected`, never another exception."""
    try:
        check_snapping(certificate["claim"], certificate["body"])
    except Rejected:
        return False
    return True


def nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for premise in node["premises"]:
        yield from nodes(premise)


def places(certificate: dict[str, Any]) -> list[tuple[int, str]]:
    """Every number of the derivation: the number of its step, and its name."""
    steps = list(nodes(certificate["body"]["derivation"]))
    return [(i, name) for i, step in enumerate(steps) for name in step["values"]]


def step_of(certificate: dict[str, Any], index: int) -> dict[str, Any]:
    return list(nodes(certificate["body"]["derivation"]))[index]


# ---------------------------------------------------------------- accepted


@pytest.mark.parametrize(("epsilon", "bound", "format"), PARAMETERS)
def test_accepts(epsilon, bound, format):
    assert accepted(produced(epsilon, bound, format))


@pytest.mark.evidence
@settings(deadline=None)
@given(st.floats(2.0**-20, 256), st.floats(2.0**-10, 2.0**20))
def test_accepts_whatever_is_produced(epsilon, bound):
    assert accepted(produced(epsilon, bound))


def test_a_looser_claim_is_still_true():
    certificate = produced()
    certificate["claim"]["loss"] = str(number(certificate["claim"]["loss"]) * 2)
    certificate["claim"]["delta"] = "1/1000"
    assert accepted(certificate)


# ---------------------------------------------------------------- single digits


def other_digits(text: str) -> Iterator[str]:
    """The number with its first, its middle and its last digit changed."""
    digits = [i for i, letter in enumerate(text) if letter.isdigit()]
    for i in {digits[0], digits[len(digits) // 2], digits[-1]}:
        yield text[:i] + str((int(text[i]) + 1) % 10) + text[i + 1 :]


@pytest.mark.thinned(one_in=4)
@pytest.mark.parametrize(("epsilon", "bound", "format"), PARAMETERS)
def test_every_number_of_the_derivation_counts(epsilon, bound, format):
    """More than 400 mutations: three digits of each number, up or down, tighter or looser."""
    tried = 0
    for index, name in places(produced(epsilon, bound, format)):
        before = step_of(produced(epsilon, bound, format), index)["values"][name]
        for text in other_digits(before):
            certificate = produced(epsilon, bound, format)
            step_of(certificate, index)["values"][name] = text
            assert not accepted(certificate), (index, name, text)
            tried += 1
    assert tried > 100


@pytest.mark.parametrize("name", ["epsilon", "bound"])
def test_parameters_count(name):
    for text in other_digits(produced()["claim"][name]):
        certificate = produced()
        certificate["claim"][name] = text
        assert not accepted(certificate)


def test_tighter_claims_are_rejected():
    """Upward changes of loss and delta are left out here: they only claim less."""
    for name in ("loss", "delta"):
        certificate = produced(1, 1024)
        before = number(certificate["claim"][name])
        for part in (Fraction(1, 10**30), Fraction(1, 2), Fraction(1)):
            certificate["claim"][name] = str(before * (1 - part))
            assert not accepted(certificate)


# ---------------------------------------------------------------- rules, order, cases


@pytest.mark.evidence
def test_every_rule_counts():
    count = len(list(nodes(produced()["body"]["derivation"])))
    rules = {step["rule"] for step in nodes(produced()["body"]["derivation"])}
    for index in range(count):
        certificate = produced()
        step = step_of(certificate, index)
        for rule in [*sorted(rules - {step["rule"]})[:3], "", step["rule"].lower(), None, 1, []]:
            step["rule"] = rule
            assert not accepted(certificate)


@pytest.mark.evidence
def test_every_premise_counts():
    count = len(list(nodes(produced()["body"]["derivation"])))
    malformed: tuple[Any, ...] = (None, "", {}, 0)
    for index in range(count):
        for wrong in malformed:
            certificate = produced()
            step_of(certificate, index)["premises"] = wrong
            assert not accepted(certificate)
        certificate = produced()
        premises = step_of(certificate, index)["premises"]
        premises.append(copy.deepcopy(premises[-1]) if premises else {})
        assert not accepted(certificate)
        if len(premises) > 1:
            del premises[-2:]
            assert not accepted(certificate)


def test_order_counts():
    count = len(produced()["body"]["derivation"]["premises"])
    for first in range(count - 1):
        certificate = produced()
        premises = certificate["body"]["derivation"]["premises"]
        premises[first], premises[first + 1] = premises[first + 1], premises[first]
        assert not accepted(certificate)


@pytest.mark.parametrize("name", CASES)
def test_no_case_may_be_left_out(name):
    certificate = produced()
    premises = certificate["body"]["derivation"]["premises"]
    premises[:] = [step for step in premises if step["rule"] != name]
    assert not accepted(certificate)


# ---------------------------------------------------------------- wrong theorems


def issues(bound: SnappingBound, derivation: Any) -> bool:
    """Whether a certificate leaves for `bound` with another derivation, consistent in itself."""
    other = SnappingBound(
        epsilon=bound.epsilon, bound=bound.bound, format=bound.format, derivation=derivation
    )
    try:
        return accepted(other.certificate())
    except NotCertified:
        return False


def test_mutant_half_of_eta(monkeypatch):
    honest = snapping_bound(epsilon=0.7, bound=32)
    monkeypatch.setattr(snapping, "FORMATS", {"binary64": (54, -1022)})
    finer = snapping._derivation(honest.epsilon, honest.bound, "binary64")
    monkeypatch.undo()
    assert issues(honest, honest.derivation)
    assert not issues(honest, finer)


def test_mutant_smaller_domain():
    honest = snapping_bound(epsilon=0.7, bound=32)
    smaller = snapping._derivation(honest.epsilon, Fraction(16), "binary64")
    assert not issues(honest, smaller)


def test_mutant_wider_exponents(monkeypatch):
    honest = snapping_bound(epsilon=1, bound=1024)
    monkeypatch.setattr(snapping, "FORMATS", {"binary64": (53, -4000)})
    wider = snapping._derivation(honest.epsilon, honest.bound, "binary64")
    monkeypatch.undo()
    assert wider["delta"] == 0
    assert not issues(honest, wider)


@pytest.mark.parametrize("wrong", ["amplification", "shift", "mode"])
def test_mutant_rules(wrong, monkeypatch):
    """A producer that forgets a part of the proof, consistently, is not believed."""
    honest = snapping_bound(epsilon=0.7, bound=32)
    if wrong == "amplification":
        monkeypatch.setattr(LossRules, "cell", lambda self, reach, growth: self.tail(reach))
    elif wrong == "mode":
        monkeypatch.setattr(LossRules, "over", lambda self, reach, growth: self.half(reach))
    else:  # the edges do not move at all
        monkeypatch.setattr(LossRules, "half_ulp", lambda self, number: Fraction(0))
    with pytest.raises(NotCertified):
        snapping_bound(epsilon=0.7, bound=32)
    assert issues(honest, honest.derivation)


# ---------------------------------------------------------------- malformed


@pytest.mark.parametrize(
    "change",
    [
        {"format": "binary32"},
        {"format": "binary128"},
        {"format": None},
        {"format": []},
        {"mechanism": "laplace"},
        {"distance": "2"},
        {"distance": 1},
        {"epsilon": "0"},
        {"epsilon": "-1"},
        {"epsilon": "7/10"},  # no number of the format
        {"epsilon": "512"},
        {"epsilon": 0.7},
        {"epsilon": "1/" + "9" * 3000},
        {"bound": "1" + "0" * 3000},
        {"bound": "1/3"},
        {"bound": str(2**50)},
        {"loss": "inf"},
        {"loss": None},
        {"delta": "-1"},
        {"extra": "1"},
    ],
)
def test_malformed_claims(change):
    certificate = produced()
    certificate["claim"].update(change)
    assert not accepted(certificate)


@pytest.mark.parametrize("missing", sorted(produced()["claim"]))
def test_incomplete_claims(missing):
    certificate = produced()
    del certificate["claim"][missing]
    assert not accepted(certificate)


@pytest.mark.parametrize("body", [{}, {"derivation": None}, {"derivation": []}, {"derivation": {}}])
def test_malformed_bodies(body):
    assert not accepted({"claim": produced()["claim"], "body": body})


@pytest.mark.parametrize("part", ["rule", "values", "premises"])
@pytest.mark.parametrize("wrong", [None, "x", 0, {}, []])
def test_malformed_steps(part, wrong):
    certificate = produced()
    certificate["body"]["derivation"]["premises"][2][part] = wrong
    assert not accepted(certificate)


def test_it_shares_nothing_with_the_producer():
    tree = ast.parse(Path(str(checker.__file__)).read_text("utf-8"))
    found = [n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)]
    imported = {n.module for n in found if n.level == 0}
    imported |= {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    assert {n.module for n in found if n.level == 1} == {"intervals", "loss_rules", "numbers"}
    assert imported == {"__future__", "fractions", "math"}
