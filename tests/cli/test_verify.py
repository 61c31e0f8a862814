"""`lastbit verify`: somebody's code and the shipped mechanisms, judged and certified."""

from __future__ import annotations

import json
import sys
from fractions import Fraction
from pathlib import Path
from xml.etree import ElementTree

import pytest

from lastbit.checker.dispatch import problem_of
from lastbit.cli.loading import Loaded, current_folder, loaded
from lastbit.cli.verify import STANDS_FOR, pairs_of
from lastbit.errors import InvalidParameter
from lastbit.mechanisms.rounded_laplace import rounded_bounds
from tests.cli.running import lastbit, refused, succeeded

CODE = '''
import math
import random

import numpy as np

NOT_A_FUNCTION = 3

def naive(value, u):
    """The inverse of the cumulative law, as in many a numpy script."""
    centred = u - 0.5
    return value - np.sign(centred) * np.log(1 - 2 * np.abs(centred))

def signed(x, v, s, scale=1.0):
    return x + s * (scale * math.log(v))

def rounded(x, v, s):
    return min(max(0.25 * round((x + s * math.log(v)) / 0.25), -4.0), 4.0)

def coin(value, u, *, keep=0.75):
    return 1.0 if u < (keep if value > 0 else 1 - keep) else 0.0

def tent(value, u):
    return float(round(min(u, 1 - u) * 8 + (value > 0)))

def blind(value, u):
    return 3.0 * u

def impure(value, u):
    return value + random.random()

def whole(value, u):
    return int(value)

def raises(value, u):
    return [][0]

def demanding(value, u, *, epsilon):
    return value

def one(value):
    return value

def four(value, u, sign, more):
    return value

def loop(value, u):
    return value + int(u * 4)

def normal(u, v, sigma):
    return sigma * math.sqrt(-2.0 * math.log(1.0 - u)) * math.cos(2.0 * math.pi * v)

def planar(u, v, w, scale):
    r = -scale * (math.log(1.0 - u) + math.log(1.0 - v))
    return r * math.cos(2.0 * math.pi * w), r * math.sin(2.0 * math.pi * w)

def place(x, y, u, v, w):
    east, north = planar(u, v, w, 2.0)
    return 1.0 * round(x + east), 1.0 * round(y + north)

def one_logarithm(u, v, w):
    r = -math.log(1.0 - u)
    return r * math.cos(2.0 * math.pi * w), r * math.sin(2.0 * math.pi * w)

def noisy_max(run, queries):
    run.emit(run.largest([query + run.laplace(2) for query in queries]))

def response(run, bits):
    u = run.uniform()
    run.emit(bits[0] if u < 0.75 else 1 - bits[0])

def typed(run, queries):
    run.emit(queries[0] if isinstance(queries[0], float) else queries[0] + run.laplace(1))
'''


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sketches.py").write_text(CODE, "utf-8")
    monkeypatch.delitem(sys.modules, "sketches", raising=False)
    return tmp_path


def judged(status: int, *arguments: str) -> str:
    """What is printed, folded to one line, with this exit status."""
    result = lastbit("verify", *arguments)
    assert result.exit_code == status, result.output
    assert result.stderr == ""
    assert max(len(line) for line in result.stdout.splitlines()) <= 80
    return " ".join(result.stdout.split())


def read(name: str) -> dict:
    return json.loads(Path(name).read_text("utf-8"))


# ---------------------------------------------------------------- normal noise, and programs


def test_normal_noise_is_certified_with_its_delta() -> None:
    asked = ("--epsilon", "1", "--grid", "1", "--region", "-20", "20", "--certificate", "out.json")
    words = judged(0, "gaussian", "sketches:normal", "--parameter", "sigma=8", *asked)
    assert "sketches:normal, ε = 1 CERTIFIED ε ≤ 1, δ ≤ " in words
    assert Fraction(read("out.json")["claim"]["delta"]) < Fraction(1, 10**9)
    assert "ACCEPTED" in succeeded("check", "out.json")


SQUARE = ("--sensitivity", "1", "--region", "-8", "8", "-8", "8")


def test_noise_of_the_plane_is_certified() -> None:
    asked = ("--parameter", "scale=2", "--grid", "1", *SQUARE, "--certificate", "out.json")
    words = judged(0, "polar", "sketches:planar", *asked)
    assert "sketches:planar, rate 0.5 CERTIFIED ε ≤ 0.5 + " in words
    assert "ACCEPTED" in succeeded("check", "out.json")
    words = judged(0, "polar", "sketches:place", *SQUARE, "--values", "-1", "1", "-2", "2")
    assert "points [-1, 1] × [-2, 2]" in words


