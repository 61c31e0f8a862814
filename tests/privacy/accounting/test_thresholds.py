"""Keys from a threshold up: the exact laws of releases, and the pairs of keys."""

import itertools
import math
from fractions import Fraction

import pytest
from flint import arb

from lastbit.exact import arb_of, ends, working_precision
from lastbit.laws import DiscreteLaplace
from lastbit.privacy import ApproxLoss, LaplaceLoss, ThresholdLoss
from lastbit.privacy.accounting import thresholds
from lastbit.privacy.accounting.component import Response

FAR = 40  # counts so far above the threshold that hardly any such key is hidden


def key_laws(scale, threshold, counts):
    """The laws of one key with these counts under P and Q: every shown value, and hidden."""
    law, last = DiscreteLaplace(scale), threshold + FAR + 90 * math.ceil(scale)

    def outcomes(count):
        if not count:
            return [*[arb(0)] * (last - threshold), arb(1), arb(0)]
        shown = [law.mass(v - count) for v in range(threshold, last)]
        return [*shown, law.cumulative(threshold - 1 - count), law.cumulative(count - last)]

    return list(zip(*map(outcomes, counts), strict=True))


def by_ratio(pairs):
    """Outcomes of (nearly) one ratio as one: nothing is lost to a hockey stick."""
    merged: dict[float, tuple[arb, arb]] = {}
    for p, q in pairs:
        ratio = math.inf if not q > 0 else float((p / q).mid()) if p > 0 else 0.0
        key = round(math.log(ratio), 9) if 0 < ratio < math.inf else ratio
        one, other = merged.get(key, (arb(0), arb(0)))
        merged[key] = one + p, other + q
    return list(merged.values())


def release_delta(laws, x):
    raised, total = arb_of(x).exp(), arb(0)
    for outcome in itertools.product(*laws):
        p = math.prod((a for a, _ in outcome), start=arb(1))
        q = math.prod((b for _, b in outcome), start=arb(1))
        total += (p - raised * q).nonnegative_part()
    return total


KINDS = {"E": (FAR, FAR + 1), "F": (FAR + 1, FAR), "N": (1, 0), "M": (0, 1), "near": (2, 1)}


@pytest.mark.parametrize(
    ("scale", "threshold", "keys"),
    [("1", 4, 1), ("3", 8, 1), ("1", 3, 2), ("2", 6, 2), ("1", 3, 3)],
)
def test_one_release_is_the_worst_of_its_kinds(scale, threshold, keys):
    """Failed before: a sum of what is told and what is lost, up to twice the greater of them."""
    profile = ThresholdLoss(scale, threshold, keys).profile
    step = 1 / Fraction(scale)
    with working_precision(160):
        laws = {k: by_ratio(key_laws(Fraction(scale), threshold, c)) for k, c in KINDS.items()}
        for x in (Fraction(0), step / 3, step, step * 3 / 2, step * keys + 1):
            low, high = profile.delta(x)
            assert high - low <= 1e-14
            found = [
                release_delta([laws[kind] for kind in kinds], x)
                for kinds in itertools.combinations_with_replacement(KINDS, keys)
            ]
            # rounding ratios to 9 places lost no more than 1e-8 of a probability
            assert all(delta.lower() <= arb(high) + arb(1e-8) for delta in found)
            assert max(float(delta.mid()) for delta in found) >= low * (1 - 1e-3)


def test_what_is_told_and_what_is_lost_do_not_add_up():
    """One key, small epsilon: the greater of the two."""
    low, high = ThresholdLoss(2, 8, 1).profile.delta("1/10")
    alone = ApproxLoss("1/2").profile.delta("1/10")
    assert abs(high - alone[1]) < 1e-15 and abs(low - alone[0]) < 1e-15
    with working_precision(100):
        shown = DiscreteLaplace(2).cumulative(1 - 8)
        assert abs(arb(ThresholdLoss(2, 8, 1).profile.delta("1/2")[1]) - shown) < arb(1e-15)


@pytest.mark.parametrize("kind", ["told", "shift"])
def test_mutants_of_the_closed_form_are_seen(monkeypatch, kind):
    exact = thresholds._responses
    scale, threshold, keys, x = "1", 3, 2, Fraction(1, 2)
    with working_precision(160):
        laws = {k: by_ratio(key_laws(Fraction(scale), threshold, c)) for k, c in KINDS.items()}
        most = max(
            float(release_delta([laws[k] for k in kinds], x).mid())
            for kinds in itertools.combinations_with_replacement(KINDS, keys)
        )
    if kind == "told":  # one key fewer of those that both have
        mutant = lambda scale, count, at: exact(scale, max(count - 1, 0), at)  # noqa: E731
    else:  # losses of hidden keys counted twice
        mutant = lambda scale, count, at: exact(scale, count, at + arb(0.05))  # noqa: E731
    monkeypatch.setattr(thresholds, "_responses", mutant)
    assert ThresholdLoss(scale, threshold, keys).profile.delta(x)[1] < most


def test_several_releases_have_bounds_that_are_attained():
    for loss, times, delta in [
        (ThresholdLoss(3, 8, 1), 2, "1/8"),
        (ThresholdLoss(10, 150, 2), 20, "1e-3"),
        (ThresholdLoss(1, 60, 2), 10, "1e-6"),
    ]:
        low, high = (times * loss).epsilon(delta)
        assert 0 < low <= high
    low, high = (10 * ThresholdLoss(10, 300, 2) + 5 * LaplaceLoss("1/10")).epsilon("1e-6")
    assert high - low <= 1e-5 * high  # next to nothing is told


def test_all_keys_new_in_every_release():
    """20 releases that tell with p each: at least 1 - (1-p)**20 at every epsilon."""
    loss = ThresholdLoss(3, 10, 1)
    low, high = (20 * loss).delta(100)
    with working_precision(100):
        told = 1 - (1 - DiscreteLaplace(3).cumulative(1 - 10)) ** 20
        assert abs(arb(low) - told) < arb(1e-14) and abs(arb(high) - told) < arb(1e-14)


def test_the_pair_of_one_key_is_smaller_and_dominates():
    """Two releases of one key, every two kinds: within the bound, which is below the old one."""
    with working_precision(160):
        laws = {k: by_ratio(key_laws(Fraction(3), 8, c)) for k, c in KINDS.items()}
        shown = DiscreteLaplace(3).cumulative(1 - 8)
        before = 2 * ApproxLoss("1/3", Fraction(float(shown.mid())))
        for x in (Fraction(0), Fraction(1, 5), Fraction(1, 2)):
            low, high = (2 * ThresholdLoss(3, 8, 1)).delta(x)
            found = max(
                float(release_delta([laws[a], laws[b]], x).mid())
                for a, b in itertools.product(KINDS, repeat=2)
            )
            assert low * (1 - 1e-6) <= found <= high * (1 + 1e-8)
            assert high < before.delta(x)[0]


def test_a_loss_too_small_for_the_ball_is_not_none():
    """exp(1/scale) - 1 is above 1 by less than the precision shows; failed before: a loss of 0."""
    with working_precision(600):
        scale = 1 / (ends(arb(2).log())[1] + Fraction(1, 1 << 250))
        assert arb_of(1 / scale).exp() - 1 > 1
    profile = 2 * ThresholdLoss(scale, 2, 1)
    (composition,) = profile._directions()
    form = thresholds.tight_pairs(composition)
    assert form is not None
    ((pair, count),) = (*form.parts, *form.told)
    assert count == 2 and isinstance(pair, Response) and pair.epsilon > 0
