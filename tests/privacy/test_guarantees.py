"""The values themselves: what is taken, what is refused, how they read, travel and add up."""

import ast
import copy
import dataclasses
import html.parser
import json
import math
import pickle
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, strategies as st

from lastbit.errors import IncompatibleGuarantees, InvalidParameter, LastbitError, WrongType
from lastbit.privacy.guarantees import (
    ZCDP,
    ApproxDP,
    Guarantee,
    MetricDP,
    ProbabilisticDP,
    PureDP,
    RenyiDP,
    from_json,
)
from lastbit.privacy.neighbours import ADD_REMOVE, AS_DECLARED, CHANGE_ONE, Neighbours
from tests.privacy.truth import decimal, decimals, exp, hockey_stick

KINDS = (PureDP, ApproxDP, ProbabilisticDP, ZCDP, RenyiDP, MetricDP)

fractions = st.fractions(min_value=0, max_value=10**6)
losses = st.one_of(
    fractions,
    st.floats(min_value=0, allow_nan=False).map(lambda x: x if x == math.inf else Fraction(x)),
    st.just(math.inf),
)
deltas = st.one_of(st.fractions(0, 1), st.floats(0, 1).map(Fraction), st.sampled_from([0, 1]))
orders = st.fractions(min_value=Fraction(1001, 1000), max_value=1000)
units = st.text(min_size=1, max_size=8)
relations = st.builds(
    Neighbours, st.sampled_from(["add-remove", "change-one", "as-declared"]), units
)
guarantees: st.SearchStrategy[Guarantee] = st.one_of(
    st.builds(PureDP, losses, neighbours=relations),
    st.builds(ApproxDP, losses, deltas, neighbours=relations),
    st.builds(ProbabilisticDP, losses, deltas, neighbours=relations),
    st.builds(ZCDP, losses, neighbours=relations),
    st.builds(RenyiDP, orders, losses, neighbours=relations),
    st.builds(MetricDP, losses, st.fractions(Fraction(1, 99), 99), units, neighbours=relations),
    st.builds(
        MetricDP,
        losses,
        st.fractions(Fraction(1, 99), 99),
        units,
        slack=st.fractions(0, 9),
        neighbours=relations,
    ),
)


def loss_of(guarantee):
    return guarantee.rho if isinstance(guarantee, ZCDP) else guarantee.epsilon


def made(kind, loss, **others):
    match kind.__name__:
        case "PureDP" | "ZCDP" | "MetricDP":
            return kind(loss, **others)
        case "RenyiDP":
            return kind(2, loss, **others)
    return kind(loss, "1e-9", **others)


# ---------------------------------------------------------------- parameters


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("written", "exact"),
    [
        (0, Fraction(0)),
        (3, Fraction(3)),
        (0.1, Fraction(0.1)),
        ("0.1", Fraction(1, 10)),
        ("1/3", Fraction(1, 3)),
        ("1e-300", Fraction(1, 10**300)),
        (Fraction(22, 7), Fraction(22, 7)),
        (Decimal("0.7"), Fraction(7, 10)),
        (np.float64(0.5), Fraction(1, 2)),
        (np.float32(0.1), Fraction(float(np.float32(0.1)))),
        (np.int64(4), Fraction(4)),
        (10**400, Fraction(10**400)),
        (-0.0, Fraction(0)),
    ],
)
def test_a_loss_is_taken_exactly(kind, written, exact):
    loss = loss_of(made(kind, written))
    assert loss == exact
    assert type(loss) is Fraction


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("infinite", [math.inf, np.float64(math.inf)])
def test_infinity_promises_nothing(kind, infinite):
    assert loss_of(made(kind, infinite)) == math.inf
    assert made(kind, 1).implies(made(kind, infinite))
    assert not made(kind, infinite).implies(made(kind, 1))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "bad",
    [
        *(math.nan, -math.inf, -1, -1e-300, np.float64(math.nan), np.float32(math.inf)),
        *("-1/3", "inf", "nan", "", "ten", "1/0", "0x10", "1e99999"),
        *(Decimal("nan"), Decimal("inf"), Decimal(-1)),
    ],
)
def test_no_loss_at_all(kind, bad):
    name = "rho" if kind is ZCDP else "epsilon"
    with pytest.raises(InvalidParameter, match=f"^{name} ") as caught:
        made(kind, bad)
    assert caught.value.remedy


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bad", [True, False, None, [], {}, 1j, b"1", object()])
def test_not_even_a_number(kind, bad):
    with pytest.raises(WrongType):
        made(kind, bad)


