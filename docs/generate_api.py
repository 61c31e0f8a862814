"""Writes docs/reference/api/ from the doors and docstrings of the rooms: `make reference`.

Everything is read from the source text, nothing is imported: a page does not depend on what is
installed. A room's public names are those in the `__all__` of its `__init__.pyi`, and those that
`lastbit` itself shows from it.
"""

from __future__ import annotations

import ast
import builtins
import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"
PAGES = Path(__file__).parent / "reference" / "api"
ROOMS: Mapping[str, str] = {
    "mechanisms": "noise, and choices, with their guarantees",
    "privacy": "guarantees, and what several releases promise together",
    "sensitivity": "how far a statistic moves when one record does",
    "sampling": "random bits in, exact draws out",
    "laws": "exact probability laws",
    "exact": "numbers that are what they say",
    "geo": "places on the Earth",
    "tables": "data cards, questions, plans and prices",
    "release": "private answers about tables",
    "ledger": "who spent what",
    "verify": "proofs about float code, and certificates",
    "audit": "judging mechanisms by experiment",
    "training": "DP-SGD on whole numbers: clipping, noise, plans and runs",
    "training.tensors": "the same around torch and Opacus",
    "training.arrays": "the same for JAX and optax",
    "report": "charts and pages of what is already public",
}
_IMPORT = re.compile(r"^from (\S+) import (?:\(([^)]*)\)|(.*))$", re.M)
_ALL = re.compile(r"^__all__ = \[([^]]*)\]", re.M)
_HEADED = re.compile(
    r"^(Law|Theorem|Proof|Source|Differs|Checked|Set-up|Breaks|Resists|Example)(?:  +|$)(.*)$"
)
_CODE = re.compile(r"(`[^`\n]+`)")
_PAGE = re.compile(r"\bdocs/([\w/-]+\.md)")
_FILE = re.compile(r"\b(?:tests|bench)/[\w/.]+\b")
_NUMBER = (
    'exact: an integer, a `Fraction`, text like `"0.1"` or `"1/3"`, or the float as it is stored'
)
_NOISE = {
    "epsilon": f"the privacy loss allowed; {_NUMBER}",
    "delta": "the probability by which the promise may fail",
    "rho": "the parameter of concentrated privacy (zCDP)",
    "neighbours": "the pairs of datasets that the promise is about: `ADD_REMOVE` or `CHANGE_ONE`",
    "sensitivity": "how far the input can move between neighbours",
    "scale": "the scale of the noise, in place of a promise",
    "standard_deviation": "the standard deviation of the noise, in place of a promise",
    "grid": 'the step that floats are rounded to, or `"auto"`; without it only integers are taken',
    "dimension": "how many numbers one release has",
    "monotone": "whether all values move the same way when a record is added",
    "lower": "the public least value; smaller ones are moved there",
    "upper": "the public greatest value; larger ones are moved there",
    "size": "`None` for one draw; else the shape of an array of draws",
    "precision": "the bits to work with",
}
_CODE_PARAMETERS = {
    "format": "the number format of the machine: `BINARY64`, `BINARY32`, `BINARY16` or a `Fixed`",
    "uniform": "which numbers the generator gives: `Grid(53)`, `FullPrecision()`",
    "ulps": "the error of `exp`, `log` and the like, in units in the last place",
    "cell": "the step that the result is rounded to",
    "region": "the interval that the result is clamped to",
    "inputs": "the values of the secret input",
    "pieces": "uniforms between which the output only rises or only falls",
}
PARAMETERS: Mapping[str, Mapping[str, str]] = {
    **dict.fromkeys(("mechanisms", "privacy", "sampling", "sensitivity", "laws"), _NOISE),
    "geo": {
        "epsilon": 'the loss at `within` metres; a number, or both in one: `"ln(4)/200m"`',
        "within": "the distance, in metres, up to which places look alike",
        "region": "the public region: south, west, north, east, in degrees",
        "grid": 'the step of released places in metres, or `"auto"`',
    },
    "verify": _CODE_PARAMETERS,
    "tables": {
        "expression": "a column, or arithmetic with columns, as in SQL",
        "low": "the public least value; the card's bound if left out",
        "high": "the public greatest value; the card's bound if left out",
        "nullable": "False declares that there are no missing values, and shares the count of rows",
        "intervals": "whether part of the price goes to a confidence interval",
        "edges": "the limits of the bins, in ascending order",
        "level": "the share of values below, between 0 and 1",
        "levels": "several shares, each between 0 and 1",
    },
    "training": {
        "examples": "how many there are: public",
        "batch": "how many are expected in a step",
        "epochs": "how often each example is used, on average",
        "delta": "the probability by which the promise may fail",
        "epsilon": "the privacy loss allowed for all steps together",
        "noise_multiplier": "noise over clipping norm",
        "unit": "who is protected, if examples are counted by it",
    },
    "audit": {
        "epsilon": "the loss that is claimed",
        "delta": "the delta that is claimed",
        "pairs": "a pair of neighbouring inputs, or a list of them",
        "samples": "how many releases to draw in all",
        "error": "the probability by which the verdict may be wrong",
        "canaries": "how many examples are left in or out by coins",
        "guesses": "how many canaries are guessed, a number fixed before",
        "right": "how many of the guesses are right",
    },
}
"""What a parameter means wherever a room uses its name."""

