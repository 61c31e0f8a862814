"""A small ledger for tests, and hands that change its file behind its back."""

import sqlite3
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

from lastbit.ledger.entry import Entry
from lastbit.ledger.ledger import Ledger
from lastbit.tables.card.schema import Budget
from lastbit.tables.plan.price import Cost

ONE = Budget(kind="pure", epsilon=Fraction(1))
CANARY = "canary-48151623"


def price(epsilon: object, delta: object = 0) -> Cost:
    return Cost(epsilon=Fraction(str(epsilon)), delta=Fraction(str(delta)))


def charged(ledger: Ledger, question: str, cost: Cost, **others: Any) -> Entry:
    given = {"account": "visits", "who": "ada", "record": record(question), **others}
    account = given.pop("account")
    return ledger.charge(
        account, cost, question=question, plan_digest="p" * 64, fingerprint="f" * 64, **given
    )


def record(question: str) -> dict:
    """An answer, as far as the ledger cares; it holds a canary that no message may repeat."""
    asked = {"sql": f"SELECT {question}", "query": {"table": "visits"}}
    return {"asked": asked, "rows": [{"cells": [{"value": 1.5, "key": CANARY}]}]}


def small_ledger(folder: Path) -> Ledger:
    """Six entries: opened, budget, charge, charge, note, charge; 3/4 of 1 is spent."""
    ledger = Ledger.open(folder / "a.ledger")
    ledger.account("visits", ONE)
    charged(ledger, "q1", price("1/4"))
    charged(ledger, "q2", price("1/4"))
    ledger.note("by hand", who="ben")
    charged(ledger, "q3", price("1/4"))
    return ledger


def changed(path: Path, *statements: str, values: tuple = ()) -> None:
    """Change the file as somebody would who has SQLite at hand: triggers off, and on again."""
    with closing(sqlite3.connect(path)) as connection:
        triggers = connection.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
        ).fetchall()
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            connection.execute(statement, values if "?" in statement else ())
        for _, sql in triggers:
            connection.execute(sql)
        connection.commit()
