"""Gaussian noise in floats: the certificate against all draws of binary16, and its mutants."""

from __future__ import annotations

import copy
import json
import math
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

from lastbit.checker import Rejected, check, names_code, problem_of
from lastbit.checker.dispatch import check_apart_from_code
from lastbit.checker.gaussian import _turn, check_library
from lastbit.errors import InvalidParameter, LastbitError, NoBound, NotCertified
from lastbit.exact import arb_of, ends, working_precision
from lastbit.report.certificate import certificate_page
from lastbit.report.claims import claim_of
from lastbit.verify import (
    BINARY16,
    FullPrecision,
    Grid,
    analyse,
    digest,
    drawn_law,
    exhaustive_delta,
    gaussian_certificate,
    trace,
)
from lastbit.verify.gaussian import _coordinates, _parts, recognised
from lastbit.verify.language.evaluation import machine_value
from lastbit.verify.language.expressions import Add, Variable
from lastbit.verify.noise_shape import library_grid
from lastbit.verify.rounding import setting_of
from lastbit.verify.running.exhaustive import BINARY16_UNIFORM
from tests.verify import normal_code as code

USUAL: dict[str, Any] = {"sensitivity": 1, "epsilon": 1, "cell": 1, "region": (-100, 100)}
SMALL: dict[str, Any] = {
    "sensitivity": 1,
    "epsilon": 2,
    "cell": 2,
    "region": (-16, 16),
    "format": BINARY16,
}


def forward(u, v):
    return 4.0 * (math.cos(2.0 * math.pi * v) * math.sqrt(-2.0 * math.log(1.0 - u)))


def small_polar(u, v):
    s = (2.0 * u - 1.0) * (2.0 * u - 1.0) + (2.0 * v - 1.0) * (2.0 * v - 1.0)
    return 4.0 * (math.sqrt(-2.0 * math.log(s) / s) * (2.0 * v - 1.0))


@cache
def certified(name):
    if name == "polar":
        return gaussian_certificate(code.polar, accepted=code.square, **USUAL)
    return gaussian_certificate(getattr(code, name), **USUAL)


@cache
def sealed(name):
    return certified(name).certificate()


@cache
def small(name):
    ways: dict[str, Any] = {
        "grid": (forward, Grid(11)),
        "full": (code.small_u, BINARY16_UNIFORM),
    }
    noise, uniform = ways[name]
    return gaussian_certificate(noise, uniform=uniform, ulps={"ln": "1/2"}, **SMALL)


@cache
def small_law(name):
    if name == "grid":
        return drawn_law(code.forward16, Grid(11), Grid(11))
    coarse = Grid(11)  # the angle of the full model on a grid: 2**11 angles are enough to run
    return drawn_law(code.small_u16, BINARY16_UNIFORM, coarse)


# ---------------------------------------------------------------- what is certified


@pytest.mark.parametrize("name", ["box_muller", "angle_first", "polar"])
def test_known_methods_are_certified_with_a_tiny_delta(name):
    found = certified(name)
    assert found.sampler.variance == 100
    assert found.ideal_delta < found.delta < 10**-9
    assert found.guarantee.delta == found.delta
    assert problem_of(sealed(name)) is None
    assert names_code(sealed(name))


def test_a_uniform_with_all_floats_gives_up_less():
    full = gaussian_certificate(code.small_u, uniform=FullPrecision(), **USUAL)
    grid = gaussian_certificate(code.small_u, uniform=Grid(53, first=1), **USUAL)
    assert full.missed < grid.missed
    assert full.growth < grid.growth


@pytest.mark.parametrize(
    ("noise", "accepted"),
    [
        (code.half_turn, None),
        (code.same_uniform, None),
        (code.no_root, None),
        (code.two_sums, None),
        (code.polar, None),
        (code.both_coordinates, code.square),
        (code.undivided, code.square),
        (code.polar, code.cube),
        (code.polar, code.shifted_square),
        (code.box_muller, code.square),
    ],
)
def test_other_code_is_refused(noise, accepted):
    with pytest.raises(NotCertified):
        gaussian_certificate(noise, accepted=accepted, **USUAL)


