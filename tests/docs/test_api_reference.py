"""The Python reference says what the docstrings say, and every public name has an example."""

import ast
import re

import pytest

import lastbit
from docs import generate_api as api
from tests.docs.pages import executable


def test_the_pages_are_up_to_date():
    written = {page.name: page.read_text("utf-8") for page in api.PAGES.iterdir()}
    assert written == api.pages(), "run `make reference`"


def test_every_public_name_has_an_entry():
    own = {path for entry in api.entries() for path in entry.paths}
    rooms = {f"lastbit.{room}" for room in api.ROOMS}
    apart = {"lastbit.__version__", "lastbit.errors"}  # the error index has the errors
    assert {f"lastbit.{name}" for name in lastbit.__all__} <= own | rooms | apart
    for room in api.ROOMS:
        public = getattr(lastbit, room, None)
        names = api.shown_by(f"lastbit.{room}")[1] if public is None else public.__all__
        assert {f"lastbit.{room}.{name}" for name in names} <= own


def test_every_room_with_public_names_has_a_page():
    doors = {stub.parent.name for stub in (api.SOURCE / "lastbit").glob("*/__init__.pyi")}
    public = {room for room in doors if api.shown_by(f"lastbit.{room}")[1]}
    assert public - set(api.ROOMS) == {"cli", "errors"}  # cli.md, and the index of errors


def test_every_public_name_says_what_it_is():
    assert [entry.paths[-1] for entry in api.entries() if not entry.text] == []


def test_every_public_name_has_an_example():
    assert api.without_example() == []


def test_examples_on_other_pages_are_executed():
    for entry in api.entries():
        for page in re.findall(r"^Example  .*?\bdocs/(\S+\.md)", entry.text, re.M):
            assert executable((api.PAGES.parents[1] / page).read_text("utf-8"))


def test_an_example_brings_its_imports():
    module = "lastbit.mechanisms.laplace"
    shown = api.with_imports(module, ">>> Laplace(sensitivity=Fraction(1), scale=2)", set())
    assert shown.splitlines()[:2] == [
        ">>> from fractions import Fraction",
        ">>> from lastbit.mechanisms import Laplace",
    ]


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("def f(x, /, y: int = 3, *, z=None) -> str: ...", "f(x, /, y: int = 3, *, z=None) -> str"),
        ("def f(*parts: int, **rest: str): ...", "f(*parts: int, **rest: str)"),
    ],
)
def test_signatures(written: str, shown: str):
    (node,) = ast.parse(written).body
    assert isinstance(node, ast.FunctionDef)
    assert api.signature(node, "f") == shown
