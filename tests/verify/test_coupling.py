"""Couplings: right programs are proved, wrong ones refused at a step; against exact laws."""

from __future__ import annotations

import copy
import math
import random
import time
from collections import Counter
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import pytest

from lastbit.checker import Rejected, check, coupling as checker, names_code, problem_of
from lastbit.checker.coupling import followed
from lastbit.checker.dispatch import check_apart_from_code
from lastbit.errors import InvalidParameter, LastbitError, NotCertified, Untraceable
from lastbit.report.certificate import certificate_page
from lastbit.report.claims import claim_of
from lastbit.verify import coupled, coupling, digest
from lastbit.verify.tracing.screening import Screened
from tests.laws.frequency import assert_frequency
from tests.mutants import at, own_leaves, replaced, variants
from tests.verify import coupled_code as code
from tests.verify.sloppy import programs as sloppy

WRONG = [(w, n, k, s) for n, k, wrong in code.PROGRAMS.values() for w, s in wrong.items()]
BITS: dict[str, Any] = {"inputs": 1, "epsilon": "1.1", "neighbours": "one", "values": [0, 1]}


@cache
def proved(program):
    count, neighbours, _ = code.PROGRAMS[program]
    return coupled(program, inputs=count, epsilon=1, neighbours=neighbours)


@cache
def sealed(program):
    return proved(program).certificate()


def name_of(function):
    return getattr(function, "__name__", str(function))


@pytest.mark.parametrize("program", code.PROGRAMS, ids=name_of)
def test_right_programs_are_proved(program):
    found = proved(program)
    assert found.cost <= 1
    assert found.delta < 10**-300
    assert names_code(sealed(program))
    check(sealed(program))
    assert "EMIT" in found.text()


def test_there_are_eight_and_each_has_three_wrong_variants():
    assert len(code.PROGRAMS) + len(code.RESPONSES) >= 8
    assert all(len(wrong) >= 3 for *_, wrong in code.PROGRAMS.values())
    assert all(len(wrong) >= 3 for wrong in code.RESPONSES.values())


@cache
def refusal(wrong, count, neighbours):
    with pytest.raises(NotCertified) as refused:
        coupled(wrong, inputs=count, epsilon=1, neighbours=neighbours)
    return str(refused.value)


@pytest.mark.parametrize(("wrong", "count", "neighbours", "step"), WRONG, ids=name_of)
def test_wrong_variants_are_refused_at_a_step(wrong, count, neighbours, step):
    assert refusal(wrong, count, neighbours).startswith(f"{step}: ")


@pytest.mark.parametrize("right", code.RESPONSES, ids=name_of)
def test_responses_are_proved_by_the_uniform_rule(right):
    found = coupled(right, **BITS)
    assert found.delta == 0
    assert found.text().startswith("UNIFORM: ")
    check(found.certificate())
    with pytest.raises(NotCertified, match=r"^UNIFORM: "):
        coupled(right, **{**BITS, "epsilon": "1.09"})  # ln 3 is 1.0986


@pytest.mark.parametrize(
    ("wrong", "step"), [(w, s) for wrong in code.RESPONSES.values() for w, s in wrong.items()]
)
def test_wrong_responses_are_refused(wrong, step):
    with pytest.raises(NotCertified, match=f"^{step}: "):
        coupled(wrong, **BITS)


# ---------------------------------------------------------------- against exact laws


class More(Exception):
    def __init__(self, scale):
        super().__init__("more")
        self.scale = scale


class Enumerated:
    """Draws that were chosen beforehand; asks for one more where there is none."""

    def __init__(self, chosen):
        self.chosen, self.emitted = list(chosen), []

    def laplace(self, scale):
        if not self.chosen:
            raise More(scale)
        return float(self.chosen.pop(0))

    def emit(self, value):
        self.emitted.append(value)

    def largest(self, values):
        return max(range(len(values)), key=lambda k: (values[k], -k))


