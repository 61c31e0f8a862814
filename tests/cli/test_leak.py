"""`lastbit leak` as a person meets it: what it prints, what it saves, what it refuses."""

import os
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from lastbit.cli.main import main


def leak(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["leak", *arguments])


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "leak.svg"


@pytest.fixture
def output(out: Path) -> str:
    result = leak("--samples", "20000", "--out", str(out))
    assert result.exit_code == 0, result.output
    return result.output


# -- what it prints --


def test_panel_1_has_the_exact_probabilities(output):
    assert re.search(r"release ending in +00 +10\n", output)
    assert re.search(r"secret 0 +1 +0\n", output)
    assert re.search(r"secret 1 \+ 2\^-5 +0 +1\n", output)
    assert "promised by the formula: 33/128" in output
    assert "infinite" in output


def test_panel_1_shows_releases_that_keep_the_last_two_bits(output):
    rows = re.findall(r"^ +[+-][01]+\.[01]{4}\[(..)\] +[+-][01]+\.[01]{4}\[(..)\]$", output, re.M)
    assert rows == [("00", "10")] * 5


def test_panel_2_has_both_shares_and_the_certain_digits_of_the_ideal_one(output):
    assert "27.179386 %" in output  # by hand: see test_leak_evidence
    assert re.search(r"secret 1 +none +none \(proved\) +none\n", output)
    witness = re.search(r"y = (\S+), an odd multiple of 2\^-(\d+)\.", " ".join(output.split()))
    assert witness is not None
    odd = Fraction(float(witness[1])) * 2 ** int(witness[2])
    assert int(witness[2]) > 53
    assert odd.denominator == 1
    assert odd.numerator % 2 == 1


def test_panel_3_has_the_exact_law(output):
    assert re.search(r"^ +0 +0\.4621171573 +0\.1700034016 +2\.718281828 +\+ε$", output, re.M)
    assert re.search(r"^ +1 +0\.1700034016 +0\.4621171573 +0\.3678794412 +-ε$", output, re.M)
    assert len(re.findall(r" [+-]ε$", output, re.M)) == 8


def test_it_ends_with_the_conclusion_and_the_path(output, out):
    lines = output.splitlines()
    assert lines[-1] == f"Picture: {out}"
    assert "Conclusion:" in lines[-3]


def test_plain_when_piped(output):
    assert "\x1b" not in output
    assert max(len(line) for line in output.splitlines()[:-1]) <= 80
    assert not re.search(r"[ \t]$", output, re.M)


def test_another_epsilon(out):
    output = leak("--epsilon", "1/3", "--samples", "1000", "--out", str(out)).output
    assert "noise of scale 3" in output
    assert "1.395612425" in output  # exp(1/3)
    assert "ε = 1/3." in output


@pytest.mark.parametrize("epsilon", ["0.01", "10", "0.123456789", "3.1415926535897932384626"])
@pytest.mark.parametrize("samples", ["1", "3"])
def test_odd_settings_still_fit(epsilon, samples, out):
    result = leak("--epsilon", epsilon, "--samples", samples, "--out", str(out))
    assert result.exit_code == 0
    assert "…" not in result.output
    assert max(len(line) for line in result.output.splitlines()[:-1]) <= 80


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from lastbit.cli import main; main()", "leak", *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


def test_a_terminal_without_unicode_gets_ascii(out):
    done = run("--samples", "1000", "--out", str(out), PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()
    assert "+epsilon" in done.stdout
    assert "####" in done.stdout


@pytest.mark.parametrize("columns", ["40", "200"])
def test_the_layout_is_that_of_80_columns_whatever_the_terminal(columns, out):
    done = run("--samples", "1000", "--out", str(out), COLUMNS=columns)
    assert "…" not in done.stdout
    assert max(len(line) for line in done.stdout.splitlines()[:-1]) == 80


def test_a_dumb_terminal_gets_no_escapes(out):
    done = run("--samples", "1000", "--out", str(out), TERM="dumb", NO_COLOR="1")
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout
    assert done.stderr == ""


# -- what it saves --


def test_the_picture_is_well_formed_and_self_contained(output, out):
    text = out.read_text("utf-8")
    root = ElementTree.fromstring(text)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert text.count("http") == 1  # the name space, which nobody fetches
    for word in ("href", "url(", "@import", "@font-face", "<script", "<image", "<foreignObject"):
        assert word not in text
    assert "prefers-color-scheme: dark" in text


def test_the_picture_has_three_panels_with_their_verdicts(output, out):
    words = "\n".join(ElementTree.fromstring(out.read_text("utf-8")).itertext())
    assert words.count("leaks: privacy loss infinite") == 2
    assert words.count("holds: privacy loss 1") == 1
    assert "none of the releases of 1, ever" in words


def test_the_picture_goes_to_leak_svg_by_default(folder):
    result = leak("--samples", "100")
    assert result.exit_code == 0
    assert result.output.endswith("Picture: leak.svg\n")
    assert ElementTree.parse(folder / "leak.svg").getroot() is not None


def test_a_path_that_looks_like_markup_or_is_long_is_printed_as_it_is(tmp_path):
    out = tmp_path / ("[bold]" + "x" * 120 + ".svg")
    assert leak("--samples", "100", "--out", str(out)).output.endswith(f"Picture: {out}\n")


# -- what it refuses --


@pytest.mark.parametrize("samples", ["0", "-1", "1000000000000", "many", "1.5", "", "nan"])
def test_bad_samples_are_refused(samples, out):
    result = leak("--samples", samples, "--out", str(out))
    assert result.exit_code == 2
    assert "--samples" in result.stderr
    assert "Traceback" not in result.output
    assert not out.exists()


@pytest.mark.parametrize(
    "epsilon", ["0", "-1", "nan", "inf", "one", "1/0", "", "1e-9", "1000", "1e999999999", "True"]
)
def test_bad_epsilon_is_refused(epsilon, out):
    result = leak("--epsilon", epsilon, "--out", str(out))
    assert result.exit_code == 2
    assert "--epsilon" in result.stderr
    assert "Traceback" not in result.output
    assert not out.exists()


def test_a_folder_that_does_not_exist_is_refused_before_anything_is_drawn(tmp_path):
    result = leak("--samples", "100000000", "--out", str(tmp_path / "nowhere" / "leak.svg"))
    assert result.exit_code == 2
    assert "--out" in result.stderr
    assert "does not exist" in " ".join(result.stderr.split())


def test_a_folder_is_no_picture(tmp_path):
    result = leak("--samples", "100", "--out", str(tmp_path))
    assert result.exit_code == 2
    assert "directory" in result.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_a_clean_error():
    result = leak("--samples", "100", "--out", "/dev/full")
    assert result.exit_code == 2
    assert "cannot be written" in " ".join(result.stderr.split())
    assert "Traceback" not in result.output


def test_names_with_characters_no_file_can_have(tmp_path):
    result = leak("--samples", "100", "--out", str(tmp_path / ("x" * 300 + ".svg")))
    assert result.exit_code == 2
    assert "Traceback" not in result.output