@pytest.mark.parametrize(
    "said",
    [{"cell": Fraction(1, 2**46)}, {"epsilon": Fraction(1, 1000)}, {"sensitivity": 50},
     {"uniform": Grid(8)}],
)  # fmt: skip
def test_what_proves_nothing_is_refused(said):
    with pytest.raises(NotCertified):
        gaussian_certificate(code.box_muller, **{**USUAL, **said})


def test_a_sign_is_not_taken():
    with pytest.raises(InvalidParameter):
        gaussian_certificate(lambda u, v, sign: sign * u * v, **USUAL)


# ---------------------------------------------------------------- against all of binary16


def test_the_functions_of_binary16_are_within_the_stated_ulps():
    """cos of every binary16 angle that a grid of 11 bits leads to, against doubles."""
    angles = code.H(2 * math.pi) * (np.arange(2**11) / 2**11).astype(np.float16)
    exact = np.cos(angles.astype(np.float64))
    off = np.abs(np.cos(angles).astype(np.float64) - exact)
    assert (off <= np.spacing(np.maximum(np.abs(exact), 2**-14).astype(np.float16))).all()


def farthest(found, name):
    """The greatest distance of the computed noise from a real one that its draws stand for."""
    steps = np.arange(2**11) / 2**11
    v = steps.astype(np.float16)
    edges = np.concatenate([steps, [1.0]])
    low, high = map(float, found.cuts)
    worst = 0.0
    if name == "full":
        places = np.array([BINARY16_UNIFORM.point(k) for k in range(BINARY16_UNIFORM.size)])
    else:
        places = steps
    ends = np.append(places[1:], 1.0)
    for place, end in zip(places[::7], ends[::7], strict=True):
        inside = (place, end) if name == "full" else (1 - end, 1 - place)
        reals = [t for t in inside if low <= t <= high]
        if not reals:
            continue
        u = np.full(v.size, place, np.float16)
        noise = (code.small_u16 if name == "full" else code.forward16)(u, v).astype(np.float64)
        for t in reals:
            radius = 4 * math.sqrt(-2 * math.log(t))
            for angle in (edges[:-1], edges[1:]):
                real = radius * np.cos(2 * math.pi * angle)
                worst = max(worst, float(np.abs(noise - real).max()))
    return worst


@pytest.mark.parametrize("name", ["grid", "full"])
def test_the_noise_strays_no_farther_than_certified(name):
    """Every draw against the ends of the reals that it stands for; and not by far less."""
    found = small(name)
    worst = farthest(found, name)
    addition = 2.0**-6  # of half a step between 16 and 32
    assert worst <= found.delta_n - addition / 2
    assert worst > found.delta_n / 6


@pytest.mark.parametrize("name", ["grid", pytest.param("full", marks=pytest.mark.evidence)])
def test_no_pair_of_inputs_needs_more_than_the_certified_delta(name):
    """All binary16 inputs of the region, all pairs at most 1 apart, all sets of outputs."""
    found = small(name)
    _, enough = exhaustive_delta(
        code.rounded16, small_law(name), bound=16, distance=1, epsilon=found.epsilon
    )
    assert enough <= found.delta < Fraction(1, 5)


def test_the_delta_of_real_numbers_is_not_enough():
    """A mutant: the normal law's own delta, which the floats exceed ten thousand times."""
    found = small("grid")
    needed, _ = exhaustive_delta(
        code.rounded16, small_law("grid"), bound=16, distance=1, epsilon=found.epsilon
    )
    ideal = float(found.ideal_delta)
    assert needed > 10**4 * ideal


