"""Runs every attack on every ready-made target of one library; prints one JSON object a line.

    python bench/attack_runner.py opendp
    python bench/attack_runner.py opendp black-box        the black-box auditor instead
    python bench/attack_runner.py opendp black-box 5000   with up to this many tests of each input

Runs in lastbit's own environment for numpy and lastbit, and in `bench/.venv` for the others.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from attack_targets import targets

from lastbit.audit import (
    ATTACKS,
    Attack,
    SumTarget,
    Target,
    distinguish_by_sampling,
    run,
)

PACKAGES = {
    "lastbit": "lastbit",
    "numpy": "numpy",
    "diffprivlib": "diffprivlib",
    "opendp": "opendp",
    "pydp": "python-dp",
    "tumult": "tmlt.core",
    "opacus": "opacus",
    "jax-privacy": "jax-privacy",
    "tensorflow-privacy": "tensorflow-privacy",
    "pipelinedp": "pipeline-dp",
    "smartnoise": "smartnoise-sql",
}
SECONDS = 5.0  # about as long as one attack may draw
SUM_SAMPLES = {"narrow-sum": 300, "reordering": 300}  # of a million records each
VALUE_SAMPLES = {"precision": 40_000, "threshold": 100_000, "fork": 200, "timing": 10_000}
USUAL = 10_000
TESTS = 50_000  # of each input, by the black-box auditor; fewer of what is slow
TEST_SECONDS = 3.0  # of computing, about, for all the tests of one input
# of ours only what has a counterpart elsewhere; tests/audit/targets/test_own.py has them all
AUDITED_OF_OURS = ("lastbit Laplace", "lastbit Gaussian")
SKIPPED = {("jax-privacy", "fork"): "JAX hangs after a fork"}


def samples_for(attack: Attack, target: Target | SumTarget) -> int:
    """As many as a few seconds allow, and no more than the attack needs."""
    if isinstance(target, SumTarget):
        return SUM_SAMPLES.get(attack.name, 1000)
    most = VALUE_SAMPLES.get(attack.name, USUAL)
    if attack.name == "fork":
        return most
    return affordable(target, most, SECONDS)


def affordable(target: Target, most: int, seconds: float) -> int:
    """How many releases take about this long to compute, but no more than `most`."""
    target.draw(0, 100)  # the first draw may compile or load something
    start = time.process_time()
    target.draw(0, 100)
    each = max(time.process_time() - start, 1e-9) / 100
    return max(400, min(most, int(seconds / each)))


def tried(attack: Attack, target: Target | SumTarget) -> dict[str, object]:
    """A verdict as plain values, or why there is none."""
    try:
        verdict = run(attack.name, target, samples=samples_for(attack, target)).to_dict()
    except Exception as failure:  # whatever a peer does must not stop the others
        return {"target": target.name, "reason": type(failure).__name__}
    # a rational of forty digits is no help
    verdict["claimed"] = None if verdict["claimed"] is None else float(target.claimed)
    return verdict


def attacked(library: str) -> Iterator[dict[str, Any]]:
    """Every attack on every target that it suits."""
    for target in targets(library):
        for attack in ATTACKS.values():
            if attack.suits(target):
                reason = SKIPPED.get((library, attack.name))
                row = {"target": target.name, "reason": reason} if reason else tried(attack, target)
                yield {"attack": attack.name} | row


def audited(library: str, samples: int = TESTS) -> Iterator[dict[str, Any]]:
    """What the black-box auditor certifies, told the two inputs and the claim and nothing else.

    In one process: some libraries hang after a fork, and the generators of others repeat
    themselves there, which is for the attack on forks to tell.
    """
    for target in targets(library):
        if isinstance(target, SumTarget) or (
            library == "lastbit" and not target.name.startswith(AUDITED_OF_OURS)
        ):
            continue
        try:
            found = distinguish_by_sampling(
                target.release,
                [target.values],
                epsilon=target.claimed,
                delta=target.delta,
                samples=affordable(target, samples, TEST_SECONDS),
                processes=1,
            ).to_dict()
        except Exception as failure:  # as above
            yield {"target": target.name, "reason": type(failure).__name__}
            continue
        claim = {"claimed": float(target.claimed), "delta": float(target.delta)}
        kept = ("epsilon_lower", "delta_lower", "broken", "event", "samples", "seconds", "error")
        counts = ("hits", "trials", "other_hits", "other_trials", "estimate")
        yield {"target": target.name, **claim, **{name: found[name] for name in (*kept, *counts)}}


def main() -> None:
    warnings.simplefilter("ignore")
    library, *how = sys.argv[1:]
    try:
        told = version(PACKAGES[library])
    except PackageNotFoundError:
        told = ""
    print(json.dumps({"library": library, "version": told}), flush=True)
    for row in audited(library, *map(int, how[1:])) if how else attacked(library):
        print(json.dumps({"library": library} | row, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main()
