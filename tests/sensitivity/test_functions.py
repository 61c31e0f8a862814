"""Sensitivities of any function over a finite domain, against their definitions."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import lastbit as lb
from lastbit.errors import InvalidParameter, LastbitError, WrongType
from lastbit.exact import Ball
from lastbit.laws import DiscreteLaplace
from lastbit.privacy import ADD_REMOVE, AS_DECLARED, CHANGE_ONE, Neighbours
from lastbit.sensitivity import (
    distance_to_instability,
    global_sensitivity,
    local_sensitivity,
    smooth_sensitivity,
)
from lastbit.sensitivity.distance import MOST_DATABASES, _within, multisets
from lastbit.sensitivity.functions import landscape
from tests.sensitivity.databases import VALUES, Database, neighbours_of, within

RELATIONS = [CHANGE_ONE, ADD_REMOVE]
SIZE = 3


def universe(relation: Neighbours) -> list[Database]:
    sizes = range(SIZE + 1) if relation == ADD_REMOVE else [SIZE]
    return [rows for size in sizes for rows in combinations_with_replacement(VALUES, size)]


def inside(rows: Database, relation: Neighbours) -> set[Database]:
    return {near for near in neighbours_of(rows, relation) if len(near) <= SIZE}


def local(table: dict[Database, Fraction], rows: Database, relation: Neighbours) -> Fraction:
    return max(abs(table[near] - table[rows]) for near in inside(rows, relation))


def sizes(relation: Neighbours) -> dict[str, Any]:
    return {"most_records": SIZE} if relation == ADD_REMOVE else {}


def shells(rows: Database, relation: Neighbours) -> list[set[Database]]:
    far = 2 * SIZE if relation == ADD_REMOVE else SIZE
    return [{r for r in shell if len(r) <= SIZE} for shell in within(rows, far, relation)]


def tables(relation: Neighbours) -> st.SearchStrategy[dict[Database, Fraction]]:
    rows = universe(relation)
    numbers = st.lists(
        st.fractions(-9, 9, max_denominator=7), min_size=len(rows), max_size=len(rows)
    )
    return numbers.map(lambda drawn: dict(zip(rows, drawn, strict=True)))


@pytest.mark.parametrize("relation", RELATIONS, ids=str)
@settings(max_examples=12, deadline=None)
@given(st.data())
def test_every_function_by_the_definitions(relation: Neighbours, data: st.DataObject) -> None:
    """A function is a table of numbers: any will do."""
    table = data.draw(tables(relation))
    beta = Fraction(1, 2)
    moves = {rows: local(table, rows, relation) for rows in table}
    size = sizes(relation) or {"count": SIZE}
    worst = global_sensitivity(table.__getitem__, domain=VALUES, neighbours=relation, **size)
    assert worst == max(moves.values())
    smooth = {}
    for rows in table:
        found = smooth_sensitivity(
            table.__getitem__,
            rows[::-1],
            beta=beta,
            domain=VALUES,
            neighbours=relation,
            **sizes(relation),
        )
        smooth[rows] = found.bound
        steps = shells(rows, relation)
        ideal = max(
            float(moves[y]) * math.exp(-beta * k) for k, shell in enumerate(steps) for y in shell
        )
        assert moves[rows] <= found.bound
        assert ideal * (1 - 1e-12) <= float(found.bound) <= ideal * (1 + 1e-8)
        assert (found.value, found.lower, found.upper) == (
            table[rows],
            min(table.values()),
            max(table.values()),
        )
    grown = Ball.of(beta).exp()
    assert all(
        smooth[rows] <= grown * smooth[near] for rows in table for near in inside(rows, relation)
    )


@pytest.mark.parametrize("relation", RELATIONS, ids=str)
def test_local_sensitivity_looks_at_neighbours_only(relation: Neighbours) -> None:
    called = []

    def spread(rows: tuple[int, ...]) -> int:
        called.append(rows)
        return max(rows, default=0) - min(rows, default=0)

    data = (0, 2, 2)
    found = local_sensitivity(spread, data, domain=VALUES, neighbours=relation)
    near = neighbours_of(data, relation)
    assert found == max(abs(spread(rows) - 2) for rows in near)
    assert {rows for rows in called if rows != data} == set(near) - {data}


def cliff(rows: tuple[int, ...]) -> int:
    """10**9 where everybody says 1."""
    return 10**9 if sum(rows) == len(rows) else 0


def test_noise_by_local_sensitivity_is_not_private() -> None:
    """004: LS(D) = 0 beside LS(D') = 10**9. The first is released as it is."""
    calm, edge = [0, 0, 1, 1], [0, 1, 1, 1]
    quiet, loud = (local_sensitivity(cliff, rows, domain=[0, 1]) for rows in (calm, edge))
    assert quiet == 0
    assert loud == 10**9
    epsilon = Fraction(1)
    at_calm, at_edge = Fraction(1), DiscreteLaplace(loud / epsilon).probability(0)  # of answer 0
    assert at_calm > Ball.of(21).exp() * at_edge  # epsilon = 1 was paid for
    smooth = [
        smooth_sensitivity(cliff, rows, beta=epsilon, domain=[0, 1]).bound
        for rows in ([0, 0, 0, 0], [0, 0, 0, 1], calm, edge)
    ]
    for nearer, farther in zip(smooth[1:], smooth, strict=False):
        assert nearer <= Ball.of(epsilon).exp() * farther
    assert smooth[-1] == 10**9
    # the mutant: the local sensitivity itself is not smooth
    assert not loud <= Ball.of(epsilon).exp() * quiet


def test_the_statistics_known_agree_with_brute_force() -> None:
    def median(rows: tuple[int, ...]) -> int:
        return sorted(rows)[(len(rows) + 1) // 2 - 1]

    for rows in combinations_with_replacement(range(6), 4):
        known = smooth_sensitivity("median", list(rows), beta=1, lower=0, upper=5)
        tried = smooth_sensitivity(median, rows, beta=1, domain=range(6))
        assert local_sensitivity(median, rows, domain=range(6)) == local_sensitivity(
            "median", list(rows), lower=0, upper=5
        )
        assert known.value == tried.value
        assert float(known.bound) == pytest.approx(float(tried.bound), rel=1e-8)
    brute = global_sensitivity(median, neighbours=CHANGE_ONE, domain=range(6), count=4)
    assert brute == global_sensitivity("median", neighbours=CHANGE_ONE, lower=0, upper=5, count=4)


def test_a_constant_has_no_sensitivity() -> None:
    found = smooth_sensitivity(lambda rows: 7, [0, 1], beta=1, domain=[0, 1])
    assert found.bound == 0
    assert found.lower == found.upper == 7
    noise = lb.SmoothNoise(noise="cauchy", epsilon=1, grid=1, neighbours=CHANGE_ONE)
    assert noise.release(smooth_sensitivity(lambda rows: 7, [0], beta="1/2", domain=[0, 1])) == 7
    assert global_sensitivity(len, neighbours=CHANGE_ONE, domain=["a"], count=5) == 0
    assert global_sensitivity(len, neighbours=ADD_REMOVE, domain=["a"], most_records=5) == 1


def test_records_of_any_kind_and_floats_as_they_are() -> None:
    people = [("ann", 30.5), ("bob", 41.25)]
    found = local_sensitivity(lambda rows: sum(age for _, age in rows), people[:1], domain=people)
    assert found == Fraction(43, 4)
    listed = [[1], [2]]  # they cannot be hashed
    assert local_sensitivity(lambda rows: rows[0][0], [[1]], domain=listed) == 1
    array = np.array([0.1, 0.2])
    tenth = local_sensitivity(sum, array[:1], domain=array)
    assert tenth == Fraction(0.2) - Fraction(0.1)
    assert global_sensitivity(max, neighbours=CHANGE_ONE, domain=[1, 1.0, True, 2], count=3) == 1


def test_the_numbers_of_databases() -> None:
    for kinds in range(1, 5):
        for size in range(5):
            assert multisets(kinds, size) == math.comb(kinds + size - 1, size)
            if size:
                found = landscape(
                    len, domain=range(kinds), neighbours=ADD_REMOVE, most_records=size
                )
                assert len(found.values) == multisets(kinds + 1, size)
    assert multisets(10**9, 10**9) == multisets(2, 10**18) == 10**15
    for relation in RELATIONS:
        for rows in universe(relation)[1:]:
            for steps in range(4):
                reached = sum(map(len, within(rows, steps, relation)))
                assert reached <= _within(steps, len(VALUES), len(rows), relation.relation)


def test_too_many_databases_are_counted_and_refused_whatever_the_data_are() -> None:
    calls: list[Callable[[], object]] = [
        lambda: global_sensitivity(max, neighbours=CHANGE_ONE, domain=range(100), count=4),
        lambda: smooth_sensitivity(max, [1] * 4, beta=1, domain=range(100)),
    ]
    number = math.comb(103, 4)
    for call in calls:
        with pytest.raises(InvalidParameter, match=f"{number:,}.*{MOST_DATABASES:,}"):
            call()
    with pytest.raises(InvalidParameter, match="1,000,000,000,000,000 or more"):
        global_sensitivity(len, neighbours=ADD_REMOVE, domain=range(1000), most_records=10**9)
    with pytest.raises(InvalidParameter, match="too many databases"):
        local_sensitivity(max, [1], domain=range(MOST_DATABASES + 1))
    far = {"domain": range(60), "neighbours": ADD_REMOVE, "most": 4}
    for data in ([], [1], [1] * 1000):
        with pytest.raises(InvalidParameter, match="too many databases"):
            distance_to_instability(len, data, **far)
    for size in (10**12, MOST_DATABASES - 2):  # few databases, all of them huge
        with pytest.raises(InvalidParameter, match="records, where"):
            global_sensitivity(len, neighbours=CHANGE_ONE, domain=[0, 1], count=size)
    assert local_sensitivity(sum, [0] * 100_000, domain=[0, 1]) == 1
    # few databases, whatever most is
    assert (
        distance_to_instability(
            lambda rows: 1, [0] * 9, domain=[0, 1], neighbours=CHANGE_ONE, most=10**9
        ).distance
        == 10**9 + 1
    )


def at(value: Any) -> Callable[[tuple[Any, ...]], Any]:
    return lambda rows: value


@pytest.mark.parametrize(
    "value", [math.nan, math.inf, -math.inf, None, True, "x", [1], 1j, np.float64("nan")]
)
def test_what_is_not_a_finite_number_is_refused(value: Any) -> None:
    for call in (
        lambda: global_sensitivity(at(value), neighbours=CHANGE_ONE, domain=[0, 1], count=2),
        lambda: local_sensitivity(at(value), [0], domain=[0, 1]),
        lambda: smooth_sensitivity(at(value), [0], beta=1, domain=[0, 1]),
    ):
        with pytest.raises(InvalidParameter, match="not a finite number; return an int") as caught:
            call()
        assert caught.value.__cause__ is None and caught.value.__context__ is None


def raises(rows: tuple[int, ...]) -> int:
    raise RuntimeError(f"private {rows}")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: local_sensitivity(raises, [7], domain=[7, 8]), "make it answer for every"),
        (
            lambda: distance_to_instability(max, [1], domain=[1, 2], neighbours=ADD_REMOVE, most=1),
            "for no records too",
        ),
        (lambda: local_sensitivity(max, [1], domain=[]), "domain is empty"),
        (lambda: local_sensitivity(max, [1]), "domain is missing"),
        (lambda: local_sensitivity(max, [1], domain=5), "pass a list"),  # type: ignore[arg-type]
        (lambda: local_sensitivity(max, [1], domain="12"), "pass a list"),
        (lambda: local_sensitivity(max, [1], domain=[1, math.nan]), "not finite"),
        (lambda: local_sensitivity(max, [1], domain=[1, math.inf]), "not finite"),
        (lambda: local_sensitivity(len, [1], domain=[np.zeros(2), np.ones(2)]), "pass tuples"),
        (lambda: local_sensitivity(len, [np.zeros(2)], domain=[(0, 0), (1, 1)]), "pass tuples"),
        (lambda: local_sensitivity(max, [3], domain=[1, 2]), "declare every one"),
        (lambda: local_sensitivity(max, [math.nan], domain=[1, 2]), "declare every one"),
        (lambda: local_sensitivity(max, [], domain=[1, 2]), "one record at least"),
        (lambda: local_sensitivity(max, [1], domain=[1], neighbours=AS_DECLARED), "ADD_REMOVE"),
        (lambda: local_sensitivity(max, [1], domain=[1], lower=0), "leave lower="),
        (lambda: local_sensitivity("median", [1], domain=[1]), "leave domain="),
        (lambda: local_sensitivity("median", [1]), "declare lower="),
        (lambda: smooth_sensitivity("median", [1], beta=1, lower=0), "declare lower="),
        (lambda: local_sensitivity(Fraction, [1], domain=[1]), "leave domain="),  # type: ignore[arg-type]
        (
            lambda: global_sensitivity(max, neighbours=CHANGE_ONE, domain=[1]),
            "the same for all data",
        ),
        (
            lambda: global_sensitivity(len, neighbours=ADD_REMOVE, domain=[1], most_records=0),
            "below 1",
        ),
        (
            lambda: global_sensitivity(
                max,
                neighbours=CHANGE_ONE,
                domain=[1],
                count=math.inf,  # type: ignore[arg-type]
            ),
            "not a whole number",
        ),
        (
            lambda: smooth_sensitivity(
                len, [1, 1], beta=1, domain=[1], neighbours=ADD_REMOVE, most_records=1
            ),
            "pass a larger one",
        ),
        (
            lambda: smooth_sensitivity(max, [1], beta=1, domain=[1], most_records=2),
            "most_records= alone",
        ),
        (
            lambda: global_sensitivity(len, neighbours=ADD_REMOVE, domain=[1], count=2),
            "most_records= alone, the same for all",
        ),
        (
            lambda: smooth_sensitivity(len, [1], beta=1, domain=[1], neighbours=ADD_REMOVE),
            "the same for all data",
        ),
        (lambda: smooth_sensitivity(max, [1], beta=math.nan, domain=[1]), "NaN"),
        (lambda: smooth_sensitivity(max, [1], beta=-1, domain=[1]), "above 0"),
    ],
)
def test_bad_input_is_refused_in_words_without_data(call: Callable[[], object], words: str) -> None:
    with pytest.raises((LastbitError, WrongType)) as caught:
        call()
    assert words in str(caught.value)
    assert "private" not in str(caught.value) and "7" not in str(caught.value)
    assert caught.value.__cause__ is None
