"""Data cards: what is read, exactly; what is refused, with line and remedy."""

from __future__ import annotations

import pickle
import re
from datetime import date
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from lastbit.errors import CardRefused
from lastbit.privacy.neighbours import ADD_REMOVE, CHANGE_ONE
from lastbit.tables.card.budget import Budget
from lastbit.tables.card.column import Column
from lastbit.tables.card.read import card_from, examined, read_card
from lastbit.tables.card.schema import EngineLimits, PublicTable, Source
from lastbit.tables.plan.plan import planned
from lastbit.tables.sql.statement import parsed
from tests.docs.pages import fences
from tests.tables.cards import FOLDER, WHOLE, edited, line_of, read

PAGE = Path(__file__).parents[2] / "docs" / "data-card.md"
CANARY = "canary-73211"


def refused(text: str) -> str:
    with pytest.raises(CardRefused) as caught:
        read(text)
    return str(caught.value)


# ---------------------------------------------------------------- what is read


def test_every_field_is_read():
    card = read()
    assert (card.name, card.unit, card.max_rows, card.max_groups) == ("visits", "patient_id", 20, 5)
    assert card.source == Source(kind="parquet", paths=("/cards/visits.parquet",))
    assert card.neighbours == ADD_REMOVE
    assert card.budget == Budget(kind="approx", epsilon=Fraction(3), delta=Fraction(1, 10**6))
    assert card.ledger == "/cards/hospital.ledger"
    assert card.users == ("ana", "ben")
    assert list(card.columns.values()) == [
        Column(name="patient_id", type="integer", step=Fraction(1)),
        Column(
            name="cost",
            type="number",
            bounds=(Fraction(0), Fraction(5001, 10)),
            step=Fraction(1, 100),
            nullable=False,
        ),
        Column(name="region", type="text", keys=("north", "south")),
    ]
    regions = Source(kind="csv", paths=("/cards/regions.csv",))
    assert card.public == {
        "regions": PublicTable(
            name="regions", source=regions, columns={"region": "text", "name": "text"}
        )
    }


@pytest.mark.parametrize(
    ("written", "number"),
    [
        ("0.1", Fraction(1, 10)),
        ("3", Fraction(3)),
        ('"1/3"', Fraction(1, 3)),
        ('"0.1"', Fraction(1, 10)),
        ("1e-30", Fraction(1, 10**30)),
        ("1_000.000_5", Fraction(10_000_005, 10_000)),
        ("0x10", Fraction(16)),
        ("+2.50", Fraction(5, 2)),
    ],
)
def test_numbers_are_what_is_written(written, number):
    budget = read(edited("epsilon = 3", f"epsilon = {written}")).budget
    assert budget is not None and budget.epsilon == number


@pytest.mark.parametrize(
    ("budget", "kind"),
    [("epsilon = 1", "pure"), ("epsilon = 1\ndelta = 1e-9", "approx"), ('rho = "1/2"', "zcdp")],
)
def test_three_kinds_of_budget(budget, kind):
    card = read(edited("epsilon = 3\ndelta = 1e-6", budget))
    assert card.budget is not None and card.budget.kind == kind


FILTER = 'epsilon = 3\ndelta = 1e-6\naccounting = "filter"'


@pytest.mark.parametrize(
    ("more", "order", "kept"),
    [
        ("", "7.99", "1e-7"),
        ("\norder = 4", "4", "1e-7"),
        ("\ndelta_kept = 0", "7.93", "0"),
        ('\norder = "9/2"\ndelta_kept = 5e-7', "9/2", "5e-7"),
    ],
)
def test_a_budget_kept_by_the_filter(more, order, kept):
    budget = read(edited("epsilon = 3\ndelta = 1e-6", FILTER + more)).budget
    assert budget is not None and budget.kind == "filter"
    fixed = budget.fixed()
    assert (fixed.order, fixed.delta_kept) == (Fraction(order), Fraction(kept))
    assert ("order" in more) == (budget.order is not None)


ENGINE = """
[engine]
max_memory = "8GB"
threads = 2
spill_folder = "tmp"
max_spill = "100GB"
index = false
"""


