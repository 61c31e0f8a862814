"""Every text of a saved answer: derived and compared, or shown as unchecked and escaped."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from lastbit.checker.answer import named, plain
from lastbit.checker.dispatch import problem_of
from lastbit.checker.numbers import digest
from lastbit.privacy.neighbours import CHANGE_ONE
from lastbit.release.release import released
from lastbit.tables.card.column import Column
from lastbit.tables.plan.plan import guarantee_of, planned, unit_name
from tests.cli.running import lastbit
from tests.evidence import Extent
from tests.mutants import copied
from tests.release.pretend import COLUMNS, card_of, plug_in
from tests.release.sealing import sealed_rows
from tests.release.test_certificate import DECLARED, FOUND, PEOPLE, raw_for

Record = dict[str, Any]
UNCHECKED = {("asked", "sql"), ("lastbit",)}
CLAIM = "epsilon = 0"
ODD = "\u202e\u200b\x1b[2J\uff11\u0430\n"
"""Turned around, invisible, a terminal's command, a full-width digit, a Cyrillic a, a new line."""


@pytest.fixture
def records(monkeypatch: pytest.MonkeyPatch) -> dict[str, Record]:
    def asked(query: Any, price: Any = None, **card: Any) -> Record:
        table = card_of(**{**PEOPLE, **card})
        plan = planned(query, table, **(price or {"epsilon": 1, "delta": "1e-6"}))
        plug_in(monkeypatch, raw_for(query, plan))
        return json.loads(json.dumps(released(query, table, plan).record))

    first = asked(DECLARED)
    return {
        "declared": first,
        "found": asked(FOUND),
        "changed": asked(DECLARED, {"rho": "1/7"}, neighbours=CHANGE_ONE),
        "rows": asked(DECLARED, {"epsilon": 0.7}, unit=None, max_rows=1, max_groups=None),
    }


def resealed(record: Record) -> Record:
    """All digests worked out anew, as whoever cheats would do."""
    certificate = record["certificate"]
    claim, body = certificate["claim"], certificate["body"]
    claim["query"] = body["plan"]["query"] = record["plan"]["query"] = digest(body["query"])
    body["plan_digest"] = digest(body["plan"])
    rows = record.get("before", record["rows"])
    claim["rows"] = digest(sealed_rows(record, rows))
    certificate["digest"] = digest(certificate)
    return record


def texts(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], str]]:
    if isinstance(value, str):
        yield path, value
    pairs: Any = value.items() if isinstance(value, dict) else ()
    pairs = enumerate(value) if isinstance(value, list) else pairs
    for name, part in pairs:
        yield from texts(part, (*path, name))


def put(record: Record, path: tuple[Any, ...], text: Any) -> Record:
    other = copied(record)
    place = other
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = text
    return resealed(other)


def renamed(value: Any, old: str, new: str) -> Any:
    """The same with one text replaced wherever it stands, names of fields too."""
    if isinstance(value, dict):
        return {new if k == old else k: renamed(v, old, new) for k, v in value.items()}
    if isinstance(value, list):
        return [renamed(part, old, new) for part in value]
    return new if value == old else value


def mutants(text: str) -> Iterator[str]:
    yield text + " and for everybody " + CLAIM
    yield text + ODD
    yield text.translate({ord(d): chr(ord(d) + 0xFEE0) for d in "0123456789"}) + "\uff10"
    yield "7e-1, " + CLAIM


def seen(record: Record, folder: Path) -> tuple[str, str]:
    """What `lastbit check` prints of an accepted file: as proved, and as said."""
    (folder / "x.json").write_text(json.dumps(record), "utf-8")
    result = lastbit("check", str(folder / "x.json"))
    assert result.exit_code == 0, result.output
    assert not set("\u202e\u200b\x1b\uff11\uff10\u0430") & set(result.output)
    proved, _, said = " ".join(result.output.split()).partition("Said by the file, not checked:")
    return proved, said


def unquoted(text: str) -> str:
    return " ".join(text.split('"')[::2])


def test_no_text_can_be_changed_into_a_claim(
    records: dict[str, Record], tmp_path: Path, extent: Extent
) -> None:
    accepted = set()
    tried = 0
    for record in records.values():
        assert problem_of(record) is None
        for path, text in extent.cases(texts(record), one_in=5):
            if path[-1] in ("digest", "plan_digest") or (path[0] == "rows" and "keys" in path):
                continue
            for mutant in mutants(text):
                tried += 1
                forged = put(record, path, mutant)
                if forged == record:  # a digest, which was worked out anew
                    continue
                if problem_of(forged) is None:
                    accepted.add(tuple("*" if isinstance(p, int) else p for p in path))
                    proved, _ = seen(forged, tmp_path)
                    assert CLAIM not in unquoted(proved)
    assert tried > extent.number(600, 3_000)
    assert accepted <= UNCHECKED, accepted


