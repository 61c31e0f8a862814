"""Rounded noise of a declared law: logistic noise by enumeration, and changed certificates."""

from __future__ import annotations

import copy
import math
from fractions import Fraction
from typing import Any

import pytest

from lastbit.checker.numbers import Rejected
from lastbit.checker.rounding import general_excess
from lastbit.errors import LastbitError, NotCertified
from lastbit.exact.ball import arb_of, ends, working_precision
from lastbit.verify.declared import declared_certificate
from lastbit.verify.error_bounds.formats import BINARY16
from lastbit.verify.running.uniforms import FullPrecision, Grid
from tests.mutants import at, own_leaves, variants
from tests.verify.test_check_rounding import accepted, changed, without
from tests.verify.test_rounding import worst_excess


def logistic(u, scale=1.0):
    return scale * (math.log(u) - math.log(1 - u))


def falling(u):
    return math.log(1 - u) - math.log(u)


SETTING: dict[str, Any] = dict(rate=1, sensitivity=1, cell="1/4", region=(-4, 4))


def example(noise=logistic, **changes: Any) -> dict[str, Any]:
    setting = SETTING | dict(uniform=Grid(52, offset="1/2")) | changes
    return declared_certificate(noise, **setting).certificate()


@pytest.mark.thinned(one_in=16)
@pytest.mark.parametrize(
    "changes",
    [
        {},
        dict(uniform=Grid(53)),
        dict(uniform=FullPrecision()),
        dict(cell="1/10", region=(-3, 3)),
        dict(cell=1, region=(0, 5)),
        dict(parameters={"scale": 2.0}, rate="1/2"),
        dict(noise=falling),
        dict(ulps={"ln": 3}),
    ],
    ids="-".join,
)
def test_every_certificate_is_accepted(changes):
    assert accepted(example(**changes))


def test_the_parts_add_up():
    found = declared_certificate(logistic, uniform=Grid(53), **SETTING)
    assert found.delta_t == found.delta_n + found.delta_round
    assert found.epsilon == 1 + found.excess
    assert found.guarantee.epsilon == found.epsilon
    stray = 2.0**-53 * math.exp(8)  # the slope of the noise where the region ends
    assert stray / 2 < float(found.delta_t) < 4 * stray
    with working_precision(200):
        ratio = 4 * arb_of(found.delta_t) / arb_of(found.cell - 2 * found.delta_t)
        exact = ends((1 + ratio * arb_of(found.cell).exp()).log())[1]
    assert exact <= found.excess <= exact * (1 + Fraction(1, 1 << 40))
    again = general_excess(found.cell, found.delta_t / found.cell)
    assert abs(again - exact) < Fraction(1, 10**30)


@pytest.mark.parametrize(
    "uniform", [Grid(7, offset="1/2"), Grid(8, first=1), Grid(6, offset="1/2")]
)
@pytest.mark.parametrize("noise", [logistic, falling])
def test_privacy_by_enumeration(noise, uniform):
    """Every draw of a small generator: the true loss is within the certificate's."""
    found = declared_certificate(
        noise, rate=1, sensitivity=1, cell=1, region=(-1, 1), uniform=uniform
    )
    true = worst_excess(lambda value, u: value + noise(u), uniform, 1, (-1, 1), 1)
    assert true <= float(found.excess)


def test_a_false_declaration_is_refused():
    """Logistic noise of scale 1 has the rate 1; the truth is above what a rate of 1/2 would say."""
    uniform = Grid(7, offset="1/2")
    total = lambda value, u: value + logistic(u)  # noqa: E731
    assert worst_excess(total, uniform, 1, (-1, 1), 2, [-1.0, 1.0]) > 0
    with pytest.raises(NotCertified, match=r"no such rate.*; correct what was declared"):
        declared_certificate(
            logistic, rate="1/2", sensitivity=1, cell=1, region=(-1, 1), uniform=uniform
        )


