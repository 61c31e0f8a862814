"""`lastbit mechanism`: what is drawn, what is explained, what is refused, and what stays secret."""

import json
import re
from fractions import Fraction

import pytest

from lastbit.cli.mechanism import number_on
from lastbit.mechanisms.gaussian import Gaussian
from lastbit.mechanisms.histogram import ThresholdedHistogram
from lastbit.mechanisms.laplace import Laplace
from lastbit.privacy.guarantees import ZCDP, ApproxDP, PureDP, from_json
from lastbit.privacy.neighbours import ADD_REMOVE
from lastbit.sampling import bits
from tests.cli.running import lastbit, read, refused, succeeded

SELECTIONS = ("exponential", "permute-and-flip", "report-noisy-max")
# one call for each mechanism, and how it is given data
CALLS = {
    "laplace": (("--sensitivity", "1", "--epsilon", "1/2"), ("--value", "42")),
    "gaussian": (("--sensitivity", "1", "--rho", "1/2"), ("--value", "42")),
    "randomized-response": (("--epsilon", "1"), ("--value", "yes")),
    **dict.fromkeys(
        SELECTIONS, (("--sensitivity", "1", "--epsilon", "1"), ("--utilities", "3,5,4"))
    ),
    "histogram": (
        ("--keys", "yes,no", "--keys-per-person", "1", "--epsilon", "1"),
        ("--counts", "yes=3,no=10"),
    ),
    "thresholded-histogram": (
        ("--keys-per-person", "1", "--epsilon", "1", "--delta", "1e-9"),
        ("--counts", "yes=3,no=1000"),
    ),
    "above-threshold": (
        ("--sensitivity", "1", "--epsilon", "1", "--threshold", "100"),
        ("--values", "3,999,4"),
    ),
}
names = pytest.mark.parametrize("name", CALLS)


def run(name: str, *more: str) -> str:
    return succeeded("mechanism", name, *CALLS[name][0], *more)


def guarantee(values: dict):
    return from_json(json.dumps(values["guarantee"]))


@pytest.fixture
def no_bits(monkeypatch):
    """Any attempt to draw fails."""

    def fail(*_: object) -> None:
        raise AssertionError("something was drawn")

    monkeypatch.setattr(bits.KeyStream, "fill", fail)
    monkeypatch.setattr(bits, "_system_bytes", fail)


# -- every mechanism --


@names
def test_nothing_is_drawn_without_data(name, no_bits):
    output = run(name)
    assert "Nothing was drawn and nothing was spent" in output
    for word in ("law", "theorem", "source", "guarantee", "error, 95 %", "error, 99 %"):
        assert re.search(rf"^{word} ", output, re.M), word
    assert read("mechanism", name, *CALLS[name][0])["release"] is None


def test_the_fixture_would_notice(no_bits):
    """Or the test above proves nothing."""
    result = lastbit("mechanism", "exponential", *CALLS["exponential"][0], "--utilities", "1,1")
    assert isinstance(result.exception, AssertionError)


@names
def test_with_data_the_release_alone_is_printed(name):
    assert len(run(name, *CALLS[name][1]).splitlines()) <= 3


@names
def test_an_explanation_ends_with_the_release(name):
    output = run(name, *CALLS[name][1], "--explain")
    assert "has seen the data" in " ".join(output.split())
    assert output.splitlines()[-1]


@names
def test_json_holds_the_guarantee(name):
    values = read("mechanism", name, *CALLS[name][0], *CALLS[name][1])
    assert values["mechanism"] == name
    assert values["release"] is not None
    assert set(values["accuracy"]) == {"0.05", "0.01"}
    assert guarantee(values).to_dict() == values["guarantee"]


@names
def test_an_explanation_depends_on_public_parameters_alone(name):
    """So that it may be published with the release: same count, other data, same page."""
    other = {
        "--value": {"randomized-response": "no"}.get(name, "7"),
        "--utilities": "100,200,300",
        "--counts": "yes=0,no=77",
        "--values": "0,0,0",
    }
    option, _ = CALLS[name][1]
    pages = [
        run(name, option, data, "--explain").split("All of this follows")[0]
        for data in (CALLS[name][1][1], other[option])
    ]
    assert pages[0] == pages[1]


