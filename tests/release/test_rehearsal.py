"""Whatever is planned can be answered: columns are made of any noisy numbers, before the charge."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

import lastbit as lb
from lastbit.errors import EngineFailed, LastbitError
from lastbit.kernel.noise import Noisy
from lastbit.release import release
from lastbit.release.intervals import columns_of
from lastbit.release.rehearsal import pretended, rehearsed
from lastbit.tables.backends.engines import Session
from lastbit.tables.plan.parts import RankPart, TreePart
from lastbit.tables.plan.plan import Plan, planned
from tests.release.pretend import card_of, part, query_of

KEYS = (("region", ("north", None)),)
FOUND = (("region", None),)
FUNCTIONS = (
    "count", "count_units", "sum", "mean", "variance", "std", "quantile", "cdf", "min", "max",
    "histogram",
)  # fmt: skip
PEOPLE = {"unit": "person", "max_rows": 3, "max_groups": 2}
NUMBERS = st.integers(-3, 3) | st.integers(-(1 << 90), 1 << 90)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Any aggregates at any price, from next to nothing to next to no noise."""
    parts = []
    for place, function in enumerate(draw(st.lists(st.sampled_from(FUNCTIONS), min_size=1))[:5]):
        values: dict[str, Any] = {}
        if function == "quantile":
            values["level"] = draw(st.sampled_from((Fraction(1, 2), Fraction(1, 7))))
            values["intervals"] = draw(st.booleans())
        if function == "histogram":
            values["edges"] = (Fraction(0), Fraction(5), Fraction(16))
        if function == "cdf":
            values["edges"] = (draw(st.sampled_from((Fraction(0), Fraction(9, 2), Fraction(16)))),)
        if function in ("quantile", "cdf"):
            values["step"] = draw(st.sampled_from((Fraction(1), None)))
        parts.append(part(function, f"a{place}", **values))
    keys = draw(st.sampled_from(((), KEYS, FOUND)))
    scale = Fraction(2) ** draw(st.integers(-30, 30))
    price: dict[str, Any] = {draw(st.sampled_from(("rho", "epsilon"))): scale}
    if keys == FOUND:
        price["delta"] = "1e-6"
    card = card_of(**draw(st.sampled_from(({}, PEOPLE))))
    try:
        return planned(query_of(*parts, keys=keys), card, **price)
    except LastbitError:  # refused, and nothing was charged
        return planned(query_of(*parts), card, epsilon=1)


def any_noise(draw: st.DataObject, plan: Plan) -> Noisy:
    """Two rows of noisy numbers, each drawn on its own."""
    noisy = pretended(plan, [0, 1])
    for name, numbers in noisy.entries.items():
        noisy.entries[name] = [draw.draw(NUMBERS) for _ in numbers]
    for name, rows in noisy.bins.items():
        noisy.bins[name] = [[draw.draw(NUMBERS) for _ in row] for row in rows if len(row) < 64]
        if len(noisy.bins[name]) != len(rows):
            noisy.bins[name] = [[draw.draw(NUMBERS)] * len(row) for row in rows]
    for one in plan.parts:
        if isinstance(one, TreePart):
            few = draw.draw(st.lists(NUMBERS, min_size=1, max_size=6))
            noisy.trees[one.measure] = [
                [[few[i % len(few)] for i in range(len(nodes))] for nodes in levels]
                for levels in noisy.trees[one.measure]
            ]
        elif isinstance(one, RankPart):
            first = -1 if one.ends[0] else 0
            places = st.integers(first, first + one.candidates - 1)
            noisy.ranks[one.aggregate, one.role] = [draw.draw(places) for _ in range(2)]
    return noisy


@settings(deadline=None, max_examples=120)
@given(st.data(), plans())
def test_columns_are_made_of_any_noise(data: st.DataObject, plan: Plan) -> None:
    for noisy in (*rehearsed(plan), any_noise(data, plan)):
        for column in release._columns(plan, noisy):
            assert len(column.cells) == len(noisy.keys)
            for cell in column.cells:
                if cell.value is not None and cell.low is not None and cell.high is not None:
                    assert cell.low <= cell.value <= cell.high


@pytest.mark.parametrize(
    "rho", [Fraction(2) ** n for n in (-20, -3, 0, 2, 3, 5, 8, 14, 29)], ids=str
)
@pytest.mark.parametrize("unit", [{}, PEOPLE], ids=["rows", "people"])
def test_a_quantile_beside_a_share_at_any_price(rho: Fraction, unit: dict[str, Any]) -> None:
    """Where the tree has no certified reach, intervals are the bounds."""
    asked = part("quantile", "q"), part("cdf", "c", edges=(Fraction(5),))
    plan = planned(query_of(*asked), card_of(**unit), rho=rho)
    quantile, share = release._columns(plan, pretended(plan, [0, 1, -1, 1 << 70]))
    assert len(quantile.cells) == len(share.cells) == 4
    (tree,) = plan.parts
    assert isinstance(tree, TreePart)
    if rho >= 8 and not unit:
        assert all((cell.low, cell.high) == (0, 16) for cell in quantile.cells)


def test_it_is_released(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": [float(i % 17) for i in range(400)]})
    column = lb.Column(name="x", type="number", bounds=(0, 16), step=1)
    table = lb.table(frame, each_row=True, columns=[column], name="t", budget=lb.Budget(rho=100))
    asked = table.agg(q=lb.median("x"), c=lb.cdf("x", [5]))
    answer = asked.release(rho=40, ledger=tmp_path / "ledger")
    assert answer.charged


def test_what_cannot_be_made_is_not_charged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Columns that fail as soon as there is a row are found out before the ledger is asked."""
    frame = pd.DataFrame({"x": [1.0, 2.0]})
    column = lb.Column(name="x", type="number", bounds=(0, 16), step=1)
    table = lb.table(frame, each_row=True, columns=[column], name="t", budget=lb.Budget(rho=100))

    def failing(plan: Plan, noisy: Noisy) -> Any:
        assert not noisy.keys
        return columns_of(plan, noisy)

    monkeypatch.setattr(release, "columns_of", failing)
    monkeypatch.setattr(Session, "aggregates", lambda *_, **__: pytest.fail("rows were read"))
    with pytest.raises(EngineFailed, match="nothing was charged"):
        table.agg(n=lb.count()).release(rho=1, ledger=tmp_path / "ledger")
    monkeypatch.undo()
    assert table.agg(n=lb.count()).release(rho=100, ledger=tmp_path / "ledger").charged
