"""What lies beyond global sensitivity: ideal noise rounded to a grid, medians, places.

The peer is Tumult Core, whose Laplace noise is also the ideal one, correctly rounded, by refining
an interval until the result is certain. Only its sampler is asked for: it is installed without
Spark, and beside a newer numpy than its own pins would allow.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from measure import Measurement, Step, Target, least, repeated
from peer_environment import FOLDER, LOG, LONGEST_RUN_SECONDS, PYTHON

from lastbit.geo.geo import Geo
from lastbit.laws.ideal import (
    Gumbel,
    Ideal,
    IdealCauchy,
    IdealGaussian,
    IdealLaplace,
    Logistic,
    PolynomialTail,
    StudentT,
)
from lastbit.mechanisms.planar import PlanarLaplace
from lastbit.mechanisms.polar import PolarLaplace
from lastbit.mechanisms.smooth_noise import private_median
from lastbit.privacy.neighbours import ADD_REMOVE
from lastbit.sampling.rounded import rounded
from lastbit.sensitivity.smooth import smooth_sensitivity

TITLE = "Beyond global sensitivity: rounded noise, medians, places"
SIZE = 10**6
PLACES = 10**5
CALLS = 500
SECOND = 1e9

# anchors: Tumult's interval refining, 13 to 70 µs a draw; to be beaten 20 times
TUMULT_NS = 13_000
FASTER = 20

PEER = "Tumult"
# `__init__` of tmlt.core imports pandas and typeguard; its own pins hold numpy below 2
PEER_NEEDS = (
    "numpy==2.4.6",
    "pandas==2.3.3",
    "python-flint==0.9.0",
    "randomgen==2.3.0",
    "typeguard==4.4.4",
)
PEER_PIN = "tmlt.core==0.20.0"
PEER_PROGRAM = """
import json, time
from importlib.metadata import version
from tmlt.core.random.laplace import laplace

def elapsed(scale, calls=2000):
    start = time.perf_counter_ns()
    for _ in range(calls):
        laplace(0.0, scale)
    return (time.perf_counter_ns() - start) / calls

