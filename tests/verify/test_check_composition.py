"""The checker's moments are those of the accountant; nothing is certified too cheaply."""

import copy
import json
import math
import random
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from typing import Any

import pytest
from flint import acb, arb

from lastbit.checker import (
    beliefs,
    composition as checker,
    numbers as checker_numbers,
    problem_of,
    taken_on_trust,
)
from lastbit.checker.numbers import digest
from lastbit.errors import InvalidParameter, NotCertified
from lastbit.exact import arb_of, ends, working_precision
from lastbit.privacy import (
    ADD_REMOVE,
    CHANGE_ONE,
    ZCDP,
    ApproxLoss,
    BoundedRangeLoss,
    DiscreteGaussianLoss,
    DiscreteGaussianVectorLoss,
    DiscreteLaplaceLoss,
    FiniteLoss,
    GaussianLoss,
    LaplaceLoss,
    PrivacyLoss,
    Profile,
    RandomizedResponseLoss,
    SubsampledGaussianLoss,
    SubsampledLaplaceLoss,
    ThresholdLoss,
)
from lastbit.verify import composition_certificate
from lastbit.verify.composition import _moment_form
from tests.cli.running import lastbit, read, refused, succeeded

UNEVEN = FiniteLoss([("1/2", "1/3"), ("1/3", "1/3"), ("1/6", "1/3")])
TELLING = FiniteLoss([("99/100", "1"), ("1/100", "0")])
# no chance that all is told, so that M is the same on both sides
CHECKED: list[PrivacyLoss] = [
    GaussianLoss("1/7"),
    DiscreteGaussianLoss("3/2", 2),
    DiscreteGaussianVectorLoss("3/2", 5),
    LaplaceLoss("1/3"),
    LaplaceLoss(40),
    LaplaceLoss("1e-9"),
    DiscreteLaplaceLoss("7/2", 1),
    DiscreteLaplaceLoss("7/2", 5),
    DiscreteLaplaceLoss("1e9", 12),
    DiscreteLaplaceLoss("1/100", 3),
    RandomizedResponseLoss("1/5"),
    RandomizedResponseLoss("9/4", 7),
    ApproxLoss("1/10"),
    ApproxLoss(200),
    BoundedRangeLoss("1/2"),
    BoundedRangeLoss("1e-12"),
    BoundedRangeLoss(300),
    FiniteLoss([("3/4", "1/4"), ("1/4", "3/4")]),
    UNEVEN,
]
ORDERS = ["1/1000", "1/3", "1", "37/7", "1000", "1000000"]
MIXED = (
    20 * ApproxLoss("1/10", "1/1000000000", neighbours=ADD_REMOVE)
    + 3 * LaplaceLoss("1/5", neighbours=ADD_REMOVE)
    + 2 * DiscreteLaplaceLoss(10, 3, neighbours=ADD_REMOVE)
    + 4 * RandomizedResponseLoss("1/4", 5, neighbours=ADD_REMOVE)
    + 5 * BoundedRangeLoss("1/8", neighbours=ADD_REMOVE)
    + 2 * GaussianLoss("1/50", neighbours=ADD_REMOVE)
    + 2 * DiscreteGaussianLoss(100, 2, neighbours=ADD_REMOVE)
    + 2 * DiscreteGaussianVectorLoss(100, 3, neighbours=ADD_REMOVE)
    + 2 * ThresholdLoss(5, 150, 2, neighbours=ADD_REMOVE)
    + UNEVEN
)
SAMPLED = (
    100 * SubsampledGaussianLoss("1/50", 1)
    + 3 * SubsampledLaplaceLoss("1/10", "1/2")
    + 2 * LaplaceLoss("1/5", neighbours=ADD_REMOVE)
)


@cache
def _text(name: str) -> str:
    match name:
        case "mixed":
            parts: Any = [*MIXED.parts, (ZCDP("1/100", neighbours=ADD_REMOVE), 3)]
        case "plain":
            parts = 100 * ApproxLoss("1/10")
        case "sum":
            parts = [(ApproxLoss(1, "1/100"), 2)]
        case "sampled":
            parts = SAMPLED
        case "trusted":
            return json.dumps(_as_before())
    return json.dumps(composition_certificate(parts, delta="1/50" if name == "sum" else "1e-6"))


