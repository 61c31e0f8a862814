"""A malicious engine: whatever rows it gives, integers of the right shape or an error of ours.

Each case goes through the kernel's own order (`answer_unrecorded`), with an engine in DuckDB's
place. The canary is a number and a text that no other part of the test knows.
"""

from __future__ import annotations

import itertools
import traceback
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import cache
from typing import Any

import pytest

from lastbit.errors import EngineFailed, LastbitError
from lastbit.kernel import Noisy, Program, answer_unrecorded
from lastbit.kernel.program import KeySelection, scanned_marginals
from lastbit.kernel.sealed import Aggregates, Bins, sealed_integers
from lastbit.tables import RawRows
from lastbit.tables.backends.engines import Session
from tests.evidence import Extent
from tests.kernel.genuine import certificates
from tests.tables import connecting

CANARY = 831502746913
WORDS = f"canary-{CANARY}"


class Treacherous:
    """Looks like a number until it is used."""

    def __init__(self, how: type[BaseException] = ValueError) -> None:
        self.how = how

    def __int__(self) -> int:
        raise self.how(WORDS)

    __index__ = __eq__ = __hash__ = __lt__ = __bool__ = __int__  # type: ignore[assignment]

    def __repr__(self) -> str:
        return WORDS


HOSTILE: list[Any] = [
    None, True, False, 0, -1, 1, 7, CANARY, -CANARY, 10**400, -(10**400), 1.0, 0.5, -0.0, 1e300,
    float("nan"), float("inf"), float("-inf"), Decimal(3), Decimal("0.5"), Decimal("NaN"),
    Decimal("Infinity"), complex(1, 1), "", "731", WORDS, b"731", "\ud800", "a\0b", (), [], {}, [1],
    (1,), {"a": 1}, object, Treacherous(), Treacherous(KeyboardInterrupt), Treacherous(MemoryError),
    1 << 20, (1 << 20) + 1, range(3), Exception(WORDS), 2**63, -(2**63) - 1,
]  # fmt: skip
KINDS = (
    "SELECT g, COUNT(*) AS n, COUNT(DISTINCT who) AS u FROM t GROUP BY g | people declared",
    "SELECT g, COUNT(DISTINCT x) AS d",
    "SELECT g, COUNT(*) AS n FROM t GROUP BY g | people |",
    "SELECT g, median(x) AS q FROM t GROUP BY g | people",
    "SELECT quantile_cont(x, 0.1)",
    "histogram |",
    "marginals {} |",
    "SELECT COUNT(*) AS n FROM t | rows",
)


@cache
def asked(kind: str) -> tuple[Program, RawRows]:
    """A program, and what the real engine gives for it."""
    one = next(g for g in certificates() if g.name.startswith(kind))
    program = Program(one.text, one.card)
    if program.marginals is None:
        raw = connecting.aggregates(program.scan, program.card, program.measures, secret="0" * 64)
    else:
        scanned = scanned_marginals(program)
        raw = connecting.marginal_counts(program.scan, program.card, scanned)
    return program, raw


