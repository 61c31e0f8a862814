"""Generators known up to an error: by adversaries on small formats, and by forged certificates."""

from __future__ import annotations

import contextlib
import copy
import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from lastbit.checker import beliefs, problem_of
from lastbit.checker.numbers import digest
from lastbit.errors import LastbitError, NotCertified
from lastbit.verify import (
    BINARY16,
    Grid,
    Within,
    certified_code,
    declared_certificate,
    exact_law,
    gaussian_certificate,
    least_shift,
    rounding_certificate,
    wasserstein,
)
from lastbit.verify.language.evaluation import machine_value
from lastbit.verify.running.uniforms import draw_error
from tests.verify import right_code
from tests.verify.sloppy import kept, seen

HALF = Fraction(1, 2)
FINE = 1 << 11  # reals are taken from the middles of so many cells of (0, 1)


def with_sign(u, sign):
    return sign * math.log(u)


def textbook(u):
    return -np.sign(u - 0.5) * np.log(1 - 2 * np.abs(u - 0.5))


def box_muller(u, v):
    return 10.0 * math.sqrt(-2.0 * math.log(u)) * math.cos(6.283185307179586 * v)


def logistic(u):
    return math.log(u) - math.log(1 - u)


# ---------------------------------------------------------------- adversaries


def _outputs(programs: Any, value: Fraction) -> list[list[int]]:
    """The cell that each draw k/2**11 leads to, for each sign: cells of 1, the region (-2, 2)."""
    rows = []
    for program in programs:
        row = []
        for k in range(FINE + 1):
            inputs = {"value": value, "u": Fraction(k, FINE)}
            try:
                total = machine_value(program, inputs, BINARY16)
                row.append(max(-2, min(2, round(total))))
            except LastbitError:  # the logarithm of 0: an infinity of the right sign
                row.append(row_of_zero(program, k))
        rows.append(row)
    return rows


def row_of_zero(program: Any, k: int) -> int:
    """Where the code goes with an infinity: as far as it goes next to there."""
    near = Fraction(1, FINE) if k == 0 else 1 - Fraction(1, FINE)
    zero = {"value": Fraction(0), "u": near}
    return 2 if machine_value(program, zero, BINARY16) > 0 else -2


def _maps(delta_0: Fraction, tables: list[list[list[int]]]) -> list[np.ndarray]:
    """Generators within delta_0: all up, all down, crossed, towards or away from an output."""
    room = math.floor((delta_0 - Fraction(1, 2 * FINE)) * FINE - HALF)
    reals = np.arange(FINE)
    away = [np.clip(reals + (room if way > 0 else -room), 0, FINE) for way in (1, -1)]
    crossed = np.where(reals % 2, *away)
    found = [*away, crossed]
    one = np.array(tables[0])  # the outputs of the first value, one row for each sign
    for output in range(-2, 3):
        hits = (one == output).any(axis=0)
        for wanted in (True, False):
            drawn = reals.copy()
            for real in range(FINE):
                near = range(max(real - room, 0), min(real + room, FINE) + 1)
                some = [k for k in near if hits[k] == wanted]
                drawn[real] = some[0] if some else real
            found.append(drawn)
    return found


def _worst(delta_0: Fraction, tables: list[list[list[int]]]) -> float:
    """The greatest loss of a pair of values, over all outputs and the generators tried."""
    worst = 0.0
    for drawn in _maps(delta_0, tables):
        laws = []
        for rows in tables:
            cells = np.concatenate([np.array(row)[drawn] for row in rows])
            laws.append([int((cells == output).sum()) for output in range(-2, 3)])
        for one, two in product(laws, repeat=2):
            for p, q in zip(one, two, strict=True):
                if p:
                    worst = max(worst, math.log(p / q) if q else math.inf)
    return worst


@pytest.mark.thinned(one_in=2)
@pytest.mark.parametrize("noise", [with_sign, textbook])
def test_no_generator_within_loses_more(noise):
    """binary16, scale 1, values 1 apart; a delta_0 that is far too small promises too little."""
    delta_0 = Fraction(1, 512)
    setting: dict[str, Any] = dict(
        sensitivity=1, cell=1, region=(-2, 2), format=BINARY16, ulps={"ln": "1/2"}
    )
    found = rounding_certificate(noise, uniform=Within(delta_0), **setting)
    tables = [_outputs(found.programs, Fraction(value)) for value in (0, 1)]
    worst = _worst(delta_0, tables)
    assert 1 < worst <= float(found.epsilon)
    finer = rounding_certificate(noise, uniform=Within(Fraction(1, 4096)), **setting)
    assert _worst(Fraction(1, 64), tables) > float(finer.epsilon)


