"""`make trusted`: what must be right for an answer to be private, counted; docs/trusted-base.md.

A file is trusted if the kernel imports it, or a trusted file does: wherever in it, also in a
function, but for types alone. Names that come through a room's door (`__init__.pyi`) lead to their
own file. The lists themselves are not counted: `door_of` follows the very lines that `doors.opened`
follows when it runs, so a wrong line shows here as another file, and most lines are of names that
no trusted file asks for.

What is loaded by name is listed here (the engine's file and dialect, the storage of the ledger, and
what only some sources need: `duckdb/files.py` has the table), unless it only words a refusal
(`ledger/words.py`, `privacy/remaining.py`, `duckdb/words.py`, `drivers.py`), only refuses a charge
(`ledger/principals.py`), shows again what is in the books (`ledger/answers.py`), chooses among
numbers that are all sound (`privacy/best_order.py`), or reads what people write before there is a
certificate, and writes numbers for them (`exact/written.py`). tests/architecture/test_trusted.py
has the list.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

MOST = 12_515
"""A larger trusted base fails `make check`: raise this on purpose, and say why. Wanted: 12,000.

Prepared tables took 46 of these: where they are read instead of the source, and what the statement
does with their numbers. What makes and verifies them is counted apart.

Rows that reach their unit through other tables took 260 more: the join, the card's way, the rules.
That no table is on a card with two units took 13. Lists, of which UNNEST makes rows, took 185.
"""
MOST_OF_AN_ENGINE = 1_330
"""Of Spark, 33 are what a frame is made of: caches, RDDs and JDBC hid one table behind two."""
DOCS = Path(__file__).parent
ROOMS = (
    ("The kernel", "kernel/"),
    ("The independent checker", "checker/"),
    ("What is measured, and how far it moves", ("tables/measures", "tables/limits", "tables/__")),
    ("The question", "tables/query/"),
    ("The card", "tables/card/"),
    ("The statement", "tables/compile/"),
    ("The engine", "tables/"),
    ("Exact noise", ("sampling/", "exact/", "laws/", "mechanisms/", "sensitivity/")),
    ("The ledger", ("ledger/", "privacy/")),
    ("Shared by all", ""),
)
HEAD = """# The trusted base

What must be right for an answer to be private: {total} lines in {files} files, for Parquet and CSV
files that DuckDB reads, and a ledger in a file. Everything else (the planner, the SQL parser,
intervals, formulas, reports, tuning, the server) can spoil an answer, and never privacy: it hands
the kernel a certificate, and gets noisy integers back. This page is written by `make trusted`, from
what the kernel imports. Not counted is what only words a refusal; who may ask, and how much of an
allowance is left, which refuses charges and adds none; which recorded answer is shown again, at no
charge; what chooses an order of the filter, all of which are sound; and what reads numbers that
people write, before there is a certificate.

![Lines of the trusted base, by part](trusted-base.svg)

Read from the top: each part rests on those below it. The theorem of the whole is in
`kernel/__init__.py`, with what it rests on besides our own code.
"""
SOURCE = Path(__file__).parents[1] / "src"
KERNEL = ("lastbit.kernel.answering",)
BASE = (
    *KERNEL,
    "lastbit.tables.backends.duckdb.engine",
    "lastbit.tables.backends.duckdb.unit_index",
    "lastbit.ledger.sqlite",
)
PREPARING = ("lastbit.tables.backends.duckdb.preparing",)
ENGINES = {
    "PostgreSQL": ("lastbit.tables.backends.postgres.engine", "lastbit.tables.compile.postgres"),
    "Spark": ("lastbit.tables.backends.spark.engine", "lastbit.tables.compile.spark"),
    "ledger in PostgreSQL": ("lastbit.ledger.postgres",),
    "frames in memory": ("lastbit.tables.backends.duckdb.frames",),
    "Delta tables": ("lastbit.tables.backends.duckdb.delta",),
    "tables of DuckDB files": ("lastbit.tables.backends.duckdb.stored_tables",),
    "prepared tables": ("lastbit.tables.backends.duckdb.prepared", *PREPARING),
}
_IMPORT = re.compile(r"^from (\S+) import (?:\(([^)]*)\)|(.*))$", re.MULTILINE)


def file_of(module: str) -> Path | None:
    """The file of a module of ours."""
    stem = SOURCE / module.replace(".", "/")
    for found in (stem.with_suffix(".py"), stem / "__init__.py"):
        if found.is_file():
            return found
    return None


def door_of(room: str) -> dict[str, str]:
    """The names that a room's door shows, and the module of each."""
    listed = SOURCE / room.replace(".", "/") / "__init__.pyi"
    places: dict[str, str] = {}
    if listed.is_file():
        for written, many, one in _IMPORT.findall(listed.read_text()):
            origin = f"{room}{written}" if written.startswith(".") else written
            for entry in (many or one).split(","):
                name, _, shown = entry.strip().partition(" as ")
                if name:
                    places[shown or name] = f"{origin}.{name}" if origin == room else origin
    return places


@cache
def imported_by(module: str) -> tuple[str, ...]:
    """The modules of ours that a module imports, by whatever statement, but for types alone."""
    return tuple(_imports(module))


