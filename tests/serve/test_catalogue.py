"""The tables of a server: examples, slots that are calibrated, the ledger as it grows."""

import asyncio
import time
from dataclasses import replace
from fractions import Fraction

import pytest

from lastbit.errors import CardRefused
from lastbit.ledger import Ledger, Limit
from lastbit.serve import station
from lastbit.serve.catalogue import Catalogue, Reading, examples_of
from lastbit.serve.planning import plan_of
from lastbit.serve.questions import Refusal
from lastbit.serve.settings import Settings
from lastbit.serve.slots import DECLARED, slot_for
from lastbit.serve.store import Store
from lastbit.serve.tasks import measure, within_memory
from lastbit.tables import Cost, read_card
from tests.serve.desks import ANA, BEN, COUNT, STELLA, running, written
from tests.tables import cards


def test_examples_are_planned_on_their_card_and_priced_by_its_budget(tmp_path):
    (path,) = written(tmp_path, budget="epsilon = 3")
    card = read_card(path)
    examples = examples_of(card)
    assert len(examples) == 5 and {e.epsilon for e in examples} == {"0.5"}
    assert examples[0].sql == COUNT
    for example in examples:
        plan_of(example.question, card)
    rho = replace(card, budget=type(card.budget)(rho=1))
    assert {(e.epsilon, e.rho) for e in examples_of(rho)} == {(None, "0.2")}
    tiny = replace(card, budget=type(card.budget)(epsilon="0.0001"))
    assert {e.epsilon for e in examples_of(tiny)} == {"0.001"}
    assert examples_of(replace(card, budget=None))[0].epsilon == "1"


def test_names_that_are_not_plain_are_quoted_in_examples():
    text = cards.WHOLE.replace('"visits"', '"the visits"').replace("region", "home region")
    text = text.replace("[columns.home region]", '[columns."home region"]')
    text = text[: text.index("[public")]
    examples = examples_of(cards.read(text))
    assert any('"home region"' in example.sql for example in examples)
    assert all('"the visits"' in example.sql for example in examples)


def test_about_how_many_rows_there_are_is_said_on_the_card():
    said = cards.edited('neighbours = "add-remove"', 'neighbours = "add-remove"\nrows = 5000')
    assert cards.read(said).rows == 5000 and cards.read().rows is None
    for wrong in ("0", "-3", "1.5", '"many"', "true", str(10**12 + 1)):
        with pytest.raises(CardRefused, match="rows"):
            cards.read(said.replace("5000", wrong))


def test_a_page_waits_until_slots_are_known_and_not_for_ever(monkeypatch):
    waited = object.__new__(station.Station)
    waited.line, waited._stopped = None, asyncio.Event()
    waited._measured = asyncio.Event()

    async def wait():
        waiting = asyncio.ensure_future(waited.wait_for_slots())
        for _ in range(5):
            await asyncio.sleep(0)
        assert not waiting.done()
        waited._measured.set()
        await waiting
        waited._measured.clear()
        monkeypatch.setattr(station, "_PAGE", 0)
        await waited.wait_for_slots()  # else this test has no end

    asyncio.run(wait())


def test_slots_are_given_or_calibrated_on_made_up_rows_and_kept(tmp_path):
    (path,) = written(tmp_path)
    text = path.read_text().replace("[unit]", "rows = 2000\n[unit]")
    path.write_text(text)
    rows = (tmp_path / "visits.parquet").rename(tmp_path / "away")  # no row is looked at
    settings, store = Settings(cards=(path,), state=tmp_path / "state"), Store(tmp_path / "state")
    with running((path,), slot=None) as desk:
        tables = desk.desk.catalogue.tables
        if tables["visits"].slot is None:  # pages are up, and no price is taken
            for work in (desk.asked, lambda: desk.do(desk.desk.accept("visits", STELLA))):
                with pytest.raises(Refusal, match="is being measured on made-up rows"):
                    work()
        while tables["visits"].slot is None:
            time.sleep(0.05)
        served = tables["visits"]
        with pytest.raises(Refusal, match="the data of visits are not where its card says"):
            desk.asked()
        rows.rename(tmp_path / "visits.parquet")
        assert desk.ledger.spent("patients").epsilon == 0
        assert desk.answer().state == "answered"
    assert served.slot in {slot_for(tenth / 20) for tenth in range(400)}
    assert not (served.slots.strict or served.is_unsized)
    kept = store.connection().execute("SELECT * FROM slots").fetchall()
    assert [tuple(row) for row in kept] == [("visits", served.slot, "made-up rows: 2000 parquet")]
    strict = replace(settings, strict=True)
    again = Catalogue(strict, store).tables["visits"]
    assert again.slot == served.slot and again.slots.strict
    path.write_text(text.replace("rows = 2000\n", ""))  # then they are taken to be a million
    for slot, unsized in ((7.0, False), (None, True)):
        one = Catalogue(replace(settings, slot=slot), store).tables["visits"]
        assert (one.slot, one.is_unsized) == (slot, unsized)


