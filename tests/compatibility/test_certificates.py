"""Certificates and answers that lastbit 0.1 wrote are accepted, and changed ones are not."""

from __future__ import annotations

import copy
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from lastbit.checker.numbers import digest
from lastbit.cli import main
from lastbit.release import Answer
from lastbit.verify import Rejected, check, problem_of
from tests.compatibility.kept import KEPT, elsewhere, names_in, read
from tests.data.generate import CERTIFICATES

CODE = names_in("certificates")
ANSWERS = names_in("tables", "answers")
FILES = {
    **{name: KEPT / "certificates" / f"{name}.json" for name in CODE},
    **{name: KEPT / "tables" / "answers" / f"{name}.json" for name in ANSWERS},
}
LAPSED: frozenset[str] = frozenset()
"""Certificates about code of lastbit's that was changed on purpose since: see `0.1/README.md`."""
OTHER_CODE = "not the one that was certified"


def lastbit_check(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["check", *map(str, arguments)])


def certificate(name: str) -> dict[str, Any]:
    whole = json.loads(FILES[name].read_text("utf-8"))
    return whole["certificate"] if "rows" in whole else whole


def about_code(name: str) -> str | None:
    """How a certificate is bound to code: by steps that are run too, by running alone, or not."""
    one = certificate(name)
    if one["kind"] in ("law", "refutation"):
        return "running"
    return "steps" if one["claim"].get("code") else None


def parts_of_machine(name: str) -> list[str]:
    """What such a certificate must find again on the machine that checks it."""
    match about_code(name):
        case "running":
            return ["python"]
        case "steps":
            return sorted(
                {p for code in certificate(name)["claim"]["code"] for p in code["machine"]}
            )
    return []


def holds_here(name: str) -> bool:
    return name not in LAPSED and not elsewhere(*parts_of_machine(name))


# ---------------------------------------------------------------- accepted


def test_there_are_two_of_every_kind() -> None:
    kinds = [certificate(name)["kind"] for name in FILES]
    for kind in ("error-bound", "law", "refutation", "release", "rounding", "snapping"):
        assert kinds.count(kind) >= 2
    assert set(kinds) == {"error-bound", "law", "refutation", "release", "rounding", "snapping"}
    declared = [name for name in CODE if "rate" in certificate(name)["claim"]]
    assert len(declared) >= 2


@pytest.mark.parametrize("name", FILES)
def test_an_old_certificate_is_accepted(name: str) -> None:
    """A certificate about code holds on the machine that it names; its proof holds on any."""
    whole = json.loads(FILES[name].read_text("utf-8"))
    if holds_here(name):
        assert problem_of(whole) is None
    elif about_code(name) == "steps":
        assert lastbit_check("--without-code", FILES[name]).exit_code == 3
    else:
        assert OTHER_CODE in str(problem_of(whole))


def test_check_raises_for_what_problem_of_names() -> None:
    check(certificate("snapping"))
    with pytest.raises(Rejected, match="the loss is not proved"):
        check(changed("snapping"))


def test_the_command_accepts_all_of_them() -> None:
    here = [name for name in FILES if holds_here(name)]
    result = lastbit_check("--json", *(FILES[name] for name in here))
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)["certificates"]
    assert [one["accepted"] for one in told] == [True] * len(here)
    for name, one in zip(here, told, strict=True):
        assert one["digest"] == certificate(name)["digest"]
        assert one["claim"] == certificate(name)["claim"]


@pytest.mark.parametrize("name", ["snapping", "rounding-steps", "error-product", "found-keys"])
def test_the_command_says_what_is_proved(name: str) -> None:
    result = lastbit_check(FILES[name])
    assert result.exit_code == 0
    assert "ACCEPTED" in result.stdout and "Proved:" in result.stdout
    words = " ".join(result.stdout.split())
    for sentence in certificate(name)["assumptions"]:
        assert " ".join(sentence.split()) in words


# ---------------------------------------------------------------- written as before


@pytest.mark.parametrize(
    "name",
    [
        *("error-binary32", "error-logarithm", "error-product", "snapping", "snapping-delta"),
        *("law-response", "law-snapped", "refutation-response"),
    ],
)
def test_the_same_proof_is_written_in_the_same_way(name: str) -> None:
    """Digest and all: a certificate made now is the one that was made then."""
    if not holds_here(name):
        pytest.skip("the certificate names another Python, or code that was changed")
    assert CERTIFICATES[name]() == certificate(name)


@pytest.mark.parametrize("name", ["rounding-steps", "declared-steps"])
def test_a_proof_by_bounds_is_written_in_the_same_form(name: str) -> None:
    """A better bound may take the place of an old one; what is said of it stays."""
    now, before = CERTIFICATES[name](), certificate(name)
    assert now.keys() == before.keys()
    assert now["assumptions"] == before["assumptions"]
    for part in ("claim", "body"):
        assert now[part].keys() == before[part].keys()
    given = now["claim"].keys() - {"epsilon", "code"}
    assert {key: now["claim"][key] for key in given} == {key: before["claim"][key] for key in given}


