"""Writes docs/reference/errors.md from the places that raise errors: `make reference`.

Everything is read from the source text. A message is put together as far as it is written down:
constants, the values a name may have in its function, and arguments of the functions that make
errors for others. What is only known when it runs is shown as `…`.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from docs.generate_api import ROOMS, SOURCE, defined, parsed, rendered

PAGES = Path(__file__).parent / "reference" / "errors"
GAP = "…"
_DEEPEST = 6
_MOST = 24

Function = ast.FunctionDef
Scope = tuple[str, Function | None, ast.ClassDef | None, ast.AST | None]
"""A module, the function in it, that function's class, and the place in the function."""


@cache
def kinds() -> dict[str, ast.ClassDef]:
    """The error classes by name, each after the one it is made of."""
    parts = (parsed(f"lastbit.errors.{part}").body for part in ("asking", "further"))
    found = {n.name: n for body in parts for n in body if isinstance(n, ast.ClassDef)}
    found["Rejected"] = next(
        node
        for node in parsed("lastbit.checker.numbers").body
        if isinstance(node, ast.ClassDef) and node.name == "Rejected"
    )
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What is seen, what to do about it, and where it comes from."""

    kind: str
    room: str
    problem: str
    remedy: str


# ---------------------------------------------------------------- all functions and their calls


@cache
def modules() -> tuple[str, ...]:
    """All modules of lastbit, the errors themselves left out."""
    names = []
    for path in sorted((SOURCE / "lastbit").rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        names.append(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    apart = ("lastbit.errors", "lastbit.serve.problems")
    return tuple(name for name in names if not name.startswith(apart))


def scopes(module: str) -> Iterator[tuple[Scope, ast.AST]]:
    """Every node of a module, with the function that it stands in."""
    stack: list[tuple[Scope, ast.AST]] = [((module, None, None, None), parsed(module))]
    while stack:
        scope, node = stack.pop()
        for child in ast.iter_child_nodes(node):
            inner = scope
            if isinstance(child, ast.ClassDef):
                inner = (module, scope[1], child, None)
            elif isinstance(child, Function):
                inner = (module, child, scope[2], None)
            yield (*inner[:3], child), child
            stack.append((inner, child))


@cache
def calls() -> dict[str, list[tuple[Scope, ast.Call]]]:
    """Every call in lastbit by the last part of its name."""
    found: dict[str, list[tuple[Scope, ast.Call]]] = {}
    for module in modules():
        for scope, node in scopes(module):
            if isinstance(node, ast.Call):
                found.setdefault(_last(node.func), []).append((scope, node))
    # what is wrong with a card is gathered first, and raised together
    for scope, node in found.get("Problem", ()):
        path = ast.Name("path") if scope[1] and scope[1].name == "wrong" else node.args[1]
        words = [ast.keyword("problem", node.args[2]), ast.keyword("remedy", node.args[3])]
        found["CardRefused"].append((scope, ast.Call(ast.Name("CardRefused"), [path], words)))
    return found


def _last(function: ast.expr) -> str:
    match function:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


# ---------------------------------------------------------------- what an expression may say

Bound = Mapping[str, tuple[ast.expr, Scope, "Bound"]]


def texts(node: ast.expr, scope: Scope, bound: Bound, deep: int = 0) -> list[str]:
    """The texts that an expression may have, GAP for parts that are not written down."""
    if deep > _DEEPEST:
        return [GAP]

    def inside(part: ast.expr) -> list[str]:
        return texts(part, scope, bound, deep + 1)

    match node:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.JoinedStr(values=parts):
            return _joined([inside(part) for part in parts])
        case ast.FormattedValue(value=value):
            return [text if text.strip() and len(text) < 90 else GAP for text in inside(value)]
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _joined([inside(left), inside(right)])
        case ast.IfExp(body=one, orelse=other):
            return _merged([inside(one), inside(other)])
        case ast.BoolOp(op=ast.Or(), values=parts):
            return _merged([inside(part) for part in parts])
        case ast.Tuple(elts=parts):
            return [", ".join(pieces) for pieces in itertools.product(*map(inside, parts))][:_MOST]
        case ast.Name(id=name):
            return _named(name, scope, bound, deep)
        case ast.Call(func=ast.Attribute(value=value, attr="format")):
            return [re.sub(r"\{[^}]*\}", GAP, text) for text in inside(value)]
        case ast.Call(func=ast.Name(id="str"), args=[value]):
            return inside(value)
        case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(attr=name)):
            return _returned(name, node, scope, bound, deep)
    return [GAP]


def _joined(parts: list[list[str]]) -> list[str]:
    combined = itertools.islice(itertools.product(*parts), _MOST)
    return ["".join(pieces) for pieces in combined]


def _merged(parts: list[list[str]]) -> list[str]:
    return list(dict.fromkeys(text for part in parts for text in part))[:_MOST]


def _named(name: str, scope: Scope, bound: Bound, deep: int) -> list[str]:
    module, function, _, here = scope
    if function is not None:
        values = _assigned(name, function, here)
        if values:
            return _merged([texts(v, (*scope[:3], v), bound, deep + 1) for v in values])
        if name in bound:
            value, where, outer = bound[name]
            return texts(value, where, outer, deep + 1)
        if name in _parameters(function):
            default = _defaults(function).get(name)
            return [GAP] if default is None else texts(default, scope, {}, deep + 1)
    place = defined(module, name)
    if place is not None and isinstance(place[1], ast.Assign | ast.AnnAssign) and place[1].value:
        return texts(place[1].value, (place[0], None, None, None), {}, deep + 1)
    return [GAP]


def _assigned(name: str, function: Function, place: ast.AST | None = None) -> list[ast.expr]:
    """What a name may be at a place of a function, by the assignments that lead there.

    Going back from the place, block by block: one that is certainly made ends the search, those in
    branches are added up. Without a place, whatever the function gives the name anywhere.
    """
    if place is None or place not in _around(function):
        return [one for pair in _all_pairs(function) for one in _matched(name, *pair)]
    found: list[ast.expr] = []
    while place is not function:
        outer, before = _around(function)[place]
        for statement in reversed(before):
            made = [one for pair in _pairs(statement) for one in _matched(name, *pair)]
            if made:
                return found + made
            inner = [n for n in ast.walk(statement) if not isinstance(n, Function)]
            branch = [one for n in inner for pair in _pairs(n) for one in _matched(name, *pair)]
            found += branch
            whole = isinstance(statement, ast.If) and statement.orelse
            if branch and (whole or isinstance(statement, ast.Match | ast.Try)):
                return found
        if isinstance(outer, ast.For | ast.If | ast.While | ast.expr | ast.stmt):
            made = [one for pair in _pairs(outer) for one in _matched(name, *pair)]
            if made:
                return found + made
        place = outer
    return found


@cache
def _around(function: Function) -> dict[ast.AST, tuple[ast.AST, list[ast.stmt]]]:
    """Of every node of a function what it stands in, and the statements before it there."""
    found: dict[ast.AST, tuple[ast.AST, list[ast.stmt]]] = {}
    for node in ast.walk(function):
        for _, value in ast.iter_fields(node):
            block = value if isinstance(value, list) else [value]
            for place, child in enumerate(block):
                if isinstance(child, ast.AST):
                    before = [one for one in block[:place] if isinstance(one, ast.stmt)]
                    found[child] = (node, before)
    return found


@cache
def _all_pairs(function: Function) -> list[tuple[ast.expr, ast.expr]]:
    return [pair for node in ast.walk(function) for pair in _pairs(node)]


def _pairs(node: ast.AST) -> list[tuple[ast.expr, ast.expr]]:
    """Targets and values of one assignment."""
    match node:
        case ast.Assign(targets=[target], value=value):
            return [(target, value)]
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            return [(target, value)]
        case ast.NamedExpr(target=target, value=value) | ast.AugAssign(target=target, value=value):
            return [(target, value)]
        case ast.For(target=target, iter=ast.Tuple(elts=rows) | ast.List(elts=rows)):
            return [(target, row) for row in rows]
    return []


def _matched(name: str, target: ast.expr, value: ast.expr) -> Iterator[ast.expr]:
    if isinstance(target, ast.Name):
        if target.id == name:
            yield value
        return
    if not isinstance(target, ast.Tuple):
        return
    branches = [value.body, value.orelse] if isinstance(value, ast.IfExp) else [value]
    for branch in branches:
        for place, one in enumerate(target.elts):
            if not (isinstance(one, ast.Name) and one.id == name):
                continue
            if isinstance(branch, ast.Tuple) and len(branch.elts) == len(target.elts):
                yield branch.elts[place]
            else:
                yield ast.Constant(value=GAP)


def _parameters(function: Function) -> list[str]:
    given = function.args
    return [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]


def _defaults(function: Function) -> dict[str, ast.expr]:
    given = function.args
    plain = [one.arg for one in (*given.posonlyargs, *given.args)]
    found = dict(zip(plain[len(plain) - len(given.defaults) :], given.defaults, strict=True))
    keyword = zip(given.kwonlyargs, given.kw_defaults, strict=True)
    return found | {one.arg: value for one, value in keyword if value is not None}


def _returned(name: str, call: ast.Call, scope: Scope, bound: Bound, deep: int) -> list[str]:
    """What a function of the same module, or one that it imports, returns as text."""
    place = defined(scope[0], name)
    if place is None or not isinstance(place[1], Function):
        return [GAP]
    function = place[1]
    if not (function.returns and "str" in ast.unparse(function.returns)):
        return [GAP]
    values = [n.value for n in ast.walk(function) if isinstance(n, ast.Return) and n.value]
    inner = {key: (value, scope, bound) for key, value in given_to(function, call).items()}
    found = [texts(v, (place[0], function, None, v), inner, deep + 1) for v in values]
    return _merged(found) or [GAP]


def given_to(function: Function, call: ast.Call) -> dict[str, ast.expr]:
    """The arguments of a call by the function's names for them."""
    names = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
    if names[:1] in (["self"], ["cls"]):
        names = names[1:]
    found = dict(zip(names, call.args, strict=False))
    return found | {word.arg: word.value for word in call.keywords if word.arg is not None}


