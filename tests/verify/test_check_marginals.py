"""The checker on contingency tables: it believes no number of a certificate or a saved answer."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from lastbit.checker import tables as answered_tables
from lastbit.checker.dispatch import problem_of
from lastbit.checker.numbers import Rejected, digest
from lastbit.laws.discrete import DiscreteGaussian, DiscreteLaplace
from lastbit.privacy.neighbours import CHANGE_ONE
from lastbit.release.marginals import marginals_record
from lastbit.release.reach import MeasureNoise
from lastbit.sampling.deterministic import Seeded
from lastbit.tables.card.column import Column
from lastbit.tables.card.schema import DataCard, Source
from lastbit.tables.plan.marginals import marginals_query, planned_marginals
from lastbit.tables.query.expression import ColumnName
from lastbit.tables.query.scan import GroupKey
from tests.release.sealing import sealed_rows

Record = dict[str, Any]
SIZES = {"sex": ("f", "m", None), "region": ("n", "s"), "old": (False, True)}


def card_of(**values: Any) -> DataCard:
    kinds = {"person": "integer", "sex": "text", "region": "text", "old": "boolean"}
    columns = {name: Column(name=name, type=kind) for name, kind in kinds.items()}  # type: ignore[arg-type]
    given = {"name": "people", "unit": None, "max_rows": 1} | values
    return DataCard(source=Source(kind="csv", paths=("people.csv",)), columns=columns, **given)


EXAMPLES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "rows, Laplace": ({}, {"epsilon": 1}),
    "people, Gaussian": ({"unit": "person", "max_rows": 3}, {"rho": "1/10"}),
    "people changed, converted": (
        {"unit": "person", "max_rows": 3, "neighbours": CHANGE_ONE},
        {"epsilon": "1/2", "delta": "1e-3", "weights": {"sex": 3}},
    ),
    "one-way": ({}, {"epsilon": 1, "up_to": 1}),
    "pairs chosen, Laplace": ({}, {"epsilon": 1, "pairs": 2}),
    "pairs chosen, Gaussian": ({"unit": "person", "max_rows": 3}, {"rho": 1, "pairs": 1}),
}


@cache
def _text(name: str) -> str:
    facts, price = EXAMPLES[name]
    card = card_of(**facts)
    keys = [GroupKey(name=n, expression=ColumnName(n), values=v) for n, v in SIZES.items()]
    plan = planned_marginals(marginals_query(card, keys), card, **price)
    bits, noisy = Seeded(len(name)), {}
    picks = 0 if plan.selection is None else plan.selection.picks
    for one in plan.scanned[: len(plan.marginals) + picks]:
        cells = 1
        for place in one:
            cells *= plan.sizes[place]
        drawn = bits.fill(cells).tolist()
        noisy[one] = [(number - 40) * (1 << 20 if card.unit else 1) for number in drawn]
    return json.dumps(marginals_record(plan, noisy, question="0" * 64, head="1" * 64))


def record_of(name: str) -> Record:
    found: Record = json.loads(_text(name))
    return found


def sealed(record: Record) -> Record:
    """All digests worked out again, as whoever cheats would do."""
    whole = copy.deepcopy(record)
    certificate = whole["certificate"]
    body, claim = certificate["body"], certificate["claim"]
    whole["plan"], whole["cost"] = body["plan"], body["plan"]["cost"]
    body["plan"]["query"] = claim["query"] = digest(body["query"])
    body["plan_digest"] = digest(body["plan"])
    claim["rows"] = digest(sealed_rows(whole, whole["rows"]))
    certificate["digest"] = digest(certificate)
    return whole


@pytest.mark.parametrize("name", EXAMPLES)
def test_tables_are_accepted(name: str) -> None:
    record = record_of(name)
    assert problem_of(record["certificate"]) is None
    assert problem_of(record) is None
    assert problem_of(sealed(record)) is None


def plan_of(record: Record) -> Any:
    return record["certificate"]["body"]["plan"]


def _less_noise(r: Record) -> None:
    part = plan_of(r)["parts"][0]
    name = "scale" if "scale" in part else "variance"
    part[name] = f"{part[name]}" if "/" in part[name] else f"{int(part[name]) * 999}/1000"
    if part[name].endswith("/1000"):
        return
    over, under = part[name].split("/")
    part[name] = f"{int(over) * 999}/{int(under) * 1000}"


def _less_sensitive(r: Record) -> None:
    sensitivity = plan_of(r)["parts"][0]["sensitivity"]
    (norm,) = sensitivity
    sensitivity[norm] = str(int(sensitivity[norm]) - 1) if int(sensitivity[norm]) > 1 else "0"


def _cheaper_part(r: Record) -> None:
    part = plan_of(r)["parts"][0]
    name = "rho" if part["rho"] is not None else "epsilon"
    part[name] = "0"


def _cheaper(r: Record) -> None:
    for price in (r["certificate"]["claim"], plan_of(r)["cost"], plan_of(r)["asked"]):
        for name in ("epsilon", "rho"):
            if price[name] not in (None, "0"):
                price[name] = "1/1000"


def _table_twice(r: Record) -> None:
    plan = plan_of(r)
    plan["marginals"][1] = plan["marginals"][0]


def _table_without_noise(r: Record) -> None:
    plan_of(r)["parts"].pop(1)


def _table_unpaid(r: Record) -> None:
    plan = plan_of(r)
    plan["parts"][1] = plan["parts"][0]


def _other_columns(r: Record) -> None:
    plan_of(r)["marginals"][0] = ["region"]


def _unknown_column(r: Record) -> None:
    plan_of(r)["marginals"][0] = ["income"]


def _undeclared(r: Record) -> None:
    r["certificate"]["body"]["query"]["keys"][0]["values"] = None


def _key_twice(r: Record) -> None:
    values = r["certificate"]["body"]["query"]["keys"][0]["values"]
    values[1] = values[0]


def _sum_for_count(r: Record) -> None:
    part = r["certificate"]["body"]["query"]["aggregates"][0]
    part |= {"function": "sum", "bounds": ["0", "9"], "expression": {"column": "person"}}


def _per_unit(r: Record) -> None:
    r["certificate"]["body"]["query"]["limit"] = 3


def _more_rows(r: Record) -> None:
    plan_of(r)["max_rows"] = plan_of(r)["max_rows"] + 1


def _moves_less(r: Record) -> None:
    r["certificate"]["body"]["moves"]["m1"]["l1"] = "0"


def _other_kind(r: Record) -> None:
    r["certificate"]["kind"] = "release"


def _more_cells(r: Record) -> None:
    plan_of(r)["groups"] += 1


MUTANTS: list[Callable[[Record], None]] = [
    _less_noise, _less_sensitive, _cheaper_part, _cheaper, _table_twice, _table_without_noise,
    _table_unpaid, _other_columns, _unknown_column, _undeclared, _key_twice, _sum_for_count,
    _per_unit, _more_rows, _moves_less, _other_kind, _more_cells,
]  # fmt: skip


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("mutant", MUTANTS, ids=[m.__name__ for m in MUTANTS])
def test_a_certificate_that_claims_too_much_is_rejected(
    mutant: Callable[[Record], None], name: str
) -> None:
    record = record_of(name)
    mutant(record)
    assert problem_of(sealed(record)["certificate"]) is not None


def _another_count(r: Record) -> None:
    r["rows"][3]["cells"][0]["value"] += 1


def _another_noisy(r: Record) -> None:
    row = r["rows"][3]
    row["noisy"] = str(int(row["noisy"]) + plan_of(r)["weight_one"])
    row["cells"][0]["value"] += 1


def _consistent_moved(r: Record) -> None:
    r["rows"][0]["consistent"] = "1/3"


def _consistent_scaled(r: Record) -> None:
    for row in r["rows"]:  # tables agree still
        over, _, under = row["consistent"].partition("/")
        row["consistent"] = f"{2 * int(over)}/{under or 1}"


def _whole_moved(r: Record) -> None:
    r["rows"][0]["whole"] += 1


def _whole_below_zero(r: Record) -> None:
    r["rows"][0]["whole"] = -1


def _row_missing(r: Record) -> None:
    r["rows"].pop()


def _rows_exchanged(r: Record) -> None:
    r["rows"][0], r["rows"][1] = r["rows"][1], r["rows"][0]


def _surer(r: Record) -> None:
    r["rows"][0]["consistent_error"] = r["rows"][0]["cells"][0]["standard_error"] * 2


def _much_surer(r: Record) -> None:
    r["rows"][0]["consistent_error"] *= 0.999


def _interval_elsewhere(r: Record) -> None:
    cell = r["rows"][0]["cells"][0]
    cell["low"] = cell["high"] = cell["high"] + 1


def _no_width(r: Record) -> None:
    for row in r["rows"]:
        cell = row["cells"][0]
        cell["low"] = cell["high"] = cell["value"]


def _narrower(r: Record) -> None:
    for row in r["rows"]:
        row["cells"][0]["low"] += 1
        row["cells"][0]["high"] -= 1


def _wider(r: Record) -> None:
    for row in r["rows"]:
        row["cells"][0]["low"] -= 1
        row["cells"][0]["high"] += 1


def _one_end_nearer(r: Record) -> None:
    r["rows"][2]["cells"][0]["low"] += 1


def _errors_halved(r: Record) -> None:
    for row in r["rows"]:
        row["cells"][0]["standard_error"] /= 2
        row["consistent_error"] = row["cells"][0]["standard_error"]


def _an_error_lower(r: Record) -> None:
    cell = r["rows"][1]["cells"][0]
    cell["standard_error"] *= 1 - 1e-8
    r["rows"][1]["consistent_error"] = cell["standard_error"]


def _an_error_higher(r: Record) -> None:
    r["rows"][1]["cells"][0]["standard_error"] *= 1 + 1e-8


def _words(r: Record) -> None:
    r["notes"][1] = "An interval belongs to the consistent count."


def _part_too_many(r: Record) -> None:
    r["totals"] = [3]


SPOILT: list[Callable[[Record], None]] = [
    _another_count, _another_noisy, _consistent_moved, _consistent_scaled, _whole_moved,
    _whole_below_zero, _row_missing, _rows_exchanged, _surer, _much_surer,
    _interval_elsewhere, _no_width, _narrower, _wider, _one_end_nearer, _errors_halved,
    _an_error_lower, _an_error_higher, _words, _part_too_many,
]  # fmt: skip


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("mutant", SPOILT, ids=[m.__name__ for m in SPOILT])
def test_a_saved_answer_that_was_changed_is_rejected(
    mutant: Callable[[Record], None], name: str
) -> None:
    record = record_of(name)
    mutant(record)
    assert record != record_of(name)
    assert problem_of(sealed(record)) is not None


@settings(deadline=None, max_examples=60)
@given(
    st.fractions(Fraction(1, 40), 10**9, max_denominator=60)
    | st.integers(-9, 18).map(lambda n: Fraction(10) ** n),
    st.booleans(),
    st.sampled_from((1, 1 << 20)),
)
def test_widths_and_errors_of_any_noise_are_derived_again(
    parameter: Fraction, gaussian: bool, one: int
) -> None:
    """What the producer makes is accepted; one less on both sides, or one more, is not."""
    name, kind, law = (
        ("variance", "gaussian", DiscreteGaussian(parameter))
        if gaussian
        else ("scale", "laplace", DiscreteLaplace(parameter))
    )
    part = {"mechanism": kind, name: str(parameter)}
    noise = MeasureNoise(law)
    half, error = noise.accuracy(Fraction(1, 20)), math.sqrt(noise.variance) / one

    def rows(change: int) -> list[Record]:
        reach = half + change
        ends = [((n - reach) // one, -((-n - reach) // one)) for n in (-7, 0, 10 * one + 3)]
        cells = [{"standard_error": error, "low": low, "high": high} for low, high in ends]
        counts = ("-7", "0", str(10 * one + 3))
        return [{"noisy": n, "cells": [cell]} for n, cell in zip(counts, cells, strict=True)]

    answered_tables._check_cells(rows(0), part, one)
    far = max(one, half // 50) + 1  # more than the tail's own rounding and that of the ends
    for change in (-2 * far, 2 * far):
        if half + change >= 0:
            with pytest.raises(Rejected):
                answered_tables._check_cells(rows(change), part, one)


# ---------------------------------------------------------------- pairs that are chosen privately

CHOSEN = [name for name in EXAMPLES if name.startswith("pairs")]


def choice_of(record: Record) -> Any:
    return plan_of(record)["parts"][-1]


def _faster(r: Record) -> None:
    over, _, under = choice_of(r)["rate"].partition("/")
    choice_of(r)["rate"] = f"{int(over) * 1001}/{int(under or 1) * 1000}"


def _draws_unpaid(r: Record) -> None:
    plan_of(r)["parts"].pop()


def _draws_cheaper(r: Record) -> None:
    choice_of(r)["rho" if choice_of(r)["rho"] is not None else "epsilon"] = "0"


def _one_draw_more(r: Record) -> None:
    choice_of(r)["picks"] += 1


def _moves_by_less(r: Record) -> None:
    choice_of(r)["sensitivity"] = {"distance": "0"}


def _released_anyway(r: Record) -> None:
    choice_of(r)["candidates"][0] = ["sex"]


def _candidate_twice(r: Record) -> None:
    choice_of(r)["candidates"][1] = choice_of(r)["candidates"][0]


def _other_mechanism(r: Record) -> None:
    choice_of(r)["mechanism"] = "noisy max"


@pytest.mark.parametrize("name", CHOSEN)
@pytest.mark.parametrize(
    "mutant",
    [_faster, _draws_unpaid, _draws_cheaper, _one_draw_more, _moves_by_less, _released_anyway,
     _candidate_twice, _other_mechanism],
)  # fmt: skip
def test_draws_that_cost_more_than_they_say_are_rejected(
    mutant: Callable[[Record], None], name: str
) -> None:
    record = record_of(name)
    mutant(record)
    assert problem_of(sealed(record)["certificate"]) is not None


def _another_pair(r: Record) -> None:
    for row in r["rows"]:
        if row.get("columns"):
            row["columns"] = ["region", "old"]


def _no_candidate(r: Record) -> None:
    for row in r["rows"]:
        if row.get("columns"):
            row["columns"] = ["old", "region"]


def _named_once(r: Record) -> None:
    del r["rows"][-1]["columns"]


@pytest.mark.parametrize("name", CHOSEN)
@pytest.mark.parametrize("mutant", [_another_pair, _no_candidate, _named_once])
def test_pairs_of_an_answer_that_were_exchanged_are_rejected(
    mutant: Callable[[Record], None], name: str
) -> None:
    record = record_of(name)
    mutant(record)
    assert problem_of(sealed(record)) is not None
