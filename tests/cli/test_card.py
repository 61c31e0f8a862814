"""`lastbit card`: drafts that hold no value, checks that name the line."""

from __future__ import annotations

import gzip
import json
import os
import tomllib
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner

from lastbit.cli import main
from tests.cli.running import lastbit, read, refused, succeeded

CANARY = "canary-73211"


pytestmark = pytest.mark.usefixtures("folder")


def visits(file: str = "visits.parquet") -> str:
    duckdb.execute(
        f"COPY (SELECT 73211 AS patient_id, '{CANARY}' AS region, 732.11::DOUBLE AS cost,"
        f" DATE '1973-02-11' AS day) TO '{file}'"
    )
    return file


def decided(file: str, **columns: str) -> None:
    """Answer what a draft asks."""
    text = Path(file).read_text("utf-8")
    for old, new in (
        ('neighbours = "decide"', 'neighbours = "add-remove"'),
        ('column = "decide"', 'column = "patient_id"'),
        ("# max_rows = 20", "max_rows = 20"),
        ('epsilon = "decide"', "epsilon = 3"),
    ):
        text = text.replace(old, new)
    for column, kind in columns.items():
        text = text.replace(
            f'[columns.{column}]\ntype = "decide"', f'[columns.{column}]\ntype = "{kind}"'
        )
    Path(file).write_text(text, "utf-8")


def without_values(text: str) -> str:
    for value in (CANARY, "73211", "732.11", "1973"):
        assert value not in text
    return text


# ---------------------------------------------------------------- new


def test_a_draft_of_a_parquet_file_has_names_and_types():
    page = without_values(succeeded("card", "new", visits()))
    assert "visits.toml" in page and "3 lines to decide" in page
    assert "lastbit card check visits.toml" in page
    data = tomllib.loads(without_values(Path("visits.toml").read_text("utf-8")))
    assert data["table"]["source"] == "visits.parquet"
    assert {name: fields["type"] for name, fields in data["columns"].items()} == {
        "patient_id": "integer",
        "region": "text",
        "cost": "number",
        "day": "date",
    }


def test_a_draft_of_a_csv_file_has_names_only():
    page = without_values(succeeded("card", "new", visits("visits.csv"), "--out", "a.toml"))
    assert "4, 4 of them without a type yet" in page and "7 lines to decide" in page
    assert page.count("likewise") == 3  # what types there are is said once
    assert "add --look, if you may look" in page
    data = tomllib.loads(without_values(Path("a.toml").read_text("utf-8")))
    assert [fields["type"] for fields in data["columns"].values()] == ["decide"] * 4
    assert data["table"]["name"] == "visits"


def test_a_draft_of_a_table_of_a_database():
    with duckdb.connect("x.duckdb") as connection:
        connection.execute(f"CREATE TABLE stays AS SELECT 1 AS id, '{CANARY}' AS ward")
    without_values(succeeded("card", "new", "x.duckdb", "--table", "stays"))
    data = tomllib.loads(without_values(Path("stays.toml").read_text("utf-8")))
    assert data["table"]["source"] == {"duckdb": "x.duckdb", "table": "stays"}
    assert "--table" in refused("card", "new", "x.duckdb", "--out", "b.toml")
    assert "is for DuckDB files" in refused("card", "new", visits(), "--table", "stays")
    assert "is not a table" in refused("card", "new", "x.duckdb", "--table", "absent")


def test_paths_are_relative_to_the_card(folder):
    (folder / "data").mkdir()
    (folder / "cards").mkdir()
    succeeded("card", "new", visits("data/a b.parquet"), "--out", "cards/v.toml")
    assert tomllib.loads(Path("cards/v.toml").read_text())["table"]["source"] == (
        "../data/a b.parquet"
    )
    decided("cards/v.toml")
    succeeded("card", "check", "cards/v.toml")
    absolute = str(folder / "data" / "a b.parquet")
    succeeded("card", "new", absolute)
    assert tomllib.loads(Path("a_b.toml").read_text())["table"]["source"] == absolute


