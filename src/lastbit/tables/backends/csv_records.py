"""CSV split into records, exactly and by the records alone, whatever stands in them.

A file is a header and records, each ended by LF, CR LF, CR or the end of the file. A record is
fields between delimiters. A field is plain, and then holds no quote, delimiter or line break; or it
is enclosed in double quotes, and then holds anything, each quote doubled (RFC 4180, section 2).

Law      the records are those that Python's `csv.reader` gives, in order, but without those that
         are left out, each by a look at itself alone: an empty line; fewer fields than the header;
         not text (invalid UTF-8, or a control character other than tab and line breaks); more than
         2**20 bytes. Fields beyond the header's are cut off. An empty field, quoted or not, is
         missing
Theorem  (records) a file that is a header and n records is accepted, and what is read of it is what
         is read of each record alone, one after the other. For a byte is within quotes just if an
         odd number of quotes precedes it, a record has an even number, and all that is decided of a
         quote, delimiter or line break is decided by that parity and its two neighbours. Whether a
         byte belongs to valid UTF-8 is decided by the bytes from 0x80 on that are around it without
         a gap, which a line break ends
Theorem  (locality) let the bytes of one record be replaced by any others. Either every other record
         is read as before, or the file is refused as a whole, for every question. If the new bytes
         have an odd number of quotes, so has the file, and its last quote is never closed; if an
         even number, every other record begins outside of quotes as before, and a quote out of
         place among the new bytes is one in the file
Source   RFC 4180, section 2; the parity of quotes as in simdjson's and others' structural scans
Differs  Python's csv lets a quote stand inside of a plain field, and text after a closing one
Refused  a quote that is not closed, or is neither the first nor the last of its field; a record of
         more than 2**24 bytes, which is how an unclosed quote looks; a header that is not unique
Bounds   the work is a fixed number of passes over each block of 2**22 bytes, whatever is in it; a
         record that runs over blocks is looked at again with each, at most 5 times
Checked  tests/tables/test_csv_records.py against Python's csv, with mutants

Nothing is guessed from rows: the delimiter is the one of , ; tab | by which the header has the most
names. DuckDB's own reader splits a record whose quoted line breaks straddle byte 8,000,000 k, and
then reads its inside as rows; so what it is given is a private copy with one line a record, without
quotes, with the unit separator between fields and line breaks inside of fields set aside.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from lastbit.errors import InvalidParameter

FIELD_END = "\x1f"
"""What ends a field of the private copy; a record with it in a field is left out."""

SET_ASIDE = (("\x01", "\n"), ("\x02", "\r"))
"""What stands in the private copy for line breaks inside of fields."""

Bytes: TypeAlias = NDArray[np.uint8]
Truths: TypeAlias = NDArray[np.bool_]
Places: TypeAlias = NDArray[np.intp]

_DELIMITERS = (",", ";", "\t", "|")
_MARK = b"\xef\xbb\xbf"
_GZIP = b"\x1f\x8b"
_QUOTE, _LF, _CR = 34, 10, 13
_BLOCK = 1 << 22
_LONGEST = 1 << 20
_UNCLOSED = 1 << 24


@dataclass(frozen=True, slots=True)
class Header:
    """The delimiter and the names of a file's columns, and how many bytes they take."""

    delimiter: str
    names: tuple[str, ...]
    size: int


def decompressed(file: IO[bytes]) -> IO[bytes]:
    """The bytes of a file, unpacked if it begins as gzip does; no text in UTF-8 does."""
    packed = file.read(2) == _GZIP
    file.seek(0)
    return cast(IO[bytes], gzip.GzipFile(fileobj=file)) if packed else file