Function = ast.FunctionDef
Definition = ast.FunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign


# ---------------------------------------------------------------- names and where they are defined


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A public name: where it is shown, where it is defined, and what its docstring says."""

    name: str
    room: str
    paths: tuple[str, ...]
    module: str
    node: Definition
    text: str

    @property
    def heading(self) -> str:
        if isinstance(self.node, ast.ClassDef):
            return f"class {self.name}"
        return f"{self.name}()" if isinstance(self.node, Function) else self.name

    @property
    def address(self) -> str:
        """The anchor of its heading, with the page."""
        anchor = re.sub(r"[^\w\- ]", "", self.heading.lower()).replace(" ", "-")
        return f"{self.room}.md#{anchor}"


@cache
def shown_by(room: str) -> tuple[dict[str, tuple[str, str]], tuple[str, ...]]:
    """Every name in a door with its module and name there, and those that are public."""
    text = (SOURCE / Path(*room.split(".")) / "__init__.pyi").read_text("utf-8")
    places = {}
    for origin, several, one in _IMPORT.findall(text):
        for written in (several or one).split(","):
            inner, _, outer = written.strip().partition(" as ")
            if inner:
                places[outer or inner] = (f"{room * origin.startswith('.')}{origin}", inner)
    found = _ALL.search(text)
    return places, tuple(re.findall(r"\w+", found[1])) if found else ()


@cache
def parsed(module: str) -> ast.Module:
    """The syntax of a module."""
    base = SOURCE / Path(*module.split("."))
    file = base / "__init__.py" if base.is_dir() else base.with_suffix(".py")
    return ast.parse(file.read_text("utf-8"))


@cache
def defined(module: str, name: str) -> tuple[str, Definition, str] | None:
    """The module, syntax and docstring of a name's definition, through doors and imports."""
    if (SOURCE / Path(*module.split(".")) / "__init__.pyi").exists():
        places = shown_by(module)[0]
        return defined(*places[name]) if name in places else None
    body = parsed(module).body
    found: tuple[str, Definition, str] | None = None
    for node, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, Function | ast.ClassDef) and node.name == name:
            found = module, node, ast.get_docstring(node) or ""  # the last: after its overloads
        elif isinstance(node, ast.Assign | ast.AnnAssign) and name in _targets(node):
            found = module, node, _text_below(after)
        elif isinstance(node, ast.ImportFrom) and found is None:
            inner = {alias.asname or alias.name: alias.name for alias in node.names}
            if name in inner and (origin := _origin(module, node)).startswith("lastbit"):
                found = defined(origin, inner[name])
    return found


