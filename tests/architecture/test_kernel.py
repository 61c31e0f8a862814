"""Raw integers have one way: made by an engine, sealed, noised; no other file names what is on it.

A check of names cannot see what a program does with reflection. It sees what people write: an
import, an attribute, a call, a text that is one of these names.
"""

import ast
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest

from tests.architecture.checks import Module, _docstrings, modules_below

SRC = Path(__file__).parents[2] / "src" / "lastbit"
KERNEL = frozenset({f"kernel/{name}.py" for name in ("sealed", "noise", "answering")})
DOOR = "tables/__init__.pyi"
ENGINES = frozenset(f"tables/backends/{name}/engine.py" for name in ("duckdb", "postgres", "spark"))
HANDING_OVER = "tables/backends/engines.py"
# name: the files that may have it, as a name, an attribute, an import or a text
ONLY_IN = {
    "unsealed_rows": {"kernel/sealed.py", HANDING_OVER},
    "Aggregates": {"kernel/sealed.py", "kernel/noise.py"},
    "sealed_integers": {"kernel/sealed.py", "kernel/answering.py"},
    "noisy_numbers": {"kernel/noise.py", "kernel/answering.py"},
    "marginal_counts": {"kernel/answering.py", HANDING_OVER},
    "RawRows": {
        *("kernel/sealed.py", HANDING_OVER, DOOR),
        *ENGINES,
    },
}
CALLED = "aggregates"  # of an engine; of a query it is a tuple, which nobody calls


