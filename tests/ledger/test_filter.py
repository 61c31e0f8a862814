"""Accounts that the moment filter keeps: all prices together, reopened, changed, and forged."""

import json
import random
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from lastbit.errors import BudgetExceeded, InvalidParameter, LedgerDamaged
from lastbit.ledger.deciding import leads_to, with_budget
from lastbit.ledger.entry import Account, Entry, Malformed
from lastbit.ledger.ledger import Ledger
from lastbit.ledger.making import VERSION
from lastbit.ledger.safekeeping import restored
from lastbit.ledger.storage import NEWEST
from lastbit.privacy import NOTHING_SPENT, MomentCost, moment_filter
from lastbit.tables.card.budget import Budget, budgets_agree
from lastbit.tables.plan.cost import Cost
from tests.ledger.books import ONE, changed, charged, new_ledger, price, small_ledger
from tests.ledger.test_chain import found, rewrite
from tests.ledger.test_short_sums import OLD, hostile

KEPT = Budget(kind="filter", epsilon=Fraction("5.1"), delta=Fraction(1, 10**6))
SMALL = Budget(kind="filter", epsilon=Fraction(1), delta=Fraction(1, 10**6))
RHO = Cost(rho=Fraction(1, 200))

costs = st.one_of(
    st.sampled_from(["0.1", "1/3", "1/97", "2"]).map(price),
    st.sampled_from([("0.1", "1e-9"), ("0.5", "3e-8")]).map(lambda pair: price(*pair)),
    st.sampled_from([Fraction(1, 200), Fraction(1, 20), Fraction(1, 10**9)]).map(
        lambda rho: Cost(rho=rho)
    ),
)


def filtered(place: Path | str, budget: Budget = KEPT) -> Ledger:
    """Opened, a budget, and three charges of three kinds: entries 1 to 5."""
    ledger = new_ledger(place)
    ledger.account("visits", budget)
    charged(ledger, "q1", price("0.1"))
    charged(ledger, "q2", price("0.1", "1e-9"))
    charged(ledger, "q3", RHO)
    return ledger


def version(ledger: Ledger) -> int:
    with closing(sqlite3.connect(ledger.path)) as connection:
        return connection.execute("PRAGMA user_version").fetchone()[0]


# ---------------------------------------------------------------- rules


@given(st.lists(costs, max_size=40))
def test_an_account_takes_what_its_filter_allows_and_nothing_else(asked):
    kept, spent = moment_filter("5.1", "1e-6"), NOTHING_SPENT
    account = Account(name="visits", budget=KEPT)
    assert account.spent == spent and account.unused
    for cost in asked:
        more = kept.price(epsilon=cost.epsilon, delta=cost.delta, rho=cost.rho)
        fits = kept.allows(spent, more)
        try:
            after = account.charged(cost)
            assert fits and leads_to(account, after, cost)
            account, spent = after, spent + more
        except BudgetExceeded:
            assert not fits
        assert account.spent == spent and kept.within(spent)


def test_plain_sums_are_not_taken_for_moments():
    for budget, spent in ((KEPT, price("0.1")), (ONE, NOTHING_SPENT), (None, NOTHING_SPENT)):
        with pytest.raises(InvalidParameter, match="counted in another way"):
            Account(name="visits", budget=budget, spent=spent)
    with pytest.raises(InvalidParameter, match="plain sums"):
        ONE.filter()
    with pytest.raises(InvalidParameter, match="needs the charges so far"):
        with_budget(Account(name="visits", budget=ONE, spent=price("0.1")), KEPT)


def test_a_hundred_answers_at_a_tenth_fit():
    account = Account(name="visits", budget=KEPT)
    for _ in range(100):
        account = account.charged(price("0.1"))
    with pytest.raises(BudgetExceeded, match="the filter of visits leaves at most epsilon = 0"):
        account.charged(price("0.1"))
    assert account.spent.epsilon == 10


def test_what_is_left_is_what_one_answer_may_cost():
    account = Account(name="visits", budget=SMALL).charged(price("1/3"))
    left = account.remaining
    assert isinstance(left, MomentCost)
    assert left.epsilon == Fraction(2, 3)  # plain sums leave more than moments here
    account.charged(Cost(epsilon=left.epsilon))
    with pytest.raises(BudgetExceeded):
        account.charged(Cost(epsilon=left.epsilon + Fraction(1, 10**6)))
    assert left.delta == SMALL.delta / 10
    with pytest.raises(BudgetExceeded, match="delta kept"):
        account.charged(price("0.01", "2e-7"))


