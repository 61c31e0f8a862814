"""The independent checker works out the price of an answer anew, and believes no other."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import pytest
from flint import arb, fmpq
from hypothesis import assume, given, settings, strategies as st

from lastbit.checker import query as forms, release as checker
from lastbit.checker.dispatch import problem_of
from lastbit.checker.numbers import digest, number
from lastbit.checker.query import facts_of, measured_of, moves_of, rank_moved as moved_again
from lastbit.checker.tree import tree_shape
from lastbit.errors import NotCertified
from lastbit.exact.ball import working_precision
from lastbit.mechanisms.histogram import ThresholdedHistogram
from lastbit.privacy.neighbours import CHANGE_ONE
from lastbit.release.certifying import certificate_of
from lastbit.tables.card.schema import DataCard
from lastbit.tables.plan.conversion import order_delta, pair_delta
from lastbit.tables.plan.plan import planned
from lastbit.tables.plan.ranks import rank_sensitivity
from lastbit.tables.plan.selection import least_threshold, shares_of
from lastbit.tables.plan.sensitivity import measures_of, sensitivity_of
from lastbit.tables.plan.tree import tree_over
from lastbit.tables.query.expression import ColumnName, Constant
from lastbit.tables.query.query import OrderBy, Query
from lastbit.tables.query.rules import FUNCTIONS, call
from lastbit.tables.query.scan import GroupKey
from lastbit.tables.query.units import PublicJoin
from tests.cli.certificates import leaves, sealed
from tests.release.pretend import card_of, part, query_of

Certificate = dict[str, Any]
Path = tuple[str | int, ...]

RANKED = ("quantile", "min", "max")
KEYS = (("region", ("north", "south", None)),)
FOUND = (("region", None),)
WIDE = (Fraction(0), Fraction(512))
PEOPLE: dict[str, Any] = {"unit": "person", "max_rows": 20, "max_groups": 2}
SUMS = (part("count", "n"), part("sum", "s"), part("mean", "m", bounds=(-3, 5)))
RANKS = (
    part("quantile", "p90", level=Fraction(9, 10)),
    part("min", "least"),
    part("max", "most"),
)
BINS = part("histogram", "h", edges=(Fraction(0), Fraction(4), Fraction(16)))
EXAMPLES: dict[str, tuple[Query, DataCard, dict[str, Any]]] = {
    "rows, epsilon": (query_of(*SUMS, BINS), card_of(), {"epsilon": "1/2"}),
    "rows changed, epsilon": (
        query_of(part("std", "d"), RANKS[0], keys=KEYS),
        card_of(neighbours=CHANGE_ONE),
        {"epsilon": 1},
    ),
    "people, rho": (
        query_of(*SUMS, *RANKS, part("count_units", "u"), keys=KEYS),
        card_of(**PEOPLE),
        {"rho": "1/10"},
    ),
    "people, converted": (
        query_of(*SUMS, *RANKS, keys=KEYS),
        card_of(**PEOPLE),
        {"epsilon": 1, "delta": "1e-9"},
    ),
    "people, keys found": (
        query_of(*SUMS, RANKS[0], part("count_units", "u"), keys=FOUND),
        card_of(**PEOPLE, neighbours=CHANGE_ONE),
        {"epsilon": 1, "delta": "1e-6"},
    ),
    "rows, a quantile without its interval": (
        query_of(
            part("count", "n"), part("quantile", "p90", level=Fraction(9, 10), intervals=False)
        ),
        card_of(),
        {"epsilon": "1/2"},
    ),
    "rows, a tree": (
        query_of(
            *(part("quantile", f"q{n}", level=Fraction(n, 4), bounds=WIDE) for n in (1, 2, 3)),
            SUMS[0],
        ),
        card_of(),
        {"epsilon": 1},
    ),
    "people, trees": (
        query_of(
            *(part("quantile", f"q{n}", level=Fraction(n, 9)) for n in (1, 5, 8)),
            part("max", "most"),
            part("cdf", "share", edges=(Fraction(5),)),
            part("count", "n"),
            keys=KEYS,
        ),
        card_of(**PEOPLE, neighbours=CHANGE_ONE),
        {"rho": "1/10"},
    ),
    "rows, keys found by Laplace": (
        query_of(part("count", "n"), part("sum", "s"), keys=FOUND),
        card_of(),
        {"epsilon": 3, "delta": "1e-12", "weights": {"s": 3}},
    ),
    "people, keys found by shares": (
        query_of(part("count", "n"), keys=FOUND),
        card_of(**PEOPLE | {"max_groups": 40}, neighbours=CHANGE_ONE),
        {"epsilon": 1, "delta": "1e-7"},
    ),
    "people, keys found, one key apart": (
        query_of(part("count", "n"), keys=FOUND),
        card_of(**PEOPLE | {"max_groups": 40}),
        {"epsilon": 1, "delta": "1e-7"},
    ),
    "people, keys found, converted": (
        query_of(*SUMS, *RANKS, part("std", "d"), BINS, keys=FOUND),
        card_of(**PEOPLE | {"max_groups": None}),
        {"epsilon": 1, "delta": "1e-3"},
    ),
    "people, keys found by rho": (
        query_of(*SUMS, keys=FOUND),
        card_of(**PEOPLE, neighbours=CHANGE_ONE),
        {"rho": "1/10", "delta": "1e-7"},
    ),
    "people, paired": (
        query_of(
            part("count_units", "u"), part("count", "n"), keys=(("region", tuple("abcdefgh")),)
        ),
        card_of(**PEOPLE | {"max_rows": 2, "max_groups": 7}),
        {"epsilon": "1/2", "delta": "1/100"},
    ),
    "people, keys found, paired": (
        query_of(*SUMS, part("std", "d"), part("std", "e", bounds=(0, 9)), BINS, keys=FOUND),
        card_of(**PEOPLE, neighbours=CHANGE_ONE),
        {"epsilon": 1, "delta": "1e-3"},
    ),
    "people, keys found with one each": (
        query_of(part("count", "n"), keys=FOUND),
        card_of(**PEOPLE | {"max_groups": None, "max_rows": 3}),
        {"epsilon": 1, "delta": "1e-7"},
    ),
}


@cache
def text_of(name: str) -> str:
    query, card, price = EXAMPLES[name]
    return json.dumps(certificate_of(planned(query, card, **price), columns=[], rows=[]))


def produced(name: str = "people, converted") -> Certificate:
    """A fresh copy: the tests change it."""
    fresh: Certificate = json.loads(text_of(name))
    return fresh


def resealed(spoiled: Certificate) -> Certificate:
    """The same with every digest worked out anew, as whoever cheats would do."""
    asked = digest(spoiled["body"]["query"])
    plan = {**spoiled["body"]["plan"], "query": asked}
    body = {**spoiled["body"], "plan": plan, "plan_digest": digest(plan)}
    return sealed({**spoiled, "body": body, "claim": {**spoiled["claim"], "query": asked}})


def put(whole: Any, path: Path, value: Any) -> Any:
    """The same with one value replaced; only what lies on the way is copied."""
    if not path:
        return value
    copied = copy.copy(whole)
    copied[path[0]] = put(whole[path[0]], path[1:], value)
    return copied


def problem(spoiled: Certificate) -> str | None:
    return problem_of(resealed(spoiled))


# ---------------------------------------------------------------- accepted


@pytest.mark.parametrize("name", EXAMPLES)
def test_accepts(name):
    assert problem_of(produced(name)) is None
    assert resealed(produced(name)) == produced(name)


ALL = ("count", "count_units", "sum", "mean", "variance", "std", *RANKED, "histogram")
FRACTIONS = st.fractions(min_value=-50, max_value=50, max_denominator=8)


@st.composite
def aggregates(draw: st.DrawFn) -> tuple[Any, ...]:
    functions = draw(st.lists(st.sampled_from(ALL), min_size=1, max_size=4))
    parts = []
    for i, function in enumerate(functions):
        low, high = sorted(draw(st.lists(FRACTIONS, min_size=2, max_size=2, unique=True)))
        values: dict[str, Any] = {}
        if function not in ("count", "count_units"):
            step = draw(st.sampled_from((None, (high - low) / 3, (high - low) / 128)))
            values = {"step": step, "nullable": draw(st.booleans())}
            if function == "histogram":
                values["edges"] = (low, high, high + 1)
            else:
                values["bounds"] = (low, high)
        if function == "quantile":
            values["level"] = draw(st.sampled_from((Fraction(1, 2), Fraction(1, 3))))
        parts.append(part(function, f"a{i}", **values))
    return tuple(parts)


@st.composite
def plans(draw: st.DrawFn) -> Any:
    keys = draw(st.sampled_from(((), KEYS, FOUND)))
    query = query_of(*draw(aggregates()), keys=keys)
    values = draw(st.sampled_from(({}, PEOPLE, {"unit": "person", "max_rows": 3, "max_groups": 9})))
    if draw(st.booleans()):
        values = {**values, "neighbours": CHANGE_ONE}
    prices: list[dict[str, Any]] = [{"epsilon": "0.7", "delta": "1e-9"}]
    prices.append({"epsilon": 4, "delta": 0.01, "weights": "balanced"})
    if keys != FOUND:
        prices += [{"epsilon": 0.1}, {"rho": "1/30"}]
    return planned(query, card_of(**values), **draw(st.sampled_from(prices)))


@pytest.mark.evidence
@settings(deadline=None, max_examples=40)
@given(plans())
def test_accepts_whatever_is_planned_and_moves_agree(plan):
    certificate = certificate_of(plan, columns=[], rows=[])
    assert problem_of(certificate) is None
    question = forms.question_of(certificate["body"]["query"])
    facts = facts_of(certificate["body"]["plan"], question)
    again, _ = measured_of(question)
    measures, _ = measures_of(plan.query)
    assert list(again) == [measure.name for measure in measures]
    for measure in measures:
        told = sensitivity_of(measure, plan.card, groups=plan.groups)
        found = moves_of(again[measure.name], facts)
        assert found == {"l1": told.l1, "l2_squared": told.l2_squared, "linf": told.linf}
    for level in (Fraction(1, 2), Fraction(9, 10), Fraction(0)):
        assert moved_again(level, facts) == rank_sensitivity(
            level, facts.total, change_one=facts.change_one, groups=facts.groups
        )


def test_a_long_query_is_accepted():
    """Joins, filters, HAVING, ORDER BY, LIMIT, and constants that are equal but written apart."""
    x, other = ColumnName("x"), ColumnName("size", "regions")
    query = Query(
        table="visits",
        aggregates=(
            part("sum", "a", expression=call("*", x, Constant(1))),
            part("sum", "b", expression=call("*", x, Constant(Fraction(1)))),
            part("quantile", "q", step=None, expression=call("+", x, other)),
        ),
        keys=(
            GroupKey(name="big", expression=call(">", other, Constant(3)), values=(True, False)),
        ),
        where=call("in", ColumnName("region"), Constant("a"), Constant(None)),
        joins=(PublicJoin(table="regions", on=((ColumnName("region"), ColumnName("name")),)),),
        having=call(">", ColumnName("A"), Constant(10)),
        order=(OrderBy(name="q", descending=True),),
        limit=3,
    )
    plan = planned(query, card_of(**PEOPLE), epsilon=1)
    assert problem_of(certificate_of(plan, columns=[], rows=[])) is None
    assert len(plan.measures) == 3  # 1 and 1.0 are two constants


@pytest.mark.parametrize("gaussian", [False, True])
def test_both_programs_shape_trees_alike(gaussian):
    for bins in (*range(1, 130), 255, 256, 257, 300, 511, 512, 513, 729, 1000, 1023, 1024):
        tree = tree_over(bins, gaussian=gaussian)
        assert tree_shape(bins, gaussian=gaussian) == (tree.branching, tree.levels)


@pytest.mark.parametrize("name", ["rows, a tree", "people, trees"])
@pytest.mark.parametrize("branching", [2, 3, 4, 6, 8, 16, 32])
@pytest.mark.parametrize("levels", [1, 2, 3, 4, 7])
def test_a_tree_of_another_shape_is_rejected(name, branching, levels):
    """Fewer levels at the same noise cost less; the claim is lowered to what they would cost."""
    spoiled = produced(name)
    plan = spoiled["body"]["plan"]
    (tree,) = (one for one in plan["parts"] if one["part"] == "tree")
    paid = "epsilon" if tree["rho"] is None else "rho"
    old, share = Fraction(tree[paid]), Fraction(levels, tree["levels"])
    same_shape = (branching, levels) == (tree["branching"], tree["levels"])
    ((norm, size),) = tree["sensitivity"].items()
    tree |= {"branching": branching, "levels": levels, paid: str(old * share)}
    tree["sensitivity"] = {norm: str(int(size) * share)}
    cost = str(Fraction(spoiled["claim"][paid]) - old + old * share)
    for price in (spoiled["claim"], plan["cost"], plan["asked"]):
        price[paid] = cost
    found = problem(spoiled)
    assert (found is None) if same_shape else ("another shape" in str(found))


def test_both_programs_know_the_same_functions():
    assert set(forms._FUNCTIONS) == set(FUNCTIONS)
    for name, (least, most) in FUNCTIONS.items():
        assert forms._FUNCTIONS[name] == (least, 10**6 if most is None else most)


# ---------------------------------------------------------------- numbers, against Arb


def close_above(bound: Fraction, truth: arb) -> bool:
    """Not below the truth, as far as 800 bits tell, and within 10**-25 of it."""
    ball = arb(fmpq(bound.numerator, bound.denominator))
    return not ball < truth and bool(ball <= truth * (1 + arb(10) ** -25))


@pytest.mark.evidence
@given(
    st.integers(2, 3000),
    st.fractions(Fraction(1, 50), 500, max_denominator=99),
    st.integers(1, 1 << 20),
)
def test_the_chance_of_a_new_key(threshold, scale, keys):
    with working_precision(800):
        q = (-1 / arb(fmpq(scale.numerator, scale.denominator))).exp()
        p = q ** (threshold - 1) / (1 + q)
        chance, least = checker._appears(scale, threshold)
        if p < arb(2) ** -1999:  # smaller ones count as exp(-1387)
            assert p < arb(fmpq(chance.numerator, chance.denominator)) <= arb(2) ** -1998
            return
        assert close_above(chance, p)
        assert arb(fmpq(least.numerator, least.denominator)) <= 1 - q
        assert close_above(Fraction(1) - least, q)
        delta = -(keys * (-p).log1p()).expm1()  # 1 - (1-p)**keys, without cancellation
        assert close_above(checker._some(chance, keys), delta)


@pytest.mark.parametrize("scale", [Fraction(1, 10**9), Fraction(10**30)])
def test_scales_far_out(scale):
    chance, least = checker._appears(scale, 2)
    rate = 1 / scale
    assert 0 < least < min(rate, 1)
    assert chance < Fraction(1, 2) + Fraction(1, 10**20)


@given(
    st.fractions(Fraction(1, 10**4), 4, max_denominator=10**4),
    st.fractions(Fraction(1, 100), 8, max_denominator=100),
    st.fractions(Fraction(1, 100), 500, max_denominator=100),
)
def test_the_order_proves_what_the_first_program_says(rho, epsilon, above):
    order = 1 + above
    again = checker._order_delta(rho, epsilon, order)
    assume(again < 2)  # more than 1 is no delta, and is cut off
    first = order_delta(rho, epsilon, order)  # rounded up to a float
    assert again <= first <= again * (1 + Fraction(1, 2**50)) or first < Fraction(1, 2**1000)


# ---------------------------------------------------------------- small changes


def changes(value: Any) -> Iterator[Any]:
    """Smaller and larger, none, of another kind."""
    if isinstance(value, bool) or value is None:
        yield from (not value, 1, "1")
    elif isinstance(value, int):
        yield from (value + 1, value - 1, 2 * value + 1, 0, -value - 1, float(value), str(value))
        yield from (True, None)
    else:
        try:
            exact = number(value)
        except Exception:
            yield from (value + "X", "", None, 7)
            return
        for factor in (Fraction(99, 100), Fraction(101, 100), Fraction(1, 2), -1):
            yield str(exact * factor)
        yield from (str(exact + Fraction(1, 10**40)), str(exact - Fraction(1, 10**40)))
        yield from ("0", value + "0", None)


def smaller(old: Any, new: Any) -> bool:
    return isinstance(new, type(old)) and Fraction(new) < Fraction(old)


def harmless(name: str, whole: Certificate, path: Path, old: Any, new: Any) -> bool:
    """Changes after which the claim is weaker, or the mechanism adds more noise, or nothing."""
    match path:
        case ("body", "plan", "asked", "weights", *_):
            return True  # any split is as private as it says
        case ("claim", "epsilon" | "delta" | "rho") | ("body", "plan", "asked", _):
            return old is None or not smaller(old, new)
        case ("body", "plan", "parts", _, "delta"):
            one = whole["body"]["plan"]["parts"][path[3]]  # the threshold is whole: a trace is left
            if one["mechanism"] == "gaussian threshold":
                return selection_holds(put(whole, path, new))
            shown = ThresholdedHistogram(
                keys_per_person=one["keys_per_person"],
                scale=Fraction(one["scale"]),
                threshold=one["threshold"],
            )
            return shown.delta <= Fraction(new) * (1 + Fraction(1, 2**50)) <= 2 * Fraction(old)
        case ("body", "plan", "parts", _, *_, "scale" | "variance" | "threshold"):
            return smaller(new, old) if isinstance(new, type(old)) else False
        case ("body", "plan", "parts", _, "tail" | "order" | "mu"):
            return selection_holds(put(whole, path, new))
        case ("body", "plan", "parts", 0, "mu_squared") if by_conversion(whole):
            return selection_holds(put(whole, path, new))
        case ("body", "plan", "parts", 0, "rho" | "epsilon") if by_conversion(whole):
            return selection_holds(put(whole, path, new))
        case ("body", "plan", "parts", _, "rate"):
            return smaller(old, new)  # the interval stays wide enough for a trace less
        case ("body", "plan", "parts", _, "ends", _):
            return whole["body"]["plan"]["parts"][path[3]]["aggregate"] == "most"
        case ("body", "plan", "parts", _, "mu_squared"):
            return still_paid(put(whole, path, new))
        case ("body", "plan", "parts", _, "rho" | "epsilon"):
            return not smaller(old, new) and still_paid(put(whole, path, new))
        case ("body", "plan", "conversion" | "cost", _):
            return still_paid(put(whole, path, new))
        case ("body", "plan", "max_groups"):  # not needed where no unit must choose
            plan = whole["body"]["plan"]
            units = [m for m in plan["measures"] if m["kind"] in ("units", "shares")]
            if any(m["highest"] for m in units):  # a plan may choose fewer keys than the card
                return new is None or (type(new) is int and new >= units[-1]["highest"])
            return plan["unit"] is None or (plan["groups"] is not None and not units)
        case ("body", "query", "aggregates", int(i), "level") if old is not None and "tree" in name:
            return 0 < Fraction(new) < 1  # read off the tree afterwards
        case ("body", "query", "aggregates", int(i), str(field), *rest):
            return same_measures(EXAMPLES[name][0], i, field, rest, new)
    return False


def by_conversion(whole: Certificate) -> bool:
    """Whether keys are found by Gaussian noise at an epsilon of its own."""
    one = whole["body"]["plan"]["parts"][0]
    own = one.get("order") is not None or "mu" in one
    return one.get("mechanism") == "gaussian threshold" and own


def pairs_hold(plan: dict[str, Any]) -> bool:
    """Whether every part that says so has the mu**2 that it says, and a true rho as well."""
    for one in plan["parts"]:
        if "mu_squared" in one:
            moved, variance = int(one["sensitivity"]["l2_squared"]), Fraction(one["variance"])
            x = Fraction(one["mu_squared"]) / moved
            if not (0 < x <= 12 and x * (1 - x / 12) * variance >= 1):
                return False
            if Fraction(one["rho"]) < moved / (2 * variance):
                return False
    return True


def selection_holds(whole: Certificate) -> bool:
    """By the first program: the tail, and what rho and the order prove, are within delta."""
    plan = whole["body"]["plan"]
    one = plan["parts"][0]
    own = one["keys_per_person"]
    weights = shares_of(own, 2 if "single" in one else 1) if one["weight_one"] > 1 else {own: 1}
    tail, delta = Fraction(one["tail"]), Fraction(one["delta"])
    trace = 1 + Fraction(1, 2**50)
    if least_threshold(Fraction(one["variance"]), weights, tail * trace) > one["threshold"]:
        return False
    rho = Fraction(one["rho"])
    if not by_conversion(whole):
        return tail <= delta and still_paid(whole)
    epsilon = Fraction(one["epsilon"])
    if "mu" in one:
        if not pairs_hold(plan) or Fraction(one["mu"]) ** 2 < Fraction(one["mu_squared"]):
            return False
        implied = pair_delta(Fraction(one["mu"]), epsilon)
    else:
        implied = order_delta(rho, epsilon, Fraction(one["order"]))
    if "single" in one and 1 / Fraction(one["single"]["scale"]) > epsilon:
        return False
    spent = sum(Fraction(part["epsilon"]) for part in plan["parts"])
    proved = tail + implied
    cost = {name: Fraction(plan["cost"][name]) for name in ("epsilon", "delta")}
    within = spent <= cost["epsilon"] and delta <= cost["delta"]
    return within and proved <= delta * trace


def still_paid(whole: Certificate) -> bool:
    """By the first program: plans leave a trace of their price unused where roots are rounded."""
    plan, nothing = whole["body"]["plan"], {"rho": None}
    keys = next((one for one in plan["parts"] if one["part"] == "keys"), nothing)
    rho = sum(Fraction(one.get("rho") or 0) for one in plan["parts"])
    cost = {name: Fraction(text) for name, text in plan["cost"].items()}
    claim = {name: Fraction(whole["claim"][name]) for name in cost}
    if any(cost[name] > claim[name] for name in cost):
        return False
    if plan["conversion"] is None:
        return plan["composition"] == "concentrated" and rho <= cost["rho"]
    converted = {name: Fraction(text) for name, text in plan["conversion"].items()}
    epsilon = converted["epsilon"] + Fraction(keys.get("epsilon") or 0)
    delta = converted["delta"] + Fraction(keys.get("delta") or 0)
    if "mu" in converted:
        rho, converted["rho"] = Fraction(0), Fraction(0)
        spent = sum(Fraction(one["mu_squared"]) for one in plan["parts"])
        if not pairs_hold(plan) or spent > converted["mu"] ** 2 or converted["mu"] < 0:
            return False
        proved = pair_delta(converted["mu"], converted["epsilon"])
    else:
        proved = order_delta(converted["rho"], converted["epsilon"], converted["order"])
    implied = proved <= converted["delta"] * (1 + Fraction(1, 2**50))
    paid = rho <= converted["rho"] and epsilon <= cost["epsilon"] and delta <= cost["delta"]
    return implied and paid


def same_measures(query: Query, i: int, field: str, rest: list[Any], new: Any) -> bool:
    """Whether the first program measures the same for the changed query: then it is as private."""
    asked = query.aggregates[i]
    if field == "level":
        return asked.function != "quantile"
    value = None if new is None else Fraction(new)
    if rest:
        ends = list(getattr(asked, field))
        ends[rest[0]] = value
        new_ends: dict[str, Any] = {field: tuple(ends)}
        changed = replace(asked, **new_ends)
    elif field == "step":
        changed = replace(asked, step=value)
    else:
        return asked.function in ("count", "count_units") or asked.function == "histogram"
    others = (*query.aggregates[:i], changed, *query.aggregates[i + 1 :])
    return measures_of(replace(query, aggregates=others))[0] == measures_of(query)[0]


def proved_from(path: Path) -> bool:
    """Whether the proof rests on it; another filter or name is another question, as private."""
    if path[:2] != ("body", "query"):
        named = path[-1] == "query" or path[:2] == ("body", "engine")
        return path[0] in ("claim", "body") and not named
    return path[2] == "aggregates" and path[4] in ("function", "bounds", "step", "level", "edges")


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_number_counts(name, extent):
    """Thousands of changes in all, each with all digests worked out anew."""
    whole, passed = produced(name), []
    every = [
        (path, old, new)
        for path, old in leaves(whole)
        if proved_from(path)
        for new in changes(old)
        if new != old or type(new) is not type(old)
    ]
    assert len(every) > 250
    tried = extent.cases(every, one_in=12)
    for path, old, new in tried:
        spoiled = put(whole, path, new)
        if path[-1] == "plan_digest":
            accepted = problem_of(sealed(spoiled)) is None
        else:
            accepted = problem(spoiled) is None
        if accepted:
            assert harmless(name, whole, path, old, new), (path, old, new)
            passed.append(path)
    assert len(passed) < len(tried) / extent.number(3, 10)
    assert len(passed) >= extent.number(0, 1)  # the looser claims among them


@pytest.mark.parametrize("name", EXAMPLES)
def test_inner_digests_count(name, extent):
    """With the outer digest worked out anew only, any change of query or plan is seen."""
    whole = produced(name)
    every = [
        (path, new)
        for path, old in leaves(whole["body"])
        if path[0] in ("query", "plan")
        for new in list(changes(old))[:2]
        if new != old or type(new) is not type(old)
    ]
    for path, new in extent.cases(every, one_in=10):
        assert problem_of(sealed(put(whole, ("body", *path), new))) is not None, path


@pytest.mark.thinned(one_in=2)
@pytest.mark.parametrize("name", EXAMPLES)
def test_nothing_can_be_left_out_or_added(name):
    whole = produced(name)
    places: list[Path] = [()]
    places += [("claim",), ("body",), ("body", "plan"), ("body", "query"), ("body", "moves")]
    places += [("body", "plan", "cost"), ("body", "plan", "asked")]
    places += [("body", "plan", "parts", i) for i in range(len(whole["body"]["plan"]["parts"]))]
    for place in places:
        inside: Any = whole
        for key in place:
            inside = inside[key]
        for key in [*inside, "more"]:
            spoiled = {k: v for k, v in inside.items() if k != key}
            if key == "more":
                spoiled["more"] = "0"
            if key in ("digest", "engine"):
                continue  # sealing puts it back; earlier certificates do not name it
            changed = spoiled if place == () else put(whole, place, spoiled)
            assert problem_of(sealed(changed)) is not None
            if place and key not in ("query", "plan", "plan_digest"):  # what sealing needs
                assert problem(changed) is not None, (place, key)


# ---------------------------------------------------------------- forgeries


def plan_of(whole: Certificate) -> dict[str, Any]:
    return whole["body"]["plan"]


def parts_of(whole: Certificate, kind: str) -> list[dict[str, Any]]:
    return [one for one in plan_of(whole)["parts"] if one["part"] == kind]


def drop_part(kind: str, place: int = 0) -> Callable[[Certificate], None]:
    def forge(whole: Certificate) -> None:
        plan_of(whole)["parts"].remove(parts_of(whole, kind)[place])

    return forge


def double_part(whole: Certificate) -> None:
    """A measure that has noise twice is released twice."""
    plan_of(whole)["parts"].append(copy.deepcopy(parts_of(whole, "noise")[0]))


def halve_sensitivity(whole: Certificate) -> None:
    """Half the sensitivity and half the noise, at the same price, wherever it is written."""
    for one in parts_of(whole, "noise"):
        (norm,) = one["sensitivity"]
        one["sensitivity"] = {norm: str(number(one["sensitivity"][norm]) / 2)}
        name = "scale" if "scale" in one else "variance"
        one[name] = str(number(one[name]) / 2)
        moved = whole["body"]["moves"][one["measure"]]
        moved[norm] = one["sensitivity"][norm]


def fewer_rows(whole: Certificate) -> None:
    """A plan for 20 rows, said to be for 19: less noise would do, more was added; or the other."""
    plan_of(whole)["max_rows"] = 21


def no_unit(whole: Certificate) -> None:
    whole["claim"]["unit"] = plan_of(whole)["unit"] = None


def each_row(whole: Certificate) -> None:
    no_unit(whole)
    plan_of(whole).update(max_rows=1, max_groups=None, weight_one=1)


def other_neighbours(whole: Certificate) -> None:
    old = whole["claim"]["neighbours"]
    new = "add-remove" if old == "change-one" else "change-one"
    whole["claim"]["neighbours"] = plan_of(whole)["neighbours"] = new


def other_weight(whole: Certificate) -> None:
    plan_of(whole)["weight_one"] = 1 << 19


def keys_said_to_be_declared(whole: Certificate) -> None:
    drop_part("keys")(whole)
    plan_of(whole)["groups"] = 3


def drop_aggregate(whole: Certificate) -> None:
    """Say that less was asked than was released."""
    whole["body"]["query"]["aggregates"].pop(0)


def unused_measure(whole: Certificate) -> None:
    plan_of(whole)["measures"].pop()


def move_price(whole: Certificate) -> None:
    """One part says that it costs less, another that it costs more; the sum is right."""
    first, second = parts_of(whole, "noise")[:2]
    name = "rho" if first["rho"] is not None else "epsilon"
    gift = number(first[name]) / 10
    first[name] = str(number(first[name]) - gift)
    second[name] = str(number(second[name]) + gift)


def negative_conversion(whole: Certificate) -> None:
    """An epsilon below 0 would pay for the keys."""
    conversion = plan_of(whole)["conversion"]
    conversion.update(epsilon="-1", delta="1")


def order_below_one(whole: Certificate) -> None:
    plan_of(whole)["conversion"]["order"] = "1/2"


def no_conversion(whole: Certificate) -> None:
    plan_of(whole)["conversion"] = None


def claim_basic(whole: Certificate) -> None:
    plan_of(whole).update(composition="basic", conversion=None)


def gaussian_for_epsilon(whole: Certificate) -> None:
    for one in parts_of(whole, "noise"):
        one["mechanism"] = "gaussian"
        one["variance"] = one.pop("scale")
        one["rho"], one["epsilon"] = one["epsilon"], None


def free_claim(whole: Certificate) -> None:
    for price in (whole["claim"], plan_of(whole)["cost"]):
        price.update(epsilon="0", delta="0", rho="0")


def both_currencies(whole: Certificate) -> None:
    for price in (whole["claim"], plan_of(whole)["cost"], plan_of(whole)["asked"]):
        price.update(epsilon="1", rho="1")


def certain_delta(whole: Certificate) -> None:
    whole["claim"]["delta"] = "1"


def raw_filter(whole: Certificate) -> None:
    """A function that looks at other rows."""
    whole["body"]["query"]["where"] = ["rank_among_all_rows", {"column": "x"}]


def raw_having(whole: Certificate) -> None:
    """HAVING over a column of the table, not of the answer."""
    whole["body"]["query"]["having"] = [">", {"column": "x"}, {"type": "integer", "value": 3}]


def raw_order(whole: Certificate) -> None:
    whole["body"]["query"]["order"] = [["x", False]]


def foreign_column(whole: Certificate) -> None:
    """A column of a table that is not joined: whose is it?"""
    whole["body"]["query"]["where"] = ["is_missing", {"column": "x", "table": "patients"}]


def join_twice(whole: Certificate) -> None:
    on = [[{"column": "x"}, {"column": "x"}]]
    joins = [{"table": "p", "on": on}, {"table": "P", "on": on}]
    whole["body"]["query"]["joins"] = joins


def key_twice(whole: Certificate) -> None:
    """The same group released twice, each time at the price of once."""
    values = whole["body"]["query"]["keys"][0]["values"]
    values[1] = values[0]


def key_of_another_type(whole: Certificate) -> None:
    whole["body"]["query"]["keys"][0]["values"][1] = {"type": "integer", "value": 1}


def keys_per_person(whole: Certificate) -> None:
    """Each unit brings one key only, they say, with the noise for one."""
    (one,) = parts_of(whole, "keys")
    one["keys_per_person"] = 1
    if one["mechanism"] == "threshold":
        one["scale"] = str(number(one["scale"]) / 2)
    else:
        one["variance"] = str(number(one["variance"]) / 2)


def low_threshold(whole: Certificate) -> None:
    (one,) = parts_of(whole, "keys")
    one["threshold"] -= 1


def coarsely_low_threshold(whole: Certificate) -> None:
    """In units of a share's 2**20 parts, one step less shows nothing that could be seen."""
    (one,) = parts_of(whole, "keys")
    one["threshold"] -= one["weight_one"] // 100