def _as_before() -> dict[str, Any]:
    """A certificate of an earlier version: moments of samples on trust."""
    whole: dict[str, Any] = json.loads(_text("sampled"))
    claim, order = whole["claim"], whole["body"]["order"]
    sampled = [loss for loss in claim["losses"] if loss["loss"].startswith("Subsampled")]
    claim["losses"] = [loss for loss in claim["losses"] if loss not in sampled]
    for loss in sampled:
        bound = checker._counted({**loss, "times": 1}, checker._checked, Fraction(order)).moment
        claim["on_trust"].append({**loss, "order": order, "log_moment": str(bound)})
    return resealed({**whole, "assumptions": list(beliefs("composition", claim))})


def produced(name: str) -> dict[str, Any]:
    """A fresh certificate: the tests change it."""
    fresh: dict[str, Any] = json.loads(_text(name))
    return fresh


def resealed(certificate: dict[str, Any]) -> dict[str, Any]:
    return {**certificate, "digest": digest(certificate)}


# ---------------------------------------------------------------- the same moments, twice


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("loss", CHECKED, ids=repr)
def test_moments_are_those_of_the_accountant(loss, order):
    bound = checker._checked(dict(loss.to_dict()), Fraction(order))
    with working_precision(400):
        ways = []
        for direction in _moment_form(loss).directions():
            ((component, _),) = direction
            ways.append(ends(component.moment(acb(arb_of(Fraction(order)))).real.log()))
    low, high = max(low for low, _ in ways), max(high for _, high in ways)
    if isinstance(loss, BoundedRangeLoss):  # or that of concentrated privacy, if less
        rho = loss.epsilon**2 / 8 * Fraction(order) * (Fraction(order) + 1)
        low, high = min(low, rho), min(high, rho)
    assert bound.moment is not None and bound.moment >= low and bound.told == 0
    assert bound.moment - high <= Fraction(1, 10**40) * (1 + abs(high))


def test_discrete_gaussian_noise_has_no_larger_moment_than_is_said():
    loss = DiscreteGaussianLoss("3/2", 2)
    ((component, _),) = loss.directions()[0]
    for order in map(Fraction, ORDERS[:4]):
        with working_precision(400):
            true = ends(component.moment(acb(arb_of(order))).real.log())[0]  # equal for whole ones
        said = checker._checked(dict(loss.to_dict()), order).moment
        assert said is not None and said >= true


def test_what_is_told_by_keys_and_by_finite_laws():
    keys = checker._checked(dict(ThresholdLoss(5, 40, 3).to_dict()), Fraction(2))
    ((component, count),) = ThresholdLoss(5, 40, 3).directions()[0]
    with working_precision(300):
        low, high = ends(1 - (1 - component.infinite()) ** count)
    assert low <= keys.told <= high + Fraction(1, 10**45)
    assert checker._checked(dict(TELLING.to_dict()), Fraction(2)).told == Fraction(1, 100)
    back = FiniteLoss([("1", "99/100"), ("0", "1/100")])  # the other neighbour is told apart
    assert checker._checked(dict(back.to_dict()), Fraction(2)).told == Fraction(1, 100)


@pytest.mark.parametrize("order", [Fraction(order) for order in ORDERS])
def test_kappa_is_the_least_factor(order):
    """(1 - exp(-y))_+ <= k exp(c y) with equality at exp(y) = (1+c)/c."""
    with working_precision(400):
        y = arb_of((1 + order) / order).log()
        low, high = ends((1 - (-y).exp()).log() - arb_of(order) * y)
    assert low <= checker._log_kappa(order) <= high + Fraction(1, 10**40) * (1 + order)