def test_limits_of_the_engine():
    assert read().engine_limits == EngineLimits()
    assert read(WHOLE + ENGINE).engine_limits == EngineLimits(
        max_memory="8GB", threads=2, spill_folder="/cards/tmp", max_spill="100GB", index=False
    )


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"8GB"', '"8 GB"', "is not a size"),
        ('"8GB"', "8", "is not a size"),
        ('"100GB"', '"1GB\'; SET x"', "is not a size"),
        ('"100GB"', '"0MB"', "is not a size"),
        ("threads = 2", "threads = 0", "is not a whole number above 0"),
        ("false", '"no"', "is neither true nor false"),
        ('"tmp"', "7", "is not text"),
        ("max_spill", "most_spill", "is not known; use max_memory"),
    ],
)
def test_limits_of_the_engine_that_are_none(old, new, words):
    told = refused(WHOLE + ENGINE.replace(old, new))
    assert words in told and "engine." in told


def test_limits_are_for_our_own_engine():
    told = refused(edited('"visits.parquet"', '"spark:lake.visits"') + ENGINE)
    assert "engine is for files, and the table is on spark" in told


def test_plain_sums_may_be_named():
    budget = read(edited("delta = 1e-6", 'delta = 1e-6\naccounting = "sums"')).budget
    assert budget is not None and budget == read().budget


def test_each_row_may_be_a_unit():
    old = 'column = "patient_id"\nmax_rows = 20\nmax_groups = 5'
    card = read(edited(old, "each_row = true"))
    assert (card.unit, card.max_rows, card.max_groups) == (None, 1, None)


def test_the_other_neighbours():
    assert read(edited("add-remove", "change-one")).neighbours == CHANGE_ONE


@pytest.mark.parametrize(
    ("written", "source"),
    [
        (
            '["a.csv", "b.tsv", "c.csv.gz"]',
            Source(kind="csv", paths=("a.csv", "b.tsv", "c.csv.gz")),
        ),
        (
            '{duckdb = "x.duckdb", table = "v"}',
            Source(kind="duckdb", paths=("x.duckdb",), table="v"),
        ),
        ('"parts/*.parquet"', Source(kind="parquet", paths=("parts/*.parquet",))),
    ],
)
def test_sources(written, source):
    found = read(edited('"visits.parquet"', written)).source
    assert (found.kind, found.table) == (source.kind, source.table)
    assert found.paths == tuple(f"/cards/{path}" for path in source.paths)


def test_an_absolute_path_stays():
    assert read(edited('"visits.parquet"', '"/data/v.csv"')).source.paths == ("/data/v.csv",)


def test_a_folder_is_no_pattern():
    folder = Path("/a[1]")
    text = edited('"visits.parquet"', '"*.parquet"')
    assert card_from(text, folder=folder).source.paths == ("/a[[]1]/*.parquet",)
    assert card_from(WHOLE, folder=folder).source.paths == ("/a[1]/visits.parquet",)


def test_keys_are_of_the_type_of_their_column():
    for kind, written, keys in (
        ("integer", "[1, -2]", (1, -2)),
        ("boolean", "[true, false]", (True, False)),
        ("date", "[2026-01-31]", (date(2026, 1, 31),)),
        ("text", '["", "é\'\\"\\n"]', ("", "é'\"\n")),
    ):
        new = f'type = "{kind}"\nkeys = {written}'
        text = edited('type = "text"\nkeys = ["north", "south"]', new)
        assert read(text).columns["region"].keys == keys


@pytest.mark.parametrize("bounds", ["[0, 1]", "[2013, 2014]", "[-1, 0]"])
def test_whole_numbers_may_have_two_values(bounds):
    text = edited(
        'type = "text"\nkeys = ["north", "south"]', f'type = "integer"\nbounds = {bounds}'
    )
    card = read(text)
    asked = parsed(f"SELECT AVG(region) AS a, SUM(region) AS s FROM {card.name}", card)
    assert {m.highest - m.lowest for m in planned(asked, card, epsilon=1).measures} >= {1}


def test_columns_may_be_written_inline():
    start = WHOLE.index("[columns.patient_id]")
    inline = '[columns]\npatient_id = {type = "text"}\nage.type = "integer"\nage.bounds = [0, 99]\n'
    card = read(WHOLE[:start] + inline)
    assert card.columns["age"].bounds == (Fraction(0), Fraction(99))


def test_the_ledger_is_named_after_the_table_and_not_after_the_file(tmp_path):
    """Else a copy of the card would come with a fresh budget."""
    text = edited('[ledger]\npath = "hospital.ledger"\n', "")
    for name in ("a.toml", "b.toml"):
        (tmp_path / name).write_text(text, "utf-8")
        assert read_card(tmp_path / name).ledger == str(tmp_path / "visits.ledger")
    assert "[ledger]" in refused(text.replace('"visits"', '"../../visits"'))