def test_a_generator_that_is_not_monotone_needs_more():
    """As far off as a grid is, and not monotone: the modulus at the cut is the larger one."""
    setting: dict[str, Any] = dict(sensitivity=1, cell="1/16", region=(-8, 8))
    grid = rounding_certificate(with_sign, uniform=Grid(32), **setting)
    other = rounding_certificate(with_sign, uniform=Within(draw_error(Grid(32))), **setting)
    assert grid.omega < other.omega < grid.omega * Fraction(101, 100)


@pytest.mark.thinned(one_in=2)
@pytest.mark.parametrize("delta_0", [Fraction(1, 10**12), Fraction(1, 2**53)])
def test_every_kind_takes_it(delta_0):
    generator = Within(delta_0)
    region: Any = (-20, 20)
    laplace = rounding_certificate(
        with_sign, sensitivity=1, cell="1/4", region=(-8, 8), uniform=generator
    )
    normal = gaussian_certificate(
        box_muller, epsilon=1, sensitivity=1, cell="1/4", region=region, uniform=generator
    )
    declared = declared_certificate(
        logistic, rate=1, sensitivity=1, cell="1/4", region=(-8, 8), uniform=generator
    )
    for found in (laplace, normal, declared):
        certificate = found.certificate()
        assert problem_of(certificate) is None
        assert certificate["claim"]["uniform"] == {"model": "within", "delta_0": str(delta_0)}
        assert any(
            "within delta_0" in line for line in beliefs(certificate["kind"], certificate["claim"])
        )


# ---------------------------------------------------------------- forgeries


def _changed(certificate: dict, path: tuple, value: object) -> dict:
    forged = copy.deepcopy(certificate)
    place = forged
    for key in path[:-1]:
        place = place[key]
    if value is None:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    with contextlib.suppress(KeyError, TypeError):
        forged["assumptions"] = list(beliefs(forged["kind"], forged["claim"]))
    return {**forged, "digest": digest(forged)}


@pytest.mark.parametrize("noise", [with_sign, textbook])
def test_forged_errors_are_rejected(noise):
    """A smaller delta_0 is no proof of what a larger one costs, nor is another model."""
    found = rounding_certificate(
        noise, sensitivity=1, cell="1/4", region=(-8, 8), uniform=Within("1e-9")
    )
    certificate = found.certificate()
    assert problem_of({**certificate, "digest": digest(certificate)}) is None
    model = ("claim", "uniform")
    forged = [
        *(_changed(certificate, (*model, "delta_0"), text)
          for text in ("1/2000000000", "1/500000000", "0", "-1/10", "1/2", "x", "1e-9", None)),
        _changed(certificate, model, Grid(30).written()),
        _changed(certificate, model, {"model": "within"}),
        _changed(certificate, model, {"model": "nearly", "delta_0": "1/1000000000"}),
        _changed(certificate, (*model, "bits"), 53),
    ]  # fmt: skip
    for k, branch in enumerate(certificate["body"]["branches"]):
        omega, cut = Fraction(branch["omega"]), Fraction(branch["cut"])
        place = ("body", "branches", k)
        forged += [
            _changed(certificate, (*place, "omega"), str(omega * Fraction(99, 100))),
            _changed(certificate, (*place, "cut"), str(cut + Fraction(1, 3**40))),
            _changed(certificate, (*place, "cut"), str(Fraction(1, 10**9))),
        ]
    for one in forged:
        assert problem_of(one) is not None


def test_a_claim_of_a_grid_is_none_of_a_generator_within_it():
    """The modulus of a monotone generator is too small for one that is not."""
    found = rounding_certificate(
        with_sign, sensitivity=1, cell="1/4", region=(-8, 8), uniform=Grid(30)
    )
    forged = _changed(
        found.certificate(), ("claim", "uniform"), Within(Fraction(1, 2**30)).written()
    )
    assert "the generator's error is larger than stated" in str(problem_of(forged))


SLOPPY = [*seen.ALL, *kept.ALL][:40]


@pytest.mark.parametrize("code", SLOPPY, ids=map(str, range(len(SLOPPY))))
def test_sloppy_code_is_refused_as_with_other_generators(code):
    with pytest.raises(LastbitError):
        certified_code(code, sensitivity=1, uniform=Within(Fraction(1, 2**53)))


