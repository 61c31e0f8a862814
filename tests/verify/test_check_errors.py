"""The independent checker accepts every derivation and no mutant of one."""

import json
import math
import random
import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from lastbit.checker.error_bound import check_error_bound
from lastbit.checker.numbers import Rejected
from lastbit.verify.error_bounds.formats import BINARY16, BINARY32, Fixed
from lastbit.verify.error_bounds.semantics import analyse, error_certificate
from lastbit.verify.language.expressions import expression_from_json
from lastbit.verify.tracing.markers import clamp, round_to
from lastbit.verify.tracing.trace import trace
from tests.mutants import copied


def noise(u, x):
    if u < 0.5:
        return x + math.log(2 * u) / 0.7
    return x - math.log(2 * (1 - u)) / 0.7


def mixed(x, y):
    root = math.sqrt(x * x + abs(y)) - 0.1 * np.sign(y)
    return clamp(round_to(root / (x - 9), 0.25) + math.exp(-y), -0.125, 1.5)


def curve(x):
    return x / (x * x + 1) - x


CASES: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "noise": (noise, {"u": ("1/64", "63/64"), "x": (-8, 8)}, {"pieces": 2}),
    "mixed": (mixed, {"x": (-2, 2), "y": (-1, 3)}, {"format": BINARY32, "errors": {"y": "1/99"}}),
    "curve": (curve, {"x": (-3, 5)}, {"pieces": 4, "errors": {"x": "rounded"}}),
    "fixed": (curve, {"x": (1, 2)}, {"format": Fixed(20, 10)}),
    "half": (noise, {"u": ("1/64", "1/4"), "x": (-8, 8)}, {"format": BINARY16, "ulps": {"ln": 2}}),
}


def sealed(name: str) -> dict:
    function, ranges, options = CASES[name]
    found = analyse(trace(function), ranges, **options)
    rest = {key: value for key, value in options.items() if key != "pieces"}
    whole = error_certificate(found, **rest)
    return {"claim": whole["claim"], "body": whole["body"]}


ALL: dict[str, Any] = {name: sealed(name) for name in CASES}


def accepted(certificate: dict) -> bool:
    """As `check` sees it: whatever is malformed is rejected too."""
    try:
        check_error_bound(certificate["claim"], certificate["body"])
    except (Rejected, KeyError, TypeError, ValueError, IndexError, ArithmeticError, AttributeError):
        return False
    return True


@pytest.mark.parametrize("name", CASES)
def test_the_original_is_accepted(name):
    assert accepted(ALL[name])


def test_every_rule_is_among_them():
    used = {step["rule"] for case in ALL.values() for step in case["body"]["steps"]}
    rules = "CONST VAR ADD SUB MUL DIV NEG LN EXP SQRT ABS SGN CLAMP ROUND CASES MEAN SPLIT"
    assert used == set(rules.split())


def tighter(text: str, *, up: bool) -> str:
    """A number moved by a millionth of itself, or a millionth if it is 0."""
    x = Fraction(text)
    move = (abs(x) or 1) / 10**6
    return str(x + move if up else x - move)


def tightened(certificate: dict):
    """Every bound of every step and of the claim, a millionth tighter."""
    bounds = [("real", 0), ("real", 1), ("computed", 0), ("computed", 1), ("error", 0)]
    for k in (None, *range(len(certificate["body"]["steps"]))):
        for key, index in bounds:
            mutant = copied(certificate)
            where = mutant["claim"] if k is None else mutant["body"]["steps"][k]
            if key == "error":
                where[key] = tighter(where[key], up=False)
            else:
                where[key][index] = tighter(where[key][index], up=index == 0)
            yield f"{k} {key} {index}", mutant


@pytest.mark.parametrize("name", CASES)
def test_no_bound_can_be_tightened(name):
    mutants = dict(tightened(ALL[name]))
    assert len(mutants) >= 30
    assert [label for label, mutant in mutants.items() if accepted(mutant)] == []


