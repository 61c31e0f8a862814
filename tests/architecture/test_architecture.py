"""Every source file passes every check, and every check rejects what it exists for."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path, PurePosixPath

import pytest

from tests.architecture import checks
from tests.architecture.checks import CHECKS, Module, modules_below

SRC = Path(__file__).parents[2] / "src" / "lastbit"
DOCSTRING = '"""' + "A room.\n" * 12 + '"""\n'


def findings(check, path: str, source: str) -> list[str]:
    return list(check(Module(path=PurePosixPath(path), source=source)))


def test_there_are_sources_to_check():
    assert {"errors/asking.py", "sampling/bits.py", "exact/__init__.py"} <= {
        str(module.path) for module in modules_below(SRC)
    }


@pytest.fixture(scope="module")
def found():
    """What each check finds in all sources, each of which is parsed once."""
    lines: dict[str, list[str]] = {check.__name__: [] for check in CHECKS}
    for module in modules_below(SRC):
        for check in CHECKS:
            lines[check.__name__] += [f"{module.path}: {line}" for line in check(module)]
    return lines


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_source_passes(check, found):
    lines = found[check.__name__]
    assert not lines, f"{check.__doc__}\n  " + "\n  ".join(lines)


REJECTED = [
    (checks.entropy_outside_its_door, "exact/ball.py", "import os\nseed = os.urandom(8)"),
    (checks.entropy_outside_its_door, "exact/ball.py", "import os\nread = os.urandom"),
    (checks.entropy_outside_its_door, "exact/ball.py", "from os import urandom"),
    (checks.entropy_outside_its_door, "exact/ball.py", "from os import urandom as harmless"),
    (checks.entropy_outside_its_door, "exact/ball.py", "import os\nos.getrandom(8)"),
    (checks.entropy_outside_its_door, "exact/ball.py", "import os\ngetattr(os, 'urandom')(8)"),
    (checks.entropy_outside_its_door, "exact/ball.py", "open('/dev/urandom', 'rb')"),
    (checks.entropy_outside_its_door, "exact/ball.py", "open(b'/dev/random', 'rb')"),
    (checks.entropy_outside_its_door, "exact/ball.py", "Path('/dev/hwrng').read_bytes()"),
    (checks.entropy_outside_its_door, "exact/ball.py", "import secrets"),
    (checks.entropy_outside_its_door, "sampling/laplace.py", "def f():\n    import secrets"),
    (checks.entropy_outside_its_door, "exact/ball.py", "from secrets import randbits"),
    (checks.entropy_outside_its_door, "cli/bits.py", "from cryptography.hazmat import primitives"),
    (checks.entropy_outside_its_door, "sampling/deterministic.py", "import secrets"),
    (checks.entropy_outside_its_door, "sampling/deterministic.py", "os.urandom(8)"),
    (checks.pseudo_randomness, "sampling/bits.py", "import random"),
    (checks.pseudo_randomness, "sampling/bits.py", "from random import getrandbits"),
    (checks.pseudo_randomness, "sampling/bits.py", "__import__('random')"),
    (checks.pseudo_randomness, "sampling/bits.py", "importlib.import_module('random')"),
    (checks.pseudo_randomness, "exact/ball.py", "import numpy as np\nnp.random.default_rng()"),
    (checks.pseudo_randomness, "exact/ball.py", "import numpy as n\nn.random.default_rng()"),
    (checks.pseudo_randomness, "exact/ball.py", "import numpy.random"),
    (checks.pseudo_randomness, "exact/ball.py", "from numpy import random"),
    (checks.pseudo_randomness, "exact/ball.py", "from numpy.random import default_rng"),
    (checks.pseudo_randomness, "exact/ball.py", "getattr(np, 'random')"),
    (checks.pseudo_randomness, "exact/ball.py", "loaded('numpy.random', package='numpy')"),
    (
        checks.pseudo_randomness,
        "audit/replay/replay.py",
        "import sys\nsys.modules['numpy.random.mtrand']",
    ),
    (checks.pseudo_randomness, "audit/targets/lastbit.py", "np.random.default_rng()"),
    (checks.pseudo_randomness, "audit/targets/libraries.py", "import random"),
    (checks.source_for_tests_only, "cli/leak.py", "import lastbit.sampling.deterministic"),
    (checks.source_for_tests_only, "cli/leak.py", "from lastbit.sampling import deterministic"),
    (checks.source_for_tests_only, "sampling/__init__.py", "from .deterministic import Tape"),
    (checks.source_for_tests_only, "sampling/laplace.py", "from . import deterministic"),
    (checks.source_for_tests_only, "cli/leak.py", "from ..sampling.deterministic import Tape"),
    (checks.work_in_init, "exact/__init__.py", DOCSTRING + "precision = 53"),
    (checks.work_in_init, "exact/__init__.py", DOCSTRING + "__version__ = '1'"),
    (checks.work_in_init, "exact/__init__.py", DOCSTRING + "def widen(): ..."),
    (checks.work_in_init, "exact/__init__.py", DOCSTRING + "import flint\nflint.ctx.setup()"),
    (checks.work_in_init, "exact/__init__.py", DOCSTRING + "__all__ = sorted(globals())"),
    (checks.work_in_init, "__init__.py", DOCSTRING + "__version__ = version('lastbit')"),
    (checks.undescribed_room, "exact/__init__.py", '"""Exact numbers."""'),
    (checks.undescribed_room, "exact/__init__.py", "from lastbit.exact.ball import Ball"),
    (checks.name_that_says_nothing, "exact/utils.py", ""),
    (checks.name_that_says_nothing, "exact/_helpers.py", ""),
    (checks.name_that_says_nothing, "core/ball.py", ""),
    (checks.mutable_global, "exact/ball.py", "cache = {}"),
    (checks.mutable_global, "exact/ball.py", "cache: dict[int, int] = {}"),
    (checks.mutable_global, "exact/ball.py", "seen = set()"),
    (checks.mutable_global, "exact/ball.py", "table = [n for n in range(9)]"),
    (checks.mutable_global, "exact/ball.py", "waiting = collections.deque()"),
    (checks.mutable_global, "exact/ball.py", "try:\n    pass\nexcept OSError:\n    cache = []"),
    (checks.too_long, "exact/ball.py", "\n" * (checks.LONGEST_FILE + 1)),
    (checks.past_a_door, "cli/leak.py", "from lastbit.exact.ball import Ball"),
    (checks.past_a_door, "cli/leak.py", "from ..exact.ball import Ball"),
    (checks.past_a_door, "cli/leak.py", "import lastbit.exact.ball"),
    (checks.past_a_door, "cli/leak.py", "def f():\n    from lastbit.exact.ball import Ball"),
    (checks.past_a_door, "__init__.pyi", "from lastbit.exact.ball import Ball as Ball"),
    (checks.borrowed_from_the_checker, "verify/rounding.py", "from lastbit.checker import digest"),
    (checks.borrowed_from_the_checker, "verify/rounding.py", "from ..checker import draw_error"),
    (checks.borrowed_from_the_checker, "verify/rounding.py", "from lastbit.checker import *"),
    *(
        (checks.borrowed_from_the_checker, "verify/rounding.py", way)
        for way in (
            "from lastbit.checker.rounding import laplace_excess",
            "import lastbit.checker.numbers as numbers",
            "import_module(name='lastbit.checker.floats')",
            "import_module('.checker.floats', 'lastbit')",
            "load('lastbit' + '.checker.floats')",
            "import sys\nsys.modules['lastbit.checker']",
            "import lastbit\nlastbit.checker.floats.draw_error",
        )
    ),
    (checks.borrowed_from_the_checker, "verify/rounding.py", "from lastbit import checker"),
    (checks.borrowed_from_the_checker, "verify/rounding.py", "import lastbit.checker"),
    (checks.borrowed_from_the_checker, "report/claims.py", "import lastbit.checker.numbers as n"),
    (
        checks.borrowed_from_the_checker,
        "cli/check.py",
        "from lastbit.checker.dispatch import check",
    ),
    (checks.borrowed_from_the_checker, "cli/check.py", "import_module('lastbit.checker.floats')"),
    (
        checks.borrowed_from_the_checker,
        "checker/law.py",
        "from lastbit.checker.numbers import number",
    ),
    (checks.list_inside_a_room, "exact/ball.py", "__all__ = ['Ball']"),
    (checks.wrong_exports, "exact/ball.py", "a = b = 1\n__all__ = ['b', 'a']"),
    (checks.wrong_exports, "exact/ball.py", "a = 1\n__all__ = ['a', 'a']"),
    (checks.wrong_exports, "exact/ball.py", "a = 1\n__all__ = ['a', 'c']"),
    (checks.wrong_exports, "exact/ball.py", "a = 1\n__all__ = list('a')"),
    (checks.name_bound_again, "exact/ball.py", "MOST = 1 << 17\ndef f(): ...\nMOST = 1 << 16"),
    (checks.name_bound_again, "exact/ball.py", "MOST: int = 2\nMOST = 3"),
]


@pytest.mark.parametrize(("check", "path", "source"), REJECTED)
def test_rejects(check, path, source):
    assert findings(check, path, source)


ACCEPTED = [
    (checks.entropy_outside_its_door, "sampling/bits.py", "import os\nos.urandom(32)"),
    (checks.entropy_outside_its_door, "sampling/deterministic.py", "import cryptography"),
    (checks.entropy_outside_its_door, "exact/ball.py", '"""Never reads /dev/urandom."""'),
    (checks.pseudo_randomness, "sampling/bits.py", "from lastbit.sampling import random_bits"),
    (checks.pseudo_randomness, "audit/targets/libraries.py", "np.random.default_rng()"),
    (checks.pseudo_randomness, "audit/replay/numpy_generators.py", "name = 'numpy.random'"),
    (checks.pseudo_randomness, "exact/ball.py", '"""numpy.random"""'),
    (checks.source_for_tests_only, "sampling/deterministic.py", "class Tape: ..."),
    (checks.work_in_init, "__init__.py", DOCSTRING + "__version__ = '0.1.0'\n__all__ = ['a']"),
    (checks.undescribed_room, "exact/__init__.py", DOCSTRING),
    (checks.mutable_global, "exact/ball.py", "small = (2, 3)\nunits = MappingProxyType({'a': 1})"),
    (checks.mutable_global, "exact/ball.py", "def f():\n    seen = set()\n__all__ = ['f']"),
    (checks.work_in_init, "exact/__init__.py", DOCSTRING + checks.OPENED),
    (checks.past_a_door, "exact/rounding.py", "from lastbit.exact.ball import Ball"),
    (checks.past_a_door, "cli/leak.py", "from lastbit.exact import Ball\nimport lastbit"),
    (checks.past_a_door, "cli/leak.py", "from lastbit.errors import LastbitError"),
    (
        checks.borrowed_from_the_checker,
        "cli/check.py",
        "from lastbit.checker import Rejected, problem_of",
    ),
    (checks.borrowed_from_the_checker, "checker/law.py", "from .numbers import number"),
    (checks.list_inside_a_room, "exact/__init__.pyi", "__all__ = ['Ball']"),
    (checks.wrong_exports, "exact/ball.py", "from x import Z, a\n__all__ = ['Z', 'a']"),
    (checks.name_bound_again, "exact/ball.py", "MOST = 2\nLEAST = 3\ndef f():\n    MOST = 4"),
]


@pytest.mark.parametrize(("check", "path", "source"), ACCEPTED)
def test_accepts(check, path, source):
    assert findings(check, path, source) == []


def test_every_check_has_something_it_rejects():
    assert {check for check, _, _ in REJECTED} == set(CHECKS)


def test_the_files_that_may_name_numpys_noise_exist_and_do():
    """An exemption that nobody needs any more is a hole."""
    for path in checks.NUMPY_NOISE:
        assert "numpy.random" in (SRC / path).read_text("utf-8").replace("np.", "numpy.")


@pytest.mark.parametrize(
    "door", sorted(SRC.rglob("__init__.pyi")), ids=lambda path: path.parent.name
)
def test_everything_on_the_list_of_a_door_is_behind_it(door):
    if extra := {"arrays": "optax", "tensors": "torch"}.get(door.parent.name):
        pytest.importorskip(extra, reason=f"{extra} is not here: make training-tests")
    room = importlib.import_module(".".join(("lastbit", *door.parent.relative_to(SRC).parts)))
    stub = ast.parse(door.read_text("utf-8"))
    listed = {
        alias.asname: getattr(
            importlib.import_module(f"{'.' * node.level}{node.module}", room.__name__), alias.name
        )
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert {name: getattr(room, str(name)) for name in listed} == listed
    assert set(room.__all__) <= {*listed, "__version__"} <= {*dir(room), "__version__"}


HEAVY = (
    *("numpy", "flint", "duckdb", "sqlglot", "rich", "jinja2", "ssl", "click", "lastbit.audit"),
    *("psycopg", "pyspark"),
)


def test_importing_lastbit_loads_nothing_heavy():
    code = f"import sys, lastbit; print([name for name in {HEAVY!r} if name in sys.modules])"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout == "[]\n"
