"""The books of a run: paid once, counted before each step, for whoever takes it."""

import copy
import os
import pickle
import signal
import subprocess
import sys
import threading

import pytest

from lastbit.errors import BudgetExceeded, InvalidParameter, LastbitError
from lastbit.ledger import Ledger
from lastbit.tables import Budget
from lastbit.training import start_run, training_plan

PLAN = training_plan(examples=100, batch=10, steps=20, noise_multiplier=2, delta="1e-6")
BUDGET = Budget(epsilon=10, delta="1e-5")


def started(folder, *, plan=PLAN, **more):
    return start_run(
        plan, name="digits", ledger=folder / "l.ledger", account="digits", budget=BUDGET, **more
    )


def spent(folder):
    return Ledger.open(folder / "l.ledger").spent("digits")


def test_the_whole_price_is_charged_before_the_first_step(folder):
    run = started(folder)
    assert spent(folder) == PLAN.price
    assert run.steps_left == 20
    assert run.entry.cost == PLAN.price
    assert [run.take_step() for _ in range(20)] == list(range(1, 21))
    with pytest.raises(BudgetExceeded, match="digits has taken the 20 steps it paid for"):
        run.take_step()
    assert spent(folder) == PLAN.price


def test_a_resumed_run_is_not_charged_and_goes_on_where_claims_end(folder):
    run = started(folder, block=6)
    assert [run.take_step() for _ in range(7)] == [1, 2, 3, 4, 5, 6, 7]
    again = started(folder, block=6)  # the first one is dead: its block ends at 12
    assert again.steps_left == 8
    assert [again.take_step() for _ in range(8)] == list(range(13, 21))
    with pytest.raises(BudgetExceeded):
        again.take_step()
    assert spent(folder) == PLAN.price


def test_two_at_once_share_the_steps_and_take_none_twice(folder):
    runs = [started(folder, block=1) for _ in range(3)]
    taken: list[int] = []

    def take(run):
        try:
            while True:
                taken.append(run.take_step())
        except BudgetExceeded:
            pass

    threads = [threading.Thread(target=take, args=(run,)) for run in runs for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == list(range(1, 21))


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, {root!r})
from tests.training.test_run import started
run = started(Path({folder!r}), block=4)
for _ in range(int(sys.argv[1])):
    print(run.take_step(), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_run_that_is_killed_again_and_again_takes_no_step_twice(folder, request):
    script = KILLED.format(root=str(request.config.rootpath), folder=str(folder))
    taken: list[int] = []
    for count in (1, 4, 3):
        ran = subprocess.run(
            [sys.executable, "-c", script, str(count)], capture_output=True, text=True, check=False
        )
        assert ran.returncode == -signal.SIGKILL, ran.stderr
        taken += map(int, ran.stdout.split())
    run = started(folder, block=4)
    taken += [run.take_step() for _ in range(run.steps_left)]
    assert taken == [1, 5, 6, 7, 8, 9, 10, 11, *range(13, 21)]
    assert spent(folder) == PLAN.price


def test_a_child_and_a_copy_have_no_steps(folder):
    run = started(folder)
    run.take_step()
    child = os.fork()
    if not child:
        try:
            run.take_step()
        except InvalidParameter as error:
            os._exit(7 if "another process" in str(error) else 1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(InvalidParameter, match="cannot be copied"):
            duplicate(run)
    unkept = start_run(PLAN)
    with pytest.raises(InvalidParameter, match="cannot be copied"):
        copy.deepcopy(unkept)


def test_a_child_with_the_number_of_its_ancestor_has_no_steps(monkeypatch):
    """Numbers of processes come again. Before: it took the steps that the ancestor took too."""
    run = start_run(PLAN)
    number = os.getpid()
    child = os.fork()
    if not child:
        monkeypatch.setattr(os, "getpid", lambda: number)
        try:
            run.take_step()
        except InvalidParameter:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_a_run_that_somebody_answered_is_over(folder):
    """Before: claims named the answer's entry, so that all steps were there again, uncharged."""
    run = started(folder)
    while run.steps_left:
        run.take_step()
    books = Ledger.open(folder / "l.ledger")
    books.settle(run.entry, {"plan_digest": PLAN.digest, "cost": PLAN.price.to_json()})
    with pytest.raises(InvalidParameter, match="is over"):
        started(folder)


def test_the_name_of_a_run_stands_for_one_plan(folder):
    started(folder)
    other = training_plan(examples=100, batch=10, steps=21, noise_multiplier=2, delta="1e-6")
    with pytest.raises(InvalidParameter, match="not the one this run paid for"):
        started(folder, plan=other)
    assert spent(folder) == PLAN.price


def test_beyond_the_budget_nothing_starts_and_nothing_is_charged(folder):
    small = Budget(epsilon="1/10", delta="1e-5")
    place = folder / "l.ledger"
    with pytest.raises(BudgetExceeded):
        start_run(PLAN, name="a", ledger=place, account="digits", budget=small)
    assert Ledger.open(place).spent("digits").epsilon == 0


def test_claims_of_other_runs_and_words_like_claims_do_not_count(folder):
    run = started(folder, block=10)
    other = start_run(PLAN, name="more", ledger=folder / "l.ledger", account="digits", block=10)
    books = Ledger.open(folder / "l.ledger")
    far = f"steps 15 to 20 of the training run of entry {run.entry.hash}, claimed by {'0' * 32}-1"
    books.note(far, account="digits")  # does not begin where claims end
    assert [run.take_step() for _ in range(20)] == list(range(1, 21))
    assert other.steps_left == 20


def test_a_claim_that_another_was_quicker_with_is_not_used(folder, monkeypatch):
    """Failed if a claim were believed for having been written: it must be the first."""
    run = started(folder, block=5)
    real = Ledger.note

    def late(self, words, **more):
        if len(quicker) < 1:
            quicker.append(words)
            rival = words.rpartition("claimed by ")[0] + "claimed by " + "f" * 32 + "-1"
            real(self, rival, **more)
        return real(self, words, **more)

    quicker: list[str] = []
    monkeypatch.setattr(Ledger, "note", late)
    assert run.take_step() == 6


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"name": ""}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"name": "x" * 101}, "name"),
        ({"account": "digits"}, "account is of no use without a ledger"),
        ({"ledger": "l.ledger"}, "account is missing"),
    ],
)
def test_what_is_no_run_is_refused(folder, wrong, words):
    with pytest.raises(InvalidParameter, match=words):
        start_run(PLAN, **wrong)


@pytest.mark.parametrize("block", ["x", 0, -1, float("nan"), 2.5])
def test_a_block_that_is_none_is_refused_before_the_charge(folder, block):
    """Failed before: the run was charged, and then Python's own error came, or none."""
    with pytest.raises(LastbitError, match="block"):
        started(folder, block=block)
    assert not (folder / "l.ledger").exists()
