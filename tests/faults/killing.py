"""Really kills processes that use a ledger, and prints what was left as JSON.

    python -m tests.faults.killing system-calls FOLDER ONE_IN
    python -m tests.faults.killing on-server ADDRESS ONE_IN
    python -m tests.faults.killing at-random FOLDER

A program of its own, so that it forks from a process that has imported everything already and has
no threads. `system-calls` runs a call under ptrace and kills it (SIGKILL) as it enters its n-th
system call, for every n or for one in so many. Between two system calls a process changes nothing
but its own memory, so these are all the instants there are.
"""

import ctypes
import itertools
import json
import os
import random
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path

from lastbit.errors import BudgetExceeded
from lastbit.ledger.entry import Entry
from lastbit.ledger.ledger import Ledger
from lastbit.ledger.limits import Limit
from lastbit.ledger.safekeeping import copied
from lastbit.sampling.bits import secure_bits
from lastbit.tables.card.budget import Budget
from lastbit.tables.plan.cost import Cost

PTRACE_TRACEME, PTRACE_SYSCALL = 0, 24
THIRD = Cost(epsilon=Fraction(1, 3))
BUDGET = Budget(kind="pure", epsilon=Fraction(1))
KILLS_AT_RANDOM = 110
ROUNDS = {
    "reserve": 1, "settle": 1, "charge": 3, "open": 2, "account": 5, "backup": 5, "fail": 2,
    "allowance": 3,
}  # fmt: skip
"""What is killed, and at how many system calls: at all, at every second, at every fifth."""


class Untraceable(Exception):
    """The system does not let a process trace its own child."""


def asked(ledger: Ledger, question: str, cost: Cost = THIRD) -> str:
    """What a release does, with a made-up answer of a few pages; the hash that it may show."""
    record = {"asked": {"sql": question, "query": None}, "rows": ["x" * 100] * 200}
    entry = ledger.charge(
        "visits", cost, who="ada", question=question, plan_digest="p", fingerprint="f",
        record=record, principal="ada",
    )  # fmt: skip
    return entry.hash


def reserved(ledger: Ledger, question: str, cost: Cost = THIRD) -> Entry:
    return ledger.reserve(
        "visits", cost, who="ada", question=question, plan_digest="p", fingerprint="f",
        principal="ada",
    )  # fmt: skip


def allowed(ledger: Ledger, epsilon: Fraction) -> Ledger:
    """With an account and an allowance of ada's, of as much."""
    ledger.account("visits", Budget(kind="pure", epsilon=epsilon))
    ledger.set_principal("sam", "steward", by="root")
    ledger.set_principal("ada", "analyst", by="sam")
    ledger.set_allowance("visits", "ada", Limit(epsilon=epsilon, period="year"), by="sam")
    return ledger


def spent_by_ada(ledger: Ledger) -> Fraction:
    """What the account has spent, which is what is used of the allowance."""
    (allowance,) = ledger.allowances("visits", "ada")
    spent = ledger.spent("visits").epsilon
    assert allowance.used.epsilon == spent
    return spent


def settled(ledger: Ledger, paid: Entry) -> str:
    """The hash that may be shown."""
    return ledger.settle(paid, {"rows": ["x" * 100] * 200}).hash


# ---------------------------------------------------------------- at each system call


