"""Plans: the price is worked out a second time, from the card and the JSON of the plan alone."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from math import isqrt
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from lastbit.errors import InvalidParameter, QueryRefused
from lastbit.privacy.neighbours import ADD_REMOVE, CHANGE_ONE
from lastbit.tables.card.budget import Budget
from lastbit.tables.card.column import Column
from lastbit.tables.card.schema import DataCard, Source
from lastbit.tables.plan.parts import GaussianPart, GaussianSelection, TreePart
from lastbit.tables.plan.plan import Plan, planned
from lastbit.tables.query.expression import ColumnName, Constant
from lastbit.tables.query.query import Aggregate, OrderBy, Query
from lastbit.tables.query.rules import call
from lastbit.tables.query.scan import GroupKey
from tests.evidence import Extent

COLUMNS = {
    "person": Column(name="person", type="integer"),
    "region": Column(name="region", type="text"),
    "x": Column(name="x", type="number"),
}


def card_of(**values: Any) -> DataCard:
    given: dict[str, Any] = {"unit": "person", "max_rows": 20, "max_groups": 5} | values
    return DataCard(name="visits", source=Source(kind="csv"), columns=COLUMNS, **given)


def part(function: str, name: str | None = None, **values: Any) -> Aggregate:
    if function not in ("count", "count_units"):
        values.setdefault("expression", ColumnName("x"))
        values.setdefault("bounds", (Fraction(0), Fraction(100)))
        values.setdefault("step", Fraction(5))  # few candidates, so that plans are made quickly
    if function == "quantile":
        values.setdefault("level", Fraction(1, 2))
    if function == "histogram":
        values |= {"edges": tuple(map(Fraction, (0, 10, 50))), "bounds": None}
    return Aggregate(name=name or function, function=function, **values)  # type: ignore[arg-type]


def query_of(*parts: Aggregate, keys: Any = (), **values: Any) -> Query:
    named = tuple(
        GroupKey(name=f"k{i}", expression=ColumnName("region"), values=v)
        for i, v in enumerate(keys)
    )
    return Query(table="visits", aggregates=parts, keys=named, **values)


FUNCTIONS = (
    "count", "count_units", "sum", "mean", "variance", "std", "quantile", "min", "max", "histogram"
)  # fmt: skip


# ---------------------------------------------------------------- the price, a second time


def largest(measure: dict[str, Any]) -> int:
    most = max(abs(measure["lowest"]), abs(measure["highest"]))
    sizes = {"squares": most**2, **dict.fromkeys(("values", "above", "below"), most)}
    return sizes.get(measure["kind"], 1)


def sensitivity(measure: dict[str, Any], plan: dict[str, Any]) -> tuple[int, int]:
    """L1 and squared L2, worked out anew from stability.py's table."""
    both = plan["neighbours"] == "change-one"
    if measure["kind"] == "shares":
        moved = (2 if both else 1) << 40
        return 2 * isqrt(measure["highest"] << 40), moved
    if measure["kind"] == "units":
        own = 1 if plan["unit"] is None else measure["highest"] or plan["max_groups"]
        if plan["groups"] is not None:
            own = plan["groups"] if own is None else min(own, plan["groups"])
        moved = own * (2 if both else 1)
        if plan["groups"] is not None:
            moved = min(moved, plan["groups"])
        return moved, moved
    total = plan["max_rows"] * plan["weight_one"] * largest(measure)
    signed = measure["kind"] == "values" and measure["lowest"] < 0 < measure["highest"]
    if not both:
        return total, total**2
    return 2 * total, (4 if signed else 2) * total**2


