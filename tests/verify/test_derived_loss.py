"""Losses derived from program text: against exact laws, the checker, wrong twins and mutants."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lastbit.checker import loss_rules, problem_of
from lastbit.checker.dispatch import check_apart_from_code
from lastbit.errors import InvalidParameter, LastbitError, NotCertified
from lastbit.exact import Ball, ln
from lastbit.mechanisms.snapping import snapped
from lastbit.privacy import ApproxDP, PureDP
from lastbit.report import certificate_latex, certificate_page
from lastbit.report.claims import claim_of
from lastbit.verify import BINARY16, certified_code, derived_loss, digest, exact_law
from lastbit.verify.language import expressions as ex
from lastbit.verify.loss_derivation import DerivedLoss, derived_sums
from lastbit.verify.loss_rules import JUDGEMENTS, LossRules
from lastbit.verify.running.code import Code
from lastbit.verify.snapping import snapping_bound
from tests.evidence import late
from tests.mutants import at, own_leaves, replaced, variants
from tests.verify import derived_code, right_code
from tests.verify.laws16 import HALF, inputs, laws_of, logarithms, worst_losses
from tests.verify.sloppy import kept, seen

CORRECT = {"ln": "1/2"}  # lastbit's ln, and that of binary16 here; of math.log it is not true
ETA16 = Fraction(1, 1 << 11)


@cache
def derived(name: str) -> DerivedLoss:
    return derived_loss(Code(f"tests.verify.derived_code:{name}"), sensitivity=1, ulps=CORRECT)


# ---------------------------------------------------------------- snapping, from its text


def test_snapping_is_derived_from_its_text_as_sharply_as_by_hand():
    found, by_hand = derived("snapping"), snapping_bound(epsilon=1, bound=64)
    assert found.cases == by_hand.cases
    assert found.excess == by_hand.excess < Fraction(2814, 10) * found.format.unit_roundoff
    general = certified_code(derived_code.snapping, sensitivity=1, ulps=CORRECT)
    assert found.excess * 2 < general.excess  # 281.3 and 839.6 eta


def test_the_text_is_that_of_the_running_mechanism(monkeypatch):
    """But for the logarithm, which is lastbit's own there: correctly rounded."""
    monkeypatch.setattr(derived_code, "math", SimpleNamespace(log=ln))
    draws = random.Random(7)
    for _ in range(2000):
        value, u, sign = draws.uniform(-70, 70), 2.0 ** -draws.uniform(0, 90), draws.choice([1, -1])
        text = derived_code.snapping(value, u, sign)
        assert text == snapped(value, u, sign, epsilon=1.0, bound=64.0)


