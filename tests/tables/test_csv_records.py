"""The reader of CSV against Python's csv, byte for byte; and that no record touches another."""

import gzip
import io
import itertools

import numpy as np
import pytest

from lastbit.errors import InvalidParameter
from lastbit.tables.backends import csv_records
from lastbit.tables.backends.csv_records import Header, check_records, decompressed, header_of
from tests.evidence import late
from tests.tables.csv_oracles import (
    CLASSES,
    Malformed,
    by_letters,
    by_python,
    chances,
    encoded,
    file_text,
    ours,
    record,
    scraps,
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


LENGTHS = [*range(1, 5), late(5), late(6), late(7, apart=True)]


@pytest.mark.parametrize("length", LENGTHS)
def test_every_short_text(length):
    """All texts of up to 4 letters (as evidence: 7, which are 97,655), with one column and two."""
    for letters in itertools.product('a",\n\r', repeat=length):
        text = "".join(letters)
        for columns in (1, 2) if length < 7 else (2,):
            assert read(text.encode(), columns) == oracle(text, columns), repr(text)


@pytest.mark.parametrize("block", [1, 2, 3, 7, 64, 1 << 22])
def test_generated_files(monkeypatch, block):
    """Every place is a boundary of blocks of one byte; the copies are the same for all blocks."""
    monkeypatch.setattr(csv_records, "_BLOCK", block)
    chance = chances(block)
    for number in range(15 if block < 4 else 120):
        columns, delimiter = chance.randrange(1, 6), chance.choice(",,;\t|")
        torn = chance.choice([0.0, 0.02, 0.3])
        text = file_text(chance, columns, chance.randrange(12), delimiter, torn=torn)
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


LETTERS = {edge: [b"a", *(bytes([pair[edge]]) for pair in CLASSES)] for edge in (0, 1)}


def pieces(edge, most):
    """All texts of up to so many bytes, of which each stands for its class."""
    for length in range(1, most + 1):
        yield from map(b"".join, itertools.product(LETTERS[edge], repeat=length))


def is_utf8(data):
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def met(ends, starts, around, line_break):
    """A file in which each end of a record is followed by each start of one; what is to be read."""
    starts = list(starts)
    seconds = [around + start + around + b",2" for start in starts]
    read = [start + b"\x1f2\n" if is_utf8(start) else b"" for start in starts]
    data, wanted = [], [b"-\x1f-\n"]
    for end in ends:
        first, before = b"1," + around + end + around, b"1\x1f" + end + b"\n"
        before = before if is_utf8(end) else b""
        data.append(line_break.join([first, (line_break + first + line_break).join(seconds)]))
        wanted.append(before + before.join(read))
    return line_break.join(data), b"".join(wanted)


def copied(data):
    out = io.BytesIO()
    csv_records.write_plain(io.BytesIO(data), Header(",", ("x", "y"), 0), "x.csv", out)
    return out.getvalue()


@pytest.mark.apart
@pytest.mark.thinned(one_in=3)
@pytest.mark.parametrize("edge", [0, 1])
@pytest.mark.parametrize("around", [b"", b'"'])
@pytest.mark.parametrize("line_break", [b"\n", b"\r", b"\r\n"])
def test_no_byte_reaches_into_the_next_record(edge, around, line_break, extent):
    """Every end of a record before every start of one: up to 2 bytes of each class before up to 2.

    As evidence 3 before 2, and 3 before 3, which are 8,726,116 pairs, in each of 4 ways.
    """
    ends, starts = (
        list(pieces(edge, extent.number(2, 3))),
        list(pieces(edge, 3 if extent.is_many and line_break == b"\n" else 2)),
    )
    for place in range(0, len(ends), 400):
        data, wanted = met(ends[place : place + 400], starts, around, line_break)
        assert copied(data) == wanted


@pytest.mark.thinned(one_in=9)
@pytest.mark.parametrize("block", [2, 1, 3, 5, 8])
def test_no_byte_reaches_into_the_next_record_over_blocks(monkeypatch, block):
    """The same where every place is a boundary of blocks."""
    monkeypatch.setattr(csv_records, "_BLOCK", block)
    for edge, most in ((0, (2, 1)), (1, (1, 2))):
        data, wanted = met(pieces(edge, most[0]), pieces(edge, most[1]), b"", b"\n")
        assert copied(data) == wanted


@pytest.mark.parametrize("edge", [0, 1])
def test_every_short_record_of_every_class_of_bytes(edge, extent):
    """Up to 4 bytes (as evidence: 5, which are 579,194 records), against Python's decoder."""
    texts = list(pieces(edge, extent.number(4, 5)))
    data = b"".join(b"1,%b\n" % text for text in texts)
    wanted = b"".join(b"1\x1f%b\n" % text for text in texts if is_utf8(text))
    assert copied(data) == b"-\x1f-\n" + wanted


@pytest.mark.evidence
def test_every_record_of_up_to_three_bytes():
    """All but those with quotes, delimiters and line breaks, and NUL and the like; of bytes that
    cannot lead a character only some begin them, since the others follow no other rule."""
    some = [bytes([byte]) for byte in range(0x20, 256) if byte not in b'",']
    for first in (byte for byte in some if byte >= b"\xc0" or byte in b" @Z~\x7f\x80\x9f\xbf"):
        texts = [first, *(first + second for second in some)]
        texts += [first + second + third for second in some for third in some]
        data = b"".join(b"1,%b\n" % text for text in texts)
        wanted = b"".join(b"1\x1f%b\n" % text for text in texts if is_utf8(text))
        assert copied(data) == b"-\x1f-\n" + wanted


def test_what_is_read_of_a_file_is_what_is_read_of_each_record_alone():
    """Records of any bytes; also those that are left out, next to each other."""
    chance = chances(7)
    letters = [*(bytes([byte]) for byte in b"aaaaaa,,,,,\t \0"), b'"', b'""', b"\xef\xbb\xbf"]
    kept = 0
    for _ in range(400):
        records: list[bytes] = []
        while len(records) < 6:
            first, last = (chance.choice([encoded(scraps(chance)), b""]) for _ in "ab")
            record = first + b"".join(chance.choices(letters, k=chance.randrange(9))) + last
            if read(record) is not None:
                records.append(record + chance.choice([b"\n", b"\r", b"\r\n"]))
        alone = [row for record in records for row in read(record)]
        kept += len(alone)
        assert read(b"".join(records)) == alone
    assert kept > 200


def test_how_long_a_record_may_be_does_not_depend_on_where_it_stands(monkeypatch):
    monkeypatch.setattr(csv_records, "_UNCLOSED", 64)
    monkeypatch.setattr(csv_records, "_BLOCK", 16)
    for before in range(40):
        start = b"1," + b"x" * before + b"\n"
        assert read(start + b"2," + b"x" * 62 + b"\n") is not None
        assert read(start + b"2," + b"x" * 63 + b"\n") is None


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
    for wrong, words in {
        b"": "has no header",
        b"\n1,2\n": "has no header",
        b'"a\n1,2\n': "has no header",
        b"a,A\n": "names a column twice",
        b"a,\n": "has a column without a name",
        b",a\n": "has a column without a name",
        b"a\0,b\n": "has a column without a name",
        b"\xff,b\n": "has a first line that is not UTF-8",
        b"sep=;\na;b\n": "begins with a line that is no header",
        b'"a"b,c\n': "has no header",
    }.items():
        with pytest.raises(InvalidParameter, match=words):
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