def test_several_files():
    one, two = visits("1.parquet"), visits("2.parquet")
    succeeded("card", "new", one, two, "--out", "v.toml")
    assert tomllib.loads(Path("v.toml").read_text())["table"]["source"] == [one, two]
    assert "known kind" in refused("card", "new", one, visits("3.csv"), "--out", "w.toml")


def test_nothing_is_replaced():
    visits()
    Path("visits.toml").write_text("mine")
    assert "visits.toml exists, and is not replaced; name another by --out" in refused(
        "card", "new", "visits.parquet"
    )
    os.symlink("elsewhere.toml", "link.toml")
    refused("card", "new", "visits.parquet", "--out", "link.toml")
    refused("card", "new", "visits.parquet", "--out", "visits.parquet")
    assert Path("visits.toml").read_text() == "mine"
    assert not Path("elsewhere.toml").exists()


@pytest.mark.parametrize("out", ["absent/v.toml", "v.txt", "v.parquet"])
def test_a_card_needs_a_folder_and_an_end(out):
    refused("card", "new", visits(), "--out", out)
    assert not Path(out).exists()


HOSTILE = ('a "b"', "first name", "é", "x;DROP TABLE v", "[budget]", "# c", "it's", "\\u0041", "=")


def test_names_of_every_kind_go_through_draft_and_check():
    header = ",".join('"' + name.replace('"', '""') + '"' for name in ("patient_id", *HOSTILE))
    Path("v.csv").write_text(f"{header}\n{','.join([CANARY] * (1 + len(HOSTILE)))}\n", "utf-8")
    without_values(succeeded("card", "new", "v.csv"))
    assert list(tomllib.loads(Path("v.toml").read_text("utf-8"))["columns"]) == [
        "patient_id",
        *HOSTILE,
    ]
    decided("v.toml")
    text = Path("v.toml").read_text("utf-8").replace('type = "decide"', 'type = "text"')
    Path("v.toml").write_text(text, "utf-8")
    without_values(succeeded("card", "check", "v.toml"))


def test_headers_with_a_mark_other_delimiters_or_packed():
    Path("a.csv").write_bytes(b"\xef\xbb\xbfid,age\r\n73211,73211\r\n")
    Path("b.csv").write_text("id;age\n73211;73211\n")
    Path("c.tsv").write_text("id\tage\n73211\t73211\n")
    Path("d.csv.gz").write_bytes(gzip.compress(b"id,age\n73211,73211\n"))
    for file, card in (("a.csv", "a"), ("b.csv", "b"), ("c.tsv", "c"), ("d.csv.gz", "d")):
        without_values(succeeded("card", "new", file))
        assert list(tomllib.loads(Path(f"{card}.toml").read_text())["columns"]) == ["id", "age"]


@pytest.mark.parametrize(
    "content",
    [
        b"id,id\n73211,73211\n",
        b"id,ID\n73211,73211\n",
        b"id,\n73211,73211\n",
        b"",
        b"\n73211\n",
        b"\xff\xfe\n73211\n",
        b"73211,canary-73211\n73211,north\n",
        b"north,1973-02-11\nsouth,1973-02-11\n",
    ],
)
def test_headers_that_name_no_columns(content):
    Path("v.csv").write_bytes(content)
    told = without_values(refused("card", "new", "v.csv"))
    assert "north" not in told
    assert not Path("v.toml").exists()


def test_sources_that_are_not_there():
    assert "is not there" in refused("card", "new", "absent.csv")
    Path("torn.parquet").write_text(CANARY * 9)
    without_values(refused("card", "new", "torn.parquet"))
    assert "ends in .xlsx" in refused("card", "new", "visits.xlsx")
    assert "known kind" in refused("card", "new", "visits")
    assert not list(Path().glob("*.toml"))


# ---------------------------------------------------------------- check


def test_a_draft_is_refused_line_by_line():
    succeeded("card", "new", visits())
    told = refused("card", "check", "visits.toml")
    assert "3 to decide" in told
    for field in ("table.neighbours", "unit.column", "budget.epsilon"):
        assert f"{field} decide: write" in told
    found = json.loads(lastbit("card", "check", "visits.toml", "--json").stdout)
    assert not found["usable"]
    lines = Path("visits.toml").read_text().splitlines()
    assert len(found["problems"]) == 3
    for problem in found["problems"]:
        assert problem["undecided"] and '"decide"' in lines[problem["line"] - 1]


