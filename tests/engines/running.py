"""The real statements on the real engines: tables made of rows, cells and aggregates of them."""

import struct
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

import pyarrow
import pytest
from pyarrow import parquet

from lastbit.errors import QueryRefused
from lastbit.kernel.sealed import Aggregates
from lastbit.tables import RawRows
from lastbit.tables.backends.drivers import dialect_of
from lastbit.tables.card.column import Column
from lastbit.tables.card.schema import DataCard, EngineName, Source
from lastbit.tables.compile.dialect import Family, Shown
from lastbit.tables.compile.marginals import marginals_statement
from lastbit.tables.compile.rows import CompiledRows, private_relation, relation
from lastbit.tables.compile.statement import Statement, statement
from lastbit.tables.query.expression import ColumnName
from lastbit.tables.query.query import Aggregate, Query
from tests.engines.batches import BATCH
from tests.evidence import Extent
from tests.kernel.unsealing import opened_marginals, opened_rows
from tests.stability.cases import JUNK
from tests.stability.engine import COLUMNS, LABS, PUBLIC, SECRET
from tests.tables.connecting import connected

ARROW = {
    "bigint": pyarrow.int64(),
    "integer": pyarrow.int32(),
    "smallint": pyarrow.int16(),
    "double": pyarrow.float64(),
    "real": pyarrow.float32(),
    "decimal": pyarrow.decimal128(38, 10),
    "whole decimal": pyarrow.decimal128(38, 0),
    "text": pyarrow.string(),
    "boolean": pyarrow.bool_(),
    "date": pyarrow.date32(),
    "timestamp": pyarrow.timestamp("us"),
    "timestamptz": pyarrow.timestamp("us", "UTC"),
}
"""Types of columns in sources, as the tests name them."""

COLUMN_TYPES = dict(zip(ARROW, ARROW, strict=True)) | {
    "double": "double precision",
    "decimal": "numeric(38,10)",
    "whole decimal": "numeric(38,0)",
}
_FAMILIES: dict[str, Family] = {
    **dict.fromkeys(("bigint", "integer", "smallint"), "integer"),
    **dict.fromkeys(("double", "real"), "number"),
    **dict.fromkeys(("decimal", "whole decimal"), "decimal"),
}
_STABILITY = {
    "BIGINT": "bigint",
    "VARCHAR": "text",
    "HUGEINT": "whole decimal",
    "DOUBLE": "double",
    "BOOLEAN": "boolean",
    "DATE": "date",
}
TABLE = {name: _STABILITY[kind] for name, kind in COLUMNS.items()} | {BATCH: "bigint"}
TABLE["junk"] = "double"  # no other engine reads numbers from text
PLACES, PRIVATE = ({name: _STABILITY[k] for name, k in of.items()} for of in (PUBLIC, LABS))
_CHUNK = 64


def arrow(types: dict[str, str], rows: Any) -> Any:
    """The rows as an Arrow table; a whole number is a day, or a microsecond, from 1970 on."""
    columns = zip(*rows, strict=True) if rows else [()] * len(types)
    arrays = []
    for values, kind in zip(columns, types.values(), strict=True):
        wanted = ARROW[kind]
        if kind in ("date", "timestamp", "timestamptz") and any(isinstance(v, int) for v in values):
            plain = pyarrow.int32() if kind == "date" else pyarrow.int64()
            arrays.append(pyarrow.array(values, type=plain).view(wanted))
        else:
            arrays.append(pyarrow.array(values, type=wanted))
    return pyarrow.table(arrays, names=list(types))


def card_of(types: dict[str, str], **fields: Any) -> DataCard:
    """A card of columns of these types, each row a unit."""
    columns = {n: Column(name=n, type=kind) for n, kind in types.items()}  # type: ignore[arg-type]
    given: dict[str, Any] = {
        "name": "t",
        "source": Source(kind="frame"),
        "unit": None,
        "max_rows": 1,
    }
    return DataCard(**(given | {"columns": columns} | fields))


