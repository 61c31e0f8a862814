"""Nobody meets an error of Python's own: hostile calls of the whole public interface.

Each is refused by an error of lastbit's with a problem and a remedy, or it has an answer; and what
refuses has charged nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas
import pytest

import lastbit as lb
from lastbit.errors import InvalidParameter, LastbitError, UnknownName
from tests.evidence import Extent
from tests.release import hostile_calls as hostile


def wrong(folder: Path, *, seed: int, number: int) -> list[str]:
    """The calls that go wrong, and how."""
    world = hostile.world(folder)
    ledger, found = world["ledger"], []
    for call in hostile.calls(world, seed=seed, number=number):
        before = ledger.entries(last=1)[0].sequence
        error = hostile.refusal(call)
        if error is None:
            continue
        problem = hostile.problem_with(error, call)
        if problem is not None:
            found.append(f"{call}: {problem}")
        charged = ledger.entries(last=1)[0].sequence != before
        if charged and call.target.name not in hostile.AFTER_PAYING:
            found.append(f"{call}: is charged, and refused: {error}")
    return found


def test_hostile_calls_are_refused(folder: Path, extent: Extent) -> None:
    assert not wrong(folder, seed=2026, number=extent.number(500, 4_000))


def test_what_goes_wrong_is_seen(folder: Path) -> None:
    def divided(number: int) -> float:
        return 1 / number

    def without_remedy(number: int) -> float:
        raise InvalidParameter("number", problem="is 0", remedy="")

    def with_inner_arguments(number: int) -> float:
        return divided()  # type: ignore[call-arg]

    for inner in (divided, without_remedy, with_inner_arguments):
        call = hostile.Call(hostile.Target("inner", inner), (), {"number": 0})
        error = hostile.refusal(call)
        assert error is not None and hostile.problem_with(error, call)
    outer = hostile.Call(hostile.Target("outer", divided), (), {})
    error = hostile.refusal(outer)
    assert error is not None and hostile.problem_with(error, outer) is None
    assert len(hostile.targets(hostile.world(folder))) > 350


FRAME = pandas.DataFrame(
    {"patient": [1, 2], "region": ["n", "s"], "sex": ["m", "f"], "cost": [1.0, 2.0]}
)
KEYS = {"region": ["n", "s"], "sex": ["m", "f"]}


@pytest.fixture
def visits() -> Any:
    return lb.table(FRAME, unit="patient", max_rows=2, keys=KEYS)


def test_names_are_taken_the_same_way(visits: Any) -> None:
    ways = [(["region", "sex"],), ("region", "sex"), ({"region": "region", "sex": "sex"},)]
    grouped = [visits.group_by(*way).agg(n=lb.count()).query for way in ways]
    tables = [visits.marginals(*way).query for way in ways]
    assert all(one == grouped[0] for one in grouped)
    assert all(one == tables[0] for one in tables)
    assert [key.name for key in tables[0].keys] == ["region", "sex"]
    named = visits.group_by("region", {"s": "sex"}, t="upper(sex)").keys
    assert [key.name for key in named] == ["region", "s", "t"]
    assert [key.name for key in visits.marginals("region", s="sex").query.keys] == ["region", "s"]


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ("filter", r"did you mean \.where\("),
        ("select", r"\.agg\(.*\.with_columns\("),
        ("groupby", r"did you mean \.group_by\("),
        ("sort_values", r"\.order_by\("),
        ("to_pandas", r"\.release\(epsilon=1\)\.to_pandas\(\)"),
        ("whre", "did you mean where"),
    ],
)
def test_steps_of_other_libraries_have_their_names_here(visits: Any, step: str, words: str) -> None:
    with pytest.raises(UnknownName, match=words):
        getattr(visits, step)
    assert not hasattr(visits, step)


@pytest.mark.parametrize("name", ["__array__", "_ipython_display_"])
def test_names_that_tools_look_for_are_plainly_missing(visits: Any, name: str) -> None:
    with pytest.raises(AttributeError) as error:
        getattr(visits, name)
    assert not isinstance(error.value, LastbitError)


def test_what_is_named_by_the_steps_is_there(visits: Any) -> None:
    from lastbit.release.step_names import _STEPS  # the remedies are tried, not the table of names

    code = "visits.group_by('region').agg(n=lb.count())"
    for remedy in {text for words in _STEPS.values() for text in words.split(", or ")}:
        if "join" not in remedy:
            after = code if "order_by" in remedy or "limit" in remedy else "visits"
            after += ".agg(n=lb.count())" if "release" in remedy else ""
            if ".to_" not in remedy:
                eval(f"{after}{remedy}", {"visits": visits, "lb": lb})  # noqa: S307


def test_keys_of_group_by_name_the_way(visits: Any) -> None:
    with pytest.raises(LastbitError, match=r"keys=\{\"age\".*\.where\("):
        visits.group_by("region", keys=["n"])
    bare = lb.table(FRAME, unit="patient", max_rows=2)
    assert bare.where("region IN ('n', 's')").group_by("region").keys[0].values == ("n", "s")