# -- exact numbers --


def test_laplace_shows_its_exact_law():
    output = run("laplace")
    assert re.search(r"^noise scale +2$", output, re.M)
    assert re.search(r"^guarantee +pure differential privacy, ε = 0.5$", output, re.M)
    assert re.search(r"^error, 95 % .* at most 6$", output, re.M)
    assert re.search(r"^  x +0\.24491866 +0\.14855068 +1\.6487213$", output, re.M)
    assert re.search(r"^  x \+ 1 +0\.14855068 +0\.24491866 +0\.60653066$", output, re.M)


def test_laplace_releases_near_the_value_and_reads_negative_numbers():
    for value in ("42", "-42", "1e30"):
        printed = run("laplace", "--value", value)
        assert abs(int(printed) - int(Fraction(value))) < 200  # beyond with probability e**-100


def test_floats_need_a_grid():
    with_grid = ("--grid", "auto", "--value", "2.5")
    assert abs(float(run("laplace", *with_grid)) - 2.5) < 200
    words = refused("mechanism", "laplace", *CALLS["laplace"][0], "--value", "2.5")
    assert "--value is not a whole number; pass --grid auto" in words
    assert "rounding to it is counted" in run("laplace", "--grid", "1/1024")


def test_a_value_is_rounded_to_the_grid_once():
    lattice = Laplace(sensitivity=1, epsilon=1, grid="1/4").lattice
    for text, step in (("0.125", 0), ("0.375", 2), ("1/3", 1), ("0.1250000000000000000001", 1)):
        assert lattice.steps_of(number_on(lattice, Fraction(text), "--value")) == step


def test_gaussian_targets():
    assert guarantee(read("mechanism", "gaussian", *CALLS["gaussian"][0])) == ZCDP("1/2")
    target = ("--sensitivity", "1", "--epsilon", "1", "--delta", "1e-6")
    assert guarantee(read("mechanism", "gaussian", *target)) == ApproxDP(1, "1e-6")
    output = succeeded("mechanism", "gaussian", *target)
    deviation = Gaussian(sensitivity=1, epsilon=1, delta="1e-6").standard_deviation_upper
    shown = re.search(r"^deviation +(\S+), rounded up$", output, re.M)
    assert shown is not None
    assert deviation <= float(shown[1]) <= deviation * 1.00001
    raw = read("mechanism", "gaussian", "--sensitivity", "3", "--standard-deviation", "6")
    assert guarantee(raw) == ZCDP("1/8")


def test_randomized_response():
    assert run("randomized-response", "--value", "yes").strip() in ("yes", "no")
    assert run("randomized-response", "--value", "0").strip() in ("0", "1")
    output = run("randomized-response")
    assert re.search(r"^  0 +0\.73105858 +0\.26894142 +2\.7182818$", output, re.M)
    output = run("randomized-response", "--categories", "5", "--value", "4")
    assert int(output) in range(5)


@pytest.mark.parametrize("name", SELECTIONS)
def test_selections_pick_an_index_or_a_name(name, tmp_path):
    assert run(name, "--utilities", "0,1000,0").strip() == "1"  # else with e**-400
    assert run(name, "--utilities", "red=0,blue=1000").strip() == "blue"
    file = tmp_path / "utilities.csv"
    file.write_text("0\n0\n\n1000\n")
    assert run(name, "--file", str(file)).strip() == "2"
    file.write_text('\ufeffred,0\n"blue, dark",1000\n', "utf-8")
    assert run(name, "--file", str(file)).strip() == "blue, dark"
    call = ("mechanism", name, *CALLS[name][0], "--file", "-")
    assert succeeded(*call, given="5\n1000\n").strip() == "1"
    assert guarantee(read(*call[:-2], "--monotone")) == PureDP(1)


def test_selections_show_the_exact_law_of_two():
    output = run("exponential")
    assert re.search(r"^  2 +0\.73105858 +0\.5 +1\.4621172$", output, re.M)  # rate 1/2, lead 2
    output = succeeded(
        "mechanism", "permute-and-flip", "--sensitivity", "1", "--epsilon", "2", "--explain"
    )
    assert re.search(r"^  1 +0\.81606028 ", output, re.M)  # 1 - exp(-1)/2