@pytest.mark.parametrize("kind", [ApproxDP, ProbabilisticDP])
@pytest.mark.parametrize(
    "bad", [-1, -1e-300, "1.0000000001", 2, math.inf, math.nan, "x", True, None]
)
def test_a_delta_is_a_probability(kind, bad):
    with pytest.raises(InvalidParameter, match=r"^delta "):
        kind(1, bad)


@pytest.mark.parametrize("kind", [ApproxDP, ProbabilisticDP])
@pytest.mark.parametrize("good", [0, 1, "1e-300", 5e-324, Fraction(1, 3)])
def test_delta_from_nothing_to_everything(kind, good):
    assert kind(1, good).delta == Fraction(good)


@pytest.mark.parametrize("bad", [1, 0, -2, "0.99", math.inf, math.nan, True])
def test_an_order_is_above_one(bad):
    with pytest.raises(InvalidParameter, match=r"^alpha "):
        RenyiDP(bad, 1)


@pytest.mark.parametrize("bad", [0, -1, math.inf, math.nan, "m", True])
def test_a_distance_is_above_zero(bad):
    with pytest.raises(InvalidParameter, match=r"^per "):
        MetricDP(1, bad)


@pytest.mark.parametrize("bad", ["", 5, None, b"m"])
def test_the_unit_of_a_distance_is_a_name(bad):
    with pytest.raises(InvalidParameter, match="unit"):
        MetricDP(1, 1, bad)


@pytest.mark.parametrize("bad", [3, None, "add-remove", ("add-remove", "record")])
def test_neighbours_are_a_relation(bad):
    with pytest.raises(InvalidParameter, match="neighbours"):
        PureDP(1, neighbours=bad)


def test_metric_privacy_at_a_distance():
    place = MetricDP("0.5", per=200, unit="m", neighbours=ADD_REMOVE)
    assert place.at(0) == PureDP(0, neighbours=ADD_REMOVE)
    assert place.at(100) == PureDP("1/4", neighbours=ADD_REMOVE)
    assert MetricDP(math.inf).at(0) == PureDP(0)
    assert MetricDP(math.inf).at("1e-400") == PureDP(math.inf)
    assert MetricDP(math.inf, per=10**400).at(1) == PureDP(math.inf)
    for bad in (-1, math.nan, math.inf, "far", True):
        with pytest.raises(InvalidParameter, match="distance"):
            place.at(bad)


def test_a_slack_is_added_to_every_distance_but_none():
    place = MetricDP("0.5", per=200, unit="m", slack=4, neighbours=ADD_REMOVE)
    assert place.at(0) == PureDP(0, neighbours=ADD_REMOVE)
    assert place.at(96) == PureDP("1/4", neighbours=ADD_REMOVE)
    assert place.at("1e-400").epsilon > Fraction(1, 100)
    assert MetricDP(math.inf, slack=3).at(0) == PureDP(0)
    assert MetricDP(0, slack=3).at(7) == PureDP(0)
    assert place != MetricDP("0.5", per=200, unit="m", neighbours=ADD_REMOVE)


@pytest.mark.parametrize("bad", [-1, math.inf, math.nan, "m", True, None, "1e-9000"])
def test_a_slack_is_a_distance(bad):
    with pytest.raises(InvalidParameter, match=r"^slack "):
        MetricDP(1, slack=bad)