def price(plan: dict[str, Any]) -> tuple[Fraction, Fraction, Fraction]:
    """Sums of epsilon, delta and rho of all parts, each from its sensitivity and its noise."""
    measures = {m["name"]: m for m in plan["measures"]}
    epsilon = delta = rho = Fraction(0)
    for p in plan["parts"]:
        match p["part"]:
            case "noise" if measures[p["measure"]]["kind"] == "below":
                above = f"m{int(p['measure'][1:]) - 1}"
                assert {**p, "measure": above} in plan["parts"]  # one vector, paid for once
            case "noise":
                l1, l2 = sensitivity(measures[p["measure"]], plan)
                if p["mechanism"] == "laplace":
                    epsilon += l1 / Fraction(p["scale"])
                else:
                    rho += l2 / (2 * Fraction(p["variance"]))
            case "keys":
                people = 2 if plan["neighbours"] == "change-one" else 1
                own = p["keys_per_person"]
                if p["mechanism"] == "gaussian threshold":
                    delta += gaussian_keys(p, measures.get(p["measure"]))
                    moved = 1 << 40 if p["weight_one"] > 1 else own
                    cost = people * moved / (2 * Fraction(p["variance"]))
                    if p["epsilon"] is None:
                        rho += cost
                    else:
                        assert cost <= Fraction(p["rho"])
                        epsilon += Fraction(p["epsilon"])
                        delta += converted_delta(p)
                    if "single" in p:  # beside it, for units that are not in the shares
                        assert people == 1 and p["epsilon"] is not None
                        scale, least = Fraction(p["single"]["scale"]), p["single"]["threshold"]
                        assert 1 / scale <= Fraction(p["epsilon"])
                        assert threshold_delta(scale, least, 1) <= Fraction(p["delta"])
                    continue
                epsilon += people * own / Fraction(p["scale"])
                delta += threshold_delta(Fraction(p["scale"]), p["threshold"], own)
            case "rank":
                loss = 2 * rank_move(p, plan) * Fraction(p["rate"])
                if plan["composition"] == "basic":
                    epsilon += loss
                else:
                    rho += loss**2 / 8
    return epsilon, delta, rho


def rank_move(p: dict[str, Any], plan: dict[str, Any]) -> int:
    level = Fraction(p["level"])
    total = plan["max_rows"] * plan["weight_one"]
    side = max(level.numerator, level.denominator - level.numerator)
    if plan["neighbours"] == "add-remove":
        return side * total
    return level.denominator * total if plan["groups"] == 1 else 2 * side * total


def decimal(number: Fraction) -> Decimal:
    return Decimal(number.numerator) / Decimal(number.denominator)


def threshold_delta(scale: Fraction, threshold: int, keys: int) -> Fraction:
    """Not below 1 - (1-p)**keys, p = P[1 + X >= threshold]."""
    with localcontext() as context:
        context.prec = 60
        q = (-1 / decimal(scale)).exp()
        p = q ** (threshold - 1) / (1 + q)
        return Fraction(1 - (1 - p) ** keys)


def tail(variance: float, start: int) -> float:
    """P[X >= start] of the discrete law, or of the continuous one where that is as good."""
    if variance >= 1 << 16:
        return math.erfc((start - 0.5) / math.sqrt(2 * variance)) / 2

    def weights(first: int) -> float:
        last = first + 40 + isqrt(int(1600 * variance))
        return math.fsum(math.exp(-k * k / (2 * variance)) for k in range(first, last))

    return weights(start) / (1 + 2 * weights(1))