def test_a_calibration_asks_all_examples(tmp_path):
    (path,) = written(tmp_path)
    card = within_memory(read_card(path), 4 << 30)
    assert card.engine_limits.max_memory == "2147MB"
    assert 0 < measure(card, {"rows": 100}, lambda: None)["slowest"] < 60 and DECLARED == 10**6


def test_reading_follows_the_ledger(tmp_path):
    written(tmp_path)
    ledger = Ledger.existing(tmp_path / "hospital.ledger")
    reading = Reading(ledger)

    def compare():
        fresh = Reading(ledger)
        assert reading.account("patients") == fresh.account("patients") == ledger.accounts()[0]
        assert reading.allowances() == fresh.allowances() == ledger.allowances()
        wanted = ledger.accepted_data("patients", "visits")
        assert (
            reading.accepted("patients", "visits") == fresh.accepted("patients", "visits") == wanted
        )
        return reading

    compare()
    paid = ledger.reserve(
        "patients", Cost(epsilon=Fraction(1)), who="ana", principal="ana", question="q",
        plan_digest="p", fingerprint="f",
    )  # fmt: skip
    assert compare().closing(paid.hash) is None and reading.charge(paid.hash) == paid
    ledger.fail(paid, words="never", who="ana")
    assert (compare().closing(paid.hash) or paid).kind == "voided"
    ledger.accept_data("patients", "visits", "another", who="stella")
    assert compare().accepted("patients", "visits") == "another"
    ledger.set_allowance("patients", "ben", Limit(epsilon=Fraction(1)), by="stella")
    compare()
    assert (
        reading.recorded("patients", "q") is None and reading.answers({"visits": "patients"}) == []
    )


def test_reading_misses_nothing_that_others_write_between_two_looks(tmp_path, monkeypatch):
    written(tmp_path)
    ledger, other = (Ledger.existing(tmp_path / "hospital.ledger") for _ in range(2))
    reading, entries = Reading(ledger), Ledger.entries
    reading.allowances()
    paid = other.reserve(
        "patients", Cost(epsilon=Fraction(1)), who="ana", principal="ana", question="q",
        plan_digest="p", fingerprint="f",
    )  # fmt: skip

    def slowly(self, account=None, *, last=None):
        found = entries(self, account, last=last)
        if self is ledger and last == 1:
            other.note("others write meanwhile")
        return found

    monkeypatch.setattr(Ledger, "entries", slowly)
    assert reading.charge(paid.hash) == paid


def test_those_with_an_allowance_see_a_table_as_soon_as_they_have_it(tmp_path):
    cards = written(tmp_path)
    settings = Settings(cards=cards, state=tmp_path / "state", slot=1.0)
    catalogue = Catalogue(settings, Store(tmp_path / "state"))
    served = catalogue.tables["visits"]
    assert catalogue.seen_by(BEN) == [] and catalogue.allowance(served, BEN) is None
    catalogue.ledger.set_allowance("patients", "ben", Limit(rho=Fraction(1)), by="stella")
    assert catalogue.seen_by(BEN) == [served] == catalogue.seen_by(STELLA)
    assert catalogue.allowance(served, STELLA) is None
    catalogue.ledger.set_allowance("patients", "ana", None, by="stella")
    assert catalogue.seen_by(ANA) == []
