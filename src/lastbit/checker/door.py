"""What this room shows, each name loaded when it is first asked for: a kernel asks for prices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any

_PLACES: Mapping[str, str] = MappingProxyType({
    "Rejected": "numbers", "beliefs": "dispatch", "certificate_in": "dispatch",
    "check": "dispatch", "check_apart_from_code": "dispatch", "check_price": "price",
    "check_query": "dispatch", "names_code": "dispatch", "problem_of": "dispatch",
    "remarks_on": "dispatch", "taken_on_trust": "dispatch",
})  # fmt: skip


def opened(room: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of the room, wherever it was copied to."""

    def loaded(name: str) -> Any:
        if name not in _PLACES:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        return getattr(import_module(f".{_PLACES[name]}", room), name)

    return loaded, lambda: [*_PLACES, "__all__", "__doc__", "__file__"], list(_PLACES)
