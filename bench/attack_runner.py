"""Runs every attack on every ready-made target of one library; prints one JSON object a line.

    python bench/attack_runner.py opendp

Runs in lastbit's own environment for numpy and lastbit, and in `bench/.venv` for the others.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from importlib.metadata import PackageNotFoundError, version

from lastbit.audit import ATTACKS, Attack, SumTarget, Target, run, targets

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
SKIPPED = {("jax-privacy", "fork"): "JAX hangs after a fork"}


def samples_for(attack: Attack, target: Target | SumTarget) -> int:
    """As many as a few seconds allow, and no more than the attack needs."""
    if isinstance(target, SumTarget):
        return SUM_SAMPLES.get(attack.name, 1000)
    most = VALUE_SAMPLES.get(attack.name, USUAL)
    if attack.name == "fork":
        return most
    target.draw(0, 100)  # the first draw may compile or load something
    start = time.perf_counter()
    target.draw(0, 100)
    affordable = int(SECONDS / ((time.perf_counter() - start) / 100))
    return max(400, min(most, affordable))


def tried(attack: Attack, target: Target | SumTarget) -> dict[str, object]:
    """A verdict as plain values, or why there is none."""
    try:
        verdict = run(attack.name, target, samples=samples_for(attack, target)).to_dict()
    except Exception as failure:  # whatever a peer does must not stop the others
        return {"target": target.name, "reason": type(failure).__name__}
    # a rational of forty digits is no help
    verdict["claimed"] = None if verdict["claimed"] is None else float(target.claimed)
    return verdict


def main() -> None:
    warnings.simplefilter("ignore")
    library = sys.argv[1]
    try:
        told = version(PACKAGES[library])
    except PackageNotFoundError:
        told = ""
    print(json.dumps({"library": library, "version": told}), flush=True)
    for target in targets(library):
        for attack in ATTACKS.values():
            if attack.suits(target):
                row = {"attack": attack.name, "library": library}
                reason = SKIPPED.get((library, attack.name))
                row |= (
                    {"target": target.name, "reason": reason} if reason else tried(attack, target)
                )
                print(json.dumps(row, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main()