def test_a_card_may_leave_max_rows_out():
    succeeded("card", "new", visits())
    decided("visits.toml")
    text = Path("visits.toml").read_text().replace("max_rows = 20", "# max_rows = 20")
    Path("visits.toml").write_text(text)
    page = without_values(succeeded("card", "check", "visits.toml"))
    assert "a profile chooses how many rows of each count" in page
    assert "choose them from a profile" in page


def test_a_card_that_is_whole_is_shown():
    succeeded("card", "new", visits())
    decided("visits.toml")
    text = Path("visits.toml").read_text()
    text = text.replace(
        "# bounds = [0, 100]\n\n[columns.day]", "bounds = [0, 0.5]\n\n[columns.day]"
    )
    text = text.replace('# keys = ["a", "b"]', 'keys = ["north", "south"]\nnullable = false')
    Path("visits.toml").write_text(text.replace("[columns.day]", "[ignored]", 1))
    assert "ignored is not known" in refused("card", "check", "visits.toml")
    Path("visits.toml").write_text(text.partition("[columns.day]")[0])
    page = without_values(succeeded("card", "check", "visits.toml"))
    for shown in (
        "can be used",
        "patient_id; each counts for up to 20 rows",
        "add-remove: one unit more or less",
        "ε 3",
        "visits.ledger",
        "everybody who can read the files",
        "0 to 0.5",
        "2: north, south",
        "no question can use them: day",
    ):
        assert shown in page
    assert read("card", "check", "visits.toml") == {
        "card": "visits.toml",
        "usable": True,
        "problems": [],
        "notes": [],
        "left_out": ["day"],
    }


def test_limits_of_the_engine_are_shown_and_tried():
    succeeded("card", "new", visits())
    decided("visits.toml")
    with Path("visits.toml").open("a") as card:
        card.write('[engine]\nmax_memory = "2GB"\nspill_folder = "tmp"\nmax_spill = "9GB"\n')
        card.write("threads = 2\nindex = false\n")
    told = refused("card", "check", "visits.toml")
    assert "engine.spill_folder" in told and "is not a folder" in told
    Path("tmp").mkdir()
    page = " ".join(succeeded("card", "check", "visits.toml").split())
    assert "up to 2GB of memory, 2 threads, spills up to 9GB to tmp, no index" in page


def test_what_an_analyst_will_run_into_is_noted():
    succeeded("card", "new", visits())
    decided("visits.toml")
    page = " ".join(succeeded("card", "check", "visits.toml").split())
    assert "No bounds: cost." in page
    assert "No keys: region, day. Grouping by these needs a delta in the budget." in page
    text = Path("visits.toml").read_text().replace("# delta = 1e-9", "delta = 0.01")
    text = text.replace("# max_groups", "max_groups").replace("epsilon = 3", "epsilon = 30")
    Path("visits.toml").write_text(text)
    page = " ".join(succeeded("card", "check", "visits.toml").split())
    assert "Grouping by these finds them privately, for a delta" in page
    assert "protects little" in page and "A delta of 0.01 is large" in page


def test_a_card_beside_another_file():
    succeeded("card", "new", visits())
    decided("visits.toml")
    duckdb.execute(
        "COPY (SELECT 73211 AS patient_id, 'x' AS region, true AS day) TO 'visits.parquet'"
    )
    told = without_values(refused("card", "check", "visits.toml"))
    assert "2 wrong" in told
    assert "columns.cost is not in the source" in told
    assert "columns.day is date here and boolean in the source" in told
    Path("visits.parquet").unlink()
    assert "is not there" in refused("card", "check", "visits.toml")


def test_a_check_reads_no_value_and_writes_nothing(folder):
    succeeded("card", "new", visits("visits.csv"))
    decided("visits.toml", patient_id="integer", region="text", cost="number", day="date")
    text = Path("visits.toml").read_text().replace('type = "decide"', 'type = "text"')
    Path("visits.toml").write_text(text)
    before = sorted(path.name for path in folder.iterdir())
    without_values(succeeded("card", "check", "visits.toml"))
    assert sorted(path.name for path in folder.iterdir()) == before == ["visits.csv", "visits.toml"]


