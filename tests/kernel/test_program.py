"""A program is what the checker accepted: read from one text, and never changed."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import FrozenInstanceError, replace
from fractions import Fraction

import pyarrow
import pytest

import lastbit as lb
from lastbit.errors import InvalidParameter, NotCertified
from lastbit.kernel import Program
from lastbit.release.certifying import program_of
from lastbit.tables import planned
from tests.kernel.genuine import certificates, table_of
from tests.kernel.hostile_plans import reseal
from tests.kernel.unsealing import step_of


def test_what_runs_is_what_was_planned() -> None:
    asked = table_of("people declared").sql(
        "SELECT g, AVG(x) AS m, median(x) AS q FROM t GROUP BY g"
    )
    for price in ({"epsilon": "1"}, {"rho": "1/8"}):
        plan = planned(asked.query, asked.card, **price)  # type: ignore[arg-type]
        program = program_of(plan)
        assert program.measures == plan.measures and program.cost == plan.cost
        assert program.steps == tuple(map(step_of, plan.parts))
        assert program.scan.keys == plan.query.keys and program.groups == plan.groups
        assert program.gaussian_noise == plan.gaussian_noise
        assert (program.plan_digest, program.query_digest) == (plan.digest, plan.query.digest)


def test_limits_are_those_of_the_certificate() -> None:
    """Any limits are private; the price is that of those which run, whatever the card has."""
    one = next(g for g in certificates() if "| people |" in g.name)
    for card in (one.card, replace(one.card, max_rows=50, max_groups=9)):
        program = Program(one.text, card)
        assert program.card.max_rows == one.data["body"]["plan"]["max_rows"]
        assert program.card.max_groups == one.data["body"]["plan"]["max_groups"]


def test_another_card_is_refused() -> None:
    one = next(g for g in certificates() if "| people |" in g.name)
    changed = replace(one.card.neighbours, relation="change-one")
    for card in (
        replace(one.card, name="T"),
        replace(one.card, unit="x"),
        replace(one.card, neighbours=changed),
    ):
        with pytest.raises(InvalidParameter, match="another table or unit"):
            Program(one.text, card)
    joined = next(g for g in certificates() if "JOIN labs" in g.name)
    labs = replace(joined.card.private["labs"], max_rows=1)
    for private in ({}, {"labs": labs}):
        with pytest.raises(InvalidParameter, match="another table or unit"):
            Program(joined.text, replace(joined.card, private=private))


def test_a_number_that_is_not_written_out_is_refused() -> None:
    """The checker reads m 2**e, as certificates of code write it; a plan with it crashed."""
    one = next(g for g in certificates() if "| people |" in g.name)
    data = copy.deepcopy(one.data)
    data["body"]["plan"]["parts"][0]["scale"] = "1p9001"
    reseal(data)
    with pytest.raises(NotCertified, match="not written out"):
        Program(json.dumps(data), one.card)


def test_a_program_cannot_be_changed_or_sent() -> None:
    one = certificates()[0]
    program = Program(one.text, one.card)
    for name, value in (("cost", None), ("steps", ()), ("card", one.card), ("other", 1)):
        with pytest.raises(AttributeError):
            setattr(program, name, value)
    with pytest.raises(FrozenInstanceError):
        program.steps[0].parameter = Fraction(0)  # type: ignore[misc, union-attr]
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError):
            copied(program)


def test_marginals_of_many_columns_are_measured_by_their_cells() -> None:
    """Eight columns of eight keys have 16 million combinations, and 64 cells."""
    names = [f"c{i}" for i in range(8)]
    rows = pyarrow.table({name: list(range(8)) for name in names})
    keys = {name: list(range(8)) for name in names}
    table = lb.table(rows, each_row=True, name="t", keys=keys)
    program = program_of(table.marginals(names, up_to=1).plan(epsilon=1))
    assert program.marginals == tuple((i,) for i in range(8))
    assert len(table.marginals(names).release(epsilon=1).tables) == 36


def test_noise_that_cannot_be_drawn_is_refused_before_it_is_paid_for() -> None:
    one = next(g for g in certificates() if "scale" in g.data["body"]["plan"]["parts"][0])
    for bits, is_drawn in ((512, True), (513, False)):
        data = copy.deepcopy(one.data)
        data["body"]["plan"]["parts"][0]["scale"] = str(1 << bits)
        reseal(data)
        if is_drawn:
            assert Program(json.dumps(data), one.card).steps
            continue
        with pytest.raises(InvalidParameter, match=r"scale above 2\*\*512"):
            Program(json.dumps(data), one.card)
