"""Checks of a source file that no linter makes; each takes a module and returns its findings.

The contracts in pyproject.toml see imports between modules. They do not see an attribute such as
`os.urandom` or `np.random`, nor what a file contains; these checks do.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath

ENTROPY_DOOR = "sampling/bits.py"
ENTROPY_CALLS = frozenset({"urandom", "getrandom", "SystemRandom", "RAND_bytes"})
KEYSTREAMS = frozenset({ENTROPY_DOOR, "sampling/deterministic.py"})  # the latter of a fixed key
# what is attacked, and what is listened to: neither draws anything that is released as private
NUMPY_NOISE = frozenset({"audit/targets/libraries.py", "audit/replay/numpy_generators.py"})
ENTROPY_DEVICE = re.compile(r"^/dev/\w*(random|rng)$")
TEST_ONLY = "lastbit.sampling.deterministic"
NAMES_THAT_SAY_NOTHING = frozenset({"utils", "util", "common", "core", "base", "helpers", "misc"})
MUTABLE_DISPLAYS = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
MUTABLE_TYPES = frozenset(
    {"list", "dict", "set", "bytearray", "defaultdict", "deque", "Counter", "OrderedDict"}
)
LONGEST_FILE = 1000  # from 700 on ask whether it holds two ideas
SHORTEST_ROOM_DOCSTRING = 10
# entry points of the checker, and the sentences that certificates must carry: no logic
CHECKER_NAMES = frozenset(
    {
        "Rejected",
        "beliefs",
        "certificate_in",
        "check",
        "check_apart_from_code",
        "check_price",
        "check_query",
    }
    | {"names_code", "problem_of", "remarks_on", "taken_on_trust"}
)
LEADS_TO_THE_CHECKER = re.compile(r"(^|\.)checker(\.|$)")
OPENED = "__getattr__, __dir__, __all__ = opened(__name__)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """A source file: its path below src/lastbit, and its text."""

    path: PurePosixPath
    source: str

    @property
    def tree(self) -> ast.Module:
        return _parsed(self.source, str(self.path))

    @property
    def is_init(self) -> bool:
        return self.path.stem == "__init__"

    @property
    def name(self) -> str:
        parts = self.path.with_suffix("").parts
        return ".".join(("lastbit", *(parts[:-1] if self.is_init else parts)))

    @property
    def package(self) -> str:
        return self.name if self.is_init else self.name.rpartition(".")[0]


@lru_cache(maxsize=1)  # for all checks of one module, one after the other
def _parsed(source: str, name: str) -> ast.Module:
    return ast.parse(source, filename=name)


@lru_cache(maxsize=1)
def _nodes(tree: ast.Module) -> list[ast.AST]:
    return list(ast.walk(tree))


def modules_below(root: Path) -> list[Module]:
    return [
        Module(path=PurePosixPath(file.relative_to(root)), source=file.read_text("utf-8"))
        for file in sorted((*root.rglob("*.py"), *root.rglob("*.pyi")))
    ]


# ---------------------------------------------------------------- where randomness comes from


def entropy_outside_its_door(module: Module) -> Iterator[str]:
    """The operating system's random bytes are read in one file, which handles forks and threads."""
    path = str(module.path)
    if path == ENTROPY_DOOR:
        return
    tree = module.tree
    docstrings = _docstrings(tree)
    for node in _nodes(tree):
        match node:
            case ast.Attribute(attr=name) | ast.Name(id=name) if name in ENTROPY_CALLS:
                yield f"line {node.lineno}: {name}"
            case ast.Constant(value=str(text)) if node not in docstrings:
                if text in ENTROPY_CALLS or ENTROPY_DEVICE.match(text):
                    yield f"line {node.lineno}: {text!r}"
            case ast.Constant(value=bytes(raw)) if ENTROPY_DEVICE.match(raw.decode("latin-1")):
                yield f"line {node.lineno}: {raw!r}"
            case ast.ImportFrom(names=aliases):
                for alias in aliases:
                    if alias.name in ENTROPY_CALLS:
                        yield f"line {node.lineno}: import of {alias.name}"
    for line, imported in _imports(module):
        library = imported.partition(".")[0]
        if library == "secrets" or (library == "cryptography" and path not in KEYSTREAMS):
            yield f"line {line}: import of {imported}"