def _targets(node: ast.Assign | ast.AnnAssign) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _text_below(node: ast.stmt | None) -> str:
    """The text that stands below an assignment and explains it."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return textwrap.dedent(str(node.value.value)).strip()
    return ""


def _origin(module: str, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    folder = module.split(".")
    if not (SOURCE / Path(*folder)).is_dir():
        folder = folder[:-1]
    return ".".join([*folder[: len(folder) - node.level + 1], *filter(None, [node.module])])


@cache
def entries() -> tuple[Entry, ...]:
    """All public names, each once, in the room that shows it."""
    top, first = shown_by("lastbit")
    public = {room: list(shown_by(f"lastbit.{room}")[1]) for room in ROOMS}
    for name in first:
        origin = top.get(name, ("", ""))[0].removeprefix("lastbit.")
        if origin in public and name not in public[origin]:
            public[origin].append(name)
    found = []
    for room, names in public.items():
        for name in sorted(names, key=lambda name: (name.lower(), name)):
            place = defined(f"lastbit.{room}", name)
            assert place is not None, f"lastbit.{room}.{name} is not found"
            short = (f"lastbit.{name}",) if top.get(name) == (f"lastbit.{room}", name) else ()
            paths = (*short, f"lastbit.{room}.{name}")
            module, node, text = place
            found.append(
                Entry(name=name, room=room, paths=paths, module=module, node=node, text=text)
            )
    return tuple(found)


# ---------------------------------------------------------------- signatures


def signature(node: Function, name: str, *, method: bool = False) -> str:
    """A call as it may be written, with types; one parameter a line where one line is too long."""
    arguments = node.args
    pieces: list[str] = []
    plain = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(plain) - len(arguments.defaults)) + [*arguments.defaults]
    for place, (argument, default) in enumerate(zip(plain, defaults, strict=True)):
        if not (method and place == 0):
            pieces.append(_parameter(argument, default))
        if arguments.posonlyargs and place == len(arguments.posonlyargs) - 1 and pieces:
            pieces.append("/")
    if arguments.vararg:
        pieces.append("*" + _parameter(arguments.vararg, None))
    elif arguments.kwonlyargs:
        pieces.append("*")
    for argument, given in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        pieces.append(_parameter(argument, given))
    if arguments.kwarg:
        pieces.append("**" + _parameter(arguments.kwarg, None))
    result = ast.unparse(node.returns) if node.returns and node.name != "__init__" else ""
    return _call(name, pieces, result)


def _call(name: str, pieces: list[str], result: str = "") -> str:
    arrow = f" -> {result}" if result else ""
    line = f"{name}({', '.join(pieces)}){arrow}"
    if len(line) <= 88:
        return line
    return f"{name}(\n" + "".join(f"    {piece},\n" for piece in pieces) + f"){arrow}"


def _parameter(argument: ast.arg, default: ast.expr | None) -> str:
    kind = f": {ast.unparse(argument.annotation)}" if argument.annotation else ""
    return argument.arg + kind + _default(default, spaced=bool(kind))


def _default(value: ast.expr | None, *, spaced: bool = True) -> str:
    if value is None:
        return ""
    return f" = {ast.unparse(value)}" if spaced else f"={ast.unparse(value)}"


def bases(module: str, node: ast.ClassDef) -> Iterator[tuple[str, ast.ClassDef]]:
    """The class and those it is made of, as far as they are in lastbit."""
    yield module, node
    for base in node.bases:
        name = base.value if isinstance(base, ast.Subscript) else base
        found = defined(module, name.id) if isinstance(name, ast.Name) else None
        if found is not None and isinstance(found[1], ast.ClassDef):
            yield from bases(found[0], found[1])


def _decorators(node: ast.ClassDef | Function) -> str:
    return " ".join(ast.unparse(decorator) for decorator in node.decorator_list)


def fields_of(module: str, node: ast.ClassDef) -> Iterator[tuple[str, ast.AnnAssign, str, bool]]:
    """Fields of a dataclass, those of its bases first: name, syntax, text, and by keyword only."""
    for _, owner in reversed(list(bases(module, node))):
        if "dataclass" not in _decorators(owner) and not any(
            "NamedTuple" in ast.unparse(base) for base in owner.bases
        ):
            continue
        for item, after in zip(owner.body, [*owner.body[1:], None], strict=True):
            if not (isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)):
                continue
            if item.target.id.startswith("_") or "ClassVar" in ast.unparse(item.annotation):
                continue
            keyword = "kw_only=True" in _decorators(owner) + ast.unparse(item)
            yield item.target.id, item, _text_below(after), keyword


def call_of(entry: Entry) -> str:
    """How the name is called or what it is."""
    node = entry.node
    if isinstance(node, Function):
        return signature(node, entry.name)
    if isinstance(node, ast.ClassDef):
        for _, owner in bases(entry.module, node):
            for item in owner.body:
                if isinstance(item, Function) and item.name == "__init__":
                    return signature(item, entry.name, method=True)
            if "dataclass" in _decorators(owner) and "init=False" not in _decorators(owner):
                break
        plain: list[str] = []
        keyword: list[str] = []
        for name, item, _, by_keyword in fields_of(entry.module, node):
            default = ast.unparse(item.value) if item.value else ""
            made = re.search(r"default_factory=([^,)]+)", default)
            given = re.search(r"default=([^,)]+)", default)
            if default.startswith("field("):
                if "init=False" in default:
                    continue
                default = f"{made[1]}()" if made else given[1] if given else ""
            text = f"{name}: {ast.unparse(item.annotation)}" + (f" = {default}" if default else "")
            (keyword if by_keyword else plain).append(text)
        return _call(entry.name, plain + (["*", *keyword] if keyword else []))
    value = ast.unparse(node.value) if not isinstance(node, ast.Expr) and node.value else ""
    kind = ast.unparse(node.annotation) if isinstance(node, ast.AnnAssign) else ""
    kind = f": {kind}" if kind and kind != "TypeAlias" else ""
    line = f"{entry.name}{kind} = {value}"
    return line if len(line) <= 120 else f"{entry.name}{kind} = ..."


def members(entry: Entry) -> Iterator[tuple[str, str]]:
    """Fields with a text of their own, properties and methods: how each is written, its text."""
    if not isinstance(entry.node, ast.ClassDef):
        return
    for name, field, text, _ in fields_of(entry.module, entry.node):
        if text:
            yield f"{name}: {ast.unparse(field.annotation)}", text
    seen = set()
    for _, owner in bases(entry.module, entry.node):
        for item in owner.body:
            if not isinstance(item, Function) or item.name.startswith("_") or item.name in seen:
                continue
            said = ast.get_docstring(item)
            if "overload" in _decorators(item) or not said:
                continue
            seen.add(item.name)
            if "property" in _decorators(item):
                yield item.name + (f": {ast.unparse(item.returns)}" if item.returns else ""), said
                continue
            call = signature(item, item.name, method="staticmethod" not in _decorators(item))
            yield re.sub(r",?\n *", " ", call).replace("( ", "("), said


# ---------------------------------------------------------------- examples


def examples(text: str) -> list[str]:
    """The blocks of a docstring that start with a prompt, up to the next empty line."""
    blocks = re.findall(r"^( *>>> .*(?:\n(?! *$).*)*)", text, re.M)
    return [textwrap.dedent(block) for block in blocks]


def code_of(example: str) -> str:
    """What is typed in an example."""
    lines = (line for line in example.splitlines() if line[:4] in {">>> ", "... ", "..."})
    return "\n".join(line[4:] for line in lines)


def needed(module: str, code: str) -> list[str]:
    """The imports that an example lacks when it is copied out of its module."""
    made, used = set(dir(builtins)), []
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                used.append(name)
            case ast.Name(id=name) | ast.arg(arg=name):
                made.add(name)
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                made.update((alias.asname or alias.name).split(".")[0] for alias in names)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                made.add(name)
            case ast.ExceptHandler(name=str(name)):
                made.add(name)
    lines = {}
    for name in used:
        if name not in made:
            lines[name] = _import_of(module, name)
    return sorted(set(lines.values()))


def _import_of(module: str, name: str) -> str:
    """The line that imports what a module calls by a name, from the room's door where it can."""
    for node in parsed(module).body:
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        for alias in node.names:
            if (alias.asname or alias.name) != name:
                continue
            renamed = f" as {alias.asname}" if alias.asname else ""
            if isinstance(node, ast.Import):
                return f"import {alias.name}{renamed}"
            return f"from {_door(_origin(module, node), alias.name)} import {alias.name}{renamed}"
    return f"from {_door(module, name)} import {name}"