def test_no_access_section_lets_everybody_ask_and_an_empty_list_nobody():
    assert read(edited('[access]\nusers = ["ana", "ben"]\n', "")).users is None
    assert read(edited('["ana", "ben"]', "[]")).users == ()


@pytest.mark.parametrize("encode", [str.encode, lambda text: b"\xef\xbb\xbf" + text.encode()])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_files_with_a_mark_and_other_line_ends(tmp_path, encode, end):
    file = tmp_path / "visits.toml"
    file.write_bytes(encode(WHOLE.replace("\n", end)))
    assert read_card(file).budget == read().budget
    file.write_bytes(encode(edited("max_rows = 20", "max_rows = 0").replace("\n", end)))
    assert examined(file).problems[0].line == 9


def test_the_page_shows_a_card_that_is_read():
    page = PAGE.read_text("utf-8")
    shown = [fence.text for fence in fences(page) if fence.language == "toml"]
    card = read(shown[0])
    assert card.unit is not None and card.budget is not None and card.public
    for field in (
        *("name", "source", "neighbours", "column", "each_row", "max_rows", "max_groups"),
        *("epsilon", "delta", "rho", "path", "users", "type", "bounds", "step", "keys"),
        *("nullable", "columns", "duckdb", "table"),
    ):
        assert f"`{field}`" in page, field


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        # what decides about privacy has no default
        ('neighbours = "add-remove"', "", "line 2: table.neighbours is missing"),
        ('column = "patient_id"', "", "line 7: unit.column is missing"),
        ("max_rows = 20", "max_rows = 0", "unit.max_rows"),
        ("[budget]\nepsilon = 3\ndelta = 1e-6", "", "line 1: budget is missing"),
        ("[budget]\nepsilon = 3\ndelta = 1e-6", "[budget]", "line 12: budget is empty"),
        ("epsilon = 3\n", "", "budget.epsilon does not suit"),
        # a draft
        ('"add-remove"', '"decide"', "line 5: table.neighbours is still to be decided"),
        ('"patient_id"', '"decide"', "line 8: unit.column is still to be decided"),
        ("max_rows = 20", 'max_rows = "decide"', "line 9: unit.max_rows is still to be decided"),
        ("epsilon = 3", 'epsilon = "decide"', "line 13: budget.epsilon is still to be decided"),
        ('"number"', '"decide"', "line 26: columns.cost.type is still to be decided"),
        ("[0, 500.1]", '"decide"', "line 27: columns.cost.bounds is still to be decided"),
        ("[0, 500.1]", '[0, "decide"]', "columns.cost.bounds is still to be decided"),
        ('["north", "south"]', '"decide"', "columns.region.keys is still to be decided"),
        ('"visits.parquet"', '"decide"', "table.source is still to be decided"),
        ('name = "visits"', 'name = "decide"', "table.name is still to be decided"),
        ('"hospital.ledger"', '"decide"', "ledger.path is still to be decided"),
        # names
        ("max_groups = 5", "max_group = 5", "line 10: unit.max_group is not known"),
        ("[access]", "[acces]", "line 19: acces is not known"),
        ("nullable = false", "null = false", "columns.cost.null is not known"),
        ('source = "regions.csv"', 'sources = "r.csv"', "public.regions.sources is not known"),
        ('name = "visits"', 'name = ""', "line 3: table.name is not text"),
        ('name = "visits"', "name = 1.5", "line 3: table.name is not text"),
        ('name = "visits"', 'name = "a\\u0000"', "table.name is not text"),
        ('name = "visits"', 'name = "a\\u202e"', "cannot be seen"),
        # sources
        ('"visits.parquet"', '"visits.xlsx"', "line 4: table.source ends in .xlsx"),
        ('"visits.parquet"', '["a.csv", "b.parquet"]', "is of no one known kind"),
        ('"visits.parquet"', '["a.csv", "./a.csv"]', "names a file twice"),
        ('"visits.parquet"', '["a.csv", ""]', "table.source is not text"),
        ('"visits.parquet"', "[]", "table.source is not text"),
        ('"visits.parquet"', "1.5", "table.source is not text"),
        ('"visits.parquet"', '"s3://bucket/v.parquet"', "table.source is not a file here"),
        ('"visits.parquet"', '{duckdb = "x.db"}', "table.source is missing"),
        ('"visits.parquet"', '{duckdb = "", table = "t"}', "table.source is not text"),
        ('"visits.parquet"', '{duckdb = "x", table = "t", x = 1}', "table.source.x is not known"),
        # the unit
        ('"patient_id"', '"patient"', "line 8: unit.column is not a column of the card"),
        ('"patient_id"', '"cost"', "line 8: unit.column is of type number"),
        ('"patient_id"', "1.5", "unit.column is not text"),
        ('column = "patient_id"', "each_row = true", "line 9: unit.max_rows is not 1"),
        ('column = "patient_id"', "each_row = 1", "line 8: unit.each_row is not true"),
        ("max_groups = 5", "each_row = true", "each_row and column are both written"),
        ("max_groups = 5", "each_row = false", "each_row and column are both written"),
        *(
            (f"max_rows = {20}", f"max_rows = {bad}", "line 9: unit.max_rows is not a whole number")
            for bad in ("0", "-1", "2.0", "true", '"20"', "[20]", "nan")
        ),
        ("max_rows = 20", "max_rows = 1048577", "line 9: unit.max_rows is not a whole number"),
        ("max_groups = 5", "max_groups = 0", "line 10: unit.max_groups is not a whole number"),
        # the budget
        *(
            ("epsilon = 3", f"epsilon = {bad}", f"line 13: budget.epsilon {why}")
            for bad, why in (
                ("0", "does not suit"),
                ("-1", "does not suit"),
                ("true", "is not a number"),
                ("inf", "is 'inf', which is not a number"),
                ("nan", "is 'nan', which is not a number"),
                ('"much"', "is 'much', which is not a number"),
                ("1e999999", "has more than 10000 decimal places"),
                ("2026-01-31", "is not a number"),
                ("[1]", "is not a number"),
            )
        ),
        ("delta = 1e-6", "delta = 0", "line 14: budget.delta does not suit"),
        ("delta = 1e-6", "delta = 1", "line 14: budget.delta is not between 0 and 1"),
        ("delta = 1e-6", "rho = 1", "line 13: budget.epsilon does not suit"),
        ("delta = 1e-6", 'accounting = "filter"', "budget.delta does not suit"),
        ("delta = 1e-6", 'accounting = "gaussian"', "budget.delta does not suit"),
        (
            "delta = 1e-6",
            'delta = 1e-6\naccounting = "gaussian"\norder = 3',
            "budget.order is not for the Gaussian filter",
        ),
        ("delta = 1e-6", 'accounting = "moments"', "line 14: budget.accounting is of an unknown"),
        ("delta = 1e-6", "accounting = 1.5", "line 14: budget.accounting is of an unknown kind"),
        ("delta = 1e-6", "order = 2", "line 14: budget.order is for accounts kept by the filter"),
        ("delta = 1e-6", FILTER[12:] + "\norder = 0", "line 16: budget.order is zero"),
        ("delta = 1e-6", FILTER[12:] + "\ndelta_kept = 1e-6", "budget.delta_kept is not below"),
        # columns
        ('"number"', '"float"', 'columns.cost.type is unknown; write "integer"'),
        ('type = "number"\n', "", "line 25: columns.cost.type is missing"),
        ("[0, 500.1]", "[500, 0]", "line 27: columns.cost.bounds do not rise"),
        ("[0, 500.1]", "[0, 0]", "columns.cost.bounds do not rise"),
        ("[0, 500.1]", "[0]", "columns.cost.bounds are not two numbers"),
        ("[0, 500.1]", "[0, inf]", "columns.cost.bounds is 'inf'"),
        ("[0, 500.1]", "[0, 1e301]", "columns.cost.bounds are beyond 1e300"),
        ("step = 0.01", "step = 0", "line 28: columns.cost.step is not above 0"),
        ("step = 0.01", "step = 1000", "line 28: columns.cost.step is as wide as the bounds"),
        ("step = 0.01", "step = 1e-30", "line 28: columns.cost.step is too fine"),
        ("nullable = false", 'nullable = "no"', "columns.cost.nullable is neither true nor false"),
        ("nullable = false", "description = 3", "columns.cost.description is not text"),
        ('keys = ["north", "south"]', "bounds = [0, 1]", "columns.region.bounds are for numbers"),
        ('keys = ["north", "south"]', "step = 1", "columns.region.step is for numbers"),
        ('["north", "south"]', '["a", "a"]', "line 33: columns.region.keys are none, or two"),
        ('["north", "south"]', "[]", "columns.region.keys are none"),
        ('["north", "south"]', '["a", 1]', "columns.region.keys are not a list of type text"),
        ('["north", "south"]', '["a", 1.5]', "columns.region.keys are not a list of type text"),
        ('["north", "south"]', '"north"', "columns.region.keys are not a list"),
        ('["north", "south"]', '["a\\u0000"]', "columns.region.keys hold a NUL"),
        ("step = 0.01", "keys = [1.5]", "columns.cost.keys cannot be of type number"),
        ('type = "integer"', 'type = "integer"\nkeys = [true]', "are not a list of type integer"),
        ('type = "integer"', f'type = "integer"\nkeys = [{2**63}]', "need more than 63 bits"),
        ('type = "integer"', 'type = "date"\nkeys = [2026-01-31T10:00:00]', "of type date"),
        ("[columns.region]", "[columns.COST]", "line 31: columns.COST is there in another case"),
        ("[columns.region]", '[columns.""]', 'line 31: columns."" has no name'),
        ("[columns.region]", '[columns."a\\u0000"]', "has no name that SQL knows"),
        # ledger, access, public tables
        ('path = "hospital.ledger"', "", "line 16: ledger.path is missing"),
        ('"hospital.ledger"', '""', "line 17: ledger.path is not text"),
        ('"hospital.ledger"', "1.5", "ledger.path is not text"),
        ('users = ["ana", "ben"]', "", "line 19: access.users is not a list"),
        ('["ana", "ben"]', '"ana"', "line 20: access.users is not a list"),
        ('["ana", "ben"]', '["ana", 1.5]', "access.users is not a list"),
        ('["ana", "ben"]', '[""]', "access.users is not a list"),
        ('"regions.csv"', '"./visits.parquet"', "line 35: public.regions is the table itself"),
        ("[public.regions]", "[public.Visits]", "public.Visits is the table itself"),
        ('{region = "text", name = "text"}', "{}", "public.regions.columns names no columns"),
        ('{region = "text", name = "text"}', '{a = "x"}', "public.regions.columns.a is unknown"),
        ('{region = "text", name = "text"}', '{a = "text", A = "text"}', "in another case"),
    ],
)
def test_a_wrong_line_is_named(old, new, told):
    assert told in refused(edited(old, new))


