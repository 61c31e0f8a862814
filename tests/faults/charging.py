"""Writers that share a ledger in PostgreSQL and are killed: python -m tests.faults.charging ...

    ADDRESS FOLDER WRITERS KILLS SECONDS

A program of its own, as `killing.py`: it forks writers that reserve and settle as fast as they can,
kills one of them now and then (SIGKILL) and forks another. What a writer shows it adds to a file.
A server that is gone is waited for: the same question is asked again.
"""

import json
import os
import random
import signal
import sys
import time
from fractions import Fraction
from pathlib import Path

from lastbit.errors import BudgetExceeded, LastbitError
from lastbit.ledger.ledger import Ledger
from lastbit.sampling.bits import secure_bits
from lastbit.tables.card.budget import Budget
from lastbit.tables.plan.cost import Cost

BUDGET = Budget(kind="pure", epsilon=Fraction(1))
PRICES = tuple(Fraction(1, part) for part in (50, 64, 80, 40))


def charging(address: str, folder: Path, name: str, number: int) -> None:
    """Ask one account after the other until its budget is spent; note each answer that is shown."""
    shown = os.open(folder / "shown", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    account, turn = 0, 0
    while True:
        question = f"{name}-{turn}"
        try:
            ledger = Ledger.open(address, patience=60)
            ledger.account(f"t{account}", BUDGET)
            paid = ledger.reserve(
                f"t{account}", Cost(epsilon=PRICES[(number + turn) % len(PRICES)]), who=name,
                question=question, plan_digest="p", fingerprint="f",
            )  # fmt: skip
            entry = ledger.settle(paid, {"rows": [question, "x" * 2_000]})
            assert entry.record is not None and entry.record["rows"][0] == question
            os.write(shown, f"{entry.hash}\n".encode())
            turn += 1
        except BudgetExceeded:
            account += 1
        except LastbitError as error:
            os.write(
                shown, f"refused: {str(error).rpartition(' the ledger ')[2][-150:]}\n".encode()
            )
            time.sleep(0.1)


def main(address: str, folder: Path, writers: int, kills: int, seconds: float) -> None:
    secure_bits()
    moments, until = random.Random(5), time.monotonic() + seconds
    children: dict[int, int] = {}
    done = 0

    def fork(number: int) -> None:
        child = os.fork()
        if child == 0:
            try:
                charging(address, folder, f"w{number}-{os.getpid()}-{done}", number)
            finally:
                os._exit(1)
        children[number] = child

    for number in range(writers):
        fork(number)
    while done < kills or time.monotonic() < until:
        time.sleep(moments.uniform(0.2, 1.8) * seconds / max(kills, 1))
        victim = moments.randrange(writers)
        os.kill(children[victim], signal.SIGKILL)
        _, status = os.waitpid(children[victim], 0)
        assert os.WIFSIGNALED(status), "a writer failed by itself"
        done += 1
        fork(victim)
    for child in children.values():
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    print(json.dumps({"kills": done + writers}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5]))
