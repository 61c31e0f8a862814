"""Rows made up from a card alone: as it says, the same for a seed, and nothing else is opened."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from datetime import date
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from lastbit.errors import InvalidParameter
from lastbit.release.made_up_rows import (
    MADE_UP,
    in_own_format,
    made_up,
    made_up_answer,
)
from lastbit.release.paying import checked
from lastbit.release.release import released
from lastbit.release.table import table
from lastbit.report import page, title_of
from lastbit.tables import (
    Column,
    DataCard,
    PrivateTable,
    PublicTable,
    Source,
    parsed,
    planned,
    read_card,
)
from tests.cli.running import lastbit, read, refused, succeeded
from tests.kernel.unsealing import aggregates
from tests.release import canaries
from tests.release.canaries import ALL, FOUND, write_card

canary_folder = canaries.canary_folder
NOWHERE = Source(kind="parquet", paths=("/nowhere/at/all.parquet",))
SERVER = Source(kind="postgres", paths=("postgresql://db.invalid/clinic",), table="visits")


def card_of(*columns: Column, unit: str | None = "who", **more: Any) -> DataCard:
    if unit is not None and all(c.name != unit for c in columns):
        columns = (Column(name=unit, type="integer"), *columns)
    given: dict[str, Any] = {"max_rows": 3 if unit else 1, "source": NOWHERE} | more
    return DataCard(name="visits", unit=unit, columns={c.name: c for c in columns}, **given)


def rows_of(card: DataCard, folder: Path, **how: Any) -> list[tuple[Any, ...]]:
    made = made_up(card, folder=folder, **how)
    (path,) = made.source.paths
    with duckdb.connect(":memory:") as connection:
        return connection.execute("FROM read_parquet([?])", [path]).fetchall()


# ---------------------------------------------------------------- as the card says

TEXTS = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=8)
NUMBERS = st.integers(-(2**20), 2**20).map(lambda number: Fraction(number, 64))


@st.composite
def columns(draw: st.DrawFn) -> Column:
    kinds = ("integer", "number", "text", "boolean", "date", "timestamp")
    kind: Any = draw(st.sampled_from(kinds))
    said: dict[str, Any] = {"nullable": draw(st.booleans())}
    values = {
        "integer": st.integers(-(2**63) + 1, 2**63 - 1), "text": TEXTS,
        "boolean": st.booleans(), "date": st.dates(date(1, 1, 1), date(9999, 12, 31)),
    }  # fmt: skip
    if kind in values and draw(st.booleans()):
        some = st.one_of(values[kind], st.none())
        said["keys"] = draw(st.lists(some, min_size=1, max_size=4, unique=True))
    elif kind in ("integer", "number") and draw(st.booleans()):
        low, high = sorted(draw(st.tuples(NUMBERS, NUMBERS)))
        said["bounds"] = (low, high + 1)
        if kind == "number" and draw(st.booleans()):
            said["step"] = Fraction(draw(st.integers(1, 64)), 64)
    return Column(name=draw(TEXTS), type=kind, **said)


@given(st.lists(columns(), min_size=1, max_size=3, unique_by=lambda c: c.name.lower()))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_value_is_one_that_the_card_allows(
    tmp_path_factory: pytest.TempPathFactory, columns: list[Column]
) -> None:
    card = card_of(*columns, unit=None)
    rows = rows_of(card, tmp_path_factory.mktemp("made"), rows=200)
    assert len(rows) == 200
    for column, values in zip(columns, zip(*rows, strict=True), strict=True):
        check_column(column, values)


@pytest.mark.parametrize("kind", ["integer", "number"])
@pytest.mark.parametrize("ends", [(-(2**63) + 1, 2**63 - 1), (-(10**30), 10**30), (0, 10**400)])
def test_bounds_as_wide_as_can_be(kind: Any, ends: tuple[int, int], folder: Path) -> None:
    column = Column(name="x", type=kind, bounds=ends, nullable=False)
    (values,) = zip(*rows_of(card_of(column, unit=None), folder, rows=300), strict=True)
    check_column(column, values)
    assert len(set(values)) > 200


def check_column(column: Column, values: tuple[Any, ...]) -> None:
    kinds = {"integer": int, "number": float, "text": str, "boolean": bool}
    if not column.nullable and None not in (column.keys or ()):
        assert None not in values
    present = [value for value in values if value is not None]
    assert all(type(value) is kinds.get(column.type, type(value)) for value in present)
    if column.keys is not None:
        assert set(present) <= set(column.keys)
    elif column.number_bounds is not None:
        low, high = column.number_bounds
        assert all(low <= Fraction(value) <= high for value in present)
        if column.step is not None:  # all of 1/64, so exact in floats
            assert all(((Fraction(v) - low) / column.step).denominator == 1 for v in present)


def test_units_have_from_one_to_max_rows_rows(folder: Path) -> None:
    rows = rows_of(card_of(max_rows=4), folder, rows=2000)
    assert len(rows) == 2000
    counts = Counter(Counter(who for (who,) in rows).values())
    assert set(counts) == {1, 2, 3, 4} and counts[1] > counts[2] > counts[4]
    named = rows_of(card_of(Column(name="who", type="text")), folder / "scratch", rows=10)
    assert named[0] == ("unit 1",)
    for path in (folder / "scratch").iterdir():
        path.unlink()


def test_few_rows_are_not_all_of_one_unit(folder: Path) -> None:
    rows = rows_of(card_of(max_rows=1 << 20), folder, rows=400)
    assert len(set(rows)) > 20


def test_a_card_of_csv_files_has_the_same_rows_as_csv(tmp_path: Path) -> None:
    named = Column(name='a "b", c', type="text", keys=["x,y", 'q"', "plain", None])
    card = card_of(Column(name="cost", type="number", bounds=(Fraction(0), Fraction(9))), named)
    made = made_up(card, rows=500, folder=tmp_path)
    assert in_own_format(made, card) == made
    text = in_own_format(made, replace(card, source=Source(kind="csv", paths=("visits.csv",))))
    assert text.source.kind == "csv"
    for group in ("", ' WHERE "a ""b"", c" = \'q"\''):
        query = parsed(f"SELECT COUNT(*) AS n, SUM(cost) AS cost FROM visits{group}", card)
        measures = planned(query, card, epsilon=1).measures
        found = [aggregates(query, one, measures, secret="s").entries for one in (made, text)]
        assert found[0] == found[1] and all(found[0].values())


def test_a_seed_makes_the_same_rows(tmp_path: Path) -> None:
    card = card_of(Column(name="x", type="number", bounds=(0, 1)))
    folders = [tmp_path / name for name in "abc"]
    for one in folders:
        one.mkdir()
    first, again, other = (
        rows_of(card, place, rows=500, seed=seed)
        for place, seed in zip(folders, (1, 1, 2), strict=True)
    )
    assert first == again and first != other


def test_neighbouring_rows_are_not_alike(folder: Path) -> None:
    """DuckDB's hash of several numbers leaves the first bits of neighbours alike."""
    card = card_of(Column(name="x", type="text", nullable=False), max_rows=2)
    rows = rows_of(card, folder, rows=4000)
    pairs = [(a[1], b[1]) for a, b in pairwise(rows) if a[0] == b[0]]
    assert len(pairs) > 500 and sum(a == b for a, b in pairs) < len(pairs) / 10


