"""`lastbit median`: one column of a file, and nothing of it in any message."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from lastbit.cli.files import numbers_of
from tests.cli.running import refused, succeeded

ROWS = "\n".join(f"{i},{20 + i % 30}.5,secret" for i in range(300))


@pytest.fixture
def visits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "visits.csv").write_text(f"\ufeffid,minutes,name\n{ROWS}\n\n", "utf-8")
    return "visits.csv"


BOUNDS = ("--lower", "0", "--upper", "500")


def test_the_page_has_the_answer_and_the_promise(visits: str) -> None:
    page = succeeded("median", visits, "minutes", *BOUNDS, "--epsilon", "1")
    assert "Median of minutes" in page
    assert "pure 1" in page
    assert "one record changed" in page
    assert "secret" not in page


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--noise", "cauchy", "--quantile", "0.9"),
        ("--noise", "laplace", "--delta", "1e-6"),
        ("--noise", "gaussian", "--delta", "1e-6", "--neighbours", "add-remove"),
        ("--grid", "1/4", "--quantile", "0"),
        ("--quantile", "1"),
        ("--noise", "exponential"),
    ],
)
def test_json(visits: str, options: tuple[str, ...]) -> None:
    page = succeeded("median", visits, "minutes", *BOUNDS, "--epsilon", "8", "--json", *options)
    answer = json.loads(page)
    assert 0 <= answer["value"] <= 500
    assert answer["guarantee"]["epsilon"] == "8"
    grid = [int(part) for part in f"{answer['grid']}/1".split("/")[:2]]
    assert (answer["value"] * grid[1] / grid[0]).is_integer()


@pytest.mark.parametrize(
    ("epsilon", "noise"), [("1", "exponential"), ("8", "student"), ("1e-7", "exponential")]
)
def test_the_nearer_mechanism_is_taken_and_named(visits: str, epsilon: str, noise: str) -> None:
    asked = ("median", visits, "minutes", *BOUNDS, "--epsilon", epsilon)
    assert json.loads(succeeded(*asked, "--json"))["noise"] == noise
    assert f"{noise}: " in succeeded(*asked)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nowhere.csv", "minutes", *BOUNDS, "--epsilon", "1"), "cannot be read"),
        (("visits.csv", "hours", *BOUNDS, "--epsilon", "1"), "is not in the first line"),
        (("visits.csv", "name", *BOUNDS, "--epsilon", "1"), "no number in the column name"),
        (("visits.csv", "minutes", *BOUNDS, "--epsilon", "0"), "--epsilon"),
        (("visits.csv", "minutes", "--lower", "9", "--upper", "1", "--epsilon", "1"), "--lower"),
        (("visits.csv", "minutes", *BOUNDS, "--epsilon", "1", "--delta", "1e-6"), "--delta"),
        (("visits.csv", "minutes", *BOUNDS, "--epsilon", "1", "--quantile", "2"), "--quantile"),
        (("visits.csv", "minutes", *BOUNDS, "--epsilon", "1", "--grid", "3"), "--grid"),
        (("visits.csv", "minutes", *BOUNDS, "--epsilon", "1", "--noise", "laplace"), "--delta"),
        (("visits.csv", "minutes", "--epsilon", "1"), "--lower"),
        (
            ("visits.csv", "minutes", *BOUNDS, "--epsilon", "1e-7", "--noise", "student"),
            "--epsilon is too small",
        ),
        (("nowhere.csv", "minutes", *BOUNDS, "--epsilon", "1", "--grid", "-1"), "--grid"),
        (
            ("visits.csv", "minutes", "--lower", "0", "--upper", "1e300", "--epsilon", "1"),
            "too far",
        ),
        (
            ("visits.csv", "hours", *BOUNDS, "--epsilon", "1"),
            "name one of these: id, minutes, name",
        ),
    ],
)
def test_refusals_name_the_remedy_and_no_datum(
    visits: str, arguments: tuple[str, ...], words: str
) -> None:
    message = refused("median", *arguments)
    assert words in message
    assert "secret" not in message
    assert ".5" not in message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("minutes\n", "is empty"),
        ("minutes\n3\nnan\n", "NaN"),
        ("minutes\n3\n\n,\n", "no number"),
        ("17.25,18.5\n3,4\n", "holds numbers"),
        ("minutes,minutes\n3,4\n", "twice"),
        ("id;minutes\n3;4\n", "semicolons"),
    ],
)
def test_odd_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, words: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path("odd.csv").write_text(text, "utf-8")
    message = refused("median", "odd.csv", "minutes", *BOUNDS, "--epsilon", "1")
    assert words in message
    assert "17.25" not in message


def test_text_that_is_no_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("odd.csv").write_bytes(b"minutes\n\xff\xfe\n")
    assert "UTF-8" in refused("median", "odd.csv", "minutes", *BOUNDS, "--epsilon", "1")


def test_standard_input_may_start_with_a_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("\ufeffminutes\n3\n4\n"))
    assert numbers_of(Path("-"), "minutes") == [3.0, 4.0]