# ---------------------------------------------------------------- refused


def changed(name: str) -> dict[str, Any]:
    """The same with a claim that is too good, or of other probabilities; its digest is redone."""
    whole = json.loads(FILES[name].read_text("utf-8"))
    one = whole["certificate"] if "rows" in whole else whole
    claim = one["claim"]
    match one["kind"]:
        case "error-bound":
            claim["error"] = _less(claim["error"])
        case "law" | "refutation":
            claim["probabilities"][0] = _less(claim["probabilities"][0])
        case "snapping":
            claim["loss"] = claim["epsilon"]
        case "rounding":
            claim["epsilon"] = _less(claim["epsilon"])
        case "release":
            for price in ("epsilon", "rho", "delta"):
                if claim.get(price) not in (None, "0"):
                    claim[price] = _less(claim[price])
    one["digest"] = digest(one)
    return whole


def _less(number: str) -> str:
    return str(Fraction(number) * Fraction(9, 10))


@pytest.mark.parametrize("name", FILES)
def test_one_that_claims_more_is_refused(name: str) -> None:
    problem = problem_of(changed(name))
    assert problem is not None
    if holds_here(name):
        assert OTHER_CODE not in problem  # but for what was changed


def test_the_command_refuses_all_changed_ones(tmp_path: Path) -> None:
    places = []
    for name in FILES:
        places.append(tmp_path / f"{name}.json")
        places[-1].write_text(json.dumps(changed(name)), "utf-8")
    result = lastbit_check("--json", *places)
    assert result.exit_code == 1
    told = json.loads(result.stdout)["certificates"]
    assert [one["accepted"] for one in told] == [False] * len(places)


@pytest.mark.parametrize("name", FILES)
def test_one_whose_digest_does_not_fit_is_refused(name: str) -> None:
    whole = json.loads(FILES[name].read_text("utf-8"))
    one = whole["certificate"] if "rows" in whole else whole
    one["assumptions"].append("The moon is made of cheese.")
    assert problem_of(whole) == "it was changed after it was written"


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_with_another_number_is_refused(name: str) -> None:
    whole = json.loads(FILES[name].read_text("utf-8"))
    if not whole["rows"]:
        whole["rows"].append({"keys": [], "cells": []})
    else:
        spoiled = copy.deepcopy(whole["rows"][0]["cells"][0])
        spoiled["value"] = (spoiled["value"] or 0) + 1
        whole["rows"][0]["cells"][0] = spoiled
    assert problem_of(whole) is not None


# ---------------------------------------------------------------- answers as values


@pytest.mark.parametrize("name", ANSWERS)
def test_an_old_answer_loads_and_goes_on(name: str, tmp_path: Path) -> None:
    answer = Answer.load(FILES[name])
    record = json.loads(FILES[name].read_text("utf-8"))
    assert answer.record == record
    assert answer.guarantee == record["guarantee"]
    assert len(answer) == len(record["rows"]) == len(answer.to_dicts())
    names = [*answer.keys, *answer.columns]
    assert names == [column["name"] for column in record["columns"]]
    for row, written in zip(answer, record["rows"], strict=True):
        assert [cell.value for cell in row.cells] == [cell["value"] for cell in written["cells"]]
    assert {part: str(getattr(answer.cost, part)) for part in record["cost"]} == record["cost"]
    assert answer.to_csv().splitlines()[0].split(",")[: len(answer.keys)] == list(answer.keys)
    assert str(answer)
    answer.save(tmp_path / "again.json")
    assert json.loads((tmp_path / "again.json").read_text("utf-8")) == record


@pytest.mark.parametrize("name", ["means", "consistent", "quantiles"])
def test_an_old_answer_can_be_shown_as_a_page(name: str, tmp_path: Path) -> None:
    Answer.load(FILES[name]).report(tmp_path / "page.html")
    assert "</html>" in (tmp_path / "page.html").read_text("utf-8")


def test_counts_of_an_old_answer_are_made_consistent() -> None:
    answer = Answer.load(FILES["declared-keys"]).consistent()
    assert problem_of(answer.record) is None
    totals = answer.totals
    assert totals is not None and totals["n"] == sum(answer["n"])


def test_kept_answers_have_what_they_are_named_for() -> None:
    parts = {
        name: {part["mechanism"] for part in certificate(name)["body"]["plan"]["parts"]}
        for name in ANSWERS
    }
    assert "threshold" in parts["found-keys"] & parts["join-found-keys"] & parts["found-keys-units"]
    assert len({*parts["gaussian"], *parts["median"], *parts["sum"]}) >= 3
    assert all(
        read("tables", "answers", f"{n}.json").get("totals") for n in ANSWERS if "consist" in n
    )
    assert any(read("tables", "answers", f"{n}.json")["entry"] for n in ANSWERS)
