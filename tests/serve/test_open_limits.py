"""Cards whose limits are left out: the desk answers by a profile on record, or refuses unpaid."""

from fractions import Fraction

import pytest

from lastbit.errors import InvalidParameter
from lastbit.ledger import Ledger, user_name
from lastbit.release import Table
from lastbit.serve.planning import card_at, payable_plan, plan_of, plan_to_pay
from lastbit.serve.questions import Question, Refusal
from lastbit.tables import Cost, read_card, rows_of
from tests.serve.desks import ANA, COUNT, running, written

MEAN = "SELECT region, COUNT(*) AS n, AVG(cost) AS c FROM visits GROUP BY region"


def open_card(folder):
    (path,) = cards = written(folder)
    text = path.read_text("utf-8").replace("max_rows = 3\n", "").replace("bounds = [0, 100]\n", "")
    path.write_text(text, "utf-8")
    ledger = Ledger.existing(folder / "hospital.ledger")
    ledger.set_principal(user_name(), "steward", by="stella")
    return cards, Table(rows=rows_of(read_card(path)))


def test_plans_by_profiles_on_record(tmp_path):
    (path,), table = open_card(tmp_path)
    card, ledger = card_at(path), Ledger.existing(tmp_path / "hospital.ledger")
    data = ledger.accepted_data("patients", "visits")
    question = Question(sql=MEAN, epsilon="1")
    guessed = plan_of(question, card)
    assert guessed.card.max_rows == 10 and guessed.cost.epsilon == Fraction(4, 5)
    with pytest.raises(InvalidParameter, match="profile on the card --column cost, or ask"):
        payable_plan(question, card, ledger, data)
    units = "SELECT region, COUNT(DISTINCT patient) AS n FROM visits GROUP BY region"
    with pytest.raises(InvalidParameter, match="profile on the card --keys region, or ask"):
        payable_plan(Question(sql=units, epsilon="1"), card, ledger, data)
    table.profile(epsilon="0.5", columns=["cost"])
    plan = payable_plan(question, card, ledger, data)
    assert plan.cost.epsilon == 1 and not plan.card.max_rows_open
    assert plan.chosen and plan.before == Cost()
    assert plan_to_pay(question, card, ledger, data, ()).cost.epsilon == 1


@pytest.mark.evidence
def test_a_desk_answers_by_the_profile_or_says_how_to_buy_one(tmp_path):
    cards, table = open_card(tmp_path)
    with running(cards) as desk:
        before = desk.ledger.head
        for sql in (COUNT, MEAN):
            with pytest.raises(Refusal, match="lastbit card profile") as refused:
                desk.asked(sql)
            assert "nothing was charged" in str(refused.value.detail)
            with pytest.raises(Refusal, match="lastbit card profile"):
                desk.do(desk.desk.preview("visits", Question(sql=sql, epsilon="1"), ANA))
        assert desk.ledger.head == before
        table.profile(epsilon="0.1")
        assert desk.answer(COUNT).state == "answered"
        with pytest.raises(Refusal, match="--column cost"):
            desk.asked(MEAN)
        table.profile(epsilon="0.1", columns=["cost"])
        shown = desk.do(desk.desk.preview("visits", Question(sql=MEAN, epsilon="1"), ANA))
        assert shown.cost["epsilon"] == "1"
        assert any("From the profile, lastbit chose" in words for _, words in shown.facts)
        first = desk.answer(MEAN)
        assert first.state == "answered" and first.cost["epsilon"] == "1"
        # a better profile later: what is on record is still found, at no charge
        table.profile(epsilon=5, columns=["cost"], fresh=True)
        again = desk.answer(MEAN)
        assert again.entry == first.entry and again.cost is None


@pytest.mark.evidence
def test_a_reservation_is_answered_by_the_profile_it_was_paid_for(tmp_path):
    cards, table = open_card(tmp_path)
    table.profile(epsilon="0.01", columns=["cost"])
    with running(cards, slot=4.0) as desk:
        job = desk.asked(MEAN)
        table.profile(epsilon=9, columns=["cost"], fresh=True)
        assert desk.finished(job).state == "answered"