def masses(program, inputs, reach, chosen=(), weight=1.0, told=float):
    """Outputs with their weights exp(-|noise|/scale), all draws within reach(scale)."""
    run = Enumerated(chosen)
    try:
        program(run, [float(x) for x in inputs])
    except More as more:
        found: dict[Any, Any] = {}
        wide = reach(more.scale)
        for noise in range(-wide, wide + 1):
            part = weight * math.exp(-abs(noise) / more.scale)
            below = masses(program, inputs, reach, (*chosen, noise), part, told)
            for output, mass in below.items():
                found[output] = found.get(output, 0.0) + mass
        return found
    return {tuple(told(float(value)) for value in run.emitted): weight}


def moves(count, neighbours):
    if neighbours == "one":
        return [tuple(s * (k == j) for k in range(count)) for j in range(count) for s in (1, -1)]
    ways = [(0, 1), (0, -1)] if neighbours == "same" else [(-1, 0, 1)]
    return [move for way in ways for move in product(way, repeat=count) if any(move)]


@pytest.mark.parametrize(
    ("program", "count"),
    [(code.laplace, 1), (code.histogram, 2), (code.noisy_max, 2), (code.gap, 1),
     (code.above_threshold, 1), (code.monotone, 1), (code.partial_sum, 3), (code.prefix_sums, 2),
     (code.smart_sums, 2),
     pytest.param(code.above_threshold, 2, marks=pytest.mark.evidence)],
)  # fmt: skip
def test_the_proved_loss_holds_of_the_exact_laws(program, count):
    """P(first, noise within K) <= exp(cost) P(second, noise within K + 2): no slack at all."""
    neighbours = code.PROGRAMS[program][1]
    found = coupled(program, inputs=count, epsilon=4, neighbours=neighbours)
    start = (10,) * count
    before = masses(program, start, lambda scale: int(4 * scale))
    sharpest = 0.0
    for move in moves(count, neighbours):
        there = tuple(a + b for a, b in zip(start, move, strict=True))
        after = masses(program, there, lambda scale: int(4 * scale) + 2)
        for output, mass in before.items():
            assert mass <= math.exp(found.cost) * after[output] * (1 + 1e-9)
            sharpest = max(sharpest, math.log(mass / after[output]))
    assert sharpest > 0.1


def test_a_wrong_program_loses_more_than_the_right_ones_proof_says():
    """The test above can fail: with half the noise the loss of a histogram is twice as large."""
    before = masses(code.little_noise, (10,), lambda scale: 4)
    after = masses(code.little_noise, (11,), lambda scale: 6)
    assert max(mass / after[o] for o, mass in before.items() if o in after) > math.exp(1.9)


def test_few_rounds_of_a_wrong_loop_are_private_by_composition():
    """SVT 6 has no end, and still costs at most n/4: a proof is about the rounds followed."""
    assert coupled(code.svt6, inputs=4, epsilon=1).cost <= 1
    with pytest.raises(NotCertified):
        coupled(code.svt6, inputs=6, epsilon=1)


# ---------------------------------------------------------------- code that is two things

SLOPPY: list[Any] = [(one, {"inputs": 1, "epsilon": 1}) for one in sloppy.LAPLACE]
SLOPPY += [(one, {**BITS, "epsilon": "1/100"}) for one in sloppy.UNIFORM]


@pytest.mark.parametrize("screens", ["prover", "checker"])
@pytest.mark.parametrize(("program", "settings"), SLOPPY, ids=name_of)
def test_sloppy_programs_are_refused_by_prover_and_checker(program, settings, screens, monkeypatch):
    """Each is another thing on floats than on symbols: code, sums that round, or signs of zeros."""
    if screens == "checker":
        monkeypatch.setattr(coupling, "screened", lambda *_, **__: Screened())
    with pytest.raises((LastbitError, AttributeError)):
        coupled(program, **settings)


def randomly(stream, depth, leaves):
    """The text of a sum of these, with signs where they can hurt."""
    if not depth or not stream.randrange(4):
        return stream.choice(leaves)
    one, two = (randomly(stream, depth - 1, leaves) for _ in range(2))
    return stream.choice([f"({one} + {two})", f"({one} - {two})", f"(-{one})"])


