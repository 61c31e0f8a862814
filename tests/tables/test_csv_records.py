"""The reader of CSV against Python's csv, byte for byte; and that no record touches another."""

import gzip
import io
import itertools
import os

import numpy as np
import pytest

from lastbit.errors import InvalidParameter
from lastbit.tables import csv_records
from lastbit.tables.csv_records import Header, check_records, decompressed, header_of
from tests.tables.csv_oracles import (
    Malformed,
    by_letters,
    by_python,
    chances,
    encoded,
    file_text,
    ours,
    record,
    wanted,
)


def read(data, columns=2, delimiter=","):
    try:
        return ours(data, columns, delimiter)
    except InvalidParameter:
        return None


def oracle(text, columns=2, delimiter=","):
    try:
        records = by_letters(text, delimiter)
    except Malformed:
        return None
    assert records == by_python(text, delimiter)
    return wanted(records, columns)


LENGTHS = range(1, 8 if os.environ.get("LASTBIT_EVIDENCE") else 6)


@pytest.mark.parametrize("length", LENGTHS)
def test_every_short_text(length):
    """All texts of up to 5 (as evidence: 7, which are 97,655) letters, with one column and two."""
    for letters in itertools.product('a",\n\r', repeat=length):
        text = "".join(letters)
        for columns in (1, 2):
            assert read(text.encode(), columns) == oracle(text, columns), repr(text)


@pytest.mark.parametrize("block", [1, 2, 3, 7, 64, 1 << 22])
def test_generated_files(monkeypatch, block):
    """Every place is a boundary of blocks of one byte; the copies are the same for all blocks."""
    monkeypatch.setattr(csv_records, "_BLOCK", block)
    chance = chances(block)
    for number in range(15 if block < 4 else 120):
        columns, delimiter = chance.randrange(1, 6), chance.choice(",,;\t|")
        text = file_text(chance, columns, chance.randrange(12), delimiter)
        assert read(encoded(text), columns, delimiter) == oracle(text, columns, delimiter), number


def test_a_record_replaced_by_anything_changes_no_other_or_has_the_file_refused():
    """Locality, for every text of up to 5 letters in place of one record, among three kinds."""
    others = [["1,a\n", '2,"b\n,"\n'], ['1,""\n', '"2",","\n'], ['"",""""\r\n', '2,"\n""\n"\n']]
    refused = kept = 0
    for before, after in others:
        alone = oracle(before), oracle(after)
        for length in range(6):
            for letters in itertools.product('a",\n', repeat=length):
                new = "".join(letters) + "\n"
                found = read((before + new + after).encode())
                if found is None:
                    refused += 1
                    assert oracle(new) is None  # by itself it is no record either
                else:
                    kept += 1
                    assert found == [*alone[0], *oracle(new), *alone[1]]
    assert refused > 1000
    assert kept > 300


def test_two_wrong_records_can_meet_which_is_why_each_is_refused_by_itself():
    assert read(b'1,"a\n') is None
    assert read(b'2,",3\n') is None


def test_invalid_utf8_is_found_as_python_finds_it():
    """All sequences of two bytes, all leads with all second bytes, and random ones."""
    edges = [0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0]
    edges += [0xE1, 0xEC, 0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF]
    texts = [bytes(pair) for pair in itertools.product(range(256), repeat=2)]
    texts += [bytes(t) for t in itertools.product(edges[1:], repeat=3)]
    texts += [bytes((*t, 0x80)) for t in itertools.product(edges[8:], edges[3:], edges[3:9])]
    stops = np.cumsum([len(text) + 1 for text in texts]) - 1
    bits = np.frombuffer(b"\n".join(texts) + b"\n", np.uint8)
    wrong = set(np.searchsorted(stops, csv_records._invalid(bits)).tolist())
    for place, text in enumerate(texts):
        try:
            text.decode("utf-8")
        except UnicodeDecodeError:
            # a line break within a pair is its own record here, and no trail byte
            assert place in wrong or 10 in text, text
        else:
            assert place not in wrong, text


def test_long_records_are_left_out_and_longer_ones_refused(monkeypatch):
    size = 1 << 20
    fits = b"1," + b"x" * (size - 2)
    found = read(b"0,a\n" + fits + b"\n" + b"2," + b"x" * (size - 1) + b'\n"3",b')
    assert [(row[0], len(row[1])) for row in found] == [("0", 1), ("1", size - 2), ("3", 1)]
    huge = b'2,"' + b"\n" * (5 << 20) + b'"'
    assert read(b"0,a\n" + huge + b"\n3,b") == [("0", "a"), ("3", "b")]
    assert read(b"0,a\n2," + b"x" * (21 << 20) + b"\n3,b") is None


def test_headers():
    def names(data, path="x.csv"):
        found = header_of(io.BytesIO(data), path)
        return found.delimiter, list(found.names)

    assert names(b"a,b\r1,2\r") == (",", ["a", "b"])
    assert names(b'\xef\xbb\xbf"a,\n""x";b\n1;2') == (";", ['a,\n"x', "b"])
    assert names(b"only") == (",", ["only"])
    packed = io.BytesIO(gzip.compress(b"a|b\n1|2\n"))
    file = decompressed(packed)
    header = header_of(file, "x.csv.gz")
    assert header == Header("|", ("a", "b"), 4)
    check_records(file, header, "x.csv.gz")
    for wrong in (
        b"",
        b"\n1,2\n",
        b"a,A\n",
        b"a,\n",
        b'"a\n1,2\n',
        b"\xff,b\n",
        b'"a"b,c\n',
        b"a\0,b\n",
    ):
        with pytest.raises(InvalidParameter, match="names every column once"):
            names(wrong)


@pytest.mark.parametrize("mutant", ["parity", "trail", "short", "cut", "mark"])
def test_wrong_readers_are_seen(monkeypatch, mutant):
    """What the tests above must reject."""
    real = csv_records._quoted

    def forgets(bits, ends, quotes, delimiter, path):
        found = real(bits, ends, quotes, delimiter, path)
        return csv_records._Block(bits, ends, quotes, found.closing, delimiter)

    match mutant:
        case "parity":  # quotes within quotes are lost
            monkeypatch.setattr(csv_records, "_quoted", forgets)
        case "trail":  # invalid text is let through
            monkeypatch.setattr(csv_records, "_invalid", lambda bits: np.zeros(0, np.intp))
        case "short":  # a record may be longer by one
            monkeypatch.setattr(csv_records, "_LONGEST", 3)
        case "cut":  # line breaks within fields are not set aside
            monkeypatch.setattr(csv_records, "_TRANSLATED", np.arange(256, dtype=np.uint8))
        case "mark":  # NUL is let through
            monkeypatch.setattr(csv_records, "_CONTROL", np.zeros(256, np.bool_))
    chance = chances(1)
    with pytest.raises((AssertionError, UnicodeDecodeError)):
        for _ in range(400):
            text = record(chance, 3) + "\n"
            assert read(encoded(text), 3) == oracle(text, 3)