def test_polar_code_strays_no_farther_than_certified():
    """Pairs of a grid of 11 bits, in binary16: the test of pairs, and the noise."""
    total = Add(Variable("value"), trace(small_polar))
    sampler = recognised(total, trace(code.square))
    setting = setting_of(2, (-16, 16), Grid(11), BINARY16, {"ln": "1/2"}, default=library_grid)
    inputs = tuple(_coordinates(sampler, setting))
    low, high = 1 / 8, 63 / 64
    parts = tuple(_parts(sampler, setting, inputs, Fraction(low), Fraction(high)))
    off, delta_n = float(inputs[2][0].error), max(part.sum.error for part in parts)
    steps = np.arange(2**11) / 2**11
    v = steps.astype(np.float16)
    worst = worst_test = 0.0
    for place in steps[::5]:
        u = np.full(v.size, place, np.float16)
        test = code.square16(u, v).astype(np.float64)
        for right in (place, place + 2.0**-11):
            for up in (steps, steps + 2.0**-11):
                x, y = 2 * right - 1, 2 * up - 1
                s = x * x + y * y
                worst_test = max(worst_test, float(np.abs(test - s).max()))
                kept = (s >= low) & (s <= high)
                assert (test[kept] > 0).all()
                assert (test[kept] < 1).all()
                if kept.any():
                    real = 4 * y[kept] * np.sqrt(-2 * np.log(s[kept]) / s[kept])
                    noise = code.polar16(u[kept], v[kept]).astype(np.float64)
                    worst = max(worst, float(np.abs(noise - real).max()))
    assert off / 2 < worst_test <= off
    assert delta_n / 8 < worst <= delta_n


def test_no_pair_needs_more_than_the_certified_delta_of_polar_noise():
    """Near the middle of the disc binary16 overflows: what the code does there is given up."""
    said = {**SMALL, "cell": 4, "accepted": code.square, "uniform": Grid(11)}
    found = gaussian_certificate(small_polar, ulps={"ln": "1/2"}, **said)

    def accepted(u, v):
        test = code.square16(u, v)
        return (test > 0) & (test < 1)

    def noise(u, v):
        with np.errstate(over="ignore", invalid="ignore"):
            return np.nan_to_num(code.polar16(u, v), posinf=0, neginf=0)

    law = drawn_law(noise, Grid(11), Grid(11), accepted=accepted)
    _, enough = exhaustive_delta(
        lambda x, n: code.rounded16(x, n, cell=4), law, bound=16, distance=1, epsilon=found.epsilon
    )
    assert enough <= found.delta < 1


def test_the_law_of_polar_noise_is_nearly_normal():
    """Drawn again until accepted, all pairs of 9 bits: mean 0, and a variance near 16."""

    def accepted(u, v):
        test = code.square16(u, v)
        return (test > 1 / 256) & (test < 1)

    law = drawn_law(code.polar16, Grid(9), Grid(9), accepted=accepted)
    assert law.total == sum(
        int(accepted(np.full(512, u / 512, np.float16), (np.arange(512) / 512).astype("f2")).sum())
        for u in range(512)
    )
    share, place = law.shares / law.total, law.outputs.astype(np.float64)
    assert abs((share * place).sum()) < 0.05
    assert (share * place**2).sum() == pytest.approx(16, rel=0.05)


def test_laws_of_sums_are_convolutions():
    """Two draws, and three, by running all of them, against counting."""
    two = drawn_law(lambda u, v: u + v - code.H(1), Grid(5), Grid(5)).probabilities
    assert two == {k / 32 - 1: Fraction(min(k + 1, 63 - k), 1024) for k in range(63)}
    three = drawn_law(lambda u, v, w: u + v + w, Grid(2), Grid(2), Grid(2)).probabilities
    assert sum(three.values()) == 1
    assert three[0.75] == Fraction(10, 64)
    weighted = drawn_law(lambda u, v: u * v, FullPrecision(1, -2), Grid(1, offset=1))
    # u is 1/4 or 1/2 with probabilities 1/2, v is 1/2 or 1
    assert weighted.probabilities == {
        0.125: Fraction(1, 4),
        0.25: Fraction(1, 2),
        0.5: Fraction(1, 4),
    }


