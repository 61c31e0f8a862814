"""`lastbit figure`: pictures that are well formed, complete in themselves, and refused in time."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from lastbit.cli import figure as figures
from tests.cli.running import refused, succeeded

NAMES = (
    "posterior",
    "poll",
    "count",
    "laplace",
    "uniform",
    "gaussian-curve",
    "composition",
    "composition-curve",
    "smooth-sensitivity",
    "admissible",
    "planar",
)
DOCS = Path(__file__).parents[2] / "docs" / "figures"


@pytest.mark.parametrize("name", NAMES)
def test_a_figure_is_well_formed_and_self_contained(name, tmp_path):
    out = tmp_path / "figure.svg"
    printed = succeeded("figure", name, "--out", str(out)) if len(str(out)) < 60 else None
    if printed is None:  # a long path may be wider than a terminal
        from tests.cli.running import lastbit

        assert lastbit("figure", name, "--out", str(out)).exit_code == 0
    text = out.read_text("utf-8")
    assert ElementTree.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"
    assert text.count("http") == 1  # the name space, which nobody fetches
    for word in ("href", "url(", "@import", "@font-face", "<script", "<image", "<foreignObject"):
        assert word not in text
    assert "prefers-color-scheme: dark" in text
    assert "nan" not in text
    assert "inf" not in text


@pytest.mark.parametrize("name", NAMES)
def test_the_figures_in_the_docs_are_up_to_date(name, folder):
    assert succeeded("figure", name, "--out", f"{name}.svg") == f"Picture: {name}.svg\n"
    fresh = (folder / f"{name}.svg").read_text("utf-8")
    assert fresh == (DOCS / f"{name}.svg").read_text("utf-8"), f"run lastbit figure {name}"


@pytest.mark.thinned(one_in=4)
@pytest.mark.parametrize(
    "arguments",
    [
        ("posterior", "--epsilons", "3"),
        ("posterior", "--epsilons", "1/3,100,0"),
        ("poll", "--epsilons", "0.01,100"),
        ("count", "--max-rows", "1,1000000"),
        ("laplace", "--epsilon", "1/1000"),
        ("laplace", "--epsilon", "100", "--sensitivity", "1000"),
        ("laplace", "--epsilon", "7/3", "--sensitivity", "7"),
        ("gaussian-curve", "--standard-deviation", "1/2"),
        ("gaussian-curve", "--standard-deviation", "1000"),
        ("composition", "--epsilon", "5", "--releases", "10"),
        ("composition", "--epsilon", "1/1000", "--delta", "1e-30"),
        ("composition", "--delta", "1/2", "--releases", "20"),
        ("composition-curve", "--epsilon", "5", "--releases", "2"),
        ("composition-curve", "--epsilon", "1/1000", "--releases", "1000"),
        ("composition-curve", "--epsilon", "7/30", "--releases", "200"),
        ("smooth-sensitivity", "--epsilons", "0.01,100"),
        ("smooth-sensitivity", "--epsilons", "7/3"),
        ("admissible", "--epsilon", "100"),
        ("admissible", "--epsilon", "1/100", "--delta", "1e-30"),
        ("admissible", "--delta", "1/10"),
        ("planar", "--within", "1"),
        ("planar", "--within", "100000"),
    ],
)
def test_settings_at_the_edge(arguments, folder):
    succeeded("figure", *arguments, "--out", "edge.svg")
    text = (folder / "edge.svg").read_text("utf-8")
    ElementTree.fromstring(text)
    assert "nan" not in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("posterior",), "--out"),
        (("posterior", "--out", "p.pdf"), "draws SVG and PNG only; pass p.svg"),
        (("poll", "--out", "p.PDF"), "draws SVG and PNG only"),
        (("poll", "--out", "nowhere/p.svg"), "does not exist"),
        (("posterior", "--epsilons", "nan", "--out", "p.svg"), "--epsilons is 'nan'"),
        (("posterior", "--epsilons", "", "--out", "p.svg"), "--epsilons"),
        (("posterior", "--epsilons", "-1", "--out", "p.svg"), "not from 0 to 100"),
        (("posterior", "--epsilons", "1,1", "--out", "p.svg"), "there twice"),
        (("posterior", "--epsilons", "1,2,3,4,5,6,7,8", "--out", "p.svg"), "more than 7"),
        (("poll", "--epsilons", "0", "--out", "p.svg"), "not from 1/100 to 100"),
        (("count", "--max-rows", "0.5", "--out", "p.svg"), "not a whole number"),
        (("count", "--max-rows", "5,5", "--out", "p.svg"), "there twice"),
        (("laplace", "--epsilon", "0", "--out", "p.svg"), "--epsilon is not from"),
        (("laplace", "--sensitivity", "1.5", "--out", "p.svg"), "--sensitivity"),
        (("gaussian-curve", "--standard-deviation", "0", "--out", "p.svg"), "not from 1/2"),
        (("composition", "--delta", "0", "--out", "p.svg"), "--delta is not from"),
        (("composition", "--releases", "1", "--out", "p.svg"), "--releases"),
        (("composition-curve", "--epsilon", "0", "--out", "p.svg"), "--epsilon is not from"),
        (("composition-curve", "--releases", "1", "--out", "p.svg"), "--releases"),
        (("admissible", "--delta", "1/2", "--out", "p.svg"), "--delta is not from"),
        (("admissible", "--epsilon", "0", "--out", "p.svg"), "--epsilon is not from"),
        (("planar", "--within", "0", "--out", "p.svg"), "--within is not from"),
        (("smooth-sensitivity", "--epsilons", "0", "--out", "p.svg"), "not from 1/100 to 100"),
        (("histogram", "--out", "p.svg"), "No such command"),
    ],
)
def test_refusals_name_the_remedy_and_write_nothing(arguments, words, folder):
    assert words in refused("figure", *arguments)
    assert list(folder.iterdir()) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_a_clean_error():
    assert "cannot be written" in refused("figure", "laplace", "--out", "/dev/full")


def test_pixels(folder, monkeypatch):
    """PNG where the library and a font are there; a font is needed for the words only."""
    (folder / "fonts").mkdir()
    monkeypatch.setattr(figures, "FONTS", (str(folder / "fonts"),))
    assert "no font to draw the words with" in refused("figure", "posterior", "--out", "p.png")
    (folder / "fonts" / "any.ttf").touch()
    succeeded("figure", "posterior", "--out", "p.png")
    assert (folder / "p.png").read_bytes().startswith(b"\x89PNG\r\n")
    monkeypatch.setattr(figures, "svg_to_bytes", None)
    assert "or pass q.svg" in refused("figure", "posterior", "--out", "q.png")
    assert not (folder / "q.png").exists()
