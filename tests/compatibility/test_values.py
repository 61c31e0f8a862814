"""Cards, guarantees, questions and plans of 0.1 mean now what they meant then."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from lastbit.checker.dispatch import beliefs
from lastbit.cli import main
from lastbit.privacy import from_json
from lastbit.tables import parsed, planned, read_card
from tests.compatibility.kept import KEPT, read
from tests.data.generate import GUARANTEES

PLANS: dict[str, dict[str, Any]] = read("plans.json")
CARDS = sorted(path.name for path in (KEPT / "tables").glob("*.toml"))


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    """A copy: a query makes a ledger beside the card."""
    for path in (KEPT / "tables").iterdir():
        if path.is_file():
            shutil.copyfile(path, tmp_path / path.name)
    return tmp_path


@pytest.mark.parametrize("place", range(len(GUARANTEES)))
def test_a_guarantee_is_read_and_written_as_before(place: int) -> None:
    text, value = read("guarantees.json")[place], GUARANTEES[place]
    assert from_json(text) == value
    assert json.loads(from_json(text).to_json()) == json.loads(text)


@pytest.mark.parametrize("card", CARDS)
def test_a_card_can_be_used(card: str, tables: Path) -> None:
    assert read_card(tables / card).name == card.removesuffix(".toml")
    result = CliRunner().invoke(main, ["card", "check", str(tables / card)])
    assert result.exit_code == 0 and "can be used" in result.stdout


PLANNED_OTHERWISE = {"found-keys", "join-found-keys", "median", "quantiles", "means", "mean-share"}
PLANNED_OTHERWISE |= {"gaussian-priced-by-delta", "declared-keys", "spread", "having-text"}
"""Undeclared keys are found, the ends of the intervals of quantiles drawn, the price shared out,
rows and values measured, and the noise of epsilon and delta computed, in another way since; the
question, and its recorded answer, stay."""
PUBLIC_SINCE = {"join-found-keys"}
"""Keys of public tables were found privately in 0.1, and are public now."""


@pytest.mark.parametrize("name", PLANS)
def test_a_question_has_the_query_and_the_plan_that_it_had(name: str) -> None:
    """Their digests stand in ledgers and certificates: an answer is found again by them."""
    kept = PLANS[name]
    card = read_card(KEPT / "tables" / f"{kept['card']}.toml")
    query = parsed(kept["sql"], card)
    if name in PUBLIC_SINCE:
        assert query.groups is not None
        query = replace(query, keys=tuple(replace(key, values=None) for key in query.keys))
    if name in PLANNED_OTHERWISE:
        assert query.digest == kept["query_digest"]
        return
    plan = planned(query, card, **kept["price"])
    if kept["query"] is not None:
        assert query.to_json() == kept["query"]
        assert plan.to_json() == kept["plan"]
    assert query.digest == kept["query_digest"]
    assert plan.digest == kept["plan_digest"]


@pytest.mark.parametrize("name", ["declared-keys", "gaussian", "found-keys"])
def test_the_answer_that_was_saved_is_to_this_question(name: str) -> None:
    answer = read("tables", "answers", f"{name}.json")
    assert answer["certificate"]["body"]["plan_digest"] == PLANS[name]["plan_digest"]
    assert answer["asked"]["sql"] == PLANS[name]["sql"]


@pytest.mark.parametrize("name", ["declared-keys", "gaussian"])
def test_the_question_can_still_be_asked(name: str, tables: Path) -> None:
    kept = PLANS[name]
    price = [f"--{key}={value}" for key, value in kept["price"].items()]
    asked = ["query", str(tables / f"{kept['card']}.toml"), kept["sql"], *price]
    out = tables / "out.json"
    result = CliRunner().invoke(main, [*asked, "--out", str(out)])
    assert result.exit_code == 0, result.output
    before, now = read("tables", "answers", f"{name}.json"), json.loads(out.read_text("utf-8"))
    assert now.keys() - {"whole"} == before.keys()
    for part in ("columns", "guarantee", "cost", "asked"):
        assert now[part] == before[part]
    claim, said = now["certificate"]["claim"], before["certificate"]["assumptions"]
    assert list(beliefs("release", claim, said)) == said  # the same in the words of then
    assert list(beliefs("release", claim)) == now["certificate"]["assumptions"]
    if name not in PLANNED_OTHERWISE:
        assert now["certificate"]["body"]["plan"] == before["certificate"]["body"]["plan"]
    parts = {*before["certificate"]["body"], "engine"}  # which 0.1 did not name
    assert now["certificate"]["body"].keys() == parts
    assert CliRunner().invoke(main, ["check", str(out)]).exit_code == 0
