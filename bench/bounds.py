"""How far apart the two bounds of an epsilon are, and how far above them a certificate is.

    python bench/bounds.py           measure, save the figures and write them into the page
    python bench/bounds.py --page    only writes them into the page
    python bench/bounds.py --print   prints what the page must hold

The page, docs/limits/accounting.md, holds what was measured between two markers; a test compares
them.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

import report

import lastbit as lb
from lastbit.errors import InvalidParameter
from lastbit.privacy import (
    ADD_REMOVE,
    ApproxLoss,
    BoundedRangeLoss,
    DiscreteGaussianLoss,
    DiscreteGaussianVectorLoss,
    DiscreteLaplaceLoss,
    FiniteLoss,
    GaussianLoss,
    LaplaceLoss,
    Profile,
    RandomizedResponseLoss,
    SubsampledGaussianLoss,
    SubsampledLaplaceLoss,
    ThresholdLoss,
)
from lastbit.verify import composition_certificate

SAVED = report.RESULTS / "bounds.json"
PAGE = report.ROOT / "docs" / "limits" / "accounting.md"
BEGIN, END = "<!-- bounds: written by bench/bounds.py -->", "<!-- end of bounds -->"
DELTAS = ("1e-12", "1e-6", "1e-2", "9/10")
NOTHING = 1e-12  # an epsilon that is next to none has no relative width
LAW = [("1/2", "1/3"), ("1/4", "1/3"), ("1/4", "1/3")]

SINGLE = [
    GaussianLoss(1),
    DiscreteGaussianLoss(4, 3),
    DiscreteGaussianLoss("1/50", 2),
    DiscreteGaussianVectorLoss(9, 5),
    LaplaceLoss(2),
    DiscreteLaplaceLoss("1/2", 5000),
    RandomizedResponseLoss(2, 5),
    ApproxLoss(1, "1e-7"),
    BoundedRangeLoss(3),
    FiniteLoss(LAW),
    ThresholdLoss(3, 40, 5),
]


def cases() -> Iterator[tuple[str, Any]]:
    """Compositions, each with the kind that it is an example of."""
    for loss in SINGLE:
        yield "one release of any kind", loss.profile
    for n in (10, 1000, 10**5):
        yield "Gaussian noise alone", n * GaussianLoss(Fraction(4, n))
        yield "losses on a lattice", n * ApproxLoss("1/10")
        yield "losses on a lattice", n * RandomizedResponseLoss("1/2", 4)
        yield "losses on a lattice", n * DiscreteLaplaceLoss(10, 3)
        yield "losses on a lattice", n * DiscreteGaussianLoss(4)
    for n in (3, 30, 300):
        yield "up to 300 continuous Laplace releases", n * LaplaceLoss("1/10")
    for n in (600, 2000, 10**4):
        yield "more continuous Laplace releases", n * LaplaceLoss("1/10")
    for n in (3, 30, 300):
        yield "equal releases of bounded range", n * BoundedRangeLoss("1/10")
        yield "equal releases of bounded range", n * BoundedRangeLoss(1)
    for n in (1000, 10**5):
        yield "1,000 or more of bounded range", n * BoundedRangeLoss("1/10")
    for n in (5, 50):
        mixed = n * BoundedRangeLoss("1/10") + n * BoundedRangeLoss("1/4")
        yield "bounded range of several ε, or beside other noise", mixed
        yield "bounded range of several ε, or beside other noise", mixed + GaussianLoss("1/10")
    yield "several releases with a threshold", 10 * ThresholdLoss(10, 200, 3)
    yield "several releases with a threshold", 3 * ThresholdLoss(5, 30, 2)
    for rate, mu_squared, n in (("1/100", 1, 10**4), ("1/50", "1/2", 1000)):
        training = n * SubsampledGaussianLoss(rate, mu_squared)
        yield "training, noise multiplier 1 or more", training
    yield "training, noise multiplier ½", 1000 * SubsampledGaussianLoss("1/100", 4)
    yield "two releases about samples", 2 * SubsampledGaussianLoss("1/10", 1)
    yield "three to eight releases about samples", 3 * SubsampledGaussianLoss("1/50", 1)
    yield "two releases about samples", 2 * SubsampledLaplaceLoss("1/5", 1)
    beside = 10 * LaplaceLoss("1/10", neighbours=ADD_REMOVE)
    yield "samples beside Laplace noise", 100 * SubsampledGaussianLoss("1/20", 1) + beside


def measured(kind: str, profile: Profile, delta: str) -> dict[str, Any]:
    """Both bounds, and the epsilon that a certificate proves."""
    started = time.perf_counter()
    low, high = profile.epsilon(delta)
    seconds = time.perf_counter() - started
    proved = None
    if NOTHING < high < math.inf:
        try:
            claim = composition_certificate(profile, delta=delta)["claim"]
            proved = float(Fraction(claim["epsilon"]))
        except InvalidParameter:  # delta is below what is told
            proved = None
    return {
        "kind": kind,
        "case": repr(profile),
        "delta": delta,
        "lower": low,
        "upper": high if math.isfinite(high) else None,
        "certified": proved,
        "seconds": round(seconds, 3),
    }


def measure() -> dict[str, Any]:
    """All cases at all deltas."""
    rows = []
    for kind, profile in cases():
        for delta in DELTAS:
            rows.append(measured(kind, profile, delta))
            print(rows[-1], flush=True)
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": report.machine(),
        "commit": report.commit(),
        "version": lb.__version__,
        "rows": rows,
    }


def block(saved: dict[str, Any]) -> str:
    """The widest of every kind, as the page shows them."""
    lines = [
        BEGIN,
        "",
        "| releases | the two bounds differ by at most | a certificate proves at most |",
        "|---|---|---|",
    ]
    kinds = list(dict.fromkeys(row["kind"] for row in saved["rows"]))
    for kind in kinds:
        rows = [row for row in saved["rows"] if row["kind"] == kind and row["upper"]]
        rows = [row for row in rows if row["upper"] > NOTHING]
        width = max((row["upper"] - row["lower"]) / row["upper"] for row in rows)
        above = max(
            (row["certified"] / row["upper"] for row in rows if row["certified"]), default=0
        )
        lines.append(f"| {kind} | {_share(width)} | {above:.3f} times the tight ε |")
    count = len(saved["rows"])
    lines += [
        "",
        f"Seen in {count} measurements, δ from 1e-12 to 0.9, on {saved['date'][:10]}.",
        END,
    ]
    return "\n".join(lines)


def _share(width: float) -> str:
    """A relative width, rounded up to one digit."""
    if width < 1e-13:
        return "1e-13"
    power = math.floor(math.log10(width))
    digit = math.ceil(width / 10.0**power)
    digit, power = (1, power + 1) if digit == 10 else (digit, power)
    if power >= -3:
        return f"{digit * 10.0 ** (power + 2):g} %"
    return f"{digit}e{power}"


def write_page(saved: dict[str, Any]) -> None:
    """What the page holds between its markers, replaced."""
    before, rest = PAGE.read_text("utf-8").split(BEGIN)
    _, after = rest.split(END)
    PAGE.write_text(before + block(saved) + after, "utf-8")


def main() -> None:
    """Measure, or write what is saved."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--print", action="store_true")
    chosen = parser.parse_args()
    if not (chosen.page or chosen.print):
        SAVED.write_text(json.dumps(measure(), indent=1, ensure_ascii=False) + "\n", "utf-8")
    saved = json.loads(SAVED.read_text("utf-8"))
    if chosen.print:
        print(block(saved))
    else:
        write_page(saved)


if __name__ == "__main__":
    main()