def test_hostile_cards_do_not_steer_the_terminal():
    Path("v.toml").write_text('[columns."\\u001b[2J\\u202e"]\ntype = "x"\n["\\u009b31m"]\n')
    told = refused("card", "check", "v.toml")
    assert all(letter.isprintable() for letter in told)


def test_what_is_no_card():
    Path("v.toml").write_text(f"{CANARY},b\n1,2\n")
    assert CANARY not in refused("card", "check", "v.toml")
    assert "cannot be read" in refused("card", "check", "absent.toml")


# ---------------------------------------------------------------- decisions in the draft

TYPES = "patient_id=text,region=text,cost=number,day=date"


def test_options_decide_what_a_draft_asks():
    visits("visits.csv")
    said = ("--unit", "PATIENT_ID", "--max-rows", "5", "--epsilon", "1/3", "--delta", "1e-9")
    page = succeeded(
        "card", "new", "visits.csv", *said, "--neighbours", "change-one", "--types", TYPES
    )
    assert "all is decided" in page and "Next: lastbit card check visits.toml" in page
    data = tomllib.loads(without_values(Path("visits.toml").read_text("utf-8")))
    assert data["unit"] == {"column": "patient_id", "max_rows": 5}
    assert data["budget"] == {"epsilon": "1/3", "delta": 1e-9}
    assert "can be used" in succeeded("card", "check", "visits.toml")


def test_each_row_needs_no_bound():
    page = succeeded("card", "new", visits(), "--each-row", "--epsilon", "1")
    assert "1 line to decide" in page
    assert tomllib.loads(Path("visits.toml").read_text("utf-8"))["unit"] == {"each_row": True}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--unit", "nobody"), "--unit names nobody, which is no column of the source"),
        (("--types", "nobody=text"), "--types names nobody, which is no column"),
        (("--types", "cost=real"), "unknown type for cost"),
        (("--types", "cost"), "--types names no column"),
        (("--epsilon", "much"), "--epsilon"),
        (("--epsilon", "0"), "--epsilon is not above 0"),
        (("--each-row", "--unit", "cost"), "leave out --unit"),
    ],
)
def test_decisions_that_are_refused(options, words):
    assert words in refused("card", "new", visits(), *options)
    assert not Path("visits.toml").exists()


def test_nobody_is_asked_in_a_pipe():
    visits()
    assert "Whose row" not in succeeded("card", "new", "visits.parquet")


def test_a_terminal_is_asked(monkeypatch):
    monkeypatch.setattr("lastbit.cli.drafting._on_terminal", lambda: True)
    visits("visits.csv")
    typed = ["nobody", "patient_id", "many", "7", "neither", "add-remove", "0", "0.5"]
    typed += ["text", "", "number", "date"]
    run = CliRunner().invoke(main, ["card", "new", "visits.csv"], input="\n".join(typed) + "\n")
    assert run.exit_code == 0, run.output
    assert (
        "which is no column of the source" in run.output and "is not a whole number" in run.output
    )
    assert "1 line to decide" in run.output
    data = tomllib.loads(without_values(Path("visits.toml").read_text("utf-8")))
    assert data["unit"] == {"column": "patient_id", "max_rows": 7}
    assert [fields["type"] for fields in data["columns"].values()] == [
        *("text", "decide", "number", "date")
    ]
    run = CliRunner().invoke(main, ["card", "new", "visits.csv", "--out", "b.toml"], input="row\n")
    assert run.exit_code == 1 and not Path("b.toml").exists()  # the end of the input is no answer


