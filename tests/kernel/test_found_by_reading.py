"""Ways around the kernel that readers found, each by what it would have shown."""

from __future__ import annotations

import threading
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest

import lastbit as lb
from lastbit.errors import EngineFailed, InvalidParameter, LastbitError, WrongType
from lastbit.kernel import answer, noise
from lastbit.kernel.noise import Noisy, pair_scores, rank_distances
from lastbit.kernel.program import PairDraws, RankDraw
from lastbit.ledger import Ledger, charging
from lastbit.tables import open_session
from tests.kernel.test_answering import Case
from tests.kernel.unsealing import opened


@pytest.fixture
def books(tmp_path: Path) -> Ledger:
    return Ledger.open(tmp_path / "books.ledger")


@pytest.mark.parametrize("weights", [[0, 0, 0], [0, 1, 0], [5, 0, 2]])
@pytest.mark.parametrize("bits", [1, 40, 61, 62, 63, 64, 100])
def test_a_rank_of_any_level_is_found_among_any_weights(weights: list[int], bits: int) -> None:
    """Whether all weights are 0 must not decide whether there is an answer."""
    draw = RankDraw(
        aggregate="x", role="value", measure="m", level=Fraction(1, (1 << bits) + 1), shift=0,
        ends=(0, 0), candidates=3, rate=Fraction(1, 100),
    )  # fmt: skip
    found = rank_distances(draw, [weights])
    assert found.dtype == np.int64 and found.min() >= 0


def test_scores_are_cut_off_at_public_ends() -> None:
    draws = PairDraws(candidates=((0, 1), (0, 2)), picks=1, penalty=1 << 80, rate=Fraction(1))
    single = {(0,): [1, 2], (1,): [10**40, 3], (2,): [2]}
    exact = {(0, 1): [1, 2, 3, 4], (0, 2): [10**30, 2]}
    scores = pair_scores(draws, exact, single)  # type: ignore[arg-type]
    assert all(abs(score) <= noise._FARTHEST for score in scores.values())


@pytest.mark.parametrize("kind", ["count", "pairs"])
def test_errors_on_the_way_to_the_books_hold_no_numbers(books: Ledger, kind: str) -> None:
    case = Case(books, kind)
    entry = case.reserve()
    with pytest.raises(LastbitError) as caught:
        answer(case.program, entry, books=books, make_record=case.spy, who="\ud800")
    trace, frames = caught.value.__traceback__, []
    while trace is not None:
        frames.append(trace.tb_frame)
        trace = trace.tb_next
    assert not [f for f in frames for value in f.f_locals.values() if isinstance(value, Noisy)]
    assert caught.value.__context__ is None and case.seen == []


def test_what_is_too_large_for_the_books_stays_the_draw(
    books: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else how often a draw is refused would tell, at no charge, how many keys there are."""
    case = Case(books)
    entry = case.reserve()
    with monkeypatch.context() as patch:
        patch.setattr(charging, "_MOST_NUMBERS", 0)
        with pytest.raises(EngineFailed, match="cannot be used"):
            case.answer(entry)
    for _ in range(3):
        with pytest.raises(EngineFailed, match="cannot be used"):
            case.answer(entry)
    assert case.seen == []
    again = case.reserve()  # charged anew
    assert again.hash != entry.hash and case.spent == Fraction(2, 1000)


def test_what_cannot_be_written_stays_the_draw(
    books: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Say a key of the data that is longer than a constant may be, where it is shown."""

    def failing(_: Noisy) -> str:
        raise InvalidParameter("a constant", problem="is too long", remedy="write a shorter one")

    case = Case(books)
    entry = case.reserve()
    with monkeypatch.context() as patch:
        patch.setattr(Noisy, "to_text", failing)
        with pytest.raises(EngineFailed, match="cannot be used"):
            case.answer(entry)
    with pytest.raises(EngineFailed, match="cannot be used"):
        case.answer(entry)
    assert case.seen == [] and case.reserve().hash != entry.hash


def test_an_entry_is_believed_as_the_books_have_it(books: Ledger) -> None:
    class Cheap:
        """Equal to any price."""

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 0

        def to_json(self) -> Any:
            return entry.cost.to_json()  # type: ignore[union-attr]

    case = Case(books)
    entry = case.reserve()
    cheap: Any = Cheap()
    posing = replace(entry, cost=cheap, question="q")
    with pytest.raises((LastbitError, TypeError)):
        case.answer(posing)
    with pytest.raises(WrongType):
        answer(case.program, object(), books=books, make_record=case.spy, who="eve")  # type: ignore[arg-type]
    assert case.seen == []


@pytest.mark.parametrize("ask", ["median", "histogram", "few"])
@pytest.mark.parametrize("unit", [42, 420])
def test_bins_beyond_64_bits_fail_whoever_is_there(ask: str, unit: int, tmp_path: Path) -> None:
    """They stopped the engine where a row came to them: an answer told who is in the table."""
    rows = polars.DataFrame({"id": range(100), "x": range(100)})
    rows.write_parquet(tmp_path / "v.parquet")
    table = lb.table(tmp_path / "v.parquet", unit="id", max_rows=1).where(f"id = {unit}")
    asked = {
        "median": lb.median("x", 0, 2**70),
        "histogram": lb.histogram("x", [i * 2**60 for i in range(60)]),
        "few": lb.histogram("x", [0, 2**126, 2**127, 2**128]),
    }[ask]
    with pytest.raises(InvalidParameter, match="64 bits"):
        table.agg(m=asked).release(epsilon="0.001")


def test_threads_that_share_a_session_read_their_own_tables(tmp_path: Path) -> None:
    import duckdb

    from lastbit.tables.plan.sensitivity import measures_of

    cards, found = [], []
    for number, size in enumerate((100, 300)):
        path = tmp_path / f"{number}.db"
        with duckdb.connect(str(path)) as connection:
            connection.execute(f"CREATE TABLE t AS SELECT i AS x FROM range({size}) r(i)")
        cards.append((lb.table(path, each_row=True, name="t", table="t").card, size))
    with open_session(cards[0][0]) as session:

        def ask(card: Any, size: int) -> None:
            query = lb.tables.parsed("SELECT count(*) AS n FROM t", card)
            measures = measures_of(query)[0]
            for _ in range(15):
                raw = session.aggregates(query, card, measures, secret=None)
                found.append(opened(query, measures, raw).entries["m1"] == [size])

        threads = [threading.Thread(target=ask, args=pair) for pair in cards * 2]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(found) == 60 and all(found)