def test_zeros_of_both_signs_are_one_number_and_two_outputs():
    law = drawn_law(lambda u: (u - code.H(0.5)) * code.H(0), Grid(2))
    assert law.probabilities == {0.0: 1}
    assert law.outputs.size == 2


def test_enumeration_refuses_what_binary16_has_not():
    with pytest.raises(InvalidParameter):
        drawn_law(lambda u: u, Grid(14))
    with pytest.raises(InvalidParameter):
        drawn_law(lambda u: u.astype(np.float64), Grid(3))


# ---------------------------------------------------------------- the checker, and what it rejects


def resealed(certificate, change):
    changed = copy.deepcopy(certificate)
    change(changed["claim"], changed["body"])
    changed["digest"] = digest(changed)
    return changed


def less(text, part="9/10"):
    return str(Fraction(text) * Fraction(part))


def smaller(where, name, part="9/10"):
    def change(claim, body):
        owner = claim if where == "claim" else body
        owner[name] = less(owner[name], part)

    return change


def piece(number, **said):
    def change(claim, body):
        body["pieces"][number] |= said

    return change


def without(number):
    def change(claim, body):
        del body["pieces"][number]

    return change


def proof_of_less(claim, body):
    one = body["pieces"][0]
    one["error"] = less(one["error"])
    one["proof"]["steps"][-1]["error"] = one["error"]


def wider(claim, body):
    claim["region"] = ["-200", "200"]


def other_noise(claim, body):
    """A larger factor in the program: the same proof, and more noise than there is."""
    rows = claim["programs"][0]
    place = next(k for k, row in enumerate(rows) if row == ["CONST", "10"])
    rows[place] = ["CONST", "11"]
    body["variance"] = "121"


MUTANTS = {
    "delta": smaller("claim", "delta"),
    "epsilon": smaller("claim", "epsilon"),
    "missed": smaller("body", "missed"),
    "growth": smaller("body", "growth"),
    "delta_n": smaller("body", "delta_n"),
    "delta_t": smaller("body", "delta_t"),
    "delta_round": lambda claim, body: body.update(delta_round="1/2"),
    "ideal_delta": smaller("body", "ideal_delta"),
    "ideal_epsilon": smaller("body", "ideal_epsilon", "2"),
    "variance": smaller("body", "variance", "2"),
    "sensitivity": smaller("claim", "sensitivity", "2"),
    "cell": smaller("claim", "cell", "1/2"),
    "first piece left out": without(0),
    "middle piece left out": without(20),
    "last piece left out": without(-1),
    "piece from 0": piece(0, t=["0", "1/2"]),
    "error of a piece": piece(0, error="0"),
    "proof of a piece": proof_of_less,
    "region": wider,
    "noise": other_noise,
    "uniform": lambda claim, body: claim.update(
        uniform={"model": "grid", "bits": 20, "offset": "0", "first": 0}
    ),
    "format": lambda claim, body: claim.update(format={"binary": [24, -126, 127]}),
    "ulps": lambda claim, body: claim["ulps"].update(ln="64"),
    "a part too many": lambda claim, body: body.update(more="1"),
}


@pytest.mark.parametrize("name", ["box_muller", "polar"])
@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutants_are_rejected(name, mutant):
    certificate = sealed(name)
    with pytest.raises(Rejected):
        check_apart_from_code(resealed(certificate, MUTANTS[mutant]))


@pytest.mark.parametrize("accepted", [None, [["VAR", "u"]]])
def test_the_test_of_pairs_belongs_to_the_claim(accepted):
    def change(claim, body):
        claim["accepted"] = accepted

    with pytest.raises(Rejected):
        check(resealed(sealed("polar"), change))