def names_in(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Every name, attribute, import and text of a file but its docstrings."""
    docstrings = _docstrings(tree)
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                yield line, name
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield line, name
            case ast.ImportFrom(names=aliases) | ast.Import(names=aliases):
                yield from ((line, part) for one in aliases for part in one.name.split("."))
            case ast.Constant(value=str(text)) if node not in docstrings:
                yield from ((line, part) for part in text.split(".") if part.isidentifier())


def calls_in(tree: ast.Module, name: str) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=found) | ast.Attribute(attr=found)) if found == name:
                yield node


def imports_engine(node: ast.AST) -> bool:
    """Whether it takes the function `aggregates` of an engine, or an engine itself."""
    match node:
        case ast.ImportFrom(module=str(origin), names=aliases):
            names = {one.name for one in aliases}
            of_engine = origin == "lastbit.tables" or ".backends" in origin
            return (of_engine and CALLED in names) or (".backends." in origin and "engine" in names)
        case ast.Import(names=aliases):
            return any(".backends." in one.name for one in aliases)
    return False


def off_the_way(module: Module) -> Iterator[str]:
    """Where a file names what it may not, or handles sealed numbers in another way."""
    path, tree = str(module.path), module.tree
    for line, name in names_in(tree):
        if name in ONLY_IN and path not in ONLY_IN[name]:
            yield f"line {line}: {name}"
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        known = path in (HANDING_OVER, DOOR, "kernel/answering.py")
        if not known and not path.startswith("tables/backends/") and imports_engine(node):
            yield f"line {line}: an engine's aggregates"
        match node:
            case ast.Attribute(attr="unsealed_rows", ctx=context):
                made = path == HANDING_OVER
                if isinstance(context, ast.Store) != made:
                    yield f"line {line}: rows are made, or read, in the other file"
    for call in calls_in(tree, CALLED):
        if path not in (HANDING_OVER, "kernel/answering.py"):
            yield f"line {call.lineno}: a call of an engine's aggregates"
    if path == "kernel/answering.py":
        yield from held_numbers(tree)


def held_numbers(tree: ast.Module) -> Iterator[str]:
    """In `answering`: sealed numbers go straight into noise, rows straight into the seal."""
    noised = {id(part) for call in calls_in(tree, "noisy_numbers") for part in call.args}
    for call in calls_in(tree, "sealed_integers"):
        if id(call) not in noised:
            yield f"line {call.lineno}: sealed integers are held"
    into = {id(part) for call in calls_in(tree, "sealed_integers") for part in call.args}
    engines = {id(call) for name in (CALLED, "marginal_counts") for call in calls_in(tree, name)}
    rows, readers = set(), set()
    for node in reversed(list(ast.walk(tree))):  # functions within others first
        if isinstance(node, ast.FunctionDef):
            for inner in ast.walk(node):
                if isinstance(inner, ast.Return) and id(inner.value) in engines:
                    readers.add(node.name)
                    engines.discard(id(inner.value))
    for node in ast.walk(tree):
        match node:
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Call(func=ast.Name(id="sealed"), args=[ast.Name(id=reader), *_]),
            ) if reader in readers:
                rows.add(name)
                readers.discard(reader)
    for name in readers:
        yield f"{name} hands out an engine's rows, not under a seal"
    for _ in engines:
        yield "an engine's rows are held without a name"
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Load()) if name in rows and id(node) not in into:
                yield f"line {node.lineno}: rows go elsewhere than into the seal"


def test_only_the_kernel_sees_raw_integers() -> None:
    found = [f"{m.path}: {line}" for m in modules_below(SRC) for line in off_the_way(m)]
    assert not found, "\n".join(found)


def test_every_name_is_where_it_may_be() -> None:
    """A name that is gone, or a file that does not need it, leaves a check that cannot fail."""
    sources = {str(m.path): {name for _, name in names_in(m.tree)} for m in modules_below(SRC)}
    for name, places in ONLY_IN.items():
        assert all(name in sources[path] for path in places), name


ANSWERING = (SRC / "kernel" / "answering.py").read_text("utf-8")
REJECTED = [
    ("release/paying.py", "from lastbit.kernel.sealed import Aggregates"),
    ("release/paying.py", "def f(raw):\n    return raw.unsealed_rows"),
    ("release/paying.py", "rows = getattr(raw, 'unsealed_rows')"),
    ("release/paying.py", "import operator\nrows = operator.attrgetter('unsealed_rows')(raw)"),
    ("kernel/sealed.py", "raw.unsealed_rows = []"),
    (HANDING_OVER, "def f(raw):\n    return raw.unsealed_rows[0]"),
    ("kernel/noise.py", "def f(raw):\n    return raw.unsealed_rows"),
    ("report/plan.py", "from lastbit.tables import aggregates"),
    ("report/plan.py", "from lastbit.tables.backends.engines import aggregates"),
    ("report/plan.py", "from lastbit.tables.backends.duckdb import engine"),
    ("report/plan.py", "import lastbit.tables.backends.duckdb.engine as e"),
    ("report/plan.py", "import lastbit.tables\nlastbit.tables.aggregates(query, card, ())"),
    ("report/plan.py", "import lastbit.tables as t\nt.marginal_counts(query, card, ())"),
    ("tables/plan/plan.py", "engine_of(card.source).aggregates(query, card, (), secret=None)"),
    ("release/release.py", "from lastbit.tables import RawRows"),
    ("release/release.py", "import lastbit.kernel.noise as n\nn.noisy_numbers(program, raw)"),
    ("kernel/program.py", "from lastbit.kernel.sealed import sealed_integers"),
    ("kernel/question.py", "from .noise import noisy_numbers"),
    ("kernel/answering.py", "raw = aggregates(s, c, m, secret=k)\nprint(raw)"),
    ("kernel/answering.py", "def read():\n    return aggregates(s, c, m, secret=k)\nread()"),
    ("kernel/answering.py", ANSWERING.replace("sealed(read, words=_UNREAD)", "read()")),
    ("kernel/answering.py", "aggregates(s, c, m, secret=k).statement"),
    ("kernel/answering.py", "kept = sealed_integers(program, raw)"),
    (
        "kernel/answering.py",
        ANSWERING.replace(
            "return noisy_numbers(program, sealed_integers(program, raw))",
            "integers = sealed_integers(program, raw)\n"
            "            return noisy_numbers(program, integers)",
        ),
    ),
    (
        "kernel/answering.py",
        ANSWERING.replace(
            "    def run() -> Noisy:", "    _SEEN.append(raw)\n    def run() -> Noisy:"
        ),
    ),
]


@pytest.mark.parametrize(("path", "source"), REJECTED)
def test_a_file_off_the_way_is_rejected(path: str, source: str) -> None:
    own = Module(path=PurePosixPath(path), source=(SRC / path).read_text("utf-8"))
    assert not list(off_the_way(own))
    assert list(off_the_way(Module(path=own.path, source=source)))


def test_what_others_may_write_is_accepted() -> None:
    for path, source in (
        ("report/plan.py", "parts = [part.name for part in query.aggregates]"),
        ("report/plan.py", '"""What `unsealed_rows` are."""'),
        ("release/table.py", "from lastbit.tables.query import aggregates as lb"),
    ):
        assert not list(off_the_way(Module(path=PurePosixPath(path), source=source)))
