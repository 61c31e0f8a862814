"""The certificate inside an answer: made with it, checked with it, and useless for any other."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from lastbit.checker.dispatch import problem_of
from lastbit.checker.numbers import digest
from lastbit.ledger.ledger import Ledger
from lastbit.privacy.neighbours import CHANGE_ONE
from lastbit.release.answer import Answer
from lastbit.release.certifying import certificate_of
from lastbit.release.release import released
from lastbit.report.claims import claim_of
from lastbit.tables.plan.plan import Plan, planned
from lastbit.tables.query.expression import ColumnName, Constant
from lastbit.tables.query.query import OrderBy, Query
from lastbit.tables.query.rules import call
from tests.cli.running import lastbit
from tests.release.pretend import ONE, RawNumbers, card_of, part, plug_in, query_of
from tests.release.sealing import sealed_rows

Record = dict[str, Any]
PEOPLE: dict[str, Any] = {"unit": "person", "max_rows": 4, "max_groups": 2}
EDGES = (Fraction(0), Fraction(1, 2), Fraction(16))
DECLARED = query_of(
    part("count", "n"),
    part("histogram", "h", edges=EDGES),
    part("mean", "m"),
    keys=[("region", ("north", "south", None))],
)
FOUND = query_of(part("count_units", "u"), part("quantile", "median"), keys=[("region", None)])


def raw_for(query: Query, plan: Plan) -> RawNumbers:
    if query.keys[0].values is None:
        bins = [[ONE * (i % 5) for i in range(17)]] * 2
        return RawNumbers(
            keys=[("east",), ("west",)],
            entries={"m1": [900, 700]},
            bins={"m2": bins},
            units=[900, 700],
        )
    sums = {"rows": [40, 3, 0], "values": [7, 2, 0], "above": [360, 26, 0], "below": [280, 22, 0]}
    raw = RawNumbers(keys=[("north",), ("south",), (None,)])
    for measure in plan.measures:
        if measure.kind == "bins":
            raw.bins[measure.name] = [[ONE, 5 * ONE], [0, ONE], [0, 0]]  # type: ignore[index]
        else:
            numbers = [ONE * number for number in sums[measure.kind]]
            raw.entries[measure.name] = numbers  # type: ignore[index]
    return raw


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Answer]:
    """Ask an engine that is none; the certificate is the real one."""

    def asked(query: Query = DECLARED, *, ledger: Any = None, card: Any = None, **how: Any) -> Any:
        table = card_of(**{**PEOPLE, **(card or {})})
        price = how.pop("price", {"epsilon": 1, "delta": "1e-6"})
        plan = planned(query, table, **price)
        plug_in(monkeypatch, raw_for(query, plan))
        return released(query, table, plan, ledger=ledger, **how)

    return asked


def resealed(record: Record) -> Record:
    """The rows' digest and the certificate's worked out anew, as whoever cheats would do."""
    whole = copy.deepcopy(record)
    rows = whole.get("before", whole["rows"])
    certificate = whole["certificate"]
    certificate["claim"]["rows"] = digest(sealed_rows(whole, rows))
    certificate["digest"] = digest(certificate)
    return whole


# ---------------------------------------------------------------- accepted


@pytest.mark.parametrize("query", [DECLARED, FOUND])
@pytest.mark.parametrize("card", [{}, {"neighbours": CHANGE_ONE}])
def test_an_answer_is_accepted_however_it_is_kept(ask, tmp_path, query, card):
    answer = ask(query, card=card)
    assert problem_of(answer.record) is None
    assert problem_of(answer.certificate) is None
    answer.save(tmp_path / "answer.json")
    again = Answer.load(tmp_path / "answer.json")
    assert problem_of(again.record) is None
    assert problem_of(answer.consistent().record) is None
    assert answer.consistent().consistent().record == answer.consistent().record


@pytest.mark.parametrize(
    "price",
    [{"epsilon": "1/3"}, {"epsilon": 0.1}, {"rho": "1/7"}, {"epsilon": "2", "delta": 1e-9}],
)
def test_every_price_is_said_as_it_is(ask, price):
    assert problem_of(ask(price=price).record) is None


def test_rows_that_were_sorted_and_left_out(ask):
    query = Query(
        table="visits",
        aggregates=DECLARED.aggregates,
        keys=DECLARED.keys,
        having=call(">", ColumnName("n"), Constant(-(10**6))),
        order=(OrderBy(name="n", descending=True),),
        limit=2,
    )
    answer = ask(query)
    assert problem_of(answer.record) is None and problem_of(answer.consistent().record) is None
    assert len(answer) == 2


def test_a_recorded_answer_quotes_the_ledger(ask, tmp_path):
    """The certificate has the hash of the reservation; the entry is the one that settles it."""
    book = tmp_path / "book"
    first, second = ask(ledger=book), ask(FOUND, ledger=book)
    ledger = Ledger.open(book)
    assert second.certificate["body"]["ledger"] == ledger.entries()[-1].reservation
    assert ledger.entries()[-2].previous == second.certificate["body"]["ledger"]
    assert second.record["entry"]["hash"] == ledger.head
    heads = [second.certificate["body"]["ledger"], ledger.head]
    assert ledger.problems(heads) == []
    assert problem_of(first.record) is None and problem_of(second.record) is None
    assert ledger.entries()[-1].plan == second.certificate["body"]["plan_digest"]


def test_nothing_of_the_data_is_in_a_certificate(ask):
    """It is the same for all data, but for the digest of the released rows."""
    whole = ask().certificate
    plan = planned(DECLARED, card_of(**PEOPLE), epsilon=1, delta="1e-6")
    blank = certificate_of(plan, columns=[], rows=[])
    whole["claim"] = {**whole["claim"], "rows": blank["claim"]["rows"]}
    assert {**whole, "digest": blank["digest"]} == blank


# ---------------------------------------------------------------- not accepted


def change_value(record: Record) -> None:
    record["rows"][0]["cells"][0]["value"] += 1


def swap_keys(record: Record) -> None:
    rows = record["rows"]
    rows[0]["keys"], rows[1]["keys"] = rows[1]["keys"], rows[0]["keys"]


def drop_row(record: Record) -> None:
    record["rows"].pop()


def rename_column(record: Record) -> None:
    record["columns"][1]["name"] = "m"


@pytest.mark.parametrize("change", [change_value, swap_keys, drop_row, rename_column])
def test_other_rows_are_not_those_that_were_released(ask, change):
    record = copy.deepcopy(ask().record)
    change(record)
    assert problem_of(record) is not None


def lower_price(record: Record) -> None:
    record["cost"]["epsilon"] = "1/10"


def kinder_words(record: Record) -> None:
    record["guarantee"] = record["guarantee"].replace("epsilon = 1", "epsilon = 0.1")


def other_relation(record: Record) -> None:
    record["guarantee"] = record["guarantee"].replace("more or less", "changed")


def words_without_delta(record: Record) -> None:
    record["guarantee"] = record["guarantee"].replace(", delta = 1e-06", "")


def free_words(record: Record) -> None:
    record["guarantee"] = "perfect privacy"


def other_table(record: Record) -> None:
    record["table"] = "patients"


def other_filter(record: Record) -> None:
    record["asked"]["query"]["where"] = ["is_missing", {"column": "x"}]


def other_asked(record: Record) -> None:
    record["asked"]["epsilon"] = "1/10"


def other_plan(record: Record) -> None:
    record["plan"]["max_rows"] = 1


def raw_column(record: Record) -> None:
    """A column that nobody asked for, with a cell in each row."""
    record["columns"].append({"name": "raw", "role": "value", "function": "count"})
    for row in record["rows"]:
        row["cells"].append(dict(row["cells"][0]))


def raw_cell(record: Record) -> None:
    record["rows"][0]["cells"][0]["truth"] = 40


def text_in_cell(record: Record) -> None:
    record["rows"][0]["cells"][0]["value"] = "40"


def endless_cell(record: Record) -> None:
    record["rows"][0]["cells"][0]["value"] = float("inf")


def undeclared_key(record: Record) -> None:
    record["rows"][0]["keys"] = [{"type": "text", "value": "Ada Lovelace"}]


def key_twice(record: Record) -> None:
    record["rows"][0]["keys"] = copy.deepcopy(record["rows"][1]["keys"])


def another_function(record: Record) -> None:
    record["columns"][1]["function"] = "sum"


def other_bin(record: Record) -> None:
    record["columns"][2]["bin"] = ["0", "1"]


def totals_from_nowhere(record: Record) -> None:
    record["totals"] = [1, 2, 3, 4]


def odd_entry(record: Record) -> None:
    record["entry"] = {"hash": "here", "sequence": 1}


def no_certificate(record: Record) -> None:
    del record["certificate"]["claim"]


FORGERIES = [
    *(lower_price, kinder_words, other_relation, words_without_delta, free_words, other_table),
    *(other_filter, other_asked, other_plan, raw_column, raw_cell, text_in_cell, endless_cell),
    *(undeclared_key, key_twice, another_function, other_bin, totals_from_nowhere, odd_entry),
]


@pytest.mark.parametrize("forge", FORGERIES)
def test_forged_answers(ask, forge):
    """All digests are worked out anew; the forger must still not get through."""
    record = copy.deepcopy(ask(FOUND if forge is words_without_delta else DECLARED).record)
    forge(record)
    assert problem_of(resealed(record)) is not None


def test_an_answer_without_a_proof(ask):
    record = ask().record
    junk: tuple[Any, ...] = ({}, None, [], {"kind": "release"})
    for spoiled in (*junk, {**record["certificate"], "kind": "law"}):
        assert problem_of({**record, "certificate": spoiled}) is not None
    for name in sorted(set(record)):
        assert problem_of({k: v for k, v in record.items() if k != name}) is not None


def count_more(record: Record) -> None:
    record["rows"][0]["cells"][0]["value"] += 1
    record["rows"][1]["cells"][0]["value"] -= 1


def other_mean(record: Record) -> None:
    cell = record["rows"][0]["cells"][3]
    cell["value"] = 1.0 if cell["value"] != 1.0 else 2.0


def narrow(record: Record) -> None:
    record["rows"][0]["cells"][0]["low"] += 1  # not `low = value`: a count cut off at 0 has both


def other_total(record: Record) -> None:
    record["totals"][0] += 1


def other_keys(record: Record) -> None:
    swap_keys(record)


def other_before(record: Record) -> None:
    record["before"][0]["cells"][0]["value"] += 10**6  # +10 may vanish: counts are cut off at 0


CHANGES = [count_more, other_mean, narrow, other_total, other_keys, other_before]


@pytest.mark.parametrize("change", CHANGES)
def test_consistent_counts_are_worked_out_again(ask, change):
    record = copy.deepcopy(ask().consistent().record)
    change(record)
    assert problem_of(resealed(record)) is not None


# ---------------------------------------------------------------- on the command line


def test_the_command_takes_answers_and_certificates(ask, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    answer = ask(FOUND)
    answer.save("answer.json")
    Path("certificate.json").write_text(json.dumps(answer.certificate), "utf-8")
    result = lastbit("check", "answer.json", "certificate.json")
    assert result.exit_code == 0 and result.stdout.count("ACCEPTED") == 2
    assert "ε ≤ 1, δ ≤ 1e-6" in result.stdout and "found privately" in result.stdout
    told = json.loads(lastbit("check", "--json", "answer.json").stdout)["certificates"][0]
    assert told["accepted"] and told["kind"] == "release" and told["claim"]["epsilon"] == "1"
    record = copy.deepcopy(answer.record)
    change_value(record)
    Path("answer.json").write_text(json.dumps(record), "utf-8")
    result = lastbit("check", "answer.json")
    assert result.exit_code == 1 and "not those that were released" in result.stdout


def test_a_claim_in_words(ask) -> None:
    told = claim_of(ask(price={"rho": "1/8"}).certificate)
    assert told.verdict == "ρ ≤ 0.125" and told.title == "An answer from visits"
    facts = dict(told.facts)
    assert facts["groups"] == "3, public" and "Gaussian" in facts["number of rows (n, m)"]
