"""The files around the code: no addresses, a complete lock, and floors that hold."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
SET_UP_FILES = (
    "requirements.lock",
    "requirements-anchors.lock",
    "requirements-engines.lock",
    "requirements-serve.lock",
    "requirements-site.lock",
    "requirements-training.lock",
    "requirements-training-cpu.lock",
    "requirements-training-gpu.lock",
    "Makefile",
    ".ci/run",
    "pyproject.toml",
)
ADDRESS = re.compile(r"://|--(extra-)?index-url|--find-links|--trusted-host|git\+|^-[if]\b", re.M)
HOME_DIRECTORY = re.compile(r"/(root|home|Users)/\w")


def addresses(text: str) -> list[str]:
    """Where a package comes from is each machine's own setting, never the repository's."""
    return [match.group() for match in ADDRESS.finditer(text)]


def pins(lock: str) -> list[Requirement]:
    logical_lines = lock.replace("\\\n", " ").splitlines()
    return [
        Requirement(line.split("--hash")[0].strip())
        for line in logical_lines
        if line and not line.startswith("#")
    ]


def declared() -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    lists = (
        project["build-system"]["requires"],
        project["project"]["dependencies"],
        project["dependency-groups"]["dev"],
    )
    return [Requirement(text) for texts in lists for text in texts]


def unmet(requirements: list[Requirement], lock: str) -> list[str]:
    """Requirements that no pin of the lock satisfies."""
    versions: dict[str, list[str]] = {}
    for pin in pins(lock):
        version = str(pin.specifier).removeprefix("==")
        versions.setdefault(canonicalize_name(pin.name), []).append(version)
    return [
        str(requirement)
        for requirement in requirements
        if not (found := versions.get(canonicalize_name(requirement.name)))
        or not all(requirement.specifier.contains(version) for version in found)
    ]


@pytest.mark.parametrize("name", SET_UP_FILES)
def test_no_address_is_written_down(name):
    text = (ROOT / name).read_text("utf-8")
    assert addresses(text) == []
    assert not HOME_DIRECTORY.search(text)


@pytest.mark.parametrize(
    "line",
    [
        "click @ https" + "://example.invalid/click.whl",
        "--index-url mirror",
        "--extra-index-url mirror",
        "-i mirror",
        "-f wheels",
        "--find-links wheels",
        "click @ git+ssh",
    ],
)
def test_an_address_is_rejected(line):
    assert addresses(f"click==8.1.0\n{line}\n")


def test_the_lock_pins_and_hashes_everything():
    lock = (ROOT / "requirements.lock").read_text("utf-8")
    for pin in pins(lock):
        assert re.fullmatch(r"==[\w.]+", str(pin.specifier)), f"{pin} is not pinned"
    entries = [line for line in lock.splitlines() if "==" in line and not line.startswith(" ")]
    assert len(entries) == len(pins(lock)) > 0
    assert all(line.endswith("\\") for line in entries), "a pin without a hash"


def test_the_lock_satisfies_pyproject():
    assert unmet(declared(), (ROOT / "requirements.lock").read_text("utf-8")) == []


def test_a_stale_lock_is_rejected():
    requirements = [Requirement("click>=8.1"), Requirement("rich>=13")]
    stale = "click==8.0 \\\n    --hash=sha256:00\n"
    assert unmet(requirements, stale) == ["click>=8.1", "rich>=13"]
    assert unmet(requirements, "Click==8.1\nrich==13.1\n") == []


def test_dependencies_have_lower_bounds_only():
    for requirement in declared():
        assert re.fullmatch(r">=[\w.]+", str(requirement.specifier)), requirement


def test_the_version_is_said_once():
    import lastbit

    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert lastbit.__version__ == project["version"]
    assert f"## {project['version']}" in (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert f"\nversion: {project['version']}\n" in (ROOT / "CITATION.cff").read_text("utf-8")


@pytest.fixture
def suite(tmp_path):
    """A suite of its own under the settings of this one: a file with one ordinary test."""
    tests = tmp_path / "tests"
    tests.mkdir()
    for name in ("conftest.py", "evidence.py"):
        (tests / name).write_text((ROOT / "tests" / name).read_text("utf-8"), "utf-8")
    (tests / "test_one.py").write_text("def test_one(): pass\n", "utf-8")
    settings = '[tool.pytest.ini_options]\ntestpaths = ["tests"]\npythonpath = ["."]\n'
    (tmp_path / "pyproject.toml").write_text(settings + 'markers = ["evidence", "thinned"]\n')

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    return run


def test_a_shrunken_suite_is_rejected(suite):
    """The floor in tests/conftest.py, tried on a suite of one test."""
    whole = suite()
    assert whole.returncode != 0
    assert "only 1 tests were collected" in whole.stdout + whole.stderr
    part = suite("tests/test_one.py")
    assert part.returncode == 0, part.stdout


def test_what_is_marked_as_evidence_runs_when_it_is_asked_for(suite, tmp_path, monkeypatch):
    monkeypatch.delenv("LASTBIT_EVIDENCE", raising=False)
    file = tmp_path / "tests" / "test_one.py"
    file.write_text(
        "import pytest\n"
        "def test_scale(extent): assert len(extent.cases(range(100), one_in=50)) <= 4\n"
        "@pytest.mark.thinned(one_in=9)\n"
        "@pytest.mark.parametrize('n', range(5))\n"
        "def test_many(n): pass\n"
        "@pytest.mark.thinned(one_in=9)\n"
        "@pytest.mark.parametrize('n', range(12))\n"
        "def test_more(n): pass\n"
        "@pytest.mark.apart\n"
        "def test_long(extent): assert extent.generated(4, 400) == extent.number(4, 400)\n"
        "def test_drawn(extent): assert extent.generated(4, 400) in (4, 100)\n"
    )
    few, many = suite("tests/test_one.py"), suite("tests/test_one.py", "-m", "evidence")
    assert few.returncode == 0 and "7 passed" in few.stdout, few.stdout
    assert "2 failed, 14 passed" in many.stdout, many.stdout
    assert "test_scale[many]" in many.stdout and "test_drawn[many]" in many.stdout
    monkeypatch.setenv("LASTBIT_EVIDENCE", "1")
    both = suite("tests/test_one.py")
    assert "1 failed, 19 passed, 3 deselected" in both.stdout, both.stdout


def test_a_file_that_cannot_be_imported_stops_the_run(suite, tmp_path):
    """Not even with these options of pytest is it left out: only src may lack an extra's driver."""
    options = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]
    own = [one for one in options["ini_options"]["addopts"] if "strict" not in one]
    body = "\ndef test_nothing(): assert False\n"
    for place, line in enumerate(
        ("import nothing_here", "from os import nothing", "raise ImportError(name='psycopg')")
    ):
        (tmp_path / "tests" / f"test_broken_{place}.py").write_text(line + body)
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "driver.py").write_text("raise ModuleNotFoundError(name='pyspark.sql')")
    (tmp_path / "src" / "other.py").write_text("raise ModuleNotFoundError(name='nothing')")
    found = suite("tests", "src", *own, "-rs")
    assert found.returncode == 2 and "4 errors during collection" in found.stdout, found.stdout
    assert "src/driver.py: pyspark.sql is not installed" in found.stdout
    mutant = suite("tests", "src", *own, "--doctest-ignore-import-errors")
    assert mutant.returncode == 0 and "1 passed, 5 skipped" in mutant.stdout, mutant.stdout


_HALF_READ = re.compile(
    r"\bduckdb\.(?:execute|sql|query)\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)\.fetch(?:one|many)\("
)


def test_no_test_leaves_a_result_half_read_on_the_connection_that_all_share():
    """duckdb's own connection refuses other work meanwhile: 55 tests failed that came after one."""
    for rejected in (
        "duckdb.execute('SELECT 1').fetchone()",
        "duckdb.sql(f'SELECT {f(x)}', (list(a),)).fetchmany(3)",
    ):
        assert _HALF_READ.search(rejected)
    assert not _HALF_READ.search("duckdb.connect().execute('SELECT 1').fetchone()")
    files = [*(ROOT / "tests").rglob("*.py"), *(ROOT / "bench").glob("*.py")]
    own = Path(__file__).resolve()
    assert not [
        file for file in files if file != own and _HALF_READ.search(file.read_text("utf-8"))
    ]
