"""The examples of the pages are typed as strictly as ours: what they call says what it gives.

Functions that a page defines have no annotations, and one name may stand for several things in
turn: pages are read from top to bottom. Pages that look into results that may be None (a refutation
that was found, a bound that exists) do so without asking, as their text has just shown it.
"""

import doctest
import re
from pathlib import Path

import pytest
from mypy import api

from tests.docs.pages import executable
from tests.docs.test_pages import EXECUTED, ROOT
from tests.evidence import late

SURE = {"README.md"} | {
    f"docs/{page}.md" for page in ("audit", "data-card", "papers/snapping", "queries", "verify")
}
# shows accounts of every kind in turn, each of which it knows to be of that kind
LEFT_OUT = {"docs/ledger.md"}
GENERATED = "docs/reference/"  # examples of docstrings, which may be of any type
# in each file, so that all else is as in `make types`, whose cache then serves here
OPTIONS = "# mypy: allow-untyped-defs, allow-untyped-calls, allow-redefinition"


def module(page: str) -> str:
    """What a page runs, as one module."""
    parts: list[str] = []
    for fence in executable(page):
        if fence.language != "python":
            continue
        if re.search(r"^>>>", fence.text, re.M):
            examples = doctest.DocTestParser().get_examples(fence.text)
            parts += (example.source for example in examples)
        else:
            parts.append(fence.text)
    return "\n".join(parts)


@pytest.mark.parametrize("sure", [False, late(True)])
def test_examples_are_strictly_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sure: bool
) -> None:
    files = []
    for page in EXECUTED:
        name = str(page.relative_to(ROOT))
        if name in LEFT_OUT or name.startswith(GENERATED) or (name in SURE) != sure:
            continue
        if text := module(page.read_text("utf-8")):
            file = tmp_path / f"page_{re.sub('[^a-z0-9]', '_', name.lower())}.py"
            file.write_text(f"{OPTIONS}{', no-strict-optional' * sure}\n{text}", "utf-8")
            files.append(str(file))
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("MYPYPATH", str(tmp_path))
    told, problems, status = api.run(files)
    assert status == 0 and not problems, told
