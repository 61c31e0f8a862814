"""The runner of the pages rejects a page that shows what does not happen."""

import pytest

from tests.docs.pages import (
    PageBroken,
    anchors,
    broken_links,
    executable,
    fences,
    run,
    unknown_names,
)


def fence(language: str, *lines: str) -> str:
    return "\n".join(("```" + language, *lines, "```", ""))


def test_a_true_page_runs(tmp_path):
    page = "\n".join(
        (
            "# A page",
            fence("python", "x = 20", "import os", "os.mkdir('made')"),
            fence("python", ">>> x + 1", "21", ">>> y = x", ">>> print('a', object())", "a <...>"),
            fence("python", "assert y == 20"),
            fence("console", "$ ls", "made", "$ echo 'a   b' \\", ">  c", "a b c"),
            fence("console", "$ cat missing", "cat: missing: ...", "[exit 1]"),
            fence("console", "$ make demo", "anything at all", "$ pip install lastbit"),
            fence("toml", "x = 1"),
        )
    )
    run(page, name="page", directory=tmp_path)
    assert len(executable(page)) == 6


@pytest.mark.parametrize(
    "page",
    [
        fence("python", ">>> 1 + 1", "3"),
        fence("python", "x = 1", "assert x == 2"),
        fence("python", "x = 1") + fence("python", ">>> x", "2"),
        fence("python", ">>> undefined", "1"),
        fence("console", "$ echo a", "b"),
        fence("console", "$ echo a"),
        fence("console", "$ echo a", "a", "$ echo b", "c"),
        fence("console", "$ cat missing", "cat: missing: ..."),
        fence("console", "$ cat missing", "...", "[exit 3]"),
        fence("console", "$ echo a", "a", "[exit 1]"),
        fence("console", "$ unknown-command", "..."),
        fence("console", "echo a", "a"),
        fence("bash", "echo a"),
        fence("py", "x = 1"),
        "```python\nx = 1\n",
        "1. item\n\n" + "   ```python\n   assert False\n   ```\n",
        "<!-- not executed: -->\n" + fence("python", "assert False"),
        "<!-- not executed: far away -->\n\n" + fence("python", "assert False"),
    ],
)
def test_a_false_page_is_rejected(page, tmp_path):
    with pytest.raises((PageBroken, AssertionError)):
        run(page, name="page", directory=tmp_path)


def test_a_fence_can_be_left_out_with_a_reason(tmp_path):
    page = "<!-- not executed: needs a database -->\n" + fence("python", "assert False")
    run(page, name="page", directory=tmp_path)
    assert executable(page) == []


def test_a_fence_that_names_a_file_is_saved(tmp_path):
    page = fence("toml", "# card.toml", "x = 1") + fence("python", "# made.py", "raise SystemExit")
    page += fence("console", "$ cat card.toml", "# card.toml", "x = 1", "$ ls", "card.toml made.py")
    run(page, name="page", directory=tmp_path)
    assert len(executable(page)) == 1


def test_a_fence_may_show_a_fence():
    (outer,) = fences("````text\n```python\nassert False\n```\n````\n")
    assert outer.language == "text"


def test_links(tmp_path):
    (tmp_path / "there.md").write_text("# Known limits: ε & δ\n", "utf-8")
    page = tmp_path / "page.md"
    page.write_text(
        "[a](there.md) [b](there.md#known-limits-ε--δ) [c](#here) `[code](no.md)`\n"
        "# Here\n```text\n[shown](no.md)\n# not a heading\n```\n"
        "[web](https" + "://example.invalid)\n"
        "[d](gone.md) [e](there.md#gone) [f](#not-a-heading) [g](../../outside.md)\n"
        "[h]: gone-too.md\n",
        "utf-8",
    )
    assert broken_links(page, tmp_path) == [
        "gone.md",
        "there.md#gone",
        "#not-a-heading",
        "../../outside.md",
        "gone-too.md",
    ]


def test_anchors():
    assert anchors("# One, two\n## `code` and more #\n") == {"one-two", "code-and-more"}


def test_names_of_code(tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_x.py").touch()
    known = (
        "lastbit.Laplace lastbit.PureDP.group lastbit.verify.rounding:Query tests/test_x.py::test"
    )
    wrong = "lastbit.Laplacian lastbit.PureDP.grouped lastbit.verify:Quarry tests/test_y.py::test"
    page = " ".join(
        f"`{code}`" for code in (*known.split(), "lastbit check x.json", "lastbit.ledger(x)")
    )
    assert unknown_names(page, tmp_path) == []
    page = " ".join(f"`{code}`" for code in wrong.split())
    assert unknown_names(page + "\n```text\n`lastbit.shown`\n```\n", tmp_path) == wrong.split()
