"""Noise of the plane in floats: against all draws of binary16, its mutants, and sloppy code."""

from __future__ import annotations

import copy
import json
import math
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

from lastbit.checker import Rejected, check, names_code, problem_of
from lastbit.checker.dispatch import check_apart_from_code
from lastbit.checker.gaussian import _turn, check_library
from lastbit.errors import InvalidParameter, LastbitError, NotCertified, WrongType
from lastbit.exact import arb_of, ends, working_precision
from lastbit.mechanisms import PolarLaplace
from lastbit.report.certificate import certificate_latex, certificate_page
from lastbit.report.claims import claim_of
from lastbit.verify import (
    BINARY16,
    BINARY128,
    FullPrecision,
    Grid,
    analyse,
    certified_planar_code,
    digest,
    polar_certificate,
    polar_laplace_certificate,
    trace,
)
from lastbit.verify.language.evaluation import machine_value, real_value
from tests.verify import planar_code as code

SQUARE = ((-1000, 1000), (-1000, 1000))
USUAL: dict[str, Any] = {"sensitivity": 200, "region": SQUARE}
SHIPPED: dict[str, Any] = {"within": 200, "cell": 4, "half_width": 2000, "inputs": 1000}
OPEN = Grid(53, first=1)


@cache
def certified(name):
    match name:
        case "release" | "with_numpy":
            return certified_planar_code(getattr(code, name), **USUAL)
        case "forward":
            return polar_certificate(code.forward, cell=4, uniform=FullPrecision(), **USUAL)
        case "shipped":
            return polar_laplace_certificate(PolarLaplace(epsilon=1, **SHIPPED))
    return polar_certificate(getattr(code, name), cell=4, **USUAL)


@cache
def sealed(name):
    return json.loads(json.dumps(certified(name).certificate()))


# ---------------------------------------------------------------- what is certified

RIGHT = ("planar", "forward", "of_numpy", "apart", "release", "with_numpy")


@pytest.mark.parametrize("name", RIGHT)
def test_right_code_is_certified(name):
    found = certified(name)
    assert abs(found.rate * 200 - 1) < 1e-15
    assert 0 < found.excess < 2e-7
    assert problem_of(sealed(name)) is None
    assert names_code(sealed(name))
    assert found.guarantee.at(200).epsilon == found.epsilon


def test_all_bits_of_a_uniform_cost_less_than_a_grid():
    assert certified("forward").excess < certified("planar").excess / 100


@pytest.mark.parametrize("uniform", [OPEN, FullPrecision()])
def test_one_minus_a_uniform_that_is_never_0_is_certified(uniform):
    """Both were refused, with the advice to pass one of them."""
    found = polar_certificate(code.planar, cell=4, uniform=uniform, **USUAL)
    assert 0 < found.excess < 2e-7


def test_another_unit_is_another_rate():
    found = polar_certificate(code.planar, cell=4, parameters={"scale": 100.0}, **USUAL)
    assert found.rate == Fraction(1, 100)


def test_wide_formats_are_certified_for_the_steps_alone():
    found = polar_certificate(code.planar, cell=4, format=BINARY128, uniform=OPEN, **USUAL)
    assert found.delta_n < certified("planar").delta_n
    assert not names_code(found.certificate())


def test_the_shipped_mechanism_has_a_certificate():
    found, mechanism = certified("shipped"), PolarLaplace(epsilon=1, **SHIPPED)
    assert found.excess == mechanism.bounds.excess
    assert found.rate == mechanism.rate
    assert found.guarantee.at(200).epsilon <= 1
    assert not names_code(sealed("shipped"))
    assert any("PolarLaplace takes these steps" in one for one in sealed("shipped")["assumptions"])


@given(
    epsilon=st.fractions(Fraction(1, 100), 20),
    within=st.sampled_from([1, Fraction(1, 3), 200, 10**6]),
    cell=st.integers(-8, 8),
    half=st.integers(2, 400),
    inside=st.integers(1, 400),
)
@settings(max_examples=15)
def test_a_mechanism_promises_no_less_than_is_proved(epsilon, within, cell, half, inside):
    """The excess of `polar_bounds`, by balls, is enough for the checker's, whatever is asked."""
    side = Fraction(2) ** cell
    try:
        mechanism = PolarLaplace(
            epsilon=epsilon, within=within, cell=side, half_width=half * side, inputs=inside * side
        )
    except InvalidParameter:
        assume(False)
    assert polar_laplace_certificate(mechanism).excess == mechanism.bounds.excess


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize("noise", code.SLOPPY, ids=lambda one: one.__name__)
def test_sloppy_noise_is_refused_in_words(noise):
    with pytest.raises(LastbitError) as refused:
        polar_certificate(noise, cell=4, **USUAL)
    assert len(str(refused.value)) > 40


