"""The contracts between rooms in pyproject.toml hold, and each breaks when it should."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BROKEN_BY = {
    "Lower rooms know nothing of higher ones": ("exact/ball.py", "import lastbit.sampling.bits"),
    "The checker imports nothing of lastbit": ("checker/numbers.py", "import lastbit.exact"),
    "No prover imports the checker": ("mechanisms/laplace.py", "import lastbit.checker"),
    "What charges a question needs neither stewards nor auditors nor a server": (
        "ledger/chain.py",
        "import lastbit.ledger.deciding",
    ),
    "Filters know neither guarantees nor losses": (
        "privacy/neighbours.py",
        "import lastbit.privacy.convert",
    ),
    "Sealed integers stay in the kernel": (
        "release/paying.py",
        "from lastbit.kernel.sealed import Aggregates",
    ),
    "Entropy has one door: lastbit.sampling.bits": ("exact/ball.py", "import secrets"),
    "No pseudo-random generator anywhere": ("sampling/bits.py", "import random"),
    "The predictable source of bits is for tests only": (
        "sampling/bits.py",
        "from lastbit.sampling import deterministic",
    ),
}


@pytest.fixture
def project(tmp_path):
    """A copy of the project that a test may spoil."""
    shutil.copytree(
        ROOT / "src" / "lastbit",
        tmp_path / "lastbit",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def verdicts(project: Path) -> dict[str, bool]:
    """Contract by contract, whether it is kept in the copy."""
    finished = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache", "--no-logo"],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = finished.stdout.splitlines()
    kept = {name: any(line.startswith(f"{name} KEPT") for line in lines) for name in BROKEN_BY}
    assert all(kept.values()) == (finished.returncode == 0), finished.stdout + finished.stderr
    return kept


def test_every_contract_is_kept(project):
    assert verdicts(project) == dict.fromkeys(BROKEN_BY, True)


@pytest.mark.thinned(one_in=6)
@pytest.mark.parametrize("contract", BROKEN_BY)
def test_contract_is_broken_by(contract, project):
    path, statement = BROKEN_BY[contract]
    with (project / "lastbit" / path).open("a", encoding="utf-8") as file:
        file.write(f"\n{statement}\n")
    assert not verdicts(project)[contract]


def test_a_room_without_a_place_is_rejected(project):
    (project / "lastbit" / "attic.py").write_text('"""No place."""\n', "utf-8")
    assert not verdicts(project)["Lower rooms know nothing of higher ones"]