def fewer_keys_chosen(whole: Certificate) -> None:
    """A unit is said to choose fewer keys than the statement let it choose."""
    plan_of(whole)["measures"][-1]["highest"] = 1


def more_keys_chosen(whole: Certificate) -> None:
    """More keys than were paid for, said in the measure alone."""
    plan_of(whole)["measures"][-1]["highest"] += 1


def more_keys_than_the_card_allows(whole: Certificate) -> None:
    plan_of(whole)["max_groups"] = plan_of(whole)["measures"][-1]["highest"] - 1


def shares_of_another_weight(whole: Certificate) -> None:
    (one,) = parts_of(whole, "keys")
    one["weight_one"] = 1


def counted_for_shares(whole: Certificate) -> None:
    """Units are counted in full, where shares of them were paid for."""
    measure = plan_of(whole)["measures"][-1]
    measure["kind"] = "units"
    own = measure["highest"]
    whole["body"]["moves"][measure["name"]] = {"l1": str(own), "l2_squared": str(own), "linf": "1"}


def little_noise_on_shares(whole: Certificate) -> None:
    (one,) = parts_of(whole, "keys")
    one["variance"] = str(number(one["variance"]) * Fraction(999, 1000))


def small_tail(whole: Certificate) -> None:
    (one,) = parts_of(whole, "keys")
    one["tail"] = str(number(one["tail"]) * Fraction(99, 100))