def test_many_steps_that_tell_all():
    assert checker._some(Fraction(1), 3) == 1 and checker._some(Fraction(1, 2), 0) == 0
    assert checker._some(Fraction(1, 10**80), 10) == Fraction(10, 10**80)
    exact = 1 - Fraction(99, 100) ** 100
    assert exact <= checker._some(Fraction(1, 100), 100) <= exact + Fraction(1, 10**40)


# ---------------------------------------------------------------- true, and not far from tight


def _compositions(count: int) -> Iterator[tuple[Profile, Fraction]]:
    choices = random.Random(14)
    # not the vector: its pair is not exact, and moments may prove less
    losses = [*CHECKED[:2], *CHECKED[3:5], *CHECKED[6:8], *CHECKED[10:13], CHECKED[14], CHECKED[17]]
    losses = [type(loss)(**_parameters(loss), neighbours=ADD_REMOVE) for loss in losses]
    for _ in range(count):
        parts = choices.sample(losses, choices.randint(1, 3))
        profile = Profile([(loss, choices.choice([1, 2, 10, 100])) for loss in parts])
        if choices.random() < 0.3:
            profile += ApproxLoss("1/4", Fraction(1, 10**12), neighbours=ADD_REMOVE)
        yield profile, Fraction(1, 10 ** choices.choice([2, 5, 9, 11]))


def _parameters(loss: PrivacyLoss) -> dict[str, Any]:
    return {name: value for name, value in loss.to_dict().items() if name != "loss"}


def test_what_is_certified_is_true_and_at_least_the_tight_epsilon(extent):
    for profile, delta in _compositions(extent.generated(6, 60)):
        claim = composition_certificate(profile, delta=delta)["claim"]
        epsilon, (low, high) = Fraction(claim["epsilon"]), profile.epsilon(delta)
        assert epsilon >= Fraction(low)
        assert Fraction(profile.delta(epsilon)[0]) <= delta
        tight = claim["tight_epsilon_on_trust"]
        assert tight is None or Fraction(tight) == Fraction(high) < epsilon
        # none is about a sample, or known by its zCDP
        if not any(isinstance(loss, BoundedRangeLoss) for loss, _ in profile.parts):
            assert epsilon <= max(Fraction(high) * Fraction(105, 100), Fraction(1, 10**9))


@pytest.mark.parametrize(
    ("profile", "delta", "most"),
    [
        (100 * ApproxLoss("0.1"), "1e-6", "4.7746"),
        (10**5 * LaplaceLoss("0.001"), "1e-30", "3.5755"),
        (100 * GaussianLoss("1/100"), "1e-100", "21.7"),
        (100 * GaussianLoss("1/100"), "1e-6", "4.88656"),
        (100 * DiscreteGaussianLoss(4), "1e-6", "35.568"),
        (100 * LaplaceLoss("0.1"), "1e-6", "4.6938"),
        (100 * FiniteLoss([("1/2", "1/3"), ("1/4", "1/3"), ("1/4", "1/3")]), "1e-2", "13.23"),
        (100 * BoundedRangeLoss("0.1"), "1e-6", "2.35"),
        (100 * ApproxLoss("0.1"), 0, 10),
        (10**12 * ApproxLoss("1e-7"), "1e-6", "0.44"),
        (ApproxLoss("1/10").profile, "1e-30", "1/10"),
        (DiscreteLaplaceLoss("1/3", 0).profile, 0, 0),
    ],
    ids=str,
)
def test_how_tight(profile, delta, most):
    claim = composition_certificate(profile, delta=delta)["claim"]
    assert Fraction(claim["epsilon"]) <= Fraction(most)


@pytest.mark.parametrize(
    ("parts", "delta"),
    [
        (GaussianLoss(1).profile, 0),
        (ApproxLoss(1, "1e-3").profile, "1e-4"),
        (ApproxLoss(1, 1).profile, "1/2"),
        (ApproxLoss(1).profile, 1),
        ([], "1e-6"),
        ([(ApproxLoss(1, neighbours=CHANGE_ONE), 1), (ApproxLoss(1), 1)], "1e-6"),
    ],
)
def test_what_cannot_be_certified_is_refused(parts, delta):
    with pytest.raises(InvalidParameter):
        composition_certificate(parts, delta=delta)


