"""`lastbit audit`: what it says, what it refuses, and what it leaves to read."""

from __future__ import annotations

import json
import math
import shlex
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lastbit.audit import AuditResult, Condition, Feature, OutputEvent, RangeEvent, last_place, rows
from lastbit.cli import audit
from lastbit.cli.audit import LIMIT, in_words, pairs_for, pairs_in, story_of, whole_numbers
from lastbit.cli.law_panels import readable
from lastbit.cli.loading import foreign_code, subject_of
from lastbit.errors import InvalidParameter
from tests.cli.running import lastbit, refused, succeeded

CODE = '''
import itertools
from fractions import Fraction

import numpy as np

import lastbit as lb
from lastbit.verify.running.code import Code

generator = np.random.default_rng(20240501)
laplace = lb.Laplace(sensitivity=1, epsilon=2)
pick = lb.ReportNoisyMax(sensitivity=1, epsilon=1)
coin_code = Code("coins:coin")
floored_code = Code("coins:floored")
NOT_A_MECHANISM = 3

def plain(value, size):
    """The textbook's noise: its last bits tell."""
    return generator.laplace(value, 1, size)

def counted(value, size):
    """Half of the noise that epsilon = 1 needs."""
    return value + np.asarray(lb.discrete_laplace("1/2", size=size))

def honest(value, size):
    return value + np.asarray(lb.discrete_laplace(1, size=size))

def one_by_one(value, scale=1.0):
    return value + scale * generator.laplace()

def by_name(value, scale=2, size=None):
    return generator.laplace(value, scale, size)

def vector(value, size):
    return np.rint(value + generator.laplace(0, 1, (size, len(value))))

def word(value):
    return "yes" if generator.random() < (0.9 if value else 0.2) else "no"

def loud(value, size):
    print("somebody's words")
    return [0.0] * size

def uniform(value, u):
    return value + u

def three(value, more, most):
    return value

def raises(value):
    raise KeyError("no such value")

def quits(value):
    raise SystemExit(0)

def scalar(value, size):
    return 1.0

class Curator:
    """Publishes the truth once in 2**60 runs."""
    def law(self, value):
        rare = Fraction(1, 2**60)
        return {"quiet": 1 - rare, "the truth": rare} if value else {"quiet": 1}

curator = Curator()

class Bare:
    """Releases the value, and states the law of noise."""
    release = staticmethod(lambda value: value)
    law = staticmethod(lb.Laplace(sensitivity=1, epsilon=1).law)

class Shifted(Bare):
    """As private as it says, but of another law."""
    release = staticmethod(lambda value: 1 + lb.Laplace(sensitivity=1, epsilon=1).release(value))

bare, shifted = Bare(), Shifted()
'''
COINS = """
import math

def coin(value, u):
    return 1.0 if u < (0.75 if value > 0 else 0.25) else 0.0

def floored(value, u):
    return float(math.floor(u + (0.75 if value > 0 else 0.25)))
"""
QUICK = ("--samples", "4000")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own_noise.py").write_text(CODE, "utf-8")
    (tmp_path / "coins.py").write_text(COINS, "utf-8")
    for name in ("own_noise", "coins"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


def certified(*arguments: str) -> str:
    """What it printed of a violation: plain, with the exit status 1."""
    result = lastbit("audit", *arguments)
    assert result.exit_code == 1, result.output
    assert result.stderr == ""
    assert "\x1b" not in result.stdout
    assert "--json" in arguments or max(map(len, result.stdout.splitlines())) <= 80
    return result.stdout


def test_too_little_noise_is_certified_and_the_command_says_so_again() -> None:
    out = certified("own_noise:counted", "--epsilon", "1", *QUICK)
    for words in ("refuted: ε ≥ 1.", "claimed", "event", "inputs", "seen", "again", LIMIT):
        assert words in out
    again = " ".join(out.split("again  ")[1].split(LIMIT)[0].split())
    assert shlex.split(again)[:4] == ["lastbit", "audit", "own_noise:counted", "--epsilon"]
    assert "refuted" in certified(*shlex.split(again)[2:])


def test_a_confidence_is_one_minus_the_error_and_is_said() -> None:
    out = certified("own_noise:counted", "--epsilon", "1", *QUICK, "--confidence", "0.9")
    assert "certified at 90 % confidence: wrong with probability at most 0.1" in " ".join(
        out.split()
    )
    assert "--error 0.1" in " ".join(out.split())
    found = json.loads(certified("own_noise:counted", "--epsilon", "1", *QUICK, "--json"))
    assert found["confidence"] == "999999/1000000"


def test_honest_noise_is_not_accused() -> None:
    out = succeeded("audit", "own_noise:honest", "--epsilon", "1", *QUICK)
    assert "nothing found" in out
    assert LIMIT in out
    assert "refutes ε = 1" in out


def test_last_bits_are_seen_and_explained() -> None:
    out = certified("own_noise:plain", "--epsilon", "1", *QUICK)
    assert "refuted" in out


def test_json_holds_the_same_with_exact_numbers() -> None:
    found = json.loads(certified("own_noise:counted", "--epsilon", "1", *QUICK, "--json"))
    assert found["verdict"] == "refuted"
    assert found["broken"] is True
    assert found["exact"] is False
    assert found["epsilon"] == "1"
    assert Fraction(found["error"]) == Fraction(1, 10**6)
    assert 1 < found["epsilon_lower"] < 2
    assert found["trials"] + found["other_trials"] == 8000
    assert found["limits"][0] == LIMIT
    assert found["command"].startswith("lastbit audit own_noise:counted")


def test_the_bound_is_below_what_the_counts_suggest() -> None:
    found = json.loads(certified("own_noise:counted", "--epsilon", "1", *QUICK, "--json"))
    shares = found["hits"] / found["trials"], found["other_hits"] / found["other_trials"]
    assert found["epsilon_lower"] < math.log(shares[0] / shares[1])


def test_laws_decide_where_they_are_known() -> None:
    out = certified("own_noise:laplace", "--epsilon", "1.9")
    assert "exact laws" in out
    assert "ε ≥ 2 - " in out
    assert "nothing found" in succeeded("audit", "own_noise:laplace", "--epsilon", "2")


def test_a_curator_is_caught_by_its_law() -> None:
    out = certified("own_noise:curator", "--epsilon", "1")
    assert "∞" in out
    assert "the truth" in out


@pytest.mark.evidence
def test_a_law_that_its_releases_contradict_is_not_believed() -> None:
    out = " ".join(certified("own_noise:bare", "--epsilon", "1", *QUICK).split())
    assert "refuted: ε ≥ " in out and "is not that of its releases" in out
    out = " ".join(certified("own_noise:shifted", "--epsilon", "1", *QUICK).split())
    assert "the law is not that of release" in out and "No event was found" in out
    found = json.loads(certified("own_noise:shifted", "--epsilon", "1", *QUICK, "--json"))
    assert found["verdict"] == "false law" and not found["broken"] and not found["exact"]
    assert found["basis"] == "samples" and found["contradiction"]


def test_what_an_exact_verdict_rests_on_is_said() -> None:
    out = " ".join(succeeded("audit", "own_noise:laplace", "--epsilon", "2").split())
    assert "rests on the law, which 4,096 releases do not contradict" in out
    out = " ".join(certified("own_noise:curator", "--epsilon", "1").split())
    assert "rests on the law alone" in out
    out = " ".join(succeeded("audit", "own_noise:coin_code", "--epsilon", "1.1").split())
    assert "worked out by running it" in out


def test_an_estimate_above_the_claim_is_said() -> None:
    close = example(epsilon_lower=0.99, delta_lower=0.0, estimate=1.02)
    assert any("pass more --seconds" in words for words in story_of("a:b", close, "").sentences)
    assert "run it longer" in str(close)
    below = example(epsilon_lower=0.9, delta_lower=0.0, estimate=0.95)
    assert len(story_of("a:b", below, "").sentences) == 1


def test_code_of_one_uniform_is_judged_by_its_law() -> None:
    assert "1.0986" in certified("own_noise:coin_code", "--epsilon", "1")
    assert "nothing found" in succeeded("audit", "own_noise:coin_code", "--epsilon", "1.1")


@pytest.mark.evidence
def test_code_that_is_only_probed_to_be_monotone_is_judged_by_samples() -> None:
    """Its law chooses the event; nothing is called exact, and the first line says so."""
    asked = ("own_noise:floored_code", "--samples", "9000")
    words = succeeded("audit", *asked, "--epsilon", "2")
    assert "monotone only probed" in words.splitlines()[0]
    assert "only probed, not proved" in " ".join(words.split())
    assert "exact law" not in words
    found = json.loads(certified(*asked, "--epsilon", "1/2", "--json"))
    assert found["verdict"] == "refuted" and found["monotone"] == "probed"
    assert found["exact"] is False and found["error"] == "1/1000000" and found["hits"]
    assert "none: exact laws" in succeeded("audit", "own_noise:coin_code", "--epsilon", "2")


@pytest.mark.evidence
def test_vectors_are_made_up_and_one_entry_moves_unless_told() -> None:
    asked = ("own_noise:vector", "--epsilon", "1", "--dimension", "2")
    assert "nothing found" in succeeded("audit", *asked, "--samples", "500")
    assert "refuted" in certified(*asked, "--neighbours", "all", "--samples", "3000")


def test_integers_for_mechanisms_that_take_no_floats() -> None:
    options = ("--epsilon", "1", "--dimension", "3", "--neighbours", "all")
    assert "nothing found" in succeeded("audit", "own_noise:pick", *options)


def test_events_about_words_name_the_words() -> None:
    out = certified("own_noise:word", "--epsilon", "1", "--samples", "1000")
    assert "the output is 'no'" in out or "the output is 'yes'" in out


def test_what_a_mechanism_prints_is_not_the_answer() -> None:
    result = lastbit("audit", "own_noise:loud", "--epsilon", "1", *QUICK, "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["verdict"] == "nothing found"
    assert "somebody's words" in result.stderr


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nowhere:function", "--epsilon", "1"), "was not found; run lastbit in the folder"),
        (("own_noise:absent", "--epsilon", "1"), "has no function absent"),
        (("own_noise:NOT_A_MECHANISM", "--epsilon", "1"), "has no function"),
        (("mechanisms", "--epsilon", "1"), "module:function"),
        (("own_noise:Curator", "--epsilon", "1"), "name an object of that class"),
        (("own_noise:uniform", "--epsilon", "1"), "lastbit verify"),
        (("own_noise:three", "--epsilon", "1"), "function(value, size)"),
        (("own_noise:raises", "--epsilon", "1"), "raises KeyError"),
        (("own_noise:quits", "--epsilon", "1"), "raises SystemExit"),
        (("own_noise:vector", "--epsilon", "1"), "--dimension"),
        (("own_noise:scalar", "--epsilon", "1"), "return an array"),
        (("own_noise:plain",), "--epsilon"),
        (("own_noise:plain", "--epsilon", "-1"), "--epsilon is negative"),
        (("own_noise:plain", "--epsilon", "one"), "--epsilon"),
        (("own_noise:plain", "--epsilon", "1", "--delta", "1"), "--delta"),
        (("own_noise:plain", "--epsilon", "1", "--error", "0"), "--error"),
        (("own_noise:plain", "--epsilon", "1", "--error", "1"), "--error"),
        (("own_noise:plain", "--epsilon", "1", "--confidence", "90"), "--confidence"),
        (
            ("own_noise:plain", "--epsilon", "1", "--confidence", ".9", "--error", ".1"),
            "one of",
        ),
        (("own_noise:plain", "--epsilon", "1", "--seconds", "0"), "--seconds"),
        (("own_noise:plain", "--epsilon", "1", "--seconds", "1e400"), "--seconds"),
        (("own_noise:plain", "--epsilon", "1", "--samples", "0"), "--samples"),
        (("own_noise:plain", "--epsilon", "1", "--neighbours", "all"), "--dimension"),
        (("own_noise:plain", "--epsilon", "1", "--pairs", "absent.json"), "--pairs"),
        (("own_noise:plain", "--epsilon", "1", "--pairs", "absent.csv"), "--pairs"),
        (("own_noise:plain", "--epsilon", "1", "--html", "no/page.html"), "--html"),
    ],
)
def test_what_cannot_run_ends_with_2_and_a_way_out(arguments: tuple[str, ...], words: str) -> None:
    assert words in refused("audit", *arguments)


