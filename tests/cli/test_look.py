"""`lastbit card new --look`: what stands in a table becomes a card that works, and is marked."""

from __future__ import annotations

import csv
import random
import tomllib
from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import CliRunner

import lastbit as lb
from lastbit.cli import main
from lastbit.tables import read_card
from tests.cli.running import read, refused, succeeded

MARK = "# taken from the data"
DECIDED = ("--neighbours", "add-remove", "--epsilon", "3", "--delta", "1e-6")

pytestmark = pytest.mark.usefixtures("folder")


def survey(rows: int = 900, *, file: str = "survey.csv", questions: int = 67 - 17) -> str:
    """A survey in text: types to be read off, and every column that is not worth a question."""
    draws = random.Random(20)
    people = [f"P{1000 + person}" for person in range(rows // 3)]
    columns: dict[str, Any] = {
        "respondent_id": lambda: draws.choice(people),
        "e-mail": lambda: f"canary{draws.randrange(10**9)}@example.org",
        "age": lambda: draws.randrange(18, 95),
        "region": lambda: draws.choice(["north", "south", "west"]),
        "zip": lambda: f"{draws.randrange(1, 120):05}",
        "income": lambda: round(draws.lognormvariate(10, 1), 2),
        "visited": lambda: f"2023-{draws.randrange(1, 13):02}-{draws.randrange(1, 28):02}",
        "seen at": lambda: f"2024-01-{draws.randrange(1, 28):02} 10:{draws.randrange(60):02}:00",
        "birth": lambda: f"{draws.randrange(1, 28)}/{draws.randrange(1, 13)}/1970",
        "smoker": lambda: draws.choice(["yes", "No"]),
        "paid": lambda: f"{draws.randrange(10**3, 10**7):,}",
        "score": lambda: draws.choice(["1", "2", "3", "NA", ""]),
        "empty": lambda: "",
        'say "hi"': lambda: f"{draws.random():.9e}",
        "größe": lambda: f"{draws.gauss(170, 10):.1f}",
        "mixed": lambda: draws.choice(["1", "x", "2020-01-01"]),
        "card number": lambda: 10**24 + draws.randrange(10**9),
    }
    for question in range(questions):
        columns[f"q{question + 1}"] = lambda: draws.randrange(1, 8)
    with Path(file).open("w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out)
        writer.writerow(columns)
        writer.writerows([value() for value in columns.values()] for _ in range(rows))
    return file


def card_of(file: str) -> dict[str, Any]:
    return tomllib.loads(Path(file).read_text("utf-8"))


def on_terminal(monkeypatch: pytest.MonkeyPatch, *arguments: str, typed: list[str]) -> str:
    monkeypatch.setattr("lastbit.cli.drafting._on_terminal", lambda: True)
    run = CliRunner().invoke(main, ["card", "new", *arguments], input="\n".join(typed) + "\n")
    assert run.exit_code == 0, run.output
    assert max(map(len, run.output.splitlines())) <= 80, run.output
    return run.output


# ---------------------------------------------------------------- one command


def test_a_csv_of_67_columns_becomes_a_card_that_answers_by_one_command():
    unit = ("--unit", "respondent_id")
    page = succeeded("card", "new", survey(), "--look", "--yes", *unit, *DECIDED)
    assert "all is decided" in page and "columns    63" in page
    assert "left out   e-mail, paid, empty, card number" in page
    columns = card_of("survey.toml")["columns"]
    assert len(columns) >= 60 and set(columns) >= {"q1", "q50", 'say "hi"', "größe"}
    assert {name: fields["type"] for name, fields in columns.items() if name[0] != "q"} == {
        "respondent_id": "text",
        "age": "integer",
        "region": "text",
        "zip": "text",
        "income": "number",
        "visited": "date",
        "seen at": "timestamp",
        "birth": "text",
        "smoker": "boolean",
        "score": "integer",
        'say "hi"': "number",
        "größe": "number",
        "mixed": "text",
    }
    assert columns["region"]["keys"] == ["north", "south", "west"]
    assert columns["visited"]["bounds"] == ["2023-01-01", "2023-12-31"]
    assert (columns["age"]["bounds"], columns["q1"]["bounds"]) == ([0, 100], [1, 7])
    assert columns["income"]["bounds"][0] == 0 and "bounds" not in columns["respondent_id"]
    sql = "SELECT region, COUNT(*) AS n, AVG(age) AS age FROM survey GROUP BY region"
    assert "south" in succeeded("query", "survey.toml", sql, "--epsilon", "1")
    answer = lb.table("survey.toml").group_by("region").agg(n=lb.count()).release(epsilon=1)
    assert sum(answer["n"]) > 300


def test_what_comes_from_the_data_is_marked_and_said_again():
    unit = ("--unit", "respondent_id")
    page = succeeded("card", "new", survey(60, questions=0), "--look", "--yes", *unit, *DECIDED)
    assert "tell about people, and no noise covers them" in " ".join(page.split())
    text = Path("survey.toml").read_text("utf-8")
    assert "Nothing here was taken" not in text
    fields = ("bounds =", "keys =", "rows =")
    lines = [line for line in text.splitlines() if line.startswith(fields)]
    assert len(lines) > 5 and all(line.endswith(MARK) for line in lines)
    (note,) = (n for n in read("card", "check", "survey.toml")["notes"] if "from the data" in n)
    assert "table.rows" in note and "columns.age.bounds" in note
    Path("survey.toml").write_text(text.replace(f"  {MARK}", ""), "utf-8")
    notes = read("card", "check", "survey.toml")["notes"]
    assert not any("from the data" in note for note in notes)


def test_in_a_pipe_nothing_is_taken_over_and_no_value_of_a_person_is_printed():
    page = succeeded("card", "new", survey(), "--look", "--columns", "age,region,e-mail,zip")
    assert "canary" not in page and "3 lines to decide" in page
    text = Path("survey.toml").read_text("utf-8")
    assert "canary" not in text and f"# bounds = [0, 100]  {MARK}" in text
    assert 'column = "decide"  # perhaps "respondent_id"' in text
    assert f"# rows = 900  {MARK}" in text
    data = card_of("survey.toml")
    assert list(data["columns"]) == ["respondent_id", "e-mail", "age", "region", "zip"]
    assert not any({"bounds", "keys"} & {*fields} for fields in data["columns"].values())
    assert "rows" not in data["table"]


def test_bounds_of_whole_numbers_are_whole():
    """Ranks lie between values: 1 % of engines have one, and the rank was 1.9988."""
    engines = [1] * 19 + [2] * 1960 + [3] * 15 + [4] * 6
    lines = [f"{plane},{number}" for plane, number in enumerate(engines)]
    Path("planes.csv").write_text("\n".join(["plane,engines", *lines]) + "\n", "utf-8")
    succeeded("card", "new", "planes.csv", "--look", "--yes", "--unit", "plane", *DECIDED)
    low, high = card_of("planes.toml")["columns"]["engines"]["bounds"]
    assert (low, high) in {(1, 2), (2, 3), (1, 3), (1, 4)}
    assert "can be used" in succeeded("card", "check", "planes.toml")


def test_the_unit_that_looks_like_one_is_named():
    shown = succeeded("card", "new", survey(60), "--look", "--yes", *DECIDED)
    assert 'write column = "respondent_id", perhaps' in " ".join(shown.split())


def test_columns_are_chosen_without_a_look_too():
    options = ("--columns", "AGE,region", "--unit", "respondent_id", "--out", "a.toml")
    succeeded("card", "new", survey(60), *options)
    assert list(card_of("a.toml")["columns"]) == ["respondent_id", "age", "region"]
    assert "did you mean income?" in refused(
        "card", "new", "survey.csv", "--columns", "age,income?"
    )
    assert "names no column" in refused("card", "new", "survey.csv", "--columns", "")


def test_types_that_are_said_hold():
    said = ("--types", "zip=integer,e-mail=text,q1=number")
    succeeded("card", "new", survey(), "--look", "--yes", *said)
    columns = card_of("survey.toml")["columns"]
    assert columns["zip"] == {"type": "integer"} and columns["e-mail"] == {"type": "text"}
    assert columns["q1"] == {"type": "number", "bounds": [1, 7]}


def test_rows_are_said_by_an_option():
    succeeded("card", "new", survey(60), "--rows", "1000", "--each-row")
    assert card_of("survey.toml")["table"]["rows"] == 1000
    assert MARK not in Path("survey.toml").read_text("utf-8")


def test_taking_proposals_needs_a_look():
    assert "add --look" in refused("card", "new", survey(60), "--yes")


def test_parquet_and_databases_are_looked_at_by_their_own_types():
    rows = "SELECT range // 2 AS patient, 'w' || range % 3 AS ward, DATE '2024-05-01' AS day,"
    rows += " 1.5::DECIMAL(9, 2) * (range % 90) AS cost, range % 2 = 0 AS old FROM range(400)"
    duckdb.execute(f"COPY ({rows}) TO 'v.parquet'")
    with duckdb.connect("v.duckdb") as connection:
        connection.execute(f"CREATE TABLE stays AS {rows}")
    options = ("--look", "--yes", "--unit", "patient", *DECIDED)
    succeeded("card", "new", "v.parquet", *options)
    succeeded("card", "new", "v.duckdb", "--table", "stays", *options)
    assert (
        card_of("v.toml")["columns"]
        == card_of("stays.toml")["columns"]
        == {
            "patient": {"type": "integer"},
            "ward": {"type": "text", "keys": ["w0", "w1", "w2"]},
            "day": {"type": "date", "bounds": ["2024-01-01", "2024-12-31"]},
            "cost": {"type": "number", "bounds": [0, 140]},
            "old": {"type": "boolean"},
        }
    )
    sql = "SELECT ward, SUM(cost) AS cost FROM stays WHERE old GROUP BY ward"
    succeeded("query", "stays.toml", sql, "--epsilon", "1")


def test_a_server_is_not_looked_at():
    told = refused("card", "new", "spark:lake.clinic.visits", "--look")
    assert "Spark" in told or "--look" in told or "spark" in told


# ---------------------------------------------------------------- on a terminal


def test_enter_takes_what_is_proposed(monkeypatch):
    told = on_terminal(monkeypatch, survey(), "--look", typed=[""] * 7)
    assert "all is decided" in told and "canary" in told  # a look is to be seen
    data = card_of("survey.toml")
    assert data["unit"] == {"column": "respondent_id"}
    assert data["budget"] == {"epsilon": 1, "delta": 1e-5}
    assert data["table"]["neighbours"] == "add-remove" and data["table"]["rows"] == 900
    assert "e-mail" not in data["columns"]


def test_a_column_is_corrected(monkeypatch):
    typed = ["income", "", "", "few", "9 1", "0 100000"]  # bounds, after two that are none
    typed += ["nobody", "4", "", "", "north, south"]  # region by its number
    typed += ["e-mail", "y", "", "none", "q1", "n", "age", "", "number", "none", ""]
    typed += ["row", "change-one", "0.5", "none", "2000"]
    told = on_terminal(monkeypatch, survey(), "--look", typed=typed)
    assert "is not two values" in told and "do not rise" in told and "is no column" in told
    data, text = card_of("survey.toml"), Path("survey.toml").read_text("utf-8")
    assert "bounds = [0, 100000]\n" in text  # the steward's own: no mark
    assert 'keys = ["north", "south"]\n' in text and "rows = 2000\n" in text
    assert data["unit"] == {"each_row": True} and data["budget"] == {"epsilon": 0.5}
    assert data["columns"]["e-mail"] == {"type": "text"} and "q1" not in data["columns"]
    assert data["columns"]["age"] == {"type": "number"}
    assert read_card("survey.toml").columns["region"].keys == ("north", "south")


def test_one_row_each_needs_no_profile(monkeypatch):
    Path("v.csv").write_text("\n".join(["id,x", *(f"{row},{row % 7}" for row in range(90))]))
    on_terminal(monkeypatch, "v.csv", "--look", typed=[""] * 7)
    assert card_of("v.toml")["unit"] == {"column": "id", "max_rows": 1}


# ---------------------------------------------------------------- hostile tables

VALUES = (
    *("", " ", "NA", "null", "-", "nan", "inf", "-inf", "infinity", "1e400", "1e-400", "-0", "+5"),
    *("0", "1", "007", "3.0", "1.5", "1_000", "1,5", "9" * 30, "9223372036854775808", "0x10"),
    *("true", "No", "t", "yes", "2024-01-31", "2024-02-30", "31/12/2024", "2024/1/5", "20240131"),
    *("2024-01-31 10:00", "2024-01-31T10:00:00Z", "10:00", "epoch", "290000-01-01", "0001-01-01"),
    *('say "hi"', "a,b", "line\nbreak", "it's", "# no", "é\u202eevil", "[x]", "\\", "x" * 3000),
)
NAMES = ("id", "first name", 'a "b"', "größe", "a.b", "decide", "#", "e-mail", "x;DROP", "日本")


def test_hostile_tables_become_cards_that_work(extent, folder):
    for case in range(extent.generated(8, 300)):
        draws = random.Random(case)
        names = draws.sample(NAMES, draws.randint(1, 4))
        pools = [draws.sample(VALUES, draws.randint(1, 3)) for _ in names]
        rows = draws.choice([0, 1, 25, 60])
        with Path("v.csv").open("w", newline="", encoding="utf-8") as out:
            writer = csv.writer(out)
            writer.writerow(names)
            writer.writerows([draws.choice(pool) for pool in pools] for _ in range(rows))
        card = f"v{case}.toml"
        succeeded("card", "new", "v.csv", "--look", "--yes", "--each-row", *DECIDED, "--out", card)
        columns = card_of(card).get("columns", {})
        if not columns:
            assert "columns" in refused("card", "check", card)
            continue
        assert read("card", "check", card)["usable"], case
        Path("v.ledger").unlink(missing_ok=True)
        answer = lb.table(card).agg(n=lb.count()).release(epsilon=2)
        assert answer["n"][0] <= rows + 40  # beyond by chance in one of 10**30 answers


@pytest.mark.parametrize(
    "content",
    [b"id,id\n1,2\n", b"a,\n1,2\n", b"", b"73211,4\n1,2\n", b'a,b\n1,"2\n', b"\xff,b\n1,2"],
)
def test_files_that_are_no_tables_are_refused(content):
    Path("v.csv").write_bytes(content)
    told = refused("card", "new", "v.csv", "--look", "--yes")
    assert "73211" not in told and not Path("v.toml").exists()
