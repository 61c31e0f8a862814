"""Whatever is done to a ledger in a file and to one in PostgreSQL, both hold the same entries."""

import itertools
import shutil
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from lastbit.errors import LastbitError
from lastbit.ledger.entry import Entry
from lastbit.ledger.ledger import Ledger
from lastbit.ledger.safekeeping import anchor_noted, anchored, restored
from lastbit.tables.card.budget import Budget
from lastbit.tables.plan.cost import Cost
from tests.ledger.books import ONE, changed, charged, price, record, small_ledger
from tests.ledger.test_reservations import reserved
from tests.ledger.test_short_sums import HEAD, OLD

_NUMBERS = itertools.count(1)
ACCOUNTS = st.sampled_from(["visits", "stays", "été", "a\\b"])
QUESTIONS = st.sampled_from(["q1", "q2", "q3"])
PRICES = st.sampled_from(
    [price("1/3"), price("1/8"), price("1/8", "1e-9"), price(5), Cost(rho=Fraction(1, 50))]
)
BUDGETS = st.sampled_from(
    [
        None,
        ONE,
        Budget(kind="pure", epsilon=Fraction(1, 2)),
        Budget(kind="approx", epsilon=Fraction(3), delta=Fraction(1, 10**6)),
        Budget(kind="zcdp", rho=Fraction(1)),
        Budget(kind="filter", epsilon=Fraction(3), delta=Fraction(1, 10**6)),
        Budget(kind="gaussian", epsilon=Fraction(3), delta=Fraction(1, 10**6)),
    ]
)


class BothStorages(RuleBasedStateMachine):
    """Each call is made to both; what comes back is the same, and so is what is kept."""

    folder: str
    database: str

    @initialize()
    def opened(self):
        number = next(_NUMBERS)
        file = Ledger.open(f"{self.folder}/{number}.ledger")
        shared = Ledger.init(f"{self.database}&schema=both_{number}")
        self.ledgers = (file, shared)
        self.paid: list[list[Entry]] = [[], []]

    def both(self, work):
        """What both say; references to entries are by their place, since hashes hold the time."""
        said = []
        for which, ledger in enumerate(self.ledgers):
            try:
                said.append(work(ledger, self.paid[which]))
            except (LastbitError, IndexError) as error:
                text = str(error).replace(str(ledger.path), "PLACE")
                said.append(f"{type(error).__name__}: {text}")
        assert said[0] == said[1]

    @rule(account=ACCOUNTS, budget=BUDGETS)
    def account(self, account, budget):
        self.both(lambda ledger, _: ledger.account(account, budget))

    @rule(account=ACCOUNTS, budget=BUDGETS)
    def set_budget(self, account, budget):
        self.both(lambda ledger, _: ledger.set_budget(account, budget, who="ada"))

    @rule(account=ACCOUNTS, question=QUESTIONS, cost=PRICES, fresh=st.booleans())
    def charge(self, account, question, cost, fresh):
        self.both(
            lambda ledger, _: (
                charged(
                    ledger, question, cost, account=account, fresh=fresh, gaussian_noise=True
                ).sequence
            )
        )

    @rule(account=ACCOUNTS, question=QUESTIONS, cost=PRICES, who=st.sampled_from([None, "\0é'"]))
    def reserve(self, account, question, cost, who):
        def work(ledger, paid):
            found = ledger.reserve(
                account, cost, who=who, question=question, plan_digest="p", fingerprint="f"
            )
            paid.append(found)
            return found.sequence, found.resumed, found.record is None

        self.both(work)

    @rule(which=st.integers(-3, -1))
    def settle(self, which):
        self.both(
            lambda ledger, paid: (
                ledger.settle(replace(paid[which], record=None), record("q")).sequence
            )
        )

    @rule(which=st.integers(-3, -1))
    def fail(self, which):
        self.both(
            lambda ledger, paid: (
                ledger.fail(replace(paid[which], record=None), words="no answer").sequence
            )
        )

    @rule(words=st.sampled_from(["a note", "\0 \\u0000 \\\\u0000 'é'"]))
    def note(self, words):
        self.both(lambda ledger, _: ledger.note(words, who="ben").sequence)

    @invariant()
    def same(self):
        if not hasattr(self, "ledgers"):
            return
        first, second = ([plain(entry) for entry in one.entries()] for one in self.ledgers)
        assert first == second
        file, shared = self.ledgers
        assert file.accounts() == shared.accounts()

    def teardown(self):
        for ledger in getattr(self, "ledgers", ()):
            assert ledger.problems() == []


def plain(entry):
    """Without what must differ: the time, the secret, and hashes, which hold both."""
    return replace(
        entry, when="", previous="", secret=None, reservation=entry.reservation and "one"
    )


