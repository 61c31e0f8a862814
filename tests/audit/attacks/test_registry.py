import numpy as np
import pytest

from lastbit.audit import attacks
from lastbit.audit.attacks.registry import ATTACKS, attack_named, run
from lastbit.audit.targets.target import SumTarget, Target
from lastbit.errors import InvalidParameter


def test_every_attack_is_listed_and_described():
    for name, attack in ATTACKS.items():
        assert name == attack.name and attack.source and attack.looks_for
        text = attack.attack.__doc__ or ""
        for section in ("Law ", "Theorem ", "Breaks ", "Resists ", "Source ", "Checked "):
            assert section in text, f"{name} does not say: {section}"
        assert attack.attack.__name__ in attacks.__all__
        assert attack.looks_for in (attacks.__doc__ or "")


def test_an_unknown_attack_is_refused():
    with pytest.raises(InvalidParameter, match="preimage"):
        attack_named("brute-force")


def test_only_suitable_targets():
    value = Target(name="bare", release=lambda v, n: [v] * n, claimed=1)
    total = SumTarget(name="sum", release=lambda d, b, n: np.zeros(n), claimed=1)
    whole = SumTarget(name="sum", release=lambda d, b, n: np.zeros(n), claimed=1, dtype="int64")
    suited = {name for name, attack in ATTACKS.items() if attack.suits(value)}
    assert suited == {"precision", "threshold", "fork", "timing"}
    assert {n for n, a in ATTACKS.items() if a.suits(total)} == {"narrow-sum", "reordering", "nan"}
    assert {n for n, a in ATTACKS.items() if a.suits(whole)} == {"overflow"}
    with pytest.raises(InvalidParameter, match="SumTarget of float64"):
        run("nan", value)
    with pytest.raises(InvalidParameter, match="scale"):
        run("preimage", value)


def test_options_reach_the_attack():
    value = Target(name="bare", release=lambda v, n: [v] * n, claimed=1)
    verdict = run("threshold", value, samples=200, error="1e-3")
    assert verdict.samples == 200 and str(verdict.error) == "1/1000"