def gaussian_keys(p: dict[str, Any], measure: dict[str, Any] | None) -> Fraction:
    """Not below 1 - (1-p_K)**K for every K, in floats."""
    own, one = p["keys_per_person"], p["weight_one"]
    assert (one > 1) == (measure is not None and measure["kind"] == "shares")
    worst = 0.0
    for keys in range(2 if "single" in p else 1, own + 1) if one > 1 else (own,):
        weight = isqrt(one * one // keys)
        chance = tail(float(Fraction(p["variance"])), p["threshold"] - weight)
        worst = max(worst, -math.expm1(keys * math.log1p(-chance)))
    assert worst <= float(Fraction(p["tail"])) * (1 + 1e-9)
    return Fraction(p["tail"])


def mu_squared(p: dict[str, Any]) -> float:
    """The least of the theorem: x = 6 - 6 sqrt(1 - 1/(3v)) for every step squared."""
    variance = float(Fraction(p["variance"]))
    least = 2 / (variance * (1 + math.sqrt(1 - 1 / (3 * variance))))
    found = int(p["sensitivity"]["l2_squared"]) * least
    assert found <= float(Fraction(p["mu_squared"])) * (1 + 1e-9)
    return found


def pair_delta(mu: float, epsilon: float) -> float:
    first, second = (math.erfc((epsilon / mu + way * mu / 2) / math.sqrt(2)) for way in (-1, 1))
    return (first - math.exp(epsilon) * second) / 2 * (1 - 1e-9)  # floats


def converted_delta(conversion: dict[str, Any]) -> Fraction:
    if "mu" in conversion:
        mu, level = (float(Fraction(conversion[name])) for name in ("mu", "epsilon"))
        if "variance" in conversion:
            assert mu_squared(conversion) <= mu**2 * (1 + 1e-9)
        return Fraction(pair_delta(mu, level))
    rho, epsilon, order = (Fraction(conversion[name]) for name in ("rho", "epsilon", "order"))
    with localcontext() as context:
        context.prec = 60
        a = decimal(order)
        exponent = (a - 1) * (a * decimal(rho) - decimal(epsilon)) + a * (1 - 1 / a).ln()
        return Fraction(exponent.exp() / (a - 1))


def problems(plan: dict[str, Any]) -> list[str]:
    """All ways in which the plan costs more than was asked, or less than it says."""
    asked, cost, found = plan["asked"], plan["cost"], []
    epsilon, delta, rho = price(plan)
    if asked["rho"] is not None:
        if rho > Fraction(asked["rho"]) or epsilon or delta > Fraction(asked["delta"] or 0):
            found.append("rho")
        if Fraction(cost["rho"]) != Fraction(asked["rho"]):
            found.append("cost")
        return found
    if plan["conversion"] is not None:
        conversion = plan["conversion"]
        paired = [mu_squared(p) for p in plan["parts"] if "mu_squared" in p]
        if "mu" in conversion:
            assert len(paired) == len(plan["parts"])
            if sum(paired) > float(Fraction(conversion["mu"])) ** 2 * (1 + 1e-9):
                found.append("mu")
        elif rho > Fraction(conversion["rho"]):
            found.append("rho")
        if converted_delta(conversion) > Fraction(conversion["delta"]):
            found.append("conversion")
        epsilon += Fraction(conversion["epsilon"])
        delta += Fraction(conversion["delta"])
    elif rho:
        found.append("rho without conversion")
    if epsilon > Fraction(asked["epsilon"]) or epsilon > Fraction(cost["epsilon"]):
        found.append("epsilon")
    if delta > Fraction(asked["delta"] or 0) or delta > Fraction(cost["delta"]):
        found.append("delta")
    return found


@st.composite
def jobs(draw: st.DrawFn) -> tuple[Query, DataCard, dict[str, Any]]:
    functions = draw(st.lists(st.sampled_from(FUNCTIONS), min_size=1, max_size=5))
    parts = [
        part(
            f,
            f"a{i}",
            **({} if f in ("count", "count_units") else {"nullable": draw(st.booleans())}),
            **({"level": draw(st.fractions(Fraction(1, 9), Fraction(8, 9), max_denominator=9))}
               if f == "quantile" else {}),
        )
        for i, f in enumerate(functions)
    ]  # fmt: skip
    declared = draw(st.sampled_from([(), (("a",),), (("a", "b", "c"), ("d", "e")), (None,)]))
    unit = draw(st.sampled_from(["person", None]))
    card = card_of(
        unit=unit,
        max_rows=draw(st.integers(1, 50)) if unit else 1,
        max_groups=draw(st.integers(1, 9)) if unit else None,
        neighbours=draw(st.sampled_from([ADD_REMOVE, CHANGE_ONE])),
    )
    small = st.fractions(Fraction(1, 50), 9, max_denominator=50)
    if None in declared and draw(st.booleans()):
        asked = {"rho": draw(small), "delta": draw(st.sampled_from(["1e-3", "1e-9"]))}
    elif None in declared or draw(st.booleans()):
        deltas = ["1e-3", "1e-6", "1e-12"] if None in declared else ["1e-9", "0.1", 0, None]
        asked = {"epsilon": draw(small), "delta": draw(st.sampled_from(deltas))}
    else:
        asked = {"rho": draw(small)}
    weights = draw(st.sampled_from([None, "balanced", {"a0": Fraction(3, 7)}]))
    return query_of(*parts, keys=declared), card, asked | {"weights": weights}


def test_the_parts_cost_no_more_than_was_asked(extent: Extent) -> None:
    @settings(max_examples=extent.number(50, 200))
    @given(jobs())
    def holds(job: tuple[Query, DataCard, Any]) -> None:
        query, card, asked = job
        plan = planned(query, card, **asked)
        written = json.loads(json.dumps(plan.to_json()))
        assert problems(written) == []
        assert plan.digest == planned(query, card, **asked).digest
        assert plan.explain()
        # and nearly all of it is used: shares add up to 1, only roots and conversions lose a trace
        epsilon, _, rho = price(written)
        if asked.get("rho"):
            assert asked["rho"] * (1 - Fraction(1, 1 << 30)) <= rho
        elif plan.conversion is None:
            assert epsilon == asked["epsilon"]

    holds()


def mean_plan(**asked: Any) -> Plan:
    query = query_of(part("count_units"), part("mean"), keys=[("a", "b", "c", "d", "e", "f")])
    return planned(query, card_of(), **asked)


def tampered(plan: Plan, place: int, **values: Any) -> list[str]:
    parts = list(plan.parts)
    parts[place] = replace(parts[place], **values)
    return problems(replace(plan, parts=tuple(parts)).to_json())


def epsilons(plan: Plan) -> list[Fraction]:
    found = []
    for part in plan.parts:
        if not isinstance(part, GaussianPart | GaussianSelection):
            assert not isinstance(part, TreePart)
            found.append(part.epsilon)
    return found


def test_mutants_of_the_noise_are_seen() -> None:
    plan = mean_plan(epsilon=1)
    units = next(i for i, p in enumerate(plan.parts) if p.measure == "m1")
    first = plan.parts[units]
    assert first.l1_sensitivity == 5  # type: ignore[union-attr]
    assert tampered(plan, units, scale=1 / first.epsilon) == ["epsilon"]  # type: ignore[union-attr]
    # the whole epsilon for every part, instead of its share
    assert tampered(plan, 0, scale=plan.parts[0].l1_sensitivity / Fraction(1)) == ["epsilon"]  # type: ignore[union-attr]
    twice = replace(plan, parts=(*plan.parts, plan.parts[0]))
    assert problems(twice.to_json()) == ["epsilon"]
    by_rho = mean_plan(rho="0.5")
    assert tampered(by_rho, 0, variance=by_rho.parts[0].variance / 2) == ["rho"]  # type: ignore[union-attr]


def test_a_count_is_paid_for_once() -> None:
    fixed: dict[str, Any] = {"nullable": False}
    query = query_of(
        part("count"), part("mean", **fixed), part("variance", **fixed), part("sum", **fixed)
    )
    plan = planned(query, card_of(), epsilon=1)
    assert sum(epsilons(plan)) == 1
    kinds = sorted(measure.kind for measure in plan.measures)
    assert kinds == ["rows", "squares", "values"]


def test_units_that_decide_on_keys_are_counted_with_the_same_noise() -> None:
    plan = planned(query_of(part("count_units"), keys=[None]), card_of(), epsilon=1, delta="1e-9")
    assert len(plan.parts) == 1
    assert plan.partition_selection is not None and plan.partition_selection.measure == "m1"
    assert plan.cost.epsilon == 1 and plan.cost.delta == Fraction("1e-9")


def test_delta_is_charged_only_where_it_buys_something() -> None:
    query = query_of(part("count"))
    assert planned(query, card_of(), epsilon=1, delta="1e-9").cost.delta == 0
    many = query_of(part("count_units"), keys=[tuple(f"k{i}" for i in range(200))])
    plan = planned(many, card_of(max_groups=100), epsilon=1, delta="1e-6")
    assert plan.composition == "concentrated"  # 100 keys: L2 is ten times smaller than L1
    assert plan.cost.delta == Fraction("1e-6")
    pure = planned(many, card_of(max_groups=100), epsilon=1)
    assert pure.composition == "basic"


def test_weights() -> None:
    query = query_of(part("count", "n"), part("sum", "s"))
    plan = planned(query, card_of(), epsilon=1, weights={"n": 2, "s": "1"})
    assert epsilons(plan) == [Fraction(2, 3), Fraction(1, 3)]
    found = planned(query_of(part("count", "n"), keys=[None]), card_of(), epsilon=1,
                    delta="1e-9", weights={"k0": 3})  # fmt: skip
    assert [p.to_json()["epsilon"] for p in found.parts] == ["3/4", "1/4"]
    for weights in ({"other": 1}, {"n": 0}, {"n": -1}, {"n": float("nan")}, "fair"):
        with pytest.raises(InvalidParameter):
            planned(query, card_of(), epsilon=1, weights=weights)  # type: ignore[arg-type]


def test_balanced_weights_make_errors_alike() -> None:
    """Rows count twenty, units five: with equal shares the errors differ by four."""
    query = query_of(part("count", "n"), part("count_units"), keys=[tuple("abcdef")])
    equal = planned(query, card_of(), epsilon=1, weights={"n": 1})
    rows, units = (p.scale for p in equal.parts)  # type: ignore[union-attr]
    assert rows / (1 << 20) == 4 * units
    balanced = planned(query, card_of(), epsilon=1, weights="balanced")
    rows, units = (p.scale for p in balanced.parts)  # type: ignore[union-attr]
    assert rows / (1 << 20) == units
    assert sum(epsilons(balanced)) == 1


# ---------------------------------------------------------------- refusals, before anything is read


PURE = Budget(kind="pure", epsilon=Fraction(1))
RHO = Budget(kind="zcdp", rho=Fraction(1))


@pytest.mark.parametrize(
    ("budget", "asked"),
    [
        (None, {}),
        (None, {"epsilon": 1, "rho": 1}),
        (None, {"rho": 1, "delta": "1e-9"}),
        (None, {"epsilon": 0}),
        (None, {"epsilon": -1}),
        (None, {"epsilon": float("inf")}),
        (None, {"epsilon": "much"}),
        (None, {"epsilon": True}),
        (None, {"epsilon": 10**40}),
        (None, {"epsilon": 1, "delta": 1}),
        (None, {"epsilon": 1, "delta": -1}),
        (None, {"epsilon": 1, "delta": Fraction(1, 1 << 2000)}),
        (PURE, {"rho": 1}),
        (PURE, {"epsilon": 1, "delta": "1e-9"}),
        (RHO, {"epsilon": 1}),
    ],
    ids=str,
)
def test_prices_that_are_refused(budget: Budget | None, asked: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        planned(query_of(part("count")), card_of(budget=budget), **asked)


def test_queries_that_are_refused() -> None:
    unknown = query_of(part("count"), keys=[None])
    for asked in ({"epsilon": 1}, {"epsilon": 1, "delta": 0}, {"rho": 1}):
        with pytest.raises(QueryRefused, match="or declare them"):
            planned(unknown, card_of(), **asked)  # type: ignore[arg-type]
    counted = query_of(part("count_units"), keys=[None])
    with pytest.raises(InvalidParameter, match="max_groups"):
        planned(counted, card_of(max_groups=None), epsilon=1, delta="1e-9")
    with pytest.raises(InvalidParameter, match="budget of rho"):
        planned(unknown, card_of(budget=RHO), rho="1/2", delta="1e-9")
    with pytest.raises(QueryRefused, match=r"2\*\*20"):
        wide = tuple(range(1100))
        planned(query_of(part("count"), keys=[wide, wide]), card_of(), epsilon=1)
    with pytest.raises(QueryRefused, match="larger unit"):
        huge = part("sum", bounds=(Fraction(0), Fraction(1 << 251)), step=None)
        planned(query_of(huge), card_of(), epsilon=1)
    with pytest.raises(QueryRefused, match="not a single column"):
        bins = query_of(part("histogram"), order=(OrderBy(name="histogram"),))
        planned(bins, card_of(), epsilon=1)
    with pytest.raises(QueryRefused, match="not a single column"):
        hidden = call(">", ColumnName("x"), Constant(1))
        planned(query_of(part("count"), having=hidden), card_of(), epsilon=1)
    with pytest.raises(QueryRefused, match=r"2\*\*25"):
        fine = part("min", step=Fraction(1, 100))
        planned(query_of(fine, keys=[tuple(range(40_000))]), card_of(), epsilon=1)


def test_a_plan_in_words() -> None:
    query = query_of(
        part("count", "n"), part("mean", "cost"), part("quantile", "wait"), keys=[None]
    )
    text = planned(query, card_of(), epsilon=1, delta="1e-9").explain()
    assert "keys found privately" in text and "epsilon = 1, delta = 1e-09" in text
    assert "one person more or less" in text and "Each person counts for at most 20 rows" in text
    assert "Nothing has been read or charged." in text
    assert max(map(len, text.splitlines())) < 120