def test_an_account_with_something_left_in_moments_says_how_much():
    account = Account(name="visits", budget=KEPT).charged(RHO)
    left = account.remaining
    assert isinstance(left, MomentCost) and left.epsilon < KEPT.epsilon
    account.charged(Cost(epsilon=left.epsilon))
    with pytest.raises(BudgetExceeded):
        account.charged(Cost(epsilon=left.epsilon + Fraction(1, 10**4)))


def test_sums_stay_short_however_hostile_the_prices():
    source, account = random.Random(5), Account(name="visits", budget=KEPT)
    for turn in range(2000):
        amount = hostile(source) / 2**40 if turn % 5 else Fraction(1, 10**12)
        account = account.charged(Cost(rho=amount) if turn % 2 else Cost(epsilon=amount))
    entry = Entry(kind="note", account="visits", spent=account.spent, budget=account.budget)
    assert len(entry.text) < 2_000
    assert Entry.read(entry.text) == entry


def test_order_and_share_stay_when_the_budget_changes():
    account = Account(name="visits", budget=KEPT).charged(price("0.1"))
    more = with_budget(account, replace(KEPT, epsilon=Fraction(8)))
    assert more.budget is not None and account.budget is not None
    assert (
        more.budget.order
        == account.budget.order
        != replace(KEPT, epsilon=Fraction(8)).fixed().order
    )
    assert more.spent == account.spent
    again = with_budget(account, replace(KEPT, delta=Fraction(1, 10**5)))
    assert again.budget is not None and again.budget.delta_kept == Fraction(1, 10**7)
    for other in (
        replace(KEPT, order=Fraction(3)),
        replace(KEPT, delta_kept=Fraction(1, 10**8)),
    ):
        with pytest.raises(InvalidParameter, match="fixed before its first answer"):
            with_budget(account, other)
    for plain in (None, ONE, Budget(kind="zcdp", rho=Fraction(9))):
        with pytest.raises(InvalidParameter, match="kept by the filter"):
            with_budget(account, plain)


def test_a_budget_below_what_is_spent_is_refused_with_the_least_one():
    account = Account(name="visits", budget=KEPT)
    for _ in range(60):
        account = account.charged(price("0.1"))
    with pytest.raises(InvalidParameter, match=r"declare epsilon = 3\.\d+ or more") as refusal:
        with_budget(account, replace(KEPT, epsilon=Fraction(2)))
    least = refusal.value.remedy.split()[3]
    closed = with_budget(account, replace(KEPT, epsilon=Fraction(least)))
    with pytest.raises(BudgetExceeded):
        closed.charged(price("0.1"))


def test_a_card_need_not_repeat_what_the_account_has_fixed():
    kept = replace(KEPT, order=Fraction(4), delta_kept=Fraction(0)).fixed()
    assert budgets_agree(kept, KEPT) and not budgets_agree(kept, SMALL)
    assert budgets_agree(None, None) and not budgets_agree(kept, None)
    assert not budgets_agree(None, KEPT) and not budgets_agree(ONE, KEPT)
    assert not budgets_agree(kept, replace(KEPT, order=Fraction(5)))


# ---------------------------------------------------------------- the file


def test_one_account_takes_every_kind_of_price(place):
    ledger = filtered(place)
    assert ledger.problems() == []
    spent = ledger.spent("visits")
    assert (spent.epsilon, spent.delta, spent.rho) == (
        Fraction(1, 5), Fraction(1, 10**9), Fraction(1, 200),
    )  # fmt: skip
    entry = ledger.entries(last=1)[0]
    assert json.loads(entry.text)["format"] == "lastbit ledger 3"
    assert entry.state == ledger.accounts()[0]
    assert charged(ledger, "q1", price("0.1")).sequence == 3  # the same again, at no charge
    paid = ledger.reserve(
        "visits", RHO, who="ada", question="r", plan_digest="p" * 64, fingerprint="f" * 64
    )
    assert ledger.settle(paid, {"rows": []}).kind == "settled"
    ledger.note("a remark", account="visits")
    assert ledger.problems() == [] and ledger.account("visits", KEPT).spent.rho == Fraction(1, 100)