@pytest.mark.parametrize("section", ["table", "unit", "budget", "columns"])
def test_a_section_that_is_needed(section):
    assert f"{section} is missing; add a section [{section}]" in refused(
        re.sub(rf"\[{section}\b", "[public.x", WHOLE)
    )
    assert f"line 1: {section} is not a section" in refused(
        f"{section} = 3\n" + re.sub(rf"\[{section}\b", "[public.x", WHOLE)
    )


def test_one_problem_is_one_sentence():
    assert refused(edited("max_rows = 20", "max_rows = 0")) == (
        "visits.toml, line 9: unit.max_rows is not a whole number above 0; "
        "write max_rows = 20, say: that many rows of one unit count"
    )


def test_all_problems_are_told_at_once_in_the_order_of_lines():
    text = WHOLE.replace("max_rows = 20", "max_rows = 0").replace("[0, 500.1]", "[1, 0]")
    text = text.replace('"add-remove"', '"decide"').replace('["ana", "ben"]', "3")
    told = refused(text)
    assert told.startswith("visits.toml has 4 problems; fix them:\n")
    assert re.findall(r"^line (\d+): (\S+)", told, re.M) == [
        ("5", "table.neighbours"),
        ("9", "unit.max_rows"),
        ("20", "access.users"),
        ("27", "columns.cost.bounds"),
    ]