def test_a_draft_of_a_folder():
    duckdb.execute(
        "COPY (SELECT 1 AS id, 2024 AS year) TO 'stays' (FORMAT parquet, PARTITION_BY (year))"
    )
    succeeded("card", "new", "stays/", "--unit", "id", "--max-rows", "1", "--epsilon", "1")
    data = tomllib.loads(Path("stays.toml").read_text("utf-8"))
    assert data["table"] == {"name": "stays", "source": "stays", "neighbours": "decide"}
    assert data["columns"]["year"] == {"type": "text"}
    text = Path("stays.toml").read_text().replace('"decide"', '"add-remove"')
    Path("stays.toml").write_text(
        text.replace('[columns.year]\ntype = "text"', '[columns.year]\ntype = "integer"')
    )
    assert "can be used" in succeeded("card", "check", "stays.toml")


def test_whole_numbers_between_near_bounds_have_keys() -> None:
    succeeded("card", "new", visits())
    decided("visits.toml")
    text = Path("visits.toml").read_text()
    Path("visits.toml").write_text(
        f'{text}\n[columns.month]\ntype = "integer"\nbounds = [1, 12]\n'
        '[columns.year]\ntype = "integer"\nbounds = [0, 3000]\n'
    )
    duckdb.execute(
        f"COPY (SELECT 73211 AS patient_id, '{CANARY}' AS region, 732.11::DOUBLE AS cost,"
        " DATE '1973-02-11' AS day, 3 AS month, 2013 AS year) TO 'visits.parquet'"
    )
    page = " ".join(succeeded("card", "check", "visits.toml").split())
    assert "No keys: region, day, year. Grouping" in page


# ---------------------------------------------------------------- prepare, unprepare


def prepared_card() -> None:
    """Decided, and with a folder for prepared rows."""
    succeeded("card", "new", visits())
    decided("visits.toml")
    text = Path("visits.toml").read_text("utf-8")
    Path("visits.toml").write_text(f'{text}\n[prepared]\npath = "ready"\n', "utf-8")


def test_rows_are_prepared_and_removed():
    prepared_card()
    assert "is not made yet" in " ".join(succeeded("card", "check", "visits.toml").split())
    assert read("card", "check", "visits.toml")["prepared"] is False
    page = without_values(succeeded("card", "prepare", "visits.toml"))
    assert "prepared" in page and "you alone" in page
    assert "was prepared already" in succeeded("card", "prepare", "visits.toml")
    assert read("card", "prepare", "visits.toml")["made_now"] is False
    assert "ready, 0." in without_values(succeeded("card", "check", "visits.toml"))
    assert read("card", "check", "visits.toml")["prepared"] is True
    asked = "SELECT COUNT(*) AS n FROM visits"
    succeeded("query", "visits.toml", asked, "--epsilon", "1")
    duckdb.execute("COPY (SELECT 1 AS patient_id, 'x' AS region, 1e0 AS cost) TO 'more.parquet'")
    duckdb.execute(
        "COPY (FROM read_parquet(['visits.parquet', 'more.parquet'], union_by_name = true))"
        " TO 'visits.parquet'"
    )
    assert "another state" in " ".join(succeeded("card", "check", "visits.toml").split())
    words = refused("query", "visits.toml", asked, "--epsilon", "1")
    assert "another state of the source" in words and "card unprepare" in words
    assert "removed" in succeeded("card", "unprepare", "visits.toml")
    assert "was not prepared" in succeeded("card", "unprepare", "visits.toml")
    assert read("card", "unprepare", "visits.toml") == {"card": "visits.toml", "removed": False}
    assert not Path("ready").exists()


def test_a_card_without_a_folder_is_not_prepared():
    succeeded("card", "new", visits())
    decided("visits.toml")
    for name in ("prepare", "unprepare"):
        assert "add [prepared]" in refused("card", name, "visits.toml")
    assert "prepared" not in succeeded("card", "check", "visits.toml")
    assert "prepared" not in read("card", "check", "visits.toml")


def test_prepared_rows_are_not_written_over():
    prepared_card()
    succeeded("card", "prepare", "visits.toml")
    asked = ("query", "visits.toml", "SELECT COUNT(*) AS n FROM visits", "--epsilon", "1")
    assert "the prepared table" in refused(*asked, "--out", "ready/made.json")


def test_the_checklist_knows_the_second_copy():
    prepared_card()
    assert "a second copy" in " ".join(succeeded("report", "visits.toml", "--checklist").split())
