"""A saved answer says whether it is recorded, and the checker knows: fields deleted, notes deleted,
fields exchanged between records."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator
from typing import Any

import pytest

import lastbit as lb
from lastbit.checker.answer import UNRECORDED
from lastbit.checker.dispatch import problem_of
from lastbit.ledger.ledger import Ledger

FREE = {"lastbit", "question"}
"""What a record says of itself, which nothing else in it tells."""


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("records")
    (folder / "t.csv").write_text("id,x\n" + "".join(f"{i},{i % 50}\n" for i in range(200)))
    query = lb.table(folder / "t.csv", unit="id", max_rows=1).sql("SELECT COUNT(*) AS n FROM t")
    ledger = Ledger.open(folder / "l.ledger")
    return {
        "unrecorded": query.release(epsilon=5).record,
        "unrecorded, consistent": query.release(epsilon=5).consistent().record,
        "recorded": query.release(epsilon=5, ledger=ledger).record,
        "recorded, consistent": query.release(epsilon=5, ledger=ledger).consistent().record,
        "recorded later": query.release(epsilon=5, ledger=ledger, fresh=True).record,
    }


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        yield (*path, key)
        if isinstance(inner, dict | list):
            yield from places(inner, (*path, key))


def is_recorded(record: dict[str, Any]) -> bool:
    return record["certificate"]["body"]["ledger"] is not None


def contradicts(record: dict[str, Any]) -> bool:
    recorded = is_recorded(record)
    return recorded == (UNRECORDED in record["notes"]) or (
        record["entry"] is not None and not recorded
    )


def test_all_are_accepted_as_they_are(records: dict[str, dict[str, Any]]) -> None:
    for record in records.values():
        assert problem_of(record) is None and not contradicts(record)


def test_whatever_is_deleted_is_missed(records: dict[str, dict[str, Any]]) -> None:
    """The hole: "Not recorded" could be deleted from an answer."""
    for name, record in records.items():
        for path in places(record):
            mutant: Any = copy.deepcopy(record)
            inner = mutant
            for key in path[:-1]:
                inner = inner[key]
            del inner[path[-1]]
            if path != ("asked", "sql"):
                assert problem_of(mutant) is not None, (name, path)


def test_fields_of_two_records_are_not_exchanged(records: dict[str, dict[str, Any]]) -> None:
    for (one, record), (two, other) in itertools.permutations(records.items(), 2):
        for width in (1, 2):
            for names in itertools.combinations(sorted(set(record) & set(other)), width):
                mutant = {**record, **{name: other[name] for name in names}}
                if mutant in (record, other) or problem_of(mutant) is not None:
                    continue
                assert not contradicts(mutant), (one, two, names)
                changed = {name for name in names if record[name] != other[name]}
                # one record of the other's making altogether, or what nothing tells
                made = {"certificate", "rows", "notes", "entry", "before"}
                assert changed <= FREE | {"entry"} or changed - FREE <= made, (one, two, names)


def test_every_combination_of_ledger_note_and_entry(records: dict[str, dict[str, Any]]) -> None:
    entries: list[Any] = [None, {"hash": "ab" * 32, "sequence": 4}]
    for record in records.values():
        plain = [note for note in record["notes"] if note != UNRECORDED]
        for entry in entries:
            for notes in (plain, [UNRECORDED, *plain], [*plain, UNRECORDED]):
                mutant = {**record, "entry": entry, "notes": notes}
                right = (
                    (entry is None or is_recorded(record))
                    and notes != [*plain, UNRECORDED]
                    and (UNRECORDED in notes) != is_recorded(record)
                )
                assert (problem_of(mutant) is None) == right, (entry, notes)


def test_entries_that_cannot_be(records: dict[str, dict[str, Any]]) -> None:
    record = records["recorded"]
    paid = record["certificate"]["body"]["ledger"]
    for entry in (
        {"hash": paid, "sequence": 4},
        *({"hash": "ab" * 32, "sequence": number} for number in (0, 1, 2, -3, True, 4.0, "4")),
        {"hash": "ab" * 31, "sequence": 4},
        {"hash": 5, "sequence": 4},
        {"hash": "ab" * 32},
        {"hash": "ab" * 32, "sequence": 4, "more": 1},
        {},
        [],
        "ab",
        False,
        0,
    ):
        assert problem_of({**record, "entry": entry}) is not None, entry


def test_a_record_as_the_ledger_keeps_it_is_accepted(records: dict[str, dict[str, Any]]) -> None:
    assert problem_of({**records["recorded"], "entry": None}) is None
