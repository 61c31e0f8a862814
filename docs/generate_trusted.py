"""`make trusted`: what must be right for an answer to be private, counted; docs/trusted-base.md.

A file is trusted if the kernel imports it, or a trusted file does: wherever in it, also in a function,
but for types alone. Names that come through a room's door (`__init__.pyi`) lead to their own file. What
is loaded by name is listed here: the engine's file and dialect, and the storage of the ledger.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"
KERNEL = ("lastbit.kernel.answering",)
BASE = (*KERNEL, "lastbit.tables.backends.duckdb.engine", "lastbit.ledger.sqlite")
ENGINES = {
    "PostgreSQL": ("lastbit.tables.backends.postgres.engine", "lastbit.tables.compile.postgres"),
    "Spark": ("lastbit.tables.backends.spark.engine", "lastbit.tables.compile.spark"),
    "ledger in PostgreSQL": ("lastbit.ledger.postgres",),
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


def imported_by(module: str) -> Iterator[str]:
    """The modules of ours that a module imports, by whatever statement, but for types alone."""
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
            waiting += imported_by(module)
    doors = {path.parent / "__init__.py" for path in map(file_of, known) if path is not None}
    return {path for path in map(file_of, known) if path is not None} | {
        door for door in doors if door.is_file()
    }


def lines_of(paths: set[Path]) -> int:
    """Lines of all these files."""
    return sum(len(path.read_text().splitlines()) for path in paths)


def main() -> None:
    base = closure(BASE)
    rooms: dict[str, list[Path]] = {}
    for path in sorted(base):
        parts = path.relative_to(SOURCE / "lastbit").parts
        rooms.setdefault("/".join(parts[:-1]) or ".", []).append(path)
    for room, paths in sorted(rooms.items()):
        print(f"{room}: {lines_of(set(paths))}")
        for path in paths:
            print(f"  {len(path.read_text().splitlines()):5} {path.name}")
    for engine, roots in ENGINES.items():
        print(f"{engine}: +{lines_of(closure((*BASE, *roots)) - base)}")
    print(f"trusted: {lines_of(base)} lines")


if __name__ == "__main__":
    sys.exit(main())