def test_many_problems_are_cut_short():
    text = WHOLE + "".join(f'[columns.c{number}]\ntype = "decide"\n' for number in range(3000))
    told = refused(text)
    assert told.count("\n") == 51 and told.endswith("... and 2950 more.")


def test_max_rows_may_be_left_out():
    card = read(edited("max_rows = 20", ""))
    assert card.max_rows_open and card.max_groups == 5
    assert not read(edited("max_rows = 20", "max_rows = 20")).max_rows_open


def test_a_refusal_crosses_processes():
    with pytest.raises(CardRefused) as caught:
        read(edited("max_rows = 20", "max_rows = 0"))
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_lines_of_hostile_names():
    text = edited("[columns.region]", '[columns."a\\"].\\u001b[31m b"]').replace('["north"', "[1")
    told = refused(text)
    assert "\x1b" not in told
    assert (
        f'line {line_of("keys", text)}: columns."a\\"].\\u001b[31m b".keys are not a list' in told
    )


# ---------------------------------------------------------------- what is no card at all


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[table\n", 1),
        (f"[table]\nname = {CANARY}\n", 2),
        (f"{CANARY},a,b\n1,2,3\n", 1),
        (f'a = {{"{CANARY}" = 1, "{CANARY}" = 2}}', 1),
        (f"[{CANARY}]\n[{CANARY}]\n", 2),
        ('a = "\x00"', 1),
        ("a = 1\n" + "b = " + "1" * 5000, 2),
        ("a = " + "[" * 100_000, 1),
        ("a = 1\na = 2", 2),
    ],
)
def test_what_is_no_toml_is_refused_and_not_repeated(text, line):
    told = refused(text)
    assert told.startswith(f"visits.toml, line {line}: the card is not TOML here: ")
    assert CANARY not in told