# ---------------------------------------------------------------- every field


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict | list) and value:
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(inner, (*path, key))
    else:
        yield path


def put(certificate: dict[str, Any], path: tuple[Any, ...], value: Any) -> Any:
    changed = copy.deepcopy(certificate)
    *way, last = path
    place: Any = changed
    for key in way:
        place = place[key]
    place[last] = value
    return resealed(changed)


NAMES = ("mixed", "plain", "sum", "sampled", "trusted")
# a larger one of these costs more; a smaller one of the others
MORE = (
    *("mu_squared", "epsilon", "delta", "times", "rho", "rate"),
    *("distance", "distance_squared", "keys"),
)
LESS = ("scale", "variance", "threshold", "categories")


@pytest.mark.parametrize("name", NAMES)
def test_written_as_produced_it_is_checked(name):
    assert problem_of(produced(name)) is None
    assert taken_on_trust(produced(name)) == (name == "trusted")


@pytest.mark.parametrize("name", NAMES)
def test_no_field_is_believed(name):
    """Garbage in any leaf is refused; so is each number moved to where the claim is too small."""
    whole = produced(name)
    for path in leaves({part: whole[part] for part in ("claim", "body")}):
        garbage: list[Any] = [True, 1.5, [], "x", "2/4", "", -1, "-1", {}]
        for wrong in garbage:
            if path[-1] == "unit" and isinstance(wrong, str) and wrong:
                continue
            if wrong == [] and path[-1] == "on_trust":
                continue  # it is what is there
            spoiled = put(whole, path, wrong)
            assert problem_of(spoiled) is not None, (path, wrong)
    assert problem_of({**whole, "kind": "release"}) is not None


def worse(path: tuple[Any, ...], value: Any) -> Any:
    """A number that costs more, or claims more; None where there is no such direction."""
    if path[1:] in (("epsilon",), ("delta",)):
        return str(Fraction(value) * (1 - Fraction(1, 10**5)))  # more than the law's margins
    factor = {**dict.fromkeys(MORE, 1), **dict.fromkeys(LESS, -1)}.get(path[-1])
    if factor is None or (path[-1] == "times" and value == 0):
        return None
    if isinstance(value, int):
        return value + factor
    number = Fraction(value)
    return str(number * (1 + factor * Fraction(1, 1000)) if number else Fraction(1, 1000))


@pytest.mark.parametrize("name", NAMES)
def test_no_number_is_larger_than_it_says(name):
    whole, changed = produced(name), 0
    paths = list(leaves({"claim": whole["claim"]}))
    for path in paths:
        if path[:2] == ("claim", "on_trust") and path[-1] not in ("times", "log_moment"):
            continue  # a premise: the moment that is written stands for the loss
        place: Any = whole
        for key in path:
            place = place[key]
        moved = worse(path, place)
        if path[-1] == "log_moment":
            moved = str(Fraction(place) * (1 + Fraction(1, 1000)))
        if moved is None:
            continue
        changed += 1
        assert problem_of(put(whole, path, moved)) is not None, path
    assert changed >= 4


@pytest.mark.parametrize("name", NAMES)
def test_weaker_claims_are_still_true(name):
    whole = produced(name)
    for field in ("epsilon", "delta"):
        double = str(2 * Fraction(whole["claim"][field]))
        assert problem_of(put(whole, ("claim", field), double)) is None


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_left_out_or_put_in(name):
    whole = produced(name)
    for part in ("claim", "body"):
        for field in whole[part]:
            less = {key: value for key, value in whole[part].items() if key != field}
            assert problem_of(resealed({**whole, part: less})) is not None
        assert problem_of(resealed({**whole, part: {**whole[part], "more": "1"}})) is not None
    for index in range(len(whole["assumptions"])):
        fewer = [a for i, a in enumerate(whole["assumptions"]) if i != index]
        assert problem_of(resealed({**whole, "assumptions": fewer})) is not None
    assert problem_of({**whole, "digest": "0" * 64}) is not None


