"""The law of code is the code's if it is monotone; where that is only probed, samples decide."""

import importlib
import math
import sys
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest

from lastbit.audit.blackbox.distinguish import distinguish, distinguish_by_law
from lastbit.audit.blackbox.exact_laws import _most_telling, _uniforms, counted, law_of
from lastbit.errors import NotMonotone
from lastbit.verify.running.code import Code
from lastbit.verify.running.law import exact_loss
from lastbit.verify.running.uniforms import FullPrecision, Grid
from lastbit.verify.running.witness import refute

CODE = '''
import math


def kept(value, u):
    """Randomised response that lies once in 50,000 times, so its loss is ln 49999 = 10.82."""
    if 0.60001 < u <= 0.60003:
        return 1.0 - value
    return value


def bump(value, u, sign):
    """Laplace noise, rounded; but for 2e-5 of the uniforms +20 or -20 by the value."""
    if 0.60001 < u < 0.60003:
        return 20.0 * round(2.0 * value - 1.0)
    return min(max(1.0 * round(value + sign * math.log(u)), -20.0), 20.0)


def floored(value, u):
    """A coin of 3/4 or 1/4; floor is not followed."""
    return float(math.floor(u + (0.75 if value > 0 else 0.25)))


def plain(value, u):
    return 1.0 if u < (0.75 if value > 0 else 0.25) else 0.0


def rounded(value, u, sign):
    return min(max(1.0 * round(value + sign * math.log(u)), -8.0), 8.0)
'''


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kept_code.py").write_text(CODE, "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "kept_code", raising=False)
    importlib.invalidate_caches()


def code(name: str) -> Code:
    return Code(f"kept_code:{name}")


@pytest.mark.thinned(one_in=9)
@pytest.mark.parametrize("name", ["kept", "bump"])
def test_a_turn_that_probes_miss_convicts_nobody(name, extent):
    """Was: refuted, exactly and without error, for a right claim; and an acquittal as exact."""
    for _ in range(extent.number(1, 3)):
        try:
            result = distinguish(code(name), (0.0, 1.0), epsilon=11, samples=3000)
        except NotMonotone:
            continue
        assert not result.broken and not result.exact
        assert result.error > 0 and result.basis == "samples" and result.monotone == "probed"
        assert "only probed" in result.rests_on and "exact" not in str(result)
        assert result.to_dict()["monotone"] == "probed" and not result.to_dict()["exact"]


def test_the_law_of_probed_code_alone_refutes_nothing():
    result = distinguish_by_law(code("floored"), (0.0, 1.0), epsilon="1/2")
    assert result is not None and result.epsilon_lower > 1 and result.basis == "code"
    assert not result.exact and not result.broken
    assert "probed, not proved" in str(result) and "decides nothing" in result.rests_on


def test_samples_confirm_what_the_law_of_probed_code_says():
    result = distinguish(code("floored"), (0.0, 1.0), epsilon="1/2", samples=20_000)
    assert result.broken and not result.exact and result.error == Fraction(1, 10**6)
    assert 0.9 < result.epsilon_lower < 1.0987
    assert result.trials == result.other_trials == 20_000
    assert result.hits > result.other_hits and result.samples == 40_000


def test_code_that_is_proved_monotone_is_judged_by_its_exact_law():
    result = distinguish(code("rounded"), (0.0, 1.0), epsilon=1)
    assert result.exact and result.basis == "code" and result.monotone == "proved"
    assert "prove it monotone" in result.rests_on and result.error == 0
    assert distinguish(code("plain"), (0.0, 1.0), epsilon=1).broken


def test_snapping_is_not_followed_and_so_judged_by_samples():
    snapping = Code("lastbit.mechanisms.snapping:snapped", epsilon=1.0, bound=8.0)
    result = distinguish(snapping, (0.0, 1.0), epsilon="1/2", samples=4000)
    assert result.broken and not result.exact and result.monotone == "probed"


@pytest.mark.evidence
def test_right_claims_about_probed_code_are_refuted_no_oftener_than_promised():
    """30 audits with an error of .3: more than 27 refuted have a chance below 1e-12."""
    refuted = sum(
        distinguish(code("floored"), (0.0, 1.0), epsilon="1.0987", samples=200, error="0.3").broken
        for _ in range(30)
    )
    assert refuted <= 27


def test_an_output_beside_the_law_ends_the_audit():
    subject = code("floored")
    law = law_of(subject)
    assert law is not None
    laws = (law(0.0), law(1.0))
    object.__setattr__(subject, "function", lambda value, u: 7.0 if 0.3 < u < 0.4 else 1.0)
    with pytest.raises(NotMonotone, match="by samples"):
        counted(
            subject,
            (0.0, 1.0),
            laws,
            epsilon=None,
            delta=Fraction(0),
            error=Fraction(1, 9),
            runs=500,
        )


# ---------------------------------------------------------------- parts


@pytest.mark.parametrize("model", [FullPrecision(3, -3), Grid(3), Grid(3, first=1)])
def test_uniforms_are_drawn_as_the_model_says(model):
    """40,000 draws; 7 standard deviations have a chance below 2**-37."""
    drawn, n = Counter(_uniforms(model, 40_000)), 40_000
    for index in range(model.size):
        p = float(model.below(index + 1) - model.below(index))
        assert abs(drawn[model.point(index)] - n * p) < 7 * math.sqrt(n * p * (1 - p)) + 1
    assert sum(drawn[model.point(index)] for index in range(model.size)) == n


def test_the_event_is_one_that_can_be_counted():
    """Not the rarest one, whose ratio is the greatest: in a thousand runs it does not happen."""
    rare = Fraction(1, 10**9)
    one = {0: Fraction(3, 4) - rare, 1: Fraction(1, 4), 2: rare}
    two = {0: Fraction(1, 4), 1: Fraction(3, 4)}
    swapped, event = _most_telling([one, two], Fraction(0), 1000)
    assert (event == {0, 2} and not swapped) or (event == {1} and swapped)


# ---------------------------------------------------------------- words


def test_losses_say_whether_monotone_is_proved():
    assert "probed, not proved" not in str(exact_loss(code("rounded"), 0.0, 1.0))
    assert "proved from its steps" in str(exact_loss(code("rounded"), 0.0, 1.0))
    assert "probed, not proved" in str(exact_loss(code("floored"), 0.0, 1.0, signs=None))
    assert "proved from its steps" in str(refute(code("rounded"), 0.0, 1.0))
    assert "probed, not proved" in str(refute(code("floored"), 0.0, 1.0, signs=None))
