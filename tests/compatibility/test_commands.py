"""Whatever could be typed after `lastbit` in 0.1 can be typed now."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.compatibility.kept import read
from tests.data.recorded import commands

RECORDED: dict[str, dict[str, Any]] = read("commands.json")
NOW = commands()
# pictures of the theory, which the pages hold: `make figures` draws them
GONE = ("lastbit figure",)


def lost(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """What one command no longer takes, or newly asks for; each parameter is told by its names."""
    problems = []
    places = [[one for one in known.values() if _is_argument(one)] for known in (before, now)]
    if len(places[1]) < len(places[0]) or any(
        one.get("required") for one in places[1][len(places[0]) :]
    ):
        problems.append("arguments")
    pairs = [("an argument", one, other) for one, other in zip(*places, strict=False)]
    for names, one in before.items():
        if not _is_argument(one):
            others = [other for key, other in now.items() if set(names.split()) <= set(key.split())]
            pairs += [(names, one, other) for other in others]
            problems += [] if others else [f"{names} is gone"]
    for names, one, other in pairs:
        same = all(one.get(part) == other.get(part) for part in ("kind", "is_flag", "values"))
        choices = set(one.get("choices", ())) <= set(other.get("choices", ()))
        if "choices" in other and "choices" not in one:
            choices = False
        less = one.get("multiple", False) > other.get("multiple", False)
        if (
            not same
            or not choices
            or less
            or other.get("required", False) > one.get("required", False)
        ):
            problems.append(f"{names} takes less")
    known = {name for key in before for name in key.split()}
    problems += [
        f"{names} is needed"
        for names, other in now.items()
        if not _is_argument(other) and other.get("required") and not known & set(names.split())
    ]
    return problems


def _is_argument(parameter: dict[str, Any]) -> bool:
    return bool(parameter["kind"] == "argument")


@pytest.mark.parametrize("path", [path for path in RECORDED if not path.startswith(GONE)])
def test_a_command_takes_what_it_took(path: str) -> None:
    assert path in NOW
    assert lost(RECORDED[path], NOW[path]) == []


def test_every_command_is_recorded() -> None:
    assert len(RECORDED) >= 50
    assert {path.split()[1] for path in RECORDED if " " in path} >= {"query", "check", "ledger"}


# ---------------------------------------------------------------- the check itself


def changed(**change: Any) -> dict[str, Any]:
    """`lastbit query` with one parameter replaced, or without it."""
    found = copy.deepcopy(RECORDED["lastbit query"])
    for name, parameter in change.items():
        key = name if name in found else f"--{name}"
        if parameter is None:
            del found[key]
        else:
            found[key] = parameter
    return found


@pytest.mark.parametrize(
    "change",
    [
        {"json": None},
        {"json": {"kind": "option"}},
        {"epsilon": {"kind": "option", "required": True}},
        {"epsilon": {"kind": "option", "choices": ["1"]}},
        {"epsilon": {"kind": "option", "values": 2}},
        {"sql": None},
        {"third": {"kind": "argument", "required": True}},
        {"new": {"kind": "option", "required": True}},
    ],
)
def test_a_command_that_takes_less_is_found(change: dict[str, Any]) -> None:
    assert lost(RECORDED["lastbit query"], changed(**change)) != []


@pytest.mark.parametrize(
    "change",
    [
        {"new": {"kind": "option"}},
        {"third": {"kind": "argument"}},
        {"new": {"kind": "option", "is_flag": True}},
    ],
)
def test_a_command_that_takes_more_is_not(change: dict[str, Any]) -> None:
    assert lost(RECORDED["lastbit query"], changed(**change)) == []