def generated(stream, *lines):
    """A program of these lines, where E is a sum of inputs and draws, and O what may be put out."""
    leaves, scope = ["q[0]", "n", "m", "0", "1", "2.0**53"], dict[str, Any]()
    text = "\n    ".join(("def program(run, q):", *lines))
    while "E" in text:
        text = text.replace("E", randomly(stream, 2, leaves[stream.randrange(2) :]), 1)
    while "O" in text:
        told = stream.choice(["q[0]", "(q[0] + n)", "(-q[0] - n)", "(n + q[0] + m)", "(m - q[0])"])
        text = text.replace("O", stream.choice(["0", "1", told, f"(-{told})", f"({told} + 0)"]), 1)
    exec(text, scope)  # noqa: S102 - the generator's own
    return scope["program"], text


def told_apart(program, cost):
    """Whether an output, to the last bit, is likelier than exp(cost) allows from one of two inputs.

    P(first, noise within K) <= exp(cost) P(second, noise within K + 3), noise moving by 3 at most.
    """
    for one, two in ((0, 1), (1, 0), (0, -1), (-1, 0)):
        before = masses(program, (one,), lambda scale: 5, told=repr)
        after = masses(program, (two,), lambda scale: 8, told=repr)
        if any(m > math.exp(cost) * after.get(o, 0.0) * (1 + 1e-9) for o, m in before.items()):
            return True
    return False


SHAPES = [
    ("n, m = run.laplace(2), run.laplace(2)", "run.emit(O)", "run.emit(O)"),
    ("n, m = run.laplace(2), run.laplace(2)", "run.emit(O if E >= E else O)"),
    ("n, m = run.laplace(2), run.laplace(2)", "run.emit(run.largest([E, E, E]))", "run.emit(O)"),
]


def found_false(stream, tries):
    """How many generated programs were proved, and those of them that are not as private."""
    proved_, false = 0, []
    for k in range(tries):
        program, text = generated(stream, *SHAPES[k % len(SHAPES)])
        try:
            found = coupled(program, inputs=1, epsilon=3)
        except LastbitError:
            continue
        proved_ += 1
        if told_apart(program, found.cost):
            false.append(text)
    return proved_, false


def test_generated_programs_that_are_proved_are_private_to_the_last_bit(extent):
    tries = extent.number(60, 600)
    count, false = found_false(random.Random(18), tries)
    assert not false
    assert count > tries // 10


def test_the_generator_finds_signs_of_zeros(monkeypatch):
    """What was proved before the rule about -0.0 was there."""
    monkeypatch.setattr(checker, "_unsigned", lambda rows, signed: True)
    _, false = found_false(random.Random(18), 60)
    assert any("-q[0] - n" in text for text in false)


class Fixed(Enumerated):
    def uniform(self):
        return self.chosen[0]


def false_coins(stream, tries):
    """How many generated programs of one uniform were proved, and those that are not as private.

    All thresholds are eighths, so that draws at odd sixteenths have the exact law, in floats.
    """
    draws = ["u", "u", "(u + 2.0**53 - 2.0**53)", "(u + q[0] - q[0])", "(0.25 + u)"]
    limits = ["0.5", "0.25", "(0.25 + q[0] - q[0])", "(0.5 + 2.0**53 - 2.0**53 + 0.25)"]
    outputs = ["q[0]", "(1 - q[0])", "(-q[0])", "(q[0] - 1)", "(q[0] + 2.0**53 - 2.0**53)", "0"]
    count, false = 0, []
    for _ in range(tries):
        u, p, one, two = (stream.choice(part) for part in (draws, limits, outputs, outputs))
        line, scope = f"    run.emit({one} if {u} < {p} else {two})", dict[str, Any]()
        exec(f"def program(run, q):\n    u = run.uniform()\n{line}", scope)  # noqa: S102
        try:
            coupled(scope["program"], **{**BITS, "epsilon": "1.0987"})
        except LastbitError:
            continue
        laws: list[Counter[str]] = [Counter(), Counter()]
        for bit, k in product((0, 1), range(1, 16, 2)):
            run = Fixed([k / 16])
            scope["program"](run, [float(bit)])
            laws[bit][repr(float(run.emitted[0]))] += 1
        count += 1
        if any(a[o] > 3.0001 * b[o] for a, b in (laws, laws[::-1]) for o in a):
            false.append(line)
    return count, false


