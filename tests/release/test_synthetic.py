"""Synthetic rows: what is charged, what is refused, and how near they are to released tables."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from typing import Any

import duckdb
import pytest

import lastbit as lb
from lastbit.checker.dispatch import problem_of
from lastbit.errors import InvalidParameter, WrongType
from lastbit.release import synthetic_rows as module
from lastbit.release.marginal_answer import Marginals

here = pytest.mark.skipif(find_spec("mbi") is None, reason="needs the extra synthetic")


def table() -> Any:
    sql = """SELECT range % 3 AS a, (range % 3 + range % 7 // 6) % 3 AS b,
        range % 5 < 2 AS c, range % 90 AS age FROM range(9000)"""
    rows = duckdb.connect().sql(sql).to_arrow_table()
    return lb.table(rows, each_row=True, keys={"a": [0, 1, 2], "b": [0, 1, 2]}, name="t")


COLUMNS = {"a": "a", "b": "b", "c": "c", "band": "bin(age, 0, 18, 65, 90)"}


def test_without_the_library_it_says_what_to_install_and_reads_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(module, "import_module", missing)
    monkeypatch.setattr(Marginals, "__post_init__", missing)
    with pytest.raises(InvalidParameter, match=r'pip install "lastbit\[synthetic\]"'):
        lb.synthetic(table(), ["a", "b"], epsilon=1)


def test_another_library_of_that_name_is_not_taken_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "import_module", lambda name: object())
    with pytest.raises(InvalidParameter, match="synthetic"):
        lb.synthetic(table(), ["a", "b"], epsilon=1)


def test_importing_lastbit_imports_neither_jax_nor_mbi() -> None:
    seen = "import sys, lastbit; lastbit.synthetic; print({'jax', 'mbi'} & set(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", seen], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "set()"


def test_what_is_no_table_is_refused() -> None:
    with pytest.raises(WrongType, match="table"):
        lb.synthetic([1, 2], ["a"], epsilon=1)  # type: ignore[arg-type]


@here
def test_rows_follow_the_released_tables() -> None:
    found = lb.synthetic(table(), COLUMNS, epsilon=50)
    assert problem_of(found.tables.record) is None and found.tables.cost.epsilon == 50
    assert found.left_out == () and abs(len(found) - 9000) < 100
    assert set(found.columns) == set(COLUMNS) and set(found.columns["band"]) <= {0, 18, 65}
    same = sum(a == b for a, b in zip(found.columns["a"], found.columns["b"], strict=True))
    assert abs(same / len(found) - 6 / 7) < 0.05  # the pair that is not independent
    young = sum(value == 0 for value in found.columns["band"])
    assert abs(young / len(found) - 1 / 5) < 0.05


@here
def test_as_many_rows_as_asked_for_from_tables_released_before(tmp_path: Any) -> None:
    tables = table().marginals(COLUMNS).release(epsilon=1)
    found = lb.release.synthetic_from(tables, rows=25)
    assert len(found) == 25 == len(found.to_dicts()) and found.tables is tables
    lines = found.to_csv(tmp_path / "rows.csv").splitlines()
    assert lines[0] == "a,b,c,band" and len(lines) == 26
    assert found.to_polars().shape == (25, 4)


@here
def test_pairs_that_make_the_model_too_large_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = table().marginals(["a", "b", "c"]).release(epsilon=1)
    monkeypatch.setattr(module, "_MOST_CELLS", 15)
    found = lb.release.synthetic_from(tables, rows=5)
    assert ("a", "b") in found.left_out
