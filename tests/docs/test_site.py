"""The site: every page is in its navigation, and the navigation is what the lists say."""

from pathlib import Path

import pytest

from docs import conf


def pages(root: Path) -> set[Path]:
    patterns = (pattern.replace("**.", "**/*.") for pattern in conf.include_patterns)
    return {page for pattern in patterns for page in root.glob(pattern)}


def test_every_page_is_in_the_navigation():
    assert pages(conf.ROOT) == conf.in_navigation(conf.ROOT)


def test_the_sections_are_few():
    assert 4 <= len(conf.sections((conf.ROOT / conf.INDEX).read_text("utf-8"))) <= 9


@pytest.fixture
def root(tmp_path):
    (tmp_path / "docs" / "how-to").mkdir(parents=True)
    (tmp_path / "docs" / "index.md").write_text(
        "# Title\n\nSee [two](two.md).\n\n## Start\n\n- [One](one.md): first.\n"
        "- [Tasks](how-to/README.md).\n\n## End\n\n- [Changes](../CHANGELOG.md)\n\n## Empty\n"
    )
    (tmp_path / "docs" / "how-to" / "README.md").write_text("| [a](a.md) | [one](../one.md) |\n")
    for name in ("docs/one.md", "docs/how-to/a.md", "CHANGELOG.md"):
        (tmp_path / name).write_text("# Page\n")
    return tmp_path


def test_an_orphan_is_seen(root):
    assert conf.in_navigation(root) == pages(root)
    orphans = {root / "docs" / "two.md", root / "docs" / "how-to" / "b.md"}
    for orphan in orphans:  # a link in a sentence is not a list
        orphan.write_text("# Orphan\n")
    assert pages(root) - conf.in_navigation(root) == orphans


def test_the_lists_become_trees(root):
    index = (root / conf.INDEX).read_text("utf-8")
    assert conf.sections(index) == {
        "Start": [("One", "one.md"), ("Tasks", "how-to/README.md")],
        "End": [("Changes", "../CHANGELOG.md")],
    }
    source = [index]
    conf.prepared(None, "docs/index", source)
    assert source[0].startswith(index)
    tree = "\n```{toctree}\n:hidden:\n:caption: Start\n\nOne <one>\nTasks <how-to/README>\n```\n"
    assert tree in source[0]
    source = ["[b](b.md), [a](a.md), [b](b.md) [c](../c.md) [d](d.md#part) [e](sub/e.md)"]
    assert conf.beside(source[0]) == ["b.md", "a.md"]
    conf.prepared(None, "docs/how-to/README", source)
    assert source[0].endswith("\n```{toctree}\n:hidden:\n\nb\na\n```\n")
    source = ["[a](a.md), [`code`](../../src/lastbit/files.py), [data](../bench/results/x.json)"]
    conf.prepared(None, "tests/README", source)
    assert source == ["[a](a.md), `code`, data"]
    source = ["```python\n>>> 1\n1\n\n```\n\n```text\n1\n```\n"]
    conf.prepared(None, "docs/one", source)
    assert source == ["```python\n>>> 1\n1\n```\n\n```text\n1\n```\n"]