def test_generated_coins_that_are_proved_are_private_to_the_last_bit(monkeypatch):
    count, false = false_coins(random.Random(18), 200)
    assert not false
    assert count > 5
    sums = lambda rows, here: checker._at(checker._form(rows, frozenset(here))[-1], here)  # noqa: E731
    monkeypatch.setattr(checker, "_float", sums)  # what was believed before: sums of real numbers
    assert false_coins(random.Random(18), 200)[1]


# ---------------------------------------------------------------- released


def test_released_outputs_have_the_law_of_the_program():
    """P(put out = input) of the two coins is 3/4, of noise alone its discrete law."""
    found = coupled(code.two_coins, **BITS)
    told = [found.release([1]) for _ in range(2000)]
    assert set(told) == {(0.0,), (1.0,)}
    assert_frequency(
        told.count((1.0,)), trials=2000, probability=0.75, false_alarm=2**-40,
        detects=Fraction(1, 6),
    )  # fmt: skip
    grid = coupled(halves, inputs=1, epsilon=1, grid="1/2")
    assert all((2 * x).is_integer() for _ in range(50) for x in grid.release([3.5]))


@pytest.mark.parametrize("inputs", [[], [1, 2], ["1/2"], [2**41], [math.inf]])
def test_inputs_outside_the_claim_are_not_released(inputs):
    with pytest.raises(LastbitError):
        proved(code.laplace).release(inputs)
    with pytest.raises(LastbitError):
        coupled(code.response, **BITS).release([2])


# ---------------------------------------------------------------- floats


def halves(run, queries):
    run.emit(queries[0] + (run.laplace(1) + 0.5))


def test_sums_must_be_exact_in_binary64():
    with pytest.raises(NotCertified, match="not a multiple of the grid"):
        coupled(halves, inputs=1, epsilon=1)
    assert coupled(halves, inputs=1, epsilon=1, grid="1/2").cost == 1
    with pytest.raises(NotCertified, match="too large to be exact"):
        coupled(code.laplace, inputs=1, epsilon=1, bound=2**53)
    with pytest.raises(NotCertified, match="grid is absurd"):
        coupled(
            code.laplace, inputs=1, epsilon=1, grid="1/3", bound=Fraction(10, 3), sensitivity="1/3"
        )
    with pytest.raises(NotCertified, match="off the grid"):
        coupled(code.laplace, inputs=1, epsilon=1, sensitivity="1/2")


def test_large_scales_need_a_delta():
    def wide(run, queries):
        run.emit(queries[0] + run.laplace(2**44))

    found = coupled(wide, inputs=1, epsilon=1)
    assert 10**-6 > found.delta > 2 * math.exp(-17)
    assert getattr(found.guarantee, "delta", None) == found.delta


@pytest.mark.parametrize(
    "program",
    [
        lambda run, q: run.emit(q[0] * 2),
        lambda run, q: run.emit(q[0] == 1),
        lambda run, q: run.emit(1 if q[0] else 0),
        lambda run, q: run.emit("text"),
        lambda run, q: run.emit(run.uniform()),
    ],
)
def test_other_steps_are_refused(program):
    with pytest.raises((LastbitError, TypeError)):
        coupled(program, inputs=1, epsilon=1)


def test_a_refused_attribute_says_which_can_be_called():
    def appended(run, queries):
        noisy = []
        for query in queries:
            noisy.append(query + run.laplace(1))
        run.emit(run.largest(noisy))

    with pytest.raises(
        Untraceable, match=r"asks for \.append; call run\.clamp, run\.emit, run\.laplace, "
    ):
        coupled(appended, inputs=2, epsilon=1)