def _door(module: str, name: str) -> str:
    room = ".".join(module.split(".")[:2])
    own = room.startswith("lastbit.") and (SOURCE / Path(*room.split("."), "__init__.pyi")).exists()
    return room if own and name in shown_by(room)[0] else module


def with_imports(module: str, example: str, known: set[str]) -> str:
    """The example as it runs anywhere; `known` are names that earlier lines have made."""
    code = code_of(example)
    lines = [line for line in needed(module, code) if line not in known]
    known.update(lines)
    together: dict[str, list[str]] = {}
    for line in lines:
        origin, _, name = line.rpartition("import ")
        together.setdefault(origin, []).append(name)
    shown = (f">>> {origin}import {', '.join(names)}\n" for origin, names in together.items())
    return "".join(shown) + example


# ---------------------------------------------------------------- text


@cache
def _known() -> dict[str, Entry]:
    return {name: entry for entry in entries() for name in (entry.name, *entry.paths)}


def _linked(text: str, room: str, own: str = "") -> str:
    """Names of other entries and pages become links; signs that Markdown would take are escaped.

    A plain word such as `count` is mostly a parameter: it must be written `count()` to be linked.
    """
    pieces = _CODE.split(text)
    for place, piece in enumerate(pieces):
        if place % 2:
            written = piece.strip("`")
            if written.removeprefix("lastbit.") in ROOMS and written.startswith("lastbit."):
                pieces[place] = f"[{piece}]({written.removeprefix('lastbit.')}.md)"
                continue
            entry = _known().get(re.sub(r"^lb\.|\(\)$", "", written))
            plain = own and re.fullmatch("[a-z]+", written)
            if entry is not None and entry.name != own and not plain:
                pieces[place] = f"[{piece}]({_address(entry, room)})"
        else:
            safe = re.sub(
                r"(?<=[\w)])\*{1,2}(?=[\w(-])|<(?=[a-z])|(?<!\w)_|_(?!\w)", _escaped, piece
            )
            named = _PAGE.sub(r"[\1](../../\1)", safe)
            pieces[place] = _FILE.sub(r"`\g<0>`", named)
    return "".join(pieces)