def test_an_interruption_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(audit, "_by_law", interrupted)
    assert "interrupted" in refused("audit", "own_noise:plain", "--epsilon", "1")


def test_a_failure_is_cut_and_named() -> None:
    expected = pytest.raises(InvalidParameter, match="raises ValueError: aaa")
    with expected as caught, foreign_code("do something"):
        raise ValueError("a" * 1000)
    assert len(caught.value.problem) < 300
    assert caught.value.remedy == "do something"


# ---------------------------------------------------------------- how it is called


def test_a_parameter_with_a_default_is_no_size() -> None:
    """The mutant that hands 4000 over as the scale makes a sound mechanism look otherwise."""
    from lastbit.audit.targets.target import as_release

    seen = []

    def mechanism(value: int, scale: float = 1.0) -> float:
        seen.append(scale)
        return value * scale

    release = subject_of("a:b", mechanism).release
    assert release is not None
    assert as_release(release)(3, 4) == [3, 3, 3, 3]
    assert seen == [1.0] * 4


def test_a_size_is_found_by_its_name() -> None:
    def mechanism(value: int, scale: float = 2.0, size: int | None = None) -> list[float]:
        return [value * scale] * (size or 1)

    release = subject_of("a:b", mechanism).release
    assert release is not None
    assert release(3, size=2) == [6.0, 6.0]
    assert lastbit("audit", "own_noise:by_name", "--epsilon", "9", *QUICK).exit_code == 0