# ---------------------------------------------------------------- messages


@cache
def raised() -> tuple[tuple[str, str, str, str, str], ...]:
    """Room, class, parameter, problem and remedy of every error, as far as they are written."""
    found = []
    for kind in kinds():
        for scope, call in calls().get(kind, ()):
            room = scope[0].split(".")[1] if scope[0].count(".") else "lastbit"
            for told in _expanded(kind, call, scope, {}, 0):
                found.append((room, kind, *told))
    return tuple(found)


def messages() -> list[Message]:
    """Every family of messages that lastbit can raise, once for each room."""
    found: dict[tuple[str, str, str], tuple[dict[str, None], dict[str, None]]] = {}
    for room, kind, what, problem, remedy in raised():
        whats, remedies = found.setdefault((room, kind, problem), ({}, {}))
        whats[what] = None
        remedies[remedy] = None
    return [
        Message(
            kind=kind,
            room=room,
            problem=_plain(f"{_few(whats, '/', 3)} {problem}"),
            remedy=_few(remedies, " / ", 4),
        )
        for (room, kind, problem), (whats, remedies) in found.items()
    ]


def _few(alternatives: Iterable[str], between: str, most: int) -> str:
    listed = [one for one in alternatives if one]
    return between.join(listed) if len(listed) <= most else GAP