def test_histograms(tmp_path):
    lines = run("histogram", "--counts", "no=1000").splitlines()
    assert lines[0] == "key,count"
    assert [line.split(",")[0] for line in lines[1:]] == ["yes", "no"]
    file = tmp_path / "counts.csv"
    file.write_text('key,count\npizza,1000\n"a, b",5000\nrare,1\n')
    call = ("mechanism", "thresholded-histogram", *CALLS["thresholded-histogram"][0])
    output = succeeded(*call, "--file", str(file))
    assert [line.rpartition(",")[0] for line in output.splitlines()] == ["key", '"a, b"', "pizza"]
    expected = ThresholdedHistogram(epsilon=1, delta="1e-9", keys_per_person=1)
    assert guarantee(read(*call)) == expected.guarantee
    assert re.search(r"^threshold +22, the least", succeeded(*call), re.M)
    pair = ("--neighbours", "change-one")
    assert (
        guarantee(read("mechanism", "histogram", *CALLS["histogram"][0])).neighbours == ADD_REMOVE
    )
    changed = guarantee(read("mechanism", "histogram", *CALLS["histogram"][0], *pair))
    assert changed.neighbours.relation == "change-one"


def test_what_a_histogram_prints_it_reads_again(tmp_path):
    file = tmp_path / "again.csv"
    file.write_text(run("histogram", "--counts", "yes=1000,no=2000"))
    assert run("histogram", "--file", str(file)).startswith("key,count\nyes,")


def test_above_threshold():
    assert run("above-threshold", "--values", "-900,999,4").split() == ["below", "above"]
    assert run("above-threshold", "--values", "-900,-999").split() == ["below", "below"]
    two = run("above-threshold", "--count", "2", "--values", "9999,-9999,9999,0")
    assert two.split() == ["above", "below", "above"]
    values = read("mechanism", "above-threshold", *CALLS["above-threshold"][0], "--values", "9999")
    assert values["release"] == [True]


# -- refusals --


@names
@pytest.mark.parametrize("bad", ["nan", "inf", "-1", "0", "", "one", "1/0", "1e99999"])
def test_a_bad_epsilon_is_refused(name, bad, no_bits):
    option = "--rho" if name == "gaussian" else "--epsilon"
    arguments = list(CALLS[name][0])
    arguments[arguments.index(option) + 1] = bad
    assert f"{option} " in refused("mechanism", name, *arguments, *CALLS[name][1])


@pytest.mark.parametrize("name", [name for name in CALLS if CALLS[name][0][0] == "--sensitivity"])
@pytest.mark.parametrize("bad", ["nan", "-1", "0", "x"])
def test_a_bad_sensitivity_is_refused(name, bad, no_bits):
    arguments = ("--sensitivity", bad, *CALLS[name][0][2:], *CALLS[name][1])
    assert "--sensitivity " in refused("mechanism", name, *arguments)


@names
def test_a_missing_parameter_is_named(name):
    assert "--" in refused("mechanism", name)


SECRET = "731777"


@names
def test_no_message_repeats_the_data(name, no_bits):
    """Bad data is refused before anything is drawn, in words that do not hold it."""
    option, _ = CALLS[name][1]
    for bad in (f"{SECRET}x", f"{SECRET}=x{SECRET}", f"{SECRET},,", f"{SECRET}=1,{SECRET}=1x"):
        words = refused("mechanism", name, *CALLS[name][0], option, bad)
        assert SECRET not in words
        assert option in words


