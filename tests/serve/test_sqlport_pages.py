"""What the pages for SQL clients say is run against a server, as a reader would type it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.serve.sqlserving import SqlServing, sql_serving
from tests.serve.test_sqlport_clients import installed, printed

PAGES = Path(__file__).parents[2] / "docs" / "how-to"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlServing]:
    with sql_serving(tmp_path_factory.mktemp("sql") / "served") as running:
        yield running


def blocks(page: str, language: str) -> list[str]:
    text = (PAGES / page).read_text("utf-8")
    found: list[str] = re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert found, f"{page} has no block of {language}"
    return found


def test_what_is_typed_into_psql(server: SqlServing) -> None:
    psql = installed("psql", package="postgresql-client")
    told = server.told()
    (session,) = (one for one in blocks("psql-or-dbeaver.md", "console") if "lastbit=>" in one)
    typed = re.findall(r"^lastbit=> (.*)$", session, re.MULTILINE)
    command = [psql, "-X", "-h", told["host"], "-p", str(told["port"]), "-U", "ana"]
    command += ["-d", "lastbit", *(part for line in typed for part in ("-c", line))]
    out, wrong = printed(command, env={**os.environ, "PGPASSWORD": told["password"]})
    assert len(typed) == 4 and "ERROR" not in wrong
    seen = _figures_apart(f"{out}\n{wrong}")
    for line in _figures_apart(session):  # but what is cut short, and what the reader types
        if line and not line.startswith(("$", "Password", "lastbit=>", "...")):
            assert line in seen, line


def _figures_apart(text: str) -> list[str]:
    """The lines of a text, with the figures of noise and of an account as 0.

    How wide a column is depends on the noise too: runs of blanks and of rules are one.
    """
    figures = (re.sub(r"-?[0-9.]*[0-9]", "0", line) for line in text.splitlines())
    return [re.sub(r"([ -])\1+", r"\1", line).rstrip() for line in figures]


def test_what_is_typed_into_r(server: SqlServing) -> None:
    rscript = installed("Rscript", package="r-base-core (and r-cran-rpostgresql)")
    told = server.told()
    first, *_ = blocks("from-r.md", "r")
    script = first.replace("port = 5433", f"port = {told['port']}")
    assert script != first
    known, _ = printed([rscript, "-e", 'cat(requireNamespace("RPostgres", quietly = TRUE))'])
    if "TRUE" not in known:
        script = script.replace("RPostgres::Postgres()", "RPostgreSQL::PostgreSQL()")
    out, wrong = printed(
        [rscript, "-e", script], env={**os.environ, "LASTBIT_TOKEN": told["password"]}
    )
    assert '"visits"' in out and "Cost: epsilon = 0.5." in out, wrong
    assert "north" in out and "south" in out


def test_what_is_typed_into_python(server: SqlServing) -> None:
    pytest.importorskip("sqlalchemy", reason="it is in requirements-serve.lock")
    pytest.importorskip("pandas")
    (program,) = blocks("dbt-or-a-bi-tool.md", "python")
    told = server.told()
    asked = program.replace("127.0.0.1:5433", f"127.0.0.1:{told['port']}")
    asked = asked.replace("pandas.read_sql", "frame = pandas.read_sql")
    names: dict[str, Any] = {"token": told["password"]}
    exec(asked, names)  # noqa: S102  # a page of ours
    assert sorted(names["frame"]["region"]) == ["north", "south"]
    names["engine"].dispose()