@pytest.mark.parametrize("mechanism", code.SLOPPY_MECHANISMS, ids=lambda one: one.__name__)
def test_sloppy_mechanisms_are_refused_in_words(mechanism):
    with pytest.raises(LastbitError) as refused:
        certified_planar_code(mechanism, **USUAL)
    assert len(str(refused.value)) > 40


def test_there_are_enough_of_them():
    assert len({*code.SLOPPY}) >= 30
    assert len({*code.SLOPPY_MECHANISMS}) >= 12


WORDS = {
    "one_exponential": "r exp",
    "degrees": "use radians",
    "angle_of_the_radius": "share a uniform",
    "an_ellipse": "two radii",
    "two_cosines": "the other its sine",
    "logarithm_of_zero": "pass a uniform without 0",
    "one_number": "return two numbers",
}


@pytest.mark.parametrize("name", WORDS)
def test_the_words_say_what_is_wrong(name):
    with pytest.raises(LastbitError, match=WORDS[name]):
        polar_certificate(getattr(code, name), cell=4, **USUAL)


@pytest.mark.parametrize(
    ("said", "kind"),
    [({"cell": Fraction(1, 2**24)}, NotCertified), ({"uniform": Grid(8)}, NotCertified),
     ({"region": ((-(10**5), 10**5),) * 2}, NotCertified), ({"cell": 0}, NotCertified),
     ({"values": ((-(10**7), 10**7),) * 2}, NotCertified),
     ({"region": (-8, 8)}, WrongType), ({"region": 3}, WrongType), ({"values": "ab"}, WrongType),
     ({"region": ((1, -1), (1, 2))}, InvalidParameter),
     ({"values": ((0, 0),) * 2}, InvalidParameter),
     ({"region": ((-1, 1), (-1, 1))}, InvalidParameter), ({"cell": -4}, InvalidParameter),
     ({"sensitivity": 0}, InvalidParameter), ({"sensitivity": math.nan}, LastbitError),
     ({"region": ((-math.inf, 8), (-8, 8))}, LastbitError), ({"uniform": 3}, WrongType),
     ({"format": "binary64"}, WrongType), ({"ulps": {"tan": 1}}, LastbitError),
     ({"values": ((-(10**400), 10**400),) * 2}, LastbitError),
     ({"cell": 2**2000, "region": ((-(2**2000), 2**2000),) * 2}, LastbitError)],
)  # fmt: skip
def test_what_has_no_meaning_or_proves_nothing_is_refused(said, kind):
    with pytest.raises(kind):
        polar_certificate(code.planar, **{**USUAL, "cell": 4, **said})


def test_only_the_shipped_mechanism_is_taken_as_one():
    with pytest.raises(WrongType):
        polar_laplace_certificate(code.planar)  # type: ignore[arg-type]


def test_a_sign_is_not_taken():
    with pytest.raises(InvalidParameter):
        polar_certificate(lambda u, v, w, sign: (sign * u, v * w), cell=4, **USUAL)


# ---------------------------------------------------------------- against all of binary16

CELLS: dict[str, Any] = {
    "sensitivity": 1,
    "cell": 1,
    "region": ((-1, 1), (-1, 1)),
    "format": BINARY16,
}
HALF = ((Fraction(-1, 2), Fraction(1, 2)),) * 2


def grid16(bits):
    return (np.arange(2**bits) / 2**bits).astype(np.float16)


@cache
def small(bits):
    """The certificate of noise of rate 1, all three draws of so many bits, in binary16."""
    return polar_certificate(
        code.small, values=HALF, uniform=Grid(bits), ulps={"ln": "1/2"}, **CELLS
    )