@pytest.mark.parametrize("name", CASES)
def test_no_rule_can_be_renamed(name, extent):
    for k, step in extent.cases(enumerate(ALL[name]["body"]["steps"]), one_in=3):
        for rule in ("VAR", "ADD", "SUB", "NEG", "CASES", "MEAN", "SPLIT", "TRUST", ""):
            if rule == step["rule"]:
                continue
            mutant = copied(ALL[name])
            mutant["body"]["steps"][k]["rule"] = rule
            assert not accepted(mutant), (k, step["rule"], rule)


@pytest.mark.parametrize("name", CASES)
def test_no_step_can_be_dropped_and_no_premise_changed(name, extent):
    steps = ALL[name]["body"]["steps"]
    for k, step in extent.cases(enumerate(steps), one_in=4):
        mutant = copied(ALL[name])
        del mutant["body"]["steps"][k]
        assert not accepted(mutant)
        for change in (
            lambda p: p[:-1] or [0],
            lambda p: [*p, 0],
            lambda p: p[::-1] if p[::-1] != p else [len(steps)],
            lambda p: [-1, *p[1:]],
            lambda p, k=k: [k, *p[1:]],
        ):
            mutant = copied(ALL[name])
            mutant["body"]["steps"][k]["premises"] = change(step["premises"])
            assert not accepted(mutant), (k, step["rule"])
        for key in ("expression", "box"):
            for value in (-1, 10**6, True, "0", None):
                mutant = copied(ALL[name])
                mutant["body"]["steps"][k][key] = value
                assert not accepted(mutant)
        for key in list(step):
            mutant = copied(ALL[name])
            del mutant["body"]["steps"][k][key]
            assert not accepted(mutant)


def changed(name: str, change) -> dict:
    mutant = copied(ALL[name])
    change(mutant["claim"], mutant["body"])
    return mutant