def test_another_order_proves_less():
    whole = produced("sampled")
    for factor in (Fraction(1, 10**20), Fraction(1, 2), Fraction(2), Fraction(10**20)):
        order = str(Fraction(whole["body"]["order"]) * factor)
        assert problem_of(put(whole, ("body", "order"), order)) is not None
    assert problem_of(resealed({**whole, "body": {"form": "sum"}})) is not None


def test_the_tight_epsilon_is_on_trust_and_below_the_checked_one():
    assert produced("plain")["claim"]["tight_epsilon_on_trust"] is None  # it is what is checked
    whole = produced("sampled")
    claim = whole["claim"]
    above = put(whole, ("claim", "tight_epsilon_on_trust"), claim["epsilon"])
    assert problem_of(above) is not None
    assert beliefs("composition", claim)[-1].startswith("The epsilon under tight_epsilon_on_trust")
    silent = put(whole, ("claim", "tight_epsilon_on_trust"), None)
    assert problem_of(silent) is None
    assert len(beliefs("composition", silent["claim"])) < len(beliefs("composition", claim))


def test_only_samples_are_on_trust():
    whole = produced("trusted")
    assert {loss["loss"][:10] for loss in whole["claim"]["on_trust"]} == {"Subsampled"}
    swapped = copy.deepcopy(whole)
    claim = swapped["claim"]
    claim["losses"], claim["on_trust"] = claim["on_trust"], claim["losses"]
    assert problem_of(resealed(swapped)) is not None
    free = copy.deepcopy(whole)
    moved = {**free["claim"]["losses"].pop(), "order": free["body"]["order"], "log_moment": "0"}
    free["claim"]["on_trust"].append(moved)
    assert problem_of(resealed(free)) == "a loss is on trust that could be checked, or is unknown"
    other = put(whole, ("claim", "neighbours", "relation"), "change-one")
    assert problem_of(other) == "samples are about one record more or less"
    order = put(whole, ("claim", "on_trust", 0, "order"), "1")
    assert problem_of(order) == "a moment on trust is of another order"


# ---------------------------------------------------------------- samples


@pytest.mark.parametrize("order", ["1/3", "1", "2", "5/2", "7", "30"])
@pytest.mark.parametrize(
    "loss",
    [
        SubsampledGaussianLoss("1/50", 1),
        SubsampledGaussianLoss("1/3", "1/9"),
        SubsampledGaussianLoss("9/10", 4),
        SubsampledGaussianLoss(1, "1/7"),
        SubsampledLaplaceLoss("1/10", 1),
        SubsampledLaplaceLoss("2/3", 3),
    ],
    ids=repr,
)
def test_moments_of_samples_bound_both_directions(loss, order):
    """At whole orders that of a removal exactly, between them a chord above; additions are less."""
    said = checker._checked(dict(loss.to_dict()), Fraction(order)).moment
    with working_precision(160):
        ways = [
            ends(component.moment(acb(arb_of(Fraction(order)))).real.log())
            for ((component, _),) in loss.directions()
        ]
    low, high = max(low for low, _ in ways), max(high for _, high in ways)
    assert said is not None and said >= low
    if order in ("1", "2", "7", "30"):
        assert said - high <= Fraction(1, 10**9) * (1 + high)
        assert ways[0][1] >= ways[-1][0]  # the removal is the larger one
    assert said <= high * Fraction(3) + Fraction(1, 10**9)


def test_samples_are_checked_and_cost_little_more_than_the_tight_epsilon():
    training = 10**4 * SubsampledGaussianLoss("1/100", 1)
    whole = composition_certificate(training, delta="1e-5")
    assert not taken_on_trust(whole) and problem_of(whole) is None
    assert 6.18 < Fraction(whole["claim"]["epsilon"]) < 6.72
    other = put(whole, ("claim", "neighbours", "relation"), "change-one")
    assert problem_of(other) == "samples are about one record more or less"
    low = composition_certificate(10 * SubsampledLaplaceLoss("1/10", 1), delta="1e-1")
    assert problem_of(low) is None


