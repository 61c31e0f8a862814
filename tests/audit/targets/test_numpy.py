"""The figures of today's numpy: what is broken, by which attack."""

import pytest

from lastbit.audit.attacks.registry import ATTACKS, run
from lastbit.audit.targets.libraries import targets
from lastbit.errors import InvalidParameter

BROKEN = {
    "numpy Laplace, scale 1": {"preimage", "precision"},
    "numpy Laplace, scale 10": {"preimage", "precision"},
    "numpy Gaussian": {"precision"},
    "numpy legacy Gaussian": {"precision", "polar-pairs"},
    "fixed point by hand": {"low-bits"},
    "numpy sum": {"narrow-sum", "reordering", "nan"},
    "numpy int32 sum": {"overflow"},
    "numpy int64 sum": {"overflow"},
}


@pytest.mark.thinned(one_in=8)
@pytest.mark.parametrize("target", targets("numpy"), ids=lambda target: target.name)
def test_what_breaks(target):
    """The chance that a right answer looks wrong here is below 1e-11; see each attack's power."""
    broken = {
        name
        for name, attack in ATTACKS.items()
        if name not in {"fork", "timing"}
        and attack.suits(target)
        and run(name, target, samples=20_000 if not attack.sums else 400, error="1e-12").broken
    }
    assert broken == BROKEN[target.name]


def test_an_unknown_library_is_refused():
    with pytest.raises(InvalidParameter, match="pass one of lastbit, numpy"):
        targets("excel")
