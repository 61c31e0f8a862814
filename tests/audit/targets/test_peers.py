"""Other libraries, where they are installed: `make attacks` runs the same with all of them."""

import json
import os
import subprocess
import warnings
from pathlib import Path

import numpy as np
import pytest

from lastbit.audit.attacks.registry import ATTACKS, run
from lastbit.audit.targets.target import SumTarget
from lastbit.errors import InvalidParameter

bench = pytest.importorskip("bench.attack_targets", reason="not part of a source distribution")
LIBRARIES, targets = bench.LIBRARIES, bench.targets

PEERS = {
    "diffprivlib": "diffprivlib",
    "opendp": "opendp",
    "pydp": "pydp",
    "tumult": "tmlt.core.random.laplace",
}
BITS = ("preimage", "precision", "polar-pairs", "low-bits")
ROOT = Path(__file__).parents[3]
SAVED = ROOT / "bench" / "results" / "black_box.json"
ENOUGH = 20_000
needs_bench = pytest.mark.skipif(
    not SAVED.is_file(), reason="the benchmarks are not part of a source distribution"
)


def broken(library, names, samples):
    found = set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for target in targets(library):
            for name in names:
                if ATTACKS[name].suits(target) and run(name, target, samples=samples).broken:
                    found.add((target.name, name))
    return found


def test_a_missing_library_is_named():
    with pytest.raises(InvalidParameter, match="pip install no-such"):
        bench.loaded("no_such", package="no-such")


def test_a_gradient_is_read_off_a_weight():
    weight = np.float32(-bench.LEARNING_RATE) * np.float32(0.75 / bench.BATCH)
    assert bench.gradient_of(float(weight)) == 0.75


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


# ---------------------------------------------------------------- the black-box auditor on all


def saved(library=None):
    rows = json.loads(SAVED.read_text("utf-8"))["rows"]
    return [row for row in rows if library in (None, row["library"]) and "reason" not in row]


@needs_bench
@pytest.mark.evidence
@pytest.mark.parametrize(
    "library", [name for name in LIBRARIES if name not in ("lastbit", "numpy")]
)
def test_the_black_box_refutes_what_the_page_says(library):
    """In the library's own environment, if `make attacks` has made one; nothing is installed."""
    environment = pytest.importorskip("bench.peer_environment")
    python = environment.python_of(environment.LIBRARIES[library])
    if not (python.parent.parent / f"attacks-{library}.installed").is_file():
        pytest.skip(f"make attacks ARGS='--only {library}' installs it")
    run = subprocess.run(
        [python, ROOT / "bench" / "attack_runner.py", library, "black-box", str(ENOUGH)],
        check=True,
        capture_output=True,
        encoding="utf-8",
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
    )
    found = [json.loads(line) for line in run.stdout.splitlines()[1:]]
    assert {row["target"]: row["broken"] for row in found} == {
        row["target"]: row["broken"] for row in saved(library)
    }


@needs_bench
def test_what_is_saved_is_what_was_claimed():
    """No row says more than its bounds, none of ours is refuted, and no library is left out."""
    rows = saved()
    assert {row["library"] for row in rows} == set(LIBRARIES)
    for row in rows:
        above = row["epsilon_lower"] > row["claimed"] or row["delta_lower"] > row["delta"]
        assert row["broken"] == above and not (row["broken"] and row["library"] == "lastbit")
    for library in ("lastbit", "numpy"):
        names = {target.name for target in targets(library)}
        assert {row["target"] for row in saved(library)} <= names