@cache
def small_draws(bits):
    """Every radius that is drawn with how often, and every turn."""
    u = grid16(bits)
    logs = np.log(code.H(1) - u)
    radii = (code.H(-1) * (logs[:, None] + logs[None, :])).ravel()
    radius, count = np.unique(radii, return_counts=True)
    angle = code.H(6.28125) * u
    return radius, count, np.cos(angle), np.sin(angle)


def small_law(bits, point, shrunk=1):
    """How often each square is released for a point, all draws counted; the last is outside."""
    radius, count, cosine, sine = small_draws(bits)
    radius = radius / code.H(shrunk)
    law = np.zeros(10, dtype=np.int64)
    x, y = map(code.H, point)
    for cos, sin in zip(cosine, sine, strict=True):
        east, north = np.rint(x + radius * cos), np.rint(y + radius * sin)
        inside = (np.abs(east) <= 1) & (np.abs(north) <= 1)
        place = np.where(inside, (east + 1) * 3 + north + 1, 9).astype(np.int64)
        law += np.bincount(place, weights=count, minlength=10).astype(np.int64)
    assert law.sum() == 2 ** (3 * bits)
    return law


POINTS = [-0.5, -0.4375, -0.0625, 0.0, 0.125, 0.5]


def worst(bits, points, shrunk=1):
    """The greatest log-ratio of two points' probabilities beyond the rate times their distance."""
    laws = {point: small_law(bits, point, shrunk) for point in points}
    found = -math.inf
    for one, other in product(laws, repeat=2):
        if one != other:
            p, q = laws[one], laws[other]
            with np.errstate(divide="ignore"):
                loss = float(np.log(p[p > 0] / q[p > 0]).max())
            found = max(found, loss - math.dist(one, other))
    return found


@pytest.mark.apart
def test_every_draw_of_binary16_loses_less_than_certified(extent):
    """All radii and angles of 8 bits, or of 11: the exact law of each point, and all pairs."""
    bits = 11 if extent.is_many else 8
    places = POINTS if extent.is_many else [POINTS[0], POINTS[-1]]
    assert worst(bits, list(product(places, repeat=2))) <= float(small(bits).excess)


def test_smaller_noise_would_lose_more_than_certified():
    """A mutant that the enumeration finds: radii an eighth as large."""
    pair = [(-0.5, -0.5), (0.5, 0.5)]
    assert worst(8, pair, shrunk=8) > float(small(8).excess)


def test_computed_points_stray_no_farther_than_certified():
    """Every draw of eight bits against the point that it means: delta_n of the noise alone."""
    found, u = small(8), grid16(8).astype(float)
    radius = -(np.log1p(-u)[:, None] + np.log1p(-u)[None, :])
    logs = np.log(code.H(1) - grid16(8))
    computed = code.H(-1) * (logs[:, None] + logs[None, :])
    strays = 0.0
    for w in u:
        for real, half in (
            (math.cos(2 * math.pi * w), np.cos(code.H(6.28125) * code.H(w))),
            (math.sin(2 * math.pi * w), np.sin(code.H(6.28125) * code.H(w))),
        ):
            noise = (computed * half).astype(float)
            strays = max(strays, float(np.abs(noise - radius * real).max()))
    assert found.delta_n / 8 < strays <= found.delta_n


def test_radii_move_no_farther_than_certified():
    """Draws of eight bits against both ends of the reals that they stand for, within the reach."""
    found, u = small(8), np.arange(2**8) / 2**8
    t, ends_ = 1 - u, 1 - (u + 2.0**-8)
    moved = 0.0
    for lows in product((t, ends_), repeat=2):
        real = np.add.outer(*(-np.log(np.maximum(low, 1e-300)) for low in lows))
        drawn = np.add.outer(-np.log(t), -np.log(t))
        near = (real <= float(found.stray.reach)) & (drawn <= float(found.stray.reach))
        moved = max(moved, float(np.abs(real - drawn)[near].max()))
    assert found.stray.omega / 4 < moved <= found.stray.omega


def test_the_rule_of_the_sine_holds_in_binary16():
    wave = trace(lambda u: math.sin(6.25 * u))
    found = analyse(wave, {"u": (0, 1)}, errors={"u": 2.0**-11}, format=BINARY16, ulps={"sin": 1})
    strays = 0.0
    for k in range(2**11):
        half = float(machine_value(wave, {"u": Fraction(k, 2**11)}, format=BINARY16))
        for real in (k / 2**11, (k + 1) / 2**11):
            strays = max(strays, abs(half - math.sin(6.25 * real)))
    assert found.error / 2 < strays <= found.error
    with pytest.raises(LastbitError, match="nothing is known of the library's sin"):
        analyse(wave, {"u": (0, 1)})