def free_tail(whole: Certificate) -> None:
    (one,) = parts_of(whole, "keys")
    one["delta"] = "0"


def cheap_order(whole: Certificate) -> None:
    (one,) = parts_of(whole, "keys")
    one["order"] = "2"


def unpaid_epsilon(whole: Certificate) -> None:
    (one,) = parts_of(whole, "keys")
    one["epsilon"] = None


def negative_epsilon(whole: Certificate) -> None:
    (one,) = parts_of(whole, "keys")
    one["epsilon"] = "-1"


def no_measure_for_keys(whole: Certificate) -> None:
    (one,) = parts_of(whole, "keys")
    one["measure"] = None


def nothing_for_one_key(whole: Certificate) -> None:
    """Keys that units have alone are shown as they are, and nothing is said of it."""
    (one,) = parts_of(whole, "keys")
    del one["single"]


def one_key_shown_early(whole: Certificate) -> None:
    (one,) = parts_of(whole, "keys")
    one["single"]["threshold"] -= 1


def little_noise_on_one_key(whole: Certificate) -> None:
    (one,) = parts_of(whole, "keys")
    one["single"]["scale"] = str(number(one["single"]["scale"]) * Fraction(999, 1000))


def little_mu(whole: Certificate) -> None:
    """All parts and the conversion say a little less than their noise proves."""
    plan = plan_of(whole)
    for one in plan["parts"]:
        one["mu_squared"] = str(number(one["mu_squared"]) * Fraction(999, 1000))