def traced(work: Callable[[], str], *, stop: int) -> tuple[bool, str]:
    """Whether the work was killed, at the call of this number, and what it had shown by then."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _traced_child(work, writing)
    os.close(writing)
    killed = _followed(child, stop)
    shown = os.read(reading, 1000).decode()
    os.close(reading)
    return killed, shown


def _traced_child(work: Callable[[], str], writing: int) -> None:
    status = 3
    try:
        if _ptrace(PTRACE_TRACEME, 0) == 0:
            os.kill(os.getpid(), signal.SIGSTOP)
            shown = work()
            os.write(writing, shown.encode())
            status = 0
    finally:
        os._exit(status)


def _followed(child: int, stop: int) -> bool:
    """Let the child go from system call to system call; kill it at the one asked for."""
    passed = 0
    os.waitpid(child, 0)
    while True:
        if _ptrace(PTRACE_SYSCALL, child) != 0:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise Untraceable
        _, status = os.waitpid(child, 0)
        if os.WIFEXITED(status):
            if os.WEXITSTATUS(status):
                raise Untraceable if passed == 0 else RuntimeError("the work failed")
            return False
        passed += 1  # odd: a system call is entered; even: it is left
        if passed == 2 * stop - 1:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return True


def _ptrace(request: int, child: int) -> int:
    ptrace = ctypes.CDLL(None, use_errno=True).ptrace
    ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    ptrace.restype = ctypes.c_long
    return int(ptrace(request, child, None, None))


def begun(ledger: Ledger) -> Ledger:
    """With one charge of a third, of a budget of 1."""
    asked(allowed(ledger, Fraction(1)), "first")
    return ledger


def template(folder: Path) -> Path:
    """Such a ledger, as a file."""
    return begun(Ledger.open(folder / "template.ledger")).path


def one_round(name: str, folder: Path, stop: int) -> tuple[bool, str]:
    """Kill one call at one stop; say whether that happened, and what was found afterwards."""
    path = folder / "a.ledger"
    for old in folder.glob("*a.ledger*"):
        old.unlink()
    if name != "open":
        shutil.copy(folder / "template.ledger", path)
        ledger = Ledger.open(path)
    if name in ("settle", "fail"):
        paid = reserved(ledger, "second")
    works: dict[str, Callable[[], str]] = {
        "reserve": lambda: reserved(ledger, "second").hash,
        "settle": lambda: settled(ledger, paid),
        "charge": lambda: asked(ledger, "second"),
        "open": lambda: Ledger.open(path).opened,
        "account": lambda: ledger.account("stays", BUDGET).name,
        "backup": lambda: copied(ledger, folder / "copy-a.ledger").head,
        "fail": lambda: ledger.fail(paid, words="no answer").hash,
        "allowance": lambda: str(ledger.set_allowance("visits", "ada", None, by="sam")),
    }
    killed, shown = traced(works[name], stop=stop)
    journal = path.with_name("a.ledger-journal").exists()
    if name == "open":
        state = "whole" if path.exists() else "none"
        assert not (shown and state == "none")
    ledger = Ledger.open(path)
    assert ledger.problems() == []
    if name == "charge":
        state = _after_charge(ledger, shown)
    elif name in ("reserve", "settle"):
        state = _after_reservation(ledger, shown, settling=name == "settle")
    elif name == "account":
        state = str(len(ledger.accounts()))
        assert not (shown and state == "1")
    elif name == "fail":
        state = "open" if ledger.unanswered("visits") else "void"
        assert spent_by_ada(ledger) == Fraction(2, 3) and not (shown and state == "open")
    elif name == "allowance":
        state = "kept" if ledger.allowances() else "ended"
        assert not (shown and state == "kept")
    elif name == "backup":
        copy = folder / "copy-a.ledger"
        state = "whole" if copy.exists() else "none"
        assert state == "none" or Ledger.existing(copy).problems([ledger.head]) == []
    return killed, f"{state}{', journal left' if journal else ''}{', shown' if shown else ''}"


def _after_charge(ledger: Ledger, shown: str) -> str:
    charged = spent_by_ada(ledger) == Fraction(2, 3)
    assert charged or spent_by_ada(ledger) == Fraction(1, 3)
    found = ledger.recorded("visits", "second")
    assert (found is not None) == charged
    if shown:  # what anybody saw is paid for and recorded
        assert found is not None and found["entry"]["hash"] == shown
    asked(ledger, "second")  # to ask again heals: it is charged once in all
    assert spent_by_ada(ledger) == Fraction(2, 3)
    return "charged" if charged else "not charged"


def _after_reservation(ledger: Ledger, shown: str, *, settling: bool) -> str:
    """A reservation is charged once it is committed, and the same question costs nothing more."""
    spent = spent_by_ada(ledger)
    assert spent in (Fraction(1, 3), Fraction(2, 3))
    kinds = [(entry.kind, entry.hash) for entry in ledger.entries() if entry.kind != "note"]
    kind, head = kinds[-1]
    assert (spent == Fraction(2, 3)) == (kind in ("reserved", "settled"))
    if settling:
        assert kind in ("reserved", "settled")  # the price was paid before
    if shown:
        assert head == shown and kind == ("settled" if settling else "reserved")
    again = reserved(ledger, "second")
    if again.record is None:
        settled(ledger, again)
    assert spent_by_ada(ledger) == Fraction(2, 3)
    assert ledger.unanswered("visits") == () and ledger.problems() == []
    kinds = [(entry.kind, entry.hash) for entry in ledger.entries() if entry.kind != "note"]
    assert [kind for kind, _ in kinds][-2:] == ["reserved", "settled"]
    return kind if kind in ("reserved", "settled") else "not charged"


def at_system_calls(folder: Path, one_in: int) -> dict[str, dict[str, int]]:
    template(folder)
    secure_bits()
    report = {}
    for name, stride in ROUNDS.items():
        outcomes: Counter[str] = Counter()
        stop, killed = 1 - stride * one_in, True
        while killed:
            stop += stride * one_in
            killed, outcome = one_round(name, folder, stop)
            outcomes[outcome] += killed
        report[name] = dict(outcomes)
    return report


def _worked(name: str, ledger: Ledger, paid: Entry | None) -> str:
    if paid is not None:
        return settled(ledger, paid)
    return reserved(ledger, "second").hash if name == "reserve" else asked(ledger, "second")


def on_server(address: str, one_in: int) -> dict[str, dict[str, int]]:
    """The same of a ledger in PostgreSQL; each round has a schema of its own."""
    secure_bits()
    report, numbers = {}, itertools.count()
    for name in ("reserve", "settle", "charge"):
        outcomes: Counter[str] = Counter()
        stop, killed = 1 - one_in, True
        while killed:
            stop += one_in
            ledger = begun(Ledger.init(f"{address}&schema=killed_{next(numbers)}"))
            paid = reserved(ledger, "second") if name == "settle" else None
            killed, shown = traced(partial(_worked, name, ledger, paid), stop=stop)
            ledger.note("by now the server has noticed")  # it waits for the lock
            if name == "charge":
                state = _after_charge(ledger, shown)
            else:
                state = _after_reservation(ledger, shown, settling=name == "settle")
            outcomes[f"{state}{', shown' if shown else ''}"] += killed
        report[name] = dict(outcomes)
    return report


# ---------------------------------------------------------------- at random


def at_random(folder: Path) -> dict[str, int]:
    """Two processes charge as fast as they can; again and again one of them is killed."""
    path = folder / "a.ledger"
    allowed(Ledger.open(path), Fraction(10))
    moments = random.Random(7)
    reading, writing = os.pipe()
    shown = ""
    children: list[int] = []
    for kill in range(KILLS_AT_RANDOM):
        while len(children) < 2:
            children.append(_charging(path, f"{kill}-{len(children)}", writing))
        time.sleep(moments.uniform(0.0, 0.06))
        victim = children.pop(0)
        os.kill(victim, signal.SIGKILL)
        os.waitpid(victim, 0)
    for child in children:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    os.close(writing)
    while part := os.read(reading, 65536):
        shown += part.decode()
    hashes = shown.split()
    ledger = Ledger.existing(path)
    assert ledger.problems(hashes) == []
    charges = [entry for entry in ledger.entries() if entry.kind == "reserved"]
    answers = [entry for entry in ledger.entries() if entry.kind == "settled"]
    assert spent_by_ada(ledger) == Fraction(len(charges), 7) <= 10
    assert {entry.hash for entry in answers} >= set(hashes)
    unanswered = ledger.unanswered("visits")
    assert len(answers) + len(unanswered) == len(charges)
    return {
        "kills": KILLS_AT_RANDOM,
        "shown": len(hashes),
        "charged": len(charges),
        "unanswered": len(unanswered),
    }


def _charging(path: Path, name: str, writing: int) -> int:
    child = os.fork()
    if child:
        return child
    try:
        ledger = Ledger.open(path)
        for number in range(1_000):
            paid = reserved(ledger, f"{name}-{number}", Cost(epsilon=Fraction(1, 7)))
            hash_ = settled(ledger, paid)
            os.write(writing, f"{hash_}\n".encode())
    except BudgetExceeded:
        time.sleep(60)  # until it is killed
    finally:
        os._exit(0)


if __name__ == "__main__":
    how: dict[str, Callable[..., object]] = {
        "system-calls": at_system_calls,
        "on-server": on_server,
        "at-random": at_random,
    }
    try:
        where = sys.argv[2] if sys.argv[1] == "on-server" else Path(sys.argv[2])
        print(json.dumps(how[sys.argv[1]](where, *map(int, sys.argv[3:]))))
    except Untraceable:
        print(json.dumps("untraceable"))
