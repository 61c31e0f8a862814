"""The independent checker on rounding certificates: what is proved, and what was changed."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest

from lastbit.checker.intervals import number_format, quotient_error
from lastbit.checker.numbers import Rejected
from lastbit.checker.rounding import check_rounding, laplace_excess
from lastbit.checker.shape import shape
from lastbit.errors import NotCertified
from lastbit.exact.ball import arb_of, ends, working_precision
from lastbit.verify.declared import declared_certificate
from lastbit.verify.error_bounds.formats import BINARY16, BINARY32, Binary, Fixed
from lastbit.verify.error_bounds.semantics import analyse, error_certificate
from lastbit.verify.language.expressions import Add, Variable, expression_to_json
from lastbit.verify.rounded_code import certified_code
from lastbit.verify.rounding import Query, rounding_certificate
from lastbit.verify.running.uniforms import FullPrecision, Grid
from lastbit.verify.tracing.trace import trace
from tests.mutants import at, copied, leaves, own_leaves, replaced, variants
from tests.verify.expressions import traced
from tests.verify.rounding_examples import RIGHT, WRONG, one_uniform, with_branches, with_sign

SETTING: dict[str, Any] = dict(sensitivity=1, cell="1/16", region=(-4, 4))
FEW = FullPrecision(significand=24, least_exponent=-126)


def example(noise=with_sign, **changes: Any) -> dict[str, Any]:
    return rounding_certificate(noise, **(SETTING | changes)).certificate()


def accepted(sealed: dict[str, Any]) -> bool:
    """As `lastbit.verify.check` does, the digest apart."""
    try:
        check_rounding(sealed["claim"], sealed["body"])
    except (Rejected, KeyError, TypeError, ValueError, IndexError, ArithmeticError):
        return False
    return True


# ---------------------------------------------------------------- accepted


@pytest.mark.thinned(one_in=24)
@pytest.mark.parametrize("noise", [one_uniform, with_sign, with_branches])
@pytest.mark.parametrize(
    "changes",
    [
        dict(uniform=Grid(53)),
        dict(uniform=Grid(52, offset="1/2")),
        dict(uniform=Grid(53, offset=1), sensitivity="1/3"),
        dict(uniform=Grid(50, first=1), cell=2),
        dict(cell="1/10"),
        dict(format=BINARY32, uniform=FEW, cell=1),
        dict(ulps={"ln": 4}),
        dict(region=(0, 3)),
    ],
    ids=str,
)
def test_every_certificate_is_accepted(noise, changes):
    check_rounding(*(example(noise, **changes)[part] for part in ("claim", "body")))


@pytest.mark.evidence
def test_mechanisms_and_queries_are_accepted():
    for noise in RIGHT:
        assert accepted(example(noise))
    query = Query(function=lambda a, b: (a + b) / 3, ranges={"a": (0, 1), "b": (0, 1)})
    assert accepted(example(query=query))
    code = certified_code(
        lambda value, u: 0.25 * round((value - with_branches(u)) / 0.25),
        sensitivity=1,
        region=(-4, 4),
        uniform=Grid(53),
    )
    assert accepted(code.certificate())
    small = rounding_certificate(
        one_uniform, sensitivity=1, cell=1, region=(-1, 1), uniform=Grid(8), format=BINARY16
    )
    assert accepted(small.certificate())


# ---------------------------------------------------------------- changed


def changed(sealed: dict[str, Any], path: tuple[Any, ...], new: Any) -> dict[str, Any]:
    mutant: dict[str, Any] = replaced(sealed, path, new)
    return mutant


def is_harmless(sealed: dict[str, Any], path: tuple[Any, ...], new: Any) -> bool:
    """Where the proof stays a proof of the claim:

    - `error` of a piece that is not the largest, raised;
    - ulps of exp and sqrt, which the code does not use; those of ln, lowered: a better library;
    - a grid with 1 instead of 0, or without it: just as far from the reals it stands for;
    - a format with more bits or other exponents, a generator with another least
      number: a true claim about another machine, for which every step is checked just so;
    """
    old = at(sealed, path)
    name = path[-1] if isinstance(path[-1], str) else path[-2]
    if name == "error":
        return Fraction(new) > Fraction(old)
    if path[:2] == ("claim", "ulps"):
        return name in ("exp", "sqrt") or Fraction(new) < Fraction(old)
    if path[:2] == ("claim", "format"):
        return path[-1] > 0 or new > old
    if name in ("offset", "first"):
        return {str(old), str(new)} == {"0", "1"}
    return name == "least_exponent"  # every cut is still above that number: that is checked


@pytest.mark.parametrize(
    "sealed",
    [
        pytest.param(example, id="sign"),
        pytest.param(lambda: example(one_uniform, uniform=Grid(51)), id="one"),
        pytest.param(lambda: example(with_branches, uniform=Grid(51, first=1)), id="branches"),
    ],
)
def test_a_changed_number_is_rejected(sealed, extent):
    """Every leaf outside the derivations, in several ways: rejected, or of the harmless kind."""
    whole = sealed()
    assert accepted(whole)
    changes = [(path, new) for path in own_leaves(whole) for new in variants(at(whole, path))]
    tried = extent.cases(changes, one_in=12)
    rejected = 0
    for path, new in tried:
        if accepted(changed(whole, path, new)):
            assert is_harmless(whole, path, new), (path, at(whole, path), new)
        else:
            rejected += 1
    assert rejected >= extent.number(16, 200)
    assert len(tried) - rejected < len(tried) / extent.number(4, 10)


def test_a_changed_derivation_is_rejected(extent):
    """Inside the derivations a number may only be loosened, and only if its user allows."""
    whole = example()
    inside = [
        path for path in leaves(whole) if "proof" in path and path[:3] == ("body", "branches", 1)
    ]
    rejected = 0
    changes = [(path, new) for path in inside[::3] for new in variants(at(whole, path))[:3]]
    for path, new in extent.cases(changes, one_in=12):
        mutant = changed(whole, path, new)
        if not accepted(mutant):
            rejected += 1
            continue
        old = at(whole, path)
        end = path[-1] if isinstance(path[-1], str) else path[-2:]
        loosened = (
            Fraction(new) > Fraction(old)
            if end == "error" or end[-1] == 1
            else Fraction(new) < Fraction(old)
        )
        assert end == "error" or end[0] in ("real", "computed"), path
        assert loosened, path
    assert rejected >= extent.number(10, 150)


def without(sealed: dict[str, Any], path: tuple[Any, ...]) -> dict[str, Any]:
    mutant = copied(sealed)
    del at(mutant, path[:-1])[path[-1]]
    return mutant


def test_a_dropped_part_is_rejected():
    whole = example(one_uniform, uniform=Grid(53))
    paths = [("claim", key) for key in whole["claim"]] + [("body", key) for key in whole["body"]]
    for side in (0, 1):
        branch = ("body", "branches", side)
        paths += [branch] + [(*branch, key) for key in at(whole, branch)]  # type: ignore[arg-type, misc]
        paths += [(*branch, "pieces", k) for k in range(len(at(whole, (*branch, "pieces"))))]  # type: ignore[misc]
    paths += [("claim", "programs", 0, k) for k in range(len(whole["claim"]["programs"][0]))]  # type: ignore[misc]
    assert len(paths) > 40
    for path in paths:
        assert not accepted(without(whole, path)), path


def test_swapped_parts_are_rejected():
    whole = example(one_uniform, uniform=Grid(53))
    for path in (
        ("body", "branches"),
        ("body", "branches", 0, "pieces"),
        ("body", "branches", 0, "interval"),
        ("body", "branches", 0, "pieces", 0, "u"),
        ("claim", "region"),
        ("claim", "programs", 0),
    ):
        assert not accepted(changed(whole, path, at(whole, path)[::-1])), path
    signs = example()
    swapped = changed(signs, ("claim", "programs"), signs["claim"]["programs"][::-1])
    assert not accepted(swapped)
    twice = changed(signs, ("claim", "programs", 1), signs["claim"]["programs"][0])
    assert not accepted(twice)
    assert not accepted(changed(signs, ("claim", "format"), BINARY32.json()))
    assert not accepted(changed(signs, ("claim", "uniform"), Grid(53).written()))


@pytest.mark.thinned(one_in=20)
@pytest.mark.parametrize("noise", WRONG, ids=lambda f: f.__name__)
def test_other_code_under_a_proof_is_rejected(noise):
    """The proof of right code does not become one of wrong code."""
    programs = [expression_to_json(Add(Variable("value"), part)) for part in traced(noise, "u")]
    for right in (with_sign, one_uniform):
        whole = example(right)
        whole["claim"]["programs"] = programs
        assert not accepted(whole)


def test_the_error_of_the_addition_may_not_be_left_out():
    """Mutant: pieces proved for the noise alone, as paper 000 counts."""
    whole = example(with_sign)
    worst = Fraction(0)
    noises = traced(with_sign, "u")
    for side, noise in zip(whole["body"]["branches"], noises, strict=True):
        for piece in side["pieces"]:
            ends_of = tuple(Fraction(end) for end in piece["u"])
            alone = error_certificate(analyse(noise, {"u": ends_of}))  # type: ignore[dict-item]
            piece["proof"] = alone["body"]
            piece["error"] = alone["claim"]["error"]
            worst = max(worst, Fraction(piece["error"]))
    body = whole["body"]
    omega = max(Fraction(side["omega"]) for side in body["branches"])
    assert worst < Fraction(body["delta_n"])
    body["delta_n"], body["delta_t"] = str(worst), str(worst + omega)
    assert not accepted(whole)


def resealed(whole: dict[str, Any], **figures: Fraction) -> dict[str, Any]:
    """A certificate with some figures replaced and everything that follows from them restated."""
    mutant = copied(whole)
    body, claim = mutant["body"], mutant["claim"]
    for side in body["branches"]:
        side["omega"] = str(figures.get("omega", Fraction(side["omega"])))
    omega = max(Fraction(side["omega"]) for side in body["branches"])
    noise = figures.get("delta_n", Fraction(body["delta_n"]))
    delta_t = omega + noise + Fraction(body["delta_round"])
    scale, cell = Fraction(body["scale"]), Fraction(claim["cell"])
    excess = figures.get("excess", laplace_excess(cell / scale, delta_t / scale))
    body |= dict(delta_n=str(noise), delta_t=str(delta_t), excess=str(excess))
    claim["epsilon"] = str(1 / scale + excess)
    return mutant


def test_a_consistent_lie_is_rejected_too():
    """Not one number changed, but all that depend on it: each premise is worked out anew."""
    whole = example(one_uniform, uniform=Grid(53))
    body = whole["body"]
    assert accepted(resealed(whole))
    omega, noise = Fraction(body["branches"][0]["omega"]), Fraction(body["delta_n"])
    excess = Fraction(body["excess"])
    assert not accepted(resealed(whole, omega=2 * omega))  # of another generator
    assert not accepted(resealed(whole, excess=2 * excess))
    assert not accepted(resealed(whole, omega=omega / 2))  # delta_0 too small
    assert not accepted(resealed(whole, omega=Fraction(0)))
    assert not accepted(resealed(whole, delta_n=noise / 2))
    assert not accepted(resealed(whole, excess=excess * Fraction(999, 1000)))
    assert not accepted(resealed(whole, excess=Fraction(0)))
    half = copied(whole)
    for side, end in zip(half["body"]["branches"], (0, -1), strict=True):
        del side["pieces"][end]  # nearer cuts, and the pieces beyond them dropped
        side["cut"] = side["pieces"][end]["u"][end]
    assert not accepted(half)


def test_a_cut_too_near_is_rejected():
    """Results in the region would come from uniforms nobody has looked at (Condition 3)."""
    wide = example(with_sign, region=(-8, 8))
    narrow = example(with_sign, region=(-4, 4))
    for side, other in zip(wide["body"]["branches"], narrow["body"]["branches"], strict=True):
        assert Fraction(side["cut"]) < Fraction(other["cut"])
    lied = copied(narrow)
    lied["claim"]["region"] = wide["claim"]["region"]
    assert not accepted(lied)


@pytest.mark.parametrize("cell", [Fraction(1, 1 << 30), Fraction(1, 7), Fraction(3), Fraction(50)])
@pytest.mark.parametrize("share", [Fraction(1, 10**12), Fraction(1, 100), Fraction(49, 100)])
def test_the_checkers_excess(cell, share):
    stray = cell * share
    with working_precision(400):
        ratio = arb_of(cell / 2 + stray).sinh() / arb_of(cell / 2 - stray).sinh()
        low, high = ends(ratio.log())
    found = laplace_excess(cell, stray)
    assert high <= found <= high + Fraction(1, 10**30)
    assert low <= found
    with pytest.raises(Rejected):
        laplace_excess(cell, cell / 2)


# ---------------------------------------------------------------- forged


HALVES = ((Fraction(0), Fraction(1, 2)), (Fraction(1, 2), Fraction(1)))


def branching(*, least: Any = None, middle: Any = None, most: Any = None) -> list[list[Any]]:
    """with_branches as a table, with -value released at uniforms that are singled out."""
    rows: list[list[Any]] = [["VAR", "value"], ["VAR", "u"], ["CONST", "2"], ["CONST", "1"]]
    rows += [["MUL", 2, 1], ["LN", 4], ["ADD", 0, 5], ["SUB", 3, 1], ["MUL", 2, 7], ["LN", 8]]
    rows += [["SUB", 0, 9], ["NEG", 0], ["CASES", 6, 10, "u", "<", "1/2"]]
    for relation, bound in (found for found in (least, middle, most) if found):
        rows.append(["CASES", 11, len(rows) - 1, "u", relation, bound])
    return rows


def test_code_that_singles_out_a_uniform_is_rejected():
    """Inside both halves it is Laplace noise; at one point of the grid it releases -value."""
    region = (Fraction(-1), Fraction(1))
    for half in HALVES:
        assert shape(branching(), half, region).value == 1
    for changes in (dict(least=("==", "0")), dict(least=("<=", "0")), dict(most=("==", "1"))):
        half = HALVES["most" in changes]
        with pytest.raises(Rejected, match="singles out"):
            shape(branching(**changes), half, region)
    nested = branching()
    nested[-1:] = [["CASES", 6, 11, "u", "<", "1/2"], ["CASES", 12, 10, "u", "<=", "1/2"]]
    for rows in (branching(middle=("==", "1/2")), nested):
        for half in HALVES:
            with pytest.raises(Rejected, match="singles out"):
                shape(rows, half, region)
    edge = branching()
    edge[-1] = ["CASES", 6, 10, "u", "<=", "1/2"]  # 1/2 goes with one of its neighbours
    for half in HALVES:
        assert shape(edge, half, region).value == 1
    whole = example(with_branches, uniform=Grid(53), region=(-1, 1), cell=1)
    assert accepted(whole)
    for rows in (branching(least=("==", "0")), nested):
        assert not accepted(changed(whole, ("claim", "programs"), [rows]))


def test_noise_that_is_far_where_its_sides_meet_is_rejected():
    """ln(1 - 2u) and -ln(2u - 1): Laplace noise, but a draw beside 1/2 may go to the other end."""

    def inside_out(u):
        return math.log(1 - 2 * u) if u < 0.5 else -math.log(2 * u - 1)

    with pytest.raises(NotCertified, match="sides meet"):
        example(inside_out, uniform=Grid(53), region=(-1, 1), cell=1)


def test_nothing_times_a_logarithm_is_rejected():
    rows = [["VAR", "value"], ["VAR", "u"], ["LN", 1], ["CONST", "0"], ["MUL", 3, 2]]
    rows += [["ADD", 0, 2], ["ADD", 5, 4]]  # at u = 0 not a number
    with pytest.raises(Rejected, match="infinite"):
        shape(rows, (Fraction(0), Fraction(1)), (Fraction(-1), Fraction(1)))  # type: ignore[arg-type]


@pytest.mark.parametrize("format", [Binary(24, -60, 6), Fixed(40, 7)])
def test_a_quotient_that_overflows_is_rejected(format):
    """64 cells to an end and two more, but no number above 64."""
    whole = example(format=format, uniform=Grid(20, offset="1/2"))
    assert accepted(whole)
    ((kind, parts),) = whole["claim"]["format"].items()
    smaller = {kind: [*parts[:-1], 5 if kind == "binary" else 6]}
    whole["claim"]["format"] = smaller
    with pytest.raises(Rejected, match="quotient by the cell may overflow"):
        check_rounding(whole["claim"], whole["body"])


@pytest.mark.thinned(one_in=9)
@pytest.mark.parametrize(
    "form", [{"binary": [5, -20, 20]}, {"binary": [6, -20, 20]}, {"fixed": [6, 6]}]
)
def test_the_error_of_the_quotient_covers_a_rounded_cell(form):
    """All floats of the region are divided by the machine's cell, and fall where it says.

    Mutant: the rounding of the cell itself forgotten, as it was.
    """
    machine = number_format(form)
    least = 1 << (form["binary"][0] if "binary" in form else form["fixed"][0])
    forgotten = 0
    for numerator in range(4097, 8192, 67):
        cell = Fraction(numerator, 4096)
        end = 5 * cell
        stray = quotient_error(form, (-end, end), cell)
        x, divisor = Fraction(1, 2), machine.nearest(cell)
        while x <= end + cell:
            multiple = round(machine.nearest(x / divisor)) * cell
            beyond = abs(x - multiple) - cell / 2
            assert beyond <= stray
            forgotten += beyond > (end + cell if "binary" in form else cell / 2) / least
            x += machine.step(x)
    assert forgotten > 0
    assert quotient_error(form, (Fraction(-5), Fraction(5)), Fraction(1)) <= Fraction(1, 128)


def exponential(a):
    return math.exp(a)


def test_a_query_on_another_machine_is_rejected():
    query = Query(function=exponential, ranges={"a": (0, 1)})
    whole = example(query=query, ulps={"exp": 8})
    assert accepted(whole)
    better = error_certificate(analyse(trace(query.function), query.ranges))
    lied = copied(whole)
    lied["body"]["query"] = {part: better[part] for part in ("claim", "body")}
    error = Fraction(better["claim"]["error"])
    lied["claim"]["query_error"] = str(error)
    epsilon = 1 + 2 * error + Fraction(whole["body"]["excess"])
    lied["claim"]["epsilon"] = str(epsilon)
    assert epsilon < Fraction(whole["claim"]["epsilon"])
    with pytest.raises(Rejected, match="another machine"):
        check_rounding(lied["claim"], lied["body"])


def test_truth_values_and_texts_are_no_numbers():
    whole = example(one_uniform, uniform=Grid(51, first=1))
    assert not accepted(changed(whole, ("claim", "uniform", "first"), True))
    digits = example(region=(0, 3))
    assert not accepted(changed(digits, ("claim", "region"), "03"))


def uniform_like(u):
    return 1000.0 * (u - 0.5)


def logistic(u):
    return math.log(u) - math.log(1 - u)


def test_a_declared_rate_that_the_proof_itself_refutes_is_rejected():
    """Uniform noise has no rate at all; logistic noise not one below 1."""
    setting = dict(sensitivity=1, cell="1/2", region=(-1, 1), uniform=Grid(53, first=1))
    for noise, rate in ((uniform_like, "1/1000000"), (logistic, "1/2"), (logistic, "1/10")):
        with pytest.raises(NotCertified, match="no such rate"):
            declared_certificate(noise, rate=rate, **setting)  # type: ignore[arg-type]
    assert accepted(declared_certificate(logistic, rate=1, **setting).certificate())  # type: ignore[arg-type]


def test_declared_noise_is_looked_at_inside_the_uniform_only():
    """A line reaches the ends of a wide region only beyond u = 0 and u = 1."""
    setting = dict(rate=1, sensitivity=1, cell="1/2", region=(-1, 1), uniform=Grid(53, first=1))
    whole = declared_certificate(logistic, **setting).certificate()  # type: ignore[arg-type]
    for end in ("0", "-1"):
        assert not accepted(changed(whole, ("body", "pieces", 0, "u", 0), end))