def much_mu(whole: Certificate) -> None:
    """A mu for which delta is too small."""
    for one in (plan_of(whole)["conversion"] or {}, *plan_of(whole)["parts"]):
        if "mu" in one:
            one["mu"] = str(number(one["mu"]) * Fraction(1001, 1000))


def mu_below_its_parts(whole: Certificate) -> None:
    for one in (plan_of(whole)["conversion"] or {}, *plan_of(whole)["parts"]):
        if "mu" in one:
            one["mu"] = str(number(one["mu"]) * Fraction(999, 1000))


def mu_beyond_the_theorem(whole: Certificate) -> None:
    """x (1 - x/12) falls from 6 on, and is negative from 12 on."""
    for one in plan_of(whole)["parts"]:
        one["mu_squared"] = str(13 * int(one["sensitivity"]["l2_squared"]))


def mu_for_rho(whole: Certificate) -> None:
    """The plan says mu, its parts nothing of it."""
    for one in plan_of(whole)["parts"]:
        del one["mu_squared"]


def little_noise_on_a_pair(whole: Certificate) -> None:
    one = plan_of(whole)["parts"][-1]
    one["variance"] = str(number(one["variance"]) * Fraction(999, 1000))


def negative_mu(whole: Certificate) -> None:
    plan_of(whole)["conversion"]["mu"] = "-" + plan_of(whole)["conversion"]["mu"]


