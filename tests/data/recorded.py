"""What users can name: public names with their parameters, documented paths, commands."""

from __future__ import annotations

import ast
import importlib
import inspect
import platform
import re
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import click

from lastbit.cli import main

PACKAGES = (
    "lastbit",
    *(
        f"lastbit.{room}"
        for room in (
            *("errors", "exact", "laws", "sampling", "privacy", "mechanisms", "sensitivity", "geo"),
            *("verify", "audit", "audit.attacks", "audit.targets", "tables", "tables.backends"),
            *("ledger", "release", "report", "cli"),
        )
    ),
)


# ---------------------------------------------------------------- names


def names(root: Path) -> dict[str, Any]:
    """Every public name of every package, and every path that the documentation names."""
    known: dict[int, str] = {}
    packages: dict[str, Any] = {}
    for package in reversed(PACKAGES):  # rooms first: `lastbit` itself shows what is theirs
        things = {name: found(f"{package}:{name}") for name in exported(package)}
        packages[package] = {
            name: {"same": known[id(thing)]} if id(thing) in known else described(thing)
            for name, thing in things.items()
        }
        known |= {
            id(thing): f"{package}:{name}"
            for name, thing in things.items()
            if kind(thing) in ("class", "function")
        }
    return {**packages, "documented": {path: kind(found(path)) for path in documented(root)}}


def exported(package: str) -> list[str]:
    return sorted(getattr(importlib.import_module(package), "__all__", ()))


def found(path: str) -> Any:
    """What a path `module` or `module:name.attribute` leads to, imported as users do."""
    module, _, name = path.partition(":")
    try:
        thing = importlib.import_module(module)
    except ModuleNotFoundError:  # `package.name` in a page may be a function of the package
        package, _, last = module.rpartition(".")
        thing = getattr(importlib.import_module(package), last)
    for part in name.split(".") if name else ():
        thing = getattr(thing, part)
    return thing


def kind(thing: Any) -> str:
    if inspect.ismodule(thing):
        return "module"
    if inspect.isclass(thing):
        return "class"
    return "function" if inspect.isroutine(thing) else "value"


def described(thing: Any) -> dict[str, Any]:
    """Its kind; how it is called; of a class, its public attributes and how methods are called."""
    called = {"call": signature(thing)} if callable(thing) and signature(thing) else {}
    members = {"attributes": attributes(thing)} if inspect.isclass(thing) else {}
    return {"kind": kind(thing), **called, **members}


def signature(thing: Any) -> str | None:
    """Its parameters, `...` in place of defaults and no types; None where Python cannot tell.

    >>> signature(sorted)
    '(iterable, /, *, key=..., reverse=...)'
    """
    try:
        whole = inspect.signature(thing)
    except (TypeError, ValueError):
        return None
    plain = [
        one.replace(annotation=one.empty, default=one.empty if one.default is one.empty else ...)
        for one in whole.parameters.values()
    ]
    text = str(whole.replace(parameters=plain, return_annotation=whole.empty))
    return text.replace("Ellipsis", "...")


def attributes(kind: type) -> dict[str, str | None]:
    """Public attributes that classes of ours define, with the parameters of methods.

    Those of object, Exception and other classes of Python are left out: they are Python's.
    """
    ours = [base for base in kind.__mro__ if base.__module__.split(".")[0] == "lastbit"]
    own = {
        name
        for base in ours
        for name in (*vars(base), *vars(base).get("__annotations__", ()))
        if not name.startswith("_")
    }
    return {name: _method(kind, name) for name in sorted(own)}


def _method(kind: type, name: str) -> str | None:
    member = inspect.getattr_static(kind, name, None)
    if isinstance(member, staticmethod | classmethod) or inspect.isfunction(member):
        return signature(getattr(kind, name))
    return None


# ---------------------------------------------------------------- documented paths

PATH = re.compile(r"\blastbit(?:\.[a-z_0-9]+){2,}(?:[.:][A-Za-z_]\w*)?")
IMPORT = re.compile(r"from (lastbit(?:\.\w+)*) import (\([^)]*\)|[^\n]+)")


def documented(root: Path) -> list[str]:
    """Paths as `module:name` or `module`, in pages, in our errors and in docstrings of packages."""
    texts = [
        root / "README.md",
        root / "CHANGELOG.md",
        *sorted((root / "docs").rglob("*.md")),
    ]
    known = {"lastbit.cli:main"}  # the console script
    for text in [*(file.read_text("utf-8") for file in texts), *_spoken(root / "src")]:
        known |= set(_paths(text))
    return sorted(known)


def _paths(text: str) -> Iterator[str]:
    for module, listed in IMPORT.findall(text):
        for part in listed.strip("()").replace("...", "").split(","):
            if (name := part.split(" as ")[0].strip()).isidentifier():
                yield f"{module}:{name}"
    for path in PATH.findall(text):
        yield resolved(path.rstrip("."))


def resolved(path: str) -> str:
    """`a.b.C` as `a.b:C` where a.b is a module; what is none is refused."""
    module, _, name = path.partition(":")
    parts = module.split(".")
    for end in range(len(parts), 0, -1):
        try:
            importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        rest = [*parts[end:], *([name] if name else [])]
        return ".".join(parts[:end]) + (":" + ".".join(rest) if rest else "")
    raise ValueError(f"{path} leads nowhere")


def _spoken(source: Path) -> Iterator[str]:
    """Docstrings of packages, and sentences in the code that are none: error messages."""
    for file in sorted(source.rglob("*.py")):
        tree = ast.parse(file.read_text("utf-8"))
        own = {
            id(node.body[0].value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
            and node.body
            and isinstance(node.body[0], ast.Expr)
        }
        if file.name == "__init__.py":
            yield ast.get_docstring(tree) or ""
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and id(node) not in own
                and " " in node.value  # a sentence
            ):
                yield node.value


# ---------------------------------------------------------------- machine


def machine() -> dict[str, str]:
    """What certificates about code name beside the code: they are of no use elsewhere."""
    return {
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "platform": f"{platform.system()} {platform.machine()}",
        "libc": " ".join(platform.libc_ver()),
        **{name: metadata.version(name) for name in ("lastbit", "numpy", "duckdb")},
    }


# ---------------------------------------------------------------- commands


def commands() -> dict[str, Any]:
    """Every command by its path, with its arguments and options."""
    return dict(_commands(main, "lastbit"))


def _commands(
    command: click.Command, path: str, parent: click.Context | None = None
) -> Iterator[tuple[str, Any]]:
    settings: Any = command.context_settings
    context = click.Context(command, parent=parent, info_name=path, **settings)
    known = command.get_params(context)
    yield path, {" ".join((*one.opts, *one.secondary_opts)): _parameter(one) for one in known}
    if isinstance(command, click.Group):
        for name in (*command.list_commands(context), *getattr(command, "old_names", ())):
            below = command.get_command(context, name)
            assert below is not None
            yield from _commands(below, f"{path} {name}", context)


def _parameter(one: click.Parameter) -> dict[str, Any]:
    """Its kind, and whatever is not as usual."""
    choices = one.type.choices if isinstance(one.type, click.Choice) else ()
    unusual = {
        "is_flag": bool(getattr(one, "is_flag", False)),
        "required": one.required,
        "multiple": bool(getattr(one, "multiple", False)),
        "values": one.nargs if one.nargs != 1 else None,
        "choices": [str(choice) for choice in choices],
    }
    return {"kind": one.param_type_name, **{name: x for name, x in unusual.items() if x}}