def answered(
    program: Program, rows: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> Noisy | BaseException:
    """What the kernel hands out for what an engine gives; an interrupt stays one."""
    with monkeypatch.context() as patch:
        patch.setattr(Session, "aggregates", lambda *_, **__: rows())
        patch.setattr(Session, "marginal_counts", lambda *_, **__: rows())
        try:
            return answer_unrecorded(program)
        except (LastbitError, KeyboardInterrupt) as error:
            return error


def giving(raw: RawRows) -> Callable[[], RawRows]:
    return lambda: raw


def judge(program: Program, found: Noisy | BaseException) -> str:
    """Whether it is an error that tells nothing, or integers of the right shape."""
    if isinstance(found, BaseException):
        assert found.__cause__ is None and found.__context__ is None
        told = traceback.TracebackException.from_exception(found, capture_locals=True)
        library = [frame for frame in told.stack if "/src/lastbit/" in frame.filename]
        text = f"{found} {found!r} {found.args} " + " ".join(str(f.locals) for f in library)
        assert str(CANARY) not in text, text
        return "refused"
    number = len(found.keys)
    if program.groups is not None and program.marginals is None:
        declared = [key.values or () for key in program.scan.keys]
        assert found.keys == list(itertools.product(*declared))
    for entries in found.entries.values():
        assert len(entries) == number and all(type(n) is int for n in entries)
    sizes = {m.name: len(m.edges) - 1 for m in program.measures if m.kind == "bins"}
    for name, lists in found.bins.items():
        assert len(lists) == number
        assert all(len(one) == sizes[name] and all(type(n) is int for n in one) for one in lists)
    for places in found.ranks.values():
        assert len(places) == number
        assert all(type(p) is int and -1 <= p <= max(sizes.values()) for p in places)
    for trees in found.trees.values():
        assert len(trees) == number and len({len(nodes[0]) for nodes in trees}) <= 1
    cells = dict.fromkeys(found.tables, 1)
    for one in cells:
        for place in one:
            cells[one] *= len(program.scan.keys[place].values or ())
    for one, table in found.tables.items():
        assert len(table) == cells[one] and all(type(n) is int for n in table)
    return "answered"


def spoilt(rows: list[tuple[Any, ...]]) -> Iterator[list[Any]]:
    """Rows with one thing wrong, or more."""
    for at, row in enumerate(rows[:4]):
        for place in range(len(row)):
            for value in HOSTILE:
                yield [*rows[:at], (*row[:place], value, *row[place + 1 :]), *rows[at + 1 :]]
        yield [*rows[:at], *rows[at + 1 :]]
        yield [*rows, row]
        yield [*rows, *[row] * 3, row[:-1]]
        yield [*rows[:at], row[:1], *rows[at + 1 :]]
        yield [*rows[:at], (*row, 7), *rows[at + 1 :]]
        yield [*rows[:at], list(row), *rows[at + 1 :]]
        yield [*rows[:at], dict(enumerate(row)), *rows[at + 1 :]]
        yield [*rows[:at], None, *rows[at + 1 :]]
        yield [*rows[:at], WORDS, *rows[at + 1 :]]
        yield [*rows[:at], (), *rows[at + 1 :]]
    yield []
    yield list(reversed(rows))
    yield rows * 3


@pytest.mark.parametrize("kind", KINDS)
def test_spoilt_rows(kind: str, monkeypatch: pytest.MonkeyPatch, extent: Extent) -> None:
    program, raw = asked(kind)
    outcomes = {"refused": 0, "answered": 0}
    for rows in extent.cases(spoilt(raw.unsealed_rows), one_in=17):
        given = RawRows(raw.statement, ())
        given.unsealed_rows = rows
        outcomes[judge(program, answered(program, giving(given), monkeypatch))] += 1
    assert outcomes["refused"] and outcomes["answered"]


def failing_rows(rows: list[Any]) -> Iterator[Any]:
    yield from rows[:1]
    raise RuntimeError(WORDS)


class NoRows(RawRows):
    """Another class that poses as rows."""


@pytest.mark.parametrize("kind", KINDS[:1] + KINDS[-2:])
def test_an_engine_that_fails_or_gives_something_else(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, raw = asked(kind)
    rows, ran = raw.unsealed_rows, raw.statement

    def raises(error: BaseException) -> Callable[[], Any]:
        def fail() -> Any:
            raise error

        return fail

    for given in (
        lambda: RawRows(ran, failing_rows(rows)),
        raises(RuntimeError(WORDS)),
        raises(KeyError(CANARY)),
        raises(MemoryError(WORDS)),
        raises(RecursionError(WORDS)),
        raises(KeyboardInterrupt(WORDS)),
        raises(GeneratorExit(WORDS)),
        lambda: rows,
        lambda: None,
        lambda: WORDS,
        lambda: NoRows(ran, rows),
        lambda: Aggregates(keys=[(WORDS,)], entries={"m1": [CANARY]}),
        lambda: RawRows(ran, [WORDS, *rows]),  # type: ignore[list-item]
    ):
        found = answered(program, given, monkeypatch)
        assert judge(program, found) == "refused"


def test_other_measures_than_were_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of another statement: a measure that is missing is no 0."""
    refused = 0
    for own, other in itertools.permutations(KINDS, 2):
        program, (_, raw) = asked(own)[0], asked(other)
        refused += judge(program, answered(program, giving(raw), monkeypatch)) == "refused"
    assert refused > 40  # of 56: the others name the same measures, which engines are trusted with


def test_a_key_that_no_unit_chose_is_not_there() -> None:
    program, raw = asked(KINDS[2])
    assert any(isinstance(step, KeySelection) for step in program.steps)
    assert program.groups is None
    found = sealed_integers(
        program, RawRows(raw.statement, [r for r in raw.unsealed_rows if r[0] >= 0])
    )
    assert list(found.keys) == [] and list(found.units) == []


def test_nothing_shows_itself() -> None:
    _, raw = asked(KINDS[0])
    bins = Bins(keys=1, size=1)
    bins.put(0, 0, CANARY)
    integers = Aggregates(keys=[(WORDS,)], entries={"m1": [CANARY]}, bins={"m2": bins})
    noisy = Noisy(keys=[(WORDS,)], entries={"m1": [CANARY]})
    for thing in (raw, bins, integers, noisy):
        assert "not " in repr(thing) and str(CANARY) not in f"{thing!r} {thing!s} {thing}"


@pytest.mark.parametrize(("key", "place"), [(-1, 0), (2, 0), (0, -1), (0, 3)])
def test_bins_have_their_places(key: int, place: int) -> None:
    with pytest.raises(EngineFailed, match="a bin that was not asked for"):
        Bins(keys=2, size=3).put(key, place, 1)
