"""CSV read by two slow programs of which one can see that they are right; and files to read."""

import csv
import io
import random

from lastbit.tables.backends.csv_records import Header, write_plain

LONGEST = 1 << 20


class Malformed(Exception):
    pass


def by_letters(text: str, delimiter: str = ",") -> list[list[str]]:
    """Records, one letter after the other: a quote out of place is `Malformed`."""
    records: list[list[str]] = []
    fields: list[str] = []
    letters: list[str] = []
    state = "start"
    for letter in [*text, None]:
        ends = letter is None or letter in "\r\n"
        if state == "quoted":
            if letter is None:
                raise Malformed
            if letter == '"':
                state = "closed"
            else:
                letters.append(letter)
        elif letter == '"':
            if state == "plain":
                raise Malformed
            letters += ['"'] if state == "closed" else []
            state = "quoted"
        elif ends or letter == delimiter:
            empty_line = ends and not fields and state == "start"
            fields.append("".join(letters))
            letters, state = [], "start"
            if ends:
                records += [] if empty_line else [fields]
                fields = []
        elif state == "closed":
            raise Malformed
        else:
            letters.append(letter)
            state = "plain"
    return records


def by_python(text, delimiter=","):
    """What Python's csv gives, without the empty lines."""
    csv.field_size_limit(1 << 30)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    return [row for row in reader if row]


def wanted(records, columns):
    """Which records are read, and as what, by the rules of `csv_records`."""
    return [
        tuple(field or None for field in record[:columns])
        for record in records
        if len(record) >= columns and not any(map(_not_text, record))
    ]


def _not_text(field):
    return any((c < " " and c not in "\t\r\n") or "\ud800" <= c <= "\udfff" for c in field)


def ours(data, columns, delimiter=","):
    """What the private copy says, its lines taken apart again."""
    out = io.BytesIO()
    names = tuple(f"c{i}" for i in range(columns))
    write_plain(io.BytesIO(data), Header(delimiter, names, 0), "x.csv", out)
    lines = out.getvalue().decode().split("\n")
    assert lines.pop() == ""
    assert lines.pop(0) == "\x1f".join("-" * columns)
    return [
        tuple(
            field.replace("\x01", "\n").replace("\x02", "\r") or None
            for field in line.split("\x1f")
        )
        for line in lines
    ]


PIECES = [
    "",
    "\ufeff",
    "a",
    "7",
    " ",
    "x y",
    "é",
    "€",
    "😀",
    "\t",
    "#",
    "\\",
    "'",
    "NULL",
    ";",
    "|",
    "-",
]
QUOTED = [*PIECES, '""', ",", "\n", "\r", "\r\n", ",,", '""""', '"",""', "\n,\n"]
BAD = ["\x00", "\x1f", "\x01", "\x1b", "\udcff", "\udce9", "\udced\udca0\udc80", "\udcc0\udc80"]
CLASSES = [
    (0x80, 0x8F), (0x90, 0x9F), (0xA0, 0xBF), (0xC0, 0xC1), (0xC2, 0xDF), (0xE0, 0xE0),
    (0xE1, 0xEC), (0xED, 0xED), (0xEE, 0xEF), (0xF0, 0xF0), (0xF1, 0xF3), (0xF4, 0xF4),
    (0xF5, 0xFF),
]  # fmt: skip
"""The bytes from 0x80 on that UTF-8 tells apart, least and greatest."""


def scraps(chance):
    """A few bytes from 0x80 on, of any class: mostly no UTF-8, by themselves or with others."""
    found = (chance.randint(*chance.choice(CLASSES)) for _ in range(chance.randrange(1, 4)))
    return "".join(chr(0xDC00 + byte) for byte in found)


def field(chance, most=6, torn=0.02):
    """A field of a well-formed record; surrogates stand for bytes that are not UTF-8."""
    pieces = QUOTED if chance.random() < 0.4 else PIECES
    inner = "".join(chance.choices(pieces, k=chance.randrange(most)))
    if chance.random() < 0.02:
        inner += chance.choice(BAD)
    if chance.random() < torn:
        inner = scraps(chance) + inner if chance.random() < 0.5 else inner + scraps(chance)
    if pieces is QUOTED or chance.random() < 0.1:
        return f'"{inner}"'
    return inner


def record(chance, columns, delimiter=",", most=6, torn=0.02):
    number = columns if chance.random() < 0.9 else chance.randrange(columns + 3)
    fields = [field(chance, most, torn) for _ in range(number)]
    if delimiter != ",":
        fields = [f if f[:1] == '"' else f.replace(delimiter, "") for f in fields]
    # scraps may have met, and be UTF-8 together
    return encoded(delimiter.join(fields)).decode("utf-8", "surrogateescape")


def file_text(chance, columns, rows, delimiter=",", most=6, torn=0.02):
    """Well-formed records, with all kinds of ends, mixed."""
    ends = chance.choice([["\n"], ["\r\n"], ["\r"], ["\n", "\r\n", "\r", "\n\n", "\r\r\n"]])
    found = (record(chance, columns, delimiter, most, torn) for _ in range(rows))
    text = "".join(one + chance.choice(ends) for one in found)
    return text if chance.random() < 0.5 else text.rstrip("\r\n")


def encoded(text):
    return text.encode("utf-8", "surrogateescape")


def chances(seed):
    return random.Random(seed)
