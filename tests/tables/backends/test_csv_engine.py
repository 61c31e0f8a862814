"""CSV on the real engine: every record as Python's csv reads it, at every boundary.

As evidence over 319 files, some of 40 MB.
"""

import csv
import gzip
from collections import Counter

import pytest

from lastbit.errors import InvalidParameter
from lastbit.tables.backends import csv_records
from lastbit.tables.backends.columns import columns_of
from lastbit.tables.backends.duckdb import sources as duckdb_sources
from lastbit.tables.backends.duckdb.files import opened
from lastbit.tables.backends.duckdb.sources import shown
from lastbit.tables.backends.printed import fingerprint
from lastbit.tables.card.column import Column
from lastbit.tables.card.schema import DataCard, Source
from lastbit.tables.plan.sensitivity import measures_of
from lastbit.tables.query.query import Aggregate, Query
from tests.evidence import late
from tests.kernel.unsealing import aggregates
from tests.tables.connecting import connected
from tests.tables.csv_oracles import by_python, chances, encoded, file_text, record, wanted

COUNT = Aggregate(name="n", function="count")


def rows_of(*paths):
    """All rows, as text, in whatever order."""
    with connected() as connection, opened(Source(kind="csv", paths=paths)) as there:
        shown(connection, there, "rows")
        found = connection.execute("SELECT *, count(*) FROM rows GROUP BY ALL").fetchall()
        return Counter({row[:-1]: row[-1] for row in found})


def counted(*paths):
    query = Query(table="t", aggregates=(COUNT,))
    names = columns_of(Source(kind="csv", paths=paths))
    card = DataCard(
        name="t",
        source=Source(kind="csv", paths=paths),
        unit=None,
        max_rows=1,
        columns={name: Column(name=name, type="text") for name in names},
    )
    fingerprint(card)
    return aggregates(query, card, measures_of(query)[0], secret="s").entries["m1"][0]


@pytest.fixture
def tiny(monkeypatch):
    """DuckDB with buffers of 4 KB for lines of at most 2 KB: a boundary every few records."""
    real = duckdb_sources._plain

    def small(header, copies):
        line = f"max_line_size = {duckdb_sources._LONGEST_LINE}"
        return real(header, copies).replace(line, "max_line_size = 2048, buffer_size = 4096")

    assert "buffer_size" in small(csv_records.Header(",", ("a",), 2), ["x"])
    monkeypatch.setattr(duckdb_sources, "_plain", small)
    monkeypatch.setattr(csv_records, "_BLOCK", 777)


@pytest.mark.thinned(one_in=14)
@pytest.mark.parametrize("seed", range(300))
def test_generated_files_with_boundaries_everywhere(tmp_path, tiny, seed):
    chance = chances(seed)
    columns, delimiter = chance.choice([1, 2, 3, 7, 40]), chance.choice(",,,;\t|")
    delimiter = delimiter if columns > 1 else ","  # one name has no delimiter to tell
    header = delimiter.join(f"n{place}" for place in range(columns)) + chance.choice(["\n", "\r\n"])
    texts, paths = [], []
    for number in range(chance.choice([1, 1, 1, 3])):
        rows = chance.randrange(1, 2000) // columns + 1
        text = file_text(chance, columns, rows, delimiter, most=chance.choice([4, 6, 30]))
        ending, pack = chance.choice([("csv", bytes), ("csv.gz", gzip.compress)])
        path = tmp_path / f"{number}.{ending}"
        mark = chance.choice([b"", b"\xef\xbb\xbf"])
        path.write_bytes(pack(mark + encoded(header + text)))
        texts.append(text)
        paths.append(str(path))
    records = [found for text in texts for found in by_python(text, delimiter)]
    assert rows_of(*paths) == Counter(wanted(records, columns))


def test_which_record_is_the_first_does_not_matter(tmp_path):
    """DuckDB drops a byte order mark at the start of a file, also if it is part of a field."""
    first, second = tmp_path / "1.csv", tmp_path / "2.csv"
    first.write_text("a,b\n\ufeffx,1\n\ufeffy,2\n", "utf-8")
    second.write_text("a,b\n", "utf-8")
    assert rows_of(str(first), str(second)) == Counter([("\ufeffx", "1"), ("\ufeffy", "2")])
    assert rows_of(str(second)) == Counter()


# ---------------------------------------------------------------- real sizes

PLAIN = b"7,abcdefgh\n"
MB = 10**6


