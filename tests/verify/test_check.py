"""The independent checker as a whole: what it demands of any certificate, and forged ones."""

from __future__ import annotations

import math
from typing import Any

import pytest

from lastbit.checker.dispatch import beliefs, check, problem_of
from lastbit.checker.numbers import Rejected
from lastbit.verify.declared import declared_certificate
from lastbit.verify.running.uniforms import Grid
from tests.cli.certificates import KINDS, certificate, sealed
from tests.evidence import late

Certificate = dict[str, Any]


def declared() -> Certificate:
    def logistic(u):
        return math.log(u) - math.log(1 - u)

    return declared_certificate(
        logistic, rate=1, sensitivity=1, cell=1, region=(-2, 2), uniform=Grid(20, first=1)
    ).certificate()


def made(kind: str) -> Certificate:
    return declared() if kind == "declared" else certificate(kind)


@pytest.mark.thinned(one_in=9)
@pytest.mark.parametrize("kind", [*KINDS, "declared"])
def test_every_assumption_must_be_said(kind):
    """Whoever drops a sentence, or changes a word of it, claims more than is proved."""
    whole = made(kind)
    assert problem_of(whole) is None
    needed = beliefs(whole["kind"], whole["claim"])
    assert set(needed) <= set(whole["assumptions"])
    for sentence in needed:
        others = [other for other in whole["assumptions"] if other != sentence]
        for assumptions in (others, [*others, sentence + " Or not."]):
            problem = problem_of(sealed({**whole, "assumptions": assumptions}))
            assert problem == "its assumptions leave out what the proof rests on"
    more = sealed({**whole, "assumptions": [*whole["assumptions"], "The earth is round."]})
    assert problem_of(more) is None


def test_a_declared_law_must_be_called_declared():
    whole = declared()
    assert "declared, not proved" in beliefs("rounding", whole["claim"])[-1]
    assert "declared" not in " ".join(beliefs("rounding", certificate("rounding")["claim"]))
    with pytest.raises(Rejected, match="kind"):
        beliefs("faith", {})


@pytest.mark.parametrize("version", [True, 1.0, "1", None, 2])
def test_another_version(version):
    spoiled = sealed({**certificate("snapping"), "version": version})
    assert problem_of(spoiled) == "its version is unknown"


JUNK = ([], {}, "", "x", 7, None, True, [[]], [None, None], {"u": None}, 1.5)  # type: ignore[var-annotated]


@pytest.mark.parametrize(
    "kind",
    ["snapping", "law", *map(late, sorted({*KINDS, "declared"} - {"snapping", "law", "query"}))],
)
def test_junk_in_any_part_is_rejected_and_nothing_else_is_raised(kind):
    """A part of claim or body replaced by something of another kind."""
    whole = made(kind)
    for part in ("claim", "body"):
        for name, old in whole[part].items():
            for junk in JUNK:
                if junk == old or (name, junk) == ("parameters", {}):
                    continue  # the parameters left out may be the function's own
                spoiled = sealed({**whole, part: {**whole[part], name: junk}})
                with pytest.raises(Rejected):
                    check(spoiled)


def test_deep_nesting_is_rejected():
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    whole = certificate("rounding")
    whole["body"]["branches"] = deep
    assert "malformed" in (problem_of(whole) or "")


def doubled(rows: list[list[Any]], times: int) -> list[list[Any]]:
    """The last step added to itself, again and again: 2**times ways down."""
    for _ in range(times):
        rows = [*rows, ["ADD", len(rows) - 1, len(rows) - 1]]
    return rows


def test_shared_steps_are_followed_once():
    """Tables whose written-out size is astronomical: rejected, and before the sun burns out."""
    whole = declared()
    rows = doubled([["VAR", "value"], ["VAR", "u"]], 200)
    whole["claim"]["programs"] = [[*rows, ["ADD", 0, len(rows) - 1]]]
    assert problem_of(sealed(whole)) is not None
    whole = certificate("query")
    rows = doubled([["VAR", "value"], ["VAR", "u"], ["CONST", "1/2"], ["SUB", 1, 2]], 200)
    n = len(rows)
    rows += [["SGN", n - 1], ["ABS", 3], ["CONST", "2"], ["MUL", n + 2, n + 1], ["CONST", "1"]]
    rows += [["SUB", n + 4, n + 3], ["LN", n + 5], ["MUL", n, n + 6], ["NEG", n + 7]]
    whole["claim"]["programs"] = [[*rows, ["ADD", 0, n + 8]]]
    assert problem_of(sealed(whole)) is not None


def test_absurd_machines_are_rejected_at_once():
    """Exponents that would fill the memory if they were believed before they are looked at."""
    for form, least in (([53, -(10**12), 1023], -(10**12)), ([10**12, -1022, 1023], -1022)):
        whole = certificate("rounding")
        whole["claim"]["format"] = {"binary": form}
        whole["claim"]["uniform"] |= {"least_exponent": least}
        assert problem_of(sealed(whole)) == "the format is absurd"