def test_names_changed_everywhere_are_shown_quoted_and_as_unchecked(
    records: dict[str, Record], tmp_path: Path
) -> None:
    """A table, a unit or a column may have any name; a name is not taken for a claim."""
    hostile = f'x", {CLAIM} for all {ODD}'
    for record in records.values():
        for name in ("visits", "person", "n", "h", "m", "u", "median", "region"):
            forged = resealed(renamed(copied(record), name, hostile))
            if forged != record and problem_of(forged) is None:
                proved, said = seen(forged, tmp_path)
                assert CLAIM not in unquoted(proved) and CLAIM in said


def test_what_is_only_said_is_marked_so(records: dict[str, Record], tmp_path: Path) -> None:
    record = put(records["declared"], ("asked", "sql"), f"SELECT 1 -- {CLAIM} {ODD}")
    assert problem_of(record) is None
    proved, said = seen(record, tmp_path)
    assert CLAIM not in proved and CLAIM in said and "\\u202e" in said
    wished = put(record, ("certificate", "assumptions"), [
        *record["certificate"]["assumptions"], f"Proved elsewhere: {CLAIM}",
    ])  # fmt: skip
    assert problem_of(wished) is None
    proved, said = seen(wished, tmp_path)
    assert CLAIM not in proved and f'"Proved elsewhere: {CLAIM}"' in said


def objects(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict):
        yield path
    pairs: Any = value.items() if isinstance(value, dict) else ()
    pairs = enumerate(value) if isinstance(value, list) else pairs
    for name, part in pairs:
        yield from objects(part, (*path, name))


def test_no_part_can_be_added_anywhere(records: dict[str, Record]) -> None:
    for record in records.values():
        for path in objects(record):
            other = copied(record)
            place = other
            for step in path:
                place = place[step]
            place["remark"] = CLAIM
            assert problem_of(resealed(other)) is not None, path


FOUND_FALSE = [
    "epsilon = 7e-1, delta = 1e-06 differential privacy for one person more or less",
    "epsilon = 1, delta = 1e-6 differential privacy for one person more or less",
    "epsilon = \uff11, delta = 1e-06 differential privacy for one person more or less",
    "epsilon = 1, delta = 1e-06 differential privacy for one hospital more or less",
    "epsilon = 1, delta = 1e-06 differential privacy for one person changed",
    "epsilon = 1, delta = 1e-06 differential privacy for one person, no: "
    "epsilon = 0 differential privacy for one row more or less",
]


@pytest.mark.parametrize("sentence", FOUND_FALSE)
def test_the_guarantee_is_compared_letter_for_letter(
    records: dict[str, Record], sentence: str
) -> None:
    record = records["found"]
    assert record["guarantee"] == (
        "epsilon = 1, delta = 1e-06 differential privacy for one person more or less"
    )
    problem = problem_of({**record, "guarantee": sentence})
    assert problem == "the guarantee says something else"


def test_an_answer_that_was_made_consistent_says_so(records: dict[str, Record]) -> None:
    from lastbit.release.answer import consistent

    made = consistent(records["declared"])
    assert problem_of(made) is None
    assert problem_of({**made, "notes": made["notes"][:-1]}) == "the notes say something else"
    plain_ = records["declared"]
    assert problem_of({**plain_, "notes": made["notes"]}) == "the notes say something else"


@pytest.mark.parametrize(
    "unit", ["person", "Stra\u00dfe", "patient id", 'a "b" \\', "\u60a3\u8005", "x\u202ey", "1st"]
)
def test_both_programs_name_a_unit_alike(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert unit_name(unit) == named(unit)
    columns = {**COLUMNS, unit: Column(name=unit, type="integer")}
    monkeypatch.setattr("tests.release.pretend.COLUMNS", columns)
    table = card_of(**{**PEOPLE, "unit": unit})
    plan = planned(DECLARED, table, epsilon=1)
    plug_in(monkeypatch, raw_for(DECLARED, plan))
    answer = released(DECLARED, table, plan)
    assert problem_of(answer.record) is None
    assert guarantee_of(table, answer.cost) == answer.guarantee


def test_both_programs_write_a_number_alike() -> None:
    from lastbit.exact.written import shown

    several = [Fraction(1, d) for d in range(1, 200)] + [Fraction(x) for x in (0.1, 1e-9, 2**70)]
    several += [Fraction(10) ** e for e in range(-40, 30)] + [Fraction(1, 10**400), Fraction(0)]
    assert [plain(x) for x in several] == [shown(x).strip("'") for x in several]
