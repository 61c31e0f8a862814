"""Tables that reach their unit through others: declared on cards and in Python, asked in SQL."""

import copy
import json
from dataclasses import replace

import duckdb
import pyarrow
import pytest

import lastbit as lb
from lastbit.checker import Rejected, check_price
from lastbit.checker.numbers import digest
from lastbit.errors import CardRefused, InvalidParameter, LastbitError, QueryRefused, WrongType
from lastbit.kernel.program import Program
from lastbit.kernel.question import question_of_program
from lastbit.release.certifying import certificate_of, program_of
from lastbit.release.made_up_rows import made_up, made_up_answer
from lastbit.tables import fingerprint, open_session, parsed, printed_statement
from lastbit.tables.card.linked import meant_name, name_on_card, with_way
from lastbit.tables.card.public import card_from_json, card_to_json
from lastbit.tables.card.read import examined, read_card
from lastbit.tables.plan.plan import planned

CARD = """
[table]
name = "items"
source = "items.parquet"
neighbours = "add-remove"

[unit]
column = "baskets.customer"
max_rows = 40

[budget]
epsilon = 1000000

[columns.order_id]
type = "integer"

[columns.status]
type = "text"
keys = ["new", "sent"]

[columns.price]
type = "number"
bounds = [0, 10]

[through.orders]
source = "orders.parquet"
on = {order_id = "id"}

[through.orders.columns.basket]
type = "text"

[through.orders.columns.status]
type = "text"
keys = ["open", "paid"]

[through.baskets]
source = "baskets.csv"
on = {"orders.basket" = "id"}

[through.baskets.columns.customer]
type = "integer"

[through.baskets.columns.region]
type = "text"
keys = ["north", "south"]
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    statements = (
        "COPY (SELECT range // 3 AS order_id, ['new', 'sent'][1 + range % 2] AS status,"
        " CAST(range % 7 AS DOUBLE) AS price FROM range(600)) TO 'items.parquet'",
        "COPY (SELECT range AS id, 'b' || range // 2 AS basket,"
        " ['open', 'paid'][1 + range % 2] AS status FROM range(180)) TO 'orders.parquet'",
        "COPY (SELECT 'b' || range AS id, range // 5 AS customer,"
        " ['north', 'south'][1 + range % 2] AS region FROM range(80)) TO 'baskets.csv'",
    )
    for statement in statements:
        duckdb.execute(statement)
    (tmp_path / "items.toml").write_text(CARD)
    return tmp_path


@pytest.fixture
def table(place):
    return lb.table(str(place / "items.toml"))


def counted(test):
    """How many rows of the join pass a test, as DuckDB has it."""
    return duckdb.execute(TRUTH.format(test)).fetchall()[0][0]


TRUTH = (
    "SELECT count(*) FROM 'items.parquet' i JOIN 'orders.parquet' o ON i.order_id = o.id"
    " JOIN 'baskets.csv' b ON o.basket = b.id WHERE {}"
)


def test_an_answer_is_that_of_the_join(table):
    asked = table.sql(
        "SELECT region, orders.status AS state, COUNT(*) AS n, COUNT(DISTINCT customer) AS u"
        " FROM items WHERE price < 5 GROUP BY region, state"
    )
    answer = asked.release(epsilon=100_000)
    numbers = {
        tuple(key["value"] for key in row["keys"]): row["cells"][0]["value"]
        for row in answer.record["rows"]
    }
    for region in ("north", "south"):
        for state in ("open", "paid"):
            test = f"price < 5 AND b.region = '{region}' AND o.status = '{state}'"
            assert numbers[region, state] == counted(test)
    assert any("match no row of baskets" in note for note in answer.notes)


SAME = (
    "SELECT o.status AS s, COUNT(*) AS n FROM items i JOIN orders o ON order_id = o.id GROUP BY s",
    "SELECT o.status AS s, COUNT(*) AS n FROM orders o JOIN items ON o.id = order_id GROUP BY s",
    "SELECT orders.status AS s, COUNT(*) AS n FROM items GROUP BY s",
    "SELECT o.status AS s, COUNT(*) AS n FROM items i JOIN orders o ON i.order_id = o.id"
    " JOIN baskets ON basket = baskets.id GROUP BY s",
    "SELECT j.s, COUNT(*) AS n FROM (SELECT o.status AS s FROM items i"
    " JOIN orders o ON i.order_id = o.id) j GROUP BY j.s",
)


def test_what_a_table_is_reached_by_has_the_name_that_its_own_column_has(table):
    by_own = "SELECT COUNT(*) AS n FROM items i JOIN orders o ON i.order_id = o.id WHERE o.id < 3"
    by_card = "SELECT COUNT(*) AS n FROM items WHERE order_id < 3"
    assert table.sql(by_own).query == table.sql(by_card).query
    assert table.sql("SELECT COUNT(*) AS n FROM items WHERE orders.id < 3").query == (
        table.sql(by_card).query
    )


@pytest.mark.parametrize("text", SAME[1:])
def test_a_join_that_is_made_anyway_may_be_written_out(table, text):
    assert table.sql(text).query == table.sql(SAME[0]).query


def test_what_a_join_says_besides_is_a_condition(table):
    texts = (
        "SELECT COUNT(*) AS n FROM items i JOIN orders o ON order_id = o.id AND o.status = 'paid'",
        "SELECT COUNT(*) AS n FROM items WHERE orders.status = 'paid'",
    )
    assert len({table.sql(text).query.digest for text in texts}) == 1


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) FROM items i JOIN orders o ON i.price = o.id",
        "SELECT COUNT(*) FROM items i LEFT JOIN orders o ON i.order_id = o.id",
        "SELECT COUNT(*) FROM items i, orders o WHERE i.order_id = o.id",
        "SELECT COUNT(*) FROM items i JOIN baskets b ON i.order_id = b.id",
        "SELECT COUNT(*) FROM orders",
        "SELECT COUNT(*) FROM items i JOIN orders o ON i.order_id = o.id"
        " JOIN orders p ON i.order_id = p.id",
    ],
)
def test_another_join_is_refused_and_the_way_is_named(table, text):
    with pytest.raises(QueryRefused, match=r"on the way to the unit.*(leave the join out|JOIN)"):
        table.sql(text)


def test_no_join_and_no_word_of_one_is_left_out(place):
    duckdb.execute("COPY (SELECT 'paid' AS status, 'late' AS name) TO 'kinds.csv'")
    kinds = '\n[public.kinds]\nsource = "kinds.csv"\ncolumns = {status = "text", name = "text"}\n'
    (place / "items.toml").write_text(
        CARD.replace("[through.baskets]", f"{kinds}\n[through.baskets]")
    )
    table = lb.table(str(place / "items.toml"))
    count, way = "SELECT COUNT(*) AS n FROM", "JOIN orders o ON i.order_id = o.id"
    known = "JOIN kinds k ON o.status = k.status"
    written = table.sql(f"{count} items i {way} {known}").query
    assert table.sql(f"{count} orders o JOIN items i ON i.order_id = o.id {known}").query == written
    joined = "JOIN items i ON i.status = k.status"
    alone = table.sql(f"{count} kinds k {joined}").query
    assert [join.table for join in alone.joins] == ["kinds"]
    assert table.sql(f"{count} kinds k {joined} {way}").query == alone
    said = (
        f"{count} items i JOIN orders AS o(basket, id) ON i.order_id = o.id",
        f"{count} orders o JOIN items AS i(price, order_id) ON i.order_id = o.id",
        f"{count} items i JOIN orders o TABLESAMPLE (10%) ON i.order_id = o.id",
        f"{count} items i JOIN orders o {known} ON i.order_id = o.id",
    )
    for text in said:
        with pytest.raises(QueryRefused, match="has no meaning here"):
            table.sql(text)


def test_one_row_for_each_unit(table):
    inner = "SELECT baskets.customer, COUNT(*) AS n FROM items GROUP BY baskets.customer"
    asked = table.sql(f"SELECT SUM(n) AS n FROM ({inner})")
    (row,) = asked.release(epsilon=100_000).record["rows"]
    assert round(row["cells"][0]["value"]) == counted("true")


def test_the_same_in_python(place, table):
    way = {
        "orders": ("orders.parquet", {"order_id": "id"}),
        "baskets": ("baskets.csv", {"basket": "id"}),
    }
    columns = {"baskets.customer": "integer"}
    made = lb.table(
        "items.parquet", unit="baskets.customer", max_rows=40, through=way, columns=columns
    )
    assert made.card.unit == "customer"
    assert [one["on"] for one in made.card.way()] == [[["order_id", "id"]], [["basket", "id"]]]
    text = "SELECT baskets.region AS r, COUNT(*) AS n FROM items WHERE region = 'north' GROUP BY r"
    (row,) = made.sql(text).release(epsilon=100_000).record["rows"]
    assert row["cells"][0]["value"] == counted("region = 'north'")


@pytest.mark.parametrize("through", [["orders"], {"orders": "o.parquet"}, {"orders": ("x", {})}])
def test_what_is_no_way_is_refused_in_python(place, through):
    with pytest.raises(WrongType, match="through="):
        lb.table("items.parquet", unit="customer", max_rows=1, through=through)


WRONG = [
    ('on = {order_id = "id"}', "", "through.orders.on", "order_id"),
    ('on = {order_id = "id"}', 'on = {price = "id"}', "through", "integer or text"),
    ('on = {"orders.basket" = "id"}', 'on = {order_id = "id"}', "through", "in order"),
    ('column = "baskets.customer"', 'column = "order_id"', "unit.column", "last table"),
    ('column = "baskets.customer"', 'column = "baskets.nobody"', "unit.column", "nobody"),
    ('type = "text"\nkeys = ["open"', 'kind = "text"\nkeys = ["open"', "through.orders", ""),
    ("[through.baskets]", "[through.baskets]\nmax_rows = 0", "through.baskets", "leave it"),
    ("[through.baskets]", "[through.baskets]\nmax_rows = 2000", "unit", "lower it"),
    ("[through.orders]", '[through.orders]\nunit = "x"', "through.orders.unit", "not known"),
]


@pytest.mark.parametrize(("old", "new", "where", "words"), WRONG)
def test_a_card_without_a_way_is_refused_with_its_line(place, old, new, where, words):
    (place / "items.toml").write_text(CARD.replace(old, new, 1))
    problems = examined(place / "items.toml").problems
    assert any(where in one.where and words in str(one) for one in problems), problems
    with pytest.raises(CardRefused):
        read_card(place / "items.toml")


def test_a_card_with_the_tables_in_another_order_is_refused(place):
    first, _, last = CARD.partition("[through.baskets]")
    head, _, orders = first.partition("[through.orders]")
    (place / "items.toml").write_text(f"{head}[through.baskets]{last}[through.orders]{orders}")
    with pytest.raises(CardRefused, match="in order"):
        read_card(place / "items.toml")


@pytest.mark.parametrize("source", ["orders.parquet", "baskets.csv"])
def test_a_table_on_the_way_is_no_public_one(place, source):
    more = f'\n[public.p]\nsource = "{source}"\ncolumns = {{id = "text"}}\n'
    (place / "items.toml").write_text(CARD + more)
    with pytest.raises(LastbitError, match="public"):
        read_card(place / "items.toml")


@pytest.mark.parametrize("name", ["items.parquet", "orders.parquet", "baskets.csv"])
def test_the_state_of_the_data_is_that_of_all_files(place, table, name):
    def state():
        with open_session(table.card) as session:
            return fingerprint(table.card, session)

    before = state()
    assert state() == before
    (place / name).touch()
    assert state() != before


def way_changed(card, **changes):
    return replace(card, through=(replace(card.through[0], **changes), *card.through[1:]))


def test_another_way_is_another_question(table):
    def question(card):
        plan = planned(table.sql("SELECT COUNT(*) AS n FROM items").query, card, epsilon=1)
        return question_of_program(program_of(plan), None)

    card = table.card
    other = way_changed(card, max_rows=2)
    swapped = way_changed(card, on=(("order_id", "no"),))
    assert len({question(one) for one in (card, other, swapped)}) == 3
    more = {**card.through[0].columns, "status2": "status"}
    columns = {**card.columns, "status2": replace(card.columns["status"], name="status2")}
    wider = way_changed(replace(card, columns=columns), columns=more)
    assert question(card) == question(wider)


def test_how_columns_on_the_way_are_read_is_part_of_the_question(table):
    """As text 007 and 7 are two, as whole numbers one: it decides which rows meet."""
    query = table.sql("SELECT COUNT(*) AS n FROM items").query
    column = table.card.columns["order_id"]
    text = replace(column, type="text", step=None)
    found = [
        question_of_program(program_of(planned(query, card, epsilon=1)), None)
        for one in (column, text)
        for card in [replace(table.card, columns={**table.card.columns, "order_id": one})]
    ]
    assert found[0] != found[1]


@pytest.mark.parametrize("said", [["ab"], {"ab": 1}, [{"a": 1, "b": 2}], "ab", [["a", "b"], "ab"]])
def test_a_checker_takes_pairs_of_columns_alone(table, said):
    plan = planned(table.sql("SELECT COUNT(*) AS n FROM items").query, table.card, epsilon=1)
    forged = copy.deepcopy(_certificate(plan))
    for one in (forged["claim"], forged["body"]["plan"]):
        one["through"][0]["on"] = said
    forged["body"]["plan_digest"] = digest(forged["body"]["plan"])
    with pytest.raises(Rejected, match="a step to the unit is malformed"):
        check_price(forged["kind"], forged["claim"], forged["body"])


def test_a_kernel_takes_no_other_way_than_the_card_s(table):
    plan = planned(table.sql("SELECT COUNT(*) AS n FROM items").query, table.card, epsilon=1)
    program = program_of(plan)
    assert program.card.through == table.card.through
    text = json.dumps(_certificate(plan))
    assert Program(text, table.card).plan_digest == plan.digest
    without = replace(table.card, through=(), unit="order_id")
    others = [way_changed(table.card, max_rows=2), way_changed(table.card, name="other")]
    for card in (without, *others):
        with pytest.raises(InvalidParameter, match="another table or unit"):
            Program(text, card)


def test_a_kernel_takes_no_shorter_way_that_a_checker_cannot_know(table):
    """Without its first step a way is whole in itself: only the card says that it is another."""
    plan = planned(table.sql("SELECT COUNT(*) AS n FROM items").query, table.card, epsilon=1)
    forged = copy.deepcopy(_certificate(plan))
    for said in (forged["claim"], forged["body"]["plan"]):
        said["through"].pop(0)
    forged["body"]["plan_digest"] = digest(forged["body"]["plan"])
    check_price(forged["kind"], forged["claim"], forged["body"])
    with pytest.raises(InvalidParameter, match="another table or unit"):
        Program(json.dumps(forged), table.card)


def _certificate(plan):
    found = certificate_of(plan, columns=[], rows=[])
    return {name: found[name] for name in ("kind", "claim", "body")}


def test_what_a_server_shows_of_the_card_plans_the_same(table):
    card = card_from_json(card_to_json(table.card))
    assert card.way() == table.card.way()
    text = "SELECT region, COUNT(*) AS n FROM items GROUP BY region"
    query = table.sql(text).query
    assert planned(query, card, epsilon=1).digest == planned(query, table.card, epsilon=1).digest


def test_rows_are_made_up_for_all_tables(table, tmp_path):
    folder = tmp_path / "made"
    folder.mkdir()
    card = made_up(table.card, rows=500, folder=folder)
    assert {one.source.paths[0].startswith(str(folder)) for one in card.through} == {True}
    plan = planned(table.sql("SELECT COUNT(*) AS n FROM items").query, table.card, epsilon=1000)
    (row,) = made_up_answer(plan, table.card, rows=500).record["rows"]
    assert row["cells"][0]["value"] >= 490 * 0.9


def test_ids_that_are_not_unique_are_gone_through_once_for_each_unit(place):
    duckdb.execute("COPY (SELECT range AS order_id FROM range(10)) TO 'i.parquet'")
    duckdb.execute(
        "COPY (SELECT range % 10 AS id, range // 20 AS who FROM range(40)) TO 'o.parquet'"
    )
    made = lb.table(
        "i.parquet", unit="who", max_rows=40, through={"o": ("o.parquet", {"order_id": "id"})}
    )
    (row,) = made.agg(n=lb.count()).release(epsilon=100_000).record["rows"]
    assert row["cells"][0]["value"] == 20  # 10 ids, 2 units: each id once for each of the two


def test_names_of_columns():
    assert name_on_card("o", "id", ["ID"]) == "o.id"
    assert meant_name("o.ID", [("o", {"o.id": "id"})]) == "o.id"
    assert meant_name("x.id", [("o", {"o.id": "id"})]) == "x.id"


def made(place, **more):
    """Items with a person by way of orders, both as frames or files."""
    given = {"unit": "orders.who", "max_rows": 5_000, **more}
    way = {"orders": (given.pop("orders", "o.parquet"), {"order_id": "id"})}
    return lb.table(given.pop("items", "i.parquet"), through=way, **given)


def test_one_unit_cannot_make_all_pairs_of_its_rows(place):
    """2,000 items and 2,000 orders of one person and one id: 2,000 rows, not four million."""
    duckdb.execute("COPY (SELECT 0 AS order_id FROM range(2000)) TO 'i.parquet'")
    duckdb.execute("COPY (SELECT 0 AS id, 1 AS who, range AS x FROM range(2000)) TO 'o.parquet'")
    (row,) = made(place).agg(n=lb.count()).release(epsilon=100_000).record["rows"]
    assert row["cells"][0]["value"] == 2_000


def test_frames_reach_their_unit_too(place):
    items = pyarrow.table({"order_id": [n % 9 for n in range(90)]})
    orders = pyarrow.table({"id": range(9), "who": [n // 3 for n in range(9)]})
    asked = made(place, items=items, orders=orders, name="items")
    (row,) = asked.agg(n=lb.count(), u=lb.count_units()).release(epsilon=100_000).record["rows"]
    assert [cell["value"] for cell in row["cells"]] == [90, 3]


@pytest.mark.parametrize("where", ["items", "orders"])
def test_what_reaches_a_unit_is_not_said_by_folders(place, where):
    """Which folders there are is public, and one unit more could be a folder more."""
    rows = "SELECT range % 3 AS {0}, range AS x, range AS who FROM range(9)"
    for name, key in (("items", "order_id"), ("orders", "id")):
        folders = f", PARTITION_BY ({key})" if name == where else ""
        to = name if folders else f"{name}.one.parquet"
        duckdb.execute(f"COPY ({rows.format(key)}) TO '{to}' (FORMAT parquet{folders})")
    places = {n: n if n == where else f"{n}.one.parquet" for n in ("items", "orders")}
    key = "order_id" if where == "items" else "id"
    asked = made(place, **places, columns={key: "integer"})
    with pytest.raises(InvalidParameter, match="names of folders"):
        asked.agg(n=lb.count()).release(epsilon=1)


@pytest.mark.parametrize("kind", ["postgres", "spark"])
def test_all_tables_on_the_way_are_on_one_engine(table, kind):
    elsewhere = replace(table.card.source, kind=kind)
    linked = tuple(replace(one, source=elsewhere) for one in table.card.through)
    assert with_way(replace(table.card, source=elsewhere, through=linked)).through == linked
    with pytest.raises(InvalidParameter, match=f"is on {kind}, and the table on duckdb"):
        replace(table.card, through=linked)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT g, COUNT(*) FROM (SELECT *, UNNEST(string_split(status, '|')) AS g FROM items)"
        " GROUP BY g",
        "SELECT g, COUNT(*) FROM items, UNNEST(string_split(status, '|')) AS t(g) GROUP BY g",
    ],
)
def test_lists_are_refused(table, text):
    with pytest.raises(QueryRefused):
        table.sql(text)


def test_no_table_is_on_the_way_twice(place):
    """Without one author's messages others' answers to these would be gone as well."""
    rows = pyarrow.table({"id": [1, 2, 3], "answers": [3, 1, 1], "author": [7, 8, 8]})
    duckdb.register("messages", rows)
    duckdb.execute("COPY messages TO 'messages.parquet'")
    (place / "link.parquet").symlink_to("messages.parquet")
    for own, asked in ((rows, rows), ("messages.parquet", "link.parquet")):
        table = lb.table(
            own,
            unit="asked.author",
            max_rows=3,
            name="messages",
            through={"asked": (asked, {"answers": "id"})},
        )
        with pytest.raises(InvalidParameter, match=r"linked table asked is on the way .* twice"):
            table.agg(n=lb.count()).release(epsilon=1)


def test_rows_that_reach_their_unit_are_no_private_table(place, table):
    duckdb.execute("COPY (SELECT range AS customer FROM range(20)) TO 'stays.parquet'")
    stays = lb.table("stays.parquet", unit="customer", max_rows=2, name="stays")
    through = {"orders": ("orders.parquet", {"order_id": "id"})}
    items = lb.table("items.parquet", unit="basket", max_rows=9, through=through)
    with pytest.raises(InvalidParameter, match="join items reaches its unit through orders"):
        stays.join(items)
    named = lb.table("stays.parquet", unit="customer", max_rows=2, name="Orders")
    private = lb.table("orders.parquet", unit="id", max_rows=2, name="Orders")
    for other in (named, private):
        with pytest.raises(InvalidParameter, match="Orders has the name of another table"):
            items.join(other)


def test_a_long_way_is_gone_once(table):
    """Each step looks at the one after it a few times, and that one but once at the next."""
    names = [f"t{i}" for i in range(1, 13)]
    steps = tuple(
        replace(
            table.card.through[0],
            name=name,
            on=(("order_id" if i == 0 else f"k{i}", "id"),),
            columns={f"k{i + 1}": "k"},
        )
        for i, name in enumerate(names)
    )
    column = table.card.columns["order_id"]
    further = {f"k{i}": replace(column, name=f"k{i}") for i in range(1, 13)}
    card = with_way(
        replace(table.card, unit="k12", through=steps, columns={"order_id": column, **further})
    )
    text = printed_statement(
        planned(parsed("SELECT COUNT(*) AS n FROM items", card), card, epsilon=1)
    )
    kept = [f"v{i}_all AS MATERIALIZED" in text for i in range(1, 13)]
    assert kept == [True] * 11 + [False]


def test_a_workload_is_of_rows_that_reach_the_same_people(place):
    """Units of one name in two tables may be two kinds of people: prices would not add up."""
    duckdb.execute(
        "COPY (SELECT range AS id, range % 9 AS basket FROM range(90)) TO 'gifts.parquet'"
    )
    found = [
        lb.table("items.parquet", unit=f"{name}.basket", max_rows=9, name="items", through=through)
        for name in ("orders", "gifts")
        for through in [{name: (f"{name}.parquet", {"order_id": "id"})}]
    ]
    lb.workload([one.agg(n=lb.count()) for one in (found[1], found[1])])
    with pytest.raises(InvalidParameter, match="are about several tables"):
        lb.workload([one.agg(n=lb.count()) for one in found])


def test_a_frame_without_a_name_is_called_as_one_likes(place):
    items, orders = (
        duckdb.read_parquet(f"{name}.parquet").to_arrow_table() for name in ("items", "orders")
    )
    columns = {"order_id": "integer", "orders.id": "integer"}
    through = {"orders": (orders, {"order_id": "id"})}
    table = lb.table(items, unit="orders.basket", max_rows=9, through=through, columns=columns)
    plain = table.sql("SELECT COUNT(*) AS n FROM items").query
    for own in ("items i", "sold i", "i"):
        text = f"SELECT COUNT(*) AS n FROM {own} JOIN orders o ON i.order_id = o.id"
        assert table.sql(text).query == plain
    text = "SELECT COUNT(*) AS n FROM a JOIN orders o ON b.order_id = o.id"
    with pytest.raises(QueryRefused, match="on the way to the unit"):
        table.sql(text)
