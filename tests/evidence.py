"""How much a test tries: some of its cases in `make test`, all of them in `make evidence`.

A test whose cases are a loop takes the fixture `extent`, and becomes two tests: `[few]`, and
`[many]`, which is marked `evidence`. A test whose cases are parameters lists them as `thinned`: all
but some of them are marked. What has no small part is marked as a whole: `@pytest.mark.evidence`.
"""

import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

import pytest

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Extent:
    """Few cases, or many."""

    is_many: bool

    @property
    def name(self) -> str:
        return "many" if self.is_many else "few"

    def number(self, few: int, many: int) -> int:
        return many if self.is_many else few

    def cases(self, every: Iterable[T], *, one_in: int) -> list[T]:
        """All of them, or the first, the last and one in so many between; always the same."""
        found = list(every)
        return found if self.is_many else [found[place] for place in _some(len(found), one_in)]


@pytest.fixture(params=["few", pytest.param("many", marks=pytest.mark.evidence)])
def extent(request: pytest.FixtureRequest) -> Extent:
    return Extent(request.param == "many")


def thinned(cases: Iterable[Any], *, one_in: int) -> list[Any]:
    """The cases as parameters of a test, of which one in so many is not left to the evidence."""
    found = list(cases)
    always = set(_some(len(found), one_in))
    return [case if place in always else late(case) for place, case in enumerate(found)]


def late(case: Any) -> Any:
    """A case that is left to the evidence; a tuple is one of several parameters."""
    if hasattr(case, "marks"):  # it is a pytest.param already
        return pytest.param(*case.values, id=case.id, marks=(*case.marks, pytest.mark.evidence))
    return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.evidence)


def _some(count: int, one_in: int) -> list[int]:
    """One place of each `one_in`, drawn: a fixed stride could always meet the same kind of case."""
    drawn = random.Random(one_in)
    starts = range(0, count, one_in)
    places = {min(start + drawn.randrange(one_in), count - 1) for start in starts}
    return sorted(places | ({0, count - 1} if count else set()))