def test_a_file_is_of_version_3_only_from_the_first_filter_on(tmp_path):
    ledger = small_ledger(tmp_path)
    assert version(ledger) == VERSION == 2
    ledger.account("stays", SMALL)
    assert version(ledger) == 3
    assert [e.version for e in ledger.entries()] == [1] * 6 + [3]
    ledger.account("walks", replace(SMALL, kind="gaussian"))
    assert version(ledger) == NEWEST - 3 == 4
    changed(ledger.path, "PRAGMA user_version = 8")
    with pytest.raises(LedgerDamaged, match="version 8, and this lastbit knows 7"):
        ledger.accounts()


def test_a_backup_keeps_the_filter(place, tmp_path):
    ledger = filtered(place)
    ledger.reserve(
        "visits", RHO, who="ada", question="r", plan_digest="p" * 64, fingerprint="f" * 64
    )
    ledger.backup(tmp_path / "b.ledger")
    back = restored(tmp_path / "b.ledger", tmp_path / "c.ledger")
    assert back.spent("visits") == ledger.spent("visits")
    assert back.problems() == [] and back.unanswered("visits") == ()


def test_the_budget_is_not_exceeded(place):
    ledger = filtered(place, SMALL)
    head = ledger.head
    with pytest.raises(BudgetExceeded):
        charged(ledger, "q9", Cost(rho=Fraction(1, 2)))
    assert ledger.head == head


# ---------------------------------------------------------------- reopening


def test_an_account_of_plain_sums_is_reopened(place):
    ledger = small_ledger(place)
    after = ledger.set_budget("visits", KEPT, who="ben")
    each = moment_filter("5.1", "1e-6").price(epsilon="1/4")
    assert after.spent == 3 * each and ledger.account("visits", KEPT) == after
    entry = ledger.entries(last=1)[0]
    assert (entry.kind, entry.who, entry.version) == ("budget", "ben", 3)
    assert entry.words == "kept by the moment filter from here on; charges before it: 3"
    assert ledger.problems() == []
    assert ledger.set_budget("visits", KEPT) == after  # and nothing more is written
    assert ledger.head == entry.hash
    charged(ledger, "q4", RHO)
    ledger.set_budget("visits", replace(KEPT, epsilon=Fraction(9)))
    assert ledger.problems() == []
    with pytest.raises(InvalidParameter, match="not the one that the ledger has"):
        ledger.account("visits", ONE)
    with pytest.raises(InvalidParameter, match="kept by the filter"):
        ledger.set_budget("visits", ONE)


def test_reservations_count_when_an_account_is_reopened(place):
    ledger = small_ledger(place)
    ledger.reserve(
        "visits", price("1/4"), who="ada", question="r", plan_digest="p" * 64, fingerprint="f" * 64
    )
    assert ledger.set_budget("visits", KEPT).spent.epsilon == 1
    assert ledger.problems() == []


def test_accounts_in_rho_and_without_limit_are_reopened(place):
    ledger = new_ledger(place)
    ledger.account("stays", Budget(kind="zcdp", rho=Fraction(1)))
    charged(ledger, "q", RHO, account="stays")
    ledger.account("walks", None)
    charged(ledger, "q", price(4), account="walks")
    assert ledger.set_budget("stays", KEPT).spent.rho == Fraction(1, 200)
    assert ledger.set_budget("walks", KEPT).spent.epsilon == 4
    assert ledger.problems() == []


def test_reopening_is_refused_if_more_is_spent(place):
    ledger = new_ledger(place)
    ledger.account("visits", None)
    charged(ledger, "q", price(1, "1e-3"))
    charged(ledger, "r", price(1))
    head = ledger.head
    with pytest.raises(InvalidParameter, match=r"delta_kept = 0\.001 or more"):
        ledger.set_budget("visits", KEPT)
    wide = replace(KEPT, delta=Fraction(1, 10), delta_kept=Fraction(1, 1000))
    with pytest.raises(InvalidParameter, match=r"declare epsilon = \d"):
        ledger.set_budget("visits", replace(wide, epsilon=Fraction(1, 10)))
    assert ledger.head == head
    assert ledger.set_budget("visits", wide).spent.delta == Fraction(1, 1000)


def test_an_old_ledger_with_long_sums_is_reopened(tmp_path):
    shutil.copy(OLD, tmp_path / "old.ledger")
    ledger = Ledger.open(tmp_path / "old.ledger")
    for account in ledger.accounts():
        budget = Budget(
            kind="filter", epsilon=Fraction(10**6), delta=Fraction(1, 2), delta_kept=Fraction(1, 4)
        )
        after = ledger.set_budget(account.name, budget)
        assert after.spent.epsilon >= account.spent.epsilon
        assert after.spent.rho >= account.spent.rho
        assert len(ledger.entries(last=1)[0].text) < 4_000
    assert ledger.problems() == []