class Runner:
    """An engine. `make` and `ran` are its own; all else is what the compiler writes for it."""

    name: EngineName
    slow: ClassVar[int] = 1
    """How much longer a small statement takes than on the quickest engine."""

    def __init__(self) -> None:
        self.dialect = dialect_of(self.name)
        self.held, self.actual = ExitStack(), dict[str, Shown]()
        self.given: dict[str, Any] = {}

    def number(self, extent: Extent, few: int, many: int) -> int:
        """How many cases to try: fewer where each takes long."""
        return max(1, extent.number(few, many) // self.slow)

    def close(self) -> None:
        self.held.close()

    def make(self, name: str, types: dict[str, str], rows: Any) -> None:
        """A table of this name, in place of an earlier one."""
        if self.given.get(name) == (types, rows):
            return
        self.given[name] = types, rows
        self.actual[name] = self.shown(name, types)
        self.write(self.place(name), types, rows)

    def shown(self, name: str, types: dict[str, str]) -> Shown:
        """What the compiler is told of a table."""
        columns = {n.lower(): (n, _FAMILIES.get(kind, kind)) for n, kind in types.items()}
        return Shown(place=self.place(name), columns=columns)  # type: ignore[arg-type]

    def place(self, name: str) -> str:
        """How FROM names a table."""
        return self.dialect.identifier(name)

    def write(self, place: str, types: dict[str, str], rows: Any) -> None:
        """The table itself."""
        raise NotImplementedError

    def ran(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows that the statement gives."""
        raise NotImplementedError

    def compiled(self, card: DataCard) -> CompiledRows:
        """The rows of the table, for expressions over them."""
        query = Query(table="t", aggregates=(Aggregate(name="n", function="count"),))
        return CompiledRows(query, card, dialect=self.dialect, actual=self.actual)

    def accepts(self, call: Any, card: DataCard) -> bool:
        """Whether the dialect has it; what it has not it refuses before anything is read."""
        try:
            rows = self.compiled(card)
            rows.value(call)
            list(rows.sources())
        except QueryRefused:
            return False
        return True

    def cells(self, calls: Any, card: DataCard) -> dict[Any, list[Any]]:
        """The bits of each call on each row of the table, in the order of its column i."""
        return {call: [*map(bits, own)] for call, own in self.values(calls, card).items()}

    def values(self, calls: Any, card: DataCard) -> dict[Any, Any]:
        """The same as values."""
        found: dict[Any, Any] = {}
        chosen = list(calls)
        for start in range(0, len(chosen), _CHUNK):
            few = chosen[start : start + _CHUNK]
            rows = self.compiled(card)
            places = [rows.value(call).sql for call in (ColumnName("i"), *few)]
            parts = [*rows.sources(), *rows.stages()]
            parts.append(self.dialect.part("e", rows.expressions()))
            sql = f"WITH {', '.join(parts)} SELECT {', '.join(places)} FROM e"
            try:
                ran = self.ran(sql)
            except Exception as error:
                error.add_note(f"one of {few}")
                raise
            _, *columns = zip(*sorted(ran, key=lambda row: row[0]), strict=True)
            found |= dict(zip(few, columns, strict=True))
        return found

    def fill(self, case: Any, rows: Any, labs: Any) -> None:
        """The tables of a case of the stability suite."""
        junk = list(TABLE).index("junk")
        read = [(*row[:junk], junk_number(row[junk]), *row[junk + 1 :]) for row in rows]
        short = len(TABLE) - len(COLUMNS)
        whole = [(*row, *[None] * short) if len(row) < len(TABLE) else row for row in read]
        self.make(relation(), TABLE, whole)
        if case.query.all_joins:
            self.make(relation("places"), PLACES, case.places)
            self.make(private_relation("labs"), PRIVATE, labs)

    def run(self, case: Any, rows: Any, changed: Any = None, labs: Any = None) -> Aggregates:
        """The aggregates of these rows, as tests/stability runs them."""
        self.fill(case, rows, case.labs if labs is None else labs)
        return self.asked(case.query, case.card, case.measures, changed)

    def asked(self, query: Any, card: DataCard, measures: Any, changed: Any = None) -> Aggregates:
        """The aggregates of the tables as they are."""
        wanted = self.statement(query, card, measures)
        found = self.ran(wanted.sql if changed is None else changed(wanted.sql))
        return opened_rows(query, measures, wanted, found)

    def statement(self, query: Any, card: DataCard, measures: Any) -> Statement:
        """What is run; refuses what the dialect has not."""
        actual, dialect = self.actual, self.dialect
        return statement(query, card, measures, secret=SECRET, dialect=dialect, actual=actual)

    def marginals(self, case: Any, rows: Any, marginals: Any) -> list[Any]:
        """The entries of every marginal."""
        self.fill(case, rows, case.labs)
        wanted = marginals_statement(
            case.query, case.card, marginals, dialect=self.dialect, actual=self.actual
        )
        raw = RawRows(wanted, self.ran(wanted.sql))
        return opened_marginals(case.query, marginals, raw)


class DuckDB(Runner):
    """The reference."""

    name = "duckdb"

    def __init__(self) -> None:
        super().__init__()
        self.connection = self.held.enter_context(connected())
        self.connection.execute("SET threads = 1")

    def write(self, place: str, types: dict[str, str], rows: Any) -> None:
        self.connection.register("given", arrow(types, rows))
        self.connection.execute(f"CREATE OR REPLACE TEMP TABLE {place} AS SELECT * FROM given")
        self.connection.unregister("given")

    def ran(self, sql: str) -> list[tuple[Any, ...]]:
        return self.connection.execute(sql).fetchall()


class Postgres(Runner):
    """A database of the tests' own server: tables are written by one session, read by ours."""

    name = "postgres"

    def __init__(self, server: Any, how: str = "") -> None:
        from lastbit.tables.backends.postgres import sources  # needs its driver

        super().__init__()
        self.types, self.address = COLUMN_TYPES, server.database(how)
        self.writer = self.held.enter_context(server.connected(self.address))
        self.reader = self.held.enter_context(server.connected(self.address))
        for name, value in vars(sources)["_SETTINGS"].items():
            self.reader.execute("SELECT set_config(%s, %s, false)", (name, value))

    def place(self, name: str) -> str:
        return f"public.{super().place(name)}"

    def write(self, place: str, types: dict[str, str], rows: Any) -> None:
        fields = (f"{self.dialect.identifier(n)} {self.types[k]}" for n, k in types.items())
        self.writer.execute(f"DROP TABLE IF EXISTS {place}")
        self.writer.execute(f"CREATE UNLOGGED TABLE {place} ({', '.join(fields)})")
        with self.writer.cursor() as cursor, cursor.copy(f"COPY {place} FROM STDIN") as copy:
            for row in rows:
                copy.write_row([*map(spelled, types.values(), row)])

    @contextmanager
    def wrongly_set(self, name: str, value: str) -> Iterator[None]:
        """Inside, another setting than ours."""
        (own,) = self.reader.execute(f"SHOW {name}").fetchone()
        self.reader.execute(f"SET {name} = {value}")
        yield
        self.reader.execute(f"SET {name} = {own}")

    def ran(self, sql: str) -> list[tuple[Any, ...]]:
        return self.reader.execute(sql, prepare=False).fetchall()


class Spark(Runner):
    """A session of ours beside that of the tests; tables are Parquet files."""

    name, slow = "spark", 6

    def __init__(self, session: Any, folder: Path) -> None:
        from lastbit.tables.backends.spark.engine import EngineSession  # needs its driver

        super().__init__()
        assert session  # which ours is made beside
        self.session = self.held.enter_context(EngineSession()).connected()
        self.folder, self.numbers = folder, count()

    def place(self, name: str) -> str:
        return super().place(name.replace(" ", "_"))

    def write(self, place: str, types: dict[str, str], rows: Any) -> None:
        path = self.folder / f"{next(self.numbers)}.parquet"
        parquet.write_table(arrow(types, rows), path)
        self.session.read.parquet(str(path)).createOrReplaceTempView(place.strip("`"))

    @contextmanager
    def wrongly_set(self, name: str, value: str) -> Iterator[None]:
        """Inside, another setting than ours."""
        own = self.session.conf.get(name)
        self.session.conf.set(name, value)
        yield
        self.session.conf.set(name, own)

    def ran(self, sql: str) -> list[tuple[Any, ...]]:
        return [*map(tuple, self.session.sql(sql).collect())]


@pytest.fixture(scope="session")
def duck() -> Iterator[DuckDB]:
    """The reference."""
    found = DuckDB()
    yield found
    found.close()


@pytest.fixture(scope="session", params=["postgres", "spark"])
def engine(request: pytest.FixtureRequest, tmp_path_factory: Any) -> Iterator[Runner]:
    """Each other engine; one that cannot be started skips its tests."""
    server = request.getfixturevalue(request.param)
    folder = tmp_path_factory.mktemp("tables")
    found = Postgres(server) if request.param == "postgres" else Spark(server, folder)
    yield found
    found.close()


# ---------------------------------------------------------------- values


def bits(value: Any) -> Any:
    """What two engines must agree on: of a double its bits, but for the sign of 0.

    Nothing that is released depends on that sign: a division by 0 is missing either way.
    """
    if isinstance(value, float):
        return ("double", struct.pack(">d", value + 0.0).hex())
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else value
    return value


_CYCLE = 146_097  # days of 400 years
_DAY = 86_400_000_000  # microseconds


def spelled(kind: str, value: Any) -> Any:
    """A number of days or microseconds from 1970 on as PostgreSQL reads it, in any year."""
    if not isinstance(value, int) or kind not in ("date", "timestamp", "timestamptz"):
        return value
    days, rest = (value, 0) if kind == "date" else divmod(value, _DAY)
    cycles, days = divmod(days, _CYCLE)
    moment = datetime(1970, 1, 1) + timedelta(days=days, microseconds=rest)
    year = moment.year + 400 * cycles
    text = f"{year if year > 0 else 1 - year:04}{moment:-%m-%d %H:%M:%S.%f}"
    return text + ("+00" if kind == "timestamptz" else "") + ("" if year > 0 else " BC")


def junk_number(text: Any) -> Any:
    """What the texts of the stability suite are, where they are stored as numbers."""
    return text if not isinstance(text, str) else float("nan") if text == "nan" else JUNK[text]
