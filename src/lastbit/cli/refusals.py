"""Errors of the rooms below, in the words of the command line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import click

from lastbit.errors import InvalidParameter

OF_FILES = ("--out", "--file")

OTHER = re.compile(r"^or ([a-z_]+),")
ARGUMENT = re.compile(r"""\b([a-z][a-z_]*)=(["']?)([\w./+-]*)\2""")


@contextmanager
def option_names() -> Iterator[None]:
    """Turn `epsilon ...; pass grid="auto"` into `--epsilon ...; pass --grid auto`.

    Only names that the running command has as options are turned; any other stays as it is.
    """
    try:
        yield
    except InvalidParameter as error:
        raise _renamed(error, _options()) from error


@contextmanager
def said_of(option: str) -> Iterator[None]:
    """The errors of files, which speak of --out and --file, said of another option."""
    try:
        yield
    except InvalidParameter as error:
        name = error.parameter
        for usual in OF_FILES:
            name = name.replace(usual, option)
        raise InvalidParameter(name, problem=error.problem, remedy=error.remedy) from error


def _options() -> dict[str, str]:
    context = click.get_current_context(silent=True)
    if context is None:
        return {}
    return {p.name: p.opts[0] for p in context.command.params if p.name and p.opts}


def _renamed(error: InvalidParameter, options: dict[str, str]) -> InvalidParameter:
    def option(match: re.Match[str]) -> str:
        name, _, value = match.groups()
        return f"{options[name]} {value}".rstrip() if name in options else match[0]

    problem = OTHER.sub(lambda match: f"or {options.get(match[1], match[1])},", error.problem)
    return InvalidParameter(
        options.get(error.parameter, error.parameter),
        problem=ARGUMENT.sub(option, problem),
        remedy=ARGUMENT.sub(option, error.remedy),
    )
