"""`lastbit budget`: what is left of a card's table, or of every table of a ledger."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path

import pytest

from lastbit.cli.ledger import BAR, account_heading, budget_rows
from lastbit.errors import BudgetExceeded
from lastbit.ledger.entry import Account, Entry
from lastbit.ledger.ledger import Ledger
from lastbit.privacy import moment_filter
from lastbit.report import answers_left, epsilon_taken, typical_price
from lastbit.tables.card.budget import Budget
from lastbit.tables.plan.cost import Cost
from tests.cli.running import lastbit, read, refused, succeeded
from tests.ledger.books import CANARY, charged, price, small_ledger

CARD = """
[table]
name = "visits"
source = "visits.csv"
neighbours = "add-remove"
[unit]
column = "patient"
max_rows = 3
[budget]
epsilon = {epsilon}
[ledger]
path = "a.ledger"
[columns.patient]
type = "integer"
"""


pytestmark = pytest.mark.usefixtures("folder")


def card(epsilon: str = "1") -> str:
    Path("visits.toml").write_text(CARD.format(epsilon=epsilon), "utf-8")
    return "visits.toml"


def bar(spent: Fraction, whole: Fraction = Fraction(1)) -> str:
    account = Account(
        name="a", budget=Budget(kind="pure", epsilon=whole), spent=Cost(epsilon=spent)
    )
    return budget_rows(account)[0][1]


def test_a_ledger_shows_every_account(folder):
    ledger = small_ledger(folder)
    ledger.account("stays", Budget(kind="zcdp", rho=Fraction(1, 2)))
    ledger.account("walks", None)
    charged(ledger, "q", price("5"), account="walks")
    page = succeeded("budget", "a.ledger")
    assert "█" * 24 + "░" * 8 + "  0.75 spent, 0.25 left of 1" in page
    assert "░" * 32 + "  0 spent, 0.5 left of 0.5" in page
    assert "5 spent, no limit" in page
    assert page.count("Nothing has been asked yet.") == 1
    assert "SELECT q1" in page and "ada" in page
    assert CANARY not in page


def test_a_card_shows_its_own_account_alone(folder):
    ledger = small_ledger(folder)
    ledger.account("stays", None)
    page = succeeded("budget", card())
    assert "visits" in page and "stays" not in page
    assert "ε 0.25 left" in page


def test_a_card_whose_ledger_is_not_there_yet_makes_none(folder):
    page = succeeded("budget", card("2.5"))
    assert "0 spent, 2.5 left of 2.5" in page and "Nothing has been asked yet." in page
    assert sorted(path.name for path in folder.iterdir()) == ["visits.toml"]
    assert read("budget", "visits.toml")["ledger"] is None


def test_json_is_exact(folder):
    ledger = small_ledger(folder)
    charged(ledger, "q9", price("1/12"))
    found = read("budget", card())
    assert found["accounts"] == [
        {
            "account": "visits",
            "kind": "pure",
            "budget": {"epsilon": "1", "delta": "0", "rho": "0"},
            "spent": {"epsilon": "5/6", "delta": "0", "rho": "0"},
            "left": {"epsilon": "1/6", "delta": "0", "rho": "0"},
            "next": {"cost": {"epsilon": "1/12", "delta": "0", "rho": "0"}, "answers": 2},
            "unanswered": [],
        }
    ]
    assert (found["head"], found["card_agrees"]) == (ledger.head, True)


@pytest.mark.parametrize(
    ("budget", "cost", "more"),
    [
        (Budget(kind="pure", epsilon=Fraction(1)), Cost(epsilon=Fraction(1, 10)), 10),
        (
            Budget(kind="approx", epsilon=Fraction(3), delta=Fraction(1, 10**6)),
            Cost(epsilon=Fraction(1), delta=Fraction(3, 10**7)),
            3,
        ),
        (
            Budget(kind="approx", epsilon=Fraction(3), delta=Fraction(1, 10**6)),
            Cost(epsilon=Fraction(1, 10), delta=Fraction(3, 10**7)),
            3,
        ),
        (Budget(kind="zcdp", rho=Fraction(1, 2)), Cost(rho=Fraction(1, 7)), 3),
    ],
)
def test_as_many_more_fit_as_are_said(budget, cost, more):
    account = Account(name="a", budget=budget)
    for left in range(more, 0, -1):
        assert answers_left(account, cost) == left
        assert f"{left} more at" in dict(budget_rows(account, cost))["next"]
        account = account.charged(cost)
    assert answers_left(account, cost) == 0
    assert "does not fit any more" in dict(budget_rows(account, cost))["next"]
    with pytest.raises(BudgetExceeded):
        account.charged(cost)
    assert answers_left(Account(name="a", budget=None), cost) is None
    assert "next" not in dict(budget_rows(Account(name="a", budget=budget), Cost()))


def test_another_budget_on_the_card_is_said_and_set(folder):
    ledger = small_ledger(folder)
    result = lastbit("budget", card("2"))
    assert result.exit_code == 0
    assert "0.25 left of 1" in result.stdout
    assert "lastbit budget visits.toml --set" in result.stderr
    assert read("budget", "visits.toml")["card_agrees"] is False
    assert "1.25 left of 2" in succeeded("budget", "visits.toml", "--set")
    entry = ledger.entries(last=1)[0]
    assert entry.kind == "budget" and entry.who
    assert "is less than what visits has spent" in refused("budget", card("0.5"), "--set")
    assert ledger.head == entry.hash


def test_setting_opens_an_account(folder):
    assert "0 spent, 1 left of 1" in succeeded("budget", card(), "--set")
    assert Ledger.existing("a.ledger").accounts()[0].name == "visits"


def test_what_cannot_be_shown_is_refused(folder):
    small_ledger(folder)
    assert "needs a card" in refused("budget", "a.ledger", "--set")
    assert "is not there" in refused("budget", "missing.ledger")
    assert not Path("missing.ledger").exists()
    Path("b.ledger").write_text(CANARY * 100)
    assert CANARY not in refused("budget", "b.ledger")
    Path("bad.toml").write_text("[table")
    refused("budget", "bad.toml")


def test_a_bar_is_empty_only_if_nothing_is_spent_and_full_only_if_nothing_is_left():
    tiny = Fraction(1, 10**9)
    assert bar(Fraction(0)).count("█") == 0
    assert bar(tiny).count("█") == 1
    assert bar(1 - tiny).count("█") == BAR - 1
    assert bar(Fraction(1)).count("█") == BAR


def test_spent_is_rounded_up_and_left_down():
    odd = Fraction(1, 3) + Fraction(1, 10**40)
    assert "0.333334 spent, 0.666666 left of 1" in bar(odd)


def test_a_plain_terminal_gets_plain_letters(folder, monkeypatch):
    import io

    from rich.console import Console

    from lastbit.cli.output import Facts, page

    class Ascii(io.StringIO):
        encoding = "ascii"

    account = small_ledger(folder).accounts()[0]
    parts = (account_heading(account), Facts(budget_rows(account)))
    text = page(Console(file=Ascii(), width=80), parts)
    assert "epsilon  " + "#" * 24 + "." * 8 in text and text.isascii()


def test_text_of_a_ledger_cannot_steer_the_terminal(folder):
    ledger = small_ledger(folder)
    answer = {"asked": {"sql": "SELECT\n\x1b[2J 1", "query": None}}
    charged(ledger, "q9", price("1/8"), who="a\x1b[31m", record=answer)
    for arguments in (("budget", "a.ledger"), ("ledger", "log", "a.ledger")):
        assert "SELECT ?[2J 1" in succeeded(*arguments)  # which also looks for escapes


def test_open_reservations_are_shown_plainly(tmp_path):
    ledger = small_ledger(tmp_path)
    paid = ledger.reserve(
        "visits", price("1/8"), who="ada", question="q9", plan_digest="p", fingerprint="f",
        words="SELECT q9",
    )  # fmt: skip
    shown = lastbit("budget", str(ledger.path))
    assert "Charged, not answered: entry 7." in shown.output and "SELECT q9" in shown.output
    told = json.loads(lastbit("budget", str(ledger.path), "--json").output)
    assert told["accounts"][0]["unanswered"] == [7]
    log = lastbit("ledger", "log", str(ledger.path)).output
    assert "reserved ε 0.125: SELECT q9" in log
    ledger.settle(paid, {"rows": []})
    assert "not answered" not in lastbit("budget", str(ledger.path)).output
    assert "answered; an earlier entry paid" in lastbit("ledger", "log", str(ledger.path)).output
    assert lastbit("ledger", "verify", str(ledger.path)).exit_code == 0


# ---------------------------------------------------------------- under the moment filter


def filter_card(epsilon: str = "5.1", more: str = "") -> str:
    text = CARD.format(epsilon=f'"{epsilon}"\ndelta = 1e-6\naccounting = "filter"{more}')
    Path("visits.toml").write_text(text, "utf-8")
    return "visits.toml"


def test_an_account_under_the_filter_says_what_fits(folder):
    page = succeeded("budget", filter_card(), "--set")
    assert "an answer of up to ε 5.1, δ 1e-7" in page
    assert "0 spent, 5.1 left of 5.1" in page and "0 spent, 1e-7 left of 1e-7" in page
    assert "ε 0.51 would take ε 0.51; 10 more fit" in page and "order 5.05" in page
    assert "no loss above ε 0 so far, except with probability 1e-6" in page
    ledger = Ledger.existing("a.ledger")
    for number in range(20):
        charged(ledger, f"q{number}", price("0.2"))
    charged(ledger, "r", Cost(rho=Fraction(1, 200)))
    page = succeeded("budget", "visits.toml")
    assert "plain sum  ε 4, ρ 0.005" in page
    kept, words = moment_filter("5.1", "1e-6"), " ".join(page.split())
    spent = 20 * kept.price(epsilon="0.2") + kept.price(rho="1/200")
    fit = kept.answers_left(spent, kept.price(epsilon="0.2"))
    assert re.search(rf"next ε 0\.2 would take ε 0\.1\d+; {fit} more fit", words)
    assert f"odometer no loss above ε {float(kept.odometer(spent)):.3f}" in words
    assert "every entry fits" in succeeded("ledger", "verify", "a.ledger")


def test_the_filter_in_json_is_exact(folder):
    ledger = small_ledger(folder)
    found = read("budget", filter_card(), "--set")
    account = found["accounts"][0]
    assert found["card_agrees"] is True and account["kind"] == "filter"
    assert account["budget"] == {"epsilon": "51/10", "delta": "1/1000000", "rho": "0"}
    assert account["spent"]["epsilon"] == "3/4" and set(account["left"]) == set(account["spent"])
    kept = moment_filter("5.1", "1e-6")
    spent = 3 * kept.price(epsilon="1/4")
    each = kept.price(epsilon="1/4")
    assert account["filter"] == {
        "order": "101/20",
        "delta_kept": "1/10000000",
        "limit": str(kept.limit),
        "epsilon_spent": "3/4",
        "odometer": "3/4",
        "next": {
            "cost": price("1/4").to_json(),
            "epsilon": "1/4",
            "answers": kept.answers_left(spent, each),
        },
    }
    assert account["reopened_after"] == 3
    assert ledger.problems() == []


def test_an_account_is_reopened_under_the_filter_and_stays_there(folder):
    ledger = small_ledger(folder)
    result = lastbit("budget", filter_card())
    assert "0.25 left of 1" in result.stdout and "--set" in result.stderr
    assert "not because of what was answered" in result.stderr
    page = succeeded("budget", "visits.toml", "--set")
    assert "0.75 spent, 4.35 left of 5.1" in page and "Caution: 3 answers were given" in page
    log = " ".join(succeeded("ledger", "log", "a.ledger").split())
    assert "budget ε 5.1, δ 1e-6, by the filter, reopened" in log
    assert "kept by the filter" in refused("budget", card("2"), "--set")
    assert "left of 9" in succeeded("budget", filter_card("9"), "--set")
    assert "order 5.05" in succeeded("budget", "visits.toml")  # as the account was opened
    words = refused("budget", filter_card("9", "\norder = 3"), "--set")
    assert "fixed before its first answer" in " ".join(words.split())
    assert "is less than what visits has spent" in refused("budget", filter_card("0.1"), "--set")
    assert ledger.problems() == []


def test_a_bar_of_the_filter_is_full_only_if_nothing_is_left():
    budget = Budget(kind="filter", epsilon=Fraction(1), delta=Fraction(1, 10**6))
    account = Account(name="a", budget=budget)
    assert dict(budget_rows(account))["ε"].count("█") == 0
    account = account.charged(price("0.99999"))
    assert dict(budget_rows(account))["ε"].count("█") == BAR - 1
    account = account.charged(price("0.00001"))
    assert dict(budget_rows(account))["ε"].count("█") == BAR
    assert dict(budget_rows(account))["next"] == "ε 0.1 does not fit any more"


def test_the_typical_price_is_the_median_of_those_paid():
    budget = Budget(kind="filter", epsilon=Fraction(5), delta=Fraction(1, 10**6))
    account = Account(name="a", budget=budget)
    assert typical_price(account, ()) == price("1/2")
    paid = [price("0.01"), Cost(rho=Fraction(1, 10)), price("0.2"), price("0.3"), price("3")]
    entries = [Entry(kind="charge", cost=cost) for cost in paid]
    assert typical_price(account, entries) == price("0.3")  # a rho of 0.1 costs more than that
    assert typical_price(account, [*entries, Entry(kind="settled")][:4]) == price("0.2")


def test_the_first_rho_says_what_it_takes():
    """Plain sums no longer hold after it, and moments alone count."""
    budget = Budget(kind="filter", epsilon=Fraction(5), delta=Fraction(1, 10**6))
    account = Account(name="a", budget=budget).charged(price("0.1"))
    taken = epsilon_taken(account, Cost(rho=Fraction(1, 200)))
    assert taken is not None and taken > 2
    after = account.charged(Cost(rho=Fraction(1, 200)))
    again = epsilon_taken(after, Cost(rho=Fraction(1, 200)))
    assert again is not None and again < Fraction(1, 10)
    assert epsilon_taken(account, price("9")) is None


def test_a_new_account_under_the_filter_has_no_caution(folder):
    assert "Caution" not in succeeded("budget", filter_card(), "--set")
    assert "reopened_after" not in read("budget", "visits.toml")["accounts"][0]