def pseudo_randomness(module: Module) -> Iterator[str]:
    """Neither `random` nor `numpy.random`, also by a name in a text: such a draw is no draw."""
    tree = module.tree
    numpy_allowed = str(module.path) in NUMPY_NOISE
    numpy_names = {"np", "numpy"} | {
        alias.asname or alias.name
        for node in _nodes(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name == "numpy"
    }
    for line, imported in _imports(module):
        of_numpy = f"{imported}.".startswith("numpy.random.")
        if imported.split(".")[0] == "random" or (of_numpy and not numpy_allowed):
            yield f"line {line}: import of {imported}"
    if numpy_allowed:
        return
    docstrings = _docstrings(tree)
    for node in _nodes(tree):
        match node:
            case ast.Constant(value=str(text)) if f"{text}.".startswith("numpy.random."):
                if node not in docstrings:
                    yield f"line {node.lineno}: {text!r}"
            case ast.Attribute(value=ast.Name(id=name), attr="random") if name in numpy_names:
                yield f"line {node.lineno}: {name}.random"
            case ast.Call(func=ast.Name(id="getattr"), args=[ast.Name(id=name), attribute, *_]):
                if name in numpy_names and _text(attribute) == "random":
                    yield f"line {node.lineno}: getattr({name}, 'random')"


def source_for_tests_only(module: Module) -> Iterator[str]:
    """The predictable source of bits is for tests; no shipped module may reach it."""
    if module.name == TEST_ONLY:
        return
    for line, imported in _imports(module):
        if f"{imported}.".startswith(f"{TEST_ONLY}."):
            yield f"line {line}: import of {imported}"


# ---------------------------------------------------------------- what a file contains


def work_in_init(module: Module) -> Iterator[str]:
    """A package's `__init__` says what the room is for and re-exports; it does nothing else."""
    if not module.is_init:
        return
    tree = module.tree
    allowed = {"__all__", "__version__"} if module.name == "lastbit" else {"__all__"}
    for position, node in enumerate(tree.body):
        match node:
            case ast.Import() | ast.ImportFrom():
                pass
            case ast.Expr(value=ast.Constant(value=str())) if position == 0:
                pass
            case ast.Assign(targets=[ast.Name(id="__all__")]) if _names(node.value) is not None:
                pass
            case ast.Assign() if ast.unparse(node) == OPENED:
                pass
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant()) if name in allowed:
                pass
            case ast.AnnAssign(target=ast.Name(id=name), value=None) if name in allowed:
                pass  # of a stub
            case _:
                yield f"line {node.lineno}: {ast.unparse(node).splitlines()[0]}"


def undescribed_room(module: Module) -> Iterator[str]:
    """Each room's `__init__` explains the room to somebody who enters it for the first time."""
    is_room = module.path.name == "__init__.py" and len(module.path.parts) == 2
    if is_room and len(_docstring(module).splitlines()) < SHORTEST_ROOM_DOCSTRING:
        yield f"its docstring has fewer than {SHORTEST_ROOM_DOCSTRING} lines"


def name_that_says_nothing(module: Module) -> Iterator[str]:
    """A file named for its lack of subject gathers everything that has none."""
    for part in module.path.with_suffix("").parts:
        if part.strip("_") in NAMES_THAT_SAY_NOTHING:
            yield f"is named {part!r}"


def mutable_global(module: Module) -> Iterator[str]:
    """State at module level outlives every promise made about it."""
    for node in _module_level(module.tree.body):
        targets: list[ast.expr]
        match node:
            case ast.Assign(targets=targets, value=value):
                pass
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                targets = [target]
            case _:
                continue
        if [_text_of_name(target) for target in targets] == ["__all__"]:
            continue
        if _is_mutable(value):
            yield f"line {node.lineno}: {ast.unparse(node).splitlines()[0]}"


def too_long(module: Module) -> Iterator[str]:
    """A file one can hold in the head."""
    length = len(module.source.splitlines())
    if length > LONGEST_FILE:
        yield f"has {length} lines, more than {LONGEST_FILE}"


def past_a_door(module: Module) -> Iterator[str]:
    """Rooms meet at their doors: `from lastbit.room import name`, never a file inside."""
    here = module.name.split(".")[1:2]
    for node in ast.walk(module.tree):
        match node:
            case ast.ImportFrom(module=source, level=level):
                origins = [_absolute(module.package, source or "", level)]
            case ast.Import(names=aliases):
                origins = [alias.name for alias in aliases]
            case _:
                continue
        for origin in origins:
            top, *rest = origin.split(".")
            if top == "lastbit" and len(rest) > 1 and rest[:1] != here:
                yield f"line {node.lineno}: {origin}"


def borrowed_from_the_checker(module: Module) -> Iterator[str]:
    """Nothing that proves shares logic with what checks: a fault of one would be the other's too.

    And the checker works wherever its folder is copied: its own files are named relatively. Outside
    it, a text or an attribute that leads inside is refused too.
    """
    inside = module.path.parts[0] == "checker"
    docstrings = _docstrings(module.tree)
    for node in ast.walk(module.tree):
        taken: list[str] = []
        line = getattr(node, "lineno", 0)
        match node:
            case ast.ImportFrom(module=source, names=aliases, level=level):
                origin = _absolute(module.package, source or "", level)
                taken = [f"{origin}.{alias.name}" for alias in aliases]
                if inside and level == 0 and origin.split(".")[0] == "lastbit":
                    yield f"line {node.lineno}: {origin} by its full name"
            case ast.Import(names=aliases):
                taken = [f"{alias.name}.*" for alias in aliases]
            case ast.Attribute() if ast.unparse(node.value) in ("lastbit.checker", "lb.checker"):
                taken = [f"lastbit.checker.{node.attr}"]
            case ast.Constant(value=str(text)) if node not in docstrings:
                found = LEADS_TO_THE_CHECKER.search(text)
                if found:
                    taken = ["lastbit.checker.*"]
        for name in taken:
            top, _, rest = name.partition("lastbit.checker.")
            if not inside and not top and rest not in CHECKER_NAMES:
                yield f"line {line}: {name}"
            if not inside and name == "lastbit.checker":
                yield f"line {line}: the room itself, and so all that is in it"