def test_a_builtin_without_a_signature_takes_the_value() -> None:
    release = subject_of("a:b", max).release
    assert release is not None
    assert release([1, 2]) == 2


# ---------------------------------------------------------------- inputs


def test_pairs_of_json_and_csv(folder: Path) -> None:
    (folder / "pairs.json").write_text('[[0, 1], [[1, 2.5], [1, 3]], ["a", {"b": 1}]]')
    first, second, third = pairs_in(Path("pairs.json"), None)
    assert first == (0, 1)
    assert isinstance(second[0], np.ndarray)
    assert second[0].tolist() == [1, 2.5]
    assert third == ("a", {"b": 1})
    (folder / "pairs.csv").write_text("0,1\n2.5,3\n")
    assert pairs_in(Path("pairs.csv"), None) == [(0, 1), (2.5, 3)]
    (folder / "vectors.csv").write_text("0,1,0,2\n")
    x, y = pairs_in(Path("vectors.csv"), 2)[0]
    assert (x.tolist(), y.tolist()) == ([0, 1], [0, 2])


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("p.json", "{", "is not JSON in UTF-8"),
        ("p.json", "[" * 100_000, "is nested too deeply"),
        ("p.json", "3", "not a list of pairs"),
        ("p.json", "[[1, 2, 3]]", "not a list of pairs"),
        ("p.json", "[]", "holds 0 pairs"),
        ("p.json", json.dumps([[0, 1]] * 300), "holds 300 pairs"),
        ("p.csv", "x,y\n", "line 1 of --pairs holds no number"),
        ("p.csv", "1,2,3\n", "line 1 of --pairs has 3 columns"),
        ("p.csv", "", "--pairs at p.csv is empty"),
    ],
)
def test_broken_files_of_pairs(folder: Path, name: str, text: str, words: str) -> None:
    (folder / name).write_text(text)
    assert words in refused("audit", "own_noise:plain", "--epsilon", "1", "--pairs", name)