def test_a_slack_is_shown_and_written_only_if_there_is_one():
    plain, loose = MetricDP(1, 200, "m"), MetricDP(1, 200, "m", slack="0.5")
    assert repr(plain) == "MetricDP(epsilon=1, per=200, unit='m')"
    assert repr(loose) == "MetricDP(epsilon=1, per=200, unit='m', slack='0.5')"
    assert str(loose) == "Metric privacy: ε = 1, per = 200, unit = m, slack = 0.5"
    assert "slack" not in plain.to_dict()
    assert "slack" not in plain._repr_html_()
    assert loose.to_dict()["slack"] == "1/2"
    written_before = (
        '{"kind": "MetricDP", "epsilon": "1", "per": "200", "unit": "m", '
        '"neighbours": {"relation": "as-declared", "unit": "record"}}'
    )
    assert from_json(written_before) == plain
    assert from_json(loose.to_json()) == loose


# ---------------------------------------------------------------- values


@given(guarantees, guarantees)
def test_equal_means_the_same_promise(one, other):
    same = type(one) is type(other) and one.to_dict() == other.to_dict()
    assert (one == other) == same
    if same:
        assert hash(one) == hash(other)


def test_the_float_is_not_the_decimal():
    assert PureDP(0.1) != PureDP("0.1")
    assert PureDP(0.5) == PureDP("1/2")
    assert len({PureDP(1), PureDP("1"), PureDP(1.0), PureDP(1, neighbours=ADD_REMOVE)}) == 2
    assert len({ApproxDP(1, 0), ProbabilisticDP(1, 0)}) == 2


@given(guarantees)
def test_frozen_copied_and_sent_away(guarantee):
    for field in dataclasses.fields(guarantee):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(guarantee, field.name, 0)
    with pytest.raises((AttributeError, TypeError)):
        object.__setattr__(guarantee, "mood", "good")
    assert copy.deepcopy(guarantee) == guarantee
    assert pickle.loads(pickle.dumps(guarantee)) == guarantee


def read_back(text: str) -> object:
    """What the constructor call in `text` gives: our own small eval."""
    call = ast.parse(text, mode="eval").body
    makers: dict[str, Any] = {kind.__name__: kind for kind in (*KINDS, Neighbours)}

    def value(node: ast.expr) -> object:
        match node:
            case ast.Call(func=ast.Name(id="float"), args=[ast.Constant(value="inf")]):
                return math.inf
            case ast.Attribute(value=ast.Name(id="math"), attr="inf") | ast.Name(id="inf"):
                return math.inf
            case ast.Call(func=ast.Name(id=name)):
                arguments = [value(a) for a in node.args]
                named = {k.arg: value(k.value) for k in node.keywords if k.arg}
                return makers[name](*arguments, **named)
        return ast.literal_eval(node)

    return value(call)


@given(guarantees)
@example(PureDP("1e-4000"))
@example(PureDP(10**4000))
@example(ApproxDP("1/3", 0.1, neighbours=CHANGE_ONE.by('it\'s "quoted"\n')))
def test_repr_reads_back(guarantee):
    assert read_back(repr(guarantee)) == guarantee


def test_what_people_read():
    assert repr(PureDP(0.1)) == "PureDP(epsilon=0.1)"
    assert repr(PureDP("0.1")) == "PureDP(epsilon='0.1')"
    assert str(ApproxDP("0.1", "1e-9")) == "Approximate differential privacy: ε = 0.1, δ = 1e-09"
    assert str(MetricDP(1, 200, "m")) == "Metric privacy: ε = 1, per = 200, unit = m"
    assert str(PureDP(math.inf)) == "Pure differential privacy: ε = inf"


# ---------------------------------------------------------------- JSON


@given(guarantees)
@example(PureDP(math.inf))
@example(ZCDP(math.inf, neighbours=CHANGE_ONE))
@example(MetricDP(math.inf, 3, "inf", neighbours=ADD_REMOVE.by("inf")))
@example(PureDP("1e-4000"))
def test_json_both_ways(guarantee):
    text = guarantee.to_json()
    assert from_json(text) == guarantee
    assert json.loads(text) == guarantee.to_dict()
    assert "Infinity" not in text