def test_the_shipped_noise_of_the_plane_is_certified() -> None:
    asked = ("--epsilon", "1", "--within", "200", "--grid", "4", "--half-width", "2000")
    words = judged(0, "polar-laplace", *asked, "--certificate", "out.json", "--html", "out.html")
    assert "PolarLaplace, ε = 1 CERTIFIED ε ≤ " in words
    claim = read("out.json")["claim"]
    assert Fraction(claim["epsilon"]) <= 1 == Fraction(claim["sensitivity"]) / 200
    assert "ACCEPTED" in succeeded("check", "out.json")


@pytest.mark.parametrize("form", ["extended80", "binary128"])
def test_snapping_in_wide_floats(form: str) -> None:
    asked = ("--epsilon", "0.7", "--bound", "100000", "--format", form, "--certificate", "out.json")
    assert "CERTIFIED ε ≤ 0.7 + " in judged(0, "snapping", *asked)
    assert read("out.json")["claim"]["delta"].endswith("p-16380")
    assert "ACCEPTED" in succeeded("check", "out.json")


def test_programs_are_certified_by_a_coupling() -> None:
    asked = ("--epsilon", "1", "--inputs", "3", "--certificate", "out.json")
    words = judged(0, "program", "sketches:noisy_max", *asked)
    assert "sketches:noisy_max, 3 inputs CERTIFIED ε ≤ 1, δ ≤ " in words
    assert "ACCEPTED" in succeeded("check", "out.json")
    bits = ("--inputs", "1", "--neighbours", "one", "--value", "0", "--value", "1")
    words = judged(0, "program", "sketches:response", "--epsilon", "1.1", *bits)
    assert "sketches:response, one input CERTIFIED ε ≤ 1.1" in words


# ---------------------------------------------------------------- somebody's function


@pytest.mark.evidence
def test_naive_laplace_is_refuted_by_a_concrete_witness() -> None:
    files = ("--certificate", "out.json", "--html", "out.html", "--latex", "out.tex")
    words = judged(1, "sketches:naive", "--epsilon", "1", "--inputs", "0", "1", *files)
    assert "REFUTED: sketches:naive loses more than ε = 1" in words
    assert "with probability 0 from the input" in words
    whole = read("out.json")
    assert whole["kind"] == "refutation"
    low, high = (repr(float.fromhex(end)) for end in whole["claim"]["outputs"])
    assert f"lies from {low} to {high}" in words or f"The output is {low}" in words
    assert set(whole["claim"]["inputs"]) == {(0.0).hex(), (1.0).hex()}
    assert "ACCEPTED" in succeeded("check", "out.json")
    assert "the loss is infinite" in Path("out.html").read_text("utf-8")
    assert r"\begin{tabular}" in Path("out.tex").read_text("utf-8")


def test_the_same_rounded_is_certified() -> None:
    arguments = ("--grid", "1/4", "--region", "-8", "8", "--certificate", "out.json")
    words = judged(0, "sketches:naive", "--epsilon", "1.000001", *arguments)
    assert "CERTIFIED ε ≤ 1 + 3.525e-8" in words
    assert "The code itself does not round." in words
    assert 1 < Fraction(read("out.json")["claim"]["epsilon"]) < Fraction("1.000001")
    assert "ACCEPTED" in succeeded("check", "out.json")


def test_a_proof_that_does_not_reach_epsilon_says_so() -> None:
    arguments = ("--grid", "1/4", "--region", "-4", "4", "--certificate", "out.json")
    words = judged(1, "sketches:signed", "--epsilon", "1", *arguments)
    assert "ABOVE ε: sketches:signed is certified, but for ε = 1 +" in words
    assert problem_of(read("out.json")) is None


@pytest.mark.evidence
def test_code_that_rounds_is_taken_as_it_is() -> None:
    promise = ("sketches:rounded", "--epsilon", "1.0001", "--region", "-4", "4")
    words = judged(0, *promise, "--grid", "0.25")
    assert "CERTIFIED" in words and "does not round" not in words
    assert "--grid is not what the code rounds to, 0.25" in refused(
        "verify", *promise, "--grid", "0.5"
    )
    # the same by its exact law: 33 outputs
    words = judged(0, "sketches:rounded", "--epsilon", "1.0001", "--inputs", "0", "1")
    assert "WITHIN ε, these inputs" in words