def test_both_storages_keep_the_same_entries(database, tmp_path, extent):
    """Only messages name the place; everything else is equal, call by call and entry by entry."""

    class Here(BothStorages):
        pass

    Here.folder, Here.database = str(tmp_path), database
    Here.TestCase.settings = settings(
        max_examples=extent.generated(4, 40), stateful_step_count=20, deadline=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    Here.TestCase().runTest()


# ---------------------------------------------------------------- from one place to another


@pytest.fixture
def file(tmp_path):
    return small_ledger(tmp_path)


def test_a_copy_keeps_every_entry_and_voids_what_is_open(file, address, tmp_path):
    paid = reserved(file, "open", price("1/8"))
    shared = restored(file.path, address, who="ada", words="copied from a ledger")
    assert [e.hash for e in shared.entries()][:-2] == [e.hash for e in file.entries()]
    assert [e.kind for e in shared.entries(last=2)] == ["note", "voided"]
    assert shared.secret == file.secret and shared.opened == file.opened
    assert shared.accounts() == file.accounts() and shared.problems([file.head]) == []
    assert shared.recorded("visits", "q1") == file.recorded("visits", "q1")
    assert shared.answer_to(paid) is None and shared.unanswered("visits") == ()
    shared.settle(reserved(shared, "more", price("1/8")), record("more"))
    back = restored(shared.path, tmp_path / "back", words="copied from a ledger")
    assert [e.hash for e in back.entries()][:-1] == [e.hash for e in shared.entries()]
    assert back.problems([file.head, shared.head]) == []


def test_an_old_ledger_with_long_sums_goes_to_a_server_and_is_charged_there(address, tmp_path):
    shutil.copy(OLD, tmp_path / "old.ledger")
    old = Ledger.existing(tmp_path / "old.ledger")
    old.backup(tmp_path / "copy.ledger")
    assert Ledger.existing(tmp_path / "copy.ledger").problems([HEAD]) == []
    shared = restored(old.path, address)
    for ledger in (old, shared):
        ledger.settle(reserved(ledger, "new", price("1/97")), record("new"))
    assert shared.accounts() == old.accounts() and shared.problems([HEAD]) == []


def test_what_does_not_fit_is_not_copied(file, address):
    changed(file.path, "UPDATE entries SET record = '{}' WHERE sequence = 3")
    with pytest.raises(LastbitError, match="is not restored: entry 3"):
        restored(file.path, address)
    with pytest.raises(LastbitError, match="holds no ledger"):
        Ledger.open(address)


# ---------------------------------------------------------------- anchors


@pytest.fixture(params=["file", "sqlite", "postgres"])
def anchor(request, tmp_path):
    """Three places in which a head is noted: lines of a file, and other ledgers."""
    if request.param == "file":
        return tmp_path / "heads.txt"
    if request.param == "sqlite":
        return Ledger.open(tmp_path / "other.ledger").path
    return Ledger.init(request.getfixturevalue("address") + "_anchor").path


def test_a_rewritten_or_shortened_chain_is_seen_by_an_anchor(place, anchor):
    ledger = small_ledger(place)
    with pytest.raises(LastbitError, match="has no line of this ledger"):
        anchored(ledger, anchor)
    first = anchor_noted(ledger, anchor, who="ada")
    charged(ledger, "q9", price("1/8"))
    assert anchor_noted(ledger, anchor) == ledger.entries(last=1)[0]
    assert anchored(ledger, anchor) == [first.hash, ledger.head]
    assert ledger.problems(anchored(ledger, anchor)) == []
    last = ledger.entry(7)
    forged = replace(last, who="somebody else", record=None)
    changed(
        ledger.path, "UPDATE entries SET text = ?, hash = ? WHERE sequence = 7",
        values=(forged.text, forged.hash),
    )  # fmt: skip
    assert ledger.problems() == []  # the chain alone does not tell
    assert any("was rewritten" in words for words in ledger.problems(anchored(ledger, anchor)))
    with pytest.raises(LastbitError, match="is not anchored: no entry has the hash"):
        anchor_noted(ledger, anchor)


def test_what_is_no_anchor_is_refused(file, tmp_path):
    (tmp_path / "other.txt").write_text("precious\n")
    with pytest.raises(LastbitError, match="is a file of something else"):
        anchor_noted(file, tmp_path / "other.txt")
    assert (tmp_path / "other.txt").read_text() == "precious\n"
    with pytest.raises(LastbitError, match="is the ledger itself"):
        anchor_noted(file, file.path)
    with pytest.raises(LastbitError, match="cannot be written"):
        anchor_noted(file, tmp_path / "missing" / "heads.txt")
    other = Ledger.open(tmp_path / "second.ledger")
    anchor_noted(other, tmp_path / "heads.txt")
    with pytest.raises(LastbitError, match="has no line of this ledger"):
        anchored(file, tmp_path / "heads.txt")
    # one that was made anew in the place of the noted one is not noted, as if it were the same
    with pytest.raises(LastbitError, match="none of this one: was it replaced"):
        anchor_noted(file, tmp_path / "heads.txt")
    anchor_noted(file, tmp_path / "heads.txt", another=True)
    assert anchored(file, tmp_path / "heads.txt") == [file.head]
    anchor_noted(file, tmp_path / "heads.txt")
