"""Programs whose noise is drawn by a logarithm: the whole table of couplings, with ln in floats."""

from __future__ import annotations

import importlib
import inspect
import json
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from lastbit.checker import (
    Rejected,
    coupling as checker,
    dispatch,
    loss_rules,
    problem_of,
    rounded_draws as drawing,
)
from lastbit.errors import InvalidParameter, LastbitError, NotCertified
from lastbit.exact import ln
from lastbit.exact.ball import Ball
from lastbit.report import certificate_latex, certificate_page
from lastbit.verify import coupled, coupling, digest, exact_law
from lastbit.verify.loss_rules import LossRules
from lastbit.verify.rounded_draws import draw_loss, scale_of
from lastbit.verify.running.code import Code
from lastbit.verify.tracing.screening import Screened
from tests.evidence import late
from tests.mutants import at, own_leaves, replaced, variants
from tests.verify import coupled_code, logarithm_programs as programs
from tests.verify.sloppy import programs as sloppy

A_LITTLE = "1.0000000001"  # some thousand eta for each draw

# ---------------------------------------------------------------- all programs, with ln


BY_LOGARITHM = """

def by_logarithm(run, scale):
    return run.round_to(run.sign() * (scale * run.ln(run.uniform())), 1)


def """


@contextmanager
def by_logarithms(module: ModuleType, folder: Path) -> Iterator[ModuleType]:
    """A module of programs with noise by logarithms in place of discrete Laplace noise."""
    text = inspect.getsource(module).replace("run.laplace(", "by_logarithm(run, ")
    name = f"{module.__name__.rpartition('.')[2]}_by_logarithms"
    Path(folder, f"{name}.py").write_text(text.replace("\n\ndef ", BY_LOGARITHM, 1), "utf-8")
    sys.path.insert(0, str(folder))
    yield importlib.import_module(name)
    sys.path.remove(str(folder))
    del sys.modules[name]


@pytest.fixture(scope="module")
def translated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    with by_logarithms(coupled_code, tmp_path_factory.mktemp("right")) as module:
        yield module