def placed(path, at, special, size):
    """A file of plain rows with one record that straddles this byte."""
    head = b"who,place\n"
    number = (at - len(special) // 2 - len(head)) // len(PLAIN)
    rest = max((size - at) // len(PLAIN), 5)
    path.write_bytes(b"".join([head, PLAIN * number, special, PLAIN * rest]))
    return number + rest


def quoted(size, chance):
    """A record whose inside looks like rows of others."""
    inside = chance.choice([b"1,x\n", b"1,x\r\n", b'""\n1,""x""\n', "1,é€\n".encode(), b"\r1,x"])
    return b'5,"' + inside * (size // len(inside)) + b'"\n'


@pytest.mark.parametrize("ending", ["csv", late("csv.gz")])
def test_quoted_line_breaks_across_eight_million_bytes(tmp_path, ending):
    """DuckDB's reader finds 26,110 more rows in this file."""
    path = tmp_path / f"x.{ending}"
    special = b'1,"' + b"\n".join(b"%d,x" % i for i in range(40_000)) + b'"\n'
    others = placed(path, 8 * MB, special, 16 * MB)
    if ending == "csv.gz":
        path.write_bytes(gzip.compress(path.read_bytes(), compresslevel=1))
    assert counted(str(path)) == others + 1


BOUNDARIES = [8 * MB, 16 * MB, 24 * MB, 32 * MB, 1 << 20, 1 << 22, 1 << 23, 1 << 24, 32_000_000]
BOUNDARIES += [1 << 25, 2 * MB, 4_194_304 * 3, 33_554_432, 10**5, 1 << 16]


@pytest.mark.evidence
@pytest.mark.parametrize("seed", range(15))
def test_files_of_real_sizes(tmp_path, seed):
    chance = chances(10_000 + seed)
    at = BOUNDARIES[seed % len(BOUNDARIES)] + chance.randrange(-3, 4)
    size = chance.choice([8, 50, 1000, 60_000, 200_000, 500_000, 1_000_000])
    special = quoted(min(size, at // 2), chance)
    path = tmp_path / "x.csv"
    others = placed(path, at, special, min(40 * MB, at + chance.randrange(9 * MB)))
    found = rows_of(str(path))
    assert found.pop(("7", "abcdefgh")) == others
    fits = len(special) - 1 <= 1 << 20
    assert found == Counter(wanted(by_python(special.decode()), 2) if fits else [])


@pytest.mark.evidence
@pytest.mark.parametrize("seed", range(4))
def test_random_files_of_megabytes(tmp_path, seed):
    chance = chances(20_000 + seed)
    columns = chance.choice([1, 2, 5, 30])
    some = [record(chance, columns, most=chance.choice([3, 8, 300])) for _ in range(500)]
    end = chance.choice(["\n", "\r\n", "\r"])
    text = end.join(chance.choices(some, k=chance.randrange(20_000, 200_000)))[: 20 * MB]
    text = text.rpartition(end)[0] if text.count('"') % 2 == 0 else ""
    header = ",".join(f"n{place}" for place in range(columns)) + "\n"
    path = tmp_path / "x.csv"
    path.write_bytes(encoded(header + text))
    try:
        records = by_python(text)
    except csv.Error:
        records = None
    if records is None:
        with pytest.raises(InvalidParameter):
            rows_of(str(path))
    else:
        assert rows_of(str(path)) == Counter(wanted(records, columns))


# ---------------------------------------------------------------- refused, whatever is asked


@pytest.mark.parametrize("row", ['3,"x', '3,x"y', '3,"x"y', '3,"', ' "3",x'])
def test_a_file_with_a_quote_out_of_place_is_refused_before_anything_is_charged(tmp_path, row):
    path = tmp_path / "x.csv"
    lines = ["who,place", *["1,a"] * 50, row, *['2,"b"'] * 50]
    path.write_text("\n".join(lines) + "\n")
    columns = {name: Column(name=name, type="text") for name in ("who", "place")}
    source = Source(kind="csv", paths=(str(path),))
    card = DataCard(name="t", source=source, unit="who", max_rows=1, columns=columns)
    with pytest.raises(InvalidParameter, match="RFC 4180") as caught:
        fingerprint(card)
    assert row not in str(caught.value).replace(str(tmp_path), "")
    with pytest.raises(InvalidParameter, match="RFC 4180"):
        counted(str(path))
    assert list(columns_of(source)) == ["who", "place"]  # a card can be drafted all the same
