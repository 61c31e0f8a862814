"""Doors: what a room shows to the others, loaded when it is first asked for.

A room's `__init__.pyi` lists its names and the file of each. Type checkers and editors read it as
it is; `opened` reads the same list at run time, so that importing a room loads none of its files.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

_IMPORT = re.compile(r"^from (\S+) import (?:\(([^)]*)\)|(.*))$", re.MULTILINE)
_PUBLIC = re.compile(r"^__all__ = \[([^]]*)\]", re.MULTILINE)
_NAME = re.compile(r"\w+")


class _Room(ModuleType):
    """A package whose names are not hidden by its files of the same name.

    Importing `lastbit.sampling.choice` makes the import system set the attribute `choice` of
    `lastbit.sampling` to that file; the room promises the function.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if not (isinstance(value, ModuleType) and name in self.__dict__["_shown"]):
            super().__setattr__(name, value)


def opened(room: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a room, from the list in its `__init__.pyi`."""
    module = sys.modules[room]
    listed = content(room, "__init__.pyi")
    places = {}
    for origin, many, one in _IMPORT.findall(listed):
        for entry in (many or one).split(","):
            name, _, shown = entry.strip().partition(" as ")
            if name:
                places[shown or name] = (origin, name)
    found = _PUBLIC.search(listed)
    public = _NAME.findall(found[1]) if found else []
    vars(module)["_shown"] = {name for name, (origin, _) in places.items() if origin != room}
    module.__class__ = _Room

    def loaded(name: str) -> Any:
        if name not in places:
            # with name and obj the interpreter adds which names come near
            message = f"module {room!r} has no attribute {name!r}"
            raise AttributeError(message, name=name, obj=module)
        origin, inner = places[name]
        value = (
            import_module(f"{room}.{inner}")
            if origin == room
            else getattr(import_module(origin), inner)
        )
        vars(module)[name] = value
        return value

    def names() -> list[str]:
        return sorted({*places, *(name for name in vars(module) if name.startswith("__"))})

    return loaded, names, public


def content(room: str, name: str) -> str:
    """The text of a file in a room, by way of the loader: a room may lie in a zip file."""
    module = sys.modules[room]
    assert module.__file__ is not None and module.__spec__ is not None
    loader: Any = module.__spec__.loader  # of files and of zip files; both have get_data
    found: bytes = loader.get_data(os.path.join(os.path.dirname(module.__file__), name))
    return found.decode()
