"""What remedies name, and whether it is there: commands and options, names and parameters of
Python, fields of cards, functions of SQL, packages, pages and variables of the environment.

All that errors say is read from the source (`docs/generate_errors.py`); commands, packages and
pages are looked for in every other text of the source as well. What is named is tried on the thing
itself: the tree of commands, the rooms of lastbit, the reader of cards, the parser of questions.
"""

import ast
import builtins
import re
import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import click

from docs import generate_errors as index
from docs.generate_api import parsed as parsed_module
from docs.generate_cli import commands
from lastbit.cli.main import main
from lastbit.errors import LastbitError
from lastbit.tables.card.read import _examined, card_from
from lastbit.tables.card.schema import DataCard
from lastbit.tables.sql.statement import parsed

ROOT = Path(__file__).parents[2]


class Mention(NamedTuple):
    kind: str
    name: str


# ---------------------------------------------------------------- what is said


@cache
def remedies() -> frozenset[str]:
    """Every remedy, as far as it is written down."""
    return frozenset(remedy for *_, remedy in index.raised() if remedy)


def arguments() -> set[str]:
    """Parameters that errors name in braces, so that a command can call them by its options."""
    given = (word.arg for kind in index.kinds() for _, call in index.calls().get(kind, ())
             for word in call.keywords)  # fmt: skip
    return {name for name in given if name} - {"problem", "remedy", "between"}


@cache
def other_texts() -> frozenset[str]:
    """All texts of the source but docstrings; `…` for what is put into them."""
    return frozenset(text for name in index.modules() for text in _texts(parsed_module(name)))


def _texts(tree: ast.Module) -> Iterator[str]:
    inside = {id(part) for n in ast.walk(tree) if isinstance(n, ast.JoinedStr) for part in n.values}
    inside |= {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr)}
    for node in ast.walk(tree):
        match node:
            case ast.JoinedStr(values=parts):
                yield "".join(str(getattr(part, "value", "")) if isinstance(part, ast.Constant) else
                              index.GAP for part in parts)  # fmt: skip
            case ast.Constant(value=str(text)) if id(node) not in inside:
                yield text


# ---------------------------------------------------------------- what it names