def test_every_output_has_a_bound_of_its_own():
    found = derived("snapping")
    assert [(int(a), int(b)) for a, b, _ in found.outputs] == [(-64, -64), (-63, 63), (64, 64)]
    ends, middle, _ = (loss - 1 for _, _, loss in found.outputs)
    assert ends == found.cases["LOWER END"] < middle == found.excess
    near = derived("by_tenths").outputs
    assert near[len(near) // 2][2] < derived("by_tenths").epsilon


def program16(chain: list[tuple[str, float]], bound: float | None = None) -> tuple[Any, Any]:
    """clamp(value) + s (… ln(u) …), for both signs."""
    noise: ex.Expression = ex.Ln(ex.Variable("u"))
    for rule, number in chain:
        kind = ex.Multiply if rule == "MUL" else ex.Divide
        noise = kind(noise, ex.Constant(Fraction(number)))
    value: ex.Expression = ex.Variable("value")
    if bound is not None:
        value = ex.Clamp(value, -Fraction(bound), Fraction(bound))
    both = (ex.Multiply(ex.Constant(sign), noise) for sign in (1, -1))
    one, other = (ex.Add(value, part) for part in both)
    return one, other


SNAPPED16 = [
    (1.0, 4.0),
    (1.0009765625, 4.0),
    late(float(HALF(0.7)), 6.0),
    late(1.5, float(HALF(2.7))),
    late(2.0, 2.25),
    late(0.25, 12.0),
]


@pytest.mark.parametrize(("epsilon", "bound"), SNAPPED16)
def test_every_output_of_binary16_snapping_stays_below_its_bound(epsilon, bound):
    step = 2.0 ** -math.floor(math.log2(epsilon))
    cells = math.ceil(bound / step)
    found = derived_sums(
        program16([("DIV", epsilon)], bound),
        sensitivity=1,
        cell=step,
        region=(-cells * step, cells * step),
        format=BINARY16,
        ulps=CORRECT,
    )
    by_hand = snapping_bound(epsilon=epsilon, bound=bound, format="binary16")
    assert found.delta == 0 and found.excess <= by_hand.excess
    wall, grid = HALF(bound), HALF(step)

    def released(x: Any, noise: Any) -> Any:
        return np.clip(np.rint((x + noise) / grid) * grid, -wall, wall)

    outputs = [float(np.clip(k * step, -bound, bound)) for k in range(-cells, cells + 1)]
    x = inputs(wall)
    laws = laws_of(x, logarithms() / HALF(epsilon), outputs, released)
    _assert_below(found, worst_losses(x.astype(float), laws), cells, step)


CHAINS16 = [
    # steps of the noise from ln up, cell, cells to either side, sensitivity
    ([("MUL", 2.0)], 0.5, 6, 1.0),
    late([("MUL", float(HALF(0.7)))], 0.25, 8, 0.5),
    late([("DIV", float(HALF(0.7)))], 0.75, 5, 1.0),
    ([("DIV", float(HALF(1.7))), ("MUL", 3.0)], 1.25, 4, 0.75),
    late([("MUL", float(HALF(1.1))), ("MUL", float(HALF(1.3)))], 0.375, 8, 0.25),
]


@pytest.mark.parametrize(("chain", "cell", "cells", "apart"), CHAINS16)
def test_every_output_of_other_binary16_programs_stays_below_its_bound(chain, cell, cells, apart):
    end = cell * cells
    settings: dict[str, Any] = {"cell": cell, "region": (-end, end), "format": BINARY16}
    found = derived_sums(program16(chain), sensitivity=apart, ulps=CORRECT, **settings)
    assert found.delta == 0
    noise = logarithms()
    for rule, number in chain:
        noise = noise * HALF(number) if rule == "MUL" else noise / HALF(number)
    step = HALF(cell)

    def released(x: Any, noise: Any) -> Any:
        return np.clip(np.rint((x + noise) / step), -cells, cells)

    x = inputs(HALF(end))
    outputs = [float(k) for k in range(-cells, cells + 1)]
    laws = laws_of(x, noise, outputs, released)
    _assert_below(found, worst_losses(x.astype(float), laws, apart), cells, cell)


def _assert_below(found: DerivedLoss, losses: list[float], cells: int, cell: float) -> None:
    """Each output against its own bound; and all of them against a mutant, a sixth of it."""
    exceeded = False
    for first, last, bound in found.outputs:
        for k in range(int(first / Fraction(cell)), int(last / Fraction(cell)) + 1):
            excess = Fraction(losses[k + cells]) - found.ideal
            assert excess <= bound - found.ideal
            exceeded = exceeded or excess > (bound - found.ideal) / 6
    assert exceeded


def test_mutant_logarithm_is_violated():
    """A logarithm of 8 bits exceeds the bound for 1/2 ulp; 16 ulps allow for it."""
    coarse = (logarithms().view(np.uint16) & np.uint16(0xFFF0)).view(HALF)
    settings: dict[str, Any] = {"cell": 1, "region": (-4, 4), "format": BINARY16}
    sharp, wide = (
        derived_sums(program16([]), sensitivity=1, ulps={"ln": ulps}, **settings)
        for ulps in ("1/2", "16")
    )
    x = inputs(HALF(4))
    laws = laws_of(
        x, coarse, [float(k) for k in range(-4, 5)], lambda x, n: np.clip(np.rint(x + n), -4, 4)
    )
    worst = max(worst_losses(x.astype(float), laws))
    assert sharp.epsilon < worst <= wide.epsilon


# ---------------------------------------------------------------- other programs


@pytest.mark.parametrize("name", [one.__name__ for one in derived_code.RIGHT])
def test_right_programs_are_derived_and_checked(name):
    found = derived(name)
    assert [one["function"] for one in found.code] == [f"tests.verify.derived_code:{name}"]
    certificate = found.certificate()
    assert problem_of(certificate) is None
    check_apart_from_code(certificate)
    general = certified_code(Code(found.code[0]["function"]), sensitivity=1, ulps=CORRECT)
    assert found.ideal < found.epsilon <= general.epsilon
    assert found.epsilon == max(loss for _, _, loss in found.outputs)
    assert isinstance(found.guarantee, PureDP)


PAIRS = [
    ("rounded_laplace", (0.1, 1.1)),
    late("rounded_laplace", (-7.9, -6.9)),
    late("rounded_laplace", (8.0, 7.0)),
    late("by_tenths", (0.05, -0.95)),
    late("by_tenths", (-3.3, -2.3)),
    ("two_sided", (0.25, 1.25)),
    late("two_sided", (-8.0, -7.0)),
    late("two_sided", (6.7, 7.7)),
]


@pytest.mark.parametrize(("name", "pair"), PAIRS)
def test_no_output_of_the_running_code_loses_more_than_its_bound(name, pair):
    """By exact laws in binary64, output by output; math.log is within 1 ulp."""
    code, signs = Code(f"tests.verify.derived_code:{name}"), (-1, 1)
    runs = derived_loss(code, sensitivity=1).outputs
    one_uniform = name == "two_sided"
    how: dict[str, Any] = {"signs": None if one_uniform else signs, "probes": 0}
    laws = [exact_law(code, value, **how) for value in pair]
    for output in laws[0].outputs:
        here = Fraction(output)
        _, _, bound = min(runs, key=lambda run: max(run[0] - here, here - run[1]))
        ratio = laws[0].probability(output) / laws[1].probability(output)
        assert abs(Ball.of(ratio, precision=200).log()) <= bound


@pytest.mark.thinned(one_in=6)
@pytest.mark.parametrize(
    "function", right_code.CERTIFIED, ids=lambda one: getattr(one, "__name__", "partial")
)
def test_the_derivation_is_never_worse_than_the_general_bound(function):
    """Code that is certified is derived with no greater loss, or refused at a rule."""
    settings: dict[str, Any] = {"sensitivity": 1, "region": (-8, 8)}
    try:
        found = derived_loss(function, **settings)
    except NotCertified as problem:
        assert ": " in str(problem)
        return
    assert found.epsilon <= certified_code(function, **settings).epsilon


@pytest.mark.parametrize(
    ("function", "settings", "step"),
    derived_code.WRONG,
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_wrong_twins_are_refused_at_a_step(function, settings, step):
    with pytest.raises(NotCertified, match=f"^({step})"):
        derived_loss(function, sensitivity=1, **settings)


@pytest.mark.thinned(one_in=3)
@pytest.mark.parametrize(
    "function", [*seen.ALL, *kept.ALL], ids=lambda one: getattr(one, "__name__", "partial")
)
def test_no_sloppy_function_is_derived(function):
    with pytest.raises(LastbitError):
        derived_loss(function, sensitivity=1)


def test_noise_that_ends_too_early_needs_a_delta():
    def far(value, u, sign):
        return min(max(1.0 * round(value + sign * math.log(u)), -512.0), 512.0)

    found = derived_loss(far, sensitivity=1, ulps=CORRECT)
    assert found.delta == 4 * Fraction(1, 1 << 1022)
    assert isinstance(found.guarantee, ApproxDP)


@pytest.mark.parametrize(
    "wrong",
    [
        {"sensitivity": 0},
        {"sensitivity": -1},
        {"sensitivity": math.nan},
        {"sensitivity": math.inf},
        {"region": (3, 3)},
        {"uniform": "grid"},
        {"ulps": {"ln": "1/4"}},
        {"ulps": {"ln": 4096}},
    ],
)
def test_bad_settings_are_refused(wrong):
    with pytest.raises(LastbitError) as refused:
        derived_loss(derived_code.snapping, **{"sensitivity": 1, "ulps": CORRECT, **wrong})
    assert ";" in str(refused.value) or isinstance(refused.value, InvalidParameter)


# ---------------------------------------------------------------- the derivation, printed


def test_the_derivation_shows_each_case_with_its_uniforms_and_sign():
    found = derived("snapping")
    text, latex = found.text(), found.latex()
    assert "BELOW: u ∈ [G(x - a), G(x - b)) ∧ s = 1 ∼ u′ ∈ [G(x′ - a), G(x′ - b)) ∧ s = 1" in text
    assert "BETWEEN: u ∈ [G(b - x), G(a - x)) ∧ s = -1 ∼ u′ ∈ [G(x′ - a)" in text
    for case in JUDGEMENTS:
        assert f"{case}: " in text and case.title() in latex
    assert text.count("\n") + 1 == sum(1 for _ in _steps(found.derivation.as_json()))
    assert latex.count("{") == latex.count("}") and "∈" not in latex
    assert "u < 1/2" in derived("two_sided").text()
    # the other sign is the downward one where noise is taken away
    assert "BELOW: u ∈ [G(x - a), G(x - b)) ∧ s = -1" in derived("by_tenths").text()


@pytest.mark.parametrize("name", ["snapping", "two_sided"])
def test_page_and_latex_show_it_too(name):
    certificate = derived(name).certificate()
    assert claim_of(certificate).verdict.startswith("ε ≤ ")
    page, latex = certificate_page(certificate), certificate_latex(certificate)
    assert "u ∈ [G(x - a), G(x - b))" in page and "AXUNIF" in page
    assert r"$\in$ [G(x - a)" in latex and "Axunif" in latex


def _steps(step: dict[str, Any]) -> Any:
    yield step
    for premise in step["premises"]:
        yield from _steps(premise)


# ---------------------------------------------------------------- the checker


def resealed(certificate: dict[str, Any]) -> dict[str, Any]:
    return {**certificate, "digest": digest(certificate)}


HARMLESS = (("claim", "ulps", "exp"), ("claim", "ulps", "sqrt"),
            ("claim", "uniform", "least_exponent"))  # fmt: skip


def test_every_number_of_a_certificate_counts(extent):
    """All but the accuracy of functions that no step uses, and exponents that no draw needs."""
    honest = derived_loss(lambda value, u, sign: min(max(round(value + sign * math.log(u)), -4), 4),
                          sensitivity=1).certificate()  # fmt: skip
    tried = 0
    paths = [path for path in own_leaves(honest) if path not in HARMLESS]
    for path in extent.cases(paths, one_in=20):
        if path[:2] in (("claim", "format"), ("claim", "programs")):
            continue  # of another program or format the same may be true: value + ln(u)
        for new in variants(at(honest, path)):
            mutant = resealed(replaced(honest, path, new))
            assert problem_of(mutant) is not None, (path, new)
            tried += 1
    assert tried > 20


@pytest.mark.parametrize("name", sorted(JUDGEMENTS))
def test_no_case_may_be_left_out(name):
    honest = derived("rounded_laplace").certificate()
    outputs = [
        k for k, s in enumerate(honest["body"]["derivation"]["premises"]) if s["rule"] == "OUTPUT"
    ]
    for k in outputs:
        path = ("body", "derivation", "premises", k, "premises")
        rest = [step for step in at(honest, path) if step["rule"] != name]
        if len(rest) < len(at(honest, path)):
            problem = problem_of(resealed(replaced(honest, path, rest)))
            assert problem is not None and "OUTPUT has not its premises" in problem


def test_a_mutant_of_either_side_is_noticed_by_the_other(monkeypatch):
    """Half the room between edges: the prover's is refused, the checker's rejects what is right."""
    honest = derived("rounded_laplace").certificate()
    for owner, name in ((LossRules, "growth"), (loss_rules.Noise, "growth")):
        with monkeypatch.context() as patch:
            true = getattr(owner, name)
            patch.setattr(owner, name, lambda self, width, true=true: true(self, width / 2))
            with pytest.raises(NotCertified, match="the independent checker rejects"):
                derived_loss(derived_code.rounded_laplace, sensitivity=1)
            if owner is loss_rules.Noise:
                assert problem_of(honest) is not None
