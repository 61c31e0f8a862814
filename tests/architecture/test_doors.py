"""Doors of rooms: lazy, and yet like any other package to people and their tools."""

import copy
import importlib
import pickle
import pydoc
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import lastbit
from lastbit.doors import opened

SRC = Path(lastbit.__file__).parent
ROOMS = sorted(path.parent.name for path in SRC.glob("*/__init__.pyi"))


def told_by(code: str, *, path: Path | None = None, status: int = 0) -> str:
    """What a fresh interpreter prints; it finds lastbit in `path` if that is given."""
    before = "" if path is None else f"import sys; sys.path.insert(0, {str(path)!r})\n"
    ran = subprocess.run(
        [sys.executable, "-c", before + code], capture_output=True, text=True, check=False
    )
    assert ran.returncode == status, ran.stderr
    return ran.stdout + ran.stderr


def test_everything_public_comes_with_a_star():
    code = "from lastbit import *; import lastbit; print(set(lastbit.__all__) - set(globals()))"
    assert told_by(code + "; print(sum is lastbit.sum)") == "set()\nTrue\n"


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_explains_itself_and_its_public_names(room):
    module = importlib.import_module(f"lastbit.{room}")
    page = pydoc.plain(pydoc.render_doc(module))
    assert page.startswith(f"Python Library Documentation: package lastbit.{room} in lastbit")
    assert all(name in page for name in module.__all__)


def test_rooms_that_an_answer_crosses_call_two_things_by_two_names():
    """Failed before: the sessions of engines and the connections of ledgers had one name."""
    shown: dict[str, list[object]] = {}
    for room in ("kernel", "ledger", "release", "tables"):
        module = importlib.import_module(f"lastbit.{room}")
        for name in dir(module):
            if not name.startswith("__"):
                shown.setdefault(name, []).append(getattr(module, name))
    assert not [name for name, things in shown.items() if any(t is not things[0] for t in things)]


def test_dir_names_what_the_door_shows_before_anything_is_loaded():
    code = "import lastbit, sys; print('Laplace' in dir(lastbit), 'opened' in dir(lastbit))"
    assert told_by(code + "; print('lastbit.mechanisms.laplace' in sys.modules)") == (
        "True False\nFalse\n"
    )


def test_a_file_does_not_hide_the_function_of_the_same_name():
    code = "import lastbit.sampling.choice, lastbit; print(callable(lastbit.sampling.choice))"
    assert told_by(code) == "True\n"


@pytest.mark.parametrize("wrong", ["Laplas", "sampeling"])
def test_a_missing_name_is_told_what_comes_near(wrong):
    told = told_by(f"import lastbit; lastbit.{wrong}", status=1)
    right = {"Laplas": "Laplace", "sampeling": "sampling"}[wrong]
    assert told.splitlines()[-1] == (
        f"AttributeError: module 'lastbit' has no attribute {wrong!r}. Did you mean: {right!r}?"
    )
    told = told_by(f"from lastbit import {wrong}", status=1)
    assert f"ImportError: cannot import name {wrong!r} from 'lastbit'" in told


def test_values_and_classes_pickle_and_copy_by_the_file_they_live_in():
    noise = lastbit.Laplace(sensitivity=1, epsilon="1/2")
    for thing in (noise, noise.guarantee, lastbit.Laplace, lastbit.sum, lastbit.privacy.PureDP):
        assert pickle.loads(pickle.dumps(thing)) == thing
        assert copy.deepcopy(thing) == copy.copy(thing) == thing
    fresh = f"import pickle; print(pickle.loads({pickle.dumps(noise)!r}))"
    assert told_by(fresh) == f"{noise}\n"


def test_threads_that_open_every_door_at_once_see_whole_rooms():
    code = f"""
import importlib, sys, threading
sys.setswitchinterval(1e-6)
rooms, wrong, start = {ROOMS!r}, [], threading.Barrier(16)
def use(turn):
    start.wait()
    for step in range(len(rooms)):
        room = importlib.import_module("lastbit." + rooms[(turn + step) % len(rooms)])
        for name in room.__all__:
            try:
                getattr(room, name)
            except BaseException as error:
                wrong.append((name, repr(error)))
threads = [threading.Thread(target=use, args=(turn,)) for turn in range(16)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(wrong)
"""
    assert told_by(code) == "[]\n"


def test_reloading_keeps_the_door():
    code = """
import importlib, lastbit, lastbit.privacy
before = lastbit.privacy.PureDP
again = importlib.reload(lastbit.privacy)
assert again is lastbit.privacy and again.PureDP is before and again.ZCDP(1)
assert importlib.reload(lastbit).Laplace is lastbit.mechanisms.Laplace
print(sorted(again.__all__) == again.__all__)
"""
    assert told_by(code) == "True\n"


def test_it_all_works_from_a_zip_file(tmp_path):
    archive = tmp_path / "house.zip"
    with zipfile.ZipFile(archive, "w") as house:
        for file in SRC.rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts:
                house.write(file, Path("lastbit") / file.relative_to(SRC))
    code = """
import lastbit; print(lastbit.__file__); print(lastbit.exact.rational('1/3')); lastbit.table
from lastbit.report import certificate_page, law_picture
bound = lastbit.verify.snapping_bound(epsilon=1, bound=2).certificate()
print(lastbit.verify.problem_of(bound), "</html>" in certificate_page(bound))
print("</svg>" in law_picture("a title", ()))"""
    told = told_by(code, path=archive)
    assert told == f"{archive}/lastbit/__init__.py\n1/3\nNone True\nTrue\n"


def test_the_list_is_read_as_mypy_reads_it():
    loaded, names, public = opened("lastbit.exact")
    assert public == sorted(public)
    assert set(public) <= set(names())
    assert loaded("rational") is lastbit.exact.rational