MUTANTS: dict[str, Any] = {
    "wider range": ("curve", lambda c, b: c["ranges"].update(x=["-4", "5"])),
    "wider range everywhere": (
        "curve",
        lambda c, b: (
            c["ranges"].update(x=["-4", "5"]),
            [box.update(x=["-4", box["x"][1]]) for box in b["boxes"] if box["x"][0] == "-3"],
        ),
    ),
    "one more input": ("curve", lambda c, b: c["ranges"].update(y=["0", "1"])),
    "no input": ("curve", lambda c, b: c["ranges"].clear()),
    "larger error": ("mixed", lambda c, b: c["errors"].update(y="1/90")),
    "negative error": ("mixed", lambda c, b: c["errors"].update(y="-1/99")),
    "inexact branch": ("noise", lambda c, b: c["errors"].update(u="1/1000")),
    "rounded branch": ("noise", lambda c, b: c["errors"].update(u="rounded")),
    "coarser format": ("curve", lambda c, b: c.update(format=BINARY32.json())),
    "a bit less": ("curve", lambda c, b: c.update(format={"binary": [52, -1022, 1023]})),
    "smaller largest": ("noise", lambda c, b: c.update(format={"binary": [53, -1022, 2]})),
    "coarser fixed": ("fixed", lambda c, b: c.update(format={"fixed": [19, 10]})),
    "fixed for float": ("curve", lambda c, b: c.update(format={"fixed": [20, 10]})),
    "float for fixed": ("fixed", lambda c, b: c.update(format=BINARY16.json())),
    "unknown format": ("curve", lambda c, b: c.update(format={"decimal": [7, 1, 2]})),
    "two formats": ("curve", lambda c, b: c["format"].update(fixed=[60, 60])),
    "more ulps": ("noise", lambda c, b: c["ulps"].update(ln="3/2")),
    "fewer ulps than half": ("noise", lambda c, b: c["ulps"].update(ln="1/4")),
    "no ulps": ("noise", lambda c, b: c["ulps"].clear()),
    "absurd ulps": ("noise", lambda c, b: c["ulps"].update(ln=str(2**60))),
    "no steps": ("noise", lambda c, b: b["steps"].clear()),
    "no boxes": ("noise", lambda c, b: b["boxes"].clear()),
    "empty box": ("curve", lambda c, b: b["boxes"][0].update(x=["5", "-3"])),
    "last step alone": ("curve", lambda c, b: b.update(steps=b["steps"][-1:])),
    "another goal": ("curve", lambda c, b: c["expression"].append(["NEG", 0])),
    "decimal number": ("curve", lambda c, b: c.update(error="0.5")),
    "float number": ("curve", lambda c, b: c.update(error=0.5)),
    "ratio not in lowest terms": ("curve", lambda c, b: c.update(error="2/4")),
    "part missing": ("curve", lambda c, b: c.pop("real")),
    "part too many": ("curve", lambda c, b: c.update(note="trust me")),
    "half a split": ("curve", lambda c, b: b["steps"][-1].update(premises=[14, 14])),
    "rest of a split": (
        "curve",
        lambda c, b: (c["ranges"].update(x=["-3", "6"]), b["boxes"][-1].update(x=["-3", "6"])),
    ),
    "start of a split": (
        "curve",
        lambda c, b: (c["ranges"].update(x=["-4", "5"]), b["boxes"][-1].update(x=["-4", "5"])),
    ),
    "gap in a split": (
        "curve",
        lambda c, b: (b["steps"][-1].update(premises=[6, 29]), c.update(ranges=b["boxes"][-1])),
    ),
    "case left out": ("noise", lambda c, b: b["steps"][18].update(premises=[7])),
    "case over a part": ("noise", lambda c, b: b["steps"][18].update(premises=[7, 36])),
    "later bound of a case": ("noise", lambda c, b: c["expression"][-1].__setitem__(5, "3/4")),
    "another relation": ("noise", lambda c, b: c["expression"][-1].__setitem__(4, "==")),
    "another input compared": ("noise", lambda c, b: c["expression"][-1].__setitem__(3, "x")),
    "no grid": ("mixed", lambda c, b: c["expression"][13].__setitem__(2, "0")),
    "wider clamp": ("mixed", lambda c, b: c["expression"][-1].__setitem__(3, "4")),
    "open clamp": ("mixed", lambda c, b: c["expression"][-1].__setitem__(3, None)),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_rejected(name):
    which, change = MUTANTS[name]
    mutant = changed(which, change)
    assert mutant != ALL[which]
    assert not accepted(mutant)


OTHER: dict[str, Any] = {
    "ADD": "SUB", "SUB": "ADD", "MUL": "ADD", "DIV": "MUL", "LN": "EXP", "EXP": "SQRT",
    "SQRT": "NEG", "NEG": "ABS", "ABS": "NEG", "SGN": "ABS",
}  # fmt: skip


def reached(certificate: dict) -> set[int]:
    """The rows that some step is about: a branch that no input takes may say what it likes."""
    return {step["expression"] for step in certificate["body"]["steps"]}


@pytest.mark.parametrize("name", CASES)
def test_no_operation_can_be_exchanged(name):
    """Another operation, other operands, another constant: the derivation no longer fits."""
    rows = ALL[name]["claim"]["expression"]
    for k in reached(ALL[name]):
        row = rows[k]
        mutant = copied(ALL[name])
        if row[0] in OTHER:
            mutant["claim"]["expression"][k][0] = OTHER[row[0]]
            assert not accepted(mutant)
        if row[0] == "CONST":
            mutant["claim"]["expression"][k][1] = tighter(row[1], up=True)
            assert not accepted(mutant)
        if row[0] in ("SUB", "DIV"):
            mutant = copied(ALL[name])
            mutant["claim"]["expression"][k][1:3] = row[2:0:-1]
            assert not accepted(mutant)


@pytest.mark.parametrize("name", CASES)
def test_an_operation_exchanged_everywhere_is_accepted_only_if_the_claim_is_true(name):
    """x * 0.7 is smaller than x / 0.7: what was proved of the one may hold of the other."""
    _, ranges, options = CASES[name]
    for k in reached(ALL[name]):
        rule = ALL[name]["claim"]["expression"][k][0]
        if rule not in OTHER:
            continue
        mutant = copied(ALL[name])
        mutant["claim"]["expression"][k][0] = OTHER[rule]
        for step in mutant["body"]["steps"]:
            if step["expression"] == k and step["rule"] == rule:
                step["rule"] = OTHER[rule]
        if accepted(mutant):
            expression = expression_from_json(mutant["claim"]["expression"])
            assert analyse(expression, ranges, **options).error <= Fraction(
                mutant["claim"]["error"]
            )


DIGIT = re.compile(r"\d")


def digits_changed(certificate: dict, seed: int, count: int):
    """One digit of one number anywhere, as in a damaged or forged file."""
    spelled = json.dumps(certificate)
    places = [match.start() for match in DIGIT.finditer(spelled)]
    rng = random.Random(seed)
    for place in rng.sample(places, min(count, len(places))):
        digit = rng.choice([d for d in "0123456789" if d != spelled[place]])
        try:
            yield json.loads(spelled[:place] + digit + spelled[place + 1 :])
        except ValueError:
            continue


def looser(mutant: dict, original: dict) -> bool:
    """Whether every changed bound says less than before, up to the last bits rounded outward.

    Such a mutant is harmless: what it claims follows from what was proved.
    """
    slack = Fraction(1, 2**30)

    def below(new, old):
        return Fraction(new) <= Fraction(old) + slack * abs(Fraction(old))

    pairs = [(mutant["claim"], original["claim"])]
    pairs += zip(mutant["body"]["steps"], original["body"]["steps"], strict=True)
    return all(
        below(new[key][0], old[key][0])
        and below(-Fraction(new[key][1]), -Fraction(old[key][1]))
        and below(-Fraction(new["error"]), -Fraction(old["error"]))
        for new, old in pairs
        for key in ("real", "computed")
    )


@pytest.mark.thinned(one_in=5)
@pytest.mark.parametrize("name", CASES)
def test_a_changed_digit_is_rejected_or_says_less(name):
    original = ALL[name]
    rejected = total = 0
    for mutant in digits_changed(original, seed=5, count=200):
        total += 1
        if not accepted(mutant):
            rejected += 1
            continue
        assert looser(mutant, original)
        assert mutant["claim"]["ranges"] == original["claim"]["ranges"]
        for k in reached(original):
            assert mutant["claim"]["expression"][k] == original["claim"]["expression"][k]
    assert total > 60
    assert rejected > total / 4


@pytest.mark.parametrize(
    "row",
    [
        ["CLAMP", 0, "5", "1"],
        ["CONST", 5],
        ["CONST", "1/0"],
        ["VAR", "not a name"],
        ["SAMPLE", "", "uniform"],
        ["ROUND", 0, "0"],
        ["ROUND", 0, "-1"],
        ["CASES", 0, 0, "x", "!=", "0"],
        ["CASES", 0, 0, "x", "<", 0],
    ],
    ids=str,
)
def test_a_row_is_well_written_even_if_no_step_uses_it(row):
    """What is accepted can be read again, whole."""
    box = {"x": ["0", "1"]}
    known = {"real": ["0", "1"], "computed": ["0", "1"], "error": "0"}
    turned = {"real": ["-1", "0"], "computed": ["-1", "0"], "error": "0"}
    steps = [
        {"rule": "VAR", "expression": 0, "box": 0, "premises": [], **known},
        {"rule": "NEG", "expression": 2, "box": 0, "premises": [0], **turned},
    ]
    claim = {
        "expression": [["VAR", "x"], ["CONST", "1"], ["NEG", 0]],
        "ranges": box,
        "errors": {"x": "0"},
        "format": {"binary": [53, -1022, 1023]},
        "ulps": {"exp": "1", "ln": "1", "sqrt": "1/2"},
        **turned,
    }
    body = {"boxes": [box], "steps": steps}
    check_error_bound(claim, body)
    claim["expression"][1] = row  # type: ignore[index]
    assert not accepted({"claim": claim, "body": body})