def test_a_rate_is_declared_and_not_proved():
    assert any("declared, not proved" in line for line in example()["assumptions"])


# ---------------------------------------------------------------- changed


def is_harmless(path: tuple[Any, ...], old: Any, new: Any) -> bool:
    """A piece's error raised below the greatest; an end's real interval widened and still far
    enough; a library or a format better than the one proved for; a grid just as far off."""
    name = path[-1] if isinstance(path[-1], str) else path[-2]
    if name == "error":
        return Fraction(new) > Fraction(old)
    if name == "real":
        return Fraction(new) < Fraction(old) if path[-1] == 0 else Fraction(new) > Fraction(old)
    if path[:2] == ("claim", "ulps"):
        return name in ("exp", "sqrt") or Fraction(new) < Fraction(old)
    if path[:2] == ("claim", "format"):
        return path[-1] > 0 or new > old
    # what draws are off by enters each proof: it may only be smaller
    return name in ("bits", "offset", "first")


def test_a_changed_number_is_rejected(extent):
    whole = example()
    rejected = 0
    changes = [(path, new) for path in own_leaves(whole) for new in variants(at(whole, path))[::2]]
    for path, new in extent.cases(changes, one_in=12):
        if accepted(changed(whole, path, new)):
            assert is_harmless(path, at(whole, path), new), (path, at(whole, path), new)
        else:
            rejected += 1
    assert rejected >= extent.number(8, 100)


def test_a_coarser_generator_is_rejected():
    whole = example()
    for coarse in (Grid(51, offset="1/2"), Grid(52), Grid(40), FullPrecision(52, -1022)):
        assert not accepted(changed(whole, ("claim", "uniform"), coarse.written()))


@pytest.mark.evidence
def test_a_dropped_part_is_rejected():
    whole = example()
    paths: list[tuple[Any, ...]] = [("claim", key) for key in whole["claim"]]
    paths += [("body", key) for key in whole["body"]]
    paths += [("body", "pieces", k) for k in range(len(whole["body"]["pieces"]))]
    paths += [("body", "ends", k) for k in (0, 1)]
    for path in paths:
        assert not accepted(without(whole, path)), path
    for path in (("body", "pieces"), ("body", "ends"), ("claim", "region")):
        assert not accepted(changed(whole, path, at(whole, path)[::-1])), path


def test_a_narrower_proof_is_rejected():
    narrow, wide = example(region=(-2, 2)), example(region=(-4, 4))
    lied = copy.deepcopy(narrow)
    lied["claim"]["region"] = wide["claim"]["region"]
    assert not accepted(lied)
    with pytest.raises(Rejected):
        general_excess(Fraction(1), Fraction(1, 2))


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    "noise",
    [
        lambda u: math.log(u) + math.log(1 - u),
        lambda u: abs(u - 0.5),
        lambda u: u * math.log(u),
        lambda u: 1.0 + 0 * u if u < 0.5 else math.log(u),
        lambda u, sign: sign * math.log(u),
        lambda u: math.log(u) / (1 + u),
        lambda u: u - 0.5,
    ],
)
def test_code_that_is_not_monotone_or_too_short_is_refused(noise):
    with pytest.raises(NotCertified):
        declared_certificate(noise, **SETTING)


@pytest.mark.parametrize(
    "changes",
    [
        dict(rate=0),
        dict(rate=-1),
        dict(rate="fast"),
        dict(cell=0),
        dict(cell="3/32"),
        dict(cell=2.0**-44),
        dict(region=(3, 3)),
        dict(region=(-40, 40)),
        dict(sensitivity=0),
        dict(uniform=Grid(4)),
        dict(ulps={"ln": -1}),
        dict(uniform=53),
        dict(format="binary64"),
        dict(format=BINARY16, uniform=Grid(53)),
    ],
    ids=str,
)
def test_settings_without_meaning_are_refused(changes):
    with pytest.raises(LastbitError):
        declared_certificate(logistic, **(SETTING | changes))
