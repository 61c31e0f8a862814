"""`make trusted` counts every file that a trusted one loads, also what is loaded by its name."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from docs.generate_trusted import BASE, ENGINES, SOURCE, closure, module_of

BY_NAME = {
    "lastbit.tables.backends.duckdb.delta",
    "lastbit.tables.backends.duckdb.frames",
    "lastbit.tables.backends.duckdb.stored_tables",
    "lastbit.tables.backends.duckdb.unit_index",
}
NO_CHARGE_NEEDS = {  # the files that name these say so: they are for stewards, auditors and people
    "lastbit.ledger.deciding",
    "lastbit.ledger.ledger",
    "lastbit.privacy.promised_prices",
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