def one_key_paid_twice(whole: Certificate) -> None:
    (one,) = parts_of(whole, "keys")
    one["single"]["epsilon"] = "0"


def one_key_among_the_others(whole: Certificate) -> None:
    """Shares of all units were measured, with the tail of those that have several keys."""
    plan_of(whole)["measures"][-1]["lowest"] = 0


def three_keys_at_least(whole: Certificate) -> None:
    plan_of(whole)["measures"][-1]["lowest"] = 3


def units_change(whole: Certificate) -> None:
    """One unit changes, from one key to several, with twice the noise on shares."""
    (one,) = parts_of(whole, "keys")
    other_neighbours(whole)
    for name in ("variance", "threshold"):
        one[name] = str(2 * number(one[name])) if name == "variance" else 2 * one[name]
    moves = whole["body"]["moves"][one["measure"]]
    one["sensitivity"]["l2_squared"] = moves["l2_squared"] = str(2 * int(moves["l2_squared"]))
    moves["l1"] = str(2 * int(moves["l1"]))


def everything_shown(whole: Certificate) -> None:
    """The lowest threshold, with a delta that is still too small for it."""
    (one,) = parts_of(whole, "keys")
    one["threshold"] = 2
    for price in (one, plan_of(whole)["cost"], plan_of(whole)["asked"], whole["claim"]):
        price["delta"] = "1/5"