times = {power: min(elapsed(2.0**power) for _ in range(8)) for power in (10, 20)}
print(json.dumps({"version": version("tmlt.core"), "times": times}))
"""

LAWS: dict[str, Ideal] = {
    "Laplace": IdealLaplace(),
    "Gaussian": IdealGaussian(),
    "Cauchy": IdealCauchy(),
    "Student t, 3 degrees": StudentT(3),
    "polynomial tail, 4": PolynomialTail(4),
    "Gumbel": Gumbel(),
    "logistic": Logistic(),
}


def steps(*, peers: bool) -> list[Step]:
    """Everything this benchmark measures, in the order of the table."""
    own = [
        Step(title=f"rounded: {name}", run=partial(vectors, name, law))
        for name, law in LAWS.items()
    ]
    own += [
        Step(title="rounded: one call", run=scalars),
        Step(title="medians of 10^6 values", run=medians),
        Step(title="points of the plane", run=planar),
        Step(title="places on the Earth", run=geo),
    ]
    if not peers:
        return own
    title = PEER if _stamp_holds() else f"{PEER}: installing it into bench/.venv"
    return [*own, Step(title=title, run=compared)]


def vectors(name: str, law: Ideal) -> list[Measurement]:
    """Draws of one law, after the first call has made its table."""
    return [
        Measurement(
            section="rounded, 10^6 draws, per draw",
            what=f"{name}, scale/grid 2^{power}",
            ours=least(partial(rounded, law, scale=2**power, size=SIZE), repeats=3)[0] / SIZE,
            target=Target(limit=TUMULT_NS / FASTER),
        )
        for power in (10, 20)
    ]


def scalars() -> list[Measurement]:
    """One draw, by the exact path."""
    return [
        Measurement(
            section="rounded, one call",
            what=f"{name}, scale/grid 2^10",
            ours=least(repeated(partial(rounded, law, scale=2**10), CALLS), repeats=3)[0] / CALLS,
        )
        for name, law in LAWS.items()
    ]


def medians() -> list[Measurement]:
    """From an unsorted array to the release, and without the noise."""
    data = np.random.default_rng(0).exponential(50, SIZE)
    bounds: Any = {"lower": 0, "upper": 500}
    work: dict[str, Callable[[], object]] = {
        "private_median": partial(private_median, data, epsilon=1, **bounds),
        "private_median, small epsilon": partial(private_median, data, epsilon="0.01", **bounds),
        "private_median, add-remove": partial(
            private_median, data, epsilon=1, neighbours=ADD_REMOVE, **bounds
        ),
        "smooth_sensitivity": partial(smooth_sensitivity, "median", data, beta="1/2", **bounds),
    }
    return [
        Measurement(
            section="10^6 values, one release",
            what=what,
            ours=least(call, repeats=3)[0],
            target=Target(limit=2 * SECOND),
        )
        for what, call in work.items()
    ]


def planar() -> list[Measurement]:
    """Points within 1 km, private within 200 m."""
    points = np.random.default_rng(0).uniform(-1000, 1000, (SIZE, 2))
    lattice = PlanarLaplace(epsilon=1, within=200)
    polar = PolarLaplace(epsilon=1, within=200, cell=4, half_width=2000, inputs=1000)
    return [
        Measurement(
            section="10^6 points of the plane",
            what=what,
            ours=least(partial(mechanism.release, points), repeats=3)[0],
            target=Target(limit=2 * SECOND),
        )
        for what, mechanism in (("lattice, exact", lattice), ("polar, floats", polar))
    ]


def geo() -> list[Measurement]:
    """Places of a city, private within 200 m."""
    city = Geo(epsilon="ln(4)/200m", region=(52.3, 13.0, 52.7, 13.8))
    places = np.random.default_rng(0).uniform((52.3, 13.0), (52.7, 13.8), (PLACES, 2))
    one = repeated(partial(city.release, (52.5163, 13.3777)), CALLS)
    return [
        Measurement(
            section="places on the Earth",
            what="10^5 places",
            ours=least(partial(city.release, places), repeats=3)[0],
        ),
        Measurement(
            section="places on the Earth", what="one place", ours=least(one, repeats=3)[0] / CALLS
        ),
    ]


# ---------------------------------------------------------------- Tumult


def compared() -> list[Measurement]:
    """Laplace noise of the same scale, in the same run; a vector of ours, and one call of ours.

    It draws one number at a time. Its result is rounded to a float, ours to a grid.
    """
    result = _tumult()
    if "reason" in result:
        return [Measurement(section=PEER, what=f"not measured: {result['reason']}", peer=True)]
    rows = []
    for power, peer_time in result["times"].items():
        draw = partial(rounded, "laplace", scale=2 ** int(power))
        row = partial(
            Measurement,
            section=f"Tumult Core {result['version']}",
            reference=peer_time,
            reference_name=PEER,
            peer=True,
        )
        vector = least(partial(draw, size=SIZE), repeats=3)[0] / SIZE
        one = least(repeated(draw, CALLS), repeats=3)[0] / CALLS
        target = Target(limit=1 / FASTER, of="ratio")
        rows += [
            row(what=f"Laplace, scale 2^{power}, 10^6 draws", ours=vector, target=target),
            row(what=f"Laplace, scale 2^{power}, one call", ours=one),
        ]
    return rows


def _tumult() -> dict:
    """Its version and times, or the reason why there are none."""
    reason = _installed()
    if reason:
        return {"reason": reason}
    try:
        run = subprocess.run(
            [PYTHON, "-c", PEER_PROGRAM],
            capture_output=True,
            text=True,
            check=True,
            timeout=LONGEST_RUN_SECONDS,
        )
        return json.loads(run.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as failure:
        return {"reason": f"its sampler did not run ({type(failure).__name__})"}


def _stamp_holds() -> bool:
    stamp = FOLDER / f"{PEER}.installed"
    return stamp.is_file() and stamp.read_text("utf-8") == "\n".join((PEER_PIN, *PEER_NEEDS))


def _installed() -> str:
    """Install it unless it is there; the reason if it cannot be."""
    if _stamp_holds():
        return ""
    if not PYTHON.exists():
        return "there is no bench/.venv yet: run the benchmark `sampling` first"
    pip = [str(PYTHON), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    for pins in (PEER_NEEDS, ("--no-deps", PEER_PIN)):
        run = subprocess.run([*pip, *pins], capture_output=True, text=True, check=False)
        with LOG.open("a", encoding="utf-8") as log:
            log.write(run.stderr)
        if run.returncode:
            return f"pip could not install {pins[-1]}; see bench/.venv/{LOG.name}"
    stamp = FOLDER / f"{PEER}.installed"
    stamp.write_text("\n".join((PEER_PIN, *PEER_NEEDS)), "utf-8")
    return ""