def test_the_sine_of_the_language_and_of_the_checker():
    wave = trace(lambda x: math.sin(1.0 * x))
    assert machine_value(wave, {"x": Fraction(0)}, format=BINARY16) == 0
    for k in range(0, 700, 7):
        x = Fraction(k, 100)
        low, high = _turn(x, 1)
        with working_precision(200):
            least, most = ends(arb_of(x).sin())
        assert low <= least <= most <= high
        assert high - low < Fraction(1, 10**40)
        first, last = real_value(wave, {"x": x}).ends
        assert low <= last
        assert first <= high


# ---------------------------------------------------------------- the checker, and what it rejects


def resealed(certificate, change):
    changed = copy.deepcopy(certificate)
    change(changed["claim"], changed["body"])
    changed["digest"] = digest(changed)
    return changed


def scaled(where, name, part="9/10"):
    def change(claim, body):
        owner = claim if where == "claim" else body
        owner[name] = str(Fraction(owner[name]) * Fraction(part))

    return change


def consistent_excess(claim, body):
    """Less excess, and the epsilon that would follow from it."""
    less = Fraction(claim["excess"]) * Fraction(9, 10)
    claim["epsilon"] = str(Fraction(claim["epsilon"]) - Fraction(claim["excess"]) + less)
    claim["excess"] = str(less)


def less_of(part):
    def change(claim, body):
        one = body[part][0]
        one["error"] = str(Fraction(one["error"]) / 2)
        one["proof"]["steps"][-1]["error"] = one["error"]
        if part == "sums":
            body["sums"][1] = copy.deepcopy(one)
            body["delta_n"] = one["error"]

    return change


def row(old, new, program=0):
    def change(claim, body):
        rows = claim["programs"][program]
        place = next(k for k, one in enumerate(rows) if one[0] == old)
        rows[place] = new if isinstance(new, list) else [new, *rows[place][1:]]

    return change


MUTANTS = {
    "epsilon": scaled("claim", "epsilon"),
    "excess": scaled("claim", "excess"),
    "excess and epsilon": consistent_excess,
    "rate": scaled("claim", "rate"),
    "sensitivity": scaled("claim", "sensitivity", "2"),
    "cell": scaled("claim", "cell", "1/2"),
    "reach": scaled("body", "reach"),
    "omega": scaled("body", "omega"),
    "moved": scaled("body", "moved"),
    "delta_n": scaled("body", "delta_n"),
    "delta_t": scaled("body", "delta_t"),
    "delta_round": lambda claim, body: body.update(delta_round="1/8"),
    "a wider region": lambda claim, body: claim.update(region=[["-4000", "4000"]] * 2),
    "wider values": lambda claim, body: claim.update(values=[["-4000", "4000"]] * 2),
    "one side": lambda claim, body: claim.update(region=claim["region"][:1]),
    "error of a sum": less_of("sums"),
    "a sum left out": lambda claim, body: body.update(sums=body["sums"][:1]),
    "a cosine for a sine": row("SIN", "COS", 1),
    "a logarithm too few": row("LN", "COS"),
    "another sum": row("VAR", ["VAR", "y"]),
    "programs exchanged": lambda claim, body: claim["programs"].reverse(),
    "one program": lambda claim, body: claim.update(programs=claim["programs"][:1]),
    "format": lambda claim, body: claim.update(format={"binary": [24, -126, 127]}),
    "a part too many": lambda claim, body: body.update(more="1"),
    "code of another role": lambda claim, body: [one.update(role="noise") for one in claim["code"]],
}  # fmt: skip
OF_UNIFORMS = {
    "uniform": lambda claim, body: claim.update(
        uniform={"model": "grid", "bits": 20, "offset": "0", "first": 0}
    ),
    "words": lambda claim, body: claim.update(
        uniform={"model": "words", "bits": 53, "radius": "0", "turn": "0"}
    ),
    "error of a logarithm": less_of("logs"),
    "error of a turn": less_of("turns"),
    "a turn left out": lambda claim, body: body.update(turns=body["turns"][:1]),
    "a logarithm left out": lambda claim, body: body.update(logs=body["logs"][:1]),
    "a range of a logarithm": lambda claim, body: body["logs"][0].update(real=["-1", "0"]),
    "ulps of ln": lambda claim, body: claim["ulps"].update(ln="4096"),
    "ulps of sin": lambda claim, body: claim["ulps"].update(sin="4096"),
    "no ulps of cos": lambda claim, body: claim["ulps"].pop("cos"),
    "farthest": lambda claim, body: body.update(farthest="42"),
    "a pi": lambda claim, body: [
        one.__setitem__(1, "3") for rows in claim["programs"] for one in rows if one[0] == "CONST"
    ],
}
OF_WORDS = {
    "bits": lambda claim, body: claim["uniform"].update(bits=40),
    "bits as text": lambda claim, body: claim["uniform"].update(bits="53"),
    "radius": lambda claim, body: claim["uniform"].update(radius="1/8"),
    "turn": lambda claim, body: claim["uniform"].update(turn="1/8"),
    "an error below 0": lambda claim, body: claim["uniform"].update(turn="-1"),
    "farthest": scaled("body", "farthest"),
    "a grid": lambda claim, body: claim.update(
        uniform={"model": "grid", "bits": 53, "offset": "0", "first": 0}
    ),
    "a larger radius": lambda claim, body: claim.update(rate="1/400"),
}