# ---------------------------------------------------------------- forged


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("moment", lambda spent: replace(spent, moment=spent.moment - Fraction(1, 2**64))),
        ("more", lambda spent: replace(spent, moment=spent.moment + 1)),
        ("epsilon", lambda spent: replace(spent, epsilon=Fraction(1, 10))),
        ("delta", lambda spent: replace(spent, delta=Fraction(0))),
        ("rho", lambda spent: replace(spent, rho=Fraction(0))),
    ],
)
def test_a_forged_total_is_seen(place, field, change):
    ledger = filtered(place)
    rewrite(ledger, 5, spent=change(ledger.entry(5).spent))
    found(ledger, "entry 5 exceeds the budget, or states the wrong total")


def test_a_forged_filter_is_seen(place):
    ledger = filtered(place)
    budget = ledger.entry(5).budget
    assert budget is not None and budget.order is not None
    for forged in (
        replace(budget, order=budget.order / 2),
        replace(budget, delta_kept=Fraction(0)),
        replace(budget, epsilon=Fraction(9)),
    ):
        rewrite(ledger, 5, budget=forged)
        found(ledger, "entry 5")
        rewrite(ledger, 5, budget=budget)
    assert ledger.problems() == []


@pytest.mark.parametrize(
    "forgery",
    [
        {"spent": NOTHING_SPENT},  # what was spent before is forgotten
        {"spent": MomentCost(epsilon=Fraction(3, 4))},
        {"budget": replace(KEPT, epsilon=Fraction(1, 10)).fixed()},
        {"budget": replace(KEPT, order=Fraction(1)).fixed()},  # another order, the old moments
    ],
)
def test_a_forged_reopening_is_seen(place, forgery):
    ledger = small_ledger(place)
    ledger.set_budget("visits", KEPT)
    rewrite(ledger, 7, **forgery)
    found(ledger, "entry 7")


def test_a_forged_change_of_order_is_seen(place):
    ledger = filtered(place)
    ledger.set_budget("visits", replace(KEPT, epsilon=Fraction(9)))
    rewrite(ledger, 6, budget=replace(KEPT, epsilon=Fraction(9)).fixed())
    found(ledger, "entry 6 exceeds the budget")


@settings(max_examples=30)
@given(st.data())
def test_texts_that_mix_the_two_kinds_of_account_are_not_entries(data):
    state = Account(name="visits", budget=KEPT).charged(RHO)
    entry = Entry(kind="note", account="visits", spent=state.spent, budget=state.budget, when="w")
    fields = json.loads(entry.text)
    spoil = data.draw(
        st.sampled_from(
            [
                lambda f: f["spent"].pop("moment"),
                lambda f: f["spent"].update(moment="-1"),
                lambda f: f["spent"].update(moment="1.5"),
                lambda f: f["spent"].update(more="1"),
                lambda f: f["budget"].pop("order"),
                lambda f: f["budget"].update(order="0"),
                lambda f: f["budget"].update(order="None"),
                lambda f: f["budget"].update(delta_kept=f["budget"]["delta"]),
                lambda f: f["budget"].update(kind="approx"),
                lambda f: f.update(format="lastbit ledger 1"),
                lambda f: f.update(format="lastbit ledger 4"),
                lambda f: f.update(budget=None),
                lambda f: f.update(spent=None),
            ]
        )
    )
    spoil(fields)
    with pytest.raises(Malformed):
        Entry.read(json.dumps(fields, sort_keys=True, separators=(",", ":")))


def test_a_single_price_is_within_a_budget_kept_by_the_filter_if_the_filter_says_so():
    """What an answer without a ledger is held against."""
    assert price("5.1").within(KEPT) and not price("5.11").within(KEPT)
    assert Cost(rho=Fraction(2, 5)).within(KEPT) and not Cost(rho=Fraction(1)).within(KEPT)
    assert price("0.1", "1e-7").within(KEPT) and not price("0.1", "2e-7").within(KEPT)


def test_a_delta_below_the_share_that_is_kept_is_another_budget():
    declared = Budget(kind="filter", epsilon=Fraction(3), delta=Fraction(1, 10**6))
    less = replace(declared, delta=Fraction(1, 10**8))
    assert not budgets_agree(declared.fixed(), less)
    with pytest.raises(InvalidParameter, match="share is fixed"):
        less.fixed(declared.fixed())
