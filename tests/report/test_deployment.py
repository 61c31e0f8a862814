"""Checklist and registry entry: what is on record is there, the rest is open, nothing leaks."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from lastbit.ledger import Account, Ledger
from lastbit.release import record_problem as _judged
from lastbit.report.deployment import (
    Deployment,
    checklist,
    checklist_markdown,
    checklist_page,
    deployment_of,
)
from lastbit.report.registry import registry_entry
from lastbit.tables import Budget, Column, Cost, read_card
from tests.cli.running import refused, succeeded
from tests.release import canaries

canary_folder = canaries.canary_folder
SQL = "SELECT region, COUNT(*) AS n, AVG(cost) AS cost FROM visits GROUP BY region"
HOW: Any = {"who": "ada", "plan_digest": "p", "fingerprint": "f"}


def asked(*, sql: str = SQL) -> None:
    succeeded("query", "visits.toml", sql, "--epsilon", "1")


def known(about: Deployment) -> dict[str, str]:
    return {item.question: item.known for _, items in checklist(about) for item in items}


def on_record(budget: Budget | None = None, **changes: Any) -> Deployment:
    """The card's own deployment, or one with another budget or card, without a ledger."""
    card = replace(read_card("visits.toml"), **changes)
    account = Account(name=card.account_name, budget=budget or card.budget)
    return deployment_of(card, account, None, _judged)


def test_what_is_on_record_is_filled_in_and_the_rest_is_open(folder: Path) -> None:
    asked()
    text = succeeded("report", "visits.toml", "--checklist")
    words = " ".join(text.split())
    for told in (
        "Approximate DP with ε = 8, δ = 0.0001.",
        "ε = 1 by plain sums, in 1 answer.",
        "One patient, with all its rows.",
        "certificates of 1 of 1 answer:",
        "for number of rows (n)",
        "Every entry fits; the head is " + Ledger.existing("visits.ledger").head,
    ):
        assert told in words, told
    boxes = re.findall(r"^- \[(.)\]", text, re.M)
    assert boxes.count(" ") == words.count("**Open:**") and boxes.count("x") > 12
    assert not [value for value in canaries.VALUES if value in text]


def test_the_page_says_the_same(folder: Path) -> None:
    asked()
    said = succeeded("report", "visits.toml", "--checklist", "--out", "list.html")
    assert said == "list.html is written. Its open lines are for people.\n"
    page = Path("list.html").read_text("utf-8")
    assert "filled in" in refused("report", "visits.toml", "--checklist", "--out", "list.html")
    assert page.startswith("<!doctype html>") and "One patient, with all its rows." in page
    assert page.count("☐") == page.count("<b>Open:</b>") > 8