def test_programs_have_an_end():
    def endless(run, queries):
        while queries[0] + run.laplace(1) < 10:
            pass

    with pytest.raises(InvalidParameter, match="compares more than 64 times"):
        coupled(endless, inputs=1, epsilon=1)
    with pytest.raises(InvalidParameter, match="more than 4096 ends"):
        coupled(code.svt6, inputs=14, epsilon=1)


def test_numbers_of_the_program_may_lie_off_the_grid():
    def answered(run, queries):
        run.emit(0.25 if queries[0] + run.laplace(4) >= 0 else 1)

    assert coupled(answered, inputs=1, epsilon=1, grid=2, sensitivity=2).cost <= 1


def test_settings_are_checked():
    with pytest.raises(InvalidParameter):
        coupled(code.laplace, inputs=1, epsilon=1, neighbours="all")
    with pytest.raises(InvalidParameter):
        coupled(code.laplace, inputs=1, epsilon=1, values=[0, 1])


# ---------------------------------------------------------------- the checker


def test_the_checker_follows_code_itself():
    tree, draws = followed(code.above_threshold, ["q1", "q2"])
    assert [draw["scale"] for draw in draws] == ["2", "4", "4"]
    assert set(tree) == {"if", "then", "else"}


def resealed(certificate, change):
    changed = copy.deepcopy(certificate)
    change(changed["claim"], changed["body"])
    changed["digest"] = digest(changed)
    return changed


def first_test(claim):
    return claim["tree"]["if"]


