"""The real statement on the real engine: one connection, many tables."""

import pyarrow
from pyarrow import parquet

from lastbit.tables.backends.duckdb.prepared import digest, numbers_among
from lastbit.tables.backends.duckdb.preparing import numbered_rows, typed_rows
from lastbit.tables.backends.duckdb.unit_index import counting_statement, units_statement
from lastbit.tables.compile.duckdb import DUCKDB, DuckDBDialect
from lastbit.tables.compile.rows import private_relation, relation
from lastbit.tables.compile.statement import COUNTED_UNITS, statement
from lastbit.tables.compile.steps import identifier
from tests.kernel.unsealing import opened_rows
from tests.tables.connecting import connected

COLUMNS = {
    "who": "BIGINT",
    "name": "VARCHAR",
    "cat": "VARCHAR",
    "num": "HUGEINT",
    "x": "DOUBLE",
    "flag": "BOOLEAN",
    "day": "DATE",
    "junk": "VARCHAR",
}
PUBLIC = {"cat": "VARCHAR", "label": "VARCHAR", "level": "BIGINT"}
LABS = {
    "whose": "BIGINT",
    "called": "VARCHAR",
    "code": "VARCHAR",
    "dose": "HUGEINT",
    "amount": "DOUBLE",
}
ARROW = {
    "BIGINT": pyarrow.int64(),
    "VARCHAR": pyarrow.string(),
    "HUGEINT": pyarrow.decimal128(38, 0),
    "DOUBLE": pyarrow.float64(),
    "BOOLEAN": pyarrow.bool_(),
    "DATE": pyarrow.date32(),
}
SECRET = "a secret's text"


class ByWindow(DuckDBDialect):
    """DuckDB's text in the shape that other engines need: windows, and short steps."""

    bounding = "window"
    evens = False
    nested_terms = 1


class Engine:
    """Runs a case's statement on rows; `changed` rewrites its text first, for mutants.

    With a `folder`, rows go through a Parquet file, whose statistics leave NaN out. If `indexed`,
    rows of units are counted by a statement of their own, as for the index beside a ledger. If
    `prepared`, rows are as `card prepare` writes them, with the count of the case's own statement.
    """

    def __init__(self, folder=None, dialect=DUCKDB, *, indexed=False, prepared=False):
        self.dialect, self.indexed, self.prepared = dialect, indexed, prepared
        self.context = connected()
        self.connection = self.context.__enter__()
        self.connection.execute("SET threads = 1")
        self.places = self.labs = ()
        tables = {relation(): COLUMNS, relation("places"): PUBLIC, private_relation("labs"): LABS}
        for name, columns in tables.items():
            fields = ", ".join(f"{identifier(c)} {kind}" for c, kind in columns.items())
            self.connection.execute(f"CREATE TEMP TABLE {identifier(name)} ({fields})")
        self.file = None if folder is None else f"{folder}/rows.parquet"
        if self.file:
            self._written(())
            self.connection.execute(f"DROP TABLE {relation()}")
            self.connection.execute(
                f"CREATE TEMP VIEW {relation()} AS SELECT * FROM read_parquet('{self.file}')"
            )

    def _written(self, rows):
        columns = zip(*rows, strict=True) if rows else [()] * len(COLUMNS)
        arrays = [
            pyarrow.array(v, type=ARROW[kind])
            for v, kind in zip(columns, COLUMNS.values(), strict=True)
        ]
        parquet.write_table(pyarrow.table(arrays, names=list(COLUMNS)), self.file)

    def close(self):
        self.context.__exit__(None, None, None)

    def fill(self, name, rows, columns):
        self.connection.execute(f"DELETE FROM {identifier(name)}")
        if rows:
            lists = ", ".join(f"unnest(CAST(? AS {kind}[]))" for kind in columns.values())
            values = [list(column) for column in zip(*rows, strict=True)]
            self.connection.execute(f"INSERT INTO {identifier(name)} SELECT {lists}", values)

    def _fill_table(self, case, rows, counts):
        if not self.prepared:
            self.fill(relation(), rows, COLUMNS)
            return
        fields = ", ".join(f"{identifier(c)} {kind}" for c, kind in COLUMNS.items())
        self.connection.execute(f"CREATE TEMP TABLE IF NOT EXISTS raw ({fields})")
        self.fill("raw", rows, COLUMNS)
        self._show(typed_rows(case.card.columns_at(0), "raw"))
        if case.card.unit is not None:
            self._show(numbered_rows(self.connection, case.card, counts))

    def _show(self, body):
        self.connection.execute(f"CREATE OR REPLACE TEMP TABLE shown AS {body}")
        self.connection.execute(f"CREATE OR REPLACE TEMP TABLE {relation()} AS FROM shown")

    def run(self, case, rows, changed=None, labs=None):
        """The aggregates of these rows; `labs` are those of the case, unless given."""
        labs = case.labs if labs is None else labs
        counting = units_statement(case.query, case.card) if self.indexed else None
        own = counting_statement(case.query, case.card) if self.prepared else None
        counts = {} if own is None else {digest(own): own}
        numbers = numbers_among(case.query, case.card, counts) if self.prepared else None
        wanted = statement(
            case.query,
            case.card,
            case.measures,
            secret=SECRET,
            dialect=self.dialect,
            indexed=counting is not None,
            numbers=numbers,
        )
        sql = wanted.sql if changed is None else changed(wanted.sql)
        if self.file:
            self._written(rows)
        else:
            self._fill_table(case, rows, counts)
        if case.places != self.places:
            self.fill(relation("places"), case.places, PUBLIC)
            self.places = case.places
        if labs != self.labs:
            self.fill(private_relation("labs"), labs, LABS)
            self.labs = labs
        if counting is not None:
            made = f"CREATE OR REPLACE TEMP TABLE {COUNTED_UNITS} AS {counting}"
            self.connection.execute(made)
        found = self.connection.execute(sql).fetchall()
        return opened_rows(case.query, case.measures, wanted, found)