RECORD = {"relation": "as-declared", "unit": "record"}


@pytest.mark.parametrize(
    "text",
    ["", "null", "[]", "3", '"PureDP"', "{}", "{", "\x00", '{"kind": "PureDP"}']
    + ["[" * 100_000, "1" * 5000, '{"kind": "PureDP", "epsilon": ' + "1" * 5000 + "}"]
    + [
        json.dumps(values)
        for values in (
            {"kind": "PureDP", "epsilon": "1"},
            {"kind": "PureDP", "epsilon": "1", "neighbours": None},
            {"kind": "PureDP", "epsilon": "1", "neighbours": {}},
            {"kind": "PureDP", "epsilon": "1", "neighbours": {"relation": "eval", "unit": "x"}},
            {"kind": "PureDP", "epsilon": "1", "neighbours": {"relation": [], "unit": "x"}},
            {"kind": "PureDP", "epsilon": "1", "neighbours": RECORD | {"more": 1}},
            {"kind": "PureDP", "epsilon": "1", "neighbours": {**RECORD, "unit": 5}},
            {"kind": "PureDP", "epsilon": True, "neighbours": RECORD},
            {"kind": "PureDP", "epsilon": None, "neighbours": RECORD},
            {"kind": "PureDP", "epsilon": "nan", "neighbours": RECORD},
            {"kind": "PureDP", "epsilon": "-1", "neighbours": RECORD},
            {"kind": "PureDP", "epsilon": "-inf", "neighbours": RECORD},
            {"kind": "PureDP", "epsilon": "1e999999999", "neighbours": RECORD},
            {"kind": "PureDP", "epsilon": "1/0", "neighbours": RECORD},
            {"kind": "PureDP", "epsilon": {"a": 1}, "neighbours": RECORD},
            {"kind": "PureDP", "epsilon": math.nan, "neighbours": RECORD},
            {"kind": "PureDP", "epsilon": "1", "delta": "0", "neighbours": RECORD},
            {"kind": "PureDP", "rho": "1", "neighbours": RECORD},
            {"kind": "ApproxDP", "epsilon": "1", "delta": "2", "neighbours": RECORD},
            {"kind": "ApproxDP", "epsilon": "1", "delta": "inf", "neighbours": RECORD},
            {"kind": "RenyiDP", "alpha": "inf", "epsilon": "1", "neighbours": RECORD},
            {"kind": "RenyiDP", "alpha": "1", "epsilon": "1", "neighbours": RECORD},
            {"kind": "MetricDP", "epsilon": "1", "per": "0", "unit": "m", "neighbours": RECORD},
            {"kind": "MetricDP", "epsilon": "1", "per": "1", "unit": 5, "neighbours": RECORD},
            {"kind": "MetricDP", "epsilon": "1", "slack": "-1", "neighbours": RECORD},
            {"kind": "MetricDP", "epsilon": "1", "slack": "inf", "neighbours": RECORD},
            {"kind": "Neighbours", "relation": "add-remove", "neighbours": RECORD},
            {"kind": "_Guarantee", "neighbours": RECORD},
            {"kind": "__import__", "neighbours": RECORD},
            {"kind": ["PureDP"], "epsilon": "1", "neighbours": RECORD},
            {"kind": None, "epsilon": "1", "neighbours": RECORD},
        )
    ],
    ids=lambda text: text[:60],
)
def test_hostile_json_is_refused_as_a_parameter(text):
    with pytest.raises(InvalidParameter):
        from_json(text)


@given(st.text(max_size=40))
def test_no_text_breaks_the_reader(text):
    with pytest.raises(LastbitError):
        from_json(text)


@pytest.mark.parametrize("value", [None, 3, PureDP(1), {"kind": "PureDP"}])
def test_what_is_no_text_is_refused(value):
    with pytest.raises(InvalidParameter):
        from_json(value)