def test_hostile_names_and_keys(tmp_path: Path) -> None:
    column = Column(name='a"; DROP TABLE x; --', type="text", keys=["it's", "'; --", "\\"])
    folder = tmp_path / "it's [a] *folder*"
    folder.mkdir()
    card = card_of(column, unit=None)
    assert {value for (value,) in rows_of(card, folder, rows=300)} == {*(column.keys or ()), None}
    (folder / "deeper").mkdir()
    made = made_up(card, rows=500, folder=folder / "deeper")  # where lastbit reads it
    query = parsed("SELECT COUNT(*) AS n FROM visits", made)
    assert released(query, made, planned(query, made, epsilon=10)).value > 400


def test_nothing_is_written_over(tmp_path: Path) -> None:
    card = card_of()
    made_up(card, rows=1, folder=tmp_path)
    with pytest.raises(InvalidParameter, match="name an empty one"):
        made_up(card, rows=1, folder=tmp_path)
    with pytest.raises(InvalidParameter, match="make it first"):
        made_up(card, rows=1, folder=tmp_path / "gone")


def test_the_card_has_nothing_to_pay_with(folder: Path) -> None:
    made = made_up(read_card("visits.toml"), rows=1, folder=folder)
    assert (made.ledger, made.budget, made.users, made.account, made.file) == (None,) * 5