def test_the_first_line_says_if_monotone_was_only_probed() -> None:
    """A product through 0 is not followed; cases of the uniform are."""
    code = """
def square(value, u):
    return 0.25 * round((value + (u - 0.5) * (u - 0.5)) / 0.25)
"""
    Path("probed.py").write_text(code, "utf-8")
    sys.modules.pop("probed", None)
    asked = ("--epsilon", "9", "--inputs", "0", "0.01", "--sensitivity", "1", "--split", "0.5")
    result = lastbit("verify", "probed:square", *asked, "--certificate", "probed.json")
    assert "if monotone, only probed" in result.stdout.splitlines()[0]
    checked = succeeded("check", "probed.json")
    assert "ACCEPTED if monotone, only probed" in checked.splitlines()[0]
    assert read("probed.json")["claim"]["monotone"] == "probed"
    words = judged(0, "sketches:coin", "--epsilon", "1.0987", "--inputs", "0", "1")
    assert "probed" not in words and "proved from its steps" in words


def test_few_outputs_have_an_exact_loss() -> None:
    arguments = ("--inputs", "0", "1", "--certificate", "out.json", "--html", "out.html")
    words = judged(0, "sketches:coin", "--epsilon", "1.0987", *arguments)
    assert "between 1.09861228866810969139 and 1.0986122886681096914" in words
    assert "3/4 (0.75) from the input 0.0, and with probability 1/4 (0.25) from 1.0" in words
    assert read("out.json")["kind"] == "law"
    assert "<svg" in Path("out.html").read_text("utf-8")
    words = judged(1, "sketches:coin", "--epsilon", "1.0986", "--inputs", "0", "1")
    assert words.startswith("REFUTED: sketches:coin loses more than ε = 1.0986")
    words = judged(0, "sketches:coin", "--epsilon", "0.1", "--parameter", "keep=0.52")
    assert "4 pairs, of which this is the worst" in words
    assert "parameters keep = 0.52" in words


def test_the_worst_pair_counts() -> None:
    pairs = ("--inputs", "1", "2", "--inputs", "0", "1", "--inputs", "2", "3")
    words = judged(1, "sketches:coin", "--epsilon", "1", *pairs)
    assert "between the inputs 0.0 and 1.0" in words


def test_generators_and_splits() -> None:
    once = ("--inputs", "0", "1", "--split", "0.5", "--uniform", "grid53-open")
    words = judged(1, "sketches:tent", "--epsilon", "1", *once)
    assert "the loss is infinite" not in words and "never comes" in words
    assert "k/2**53, k from 1 on" in words.replace("(k)", "k")
    message = refused("verify", "sketches:tent", "--epsilon", "1", "--inputs", "0", "1")
    assert "pass --split with the points" in message
    message = refused(
        "verify", "sketches:signed", "--epsilon", "1", "--inputs", "0", "1", "--uniform", "grid53"
    )
    assert "fails at the uniform 0.0" in message and "--uniform grid53-open" in message


def test_json() -> None:
    result = lastbit("verify", "sketches:coin", "--epsilon", "1", "--inputs", "0", "1", "--json")
    assert result.exit_code == 1
    answer = json.loads(result.stdout)
    assert answer["verdict"] == "refuted" and answer["kind"] == "law"
    assert answer["claim"]["probabilities"] == ["3/4", "1/4"]
    assert answer["written"] == {}