def test_pairs_given_are_the_ones_compared(folder: Path) -> None:
    (folder / "far.json").write_text("[[0, 3]]")
    out = certified("own_noise:laplace", "--epsilon", "2", "--pairs", "far.json")
    assert "0  against  3" in out or "3  against  0" in out
    assert "--pairs far.json" in out


def test_made_up_pairs() -> None:
    assert pairs_for(None, "one") == [(0, 1)]
    for neighbours, most in (("one", 1), ("all", 3)):
        pairs = pairs_for(3, neighbours)
        assert max(int(np.abs(x - y).sum()) for x, y in pairs) == most
        assert all(np.abs(x - y).max() <= 1 for x, y in pairs)
        assert all(x.dtype == np.int64 for pair in whole_numbers(pairs) for x in pair)


# ---------------------------------------------------------------- words and page


def about(name: str, *ranges: tuple[float, float], last_place_of: str = "") -> RangeEvent:
    feature = Feature(name, "entries", last_place, last_place_of=last_place_of)
    return RangeEvent(conditions=(Condition(feature=feature, ranges=ranges),))


def test_events_of_last_bits_in_plain_words() -> None:
    inf = float("inf")
    assert in_words(OutputEvent(outputs=("3",))) == "the output is 3"
    name = "the last binary place of entry 2"
    event = about(name, (-inf, -40.0), last_place_of="entry 2")
    assert in_words(event) == f"{name} is below -40: entry 2 is not a multiple of 2**-40"
    assert in_words(about("entry 2", (-inf, -40.0))) == "entry 2 is below -40"
    assert in_words(about(name, (-inf, inf), last_place_of="entry 2")) == f"{name} is anything"


