"""`make trusted` counts every file that a trusted one loads, also what is loaded by its name."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from docs import generate_trusted
from docs.generate_trusted import BASE, ENGINES, SOURCE, closure, module_of

BY_NAME = {
    "lastbit.tables.backends.duckdb.delta",
    "lastbit.tables.backends.duckdb.frames",
    "lastbit.tables.backends.duckdb.prepared",
    "lastbit.tables.backends.duckdb.stored_tables",
}
NO_CHARGE_NEEDS = {  # the files that name these say so: they are for stewards, auditors and people
    "lastbit.ledger.answers",  # which record is shown again, at no charge
    "lastbit.tables.backends.drivers",  # words
    "lastbit.tables.backends.duckdb.words",
    "lastbit.exact.written",  # what people write, before there is a certificate
    "lastbit.ledger.deciding",
    "lastbit.ledger.ledger",
    "lastbit.ledger.principals",  # rules that refuse charges, and add none
    "lastbit.ledger.words",
    "lastbit.privacy.best_order",  # any order of a filter is sound
    "lastbit.privacy.promised_prices",
    "lastbit.privacy.remaining",
}


def modules_named_in(text: str) -> Iterator[str]:
    """The modules of ours whose full names a file writes as text; `{...}` may be any one name."""
    patterns = set()
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Constant(value=str(name)):
                patterns.add(re.escape(name))
            case ast.JoinedStr(values=parts):
                constants = (p.value if isinstance(p, ast.Constant) else None for p in parts)
                patterns.add("".join(r"\w+" if c is None else re.escape(str(c)) for c in constants))
    full = [re.compile(pattern) for pattern in patterns if pattern.startswith(r"lastbit\.")]
    for path in sorted((SOURCE / "lastbit").rglob("*.py")):
        if any(pattern.fullmatch(module_of(path)) for pattern in full):
            yield module_of(path)


def counted() -> set[Path]:
    return closure((*BASE, *(module for modules in ENGINES.values() for module in modules)))


def test_what_is_loaded_by_name_is_counted():
    known = {module_of(path) for path in counted()}
    named = {name for path in counted() for name in modules_named_in(path.read_text())}
    assert named >= BY_NAME
    assert not named - known - NO_CHARGE_NEEDS


def test_a_module_that_nobody_counts_is_seen():
    """Written out, or with a part that is filled in."""
    known = {module_of(path) for path in counted()}
    for text in ('x("lastbit.report.plan")', 'x(f"lastbit.tables.backends.{engine}.columns")'):
        assert set(modules_named_in(text)) - known


def test_files_do_without_what_other_sources_need():
    base = {module_of(path) for path in closure(BASE)}
    assert not base & BY_NAME
    assert not base & NO_CHARGE_NEEDS


def test_the_page_is_up_to_date() -> None:
    assert generate_trusted.DOCS.joinpath("trusted-base.md").read_text("utf-8") == (
        generate_trusted.page()
    ), "run make trusted"
    assert generate_trusted.DOCS.joinpath("trusted-base.svg").read_text("utf-8") == (
        generate_trusted.picture()
    )


def test_it_does_not_grow_unnoticed() -> None:
    _, total, more = generate_trusted.counts()
    assert total <= generate_trusted.MOST, "raise MOST on purpose, and say why"
    assert max(more.values()) <= generate_trusted.MOST_OF_AN_ENGINE


def test_what_is_trusted_imports_nothing_above_it() -> None:
    """Neither planner nor parser nor release: a file of theirs would be counted."""
    rooms, _, _ = generate_trusted.counts()
    names = {
        str(path.relative_to(generate_trusted.SOURCE)) for files in rooms.values() for path in files
    }
    assert "lastbit/kernel/program.py" in names and "lastbit/checker/release.py" in names
    outside = ("release/", "report/", "serve/", "cli/", "tables/sql/", "tables/plan/plan", "audit/")
    assert not [name for name in names if name.removeprefix("lastbit/").startswith(outside)]


def test_a_file_that_a_kernel_file_imports_is_counted(tmp_path, monkeypatch) -> None:
    """The mutant: an import in a function, of a name behind a door."""
    source = tmp_path / "lastbit"
    for name, text in {
        "__init__.py": "",
        "kernel/__init__.py": "",
        "kernel/answering.py": "def f():\n    from lastbit.room import thing\n",
        "room/__init__.py": "",
        "room/__init__.pyi": "from lastbit.room.inner import thing as thing\n",
        "room/inner.py": "from .other import more\n",
        "room/other.py": "if TYPE_CHECKING:\n    from lastbit.room import unused\n",
        "room/unused.py": "",
    }.items():
        path = source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(generate_trusted, "SOURCE", tmp_path)
    generate_trusted.imported_by.cache_clear()
    try:
        found = generate_trusted.closure(("lastbit.kernel.answering",))
    finally:
        generate_trusted.imported_by.cache_clear()
    names = {str(path.relative_to(source)) for path in found}
    assert {"room/inner.py", "room/other.py"} <= names and "room/unused.py" not in names