def header_of(file: IO[bytes], path: str) -> Header:
    r"""The header of a file: its first record, and nothing of any other; leaves the file after it.

    >>> header_of(io.BytesIO(b'name,"a;b"\n1,2\n'), "x.csv")
    Header(delimiter=',', names=('name', 'a;b'), size=11)
    """
    first = file.read(_LONGEST)
    size = _record_size(first)
    found = Header("", (), 0)
    with suppress(UnicodeDecodeError):
        line = first[:size].removeprefix(_MARK).decode("utf-8").rstrip("\r\n")
        for delimiter in _DELIMITERS:
            with suppress(csv.Error):
                reader = csv.reader(io.StringIO(line, newline=""), delimiter=delimiter, strict=True)
                names = tuple(next(reader, []))
                found = max(found, Header(delimiter, names, size), key=lambda h: len(h.names))
    if wrong := _wrong(found, first[:size]):
        problem, remedy = wrong
        raise InvalidParameter(f"source {path}", problem=problem, remedy=remedy)
    file.seek(size)
    return found


def _wrong(header: Header, record: bytes) -> tuple[str, str] | None:
    """What is wrong with a header, of which this is the record, and what to do about it."""
    try:
        record.decode("utf-8")
    except UnicodeDecodeError:
        return "has a first line that is not UTF-8", "save it as UTF-8"
    if record.removeprefix(_MARK).lower().startswith(b"sep="):
        return "begins with a line that is no header, as Excel writes it", "delete the line sep="
    if header.names in ((), ("",)):
        return "has no header", "write the names of the columns into its first line"
    letters = (letter for name in header.names for letter in name)
    if not all(header.names) or any(c < " " and c not in "\t\r\n" for c in letters):
        problem = "has a column without a name, or with one that cannot be printed, in its header"
        return problem, "name every column: look for an index, or a delimiter at an end of the line"
    if len({name.lower() for name in header.names}) < len(header.names):
        return "names a column twice in its header, if case is left aside", "rename one"
    return None


def check_records(file: IO[bytes], header: Header, path: str) -> None:
    """Refuse a file that is not a header and records; `file` stands after its header."""
    for block in _blocks(file, header, path):
        del block


def write_plain(file: IO[bytes], header: Header, path: str, out: IO[bytes]) -> None:
    r"""Write the private copy of the records that are read.

    >>> file, out = io.BytesIO(b'1,"a ""b"" c"\r\n2\n3,c,d'), io.BytesIO()
    >>> write_plain(file, Header(",", ("x", "y"), 0), "x.csv", out)
    >>> out.getvalue()
    b'-\x1f-\n1\x1fa "b" c\n3\x1fc\n'

    Its first line is no record: what DuckDB does at the start of a file (it drops a byte order
    mark) must not depend on which record is the first.
    """
    out.write(FIELD_END.join("-" * len(header.names)).encode() + b"\n")
    for block in _blocks(file, header, path):
        out.write(_plain(block, len(header.names)).tobytes())


def _record_size(first: bytes) -> int:
    """How many bytes the first record takes, with the line break after it; 0 if it has no end."""
    bits = np.frombuffer(first, np.uint8)
    inside = np.bitwise_xor.accumulate((bits == _QUOTE).view(np.uint8)) if len(bits) else bits
    ends = np.flatnonzero(((bits == _LF) | (bits == _CR)) & (inside == 0))
    if len(ends):
        return int(ends[0]) + 1
    return len(first) if 0 < len(first) < _LONGEST and not inside[-1] else 0


@dataclass(frozen=True, slots=True)
class _Block:
    """Whole records, the last one ended by a line break; every quote is where it may be."""

    bits: Bytes
    ends: Truths  # delimiters and line breaks outside of quotes
    opening: Places
    closing: Places
    delimiter: int


def _blocks(file: IO[bytes], header: Header, path: str) -> Iterator[_Block]:
    rest = b""
    delimiter = ord(header.delimiter)
    while True:
        read = file.read(_BLOCK)
        data = rest + read if read else rest + b"\n"  # the last record may have no line break
        bits = np.frombuffer(data, np.uint8)
        quotes = bits == _QUOTE
        outside = np.bitwise_xor.accumulate(quotes.view(np.uint8)) == 0
        breaks = (bits == _LF) | (bits == _CR)
        breaks &= outside
        last = int(breaks[::-1].argmax())
        size = len(breaks) - last if breaks[::-1][last] else 0  # up to the last line break
        if size:
            ends = ((bits == delimiter) & outside)[:size]
            ends |= breaks[:size]
            yield _quoted(bits[:size], ends, np.flatnonzero(quotes[:size]), delimiter, path)
        rest = data[size:]
        longest = max(len(rest), int(breaks.argmax()))  # no other record can be as long
        if longest > _UNCLOSED or (not read and rest):
            raise _refused(path, "has a quote that is not closed, or a record of 16 MiB")
        if not read:
            return


