"""`lastbit check`: accepts every certificate as it was written, and no other."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.cli.certificates import (
    KINDS,
    Certificate,
    certificate,
    leaves,
    lists,
    other,
    put,
    sealed,
)
from tests.cli.running import lastbit, refused, succeeded
from tests.evidence import Extent

MOST = 60  # of each sort of change, spread over the whole certificate
SLOW = ("query",)
# Looser intermediate bounds prove the same: these are changed to what is wrong instead.
BOUNDS = ("real", "computed", "error")
# Another machine or generator, for which the same numbers prove another claim that is as true.
MACHINE = ("format", "ulps", "uniform")


pytestmark = pytest.mark.usefixtures("folder")


def saved(name: str, whole: Any) -> str:
    Path(name).write_text(json.dumps(whole, indent=1), "utf-8")
    return name


def rejections(spoiled: Sequence[Certificate]) -> list[dict[str, Any]]:
    """What the command says of many files at once: the status is 1, none is accepted."""
    names = [saved(f"{number}.json", one) for number, one in enumerate(spoiled)]
    result = lastbit("check", "--json", *names)
    assert result.exit_code == 1
    answers = json.loads(result.stdout)["certificates"]
    assert len(answers) == len(spoiled) > 0
    return answers


def spread(items: Sequence[Any], kind: str, extent: Extent) -> Sequence[Any]:
    most = extent.number(MOST // 10, MOST) // (3 if kind in SLOW else 1)
    return items[:: -(-len(items) // most)]


# ---------------------------------------------------------------- accepted


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_claimed_and_on_which_assumptions_is_said(kind: str) -> None:
    whole = certificate(kind)
    words = " ".join(succeeded("check", saved("out.json", whole)).split())
    assert "ACCEPTED" in words and "Proved:" in words
    for sentence in whole["assumptions"]:
        assert " ".join(sentence.split()) in words


def test_the_words_are_those_of_the_claim() -> None:
    snapping = " ".join(succeeded("check", saved("a.json", certificate("snapping"))).split())
    assert "ε = 0.7 and results within ±32" in snapping
    assert "at most 0.7 + 2.035395e-14" in snapping
    law = " ".join(succeeded("check", saved("b.json", certificate("law"))).split())
    assert "between the inputs 2.5 and 3.5" in law
    refutation = succeeded("check", saved("c.json", certificate("refutation")))
    assert "with probability 0 from the input" in " ".join(refutation.split())


def test_json_and_several_files() -> None:
    names = [saved(f"{kind}.json", certificate(kind)) for kind in KINDS]
    answers = json.loads(succeeded("check", "--json", *names))["certificates"]
    assert [answer["accepted"] for answer in answers] == [True] * len(KINDS)
    assert answers[0]["claim"] == certificate("snapping")["claim"]
    bad = saved("bad.json", {**certificate("law"), "digest": "0"})
    result = lastbit("check", names[0], bad)
    assert result.exit_code == 1
    assert "ACCEPTED" in result.stdout and "REJECTED: bad.json" in result.stdout
    assert "it was changed after it was written" in result.stdout


def test_the_code_of_a_certificate_is_found_in_the_current_folder(folder: Path) -> None:
    from lastbit.cli.loading import current_folder
    from lastbit.verify.running.code import Code
    from lastbit.verify.running.law import exact_loss

    (folder / "coins_of_a_folder.py").write_text(
        "def coin(value, u):\n    return 1.0 if u < (0.75 if value > 0 else 0.25) else 0.0\n"
    )
    with current_folder():
        code = Code("coins_of_a_folder:coin")
        whole = exact_loss(code, 0.0, 1.0, signs=None).certificate(code)
    assert "ACCEPTED" in succeeded("check", saved("out.json", whole))


# ---------------------------------------------------------------- rejected


@pytest.mark.parametrize("kind", KINDS)
def test_a_changed_digit_is_seen_by_the_digest(kind: str, extent: Extent) -> None:
    whole = certificate(kind)
    spoiled = [
        put(whole, path, other(value)) for path, value in spread(list(leaves(whole)), kind, extent)
    ]
    for answer in rejections(spoiled):
        assert not answer["accepted"] and answer["problem"]


def wrong(whole: Certificate) -> Iterator[Certificate]:
    """Single values changed for the worse, in claim and body."""
    for path, value in leaves({part: whole[part] for part in ("claim", "body")}):
        names = [key for key in path if isinstance(key, str)]
        if any(name in MACHINE for name in names):
            continue
        if path == ("claim", "delta"):
            continue  # a larger delta claims less
        if names[-1] not in BOUNDS:
            yield put(whole, path, other(value))
        elif names[-1] == "error" and value != "0":
            yield put(whole, path, "0")
        elif names[-1] != "error" and path[-1] == 0:
            yield put(whole, path[:-1], ["10000000", "10000001"])


@pytest.mark.parametrize("kind", KINDS)
def test_a_changed_number_or_rule_is_rejected_also_with_a_new_digest(
    kind: str, extent: Extent
) -> None:
    spoiled = [sealed(one) for one in spread(list(wrong(certificate(kind))), kind, extent)]
    for answer in rejections(spoiled):
        assert not answer["accepted"]
        assert "changed after" not in answer["problem"]


def other_order(whole: Certificate) -> Iterator[Certificate]:
    """Lists with an element dropped, or turned round, and objects with a part less."""
    for path, items in lists({part: whole[part] for part in ("claim", "body")}):
        if any(name in MACHINE for name in path):
            continue
        yield put(whole, path, items[:-1])
        if items[::-1] != items:
            yield put(whole, path, items[::-1])
        for index, item in enumerate(items[:2]):
            if isinstance(item, dict):
                fewer = {key: item[key] for key in list(item)[:-1]}
                yield put(whole, (*path, index), fewer)


@pytest.mark.parametrize("kind", KINDS)
def test_a_dropped_or_moved_step_is_rejected_also_with_a_new_digest(
    kind: str, extent: Extent
) -> None:
    spoiled = [sealed(one) for one in spread(list(other_order(certificate(kind))), kind, extent)]
    assert not any(answer["accepted"] for answer in rejections(spoiled))


@pytest.mark.parametrize("kind", KINDS)
def test_another_envelope_is_rejected(kind: str) -> None:
    whole = certificate(kind)
    spoiled = [
        {**whole, "version": 2},
        {**whole, "kind": "snapping" if whole["kind"] != "snapping" else "law"},
        {**whole, "kind": "unknown"},
        {**whole, "claim": {}},
        {**whole, "body": []},
        {**whole, "assumptions": "none"},
        {**whole, "more": 1},
        {key: value for key, value in whole.items() if key != "assumptions"},
        {},
    ]
    assert not any(answer["accepted"] for answer in rejections([sealed(s) for s in spoiled]))


def test_code_that_fails_or_is_not_there_rejects(folder: Path) -> None:
    (folder / "quits_on_import.py").write_text("raise SystemExit(0)\n")
    (folder / "fails_on_import.py").write_text("raise RuntimeError('secret')\n")
    whole = certificate("law")
    names = ("quits_on_import:f", "fails_on_import:f", "no_such_module_at_all:f", "math:pi", "os:f")
    spoiled = [sealed(put(whole, ("claim", "function"), name)) for name in names]
    answers = rejections(spoiled)
    assert not any(answer["accepted"] for answer in answers)
    assert "secret" not in json.dumps(answers)


def test_a_terminal_is_not_steered_by_a_file() -> None:
    whole = certificate("snapping")
    whole["assumptions"] += ["fine\x1b[31m\x07", "and fine"]
    output = succeeded("check", saved("out.json", sealed(whole)))
    needed, said = output.split("Said by the file, not checked:")
    assert "fine" not in needed and r'"fine\u001b[31m\u0007"' in said and '"and fine"' in said


# ---------------------------------------------------------------- unreadable


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[1, 2]", b"17", b"\xff\xfe\x00", b"[" * 100_000, b"not JSON at all"]
)
def test_what_is_no_json_object_cannot_be_read(folder: Path, content: bytes) -> None:
    (folder / "odd.json").write_bytes(content)
    said = refused("check", "odd.json")
    words = ("is not a JSON object", "is not JSON in UTF-8", "is nested too deeply")
    assert any(f"odd.json {problem}" in said for problem in words)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"kind": "law", "kind": "release"}', "has a name twice"),
        (b'{"claim": {"a": NaN}}', "has NaN or an infinity"),
        (b'{"claim": [-Infinity]}', "has NaN or an infinity"),
        (b'{"claim": 1e999}', "beyond the largest float"),
        (b'{"a":' * 200_000 + b"1" + b"}" * 200_000, "is nested too deeply"),
        (b'{"claim": ' + b"9" * 5_000 + b"}", "has a number of too many digits"),
    ],
)
def test_what_two_readers_could_read_differently_is_refused(
    folder: Path, content: bytes, said: str
) -> None:
    (folder / "odd.json").write_bytes(content)
    assert said in refused("check", "odd.json")


def test_what_is_not_there_cannot_be_read() -> None:
    assert "nowhere.json is not a file" in refused("check", "nowhere.json")
    assert "is not a file" in refused("check", ".")
    assert "CERTIFICATES" in refused("check")
