"""The papers' pages list everything: nothing is left out, nothing is claimed that is not there."""

import tomllib
from pathlib import Path

import pytest

from tests.docs.paper_tables import TITLE, NoTable, problems, row_lines, rows

ROOT = Path(__file__).parents[2]
PAPERS = tomllib.loads(Path(__file__).with_name("paper_items.toml").read_text("utf-8"))


def page_of(paper: str) -> str:
    return (ROOT / "docs" / "papers" / PAPERS[paper]["page"]).read_text("utf-8")


def problems_of(paper: str, page: str) -> list[str]:
    return sorted(problems(page, paper, PAPERS[paper], ROOT))


def test_every_page_is_of_a_paper():
    pages = {path.name for path in (ROOT / "docs" / "papers").glob("*.md")}
    assert pages == {"README.md", *(paper["page"] for paper in PAPERS.values())}


@pytest.mark.parametrize(
    ("paper", "equations", "passages", "numbered"),
    [
        (
            "000",
            7,
            48,
            "Definition 15 Theorem 7 Mechanism 3 Condition 3 Remark 2 Example 2 Figure 2",
        ),
        ("001", 0, 11, "Theorem 2"),
        ("002", 0, 24, "Definition 3 Theorem 2 Figure 1"),
        ("003", 35, 28, "Definition 4 Proposition 9 Remark 5 Figure 2"),
        ("004", 3, 16, "Definition 5 Lemma 1 Proposition 1 Algorithm 2"),
    ],
)
def test_the_list_is_as_long_as_the_text_has_it(paper, equations, passages, numbered):
    """Counted in the texts, where each numbered item opens a line."""
    listed = PAPERS[paper]
    assert listed["equations"] == equations
    assert sum(map(len, listed["passages"].values())) == passages
    kinds = (f"{kind} {len({*numbers})}" for kind, numbers in listed["numbered"].items())
    assert " ".join(kinds) == numbered


@pytest.mark.parametrize("paper", PAPERS)
def test_the_table_holds_the_whole_paper(paper):
    assert problems_of(paper, page_of(paper)) == []


def test_nothing_is_pending():
    assert [row for paper in PAPERS for row in rows(page_of(paper)) if row.pending] == []


@pytest.mark.parametrize("paper", PAPERS)
def test_a_row_left_out_is_missed(paper):
    page = page_of(paper)
    for line in row_lines(page):
        assert any("has no row" in told for told in problems_of(paper, page.replace(line, "")))


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("| §4.2 Theorem 4.1 |", "| §4.2 Theorem 4.6 |", "Theorem 4.6 is not in the paper"),
        ("| §4.2 Theorem 4.1 |", "| §4.3 Theorem 4.1 |", "order"),
        ("| §3.2 Mechanism 1 |", "| §3.2 Mechanism 1, (8) |", "equation (8)"),
        ("[`apart`]", "[`nearer`]", "is not there"),
        (
            "[`apart`](../reference/api/verify.md#apart)",
            "[`number`](../reference/api/verify.md#number)",
            "[`number`]",
        ),
        (
            "[`apart`](../reference/api/verify.md#apart)",
            "[`apart`](../reference/api/verify.md#trace)",
            "#trace",
        ),
        ("[`fixed_point_leak`]", "[`floating_point_leak`]", "is not there"),
        ("#test_theorem_4_1_holds", "#test_theorem_4_1_is", "is not there"),
        ("| `2.180e-07`", "| `2.181e-07`", "prints 2.181e-07"),
        ("| `2.180e-07`", "| 2.180e-07", "is no code"),
        ("[24](../theory/corrections.md", "[999](../theory/corrections.md", "correction 999"),
        ("[24](../theory/corrections.md", "[24](../theory/closeness.md", "correction 24"),
        ("[4.3](#43-a", "[4.3](#44-a", "no row leads to the section '4.3"),
        (" not implemented, because ", " not implemented, though ", "where is it?"),
    ],
)
def test_what_is_not_so_is_refused(old, new, problem):
    page = page_of("000")
    head, table = page.split(f"## {TITLE}\n")
    assert old in table
    spoilt = f"{head}## {TITLE}\n{table.replace(old, new)}"
    assert any(problem in told for told in problems_of("000", spoilt))


@pytest.mark.parametrize("line", ["| §1 plan | a | b | c |", "| plan | a | b | c | d |"])
def test_a_line_that_is_no_row_is_refused(line):
    with pytest.raises(NoTable):
        rows(page_of("000") + line + "\n")
