"""One digest for one question: whatever an answer depends on but the noise changes it."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import Any

from lastbit.kernel import Program, question_of_program
from lastbit.release.certifying import program_of
from lastbit.tables import planned
from tests.kernel.genuine import certificates, table_of
from tests.kernel.hostile_plans import reseal


def program(sql: str, how: str = "people declared", **price: Any) -> Program:
    asked = table_of(how).sql(sql)
    return program_of(planned(asked.query, asked.card, **price or {"epsilon": 1}))


def test_every_genuine_program_has_a_digest_of_its_own() -> None:
    found: dict[str, str] = {}
    for one in certificates():
        digest = question_of_program(Program(one.text, one.card), "data")
        assert digest == question_of_program(Program(one.text, one.card), "data")
        assert digest not in found, (found.get(digest), one.name)
        found[digest] = one.name


def test_what_changes_it_and_what_does_not() -> None:
    count = "SELECT COUNT(*) AS n FROM t"
    first = question_of_program(program(count), "data")
    assert question_of_program(program(count), "other data") != first
    assert question_of_program(program(count, epsilon=2), "data") != first
    assert question_of_program(program(count, "people declared changed"), "data") != first
    assert question_of_program(program(f"{count} WHERE x > 0"), "data") != first
    one = program(count)
    typed = replace(one.card.columns["who"], type="text", step=None)
    plain = replace(one.card, private={})
    card = replace(plain, columns={**one.card.columns, "who": typed})
    text = next(g.text for g in certificates() if g.name.startswith(f"{count} | people |"))
    asked = [question_of_program(Program(text, c), "data") for c in (plain, card)]
    assert asked[0] != asked[1]  # of the unit the type decides which rows are one's


def test_wasteful_noise_is_the_same_question_at_the_same_price() -> None:
    """A reservation may be answered by another plan of its price: what is asked is the same."""
    one = certificates()[0]
    data = copy.deepcopy(one.data)
    part = data["body"]["plan"]["parts"][0]
    part["scale"] = str(2 * int(part["scale"]))
    reseal(data)
    wasteful = Program(json.dumps(data), one.card)
    genuine = Program(one.text, one.card)
    assert wasteful.plan_digest != genuine.plan_digest
    assert question_of_program(wasteful, "data") == question_of_program(genuine, "data")