def _expanded(
    kind: str, call: ast.Call, scope: Scope, bound: Bound, deep: int
) -> Iterator[tuple[str, str, str]]:
    """The problem and remedy of one call; of a function that others call, once for each of them."""
    function = scope[1]
    free = set() if function is None else _free(call, function) - set(bound)
    if function is not None and free and deep < 3:
        named = scope[2].name if scope[2] and function.name == "__init__" else function.name
        callers = [
            (where, one)
            for where, one in calls().get(named, ())
            if free & set(given_to(function, one)) and _means(one, where, function, scope)
        ]
        for where, one in callers:
            arguments: Bound = {n: (v, where, {}) for n, v in given_to(function, one).items()}
            outer = where[1]
            if outer is not None and outer is not function and _free(one, outer):
                yield from _through(kind, call, scope, one, where, deep)
            else:
                yield from _said(kind, call, scope, {**bound, **arguments})
        if callers:
            return
    yield from _said(kind, call, scope, bound)


def _through(
    kind: str, call: ast.Call, scope: Scope, one: ast.Call, where: Scope, deep: int
) -> Iterator[tuple[str, str, str]]:
    """The same where the caller only hands on what it was given itself."""
    assert scope[1] is not None and where[1] is not None
    outer = where[1]
    for further, two in calls().get(outer.name, ()):
        if not _means(two, further, outer, where):
            continue
        handed: Bound = {n: (v, further, {}) for n, v in given_to(outer, two).items()}
        arguments = {n: (v, where, handed) for n, v in given_to(scope[1], one).items()}
        yield from _said(kind, call, scope, arguments)