def test_mutants_of_the_binomial_sum_are_seen(monkeypatch):
    """One term short, or the moments of the order below: the producer's epsilon is not proved."""
    whole = composition_certificate(100 * SubsampledGaussianLoss("1/50", 1), delta="1e-6")
    order = Fraction(whole["body"]["order"])
    exact = checker._sampled_gaussian(order, "1/50", "1").moment
    assert exact is not None
    monkeypatch.setattr(checker, "comb", lambda n, k: max(math.comb(n, k) - (k == 2), 1))
    fewer = checker._sampled_gaussian(order, "1/50", "1").moment
    assert fewer is not None and fewer < exact


def test_orders_beyond_reach_are_rejected():
    whole = produced("sampled")
    assert problem_of(put(whole, ("body", "order"), "5000")) is not None
    with pytest.raises(checker_numbers.Rejected, match="too large"):
        checker._sampled_gaussian(Fraction(5000), "1/50", "1")


def test_a_prover_that_is_wrong_issues_nothing(monkeypatch):
    monkeypatch.setattr("lastbit.verify.composition._log_kappa", lambda order: arb(-100))
    with pytest.raises(NotCertified, match="the independent checker rejects"):
        composition_certificate(100 * ApproxLoss("0.1"), delta="1e-6")


# ---------------------------------------------------------------- the command line


def test_compose_writes_what_check_accepts(tmp_path):
    proof = tmp_path / "proof.json"
    words = succeeded("compose", "pure 0.1 x 100", "--delta", "1e-6", "--certificate", str(proof))
    assert "4.77457" in words
    told = " ".join(succeeded("check", str(proof)).split())
    assert "ACCEPTED" in told and "epsilon, checked 4.77456" in told
    assert "on trust" not in told and "law of the sum, steps of 0.2" in told
    (found,) = read("check", str(proof))["certificates"]
    assert found["accepted"] and "checked" not in found
    assert [said["name"] for said in found["not_checked"]] == ["unit"]


def test_check_does_not_show_what_is_on_trust(tmp_path):
    proof = tmp_path / "proof.json"
    proof.write_text(_text("sampled"), "utf-8")
    told = " ".join(succeeded("check", str(proof)).split())
    assert "ACCEPTED" in told and "The file names a smaller ε too" in told
    (found,) = read("check", str(proof))["certificates"]
    assert [said["name"] for said in found["not_checked"]] == ["unit"]


def test_compose_certifies_zcdp_and_says_what_it_cannot(tmp_path):
    proof = str(tmp_path / "proof.json")
    mixed = ("compose", "pure 0.1 x 10", "zcdp 0.01 x 3")
    succeeded(*mixed, "--delta", "1e-6", "--certificate", proof)
    assert "ACCEPTED" in succeeded("check", proof)
    assert "a certificate needs it" in refused(*mixed, "--certificate", proof)
    renyi = ("compose", "renyi 10 0.5", "--delta", "1e-6")
    assert "renyi" in refused(*renyi, "--certificate", str(tmp_path / "none.json"))
    assert not (tmp_path / "none.json").exists()


def test_what_is_on_trust_is_never_called_accepted(tmp_path):
    path = tmp_path / "proof.json"
    path.write_text(_text("trusted"), "utf-8")
    result = lastbit("check", str(path))
    assert result.exit_code == 3
    assert (
        "ACCEPTED" not in result.stdout and "CHECKED APART FROM WHAT IS ON TRUST" in result.stdout
    )
    result = lastbit("check", "--json", str(path))
    (found,) = json.loads(result.stdout)["certificates"]
    assert result.exit_code == 3 and found["accepted"] is False
    assert found["checked"] == "apart from what is on trust"
    names = [said["name"] for said in found["not_checked"]]
    assert names == ["unit", *["moment on trust"] * 2]
