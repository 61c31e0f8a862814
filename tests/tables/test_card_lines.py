"""Lines of fields: the parser says what is there, the scanner where."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping

from hypothesis import given, strategies as st

from lastbit.tables.card.toml import lines_of, nearest_line, toml_key, toml_string

TRAPS = '''\
a = 1  # [x] "
"b # c" = """
[unit]
column = "no"
\\""" [[
""""
'd.e'.f = [ # [
  "]", '[',
  {g = "h"},
]
[ columns . "a\\"]" ]
type = "text" # type = "number"
t = \'\'\'
type = "['"
\'\'\'\'\'
i = { j = "}", k = [1, 2] }
[[l]]
m = 1
'''
PLACES = {
    ("a",): 1,
    ("b # c",): 2,
    ("d.e", "f"): 7,
    ("columns", 'a"]'): 11,
    ("columns", 'a"]', "type"): 12,
    ("columns", 'a"]', "t"): 13,
    ("columns", 'a"]', "i"): 16,
    ("l",): 17,
    ("l", "m"): 18,
}


def naive(text: str) -> dict[tuple[str, ...], int]:
    """The scanner that one would write first; the traps must tell it from ours."""
    found: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.split("\n"), start=1):
        if header := re.match(r"\s*\[([^\]]*)\]", line):
            table = tuple(header[1].split("."))
            found[table] = number
        elif field := re.match(r"\s*([^=]*?)\s*=", line):
            found[*table, *field[1].split(".")] = number
    return found


def test_texts_comments_and_brackets_are_no_fields():
    tomllib.loads(TRAPS)
    assert lines_of(TRAPS) == PLACES


def test_the_traps_catch_a_naive_scanner():
    assert naive(TRAPS) != PLACES
    assert ("unit",) in naive(TRAPS)


def test_the_nearest_line_is_that_of_the_table_around():
    lines: Mapping[tuple[str, ...], int] = {("unit",): 4, ("unit", "column"): 5}
    assert nearest_line(lines, ("unit", "column")) == 5
    assert nearest_line(lines, ("unit", "max_rows")) == 4
    assert nearest_line(lines, ("budget", "epsilon")) == 1


NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VALUES = st.one_of(
    st.integers().map(str),
    NAMES.map(toml_string),
    st.lists(NAMES.map(toml_string), max_size=3).map(",\n".join).map("[\n{}\n]".format),
    st.sampled_from(['"""\n[a]\n"""', "'''\nb = 1\n'''", '"""x"""""', "{}", '"#" # = [']),
)


@given(tables=st.dictionaries(NAMES, st.dictionaries(NAMES, VALUES, max_size=4), max_size=4))
def test_every_field_is_found_on_its_line(tables):
    written: list[str] = []
    expected: dict[tuple[str, ...], int] = {}
    for table, fields in tables.items():
        expected[table,] = len("\n".join([*written, ""]).split("\n"))
        written.append(f"[{toml_key(table)}]")
        for field, value in fields.items():
            expected[table, field] = len("\n".join([*written, ""]).split("\n"))
            written.append(f"{toml_key(field)} = {value}")
    text = "\n".join(written)
    assert {name: set(fields) for name, fields in tomllib.loads(text).items()} == {
        name: set(fields) for name, fields in tables.items()
    }
    assert lines_of(text) == expected