def useless(name, mutant):
    """Rows that a claim does not have: the mutant changes nothing there."""
    return name == "shipped" and mutant in (
        "a cosine for a sine", "a logarithm too few", "code of another role",
    )  # fmt: skip


@pytest.mark.parametrize("name", ["planar", "release", "shipped"])
def test_mutants_are_rejected(name):
    own = OF_WORDS if name == "shipped" else OF_UNIFORMS
    for mutant, change in {**MUTANTS, **own}.items():
        if not useless(name, mutant):
            with pytest.raises(Rejected):
                check_apart_from_code(resealed(sealed(name), change))
                pytest.fail(mutant)


@pytest.mark.parametrize(
    ("name", "other"), [("planar", "one_exponential"), ("planar", "degrees"),
    ("release", "twice_the_value"), ("release", "clamps"), ("planar", "release")],
)  # fmt: skip
def test_another_function_does_not_take_the_steps(name, other):
    def change(claim, body):
        claim["code"][0]["function"] = f"tests.verify.planar_code:{other}"

    with pytest.raises(Rejected):
        check(resealed(sealed(name), change))


@pytest.mark.parametrize("name", ["log", "cos", "sin"])
def test_a_library_that_is_farther_off_is_noticed(name, monkeypatch):
    claim, right = sealed("planar")["claim"], getattr(math, name)
    monkeypatch.setattr(math, name, lambda x: right(x) * (1 + 5 * 2.0**-53))
    with pytest.raises(Rejected, match="farther off here than stated"):
        check_library(claim)


def test_steps_of_one_coordinate_are_not_those_of_the_other():
    def change(claim, body):
        claim["code"][0]["steps"].reverse()

    with pytest.raises(Rejected):
        check(resealed(sealed("planar"), change))


@pytest.mark.parametrize("name", ["planar", "release", "shipped"])
def test_assumptions_are_written_out(name):
    changed = copy.deepcopy(sealed(name))
    said = " ".join(changed["assumptions"])
    assert "within" in said
    assert "the stated" in said
    assert "outside" in said
    for place in range(len(changed["assumptions"]) - (name == "shipped")):
        fewer = copy.deepcopy(changed)
        del fewer["assumptions"][place]
        fewer["digest"] = digest(fewer)
        assert problem_of(fewer) == "its assumptions leave out what the proof rests on"


@pytest.mark.parametrize("name", ["planar", "shipped"])
def test_the_certificate_is_told_in_words(name):
    claim = claim_of(sealed(name))
    assert claim.verdict.startswith("ε ≤ ")
    assert "of the plane" in dict(claim.facts)["noise"]
    assert "POLAR" in certificate_page(sealed(name))
    assert "POLAR" in certificate_latex(sealed(name)).upper()


# ---------------------------------------------------------------- what would take for ever


def squared(u, v, w):
    r = math.log(1.0 - u) + math.log(1.0 - v)
    for _ in range(60):
        r = r * r
    return r * math.cos(2.0 * math.pi * w), r * math.sin(2.0 * math.pi * w)