# ---------------------------------------------------------------- other tables


def joined(source: Source, public: Source) -> DataCard:
    region = Column(name="region", type="text", keys=["n", "s"])
    beds = Column(name="beds", type="integer", bounds=(0, 9))
    who = Column(name="who", type="integer")
    stays = PrivateTable(
        name="stays", source=source, unit="who", max_rows=3, columns={"who": who, "beds": beds}
    )
    areas = PublicTable(name="areas", source=public, columns={"region": "text", "area": "text"})
    card = card_of(region, Column(name="town", type="text"), source=source)
    return replace(card, private={"stays": stays}, public={"areas": areas})


JOINS = (
    "SELECT COUNT(*) AS n FROM visits JOIN stays ON visits.who = stays.who",
    "SELECT COUNT(*) AS n FROM visits JOIN areas USING (region)",
)


@pytest.mark.parametrize("sql", JOINS)
@pytest.mark.parametrize("where", ["file", "server"])
def test_joined_tables_meet(where: str, sql: str, folder: Path) -> None:
    if where == "file":
        (folder / "areas.csv").write_text("region,area\nn,a\ns,b\n", "utf-8")
        card = joined(NOWHERE, Source(kind="csv", paths=(str(folder / "areas.csv"),)))
    else:
        card = joined(SERVER, SERVER)
    answer = made_up_answer(planned(parsed(sql, card), card, epsilon=5), card, rows=2000)
    assert answer.value > 500


def test_values_come_from_public_tables(folder: Path) -> None:
    """Else a join on a column without declared keys would find nothing."""
    (folder / "towns.csv").write_text("town,size\nYork,1\nBath,2\n", "utf-8")
    public = Source(kind="csv", paths=(str(folder / "towns.csv"),))
    towns = PublicTable(name="towns", source=public, columns={"town": "text", "size": "integer"})
    card = replace(card_of(Column(name="town", type="text")), public={"towns": towns})
    rows = rows_of(card, folder, rows=300)
    assert {town for _, town in rows} == {"York", "Bath", None}


@pytest.mark.parametrize("how", ["itself", "link", "among others"])
def test_a_public_table_that_is_the_table_is_refused(how: str, folder: Path) -> None:
    """The hole: its values would have been those of made-up rows, free to see."""
    place, secret = folder / "areas.csv", folder / "visits.csv"
    place.hardlink_to(secret) if how == "link" else None
    public = Source(kind="csv", paths=(str(place if how == "link" else secret),))
    notes = PublicTable(name="notes", source=public, columns={"note": "text"})
    files = (str(secret), "/nowhere/else.csv") if how == "among others" else (str(secret),)
    table = card_of(Column(name="note", type="text"), source=Source(kind="csv", paths=files))
    for one in (table, replace(card_of(source=NOWHERE), private={"stays": PrivateTable(
        name="stays", source=table.source, unit="who", max_rows=1, columns=table.columns
    )})):  # fmt: skip
        with pytest.raises(InvalidParameter, match="is the table itself"):
            made_up(replace(one, public={"notes": notes}), rows=9, folder=folder)
    accepted = replace(table, public={"notes": notes}, accepted_data=True)
    query = parsed("SELECT COUNT(*) AS n FROM visits JOIN notes USING (note)", accepted)
    with pytest.raises(InvalidParameter, match="is the table itself"):
        checked(planned(query, accepted, epsilon=1))