PATTERNS = {
    "command": r"\blastbit (?!\.)((?:[a-z]+(?: |\b))+(?:--[a-z-]+)?)",
    "package": r"pip install ([^-\s,;][^\s,;]*)",
    "page": r"\bdocs/[\w/.-]+\.md",
    "option": r"(?<![\w-])--[a-z][a-z-]*",
    "python": r"\b(?:lb|lastbit)\.\w+(?:\.\w+)*",
    "class": r"(?<![\w.])[A-Z][a-z]\w*(?:\.\w+)*(?=\()",
    "function": r"\b[a-z_]+(?=\()",
    "parameter": r"(?<![\w?&\"-])([a-z_]{2,})=(?!=)",
    "field": r"(?<!\{)\b(?!(?:a|write) )[a-z_]+ = (?:\"[^\"]+\"|\[[^]]+\]|\{[^}]+\}|[\w.…]+)",
    "section": r"(?<![\w\"'(])\[(?:private|public|engine|budget|ledger|[a-z]+\.[a-z]+|[a-z]{6,})\]",
    "SQL": r"\b[A-Z_]{3,}\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)(?: OVER \(\))?",
    "constant": r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b(?!\()",
}
EVERYWHERE = ("command", "package", "page")


def mentions(remedy: str, kinds: tuple[str, ...] = tuple(PATTERNS)) -> Iterator[Mention]:
    """All that a text names; what is known only when it runs is not."""
    for kind in kinds:
        for match in re.finditer(PATTERNS[kind], remedy):
            name = match[match.re.groups and 1].strip()
            if kind == "field":  # a number that is known only when it runs
                name = re.sub(rf"= {index.GAP}$", "= 1", name)
            if index.GAP not in name:
                yield Mention(kind, name)


# ---------------------------------------------------------------- whether it is there


def problem_of(mention: Mention) -> str | None:
    """What is wrong with the thing that is named; None if it is there."""
    return None if CHECKS[mention.kind](mention.name) else f"no such {mention.kind}: {mention.name}"


@cache
def command_tree() -> dict[str, click.Command]:
    return {path.removeprefix("lastbit "): one for path, one, _ in commands(main, "lastbit")}


def _options(command: click.Command) -> set[str]:
    return {name for one in command.params for name in (*one.opts, *one.secondary_opts)}


_PROSE = {"knows", "in", "that", "made", "runs", "wrote", "checked"}
_PROSE |= {
    "also",
    "assumes",
    "chose",
    "did",
    "first",
    "joins",
    "leaves",
    "or",
    "rounds",
    "training",
}
_BESIDES = {"caddy", "clamp", "round"}  # a file of Caddy's, and names of the verifier's language


def _is_command(words: str) -> bool:
    """The words after `lastbit`: a command and perhaps an option of it, then prose; or prose."""
    names, _, option = words.partition("--")
    parts = names.split()
    if not parts or parts[0] in _PROSE | _BESIDES:
        return True
    tree = command_tree()
    path = parts[0]
    if path not in tree:
        return False
    if isinstance(tree[path], click.Group) and len(parts) > 1 and parts[1] not in _PROSE:
        path = f"{path} {parts[1]}"
    known = path in tree
    return known and (not option or f"--{option}" in _options(tree[path]))


@cache
def _all_options() -> set[str]:
    return set().union(*map(_options, command_tree().values()))


def _is_name(path: str) -> bool:
    """A name of lastbit, or in a room of it."""
    place: object = import_module("lastbit")
    for part in path.split(".")[1:]:
        try:
            place = getattr(place, part)
        except AttributeError:
            return False
    return True


@cache
def _definitions() -> tuple[set[str], set[str]]:
    """Names of classes, functions and constants; and of parameters and fields of classes."""
    names, parameters = set(), set()
    for module in (*index.modules(), "lastbit.errors"):
        for node in ast.walk(parsed_module(module)):
            match node:
                case ast.FunctionDef(name=name, args=given):
                    names.add(name)
                    every = (*given.posonlyargs, *given.args, *given.kwonlyargs)
                    parameters |= {one.arg for one in every}
                case ast.ClassDef(name=name):
                    names.add(name)
                case (
                    ast.AnnAssign(target=ast.Name(id=name))
                    | ast.Assign(targets=[ast.Name(id=name)])
                ):
                    names.add(name)
                    parameters.add(name)
    return names, parameters


@cache
def _public_names() -> set[str]:
    """What lastbit and its rooms show: a class that a remedy names can be imported from there."""
    rooms = [path.parent.name for path in (ROOT / "src" / "lastbit").glob("*/__init__.pyi")]
    doors = (import_module(name) for name in ("lastbit", *(f"lastbit.{room}" for room in rooms)))
    return {name for door in doors for name in door.__all__}


_THEIRS = {
    "SparkSession",
    "read_all",
    "to_frame",
    "master",
    "uncacheTable",
    "contiguous",
    "get_rank",
    "zeros_like",
}  # PyArrow, pandas, Spark, torch
_EXAMPLES = {"function", "program"}  # the reader's own
_NAMED_BY_THE_READER = {"visits", "schema"}  # a column of the answer; libpq's options of an address


def _is_function(name: str) -> bool:
    known = name in _definitions()[0] | _THEIRS | _EXAMPLES or hasattr(builtins, name)
    return known or _is_sql(f"{name.upper()}(x)") or _is_sql(f"{name}(d)")


def _is_package(name: str) -> bool:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    plain = name.strip("'\"`")
    if found := re.fullmatch(r"lastbit\[(\w+)\]", plain):
        return found[1] in extras
    listed = [one for several in (project["dependencies"], *extras.values()) for one in several]
    wanted = re.split(r"[<>=\[ ]", plain)[0]
    return wanted in {re.split(r"[<>=\[ ;]", one)[0] for one in listed}


_SECTIONS = (
    *("table", "unit", "budget", "ledger", "access", "engine"),
    *("columns.x", "public.p", "private.q", "through.t"),
)


_UNFIT = re.compile("known|not a (?!column)|not two|neither")


def _is_field(line: str) -> bool:
    """Whether the reader of cards takes this line in some section."""
    value = line.partition("=")[2].strip()
    whole = (
        line
        if re.fullmatch(r'".*"|[\d.]+|true|false|\[.*\]|\{.*\}', value)
        else f"{line[: line.index('=')]}= 1"
    )
    whole = re.sub(r"\blow\b", "0", re.sub(r"\bhigh\b", "1", whole))
    field = whole.partition(" ")[0]

    def is_taken(section: str) -> bool:
        found = _examined(f"[{section}]\n{whole}\n", folder=ROOT, named="card")
        return all(
            not (one.where.endswith(f".{field}") and _UNFIT.search(one.problem))
            for one in found.problems
        )

    return any(map(is_taken, _SECTIONS))


def _is_section(written: str) -> bool:
    found = _examined(f"{written}\n", folder=ROOT, named="card")
    name = written.strip("[]").partition(".")[0]
    return not any(one.where == name and "is not known" in one.problem for one in found.problems)


@cache
def _card() -> DataCard:
    numbers = (f'[columns.{name}]\ntype = "integer"\nbounds = [0, 9]\n' for name in ("x", "age"))
    others = '[columns.d]\ntype = "date"\n[columns.who]\ntype = "integer"\n'
    others += '[columns.codes]\ntype = "text[]"\n'
    head = '[table]\nname = "t"\nsource = "t.parquet"\nneighbours = "add-remove"\n'
    unit = '[unit]\ncolumn = "who"\nmax_rows = 1\n[budget]\nepsilon = 1\n'
    return card_from(head + unit + "".join(numbers) + others, folder=ROOT)


def _is_sql(expression: str) -> bool:
    """Whether a question may have this, of columns of a table."""
    text = re.sub(r"UNNEST\([^)]*\)", "UNNEST(codes)", expression.replace("AS ...", "AS BIGINT"))
    text = re.sub("column|expression|[.]{3}", "x", text)
    lists = f"SELECT COUNT(*) AS n FROM t, {text} AS u(code)"
    for question in (lists, f"SELECT {text} AS n FROM t", f"SELECT SUM({text}) AS n FROM t",
                     f"SELECT {text} AS k, COUNT(*) AS n FROM t GROUP BY 1"):  # fmt: skip
        try:
            parsed(question, _card())
        except LastbitError:
            continue
        return True
    return False


_READ_BY_OTHERS = {"SPARK_REMOTE"}  # PySpark


def _is_constant(name: str) -> bool:
    """A constant of lastbit, a word of SQL, or a variable that its source reads."""
    if name in _definitions()[0] | _READ_BY_OTHERS or _is_sql(f"{name}(x, 0.5)"):
        return True
    return any(name == text for text in other_texts())


CHECKS: dict[str, Callable[[str], bool]] = {
    "command": _is_command,
    "package": _is_package,
    "page": lambda name: (ROOT / name).is_file(),
    "option": lambda name: name in _all_options(),
    "python": _is_name,
    "class": lambda name: name.partition(".")[0] in _public_names() | _THEIRS,
    "function": _is_function,
    "parameter": lambda name: name in _definitions()[1] | _NAMED_BY_THE_READER,
    "field": _is_field,
    "section": _is_section,
    "SQL": _is_sql,
    "constant": _is_constant,
}