def taken_away(u, v, w):
    east, north = code.planar(u, v, w)
    return east + math.log(1.0 - w) - math.log(1.0 - w), north


def many_times(u, v, w):
    """The sum of a number with itself, again and again: 2**40 times the noise."""
    r = -1.0 * (math.log(1.0 - u) + math.log(1.0 - v))
    for _ in range(40):
        r = r + r
    return r * math.cos(2.0 * math.pi * w), r * math.sin(2.0 * math.pi * w)


def test_squares_of_squares_are_refused_at_once():
    with pytest.raises(NotCertified, match="more than sums and products"):
        polar_certificate(squared, cell=4, **USUAL)


def test_what_is_taken_away_again_is_refused():
    with pytest.raises(NotCertified, match="taken away again"):
        polar_certificate(taken_away, cell=4, **USUAL)


def test_a_step_that_is_used_often_counts_once():
    found = polar_certificate(
        many_times, sensitivity=1, cell=2**30, region=((-(2**41), 2**41),) * 2
    )
    assert found.rate == Fraction(1, 2**40)


@pytest.mark.parametrize("start", [["CONST", "3"], ["VAR", "x"]])
def test_the_checker_does_not_work_for_ever(start):
    """Squares of squares, of a number and of an input, in a row of sixty."""

    def change(claim, body):
        rows: list[list[Any]] = [start]
        for place in range(60):
            rows.append(["MUL", place, place])
        claim["programs"][0] = rows

    with pytest.raises(Rejected, match="too long"):
        check_apart_from_code(resealed(sealed("planar"), change))


def test_the_checker_takes_deep_programs_for_what_they_are():
    def change(claim, body):
        rows: list[list[Any]] = [["VAR", "x"], ["CONST", "1"]]
        rows += [["ADD", place, 1] for place in (0, *range(2, 5000))]
        claim["programs"][0] = rows

    with pytest.raises(Rejected):
        check_apart_from_code(resealed(sealed("planar"), change))


# ---------------------------------------------------------------- forged figures that agree


def forged(reach, omega, moved):
    """The certificate of the usual noise with other figures, and all that follows from them."""

    def change(claim, body):
        delta_t = moved + Fraction(body["delta_n"]) + Fraction(body["delta_round"])
        cell, rate = Fraction(claim["cell"]), Fraction(claim["rate"])
        ratio = 8 * cell * delta_t / (cell - 2 * delta_t) ** 2
        grown = 1 + float(ratio) * math.exp(float(rate * cell) * math.sqrt(2))
        excess = Fraction(math.log(max(grown, 1e-9))) + Fraction(1, 10**12)
        figures = {"reach": reach, "omega": omega, "moved": moved, "delta_t": delta_t}
        body.update({name: str(figure) for name, figure in figures.items()})
        claim.update(excess=str(excess), epsilon=str(rate * 200 + excess))

    return resealed(sealed("planar"), change)


SHARES = (-3, -2, -1, Fraction(-1, 2), 0, Fraction(999, 1000), 1, Fraction(3, 2), 40)


def test_no_figures_that_agree_prove_less(extent):
    """Failed before for a distance below 0, which is as large as another when squared."""
    honest = certified("planar")
    truth = (honest.stray.reach, honest.stray.omega, honest.stray.moved)
    accepted = 0
    for shares in extent.cases(product(SHARES[3:], SHARES, SHARES), one_in=40):
        certificate = forged(*(share * x for share, x in zip(shares, truth, strict=True)))
        if check_is_passed(certificate):
            accepted += 1
            claimed = Fraction(certificate["claim"]["excess"])
            assert claimed >= honest.excess * Fraction(999, 1000)
    assert accepted or not extent.is_many


def check_is_passed(certificate):
    try:
        check_apart_from_code(certificate)
    except Rejected:
        return False
    return True


@pytest.mark.parametrize("share", [-1, -2, -1000])
def test_a_distance_below_0_is_rejected(share):
    stray = certified("planar").stray
    with pytest.raises(Rejected):
        check_apart_from_code(forged(stray.reach, stray.omega, share * stray.moved))


def test_the_honest_figures_are_accepted_so():
    stray = certified("planar").stray
    check_apart_from_code(forged(stray.reach, stray.omega, stray.moved))