MUTANTS = {
    "epsilon": lambda c, b: c.update(epsilon="9/10"),
    "delta": lambda c, b: c.update(delta="0"),
    "sensitivity": lambda c, b: c.update(sensitivity="2"),
    "scale": lambda c, b: c["draws"][0].update(scale="1"),
    "law": lambda c, b: c["draws"][0].update(law="gaussian"),
    "bound": lambda c, b: c.update(bound=str(2**53)),
    "grid": lambda c, b: c.update(grid="3"),
    "cap": lambda c, b: b.update(cap=str(2**53)),
    "small cap": lambda c, b: b.update(cap="1"),
    "no shift": lambda c, b: b["shifts"][0].clear(),
    "other shift": lambda c, b: b["shifts"][0].update(draw1_2={"": "1"}),
    "shift off the grid": lambda c, b: b["shifts"][0].update(draw1_2={"": "3/2"}),
    "shift by a draw": lambda c, b: b["shifts"][0].update(draw1_2={"draw2_4": "1"}),
    "shift of an input": lambda c, b: b["shifts"][0].update(q1={"": "1"}),
    "end left out": lambda c, b: b["shifts"].pop(),
    "relation": lambda c, b: first_test(c).__setitem__(1, "<"),
    "sides": lambda c, b: c["tree"].update({"if": first_test(c)[::-1]}),
    "output": lambda c, b: c["tree"]["then"].update(emitted=[[["VAR", "q1"]]]),
    "draw put out": lambda c, b: c["tree"]["then"]["emitted"].append([["VAR", "draw2_4"]]),
    "no branch": lambda c, b: c["tree"].pop("else"),
    "values": lambda c, b: c.update(values=["0", "1"]),
    "neighbours": lambda c, b: c.update(neighbours="none"),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutants_are_rejected(mutant):
    with pytest.raises(Rejected):
        check_apart_from_code(resealed(sealed(code.above_threshold), MUTANTS[mutant]))


@pytest.mark.parametrize("program", [code.numeric, code.noisy_max, code.two_coins], ids=name_of)
def test_a_changed_number_is_rejected(program, extent):
    """Every leaf of claim and body, in several ways: rejected, or a proof of what it then says."""
    settings = BITS if program in code.RESPONSES else {"inputs": 2, "epsilon": 1}
    found = coupled(program, **settings)
    whole, rejected = found.certificate(), 0
    changes = [(path, new) for path in own_leaves(whole) for new in variants(at(whole, path))]
    tried = extent.cases(changes, one_in=8)
    for path, new in tried:
        mutant = replaced(whole, path, new)
        mutant["digest"] = digest(mutant)
        if problem_of(mutant) is not None:
            rejected += 1
        elif path[-1] == "epsilon":
            assert Fraction(new) >= (Fraction("1.0986") if settings is BITS else found.cost)
        else:
            named = ("delta", "bound", "grid", "cap", *(["sensitivity"] * (settings is BITS)))
            assert path[-1] in named or "shifts" in path, (path, new)
    assert rejected > len(tried) / 2


def test_neighbours_matter():
    """A histogram's proof is about one count that differs, not about each."""
    with pytest.raises(Rejected, match="costs more"):
        check(resealed(sealed(code.histogram), lambda c, b: c.update(neighbours="each")))

    def turned(claim, body):
        half = len(body["shifts"]) // 2
        body["shifts"] = body["shifts"][half:] + body["shifts"][:half]

    def either(claim, body):
        claim["neighbours"], body["shifts"] = "each", body["shifts"][: len(body["shifts"]) // 2]

    for change in (turned, either):
        with pytest.raises(Rejected):
            check(resealed(sealed(code.monotone), change))


@pytest.mark.parametrize("part", [("epsilon", "1"), ("values", ["0", "1", "2"])])
def test_mutants_of_responses_are_rejected(part):
    certificate = coupled(code.response, **BITS).certificate()
    with pytest.raises(Rejected):
        check(resealed(certificate, lambda c, b: c.update([part])))


def test_a_uniform_must_be_compared_by_less():
    def closed(run, bits):
        u = run.uniform()
        run.emit(bits[0] if u <= 0.75 else 1 - bits[0])

    with pytest.raises(NotCertified, match="write a comparison of a uniform"):
        coupled(closed, **BITS)


def test_code_that_changed_is_rejected():
    def change(claim, body):
        claim["code"]["function"] = "tests.verify.coupled_code:svt6"

    with pytest.raises(Rejected, match="changed"):
        check(resealed(sealed(code.above_threshold), change))


def test_another_program_under_the_digest_is_rejected():
    def change(claim, body):
        claim["tree"], body["shifts"] = claim["tree"]["then"], body["shifts"][:1]
        body["shifts"][0].clear()

    with pytest.raises(Rejected, match="another program"):
        check(resealed(sealed(code.above_threshold), change))


def test_the_certificate_is_told_in_words():
    claim = claim_of(sealed(code.gap))
    assert claim.verdict.startswith("ε ≤ 1, δ ≤ ")
    assert dict(claim.facts)["program"] == "tests.verify.coupled_code:gap"
    assert "COUPLING" in certificate_page(sealed(code.gap))


def _responses(count: int, neighbours: str, epsilon: str) -> str | None:
    """The checker's word on a response to the first of so many inputs."""
    tree = {
        "if": [[["VAR", "q1"], ["CONST", "1/4"], ["ADD", 0, 1]], ">", [["VAR", "u"]]],
        "then": {"emitted": [[["CONST", "1"]]]},
        "else": {"emitted": [[["CONST", "0"]]]},
    }
    numbers = {"sensitivity": "1", "grid": "1", "bound": "1", "epsilon": epsilon, "delta": "0"}
    claim = {
        "code": None,
        "tree": tree,
        "draws": [{"name": "u", "law": "uniform"}],
        "inputs": [f"q{k + 1}" for k in range(count)],
        "values": ["0", "1/2"],
        "neighbours": neighbours,
        **numbers,
    }
    try:
        checker.check_coupling(claim, {})
    except Rejected as problem:
        return str(problem)
    return None


@pytest.mark.parametrize("neighbours", ["one", "each"])
def test_laws_of_many_inputs_are_compared_in_short_time(neighbours):
    """Not in pairs, of which 13 inputs have 67 million; the greatest ratio is 3."""
    start = time.monotonic()
    assert _responses(13, neighbours, "11/10") is None
    assert _responses(13, neighbours, "1") is not None
    assert time.monotonic() - start < 60