def _address(entry: Entry, room: str) -> str:
    folder = "../api/" if room == "errors" else ""
    return folder + entry.address.removeprefix(f"{room}.md")


def _escaped(match: re.Match[str]) -> str:
    return "".join(f"\\{sign}" for sign in match[0])


def rendered(text: str, module: str, room: str, own: str, known: set[str]) -> str:
    """A docstring as Markdown: headed lines as a list, examples as code that runs."""
    out: list[str] = []
    lines = text.splitlines()
    place = 0
    while place < len(lines):
        line = lines[place]
        headed = _HEADED.match(line)
        if line.lstrip().startswith(">>> "):
            end = next((i for i in range(place, len(lines)) if not lines[i].strip()), len(lines))
            block = textwrap.dedent("\n".join(lines[place:end]))
            out.append(f"```python\n{with_imports(module, block, known)}\n```")
            place = end
            continue
        if headed:
            parts = [headed[2].strip()]
            while place + 1 < len(lines) and lines[place + 1].startswith("  "):
                place += 1
                parts.append(lines[place].strip())
            said = _linked(" ".join(filter(None, parts)), room, own)
            out.append(f"- **{headed[1]}** {said}")
        else:
            out.append(line if line.startswith("    ") else _linked(line, room, own))
        place += 1
    return "\n".join(out)


@cache
def borrowed(entry: Entry) -> Entry | None:
    """Another entry whose example uses this name or gives it back, or that its text names."""
    word = re.compile(rf"(?<![\w.]){entry.name}\b")
    short = re.compile(rf"\b(?:lb|{entry.room})\.{entry.name}\b")
    for other in sorted(entries(), key=lambda other: other.room != entry.room):
        code = "\n".join(map(code_of, examples(other.text)))
        near = other.room == entry.room
        if other is entry or not code:
            continue
        returns = other.node.returns if isinstance(other.node, Function) else None
        result = ast.unparse(returns) if returns and near else ""
        if short.search(code) or (near and word.search(code)):
            return other
        if not isinstance(entry.node, Function) and word.search(result):
            return other
    named = (_known().get(name) for name in re.findall(r"`(\w+)(?:\(\))?`", entry.text))
    near_by = (other for other in named if other is not None and other.room == entry.room)
    told = (other for other in near_by if examples(other.text) and other is not entry)
    return None if isinstance(entry.node, Function) else next(told, None)