def test_files_that_hold_no_card(tmp_path):
    for content in (b"\xff\xfe[\x00t\x00", b"PAR1\x00\xff" * 10, b"#" * (1 << 22) + b"\n#"):
        file = tmp_path / "visits.toml"
        file.write_bytes(content)
        with pytest.raises(CardRefused, match="pass a TOML file"):
            read_card(file)
    for path in (tmp_path, tmp_path / "absent.toml", "a\0b.toml"):
        with pytest.raises(CardRefused, match="cannot be read"):
            read_card(path)


def test_devices_and_files_of_any_length_are_not_read_whole(tmp_path):
    with pytest.raises(CardRefused, match="not a regular file"):
        read_card("/dev/zero")
    with (tmp_path / "long.toml").open("wb") as file:
        file.truncate(1 << 33)
    with pytest.raises(CardRefused, match="longer than"):
        read_card(tmp_path / "long.toml")


def test_a_card_reached_by_links_has_one_ledger_and_one_source(tmp_path):
    """The hole: a link in another folder found a fresh ledger there."""
    real, other = tmp_path / "real", tmp_path / "other"
    real.mkdir()
    other.mkdir()
    (real / "card.toml").write_text(WHOLE, "utf-8")
    (other / "link.toml").symlink_to(real / "card.toml")
    (other / "again.toml").symlink_to("link.toml")
    (tmp_path / "folder").symlink_to(real)
    straight = read_card(real / "card.toml")
    for way in (
        other / "link.toml",
        other / "again.toml",
        tmp_path / "folder" / "card.toml",
        real / ".." / "other" / "link.toml",
    ):
        assert read_card(way) == straight
        assert read_card(way).ledger == straight.ledger and read_card(way).file == straight.file


@given(data=st.data())
def test_a_spoilt_card_is_read_or_refused_and_nothing_else(data):
    text = WHOLE
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(start + 12, len(text))))
        piece = data.draw(
            st.sampled_from(['"', "'", '"""', "[", "]", "{", "}", "=", "\n", "#", ".", "1", "\\"])
            | st.text(max_size=3)
        )
        text = text[:start] + piece + text[end:]
    try:
        card = card_from(text, folder=FOLDER)
    except CardRefused as error:
        assert "line" in str(error)
    else:
        assert card.budget is not None and card.max_rows >= 1


VALUES = (
    *("1", "1.5", "-1", "true", '"decide"', '""', '"x"', "[]", "[[1]]", "{}", "{a = 1}", "inf"),
    *("2026-01-31", "10:00:00", "2026-01-31T10:00:00Z", "0x" + "f" * 9000),
)


@pytest.mark.parametrize("line", [line for line in WHOLE.split("\n") if " = " in line])
def test_no_value_of_any_field_breaks_the_reader(line):
    for value in VALUES:
        text = WHOLE.replace(line, f"{line.partition(' = ')[0]} = {value}", 1)
        try:
            read(text)
        except CardRefused as error:
            assert "line" in str(error)


@pytest.mark.parametrize(
    "text",
    ["a" + ".a" * 20_000 + " = 1", "[" + "a." * 20_000 + "a]", "x = {a" + ".a" * 20_000 + " = 1}"],
)
def test_a_key_of_many_dots_is_refused_before_it_is_read(tmp_path, text):
    """The reader of TOML takes a minute for one of 20,000."""
    place = tmp_path / "visits.toml"
    place.write_text(text)
    with pytest.raises(CardRefused, match="too many dots"):
        read_card(place)