def _means(call: ast.Call, where: Scope, function: Function, scope: Scope) -> bool:
    """Whether a call by this name is one of the function: of its own, or by import."""
    if isinstance(call.func, ast.Attribute):
        return scope[2] is not None and where[0].split(".")[1] == scope[0].split(".")[1]
    place = defined(where[0], function.name)
    return place is not None and (place[1] is function or place[1] is scope[2])


def _free(call: ast.Call, function: Function) -> set[str]:
    """Parameters of the function that the message is made of."""
    pieces = [*call.args[:1], *(word.value for word in call.keywords)]
    names = {n.id for piece in pieces for n in ast.walk(piece) if isinstance(n, ast.Name)}
    own = {name for name in _parameters(function) if not _assigned(name, function)}
    return names & own & {"problem", "remedy", "words", "message", "what", "why", "reason", "told"}


def _said(kind: str, call: ast.Call, scope: Scope, bound: Bound) -> Iterator[tuple[str, str, str]]:
    given = {word.arg: word.value for word in call.keywords if word.arg is not None}
    if "problem" not in given or "remedy" not in given:
        for text in texts(call.args[0], scope, bound) if call.args else ():
            problem, cut, remedy = text.partition("; ")
            yield ("", _plain(problem), _plain(remedy)) if cut else ("", _plain(text), "")
        return
    whats = texts(call.args[0], scope, bound) if call.args else [GAP]
    if kind == "CardRefused":  # the way to a field: budget.epsilon
        whats = [what.replace(", ", ".") for what in whats]
    problems = texts(given["problem"], scope, bound)
    remedies = texts(given["remedy"], scope, bound)
    paired = len(problems) == len(remedies)
    for what in whats:
        for place, problem in enumerate(problems):
            for remedy in [remedies[place]] if paired else remedies:
                yield _plain(what), _plain(problem), _plain(remedy)


def _plain(text: str) -> str:
    """On one line, braces of arguments without them, gaps not doubled."""
    text = re.sub(r"\{(\w+)\}", r"\1", " ".join(text.split()))
    return re.sub(rf"{GAP}(?:[ ,]*{GAP})+", GAP, text)


# ---------------------------------------------------------------- the pages