def test_the_entry_reads_as_yaml_and_has_the_fields_of_the_registry(folder: Path) -> None:
    yaml: Any = pytest.importorskip("yaml", reason="make serve-tests")
    asked()
    read = yaml.safe_load(succeeded("report", "visits.toml", "--registry"))
    assert sorted(read) == ["deployment", "status", "tier", "url_slug"]
    told = read["deployment"]
    needed = "name data_curators description intended_use data_product_type data_product_region"
    assert set(needed.split()) < set(told["basic"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", told["basic"]["publication_date"])
    assert told["dp_variant"]["variant_name"] == "Approximate DP"
    assert told["privacy_loss"]["privacy_parameters"] == {"epsilon": 8, "delta": 1e-4}
    assert told["privacy_loss"]["privacy_unit"] == "patient-level"
    assert told["deployment_model"]["release_type"] == "One release"
    assert "independent checker" in told["administrative"]["notes"]


def test_losses_are_rounded_up(folder: Path) -> None:
    about = on_record(Budget(epsilon=Fraction(1, 3), delta=Fraction(1, 3 * 10**6)))
    asked()
    ledger = Ledger.existing("visits.ledger")
    whole = deployment_of(about.card, about.account, ledger, _judged)
    text = registry_entry(whole)
    epsilon, delta = (re.search(rf"{n}: (\S+)$", text, re.M) for n in ("epsilon", "delta"))
    assert epsilon and Fraction(epsilon[1]) > Fraction(1, 3)
    assert delta and Fraction(delta[1]) > Fraction(1, 3 * 10**6) and "." in delta[1]


@pytest.mark.parametrize(
    ("budget", "question", "words"),
    [
        (
            Budget(epsilon=1),
            "What can be learned about one unit at most?",
            "one more is in the table. After all answers they think it at most 2.68 %",
        ),
        (Budget(rho="0.1"), "What is that as (ε, δ), to compare?", "ε = 1.915 at δ = 1e-5"),
        (
            Budget(kind="filter", epsilon=3, delta="1e-6"),
            "How do the prices of several answers add up?",
            "by the moment filter",
        ),
        (Budget(epsilon=30), "Why these parameters?", "hardly protects anybody"),
    ],
)
def test_the_promise_in_words(budget: Budget, question: str, words: str, folder: Path) -> None:
    assert words in known(on_record(budget))[question]


def test_rows_and_changes_are_told(folder: Path) -> None:
    from lastbit.privacy import CHANGE_ONE

    changed = {"unit": None, "max_rows": 1, "max_groups": None, "neighbours": CHANGE_ONE}
    told = known(on_record(Budget(epsilon=1), **changed))
    # one unit more or less and one unit with other rows are two promises: no belief for both
    assert "rows of this one are certain" in told["What can be learned about one unit at most?"]
    assert told["Whose data is protected?"].startswith("One row")
    assert "the number of units is public" in told["Which tables are neighbours?"]
    assert "So is the number of units." in told["What is shown without noise?"]


def test_an_answer_that_does_not_check_is_not_ticked(folder: Path) -> None:
    asked()
    ledger = Ledger.existing("visits.ledger")
    code = {"kind": "rounding", "claim": {"code": [{"name": "os:abort"}]}}
    wrong: tuple[dict[str, Any], ...] = (
        {"asked": 3},
        {"rows": [], "certificate": code},
        {"rows": [], "certificate": 1},
    )
    for number, record in enumerate(wrong):
        price = Cost(epsilon=Fraction(1))
        ledger.charge("visits", price, question=f"q{number}", record=record, **HOW)
    words = " ".join(succeeded("report", "visits.toml", "--checklist").split())
    assert "- [ ] **Are their prices proved?** The independent checker accepts the" in words
    assert "certificates of 1 of 4 answers" in words
    assert words.count("is not accepted: it has no certificate of an answer") == 3
    assert "certificates of 1 of 4 answers. " in " ".join(
        succeeded("report", "visits.toml", "--registry").split()
    )


def test_without_a_ledger_nothing_is_said_of_what_was_spent(folder: Path) -> None:
    asked()
    Path("visits.ledger").unlink()
    text = " ".join(succeeded("report", "visits.toml", "--checklist").split())
    assert "- [ ] **What has been spent so far?** **Open:** There is no ledger" in text
    assert "ledger)*" not in text and "- [x] **Which mechanisms ran?**" not in text
    assert "find the ledger" in refused("report", "visits.toml", "--registry")


def test_answers_about_other_tables_of_the_account_are_not_said_to_be_of_this_one(
    folder: Path,
) -> None:
    asked()
    text = Path("visits.toml").read_text("utf-8").replace('name = "visits"', 'name = "stays"')
    text = text.replace("[budget]", '[budget]\naccount = "visits"')
    Path("stays.toml").write_text(text, "utf-8")
    succeeded("query", "stays.toml", "SELECT SUM(cost) AS total FROM stays", "--epsilon", "2")
    for card, own, other in (("visits", "(n)", "(total)"), ("stays", "(total)", "(n)")):
        words = " ".join(succeeded("report", f"{card}.toml", "--checklist").split())
        assert own in words and other not in words
        assert "ε = 3 by plain sums, in 2 answers." in words
        assert "certificates of 1 of 1 answer:" in words
        others = {"visits": "stays", "stays": "visits"}[card]
        assert f"It has paid for answers about {others}." in words
        entry = succeeded("report", f"{card}.toml", "--registry")
        assert own in entry and other not in entry and "One release" in entry


def test_all_that_is_charged_and_has_no_answer_is_told_and_who_may_ask(folder: Path) -> None:
    asked()
    ledger = Ledger.existing("visits.ledger")
    for number in range(2):
        price = Cost(epsilon=Fraction(1))
        paid = ledger.reserve("visits", price, question=f"q{number}", **HOW)
    ledger.fail(paid, words="no answer could be given in time")
    words = " ".join(succeeded("report", "visits.toml", "--checklist").split())
    assert "Charged and not answered: 2." in words and "Everybody who can read" in words
    ledger.set_principal("stella", "steward", by="stella")
    words = " ".join(succeeded("report", "visits.toml", "--checklist").split())
    assert "Everybody" not in words and "Stewards of the ledger, and analysts with" in words


def test_damaged_books_are_told(folder: Path) -> None:
    about = replace(on_record(), head="0" * 64, problems=("entry 3 was changed",))
    text = checklist_markdown(about)
    assert "**Are the books whole?**\n  **Open:** entry 3 was changed." in text


def test_hostile_names_are_text(folder: Path) -> None:
    name = "*x*<script>alert(1)</script>\n# [y](z)\x1b\u202e"
    about = on_record(
        columns={**read_card("visits.toml").columns, name: Column(name=name, type="text")}
    )
    text = checklist_markdown(about)
    assert r"\*x\*\<script\>alert(1)\</script\>" in text and r"\# \[y\](z)" in text
    page = checklist_page(about)
    assert "<script" not in page and not set("\x1b\u202e") & set(text + page)


def test_refusals(folder: Path) -> None:
    assert "one of --checklist and --registry" in refused("report", "visits.toml")
    assert "one of --checklist and --registry" in refused(
        "report", "visits.toml", "--checklist", "--registry"
    )
    assert "without answers" in refused("report", "visits.toml", "--registry")
    asked()
    card = Path("visits.toml")
    card.write_text(card.read_text("utf-8").replace("epsilon = 8", "epsilon = 9"), "utf-8")
    assert "--set" in refused("report", "visits.toml", "--checklist")
    assert "ledger" in refused("report", "visits.toml", "--checklist", "--out", "visits.ledger")
