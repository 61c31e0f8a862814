"""How much a test tries: some of its cases in `make test`, all of them in `make evidence`.

A test whose cases are a loop takes the fixture `extent`, and becomes two tests: `[few]`, and
`[many]`, which is marked `evidence`. A test with many parameters is marked `thinned(one_in=4)`: all
but one in four of them, the first and the last are marked `evidence`, and of four or fewer all but
the first; or single ones are `late`.
What has no small part is marked `evidence` itself. `make check` runs everything but `[few]`, which
`[many]` holds; of tests on servers (`conftest.SERVERS`) and of those that are marked `apart` it
runs what `make test` runs, and of `generated` cases it tries a quarter. `LASTBIT_TIMES=7` tries
seven times as many generated cases.
"""

import os
import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

import pytest

T = TypeVar("T")
_TIMES = int(os.environ.get("LASTBIT_TIMES", "1"))
WHOLE_CHECK = os.environ.get("LASTBIT_EVIDENCE") == "1"
"""Whether this is `make check`: tests and evidence, in limited time."""


@dataclass(frozen=True, slots=True)
class Extent:
    """Few cases, or many."""

    is_many: bool

    @property
    def name(self) -> str:
        return "many" if self.is_many else "few"

    def number(self, few: int, many: int) -> int:
        return many * _TIMES if self.is_many else few

    def generated(self, few: int, many: int) -> int:
        """Of cases that are drawn, each like the others: in `make check` a quarter of the many."""
        return max(few, self.number(few, many) // (4 if WHOLE_CHECK else 1))

    def cases(self, every: Iterable[T], *, one_in: int) -> list[T]:
        """All of them, or the first, the last and one in so many between; always the same."""
        found = list(every)
        return found if self.is_many else some(found, one_in=one_in)


@pytest.fixture(
    params=[
        pytest.param("few", marks=pytest.mark.few),
        pytest.param("many", marks=pytest.mark.evidence),
    ]
)
def extent(request: pytest.FixtureRequest) -> Extent:
    return Extent(request.param == "many")


def late(*values: Any, apart: bool = False) -> Any:
    """A parameter, or several, left to the evidence; if `apart`, of `make evidence` alone."""
    marks = (pytest.mark.evidence, pytest.mark.apart)
    return pytest.param(*values, marks=marks if apart else marks[:1])


def thin(items: Iterable[pytest.Item]) -> None:
    """Leave most items of each test that is marked `thinned` to the evidence."""
    groups: dict[tuple[str, int], list[pytest.Item]] = {}
    for item in items:
        mark = item.get_closest_marker("thinned")
        if mark and not item.get_closest_marker("evidence"):
            test = item.nodeid.partition("[")[0]
            groups.setdefault((test, mark.kwargs["one_in"]), []).append(item)
    for (_, one_in), group in groups.items():
        few = some(group, one_in=one_in) if len(group) > one_in else group[:1]
        kept = {id(item) for item in few}
        for item in group:
            if id(item) not in kept:
                item.add_marker("evidence")


def some(found: list[T], *, one_in: int) -> list[T]:
    """The first, the last, and of each `one_in` one that is drawn, if there are more than that: a
    fixed stride could always meet the same kind of case."""
    drawn, last = random.Random(one_in), len(found) - 1
    starts = range(0, len(found), one_in) if len(found) > one_in else ()
    places = {min(start + drawn.randrange(one_in), last) for start in starts}
    return [found[place] for place in sorted(places | ({0, last} if found else set()))]
