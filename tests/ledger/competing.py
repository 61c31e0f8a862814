"""Many processes that use one ledger at once: python -m tests.ledger.competing HOW PLACE.

A program of its own, so that it forks from a process that has imported everything and has no
threads. It prints one JSON list: what each process has to say.
"""

import json
import os
import sys
from fractions import Fraction

from lastbit.errors import BudgetExceeded
from lastbit.ledger.ledger import Ledger
from lastbit.tables.card.budget import Budget
from lastbit.tables.plan.cost import Cost

PROCESSES = 16
TINY = Fraction(1, 10**30)
BUDGET = Budget(kind="approx", epsilon=Fraction(1), delta=Fraction(1, 10**6))


def charged(
    ledger: Ledger, question: str, epsilon: Fraction, who: int, principal: str | None = None
) -> str:
    entry = ledger.charge(
        "visits", Cost(epsilon=epsilon, delta=Fraction(1, 10**9)), who=str(who), question=question,
        plan_digest="p", fingerprint="f", record={"rows": [who]}, principal=principal,
    )  # fmt: skip
    assert entry.record is not None
    return str(entry.record["rows"][0])


def work(how: str, place: str, number: int) -> list[str]:
    ledger = Ledger.open(place)
    ledger.account("visits", BUDGET)
    done: list[str] = []
    try:
        match how:
            case "thirds":
                for turn in range(3):
                    charged(ledger, f"{number}-{turn}", Fraction(1, 3), number)
                    done.append("1/3")
            case "thirds-and-a-bit":
                for turn in range(3):
                    charged(ledger, f"{number}-{turn}", Fraction(1, 3) + TINY, number)
                    done.append(str(Fraction(1, 3) + TINY))
            case "mixed":
                for turn in range(100):
                    price = Fraction(1, 31 + (5 * number + turn) % 17) + TINY * number
                    charged(ledger, f"{number}-{turn}", price, number)
                    done.append(str(price))
            case "allowances":
                principal = "ben" if number % 2 else "cy"
                for turn in range(20):
                    charged(ledger, f"{number}-{turn}", Fraction(1, 8), number, principal)
                    done.append(principal)
            case "same":
                done.append(charged(ledger, "the same", Fraction(1, 3), number))
    except BudgetExceeded:
        pass
    return done


def main(how: str, place: str) -> None:
    gate, opening = os.pipe()
    answers = []
    for number in range(PROCESSES):
        reading, writing = os.pipe()
        if os.fork() == 0:
            status = 1
            try:
                os.close(opening)
                os.read(gate, 1)  # all start when the gate is closed for good
                said = json.dumps(work(how, place, number)).encode()
                os.write(writing, said)
                status = 0
            finally:
                os._exit(status)
        os.close(writing)
        answers.append(reading)
    os.close(opening)
    failed = sum(os.waitstatus_to_exitcode(os.wait()[1]) for _ in range(PROCESSES))
    print(json.dumps([json.loads(os.read(answer, 60_000)) for answer in answers]))
    sys.exit(failed)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