def list_inside_a_room(module: Module) -> Iterator[str]:
    """What a room shows is listed at its door, in `__init__.pyi`; a file inside has no list."""
    if not module.is_init and len(module.path.parts) > 1:
        for node in module.tree.body:
            if isinstance(node, ast.Assign) and _text_of_name(node.targets[0]) == "__all__":
                yield f"line {node.lineno}: __all__"


def wrong_exports(module: Module) -> Iterator[str]:
    """`__all__` is a literal list, sorted, without repeats, of names that exist."""
    tree = module.tree
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id="__all__")], value=value):
                names = _names(value)
                if names is None:
                    yield f"line {node.lineno}: __all__ is not a literal list of names"
                    continue
                if names != sorted(set(names)):
                    yield f"line {node.lineno}: __all__ is not sorted, or repeats a name"
                for missing in sorted(set(names) - _bound(tree)):
                    yield f"line {node.lineno}: __all__ names {missing}, which does not exist"


def name_bound_again(module: Module) -> Iterator[str]:
    """A constant has one value in a file: what is above would silently get that of below."""
    seen: dict[str, str] = {}
    for node in module.tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                pass
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                pass
            case _:
                continue
        if seen.setdefault(name, ast.dump(value)) != ast.dump(value):
            yield f"line {node.lineno}: {name} gets another value"


CHECKS = (
    entropy_outside_its_door,
    pseudo_randomness,
    source_for_tests_only,
    work_in_init,
    undescribed_room,
    name_that_says_nothing,
    mutable_global,
    too_long,
    past_a_door,
    borrowed_from_the_checker,
    list_inside_a_room,
    wrong_exports,
    name_bound_again,
)


# ---------------------------------------------------------------- reading a syntax tree


def _imports(module: Module) -> Iterator[tuple[int, str]]:
    """Every imported name in full, relative and by-string imports included."""
    for node in _nodes(module.tree):
        match node:
            case ast.Import(names=aliases):
                for alias in aliases:
                    yield node.lineno, alias.name
            case ast.ImportFrom(module=source, names=aliases, level=level):
                origin = _absolute(module.package, source or "", level)
                for alias in aliases:
                    yield node.lineno, f"{origin}.{alias.name}"
            case ast.Call(func=function, args=[first, *_]):
                if _text_of_name(function) in {"import_module", "__import__"}:
                    yield node.lineno, _text(first)


def _absolute(package: str, source: str, level: int) -> str:
    if level == 0:
        return source
    parts = package.split(".")
    anchor = parts[: len(parts) - level + 1]
    return ".".join((*anchor, source) if source else anchor)


def _module_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements that run on import, those inside `if`, `try`, `with` and loops included."""
    for node in body:
        yield node
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        for field in ("body", "orelse", "finalbody"):
            yield from _module_level(getattr(node, field, []))
        for handler in getattr(node, "handlers", []):
            yield from _module_level(handler.body)


def _is_mutable(value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        return _text_of_name(value.func) in MUTABLE_TYPES
    return isinstance(value, MUTABLE_DISPLAYS)


def _bound(tree: ast.Module) -> set[str]:
    """Names that exist in the module once it has been imported."""
    names: set[str] = set()
    for node in _module_level(tree.body):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                names.add(name)
            case ast.ClassDef(name=name):
                names.add(name)
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                names |= {alias.asname or alias.name.partition(".")[0] for alias in aliases}
            case ast.Assign(targets=targets):
                for target in targets:
                    names |= {leaf.id for leaf in ast.walk(target) if isinstance(leaf, ast.Name)}
            case ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
            case _ if type(node).__name__ == "TypeAlias":  # the `type` statement, from 3.12 on
                names.add(_text_of_name(getattr(node, "name", node)))
    return names


def _names(value: ast.expr) -> list[str] | None:
    if not isinstance(value, ast.List | ast.Tuple):
        return None
    names = [_text(item) for item in value.elts]
    return names if all(names) else None


def _docstring(module: Module) -> str:
    return ast.get_docstring(module.tree) or ""


def _docstrings(tree: ast.Module) -> set[ast.AST]:
    """Strings that stand alone: documentation, which may speak of what code may not do."""
    return {node.value for node in _nodes(tree) if isinstance(node, ast.Expr)}


def _text(node: ast.expr) -> str:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case _:
            return ""


def _text_of_name(node: ast.AST) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""
