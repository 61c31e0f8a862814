"""Other libraries, where they are installed: `make attacks` runs the same with all of them."""

import warnings

import pytest

from lastbit.audit.attacks.registry import ATTACKS, run
from lastbit.audit.targets.libraries import targets
from lastbit.audit.targets.target import SumTarget

PEERS = {
    "diffprivlib": "diffprivlib",
    "opendp": "opendp",
    "pydp": "pydp",
    "tumult": "tmlt.core.random.laplace",
}
BITS = ("preimage", "precision", "polar-pairs", "low-bits")


def broken(library, names, samples):
    found = set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for target in targets(library):
            for name in names:
                if ATTACKS[name].suits(target) and run(name, target, samples=samples).broken:
                    found.add((target.name, name))
    return found


def test_diffprivlib():
    pytest.importorskip(PEERS["diffprivlib"])
    found = broken("diffprivlib", ("precision",), 10_000)
    names = {name.removeprefix("diffprivlib ") for name, _ in found}
    assert names >= {"Laplace", "Gaussian", "GaussianAnalytic", "Staircase", "LaplaceTruncated"}
    assert not names & {"GaussianDiscrete", "Geometric", "Snapping"}
    sums = broken("diffprivlib", ("narrow-sum", "nan", "overflow"), 200)
    assert ("diffprivlib sum", "narrow-sum") in sums and ("diffprivlib sum", "nan") in sums
    assert ("diffprivlib int32 sum", "overflow") in sums


@pytest.mark.parametrize("library", ["opendp", "pydp", "tumult"])
def test_these_hold(library):
    pytest.importorskip(PEERS[library])
    assert broken(library, BITS, 10_000) == set()


def test_the_sums_of_opendp_hold():
    pytest.importorskip(PEERS["opendp"])
    assert broken("opendp", ("narrow-sum", "nan", "overflow"), 100) == set()
    assert any(isinstance(target, SumTarget) for target in targets("opendp"))