def example(**changes: Any) -> AuditResult:
    values: dict[str, Any] = {
        "epsilon_lower": 1.5, "delta_lower": 0.1, "epsilon": Fraction(1), "delta": Fraction(0),
        "error": Fraction(1, 10**6), "witness": OutputEvent(outputs=("3",)),
        "inputs": (0, 1), "hits": 90,
        "other_hits": 10, "trials": 100, "other_trials": 100, "samples": 300, "seconds": 0.1,
        "again": "again()",
    }  # fmt: skip
    return AuditResult(**(values | changes))


def test_what_is_shown_is_never_above_what_is_certified() -> None:
    """Rounded to the nearest, 1.999996 would be shown as 2."""
    story = story_of("a:b", example(epsilon_lower=1.999996), "again")
    assert story.verdict == "refuted: ε ≥ 1.9999"
    close = story_of("a:b", example(epsilon_lower=1 + 2**-40), "again")
    assert close.verdict.startswith("refuted: ε ≥ 1.00000000000")
    assert Fraction(close.verdict.split("≥ ")[1]) > 1
    nearly = story_of("a:b", example(epsilon_lower=1 - 2**-50, delta_lower=0.0), "again")
    assert nearly.verdict == "nothing found"
    assert "ε = 1 - 9e-16" in nearly.sentences[0]


def test_a_claim_refuted_by_delta_alone_says_so() -> None:
    found = example(epsilon_lower=0.5, delta=Fraction(1, 100), delta_lower=0.02)
    story = story_of("a:b", found, "again")
    assert story.refuted
    assert story.verdict == "refuted: δ ≥ 0.02"
    assert "at the claimed ε its δ is at least 0.02" in story.sentences[0]


def test_words_in_events_are_found_by_their_codes() -> None:
    code = rows(["no"], 1)[0, 0]
    found = example(witness=about("entry 0", (code, code)))
    words = readable(lambda value, size: ["no", "yes"] * (size // 2), found)
    assert words == OutputEvent(outputs=("'no'",))
    numbers = example(witness=about("entry 0", (3.0, 3.0)))
    assert readable(lambda value, size: np.zeros((size, 2)), numbers).sentence == "entry 0 is 3"


@pytest.mark.thinned(one_in=36)
@pytest.mark.parametrize(
    ("name", "options", "marks"),
    [
        ("plain", ("--epsilon", "1"), ("The output", "fresh runs", "--seed 0")),
        ("word", ("--epsilon", "1", "--samples", "500"), ("&#39;yes&#39;", "fresh runs")),
        ("vector", ("--epsilon", "1", "--dimension", "3"), ("[1, 1, 1]", "fresh runs")),
        ("laplace", ("--epsilon", "1"), ("Exact probabilities", 'class="event"')),
        ("curator", ("--epsilon", "1"), ("the truth", 'class="event"')),
        ("coin_code", ("--epsilon", "1"), ("Exact probabilities",)),
        ("loud", ("--epsilon", "1"), ("nothing found",)),
    ],
)
def test_the_page_shows_the_laws(
    folder: Path, name: str, options: tuple[str, ...], marks: tuple[str, ...]
) -> None:
    result = lastbit("audit", f"own_noise:{name}", *QUICK, *options, "--html", "page.html")
    assert result.exit_code in (0, 1), result.output
    assert "page.html" in result.stdout
    page = (folder / "page.html").read_text("utf-8")
    for words in (*marks, "claimed", "Run it again", "What this does not say"):
        assert words in page, words
    outside = page.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert "http" not in outside
    assert "<script" not in page