# ---------------------------------------------------------------- HTML


class Tags(html.parser.HTMLParser):
    """Collects the tags of a fragment and its text."""

    def __init__(self, fragment: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.feed(fragment)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        assert not attributes

    def handle_data(self, data):
        self.text += data


@pytest.mark.parametrize("unit", ["<script>alert(1)</script>", "a & b", '"><img src=x>', "<"])
def test_a_unit_cannot_write_html(unit):
    for guarantee in (
        PureDP(1, neighbours=ADD_REMOVE.by(unit)),
        MetricDP(1, 1, unit),
        MetricDP(1, 1, unit, neighbours=CHANGE_ONE.by(unit)),
    ):
        page = Tags(guarantee._repr_html_())
        assert set(page.tags) <= {"table", "caption", "tr", "td", "th", "tbody"}
        assert unit in page.text


@given(guarantees)
def test_html_shows_every_parameter(guarantee):
    page = Tags(guarantee._repr_html_())
    symbols = dict(type(guarantee).symbols)
    if isinstance(guarantee, MetricDP) and not guarantee.slack:
        del symbols["slack"]
    assert page.tags.count("tr") == len(symbols) + 1
    assert all(symbol in page.text for symbol in symbols.values())


# ---------------------------------------------------------------- adding and grouping, by type


@pytest.mark.parametrize("one", KINDS)
@pytest.mark.parametrize("other", KINDS)
def test_only_one_kind_adds_up(one, other):
    if one is other:
        assert loss_of(made(one, 1) + made(one, "1/3")) == Fraction(4, 3)
        return
    with pytest.raises(IncompatibleGuarantees, match=r"\.to\(ApproxDP, delta=") as caught:
        made(one, 1) + made(other, 1)
    assert "best_composition" in str(caught.value)


def test_different_neighbours_do_not_add_up_and_the_way_out_is_named():
    one, other = PureDP(1, neighbours=ADD_REMOVE), PureDP(1, neighbours=CHANGE_ONE)
    with pytest.raises(IncompatibleGuarantees, match=r"changed_one\(\)"):
        one + other
    with pytest.raises(IncompatibleGuarantees, match=r"changed_one\(\)"):
        other + one
    assert one.changed_one() + other == PureDP(3, neighbours=CHANGE_ONE)
    with pytest.raises(IncompatibleGuarantees, match=r"\.under\(ADD_REMOVE\)"):
        PureDP(1) + one
    assert PureDP(1).under(ADD_REMOVE) + one == PureDP(2, neighbours=ADD_REMOVE)
    with pytest.raises(IncompatibleGuarantees, match="same unit"):
        one + PureDP(1, neighbours=ADD_REMOVE.by("visit"))
    with pytest.raises(IncompatibleGuarantees, match="same unit"):
        one + PureDP(1, neighbours=CHANGE_ONE.by("visit"))


@pytest.mark.parametrize("kind", KINDS)
def test_sum(kind):
    parts = [made(kind, Fraction(1, n), neighbours=ADD_REMOVE) for n in (1, 2, 3)]
    assert loss_of(sum(parts)) == Fraction(11, 6)
    assert sum(parts).neighbours == ADD_REMOVE
    assert sum([parts[0]]) == parts[0]


@pytest.mark.parametrize("thing", [1, 0.5, "1", None, [PureDP(1)]])
def test_a_guarantee_and_something_else(thing):
    with pytest.raises(TypeError):
        PureDP(1) + thing
    with pytest.raises(TypeError):
        thing + PureDP(1)


def test_a_relation_is_declared_once():
    named = PureDP(1).under(ADD_REMOVE)
    assert named.neighbours == ADD_REMOVE
    with pytest.raises(IncompatibleGuarantees, match="changed_one"):
        named.under(CHANGE_ONE)
    for neighbours in (CHANGE_ONE, AS_DECLARED):
        with pytest.raises(IncompatibleGuarantees):
            PureDP(1, neighbours=neighbours).changed_one()


def test_changed_one_is_a_group_of_two_and_keeps_the_unit():
    patients = ADD_REMOVE.by("patient")
    for guarantee in (PureDP(1), ApproxDP(1, "1e-9"), ZCDP(1)):
        declared = guarantee.under(patients)
        changed = declared.changed_one()
        assert changed.neighbours == CHANGE_ONE.by("patient")
        assert loss_of(changed) == loss_of(declared.group(2))


# ---------------------------------------------------------------- post-processing


@given(guarantees)
def test_post_processing_costs_nothing_but_the_probabilistic_kind(guarantee):
    after = guarantee.post_processed()
    if isinstance(guarantee, ProbabilisticDP):
        assert after == ApproxDP(
            guarantee.epsilon, guarantee.delta, neighbours=guarantee.neighbours
        )
        assert not after.implies(guarantee) or guarantee.delta == 1 or guarantee.epsilon == math.inf
    else:
        assert after is guarantee


def mechanism(odds, delta):
    """Paper 003 (22), (23); `odds` is exp(epsilon)."""
    more, less = odds / (1 + odds) * (1 - delta), 1 / (1 + odds) * (1 - delta)
    return {0: delta, 1: more, 2: less, 3: 0 * delta}, {0: 0 * delta, 1: less, 2: more, 3: delta}


def processed(law):
    """Paper 003 (24)."""
    return {4: law[0] + law[1], 2: law[2], 3: law[3]}


def bad_mass(one, other, odds):
    """The least mass a set S of (21) must have: every output that is too likely belongs to it."""
    return sum(p for x, p in one.items() if p > odds * other[x])


def excess(one, other, odds):
    """The least delta of (27)."""
    return sum(max(p - odds * other[x], 0) for x, p in one.items())


@given(
    st.fractions(min_value=1, max_value=1000),
    st.fractions(min_value=Fraction(1, 10**9), max_value=1 - Fraction(1, 10**9)),
)
@example(Fraction(1), Fraction(1, 2))
@example(Fraction(3), Fraction(1, 10**6))
def test_processing_breaks_the_probabilistic_guarantee_exactly(odds, delta):
    """Paper 003 Prop. 4 and 5 in Fractions: exp(epsilon) enters only as the number `odds`."""
    one, other = mechanism(odds, delta)
    assert sum(one.values()) == sum(other.values()) == 1
    assert bad_mass(one, other, odds) == bad_mass(other, one, odds) == delta  # K is PDP
    after, after_other = processed(one), processed(other)
    assert after[4] > odds * after_other[4]
    assert bad_mass(after, after_other, odds) == after[4] > delta  # T(K) is not
    assert excess(after, after_other, odds) == delta  # T(K) is ADP, and tightly so
    assert excess(after_other, after, odds) == delta


def test_the_counterexample_needs_a_delta_strictly_inside():
    """Our correction to Prop. 4: for delta 0 or 1 nothing breaks."""
    for delta in (Fraction(0), Fraction(1)):
        one, other = (processed(law) for law in mechanism(Fraction(3), delta))
        assert bad_mass(one, other, 3) <= delta


@pytest.mark.parametrize("epsilon", [Fraction(1, 100), Fraction(1), Fraction(20)])
def test_the_counterexample_at_a_rational_epsilon(epsilon):
    """The same with exp(epsilon) itself, in Decimals."""
    with decimals():
        delta = decimal(Fraction(1, 1000))
        one, other = (processed(law) for law in mechanism(exp(epsilon), delta))
        assert bad_mass(one, other, exp(epsilon)) > delta
        assert abs(hockey_stick(one, other, decimal(epsilon)) - delta) < Decimal("1e-100")


def test_numbers_too_long_to_write_down_are_refused():
    for long in ("1e-5000", 10**5000, Fraction(1, 3**10_000)):
        with pytest.raises(InvalidParameter, match="thousands of digits"):
            PureDP(long)
    with pytest.raises(InvalidParameter, match="thousands of digits"):
        ApproxDP(1, Fraction(1, 7**6000))