HEAD = """\
# Error index

Every error that lastbit raises on purpose is a `LastbitError`. It names the parameter or the step,
what is wrong with it, and what to do. No message holds a value of anybody's data. Search these
pages for the words that you see; `…` stands for what is only known when it runs: a name, a number,
a file. The command line prints the same words and ends with status 2.

| where | messages |
|---|---|
"""
_AGAIN = """\
A certificate that is rejected proves nothing. It was changed after it was written, or belongs to
other code or another version of lastbit: make it again, and report it if that is rejected too."""
_TITLES = {
    "checker": "rejected certificates: what the independent checker says of them",
    "cli": "the command line",
    "serve": "the server",
}


def told() -> dict[str, list[Message]]:
    """The messages of each room that say something; files outside of rooms are `files`."""
    rooms: dict[str, list[Message]] = {}
    for one in messages():
        if len(re.findall("[A-Za-z]{2,}", one.problem)) < 2:
            continue  # put together from parts that are known only when it runs, or caught inside
        room = one.room if one.room in _rooms() else "files"
        rooms.setdefault(room, []).append(one)
    return {room: sorted(rooms[room], key=_order) for room in sorted(rooms)}


@cache
def _rooms() -> frozenset[str]:
    return frozenset(path.name for path in (SOURCE / "lastbit").iterdir() if path.is_dir())


def _order(one: Message) -> tuple[int, str]:
    return list(kinds()).index(one.kind), one.problem.lstrip(GAP + " -").lower()


def _cell(text: str) -> str:
    """Text fit for a cell of a table."""
    return re.sub(r"([|\\*_<>`\[\]])", r"\\\1", text)


def table(room: str, own: list[Message]) -> str:
    """The page of one room."""
    about = _TITLES.get(room) or ROOMS.get(room) or "files and addresses"
    parts = [
        f"# Errors: {room}",
        f"{about[0].upper()}{about[1:]}. Others: [error index](README.md).",
    ]
    for kind, several in itertools.groupby(own, key=lambda one: one.kind):
        if kind == "Rejected":
            parts += [f"## {kind}", _AGAIN, "\n".join(f"- {_cell(one.problem)}" for one in several)]
            continue
        lines = [f"| {_cell(one.problem)} | {_cell(one.remedy)} |" for one in several]
        parts.append(f"## {kind}\n\n| you see | what to do |\n|---|---|\n" + "\n".join(lines))
    return "\n\n".join(parts) + "\n"


def index(rooms: Mapping[str, list[Message]]) -> str:
    """The page of the classes, with a link to each room."""
    rows = "\n".join(f"| [{room}]({room}.md) | {len(own)} |" for room, own in rooms.items())
    said = ast.get_docstring(parsed("lastbit.errors")) or ""
    tree = "\n".join(line[4:] for line in said.splitlines() if line.startswith("    "))
    parts = [HEAD + rows, "## The classes", f"```text\n{tree}\n```"]
    for kind, node in kinds().items():
        where = [room for room, own in rooms.items() if any(one.kind == kind for one in own)]
        links = ", ".join(f"[{room}]({room}.md#{kind.lower()})" for room in where)
        parts.append(f"### {kind}")
        module = "lastbit.checker.numbers" if kind == "Rejected" else "lastbit.errors"
        parts.append(rendered(ast.get_docstring(node) or "", module, "errors", kind, set()))
        parts.append(f"Raised in {links}." if where else "")
    return "\n\n".join(filter(None, parts)) + "\n"


def pages() -> dict[str, str]:
    """All pages by file name."""
    rooms = told()
    return {"README.md": index(rooms)} | {f"{room}.md": table(room, rooms[room]) for room in rooms}


def main() -> None:
    """Write the pages."""
    PAGES.mkdir(parents=True, exist_ok=True)
    written = pages()
    for name, text in written.items():
        (PAGES / name).write_text(text, "utf-8")
    print(f"wrote reference/errors: {len(written)} pages")


if __name__ == "__main__":
    main()