def test_a_shipped_function_with_its_parameters() -> None:
    code = "lastbit.mechanisms.snapping:snapped"
    parameters = ("--parameter", "epsilon=1", "--parameter", "bound=4")
    words = judged(0, code, "--epsilon", "1.000001", "--inputs", "3", "4", *parameters)
    assert "WITHIN ε" in words and "bound = 4.0, epsilon = 1.0" in words


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nowhere_at_all:f", "--epsilon", "1"), "nowhere_at_all, which was not found"),
        (("sketches.deeper:f", "--epsilon", "1"), "sketches.deeper"),
        (("sketches:nothing", "--epsilon", "1"), "has no function nothing"),
        (("sketches:NOT_A_FUNCTION", "--epsilon", "1"), "has no function NOT_A_FUNCTION"),
        (("sketches:_hidden", "--epsilon", "1"), "is not named as module:function"),
        (("a:b:c", "--epsilon", "1"), "is not named as module:function"),
        (("sketches:one", "--epsilon", "1"), "does not take a value and a uniform"),
        (("sketches:four", "--epsilon", "1"), "does not take a value and a uniform"),
        (("sketches:demanding", "--epsilon", "1"), "needs a value for epsilon"),
        (("sketches:impure", "--epsilon", "1"), "two outputs for the same arguments"),
        (("sketches:whole", "--epsilon", "1"), "returns int, not a float"),
        (("sketches:raises", "--epsilon", "1"), "raises IndexError"),
        (("sketches:coin", "--epsilon", "nan"), "--epsilon"),
        (("sketches:coin", "--epsilon", "0"), "--epsilon"),
        (("sketches:coin", "--epsilon", "-1"), "--epsilon"),
        (("sketches:coin", "--epsilon", "one"), "--epsilon"),
        (("sketches:coin",), "--epsilon"),
        (("sketches:coin", "--epsilon", "1", "--sensitivity", "0"), "--sensitivity"),
        (("sketches:coin", "--epsilon", "1", "--sensitivity", "1e400"), "beyond floats"),
        (("sketches:coin", "--epsilon", "1", "--inputs", "0", "2"), "further apart"),
        (("sketches:coin", "--epsilon", "1", "--inputs", "1", "1"), "are equal"),
        (("sketches:coin", "--epsilon", "1", "--inputs", "inf", "1"), "--inputs"),
        (("sketches:coin", "--epsilon", "1", "--split", "1"), "--split is not between 0 and 1"),
        (("sketches:coin", "--epsilon", "1", "--uniform", "other"), "--uniform"),
        (("sketches:coin", "--epsilon", "1", "--parameter", "keep"), "name=number"),
        (("sketches:coin", "--epsilon", "1", "--parameter", "keep=x"), "--parameter keep"),
        (("sketches:coin", "--epsilon", "1", "--parameter", "hold=1"), "names hold"),
        (("sketches:coin", "--epsilon", "1", "--grid", "1"), "--region is missing"),
        (("sketches:coin", "--epsilon", "1", "--region", "0", "1"), "--grid is missing"),
        (("sketches:naive", "--epsilon", "1", "--grid", "0", "--region", "-1", "1"), "above 0"),
        (("sketches:naive", "--epsilon", "1", "--grid", "-1", "--region", "-1", "1"), "--grid"),
        (("sketches:naive", "--epsilon", "1", "--grid", "1", "--region", "1", "-1"), "--region"),
        (("sketches:naive", "--epsilon", "1", "--grid", "1", "--region", "0", "1.5"), "--region"),
        (("sketches:loop", "--epsilon", "1", "--grid", "1", "--region", "0", "1"), "sketches.py"),
        (
            ("sketches:naive", "--epsilon", "1", "--grid", "1", "--region", "0", "1",
             "--inputs", "0", "1"),
            "--inputs or --split",
        ),
        (("foo", "--epsilon", "1"), "or say cases, gaussian, polar, polar-laplace, pr"),
        (("polar", "sketches:one_logarithm", "--grid", "1", *SQUARE), "made of one logarithm"),
        (("polar", "sketches:place", "--grid", "1", *SQUARE), "takes other inputs than u, v, w"),
        (("polar", "sketches:absent", "--grid", "1", *SQUARE), "is not there"),
        (("polar", "sketches:place", "--grid", "nan", *SQUARE), "--grid"),
        (("polar", "sketches:place", "--sensitivity", "0", *SQUARE[2:]), "sensitivity"),
        (("polar", "sketches:place", *SQUARE[:2], "--region", "8", "0", "8", "0"), "is empty"),
        (("polar-laplace", "--epsilon", "-1", "--grid", "4", "--half-width", "2000"), "epsilon"),
        (("polar-laplace", "--epsilon", "1", "--grid", "3", "--half-width", "9"), "power of two"),
        (("program", "sketches:typed", "--epsilon", "1", "--inputs", "1"), "asks what kind"),
        (("program", "sketches:noisy_max", "--epsilon", "1", "--inputs", "0"), "--inputs"),
        (("program", "sketches:noisy_max", "--epsilon", "1/2", "--inputs", "2"), "SEQ: where"),
        (("program", "sketches:absent", "--epsilon", "1", "--inputs", "2"), "is not there"),
        (("gaussian", "sketches:blind", "--epsilon", "1", "--grid", "1", "--region", "0", "1"),
         "in the order u, v"),
    ],
)  # fmt: skip
def test_refusals(arguments: tuple[str, ...], words: str) -> None:
    assert words in refused("verify", *arguments)