@pytest.mark.parametrize(("number", "problem"), [("1", "does not fit"), ("3", "too long")])
def test_shared_steps_are_worked_out_once(number, problem):
    """A square of a square, sixty times: took 2**60 steps, or as many digits."""

    def change(claim, body):
        (rows,) = claim["programs"]
        _, value, noise = rows.pop()
        rows.append(["CONST", number])
        for _ in range(60):
            rows.append(["MUL", len(rows) - 1, len(rows) - 1])
        rows.append(["MUL", noise, len(rows) - 1])
        rows.append(["ADD", value, len(rows) - 1])

    assert problem in (problem_of(resealed(sealed("box_muller"), change)) or "")


def test_the_accuracy_of_the_cosine_is_stated():
    def change(claim, body):
        del claim["ulps"]["cos"]

    with pytest.raises(Rejected):
        check(resealed(sealed("box_muller"), change))
    assert sealed("box_muller")["claim"]["ulps"]["cos"] == "1"


@pytest.mark.parametrize(("name", "other"), [("box_muller", "no_root"), ("polar", "undivided")])
def test_another_function_does_not_take_the_steps(name, other):
    def change(claim, body):
        claim["code"][0]["function"] = f"tests.verify.normal_code:{other}"

    with pytest.raises(Rejected):
        check(resealed(sealed(name), change))


@pytest.mark.parametrize("name", ["log", "cos"])
def test_a_library_that_is_farther_off_is_noticed(name, monkeypatch):
    """Five units in the last place: the code takes its steps all the same."""
    claim, right = sealed("box_muller")["claim"], getattr(math, name)
    monkeypatch.setattr(math, name, lambda x: right(x) * (1 + 5 * 2.0**-53))
    with pytest.raises(Rejected, match="farther off here than stated"):
        check_library(claim)


def test_numpys_functions_are_tried_where_the_code_uses_them(monkeypatch):
    found = sealed("of_numpy")
    right = np.cos
    monkeypatch.setattr(np, "cos", lambda x: right(x) * (1 + 5 * 2.0**-53))
    with pytest.raises(Rejected, match="cos is farther off here than stated"):
        check_library(found["claim"])
    check_library(sealed("box_muller")["claim"])


def test_the_checkers_cosine_holds_the_true_one():
    for k in range(0, 700, 7):
        x = Fraction(k, 100)
        low, high = _turn(x, 0)
        with working_precision(200):
            least, most = ends(arb_of(x).cos())
        assert low <= least <= most <= high
        assert high - low < Fraction(1, 10**40)


def test_the_rule_of_the_cosine_holds_in_binary16():
    """All binary16 angles of a grid, each as computed from a real that is off by a little."""
    wave = trace(lambda u: math.cos(6.25 * u))
    found = analyse(wave, {"u": (0, 1)}, errors={"u": 2.0**-11}, format=BINARY16, ulps={"cos": 1})
    worst = 0.0
    for k in range(2**11):
        u = Fraction(k, 2**11)
        computed = float(machine_value(wave, {"u": u}, format=BINARY16))
        for real in (k / 2**11, (k + 1) / 2**11):
            worst = max(worst, abs(computed - math.cos(6.25 * real)))
    assert found.error / 2 < worst <= found.error
    with pytest.raises(NoBound, match="nothing is known of the library's cos"):
        analyse(wave, {"u": (0, 1)})


def test_the_certificate_is_told_in_words():
    claim = claim_of(sealed("polar"))
    assert claim.verdict.startswith("ε ≤ 1, δ ≤ ")
    assert "normal, of variance 100" in dict(claim.facts)["noise"]
    assert "GAUSSIAN" in certificate_page(sealed("polar"))


def test_certificates_survive_a_file():
    check(json.loads(json.dumps(sealed("box_muller"))))


def test_errors_are_ours():
    with pytest.raises(LastbitError):
        gaussian_certificate(code.box_muller, **{**USUAL, "region": 3})
