"""Derivations print, and come back from JSON."""

import json
import math
from fractions import Fraction

import pytest
from hypothesis import given, settings

from lastbit.errors import InvalidParameter
from lastbit.verify.error_bounds.formats import BINARY32
from lastbit.verify.error_bounds.rules import derivation_from_json, steps_to_json
from lastbit.verify.error_bounds.semantics import analyse
from lastbit.verify.language.expressions import expression_to_json
from lastbit.verify.tracing.trace import trace
from tests.verify.expressions import CASES, placed
from tests.verify.test_semantics import judged


def noise(u):
    return math.log(u) / 0.7 if u < 0.5 else -math.log(1 - u) / 0.7


FOUND = analyse(trace(noise), {"u": ("1/1024", "1023/1024")}, pieces=3)


@settings(max_examples=60, deadline=None)
@given(CASES)
def test_json_comes_back(case):
    expression, ranges, _ = placed(case, BINARY32)
    found = judged(expression, ranges, format=BINARY32, pieces=3)
    body = json.loads(json.dumps(steps_to_json(found)))
    again = derivation_from_json(expression_to_json(expression), body)
    assert again == found
    assert steps_to_json(again) == body


def test_text_has_a_line_for_every_rule():
    lines = FOUND.text().splitlines()
    assert lines[0].startswith("SPLIT")
    assert "u ∈ [0.0009765625, 0.9990235]" in lines[0]
    for rule in ("SPLIT", "CASES", "LN", "DIV", "SUB", "NEG", "VAR", "CONST"):
        assert any(line.split()[0] == rule for line in lines)
    assert all("⇓ real [" in line and "error ≤" in line for line in lines)
    assert len(FOUND.text(deepest=1).splitlines()) == 3


def test_latex_is_balanced_and_names_the_rules():
    written = FOUND.latex()
    assert written.count("{") == written.count("}")
    assert written.count(r"\dfrac") >= 5
    for rule in ("split", "ln", "div"):
        assert rf"\textsc{{{rule}}}" in written


def test_a_judgement_reads_as_a_sentence():
    found = analyse(trace(lambda x: x * 3), {"x": (1, 2)})
    assert str(found.conclusion) == "real [3, 6], computed [3, 6], error ≤ 4.440893e-16"
    assert found.box == (("x", Fraction(1), Fraction(2)),)


@pytest.mark.parametrize("key", ["boxes", "steps"])
def test_half_a_body_is_refused(key):
    body = steps_to_json(FOUND)
    del body[key]
    with pytest.raises(InvalidParameter):
        derivation_from_json(expression_to_json(FOUND.expression), body)
