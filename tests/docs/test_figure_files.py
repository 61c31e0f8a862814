"""The figures in the pages: as they are drawn now, well formed, and complete in themselves."""

import doctest
from pathlib import Path
from xml.etree import ElementTree

import pytest

from docs import curve_charts, draw_figures
from docs.draw_figures import (
    FIGURES,
    FOLDER,
    admissible_figure,
    composition_curve_figure,
    composition_figure,
    count_figure,
    fixed_point_figure,
    gaussian_curve_figure,
    laplace_figure,
    main,
    planar_figure,
    poll_figure,
    posterior_figure,
    smooth_sensitivity_figure,
)


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_that_of_the_pages_and_stands_alone(name):
    text = (FOLDER / f"{name}.svg").read_text("utf-8")
    assert FIGURES[name]() == text, "run `make figures`"
    assert ElementTree.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"
    assert text.count("http") == 1  # the name space, which nobody fetches
    for word in ("href", "url(", "@import", "@font-face", "<script", "<image", "<foreignObject"):
        assert word not in text
    assert "prefers-color-scheme: dark" in text
    assert "nan" not in text
    assert "inf" not in text


def test_every_figure_is_on_the_page_of_figures():
    page = (FOLDER.parent / "figures.md").read_text("utf-8")
    assert [name for name in FIGURES if f"figures/{name}.svg" not in page] == []


def test_the_figures_that_are_named_are_drawn(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("docs.draw_figures.FOLDER", tmp_path)
    main(["laplace"])
    assert [file.name for file in Path(tmp_path).iterdir()] == ["laplace.svg"]
    assert capsys.readouterr().out.endswith("/laplace.svg\n")


@pytest.mark.parametrize("module", [curve_charts, draw_figures])
def test_the_examples_of_the_drawing_are_right(module):
    found = doctest.testmod(module)
    assert found.attempted >= 5 and not found.failed


@pytest.mark.thinned(one_in=4)
@pytest.mark.parametrize(
    ("figure", "given", "changes"),
    [
        (posterior_figure, [["3"]], {}),
        (posterior_figure, [["0", "1/3", "100"]], {}),
        (poll_figure, [["0.01", "100"]], {}),
        (count_figure, [[1, 1000000]], {}),
        (laplace_figure, [], {"epsilon": "1/1000"}),
        (laplace_figure, [], {"epsilon": "100", "sensitivity": 1000}),
        (laplace_figure, [], {"epsilon": "7/3", "sensitivity": 7}),
        (fixed_point_figure, [], {"scale_bits": 0, "answer": "1/64"}),
        (fixed_point_figure, [], {"scale_bits": 12, "fractional_bits": 12, "answer": 4}),
        (fixed_point_figure, [], {"scale_bits": 1, "fractional_bits": 1, "answer": "1/2"}),
        (gaussian_curve_figure, [], {"standard_deviation": "1/2"}),
        (gaussian_curve_figure, [], {"standard_deviation": "1000"}),
        (composition_figure, [], {"epsilon": "5", "releases": 10}),
        (composition_figure, [], {"epsilon": "1/1000", "delta": "1e-30"}),
        (composition_figure, [], {"delta": "1/2", "releases": 20}),
        (composition_curve_figure, [], {"epsilon": "5", "releases": 2}),
        (composition_curve_figure, [], {"epsilon": "1/1000", "releases": 1000}),
        (composition_curve_figure, [], {"epsilon": "7/30", "releases": 200}),
        (smooth_sensitivity_figure, [["0.01", "100"]], {}),
        (smooth_sensitivity_figure, [["7/3"]], {}),
        (admissible_figure, [], {"epsilon": "100"}),
        (admissible_figure, [], {"epsilon": "1/100", "delta": "1e-30"}),
        (admissible_figure, [], {"delta": "1/10"}),
        (planar_figure, [], {"within": 1}),
        (planar_figure, [], {"within": 100000}),
    ],
)
def test_settings_at_the_edge(figure, given, changes):
    text = figure(*given, **changes)
    ElementTree.fromstring(text)
    assert "nan" not in text