@pytest.mark.parametrize("option", ["--certificate", "--html", "--latex"])
def test_files_that_cannot_be_written(option: str, folder: Path) -> None:
    coin = ("verify", "sketches:coin", "--epsilon", "2", "--inputs", "0", "1")
    assert f"{option} names the folder" in refused(*coin, option, "nowhere/out")
    (folder / "taken").mkdir()
    assert option in refused(*coin, option, "taken")
    assert "names another file of this command" in refused(
        *coin, "--html", "same", "--latex", "same"
    )


def test_code_that_cannot_be_imported(folder: Path) -> None:
    (folder / "broken_sketch.py").write_text("import math\nraise RuntimeError('secret')\n")
    (folder / "quitting_sketch.py").write_text("raise SystemExit(3)\n")
    (folder / "lacking_sketch.py").write_text("import a_module_that_is_not_there\n")
    for name in ("broken_sketch", "quitting_sketch", "lacking_sketch"):
        message = refused("verify", f"{name}:f", "--epsilon", "1")
        assert "whose code raises" in message and "secret" not in message


@pytest.mark.evidence
def test_nothing_found_proves_nothing() -> None:
    message = refused("verify", "sketches:blind", "--epsilon", "1", "--inputs", "0", "1")
    assert "nothing is proved" in message and "--grid and --region" in message


def test_the_path_is_left_as_it_was() -> None:
    before = list(sys.path)
    refused("verify", "sketches:nothing", "--epsilon", "1")
    judged(0, "sketches:coin", "--epsilon", "2", "--inputs", "0", "1")
    assert sys.path == before


def test_pairs_are_neighbours() -> None:
    for apart in (Fraction(1), Fraction(1, 10), Fraction(10**6, 7)):
        pairs = pairs_of((), apart)
        assert len(pairs) == 4
        assert all(0 < Fraction(y) - Fraction(x) <= apart for x, y in pairs)
    with pytest.raises(InvalidParameter, match="further apart"):
        pairs_of(((Fraction(0), Fraction(2)),), Fraction(1))


def test_arguments_may_have_any_names() -> None:
    with current_folder():
        found = loaded("sketches:signed", {"scale": 2.0})
        assert isinstance(found, Loaded) and found.signs == (-1, 1)
        assert found(1.0, 1.0, -1) == 1.0
        assert loaded("sketches:coin", {}).signs is None


def test_cases_of_code_with_a_loss_for_each_output(folder: Path) -> None:
    text = "min(max(1.0 * round(min(max(value, -64.0), 64.0) + sign * math.log(u)), -64.0), 64.0)"
    (folder / "snap_sketch.py").write_text(
        f"import math\n\n\ndef snapped(value, u, sign):\n    return {text}\n"
    )
    code = ("cases", "snap_sketch:snapped", "--ln-ulps", "1/2")
    files = ("--certificate", "c.json", "--html", "c.html", "--latex", "c.tex")
    words = judged(0, *code, "--epsilon", "1.01", *files)
    assert "CERTIFIED ε ≤ 1 + 3.12" in words and "loss of -63 to 63" in words
    assert problem_of(read("c.json")) is None
    assert "u ∈ [G(x - a), G(x - b))" in Path("c.html").read_text("utf-8")
    assert r"\textsc{Axunif}" in Path("c.tex").read_text("utf-8")
    assert "widen the noise, or promise more" in judged(1, *code, "--epsilon", "1")
    for bad, remedy in (
        (("--epsilon", "-1"), "above 0"),
        (("--epsilon", "2", "--sensitivity", "0"), "above 0"),
        (("--epsilon", "2", "--uniform", "grid53"), "AXUNIF: the uniform is too coarse"),
        (("--epsilon", "2", "--region", "-3", "3"), "clamps its result to another region"),
        (("--epsilon", "2", "--ln-ulps", "1/8"), "LN: the rule is for logarithms"),
    ):
        assert remedy in refused("verify", *code, *bad)
    assert "is not there" in refused("verify", "cases", "snap_sketch:no", "--epsilon", "1")


# ---------------------------------------------------------------- shipped mechanisms