# ---------------------------------------------------------------- answers about them

PER_UNIT = (
    "SELECT AVG(clamp(n, 0, 3)) AS n"
    " FROM (SELECT patient, COUNT(*) AS n FROM visits GROUP BY patient)"
)


@pytest.mark.parametrize("sql", [ALL, FOUND, "SELECT COUNT(*) AS n FROM visits"])
def test_an_answer_says_that_it_is_made_up(sql: str, folder: Path) -> None:
    """And the source need not be there."""
    Path("visits.csv").unlink()
    card = read_card("visits.toml")
    price = {"epsilon": 1, "delta": "1e-6"} if sql == FOUND else {"epsilon": 1}
    answer = made_up_answer(planned(parsed(sql, card), card, **price), card, sql=sql)
    assert answer.notes[0] == MADE_UP and not answer.charged and len(answer) > 0
    record = answer.record
    assert record["certificate"] == {} and record["entry"] is None and record["made_up"]["rows"]
    assert title_of(record).startswith("Made-up rows: ")
    assert set(record["cost"].values()) == {"0"} and "Nothing is promised" in answer.guarantee
    written = page(record, title="The real thing")
    assert "<h1>Made-up rows: The real thing</h1>" in written
    assert "lastbit check" not in written and "The answer hides" not in written
    assert not Path("visits.ledger").exists()
    answer.to_json("made.json")
    assert lastbit("check", "made.json").exit_code == 1


def test_units_have_several_rows_in_a_sub_query(folder: Path) -> None:
    card = read_card("visits.toml")
    query = parsed(PER_UNIT, card)
    assert made_up_answer(planned(query, card, epsilon=8), card).value > 1.3


def test_marginals_too(folder: Path) -> None:
    plan = table("visits.toml").marginals(["region"], up_to=1).plan(epsilon=1)
    record = made_up_answer(plan, read_card("visits.toml")).record
    assert record["made_up"] and record["certificate"] == {} and record["rows"]
    assert title_of(record).startswith("Made-up rows: ")


def test_on_the_command_line(folder: Path) -> None:
    Path("visits.csv").unlink()
    sql = "SELECT region, COUNT(*) AS n FROM visits GROUP BY region"
    asked = ("query", "visits.toml", sql, "--epsilon", "1", "--made-up")
    shown = succeeded(*asked)
    assert "Made-up rows: n by region" in shown and "made up, free" in shown
    assert "Nothing was read, charged or recorded." in " ".join(shown.split())
    found = read(*asked)
    assert found["answer"]["made_up"] and found["charged"] is False
    assert "account" not in found
    assert len(succeeded(*asked, "--consistent")) > 100
    marginals = ("query", "visits.toml", "--marginals", "region", "--epsilon", "1", "--made-up")
    assert "Made-up rows" in succeeded(*marginals)
    for more in (["--out", "x.json"], ["--report", "x.html"], ["--fresh"], ["--kept"]):
        assert "no answer that could be bought or kept" in refused(*asked, *more)
    assert sorted(path.name for path in folder.iterdir()) == ["scratch", "visits.toml"]
    json.dumps(found)


def test_a_card_without_what_is_asked_is_refused_as_ever(folder: Path) -> None:
    write_card(folder)
    words = refused("query", "visits.toml", "SELECT SUM(zoo) AS n FROM visits", "--made-up")
    assert "zoo" in words