def _quoted(bits: Bytes, ends: Truths, quotes: Places, delimiter: int, path: str) -> _Block:
    """The block, if each quote opens or closes a whole field, or is one of two in a quoted one."""
    opening, closing = quotes[0::2], quotes[1::2]
    starts = (opening == 0) | ends[opening - 1]
    stops = ends[closing + 1]
    if not (starts | (bits[opening - 1] == _QUOTE)).all():
        raise _refused(path, "has a quote inside of a field that is not enclosed in quotes")
    if not (stops | (bits[closing + 1] == _QUOTE)).all():
        raise _refused(path, "has text after a closing quote")
    return _Block(bits, ends, opening[starts], closing, delimiter)


def _refused(path: str, problem: str) -> InvalidParameter:
    return InvalidParameter(
        f"source {path}",
        problem=problem,
        remedy="write it again with a CSV writer that quotes as RFC 4180 says, or as Parquet",
    )


def _plain(block: _Block, columns: int) -> Bytes:
    """The records of a block that are read, one a line."""
    bits, places = block.bits, np.flatnonzero(block.ends)
    breaks = bits[places] != block.delimiter
    lasts = np.flatnonzero(breaks)  # among the places: those that end records
    fields = np.diff(lasts, prepend=-1)
    stops = places[lasts]
    starts = np.concatenate(([0], stops[:-1] + 1))
    good = (fields >= columns) & (stops > starts) & (stops - starts <= _LONGEST)
    odd = np.concatenate((np.flatnonzero(_CONTROL[bits]), _invalid(bits)))
    good[np.searchsorted(stops, odd)] = False  # records that hold more than text
    cuts = places[np.minimum(lasts - fields + columns, lasts)]
    # of each good record the bytes up to its cut, and its line break
    lengths = np.stack((cuts - starts, stops - cuts, np.ones_like(stops)), axis=1)
    wanted = np.stack((good, np.zeros_like(good), good), axis=1)
    keep = np.repeat(wanted.ravel(), lengths.ravel())
    keep[block.opening] = False
    keep[block.closing] = False
    plain = _TRANSLATED[bits]
    plain[places] = np.where(breaks, _LF, ord(FIELD_END))
    return plain[keep]


def _invalid(bits: Bytes) -> Places:
    """Places of bytes that are not UTF-8, as Python's decoder says of each run from 0x80 on.

    Between two runs it reads a line break, and goes on after it: so nothing reaches into another
    record. A byte that it cannot read it escapes as a letter of one byte.
    """
    high = np.flatnonzero(bits >= 0x80)
    places = np.arange(len(high)) + np.cumsum(np.diff(high, prepend=-1) > 1)
    runs = np.full(2 * len(high) + 1, _LF, np.uint8)
    runs[places] = bits[high]
    text = runs.tobytes().decode("utf-8", "surrogateescape")
    letters = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    escaped = (letters & 0xFFFFFF80) == 0xDC80
    sizes = 1 + (letters >= 0x80) + (letters >= 0x800) + (letters >= 0x10000)
    sizes[escaped] = 1
    wrong: Places = high[np.repeat(escaped, sizes)[places]]
    return wrong


_CONTROL = np.arange(256) < 32
_CONTROL[[9, _LF, _CR]] = False
_TRANSLATED = np.arange(256, dtype=np.uint8)
for _aside, _meant in SET_ASIDE:
    _TRANSLATED[ord(_meant)] = ord(_aside)