def near_rank(whole: Certificate) -> None:
    one = next(one for one in parts_of(whole, "rank") if one["role"] == "low")
    one["ends"] = ["1", "1"]


def no_ends(whole: Certificate) -> None:
    one = next(one for one in parts_of(whole, "rank") if one["role"] == "low")
    one["ends"] = ["0", "0"]
    one["candidates"] -= 2


def other_level(whole: Certificate) -> None:
    """The median has a smaller sensitivity than the ninth decile."""
    for one in parts_of(whole, "rank"):
        if one["aggregate"] == "p90":
            one["level"] = "1/2"


def other_bins(whole: Certificate) -> None:
    parts_of(whole, "rank")[0]["measure"] = parts_of(whole, "noise")[0]["measure"]


SHARES = (
    "people, keys found by shares",
    "people, keys found, converted",
    "people, keys found by rho",
)
BY_ONE, APART = "people, keys found with one each", "people, keys found, one key apart"
PAIRED = ("people, paired", "people, keys found, paired")
CONVERTED, RHO, LAPLACE = "people, converted", "people, rho", "rows, epsilon"
KEYS_FOUND, KEYS_LAPLACE = "people, keys found", "rows, keys found by Laplace"
FORGERIES: list[tuple[str, Callable[[Certificate], None]]] = [
    *((name, drop_part("noise")) for name in EXAMPLES if name != KEYS_LAPLACE),
    (KEYS_LAPLACE, drop_part("noise")),
    (KEYS_FOUND, drop_part("keys")),
    (RHO, drop_part("rank", 1)),
    *((name, double_part) for name in EXAMPLES),
    *((name, halve_sensitivity) for name in EXAMPLES),
    *((name, other_neighbours) for name in EXAMPLES),
    *((name, other_weight) for name in EXAMPLES),
    *((name, drop_aggregate) for name in EXAMPLES),
    *((name, unused_measure) for name in EXAMPLES),
    *((name, free_claim) for name in EXAMPLES),
    *((name, both_currencies) for name in EXAMPLES),
    *((name, forge) for name in EXAMPLES for forge in (raw_filter, raw_having, raw_order)),
    *((name, forge) for name in EXAMPLES for forge in (foreign_column, join_twice)),
    *((name, forge) for name in (RHO, CONVERTED) for forge in (fewer_rows, no_unit, each_row)),
    *((name, forge) for name in (RHO, CONVERTED) for forge in (key_twice, key_of_another_type)),
    *((name, forge) for name in (RHO, CONVERTED) for forge in (near_rank, no_ends, other_level)),
    *((name, other_bins) for name in (RHO, CONVERTED)),
    *((name, move_price) for name in (LAPLACE, RHO, CONVERTED)),
    *((name, forge) for name in (CONVERTED, KEYS_FOUND) for forge in (no_conversion, claim_basic)),
    *((CONVERTED, forge) for forge in (negative_conversion, order_below_one, certain_delta)),
    (LAPLACE, gaussian_for_epsilon),
    *((KEYS_FOUND, f) for f in (keys_said_to_be_declared, keys_per_person, low_threshold)),
    *((KEYS_LAPLACE, forge) for forge in (low_threshold, everything_shown)),
    *((name, forge) for name in SHARES for forge in (fewer_keys_chosen, more_keys_chosen)),
    *((name, forge) for name in SHARES for forge in (shares_of_another_weight, keys_per_person)),
    *((name, forge) for name in SHARES for forge in (counted_for_shares, small_tail, free_tail)),
    *((name, forge) for name in SHARES for forge in (little_noise_on_shares, no_measure_for_keys)),
    *((name, coarsely_low_threshold) for name in SHARES),
    *((SHARES[0], forge) for forge in (cheap_order, unpaid_epsilon, negative_epsilon)),
    *((BY_ONE, f) for f in (more_keys_chosen, low_threshold, no_measure_for_keys)),
    *((name, more_keys_than_the_card_allows) for name in (*SHARES, BY_ONE, APART)),
    *((APART, f) for f in (fewer_keys_chosen, more_keys_chosen, keys_per_person, free_tail)),
    *((APART, f) for f in (counted_for_shares, little_noise_on_shares, coarsely_low_threshold)),
    *((APART, f) for f in (nothing_for_one_key, one_key_shown_early, little_noise_on_one_key)),
    *((APART, f) for f in (one_key_paid_twice, one_key_among_the_others)),
    *((name, f) for name in (*PAIRED, SHARES[0], APART) for f in (much_mu, mu_below_its_parts)),
    *((name, f) for name in PAIRED for f in (little_mu, mu_for_rho, mu_beyond_the_theorem)),
    *((name, f) for name in PAIRED for f in (little_noise_on_a_pair, negative_mu, no_conversion)),
    *((APART, f) for f in (three_keys_at_least, units_change, unpaid_epsilon, cheap_order)),
]