@pytest.mark.evidence
def test_right_code_is_certified_or_told_what_it_needs():
    """Code that fails at u = 0 is refused, since a generator within may draw 0."""
    taken = 0
    for code in right_code.CERTIFIED[:4]:
        try:
            found = certified_code(
                code, sensitivity=1, region=(-8, 8), uniform=Within(Fraction(1, 2**53))
            )
        except NotCertified:
            continue
        assert problem_of(found.certificate()) is None
        taken += 1
    assert taken >= 1


# ---------------------------------------------------------------- where delta_0 comes from


@given(st.lists(st.integers(0, 5), min_size=2, max_size=9).filter(any))
@settings(max_examples=25, deadline=None)
def test_delta_0_of_a_law_is_its_distance_from_the_uniform_one(weights):
    total, fine = sum(weights), 240
    last = len(weights) - 1
    law = {Fraction(k, last): Fraction(w, total) for k, w in enumerate(weights) if w}
    try:
        found = Within.of_law(law).delta_0
    except LastbitError:
        found = HALF  # nothing is promised
    uniform = {Fraction(2 * k + 1, 2 * fine): Fraction(1, fine) for k in range(fine)}
    assert abs(wasserstein(law, uniform) - found) <= Fraction(1, fine) or found == HALF


@pytest.mark.parametrize(("bits", "bias"), [(2, "1/64"), (5, "1/64"), (9, "1/1000"), (9, 0)])
def test_delta_0_of_biased_bits_covers_the_worst(bits, bias):
    """Every bit 1 with 1/2 + bias, or 1/2 - bias, or the bias against the bit before."""
    off = Fraction(bias)
    bound = Within.of_bits(bits, bias).delta_0
    worst = Fraction(0)
    for way in (
        lambda earlier: off,
        lambda earlier: -off,
        lambda earlier: off if earlier else -off,
    ):
        law = {Fraction(0): Fraction(1)}
        last = {Fraction(0): 0}
        for place in range(bits):
            grown, bit = {}, {}
            for x, chance in law.items():
                one = HALF + way(last[x])
                for b, share in ((0, 1 - one), (1, one)):
                    y = x + b * Fraction(1, 2 << place)
                    grown[y], bit[y] = chance * share, b
            law, last = grown, bit
        try:
            worst = max(worst, Within.of_law(law).delta_0)
        except LastbitError:
            worst = HALF
    assert worst <= bound
    if off and bits > 1:
        assert bound < 3 * worst


@pytest.mark.parametrize(("states", "draws"), [(2**32, 1), (2**32, 2), (2**64, 3), (7, 2), (1, 5)])
def test_few_states_are_far_from_independent_draws(states, draws):
    found = least_shift(states, draws)
    assert (2 * found) ** draws * states <= 1
    assert (2 * found * (1 + Fraction(1, 1 << 60))) ** draws * states >= 1


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize("delta_0", [0, -1, "1/2", 1, math.nan, math.inf, None, "x", True])
def test_bad_errors(delta_0):
    with pytest.raises(LastbitError, match="delta_0"):
        Within(delta_0)


def test_bad_laws_and_bits():
    for law in ({}, {0: 1, 1: 1}, {2: 1}, {0: "1/2", 1: "1/3"}, {0: -1, 1: 2}, {"x": 1}, {-1: 1}):
        with pytest.raises(LastbitError):
            Within.of_law(law)
    wrong: list[Any] = [(0, 0), (54, 0), (8, "1/2"), (8, -1), (8, math.nan), (1.5, 0)]
    for bits, bias in wrong:
        with pytest.raises(LastbitError):
            Within.of_bits(bits, bias)
    wrong = [(0, 1), (2, 0), (1.5, 1), (2, None)]
    for states, draws in wrong:
        with pytest.raises(LastbitError):
            least_shift(states, draws)


def test_where_it_cannot_serve():
    with pytest.raises(LastbitError, match="model of a generator"):
        generator: Any = Within("1e-9")
        exact_law(lambda value, u: value + u, 0.0, uniform=generator)
    with pytest.raises(LastbitError, match="nearer to the reals"):
        rounding_certificate(
            with_sign, sensitivity=1, cell=1, region=(-2, 2), uniform=Within(Fraction(1, 2**55))
        )
    with pytest.raises(NotCertified, match="too coarse"):
        rounding_certificate(
            with_sign, sensitivity=1, cell="1/4", region=(-40, 40), uniform=Within("1e-9")
        )
