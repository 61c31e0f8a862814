"""Whatever users could import or call in 0.1 can be imported and called now."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from typing import Any

import pytest

from tests.compatibility.kept import read
from tests.data.recorded import attributes, found, kind, signature

RECORDED: dict[str, dict[str, Any]] = read("names.json")
DOCUMENTED: dict[str, str] = RECORDED.pop("documented")
# 0.1 was recorded before it was released, and lost these before anybody had it: files that lie
# elsewhere in their room, whose names the room shows; pictures of the theory, which the pages hold
MOVED = (
    "lastbit.audit.attacks.preimage",
    "lastbit.audit.declared_noise",
    "lastbit.audit.distinguish",
    "lastbit.audit.shelf",
    "lastbit.audit.target",
    "lastbit.mechanisms.admissible",
    "lastbit.tables.cost",
    "lastbit.tables.schema",
    "lastbit.verify.arithmetic",
    "lastbit.verify.check",
    "lastbit.verify.check_rounding",
    "lastbit.verify.law",
    "lastbit.verify.semantics",
    "lastbit.verify.uniforms",
)
GONE = {
    "lastbit.audit.shelf": {"LIBRARIES", "targets"},
    "lastbit.tables:Plan": {"keys_part"},
    "lastbit.report": {
        *("Chart", "Curve", "Mark", "chart", "powers_of_ten", "made_up_waits"),
        *(f"{name}_figure" for name in (
            *("admissible", "composition", "composition_curve", "count", "gaussian_curve"),
            *("laplace", "planar", "poll", "posterior", "smooth_sensitivity", "uniform"),
        )),
    },
}  # fmt: skip
NAMES = [
    f"{package}:{name}"
    for package, names in RECORDED.items()
    for name in names
    if name not in GONE.get(package, ())
]


def lost(before: str | None, now: str | None) -> list[str]:
    """Ways of calling that worked before and do not work now, from two signatures.

    >>> lost("(value, *, scale=...)", "(value, scale=..., *, size=...)")
    []
    >>> lost("(value, *, scale=...)", "(x, *, scale, size)")
    ['value as a name', 'value by its place', 'x left out', 'scale left out', 'size left out']
    """
    if before is None or now is None:
        return []
    return list(_lost(_arguments(before), _arguments(now)))


def _arguments(text: str) -> ast.arguments:
    function = ast.parse(f"def f{text}: ...").body[0]
    assert isinstance(function, ast.FunctionDef)
    return function.args


def _lost(before: ast.arguments, now: ast.arguments) -> Iterator[str]:
    named = {one.arg for one in (*now.args, *now.kwonlyargs)}
    places = [*now.posonlyargs, *now.args]
    for one in (*before.args, *before.kwonlyargs):
        if one.arg not in named and now.kwarg is None:
            yield f"{one.arg} as a name"
    for place, one in enumerate([*before.posonlyargs, *before.args]):
        by_place_alone = place < len(before.posonlyargs)
        there = place < len(places) and (by_place_alone or places[place].arg == one.arg)
        if not there and now.vararg is None:
            yield f"{one.arg} by its place"
    if before.vararg is not None and now.vararg is None:
        yield "any number of arguments"
    if before.kwarg is not None and now.kwarg is None:
        yield "any name"
    allowed = {*_needed(before), *(one.arg for one in places[: len(before.posonlyargs)])}
    yield from (f"{name} left out" for name in _needed(now) if name not in allowed)


def _needed(arguments: ast.arguments) -> list[str]:
    by_place = [one.arg for one in (*arguments.posonlyargs, *arguments.args)]
    by_place = by_place[: len(by_place) - len(arguments.defaults)]
    pairs = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    return by_place + [one.arg for one, default in pairs if default is None]


@pytest.mark.parametrize("path", NAMES)
def test_a_public_name_is_there_and_called_as_before(path: str) -> None:
    package, _, name = path.partition(":")
    before, thing = RECORDED[package][name], found(path)
    if "same" in before:
        assert before["same"].partition(":")[0] in MOVED or thing is found(before["same"])
        return
    match before["kind"]:
        case "function":
            assert callable(thing)
        case "class" | "module" as expected:
            assert kind(thing) == expected
    if "call" in before:
        assert lost(before["call"], signature(thing)) == []
    if inspect.isclass(thing):
        now = attributes(thing)
        kept = {
            member: call
            for member, call in before["attributes"].items()
            if member not in GONE.get(path, ())
        }
        assert set(kept) <= set(now)
        for member, call in kept.items():
            assert (member, lost(call, now[member])) == (member, [])
            assert call is None or callable(getattr(thing, member))


@pytest.mark.parametrize("package", [package for package in RECORDED if package not in MOVED])
def test_a_package_still_says_that_its_names_are_public(package: str) -> None:
    listed = getattr(found(package), "__all__", ())
    assert set(RECORDED[package]) - GONE.get(package, set()) <= set(listed)
    assert set(listed) <= set(dir(found(package)))  # also where they are loaded when first used


@pytest.mark.parametrize("path", [p for p in DOCUMENTED if p.partition(":")[0] not in MOVED])
def test_a_documented_path_leads_somewhere(path: str) -> None:
    expected, thing = DOCUMENTED[path], found(path)
    if expected == "class":
        assert inspect.isclass(thing)
    elif expected == "function":
        assert callable(thing)


def test_every_package_is_recorded() -> None:
    assert len(RECORDED) == 19 and len(NAMES) > 300 and len(DOCUMENTED) > 90


# ---------------------------------------------------------------- the check itself


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("(a)", "(a, b=...)"),
        ("(a)", "(a, *, b=...)"),
        ("(a, b)", "(a, b=...)"),
        ("(a, /)", "(other, /)"),
        ("(a, /)", "(other)"),
        ("(*, a)", "(a)"),
        ("(a, b=...)", "(*values, **names)"),
        ("(*values)", "(*other)"),
    ],
)
def test_what_takes_more_has_lost_nothing(before: str, now: str) -> None:
    assert lost(before, now) == []


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("(a, b=...)", "(a)"),
        ("(a)", "(renamed)"),
        ("(a, b)", "(b, a)"),
        ("(a)", "(*, a)"),
        ("(a)", "(a, /)"),
        ("(a=...)", "(a)"),
        ("(*, a=...)", "(*, a)"),
        ("(a)", "(a, b)"),
        ("(a)", "(a, *, b)"),
        ("(*values)", "(a=...)"),
        ("(**names)", "(a=...)"),
        ("(a, b, /)", "(a, /)"),
    ],
)
def test_what_takes_less_is_found(before: str, now: str) -> None:
    assert lost(before, now) != []