def test_snapping(folder: Path) -> None:
    files = ("--certificate", "s.json", "--html", "s.html", "--latex", "s.tex")
    words = judged(0, "snapping", "--epsilon", "0.7", "--bound", "32", *files)
    assert "CERTIFIED ε ≤ 0.7 + 2.036e-14" in words
    assert "nearest to what you wrote" in words
    whole = read("s.json")
    assert Fraction(whole["claim"]["epsilon"]) == Fraction(0.7)
    assert problem_of(whole) is None
    page = Path("s.html").read_text("utf-8")
    assert "OVER BOTH" in page and "lastbit check s.json" in page
    ElementTree.fromstring(page[page.index("<svg") : page.index("</svg>") + 6])
    assert r"\textsc{Below}" in Path("s.tex").read_text("utf-8")
    assert {p.name for p in folder.iterdir()} >= {"s.json", "s.html", "s.tex"}


def test_snapping_in_other_formats_and_with_delta() -> None:
    words = judged(0, "snapping", "--epsilon", "1", "--bound", "8", "--format", "binary16")
    assert "in binary16" in words and "nearest to what" not in words
    words = judged(0, "snapping", "--epsilon", "1", "--bound", "1024")
    assert "δ > 0" in words and "but for outputs that δ pays for" in words


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--epsilon", "nan", "--bound", "1"), "--epsilon"),
        (("--epsilon", "0", "--bound", "1"), "--epsilon"),
        (("--epsilon", "1000", "--bound", "1"), "--epsilon"),
        (("--epsilon", "1", "--bound", "-1"), "--bound"),
        (("--epsilon", "1", "--bound", "1e30"), "--bound"),
        (("--epsilon", "1"), "--bound"),
        (("--epsilon", "1", "--bound", "1", "--format", "binary8"), "--format"),
    ],
)
def test_snapping_refuses(arguments: tuple[str, ...], words: str) -> None:
    assert words in refused("verify", "snapping", *arguments)


NOISE = ("rounding", "--epsilon", "1/2", "--sensitivity", "1")


def test_rounding() -> None:
    arguments = ("--grid", "1/16", "--region", "-100", "100", "--certificate", "r.json")
    words = judged(0, *NOISE, *arguments)
    assert "CERTIFIED ε ≤ 0.5 +" in words and "RoundedLaplace(sensitivity=1" in words
    whole = read("r.json")
    assert whole["assumptions"][-1] == STANDS_FOR
    assert problem_of(whole) is None
    own = rounded_bounds(scale=Fraction(2), cell=Fraction(1, 16), bound=Fraction(100))
    assert own is not None
    proved = Fraction(whole["body"]["excess"])
    # two proofs of one thing, made in different ways
    assert own.excess / 3 < proved < 3 * own.excess


@pytest.mark.evidence
def test_the_least_grid_and_the_largest_region() -> None:
    target = ("--target", "0.500001", "--certificate", "r.json")
    judged(0, *NOISE, "--region", "-100", "100", *target)
    claim = read("r.json")["claim"]
    least = Fraction(claim["cell"])
    assert Fraction(claim["epsilon"]) <= Fraction("0.500001")
    half = str(least / 2)
    words = judged(1, *NOISE, "--region", "-100", "100", "--grid", half, "--target", "0.500001")
    assert words.startswith("ABOVE the target")
    judged(0, *NOISE, "--grid", "1/16", *target)
    assert Fraction(read("r.json")["claim"]["region"][1]) > 100


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "--grid and --region are not both given"),
        (("--grid", "1/16"), "are not both given"),
        (("--target", "1"), "are not both given"),
        (("--grid", "0", "--region", "-1", "1"), "without rounding"),
        (("--grid", "1/10", "--region", "-1", "1"), "--grid is not a power of two"),
        (("--grid", "1/16", "--region", "0", "1"), "--region is not symmetric"),
        (("--grid", "1/16", "--region", "1", "-1"), "--region"),
        (("--grid", "1/16", "--region", "-1", "1", "--target", "0"), "--target"),
        (("--grid", "1/16", "--target", "0.1"), "larger epsilon"),
        (("--grid", "1e-30", "--region", "-1", "1"), "--grid"),
    ],
)
def test_rounding_refuses(arguments: tuple[str, ...], words: str) -> None:
    assert words in refused("verify", *NOISE, *arguments)


def test_every_help_has_an_example_and_says_that_code_is_run() -> None:
    for name in ("module:function", "snapping", "rounding"):
        assert "Example: lastbit verify" in succeeded("verify", name, "--help")
    assert "Its code is run" in " ".join(succeeded("verify", "a:b", "--help").split())