def without_example() -> list[str]:
    """Public names that no example of a docstring shows."""
    return [
        entry.paths[-1]
        for entry in entries()
        if not (examples(entry.text) or re.search("^Example  ", entry.text, re.M))
        and borrowed(entry) is None
    ]


# ---------------------------------------------------------------- pages


def section(entry: Entry) -> str:
    """The part of a page about one name."""
    known: set[str] = set()
    call = re.sub(r"'([^'\"]*)'", r'"\1"', call_of(entry))  # as ruff would write it
    parts = [
        f"## {entry.heading}",
        " · ".join(f"`{path}`" for path in entry.paths),
        f"```pyi\n{call}\n```",
        rendered(entry.text, entry.module, entry.room, entry.name, known),
    ]
    if not examples(entry.text) and (other := borrowed(entry)) is not None:
        parts.append(f"Example: under [`{other.name}`]({_address(other, entry.room)}).")
    named = re.findall(r"[(,*\n] *(\w+)(?:: |=|,|\))", call)
    meanings = PARAMETERS.get(entry.room, {})
    told = [
        f"- `{name}`: {_linked(meanings[name], entry.room, entry.name)}"
        for name in dict.fromkeys(named)
        if name in meanings and f"`{name}`" not in entry.text
    ]
    if told:
        parts.append("Parameters:\n\n" + "\n".join(told))
    listed = []
    for written, text in members(entry):
        said = rendered(text, entry.module, entry.room, entry.name, known)
        listed.append(f"- `{written}`: " + textwrap.indent(said, "  ").lstrip())
    if listed:
        parts.append("Members:\n\n" + "\n".join(listed))
    return "\n\n".join(filter(None, parts))


def page(room: str) -> str:
    """The page of a room."""
    own = [entry for entry in entries() if entry.room == room]
    head = ast.get_docstring(parsed(f"lastbit.{room}")) or ""
    said = re.split(r"^\| (?:file|folder) \|", head, flags=re.M)[0].strip()
    parts = [
        f"# lastbit.{room}",
        rendered(said, f"lastbit.{room}", room, "", set()),
        "Names: " + " · ".join(f"[`{entry.name}`]({_address(entry, room)})" for entry in own),
        *map(section, own),
        "Generated by `make reference` from the docstrings.",
    ]
    return "\n\n".join(parts) + "\n"


def index() -> str:
    """The page that lists the rooms, and every name in alphabetical order."""
    rooms = "\n".join(
        f"| [`lastbit.{room}`]({room}.md) | {words} |" for room, words in ROOMS.items()
    )
    names = "\n".join(
        f"- [`{entry.name}`]({entry.address}): {_first_sentence(entry)}"
        for entry in sorted(entries(), key=lambda entry: (entry.name.lower(), entry.room))
    )
    return f"""\
# Python reference

Every public name with its types, what it promises and an example that runs. Names of the first
column are also found in `lastbit` itself where their entry says so: `import lastbit as lb`, then
`lb.Laplace`.

| room | holds |
|---|---|
{rooms}

Errors are in the [error index](../errors/README.md), commands in the [command-line
reference](../cli.md).

## All names

{names}
"""


def _first_sentence(entry: Entry) -> str:
    paragraph = entry.text.split("\n\n")[0].replace("\n", " ")
    return _linked(re.split(r"(?<=[.:]) (?=[A-Z`])", paragraph)[0], "", entry.name)


def pages() -> dict[str, str]:
    """All pages by file name."""
    return {"README.md": index()} | {f"{room}.md": page(room) for room in ROOMS}


def main() -> None:
    """Write the pages."""
    PAGES.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (PAGES / name).write_text(text, "utf-8")
    print(f"wrote reference/api: {len(entries())} names on {len(ROOMS)} pages")


if __name__ == "__main__":
    main()
