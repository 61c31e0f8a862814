"""Reads the table at the end of a paper's page, and compares it with what the paper holds.

A row is

    | §4.2 Theorem 4.1, (3) | what it says | where it is here | the paper's number | ours |

First `§` and a section, or `slide` and its number; then kind and number, or the name that
`paper_items.toml` gives to what has no number; then the numbered equations that belong to it.
Where it is: links to a section, and to a public name in the reference, a name in a file of `src` or
a [test](../../tests/x.py#test_name); or `not implemented, because` and a reason; or `PENDING` while
it is being built. A number of ours is `code`, and an executed block of the same page prints it.
"""

import doctest
import importlib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.docs.pages import CODE, HEADING, anchors, fences

TITLE = "Everything in the paper"
MOST_WORDS = 32
LEFT_OUT = "not implemented, because "

ITEM = re.compile(
    r"(?:§|slide )(?P<section>[\w.]+) "
    r"(?P<name>.+?)(?P<equations>(?:, \(\d+\)(?: to \(\d+\))?)*)"
)
NUMBERED = re.compile(r"(?P<kind>[A-Z][a-z]+) (?P<number>\d+(?:\.\d+)?)")
EQUATIONS = re.compile(r"\((\d+)\)(?: to \((\d+)\))?")
LINK = re.compile(r"\[(?P<words>[^\]]+)\]\((?P<file>[^)#]*)(?:#(?P<anchor>[^)]+))?\)")
CORRECTION = re.compile(
    r"\[(?P<number>\d+)\]\(\.\./theory/corrections\.md#paper-(?P<paper>\d{3})\)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table."""

    section: str
    name: str
    equations: tuple[int, ...]
    says: str
    where: str
    printed: str
    ours: str

    @property
    def text(self) -> str:
        return " ".join((self.says, self.where, self.printed, self.ours))

    @property
    def pending(self) -> bool:
        return "PENDING" in self.text


class NoTable(Exception):
    """The page has no table, or a line of it that is no row."""


def row_lines(page: str) -> list[str]:
    _, found, table = page.partition(f"## {TITLE}\n")
    lines = [line for line in table.splitlines() if line.startswith("|")]
    if not found or len(lines) < 3:
        raise NoTable(f"no table under the heading {TITLE!r}")
    return lines[2:]


def rows(page: str) -> list[Row]:
    return [_row(line) for line in row_lines(page)]


def _row(line: str) -> Row:
    cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
    item = ITEM.fullmatch(cells[0])
    if len(cells) != 5 or item is None or not all(cells):
        raise NoTable(f"not a row: {line}")
    spans = EQUATIONS.findall(item["equations"])
    equations = [n for one, last in spans for n in range(int(one), int(last or one) + 1)]
    item_cells = dict(zip(("says", "where", "printed", "ours"), cells[1:], strict=True))
    return Row(section=item["section"], name=item["name"], equations=tuple(equations), **item_cells)


# ---------------------------------------------------------------- what is wrong


def problems(page: str, paper: str, inventory: dict[str, Any], root: Path) -> Iterator[str]:
    """What the table leaves out, adds, or says of lastbit that is not so."""
    table = rows(page)
    yield from _item_problems(table, inventory)
    yield from _place_problems(page, table, inventory)
    yield from _correction_problems(table, paper, root)
    printed = _outputs(page)
    for row in table:
        yield from _row_problems(row, printed, root)


def _item_problems(table: list[Row], inventory: dict[str, Any]) -> Iterator[str]:
    listed = Counter(
        f"{kind} {number}" for kind, numbers in inventory["numbered"].items() for number in numbers
    )
    listed += Counter(
        f"§{section} {name}" for section, names in inventory["passages"].items() for name in names
    )
    shown = Counter(
        row.name if NUMBERED.fullmatch(row.name) else f"§{row.section} {row.name}" for row in table
    )
    yield from (f"{item} has no row" for item in (listed - shown))
    yield from (f"{item} is not in the paper" for item in (shown - listed))
    equations = {number for row in table for number in row.equations}
    for number in equations ^ set(range(1, inventory["equations"] + 1)):
        yield f"equation ({number}) is in the paper or in the table, not in both"
    order = inventory["sections"]
    yield from (f"section {s} has no row" for s in order if s not in {r.section for r in table})
    places = [order.index(row.section) if row.section in order else -1 for row in table]
    if -1 in places or places != sorted(places):
        yield "the rows are not in the order of the paper's sections"


def _place_problems(page: str, table: list[Row], inventory: dict[str, Any]) -> Iterator[str]:
    """Sections of the page that follow the paper, and that no row leads to."""
    links = (link for row in table for link in LINK.finditer(row.where))
    linked = {link["anchor"] for link in links if not link["file"]}
    own, skipped = {TITLE, *inventory["headings"]}, False
    for match in HEADING.finditer(page):
        title, level = match["title"], match[0].index(" ")
        if level == 2:
            skipped = title in own
        if level > 1 and not skipped and not anchors(f"# {title}") <= linked:
            yield f"no row leads to the section {title!r}"
    yield from (f"no row can lead to #{anchor}" for anchor in linked - anchors(page))


def _correction_problems(table: list[Row], paper: str, root: Path) -> Iterator[str]:
    corrections = (root / "docs" / "theory" / "corrections.md").read_text("utf-8")
    _, _, after = corrections.partition(f"## Paper {paper}\n")
    listed = re.findall(r"^\| (\d+) \|", after.partition("\n## ")[0], re.M)
    text = " ".join(row.text for row in table)
    told = {(match["number"], match["paper"]) for match in CORRECTION.finditer(text)}
    for number, of in told ^ {(number, paper) for number in listed}:
        yield f"correction {number} of paper {of} is in the list or in the table, not in both"


def _row_problems(row: Row, printed: str, root: Path) -> Iterator[str]:
    name, links = f"§{row.section} {row.name}", list(LINK.finditer(row.where))
    if row.where.startswith(LEFT_OUT):
        if len(row.where.removeprefix(LEFT_OUT).split()) < 3:
            yield f"{name}: no reason"
    elif not row.pending and {True, False} != {_names_code(link) for link in links}:
        yield f"{name}: where is it? a section, and a name or a test"
    for link in filter(_names_code, links):
        if not _is_there(link, root):
            yield f"{name}: {link[0]} is not there"
    if re.search(r"\d", CORRECTION.sub("", CODE.sub("", row.ours))):
        yield f"{name}: a number of ours that is no code, so that nobody prints it"
    for number in CODE.findall(f"{row.printed} {row.ours}"):
        if not re.search(rf"(?<![\w.]){re.escape(number)}(?![\w.]*\d)", printed):
            yield f"{name}: no block of the page prints {number}"
    if (words := len(re.sub(r"\]\([^)]*\)|`[^`]*`", "", row.text).split())) > MOST_WORDS:
        yield f"{name}: {words} words"


def _names_code(link: re.Match[str]) -> bool:
    return bool(CODE.fullmatch(link["words"])) or link["file"].startswith("../../tests/")


def _is_there(link: re.Match[str], root: Path) -> bool:
    """Whether a test is in its file, a public name in its room, another name in its module."""
    file = (root / "docs" / "papers" / link["file"]).resolve()
    dotted = link["words"].strip("`")
    first, _, rest = dotted.partition(".")
    if file.parent == root / "docs" / "reference" / "api":
        room = importlib.import_module(f"lastbit.{file.stem}")
        title = link["anchor"].removeprefix("class-")
        public = first in room.__all__ and title == first.lower()
        return public and (not rest or hasattr(getattr(room, first), rest))
    wanted = link["anchor"] if dotted == "test" else first
    known = file.is_relative_to(root) and file.is_file()
    return known and bool(re.search(rf"^(def|class) {wanted}\b", file.read_text("utf-8"), re.M))


def _outputs(page: str) -> str:
    """What the executed examples of the page print."""
    parser = doctest.DocTestParser()
    return "\n".join(
        example.want
        for fence in fences(page)
        if fence.language == "python" and not fence.left_out
        for example in parser.get_examples(fence.text)
    )