@pytest.fixture(scope="module")
def careless(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    with by_logarithms(sloppy, tmp_path_factory.mktemp("careless")) as module:
        yield module


@pytest.mark.parametrize("screens", ["prover", "checker"])
@pytest.mark.parametrize("name", [one.__name__ for one in sloppy.LAPLACE])
def test_sloppy_programs_are_refused_by_prover_and_checker(name, screens, careless, monkeypatch):
    if screens == "checker":
        monkeypatch.setattr(coupling, "screened", lambda *_, **__: Screened())
    (program,) = (one for one in careless.LAPLACE if one.__name__ == name)
    with pytest.raises((LastbitError, AttributeError)):
        coupled(program, inputs=1, epsilon=2)


@pytest.mark.thinned(one_in=3)
@pytest.mark.parametrize("name", [one.__name__ for one in coupled_code.PROGRAMS])
def test_right_programs_are_proved_with_noise_by_logarithms(name, translated):
    """CheckDP's nine right programs and four more: in code, in floats, checked."""
    program = getattr(translated, name)
    count, neighbours, _ = translated.PROGRAMS[program]
    found = coupled(program, inputs=min(count, 4), epsilon=A_LITTLE, neighbours=neighbours)
    assert 0 < found.delta < Fraction(1, 10**270)
    assert found.code is not None
    assert {draw["law"] for draw in found.draws} == {"rounded"}
    certificate = found.certificate()
    assert certificate["claim"]["code"]["function"] == f"coupled_code_by_logarithms:{name}"
    assert problem_of(certificate) is None


TWINS = [
    (right.__name__, wrong.__name__, step)
    for right, (_, _, twins) in coupled_code.PROGRAMS.items()
    for wrong, step in twins.items()
]


@pytest.mark.thinned(one_in=4)
@pytest.mark.parametrize(("right", "wrong", "step"), TWINS)
def test_wrong_programs_are_refused_at_the_same_step(right, wrong, step, translated):
    count, neighbours, _ = translated.PROGRAMS[getattr(translated, right)]
    with pytest.raises(NotCertified, match=f"^{step}: "):
        coupled(getattr(translated, wrong), inputs=count, epsilon=A_LITTLE, neighbours=neighbours)


# ---------------------------------------------------------------- released sums


@pytest.mark.parametrize("program", programs.RIGHT, ids=lambda one: one.__name__)
def test_programs_that_round_sums_are_proved(program):
    settings = programs.RIGHT[program]
    found = coupled(program, **{"epsilon": A_LITTLE, **settings})
    assert problem_of(found.certificate()) is None
    told = found.release([1] * settings["inputs"])
    assert told and all(math.isfinite(x) for x in told)
    text = found.text()
    assert "∼ u′ ∈" in text and "AXUNIF" in text and "ROUND: draw" in text


@pytest.mark.parametrize(
    ("program", "settings", "step"), programs.WRONG, ids=lambda one: getattr(one, "__name__", "")
)
def test_wrong_twins_are_refused_in_words(program, settings, step):
    with pytest.raises(LastbitError, match=step):
        coupled(program, **{"epsilon": A_LITTLE, "inputs": 1, **settings})


def test_snapped_counts_in_sequence_cost_what_each_does():
    one = coupled(programs.snapped, inputs=1, epsilon=2, grid="1/1024")
    two = coupled(programs.snapped, inputs=2, epsilon=3, grid="1/1024")
    assert two.cost == 2 * one.cost
    apart = coupled(programs.snapped, inputs=2, epsilon=2, neighbours="one", grid="1/1024")
    assert apart.cost == one.cost


def test_a_draw_that_nobody_sees_costs_nothing():
    found = coupled(programs.unseen, inputs=1, epsilon=A_LITTLE)
    assert found.cost == coupled(programs.geometric, inputs=1, epsilon=A_LITTLE).cost


def test_page_and_latex_show_the_draws():
    certificate = coupled(programs.snapped, inputs=1, epsilon=2, grid="1/1024").certificate()
    page, latex = certificate_page(certificate), certificate_latex(certificate)
    assert "u ∈ [G(b - v), G(a - v))" in page and "RELEASE" in page
    assert r"$\in$ [G(b - v), G(a - v))" in latex


# ---------------------------------------------------------------- against exact laws


def geometric(value, u, sign):
    return min(max(value + 1.0 * round(sign * (2.0 * ln(u))), -30.0), 30.0)


def quarters(value, u, sign):
    return min(max(0.25 * round((value + sign * (ln(u) / 1.7)) / 0.25), -5.0), 5.0)


ONE_INPUT = {"rows": [["VAR", "q1"]], "clamp": None}
BY_CODE = [
    (geometric, [["MUL", "2"]], "1", None, (0.0, 1.0)),
    late(geometric, [["MUL", "2"]], "1", None, (-3.0, 2.0)),
    (quarters, [["DIV", str(Fraction(1.7))]], "1/4", ONE_INPUT, (0.1, 1.1)),
    late(quarters, [["DIV", str(Fraction(1.7))]], "1/4", ONE_INPUT, (3.3, 2.3)),
    late(quarters, [["DIV", str(Fraction(1.7))]], "1/4", ONE_INPUT, (1e-9, -0.999)),
]


@pytest.mark.parametrize(("code", "chain", "step", "value", "pair"), BY_CODE)
def test_no_output_of_the_running_code_loses_more(code, chain, step, value, pair):
    """Outputs near by, by the exact laws of the code; at 640 scales errors are larger."""
    draw = {"law": "rounded", "chain": chain, "step": step, "value": value}
    loss = draw_loss(draw, Fraction(1 << 48), Fraction(4))
    named = Code(f"tests.verify.test_rounded_draws:{code.__name__}")
    laws = [exact_law(named, value, probes=0) for value in pair]
    apart = abs(Fraction(pair[0]) - Fraction(pair[1])) / scale_of(draw)
    worst = Fraction(0)
    for output in laws[0].outputs:
        p, q = (law.probability(output) for law in laws)
        excess = abs(Ball.of(p / q, precision=200).log()) - apart
        assert excess <= loss["excess"]
        worst = max(worst, excess.ends[1])
    assert worst > loss["excess"] / 1000


# ---------------------------------------------------------------- mutants


def resealed(certificate: dict[str, Any]) -> dict[str, Any]:
    return {**certificate, "digest": digest(certificate)}


def test_every_number_of_a_certificate_counts(extent):
    honest = coupled(programs.mixed, inputs=2, epsilon=2).certificate()
    claim = {**honest["claim"], "code": None}
    assumptions = [one for one in honest["assumptions"] if "code that runs" not in one]
    steps = "The claim is about the steps written in it and names no code: that the code which "
    steps += "runs takes these steps is not checked."
    honest = resealed({**honest, "claim": claim, "assumptions": [*assumptions, steps]})
    assert problem_of(honest) is None
    tried = 0
    about = ("draws", "losses")  # another shift may be a proof too
    for path in extent.cases([p for p in own_leaves(honest) if p[1] in about], one_in=12):
        for new in variants(at(honest, path)):
            if path[-1] in ("name", "scale"):
                continue  # of another program the same may be true
            changed = resealed(replaced(honest, path, new))
            assert problem_of(changed) is not None, (path, new)
            tried += 1
    assert tried > 10


@pytest.mark.parametrize("side", ["prover", "checker"])
@pytest.mark.parametrize("mistake", ["half an ulp", "no excess", "no reach", "no step"])
def test_a_mutant_of_either_side_is_noticed_by_the_other(side, mistake, monkeypatch):
    honest = coupled(programs.geometric, inputs=1, epsilon=A_LITTLE).certificate()
    half = Fraction(1, 2)
    rules: Any = LossRules if side == "prover" else loss_rules.Noise
    if mistake == "half an ulp":
        true = rules.half_ulp
        monkeypatch.setattr(rules, "half_ulp", lambda self, x: true(self, x) * half)
    elif mistake == "no excess":
        place: Any = coupling if side == "prover" else drawing.Rounded
        name = "draw_loss" if side == "prover" else "loss"
        whole: Any = getattr(place, name)

        def without(*given: Any) -> Any:
            step = whole(*given)
            if isinstance(step, dict):
                return {**step, "values": {"excess": "0"}}
            return type(step)(step.rule, (("excess", Fraction(0)),), step.premises)

        monkeypatch.setattr(place, name, without)
    elif mistake == "no reach":
        cell = rules.cell
        monkeypatch.setattr(rules, "cell", lambda self, reach, q: cell(self, reach * half, q))
    else:
        growth = rules.growth
        monkeypatch.setattr(rules, "growth", lambda self, width: growth(self, 2 * width))
    with pytest.raises(NotCertified, match="the independent checker rejects"):
        coupled(programs.geometric, inputs=1, epsilon=A_LITTLE)
    assert side == "prover" or problem_of(honest) is not None


def test_code_that_rounds_something_else_on_floats_is_rejected(monkeypatch):
    """The runs on floats compare the sum that is rounded with what its draw says."""
    honest = coupled(programs.geometric, inputs=1, epsilon=A_LITTLE).certificate()
    true = checker._Played.ln
    monkeypatch.setattr(checker._Played, "ln", lambda self, x: true(self, min(2 * x, 1.0)))
    assert problem_of(honest) is None  # both sides of the comparison see it
    monkeypatch.undo()
    monkeypatch.setattr(checker._Played, "uniform", lambda self: 0.25)
    problem = problem_of(honest)
    assert problem is not None and "rounds another sum on floats" in problem


def test_bad_calls_are_refused_with_a_remedy():
    for program in programs.BAD:
        with pytest.raises(InvalidParameter) as refused:
            coupled(program, inputs=1, epsilon=2)
        assert ";" in str(refused.value)


@pytest.mark.parametrize("name", ["divided_by_a_query", "divided_by_a_draw", "divided_by_zero"])
def test_the_checker_follows_no_division_that_may_fail(name):
    with pytest.raises(Rejected, match="divides by something that may be 0"):
        checker.followed(getattr(programs, name), ["q1"])


def test_the_size_of_a_clamped_value_is_that_of_its_clamp():
    """By the checker as well: no sum that floats would round is taken for an exact one."""
    found = coupled(programs.to_and_fro, inputs=1, epsilon=A_LITTLE)
    forged = json.loads(json.dumps(found.certificate()))
    (draw,) = forged["claim"]["draws"]
    draw["value"]["clamp"] = [str(2**60), str(2**61)]
    forged["claim"]["code"] = None
    forged["assumptions"] = [*dispatch.beliefs("coupling", forged["claim"])]
    forged["digest"] = digest(forged)
    assert problem_of(forged) == "RANGE: noise ends too early"


def test_inputs_nearer_than_the_farthest_may_shift_more_draws():
    """Draws moved by 1 - d and by 1 + d: at d = 1 and -1 one of them, between these both."""
    found = coupled(programs.two_unseen, inputs=1, epsilon=3, grid="1/4", neighbours="one")
    honest = found.certificate()
    first, second = (draw["name"] for draw in honest["claim"]["draws"])
    shifts = {first: {"": "1", "q1": "-1"}, second: {"": "1", "q1": "1"}}
    losses = found.losses
    ends = 2 + max(loss["excess"] for loss in losses.values())
    between = 2 + sum(loss["excess"] for loss in losses.values())
    for epsilon, accepted in ((ends, False), (between, True)):
        forged = json.loads(json.dumps(honest))
        forged["claim"]["epsilon"] = str(epsilon)
        forged["body"]["shifts"] = [shifts]
        forged["digest"] = digest(forged)
        problem = problem_of(forged)
        assert (problem is None) is accepted
        assert accepted or "costs more than epsilon" in str(problem)


# ---------------------------------------------------------------- CheckDP's eight wrong programs

PRICES = {
    coupled_code.value_of_max: ("each", 4, "2"),
    coupled_code.svt6: ("each", 6, "3/2"),
    coupled_code.svt4: ("each", 6, "3/2"),
    coupled_code.svt3: ("each", 6, "3/2"),
    coupled_code.adaptive_query: ("each", 4, "3/2"),
    coupled_code.sum_little: ("one", 4, "4/3"),
}


@pytest.mark.parametrize("program", PRICES, ids=lambda one: one.__name__)
def test_six_of_the_eight_are_proved_for_the_epsilon_that_they_cost(program):
    neighbours, count, price = PRICES[program]
    settings: dict[str, Any] = {"inputs": count, "neighbours": neighbours}
    assert coupled(program, epsilon=price, **settings).cost == Fraction(price)
    with pytest.raises(NotCertified, match=r"^SEQ: "):
        coupled(program, epsilon=Fraction(price) * Fraction(999, 1000), **settings)


@pytest.mark.parametrize(
    ("program", "neighbours", "step"),
    [(coupled_code.svt5, "each", "CASE"), (coupled_code.smart_bare, "one", "EMIT")],
)
def test_two_of_the_eight_have_no_epsilon(program, neighbours, step):
    """What is compared, or put out, has no noise."""
    with pytest.raises(NotCertified, match=f"^{step}: "):
        coupled(program, inputs=4, epsilon=1000, neighbours=neighbours)