@pytest.mark.parametrize(("name", "forge"), FORGERIES)
def test_forgeries(name, forge):
    whole = produced(name)
    forge(whole)
    assert problem(whole) is not None


@pytest.mark.parametrize("name", ["rows, a tree", "people, trees"])
def test_a_tree_costs_what_its_levels_cost(name):
    """Fewer levels, that of the bins alone, a tree for a count, none, two: all refused."""
    place = [one["part"] for one in produced(name)["body"]["plan"]["parts"]].index("tree")
    path: Path = ("body", "plan", "parts", place)
    whole = produced(name)
    tree = whole["body"]["plan"]["parts"][place]
    for levels in (tree["levels"] - 1, tree["levels"] + 1, 0, -1, True, 2.0, "3", None, 10**9):
        assert "shape" in (problem(put(whole, (*path, "levels"), levels)) or "")
    for branching in (1, 0, -2, True, 2.0, None):
        assert "shape" in (problem(put(whole, (*path, "branching"), branching)) or "")
    (norm, moved), *_ = tree["sensitivity"].items()
    bins = str(int(moved) // tree["levels"])
    assert "sensitivity" in (problem(put(whole, (*path, "sensitivity"), {norm: bins})) or "")
    counted = next(m["name"] for m in whole["body"]["plan"]["measures"] if m["kind"] == "rows")
    assert "missing" in (problem(put(whole, (*path, "measure"), counted)) or "")
    parts = whole["body"]["plan"]["parts"]
    assert "missing" in (problem(put(whole, path[:-1], parts[:place] + parts[place + 1 :])) or "")
    assert "too many" in (problem(put(whole, path[:-1], [*parts, tree])) or "")
    noise = {**tree, "part": "noise"}
    assert problem(put(whole, path, noise)) is not None


def test_the_point_of_a_share_is_within_its_bounds():
    """Read off the tree afterwards, any point is as private; but no query has one outside."""
    whole = produced("people, trees")
    path: Path = ("body", "query", "aggregates", 4)
    low, high = map(Fraction, whole["body"]["query"]["aggregates"][4]["bounds"])
    for point in (low, (low + high) / 3, high):
        assert problem(put(whole, (*path, "edges"), [str(point)])) is None
    for point in (low - Fraction(1, 10**9), high + 1):
        assert "outside" in (problem(put(whole, (*path, "edges"), [str(point)])) or "")
    for points in ([], [str(low), str(high)], None):
        assert "no point" in (problem(put(whole, (*path, "edges"), points)) or "")


def test_an_interval_is_there_or_it_is_not():
    """One draw is not three, three are not one, and nothing else has an interval to leave out."""
    bare = produced("rows, a quantile without its interval")
    del bare["body"]["query"]["aggregates"][1]["intervals"]
    assert "missing" in (problem(bare) or "")
    three = produced("people, rho")
    place = [a["function"] for a in three["body"]["query"]["aggregates"]].index("quantile")
    three["body"]["query"]["aggregates"][place]["intervals"] = False
    assert "one too many" in (problem(three) or "")
    for wrong in (True, None, 0):
        three["body"]["query"]["aggregates"][place]["intervals"] = wrong
        assert "neither" in (problem(three) or "")
    counted = produced("rows, a quantile without its interval")
    counted["body"]["query"]["aggregates"][0]["intervals"] = False
    assert "costs nothing" in (problem(counted) or "")


@pytest.mark.parametrize(
    "engine",
    [
        {"name": "sqlite", "version": "3", "dialect": 1},
        {"name": "duckdb", "version": "1.4; trust me", "dialect": 1},
        {"name": "duckdb", "version": 1, "dialect": 1},
        {"name": "spark", "version": "4.0.1", "dialect": 0},
        {"name": "spark", "version": "4.0.1", "dialect": True},
        {"name": "postgres", "version": "16.4"},
        {"name": "postgres", "version": "16.4", "dialect": 1, "exact": True},
        "duckdb",
        None,
    ],
)
def test_an_engine_is_named_in_one_form(engine):
    whole = produced()
    assert whole["body"]["engine"]["name"] == "duckdb"
    for name in ("postgres", "spark"):
        other = {"name": name, "version": "16.4", "dialect": 2}
        assert problem(put(whole, ("body", "engine"), other)) is None
    assert "the engine is malformed" in (problem(put(whole, ("body", "engine"), engine)) or "")
    del whole["body"]["engine"]  # as earlier certificates
    assert problem(whole) is None


def test_a_key_declared_twice_is_refused_however_honest_the_plan():
    """Its group would be released twice; the plan's own numbers do not show it."""
    query = query_of(part("count", "n"), keys=[("region", ("north", "south"))])
    object.__setattr__(query.keys[0], "values", ("north", "north"))  # a key refuses it
    plan = planned(query, card_of(), epsilon=1)
    with pytest.raises(NotCertified, match="a key is declared twice"):
        certificate_of(plan, columns=[], rows=[])


@pytest.mark.parametrize(("threshold", "good"), [(18, False), (19, True)])
def test_not_seeing_a_key_may_not_tell_more_than_epsilon(threshold, good):
    """However large the delta: at scale 10 the least threshold is 19 (theory page)."""
    whole = produced(KEYS_LAPLACE)
    (one,) = parts_of(whole, "keys")
    one.update(threshold=threshold, scale="10", delta="99/100")
    for price in (plan_of(whole)["cost"], plan_of(whole)["asked"], whole["claim"]):
        price["delta"] = "99/100"
    assert (problem(whole) is None) == good


@pytest.mark.parametrize("name", EXAMPLES)
def test_assumptions_are_demanded_word_for_word(name):
    whole = produced(name)
    for sentence in whole["assumptions"]:
        fewer = [other for other in whole["assumptions"] if other != sentence]
        assert problem_of(sealed({**whole, "assumptions": fewer})) is not None