def _imports(module: str) -> Iterator[str]:
    path = file_of(module)
    assert path is not None, module
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    waiting: list[ast.AST] = [ast.parse(path.read_text())]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting += node.orelse
            continue
        waiting += ast.iter_child_nodes(node)
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names if one.name.split(".")[0] == "lastbit")
        elif isinstance(node, ast.ImportFrom):
            origin = node.module or ""
            if node.level:
                parent = package.split(".")[: len(package.split(".")) - node.level + 1]
                origin = ".".join([*parent, *([origin] if origin else [])])
            if origin.split(".")[0] != "lastbit":
                continue
            door = door_of(origin)
            for one in node.names:
                inner = f"{origin}.{one.name}"
                yield door.get(one.name) or (inner if file_of(inner) else origin)


def closure(roots: tuple[str, ...]) -> set[Path]:
    """All files that these modules rest on."""
    known: set[str] = set()
    waiting = list(roots)
    while waiting:
        module = waiting.pop()
        if module not in known and file_of(module) is not None:
            known.add(module)
            # a module's packages run before it does
            waiting += (*imported_by(module), module.rpartition(".")[0])
    return {path for path in map(file_of, known) if path is not None}


def lines_of(path: Path) -> int:
    """Lines of a file, its docstrings and empty ones included."""
    return len(path.read_text().splitlines())


def purpose_of(path: Path) -> str:
    """What a file says that it is, in its first sentence."""
    words = ast.get_docstring(ast.parse(path.read_text())) or ""
    return " ".join(words.split("\n\n")[0].split())


def in_reading_order(paths: set[Path]) -> dict[str, list[Path]]:
    """The files by room, the rooms from the door down, and in a room what others rest on first."""
    places = {module_of(path): path for path in paths}
    order: list[Path] = []
    seen: set[Path] = set()

    def visit(path: Path) -> None:
        if path not in seen:
            seen.add(path)
            below = {places[module] for module in imported_by(module_of(path)) if module in places}
            for other in sorted(below):
                visit(other)
            order.append(path)

    for path in sorted(paths):
        visit(path)
    rooms: dict[str, list[Path]] = {title: [] for title, _ in ROOMS}
    for path in order:
        inside = str(path.relative_to(SOURCE / "lastbit"))
        title = next(title for title, starts in ROOMS if inside.startswith(starts))
        rooms[title].append(path)
    return {title: files for title, files in rooms.items() if files}


def module_of(path: Path) -> str:
    """The dotted name of a file."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def counts() -> tuple[dict[str, list[Path]], int, dict[str, int]]:
    """The trusted files in reading order, their lines, and what engines and sources add."""
    base = closure(BASE)
    more = {
        name: sum(map(lines_of, closure((*BASE, *roots)) - base)) for name, roots in ENGINES.items()
    }
    return in_reading_order(base), sum(map(lines_of, base)), more


def page() -> str:
    """docs/trusted-base.md."""
    rooms, total, more = counts()
    parts = [HEAD.format(total=f"{total:,}", files=sum(map(len, rooms.values())))]
    for title, files in rooms.items():
        parts.append(f"## {title}: {sum(map(lines_of, files)):,} lines\n")
        parts.append("| file | lines | what it owes |\n|---|---|---|")
        for path in files:
            inside = path.relative_to(SOURCE / "lastbit")
            parts.append(f"| `{inside}` | {lines_of(path)} | {purpose_of(path)} |")
        parts.append("")
    parts.append("## Other engines and sources\n")
    parts.append("| for a question that needs it | lines more |\n|---|---|")
    parts += [f"| {name} | {lines} |" for name, lines in more.items()]
    return "\n".join(parts) + "\n"


def picture() -> str:
    """docs/trusted-base.svg: a bar for every part, from the door down."""
    rooms, total, _ = counts()
    sizes = [(title, sum(map(lines_of, files))) for title, files in rooms.items()]
    most, height = max(size for _, size in sizes), 26
    bars = []
    for place, (title, size) in enumerate(sizes):
        y, width = 40 + place * height, round(size / most * 330)
        bars.append(
            f'<text x="10" y="{y + 13}">{title}</text>'
            f'<rect x="250" y="{y}" width="{width}" height="17" fill="#2a6f97"/>'
            f'<text x="{256 + width}" y="{y + 13}">{size:,}</text>'
        )
    tall = 50 + len(sizes) * height
    words = f"What must be right for an answer to be private: {total:,} lines"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 {tall}" font-size="12" '
        f'font-family="sans-serif" fill="currentColor" role="img"><title>{words}</title>'
        f'<text x="10" y="22" font-size="14">{words}</text>{"".join(bars)}</svg>\n'
    )


def main() -> None:
    """Print the list, and write the page and its picture."""
    rooms, total, more = counts()
    for title, files in rooms.items():
        print(f"{title}: {sum(map(lines_of, files))}")
        for path in files:
            print(f"  {lines_of(path):5} {path.relative_to(SOURCE / 'lastbit')}")
    print("who may import what: pyproject.toml, [tool.importlinter]; kernel/sealed.py is the")
    print("  kernel's alone, and what an engine gives is read there alone (tests/architecture)")
    for name, lines in more.items():
        print(f"{name}: {lines} lines more")
    DOCS.joinpath("trusted-base.md").write_text(page())
    DOCS.joinpath("trusted-base.svg").write_text(picture())
    print(f"trusted: {total} lines")
    if total > MOST or max(more.values()) > MOST_OF_AN_ENGINE:
        raise SystemExit(f"more than {MOST} lines, or {MOST_OF_AN_ENGINE} of an engine")


if __name__ == "__main__":
    main()
