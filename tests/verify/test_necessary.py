"""What is on trust is never below what the checker itself can see must be paid."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from lastbit.checker import Rejected, composition, problem_of
from lastbit.checker.necessary import distance_of, least_epsilon
from lastbit.exact import rounded_up
from lastbit.privacy import (
    ADD_REMOVE,
    ApproxLoss,
    PrivacyLoss,
    Profile,
    SubsampledGaussianLoss,
    ThresholdLoss,
)
from lastbit.verify import composition_certificate
from tests.cli.running import lastbit
from tests.evidence import Extent
from tests.verify.test_check_composition import CHECKED, MIXED, SAMPLED, produced, put, resealed

LOW = "the epsilon on trust is less than the losses must have"
LOW_MOMENT = "a moment on trust is less than its loss must have"


def overlap(first: list[float], second: list[float]) -> float:
    return math.fsum(math.sqrt(p * q) for p, q in zip(first, second, strict=True))


def discrete(weight: Any, far: int) -> tuple[list[float], list[float]]:
    places = range(-400, 401)
    whole = math.fsum(weight(k) for k in places)
    return [weight(k) / whole for k in places], [weight(k - far) / whole for k in places]


@pytest.mark.parametrize(
    ("loss", "laws"),
    [
        (
            {"loss": "DiscreteLaplaceLoss", "scale": "7/2", "distance": 5},
            discrete(lambda k: math.exp(-abs(k) * 2 / 7), 5),
        ),
        (
            {"loss": "DiscreteLaplaceLoss", "scale": "1/3", "distance": 1},
            discrete(lambda k: math.exp(-abs(k) * 3), 1),
        ),
        (
            {"loss": "DiscreteGaussianLoss", "variance": "3", "distance": 4},
            discrete(lambda k: math.exp(-k * k / 6), 4),
        ),
        (
            {"loss": "RandomizedResponseLoss", "epsilon": "3/2", "categories": 4},
            ([math.exp(1.5), 1, 1, 1], [1, math.exp(1.5), 1, 1]),
        ),
        (
            {"loss": "FiniteLoss", "outcomes": [["1/2", "1/3"], ["1/2", "1/3"], ["0", "1/3"]]},
            ([1 / 2, 1 / 2, 0], [1 / 3, 1 / 3, 1 / 3]),
        ),
    ],
    ids=lambda value: value["loss"] if isinstance(value, dict) else "",
)
def test_distances_are_those_of_the_laws(loss: Any, laws: Any) -> None:
    first, second = ([p / math.fsum(law) for p in law] for law in laws)
    true = -math.log(overlap(first, second))
    # exact but for the discrete Gaussian, where half a step off loses next to nothing
    assert true - 1e-9 - 1e-4 * true <= distance_of(loss) <= true + 1e-9


def test_a_sample_is_nearer_than_what_is_sampled() -> None:
    plain = distance_of({"loss": "GaussianLoss", "mu_squared": "4"})
    sampled = {"loss": "SubsampledGaussianLoss", "rate": "1/10", "mu_squared": "4"}
    # by numerical integration: -ln E[sqrt(0.9 + 0.1 exp(2 z - 2))]
    grid = [k / 1000 for k in range(-12_000, 12_001)]
    density = [math.exp(-z * z / 2) / math.sqrt(2 * math.pi) / 1000 for z in grid]
    mixed = [
        p * math.sqrt(0.9 + 0.1 * math.exp(2 * z - 2)) for z, p in zip(grid, density, strict=True)
    ]
    assert 0 < distance_of(sampled) <= -math.log(math.fsum(mixed)) < plain


@pytest.mark.parametrize("loss", [*CHECKED, ThresholdLoss(5, 150, 2)], ids=repr)
@pytest.mark.parametrize("times", [1, 40])
def test_no_profile_is_below(loss: PrivacyLoss, times: int) -> None:
    """Whatever the accountant finds tight is at least this."""
    profile = Profile([(loss, times)])
    for delta in ("1e-9", "1/100"):
        low, _ = profile.epsilon(delta)
        written = [{**loss.to_dict(), "times": times}]
        least = least_epsilon(written, Fraction(delta))
        assert least <= Fraction(low) + Fraction(1, 10**6)
    assert least_epsilon(written, Fraction(0)) > 0


@pytest.mark.parametrize("profile", [MIXED, SAMPLED, 5 * ApproxLoss("1/2", "1e-5")])
def test_no_mixture_is_below(profile: Profile) -> None:
    losses = [{**loss.to_dict(), "times": times} for loss, times in profile.parts]
    low, high = profile.epsilon("1e-3")
    assert 0 < least_epsilon(losses, Fraction(1, 1000)) <= Fraction(high)
    assert low > 0


def test_extreme_losses_are_taken() -> None:
    many = [{"loss": "GaussianLoss", "mu_squared": "1000000", "times": 10**15}]
    assert least_epsilon(many, Fraction(1, 2)) > 10**20
    apart = [{"loss": "FiniteLoss", "outcomes": [["1", "0"], ["0", "1"]], "times": 1}]
    assert least_epsilon(apart, Fraction(1, 2)) > 3000
    none = [{"loss": "GaussianLoss", "mu_squared": "0", "times": 7}]
    assert least_epsilon(none, Fraction(0)) == 0
    with pytest.raises(Rejected, match="a loss is unknown"):
        distance_of({"loss": "AnotherLoss", "epsilon": "1"})


def test_every_loss_that_is_checked_has_a_distance() -> None:
    """The losses of a certificate that the other tests have; none is left out."""
    known = {loss["loss"] for name in ("mixed", "sampled") for loss in losses_of(name)}
    assert known == set(composition._LOSSES)
    for name in ("mixed", "sampled"):
        assert all(distance_of(loss) > 0 for loss in losses_of(name))


def losses_of(name: str) -> list[dict[str, Any]]:
    return list(produced(name)["claim"]["losses"])


@pytest.mark.parametrize("name", ["sampled", "trusted"])
def test_a_forged_epsilon_is_refused(name: str, tmp_path: Path, extent: Extent) -> None:
    """Failed before: 0 was shown as "epsilon, on trust" under ACCEPTED. Now no such number is."""
    whole = produced(name)
    claim = whole["claim"]
    every = (*claim["losses"], *claim["on_trust"])
    least = least_epsilon(every, Fraction(claim["delta"]))
    assert least > 0
    for share in extent.cases(range(50), one_in=10):
        forged = put(whole, ("claim", "tight_epsilon_on_trust"), str(least * share / 50))
        assert problem_of(forged) == LOW
        if share in (0, 49):
            (tmp_path / "x.json").write_text(json.dumps(forged), "utf-8")
            result = lastbit("check", str(tmp_path / "x.json"))
            assert result.exit_code == 1
    possible = put(whole, ("claim", "tight_epsilon_on_trust"), str(least))
    assert problem_of(possible) is None
    (tmp_path / "x.json").write_text(json.dumps(possible), "utf-8")
    for words in (("check",), ("check", "--json")):
        shown = lastbit(*words, str(tmp_path / "x.json")).output
        assert str(least) not in shown and rounded_up(least, digits=4) not in shown


def test_a_forged_moment_is_refused() -> None:
    """Failed before: a moment of 1 on trust was checked, with an epsilon next to 0."""
    whole = produced("trusted")
    for place, loss in enumerate(whole["claim"]["on_trust"]):
        least = 2 * Fraction(loss["order"]) * distance_of(loss)
        assert 0 < least < Fraction(loss["log_moment"])
        for share in (0, Fraction(1, 2), 1 - Fraction(1, 10**6)):
            forged = put(whole, ("claim", "on_trust", place, "log_moment"), str(least * share))
            assert problem_of(forged) == LOW_MOMENT


def test_what_lastbit_writes_is_not_refused() -> None:
    """The generator above, turned around: honest numbers on trust stay."""
    for profile in (
        1000 * SubsampledGaussianLoss("1/100", 1),
        100 * SubsampledGaussianLoss("1/20", 1) + 9 * ApproxLoss("1/10", neighbours=ADD_REMOVE),
    ):
        sealed = composition_certificate(profile, delta="1e-3")
        assert sealed["claim"]["tight_epsilon_on_trust"] is not None
        assert problem_of(resealed(sealed)) is None