def test_refused_files(tmp_path, no_bits):
    file = tmp_path / "bad.csv"
    call = ("mechanism", "histogram", *CALLS["histogram"][0], "--file", str(file))
    assert "cannot be read" in refused(*call)
    contents = {
        b"": "is empty",
        b"\n\n": "is empty",
        b"yes,1\nno\n": "line 2 of --file has 1 column; write 2 in every line",
        b"yes,1,7\nno,2,7\n": "line 1 of --file has 3 columns",
        b"yes,1\nno,2,9\n": "line 2 of --file has 3 columns",
        b"yes,1\nno,1.5\n": "line 2 of --file has a count that is not a whole number",
        b"yes,1\nno,-731777\n": "line 2 of --file has a count that is not a whole number",
        b"yes,1\nno,nan\n": "line 2 of --file has a count that is not a whole number",
        b"yes,1\nno," + b"9" * 2000 + b"\n": "line 2 of --file has a count",
        b"yes,1\nyes,2\n": "line 2 of --file has a key for the second time",
        b"yes,\xff\xfe\n": "not CSV text in UTF-8",
        b"yes,1\nmaybe,2\n": "key that was not declared",
    }
    for content, words in contents.items():
        file.write_bytes(content)
        said = refused(*call)
        assert words in said
        assert "731777" not in said
        assert "maybe" not in said
    assert "cannot be read" in refused(*call[:-1], str(tmp_path))
    file.write_text("yes,1\n")
    assert "are both given" in refused(*call, "--counts", "yes=1")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--sensitivity", "1"), "exactly one is needed"),
        (("--sensitivity", "1", "--rho", "1", "--epsilon", "1"), "exactly one is needed"),
        (("--sensitivity", "1", "--rho", "1", "--standard-deviation", "1"), "exactly one"),
        (("--sensitivity", "1", "--epsilon", "1"), "--delta is missing"),
        (("--sensitivity", "1", "--delta", "1e-6"), "--epsilon is missing"),
        (
            ("--sensitivity", "1", "--epsilon", "1", "--delta", "2"),
            "--delta is not between 0 and 1",
        ),
        (("--sensitivity", "1", "--rho", "1", "--method", "exact"), "pass --epsilon and --delta"),
        (("--sensitivity", "1", "--standard-deviation", "0"), "publish the value itself"),
        (("--sensitivity", "1", "--standard-deviation", "-1"), "--standard-deviation is negative"),
        (("--sensitivity", "1", "--rho", "1", "--grid", "1/3"), "--grid is not a power of two"),
        (("--sensitivity", "1", "--rho", "1", "--grid", "nan"), "--grid"),
        (
            ("--sensitivity", "1", "--epsilon", "2", "--delta", "1e-6", "--method", "classical"),
            "pass --method exact",
        ),
    ],
)
def test_gaussian_refusals_speak_of_options(arguments, words, no_bits):
    assert words in refused("mechanism", "gaussian", *arguments, "--value", "5")


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("randomized-response", ("--value", "2"), "pass a whole number from 0 to 1, or yes or no"),
        ("randomized-response", ("--categories", "3", "--value", "yes"), "from 0 to 2"),
        ("randomized-response", ("--categories", "1"), "--categories is below 2"),
        ("randomized-response", ("--categories", "9" * 20), "--categories are more than 2**32"),
        ("report-noisy-max", ("--utilities", "0.5,1"), "--grid auto"),
        ("exponential", ("--utilities", ""), "--utilities"),
        ("exponential", ("--utilities", "a=1,2"), "item 2 of --utilities is not like the rest"),
        ("histogram", ("--counts", "3,4"), "item 1 of --counts is not like the rest"),
        ("histogram", ("--counts", "maybe=4"), "key that was not declared"),
        ("above-threshold", ("--values", "1,2.5"), "--grid auto"),
        ("above-threshold", ("--count", "0"), "--count"),
    ],
)
def test_other_refusals(name, arguments, words, no_bits):
    assert words in refused("mechanism", name, *CALLS[name][0], *arguments)


@pytest.mark.parametrize("name", ["laplace", "gaussian", *SELECTIONS])
@pytest.mark.parametrize("size", ["1e300", "1e-300", "123456789/987654321"])
def test_absurd_sizes_never_end_in_a_traceback(name, size):
    option = "--rho" if name == "gaussian" else "--epsilon"
    result = lastbit("mechanism", name, "--sensitivity", "1", option, size)
    assert result.exit_code in (0, 2), result.exception
    assert "Traceback" not in result.output


def test_a_terminal_without_unicode_gets_ascii():
    from rich.console import Console

    from lastbit.cli.mechanism import explained_noise
    from lastbit.cli.output import page

    class Dumb(Console):
        encoding = "ascii"

    noise = Laplace(sensitivity=1, epsilon=1)
    parts = explained_noise(noise).page("laplace", noise.guarantee, drawn=False)
    text = page(Dumb(highlight=False, width=80), parts)
    assert text.isascii()
    assert "epsilon = 1" in text
