"""Really kills `lastbit query`, and prints what was left as JSON.

    python -m tests.faults.killing_queries FOLDER few|many

As `killing.py`, whose machinery this uses: the command runs in a fork of a process that has
imported everything, under ptrace, and is killed (SIGKILL) as its main thread enters its n-th system
call. There are thousands: a few are taken all along the way; or many, and every one near the two
commits (of the reservation, and of the answer). What it printed by then is in a file.
"""

import json
import os
import shutil
import sys
from collections import Counter
from contextlib import suppress
from fractions import Fraction
from importlib import import_module
from pathlib import Path

from lastbit.cli.main import main
from lastbit.ledger.ledger import Ledger
from lastbit.release import release
from lastbit.release.answer import Answer
from lastbit.sampling.bits import secure_bits
from lastbit.tables.card.read import read_card
from lastbit.tables.plan.plan import planned
from lastbit.tables.sql.statement import parsed
from tests.faults.killing import Untraceable, traced
from tests.release.canaries import write_card, write_csv

SQL = "SELECT region, COUNT(*) AS n, AVG(cost) AS cost FROM visits GROUP BY region"
ALONG, NEAR, STRIDE, LAST = 6, 8, 90, 4
"""Kills before each commit, at each call on both sides of it, one in so many after it, the last."""
FEW = (1, 1_000, 3_000, 6_000, 9_000)


def command() -> str:
    """The command in this process, its output in a file; the file's length in the end."""
    out = os.open("out.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(out, 1)
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115  for life
    main(["query", "visits.toml", SQL, "--epsilon", "1", "--json"], standalone_mode=False)
    sys.stdout.flush()
    return "done"


def asked() -> Answer:
    card = read_card("visits.toml")
    query = parsed(SQL, card)
    return release.released(query, card, planned(query, card, epsilon=1))


def one_kill(stop: int) -> tuple[bool, str]:
    """Kill one command at one stop; whether that happened, and what was found afterwards."""
    for old in Path().glob("visits.ledger*"):
        old.unlink()
    shutil.copy("template.ledger", "visits.ledger")
    Path("out.txt").unlink(missing_ok=True)
    killed, _ = traced(command, stop=stop)
    shown = Path("out.txt").read_text("utf-8") if Path("out.txt").exists() else ""
    return killed, _state(shown)


def _state(shown: str) -> str:
    ledger = Ledger.existing("visits.ledger")
    assert ledger.problems() == []
    spent = ledger.spent("visits").epsilon
    assert spent in (0, 1)
    settled = ledger.entries()[-1].kind == "settled"
    if shown:  # whatever was seen is paid for, and recorded
        assert spent == 1 and settled
    assert bool(spent) == (len(ledger.unanswered("visits")) == 1 or settled)
    if shown.endswith("}\n"):
        assert json.loads(shown)["answer"]["entry"]["hash"] == ledger.head
    head = ledger.head
    state = "settled" if settled else "reserved" if spent else "not charged"
    return f"{state}{', shown' if shown else ''} {head}"


def heals(head: str, *, settled: bool) -> None:
    """Asked again, by another process: the recorded answer iff it was settled; one charge."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            answer = asked()
            ledger = Ledger.existing("visits.ledger")
            assert ledger.spent("visits").epsilon == Fraction(1) and ledger.problems() == []
            assert (answer.record["entry"]["hash"] == head) == settled
            assert ledger.unanswered("visits") == ()
            assert answer.record["entry"]["hash"] == ledger.head
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    assert status == 0, "to ask again does not heal"


def killed_all_along(*, few: bool) -> dict[str, int]:
    """The two commits are found by halving; then kills all along, and at each call around both."""
    outcomes: Counter[str] = Counter()

    def kill(stop: int) -> tuple[bool, int]:
        """Whether it was killed, and how many commits were through."""
        killed, found = one_kill(stop)
        state, head = found.rsplit(" ", 1)
        outcomes[state if killed else "done"] += 1
        if killed and outcomes[state] % 8 == 1:
            heals(head, settled=state.startswith("settled"))
        return killed, 0 if state == "not charged" else 1 if state == "reserved" else 2

    def commit(number: int, low: int) -> int:
        """The last stop at which fewer commits than this were through."""
        high = 1 << 15
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if kill(middle)[1] >= number else (middle, high)
        return low

    if few:
        for stop in FEW:
            kill(stop)
        return dict(outcomes)
    first = commit(1, 1)
    second = commit(2, first)
    for stop in range(1, first, max(first // ALONG, 1)):
        kill(stop)
    for stop in range(first, second, max((second - first) // ALONG, 1)):
        kill(stop)
    for low in (first, second):
        for stop in range(max(low - NEAR, 1), low + NEAR):
            kill(stop)
    while kill(stop)[0]:
        stop += STRIDE
    last = stop - STRIDE  # the last calls: what was asked for is on the screen
    while stop - last > 1:
        middle = (last + stop) // 2
        last, stop = (middle, stop) if kill(middle)[0] else (last, middle)
    for stop in range(last - LAST, last + LAST):  # their number varies a little
        kill(stop)
    return dict(outcomes)


def warm() -> None:
    """Import what the command imports, for all forks at once; the engine itself never runs here."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            command()
            os.write(writing, " ".join(sys.modules).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as pipe:
        names = pipe.read().split()
    os.waitpid(child, 0)
    for name in names:
        with suppress(ImportError):
            import_module(name)


def prepared(folder: Path) -> None:
    os.chdir(folder)
    write_csv(Path("visits.csv"))
    write_card(Path())
    warm()
    secure_bits()
    Path("visits.ledger").unlink()
    Ledger.open("template.ledger").account("visits", read_card("visits.toml").budget)


if __name__ == "__main__":
    prepared(Path(sys.argv[1]))
    try:
        print(json.dumps(killed_all_along(few=sys.argv[2] == "few")))
    except Untraceable:
        print(json.dumps("untraceable"))
