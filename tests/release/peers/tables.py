"""Tables with the columns that the questions of other products name, and how each is declared.

Every declared key has rows, numbers lie between their bounds, and nobody has more rows than
max_rows: so a question has DuckDB's answer, but for the noise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import duckdb

import lastbit as lb

# a, b, ... are different whole numbers that look random: the remainder of a hash
_DRAW = "(hash(range * 1009 + {}) % {})::BIGINT"


def _drawn(salt: int, number: int) -> str:
    return _DRAW.format(salt, number)


def _word(salt: int, *words: str) -> str:
    listed = ", ".join(f"'{word}'" for word in words)
    return f"[{listed}][1 + {_drawn(salt, len(words))}::INTEGER]"


_SQL: Mapping[str, str] = {
    "PUMS": f"""SELECT range // 2 AS pid, range % 101 AS age, {_drawn(1, 2)} AS sex,
        1 + floor(sqrt({_drawn(2, 144)}))::BIGINT AS educ, {_drawn(3, 6)} AS race,
        [0, 101, 307, 523, 701, 997, 1301, 1750][1 + {_drawn(4, 8)}::INTEGER] AS income,
        {_drawn(5, 5)} < 2 AS married,
        {_drawn(6, 5)} < 1 AS latino, {_drawn(7, 5)} < 1 AS black, {_drawn(8, 5)} < 1 AS asian,
        DATE '2020-01-01' + {_drawn(9, 20)}::INTEGER AS start_date, {_drawn(10, 10)} AS start_time,
        {_drawn(11, 100)}::DOUBLE AS sales FROM range(12_000)""",
    "crashes": f"""SELECT range // 3 AS "DeviceID", {_drawn(1, 11)} AS "Crashes",
        50 + {_drawn(2, 100)} / 10 AS "Temperature", {_word(3, "LATAM", "EMEA", "NA")} AS "Region",
        {_word(4, "A", "B", "C")} AS "Building", {_drawn(5, 2)} = 0 AS "Refurbished"
        FROM range(6_000)""",
    "telemetry_census": f"""SELECT range AS "DeviceID", {_word(1, "Dell", "HP")} AS "OEM"
        FROM range(2_000)""",
    "rollouts": f"""SELECT range AS "DeviceID", {_drawn(1, 4)} AS "TrialGroup" FROM range(2_000)""",
    "census": f"""SELECT range AS id, 17 + range % 74 AS age,
        {_word(1, "Private", "Gov")} AS workclass,
        {_drawn(2, 1000)} AS fnlwgt, {_word(3, "HS-grad", "Bachelors", "Masters")} AS education,
        1 + {_drawn(4, 16)} AS education_num,
        {_word(5, "Divorced", "Never-married", "Widowed", "Married-civ-spouse")} AS marital_status,
        {_word(6, "Sales", "Analyst")} AS occupation, {_word(7, "Female", "Male")} AS sex,
        {_word(7, "Female", "Male")} AS gender, {_drawn(8, 9)} * 500 AS capital_loss,
        {_word(9, "Cuba", "Italy", "England", "Mexico")} AS native_country FROM range(8_000)""",
    "table_1": f"""SELECT {_drawn(1, 11)}::DOUBLE AS a, {_drawn(2, 11)}::DOUBLE - 5 AS b,
        DATE '2020-01-01' + {_drawn(3, 20)}::INTEGER AS c, {_drawn(4, 11)} AS d
        FROM range(6_000)""",
    "table_2": f"""SELECT range AS x, 'y' || {_drawn(1, 5)} AS y,
        {_word(2, "Foo", "Bar", "ab")} AS z FROM range(100)""",
    "item_table": f"""SELECT range % 200 AS order_id, 'i' || {_drawn(1, 5)} AS item,
        {_drawn(2, 50)}::DOUBLE AS price FROM range(6_000)""",
    "user_table": f"""SELECT range AS id, 20 + {_drawn(1, 50)} AS age,
        {_word(2, "Paris", "London")} AS city FROM range(500)""",
    "order_table": f"""SELECT range AS id, range // 3 AS user_id,
        'd' || {_drawn(1, 3)} AS description
        FROM range(1_500)""",
    "retail_demographics": f"""SELECT range AS household_id, 20 + {_drawn(1, 20)} AS age,
        {_drawn(2, 10)}::DOUBLE AS income FROM range(1_000)""",
    "retail_products": f"""SELECT range AS product_id, {_word(1, "d1", "d2")} AS department,
        {_word(2, "b1", "b2")} AS brand, {_word(3, "p1", "p2")} AS product_category
        FROM range(10)""",
    "retail_transactions": f"""SELECT range // 6 AS household_id, {_drawn(1, 5)} AS store_id,
        {_drawn(2, 10)} AS product_id, 1 + {_drawn(3, 5)} AS quantity,
        1 + {_drawn(4, 90)}::DOUBLE AS sales_value, {_drawn(5, 9)} + 0.5 AS retail_disc,
        DATE '2022-12-20' + {_drawn(6, 60)}::INTEGER AS transaction_timestamp
        FROM range(6_000)""",
    "df": f"""SELECT range AS id, {_word(1, "Adelie", "Gentoo", "Chinstrap")} AS species,
        30 + {_drawn(2, 200)} / 10 AS bill_length_mm,
        170 + {_drawn(3, 60)}::DOUBLE AS flipper_length_mm,
        {_drawn(4, 80)} AS "Age", DATE '1940-01-01' + {_drawn(5, 9000)}::INTEGER AS birthday
        FROM range(2_000)""",
    "features": f"""SELECT range AS id, 1 + {_drawn(1, 45)} AS "Store",
        DATE '2020-01-01' + {_drawn(2, 20)}::INTEGER AS "Date",
        20 + {_drawn(3, 80)}::DOUBLE AS "Temperature", 2.5 + {_drawn(4, 15)} / 10 AS "Fuel_Price",
        {_drawn(5, 7)} = 0 AS "IsHoliday" FROM range(4_000)""",
    "sales": f"""SELECT range AS id, 1 + {_drawn(1, 45)} AS "Store",
        DATE '2020-01-01' + {_drawn(2, 20)}::INTEGER AS "Date",
        {_drawn(3, 800)}::DOUBLE AS "Weekly_Sales", {_drawn(5, 7)} = 0 AS "IsHoliday"
        FROM range(4_000)""",
    "reddit": f"""SELECT range // 3 AS pid, {_word(1, "the", "of", "and")} AS ngram
        FROM range(3_000)""",
    "actors": f"""SELECT range AS id, {_word(1, "F", "M")} AS gender FROM range(1_000)""",
    "roles": f"""SELECT range // 4 AS actor_id, {_drawn(1, 50)} AS movie_id,
        'r' || {_drawn(2, 7)} AS role
        FROM range(4_000)""",
    "heart_data": f"""SELECT range AS id, 1 + {_drawn(1, 2)} AS gender,
        130 + {_drawn(2, 80)} AS height,
        40 + {_drawn(3, 80)}::DOUBLE AS weight FROM range(3_000)""",
    "beacon": f"""SELECT range AS id,
        TIMESTAMP '2020-01-01 07:00:00' + to_hours({_drawn(1, 900)}::INTEGER) AS "検知日時",
        {_drawn(2, 20)} AS "マップのY座標", {_word(3, "営業", "開発")} AS "所属部署"
        FROM range(3_000)""",
    "foo": f"""SELECT range AS "UnitID", {_drawn(1, 5)} AS x, {_drawn(2, 3)} AS y,
        {_drawn(3, 9)} AS crashes,
        {_drawn(4, 100)}::DOUBLE AS temp, {_drawn(5, 1000)} AS salary, {_drawn(6, 40)} AS id,
        {_drawn(7, 40)} AS a, {_drawn(8, 4)} AS region, {_drawn(9, 3)} AS sales,
        {_drawn(10, 40)} AS b,
        {_drawn(11, 40)} AS bar, {_drawn(12, 9)} AS z, {_drawn(13, 9)} AS zz FROM range(3_000)""",
}


_VIEWS: Mapping[str, str] = {
    "PUMS.PUMS": "PUMS",
    "PUMS_large": "PUMS",
    "Telemetry.Crashes": "crashes",
    "Telemetry.Census": "telemetry_census",
    "Telemetry.Rollouts": "rollouts",
    "extract.census": "census",
    "census_schema.census_table": "census",
    "retail.features": "features",
    "imdb_ijs.actors": "actors",
    "imdb_ijs.roles": "roles",
    "reddit.reddit": "reddit",
    **dict.fromkeys(("bar", "baz", "bip", '"MAIN"', "ziz", "SalesTable"), "foo"),
}
"""Other names of the tables, as questions write them."""


def _columns(**bounds: tuple[int, int]) -> list[lb.Column]:
    return [lb.Column(name=name, type="number", bounds=ends) for name, ends in bounds.items()]


def _whole(**bounds: tuple[int, int]) -> list[lb.Column]:
    return [lb.Column(name=name, type="integer", bounds=ends) for name, ends in bounds.items()]


class Peers:
    """A database with all tables, and each of them as a private one, made when it is asked for."""

    def __init__(self) -> None:
        self.engine = duckdb.connect()
        for name, text in _SQL.items():
            self.engine.execute(f'CREATE TABLE "{name}" AS {text}')
        self._made = dict[str, Any]()

        for path, source in _VIEWS.items():
            if "." in path:
                self.engine.execute(f"CREATE SCHEMA IF NOT EXISTS {path.split('.')[0]}")
            self.engine.execute(f'CREATE VIEW {path} AS SELECT * FROM main."{source}"')

    def table(self, name: str) -> Any:
        """The private table of this card; rows of `foo` answer to any name."""
        if name not in self._made:
            self._made[name] = getattr(self, f"_{name}")()
        return self._made[name]

    def _of(self, source: str, *, name: str | None = None, **declared: Any) -> Any:
        return lb.table(self._frame(source), name=name or source, **declared)

    def _frame(self, source: str) -> Any:
        return self.engine.sql(f'SELECT * FROM "{source}"').to_arrow_table()

    def _pums(self) -> Any:
        keys: dict[str, Any] = {"sex": [0, 1], "race": range(6)}
        return self._of(
            "PUMS",
            unit="pid",
            max_rows=2,
            keys={name: list(values) for name, values in keys.items()},
            columns=_whole(age=(0, 100), income=(0, 1750), educ=(1, 12)) + _columns(sales=(0, 100)),
        )

    def _telemetry(self) -> Any:
        census = self._of(
            "telemetry_census", unit="DeviceID", max_rows=1, keys={"OEM": ["Dell", "HP"]}
        )
        rollouts = self._of(
            "rollouts", unit="DeviceID", max_rows=1, keys={"TrialGroup": [0, 1, 2, 3]}
        )
        return self._of(
            "crashes",
            unit="DeviceID",
            max_rows=3,
            keys={"Region": ["LATAM", "EMEA", "NA"], "Building": ["A", "B", "C"]},
            columns=_whole(Crashes=(0, 10)) + _columns(Temperature=(50, 60)),
            private={"census": census, "rollouts": rollouts},
        )

    def _census(self) -> Any:
        return self._of(
            "census",
            unit="id",
            max_rows=1,
            keys={"sex": ["Female", "Male"], "education": ["HS-grad", "Bachelors", "Masters"]},
            columns=_whole(age=(17, 90), education_num=(1, 16), capital_loss=(0, 4000)),
        )

    def _table_1(self) -> Any:
        return self._of(
            "table_1",
            each_row=True,
            columns=_columns(a=(0, 10), b=(-5, 5)) + _whole(d=(0, 10)),
            public={"table_2": self._frame("table_2")},
        )

    def _table_2(self) -> Any:
        keys = {"z": ["Foo", "Bar", "ab"]}
        return self._of("table_2", each_row=True, keys=keys, columns=_whole(x=(0, 99)))

    def _item_table(self) -> Any:
        columns = _columns(price=(0, 50)) + _whole(order_id=(0, 199))
        return self._of("item_table", each_row=True, columns=columns)

    def _user_table(self) -> Any:
        keys = {"city": ["Paris", "London"]}
        return self._of(
            "user_table", unit="id", max_rows=1, keys=keys, columns=_whole(age=(0, 100))
        )

    def _order_table(self) -> Any:
        private = {"user_table": self.table("user_table")}
        return self._of("order_table", unit="user_id", max_rows=3, private=private)

    def _retail(self) -> Any:
        return self._of(
            "retail_transactions",
            unit="household_id",
            max_rows=6,
            columns=_columns(sales_value=(0, 100), retail_disc=(0, 10)) + _whole(quantity=(1, 5)),
            public={"retail_products": self._frame("retail_products")},
            private={"retail_demographics": self.table("retail_demographics")},
        )

    def _retail_demographics(self) -> Any:
        columns = _whole(age=(20, 39))
        return self._of("retail_demographics", unit="household_id", max_rows=1, columns=columns)

    def _df(self) -> Any:
        bounds = {"bill_length_mm": (30, 65), "flipper_length_mm": (150, 250)}
        keys = {"species": ["Adelie", "Gentoo", "Chinstrap"]}
        columns = _columns(**bounds) + _whole(Age=(0, 100))
        return self._of("df", unit="id", max_rows=1, keys=keys, columns=columns)

    def _features(self) -> Any:
        bounds = {"Temperature": (0, 120), "Fuel_Price": (0, 10)}
        columns = _columns(**bounds) + _whole(Store=(1, 45))
        return self._of("features", unit="id", max_rows=1, columns=columns)

    def _sales(self) -> Any:
        columns = _columns(Weekly_Sales=(0, 1000)) + _whole(Store=(1, 45))
        return self._of("sales", unit="id", max_rows=1, columns=columns)

    def _reddit(self) -> Any:
        return self._of("reddit", unit="pid", max_rows=3)

    def _actors(self) -> Any:
        roles = self._of("roles", unit="actor_id", max_rows=4)
        keys = {"gender": ["F", "M"]}
        return self._of("actors", unit="id", max_rows=4, keys=keys, private={"roles": roles})

    def _heart_data(self) -> Any:
        columns = _columns(weight=(30, 200)) + _whole(height=(100, 250))
        return self._of("heart_data", unit="id", max_rows=1, columns=columns)

    def _beacon(self) -> Any:
        columns = _whole(マップのY座標=(0, 19))
        return self._of("beacon", unit="id", max_rows=1, columns=columns)

    def _foo(self) -> Any:
        bounds = {"x": (0, 4), "y": (0, 2), "crashes": (0, 8), "salary": (0, 1000), "id": (0, 39)}
        bounds |= {"a": (0, 39), "b": (0, 39), "region": (0, 3), "sales": (0, 2)}
        columns = _whole(**bounds) + _columns(temp=(0, 100))
        return lb.table(self._frame("foo"), unit="UnitID", max_rows=1, columns=columns)
